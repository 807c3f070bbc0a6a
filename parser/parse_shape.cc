// Shapes and layouts.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "ir/base/stack_guard.h"
#include "ir/print/print.h"
#include "parser/byte_table.h"
#include "parser/parser_impl.h"

namespace hlo {
namespace {

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
    expect(')', "after the shape of a buffer");
    inner.is_buffer = true;
    return u_.shape(std::move(inner));
  }
  Shape s;
  if (type_word.empty()) error_at(start, "expected a shape");
  if (!type_from_name(type_word, &s.type)) error_at(start, "unknown element type '{}'", type_word);
  expect('[', "after the element type");
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
    expect('}', "after a sparse layout");
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

template <class One>
std::string Parser::layout_list(const One& one) {
  expect('(', "after the key of a layout part");
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
}

// Say nothing, dropped.
void Parser::dim_levels() {
  layout_list([&] {
    skip();
    size_t place = at_;
    std::string_view w = word();
    if (w != "D" && w != "C" && w != "S") error_at(place, "a dim level type is D, C or S");
    if (peek() == '+') ++at_;
    if (peek() == '~') ++at_;
    return std::string();
  });
}

std::string Parser::tiles_of_layout() {
  std::string rest = "T";
  do {
    rest += layout_list([&] {
      if (eat('*')) return std::string("*");
      size_t place = at_;
      int64_t v = integer("a dimension of a tile");
      if (v < 0) error_at(place, "a tile is not negative");
      return std::to_string(v);
    });
    skip();
  } while (peek() == '(');
  return rest;
}

std::string Parser::splits_of_layout() {
  std::string rest = "SC";
  do {
    expect('(', "before a split");
    rest += fmt::format("({}:", integer("a dimension"));
    expect(':', "after the dimension of a split");
    bool first = true;
    while (!eat(')')) {
      if (!first) expect(',', "between the places of a split"), rest += ",";
      first = false;
      rest += std::to_string(integer("the place of a split"));
    }
    rest += ")";
    skip();
  } while (peek() == '(');
  return rest;
}

// Of indices and of pointers.
std::string Parser::type_in_layout(std::string_view key) {
  expect('(', "after the key of a layout part");
  skip();
  size_t place = at_;
  ElementType type;
  std::string_view name = word();
  if (!type_from_name(name, &type)) error_at(place, "unknown element type '{}'", name);
  expect(')', "after an element type");
  return fmt::format("{}({})", key,
                     type_kind(type) == TypeKind::kSigned || type_kind(type) == TypeKind::kUnsigned ? name : "invalid");
}

int64_t Parser::number_in_layout(int64_t least) {
  expect('(', "after the key of a layout part");
  skip();
  size_t place = at_;
  int64_t v = integer("a number");
  if (v < least) error_at(place, "{} is too small here", v);
  expect(')', "after a number");
  return v;
}

void Parser::layout_part(std::string_view key, Layout& out) {
  if (key == "D") {
    dim_levels();
  } else if (key == "T") {
    out.rest += tiles_of_layout();
  } else if (key == "SC") {
    out.rest += splits_of_layout();
  } else if (key == "#" || key == "*") {
    out.rest += type_in_layout(key);
  } else if (key == "L") {
    if (int64_t v = number_in_layout(1); v != 1) out.rest += fmt::format("L({})", v);
  } else if (key == "M") {
    expect('(', "after the key of a layout part");
    int64_t v = integer("a number");
    expect(')', "after a number");
    if (v > 0) out.rest += fmt::format("M({})", v);
  } else if (int64_t v = number_in_layout(INT32_MIN); v != 0) {
    out.rest += fmt::format("{}({})", key, v);
  }
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
    if (rank_of < next) error_at(part, "layout part {} is in the wrong place", key);
    if (key == "P") error_at(part, "physical shapes in a layout are not accepted");
    next = rank_of + 1;
    layout_part(key, out);
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
  expect('}', "after a layout");
  return out;
}

}  // namespace hlo
