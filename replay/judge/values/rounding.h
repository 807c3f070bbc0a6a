// Values in the stages' own types that are one but for rounding: what an operation that is written in another way gives
// on the same operands.
#pragma once
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"
#include "replay/judge/values/views.h"

namespace hlo {

enum class Rounding {
  kNone,  // another bit is another value
  kOnce,  // an elementwise operation: the last place of each element
  kSums,  // sums: the last place, and what another order of summands makes, as a share of the array's largest magnitude
};
// What another way to write the operation may round in another way. Comparisons, choices and whatever moves elements
// round nothing; of loops, sorts, random numbers and constants every bit counts.
Rounding rounding_of(const Module& m, InstId i);

// Is `a` what `b` is but for that, element by element and device by device? An element may be off by two units of f32's
// or f64's last place, by one of a narrower type, and where sums are rounded by another 2^-20 (f64: 2^-49) of the
// largest magnitude. NaN, infinities and zeros of elementwise operations are at the same places.
bool same_but_for_rounding(const Universe& u, std::span<const Value> a, std::span<const Value> b, Rounding how);

// Finds these among thousands.
class NearValues {
 public:
  void add(const Universe& u, std::span<const Value> each, NumberId n);
  // Those that may be it, the likeliest first: a few elements agree.
  std::vector<NumberId> like(const Universe& u, std::span<const Value> each, Rounding how) const;

 private:
  std::unordered_map<uint64_t, std::multimap<double, NumberId>> by_kind_;
};

}  // namespace hlo
