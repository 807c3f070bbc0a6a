// Files of XLA's autotuner.
#pragma once
#include <string>
#include <string_view>

#include "ir/library/tuning.h"

namespace hlo {

// The results of `--xla_gpu_dump_autotune_results_to` and DUMP/*.autotune_results.pbtxt, as text or binary, in either
// of XLA's forms. `label`: the file, for messages and TuningResults::file. Throws Failure: kSyntax with file:line:col
// where a text ends early or is none, kIo where a binary file is none, kUnsupported for more than 256 MB or of a
// version that is not known.
TuningResults read_tuning_results(std::string_view bytes, const std::string& label);
// Does the file look like one? By its first words.
bool looks_like_tuning_results(std::string_view bytes);

}  // namespace hlo
