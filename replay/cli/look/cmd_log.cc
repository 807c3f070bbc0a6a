// open, of a log: pipelines, passes, times and failures that its lines tell of.
#include <algorithm>
#include <filesystem>

#include "parser/excerpt/source_text.h"
#include "replay/cli/command.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/logs/log_file.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kShown = 40;

bool readable_log(const std::string& path, std::string* text) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  *text = read_file(path);
  return text->find('\0') == std::string::npos && is_log(*text);
}

Json log_json(const std::string& path, const LogFile& log) {
  Json pipelines = Json::array(), failures = Json::array(), times = Json::array();
  for (const LogPipeline& p : log.pipelines) {
    Json passes = Json::array();
    for (const LogPass& pass : p.passes)
      passes.push_back({{"name", pass.name},
                        {"line", pass.line},
                        {"microseconds", pass.microseconds < 0 ? Json() : Json(pass.microseconds)}});
    pipelines.push_back({{"name", p.name}, {"module", p.module}, {"line", p.line}, {"passes", passes}});
  }
  for (const LogFailure& f : log.failures)
    failures.push_back({{"place", f.place}, {"message", f.message}, {"line", f.line}});
  for (const LogTime& t : log.times) times.push_back({{"what", t.what}, {"seconds", t.seconds}, {"line", t.line}});
  const LogPass* last = log.last_pass();
  return {{"file", path},
          {"what", "log"},
          {"lines", log.lines},
          {"log_lines", log.prefixed},
          {"seconds", log.seconds < 0 ? Json() : Json(log.seconds)},
          {"pipelines", pipelines},
          {"last_pass", last ? Json(last->name) : Json()},
          {"failures", failures},
          {"times", times},
          {"modules", log.modules},
          {"last_words", log.last_words}};
}

void print_pipelines(const LogFile& log) {
  fmt::print("pipelines:\n");
  for (size_t k = 0; k < log.pipelines.size() && k < kShown; ++k) {
    const LogPipeline& p = log.pipelines[k];
    int64_t us = -1;
    for (const LogPass& pass : p.passes)
      if (pass.microseconds >= 0) us = std::max<int64_t>(us, 0) + pass.microseconds;
    const std::string time = us < 0 ? "" : fmt::format(", {}", time_text(static_cast<double>(us) * 1e-6));
    fmt::print("  line {:<6} {}{}: {} pass{}{}\n", p.line,
               p.name.empty() ? "(its begin is not in the log)" : printable(p.name),
               p.module.empty() ? "" : " on " + printable(p.module), p.passes.size(), p.passes.size() == 1 ? "" : "es",
               time);
  }
  if (log.pipelines.size() > kShown) fmt::print("  … and {} more (--json has all)\n", log.pipelines.size() - kShown);
}

}  // namespace

bool holds_a_log(const std::string& path) {
  std::string text;
  return readable_log(path, &text);
}

bool only_a_log(const std::string& path) {
  std::string text, modules;
  if (!readable_log(path, &text)) return false;
  if (!strip_log_prefixes(text, &modules)) return true;
  return split_modules(modules, true).size() != 1 || !read_log(text).pipelines.empty();
}

int open_log(const std::string& path, bool json) {
  const LogFile log = read_log(read_file(path));
  if (json) {
    print_json(log_json(path, log));
    return kYes;
  }
  fmt::print("{}: a log, {} lines{}\n", printable(path), log.lines,
             log.seconds < 0 ? "" : fmt::format(" over {}", time_text(log.seconds)));
  if (!log.pipelines.empty()) print_pipelines(log);
  if (const LogPass* last = log.last_pass())
    fmt::print("last pass entered: {} (line {}{})\n", printable(last->name), last->line,
               last->microseconds < 0 ? ", no line says that it ended" : "");
  for (const LogFailure& f : log.failures)
    fmt::print("line {}: failed at {}: {}\n", f.line, printable(f.place), printable(f.message));
  for (size_t k = 0; k < log.times.size() && k < kShown; ++k)
    fmt::print("line {}: {} in {}\n", log.times[k].line, printable(log.times[k].what), time_text(log.times[k].seconds));
  if (log.times.size() > kShown) fmt::print("  … and {} more (--json has all)\n", log.times.size() - kShown);
  for (const std::string& words : log.last_words) fmt::print("last words: {}\n", printable(words));
  for (size_t k = 0; k < log.modules.size() && k < kShown; ++k)
    fmt::print("module: {}{}\n", printable(log.modules[k]),
               log.modules.size() == 1 ? "" : fmt::format("  ({}@{})", printable(path), k + 1));
  if (log.pipelines.empty() && log.failures.empty() && log.times.empty() && log.modules.empty())
    fmt::print("no line names a pass, a failure, a time or a module\n");
  if (!log.modules.empty()) fmt::print("next: hlo-replay print --permissive {}\n", printable(path));
  if (!log.timers.empty() || !log.stats.empty() || !log.alarms.empty())
    fmt::print("next: hlo-replay compile-time {}\n", printable(path));
  return kYes;
}

}  // namespace hlo
