// XLA's own program as its dump holds it: the final module, where the buffer assignment puts every array, what the
// runtime does in order (thunks), and the kernels that the emitters wrote (PTX). Read to be run in place of ours.
//
//   MODULE.sm_9.0a_gpu_after_optimizations.txt                    the module, MODULE = module_0001.jit_f
//   MODULE.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt
//   MODULE.thunk_sequence.txt, MODULE.thunk_metadata.txt
//   MODULE.ptx, MODULE.N.ptx                                      one or several kernels each
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"
#include "replay/record/recording/recording.h"
#include "replay/report/kernels/ptx_entries.h"
#include "replay/report/kernels/thunk_file.h"
#include "replay/report/memory/buffer_file.h"

namespace hlo {

// Bytes of an array as XLA's buffer assignment places it.
struct XlaSlice {
  size_t allocation = 0;  // of BufferFile::allocations
  int64_t offset = 0, size = 0;
  bool operator==(const XlaSlice&) const = default;
};

// Where an instruction's array lies. One that makes none of its own (bitcast, tuple, a loop's state) is followed to
// what does.
class XlaSlices {
 public:
  // Throws Failure(kIo) where a slice leaves its allocation, or numbers do not fit together.
  XlaSlices(const Module& m, BufferFile file, const std::string& label);
  // Throws Failure(kUnsupported) naming the array where the file has no place for it, or one that is too small.
  XlaSlice of(InstId i, const Dims& index) const;
  const BufferFile& file() const { return file_; }

 private:
  std::optional<XlaSlice> found(InstId i, Dims index) const;
  const Module& m_;
  BufferFile file_;
  std::string label_;
  std::map<std::pair<std::string, Dims>, XlaSlice> places_;
  std::map<CompId, InstId> callers_;
};

struct EmittedArgument {
  int operand = -1;  // of the instruction; -1: an array of its result
  Dims index;        // of that array in the result's shape
  ShapeId shape;
  XlaSlice slice;
};

// What one thunk does.
struct EmittedThunk {
  int64_t id = 0;
  std::string kind, instruction;  // by name; empty where the dump does not say
  InstId inst;                    // invalid where the module has none of that name
  // Of a kernel: function and PTX file (below the dump's folder), launch, arguments in the order of its parameters.
  std::string kernel, file;
  std::array<int64_t, 3> grid{1, 1, 1}, threads{1, 1, 1};
  int64_t shared_bytes = 0;
  std::vector<EmittedArgument> arguments;
  std::vector<PtxEntry::Parameter> parameters;
  std::string problem;  // of a kernel that cannot be launched: why
  std::vector<std::pair<std::string, std::vector<EmittedThunk>>> nested;
  bool is_kernel() const { return !kernel.empty(); }
};

struct EmittedProgram {
  std::string folder, module_file;  // the final module's text, below the folder
  std::unique_ptr<XlaSlices> slices;
  std::vector<EmittedThunk> thunks;
  std::map<std::string, std::string> ptx;  // texts by file
  std::vector<std::string> unused;         // "FILE: entry": kernels that no thunk launches
};

// The file of the final module in a dump. Throws Failure(kUsage) where there is none of a GPU's.
std::string emitted_module_file(const Recording& r);
// Throws Failure: kUsage where a file is missing (it is named), kIo where one cannot be read. Kernels that do not join
// have a problem, and do not stop the others. `m`, the final module, must outlive it.
EmittedProgram read_emitted(const Recording& r, const std::string& module_file, const Module& m);

}  // namespace hlo
