// tuple-simplifier (xla/hlo/transforms/simplifiers/tuple_simplifier.cc).
#include "passes/rewrite.h"

namespace hlo {
namespace {

//   t = (A, B) tuple(get-tuple-element(p), index=0, get-tuple-element(p), index=1)      →      p
bool whole_tuple(Module& m, PassContext& ctx, InstId tuple) {
  InstId source;
  auto ops = m.operands(tuple);
  if (ops.empty()) return false;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (m.op(ops[i]) != Opcode::GetTupleElement || m.attrs(ops[i]).integer(Attr::index) != static_cast<int64_t>(i))
      return false;
    InstId from = m.operand(ops[i], 0);
    if (i == 0) {
      source = from;
      if (!m.u().compatible(m.shape_id(source), m.shape_id(tuple))) return false;
    } else if (from != source) {
      return false;
    }
  }
  if (m.has_control(tuple) || !ctx.spend(m, "tuple of all elements", {tuple, source})) return false;
  return m.replace(tuple, source, {.preserve_sharding = true});
}

//   get-tuple-element(tuple(a, b)), index=1      →      b       (through chains)
bool element(Module& m, PassContext& ctx, InstId gte) {
  std::vector<int64_t> path;
  InstId at = gte;
  while (m.op(at) == Opcode::GetTupleElement) path.push_back(m.attrs(at).integer(Attr::index)), at = m.operand(at, 0);
  while (!path.empty()) {
    if (m.op(at) != Opcode::Tuple) return false;
    at = m.operand(at, static_cast<size_t>(path.back()));
    path.pop_back();
  }
  if (at == gte || !ctx.spend(m, "element of a tuple", {gte, at})) return false;
  return m.replace(gte, at, {.preserve_sharding = true, .relay_control = true});
}

}  // namespace

bool run_tuple_simplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i)) continue;
      if (m.op(i) == Opcode::Tuple)
        changed |= whole_tuple(m, ctx, i);
      else if (m.op(i) == Opcode::GetTupleElement)
        changed |= element(m, ctx, i);
    }
  return changed;
}

}  // namespace hlo
