// Which sizes become which: the smallest that keep all rules.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "replay/smaller/rules.h"

namespace hlo {

struct SolveOptions {
  int64_t small = 16;    // numbers up to that stay
  bool distinct = true;  // different sizes stay different where rules leave the choice
  int64_t least = 0;     // sizes become no smaller than that where rules leave the choice
};

// By the keys of rules; what is not in it stays.
struct SizeChoice {
  std::map<int64_t, int64_t> becomes;
  std::map<int64_t, std::pair<int64_t, int64_t>> differences;  // of SizeRules
  std::set<int64_t> devices;                                   // of SizeRules
  int64_t small = 0;                                           // of SolveOptions

  int64_t of(int64_t size) const;
  int64_t of_place(int64_t place) const { return of(place_key(place)); }
  bool cuts_anything() const;
  // Of a number that counts indices: a size, one less or more than one, what lies between two; nothing: it stays.
  std::optional<int64_t> of_index(int64_t number) const;
};

// Every size keeps its kind: a power of two stays one, a multiple of 8, 4, 2 and an odd number, too, where the rules
// leave the choice; none grows. Always finds some choice: that nothing changes is one.
SizeChoice choose_sizes(const SizeRules& rules, const SolveOptions& options);

}  // namespace hlo
