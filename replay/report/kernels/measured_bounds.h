// How far kernels that were measured are from their bounds, by class and size (measured_bounds.def).
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "replay/report/kernels/kernels.h"

namespace hlo {

struct MeasuredOverBound {
  double low = 0, high = 0;  // nine of ten took at least, at most so many times their bound
  int kernels = 0;           // that were measured
};
inline constexpr std::string_view kMeasuredCard = "H200";

// Of kernels of that class (kernel_class) of which one run needs `seconds` at least; nothing where too few were
// measured.
std::optional<MeasuredOverBound> measured_over_bound(std::string_view kernel_class, double seconds);
// Of kernels like this one; nothing on a card that is no NVIDIA GPU, and of what was not measured.
std::optional<MeasuredOverBound> usual_over_bound(const Module& m, const KernelCost& k, const DeviceSpec& device);
// `1.5 to 4.0 times their bound, 23 measured`.
std::string in_words(const MeasuredOverBound& m);

}  // namespace hlo
