#include "replay/report/kernels/measured_bounds.h"

#include <vector>

namespace hlo {
namespace {

struct MeasuredRow {
  std::string_view kernel_class;
  double from;  // seconds of a bound; the next row of the class ends it
  MeasuredOverBound over;
};

}  // namespace

std::optional<MeasuredOverBound> measured_over_bound(std::string_view kernel_class, double seconds) {
#define MEASURED(kind, from, low, high, kernels) {kind, from, {low, high, kernels}},
  static const std::vector<MeasuredRow> rows = {
#include "replay/report/kernels/measured_bounds.def"
  };
#undef MEASURED
  std::optional<MeasuredOverBound> out;
  for (const MeasuredRow& r : rows)
    if (r.kernel_class == kernel_class && r.from <= seconds) out = r.over;
  return out;
}

std::optional<MeasuredOverBound> usual_over_bound(const Module& m, const KernelCost& k, const DeviceSpec& device) {
  if (!device.is_gpu() || !k.known || k.beside || k.seconds <= 0 || k.times <= 0) return std::nullopt;
  return measured_over_bound(kernel_class(m, k.inst), k.seconds / k.times);
}

std::string in_words(const MeasuredOverBound& m) {
  return fmt::format("{:.1f} to {:.1f} times their bound, {} measured", m.low, m.high, m.kernels);
}

}  // namespace hlo
