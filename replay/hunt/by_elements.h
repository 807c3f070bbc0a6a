// Stage after stage at chosen elements, for programs too large to run.
#pragma once
#include <map>

#include "replay/hunt/bisect.h"
#include "replay/judge/chosen/by_elements.h"

namespace hlo {

struct ElementsSearch {
  Bisection found;
  std::map<size_t, ElementsStage> stages;  // by candidate; those that could be read
};

// All candidates in order, each against the one before that could be read. Throws what judging the first one throws.
ElementsSearch search_by_elements(const Candidates& row, const Module& first, const ElementsOptions& elements,
                                  const BisectOptions& options);

}  // namespace hlo
