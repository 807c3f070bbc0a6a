// FarmHash's 128-bit fingerprint (CityHash128 of its `cc` family): what XLA names an instruction by in the files of its
// autotuner (tsl::Fingerprint128 in tsl/platform/fingerprint.h). The values are the published algorithm's on every
// machine of either byte order that we build for (little-endian).
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>

#include "ir/base/hash.h"

namespace hlo {

struct Hash128 {
  uint64_t low = 0, high = 0;
};

namespace farm {

constexpr uint64_t k0 = 0xc3a5c85c97cb3127ull, k1 = 0xb492b66fbe98f273ull, k2 = 0x9ae16a3b2f90404full;

inline uint64_t shift_mix(uint64_t v) { return v ^ (v >> 47); }
inline uint64_t hash16(uint64_t u, uint64_t v, uint64_t multiplier = 0x9ddfea08eb382d69ull) {
  uint64_t a = (u ^ v) * multiplier;
  a ^= a >> 47;
  uint64_t b = (v ^ a) * multiplier;
  b ^= b >> 47;
  return b * multiplier;
}
inline uint64_t hash_to_16(const char* at, size_t size) {
  const uint64_t multiplier = k2 + size * 2;
  if (size >= 8) {
    const uint64_t a = load64(at) + k2, b = load64(at + size - 8);
    return hash16(std::rotr(b, 37) * multiplier + a, (std::rotr(a, 25) + b) * multiplier, multiplier);
  }
  if (size >= 4) return hash16(size + (uint64_t{load32(at)} << 3), load32(at + size - 4), multiplier);
  if (!size) return k2;
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
  const uint32_t y = byte(0) + (byte(size >> 1) << 8), z = static_cast<uint32_t>(size) + (byte(size - 1) << 2);
  return shift_mix(y * k2 ^ z * k0) * k2;
}

using Pair = std::pair<uint64_t, uint64_t>;
// 32 bytes on two seeds.
inline Pair weak32(const char* at, uint64_t a, uint64_t b) {
  const uint64_t w = load64(at), x = load64(at + 8), y = load64(at + 16), z = load64(at + 24);
  a += w;
  b = std::rotr(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += std::rotr(a, 44);
  return {a + z, b + c};
}

// Below 128 bytes.
inline Hash128 murmur(const char* at, size_t size, Hash128 seed) {
  uint64_t a = seed.low, b = seed.high, c, d;
  if (size <= 16) {
    a = shift_mix(a * k1) * k1;
    c = b * k1 + hash_to_16(at, size);
    d = shift_mix(a + (size >= 8 ? load64(at) : c));
  } else {
    c = hash16(load64(at + size - 8) + k1, a);
    d = hash16(b + size, c + load64(at + size - 16));
    a += d;
    for (auto left = static_cast<int64_t>(size) - 16; left > 0; at += 16, left -= 16) {
      a = (a ^ shift_mix(load64(at) * k1) * k1) * k1;
      b ^= a;
      c = (c ^ shift_mix(load64(at + 8) * k1) * k1) * k1;
      d ^= c;
    }
  }
  a = hash16(a, c);
  b = hash16(d, b);
  return {a ^ b, hash16(b, a)};
}

inline Hash128 seeded(const char* at, size_t size, Hash128 seed) {
  if (size < 128) return murmur(at, size, seed);
  uint64_t x = seed.low, y = seed.high, z = size * k1;
  Pair v, w;
  v.first = std::rotr(y ^ k1, 49) * k1 + load64(at);
  v.second = std::rotr(v.first, 42) * k1 + load64(at + 8);
  w.first = std::rotr(y + z, 35) * k1 + x;
  w.second = std::rotr(x + load64(at + 88), 53) * k1;
  auto block = [&] {
    x = std::rotr(x + y + v.first + load64(at + 8), 37) * k1;
    y = std::rotr(y + v.second + load64(at + 48), 42) * k1;
    x ^= w.second;
    y += v.first + load64(at + 40);
    z = std::rotr(z + w.first, 33) * k1;
    v = weak32(at, v.second * k1, x + w.first);
    w = weak32(at + 32, z + w.second, y + load64(at + 16));
    std::swap(z, x);
    at += 64;
  };
  for (; size >= 128; size -= 128) block(), block();
  x += std::rotr(v.first + z, 49) * k0;
  y = y * k0 + std::rotr(w.second, 37);
  z = z * k0 + std::rotr(w.first, 27);
  w.first *= 9;
  v.first *= k0;
  // What is left, from the end, 32 bytes a turn; the last turn overlaps what was read before.
  for (size_t done = 0; done < size;) {
    done += 32;
    const char* from = at + size - done;
    y = std::rotr(x + y, 42) * k0 + v.second;
    w.first += load64(from + 16);
    x = x * k0 + w.first;
    z += w.second + load64(from);
    w.second += v.first;
    v = weak32(from, v.first + z, v.second);
    v.first *= k0;
  }
  x = hash16(x, v.first);
  y = hash16(y + z, w.first);
  return {hash16(x + v.second, w.second) + y, hash16(x + w.second, y + v.second)};
}

}  // namespace farm

inline Hash128 farm_fingerprint128(std::string_view text) {
  const char* at = text.data();
  return text.size() >= 16 ? farm::seeded(at + 16, text.size() - 16, {load64(at), load64(at + 8) + farm::k0})
                           : farm::seeded(at, text.size(), {farm::k0, farm::k1});
}

}  // namespace hlo
