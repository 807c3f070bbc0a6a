// cublas-gemm-rewriter (xla/backends/gpu/transforms/gemm_rewriter.cc): products of matrices that no Triton kernel takes
// become calls of cuBLASLt, with what is done to their results as far as that library does it.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ir/target/gpu_target.h"
#include "passes/library_calls/gemm_call.h"
#include "passes/rewrite.h"

namespace hlo {

class GemmRewriter {
 public:
  // `eight_bits`: products of eight-bit floats, else the others; XLA has a run for each.
  GemmRewriter(Module& m, PassContext& ctx, const GpuTarget& target, bool eight_bits)
      : m_(m), u_(m.u()), ctx_(ctx), target_(target), eight_bits_(eight_bits) {}

  bool run(CompId comp);

 private:
  using Json = nlohmann::ordered_json;
  // A call's result on the way to what reads it: `bitcast(slice(call))`, either or both left out.
  struct Result {
    InstId call, slice, bitcast;
    InstId last() const { return bitcast.valid() ? bitcast : slice.valid() ? slice : call; }
  };

  // --- gemm_rewriter.cc ---
  void visit(InstId i);
  void dot(InstId i);
  void call_of(InstId i, const std::vector<InstId>& operands, Json config);
  Json config_of_dot(InstId i, bool with_algorithm) const;
  bool too_small(InstId i) const;
  std::string_view algorithm(InstId i) const { return u_.text(m_.attrs(i).text(Attr::algorithm)); }
  InstId custom_call(InstId like, std::string_view target, const std::vector<InstId>& operands, ShapeId shape,
                     const Json& config);
  InstId pad_to(InstId x, const Dims& dims);  // zeros behind the ends
  void workspace(InstId i);
  void name(InstId call);
  void set_config(InstId call, const GemmConfig& config);
  bool spend(std::string_view rule, std::initializer_list<InstId> insts);
  bool replace(InstId from, InstId to);

  // --- gemm_epilogues.cc ---
  bool is_gemm(InstId i) const { return gemm_target(m_, i) != GemmTarget::kNone && m_.shape(i).is_array(); }
  // A call, perhaps behind a slice and a bitcast, each read by one alone.
  std::optional<Result> result_behind(InstId i, bool slices, bool bitcasts) const;
  // The value of broadcast(constant of one element, without dimensions).
  InstId spread_scalar(InstId i) const;
  bool is_spread(InstId i, double value, bool nearly) const;
  void scale(InstId i);
  void gelu(InstId i);
  bool is_gelu(InstId x, InstId factor) const;
  void fuse_gelu(InstId i, const Result& r);
  void add(InstId i);
  bool vector_bias(InstId i, const Result& r, InstId broadcast);
  bool lies_along_columns(const Result& r, InstId broadcast) const;
  bool matrix_bias(InstId i, const Result& r, InstId bias);
  bool may_overwrite(InstId bias) const;
  InstId folded_bias(InstId bias);
  void relu(InstId i);
  // The slice and the bitcast of another call.
  InstId like_result(const Result& r, InstId call);

  // --- gemm_rewriter_fp8.cc ---
  struct Step {
    InstId inst;
    size_t operand;  // by which it reads the one before
  };
  struct Side {
    InstId input, scale;
    bool multiplied = false;  // by the scale, or divided
    std::vector<Step> moved;  // what may as well be done to the eight bits
  };
  std::vector<Step> path_to_eight_bits(InstId operand) const;
  std::optional<Side> eight_bit_side(InstId operand) const;
  bool eight_bit_call(InstId i);
  void as_halves(InstId i);
  InstId factor(InstId i, const Side& side, InstId* one);
  void move_steps(InstId i, Side* side);
  InstId transpose_matrix(InstId x, int64_t sum, const Dims& batch);
  Dims padded(const Dims& dims, size_t batch) const;
  bool scale_result(InstId i, InstId call, InstId scale);
  void convert_result(InstId i);
  InstId largest_of(InstId call);
  InstId as_factor(InstId scalar, bool inverse);

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  const GpuTarget& target_;
  bool eight_bits_;
  bool changed_ = false, spent_ = false;
};

}  // namespace hlo
