// Which elements of an array the windows of reduce-window and select-and-scatter lie over.
#pragma once
#include <cstdint>

#include "ir/attribute.h"

namespace hlo {

struct WindowWalk {
  const Window& w;
  const Dims &in, &out;
  Dims taps;
  int64_t positions = 1, outputs = 1;
  WindowWalk(const Window& window, const Dims& input, const Dims& output) : w(window), in(input), out(output) {
    for (const WindowDim& d : w.dims) taps.push_back(d.size), positions *= d.size;
    for (int64_t d : out) outputs *= d;
  }
  // Flat input index that tap t reads for output o; -1: none.
  int64_t source(int64_t t, int64_t o) const {
    int64_t place = 0, stride = 1;
    for (size_t i = w.dims.size(); i-- > 0;) {
      const WindowDim& d = w.dims[i];
      int64_t k = t % taps[i], x = o % out[i];
      t /= taps[i], o /= out[i];
      int64_t at = x * d.stride - d.pad_low + k * d.rhs_dilate;
      if (at < 0 || at % d.lhs_dilate || at / d.lhs_dilate >= in[i]) return -1;
      place += at / d.lhs_dilate * stride;
      stride *= in[i];
    }
    return place;
  }
};

}  // namespace hlo
