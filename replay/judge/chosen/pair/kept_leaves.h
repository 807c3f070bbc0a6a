// Arguments that a program had, read at chosen elements: what entry parameters are where they were kept with the dump.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

class KeptLeaves {
 public:
  // Arrays p0, p1 … of an .npz, leaves of the entry's flattened parameters: the smallest first, up to `most_bytes`
  // together. Throws Failure(kUsage) where an array does not fit its leaf, and as read_npz does.
  KeptLeaves(const Module& first, const std::string& path, int64_t most_bytes);
  // Elements of leaf `leaf` by row-major index, stored as `wanted`'s type, which may be wider than the array's. False
  // where it was not kept, or is another array in this stage.
  bool give(uint32_t leaf, const Shape& wanted, std::span<const int64_t> indices, char* out) const;
  // Where arrays of these dimensions have their least and their largest number, and none.
  std::vector<int64_t> places(const Dims& dims) const;

  const std::vector<std::string>& taken() const { return taken_; }  // p0, p1 …, in order
  const std::vector<std::string>& left() const { return left_; }    // those that the file has and that are too large

 private:
  struct Leaf {
    ElementType type;
    Dims dims;
    Value value;
    std::vector<int64_t> places;
  };
  std::vector<std::optional<Leaf>> leaves_;
  std::vector<std::string> taken_, left_;
};

}  // namespace hlo
