// Which values a module's instructions hold, through calls, loops and branches (xla/hlo/analysis/
// hlo_dataflow_analysis.h in SSA form): each array and each tuple that something makes is one value, and where two can
// arrive, a phi. Bitcasts, tuples' elements and whatever only hands a value on hold what they read.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/analysis/dataflow/points_to.h"

namespace hlo {

using ValueId = uint32_t;

// A part of an instruction's result; nodes are numbered by ShapeNodes.
struct ValuePosition {
  InstId inst;
  uint32_t node = 0;
  bool operator==(const ValuePosition&) const = default;
};

// An operand of an instruction that reads the value, which is that part of it. What only passes it on (a tuple, an
// element of one, a copy of what is around it) is no use of it, but the root of a computation that leaves with it is.
struct ValueUse {
  InstId inst;
  uint32_t operand = 0, node = 0;
  bool operator==(const ValueUse&) const = default;
};

struct DataflowValue {
  InstId inst;  // that defines it; a phi: the loop, its bodies' parameters or the conditional where values meet
  uint32_t node = 0;
  ShapeId shape;
  bool phi = false;
};

// The computation that is called twice for its result (by while, conditional, call, async-start), where there is one:
// flatten-call-graph has not run. Invalid: none.
CompId called_twice(const Module& m);

// Of the computations that are no bodies of fusions. A snapshot: what is asked later is told of the module as it was,
// except who its roots are. Throws Failure(kUnsupported) where a computation is called twice.
class Dataflow {
 public:
  explicit Dataflow(const Module& m);

  // The values of an instruction's parts, by node.
  std::span<const ValueId> of(InstId i) const {
    const Range& r = ranges_[i.value];
    return {sets_.data() + r.first, r.count};
  }
  ValueId at(InstId i, uint32_t node = 0) const { return sets_[ranges_[i.value].first + node]; }
  const DataflowValue& operator[](ValueId v) const { return values_[v]; }
  size_t size() const { return values_.size(); }
  // Phis that turned out to be one value are nowhere.
  bool somewhere(ValueId v) const { return same_[v] == v; }
  // Where it is, first where it is defined, then in the order of computations and instructions.
  std::span<const ValuePosition> positions(ValueId v) const {
    return {positions_.data() + first_position_[v], first_position_[v + 1] - first_position_[v]};
  }
  // As they are when it is first asked.
  const std::vector<ValueUse>& uses(ValueId v) const;
  // Is it a part of what the computation's root, as it is now, gives?
  bool leaves(ValueId v, CompId c) const;

  const Module& module() const { return m_; }
  ShapeNodes& nodes() const { return nodes_; }

 private:
  struct Range {
    size_t first = 0, count = 0;
  };
  struct Phi {
    ValueId value;
    std::vector<ValueId> inputs;
  };
  void flow(CompId c);
  void visit(InstId i);
  ValueId define(InstId i, uint32_t node, ShapeId shape, bool phi = false);
  void hold(InstId i, std::vector<ValueId> values);
  std::vector<ValueId> all_new(InstId i, bool phi = false);
  std::vector<ValueId> parts_of(InstId i, uint32_t node, uint32_t count) const;
  void take(std::vector<ValueId>* out, uint32_t node, InstId from, uint32_t from_node, uint32_t count) const;
  void while_loop(InstId i);
  void conditional(InstId i);
  void asynchronous(InstId i);
  void send_or_receive(InstId i);
  void collective_start(InstId i);
  void forget_needless_phis();
  ValueId same(ValueId v);
  void find_positions();
  using Reader = std::pair<InstId, uint32_t>;  // with the slot
  std::vector<Reader> find_readers(InstId i, bool whole) const;
  const std::vector<Reader>& readers(InstId i, bool whole) const;  // until the next call
  void add_slots(InstId user, InstId i, std::vector<Reader>* out) const;

  const Module& m_;
  mutable ShapeNodes nodes_;
  std::vector<Range> ranges_;
  std::vector<ValueId> sets_;
  std::vector<DataflowValue> values_;
  std::vector<Phi> phis_;
  std::vector<ValueId> same_;
  std::vector<bool> flowed_;
  std::vector<size_t> first_position_;
  std::vector<ValuePosition> positions_;
  // Slots that read an instruction: of the whole, or of what is in it.
  mutable std::unordered_map<InstId, std::vector<Reader>> whole_readers_, part_readers_;
  mutable std::vector<Reader> last_readers_;
  mutable std::unordered_map<InstId, std::unordered_map<InstId, std::vector<uint32_t>>> slots_;  // of wide users
  mutable std::unordered_map<InstId, std::unordered_set<ValueId>> at_root_;
  mutable std::unordered_map<ValueId, std::vector<ValueUse>> uses_;
};

}  // namespace hlo
