// Programs of the user's that compile by XLA, run under flags of ours.
#pragma once
#include <string>
#include <vector>

namespace hlo {

// Those that make XLA write every stage into `folder`.
std::string xla_dump_flags(const std::string& folder);

// What flags say of one (without dashes), the last one; empty where they do not.
std::string xla_flag_in(const std::string& flags, const std::string& flag);
// What the environment's XLA_FLAGS say of a flag (without dashes), the last one; empty where they do not.
std::string xla_flag_set(const std::string& flag);

// Runs it with `flags` behind what XLA_FLAGS holds, and with jax's compilation cache off. Exit code, 128 + signal where
// one ended it. `log`: file for all that it prints; empty: it prints as usual. Throws Failure(kUsage) where it cannot
// be run. `limit_seconds`: it is ended after so long, and kTimedOut (replay/os/spawn.h) comes back; 0: never.
int run_under_xla(const std::vector<std::string>& words, const std::string& flags, const std::string& log,
                  double limit_seconds = 0);

}  // namespace hlo
