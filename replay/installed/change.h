// Where in a row of candidates an answer changes: a logarithmic number of questions, and a check that it changes once.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace hlo {

struct Change {
  enum Outcome {
    kFound,    // between `before` and `after`, which are neighbours but for unknown ones between them
    kNone,     // both ends answer alike
    kUnknown,  // an end, or all between, could not be asked
  } outcome = kUnknown;
  size_t before = 0, after = 0;
  bool once = true;  // of those that were asked none contradicts; false: it changes back and forth
};

enum class Side { kFirst, kLast, kUnknown };

// `side(k)`: does candidate k answer as the first (0) or as the last (count - 1)? Asked of the ends first: where both
// are kFirst there is no change. Answers are to be remembered by who gives them: some are asked for twice.
Change find_change(size_t count, const std::function<Side(size_t)>& side);

}  // namespace hlo
