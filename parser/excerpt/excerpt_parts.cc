#include "parser/excerpt/excerpt_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace hlo {

std::string count_of(size_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

ExcerptParts::ExcerptParts(std::string_view text, size_t first_line)
    : first_line_(first_line), pieces_(pieces_of(text)) {
  assemble();
}

// What a run of instructions that begins at piece `at` ends with; no piece's kind at the end of the text.
std::vector<int> ExcerptParts::ends_of_runs() const {
  std::vector<int> out(pieces_.size() + 1, -1);
  for (size_t k = pieces_.size(); k-- > 0;)
    out[k] = pieces_[k].kind == Piece::kInstruction || pieces_[k].kind == Piece::kOther ? out[k + 1] : pieces_[k].kind;
  return out;
}

void ExcerptParts::assemble() {
  const std::vector<int> ends = ends_of_runs();
  bool open = false, header = false;
  for (size_t k = 0; k < pieces_.size(); ++k) {
    const Piece& p = pieces_[k];
    const bool more = k + 1 < pieces_.size() && pieces_[k + 1].kind == Piece::kInstruction;
    switch (p.kind) {
      case Piece::kHeader:
        if (header) lack(p.line, "a second HloModule line, left out");
        if (!header) header_ = k;
        header = true;
        break;
      case Piece::kTable:
        tables_.push_back(k);
        break;
      case Piece::kOpen:
        if (open) end_open(p.line);
        begin_computation(k);
        open = true;
        break;
      case Piece::kInstruction:
        if (!open) begin_computation(kNoPiece);
        open = true;
        comps_.back().body.push_back(k);
        comps_.back().has_root |= p.root;
        break;
      case Piece::kClose:
        if (!open) {
          note(p.line, "a '}' that closes nothing, left out");
        } else if (!comps_.back().has_root && more && ends[k + 1] == Piece::kClose) {
          note(p.line, fmt::format("a stray '}}' inside of computation '{}', left out", comps_.back().name));
        } else {
          comps_.back().closed = true, comps_.back().behind = p.text.substr(1);
          open = false;
        }
        break;
      case Piece::kGap:
        ++gaps_;
        lack(p.line, fmt::format("lines are left out here ('{}')", p.text.substr(0, 40)));
        if (open) comps_.back().gap = true;
        if (open && comps_.back().has_root && more) open = false;
        break;
      case Piece::kOther:
        k = other_text(k, open);
        break;
    }
  }
  if (open) end_open(pieces_.back().line);
  name_computations();
}

void ExcerptParts::begin_computation(size_t open) {
  TextComputation c;
  c.open = open;
  if (open != kNoPiece) {
    c.name = pieces_[open].name, c.entry = pieces_[open].entry;
    if (pieces_[open].cut) lack(pieces_[open].line, fmt::format("the begin of computation '{}' is cut off", c.name));
  }
  comps_.push_back(std::move(c));
}

void ExcerptParts::end_open(size_t line) {
  TextComputation& c = comps_.back();
  if (c.open == kNoPiece) return;
  note(line, fmt::format("computation '{}' does not end before this place", c.name));
  if (!c.has_root) incomplete_ = true;
}

// Lines that are no HLO, told once for as many as stand together; the last one's index.
size_t ExcerptParts::other_text(size_t k, bool inside) {
  const size_t first = k;
  bool like = false;
  for (; k < pieces_.size() && pieces_[k].kind == Piece::kOther; ++k)
    like |= pieces_[k].text.find(" = ") != std::string_view::npos;
  const size_t last = k - 1;
  std::string what = fmt::format("no HLO, left out: '{}{}'", pieces_[first].text.substr(0, 60),
                                 pieces_[first].text.size() > 60 ? "…" : "");
  if (last > first) what += fmt::format(" and {} after it", count_of(last - first, "line", "lines"));
  note(pieces_[first].line, what);
  incomplete_ |= like || inside;
  return last;
}

void ExcerptParts::name_computations() {
  bool entry = false;
  size_t unnamed = 0;
  std::unordered_map<std::string, size_t> by_name;
  for (const TextComputation& c : comps_) taken_.insert(c.name);
  for (size_t k = 0; k < comps_.size(); ++k) {
    TextComputation& c = comps_[k];
    if (c.open == kNoPiece) {
      c.name = unnamed++ ? fmt::format("excerpt.{}", unnamed) : "excerpt";
      const size_t line = pieces_[c.body[0]].line;
      const std::string what = count_of(c.body.size(), "instruction", "instructions");
      note(line, fmt::format("{} without the begin of a computation: taken as computation '{}'", what, c.name));
      if (!c.has_root) incomplete_ = true;
    } else if (auto [same, first] = by_name.try_emplace(c.name, k); !first) {
      name_again(c, comps_[same->second]);
    }
    if (c.entry && entry && !c.left_out) {
      c.entry = false;
      lack(line_of(c), fmt::format("a second ENTRY: '{}' is read as a computation without callers", c.name));
    }
    entry |= c.entry;
  }
  if (!entry && !comps_.empty()) {
    size_t last = comps_.size() - 1;
    while (last > 0 && comps_[last].left_out) --last;
    comps_[last].entry = true;
    note(line_of(comps_[last]),
         fmt::format("no ENTRY: '{}', the last computation, is used as the ENTRY", comps_[last].name));
  }
}

size_t ExcerptParts::line_of(const TextComputation& c) const {
  return pieces_[c.open != kNoPiece ? c.open : c.body[0]].line;
}

void ExcerptParts::name_again(TextComputation& c, const TextComputation& first) {
  auto same = [&](size_t a, size_t b) { return pieces_[a].text == pieces_[b].text; };
  if (c.body.size() == first.body.size() && std::equal(c.body.begin(), c.body.end(), first.body.begin(), same)) {
    note(line_of(c), fmt::format("computation '{}' is given twice (line {} has it first), left out", c.name,
                                 line_of(first) + first_line_));
    c.left_out = true;
    return;
  }
  std::string name;
  for (size_t& n = again_[c.name]; name.empty() || !taken_.insert(name).second; ++n)
    name = fmt::format("{}.again{}", c.name, n ? fmt::format(".{}", n) : "");
  lack(line_of(c),
       fmt::format("a second computation '{}' (line {} has the first), read as '{}'; callers keep the first", c.name,
                   line_of(first) + first_line_, name));
  c.name = name;
}

}  // namespace hlo
