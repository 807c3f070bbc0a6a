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
  using Control = std::unordered_map<InstId, std::vector<InstId>>;
  // All that a stage holds; for stages that are made elsewhere, or kept in files.
  struct Parts {
    std::vector<std::shared_ptr<const Page>> pages;
    std::vector<std::shared_ptr<const Computation>> computations;  // by CompId; null: there is none
    std::shared_ptr<const std::vector<CompId>> order;
    std::shared_ptr<const ModuleConfig> config;
    std::shared_ptr<const StackTables> stack;
    std::shared_ptr<const Control> preds, succs;  // null: there is none
    CompId entry;
    size_t slots = 0, live = 0;
    std::string name;
  };
  Parts parts() const;
  // The working form again, ready for passes.
  std::unique_ptr<Module> thaw() const;
  size_t instruction_count() const { return live_; }
  size_t slots() const { return slots_; }  // ids below this may live
  // Which record of the log an instruction is; kNone where it does not live in this stage.
  uint32_t record(InstId i) const {
    size_t page = i.value / kPage;
    return page < pages_.size() ? pages_[page]->slot[i.value % kPage] : kNone;
  }
  bool alive(InstId i) const { return record(i) != kNone; }
  const Inst& operator[](InstId i) const;  // must live
  // Of an instruction that lives; valid as long as nothing is added to the universe.
  std::span<const InstId> operands(InstId i) const;
  // Null where it does not live in this stage.
  const Computation* computation(CompId c) const;
  const std::vector<CompId>& computation_order() const { return *comp_order_; }
  CompId entry() const { return entry_; }

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
  // A stage of parts whose records are in the log. No module is frozen after this one.
  Snapshot assemble(Snapshot::Parts parts) const;
  // Appends a record with those operands (none of constants and parameters). Its index.
  uint32_t log(Inst inst, std::span<const InstId> operands);
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
