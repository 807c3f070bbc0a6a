#include "parser/excerpt/pieces.h"

#include <algorithm>

#include "parser/byte_table.h"

namespace hlo {
namespace {

constexpr auto kNone = std::string_view::npos;

// Where the brackets of a text stand: pushed and taken back as it is read, strings passed over.
class Brackets {
 public:
  // False where the byte is a closing bracket without its partner; nothing changes then.
  bool take(char c) {
    if (quoted_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == '"')
        quoted_ = false;
      return true;
    }
    if (c == '"') return quoted_ = true;
    if (c == '(' || c == '[' || c == '{') return open_ += c, true;
    if (c != ')' && c != ']' && c != '}') return true;
    const char partner = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open_.empty() || open_.back() != partner) return false;
    open_.pop_back();
    return true;
  }
  bool flat() const { return open_.empty() && !quoted_; }
  bool quoted() const { return quoted_; }
  bool empty() const { return open_.empty(); }

 private:
  std::string open_;
  bool quoted_ = false, escaped_ = false;
};

size_t word_end(std::string_view s, size_t at) {
  while (at < s.size() && is(s[at], kNameRest)) ++at;
  return at;
}

// Behind blanks (not line ends).
size_t past_blanks(std::string_view s, size_t at) {
  while (at < s.size() && (s[at] == ' ' || s[at] == '\t' || s[at] == '\r')) ++at;
  return at;
}

bool starts_word(std::string_view s, std::string_view word) {
  return s.starts_with(word) && s.size() > word.size() && (s[word.size()] == ' ' || s[word.size()] == '\t');
}

// `[ROOT ]%name = `: where what it is begins, or npos.
size_t instruction_begin(std::string_view s, std::string_view* name, bool* root) {
  size_t at = 0;
  *root = starts_word(s, "ROOT");
  if (*root) at = past_blanks(s, 4);
  if (at < s.size() && s[at] == '%') ++at;
  if (at >= s.size() || !is(s[at], kNameStart | kDigit)) return kNone;
  const size_t end = word_end(s, at);
  *name = s.substr(at, end - at);
  at = past_blanks(s, end);
  if (at >= s.size() || s[at] != '=' || (at + 1 < s.size() && !is(s[at + 1], kSpace))) return kNone;
  return at + 1;
}

// `[ENTRY] %name {`, `[ENTRY] %name (…) -> shape {`, or its begin where the line is cut off: the piece's text and
// parts.
bool read_open(std::string_view line, Piece* p) {
  size_t at = 0;
  p->entry = starts_word(line, "ENTRY");
  if (p->entry) at = past_blanks(line, 5);
  if (at < line.size() && line[at] == '%') ++at;
  if (at >= line.size() || !is(line[at], kNameStart | kDigit)) return false;
  const size_t end = word_end(line, at);
  p->name = line.substr(at, end - at);
  at = past_blanks(line, end);
  if (at < line.size() && line[at] == '(') {
    Brackets b;
    const size_t from = at + 1;
    while (at < line.size() && (b.take(line[at]), ++at, !b.empty())) {
    }
    const bool whole = b.empty();
    p->parameters = written_operands(line.substr(from, at - from - (whole ? 1 : 0)));
    at = past_blanks(line, at);
    const bool arrow = line.substr(std::min(at, line.size())).starts_with("->");
    if (!arrow && !p->entry) return false;
    if (!whole && !p->parameters.empty()) p->parameters.pop_back();  // it may be cut itself
    if (arrow) {
      size_t result = at = past_blanks(line, at + 2);
      Brackets r;
      for (; at < line.size() && !(r.flat() && (line[at] == ' ' || line[at] == '\r')); ++at)
        if (!r.take(line[at])) break;
      p->result = line.substr(result, at - result);
      if (!r.flat()) p->result = {};
      at = past_blanks(line, at);
    }
  }
  p->cut = at >= line.size() || line[at] != '{';
  if (p->cut && !p->entry && p->result.empty()) return false;
  p->text = line.substr(0, p->cut ? line.size() : at + 1);
  return true;
}

// The end of an instruction that begins at `begin`: at the end of a line outside of brackets, at a brace that closes
// more than it opened, or where the next one begins.
size_t instruction_end(std::string_view text, size_t begin, bool* cut) {
  Brackets b;
  size_t at = begin;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') {
      if (b.quoted() || b.flat()) break;
      std::string_view next = text.substr(past_blanks(text, at + 1));
      next = next.substr(0, next.find('\n'));
      std::string_view name;
      bool root = false;
      Piece open;
      // A row of a literal is none of these.
      if (next.starts_with("HloModule ") || is_gap(next) || instruction_begin(next, &name, &root) != kNone ||
          read_open(next, &open))
        break;
      continue;
    }
    if (!b.take(c)) break;
    if ((c == ')' || c == '}') && b.flat()) {
      const size_t next = past_blanks(text, at + 1);
      std::string_view name;
      bool root = false;
      if (next > at + 1 && next < text.size() && text[next] != '\n' &&
          instruction_begin(text.substr(next, 4096), &name, &root) != kNone)
        return *cut = false, at + 1;
    }
  }
  // Behind a comma more was to come.
  const std::string_view whole = trimmed(text.substr(begin, at - begin));
  *cut = !b.flat() || whole.ends_with(',');
  // A closing bracket without a partner belongs to it, but for the computation's.
  if (at < text.size() && text[at] != '\n' && (text[at] != '}' || !b.flat())) {
    *cut = true;
    const size_t line = std::min(text.find('\n', at), text.size());
    return text[at] == '}' ? at : line;
  }
  return at;
}

// Shape, opcode, operands and attributes of an instruction, as far as they can be told.
void read_instruction(Piece* p, std::string_view rest) {
  size_t at = past_blanks(rest, 0);
  const size_t shape = at;
  Brackets b;
  for (; at < rest.size() && !(b.flat() && is(rest[at], kSpace)); ++at) {
    if (b.flat() && rest[at] == '(' && at > shape) break;  // `add(`: no shape is written
    if (!b.take(rest[at])) return;
  }
  if (at < rest.size() && rest[at] != '(') {
    p->shape = rest.substr(shape, at - shape);
    at = past_blanks(rest, at);
  } else {
    at = shape;
  }
  const size_t word = at;
  at = word_end(rest, at);
  if (at >= rest.size() || rest[at] != '(') {
    if (!b.flat()) p->shape = {};
    return;
  }
  p->opcode = rest.substr(word, at - word);
  const size_t open = at + 1;
  Brackets inside;
  while (at < rest.size() && inside.take(rest[at]) && (++at, !inside.empty())) {
  }
  if (!inside.empty() || !inside.flat()) {
    p->plain_operands = false;
    return;
  }
  p->inside = rest.substr(open, at - open - 1);
  if (p->opcode != "constant" && p->opcode != "parameter")
    p->operands = written_operands(p->inside, &p->plain_operands);
  p->attributes = trimmed(rest.substr(at));
}

}  // namespace

std::string_view trimmed(std::string_view s) {
  const size_t first = s.find_first_not_of(" \t\r\n");
  if (first == kNone) return {};
  return s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> parts_between_commas(std::string_view list) {
  std::vector<std::string_view> out;
  Brackets b;
  size_t begin = 0;
  for (size_t at = 0; at < list.size(); ++at) {
    if (list[at] == ',' && b.flat()) {
      out.push_back(trimmed(list.substr(begin, at - begin)));
      begin = at + 1;
    } else {
      b.take(list[at]);
    }
  }
  if (std::string_view last = trimmed(list.substr(begin)); !last.empty() || !out.empty()) out.push_back(last);
  return out;
}

std::vector<WrittenOperand> written_operands(std::string_view list, bool* plain) {
  std::vector<WrittenOperand> out;
  for (std::string_view part : parts_between_commas(list)) {
    while (part.starts_with("/*")) {
      const size_t end = part.find("*/");
      if (end == kNone) break;
      part = trimmed(part.substr(end + 2));
    }
    WrittenOperand o;
    // `name: shape` of a signature, else `shape name`, each alone.
    if (size_t colon = part.find(": "); colon != kNone && word_end(part, part.starts_with('%')) == colon) {
      o.name = part.substr(0, colon), o.shape = trimmed(part.substr(colon + 2));
    } else {
      const size_t blank = part.rfind(' ');
      std::string_view last = blank == kNone ? part : part.substr(blank + 1);
      if (blank != kNone) o.shape = trimmed(part.substr(0, blank));
      o.name = last;
    }
    if (o.name.starts_with('%')) o.name.remove_prefix(1);
    if (o.name.empty() || !is(o.name[0], kNameStart | kDigit) || word_end(o.name, 0) != o.name.size()) {
      o.name = {};
      if (plain) *plain = false;
    }
    out.push_back(o);
  }
  return out;
}

std::string_view attribute_in(std::string_view attributes, std::string_view key) {
  for (std::string_view part : parts_between_commas(attributes))
    if (part.size() > key.size() && part.starts_with(key) && part[key.size()] == '=')
      return trimmed(part.substr(key.size() + 1));
  return {};
}

bool is_gap(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.size() > 200 || line.find(" = ") != kNone) return false;
  const size_t first = line.find_first_not_of("<[({*-# ");
  if (first == kNone) return false;
  std::string_view word = line.substr(first);
  for (std::string_view sign : {"...", "…", "elided", "snip", "truncated", "omitted", "skipped"})
    if (word.starts_with(sign) && (first > 0 || sign == "..." || sign == "…")) return true;
  return false;
}

bool seems_hlo(std::string_view line) {
  line = trimmed(line);
  std::string_view name;
  bool root = false;
  Piece open;
  return line.starts_with("HloModule ") || line.starts_with("}") || is_gap(line) ||
         instruction_begin(line, &name, &root) != kNone || read_open(line, &open);
}

std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> out;
  size_t line = 1, counted = 0;
  for (size_t at = 0; at < text.size();) {
    at = past_blanks(text, at);
    if (at < text.size() && text[at] == '\n') {
      ++at;
      continue;
    }
    if (at >= text.size()) break;
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view rest = text.substr(at, end - at);
    if (rest.starts_with("//")) {
      at = end;
      continue;
    }
    Piece p;
    line += static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                           text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted = at;
    p.line = line, p.text = rest;
    if (rest.starts_with("HloModule") && (rest.size() == 9 || is(rest[9], kSpace))) {
      p.kind = Piece::kHeader;
    } else if (rest == "FileNames" || rest == "FunctionNames" || rest == "FileLocations" || rest == "StackFrames") {
      p.kind = Piece::kTable;
      size_t behind = end;  // with its rows, which begin with a number
      while (behind < text.size()) {
        const size_t row = past_blanks(text, behind + 1);
        if (row >= text.size() || !is(text[row], kDigit)) break;
        behind = std::min(text.find('\n', row), text.size());
      }
      p.text = text.substr(at, behind - at);
    } else if (rest[0] == '}') {
      p.kind = Piece::kClose;
      p.text = rest.substr(0, 1);
      if (std::string_view more = trimmed(rest.substr(1)); more.starts_with(", execution_thread=")) p.text = rest;
    } else if (is_gap(rest)) {
      p.kind = Piece::kGap;
    } else if (size_t body = instruction_begin(rest, &p.name, &p.root); body != kNone) {
      p.kind = Piece::kInstruction;
      p.text = text.substr(at, instruction_end(text, at, &p.cut) - at);
      read_instruction(&p, p.text.substr(std::min(body, p.text.size())));
    } else if (read_open(rest, &p)) {
      p.kind = Piece::kOpen;
    }
    at += p.text.size();
    out.push_back(std::move(p));
  }
  return out;
}

}  // namespace hlo
