// Stages that chosen elements leave open, at smaller sizes.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "replay/cli/command.h"
#include "replay/hunt/inside/search.h"
#include "replay/judge/chosen/by_elements.h"

namespace hlo {

struct AtSmallerSizes {
  Verdict verdict = Verdict::kUnknown;  // good: every changed instruction was compared
  std::string why;
  std::unique_ptr<InsideSearch> search;  // of a bad one, which stands under its own place in the row
};

// One stage of the row against the one that stands `before` it, both as `row` loads them: with small arrays. Throws
// what running them throws.
AtSmallerSizes judge_at_smaller_sizes(const Candidates& row, size_t before, size_t stage, const InputOptions& inputs,
                                      const BisectArgs& a);

// What smaller sizes accuse, at full size: at chosen elements, by several draws.
struct AtFullSize {
  std::optional<ElementsFinding> seen;  // it is wrong there, too
  bool same = false;                    // it is not: all that it changes was compared there
};
AtFullSize at_full_size(const Module& before, const Module& stage, uint64_t seed);

}  // namespace hlo
