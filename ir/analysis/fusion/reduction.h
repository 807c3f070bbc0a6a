// Reductions as GPU kernels see them (xla/service/gpu/reduction_utils.cc): which of rows and columns are summed.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "ir/module.h"
#include "ir/target/gpu_target.h"

namespace hlo {

// Row: {reduced, kept, reduced}; column: {kept, reduced, kept}; major to minor, what is not there has 1.
struct ReductionShape {
  bool row = true;
  std::array<int64_t, 3> dims = {1, 1, 1};
  bool operator==(const ReductionShape&) const = default;
};

inline constexpr int64_t kThreadsPerWarp = 32;  // of every GPU of NVIDIA's
// How far a kernel of one block for each result reduces: rows at their minor and their major end, and columns.
inline constexpr int64_t kMostRow = 16384, kMostRowBatch = 8, kMostColumn = 128 * kThreadsPerWarp;

// Of a reduce whose kept or reduced dimensions lie side by side in memory.
ReductionShape reduction_shape(const Module& m, InstId reduce);
// Of an array of which `reduced` is reduced, where a kernel's threads work on it together: rows or columns of
// neighbours in memory that are long enough. Nothing: a loop for each result.
std::optional<ReductionShape> kernel_reduction(const Shape& in, const Dims& reduced,
                                               int64_t threads_per_warp = kThreadsPerWarp);
// A reduce that gets a kernel of its own kind, in which threads work together; others are loops of one thread.
bool is_kernel_reduction(const Module& m, InstId i, const GpuTarget& target);
// No two blocks add to the same element.
bool is_race_free(const ReductionShape& shape);

}  // namespace hlo
