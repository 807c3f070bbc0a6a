// gpu_hlo_support_checker (2019; xla/service/gpu/gpu_hlo_support_checker.cc).
#include "passes/rewrite.h"

namespace hlo {

// Refuses what the back end of 2019 could not take: arrays whose layout is not dense.
bool run_gpu_hlo_support_checker(Module& m, PassContext&) {
  each_instruction(m, [&](InstId i) {
    const Shape& s = m.shape(i);
    if (s.is_array() && s.layout.sparse)
      fail(FailureKind::kUnsupported, "GPU backend does not support sparse arrays: instruction {} has shape {}",
           m.inst_name(i), m.u().shape_text(m.shape_id(i)));
    if (s.is_array() && !s.has_layout)
      fail(FailureKind::kUnsupported, "instruction {} has no dense layout: {}", m.inst_name(i),
           m.u().shape_text(m.shape_id(i)));
    return false;
  });
  return false;
}

}  // namespace hlo
