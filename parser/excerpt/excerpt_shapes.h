// Shapes of operands that a text does not define, from what it says of their readers. Only what must be so: where
// several shapes are possible, nothing.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "parser/excerpt/pieces.h"

namespace hlo {

// The shape of a name, as text; empty where nobody knows.
using ShapeOfName = std::function<std::string(std::string_view name)>;
// The shape of parameter `number` of a computation that the text has; empty where it has none.
using ShapeOfParameter = std::function<std::string(std::string_view computation, size_t number)>;

// Of operand `which` of an instruction, as text without a layout where the layout is not certain.
std::string operand_shape(const Piece& instruction, size_t which, const ShapeOfName& shape_of,
                          const ShapeOfParameter& parameter_of);

// A computation in place of the one that an attribute `key` of the instruction names and the text does not have: its
// parameters and result fit, its content is one custom call. Nothing where their shapes are not known.
std::optional<std::string> stub_computation(const Piece& instruction, std::string_view key, std::string_view name,
                                            const ShapeOfName& shape_of);

// `f32[]` of `f32[2,3]{1,0}`.
std::string scalar_of(std::string_view shape);

}  // namespace hlo
