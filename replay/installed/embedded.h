// The text that the program carries, made by embed.cmake.
#pragma once

namespace hlo {

extern const char* const kXlaDriver;  // python/hlo_replay/_driver.py

}  // namespace hlo
