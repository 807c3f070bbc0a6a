// The first minute with one module, in parts: what `hlo-replay DIR` prints and the page shows.
#pragma once
#include <string>
#include <vector>

#include "replay/report/overview.h"

namespace hlo {

struct LookRow {
  std::string text = {};    // a line, in columns
  InstId inst = {};         // that it is about, of the overview's module; invalid: none
  std::string source = {};  // `model.py:12`; empty: unknown
  int stage = -1;           // of the lineage, of a pass; -1: none, or not known
};
struct LookSection {
  std::string heading = {};  // empty: of the module itself
  std::vector<LookRow> rows = {};
  size_t all = 0;  // where not all are among the rows, how many there are
};

// Dearest kernels, memory, passes that did most, what looks odd.
std::vector<LookSection> first_look(const ModuleOverview& overview);

}  // namespace hlo
