// --engine=installed: what the commands that ask an installed XLA share.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "replay/cli/command.h"
#include "replay/installed/ask.h"
#include "replay/installed/loss.h"
#include "replay/record/recording/recording.h"
#include "replay/record/start/target.h"

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

// What a module comes to when it is compiled.
struct CompiledFigures {
  double seconds = 0;  // of one call, by XLA's model (our passes) or by the bound
  double bytes = 0;    // allocated
};
// By our passes for `gpu`, or by the XLA that the options name; a message calls it `label`. `sheet`: as --gpu, of the
// bound. Passes of `disabled` are left out; `flags` stand behind those of the options, and our passes take none.
// Throws Failure.
CompiledFigures compiled_figures(const EngineArgs& a, const Module& m, const std::string& label,
                                 const std::optional<NamedGpu>& gpu, const std::string& sheet,
                                 const std::set<std::string>& disabled = {}, const std::string& flags = {});
// A module in front of the passes that is to be changed and compiled, of a recording; `why_not` says where it cannot.
struct ToCompile {
  std::unique_ptr<Module> first;
  std::optional<NamedGpu> gpu;
  std::string why_not;
};
ToCompile to_compile(const EngineArgs& a, const Recording& r, const Target& target);

// StableHLO as HLO: the path of a proto below `scratch`.
std::string hlo_of_stablehlo(const EngineArgs& a, const std::string& file, const std::string& scratch);

}  // namespace hlo
