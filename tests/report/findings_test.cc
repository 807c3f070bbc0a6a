// What looks odd about a module, and what comes of changing it as advised.
#include <gtest/gtest.h>

#include "ir/print/print.h"
#include "ir/program/buffer.h"
#include "parser/parser.h"
#include "passes/backend/backend.h"
#include "replay/report/findings/findings.h"
#include "replay/report/findings/try_finding.h"
#include "tests/common/state_module.h"

namespace hlo {
namespace {

std::unique_ptr<Module> parse(const std::string& text) { return parse_module(text, std::make_shared<Universe>()); }
// --- findings: each with a module that has it and one that nearly has it ---

using Find = std::vector<ModuleFinding> (*)(const FindingsInput&);

std::vector<std::string> found(Find find, const std::string& text) {
  auto m = parse(text);
  const DeviceSpec& device = device_spec("H100");
  ModuleCost cost = module_cost(*m, device);
  FindingsInput in(*m, cost, device);
  std::vector<std::string> out;
  for (const ModuleFinding& f : find(in)) {
    EXPECT_FALSE(f.what.empty());
    EXPECT_FALSE(f.advice.empty());
    EXPECT_TRUE(f.seconds > 0 || f.bytes > 0) << f.what;
    out.push_back(f.kind + " " + std::string(m->inst_name(f.inst)));
  }
  return out;
}
using Names = std::vector<std::string>;

std::string with(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

const char* kTransposed = R"(HloModule m, is_scheduled=true
t {
  p = f32[512,256]{1,0} parameter(0)
  ROOT t.1 = f32[256,512]{1,0} transpose(p), dimensions={1,0}
}
ENTRY e {
  w = f32[512,256]{1,0} parameter(0)
  x = f32[64,512]{1,0} parameter(1)
  f = f32[256,512]{1,0} fusion(w), kind=kLoop, calls=t
  ROOT d = f32[64,256]{1,0} dot(x, f), lhs_contracting_dims={1}, rhs_contracting_dims={1}
})";

TEST(Findings, AParameterThatIsTransposedInEachCall) {
  EXPECT_EQ(found(transposed_parameters, kTransposed), Names{"transposed-parameter f"});
  // A transposition that only renames dimensions moves nothing.
  EXPECT_EQ(
      found(transposed_parameters, with(kTransposed, "ROOT t.1 = f32[256,512]{1,0}", "ROOT t.1 = f32[256,512]{0,1}")),
      Names{});
  // A value of the program is not a parameter.
  EXPECT_EQ(found(transposed_parameters, with(with(kTransposed, "fusion(w)", "fusion(n)"), "  x = f32",
                                              "  n = f32[512,256]{1,0} negate(w)\n  x = f32")),
            Names{});
}

// Forty transposes of 0.6 us each beside products of 0.4 ms: none is worth a line, together they are.
TEST(Findings, ManySmallOnesOfAKindAreToldTogether) {
  auto module = [](int transposes) {
    std::string text = "HloModule m, is_scheduled=true\nENTRY e {\n  a = f32[2048,65536]{1,0} parameter(0)\n";
    text +=
        "  b = f32[65536,2048]{1,0} parameter(1)\n  d = f32[2048,2048]{1,0} dot(a, b), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}\n";
    std::string results = "d", shapes = "f32[2048,2048]{1,0}";
    for (int k = 0; k < transposes; ++k) {
      text += fmt::format("  w{0} = f32[512,512]{{1,0}} parameter({1})\n", k, k + 2);
      text += fmt::format("  t{0} = f32[512,512]{{1,0}} transpose(w{0}), dimensions={{1,0}}\n", k);
      results += fmt::format(", t{}", k), shapes += ", f32[512,512]{1,0}";
    }
    return text + fmt::format("  ROOT r = ({}) tuple({})\n}}\n", shapes, results);
  };
  EXPECT_EQ(found(transposed_parameters, module(1)).size(), 0);
  EXPECT_EQ(found(transposed_parameters, module(40)).size(), 40);
}

TEST(Findings, AParameterThatIsTransposedInsideOfALoopThatHandsItOn) {
  const char* text = R"(HloModule m, is_scheduled=true
t {
  p = f32[512,256]{1,0} parameter(0)
  ROOT t.1 = f32[256,512]{1,0} transpose(p), dimensions={1,0}
}
body {
  s = (s32[], f32[512,256]{1,0}, f32[256,512]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[512,256]{1,0} get-tuple-element(s), index=1
  f = f32[256,512]{1,0} fusion(w), kind=kLoop, calls=t
  ROOT r = (s32[], f32[512,256]{1,0}, f32[256,512]{1,0}) tuple(i, w, f)
}
cond {
  s.1 = (s32[], f32[512,256]{1,0}, f32[256,512]{1,0}) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  w.1 = f32[512,256]{1,0} parameter(0)
  z = s32[] constant(0)
  n = f32[256,512]{1,0} parameter(1)
  t.2 = (s32[], f32[512,256]{1,0}, f32[256,512]{1,0}) tuple(z, w.1, n)
  ROOT l = (s32[], f32[512,256]{1,0}, f32[256,512]{1,0}) while(t.2), condition=cond, body=body, backend_config={"known_trip_count":{"n":"8"}}
})";
  EXPECT_EQ(found(transposed_parameters, text), Names{"transposed-parameter f"});
  EXPECT_EQ(found(transposed_parameters, with(with(text, "tuple(i, w, f)", "tuple(i, w.2, f)"),
                                              "  ROOT r =", "  w.2 = f32[512,256]{1,0} negate(w)\n  ROOT r =")),
            Names{});
}

const char* kWide = R"(HloModule m, is_scheduled=true
ENTRY e {
  a = bf16[256,512]{1,0} parameter(0)
  b = bf16[512,256]{1,0} parameter(1)
  a.1 = f32[256,512]{1,0} convert(a)
  b.1 = f32[512,256]{1,0} convert(b)
  ROOT d = f32[256,256]{1,0} dot(a.1, b.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

TEST(Findings, AProductOfValuesThatWereMadeWider) {
  EXPECT_EQ(found(wide_products, kWide), Names{"widened-product d"});
  // One operand was f32 all along.
  EXPECT_EQ(found(wide_products, with(with(kWide, "b = bf16", "b = f32"), "f32[512,256]{1,0} convert(b)",
                                      "f32[512,256]{1,0} negate(b)")),
            Names{});
  // The algorithm says bf16, whatever the operands' type.
  EXPECT_EQ(found(wide_products,
                  with(kWide, "rhs_contracting_dims={0}", "rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32")),
            Names{});
}

TEST(Findings, AnF32ProductAmongNarrowOnes) {
  const char* text = R"(HloModule m, is_scheduled=true
ENTRY e {
  a = bf16[1024,1024]{1,0} parameter(0)
  b = bf16[1024,1024]{1,0} parameter(1)
  x = f32[256,256]{1,0} parameter(2)
  d = bf16[1024,1024]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[256,256]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (bf16[1024,1024]{1,0}, f32[256,256]{1,0}) tuple(d, y)
})";
  EXPECT_EQ(found(wide_products, text), Names{"f32-product y"});
  // A module that is f32 throughout means it.
  std::string wide = text;
  for (size_t at = 0; (at = wide.find("bf16")) != std::string::npos;) wide.replace(at, 4, "f32");
  EXPECT_EQ(found(wide_products, wide), Names{});
}

const char* kLoopCopy = R"(HloModule m, is_scheduled=true
body {
  s = (s32[], f32[512,256]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[512,256]{1,0} get-tuple-element(s), index=1
  c = f32[512,256]{1,0} copy(w)
  n = f32[512,256]{1,0} negate(c)
  ROOT r = (s32[], f32[512,256]{1,0}) tuple(i, n)
}
cond {
  s.1 = (s32[], f32[512,256]{1,0}) parameter(0)
  ROOT b = pred[] constant(false)
}
ENTRY e {
  w.1 = f32[512,256]{1,0} parameter(0)
  z = s32[] constant(0)
  c.1 = f32[512,256]{1,0} copy(w.1)
  t = (s32[], f32[512,256]{1,0}) tuple(z, c.1)
  ROOT l = (s32[], f32[512,256]{1,0}) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"8"}}
})";

TEST(Findings, CopiesAtLoops) {
  EXPECT_EQ(found(copies_at_loops, kLoopCopy), (Names{"copy-at-loop c", "copy-at-loop c.1"}));
  // Another layout is work of another kind.
  EXPECT_EQ(found(copies_at_loops, with(with(kLoopCopy, "c = f32[512,256]{1,0} copy", "c = f32[512,256]{0,1} copy"),
                                        "tuple(z, c.1)", "tuple(z, w.1)")),
            Names{});
}

const char* kChain = R"(HloModule m, is_scheduled=true
f {
  p = f32[65536]{0} parameter(0)
  ROOT n = f32[65536]{0} negate(p)
}
g {
  q = f32[65536]{0} parameter(0)
  ROOT a = f32[65536]{0} abs(q)
}
ENTRY e {
  x = f32[65536]{0} parameter(0)
  y = f32[65536]{0} fusion(x), kind=kLoop, calls=f
  ROOT z = f32[65536]{0} fusion(y), kind=kLoop, calls=g
})";

TEST(Findings, ChainsThatAreNotFused) {
  EXPECT_EQ(found(unfused_chains, kChain), Names{"unfused-chain y"});
  // Someone else reads it, too.
  EXPECT_EQ(found(unfused_chains, with(with(kChain, "ROOT z =", "z ="), "calls=g\n",
                                       "calls=g\n  ROOT t = (f32[65536]{0}, f32[65536]{0}) tuple(y, z)\n")),
            Names{});
  // A reduction is not element by element.
  EXPECT_EQ(found(unfused_chains,
                  with(kChain, "ROOT a = f32[65536]{0} abs(q)", "ROOT a = f32[65536]{0} reverse(q), dimensions={0}")),
            Names{});
}

std::string small_products(int count, int size) {
  std::string text =
      fmt::format("HloModule m, is_scheduled=true\nENTRY e {{\n  x0 = f32[{0},{0}]{{1,0}} parameter(0)\n", size);
  for (int k = 1; k <= count; ++k)
    text += fmt::format(
        "  {1}x{0} = f32[{3},{3}]{{1,0}} dot(x{2}, x{2}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n", k,
        k == count ? "ROOT " : "", k - 1, size);
  return text + "}";
}

TEST(Findings, ProductsSmallerThanTheirLaunch) {
  EXPECT_EQ(found(tiny_products, small_products(20, 16)).size(), 1u);
  EXPECT_EQ(found(tiny_products, small_products(15, 16)), Names{});
  EXPECT_EQ(found(tiny_products, small_products(20, 2048)), Names{});
}

const char* kPadded = R"(HloModule m, is_scheduled=true
f {
  p = f32[300,250]{1,0} parameter(0)
  z = f32[] constant(0)
  ROOT a = f32[304,256]{1,0} pad(p, z), padding=0_4x0_6
}
ENTRY e {
  w = f32[300,250]{1,0} parameter(0)
  x = f32[64,304]{1,0} parameter(1)
  k = f32[304,256]{1,0} fusion(w), kind=kLoop, calls=f
  ROOT d = f32[64,256]{1,0} dot(x, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

TEST(Findings, WhatIsPaddedForAProduct) {
  EXPECT_EQ(found(padded_products, kPadded), Names{"padded-product k"});
  // Zeros between the elements.
  std::string spread = with(kPadded, "padding=0_4x0_6", "padding=0_0_1x0_0_1");
  for (size_t at = 0; (at = spread.find("304")) != std::string::npos;) spread.replace(at, 3, "599");
  for (size_t at = 0; (at = spread.find("599,256")) != std::string::npos;) spread.replace(at, 7, "599,499");
  spread = with(spread, "f32[64,256]{1,0} dot", "f32[64,499]{1,0} dot");
  EXPECT_EQ(found(padded_products, spread), Names{});
  // Padding that takes away.
  EXPECT_EQ(found(padded_products, with(with(with(with(kPadded, "padding=0_4x0_6", "padding=0_-1x0_-2"),
                                                  "f32[304,256]{1,0} pad", "f32[299,248]{1,0} pad"),
                                             "f32[304,256]{1,0} fusion", "f32[299,248]{1,0} fusion"),
                                        "x = f32[64,304]", "x = f32[64,299]")),
            Names{});
  // Nobody multiplies it.
  EXPECT_EQ(found(padded_products,
                  with(kPadded, "f32[64,256]{1,0} dot(x, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                       "f32[304,256]{1,0} negate(k)")),
            Names{});
}

TEST(Findings, StateThatIsNotDonated) {
  EXPECT_EQ(found(missing_donation, kState), Names{"missing-donation w"});
  EXPECT_EQ(found(missing_donation, with(kState, "is_scheduled=true",
                                         "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }")),
            Names{});
  EXPECT_EQ(found(missing_donation, with(kState, "is_scheduled=true", "is_scheduled=true, buffer_donor={ (0, {}) }")),
            Names{});
}

TEST(Findings, WeightsOfTheResultsShapeAreNoState) {
  const char* text = R"(HloModule m, is_scheduled=true
ENTRY e {
  x = f32[256,256]{1,0} parameter(0)
  w = f32[256,256]{1,0} parameter(1)
  ROOT d = f32[256,256]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";
  EXPECT_EQ(found(missing_donation, text), Names{});
}

const char* kGathers = R"(HloModule m, is_scheduled=true
f {
  t = f32[1000,64]{1,0} parameter(0)
  i = s32[1024]{0} parameter(1)
  ROOT g = f32[1024,64]{1,0} gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
}
h {
  t.1 = f32[1000,64]{1,0} parameter(0)
  i.1 = s32[1024]{0} parameter(1)
  g.1 = f32[1024,64]{1,0} gather(t.1, i.1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
  ROOT n = f32[1024,64]{1,0} negate(g.1)
}
ENTRY e {
  w = f32[1000,64]{1,0} parameter(0)
  r = s32[1024]{0} parameter(1)
  s = s32[1024]{0} parameter(2)
  a = f32[1024,64]{1,0} fusion(w, r), kind=kLoop, calls=f
  b = f32[1024,64]{1,0} fusion(w, r), kind=kLoop, calls=h
  ROOT o = (f32[1024,64]{1,0}, f32[1024,64]{1,0}) tuple(a, b)
})";

TEST(Findings, TheSameRowsGatheredTwice) {
  EXPECT_EQ(found(repeated_gathers, kGathers), Names{"repeated-gather b"});
  EXPECT_EQ(
      found(repeated_gathers, with(kGathers, "fusion(w, r), kind=kLoop, calls=h", "fusion(w, s), kind=kLoop, calls=h")),
      Names{});
}

TEST(Findings, EightsAreSaidOnlyWhereTheyHelp) {
  auto advice = [](const std::string& text) {
    auto m = parse(text);
    ModuleCost cost = module_cost(*m, device_spec("H100"));
    auto list = padded_products(FindingsInput(*m, cost, device_spec("H100")));
    return list.empty() ? std::string() : list[0].advice;
  };
  std::string uneven = kPadded;  // 301 × 250 to 304 × 256
  for (size_t at = 0; (at = uneven.find("f32[300,250]")) != std::string::npos;) uneven.replace(at, 12, "f32[301,250]");
  uneven = with(uneven, "padding=0_4x0_6", "padding=0_3x0_6");
  EXPECT_NE(advice(uneven).find("multiple of 8"), std::string::npos);
  std::string even = kPadded;  // 1000 is a multiple of 8, whoever pads it
  for (size_t at = 0; (at = even.find("300,250")) != std::string::npos;) even.replace(at, 7, "1000,256");
  for (size_t at = 0; (at = even.find("304,256")) != std::string::npos;) even.replace(at, 7, "1024,256");
  even = with(with(even, "padding=0_4x0_6", "padding=0_24x0_0"), "f32[64,304]", "f32[64,1024]");
  EXPECT_EQ(advice(even).find("multiple of 8"), std::string::npos);
  EXPECT_NE(advice(even), "");
}

const char* kOneHot = R"(HloModule m, is_scheduled=true
one_hot {
  i = s32[64] parameter(0)
  wide = s32[64,4096] broadcast(i), dimensions={0}
  n = s32[64,4096] iota(), iota_dimension=1
  eq = pred[64,4096] compare(wide, n), direction=EQ
  ROOT v = f32[64,4096] convert(eq)
}
ENTRY e {
  i.1 = s32[64] parameter(0)
  t = f32[4096,512] parameter(1)
  o = f32[64,4096] fusion(i.1), kind=kLoop, calls=one_hot
  ROOT d = f32[64,512] dot(o, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

TEST(Findings, ALookupByAProduct) {
  EXPECT_EQ(found(one_hot_products, kOneHot), Names{"one-hot-product d"});
  EXPECT_EQ(found(one_hot_products, with(kOneHot, "direction=EQ", "direction=LT")), Names{});
  // A mask of two indices is no lookup in a table of all.
  EXPECT_EQ(found(one_hot_products, with(with(kOneHot, "  n = s32[64,4096] iota(), iota_dimension=1\n", ""),
                                         "compare(wide, n)", "compare(wide, wide)")),
            Names{});
}

TEST(Findings, OneOfTheProductsOfAKernel) {
  // The last of a chain is f32, of values that were made wider.
  const char* text = R"(HloModule m, is_scheduled=true
chain {
  x = bf16[1024,1024] parameter(0)
  a = bf16[1024,1024] parameter(1)
  b = bf16[1024,4096] parameter(2)
  n = bf16[1024,1024] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  nw = f32[1024,1024] convert(n)
  bw = f32[1024,4096] convert(b)
  ROOT w = f32[1024,4096] dot(nw, bw), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY e {
  x.1 = bf16[1024,1024] parameter(0)
  a.1 = bf16[1024,1024] parameter(1)
  b.1 = bf16[1024,4096] parameter(2)
  ROOT k = f32[1024,4096] fusion(x.1, a.1, b.1), kind=kCustom, calls=chain
})";
  EXPECT_EQ(found(wide_products, text), Names{"widened-product k"});
}

const char* kSorted = R"(HloModule m, is_scheduled=true
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
cut {
  p = f32[512,65536] parameter(0)
  ROOT s = f32[512,10] slice(p), slice={[0:512], [65526:65536]}
}
ENTRY e {
  x = f32[512,65536] parameter(0)
  o = f32[512,65536] sort(x), dimensions={1}, to_apply=less
  ROOT f = f32[512,10] fusion(o), kind=kLoop, calls=cut
})";

TEST(Findings, ASortForAFew) {
  EXPECT_EQ(found(sorts_for_a_few, kSorted), Names{"sort-for-a-few o"});
  // From the middle, as of a median; along another dimension; with another reader.
  EXPECT_EQ(found(sorts_for_a_few, with(kSorted, "[65526:65536]", "[65516:65526]")), Names{});
  EXPECT_EQ(found(sorts_for_a_few, with(kSorted, "sort(x), dimensions={1}", "sort(x), dimensions={0}")), Names{});
  EXPECT_EQ(found(sorts_for_a_few, with(with(kSorted, "ROOT f =", "f ="), "calls=cut\n",
                                        "calls=cut\n  ROOT r = (f32[512,10], f32[512,65536]) tuple(f, o)\n")),
            Names{});
}

TEST(Findings, DistancesByDifferences) {
  const char* text = R"(HloModule m, is_scheduled=true
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
d {
  q = f32[512,128] parameter(0)
  x = f32[65536,128] parameter(1)
  qb = f32[512,65536,128] broadcast(q), dimensions={0,2}
  xb = f32[512,65536,128] broadcast(x), dimensions={1,2}
  n = f32[512,65536,128] subtract(qb, xb)
  s = f32[512,65536,128] multiply(n, n)
  z = f32[] constant(0)
  ROOT r = f32[512,65536] reduce(s, z), dimensions={2}, to_apply=add
}
ENTRY e {
  q.1 = f32[512,128] parameter(0)
  x.1 = f32[65536,128] parameter(1)
  ROOT f = f32[512,65536] fusion(q.1, x.1), kind=kInput, calls=d
})";
  EXPECT_EQ(found(distances_by_differences, text), Names{"distances-by-differences f"});
  EXPECT_EQ(found(distances_by_differences, with(text, "multiply(n, n)", "multiply(n, qb)")), Names{});
  EXPECT_EQ(found(distances_by_differences, with(text, "ROOT c = f32[] add", "ROOT c = f32[] maximum")), Names{});
}

TEST(Findings, AnOperandRepeatedForItsProduct) {
  const char* text = R"(HloModule m, is_scheduled=true
r {
  p = f32[16,4096,4,64] parameter(0)
  ROOT b = f32[16,4096,4,8,64] broadcast(p), dimensions={0,1,2,4}
}
ENTRY e {
  k = f32[16,4096,4,64] parameter(0)
  q = f32[16,4,8,64] parameter(1)
  f = f32[16,4096,4,8,64] fusion(k), kind=kLoop, calls=r
  ROOT d = f32[16,4,8,4096] dot(q, f), lhs_batch_dims={0,1,2}, rhs_batch_dims={0,2,3}, lhs_contracting_dims={3}, rhs_contracting_dims={4}
})";
  EXPECT_EQ(found(expanded_operands, text), Names{"expanded-operand f"});
}

TEST(Findings, AProductThatNeedsNoState) {
  const char* text = R"(HloModule m, is_scheduled=true
body {
  s = (s32[], f32[128,2048], f32[512,128,1024], f32[1024,2048]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = f32[128,2048] get-tuple-element(s), index=1
  xs = f32[512,128,1024] get-tuple-element(s), index=2
  w = f32[1024,2048] get-tuple-element(s), index=3
  z = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[1,128,1024] dynamic-slice(xs, i, z, z), dynamic_slice_sizes={1,128,1024}
  flat = f32[128,1024] bitcast(x)
  p = f32[128,2048] dot(flat, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  new = f32[128,2048] add(h, p)
  ROOT r = (s32[], f32[128,2048], f32[512,128,1024], f32[1024,2048]) tuple(next, new, xs, w)
}
cond {
  s.1 = (s32[], f32[128,2048], f32[512,128,1024], f32[1024,2048]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  h.1 = f32[128,2048] parameter(0)
  xs.1 = f32[512,128,1024] parameter(1)
  w.1 = f32[1024,2048] parameter(2)
  z.1 = s32[] constant(0)
  t = (s32[], f32[128,2048], f32[512,128,1024], f32[1024,2048]) tuple(z.1, h.1, xs.1, w.1)
  ROOT l = (s32[], f32[128,2048], f32[512,128,1024], f32[1024,2048]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"512"}}
})";
  EXPECT_EQ(found(products_without_state, text), Names{"product-in-loop p"});
  // A start that the loop's own values decide is state.
  EXPECT_EQ(found(products_without_state, with(text, "add(i, one)", "multiply(i, i)")), Names{});
  // Weights that change are state, too.
  EXPECT_EQ(found(products_without_state, with(with(text, "tuple(next, new, xs, w)", "tuple(next, new, xs, v)"),
                                               "  new =", "  v = f32[1024,2048] negate(w)\n  new =")),
            Names{});
}

TEST(Findings, StateIsUpdatedInAnotherOrder) {
  const char* text = R"(HloModule m, is_scheduled=true
turn {
  p = f32[512,256] parameter(0)
  ROOT t = f32[256,512] transpose(p), dimensions={1,0}
}
step {
  a = f32[256,512] parameter(0)
  b = f32[512,256] transpose(a), dimensions={1,0}
  ROOT n = f32[512,256] negate(b)
}
ENTRY e {
  w = f32[512,256] parameter(0)
  x = f32[256,512] fusion(w), kind=kLoop, calls=turn
  ROOT f = f32[512,256] fusion(x), kind=kLoop, calls=step
})";
  EXPECT_EQ(found(missing_donation, text), Names{"missing-donation w"});
}

TEST(Findings, WhatALoopReadsInAllItsRunsGivesNoPlace) {
  // The state begins as the parameter, which the body reads as it was.
  const char* text = R"(HloModule m, is_scheduled=true
body {
  s = (f32[512,256], f32[512,256]) parameter(0)
  x = f32[512,256] get-tuple-element(s), index=0
  w = f32[512,256] get-tuple-element(s), index=1
  n = f32[512,256] add(x, w)
  ROOT r = (f32[512,256], f32[512,256]) tuple(n, w)
}
cond {
  s.1 = (f32[512,256], f32[512,256]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  p = f32[512,256] parameter(0)
  c.1 = f32[512,256] copy(p)
  t = (f32[512,256], f32[512,256]) tuple(c.1, p)
  l = (f32[512,256], f32[512,256]) while(t), condition=cond, body=body
  ROOT g = f32[512,256] get-tuple-element(l), index=0
})";
  EXPECT_EQ(found(missing_donation, text), Names{});
  EXPECT_EQ(found(missing_donation, with(text, "add(x, w)", "negate(x)")), Names{"missing-donation p"});
}

TEST(Findings, DonatedStateThatComesBackInAnotherType) {
  const char* text = R"(HloModule m, is_scheduled=true, buffer_donor={ (0, {}) }
ENTRY e {
  c = bf16[4096,64] parameter(0)
  x = f32[1,64] parameter(1)
  z = s32[] constant(0)
  w = f32[4096,64] convert(c)
  u = f32[4096,64] dynamic-update-slice(w, x, z, z)
  ROOT r = (f32[4096,64], f32[1,64]) tuple(u, x)
})";
  EXPECT_EQ(found(retyped_state, text), Names{"retyped-state u"});
  EXPECT_EQ(found(retyped_state, with(text, ", buffer_donor={ (0, {}) }", "")), Names{});
}

TEST(Tried, UselessIsWhatGainsNothing) {
  FindingTried t;
  EXPECT_FALSE(t.useless());  // nobody has tried
  t.outcome = FindingTried::kCompiled, t.seconds = t.seconds_after = 1e-3, t.bytes = t.bytes_after = 1e9;
  EXPECT_TRUE(t.useless());
  t.bytes_after -= 1e5, t.least_freed = 1e5;  // a small part of all, and all that was foretold
  EXPECT_TRUE(t.helps());
}

const char* kCarried = R"(HloModule m, is_scheduled=true
body {
  s = (s32[], f32[1024,1024], f32[1024,1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  c = f32[1024,1024] get-tuple-element(s), index=1
  x = f32[1024,1024] get-tuple-element(s), index=2
  y = f32[1024,1024] add(x, c)
  ROOT r = (s32[], f32[1024,1024], f32[1024,1024]) tuple(i, c, y)
}
cond {
  s.1 = (s32[], f32[1024,1024], f32[1024,1024]) parameter(0)
  ROOT b = pred[] constant(false)
}
ENTRY e {
  p = f32[1024,1024] parameter(0)
  z = s32[] constant(0)
  h = f32[] constant(0.5)
  w = f32[1024,1024] broadcast(h), dimensions={}
  t = (s32[], f32[1024,1024], f32[1024,1024]) tuple(z, w, p)
  ROOT l = (s32[], f32[1024,1024], f32[1024,1024]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"8"}}
})";

TEST(Findings, AConstantThatALoopCarries) {
  EXPECT_EQ(found(constants_in_loops, kCarried), Names{"constant-in-loop w"});
  // What begins as a constant and is summed up is a value.
  EXPECT_EQ(found(constants_in_loops, with(kCarried, "tuple(i, c, y)", "tuple(i, y, x)")), Names{});
  EXPECT_EQ(found(constants_in_loops,
                  with(kCarried, "w = f32[1024,1024] broadcast(h), dimensions={}", "w = f32[1024,1024] negate(p)")),
            Names{});
}

TEST(Findings, CopiesOfDonatedArguments) {
  const char* text = R"(HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  w = f32[512,256]{1,0} parameter(0)
  c = f32[512,256]{1,0} copy(w)
  n = f32[512,256]{1,0} negate(c)
  ROOT r = (f32[512,256]{1,0}, f32[512,256]{1,0}) tuple(n, c)
})";
  EXPECT_EQ(found(copies_at_loops, text), Names{"copy-of-donated c"});
  EXPECT_EQ(found(copies_at_loops, with(text, ", input_output_alias={ {0}: (0, {}, may-alias) }", "")), Names{});
}

TEST(Findings, WhatIsWrittenForOneReader) {
  std::string text =
      with(with(kChain, "ROOT a = f32[65536]{0} abs(q)", "ROOT a = f32[65536]{0} reverse(q), dimensions={0}"),
           "f32[65536]{0} parameter(0)\n  y", "f32[65536]{0} parameter(0)\n  y");
  EXPECT_EQ(found(single_readers, text), Names{"single-reader y"});
  EXPECT_EQ(found(single_readers, with(text, "fusion(y), kind=kLoop", "fusion(y), kind=kCustom")), Names{});
}

// --- changes that findings advise ---

std::string tried(Find find, const std::string& kind, const std::string& first, const std::string& text) {
  auto m = parse(text);
  ModuleCost cost = module_cost(*m, device_spec("H100"));
  for (ModuleFinding& f : find(FindingsInput(*m, cost, device_spec("H100")))) {
    if (f.kind != kind) continue;
    f.evidence.first = first;
    FindingEdit edit = edit_for(f, *m, *m);
    return edit.module ? print_module(*edit.module) : "not tried: " + edit.words;
  }
  return "not found";
}

TEST(Tried, IsTheProgramWithoutWhatIsOdd) {
  auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  std::string one_hot = with(with(kOneHot, ", is_scheduled=true", ""), "fusion(i.1), kind=kLoop, calls=one_hot",
                             "call(i.1), to_apply=one_hot");
  std::string text = tried(one_hot_products, "one-hot-product", "d", one_hot);
  EXPECT_TRUE(has(text, "gather(") && !has(text, "dot(")) << text;
  text = tried(constants_in_loops, "constant-in-loop", "w", with(kCarried, ", is_scheduled=true", ""));
  EXPECT_TRUE(has(text.substr(0, text.find("ENTRY")), "broadcast(")) << text;
  text = tried(wide_products, "widened-product", "d", with(kWide, ", is_scheduled=true", ""));
  EXPECT_TRUE(has(text, "dot(%a, %b)")) << text;
  text = tried(missing_donation, "missing-donation", "w", kState);
  EXPECT_TRUE(has(text, "input_output_alias={ {}: (0, {}, may-alias) }")) << text;
  const char* transposed = R"(HloModule m
ENTRY e {
  w = f32[512,256]{1,0} parameter(0)
  x = f32[64,512]{1,0} parameter(1)
  t = f32[256,512]{1,0} transpose(w), dimensions={1,0}
  s = f32[512,256]{1,0} negate(w)
  d = f32[64,256]{1,0} dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT r = (f32[64,256]{1,0}, f32[512,256]{1,0}) tuple(d, s)
})";
  text = tried(transposed_parameters, "transposed-parameter", "t", transposed);
  EXPECT_TRUE(has(text, "f32[256,512]{1,0} parameter(0)")) << text;
  EXPECT_TRUE(has(tried(copies_at_loops, "copy-at-loop", "c", kLoopCopy), "not tried: ")) << text;
}

}  // namespace
}  // namespace hlo
