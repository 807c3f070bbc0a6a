// Which kernel a fusion would be, and how large its grid (xla/service/gpu/hlo_fusion_analysis.cc and the emitters in
// xla/backends/gpu/codegen/emitters).
#pragma once
#include <optional>
#include <vector>

#include "ir/analysis/fusion_view.h"
#include "ir/analysis/gpu_target.h"

namespace hlo {

enum class EmitterKind : uint8_t { kLoop, kReduction, kTranspose, kConcatenate, kScatter, kSort, kTriton, kCustom };
// `loop`, `reduction`, …
std::string_view emitter_text(EmitterKind kind);

// A transpose that goes by tiles through shared memory.
struct TiledTranspose {
  Dims dims, permutation;  // of the result, neighbours merged, without sizes of 1
  int64_t shared_bytes = 0;
  bool packed = false;
};
std::optional<TiledTranspose> tiled_transpose(const Module& m, InstId i);

struct Grid {
  int64_t blocks = 1, threads = 1;  // threads of a block
};

struct FusionAnalysis {
  EmitterKind kind = EmitterKind::kLoop;
  std::vector<InstId> roots, heroes;  // a root's hero: the instruction that the kernel is about
  std::optional<TiledTranspose> transpose;
  Grid grid;
  bool is_kernel_reduction_root(const Module& m, size_t n, const GpuTarget& t) const;
};

FusionAnalysis analyze_fusion(const FusionView& view, const GpuTarget& target);

// Of a fusion: `__triton`, `__custom_fusion`, …; empty where it has none.
std::string fusion_backend_kind(const Module& m, InstId i);
// A kCustom fusion of Triton's that takes what is around it.
bool is_triton_fusion(const Module& m, InstId i);
bool is_custom_fusion(const Module& m, InstId i);  // kind=kCustom

// passes/fusion and the model ask these of one instruction or fusion.
bool has_reduction_root(const Module& m, InstId i, const GpuTarget& target);
// Does it change which dimension is the minor one?
bool moves_minor_dimension(const Module& m, InstId i);

}  // namespace hlo
