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
// Work on a stream. On the first one it is done at once, on others as late as can be: when somebody waits for it, so
// that whoever does not wait finds nothing done. Or it is a part of the graph that is captured. An error sticks.
int submit(std::function<int()> work, void* stream);
// The stream that a library's handle works on.
struct Handle {
  void* stream = nullptr;
};
// Descriptors of libraries that are alive: told by the log.
size_t& descriptors();
// What a library was asked for that its documentation does not name: told by the log.
void undocumented(const char* what);

}  // namespace fake
