#include "passes/schedule/memory_scheduler.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_set>

#include "ir/marks.h"
#include "ir/verify/verifier.h"
#include "passes/backend/backend.h"
#include "passes/passes.h"

namespace hlo {
namespace {

// Parameters and constants are there anyway.
bool is_ignored(const Module& m, InstId i) { return m.op(i) == Opcode::Parameter || m.op(i) == Opcode::Constant; }

int64_t bytes_of(const Module& m, ShapeId shape) { return m.u().byte_size(shape); }

class ListOrder {
 public:
  ListOrder(const Module& m, CompId c, const PointsTo& points)
      : m_(m), order_(m.live_order(c)), place_(m.inst_slots()), state_(order_.size()) {
    const auto [first, end] = points.of(c);
    for (size_t k = 0; k < order_.size(); ++k) place_.set(order_[k], static_cast<uint32_t>(k));
    for (State& s : state_) s.ready = queue_.end();
    buffers_.resize(end - first);
    for (BufferId b = first; b < end; ++b) {
      buffers_[b - first].bytes = bytes_of(m, points[b].shape);
      buffers_[b - first].ignored = is_ignored(m, points[b].inst);
      if (!buffers_[b - first].ignored) of(points[b].inst).defined += buffers_[b - first].bytes;
    }
    for (InstId i : order_) {
      State& s = of(i);
      s.group = group_of(i, points, first);
      Readers& group = readers_[s.group];
      ++group.left, group.rest ^= i.value;
      s.before += static_cast<uint32_t>(m.control_preds(i).size());
      for (InstId user : m.users(i)) ++of(user).before;
    }
    for (BufferId b : points.of(m.comp(c).root))
      if (b >= first && b < end) buffers_[b - first].lives_on = true;
  }

  std::vector<InstId> run() {
    for (InstId i : order_)
      if (of(i).before == 0) add(i);
    std::vector<InstId> out;
    out.reserve(order_.size());
    while (!queue_.empty()) {
      const auto best = std::prev(queue_.end());
      const InstId i = best->second;
      queue_.erase(best);
      of(i).ready = queue_.end();
      out.push_back(i);
      std::vector<InstId> last_users = take(i);
      for (InstId user : m_.users(i))
        if (--of(user).before == 0) add(user);
      for (InstId next : m_.control_succs(i))
        if (--of(next).before == 0) add(next);
      again(i, std::move(last_users));
    }
    return out;
  }

 private:
  struct Buffer {
    int64_t bytes = 0;
    uint32_t groups = 0;  // of readers, those of which some have no place yet
    uint32_t rest = 0;    // the numbers of these groups, combined: of the last one, its own
    bool ignored = false, lives_on = false;
  };
  // Instructions that read the same buffers, all of them: the elements of one tuple, of which there may be any number.
  struct Readers {
    size_t first = 0, count = 0;  // of uses_
    size_t left = 0;              // those that have no place yet
    uint32_t rest = 0;            // their numbers, combined
  };
  using Priority = std::pair<int64_t, int64_t>;
  using Queue = std::multimap<Priority, InstId>;
  struct State {
    int64_t defined = 0;    // bytes
    uint32_t before = 0;    // how many have to come first
    uint32_t group = 0;     // of readers_
    Queue::iterator ready;  // the queue's end: it is not there
  };

  State& of(InstId i) { return state_[place_[i]]; }
  uint32_t group_of(InstId i, const PointsTo& points, BufferId first) {
    const auto number = static_cast<uint32_t>(readers_.size());
    if (m_.operand_count(i) == 1 && m_.shape(m_.operand(i, 0)).is_tuple()) {
      auto [at, fresh] = by_tuple_.try_emplace(m_.operand(i, 0), number);
      if (!fresh) return at->second;
    }
    const size_t begin = uses_.size();
    for (InstId o : m_.operands(i))
      for (BufferId b : points.of(o))
        if (b >= first && b < first + buffers_.size()) uses_.push_back(b - first);
    const auto from = uses_.begin() + static_cast<ptrdiff_t>(begin);
    std::sort(from, uses_.end());
    uses_.erase(std::unique(from, uses_.end()), uses_.end());
    readers_.push_back({begin, uses_.size() - begin});
    for (uint32_t b : buffers_of(readers_.back())) ++buffers_[b].groups, buffers_[b].rest ^= number;
    return number;
  }
  std::span<const uint32_t> buffers_of(const Readers& group) const { return {uses_.data() + group.first, group.count}; }
  // Is one instruction left that reads it, and nobody behind?
  bool one_left(const Buffer& buffer) const {
    return !buffer.lives_on && buffer.groups == 1 && readers_[buffer.rest].left == 1;
  }

  Priority priority(InstId i) {
    constexpr int64_t kFirst = std::numeric_limits<int64_t>::max();
    if (m_.shape(i).is_effective_scalar()) return {kFirst, kFirst};
    int64_t freed = 0;
    if (const Readers& group = readers_[of(i).group]; group.left == 1)
      for (uint32_t b : buffers_of(group))
        if (!buffers_[b].ignored && one_left(buffers_[b])) freed += buffers_[b].bytes;
    return {freed - of(i).defined, static_cast<int64_t>(m_.user_count(i))};
  }
  void add(InstId i) { of(i).ready = queue_.emplace(priority(i), i); }

  // The instruction has its place: who is left alone with one of its buffers?
  std::vector<InstId> take(InstId i) {
    std::vector<InstId> out;
    const uint32_t number = of(i).group;
    Readers& group = readers_[number];
    group.rest ^= i.value;
    if (--group.left > 1) return out;
    for (uint32_t b : buffers_of(group)) {
      Buffer& buffer = buffers_[b];
      if (group.left == 0) --buffer.groups, buffer.rest ^= number;
      if (one_left(buffer)) out.emplace_back(readers_[buffer.rest].rest);
    }
    return out;
  }
  // Those free more now. Of equal priority the one asked last goes first, so they are asked in XLA's order: operands,
  // and the users of each.
  void again(InstId done, std::vector<InstId> list) {
    std::erase_if(list, [&](InstId i) { return of(i).ready == queue_.end(); });
    if (list.empty()) return;
    auto renew = [&](InstId i) {
      const auto at = of(i).ready;
      const Priority now = priority(i);
      if (now == at->first) return;
      of(i).ready = queue_.emplace(now, i);
      queue_.erase(at);
    };
    std::vector<InstId> theirs;  // of the list, users of one operand
    for (InstId o : m_.operands(done)) {
      theirs.clear();
      for (InstId i : list) {
        auto read = m_.operands(i);
        if (std::find(theirs.begin(), theirs.end(), i) == theirs.end() &&
            std::find(read.begin(), read.end(), o) != read.end())
          theirs.push_back(i);
      }
      if (theirs.size() == 1) {  // an array may have as many users as there are layers
        renew(theirs[0]);
      } else if (!theirs.empty()) {
        for (InstId user : m_.users(o))
          if (std::find(theirs.begin(), theirs.end(), user) != theirs.end()) renew(user);
      }
    }
  }

  const Module& m_;
  const std::vector<InstId> order_;
  InstNumbers place_;  // in order_
  std::vector<Buffer> buffers_;
  std::vector<State> state_;      // by place
  std::vector<uint32_t> uses_;    // buffers that instructions read, a group's after another's
  std::vector<Readers> readers_;  // groups
  std::unordered_map<InstId, uint32_t> by_tuple_;
  Queue queue_;
};

}  // namespace

std::vector<InstId> list_order(const Module& m, CompId c, const PointsTo& points) {
  return ListOrder(m, c, points).run();
}

std::vector<InstId> depth_first_order(const Module& m, CompId c, const PointsTo& points) {
  struct Weight {
    int64_t users = 0, bytes = 0;
    bool seen = false, placed = false;
  };
  const std::vector<InstId> plain = m.post_order(c);
  InstNumbers number(m.inst_slots());
  for (size_t k = 0; k < plain.size(); ++k) number.set(plain[k], static_cast<uint32_t>(k));
  std::vector<Weight> weights(plain.size());
  auto of = [&](InstId i) -> Weight& { return weights[number[i]]; };
  std::vector<int64_t> own(plain.size(), 0);
  const auto [first, end] = points.of(c);
  for (BufferId b = first; b < end; ++b) own[number[points[b].inst]] += bytes_of(m, points[b].shape);
  // A way that joins again is counted more than once; these keep the sums from growing without end.
  const int64_t most_users = static_cast<int64_t>(plain.size());
  int64_t most_bytes = 0;
  std::vector<InstId> ops;
  for (InstId i : plain) {
    if (is_ignored(m, i)) continue;
    Weight& w = of(i);
    w.users = std::max<int64_t>(static_cast<int64_t>(m.user_count(i)) - 1, 0);
    w.bytes = own[number[i]];
    most_bytes += w.bytes;
    ops.assign(m.operands(i).begin(), m.operands(i).end());
    std::sort(ops.begin(), ops.end());
    ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
    for (InstId o : ops) w.users += of(o).users, w.bytes += of(o).bytes;
    w.users = std::min(w.users, most_users), w.bytes = std::min(w.bytes, most_bytes);
  }
  auto before = [&](InstId a, InstId b) {
    const Weight &x = of(a), &y = of(b);
    if (x.users != y.users) return x.users > y.users;
    if (x.bytes != y.bytes) return x.bytes > y.bytes;
    return m.inst_name(a) < m.inst_name(b);
  };
  std::vector<InstId> out, next;
  out.reserve(plain.size());
  auto walk = [&](InstId root) {
    std::vector<InstId> stack = {root};
    while (!stack.empty()) {
      const InstId i = stack.back();
      Weight& w = of(i);
      if (w.seen) {
        stack.pop_back();
        if (!w.placed) out.push_back(i), w.placed = true;
        continue;
      }
      w.seen = true;
      next.clear();
      for (InstId o : m.operands(i))
        if (!of(o).seen) next.push_back(o);
      for (InstId p : m.control_preds(i))
        if (!of(p).seen) next.push_back(p);
      std::sort(next.begin(), next.end(), before);
      stack.insert(stack.end(), next.rbegin(), next.rend());
    }
  };
  for (InstId i : m.live_order(c))
    if (m.dead(i) && m.control_succs(i).empty()) walk(i);
  walk(m.comp(c).root);
  return out;
}

namespace {

bool is_start(Opcode op) {
  switch (op) {
    case Opcode::AsyncStart:
    case Opcode::AllGatherStart:
    case Opcode::AllReduceStart:
    case Opcode::CollectivePermuteStart:
    case Opcode::CopyStart:
      return true;
    default:
      return false;
  }
}
bool is_done(Opcode op) {
  switch (op) {
    case Opcode::AsyncDone:
    case Opcode::AllGatherDone:
    case Opcode::AllReduceDone:
    case Opcode::CollectivePermuteDone:
    case Opcode::CopyDone:
      return true;
    default:
      return false;
  }
}

// What runs beside the rest begins as early and is waited for as late as it can be.
std::vector<InstId> spread(const Module& m, const std::vector<InstId>& order) {
  if (std::none_of(order.begin(), order.end(), [&](InstId i) { return is_start(m.op(i)) || is_done(m.op(i)); }))
    return order;
  // Starts: right behind the last of what they need.
  std::vector<InstId> early, late;
  std::unordered_set<InstId> placed;
  auto needs = [&](InstId i, auto f) {
    for (InstId o : m.operands(i)) f(o);
    for (InstId p : m.control_preds(i)) f(p);
  };
  auto place = [&](InstId i, auto& self) -> void {
    early.push_back(i);
    placed.insert(i);
    auto next = [&](InstId user) {
      if (!is_start(m.op(user)) || placed.contains(user)) return;
      bool ready = true;
      needs(user, [&](InstId n) { ready &= placed.contains(n); });
      if (ready) self(user, self);
    };
    for (InstId user : m.users(i)) next(user);
    for (InstId user : m.control_succs(i)) next(user);
  };
  for (InstId i : order)
    if (!placed.contains(i)) place(i, place);
  // Dones: right in front of the first that needs them; seen from behind.
  std::unordered_set<InstId> behind;
  auto place_late = [&](InstId i, auto& self) -> void {
    late.push_back(i);
    behind.insert(i);
    needs(i, [&](InstId n) {
      if (!is_done(m.op(n)) || behind.contains(n)) return;
      bool ready = true;
      for (InstId user : m.users(n)) ready &= behind.contains(user);
      for (InstId user : m.control_succs(n)) ready &= behind.contains(user);
      if (ready) self(n, self);
    });
  };
  for (auto i = early.rbegin(); i != early.rend(); ++i)
    if (!behind.contains(*i) && !(is_done(m.op(*i)) && (m.user_count(*i) > 0 || !m.control_succs(*i).empty())))
      place_late(*i, place_late);
  std::reverse(late.begin(), late.end());
  return late;
}

}  // namespace

Orders memory_orders(const Module& m, const PointsTo& points, const Sharing& sharing, std::array<int64_t, 3>* needed) {
  Orders best;
  size_t tried = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  std::unordered_set<CompId> loops;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (m.op(i) == Opcode::While) loops.insert(m.called(i).begin(), m.called(i).end());
  auto offer = [&](auto order_of) {
    Orders orders;
    std::unordered_map<CompId, int64_t> peaks;
    for (CompId c : m.nonfusion_computations()) {
      std::vector<InstId> order = spread(m, order_of(c));
      HLO_CHECK(order.size() == m.size(c), "{}: {} of {} instructions have a place", m.comp_name(c), order.size(),
                m.size(c));
      if (!sharing.flow) peaks[c] = peak_of_order(m, c, order, points, sharing, peaks, loops.contains(c));
      orders.emplace_back(c, std::move(order));
    }
    const int64_t need = sharing.flow ? minimum_memory(m, orders, *sharing.flow, sharing.aliases) : peaks[m.entry()];
    if (needed) (*needed)[tried++] = need;
    if (need < least) least = need, best = std::move(orders);
  };
  offer([&](CompId c) { return list_order(m, c, points); });
  offer([&](CompId c) { return depth_first_order(m, c, points); });
  offer([&](CompId c) { return m.post_order(c); });
  return best;
}

// XLA runs it outside of any pipeline (xla/service/gpu/gpu_hlo_schedule.cc, ScheduleGpuModule).
//   the instructions of each computation get the order in which they run; is_scheduled=true
bool run_memory_scheduler(Module& m, PassContext& ctx) {
  const InstId root = m.comp(m.entry()).root;
  if (m.config().is_scheduled) return false;
  // Of a module that has its order the layouts count.
  if (const auto wrong = verify_module(m, 1, Layouts::kBinding); !wrong.empty()) {
    ctx.note(m, "not scheduled", {root}, "its layouts are not assigned: " + wrong[0].message);
    return false;
  }
  if (!ctx.spend(m, "an order", {root})) return false;
  {
    const PointsTo points(m, true);
    const Sharing sharing(m, named_gpu_target(ctx.word("gpu")));
    std::array<int64_t, 3> peaks{};
    for (auto& [c, order] : memory_orders(m, points, sharing, &peaks)) m.set_order(c, std::move(order));
    ctx.note(m, "bytes at once", {root},
             fmt::format("{} by what frees most, {} depth first, {} in post order", peaks[0], peaks[1], peaks[2]));
  }
  const std::vector<bool> fused = m.fusion_computation_flags();
  for (CompId c : m.computations())
    if (fused[c.value]) m.set_order(c, m.post_order(c));
  m.set_scheduled(true);
  return true;
}

}  // namespace hlo
