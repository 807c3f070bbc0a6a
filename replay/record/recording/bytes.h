// Numbers and texts as the store writes them, and read again with every length held against what is left.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "ir/base/check.h"

namespace hlo {

class ByteWriter {
 public:
  std::string out;
  void byte(uint8_t v) { out.push_back(static_cast<char>(v)); }
  // Seven bits a byte, low ones first.
  void number(uint64_t v) {
    for (; v >= 0x80; v >>= 7) byte(static_cast<uint8_t>(v | 0x80));
    byte(static_cast<uint8_t>(v));
  }
  // 0, -1, 1, -2 … as 0, 1, 2, 3 …
  void integer(int64_t v) { number(static_cast<uint64_t>(v) << 1 ^ static_cast<uint64_t>(v >> 63)); }
  void real(double v) { fixed(std::bit_cast<uint64_t>(v), 8); }
  void text(std::string_view t) {
    number(t.size());
    out.append(t);
  }
  // Little endian.
  void fixed(uint64_t v, int bytes) {
    for (int k = 0; k < bytes; ++k) byte(static_cast<uint8_t>(v >> (8 * k)));
  }
};

class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}
  [[noreturn]] void damaged(std::string_view why) const {
    fail(FailureKind::kIo, "{} is damaged at byte {}: {}", what_, at_, why);
  }
  bool end() const { return at_ == bytes_.size(); }
  uint8_t byte() {
    if (end()) damaged("it ends too early");
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  bool flag() {
    uint8_t v = byte();
    if (v > 1) damaged("neither yes nor no");
    return v;
  }
  uint64_t number() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t b = byte();
      v |= static_cast<uint64_t>(b & 0x7F) << shift;
      if (!(b & 0x80)) return v;
    }
    damaged("a number that is too long");
  }
  int64_t integer() {
    uint64_t v = number();
    return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  }
  int32_t small() {
    int64_t v = integer();
    if (v != static_cast<int32_t>(v)) damaged("a number that is too large");
    return static_cast<int32_t>(v);
  }
  double real() { return std::bit_cast<double>(fixed(8)); }
  // Of things that take a byte each at least.
  size_t count() {
    uint64_t n = number();
    if (n > bytes_.size() - at_) damaged("more is promised than the file holds");
    return static_cast<size_t>(n);
  }
  std::string_view text() {
    size_t n = count();
    std::string_view t = bytes_.substr(at_, n);
    at_ += n;
    return t;
  }
  // An index below `size`.
  uint32_t index(size_t size) {
    uint64_t v = number();
    if (v >= size) damaged("a reference to what is not there");
    return static_cast<uint32_t>(v);
  }
  uint64_t fixed(int bytes) {
    uint64_t v = 0;
    for (int k = 0; k < bytes; ++k) v |= static_cast<uint64_t>(byte()) << (8 * k);
    return v;
  }
  void finish() const {
    if (!end()) damaged("something is left over");
  }

 private:
  std::string_view bytes_;
  std::string what_;
  size_t at_ = 0;
};

}  // namespace hlo
