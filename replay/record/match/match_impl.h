// Parts of the matcher: see match.h.
#pragma once
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/query/fingerprint.h"
#include "replay/record/match/match.h"

namespace hlo {

// One of the two stages, with what the matcher asks of it.
class StageSide {
 public:
  explicit StageSide(const Module& module);
  const Module& m;
  // All but operands, layouts, sharding and configuration.
  uint64_t exact(InstId i);
  uint64_t content(CompId c) { return prints_.computation(c); }
  // The instruction that computes what this one hands on: through parameters of bodies that one instruction calls,
  // elements of tuples, fusions and calls.
  InstId resolved(InstId i) const;
  InstId resolved_tuple(InstId element) const;
  // The one that calls it as a fusion or call does, where it is the only one.
  InstId sole_caller(CompId c) const { return caller_[c.value]; }
  // The while that calls it as body or condition.
  InstId loop_of(CompId c) const { return loop_[c.value]; }
  bool opaque(InstId i) const;  // hands on what another one computes
  // Computations, callers first where that is possible; bodies of fusions inside `inlined` walks come with their
  // callers.
  std::vector<InstId> evaluation_order() const;
  // By CompId: the entry comes there. All where there is no entry.
  std::vector<bool> reached() const;
  // A loop that runs once: its body is read as if it stood in the loop's place.
  void unroll(InstId loop);

 private:
  void walk(CompId c, std::vector<bool>& seen, std::vector<InstId>& out) const;
  Fingerprints prints_;
  std::vector<uint64_t> exact_;
  std::vector<InstId> caller_, loop_;
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
  struct Group;
  template <class KeyX, class KeyY>
  bool pair_by_key(const Group& g, const KeyX& key_x, const KeyY& key_y);
  bool pair_group(const Group& g);
  std::unordered_map<uint64_t, Group> groups_of(CompId x, CompId y, std::vector<uint64_t>* seen);
  bool pair_bodies();
  bool pair_alike(CompId c);
  bool gone(InstId x) const { return !to_[x.value].valid(); }
  // Gone, or read by nobody any more, or in a computation that nobody calls any more.
  bool ended(InstId x) const { return ended_[x.value]; }
  bool fresh(InstId y) const { return !out_.same[y.value].valid(); }
  bool same_plain_shape(InstId x, InstId y) const;
  uint64_t use_hash(bool second, InstId i);

  void find_ended();

  // --- values (match_values.cc) ---
  void number_before();
  void find_clones();
  InstId best_of(InstId y, const std::vector<InstId>& candidates);
  InstId by_stem(InstId y) const;
  uint64_t carried_key(const StageSide& side, InstId element, const std::vector<uint32_t>& values,
                       std::unordered_map<InstId, std::vector<uint64_t>>& known, InstId of_before);
  InstId loop_before(InstId loop_after);
  void find_rewritten_elements();
  bool as_rewritten_element(InstId i);
  void clones_of_computations();
  bool unroll_loops();

  // --- heirs (match_heirs.cc) ---
  void add(InstId from, InstId to, HeirKind kind);
  void along_slots();
  void compare_slots(InstId x, InstId y);
  void relate(InstId x, InstId y, bool of_one_kind = false);
  void work_off();
  void of_operands();
  void of_neighbours();
  void of_metadata();
  InstId neighbour(InstId y);
  void of_movements();
  void of_the_ambiguous();
  InstId read_alike(InstId y);
  // Past what only moves or converts, as far as it is new or ends.
  InstId moved_before(InstId x) const;
  InstId moved_after(InstId y) const;
  void of_fusions();
  void of_copied_fusions();
  void of_regions();
  void of_the_gone();
  void finish();

  StageSide a_, b_;
  const MatchOptions& options_;
  StageMatch& out_;
  std::vector<InstId> to_;                         // by InstId of before
  std::vector<CompId> comp_to_;                    // by CompId of before
  std::vector<InstId> named_;                      // by StrId: of before
  std::unordered_map<uint64_t, InstId> siblings_;  // of before, by stem of the name and opcode; invalid: several
  std::vector<InstId> gone_, fresh_;
  std::vector<bool> ended_;  // by InstId of before
  std::vector<InstId> order_a_, order_b_;
  std::vector<uint32_t> value_a_, value_b_;  // value numbers, common to both
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<std::vector<InstId>> holders_;                       // of before, by value number
  std::vector<std::vector<std::pair<InstId, HeirKind>>> from_;     // by InstId of after
  std::vector<std::vector<InstId>> heirs_;                         // by InstId of before
  std::vector<std::pair<InstId, std::vector<InstId>>> ambiguous_;  // of after, with those of before of the same value
  std::unordered_map<uint64_t, std::vector<InstId>> iotas_;        // of before, that end: by what lies in memory
  std::vector<std::pair<InstId, InstId>> work_;                    // pairs whose operands are to be compared
  std::unordered_map<InstId, InstId> loops_;                       // of after to those of before
  std::unordered_map<InstId, std::vector<uint64_t>>
      carried_;  // keys of what a loop carries, by element; before and after apart
  std::unordered_map<InstId, std::vector<uint64_t>> carried_after_;
  std::unordered_map<InstId, InstId>
      rewritten_;  // of after: what a loop's body reads in its parameter's element's place
  uint32_t next_value_ = 0;
};

// Stack frames by what they say, from 1 on: their numbers may change from stage to stage. 0: none.
std::vector<uint64_t> frame_hashes(const Module& m);

// `add.7` of `add.7.1`, `add.7.clone`, `add.7.0`; empty where nothing numbered is left.
std::string_view name_stem(std::string_view name);

}  // namespace hlo
