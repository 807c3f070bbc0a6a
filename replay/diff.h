// Two modules side by side: by structure first (names do not matter), then by name.
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct ModuleDiff {
  bool same = false;       // same structure: what both compute, layouts included
  bool same_text = false;  // and the same names, order and metadata
  struct Line {
    char sign;  // + only in the second, - only in the first, ~ in both but different
    std::string name, first, second;
  };
  std::vector<Line> lines;
};

// Modules of one universe.
ModuleDiff diff_modules(const Module& a, const Module& b);

}  // namespace hlo
