// Constants: dense, logical row-major order, whatever the layout. Content-addressed by the Universe.
#pragma once
#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "ir/base/ids.h"
#include "ir/types/shape.h"

namespace hlo {

struct Literal {
  ShapeId shape;
  bool elided = false;          // written `{...}`: the shape is known, the value is not
  std::string bytes;            // storage_bytes() an element, little endian
  std::vector<LitId> elements;  // of a tuple
};

// One element of storage as a number of the widest kind of its type, and back with the type's own rounding/wrapping.
double load_double(ElementType type, const void* at);
int64_t load_int(ElementType type, const void* at);  // u64 keeps its 64 bits
std::complex<double> load_complex(ElementType type, const void* at);
// A number to be stored as any element type; integers stay exact to 64 bits.
struct ScalarValue {
  template <typename T>
  requires std::is_integral_v<T> ScalarValue(T v) : integer(static_cast<int64_t>(v)), is_integer(true) {}
  ScalarValue(double v) : real(v) {}
  int64_t integer = 0;
  double real = 0;
  bool is_integer = false;
};
void store_scalar(ElementType type, void* at, ScalarValue value);
void store_double(ElementType type, void* at, double value);  // float types; integers truncate
void store_int(ElementType type, void* at, int64_t value);    // integers wrap; floats convert
void store_complex(ElementType type, void* at, std::complex<double> value);

// The text of one element as XLA prints it.
void append_element(std::string& out, ElementType type, const void* at);

}  // namespace hlo
