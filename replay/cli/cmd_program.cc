// bisect --program: which passes of the compiler that a program brings, left out, heal it; which decision of theirs;
// and what the stages say.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/hunt/guilty.h"
#include "replay/judge/judge.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/program.h"
#include "replay/os/progress.h"
#include "replay/record/recording.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

class Program {
 public:
  explicit Program(const BisectArgs& a) : words_{"/bin/sh", "-c", a.program}, progress_("running " + a.program) {}
  // Does it exit 0 so?
  bool good(const std::string& flags) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted after {} runs", runs_);
    ++runs_;
    progress_.at(runs_, 0, "runs: " + flags);
    return run_under_xla(words_, flags, log()) == 0;
  }
  size_t runs() const { return runs_; }
  std::string log() const { return folder_.path() + "/log"; }  // of the last run
  std::string dump() const { return folder_.path() + "/dump"; }

 private:
  std::vector<std::string> words_;
  Progress progress_;
  TemporaryFolder folder_;
  size_t runs_ = 0;
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

// What the evaluator says of each stage that the passes changed, held against the stage before.
Json on_stages(const BisectArgs& a, const std::vector<Recording>& all, const Names& guilty) {
  using Clock = std::chrono::steady_clock;
  Json out = Json::array();
  for (const Recording& r : all)
    for (size_t k = 1; k < r.rows.size(); ++k) {
      const StageRow& row = r.rows[k];
      if (!row.changed || std::find(guilty.begin(), guilty.end(), row.pass) == guilty.end()) continue;
      std::string before = r.text_file(k - 1), after = r.text_file(k), verdict, why;
      if (before.empty() || after.empty() || before == after) continue;
      try {
        LoadOptions options;
        options.universe = std::make_shared<Universe>();
        InputOptions inputs = input_options(a);
        auto load_one = [&](const std::string& file) {
          auto m = load_verified(confined_path(r.folder, file), true, nullptr, options);
          inputs.label = file;
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
        verdict = j.verdict == Verdict::kGood ? "equal" : j.verdict == Verdict::kBad ? "differs" : "not judged";
        why = j.detail;
      } catch (const Failure& e) {
        verdict = "not judged", why = e.what();
      }
      out.push_back(
          {{"module", r.module_name}, {"stage", row.name()}, {"file", after}, {"verdict", verdict}, {"why", why}});
    }
  return out;
}

Json empty_search() {
  return {{"found", false}, {"runs", 0},          {"passes", Json::array()}, {"guilty", Json::array()},
          {"pass", Json()}, {"decision", Json()}, {"decision_in_words", ""}, {"stages", Json::array()},
          {"verdict", ""}};
}

// The last line, of what was found or not.
std::string verdict_of(const Json& j) {
  const Names guilty = j["guilty"];
  if (guilty.empty())
    return fmt::format(
        "{} runs: none of the {} passes that change something heals it by being left out, nor do several; the fault "
        "lies in the program, below HLO, or in a pass that it does not compile without",
        j["runs"].get<size_t>(), j["passes"].size());
  if (!j["decision"].is_null())
    return fmt::format("guilty: decision {} of {}: with --xla_fuel={}={} it exits 0, with one more it does not",
                       j["decision"].get<int64_t>(), guilty[0], guilty[0], j["decision"].get<int64_t>() - 1);
  return fmt::format("guilty: with {} it exits 0{}", without(guilty),
                     guilty.size() > 1 ? ", without any of them alone it does not" : "");
}

}  // namespace

int bisect_program(const BisectArgs& a) {
  if (!a.by_running())
    fail(FailureKind::kUsage, "--program is judged by its exit code: --check and the like are not for it");
  std::optional<OutputFolder> out;
  if (!a.out.empty()) out.emplace(a.out, a.force, "bisect", words_of_line(a.program));
  Program program(a);
  const std::string dump = out ? fs::absolute(out->temporary()).string() + "/dump" : program.dump();
  if (program.good(xla_dump_flags(dump))) {
    Progress::clear();
    const std::string verdict = fmt::format("nothing to look for: {} exits 0", a.program);
    if (a.json)
      print_json(complete(empty_search(), {{"runs", program.runs()}, {"verdict", verdict}}));
    else
      fmt::print("{}\n", verdict);
    return kYes;
  }
  std::error_code error;
  if (!fs::exists(dump, error)) fail(FailureKind::kUsage, "{} fails and compiles nothing with XLA", a.program);
  std::vector<Recording> all = open_folder(dump);
  Names passes = passes_that_worked(all),
        guilty = guilty_of([&](const Names&left_out) { return program.good(without(left_out)); }, passes);
  std::string told;
  int64_t decision = guilty.size() == 1 ? decision_in(program, guilty[0], &told) : 0;
  Json j = complete(empty_search(), {{"found", !guilty.empty()}, {"runs", program.runs()}, {"passes", passes}});
  if (!guilty.empty()) {
    j["guilty"] = guilty;
    if (guilty.size() == 1) j["pass"] = guilty[0];
    j["stages"] = on_stages(a, all, guilty);
  }
  if (decision > 0) j["decision"] = decision;
  j["decision_in_words"] = told;
  j["verdict"] = verdict_of(j);
  if (out) {
    out->write("report.json", j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    out->commit();
  }
  Progress::clear();
  if (a.json) {
    print_json(j);
    return guilty.empty() ? kBad : kNo;
  }
  if (guilty.empty()) {
    fmt::print("{}\n", j["verdict"].get<std::string>());
    return kBad;
  }
  fmt::print("{} runs over {} passes that change something\n", program.runs(), passes.size());
  size_t differs = 0;
  for (const Json& s : j["stages"]) {
    bool bad = s["verdict"] == "differs";
    differs += bad;
    fmt::print("stage {}: {}{}\n", s["file"].get<std::string>(),
               bad                       ? "gives other results than the stage before: "
               : s["verdict"] == "equal" ? "gives what the stage before gives"
                                         : "not judged: ",
               s["verdict"] == "equal" ? "" : s["why"].get<std::string>());
  }
  if (!differs && !j["stages"].empty())
    fmt::print("by its stages it is right: what comes behind it, or the code made of its result, goes wrong\n");
  if (out) fmt::print("all stages and the report are in {}\n", a.out);
  if (decision > 0 && !told.empty())
    fmt::print("decision {} is the one that XLA tells of so where it is left out: {}\n", decision, told);
  fmt::print("{}\n", j["verdict"].get<std::string>());
  return kNo;
}

}  // namespace hlo
