// Arrays as matrices of double or std::complex<double>, the same code for both kinds of number.
#pragma once
#include <complex>
#include <type_traits>
#include <vector>

#include "ir/eval/value.h"
#include "ir/types/literal.h"

namespace hlo {

// The elements of an array, row-major, whatever its type. T is double or std::complex<double>.
template <class T>
std::vector<T> matrix_elements(const Universe& u, const Value& v) {
  ElementType t = u[v.shape].type;
  std::vector<T> out(static_cast<size_t>(u[v.shape].elements_count()));
  for (size_t k = 0; k < out.size(); ++k) {
    const char* at = v.bytes() + static_cast<int64_t>(k) * storage_bytes(t);
    if constexpr (std::is_same_v<T, double>)
      out[k] = load_double(t, at);
    else
      out[k] = load_complex(t, at);
  }
  return out;
}

template <class T>
void put_numbers(const Universe& u, const std::vector<T>& from, Value& v) {
  ElementType t = u[v.shape].type;
  for (size_t k = 0; k < from.size(); ++k) {
    char* at = v.data->data() + static_cast<int64_t>(k) * storage_bytes(t);
    if constexpr (std::is_same_v<T, double>)
      store_double(t, at, from[k]);
    else
      store_complex(t, at, from[k]);
  }
}

}  // namespace hlo
