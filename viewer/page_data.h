// The parts of the page of `view`, as bytes of the program: made by viewer/page.cmake.
#pragma once
#include <span>
#include <string_view>

namespace hlo {

struct PageLesson {
  std::string_view file, text;  // a name of viewer/lessons, and what stands in it
};

struct PageData {
  std::string_view skeleton, script, style;
  std::string_view script_hash, style_hash;  // SHA-256 in base64, for the Content-Security-Policy
  std::string_view worker, engine;           // engine: WebAssembly, gzipped
  std::span<const PageLesson> lessons;       // by name
};
PageData page_data();

// How the engine of page_data stands to the sources that this program is made from: made by viewer/engine/state.cmake.
enum class PageEngineState {
  kFresh,
  kOlder,          // made from other sources than these: its answers may be other than the program's
  kOtherProtocol,  // of another version of viewer/page/protocol.ts: no engine of this program's pages
};
PageEngineState page_engine_state();

}  // namespace hlo
