#include "replay/installed/measure.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "replay/installed/embedded.h"
#include "replay/installed/figures.h"
#include "replay/os/files.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// Counted up when figures are made otherwise than before.
constexpr int kMeasureVersion = 3;
constexpr double kPatience = 10;  // a question may take so many times what the longest took that was answered
constexpr std::array<const char*, 6> kWords = {"value", "memory", "time", "kernels", "compile-time", "crash"};

std::string answers_folder() {
  const std::string base = user_cache_folder();
  return base.empty() ? base : base + "/answers";
}

std::optional<XlaMeasured> kept_answer(const std::string& file) {
  std::error_code error;
  if (file.empty() || !fs::is_regular_file(file, error)) return std::nullopt;
  const Json j = Json::parse(read_file(file), nullptr, false);
  if (!j.is_object() || !j.contains("good") || !j["good"].is_boolean() || !j.contains("figure") ||
      !j["figure"].is_number() || !j.contains("words") || !j["words"].is_string())
    return std::nullopt;
  const double noise = j.contains("noise") && j["noise"].is_number() ? j["noise"].get<double>() : 0;
  return XlaMeasured{true, j["good"].get<bool>(), j["figure"].get<double>(), noise, j["words"].get<std::string>()};
}

void keep_answer(const std::string& file, const XlaMeasured& m) {
  if (file.empty() || !m.known) return;
  try {
    fs::create_directories(fs::path(file).parent_path());
    write_file(file, Json{{"good", m.good}, {"figure", m.figure}, {"noise", m.noise}, {"words", m.words}}.dump(
                         1, ' ', false, Json::error_handler_t::replace));
  } catch (const std::exception&) {  // the next run asks again
  }
}

constexpr int kTimedRuns = 15;

// Seconds of a run on this machine: the median, with half of what the middle half of the runs spreads over.
void take_time(const XlaAnswer& a, XlaMeasured* m) {
  const auto median = a.seconds.find("run"), spread = a.seconds.find("run_spread");
  if (median == a.seconds.end() || spread == a.seconds.end()) {
    m->known = false, m->words = "its runs were not timed";
    return;
  }
  m->figure = median->second, m->noise = spread->second;
  m->words = fmt::format("{} ± {} by {} runs", time_text(m->figure), time_text(m->noise), kTimedRuns);
}

}  // namespace

XlaBy xla_by(const std::string& word) {
  for (size_t k = 0; k < kWords.size(); ++k)
    if (word == kWords[k]) return static_cast<XlaBy>(k);
  fail(FailureKind::kUsage, "--by is {}, not '{}'", fmt::join(kWords, ", "), word);
}

XlaMeasure::XlaMeasure(XlaBy by, XlaQuestion base, ReleaseOptions releases, std::string value_key,
                       std::function<Judgement(const std::string&, const std::string&)> value)
    : by_(by),
      base_(std::move(base)),
      releases_(releases),
      value_key_(std::move(value_key)),
      value_(std::move(value)) {}

const Interpreter& XlaMeasure::interpreter(const std::string& engine) {
  auto at = interpreters_.find(engine);
  if (at == interpreters_.end())
    at = interpreters_.emplace(engine, find_interpreter(engine, base_.target.platform, releases_)).first;
  return at->second;
}

XlaQuestion XlaMeasure::question(const XlaSetting& s) const {
  XlaQuestion q = base_;
  if (!s.flags.empty()) q.flags += (q.flags.empty() ? "" : " ") + s.flags;
  q.disabled.insert(q.disabled.end(), s.disabled.begin(), s.disabled.end());
  return q;
}

XlaAnswer XlaMeasure::with_stages(const XlaSetting& s, const std::string& folder) {
  XlaQuestion q = question(s);
  q.dump = fs::absolute(folder).string();
  q.tells_passes = by_ == XlaBy::kCrash;
  ++asked_;
  return ask_xla(interpreter(s.engine), q);
}

std::string XlaMeasure::key(const XlaSetting& s) {
  const Interpreter& who = interpreter(s.engine);
  std::string& version = versions_[who.python];
  if (version.empty()) {
    XlaQuestion q = base_;
    q.what = "which";
    version = who.python + " " + ask_xla(who, q).jaxlib;
  }
  const XlaQuestion q = question(s);
  const std::string text =
      fmt::format("{} {} {} {:x} {:x} {} {} {} {} {} {} {:x}", kMeasureVersion, kWords[static_cast<size_t>(by_)],
                  version, hash_bytes(kXlaDriver), hash_bytes(read_file(q.input)), q.form, q.target.platform,
                  q.partitions, q.shardy, xla_flags_of(q), value_key_, hash_bytes(q.target.text));
  return fmt::format("{:016x}{:016x}", hash_bytes(text), hash_bytes("second " + text));
}

const XlaMeasured& XlaMeasure::of(const XlaSetting& s) {
  const std::string name = key(s);
  if (auto at = known_.find(name); at != known_.end()) return at->second;
  const std::string folder = answers_folder(), file = folder.empty() ? "" : folder + "/" + name + ".json";
  if (std::optional<XlaMeasured> kept = kept_answer(file)) {
    ++kept_;
    return known_[name] = *kept;
  }
  XlaMeasured m = measure(s);
  keep_answer(file, m);
  return known_[name] = m;
}

XlaMeasured XlaMeasure::measure(const XlaSetting& s) {
  const Interpreter& who = interpreter(s.engine);
  TemporaryFolder scratch;
  XlaQuestion q = question(s);
  XlaMeasured m;
  if (by_ == XlaBy::kTime && q.target.platform != "cpu") {
    m.words = fmt::format(
        "the time on {} cannot be measured: it is not this machine (--by=kernels and --by=memory "
        "count, hlo-replay cost bounds)",
        q.target.spec);
    return m;
  }
  const bool run = (by_ == XlaBy::kValue || by_ == XlaBy::kTime) && q.target.platform == "cpu";
  if (by_ == XlaBy::kTime) q.runs = kTimedRuns;
  q.what = run ? "run" : "compile";
  if (run)
    q.output = scratch.path() + "/outputs.npz";
  else if (by_ != XlaBy::kCompileTime && by_ != XlaBy::kCrash)
    q.dump = scratch.path() + "/dump", q.every_stage = false, fs::create_directory(q.dump);
  // A compilation, or what it made, may not come to its end without a pass that it needs.
  if (q.limit_seconds <= 0) q.limit_seconds = limit_;
  ++asked_;
  const XlaAnswer a = ask_xla(who, q);
  if (a.ok()) limit_ = std::max(limit_, kPatience * (1 + a.wall_seconds));
  if (by_ == XlaBy::kCrash) {
    // A refusal before anything was compiled says nothing of the compiler.
    m.known = a.ok() || a.end == XlaAnswer::kCrashed || a.end == XlaAnswer::kTimedOut || a.kind == "compile";
    m.good = a.ok(), m.words = a.ok() ? "compiles" : ending_in_words(a);
    if (a.words.find("Unknown flag") != std::string::npos) m.known = false;
    return m;
  }
  if (!a.ok()) {
    m.words = in_words(a, who, q);
    return m;
  }
  m.known = true;
  if (by_ == XlaBy::kCompileTime) {
    m.figure = a.seconds.contains("compile") ? a.seconds.at("compile") : a.wall_seconds;
    m.words = time_text(m.figure) + " to compile";
    return m;
  }
  if (by_ == XlaBy::kTime) {
    take_time(a, &m);
    return m;
  }
  if (by_ == XlaBy::kValue) {
    const Judgement j = value_(q.output, q.dump);
    m.known = j.verdict != Verdict::kUnknown, m.good = j.verdict == Verdict::kGood;
    m.words = m.good ? "results as the module means them" : j.detail;
    return m;
  }
  const std::vector<Recording> all = open_folder(q.dump);
  const Recording& r = main_recording(all, "");
  const CompilationFigures f = figures_of(r);
  if (by_ == XlaBy::kMemory) {
    m.known = f.memory >= 0, m.figure = static_cast<double>(f.memory);
    m.words = m.known ? size_text(m.figure) + " allocated" : "the dump has no buffer assignment";
  } else if (!f.unreadable.empty()) {
    m.known = false, m.words = f.unreadable;
  } else {
    m.figure = static_cast<double>(f.kernels), m.words = fmt::format("{} kernels", f.kernels);
  }
  return m;
}

std::map<std::string, std::string> XlaMeasure::flag_defaults(const std::string& engine, std::string* why) {
  XlaQuestion q = base_;
  q.what = "flags";
  const XlaAnswer a = ask_xla(interpreter(engine), q);
  if (!a.ok()) *why = in_words(a, interpreter(engine), q);
  return a.flag_defaults;
}

}  // namespace hlo
