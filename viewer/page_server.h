// `view --serve`: the page over HTTP, on this machine's loopback alone, with the engine of this process behind it.
//
// Written out here rather than by a library: Debian's cpp-httplib brings OpenSSL and Brotli into every start of the
// program, and this needs neither.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace hlo {

class PageEngine;

struct PageServerOptions {
  uint16_t port = 0;  // 0: one that is free
  // Told once, when it can be asked: http://127.0.0.1:PORT/TOKEN/
  std::function<void(const std::string& url)> ready;
};

// Serves `html` and answers of `engine` until the process is asked to end (replay/os/interrupt.h). Below the path of
// the secret token:
//   GET  /TOKEN/             the page
//   POST /TOKEN/put?name=N   a file for the next question `open` (percent-encoded name): {}
//   POST /TOKEN/ask          a question of viewer/page/protocol.ts, answered in JSON
// All else is refused: another Host (names that lead here), another Origin (pages of the web), no token. One request a
// connection, one question at a time. Throws Failure(kIo) where the port cannot be had.
void serve_page(const std::string& html, PageEngine& engine, const PageServerOptions& options);

}  // namespace hlo
