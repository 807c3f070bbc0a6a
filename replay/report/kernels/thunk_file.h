// XLA's own words on what its runtime does: NAME.thunk_sequence.txt (or …_after_thunk_passes.txt), which names kernels
// and launches, and NAME.thunk_metadata.txt, which says whose thunk it is. Our own of that grammar: ir/program/thunk.h.
#pragma once
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/types/shape.h"

namespace hlo {

struct ThunkLine {
  int64_t id = 0;
  std::string kind;    // kCustomKernel, kCopy, kWhile …
  std::string kernel;  // the function that a kernel's thunk launches; empty: it launches none
  std::array<int64_t, 3> grid{1, 1, 1}, threads{1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic shared memory
  // Of kAsyncStart: `computation_stream[N]` or `communication_stream[N]`, on which what is nested runs; empty: the file
  // does not say.
  std::string stream;
  int64_t async_id = -1;  // of kAsyncStart, and of the kAsyncDone that waits for it; -1: the file does not say
  size_t line = 0;
  // Sequences inside by label: condition, body, branches; "": the thunk's own (a command buffer's).
  std::vector<std::pair<std::string, std::vector<ThunkLine>>> nested;
};

// Throws Failure(kIo) with file and line where the text is not of that grammar: numbers beyond what a launch can have,
// lines that are indented below nothing.
std::vector<ThunkLine> read_thunk_file(std::string_view text, const std::string& label);

// Instructions by the thunk's id (profile_annotation); an id that stands there twice with two names has none.
std::map<int64_t, std::string> read_thunk_metadata(std::string_view text, const std::string& label);

}  // namespace hlo
