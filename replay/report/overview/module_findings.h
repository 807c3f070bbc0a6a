// The findings of a module that was looked at, as they are told.
#pragma once
#include <string>
#include <vector>

#include "replay/report/findings/findings.h"
#include "replay/report/overview/overview.h"

namespace hlo {

// All findings of the overview's module, held against its stages, with the lines that a person looks for. `stages` is
// of that module.
std::vector<ModuleFinding> module_findings(const ModuleOverview& o, Provenance& stages);
// Lines of the module as a table of its time shows them.
UserFrames user_frames(const Module& m, const ModuleCost& cost);
// `made by 0089 …after_splitk-rewriter of dot.66; costs 1.4 ms by its bound; not tried`.
std::string evidence_text(const ModuleFinding& f);

}  // namespace hlo
