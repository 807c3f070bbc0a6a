// The library calls that executors run: for each target, what operands, results and configuration must be. Whatever
// reads a call by its target's rule (evaluator, executors, verifier, passes) asks here first.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "ir/backend_config.h"
#include "ir/module.h"

namespace hlo {

// Is the target one of the table, whose calls the evaluator has code for?
bool is_library_target(std::string_view target);

// The element of a library call's tuple that is the memory it works in, whose bytes are no value: a `u8[n]` or `s8[n]`,
// the last; of cuSOLVER's Cholesky the one before the error codes. None for calls of somebody's own. Executors give
// zeros there.
std::optional<size_t> scratch_element(const Universe& u, ShapeId shape, std::string_view target);
std::optional<size_t> scratch_element(const Module& m, InstId call);

// CUB's running sums: the dimension, -1 where no row has more than one element, and whether they begin at its end. Of a
// call that is none, or is not supported, dimension -1.
struct CubScan {
  int64_t dimension = -1;
  bool reverse = false;
};
CubScan cub_scan(const Module& m, InstId call);
// The ragged_dot_dimension_numbers of a cuBLASLt product of groups.
BackendConfig grouped_gemm_config(const Module& m, InstId call);

// Why a custom-call of such a target cannot be run: names what is there and what was expected. Empty where it can, and
// for every other target.
std::string library_call_error(const Module& m, InstId call);

// The same of the calls that XLA's own passes read and expand (TopK, Qr, Eigh …), whose meaning is XLA's and not a
// library's: what is wrong with them is wrong wherever they stand. Empty for all others, which XLA hands on unread.
std::string expanded_call_error(const Module& m, InstId call);

}  // namespace hlo
