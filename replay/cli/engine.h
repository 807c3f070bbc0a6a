// --engine=installed: what the commands that ask an installed XLA share.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "replay/cli/command.h"
#include "replay/installed/ask.h"
#include "replay/installed/loss.h"
#include "replay/record/recording.h"

namespace hlo {

// A module on its way into an installed XLA.
struct ForXla {
  std::unique_ptr<Module> module;  // null where it is StableHLO, which we do not read
  XlaQuestion question;            // without flags and dump
  std::vector<std::string> warnings;
};
// Reads `file` (HLO in any form, or StableHLO) and writes below `scratch` what the question names. Throws Failure.
ForXla for_xla(const std::string& file, const std::string& scratch);
// The same of a module that has been read.
ForXla for_xla(std::unique_ptr<Module> module, const std::string& label, const std::string& scratch);
bool is_stablehlo(const std::string& file);

// `question` with what the options say. Throws Failure(kUsage).
void take_options(const EngineArgs& a, XlaQuestion& question);

// A compilation whose stages lie in a folder.
struct XlaCompilation {
  Interpreter interpreter;
  XlaQuestion question;
  XlaAnswer answer;
  std::vector<std::string> warnings;
  std::optional<RoundTrip> round_trip;  // of HLO
};
// `file` with all stages dumped into `folder`, an existing one, and a line of facts beside them (engine.json). Throws
// Failure where it cannot be compiled.
XlaCompilation compile_by_xla(const EngineArgs& a, const std::string& file, const std::string& folder,
                              const std::vector<std::string>& disabled = {});
// What engine.json and --json say of it.
Json engine_json(const XlaCompilation& c);
// The same for a person: who compiled for what, what was lost on the way.
void tell_engine(const XlaCompilation& c, const std::string& file, const std::string& folder);

// StableHLO as HLO: the path of a proto below `scratch`.
std::string hlo_of_stablehlo(const EngineArgs& a, const std::string& file, const std::string& scratch);

}  // namespace hlo
