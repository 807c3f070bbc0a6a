// May a result lie where an operand lay that ends with it? (xla/service/hlo_dataflow_analysis.cc,
// CanShareOperandBufferWithUser, with the GPU's answer for fusions: xla/service/gpu/buffer_sharing.cc.)
#pragma once
#include <vector>

#include "ir/analysis/gpu_target.h"
#include "ir/module.h"

namespace hlo {

// An operand that is overwritten, as a dynamic-update-slice does it.
struct InPlaceOperand {
  size_t operand;  // its number
  InstId by;       // the instruction that does it, inside where it is a fusion
  size_t result;   // which element of the result it becomes
};
std::vector<InPlaceOperand> in_place_operands(const Module& m, InstId i);

// Elementwise in that operand: each element of the result is made of its element alone, as far as this operand goes.
bool is_elementwise_on(const Module& m, InstId i, size_t operand);

// `operand` is one of the user's operands, under each of whose numbers it is read; both indices are paths of arrays in
// their shapes. Copies never share with what they copy: asked of one, the answer is that of an elementwise operation.
bool can_share_buffer(const Module& m, InstId operand, const Dims& operand_index, InstId user, const Dims& user_index,
                      const GpuTarget& target);

}  // namespace hlo
