// Orders of dimensions, minor to major, as numbers; and how operations carry them over.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "ir/types/shape.h"

namespace hlo {

class Orders {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;  // of what is no array
  uint32_t id(const Dims& order);
  uint32_t descending(int rank) { return id(default_minor_to_major(rank)); }
  const Dims& operator[](uint32_t id) const { return list_[id]; }

 private:
  std::map<Dims, uint32_t> ids_;
  std::vector<Dims> list_;
};

// The order of an array of dimensions `to` in which a reshape of `from`, lying in `order`, moves nothing
// (xla/shape_util.cc, AlignLayouts). Dimensions of one element lie anywhere: as in `like`, an order of `to`. Nothing
// where there is none.
std::optional<Dims> aligned_order(const Dims& from, const Dims& order, const Dims& to, const Dims& like);

// Of the dimensions that `kept` flags, renumbered.
Dims order_of_kept(const Dims& order, const std::vector<bool>& kept);
std::vector<bool> flags_of(const Dims& dims, size_t rank);  // true at those

// Does each of the groups lie together, in its order, the batch not at the minor end (xla/service/gpu/matmul_utils.cc,
// MatrixLayout)? Together they must name each dimension of the order once.
bool is_matrix_order(const Dims& order, const Dims& batch, const Dims& rows, const Dims& columns);

Dims order_of_major_to_minor(Dims dims);
// The same order with one dimension at the major or minor end.
Dims with_major(const Dims& order, int64_t dim);
Dims with_minor(const Dims& order, int64_t dim);

}  // namespace hlo
