// What devices have in common whose memory is the host's: arrays, and times by the host's clock.
#pragma once
#include <chrono>
#include <cstdlib>
#include <vector>

#include "gpu_exec/driver/device.h"
#include "ir/base/memory.h"

namespace hlo {

class HostMemoryDevice : public Device {
 public:
  char* allocate(int64_t bytes) override {
    return static_cast<char*>(
        std::aligned_alloc(256, static_cast<size_t>((std::max<int64_t>(bytes, 1) + 255) / 256 * 256)));
  }
  void release(char* memory) override { std::free(memory); }
  int64_t free_bytes() const override { return available_memory().bytes; }
  void write(char* to, const char* from, int64_t bytes) override { copy(to, from, bytes); }
  void read(char* to, const char* from, int64_t bytes) override { copy(to, from, bytes); }
  // Every call has done its work when it returns.
  void wait() override {}

  size_t mark() override {
    marks_.push_back(std::chrono::steady_clock::now());
    return marks_.size() - 1;
  }
  int64_t nanoseconds(size_t from, size_t to) override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(marks_[to] - marks_[from]).count();
  }
  void forget_marks() override { marks_.clear(); }

 private:
  std::vector<std::chrono::steady_clock::time_point> marks_;
};

}  // namespace hlo
