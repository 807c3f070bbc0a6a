// Lists of passes as options name them.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace hlo {

// The parts of `a,b,c`, empty ones left out.
std::set<std::string> words(const std::string& list);

// By name or alias. Throws Failure: kUnsupported where it is a pass of XLA's without code here, kUsage where nobody
// knows it.
const PassInfo& pass_or_fail(const std::string& name);

// A pass and its options as --passes names them: `a,b{x=1,y=2},c`.
struct WantedPass {
  const PassInfo* pass;
  std::map<std::string, std::string> options;
};
// Throws as above, and where a pass does not have an option.
std::vector<WantedPass> wanted_passes(const std::string& list);

}  // namespace hlo
