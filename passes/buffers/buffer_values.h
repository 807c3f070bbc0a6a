// What buffer assignments have in common: the values of a scheduled module, which of them are one, and when each is
// alive.
#pragma once
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/dataflow/points_to.h"
#include "ir/base/checked.h"
#include "passes/backend/backend.h"

namespace hlo {

// What hands on the second part of what its operand has started.
inline bool is_message_done(Opcode op) {
  return op == Opcode::AsyncDone || op == Opcode::AllGatherDone || op == Opcode::CollectivePermuteDone;
}

class BufferValues {
 protected:
  BufferValues(const Module& m, const BufferRules& rules) : m_(m), u_(m.u()), rules_(rules), nodes_(m.u()) {}

  // The flattened schedule: position of every instruction, callees inlined at their caller. `done`: the end of the
  // asynchronous call that the computation is a part of.
  void flatten(CompId c, InstId done);
  // Makes the values, and joins those that must share memory (a loop's state with what flows in and what a trip leaves,
  // branches' results).
  void flow(CompId c);
  void flow_async(InstId i, std::vector<int>& list);
  void flow_copy(InstId i, std::vector<int>& list);
  void flow_loop(InstId i, std::vector<int>& list);
  void flow_calls(InstId i, std::vector<int>& list);

  // Is the instruction's result its operand under another name?
  bool alias(InstId i) const;
  // Does it start a message whose first part, what is sent, are its operands as they lie?
  bool sends_operands(InstId i) const;
  int leaves(ShapeId s) const { return static_cast<int>(nodes_.leaves(s)); }
  int leaves_before(ShapeId tuple, size_t k) const { return static_cast<int>(nodes_.leaves_before(tuple, k)); }
  int new_value(InstId i, const Dims& index, ShapeId s);
  int find(int v);
  void join(int a, int b);
  void join(const std::vector<int>& a, const std::vector<int>& b);
  void merge_classes() {
    for (auto& [inst, list] : out_.by_inst)
      for (int& v : list) v = find(v);
  }

  // Until when each leaf of an instruction is read, by whatever name.
  using Ends = std::unordered_map<InstId, std::vector<int64_t>>;
  void last_reads(CompId c, Ends& ends);
  // In the order in which they begin.
  std::vector<CompId> computations() const;
  // Calls f(class, from, to, instruction, which of its arrays) for each time that a value of a class is alive.
  template <typename F>
  void each_life(const F& f) {
    Ends ends;
    const std::vector<CompId> comps = computations();
    for (CompId c : comps) last_reads(c, ends);
    std::unordered_set<CompId> conditions;
    for (CompId c : comps)
      for (InstId i : m_.live_order(c))
        if (m_.op(i) == Opcode::While) conditions.insert(m_.attrs(i).comp(Attr::condition));
    for (CompId c : comps)
      for (InstId i : m_.live_order(c)) {
        const Opcode op = m_.op(i);
        const bool passes = op == Opcode::Tuple || op == Opcode::GetTupleElement || op == Opcode::AsyncUpdate ||
                            is_message_done(op) || op == Opcode::CopyDone || (op != Opcode::Parameter && alias(i));
        if (passes) continue;
        const std::vector<int>& list = out_.by_inst[i];
        for (size_t k = 0; k < list.size(); ++k) {
          // A loop's state is there while its condition looks, whether it looks at all of it or not.
          if (op == Opcode::Parameter)
            f(find(list[k]), comp_start_[c], conditions.contains(c) ? comp_end_[c] : ends[i][k], i, k);
          else
            f(find(list[k]), end_[i], ends[i][k], i, k);
        }
      }
  }
  // Parameters of callees, which are their callers' values.
  bool is_given(InstId i) const { return given_.contains(i); }

  const Module& m_;
  const Universe& u_;
  const BufferRules& rules_;
  mutable ShapeNodes nodes_;
  BufferAssignment out_;
  Checked sum_ = 0;  // bytes of all values
  std::vector<int> class_;
  std::unordered_map<InstId, int64_t> start_, end_;
  std::unordered_map<CompId, int64_t> comp_start_, comp_end_;
  std::unordered_map<CompId, InstId> under_;  // computations of asynchronous calls, and what ends them
  std::unordered_set<InstId> given_;
  int64_t clock_ = 0;

 private:
  InstId done_of(InstId start) const;
  void define(InstId i, ShapeId s, Dims& index, std::vector<int>& list);
  void start_message(InstId i, std::vector<int>& list);
};

constexpr int64_t kBufferAlignment = 256;
// What needs a place while it is there: pieces of time, from and to included.
struct HeapBlock {
  int64_t size = 0, offset = 0;
  std::vector<std::pair<int64_t, int64_t>> times;
};
// The smallest gap that fits, the lowest of equals, for each block in that order: sets their offsets and gives the size
// of the whole. Those that are there at one time do not overlap.
int64_t best_fit(std::vector<HeapBlock>& blocks, const std::vector<int>& order);

}  // namespace hlo
