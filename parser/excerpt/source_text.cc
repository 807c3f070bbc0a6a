#include "parser/excerpt/source_text.h"

#include <algorithm>
#include <cctype>

#include "parser/excerpt/pieces.h"
#include "parser/parser.h"

namespace hlo {

size_t log_prefix(std::string_view line) {
  auto digit = [&](size_t i) { return i < line.size() && isdigit(static_cast<unsigned char>(line[i])); };
  size_t i = 0;
  if (line.empty() || std::string_view("IWEF").find(line[0]) == std::string_view::npos) {
    // `2019-03-12 10:01:02.123456: I file.cc:12] ` is TensorFlow's form.
    if (!(digit(0) && digit(1) && digit(2) && digit(3) && line.size() > 4 && line[4] == '-')) return 0;
  } else if (!digit(1) || !digit(2) || !digit(3) || !digit(4)) {
    return 0;
  }
  size_t bracket = line.substr(0, 200).find("] ");
  if (bracket == std::string_view::npos) return line.ends_with("]") && line.size() < 200 ? line.size() : 0;
  // A source place must stand before the bracket.
  size_t colon = line.substr(0, bracket).rfind(':');
  if (colon == std::string_view::npos || !digit(colon + 1)) return 0;
  for (i = colon + 1; i < bracket; ++i)
    if (!digit(i)) return 0;
  return bracket + 2;
}

namespace {

template <class F>
void each_line(std::string_view text, F&& f) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    f(text.substr(at, end - at), at);
    at = end + 1;
  }
}

}  // namespace

namespace {

// Braces that a line opens and does not close, strings passed over.
int open_braces(std::string_view line) {
  int open = 0;
  bool quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    if (quoted && line[at] == '\\')
      ++at;
    else if (line[at] == '"')
      quoted = !quoted;
    else if (!quoted && (line[at] == '{' || line[at] == '}'))
      open += line[at] == '{' ? 1 : -1;
  }
  return open;
}

bool begins_with_number(std::string_view line) { return !line.empty() && isdigit(static_cast<unsigned char>(line[0])); }

// Lines of a log, one after the other: which of them belong to a module.
class LogLines {
 public:
  explicit LogLines(bool fragments) : fragments_(fragments) {}
  // What of a line, without its prefix, is HLO; empty where nothing is.
  std::string_view take(std::string_view line, bool prefixed) {
    const size_t module = line.find("HloModule ");
    if (module != std::string_view::npos && line.substr(0, module).find('"') == std::string_view::npos) {
      inside_ = headed_ = any_ = true, depth_ = 0;
      return line.substr(module);
    }
    if (!headed_ && !any_ && line.starts_with("ENTRY ")) inside_ = headed_ = any_ = true, depth_ = 0;
    const bool hlo = seems_hlo(line);
    if (inside_ && depth_ <= 0) {
      const std::string_view text = trimmed(line);
      const bool table = text == "FileNames" || text == "FunctionNames" || text == "FileLocations" ||
                         text == "StackFrames" || begins_with_number(text);
      if (!text.empty() && !hlo && !table) inside_ = false;
    } else if (inside_ && fragments_ && prefixed && !hlo && line.find(" = ") == std::string_view::npos) {
      return line;  // told by who reads it
    }
    if (inside_) {
      depth_ = std::max(0, depth_ + open_braces(line));
      return line;
    }
    if (!fragments_ || !hlo || is_gap(line)) return {};
    any_ = true;
    return line;
  }
  bool any() const { return any_; }

 private:
  bool fragments_, inside_ = false, headed_ = false, any_ = false;
  int depth_ = 0;
};

}  // namespace

bool strip_log_prefixes(std::string_view text, std::string* out, bool fragments) {
  // The first lines tell.
  bool any = false;
  size_t looked = 0;
  for (size_t at = 0; at < text.size() && looked < 50 && !any; ++looked) {
    size_t end = std::min(text.find('\n', at), text.size());
    any = log_prefix(text.substr(at, end - at)) > 0;
    at = end + 1;
  }
  if (!any) return false;
  out->clear();
  LogLines lines(fragments);
  each_line(text, [&](std::string_view line, size_t) {
    const size_t prefix = log_prefix(line);
    *out += lines.take(line.substr(prefix), prefix > 0);
    *out += '\n';  // lines keep their numbers
  });
  return lines.any();
}

std::vector<std::string_view> split_modules(std::string_view text, bool at_headers) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  auto add = [&](size_t end) {
    std::string_view part = text.substr(start, end - start);
    // Is there anything but white space and line comments?
    bool content = false;
    each_line(part, [&](std::string_view line, size_t) {
      size_t first = line.find_first_not_of(" \t\r");
      content |= first != std::string_view::npos && line.substr(first, 2) != "//";
    });
    if (content) parts.push_back(part);
  };
  bool headed = false;
  each_line(text, [&](std::string_view line, size_t at) {
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) return;
    line.remove_prefix(first);
    if (line.starts_with("// -----") && line.find_first_not_of("- \t\r", 2) == std::string_view::npos) {
      add(at);
      start = std::min(text.find('\n', at), text.size() - 1) + 1;
      headed = false;
    } else if (at_headers && line.starts_with("HloModule ")) {
      // What stands in front of the first header is of its part.
      if (headed) add(at), start = at;
      headed = true;
    }
  });
  add(text.size());
  if (parts.empty()) parts.push_back(text);
  return parts;
}

std::string_view recognise_foreign(std::string_view text) {
  std::string_view head = text.substr(0, 4096);
  auto has = [&](std::string_view w) { return head.find(w) != std::string_view::npos; };
  if (head.starts_with("HloModule") || head.starts_with("ENTRY")) return {};
  if (has("stablehlo.") || has("vhlo."))
    return "StableHLO (MLIR); XLA's hlo-translate or jax's lowered.compiler_ir('hlo') gives HLO";
  if (has("mhlo.")) return "MHLO (MLIR)";
  if (head.starts_with("module @") || head.starts_with("module {") || has("func.func")) return "MLIR";
  if (head.starts_with("; ModuleID") || has("target datalayout")) return "LLVM IR";
  if (has(".visible .entry") || has(".target sm_")) return "PTX";
  if (head.starts_with("digraph")) return "a dot graph";
  if (has("hlo_module {") || head.starts_with("name: \"")) return "a protobuf in text form (.pbtxt)";
  if (head.starts_with("BufferAssignment:")) return "a buffer assignment";
  return {};
}

bool is_text_of_2019(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("HloModule") && line.find("entry_computation_layout=") != std::string_view::npos) return false;
    const size_t equals = line.find(" = "), first = line.find_first_not_of(" \t");
    if (equals == std::string_view::npos || line.substr(first).starts_with("//")) continue;
    // `opcode(`: the first parenthesis behind a word; that of a tuple's shape stands behind a blank.
    size_t open = line.find('(', equals + 3);
    while (open != std::string_view::npos && (line[open - 1] == ' ' || line[open - 1] == '('))
      open = line.find('(', open + 1);
    if (open == std::string_view::npos) continue;
    const size_t begin = line.rfind(' ', open) + 1;
    const std::string_view opcode = line.substr(begin, open - begin);
    std::string_view rest = line.substr(open + 1);
    if (opcode == "constant" || opcode == "parameter" || rest.starts_with(')')) continue;
    if (rest.starts_with('(')) return true;  // a tuple's type
    const size_t word = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789");
    return word != std::string_view::npos && word > 0 && rest[word] == '[';
  }
  return false;
}

}  // namespace hlo
