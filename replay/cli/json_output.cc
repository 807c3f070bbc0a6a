// One object a command on standard output, errors too.
#include "replay/cli/json_output.h"

#include <cmath>
#include <mutex>
#include <string>
#include <string_view>

#include "parser/parser.h"

namespace hlo {
namespace {

bool g_json_asked = false, g_json_printed = false, g_dashes = false;
Json g_beside = Json::object();  // what every object has beside its own
std::mutex g_beside_mutex;       // who ends the process answers, too

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

void add_to_json(const std::string& key, Json value) {
  const std::lock_guard<std::mutex> lock(g_beside_mutex);
  g_beside[key].push_back(std::move(value));
}

bool json_asked() { return g_json_asked; }
bool dashes_given() { return g_dashes; }

void print_json(const Json& given) {
  g_json_printed = true;
  Json j = given;
  {
    const std::lock_guard<std::mutex> lock(g_beside_mutex);
    for (const auto& item : g_beside.items()) j[item.key()] = item.value();
  }
  fmt::print("{}\n", j.dump(1, ' ', false, Json::error_handler_t::replace));
}

Json complete_bisection(const Json& found) {
  const Json list = Json::array();
  const Json empty{{"found", false},
                   {"verdict", ""},
                   {"module", Json()},
                   {"guilty", Json()},
                   {"good", Json()},
                   {"bad", Json()},
                   {"bad_file", Json()},
                   {"why", Json()},
                   {"pipeline", Json()},
                   {"pass", Json()},
                   {"rewrite", Json()},
                   {"rewrites", Json()},
                   {"judged_for_rewrite", Json()},
                   {"rule", Json()},
                   {"instructions", list},
                   {"inputs_from", Json()},
                   {"difference", Json()},
                   {"first_value_that_differs", Json()},
                   {"operands", list},
                   {"partial_sums", Json()},
                   {"outputs", Json()},
                   {"no_values", Json()},
                   {"rounding", Json::array()},
                   {"source", Json()},
                   {"before", list},
                   {"after", list},
                   {"other_bad", list},
                   {"candidates", 0},
                   {"judged", 0},
                   {"not_judged", 0},
                   {"reasons", list},
                   {"unknown", list},
                   {"worst_error", Json()},
                   {"tolerance", Json()},
                   {"worst_stage", Json()},
                   {"worst_at", Json()},
                   {"confidence", Json()},
                   {"inside", Json()},
                   {"inputs", Json()},
                   {"elements", Json()},
                   {"elided", Json()},
                   {"smaller", Json()},
                   {"device", Json()},
                   {"last_stage", Json()},
                   {"stopped", Json()},
                   {"verdicts", list},
                   {"order", list},
                   {"modules", list}};
  Json out = complete(empty, found);
  if (!out["modules"].empty() && out["verdict"] == "")
    out["verdict"] = fmt::format("nothing found in {} modules", out["modules"].size());
  if (out["verdict"] == "" && out["guilty"].is_string()) out["verdict"] = out["guilty"];
  for (Json& one : out["modules"]) one = complete(empty, one);
  return out;
}

Json complete_links(const Json& found) {
  const Json list = Json::array();
  return complete({{"modules", list},
                   {"edges", list},
                   {"notes", list},
                   {"emitted", Json()},
                   {"nodes", Json()},
                   {"cluster_edges", list},
                   {"problems", list}},
                  found);
}

Json finite_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(); }

void note_json_asked(int argc, char** argv) {
  for (int k = 1; k < argc && std::string_view(argv[k]) != "--"; ++k)
    g_json_asked |= std::string_view(argv[k]) == "--json";
  for (int k = 1; k < argc; ++k) g_dashes |= std::string_view(argv[k]) == "--";
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
