// triangular_solve_expander (xla/service/triangular_solve_expander.cc): by the inverses of blocks on the diagonal.
#include "passes/expand/linear_algebra/matrices.h"

namespace hlo {
namespace {

// The triangle of x alone, zeros elsewhere; `strict`: without the diagonal.
InstId triangular(Client& b, InstId x, bool lower, bool strict) {
  const Dims dims = b.dims(x);
  auto rank = static_cast<int64_t>(dims.size());
  InstId mask =
      b.broadcast(triangle_mask(b, dims.back(), dims.back(), lower == strict ? -1 : 0), dims, {rank - 2, rank - 1});
  InstId zero = b.filled(b.type(x), 0.0, dims);
  return b.op(Opcode::Select, {mask, lower ? x : zero, lower ? zero : x});
}

// The blocks on the diagonal of [batch…, n, n] as [batch…, count, size, size]; a last one that is smaller is made whole
// by a part of the unit matrix.
InstId diagonal_blocks(Client& b, InstId a, int64_t size) {
  const Dims dims = b.dims(a);
  ElementType type = b.type(a);
  auto lead = dims.size() - 2;
  const auto nb = static_cast<int64_t>(lead);
  int64_t n = dims.back(), count = n / size, rest = n % size;
  Dims batch(dims.begin(), dims.end() - 2);
  if (n == size) {
    Dims wide = dims, map, order;
    wide.insert(wide.begin(), 1);
    for (int64_t d = 1; d <= nb + 2; ++d) map.push_back(d);
    for (int64_t d = 1; d <= nb; ++d) order.push_back(d);
    order.push_back(0), order.push_back(nb + 1), order.push_back(nb + 2);
    return make(b.m, b.comp, Opcode::Transpose, {b.broadcast(a, wide, map)},
                dims_attr(b.u, Opcode::Transpose, std::move(order)));
  }
  InstId at = b.op(Opcode::Multiply, {b.iota(ElementType::S32, {count}, 0), b.filled(ElementType::S32, size, {count})});
  at = b.broadcast(at, {2, count}, {1});
  at = make(b.m, b.comp, Opcode::Transpose, {at}, dims_attr(b.u, Opcode::Transpose, {1, 0}));
  Dims offsets = Client::upto(lead), sizes = batch;
  offsets.push_back(nb + 1), offsets.push_back(nb + 2), sizes.push_back(size), sizes.push_back(size);
  InstId blocks = make(b.m, b.comp, Opcode::Gather, {a, at},
                       attrs_of(b.u, Opcode::Gather,
                                {{Attr::offset_dims, offsets},
                                 {Attr::collapsed_slice_dims, Dims{}},
                                 {Attr::start_index_map, Dims{nb, nb + 1}},
                                 {Attr::index_vector_dim, int64_t{1}},
                                 {Attr::slice_sizes, sizes}}));
  if (!rest) return blocks;
  auto padded = [&](InstId x, int64_t low, int64_t high) {
    std::vector<PaddingDim> p(b.dims(x).size());
    p[p.size() - 2].low = low, p[p.size() - 2].high = high;
    return make(b.m, b.comp, Opcode::Pad, {x, b.number(type, 0.0)}, attrs_of(b.u, Opcode::Pad, {{Attr::padding, p}}));
  };
  InstId last = padded(b.slice_minor(a, {n - rest, n - rest}, {n, n}), 0, size - rest);
  InstId unit = padded(unit_matrix(b, type, size - rest, size - rest), rest, 0);
  Dims beside = batch, one = batch;
  beside.push_back(size), beside.push_back(size - rest);
  one.push_back(1), one.push_back(size), one.push_back(size);
  unit = b.broadcast(unit, beside, {nb, nb + 1});
  auto joined = [&](std::vector<InstId> parts, int64_t along) {
    return make(b.m, b.comp, Opcode::Concatenate, std::move(parts), dims_attr(b.u, Opcode::Concatenate, {along}));
  };
  return joined({blocks, b.reshape(joined({last, unit}, nb + 1), one)}, nb);
}

// The inverses of triangular matrices [count, n, n]: one row a trip, with ones on the diagonal first.
InstId inverted_triangles(Client& b, InstId x, bool lower) {
  Module& m = b.m;
  Universe& u = b.u;
  const Dims dims = b.dims(x);
  const int64_t n = dims.back();
  ElementType type = b.type(x);
  x = triangular(b, x, lower, false);
  InstId diagonals = diagonal_of(b, x);
  InstId scaled = b.op(Opcode::Divide, {x, b.broadcast(diagonals, dims, {0, 2})});
  InstId start = b.op(Opcode::Negate, {unit_matrix(b, type, n, n)});
  InstId one = b.reshape(b.number(type, 1.0), {1, 1}), corner = b.s32(lower ? 0 : n - 1);
  start = make(m, b.comp, Opcode::DynamicUpdateSlice, {start, one, corner, corner}, {}, m.shape_id(start));
  start = b.broadcast(start, dims, {1, 2});
  ShapeId state = u.tuple({u.scalar(ElementType::S32), m.shape_id(start), m.shape_id(scaled)});
  Client c(m, m.add_computation("InvertDiagCond"));
  InstId trip = c.element(m.parameter(c.comp, 0, state, "InvertDiagCondTuple"), 0);
  m.set_root(c.comp, c.compare(trip, c.s32(n), "LT"));
  Client w(m, m.add_computation("InvertDiagBody"));
  InstId before = m.parameter(w.comp, 0, state, "InvertDiagBodyTuple");
  InstId i = w.element(before, 0), out = w.element(before, 1), in = w.element(before, 2);
  InstId zero = w.s32(0), row = i;
  if (!lower) row = w.op(Opcode::Subtract, {w.s32(n - 1), i});
  InstId line = make(m, w.comp, Opcode::DynamicSlice, {in, zero, row, zero},
                     attrs_of(u, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, Dims{dims[0], 1, n}}}));
  InstId dot = make(m, w.comp, Opcode::Dot, {line, out},
                    attrs_of(u, Opcode::Dot,
                             {{Attr::lhs_batch_dims, Dims{0}},
                              {Attr::rhs_batch_dims, Dims{0}},
                              {Attr::lhs_contracting_dims, Dims{2}},
                              {Attr::rhs_contracting_dims, Dims{1}},
                              {Attr::operand_precision, u.str("{highest,highest}")}}));
  InstId next = make(m, w.comp, Opcode::DynamicUpdateSlice, {out, w.op(Opcode::Negate, {dot}), zero, row, zero}, {},
                     m.shape_id(out));
  m.set_root(w.comp, w.op(Opcode::Tuple, {w.op(Opcode::Add, {i, w.s32(1)}), next, in}));
  InstId first = b.op(Opcode::Tuple, {b.s32(1), start, scaled});
  InstId loop = make(m, b.comp, Opcode::While, {first},
                     attrs_of(u, Opcode::While, {{Attr::condition, c.comp}, {Attr::body, w.comp}}), state);
  return b.op(Opcode::Divide, {b.element(loop, 1), b.broadcast(diagonals, dims, {0, 1})});
}

// How a triangular solve is meant.
struct Solve {
  bool left, lower, unit, transposed, conjugated;
};
Solve solve_of(const Module& m, InstId i) {
  const AttrSet& a = m.attrs(i);
  std::string_view t = m.u().text(a.text(Attr::transpose_a));
  return {a.flag(Attr::left_side), a.flag(Attr::lower), a.flag(Attr::unit_diagonal), t == "TRANSPOSE" || t == "ADJOINT",
          t == "ADJOINT"};
}
std::string solve_name(const Module& m, InstId i) {
  Solve s = solve_of(m, i);
  return fmt::format("xla.triangular_solve_{}_{}_{}_{}_{}", operands_signature(m, i), s.left ? "left" : "right",
                     s.lower ? "lower" : "upper",
                     s.conjugated   ? "ADJOINT"
                     : s.transposed ? "TRANSPOSE"
                                    : "NO_TRANSPOSE",
                     s.unit ? "unit" : "nonunit");
}

CompId triangular_solve_computation(Module& m, InstId call) {
  const Solve s = solve_of(m, call);
  Client b(m, m.add_computation(solve_name(m, call)));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(call, 0)), "a");
  InstId rhs = m.parameter(b.comp, 1, m.shape_id(m.operand(call, 1)), "b");
  auto seen = [&](InstId x) { return s.conjugated ? b.conjugated(x) : x; };
  const Dims dims = b.dims(a), whole = b.dims(rhs);
  const int64_t n = dims.back(), size = std::min(kMatrixBlock, n), count = n ? (n + size - 1) / size : 0;
  if (m.shape(rhs).elements_count() == 0 || (n == 1 && s.unit)) {
    m.set_root(b.comp, rhs);
    return b.comp;
  }
  if (n == 1) {
    m.set_root(b.comp, b.op(Opcode::Divide, {rhs, b.repeated(seen(a), whole)}));
    return b.comp;
  }
  a = triangular(b, a, s.lower, s.unit);
  const auto rank = static_cast<int64_t>(dims.size());
  if (s.unit) {
    InstId unit = unit_matrix(b, b.type(a), n, n);
    a = b.op(Opcode::Add, {a, rank == 2 ? unit : b.broadcast(unit, dims, {rank - 2, rank - 1})});
  }
  Dims batch(dims.begin(), dims.end() - 2), blocks = batch;
  int64_t all = count;
  for (int64_t d : batch) all *= d;
  blocks.push_back(count), blocks.push_back(size), blocks.push_back(size);
  InstId inverse =
      b.reshape(inverted_triangles(b, b.reshape(diagonal_blocks(b, a, size), {all, size, size}), s.lower), blocks);
  // From the first block on, or from the last: each takes what is solved off its right-hand side.
  const bool back = s.left ? s.lower == s.transposed : s.lower != s.transposed;
  InstId x;
  for (int64_t step = 0; step < count; ++step) {
    int64_t j = back ? count - 1 - step : step, from = j * size, to = std::min(n, from + size), k = to - from;
    int64_t solved_from = back ? to : 0, solved_to = back ? n : from;
    Dims square = batch;
    square.push_back(k), square.push_back(k);
    InstId block = seen(b.reshape(b.slice_minor(inverse, {j, 0, 0}, {j + 1, k, k}), square));
    InstId rest = s.left ? b.slice_minor(rhs, {from, 0}, {to, whole.back()})
                         : b.slice_minor(rhs, {0, from}, {whole[whole.size() - 2], to});
    if (step) {
      // op(A) in the rows of this block and the columns solved (on the right: the other way round).
      bool rows = s.left != s.transposed;
      InstId part = seen(rows ? b.slice_minor(a, {from, solved_from}, {to, solved_to})
                              : b.slice_minor(a, {solved_from, from}, {solved_to, to}));
      InstId known = s.left ? b.product(part, x, s.transposed ? 2 : 1, 2) : b.product(x, part, 1, s.transposed ? 1 : 2);
      rest = b.op(Opcode::Subtract, {rest, known});
    }
    InstId found =
        s.left ? b.product(block, rest, s.transposed ? 2 : 1, 2) : b.product(rest, block, 1, s.transposed ? 1 : 2);
    if (!step) {
      x = found;
      continue;
    }
    std::vector<InstId> parts{x, found};
    if (back) std::swap(parts[0], parts[1]);
    x = make(m, b.comp, Opcode::Concatenate, parts, dims_attr(b.u, Opcode::Concatenate, {rank - (s.left ? 2 : 1)}));
  }
  m.set_root(b.comp, x);
  return b.comp;
}

}  // namespace

bool run_triangular_solve_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::TriangularSolve)) return false;
  return replace_by_calls(
      m, ctx, "triangular solve by inverted blocks",
      [&](InstId i) { return m.op(i) == Opcode::TriangularSolve ? solve_name(m, i) : std::string(); },
      [&](InstId i) { return triangular_solve_computation(m, i); });
}

}  // namespace hlo
