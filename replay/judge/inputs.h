// What a module is run on: seeded values, literals as text, values for elided constants.
#pragma once
#include <string>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

// Where inputs come from.
struct InputOptions {
  uint64_t seed = 1;
  bool positive = false;        // scheme of the seeds
  std::string file;             // .npz, .npy or literals as text, in the place of seeded values
  std::vector<LitId> snapshot;  // arguments that a snapshot brought, taken where there is no file
  std::vector<Value> given;     // one a parameter, of its shape: in the place of all of these
  std::string label;            // of the module, for messages
  bool fit = false, unique_keys = false;
  std::string fill_elided;  // random, zeros or empty: refused
};

// Failure(kUsage) with the sum, before anything is allocated, where the parameters exceed the machine's memory.
void check_memory(const Module& m);
// Elided constants get the values that were asked for; Failure(kUnsupported) naming the first where none were.
void settle_elided(Module& m, const InputOptions& options);
// One literal a parameter, in HLO's own syntax, a line each or behind one another. `label`: for messages. Throws
// Failure: what the parser says, kUsage where there are too few.
std::vector<Value> literal_arguments(const Module& m, const std::string& text, const std::string& label);

}  // namespace hlo
