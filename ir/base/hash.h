// Seedless 64-bit hashing, the same on every run.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hlo {

inline uint64_t mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

inline uint64_t hash_combine(uint64_t a, uint64_t b) { return mix64(a * 0x9E3779B97F4A7C15ull + b); }

// Both halves of the product, one upon the other.
inline uint64_t folded_product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t load64(const char* at) {
  uint64_t w;
  std::memcpy(&w, at, 8);
  return w;
}
inline uint32_t load32(const char* at) {
  uint32_t w;
  std::memcpy(&w, at, 4);
  return w;
}

// Sixteen bytes a step, in two lanes that do not wait for each other; the last step overlaps what was read before.
inline uint64_t hash_bytes(const char* data, size_t size) {
  constexpr uint64_t kA = 0x9E3779B97F4A7C15ull, kB = 0xff51afd7ed558ccdull, kC = 0xc4ceb9fe1a85ec53ull;
  uint64_t h = size * kA, low, high;
  if (size > 16) {
    if (size > 64) {
      uint64_t other = h ^ kC;
      for (; size > 32; data += 32, size -= 32) {
        h = folded_product(load64(data) ^ kA, load64(data + 8) ^ h);
        other = folded_product(load64(data + 16) ^ kB, load64(data + 24) ^ other);
      }
      h ^= other;
    }
    for (; size > 16; data += 16, size -= 16) h = folded_product(load64(data) ^ kB, load64(data + 8) ^ h);
    // At least one step of sixteen bytes lies in front of what is left.
    low = load64(data + size - 16), high = load64(data + size - 8);
  } else if (size >= 8) {
    low = load64(data), high = load64(data + size - 8);
  } else if (size >= 4) {
    low = load32(data), high = load32(data + size - 4);
  } else {
    low = high = 0;
    for (size_t i = 0; i < size; ++i) low = low << 8 | static_cast<unsigned char>(data[i]);
  }
  return mix64(folded_product(low ^ kA, high ^ kB ^ h) ^ h);
}

// Are these `size` bytes the same? Names are short: no call for them.
inline bool same_bytes(const char* a, const char* b, size_t size) {
  if (size > 32) return !std::memcmp(a, b, size);
  if (size >= 8) {
    uint64_t differs = load64(a + size - 8) ^ load64(b + size - 8);
    for (size_t i = 0; i + 8 < size; i += 8) differs |= load64(a + i) ^ load64(b + i);
    return !differs;
  }
  if (size >= 4) return load32(a) == load32(b) && load32(a + size - 4) == load32(b + size - 4);
  for (size_t i = 0; i < size; ++i)
    if (a[i] != b[i]) return false;
  return true;
}
inline bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && same_bytes(a.data(), b.data(), a.size());
}

inline uint64_t hash_bytes(std::string_view text) { return hash_bytes(text.data(), text.size()); }

}  // namespace hlo
