// What is remembered of a value: enough to find it again among thousands and to tell when it is not the same.
#pragma once
#include <cstdint>
#include <span>

#include "ir/eval/value.h"

namespace hlo {

// Of one array, or of what each of several devices holds of it, the devices' arrays one behind the other. Elements are
// taken in row-major order whatever the dimensions: a reshape has the sketch of its operand.
struct Sketch {
  uint64_t kind = 0;   // element type, number of elements, number of devices
  uint64_t exact = 0;  // of integers and predicates: all bits; of floats: where NaN and infinities are
  // Of floats (both parts of complex numbers), the finite ones: two sums with weights in [-1, 1] that depend on the
  // place alone, of the magnitudes, of the values and of their squares.
  double first = 0, second = 0, magnitudes = 0, sum = 0, squares = 0;
  double largest = 0;  // magnitude
  // Of an array with a mask in it (-1e9 beside numbers around 1): what is far larger than all others is summed apart,
  // or nothing that the others do would show. Where it stands is in `exact`; 0: there is none such. The same of one
  // with numbers of 1e8 and more beside small ones: those beyond kBesideHuge count by their logarithms then.
  double cut = 0, mask_first = 0, mask_magnitudes = 0;
  static constexpr double kBesideHuge = 1234.567;  // no number that rounding leaves on either side
  int64_t elements = 0, nan = 0, infinite = 0;
  bool floats = false;
  bool uniform = true;  // every element is the same

  bool has_mask() const { return cut > 0 && cut != kBesideHuge; }
  // Equal but for rounding in f64: sums within `share` of the sum of magnitudes.
  bool same(const Sketch& other, double share) const;
};

Sketch sketch_of(const Universe& u, std::span<const Value> each);
// The same of values that are one bit by bit alone: `exact` has all bits of floats, too, and nothing is summed.
Sketch bits_of(const Universe& u, std::span<const Value> each);

// The largest |a - b| over the largest magnitude of `b`, element by element and device by device; infinity where NaN or
// infinities are at other places, or integers differ. `at`, if given: flat index of the worst element.
double deviation(const Universe& u, std::span<const Value> a, std::span<const Value> b, int64_t* at = nullptr);
// The same of arrays with a mask (Sketch::cut): what is smaller than `cut` by the largest that is.
double deviation_beside_mask(const Universe& u, std::span<const Value> a, std::span<const Value> b, double cut);

}  // namespace hlo
