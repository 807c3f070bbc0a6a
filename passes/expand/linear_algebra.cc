// cholesky_expander, qr_expander, eigh_expander and triangular_solve_expander (xla/service/cholesky_expander.cc,
// qr_expander.cc, eigh_expander.cc, triangular_solve_expander.cc). They replace the operation by a call of a
// computation of its own, one a signature: in blocks of 128 columns, eigenvalues in sweeps of Jacobi rotations.
#include <algorithm>
#include <map>

#include "passes/expand/client.h"

namespace hlo {
namespace {

constexpr int64_t kBlock = 128;

std::string signature(const Module& m, InstId i) {
  std::string out;
  for (InstId o : m.operands(i)) out += (out.empty() ? "" : "_") + named(m, m.shape_id(o));
  return out;
}

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
  Client b(m, m.add_computation(fmt::format("xla.cholesky_{}_{}", signature(m, i), lower ? "lower" : "upper")));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(i, 0)), "a");
  if (!lower) a = b.transposed(a);
  const Dims dims = b.dims(a);
  int64_t n = dims.back();
  ElementType type = b.type(a);
  Dims one = dims;
  one[one.size() - 1] = one[one.size() - 2] = 1;
  InstId l = b.filled(type, 0.0, dims);
  InstId bad = b.filled(ElementType::Pred, int64_t{0}, one);
  for (int64_t k = 0; k < n; k += kBlock) {
    int64_t width = std::min(kBlock, n - k);
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

// --- QR ---

// Adds two scalars of the type.
CompId adder(Module& m, ElementType type) {
  std::string name(type_name(type));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return toupper(c); });
  return make_reducer(m, "add_" + name, Opcode::Add, type);
}

struct Reflector {
  InstId v, tau, beta;
};

// sqrt(x² + y² + …) of scalars, scaled by the largest.
InstId safe_norm(Client& b, std::vector<InstId> parts) {
  const Dims dims = b.dims(parts[0]);
  ElementType t = b.type(parts[0]);
  for (InstId& p : parts) p = b.op(Opcode::Abs, {p});
  InstId most = parts[0];
  for (size_t k = 1; k < parts.size(); ++k) most = b.op(Opcode::Maximum, {most, parts[k]});
  InstId none = b.compare(most, b.filled(t, 0.0, dims), "EQ");
  std::vector<InstId> shares;
  for (InstId p : parts) shares.push_back(b.op(Opcode::Divide, {p, most}));
  InstId squares;
  for (InstId p : shares) {
    InstId square = b.op(Opcode::Multiply, {p, p});
    squares = p == shares[0] ? square : b.op(Opcode::Add, {squares, square});
  }
  InstId scaled = b.op(Opcode::Multiply, {most, b.op(Opcode::Sqrt, {squares})});
  return b.op(Opcode::Select, {none, b.filled(t, 0.0, dims), scaled});
}

// The Householder vector that takes column `x` ([batch, m]) below row k to zero. Of complex numbers, beta is real (its
// type is then that of a component).
Reflector householder(Client& b, InstId x, InstId k) {
  const Dims dims = b.dims(x);
  auto minor = static_cast<int64_t>(dims.size()) - 1;
  Dims batch(dims.begin(), dims.end() - 1), lead = Client::upto(batch.size());
  int64_t rows = dims.back();
  ElementType type = b.type(x), real = is_complex(type) ? component_type(type) : type;
  auto along = [&](InstId v) { return dims.size() == 1 ? v : b.broadcast(v, dims, {minor}); };
  InstId iota = b.iota(ElementType::S32, {rows}, 0);
  InstId after = b.convert(b.compare(iota, b.broadcast(k, {rows}, {}), "GT"), type);
  InstId tail = b.op(Opcode::Multiply, {x, along(after)});
  InstId squares = b.op(Opcode::Multiply, {tail, b.conjugated(tail)});
  if (is_complex(type)) squares = b.op(Opcode::Real, {squares});
  InstId zero = b.number(type, 0.0);  // of complex numbers dead, as XLA leaves it
  CompId sum = adder(b.m, real);
  InstId start = is_complex(type) ? b.number(real, 0.0) : zero;
  InstId sigma = make(b.m, b.comp, Opcode::Reduce, {squares, start},
                      attrs_of(b.u, Opcode::Reduce, {{Attr::dimensions, Dims{minor}}, {Attr::to_apply, sum}}));
  InstId alpha = b.reshape(b.dynamic_slice_minor(x, {k}, {1}), batch);
  InstId norm = b.op(Opcode::Sqrt, {sigma});
  auto fresh = [&](double v) { return b.beside(b.number(real, v), batch); };
  InstId done, beta, tau;
  if (is_complex(type)) {
    InstId mu = safe_norm(b, {b.op(Opcode::Real, {alpha}), b.op(Opcode::Imag, {alpha}), norm});
    done = b.compare(sigma, fresh(0.0), "EQ");
    done = b.op(Opcode::And, {done, b.compare(b.op(Opcode::Imag, {alpha}), fresh(0.0), "EQ")});
    InstId negative = b.compare(b.op(Opcode::Real, {alpha}), fresh(0.0), "LT");
    InstId up = fresh(1.0), down = fresh(-1.0);
    InstId sign = b.op(Opcode::Select, {negative, up, down});
    beta = b.op(Opcode::Select, {done, b.op(Opcode::Real, {alpha}), b.op(Opcode::Multiply, {sign, mu})});
    // (beta - alpha) / beta, by its parts.
    InstId re = b.op(Opcode::Divide, {b.op(Opcode::Subtract, {beta, b.op(Opcode::Real, {alpha})}), beta});
    InstId im = b.op(Opcode::Divide, {b.op(Opcode::Negate, {b.op(Opcode::Imag, {alpha})}), beta});
    InstId ratio = b.op(Opcode::Complex, {re, im});
    tau = b.op(Opcode::Select, {done, b.filled(type, 0.0, batch), ratio});
  } else {
    InstId mu = safe_norm(b, {alpha, norm});
    done = b.compare(sigma, b.beside(zero, batch), "EQ");
    InstId negative = b.compare(alpha, b.beside(zero, batch), "LT");
    InstId unit = b.number(type, 1.0);
    InstId sign =
        b.op(Opcode::Select, {negative, b.beside(unit, batch), b.beside(b.op(Opcode::Negate, {unit}), batch)});
    beta = b.op(Opcode::Select, {done, alpha, b.op(Opcode::Multiply, {sign, mu})});
    InstId ratio = b.op(Opcode::Divide, {b.op(Opcode::Subtract, {beta, alpha}), beta});
    tau = b.op(Opcode::Select, {done, b.filled(type, 0.0, batch), ratio});
  }
  InstId gap = b.op(Opcode::Subtract, {alpha, b.convert(beta, type)});
  InstId divisor = b.op(Opcode::Select, {done, b.filled(type, 1.0, batch), gap});
  InstId e = b.convert(b.compare(iota, b.broadcast(k, {rows}, {}), "EQ"), type);
  Dims ones(batch.size(), 1);
  ones.push_back(rows);
  InstId first = b.repeated(b.broadcast(e, ones, {minor}), dims);
  InstId v = b.op(Opcode::Add, {first, b.op(Opcode::Divide, {tail, b.broadcast(divisor, dims, lead)})});
  return {v, tau, beta};
}

// R above the diagonal, the vectors below it, and their factors.
std::vector<InstId> qr_block(Client& at, InstId a) {
  const Dims dims = at.dims(a);
  auto rank = static_cast<int64_t>(dims.size());
  int64_t rows = dims[dims.size() - 2], columns = dims.back(), steps = std::min(rows, columns);
  ElementType type = at.type(a);
  Dims batch(dims.begin(), dims.end() - 2), lead = Client::upto(batch.size()), taus = batch;
  taus.push_back(steps);
  InstId tau = at.filled(type, 0.0, taus);
  return at.loop(steps, {a, tau}, "qr", [&](Client& b, InstId j, std::vector<InstId>& s) {
    Dims one = dims, column = batch;
    one.back() = 1, column.push_back(rows);
    InstId x = b.dynamic_slice_minor(s[0], {j}, {1});
    Reflector h = householder(b, b.reshape(x, column), j);
    // a -= tau* · v · (vᴴ · a), in the columns to the right.
    InstId numbers = b.iota(ElementType::S32, dims, rank - 1);
    Dims row = batch;
    row.push_back(1), row.push_back(rows);
    InstId v = b.reshape(h.v, row);
    InstId right = b.compare(b.broadcast(j, dims, {}), numbers, "LT");
    InstId masked = b.op(Opcode::Select, {right, s[0], b.filled(type, 0.0, dims)});
    InstId vva = b.product(v, b.product(b.conjugated(v), masked, 1, 2), 2, 2);
    InstId factor = b.broadcast(b.conjugated(h.tau), dims, lead);
    InstId changed = b.op(Opcode::Subtract, {s[0], b.op(Opcode::Multiply, {factor, vva})});
    // The column itself: what was above, beta on the diagonal, v below.
    InstId down = b.reshape(b.iota(ElementType::S32, {rows}, 0), {rows, 1});
    auto wide = [&](InstId y) { return batch.empty() ? y : b.broadcast(y, one, {rank - 2, rank - 1}); };
    InstId above = b.convert(b.compare(down, b.broadcast(j, {rows, 1}, {}), "LT"), type);
    InstId kept = b.op(Opcode::Multiply, {x, wide(above)});
    InstId here = b.convert(b.compare(down, b.broadcast(j, {rows, 1}, {}), "EQ"), type);
    Dims ones(batch.size(), 1);
    ones.push_back(rows), ones.push_back(1);
    InstId beta = b.broadcast(b.convert(h.beta, type), one, lead);
    InstId diagonal = b.op(Opcode::Multiply, {beta, b.repeated(b.broadcast(here, ones, {rank - 2, rank - 1}), one)});
    InstId upper = b.op(Opcode::Add, {kept, diagonal});
    InstId later = b.compare(b.iota(ElementType::S32, {rows}, 0), b.broadcast(j, {rows}, {}), "GT");
    InstId below = b.op(Opcode::Select, {b.broadcast(later, column, {rank - 2}), h.v, b.filled(type, 0.0, column)});
    InstId fresh = b.op(Opcode::Add, {upper, b.broadcast(below, one, Client::upto(column.size()))});
    InstId mine = b.compare(numbers, b.broadcast(j, dims, {}), "EQ");
    InstId next = b.op(Opcode::Select, {mine, b.stretched(fresh, dims, Client::upto(dims.size())), changed});
    InstId nothing = b.filled(type, 0.0, taus);
    InstId index = b.iota(ElementType::S32, taus, rank - 2);
    InstId which = b.compare(index, b.broadcast(j, taus, {}), "EQ");
    InstId added = b.op(Opcode::Add, {nothing, b.broadcast(h.tau, taus, lead)});
    InstId factors = b.op(Opcode::Add, {s[1], b.op(Opcode::Select, {which, added, nothing})});
    return std::vector<InstId>{next, factors};
  });
}

InstId unit_matrix(Client& b, ElementType type, int64_t rows, int64_t columns) {
  InstId down = b.iota(ElementType::U32, {rows}, 0), across = b.iota(ElementType::U32, {columns}, 0);
  InstId x = b.broadcast(down, {rows, columns}, {0}), y = b.broadcast(across, {rows, columns}, {1});
  return b.convert(b.compare(x, y, "EQ"), type);
}

// Is row + shift >= column?
InstId triangle(Client& b, int64_t rows, int64_t columns, int64_t shift) {
  InstId down = b.iota(ElementType::S32, {rows}, 0), across = b.iota(ElementType::S32, {columns}, 0);
  InstId moved = b.op(Opcode::Add, {down, b.filled(ElementType::S32, shift, {rows})});
  return b.compare(b.broadcast(moved, {rows, columns}, {0}), b.broadcast(across, {rows, columns}, {1}), "GE");
}

// v with ones on its diagonal and nothing above; T of I - v·T·vᴴ, the product of the reflections (compact WY form).
struct Compact {
  InstId v, t;
};
Compact compact_wy(Client& b, InstId vs, InstId tau) {
  const Dims dims = b.dims(vs);
  auto rank = static_cast<int64_t>(dims.size());
  int64_t rows = dims[dims.size() - 2], n = dims.back();
  ElementType type = b.type(vs);
  Dims square = dims, lead = Client::upto(dims.size() - 2), minor{rank - 2, rank - 1}, line = dims, of_tau = lead;
  square[square.size() - 2] = n, line[line.size() - 2] = 1, of_tau.push_back(rank - 1);
  auto everywhere = [&](InstId x, const Dims& to) { return to.size() == 2 ? x : b.broadcast(x, to, minor); };
  InstId unit = unit_matrix(b, type, rows, n);
  InstId strict = b.broadcast(triangle(b, rows, n, -1), dims, minor);
  InstId below = b.op(Opcode::Select, {strict, vs, b.filled(type, 0.0, dims)});
  InstId v = b.op(Opcode::Add, {everywhere(unit, dims), below});
  InstId factors = b.broadcast(b.op(Opcode::Negate, {tau}), line, of_tau);
  InstId eye = b.broadcast(unit_matrix(b, type, n, n), square, minor);
  InstId squares = b.product(b.conjugated(v), v, 2, 2);
  InstId lower = b.broadcast(triangle(b, n, n, 0), square, minor);
  InstId above = b.op(Opcode::Select, {lower, b.filled(type, 0.0, square), squares});
  InstId vtv = b.op(Opcode::Multiply, {b.op(Opcode::Add, {above, eye}), b.repeated(factors, square)});
  std::vector<InstId> out = b.loop(n, {eye, vtv}, "wy", [&](Client& w, InstId j, std::vector<InstId>& s) {
    InstId column = w.dynamic_slice_minor(s[1], {j}, {1});
    return std::vector<InstId>{w.dynamic_update_minor(s[0], w.product(s[0], column, 1, 2), {j}), s[1]};
  });
  return {v, out[0]};
}

CompId qr_computation(Module& m, InstId i) {
  Client b(m, m.add_computation("xla.Qr_" + signature(m, i)));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(i, 0)), "a");
  const Dims dims = b.dims(a);
  int64_t rows = dims[dims.size() - 2], columns = dims.back(), steps = std::min(rows, columns);
  ElementType type = b.type(a);
  Dims all(dims.begin(), dims.end() - 2);
  all.push_back(steps);
  InstId taus = b.filled(type, 0.0, all);
  for (int64_t k = 0; k < steps; k += kBlock) {
    int64_t width = std::min(kBlock, steps - k);
    std::vector<InstId> block = qr_block(b, b.slice_minor(a, {k, k}, {rows, k + width}));
    Compact c = compact_wy(b, block[0], block[1]);
    a = b.update_minor(a, block[0], {k, k});
    InstId right = b.slice_minor(a, {k, k + width}, {rows, columns});
    InstId vt = b.product(c.v, b.conjugated(c.t), 1, 1);
    InstId change = b.product(vt, b.product(b.conjugated(c.v), right, 2, 2), 1, 2);
    a = b.update_minor(a, b.op(Opcode::Add, {right, change}), {k, k + width});
    taus = b.update_minor(taus, block[1], {k});
  }
  m.set_root(b.comp, b.op(Opcode::Tuple, {a, taus}));
  return b.comp;
}

CompId reflectors_computation(Module& m, InstId i) {
  Client b(m, m.add_computation("xla.ProductOfElementaryHouseholderReflectors_" + signature(m, i)));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(i, 0)), "a");
  InstId taus = m.parameter(b.comp, 1, m.shape_id(m.operand(i, 1)), "taus");
  const Dims dims = b.dims(a);
  auto rank = static_cast<int64_t>(dims.size());
  int64_t rows = dims[dims.size() - 2], columns = dims.back(), count = b.dims(taus).back();
  ElementType type = b.type(a);
  InstId q = b.broadcast(unit_matrix(b, type, rows, columns), dims, {rank - 2, rank - 1});
  for (int64_t k = (count - 1) / kBlock * kBlock; k >= 0; k -= kBlock) {
    int64_t width = std::min(kBlock, count - k);
    InstId block = b.slice_minor(a, {k, k}, {rows, k + width});
    Compact c = compact_wy(b, block, b.slice_minor(taus, {k}, {k + width}));
    InstId part = b.slice_minor(q, {k, k}, {rows, columns});
    InstId change = b.product(c.v, b.product(c.t, b.product(b.conjugated(c.v), part, 2, 2), 1, 2), 1, 2);
    q = b.update_minor(q, b.op(Opcode::Add, {part, change}), {k, k});
  }
  m.set_root(b.comp, q);
  return b.comp;
}

// --- eigenvalues ---

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

// Where is row = column? For every matrix of a batch.
InstId diagonal_mask(Client& b, const Dims& dims) {
  int64_t n = dims.back();
  auto rank = static_cast<int64_t>(dims.size());
  InstId down = b.iota(ElementType::S32, {n}, 0), across = b.iota(ElementType::S32, {n}, 0);
  InstId moved = b.op(Opcode::Add, {down, b.filled(ElementType::S32, int64_t{0}, {n})});
  InstId same = b.compare(b.broadcast(moved, {n, n}, {0}), b.broadcast(across, {n, n}, {1}), "EQ");
  return b.broadcast(same, dims, {rank - 2, rank - 1});
}
InstId diagonal(Client& b, InstId x) {
  const Dims dims = b.dims(x);
  InstId kept = b.op(Opcode::Select, {diagonal_mask(b, dims), x, b.filled(b.type(x), 0.0, dims)});
  return make(b.m, b.comp, Opcode::Reduce, {kept, b.number(b.type(x), 0.0)},
              attrs_of(b.u, Opcode::Reduce,
                       {{Attr::dimensions, Dims{static_cast<int64_t>(dims.size()) - 2}},
                        {Attr::to_apply, adder(b.m, b.type(x))}}));
}
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
  InstId d_tl = diagonal(b, b.op(Opcode::Real, {tl}));
  InstId d_tr = diagonal(b, tr);
  InstId d_br = diagonal(b, b.op(Opcode::Real, {br}));
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
    return make(
        b.m, b.comp, Opcode::Reduce, {sum, zero},
        attrs_of(b.u, Opcode::Reduce, {{Attr::dimensions, Dims{rank - 2, rank - 1}}, {Attr::to_apply, adder(b.m, t)}}));
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

CompId eigh_computation(Module& m, InstId i, const EighConfig& config) {
  Universe& u = m.u();
  Client b(m, m.add_computation("xla.Eigh_" + signature(m, i)));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(i, 0)), "a");
  const Dims dims = b.dims(a);
  auto rank = static_cast<int64_t>(dims.size());
  int64_t n = dims.back(), half = (n + 1) / 2;
  ElementType t = b.type(a);
  if (n == 1) {
    InstId v = b.filled(t, 1.0, dims);
    m.set_root(b.comp, b.op(Opcode::Tuple, {v, diagonal(b, b.op(Opcode::Real, {a}))}));
    return b.comp;
  }
  // The half that counts, mirrored; of complex numbers conjugated, with a real diagonal.
  auto half_mask = [&](int64_t shift) {
    InstId mask = b.broadcast(triangle(b, n, n, shift), dims, {rank - 2, rank - 1});
    return config.lower ? mask : b.op(Opcode::Not, {mask});
  };
  InstId mask = half_mask(config.lower ? 0 : -1);
  ElementType real = is_complex(t) ? component_type(t) : t;
  if (is_complex(t)) {
    InstId re = b.op(Opcode::Real, {a});
    re = b.op(Opcode::Select, {mask, re, b.transposed(b.op(Opcode::Real, {a}))});
    InstId strict = half_mask(config.lower ? -1 : 0);
    InstId im = b.op(Opcode::Imag, {a});
    b.op(Opcode::Imag, {a});  // dead, as XLA leaves it
    im = b.op(Opcode::Select, {strict, im, b.filled(real, 0.0, dims)});
    im = b.op(Opcode::Select, {mask, im, b.op(Opcode::Negate, {b.transposed(im)})});
    a = b.op(Opcode::Complex, {re, im});
  } else {
    a = b.op(Opcode::Select, {mask, a, b.transposed(a)});
  }
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
  InstId w = joined(b, {diagonal(b, b.op(Opcode::Real, {out[1]})), diagonal(b, b.op(Opcode::Real, {out[4]}))}, 1);
  InstId v = joined(b, {joined(b, {out[5], out[6]}, 1), joined(b, {out[7], out[8]}, 1)}, 2);
  if (n % 2) w = b.slice_minor(w, {0}, {n}), v = b.slice_minor(v, {0, 0}, {n, n});
  v = b.conjugated(b.transposed(v));
  if (config.sort) {
    Dims map = Client::upto(dims.size() - 1);
    map.back() = rank - 1;
    InstId keys = b.broadcast(w, dims, map);
    CompId less = m.add_computation("compare-less-than");
    ShapeId scalar = u.scalar(real), other = u.scalar(t);
    InstId p = m.parameter(less, 0, scalar, "p.0.lhs"), q = m.parameter(less, 1, scalar, "p.0.rhs");
    m.parameter(less, 2, other, "p.1.lhs"), m.parameter(less, 3, other, "p.1.rhs");
    m.set_root(less,
               make(m, less, Opcode::Compare, {p, q},
                    attrs_of(u, Opcode::Compare, {{Attr::direction, u.str("LT")}, {Attr::type, u.str("TOTALORDER")}})));
    InstId sorted = make(m, b.comp, Opcode::Sort, {keys, v},
                         attrs_of(u, Opcode::Sort, {{Attr::dimensions, Dims{rank - 1}}, {Attr::to_apply, less}}),
                         u.tuple({m.shape_id(keys), m.shape_id(v)}));
    v = b.element(sorted, 1);
    w = diagonal(b, b.element(sorted, 0));
  }
  m.set_root(b.comp, b.op(Opcode::Tuple, {v, w}));
  return b.comp;
}

// --- triangular solve ---

// The triangle of x alone, zeros elsewhere; `strict`: without the diagonal.
InstId triangular(Client& b, InstId x, bool lower, bool strict) {
  const Dims dims = b.dims(x);
  auto rank = static_cast<int64_t>(dims.size());
  InstId mask =
      b.broadcast(triangle(b, dims.back(), dims.back(), lower == strict ? -1 : 0), dims, {rank - 2, rank - 1});
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
  InstId diagonals = diagonal(b, x);
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
  return fmt::format("xla.triangular_solve_{}_{}_{}_{}_{}", signature(m, i), s.left ? "left" : "right",
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
  const int64_t n = dims.back(), size = std::min(kBlock, n), count = n ? (n + size - 1) / size : 0;
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

// Every instruction that `made` makes a computation for becomes a call of it; those of one signature share it.
bool as_calls(Module& m, PassContext& ctx, const char* rule, const std::function<std::string(InstId)>& signed_as,
              const std::function<CompId(InstId)>& made) {
  std::map<std::string, CompId> known;
  bool any = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      std::string name = signed_as(i);
      if (name.empty()) continue;
      if (!ctx.spend(m, rule, {i})) return any;
      auto at = known.find(name);
      if (at == known.end()) at = known.emplace(name, made(i)).first;
      std::vector<InstId> operands(m.operands(i).begin(), m.operands(i).end());
      InstId call = m.add(c, {.op = Opcode::Call,
                              .shape = m.shape_id(i),
                              .operands = operands,
                              .attrs = attrs_of(m.u(), Opcode::Call, {{Attr::to_apply, at->second}}),
                              .meta = m[i].meta});
      m.replace(i, call, {.relay_control = true});
      any = true;
    }
  return any;
}

}  // namespace

bool run_cholesky_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Cholesky)) return false;
  return as_calls(
      m, ctx, "cholesky by columns",
      [&](InstId i) {
        if (m.op(i) != Opcode::Cholesky) return std::string();
        return fmt::format("{} {}", signature(m, i), m.attrs(i).flag(Attr::lower));
      },
      [&](InstId i) { return cholesky_computation(m, i); });
}

bool run_triangular_solve_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::TriangularSolve)) return false;
  return as_calls(
      m, ctx, "triangular solve by inverted blocks",
      [&](InstId i) { return m.op(i) == Opcode::TriangularSolve ? solve_name(m, i) : std::string(); },
      [&](InstId i) { return triangular_solve_computation(m, i); });
}

bool run_qr_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::CustomCall)) return false;
  auto target = [&](InstId i) -> std::string_view {
    return m.op(i) == Opcode::CustomCall ? m.u().text(m.attrs(i).text(Attr::custom_call_target)) : std::string_view();
  };
  return as_calls(
      m, ctx, "QR by Householder reflections",
      [&](InstId i) {
        std::string_view t = target(i);
        if (t != "Qr" && t != "ProductOfElementaryHouseholderReflectors") return std::string();
        return std::string(t) + signature(m, i);
      },
      [&](InstId i) { return target(i) == "Qr" ? qr_computation(m, i) : reflectors_computation(m, i); });
}

bool run_eigh_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::CustomCall)) return false;
  auto config = [&](InstId i) { return m.u().text(m.attrs(i).text(Attr::backend_config)); };
  return as_calls(
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
        return fmt::format("{} {}", signature(m, i), config(i));
      },
      [&](InstId i) {
        EighConfig c;
        read_config(config(i), &c);
        return eigh_computation(m, i, c);
      });
}

}  // namespace hlo
