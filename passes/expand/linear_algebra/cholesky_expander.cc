// cholesky_expander (xla/hlo/transforms/expanders/cholesky_expander.cc): in blocks of 128 columns.
#include "passes/expand/linear_algebra/matrices.h"

namespace hlo {
namespace {

// Each trip finishes one column of L; lower ones keep what is below the diagonal. Also whether a root was no number.
std::vector<InstId> cholesky_unblocked(Client& at, InstId a) {
  const Dims dims = at.dims(a);
  ElementType type = at.type(a);
  if (dims.back() == 1) {
    InstId root = at.op(Opcode::Sqrt, {is_complex(type) ? at.op(Opcode::Real, {a}) : a});
    InstId value = root;
    if (is_complex(type)) value = at.op(Opcode::Complex, {root, at.filled(component_type(type), 0.0, dims)});
    return {value, at.compare(root, root, "NE")};
  }
  auto rank = static_cast<int64_t>(dims.size());
  int64_t n = dims.back();
  Dims batch(dims.begin(), dims.end() - 2), one = dims;
  one[one.size() - 1] = one[one.size() - 2] = 1;
  InstId l = at.filled(type, 0.0, dims);
  InstId bad = at.filled(ElementType::Pred, int64_t{0}, one);
  std::vector<InstId> out = at.loop(n, {a, l, bad}, "unblocked", [&](Client& b, InstId i, std::vector<InstId>& s) {
    InstId rows = b.iota(ElementType::S32, dims, rank - 2), columns = b.iota(ElementType::S32, dims, rank - 1);
    InstId below = b.compare(rows, columns, "GE");
    InstId here = b.compare(columns, b.broadcast(i, dims, {}), "EQ");
    InstId mask = b.op(Opcode::And, {below, here});
    InstId rest = b.op(Opcode::Subtract, {s[0], b.product(s[1], b.conjugated(s[1]), 1, 1)});
    InstId diagonal = b.dynamic_slice_minor(rest, {i, i}, {1, 1});
    InstId root = b.op(Opcode::Sqrt, {is_complex(type) ? b.op(Opcode::Real, {diagonal}) : diagonal});
    InstId divisor = is_complex(type) ? b.op(Opcode::Complex, {root, b.filled(component_type(type), 0.0, one)}) : root;
    Dims lead = Client::upto(batch.size());
    InstId quotient = b.op(Opcode::Divide, {rest, b.broadcast(b.reshape(divisor, batch), dims, lead)});
    InstId column = b.op(Opcode::Select, {mask, quotient, b.filled(type, 0.0, dims)});
    InstId next = b.op(Opcode::Add, {column, s[1]});
    return std::vector<InstId>{s[0], next, b.op(Opcode::Or, {s[2], b.compare(root, root, "NE")})};
  });
  return {out[1], out[2]};
}

CompId cholesky_computation(Module& m, InstId i) {
  Universe& u = m.u();
  bool lower = m.attrs(i).flag(Attr::lower);
  Client b(m,
           m.add_computation(fmt::format("xla.cholesky_{}_{}", operands_signature(m, i), lower ? "lower" : "upper")));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(i, 0)), "a");
  if (!lower) a = b.transposed(a);
  const Dims dims = b.dims(a);
  int64_t n = dims.back();
  ElementType type = b.type(a);
  Dims one = dims;
  one[one.size() - 1] = one[one.size() - 2] = 1;
  InstId l = b.filled(type, 0.0, dims);
  InstId bad = b.filled(ElementType::Pred, int64_t{0}, one);
  for (int64_t k = 0; k < n; k += kMatrixBlock) {
    int64_t width = std::min(kMatrixBlock, n - k);
    InstId panel = b.slice_minor(a, {k, k}, {n, k + width});
    if (k > 0) {
      InstId left = b.slice_minor(l, {k, 0}, {n, k}), right = b.slice_minor(l, {k, 0}, {k + width, k});
      panel = b.op(Opcode::Subtract, {panel, b.product(left, b.conjugated(right), 1, 1)});
    }
    std::vector<InstId> block = cholesky_unblocked(b, b.slice_minor(panel, {0, 0}, {width, width}));
    bad = b.op(Opcode::Or, {bad, block[1]});
    l = b.update_minor(l, block[0], {k, k});
    if (k + width >= n) break;
    InstId under = b.slice_minor(panel, {width, 0}, {n - k, width});
    InstId solved =
        make(m, b.comp, Opcode::TriangularSolve, {block[0], under},
             attrs_of(u, Opcode::TriangularSolve, {{Attr::lower, true}, {Attr::transpose_a, u.str("ADJOINT")}}),
             m.shape_id(under));
    l = b.update_minor(l, solved, {k + width, k});
  }
  InstId everywhere = b.stretched(bad, dims, Client::upto(dims.size()));
  InstId root = b.op(Opcode::Select, {everywhere, b.filled(type, NAN, dims), l});
  m.set_root(b.comp, lower ? root : b.transposed(root));
  return b.comp;
}

}  // namespace

bool run_cholesky_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Cholesky)) return false;
  return replace_by_calls(
      m, ctx, "cholesky by columns",
      [&](InstId i) {
        if (m.op(i) != Opcode::Cholesky) return std::string();
        return fmt::format("{} {}", operands_signature(m, i), m.attrs(i).flag(Attr::lower));
      },
      [&](InstId i) { return cholesky_computation(m, i); });
}

}  // namespace hlo
