// What XLA's autotuner knows an instruction by.
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

// Of an instruction as it stands before the autotuner's pass, 32 digits of a 128-bit fingerprint of its text with the
// shapes of its operands, the bodies that it calls and its configuration, without names and metadata
// (xla/backends/autotuner/autotune_fingerprint.cc). It holds for modules of whatever name. An array of integers that
// the text leaves out ({...}) gives another key than XLA's.
std::string tuning_key(const Module& m, InstId instruction);
// That one, and what releases of XLA would name it whose dictionaries of configurations have keys that this one's
// lacks.
std::vector<std::string> tuning_keys(const Module& m, InstId instruction);
// The text that it is the fingerprint of.
std::string tuning_text(const Module& m, InstId instruction);
// The same for kernels that do the same work whatever back end and settings they have: without configurations and the
// kind of a fusion.
std::string kernel_content_key(const Module& m, InstId instruction);

}  // namespace hlo
