// The runs that check_result asks for: the module with other values at chosen instructions.
#pragma once
#include <map>
#include <vector>

#include "replay/judge/contract.h"
#include "replay/judge/session.h"

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
  Leaves by_host();  // our other executor; throws where it does not run the module

 private:
  Leaves run(std::function<void(InstId, std::span<const Value>, Value&)> change, bool high) const;
  Leaves loud(uint32_t seed, InstId only, std::map<InstId, int64_t>* sites) const;
  Leaves flushed(InstId only, std::map<InstId, int64_t>* sites) const;
  void narrow(InstId i, std::span<const Value> operands, Value& v, Contract c, int which, InstId only,
              std::map<InstId, int64_t>* sites) const;

  const Module& m_;
  const Session& session_;
  EvalOptions options_;
};

}  // namespace hlo
