// Instructions by name, and what to say where there is none.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "ir/module.h"

namespace hlo {

// The instruction of that name, with or without `%`, in any computation; invalid where there is none. A module that is
// right has no two of one name; of one that is not, the first.
InstId find_instruction(const Module& m, std::string_view name);

// "; did you mean 'dot.3'?", the end of a message; empty where `near` is.
std::string did_you_mean(std::string_view near);

// Of known names the one that is nearest to what was asked for, where fewer than four letters differ, of short names
// fewer; the first of several.
class NearestName {
 public:
  explicit NearestName(std::string_view wanted)
      : wanted_(wanted), distance_(std::min(4, static_cast<int>(wanted.size()) / 2 + 2)) {}
  void see(std::string_view known);
  const std::string& name() const { return nearest_; }  // empty: none is near
  std::string hint() const { return did_you_mean(nearest_); }

 private:
  std::string wanted_, nearest_;
  int distance_;  // the least so far; at first what is no longer near
};

}  // namespace hlo
