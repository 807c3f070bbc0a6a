// Products of values that are written in another way: a convolution or dot of transposed or padded operands is the one
// of what these are made of, and a library's call is the operation that it stands for.
#pragma once
#include <unordered_map>

#include "ir/module.h"

namespace hlo {

using NumberId = uint32_t;
struct Term;

// An array as another one, transposed and then padded with zeros.
struct ArrayView {
  NumberId base = 0;
  Dims base_dims;  // the number alone does not tell them
  Dims from;       // by dimension of the view: the base's dimension
  Dims low, high;  // zeros around it
  bool padded() const;
};

class ArrayViews {
 public:
  // Remembers what the instruction's value is of its operands'. `zero`: of a pad, its padding value is zero.
  void note(const Module& m, InstId i, const std::vector<Term>& operands, const Term& value, bool zero);
  // The value of that transpose, where it undoes another one.
  bool undone(const Module& m, InstId i, const std::vector<Term>& operands, Term* value) const;
  // What a convolution, dot or library call computes, before what the call makes of it; 0 of others and of what cannot
  // be said. `seen_through`: of what its operands are made of, else of the operands.
  uint64_t product(const Module& m, InstId i, const std::vector<Term>& operands, bool seen_through = true) const;
  // Does a library call make more of its product (bias, activation …)?
  static bool has_epilogue(const Module& m, InstId i);
  // The same of the dot that has this one's operands in the other order, whose result is this one's, transposed; 0 of
  // everything else. `from`: by dimension of this result, the other's dimension.
  uint64_t swapped(const Module& m, InstId i, const std::vector<Term>& operands, Dims* from) const;
  // Remembers that a value of these dimensions is a transposed one.
  void note_transposed(const Term& value, const Dims& dims, const Term& of, const Dims& from);
  // Is that dot's value read by a sum over dimensions of its batch alone, as split-K writes a product?
  static bool parts_are_summed(const Module& m, InstId i);
  // Remembers what such a dot is made of.
  void note_parts(const Module& m, InstId i, const std::vector<Term>& operands, const Term& value);
  // What a sum of such a dot's value computes: the dot that sums over these dimensions, too; 0 of everything else.
  uint64_t summed(const Module& m, InstId i, const Term& operand) const;
  // Of an elementwise operation on arrays that are others transposed, all of them in one way: these others, whose value
  // of the operation is this one's, transposed. By operand a number or, of what is repeated, the key of what it is
  // there. False of everything else.
  struct Source {
    NumberId number = 0;
    uint64_t key = 0;  // 0: the number counts
  };
  bool untransposed(const Module& m, InstId i, const std::vector<Term>& operands, std::vector<Source>* sources,
                    Dims* from) const;

 private:
  // A broadcast's value.
  struct Spread {
    NumberId operand;
    Dims dims, steps;  // of its own; see Canonical::steps_of
  };
  std::unordered_map<NumberId, Spread> spreads_;
  // A dot, as a custom call or not: what its operands are made of, and which of their dimensions it is about.
  struct Dot {
    ArrayView side[2];
    Dims batch[2], contracted[2];
  };
  bool dot(const Module& m, InstId i, const std::vector<Term>& operands, bool seen_through, Dot* out) const;
  ArrayView of(const Dims& dims, const Term& t, bool seen_through = true) const;
  uint64_t convolution(const Module& m, InstId i, const std::vector<Term>& operands, bool seen_through) const;
  struct Parts {
    ElementType types[3];  // of the result and of both operands
    Dims dims;
    Dot dot;
  };
  std::unordered_map<NumberId, Parts> parts_;
  std::unordered_map<NumberId, std::pair<ArrayView, Dims>> known_;  // with the view's own dimensions
};

}  // namespace hlo
