// A run: all modules that one folder holds, and how one of them, or one of its stages, is named. Every command that
// takes a folder or a stage asks here.
//
//   DIR                 the run
//   DIR:MODULE          one module of it
//   DIR:MODULE:STAGE    one stage of that module
//   DIR:STAGE           … where the folder holds one module; by name: DIR:NUMBER is a module in every folder
//
// MODULE is a number (0012, 12), a name (jit_train_step), a function (train_step), a folder below DIR, or a part of one
// of these that only one module has; digits are a part of nothing. STAGE is a number, a name (before_optimizations,
// fusion.after_dce), a pass, a file, or a part of a name that only one stage has. What fits several is refused with the
// candidates: never the first one.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

struct Run {
  std::string folder;              // as it was given
  std::vector<Recording> modules;  // in order of numbers; names and metadata only, without counts. Never empty.
};

// Of a folder, of folders below it (at most three deep) where it holds no recording itself. Throws Failure(kIo) where
// there is none at all.
Run open_run(const std::string& folder);

// `train_step` of `jit_train_step` and `pjit_train_step`: what the user calls it.
std::string function_of(std::string_view module_name);

// What to write behind `DIR:` so that this module and no other is meant.
std::string module_selector(const Run& run, const Recording& module);
// … behind `DIR:MODULE:`; row must have a text.
std::string stage_selector(const Recording& module, size_t row);

// The parts of `DIR:MODULE:STAGE`; nothing where no part of it is a folder.
struct Selector {
  std::string folder;
  std::vector<std::string> parts;  // behind the folder: none, one or two
};
std::optional<Selector> split_selector(const std::string& spec);

// All modules of DIR, the one of DIR:MODULE. Throws Failure(kUsage) with the candidates where none or several fit.
std::vector<Recording> select_modules(const std::string& spec);
// The same where exactly one is wanted: DIR is refused where it holds several.
Recording select_module(const std::string& spec);
// Does the spec name a folder or a module rather than a stage or a file? DIR:NUMBER does, whether or not a module has
// that number; DIR:NAME of a single module is a stage where a stage fits.
bool names_modules(const std::string& spec);

struct StageChoice {
  Recording module;
  size_t row = 0;
  std::string file;  // text of the stage, below module.folder
};
// The stage of DIR:STAGE or DIR:MODULE:STAGE. Throws Failure(kUsage) with candidates, Failure(kIo) where the stage has
// only a graph.
StageChoice select_stage(const Selector& selector);
// The stage that a spec names: DIR:STAGE and DIR:MODULE:STAGE as select_stage, or the path of a stage's text or .hlo.pb
// in a folder of them. Nothing for a file by itself.
std::optional<StageChoice> stage_of(const std::string& spec);
// The row of a recording that the word names, as STAGE above. Throws Failure(kUsage) with candidates.
size_t select_row(const Recording& module, const std::string& wanted);
// The stage that a command looks at when no stage is named: the last one with a text, of DIR or DIR:MODULE.
StageChoice final_stage(const Recording& module);
std::optional<size_t> final_row(const Recording& module);

}  // namespace hlo
