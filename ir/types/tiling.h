// Where the elements of an array lie whose layout has tiles, `f32[100,784]{1,0:T(8,128)}`: XLA's TPU compiler cuts the
// last dimensions in the order of memory into tiles, fills up what is no multiple, and may tile the tiles again
// (`T(8,128)(2,1)`). Values do not depend on it, but for bitcasts, which give elements other names at their places.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/types/shape.h"

namespace hlo {

// Does the layout say more than an order of dimensions and how many bits an element takes?
bool has_tiles(const Shape& s);

// Does an array lie elsewhere than in the device's large memory: `S(1)` and up behind tiles, the TPU's memories on the
// chip and the host's, or `S(5)` without tiles, a GPU's host? Another number without tiles says nothing of the kind (a
// GPU's S(1) is device memory, too).
bool is_beside_device_memory(const Shape& s);
// Is it an array in the host's memory: memory space 5 (Layout::kHostMemorySpace of xla/layout.h)?
bool is_in_host_memory(const Shape& s);

class TiledOrder {
 public:
  // Of an array. Nothing where the layout says what is not understood here (`*`, splits, padding of the tail), a tile
  // does not divide the one around it, or the places are more than fit into 63 bits.
  static std::optional<TiledOrder> of(const Shape& s);

  int64_t places() const { return places_; }  // in elements, those that fill tiles up included
  // Of the element at `index` (one number a dimension, in bounds), in elements.
  int64_t place(std::span<const int64_t> index) const;
  // The element at a place, by its number in row-major order; -1 where nothing but filling lies there.
  int64_t element_at(int64_t place) const;
  // Have elements of the same row-major number the same place in both? False where that is not seen.
  bool same_as(const TiledOrder& other) const;

 private:
  // A part of one index: index / step, modulo `size` but for the outermost part.
  struct Digit {
    int dimension;  // -1: of a dimension that the array does not have
    int64_t step, size;
    bool outermost;
    bool operator==(const Digit&) const = default;
  };
  bool cut(std::span<const int64_t> tile);
  std::vector<Digit> without_ones() const;

  Dims dims_;
  std::vector<int64_t> row_major_;  // strides
  std::vector<Digit> digits_;       // the outermost first
  int64_t places_ = 1;
};

}  // namespace hlo
