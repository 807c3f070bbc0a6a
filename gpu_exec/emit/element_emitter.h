// A computation to LLVM IR, one output element at a time: what fusion's loops, reductions and applied functions are
// made of, on the host and on the GPU alike. Values in registers: pred i1, integers in as many bits as their type has
// (a byte in memory where that is less), floats of 16 bits and fewer as f32 that hold a value of their own type (each
// operation rounds), f32 and f64 as they are, complex numbers as vectors of two.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace hlo {

// How elements lie in memory.
enum class Addressing {
  kLogical,   // row-major by dimensions, a byte a sub-byte element: the evaluator's values
  kPhysical,  // by layout, as buffers of the GPU
};

struct EmitOptions {
  Addressing addressing = Addressing::kLogical;
  bool gpu = false;         // NVPTX: math through libdevice
  bool emulated = false;    // the GPU's schedule as host code: thread numbers and shuffles are calls
  int index_bits = 64;      // of index arithmetic
  bool reassociate = true;  // sums of floats in any order, as XLA's own CPU and GPU code has them
};

// An index into one shape: a value a dimension, or the row-major number alone, from which they follow when needed.
struct ElementIndex {
  std::vector<llvm::Value*> dims;
  llvm::Value* linear = nullptr;
  ShapeId shape;
};

// Dimensions by their order in memory, major first.
Dims major_first(const Shape& s);

class ElementEmitter {
 public:
  // An array in memory.
  struct Buffer {
    llvm::Value* base = nullptr;
    ShapeId shape;
    // What accesses of it alias and do not, for pointers that the optimiser knows nothing about; may be null.
    llvm::MDNode *scope = nullptr, *others = nullptr;
  };
  // What a computation's parameter stands for: one of these.
  struct Frame;
  struct Binding {
    const Buffer* buffer = nullptr;
    llvm::Value* scalar = nullptr;
    InstId inst;  // of `frame`
    const Frame* frame = nullptr;
  };
  struct Frame {
    std::vector<Binding> params;
    std::map<InstId, const Buffer*> in_memory;  // instructions whose values are read from there
    std::map<InstId, llvm::Value*> values;      // those that have one value wherever the code asks for them
  };

  // Emits where `builder` stands. Constants too large to stand in the code are asked for by `constant_buffer`.
  ElementEmitter(const Module& m, llvm::IRBuilder<>& builder, EmitOptions options,
                 std::function<llvm::Value*(LitId)> constant_buffer);

  // The element of an array instruction; of `part` where its value is a tuple (a variadic reduce). Throws
  // Failure(kUnsupported) naming the instruction it has no code for.
  llvm::Value* element(const Frame& frame, InstId inst, const ElementIndex* index, int part = 0);
  // A computation on scalars: its results, one an element of its root's tuple.
  std::vector<llvm::Value*> apply(CompId comp, const std::vector<llvm::Value*>& arguments);

  // A row-major number over those sizes as an index a dimension.
  std::vector<llvm::Value*> delinearized(const Dims& dims, llvm::Value* linear);
  const ElementIndex* index_of(ShapeId shape, std::vector<llvm::Value*> dims);
  const ElementIndex* index_of_linear(ShapeId shape, llvm::Value* linear);
  const Frame* add_frame(Frame f) {
    frames_.push_back(std::move(f));
    return &frames_.back();
  }
  const Buffer* add_buffer(Buffer b) {
    buffers_.push_back(b);
    return &buffers_.back();
  }

  // A start index, moved into [0, most] as XLA moves it.
  llvm::Value* clamped_start(const Frame& frame, InstId start, int64_t most);
  // Where the computation adds its two parameters, the type that such sums are kept in without rounding: on the host
  // f64 for floats narrower than that, as the evaluator; on the GPU f32 for those of 16 bits and fewer. Null: as it is.
  llvm::Type* sum_type(CompId reducer) const;
  llvm::Value* widened(llvm::Value* v, llvm::Type* to) { return v->getType() == to ? v : b_.CreateFPExt(v, to); }
  // Such a sum as a value of the type.
  llvm::Value* summed(ElementType t, llvm::Value* v) {
    if (!v->getType()->isDoubleTy()) return rounded(t, v);
    return t == ElementType::F32 ? b_.CreateFPTrunc(v, b_.getFloatTy()) : rounded(t, to_odd(v));
  }
  llvm::Value* address(const Buffer& buffer, const ElementIndex* index);
  llvm::Value* load(const Buffer& buffer, const ElementIndex* index);
  void store(const Buffer& buffer, const ElementIndex* index, llvm::Value* value);
  llvm::Type* register_type(ElementType t) const;
  llvm::Type* memory_type(ElementType t) const;
  llvm::Value* number(int64_t n) const { return llvm::ConstantInt::get(index_type_, static_cast<uint64_t>(n), true); }
  llvm::Type* index_type() const { return index_type_; }
  // i from `from` to `to` by `step`; the body is emitted within and its values are forgotten behind it.
  void loop(llvm::Value* from, llvm::Value* to, llvm::Value* step, const std::string& name,
            const std::function<void(llvm::Value*)>& body);
  // What is emitted within is known within only: for code behind a branch.
  void scoped(const std::function<void()>& body);
  llvm::Value* to_memory(ElementType t, llvm::Value* v);
  llvm::Value* from_memory(ElementType t, llvm::Value* v);

  // Does the code of this computation ask for indices (or is a flat loop over elements enough)?
  static bool flat(const Module& m, CompId comp, const Shape& shape);

 private:
  using Key = std::tuple<const Frame*, InstId, const ElementIndex*, int>;  // the last: the part of a tuple
  struct Scope {
    std::map<Key, llvm::Value*> values;
    std::map<const ElementIndex*, std::vector<llvm::Value*>> dims;
    std::map<const ElementIndex*, llvm::Value*> linear;
    std::map<std::tuple<int, llvm::Value*, llvm::Value*>, llvm::Value*> sums;
    std::map<std::tuple<const ElementIndex*, InstId>, const ElementIndex*> indices;
  };
  [[noreturn]] void refuse(InstId inst, std::string_view why) const;
  // The value where it is emitted already; null.
  llvm::Value* known(const Frame& frame, InstId inst, const ElementIndex* index, int part) const;
  void emit_operands(const Frame& frame, InstId inst, const ElementIndex* index);
  void check_types(InstId inst) const;
  llvm::Value* emit(const Frame& frame, InstId inst, const ElementIndex* index, int part);
  llvm::Value* parameter(const Frame& frame, InstId inst, const ElementIndex* index, int part);
  llvm::Value* iota(InstId inst, const ElementIndex* index);
  llvm::Value* broadcast(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* reshape(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* bitcast(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* transpose(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* reverse(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* slice(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* dynamic_slice(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* dynamic_update_slice(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* pad(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* reduction(const Frame& frame, InstId inst, const ElementIndex* index, int part);
  llvm::Value* tuple_element(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* called(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* operand_element(const Frame& frame, InstId inst, size_t k, const ElementIndex* index);
  llvm::Value* elementwise(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* unary(InstId inst, ElementType t, llvm::Value* a);
  llvm::Value* real_unary(InstId inst, llvm::Value* a);
  llvm::Value* binary(InstId inst, ElementType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(InstId inst, ElementType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* convert(ElementType from, ElementType to, llvm::Value* v);
  // A value's bits as an integer of just as many, and back.
  llvm::Value* bits_of(ElementType t, llvm::Value* v);
  llvm::Value* from_bits(ElementType t, llvm::Value* bits);
  llvm::Value* bitcast_convert(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* reduced_precision(llvm::Value* v, int exponent_bits, int mantissa_bits);
  llvm::Value* stochastic_convert(InstId inst, ElementType from, ElementType random, ElementType to, llvm::Value* v,
                                  llvm::Value* chance);
  llvm::Value* rounded(ElementType t, llvm::Value* v);
  llvm::Value* narrowed(ElementType t, llvm::Value* v);
  llvm::Value* encoded(ElementType t, llvm::Value* v);
  llvm::Value* power_of_two(llvm::Value* v);
  llvm::Value* to_odd(llvm::Value* v);
  llvm::Value* complex(InstId inst, const std::vector<llvm::Value*>& v);
  llvm::Value* complex_of(llvm::Value* re, llvm::Value* im);
  llvm::Value* real_part(llvm::Value* z) { return b_.CreateExtractElement(z, uint64_t{0}); }
  llvm::Value* imaginary_part(llvm::Value* z) { return b_.CreateExtractElement(z, uint64_t{1}); }
  llvm::Value* complex_product(llvm::Value* x, llvm::Value* y);
  llvm::Value* complex_quotient(llvm::Value* x, llvm::Value* y);
  llvm::Value* complex_exponential(llvm::Value* z);
  llvm::Value* complex_logarithm(llvm::Value* z);
  llvm::Value* complex_root(llvm::Value* z);
  llvm::Value* complex_tanh(llvm::Value* z);
  llvm::Value* complex_power(llvm::Value* x, llvm::Value* y);
  llvm::Value* complex_sign(llvm::Value* z, llvm::Value* re, llvm::Value* im);
  llvm::Value* complex_expm1(llvm::Value* z, llvm::Value* re, llvm::Value* im);
  llvm::Value* complex_log1p(llvm::Value* z, llvm::Value* re, llvm::Value* im);
  // `re`, `im`: of the first operand.
  llvm::Value* complex_atan2(llvm::Value* y, llvm::Value* x, llvm::Value* re, llvm::Value* im);
  llvm::Value* power(bool sign, llvm::Value* base, llvm::Value* exponent);
  llvm::Value* divide(ElementType t, llvm::Value* a, llvm::Value* b, bool remainder);
  llvm::Value* constant(InstId inst, const ElementIndex* index);
  std::vector<llvm::Value*> reduce(const Frame& frame, InstId inst, const ElementIndex* index);
  std::vector<llvm::Value*> reduce_window(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* select_and_scatter(const Frame& frame, InstId inst, const ElementIndex* index);
  void window_places(const Window& window, const Dims& sizes, const std::vector<llvm::Value*>& out,
                     const std::function<void(const std::vector<llvm::Value*>&, llvm::Value*)>& body);
  void when(llvm::Value* condition, const std::function<void()>& body);
  // A place in the function's frame that holds `start` from here on.
  llvm::Value* variable(llvm::Type* type, llvm::Value* start);
  // The sum of products that an element of a dot or a convolution is: in f64 where that is among the types, in f32 for
  // other floats, integers in the result's type. Refuses, naming `inst`, what has no such sum.
  struct ProductSum {
    ElementType left, right, out;
    llvm::Type* type = nullptr;
    llvm::Value* at = nullptr;
  };
  ProductSum product_sum(InstId inst);
  void add_product(const ProductSum& s, llvm::Value* p, llvm::Value* q);
  llvm::Value* finished(const ProductSum& s);  // as a value of the result's type
  llvm::Value* dot(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* convolution(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* gather(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* concatenate(const Frame& frame, InstId inst, const ElementIndex* index);
  llvm::Value* choose(llvm::Value* condition, llvm::Type* type, const std::function<llvm::Value*()>& yes,
                      const std::function<llvm::Value*()>& no);
  llvm::Value* call_math(const char* f32_name, llvm::Value* a, llvm::Value* b = nullptr);
  llvm::Value* intrinsic(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b = nullptr);
  // exp, log, sin or cos: the GPU's by libdevice, the host's by LLVM's intrinsics, which vectorise through libmvec.
  llvm::Value* real_function(const char* name, llvm::Value* a);
  llvm::Value* tanh(llvm::Value* a);
  llvm::Value* scalar_operand(const Frame& frame, InstId inst);

  const std::vector<llvm::Value*>& dims(const ElementIndex* index);
  llvm::Value* linear(const ElementIndex* index);
  // The index of `from` whose row-major number is that of `index` in `to`: dimensions that agree pass through.
  std::vector<llvm::Value*> reshaped(const Dims& from, const std::vector<llvm::Value*>& at, const Dims& to);
  // Index arithmetic: constants folded, the same sum once a scope.
  llvm::Value* add(llvm::Value* a, llvm::Value* b);
  llvm::Value* mul(llvm::Value* a, llvm::Value* b);
  llvm::Value* div(llvm::Value* a, int64_t b);
  llvm::Value* rem(llvm::Value* a, int64_t b);
  llvm::Value* cached(int op, llvm::Value* a, llvm::Value* b, const std::function<llvm::Value*()>& make);

  const Module& m_;
  Universe& u_;
  llvm::IRBuilder<>& b_;
  EmitOptions options_;
  std::function<llvm::Value*(LitId)> constant_buffer_;
  llvm::IntegerType* index_type_;
  std::deque<ElementIndex> indices_;
  std::deque<Frame> frames_;
  std::deque<Buffer> buffers_;
  std::vector<Scope> scopes_;
  int depth_ = 0;          // of calls of element() in one another
  bool reducing_ = false;  // inside an applied reducer: its sums may be reordered
};

}  // namespace hlo
