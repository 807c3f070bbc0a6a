// The most that is alive at once (xla/service/heap_simulator/heap_simulator.cc, without fragmentation).
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "ir/marks.h"
#include "passes/schedule/memory_scheduler.h"

namespace hlo {
namespace {

class Peak {
 public:
  Peak(const Module& m, CompId c, const std::vector<InstId>& order, const PointsTo& points, const Sharing& sharing,
       const std::unordered_map<CompId, int64_t>& inner, bool in_loop)
      : m_(m),
        c_(c),
        in_loop_(in_loop),
        order_(order),
        points_(points),
        sharing_(sharing),
        inner_(inner),
        place_(m.inst_slots()) {}

  int64_t run() {
    std::tie(first_, end_) = points_.of(c_);
    const size_t n = end_ - first_;
    start_.assign(n, 0), stop_.assign(n, 0);
    group_.resize(n);
    std::iota(group_.begin(), group_.end(), 0);
    for (size_t t = 0; t < order_.size(); ++t) place_.set(order_[t], static_cast<uint32_t>(t));
    for (size_t b = 0; b < n; ++b) {
      const InstId by = points_[buffer(b)].inst;
      start_[b] = stop_[b] = place_[by];
      // The caller has the program's arguments all the time.
      if (m_.op(by) == Opcode::Parameter && c_ == m_.entry()) start_[b] = 0, stop_[b] = order_.size();
    }
    InstNumbers last(m_.inst_slots());  // reader; a tuple's elements may be as many as its parts
    for (uint32_t t = 0; t < order_.size(); ++t)
      for (InstId o : m_.operands(order_[t])) last.set(o, t);
    for (uint32_t t = 0; t < order_.size(); ++t)
      for (InstId o : m_.operands(order_[t]))
        if (last[o] == t) end_at(o, t);
    end_at(m_.comp(c_).root, order_.size());
    aliased_.assign(n, false);
    for (InstId i : order_) must_share(i);
    if (c_ != m_.entry()) {
      for (InstId p : m_.comp(c_).params) mark(p);
      mark(m_.comp(c_).root);
    }
    return sweep();
  }

 private:
  BufferId buffer(size_t b) const { return first_ + static_cast<BufferId>(b); }
  void end_at(InstId of, size_t t) {
    for (BufferId b : points_.of(of))
      if (b >= first_ && b < end_) stop_[b - first_] = std::max(stop_[b - first_], t);
  }
  size_t find(size_t b) {
    while (group_[b] != b) b = group_[b] = group_[group_[b]];
    return b;
  }
  void join(size_t a, size_t b) {
    a = find(a), b = find(b);
    if (a == b) return;
    group_[b] = a;
    start_[a] = std::min(start_[a], start_[b]), stop_[a] = std::max(stop_[a], stop_[b]);
  }
  void mark(InstId i) {
    for (BufferId b : points_.of(i))
      if (here(b)) aliased_[b - first_] = true;
  }
  void unite(BufferId a, BufferId b) {
    if (!here(a) || !here(b)) return;
    aliased_[a - first_] = aliased_[b - first_] = true;
    join(a - first_, b - first_);
  }
  // A loop's state, and what is overwritten where it is.
  void must_share(InstId i) {
    if (m_.op(i) == Opcode::While) return join_parts(m_.operand(i, 0), i);
    for (const InPlacePair& p : sharing_.aliases.in_place(i)) {
      auto from = points_.of(m_.operand(i, p.operand)), to = points_.of(i);
      if (p.operand_node < from.size() && p.result_node < to.size()) unite(from[p.operand_node], to[p.result_node]);
    }
  }
  void join_parts(InstId a, InstId b) {
    auto from = points_.of(a), to = points_.of(b);
    for (size_t k = 0; k < from.size() && k < to.size(); ++k) unite(from[k], to[k]);
  }
  bool here(BufferId b) const { return b >= first_ && b < end_; }

  // Constants are elsewhere. A loop's computations count its state, while they have it; what another callee is given
  // and gives its caller counts.
  bool counts(size_t b) const {
    const Opcode op = m_.op(points_[buffer(b)].inst);
    return op != Opcode::Constant && (op != Opcode::Parameter || c_ == m_.entry() || in_loop_);
  }
  // What is called in the course of an instruction: its own most, in the place of what both count.
  int64_t beside(InstId i, const std::vector<bool>& there) {
    int64_t most = 0;
    const bool loop = m_.op(i) == Opcode::While;
    if (!loop && m_.op(i) != Opcode::Conditional && m_.op(i) != Opcode::Call) return 0;
    for (CompId callee : m_.called(i))
      if (auto at = inner_.find(callee); at != inner_.end()) most = std::max(most, at->second);
    if (!loop) return most;
    std::unordered_set<size_t> both;
    for (InstId held : {m_.operand(i, 0), i})
      for (BufferId b : points_.of(held))
        if (here(b)) both.insert(find(b - first_));
    int64_t counted = 0;
    for (size_t g : both)
      if (there[g] || (c_ == m_.entry() && m_.op(points_[buffer(g)].inst) == Opcode::Parameter)) counted += bytes(g);
    return std::max<int64_t>(most - counted, 0);
  }

  int64_t sweep() {
    const size_t n = end_ - first_;
    std::vector<bool> there(n, false);
    if (c_ != m_.entry() && !in_loop_)
      for (BufferId b : points_.of(m_.comp(c_).root))
        if (here(b)) there[find(b - first_)] = true;  // counted by the caller
    std::vector<std::vector<size_t>> starts(order_.size() + 1), stops(order_.size() + 1);
    for (size_t b = 0; b < n; ++b) {
      if (!counts(b)) continue;
      if (m_.op(points_[buffer(b)].inst) == Opcode::Parameter && c_ == m_.entry())
        live_ += m_.u().byte_size(points_[buffer(b)].shape);
      else
        starts[place_[points_[buffer(b)].inst]].push_back(b);
    }
    int64_t peak = live_;
    for (size_t t = 0; t < order_.size(); ++t) {
      for (size_t b : starts[t]) {
        const size_t g = find(b);
        if (there[g] || share(order_[t], b, t)) continue;
        there[g] = true;
        live_ += bytes(g);
        stops[stop_[g]].push_back(g);
      }
      peak = std::max(peak, live_ + beside(order_[t], there));
      for (size_t k = 0; k < stops[t].size(); ++k) {
        const size_t g = find(stops[t][k]);
        if (stop_[g] > t) {
          stops[stop_[g]].push_back(g);  // it lives on in another's result
        } else if (there[g]) {
          there[g] = false;
          live_ -= bytes(g);
        }
      }
    }
    return peak;
  }
  int64_t bytes(size_t g) const { return m_.u().byte_size(points_[buffer(g)].shape); }

  // The result's part takes the place of an operand that ends here.
  bool share(InstId by, size_t b, size_t t) {
    if (!sharing_.flow || m_.op(by) == Opcode::Copy || aliased_[b]) return false;
    for (uint32_t n = 0; n < m_.operand_count(by); ++n) {
      const InstId o = m_.operand(by, n);
      auto from = points_.of(o);
      if (from.size() != 1 || !here(from[0]) || aliased_[from[0] - first_] || points_[from[0]].inst != o) continue;
      if (m_.op(o) == Opcode::Constant) continue;
      const size_t g = find(from[0] - first_);
      if (stop_[g] != t || bytes(g) != bytes(find(b)) ||
          !sharing_.aliases.can_share(*sharing_.flow, {by, n, 0}, by, points_[buffer(b)].node))
        continue;
      join(g, b);
      return true;
    }
    return false;
  }

  const Module& m_;
  const CompId c_;
  const bool in_loop_;
  const std::vector<InstId>& order_;
  const PointsTo& points_;
  const Sharing& sharing_;
  const std::unordered_map<CompId, int64_t>& inner_;
  BufferId first_ = 0, end_ = 0;
  std::vector<size_t> start_, stop_, group_;
  std::vector<bool> aliased_;  // with another value: it hands its place on to none
  InstNumbers place_;          // in order_
  int64_t live_ = 0;
};

}  // namespace

int64_t peak_of_order(const Module& m, CompId c, const std::vector<InstId>& order, const PointsTo& points,
                      const Sharing& sharing, const std::unordered_map<CompId, int64_t>& inner, bool in_loop) {
  return Peak(m, c, order, points, sharing, inner, in_loop).run();
}

}  // namespace hlo
