// eigh_expander (xla/hlo/transforms/expanders/eigh_expander.cc): eigenvalues in sweeps of Jacobi rotations, for the
// call Eigh.
#include <tuple>

#include "passes/expand/linear_algebra/matrices.h"

namespace hlo {
namespace {

// How a call of Eigh is to be done: "lower,sort,sweeps,tolerance".
struct EighConfig {
  bool lower = true, sort = true;
  int64_t sweeps = 15;
  float tolerance = 1e-6f;
};
bool read_config(std::string_view text, EighConfig* c) {
  std::vector<std::string> parts{""};
  for (char x : text) {
    if (x == ',')
      parts.emplace_back();
    else
      parts.back() += x;
  }
  if (parts.size() != 4) return false;
  c->lower = atoi(parts[0].c_str()) != 0, c->sort = atoi(parts[1].c_str()) != 0;
  c->sweeps = atoll(parts[2].c_str()), c->tolerance = strtof(parts[3].c_str(), nullptr);
  return true;
}

// A matrix of blocks: top left, top right, bottom left, bottom right.
struct Blocks {
  InstId tl, tr, bl, br;
};

// x with d on its diagonals.
InstId with_diagonal(Client& b, InstId x, InstId d) {
  const Dims dims = b.dims(x);
  return b.op(Opcode::Select, {diagonal_mask(b, dims), b.broadcast(d, dims, Client::upto(dims.size() - 1)), x});
}

// x[…, from:to] along the dimension counted from the end.
InstId part(Client& b, InstId x, int64_t from_end, int64_t from, int64_t to) {
  Dims lo(static_cast<size_t>(from_end), 0), hi;
  for (int64_t k = from_end; k > 0; --k) hi.push_back(b.dim(x, k));
  lo[0] = from, hi[0] = to;
  return b.slice_minor(x, lo, hi);
}
InstId joined(Client& b, const std::vector<InstId>& parts, int64_t from_end) {
  auto rank = static_cast<int64_t>(b.dims(parts[0]).size());
  return make(b.m, b.comp, Opcode::Concatenate, parts, dims_attr(b.u, Opcode::Concatenate, {rank - from_end}));
}
// The tournament's next round: the first stays, the others go round, through both halves.
void go_round(Client& b, InstId& first, InstId& second, int64_t from_end) {
  int64_t m = b.dim(first, from_end);
  if (m == 1) return;
  // Of two, the last part is empty, as XLA leaves it.
  InstId next =
      joined(b, {part(b, first, from_end, 0, 1), part(b, second, from_end, 0, 1), part(b, first, from_end, 1, m - 1)},
             from_end);
  second = joined(b, {part(b, second, from_end, 1, m), part(b, first, from_end, m - 1, m)}, from_end);
  first = next;
}

// A rotation that makes each pair's off-diagonal element zero: values behind it, its sine and cosine.
struct Rotation {
  InstId first, second, cosine, sine;
};
Rotation schur(Client& b, InstId tl, InstId tr, InstId br) {
  ElementType t = b.type(tl), whole = b.type(tr);
  const Dims dims = b.dims(tl);
  InstId phase;
  if (is_complex(whole)) {
    // The angle is taken of |tr|; its direction turns the sine.
    InstId size = b.op(Opcode::Abs, {tr});
    InstId none = b.compare(size, b.filled(t, 0.0, dims), "EQ");
    InstId unit = b.filled(whole, 1.0, dims);
    InstId direction = b.conjugated(tr);
    direction = b.op(Opcode::Divide, {direction, b.op(Opcode::Complex, {size, b.filled(t, 0.0, dims)})});
    phase = b.op(Opcode::Select, {none, unit, direction});
    tr = size;
  }
  InstId tau = b.op(Opcode::Divide,
                    {b.op(Opcode::Subtract, {br, tl}), b.op(Opcode::Multiply, {b.beside(b.number(t, 2.0), dims), tr})});
  InstId one = b.number(t, 1.0);
  InstId root = b.op(Opcode::Sqrt, {b.op(Opcode::Add, {b.beside(one, dims), b.op(Opcode::Multiply, {tau, tau})})});
  InstId positive = b.compare(tau, b.filled(t, 0.0, dims), "GE");
  InstId sum = b.op(Opcode::Add, {tau, b.op(Opcode::Select, {positive, root, b.op(Opcode::Negate, {root})})});
  InstId tangent = b.op(Opcode::Divide, {b.filled(t, 1.0, dims), sum});
  InstId least = b.op(Opcode::Minimum, {b.op(Opcode::Abs, {tl}), b.op(Opcode::Abs, {br})});
  // A tenth of f32's epsilon, whatever the type is.
  constexpr float kSmall = 0.1f * 1.1920929e-7f;
  InstId bound = b.op(Opcode::Multiply, {b.filled(t, static_cast<double>(kSmall), dims), least});
  InstId small = b.compare(b.op(Opcode::Abs, {tr}), bound, "LE");
  tangent = b.op(Opcode::Select, {small, b.filled(t, 0.0, dims), tangent});
  InstId cosine =
      b.op(Opcode::Rsqrt, {b.op(Opcode::Add, {b.beside(one, dims), b.op(Opcode::Multiply, {tangent, tangent})})});
  InstId sine = b.op(Opcode::Multiply, {tangent, cosine});
  InstId first = b.op(Opcode::Subtract, {tl, b.op(Opcode::Multiply, {tangent, tr})});
  InstId second = b.op(Opcode::Add, {br, b.op(Opcode::Multiply, {tangent, tr})});
  if (is_complex(whole)) {
    for (InstId* x : {&first, &second, &cosine, &sine}) *x = b.op(Opcode::Complex, {*x, b.filled(t, 0.0, dims)});
    sine = b.op(Opcode::Multiply, {sine, phase});
  }
  return {first, second, cosine, sine};
}

std::vector<InstId> rotations(Client& b, std::vector<InstId>& s) {
  const Dims dims = b.dims(s[1]);
  auto rank = static_cast<int64_t>(dims.size());
  InstId tl = s[1], tr = s[2], bl = s[3], br = s[4];
  InstId d_tl = diagonal_of(b, b.op(Opcode::Real, {tl}));
  InstId d_tr = diagonal_of(b, tr);
  InstId d_br = diagonal_of(b, b.op(Opcode::Real, {br}));
  Rotation r = schur(b, d_tl, d_tr, d_br);
  Dims by_row = Client::upto(dims.size() - 1), by_column = by_row;
  by_column.back() = rank - 1;
  auto times = [&](InstId x, InstId y) { return b.op(Opcode::Multiply, {x, y}); };
  // (x, y) becomes (c·x - s*·y, s·x + c·y) by rows, (c·x - s·y, s*·x + c·y) by columns; `back` is s*.
  auto turned = [&](InstId& x, InstId& y, InstId c, InstId sine, InstId back) {
    InstId first = b.op(Opcode::Subtract, {times(x, c), times(y, back)});
    y = b.op(Opcode::Add, {times(x, sine), times(y, c)});
    x = first;
  };
  InstId c = b.broadcast(r.cosine, dims, by_row), sine = b.broadcast(r.sine, dims, by_row);
  InstId back = b.conjugated(sine);
  turned(tl, bl, c, sine, back), turned(tr, br, c, sine, back);
  InstId cc = b.broadcast(r.cosine, dims, by_column), ss = b.broadcast(r.sine, dims, by_column);
  back = b.conjugated(ss);
  turned(tl, tr, cc, back, ss), turned(bl, br, cc, back, ss);
  Dims line(dims.begin(), dims.end() - 1);
  ElementType t = b.type(tl);
  tl = with_diagonal(b, tl, r.first), tr = with_diagonal(b, tr, b.filled(t, 0.0, line));
  bl = with_diagonal(b, bl, b.filled(t, 0.0, line)), br = with_diagonal(b, br, r.second);
  go_round(b, tl, tr, 1), go_round(b, bl, br, 1);
  go_round(b, tl, bl, 2), go_round(b, tr, br, 2);
  InstId vtl = s[5], vtr = s[6], vbl = s[7], vbr = s[8];
  c = b.broadcast(r.cosine, dims, by_row), sine = b.broadcast(r.sine, dims, by_row);
  back = b.conjugated(sine);
  turned(vtl, vbl, c, sine, back), turned(vtr, vbr, c, sine, back);
  go_round(b, vtl, vbl, 2), go_round(b, vtr, vbr, 2);
  return {s[0], tl, tr, bl, br, vtl, vtr, vbl, vbr};
}

// Is what stands beside the diagonal still larger than the tolerance's share of all, in any matrix?
InstId unfinished(Client& b, const std::vector<InstId>& s) {
  const Dims dims = b.dims(s[1]);
  auto rank = static_cast<int64_t>(dims.size());
  Dims batch(dims.begin(), dims.end() - 2);
  ElementType whole = b.type(s[1]), t = is_complex(whole) ? component_type(whole) : whole;
  b.op(Opcode::Real, {s[1]});  // dead, as XLA leaves it
  InstId zero = b.number(t, 0.0);
  auto square = [&](InstId x) { return b.op(Opcode::Real, {b.op(Opcode::Multiply, {x, b.conjugated(x)})}); };
  auto summed = [&](const Blocks& x) {
    InstId sum = b.op(Opcode::Add, {square(x.tl), square(x.tr)});
    sum = b.op(Opcode::Add, {sum, square(x.bl)});
    sum = b.op(Opcode::Add, {sum, square(x.br)});
    return make(b.m, b.comp, Opcode::Reduce, {sum, zero},
                attrs_of(b.u, Opcode::Reduce,
                         {{Attr::dimensions, Dims{rank - 2, rank - 1}}, {Attr::to_apply, sum_reducer(b.m, t)}}));
  };
  auto beside = [&](InstId x) { return b.op(Opcode::Select, {diagonal_mask(b, dims), b.filled(whole, 0.0, dims), x}); };
  InstId all = summed({s[1], s[2], s[3], s[4]});
  InstId off = summed({beside(s[1]), s[2], s[3], beside(s[4])});
  InstId bound = b.op(Opcode::Multiply, {all, b.beside(b.op(Opcode::Multiply, {s[0], s[0]}), batch)});
  CompId either = make_reducer(b.m, "or", Opcode::Or, ElementType::Pred);
  return make(
      b.m, b.comp, Opcode::Reduce, {b.compare(bound, off, "LT"), b.number(ElementType::Pred, int64_t{0})},
      attrs_of(b.u, Opcode::Reduce, {{Attr::dimensions, Client::upto(batch.size())}, {Attr::to_apply, either}}));
}

// The half of a that counts, mirrored; of complex numbers conjugated, with a real diagonal.
InstId mirrored(Client& b, InstId a, bool lower) {
  const Dims dims = b.dims(a);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t n = dims.back();
  ElementType t = b.type(a);
  auto half_mask = [&](int64_t shift) {
    InstId mask = b.broadcast(triangle_mask(b, n, n, shift), dims, {rank - 2, rank - 1});
    return lower ? mask : b.op(Opcode::Not, {mask});
  };
  InstId mask = half_mask(lower ? 0 : -1);
  if (!is_complex(t)) return b.op(Opcode::Select, {mask, a, b.transposed(a)});
  InstId re = b.op(Opcode::Real, {a});
  re = b.op(Opcode::Select, {mask, re, b.transposed(b.op(Opcode::Real, {a}))});
  InstId strict = half_mask(lower ? -1 : 0);
  InstId im = b.op(Opcode::Imag, {a});
  b.op(Opcode::Imag, {a});  // dead, as XLA leaves it
  im = b.op(Opcode::Select, {strict, im, b.filled(component_type(t), 0.0, dims)});
  im = b.op(Opcode::Select, {mask, im, b.op(Opcode::Negate, {b.transposed(im)})});
  return b.op(Opcode::Complex, {re, im});
}

// Eigenvalues in ascending order, and the vectors (columns of v) with them.
std::pair<InstId, InstId> sorted(Client& b, InstId w, InstId v) {
  const Dims dims = b.dims(v);
  const auto rank = static_cast<int64_t>(dims.size());
  Dims map = Client::upto(dims.size() - 1);
  map.back() = rank - 1;
  InstId keys = b.broadcast(w, dims, map);
  CompId less = b.m.add_computation("compare-less-than");
  ShapeId scalar = b.u.scalar(b.type(w)), other = b.u.scalar(b.type(v));
  InstId p = b.m.parameter(less, 0, scalar, "p.0.lhs"), q = b.m.parameter(less, 1, scalar, "p.0.rhs");
  b.m.parameter(less, 2, other, "p.1.lhs"), b.m.parameter(less, 3, other, "p.1.rhs");
  b.m.set_root(less, make(b.m, less, Opcode::Compare, {p, q},
                          attrs_of(b.u, Opcode::Compare,
                                   {{Attr::direction, b.u.str("LT")}, {Attr::type, b.u.str("TOTALORDER")}})));
  InstId pairs = make(b.m, b.comp, Opcode::Sort, {keys, v},
                      attrs_of(b.u, Opcode::Sort, {{Attr::dimensions, Dims{rank - 1}}, {Attr::to_apply, less}}),
                      b.u.tuple({b.m.shape_id(keys), b.m.shape_id(v)}));
  InstId vectors = b.element(pairs, 1);
  return {diagonal_of(b, b.element(pairs, 0)), vectors};
}

CompId eigh_computation(Module& m, InstId i, const EighConfig& config) {
  Universe& u = m.u();
  Client b(m, m.add_computation("xla.Eigh_" + operands_signature(m, i)));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(i, 0)), "a");
  const Dims dims = b.dims(a);
  auto rank = static_cast<int64_t>(dims.size());
  int64_t n = dims.back(), half = (n + 1) / 2;
  ElementType t = b.type(a), real = is_complex(t) ? component_type(t) : t;
  if (n == 1) {
    InstId v = b.filled(t, 1.0, dims);
    m.set_root(b.comp, b.op(Opcode::Tuple, {v, diagonal_of(b, b.op(Opcode::Real, {a}))}));
    return b.comp;
  }
  a = mirrored(b, a, config.lower);
  b.op(Opcode::Real, {a});  // dead, as XLA leaves it
  Blocks x{b.slice_minor(a, {0, 0}, {half, half}), b.slice_minor(a, {0, half}, {half, n}),
           b.slice_minor(a, {half, 0}, {n, half}), b.slice_minor(a, {half, half}, {n, n})};
  if (n % 2) {
    InstId zero = b.number(t, 0.0);
    auto padded = [&](InstId y, int64_t rows, int64_t columns) {
      std::vector<PaddingDim> p(dims.size());
      p[p.size() - 2].high = rows, p[p.size() - 1].high = columns;
      return make(m, b.comp, Opcode::Pad, {y, zero}, attrs_of(u, Opcode::Pad, {{Attr::padding, p}}));
    };
    x.tr = padded(x.tr, 0, 1), x.bl = padded(x.bl, 1, 0), x.br = padded(x.br, 1, 1);
  }
  const Dims block = b.dims(x.tl);
  InstId eye = b.broadcast(unit_matrix(b, t, half, half), block, {rank - 2, rank - 1});
  InstId nothing = b.filled(t, 0.0, block);
  std::vector<InstId> state{
      b.number(real, static_cast<double>(config.tolerance)), x.tl, x.tr, x.bl, x.br, eye, nothing, nothing, eye};
  std::vector<InstId> out = b.loop(
      config.sweeps, state, "EighJacobiSweeps",
      [&](Client& sweep, InstId, std::vector<InstId>& s) {
        return sweep.loop(2 * half - 1, s, "ApplyRotations",
                          [&](Client& step, InstId, std::vector<InstId>& inner) { return rotations(step, inner); });
      },
      unfinished);
  InstId w = joined(b, {diagonal_of(b, b.op(Opcode::Real, {out[1]})), diagonal_of(b, b.op(Opcode::Real, {out[4]}))}, 1);
  InstId v = joined(b, {joined(b, {out[5], out[6]}, 1), joined(b, {out[7], out[8]}, 1)}, 2);
  if (n % 2) w = b.slice_minor(w, {0}, {n}), v = b.slice_minor(v, {0, 0}, {n, n});
  v = b.conjugated(b.transposed(v));
  if (config.sort) std::tie(w, v) = sorted(b, w, v);
  m.set_root(b.comp, b.op(Opcode::Tuple, {v, w}));
  return b.comp;
}

}  // namespace

bool run_eigh_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::CustomCall)) return false;
  auto config = [&](InstId i) { return m.u().text(m.attrs(i).text(Attr::backend_config)); };
  return replace_by_calls(
      m, ctx, "eigenvalues by Jacobi rotations",
      [&](InstId i) {
        EighConfig c;
        if (m.op(i) != Opcode::CustomCall || m.u().text(m.attrs(i).text(Attr::custom_call_target)) != "Eigh" ||
            m.operand_count(i) != 1 || m.shape(m.operand(i, 0)).rank() < 2 || !read_config(config(i), &c))
          return std::string();
        const Shape& s = m.shape(m.operand(i, 0));
        if (s.elements_count() == 0) {
          ctx.note(m, "not expanded: no elements", {i});
          return std::string();
        }
        return fmt::format("{} {}", operands_signature(m, i), config(i));
      },
      [&](InstId i) {
        EighConfig c;
        read_config(config(i), &c);
        return eigh_computation(m, i, c);
      });
}

}  // namespace hlo
