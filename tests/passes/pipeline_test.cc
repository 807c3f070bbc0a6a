// Whole pipelines over the test modules: every stage verifies, reads back to the same text, and computes what stage 0
// computes.
#include <gtest/gtest.h>

#include "ir/print/print.h"
#include "ir/program/thunk.h"
#include "ir/snapshot.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/backend/backend.h"
#include "passes/pipelines/pipelines.h"
#include "replay/os/files.h"
#include "tests/common/compare.h"

namespace hlo {
namespace {

class PipelineTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(PipelineTest, KeepsMeaning) {
  auto [file, pipeline] = GetParam();
  auto universe = std::make_shared<Universe>();
  auto original = parse_module(read_file(std::string(HLO_TESTDATA) + "/" + file), universe, {file, 20});
  auto m = original->clone();
  PrintOptions print;
  print.large_constants = print.stable_order = true;
  size_t stages = 0;
  auto check = [&](const Module& stage, const std::string& name) {
    SCOPED_TRACE(name);
    ++stages;
    for (const VerifyError& e : verify_module(stage)) ADD_FAILURE() << e.message;
    std::string text = print_module(stage, print);
    auto again = parse_module(text, universe, {name, 20});
    EXPECT_EQ(print_module(*again, print), text);
    expect_same_results(*original, *again, 1, 1e-5);
  };
  PipelineOptions options;
  options.observe = [&](const Module& stage, const PassEvent& e) {
    if (e.changed || e.kind == PassEvent::kInnerStep) check(stage, e.pipeline + ".after_" + e.pass);
  };
  run_pipeline(*m, *find_pipeline(pipeline), options);
  if (pipeline == "xla-2019" && file != "add.hlo" && file != "mul.hlo") {
    EXPECT_GE(stages, 5u);
  }
  schedule_module(*m);
  check(*m, "scheduled");

  // Buffers that live at the same time do not overlap; where one ends in what makes the other, it may hand its place
  // on.
  BufferAssignment b = assign_buffers(*m);
  if (std::optional<std::string> wrong = overwritten_value(*m, b)) ADD_FAILURE() << *wrong;
  for (size_t i = 0; i < b.values.size(); ++i) {
    const BufferValue& x = b.values[i];
    if (x.last < 0) continue;
    ASSERT_GE(x.allocation, 0) << m->inst_name(x.inst);
    ASSERT_LE(x.offset + x.size, b.allocations[static_cast<size_t>(x.allocation)].size);
    if (b.allocations[static_cast<size_t>(x.allocation)].kind != Allocation::kTemp) continue;
    for (size_t j = 0; j < i; ++j) {
      const BufferValue& y = b.values[j];
      if (y.last < 0 || y.allocation != x.allocation ||
          (y.first == x.first && y.last == x.last && y.offset == x.offset))
        continue;
      const bool in_space = x.offset < y.offset + y.size && y.offset < x.offset + x.size;
      const bool in_time =
          x.offset == y.offset ? x.first < y.last && y.first < x.last : x.first <= y.last && y.first <= x.last;
      EXPECT_FALSE(in_time && in_space) << m->inst_name(x.inst) << " and " << m->inst_name(y.inst);
    }
  }
  std::vector<Thunk> thunks = build_thunks(*m, b);
  EXPECT_FALSE(thunks.empty());
}

INSTANTIATE_TEST_SUITE_P(Modules, PipelineTest,
                         testing::Combine(testing::Values("mobilenet_v1.hlo", "linear_regression.hlo",
                                                          "linear_regression_loop.hlo", "mnist_softmax.hlo", "add.hlo",
                                                          "mul.hlo"),
                                          testing::Values("xla-2019", "xla-gpu")),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + std::get<1>(info.param);
                           std::erase_if(name, [](char c) { return !isalnum(static_cast<unsigned char>(c)); });
                           return name;
                         });

TEST(Fuel, StopsAfterTheNthRewrite) {
  auto m = parse_module(
      "HloModule m\nENTRY e { p = f32[] parameter(0)\n a = f32[] negate(p)\n b = f32[] negate(a)\n c = f32[] "
      "negate(b)\n ROOT d = f32[] negate(c) }",
      std::make_shared<Universe>());
  PassContext context;
  context.fuel = 1;
  PassEvent event;
  EXPECT_TRUE(run_pass(*m, *find_pass("algsimp"), context, {}, &event));
  EXPECT_EQ(context.rewrites, 1);
  EXPECT_EQ(m->instruction_count(), 3u);
}

TEST(Passes, NamesOfBothAgesNameOnePass) {
  EXPECT_EQ(find_pass("CallInliner"), find_pass("call-inliner"));
  EXPECT_EQ(find_pass("constant-folding"), find_pass("constant_folding"));
  EXPECT_EQ(find_pass("cudnn-conv-rewriter"), find_pass("conv-rewriter"));
  EXPECT_EQ(find_pass("consolver-rewriter"), find_pass("cusolver-rewriter"));
  EXPECT_EQ(find_pass("nobody"), nullptr);
  EXPECT_EQ(nearest_pass("algsmp"), "algsimp");
}

void expect_known(const std::vector<Step>& steps) {  // NOLINT(misc-no-recursion): as deep as pipelines nest
  for (const Step& s : steps) {
    if (s.children.empty()) {
      EXPECT_NE(find_pass(s.name), nullptr) << s.name;
    }
    expect_known(s.children);
  }
}

// A pipeline names what passes.def has, with code or without.
TEST(Passes, EveryStepOfAPipelineHasARow) {
  for (const std::string& name : pipeline_names()) expect_known(*find_pipeline(name));
}

// The same bytes whatever was run before in this process.
TEST(Determinism, TwoRunsGiveOneText) {
  auto once = [] {
    auto m = parse_module(read_file(std::string(HLO_TESTDATA) + "/mobilenet_v1.hlo"), std::make_shared<Universe>());
    run_pipeline(*m, *find_pipeline("xla-2019"), {});
    return print_module(*m);
  };
  EXPECT_EQ(once(), once());
}

}  // namespace
}  // namespace hlo
