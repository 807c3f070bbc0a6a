// What became of an instruction, stage by stage, and why two did not join: by ids and heirs of the lineage.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/query/source_lines.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct HistoryEvent {
  std::string stage, file;
  std::string what;                // "stands there", "changed", "replaced by a", "gone", "fused into f", "unknown"
  std::string before, after;       // the instruction's text on both sides; empty where there is none
  std::vector<std::string> rules;  // of our own passes: rules that name it
  std::string name;                // under which it goes on; empty where it ends
  size_t state = 0;                // of the lineage: the stage of its number
};

struct History {
  std::vector<HistoryEvent> events;
  std::string source;                // source line and op_name
  std::vector<SourceLine> stack;     // frames of that line, innermost first
  std::string fusion;                // that it stands in at the end; empty where it stands alone or is gone
  std::vector<std::string> buffers;  // lines of the buffer assignment that name it
  std::vector<std::string> thunks;   // lines of the thunk sequence that name it
  std::vector<std::string> unread;   // stages that could not be read
  std::vector<std::string> reasons;  // why a copy, or a collective that a pass made, is there
};

// Of the instruction that carries the name first: back to what it was made of, and on through all that it lives on as,
// copies in several fusions included. *Unknown* where the lineage does not say. Throws Failure(kUsage) naming near ones
// where none has.
History history(Recording& recording, const std::string& name);
// Stage of the lineage by its number, users built; for callers that keep stages.
using StageSource = std::function<std::shared_ptr<const Module>(size_t)>;
// The same of an instruction that lives in that stage.
History history(Recording& recording, size_t stage, InstId id, const StageSource& source = {});

struct PairDecisions {
  std::string last;                // the last one in words, its numbers first; empty where none is recorded
  std::vector<std::string> lines;  // all, as they are recorded
  bool dumped = false;             // the folder holds a file of XLA's decisions
};
// Decisions of fusion about both: from our own notes, or from XLA's priority_fusion_dump. Names are those of any stage:
// what they were made of, and became, counts as well.
PairDecisions why_not_fused(Recording& recording, const std::string& a, const std::string& b);

// Where two names stand, and whether anything leads from the one to the other.
struct Meeting {
  bool first = false, second = false;   // is there an instruction of that name, in any stage?
  std::string near_first, near_second;  // the nearest name where there is none
  std::string text;                     // in words: why no decision about the two can be expected; empty if one can
};
Meeting meeting(Recording& recording, const std::string& a, const std::string& b);

struct PassWork {
  std::string stage;
  bool changed = false, implemented = true;
  size_t added = 0, removed = 0, modified = 0;
  std::vector<std::pair<std::string, size_t>> rules;  // with how often, most first
};
// What every run of that pass did.
std::vector<PassWork> pass_work(const Recording& recording, const std::string& pass);

}  // namespace hlo
