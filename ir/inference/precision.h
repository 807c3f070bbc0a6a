// Modules of XLA's TPU compiler mix floats of several precisions (Precision::kMixed of verifier.h): they are read,
// verified and shown. What computes takes bytes of one type for those of another there, so it asks this first.
#pragma once
#include "ir/module.h"

namespace hlo {

// Does the instruction have floats of several types where those that compute expect one?
bool mixes_precision(const Module& m, InstId inst);

}  // namespace hlo
