// What a program needs at least by an order of its computations, all of them at once
// (xla/service/heap_simulator/heap_simulator.cc, MinimumMemoryForModule).
#include <algorithm>
#include <set>
#include <tuple>

#include "ir/analysis/dataflow/buffers.h"
#include "ir/base/stack_guard.h"
#include "ir/sharding/aliasing.h"
#include "passes/schedule/memory_scheduler.h"

namespace hlo {
namespace {

// When a value is there, by places in the flattened order, both ends included (xla/hlo/utils/hlo_live_range.cc).
struct LiveRange {
  int64_t first = -1, last = -1;
  bool known() const { return first >= 0; }
};

class HeapSimulator {
 public:
  HeapSimulator(const Module& m, const Orders& orders, const Dataflow& flow, const AliasInfo& aliases)
      : m_(m), flow_(flow), aliases_(aliases), buffers_(flow, aliases, true), ranges_(flow.size()) {
    for (const auto& [c, order] : orders) orders_[c] = &order;
  }

  int64_t run() {
    flatten(m_.entry());
    find_ranges();
    one_at_a_time();
    group_.resize(flow_.size()), size_.assign(flow_.size(), 0);
    for (ValueId v = 0; v < flow_.size(); ++v) {
      const ValueId buffer = buffers_.of(v);
      group_[v] = buffer;
      if (flow_.somewhere(v)) size_[buffer] = std::max(size_[buffer], bytes(v));
    }
    simulate();
    return most_;
  }

 private:
  // What is called in the course of an instruction comes in front of it; each computation once.
  void flatten(CompId c) {
    check_stack("calls of computations are nested");
    auto found = orders_.find(c);
    if (found == orders_.end() || spans_.contains(c)) return;
    const int64_t begin = next_;
    for (InstId i : *found->second) {
      const Opcode op = m_.op(i);
      if (op == Opcode::While) {
        flatten(m_.attrs(i).comp(Attr::condition));
        flatten(m_.attrs(i).comp(Attr::body));
      } else if (op == Opcode::Call || op == Opcode::Conditional || op == Opcode::AsyncStart) {
        for (CompId callee : m_.called(i)) flatten(callee);
      }
      place_[i] = next_++;
    }
    spans_[c] = {begin, next_};
  }
  int64_t place(InstId i) const {
    auto at = place_.find(i);
    return at == place_.end() ? -1 : at->second;
  }
  bool is_root(InstId i) const { return m_.comp(m_.parent(i)).root == i; }

  void find_ranges() {
    std::set<std::pair<InstId, uint32_t>> given;  // arguments that results may lie in
    const Computation& entry = m_.comp(m_.entry());
    for (const AliasEntry& e : parse_aliases(m_.config().input_output_alias))
      if (e.number >= 0 && static_cast<size_t>(e.number) < entry.params.size()) {
        const InstId p = entry.params[static_cast<size_t>(e.number)];
        given.emplace(p, flow_.nodes().at(m_.shape_id(p), e.index));
      }
    for (ValueId v = 0; v < flow_.size(); ++v) {
      const InstId by = flow_[v].inst;
      if (!flow_.somewhere(v) || place(by) < 0) continue;
      const auto [begin, end] = spans_.at(m_.parent(by));
      LiveRange& r = ranges_[v];
      const bool parameter = m_.op(by) == Opcode::Parameter;
      r.first = parameter ? begin : place(by);
      r.last = is_root(by) ? end : place(by);
      if (parameter && m_.parent(by) == m_.entry() && !given.contains({by, flow_[v].node})) r.last = next_;
      for (const ValuePosition& p : flow_.positions(v).subspan(1))
        if (place(p.inst) >= 0)
          r.last = std::max(r.last, is_root(p.inst) ? spans_.at(m_.parent(p.inst)).second : place(p.inst));
      for (const ValueUse& use : flow_.uses(v)) r.last = std::max(r.last, last_read(use.inst));
    }
  }
  // A call reads by what it calls, a loop as soon as its body begins.
  int64_t last_read(InstId user) const {
    if (m_.op(user) == Opcode::Call && spans_.contains(m_.called(user)[0])) return -1;
    if (m_.op(user) == Opcode::While)
      if (const CompId body = m_.attrs(user).comp(Attr::body); spans_.contains(body))
        return place(m_.comp(body).params[0]);
    return place(user);
  }
  // Values of one buffer hand it on: each ends where the next begins.
  void one_at_a_time() {
    for (ValueId buffer = 0; buffer < flow_.size(); ++buffer) {
      std::vector<ValueId> list;
      for (ValueId v : buffers_.values(buffer))
        if (ranges_[v].known()) list.push_back(v);
      in_time(&list);
      for (size_t k = 0; k + 1 < list.size(); ++k) {
        LiveRange &a = ranges_[list[k]], &b = ranges_[list[k + 1]];
        b.last = std::max(a.last, b.last);
        a.last = std::min(a.last, b.first);
      }
    }
  }
  void in_time(std::vector<ValueId>* values) const {
    std::sort(values->begin(), values->end(), [&](ValueId a, ValueId b) {
      return std::tuple(ranges_[a].first, ranges_[a].last, a) < std::tuple(ranges_[b].first, ranges_[b].last, b);
    });
  }

  int64_t bytes(ValueId v) const {
    constexpr int64_t kPointer = 8;
    const Shape& s = m_.u()[flow_[v].shape];
    return s.is_tuple() ? kPointer * static_cast<int64_t>(s.elements.size()) : m_.u().byte_size(flow_[v].shape);
  }
  ValueId find(ValueId v) {
    while (group_[v] != v) v = group_[v] = group_[group_[v]];
    return v;
  }
  int64_t size(ValueId v) { return size_[find(v)]; }
  void add(ValueId v) { most_ = std::max(most_, live_ += size(v)); }

  // Constants are elsewhere.
  bool counts(ValueId v) const { return ranges_[v].known() && m_.op(flow_[v].inst) != Opcode::Constant; }

  void simulate() {
    std::vector<std::vector<ValueId>> begins(static_cast<size_t>(next_) + 1);
    ends_.resize(static_cast<size_t>(next_) + 1);
    std::vector<ValueId> list;
    for (ValueId v = 0; v < flow_.size(); ++v)
      if (counts(v)) list.push_back(v);
    in_time(&list);
    for (ValueId v : list) {
      begins[static_cast<size_t>(ranges_[v].first)].push_back(v);
      ends_[static_cast<size_t>(ranges_[v].last)].push_back(v);
    }
    std::vector<bool> has_place(flow_.size(), false);  // by buffer
    for (size_t t = 0; t < begins.size(); ++t) {
      for (ValueId v : begins[t]) {
        const ValueId buffer = buffers_.of(v);
        // What another value of the buffer has is counted anew where this one begins: both are there then.
        if (!has_place[buffer] && alone(v) && takes_over(v, t)) continue;
        has_place[buffer] = true;
        add(v);
      }
      for (ValueId v : ends_[t]) live_ -= size(v);
    }
  }
  bool alone(ValueId v) const { return buffers_.values(buffers_.of(v)).size() == 1; }

  // The value takes the place of an operand that ends where it begins.
  bool takes_over(ValueId v, size_t t) {
    const InstId by = flow_[v].inst;
    if (m_.op(by) == Opcode::Copy) return false;
    std::vector<ValueId>& ends = ends_[t];
    for (InstId o : m_.operands(by)) {
      const ValueId from = flow_.at(o);
      const auto ended = std::find(ends.begin(), ends.end(), from);
      if (!alone(from) || !counts(from) || ranges_[from].last != static_cast<int64_t>(t) || ended == ends.end())
        continue;
      const auto operands = m_.operands(by);
      const auto made = std::find(operands.begin(), operands.end(), flow_[from].inst);
      if (made == operands.end()) continue;
      const ValueUse use{by, static_cast<uint32_t>(made - operands.begin()), flow_[from].node};
      if (!aliases_.can_share(flow_, use, by, flow_[v].node)) continue;
      live_ -= size(from);
      ends.erase(ended);
      const ValueId a = find(from), b = find(v);
      size_[a] = std::max(size_[a], size_[b]);
      group_[b] = a;
      add(v);
      ranges_[from].last = ranges_[v].last;
      return true;
    }
    return false;
  }

  const Module& m_;
  const Dataflow& flow_;
  const AliasInfo& aliases_;
  const SharedBuffers buffers_;
  std::unordered_map<CompId, const std::vector<InstId>*> orders_;
  std::unordered_map<CompId, std::pair<int64_t, int64_t>> spans_;
  std::unordered_map<InstId, int64_t> place_;
  int64_t next_ = 0;
  std::vector<LiveRange> ranges_;
  std::vector<ValueId> group_;  // values in one place
  std::vector<int64_t> size_;   // by group
  std::vector<std::vector<ValueId>> ends_;
  int64_t live_ = 0, most_ = 0;
};

}  // namespace

int64_t minimum_memory(const Module& m, const Orders& orders, const Dataflow& flow, const AliasInfo& aliases) {
  return HeapSimulator(m, orders, flow, aliases).run();
}

}  // namespace hlo
