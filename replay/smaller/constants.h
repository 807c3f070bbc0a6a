// Constants that are sizes: tables, bounds of loops, and numbers that are used as indices.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/module.h"
#include "ir/types/literal.h"

namespace hlo {

enum class TableKind {
  kUniform,  // one number throughout
  kCount,    // begin + step·(index along `dim`), whole numbers
  kOther,
};
struct Table {
  TableKind kind = TableKind::kOther;
  int64_t dim = 0, begin = 0, step = 0;  // of kCount
};
// Of an array that is not elided.
Table table_of(const Universe& u, const Literal& l);
// The same table of another shape. `begin` and `step` as they shall be.
Literal table_like(const Universe& u, const Literal& l, const Table& table, ShapeId shape);

// Whole numbers of 32 bits, one for each of so many devices: what a partition's offsets are looked up in.
inline bool device_table(const Shape& s, const std::set<int64_t>& devices) {
  return s.is_array() && s.rank() == 1 && is_integral(s.type) && type_bits(s.type) == 32 && devices.contains(s.dims[0]);
}

// A loop that counts: `i < limit`, from `begin`, both constants.
struct LoopBound {
  bool known = false;
  int64_t begin = 0, limit = 0;
};
LoopBound loop_bound(const Module& m, InstId loop);

// The value of a scalar or uniform constant of integers, or of a broadcast of one.
std::optional<int64_t> whole_number(const Module& m, InstId i);

// Which uses of a constant count indices, so that its number goes along with a size of that number: what is compared,
// added, clamped, an index of a slice, where a loop begins, a result. Bits that are mixed, shifted or become floats do
// not.
class IndexUses {
 public:
  explicit IndexUses(const Module& m);
  // Of `value` as operand number `k` of `user`.
  bool counts(InstId user, size_t k) { return counts(user, k, 0); }

 private:
  bool counts(InstId user, size_t k, int depth);
  bool any(InstId value, int depth);
  bool element(InstId tuple, int64_t index, int depth);

  const Module& m_;
  std::unordered_map<InstId, bool> known_;
  std::vector<std::vector<InstId>> callers_;
};

// Every constant of whole numbers that counts indices, scalar, uniform or a small table of multiples of a size:
// `becomes` gives the new number, nothing where it stays. What has uses of both kinds becomes two constants. Returns
// how many were changed.
size_t change_indices(Module& m, const std::function<std::optional<int64_t>(int64_t)>& becomes);

}  // namespace hlo
