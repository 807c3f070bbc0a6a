// numpy's files: .npy and .npz (zip of .npy, through libzip). Arrays that numpy has no type for (bf16, f8 …) travel as
// the unsigned integers of their bits.
#pragma once
#include <functional>
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

// How many bytes of an array of that name are wanted at most; -1: all. Arrays that are larger come without their bytes.
using MostBytes = std::function<int64_t(const std::string& name)>;

// Throws Failure(kIo) on a damaged file, Failure(kUnsupported) where an array takes more memory than there is.
std::vector<NamedArray> read_npz(const std::string& path, const MostBytes& most = {});
// Leaves of a shape depth first, and the limit for arrays p0, p1 … (or o0 …) that are these leaves: no other is read.
void leaf_shapes(const Universe& u, ShapeId shape, std::vector<ShapeId>& leaves);
MostBytes bytes_of_leaves(const Universe& u, std::vector<ShapeId> leaves, char letter);
void write_npz(const std::string& path, const std::vector<NamedArray>& arrays);  // whole or not at all
NamedArray to_array(const Universe& u, const std::string& name, const Value& v);
// The element type: the note's, else numpy's. Throws Failure(kUnsupported) where there is none.
ElementType array_type(const NamedArray& a, const std::string& path);
// Throws Failure(kUsage) when the array is not of that shape and type.
Value from_array(const Universe& u, const NamedArray& a, ShapeId shape);

}  // namespace hlo
