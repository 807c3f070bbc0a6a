// What lines of a log tell of the time that compiling took: XLA's timers, its table of passes, its alarms.
#pragma once
#include <string>
#include <string_view>

#include "replay/record/logs/log_file.h"

namespace hlo {

// Seconds of a duration as XLA and absl print it: `34 us`, `1.2 ms`, `3.5 min`, `2m12.85s`; what stands behind it is
// passed over. -1 where it is none.
double seconds_in_words(std::string_view text);

class LogTimes {
 public:
  // A line, whole and without the prefix of a log. True where it is one of these and nothing else.
  bool take(std::string_view line, std::string_view rest, size_t number);
  // Hands over what was found.
  void finish(LogFile* out);

 private:
  bool timer(std::string_view rest, size_t number);
  bool stats(std::string_view rest, size_t number);
  bool alarm(std::string_view line, std::string_view rest, size_t number);
  void told(std::string what, double at_least, size_t number);

  std::vector<LogTime> timers_;
  std::vector<LogStats> stats_;
  std::vector<LogAlarm> alarms_;
  bool table_ = false;   // the lines of a table follow
  double ended_ = -1;    // `The operation took …` was read; which one it was follows
  double folding_ = -1;  // seconds that folding an instruction has taken; the instruction follows
  size_t folding_line_ = 0;
};

}  // namespace hlo
