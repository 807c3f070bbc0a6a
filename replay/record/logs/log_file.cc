#include "replay/record/logs/log_file.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "parser/excerpt/pieces.h"
#include "parser/excerpt/source_text.h"
#include "replay/record/logs/log_times.h"

namespace hlo {
namespace {

constexpr size_t kLastWords = 5;
constexpr size_t kLookBack = 1000;  // passes that a line of a time may be of

// `WARNING:jax._src.dispatch:Finished …`, `WARNING:2024-05-01 10:00:00,123:jax._src…:12: …`: Python's logging.
bool python_prefix(std::string_view line) {
  for (std::string_view level : {"DEBUG:", "INFO:", "WARNING:", "ERROR:", "CRITICAL:"})
    if (line.starts_with(level)) return line.find(":jax", level.size() - 1) != std::string_view::npos;
  return false;
}

std::string_view line_at(std::string_view text, size_t at) { return text.substr(at, text.find('\n', at) - at); }

// `I0000 00:00:1786848746.938112 …` (seconds since 1970), `I0312 10:01:02.123456 …` and `2021-02-10 03:53:38.327068: …`
// (a time of day); -1 where no time can be read.
double seconds_of(std::string_view line) {
  const std::string_view head = line.substr(0, 40);
  const size_t dot = head.find('.');
  const size_t blank = head.find(' ');
  if (dot == std::string_view::npos || blank == std::string_view::npos || blank > dot) return -1;
  double parts[3] = {0, 0, 0};
  size_t at = blank + 1;
  for (double& part : parts) {
    while (at < head.size() && head[at] == ' ') ++at;
    const auto [end, error] = std::from_chars(head.data() + at, head.data() + head.size(), part);
    if (error != std::errc()) return -1;
    at = static_cast<size_t>(end - head.data()) + 1;
  }
  return parts[0] * 3600 + parts[1] * 60 + parts[2];
}

class LogReader {
 public:
  void take(std::string_view line) {
    ++out_.lines;
    const size_t prefix = log_prefix(line);
    std::string_view rest = trimmed(line.substr(prefix));
    if (prefix || python_prefix(line)) {
      ++out_.prefixed;
      out_.last_words.clear();
    } else if (!rest.empty() && out_.last_words.size() < kLastWords && out_.prefixed) {
      out_.last_words.emplace_back(rest.substr(0, 300));
    }
    if (prefix) {
      time_of(line);
      if (line[0] == 'F' || rest.starts_with("Check failed")) failure(line.substr(0, prefix), rest);
    }
    pipeline(rest) || entered(rest) || pass_time(rest) || jax_time(rest) || times_.take(line, rest, out_.lines);
    module(rest);
  }
  LogFile finish() {
    if (first_ >= 0 && last_ >= first_ && timed_ > 1) out_.seconds = last_ - first_;
    times_.finish(&out_);
    return std::move(out_);
  }

 private:
  void time_of(std::string_view line) {
    const double t = seconds_of(line);
    if (t < 0) return;
    if (timed_++ == 0) first_ = t;
    last_ = t;
  }
  void failure(std::string_view prefix, std::string_view message) {
    std::string_view place = prefix.substr(0, prefix.rfind(']'));
    place = place.substr(place.rfind(' ') + 1);
    out_.failures.push_back({std::string(place), std::string(message.substr(0, 500)), out_.lines});
  }
  bool pipeline(std::string_view rest) {
    constexpr std::string_view kSign = "Running HLO pass pipeline on module ";
    if (!rest.starts_with(kSign)) return false;
    rest.remove_prefix(kSign.size());
    const size_t colon = rest.rfind(": ");
    if (colon == std::string_view::npos) return false;
    out_.pipelines.push_back({std::string(rest.substr(colon + 2)), std::string(rest.substr(0, colon)), out_.lines, {}});
    return true;
  }
  LogPipeline& current() {
    if (out_.pipelines.empty()) out_.pipelines.push_back({"", "", out_.lines, {}});
    return out_.pipelines.back();
  }
  bool entered(std::string_view rest) {
    constexpr std::string_view kSign = "HLO pass ";
    if (!rest.starts_with(kSign)) return false;
    std::string_view name = trimmed(rest.substr(kSign.size()));
    if (name.empty() || name.find(' ') != std::string_view::npos) return false;
    current().passes.push_back({std::string(name), out_.lines, -1});
    return true;
  }
  // `HLO pass: NAME time: 34 us (…)`.
  bool pass_time(std::string_view rest) {
    constexpr std::string_view kSign = "HLO pass: ", kTime = " time: ";
    const size_t time = rest.find(kTime);
    if (!rest.starts_with(kSign) || time == std::string_view::npos || time < kSign.size()) return false;
    const std::string_view name = rest.substr(kSign.size(), time - kSign.size());
    const double us = 1e6 * seconds_in_words(rest.substr(time + kTime.size()));
    if (us < 0 || us > 1e15) return true;
    size_t looked = 0;
    for (auto p = out_.pipelines.rbegin(); p != out_.pipelines.rend() && looked < kLookBack; ++p)
      for (auto pass = p->passes.rbegin(); pass != p->passes.rend() && ++looked < kLookBack; ++pass)
        if (pass->name == name && pass->microseconds < 0) {
          pass->microseconds = static_cast<int64_t>(us);
          return true;
        }
    current().passes.push_back({std::string(name), out_.lines, static_cast<int64_t>(us)});
    return true;
  }
  bool jax_time(std::string_view rest) {
    const size_t begin = rest.find("Finished ");
    if (begin == std::string_view::npos || begin > 120) return false;
    rest.remove_prefix(begin + 9);
    const size_t in = rest.rfind(" in ");
    if (in == std::string_view::npos || rest.substr(in).find(" sec") == std::string_view::npos) return false;
    double seconds = 0;
    std::string_view number = rest.substr(in + 4);
    if (std::from_chars(number.data(), number.data() + number.size(), seconds).ec != std::errc()) return false;
    out_.times.push_back({std::string(rest.substr(0, in)), seconds, out_.lines});
    return true;
  }
  void module(std::string_view rest) {
    if (!rest.starts_with("HloModule ")) return;
    rest.remove_prefix(10);
    out_.modules.emplace_back(rest.substr(0, rest.find_first_of(", \t")));
  }

  LogFile out_;
  LogTimes times_;
  double first_ = -1, last_ = -1;
  size_t timed_ = 0;
};

}  // namespace

const LogPass* LogFile::last_pass() const {
  for (auto p = pipelines.rbegin(); p != pipelines.rend(); ++p)
    if (!p->passes.empty()) return &p->passes.back();
  return nullptr;
}

bool is_log(std::string_view text) {
  size_t looked = 0;
  for (size_t at = 0; at < text.size() && looked < 50; ++looked) {
    const std::string_view line = line_at(text, at);
    if (log_prefix(line) || python_prefix(line)) return true;
    at += line.size() + 1;
  }
  return false;
}

LogFile read_log(std::string_view text) {
  LogReader reader;
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = line_at(text, at);
    reader.take(line);
    at += line.size() + 1;
  }
  return reader.finish();
}

}  // namespace hlo
