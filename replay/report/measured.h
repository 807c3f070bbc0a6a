// A profile joined to modules: which instruction each span of time was, how long each instruction took in all, and
// what could not be joined, with the reason.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "replay/record/timeline.h"

namespace hlo {

// A module that spans may belong to; read when one names it.
struct MeasuredModule {
  std::string name, selector;  // selector: how a command line names it
  int64_t number = -1;         // the profiler's program_id; -1: unknown
  std::function<std::unique_ptr<Module>()> load;
  std::unique_ptr<Module> module;  // null before it is asked for, and where it cannot be read
  std::string unreadable;
  std::unordered_map<std::string, InstId> by_name;
  // How often it ran, at most: the fewest spans that an instruction of its entry computation has (one may have several:
  // a kernel and a copy). 0: no such instruction was seen.
  size_t runs = 0;
  // Reads it once; false where that failed.
  bool read();
};

struct MeasuredOp {
  size_t module = 0;  // place in Measured::modules
  InstId inst;
  size_t count = 0;                         // of its spans
  double seconds = 0, least = 0, most = 0;  // least and most: of one span
};

struct MeasuredSpan {
  size_t track = 0, span = 0;  // places in the timeline
  size_t op = SIZE_MAX;        // place in Measured::ops; SIZE_MAX: not joined
};

// Time that is not of an instruction that is known.
struct Unjoined {
  std::string where, why;
  double seconds = 0;
  size_t spans = 0;
};

struct Measured {
  std::vector<MeasuredModule> modules;
  std::vector<MeasuredOp> ops;      // most time first
  std::vector<MeasuredSpan> spans;  // of all that names an instruction and is counted, by time
  double named = 0, joined = 0;     // seconds of those spans, and of the ones that were joined
  std::vector<Unjoined> unjoined;   // spans that name an instruction that no module has
  std::vector<Unjoined> unnamed;    // of a device or process what names no instruction: Python, the runtime
  const MeasuredOp* find(size_t module, InstId inst) const;
};

// A span belongs to the module of its number and name; else to the only one of its name, or the only one of that name
// that has all instructions which are named there. Where several would do it is not joined: never the first of them.
// Of spans that say no module all modules are asked.
Measured join(const Timeline& timeline, std::vector<MeasuredModule> modules);

// The modules that the profile itself holds.
std::vector<MeasuredModule> modules_of(const Timeline& timeline, const std::string& label);

}  // namespace hlo
