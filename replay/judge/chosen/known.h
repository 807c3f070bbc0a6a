// Elements of one array that are known already.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace hlo {

// Values by row-major index, each of one width, in the order in which they came.
class KnownElements {
 public:
  bool empty() const { return keys_.empty(); }
  size_t count() const { return keys_.size(); }
  // Where the value lies of an index, -1 where it is not known. `near`: where the last one lay, to be tried first.
  int64_t find(int64_t index, int64_t near = -1) const {
    const auto next = static_cast<uint64_t>(near + 1), direct = static_cast<uint64_t>(index);
    if (next < keys_.size() && keys_[next] == index) return near + 1;
    if (direct < keys_.size() && keys_[direct] == index) return index;
    return find_hashed(index);
  }
  const char* value(int64_t place, int width) const { return values_.data() + place * width; }
  // Indices that are not known, each once.
  void add(std::span<const int64_t> indices, const char* values, int width);
  int64_t bytes() const {
    return static_cast<int64_t>(keys_.size() * sizeof(int64_t) + values_.size() + table_.size() * sizeof(uint32_t));
  }

 private:
  size_t slot_of(int64_t index) const {
    return static_cast<size_t>((static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15ULL) >> shift_);
  }
  int64_t find_hashed(int64_t index) const;
  void put(int64_t index, uint32_t place);

  std::vector<int64_t> keys_;
  std::vector<char> values_;
  std::vector<uint32_t> table_;  // place + 1; 0: free. A power of two, at least twice as many as keys
  int shift_ = 63;
};

}  // namespace hlo
