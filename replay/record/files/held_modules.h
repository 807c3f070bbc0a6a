// Files that are no modules and hold some: profiles (XSpace), entries of compilation caches, serialized programs.
// One of them is named `FILE:MODULE`, by number, name, function or a part that only one has, as modules of a folder
// are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

struct HeldModule {
  std::string name;     // the module's own
  int64_t number = -1;  // the profiler's program_id, which is the number in names of dumped files; -1: none
  std::string bytes;    // HloProto or HloModuleProto
  // `jit_f` or `jit_f(6)`.
  std::string label() const;
};

struct HeldModules {
  std::string what;  // "a profile", "an entry of a compilation cache", "a compiled program"
  std::vector<HeldModule> modules;
  int64_t compile_ms = -1;  // what jax's cache says; -1: it does not
  std::string why_none;     // where there are none
};

// Nothing where the file is of another kind. `text` as it lies in the file. Throws Failure where it is of this kind and
// damaged.
std::optional<HeldModules> held_modules(std::string_view label, std::string_view text);
// Of a compiled program as it is, unpacked and without jax's time in front (torch_xla's cache).
HeldModules program_modules(std::string_view bytes);
// The one that `wanted` fits; the only one where it is empty. Throws Failure(kUsage) with the candidates, of `file`.
const HeldModule& one_held_module(const HeldModules& all, const std::string& file, const std::string& wanted);

// `FILE:MODULE`, FILE being an existing file; nothing where it is not written like this.
struct HeldSpec {
  std::string file, wanted;
};
std::optional<HeldSpec> split_held(const std::string& spec);

// Texts with several graphs, as torch_xla writes with XLA_SAVE_TENSORS_FILE: with all that is not HLO turned into
// comments and `// -----` between the modules, lines keeping their numbers. False where it is no such text.
// A module without a name gets `graph_HASH` of torch_xla's `Graph Hash:`, a line that stays as a comment.
bool graphs_as_modules(std::string_view text, std::string* out);

// Files that hold modules and lie in a folder that is no recording: entries of jax's compilation cache
// (`NAME-HASH-cache`), profiles (`plugins/profile/DATE/HOST.xplane.pb` below it), snapshots of runs. By name, below the
// folder; links are not followed. At most `most`.
std::vector<std::string> holding_files(const std::string& folder, size_t most = 10000);

}  // namespace hlo
