// Which elements of each value of a kernel one element of its result asks for, as far as XLA sees tiles in it
// (xla/codegen/tiling/symbolic_tile.cc, size_and_stride_expression.cc): a dimension of a value is a dimension of the
// result, one that is summed, a part of one (a quotient or remainder), or a sum of several. Of other sums, as of a
// quotient and what is summed, it makes no tile, whatever its size.
#pragma once
#include <vector>

#include "ir/analysis/fusion/operand_dims.h"

namespace hlo {

class TileMaps {
 public:
  // What a dimension of a value is.
  struct Term {
    enum Kind : uint8_t { kOne, kDimension, kSummed, kPart, kSum } kind = kOne;  // kOne: it has one element
    uint32_t of = 0;                                                             // kPart: which split; kSum: which sum
    uint32_t from = 0, to = 0;                                                   // kPart: of the split's dimensions
    int64_t count = 1, step = 1;                                                 // so many elements, so far apart
    bool operator==(const Term&) const = default;
  };
  using Terms = std::vector<Term>;  // by dimension

  static Terms of_result(const Shape& s);
  // Of an operand that lies so in what has these terms; false where XLA sees no tiles in it.
  bool through(const OperandDims& how, const Shape& out, const Shape& in, const Terms& terms, Terms* of);

 private:
  struct Split {
    Term of;
    Dims dims;  // major first
  };
  struct Sum {
    Terms terms;  // major first
    Dims dims;    // of the dimensions that they were
  };
  // Dimensions of more than one element, major first.
  struct Group {
    Terms terms;
    Dims dims;
    std::vector<size_t> places;  // of dimensions of the shape
  };

  bool regroup(const OperandDims& how, const Shape& out, const Shape& in, const Terms& terms, Terms* of);
  bool merge(const Group& g, Term* one);
  void append(const Term& t, int64_t dim, Sum* s);
  bool split(const Term& one, const Group& to, Terms* of);
  bool take_apart(const Term& one, const Group& to, Terms* of);

  std::vector<Split> splits_;
  std::vector<Sum> sums_;
};

}  // namespace hlo
