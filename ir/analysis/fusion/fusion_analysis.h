// Which kernel a fusion would be, and how large its grid (xla/service/gpu/hlo_fusion_analysis.cc and the emitters in
// xla/backends/gpu/codegen/emitters).
#pragma once
#include <optional>
#include <vector>

#include "ir/analysis/fusion/fusion_view.h"
#include "ir/target/gpu_target.h"

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
};

// The instruction behind one of the kernel's roots that it is about: a tiled transpose, a concatenate, a reduce; else
// the root.
InstId fusion_hero(const FusionView& view, InstId root);
bool is_reduction_hero(const Module& m, InstId root, InstId hero, const GpuTarget& target);
// Of one operand at most: it gives the elements of what it reads in their order.
bool passes_elements(const Module& m, InstId i);
// By the order in memory: neighbours that stay neighbours are one dimension, those of one element are none.
Dims normalized_permutation(const Module& m, InstId transpose);
// A transpose after which each element is where it was.
bool keeps_order(const Module& m, InstId transpose);

FusionAnalysis analyze_fusion(const FusionView& view, const GpuTarget& target);

// Of a fusion: `__triton`, `__custom_fusion`, …; empty where it has none.
std::string fusion_backend_kind(const Module& m, InstId i);
// A kCustom fusion of Triton's that takes what is around it.
bool is_triton_fusion(const Module& m, InstId i);
bool is_custom_fusion(const Module& m, InstId i);  // kind=kCustom

// passes/fusion and the model ask these of one instruction or fusion.
bool has_reduction_root(const Module& m, InstId i, const GpuTarget& target);
// An instruction whose kernel, alone, goes by what it reads (kInput), not by what it gives: sums, tiles, scatters.
bool is_input_kernel(const Module& m, InstId i, const GpuTarget& target);
// Does it change which dimension is the minor one?
bool moves_minor_dimension(const Module& m, InstId i);

}  // namespace hlo
