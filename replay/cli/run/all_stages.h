// exec --all-stages: every stage of a recording against its first.
#pragma once
#include "replay/cli/command.h"

namespace hlo {

// Of all modules of the folder; prints a line a stage and one of all. The command's exit code.
int run_all_stages(const ExecArgs& a);

}  // namespace hlo
