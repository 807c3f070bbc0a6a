// Elements of one array that are known already.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace hlo {

// Values by row-major index, each of one width, in the order in which they came. A run of neighbours that came first,
// as a whole array does, takes no more room than its values.
class KnownElements {
 public:
  bool empty() const { return count_ == 0; }
  int64_t size() const { return static_cast<int64_t>(count_); }
  // Where the value lies of an index, -1 where it is not known. `near`: where the last one lay, to be tried first.
  int64_t find(int64_t index, int64_t near = -1) const {
    if (static_cast<uint64_t>(index - first_) < run_) return index - first_;
    const auto next = static_cast<uint64_t>(near + 1 - static_cast<int64_t>(run_));
    if (next < keys_.size() && keys_[next] == index) return near + 1;
    return find_hashed(index);
  }
  const char* value(int64_t place, int width) const { return values_.data() + place * width; }
  // Indices that are not known, each once.
  void add(std::span<const int64_t> indices, const char* values, int width);

 private:
  size_t slot_of(int64_t index) const {
    return static_cast<size_t>((static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15ULL) >> shift_);
  }
  int64_t find_hashed(int64_t index) const;
  void put(int64_t index, uint32_t key);

  uint64_t count_ = 0, run_ = 0;  // elements; how many of them are first_, first_ + 1, …
  int64_t first_ = 0;
  std::vector<int64_t> keys_;  // behind those
  std::vector<char> values_;
  std::vector<uint32_t> table_;  // key + 1; 0: free. A power of two, at least twice as many as keys
  int shift_ = 63;
};

}  // namespace hlo
