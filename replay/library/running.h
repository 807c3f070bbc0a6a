// What the calls that run modules share.
#pragma once
#include <vector>

#include "gpu_exec/executor.h"
#include "hlo/executor.h"
#include "hlo/pass.h"
#include "passes/pass.h"
#include "replay/judge/arguments/session.h"
#include "replay/library/access.h"

namespace hlo::api {

// Throw Failure(kUsage, kUnsupported) where an option is wrong or the backend is not to be had.
InputOptions input_options(const RunOptions& o);
const ExecutorInfo& executor_of(const RunOptions& o);
// `late` becomes true where the time is over; may be null.
EvalOptions eval_options(const RunOptions& o, bool* late);

std::vector<Array> arrays_of(const hlo::Universe& u, const Value& v);
std::vector<PassNote> told_notes(const std::vector<Note>& notes);

// A copy of what is shown to a callback, which may keep it.
inline Module shown(const std::shared_ptr<UniverseBody>& universe, const hlo::Module& m) {
  return Access::adopt(universe, m.clone());
}

}  // namespace hlo::api
