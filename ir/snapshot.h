// Recorded stages of a lineage: an append-only log of instruction records, copy-on-write pages from InstId to record,
// and shared order lists. A stage is read-only; any number may live; neighbours share all that did not change.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "ir/module.h"

namespace hlo {

class Recorder;

class Snapshot {
 public:
  static constexpr uint32_t kPage = 256, kNone = 0xFFFFFFFFu;
  struct Page {
    std::array<uint32_t, kPage> slot;
  };
  // The working form again, ready for passes.
  std::unique_ptr<Module> thaw() const;
  size_t instruction_count() const { return live_; }

 private:
  friend class Recorder;
  friend struct StageDiff;
  friend struct StageDiff diff_stages(const Snapshot& a, const Snapshot& b);
  const Recorder* recorder_ = nullptr;
  std::vector<std::shared_ptr<const Page>> pages_;
  std::vector<std::shared_ptr<const Computation>> comps_;
  std::shared_ptr<const std::vector<CompId>> comp_order_;
  std::shared_ptr<const ModuleConfig> config_;
  std::shared_ptr<const StackTables> stack_;
  std::shared_ptr<const std::unordered_map<InstId, std::vector<InstId>>> preds_, succs_;
  CompId entry_;
  size_t slots_ = 0, live_ = 0;
  std::string name_;
};

// What differs between two stages of one lineage, by id.
struct StageDiff {
  std::vector<InstId> added, removed, modified;
};
StageDiff diff_stages(const Snapshot& a, const Snapshot& b);

class Recorder {
 public:
  explicit Recorder(std::shared_ptr<Universe> universe) : universe_(std::move(universe)) {}
  // Freezes the module as it is. Only what is dirty since the last call is looked at: all calls are about one module,
  // or about modules thawed from this recorder's stages.
  Snapshot freeze(Module& m);
  const Inst& record(uint32_t index) const { return log_[index]; }
  size_t records() const { return log_.size(); }
  const std::shared_ptr<Universe>& universe() const { return universe_; }

 private:
  std::shared_ptr<Universe> universe_;
  std::deque<Inst> log_;
  std::vector<std::shared_ptr<Snapshot::Page>> pages_;
  std::vector<std::shared_ptr<const Computation>> comps_;
  std::shared_ptr<const ModuleConfig> config_;
  std::shared_ptr<const StackTables> stack_;
  size_t live_ = 0;
};

}  // namespace hlo
