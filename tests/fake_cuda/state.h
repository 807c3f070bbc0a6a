// What the fake driver and the fake libraries share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace fake {

// Counts the call; an error to give where HLO_FAKE_CUDA_FAIL wants one.
int begin(const char* name);
// Do so many bytes from there lie in one allocation?
bool inside(uint64_t at, int64_t bytes);
// At once, or as a part of the graph that is captured. An error sticks.
int submit(std::function<int()> work);
// Descriptors of libraries that are alive: told by the log.
size_t& descriptors();

}  // namespace fake
