// triage: what is asked, the rungs that answer, and what comes of them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/cli/command.h"
#include "replay/hunt/complaint.h"
#include "replay/hunt/vmem.h"
#include "replay/record/recording.h"

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
};
// Throws Failure where nothing can be made of it.
TriageSubject triage_subject(const TriageArgs& a, const std::vector<std::string>& what);
std::string_view subject_word(TriageSubject::Kind kind);

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
std::optional<TriageRung> smallest_rung(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found,
                                        const std::string& folder);

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
// What a log or an unfinished dump says by itself.
std::string read_last_words(const TriageSubject& s, TriageVerdict& v);

// Two runs of one program held against each other: outputs, the autotuner's choices, stages, what has no order.
void add_rungs_of_runs(const TriageArgs& a, const TriageSubject& s, std::vector<TriageRung>& out);
// What it says of vmem.
std::string words_of_vmem(const VmemOverflow& o, TriageVerdict& v);
// Who made the kernel, and whether a limit helps; there must be an overflow.
void add_vmem_rungs(const TriageArgs& a, const TriageSubject& s, std::vector<TriageRung>& out);

// Does a finding of bisect hold against what HLO leaves open and what rounding makes? Prints an object.
int decide_finding(const TriageArgs& a, const TriageVerdict& found);
// What a run of the module leaves open. Prints an object.
int open_sites(const TriageArgs& a, const std::string& file);
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
