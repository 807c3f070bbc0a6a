// batched_gather_scatter_normalizer, gather_simplifier and scatter_simplifier
// (xla/service/batched_gather_scatter_normalizer.cc, gather_simplifier.cc, scatter_simplifier.cc): gathers and scatters
// come to one form each.
#include <algorithm>
#include <numeric>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// What these passes transpose lies as if it had never been anything else.
InstId turned(Module& m, InstId operand, Dims permutation) {
  InstId t = make_transpose(m, operand, std::move(permutation));
  m.set_shape(t, m.u().with_default_layout(m.shape_id(t)));
  return t;
}

// Same opcode and place, other operands and attributes.
InstId changed_copy(Module& m, InstId i, const std::vector<InstId>& operands, AttrSet attrs, ShapeId shape) {
  attrs.erase(Attr::sharding);
  return make(m, m.parent(i), m.op(i), operands, m.u().attrs(std::move(attrs)), shape);
}

//   indices [a, k, b] with the vector in dimension 1      →      [a·b, k]
InstId flat_indices(Module& m, InstId indices, int64_t vector_dim) {
  Dims dims = m.shape(indices).dims;
  int64_t rank = static_cast<int64_t>(dims.size());
  if (vector_dim == rank) {
    dims.push_back(1);
    indices = make_reshape(m, indices, dims);
    ++rank;
  } else if (vector_dim != rank - 1) {
    Dims order;
    for (int64_t d = 0; d < rank; ++d)
      if (d != vector_dim) order.push_back(d);
    order.push_back(vector_dim);
    indices = turned(m, indices, order);
    dims = m.shape(indices).dims;
  }
  if (rank == 2) return indices;
  int64_t count = std::accumulate(dims.begin(), dims.end() - 1, int64_t{1}, std::multiplies<>());
  return make_reshape(m, indices, {count, dims.back()});
}

// Indices with a counter in front for each batching dimension.
InstId counted_indices(Module& m, InstId indices, int64_t vector_dim, const Dims& batching) {
  Dims dims = m.shape(indices).dims;
  CompId c = m.parent(indices);
  Universe& u = m.u();
  ElementType type = m.shape(indices).type;
  bool implicit = vector_dim == static_cast<int64_t>(dims.size());
  if (implicit) dims.push_back(1);
  Dims one = dims;
  one[static_cast<size_t>(vector_dim)] = 1;
  std::vector<InstId> parts;
  for (int64_t b : batching)
    parts.push_back(
        make(m, c, Opcode::Iota, {}, attrs_of(u, Opcode::Iota, {{Attr::iota_dimension, b}}), u.array(type, one)));
  parts.push_back(implicit ? make_reshape(m, indices, dims) : indices);
  Dims out = dims;
  out[static_cast<size_t>(vector_dim)] += static_cast<int64_t>(batching.size());
  return make(m, c, Opcode::Concatenate, parts, dims_attr(u, Opcode::Concatenate, {vector_dim}), u.array(type, out));
}

// Can the index type count the batch?
bool counts_batches(const Module& m, InstId indices, const Dims& batching) {
  ElementType t = m.shape(indices).type;
  int bits = type_bits(t) - (is_signed_int(t) ? 1 : 0);
  return std::all_of(batching.begin(), batching.end(), [&](int64_t b) {
    return bits >= 63 || m.shape(indices).dims[static_cast<size_t>(b)] <= int64_t{1} << bits;
  });
}

Dims joined_dims(const Dims& a, const Dims& b, bool sorted) {
  Dims out = a;
  out.insert(out.end(), b.begin(), b.end());
  if (sorted) std::sort(out.begin(), out.end());
  return out;
}

bool simple_gather(const Module& m, InstId i) {
  const AttrSet& a = m.attrs(i);
  const Dims& offsets = a.ints(Attr::offset_dims);
  if (m.shape(m.operand(i, 1)).rank() != 2 || a.integer(Attr::index_vector_dim) != 1 ||
      !a.ints(Attr::collapsed_slice_dims).empty())
    return false;
  for (size_t k = 0; k < offsets.size(); ++k)
    if (offsets[k] != static_cast<int64_t>(k) + 1) return false;
  return true;
}

bool simple_scatter(const Module& m, InstId i) {
  const AttrSet& a = m.attrs(i);
  size_t n = m.operand_count(i) / 2;
  const Dims& window = a.ints(Attr::update_window_dims);
  return m.shape(m.operand(i, n)).rank() == 2 && a.integer(Attr::index_vector_dim) == 1 &&
         a.ints(Attr::inserted_window_dims).empty() && std::is_sorted(window.begin(), window.end()) &&
         !contains(window, 0) && m.shape(m.operand(i, n + 1)).rank() == static_cast<int64_t>(window.size()) + 1;
}

}  // namespace

//   gather(A, I), operand_batching_dims={0}, start_indices_batching_dims={0}
//   →  gather(A, concatenate(iota, I)), the batch being one more index
bool run_batched_gather_scatter_normalizer(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Opcode op : {Opcode::Gather, Opcode::Scatter}) {
    bool gather = op == Opcode::Gather;
    Attr operand_batch = gather ? Attr::operand_batching_dims : Attr::input_batching_dims,
         index_batch = gather ? Attr::start_indices_batching_dims : Attr::scatter_indices_batching_dims,
         gone = gather ? Attr::collapsed_slice_dims : Attr::inserted_window_dims,
         map = gather ? Attr::start_index_map : Attr::scatter_dims_to_operand_dims;
    for (InstId i : all_of_opcode(m, op)) {
      const AttrSet& a = m.attrs(i);
      Dims batching = a.ints(operand_batch), where = a.ints(index_batch);
      size_t at = gather ? 1 : m.operand_count(i) / 2;
      if (batching.empty() || !counts_batches(m, m.operand(i, at), where)) continue;
      if (!ctx.spend(m, "batching dimensions are indices", {i})) return changed;
      AttrSet set = a;
      InstId indices = counted_indices(m, m.operand(i, at), a.integer(Attr::index_vector_dim), where);
      set.set(gone, joined_dims(a.ints(gone), batching, true));
      set.set(map, joined_dims(batching, a.ints(map), false));
      set.erase(operand_batch), set.erase(index_batch);
      std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
      ops[at] = indices;
      changed |= m.replace(i, changed_copy(m, i, ops, std::move(set), m.shape_id(i)));
    }
  }
  return changed;
}

//   gather(A, I)      →      transpose(reshape(gather(A, [n, k] I), offset_dims={1, …}, collapsed_slice_dims={}))
bool run_gather_simplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::Gather)) {
    if (simple_gather(m, i)) continue;
    const AttrSet& a = m.attrs(i);
    Dims sizes = a.ints(Attr::slice_sizes), collapsed = a.ints(Attr::collapsed_slice_dims),
         offsets = a.ints(Attr::offset_dims), batching = a.ints(Attr::operand_batching_dims);
    InstId operand = m.operand(i, 0);
    if (!batching.empty() || m.shape(i).is_dynamic()) continue;  // the normalizer comes first
    if (!ctx.spend(m, "gather in simple form", {i})) return changed;
    CompId c = m.parent(i);
    if (contains(sizes, 0)) {
      InstId zero = make_scalar(m, c, m.shape(i).type, 0);
      changed |= m.replace(i, make_broadcast(m, c, zero, {}, m.shape_id(i)));
      continue;
    }
    int64_t rank = static_cast<int64_t>(sizes.size());
    if (rank == 0) {
      changed |= m.replace(i, make_broadcast(m, c, operand, {}, m.shape_id(i)));
      continue;
    }
    InstId indices = flat_indices(m, m.operand(i, 1), a.integer(Attr::index_vector_dim));
    Dims out{m.shape(indices).dims[0]}, places;
    for (int64_t d = 0; d < rank; ++d) out.push_back(sizes[static_cast<size_t>(d)]), places.push_back(d + 1);
    AttrSet set = a;
    set.set(Attr::offset_dims, places), set.set(Attr::collapsed_slice_dims, Dims{});
    set.set(Attr::index_vector_dim, int64_t{1});
    InstId now = changed_copy(m, i, {operand, indices}, std::move(set), u.array(m.shape(i).type, out));
    if (!collapsed.empty()) {
      Dims kept{out[0]};
      for (int64_t d = 0; d < rank; ++d)
        if (!contains(collapsed, d)) kept.push_back(out[static_cast<size_t>(d) + 1]);
      now = make_reshape(m, now, kept);
    }
    // The first dimension back to what the batch was.
    Dims batch;
    const Dims whole = m.shape(i).dims;
    for (size_t d = 0; d < whole.size(); ++d)
      if (!contains(offsets, static_cast<int64_t>(d))) batch.push_back(whole[d]);
    if (batch.size() != 1) {
      Dims dims = batch;
      const Dims& from = m.shape(now).dims;
      dims.insert(dims.end(), from.begin() + 1, from.end());
      now = make_reshape(m, now, dims);
    }
    // Offsets to their places.
    Dims order;
    int64_t next_batch = 0, next_offset = static_cast<int64_t>(batch.size());
    for (size_t d = 0; d < whole.size(); ++d)
      order.push_back(contains(offsets, static_cast<int64_t>(d)) ? next_offset++ : next_batch++);
    if (!is_identity(order)) now = turned(m, now, order);
    changed |= m.replace(i, now);
  }
  return changed;
}

//   scatter(A, I, U)      →      scatter(A, [n, k] I, [n, window…] U), inserted_window_dims={}
bool run_scatter_simplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Scatter)) {
    const AttrSet& a = m.attrs(i);
    size_t n = m.operand_count(i) / 2;
    if (!a.ints(Attr::input_batching_dims).empty() || simple_scatter(m, i)) continue;
    int64_t rank = m.shape(m.operand(i, 0)).rank();
    if (rank == 0) {
      //   scatter of scalars      →      the combiner once
      if (m.shape(m.operand(i, n + 1)).rank() != 0 || !ctx.spend(m, "scatter of a scalar", {i})) continue;
      std::vector<InstId> args(m.operands(i).begin(), m.operands(i).begin() + static_cast<ptrdiff_t>(n));
      args.insert(args.end(), m.operands(i).begin() + static_cast<ptrdiff_t>(n) + 1, m.operands(i).end());
      CompId combiner = m.called(i)[0];
      InstId call = make(m, m.parent(i), Opcode::Call, args,
                         attrs_of(m.u(), Opcode::Call, {{Attr::to_apply, combiner}}), m.shape_id(i));
      m.replace(i, call);
      changed |= inline_computation(m, call, combiner, args, true);
      continue;
    }
    if (!ctx.spend(m, "scatter in simple form", {i})) return changed;
    Dims window = a.ints(Attr::update_window_dims), inserted = a.ints(Attr::inserted_window_dims);
    InstId indices = flat_indices(m, m.operand(i, n), a.integer(Attr::index_vector_dim));
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).begin() + static_cast<ptrdiff_t>(n));
    ops.push_back(indices);
    const std::vector<InstId> updates(m.operands(i).begin() + static_cast<ptrdiff_t>(n) + 1, m.operands(i).end());
    for (InstId update : updates) {
      Dims order;
      for (int64_t d = 0; d < m.shape(update).rank(); ++d)
        if (!contains(window, d)) order.push_back(d);
      size_t scattered = order.size();
      order.insert(order.end(), window.begin(), window.end());
      if (!is_identity(order)) update = turned(m, update, order);
      Dims dims = m.shape(update).dims;
      if (scattered != 1) {
        int64_t count = std::accumulate(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(scattered), int64_t{1},
                                        std::multiplies<>());
        dims.erase(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(scattered));
        dims.insert(dims.begin(), count);
        update = make_reshape(m, update, dims);
      }
      if (!inserted.empty()) {
        Dims wide{dims[0]};
        size_t next = 1;
        for (int64_t d = 0; d < rank; ++d) wide.push_back(contains(inserted, d) ? 1 : dims[next++]);
        update = make_reshape(m, update, wide);
      }
      ops.push_back(update);
    }
    Dims places;
    for (int64_t d = 0; d < rank; ++d) places.push_back(d + 1);
    AttrSet set = a;
    set.set(Attr::update_window_dims, places), set.set(Attr::inserted_window_dims, Dims{});
    set.set(Attr::index_vector_dim, int64_t{1});
    // The result lies as the operand does.
    std::vector<ShapeId> shapes;
    for (size_t k = 0; k < n; ++k) shapes.push_back(m.shape_id(ops[k]));
    changed |= m.replace(i, changed_copy(m, i, ops, std::move(set), n == 1 ? shapes[0] : m.u().tuple(shapes)));
  }
  return changed;
}

namespace {

CompId topk_comparator(Module& m, ElementType type, bool largest, bool alone) {
  Universe& u = m.u();
  CompId less = m.add_computation(fmt::format("compare-{}-than", largest ? "greater" : "less"));
  ShapeId scalar = u.scalar(type), index = u.scalar(ElementType::S32);
  InstId a = m.parameter(less, 0, scalar, "p.0.lhs"), b = m.parameter(less, 1, scalar, "p.0.rhs");
  if (!alone) m.parameter(less, 2, index, "p.1.lhs"), m.parameter(less, 3, index, "p.1.rhs");
  AttrSet how;
  how.op = Opcode::Compare;
  how.set(Attr::direction, u.str(largest ? "GT" : "LT"));
  if (is_float(type)) how.set(Attr::type, u.str("TOTALORDER"));
  m.set_root(less, make(m, less, Opcode::Compare, {a, b}, u.attrs(std::move(how)), u.scalar(ElementType::Pred)));
  return less;
}

bool topk_as_sort(Module& m, PassContext& ctx, CompId c, InstId i) {
  Universe& u = m.u();
  bool call = m.op(i) == Opcode::CustomCall && u.text(m.attrs(i).text(Attr::custom_call_target)) == "TopK" &&
              m.called(i).size() == 1;
  if ((m.op(i) != Opcode::TopK && !call) || m.has_control(i) || !m.shape(i).is_tuple()) return false;
  InstId x = m.operand(i, 0);
  const Shape s = m.shape(x);
  bool largest = !m.attrs(i).has(Attr::largest) || m.attrs(i).flag(Attr::largest);
  if (s.dims.empty() || s.is_dynamic()) return false;
  // The values alone need no places; a comparator may be written for values only.
  InstId values = m.users(i).size() == 1 ? m.users(i)[0] : InstId();
  bool alone = values.valid() && m.op(values) == Opcode::GetTupleElement && !m.attrs(values).integer(Attr::index);
  bool of_values = call && m.comp(m.called(i)[0]).params.size() == 2;
  if (call) alone = alone && of_values;
  if (of_values && !alone) {
    ctx.note(m, "comparator without places", {i}, "left alone");
    return false;
  }
  if (!ctx.spend(m, "topk is a sort", {i})) return false;
  int64_t dim = s.rank() - 1, k = u[m.shape(i).elements[0]].dims.back();
  ShapeId iota_shape = u.array(ElementType::S32, s.dims);
  InstId iota;
  if (!alone) iota = make(m, c, Opcode::Iota, {}, attrs_of(u, Opcode::Iota, {{Attr::iota_dimension, dim}}), iota_shape);
  CompId less;
  if (call) {
    less = m.called(i)[0];
  } else {
    less = topk_comparator(m, s.type, largest, alone);
  }
  AttrSet attrs;
  attrs.op = Opcode::Sort;
  attrs.set(Attr::dimensions, Dims{dim}), attrs.set(Attr::is_stable, true), attrs.set(Attr::to_apply, less);
  std::vector<SliceDim> cut;
  for (int64_t d = 0; d <= dim; ++d) cut.push_back({0, d == dim ? k : s.dims[static_cast<size_t>(d)], 1});
  auto first = [&](InstId sorted, size_t n) {
    return make(m, c, Opcode::Slice, {sorted}, attrs_of(u, Opcode::Slice, {{Attr::slice, cut}}),
                m.shape(i).elements[n]);
  };
  if (alone) {
    InstId sort = make(m, c, Opcode::Sort, {x}, u.attrs(std::move(attrs)), m.shape_id(x));
    m.set_meta(sort, m[i].meta);
    return m.replace(values, first(sort, 0));
  }
  InstId sort = make(m, c, Opcode::Sort, {x, iota}, u.attrs(std::move(attrs)), u.tuple({m.shape_id(x), iota_shape}));
  std::vector<InstId> parts;
  for (size_t n = 0; n < 2; ++n) parts.push_back(first(make_element(m, sort, static_cast<int64_t>(n)), n));
  return m.replace(i, make(m, c, Opcode::Tuple, parts, {}, m.shape_id(i)));
}

}  // namespace

//   topk(A), k=5      →      slices of sort(A, iota)
bool run_topk_decomposer(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::TopK, Opcode::CustomCall})) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) changed |= topk_as_sort(m, ctx, c, i);
  return changed;
}

//   compare(A, B), type=TOTALORDER      →      compare of integers that are ordered as the floats are
bool run_comparison_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Compare)) return false;
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != Opcode::Compare || u.text(m.attrs(i).text(Attr::type)) != "TOTALORDER" || m.has_control(i))
        continue;
      ElementType t = m.shape(m.operand(i, 0)).type;
      // Eight bits and less have orders of their own (some know no -0 or no NaN).
      if (!is_float(t) || type_bits(t) < 16 || !ctx.spend(m, "total order of floats", {i})) continue;
      InstId sides[2] = {m.operand(i, 0), m.operand(i, 1)};
      if (t == ElementType::BF16) {
        for (InstId& side : sides) {
          InstId wide = make_convert(m, side, ElementType::F32);
          side = wide;
        }
        t = ElementType::F32;
      }
      int bits = type_bits(t);
      ElementType word = bits == 64 ? ElementType::S64 : bits == 32 ? ElementType::S32 : ElementType::S16;
      ShapeId shape = u.with_type(m.shape_id(sides[0]), word), flags = u.with_type(shape, ElementType::Pred);
      int64_t most = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
      auto all = [&](int64_t v) { return make_broadcast(m, c, make_scalar(m, c, word, v), {}, shape); };
      InstId zero = all(0);
      all(-most - 1);  // XLA makes it for types without -0 and leaves it dead
      InstId highest = all(most);
      InstId keys[2];
      for (size_t k = 0; k < 2; ++k) {
        InstId raw = make(m, c, Opcode::BitcastConvert, {sides[k]}, {}, shape);
        InstId flipped = make(m, c, Opcode::Xor, {highest, raw}, {}, shape);
        InstId negative = make(m, c, Opcode::Compare, {raw, zero},
                               attrs_of(u, Opcode::Compare, {{Attr::direction, u.str("LT")}}), flags);
        keys[k] = make(m, c, Opcode::Select, {negative, flipped, raw}, {}, shape);
      }
      InstId now =
          make(m, c, Opcode::Compare, {keys[0], keys[1]},
               attrs_of(u, Opcode::Compare, {{Attr::direction, m.attrs(i).text(Attr::direction)}}), m.shape_id(i));
      changed |= m.replace(i, now);
    }
  return changed;
}

}  // namespace hlo
