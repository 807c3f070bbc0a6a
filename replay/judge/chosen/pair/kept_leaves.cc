#include "replay/judge/chosen/pair/kept_leaves.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "ir/types/literal.h"
#include "replay/judge/arguments/npz.h"

namespace hlo {
namespace {

bool whole_number(ElementType type) {
  return type_kind(type) == TypeKind::kSigned || type_kind(type) == TypeKind::kUnsigned;
}

// Least, largest, and the first that is no number.
std::vector<int64_t> telling_places(ElementType type, const Value& v, int64_t count) {
  if (!is_float(type) && !whole_number(type)) return {};
  const auto width = storage_bytes(type);
  int64_t least = -1, most = -1, none = -1;
  double low = 0, high = 0;
  for (int64_t k = 0; k < count; ++k) {
    const char* at = v.bytes() + k * width;
    const double x = is_float(type) ? load_double(type, at) : static_cast<double>(load_int(type, at));
    if (!std::isfinite(x)) {
      if (none < 0) none = k;
      continue;
    }
    if (least < 0 || x < low) least = k, low = x;
    if (most < 0 || x > high) most = k, high = x;
  }
  std::vector<int64_t> out;
  for (int64_t k : {least, most, none})
    if (k >= 0) out.push_back(k);
  return out;
}

}  // namespace

KeptLeaves::KeptLeaves(const Module& first, const std::string& path, int64_t most_bytes) {
  const Universe& u = first.u();
  std::vector<ShapeId> shapes;
  for (InstId p : first.comp(first.entry()).params) leaf_shapes(u, first.shape_id(p), shapes);
  leaves_.resize(shapes.size());
  std::set<std::string> has;
  for (const NamedArray& a : read_npz(path, [](const std::string&) { return int64_t{0}; })) has.insert(a.name);
  std::vector<size_t> order(shapes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto bytes = [&](size_t k) { return u[shapes[k]].is_array() ? array_bytes(u[shapes[k]]).capped() : 0; };
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return bytes(x) < bytes(y); });
  std::set<std::string> wanted;
  std::vector<size_t> left;
  for (size_t k : order) {
    const std::string name = fmt::format("p{}", k);
    if (!has.contains(name) || !u[shapes[k]].is_array()) continue;
    if (bytes(k) > most_bytes) {
      left.push_back(k);
      continue;
    }
    most_bytes -= bytes(k), wanted.insert(name);
  }
  std::sort(left.begin(), left.end());
  for (size_t k : left) left_.push_back(fmt::format("p{}", k));
  const std::vector<NamedArray> arrays =
      read_npz(path, [&](const std::string& name) { return wanted.contains(name) ? int64_t{-1} : int64_t{0}; });
  for (size_t k = 0; k < shapes.size(); ++k) {
    const std::string name = fmt::format("p{}", k);
    if (!wanted.contains(name)) continue;
    const auto array = std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray& a) { return a.name == name; });
    if (array == arrays.end()) continue;
    const Shape& shape = u[shapes[k]];
    Leaf leaf{shape.type, shape.dims, from_array(u, *array, shapes[k]), {}};
    leaf.places = telling_places(leaf.type, leaf.value, shape.elements_count());
    leaves_[k] = std::move(leaf), taken_.push_back(name);
  }
}

bool KeptLeaves::give(uint32_t leaf, const Shape& wanted, std::span<const int64_t> indices, char* out) const {
  if (leaf >= leaves_.size() || !leaves_[leaf] || leaves_[leaf]->dims != wanted.dims) return false;
  const Leaf& kept = *leaves_[leaf];
  const auto from = storage_bytes(kept.type), to = storage_bytes(wanted.type);
  const bool same = kept.type == wanted.type, floats = is_float(kept.type) && is_float(wanted.type),
             complex = is_complex(kept.type) && is_complex(wanted.type);
  if (!same && !floats && !complex) return false;
  const int64_t count = wanted.elements_count();
  for (size_t k = 0; k < indices.size(); ++k) {
    if (indices[k] < 0 || indices[k] >= count) return false;
    const char* at = kept.value.bytes() + indices[k] * from;
    char* put = out + static_cast<int64_t>(k) * to;
    if (same) {
      std::memcpy(put, at, static_cast<size_t>(to));
    } else if (floats) {
      store_double(wanted.type, put, load_double(kept.type, at));
    } else {
      const ElementType part = from == 16 ? ElementType::F64 : ElementType::F32,
                        wide = to == 16 ? ElementType::F64 : ElementType::F32;
      store_double(wide, put, load_double(part, at));
      store_double(wide, put + to / 2, load_double(part, at + from / 2));
    }
  }
  return true;
}

std::vector<int64_t> KeptLeaves::places(const Dims& dims) const {
  std::vector<int64_t> out;
  for (const std::optional<Leaf>& leaf : leaves_)
    if (leaf && leaf->dims == dims) out.insert(out.end(), leaf->places.begin(), leaf->places.end());
  return out;
}

}  // namespace hlo
