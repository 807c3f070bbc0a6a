#include <algorithm>

#include "dump/json.h"
#include "ir/base/check.h"
#include "parser/excerpt/source_text.h"
#include "parser/parser.h"
#include "viewer/engine/read_modules.h"

namespace hlo {

std::vector<std::unique_ptr<Module>> read_modules(const std::string& label, std::string bytes) {
  std::vector<std::unique_ptr<Module>> out;
  if (looks_like_module_json(bytes)) {
    StackTables stack;
    ParseOptions parse;
    parse.file = label + " (as text)";
    out.push_back(parse_module(text_of_json(bytes, label, &stack), std::make_shared<Universe>(), parse));
    out.back()->edit_stack() = std::move(stack);
    return out;
  }
  // Texts have none.
  if (bytes.find('\0') != std::string::npos || bytes.starts_with("\x1f\x8b"))
    fail(FailureKind::kUnsupported,
         "{} is no text: the page reads HLO as text or JSON; hlo-replay convert makes a text of a proto", label);
  if (std::string_view foreign = recognise_foreign(bytes); !foreign.empty())
    fail(FailureKind::kUnsupported, "{} looks like {}, which is no HLO text", label, foreign);
  std::string plain;
  const bool log = strip_log_prefixes(bytes, &plain);
  if (log) bytes = std::move(plain);
  for (std::string_view part : split_modules(bytes)) {
    ParseOptions parse;
    parse.file = label, parse.text_behind = log;
    parse.first_line = static_cast<size_t>(std::count(static_cast<const char*>(bytes.data()), part.data(), '\n'));
    out.push_back(parse_module(part, std::make_shared<Universe>(), parse));
  }
  return out;
}

}  // namespace hlo
