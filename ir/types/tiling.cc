#include "ir/types/tiling.h"

#include <algorithm>
#include <charconv>

#include "ir/base/checked.h"

namespace hlo {
namespace {

// The parts `T(8,128)(2,1)` and `S(1)` of a layout, nothing else. False where there is something else.
bool read_tiles(std::string_view rest, std::vector<Dims>* tiles) {
  bool in_tiles = false;
  while (!rest.empty()) {
    if (rest.front() != '(') {
      in_tiles = rest.starts_with("T(");
      if (!in_tiles && !rest.starts_with("S(") && !rest.starts_with("E(")) return false;
      rest.remove_prefix(1);
      continue;
    }
    const size_t close = rest.find(')');
    if (close == std::string_view::npos) return false;
    Dims tile;
    for (const char *at = rest.data() + 1, *end = rest.data() + close; in_tiles && at < end; ++at) {
      int64_t number = 0;
      auto [behind, error] = std::from_chars(at, end, number);
      if (error != std::errc() || number < 1 || (behind < end && *behind != ',')) return false;
      tile.push_back(number);
      at = behind;
    }
    if (in_tiles) tiles->push_back(std::move(tile));
    rest.remove_prefix(close + 1);
  }
  return true;
}

}  // namespace

bool has_tiles(const Shape& s) { return s.is_array() && !s.layout.rest.empty() && !s.layout.rest.starts_with("E("); }

bool is_beside_device_memory(const Shape& s) {
  const std::string& rest = s.layout.rest;
  return (rest.starts_with("T(") && rest.find("S(") != std::string::npos) || rest.starts_with("S(5)");
}

bool is_in_host_memory(const Shape& s) { return s.is_array() && s.layout.rest.find("S(5)") != std::string::npos; }

std::optional<TiledOrder> TiledOrder::of(const Shape& s) {
  std::vector<Dims> tiles;
  if (!s.is_array() || s.is_dynamic() || s.layout.sparse || !read_tiles(s.layout.rest, &tiles)) return std::nullopt;
  if (s.layout.minor_to_major.size() != s.dims.size()) return std::nullopt;
  TiledOrder order;
  order.dims_ = s.dims;
  order.row_major_.resize(s.dims.size());
  Checked elements = 1;
  for (size_t d = s.dims.size(); d-- > 0; elements *= s.dims[d]) {
    if (!elements.fits() || s.dims[d] < 0) return std::nullopt;
    order.row_major_[d] = elements.capped();
  }
  for (size_t k = s.dims.size(); k-- > 0;) {
    const int64_t d = s.layout.minor_to_major[k];
    if (d < 0 || d >= s.rank()) return std::nullopt;
    order.digits_.push_back({static_cast<int>(d), 1, s.dims[static_cast<size_t>(d)], true});
  }
  for (const Dims& tile : tiles)
    if (!order.cut(tile)) return std::nullopt;
  Checked places = 1;
  for (const Digit& digit : order.digits_) places *= digit.size;
  if (!places.fits()) return std::nullopt;
  order.places_ = places.capped();
  return order;
}

// The last digits become number of the tile and place in it, as in XLA's documentation of tiled layouts.
bool TiledOrder::cut(std::span<const int64_t> tile) {
  while (digits_.size() < tile.size()) digits_.insert(digits_.begin(), Digit{-1, 1, 1, true});
  const size_t first = digits_.size() - tile.size();
  std::vector<Digit> inner;
  for (size_t k = 0; k < tile.size(); ++k) {
    Digit& whole = digits_[first + k];
    if (!whole.outermost && whole.size % tile[k]) return false;
    const Checked step = Checked(whole.step) * tile[k];
    if (!step.fits()) return false;
    inner.push_back({whole.dimension, whole.step, tile[k], false});
    whole.step = step.capped();
    whole.size = divided(Checked(whole.size), tile[k]).capped();
  }
  digits_.insert(digits_.end(), inner.begin(), inner.end());
  return true;
}

int64_t TiledOrder::place(std::span<const int64_t> index) const {
  int64_t place = 0;
  for (const Digit& d : digits_) {
    int64_t part = d.dimension < 0 ? 0 : index[static_cast<size_t>(d.dimension)] / d.step;
    if (!d.outermost) part %= d.size;
    place = place * d.size + part;
  }
  return place;
}

int64_t TiledOrder::element_at(int64_t place) const {
  if (!places_) return -1;
  Dims index(dims_.size(), 0);
  for (size_t k = digits_.size(); k-- > 0;) {
    const Digit& d = digits_[k];
    const int64_t part = place % d.size;
    place /= d.size;
    if (d.dimension >= 0)
      index[static_cast<size_t>(d.dimension)] += part * d.step;
    else if (part)
      return -1;
  }
  int64_t number = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] >= dims_[d]) return -1;
    number += index[d] * row_major_[d];
  }
  return number;
}

// Dimensions of one element change no number, but what fills them up lies there.
std::vector<TiledOrder::Digit> TiledOrder::without_ones() const {
  std::vector<int> renamed(dims_.size(), -1);
  int next = 0;
  for (size_t d = 0; d < dims_.size(); ++d)
    if (dims_[d] != 1) renamed[d] = next++;
  std::vector<Digit> out;
  for (Digit d : digits_) {
    if (d.size == 1) continue;
    if (d.dimension >= 0) d.dimension = renamed[static_cast<size_t>(d.dimension)];
    if (d.dimension < 0) d.step = 1, d.outermost = false;
    out.push_back(d);
  }
  return out;
}

bool TiledOrder::same_as(const TiledOrder& other) const {
  Dims mine, theirs;
  std::copy_if(dims_.begin(), dims_.end(), std::back_inserter(mine), [](int64_t d) { return d != 1; });
  std::copy_if(other.dims_.begin(), other.dims_.end(), std::back_inserter(theirs), [](int64_t d) { return d != 1; });
  return mine == theirs && without_ones() == other.without_ones();
}

}  // namespace hlo
