// What looks odd about a compiled module: things that the program's author can change, each with the instruction that
// shows it. Only what the module proves: what may be meant otherwise is said as it is, with what to do if it is not.
#pragma once
#include <string>
#include <vector>

#include "replay/report/explain/evidence.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {

// What came of a finding's advice when the change was made and compiled.
struct FindingTried {
  enum Outcome { kNotTried, kCompiled } outcome = kNotTried;
  std::string words;                      // what was changed, or why it was not tried
  double seconds = 0, seconds_after = 0;  // of one call, by the model or bound that both sides share
  double bytes = 0, bytes_after = 0;      // of memory that is allocated
  double least_freed = 0;  // bytes that are worth the change, however small a part of all they are; 0: a part counts
  // Less time, or less memory, by what one may trust of such figures.
  bool helps() const;
  // Made, compiled and of no use: the advice does not stand.
  bool useless() const { return outcome == kCompiled && !helps(); }
};

struct ModuleFinding {
  std::string kind;              // "transposed-parameter", "copy-at-loop" …
  InstId inst;                   // where it shows
  std::vector<InstId> others;    // what belongs to it
  std::vector<int64_t> results;  // of "missing-donation": the result that each of `others` could lend its memory to
  std::string what, advice;      // in words
  // That what is odd costs in a call by the bound of its kernels, loops counted. No bound of the gain: what feeds or
  // reads it may change, too. 0: not counted in time.
  double seconds = 0;
  double bytes = 0;          // of memory that would be free, where that is the cost; else 0
  InstId odd;                // the pad, copy, transposition or product itself; invalid: `inst`
  FindingEvidence evidence;  // empty where nobody has looked
  FindingTried tried = {};
};

// A module with its costs, as the findings look at it. Both must live as long.
class FindingsInput {
 public:
  FindingsInput(const Module& m, const ModuleCost& cost, const DeviceSpec& device);
  const Module& m;
  const ModuleCost& cost;
  const DeviceSpec& device;

  // The instruction or parameter of the entry computation whose value this is, followed through bitcasts, tuples, and
  // the state of loops that hand it on unchanged. The instruction itself where it makes a value.
  InstId origin(InstId i) const;
  // … from within a fusion: out through its parameters, where only bitcasts stand between.
  InstId origin_in_fusion(InstId i, InstId fusion) const;
  // What computes a value: out of fusions and calls through their parameters, into them through their roots. A bitcast
  // is none of these. `within`: parameters of that computation are followed no further.
  InstId computed(InstId i, CompId within = {}) const;
  // `parameter state.params['w'] (f32[4096,32], 12.0MiB)`.
  std::string in_words(InstId i) const;
  // Less than that of one kernel is never told, not even with many like it.
  static bool counts(double seconds) { return seconds >= 1e-7; }
  // Is so much time worth a line? A share of the whole of one call.
  bool matters(double seconds, double share = 0.005) const {
    return counts(seconds) && seconds >= share * cost.seconds;
  }
  // Its kernel's cost; null where it is none.
  const KernelCost* kernel(InstId i) const;

 private:
  std::vector<std::vector<InstId>> callers_;
  std::unordered_map<InstId, const KernelCost*> kernels_;
};

// A parameter of the program that is transposed by a kernel of its own in each call.
std::vector<ModuleFinding> transposed_parameters(const FindingsInput& in);
// Products in f32 whose operands were bf16 or f16, and f32 products in a module whose others are bf16 or f16.
std::vector<ModuleFinding> wide_products(const FindingsInput& in);
// Copies in the body of a loop, or of what a loop begins with.
std::vector<ModuleFinding> copies_at_loops(const FindingsInput& in);
// Two kernels that work element by element, where the one is all that reads the other.
std::vector<ModuleFinding> unfused_chains(const FindingsInput& in);
// Many products that need less time than their launches.
std::vector<ModuleFinding> tiny_products(const FindingsInput& in);
// Kernels that only pad what a product reads.
std::vector<ModuleFinding> padded_products(const FindingsInput& in);
// Parameters that results could take the place of.
std::vector<ModuleFinding> missing_donation(const FindingsInput& in);
// The same rows gathered twice.
std::vector<ModuleFinding> repeated_gathers(const FindingsInput& in);

// Products with rows of a one at the place of an index, which is a lookup.
std::vector<ModuleFinding> one_hot_products(const FindingsInput& in);
// Values of one constant that a loop carries as a whole array.
std::vector<ModuleFinding> constants_in_loops(const FindingsInput& in);
// What works element by element and is written for one reader of another kind.
std::vector<ModuleFinding> single_readers(const FindingsInput& in);
// Sorts of which a few of the first or the last are read.
std::vector<ModuleFinding> sorts_for_a_few(const FindingsInput& in);
// Sums of (a - b)² over all pairs of rows, which a product is most of.
std::vector<ModuleFinding> distances_by_differences(const FindingsInput& in);
// What is repeated in memory for a product that could do without.
std::vector<ModuleFinding> expanded_operands(const FindingsInput& in);
// Products in the body of a loop that take a step's part of what the loop does not change.
std::vector<ModuleFinding> products_without_state(const FindingsInput& in);
// Parameters that were given up, whose new value is of another type and cannot take their place.
std::vector<ModuleFinding> retyped_state(const FindingsInput& in);
// Where narrow values become f32 because they meet an f32 scalar, with all that is f32 behind it. Only the first stage
// tells.
std::vector<ModuleFinding> scalars_that_widen(const FindingsInput& in, Provenance& stages);

// All of them: by time, then by memory; as the module shows them by itself.
std::vector<ModuleFinding> all_findings(const FindingsInput& in);
// The same held against the first stage: each with its evidence, without what a pass did that nobody can help.
std::vector<ModuleFinding> all_findings(const FindingsInput& in, Provenance& stages);

}  // namespace hlo
