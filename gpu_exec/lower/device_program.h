// A module as a device runs it: kernels, library calls, copies and control flow in the order of a schedule, every value
// in a slice that the buffer assignment gave it before the run.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "gpu_exec/driver/device.h"
#include "gpu_exec/emit/kernel.h"
#include "gpu_exec/lower/library_calls.h"
#include "gpu_exec/lower/lowering.h"
#include "ir/program/buffer.h"

namespace hlo {

struct BufferRules;

// Bytes of an array on a device: elements of less than a byte take one.
int64_t device_bytes(const Shape& s);

struct BufferSlice {
  int allocation = -1;
  int64_t offset = 0;
  bool operator==(const BufferSlice&) const = default;
};
struct SliceCopy {
  BufferSlice from, to;
  int64_t bytes = 0;
};

struct DeviceStep {
  enum Kind {
    kKernel,
    kProduct,
    kConvolution,
    kOwn,   // the device's own way
    kCopy,  // in[k] to out[k]
    kFill,
    kWhile,        // condition, body
    kConditional,  // in[0] says which
    kCall,
    kAsyncStart,  // a sequence, or none and the moves alone, beside what follows …
    kAsyncDone,   // … up to here
    kHost,        // by the evaluator, with copies to and fro
    kNoThunk      // no work: told to who watches values
  } kind = kHost;
  InstId inst;
  std::vector<BufferSlice> in, out;      // leaves of the operands (a kernel's constants behind them) and of the result
  std::vector<int> reads, writes;        // the same as values of the buffer assignment
  std::vector<SliceCopy> before, after;  // around the work
  int zeroed = -1;                       // an element of `out` that the work leaves open, and zeros fill
  size_t kernel = 0;
  Product product;
  ConvolutionForm convolution;
  uint32_t pattern = 0;  // kFill: of `width` bytes
  int width = 0;
  int64_t trips = -1;  // kWhile, where they are known: its condition is not asked
  size_t stream = 0;   // of an asynchronous call
  std::vector<size_t> sequences;
};

struct DeviceSequence {
  std::vector<DeviceStep> steps;
  // Runs of steps in which nothing asks the host: each can be launched as one graph.
  struct Segment {
    size_t first = 0, last = 0;
  };
  std::vector<Segment> segments;
  InstId root;
};

class DeviceProgram {
 public:
  // Compiles kernels for the device, inserts copies, schedules and assigns buffers. `m` stays as it is. Throws
  // Failure(kUnsupported) where `devices` runs of it do not fit into the device's memory, with the sum.
  DeviceProgram(Device& device, const Module& m, int64_t devices, const EvalOptions& options,
                const LoweringOptions& lowering = {});

  const Module& module() const { return *m_; }
  const DeviceSequence& sequence(size_t k) const { return sequences_[k]; }
  size_t entry() const { return entry_; }
  const Kernel& kernel(size_t k) const { return kernels_[k]; }
  const BufferAssignment& buffers() const { return buffers_; }
  BufferSlice slice(int value) const;
  std::vector<int64_t> allocations() const { return allocations_; }  // bytes each

  // Is this allocation only read, and the host's own bytes do for it? It has no memory then.
  bool borrowed(size_t allocation) const { return borrowed_[allocation]; }

  // What stands in memory before the first run: a constant instruction's value, or a literal row by row.
  struct Initial {
    InstId inst;
    LitId literal;
    BufferSlice to;
  };
  const std::vector<Initial>& initials() const { return initials_; }
  // Does a run change its parameters' memory?
  bool changes_parameters() const { return changes_parameters_; }
  // The caller's instruction that this one is; invalid where it has none such.
  InstId origin(InstId i) const;

  // For the report.
  size_t launched_instructions() const { return launched_; }
  size_t distinct_kernels() const { return distinct_; }
  size_t library_calls() const { return library_calls_; }
  const std::vector<std::string>& left_to_evaluator() const { return evaluated_; }

 private:
  void prepare(const Module& m, Lowering& steps);
  void forget_trimmed(const Module& m);
  void compile();
  bool has_stale_kernels() const;
  void open_fusions();
  void set_products_free(PassContext& context);
  void call_body(InstId fusion);
  void name_reshapes();
  InstId substitute(InstId old, Opcode op, std::vector<InstId> operands, AttrsId attrs);
  bool by_library(InstId i);
  bool must_alias(InstId i) const;
  std::optional<std::pair<uint32_t, int>> fill_pattern(InstId i) const;
  BufferRules rules() const;
  int in_place(InstId i, size_t leaf) const;
  bool assign();
  void check_memory(int64_t devices) const;
  void find_borrowed();

  size_t build(CompId c);
  void add(InstId i, DeviceSequence& s);
  void choose(DeviceStep& step);
  bool choose_by_opcode(DeviceStep& step);
  void keep_apart(DeviceStep& step);
  bool reads_element(InstId call, size_t element) const;
  bool reads_before_it_writes(InstId i, size_t operand) const;
  BufferSlice scratch(int64_t bytes);
  void find_segments(DeviceSequence& s);
  int64_t launches(const DeviceStep& s) const;
  int64_t launches(size_t sequence) const;

  Device& device_;
  const EvalOptions& options_;
  bool alone_;
  size_t origins_ = 0;
  std::unique_ptr<Module> m_;
  std::vector<Kernel> kernels_;
  std::unordered_map<InstId, size_t> by_inst_;
  std::unordered_map<InstId, std::string> refused_;
  std::unordered_map<InstId, InstId> origin_;
  BufferAssignment buffers_;
  std::vector<int64_t> allocations_;
  std::vector<bool> borrowed_;
  std::vector<Initial> initials_;
  std::unordered_map<LitId, BufferSlice> literals_;
  std::vector<DeviceSequence> sequences_;
  size_t entry_ = 0, launched_ = 0, distinct_ = 0, library_calls_ = 0, streams_ = 0;
  bool changes_parameters_ = false;
  std::vector<std::string> evaluated_;
};

}  // namespace hlo
