// The first minute with one module, in parts: what `hlo-replay DIR` prints and the page shows.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/report/findings.h"
#include "replay/report/overview.h"
#include "replay/report/step_clock.h"

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

// A profile joined to the module.
struct MeasuredRun {
  std::string file;                                           // of the profile
  std::string why_not;                                        // nothing of it is joined to the module; else empty
  std::string joined;                                         // how much was, in words
  size_t runs = 0;                                            // 0: unknown, and what stands below is of all of them
  double seconds = 0;                                         // of its kernels, one run
  double between = 0;                                         // between them, in one run; 0: unknown
  std::function<std::optional<double>(std::string_view)> of;  // of an instruction, one run
  MomentOf when;                                              // an instruction ran in a run; empty: unknown of all
  double step = 0;  // of a run, from its first kernel to the end of its last one; 0: unknown
};

struct LookOptions {
  std::optional<MeasuredRun> measured = {};
  bool frames = false;                                     // the whole stack below what names a line
  std::function<void(std::vector<ModuleFinding>*)> tried;  // has their changes made; empty: they are not tried
};
// Dearest kernels, memory, passes that did most, what looks odd. Throws what `tried` throws.
std::vector<LookSection> first_look(const ModuleOverview& overview, const LookOptions& options = {});

}  // namespace hlo
