// Archives of one file: gzip, zlib and zstd streams unpacked, gzip packed.
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "ir/base/check.h"
#include "ir/base/memory.h"
#include "parser/proto/proto_reader.h"
#include "parser/proto/unpack.h"

namespace hlo {
namespace {

// A module's text or proto becomes several times its size in memory, and texts pack to a thirtieth: what unpacks to
// much more than that is made to fill the machine.
constexpr int64_t kUnpackedMost = int64_t{4} << 30, kUnpackedFree = int64_t{256} << 20, kRatioMost = 300;

// Of what is being unpacked, after every piece. Throws Failure(kUnsupported) where it grows too large.
class Growth {
 public:
  Growth(std::string_view bytes, const std::string& label)
      : packed_(static_cast<int64_t>(bytes.size())),
        limit_(std::min(kUnpackedMost, available_memory().bytes / 8)),
        label_(label) {}
  void check(size_t bytes) const {
    auto size = static_cast<int64_t>(bytes);
    if (size > limit_)
      fail(FailureKind::kUnsupported, "{}: {} bytes unpack to more than {} MB, which this machine's memory allows for",
           label_, packed_, limit_ >> 20);
    if (size > kUnpackedFree && size / kRatioMost > packed_)
      fail(
          FailureKind::kUnsupported,
          "{}: {} bytes unpack to more than {} MB, {} times as much: if that is meant, unpack the file by gunzip first",
          label_, packed_, size >> 20, size / packed_);
  }
  // How much to make room for behind what is there.
  static size_t piece(size_t have) { return std::clamp<size_t>(have, size_t{64} << 10, size_t{64} << 20); }

 private:
  int64_t packed_, limit_;
  const std::string& label_;
};

class Unpacker {
 public:
  Unpacker(std::string_view bytes, const std::string& label) : bytes_(bytes), label_(label), growth_(bytes, label) {
    if (bytes.size() >= UINT32_MAX) fail(FailureKind::kIo, "{}: a gzip stream of more than 4 GB", label);
    // 32: gzip's header or zlib's, whose checksum is compared at the end.
    if (inflateInit2(&z_, 32 + MAX_WBITS) != Z_OK) fail(FailureKind::kIo, "{}: zlib does not start", label);
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    z_.avail_in = static_cast<uInt>(bytes.size());
  }
  ~Unpacker() { inflateEnd(&z_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  std::string run() {
    for (;;) {
      size_t have = out_.size();
      out_.resize(have + Growth::piece(have));
      z_.next_out = reinterpret_cast<Bytef*>(out_.data() + have);
      z_.avail_out = static_cast<uInt>(out_.size() - have);
      int code = inflate(&z_, Z_NO_FLUSH);
      out_.erase(out_.size() - z_.avail_out);
      growth_.check(out_.size());
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
  std::string_view bytes_;
  const std::string& label_;
  Growth growth_;
  z_stream z_{};
  std::string out_;
};

std::string unpack_zstd(std::string_view bytes, const std::string& label) {
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) fail(FailureKind::kIo, "{}: zstd does not start", label);
  Growth growth(bytes, label);
  std::string out;
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (;;) {
    size_t have = out.size();
    out.resize(have + Growth::piece(have));
    ZSTD_outBuffer to{out.data() + have, out.size() - have, 0};
    size_t left = ZSTD_decompressStream(context.get(), &to, &in);
    const bool full = to.pos == to.size;
    out.resize(have + to.pos);
    if (ZSTD_isError(left)) fail(FailureKind::kIo, "{}: damaged zstd stream: {}", label, ZSTD_getErrorName(left));
    growth.check(out.size());
    if (left == 0 && in.pos == in.size) return out;
    if (in.pos == in.size && !full) fail(FailureKind::kIo, "{}: the zstd stream is truncated", label);
  }
}

bool is_zstd(std::string_view b) { return b.starts_with("\x28\xb5\x2f\xfd"); }
// Two bytes whose sum is a multiple of 31, the window 32 kB at most, no dictionary: no text of ours begins so.
bool is_zlib(std::string_view b) {
  if (b.size() < 8 || b[0] != '\x78') return false;
  auto second = static_cast<unsigned char>(b[1]);
  return (0x7800 + second) % 31 == 0 && !(second & 0x20);
}

}  // namespace

bool looks_packed(std::string_view bytes) { return bytes.starts_with("\x1f\x8b") || is_zstd(bytes) || is_zlib(bytes); }

std::string unpacked(std::string_view bytes, const std::string& label) {
  return is_zstd(bytes) ? unpack_zstd(bytes, label) : Unpacker(bytes, label).run();
}

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
