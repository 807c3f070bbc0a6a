// What HLO leaves open, and where a run makes use of it: instructions whose executed values leave the contract, and
// other values that they might have had. What is defined is not here: integers wrap, starts of slices and gathers are
// clamped, updates out of bounds are dropped, NaN compares as IEEE says.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/eval/evaluator.h"

namespace hlo {

enum class Contract {
  // The value is open: another compiler may give any of several.
  kConvert,        // float to integer, out of range or NaN
  kDivide,         // integers: by zero, or the least by -1
  kShift,          // by a negative amount or by the width and more
  kSortTies,       // is_stable=false and equal keys that carry different values
  kSortNan,        // NaN among keys that the comparator does not order
  kUniqueIndices,  // unique_indices=true of indices that come twice
  kSortedIndices,  // indices_are_sorted=true of indices that are not
  kScatterOrder,   // which of several updates of one element comes last
  kReduceOrder,    // a reducer that is not associative
  kReduceInit,     // an initial value that changes something each time it is used
  kRandom,         // rng, rng-bit-generator of rng_default
  kUninitialised,  // AllocateBuffer read before it is written
  // The value may be off by no more than that: another one is held against what was compiled.
  kRange,     // an intermediate overflows or underflows its type and need not, where it is kept in a wider one
  kExcess,    // a value is not rounded to its narrow type before it is used
  kDenormal,  // numbers below the least normal one are flushed to zero
  kAccuracy,  // exp, tanh, pow …: HLO names no accuracy
};
inline constexpr Contract kOpenContracts[] = {
    Contract::kConvert,     Contract::kDivide,        Contract::kShift,         Contract::kSortTies,
    Contract::kSortNan,     Contract::kUniqueIndices, Contract::kSortedIndices, Contract::kScatterOrder,
    Contract::kReduceOrder, Contract::kReduceInit,    Contract::kRandom,        Contract::kUninitialised};

std::string_view contract_name(Contract c);   // `convert-range`, `sort-ties` …: docs/formats.md
std::string_view contract_words(Contract c);  // a sentence about the instruction

// May an instruction of that opcode leave that contract (of the open ones) at all?
bool contract_concerns(const Module& m, InstId i, Contract c);
// How many other values there are to try.
int contract_choices(Contract c);

// Another value that the instruction might have given for these operands, the contract `c` kept; number `which` of
// contract_choices. None where these operands leave nothing open. `open`, when not null: how many elements (keys,
// indices) are open.
std::optional<Value> contract_value(const Module& m, InstId i, std::span<const Value> operands, const Value& v,
                                    Contract c, int which, int64_t* open);

struct ContractSite {
  InstId inst;
  Contract kind;
  int64_t elements = 0;  // open in the run, over all times that it ran
};

// Notes the open sites of a run. For EvalOptions::change, which it leaves the values as they are.
class ContractWatch {
 public:
  explicit ContractWatch(const Module& m) : m_(m) {}
  void see(InstId i, std::span<const Value> operands, const Value& v);
  const std::vector<ContractSite>& sites() const { return sites_; }

 private:
  const Module& m_;
  std::vector<ContractSite> sites_;
};

}  // namespace hlo
