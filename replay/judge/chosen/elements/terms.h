// Terms that a sum takes together, by where their factors lie.
#pragma once
#include <span>
#include <vector>

#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

// Terms are products of one element of each factor: that of `of` at `offset` + Σ index · step, over the indices of all
// parts. `kept` are the result's, the outermost first; what lies along `over` is taken together by `by`.
struct Terms {
  struct Factor {
    ExprId of = kNoExpr;
    int64_t offset = 0;
  };
  struct Part {
    int64_t size = 1;
    Dims steps;  // by factor
  };
  Opcode by = Opcode::Add;
  bool negated = false;  // the result is the negative of what they give
  std::vector<Factor> factors;
  std::vector<Part> kept, over;

  // As few parts as it takes, the largest steps first, and factors by their numbers; what is taken together and
  // repeats counts once where it may. The kept ones stay in their order.
  void tidy();
  // Takes the kept ones in an order of their own, by their steps in the factors (`first`: those that count first, in
  // that order; empty: as they stand), each that repeats left out, and says in which they were.
  Expr::View put_in_order(const std::vector<size_t>& first);
  void swap_factors(size_t a, size_t b);
};

// One factor of terms as elements of what that array's elements are.
class FactorMove {
 public:
  // Element i of the array, of these dimensions, is the operand's element offset + Σ i · steps.
  FactorMove(Dims sizes, Dims steps, int64_t offset);
  // Of dimension d only those at low, low + every, …, `count` of them, are elements of the operand. `neutral`: sums
  // over all of the dimension do without the others.
  void pad(size_t d, int64_t low, int64_t every, int64_t count, bool neutral);
  // False, and nothing is changed, where its elements lie in no order that steps can say, or padding counts.
  bool apply(Terms* t, size_t factor, ExprId operand);

 private:
  struct Pad {
    int64_t low = 0, every = 1, count = 0;
    bool neutral = false;
  };
  struct Piece {
    size_t part;          // of the part that it comes from
    size_t d = SIZE_MAX;  // dimension; none: repeats
    int64_t size, each;   // in it
    int64_t inner;        // elements of that part that are further inside
  };
  bool split(int64_t size, int64_t step, size_t part, std::vector<Piece>* to) const;
  bool place(const Terms& t, std::vector<Piece> (*pieces)[2]);
  bool trim(size_t factor, std::vector<Piece> (*pieces)[2], Terms* out);

  Dims sizes_, steps_, strides_, first_, reach_;
  int64_t offset_;
  std::vector<Pad> pads_;
};

}  // namespace hlo
