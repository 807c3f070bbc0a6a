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

// `Finished XLA compilation of jit(f) in 0.5 sec` of jax, and its kin.
struct LogTime {
  std::string what;
  double seconds = 0;
  size_t line = 0;
};

struct LogFile {
  size_t lines = 0, prefixed = 0;
  std::vector<LogPipeline> pipelines;
  std::vector<LogFailure> failures;
  std::vector<LogTime> times;
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
