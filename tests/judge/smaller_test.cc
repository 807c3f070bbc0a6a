// The same program with small arrays (replay/smaller/): every operation's rule, one choice for two stages, and modules
// by chance, which verify and run when they are smaller.
#include "replay/smaller/smaller.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>

#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/scope.h"
#include "replay/judge/arguments/inputs.h"
#include "replay/os/files.h"
#include "tests/common/compare.h"
#include "tests/common/pass_cases.h"
#include "tests/common/random_module.h"

namespace hlo {
namespace {

std::unique_ptr<Module> sized_module(const std::string& text) {
  return parse_module(text, std::make_shared<Universe>(), {});
}

SmallerPlan plan_of(const std::vector<const Module*>& stages, SmallerOptions options = {}) {
  return plan_smaller({stages.size(), [&](size_t k) { return stages[k]->clone(); },
                       [&](size_t k) { return stages.size() > 1 ? fmt::format("stage {}", k) : std::string(); }},
                      options);
}

// The entry of `body` with small arrays, as text; it verifies.
std::string smaller_text(const std::string& body) {
  auto m = sized_module("HloModule m\n" + body);
  EXPECT_TRUE(verify_module(*m).empty()) << body;
  const SmallerPlan plan = plan_of({m.get()});
  auto out = with_sizes(*m, plan.choice);
  for (const VerifyError& e : verify_module(*out)) ADD_FAILURE() << e.message;
  // Without layouts.
  return std::regex_replace(print_module(*out, PrintOptions::Short()), std::regex(R"(\]\{[0-9,]*\})"), "]");
}

struct Rule {
  const char *name, *body;
  std::vector<const char*> has;
};

class Rules : public testing::TestWithParam<Rule> {};

TEST_P(Rules, KeepWhatTheOperationsNeed) {
  const std::string text = smaller_text(GetParam().body);
  for (const char* part : GetParam().has) EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

INSTANTIATE_TEST_SUITE_P(
    Operations, Rules,
    testing::Values(
        Rule{"reshape",
             "ENTRY e {\n  p = f32[4096] parameter(0)\n  ROOT r = f32[32,128] reshape(p)\n}",
             {"f32[32] parameter", "f32[4,8] reshape"}},
        Rule{"bitcast",
             "ENTRY e {\n  p = f32[64,512]{0,1} parameter(0)\n  ROOT r = f32[32768]{0} bitcast(p)\n}",
             {"f32[4,8] parameter", "f32[32] bitcast"}},
        Rule{"concatenate",
             "ENTRY e {\n  p = f32[100] parameter(0)\n  q = f32[30] parameter(1)\n"
             "  ROOT r = f32[130] concatenate(p, q), dimensions={0}\n}",
             {"f32[6] parameter(1)", "f32[12] parameter(0)", "f32[18] concatenate"}},
        Rule{"pad",
             "ENTRY e {\n  p = f32[1000] parameter(0)\n  z = f32[] constant(0)\n"
             "  ROOT r = f32[1024] pad(p, z), padding=0_24\n}",
             {"f32[24] parameter(0)", "f32[26] pad", "padding=0_2"}},
        Rule{"slice",
             "ENTRY e {\n  p = f32[4096] parameter(0)\n  a = f32[2048] slice(p), slice={[0:2048]}\n"
             "  b = f32[2048] slice(p), slice={[2048:4096]}\n  ROOT r = f32[2048] add(a, b)\n}",
             {"f32[8] parameter(0)", "slice={[0:4]}", "slice={[4:8]}"}},
        Rule{"shift",
             "ENTRY e {\n  p = f32[4096] parameter(0)\n  ROOT a = f32[4095] slice(p), slice={[1:4096]}\n}",
             {"f32[4] parameter(0)", "slice={[1:4]}"}},
        Rule{"window",
             "a {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
             "ENTRY e {\n  p = f32[4096] parameter(0)\n  z = f32[] constant(0)\n"
             "  ROOT r = f32[4096] reduce-window(p, z), window={size=4096 pad=4095_0}, to_apply=a\n}",
             {"window={size=4 pad=3_0}"}},
        Rule{"gather",
             "ENTRY e {\n  p = f32[128256,512] parameter(0)\n  i = s32[100] parameter(1)\n"
             "  c = s32[] constant(128255)\n  b = s32[100] broadcast(c), dimensions={}\n  n = s32[100] minimum(i, b)\n"
             "  ROOT r = f32[100,512] gather(p, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
             "index_vector_dim=1, slice_sizes={1,512}\n}",
             {"f32[24,4] parameter(0)", "constant(23)", "slice_sizes={1,4}"}},
        Rule{"dynamic_slice",
             "ENTRY e {\n  p = f32[4096] parameter(0)\n  i = s32[] parameter(1)\n  c = s32[] constant(4064)\n"
             "  z = s32[] constant(0)\n  n = s32[] clamp(z, i, c)\n"
             "  ROOT r = f32[32] dynamic-slice(p, n), dynamic_slice_sizes={32}\n}",
             {"f32[8] parameter(0)", "constant(4)", "dynamic_slice_sizes={4}"}},
        Rule{"convolution",
             "ENTRY e {\n  p = f32[1,224,224,3] parameter(0)\n  k = f32[7,7,3,64] parameter(1)\n"
             "  ROOT r = f32[1,112,112,64] convolution(p, k), window={size=7x7 stride=2x2 pad=2_3x2_3}, "
             "dim_labels=b01f_01io->b01f\n}",
             {"f32[1,24,24,4] convolution", "f32[1,48,48,3] parameter(0)"}},
        Rule{"groups",
             "ENTRY e {\n  p = f32[1,20,20,512] parameter(0)\n  k = f32[3,3,1,512] parameter(1)\n"
             "  ROOT r = f32[1,20,20,512] convolution(p, k), window={size=3x3 pad=1_1x1_1}, "
             "dim_labels=b01f_01io->b01f, feature_group_count=512\n}",
             {"feature_group_count=4"}},
        Rule{"iota",
             "ENTRY e {\n  i = s32[4096] iota(), iota_dimension=0\n  c = s32[] constant(4095)\n"
             "  b = s32[4096] broadcast(c), dimensions={}\n  ROOT r = pred[4096] compare(i, b), direction=EQ\n}",
             {"s32[4] iota", "constant(3)"}},
        Rule{"bits_stay",
             "ENTRY e {\n  p = u32[4096] parameter(0)\n  c = u32[] constant(4096)\n"
             "  b = u32[4096] broadcast(c), dimensions={}\n  ROOT r = u32[4096] xor(p, b)\n}",
             {"u32[4] parameter", "constant(4096)"}},
        Rule{"folded",
             "ENTRY e {\n  p = f32[1000] parameter(0)\n  i = s32[] parameter(1)\n  c = s32[] constant(1000)\n"
             "  d = s32[] constant(25)\n  q = s32[] divide(c, d)\n  s = s32[] subtract(i, q)\n"
             "  ROOT r = f32[1] dynamic-slice(p, s), dynamic_slice_sizes={1}\n}",
             {"constant(1000)", "f32[1000] parameter(0)", "constant(25)"}},
        Rule{"one_less",
             "ENTRY e {\n  p = f32[1000] parameter(0)\n  i = s32[] parameter(1)\n  c = s32[] constant(1000)\n"
             "  d = s32[] constant(1)\n  q = s32[] subtract(c, d)\n  s = s32[] minimum(i, q)\n"
             "  ROOT r = f32[1] dynamic-slice(p, s), dynamic_slice_sizes={1}\n}",
             {"constant(24)", "f32[24] parameter(0)"}},
        Rule{"both_uses",
             "ENTRY e {\n  p = u32[4096] parameter(0)\n  c = u32[] constant(4096)\n  q = u32[] parameter(1)\n"
             "  n = u32[] minimum(q, c)\n  x = u32[] xor(q, c)\n  ROOT r = (u32[4096], u32[], u32[]) tuple(p, n, x)\n}",
             {"constant(4096)", "constant(4)"}},
        Rule{"loop",
             "b {\n  s = (s32[], f32[64,100]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
             "  x = f32[64,100] get-tuple-element(s), index=1\n  o = s32[] constant(1)\n  n = s32[] add(i, o)\n"
             "  ROOT t = (s32[], f32[64,100]) tuple(n, x)\n}\n"
             "c {\n  s = (s32[], f32[64,100]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
             "  l = s32[] constant(64)\n  ROOT r = pred[] compare(i, l), direction=LT\n}\n"
             "ENTRY e {\n  p = f32[64,100] parameter(0)\n  z = s32[] constant(0)\n"
             "  t = (s32[], f32[64,100]) tuple(z, p)\n  ROOT w = (s32[], f32[64,100]) while(t), condition=c, body=b, "
             "backend_config={\"known_trip_count\":{\"n\":\"64\"}}\n}",
             {"f32[4,12] parameter(0)", "constant(4)", "\"n\":\"4\""}},
        Rule{"carried_bound_stays",
             "b {\n  s = (s32[], f32[64]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
             "  x = f32[64] get-tuple-element(s), index=1\n  o = s32[] constant(1)\n  n = s32[] subtract(i, o)\n"
             "  ROOT t = (s32[], f32[64]) tuple(n, x)\n}\n"
             "c {\n  s = (s32[], f32[64]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
             "  l = s32[] constant(0)\n  ROOT r = pred[] compare(i, l), direction=GT\n}\n"
             "ENTRY e {\n  p = f32[64] parameter(0)\n  z = s32[] constant(64)\n"
             "  t = (s32[], f32[64]) tuple(z, p)\n  ROOT w = (s32[], f32[64]) while(t), condition=c, body=b, "
             "backend_config={\"known_trip_count\":{\"n\":\"64\"}}\n}",
             {"f32[64] parameter(0)", "constant(64)", "\"n\":\"64\""}},
        Rule{"table",
             "ENTRY e {\n  p = f32[20] parameter(0)\n"
             "  c = f32[20] constant({1,2,3,4,5,6,7,8,9,1,1,2,3,4,5,6,7,8,9,1})\n  ROOT r = f32[20] add(p, c)\n}",
             {"f32[20] parameter(0)"}},
        Rule{"uniform_table",
             "ENTRY e {\n  p = f32[20] parameter(0)\n"
             "  c = f32[20] constant({1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1})\n  ROOT r = f32[20] add(p, c)\n}",
             {"f32[12] parameter(0)"}},
        Rule{"gemm",
             "ENTRY e {\n  p = f32[64,512]{1,0} parameter(0)\n  q = f32[512,100]{1,0} parameter(1)\n"
             "  ROOT r = (f32[64,100]{1,0}, s8[4194304]{0}) custom-call(p, q), "
             "custom_call_target=\"__cublas$gemm\", backend_config={\"gemm_backend_config\":{\"alpha_real\":1,"
             "\"alpha_imag\":0,\"beta\":0,\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"
             "\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[]},"
             "\"lhs_stride\":\"32768\",\"rhs_stride\":\"51200\",\"epilogue\":\"DEFAULT\"}}\n}",
             {"f32[4,8] parameter(0)", "f32[8,12] parameter(1)", "\"lhs_stride\":\"32\"", "\"rhs_stride\":\"96\""}},
        Rule{"opaque",
             "ENTRY e {\n  p = f32[64,512] parameter(0)\n"
             "  ROOT r = f32[64,512] custom-call(p), custom_call_target=\"somebodys_own\"\n}",
             {"f32[64,512] parameter(0)"}}),
    [](const auto& info) { return std::string(info.param.name); });

// A constant that counts in one stage and in the next is hidden from what counts it keeps one number in both.
TEST(Smaller, OneNumberThroughout) {
  const std::string counted =
      "HloModule m\nENTRY e {\n  p = f32[4096] parameter(0)\n  i = s32[] parameter(1)\n"
      "  c = s32[] constant(4096)\n  s = s32[] subtract(i, c)\n"
      "  ROOT r = f32[8] dynamic-slice(p, s), dynamic_slice_sizes={8}\n}";
  const std::string hidden = std::regex_replace(counted, std::regex("s = s32.*"),
                                                "n = s32[] not(c)\n  m = s32[] not(n)\n  s = s32[] subtract(i, m)");
  auto a = sized_module(counted), b = sized_module(hidden);
  const SmallerPlan plan = plan_of({a.get(), b.get()});
  EXPECT_NE(print_module(*with_sizes(*a, plan.choice), PrintOptions::Short()).find("constant(4096)"),
            std::string::npos);
  auto negated =
      sized_module(std::regex_replace(counted, std::regex("s = s32.*"), "n = s32[] negate(c)\n  s = s32[] add(i, n)"));
  const SmallerPlan both = plan_of({a.get(), negated.get()});
  EXPECT_LT(both.choice.of(4096), 4096);
}

TEST(Smaller, TellsWhatStays) {
  auto m = sized_module(
      "HloModule m\nENTRY e {\n  p = f32[64,512] parameter(0)\n  q = f32[4096] parameter(1)\n"
      "  c = f32[64,512] custom-call(p), custom_call_target=\"somebodys_own\"\n"
      "  ROOT r = (f32[64,512], f32[4096]) tuple(c, q)\n}");
  const SmallerPlan plan = plan_of({m.get()});
  ASSERT_EQ(plan.sizes.size(), 3u);
  EXPECT_EQ(plan.sizes[0].before, 4096);
  EXPECT_LT(plan.sizes[0].after, 4096);
  EXPECT_EQ(plan.sizes[1].where, "c");
  EXPECT_NE(plan.sizes[1].why.find("call"), std::string::npos);
  SmallerOptions keep;
  keep.keep = {4096};
  EXPECT_FALSE(plan_of({m.get()}, keep).choice.cuts_anything());
}

// What stands in front of a pass and what it made of it are one program still, when both are smaller by one choice.
class SmallerPasses : public testing::TestWithParam<std::string> {};

TEST_P(SmallerPasses, KeepTheirMeaning) {
  const PassCases f = read_cases(GetParam());
  const auto [pass, pass_options] = pass_of(f);
  ASSERT_TRUE(pass && pass->run);
  for (const PassCase& c : f.cases) {
    // Computed from strides, which are no sizes of arrays: docs/COVERAGE.md.
    if (c.name == "reshape of an iota over several dimensions") continue;
    SCOPED_TRACE(GetParam() + ": " + c.name);
    auto before = sized_module(c.input), after = before->clone();
    PassContext context;
    context.options = pass_options;
    PassEvent event;
    run_pass(*after, *pass, context, {}, &event);
    SmallerOptions options;
    options.most_work = 1;  // as small as it gets
    const SmallerPlan plan = plan_of({before.get(), after.get()}, options);
    if (!plan.choice.cuts_anything()) continue;
    auto a = with_sizes(*before, plan.choice), b = with_sizes(*after, plan.choice);
    for (const VerifyError& e : verify_module(*a)) ADD_FAILURE() << "before: " << e.message;
    for (const VerifyError& e : verify_module(*b)) ADD_FAILURE() << "after: " << e.message;
    expect_same_results(*a, *b, 1, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, SmallerPasses, testing::ValuesIn(pass_case_files()));

TEST(Smaller, ByChance) {
  size_t cut = 0;
  const char* wanted = std::getenv("HLO_RANDOM");
  for (int64_t k = 0; k < (wanted ? std::atoll(wanted) : 400); ++k) {
    SCOPED_TRACE(fmt::format("seed {}", kLargeFrom + static_cast<uint64_t>(k)));
    auto m = sized_module(random_module(kLargeFrom + static_cast<uint64_t>(k), 6 + static_cast<int>(k % 20)));
    SmallerOptions options;
    options.most_work = k % 2 ? 1 : 3e8;
    const SmallerPlan plan = plan_of({m.get()}, options);
    for (const SmallerPlan::Size& s : plan.sizes) EXPECT_LE(s.after, s.before);
    if (!plan.choice.cuts_anything()) continue;
    ++cut;
    auto out = with_sizes(*m, plan.choice);
    for (const VerifyError& e : verify_module(*out)) ADD_FAILURE() << e.message;
    expect_same_results(*out, *out, 1, 1e-4);
    EXPECT_LE(work_of(*out).bytes, work_of(*m).bytes);
  }
  EXPECT_GT(cut, 20u);
}

}  // namespace
}  // namespace hlo
