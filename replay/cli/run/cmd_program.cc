// bisect --program: which passes of the compiler that a program brings, left out, heal it; which decision of theirs;
// and what the stages say.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/hunt/guilty.h"
#include "replay/hunt/last_words.h"
#include "replay/judge/judge.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/process/program.h"
#include "replay/os/process/spawn.h"
#include "replay/os/progress.h"
#include "replay/record/recording/recording.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr double kFirstLimit = 600;  // seconds

class Program {
 public:
  explicit Program(const BisectArgs& a)
      : words_{"/bin/sh", "-c", a.program}, progress_("running " + a.program), asked_limit_(a.run_limit) {}
  // Does it exit 0 so? A run that passes its limit does not.
  bool good(const std::string& flags) { return run(flags) == 0; }
  // Exit code, 128 + signal, or kTimedOut.
  int run(const std::string& flags) {
    using Clock = std::chrono::steady_clock;
    if (interrupted()) fail(FailureKind::kUsage, "interrupted after {} runs", runs_);
    ++runs_;
    progress_.at(runs_, 0, "runs: " + flags);
    const Clock::time_point begin = Clock::now();
    const int code = run_under_xla(words_, flags, log(), {}, limit());
    if (runs_ == 1) first_seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
    if (code == kTimedOut) ended_.push_back(flags);
    return code;
  }
  // Seconds for the next run.
  double limit() const {
    if (asked_limit_ > 0) return asked_limit_;
    return runs_ <= 1 ? kFirstLimit : std::min(kFirstLimit, std::max(60.0, 4 * first_seconds_));
  }
  size_t runs() const { return runs_; }
  // The flags of runs that were ended at their limit.
  const Names& ended() const { return ended_; }
  std::string log() const { return folder_.path() + "/log"; }  // of the last run
  std::string dump() const { return folder_.path() + "/dump"; }

 private:
  std::vector<std::string> words_;
  Progress progress_;
  TemporaryFolder folder_;
  size_t runs_ = 0;
  double asked_limit_, first_seconds_ = 0;
  Names ended_;
};

std::string without(const Names& passes) {
  static const std::string kAlready =
      xla_flag_set("xla_disable_hlo_passes");  // a second flag takes the first one's place
  return fmt::format("--xla_disable_hlo_passes={}{}{}", kAlready, kAlready.empty() ? "" : ",", fmt::join(passes, ","));
}

// The decision of a pass that breaks the program, from 1, where the pass asks for fuel; 0: it does not. `told`: what
// XLA says of it when it is the first that fuel does not reach.
int64_t decision_in(Program& program, const std::string& pass, std::string* told) {
  const int64_t decision =
      decision_of([&](int64_t fuel) { return program.good(fmt::format("--xla_fuel={}={}", pass, fuel)); });
  if (!decision) return 0;
  std::string log = read_file(program.log()), mark = fmt::format("Out of fuel for \"{}\"", pass);
  if (size_t at = log.find(mark); at != std::string::npos) {
    *told = log.substr(at, log.find('\n', at) - at);
    if (size_t colon = told->find(": "); colon != std::string::npos) told->erase(0, colon + 2);
  }
  return decision;
}

// `before` and `after`: files of the folder.
void judge_stage(const BisectArgs& a, const std::string& folder, const std::string& before, const std::string& after,
                 std::string* verdict, std::string* why) {
  using Clock = std::chrono::steady_clock;
  try {
    LoadOptions options;
    options.universe = std::make_shared<Universe>();
    InputOptions inputs = input_options(a);
    auto load_one = [&](const std::string& file) {
      auto m = load_verified(confined_path(folder, file), true, nullptr, options);
      inputs.label = file, inputs.place = confined_path(folder, file);
      settle_elided(*m, inputs);
      return m;
    };
    std::unique_ptr<Module> first = load_one(before), second = load_one(after);
    check_supported(*first);
    Session session(*first, inputs);
    JudgeOptions judged = judge_options(a);
    Clock::time_point end = Clock::now() + std::chrono::minutes(1);
    judged.eval.stop = [end] { return interrupted() || Clock::now() > end; };
    Judgement j = make_judge(judged, *first, &session)(*second);
    *verdict = j.verdict == Verdict::kGood ? "equal" : j.verdict == Verdict::kBad ? "differs" : "not judged";
    *why = j.detail;
  } catch (const Failure& e) {
    *verdict = "not judged", *why = e.what();
  }
}

// What the evaluator says of each stage that the passes changed, held against the stage before.
Json on_stages(const BisectArgs& a, const std::vector<Recording>& all, const Names& guilty) {
  Json out = Json::array();
  for (const Recording& r : all) {
    for (size_t k = 1; k < r.rows.size(); ++k) {
      const StageRow& row = r.rows[k];
      if (!row.changed || std::find(guilty.begin(), guilty.end(), row.pass) == guilty.end()) continue;
      std::string before = r.text_file(k - 1), after = r.text_file(k), verdict, why;
      if (before.empty() || after.empty() || before == after) continue;
      judge_stage(a, r.folder, before, after, &verdict, &why);
      out.push_back(
          {{"module", r.module_name}, {"stage", row.name()}, {"file", after}, {"verdict", verdict}, {"why", why}});
    }
  }
  return out;
}

Json empty_search() {
  return {{"found", false},           {"runs", 0},
          {"ended", Json::array()},   {"last_words", Json()},
          {"passes", Json::array()},  {"guilty", Json::array()},
          {"healing", Json::array()}, {"pass", Json()},
          {"decision", Json()},       {"decision_in_words", ""},
          {"stages", Json::array()},  {"verdict", ""}};
}

// How the failing run ended, and where.
struct Death {
  int code = 0;
  LastWords words;
  std::vector<Unfinished> unfinished;
  Names running;  // passes that may have been at work
  // Did it end within a compilation, by itself or by its limit?
  bool in_compilation() const { return !words.checks.empty() || !words.running.empty() || !unfinished.empty(); }
};

// The last 16 MB of a file.
std::string end_of(const std::string& path) {
  constexpr std::streamoff kMost = 16 << 20;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in.tellg();
  std::string out(static_cast<size_t>(std::clamp<std::streamoff>(size, 0, kMost)), '\0');
  in.seekg(std::max<std::streamoff>(0, size - kMost));
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  return out;
}

Death death_of(Program& program, int code, const std::vector<Recording>& all) {
  Death d;
  d.code = code, d.words = last_words(end_of(program.log())), d.unfinished = unfinished_modules(all);
  Names known;
  for (const PassInfo& p : all_passes()) known.emplace_back(p.name);
  for (const Recording& r : all)
    for (const StageRow& row : r.rows)
      for (const std::string* name : {&row.pass, &row.next})
        if (std::find(known.begin(), known.end(), *name) == known.end()) known.push_back(*name);
  d.running = running_passes(d.words, d.unfinished, known);
  return d;
}

std::string ending(int code, double limit) {
  if (code == kTimedOut) return fmt::format("did not end within {:g} s", limit);
  return code > 128 ? fmt::format("was ended by signal {}", code - 128) : fmt::format("exits {}", code);
}

// Lines about a compilation that died.
Names told(const Death& d) {
  Names out;
  for (const std::string& check : d.words.checks) out.push_back("XLA's last words: " + check);
  if (!d.words.running.empty())
    out.push_back(fmt::format("on its stack, innermost first: {}", fmt::join(d.words.running, ", ")));
  for (const Unfinished& u : d.unfinished)
    out.push_back(u.next.empty() ? fmt::format("the stages of {} end with {}", u.module, u.last)
                                 : fmt::format("the stages of {} end with {}: {} was running, or a pass after it that "
                                               "had written nothing",
                                               u.module, u.last, u.next));
  return out;
}

Json death_json(const Death& d, double limit) {
  Json unfinished = Json::array();
  for (const Unfinished& u : d.unfinished)
    unfinished.push_back({{"module", u.module}, {"last", u.last}, {"next", u.next}});
  return {{"ending", ending(d.code, limit)},
          {"checks", d.words.checks},
          {"stack", d.words.running},
          {"unfinished", unfinished},
          {"running", d.running}};
}

// The last line, of what was found or not.
std::string verdict_of(const Json& j) {
  const Names guilty = j["guilty"];
  if (guilty.empty()) {
    // A pass that died wrote no stage, so that leaving out those that wrote one tells nothing of it.
    const Json& died = j["last_words"];
    if (died.is_object() && (!died["running"].empty() || !died["checks"].empty()))
      return fmt::format("{} runs: it {} in a compilation, {}; no pass left out fixes it", j["runs"].get<size_t>(),
                         died["ending"].get<std::string>(),
                         died["running"].empty()
                             ? died["checks"][0].get<std::string>()
                             : fmt::format("probably in {}", died["running"][0].get<std::string>()));
    return fmt::format(
        "{} runs: none of the {} passes that change something fixes it by being left out, nor do several; the fault "
        "is in the program, below HLO, or in a pass that it does not compile without",
        j["runs"].get<size_t>(), j["passes"].size());
  }
  if (!j["decision"].is_null())
    return fmt::format("guilty: decision {} of {}: with --xla_fuel={}={} it exits 0, with one more it does not",
                       j["decision"].get<int64_t>(), guilty[0], guilty[0], j["decision"].get<int64_t>() - 1);
  return fmt::format("guilty: with {} it exits 0{}", without(guilty),
                     guilty.size() > 1 ? ", without any of them alone it does not" : "");
}

// What was found, for a person.
void print_search(const BisectArgs& a, const Json& j, const Death& death) {
  for (const std::string& line : told(death)) fmt::print("{}\n", line);
  for (const Json& flags : j["ended"]) fmt::print("ended at its limit: the run with {}\n", flags.get<std::string>());
  if (j["found"] == true) {
    fmt::print("{} runs over {} passes that change something\n", j["runs"].get<size_t>(), j["passes"].size());
    size_t differs = 0;
    for (const Json& s : j["stages"]) {
      const bool bad = s["verdict"] == "differs", equal = s["verdict"] == "equal";
      differs += bad;
      fmt::print("stage {}: {}{}\n", s["file"].get<std::string>(),
                 bad     ? "gives other results than the stage before: "
                 : equal ? "gives what the stage before gives"
                         : "not compared: ",
                 equal ? "" : s["why"].get<std::string>());
    }
    if (!differs && !j["stages"].empty())
      fmt::print("by its stages it is right: what comes after it, or the code made from its result, goes wrong\n");
    if (const std::string words = j["decision_in_words"]; !words.empty())
      fmt::print("decision {} is the one that XLA reports so where it is left out: {}\n", j["decision"].get<int64_t>(),
                 words);
    if (j["healing"].size() > 1)
      fmt::print("each of these fixes it by being left out: {}\n", fmt::join(j["healing"].get<Names>(), ", "));
  }
  if (!a.out.empty()) fmt::print("all stages and the report are in {}\n", a.out);
  fmt::print("{}\n", j["verdict"].get<std::string>());
}

// Leaves passes out until it exits 0: first those that may have been running when a compilation died, each alone.
Json search(const BisectArgs& a, Program& program, const std::vector<Recording>& all, const Death& death) {
  const Names passes = passes_that_worked(all);
  const auto heals = [&](const Names& left_out) { return program.good(without(left_out)); };
  Names healing;
  if (death.in_compilation())
    for (const std::string& pass : death.running)
      if (heals({pass})) healing.push_back(pass);
  const Names guilty = healing.empty() ? guilty_of(heals, passes) : Names{healing[0]};
  if (healing.empty() && guilty.size() == 1) healing = guilty;
  std::string words;
  const int64_t decision = guilty.size() == 1 ? decision_in(program, guilty[0], &words) : 0;
  Json j = complete(empty_search(), {{"found", !guilty.empty()},
                                     {"runs", program.runs()},
                                     {"ended", program.ended()},
                                     {"guilty", guilty},
                                     {"healing", healing},
                                     {"passes", passes},
                                     {"decision_in_words", words}});
  if (guilty.size() == 1) j["pass"] = guilty[0];
  if (!guilty.empty()) j["stages"] = on_stages(a, all, guilty);
  if (decision > 0) j["decision"] = decision;
  return j;
}

}  // namespace

int bisect_program(const BisectArgs& a) {
  if (!a.by_running())
    fail(FailureKind::kUsage, "--program is checked by its exit code: --check and the like are not for it");
  std::optional<OutputFolder> out;
  if (!a.out.empty()) out.emplace(a.out, a.force, "bisect", words_of_line(a.program));
  Program program(a);
  const std::string dump = out ? fs::absolute(out->temporary()).string() + "/dump" : program.dump();
  const double limit = program.limit();
  const int code = program.run(xla_dump_flags(dump));
  if (code == 0) {
    Progress::clear();
    const std::string verdict = fmt::format("nothing to look for: {} exits 0", a.program);
    if (a.json)
      print_json(complete(empty_search(), {{"runs", program.runs()}, {"verdict", verdict}}));
    else
      fmt::print("{}\n", verdict);
    return kYes;
  }
  std::error_code error;
  if (!fs::exists(dump, error))
    fail(FailureKind::kUsage, "{} {} and compiles nothing with XLA", a.program, ending(code, limit));
  const std::vector<Recording> all = open_folder(dump);
  const Death death = death_of(program, code, all);
  Json j = search(a, program, all, death);
  if (death.in_compilation() || code == kTimedOut) j["last_words"] = death_json(death, limit);
  j["verdict"] = verdict_of(j);
  if (out) {
    out->write("report.json", j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    out->commit();
  }
  Progress::clear();
  if (a.json)
    print_json(j);
  else
    print_search(a, j, death);
  return j["found"] == true ? kNo : kBad;
}

}  // namespace hlo
