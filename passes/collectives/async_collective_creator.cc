// async-collective-creator (xla/hlo/transforms/collectives/async_collective_creator.cc), as XLA's GPU asks for it: all
// messages, whatever their size, with opcodes of their own where there are such.
#include <fmt/format.h>

#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

bool is_message(Opcode op) {
  switch (op) {
    case Opcode::AllGather:
    case Opcode::AllReduce:
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
    case Opcode::RaggedAllToAll:
    case Opcode::ReduceScatter:
      return true;
    default:
      return false;
  }
}

struct StartDone {
  InstId start, done;
};

// The operands' shapes: of one operand its own, of several a tuple. What is sent into an array that is there already
// has that array and the places in both behind the one that is sent.
ShapeId operands_shape(const Module& m, InstId i, bool always_tuple) {
  std::vector<ShapeId> parts;
  if (m.attrs(i).has(Attr::slice_sizes)) return m.shape_id(m.operand(i, 0));
  for (InstId o : m.operands(i)) parts.push_back(m.shape_id(o));
  return parts.size() == 1 && !always_tuple ? parts[0] : m.u().tuple(std::move(parts));
}

// What a start's own opcode takes of the message's attributes: all but those that any instruction may have.
AttrsId attributes_of_message(const Module& m, InstId i, Opcode start) {
  AttrSet set;
  set.op = start;
  for (const auto& [key, value] : m.attrs(i).list)
    if (key < Attr::sharding) set.set(key, value);
  return m.u().attrs(std::move(set));
}

StartDone with_own_opcode(Module& m, InstId i, Opcode start, Opcode done) {
  const ShapeId shape =
      start == Opcode::AllReduceStart ? m.shape_id(i) : m.u().tuple({operands_shape(m, i, false), m.shape_id(i)});
  const std::vector<InstId> operands(m.operands(i).begin(), m.operands(i).end());
  const InstId s = make_derived(m, i, start, operands, attributes_of_message(m, i, start), shape);
  return {s, make_derived(m, i, done, {s}, {}, m.shape_id(i))};
}

StartDone with_computation(Module& m, InstId i) {
  Universe& u = m.u();
  const CompId parent = m.parent(i), body = m.add_computation("async_computation");
  const std::vector<InstId> operands(m.operands(i).begin(), m.operands(i).end());
  std::vector<InstId> parameters;
  for (size_t k = 0; k < operands.size(); ++k)
    parameters.push_back(
        m.parameter(body, static_cast<int64_t>(k), m.shape_id(operands[k]), fmt::format("param_{}", k)));
  m.set_root(body, m.clone_inst(i, body, parameters));
  const std::string name(op_text(m.op(i))), start_name = name + "-start", done_name = name + "-done";
  const InstId start = m.add(parent, {.op = Opcode::AsyncStart,
                                      .shape = u.tuple({operands_shape(m, i, true), m.shape_id(i)}),
                                      .operands = operands,
                                      .attrs = attrs_of(u, Opcode::AsyncStart, {{Attr::calls, body}}),
                                      .name = start_name});
  const InstId done =
      m.add(parent, {.op = Opcode::AsyncDone, .shape = m.shape_id(i), .operands = {start}, .name = done_name});
  for (InstId part : {start, done})
    if (const StrId text = m.attrs(i).text(Attr::frontend_attributes); text.valid())
      m.set_attr(part, Attr::frontend_attributes, AttrValue(text));
  return {start, done};
}

StartDone started(Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::AllReduce:
      return with_own_opcode(m, i, Opcode::AllReduceStart, Opcode::AllReduceDone);
    case Opcode::AllGather:
      return with_own_opcode(m, i, Opcode::AllGatherStart, Opcode::AllGatherDone);
    case Opcode::CollectivePermute:
      return with_own_opcode(m, i, Opcode::CollectivePermuteStart, Opcode::CollectivePermuteDone);
    default:
      return with_computation(m, i);
  }
}

StartDone replace_message(Module& m, InstId i) {
  const StartDone made = started(m, i);
  const auto [start, done] = made;
  for (InstId part : {start, done}) {
    m.set_meta(part, m[i].meta);
    if (const StrId text = m.attrs(i).text(Attr::backend_config); text.valid())
      m.set_attr(part, Attr::backend_config, AttrValue(text));
  }
  // What was to wait for the message waits for its end, it waits at its start.
  const std::vector<InstId> before(m.control_preds(i).begin(), m.control_preds(i).end()),
      after(m.control_succs(i).begin(), m.control_succs(i).end());
  m.drop_control(i);
  for (InstId p : before) m.add_control(p, start);
  for (InstId s : after) m.add_control(done, s);
  m.replace(i, done);
  return made;
}

}  // namespace

//   %r = all-gather(A)                  %s = (A's, r's) all-gather-start(A)
//                              →        %r = all-gather-done(%s)
//   %r = reduce-scatter(A)              %s = ((A's), r's) async-start(A), calls={ ROOT reduce-scatter(param_0) }
//                              →        %r = async-done(%s)
bool run_async_collective_creator(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::AllGather, Opcode::AllReduce, Opcode::AllToAll, Opcode::CollectiveBroadcast,
                  Opcode::CollectivePermute, Opcode::RaggedAllToAll, Opcode::ReduceScatter}))
    return false;
  const std::vector<std::vector<InstId>> callers = m.callers();
  bool changed = false;
  for (CompId c : m.nonfusion_computations()) {
    // What an async-start calls runs beside the rest already.
    const std::vector<InstId>& by = callers[c.value];
    if (std::any_of(by.begin(), by.end(), [&](InstId i) { return m.op(i) == Opcode::AsyncStart; })) continue;
    std::vector<InstId> order;  // of a scheduled computation, with start and done where the message was
    bool here = false;
    for (InstId i : m.live_order(c)) {
      if (!is_message(m.op(i)) || !ctx.spend(m, "started and waited for", {i})) {
        order.push_back(i);
        continue;
      }
      const auto [start, done] = replace_message(m, i);
      order.insert(order.end(), {start, done});
      here = true;
    }
    if (here && m.config().is_scheduled) m.set_order(c, std::move(order)), ctx.keep_order(c);
    changed |= here;
  }
  return changed;
}

}  // namespace hlo
