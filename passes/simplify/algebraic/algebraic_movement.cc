// algsimp on data movement.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

using A = AlgebraicSimplifier;

namespace {
// A reshape that only adds or drops dimensions of size one.
bool only_ones(const Dims& a, const Dims& b) {
  Dims x, y;
  for (int64_t d : a)
    if (d != 1) x.push_back(d);
  for (int64_t d : b)
    if (d != 1) y.push_back(d);
  return x == y;
}
}  // namespace

void A::constant(InstId i) {
  const Literal& lit = m_.literal(i);
  if (lit.elided) return;
  CompId c = m_.parent(i);
  const Shape s = m_.shape(i);
  //   constant((a, b))      →      tuple(constant(a), constant(b))
  if (s.is_tuple()) {
    if (!go("tuple constant", i)) return;
    std::vector<LitId> parts = lit.elements;
    std::vector<InstId> ops;
    for (LitId e : parts) ops.push_back(m_.add(c, {.op = Opcode::Constant, .shape = u_[e].shape, .payload = e.value}));
    rw(i, Opcode::Tuple, ops);
    return;
  }
  if (!s.is_array() || s.elements_count() < 2) return;
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  bool splat = true;
  for (size_t at = width; at < lit.bytes.size() && splat; at += width)
    splat = !std::memcmp(lit.bytes.data(), lit.bytes.data() + at, width);
  //   f32[8] constant({2, 2, …})      →      broadcast(constant(2))
  if (splat) {
    if (!go("constant of one value", i)) return;
    Literal one;
    one.shape = u_.scalar(s.type);
    one.bytes = lit.bytes.substr(0, width);
    LitId id = u_.literal(std::move(one));
    InstId scalar = m_.add_derived(i, {.op = Opcode::Constant, .shape = u_.scalar(s.type), .payload = id.value});
    InstId b = m_.add_derived(i, {.op = Opcode::Broadcast,
                                  .shape = m_.shape_id(i),
                                  .operands = {scalar},
                                  .attrs = dims_attr(u_, Opcode::Broadcast, {})});
    rw_to(i, b);
    return;
  }
  if (s.rank() != 1 || s.type == ElementType::Pred) return;
  //   {0, 1, 2, …}      →      iota,      {0, k, 2k, …}      →      iota * k       (of integers)
  if (!is_integral(s.type)) {
    bool counts = is_float(s.type) || is_complex(s.type);
    for (int64_t n = 0; n < s.dims[0] && counts; ++n) {
      const char* at = lit.bytes.data() + static_cast<size_t>(n) * width;
      counts = is_complex(s.type) ? load_complex(s.type, at) == static_cast<double>(n)
                                  : load_double(s.type, at) == static_cast<double>(n);
    }
    if (counts && go("constant is an iota", i))
      rw(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, int64_t{0}}}));
    return;
  }
  int64_t step = load_int(s.type, lit.bytes.data() + width);
  bool strided = load_int(s.type, lit.bytes.data()) == 0 && step != 0;
  for (int64_t n = 0; n < s.dims[0] && strided; ++n)
    strided = load_int(s.type, lit.bytes.data() + static_cast<size_t>(n) * width) == n * step;
  if (!strided) return;
  if (!go("constant is an iota", i)) return;
  AttrsId dim = attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, int64_t{0}}});
  if (step == 1) {
    rw(i, Opcode::Iota, {}, dim);
    return;
  }
  InstId scale = m_.add(c, {.op = Opcode::Constant,
                            .shape = u_.scalar(s.type),
                            .payload = m_.scalar_literal(s.type, static_cast<double>(step)).value});
  InstId spread = make_broadcast(m_, c, scale, {}, m_.shape_id(i));
  InstId it = make_op(i, Opcode::Iota, {}, dim, m_.shape_id(i));
  rw(i, Opcode::Multiply, {it, spread});
}

void A::iota(InstId i) {
  if (m_.shape(i).dims[static_cast<size_t>(m_.attrs(i).integer(Attr::iota_dimension))] > 1) return;
  if (go("iota of one element", i)) rw_to(i, make_scalar_like(m_, i, 0));
}

bool A::sink_broadcast(InstId i) {
  if (m_.shape(i).rank() == 0) return false;
  InstId operand_ = operand(i, 0);
  const Dims dims = m_.attrs(i).ints(Attr::dimensions);
  bool any = false;
  for (InstId user : m_.users_copy(i)) {
    if (!m_.alive(user) || (m_.users(user).empty() && !m_.is_root(user))) continue;
    if ((!op_info(op(user)).elementwise && op(user) != Opcode::Map) || op(user) == Opcode::Copy ||
        op(user) == Opcode::Fusion)
      continue;
    bool all = true;
    for (InstId o : m_.operands(user)) {
      if (op(o) != Opcode::Broadcast) {
        all = false;
        break;
      }
      bool scalar = m_.shape(operand(o, 0)).rank() == 0;
      bool alike = m_.attrs(o).ints(Attr::dimensions) == dims && same_shape(operand(o, 0), operand_);
      if (!scalar && !alike) {
        all = false;
        break;
      }
    }
    if (!all || m_.has_control(user)) continue;
    if (!go("broadcast sunk below its user", user)) return any;
    CompId c = m_.parent(user);
    const std::vector<InstId> old(m_.operands(user).begin(), m_.operands(user).end());  // new instructions move lists
    std::vector<InstId> ops;
    for (InstId o : old) {
      InstId source = operand(o, 0);
      if (m_.shape(source).rank() == 0) {
        ShapeId to = u_.with_type(m_.shape_id(operand_), type(source));
        ops.push_back(make_broadcast(m_, c, source, {}, to));
      } else {
        ops.push_back(source);
      }
    }
    InstId small = m_.clone_inst(user, c, ops, u_.with_type(m_.shape_id(operand_), type(user)));
    if (op(user) == Opcode::Map) {
      Dims every(static_cast<size_t>(m_.shape(small).rank()));
      std::iota(every.begin(), every.end(), int64_t{0});
      m_.set_attr(small, Attr::dimensions, every);
    }
    InstId wide = m_.add(c, {.op = Opcode::Broadcast,
                             .shape = m_.shape_id(user),
                             .operands = {small},
                             .attrs = dims_attr(u_, Opcode::Broadcast, dims),
                             .meta = m_[i].meta});
    m_.replace_all_uses(user, wide);
    any = changed_ = true;
  }
  return any;
}

void A::broadcast(InstId i) {
  InstId a = operand(i, 0);
  const Dims dims = m_.attrs(i).ints(Attr::dimensions);
  const Shape &s = m_.shape(i), &in = m_.shape(a);
  //   broadcast that adds nothing      →      reshape / transpose
  if (ascending(dims) && s.elements_count() == in.elements_count()) {
    if (go("broadcast is a reshape", i)) rw(i, Opcode::Reshape, {a});
    return;
  }
  if (s.rank() == in.rank() && s.elements_count() == in.elements_count()) {
    if (go("broadcast is a transpose", i))
      rw(i, Opcode::Transpose, {a}, dims_attr(u_, Opcode::Transpose, inverse_permutation(dims)));
    return;
  }
  //   broadcast(reshape that inserts ones (A))      →      broadcast(A)
  if (op(a) == Opcode::Reshape) {
    const Dims& from = m_.shape(operand(a, 0)).dims;
    const Dims& to = in.dims;
    Dims inserted;
    size_t f = 0;
    for (size_t t = 0; t < to.size(); ++t) {
      if (f < from.size() && from[f] == to[t])
        ++f;
      else if (to[t] == 1)
        inserted.push_back(static_cast<int64_t>(t));
      else
        f = from.size() + 1;
    }
    if (f == from.size()) {
      if (!go("broadcast of inserted ones", i)) return;
      Dims kept;
      for (size_t t = 0; t < dims.size(); ++t)
        if (!contains(inserted, static_cast<int64_t>(t))) kept.push_back(dims[t]);
      rw(i, Opcode::Broadcast, {operand(a, 0)}, dims_attr(u_, Opcode::Broadcast, kept));
      return;
    }
  }
  if (sink_broadcast(i)) return;
  if (in.rank() == 0 && in.is_array()) {
    for (InstId user : m_.users_copy(i)) {
      if ((m_.users(user).empty() && !m_.is_root(user)) || m_.has_control(user)) continue;
      Opcode o = op(user);
      bool moves = o == Opcode::Reshape || o == Opcode::Reverse || o == Opcode::Transpose ||
                   (o == Opcode::Sort && m_.operand_count(user) == 1) || o == Opcode::Slice ||
                   (o == Opcode::DynamicSlice && operand(user, 0) == i);
      if (!moves) continue;
      if (!go("movement of a spread scalar", user)) return;
      // The user keeps standing without users until its own visit, as in XLA.
      InstId b = m_.add(m_.parent(user), {.op = Opcode::Broadcast,
                                          .shape = m_.shape_id(user),
                                          .operands = {a},
                                          .attrs = dims_attr(u_, Opcode::Broadcast, {}),
                                          .meta = m_[i].meta});
      m_.replace_all_uses(user, b);
      changed_ = true;
      return;
    }
    return;
  }
  //   broadcast(iota)      →      iota
  if (op(a) == Opcode::Iota) {
    if (go("broadcast of an iota", i))
      rw(i, Opcode::Iota, {},
         attrs_of(u_, Opcode::Iota,
                  {{Attr::iota_dimension, dims[static_cast<size_t>(m_.attrs(a).integer(Attr::iota_dimension))]}}));
    return;
  }
  //   broadcast(broadcast(A))      →      broadcast(A)
  if (op(a) == Opcode::Broadcast) {
    if (!go("broadcast twice", i)) return;
    Dims composed;
    for (int64_t d : m_.attrs(a).ints(Attr::dimensions)) composed.push_back(dims[static_cast<size_t>(d)]);
    rw(i, Opcode::Broadcast, {operand(a, 0)}, dims_attr(u_, Opcode::Broadcast, composed));
    return;
  }
  //   broadcast(A with dimensions of one)      →      broadcast(reshape(A))
  if (!ls_ && std::find(in.dims.begin(), in.dims.end(), 1) != in.dims.end()) {
    if (!go("broadcast drops ones", i)) return;
    Dims kept, small, place(in.dims.size(), -1);
    for (size_t d = 0; d < dims.size(); ++d)
      if (in.dims[d] != 1) {
        place[d] = static_cast<int64_t>(small.size());
        kept.push_back(dims[d]), small.push_back(in.dims[d]);
      }
    // In the order in which they lay.
    Dims order;
    for (int64_t d : in.layout.minor_to_major)
      if (place[static_cast<size_t>(d)] >= 0) order.push_back(place[static_cast<size_t>(d)]);
    InstId r = make_reshape(m_, a, small);
    m_.set_shape(r, u_.with_layout(m_.shape_id(r), order));
    rw(i, Opcode::Broadcast, {r}, dims_attr(u_, Opcode::Broadcast, kept));
  }
}

void A::reshape(InstId i) {
  InstId a = operand(i, 0);
  const Shape s = m_.shape(i);
  if (s.elements_count() == 0) {
    if (!go("reshape without elements", i)) return;
    Literal empty;
    empty.shape = m_.shape_id(i);
    ri(i, m_.constant(m_.parent(i), std::move(empty)));
    return;
  }
  if (m_.shape_id(i) == m_.shape_id(a) || (!ls_ && u_.compatible(m_.shape_id(i), m_.shape_id(a)))) {
    if (go("reshape to the same shape", i)) ri(i, a);
    return;
  }
  //   reshape(reshape(A))      →      reshape(A)
  if (op(a) == Opcode::Reshape) {
    if (!go("reshape twice", i)) return;
    InstId to = m_.add(m_.parent(i), {.op = Opcode::Reshape, .shape = m_.shape_id(i), .operands = {operand(a, 0)}});
    ri(i, to);
    return;
  }
  if (op(a) == Opcode::Rng && one_user(a)) {
    if (!go("reshape of rng", i)) return;
    m_.set_shape(a, m_.shape_id(i));
    ri(i, a);
    return;
  }
  if (remove_chain(i)) return;
  //   reshape(broadcast(A)) whose broadcast dimensions stay      →      broadcast(A)
  if (op(a) == Opcode::Broadcast) {
    const Dims& dims = m_.attrs(a).ints(Attr::dimensions);
    auto kept = unmodified_dims(m_.shape(a).dims, s.dims);
    Dims mapped;
    for (int64_t d : dims) {
      auto at = std::find_if(kept.begin(), kept.end(), [&](const auto& p) { return p.first == d; });
      if (at == kept.end()) break;
      mapped.push_back(at->second);
    }
    if (mapped.size() == dims.size() && (!ls_ || is_default_layout(s.layout))) {
      if (!go("reshape of a broadcast", i)) return;
      InstId b = m_.add(m_.parent(i), {.op = Opcode::Broadcast,
                                       .shape = m_.shape_id(i),
                                       .operands = {operand(a, 0)},
                                       .attrs = dims_attr(u_, Opcode::Broadcast, mapped)});
      ri(i, b);
      return;
    }
  }
  //   reshape(iota) that leaves the counted dimension alone      →      iota
  if (op(a) == Opcode::Iota) {
    int64_t counted = m_.attrs(a).integer(Attr::iota_dimension);
    for (auto [from, to] : unmodified_dims(m_.shape(a).dims, s.dims))
      if (from == counted) {
        if (go("reshape of an iota", i))
          rw(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, to}}));
        return;
      }
    // Ones at its side belong to the same factor: they move freely.
    if (only_ones(m_.shape(a).dims, s.dims) && m_.shape(a).dims[static_cast<size_t>(counted)] != 1) {
      int64_t nth = 0, to = -1;
      for (int64_t d = 0; d < counted; ++d) nth += m_.shape(a).dims[static_cast<size_t>(d)] != 1;
      for (size_t d = 0; d < s.dims.size(); ++d)
        if (s.dims[d] != 1 && nth-- == 0) to = static_cast<int64_t>(d);
      if (go("reshape of an iota", i))
        rw(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, to}}));
      return;
    }
  }
  if (op(a) == Opcode::Iota && split_iota(i)) return;
  //   reshape(dynamic-update-slice) that only adds or drops ones      →      dynamic-update-slice(reshape, reshape)
  if (!ls_ && op(a) == Opcode::DynamicUpdateSlice && one_user(a) && only_ones(m_.shape(a).dims, s.dims) &&
      !m_.attrs(a).has(Attr::sharding)) {
    const Dims from = m_.shape(a).dims, update = m_.shape(operand(a, 1)).dims;
    // Each dimension of the result is one of the operand or new.
    Dims source(s.dims.size(), -1);
    size_t f = 0;
    bool fits = m_.operand_count(a) == 2 + from.size();
    for (size_t t = 0; t < s.dims.size() && fits; ++t) {
      while (f < from.size() && from[f] != s.dims[t] && from[f] == 1) ++f;
      if (f < from.size() && from[f] == s.dims[t])
        source[t] = static_cast<int64_t>(f++);
      else
        fits = s.dims[t] == 1;
    }
    for (; f < from.size() && fits; ++f) fits = from[f] == 1;
    // Dropped dimensions hold one element, so their index is clamped to 0.
    if (fits) {
      if (!go("reshape of an update", i)) return;
      Dims new_update;
      for (int64_t d : source) new_update.push_back(d < 0 ? 1 : update[static_cast<size_t>(d)]);
      std::vector<InstId> idx(m_.operands(a).begin() + 2, m_.operands(a).end());
      InstId zero = make_scalar(m_, m_.parent(i), idx.empty() ? ElementType::S32 : type(idx[0]), 0);
      InstId base =
          m_.add_derived(operand(a, 0), {.op = Opcode::Reshape, .shape = m_.shape_id(i), .operands = {operand(a, 0)}});
      InstId up = m_.add_derived(operand(a, 1), {.op = Opcode::Reshape,
                                                 .shape = u_.with_dims(m_.shape_id(operand(a, 1)), new_update),
                                                 .operands = {operand(a, 1)}});
      std::vector<InstId> ops{base, up};
      for (int64_t d : source) ops.push_back(d >= 0 ? idx[static_cast<size_t>(d)] : zero);
      rw(i, Opcode::DynamicUpdateSlice, ops);
      return;
    }
  }
  if (!ls_ && transpose_of_reshape(i)) return;
  if (reshape_bitcast(a, m_.shape_id(i))) {
    if (go("reshape is a bitcast", i)) rw(i, Opcode::Bitcast, {a});
  }
}

//   s32[3,4] reshape(s32[12] iota)      →      iota over 4 + iota over 3 * 4
bool A::split_iota(InstId i) {
  InstId a = operand(i, 0);
  const Dims from = m_.shape(a).dims, to = m_.shape(i).dims;
  const auto counted = static_cast<size_t>(m_.attrs(a).integer(Attr::iota_dimension));
  auto bounds = common_factors(from, to);
  for (size_t n = 0; n + 1 < bounds.size(); ++n) {
    auto [f0, t0] = bounds[n];
    auto [f1, t1] = bounds[n + 1];
    if (counted < f0 || counted >= f1) continue;
    for (size_t d = f0; d < f1; ++d)
      if (d != counted && from[d] != 1) return false;
    if (t0 == t1) return false;
    if (!go("reshape of an iota", i)) return true;
    InstId sum;
    int64_t step = 1;
    for (size_t d = t1; d-- > t0;) {
      InstId digit =
          make_op(i, Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, static_cast<int64_t>(d)}}),
                  m_.shape_id(i));
      if (sum.valid()) {
        InstId scaled = make_op(i, Opcode::Multiply, {digit, make_scalar_like(m_, digit, step)}, {}, m_.shape_id(i));
        sum = make_op(i, Opcode::Add, {sum, scaled}, {}, m_.shape_id(i));
      } else {
        sum = digit;
      }
      step *= to[d];
    }
    rw_to(i, sum);
    return true;
  }
  return false;
}

//   reshape(transpose(reshape(A))) that joins neighbours of A      →      transpose(reshape(A))
bool A::transpose_of_reshape(InstId i) {
  InstId t = operand(i, 0);
  if (op(t) != Opcode::Transpose || op(operand(t, 0)) != Opcode::Reshape) return false;
  const Dims p = m_.attrs(t).ints(Attr::dimensions), middle = m_.shape(t).dims, out = m_.shape(i).dims;
  // Runs of transposed dimensions, one for each dimension of the result.
  auto bounds = common_factors(middle, out);
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t n = 0; n + 1 < bounds.size(); ++n) {
    if (bounds[n + 1].second - bounds[n].second != 1 || bounds[n + 1].first == bounds[n].first) return false;
    for (size_t d = bounds[n].first + 1; d < bounds[n + 1].first; ++d)
      if (p[d] != p[d - 1] + 1) return false;
    runs.push_back({bounds[n].first, bounds[n + 1].first});
  }
  if (runs.size() != out.size() || runs.size() == middle.size()) return false;
  // The runs in the order in which they stand before the transposition.
  std::vector<size_t> order(runs.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[runs[a].first] < p[runs[b].first]; });
  Dims joined, permutation(runs.size());
  for (size_t n = 0; n < order.size(); ++n)
    joined.push_back(out[order[n]]), permutation[order[n]] = static_cast<int64_t>(n);
  if (!go("transpose after the reshape", i)) return true;
  InstId flat = make_reshape(m_, operand(operand(t, 0), 0), joined);
  rw(i, Opcode::Transpose, {flat}, dims_attr(u_, Opcode::Transpose, permutation));
  return true;
}

bool A::remove_chain(InstId i) {
  // Follows where each dimension that is not one goes; drops the chain when nothing has moved in the end.
  // Behind layout assignment only arrays in row-major order count, whose bitcasts are reshapes.
  auto plain = [&](InstId x) { return !ls_ || u_.with_default_layout(m_.shape_id(x)) == m_.shape_id(x); };
  if (!plain(i)) return false;
  InstId at = i;
  size_t steps = 0;
  bool permuted = false;
  // labels[d]: dimension of `i` that dimension d of `at` is, -1 for ones.
  std::vector<int64_t> labels;
  const Dims& end = m_.shape(i).dims;
  for (size_t d = 0; d < end.size(); ++d) labels.push_back(end[d] == 1 ? -1 : static_cast<int64_t>(d));
  size_t ones_moved = 0;
  for (;;) {
    Opcode o = op(at);
    if (o == Opcode::Transpose) {
      const Dims& p = m_.attrs(at).ints(Attr::dimensions);
      std::vector<int64_t> before(labels.size());
      for (size_t d = 0; d < p.size(); ++d) before[static_cast<size_t>(p[d])] = labels[d];
      labels = before;
      permuted = true;
    } else if (o == Opcode::Reshape || (ls_ && o == Opcode::Bitcast && type(at) == type(operand(at, 0)))) {
      const Dims &from = m_.shape(operand(at, 0)).dims, &to = m_.shape(at).dims;
      auto ones = [](const Dims& d) { return std::count(d.begin(), d.end(), 1); };
      if (!only_ones(from, to) || ones(from) > 1 || ones(to) > 1) break;
      std::vector<int64_t> before, live;
      for (int64_t l : labels)
        if (l >= 0) live.push_back(l);
      size_t n = 0;
      for (int64_t d : from) before.push_back(d == 1 ? -1 : live[n++]);
      labels = before;
      ++ones_moved;
    } else {
      break;
    }
    at = operand(at, 0);
    if (!plain(at)) return false;
    ++steps;
    if (steps > 16) break;
  }
  // The chain as a whole counts, not what cancels at its end.
  if (steps < 2 || !permuted) return false;
  if (m_.shape(at).dims == end && type(at) == type(i)) {
    bool identity = true;
    for (size_t d = 0; d < labels.size(); ++d) identity &= labels[d] < 0 || labels[d] == static_cast<int64_t>(d);
    if (identity) {
      if (go("movements that cancel", i)) ri(i, at);
      return true;
    }
  }
  //   transpose(bitcast(transpose(A)))      →      bitcast(A)
  Dims order;
  for (int64_t l : labels)
    if (l >= 0) order.push_back(l);
  if (!ls_ || !ascending(order)) return false;
  if (go("movements that cancel", i)) rw(i, Opcode::Bitcast, {at});
  return true;
}

void A::transpose(InstId i) {
  InstId a = operand(i, 0);
  const Dims p = m_.attrs(i).ints(Attr::dimensions);
  if (transpose_into_scatter(i)) return;
  if (is_identity(p) && (!ls_ || m_.shape_id(i) == m_.shape_id(a))) {
    if (go("transpose that permutes nothing", i)) ri(i, a);
    return;
  }
  //   transpose(transpose(A))      →      transpose(A)
  if (op(a) == Opcode::Transpose) {
    if (!go("transpose twice", i)) return;
    const Dims q = m_.attrs(a).ints(Attr::dimensions);
    Dims composed;
    for (int64_t d : p) composed.push_back(q[static_cast<size_t>(d)]);
    rw(i, Opcode::Transpose, {operand(a, 0)}, dims_attr(u_, Opcode::Transpose, composed));
    return;
  }
  if (remove_chain(i)) return;
  //   transpose(dot(A, B)) that swaps rows and columns      →      dot(B, A)
  if (op(a) == Opcode::Dot && one_user(a)) {
    const AttrSet& d = m_.attrs(a);
    const Dims lb = d.ints(Attr::lhs_batch_dims), rb = d.ints(Attr::rhs_batch_dims),
               lc = d.ints(Attr::lhs_contracting_dims), rc = d.ints(Attr::rhs_contracting_dims);
    size_t b = lb.size(), rank = p.size();
    bool canonical = lb == rb && !lc.empty() && rank == b + 2 &&
                     m_.shape(operand(a, 0)).rank() == static_cast<int>(b + 1 + lc.size()) &&
                     m_.shape(operand(a, 1)).rank() == static_cast<int>(b + 1 + rc.size());
    for (size_t k = 0; k < b && canonical; ++k) canonical = lb[k] == static_cast<int64_t>(k);
    bool swap = rank == b + 2;
    for (size_t k = 0; k < b && swap; ++k) swap = p[k] == static_cast<int64_t>(k);
    swap = swap && p[b] == static_cast<int64_t>(b + 1) && p[b + 1] == static_cast<int64_t>(b);
    if (canonical && swap) {
      if (!go("transpose of a dot", i)) return;
      AttrSet set = d;
      if (b) set.set(Attr::lhs_batch_dims, rb), set.set(Attr::rhs_batch_dims, lb);
      set.set(Attr::lhs_contracting_dims, rc), set.set(Attr::rhs_contracting_dims, lc);
      for (Attr key : {Attr::sharding, Attr::frontend_attributes, Attr::backend_config, Attr::origin}) set.erase(key);
      swap_precisions(&set);
      rw(i, Opcode::Dot, {operand(a, 1), operand(a, 0)}, u_.attrs(std::move(set)));
      return;
    }
  }
  //   transpose that only moves ones      →      reshape
  Dims moved;
  for (int64_t d : p)
    if (m_.shape(a).dims[static_cast<size_t>(d)] != 1) moved.push_back(d);
  if (moved.size() < p.size() && ascending(moved) && !ls_) {
    if (go("transpose of ones is a reshape", i)) rw(i, Opcode::Reshape, {a});
    return;
  }
  if (op(a) == Opcode::Rng && one_user(a)) {
    if (!go("transpose of rng", i)) return;
    m_.set_shape(a, m_.shape_id(i));
    ri(i, a);
    return;
  }
  if (ls_ && transpose_is_bitcast(u_, m_.shape_id(a), m_.shape_id(i), p)) {
    if (go("transpose is a bitcast", i)) rw(i, Opcode::Bitcast, {a});
    return;
  }
  //   transpose(broadcast(A))      →      broadcast(A)       where the order of A's dimensions stays
  if (op(a) == Opcode::Broadcast && ascending(m_.attrs(a).ints(Attr::dimensions))) {
    const Dims& spread = m_.attrs(a).ints(Attr::dimensions);
    Dims inverse = inverse_permutation(p), dims;
    for (int64_t d : spread) dims.push_back(inverse[static_cast<size_t>(d)]);
    // Behind layout assignment they must lie in the same order, too.
    auto order = [&](const Shape& s, const Dims& of) {
      Dims out;
      for (int64_t d : s.layout.minor_to_major)
        if (auto at = std::find(of.begin(), of.end(), d); at != of.end()) out.push_back(at - of.begin());
      return out;
    };
    if (ascending(dims) && (!ls_ || order(m_.shape(i), dims) == order(m_.shape(a), spread))) {
      if (go("transpose of a broadcast", i))
        rw(i, Opcode::Broadcast, {operand(a, 0)}, dims_attr(u_, Opcode::Broadcast, dims));
    }
  }
}

}  // namespace hlo
