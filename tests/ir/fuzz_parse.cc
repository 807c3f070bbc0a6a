// libFuzzer: any bytes at all go in; what parses must print, verify and read back. Build with clang:
//   cmake -S . -B build-fuzz -G Ninja -DHLO_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++ && cmake --build build-fuzz --target
//   fuzz_parse build-fuzz/tests/fuzz_parse CORPUS_DIR -max_total_time=600 -max_len=20000 -rss_limit_mb=1024
#include <cstdint>

#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    auto m = hlo::parse_module(text, std::make_shared<hlo::Universe>());
    hlo::verify_module(*m);
    hlo::PrintOptions style;
    style.large_constants = style.stable_order = true;
    style.lossless = true;
    std::string printed = hlo::print_module(*m, style);
    auto again = hlo::parse_module(printed, std::make_shared<hlo::Universe>());
    // What was printed once prints the same for good.
    if (hlo::print_module(*again, style) != printed) __builtin_trap();
  } catch (const hlo::Failure& e) {
    if (e.kind() == hlo::FailureKind::kInternal) __builtin_trap();
  }
  return 0;
}
