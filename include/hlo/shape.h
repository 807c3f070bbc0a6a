// Shapes and element types as plain data.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/export.h"

HLO_API_BEGIN

// A dimension `?`.
inline constexpr int64_t kUnboundedDimension = INT64_MIN;

struct Shape {
  std::string element_type;             // `f32`, `bf16`, `s4` …, `tuple`, `token`, `opaque`
  std::vector<int64_t> dims;            // of an array; bounds of dynamic dimensions; kUnboundedDimension for `?`
  std::vector<bool> dynamic;            // empty where no dimension is, else one flag a dimension
  bool has_layout = false;              // written, or assigned
  std::vector<int64_t> minor_to_major;  // of the layout
  std::string layout_rest;              // tiles, memory space …, as text: `T(8,128)S(1)`
  std::vector<Shape> elements;          // of a tuple
  std::string text;                     // as HLO text has it, layout included
  int64_t bytes = -1;                   // as XLA's buffers count; -1 where that does not fit into 63 bits
};

// Every element type by its name, `tuple` last. Columns::element_type counts in this list.
HLO_EXPORT const std::vector<std::string_view>& element_types();
// Bits of an element (4 for `s4`), 0 for those without; and bytes of one as arrays of this library hold it: sub-byte
// elements take a whole byte each. Throw Error(usage) where there is no such type.
HLO_EXPORT int element_bits(std::string_view element_type);
HLO_EXPORT int storage_bytes(std::string_view element_type);

HLO_API_END
