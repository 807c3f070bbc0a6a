// A finding's advice as a change of the module in front of the passes, so that it can be compiled.
#pragma once
#include <memory>
#include <string>

#include "replay/report/findings/findings.h"

namespace hlo {

struct FindingEdit {
  std::unique_ptr<Module> module;  // null: the change is none that can be made to a module
  std::string words;               // what was changed, or why nothing was
};

// `first` is the module's first stage, left alone, to which the finding's evidence leads; `last` the module that the
// finding is about. What is made verifies. Never throws for what a module holds.
FindingEdit edit_for(const ModuleFinding& finding, const Module& first, const Module& last);

}  // namespace hlo
