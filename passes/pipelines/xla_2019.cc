#include "passes/pipelines/lists.h"

namespace hlo {

// Seed 002's pseudo-code. Its loops are what one model took: here simplification and the fusion group run to a fixed
// point.
std::vector<Step> xla_2019_pipeline() {
  std::vector<Step> optimization = pass_list(
      "zero_sized_hlo_elimination dynamic-index-splitter gpu_hlo_support_checker CallInliner dot_decomposer "
      "convolution-group-converter "
      "stable-sort-expander element_type_converter");
  optimization.push_back(pipeline_step("simplification",
                                       pass_list("batchnorm_expander algsimp simplify-sorts tuple-simplifier "
                                                 "while-loop-constant-sinking simplify-while-loops slice-sinker dce "
                                                 "reshape-mover constant-folding simplify-conditional"),
                                       25));
  for (Step& s : pass_list("hlo-get-dimension-size-rewriter zero_sized_hlo_elimination"))
    optimization.push_back(std::move(s));
  optimization.push_back(pass_step("transpose-folding", {{"matrix_layouts", "false"}}));
  for (Step& s : pass_list("cse dce while-loop-trip-count-annotator")) optimization.push_back(std::move(s));
  return {
      pipeline_step("optimization", optimization),
      pipeline_step(
          "conv_canonicalization",
          pass_list(
              "cusolver-rewriter cudnn-conv-rewriter cudnn-fused-convolution cudnn-conv-padding constant-folding")),
      pipeline_step("layout_assignment", {pass_step("layout-assignment-2019")}),
      pipeline_step("post-layout_assignment", {pass_step("algsimp", {{"layout_sensitive", "true"},
                                                                     {"unconditional_reduce_of_transpose", "false"}}),
                                               pass_step("cudnn-conv-algorithm-picker"), pass_step("tuple-simplifier"),
                                               pass_step("cse", {{"layout_sensitive", "true"}})}),
      pipeline_step(
          "fusion",
          {pass_step("variadic-op-splitter"), pass_step("fusion", {{"may_duplicate", "false"}}),
           pass_step("fusion", {{"may_duplicate", "true"}}), pass_step("fusion_merger"),
           pass_step("multi_output_fusion-2019"), pass_step("cse", {{"layout_sensitive", "true"}}), pass_step("dce")},
          25),
      pipeline_step("reduce-precision", pass_list("reduce-precision")),
      pipeline_step("GPU-ir-emit-prepare", pass_list("dce flatten-call-graph copy-insertion sanitize-constant-names")),
  };
}

}  // namespace hlo
