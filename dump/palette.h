// Colours by operation class, those that XLA's own graphs use (xla/service/hlo_graph_dumper.cc).
#pragma once
#include <string_view>

#include "ir/module.h"

namespace hlo {

struct Colour {
  std::string_view name, fill, stroke, text;
};
Colour colour_of(const Module& m, InstId inst);
// name and meaning of each class, for legends.
struct LegendRow {
  Colour colour;
  std::string_view meaning;
};
const std::vector<LegendRow>& legend();

}  // namespace hlo
