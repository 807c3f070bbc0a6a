#include "passes/backend/memory_scheduler.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_set>

#include "ir/verifier.h"
#include "passes/backend/backend.h"
#include "passes/passes.h"

namespace hlo {
namespace {

// Parameters and constants are there anyway.
bool is_ignored(const Module& m, InstId i) { return m.op(i) == Opcode::Parameter || m.op(i) == Opcode::Constant; }

int64_t bytes_of(const Module& m, ShapeId shape) { return m.u().byte_size(shape); }

class ListOrder {
 public:
  ListOrder(const Module& m, CompId c, const PointsTo& points) : m_(m), points_(points), order_(m.live_order(c)) {
    const auto [first, end] = points.of(c);
    first_ = first;
    buffers_.resize(end - first);
    for (BufferId b = first; b < end; ++b) {
      buffers_[b - first].bytes = bytes_of(m, points[b].shape);
      buffers_[b - first].ignored = is_ignored(m, points[b].inst);
      if (!buffers_[b - first].ignored) defined_[points[b].inst] += buffers_[b - first].bytes;
    }
    for (InstId i : order_) {
      std::vector<uint32_t> used;
      for (InstId o : m.operands(i))
        for (BufferId b : points.of(o))
          if (b >= first && b < end) used.push_back(b - first);
      std::sort(used.begin(), used.end());
      used.erase(std::unique(used.begin(), used.end()), used.end());
      for (uint32_t b : used) ++buffers_[b].uses, buffers_[b].rest ^= i.value;
      uses_[i] = std::move(used);
      before_[i] += m.control_preds(i).size();
      for (InstId user : m.users(i)) ++before_[user];
    }
    std::unordered_set<BufferId> results;
    for (BufferId b : points.of(m.comp(c).root))
      if (b >= first && b < end && results.insert(b).second)
        ++buffers_[b - first].uses, buffers_[b - first].lives_on = true;
  }

  std::vector<InstId> run() {
    for (InstId i : order_)
      if (before_[i] == 0) add(i);
    std::vector<InstId> out;
    while (!queue_.empty()) {
      const auto best = std::prev(queue_.end());
      const InstId i = best->second;
      queue_.erase(best);
      ready_.erase(i);
      out.push_back(i);
      std::vector<InstId> last_users = take(i);
      for (InstId user : m_.users(i))
        if (--before_[user] == 0) add(user);
      for (InstId next : m_.control_succs(i))
        if (--before_[next] == 0) add(next);
      again(i, std::move(last_users));
    }
    return out;
  }

 private:
  struct Buffer {
    int64_t bytes = 0;
    int64_t uses = 0;   // by instructions that have no place yet; one more where the computation's result holds it
    uint32_t rest = 0;  // the numbers of these instructions, combined: of the last one, its own
    bool ignored = false, lives_on = false;
  };
  using Priority = std::pair<int64_t, int64_t>;
  using Queue = std::multimap<Priority, InstId>;

  Priority priority(InstId i) const {
    constexpr int64_t kFirst = std::numeric_limits<int64_t>::max();
    if (m_.shape(i).is_effective_scalar()) return {kFirst, kFirst};
    int64_t freed = 0;
    for (uint32_t b : uses_.at(i))
      if (!buffers_[b].ignored && buffers_[b].uses == 1) freed += buffers_[b].bytes;
    auto defined = defined_.find(i);
    return {freed - (defined == defined_.end() ? 0 : defined->second), static_cast<int64_t>(m_.user_count(i))};
  }
  void add(InstId i) { ready_[i] = queue_.emplace(priority(i), i); }

  // The instruction has its place: who is left alone with one of its buffers?
  std::vector<InstId> take(InstId i) {
    std::vector<InstId> out;
    for (uint32_t b : uses_.at(i)) {
      Buffer& buffer = buffers_[b];
      buffer.rest ^= i.value;
      if (--buffer.uses == 1 && !buffer.lives_on) out.emplace_back(buffer.rest);
    }
    return out;
  }
  // Those free more now. Of equal priority the one asked last goes first, so they are asked in XLA's order: operands,
  // and the users of each.
  void again(InstId done, std::vector<InstId> list) {
    std::erase_if(list, [&](InstId i) { return !ready_.contains(i); });
    if (list.empty()) return;
    std::unordered_set<InstId> wanted(list.begin(), list.end());
    auto renew = [&](InstId i) {
      const auto at = ready_.at(i);
      const Priority now = priority(i);
      if (now == at->first) return;
      ready_[i] = queue_.emplace(now, i);
      queue_.erase(at);
    };
    if (wanted.size() == 1) {
      auto theirs = m_.operands(list[0]);
      for (InstId o : m_.operands(done))
        if (std::find(theirs.begin(), theirs.end(), o) != theirs.end()) return renew(list[0]);
      return;
    }
    for (InstId o : m_.operands(done))
      for (InstId user : m_.users(o))
        if (wanted.contains(user)) renew(user);
  }

  const Module& m_;
  const PointsTo& points_;
  const std::vector<InstId> order_;
  BufferId first_ = 0;
  std::vector<Buffer> buffers_;
  std::unordered_map<InstId, int64_t> defined_;
  std::unordered_map<InstId, std::vector<uint32_t>> uses_;
  std::unordered_map<InstId, size_t> before_;
  Queue queue_;
  std::unordered_map<InstId, Queue::iterator> ready_;
};

}  // namespace

std::vector<InstId> list_order(const Module& m, CompId c, const PointsTo& points) {
  return ListOrder(m, c, points).run();
}

std::vector<InstId> depth_first_order(const Module& m, CompId c, const PointsTo& points) {
  struct Weight {
    int64_t users = 0, bytes = 0;
  };
  std::unordered_map<InstId, Weight> weights;
  std::unordered_map<InstId, int64_t> own;
  const auto [first, end] = points.of(c);
  for (BufferId b = first; b < end; ++b) own[points[b].inst] += bytes_of(m, points[b].shape);
  const std::vector<InstId> plain = m.post_order(c);
  // A way that joins again is counted more than once; these keep the sums from growing without end.
  const int64_t most_users = static_cast<int64_t>(plain.size());
  int64_t most_bytes = 0;
  for (InstId i : plain) {
    Weight& w = weights[i];
    if (is_ignored(m, i)) continue;
    w.users = std::max<int64_t>(static_cast<int64_t>(m.user_count(i)) - 1, 0);
    w.bytes = own[i];
    most_bytes += w.bytes;
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
    std::sort(ops.begin(), ops.end());
    ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
    Weight sum = w;
    for (InstId o : ops) sum.users += weights[o].users, sum.bytes += weights[o].bytes;
    weights[i] = {std::min(sum.users, most_users), std::min(sum.bytes, most_bytes)};
  }
  auto before = [&](InstId a, InstId b) {
    const Weight &x = weights[a], &y = weights[b];
    if (x.users != y.users) return x.users > y.users;
    if (x.bytes != y.bytes) return x.bytes > y.bytes;
    return m.inst_name(a) < m.inst_name(b);
  };
  std::vector<InstId> out;
  std::unordered_map<InstId, bool> seen;  // true: it has its place
  auto walk = [&](InstId root) {
    std::vector<InstId> stack = {root};
    while (!stack.empty()) {
      const InstId i = stack.back();
      auto [at, fresh] = seen.try_emplace(i, false);
      if (!fresh) {
        stack.pop_back();
        if (!at->second) out.push_back(i), at->second = true;
        continue;
      }
      std::vector<InstId> next;
      for (InstId o : m.operands(i))
        if (!seen.contains(o)) next.push_back(o);
      for (InstId p : m.control_preds(i))
        if (!seen.contains(p)) next.push_back(p);
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
