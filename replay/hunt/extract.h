// Parts of a module as modules of their own.
#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "replay/judge/arguments/session.h"

namespace hlo {

// What computes `outputs` (one: it is the result; several: a tuple of them), which stand in one computation. In the
// place of instructions in `cuts` stand parameters with their names; the parameters that are needed keep their order,
// the others follow. Control dependencies of that computation, aliasing and schedules are dropped; instructions keep
// their ids.
std::unique_ptr<Module> extracted(const Module& m, const std::vector<InstId>& outputs,
                                  const std::vector<InstId>& cuts = {});

// Where to cut so that at most `hops` operands lie between an output and a parameter.
std::vector<InstId> boundary(const Module& m, const std::vector<InstId>& outputs, size_t hops);

// After edits by hand: what the entry does not need goes, its parameters are numbered anew, the header agrees.
void tidy_entry(Module& m);

// Values of instructions by name, as one run gave them (of loops, the first step).
class Values {
 public:
  Values() = default;
  // Keeps at most `most_bytes`. Throws what running throws.
  Values(const Module& m, const Session& session, const EvalOptions& options, int64_t most_bytes = int64_t{4} << 30);
  // For a module whose parameters have the names of instructions: their values where shapes fit, else seeded ones.
  std::vector<Value> arguments(const Module& m, uint64_t seed, bool positive) const;
  const Value* find(StrId name) const;

 private:
  std::unordered_map<StrId, Value> values_;
};

}  // namespace hlo
