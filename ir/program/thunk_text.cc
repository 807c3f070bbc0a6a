// The grammar of XLA's thunk_sequence.txt, and the same as JSON.
#include <algorithm>
#include <map>

#include "ir/base/stack_guard.h"
#include "ir/program/thunk.h"

namespace hlo {
namespace {

// Which thunk last wrote or read the bytes of the allocations, piece by piece.
class LastAccess {
 public:
  // The latest before that clashes with it: -1 where none does. Then it is the latest itself.
  int64_t take(const Thunk& t, int64_t at) {
    int64_t found = -1;
    for (const ThunkSlice& s : t.slices)
      if (s.allocation >= 0 && s.size > 0) found = std::max(found, look(s));
    for (const ThunkSlice& s : t.slices)
      if (s.allocation >= 0 && s.size > 0) mark(s, at);
    return found;
  }

 private:
  struct Piece {
    int64_t end = 0, written = -1, read = -1;
  };
  using Pieces = std::map<int64_t, Piece>;  // by their begin; they do not overlap

  int64_t look(const ThunkSlice& s) {
    int64_t found = -1;
    Pieces& pieces = allocations_[s.allocation];
    for (auto at = first(pieces, s.offset); at != pieces.end() && at->first < s.offset + s.size; ++at)
      found = std::max({found, at->second.written, s.write ? at->second.read : -1});
    return found;
  }
  static Pieces::iterator first(Pieces& pieces, int64_t offset) {
    auto at = pieces.lower_bound(offset);
    if (at != pieces.begin() && std::prev(at)->second.end > offset) --at;
    return at;
  }
  static void cut(Pieces& pieces, int64_t offset) {
    auto at = first(pieces, offset);
    if (at == pieces.end() || at->first >= offset) return;
    Piece rest = at->second;
    at->second.end = offset;
    pieces.emplace(offset, rest);
  }
  void mark(const ThunkSlice& s, int64_t at) {
    Pieces& pieces = allocations_[s.allocation];
    const int64_t end = s.offset + s.size;
    cut(pieces, s.offset), cut(pieces, end);
    if (s.write) {
      pieces.erase(pieces.lower_bound(s.offset), pieces.lower_bound(end));
      pieces[s.offset] = {end, at, at};
      return;
    }
    int64_t from = s.offset;
    for (auto p = pieces.lower_bound(from); from < end;) {
      if (p == pieces.end() || p->first >= end) {
        pieces.emplace(from, Piece{end, -1, at});
        break;
      }
      if (p->first > from) pieces.emplace(from, Piece{p->first, -1, at});
      p->second.read = std::max(p->second.read, at);
      from = p->second.end;
      ++p;
    }
  }
  std::map<int, Pieces> allocations_;
};

void append_text(const Module& m, const std::vector<Thunk>& list, int indent, std::string& out) {
  check_stack("thunks are nested");
  const std::string pad(static_cast<size_t>(indent), ' ');
  if (list.empty()) {
    out += pad + "No thunks.\n";
    return;
  }
  const size_t n = list.size();
  std::vector<std::string> before(n, "source"), after(n, "sink");
  size_t kind_width = 0, before_width = 0, after_width = 0;
  LastAccess forwards, backwards;
  for (size_t i = 0; i < n; ++i) {
    const int64_t last = forwards.take(list[i], static_cast<int64_t>(i));
    if (last >= 0)
      before[i] = fmt::format("prev={:03} ({})", list[static_cast<size_t>(last)].id, i - static_cast<size_t>(last));
    const size_t k = n - 1 - i;
    const int64_t next = backwards.take(list[k], static_cast<int64_t>(i));
    if (next >= 0) {
      const size_t at = n - 1 - static_cast<size_t>(next);
      after[k] = fmt::format("next={:03} ({})", list[at].id, at - k);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    kind_width = std::max(kind_width, list[i].kind.size());
    before_width = std::max(before_width, before[i].size());
    after_width = std::max(after_width, after[i].size());
  }
  for (size_t i = 0; i < n; ++i) {
    const Thunk& t = list[i];
    out += fmt::format("{}{:03}: {:<{}} [{:<{}} | {:<{}}] ", pad, t.id, t.kind, kind_width, before[i], before_width,
                       after[i], after_width);
    out += t.kind == "kWhile" ? pad + "  " : t.description;
    out += "\n";
    bool first = true;
    for (const auto& [label, inner] : t.nested) {
      if (!label.empty()) out += pad + (first && t.kind == "kWhile" ? "" : "  ") + label + ":\n";
      first = false;
      append_text(m, inner, indent + 4, out);
    }
  }
}

void append_json(const Module& m, const std::vector<Thunk>& list, std::string& out) {
  check_stack("thunks are nested");
  out += "[";
  for (size_t i = 0; i < list.size(); ++i) {
    const Thunk& t = list[i];
    if (i) out += ",";
    out += fmt::format("{{\"id\":{},\"kind\":\"{}\",\"instruction\":\"{}\",\"slices\":[", t.id, t.kind,
                       m.inst_name(t.inst));
    for (size_t k = 0; k < t.slices.size(); ++k)
      out += fmt::format("{}{{\"allocation\":{},\"offset\":{},\"size\":{},\"write\":{}}}", k ? "," : "",
                         t.slices[k].allocation, t.slices[k].offset, t.slices[k].size, t.slices[k].write);
    out += "]";
    if (!t.stream.empty()) out += fmt::format(",\"stream\":\"{}\"", t.stream);
    if (t.async_id > 0) out += fmt::format(",\"async_id\":{}", t.async_id);
    for (const auto& [label, inner] : t.nested) {
      out += ",\"" + (label.empty() ? "inside" : label) + "\":";
      append_json(m, inner, out);
    }
    out += "}";
  }
  out += "]";
}

}  // namespace

std::string thunks_text(const Module& m, const std::vector<Thunk>& thunks) {
  std::string out;
  append_text(m, thunks, 0, out);
  return out;
}

std::string thunks_json(const Module& m, const std::vector<Thunk>& thunks) {
  std::string out;
  append_json(m, thunks, out);
  return out;
}

}  // namespace hlo
