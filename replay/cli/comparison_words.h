// A comparison of results in JSON and in words, as exec and compare tell it.
#pragma once
#include <string>

#include "ir/eval/compare.h"
#include "replay/cli/json_output.h"

namespace hlo {

Json to_json(const OutputComparison& o);
std::string in_words(const OutputComparison& o);
// "equal", or the first output that is not.
std::string verdict(const Comparison& c);

}  // namespace hlo
