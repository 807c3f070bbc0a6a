// Shapes with layouts. Interned by the Universe: equal text ⇔ equal ShapeId.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/ids.h"
#include "ir/types/element_type.h"

namespace hlo {

using Dims = std::vector<int64_t>;

inline bool contains(const Dims& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Layout of an array: dimensions from minor to major; `rest` is everything behind the colon (tiles, element size,
// memory space, split configs …) in XLA's canonical spelling, without the colon.
struct Layout {
  Dims minor_to_major;
  std::string rest;
  int64_t sparse = 0;  // `sparse{10}` of 2018 and 2019: room for so many elements; 0 for dense arrays
  bool operator==(const Layout&) const = default;
};

inline constexpr int64_t kUnbounded = INT64_MIN;

struct Shape {
  ElementType type = ElementType::Tuple;
  bool is_buffer = false;  // b(f32[4])
  bool has_layout = false;
  Dims dims;                  // sizes; kUnbounded for `?`
  std::vector<bool> dynamic;  // empty when no dimension is; else one flag a dimension (`<=`)
  Layout layout;
  std::vector<ShapeId> elements;  // of a tuple

  bool is_tuple() const { return type == ElementType::Tuple; }
  bool is_token() const { return type == ElementType::Token; }
  bool is_array() const { return is_array_type(type); }
  int rank() const { return static_cast<int>(dims.size()); }
  bool is_scalar() const { return is_array() && dims.empty(); }
  bool is_dynamic() const { return !dynamic.empty(); }
  // Of a count that does not fit into 63 bits INT64_MAX, which is no count of anything: whoever multiplies it asks
  // Universe::bytes first. A dimension without a bound counts as 0.
  int64_t elements_count() const {
    int64_t n = 1;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (__builtin_mul_overflow(n, dims[k] < 0 ? 0 : dims[k], &n)) return has_zero() ? 0 : INT64_MAX;
    }
    return n;
  }
  bool has_zero() const {
    for (int64_t d : dims)
      if (d <= 0) return true;
    return false;
  }
  // One element whatever the rank.
  bool is_effective_scalar() const { return is_array() && elements_count() == 1; }
};

Dims default_minor_to_major(int rank);
bool is_default_layout(const Layout& layout);
// An array that does not lie row by row.
bool has_other_layout(const Shape& shape);

}  // namespace hlo
