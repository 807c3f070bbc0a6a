// Archives of one file: gzip streams, packed and unpacked.
#include <zlib.h>

#include <algorithm>

#include "ir/base/check.h"
#include "ir/base/memory.h"
#include "parser/proto_reader.h"

namespace hlo {
namespace {

// A module's text or proto becomes several times its size in memory, and texts pack to a thirtieth: what unpacks to
// much more than that is made to fill the machine.
constexpr int64_t kUnpackedMost = int64_t{4} << 30, kUnpackedFree = int64_t{256} << 20, kRatioMost = 300;

class Unpacker {
 public:
  Unpacker(std::string_view bytes, const std::string& label) : bytes_(bytes), label_(label) {
    if (bytes.size() >= UINT32_MAX) fail(FailureKind::kIo, "{}: a gzip stream of more than 4 GB", label);
    limit_ = std::min(kUnpackedMost, available_memory().bytes / 8);
    // 16: with the header of gzip, whose checksum zlib compares at the end.
    if (inflateInit2(&z_, 16 + MAX_WBITS) != Z_OK) fail(FailureKind::kIo, "{}: zlib does not start", label);
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    z_.avail_in = static_cast<uInt>(bytes.size());
  }
  ~Unpacker() { inflateEnd(&z_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  std::string run() {
    for (;;) {
      size_t have = out_.size();
      out_.resize(have + std::clamp<size_t>(have, size_t{64} << 10, size_t{64} << 20));
      z_.next_out = reinterpret_cast<Bytef*>(out_.data() + have);
      z_.avail_out = static_cast<uInt>(out_.size() - have);
      int code = inflate(&z_, Z_NO_FLUSH);
      out_.resize(out_.size() - z_.avail_out);
      measure();
      if (code == Z_STREAM_END) {
        // gzip files may stand one behind the other; zeros behind the last one are padding.
        while (z_.avail_in && !*z_.next_in) ++z_.next_in, --z_.avail_in;
        if (!z_.avail_in) break;
        if (inflateReset(&z_) != Z_OK) fail(FailureKind::kIo, "{}: damaged gzip stream", label_);
      } else if (code == Z_BUF_ERROR || (code == Z_OK && !z_.avail_in && z_.avail_out)) {
        fail(FailureKind::kIo, "{}: the gzip stream is truncated", label_);
      } else if (code != Z_OK) {
        fail(FailureKind::kIo, "{}: damaged gzip stream", label_);
      }
    }
    return std::move(out_);
  }

 private:
  void measure() const {
    auto size = static_cast<int64_t>(out_.size()), packed = static_cast<int64_t>(bytes_.size());
    if (size > limit_)
      fail(FailureKind::kUnsupported, "{}: {} bytes unpack to more than {} MB, which this machine's memory allows for",
           label_, packed, limit_ >> 20);
    if (size > kUnpackedFree && size / kRatioMost > packed)
      fail(
          FailureKind::kUnsupported,
          "{}: {} bytes unpack to more than {} MB, {} times as much: if that is meant, unpack the file by gunzip first",
          label_, packed, size >> 20, size / packed);
  }

  std::string_view bytes_;
  const std::string& label_;
  z_stream z_{};
  int64_t limit_ = 0;
  std::string out_;
};

}  // namespace

std::string gunzip(std::string_view bytes, const std::string& label) { return Unpacker(bytes, label).run(); }

std::string gzip(std::string_view bytes) {
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    fail(FailureKind::kIo, "zlib does not start");
  std::string out(deflateBound(&z, static_cast<uLong>(bytes.size())), '\0');
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(std::min<size_t>(out.size(), UINT32_MAX));
  // zlib counts in 32 bits: in pieces.
  int code = Z_OK;
  for (size_t at = 0; code == Z_OK;) {
    size_t n = std::min<size_t>(bytes.size() - at, size_t{1} << 30);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
    z.avail_in = static_cast<uInt>(n);
    at += n;
    code = deflate(&z, at == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
  }
  size_t size = z.total_out;
  deflateEnd(&z);
  if (code != Z_STREAM_END) fail(FailureKind::kIo, "zlib does not pack {} bytes", bytes.size());
  out.resize(size);
  return out;
}

}  // namespace hlo
