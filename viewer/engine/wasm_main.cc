// What the worker's script calls (viewer/page/worker.ts). The caller allocates what it hands over, and the callee frees
// it; an answer (JSON) lies where hlo_answer_bytes says until the next call. Nothing gets out but what ends the engine:
// a trap of the machine, such as its stack's end.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ir/base/check.h"
#include "viewer/engine/engine.h"

#define HLO_EXPORT(name) extern "C" __attribute__((export_name(#name), used))

namespace hlo {
namespace {

PageEngine& engine() {
  static PageEngine one;
  return one;
}
std::string& answer() {
  static std::string text;
  return text;
}
// In the place of what would have been answered.
void answer_failure(const char* message) {
  const nlohmann::json told = {{"error", {{"message", message}}}};
  answer() = told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct Free {
  void operator()(char* at) const { std::free(at); }
};
using Given = std::unique_ptr<char, Free>;

HLO_EXPORT(hlo_allocate) char* hlo_allocate(size_t bytes) {
  return static_cast<char*>(std::malloc(bytes ? bytes : 1));  // null where there is no memory left
}

// A file for the next question `open`.
HLO_EXPORT(hlo_put) void hlo_put(char* name, size_t name_size, char* bytes, size_t size) {
  Given name_kept(name), bytes_kept(bytes);
  try {
    std::string content(bytes, size);
    bytes_kept.reset();
    engine().put(std::string(name, name_size), std::move(content));
    answer() = "{}";
  } catch (const std::bad_alloc&) {
    answer_failure("the engine is out of memory");
  } catch (const Failure& e) {
    answer_failure(e.what());
  }
}

// One question of viewer/page/protocol.ts.
HLO_EXPORT(hlo_ask) void hlo_ask(char* question, size_t size) {
  Given kept(question);
  answer() = std::string();  // its memory first
  answer() = engine().answer(std::string_view(question, size));
}

HLO_EXPORT(hlo_answer_bytes) const char* hlo_answer_bytes() { return answer().data(); }
HLO_EXPORT(hlo_answer_size) size_t hlo_answer_size() { return answer().size(); }

}  // namespace
}  // namespace hlo
