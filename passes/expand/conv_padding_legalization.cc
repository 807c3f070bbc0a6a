// conv-padding-legalization (2019: cudnn-conv-padding; xla/backends/gpu/transforms/conv_padding_legalization.cc).
#include <algorithm>

#include "ir/library/cudnn.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

bool plain(const WindowDim& d) { return d.pad_low == d.pad_high && d.pad_low >= 0 && d.lhs_dilate == 1; }

InstId zero_pad(Module& m, InstId x, const std::vector<PaddingDim>& by) {
  if (std::all_of(by.begin(), by.end(), [](const PaddingDim& p) { return p == PaddingDim{}; })) return x;
  InstId zero = make_scalar(m, m.parent(x), m.shape(x).type, 0);
  return make(m, m.parent(x), Opcode::Pad, {x, zero}, attrs_of(m.u(), Opcode::Pad, {{Attr::padding, by}}));
}

//   filter gradient with padding low_high      →      the same of pad(A), padding as little as on either side
bool even_filter_gradient(Module& m, PassContext& ctx, InstId i, Window w) {
  const DimLabels d = *m.attrs(i).get<DimLabels>(Attr::dim_labels);
  InstId x = m.operand(i, 0);
  std::vector<PaddingDim> outer(m.shape(x).dims.size());
  for (size_t k = 0; k < w.dims.size(); ++k) {
    WindowDim& e = w.dims[k];
    if (e.pad_low < 0 || e.pad_high < 0) return false;
    const int64_t least = std::min(e.pad_low, e.pad_high);
    outer[static_cast<size_t>(d.input_spatial[k])] = {e.pad_low - least, e.pad_high - least, 0};
    e.pad_low = e.pad_high = least;
  }
  if (!ctx.spend(m, "padding before the call", {i})) return false;
  std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
  ops[0] = zero_pad(m, x, outer);
  InstId call = m.clone_inst(i, m.parent(i), ops);
  m.set_attr(call, Attr::window, w);
  return m.replace(i, call);
}

//   (f32[14], u8[0]) input gradient with padding 0_1      →      tuple(slice(f32[15] input gradient with padding 0_0),
//   …)
bool even_input_gradient(Module& m, PassContext& ctx, InstId i, Window w) {
  Universe& u = m.u();
  const DimLabels d = *m.attrs(i).get<DimLabels>(Attr::dim_labels);
  const std::vector<ShapeId> parts = m.shape(i).elements;
  Dims wide = u[parts[0]].dims;
  std::vector<SliceDim> slice;
  for (int64_t size : wide) slice.push_back({0, size, 1});
  for (size_t k = 0; k < w.dims.size(); ++k) {
    WindowDim& e = w.dims[k];
    if (e.pad_low < 0 || e.pad_high < 0) return false;
    const auto at = static_cast<size_t>(d.input_spatial[k]);  // of the result, as a forward convolution's input
    const int64_t least = std::min(e.pad_low, e.pad_high), more = std::max(e.pad_low - e.pad_high, int64_t{0});
    slice[at].start += more, slice[at].limit += more;
    wide[at] += e.pad_low + e.pad_high - 2 * least;
    e.pad_low = e.pad_high = least;
  }
  if (!ctx.spend(m, "slice after the call", {i})) return false;
  std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
  InstId call = m.clone_inst(i, m.parent(i), ops, u.tuple({u.with_dims(parts[0], wide), parts[1]}));
  m.set_attr(call, Attr::window, w);
  InstId cut = make(m, m.parent(i), Opcode::Slice, {make_element(m, call, 0)},
                    attrs_of(u, Opcode::Slice, {{Attr::slice, slice}}), parts[0]);
  return m.replace(i, make(m, m.parent(i), Opcode::Tuple, {cut, make_element(m, call, 1)}));
}

}  // namespace

//   custom-call(A, F) with uneven, negative or inner padding      →      custom-call(slice(pad(A)), F)
bool run_conv_padding_legalization(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::CustomCall)) {
    std::string_view target = u.text(m.attrs(i).text(Attr::custom_call_target));
    const bool of_filter = target == "__cudnn$convBackwardFilter", of_input = target == "__cudnn$convBackwardInput";
    if (target != "__cudnn$convForward" && target != "__cudnn$convBiasActivationForward" && !of_filter && !of_input)
      continue;
    const Window* given = m.attrs(i).get<Window>(Attr::window);
    if (!given || std::all_of(given->dims.begin(), given->dims.end(), plain)) continue;
    if (!is_cudnn_convolution_of_fitting_ranks(m, i)) {
      ctx.note(m, "not a convolution that cuDNN knows", {i}, "left alone");
      continue;
    }
    if (of_filter || of_input) {
      changed |= of_filter ? even_filter_gradient(m, ctx, i, *given) : even_input_gradient(m, ctx, i, *given);
      if (ctx.fuel <= 0) return changed;
      continue;
    }
    Window w = *given;
    const DimLabels d = *m.attrs(i).get<DimLabels>(Attr::dim_labels);
    if (!ctx.spend(m, "padding before the call", {i})) return changed;
    InstId x = m.operand(i, 0), f = m.operand(i, 1);
    std::vector<PaddingDim> outer(m.shape(x).dims.size()), inner(m.shape(f).dims.size());
    std::vector<std::pair<int64_t, int64_t>> cut(m.shape(x).dims.size());
    bool sliced = false;
    for (size_t k = 0; k < w.dims.size(); ++k) {
      WindowDim& e = w.dims[k];
      auto at = static_cast<size_t>(d.input_spatial[k]), fat = static_cast<size_t>(d.kernel_spatial[k]);
      outer[at] = {std::max<int64_t>(e.pad_low, 0), std::max<int64_t>(e.pad_high, 0), e.lhs_dilate - 1};
      cut[at] = {std::max<int64_t>(-e.pad_low, 0), std::max<int64_t>(-e.pad_high, 0)};
      sliced |= cut[at].first || cut[at].second;
      inner[fat].interior = e.rhs_dilate - 1;
      e.size = m.shape(f).dims[fat] == 0 ? 0 : (m.shape(f).dims[fat] - 1) * e.rhs_dilate + 1;
      e.pad_low = e.pad_high = 0, e.lhs_dilate = e.rhs_dilate = 1;
    }
    x = zero_pad(m, x, outer);
    if (sliced) {
      std::vector<SliceDim> slice;
      for (size_t k = 0; k < cut.size(); ++k) slice.push_back({cut[k].first, m.shape(x).dims[k] - cut[k].second, 1});
      x = make(m, m.parent(i), Opcode::Slice, {x}, attrs_of(u, Opcode::Slice, {{Attr::slice, slice}}));
    }
    f = zero_pad(m, f, inner);
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
    ops[0] = x, ops[1] = f;
    InstId call = m.clone_inst(i, m.parent(i), ops);
    m.set_attr(call, Attr::window, w);
    changed |= m.replace(i, call);
  }
  return changed;
}

}  // namespace hlo
