// triangular-solve-rewriter (xla/service/gpu/transforms/triangular_solve_rewriter.cc).
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr int64_t kPointer = 8;

// Of several matrices cuBLAS is given tables of where they lie, A's and B's, in memory of its own.
int64_t bytes_of_tables(const Shape& s) {
  int64_t matrices = 1;
  for (size_t d = 0; d + 2 < s.dims.size(); ++d) matrices *= s.dims[d];
  return matrices == 1 ? 0 : 2 * kPointer * matrices;
}

}  // namespace

//   x = f32[4,48,32]{1,2,0} triangular-solve(A, B), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
//     →
//   call = (f32[4,48,32]{1,2,0}, s8[64]) custom-call(A, B), custom_call_target="__cublas$triangularSolve",
//   backend_config={"left_side":true,"lower":true,"unit_diagonal":false,"transpose_a":"NO_TRANSPOSE"}
//   x = f32[4,48,32]{1,2,0} get-tuple-element(call), index=0
bool run_triangular_solve_rewriter(Module& m, PassContext& ctx) {
  Universe& u = m.u();
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::TriangularSolve)) {
    if (!ctx.spend(m, "a call of cuBLAS", {i})) return changed;
    const AttrSet& a = m.attrs(i);
    const std::string_view transposed = u.text(a.text(Attr::transpose_a));
    AttrSet set;
    set.op = Opcode::CustomCall;
    set.set(Attr::custom_call_target, u.str("__cublas$triangularSolve"));
    set.set(Attr::backend_config,
            u.str(fmt::format(R"({{"left_side":{},"lower":{},"unit_diagonal":{},"transpose_a":"{}"}})",
                              a.flag(Attr::left_side), a.flag(Attr::lower), a.flag(Attr::unit_diagonal),
                              transposed.empty() ? "TRANSPOSE_INVALID" : transposed)));
    if (const StrId text = a.text(Attr::frontend_attributes); text.valid())
      set.set(Attr::frontend_attributes, AttrValue(text));
    const ShapeId scratch = u.array(ElementType::S8, {bytes_of_tables(m.shape(m.operand(i, 1)))});
    const InstId call = m.add(m.parent(i), {.op = Opcode::CustomCall,
                                            .shape = u.tuple({m.shape_id(i), scratch}),
                                            .operands = {m.operand(i, 0), m.operand(i, 1)},
                                            .attrs = u.attrs(std::move(set)),
                                            .meta = m[i].meta,
                                            .name = "triangular-solve"});
    const AttrsId first = attrs_of(u, Opcode::GetTupleElement, {{Attr::index, int64_t{0}}});
    changed |= m.replace(i, make(m, m.parent(i), Opcode::GetTupleElement, {call}, first, m.shape_id(i)));
  }
  return changed;
}

}  // namespace hlo
