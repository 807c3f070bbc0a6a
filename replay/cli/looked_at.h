// What `memory`, `summary` and `cost` look at: a file, a stage, or of DIR and DIR:MODULE the last stages.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/query/source_lines.h"
#include "replay/cli/command.h"
#include "replay/record/files/run.h"
#include "replay/report/overview/answers.h"

namespace hlo {

// --frames: a line a frame, below a row.
void print_frames(const std::vector<SourceLine>& stack);

struct LookedAt {
  std::string spec;                    // a file, as a command line names it; else empty
  std::string folder, file;            // a stage: its text, below the folder
  std::string selector;                // of a module of a run, behind `DIR:`; else empty
  std::string stage;                   // its name; of a file the file's
  std::optional<Recording> recording;  // where `stage` is the last one of it
  std::unique_ptr<Module> module;      // after load()
  std::string unreadable;              // why it has no stage, or what load() ran into
  // The module's name, by the recording where it was not read.
  std::string name() const;
  // Throws Failure.
  void load();
};

AnswerAbout about(const LookedAt& l);

// Of a message that shows the place below.
std::string first_line(std::string_view text);

// The last stage of a module; `selector`: behind `DIR:`.
LookedAt last_stage(const Recording& recording, const std::string& selector);

// One a module of the run; one for a file or a stage. Modules are not read yet. Throws Failure where the spec names
// nothing.
std::vector<LookedAt> looked_at(const std::string& spec);

// DIR or DIR:MODULE as the last stage whose text has that instruction or computation, `DIR:MODULE:STAGE`; any other
// spec as it is; its last stage where the only module has none. Throws Failure(kUsage), with the candidates, where none
// of several modules has it or several have.
std::string last_stage_with(const std::string& spec, std::string_view name);

}  // namespace hlo
