// What expanders make that XLA writes with its client builder (xla/hlo/builder/xla_builder.cc and the libraries above
// it): a computation of its own, with the builder's habits.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "passes/rewrite.h"

namespace hlo {

// What XLA's client builders emit, in one computation: shapes are inferred, products carry their precision, loops their
// state in a tuple.
class Client {
 public:
  Client(Module& module, CompId c) : m(module), u(module.u()), comp(c) {}
  Module& m;
  Universe& u;
  CompId comp;

  const Dims& dims(InstId x) const { return m.shape(x).dims; }
  int64_t dim(InstId x, int64_t from_end) const { return dims(x)[dims(x).size() - static_cast<size_t>(from_end)]; }
  ElementType type(InstId x) const { return m.shape(x).type; }
  ShapeId shaped(ElementType t, const Dims& d) { return u.with_default_layout(u.array(t, d)); }

  // What is done element by element keeps the layout of its operand (`select`: of what it takes where true).
  InstId op(Opcode code, std::vector<InstId> operands) {
    InstId like = operands[code == Opcode::Select ? 1 : 0];
    InstId made = make(m, comp, code, std::move(operands), {}, {});
    const Shape& from = m.shape(like);
    if (op_info(code).elementwise && from.is_array() && from.has_layout && m.shape(made).rank() == from.rank())
      m.set_shape(made, u.with_layout(m.shape_id(made), from.layout.minor_to_major));
    return made;
  }
  InstId number(ElementType t, ScalarValue v) { return make_scalar(m, comp, t, v); }
  InstId s32(int64_t v) { return number(ElementType::S32, v); }
  InstId broadcast(InstId x, const Dims& to, Dims map) {
    return make_broadcast(m, comp, x, std::move(map), shaped(type(x), to));
  }
  // A scalar beside an array; nothing to do beside another scalar.
  InstId beside(InstId scalar, const Dims& to) { return to.empty() ? scalar : broadcast(scalar, to, {}); }
  InstId filled(ElementType t, ScalarValue v, const Dims& to) { return broadcast(number(t, v), to, {}); }
  // To dimensions `map`, repeated where it has one element: a broadcast to its own sizes, those of one dropped, the
  // rest broadcast.
  InstId stretched(InstId x, const Dims& to, const Dims& map) {
    Dims sizes(to.size(), 1);
    for (size_t k = 0; k < map.size(); ++k) sizes[static_cast<size_t>(map[k])] = dims(x)[k];
    return repeated(broadcast(x, sizes, map), to);
  }
  // Dimensions of one repeated to the size there.
  InstId repeated(InstId x, const Dims& to) {
    if (dims(x) == to) return x;
    Dims kept, sizes;
    for (size_t k = 0; k < to.size(); ++k)
      if (dims(x)[k] == to[k]) kept.push_back(static_cast<int64_t>(k)), sizes.push_back(to[k]);
    return broadcast(reshape(x, sizes), to, kept);
  }
  InstId reshape(InstId x, const Dims& to) { return make(m, comp, Opcode::Reshape, {x}, {}, shaped(type(x), to)); }
  InstId iota(ElementType t, const Dims& d, int64_t along) {
    return make(m, comp, Opcode::Iota, {}, attrs_of(u, Opcode::Iota, {{Attr::iota_dimension, along}}), shaped(t, d));
  }
  InstId compare(InstId a, InstId b, std::string_view direction) {
    return make(m, comp, Opcode::Compare, {a, b}, attrs_of(u, Opcode::Compare, {{Attr::direction, u.str(direction)}}));
  }
  InstId convert(InstId x, ElementType t) {
    return make(m, comp, Opcode::Convert, {x}, {}, u.with_type(m.shape_id(x), t));
  }
  InstId bitcast(InstId x, ElementType t) {
    return make(m, comp, Opcode::BitcastConvert, {x}, {}, u.with_type(m.shape_id(x), t));
  }
  // By a function that XLA calls `or_U32` or the like.
  InstId reduce(InstId x, InstId init, Dims over, Opcode by) {
    std::string name(type_name(type(x)));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
    CompId function = make_reducer(m, fmt::format("{}_{}", op_info(by).text, name), by, type(x));
    return make(m, comp, Opcode::Reduce, {x, init},
                attrs_of(u, Opcode::Reduce, {{Attr::dimensions, std::move(over)}, {Attr::to_apply, function}}));
  }
  InstId element(InstId tuple, int64_t k) { return make_element(m, tuple, k); }
  InstId slice_minor(InstId x, Dims from, Dims to) {
    std::vector<SliceDim> s;
    size_t lead = dims(x).size() - from.size();
    for (size_t k = 0; k < lead; ++k) s.push_back({0, dims(x)[k], 1});
    for (size_t k = 0; k < from.size(); ++k) s.push_back({from[k], to[k], 1});
    return make(m, comp, Opcode::Slice, {x}, attrs_of(u, Opcode::Slice, {{Attr::slice, s}}));
  }
  // Starts of the minor dimensions; the others begin at one zero that they share.
  InstId dynamic_slice_minor(InstId x, const std::vector<InstId>& starts, Dims sizes) {
    std::vector<InstId> ops{x};
    size_t lead = dims(x).size() - starts.size();
    InstId zero = s32(0);
    for (size_t k = 0; k < lead; ++k) ops.push_back(zero);
    ops.insert(ops.end(), starts.begin(), starts.end());
    Dims all(dims(x).begin(), dims(x).begin() + static_cast<ptrdiff_t>(lead));
    all.insert(all.end(), sizes.begin(), sizes.end());
    return make(m, comp, Opcode::DynamicSlice, ops,
                attrs_of(u, Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, all}}));
  }
  InstId dynamic_update_minor(InstId x, InstId update, const std::vector<InstId>& starts) {
    std::vector<InstId> ops{x, update};
    InstId zero = s32(0);
    for (size_t k = 0; k < dims(x).size() - starts.size(); ++k) ops.push_back(zero);
    ops.insert(ops.end(), starts.begin(), starts.end());
    return make(m, comp, Opcode::DynamicUpdateSlice, ops, {}, m.shape_id(x));
  }
  // At constant starts, a constant each.
  InstId update_minor(InstId x, InstId update, const Dims& starts) {
    std::vector<InstId> ops{x, update};
    for (size_t k = 0; k < dims(x).size(); ++k) {
      size_t lead = dims(x).size() - starts.size();
      ops.push_back(s32(k < lead ? 0 : starts[k - lead]));
    }
    return make(m, comp, Opcode::DynamicUpdateSlice, ops, {}, m.shape_id(x));
  }
  // Both minor dimensions swapped, in memory where they were.
  InstId transposed(InstId x) {
    Dims order = upto(dims(x).size());
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    InstId t = make(m, comp, Opcode::Transpose, {x}, dims_attr(u, Opcode::Transpose, order));
    const Shape& from = m.shape(x);
    Dims inverse = inverse_permutation(order), minor;
    for (int64_t d : from.has_layout ? from.layout.minor_to_major : default_minor_to_major(from.rank()))
      minor.push_back(inverse[static_cast<size_t>(d)]);
    m.set_shape(t, u.with_layout(m.shape_id(t), minor));
    return t;
  }
  InstId conjugated(InstId x) {
    if (!is_complex(type(x))) return x;
    InstId re = op(Opcode::Real, {x}), im = op(Opcode::Imag, {x});
    return op(Opcode::Complex, {re, op(Opcode::Negate, {im})});
  }
  static Dims upto(size_t n) {
    Dims out;
    for (size_t k = 0; k < n; ++k) out.push_back(static_cast<int64_t>(k));
    return out;
  }
  // A product of matrices in the minor dimensions as an einsum makes it: of highest precision, and a transpose that may
  // do nothing. `x`, `y`: the contracted dimension of each, counted from the end.
  InstId product(InstId a, InstId b, int64_t x, int64_t y) {
    auto rank = static_cast<int64_t>(dims(a).size());
    Dims batch = upto(static_cast<size_t>(rank - 2));
    AttrSet attrs;
    attrs.op = Opcode::Dot;
    if (!batch.empty()) attrs.set(Attr::lhs_batch_dims, batch), attrs.set(Attr::rhs_batch_dims, batch);
    attrs.set(Attr::lhs_contracting_dims, Dims{rank - x}), attrs.set(Attr::rhs_contracting_dims, Dims{rank - y});
    attrs.set(Attr::operand_precision, u.str("{highest,highest}"));
    attrs.set(Attr::frontend_attributes, u.str("{grad_x=\"false\",grad_y=\"false\"}"));
    InstId dot = make(m, comp, Opcode::Dot, {a, b}, u.attrs(std::move(attrs)));
    return make(m, comp, Opcode::Transpose, {dot}, dims_attr(u, Opcode::Transpose, upto(static_cast<size_t>(rank))),
                m.shape_id(dot));
  }
  // while (i < trips): the state behind the counter. Every element is taken out of every tuple, used or not.
  // `also`: what must hold besides, of the condition's values behind the counter.
  using Also = std::function<InstId(Client&, const std::vector<InstId>&)>;
  template <class Body>
  std::vector<InstId> loop(int64_t trips, const std::vector<InstId>& start, std::string_view name, Body body,
                           const Also& also = nullptr) {
    std::vector<ShapeId> shapes{u.scalar(ElementType::S32)};
    for (InstId s : start) shapes.push_back(m.shape_id(s));
    ShapeId state = u.tuple(shapes);
    auto taken_apart = [&](InstId tuple) {
      std::vector<InstId> out;
      for (size_t k = 0; k < shapes.size(); ++k) out.push_back(make_element(m, tuple, static_cast<int64_t>(k)));
      return out;
    };
    Client c(m, m.add_computation(std::string(name) + "_condition"));
    std::vector<InstId> seen = taken_apart(m.parameter(c.comp, 0, state, "parameter"));
    InstId more = c.compare(seen[0], c.s32(trips), "LT");
    if (also) more = c.op(Opcode::And, {more, also(c, {seen.begin() + 1, seen.end()})});
    m.set_root(c.comp, more);
    Client b(m, m.add_computation(std::string(name) + "_body"));
    std::vector<InstId> values = taken_apart(m.parameter(b.comp, 0, state, "parameter"));
    InstId i = values[0];
    values.erase(values.begin());
    InstId next = b.op(Opcode::Add, {i, b.s32(1)});
    std::vector<InstId> results = body(b, i, values);
    results.insert(results.begin(), next);
    m.set_root(b.comp, make(m, b.comp, Opcode::Tuple, results, {}, state));
    std::vector<InstId> init{s32(0)};
    init.insert(init.end(), start.begin(), start.end());
    InstId tuple = make(m, comp, Opcode::Tuple, init, {}, state);
    InstId w = make(m, comp, Opcode::While, {tuple},
                    attrs_of(u, Opcode::While, {{Attr::condition, c.comp}, {Attr::body, b.comp}}), state);
    std::vector<InstId> out = taken_apart(w);
    out.erase(out.begin());
    return out;
  }
};

// A shape as the names of such computations tell it: `f32_8_4_` for f32[8,4].
inline std::string named(const Module& m, ShapeId shape) {
  std::string text = m.u().shape_text_plain(shape);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '[' || c == ']' || c == ','; }, '_');
  return text;
}

}  // namespace hlo
