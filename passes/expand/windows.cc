// select_and_scatter_expander, reduce-window-rewriter and scatter-slice-simplifier
// (xla/service/select_and_scatter_expander.cc, reduce_window_rewriter.cc, scatter_slice_simplifier.cc).
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "passes/rewrite.h"

namespace hlo {
namespace {

AttrsId direction(Universe& u, std::string_view text) {
  return attrs_of(u, Opcode::Compare, {{Attr::direction, u.str(text)}});
}

// Which of two places of a window wins: `select` on the values, places outside of the array (index -1) never.
//   (value, index…, value, index…) → (value, index…)
CompId window_chooser(Module& m, CompId select, ElementType type, int64_t rank) {
  Universe& u = m.u();
  CompId c = m.add_computation(fmt::format("{}.reduce_window", m.comp_name(select)));
  ShapeId value = u.scalar(type), index = u.scalar(ElementType::S32), pred = u.scalar(ElementType::Pred);
  InstId l = m.parameter(c, 0, value, "operand_lhs"), r = m.parameter(c, rank + 1, value, "operand_rhs");
  // Of the first dimension's pair XLA names both iota_lhs; names have no meaning.
  std::vector<InstId> li, ri;
  for (int64_t d = 0; d < rank; ++d) {
    li.push_back(m.parameter(c, d + 1, index, "iota_lhs"));
    ri.push_back(m.parameter(c, d + rank + 2, index, d ? "iota_rhs" : "iota_lhs"));
  }
  std::unordered_map<InstId, InstId> map{{m.comp(select).params[0], l}, {m.comp(select).params[1], r}};
  for (InstId i : m.post_order(select)) {
    if (m.op(i) == Opcode::Parameter) continue;
    std::vector<InstId> ops;
    for (InstId o : m.operands(i)) ops.push_back(map.at(o));
    map[i] = m.clone_inst(i, c, ops);
  }
  InstId chosen = map.at(m.comp(select).root), minus = make_scalar(m, c, ElementType::S32, -1);
  InstId there = make(m, c, Opcode::Compare, {li[0], minus}, direction(u, "NE"));
  InstId first = make(m, c, Opcode::And, {chosen, there}, {}, pred);
  InstId other = make(m, c, Opcode::Compare, {ri[0], minus}, direction(u, "NE"));
  InstId neither = make(m, c, Opcode::Not, {other}, {}, pred);
  InstId take = make(m, c, Opcode::Or, {first, neither}, {}, pred);
  std::vector<InstId> parts{make(m, c, Opcode::Select, {take, l, r}, {}, value)};
  for (size_t d = 0; d < li.size(); ++d) parts.push_back(make(m, c, Opcode::Select, {take, li[d], ri[d]}, {}, index));
  m.set_root(c, make(m, c, Opcode::Tuple, parts));
  return c;
}

// --- reduce-window-rewriter ---

bool trivial(const WindowDim& d) {
  return d.size == 1 && d.stride == 1 && !d.pad_low && !d.pad_high && !d.reversal && d.lhs_dilate == 1 &&
         d.rhs_dilate == 1;
}

class WindowRewriter {
 public:
  WindowRewriter(Module& m, PassContext& ctx, int64_t base) : m_(m), u_(m.u()), ctx_(ctx), base_(base) {}

  bool run() {
    bool changed = false;
    for (int round = 0; round < 25 && base_ > 0; ++round) {
      bool any = false;
      for (CompId c : m_.computations())
        for (InstId i : m_.live_order(c))
          if (m_.alive(i) && m_.op(i) == Opcode::ReduceWindow && !m_.has_control(i)) any |= scan(i) || flat(i);
      changed |= any;
      if (!any || ctx_.fuel <= 0) break;
    }
    return changed;
  }
  // reduce-window-resizer: windows over one dimension alone.
  bool resize() {
    bool changed = false;
    for (CompId c : m_.computations())
      for (InstId i : m_.live_order(c))
        if (m_.alive(i) && m_.op(i) == Opcode::ReduceWindow && !m_.has_control(i)) changed |= flat(i);
    return changed;
  }

 private:
  std::vector<InstId> half(InstId i, size_t k) const {
    auto ops = m_.operands(i);
    auto n = static_cast<ptrdiff_t>(ops.size() / 2);
    return k ? std::vector<InstId>(ops.begin() + n, ops.end()) : std::vector<InstId>(ops.begin(), ops.begin() + n);
  }
  // An array of other dimensions; those kept keep their order in memory.
  ShapeId shaped(InstId like, Dims dims, Dims layout) {
    ShapeId id = u_.with_layout(u_.array(m_.shape(like).type, std::move(dims)), std::move(layout));
    if (const std::string& rest = m_.shape(like).layout.rest; rest.starts_with("E(")) {
      Shape s = u_[id];
      s.layout.rest = rest;
      id = u_.shape(std::move(s));
    }
    return id;
  }
  Dims layout(InstId i) const {
    const auto& l = m_.shape(i).layout.minor_to_major;
    return Dims(l.begin(), l.end());
  }
  Dims wider(Dims layout) {
    layout.push_back(static_cast<int64_t>(layout.size()));
    return layout;
  }
  static Dims narrower(Dims layout) {
    auto last = static_cast<int64_t>(layout.size()) - 1;
    layout.erase(std::find(layout.begin(), layout.end(), last));
    return layout;
  }
  InstId derived(InstId from, Opcode op, std::vector<InstId> operands, AttrsId attrs, ShapeId shape) {
    return m_.add(m_.parent(from), {.op = op, .shape = shape, .operands = std::move(operands), .attrs = attrs});
  }
  std::vector<InstId> window(InstId i, const std::vector<InstId>& inputs, const Window& w, const Dims& dims) {
    std::vector<InstId> ops = inputs, inits = half(i, 1);
    ops.insert(ops.end(), inits.begin(), inits.end());
    std::vector<ShapeId> shapes;
    for (InstId x : inputs) shapes.push_back(shaped(x, dims, layout(x)));
    ShapeId shape = m_.shape(i).is_tuple() ? u_.tuple(shapes) : shapes[0];
    InstId r =
        derived(i, Opcode::ReduceWindow, ops,
                attrs_of(u_, Opcode::ReduceWindow, {{Attr::window, w}, {Attr::to_apply, m_.called(i)[0]}}), shape);
    return parts(r);
  }
  std::vector<InstId> parts(InstId r) {
    if (!m_.shape(r).is_tuple()) return {r};
    std::vector<InstId> out;
    for (size_t k = 0; k < m_.shape(r).elements.size(); ++k)
      out.push_back(make_element(m_, r, static_cast<int64_t>(k)));
    return out;
  }
  InstId cut(InstId x, size_t dim, int64_t from, int64_t to) {
    std::vector<SliceDim> slice;
    for (int64_t d : m_.shape(x).dims) slice.push_back({0, d, 1});
    slice[dim] = {from, to, 1};
    Dims dims = m_.shape(x).dims;
    dims[dim] = to - from;
    return derived(x, Opcode::Slice, {x}, attrs_of(u_, Opcode::Slice, {{Attr::slice, slice}}),
                   shaped(x, dims, layout(x)));
  }
  InstId pad(InstId x, InstId init, size_t dim, int64_t low, int64_t high) {
    std::vector<PaddingDim> by(m_.shape(x).dims.size());
    by[dim] = {low, high, 0};
    Dims dims = m_.shape(x).dims;
    dims[dim] += low + high;
    return derived(x, Opcode::Pad, {x, init}, attrs_of(u_, Opcode::Pad, {{Attr::padding, by}}),
                   shaped(x, dims, layout(x)));
  }
  void finish(InstId i, const std::vector<InstId>& results) {
    InstId to = m_.shape(i).is_tuple() ? make(m_, m_.parent(i), Opcode::Tuple, results) : results[0];
    m_.replace(i, to);
  }

  //   cumulative sum of n      →      sums in rows of 16, sums of the rows' ends, both joined
  bool scan(InstId i) {
    std::vector<InstId> inputs = half(i, 0);
    const std::vector<InstId> inits = half(i, 1);
    const Window& w = *m_.attrs(i).get<Window>(Attr::window);
    size_t rank = w.dims.size(), dim = rank;
    for (size_t d = 0; d < rank; ++d) {
      if (trivial(w.dims[d])) continue;
      if (dim != rank) return false;
      dim = d;
    }
    if (dim == rank) return false;
    const WindowDim& e = w.dims[dim];
    int64_t n = m_.shape(inputs[0]).dims[dim];
    bool forward = (e.pad_low == n - 1 || e.pad_low == n) && e.pad_high == 0,
         reverse = (e.pad_high == n - 1 || e.pad_high == n) && e.pad_low == 0;
    bool exclusive = forward ? e.pad_low == n : e.pad_high == n;
    if (e.size != n || e.stride != 1 || e.reversal || e.lhs_dilate != 1 || e.rhs_dilate != 1 || !(forward || reverse) ||
        n <= base_)
      return false;
    CompId f = m_.called(i)[0];
    if (m_.shape(m_.comp(f).root).is_tuple() && m_.op(m_.comp(f).root) != Opcode::Tuple) return false;
    if (!ctx_.spend(m_, "cumulative window in two steps", {i}, fmt::format("{} elements in rows of {}", n, base_)))
      return false;
    size_t last = rank - 1;
    Dims swap(rank);
    std::iota(swap.begin(), swap.end(), int64_t{0});
    std::swap(swap[dim], swap[last]);
    if (dim != last)
      for (InstId& x : inputs) x = make_transpose(m_, x, swap);
    int64_t rows = (n + base_ - 1) / base_, padded = rows * base_;
    if (padded != n)
      for (size_t k = 0; k < inputs.size(); ++k) inputs[k] = pad(inputs[k], inits[k], last, 0, padded - n);
    Dims wide = m_.shape(inputs[0]).dims, flat_dims = wide;
    wide.back() = rows, wide.push_back(base_);
    for (InstId& x : inputs) x = derived(x, Opcode::Reshape, {x}, {}, shaped(x, wide, wider(layout(x))));
    Window inner;
    inner.dims.resize(rank + 1);
    inner.dims.back().size = base_;
    (forward ? inner.dims.back().pad_low : inner.dims.back().pad_high) = base_ - 1;
    std::vector<InstId> sums = window(i, inputs, inner, wide);
    Dims ends_dims(wide.begin(), wide.end() - 1);
    std::vector<InstId> ends;
    for (InstId s : sums) {
      InstId end = forward ? cut(s, rank, base_ - 1, base_) : cut(s, rank, 0, 1);
      ends.push_back(derived(end, Opcode::Reshape, {end}, {}, shaped(end, ends_dims, narrower(layout(end)))));
    }
    Window outer;
    outer.dims.resize(rank);
    outer.dims.back().size = rows;
    (forward ? outer.dims.back().pad_low : outer.dims.back().pad_high) = rows;
    Dims more = ends_dims;
    more.back() = rows + 1;
    std::vector<InstId> before = window(i, ends, outer, more);
    Dims map(rank);
    std::iota(map.begin(), map.end(), int64_t{0});
    for (InstId& x : before) {
      x = forward ? cut(x, last, 0, rows) : cut(x, last, 1, rows + 1);
      x = derived(x, Opcode::Broadcast, {x}, dims_attr(u_, Opcode::Broadcast, map), shaped(x, wide, wider(layout(x))));
    }
    std::vector<InstId> ops = sums;
    ops.insert(ops.end(), before.begin(), before.end());
    Dims every(rank + 1);
    std::iota(every.begin(), every.end(), int64_t{0});
    std::vector<ShapeId> shapes;
    for (InstId s : sums) shapes.push_back(m_.shape_id(s));
    InstId joined =
        derived(i, Opcode::Map, ops, attrs_of(u_, Opcode::Map, {{Attr::dimensions, every}, {Attr::to_apply, f}}),
                m_.shape(i).is_tuple() ? u_.tuple(shapes) : shapes[0]);
    std::vector<InstId> results = parts(joined);
    for (size_t k = 0; k < results.size(); ++k) {
      InstId& x = results[k];
      x = derived(x, Opcode::Reshape, {x}, {}, shaped(x, flat_dims, narrower(layout(x))));
      if (dim != last) x = make_transpose(m_, x, swap);
      if (padded != n) x = cut(x, dim, 0, n);
      if (exclusive) x = forward ? pad(x, inits[k], dim, 1, 0) : pad(x, inits[k], dim, 0, 1);
    }
    finish(i, results);
    return true;
  }

  //   f32[n] reduce-window      →      f32[n,1] reduce-window between reshapes
  bool flat(InstId i) {
    std::vector<InstId> inputs = half(i, 0);
    if (m_.shape(inputs[0]).rank() != 1) return false;
    if (!ctx_.spend(m_, "window of two dimensions", {i})) return false;
    Window w = *m_.attrs(i).get<Window>(Attr::window);
    w.dims.emplace_back();
    for (InstId& x : inputs) {
      Dims dims = m_.shape(x).dims;
      dims.push_back(1);
      x = derived(x, Opcode::Reshape, {x}, {}, shaped(x, dims, {0, 1}));
    }
    const Shape& out = m_.shape(i).is_tuple() ? u_[m_.shape(i).elements[0]] : m_.shape(i);
    Dims dims = out.dims, wide = out.dims;
    wide.push_back(1);
    std::vector<InstId> results = window(i, inputs, w, wide);
    for (InstId& x : results) x = derived(x, Opcode::Reshape, {x}, {}, shaped(x, dims, {0}));
    finish(i, results);
    return true;
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  int64_t base_;
};

// --- scatter-slice-simplifier ---

// What lies between a scatter and slices that all cut its result the same way.
class ScatterSlices {
 public:
  ScatterSlices(Module& m, InstId scatter) : m_(m), scatter_(scatter) {}

  // Dimensions of the result behind the slices; empty where they do not agree.
  bool match() {
    const AttrSet& a = m_.attrs(scatter_);
    if (m_.is_root(scatter_) || m_.users(scatter_).empty()) return false;
    if (!(m_.shape(scatter_).is_tuple() ? elements() : users(scatter_)) || to_.empty()) return false;
    // What is cut off may not be a part of what one index writes: such an update is dropped whole or written whole.
    size_t n = m_.operand_count(scatter_) / 2;
    const Dims &from = m_.shape(m_.operand(scatter_, 0)).dims, &window = a.ints(Attr::update_window_dims),
               &inserted = a.ints(Attr::inserted_window_dims);
    if (from == to_) return false;
    for (size_t d = 0, k = 0; d < from.size(); ++d) {
      bool gone = contains(inserted, static_cast<int64_t>(d)) ||
                  contains(a.ints(Attr::input_batching_dims), static_cast<int64_t>(d));
      int64_t extent = gone ? 1 : m_.shape(m_.operand(scatter_, n + 1)).dims[static_cast<size_t>(window[k++])];
      if (from[d] != to_[d] &&
          (extent != 1 || !contains(a.ints(Attr::scatter_dims_to_operand_dims), static_cast<int64_t>(d))))
        return false;
    }
    return true;
  }

  bool rewrite() {
    size_t n = m_.operand_count(scatter_) / 2;
    CompId c = m_.parent(scatter_);
    std::vector<InstId> ops(m_.operands(scatter_).begin(), m_.operands(scatter_).end());
    std::vector<ShapeId> shapes;
    for (size_t k = 0; k < n; ++k) ops[k] = cut(ops[k]), shapes.push_back(m_.shape_id(ops[k]));
    InstId small = m_.clone_inst(scatter_, c, ops, n > 1 ? m_.u().tuple(shapes) : shapes[0]);
    map_[scatter_] = small;
    for (InstId i : order_) {
      if (m_.op(i) == Opcode::GetTupleElement) {
        map_[i] = make_element(m_, small, m_.attrs(i).integer(Attr::index));
      } else {
        std::vector<InstId> operands(m_.operands(i).begin(), m_.operands(i).end());
        for (InstId& o : operands) {
          auto at = map_.find(o);
          o = at != map_.end() ? at->second : cut(o);
        }
        map_[i] = m_.clone_inst(i, c, operands, shaped(i));
      }
    }
    bool changed = false;
    for (InstId s : slices_) changed |= m_.replace(s, map_.at(m_.operand(s, 0)));
    return changed;
  }

 private:
  ShapeId shaped(InstId i) { return m_.u().with_type(m_.u().array(ElementType::F32, to_), m_.shape(i).type); }
  InstId cut(InstId x) {
    std::vector<SliceDim> slice;
    for (int64_t d : to_) slice.push_back({0, d, 1});
    return make(m_, m_.parent(x), Opcode::Slice, {x}, attrs_of(m_.u(), Opcode::Slice, {{Attr::slice, slice}}),
                shaped(x));
  }
  bool elements() {
    for (InstId user : m_.users(scatter_)) {
      if (m_.op(user) != Opcode::GetTupleElement || m_.is_root(user) || !users(user)) return false;
      order_.insert(order_.begin(), user);
    }
    return true;
  }
  // All users, through elementwise ones, are slices to one size.
  bool users(InstId i) {
    if (m_.users(i).empty()) return false;
    for (InstId user : m_.users(i)) {
      if (seen_.contains(user)) continue;
      seen_.insert(user);
      if (m_.op(user) == Opcode::Slice) {
        const auto& slice = *m_.attrs(user).get<std::vector<SliceDim>>(Attr::slice);
        if (std::any_of(slice.begin(), slice.end(), [](const SliceDim& s) { return s.start || s.stride != 1; }) ||
            (!to_.empty() && to_ != m_.shape(user).dims))
          return false;
        to_ = m_.shape(user).dims;
        slices_.push_back(user);
        continue;
      }
      if (!op_info(m_.op(user)).elementwise || m_.is_root(user) || !m_.called(user).empty() || m_.has_control(user) ||
          m_.has_side_effect(user) || !m_.shape(user).is_array())
        return false;
      for (InstId o : m_.operands(user))
        if (m_.shape(o).dims != m_.shape(user).dims) return false;
      if (!users(user)) return false;
      order_.insert(order_.begin(), user);
    }
    return true;
  }

  Module& m_;
  InstId scatter_;
  Dims to_;
  std::vector<InstId> slices_, order_;  // order_: operands before users
  std::unordered_set<InstId> seen_;
  std::unordered_map<InstId, InstId> map_;
};

}  // namespace

//   select-and-scatter(A, S, z)
//   →  scatter(broadcast(z), concatenate(indices of reduce-window(A, iota…)), S)
bool run_select_and_scatter_expander(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::SelectAndScatter)) {
    InstId a = m.operand(i, 0), source = m.operand(i, 1), init = m.operand(i, 2);
    const Shape in = m.shape(a), out = m.shape(source);
    int64_t rank = in.rank();
    if (rank == 0 || in.elements_count() == 0 || out.elements_count() == 0) continue;
    if (!ctx.spend(m, "select-and-scatter as reduce-window and scatter", {i})) return changed;
    CompId c = m.parent(i), select = m.attrs(i).comp(Attr::select), combine = m.attrs(i).comp(Attr::scatter);
    Window w;
    if (const Window* given = m.attrs(i).get<Window>(Attr::window)) w = *given;
    InstId start = make_broadcast(m, c, init, {}, m.shape_id(i));
    ShapeId index = u.array(ElementType::S32, in.dims), placed = u.array(ElementType::S32, out.dims);
    std::vector<InstId> ops{a};
    std::vector<ShapeId> shapes{u.array(in.type, out.dims)};
    for (int64_t d = 0; d < rank; ++d) {
      ops.push_back(make(m, c, Opcode::Iota, {}, attrs_of(u, Opcode::Iota, {{Attr::iota_dimension, d}}), index));
      shapes.push_back(placed);
    }
    CompId chooser = window_chooser(m, select, in.type, rank);
    ops.push_back(init);
    InstId minus = make_scalar(m, c, ElementType::S32, -1);
    ops.insert(ops.end(), static_cast<size_t>(rank), minus);
    InstId chosen =
        make(m, c, Opcode::ReduceWindow, ops,
             attrs_of(u, Opcode::ReduceWindow, {{Attr::window, w}, {Attr::to_apply, chooser}}), u.tuple(shapes));
    std::vector<InstId> columns;
    Dims wide = out.dims;
    wide.push_back(1);
    for (int64_t d = 0; d < rank; ++d) columns.push_back(make_reshape(m, make_element(m, chosen, d + 1), wide));
    InstId indices = make(m, c, Opcode::Concatenate, columns, dims_attr(u, Opcode::Concatenate, {rank}));
    Dims every(static_cast<size_t>(rank));
    std::iota(every.begin(), every.end(), int64_t{0});
    AttrsId attrs = attrs_of(u, Opcode::Scatter,
                             {{Attr::update_window_dims, Dims{}},
                              {Attr::inserted_window_dims, every},
                              {Attr::scatter_dims_to_operand_dims, every},
                              {Attr::index_vector_dim, rank},
                              {Attr::to_apply, combine}});
    changed |= m.replace(i, make(m, c, Opcode::Scatter, {start, indices, source}, attrs, m.shape_id(i)));
  }
  return changed;
}

bool run_reduce_window_rewriter(Module& m, PassContext& ctx) {
  return WindowRewriter(m, ctx, ctx.number("base_length")).run();
}

//   f32[n] reduce-window      →      f32[n,1] reduce-window between reshapes
// What reduce-window-rewriter leaves to it is little: nothing, where that one ran.
bool run_reduce_window_resizer(Module& m, PassContext& ctx) { return WindowRewriter(m, ctx, 0).resize(); }

//   slice(scatter(A, I, U)), cut at the end      →      scatter(slice(A), I, U)
bool run_scatter_slice_simplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Scatter)) {
    ScatterSlices slices(m, i);
    if (!slices.match()) continue;
    if (!ctx.spend(m, "scatter into what is kept", {i})) return changed;
    changed |= slices.rewrite();
  }
  return changed;
}

}  // namespace hlo
