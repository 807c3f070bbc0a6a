// triage: from "it is wrong" to the culprit, rung by rung, each in a process of its own, bounded in time and memory.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "ir/base/hash.h"
#include "ir/base/memory.h"
#include "replay/cli/engine.h"
#include "replay/cli/json_output.h"
#include "replay/cli/triage/triage.h"
#include "replay/os/bounded.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/output_marker.h"
#include "replay/os/process/program.h"
#include "replay/os/process/spawn.h"
#include "replay/os/progress.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr double kLeastSeconds = 0.3, kFewSeconds = 2;  // for a rung
constexpr int64_t kReadWhole = 1 << 22;  // files up to that size are known by what they hold, others by time and size
constexpr int64_t kMostMemory = int64_t{8} << 30;  // where nobody says how much
constexpr const char* kStateFile = "state.json";

uint64_t mixed(uint64_t a, uint64_t b) { return (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))); }

uint64_t fingerprint_of_file(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return 0;
  if (!S_ISREG(s.st_mode)) return 1;
  if (s.st_size <= kReadWhole) return hash_bytes(read_file(path));
  return mixed(static_cast<uint64_t>(s.st_size),
               static_cast<uint64_t>(s.st_mtim.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(s.st_mtim.tv_nsec));
}

// Of all that an answer hangs on.
std::string fingerprint_of(const TriageArgs& a, const TriageSubject& s) {
  uint64_t h = hash_bytes(fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", kVersion, s.label,
                                      complaint_name(s.complaint), a.seed, a.scheme, a.tolerance, a.fill_elided,
                                      a.engine.engine, a.engine.flags, a.engine.target, a.engine.partitions, a.releases,
                                      a.no_verify, a.max_steps));
  for (const std::string& file : {a.inputs, a.outputs, a.again, a.log})
    h = mixed(h, file.empty() ? 2 : fingerprint_of_file(file));
  if (s.kind == TriageSubject::kDump)
    for (const Recording& r : s.modules)
      for (const StageRow& row : r.rows)
        if (!row.file.empty())
          h = mixed(mixed(h, hash_bytes(row.file)), fingerprint_of_file(r.folder + "/" + row.file));
  if (!s.compiled_from.empty()) h = mixed(h, fingerprint_of_file(s.compiled_from));
  if (s.kind != TriageSubject::kDump) h = mixed(h, fingerprint_of_file(s.spec));
  return fmt::format("{:016x}", h);
}

Json bounded_json(const BoundedRun& b, Json answer) {
  return {
      {"end", static_cast<int>(b.end)}, {"code", b.code}, {"kind", b.kind}, {"error", b.error}, {"seconds", b.seconds},
      {"answer", std::move(answer)}};
}

// The object that a command printed; null where it printed none.
Json object_in(const std::string& output) {
  size_t at = output.starts_with("{") ? 0 : output.find("\n{");
  if (at == std::string::npos) return {};
  Json j = Json::parse(output.substr(at), nullptr, false);
  return j.is_discarded() ? Json() : j;
}

std::string first_line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string ending_in_words(const BoundedRun& b, double limit) {
  switch (b.end) {
    case BoundedRun::kTime:
      return fmt::format("ended after its {:.1f} s", limit);
    case BoundedRun::kMemory:
      return "it takes more memory than it may (--memory-limit)";
    case BoundedRun::kFailed:
      return first_line_of(b.error);
    case BoundedRun::kDied:
      return fmt::format("died by signal {}", b.code);
    case BoundedRun::kInterrupted:
      return "interrupted";
    case BoundedRun::kDone:
      break;
  }
  return {};
}

class Triage {
 public:
  explicit Triage(const TriageArgs& a) : a_(a), begin_(std::chrono::steady_clock::now()) {}

  int run() {
    check_given();
    if (!a_.out.empty()) begin_folder();
    s_ = subject();
    s_.scratch = scratch_.path();
    take_arguments(a_, s_, s_.scratch);
    fingerprint_ = fingerprint_of(a_, s_);
    if (!a_.out.empty()) take_state();
    climb();
    climb_with_arguments();
    smallest();
    Json j = without_scratch(triage_json(a_, s_, v_, rungs_, passed()));
    j["stopped"] = stopped_ ? Json("by a signal") : Json();
    if (!a_.out.empty()) {
      j["folder"] = a_.out;
      keep(&j);
    }
    if (a_.json)
      print_json(j);
    else
      tell_triage(j);
    if (stopped_ || v_.word == "unknown") return kBad;
    return v_.word == "fault" || v_.word == "program" || v_.word == "below" ? kNo : kYes;
  }

 private:
  // Files that go with this process, by the names that the commands of the answer have for them.
  Json without_scratch(const Json& j) const {
    std::string text = j.dump(-1, ' ', false, Json::error_handler_t::replace);
    for (const auto& [from, to] : {std::pair("/dump", "xla_dump"),
                                   {"/own", "own"},
                                   {"/inputs.npz", "inputs.npz"},
                                   {"/outputs.npz", "outputs.npz"}}) {
      const std::string name = scratch_.path() + from;
      for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
        text.replace(at, name.size(), to);
    }
    return Json::parse(text);
  }

  void check_given() {
    if (a_.what.empty()) fail(FailureKind::kUsage, "triage takes WHAT: a dump, a module, a log, -, or -- a program");
    if (!a_.complaint.empty() && !find_complaint(a_.complaint))
      fail(FailureKind::kUsage, "unknown complaint '{}'; there are {}", a_.complaint, fmt::join(kComplaintNames, ", "));
    if (a_.engine.limit_seconds <= 0) a_.engine.limit_seconds = 120;
    checked_executor(a_);
  }

  // A state of an earlier run over the same is gone on with, and its folder replaced; any other folder is as for every
  // command.
  void begin_folder() {
    std::error_code error;
    const std::string file = a_.out + "/" + kStateFile;
    if (fs::exists(file, error) && fs::exists(a_.out + "/.hlo-replay", error)) kept_ = object_in(read_file(file));
    std::vector<std::string> inputs = a_.what;
    inputs.insert(inputs.end(), {a_.inputs, a_.outputs, a_.log});
    inputs_ = inputs;
    out_.emplace(a_.out, a_.force || kept_.is_object(), "triage", inputs);
  }

  TriageSubject subject() {
    if (dashes_given()) return program();
    std::vector<std::string> what = a_.what;
    std::error_code error;
    const fs::file_status status = fs::status(what[0], error);
    // What can be read once is read once.
    if (what[0] == "-" || (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))) {
      const std::string text = read_file(what[0]);
      what[0] = scratch_.path() + "/given";
      write_file(what[0], text);
    }
    const bool one = a_.engine.installed() && what.size() == 1 && fs::is_regular_file(status);
    if (one && is_stablehlo(what[0])) return compiled(what[0]);
    TriageSubject s = triage_subject(a_, what);
    if (one && s.kind == TriageSubject::kModule) return compiled(what[0]);
    s.label = a_.what[0];
    return s;
  }

  TriageSubject compiled(const std::string& file) {
    Progress progress("compiling " + file);
    return compiled_subject(a_, file, scratch_.path(), a_.engine.limit_seconds / 2);
  }

  // Run under capture's flags, for half of the time.
  TriageSubject program() {
    const std::string dump = scratch_.path() + "/dump", log = scratch_.path() + "/log";
    const std::string arguments = scratch_.path() + "/arguments";
    fs::create_directory(dump), fs::create_directory(arguments);
    Progress progress("running " + a_.what[0]);
    const double limit = a_.engine.limit_seconds / 2;
    const int code = run_under_xla(a_.what, xla_dump_flags(dump), log, {}, limit, {arguments});
    std::error_code error;
    const bool dumped = !fs::is_empty(dump, error);
    TriageArgs a = a_;
    a.log = log;
    if (code == 0) a.log.clear();
    if (!dumped && code == 0)
      fail(FailureKind::kUsage, "{} dumped nothing: it compiled nothing with XLA, or was compiled before (a cache)",
           a_.what[0]);
    if (code == kTimedOut && a.complaint.empty()) a.complaint = "hang";
    TriageSubject s = triage_subject(a, {dumped ? dump : log});
    if (code == kTimedOut) s.seen_from = fmt::format("it was ended after {:.0f} s", limit);
    s.label = dumped ? "xla_dump" : fmt::format("-- {}", fmt::join(a_.what, " "));
    return s;
  }

  void take_state() {
    if (!kept_.is_object()) return;
    if (kept_.value("fingerprint", "") == fingerprint_ && kept_["answers"].is_object()) {
      answers_ = kept_["answers"];
      return;
    }
    if (!a_.force)
      fail(FailureKind::kUsage,
           "{} is of another triage: of other files, options or another version (--force replaces it)", a_.out);
  }

  double passed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  void add_rung(const TriageRung& r, const char* outcome, std::string result, Json seconds) {
    rungs_.push_back({{"rung", prefix_ + r.name},
                      {"outcome", outcome},
                      {"seconds", std::move(seconds)},
                      {"result", std::move(result)},
                      {"command", r.command}});
  }

  bool needed(const TriageRung& r) const {
    // Which flag or release it hangs on is asked of what was found, too, where somebody wants to know.
    if (v_.word == "fault" || v_.word == "below")
      if ((r.name == "flags" && !a_.engine.flags.empty()) || (r.name == "releases" && !a_.releases.empty()))
        return true;
    if (r.name == "source")
      return v_.instruction.is_string() && !has_source_line(v_) && v_.word != "nothing" && v_.word != "unknown";
    // Of a sound one nobody asked where else it is not.
    if (r.name == "releases" && a_.releases.empty() && v_.word == "nothing") return false;
    if (v_.decided) return false;
    return v_.word != "fault" || r.name == "contract" || s_.complaint == Complaint::kCrash ||
           s_.complaint == Complaint::kHang;
  }

  void climb() {
    const size_t all = triage_rungs(a_, s_, v_).size();
    Progress progress("triage of " + s_.label);
    for (size_t k = 0; k < all; ++k) {
      const std::vector<TriageRung> rungs = triage_rungs(a_, s_, v_);
      const TriageRung& r = rungs[k];
      progress.at(k, all, r.name);
      stopped_ = stopped_ || interrupted();
      if (stopped_)
        add_rung(r, "stopped", "interrupted before it began", Json());
      else if (!needed(r))
        add_rung(r, "not needed", "", Json());
      else if (!r.left_out.empty())
        add_rung(r, "left out", r.left_out, Json());
      else if (!r.job)
        known(r);
      else
        one(r, share(rungs, k));
    }
    if (v_.why.empty()) {
      v_.why = "nothing that was tried shows what is wrong";
      double longest = 0;  // what took the most tells how far it has come, or why it cannot tell
      for (const Json& r : rungs_)
        if (r["seconds"].is_number() && r["seconds"].get<double>() > longest && !r["result"].empty())
          longest = r["seconds"].get<double>(), v_.why = r["result"].get<std::string>();
    }
  }

  // Of several modules those whose arguments are known, once more and each alone, where drawn ones show nothing.
  void climb_with_arguments() {
    const bool by_value = s_.complaint == Complaint::kWrong || s_.complaint == Complaint::kNan;
    if (!by_value || !a_.inputs.empty() || s_.kind != TriageSubject::kDump || s_.modules.size() < 2 || stopped_ ||
        !s_.others.empty() || (v_.word != "nothing" && v_.word != "unknown"))
      return;
    const TriageSubject whole = s_;
    const TriageArgs given = a_;
    TriageVerdict before = v_;
    std::vector<std::string> asked;
    for (TriageSubject& one : subjects_with_arguments(whole, scratch_.path())) {
      s_ = std::move(one), a_ = given, v_ = TriageVerdict();
      take_arguments(a_, s_, scratch_.path());
      if (a_.inputs.empty()) continue;
      prefix_ = s_.module + ": ", asked.push_back(s_.module);
      climb();
      prefix_.clear();
      if (stopped_ || (v_.word != "nothing" && v_.word != "unknown")) return;
    }
    if (!asked.empty())
      before.details.push_back(fmt::format("nor is it seen with what {} had on {} first call", fmt::join(asked, ", "),
                                           asked.size() == 1 ? "its" : "their"));
    s_ = whole, a_ = given, v_ = before;
  }

  // With -o: the least that still shows what is wrong, for as long as is left, half a minute at most.
  void smallest() {
    if (a_.out.empty() || stopped_) return;
    const std::string folder = scratch_.path() + "/smallest";
    fs::create_directory(folder);
    for (const bool again : {false, true}) {
      std::optional<TriageRung> r = smallest_rung(a_, s_, v_, folder, again);
      const double seconds = std::min(30.0, a_.engine.limit_seconds - passed());
      if (!r) return;
      if (seconds < kLeastSeconds)
        return add_rung(*r, "no time", fmt::format("of {} s nothing is left (--time-limit)", a_.engine.limit_seconds),
                        Json());
      Progress progress("the least that shows it");
      const BoundedRun b = run_bounded([&] { return r->job(seconds); }, seconds, memory(), scratch_.path());
      if (b.end == BoundedRun::kInterrupted || interrupted()) stopped_ = true;
      told(*r, b, object_in(b.output), seconds);
      if (stopped_ || take_smallest(folder)) return;
    }
  }

  bool take_smallest(const std::string& folder) {
    std::error_code error;
    // How a module was reduced over compilations tells of this machine; the report says what matters.
    const bool own = s_.compiled_from.empty();
    for (const fs::directory_entry& e : fs::recursive_directory_iterator(folder, error)) {
      const std::string name = e.path().filename();
      if (e.is_regular_file(error) && name != kMarkerFile && (own || name != "README.md"))
        v_.smallest.emplace_back("smallest/" + name, read_file(e.path().string()));
    }
    return !v_.smallest.empty();
  }

  void known(const TriageRung& r) {
    const auto begin = std::chrono::steady_clock::now();
    std::string told = r.read(Json(), kYes, v_);
    add_rung(r, "done", std::move(told),
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  // Seconds: of what is left, by weight among those that may still be tried.
  double share(const std::vector<TriageRung>& rungs, size_t k) const {
    double sum = 0;
    for (size_t n = k; n < rungs.size(); ++n)
      if (rungs[n].left_out.empty() && rungs[n].job) sum += rungs[n].weight;
    const double left = a_.engine.limit_seconds - passed();
    const double by_weight = left * rungs[k].weight / std::max(sum, rungs[k].weight);
    // Most are over soon, and what they leave the later ones get.
    return std::min(rungs[k].most, std::max(by_weight, std::min(left, kFewSeconds)));
  }

  int64_t memory() const {
    if (a_.memory_limit > 0) return static_cast<int64_t>(a_.memory_limit * (1 << 30));
    return std::min(kMostMemory, available_memory().bytes / 5 * 4);
  }

  void one(const TriageRung& r, double seconds) {
    BoundedRun b;
    Json answer;
    if (answers_.contains(prefix_ + r.name)) {
      const Json& kept = answers_[prefix_ + r.name];
      b.end = static_cast<BoundedRun::End>(kept.value("end", 0)), b.code = kept.value("code", 0);
      b.kind = kept.value("kind", ""), b.error = kept.value("error", ""), b.seconds = kept.value("seconds", 0.0);
      if (kept.contains("answer")) answer = kept["answer"];
    } else if (seconds < kLeastSeconds) {
      return add_rung(r, "no time", fmt::format("of {} s nothing is left (--time-limit)", a_.engine.limit_seconds),
                      Json());
    } else {
      b = run_bounded([&] { return r.job(seconds); }, seconds, memory(), scratch_.path());
      answer = object_in(b.output);
      if (b.end == BoundedRun::kInterrupted || interrupted()) stopped_ = true;
      if (!stopped_ && (b.end == BoundedRun::kDone || b.end == BoundedRun::kFailed)) {
        answers_[prefix_ + r.name] = bounded_json(b, answer);
        if (!a_.out.empty()) keep(nullptr);
      }
    }
    told(r, b, answer, seconds);
  }

  void told(const TriageRung& r, const BoundedRun& b, const Json& answer, double seconds) {
    const bool answered = answer.is_object() && !answer.contains("error");
    if (answered && (b.end == BoundedRun::kDone || b.end == BoundedRun::kTime)) {
      std::string result;
      try {
        result = r.read(answer, b.code, v_);
      } catch (const std::exception& e) {  // of a form that is not known here
        return add_rung(r, "cannot", fmt::format("its answer cannot be read: {}", e.what()), b.seconds);
      }
      const bool whole = b.end == BoundedRun::kDone && (!answer.contains("stopped") || answer["stopped"].is_null());
      const bool found = answer.contains("found") && answer["found"] == true;
      return add_rung(r, whole || found ? "done" : "stopped", result, b.seconds);
    }
    std::string why = ending_in_words(b, seconds);
    if (answer.is_object() && answer.contains("error")) why = first_line_of(answer["error"].value("message", ""));
    if (r.name == "check" && b.kind == "invalid" && s_.kind == TriageSubject::kModule) {
      v_.word = "program", v_.sure = "proved", v_.decided = true, v_.why = "the module is no valid HLO: " + why;
      return add_rung(r, "done", why, b.seconds);
    }
    add_rung(r,
             b.end == BoundedRun::kFailed ? "cannot"
             : b.end == BoundedRun::kTime ? "stopped"
                                          : "ended",
             why, b.seconds);
  }

  // What is known so far; `answer`: all of it.
  void keep(const Json* answer) {
    if (!out_) out_.emplace(a_.out, true, "triage", inputs_);
    out_->write(kStateFile, Json{{"version", 1}, {"fingerprint", fingerprint_}, {"answers", answers_}}.dump(
                                1, ' ', false, Json::error_handler_t::replace) +
                                "\n");
    if (answer) write_report(*out_, a_, s_, v_, *answer);
    for (const auto& [name, content] : v_.smallest) out_->write(name, content);
    out_->commit();
    out_.reset();
  }

  TriageArgs a_;
  std::chrono::steady_clock::time_point begin_;
  TemporaryFolder scratch_;
  std::optional<OutputFolder> out_;
  std::vector<std::string> inputs_;
  TriageSubject s_;
  TriageVerdict v_;
  std::string fingerprint_, prefix_;  // prefix_: of rungs, where one of several modules is asked alone
  Json kept_, answers_ = Json::object(), rungs_ = Json::array();
  bool stopped_ = false;
};

}  // namespace

int cmd_triage(const TriageArgs& a) { return Triage(a).run(); }

}  // namespace hlo
