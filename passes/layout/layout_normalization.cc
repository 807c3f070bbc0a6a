// layout_normalization (xla/service/layout_normalization.cc): every array lies row by row. What read or made another
// layout works on the dimensions as they lie, between bitcasts; algsimp takes out those that meet.
#include <unordered_set>

#include "ir/library/cudnn.h"
#include "passes/layout/physical.h"

namespace hlo {
namespace {

bool is_default(const Shape& s) { return lies_by_default(s); }

// The places of dimensions as they lie, by dimension.
Dims places_of(const Shape& s) { return inverse_permutation(major_to_minor(s)); }

// The elements in the order of memory of a shape that lies otherwise; logical row-major order on both sides.
std::string relaid_bytes(const Literal& literal, const Shape& s, size_t width) {
  const Dims order = major_to_minor(s);
  const size_t rank = s.dims.size();
  std::vector<size_t> stride(rank, width), step(rank), at(rank);
  for (size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * static_cast<size_t>(s.dims[d]);
  for (size_t k = 0; k < rank; ++k) step[k] = stride[static_cast<size_t>(order[k])];
  std::string out(literal.bytes.size(), '\0');
  size_t from = 0;
  for (size_t to = 0; to < out.size(); to += width) {
    std::copy_n(literal.bytes.data() + from, width, out.data() + to);
    for (size_t k = rank; k-- > 0;) {
      from += step[k];
      if (++at[k] < static_cast<size_t>(s.dims[static_cast<size_t>(order[k])])) break;
      from -= step[k] * at[k];
      at[k] = 0;
    }
  }
  return out;
}

class LayoutNormalizer {
 public:
  LayoutNormalizer(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    const std::vector<CompId> computations = m_.nonfusion_computations();
    bool needed = false;
    for (CompId c : computations)
      for (InstId i : m_.live_order(c)) needed |= m_.shape(i).is_array() && !is_default(m_.shape(i));
    if (!needed) return false;
    for (CompId c : computations)
      visit_computation(m_, c, [&](InstId i) {
        if (!done_.contains(i) && (!plain(i) || library_convolution(i))) visit(i);
      });
    if (left_bitcasts_ && !changed_) ctx_.claim(false);
    return changed_ || left_bitcasts_;
  }

 private:
  // Nothing here lies otherwise.
  bool plain(InstId i) const {
    if (!is_default(m_.shape(i))) return false;
    for (InstId o : m_.operands(i))
      if (!is_default(m_.shape(o))) return false;
    return true;
  }

  bool library_convolution(InstId i) const {
    return m_.op(i) == Opcode::CustomCall &&
           u_.text(m_.attrs(i).text(Attr::custom_call_target)).starts_with("__cudnn$conv") &&
           is_cudnn_convolution_of_fitting_ranks(m_, i);
  }

  // What an operand is a bitcast of, where it lies otherwise; invalid where its maker could not be treated.
  InstId normal(InstId i) const {
    if (is_default(m_.shape(i))) return i;
    if (m_.op(i) != Opcode::Bitcast || !is_default(m_.shape(m_.operand(i, 0)))) return {};
    return m_.operand(i, 0);
  }
  // The first n operands so, the others as they are; empty where one cannot be.
  std::vector<InstId> normal_operands(InstId i, size_t n) const {
    std::vector<InstId> out(m_.operands(i).begin(), m_.operands(i).end());
    for (size_t k = 0; k < n; ++k)
      if (out[k] = normal(out[k]); !out[k].valid()) return {};
    return out;
  }
  bool same_order(InstId a, InstId b) const { return major_to_minor(m_.shape(a)) == major_to_minor(m_.shape(b)); }
  bool spend(std::string_view rule, InstId i) { return ctx_.spend(m_, rule, {i}); }

  // `now` in the place of i, in its shape.
  void take(InstId i, InstId now) {
    done_.insert(now);
    changed_ |= m_.replace(i, bitcast_to(m_, now, m_.shape_id(i)), {.relay_control = true});
  }
  InstId clone(InstId i, const std::vector<InstId>& operands) { return clone(i, operands, m_.attrs(i)); }
  InstId clone(InstId i, const std::vector<InstId>& operands, AttrSet attrs) {
    // A sharding is of the dimensions as they were: the bitcast has it.
    if (m_.op(i) != Opcode::Clamp && m_.op(i) != Opcode::Select)
      attrs.erase(Attr::sharding), attrs.erase(Attr::frontend_attributes);
    const InstId now = m_.clone_inst(i, m_.parent(i), operands, as_it_lies(u_, m_.shape_id(i)));
    m_.set_attrs(now, u_.attrs(std::move(attrs)));
    return now;
  }

  void visit(InstId i) {
    if (!treat(i)) by_default(i);
  }

  // What reads it, reads it by way of its dimensions as they lie.
  void by_default(InstId i) {
    if (m_.users(i).empty() || !m_.shape(i).is_array()) return;
    const ShapeId shape = m_.shape_id(i);
    if (is_default(m_.shape(i))) return;
    if (!spend("bitcast to the dimensions in layout order", i)) return;
    const InstId there = bitcast_to(m_, i, as_it_lies(u_, shape));
    done_.insert(there);
    const InstId back = bitcast_to(m_, there, shape);
    const CompId c = m_.parent(i);
    const bool root = m_.is_root(i);
    m_.replace_all_uses(i, back);  // at once: a tuple may read thousands
    m_.set_operand(there, 0, i);
    if (root) m_.set_root(c, i);
    changed_ = true;
  }

  bool treat(InstId i) {
    const Opcode op = m_.op(i);
    switch (op) {
      case Opcode::Constant:
        return constant(i);
      case Opcode::Copy:
      case Opcode::Transpose:
        return transpose(i);
      case Opcode::Broadcast:
        return broadcast(i);
      case Opcode::Iota:
        return iota(i);
      case Opcode::Reshape:
        return reshape(i);
      case Opcode::BitcastConvert:
        return bitcast_convert(i);
      case Opcode::Scatter:
        return scatter(i);
      case Opcode::CustomCall:
        return library_convolution(i) && convolution(i, true);
      case Opcode::Convolution:
        return convolution(i, false);
      case Opcode::Slice:
      case Opcode::Pad:
      case Opcode::Reverse:
      case Opcode::Concatenate:
      case Opcode::DynamicSlice:
      case Opcode::DynamicUpdateSlice:
      case Opcode::ReduceWindow:
        return m_.shape(i).is_array() && window_like(i);
      case Opcode::Rng:
      case Opcode::Map:
        return false;
      default:
        return op_info(op).cls == OpClass::Elementwise && m_.shape(i).is_array() && elementwise(i);
    }
  }

  bool constant(InstId i) {
    const Literal& literal = m_.literal(i);
    const Shape s = m_.shape(i);
    if (!s.is_array() || s.has_zero()) return false;
    if (!spend("constant in layout order", i)) return true;
    Literal now = literal;
    now.shape = as_it_lies(u_, m_.shape_id(i));
    if (!literal.elided) now.bytes = relaid_bytes(literal, s, static_cast<size_t>(storage_bytes(s.type)));
    take(i, m_.constant(m_.parent(i), std::move(now)));
    return true;
  }

  bool elementwise(InstId i) {
    const std::vector<InstId> operands = normal_operands(i, m_.operand_count(i));
    for (InstId o : m_.operands(i))  // scalars of clamps and selects lie anyhow
      if (m_.shape(o).rank() == m_.shape(i).rank() && !same_order(o, i)) return false;
    if (operands.empty()) return false;
    if (spend("in layout order", i)) take(i, clone(i, operands));
    return true;
  }

  bool bitcast_convert(InstId i) {
    const Shape &s = m_.shape(i), &x = m_.shape(m_.operand(i, 0));
    if (s.rank() == x.rank()) return elementwise(i);
    const Shape& longer = s.rank() > x.rank() ? s : x;
    if (major_to_minor(longer).back() != longer.rank() - 1) return false;
    const std::vector<InstId> operands = normal_operands(i, 1);
    if (operands.empty()) return false;
    if (spend("in layout order", i)) take(i, clone(i, operands));
    return true;
  }

  // Operations that keep the layout, with something for each dimension.
  bool window_like(InstId i) {
    const Opcode op = m_.op(i);
    const size_t arrays = op == Opcode::Concatenate ? m_.operand_count(i) : op == Opcode::DynamicUpdateSlice ? 2 : 1;
    std::vector<InstId> operands = normal_operands(i, arrays);
    if (operands.empty()) return false;
    for (size_t k = 0; k < arrays; ++k)
      if (!same_order(m_.operand(i, k), i)) return false;
    const Dims order = major_to_minor(m_.shape(i)), places = inverse_permutation(order);
    AttrSet a = m_.attrs(i);
    if (const auto* v = a.get<std::vector<SliceDim>>(Attr::slice)) a.set(Attr::slice, in_order(*v, order));
    if (const auto* v = a.get<std::vector<PaddingDim>>(Attr::padding)) a.set(Attr::padding, in_order(*v, order));
    if (const auto* v = a.get<Window>(Attr::window)) a.set(Attr::window, Window{in_order(v->dims, order)});
    if (const auto* v = a.get<Dims>(Attr::dynamic_slice_sizes)) a.set(Attr::dynamic_slice_sizes, in_order(*v, order));
    if (const auto* v = a.get<Dims>(Attr::dimensions)) {
      Dims dims = at_places(*v, places);
      std::sort(dims.begin(), dims.end());
      a.set(Attr::dimensions, dims);
    }
    if (op == Opcode::DynamicSlice || op == Opcode::DynamicUpdateSlice) {
      if (operands.size() != arrays + order.size()) return false;  // indices as one vector
      for (size_t k = 0; k < order.size(); ++k)
        operands[arrays + k] = m_.operand(i, arrays + static_cast<size_t>(order[k]));
    }
    if (!spend("in layout order", i)) return true;
    take(i, clone(i, operands, std::move(a)));
    return true;
  }

  bool broadcast(InstId i) {
    const std::vector<InstId> operands = normal_operands(i, 1);
    if (operands.empty()) return false;
    if (!spend("in layout order", i)) return true;
    const Dims from = major_to_minor(m_.shape(m_.operand(i, 0)));
    Dims dims = at_places(in_order(m_.attrs(i).ints(Attr::dimensions), from), places_of(m_.shape(i)));
    const InstId now = clone(i, operands);
    m_.set_attr(now, Attr::dimensions, dims);  // broadcast_canonicalizer puts them in order
    take(i, now);
    return true;
  }

  bool iota(InstId i) {
    if (!spend("in layout order", i)) return true;
    const Dims places = places_of(m_.shape(i));
    const InstId now = clone(i, {});
    m_.set_attr(now, Attr::iota_dimension, places[static_cast<size_t>(m_.attrs(i).integer(Attr::iota_dimension))]);
    take(i, now);
    return true;
  }

  bool reshape(InstId i) {
    const std::vector<InstId> operands = normal_operands(i, 1);
    if (operands.empty() || !reshape_is_bitcast(u_, m_.shape_id(m_.operand(i, 0)), m_.shape_id(i))) return false;
    if (spend("in layout order", i)) take(i, clone(i, operands));
    return true;
  }

  // Copies to another layout are transposes of the dimensions as they lie.
  bool transpose(InstId i) {
    if (!m_.shape(i).is_array()) return false;
    const std::vector<InstId> operands = normal_operands(i, 1);
    if (operands.empty()) return false;
    const bool copy = m_.op(i) == Opcode::Copy;
    if (!spend(copy ? "copy to another layout" : "in layout order", i)) return true;
    const Dims order = major_to_minor(m_.shape(i)), places = places_of(m_.shape(m_.operand(i, 0)));
    const Dims dims = at_places(copy ? order : in_order(m_.attrs(i).ints(Attr::dimensions), order), places);
    if (!copy && is_identity(dims)) {
      changed_ |= m_.replace(i, bitcast_to(m_, operands[0], m_.shape_id(i)), {.relay_control = true});
      return true;
    }
    take(i, make_derived(m_, i, Opcode::Transpose, operands, dims_attr(u_, Opcode::Transpose, dims),
                         as_it_lies(u_, m_.shape_id(i))));
    return true;
  }

  bool scatter(InstId i) {
    const size_t n = m_.operand_count(i) / 2;
    const std::vector<InstId> operands = normal_operands(i, m_.operand_count(i));
    const AttrSet& a = m_.attrs(i);
    const InstId into = m_.operand(i, 0), indices = m_.operand(i, n), update = m_.operand(i, n + 1);
    if (operands.empty() || !m_.shape(i).is_array() || n != 1 || !same_order(into, i)) return false;
    // Of two dimensions of indices none could say which is which; scatter_simplifier leaves one.
    const Dims& window = a.ints(Attr::update_window_dims);
    if (m_.shape(update).dims.size() > window.size() + 1 || !a.ints(Attr::input_batching_dims).empty()) return false;
    const int64_t vector = a.integer(Attr::index_vector_dim);
    if (vector >= m_.shape(indices).rank() && m_.shape(indices).rank() > 1) return false;
    if (!spend("in layout order", i)) return true;
    const Dims order = major_to_minor(m_.shape(into)), places = inverse_permutation(order);
    const Dims update_places = places_of(m_.shape(update));
    Dims of_operand(order.size(), -1), inserted, updated;  // the update's dimension, by the operand's
    for (size_t d = 0, k = 0; d < of_operand.size(); ++d)
      if (!contains(a.ints(Attr::inserted_window_dims), static_cast<int64_t>(d)) && k < window.size())
        of_operand[d] = update_places[static_cast<size_t>(window[k++])];
    for (size_t d = 0; d < order.size(); ++d) {
      const int64_t k = of_operand[static_cast<size_t>(order[d])];
      k < 0 ? inserted.push_back(static_cast<int64_t>(d)) : updated.push_back(k);
    }
    AttrSet now = a;
    now.set(Attr::inserted_window_dims, inserted);
    now.set(Attr::update_window_dims, updated);
    now.set(Attr::scatter_dims_to_operand_dims, at_places(a.ints(Attr::scatter_dims_to_operand_dims), places));
    if (vector < m_.shape(indices).rank())
      now.set(Attr::index_vector_dim, places_of(m_.shape(indices))[static_cast<size_t>(vector)]);
    take(i, clone(i, operands, std::move(now)));
    return true;
  }

  // Of the library: all operands and parts of the result by bitcasts, needed or not, as XLA makes them; where the call
  // stays as it is, nothing reads those of its operands (xla/service/gpu/conv_layout_normalization.cc). A run that has
  // nothing else to do leaves none here: XLA's leaves them then, too, and says that it changed nothing.
  bool convolution(InstId i, bool call) {
    const std::string_view target = call ? u_.text(m_.attrs(i).text(Attr::custom_call_target)) : "";
    const bool of_input = target == "__cudnn$convBackwardInput", of_filter = target == "__cudnn$convBackwardFilter";
    const ShapeId shape = m_.shape_id(i), normal_shape = as_it_lies(u_, shape);
    const Shape result = u_[shape].is_tuple() ? u_[u_[shape].elements[0]] : u_[shape];
    bool needed = normal_shape != shape;
    for (InstId o : m_.operands(i)) needed |= !is_default(m_.shape(o));
    const DimLabels* labels = m_.attrs(i).get<DimLabels>(Attr::dim_labels);
    if ((!needed && !call) || !labels) return false;
    if (!spend(needed ? "convolution of dimensions in layout order" : "bitcasts around a convolution as it is", i))
      return true;
    const Shape &lhs = m_.shape(m_.operand(i, 0)), &rhs = m_.shape(m_.operand(i, 1));
    const Dims input = places_of(of_input ? result : lhs), filter = places_of(of_filter ? result : rhs);
    const Dims output = places_of(of_input ? lhs : of_filter ? rhs : result);
    DimLabels d = *labels;
    auto move = [](int64_t& dim, const Dims& places) { dim = places[static_cast<size_t>(dim)]; };
    move(d.input_batch, input), move(d.input_feature, input), d.input_spatial = at_places(d.input_spatial, input);
    move(d.kernel_input, filter), move(d.kernel_output, filter), d.kernel_spatial = at_places(d.kernel_spatial, filter);
    move(d.output_batch, output), move(d.output_feature, output);
    d.output_spatial = at_places(d.output_spatial, output);
    auto bitcast = [&](InstId x, ShapeId to) {
      return call && !u_[to].is_token() ? make(m_, m_.parent(i), Opcode::Bitcast, {x}, {}, to) : bitcast_to(m_, x, to);
    };
    std::vector<InstId> operands;
    for (InstId o : std::vector<InstId>(m_.operands(i).begin(), m_.operands(i).end()))
      operands.push_back(bitcast(o, as_it_lies(u_, m_.shape_id(o))));
    if (!needed) {
      left_bitcasts_ = true;
      return false;
    }
    const InstId now = m_.clone_inst(i, m_.parent(i), operands, normal_shape);
    m_.set_attr(now, Attr::dim_labels, Boxed<DimLabels>(std::move(d)));
    done_.insert(now);
    InstId back = now;
    if (u_[shape].is_tuple()) {
      std::vector<InstId> parts;
      const std::vector<ShapeId> elements = u_[shape].elements;
      for (size_t k = 0; k < elements.size(); ++k)
        parts.push_back(bitcast(make_element(m_, now, static_cast<int64_t>(k)), elements[k]));
      back = make(m_, m_.parent(i), Opcode::Tuple, parts, {}, shape);
    } else {
      back = bitcast(now, shape);
    }
    changed_ |= m_.replace(i, back, {.relay_control = true});
    return true;
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  std::unordered_set<InstId> done_;
  bool changed_ = false, left_bitcasts_ = false;
};

}  // namespace

bool run_layout_normalization(Module& m, PassContext& ctx) { return LayoutNormalizer(m, ctx).run(); }

}  // namespace hlo
