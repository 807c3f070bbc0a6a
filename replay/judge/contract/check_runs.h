// The runs that check_result asks for: the module with other values at chosen instructions.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "replay/judge/arguments/session.h"
#include "replay/judge/contract/contract.h"

namespace hlo {

// A leaf of a result as numbers: floats as f64 (of complex ones both parts, one after the other), all else as integers.
struct Numbers {
  ElementType type = ElementType::F32;  // the component's
  bool floats = false;
  int parts = 1;  // numbers an element
  std::vector<double> real;
  std::vector<int64_t> whole;
  size_t size() const { return floats ? real.size() : whole.size(); }
};
using Leaves = std::vector<Numbers>;

Leaves numbers_of(const Universe& u, const Value& v);

class CheckRuns {
 public:
  CheckRuns(const Module& m, const Session& session, const EvalOptions& options)
      : m_(m), session_(session), options_(options) {}

  Leaves as_written(std::vector<ContractSite>* sites);  // in its own precision
  Leaves exact();                                       // in f64
  Leaves noisy(uint32_t seed);
  // Other values of kind `c` at one instruction, or at all where `only` is invalid.
  Leaves open(Contract c, int which, InstId only);
  // Of the kinds that are no open value but a bound. `sites`: where it made a difference to a value.
  Leaves bounded(Contract c, int which, InstId only, std::map<InstId, int64_t>* sites);
  // Several of those kinds at once, in a way of its own for each `which` below together_choices. `without`: an
  // instruction that keeps to all of them.
  Leaves together(const std::vector<Contract>& kinds, int which, InstId without, std::map<InstId, int64_t>* sites);
  static int together_choices(const std::vector<Contract>& kinds);
  // Rounding moves what the instructions `at` give, and nothing else.
  Leaves shaken(const std::function<bool(InstId)>& at, uint32_t seed);
  Leaves by_host();  // our other executor; throws where it does not run the module

 private:
  Leaves run(std::function<void(InstId, std::span<const Value>, Value&)> change, bool high) const;
  Leaves loud(uint32_t seed, InstId only, std::map<InstId, int64_t>* sites) const;
  Leaves flushed(InstId only, std::map<InstId, int64_t>* sites) const;
  // What is left out of rounding each value of a run in f64 to its type in the module.
  struct Loose {
    bool over = false, under = false;  // what the type cannot hold, or only below its least normal number, is kept
    bool converts = false;             // to a narrower type
    bool wide = false;                 // values of narrow types are rounded to f32
    bool flush = false;                // numbers below the least normal one become zero
  };
  Leaves loosened(const Loose& loose, InstId only, InstId without, std::map<InstId, int64_t>* sites) const;
  void narrow(InstId i, Value& v, const Loose& loose, bool here, std::map<InstId, int64_t>* sites) const;

  const Module& m_;
  const Session& session_;
  EvalOptions options_;
};

}  // namespace hlo
