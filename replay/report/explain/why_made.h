// Why an instruction that nobody wrote stands in a module: copies, collectives; and what a computation is there for.
#pragma once
#include <string>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

// Of a copy: who reads what after whom writes, with their source lines, from aliasing, loops, layouts and results. One
// sentence each; one that says *unknown* where none of these tells. Users must be built.
std::vector<std::string> why_copied(const Module& m, InstId copy);

// Of a collective that a pass made: which pass, and what it moves in the stage before, with its sharding and source.
// Empty for those that stand there from the start.
std::vector<std::string> why_collective(Recording& recording, size_t stage, InstId id);

bool is_collective(Opcode op);

// A computation, or a command buffer, which is one.
struct ComputationStory {
  std::string name, stage,
      made_by;  // the last stage that has it; the first one, empty where it is there from the start
  std::vector<std::string> callers;  // instructions, as text, "… in COMPUTATION"
  struct Held {
    std::string text, origin;  // the instruction; what it was in front of `made_by`, with its source line
  };
  std::vector<Held> holds;          // without parameters, constants, tuples and their elements
  std::vector<std::string> thunks;  // lines of the thunk sequence that name it
};
// Of the name in any stage. False where no computation has it.
bool computation_story(Recording& recording, const std::string& name, ComputationStory* story);

}  // namespace hlo
