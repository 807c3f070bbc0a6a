// How an operation's elements are made of its operands': which of them are needed, and what they give.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "replay/judge/chosen/elements/elements.h"
#include "replay/judge/chosen/elements/known.h"

namespace hlo {

using ElementList = std::shared_ptr<const std::vector<int64_t>>;
inline ElementList element_list(std::vector<int64_t> list) {
  return std::make_shared<const std::vector<int64_t>>(std::move(list));
}

// Elements of the operand of that place among an expression's operands; -1: none, whose value is 0.
struct NeededElements {
  size_t operand = 0;
  ElementList elements;
};

struct ElementPlan {
  std::string why;  // there is no rule, and that is why; empty: there is one
  // Must be known before it can be said what else is needed; empty: `needs` and `values` are complete.
  std::vector<NeededElements> first;
  std::vector<NeededElements> needs;
  // To be called when all that is needed is known. Elements in the order of those asked for, of the instruction's type.
  std::function<void(char* out)> values;
};
ElementPlan no_plan(std::string why);

// One expression that is an operation, with the shapes that its instruction gives its operands and itself.
struct ElementOperation {
  ElementOperation(const Expr& expression, ExprId number);
  bool fits = false;  // operands are as many as their shapes have arrays
  const Expr& x;
  ExprId id;
  const Module& m;
  const Universe& u;
  const AttrSet& a;
  Opcode op;
  const Shape* out = nullptr;      // of the result's leaf
  std::vector<const Shape*> in;    // by operand
  std::vector<ShapeId> in_shapes;  // by operand
};

// What rules read.
class ElementSource {
 public:
  virtual ~ElementSource() = default;
  // Known elements of an operand, of the type that the instruction gives it.
  virtual void read(const ElementOperation& o, size_t operand, std::span<const int64_t> elements, char* out) = 0;
  virtual bool known(const ElementOperation& o, size_t operand, std::span<const int64_t> elements) = 0;
  // Throws Failure(kUnsupported) where so many elements more are over budget.
  virtual void afford(int64_t elements) = 0;
  virtual const ChosenElements::Options& options() const = 0;

  std::vector<char> read(const ElementOperation& o, size_t operand, std::span<const int64_t> elements);
  // An integer that is known; u64 over 2^63 as the evaluator has it.
  int64_t integer(const ElementOperation& o, size_t operand, int64_t element);
  double number(const ElementOperation& o, size_t operand, int64_t element);
};

using Elements = ElementList;  // those asked for, in ascending order, each once

// Rules by kinds of operations. None is asked for no elements.
ElementPlan plan_move(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_elementwise(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_gather(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_dynamic_slice(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_dynamic_update(const ElementOperation& o, const Elements& at, ElementSource& source);
// Elements of a scatter's result that `count` of its updates land on, the first and the last one among them.
// `integer`: an element of an operand, by its place among them.
std::vector<int64_t> scatter_landings(const ElementOperation& o, size_t count, uint64_t seed,
                                      const std::function<int64_t(size_t, int64_t)>& integer);
ElementPlan plan_scatter(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_dot(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_gemm(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_convolution(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_cudnn_convolution(const ElementOperation& o, std::string_view kind, const Elements& at,
                                   ElementSource& source);
// cuDNN's attention, forward.
ElementPlan plan_attention(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_reduce(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_reduce_window(const ElementOperation& o, const Elements& at, ElementSource& source);
ElementPlan plan_map(const ElementOperation& o, const Elements& at, ElementSource& source);
// Of operations that work on each line along a dimension by itself: sort, top-k.
ElementPlan plan_lines(const ElementOperation& o, const Elements& at, ElementSource& source);
// An operand as it is.
ElementPlan plan_same(const ElementOperation& o, size_t operand, const Elements& at, ElementSource& source);

// [steps, n] to [n], at least one step, by halves: an order is the compiler's choice. Throws Failure(kUnsupported)
// where the operation has no meaning for that type.
std::vector<char> reduced_by_halves(Opcode op, ElementType type, int64_t steps, int64_t n, std::vector<char> slices);

// f(k, coordinates of at[k]) for all of them.
template <class F>
void for_coordinates(std::span<const int64_t> at, const Dims& dims, F f) {
  Dims c(dims.size(), 0);
  for (size_t k = 0; k < at.size(); ++k) {
    if (k && at[k] == at[k - 1] + 1 && !dims.empty()) {
      for (size_t d = dims.size(); d-- > 0; c[d] = 0)
        if (++c[d] < dims[d]) break;
    } else {
      for (int64_t rest = at[k], d = static_cast<int64_t>(dims.size()); d-- > 0;) {
        const int64_t size = dims[static_cast<size_t>(d)];
        c[static_cast<size_t>(d)] = rest % size, rest /= size;
      }
    }
    f(k, static_cast<const Dims&>(c));
  }
}

// Arrays of n scalars, as run_elements takes them.
Value element_values(Universe& u, ElementType type, std::vector<char> bytes);

}  // namespace hlo
