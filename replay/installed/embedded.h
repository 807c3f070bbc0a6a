// Texts that the program carries, made by embed.cmake.
#pragma once
#include <vector>

namespace hlo {

extern const char* const kXlaDriver;  // python/hlo_replay/_driver.py

struct EmbeddedTarget {
  const char *name, *text;  // `h100_sxm`; XLA's GpuTargetConfigProto as text
};
const std::vector<EmbeddedTarget>& embedded_targets();

}  // namespace hlo
