// A module as a tree of groups that fold: computations within their callers, name scopes of op_name, repeated blocks,
// runs of a long computation. Every group is convex: no path leaves it and comes back, so the groups of one level have
// no cycle. Each instruction has one place in the tree.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace hlo {

// What stands in a group: an instruction, or another group by its index.
struct FoldItem {
  uint32_t value = 0;
  bool group = false;
};

struct FoldGroup {
  // kCall: an instruction with what it calls; kUncalled: a computation that nothing calls, beside the entry, or many of
  // these.
  enum class Kind : uint8_t { kModule, kCall, kComputation, kUncalled, kScope, kRepeat, kBlock, kParameters, kResults };
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  Kind kind = Kind::kModule;
  uint32_t parent = kNone;
  InstId inst;                     // of kCall
  CompId comp;                     // whose instructions stand here; where there are several computations invalid
  std::string key, label;          // DrawnBox::key and label
  std::vector<FoldItem> children;  // in topological order
  uint32_t count = 0;              // instructions inside, the calling one and those without a box among them
  uint32_t times = 1;              // of kRepeat
  uint64_t alike = 0;              // equal structure, equal number; of kRepeat that of its blocks, 0 where they differ
  uint32_t contractions = 0, fusions = 0, loops = 0, collectives = 0, library = 0;  // of the instructions inside
};

class Folding {
 public:
  explicit Folding(const Module& m);  // keeps the reference

  const Module& module() const { return m_; }
  const std::vector<FoldGroup>& groups() const { return groups_; }  // 0: the module
  // The innermost group that an instruction stands in; of one that has no box, that of the user which tells of it.
  // kNone where it stands in none: it is not alive.
  uint32_t home(InstId i) const { return i.value < home_.size() ? home_[i.value] : FoldGroup::kNone; }
  // Has no box: small constants, scalars that are broadcast, and what reducers and comparators hold.
  bool hidden(InstId i) const { return hidden_[i.value]; }
  // The group of a calling instruction, or kNone.
  uint32_t group_of(InstId i) const { return i.value < of_inst_.size() ? of_inst_[i.value] : FoldGroup::kNone; }
  uint32_t find(const std::string& key) const;  // kNone: there is no such group
  // Which groups to open, outermost first, to see an instruction; the module's is not among them.
  std::vector<std::string> keys_to(InstId i) const;

 private:
  friend struct FoldingMaker;
  const Module& m_;
  std::vector<FoldGroup> groups_;
  std::vector<uint32_t> home_;
  std::vector<bool> hidden_;
  std::vector<InstId> told_by_;    // of what is hidden: the instruction that tells of it
  std::vector<uint32_t> of_inst_;  // by InstId: the group of what it calls, or kNone
  std::unordered_map<std::string, uint32_t> by_key_;
};

}  // namespace hlo
