// gather_expander, scatter_expander and gpu_scatter_expander (xla/service/gather_expander.cc, scatter_expander.cc):
// gathers and scatters of one index become loops of one trip, which simplify-while-loops takes apart. The loop is built
// as xla/service/while_util.cc, MakeCountedLoop, builds it.
#include <algorithm>
#include <numeric>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// Shorthand for one-instruction builders inside one computation.
class Builder {
 public:
  Builder(Module& m, CompId c) : m(m), u(m.u()), comp(c) {}
  Module& m;
  Universe& u;
  CompId comp;

  InstId op(Opcode code, std::vector<InstId> operands, AttrsId attrs = {}, ShapeId shape = {}) {
    return make(m, comp, code, std::move(operands), attrs, shape);
  }
  InstId zeros(ShapeId shape) { return make_broadcast(m, comp, make_scalar(m, comp, u[shape].type, 0), {}, shape); }
  // A vector of constants of an integer type.
  InstId vector(ElementType type, const Dims& values) {
    Literal literal;
    literal.shape = u.array(type, {static_cast<int64_t>(values.size())});
    size_t width = static_cast<size_t>(storage_bytes(type));
    literal.bytes.resize(values.size() * width);
    for (size_t k = 0; k < values.size(); ++k) store_int(type, literal.bytes.data() + k * width, values[k]);
    return m.constant(comp, std::move(literal));
  }
  InstId reshape(InstId x, Dims dims) { return make_reshape(m, x, std::move(dims)); }
  InstId without(InstId x, const Dims& dropped) {
    Dims dims;
    for (int64_t d = 0; d < m.shape(x).rank(); ++d)
      if (!contains(dropped, d)) dims.push_back(m.shape(x).dims[static_cast<size_t>(d)]);
    return reshape(x, dims);
  }
  InstId with_leading_one(InstId x) {
    Dims dims = m.shape(x).dims;
    dims.insert(dims.begin(), 1);
    return reshape(x, dims);
  }
  // vector of one element, then `count` zeros; of none the pad stands all the same
  InstId zero_padded(InstId vector, int64_t count) {
    InstId zero = make_scalar(m, comp, m.shape(vector).type, 0);
    return op(Opcode::Pad, {vector, zero},
              attrs_of(u, Opcode::Pad, {{Attr::padding, std::vector<PaddingDim>{{0, count, 0}}}}));
  }
  InstId piece(InstId vector, int64_t k) {
    return op(Opcode::Slice, {vector},
              attrs_of(u, Opcode::Slice, {{Attr::slice, std::vector<SliceDim>{{k, k + 1, 1}}}}));
  }
  std::vector<InstId> scalars(InstId vector) {
    std::vector<InstId> out;
    for (int64_t k = 0; k < m.shape(vector).dims[0]; ++k) out.push_back(reshape(piece(vector, k), {}));
    return out;
  }
  InstId dynamic_slice(InstId x, InstId vector, const Dims& sizes) {
    std::vector<InstId> ops{x};
    for (InstId s : scalars(vector)) ops.push_back(s);
    return op(Opcode::DynamicSlice, ops, attrs_of(u, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, sizes}}));
  }
  InstId dynamic_update(InstId x, InstId update, InstId vector) {
    std::vector<InstId> ops{x, update};
    for (InstId s : scalars(vector)) ops.push_back(s);
    return op(Opcode::DynamicUpdateSlice, ops, {}, m.shape_id(x));
  }
};

// while (i, state…) with i = 0 … trips - 1; `body` gets i and the state and gives the next state. Returns the elements
// of the loop's result behind the counter.
template <class Body>
std::vector<InstId> counted_loop(Module& m, CompId outer, int64_t trips, const std::vector<InstId>& start, MetaId meta,
                                 Body body) {
  Universe& u = m.u();
  ShapeId counter = u.scalar(ElementType::S32);
  std::vector<ShapeId> shapes{counter};
  for (InstId s : start) shapes.push_back(m.shape_id(s));
  ShapeId state = u.tuple(shapes);
  // The placeholder results are XLA's; they stay behind dead, as there.
  CompId condition = m.add_computation("while_cond");
  Builder c(m, condition);
  c.zeros(u.scalar(ElementType::Pred));
  InstId tested = m.parameter(condition, 0, state, "param.0");
  InstId limit = make_scalar(m, condition, ElementType::S32, trips);
  InstId at = make_element(m, tested, 0);
  m.set_root(condition,
             c.op(Opcode::Compare, {at, limit}, attrs_of(u, Opcode::Compare, {{Attr::direction, u.str("LT")}})));
  CompId loop = m.add_computation("while_body");
  Builder b(m, loop);
  std::vector<InstId> blank;
  for (ShapeId s : shapes) blank.push_back(b.zeros(s));
  b.op(Opcode::Tuple, blank, {}, state);
  InstId param = m.parameter(loop, 0, state, "param.0");
  InstId i = make_element(m, param, 0);
  InstId next = b.op(Opcode::Add, {i, make_scalar(m, loop, ElementType::S32, 1)});
  std::vector<InstId> values;
  for (size_t k = 1; k < shapes.size(); ++k) values.push_back(make_element(m, param, static_cast<int64_t>(k)));
  std::vector<InstId> results = body(b, i, values);
  results.insert(results.begin(), next);
  m.set_root(loop, b.op(Opcode::Tuple, results, {}, state));
  std::vector<InstId> init{make_scalar(m, outer, ElementType::S32, 0)};
  init.insert(init.end(), start.begin(), start.end());
  InstId tuple = make(m, outer, Opcode::Tuple, init, {}, state);
  InstId w = make(m, outer, Opcode::While, {tuple},
                  attrs_of(u, Opcode::While, {{Attr::condition, condition}, {Attr::body, loop}}), state);
  m.set_meta(w, meta);
  std::vector<InstId> out;
  for (size_t k = 1; k < shapes.size(); ++k) out.push_back(make_element(m, w, static_cast<int64_t>(k)));
  return out;
}

int64_t index_count(const Module& m, InstId indices, int64_t vector_dim) {
  int64_t n = 1;
  for (int64_t d = 0; d < m.shape(indices).rank(); ++d)
    if (d != vector_dim) n *= m.shape(indices).dims[static_cast<size_t>(d)];
  return n;
}

// Indices with the vector last and all other dimensions as one in front.
InstId flat(Builder& b, InstId indices, int64_t vector_dim) {
  Module& m = b.m;
  int64_t rank = m.shape(indices).rank();
  bool scalar = vector_dim == rank;
  if (!scalar && vector_dim != rank - 1) {
    Dims order;
    for (int64_t d = 0; d < rank; ++d)
      if (d != vector_dim) order.push_back(d);
    order.push_back(vector_dim);
    indices = make_transpose(m, indices, order);
  }
  Dims out{index_count(m, indices, scalar ? rank : rank - 1)};
  if (!scalar) out.push_back(m.shape(indices).dims.back());
  return b.reshape(indices, out);
}

// The index vector of trip i.
InstId index_vector(Builder& b, InstId indices, InstId i_vector) {
  const Dims dims = b.m.shape(indices).dims;
  if (dims.size() == 1) return b.dynamic_slice(indices, i_vector, {1});
  InstId row = b.dynamic_slice(indices, b.zero_padded(i_vector, 1), {1, dims[1]});
  return b.without(row, {0});
}

//   [i, j] with map {0, 2} into rank 3      →      [i, 0, j]
InstId operand_index(Builder& b, InstId vector, const Dims& map, int64_t rank) {
  InstId zero = b.vector(b.m.shape(vector).type, {0});
  std::vector<InstId> parts;
  for (int64_t d = 0; d < rank; ++d) {
    auto at = std::find(map.begin(), map.end(), d);
    parts.push_back(at == map.end() ? zero : b.piece(vector, at - map.begin()));
  }
  return b.op(Opcode::Concatenate, parts, dims_attr(b.u, Opcode::Concatenate, {0}));
}

InstId expand_gather(Module& m, InstId i) {
  const AttrSet a = m.attrs(i);
  CompId c = m.parent(i);
  Builder b(m, c);
  InstId operand = m.operand(i, 0), indices = m.operand(i, 1);
  const Dims &sizes = a.ints(Attr::slice_sizes), &collapsed = a.ints(Attr::collapsed_slice_dims),
             &offsets = a.ints(Attr::offset_dims), &map = a.ints(Attr::start_index_map);
  int64_t vector_dim = a.integer(Attr::index_vector_dim);
  const Dims whole = m.shape(i).dims;
  int64_t trips = index_count(m, indices, vector_dim);
  Dims batch;
  for (int64_t d = 0; d < m.shape(indices).rank(); ++d)
    if (d != vector_dim) batch.push_back(m.shape(indices).dims[static_cast<size_t>(d)]);
  indices = flat(b, indices, vector_dim);
  Dims kept;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
    if (!contains(collapsed, d)) kept.push_back(sizes[static_cast<size_t>(d)]);
  Dims gathered = kept;
  gathered.insert(gathered.begin(), trips);
  InstId start = b.zeros(m.u().array(m.shape(i).type, gathered));
  std::vector<InstId> done = counted_loop(
      m, c, trips, {operand, indices, start}, m[i].meta,
      [&](Builder& in, InstId n, const std::vector<InstId>& state) -> std::vector<InstId> {
        InstId nv = make_broadcast(m, in.comp, n, {}, m.u().array(ElementType::S32, {1}));
        InstId at = operand_index(in, index_vector(in, state[1], nv), map, m.shape(operand).rank());
        InstId part = in.with_leading_one(in.without(in.dynamic_slice(state[0], at, sizes), collapsed));
        InstId all = in.dynamic_update(state[2], part, in.zero_padded(nv, static_cast<int64_t>(gathered.size()) - 1));
        return {state[0], state[1], all};
      });
  Dims dims = batch;
  dims.insert(dims.end(), kept.begin(), kept.end());
  InstId out = b.reshape(done[2], dims);
  Dims order;
  int64_t next_batch = 0, next_offset = static_cast<int64_t>(batch.size());
  for (int64_t d = 0; d < static_cast<int64_t>(whole.size()); ++d)
    order.push_back(contains(offsets, d) ? next_offset++ : next_batch++);
  return is_identity(order) ? out : make_transpose(m, out, order);
}

// The k-th result of a function of several.
CompId one_result(Module& m, CompId function, int64_t k) {
  CompId copy = m.clone_computation(function, "dup");
  m.set_root(copy, make_element(m, m.comp(copy).root, k));
  return copy;
}

InstId expand_scatter(Module& m, InstId i) {
  const AttrSet a = m.attrs(i);
  CompId c = m.parent(i), combiner = m.called(i)[0];
  Builder b(m, c);
  Universe& u = m.u();
  const size_t n_arrays = m.operand_count(i) / 2;
  InstId operand = m.operand(i, 0), indices = m.operand(i, n_arrays);
  const Dims &window = a.ints(Attr::update_window_dims), &inserted = a.ints(Attr::inserted_window_dims),
             &map = a.ints(Attr::scatter_dims_to_operand_dims);
  int64_t vector_dim = a.integer(Attr::index_vector_dim), rank = m.shape(indices).rank();
  int64_t trips = index_count(m, indices, vector_dim);
  // Vectors of one element are scalars.
  if (rank > 0 && vector_dim == rank - 1 && m.shape(indices).dims.back() == 1) {
    b.without(indices, {rank - 1});
    indices = b.reshape(indices, {trips});
  } else {
    indices = flat(b, indices, vector_dim);
  }
  std::vector<InstId> state(m.operands(i).begin(), m.operands(i).begin() + static_cast<ptrdiff_t>(n_arrays));
  state.push_back(indices);
  Dims dims;
  for (size_t k = 0; k < n_arrays; ++k) {
    InstId updates = m.operand(i, n_arrays + 1 + k);
    Dims order;
    for (int64_t d = 0; d < m.shape(updates).rank(); ++d)
      if (!contains(window, d)) order.push_back(d);
    order.insert(order.end(), window.begin(), window.end());
    updates = make_transpose(m, updates, order);
    dims = {trips};
    for (size_t d = order.size() - window.size(); d < order.size(); ++d) dims.push_back(m.shape(updates).dims[d]);
    state.push_back(b.reshape(updates, dims));
  }
  Dims size;  // of the window in the operand
  for (int64_t d = 0, k = 1; d < m.shape(operand).rank(); ++d)
    size.push_back(contains(inserted, d) ? 1 : dims[static_cast<size_t>(k++)]);
  std::vector<InstId> done =
      counted_loop(m, c, trips, state, m[i].meta, [&](Builder& in, InstId n, const std::vector<InstId>& at_trip) {
        InstId nv = make_broadcast(m, in.comp, n, {}, u.array(ElementType::S32, {1}));
        InstId at = operand_index(in, index_vector(in, at_trip[n_arrays], nv), map, m.shape(operand).rank());
        Dims one = dims;
        one[0] = 1;
        InstId where = in.zero_padded(nv, static_cast<int64_t>(dims.size()) - 1);
        // In bounds, all of it?
        ElementType type = m.shape(at).type;
        auto compare = [&](InstId x, InstId y, std::string_view direction) {
          return in.op(Opcode::Compare, {x, y}, attrs_of(u, Opcode::Compare, {{Attr::direction, u.str(direction)}}));
        };
        InstId low = compare(in.zeros(m.shape_id(at)), at, "LE");
        Dims last;
        for (size_t d = 0; d < size.size(); ++d) last.push_back(m.shape(operand).dims[d] - size[d]);
        InstId high = compare(in.vector(type, last), at, "GE");
        CompId reducer = make_reducer(m, "and.reduce_sub_computation", Opcode::And, ElementType::Pred);
        InstId both = in.op(Opcode::And, {low, high});
        InstId yes = make_scalar(m, in.comp, ElementType::Pred, 1);
        InstId inside = in.op(Opcode::Reduce, {both, yes},
                              attrs_of(u, Opcode::Reduce, {{Attr::dimensions, Dims{0}}, {Attr::to_apply, reducer}}));
        InstId mask = make_broadcast(m, in.comp, inside, {}, u.array(ElementType::Pred, size));
        std::vector<InstId> arguments(2 * n_arrays);  // of the combiner: what is there, then what comes
        for (size_t k = 0; k < n_arrays; ++k) {
          InstId update = in.dynamic_slice(at_trip[n_arrays + 1 + k], where, one);
          arguments[n_arrays + k] = in.reshape(in.without(update, {0}), size);
          arguments[k] = in.dynamic_slice(at_trip[k], at, size);
        }
        Dims every(size.size());
        std::iota(every.begin(), every.end(), int64_t{0});
        std::vector<InstId> next = at_trip;
        for (size_t k = 0; k < n_arrays; ++k) {
          CompId function = n_arrays == 1 ? combiner : one_result(m, combiner, static_cast<int64_t>(k));
          InstId fresh = in.op(Opcode::Map, arguments,
                               attrs_of(u, Opcode::Map, {{Attr::dimensions, every}, {Attr::to_apply, function}}),
                               m.shape_id(arguments[k]));
          InstId kept = in.op(Opcode::Select, {mask, fresh, arguments[k]});
          next[k] = in.dynamic_update(at_trip[k], kept, at);
        }
        return next;
      });
  done.resize(n_arrays);
  return n_arrays == 1 ? done[0] : b.op(Opcode::Tuple, done, {}, m.shape_id(i));
}

bool batching(const AttrSet& a) {
  return !a.ints(Attr::operand_batching_dims).empty() || !a.ints(Attr::input_batching_dims).empty();
}

bool expand_scatters(Module& m, PassContext& ctx, const std::function<bool(InstId)>& wanted) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Scatter)) {
    if (!wanted(i)) continue;
    const Shape& operand = m.shape(m.operand(i, 0));
    const size_t n = m.operand_count(i) / 2;
    if (batching(m.attrs(i)) || m.shape(i).is_dynamic() || operand.rank() == 0) {
      ctx.note(m, "scatter kept", {i}, "with batching dimensions, of a scalar or of dynamic shape");
      continue;
    }
    if (m.shape(m.operand(i, n + 1)).elements_count() == 0 || operand.elements_count() == 0) {
      if (!ctx.spend(m, "scatter of nothing", {i})) return changed;
      std::vector<InstId> kept(m.operands(i).begin(), m.operands(i).begin() + static_cast<ptrdiff_t>(n));
      changed |= m.replace(i, n == 1 ? kept[0] : make(m, m.parent(i), Opcode::Tuple, kept, {}, m.shape_id(i)));
      continue;
    }
    if (!ctx.spend(m, "scatter as a loop", {i})) return changed;
    changed |= m.replace(i, expand_scatter(m, i));
  }
  return changed;
}

}  // namespace

//   gather(A, s32[1,2] I)      →      while of one trip: dynamic-slice(A, I), dynamic-update-slice
//   gather(A, I) of whole slices      →      broadcast(reshape(A))
bool run_gather_expander(Module& m, PassContext& ctx) {
  bool changed = false, all = ctx.flag("all");
  for (InstId i : all_of_opcode(m, Opcode::Gather)) {
    const AttrSet& a = m.attrs(i);
    InstId operand = m.operand(i, 0);
    const Dims sizes = a.ints(Attr::slice_sizes);
    bool whole = sizes == m.shape(operand).dims;
    if (m.shape(i).elements_count() == 0 || m.shape(i).is_dynamic() || batching(a) ||
        !(all || whole || index_count(m, m.operand(i, 1), a.integer(Attr::index_vector_dim)) == 1))
      continue;
    if (whole) {
      if (!ctx.spend(m, "gather of everything", {i})) return changed;
      Dims dims, offsets = a.ints(Attr::offset_dims);
      for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
        if (!contains(a.ints(Attr::collapsed_slice_dims), d)) dims.push_back(sizes[static_cast<size_t>(d)]);
      InstId flat = make_reshape(m, operand, dims);
      InstId wide = m.add_derived(operand, {.op = Opcode::Broadcast,
                                            .shape = m.shape_id(i),
                                            .operands = {flat},
                                            .attrs = dims_attr(m.u(), Opcode::Broadcast, offsets)});
      changed |= m.replace(i, wide);
      continue;
    }
    if (!ctx.spend(m, "gather as a loop", {i})) return changed;
    changed |= m.replace(i, expand_gather(m, i));
  }
  return changed;
}

//   scatter(A, s32[1,2] I, U)      →      while of one trip: dynamic-slice, map(to_apply), select, dynamic-update-slice
bool run_scatter_expander(Module& m, PassContext& ctx) {
  bool all = ctx.flag("all");
  return expand_scatters(m, ctx, [&](InstId i) {
    return all || index_count(m, m.operand(i, m.operand_count(i) / 2), m.attrs(i).integer(Attr::index_vector_dim)) == 1;
  });
}

// Scatters that no atomic operation can do: elements of more than 64 bits, several arrays at once.
bool run_gpu_scatter_expander(Module& m, PassContext& ctx) {
  return expand_scatters(
      m, ctx, [&](InstId i) { return m.operand_count(i) > 3 || type_bits(m.shape(m.operand(i, 0)).type) > 64; });
}

}  // namespace hlo
