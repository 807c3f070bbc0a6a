// Which instruction of one module is which of another, whatever their names, numbers and order.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace hlo {

class Matching {
 public:
  // Both in one universe. Pairs by structure from below and above first, then along operands and users, names only
  // where most of the pairs found so far share theirs. Near-linear in the number of instructions.
  Matching(const Module& a, const Module& b);
  // Two stages of one lineage: pairs by id, and of `heirs` those that stand elsewhere as `moved`. Nothing is guessed.
  Matching(const Module& a, const Module& b, std::span<const Heir> heirs);

  // Invalid where it has no partner.
  InstId second(InstId of_first) const { return to_[of_first.value]; }
  InstId first(InstId of_second) const { return from_[of_second.value]; }
  CompId second(CompId of_first) const { return comp_to_[of_first.value]; }
  CompId first(CompId of_second) const { return comp_from_[of_second.value]; }
  // Pairs of computations, callers first.
  const std::vector<std::pair<CompId, CompId>>& computations() const { return pairs_; }
  // The pair is the same throughout, bodies that it calls included.
  bool identical(CompId of_first) const { return identical_[of_first.value]; }
  // Instructions without a partner in their computation's partner that stand in another one: into a fusion, out of it.
  const std::vector<std::pair<InstId, InstId>>& moved() const { return moved_; }
  bool names_agree() const { return names_agree_; }
  // The values that both compute are the same expression of the same parameters.
  bool same_value(InstId of_first, InstId of_second) const;

 private:
  friend class Matcher;
  std::vector<InstId> to_, from_;
  std::vector<CompId> comp_to_, comp_from_;
  std::vector<bool> identical_;
  std::vector<std::pair<CompId, CompId>> pairs_;
  std::vector<std::pair<InstId, InstId>> moved_;
  std::vector<uint64_t> up_[2];  // what an instruction computes, from parameters and constants on
  bool names_agree_ = true;
};

}  // namespace hlo
