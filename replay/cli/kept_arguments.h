// The arguments that a program had, where they lie with its dump (docs/formats.md, "A captured folder"); taken by
// check, bisect, exec and triage where nobody names inputs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/module.h"
#include "replay/cli/command.h"
#include "replay/judge/chosen/pair/kept_leaves.h"
#include "replay/os/files.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct KeptArguments {
  std::string inputs;    // .npz with p0, p1 …; empty: none fit
  std::string outputs;   // of the same call, o0, o1 …; empty: they were not kept, or some arguments were not
  std::string in_words;  // `module_0012.jit_f.arguments.npz, of the first call`
  std::string misfit;    // why a file that is this module's alone does not fit it; empty: it does
  std::vector<std::string> notes;          // other files that were left, and why
  std::shared_ptr<TemporaryFolder> holds;  // of what was taken out of a snapshot, where no `scratch` was named
};

// Those of a module; `first`: its first stage. Asked in this order: module_NNNN.NAME.arguments.npz, inputs.npz,
// arguments.NAME.K.npz (in `scratch`/arguments, too), the first snapshot. `scratch`: a folder of the caller's, or
// empty. Throws Failure(kUsage) for a folder that a later release wrote, Failure(kIo) for one whose capture.json is
// damaged.
KeptArguments kept_arguments(const Recording& r, const Module& first, const RunArgs& a, const std::string& scratch);
// Is there any file to ask?
bool keeps_arguments(const Recording& r, const std::string& scratch);
// Does the command take them: nobody named inputs or a seed.
bool takes_kept(const RunArgs& a);
// The same for a command that would go wrong with others: throws Failure(kUsage) where they do not fit, says the notes.
KeptArguments own_arguments(const Recording& r, const Module& first, const RunArgs& a);

// Elements of a program's arguments for `bisect --elements`, by --inputs or those that are kept with the dump as whole
// arrays; null where there are none, where the module is for several devices (whose arrays are parts), or where they
// are in a snapshot alone, which is a note. Reads 1 GiB at most, the smallest arrays first; what is left is a note.
// Throws Failure(kUsage) where an array does not fit.
std::shared_ptr<const KeptLeaves> kept_leaves(const Recording& r, const Module& first, const RunArgs& a);

// The file of a recording's first stage; empty where it has none.
std::string first_text(const Recording& r);

}  // namespace hlo
