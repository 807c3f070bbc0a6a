#include "ir/base/base64.h"

#include <cstdint>

namespace hlo {

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  // By hand: `+=` a letter is a call a letter in WebAssembly, and took longer than the rest.
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  char* to = out.data();
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t left = bytes.size() - at;
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8 | (k < left ? static_cast<unsigned char>(bytes[at + k]) : 0U);
    *to++ = kDigits[three >> 18 & 63];
    *to++ = kDigits[three >> 12 & 63];
    *to++ = left > 1 ? kDigits[three >> 6 & 63] : '=';
    *to++ = left > 2 ? kDigits[three & 63] : '=';
  }
  return out;
}

}  // namespace hlo
