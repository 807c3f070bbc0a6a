// What runs before what (xla/hlo/analysis/hlo_ordering.h), as far as operands and control dependencies say it, and with
// it whether one value's life ends before another's begins.
#pragma once
#include <span>
#include <vector>

#include "ir/analysis/dataflow/alias_info.h"
#include "ir/analysis/dataflow/dataflow.h"

namespace hlo {

// Which instruction of a computation needs which, by operands and control dependencies as they were when it was made;
// of a scheduled module, which runs first.
// Ranges of what both need tell most apart. Else small computations have a bit for each two instructions, made when
// first asked; in large ones the answer comes by looking along the operands until a chain is met of which both are.
class Reachability {
 public:
  explicit Reachability(const Module& m);
  // Does b come behind a, because of what it needs? Both in one computation; of one and the same: no.
  bool before(InstId a, InstId b) const;

 private:
  static constexpr size_t kFew = 16384;  // instructions of a small computation: 32 MB of bits
  struct Bits {
    uint32_t first_rank = 0, count = 0;
    std::vector<uint64_t> words;  // a row for each instruction: what it needs
  };
  const Bits* bits_of(InstId i) const;
  bool along_operands(InstId a, InstId b) const;

  std::vector<uint32_t> first_;  // of an instruction's predecessors
  std::vector<InstId> before_, order_;
  std::vector<uint32_t> rank_, lowest_, level_, computation_;
  std::vector<uint32_t> chain_, place_;  // each instruction of a chain needs the one before it
  mutable std::vector<Bits> bits_;       // by computation
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
