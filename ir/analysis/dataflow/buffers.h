// Which values must lie in one buffer (xla/hlo/analysis/hlo_alias_analysis.h): a loop's state with what flows in and
// what a trip leaves, branches' results, what is updated in place, arguments that were given up with the results that
// take their place.
#pragma once
#include <vector>

#include "ir/analysis/dataflow/alias_info.h"
#include "ir/analysis/dataflow/dataflow.h"

namespace hlo {

class SharedBuffers {
 public:
  // `donated`: results lie where the header's input_output_alias says; else arguments are the caller's.
  SharedBuffers(const Dataflow& flow, const AliasInfo& aliases, bool donated);
  // A number of the value's buffer: that of one of its values.
  ValueId of(ValueId v) const { return buffer_[v]; }
  // By buffer's number, ascending; empty where that is no buffer's number.
  const std::vector<ValueId>& values(ValueId buffer) const { return values_[buffer]; }

 private:
  ValueId find(ValueId v);
  void join(ValueId a, ValueId b);
  void join(InstId a, InstId b);

  const Dataflow& flow_;
  std::vector<ValueId> buffer_;
  std::vector<std::vector<ValueId>> values_;
};

}  // namespace hlo
