// fusion-block-level-rewriter (xla/backends/gpu/transforms/fusion_block_level_rewriter.cc).
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/analysis/performance/gpu_performance_model.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// Products of s32 that have become sums, as XLA means it; any sum will do.
bool sums_integers(const Module& m, InstId root) {
  if (m.op(root) != Opcode::Reduce || m.shape(root).type != ElementType::S32) return false;
  return std::all_of(m.operands(root).begin(), m.operands(root).end(),
                     [&](InstId o) { return m.shape(o).type == ElementType::S32; });
}

// What was minor is far from it, in whose place the new minor dimension was.
bool swaps_minor_far(const Module& m, InstId transpose) {
  const Shape& s = m.shape(transpose);
  if (!is_default_layout(Layout{s.layout.minor_to_major, "", 0})) return false;
  const Dims from = normalized_permutation(m, transpose);
  if (from.empty()) return false;
  const auto last = static_cast<int64_t>(from.size()) - 1;
  return from.back() < last - 1 && from[static_cast<size_t>(from.back())] == last;
}

// Of an argument as it is, or as a bitcast whose rows are cut into tiles without a rest.
bool reads_argument(const Module& m, InstId transpose) {
  const InstId o = m.operand(transpose, 0);
  if (m.op(o) == Opcode::Parameter) return true;
  if (m.op(o) != Opcode::Bitcast || m.op(m.operand(o, 0)) != Opcode::Parameter) return false;
  const Shape& s = m.shape(o);
  const int64_t minor = s.dims[static_cast<size_t>(s.layout.minor_to_major[0])];
  return minor > 0 && std::has_single_bit(static_cast<uint64_t>(minor));
}

bool is_slow(const Module& m, InstId fusion) {
  const InstId root = m.comp(m.called(fusion)[0]).root;
  if (m.op(root) == Opcode::Transpose)
    return m.u().text(m.attrs(fusion).text(Attr::kind)) == "kLoop" && swaps_minor_far(m, root) &&
           reads_argument(m, root);
  return sums_integers(m, root);
}

std::string refuse_body(const Module& m, CompId body, const GpuTarget& target) {
  for (InstId i : m.live_order(body))
    if (std::string why = refuse_triton(m, i, target); !why.empty()) return why;
  return "";
}

}  // namespace

//   fusion(A), kind=kInput, calls={ ROOT s32[] reduce(A, 0) }      →      …, kind=kCustom, in tiles for Triton
bool run_fusion_block_level_rewriter(Module& m, PassContext& ctx) {
  const GpuTarget target = named_gpu_target(ctx.word("gpu"));
  if (target.major < 8) return false;  // no Triton
  bool changed = false;
  for (CompId c : fusible_computations(m))
    for (InstId f : m.live_order(c)) {
      if (m.op(f) != Opcode::Fusion || is_custom_fusion(m, f) || m.attrs(f).has(Attr::backend_config)) continue;
      if (!is_slow(m, f)) continue;
      if (std::string why = refuse_body(m, m.called(f)[0], target); !why.empty()) {
        ctx.note(m, "no kernel of Triton's", {f}, why);
        continue;
      }
      const FusionView view(m, f);
      GpuCostAnalysis costs(m);
      const std::optional<TritonTiles> tiles =
          can_be_cut(view) ? GpuPerformanceModel(m, target, costs).best_tiles(view) : std::nullopt;
      if (!tiles) {
        ctx.note(m, "no kernel of Triton's", {f}, "SymbolicTileAnalysis failed.");
        continue;
      }
      if (!ctx.spend(m, "a kernel of Triton's", {f}, fmt::format("{:.4g} us", microseconds(tiles->time.total))))
        return changed;
      m.set_attr(f, Attr::kind, AttrValue(m.u().str("kCustom")));
      m.set_attr(f, Attr::backend_config, AttrValue(m.u().str(tiles->config())));
      changed = true;
    }
  return changed;
}

}  // namespace hlo
