// Files that are packed streams: gzip, zlib (which caches of compiled programs use), zstd.
#pragma once
#include <string>
#include <string_view>

namespace hlo {

// By its first bytes. zlib's are two only: what begins so may still be a text, `x^`, that unpacked() refuses.
bool looks_packed(std::string_view bytes);

// What is inside. `label`: for messages. Throws Failure(kIo) where the stream is damaged or truncated,
// Failure(kUnsupported) where it unpacks to more than the machine's memory or its own size allow for.
std::string unpacked(std::string_view bytes, const std::string& label);

}  // namespace hlo
