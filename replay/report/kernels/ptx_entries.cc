#include "replay/report/kernels/ptx_entries.h"

#include <algorithm>
#include <charconv>

#include "ir/base/checked.h"

namespace hlo {
namespace {

// The text without comments, lines kept.
std::string without_comments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t k = 0; k < text.size();) {
    const std::string_view two = text.substr(k, 2);
    if (two == "//") {
      k = std::min(text.find('\n', k), text.size());
    } else if (two == "/*") {
      const size_t end = text.find("*/", k + 2), stop = end == std::string_view::npos ? text.size() : end + 2;
      for (; k < stop; ++k)
        if (text[k] == '\n') out += '\n';
    } else {
      out += text[k++];
    }
  }
  return out;
}

bool in_ptx_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

class PtxWords {
 public:
  explicit PtxWords(std::string_view text) : text_(text) {}
  // A name with its dots, or one other character; empty: the end.
  std::string_view next() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      if (text_[at_] == '\n') ++line_;
      ++at_;
    }
    size_t end = at_;
    while (end < text_.size() && (in_ptx_name(text_[end]) || text_[end] == '.' || text_[end] == ':')) ++end;
    if (end == at_ && end < text_.size()) ++end;
    std::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    return word;
  }
  size_t line() const { return line_; }

 private:
  std::string_view text_;
  size_t at_ = 0, line_ = 1;
};

int64_t ptx_number(std::string_view word) {
  int64_t v = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), v);
  return error != std::errc() || end != word.data() + word.size() || v < 0 ? 0 : v;
}

int64_t bytes_of_type(std::string_view word) {
  const size_t digit = word.find_first_of("0123456789");
  return digit == std::string_view::npos ? 0 : ptx_number(word.substr(digit)) / 8;
}

// `.param .u64 .ptr .align 16 name` up to a comma or the parenthesis, which is returned.
std::string_view parameter(PtxWords& words, PtxEntry::Parameter& p) {
  bool array = false, pointed = false;
  for (std::string_view w = words.next();; w = words.next()) {
    if (w.empty() || w == "," || w == ")") {
      p.pointer = !array && p.bytes == 8;
      return w;
    }
    if (w == ".ptr") pointed = true;
    if (w == ".align") {
      const int64_t align = ptx_number(words.next());
      if (!pointed) p.align = align;
    } else if (w == "[") {
      const int64_t n = ptx_number(words.next());
      // No parameters are larger than what a kernel can take.
      p.bytes = n > (int64_t{1} << 16) ? 0 : p.bytes * n, array = true;
    } else if (w.size() > 2 && w[0] == '.' && !p.bytes) {
      p.bytes = bytes_of_type(w);
    }
  }
}

std::array<int64_t, 3> three(PtxWords& words) {
  std::array<int64_t, 3> out{1, 1, 1};
  out[0] = ptx_number(words.next());
  return out;
}

}  // namespace

int64_t PtxEntry::block() const {
  const std::array<int64_t, 3>& says = threads[0] ? threads : most_threads;
  Checked product = 1;
  for (int64_t n : says) product *= n;
  return product.capped();
}

std::vector<PtxEntry> read_ptx_entries(std::string_view text) {
  const std::string plain = without_comments(text);
  PtxWords words(plain);
  std::vector<PtxEntry> out;
  for (std::string_view w = words.next(); !w.empty(); w = words.next()) {
    if (w != ".entry") continue;
    PtxEntry e;
    e.line = words.line();
    e.name = words.next();
    w = words.next();
    if (w == "(") {
      do {
        PtxEntry::Parameter p;
        w = parameter(words, p);
        if (p.bytes || w == ",") e.parameters.push_back(p);
      } while (w == ",");
      w = words.next();
    }
    std::array<int64_t, 3>* said = nullptr;
    for (size_t k = 0; !w.empty() && w != "{" && w != ";"; w = words.next()) {
      if (w == ".reqntid" || w == ".maxntid") {
        said = w == ".reqntid" ? &e.threads : &e.most_threads;
        *said = three(words), k = 1;
      } else if (w == "," && said && k < 3) {
        (*said)[k++] = ptx_number(words.next());
      } else {
        said = nullptr;
      }
    }
    if (w == ";") continue;  // a declaration
    for (int depth = w == "{" ? 1 : 0; depth > 0;) {
      w = words.next();
      if (w.empty()) break;
      depth += w == "{" ? 1 : w == "}" ? -1 : 0;
      e.whole = depth == 0;
    }
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace hlo
