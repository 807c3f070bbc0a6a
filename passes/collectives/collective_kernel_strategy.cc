// collective-kernel-strategy-annotator
// (xla/backends/gpu/transforms/collectives/collective_kernel_strategy_annotator.cc,
// xla/backends/gpu/runtime/all_reduce.cc): which small sums over devices a kernel of XLA's own does, and how.
#include <bit>

#include "ir/analysis/schedule/messages.h"
#include "ir/target/gpu_target.h"
#include "passes/collectives/collectives.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr int64_t kOneShot = 256 * 1024, kTwoShot = 4 * 1024 * 1024;  // bytes at most
constexpr uint64_t kMostDevices = 8;

bool has_kernel(ElementType t, Opcode kind) {
  switch (t) {
    case ElementType::BF16:
    case ElementType::F32:
    case ElementType::F64:
    case ElementType::S32:
    case ElementType::S64:
      return kind == Opcode::Add || kind == Opcode::Multiply || kind == Opcode::Maximum || kind == Opcode::Minimum;
    case ElementType::Pred:
      return kind == Opcode::And || kind == Opcode::Or;
    default:
      return false;
  }
}

std::string_view strategy(const Module& m, InstId i) {
  std::vector<Dims> groups;
  const std::optional<Opcode> kind = reduced_by(m, i);
  if (!kind || m.operand_count(i) != 1 || !m.shape(i).is_array() || !read_groups(m, i, &groups) || groups.empty() ||
      groups[0].size() > kMostDevices || !std::has_single_bit(groups[0].size()) || !has_kernel(m.shape(i).type, *kind))
    return {};
  const int64_t bytes = m.u().byte_size(m.shape_id(i));
  if (bytes <= kOneShot) return "KERNEL_STRATEGY_TRITON_ONE_SHOT";
  return bytes <= kTwoShot ? "KERNEL_STRATEGY_TRITON_TWO_SHOT" : "";
}

}  // namespace

//   %r = all-reduce(A)      →      %r = all-reduce(A), backend_config={… "kernel_strategy":"KERNEL_STRATEGY_TRITON_…"
//   …}
bool run_collective_kernel_strategy(Module& m, PassContext& ctx) {
  if (named_gpu_target(ctx.word("gpu")).major < 9) return false;  // Triton's messages need a Hopper
  bool changed = false, seen = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::AllReduce) continue;
      const std::string_view how = strategy(m, i);
      if (how.empty()) continue;
      seen = true;
      const StrId config = config_with_strategy(m, i, how);
      if (!config.valid() || config == m.attrs(i).text(Attr::backend_config)) continue;
      if (!ctx.spend(m, "a kernel of XLA's own", {i}, how)) return changed;
      m.set_attr(i, Attr::backend_config, AttrValue(config));
      changed = true;
    }
  ctx.claim(seen);
  return changed;
}

}  // namespace hlo
