// Where a replay of a module in a folder begins, and what it cannot do about partitions.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "ir/module.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct StartStage {
  std::string spec;  // to be loaded
  std::string name;  // of the stage; empty for a file by itself
  std::string said;  // where it begins, for a person; empty where the spec says it
  // The folder of stages that it lies in; nothing for a file by itself.
  std::optional<Recording> recording;
};
// Of DIR (of one module) and DIR:MODULE the first stage that has a text or, where that is still to be partitioned, the
// one behind XLA's partitioner where the folder has it; every other spec as it is. Throws Failure as select_module.
StartStage start_stage(const std::string& spec);
// The same of a recording.
StartStage start_stage(const Recording& recording);
// What to load for a stage's text: its .hlo.pb where the folder has one, which tells the order of instructions in
// memory and has every constant in full. Throws Failure(kIo) where the text is no file of the folder.
std::string proto_or_text(const std::string& folder, const std::string& text);

// Why a program made of the module as it stands is not that of one device of several: it has shardings that nobody has
// applied, in any form: tiles (`devices=`), named meshes, frontend attributes of Shardy's. There is no partitioner
// here. Empty where it is partitioned already, is for one device, or its shardings divide nothing.
std::string not_partitioned(const Module& m);

}  // namespace hlo
