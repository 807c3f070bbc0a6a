// What the time of a compilation went into: passes, autotuning, and behind HLO the emission of kernels, LLVM, ptxas;
// from what a dump and a log tell. What nobody tells is not made up.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/record/logs/jax_log.h"
#include "replay/record/logs/log_file.h"
#include "replay/record/recording/recording.h"

namespace hlo {

enum class CompilePhase {
  kPass,       // of HLO
  kCandidate,  // kernels that the autotuner compiles to choose among, within a pass
  kEmission,   // of kernels as LLVM IR; where kernels are compiled beside it, it waits for them
  kLlvm,
  kAssembler,  // ptxas
  kOther,
};
std::string_view phase_name(CompilePhase phase);      // pass, candidates, emission, llvm, assembler, other
std::string_view phase_in_words(CompilePhase phase);  // `LLVM`

struct CompilePart {
  CompilePhase phase = CompilePhase::kOther;
  std::string name;    // pass or kernel; empty: all of the phase
  double seconds = 0;  // summed over `runs`, of which several threads may take some at once
  size_t runs = 1;
  std::string from;  // who tells: `log`, `file times`, `record of passes`
};

// A kernel's code as the dump has it.
struct KernelCode {
  std::string kernel;  // names of its entries; of a CPU's that of its object
  std::string file;    // of its machine-near form: .ptx, else .o, .ll
  int64_t bytes = 0;
  double assembler = -1;  // seconds of ptxas, by the times of its files; -1: not told
};

struct CompileTime {
  std::string module;
  std::optional<int> number;  // of the dump's module
  size_t line = 0;            // of the log; 0: it is not from there
  // Seconds of the clock; -1: not told. Each with who tells it.
  double total = -1, passes = -1, behind = -1, tracing = -1, lowering = -1;
  std::string total_from, passes_from, behind_from;
  std::vector<CompilePart> parts;   // the longest first, by phase
  std::vector<LogAlarm> slow;       // what XLA warned of
  std::vector<KernelCode> kernels;  // the longest, else largest, first
  std::vector<std::string> notes;   // what is to be known about these figures
  bool gpu = false;                 // for one, as far as is seen

  // Of the passes that measure kernels; -1: not told.
  double autotuning() const;
  double of(CompilePhase phase) const;  // -1: not told
};

// Is that a pass in which kernels are compiled and measured?
bool is_autotuning_pass(std::string_view pass);

// Of every compilation that the log tells of, in order: `log` and `jax` are of one text. The autotuner's own kernels
// belong to the module around them.
std::vector<CompileTime> compile_times(const LogFile& log, const JaxLog& jax);
// Of a module by its dump alone. Unreadable files are notes.
CompileTime compile_time(const Recording& r);
// Of all its passes together; -1: not told.
int64_t passes_microseconds(const Recording& r);
// One of the dump and one of the log as one; the log's clock counts where both tell.
CompileTime joined_times(const CompileTime& dump, const CompileTime& log);
// What is not told, each with what would tell it.
std::vector<std::string> not_told_of(const CompileTime& t);
// A sentence for the first minute; empty where the dump does not tell what was behind HLO.
std::string compile_time_in_words(const Recording& r);
// `jit_train_step` of `jit(train_step)`, as jax names the module.
std::string module_of_jax_name(std::string_view what);

}  // namespace hlo
