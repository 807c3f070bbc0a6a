// What boxes say.
#pragma once
#include <string>

#include "viewer/layout/folding.h"
#include "viewer/layout/layout.h"

namespace hlo {

// Label, detail, opcode and class of an instruction's box: its name, its shape, what its reducer does, small constants.
void describe(const Folding& f, InstId i, DrawnBox* box);
// The same of a group's.
void describe(const Folding& f, const FoldGroup& g, DrawnBox* box);
// Width and height of a closed box.
void measure(DrawnBox* box);
// Letters that are shown of a text; the rest is cut.
std::string shown_text(std::string_view text, size_t letters);

}  // namespace hlo
