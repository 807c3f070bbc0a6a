// Bytes, words and numbers.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "ir/print/print.h"
#include "parser/byte_table.h"
#include "parser/parser_impl.h"

namespace hlo {
namespace {

// Where the bytes from `at` on stop being ones that a name may go on with.
size_t name_end(const char* data, size_t at, size_t end) {
#ifdef __SSE2__
  for (; at + 16 <= end; at += 16) {
    auto all = [](char c) { return _mm_set1_epi8(c); };
    // Bytes in [low, low + count) as unsigned numbers.
    auto within = [&](__m128i v, char low, char count) {
      __m128i off = _mm_sub_epi8(v, all(low));
      return _mm_cmpeq_epi8(_mm_min_epu8(off, all(static_cast<char>(count - 1))), off);
    };
    __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at));
    __m128i letter = within(_mm_or_si128(c, all(0x20)), 'a', 26);
    __m128i digit = _mm_andnot_si128(_mm_cmpeq_epi8(c, all('/')), within(c, '-', 13));  // - . / 0 … 9
    __m128i good = _mm_or_si128(_mm_or_si128(letter, digit), _mm_cmpeq_epi8(c, all('_')));
    auto mask = static_cast<unsigned>(_mm_movemask_epi8(good));
    if (mask != 0xFFFF) return at + static_cast<size_t>(std::countr_one(mask));
  }
#endif
  while (at < end && is(data[at], kNameRest)) ++at;
  return at;
}

}  // namespace

void Parser::error(size_t at, std::string message, std::string hint) {
  SyntaxError e;
  // What fails in the very last word has most likely lost the rest of its file.
  size_t rest = at;
  while (rest < text_.size() && !is(text_[rest], kSpace)) ++rest;
  while (rest < text_.size() && is(text_[rest], kSpace)) ++rest;
  if (rest == text_.size() && !bare_ && !lone_ && !text_.empty()) hint = "the text ends here: is the file truncated?";
  e.diagnostic = {at, std::move(message), std::move(hint), {}};
  throw e;
}

void Parser::skip_slow() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (is(c, kSpace)) {
      ++at_;
    } else if (c == '/' && peek(1) == '/') {
      ++comments_;
      while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
    } else if (c == '/' && peek(1) == '*') {
      ++comments_;
      size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) error(at_, "comment does not end");
      at_ = end + 2;
    } else {
      return;
    }
  }
}

void Parser::expect(char c, const char* where) {
  if (!eat(c)) {
    if (done()) error_here("expected '{}' {}, but the text ends here", c, where);
    error_here("expected '{}' {}", c, where);
  }
}

bool Parser::eat(std::string_view w) {
  skip();
  if (text_.substr(at_, w.size()) != w) return false;
  at_ += w.size();
  return true;
}

std::string_view Parser::word() {
  if (!is(peek(), kNameStart)) return {};
  size_t start = at_;
  const char* data = text_.data();
  size_t end = text_.size();
  at_ = name_end(data, at_ + 1, end);
  // `a->b`: the dash belongs to the arrow.
  while (at_ < end && data[at_] == '>' && data[at_ - 1] == '-') --at_;
  return text_.substr(start, at_ - start);
}

std::string_view Parser::peek_word() {
  skip();
  size_t start = at_;
  std::string_view w = word();
  at_ = start;
  return w;
}

bool Parser::eat_word(std::string_view w) {
  skip();
  size_t start = at_;
  if (word() == w) return true;
  at_ = start;
  return false;
}

std::string_view Parser::name_text(const char* what, StrId (*id_of)(Universe&, std::string_view), StrId* id) {
  skip();
  size_t start = at_;
  bool percent = peek() == '%';
  if (percent) ++at_;
  std::string_view text = word();
  if (text.empty()) {
    at_ = start;
    if (done()) error_here("expected {}, but the text ends here", what);
    error_here("expected {}", what);
  }
  *id = id_of(u_, text);
  if (!percent && id->valid() && u_.reserved(*id))
    error(start, fmt::format("'{}' is a reserved word and cannot be {}", text, what), fmt::format("write %{}", text));
  if (peek() == ':') ++at_;
  return text;
}

StrId Parser::name(const char* what) {
  StrId id;
  name_text(
      what, [](Universe& u, std::string_view text) { return u.str(text); }, &id);
  return id;
}

// What a signature calls a parameter is not kept.
void Parser::signature_name() {
  StrId id;
  name_text(
      "the name of a parameter", [](Universe& u, std::string_view text) { return u.find_str(text); }, &id);
}

int64_t Parser::integer(const char* what) {
  skip();
  size_t start = at_;
  if (peek() == '-') ++at_;
  if (!is(peek(), kDigit)) {
    at_ = start;
    error_here("expected {}", what);
  }
  bool negative = text_[start] == '-';
  if (negative) {
    int64_t value = 0;
    auto [end, code] = std::from_chars(text_.data() + start, text_.data() + text_.size(), value);
    at_ = static_cast<size_t>(end - text_.data());
    if (code != std::errc()) error_at(start, "integer is out of the range of 64 bits");
    return value;
  }
  uint64_t value = 0;
  // Up to 18 digits fit without a look.
  size_t few = std::min(start + 18, text_.size());
  while (at_ < few && is(text_[at_], kDigit)) value = value * 10 + static_cast<uint64_t>(text_[at_++] - '0');
  if (at_ == start + 18 && is(peek(), kDigit)) {
    auto [end, code] = std::from_chars(text_.data() + start, text_.data() + text_.size(), value);
    at_ = static_cast<size_t>(end - text_.data());
    if (code != std::errc()) error_at(start, "integer is out of the range of 64 bits");
  }
  return static_cast<int64_t>(value);
}

uint64_t Parser::natural(const char* what) {
  skip();
  size_t start = at_;
  int64_t value = integer(what);
  if (value < 0) error_at(start, "expected {}, which is not negative", what);
  return static_cast<uint64_t>(value);
}

double Parser::decimal(const char* what) {
  skip();
  size_t start = at_;
  size_t end = at_;
  if (end < text_.size() && text_[end] == '-') ++end;
  bool inf = text_.substr(end, 3) == "inf", nan = text_.substr(end, 3) == "nan";
  if (inf || nan) {
    at_ = end + 3;
    double v = inf ? INFINITY : NAN;
    return text_[start] == '-' ? -v : v;
  }
  if (end < text_.size() && text_[end] == '.' && end == start) error_here("expected {}", what);  // `.5` is no number
  double value = 0;
  auto [stop, code] = std::from_chars(text_.data() + start, text_.data() + text_.size(), value);
  if (stop == text_.data() + start) error_here("expected {}", what);
  at_ = static_cast<size_t>(stop - text_.data());
  if (code == std::errc::result_out_of_range) {
    value = strtod(std::string(text_.substr(start, at_ - start)).c_str(), nullptr);
    if (std::isinf(value)) error_at(start, "{} is out of the range of a double", what);
  }
  return value;
}

namespace {

// -1 where it is none.
int hex_digit(char h) {
  return h >= '0' && h <= '9'   ? h - '0'
         : h >= 'a' && h <= 'f' ? h - 'a' + 10
         : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                : -1;
}

void append_utf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | code >> 6)), out->push_back(static_cast<char>(0x80 | (code & 63)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | code >> 12)), out->push_back(static_cast<char>(0x80 | (code >> 6 & 63)));
    out->push_back(static_cast<char>(0x80 | (code & 63)));
  } else {
    out->push_back(static_cast<char>(0xF0 | code >> 18)), out->push_back(static_cast<char>(0x80 | (code >> 12 & 63)));
    out->push_back(static_cast<char>(0x80 | (code >> 6 & 63))), out->push_back(static_cast<char>(0x80 | (code & 63)));
  }
}

// Behind `\x`, where text[i] stands; i is left at the last digit.
bool hexadecimal_byte(std::string_view text, size_t& i, std::string* out) {
  int value = 0, digits = 0;
  while (i + 1 < text.size() && hex_digit(text[i + 1]) >= 0)
    value = (value * 16 + hex_digit(text[++i])) & 0xfff, ++digits;
  if (!digits || value > 255) return false;
  out->push_back(static_cast<char>(value));
  return true;
}

// Behind `\u` or `\U`, of `want` digits.
bool code_point(std::string_view text, size_t& i, size_t want, std::string* out) {
  uint32_t value = 0;
  for (size_t k = 0; k < want; ++k) {
    if (i + 1 >= text.size() || hex_digit(text[i + 1]) < 0) return false;
    value = value * 16 + static_cast<uint32_t>(hex_digit(text[++i]));
  }
  if (value > 0x10FFFF) return false;
  append_utf8(value, out);
  return true;
}

}  // namespace

bool c_unescape(std::string_view text, std::string* out) {
  out->clear();
  out->reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      size_t run = std::min(text.find('\\', i), text.size());
      out->append(text, i, run - i);
      i = run - 1;
      continue;
    }
    if (++i >= text.size()) return false;
    char c = text[i];
    switch (c) {
      case 'a':
        out->push_back('\a');
        break;
      case 'b':
        out->push_back('\b');
        break;
      case 'f':
        out->push_back('\f');
        break;
      case 'n':
        out->push_back('\n');
        break;
      case 'r':
        out->push_back('\r');
        break;
      case 't':
        out->push_back('\t');
        break;
      case 'v':
        out->push_back('\v');
        break;
      case '\\':
      case '?':
      case '\'':
      case '"':
        out->push_back(c);
        break;
      case 'x':
      case 'X':
        if (!hexadecimal_byte(text, i, out)) return false;
        break;
      case 'u':
      case 'U':
        if (!code_point(text, i, c == 'u' ? 4 : 8, out)) return false;
        break;
      default:
        if (c < '0' || c > '7') return false;
        int value = c - '0';
        for (int k = 0; k < 2 && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '7'; ++k)
          value = value * 8 + text[++i] - '0';
        if (value > 255) return false;
        out->push_back(static_cast<char>(value));
    }
  }
  return true;
}

std::string Parser::quoted(const char* what) {
  skip();
  size_t start = at_;
  char quote = peek();
  if (quote != '"' && quote != '\'') error_here("expected {} in quotes", what);
  size_t end = closing_quote(text_, start);
  if (end == std::string_view::npos) error_at(start, "string does not end");
  std::string_view body = text_.substr(start + 1, end - start - 1);
  at_ = end + 1;
  if (body.find('\\') == std::string_view::npos) return std::string(body);
  std::string out;
  if (!c_unescape(body, &out)) error_at(start, "malformed escape in a string");
  return out;
}

bool Parser::boolean(const char* what) {
  if (eat_word("true")) return true;
  if (eat_word("false")) return false;
  skip();
  if (peek() == '1') return ++at_, true;
  if (peek() == '0') return ++at_, false;
  error_here("expected true or false as {}", what);
}

// Raw text in braces: only braces and double quotes count (xla/hlo/parser/hlo_lexer.cc, LexJsonDict).
std::string_view Parser::dictionary() {
  skip();
  size_t start = at_, end = dict_end(text_, start);
  if (end == std::string_view::npos) {
    at_ = text_.size();
    error_at(start, "dictionary is not closed");
  }
  at_ = end;
  return text_.substr(start, end - start);
}

std::string_view Parser::balanced() {
  skip();
  size_t start = at_;
  int depth = 0;
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == '"' || c == '\'') {
      size_t end = closing_quote(text_, at_);
      if (end == std::string_view::npos) {
        if (c == '"') error_at(at_, "string does not end");
      } else {
        at_ = end;
      }
    } else if (c == '{' || c == '(' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ')' || c == ']') {
      if (--depth == 0) {
        ++at_;
        return text_.substr(start, at_ - start);
      }
    }
    ++at_;
  }
  error_at(start, "bracket is not closed");
}

Dims Parser::int_list(const char* what) {
  expect('{', what);
  Dims out;
  while (!eat('}')) {
    if (!out.empty())
      expect(',', what);
    else
      out.reserve(3);  // what the smallest block has room for
    out.push_back(integer(what));
  }
  return out;
}

Dims Parser::dxd(const char* what) {
  Dims out{integer(what)};
  while (peek() == 'x') {
    ++at_;
    out.push_back(integer(what));
  }
  return out;
}

}  // namespace hlo
