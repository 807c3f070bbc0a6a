// Parts of the matcher: see match.h.
#pragma once
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/fingerprint.h"
#include "replay/record/match.h"

namespace hlo {

// One of the two stages, with what the matcher asks of it.
class StageSide {
 public:
  explicit StageSide(const Module& module);
  const Module& m;
  // All but operands, layouts, sharding and configuration.
  uint64_t exact(InstId i);
  // The instruction that computes what this one hands on: through parameters of bodies that one instruction calls,
  // elements of tuples, fusions and calls.
  InstId resolved(InstId i) const;
  InstId resolved_tuple(InstId element) const;
  // The one that calls it as a fusion or call does, where it is the only one.
  InstId sole_caller(CompId c) const { return caller_[c.value]; }
  bool opaque(InstId i) const;  // hands on what another one computes
  // Computations, callers first where that is possible; bodies of fusions inside `inlined` walks come with their callers.
  std::vector<InstId> evaluation_order() const;

 private:
  void walk(CompId c, std::vector<bool>& seen, std::vector<InstId>& out) const;
  Fingerprints prints_;
  std::vector<uint64_t> exact_;
  std::vector<InstId> caller_;
};

class StageMatcher {
 public:
  StageMatcher(const Module& before, const Module& after, const MatchOptions& options, StageMatch& out);
  void run();

 private:
  // --- what stays itself (match_same.cc) ---
  bool pair_computations(CompId x, CompId y);
  void pair(InstId x, InstId y);
  void unpair(InstId x, InstId y);
  void by_name();
  void doubt_names();
  void by_structure();
  bool gone(InstId x) const { return !to_[x.value].valid(); }
  bool fresh(InstId y) const { return !out_.same[y.value].valid(); }
  bool same_plain_shape(InstId x, InstId y) const;
  uint64_t use_hash(bool second, InstId i);

  // --- values (match_values.cc) ---
  void number_before();
  void find_clones();
  InstId best_of(InstId y, const std::vector<InstId>& candidates);
  InstId by_stem(InstId y) const;

  // --- heirs (match_heirs.cc) ---
  void add(InstId from, InstId to, HeirKind kind);
  void along_slots();
  void compare_slots(InstId x, InstId y);
  void relate(InstId x, InstId y);
  void of_fusions();
  void of_regions();
  void of_the_gone();
  void finish();

  StageSide a_, b_;
  const MatchOptions& options_;
  StageMatch& out_;
  std::vector<InstId> to_;        // by InstId of before
  std::vector<CompId> comp_to_;   // by CompId of before
  std::vector<InstId> named_;     // by StrId: of before
  std::vector<InstId> gone_, fresh_;
  std::vector<InstId> order_a_, order_b_;
  std::vector<uint32_t> value_a_, value_b_;  // value numbers, common to both
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<std::vector<InstId>> holders_;  // of before, by value number
  std::vector<std::vector<std::pair<InstId, HeirKind>>> from_;  // by InstId of after
  std::vector<std::vector<InstId>> heirs_;                      // by InstId of before
  std::vector<std::pair<InstId, InstId>> work_;                 // pairs whose operands are to be compared
  uint32_t next_value_ = 0;
};

// `add.7` of `add.7.1`, `add.7.clone`, `add.7.0`; empty where nothing numbered is left.
std::string_view name_stem(std::string_view name);

}  // namespace hlo
