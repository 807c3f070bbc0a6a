#include "passes/pipelines/lists.h"

namespace hlo {

// xla/service/gpu/gpu_compiler.cc of 2026, in the order that the oracle's dumps show.
std::vector<Step> xla_gpu_pipeline() {
  std::vector<Step> optimization = pass_list(
      "ragged_dot_rewriter batched_gather_scatter_normalizer topk-splitter topk-specializer topk-decomposer "
      "dot_dimension_sorter dot_decomposer result_caster "
      "operand_upcaster operand_converter sub-byte-size-setter rng-expander rng-bit-generator-expander "
      "permutation_sort_simplifier sort-rewriter comparison-expander "
      "zero_sized_hlo_elimination select_and_scatter_expander cholesky_expander gpu_scatter_expander qr_expander "
      "eigh_expander dynamic-index-splitter call-inliner "
      "stochastic_convert_decomposer convolution_4d_expander convolution-pred-expander batchnorm_expander "
      "logistic-expander conditional-canonicalizer "
      "dynamic-dimension-simplifier associative-scan-rewriter reduce-window-rewriter reduce-window-resizer "
      "scan_expander dynamic_padder sort-rewriter "
      "stable-sort-expander");
  std::vector<Step> simplification = pass_list(
      "zero_sized_hlo_elimination gather_simplifier gather_expander scatter_simplifier scatter_expander "
      "scatter-slice-simplifier dot-strength-reduction algsimp "
      "simplify-sorts tuple-simplifier while-loop-constant-sinking simplify-while-loops slice-sinker reshape-mover "
      "constant_folding simplify-conditional");
  simplification.push_back(pass_step("transpose-folding", {{"dots", "false"}}));
  simplification.push_back(pass_step("cse"));
  simplification.push_back(pass_step("dce"));
  optimization.push_back(pipeline_step("simplification", simplification, 25));
  optimization.push_back(pass_step("dot-merger"));
  optimization.push_back(pass_step("transpose-folding"));
  optimization.push_back(pipeline_step("simplification-2", pass_list("convert-mover algsimp"), 25));
  optimization.push_back(pass_step("computation-deduplicator"));
  return {
      pipeline_step("pre-spmd-partitioner", pass_list("flatten-call-graph call-inliner zero_sized_hlo_elimination "
                                                      "conditional-canonicalizer topk-decomposer topk-rewriter")),
      pipeline_step("sharding-removal", pass_list("sharding-remover dce")),
      pipeline_step("optimization", optimization),
      pipeline_step(
          "collective-optimizations",
          pass_list("ragged-all-to-all-canonicalizer all-reduce-simplifier all-reduce-folder all-reduce-splitter "
                    "all-gather-optimizer all-gather-dynamic-slice-simplifier all-gather-pad-ds-simplifier "
                    "all-gather-to-collective-permute-simplifier all-reduce-reassociate reduce-scatter-reassociate "
                    "while-loop-all-reduce-code-motion collective-quantizer dce algsimp reduce-scatter-creator "
                    "all-gather-bcast-reorder all-gather-remove-degenerate-dims all-reduce-promotion dce "
                    "while-loop-trip-count-annotator")),
      // Its GPU passes behind this are left out; what the module needs to be scheduled is not.
      pipeline_step("layout_assignment", pass_list("flatten-call-graph layout-assignment")),
      pipeline_step("pre-scheduling-copy-insertion", pass_list("dce copy-insertion sanitize-constant-names")),
  };
}

}  // namespace hlo
