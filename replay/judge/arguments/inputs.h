// What a module is run on: seeded values, literals as text, values for elided constants.
#pragma once
#include <functional>
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
  std::string place;            // where it was read, as commands name it: what lies beside is asked; empty: nothing is
  bool fit = false, unique_keys = false;
  // Of elided constants: random, zeros, refuse, or empty: random, and told to who hears (hear_elided).
  std::string fill_elided;
};

// Failure(kUsage) with the sum, before anything is allocated, where the parameters exceed the machine's memory.
void check_memory(const Module& m);
// Elided constants get values: those that files beside options.place have (own_constants.h), else random ones by seed,
// name and shape alone, in the range that their readers have room for. Failure(kUnsupported) naming the first where
// they are refused.
void settle_elided(Module& m, const InputOptions& options);
// What settle_elided found, and what it made up where nobody asked for it.
struct ElidedTold {
  std::string label;     // of the module
  size_t constants = 0;  // made up
  std::string first;     // one of them, by name; empty where none was
  uint64_t seed = 1;
  std::string own;  // where others have their values from, in words; empty: none has
};
// One listener, of the whole program; null: nobody hears.
void hear_elided(std::function<void(const ElidedTold&)> listener);
// One literal a parameter, in HLO's own syntax, a line each or behind one another. `label`: for messages. Throws
// Failure: what the parser says, kUsage where there are too few.
std::vector<Value> literal_arguments(const Module& m, const std::string& text, const std::string& label);

}  // namespace hlo
