// Stage after stage at chosen elements, for programs too large to run.
#pragma once
#include <functional>
#include <map>
#include <set>

#include "replay/hunt/bisect.h"
#include "replay/judge/chosen/pair/by_elements.h"

namespace hlo {

struct ElementsSearch {
  Bisection found;
  std::map<size_t, ElementsStage> stages;  // by candidate; those that could be read
  std::set<size_t> unread;                 // those that could not, whatever judges them
};

// All candidates in order, each against the one before that could be read. Throws what judging the first one throws.
// `told`: after each that could be read, in front of options.judged.
ElementsSearch search_by_elements(const Candidates& row, const Module& first, const ElementsOptions& elements,
                                  const BisectOptions& options,
                                  const std::function<void(size_t, const ElementsStage&)>& told = nullptr);

}  // namespace hlo
