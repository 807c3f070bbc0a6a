// A drawing as SVG: of any size, self-contained, with colours of operation classes as dump/palette.h has them.
#pragma once
#include <string>

#include "viewer/layout/layout.h"

namespace hlo {

// `m`: the module that was laid out. Names are escaped; there is nothing in it but shapes and text.
std::string drawing_svg(const Module& m, const Drawing& drawing);

}  // namespace hlo
