#include "passes/pipelines/lists.h"

namespace hlo {
namespace {

constexpr int kMostRounds = 25;

std::vector<Step> before_layouts() {
  const Step simplification =
      xla_step("simplification",
               "zero_sized_hlo_elimination gather_simplifier gather_expander scatter_simplifier scatter_expander "
               "scatter-slice-simplifier dot-strength-reduction algsimp simplify-sorts tuple-simplifier "
               "while-loop-constant-sinking simplify-while-loops slice-sinker reshape-mover constant_folding "
               "simplify-conditional transpose-folding cse dce",
               {}, kMostRounds);
  const Step again = xla_step("simplification-2", "convert-mover algsimp", {}, kMostRounds);
  const Step movers = xla_step("reshape_mover_after_conv_canonicalization", "reshape-mover algsimp", {}, kMostRounds);
  const Step converts = xla_step("simplify_after_conv_canonicalization", "convert-mover algsimp", {}, kMostRounds);
  return {
      xla_step("annotate-host-compute", "hlo_host_device_type_call_wrapper"),
      xla_step("pre-spmd-partitioner",
               "cudnn-custom-call-converter composite-rewriter convert-memory-placement-to-internal-annotations "
               "scan-rewriter flatten-call-graph call-inliner zero_sized_hlo_elimination conditional-canonicalizer "
               "topk-decomposer topk-rewriter"),
      xla_step("sharding-removal", "sharding-remover dce"),
      xla_step("host-compute", "host_compute_asyncifier host-offloading-prepare-convert-to-custom-call"),
      xla_step("optimization",
               "ragged_dot_rewriter batched_gather_scatter_normalizer windowed-einsum-handler topk-splitter "
               "topk-specializer topk-decomposer dot_dimension_sorter dot_decomposer result_caster operand_upcaster "
               "operand_converter sub-byte-size-setter rng-expander rng-bit-generator-expander "
               "permutation_sort_simplifier sort-rewriter comparison-expander zero_sized_hlo_elimination "
               "select_and_scatter_expander cholesky_expander gpu_scatter_expander qr_expander eigh_expander "
               "dynamic-index-splitter call-inliner stochastic_convert_decomposer convolution_4d_expander "
               "convolution-pred-expander batchnorm_expander logistic-expander conditional-canonicalizer "
               "dynamic-dimension-simplifier associative-scan-rewriter reduce-window-rewriter reduce-window-resizer "
               "scan_expander dynamic_padder sort-rewriter stable-sort-expander simplification dot-merger "
               "transpose-folding simplification-2 computation-deduplicator apply-xla-transforms",
               {simplification, again}),
      xla_step("collective-optimizations",
               "ragged-all-to-all-canonicalizer all-reduce-simplifier all-reduce-folder all-reduce-splitter "
               "all-gather-optimizer all-gather-dynamic-slice-simplifier all-gather-pad-ds-simplifier "
               "all-gather-to-collective-permute-simplifier all-reduce-reassociate reduce-scatter-reassociate "
               "while-loop-all-reduce-code-motion collective-quantizer dce collective-pipelining-analyzer "
               "collective-pipeliner-forward algsimp reduce-scatter-creator all-gather-bcast-reorder "
               "all-gather-remove-degenerate-dims all-reduce-promotion dce while-loop-trip-count-annotator"),
      xla_step("conv_canonicalization",
               "float-normalization-bf16 float-normalization-bf16 conv-rewriter cudnn-fused-convolution-rewriter "
               "conv-padding-legalization cudnn_pad_for_convolutions call-inliner tuple-simplifier algsimp "
               "cudnn_simplify_padding reshape_mover_after_conv_canonicalization simplify_after_conv_canonicalization "
               "constant_folding",
               {movers, converts}),
  };
}

std::vector<Step> layouts_and_calls() {
  const Step floats = xla_step(
      "float_normalization",
      "float-normalization-bf16 float-normalization-f8e5m2 float-normalization-f8e4m3 float-normalization-f8e4m3fn "
      "float-normalization-f8e4m3b11fnuz float-normalization-f8e5m2fnuz float-normalization-f8e4m3fnuz "
      "float-normalization-f8e3m4 float-normalization-s4 float-normalization-u4 float-normalization-f4e2m1fn "
      "float-normalization-f8e8m0fnu simplify-fp-conversions");
  const Step precision = xla_step("remove-no-op-reduce-precision-algebraic-simplifier", "algsimp");
  return {
      xla_step("layout_assignment",
               "flatten-call-graph layout-assignment sub-byte-size-setter optimize_input_output_buffer_alias "
               "host-offload-legalize all-gather-major-dimension-rewriter"),
      xla_step("layout_normalization",
               "reshape-decomposer move_copy_to_users layout_normalization algsimp broadcast_canonicalizer "
               "scatter_simplifier"),
      xla_step("nvptx_post-layout_assignment_part_1", "block-scaling-rewriter dot_dimension_merger"),
      xla_step("hlo_normalization",
               "algsimp bitcast_dtypes_expander transpose-folding reshape-decomposer reduce-decomposer "
               "algorithm-checker dot_normalizer gemv-rewriter splitk-rewriter triton-gemm-rewriter "
               "hoist-fused-bitcasts gemm-fusion-swap-operands cublas-pad-for-gemms{type=s8} "
               "cublas-pad-for-gemms{type=f16} cublas-pad-for-gemms{type=bf16} constant_folding "
               "dot-algorithm-rewriter cublas-gemm-rewriter{types=f8} cublas-gemm-rewriter{types=others} "
               "cublas-gemm-broadcast-folding-rewriter reshape-decomposer layout_normalization "
               "algsimp scatter_simplifier broadcast_canonicalizer reduction-degenerate-dim-remover "
               "reduction-layout-normalizer algsimp cse constant_folding dce triton-softmax-rewriter "
               "reduction-dimension-grouper reduction-splitter tree-reduction-rewriter sub-byte-size-setter "
               "deviceless-estimate-cub-sort-scratch-size estimate-cub-scan-scratch-size"),
      xla_step("post-layout_assignment",
               "sub-byte-collective-normalization float_normalization cublas-gemm-broadcast-folding-rewriter "
               "reshape-decomposer layout_normalization scatter_simplifier hlo-verifier host-offloader "
               "float_normalization tuple-simplifier algsimp simplify-fp-conversions "
               "remove-no-op-reduce-precision-algebraic-simplifier cse host-memory-transfer-asyncifier hlo-verifier",
               {floats, precision}),
      xla_step("nvptx_post-layout_assignment_part_2", "triangular-solve-rewriter"),
  };
}

std::vector<Step> kernels() {
  return {
      xla_step("dynamic-slice", "dynamic-slice-annotator"),
      xla_step("pre-fusion", "rename-instructions"),
      xla_step("fusion", "variadic-op-splitter sort-iota-fusion priority-fusion cse dce multi_output_fusion cse dce"),
      xla_step("post-fusion_optimization",
               "rename_fusions dus-accumulator-zero-init-elimination dce tuple-simplifier gpu-all-gather-combiner "
               "gpu-all-reduce-combiner gpu-reduce-scatter-combiner collective-permute-combiner "
               "collective-backend-assigner collective-kernel-strategy-annotator all-reduce-contiguous"),
      xla_step("async-collective-conversion", "async-collective-creator async-collective-annotator"),
      xla_step("post-fusion-simplification-pipeline_optimization",
               "algsimp computation-deduplicator stream-attribute-annotator async-stream-attribute-wrapper "
               "explicit-stream-annotation-async-wrapper explicit-collectives-group-async-wrapper"),
      xla_step("collective-schedule-linearizer", "collectives-schedule-linearizer"),
      xla_step("autotuner", "fusion-wrapper autotuner convert_triton_gemm_config"),
      xla_step("propagate-call-metadata", "propagate-call-metadata"),
      xla_step("pre-scheduling-copy-insertion",
               "dce loop-schedule-linearizer copy-insertion copy_fusion sanitize-constant-names"),
      xla_step("pre-scheduling-passes", "fusion-wrapper"),
  };
}

std::vector<Step> schedule() {
  const Step async = xla_step("async-to-sync-converter", "gpu-convert-async-collectives-to-sync");
  const Step remat = xla_step("remat-pipeline", "rematerialization stream-attribute-annotator cse_barrier_expander");
  const Step wrapper = xla_step("fusion-wrapper", "fusion-wrapper");
  const Step dispatch =
      xla_step("fusion-dispatch-pipeline", "dce fusion-block-level-rewriter fusion-dynamic-memcpy-rewriter");
  const Step names = xla_step("sanitize-constant-names", "sanitize-constant-names");
  return {
      // ScheduleGpuModule, which is no pipeline of XLA's and has no stage of its own.
      xla_step("gpu-schedule", "hlo-memory-scheduler"),
      xla_step("latency-hiding-scheduler",
               "legalize-scheduling-annotations latency-hiding-scheduler scheduling-instruction-annotator"),
      // Again outside of any pipeline: what the order makes needless.
      xla_step("post-scheduling-copy-insertion", "copy-insertion"),
      xla_step("post-scheduler-xla-transforms", "apply-xla-transforms"),
      xla_step("post-scheduling-passes",
               "async-to-sync-converter remat-pipeline fusion-wrapper fusion-dispatch-pipeline sanitize-constant-names",
               {async, remat, wrapper, dispatch, names}),
  };
}

}  // namespace

// xla/service/gpu/gpu_compiler.cc of 2026, in the order that the oracle's dumps show; its pipelines without passes
// (invariant-checkers, async-wrapper …) are left out.
std::vector<Step> xla_gpu_pipeline() {
  std::vector<Step> out = before_layouts();
  for (const auto& part : {layouts_and_calls(), kernels(), schedule()}) out.insert(out.end(), part.begin(), part.end());
  return out;
}

// Without its layouts' clean-up, calls and kernels: what gpu_exec, which has schedules of its own, makes programs of.
std::vector<Step> xla_gpu_unfused_pipeline() {
  std::vector<Step> out = before_layouts();
  std::erase_if(out, [](const Step& s) { return s.name == "conv_canonicalization"; });
  out.push_back(xla_step("layout_assignment", "flatten-call-graph layout-assignment"));
  out.push_back(xla_step("pre-scheduling-copy-insertion", "dce copy-insertion sanitize-constant-names"));
  return out;
}

}  // namespace hlo
