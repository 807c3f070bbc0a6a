// What an instruction computes, apart from how it is written: fusions, calls, copies, reshapes and tuples vanish.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "ir/query/fingerprint.h"

namespace hlo {

enum class Role {
  kOperation,    // its value is made of its operands' values
  kParameter,    //
  kSame,         // operand 0 element by element in row-major order; dimensions may be others
  kTuple,        //
  kElement,      // get-tuple-element
  kCall,         // call, fusion: the callee's root on these operands
  kAsyncStart,   // a tuple of the operands, the callee's root, and no more that counts
  kAsyncDone,    // of an async-start: element 1
  kCopyStart,    // a tuple of the operand twice
  kCopyDone,     // element 0
  kWhile,        //
  kConditional,  //
  kDraw,         // random numbers out of nowhere: rng, rng-get-and-update-state
};

// Of a module whose floats are widened (ir/eval/widen.h), so that conversions between floats are kSame.
Role role_of(const Module& wide, InstId i);

class Canonical {
 public:
  explicit Canonical(const Module& wide);
  // What the operation is apart from its operands.
  uint64_t operation(InstId i);
  // The order of operands does not count.
  static bool commutes(const Module& m, InstId i);
  // Of an operation whose operands' hashes are these (they are sorted where their order does not count).
  uint64_t combined(InstId i, std::vector<uint64_t> operands);
  // Of a broadcast: which element of its operand each of its elements is, whatever dimensions of size one they have and
  // however neighbours are joined: sizes and steps in the operand, from the outermost.
  static uint64_t repeated(ElementType type, const Dims& sizes, const Dims& steps, uint64_t operand);
  // The steps in its operand of a broadcast's dimensions; empty where its dimensions make no sense.
  static Dims steps_of(const Module& m, InstId broadcast);
  // The same of what does not depend on how its elements are arranged in dimensions, by its operands' numbers: an
  // elementwise operation, a broadcast by which elements it repeats, a reduction by which it takes together. False of
  // all others.
  bool by_elements(InstId i, std::vector<uint64_t> numbers, uint64_t* key);
  // An elementwise operation of so many elements, by its operands' numbers.
  uint64_t elementwise(InstId i, std::vector<uint64_t> numbers, int64_t count);
  static uint64_t operand(const Module& m, uint64_t number, InstId operand) {
    return operand_of(m.u(), number, m.shape_id(operand));
  }
  static uint64_t operand_of(Universe& u, uint64_t number, ShapeId shape);
  // Of a library's call what it computes, whatever it gives besides: its shape does not count.
  uint64_t library_call(InstId i);
  // What the computation's result is as an expression of its parameters.
  uint64_t computation(CompId c);

 private:
  bool reduced(InstId i, const std::vector<uint64_t>& numbers, uint64_t* key);
  struct Symbol {
    uint64_t hash = 0;
    std::shared_ptr<const std::vector<Symbol>> elements;  // of a tuple that is known element by element
    Symbol element(size_t k) const;
    uint64_t whole() const;
  };
  Symbol root(CompId c, const std::vector<Symbol>& parameters);
  Symbol step(InstId i, const std::vector<Symbol>& operands, const std::vector<Symbol>& parameters);

  const Module& m_;
  Fingerprints plain_, laid_out_;
  std::unordered_map<CompId, uint64_t> known_;
};

}  // namespace hlo
