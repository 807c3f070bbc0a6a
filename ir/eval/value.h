// Run-time values of the evaluator: dense arrays in logical row-major order, tuples, tokens.
#pragma once
#include <memory>
#include <vector>

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

Value value_of_literal(const Universe& u, LitId lit);  // throws Failure(kUnsupported) on an elided one
Literal literal_of_value(const Universe& u, const Value& v);
// Leaves depth first, tokens included.
void flatten(const Universe& u, const Value& v, std::vector<Value>* leaves);

}  // namespace hlo
