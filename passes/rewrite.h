// Helpers that rewriting passes share; creation order and derived metadata follow xla/service/hlo_creation_utils.cc.
#pragma once
#include <algorithm>
#include <functional>
#include <vector>

#include "ir/types/dims.h"
#include "passes/pass.h"

namespace hlo {

// Calls f on every instruction in DfsHloRewriteVisitor's order: dead ends first, then from the root; operands are read
// at first sight. Instructions may be added and removed while walking.
void visit_computation(Module& m, CompId comp, const std::function<void(InstId)>& f);
// The same of each computation that is no fusion's, again until `f`, which says whether it changed something, finds
// nothing there. True where it did.
bool visit_until_still(Module& m, const std::function<bool(InstId)>& f);
// `f`, which says whether it changed something, on every instruction of computations that are no fusion's, in their
// post order as it was at the start; what died meanwhile is left out. True where something changed.
template <class F>
bool each_instruction(Module& m, F f) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c))
      if (m.alive(i)) changed |= f(i);
  return changed;
}

AttrsId attrs_of(Universe& u, Opcode op, std::initializer_list<std::pair<Attr, AttrValue>> list);
inline AttrsId dims_attr(Universe& u, Opcode op, Dims dims) {
  return attrs_of(u, op, {{Attr::dimensions, std::move(dims)}});
}

// One instruction without metadata, shape inferred where `shape` is invalid.
InstId make(Module& m, CompId comp, Opcode op, std::vector<InstId> operands, AttrsId attrs = {}, ShapeId shape = {});
InstId make_derived(Module& m, InstId from, Opcode op, std::vector<InstId> operands, AttrsId attrs = {},
                    ShapeId shape = {});
// Constant of `like`'s element type, broadcast to its dimensions; both derived from `like`.
InstId make_scalar_like(Module& m, InstId like, ScalarValue value);
InstId make_scalar(Module& m, CompId comp, ElementType type, ScalarValue value);
InstId make_broadcast(Module& m, CompId comp, InstId operand, Dims map, ShapeId shape);
InstId make_reshape(Module& m, InstId operand, Dims dims);           // derived from the operand
InstId make_transpose(Module& m, InstId operand, Dims permutation);  // derived from the operand
InstId make_convert(Module& m, InstId operand, ElementType type);
InstId make_element(Module& m, InstId tuple, int64_t index);  // get-tuple-element
// Instructions of that opcode in all computations but fused ones, in post order; those with control dependencies stay
// out.
std::vector<InstId> all_of_opcode(Module& m, Opcode op);
// The same of those that fit.
std::vector<InstId> all_of_opcode(Module& m, Opcode op, const std::function<bool(InstId)>& fits);
// `%name (lhs, rhs) { ROOT op(lhs, rhs) }` on scalars of that type.
CompId make_reducer(Module& m, std::string_view name, Opcode op, ElementType type, std::string_view lhs = "lhs",
                    std::string_view rhs = "rhs");

// The callee's instructions in the place of `call`, its parameters being `arguments`; `prefix`: op_names get the call's
// in front. False where the result cannot stand there (another shape): copies are left unused then.
bool inline_computation(Module& m, InstId call, CompId callee, std::span<const InstId> arguments, bool prefix);

// Constant all of whose elements have that value, or a broadcast of one.
bool is_all(const Module& m, InstId id, double value);
bool is_constant(const Module& m, InstId id);
bool is_scalar_constant(const Module& m, InstId id);  // one element, any rank
// broadcast(constant).
bool is_broadcast_of_constant(const Module& m, InstId id);
bool is_broadcast_of_scalar_constant(const Module& m, InstId id);

Dims inverse_permutation(const Dims& p);
bool is_identity(const Dims& p);
// Would the reshape move no bytes (layouts honoured)?
bool reshape_is_bitcast(const Universe& u, ShapeId from, ShapeId to);
bool transpose_is_bitcast(const Universe& u, ShapeId from, ShapeId to, const Dims& permutation);
// Dimensions of `from` that the reshape keeps unmodified, as (from, to).
std::vector<std::pair<int64_t, int64_t>> unmodified_dims(const Dims& from, const Dims& to);

}  // namespace hlo
