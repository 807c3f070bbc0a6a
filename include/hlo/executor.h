// Running modules.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "hlo/array.h"
#include "hlo/module.h"

HLO_API_BEGIN

struct Backend {
  std::string name, summary;
  std::string unavailable;  // why it cannot be used here; empty when it can
};
// evaluator (the exact interpreter; `eval` is taken for it, too), host, emulated, cuda.
HLO_EXPORT std::vector<Backend> backends();

struct RunOptions {
  std::string backend = "evaluator";
  std::string precision = "own";  // own; high: every float in f64, which the outputs then are, too
  // Inputs where none are given: drawn from the seed, the same everywhere.
  uint64_t seed = 1;
  bool positive = false;          // … none negative
  bool fit = false;               // … indices in range, initial values that leave sums alone
  bool unique_keys = false;       // with fit: no duplicates among sort keys
  std::string fill_elided = {};   // values for constants written `{...}`: random, zeros; empty: refused
  uint64_t rng_seed = 42;         // of the module's own random numbers
  int64_t max_steps = INT64_MAX;  // of a loop; beyond: Error(unsupported)
  double seconds = std::numeric_limits<double>::infinity();  // beyond: Error(unsupported)
  // Bytes that parameters and values may take at the least, foreseen before anything is allocated; 0: what this machine
  // can give. Beyond: Error(unsupported) with the sum.
  int64_t memory = 0;
  bool exact = false;  // no library for large products
  bool verify = true;  // what the verifier refuses is not run: it may crash
  int repeat = 1;
};

struct RunResult {
  // Leaves of the result, depth first, tokens left out; of a module for several devices in whole arrays.
  std::vector<Array> outputs;
  double compile_seconds = 0, run_seconds = 0;  // the best of the repeats
  std::vector<std::string> notes;               // what a backend leaves to the evaluator, and why
};

// `inputs`: leaves of the entry's parameters, depth first (Module::input_shapes tells them), or none: made from the
// seed. Throws Error(usage) where their number, types or dimensions are not the module's.
HLO_EXPORT RunResult run(const Module& module, const std::vector<Array>& inputs = {}, const RunOptions& options = {});
// The inputs that run() makes of the seed.
HLO_EXPORT std::vector<Array> make_inputs(const Module& module, const RunOptions& options = {});

HLO_API_END
