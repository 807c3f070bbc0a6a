#include "parser/source_text.h"

#include <algorithm>
#include <cctype>

#include "parser/parser.h"

namespace hlo {
namespace {

// Length of a log prefix at the start of the line, or 0: severity and date, time, thread, file:line, `] `.
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

template <class F>
void each_line(std::string_view text, F&& f) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    f(text.substr(at, end - at), at);
    at = end + 1;
  }
}

}  // namespace

bool strip_log_prefixes(std::string_view text, std::string* out) {
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
  bool started = false;
  each_line(text, [&](std::string_view line, size_t) {
    size_t prefix = log_prefix(line);
    std::string_view rest = line.substr(prefix);
    if (!started) {
      size_t module = rest.find("HloModule ");
      if (module == std::string_view::npos && !rest.starts_with("ENTRY ")) {
        *out += '\n';  // lines keep their numbers
        return;
      }
      started = true;
      if (module != std::string_view::npos) rest = rest.substr(module);
    }
    *out += rest;
    *out += '\n';
  });
  return started;
}

std::vector<std::string_view> split_modules(std::string_view text) {
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
  for (size_t at = text.find("// -----"); at != std::string_view::npos; at = text.find("// -----", at + 1)) {
    size_t line_start = text.rfind('\n', at);
    line_start = line_start == std::string_view::npos ? 0 : line_start + 1;
    if (text.substr(line_start, at - line_start).find_first_not_of(" \t") != std::string_view::npos) continue;
    size_t line_end = std::min(text.find('\n', at), text.size());
    std::string_view rest = text.substr(at + 8, line_end - at - 8);
    if (rest.find_first_not_of("- \t\r") != std::string_view::npos) continue;
    add(line_start);
    start = std::min(line_end + 1, text.size());
  }
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
