// One object a command on standard output, errors too.
#include "replay/cli/json_output.h"

#include <cmath>
#include <string_view>

#include "parser/parser.h"

namespace hlo {
namespace {

bool g_json_asked = false, g_json_printed = false;

const char* word_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::kUsage:
      return "usage";
    case FailureKind::kSyntax:
      return "syntax";
    case FailureKind::kInvalid:
      return "invalid";
    case FailureKind::kUnsupported:
      return "unsupported";
    case FailureKind::kIo:
      return "io";
    case FailureKind::kInternal:
      break;
  }
  return "internal";
}

void print_error_object(const std::string& kind, const std::string& message, Json diagnostics) {
  if (!g_json_asked || g_json_printed) return;
  print_json({{"error", {{"kind", kind}, {"message", message}, {"diagnostics", std::move(diagnostics)}}}});
}

}  // namespace

void print_json(const Json& j) {
  g_json_printed = true;
  fmt::print("{}\n", j.dump(1, ' ', false, Json::error_handler_t::replace));
}

Json complete(const Json& empty, const Json& found) {
  Json out = empty;
  for (const auto& item : found.items()) out[item.key()] = item.value();
  return out;
}

Json finite_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(); }

void note_json_asked(int argc, char** argv) {
  for (int k = 1; k < argc && std::string_view(argv[k]) != "--"; ++k)
    g_json_asked |= std::string_view(argv[k]) == "--json";
}

void print_json_error(const Failure& failure) {
  Json list = Json::array();
  if (const auto* syntax = dynamic_cast<const SyntaxFailure*>(&failure))
    for (const SyntaxFailure::Entry& e : syntax->entries())
      list.push_back({{"line", e.line}, {"column", e.column}, {"message", e.message}, {"hint", e.hint}});
  print_error_object(word_of(failure.kind()), failure.what(), std::move(list));
}

void print_json_error(const std::string& kind, const std::string& message) {
  print_error_object(kind, message, Json::array());
}

}  // namespace hlo
