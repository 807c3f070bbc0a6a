// rematerialization (xla/hlo/transforms/simplifiers/hlo_rematerialization.cc), as XLA's GPU asks for it: one
// instruction at a time, computed again (its compact shapes are the shapes themselves, nothing goes to the host).
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/base/checked.h"
#include "ir/base/stack_guard.h"
#include "ir/sharding/aliasing.h"
#include "ir/target/gpu_target.h"
#include "passes/collectives/collectives.h"
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "passes/schedule/remat_memory.h"

namespace hlo {
namespace {

// Bodies are copied with their fusions: more than this XLA would hardly live through either.
constexpr size_t kMostCopied = 20'000'000;
// Each choice looks at all that is alive, each copy at all readers of what it reads: some seconds.
constexpr int64_t kMostWork = 1'000'000'000;
// No machine has as much, and a few times as much is a number still.
constexpr int64_t kMostBytes = int64_t{1} << 60;

bool runs_computations(Opcode op) {
  return op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call || op_info(op).cls == OpClass::Async;
}

Checked bytes_with_tuples(const Module& m, ShapeNodes& nodes, ShapeId shape) {
  Checked sum = 0;
  for (ShapeId part : nodes.shapes(shape)) sum += m.u().bytes(part);
  return sum;
}

// For what runs on the card beside arguments and results (GetSchedulerMemoryLimit of
// xla/service/gpu/gpu_hlo_schedule.cc); 0 where those alone are too much.
int64_t card_limit(const Module& m, int64_t card, ShapeNodes& nodes) {
  const int64_t base = card / 100 * 80 + card % 100 * 80 / 100;
  Checked sum = 0;
  for (InstId p : m.comp(m.entry()).params) sum += bytes_with_tuples(m, nodes, m.shape_id(p));
  const ShapeId result = m.shape_id(m.comp(m.entry()).root);
  sum += bytes_with_tuples(m, nodes, result);
  int64_t both = sum.capped();
  for (const AliasEntry& e : parse_aliases(m.config().input_output_alias))
    if (const uint32_t node = nodes.at(result, e.output); node < nodes.count(result))
      both -= m.u().byte_size(nodes.shapes(result)[node]);
  return both > base ? 0 : (base - both) / 100 * 95 + (base - both) % 100 * 95 / 100;
}

// Computations that run as the program does, callees first.
std::vector<CompId> run_in_turn(const Module& m) {
  std::unordered_set<CompId> reached{m.entry()};
  std::vector<CompId> out;
  const std::vector<CompId> all = m.computation_post_order();
  for (auto c = all.rbegin(); c != all.rend(); ++c) {
    if (!reached.contains(*c)) continue;
    out.push_back(*c);
    for (InstId i : m.live_order(*c))
      if (runs_computations(m.op(i))) reached.insert(m.called(i).begin(), m.called(i).end());
  }
  std::reverse(out.begin(), out.end());
  return out;
}

// All that the program ever makes, at once; most have room for that. The most that there may be where a computation is
// called twice, whose results are there twice.
int64_t bytes_altogether(const Module& m, ShapeNodes& nodes) {
  Checked sum = 0;
  std::unordered_set<CompId> called;
  for (CompId c : run_in_turn(m))
    for (InstId i : m.live_order(c)) {
      sum += bytes_with_tuples(m, nodes, m.shape_id(i));
      if (!runs_computations(m.op(i))) continue;
      for (CompId callee : m.called(i))
        if (!called.insert(callee).second) sum += kMostBytes;
    }
  return sum.capped();
}

class Rematerialization {
 public:
  Rematerialization(Module& m, PassContext& ctx) : m_(m), ctx_(ctx), points_(m, true) {}

  // XLA hands the pass the program's results on top of this limit and takes them off again.
  bool run(int64_t limit) {
    for (CompId c : run_in_turn(m_)) {
      Checked sum = 0;
      for (InstId i : m_.live_order(c)) sum += bytes_with_tuples(m_, points_.nodes(), m_.shape_id(i));
      if (sum.capped() > kMostBytes) {
        ctx_.note(m_, "left: more bytes than can be counted", {m_.comp(c).root});
        return false;
      }
      peak_[c] = peak_in_order(c);
    }
    return within(m_.entry(), limit);
  }

 private:
  int64_t inside(InstId i) const {
    int64_t sum = 0;
    if (!runs_computations(m_.op(i))) return 0;
    for (CompId c : m_.called(i))
      if (const auto known = peak_.find(c); known != peak_.end()) sum = std::min(sum + known->second, kMostBytes);
    return sum;
  }
  int64_t peak_in_order(CompId c) const {
    RematMemory memory(m_, c, points_);
    int64_t peak = 0;
    for (ItemId at = memory.first(); at != kNoItem; at = memory.next(at)) {
      memory.begin(at);
      peak = std::max(peak, memory.usage() + inside(memory.inst(at)));
      memory.end();
    }
    return peak;
  }

  // Has the computation need no more than that, as far as it goes.
  bool within(CompId c, int64_t limit) {
    check_stack("loops within loops");
    if (peak_.at(c) <= limit) return false;
    RematMemory memory(m_, c, points_);
    std::unordered_set<InstId> moved;
    bool here = false, below = false;
    int64_t peak = 0;
    for (ItemId at = memory.first(); at != kNoItem; at = memory.next(at)) {
      const InstId i = memory.inst(at);
      memory.begin(at);
      if (memory.bytes_made(at) + inside(i) > 0)
        while (memory.usage() + inside(i) > limit && one(memory, i, limit, moved)) here = true;
      if (memory.usage() + inside(i) > limit && runs_computations(m_.op(i)))
        for (CompId callee : std::vector<CompId>(m_.called(i)))
          if (peak_.contains(callee) && !done_.contains(callee))
            below |= within(callee, std::max<int64_t>(0, limit - memory.usage()));
      peak = std::max(peak, memory.usage() + inside(i));
      memory.end();
    }
    peak_[c] = peak;
    work_ += memory.work();
    done_.insert(c);
    if (here) m_.set_order(c, memory.order()), ctx_.keep_order(c);
    return here || below;
  }

  // What wins the most is computed again; false where nothing is left that wins anything.
  bool one(RematMemory& memory, InstId at, int64_t limit, std::unordered_set<InstId>& moved) {
    if (stopped_) return false;
    const RematMemory::Candidate best = memory.best(limit);
    if (best.item == kNoItem) return false;
    const InstId i = memory.inst(best.item);
    if (m_.op(i) == Opcode::Fusion) copied_ += m_.size(m_.called(i)[0]);
    stopped_ = copied_ > kMostCopied || work_ + memory.work() > kMostWork;
    if (stopped_) {
      ctx_.note(m_, "left: too much to copy and to compare", {i});
      return false;
    }
    stopped_ = !ctx_.spend(m_, "computed again", {i, at},
                           fmt::format("{} bytes less, of {}; the limit is {}", best.bytes, memory.usage(), limit));
    if (stopped_) return false;
    compute_again(memory, best.item, moved);
    return true;
  }

  InstId copy_of(InstId i) {
    const std::vector<InstId> operands(m_.operands(i).begin(), m_.operands(i).end());
    const InstId copy = m_.clone_inst(i, m_.parent(i), operands, {}, "remat");
    if (m_.op(i) == Opcode::Fusion) m_.replace_called(copy, m_.called(i)[0], m_.clone_computation(m_.called(i)[0], ""));
    if (m_.attrs(i).integer(Attr::channel_id) > 0)
      m_.set_attr(copy, Attr::channel_id, AttrValue(next_channel(m_, &channel_)));
    const std::vector<InstId> before(m_.control_preds(i).begin(), m_.control_preds(i).end()),
        after(m_.control_succs(i).begin(), m_.control_succs(i).end());
    for (InstId p : before) m_.add_control(p, copy);
    for (InstId s : after) m_.add_control(copy, s);
    return copy;
  }

  // Readers to come read the copy, through elements and bitcasts of its own where they read it so.
  std::vector<ItemId> redirect_readers(RematMemory& memory, ItemId item, InstId copy) {
    const CompId c = m_.parent(copy);
    std::vector<ItemId> relays;
    std::unordered_map<int64_t, InstId> elements;
    auto relay = [&](const Module::NewInst& made) {
      const InstId i = m_.add(c, made);
      relays.push_back(memory.add_item(i));
      return i;
    };
    for (const RematMemory::Use& use : memory.uses(item)) {
      const InstId user = memory.inst(use.user);
      if (memory.placed(user)) continue;
      const InstId had = m_.operand(user, use.operand);
      const ShapeId shape = m_.shape_id(had);
      InstId now = copy;
      if (now == had) continue;
      if (use.element >= 0 && m_.shape_id(now) != shape) {
        InstId& element = elements[use.element];
        if (!element.valid())
          element = relay({.op = Opcode::GetTupleElement,
                           .shape = m_.shape(copy).elements[static_cast<size_t>(use.element)],
                           .operands = {copy},
                           .attrs = attrs_of(m_.u(), Opcode::GetTupleElement, {{Attr::index, use.element}}),
                           .name = "gte.remat"});
        now = element;
      }
      if (m_.shape_id(now) != shape)
        now = relay({.op = Opcode::Bitcast, .shape = shape, .operands = {now}, .name = "bitcast.remat"});
      m_.set_operand(user, use.operand, now);
    }
    return relays;
  }

  // In front of its first reader, and of whatever is still to read what it reads: so nothing lives longer.
  std::vector<ItemId> places(RematMemory& memory, InstId copy, const std::vector<ItemId>& relays) const {
    std::vector<ItemId> out;
    const std::unordered_set<ItemId> own(relays.begin(), relays.end());
    auto readers_of = [&](InstId i) {
      for (InstId user : m_.users(i))
        if (const ItemId item = memory.item(user); !own.contains(item)) out.push_back(item);
    };
    readers_of(copy);
    for (ItemId relay : relays) readers_of(memory.inst(relay));
    for (InstId o : m_.operands(copy)) {
      memory.worked(m_.user_count(o));
      for (InstId user : m_.users(o))
        if (user != copy && !memory.placed(user)) out.push_back(memory.item(user));
    }
    for (InstId s : m_.control_succs(copy)) out.push_back(memory.item(s));
    return out;
  }

  // Elements and bitcasts of it may be left that nobody reads.
  bool read_by_nobody(InstId i) const {
    std::vector<InstId> stack{i};
    while (!stack.empty()) {
      const InstId at = stack.back();
      stack.pop_back();
      for (InstId user : m_.users(at)) {
        if (m_.op(user) != Opcode::Bitcast && m_.op(user) != Opcode::GetTupleElement) return false;
        stack.push_back(user);
      }
    }
    return true;
  }

  void compute_again(RematMemory& memory, ItemId item, std::unordered_set<InstId>& moved) {
    const InstId best = memory.inst(item), copy = copy_of(best);
    const ItemId again = memory.add_item(copy);
    const std::vector<ItemId> relays = redirect_readers(memory, item, copy);
    memory.computed_again(item, again, relays);
    const std::vector<ItemId> before = places(memory, copy, relays);
    memory.insert_before(again, before);
    for (ItemId relay : relays) memory.insert_before(relay, before);
    if (read_by_nobody(best)) {  // a move: not twice
      if (moved.contains(best)) memory.deny(copy);
      moved.insert(copy);
    }
    for (ItemId relay : relays) memory.deny(memory.inst(relay));
  }

  Module& m_;
  PassContext& ctx_;
  PointsTo points_;  // of the module as it was
  std::unordered_map<CompId, int64_t> peak_;
  std::unordered_set<CompId> done_;
  bool stopped_ = false;
  size_t copied_ = 0;
  int64_t channel_ = 0;
  int64_t work_ = 0;  // in computations that are done
};

}  // namespace

// Where more memory is needed than there is:
//   a = f(x); … ; r = g(a)      →      a = f(x); … ; a.remat = f(x); r = g(a.remat)          a's memory is free between
bool run_rematerialization(Module& m, PassContext& ctx) {
  if (!m.config().is_scheduled) return false;
  bool changed = false;
  const int64_t given = ctx.number("memory"), of_gpu = named_gpu_target(ctx.word("gpu")).device_memory_size;
  if (const int64_t card = given ? given : of_gpu) {
    ShapeNodes nodes(m.u());
    const int64_t limit = card_limit(m, card, nodes);
    if (bytes_altogether(m, nodes) > limit) changed = Rematerialization(m, ctx).run(limit);
  } else {
    ctx.note(m, "left: the GPU's memory is unknown", {});
  }
  while (ctx.run(m, "dce")) changed = true;
  return changed;
}

}  // namespace hlo
