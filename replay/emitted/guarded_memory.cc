#include "replay/emitted/guarded_memory.h"

#include "ir/base/check.h"
#include "ir/base/checked.h"

namespace hlo {

GuardedMemory::GuardedMemory(Device& device, int64_t bytes, uint8_t pattern, std::string name)
    : device_(&device), bytes_(bytes), pattern_(pattern), name_(std::move(name)) {
  const int64_t all = (Checked(bytes) + 2 * kZone).value("an array");
  base_ = device.allocate(all);
  if (!base_) fail(FailureKind::kUnsupported, "{} has no memory left for {} bytes more", device.name(), all);
  device.fill(base_, pattern, 1, all);
}

GuardedMemory::~GuardedMemory() {
  if (base_) device_->release(base_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : device_(other.device_),
      bytes_(other.bytes_),
      pattern_(other.pattern_),
      name_(std::move(other.name_)),
      base_(std::exchange(other.base_, nullptr)) {}

std::string GuardedMemory::damage() const {
  std::string out;
  std::vector<char> zone(kZone);
  for (bool behind : {false, true}) {
    device_->read(zone.data(), behind ? base_ + kZone + bytes_ : base_, kZone);
    int64_t first = -1, last = -1, count = 0;
    for (int64_t k = 0; k < kZone; ++k) {
      if (static_cast<uint8_t>(zone[static_cast<size_t>(k)]) == pattern_) continue;
      if (first < 0) first = k;
      last = k, ++count;
    }
    if (!count) continue;
    // Distances from the array: the byte right behind it is 0, the one right before it 1 away.
    out += fmt::format("{}writes {} byte(s) {} {} ({} bytes), the {} {} byte(s) {}", out.empty() ? "" : "; ", count,
                       behind ? "after" : "before", name_, bytes_, behind ? "first" : "nearest",
                       behind ? first : kZone - last, behind ? "after its end" : "before its begin");
  }
  return out;
}

}  // namespace hlo
