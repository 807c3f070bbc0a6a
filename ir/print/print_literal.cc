// Values and quoted texts as XLA writes them.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/print/printer.h"

namespace hlo {

namespace {

#ifdef __SSE2__
// A bit for each of 16 bytes that c_escape changes.
unsigned changed(const char* at) {
  auto all = [](char c) { return _mm_set1_epi8(c); };
  __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  // As signed numbers everything over 127 is below a blank as well.
  __m128i bad = _mm_or_si128(_mm_cmplt_epi8(c, all(' ')), _mm_cmpeq_epi8(c, all('\x7f')));
  bad = _mm_or_si128(bad, _mm_or_si128(_mm_cmpeq_epi8(c, all('"')), _mm_cmpeq_epi8(c, all('\''))));
  bad = _mm_or_si128(bad, _mm_cmpeq_epi8(c, all('\\')));
  return static_cast<unsigned>(_mm_movemask_epi8(bad));
}
#endif

// Index of the first byte from `at` on that c_escape changes, or the size.
size_t plain_until(std::string_view text, size_t at) {
#ifdef __SSE2__
  for (; at + 16 <= text.size(); at += 16)
    if (unsigned mask = changed(text.data() + at)) return at + static_cast<size_t>(std::countr_zero(mask));
#endif
  for (; at < text.size(); ++at) {
    char c = text[at];
    auto b = static_cast<unsigned char>(c);
    if (b < 32 || b >= 127 || c == '"' || c == '\'' || c == '\\') break;
  }
  return at;
}

}  // namespace

bool needs_no_escape(std::string_view text) {
#ifdef __SSE2__
  if (text.size() >= 16) {
    for (size_t at = 0; at + 16 < text.size(); at += 16)
      if (changed(text.data() + at)) return false;
    return !changed(text.data() + text.size() - 16);  // some bytes of it for the second time
  }
#endif
  return plain_until(text, 0) == text.size();
}

std::string c_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (size_t at = 0;; ++at) {
    size_t run = plain_until(text, at);
    out.append(text, at, run - at);
    if ((at = run) == text.size()) break;
    char c = text[at];
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\'':
        out += "\\'";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

size_t closing_quote(std::string_view text, size_t open) {
  for (size_t at = open + 1;;) {
    const void* quote = at < text.size() ? std::memchr(text.data() + at, text[open], text.size() - at) : nullptr;
    if (!quote) return std::string_view::npos;
    size_t end = static_cast<size_t>(static_cast<const char*>(quote) - text.data()), escapes = end;
    while (escapes > open + 1 && text[escapes - 1] == '\\') --escapes;
    if ((end - escapes) % 2 == 0) return end;
    at = end + 1;
  }
}

size_t dict_end(std::string_view text, size_t start) {
  int depth = 0;
  for (size_t i = start; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      i = closing_quote(text, i);
      if (i == std::string_view::npos) return i;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

bool is_dict_text(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text.starts_with('{') && dict_end(text, 0) == text.size();
}

// --- literals ---

namespace {

// XLA prints a negative zero as `-0`, which its parser and ours read as the integer 0: `-0.0` where nothing may be
// lost.
void append_value(std::string& out, ElementType type, const char* at, bool exact) {
  size_t start = out.size();
  append_element(out, type, at);
  if (!exact || (!is_float(type) && !is_complex(type))) return;
  for (size_t i = out.find("-0", start); i != std::string::npos; i = out.find("-0", i + 2))
    if (i + 2 == out.size() || out[i + 2] == ',' || out[i + 2] == ')') out.insert(i + 2, ".0");
}

void append_array(const Universe& u, const Literal& lit, std::string& out, bool exact) {
  const Shape& s = u[lit.shape];
  int rank = s.rank(), width = storage_bytes(s.type);
  bool predicate = s.type == ElementType::Pred;
  const char* at = lit.bytes.data();
  auto value = [&] {
    if (predicate)
      out += *at ? '1' : '0';
    else
      append_value(out, s.type, at, exact);
    at += width;
  };
  // xla/literal.cc, DenseArrayPrintHelper: braces a dimension, rank 1 without blanks inside.
  auto level = [&](auto&& self, int dim, int64_t index) -> void {
    int64_t n = s.dims[static_cast<size_t>(dim)];
    bool last = dim + 1 == rank;
    // The innermost braces hug a single element, as all of rank 1 do.
    bool tight = rank == 1 || (last && n <= 1);
    out += tight ? "{" : "{ ";
    // From rank 4 on the outer indices are told in comments.
    bool told = rank > 3 && dim > 0 && dim < rank - 1;
    if (told) out += fmt::format("/*i{}={}*/ ", dim - 1, index);
    for (int64_t i = 0; i < n; ++i) {
      if (i) out += ", ";
      if (last)
        value();
      else
        self(self, dim + 1, i);
    }
    out += tight || (told && n == 0) ? "}" : " }";
  };
  level(level, 0, 0);
}

// The elements that are not zero, with their indices.
void append_sparse(const Shape& s, const Literal& lit, std::string& out, bool exact) {
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  std::string zero(width, '\0');
  bool first = true;
  out += '{';
  for (size_t n = 0; n * width < lit.bytes.size(); ++n) {
    if (!lit.bytes.compare(n * width, width, zero)) continue;
    if (!first) out += ", ";
    first = false;
    Dims index(s.dims.size());
    size_t rest = n;
    for (size_t d = s.dims.size(); d-- > 0;) {
      index[d] = static_cast<int64_t>(rest % static_cast<size_t>(s.dims[d]));
      rest /= static_cast<size_t>(s.dims[d]);
    }
    out += index.size() == 1 ? fmt::format("{}: ", index[0]) : fmt::format("[{}]: ", fmt::join(index, ", "));
    append_value(out, s.type, lit.bytes.data() + n * width, exact);
  }
  out += '}';
}

}  // namespace

void append_literal(const Universe& u, const Literal& lit, bool large, bool exact, std::string& out, bool top) {
  const Shape& s = u[lit.shape];
  if (s.is_tuple()) {
    if (!large || lit.elided) {
      out += "{...}";
      return;
    }
    out += "( ";
    for (size_t i = 0; i < lit.elements.size(); ++i) {
      if (i) out += ", ";
      append_literal(u, u[lit.elements[i]], large, exact, out, false);
    }
    out += " )";
    return;
  }
  if (lit.elided || (top && !large && s.elements_count() > 10)) {
    out += "{...}";
    return;
  }
  if (s.rank() == 0)
    append_value(out, s.type, lit.bytes.data(), exact);
  else if (s.layout.sparse)
    append_sparse(s, lit, out, exact);
  else
    append_array(u, lit, out, exact);
}

std::string literal_text(const Universe& u, LitId lit, bool large, bool exact) {
  std::string out;
  append_literal(u, u[lit], large, exact, out, true);
  return out;
}

}  // namespace hlo
