// What holds for every pass: with no fuel nothing changes, what a pass says is what it did, every state between two
// rewrites is a right module, and a recorded stage is the module as it was. HLO_RANDOM gives the number of random
// modules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ir/print.h"
#include "ir/snapshot.h"
#include "parser/parser.h"
#include "passes/backend/backend.h"
#include "passes/pipelines.h"
#include "replay/files.h"
#include "tests/compare.h"
#include "tests/random_module.h"

namespace hlo {
namespace {

struct Sample {
  std::string name, text;
};

std::vector<Sample> random_samples(int64_t count) {
  if (const char* wanted = std::getenv("HLO_RANDOM")) count = std::atoll(wanted);
  std::vector<Sample> out;
  for (int64_t k = 1; k <= count; ++k)
    out.push_back({fmt::format("seed {}", k), random_module(static_cast<uint64_t>(k), 12 + static_cast<int>(k % 20))});
  return out;
}

std::string all_of(const Module& m) {
  PrintOptions o;
  o.large_constants = true;
  return print_module(m, o);
}

class FreezeThaw {
 public:
  explicit FreezeThaw(const Module& m) : recorder_(m.universe()) {}
  void keep(Module& m, const std::string& stage) {
    stages_.push_back({stage, recorder_.freeze(m)});
    texts_.push_back(all_of(m));
  }
  // At the end: later stages leave the earlier ones as they were.
  void check() const {
    for (size_t k = 0; k < stages_.size(); ++k)
      EXPECT_EQ(all_of(*stages_[k].second.thaw()), texts_[k]) << stages_[k].first;
  }

 private:
  Recorder recorder_;
  std::vector<std::pair<std::string, Snapshot>> stages_;
  std::vector<std::string> texts_;
};

void freeze_and_thaw(const Sample& sample) {
  for (const std::string& pipeline : pipeline_names()) {
    SCOPED_TRACE(sample.name + ", " + pipeline);
    auto m = parse_module(sample.text, std::make_shared<Universe>(), {sample.name, 20});
    FreezeThaw kept(*m);
    kept.keep(*m, "input");
    PipelineOptions options;
    options.keep_notes = false;
    PipelineCursor cursor(*find_pipeline(pipeline), {});
    std::string stage;
    options.observe = [&](const Module&, const PassEvent& e) { stage = e.pipeline + ".after_" + e.pass; };
    uint64_t edits = m->edits();
    while (cursor.advance(*m, options)) {
      if (std::exchange(edits, m->edits()) != m->edits()) kept.keep(*m, stage);
    }
    schedule_module(*m);
    kept.keep(*m, "scheduled");
    kept.check();
  }
}

TEST(Scope, freeze_thaw_same_text) {
  for (const Sample& s : random_samples(40)) {
    freeze_and_thaw(s);
    if (HasFailure()) break;
  }
  for (const char* file : {"mnist_softmax.hlo", "linear_regression_loop.hlo", "mobilenet_v1.hlo"})
    freeze_and_thaw({file, read_file(std::string(HLO_TESTDATA) + "/" + file)});
}

}  // namespace
}  // namespace hlo
