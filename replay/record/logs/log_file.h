// Logs of XLA, TensorFlow and jax: what their lines say of pipelines, passes, times and failures. Only what a line
// says; nothing is concluded from what is not there.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

struct LogPass {
  std::string name;
  size_t line = 0;            // of the log, counted from 1
  int64_t microseconds = -1;  // of all its runs there, as XLA prints them; -1: no line tells
};

// `Running HLO pass pipeline on module M: NAME`, with what was entered behind it.
struct LogPipeline {
  std::string name, module;
  size_t line = 0;
  std::vector<LogPass> passes;
};

// `F0000 … file.cc:12] Check failed: …`.
struct LogFailure {
  std::string place;  // file:line
  std::string message;
  size_t line = 0;
};

// Something that took its time, as a line says at its end.
struct LogTime {
  std::string what;
  double seconds = -1;  // -1: no line tells that it ended
  size_t line = 0;
};

// The table that --xla_gpu_print_compilation_stats has printed (xla/service/compilation_stats.cc). It names no module.
struct LogPassSum {
  std::string name;
  int64_t runs = 0;
  double seconds = 0;
};
struct LogStats {
  double seconds = 0;  // of all passes
  std::vector<LogPassSum> passes;
  size_t line = 0;
};

// What XLA warns of while it takes long (xla/service/slow_operation_alarm.cc).
// Its `what`: `constant folding of %reduce.3 = …`, `compiling jit_f`.
struct LogAlarm : LogTime {
  double at_least = 0;  // seconds that it had taken when it was warned of; 0: not told
};

struct LogFile {
  size_t lines = 0, prefixed = 0;
  std::vector<LogPipeline> pipelines;
  std::vector<LogFailure> failures;
  std::vector<LogTime> times;  // `Finished XLA compilation of jit(f) in 0.5 sec` of jax, and its kin
  // `GpuCompiler::RunBackend for jit_f time: 326 ms (326115 us) (cumulative: …)` (XLA's tsl ScopedLoggingTimer); what
  // is in front of `time:`. Those of passes are in the pipelines.
  std::vector<LogTime> timers;
  std::vector<LogStats> stats;
  std::vector<LogAlarm> alarms;
  std::vector<std::string> modules;     // names of the modules whose text it holds
  std::vector<std::string> last_words;  // lines without a prefix behind the last one that has one; at most 5
  // The last pass that was entered; nullptr where no line tells of one.
  const LogPass* last_pass() const;
  // Seconds between the first and the last line that has a time; -1 where fewer than two have one.
  double seconds = -1;
};

// Do the first lines begin as those of a log do?
bool is_log(std::string_view text);
LogFile read_log(std::string_view text);

}  // namespace hlo
