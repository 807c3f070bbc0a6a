// All stages of one module under one numbering. An instruction keeps its InstId, and a computation its CompId, as long
// as it is the same one; what it lives on as when it ends, or is copied, stands in lists of heirs between the stages.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ir/heir.h"
#include "ir/snapshot.h"

namespace hlo {

struct StageMatch;

class Lineage {
 public:
  explicit Lineage(std::shared_ptr<Universe> universe);
  Lineage(const Lineage&) = delete;
  Lineage& operator=(const Lineage&) = delete;

  size_t size() const { return stages_.size(); }  // stages
  const Snapshot& stage(size_t k) const { return stages_[k].snapshot; }
  const std::shared_ptr<Universe>& universe() const { return recorder_.universe(); }
  // Thawed, its ids being the lineage's; verified or not as it came. A stage that was read from a file is checked here
  // as the parser checks a text. Throws Failure(kIo) where it is no module.
  std::unique_ptr<Module> module(size_t k) const;

  // From ids that live in stage k-1 to ids that live in stage k, sorted by both; none for stage 0.
  std::span<const Heir> heirs(size_t k) const { return stages_[k].heirs; }
  // The same over several stages, `first` before `last`: from what lives in the first to what lives in the last.
  std::vector<Heir> heirs_between(size_t first, size_t last) const;
  // False: it ended between k-1 and k, and the evidence does not say what became of it.
  bool decided(size_t k, InstId from) const;
  const std::vector<InstId>& undecided(size_t k) const { return stages_[k].undecided; }  // sorted
  bool imported(size_t k) const { return stages_[k].imported; }
  // What stage k has that k-1 has not, the other way round, and what both have in different form. Of our own runs all
  // that a pass touched is modified; of imported stages metadata does not count. Of stage 0: nothing.
  StageDiff changes(size_t k) const;

  // Our own pipeline: always the same module, or one thawed from the last stage. Takes what is dirty and the module's
  // list of heirs, whose chains through instructions that came and went are resolved. Returns the stage's number.
  size_t add(Module& m);
  // An imported stage of the same universe: renumbered by the match against stage size()-1, which `m` must have been
  // matched with. What did not change shares its records. The first stage needs no match.
  size_t add(const Module& m, const StageMatch& match);

  const Recorder& recorder() const { return recorder_; }

 private:
  friend class StoreReader;
  struct Stage {
    Snapshot snapshot;
    std::vector<Heir> heirs;
    std::vector<InstId> undecided;  // sorted
    bool imported = false;
    bool checked = true;  // false: from a file, and nobody has looked yet whether it is a module
  };
  void take_heirs(const Module& m, Stage& stage) const;

  Recorder recorder_;
  mutable std::deque<Stage> stages_;
};

}  // namespace hlo
