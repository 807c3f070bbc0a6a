// Buffer assignment as data: which bytes every value of a scheduled module occupies, and when.
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

// One array that the program holds: an instruction's result, or one leaf of it.
struct BufferValue {
  InstId inst;
  Dims index;  // path in the instruction's shape
  ShapeId shape;
  int64_t size = 0;    // bytes
  int64_t offset = 0;  // in its allocation
  int allocation = -1;
  int64_t first = 0, last = 0;  // live from … to, in positions of the flattened schedule
};

struct Allocation {
  enum Kind { kTemp, kParameter, kConstant, kOutput, kThreadLocal, kTuple } kind = kTemp;
  int64_t size = 0;
  int64_t parameter = -1;
  Dims parameter_index;
  ShapeId parameter_shape;
  bool live_out = false;
  ShapeId output_shape;  // of the entry's result itself
  std::vector<int> values;
};

struct BufferAssignment {
  std::vector<BufferValue> values;
  std::vector<Allocation> allocations;
  // Values that instruction and index may stand for (a loop's state is one value with what flows into it); empty when
  // the instruction needs no memory.
  std::vector<int> leaf_values(const Module& m, InstId inst) const;
  int64_t total() const;

  std::unordered_map<InstId, std::vector<int>> by_inst;  // values of an instruction's leaves, depth first
};

// While a value holds its bytes, in positions of the schedule. Values that must share memory, as a loop's state and
// what becomes of it, are told by the first of them; a result that is made where an operand lies takes its place over.
// Arguments and constants hold theirs always, for results that lie there, too.
struct HeldPlace {
  size_t value;  // of BufferAssignment::values
  int64_t first, last;
  bool always;
};
// In the order of the values; those of threads' own memory and empty ones are left out.
std::vector<HeldPlace> held_places(const BufferAssignment& assignment);

// In the grammar of XLA's -buffer-assignment.txt.
std::string buffer_assignment_text(const Module& m, const BufferAssignment& assignment);
std::string human_bytes(int64_t bytes);

}  // namespace hlo
