// Run-time values of the evaluator: dense arrays in logical row-major order, tuples, tokens.
#pragma once
#include <memory>
#include <vector>

#include "ir/base/checked.h"
#include "ir/universe.h"

namespace hlo {

struct Value {
  ShapeId shape;
  std::shared_ptr<std::vector<char>> data;  // storage_bytes() an element; null for tuples and tokens
  std::vector<Value> elements;              // of a tuple
  Dims sizes;                               // of dynamic dimensions at run time; empty: as the shape says

  const char* bytes() const { return data->data(); }
  char* mutable_bytes() {
    if (data.use_count() > 1) data = std::make_shared<std::vector<char>>(*data);
    return data->data();
  }
};

// No array is larger: more than a processor can address, and room enough for products with the width of an element and
// for sums over a module. In the page's engine, whose addresses have 32 bits, half of these.
inline constexpr int64_t kMostArrayBytes = int64_t{1} << (sizeof(size_t) < 8 ? 31 : 47);

// Bytes of an array as a Value holds it; "does not fit" above kMostArrayBytes in the widest type.
Checked array_bytes(const Shape& s);
// Zeros for an array. Throws Failure(kUnsupported) with the shape and its bytes where this machine has not so much.
std::shared_ptr<std::vector<char>> new_array(const Universe& u, ShapeId shape);
// The same, whose bytes are whatever they are: for who writes every one of them.
std::shared_ptr<std::vector<char>> unset_array(const Universe& u, ShapeId shape);

Value value_of_literal(const Universe& u, LitId lit);  // throws Failure(kUnsupported) on an elided one
Literal literal_of_value(const Universe& u, const Value& v);
// Leaves depth first, tokens included.
void flatten(const Universe& u, const Value& v, std::vector<Value>* leaves);

}  // namespace hlo
