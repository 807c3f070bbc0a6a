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
  std::string_view worker, engine;           // engine: WebAssembly, gzipped. Empty where built without -DHLO_ENGINE=ON
  std::span<const PageLesson> lessons;       // by name
};
PageData page_data();

}  // namespace hlo
