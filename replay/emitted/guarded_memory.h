// Memory of a device with a zone of a known pattern before and behind it: a kernel that writes there is seen.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "gpu_exec/driver/device.h"

namespace hlo {

class GuardedMemory {
 public:
  static constexpr int64_t kZone = 4096;  // bytes, a multiple of what XLA's arrays are aligned to
  // Its bytes and both zones are filled with `pattern`. Throws Failure(kUnsupported) where the device has no room.
  GuardedMemory(Device& device, int64_t bytes, uint8_t pattern, std::string name);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* at(int64_t offset = 0) const { return base_ + kZone + offset; }
  int64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  // What was written in a zone: "writes 3 byte(s) behind NAME, the first at 0"; empty where nothing was.
  std::string damage() const;

 private:
  Device* device_;
  int64_t bytes_;
  uint8_t pattern_;
  std::string name_;
  char* base_ = nullptr;
};

}  // namespace hlo
