// loop-schedule-linearizer (xla/service/loop_schedule_linearizer.cc).
#include <algorithm>
#include <unordered_set>

#include "ir/analysis/dataflow/dataflow.h"
#include "ir/analysis/schedule/messages.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// An order of a computation that holds operands and control dependencies and takes one more after the other: where a
// new one goes against it, what lies between both moves (Pearce and Kelly's algorithm).
class KeptOrder {
 public:
  KeptOrder(const Module& m, CompId c) : m_(m) {
    for (InstId i : m.post_order(c)) place_.emplace(i, place_.size());
  }
  // False where `before` needs `after`: nothing is changed then.
  bool insert(InstId before, InstId after) {
    const size_t low = place_.at(after), high = place_.at(before);
    if (high < low) return true;
    std::vector<InstId> behind, ahead;
    if (!collect(after, before, &behind, [&](InstId i, auto&& visit) {
          for (InstId user : m_.users(i))
            if (place_.at(user) <= high) visit(user);
          for (InstId s : m_.control_succs(i))
            if (place_.at(s) <= high) visit(s);
        }))
      return false;
    collect(before, InstId(), &ahead, [&](InstId i, auto&& visit) {
      for (InstId o : m_.operands(i))
        if (place_.at(o) >= low) visit(o);
      for (InstId p : m_.control_preds(i))
        if (place_.at(p) >= low) visit(p);
    });
    auto by_place = [&](InstId a, InstId b) { return place_.at(a) < place_.at(b); };
    std::sort(behind.begin(), behind.end(), by_place), std::sort(ahead.begin(), ahead.end(), by_place);
    ahead.insert(ahead.end(), behind.begin(), behind.end());
    std::vector<size_t> places;
    for (InstId i : ahead) places.push_back(place_.at(i));
    std::sort(places.begin(), places.end());
    for (size_t k = 0; k < ahead.size(); ++k) place_[ahead[k]] = places[k];
    return true;
  }

 private:
  // What can be reached, itself included; false where that is `forbidden`.
  template <typename Neighbours>
  bool collect(InstId from, InstId forbidden, std::vector<InstId>* out, Neighbours&& neighbours) const {
    std::unordered_set<InstId> seen{from};
    out->push_back(from);
    for (size_t k = 0; k < out->size(); ++k) {
      if ((*out)[k] == forbidden) return false;
      neighbours((*out)[k], [&](InstId i) {
        if (seen.insert(i).second) out->push_back(i);
      });
    }
    return true;
  }

  const Module& m_;
  std::unordered_map<InstId, size_t> place_;
};

bool has_async_collective(const Module& m, CompId body) {
  for (InstId i : m.live_order(body)) {
    const Opcode op = m.op(i);
    if (op == Opcode::Send || op == Opcode::SendDone || op == Opcode::Recv || op == Opcode::RecvDone) return true;
    if (starts_message(m, i) || ends_message(m, i)) return true;
  }
  return false;
}

// What reads an element of the state as the trip found it goes before what makes the one that the trip leaves, so that
// both can lie in one place:
//   body(p) { x = gte(p), index=1; a = f(x); b = g(x); ROOT tuple(…, b) }      →      b … control-predecessors={a}
bool order_writes(Module& m, PassContext& ctx, const Dataflow& flow, InstId loop) {
  const CompId body = m.attrs(loop).comp(Attr::body);
  const InstId state = m.comp(body).params[0], root = m.comp(body).root;
  KeptOrder order(m, body);
  bool changed = false;
  const auto& shapes = flow.nodes().shapes(m.shape_id(loop));
  for (uint32_t node = 1; node < shapes.size(); ++node) {
    const ValueId in = flow.at(state, node), out = flow.at(root, node);
    if (in == out || m.u()[flow[out].shape].is_tuple()) continue;
    const InstId write = flow[out].inst;
    for (const ValueUse& use : flow.uses(in)) {
      const InstId read = use.inst;
      if (read == write || m.parent(read) != body || m.parent(write) != body) continue;
      auto behind = m.control_succs(read);
      if (std::find(behind.begin(), behind.end(), write) != behind.end() || !order.insert(read, write)) continue;
      if (!ctx.spend(m, "read before it is overwritten", {read, write})) return changed;
      m.add_control(read, write);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool run_loop_schedule_linearizer(Module& m, PassContext& ctx) {
  if (const CompId twice = called_twice(m); twice.valid()) {
    ctx.note(m, "no order", {}, fmt::format("{} is called twice: flatten-call-graph comes first", m.comp_name(twice)));
    return false;
  }
  std::vector<InstId> loops;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c))
      if (m.op(i) == Opcode::While && !has_async_collective(m, m.attrs(i).comp(Attr::body))) loops.push_back(i);
  if (loops.empty()) return false;
  const Dataflow flow(m);
  bool changed = false;
  for (InstId loop : loops) changed |= order_writes(m, ctx, flow, loop);
  return changed;
}

}  // namespace hlo
