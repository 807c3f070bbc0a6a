// Two modules side by side: by structure, whatever their names.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct ModuleDiff {
  bool same = false;       // same structure: what both compute, layouts included
  bool same_text = false;  // and the same names, order and metadata
  // A difference, with those that are like it.
  struct Line {
    enum Kind { kOnlyFirst, kOnlySecond, kChanged, kMoved, kModule } kind = kChanged;
    char sign = '~';                 // + only in the second, - only in the first, ~ in both but different, > moved
    std::string name, other;         // in the first and in the second; empty where it is in one only
    std::string place;               // computation (of the first; of the second for +); "FROM → TO" for >
    std::vector<std::string> what;   // of ~: what differs, "layout {1,0} → {0,1}"
    std::string first, second;       // the instructions' texts
    size_t count = 1;                // of differences like this one, itself among them
    std::vector<std::string> names;  // of all of them
  };
  std::vector<Line> lines;
  size_t removed = 0, added = 0, modified = 0, moved = 0;  // instructions
  size_t unread = 0;  // elements of tuples that nobody reads, on one side alone: counted here only, where asked for
  bool names_agree = true;  // false: names were of no use, the modules number their instructions differently
};

enum class UnreadElements { kCount, kIgnore };  // elements of tuples that nobody reads, which a release prints or not

// Modules of one universe.
ModuleDiff diff_modules(const Module& a, const Module& b, UnreadElements unread = UnreadElements::kCount);
// Two stages of one lineage, with what instructions of the first live on as in the second: by id, without a guess.
ModuleDiff diff_modules(const Module& a, const Module& b, std::span<const Heir> heirs);
// The structure of one module equals that of the other; what diff_modules calls `same`, without the search.
bool same_structure(const Module& a, const Module& b, UnreadElements unread = UnreadElements::kCount);

struct TextDiffLine {
  char sign;  // ' ', '-', '+'
  std::string text;
};
// Line by line, with `context` equal lines around each difference; a line of `@` stands between the parts.
std::vector<TextDiffLine> diff_texts(const std::string& a, const std::string& b, size_t context);

}  // namespace hlo
