// XLA's own words on memory: NAME-buffer-assignment.txt, in the grammar that ir/program/buffer.h writes, and
// NAME-live-range.txt, of which the ranges and the peak are read.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/types/shape.h"

namespace hlo {

struct BufferFile {
  struct Value {
    int64_t id = 0;
    std::string instruction;
    Dims index;                    // of the instruction's shape
    int64_t size = 0, offset = 0;  // bytes, in the allocation
    std::string shape;             // as it stands
  };
  struct Part {
    int64_t number = 0, size = 0;  // bytes
    int64_t parameter = -1;        // its number; -1: none
    int64_t color = 0;             // memory space
    bool constant = false, thread_local_ = false, live_out = false, temporary = false, output = false;
    std::vector<Value> values;
  };
  std::vector<Part> allocations;
  // Bytes that the program holds: all allocations but those of a thread (bodies of reductions).
  int64_t total() const;
};

// Throws Failure(kIo) with file and line where the text is not of that grammar.
BufferFile read_buffer_file(std::string_view text, const std::string& label);

struct LivePeak {
  struct Value {
    std::string instruction;
    Dims index;
    int64_t size = 0;
  };
  // When a value lies in memory, both ends included, by places in the flattened schedule.
  struct Range {
    std::string instruction;
    Dims index;
    int64_t first = 0, last = 0;
  };
  int64_t at = -1;                    // place in the flattened schedule; -1: the text names no peak
  std::vector<Value> values;          // largest first
  std::vector<Range> ranges;          // of all values
  std::vector<std::string> schedule;  // the flattened one, instructions by name
  int64_t total() const;
};
LivePeak read_live_range_file(std::string_view text, const std::string& label);

}  // namespace hlo
