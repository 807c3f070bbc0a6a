// cublas-gemm-broadcast-folding-rewriter (xla/backends/gpu/transforms/gemm_broadcast_folding_rewriter.cc): a matrix
// that is the same for a whole batch is read where it is.
#include "passes/library_calls/gemm_call.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

using Json = nlohmann::ordered_json;

// Is it spread over the batch dimensions, which stand in front, and over nothing else?
bool spreads_over_batch(const Module& m, InstId spread, const Dims& batch) {
  const Dims& kept = m.attrs(spread).ints(Attr::dimensions);
  const auto more = m.shape(spread).rank() - m.shape(m.operand(spread, 0)).rank();
  if (more <= 0 || more != static_cast<int64_t>(batch.size())) return false;
  for (size_t k = 0; k < kept.size(); ++k)
    if (kept[k] != more + static_cast<int64_t>(k) || contains(batch, kept[k])) return false;
  return true;
}

}  // namespace

//   custom-call(A, f32[8,K,N] broadcast(B))      →      custom-call(A, B), "rhs_batch_dimensions":[]
bool run_cublas_gemm_broadcast_folding_rewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::CustomCall)) {
    if (gemm_target(m, i) != GemmTarget::kLt) continue;
    const size_t side = m.op(m.operand(i, 0)) == Opcode::Broadcast ? 0 : 1;
    const InstId spread = m.operand(i, side);
    if (m.op(spread) != Opcode::Broadcast || m.operand(i, 0) == m.operand(i, 1)) continue;
    GemmConfig config(m, i);
    if (!config.part() || !config.part()->contains("dot_dimension_numbers")) continue;
    Json& dims = (*config.part())["dot_dimension_numbers"];
    const char* batch_key = side ? "rhs_batch_dimensions" : "lhs_batch_dimensions";
    const char* sum_key = side ? "rhs_contracting_dimensions" : "lhs_contracting_dimensions";
    // Both sides of one product spread: one of them has to tell how many there are.
    const Dims batch = list(dims, batch_key), sum = list(dims, sum_key),
               other = list(dims, side ? "lhs_batch_dimensions" : "rhs_batch_dimensions");
    if (batch.empty() || other.size() != batch.size() || sum.size() != 1 || !spreads_over_batch(m, spread, batch))
      continue;
    if (!ctx.spend(m, "one matrix for the batch", {i, spread})) return changed;
    dims[batch_key] = Json::array();
    dims[sum_key] = Json::array({std::to_string(sum[0] - static_cast<int64_t>(batch.size()))});
    m.set_operand(i, side, m.operand(spread, 0));
    m.set_attr(i, Attr::backend_config, m.u().str(config.whole.dump()));
    changed = true;
  }
  return changed;
}

}  // namespace hlo
