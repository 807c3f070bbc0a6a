#include "replay/installed/ask.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ir/base/check.h"
#include "replay/installed/embedded.h"
#include "replay/os/files.h"
#include "replay/os/process/program.h"
#include "replay/os/process/spawn.h"
#include "replay/os/progress.h"

namespace hlo {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr size_t kLongestLog = 1 << 20;

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& p : parts) {
    const size_t begin = p.find_first_not_of(' '), end = p.find_last_not_of(' ');
    if (begin != std::string::npos) out += (out.empty() ? "" : " ") + p.substr(begin, end - begin + 1);
  }
  return out;
}

// Of what a child printed: the line that ended it, where it says so, else its last ones.
std::string last_words(const std::string& log) {
  std::vector<std::string> lines;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    if (line.find("Check failed") != std::string::npos || line.find("Unknown flag") != std::string::npos ||
        (line.size() > 5 && line[0] == 'F' && std::isdigit(static_cast<unsigned char>(line[1]))))
      return line.substr(0, 1000);
    // Passes that it enters, and what each compilation of a described device says.
    if (line.find("hlo_pass_pipeline.cc:") != std::string::npos || line.find(" dump.cc:") != std::string::npos ||
        line.find("/dump.cc:") != std::string::npos || line.starts_with("[libprotobuf ERROR"))
      continue;
    if (line.find_first_not_of(" \t\r") != std::string::npos && !line.starts_with("*** ") && !line.starts_with("    @"))
      lines.push_back(line);
  }
  std::string out;
  for (size_t k = lines.size() - std::min<size_t>(lines.size(), 3); k < lines.size(); ++k)
    out += (out.empty() ? "" : " / ") + lines[k].substr(0, 300);
  return out.empty() ? "it printed nothing" : out;
}

std::string dump_flags(const XlaQuestion& q) {
  if (q.dump.empty()) return {};
  return q.every_stage ? xla_dump_flags(q.dump) : fmt::format("--xla_dump_to={} --xla_dump_hlo_as_text", q.dump);
}

std::string read_if_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) ? read_file(path) : std::string();
}

// The last stage that the dump holds: what ran behind it is what did not come back.
std::string last_stage(const std::string& folder) {
  std::string last;
  std::error_code error;
  for (const auto& e : fs::directory_iterator(folder, error)) {
    const std::string name = e.path().filename();
    if (name.find(".before_") != std::string::npos && name.ends_with(".txt") &&
        (last.empty() || name.find(".before_optimizations.") == std::string::npos))
      last = std::max(last.find(".before_optimizations.") == std::string::npos ? last : "", name);
  }
  return last;
}

size_t files_in(const std::string& folder) {
  std::error_code error;
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder, error), fs::directory_iterator()));
}

void read_answer(const std::string& text, XlaAnswer& out) {
  Json j = Json::parse(text, nullptr, false);
  auto word = [&](const char* key) { return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : ""; };
  if (!j.is_object() || !j.contains("ok")) {
    out.kind = "driver", out.message = "the driver left no answer that can be read";
    return;
  }
  out.kind = word("kind"), out.message = word("message"), out.hint = word("hint");
  out.jaxlib = word("jaxlib"), out.python = word("python"), out.device = word("device");
  out.platform_version = word("platform_version");
  if (j.contains("seconds") && j["seconds"].is_object())
    for (const auto& item : j["seconds"].items())
      if (item.value().is_number()) out.seconds[item.key()] = item.value().get<double>();
  if (j.contains("flags") && j["flags"].is_object())
    for (const auto& item : j["flags"].items())
      if (item.value().is_string()) out.flag_defaults[item.key()] = item.value().get<std::string>();
  if (j.contains("warnings") && j["warnings"].is_array())
    for (const Json& w : j["warnings"])
      if (w.is_string()) out.warnings.push_back(w.get<std::string>());
  if (j["ok"] == true) out.end = XlaAnswer::kAnswered;
}

}  // namespace

// XLA_FLAGS without what is for the dump. A later flag takes an earlier one's place: ours that a user may overrule
// stand in front, what the question asks for behind.
std::string xla_flags_of(const XlaQuestion& q) {
  const char* set = std::getenv("XLA_FLAGS");
  std::string users = joined({set ? set : "", q.flags});
  std::vector<std::string> all;
  if (q.target.platform == "gpu") all.push_back("--xla_gpu_autotune_level=0");  // there is no GPU to measure on
  if (q.target.platform == "cpu" && q.partitions > 1)
    all.push_back(fmt::format("--xla_force_host_platform_device_count={}", q.partitions));
  all.push_back(users);
  if (!q.disabled.empty()) {
    const std::string already = xla_flag_in(users, "xla_disable_hlo_passes");
    all.push_back(fmt::format("--xla_disable_hlo_passes={}{}{}", already, already.empty() ? "" : ",",
                              fmt::join(q.disabled, ",")));
  }
  return joined(all);
}

namespace {

struct FlagsByReader {
  std::string xla, libtpu;
};

// jaxlib ends the process at a flag that only libtpu knows; libtpu reads its own behind those of the environment.
FlagsByReader flags_by_reader(const XlaQuestion& q, const std::string& flags) {
  const char* set = std::getenv("LIBTPU_INIT_ARGS");
  FlagsByReader out{flags, set ? set : ""};
  if (q.target.platform != "tpu") return out;
  out.xla.clear();
  for (size_t at = 0; at < flags.size();) {
    const size_t end = std::min(flags.find(' ', at), flags.size());
    const std::string flag = flags.substr(at, end - at);
    std::string& reader = flag.starts_with("--xla_tpu_") || flag.starts_with("--xla_jf_") ? out.libtpu : out.xla;
    reader = joined({reader, flag});
    at = end + 1;
  }
  return out;
}

}  // namespace

XlaAnswer ask_xla(const Interpreter& interpreter, const XlaQuestion& q) {
  TemporaryFolder scratch;
  const std::string driver = scratch.path() + "/driver.py", question = scratch.path() + "/question.json",
                    answer = scratch.path() + "/answer.json", phase = scratch.path() + "/phase";
  write_file(driver, kXlaDriver);
  const Json j{{"do", q.what},
               {"input", fs::absolute(q.input).string()},
               {"plain", q.plain},
               {"form", q.form},
               {"platform", q.target.platform},
               {"target", q.target.text},
               {"partitions", q.partitions},
               {"shardy", q.shardy},
               {"output", q.output},
               {"runs", q.runs},
               {"inputs", q.inputs},
               {"types", q.types},
               {"output_types", q.output_types}};
  write_file(question, j.dump(1, ' ', false, Json::error_handler_t::replace));
  XlaAnswer out;
  out.flags = xla_flags_of(q);
  Command c;
  if (q.what == "flags" || q.what == "which") out.flags.clear();
  c.words = {interpreter.python, driver, question, answer, phase};
  c.log = scratch.path() + "/log";
  const FlagsByReader flags = flags_by_reader(q, out.flags);
  c.environment = {{"XLA_FLAGS", joined({flags.xla, dump_flags(q)})},
                   {"JAX_ENABLE_COMPILATION_CACHE", "false"},
                   {"PYTHONDONTWRITEBYTECODE", "1"}};
  if (q.tells_passes) {
    c.environment.emplace_back("TF_CPP_MIN_LOG_LEVEL", "0");
    c.environment.emplace_back("TF_CPP_VMODULE", "hlo_pass_pipeline=1");
  }
  if (!flags.libtpu.empty()) c.environment.emplace_back("LIBTPU_INIT_ARGS", flags.libtpu);
  c.limit_seconds = q.limit_seconds;
  Progress progress(fmt::format("{} by {}", q.label, interpreter.which));
  auto told = std::chrono::steady_clock::now();
  c.meanwhile = [&] {
    const auto now = std::chrono::steady_clock::now();
    if (now - told < std::chrono::milliseconds(500)) return;
    told = now;
    const std::string doing = read_if_there(phase);
    progress.at(0, 0, q.dump.empty() ? doing : fmt::format("{}, {} files dumped", doing, files_in(q.dump)));
  };
  const auto start = std::chrono::steady_clock::now();
  int code = run_command(c);
  // Flags of ours, or of the environment, that this release does not know; one that was asked for by name stays.
  for (int again = 0; again < 3 && code != 0 && code != kTimedOut; ++again) {
    std::vector<std::string> unknown = unknown_xla_flags(read_if_there(c.log));
    std::erase_if(unknown, [&](const std::string& flag) {
      return (" " + q.flags + " ").find(" " + flag + " ") != std::string::npos ||
             flag.starts_with("--xla_disable_hlo_passes");
    });
    const std::string fewer = without_xla_flags(c.environment[0].second, unknown);
    if (unknown.empty() || fewer == c.environment[0].second) break;
    out.warnings.push_back(fmt::format("this XLA does not know {}: left out", fmt::join(unknown, " ")));
    out.flags = without_xla_flags(out.flags, unknown);
    c.environment[0].second = fewer;
    fs::remove(phase);
    code = run_command(c);
  }
  out.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string doing = read_if_there(phase), log = read_if_there(c.log);
  if (q.tells_passes) out.log = log.substr(log.size() - std::min(log.size(), kLongestLog));
  if (code == kTimedOut) {
    out.end = XlaAnswer::kTimedOut, out.words = doing.empty() ? "starting" : doing;
  } else if (code == 127 && doing.empty()) {
    fail(FailureKind::kUsage, "cannot run {}", interpreter.python);
  } else if (code == 0) {
    read_answer(read_if_there(answer), out);
  } else if (doing.empty() && code < 128) {  // the driver itself did not come to run
    out.kind = "python", out.message = last_words(log);
  } else {
    out.end = XlaAnswer::kCrashed, out.signal = code > 128 ? code - 128 : 0;
    out.words = fmt::format("while {}: {}", doing.empty() ? "starting" : doing, last_words(log));
    if (const std::string stage = q.dump.empty() ? "" : last_stage(q.dump); !stage.empty())
      out.words += fmt::format(" (the last stage that it wrote: {})", stage);
  }
  return out;
}

namespace {

const char* how_it_ended(int signal) {
  return signal == SIGABRT                       ? "aborted"
         : signal == SIGSEGV                     ? "crashed (a bad address)"
         : signal == SIGKILL                     ? "was killed (memory?)"
         : signal == SIGILL || signal == SIGTRAP ? "crashed (a trap)"
                                                 : "ended";
}

}  // namespace

std::string ending_in_words(const XlaAnswer& a) {
  switch (a.end) {
    case XlaAnswer::kAnswered:
      return "XLA answered";
    case XlaAnswer::kTimedOut:
      return fmt::format("XLA was not done in time ({})", a.words);
    case XlaAnswer::kCrashed:
      return fmt::format("XLA {} {}", how_it_ended(a.signal), a.words);
    case XlaAnswer::kRefused:
      break;
  }
  return "XLA refuses: " + a.message;
}

std::string in_words(const XlaAnswer& a, const Interpreter& interpreter, const XlaQuestion& q) {
  const std::string who = fmt::format("{} ({})", a.jaxlib.empty() ? "XLA" : "jaxlib " + a.jaxlib, interpreter.python);
  switch (a.end) {
    case XlaAnswer::kAnswered:
      return who + " answered";
    case XlaAnswer::kTimedOut:
      return fmt::format("{}: {} was not done after {} s ({})", q.label, who, q.limit_seconds, a.words);
    case XlaAnswer::kCrashed:
      if (size_t at = a.words.find("Unknown flag"); at != std::string::npos)
        return fmt::format("{} does not know a flag: {}", who, a.words.substr(at));
      return fmt::format("{}: {} {} {}", q.label, who, how_it_ended(a.signal), a.words);
    case XlaAnswer::kRefused:
      break;
  }
  const std::string hint = a.hint.empty() ? "" : ". " + a.hint;
  if (a.kind == "compile") return fmt::format("{}: {} refuses: {}{}", q.label, who, a.message, hint);
  if (a.kind == "python") return fmt::format("{} cannot run the driver: {}", interpreter.python, a.message);
  return fmt::format("{}: {}{}", interpreter.python, a.message, hint);
}

void require_answer(const XlaAnswer& a, const Interpreter& interpreter, const XlaQuestion& q) {
  if (!a.ok()) fail(FailureKind::kUnsupported, "{}", in_words(a, interpreter, q));
}

}  // namespace hlo
