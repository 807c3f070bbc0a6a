// Literals.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "ir/base/checked.h"
#include "ir/print/print.h"
#include "parser/byte_table.h"
#include "parser/parser_impl.h"

namespace hlo {

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
    expect(')', "after the elements of a tuple literal");
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
    out.bytes.assign((Checked(count) * width).size("a literal"), '\0');
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
  out.bytes.assign((Checked(count) * width).size("a literal"), '\0');
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
    expect(':', "after the index of an element");
    element(s.type, bytes.data() + static_cast<size_t>(at) * width);
    ++items;
  } while (eat(','));
  expect('}', "after the elements of a literal");
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
      expect('}', "after '...'");
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
      expect(')', "after a NaN payload");
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
      expect(')', "after a complex number");
      return;
    }
    case TypeKind::kOther:
      break;
  }
  error_at(start, "no literal of type {}", type_name(type));
}

}  // namespace hlo
