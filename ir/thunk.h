// The thunk schedule as data: what the runtime does, in order.
#pragma once
#include <string>
#include <vector>

#include "ir/buffer.h"

namespace hlo {

struct ThunkSlice {
  int allocation = -1;
  int64_t offset = 0, size = 0;
  bool write = false;
};

struct Thunk {
  int id = 0;
  std::string kind;  // XLA's: kKernel, kCopy, kGemm, kConvolution, kWhile, kConditional …
  InstId inst;
  std::string description;  // kernel name, shapes
  std::vector<ThunkSlice> slices;
  std::vector<std::pair<std::string, std::vector<Thunk>>> nested;  // condition/body, branches
};

std::vector<Thunk> build_thunks(const Module& scheduled, const BufferAssignment& buffers);
// One line a thunk, in the grammar of XLA's thunk_sequence.txt; nested sequences indented.
std::string thunks_text(const Module& m, const std::vector<Thunk>& thunks);
std::string thunks_json(const Module& m, const std::vector<Thunk>& thunks);
size_t count_thunks(const std::vector<Thunk>& thunks);

}  // namespace hlo
