// Operations against closed forms and interesting values.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/eval/evaluator.h"
#include "ir/print.h"
#include "parser/parser.h"

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

// Bits of the oracle's inputs.py for seed 1.
TEST(Inputs, AreTheOraclesBits) {
  Universe u;
  Value v = seeded_input(u, u.array(ElementType::S32, {4}), 1, 0, false);
  std::vector<int64_t> got;
  for (int i = 0; i < 4; ++i) got.push_back(load_int(ElementType::S32, v.bytes() + 4 * i));
  EXPECT_EQ(got, (std::vector<int64_t>{6, 6, 0, 1}));
}

}  // namespace
}  // namespace hlo
