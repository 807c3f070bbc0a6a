// bisect: the pass, then the rewrite, that turns good into bad.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "ir/base/hash.h"
#include "ir/base/memory.h"
#include "ir/buffer.h"
#include "ir/eval/compare.h"
#include "ir/eval/inputs.h"
#include "ir/eval/spare_arrays.h"
#include "ir/print.h"
#include "passes/pipelines.h"
#include "replay/cli/bisect_report.h"
#include "replay/cli/json_output.h"
#include "replay/judge/elided.h"
#include "replay/judge/inside/edges.h"
#include "replay/judge/inside/inputs.h"
#include "replay/judge/npz.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

// Modules larger than that are looked at with one set of inputs.
constexpr int64_t kLargestSecondLook = int64_t{64} << 20;

// Modules that are looked at with other inputs where nothing was found: how large, how many such inputs, how long.
constexpr int64_t kLargestReach = int64_t{64} << 20;
constexpr uint64_t kTurns = 8;
constexpr std::chrono::seconds kReachTime{10};

// One module of a folder.
class FolderBisection {
 public:
  FolderBisection(const BisectArgs& a, const Recording& r, JudgementFile& memory)
      : a_(a), r_(r), memory_(memory), judged_(judge_options(a)) {
    judged_.stages = true;
    load_options_.universe = std::make_shared<Universe>();
    inputs_ = input_options(a);
    for (size_t k = 0; k < r.rows.size(); ++k) {
      const StageRow& s = r.rows[k];
      if (!s.file.ends_with(".txt") && !s.file.ends_with(".hlo")) continue;
      paths_.push_back(confined_path(r.folder, s.file));
      rows_.push_back(k);
      row_.labels.push_back(s.number > 0 ? fmt::format("{:04} {}", s.number, s.name()) : s.name());
      std::string text = a.resume.empty() ? std::string() : read_file(paths_.back());
      row_.keys.push_back(fmt::format("{} {:016x}", s.file, hash_bytes(text)));
    }
    row_.load = [this](size_t k) {
      auto m = load_verified(paths_[k], !a_.no_verify && !a_.verify, nullptr, load_options_);
      inputs_.label = paths_[k];
      if (a_.by_running()) settle(k, *m);
      return m;
    };
    // More than half of a dump's stages are: a pipeline's start is dumped, and nothing has run.
    row_.same = [this](size_t k) { return k > 0 && same_files(paths_[k - 1], paths_[k]); };
  }
  size_t stages() const { return row_.labels.size(); }

  // The answer; `code` is the exit code. Throws where the first stage cannot be run and the folder has no other module.
  Json run(int* code, bool* reported) {
    first_ = row_.load(0);
    by_elements_ = a_.looks_inside() && a_.backend == "evaluator" && (a_.elements || too_large_to_run(*first_));
    Bisection b;
    if (by_elements_) b = look_at_elements();
    if (by_elements_ && !a_.elements && !decided(b) && bytes_inside(*first_) <= available_memory().bytes / 2) {
      by_elements_ = false, told_.erase("elements");
      complain("note: chosen elements do not decide every stage: they are run, which may take long");
    }
    if (!by_elements_) {
      if (a_.by_running() && !a_.looks_inside()) check_supported(*first_);
      if (a_.by_running()) session_ = std::make_unique<Session>(*first_, inputs_);
      b = search_all();
    }
    if (b.outcome == Bisection::kFound) {
      *reported = true;
      *code = found(b);
      return {};
    }
    Json j =
        nothing(a_, row_, b, by_elements_ ? "chosen elements of its values are the stage's before" : in_words(judged_),
                code, &told_);
    j["module"] = r_.module_name;
    below(j, code);
    return j;
  }

 private:
  // Elided constants get values: what the user asked for, else the same ones in all stages.
  void settle(size_t k, Module& m) {
    if (!inputs_.fill_elided.empty()) return settle_elided(m, inputs_);
    if (!elided_) {
      LoadOptions options = load_options_;
      auto read = [this, options](size_t stage) {
        return load_verified(paths_[stage], !a_.no_verify, nullptr, options);
      };
      elided_ = std::make_unique<ElidedConstants>(paths_, read, inputs_);
    }
    elided_->settle(k, m);
    if (std::string told = elided_->told(); !told.empty()) told_["elided"] = told;
  }

  bool decided(const Bisection& b) const {
    const Json& e = told_["elements"];
    return b.outcome == Bisection::kFound || b.outcome == Bisection::kStopped ||
           (e["changed"] == e["compared"] && std::all_of(b.judged.begin(), b.judged.end(), [](const auto& j) {
              return j.second.verdict == Verdict::kGood;
            }));
  }

  Bisection look_at_elements() {
    Progress progress("bisecting " + a_.file);
    ElementsOptions o;
    o.seed = a_.seed, o.stop = interrupted;
    const ElementsSearch s = search_by_elements(row_, *first_, o, search_options(progress, true));
    add_elements(told_, row_, s, o);
    if (s.found.outcome == Bisection::kFound) elements_finding_ = s.stages.at(s.found.bad).findings.at(0);
    return s.found;
  }

  Bisection search_all() {
    Progress progress("bisecting " + a_.file);
    BisectOptions options = search_options(progress, !a_.quick);
    bool inside = a_.looks_inside();
    if (inside && bytes_inside(*first_) > available_memory().bytes / 2) {
      told_["no_values"] = fmt::format("they take more than {} in f64", human_bytes(bytes_inside(*first_)));
      inside = false;
      check_supported(*first_);
    }
    if (inside) {
      Bisection b = look_inside(options);
      if (b.outcome != Bisection::kAllGood || last_agrees(b)) return b;
      // Inside, in f64, all is the same: what differs in the types that the stages have is rounding gone wrong.
      inside_.reset();
      options.every = false;
      return own_types(options);
    }
    Judge judge = make_judge(judged_, *first_, session_.get());
    std::map<size_t, Judgement> known;
    if (a_.by_running()) known[0] = {Verdict::kGood, "the stage that the others are held against"};
    return search(row_, judge, memory_, options, std::move(known));
  }

  // In the types that the stages have, where all is the same in f64: the first stage that differs, unless it does so by
  // rounding through a discontinuity alone; the stages behind it are held against that one then.
  Bisection own_types(const BisectOptions& options) {
    Bisection all;
    std::vector<std::unique_ptr<Module>> bases;  // that stages are held against, the last one now
    for (size_t from = 0;;) {
      JudgeOptions how = judged_;
      how.behind_edge = from > 0;
      Judge judge = make_judge(how, bases.empty() ? *first_ : *bases.back(), session_.get());
      Bisection b;
      if (from == 0) {
        b = search(row_, judge, memory_, options,
                   {{0, {Verdict::kGood, "the stage that the others are held against"}}});
        all = b;
      } else {
        JudgementFile none("", "");  // by another stage than the first
        b = search(from_stage(from), judge, none, options, {{0, all.judged.at(from)}});
        for (const auto& [k, j] : b.judged) all.judged[from + k] = j;
        all.outcome = b.outcome == Bisection::kUnknown ? Bisection::kAllGood : b.outcome, all.good = from + b.good,
        all.bad = from + b.bad;
        all.bad_ones.clear();
        for (size_t k : b.bad_ones) all.bad_ones.push_back(from + k);
      }
      if (b.outcome != Bisection::kFound || a_.backend != "evaluator" || all.bad != all.good + 1) return all;
      std::unique_ptr<Module> good = row_.load(all.good), bad = row_.load(all.bad);
      const std::string edges = in_words(rounding_at_edges(*good, *bad, *session_, eval_options(a_), a_.tolerance));
      if (edges.empty()) return all;
      told_["rounding"].push_back(fmt::format("{}: {}", row_.labels[all.bad], edges));
      // Those that were held against a stage in front of it have been judged by its edge, too.
      std::erase_if(all.judged, [&](const auto& j) { return j.first > all.bad; });
      all.judged[all.bad] = {Verdict::kGood, "rounding at a discontinuity: " + edges};
      from = all.bad, bases.push_back(std::move(bad));
      if (from + 1 == row_.labels.size()) {
        all.outcome = Bisection::kAllGood, all.bad_ones.clear();
        return all;
      }
    }
  }

  Candidates from_stage(size_t from) const {
    Candidates out;
    out.labels.assign(row_.labels.begin() + static_cast<std::ptrdiff_t>(from), row_.labels.end());
    out.keys.assign(row_.keys.begin() + static_cast<std::ptrdiff_t>(from), row_.keys.end());
    out.load = [this, from](size_t k) { return row_.load(from + k); };
    out.same = [this, from](size_t k) { return k > 0 && row_.same(from + k); };
    return out;
  }

  // A session on other arguments, kept.
  const Session* with_arguments(std::vector<Value> arguments) {
    others_.push_back(std::make_unique<Session>(*session_));
    others_.back()->set_arguments(std::move(arguments));
    return others_.back().get();
  }

  // The same seed in other magnitudes: positive, near 1, both.
  const Session* other_inputs(int attempt) {
    bool own = !a_.inputs.empty() || attempt > 3;
    if (own) return nullptr;
    return with_arguments(scaled_arguments(*first_, session_->arguments(), attempt == 1 ? 1 : 8, attempt != 2));
  }

  std::string inputs_in_words() const {
    std::string out = a_.inputs.empty() ? fmt::format("seed {}", a_.seed) : a_.inputs;
    const char* how[] = {"", ", positive", ", near 1", ", positive and near 1"};
    return out + how[inside_->attempt];
  }

  Bisection look_inside(const BisectOptions& options) {
    InsideOptions o;
    o.eval = eval_options(a_), o.stop = options.stop, o.judged = options.judged;
    o.eval.stop = interrupted;
    o.others = [this](int attempt) { return other_inputs(attempt); };
    // What sorts and indexes is looked at a second time, with ties and with indices at and beyond the bounds.
    if (a_.inputs.empty() && has_edges(*first_) && bytes_inside(*first_) <= kLargestSecondLook)
      o.second = with_arguments(edge_arguments(*first_, session_->arguments()));
    inside_ = std::make_unique<InsideSearch>(search_inside(row_, *first_, *session_, o));
    add_inside(told_, row_, *inside_, inputs_in_words());
    std::unique_ptr<InsideSearch> second = std::move(inside_->second);
    if (inside_->found.outcome != Bisection::kAllGood) return inside_->found;
    if (second) {
      told_["inputs"]["made"] = inputs_in_words() + "; ties and indices at and beyond the bounds";
      if (second->found.outcome == Bisection::kFound) {
        inside_ = std::move(second);
        add_inside(told_, row_, *inside_, "ties and indices at and beyond the bounds");
        return inside_->found;
      }
    }
    return reach_further(o);
  }

  // Nothing is found: inputs that reach bounds, as long as that is quick. Where they make values that are no numbers,
  // rewrites that hold for numbers alone differ, and such inputs are left out.
  Bisection reach_further(InsideOptions o) {
    if (!a_.inputs.empty() || bytes_inside(*first_) > kLargestReach) return inside_->found;
    const auto begin = std::chrono::steady_clock::now();
    o.second = nullptr, o.others = nullptr, o.judged = nullptr;
    size_t asked = 0;
    for (uint64_t turn = 0; turn < kTurns && std::chrono::steady_clock::now() - begin < kReachTime; ++turn) {
      o.only = [this](const InputsTold& told) {
        return told.with_nan <= inside_->told.with_nan && told.infinite <= inside_->told.infinite;
      };
      // Layers upon layers may leave nothing of drawn numbers but zeros, or nothing but what limits and a softmax make
      // of large ones: first, larger ones, and such as keep their size.
      const bool scaled = turn == 0, balanced = turn == 1;
      const uint64_t seed = kReachingFrom + turn - 2;
      const Session* with = with_arguments(scaled     ? scaled_arguments(*first_, session_->arguments(), 8, true)
                                           : balanced ? balanced_arguments(*first_, session_->arguments())
                                                      : seeded_arguments(*first_, seed, false));
      auto more = std::make_unique<InsideSearch>(search_inside(row_, *first_, *with, o));
      others_.pop_back();
      if (more->found.outcome == Bisection::kFound) {
        inside_ = std::move(more);
        add_inside(told_, row_, *inside_,
                   scaled     ? fmt::format("seed {}, positive and near 1", a_.seed)
                   : balanced ? fmt::format("seed {}, of a size that layers keep", a_.seed)
                              : fmt::format("seed {}", seed));
        return inside_->found;
      }
      asked += more->stages.size() > 1;
    }
    if (asked) {
      const std::string made = told_["inputs"]["made"];
      told_["inputs"]["made"] = fmt::format("{}; {} that reach bounds", made, asked);
    }
    return inside_->found;
  }

  // The last stage that can be run, in its own types, against what the first gives.
  bool last_agrees(Bisection& b) {
    for (size_t k = row_.labels.size(); k-- > 1;) {
      auto at = b.judged.find(k);
      if (at == b.judged.end() || at->second.verdict != Verdict::kGood) continue;
      try {
        std::unique_ptr<Module> last = row_.load(k);
        check_supported(*last);
        Judgement j;
        if (a_.backend == "evaluator" && inside_->outputs.shape.valid() && !inside_->attempt)
          j = in_own_types(*last, *session_, eval_options(a_), a_.tolerance, inside_->outputs);
        // The first stage in its own types is asked only where that is not near.
        if (j.verdict != Verdict::kGood) j = make_judge(judged_, *first_, session_.get())(*last);
        if (j.verdict == Verdict::kGood) at->second = j;
        return j.verdict != Verdict::kBad;
      } catch (const OracleFailure&) {
        throw;
      } catch (const Failure& e) {
        // Good by what it consists of; it cannot be run as a whole.
        if (interrupted() || e.kind() != FailureKind::kUnsupported) throw;
        return true;
      }
    }
    return true;
  }

  // A pipeline's begin changes nothing. One that begins inside of a pass shows what that one did so far: the row before
  // names it as the next.
  std::pair<std::string, std::string> pass_that_made(size_t k) const {
    const StageRow& bad = r_.rows[rows_[k]];
    const bool begins = bad.kind == StageRow::kPipelineStart || bad.pass == "pipeline-start";
    if (!begins || rows_[k] == 0) return {bad.pass, bad.pipeline};
    const StageRow& before = r_.rows[rows_[k] - 1];
    if (before.next.empty() || before.next == bad.pipeline || before.next == "pipeline-end")
      return {bad.pass, bad.pipeline};
    return {before.next, before.pipeline};
  }

  int found(const Bisection& b) {
    const StageRow& bad = r_.rows[rows_[b.bad]];
    Finding f;
    f.json = complete_bisection(Json::object());
    for (const auto& item : told_.items()) f.json[item.key()] = item.value();
    f.json["found"] = true, f.json["module"] = r_.module_name;
    f.json["good"] = row_.labels[b.good], f.json["bad"] = row_.labels[b.bad], f.json["bad_file"] = bad.file;
    f.json["why"] = b.judged.at(b.bad).detail;
    const auto [pass, pipeline] = pass_that_made(b.bad);
    f.json["pass"] = pass, f.json["pipeline"] = pipeline;
    std::string between;
    if (b.bad - b.good > 1)
      between = fmt::format(" or one of the {} stages before it that cannot be judged", b.bad - b.good - 1);
    f.guilty =
        bad.kind == StageRow::kPass || !pass.empty()
            ? fmt::format("guilty: pass {} of pipeline {}, stage {}{}", pass, pipeline, row_.labels[b.bad], between)
            : fmt::format("guilty: what leads to stage {}{}", row_.labels[b.bad], between);
    f.json["guilty"] = f.guilty;
    for (size_t k = 1; k < b.bad_ones.size(); ++k)
      f.json["other_bad"].push_back(row_.labels[b.bad_ones[k]] + ": " + b.judged.at(b.bad_ones[k]).detail);
    add_counts(f.json, row_, b, a_.by_running());
    f.good_text = read_file(paths_[b.good]), f.bad_text = read_file(paths_[b.bad]);
    try {
      load_options_.universe = first_->universe();
      auto good = row_.load(b.good);
      auto broken = load(paths_[b.bad], load_options_);
      if (a_.by_running()) settle(b.bad, *broken);
      auto inside = inside_ ? inside_->stages.find(b.bad) : std::map<size_t, InsideStage>::iterator();
      if (by_elements_)
        describe_elements(*good, *broken, elements_finding_, f);
      else if (inside_ && inside != inside_->stages.end() && !inside->second.findings.empty())
        describe_inside(*good, *broken, inside->second, f);
      else
        describe(a_, *good, *broken, session_.get(), f);
    } catch (const Failure& e) {
      f.json["no_values"] = e.what();
    }
    return report(a_, f);
  }

  // All stages agree: does the device?
  void below(Json& j, int* code) {
    bool ask = *code == kYes && a_.by_running() && session_ && (!a_.outputs.empty() || a_.backend != "evaluator");
    if (ask) {
      load_options_.universe = first_->universe();
      *code = below_hlo(a_, *row_.load(row_.labels.size() - 1), paths_.back(), *session_, j);
    }
    if (a_.json) return;
    tell(a_, j, *code);
    if (!ask) return;
    fmt::print("{}\n", j["device"].get<std::string>());
    if (*code != kNo) return;
    if (a_.backend != "evaluator") {
      fmt::print("kernel by kernel, on backend {}:\n", a_.backend);
      IsolateArgs kernels;
      static_cast<RunArgs&>(kernels) = a_;
      kernels.file = paths_.back();
      cmd_isolate(kernels);
    } else {
      fmt::print("next: hlo-replay isolate {} --backend=BACKEND, which runs every kernel alone\n", paths_.back());
    }
  }

  const BisectArgs& a_;
  const Recording& r_;
  JudgementFile& memory_;
  JudgeOptions judged_;
  LoadOptions load_options_;
  InputOptions inputs_;
  Candidates row_;
  std::vector<size_t> rows_;
  std::vector<std::string> paths_;
  std::unique_ptr<Module> first_;
  std::unique_ptr<Session> session_;
  std::vector<std::unique_ptr<Session>> others_;
  std::unique_ptr<InsideSearch> inside_;
  std::unique_ptr<ElidedConstants> elided_;
  bool by_elements_ = false;
  ElementsFinding elements_finding_;
  Json told_ = Json::object();
};

int bisect_folder(const BisectArgs& a) {
  std::vector<Recording> all = select_modules(a.file);
  // Judgements of all modules go into one file: its keys are file names.
  JudgementFile memory(a.resume, fmt::format("{}, seed {}{}", in_words(judge_options(a)), a.seed, a.inputs));
  int code = kYes;
  Json modules = Json::array();
  for (const Recording& r : all) {
    FolderBisection one(a, r, memory);
    if (one.stages() < 2) continue;
    if (!a.json && all.size() > 1) fmt::print("module {:04} {}:\n", r.module_number, r.module_name);
    int its_code = kYes;
    bool reported = false;
    try {
      Json j = one.run(&its_code, &reported);
      if (reported) return its_code;
      modules.push_back(j);
    } catch (const Failure& e) {
      // Other modules of the folder may do.
      if (all.size() == 1 || interrupted()) throw;
      Json j = complete_bisection(Json::object());
      j["module"] = r.module_name, j["verdict"] = e.what();
      modules.push_back(j);
      if (!a.json) fmt::print("not judged: {}\n", e.what());
      its_code = kBad;
    }
    code = std::max(code, its_code);
  }
  if (modules.empty()) fail(FailureKind::kUsage, "{} has no module with two stages or more", a.file);
  if (a.json) print_json(complete_bisection(modules.size() == 1 ? modules[0] : Json{{"modules", modules}}));
  return code;
}

// What bisect_pipeline() asks where it looks inside. All but `a` and `options` must outlive the search.
struct PipelineInside {
  const Module& first;
  const Session& session;
  const Judge &judge, &verify;
  JudgementFile& memory;
  std::unique_ptr<InsideSearch> found;
  Json told = Json::object();

  void ask(const BisectArgs& a, BisectOptions& options) {
    InsideOptions o;
    o.eval = eval_options(a), o.stop = options.stop, o.judged = options.judged;
    BisectOptions last = options;
    last.every = false;
    options.stages = [this, o, last, &a](const Candidates& row, std::map<size_t, Judgement> known) {
      Candidates verified = row;
      verified.load = [&](size_t k) {
        auto c = row.load(k);
        Judgement v = a.no_verify ? Judgement{Verdict::kGood, ""} : verify(*c);
        if (v.verdict == Verdict::kBad) fail(FailureKind::kInvalid, "{}", v.detail);
        return c;
      };
      found = std::make_unique<InsideSearch>(search_inside(verified, first, session, o));
      add_inside(told, row, *found, a.inputs.empty() ? fmt::format("seed {}", a.seed) : a.inputs);
      Bisection b = found->found;
      if (b.outcome != Bisection::kAllGood) return b;
      // In f64 all is the same; rounding may have gone wrong all the same.
      found.reset();
      Bisection own = search(row, judge, memory, last, std::move(known));
      if (own.outcome != Bisection::kAllGood) return own;
      for (auto& [k, j] : own.judged)
        if (k > 0) b.judged[k] = j;
      return b;
    };
    options.beside = [this, o, &a](const Module& good) -> Judge {
      if (!found) return judge;
      Judge in = inside_judge(good, session, o);
      return [this, in, &a](const Module& c) {
        Judgement v = a.no_verify ? Judgement{Verdict::kGood, ""} : verify(c);
        return v.verdict == Verdict::kBad ? v : in(c);
      };
    };
  }
  // Of the stages around the fault; false where nothing is found inside.
  bool describe(const BisectArgs& a, const Module& good, const Module& bad, Finding& f) {
    if (!found || verify(bad).verdict != Verdict::kGood) return false;
    Inside two(session, eval_options(a), bytes_to_keep(0));
    two.first(good);
    InsideStage s = two.next(bad);
    if (!s.findings.empty()) describe_inside(good, bad, s, f);
    return !s.findings.empty();
  }
};

// A module through our pipeline: its stages, then the rewrites of the pass.
int bisect_module(const BisectArgs& a) {
  Loaded loaded;
  auto m = load_verified(a.file, !a.no_verify, &loaded);
  const std::string pipeline = pipeline_for(a.pipeline, a.file, loaded.of_2019);
  InputOptions inputs = input_options(a);
  inputs.snapshot = loaded.arguments;
  auto first = m->clone();
  JudgeOptions judged = judge_options(a);
  std::unique_ptr<Session> session;
  if (a.by_running()) {
    settle_elided(*m, inputs);
    first = m->clone();
    check_supported(*first);
    session = std::make_unique<Session>(*first, inputs);
  }
  PipelineOptions passes;
  passes.verify = false;  // a module that does not verify is what may be looked for
  passes.stop = interrupted;
  passes.given = gpu_options_for(pipeline, a.file);
  passes.only = words(a.only), passes.disabled = words(a.disabled);
  for (const auto& set : {passes.only, passes.disabled})
    for (const std::string& name : set) pass_or_fail(name);
  Judge plain = make_judge(judged, *first, session.get());
  // Whatever the oracle, a stage that does not verify is not run.
  JudgeOptions verifier;
  verifier.verify = true;
  Judge verify = make_judge(verifier, *first, nullptr);
  Judge judge = [&](const Module& c) {
    if (a.by_running() && !a.no_verify)
      if (Judgement v = verify(c); v.verdict == Verdict::kBad) return v;
    return plain(c);
  };
  std::string words_of_judge = in_words(judged);
  JudgementFile memory(a.resume, fmt::format("{}, seed {}{}, pipeline {}", words_of_judge, a.seed, a.inputs, pipeline));
  std::unique_ptr<PipelineInside> inside;
  PipelineBisection p = [&] {
    Progress progress("bisecting " + a.file);
    BisectOptions options = search_options(progress, !a.quick);
    if (session && a.looks_inside() && bytes_inside(*first) <= available_memory().bytes / 2) {
      inside.reset(new PipelineInside{*first, *session, judge, verify, memory, nullptr});
      inside->ask(a, options);
    }
    return bisect_pipeline(*m, *find_pipeline(pipeline), passes, judge, a.by_running(), memory, options);
  }();
  const Bisection& b = p.stages;
  if (!p.broke.empty() && !a.json)
    fmt::print("the pipeline ends at stage {}: {}\n", p.candidates.labels.size(), p.broke);
  if (b.outcome != Bisection::kFound) {
    int code = kYes;
    Json j = nothing(a, p.candidates, b, words_of_judge, &code, inside ? &inside->told : nullptr);
    j["module"] = m->name();
    return tell(a, j, code);
  }
  Finding f;
  f.json = complete_bisection(Json::object());
  if (inside)
    for (const auto& item : inside->told.items()) f.json[item.key()] = item.value();
  f.json["found"] = true, f.json["module"] = m->name();
  f.json["good"] = p.candidates.labels[b.good], f.json["bad"] = p.candidates.labels[b.bad];
  f.json["why"] = b.judged.at(b.bad).detail;
  f.json["pass"] = p.event.pass, f.json["pipeline"] = p.event.pipeline;
  add_counts(f.json, p.candidates, b, a.by_running());
  for (size_t k = 1; k < b.bad_ones.size(); ++k)
    f.json["other_bad"].push_back(p.candidates.labels[b.bad_ones[k]] + ": " + b.judged.at(b.bad_ones[k]).detail);
  f.guilty = fmt::format("guilty: pass {} of pipeline {}", p.event.pass, p.event.pipeline);
  if (p.rewrite > 0) {
    f.json["rewrite"] = p.rewrite, f.json["rewrites"] = p.event.rewrites;
    f.json["judged_for_rewrite"] = p.rewrites.judged.size();
    f.json["rule"] = p.note.rule, f.json["instructions"] = p.note.names;
    f.guilty += fmt::format(", rule \"{}\" on {}, its rewrite {} of {}", p.note.rule, fmt::join(p.note.names, ", "),
                            p.rewrite, p.event.rewrites);
  }
  f.json["guilty"] = f.guilty;
  f.good_text = lossless_text(*p.good), f.bad_text = lossless_text(*p.bad);
  if (!inside || !inside->describe(a, *p.good, *p.bad, f)) describe(a, *p.good, *p.bad, session.get(), f);
  return report(a, f);
}

}  // namespace

int cmd_bisect(const BisectArgs& given) {
  BisectArgs a = given;
  const KeepsSpareArrays spares;  // from stage to stage
  if (a.file.empty() == a.program.empty()) fail(FailureKind::kUsage, "bisect takes a FILE, or --program");
  if (a.engine.installed() || a.over_compilations()) return bisect_installed(a);
  bool folder = names_modules(a.file);
  if (!a.outputs.empty()) {
    if (!folder || !a.by_running())
      fail(FailureKind::kUsage, "--outputs goes with a folder of stages that are judged by running them");
    read_npz(a.outputs);  // what cannot be read is told before the search
  }
  if (!a.program.empty()) return bisect_program(a);
  checked_executor(a);
  if (!a.out.empty() && !a.made)  // what cannot be written is told before the search
    a.made = std::make_shared<OutputFolder>(a.out, a.force, "bisect", read_by(a));
  return folder ? bisect_folder(a) : bisect_module(a);
}

}  // namespace hlo
