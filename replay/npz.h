// numpy's files: .npy and .npz (zip of .npy, through libzip). Arrays that numpy has no type for (bf16, f8 …) travel as
// the unsigned integers of their bits.
#pragma once
#include <string>
#include <vector>

#include "ir/eval/value.h"

namespace hlo {

struct NamedArray {
  std::string name;
  std::string descr;  // numpy's type, e.g. "<f4"
  Dims dims;
  std::string bytes;  // row-major
};

std::vector<NamedArray> read_npz(const std::string& path);  // throws Failure(kIo) on a damaged file
void write_npz(const std::string& path, const std::vector<NamedArray>& arrays);  // whole or not at all
NamedArray to_array(const Universe& u, const std::string& name, const Value& v);
// Throws Failure(kUsage) when the array is not of that shape and type.
Value from_array(const Universe& u, const NamedArray& a, ShapeId shape);

}  // namespace hlo
