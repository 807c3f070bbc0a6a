// Where a replay of a module in a folder begins, and what it cannot do about partitions.
#pragma once
#include <string>

#include "ir/module.h"

namespace hlo {

struct StartStage {
  std::string spec;  // to be loaded
  std::string said;  // where it begins, for a person; empty where the spec says it
};
// Of DIR (of one module) and DIR:MODULE the first stage that has a text or, where that is still to be partitioned, the
// one behind XLA's partitioner where the folder has it; every other spec as it is. Throws Failure as select_module.
StartStage start_stage(const std::string& spec);

// Why a program made of the module as it stands is not that of one device: it has shardings that nobody has applied.
// There is no partitioner here. Empty where it is partitioned already, or its shardings are manual.
std::string not_partitioned(const Module& m);

}  // namespace hlo
