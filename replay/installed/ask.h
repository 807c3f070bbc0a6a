// An XLA that is installed, asked by a child of ours: it compiles a module and dumps every stage, runs it, or takes
// StableHLO into HLO. The child is python/hlo_replay/_driver.py, run by the interpreter that has jaxlib; it may abort,
// hang or be killed without harm here.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "replay/installed/interpreter.h"
#include "replay/installed/target.h"

namespace hlo {

struct XlaQuestion {
  std::string what = "compile";  // compile, convert, run (on this CPU), flags or which
  std::string label;             // of the module, for messages
  std::string input;             // file
  std::string plain;           // the same as text without metadata, for releases that do not take `input`; may be empty
  std::string form = "proto";  // hlo (text), proto (HloModuleProto) or stablehlo (text or bytecode)
  XlaTarget target;            //
  int partitions = 1;          //
  bool shardy = false;         // partition by Shardy rather than GSPMD
  std::string flags;           // XLA_FLAGS, behind those of the environment
  std::vector<std::string> disabled;      // passes to leave out, beside those that flags name
  double limit_seconds = 0;               // 0: none
  std::string dump;                       // folder for every stage; empty: no dump
  bool tells_passes = false;              // its log names each pass that it enters, and is kept in the answer
  bool every_stage = true;                // false: the dump has the module before and after, and what goes with it
  std::string output;                     // convert: a proto; run: an .npz with o0, o1 …
  int runs = 0;                           // run: how many more to time (seconds: run, run_spread)
  std::string inputs;                     // run: an .npz with p0, p1 …
  std::vector<std::string> types;         // run: numpy's (or ml_dtypes') names of the arrays' types
  std::vector<std::string> output_types;  // run: HLO's names of those of the results
};

struct XlaAnswer {
  enum End { kAnswered, kRefused, kCrashed, kTimedOut } end = kRefused;
  std::string kind, message, hint;  // of a refusal
  std::string words;                // of a crash: what it was doing and its last words
  int signal = 0;                   // that ended it
  std::string log;                  // with tells_passes: what it printed, the last megabyte
  std::string jaxlib, python, device, platform_version;
  std::map<std::string, double> seconds;             // import, module, target, compile
  double wall_seconds = 0;                           // of the child, start to end
  std::vector<std::string> warnings;                 // what it could not do as it was asked
  std::string flags;                                 // XLA_FLAGS as it had them, without those for the dump
  std::map<std::string, std::string> flag_defaults;  // of the question "flags"
  bool ok() const { return end == kAnswered; }
};

// Never throws for what the child does; Failure(kUsage) where the interpreter cannot be run or this process is
// interrupted.
XlaAnswer ask_xla(const Interpreter& interpreter, const XlaQuestion& question);
// XLA_FLAGS as the question has them, those for the dump apart.
std::string xla_flags_of(const XlaQuestion& question);
// What went wrong, in words.
std::string in_words(const XlaAnswer& answer, const Interpreter& interpreter, const XlaQuestion& question);
// The same without names of files of this machine: `XLA aborted while compiling: …`.
std::string ending_in_words(const XlaAnswer& answer);
// Throws Failure(kUnsupported) with that where it did.
void require_answer(const XlaAnswer& answer, const Interpreter& interpreter, const XlaQuestion& question);

}  // namespace hlo
