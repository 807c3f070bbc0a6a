// Arrays of floats as doubles, row by row.
#pragma once
#include <vector>

#include "ir/eval/value.h"
#include "ir/types/literal.h"
#include "ir/universe.h"

namespace hlo {

inline std::vector<double> as_doubles(const Universe& u, const Value& v) {
  const Shape& s = u[v.shape];
  std::vector<double> out(static_cast<size_t>(s.elements_count()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_double(s.type, v.bytes() + i * static_cast<size_t>(storage_bytes(s.type)));
  return out;
}
inline void put_doubles(const Universe& u, Value& v, const std::vector<double>& list) {
  const Shape& s = u[v.shape];
  for (size_t i = 0; i < list.size(); ++i)
    store_double(s.type, v.data->data() + i * static_cast<size_t>(storage_bytes(s.type)), list[i]);
}

}  // namespace hlo
