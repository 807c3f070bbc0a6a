// What runs before what (xla/hlo/analysis/hlo_ordering.h), as far as operands and control dependencies say it, and with
// it whether one value's life ends before another's begins.
#pragma once
#include <span>
#include <vector>

#include "ir/analysis/alias_info.h"
#include "ir/analysis/dataflow.h"

namespace hlo {

// Which instruction of a computation needs which, by operands and control dependencies as they were when it was made;
// of a scheduled module, which runs first.
// Answers come by looking along the operands, in the order of a walk over all, and not at all where the ranges of what
// both need tell them apart.
class Reachability {
 public:
  explicit Reachability(const Module& m);
  // Does b come behind a, because of what it needs? Both in one computation; of one and the same: no.
  bool before(InstId a, InstId b) const;

 private:
  std::vector<uint32_t> first_;  // of an instruction's predecessors
  std::vector<InstId> before_;
  std::vector<uint32_t> rank_, lowest_, level_;
  bool scheduled_ = false;
  mutable std::vector<uint32_t> seen_;
  mutable uint32_t question_ = 0;
};

enum class Constraint : uint8_t {
  kSame,
  kBeforeStart,  // ends before the other starts
  kBeforeEnd,    // ends before the other ends: a branch's instruction and its conditional, a condition's and the body's
  kExclusiveBefore,  // in another branch of one conditional, which stands before the other's
  kExclusiveAfter,
  kAfter,
  kUnordered
};

class Ordering {
 public:
  Ordering(const Dataflow& flow, const AliasInfo& aliases);

  Constraint constraint(InstId a, InstId b) const;
  bool defined_before(ValueId a, ValueId b) const;
  // Are all of these uses over before the value is written? `of` what: in one instruction they are where it can write
  // over what it reads.
  bool uses_before_definition(std::span<const ValueUse> uses, ValueId value) const;
  // Is the instruction in what the computation, or what it calls, runs?
  bool nested_in(InstId i, CompId c) const;
  // The instruction of that computation that runs it, itself where it is one of them; invalid where there is none.
  InstId only_caller(CompId c) const { return caller_[c.value]; }

 private:
  std::pair<InstId, InstId> ancestors(InstId a, InstId b) const;
  int branch_of(InstId i, InstId conditional) const;
  bool executes_before(InstId a, InstId b) const;
  bool phi_of_parameter(ValueId v) const;
  struct Exclusive {
    bool used = false, escaped = false;  // in a branch beside the value's; out of its branch
  };
  bool use_before_definition(const ValueUse& use, ValueId value, Exclusive* state) const;
  bool use_by_caller(const ValueUse& use, ValueId value, Exclusive* state) const;

  const Module& m_;
  const Dataflow& flow_;
  const AliasInfo& aliases_;
  Reachability reachability_;
  std::vector<InstId> caller_;   // the only one, by computation; else invalid
  std::vector<uint32_t> depth_;  // of callers
};

}  // namespace hlo
