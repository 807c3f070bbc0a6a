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

inline uint64_t hash_bytes(const char* data, size_t size) {
  uint64_t h = size * 0x9E3779B97F4A7C15ull;
  auto fold = [&h](uint64_t w) {
    h = (h ^ w) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  };
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t w;
    std::memcpy(&w, data + i, 8);
    fold(w);
  }
  if (i < size) {
    uint64_t w = 0;
    std::memcpy(&w, data + i, size - i);
    fold(w);
  }
  return h ^ (h >> 29);
}

inline uint64_t hash_bytes(std::string_view text) { return hash_bytes(text.data(), text.size()); }

}  // namespace hlo
