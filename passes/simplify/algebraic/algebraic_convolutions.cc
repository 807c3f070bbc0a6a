// algsimp: convolutions (xla/hlo/transforms/simplifiers/algebraic_simplifier.cc).
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kConvolutionRules[] = {
    {"convolution of nothing", Opcode::Convolution, "convolution(A, F) where A or F has no elements", "broadcast(0)",
     &AlgebraicSimplifier::convolution_of_nothing},
    {"filter padding into the convolution", Opcode::Convolution,
     "convolution(A, pad(F, 0)) with padding between elements", "convolution(A, F), rhs_dilate",
     &AlgebraicSimplifier::padding_of_filter},
    {"padding into the convolution", Opcode::Convolution, "convolution(pad(A, 0), F)",
     "convolution(A, F) with padding in the window", &AlgebraicSimplifier::padding_of_input},
    {"operands of a convolution change places", Opcode::Convolution,
     "convolution(A, F) with a filter larger than the input", "convolution(reverse(F), A), rhs_reversal",
     &AlgebraicSimplifier::swapped_convolution},
    {"convolution as a dot", Opcode::Convolution, "convolution(A, F) whose features are minor-most, size=1x1",
     "bitcast(dot(bitcast(A), bitcast(F)))", &AlgebraicSimplifier::convolution_as_dot},
    {"convolution as a product", Opcode::Convolution,
     "convolution(A, F), a filter for each feature, of one element or as large as A",
     "multiply(A, broadcast(F)), summed where the filter is large", &AlgebraicSimplifier::convolution_as_product},
};

size_t at(int64_t d) { return static_cast<size_t>(d); }

// The place of each dimension of a role (batch, feature, spatial …) in an array.
Dims places(int64_t batch, int64_t feature, const Dims& spatial) {
  Dims out{batch, feature};
  out.insert(out.end(), spatial.begin(), spatial.end());
  return out;
}

}  // namespace

std::span<const AlgebraicRule> convolution_rules() { return kConvolutionRules; }

bool AlgebraicSimplifier::convolution_of_nothing(InstId i) {
  if (m_.shape(operand(i, 0)).elements_count() != 0 && m_.shape(operand(i, 1)).elements_count() != 0) return false;
  if (spend(i))
    rewrite(i, Opcode::Broadcast, {make_scalar(m_, m_.parent(i), type(i), 0)}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::padding_of_filter(InstId i) {
  InstId f = operand(i, 1);
  const Window* w = m_.attrs(i).get<Window>(Attr::window);
  if (op(f) != Opcode::Pad || !w || !is_all(m_, operand(f, 1), 0)) return false;
  const DimLabels& d = *m_.attrs(i).get<DimLabels>(Attr::dim_labels);
  const std::vector<PaddingDim> pads = padding_dims(f);
  if (pads[at(d.kernel_input)] != PaddingDim{} || pads[at(d.kernel_output)] != PaddingDim{}) return false;
  Window wider = *w;
  for (size_t n = 0; n < wider.dims.size(); ++n) {
    const PaddingDim& p = pads[at(d.kernel_spatial[n])];
    if (p.low || p.high || wider.dims[n].rhs_dilate != 1) return false;
    wider.dims[n].rhs_dilate = p.interior + 1;
    wider.dims[n].size = m_.shape(operand(f, 0)).dims[at(d.kernel_spatial[n])];
  }
  if (!spend(i)) return true;
  InstId to = m_.clone_inst(i, m_.parent(i), std::vector<InstId>{operand(i, 0), operand(f, 0)});
  m_.set_attr(to, Attr::window, wider);
  rewrite_to(i, to);
  return true;
}

bool AlgebraicSimplifier::padding_of_input(InstId i) {
  InstId a = operand(i, 0);
  const Window* w = m_.attrs(i).get<Window>(Attr::window);
  if (op(a) != Opcode::Pad || !w || !is_all(m_, operand(a, 1), 0)) return false;
  const DimLabels& d = *m_.attrs(i).get<DimLabels>(Attr::dim_labels);
  const auto pads = *m_.attrs(a).get<std::vector<PaddingDim>>(Attr::padding);
  auto none = [](const PaddingDim& p) { return !p.low && !p.high && !p.interior; };
  if (!none(pads[static_cast<size_t>(d.input_batch)]) || !none(pads[static_cast<size_t>(d.input_feature)]))
    return false;
  Window wider = *w;
  for (size_t k = 0; k < wider.dims.size(); ++k) {
    const PaddingDim& p = pads[static_cast<size_t>(d.input_spatial[k])];
    WindowDim& e = wider.dims[k];
    if (p.low < 0 || p.high < 0) return false;
    // Padding between elements, here or there, goes with no other padding on the other side.
    if (p.interior && (e.lhs_dilate != 1 || e.pad_low || e.pad_high)) return false;
    if (e.lhs_dilate != 1 && !none(p)) return false;
    e.pad_low += p.low, e.pad_high += p.high;
    if (p.interior) e.lhs_dilate = p.interior + 1;
  }
  if (!spend(i)) return true;
  AttrSet set = m_.attrs(i);
  set.set(Attr::window, wider);
  AttrsId attrs = u_.attrs(std::move(set));
  InstId r = operand(i, 1);
  InstId to = m_.clone_inst(i, m_.parent(i), std::vector<InstId>{operand(a, 0), r});
  m_.set_attrs(to, attrs);
  rewrite_to(i, to);
  return true;
}

bool AlgebraicSimplifier::swapped_convolution(InstId i) {
  const Window* w = m_.attrs(i).get<Window>(Attr::window);
  if (layout_sensitive_ || !w || m_.attrs(i).integer(Attr::feature_group_count, 1) != 1 ||
      m_.attrs(i).integer(Attr::batch_group_count, 1) != 1)
    return false;
  const DimLabels d = *m_.attrs(i).get<DimLabels>(Attr::dim_labels);
  InstId input = operand(i, 0), filter = operand(i, 1);
  Window turned;
  Dims reversed;  // dimensions of the filter
  int64_t work = 1, work_turned = 1;
  size_t backwards = 0;
  for (size_t k = 0; k < w->dims.size(); ++k) {
    const WindowDim& e = w->dims[k];
    const int64_t size = m_.shape(input).dims[at(d.input_spatial[k])];
    const bool plain = !e.reversal && !e.pad_low && !e.pad_high && e.rhs_dilate == 1;
    const bool group = plain && e.lhs_dilate == e.size && e.stride == e.size - 1;
    if (group || (plain && e.size == size && e.lhs_dilate == 1 && e.stride == 1)) {
      turned.dims.push_back(e);
      continue;
    }
    work *= e.size;
    work_turned *= size == 1 && e.stride == 1 && e.rhs_dilate == 1 ? e.size : size;
    if (!e.reversal) reversed.push_back(d.kernel_spatial[k]);
    const int64_t move = WindowDim::dilated(size, e.lhs_dilate) - WindowDim::dilated(e.size, e.rhs_dilate);
    turned.dims.push_back({.size = size,
                           .stride = e.stride,
                           .pad_low = e.pad_low + move,
                           .pad_high = e.pad_high + move,
                           .lhs_dilate = e.rhs_dilate,
                           .rhs_dilate = e.lhs_dilate,
                           .reversal = true});
    ++backwards;
  }
  // cuDNN takes two dimensions backwards, or none.
  const size_t rank = w->dims.size();
  if (work <= work_turned || rank > 3 || (backwards && (rank != 2 || backwards != 2))) return false;
  if (!spend(i)) return true;
  if (!reversed.empty())
    filter = make_op(i, Opcode::Reverse, {filter}, dims_attr(u_, Opcode::Reverse, reversed), m_.shape_id(filter));
  DimLabels to = d;
  to.lhs_rank = d.rhs_rank, to.rhs_rank = d.lhs_rank;
  to.input_batch = d.kernel_output, to.input_feature = d.kernel_input, to.input_spatial = d.kernel_spatial;
  to.kernel_output = d.input_batch, to.kernel_input = d.input_feature, to.kernel_spatial = d.input_spatial;
  to.output_batch = d.output_feature, to.output_feature = d.output_batch;
  AttrSet set = m_.attrs(i);
  set.set(Attr::window, turned), set.set(Attr::dim_labels, to);
  swap_precisions(&set);
  set.erase(Attr::sharding);
  rewrite_to(i, make_op(i, Opcode::Convolution, {filter, input}, u_.attrs(std::move(set)), m_.shape_id(i)));
  return true;
}

bool AlgebraicSimplifier::convolution_as_dot(InstId i) {
  const Window* w = m_.attrs(i).get<Window>(Attr::window);
  if (!layout_sensitive_ || m_.attrs(i).integer(Attr::feature_group_count, 1) != 1 ||
      m_.attrs(i).integer(Attr::batch_group_count, 1) != 1)
    return false;
  if (w)
    for (const WindowDim& e : w->dims)
      if (e != WindowDim{}) return false;
  const DimLabels& d = *m_.attrs(i).get<DimLabels>(Attr::dim_labels);
  const Shape in = m_.shape(operand(i, 0)), filter = m_.shape(operand(i, 1)), out = m_.shape(i);
  auto order = [](const Shape& s) -> const auto& { return s.layout.minor_to_major; };
  auto minor_place = [&](const Shape& s, int64_t dim) {
    return std::find(order(s).begin(), order(s).end(), dim) - order(s).begin();
  };
  if (in.rank() == 0 || order(in) != order(out) || order(in).empty() || order(in)[0] != d.input_feature ||
      order(out)[0] != d.output_feature || d.input_spatial != d.output_spatial || d.input_batch != d.output_batch)
    return false;
  if (minor_place(filter, d.kernel_input) < minor_place(filter, d.kernel_output)) return false;
  if (!spend(i)) return true;
  const int64_t features = in.dims[at(d.input_feature)], made = filter.dims[at(d.kernel_output)];
  const int64_t width = in.elements_count() / features;
  InstId lhs = make_op(i, Opcode::Bitcast, {operand(i, 0)}, {}, u_.array(in.type, {width, features}));
  InstId rhs = make_op(i, Opcode::Bitcast, {operand(i, 1)}, {}, u_.array(filter.type, {features, made}));
  AttrSet set;
  set.op = Opcode::Dot;
  set.set(Attr::lhs_contracting_dims, Dims{1}), set.set(Attr::rhs_contracting_dims, Dims{0});
  if (const AttrValue* precision = m_.attrs(i).find(Attr::operand_precision))
    set.set(Attr::operand_precision, *precision);
  InstId dot = make_op(i, Opcode::Dot, {lhs, rhs}, u_.attrs(std::move(set)), u_.array(out.type, {width, made}));
  rewrite(i, Opcode::Bitcast, {dot});
  return true;
}

// Filters run backwards stay where they have more than one element: XLA 0.10.2 forgets to turn them.
bool AlgebraicSimplifier::convolution_as_product(InstId i) {
  const DimLabels d = *m_.attrs(i).get<DimLabels>(Attr::dim_labels);
  const InstId input = operand(i, 0), filter = operand(i, 1);
  const Window* w = m_.attrs(i).get<Window>(Attr::window);
  const Dims in = m_.shape(input).dims, kernel = m_.shape(filter).dims;
  const int64_t features = in[at(d.input_feature)];
  if (layout_sensitive_ || type(input) != type(filter) || type(input) != type(i) || kernel[at(d.kernel_input)] != 1 ||
      kernel[at(d.kernel_output)] != features || m_.attrs(i).integer(Attr::feature_group_count, 1) != features ||
      m_.attrs(i).integer(Attr::batch_group_count, 1) != 1)
    return false;
  for (size_t k = 0; w && k < w->dims.size(); ++k) {
    WindowDim e = w->dims[k];
    if (e.size != 1 && (e.size != in[at(d.input_spatial[k])] || e.reversal)) return false;
    e.size = 1, e.reversal = false;
    if (e != WindowDim{}) return false;
  }
  if (!spend(i)) return true;
  // Input and filter as the result lies.
  const Dims from_in = places(d.input_batch, d.input_feature, d.input_spatial),
             from_filter = places(d.kernel_input, d.kernel_output, d.kernel_spatial),
             to = places(d.output_batch, d.output_feature, d.output_spatial);
  Dims turn_in(to.size()), turn_filter(to.size());
  for (size_t k = 0; k < to.size(); ++k) turn_in[at(to[k])] = from_in[k], turn_filter[at(to[k])] = from_filter[k];
  InstId a =
      is_identity(turn_in) ? input : make_op(i, Opcode::Transpose, {input}, dims_attr(u_, Opcode::Transpose, turn_in));
  InstId f = is_identity(turn_filter)
                 ? filter
                 : make_op(i, Opcode::Transpose, {filter}, dims_attr(u_, Opcode::Transpose, turn_filter));
  const Dims all = m_.shape(a).dims, of = m_.shape(f).dims;
  Dims kept, sizes, summed;
  for (size_t k = 0; k < all.size(); ++k)
    if (of[k] == all[k]) kept.push_back(static_cast<int64_t>(k)), sizes.push_back(all[k]);
  for (size_t k = 0; k < all.size(); ++k)
    if (m_.shape(i).dims[k] != all[k]) summed.push_back(static_cast<int64_t>(k));
  f = make_op(i, Opcode::Reshape, {f}, {}, u_.array(type(i), sizes));
  InstId spread = make_broadcast(m_, m_.parent(i), f, kept, m_.shape_id(a));
  InstId product = make_op(i, Opcode::Multiply, {a, spread}, {}, m_.shape_id(a));
  if (summed.empty()) {
    if (m_.shape_id(product) != m_.shape_id(i) && !same_shape(product, i)) return false;
    rewrite_to(i, product);
    return true;
  }
  InstId zero = make_scalar(m_, m_.parent(i), ElementType::S32, 0);
  InstId start = make_convert(m_, zero, type(i));
  CompId add = make_reducer(m_, std::string(m_.inst_name(product)) + ".reduce_sub_computation", Opcode::Add, type(i));
  InstId sum = make_op(i, Opcode::Reduce, {product, start},
                       attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, summed}, {Attr::to_apply, add}}));
  rewrite(i, Opcode::Reshape, {sum});
  return true;
}

bool AlgebraicSimplifier::scale_into_filter(InstId i) {
  for (size_t s : {size_t{0}, size_t{1}}) {
    InstId sum = operand(i, s), scale = operand(i, 1 - s);
    if (op(sum) != Opcode::Add || !is_broadcast_of_constant(m_, scale) || m_.shape(operand(scale, 0)).rank() != 1 ||
        !one_user(scale))
      continue;
    for (size_t t : {size_t{0}, size_t{1}}) {
      InstId conv = operand(sum, t), bias = operand(sum, 1 - t);
      if (op(conv) != Opcode::Convolution || !one_user(conv) || !one_user(bias) || !is_constant(operand(conv, 1)) ||
          type(operand(conv, 1)) != type(scale))
        continue;
      const DimLabels& labels = *m_.attrs(conv).get<DimLabels>(Attr::dim_labels);
      if (m_.attrs(scale).ints(Attr::dimensions) != Dims{labels.output_feature}) continue;
      if (!spend(i)) return true;
      InstId filter = operand(conv, 1);
      InstId wide = make_broadcast(m_, m_.parent(i), operand(scale, 0), {labels.kernel_output}, m_.shape_id(filter));
      InstId scaled = make_op(i, Opcode::Multiply, {filter, wide}, {}, m_.shape_id(filter));
      InstId fresh = m_.clone_inst(conv, m_.parent(i), std::vector<InstId>{operand(conv, 0), scaled});
      InstId shifted = make_op(i, Opcode::Multiply, {bias, scale}, {}, m_.shape_id(bias));
      rewrite(i, Opcode::Add, {fresh, shifted});
      return true;
    }
  }
  return false;
}

}  // namespace hlo
