// What the sizes of a module have to do with each other. A size is a number, wherever it stands: 4096 is one unknown in
// every array, attribute and stage, so what was equal stays equal, between the stages of a dump, too, and an operation
// has a rule only where it makes other numbers of the ones that it gets.
// replay/report/what_if/batch_rules.h follows single dimensions instead, since a batch must not take a weight's
// dimension of the same size along; what both know of reshapes is common_factors (ir/types/dims.h). They become one
// where an operation's row tells how its dimensions relate and both readers ask that.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace hlo {

// Places within a dimension (where a slice begins and ends, how much is padded) are numbers of their own: that a slice
// ends at 12 has nothing to do with arrays of 12. In rules and choices they stand as place_key(n).
inline constexpr int64_t kPlace = int64_t{1} << 61;
inline int64_t place_key(int64_t n) {
  if (n == 0) return 0;
  int64_t key = 0;
  if (__builtin_add_overflow(n, n > 0 ? kPlace : -kPlace, &key)) return n;  // no array is as large
  return key;
}
// The number that a key stands for.
inline int64_t number_of(int64_t key) { return key >= kPlace ? key - kPlace : key <= -kPlace ? key + kPlace : key; }

// f is what becomes of a size. Numbers up to the limit for small ones, 0 and 1 among them, stay as they are; f(-n) is
// -f(n).
struct SizeRule {
  enum Kind {
    kSum,      // Σ factor·f(size) is what it is of the sizes as they are
    kProduct,  // Π f(size)^factor is 1
    kLess,     // f(first size) < f(second size)
    kAtMost,   // f(first size) ≤ f(second size)
  } kind = kSum;
  std::vector<std::pair<int64_t, int64_t>> terms;  // size and factor
  std::string where;                               // the instruction, and the stage where there are several
  const char* why = "";                            // `is concatenated`
};

class SizeRules {
 public:
  // Adds what a module says. `stage` stands in front of names; empty: none does.
  void read(const Module& m, const std::string& stage);
  // This size stays. The first reason is kept.
  void keep(int64_t size, const std::string& where, const std::string& why);

  const std::vector<SizeRule>& rules() const { return rules_; }
  // Of dimensions, as often as they occur.
  const std::map<int64_t, size_t>& sizes() const { return sizes_; }
  const std::set<int64_t>& kept() const { return kept_set_; }
  struct Kept {
    int64_t size;
    std::string where, why;
  };
  const std::vector<Kept>& why_kept() const { return kept_; }
  // Numbers that stand for the difference of two sizes, as the last start of a dynamic slice does: by number.
  const std::map<int64_t, std::pair<int64_t, int64_t>>& differences() const { return differences_; }
  // Numbers of partitions and replicas: tables with a number a device (constants.h) keep them.
  const std::set<int64_t>& devices() const { return devices_; }

 private:
  using Terms = std::vector<std::pair<int64_t, int64_t>>;
  class Reader;
  void add(SizeRule::Kind kind, Terms terms, const std::string& where, const char* why);

  std::vector<SizeRule> rules_;
  std::unordered_set<std::string> known_;  // rules by their text
  std::map<int64_t, size_t> sizes_;
  std::set<int64_t> kept_set_;
  std::vector<Kept> kept_;
  std::map<int64_t, std::pair<int64_t, int64_t>> differences_;
  std::set<int64_t> devices_;
};

}  // namespace hlo
