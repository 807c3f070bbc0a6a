// Where kernels of the GPU's schedules run: a card, or the grid that emulates one.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/eval/evaluator.h"

namespace hlo {

struct Kernel;  // kernel.h, which needs LLVM

// A product of matrices, row-major: out[b] = epilogue(alpha · left[b] · right[b] + beta · matrix[b] + bias), of m × k
// and k × n.
struct MatrixProduct {
  ElementType type = ElementType::F32;                            // of the result and of `matrix`
  ElementType left = ElementType::F32, right = ElementType::F32;  // of the operands
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_left = false, transpose_right = false;  // as they lie in memory: k × m, n × k
  double alpha = 1, beta = 0;
  enum class Epilogue { kNone, kRelu, kGelu } epilogue = Epilogue::kNone;  // GELU by tanh
  bool bias = false;                                                       // n values of type bias_type, for every row
  ElementType bias_type = ElementType::F32;
  bool before = false;                                          // what goes into the epilogue is kept as well
  bool left_scale = false, right_scale = false, scale = false;  // f32 factors of operands and result
  bool tf32 = false;  // of f32: its operands may be rounded to TF32, as XLA does where the module does not forbid it
  bool operator==(const MatrixProduct&) const = default;

  // Nothing but a product of one type?
  bool plain() const {
    return left == type && right == type && epilogue == Epilogue::kNone && !bias && !before && !left_scale &&
           !right_scale && !scale;
  }
};

// Where its parts lie on the device; null: it has none such.
struct ProductArrays {
  const char *left = nullptr, *right = nullptr, *matrix = nullptr, *bias = nullptr;
  const char *left_scale = nullptr, *right_scale = nullptr, *scale = nullptr;
  char *out = nullptr, *before = nullptr;
};

// A convolution of x (batch, features, spatial …) with w (features out, features in of a group, spatial …) to y, or one
// of the two products that lead back. Sizes and steps (in elements) of the three arrays; groups are features of x by
// those of w.
struct ConvolutionForm {
  enum class Kind { kForward, kInput, kFilter } kind = Kind::kForward;  // makes y of x, w; x of y, w; w of x, y
  ElementType type = ElementType::F32;                                  // of all
  Dims x, x_steps, w, w_steps, y, y_steps;
  Dims low, high, strides, dilations;  // by spatial dimension; padding of x
  // Forward: relu(scale · convolution + side_scale · side + bias), side like y, bias one value a feature.
  double scale = 1, side_scale = 0;
  bool side = false, bias = false, relu = false;
  ElementType bias_type = ElementType::F32;
  bool tf32 = false;  // as of a product
};
struct ConvolutionArrays {
  const char *first = nullptr, *second = nullptr, *side = nullptr, *bias = nullptr;
  char* out = nullptr;
};

// A kernel that somebody else wrote, as PTX that is taken as it stands, and how it is launched.
struct ForeignKernel {
  std::string function, file;  // of messages
  std::array<int64_t, 3> grid{1, 1, 1}, threads{1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic shared memory
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;

  // Code for each list of instructions that make the same kernel; of those without, the reason. Kernels are numbered
  // in this order, those of a later call behind those of an earlier one. Throws Failure(kUnsupported) where the device
  // takes none of the code.
  virtual std::vector<Kernel> load(const Module& m, const std::vector<std::vector<InstId>>& kinds,
                                   std::vector<std::pair<size_t, std::string>>* without) = 0;

  // Code of the caller's for kernels that `load` is going to load, by function name. Throws Failure(kUnsupported) where
  // the device takes none.
  virtual void replace(const std::map<std::string, EvalOptions::Replacement>& replaced);
  // Those of them that no kernel was named after.
  virtual std::vector<std::string> unused_replacements() const { return {}; }
  // Functions that were loaded, by name, and what they compute.
  virtual std::vector<std::string> functions() const { return {}; }

  // Loads `kernel.function` of that PTX; its number. Throws Failure(kUnsupported) with the driver's own words, or where
  // the device takes no such code.
  virtual size_t load_foreign(const std::string& ptx, const ForeignKernel& kernel);
  // With the bytes of each parameter.
  virtual void launch_foreign(size_t /*number*/, std::span<const std::vector<char>> /*arguments*/) {}

  // Its memory is the host's, which it may be handed as it is, and arrays lie row by row whatever their layout.
  virtual bool on_host() const { return false; }

  // Memory, aligned to 256 bytes; null where there is none left.
  virtual char* allocate(int64_t bytes) = 0;
  virtual void release(char* memory) = 0;
  virtual int64_t free_bytes() const = 0;
  // In the order of the calls, with the launches; `read` waits for all before it.
  virtual void write(char* to, const char* from, int64_t bytes) = 0;
  virtual void read(char* to, const char* from, int64_t bytes) = 0;
  virtual void copy(char* to, const char* from, int64_t bytes) = 0;
  // `count` times the low `width` bytes (1, 2 or 4) of the pattern.
  virtual void fill(char* to, uint32_t pattern, int width, int64_t count) = 0;
  // Runs part `part` of kernel `kernel` with those pointers and numbers.
  virtual void launch(size_t kernel, size_t part, std::span<char* const> pointers,
                      std::span<const int32_t> numbers) = 0;
  virtual void wait() = 0;

  // Work is done in the order of its calls on one stream; 0 from the start. What is called from now on goes to that
  // one.
  virtual void use_stream(size_t) {}
  // What was called on stream `before` until now is done before what is called on stream `after` from now on.
  virtual void order(size_t /*before*/, size_t /*after*/) {}
  // The calling thread is going to use the device.
  virtual void enter() {}

  // A library's product: does it have one, and the call of what it has.
  virtual bool multiplies(const MatrixProduct&) { return false; }
  virtual void multiply(const MatrixProduct&, const ProductArrays&) {}
  virtual bool convolves(const ConvolutionForm&) { return false; }
  virtual void convolve(const ConvolutionForm&, const ConvolutionArrays&) {}
  // Work that the device has its own way for, beside kernels and those calls.
  virtual bool performs(const Module&, InstId) { return false; }
  virtual void perform(const Module&, InstId, std::span<char* const> /*in*/, std::span<char* const> /*out*/) {}
  virtual std::string library() const { return {}; }  // names and versions; empty: none

  // A point in the order of the work, and the time between two that have passed.
  virtual size_t mark() = 0;
  virtual int64_t nanoseconds(size_t from, size_t to) = 0;
  virtual void forget_marks() = 0;

  // What is called between begin and end, both on stream 0, is kept as a graph that `replay` runs by its number; false,
  // none: not with this device.
  virtual bool begin_graph() { return false; }
  virtual std::optional<size_t> end_graph() { return std::nullopt; }
  virtual void replay_graph(size_t) {}
};

// The GPU's kernels as host code, thread by thread. Slow: to see that they are right.
std::unique_ptr<Device> emulated_device();

}  // namespace hlo
