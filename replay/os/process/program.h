// Programs of the user's that compile by XLA, run under flags of ours.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

// Those that make XLA write every stage into `folder`.
std::string xla_dump_flags(const std::string& folder);

// The environment's XLA_FLAGS.
std::string xla_flags_set();
// What flags say of one (without dashes), the last one; empty where they do not.
std::string xla_flag_in(const std::string& flags, const std::string& flag);
// What the environment's XLA_FLAGS say of a flag (without dashes), the last one; empty where they do not.
std::string xla_flag_set(const std::string& flag);

// Flags that XLA's last words name as unknown (`Unknown flags in XLA_FLAGS: --a=1 --b`), as they were written.
std::vector<std::string> unknown_xla_flags(std::string_view log);
// `flags` without those; blanks between the others stay one.
std::string without_xla_flags(const std::string& flags, const std::vector<std::string>& unknown);

// A captured folder's files beside the dump (docs/formats.md).
struct KeptByProgram {
  std::string folder;               // an existing one; empty: nothing is kept
  std::string arguments = "small";  // none, small (256 MiB of all together) or all
};

// Runs it with `flags` behind what XLA_FLAGS holds, and with jax's compilation cache off. Exit code, 128 + signal where
// one ended it. `without`: flags that are left out of both. `log`: file for all that it prints; empty: it prints as
// usual. `limit_seconds`: it is ended after so long, and kTimedOut (replay/os/process/spawn.h) comes back; 0: never.
// `kept`: what a Python program leaves of the functions that jax compiles for it. Throws Failure(kUsage) where it
// cannot be run.
int run_under_xla(const std::vector<std::string>& words, const std::string& flags, const std::string& log,
                  const std::vector<std::string>& without = {}, double limit_seconds = 0,
                  const KeptByProgram& kept = {});
// The sitecustomize.py that does so: python/hlo_replay/_keep.py.
extern const char* const kArgumentHook;

}  // namespace hlo
