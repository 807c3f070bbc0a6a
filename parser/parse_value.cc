// Bytes, shapes and literals.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "ir/base/stack_guard.h"
#include "ir/print.h"
#include "parser/parser_impl.h"

namespace hlo {
namespace {

enum : uint8_t { kSpace = 1, kNameStart = 2, kNameRest = 4, kDigit = 8 };
struct ByteTable {
  uint8_t flags[256] = {};
  constexpr ByteTable() {
    for (int c = 0; c < 256; ++c) {
      bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      bool digit = c >= '0' && c <= '9';
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') flags[c] |= kSpace;
      if (letter) flags[c] |= kNameStart | kNameRest;
      if (digit) flags[c] |= kNameRest | kDigit;
      if (c == '.' || c == '-') flags[c] |= kNameRest;
    }
  }
};
constexpr ByteTable kBytes;
bool is(char c, uint8_t flag) { return kBytes.flags[static_cast<unsigned char>(c)] & flag; }

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

// Arrays written `type[1,2]{1,0}` with nothing else between, which is how XLA writes most: false for all others, right
// or wrong.
bool plain_array(std::string_view text, Shape* s) {
  constexpr size_t kMost = 16;
  int64_t dims[kMost], order[kMost];
  size_t at = text.find('[');
  if (at > 16 || !type_from_name(text.substr(0, at), &s->type) || !s->is_array()) return false;
  auto list = [&](char close, int64_t* out, size_t* count) {
    for (*count = 0; ++at < text.size() && *count < kMost;) {
      size_t start = at;
      int64_t value = 0;
      while (at < text.size() && at - start < 18 && is(text[at], kDigit)) value = value * 10 + (text[at++] - '0');
      if (at == start || (text[start] == '0' && at - start > 1) || at == text.size()) return false;
      out[(*count)++] = value;
      if (text[at] == close) return ++at, true;
      if (text[at] != ',') return false;
    }
    return false;
  };
  size_t rank = 0, ordered = 0;
  if (!list(']', dims, &rank) || at == text.size() || text[at] != '{' || !list('}', order, &ordered) ||
      at != text.size() || ordered != rank)
    return false;
  s->dims.assign(dims, dims + rank);
  s->layout.minor_to_major.assign(order, order + rank);
  s->has_layout = true;
  return true;
}

// Behind the first of the two bytes, or the end.
size_t behind(const char* data, size_t at, size_t end, char a, char b) {
#ifdef __SSE2__
  for (; at + 16 <= end; at += 16) {
    __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at));
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8(a)), _mm_cmpeq_epi8(c, _mm_set1_epi8(b)));
    if (auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit)))
      return at + static_cast<size_t>(std::countr_zero(mask)) + 1;
  }
#endif
  while (at < end && data[at] != a && data[at] != b) ++at;
  return at < end ? at + 1 : end;
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
    auto hex = [](char h) {
      return h >= '0' && h <= '9'   ? h - '0'
             : h >= 'a' && h <= 'f' ? h - 'a' + 10
             : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                    : -1;
    };
    auto utf8 = [&](uint32_t code) {
      if (code < 0x80) {
        out->push_back(static_cast<char>(code));
      } else if (code < 0x800) {
        out->push_back(static_cast<char>(0xC0 | code >> 6)), out->push_back(static_cast<char>(0x80 | (code & 63)));
      } else if (code < 0x10000) {
        out->push_back(static_cast<char>(0xE0 | code >> 12)),
            out->push_back(static_cast<char>(0x80 | (code >> 6 & 63)));
        out->push_back(static_cast<char>(0x80 | (code & 63)));
      } else {
        out->push_back(static_cast<char>(0xF0 | code >> 18)),
            out->push_back(static_cast<char>(0x80 | (code >> 12 & 63)));
        out->push_back(static_cast<char>(0x80 | (code >> 6 & 63))),
            out->push_back(static_cast<char>(0x80 | (code & 63)));
      }
    };
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
      case 'X': {
        int value = 0, digits = 0;
        while (i + 1 < text.size() && hex(text[i + 1]) >= 0) value = (value * 16 + hex(text[++i])) & 0xfff, ++digits;
        if (!digits || value > 255) return false;
        out->push_back(static_cast<char>(value));
        break;
      }
      case 'u':
      case 'U': {
        size_t want = c == 'u' ? 4 : 8;
        uint32_t value = 0;
        for (size_t k = 0; k < want; ++k) {
          if (i + 1 >= text.size() || hex(text[i + 1]) < 0) return false;
          value = value * 16 + static_cast<uint32_t>(hex(text[++i]));
        }
        if (value > 0x10FFFF) return false;
        utf8(value);
        break;
      }
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

// --- shapes ---

bool Parser::at_shape() {
  skip();
  char c = peek();
  if (c == '(') return true;
  if (!(c >= 'a' && c <= 'z')) return false;
  size_t end = at_;
  while (end < text_.size() && ((text_[end] >= 'a' && text_[end] <= 'z') || is(text_[end], kDigit))) ++end;
  if (end >= text_.size()) return false;
  if (text_[end] == '[') return true;
  if (text_[end] == '(' && end == at_ + 1 && c == 'b') return true;
  ElementType type;
  // `f32 [2]`: white space between the type and its dimensions.
  if (is(text_[end], kSpace) && type_from_name(text_.substr(at_, end - at_), &type)) {
    while (end < text_.size() && is(text_[end], kSpace)) ++end;
    return end < text_.size() && text_[end] == '[';
  }
  return false;
}

ShapeId Parser::shape() {
  skip();
  size_t start = at_;
  if (!last_shape_text_.empty() && text_.compare(at_, last_shape_text_.size(), last_shape_text_) == 0 &&
      peek(last_shape_text_.size()) == ' ' && peek(last_shape_text_.size() + 1) != '{') {
    at_ += last_shape_text_.size();
    return last_shape_;
  }
  // The extent of the text without understanding it: to the bracket that closes, and a layout right behind.
  size_t end = start;
  const char* data = text_.data();
  size_t size = text_.size();
  if (end < size && data[end] == '(') {
    int depth = 0;
    for (; end < size; ++end) {
      char c = data[end];
      if (c == '(') {
        ++depth;
      } else if (c == ')') {
        if (--depth == 0) {
          ++end;
          break;
        }
      } else if (c == '"') {
        end = size;
      }
    }
  } else {
    end = behind(data, end, size, ']', '\n');
    if (end + 7 < size && data[end] == 's' && std::string_view(data + end, 7) == "sparse{") {
      end = behind(data, end, size, '}', '\n');
    } else if (end + 1 < size && data[end] == '{' &&
               (is(data[end + 1], kDigit) || data[end + 1] == ':' || data[end + 1] == '-')) {
      end = behind(data, end, size, '}', '\n');
    }
  }
  std::string_view text = text_.substr(start, end - start);
  // A layout may follow at a distance; such shapes are read slowly.
  size_t look = end;
  while (look < size && is(data[look], kSpace)) ++look;
  if (look > end && look < size && data[look] == '{') {
    while (++look < size && is(data[look], kSpace)) continue;
    if (look == size || is(data[look], kDigit) || data[look] == ':' || data[look] == '-') return shape_slow();
  }
  uint64_t hash = shape_memo_.hash(text);
  if (const ShapeId* known = shape_memo_.find(text_, text, hash)) {
    at_ = end;
    last_shape_text_ = text, last_shape_ = *known;
    // A blank behind says that no layout follows.
    if (text.empty() || text.back() != '}') last_shape_text_ = {};
    return last_shape_;
  }
  Shape plain;
  ShapeId id;
  if (plain_array(text, &plain))
    id = u_.shape_of_text(std::move(plain), text), at_ = end;
  else
    id = shape_slow();
  if (at_ == end && !text.empty() && text.size() < 4096) shape_memo_.keep(text_, text, hash, id);
  return id;
}

// A shape in front of a literal's elements.
ShapeId Parser::prefix_shape() {
  struct Scope {
    bool& flag;
    explicit Scope(bool& f) : flag(f) { flag = true; }
    ~Scope() { flag = false; }
  } scope(literal_prefix_);
  return shape_slow();
}

ShapeId Parser::shape_slow() {
  skip();
  size_t start = at_;
  check_stack("the shape is nested");
  if (++depth_ > 500) error_here("shape is nested too deeply (more than 500 levels)");
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth_};
  if (eat('(')) {
    std::vector<ShapeId> elements;
    while (!eat(')')) {
      if (!elements.empty()) expect(',', "between the shapes of a tuple");
      // In front of a literal a layout's absence has a meaning of its own, which the memo does not keep.
      elements.push_back(literal_prefix_ ? shape_slow() : shape());
    }
    return u_.tuple(std::move(elements));
  }
  std::string_view type_word = word();
  if (type_word == "b" && peek() == '(') {
    ++at_;
    Shape inner = u_[shape_slow()];
    if (!inner.is_array()) error_at(start, "a buffer holds one array");
    expect(')', "behind the shape of a buffer");
    inner.is_buffer = true;
    return u_.shape(std::move(inner));
  }
  Shape s;
  if (type_word.empty()) error_at(start, "expected a shape");
  if (!type_from_name(type_word, &s.type)) error_at(start, "unknown element type '{}'", type_word);
  expect('[', "behind the element type");
  s.dims.reserve(4);
  auto dynamic_here = [&](bool dynamic) {
    if (s.dynamic.empty() && !dynamic) return;
    s.dynamic.resize(s.dims.size(), false);
    s.dynamic.back() = dynamic;
  };
  while (!eat(']')) {
    if (!s.dims.empty()) expect(',', "between dimensions");
    skip();
    if (peek() == '?') {
      ++at_;
      s.dims.push_back(kUnbounded);
      dynamic_here(true);
      continue;
    }
    bool dynamic = peek() == '<' && eat("<=");
    size_t place = at_;
    int64_t size = integer("a dimension's size");
    if (size < 0) error_at(place, "a dimension's size is not negative");
    s.dims.push_back(size);
    dynamic_here(dynamic);
    if (s.dims.size() > 1024) error_at(place, "a shape of more than 1024 dimensions");
  }
  if (!s.is_array() && !s.dims.empty()) error_at(start, "{} has no dimensions", type_name(s.type));
  if (s.is_array() && text_.compare(at_, 7, "sparse{") == 0) {
    at_ += 7;
    size_t place = at_;
    s.layout.minor_to_major = default_minor_to_major(s.rank());
    s.layout.sparse = integer("the most elements of a sparse array");
    if (s.layout.sparse < 1) error_at(place, "a sparse array has room for at least one element");
    expect('}', "behind a sparse layout");
    return u_.shape(std::move(s));
  }
  // A `{` starts a layout only when a number or a colon follows, a blank before it or not; but the elements of a
  // literal of 2018 stand behind its shape and a blank.
  size_t before_blank = at_;
  if (!literal_prefix_) skip();
  if (peek() != '{') at_ = before_blank;
  if (peek() == '{') {
    size_t look = at_ + 1;
    while (look < text_.size() && is(text_[look], kSpace)) ++look;
    if (look < text_.size() && (is(text_[look], kDigit) || text_[look] == ':' || text_[look] == '-')) {
      if (!s.is_array()) error_here("{} has no layout", type_name(s.type));
      s.layout = layout(s.rank());
      s.has_layout = true;
    }
  }
  return u_.shape(std::move(s));
}

// Behind the colon, in fixed order: D dim levels (say nothing, dropped), T tiles, L tail padding, # index type, *
// pointer type, E element size, S memory space, SC splits, M dynamic shape prefix (xla/hlo/parser/hlo_parser.cc,
// ParseLayout).
void Parser::layout_parts(Layout& out) {
  static constexpr std::string_view kOrder[] = {"D", "T", "L", "#", "*", "E", "S", "SC", "P", "M"};
  size_t next = 0;
  for (skip(); peek() != '}'; skip()) {
    size_t part = at_;
    std::string key;
    if (peek() == '#' || peek() == '*')
      key = text_[at_++];
    else
      key = std::string(word());
    size_t rank_of = std::find(std::begin(kOrder), std::end(kOrder), key) - std::begin(kOrder);
    if (key.empty() || rank_of == std::size(kOrder)) error_at(part, "unknown part of a layout '{}'", key);
    if (rank_of < next) error_at(part, "layout part {} stands in the wrong place", key);
    if (key == "P") error_at(part, "physical shapes in a layout are not accepted");
    next = rank_of + 1;
    auto list = [&](auto&& one) {
      expect('(', "behind the key of a layout part");
      std::string body = "(";
      if (!eat(')')) {
        for (;;) {
          body += one();
          if (eat(')')) break;
          expect(',', "in a layout");
          body += ",";
        }
      }
      return body + ")";
    };
    auto number = [&](int64_t least, int64_t normal) {
      expect('(', "behind the key of a layout part");
      skip();
      size_t place = at_;
      int64_t v = integer("a number");
      if (v < least) error_at(place, "{} is too small here", v);
      expect(')', "behind a number");
      if (v != normal) out.rest += fmt::format("{}({})", key, v);
    };
    if (key == "D") {
      list([&] {
        skip();
        size_t place = at_;
        std::string_view w = word();
        if (w != "D" && w != "C" && w != "S") error_at(place, "a dim level type is D, C or S");
        if (peek() == '+') ++at_;
        if (peek() == '~') ++at_;
        return std::string();
      });
    } else if (key == "T") {
      out.rest += key;
      do {
        out.rest += list([&] {
          if (eat('*')) return std::string("*");
          size_t place = at_;
          int64_t v = integer("a dimension of a tile");
          if (v < 0) error_at(place, "a tile is not negative");
          return std::to_string(v);
        });
        skip();
      } while (peek() == '(');
    } else if (key == "SC") {
      out.rest += key;
      do {
        expect('(', "before a split");
        out.rest += fmt::format("({}:", integer("a dimension"));
        expect(':', "behind the dimension of a split");
        bool first = true;
        while (!eat(')')) {
          if (!first) expect(',', "between the places of a split"), out.rest += ",";
          first = false;
          out.rest += std::to_string(integer("the place of a split"));
        }
        out.rest += ")";
        skip();
      } while (peek() == '(');
    } else if (key == "#" || key == "*") {
      expect('(', "behind the key of a layout part");
      skip();
      size_t place = at_;
      ElementType type;
      std::string_view name = word();
      if (!type_from_name(name, &type)) error_at(place, "unknown element type '{}'", name);
      expect(')', "behind an element type");
      out.rest += fmt::format(
          "{}({})", key,
          type_kind(type) == TypeKind::kSigned || type_kind(type) == TypeKind::kUnsigned ? name : "invalid");
    } else if (key == "L") {
      number(1, 1);
    } else if (key == "M") {
      int64_t v;
      expect('(', "behind the key of a layout part");
      v = integer("a number");
      expect(')', "behind a number");
      if (v > 0) out.rest += fmt::format("M({})", v);
    } else {
      number(INT32_MIN, 0);
    }
  }
}

Layout Parser::layout(int rank) {
  size_t start = at_;
  expect('{', "before a layout");
  Layout out;
  out.minor_to_major.reserve(static_cast<size_t>(std::min(rank, 8)));
  skip();
  while (peek() != ':' && peek() != '}') {
    if (!out.minor_to_major.empty()) expect(',', "between the dimensions of a layout");
    out.minor_to_major.push_back(integer("a dimension number"));
    skip();
  }
  if (static_cast<int>(out.minor_to_major.size()) != rank)
    error_at(start, "a layout of {} dimensions for an array of {}", out.minor_to_major.size(), rank);
  if (eat(':')) layout_parts(out);
  expect('}', "behind a layout");
  return out;
}

// --- literals ---

LitId Parser::literal(ShapeId shape_id) {
  const Shape& s = u_[shape_id];
  skip();
  size_t start = at_;
  Literal out;
  out.shape = shape_id;
  if (s.is_tuple()) {
    if (peek() == '{' && text_.substr(at_, 5) == "{...}") {
      at_ += 5;
      out.elided = true;
      return u_.literal(std::move(out));
    }
    // The 2019 grammar writes the tuple's shape once more: `(f32[], s32[]) (f32[] 1, s32[] 2)`.
    if (size_t save = at_; peek() == '(') {
      bool again = false;
      try {
        ShapeId stated = shape_slow();
        skip();
        again = peek() == '(' && u_.compatible(stated, shape_id);
      } catch (const SyntaxError&) {
      }
      if (!again) at_ = save;
    }
    expect('(', "before the elements of a tuple literal");
    for (size_t i = 0; i < s.elements.size(); ++i) {
      if (i) expect(',', "between the elements of a tuple literal");
      if (at_shape() && peek() != '(') {
        prefix_shape();
      }
      out.elements.push_back(literal(s.elements[i]));
      if (u_[out.elements.back()].elided) out.elided = true;
    }
    expect(')', "behind the elements of a tuple literal");
    return u_.literal(std::move(out));
  }
  if (!s.is_array()) error_at(start, "no literal of type {}", type_name(s.type));
  // Texts of 2018 and 2019 repeat the shape inside the parentheses.
  if (s.rank() > 0 && at_shape()) {
    ShapeId again = prefix_shape();
    if (!u_.compatible(again, shape_id))
      error_at(start, "the literal is a {}, the constant a {}", u_.shape_text_plain(again),
               u_.shape_text_plain(shape_id));
    skip();
  }
  int width = storage_bytes(s.type);
  int64_t count = s.elements_count();
  if (s.rank() > 0) {
    size_t save = at_;
    if (eat('{') && eat("...") && eat('}')) {
      out.elided = true;
      return u_.literal(std::move(out));
    }
    at_ = save;
  }
  if (s.rank() > 0 && at_sparse_items()) {
    if (count > (int64_t{1} << 28)) error_at(start, "a sparse literal of {} elements is too large", count);
    out.bytes.assign(static_cast<size_t>(count) * static_cast<size_t>(width), '\0');
    sparse_items(s, out.bytes);
    return u_.literal(std::move(out));
  }
  // A literal has at least a byte of text for each element: more cannot be in this file.
  if (count > static_cast<int64_t>(text_.size() - at_) + 1) {
    if (text_.find("...", at_) == std::string_view::npos)
      error_at(start, "the literal has fewer elements than {}", u_.shape_text_plain(shape_id));
  }
  if (count > static_cast<int64_t>(text_.size()))
    error_at(start, "the literal has fewer elements than {}", u_.shape_text_plain(shape_id));
  out.bytes.assign(static_cast<size_t>(count) * static_cast<size_t>(width), '\0');
  if (s.rank() == 0 || (peek() != '{' && count > 0))
    element(s.type, out.bytes.data());  // as XLA reads a lone value for an array: the rest is zero
  else if (!literal_array(s, out.bytes))
    out.elided = true, out.bytes.clear();
  return u_.literal(std::move(out));
}

// `{[0, 1]: 1, [2, 3]: 4}` or `{1: 7}`: the sparse form of 2018 and 2019.
bool Parser::at_sparse_items() {
  size_t save = at_;
  bool yes = false;
  if (eat('{')) {
    skip();
    if (peek() == '[') {
      yes = true;
    } else if (is(peek(), kDigit)) {
      while (is(peek(), kDigit)) ++at_;
      skip();
      yes = peek() == ':';
    }
  }
  at_ = save;
  return yes;
}

void Parser::sparse_items(const Shape& s, std::string& bytes) {
  size_t start = at_, width = static_cast<size_t>(storage_bytes(s.type));
  expect('{', "before the elements of a literal");
  int64_t items = 0;
  do {
    skip();
    size_t place = at_;
    Dims index;
    if (peek() == '[')
      index = number_list('[', ']', "the index of an element");
    else
      index.push_back(integer("the index of an element"));
    if (index.size() != s.dims.size())
      error_at(place, "an index of {} numbers in an array of {} dimensions", index.size(), s.dims.size());
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      if (index[d] < 0 || index[d] >= s.dims[d])
        error_at(place, "index {} is outside of dimension {} of size {}", index[d], d, s.dims[d]);
      at = at * s.dims[d] + index[d];
    }
    expect(':', "behind the index of an element");
    element(s.type, bytes.data() + static_cast<size_t>(at) * width);
    ++items;
  } while (eat(','));
  expect('}', "behind the elements of a literal");
  if (s.layout.sparse && items > s.layout.sparse)
    error_at(start, "{} elements in a sparse array with room for {}", items, s.layout.sparse);
}

// False where the rest is elided.
bool Parser::literal_array(const Shape& s, std::string& bytes) {
  int rank = s.rank(), width = storage_bytes(s.type);
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  char* out = bytes.data();
  int level = 0;
  expect('{', "before the elements of a literal");
  level = 1;
  while (level > 0) {
    skip();
    char c = peek();
    if (c == ',') {
      ++at_;
    } else if (c == '.' && text_.substr(at_, 3) == "..." && level == 1) {
      at_ += 3;
      expect('}', "behind '...'");
      return false;
    } else if (c == '{') {
      if (level == rank) error_here("braces are nested deeper than the {} dimensions of the literal", rank);
      if (at[static_cast<size_t>(level - 1)] >= s.dims[static_cast<size_t>(level - 1)])
        error_here("too many elements in dimension {}", level - 1);
      ++at[static_cast<size_t>(level - 1)];
      ++at_;
      at[static_cast<size_t>(level)] = 0;
      ++level;
    } else if (c == '}') {
      if (at[static_cast<size_t>(level - 1)] != s.dims[static_cast<size_t>(level - 1)])
        error_here("dimension {} has {} elements, expected {}", level - 1, at[static_cast<size_t>(level - 1)],
                   s.dims[static_cast<size_t>(level - 1)]);
      ++at_;
      --level;
    } else {
      if (level != rank) error_here("expected '{{' or '}}' in a literal of {} dimensions", rank);
      if (at[static_cast<size_t>(rank - 1)] >= s.dims[static_cast<size_t>(rank - 1)])
        error_here("too many elements in dimension {}", rank - 1);
      element(s.type, out);
      out += width;
      ++at[static_cast<size_t>(rank - 1)];
    }
  }
  return true;
}

double Parser::float_text(ElementType type, std::string* nan_bits) {
  skip();
  size_t start = at_;
  bool negative = peek() == '-';
  size_t body = start + negative;
  if (text_.substr(body, 3) == "nan" && (body + 3 >= text_.size() || !is(text_[body + 3], kNameRest))) {
    at_ = body + 3;
    if (peek() == '(') {
      size_t open = at_++;
      if (!eat("0x")) error_at(open, "expected a hexadecimal NaN payload");
      uint64_t payload = 0;
      auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), payload, 16);
      if (code != std::errc()) error_at(open, "expected a hexadecimal NaN payload");
      at_ = static_cast<size_t>(end - text_.data());
      expect(')', "behind a NaN payload");
      int mantissa = type == ElementType::F32 ? 23 : type == ElementType::F64 ? 52 : float_format(type)->mantissa_bits;
      if (payload >> mantissa) error_at(open, "the NaN payload has more than {} bits", mantissa);
      if (payload == 0) error_at(open, "a NaN payload is not zero");
      uint64_t bits = payload;
      if (type == ElementType::F32) {
        bits |= 0x7f800000u | (negative ? 0x80000000u : 0);
      } else if (type == ElementType::F64) {
        bits |= 0x7ff0000000000000ull | (negative ? 1ull << 63 : 0);
      } else {
        const FloatFormat* f = float_format(type);
        bits |= ((1ull << f->exponent_bits) - 1) << f->mantissa_bits;
        if (negative) bits |= 1ull << (f->exponent_bits + f->mantissa_bits);
      }
      nan_bits->assign(reinterpret_cast<const char*>(&bits), static_cast<size_t>(storage_bytes(type)));
    }
    return negative ? -NAN : NAN;
  }
  // An integer of a float literal goes through 64 bits, as in XLA: "-0" loses its sign.
  size_t look = body;
  while (look < text_.size() && is(text_[look], kDigit)) ++look;
  bool whole =
      look > body && (look >= text_.size() || (text_[look] != '.' && text_[look] != 'e' && text_[look] != 'E'));
  if (whole) {
    return static_cast<double>(integer("a number"));
  }
  return decimal("a number");
}

void Parser::element(ElementType type, char* at) {
  skip();
  size_t start = at_;
  switch (type_kind(type)) {
    case TypeKind::kBool:
      if (eat_word("true")) {
        *at = 1;
      } else if (eat_word("false")) {
        *at = 0;
      } else {
        *at = integer("true, false or an integer") != 0;
      }
      return;
    case TypeKind::kSigned:
    case TypeKind::kUnsigned: {
      bool negative = peek() == '-';
      int64_t value = integer("an integer");
      if (peek() == '.' || peek() == 'e' || peek() == 'E')
        error_at(start, "a {} literal takes integers", type_name(type));
      int bits = type_bits(type);
      bool fits = true;
      if (is_signed_int(type)) {
        if (!negative && value < 0)
          fits = bits == 64;
        else if (bits < 64)
          fits = value >= -(int64_t{1} << (bits - 1)) && value < (int64_t{1} << (bits - 1));
      } else if (bits < 64) {
        fits = !negative && static_cast<uint64_t>(value) < (1ull << bits);
        if (negative && value == 0) fits = true;
      }
      if (!fits) error_at(start, "value is out of the range of {}", type_name(type));
      store_int(type, at, value);
      return;
    }
    case TypeKind::kFloat: {
      if (is(peek(), kNameStart) && peek() != 'i' && peek() != 'n') error_here("expected a number");
      std::string nan_bits;
      double value = float_text(type, &nan_bits);
      if (!nan_bits.empty()) {
        std::memcpy(at, nan_bits.data(), nan_bits.size());
        return;
      }
      store_double(type, at, value);
      // Finite text that becomes infinite, NaN or saturates is out of range.
      if (std::isfinite(value)) {
        double stored = load_double(type, at);
        bool bad = !std::isfinite(stored);
        if (const FloatFormat* f = float_format(type); f && !f->has_sign) bad = value <= 0;
        if (bad) error_at(start, "value is out of the range of {}", type_name(type));
      }
      return;
    }
    case TypeKind::kComplex: {
      ElementType part = component_type(type);
      expect('(', "before a complex number");
      element(part, at);
      expect(',', "between the parts of a complex number");
      element(part, at + storage_bytes(part));
      expect(')', "behind a complex number");
      return;
    }
    case TypeKind::kOther:
      break;
  }
  error_at(start, "no literal of type {}", type_name(type));
}

}  // namespace hlo
