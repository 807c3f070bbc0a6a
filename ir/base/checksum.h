// CRC-32 as zlib and PNG have it (ISO 3309): the checksum of recordings.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hlo {

// Eight tables: a step takes eight bytes.
inline constexpr std::array<std::array<uint32_t, 256>, 8> kCrcTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
    tables[0][byte] = crc;
  }
  for (size_t t = 1; t < 8; ++t)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[t][byte] = tables[t - 1][byte] >> 8 ^ tables[0][tables[t - 1][byte] & 0xff];
  return tables;
}();

inline uint32_t checksum_of(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  auto one = [&](size_t table, uint32_t byte) { return kCrcTables[table][byte & 0xff]; };
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint32_t low, high;
    std::memcpy(&low, bytes.data(), 4), std::memcpy(&high, bytes.data() + 4, 4);
    low ^= crc;
    crc = one(7, low) ^ one(6, low >> 8) ^ one(5, low >> 16) ^ one(4, low >> 24) ^ one(3, high) ^ one(2, high >> 8) ^
          one(1, high >> 16) ^ one(0, high >> 24);
  }
  for (char c : bytes) crc = crc >> 8 ^ one(0, crc ^ static_cast<unsigned char>(c));
  return ~crc;
}

}  // namespace hlo
