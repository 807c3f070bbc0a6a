// The cost model of GPU fusions and what they allow, beside what XLA wrote down of the same steps
// (testdata/fusion/*.priority_fusion_dump.txt, of XLA 0.10.2 for an H200).
#include <gtest/gtest.h>

#include "tests/fusion_dump.h"

namespace hlo {
namespace {

FusionScore score_of(const std::string& name) {
  FusionDump dump = read_fusion_dump(std::string(HLO_TESTDATA) + "/fusion/" + name + ".priority_fusion_dump.txt");
  FusionLeader leader(&dump, 10, "");
  leader.run();
  if (testing::Test::HasFailure()) leader.print(name.c_str());
  return leader.score(0);
}

TEST(FusionCost, TimesOfXlasSteps) {
  for (const auto& [name, steps] : {std::pair{"argsort_axis", 75}, {"sharded_computation", 101}}) {
    SCOPED_TRACE(name);
    const FusionScore s = score_of(name);
    EXPECT_EQ(s.eligible, static_cast<size_t>(steps));
    EXPECT_EQ(s.same_eligible, s.eligible);
    EXPECT_EQ(s.exact, s.asked);
    EXPECT_EQ(s.same_reason, s.refused);
  }
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

}  // namespace
}  // namespace hlo
