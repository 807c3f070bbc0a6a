#include "replay/record/logs/log_times.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "parser/excerpt/pieces.h"
#include "parser/excerpt/source_text.h"

namespace hlo {
namespace {

constexpr size_t kMostAlarms = 1000, kLongestAlarm = 300;
constexpr double kLongestTime = 1e9;  // seconds

// The number that a text begins with, and how long it is; 0 where it begins with none.
size_t leading_number(std::string_view text, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() ? static_cast<size_t>(end - text.data()) : 0;
}

}  // namespace

double seconds_in_words(std::string_view text) {
  // The longer of two that begin alike stands first.
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"us", 1e-6}, {"ms", 1e-3}, {"ns", 1e-9}, {"min", 60}, {"m", 60}, {"s", 1}, {"h", 3600}, {"days", 86400}};
  double sum = 0;
  bool any = false;
  text = trimmed(text);
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0]))) {
    double value = 0;
    const size_t length = leading_number(text, &value);
    if (length == 0) break;
    std::string_view rest = text.substr(length);
    if (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
    const auto* unit =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return rest.starts_with(u.first); });
    if (unit == std::end(kUnits)) break;
    sum += value * unit->second, any = true;
    text = rest.substr(unit->first.size());
  }
  return any && sum >= 0 && sum < kLongestTime ? sum : -1;
}

bool LogTimes::take(std::string_view line, std::string_view rest, size_t number) {
  return timer(rest, number) || stats(rest, number) || alarm(line, rest, number);
}

void LogTimes::finish(LogFile* out) {
  out->timers = std::move(timers_), out->stats = std::move(stats_), out->alarms = std::move(alarms_);
}

bool LogTimes::timer(std::string_view rest, size_t number) {
  constexpr std::string_view kTime = " time: ", kSums = " (cumulative: ", kExact = " us)";
  const size_t sums = rest.rfind(kSums);
  if (sums == std::string_view::npos) return false;
  const size_t time = rest.substr(0, sums).rfind(kTime);
  if (time == std::string_view::npos || time == 0) return false;
  const std::string_view words = rest.substr(time + kTime.size(), sums - time - kTime.size());
  double seconds = seconds_in_words(words);
  // Newer ones print the microseconds, too: `326 ms (326115 us)`.
  if (const size_t open = words.find(" ("); open != std::string_view::npos && words.ends_with(kExact))
    if (const double exact = seconds_in_words(words.substr(open + 2)); exact >= 0) seconds = exact;
  if (seconds < 0) return false;
  timers_.push_back({std::string(rest.substr(0, time)), seconds, number});
  return true;
}

bool LogTimes::stats(std::string_view rest, size_t number) {
  constexpr std::string_view kTotal = "Total runtime (ms) of HLO passes: ", kHead = "Pass name, num runs, time (ms)";
  if (rest.starts_with(kTotal)) {
    double ms = 0;
    table_ = leading_number(rest.substr(kTotal.size()), &ms) > 0 && ms >= 0 && ms < 1e3 * kLongestTime;
    if (table_) stats_.push_back({ms * 1e-3, {}, number});
    return table_;
  }
  if (!table_) return false;
  if (rest == kHead) return true;
  // `algsimp, 9, 0.259`
  const size_t second = rest.rfind(", "), first = second == std::string_view::npos || second == 0
                                                      ? std::string_view::npos
                                                      : rest.rfind(", ", second - 1);
  LogPassSum row;
  double runs = 0, ms = 0;
  if (first == std::string_view::npos || first == 0 || rest.substr(0, first).find(' ') != std::string_view::npos ||
      leading_number(rest.substr(first + 2), &runs) == 0 || leading_number(rest.substr(second + 2), &ms) == 0 ||
      !(runs >= 0 && runs < 1e9) || !(ms >= 0 && ms < 1e3 * kLongestTime)) {
    table_ = false;
    return false;
  }
  row.name = rest.substr(0, first), row.runs = static_cast<int64_t>(runs), row.seconds = ms * 1e-3;
  stats_.back().passes.push_back(std::move(row));
  return true;
}

// The end of an operation is told in front of the words by which it was warned of.
void LogTimes::told(std::string what, double at_least, size_t number) {
  const double seconds = std::exchange(ended_, -1);
  if (seconds >= 0) {
    for (LogAlarm& a : alarms_)
      if (a.what == what && a.seconds < 0) {
        a.seconds = seconds;
        return;
      }
  }
  if (alarms_.size() < kMostAlarms) alarms_.push_back({{std::move(what), seconds, number}, std::max(at_least, 0.0)});
}

bool LogTimes::alarm(std::string_view line, std::string_view rest, size_t number) {
  constexpr std::string_view kTook = "The operation took ", kCompiling = "[Compiling module ",
                             kFolding = "Constant folding an instruction is taking > ";
  if (line.find("slow_operation_alarm.cc") != std::string_view::npos && rest.starts_with(kTook)) {
    ended_ = seconds_in_words(rest.substr(kTook.size()));
    return true;
  }
  if (rest.starts_with(kCompiling) && rest.find("low compile?") != std::string_view::npos) {
    std::string_view name = rest.substr(kCompiling.size());
    name = name.substr(0, name.find(']'));
    if (name.ends_with(" for CPU")) name.remove_suffix(8);
    told("compiling " + std::string(name.substr(0, kLongestAlarm)), 0, number);
    return true;
  }
  if (rest.starts_with(kFolding)) {
    folding_ = std::max(seconds_in_words(rest.substr(kFolding.size())), 0.0), folding_line_ = number;
    return true;
  }
  if (folding_ < 0 || rest.empty()) return false;
  told("constant folding of " + std::string(rest.substr(0, kLongestAlarm)), std::exchange(folding_, -1), folding_line_);
  return true;
}

}  // namespace hlo
