// What a module holds in memory on its device: how much in all, and what is alive where most of it is. From XLA's own
// buffer assignment where the dump has it, else from ours.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/query/source_lines.h"
#include "replay/record/start/target.h"

namespace hlo {

struct MemoryValue {
  std::string instruction;
  Dims index;  // of its shape
  int64_t bytes = 0;
  std::string shape;  // with the type and dimensions; empty: unknown
  std::string kind;   // "argument", "constant", "value"
  std::string op_name;
  SourceLine source;
  // Places of the flattened schedule between which it lies in memory, both included; -1: not known. `always`: from
  // begin to end.
  int64_t first = -1, last = -1;
  bool always = false;
  std::string name() const;  // `fusion.3{1}`
};

struct MemoryAllocation {
  int64_t bytes = 0;
  std::string kind;  // "argument", "constant", "output", "temporary"; "elsewhere": not in the device's large memory
  size_t values = 0;
  std::string largest;  // name of its largest value
};

struct MemoryReport {
  std::string from;       // in words: whose assignment, which file
  bool estimate = false;  // the module is not scheduled: our order and our assignment stand in
  // Bytes of the allocations, all their lives long.
  int64_t allocated = 0, arguments = 0, constants = 0, outputs = 0, temporaries = 0;
  int64_t elsewhere = 0;                              // beside them: on a TPU's chip, in its host, in a GPU's host
  int64_t host = 0, host_peak = 0, host_at_peak = 0;  // … of these in a GPU's host, allocated, alive at once, and at
                                                      // the moment of the device's peak
  int64_t peak = 0;                                   // bytes alive at once, on the device
  std::string peak_at;                                // instruction that runs then; empty: unknown
  int64_t peak_place = -1;                            // its place in the flattened schedule; -1: unknown
  std::vector<std::string> schedule;                  // that one, instructions by name; only where it is asked for
  std::vector<MemoryValue> alive;                     // at the peak, largest first; empty: unknown
  std::vector<MemoryValue> host_alive;                // at that moment in a GPU's host, largest first
  std::vector<MemoryAllocation> allocations;          // largest first
  std::string too_large;           // that it does not fit the card it was compiled for; empty: it does
  std::vector<std::string> notes;  // what could not be read
};

// "does not fit: 313.00GiB allocated, an H200 has 141 GiB"; empty where it fits, or where the card's size is unknown.
std::string does_not_fit(int64_t allocated, const Target& target);

// Of `m`, which is the last stage of `recording`; without one from our own assignment. `target`: the card; null: the
// recording's, else the default. `schedule`: whether it is asked for.
MemoryReport memory_report(const Module& m, const Recording* recording, const Target* target = nullptr,
                           bool schedule = false);
// Only `from`, the sums and the notes, without the module, from the dump's files; nothing where it has none.
std::optional<MemoryReport> memory_from_files(const Recording& recording);

}  // namespace hlo
