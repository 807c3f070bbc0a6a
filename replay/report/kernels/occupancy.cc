#include "replay/report/kernels/occupancy.h"

#include <algorithm>
#include <array>

namespace hlo {

Occupancy occupancy_of(const DeviceSpec& d, int64_t registers, int64_t shared, int64_t threads) {
  int64_t warps = std::clamp<int64_t>((threads + 31) / 32, 1, 1 << 20);
  // Registers are given out in units of 256 a warp.
  int64_t per_warp = std::max<int64_t>((std::clamp<int64_t>(registers, 0, 1 << 20) * 32 + 255) / 256 * 256, 256);
  std::array<std::pair<int64_t, const char*>, 4> limits = {
      {{d.warps_per_sm / warps, "warps"},
       {d.blocks_per_sm, "blocks"},
       {d.registers_per_sm / (per_warp * warps), "registers"},
       {shared > 0 ? int64_t{d.shared_kb_per_sm} * 1024 / (shared + 1024) : 1 << 20, "shared memory"}}};
  auto least = *std::min_element(limits.begin(), limits.end(), [](auto& x, auto& y) { return x.first < y.first; });
  return {static_cast<double>(std::min<int64_t>(least.first * warps, d.warps_per_sm)) / d.warps_per_sm, least.second};
}

}  // namespace hlo
