// qr_expander (xla/hlo/transforms/expanders/qr_expander.cc): Householder reflections, in blocks of 128 columns, for the
// calls Qr and ProductOfElementaryHouseholderReflectors.
#include "passes/expand/linear_algebra/matrices.h"

namespace hlo {
namespace {

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
  CompId sum = sum_reducer(b.m, real);
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
  InstId strict = b.broadcast(triangle_mask(b, rows, n, -1), dims, minor);
  InstId below = b.op(Opcode::Select, {strict, vs, b.filled(type, 0.0, dims)});
  InstId v = b.op(Opcode::Add, {everywhere(unit, dims), below});
  InstId factors = b.broadcast(b.op(Opcode::Negate, {tau}), line, of_tau);
  InstId eye = b.broadcast(unit_matrix(b, type, n, n), square, minor);
  InstId squares = b.product(b.conjugated(v), v, 2, 2);
  InstId lower = b.broadcast(triangle_mask(b, n, n, 0), square, minor);
  InstId above = b.op(Opcode::Select, {lower, b.filled(type, 0.0, square), squares});
  InstId vtv = b.op(Opcode::Multiply, {b.op(Opcode::Add, {above, eye}), b.repeated(factors, square)});
  std::vector<InstId> out = b.loop(n, {eye, vtv}, "wy", [&](Client& w, InstId j, std::vector<InstId>& s) {
    InstId column = w.dynamic_slice_minor(s[1], {j}, {1});
    return std::vector<InstId>{w.dynamic_update_minor(s[0], w.product(s[0], column, 1, 2), {j}), s[1]};
  });
  return {v, out[0]};
}

CompId qr_computation(Module& m, InstId i) {
  Client b(m, m.add_computation("xla.Qr_" + operands_signature(m, i)));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(i, 0)), "a");
  const Dims dims = b.dims(a);
  int64_t rows = dims[dims.size() - 2], columns = dims.back(), steps = std::min(rows, columns);
  ElementType type = b.type(a);
  Dims all(dims.begin(), dims.end() - 2);
  all.push_back(steps);
  InstId taus = b.filled(type, 0.0, all);
  for (int64_t k = 0; k < steps; k += kMatrixBlock) {
    int64_t width = std::min(kMatrixBlock, steps - k);
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
  Client b(m, m.add_computation("xla.ProductOfElementaryHouseholderReflectors_" + operands_signature(m, i)));
  InstId a = m.parameter(b.comp, 0, m.shape_id(m.operand(i, 0)), "a");
  InstId taus = m.parameter(b.comp, 1, m.shape_id(m.operand(i, 1)), "taus");
  const Dims dims = b.dims(a);
  auto rank = static_cast<int64_t>(dims.size());
  int64_t rows = dims[dims.size() - 2], columns = dims.back(), count = b.dims(taus).back();
  ElementType type = b.type(a);
  InstId q = b.broadcast(unit_matrix(b, type, rows, columns), dims, {rank - 2, rank - 1});
  for (int64_t k = (count - 1) / kMatrixBlock * kMatrixBlock; k >= 0; k -= kMatrixBlock) {
    int64_t width = std::min(kMatrixBlock, count - k);
    InstId block = b.slice_minor(a, {k, k}, {rows, k + width});
    Compact c = compact_wy(b, block, b.slice_minor(taus, {k}, {k + width}));
    InstId part = b.slice_minor(q, {k, k}, {rows, columns});
    InstId change = b.product(c.v, b.product(c.t, b.product(b.conjugated(c.v), part, 2, 2), 1, 2), 1, 2);
    q = b.update_minor(q, b.op(Opcode::Add, {part, change}), {k, k});
  }
  m.set_root(b.comp, q);
  return b.comp;
}

}  // namespace

bool run_qr_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::CustomCall)) return false;
  auto target = [&](InstId i) -> std::string_view {
    return m.op(i) == Opcode::CustomCall ? m.u().text(m.attrs(i).text(Attr::custom_call_target)) : std::string_view();
  };
  return replace_by_calls(
      m, ctx, "QR by Householder reflections",
      [&](InstId i) {
        std::string_view t = target(i);
        if (t != "Qr" && t != "ProductOfElementaryHouseholderReflectors") return std::string();
        return std::string(t) + operands_signature(m, i);
      },
      [&](InstId i) { return target(i) == "Qr" ? qr_computation(m, i) : reflectors_computation(m, i); });
}

}  // namespace hlo
