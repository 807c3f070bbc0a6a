// Operations against closed forms and interesting values.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ir/eval/evaluator.h"
#include "ir/eval/inputs.h"
#include "ir/eval/spare_arrays.h"
#include "ir/print/print.h"
#include "parser/parser.h"
#include "tests/common/compare.h"

namespace hlo {
namespace {

// The text of the result of a module without parameters.
std::string run(const std::string& body, const std::string& before = "") {
  auto m =
      parse_module("HloModule m\n" + before + "ENTRY e {\n" + body + "\n}", std::make_shared<Universe>(), {"t", 20});
  Value v = Evaluator(*m).run({});
  return literal_text(m->u(), m->u().literal(literal_of_value(m->u(), v)), true);
}

struct Row {
  std::string body, result;
};

TEST(Evaluator, Integers) {
  const Row rows[] = {
      {"a = s32[4] constant({7, -7, 5, -2147483648})\nb = s32[4] constant({0, 2, -2, -1})\nROOT r = s32[4] divide(a, "
       "b)",
       "{-1, -3, -2, -2147483648}"},
      {"a = s32[4] constant({7, -7, 5, -2147483648})\nb = s32[4] constant({0, 2, -2, -1})\nROOT r = s32[4] "
       "remainder(a, b)",
       "{7, -1, 1, 0}"},
      {"a = u8[2] constant({200, 255})\nb = u8[2] constant({100, 1})\nROOT r = u8[2] add(a, b)", "{44, 0}"},
      {"a = s32[3] constant({1, -8, -8})\nb = s32[3] constant({40, 1, 33})\nROOT r = s32[3] shift-right-arithmetic(a, "
       "b)",
       "{0, -4, -1}"},
      {"a = u32[2] constant({1, 1})\nb = u32[2] constant({31, 32})\nROOT r = u32[2] shift-left(a, b)",
       "{2147483648, 0}"},
      {"a = s32[4] constant({2, -1, 0, 3})\nb = s32[4] constant({-1, -3, 0, 4})\nROOT r = s32[4] power(a, b)",
       "{0, -1, 1, 81}"},
      {"a = s8[2] constant({-128, 5})\nROOT r = s8[2] abs(a)", "{-128, 5}"},
      {"a = u16[2] constant({0, 256})\nROOT r = u16[2] count-leading-zeros(a)", "{16, 7}"},
      {"a = s4[2] constant({7, -8})\nb = s4[2] constant({1, -1})\nROOT r = s4[2] add(a, b)", "{-8, 7}"},
      {"a = f32[5] constant({nan, inf, -inf, 300, -1.9})\nROOT r = s8[5] convert(a)", "{0, 127, -128, 127, -1}"},
      {"a = f32[2] constant({-1, 300})\nROOT r = u8[2] convert(a)", "{0, 255}"},
      {"a = s32[2] constant({-1, 256})\nROOT r = u8[2] convert(a)", "{255, 0}"},
  };
  for (const Row& r : rows) EXPECT_EQ(run(r.body), r.result) << r.body;
}

TEST(Evaluator, Floats) {
  const Row rows[] = {
      {"a = f32[3] constant({nan, 1, 2})\nb = f32[3] constant({1, nan, 1})\nROOT r = f32[3] maximum(a, b)",
       "{nan, nan, 2}"},
      {"a = f32[4] constant({-0.0, nan, -2, inf})\nROOT r = f32[4] sign(a)", "{-0, nan, -1, 1}"},
      {"a = f32[4] constant({2.5, -2.5, 0.5, 1.5})\nROOT r = f32[4] round-nearest-even(a)", "{2, -2, 0, 2}"},
      {"a = f32[4] constant({2.5, -2.5, 0.5, 1.5})\nROOT r = f32[4] round-nearest-afz(a)", "{3, -3, 1, 2}"},
      {"a = f32[2] constant({5.5, -5.5})\nb = f32[2] constant({2, 2})\nROOT r = f32[2] remainder(a, b)", "{1.5, -1.5}"},
      {"a = bf16[] constant(1)\nb = bf16[] constant(0.001)\nROOT r = bf16[] add(a, b)", "1"},
      {"a = f32[3] constant({-1, 0.5, 7})\nl = f32[] constant(0)\nh = f32[] constant(6)\nROOT r = f32[3] clamp(l, a, "
       "h)",
       "{0, 0.5, 6}"},
      {"a = f32[2] constant({-0.0, 0})\nb = f32[2] constant({0, -0.0})\nROOT r = pred[2] compare(a, b), direction=LT, "
       "type=TOTALORDER",
       "{1, 0}"},
      {"a = f32[] constant(1.0009765625)\nROOT r = f32[] reduce-precision(a), exponent_bits=8, mantissa_bits=9", "1"},
      {"a = c64[] constant((3, 4))\nROOT r = f32[] abs(a)", "5"},
  };
  for (const Row& r : rows) EXPECT_EQ(run(r.body), r.result) << r.body;
}

TEST(Evaluator, Movement) {
  const std::string a = "a = s32[2,3] constant({{1,2,3},{4,5,6}})\n";
  const Row rows[] = {
      {a + "ROOT r = s32[3,2] transpose(a), dimensions={1,0}", "{ { 1, 4 }, { 2, 5 }, { 3, 6 } }"},
      {a + "ROOT r = s32[2,3] reverse(a), dimensions={1}", "{ { 3, 2, 1 }, { 6, 5, 4 } }"},
      {a + "ROOT r = s32[2,2] slice(a), slice={[0:2], [0:3:2]}", "{ { 1, 3 }, { 4, 6 } }"},
      {a + "z = s32[] constant(9)\nROOT r = s32[1,6] pad(a, z), padding=0_-1x1_0_1", "{ { 9, 1, 9, 2, 9, 3 } }"},
      {a + "i = s32[] constant(5)\nROOT r = s32[1,2] dynamic-slice(a, i, i), dynamic_slice_sizes={1,2}",
       "{ { 5, 6 } }"},
      {a + "u = s32[1,1] constant({{0}})\ni = s32[] constant(-3)\nROOT r = s32[2,3] dynamic-update-slice(a, u, i, i)",
       "{ { 0, 2, 3 }, { 4, 5, 6 } }"},
      {a + "ROOT r = s32[2,6] concatenate(a, a), dimensions={1}", "{ { 1, 2, 3, 1, 2, 3 }, { 4, 5, 6, 4, 5, 6 } }"},
      {"b = s32[2] constant({7,8})\nROOT r = s32[2,3] broadcast(b), dimensions={0}", "{ { 7, 7, 7 }, { 8, 8, 8 } }"},
      {"ROOT r = s32[2,3] iota(), iota_dimension=1", "{ { 0, 1, 2 }, { 0, 1, 2 } }"},
      {"a = s32[2,3]{0,1} constant({{1,2,3},{4,5,6}})\nROOT r = s32[6] bitcast(a)", "{1, 4, 2, 5, 3, 6}"},
      {a + "i = s32[2,1] constant({{1},{0}})\nROOT r = s32[2,3] gather(a, i), offset_dims={1}, "
           "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
       "{ { 4, 5, 6 }, { 1, 2, 3 } }"},
  };
  for (const Row& r : rows) EXPECT_EQ(run(r.body), r.result) << r.body;
}

const char* kAdd = "add { x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT s = s32[] add(x, y) }\n";

TEST(Evaluator, ReductionsWindowsSorts) {
  EXPECT_EQ(run("a = s32[2,3] constant({{1,2,3},{4,5,6}})\nz = s32[] constant(10)\nROOT r = s32[2] reduce(a, z), "
                "dimensions={1}, to_apply=add",
                kAdd),
            "{16, 25}");
  EXPECT_EQ(run("a = s32[5] constant({1,2,3,4,5})\nz = s32[] constant(0)\nROOT r = s32[3] reduce-window(a, z), "
                "window={size=3 stride=2 pad=1_1}, to_apply=add",
                kAdd),
            "{3, 9, 9}");
  EXPECT_EQ(run("a = s32[3] constant({3,1,2})\nb = s32[3] constant({7,8,9})\nROOT r = (s32[3], s32[3]) sort(a, b), "
                "dimensions={0}, to_apply=gt",
                "gt { a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] "
                "parameter(3)\n ROOT r = pred[] compare(a, b), direction=GT }\n"),
            "( {3, 2, 1}, {7, 9, 8} )");
  // A comparator that is more than one comparison goes through the merge sort.
  EXPECT_EQ(run("a = s32[5] constant({3,-1,2,-5,4})\nROOT r = s32[5] sort(a), dimensions={0}, to_apply=lt",
                "lt { a = s32[] parameter(0)\n b = s32[] parameter(1)\n x = s32[] abs(a)\n y = s32[] abs(b)\n ROOT r = "
                "pred[] compare(x, y), direction=LT }\n"),
            "{-1, 2, 3, 4, -5}");
  EXPECT_EQ(run("a = s32[4] constant({1,2,3,4})\ni = s32[2,1] constant({{1},{9}})\nu = s32[2] constant({10,20})\nROOT "
                "r = s32[4] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0}, "
                "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
                kAdd),
            "{1, 12, 3, 4}");
  EXPECT_EQ(
      run("a = s32[4] constant({1,5,2,7})\ns = s32[2] constant({10,20})\nz = s32[] constant(0)\nROOT r = s32[4] "
          "select-and-scatter(a, s, z), window={size=2 stride=2}, select=ge, scatter=add",
          std::string(kAdd) +
              "ge { x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT s = pred[] compare(x, y), direction=GE }\n"),
      "{0, 10, 0, 20}");
}

TEST(Evaluator, SortsByRounds) {
  // Two keys: no single one decides, the comparator runs.
  EXPECT_EQ(run("a = s32[6] constant({3,1,3,1,2,1})\nb = s32[6] constant({9,7,2,8,5,6})\nROOT r = (s32[6], s32[6]) "
                "sort(a, b), dimensions={0}, to_apply=lt",
                "lt { a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] "
                "parameter(3)\n l = pred[] compare(a, b), direction=LT\n e = pred[] compare(a, b), direction=EQ\n m = "
                "pred[] compare(c, d), direction=LT\n n = pred[] and(e, m)\n ROOT r = pred[] or(l, n) }\n"),
            "( {1, 1, 1, 2, 3, 3}, {6, 7, 8, 5, 2, 9} )");
  // Ties of the first key by neither before the other, computed once more, then by the second the other way round.
  const char* kTwo =
      "lt { a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n two = "
      "s32[] constant(2)\n t = s32[] broadcast(two), dimensions={}\n x = s32[] divide(a, t)\n y = s32[] divide(b, t)\n "
      "l = pred[] compare(x, y), direction=LT\n x2 = s32[] divide(a, t)\n y2 = s32[] divide(b, t)\n g = pred[] "
      "compare(y2, x2), direction=LT\n e = pred[] compare(l, g), direction=EQ\n m = pred[] compare(c, d), "
      "direction=GT\n ROOT r = pred[] select(e, m, l) }\n";
  EXPECT_EQ(run("a = s32[6] constant({3,1,2,1,5,0})\nb = s32[6] constant({9,7,2,8,5,8})\nROOT r = (s32[6], s32[6]) "
                "sort(a, b), dimensions={0}, to_apply=lt",
                kTwo),
            "( {1, 0, 1, 3, 2, 5}, {8, 8, 7, 9, 2, 5} )");
  // A first key that tells apart by another measure than its ties are told by: no list of keys, the comparator runs.
  std::string other = kTwo;
  other.replace(other.find("x2 = s32[] divide(a, t)"), 23, "x2 = s32[] multiply(a, t)");
  EXPECT_EQ(run("a = s32[2] constant({3,2})\nb = s32[2] constant({1,2})\nROOT r = (s32[2], s32[2]) sort(a, b), "
                "dimensions={0}, to_apply=lt",
                other),
            "( {3, 2}, {1, 2} )");
  // NaN is less than nothing; what stands on either side of it keeps its place.
  EXPECT_EQ(run("a = f32[3] constant({2,nan,1})\nROOT r = f32[3] sort(a), dimensions={0}, to_apply=lt",
                "lt { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT, "
                "type=TOTALORDER }\n"),
            "{1, 2, nan}");
}

TEST(Evaluator, WhatXlasCpuDoesNotTake) {
  const Row rows[] = {
      {"a = f64[3] constant({0, 0.5, -1})\nROOT r = f64[3] asin(a)", "{0, 0.52359877559829893, -1.5707963267948966}"},
      {"a = f64[2] constant({1, 0.5})\nROOT r = f64[2] acos(a)", "{0, 1.0471975511965979}"},
      {"a = f32[2] constant({0, 1})\nROOT r = f32[2] asinh(a)", "{0, 0.881373584}"},
      {"a = f32[2] constant({1, 2})\nROOT r = f32[2] acosh(a)", "{0, 1.31695795}"},
      {"a = f32[2] constant({0, 0.5})\nROOT r = f32[2] atanh(a)", "{0, 0.549306154}"},
      {"a = f32[2] constant({0, 1})\nROOT r = f32[2] sinh(a)", "{0, 1.17520118}"},
      {"a = f32[2] constant({0, 1})\nROOT r = f32[2] cosh(a)", "{1, 1.54308057}"},
      {"a = s32[3] constant({2147483647, -2147483648, 65536})\nROOT r = s32[3] mulhi(a, a)",
       "{1073741823, 1073741824, 1}"},
      {"a = u8[2] constant({255, 16})\nROOT r = u8[2] mulhi(a, a)", "{254, 1}"},
      {"a = s32[2] constant({4, 5})\nROOT r = s32[2] domain(a), domain={kind=\"sharding\", entry={replicated}, "
       "exit={maximal device=0}}",
       "{4, 5}"},
      {"a = s32[2] constant({4, 5})\ns = (s32[2], s32[2], u32[]) copy-start(a)\nROOT r = s32[2] copy-done(s)",
       "{4, 5}"},
      // The mixed weights of two groups of rows: one row of the first, two of the second.
      {"l = f32[3,2] constant({{1,2},{3,4},{5,6}})\nr = f32[2,2,1] constant({{{1},{1}},{{10},{100}}})\ng = s32[2] "
       "constant({1,2})\nROOT d = f32[3,1] ragged-dot(l, r, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "lhs_ragged_dims={0}, rhs_group_dims={0}",
       "{ {3}, {430}, {650} }"},
      // A sum in two parts.
      {"l = f32[1,3] constant({{1,2,3}})\nr = f32[3,1] constant({{1},{10},{100}})\ng = s32[2] constant({1,2})\nROOT d "
       "= "
       "f32[2,1,1] ragged-dot(l, r, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
       "{ { {1} }, { {320} } }"},
      // Scales of blocks of two.
      {"l = f8e4m3fn[1,4] constant({{1,1,2,2}})\nr = f8e4m3fn[4,1] constant({{1},{2},{3},{4}})\ns = f8e8m0fnu[1,2] "
       "constant({{2,4}})\nt = f8e8m0fnu[2,1] constant({{1},{0.5}})\nROOT d = f32[1,1] scaled-dot(l, r, s, t), "
       "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "{ {34} }"},
      {"a = s32[4] constant({1,2,3,4})\nn = s32[] constant(2)\nd = s32[<=4] set-dimension-size(a, n), "
       "dimensions={0}\nz = "
       "s32[] constant(0)\nROOT r = s32[] reduce(d, z), dimensions={0}, to_apply=add",
       "3"},
      {"a = s32[2,3] constant({{1,2,3},{4,5,6}})\nn = s32[] constant(1)\nd = s32[2,<=3] set-dimension-size(a, n), "
       "dimensions={1}\ne = s32[2,<=3] add(d, d)\nROOT r = s32[] get-dimension-size(e), dimensions={1}",
       "1"},
      // Through a copy, and what a reduction leaves of them.
      {"a = s32[2,3] constant({{1,2,3},{4,5,6}})\nn = s32[] constant(1)\nd = s32[2,<=3] set-dimension-size(a, n), "
       "dimensions={1}\ne = s32[<=2,<=3] set-dimension-size(d, n), dimensions={0}\nc = s32[<=2,<=3] copy(e)\nz = s32[] "
       "constant(0)\nf = s32[<=2] reduce(c, z), dimensions={1}, to_apply=add\nROOT r = s32[] reduce(f, z), "
       "dimensions={0}, to_apply=add",
       "1"},
      {"a = f32[2,2] constant({{1,2},{3,4}})\nROOT c = (f32[2,2], s8[0]) custom-call(a, a), "
       "custom_call_target=\"__cublas$gemm\", backend_config={\"gemm_backend_config\":{\"alpha_real\":2,\"beta\":0,"
       "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"],"
       "\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[]},\"epilogue\":\"DEFAULT\"}}",
       "( { { 14, 20 }, { 30, 44 } }, {} )"},
      {"a = f32[2,2] constant({{1,-2},{3,4}})\nc = f32[2,2] constant({{1,1},{1,1}})\nb = f32[2] "
       "constant({10,-100})\nROOT "
       "r = (f32[2,2], s8[0]) custom-call(a, a, c, b), custom_call_target=\"__cublas$lt$matmul\", backend_config={"
       "\"gemm_backend_config\":{\"alpha_real\":1,\"beta\":1,\"dot_dimension_numbers\":{"
       "\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],"
       "\"rhs_batch_dimensions\":[]},\"epilogue\":\"BIAS_RELU\"}}",
       "( { { 6, 0 }, { 26, 0 } }, {} )"},
  };
  for (const Row& r : rows) EXPECT_EQ(run(r.body, kAdd), r.result) << r.body;
  EXPECT_EQ(run("a = s32[4] constant({1,2,3,4})\nz = s32[] constant(0)\nROOT r = (s32[4], s32[]) scan(a, z), "
                "dimensions={0}, num_carries=1, is_reverse=true, is_associative=false, to_apply=f",
                "f { x = s32[] parameter(0)\n c = s32[] parameter(1)\n s = s32[] add(x, c)\n ROOT t = (s32[], s32[]) "
                "tuple(s, s) }\n"),
            "( {10, 9, 7, 4}, 10 )");
  EXPECT_EQ(
      run("a = s32[2] constant({1,2})\ns = ((s32[2]), s32[2], s32[]) async-start(a), calls=f\nu = ((s32[2]), s32[2], "
          "s32[]) async-update(s)\nROOT d = s32[2] async-done(u)",
          "f { x = s32[2] parameter(0)\n ROOT n = s32[2] negate(x) }\n"),
      "{-1, -2}");
  EXPECT_EQ(run("a = s32[2] constant({1,2})\nROOT d = s32[2] fusion(a), kind=kLoop, calls=f",
                "f { x = s32[2] parameter(0)\n ROOT n = s32[2] negate(x) }\n"),
            "{-1, -2}");
}

// Numbers of `rng` are ours to choose: within their bounds, not all the same, the same in every run.
TEST(Evaluator, Rng) {
  std::string body =
      "l = f32[] constant(2)\nh = f32[] constant(3)\nROOT r = f32[64] rng(l, h), distribution=rng_uniform";
  auto m = parse_module("HloModule m\nENTRY e {\n" + body + "\n}", std::make_shared<Universe>(), {"t", 20});
  Value v = Evaluator(*m).run({});
  std::set<float> seen;
  for (int i = 0; i < 64; ++i) {
    double x = load_double(ElementType::F32, v.bytes() + 4 * i);
    EXPECT_TRUE(x >= 2 && x < 3) << x;
    seen.insert(static_cast<float>(x));
  }
  EXPECT_GT(seen.size(), 60u);
  EXPECT_EQ(run(body), run(body));
  EXPECT_EQ(
      run("a = u64[2] rng-get-and-update-state(), delta=5\nb = u64[2] rng-get-and-update-state(), delta=5\nROOT r = "
          "u64[2] subtract(b, a), control-predecessors={a}"),
      "{5, 0}");
}

// The results of every device of a module without parameters.
std::vector<std::string> run_all(const std::string& header, const std::string& body, const std::string& before = "") {
  auto m = parse_module("HloModule m, " + header + "\n" + before + "ENTRY e {\n" + body + "\n}",
                        std::make_shared<Universe>(), {"t", 20});
  std::vector<std::string> out;
  std::vector<std::vector<Value>> arguments(static_cast<size_t>(devices_needed(*m)));
  for (const Value& v : run_devices(*m, arguments, {}))
    out.push_back(literal_text(m->u(), m->u().literal(literal_of_value(m->u(), v)), true));
  return out;
}

TEST(Devices, Collectives) {
  using List = std::vector<std::string>;
  // Device d holds {d, 10 d}.
  const std::string x =
      "p = u32[] partition-id()\nc = s32[] convert(p)\nb = s32[2] broadcast(c), dimensions={}\nk = s32[2] "
      "constant({1,10})\nx = s32[2] multiply(b, k)\n";
  const std::string four = "num_partitions=4",
                    pairs = "replica_groups={{0,2},{3,1}}, use_global_device_ids=true, channel_id=1";
  EXPECT_EQ(run_all(four,
                    x + "ROOT r = s32[2] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, "
                        "use_global_device_ids=true, to_apply=add",
                    kAdd),
            List(4, "{6, 60}"));
  EXPECT_EQ(run_all(four, x + "ROOT r = s32[2] all-reduce(x), " + pairs + ", to_apply=add", kAdd),
            (List{"{2, 20}", "{4, 40}", "{2, 20}", "{4, 40}"}));
  EXPECT_EQ(run_all(four, x + "ROOT r = s32[4] all-gather(x), dimensions={0}, " + pairs),
            (List{"{0, 0, 2, 20}", "{3, 30, 1, 10}", "{0, 0, 2, 20}", "{3, 30, 1, 10}"}));
  EXPECT_EQ(run_all(four, x + "ROOT r = s32[1] reduce-scatter(x), dimensions={0}, to_apply=add, " + pairs, kAdd),
            (List{"{2}", "{40}", "{20}", "{4}"}));
  EXPECT_EQ(
      run_all(four, x + "ROOT r = s32[2] all-to-all(x), dimensions={0}, channel_id=1, replica_groups={{0,2},{3,1}}"),
      (List{"{0, 2}", "{30, 10}", "{0, 20}", "{3, 1}"}));
  EXPECT_EQ(
      run_all(four, x + "ROOT r = s32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,0}}"),
      (List{"{2, 20}", "{0, 0}", "{1, 10}", "{0, 0}"}));
  EXPECT_EQ(run_all(four, x + "ROOT r = s32[2] collective-broadcast(x), channel_id=1, replica_groups={{2,0},{3,1}}"),
            (List{"{2, 20}", "{3, 30}", "{2, 20}", "{3, 30}"}));
  EXPECT_EQ(
      run_all(four,
              x + "s = s32[2] all-reduce-start(x), " + pairs + ", to_apply=add\nROOT r = s32[2] all-reduce-done(s)",
              kAdd),
      (List{"{2, 20}", "{4, 40}", "{2, 20}", "{4, 40}"}));
  EXPECT_EQ(run_all(four, x + "s = (s32[2], s32[4]) all-gather-start(x), dimensions={0}, " + pairs +
                              "\nROOT r = s32[4] all-gather-done(s)"),
            (List{"{0, 0, 2, 20}", "{3, 30, 1, 10}", "{0, 0, 2, 20}", "{3, 30, 1, 10}"}));
  EXPECT_EQ(run_all(four, x + "s = (s32[2], s32[2], u32[], u32[]) collective-permute-start(x), channel_id=1, "
                              "source_target_pairs={{0,1},{1,0}}\nROOT r = s32[2] collective-permute-done(s)"),
            (List{"{1, 10}", "{0, 0}", "{0, 0}", "{0, 0}"}));
  // Replicas: groups count them, each partition for itself.
  EXPECT_EQ(
      run_all("replica_count=2, num_partitions=2",
              "p = u32[] partition-id()\nr = u32[] replica-id()\nt = u32[] constant(10)\nm = u32[] multiply(r, t)\na = "
              "u32[] add(m, p)\nROOT s = u32[] all-reduce(a), replica_groups={{0,1}}, to_apply=uadd",
              "uadd { x = u32[] parameter(0)\n y = u32[] parameter(1)\n ROOT s = u32[] add(x, y) }\n"),
      (List{"10", "12", "10", "12"}));
  // Rows 0..1 to device 1, row 2 stays; the other way one row.
  EXPECT_EQ(
      run_all("num_partitions=2",
              "p = u32[] partition-id()\nc = s32[] convert(p)\nn = s32[] constant(100)\nb = s32[] multiply(c, n)\nb3 = "
              "s32[3] broadcast(b), dimensions={}\ni3 = s32[3] iota(), iota_dimension=0\nx = s32[3] add(b3, i3)\nm = "
              "s32[] constant(-1)\no = s32[4] broadcast(m), dimensions={}\nz = u32[] constant(0)\nf = pred[] "
              "compare(p, z), direction=EQ\nin0 = s32[2] constant({2,0})\nin1 = s32[2] constant({0,1})\nsz0 = s32[2] "
              "constant({1,2})\nsz1 = s32[2] constant({1,1})\nto0 = s32[2] constant({0,0})\nto1 = s32[2] "
              "constant({3,2})\nf2 = pred[2] broadcast(f), dimensions={}\nin = s32[2] select(f2, in0, in1)\nsz = "
              "s32[2] select(f2, sz0, sz1)\nto = s32[2] select(f2, to0, to1)\nROOT r = s32[4] ragged-all-to-all(x, o, "
              "in, sz, to, sz), channel_id=1, replica_groups={{0,1}}"),
      (List{"{2, -1, -1, 100}", "{0, 1, 101, -1}"}));
  // A ring by send and recv.
  EXPECT_EQ(
      run_all("num_partitions=2",
              "p = u32[] partition-id()\nt = token[] after-all()\ns = (u32[], u32[], token[]) send(p, t), "
              "channel_id=3, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}\nd = token[] "
              "send-done(s), channel_id=3\nv = (u32[], u32[], token[]) recv(t), channel_id=3, "
              "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}, control-predecessors={s}\nw = "
              "(u32[], token[]) recv-done(v), channel_id=3\nROOT r = u32[] get-tuple-element(w), index=0"),
      (List{"1", "0"}));
}

TEST(Devices, WaitInVain) {
  // Device 1 does not take part.
  try {
    run_all(
        "num_partitions=2",
        "p = u32[] partition-id()\ni = s32[] convert(p)\nx = s32[] constant(1)\nROOT r = s32[] conditional(i, x, x), "
        "branch_computations={f, g}",
        std::string(kAdd) +
            "f { x = s32[] parameter(0)\n ROOT a = s32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, "
            "use_global_device_ids=true, to_apply=add }\ng { x = s32[] parameter(0)\n ROOT n = s32[] negate(x) }\n");
    FAIL() << "should have waited in vain";
  } catch (const Failure& e) {
    EXPECT_NE(std::string(e.what()).find("a (all-reduce) waits for devices that never come"), std::string::npos)
        << e.what();
  }
}

TEST(Evaluator, Contractions) {
  EXPECT_EQ(run("a = f32[2,2] constant({{1,2},{3,4}})\nROOT r = f32[2,2] dot(a, a), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0}"),
            "{ { 7, 10 }, { 15, 22 } }");
  EXPECT_EQ(run("a = s8[2] constant({100,100})\nROOT r = s32[] dot(a, a), lhs_contracting_dims={0}, "
                "rhs_contracting_dims={0}"),
            "20000");
  EXPECT_EQ(run("x = f32[1,3,1] constant({{{1},{2},{3}}})\nw = f32[2,1,1] constant({{{10}},{{1}}})\nROOT r = "
                "f32[1,4,1] convolution(x, w), window={size=2 pad=1_1}, dim_labels=b0f_0io->b0f"),
            "{ { {1}, {12}, {23}, {30} } }");
  // Two groups: each output feature sees one input feature.
  EXPECT_EQ(run("x = f32[1,1,2] constant({{{3,5}}})\nw = f32[1,1,2] constant({{{10,100}}})\nROOT r = f32[1,1,2] "
                "convolution(x, w), window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=2"),
            "{ { { 30, 500 } } }");
}

TEST(Evaluator, Control) {
  std::string loop =
      "b { s = (s32[], s32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n a = s32[] get-tuple-element(s), "
      "index=1\n o = s32[] constant(1)\n n = s32[] add(i, o)\n c = s32[] add(a, n)\n"
      " ROOT t = (s32[], s32[]) tuple(n, c) }\nk { s = (s32[], s32[]) parameter(0)\n i = s32[] get-tuple-element(s), "
      "index=0\n l = s32[] constant(4)\n ROOT r = pred[] compare(i, l), direction=LT }\n";
  EXPECT_EQ(run("z = s32[] constant(0)\nt = (s32[], s32[]) tuple(z, z)\nw = (s32[], s32[]) while(t), condition=k, "
                "body=b\nROOT r = s32[] get-tuple-element(w), index=1",
                loop),
            "10");
  std::string two =
      "f { x = s32[] parameter(0)\n ROOT n = s32[] negate(x) }\ng { x = s32[] parameter(0)\n ROOT n = s32[] add(x, x) "
      "}\n";
  EXPECT_EQ(run("i = s32[] constant(7)\nx = s32[] constant(5)\nROOT r = s32[] conditional(i, x, x), "
                "branch_computations={f, g}",
                two),
            "10");
  EXPECT_EQ(run("i = pred[] constant(true)\nx = s32[] constant(5)\nROOT r = s32[] conditional(i, x, x), "
                "true_computation=f, false_computation=g",
                two),
            "-5");
}

TEST(Evaluator, RefusesByName) {
  auto refusal = [](const std::string& body) -> std::string {
    try {
      return run(body);
    } catch (const Failure& e) {
      return e.what();
    }
  };
  EXPECT_NE(refusal("ROOT c = f32[16] constant({...})")
                .find("cannot evaluate c (constant in computation e): its value is elided"),
            std::string::npos);
  EXPECT_NE(
      refusal("ROOT c = f32[] custom-call(), custom_call_target=\"nobody\"").find("custom-call target \"nobody\""),
      std::string::npos);
}

// The vector of Random123's own test; a callback whose results are none changes nothing.
TEST(Evaluator, CallsThatJaxMakes) {
  EXPECT_EQ(run("k = u32[1] constant({320440878})\nl = u32[1] constant({57701188})\nx = u32[1] constant({608135816})\n"
                "y = u32[1] constant({2242054355})\nt = (u32[1], u32[1]) custom-call(k, l, x, y), "
                "custom_call_target=\"cu_threefry2x32_ffi\"\na = u32[1] get-tuple-element(t), index=0\nb = u32[1] "
                "get-tuple-element(t), index=1\nROOT r = u32[2] concatenate(a, b), dimensions={0}"),
            fmt::format("{{{}, {}}}", 0xc4923a9cu, 0x483df7a0u));
  const std::string x = "x = s32[2] constant({1, 2})\n",
                    call = "custom-call(x), custom_call_target=\"xla_ffi_python_cpu_callback\"";
  EXPECT_EQ(run(x + "d = () " + call + ", custom_call_has_side_effect=true\nROOT r = s32[2] negate(x)"), "{-1, -2}");
  try {
    run(x + "ROOT r = s32[2] " + call);
    ADD_FAILURE();
  } catch (const Failure& e) {
    EXPECT_NE(std::string(e.what()).find("is made by a function in Python"), std::string::npos) << e.what();
  }
}

TEST(Evaluator, TransfersWithTheHostAreRefusedByName) {
  struct Case {
    const char *body, *said;
  };
  const Case cases[] = {
      {"t = token[] after-all()\ni = (f32[4], token[]) infeed(t)\nROOT r = f32[4] get-tuple-element(i), index=0",
       "cannot evaluate i (infeed in computation e): a transfer with the host"},
      {"t = token[] after-all()\nc = f32[2] constant({1, 2})\no = token[] outfeed(c, t), "
       "outfeed_shape=f32[2]\nROOT r = f32[2] negate(c)",
       "cannot evaluate o (outfeed in computation e): a transfer with the host"},
  };
  for (const Case& c : cases) {
    auto m = parse_module(std::string("HloModule m\nENTRY e {\n") + c.body + "\n}", std::make_shared<Universe>());
    for (bool before : {true, false}) {
      try {
        if (before)
          check_supported(*m);
        else
          Evaluator(*m).run({});
        ADD_FAILURE() << c.body << before;
      } catch (const Failure& e) {
        EXPECT_EQ(e.kind(), FailureKind::kUnsupported);
        if (before) {
          EXPECT_EQ(std::string(e.what()), c.said);
        }
      }
    }
  }
}

TEST(Evaluator, DynamicReshape) {
  const std::string values = "a = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})\n";
  const std::string sizes = "x = s32[] constant(3)\ny = s32[] constant(2)\n";
  EXPECT_EQ(run(values + sizes + "ROOT r = s32[<=3,<=2] dynamic-reshape(a, x, y)"), "{ { 1, 2 }, { 3, 4 }, { 5, 6 } }");
  // Smaller than its bounds: what is valid lies in front of each row.
  EXPECT_EQ(run(values + sizes + "ROOT r = s32[<=4,<=3] dynamic-reshape(a, x, y)"),
            "{ { 1, 2, 0 }, { 3, 4, 0 }, { 5, 6, 0 }, { 0, 0, 0 } }");
  EXPECT_EQ(run(values + sizes +
                "d = s32[<=4,<=3] dynamic-reshape(a, x, y)\nROOT n = s32[] get-dimension-size(d), "
                "dimensions={0}"),
            "3");
  auto refusal = [](const std::string& body) -> std::string {
    try {
      return run(body);
    } catch (const Failure& e) {
      return e.what();
    }
  };
  EXPECT_NE(
      refusal(values + "y = s32[] constant(5)\nROOT d = s32[<=6] dynamic-reshape(a, y)").find("6 elements do not"),
      std::string::npos);
  EXPECT_NE(refusal(values + "y = s32[] constant(7)\nROOT d = s32[<=6] dynamic-reshape(a, y)").find("out of bounds"),
            std::string::npos);
  EXPECT_NE(refusal(values + sizes +
                    "b = s32[2,<=3] set-dimension-size(a, y), dimensions={1}\nz = s32[] constant(4)\n"
                    "ROOT d = s32[<=6] dynamic-reshape(b, z)")
                .find("cannot evaluate d (dynamic-reshape in computation e): of dynamic dimensions"),
            std::string::npos);
}

// Bits of the oracle's inputs.py for seed 1.
TEST(Inputs, AreTheOraclesBits) {
  Universe u;
  Value v = seeded_input(u, u.array(ElementType::S32, {4}), 1, 0, false);
  std::vector<int64_t> got;
  for (int i = 0; i < 4; ++i) got.push_back(load_int(ElementType::S32, v.bytes() + 4 * i));
  EXPECT_EQ(got, (std::vector<int64_t>{6, 6, 0, 1}));
}

// Of turns of the reaching seeds, what each argument that is a whole number, or each of its elements, was.
std::vector<std::set<int64_t>> integers_reached(const Module& m, uint64_t turns) {
  std::vector<std::set<int64_t>> out;
  for (uint64_t turn = 0; turn < turns; ++turn) {
    std::vector<Value> leaves;
    for (const Value& v : seeded_arguments(m, kReachingFrom + turn, false)) flatten(m.u(), v, &leaves);
    out.resize(leaves.size());
    for (size_t k = 0; k < leaves.size(); ++k) {
      const Shape& s = m.u()[leaves[k].shape];
      if (!is_integral(s.type)) continue;
      for (int64_t i = 0; i < s.elements_count(); ++i)
        out[k].insert(load_int(s.type, leaves[k].bytes() + i * storage_bytes(s.type)));
    }
  }
  return out;
}

// 12 * 12 is -112 of eight bits: neither small numbers nor the ends of a type have a square below zero.
TEST(Inputs, SquaresThatWrap) {
  std::unique_ptr<Module> m = parse_module(R"(HloModule m
ENTRY e {
 x = s8[64] parameter(0)
 y = s16[64] parameter(1)
 z = s32[64] parameter(2)
 w = s64[64] parameter(3)
 ROOT r = (s8[64], s16[64], s32[64], s64[64]) tuple(x, y, z, w)
})",
                                           std::make_shared<Universe>());
  const std::vector<std::set<int64_t>> seen = integers_reached(*m, 8);
  const int bits[] = {8, 16, 32, 64};
  for (size_t k = 0; k < seen.size(); ++k)
    EXPECT_TRUE(std::any_of(seen[k].begin(), seen[k].end(), [&](int64_t v) {
      const uint64_t square = static_cast<uint64_t>(v) * static_cast<uint64_t>(v);
      return (square >> (bits[k] - 1) & 1) != 0;
    })) << bits[k];
}

// Start indices at each of their bounds: of slices and their updates, of gathers and scatters, signed and not, of eight
// bits, by way of conversions, tuples, calls and loops.
TEST(Inputs, ReachTheBoundsOfIndices) {
  std::unique_ptr<Module> m = parse_module(R"(HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
inner { p = (s32[], f32[9,4]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[9,4] get-tuple-element(p), index=1
 z = s32[] constant(0)
 ROOT r = f32[2,4] dynamic-slice(x, i, z), dynamic_slice_sizes={2,4} }
ENTRY e {
 x = f32[9,4] parameter(0)
 u = u32[] parameter(1)
 v = u32[] parameter(2)
 t = (s32[], f32[9,4]) parameter(3)
 g = s64[3,1] parameter(4)
 b = u8[] parameter(5)
 w = f32[3,4] parameter(6)
 s = f32[2,1] dynamic-slice(x, u, v), dynamic_slice_sizes={2,1}
 c = f32[2,4] call(t), to_apply=inner
 h = f32[3,4] gather(x, g), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
 q = s32[] convert(b)
 z = s32[] constant(0)
 o = f32[9,4] dynamic-update-slice(x, c, q, z)
 k = f32[9,4] scatter(o, g, w), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
 ROOT r = (f32[2,1], f32[3,4], f32[9,4]) tuple(s, h, k) })",
                                           std::make_shared<Universe>(), {"m", 20});
  const auto reached = integers_reached(*m, 24);
  auto holds = [&](size_t leaf, std::initializer_list<int64_t> wanted) {
    for (int64_t v : wanted) EXPECT_TRUE(reached[leaf].contains(v)) << "leaf " << leaf << ", " << v;
  };
  holds(1, {0, 1, 6, 7, 8, UINT32_MAX});
  holds(2, {0, 1, 2, 3, 4, UINT32_MAX});
  holds(3, {0, 1, 6, 7, 8, -1, INT32_MIN, INT32_MAX});
  holds(5, {0, 1, 7, 8, 9, -1, INT64_MIN, INT64_MAX});
  holds(6, {0, 1, 6, 7, 8, 255});
  // Two of them meet in many ways.
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (uint64_t turn = 0; turn < 24; ++turn) {
    std::vector<Value> a = seeded_arguments(*m, kReachingFrom + turn, false);
    pairs.emplace(load_int(ElementType::U32, a[1].bytes()), load_int(ElementType::U32, a[2].bytes()));
    EXPECT_NO_THROW(Evaluator(*m).run(std::move(a)));
  }
  EXPECT_GE(pairs.size(), 15u);
}

TEST(Inputs, ReachWhatIsSpecial) {
  std::unique_ptr<Module> m = parse_module(R"(HloModule m
ENTRY e {
 i = s32[64] parameter(0)
 u = u8[64] parameter(1)
 x = f32[64] parameter(2)
 y = bf16[] parameter(3)
 z = f64[64] parameter(4)
 ROOT r = (s32[64], u8[64], f32[64], bf16[], f64[64]) tuple(i, u, x, y, z) })",
                                           std::make_shared<Universe>(), {"m", 20});
  const auto reached = integers_reached(*m, 24);
  for (int64_t v : {int64_t{INT32_MIN}, int64_t{INT32_MAX}, int64_t{-1}, int64_t{0}, int64_t{-3}, int64_t{3}})
    EXPECT_TRUE(reached[0].contains(v)) << v;
  for (int64_t v : {255, 254, 0, 1, 5}) EXPECT_TRUE(reached[1].contains(v)) << v;
  for (size_t leaf : {2, 3, 4}) {
    bool nan = false, inf = false, minus_inf = false, minus_zero = false, zero = false, negative = false, ties = false;
    for (uint64_t turn = 0; turn < 24; ++turn) {
      const Value v = seeded_arguments(*m, kReachingFrom + turn, false)[leaf];
      const ElementType t = m->u()[v.shape].type;
      std::multiset<double> seen;
      bool all_below = true;
      for (int64_t k = 0; k < m->u()[v.shape].elements_count(); ++k) {
        const double x = load_double(t, v.bytes() + k * storage_bytes(t));
        nan |= std::isnan(x), inf |= x == HUGE_VAL, minus_inf |= x == -HUGE_VAL;
        zero |= x == 0 && !std::signbit(x), minus_zero |= x == 0 && std::signbit(x);
        all_below = all_below && x < 0;
        if (!std::isnan(x)) seen.insert(x);
      }
      negative |= all_below;
      ties |= seen.count(0.5) > 1;
    }
    EXPECT_TRUE(nan && inf && minus_inf && minus_zero && zero && negative) << leaf;
    EXPECT_TRUE(ties || leaf == 3) << leaf;
    for (uint64_t turn = 0; turn < 24; ++turn) {
      const Value v = seeded_arguments(*m, kReachingFrom + turn, true)[leaf];
      const ElementType t = m->u()[v.shape].type;
      for (int64_t k = 0; k < m->u()[v.shape].elements_count(); ++k) {
        const double x = load_double(t, v.bytes() + k * storage_bytes(t));
        EXPECT_FALSE(x < 0) << leaf;
      }
    }
  }
  // Small seeds draw as ever; the largest is a turn like any other.
  EXPECT_EQ(load_int(ElementType::S32, seeded_arguments(*m, 1, false)[0].bytes()), 6);
  EXPECT_EQ(seeded_arguments(*m, UINT64_MAX, false).size(), 5u);
}

// What is put into an array of dynamic size leaves its size as it is.
TEST(Evaluator, UpdatesOfDynamicArrays) {
  std::unique_ptr<Module> m = parse_module(R"(HloModule m
add { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT c = s32[] add(a, b) }
ENTRY e {
 x = s32[4] constant({1, 2, 3, 4})
 n = s32[] constant(3)
 i = s32[] constant(2)
 u = s32[1] constant({40})
 d = s32[<=4] set-dimension-size(x, n), dimensions={0}
 p = s32[<=4] dynamic-update-slice(d, u, i)
 z = s32[] constant(0)
 ROOT r = s32[] reduce(p, z), dimensions={0}, to_apply=add })",
                                           std::make_shared<Universe>(), {"m", 20});
  EXPECT_EQ(load_int(ElementType::S32, Evaluator(*m).run({}).bytes()), 43);
}

// The storage of a large array is had again, as zeros where zeros are asked for.
TEST(Arrays, LargeOnesAreHadAgain) {
  Universe u;
  const int64_t n = int64_t{12} << 20;
  const ShapeId shape = u.array(ElementType::F32, {n}), like = u.array(ElementType::F32, {n - 1000}),
                less = u.array(ElementType::F32, {n / 4 * 3});
  std::optional<KeepsSpareArrays> keeps(std::in_place);
  auto filled = [&](ShapeId s) {
    auto data = unset_array(u, s);
    std::fill(data->begin(), data->end(), 'x');
    return data;
  };
  const void* at = filled(shape)->data();
  EXPECT_GE(spare_array_bytes(), static_cast<size_t>(4 * n));
  for (ShapeId s : {shape, like}) {
    auto zeros = new_array(u, s);
    EXPECT_EQ(zeros->data(), at);
    EXPECT_EQ(zeros->size(), static_cast<size_t>(4 * u[s].elements_count()));
    EXPECT_EQ(std::count(zeros->begin(), zeros->end(), 0), static_cast<std::ptrdiff_t>(zeros->size()));
    std::fill(zeros->begin(), zeros->end(), 'x');
  }
  // Small ones are not kept; one of another size takes the place of what is.
  const size_t before = spare_array_bytes();
  filled(u.array(ElementType::F32, {1000}));
  EXPECT_EQ(spare_array_bytes(), before);
  auto other = filled(less);
  EXPECT_LT(spare_array_bytes(), static_cast<size_t>(4 * n));
  // Whoever writes every element asks for no zeros.
  filled(shape);
  const std::string wide = fmt::format(
      "c = f32[] constant(2)\nb = f32[3,{0}] broadcast(c), dimensions={{}}\nt = f32[{0},3] transpose(b), "
      "dimensions={{1,0}}\nm = f32[{0},3] multiply(t, t)\ns = f32[2,3] slice(m), slice={{[0:2], [0:3]}}\n"
      "e = f32[1,3] slice(m), slice={{[{1}:{0}], [0:3]}}\nROOT r = f32[3,3] concatenate(s, e), dimensions={{0}}",
      n / 3, n / 3 - 1);
  EXPECT_EQ(run(wide), "{ { 4, 4, 4 }, { 4, 4, 4 }, { 4, 4, 4 } }");
  // Nobody sits on them when the work is done.
  keeps.reset();
  EXPECT_EQ(spare_array_bytes(), 0u);
  filled(shape);
  EXPECT_EQ(spare_array_bytes(), 0u);
}

}  // namespace
}  // namespace hlo
