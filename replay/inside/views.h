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
  // What a convolution, dot or library call computes; 0 of others and of what cannot be said. `seen_through`: of what
  // its operands are made of, else of the operands.
  uint64_t product(const Module& m, InstId i, const std::vector<Term>& operands, bool seen_through = true) const;

 private:
  ArrayView of(const Module& m, InstId operand, const Term& t, bool seen_through = true) const;
  uint64_t convolution(const Module& m, InstId i, const std::vector<Term>& operands, bool seen_through) const;
  std::unordered_map<NumberId, std::pair<ArrayView, Dims>> known_;  // with the view's own dimensions
};

}  // namespace hlo
