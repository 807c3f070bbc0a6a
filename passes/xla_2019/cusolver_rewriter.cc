// cusolver-rewriter (2019; tensorflow/compiler/xla/service/gpu/cusolver_rewriter.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// Why a decomposition is none of the library's; at types that it lacks XLA's compilation ended.
std::string_view kept_from_cusolver(const Shape& s) {
  const bool known = s.type == ElementType::F32 || s.type == ElementType::F64 || s.type == ElementType::C64 ||
                     s.type == ElementType::C128;
  if (!known) return "element type";
  if (s.is_dynamic()) return "dynamic dimensions";
  return s.elements_count() == 0 ? "no elements" : "";
}

// The library reads and writes matrices column by column, one after the other.
ShapeId column_by_column(Universe& u, ShapeId shape) {
  const ShapeId plain = u.with_default_layout(shape);
  Dims order = u[plain].layout.minor_to_major;
  std::swap(order[0], order[1]);
  return u.with_layout(plain, order);
}

}  // namespace

//   c = f32[b,n,n] cholesky(A), lower=true
//     →
//   call = (f32[b,n,n]{1,2,0}, f32[0], s32[b]) custom-call(A), custom_call_target="__cusolver$cholesky",
//   operand_layout_constraints={f32[b,n,n]{1,2,0}}, backend_config={"lower":true}
//   c = f32[b,n,n] get-tuple-element(call), index=0
// Behind the factors: memory that the library works in, and an error code a matrix, which nobody reads. How much memory
// XLA asked the library on the device; here it is none, as a note says.
bool run_cusolver_rewriter(Module& m, PassContext& ctx) {
  Universe& u = m.u();
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Cholesky)) {
    const Shape s = m.shape(i);
    if (std::string_view why = kept_from_cusolver(s); !why.empty()) {
      ctx.note(m, "stays a Cholesky decomposition", {i}, why);
      continue;
    }
    if (!ctx.spend(m, "a call of cuSOLVER", {i})) return changed;
    const InstId a = m.operand(i, 0);
    const ShapeId laid_out = column_by_column(u, m.shape_id(a));
    int64_t matrices = 1;
    for (size_t d = 0; d + 2 < s.dims.size(); ++d) matrices *= s.dims[d];
    AttrSet set;
    set.op = Opcode::CustomCall;
    set.set(Attr::custom_call_target, u.str("__cusolver$cholesky"));
    set.set(Attr::operand_layout_constraints, std::vector<ShapeId>{laid_out});
    set.set(Attr::backend_config, u.str(m.attrs(i).flag(Attr::lower) ? "{\"lower\":true}" : "{\"lower\":false}"));
    const ShapeId results[] = {laid_out, u.array(s.type, {0}), u.array(ElementType::S32, {matrices})};
    const InstId call = m.add(m.parent(i), {.op = Opcode::CustomCall,
                                            .shape = u.tuple({results[0], results[1], results[2]}),
                                            .operands = {a},
                                            .attrs = u.attrs(std::move(set)),
                                            .meta = m[i].meta});
    ctx.note(m, "the library's memory counts nothing", {call}, "its size is asked of a device");
    const AttrsId first = attrs_of(u, Opcode::GetTupleElement, {{Attr::index, int64_t{0}}});
    changed |= m.replace(i, make(m, m.parent(i), Opcode::GetTupleElement, {call}, first, m.shape_id(i)));
  }
  return changed;
}

}  // namespace hlo
