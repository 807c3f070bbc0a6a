// fusion-wrapper (xla/backends/gpu/transforms/fusion_wrapper.cc): kernels are made of fusions alone, so that what was
// left by itself becomes one of one instruction.
#include <fmt/format.h>

#include "ir/analysis/performance/fusibility.h"
#include "passes/backend/backend.h"
#include "passes/fusion/fuse.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// Copies are the driver's, and what is neither here nor elementwise is a library's or no kernel at all.
bool needs_kernel(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::Convolution:
    case Opcode::Dot:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Gather:
    case Opcode::Iota:
    case Opcode::Map:
    case Opcode::Pad:
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Scatter:
    case Opcode::Slice:
    case Opcode::Transpose:
      return true;
    default:
      return op_info(m.op(i)).cls == OpClass::Elementwise;
  }
}

void wrap(Module& m, InstId i, std::string_view kind) {
  const std::string name = fmt::format("wrapped_{}", op_text(m.op(i)));
  const std::vector<InstId> before(m.control_preds(i).begin(), m.control_preds(i).end()),
      after(m.control_succs(i).begin(), m.control_succs(i).end());
  m.drop_control(i);
  const InstId fusion = wrap_in_fusion(m, i, kind);
  m.erase_attr(fusion, Attr::sharding);  // it stays inside
  for (InstId p : before) m.add_control(p, fusion);
  for (InstId s : after) m.add_control(fusion, s);
  m.set_uniquified_name(fusion, name);
  m.rename_computation(m.called(fusion)[0], name + "_computation");
}

}  // namespace

//   %t = transpose(A)      →      %wrapped_transpose = fusion(A), kind=kInput, calls={ ROOT transpose(param_0) }
bool run_fusion_wrapper(Module& m, PassContext& ctx) {
  const GpuTarget target = named_gpu_target(ctx.word("gpu"));
  bool changed = false;
  for (CompId c : fusible_computations(m)) {
    for (InstId i : m.post_order(c)) {
      if (!needs_kernel(m, i)) continue;
      if (!ctx.spend(m, "wrapped", {i})) return changed;
      wrap(m, i, is_input_kernel(m, i, target) ? "kInput" : "kLoop");
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlo
