// What the stages of a module compute, as expressions that they share: one number for what is written in one way, over
// fusions, calls, tuples, branches and loops, and no array is made for it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace hlo {

using ExprId = uint32_t;
inline constexpr ExprId kNoExpr = UINT32_MAX;

struct DeviceMessage;
struct ShardTiling;

// One array. Its elements lie in row-major order of the shape that who reads it gives it: a reshape is its operand.
struct Expr {
  enum Kind : uint8_t {
    kParameter,  // leaf `leaf` of the entry's flattened parameters
    kFormal,     // what a loop's state is in any of its trips: some value
    kOperation,  // leaf `leaf` of what `inst` gives of its operands
    kBranch,     // operand 0 says which of the others; beyond them it is the last one. Of pred: true is the first
    kLoop,       // leaf `leaf` of the last state; operands: leaves of the first, of what a trip makes, the condition
    kView,       // elements of operand 0, see `view`
    kSum,        // elements of the operands multiplied, and these taken together: see `sum`
    kMessage,    // elements that this or other devices have of the operands: see `message`
  };
  Kind kind = kOperation;
  uint32_t leaf = 0;
  // The instruction that it is: opcode, attributes, shapes of operands. Valid while the Expressions live.
  const Module* m = nullptr;
  InstId inst;
  ShapeId shape;                 // an array, in the universe that all stages share
  std::vector<ExprId> operands;  // of each operand of `inst` its leaves
  // Element (i0, i1, …) of `sizes` is the operand's element offset + Σ i · steps: broadcasts, transposes, slices,
  // reversals and bitcasts, one upon the other.
  struct View {
    int64_t offset = 0;
    Dims sizes, steps;
  } view = {};
  // Of a kSum: term (i0, i1, …) is the product of its operands' elements, the first's by `view`, the others' by `more`,
  // whose sizes are the same. The first `kept` dimensions are the result's, what lies along the others is taken
  // together by `by`, associative and commutative, its initial value the neutral one. Of several operands that is an
  // addition.
  struct Sum {
    Opcode by = Opcode::Add;
    size_t kept = 0;
    std::vector<View> more;
    const View& of(size_t operand, const View& first) const { return operand ? more[operand - 1] : first; }
  };
  std::shared_ptr<const Sum> sum = nullptr;
  std::shared_ptr<const DeviceMessage> message = nullptr;
  uint32_t devices = 0;  // of a kFormal: which devices have the same, a number of DeviceClasses
};

// The value of an instruction: an array or a tuple of them.
struct ExprTree {
  ExprId id = kNoExpr;  // of a tuple or a token: none
  ShapeId shape;
  std::vector<ExprTree> elements;

  void leaves(std::vector<ExprId>* out) const;  // arrays, in order
};

class DeviceClasses;

class Expressions {
 public:
  Expressions();
  ~Expressions();
  Expressions(const Expressions&) = delete;
  Expressions& operator=(const Expressions&) = delete;
  const Expr& operator[](ExprId e) const { return all_[e]; }
  const std::vector<Expr>& all() const { return all_; }
  size_t size() const { return all_.size(); }

  // The one that is the same as that of this key, which says all that it computes; `own`: that of the key.
  ExprId find_or_add(uint64_t key, Expr e, ExprId* own = nullptr);
  // From here on `e` is `same` wherever it is made again: both have been found to be one value.
  void set_same(ExprId e, ExprId same) { same_[e] = same; }
  ExprId same(ExprId e) const { return same_[e]; }
  // What was found to be one value is no longer.
  void forget_same();

  // The first expression of one element that has this value, where `e` is made of constants alone, element by element;
  // else `e`.
  ExprId folded(ExprId e);
  // The one whose value, of constants alone, this constant has when it is rounded to a type of fewer bits; kNoExpr:
  // none.
  ExprId rounded_from(ExprId constant, std::span<const ExprId> of) const;

  // Which devices have the same value of each.
  DeviceClasses& devices() const { return *devices_; }

  // Of a leaf of the entry's parameters the one that was given first.
  ExprId first_parameter(uint32_t leaf, ExprId e) { return parameters_.try_emplace(leaf, e).first->second; }
  // What each device has, of that shape, of an array of these dimensions; `whole` itself where that is all of it.
  // kNoExpr where they do not fit.
  ExprId part(ExprId whole, const Dims& dims, ShapeId shape, const ShardTiling& tiling);

  // Elements of `of`, as few dimensions as that takes; `of` itself where they are all of its own in order. `shape`: of
  // the result.
  ExprId view(ExprId of, Expr::View v, ShapeId shape);
  // What the instruction, which moves elements of its operand alone (broadcast, transpose, slice, reverse, bitcast),
  // makes of it, as a view; kNoExpr where it is none.
  ExprId moved(const Module& m, InstId i, ExprId operand);
  // By dimension of an array of these sizes, that is `e`'s elements in row-major order: the parts that it consists of,
  // as elements of what `e` is a view of, or of `e`. False where its dimensions are none of theirs.
  struct Part {
    int64_t size, step;
  };
  bool parts(ExprId e, const Dims& dims, int64_t* offset, ExprId* base, std::vector<std::vector<Part>>* out) const;

  // An instruction of a module of their own, which is `*m` then: the same one each time.
  InstId made(const std::shared_ptr<Universe>& u, Opcode op, ShapeId shape, const std::vector<ShapeId>& operands,
              const AttrSet& attributes, const Module** m);

 private:
  std::optional<std::vector<char>> scalar_of_constants(ExprId e) const;

  std::vector<Expr> all_;
  std::unordered_map<ExprId, ExprId> folded_;      // to the first of that value
  std::unordered_map<uint64_t, ExprId> of_value_;  // by type and value
  std::unordered_map<ExprId, double> reals_;       // of the first ones
  std::vector<ExprId> same_;
  std::unique_ptr<DeviceClasses> devices_;
  std::unordered_map<uint32_t, ExprId> parameters_;
  std::unordered_map<uint64_t, ExprId> keys_;
  std::unique_ptr<Module> own_;
  CompId own_computation_;
  std::unordered_map<ShapeId, InstId> own_operands_;
  std::unordered_map<uint64_t, InstId> own_made_;
};

}  // namespace hlo
