// Sizes that come from a file: counts and widths are multiplied and added here and nowhere else, so that one that does
// not fit is seen, not wrapped.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ir/base/check.h"

namespace hlo {

// A count of elements or bytes that is at least 0, or "does not fit into 63 bits" (which every further sum and product
// with it is, too; a product with 0 is 0 again). A negative number given to it counts as 0, as a dimension does.
class Checked {
 public:
  constexpr Checked(int64_t value) : value_(value < 0 ? 0 : value) {}  // NOLINT: a number is one, too

  constexpr bool fits() const { return value_ != kTooLarge; }
  // At most INT64_MAX, which stands for all that does not fit: for comparisons with a limit.
  constexpr int64_t capped() const { return value_; }
  // The number. Throws Failure(kUnsupported): "`what` does not fit into this machine's memory".
  int64_t value(const char* what) const {
    if (!fits()) fail(FailureKind::kUnsupported, "{} does not fit into this machine's memory", what);
    return value_;
  }
  // The same of what is to be allocated or counted here: the page's engine has 32 bits for it.
  size_t size(const char* what) const {
    if (static_cast<uint64_t>(value_) > SIZE_MAX)
      fail(FailureKind::kUnsupported, "{} does not fit into this machine's memory", what);
    return static_cast<size_t>(value(what));
  }

  friend constexpr Checked operator*(Checked a, Checked b) {
    int64_t product = 0;
    if (a.value_ == 0 || b.value_ == 0) return 0;
    if (!a.fits() || !b.fits() || __builtin_mul_overflow(a.value_, b.value_, &product)) return kTooLarge;
    return product;
  }
  friend constexpr Checked operator+(Checked a, Checked b) {
    int64_t sum = 0;
    if (!a.fits() || !b.fits() || __builtin_add_overflow(a.value_, b.value_, &sum)) return kTooLarge;
    return sum;
  }
  constexpr Checked& operator*=(Checked other) { return *this = *this * other; }
  constexpr Checked& operator+=(Checked other) { return *this = *this + other; }
  // Rounded up.
  friend constexpr Checked divided(Checked a, int64_t by) {
    return a.fits() ? Checked(a.value_ / by + (a.value_ % by != 0)) : a;
  }

 private:
  static constexpr int64_t kTooLarge = INT64_MAX;
  int64_t value_;
};

}  // namespace hlo
