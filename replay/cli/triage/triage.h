// triage: what is asked, the rungs that answer, and what comes of them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/cli/command.h"
#include "replay/hunt/complaint.h"
#include "replay/hunt/vmem.h"
#include "replay/judge/arguments/session.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct TriageArgs : RunArgs {
  EngineArgs engine;              // limit_seconds: of all of it
  std::vector<std::string> what;  // WHAT; several for ranks-differ; the words of a program
  std::string complaint, log, outputs, again, out, releases, gpu;  // again: outputs of another run
  double memory_limit = 0;  // GiB beyond what the program itself takes; 0: 8, or four fifths of what is free
  bool json = false, force = false;
};
int cmd_triage(const TriageArgs& a);

// What is triaged.
struct TriageSubject {
  enum Kind { kDump, kModule, kLog, kProgram } kind = kDump;
  std::string spec;                  // as commands take it: DIR, DIR:MODULE, FILE
  std::string label;                 // as the user gave it
  std::string module;                // its name where there is one alone
  std::vector<Recording> modules;    // of a dump
  std::vector<std::string> others;   // ranks
  std::string text;                  // of a log
  Evidence evidence;                 // of it
  std::optional<VmemOverflow> vmem;  // where it tells that a TPU's kernel asks for more than there is
  std::vector<Unfinished> unfinished;
  Complaint complaint = Complaint::kWrong;
  std::string seen_from;  // why that one; empty: it was told
  std::vector<std::string> notes;
  // A module that an installed XLA compiled, whose stages `modules` are.
  std::string compiled_from;            // its file; empty: none was asked
  std::string compiler;                 // `jaxlib 0.10.2`
  std::string scratch;                  // folder: dump, log, inputs.npz and outputs.npz
  std::string ending;                   // what it died of or answered; empty where it compiled
  bool compiled = false, runs = false;  // runs: on this machine
  std::string arguments;  // where inputs are from that nobody named: `inputs.npz next to it`; empty: drawn, or named
};
// Throws Failure where nothing can be made of it.
TriageSubject triage_subject(const TriageArgs& a, const std::vector<std::string>& what);
std::string_view subject_word(TriageSubject::Kind kind);
// As a command of the answer names it: what was compiled or run here is `xla_dump`, which the first command makes.
std::string subject_in_command(const TriageSubject& s);
// The module in `file` by the XLA of a.engine, every stage, its log, and how it ended; all below `scratch`, in so many
// seconds. Throws Failure where that XLA cannot be asked. triage_compile.cc.
TriageSubject compiled_subject(const TriageArgs& a, const std::string& file, const std::string& scratch, double limit);
// Where nobody names inputs: those that the program had, where they lie with its one module (kept_arguments.h). Takes
// them into `a` and says so in `s`; what does not fit the module is left, and `s` says that. triage_arguments.cc.
void take_arguments(TriageArgs& a, TriageSubject& s, const std::string& scratch);
// Of a dump of several modules those, the three largest, whose arguments somebody kept, each alone.
std::vector<TriageSubject> subjects_with_arguments(const TriageSubject& s, const std::string& scratch);
std::string inputs_in_command(const TriageArgs& a);
// Options by which a command asks the same XLA.
std::string engine_in_command(const TriageArgs& a);

struct TriageVerdict {
  // fault, contract, rounding, program, below, nothing, unknown
  std::string word = "unknown", why;
  std::string sure = "guessed";                                             // proved, tested, guessed
  int inputs = 0;                                                           // that it was tested on
  Json pass, pipeline, stage, file, instruction, rule, source, difference;  // null where not known
  Json contracts = Json::array();  // what HLO leaves open: instruction, kind, what, source, elements, decides
  Json before = Json::array(), after = Json::array();  // lines of the two stages
  Json details = Json::array();                        // further sentences
  Json before_name;                                    // what the instruction was in the good stage
  std::string good_file;                               // the stage that is held against
  std::string made;                                    // inputs in bisect's words
  bool in_f64 = false;                                 // the difference is one of f64: no rounding makes it
  std::vector<std::string> other_bits;                 // outputs that two runs gave with other bits: o0, o3 …
  bool two_outputs = false;                            // outputs of two runs were held against each other
  bool decided = false;
  std::vector<std::pair<std::string, std::string>> smallest;  // files of the report and what they hold
};

struct TriageRung {
  std::string name;
  double weight = 1;  // its share of the time
  std::string command;
  // Prints one object, in so many seconds; null: what it tells is known already.
  std::function<int(double seconds)> job;
  // Reads the answer; says in words what it tells.
  std::function<std::string(const Json& answer, int code, TriageVerdict& v)> read;
  std::string left_out;  // why it is not tried; empty: it is
  double most = 1e9;     // seconds, whatever is left
};

// The rungs for a subject, the first first. `found`: the verdict so far, for rungs that hang on one before.
std::vector<TriageRung> triage_rungs(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found);

// What makes the least that still shows it, into `folder`, an existing one; nothing where there is no way here.
// With an installed XLA the module is reduced; `again`: that did not work.
std::optional<TriageRung> smallest_rung(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found,
                                        const std::string& folder, bool again);

// Of an answer: null, and no text, where it has no such key: another version's, or one that was ended.
const Json& entry_of(const Json& j, const char* key);
std::string text_of(const Json& j, const char* key);
// How readers of answers put them in words; triage_reading.cc.
std::string read_verification(const TriageSubject& s, const Json& j, TriageVerdict& v);
std::string read_bisection(const TriageSubject& s, const Json& j, int code, bool own_passes, TriageVerdict& v);
std::string read_decision(const Json& j, TriageVerdict& v);
// The same of the last stage against the first, where no stage was found.
std::string read_last_stage(const Json& j, TriageVerdict& v);
std::string read_nan(const TriageSubject& s, const Json& j, TriageVerdict& v);
std::string read_open_sites(const TriageArgs& a, const Json& j, TriageVerdict& v);
std::string read_memory(const Json& j, TriageVerdict& v);
std::string read_cost(const Json& j, TriageVerdict& v);
std::string read_compile_time(const Json& j, TriageVerdict& v);
std::string read_ranks(const Json& j, TriageVerdict& v);
std::string read_kernels(const Json& j, TriageVerdict& v);
std::string read_compilations(const Json& j, int code, TriageVerdict& v);
std::string read_releases(const TriageArgs& a, const Json& j, int code, TriageVerdict& v);
std::string read_source(const Json& j, TriageVerdict& v);
bool has_source_line(const TriageVerdict& v);
std::string read_flags(const Json& j, int code, TriageVerdict& v);
std::string read_compiled(const TriageSubject& s, TriageVerdict& v);
std::string read_given(const Json& j, TriageVerdict& v);
std::string read_run(const TriageArgs& a, const TriageSubject& s, const Json& j, TriageVerdict& v);
// What a log or an unfinished dump says by itself.
std::string read_last_words(const TriageSubject& s, TriageVerdict& v);

// Two runs of one program held against each other: outputs, the autotuner's choices, stages, what has no order.
void add_rungs_of_runs(const TriageArgs& a, const TriageSubject& s, std::vector<TriageRung>& out);
// What it says of vmem.
std::string words_of_vmem(const VmemOverflow& o, TriageVerdict& v);
// Who made the kernel, and whether a limit helps; there must be an overflow.
void add_vmem_rungs(const TriageArgs& a, const TriageSubject& s, std::vector<TriageRung>& out);

// Does a finding of bisect hold against what HLO leaves open and what rounding makes? Prints an object.
// Into `scratch` go shown.npz and expected.npz: inputs, and what the good one makes of them.
int decide_finding(const TriageArgs& a, const TriageVerdict& found, const std::string& scratch);
// Writes shown.npz and expected.npz below `scratch`: a session's arguments, and what the evaluator makes of them.
void show_inputs(const Module& m, const Session& session, const EvalOptions& options, const std::string& scratch);
// What a run of the module leaves open. Prints an object.
int open_sites(const TriageArgs& a, const std::string& file);
// Runs what the installed XLA compiled, on this CPU, and holds it against the first stage. Prints as open_sites does.
int run_compiled(const TriageArgs& a, const TriageSubject& s, double seconds);
// Beside a reduced module.hlo in `folder`: the script and, where it runs here, inputs.npz that show it and
// expected.npz.
void show_reduced(const TriageArgs& a, const TriageSubject& s, const std::string& folder, double seconds);
// Is what the installed XLA was given the module? Prints an object.
int compare_given(const TriageArgs& a, const TriageSubject& s);
// What differs from run to run. Prints an object.
int unordered_sites(const TriageSubject& s);
// Every rank's modules against the first one's. Prints an object.
int compare_ranks(const TriageSubject& s);

// The first stage's file of a module, the last one's; empty where there is none.
std::string first_stage_of(const TriageSubject& s);
std::string last_stage_of(const TriageSubject& s);

// Everything told, as --json has it.
Json triage_json(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& v, const Json& rungs,
                 double seconds);
void tell_triage(const Json& j);
// A folder for a report: what was found, the stages or the module, how to see it, a text for an issue.
void write_report(OutputFolder& out, const TriageArgs& a, const TriageSubject& s, const TriageVerdict& v,
                  const Json& j);

// A script that runs module.hlo beside it on jax (reduce, triage).
std::string jax_script();

}  // namespace hlo
