// Inside of the GPU's schedules (gpu_kernel.cc): a thread some elements side by side; a warp, a block or a column of
// one an output of a reduction; a block a row of a row fusion, a tile of a transpose; updates with atomics; sorting
// networks. The same builder makes host code of them for the emulated grid.
#pragma once
#include <functional>

#include "gpu_exec/emit/kernel_builder.h"

namespace hlo {

using llvm::Value;

constexpr int64_t kWarp = 32;

class GpuBuilder : public KernelBuilder {
 public:
  using KernelBuilder::KernelBuilder;

  Kernel build();

 private:
  using Buffer = ElementEmitter::Buffer;
  using Frame = ElementEmitter::Frame;
  // What a kernel's body is written with.
  struct Code {
    ElementEmitter& e;
    llvm::Function* f;
    Frame frame;
    std::vector<const Buffer*> results;
    Value *block, *thread;  // of the index type
    std::vector<Value*> numbers;
  };

  void schedules();

  // Outputs that share their loop: of one shape and layout; parts of one reduction.
  std::vector<std::vector<size_t>> groups() const;

  // All of them reductions of the same dimensions of inputs alike.
  bool reduces_alike(const std::vector<size_t>& group) const;

  // --- functions ---

  Value* special(llvm::Intrinsic::ID id, const char* emulated);

  // A function that gets all inputs, the results of those numbers, and so many numbers.
  void function(KernelPart part, const std::vector<size_t>& results, size_t numbers,
                const std::function<void(Code&)>& body);

  // An array that the threads of a block share.
  Value* shared(llvm::Type* element, int64_t n, const std::string& name);
  void barrier();

  void when(Code& c, Value* condition, const std::function<void()>& body);

  // --- elements ---

  // The index whose place in memory is that number: threads side by side write side by side.
  const ElementIndex* physical_index(ElementEmitter& e, ShapeId id, Value* at);
  const ElementIndex* of_shape(ElementEmitter& e, const ElementIndex* at, ShapeId id);

  // Elements a thread writes: those of 16 bytes of the widest output, where code needs no index a dimension.
  int64_t unrolled(const std::vector<size_t>& group) const;

  void loop(const std::vector<size_t>& group);

  // --- reductions ---

  // One reduction of a group, whose parts (of several values) are combined together.
  struct Sum {
    InstId inst;
    CompId reducer;
    std::vector<llvm::Type*> types;
    llvm::Type* wide = nullptr;  // sums kept without rounding
    std::vector<Value*> state;   // allocas
  };
  std::vector<Sum> sums_of(Code& c, const std::vector<InstId>& reduces);
  std::vector<Value*> values_at(Code& c, const Frame& f, const Sum& s, const std::vector<Value*>& at);
  std::vector<Value*> combined(Code& c, const Sum& s, const std::vector<Value*>& a, const std::vector<Value*>& b);
  std::vector<Value*> loaded(const Sum& s);
  void keep(const Sum& s, const std::vector<Value*>& v);
  std::vector<Value*> initial(Code& c, const Frame& f, const Sum& s);
  // The states of the elements first, first + step … below n. Every thread begins with an element of its own: there are
  // as many at least. `index`: of the input, for an element's number.
  void accumulate(Code& c, const Frame& f, std::span<const Sum> sums, Value* first, int64_t step, int64_t n,
                  const std::function<std::vector<Value*>(Value*)>& index);
  // Lane 0's state becomes that of its warp.
  void over_warp(Code& c, const Sum& s);
  // What every thread of the block then knows: the state of all of `threads` (a multiple of 32), combined.
  std::vector<Value*> over_block(Code& c, const Sum& s, int64_t threads, const std::string& name);
  // Bits of one are kept as bytes.
  llvm::Type* stored(llvm::Type* t) { return t->isIntegerTy(1) ? b_.getInt8Ty() : t; }
  void put(Value* array, Value* at, Value* v);
  Value* get(Value* array, Value* at, llvm::Type* type);
  Value* as_output(Code& c, const Sum& s, const KernelOutput& o, const std::vector<Value*>& v);

  // Elements of a reduction whose reduced dimensions are the minor ones of its input; 0 for another.
  int64_t row_length(InstId i) const;

  // The input's index of a row's element: `kept` by the output's dimensions, the others by their order in memory.
  std::vector<Value*> input_index(Code& c, const Shape& in, const Dims& over, const std::vector<Value*>& kept,
                                  Value* k);

  void row_reduction(const std::vector<size_t>& group, int64_t n);

  // The minor dimension stays: 32 columns side by side, rows of threads down each.
  bool column_reduction(const std::vector<size_t>& group);

  // A block a row: its sums one after another, known to all of its threads, then its elements.
  void row_fusion_kernel(const RowFusion& rows);

  // --- transposes ---

  // The transpose (or copy) behind the elementwise operations that make an output, which changes the minor dimension.
  InstId transposing(InstId i, int depth = 0) const;
  // Is an element of `hero` needed for the same element of `output` alone, and nowhere else (not by sums over it, not
  // shifted)? Else what a tile holds of it is not all that is read.
  bool read_in_place(InstId hero, InstId output) const;
  // Dimensions of a transpose's result: the minor one of what it reads, and its own; those of one are nothing.
  std::pair<int64_t, int64_t> minors(InstId i) const;

  bool transpose(size_t which);

  // --- what changes an array in place ---

  // The operand of the kernel that an instruction of it stands for; -1 for another.
  int operand_of(InstId i) const;

  // ROOT dynamic-update-slice of a parameter that nothing else reads: only the update is written.
  bool in_place();

  [[noreturn]] void refuse(std::string_view why) const {
    fail(FailureKind::kUnsupported, "no kernel for {} ({}): {}", m_.inst_name(inst_), op_text(m_.op(root())), why);
  }

  // What a scatter's attributes say of dimensions.
  struct ScatterForm {
    InstId indices;
    std::vector<InstId> operands, updates;
    Dims window, window_in;    // dimensions of an update's window, and of the operand for each
    Dims batch_up, batch_idx;  // those that number the indices: of the updates and of the indices
    Dims apart;                // of the updates: two that differ there never meet
  };
  ScatterForm scatter_form() const;

  // Emits `body` with the place that the update at `at` goes to, where it lies inside the operand.
  void scattered(Code& c, const ScatterForm& s, const std::vector<Value*>& at,
                 const std::function<void(std::vector<Value*>)>& body);

  // A thread an element of the updates; what meets at one place is combined atomically. Where that cannot be, since the
  // last one counts or an element is more than a word, a thread has the updates of a place one after another: threads
  // differ in dimensions that no index moves.
  void scatter();
  void take_over(const ScatterForm& s);

  // What lies there becomes combiner(it, v), whoever else changes it.
  void atomically(Code& c, ElementType type, llvm::Type* memory, Value* place, CompId combiner, Value* v);

  // A sorting network over every row: steps of one distance each, all of them ascending, so that what lies behind the
  // row's end never moves. It moves equal elements past each other. Where that must not be, and no pass has made the
  // order a total one (stable-sort-expander), neighbours change places, as many steps as there are elements.
  void sort();
  void take_over(InstId sort);

  // 32 bits at a time; narrower and wider values in parts.
  Value* shuffle_down(Value* v, int delta);
};

}  // namespace hlo
