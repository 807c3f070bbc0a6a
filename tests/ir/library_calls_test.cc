// Library calls against the operations that they stand for.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ir/eval/evaluator.h"
#include "ir/eval/inputs.h"
#include "ir/library/library_calls.h"
#include "parser/parser.h"
#include "tests/common/compare.h"

namespace hlo {
namespace {

void expect_refusal(const std::string& text, const std::string& said) {
  auto m = parse_module(text, std::make_shared<Universe>());
  try {
    Evaluator(*m).run(seeded_arguments(*m, 1, false));
    ADD_FAILURE() << said;
  } catch (const Failure& e) {
    EXPECT_NE(std::string(e.what()).find(said), std::string::npos) << e.what();
  }
}
void expect_same(const std::string& plain, const std::string& call, double tolerance = 1e-5) {
  auto u = std::make_shared<Universe>();
  expect_same_results(*parse_module("HloModule p\n" + plain, u), *parse_module("HloModule c\n" + call, u), 1,
                      tolerance);
}
const std::string kReducers =
    "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\n"
    "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n";

// cuDNN's attention against the operations that it stands for (its norms stand in XLA's own dumps: docs/COVERAGE.md).
TEST(Evaluator, Attention) {
  const char* dims =
      R"("bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","2"],"rhs_batch_dimensions":["0","2"]},"bmm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]},"intermediate_tensor_shape":{"element_type":"F32","dimensions":["2","3","5","5"]})";
  const char* plain = R"(HloModule p
max { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
ENTRY e { q = f32[2,5,3,4] parameter(0)
 k = f32[2,5,3,4] parameter(1)
 v = f32[2,5,3,4] parameter(2)
 b = f32[1,3,5,5] parameter(3)
 d = f32[2,3,5,5] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
 h = f32[] constant(0.5)
 hb = f32[2,3,5,5] broadcast(h), dimensions={}
 s = f32[2,3,5,5] multiply(d, hb)
 br = f32[3,5,5] reshape(b)
 bb = f32[2,3,5,5] broadcast(br), dimensions={1,2,3}
 t = f32[2,3,5,5] add(s, bb)
 i = s32[2,3,5,5] iota(), iota_dimension=2
 j = s32[2,3,5,5] iota(), iota_dimension=3
 c = pred[2,3,5,5] compare(j, i), direction=LE
 n = f32[] constant(-inf)
 nb = f32[2,3,5,5] broadcast(n), dimensions={}
 m = f32[2,3,5,5] select(c, t, nb)
 top = f32[2,3,5] reduce(m, n), dimensions={3}, to_apply=max
 tb = f32[2,3,5,5] broadcast(top), dimensions={0,1,2}
 w = f32[2,3,5,5] subtract(m, tb)
 x = f32[2,3,5,5] exponential(w)
 z = f32[] constant(0)
 y = f32[2,3,5] reduce(x, z), dimensions={3}, to_apply=sum
 yb = f32[2,3,5,5] broadcast(y), dimensions={0,1,2}
 p = f32[2,3,5,5] divide(x, yb)
 o = f32[2,3,5,4] dot(p, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={1}
 l = f32[2,3,5] log(y)
 a = f32[2,3,5] add(l, top)
 ROOT r = (f32[2,3,5,4], f32[2,3,5]) tuple(o, a) })";
  std::string call = fmt::format(
      R"(HloModule c
ENTRY e {{ q = f32[2,5,3,4] parameter(0)
 k = f32[2,5,3,4] parameter(1)
 v = f32[2,5,3,4] parameter(2)
 b = f32[1,3,5,5] parameter(3)
 c = (f32[2,3,5,4], f32[2,3,5], u8[0]) custom-call(q, k, v, b), custom_call_target="__cudnn$fmhaScaleBiasSoftmax", backend_config={{"cudnn_fmha_backend_config":{{"fmha_scale":0.5,"mask_type":"CAUSAL",{}}}}}
 o = f32[2,3,5,4] get-tuple-element(c), index=0
 a = f32[2,3,5] get-tuple-element(c), index=1
 ROOT r = (f32[2,3,5,4], f32[2,3,5]) tuple(o, a) }})",
      dims);
  auto u = std::make_shared<Universe>();
  auto expected = parse_module(plain, u), got = parse_module(call, u);
  expect_same_results(*expected, *got, 1, 1e-5);
  // What it has no code for is refused by name.
  for (const auto& [from, to, said] :
       {std::array<const char*, 3>{"CAUSAL", "ALIBI", "mask ALIBI is not supported"},
        {"CAUSAL", "PADDING", "it has 4 operand(s), expected 6"},
        {"\"fmha_scale\"", "\"dropout_rate\":0.1,\"fmha_scale\"", "dropout is not supported"},
        {"\"fmha_scale\"", "\"is_paged_attention\":true,\"fmha_scale\"", "keys and values in pages"},
        {"\"fmha_scale\"", "\"max_seg_per_batch\":2,\"fmha_scale\"", "a bias of several sequences"}}) {
    std::string text = call;
    text.replace(text.find(from), std::string(from).size(), to);
    expect_refusal(text, said);
  }
}

// Its gradients, by the softmax's own; the call gets the forward call's results.
TEST(Evaluator, AttentionBackward) {
  const std::string
      forward_dims =
          R"("bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","2"],"rhs_batch_dimensions":["0","2"]},"bmm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]},"intermediate_tensor_shape":{"element_type":"F32","dimensions":["2","3","5","6"]})",
      backward_dims =
          R"("bmm1_grad_gemm1_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["2"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},"bmm1_grad_gemm2_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},"bmm2_grad_gemm1_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["2"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},"bmm2_grad_gemm2_dot_dimension_numbers":{"lhs_batch_dimensions":["0","2"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["3"]})";
  for (bool biased : {false, true})
    for (bool causal : {false, true}) {
      const std::string parameters = fmt::format(R"(ENTRY e {{ q = f32[2,5,3,4] parameter(0)
 k = f32[2,6,3,4] parameter(1)
 v = f32[2,6,3,4] parameter(2)
 g = f32[2,5,3,4] parameter(3)
{})",
                                                 biased ? " b = f32[1,3,5,6] parameter(4)\n" : ""),
                        to = biased ? "(f32[2,3,5,4], f32[2,3,6,4], f32[2,3,6,4], f32[1,3,5,6])"
                                    : "(f32[2,3,5,4], f32[2,3,6,4], f32[2,3,6,4])";
      const std::string plain = fmt::format(
          R"(HloModule p
max {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] maximum(a, b) }}
sum {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }}
{} d = f32[2,3,5,6] dot(q, k), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}
 h = f32[] constant(0.5)
 hb = f32[2,3,5,6] broadcast(h), dimensions={{}}
 s = f32[2,3,5,6] multiply(d, hb)
{} i = s32[2,3,5,6] iota(), iota_dimension=2
 j = s32[2,3,5,6] iota(), iota_dimension=3
 c = pred[2,3,5,6] {}
 n = f32[] constant(-inf)
 nb = f32[2,3,5,6] broadcast(n), dimensions={{}}
 m = f32[2,3,5,6] select(c, t, nb)
 top = f32[2,3,5] reduce(m, n), dimensions={{3}}, to_apply=max
 tb = f32[2,3,5,6] broadcast(top), dimensions={{0,1,2}}
 w = f32[2,3,5,6] subtract(m, tb)
 x = f32[2,3,5,6] exponential(w)
 z = f32[] constant(0)
 y = f32[2,3,5] reduce(x, z), dimensions={{3}}, to_apply=sum
 yb = f32[2,3,5,6] broadcast(y), dimensions={{0,1,2}}
 p = f32[2,3,5,6] divide(x, yb)
 dv = f32[2,3,6,4] dot(p, g), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
 dp = f32[2,3,5,6] dot(g, v), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}
 pdp = f32[2,3,5,6] multiply(p, dp)
 along = f32[2,3,5] reduce(pdp, z), dimensions={{3}}, to_apply=sum
 ab = f32[2,3,5,6] broadcast(along), dimensions={{0,1,2}}
 rest = f32[2,3,5,6] subtract(dp, ab)
 ds = f32[2,3,5,6] multiply(p, rest)
 db3 = f32[3,5,6] reduce(ds, z), dimensions={{0}}, to_apply=sum
 db = f32[1,3,5,6] reshape(db3)
 sds = f32[2,3,5,6] multiply(ds, hb)
 dq = f32[2,3,5,4] dot(sds, k), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{1}}
 dk = f32[2,3,6,4] dot(sds, q), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
 ROOT r = {} tuple(dq, dk, dv{}) }})",
          parameters,
          biased
              ? " br = f32[3,5,6] reshape(b)\n bb = f32[2,3,5,6] broadcast(br), dimensions={1,2,3}\n t = f32[2,3,5,6] "
                "add(s, bb)\n"
              : " t = f32[2,3,5,6] copy(s)\n",
          causal ? "compare(j, i), direction=LE" : "compare(j, j), direction=EQ", to, biased ? ", db" : "");
      const std::string name = biased ? "ScaleBias" : "", mask = causal ? "CAUSAL" : "NO_MASK";
      const std::string call = fmt::format(
          R"(HloModule c
{} f = (f32[2,3,5,4], f32[2,3,5], u8[0]) custom-call(q, k, v{}), custom_call_target="__cudnn$fmha{}Softmax", backend_config={{"cudnn_fmha_backend_config":{{"fmha_scale":0.5,"mask_type":"{}",{}}}}}
 o = f32[2,3,5,4] get-tuple-element(f), index=0
 a = f32[2,3,5] get-tuple-element(f), index=1
 ot = f32[2,5,3,4] transpose(o), dimensions={{0,2,1,3}}
 c = {}, u8[0]) custom-call(q, k, v, a, g{}, ot), custom_call_target="__cudnn$fmha{}SoftmaxBackward", backend_config={{"cudnn_fmha_backend_config":{{"fmha_scale":0.5,"mask_type":"{}",{}}}}}
 dq = f32[2,3,5,4] get-tuple-element(c), index=0
 dk = f32[2,3,6,4] get-tuple-element(c), index=1
 dv = f32[2,3,6,4] get-tuple-element(c), index=2
{} ROOT r = {} tuple(dq, dk, dv{}) }})",
          parameters, biased ? ", b" : "", name, mask, forward_dims, to.substr(0, to.size() - 1), biased ? ", b" : "",
          name, mask, backward_dims, biased ? " db = f32[1,3,5,6] get-tuple-element(c), index=3\n" : "", to,
          biased ? ", db" : "");
      auto u = std::make_shared<Universe>();
      expect_same_results(*parse_module(plain, u), *parse_module(call, u), 1, 1e-5);
    }
}

// CUB's sorts: stable, both zeros are one key, rows apart, what goes with the keys beside them.
TEST(Evaluator, CubSorts) {
  auto sorted = [](const char* target, const char* config, const char* operands, const char* results, int count) {
    std::string text = fmt::format(
        "HloModule m\nENTRY e {{ k = f32[2,4] constant({{{{0, -1, -0.0, 2}}, {{nan, 1, -inf, 1}}}})\n v = s32[2,4] "
        "constant({{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}}})\n c = ({}, u8[8]) custom-call({}), custom_call_target=\"{}\", "
        "backend_config={}\n ROOT r = {}[2,4] get-tuple-element(c), index={} }}",
        results, operands, target, config, count ? "s32" : "f32", count);
    auto m = parse_module(text, std::make_shared<Universe>(), {});
    Value v = Evaluator(*m).run({});
    std::vector<double> out;
    const ElementType t = m->u()[v.shape].type;
    for (int k = 0; k < 8; ++k)
      out.push_back(is_float(t) ? load_double(t, v.bytes() + 4 * k)
                                : static_cast<double>(load_int(t, v.bytes() + 4 * k)));
    return out;
  };
  const char *pairs = "f32[2,4], s32[2,4]", *typed = "{descending = true, batch_size = 2 : i64}";
  EXPECT_EQ(sorted("xla.gpu.ext.cub_sort_pairs", "{descending = false, batch_size = 2 : i64}", "k, v", pairs, 1),
            (std::vector<double>{1, 0, 2, 3, 6, 5, 7, 4}));
  EXPECT_EQ(sorted("xla.gpu.ext.cub_sort_pairs", typed, "k, v", pairs, 1),
            (std::vector<double>{3, 0, 2, 1, 4, 5, 7, 6}));
  EXPECT_EQ(sorted("__cub$DeviceRadixSort", R"({"descending":true})", "k, v", pairs, 1),
            (std::vector<double>{3, 0, 2, 1, 4, 5, 7, 6}));
  std::vector<double> keys = sorted("xla.gpu.ext.cub_sort_keys", typed, "k", "f32[2,4]", 0);
  EXPECT_TRUE(std::isnan(keys[4]));
  keys[4] = 9;
  EXPECT_EQ(keys, (std::vector<double>{2, 0, -0.0, -1, 9, 1, 1, -INFINITY}));
  EXPECT_FALSE(std::signbit(keys[1]));
  EXPECT_TRUE(std::signbit(keys[2]));
}

// Masks by lengths, windows and sequences; four heads of q that share two of k and v.
struct MaskCase {
  const char *name, *config;
  // By rows of the batch: which sequence each row of q and each column is of (-1 and -2: none), and their places in it.
  std::string q_sequence, k_sequence, q_place, k_place;
  bool causal = false;
  int window = 0;
  std::string integers = {};  // operands of the call, as constants, and their names
  std::string names = {};
  int sequences = 1;  // in a row of the batch
};

const std::string
    kPlaces = "{{0,1,2,3,4},{0,1,2,3,4}}",
    kColumns = "{{0,1,2,3,4,5},{0,1,2,3,4,5}}", kOwn = "{{0,0,0,0,0},{0,0,0,0,0}}",
    kAll = "{{0,0,0,0,0,0},{0,0,0,0,0,0}}", kShort = "{{0,0,0,-1,-1},{0,0,0,0,0}}",
    kFew = "{{0,0,0,0,-2,-2},{0,0,-2,-2,-2,-2}}",
    kLengths = " ql = s32[2] constant({3,5})\n kl = s32[2] constant({4,2})\n",
    kPacked =
        " ql = s32[2,2] constant({{2,3},{4,0}})\n kl = s32[2,2] constant({{3,2},{6,0}})\n"
        " qo = s32[2,3] constant({{0,32,80},{160,160,160}})\n ko = s32[2,3] constant({{0,24,48},{96,96,96}})\n",
    kTwo = "{{0,0,1,1,1},{2,2,2,2,-1}}", kTwoColumns = "{{0,0,0,1,1,-2},{2,2,2,2,2,2}}",
    kTwoPlaces = "{{0,1,0,1,2},{0,1,2,3,4}}", kTwoOwn = "{{0,1,2,0,1,2},{0,1,2,3,4,5}}";

std::vector<MaskCase> mask_cases() {
  return {{"none", R"("mask_type":"NO_MASK")", kOwn, kAll, kPlaces, kColumns},
          {"causal", R"("mask_type":"CAUSAL")", kOwn, kAll, kPlaces, kColumns, true},
          {"window", R"("mask_type":"CAUSAL","sliding_window_length":2)", kOwn, kAll, kPlaces, kColumns, true, 2},
          {"padding", R"("mask_type":"PADDING")", kShort, kFew, kPlaces, kColumns, false, 0, kLengths, ", ql, kl"},
          {"padding and causal", R"("mask_type":"PADDING_CAUSAL","sliding_window_length":3)", kShort, kFew, kPlaces,
           kColumns, true, 3, kLengths, ", ql, kl"},
          {"packed", R"("mask_type":"NO_MASK","max_seg_per_batch":2)", kTwo, kTwoColumns, kTwoPlaces, kTwoOwn, false, 0,
           kPacked, ", ql, kl, qo, ko", 2},
          {"packed and causal", R"("mask_type":"PADDING_CAUSAL","max_seg_per_batch":"2","sliding_window_length":2)",
           kTwo, kTwoColumns, kTwoPlaces, kTwoOwn, true, 2, kPacked, ", ql, kl, qo, ko", 2}};
}

const std::string kForwardNumbers =
    R"("bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","2"],"rhs_batch_dimensions":["0","2"]},"bmm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]},"intermediate_tensor_shape":{"element_type":"F32","dimensions":["2","4","5","6"]})";
const std::string kBackwardNumbers =
    R"("bmm1_grad_gemm1_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["2"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},"bmm1_grad_gemm2_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},"bmm2_grad_gemm1_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["2"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},"bmm2_grad_gemm2_dot_dimension_numbers":{"lhs_batch_dimensions":["0","2"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["3"]})";
const std::string kArguments =
    "ENTRY e { q = f32[2,5,4,4] parameter(0)\n k2 = f32[2,6,2,4] parameter(1)\n v2 = f32[2,6,2,4] parameter(2)\n"
    " g = f32[2,5,4,4] parameter(3)\n";
const std::string kResults = "(f32[2,4,5,4], f32[2,4,5,4], f32[2,2,6,4], f32[2,2,6,4]{})";

std::string plain_attention(const MaskCase& c) {
  auto placed = [](const char* name, int width, const char* dim, const std::string& values) {
    return fmt::format(" {0}c = s32[2,{1}] constant({2})\n {0} = s32[2,4,5,6] broadcast({0}c), dimensions={{0,{3}}}\n",
                       name, width, values, dim);
  };
  std::string text = kReducers + kArguments;
  for (const char* side : {"k", "v"})
    text += fmt::format(
        " {0}b = f32[2,6,2,2,4] broadcast({0}2), dimensions={{0,1,2,4}}\n {0} = f32[2,6,4,4] reshape({0}b)\n", side);
  text += placed("qs", 5, "2", c.q_sequence) + placed("ks", 6, "3", c.k_sequence) + placed("qp", 5, "2", c.q_place) +
          placed("kp", 6, "3", c.k_place);
  text += " same = pred[2,4,5,6] compare(qs, ks), direction=EQ\n";
  text += fmt::format(" back = pred[2,4,5,6] compare(kp, {}), direction=LE\n", c.causal ? "qp" : "kp");
  text += fmt::format(
      " w = s32[] constant({})\n wb = s32[2,4,5,6] broadcast(w), dimensions={{}}\n"
      " first = s32[2,4,5,6] subtract(qp, wb)\n near = pred[2,4,5,6] compare(kp, first), direction=GT\n",
      c.window ? c.window : 100);
  return text + fmt::format(R"( sn = pred[2,4,5,6] and(same, near)
 c = pred[2,4,5,6] and(sn, back)
 d = f32[2,4,5,6] dot(q, k), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}
 h = f32[] constant(0.5)
 hb = f32[2,4,5,6] broadcast(h), dimensions={{}}
 s = f32[2,4,5,6] multiply(d, hb)
 n = f32[] constant(-inf)
 nb = f32[2,4,5,6] broadcast(n), dimensions={{}}
 m = f32[2,4,5,6] select(c, s, nb)
 top = f32[2,4,5] reduce(m, n), dimensions={{3}}, to_apply=max
 tb = f32[2,4,5,6] broadcast(top), dimensions={{0,1,2}}
 mt = f32[2,4,5,6] subtract(m, tb)
 xe = f32[2,4,5,6] exponential(mt)
 z = f32[] constant(0)
 zb = f32[2,4,5,6] broadcast(z), dimensions={{}}
 x = f32[2,4,5,6] select(c, xe, zb)
 y = f32[2,4,5] reduce(x, z), dimensions={{3}}, to_apply=sum
 yb = f32[2,4,5,6] broadcast(y), dimensions={{0,1,2}}
 pq = f32[2,4,5,6] divide(x, yb)
 p = f32[2,4,5,6] select(c, pq, zb)
 o = f32[2,4,5,4] dot(p, v), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{1}}
 ly = f32[2,4,5] log(y)
 a = f32[2,4,5] add(ly, top)
 dv4 = f32[2,4,6,4] dot(p, g), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
 dp = f32[2,4,5,6] dot(g, v), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}
 pdp = f32[2,4,5,6] multiply(p, dp)
 along = f32[2,4,5] reduce(pdp, z), dimensions={{3}}, to_apply=sum
 ab = f32[2,4,5,6] broadcast(along), dimensions={{0,1,2}}
 rest = f32[2,4,5,6] subtract(dp, ab)
 ds = f32[2,4,5,6] multiply(p, rest)
 sds = f32[2,4,5,6] multiply(ds, hb)
 dq = f32[2,4,5,4] dot(sds, k), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{1}}
 dk4 = f32[2,4,6,4] dot(sds, q), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
 dkr = f32[2,2,2,6,4] reshape(dk4)
 dk = f32[2,2,6,4] reduce(dkr, z), dimensions={{2}}, to_apply=sum
 dvr = f32[2,2,2,6,4] reshape(dv4)
 dv = f32[2,2,6,4] reduce(dvr, z), dimensions={{2}}, to_apply=sum
 ROOT r = {} tuple(o, dq, dk, dv{}) }})",
                            fmt::format(fmt::runtime(kResults), c.sequences > 1 ? "" : ", f32[2,4,5]"),
                            c.sequences > 1 ? "" : ", a");
}

std::string attention_calls(const MaskCase& c) {
  const std::string sums = fmt::format("f32[{},4,5]", 2 * c.sequences);
  return kArguments + c.integers +
         fmt::format(
             R"( f = (f32[2,4,5,4], {0}, u8[0]) custom-call(q, k2, v2{1}), custom_call_target="__cudnn$fmhaSoftmax", backend_config={{"cudnn_fmha_backend_config":{{"fmha_scale":0.5,{2},{3}}}}}
 o = f32[2,4,5,4] get-tuple-element(f), index=0
 a = {0} get-tuple-element(f), index=1
 ot = f32[2,5,4,4] transpose(o), dimensions={{0,2,1,3}}
 b = (f32[2,4,5,4], f32[2,2,6,4], f32[2,2,6,4], u8[0]) custom-call(q, k2, v2, a, g, ot{1}), custom_call_target="__cudnn$fmhaSoftmaxBackward", backend_config={{"cudnn_fmha_backend_config":{{"fmha_scale":0.5,{2},{4}}}}}
 dq = f32[2,4,5,4] get-tuple-element(b), index=0
 dk = f32[2,2,6,4] get-tuple-element(b), index=1
 dv = f32[2,2,6,4] get-tuple-element(b), index=2
 ROOT r = {5} tuple(o, dq, dk, dv{6}) }})",
             sums, c.names, c.config, kForwardNumbers, kBackwardNumbers,
             fmt::format(fmt::runtime(kResults), c.sequences > 1 ? "" : ", f32[2,4,5]"), c.sequences > 1 ? "" : ", a");
}

TEST(LibraryCalls, AttentionMasks) {
  for (const MaskCase& c : mask_cases()) {
    SCOPED_TRACE(c.name);
    expect_same(plain_attention(c), attention_calls(c));
  }
}

// What lengths and offsets must not be, and shapes that are none of attention's.
TEST(LibraryCalls, AttentionRefusals) {
  const std::string packed = "HloModule c\n" + attention_calls(mask_cases()[5]);
  auto changed = [&](std::string text, const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  };
  expect_refusal(changed(packed, "{0,32,80}", "{0,48,80}"), "sequence 1 begins or ends outside of a row of the batch");
  expect_refusal(changed(packed, "{0,32,80}", "{0,16,80}"), "sequences 0 and 1 overlap");
  expect_refusal(changed(packed, "{0,32,80}", "{0,33,80}"), "sequence 1 begins or ends outside of a row of the batch");
  expect_refusal(changed(packed, "{0,32,80}", "{-16,32,80}"),
                 "sequence 0 begins or ends outside of a row of the batch");
  expect_refusal(changed(packed, "{0,24,48}", "{0,24,40}"), "the columns of sequence 2 are not those of its row");
  expect_refusal(changed(packed, "{0,24,48}", "{0,2000000000,48}"),
                 "the columns of sequence 1 are not those of its row");
  expect_refusal(changed(packed, "s32[2,2] constant({{2,3},{4,0}})", "s32[3] constant({2,3,4})"),
                 "operand 3 is s32[3], expected 4 lengths");
  const std::string causal = attention_calls(mask_cases()[1]);
  expect_refusal("HloModule c\n" + kReducers +
                     changed(causal, "custom_call_target=\"__cudnn$fmhaSoftmax\"",
                             "custom_call_target=\"__cudnn$fmhaSoftmax\", called_computations={sum}"),
                 "a function of the scores is not supported");
  expect_refusal(changed(changed(packed, "2,6,2,4", "2,6,3,4"), "2,2,6,4", "2,3,6,4"), "do not fit");
}

TEST(LibraryCalls, NewEpilogues) {
  const std::string arguments =
      "ENTRY e { a = f32[3,5] parameter(0)\n b = f32[5,4] parameter(1)\n c = f32[4] parameter(2)\n";
  const std::string numbers =
      R"("dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]})";
  for (bool biased : {false, true})
    expect_same(
        arguments +
            " d = f32[3,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
            " cb = f32[3,4] broadcast(c), dimensions={1}\n" +
            (biased ? " x = f32[3,4] add(d, cb)\n" : " x = f32[3,4] copy(d)\n") +
            " s = f32[3,4] logistic(x)\n ROOT r = f32[3,4] multiply(x, s) }",
        arguments +
            fmt::format(" d = (f32[3,4], s8[64]) custom-call(a, b{}), custom_call_target=\"__cublas$lt$matmul\", "
                        "backend_config={{\"gemm_backend_config\":{{\"alpha_real\":1,\"epilogue\":\"{}\",{}}}}}\n"
                        " ROOT r = f32[3,4] get-tuple-element(d), index=0 }}",
                        biased ? ", c" : "", biased ? "BIAS_SILU" : "SILU", numbers));
}

TEST(LibraryCalls, ScaledBlocks) {
  const std::string arguments =
      "ENTRY e { a = f8e4m3fn[3,64] parameter(0)\n b = f8e4m3fn[4,64] parameter(1)\n sa = f32[3,2] parameter(2)\n sb = "
      "f32[4,2] parameter(3)\n";
  const std::string call =
      arguments +
      " d = (f32[3,4], s8[64]) custom-call(a, b, sa, sb), custom_call_target=\"__cublas$lt$matmul$mx\", "
      "backend_config={\"gemm_backend_config\":"
      R"({"alpha_real":1,"beta":0,"scale_mode":2,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}})"
      "\n ROOT r = f32[3,4] get-tuple-element(d), index=0 }";
  expect_same(arguments + R"( ca = f32[3,64] convert(a)
 cb = f32[4,64] convert(b)
 fa = f32[3,2,32] broadcast(sa), dimensions={0,1}
 fb = f32[4,2,32] broadcast(sb), dimensions={0,1}
 ra = f32[3,64] reshape(fa)
 rb = f32[4,64] reshape(fb)
 ma = f32[3,64] multiply(ca, ra)
 mb = f32[4,64] multiply(cb, rb)
 ROOT d = f32[3,4] dot(ma, mb), lhs_contracting_dims={1}, rhs_contracting_dims={1} })",
              call);
  std::string other = call;
  other.replace(other.find("\"beta\":0"), 8, "\"beta\":1");
  expect_refusal("HloModule c\n" + other, "a factor of the product or an addend is not supported");
  other = call;
  other.replace(other.find("sa = f32[3,2]"), 13, "sa = f32[3,5]");
  expect_refusal("HloModule c\n" + other, "operand 2 is f32[3,5], expected scales of blocks of f8e4m3fn[3,64]");
}

TEST(LibraryCalls, Groups) {
  struct GroupCase {
    const char *left, *right, *result, *contracting, *own;
  };
  // Rows in groups; sums in groups. The sizes leave rows over.
  for (const GroupCase& c : {GroupCase{"f32[7,5]", "f32[3,5,4]", "f32[7,4]",
                                       R"("lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"])",
                                       R"("lhs_ragged_dimensions":["0"],"rhs_group_dimensions":["0"])"},
                             GroupCase{"f32[5,7]", "f32[7,4]", "f32[3,5,4]",
                                       R"("lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"])",
                                       R"("lhs_ragged_dimensions":["1"],"rhs_group_dimensions":[])"}}) {
    const bool rows = std::string(c.left) == "f32[7,5]";
    const std::string
        arguments = fmt::format("ENTRY e {{ a = {} parameter(0)\n b = {} parameter(1)\n", c.left, c.right),
        call =
            arguments + fmt::format(
                            " n = s32[3] constant({{2,0,4}})\n"
                            " d = ({}, s8[64]) custom-call(a, b, n), custom_call_target=\"__cublas$lt$groupedMatmul\", "
                            "backend_config={{\"grouped_gemm_backend_config\":{{\"gemm_backend_config\":{{\"alpha_"
                            "real\":1,\"beta\":0}},"
                            "\"ragged_dot_dimension_numbers\":{{\"dot_dimension_numbers\":{{{},\"lhs_batch_"
                            "dimensions\":[],\"rhs_batch_dimensions\":[]}},{}}}}}}}\n"
                            " ROOT r = {} get-tuple-element(d), index=0 }}",
                            c.result, c.contracting, c.own, c.result);
    const std::string by_hand = rows ? R"( b3 = f32[1,5,4] slice(b), slice={[0:1], [0:5], [0:4]}
 b1 = f32[5,4] reshape(b3)
 b5 = f32[1,5,4] slice(b), slice={[2:3], [0:5], [0:4]}
 b2 = f32[5,4] reshape(b5)
 a1 = f32[2,5] slice(a), slice={[0:2], [0:5]}
 a2 = f32[4,5] slice(a), slice={[2:6], [0:5]}
 d1 = f32[2,4] dot(a1, b1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 d2 = f32[4,4] dot(a2, b2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 z = f32[] constant(0)
 zb = f32[1,4] broadcast(z), dimensions={}
 ROOT r = f32[7,4] concatenate(d1, d2, zb), dimensions={0} })"
                                     : R"( a1 = f32[5,2] slice(a), slice={[0:5], [0:2]}
 a2 = f32[5,4] slice(a), slice={[0:5], [2:6]}
 b1 = f32[2,4] slice(b), slice={[0:2], [0:4]}
 b2 = f32[4,4] slice(b), slice={[2:6], [0:4]}
 d1 = f32[5,4] dot(a1, b1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 d2 = f32[5,4] dot(a2, b2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 z = f32[] constant(0)
 zb = f32[1,5,4] broadcast(z), dimensions={}
 e1 = f32[1,5,4] reshape(d1)
 e2 = f32[1,5,4] reshape(d2)
 ROOT r = f32[3,5,4] concatenate(e1, zb, e2), dimensions={0} })";
    expect_same(arguments + by_hand, call);
    std::string other = call;
    other.replace(other.find("s32[3] constant({2,0,4})"), 24, "s32[2] constant({2,4})");
    expect_refusal("HloModule c\n" + other, rows ? "expected one of 2 elements" : "expected dimensions [2,5,4]");
  }
}

// CUB's running sums: along the minor dimension, from its end too, integers wrap.
TEST(LibraryCalls, CubScan) {
  auto sums = [](const std::string& shape, const std::string& values, const std::string& config) {
    auto m =
        parse_module(fmt::format("HloModule m\nENTRY e {{ x = {0} constant({1})\n c = ({0}, u8[8]) custom-call(x), "
                                 "custom_call_target=\"xla.gpu.ext.cub_scan\", backend_config={2}\n"
                                 " ROOT r = {0} get-tuple-element(c), index=0 }}",
                                 shape, values, config),
                     std::make_shared<Universe>());
    Value v = Evaluator(*m).run({});
    std::vector<double> out;
    const Shape& s = m->u()[v.shape];
    for (int64_t k = 0; k < s.elements_count(); ++k) {
      const char* at = v.bytes() + k * storage_bytes(s.type);
      out.push_back(is_float(s.type) ? load_double(s.type, at) : static_cast<double>(load_int(s.type, at)));
    }
    return out;
  };
  const char* typed = R"({"column_length":"2","kind":"SUM","row_length":"3","vector_length":"1"})";
  EXPECT_EQ(sums("f32[2,3]", "{{1, 2, 3}, {4, 5, 6}}", typed), (std::vector<double>{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(sums("f32[2,3]", "{{1, 2, 3}, {4, 5, 6}}",
                 R"({"column_length":"2","is_reverse":true,"kind":"SUM","row_length":"3","vector_length":"1"})"),
            (std::vector<double>{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(sums("f32[3,2]{0,1}", "{{1, 2}, {3, 4}, {5, 6}}", typed), (std::vector<double>{1, 2, 4, 6, 9, 12}));
  EXPECT_EQ(sums("s8[2,3]", "{{100, 100, 1}, {-128, -1, 0}}", typed),
            (std::vector<double>{100, -56, -55, -128, 127, 127}));
  EXPECT_EQ(sums("f32[2,1]", "{{1}, {2}}", R"({"kind":"SUM","row_length":1})"), (std::vector<double>{1, 2}));
  const std::string text =
      "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n ROOT c = (f32[2,3], u8[8]) custom-call(x), "
      "custom_call_target=\"xla.gpu.ext.cub_scan\", backend_config=";
  expect_refusal(text + R"({"kind":"MAX","row_length":"3"} })", "its kind is 'MAX', expected SUM");
  expect_refusal(text + R"({"kind":"SUM","row_length":"2"} })", "its rows have 2 elements, expected 3");
}

// Which element of a call's tuple is memory that it works in.
TEST(LibraryCalls, Scratch) {
  struct ScratchCase {
    const char *target, *shape;
    int element;
  };
  for (const ScratchCase& c : {ScratchCase{"__cudnn$convForward", "(f32[4], u8[0])", 1},
                               {"__cublas$lt$matmul", "(s8[8,8], s8[4096])", 1},
                               {"__cublas$gemm", "(f32[4], f32[4])", -1},
                               {"__cublas$lt$matmul", "(f32[4], f32[4], s8[64])", 2},
                               {"__cublas$lt$groupedMatmul", "(f32[4], s8[64])", 1},
                               {"__cublas$lt$matmul$mx", "(f32[4], s8[64])", 1},
                               {"__cudnn$fmhaSoftmax", "(f32[4], f32[4], u8[0])", 2},
                               {"xla.gpu.ext.cub_sort_pairs", "(u8[4], u8[4], u8[9])", 2},
                               {"xla.gpu.ext.cub_scan", "(u8[4], u8[9])", 1},
                               {"__cusolver$cholesky", "(f32[4,4], f32[9], s32[])", 1},
                               {"cusolver_potrf_ffi", "(f32[4,4], s32[])", -1},
                               {"__cublas$triangularSolve", "(f32[4,4], s8[64])", 1},
                               {"mine", "(f32[4], u8[64])", -1},
                               {"__cudnn$convForward", "f32[4]", -1},
                               {"TopK", "(u8[4], s32[4])", -1}}) {
    auto m = parse_module(fmt::format("HloModule m\nENTRY e {{ ROOT c = {} custom-call(), custom_call_target=\"{}\" }}",
                                      c.shape, c.target),
                          std::make_shared<Universe>());
    const std::optional<size_t> found = scratch_element(*m, m->comp(m->entry()).root);
    EXPECT_EQ(found ? static_cast<int>(*found) : -1, c.element) << c.target << " " << c.shape;
  }
}

}  // namespace
}  // namespace hlo
