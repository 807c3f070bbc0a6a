// What a compilation left that died: what XLA printed last, and the pass behind the last stage that it wrote.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

struct LastWords {
  std::vector<std::string> checks;   // failed checks, `algebraic_simplifier.cc:123: Check failed: …`; the first eight
  std::vector<std::string> running;  // classes of passes on the stack, innermost first: `AlgebraicSimplifier`
  std::string entered;               // the last pass that it logged to have entered; empty where it logs none
};
// `log`: all that the program printed, of any length and content.
LastWords last_words(std::string_view log);

// A module whose stages end before its result.
struct Unfinished {
  std::string module;
  std::string last;  // the last stage that was written: `simplification.after_algsimp`
  std::string next;  // the pass behind it; that one was running, or a later one that had written nothing
};
std::vector<Unfinished> unfinished_modules(const std::vector<Recording>& all);

// What XLA calls the pass of a class, or of a file, that has another name: `SpmdPartitioner` is spmd-partitioning.
// Empty where no such one is known here.
std::string_view pass_of_other_name(std::string_view cls);
// Is a pass of that class, or in a file of that name, the one that XLA calls `pass`? `AlgebraicSimplifier` is algsimp.
bool pass_named_like(std::string_view cls, std::string_view pass);

// Passes that may have been running when it died, the likeliest first: those on the stack whose class a pass of
// `known` is named like, the last that was entered, then what was next in unfinished modules.
std::vector<std::string> running_passes(const LastWords& words, const std::vector<Unfinished>& unfinished,
                                        const std::vector<std::string>& known);

}  // namespace hlo
