// The thunk schedule as data: what the runtime does, in order, in XLA's kinds (xla/backends/gpu/runtime/thunk.h).
#pragma once
#include <string>
#include <vector>

#include "ir/program/buffer.h"
#include "ir/target/gpu_target.h"

namespace hlo {

struct ThunkSlice {
  int allocation = -1;
  int64_t offset = 0, size = 0;
  bool write = false;
};

struct Thunk {
  int id = 0;        // from 1 in the order in which they are made, a loop before what is inside; a command buffer has 0
  std::string kind;  // kCustomKernel (a fusion's), kKernel (of an instruction by itself), kCopy, kConvolution, kWhile …
  InstId inst;       // of a command buffer: that of its first thunk
  std::string description;  // kernel and launch, or the kind again
  // Where it and what is in it runs, of kAsyncStart, kSend and kRecv (execution_streams; "unknown" where XLA has no
  // answer); empty: on the stream of the sequence that it is in.
  std::string stream;
  int async_id = 0;  // of kAsyncStart, and of the kAsyncDone that waits for it: the start's id
  std::vector<ThunkSlice> slices;
  std::vector<std::pair<std::string, std::vector<Thunk>>> nested;  // condition, body, branches; "": in the thunk itself
};

// Of a scheduled module. Launches are those of the GPU.
std::vector<Thunk> build_thunks(const Module& scheduled, const BufferAssignment& buffers,
                                const GpuTarget& target = default_gpu_target());
// XLA's last step: five and more in a row that need no answer from the device become one command buffer.
std::vector<Thunk> with_command_buffers(std::vector<Thunk> thunks);

// One line a thunk, in the grammar of XLA's thunk_sequence.txt; nested sequences indented.
std::string thunks_text(const Module& m, const std::vector<Thunk>& thunks);
std::string thunks_json(const Module& m, const std::vector<Thunk>& thunks);
size_t count_thunks(const std::vector<Thunk>& thunks);

}  // namespace hlo
