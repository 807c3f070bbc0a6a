// Which elements a convolution multiplies.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/attribute.h"
#include "ir/types/shape.h"

namespace hlo {

// A convolution as sums over taps, in the forward direction's terms: input [batch, point, feature], kernel [tap, in,
// out], output [batch, point, feature].
struct ConvolutionNumbers {
  Dims in_order, kernel_order, out_order, in_sp, k_sp, out_sp;  // dimensions of the arrays; sizes of spatial ones
  std::vector<WindowDim> window;
  int64_t groups, batch_groups, batch, in_f, k_in, k_out, out_batch, in_points = 1, points = 1, taps = 1;

  ConvolutionNumbers(const AttrSet& attrs, const Shape& in, const Shape& kernel, const Shape& out) {
    auto dim = [](const Shape& s, int64_t i) { return s.dims[static_cast<size_t>(i)]; };
    const DimLabels& d = *attrs.get<DimLabels>(Attr::dim_labels);
    if (const Window* w = attrs.get<Window>(Attr::window)) window = w->dims;
    groups = attrs.integer(Attr::feature_group_count, 1), batch_groups = attrs.integer(Attr::batch_group_count, 1);
    batch = dim(in, d.input_batch), in_f = dim(in, d.input_feature), k_in = dim(kernel, d.kernel_input),
    k_out = dim(kernel, d.kernel_output), out_batch = batch / batch_groups;
    in_order = {d.input_batch}, out_order = {d.output_batch};
    in_order.insert(in_order.end(), d.input_spatial.begin(), d.input_spatial.end());
    in_order.push_back(d.input_feature);
    kernel_order = d.kernel_spatial;
    kernel_order.push_back(d.kernel_input), kernel_order.push_back(d.kernel_output);
    out_order.insert(out_order.end(), d.output_spatial.begin(), d.output_spatial.end());
    out_order.push_back(d.output_feature);
    for (size_t i = 0; i < window.size(); ++i) {
      in_sp.push_back(dim(in, d.input_spatial[i])), k_sp.push_back(dim(kernel, d.kernel_spatial[i]));
      out_sp.push_back(dim(out, d.output_spatial[i]));
      in_points *= in_sp[i], points *= out_sp[i], taps *= k_sp[i];
    }
  }

  // The input point that a tap reads for an output point; -1: padding or dilation.
  int64_t source_of(int64_t p, int64_t t) const {
    int64_t place = 0, stride = 1;
    for (size_t i = window.size(); i-- > 0;) {
      const WindowDim& w = window[i];
      int64_t o = p % out_sp[i], k = t % k_sp[i];
      p /= out_sp[i], t /= k_sp[i];
      if (w.reversal) k = k_sp[i] - 1 - k;
      int64_t at = o * w.stride - w.pad_low + k * w.rhs_dilate;
      if (at < 0 || at % w.lhs_dilate || at / w.lhs_dilate >= in_sp[i]) return -1;
      place += at / w.lhs_dilate * stride;
      stride *= in_sp[i];
    }
    return place;
  }
  // The output point whose tap t reads that input point; -1: none does.
  int64_t reader_of(int64_t point, int64_t t) const {
    int64_t place = 0, stride = 1;
    for (size_t i = window.size(); i-- > 0;) {
      const WindowDim& w = window[i];
      int64_t x = point % in_sp[i], k = t % k_sp[i];
      point /= in_sp[i], t /= k_sp[i];
      if (w.reversal) k = k_sp[i] - 1 - k;
      int64_t at = x * w.lhs_dilate + w.pad_low - k * w.rhs_dilate;
      if (at < 0 || at % w.stride || at / w.stride >= out_sp[i]) return -1;
      place += at / w.stride * stride;
      stride *= out_sp[i];
    }
    return place;
  }

  // Parts that are matrix products: a group of features, or of the batch.
  struct Part {
    int64_t first_batch, first_in, first_out, outs;
  };
  int64_t part_count() const { return groups * batch_groups; }
  int64_t outs() const { return k_out / std::max<int64_t>(part_count(), 1); }
  Part part(int64_t g) const {
    return {batch_groups > 1 ? g * out_batch : 0, groups > 1 ? g * k_in : 0, g * outs(), outs()};
  }
  std::vector<Part> parts() const {
    std::vector<Part> list;
    for (int64_t g = 0; g < part_count(); ++g) list.push_back(part(g));
    return list;
  }
};

}  // namespace hlo
