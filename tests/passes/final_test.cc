// How many of the kernels that XLA made of a module does --pipeline=xla-gpu make (testdata/final/, kept by
// tests/dev/oracle/keep_final.py from XLA 0.10.2's dumps for an H200)? kernels.txt holds what it made when it was last
// written: a row that changes shows what a change of ours did, for better or worse. HLO_UPDATE=1 writes it anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "parser/parser.h"
#include "passes/pipelines/pipelines.h"
#include "replay/compare/common_kernels.h"
#include "replay/os/files.h"
#include "replay/record/files/input.h"

namespace hlo {
namespace {

constexpr std::string_view kInput = ".input.hlo.pb.gz";
const std::string kFolder = HLO_TESTDATA "/final/";

std::vector<std::string> module_names() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (std::string name = entry.path().filename(); name.ends_with(kInput))
      out.push_back(name.substr(0, name.size() - kInput.size()));
  std::sort(out.begin(), out.end());
  return out;
}

// As it is where XLA's post-fusion optimization would begin.
void run_through_fusion(Module& m) {
  PipelineOptions options;
  options.verify = options.keep_notes = false;
  PipelineCursor cursor(*find_pipeline("xla-gpu"), {});
  for (std::string pipeline; cursor.upcoming(&pipeline) && pipeline != "post-fusion_optimization";)
    cursor.advance(m, options);
  ASSERT_NE(cursor.upcoming(), nullptr);
}

std::string row_of(const std::string& name, double* share) {
  auto universe = std::make_shared<Universe>();
  const LoadOptions options{.universe = universe};
  auto ours = load(kFolder + name + std::string(kInput), options);
  auto theirs = load(kFolder + name + ".fused.hlo.pb.gz", options);
  run_through_fusion(*ours);
  const CommonKernels c = common_kernels(*ours, *theirs);
  *share = c.share();
  return fmt::format("{} {} {} {} {:.3f}\n", name, c.first, c.second, c.both, c.share());
}

TEST(Final, KernelsOfXlaThatWeMake) {
  std::string table = "# module, our kernels, XLA's, both, share of both\n";
  const std::vector<std::string> names = module_names();
  ASSERT_GE(names.size(), 20U);
  double sum = 0;
  for (const std::string& name : names) {
    double share = 0;
    table += row_of(name, &share), sum += share;
  }
  table += fmt::format("# mean {:.3f}\n", sum / static_cast<double>(names.size()));
  const std::string file = kFolder + "kernels.txt";
  if (std::getenv("HLO_UPDATE")) write_file(file, table);
  EXPECT_EQ(read_file(file), table) << "HLO_UPDATE=1 writes it anew";
  EXPECT_GE(sum, 0.75 * static_cast<double>(names.size()));
}

TEST(CommonKernels, CountsEachOnce) {
  auto universe = std::make_shared<Universe>();
  auto parsed = [&](const char* body) {
    return parse_module(fmt::format("HloModule m\nENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n{}}}\n", body), universe,
                        {"m"});
  };
  auto two = parsed("  a = f32[8]{0} negate(p)\n  b = f32[8]{0} negate(p)\n  ROOT t = (f32[8], f32[8]) tuple(a, b)\n"),
       one = parsed("  x = f32[8]{0} negate(p)\n  y = f32[8]{0} cosine(x)\n  ROOT t = (f32[8], f32[8]) tuple(x, y)\n");
  const CommonKernels c = common_kernels(*two, *one);
  EXPECT_EQ(c.first, 2U);
  EXPECT_EQ(c.second, 2U);
  EXPECT_EQ(c.both, 1U);
  ASSERT_EQ(c.only_first.size(), 1U);
  ASSERT_EQ(c.only_second.size(), 1U);
  EXPECT_EQ(two->inst_name(c.only_first[0]), "b");
  EXPECT_EQ(one->inst_name(c.only_second[0]), "y");
  EXPECT_DOUBLE_EQ(c.share(), 0.5);
  EXPECT_DOUBLE_EQ(common_kernels(*one, *one).share(), 1);
  // A sharding is of the kernel, as ../shared/oracle/final.py has it.
  auto kept = parsed("  ROOT a = f32[8]{0} negate(p), sharding={replicated}\n"),
       lost = parsed("  ROOT a = f32[8]{0} negate(p)\n");
  EXPECT_EQ(common_kernels(*kept, *lost).both, 0U);
  EXPECT_EQ(common_kernels(*kept, *kept).both, 1U);
}

}  // namespace
}  // namespace hlo
