// Calls of cuDNN as XLA writes them (xla/service/gpu/cublas_cudnn.h).
#pragma once
#include "ir/module.h"

namespace hlo {

// `(result, scratch) custom-call(A, B, …)` whose dim_labels and window are of the ranks of A, B and the result.
inline bool is_cudnn_convolution_of_fitting_ranks(const Module& m, InstId call) {
  const AttrSet& a = m.attrs(call);
  const DimLabels* d = a.get<DimLabels>(Attr::dim_labels);
  const Window* w = a.get<Window>(Attr::window);
  const Shape& s = m.shape(call);
  if (!d || m.operand_count(call) < 2 || !s.is_tuple() || s.elements.empty()) return false;
  auto fits = [](const Shape& array, int rank) { return array.is_array() && array.rank() == rank; };
  return fits(m.shape(m.operand(call, 0)), d->lhs_rank) && fits(m.shape(m.operand(call, 1)), d->rhs_rank) &&
         fits(m.u()[s.elements[0]], d->out_rank) && (!w || w->dims.size() == d->input_spatial.size());
}

}  // namespace hlo
