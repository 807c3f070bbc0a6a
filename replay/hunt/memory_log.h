// What a program printed about memory that it could not have, and what of it a module's allocations explain.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/hunt/complaint.h"

namespace hlo {

// Bytes as a log writes them: exact, or as exact as `16.00GiB` is.
struct LoggedBytes {
  int64_t least = -1, most = -1;  // -1: the log does not tell
  bool known() const { return least >= 0; }
  bool exact() const { return least == most; }
  // Can an allocation of that size be meant? Allocators round up to 256 bytes.
  bool holds(int64_t bytes) const;
};
// Of the first number with a unit in the text: `17179869184 bytes`, `16.00GiB (17179869184 bytes)`, `8.14G`.
LoggedBytes logged_bytes(std::string_view text);

struct MemoryComplaint {
  enum Kind {
    kAllocation,         // so many bytes were asked for at once
    kRematerialization,  // XLA's pass says that it cannot get below a limit
    kOther,              // memory ran out, and no number says of what
  } kind = kOther;
  size_t line = 0;  // of the log, counted from 1
  std::string text;
  LoggedBytes asked;
  LoggedBytes limit, reached, before;  // of kRematerialization
  std::string module;                  // that the lines in front of it name; empty: none
  size_t times = 1;                    // how often the log says so
};

// Blocks of one size that a BFC allocator's dump lists as in use.
struct AllocatorBlocks {
  int64_t bytes = 0, count = 0;
  size_t line = 0;
};

struct MemoryLog {
  std::vector<MemoryComplaint> complaints;
  std::vector<AllocatorBlocks> blocks;  // the largest first
  int64_t pool = -1, in_use = -1;       // of the allocator, bytes; -1: not told
  std::vector<NamedBuffer> buffers;     // that XLA lists
  bool empty() const { return complaints.empty() && blocks.empty() && buffers.empty(); }
};
// Of all that a program printed. Only what a line says.
MemoryLog read_memory_log(std::string_view text);

}  // namespace hlo
