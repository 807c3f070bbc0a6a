// Reference precision: the same program with every float in f64 (complex numbers of f64), so that what rounding does to
// a result can be told from what a fault does.
#pragma once
#include <memory>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

// Floats narrower than f64 become f64, c64 becomes c128. Bits stay what they were: bitcast-converts and random numbers
// are done in the types that the module has. Shares the universe.
std::unique_ptr<Module> widened_module(const Module& m);
ShapeId widened_shape(Universe& u, ShapeId shape);
// The value with the types of the widened module.
Value widened_value(Universe& u, const Value& v);

}  // namespace hlo
