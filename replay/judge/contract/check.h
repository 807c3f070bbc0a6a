// Is a compiled result right? It is held against the module as it was written (before any pass), run by the evaluator
// in its own precision and in f64.
//
//   right     every element's error against f64 is what the module's own precision makes of it
//   rounding  larger, but no larger than adding up in another order and last places make it (noise.h)
//   contract  the elements that differ depend on what HLO leaves open (contract.h)
//   wrong     elements differ that nothing of this explains
//   unknown   the module cannot be run here, or our own executors do not agree about it
#pragma once
#include <string>
#include <vector>

#include "replay/judge/arguments/session.h"
#include "replay/judge/contract/contract.h"

namespace hlo {

enum class CheckVerdict { kRight, kRounding, kContract, kWrong, kUnknown };
std::string_view verdict_name(CheckVerdict v);

struct CheckedOutput {
  std::string name, shape;  // o0, o1 …: leaves of the result
  CheckVerdict verdict = CheckVerdict::kRight;
  int64_t elements = 0;
  int64_t different = 0;  // not the same bits as the module gives in its own precision
  int64_t rounded = 0;    // of them off by more than that precision, and explained by rounding
  int64_t open = 0;       // of them decided by what HLO leaves open
  int64_t wrong = 0;      // of them not explained
  // The worst element: a wrong one, else an open one, else the one with the largest error. Empty texts: none differs.
  Dims index;
  std::string compiled, written, exact;  // as a number in its type; the exact one in f64
  // The largest |value - exact|, of the largest magnitude; negative of integers.
  double error = -1, error_written = -1;
};

struct DecidingSite {
  ContractSite site;
  // Whether elements that differ depend on it. `asked` false: nothing differs that it was asked for, or there were too
  // many sites to try each.
  bool asked = false, decides = false;
  bool reproduces = false;              // another value here gives what was compiled
  std::vector<Contract> together = {};  // it decides only where these are left, too, here or elsewhere
};

// Why elements that are as right as those of the evaluator have other bits. `elements`: of them those that this
// reaches; one may be reached by several.
struct OtherBits {
  std::string_view kind, words;  // `nan-payload`, `sum-order` …: docs/formats.md
  int64_t elements = 0;
  std::vector<InstId> at;  // instructions that leave it open; none of what is said of values alone
};

struct CheckResult {
  CheckVerdict verdict = CheckVerdict::kUnknown;
  std::string why;
  std::vector<CheckedOutput> outputs;
  std::vector<DecidingSite> contracts;  // every site where the run leaves the contract
  std::vector<OtherBits> other_bits;
};

// `got`: the compiled result, in the shapes of the module's. Throws Failure(kUnsupported) where the evaluator cannot
// run the module.
CheckResult check_result(const Module& m, const Session& session, const Value& got, const EvalOptions& options);

}  // namespace hlo
