// The cost model of GPU fusions and what they allow, beside what XLA wrote down of the same steps
// (testdata/fusion/*.priority_fusion_dump.txt, of XLA 0.10.2 for an H200).
#include <gtest/gtest.h>

#include "ir/analysis/fusion/tiling.h"
#include "parser/parser.h"
#include "tests/passes/fusion_dump.h"

namespace hlo {
namespace {

// `kind` 1: of Triton's fusions.
FusionScore score_of(const std::string& name, int kind = 0) {
  FusionDump dump = read_fusion_dump(std::string(HLO_TESTDATA) + "/fusion/" + name + ".priority_fusion_dump.txt");
  FusionLeader leader(&dump, 10, "");
  leader.run();
  if (testing::Test::HasFailure()) leader.print(name.c_str());
  return leader.score(kind);
}

// several_and_map: the largest of eight with its place, and a function mapped over two arrays.
TEST(FusionCost, TimesOfXlasSteps) {
  for (const auto& [name, steps] :
       {std::pair{"argsort_axis", 75}, {"sharded_computation", 101}, {"several_and_map", 13}}) {
    SCOPED_TRACE(name);
    const FusionScore s = score_of(name);
    EXPECT_EQ(s.eligible, static_cast<size_t>(steps));
    EXPECT_EQ(s.same_eligible, s.eligible);
    EXPECT_EQ(s.exact, s.asked);
    EXPECT_EQ(s.same_reason, s.refused);
  }
}

// A layer norm's centered values go into three products, and rows of [8,128,1] into one of them: XLA prices the second
// and third product as the first, and reads such rows one element a transaction.
TEST(FusionCost, TilesOfPairsOfOneKind) {
  const FusionScore s = score_of("triton_kinds", 1);
  EXPECT_EQ(s.eligible, 11U);
  EXPECT_EQ(s.same_eligible, s.eligible);
  EXPECT_EQ(s.asked, 5U);
  EXPECT_EQ(s.exact, s.asked);
  EXPECT_EQ(s.same_reason, s.refused);
}

// Of a fusion that computes `body`, of one parameter and with a result of that shape.
bool tiles_of(const std::string& parameter, const std::string& shape, const std::string& body) {
  const std::string text = fmt::format(
      "HloModule m\n\nadd {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}}\n\n"
      "body {{\n  p = {} parameter(0)\n  z = f32[] constant(0)\n{}}}\n\n"
      "ENTRY e {{\n  x = {} parameter(0)\n  ROOT f = {} fusion(x), kind=kLoop, calls=body\n}}\n",
      parameter, body, parameter, shape);
  const std::unique_ptr<Module> m = parse_module(text, std::make_shared<Universe>(), {.file = "test"});
  return TiledFusion(FusionView(*m, m->comp(m->entry()).root)).has_maps();
}

TEST(FusionCost, MapsWithoutTiles) {
  // Rows of 96 rows: there and back, nothing happens.
  EXPECT_TRUE(tiles_of("f32[9216,8]", "f32[9216,8]",
                       "  b = f32[96,96,8] bitcast(p)\n  n = f32[96,96,8] negate(b)\n"
                       "  ROOT r = f32[9216,8] bitcast(n)\n"));
  // What is summed joins a dimension of the result…
  EXPECT_TRUE(tiles_of("f32[9216,8]", "f32[96,8]",
                       "  b = f32[96,96,8] bitcast(p)\n"
                       "  ROOT r = f32[96,8] reduce(b, z), dimensions={1}, to_apply=add\n"));
  // …but not the quotient of one: (d0 / 96) * 96 + s0.
  EXPECT_FALSE(tiles_of("f32[9216,8]", "f32[9216,8]",
                        "  b = f32[96,96,8] bitcast(p)\n"
                        "  s = f32[96,8] reduce(b, z), dimensions={1}, to_apply=add\n"
                        "  w = f32[96,96,8] broadcast(s), dimensions={0,2}\n"
                        "  ROOT r = f32[9216,8] bitcast(w)\n"));
  // Part of a part, and two parts that are one again.
  EXPECT_TRUE(
      tiles_of("f32[8,12,96]", "f32[9216]", "  b = f32[96,12,8] bitcast(p)\n  ROOT r = f32[9216] bitcast(b)\n"));
  // Other rows of the same elements are no tile of the result's.
  EXPECT_FALSE(tiles_of("f32[16,64]", "f32[8,128]", "  b = f32[8,128] bitcast(p)\n  ROOT r = f32[8,128] negate(b)\n"));
  // What is summed all along one dimension and comes of two.
  EXPECT_FALSE(tiles_of("f32[8,16]", "f32[]",
                        "  b = f32[128] bitcast(p)\n"
                        "  ROOT r = f32[] reduce(b, z), dimensions={0}, to_apply=add\n"));
}

TEST(FusionCost, DamagedDumps) {
  EXPECT_THROW(read_fusion_dump(std::string(HLO_TESTDATA) + "/fusion/none.txt"), Failure);
  EXPECT_THROW(named_gpu_target("H2000"), Failure);
  EXPECT_THROW(parse_gpu_target("gpu_device_info { threads_per_warp: 32 }"), Failure);
}

TEST(FusionCost, DescribedGpus) {
  for (const std::string& name : described_gpus()) {
    SCOPED_TRACE(name);
    const GpuTarget t = named_gpu_target(name);
    EXPECT_GE(t.major, 6);
    EXPECT_GT(t.core_count, 40);
    EXPECT_GT(t.memory_bandwidth, 500'000'000'000);
  }
  const GpuTarget h200 = named_gpu_target("H200"), made;
  EXPECT_EQ(h200.core_count, made.core_count);
  EXPECT_EQ(h200.memory_bandwidth, made.memory_bandwidth);
  EXPECT_EQ(h200.l2_cache_size, made.l2_cache_size);
  EXPECT_EQ(h200.clock_rate_ghz, made.clock_rate_ghz);
  EXPECT_EQ(named_gpu_target("a100").core_count, named_gpu_target("A100-SXM-80").core_count);
}

// Two sources for one card: what its vendor's data sheet says is what XLA's description comes to, but for rounding.
TEST(GpuTargets, DataSheetsAgreeWithDescriptions) {
  int compared = 0;
  for (const DeviceSpec& sheet : device_specs()) {
    if (sheet.description.empty()) continue;
    const GpuDescription* text = find_gpu_description(sheet.name);
    ASSERT_NE(text, nullptr) << sheet.name;
    EXPECT_EQ(sheet.description, text->name);
    const DeviceSpec told = described_spec(text->text);
    EXPECT_NEAR(told.memory_gb_s / sheet.memory_gb_s, 1, 0.05) << sheet.name;
    for (size_t k = 0; k < kArithmetics; ++k) {
      const auto p = static_cast<Arithmetic>(k);
      for (const auto& [x, y] :
           {std::pair(told.vector.of(p), sheet.vector.of(p)), {told.tensor.of(p), sheet.tensor.of(p)}})
        if (x > 0 && y > 0) {
          EXPECT_NEAR(x / y, 1, 0.03) << sheet.name << ' ' << k;
          ++compared;
        }
    }
    EXPECT_EQ(sheet.sms, named_gpu_target(sheet.name).core_count);
    EXPECT_GT(sheet.warps_per_sm, 0) << sheet.name;
  }
  EXPECT_GE(compared, 30);
  EXPECT_EQ(device_spec("A100-SXM-80").name, "A100");
  EXPECT_EQ(device_spec("p100").description, "p100");
  EXPECT_EQ(default_device_spec().name, kDefaultGpu);
}

}  // namespace
}  // namespace hlo
