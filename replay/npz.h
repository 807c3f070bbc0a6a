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
  std::string type;   // HLO's element type where the file tells it (a member types.json), else empty
};

std::vector<NamedArray> read_npz(const std::string& path);  // throws Failure(kIo) on a damaged file
void write_npz(const std::string& path, const std::vector<NamedArray>& arrays);  // whole or not at all
NamedArray to_array(const Universe& u, const std::string& name, const Value& v);
// The element type: the note's, else numpy's. Throws Failure(kUnsupported) where there is none.
ElementType array_type(const NamedArray& a, const std::string& path);
// Throws Failure(kUsage) when the array is not of that shape and type.
Value from_array(const Universe& u, const NamedArray& a, ShapeId shape);

}  // namespace hlo
