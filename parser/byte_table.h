// What bytes are to the parser: blanks, parts of names, digits.
#pragma once
#include <cstdint>

namespace hlo {

enum : uint8_t { kSpace = 1, kNameStart = 2, kNameRest = 4, kDigit = 8 };
struct ByteTable {
  uint8_t flags[256] = {};
  constexpr ByteTable() {
    for (int c = 0; c < 256; ++c) {
      bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      bool digit = c >= '0' && c <= '9';
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') flags[c] |= kSpace;
      if (letter) flags[c] |= kNameStart | kNameRest;
      if (digit) flags[c] |= kNameRest | kDigit;
      if (c == '.' || c == '-') flags[c] |= kNameRest;
    }
  }
};
inline constexpr ByteTable kBytes;
inline bool is(char c, uint8_t flag) { return kBytes.flags[static_cast<unsigned char>(c)] & flag; }

}  // namespace hlo
