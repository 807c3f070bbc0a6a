// bisect: the pass, then the rewrite, that turns good into bad.
#include <algorithm>
#include <chrono>
#include <map>

#include "ir/base/hash.h"
#include "ir/base/memory.h"
#include "ir/buffer.h"
#include "ir/eval/compare.h"
#include "ir/eval/inputs.h"
#include "ir/eval/spare_arrays.h"
#include "ir/print.h"
#include "replay/cli/bisect_report.h"
#include "replay/cli/bisect_smaller.h"
#include "replay/cli/bisect_so_far.h"
#include "replay/cli/json_output.h"
#include "replay/cli/smaller_words.h"
#include "replay/judge/elided.h"
#include "replay/judge/inside/edges.h"
#include "replay/judge/inside/inputs.h"
#include "replay/judge/npz.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/like_modules.h"
#include "replay/record/run.h"

namespace hlo {
namespace {

// Modules larger than that are looked at with one set of inputs.
constexpr int64_t kLargestSecondLook = int64_t{64} << 20;

// Modules that are looked at with other inputs where nothing was found: how large, how many such inputs, how long.
constexpr int64_t kLargestReach = int64_t{64} << 20;
constexpr uint64_t kTurns = 8;
constexpr std::chrono::seconds kReachTime{10};

// Accusations by small arrays that full size does not bear out, after which the next one is told.
constexpr size_t kMostRefuted = 6;

// One module of a folder.
class FolderBisection {
 public:
  FolderBisection(const BisectArgs& a, const Recording& r, JudgementFile& memory, SoFar& so_far)
      : a_(a), r_(r), memory_(memory), so_far_(so_far), judged_(judge_options(a)) {
    judged_.stages = true;
    load_options_.universe = std::make_shared<Universe>();
    inputs_ = input_options(a);
    for (size_t k = 0; k < r.rows.size(); ++k) {
      const StageRow& s = r.rows[k];
      if (!s.file.ends_with(".txt") && !s.file.ends_with(".hlo")) continue;
      paths_.push_back(confined_path(r.folder, s.file));
      rows_.push_back(k);
      all_.labels.push_back(s.number > 0 ? fmt::format("{:04} {}", s.number, s.name()) : s.name());
      std::string text = a.resume.empty() ? std::string() : read_file(paths_.back());
      all_.keys.push_back(fmt::format("{} {:016x}", s.file, hash_bytes(text)));
    }
    if ((plan_ = plan_of_stages(a, paths_))) tell_smaller(*plan_);
    all_.load = [this](size_t k) {
      auto m = smaller(load_verified(paths_[k], !a_.no_verify && !a_.verify, nullptr, load_options_));
      inputs_.label = inputs_.place = paths_[k];
      if (a_.by_running()) settle(k, *m);
      return m;
    };
    // A pipeline's start is dumped, and nothing has run.
    all_.same = [this](size_t k) { return k > 0 && same_files(paths_[k - 1], paths_[k]); };
  }
  size_t stages() const { return all_.labels.size(); }
  // Its stages, for SoFar.
  std::vector<StageMade> made() const {
    std::vector<StageMade> out;
    for (size_t k = 0; k < stages(); ++k) {
      auto [pass, pipeline] = pass_that_made(r_, rows_, k);
      out.push_back({all_.labels[k], r_.rows[rows_[k]].file, std::move(pass), std::move(pipeline)});
    }
    return out;
  }

  // The answer; `code` is the exit code. Throws where the first stage cannot be run.
  Json run(int* code, bool* reported) {
    Bisection all;
    all.outcome = Bisection::kUnknown;
    for (size_t from = 0; from < stages();) {
      const size_t to = begin_part(from);
      Bisection b = to - from > 1 || stages() == 1 ? part() : Bisection();
      if (b.outcome == Bisection::kFound && elided_ && elided_->folds_made_up(from + b.good, from + b.bad)) {
        // Not this stage's fault; those in front of it are good.
        told_ = kept_;
        so_far_.drop_bad();
        continue;
      }
      if (b.outcome == Bisection::kFound && plan_ && told_["smaller"]["open"].is_null() && !confirm(b)) {
        // The stages behind it are held against it.
        told_ = kept_, cuts_.insert(from + b.bad);
        so_far_.drop_bad();
        continue;
      }
      add_part(all, b, from);
      if (all.outcome == Bisection::kFound) {
        told_["order"] = so_far_.order();
        if (interrupted()) told_["stopped"] = ended_in_words(a_);
        *reported = true;
        *code = found(all);
        return {};
      }
      if (all.outcome == Bisection::kStopped || all.outcome == Bisection::kFirstBad) break;
      from = to;
    }
    if (std::string told = elided_ ? elided_->told() : ""; !told.empty()) told_["elided"] = told;
    Json j = nothing(a_, all_, all,
                     by_elements_ ? "chosen elements of its values are the stage's before" : in_words(judged_), code,
                     &told_);
    j["module"] = r_.module_name;
    if (plan_) j["verdict"] = tested_in_words(*plan_) + j["verdict"].get<std::string>() + refuted_in_words(refuted_);
    if (!j["smaller"].is_null()) j["smaller"]["refuted"] = refuted_;
    below(j, code);
    return j;
  }

 private:
  // Stages that can be held against each other, from `from` on: row_; the number of the first behind them. Where
  // nothing tells what a constant is that made-up ones were folded into, a part ends.
  size_t begin_part(size_t from) {
    size_t to = stages();
    if (a_.by_running() && inputs_.fill_elided.empty())
      for (const ElidedConstants::Anew& anew : constants().anew())
        if (anew.stage > from) to = std::min(to, anew.stage);
    if (auto cut = cuts_.upper_bound(from); cut != cuts_.end()) to = std::min(to, *cut);
    from_ = from, kept_ = told_;
    row_ = stages_between(all_, from, to);
    session_.reset(), inside_.reset(), others_.clear(), elements_finding_.reset();
    first_ = row_.load(0);
    return to;
  }

  Bisection part() {
    by_elements_ = a_.looks_inside() && a_.backend == "evaluator" && (a_.elements || too_large_to_run(*first_));
    Bisection b;
    Json at_elements;  // where the stages are run after all
    if (by_elements_) {
      try {
        b = look_at_elements();
        close_open(b);
      } catch (const Failure&) {
        if (interrupted() || a_.elements || !run_smaller()) throw;
        by_elements_ = false;
      }
    }
    if (by_elements_ && !a_.elements && !decided(b) && bytes_inside(*first_) <= available_memory().bytes / 2) {
      by_elements_ = false, at_elements = told_["elements"], told_.erase("elements");
      complain("note: chosen elements do not decide every stage: they are run, which may take long");
    }
    if (!by_elements_) {
      if (a_.by_running() && !a_.looks_inside() && !fits()) check_supported(*first_);
      if (a_.by_running()) session_ = std::make_unique<Session>(*first_, inputs_);
      Bisection run;
      try {
        run = search_all();
      } catch (const Failure&) {
        if (!interrupted() || at_elements.is_null()) throw;
        run.outcome = Bisection::kStopped;
      }
      if (run.outcome == Bisection::kStopped && !at_elements.is_null())
        by_elements_ = true, told_["elements"] = at_elements, told_.erase("inside"), told_.erase("inputs"),
        told_["stopped"] = ended_in_words(a_);
      else
        b = std::move(run);
    }
    return b;
  }

  void tell_smaller(const SmallerPlan& plan) {
    told_["smaller"] = {{"sizes", sizes_json(plan)}, {"confirmed", false}, {"open", Json()},
                        {"stages", Json()},          {"values", Json()},   {"refuted", Json::array()}};
  }

  // All stages with small arrays, where no other way to judge them is left. False where that is none, either.
  bool run_smaller() {
    if (plan_ || !a_.inputs.empty() || !a_.outputs.empty() || !a_.resume.empty()) return false;
    if (!(plan_ = smaller_plan(a_, paths_))) return false;
    tell_smaller(*plan_), elided_.reset(), first_ = row_.load(0);
    return true;
  }

  // Stages that chosen elements leave open, by a smaller program: they are good there, or one is accused.
  void close_open(Bisection& b) {
    const bool found = b.outcome == Bisection::kFound || b.outcome == Bisection::kStopped;
    if (open_.empty() || found || a_.elements || a_.smaller || interrupted()) return;
    if (!(plan_ = smaller_plan(a_, paths_))) return;
    tell_smaller(*plan_);
    std::unique_ptr<ElidedConstants> whole = std::exchange(elided_, nullptr);
    size_t closed = 0, values = 0, done = 0;
    Progress progress("bisecting " + a_.file + " at smaller sizes");
    for (const auto& [k, open] : open_) {
      if (interrupted()) break;
      progress.at(done++, open_.size(), row_.labels[k]);
      AtSmallerSizes s;
      const std::optional<Judgement> asked = judgement_unless_stopped(
          [&, k = k, open = open] {
            s = judge_at_smaller_sizes(row_, open.before, k, inputs_, a_);
            return Judgement{s.verdict, s.why};
          },
          interrupted);
      if (!asked || asked->verdict == Verdict::kUnknown || (asked->verdict == Verdict::kBad && !s.search)) continue;
      if (asked->verdict == Verdict::kBad) {
        Bisection accused = b;
        accused.outcome = Bisection::kFound, accused.good = open.before, accused.bad = k, accused.bad_ones = {k};
        accused.judged[k] = *asked;
        inside_ = std::move(s.search);
        if (confirm(accused)) {
          b = std::move(accused);
          if (!plan_) elided_ = std::move(whole);
          return;
        }
        inside_.reset();
      }
      ++closed, values += open.values;
      b.judged[k] = {Verdict::kGood, "at smaller sizes"};
      so_far_.judged(from_ + k, b.judged[k]);
      b.outcome = Bisection::kAllGood;
    }
    told_["smaller"]["open"] = open_.size(), told_["smaller"]["stages"] = closed, told_["smaller"]["values"] = values;
    plan_.reset(), elided_ = std::move(whole);
  }

  // What small arrays accuse at full size: found where that shows it, too, refuted where all is the same there; else it
  // is a guess, told of at smaller sizes. False where it is refuted.
  bool confirm(Bisection& b) {
    const LoadOptions options{.universe = std::make_shared<Universe>()};
    auto whole = [&](size_t k) { return load_verified(paths_[from_ + k], !a_.no_verify, nullptr, options); };
    AtFullSize full;
    try {
      full = at_full_size(*whole(b.good), *whole(b.bad), a_.seed);
    } catch (const Failure&) {  // one does not verify, which small arrays have told
    }
    if (full.same && refuted_.size() < kMostRefuted) {
      refuted_.push_back(row_.labels[b.bad]);
      return false;
    }
    told_["smaller"]["confirmed"] = full.seen.has_value();
    if (full.seen) plan_.reset(), inside_.reset(), by_elements_ = true, elements_finding_ = std::move(full.seen);
    return true;
  }

  // What a part tells of all: its first stage is held against nothing unless it is the first of all.
  void add_part(Bisection& all, const Bisection& b, size_t from) {
    for (const auto& [k, j] : b.judged) all.judged[from + k] = j;
    if (cuts_.contains(from)) all.judged[from] = {Verdict::kGood, "at chosen elements, at full size"};
    if (from > 0 && elided_)
      for (const ElidedConstants::Anew& anew : elided_->anew())
        if (anew.stage == from) all.judged[from] = {Verdict::kUnknown, anew.why};
    for (size_t k : b.bad_ones) all.bad_ones.push_back(from + k);
    all.good = from + b.good, all.bad = from + b.bad;
    const bool says_nothing = b.outcome == Bisection::kUnknown && all.outcome == Bisection::kAllGood;
    if (!says_nothing) all.outcome = b.outcome;
    kept_.erase("smaller");  // one for all
    if (from > 0) add_told(kept_, told_), told_ = kept_;
  }

  std::unique_ptr<Module> smaller(std::unique_ptr<Module> m) {
    return plan_ ? with_sizes(*m, plan_->choice) : std::move(m);
  }
  ElidedConstants& constants() {
    if (!elided_) {
      LoadOptions options = load_options_;
      auto read = [this, options](size_t stage) {
        return smaller(load_verified(paths_[stage], !a_.no_verify, nullptr, options));
      };
      elided_ = std::make_unique<ElidedConstants>(paths_, read, inputs_);
    }
    return *elided_;
  }

  BisectOptions options_of(Progress& progress, bool every) {
    BisectOptions options = search_options(progress, every);
    options.judged = [this, told = options.judged](const std::string& label, const Judgement& j) {
      const auto at = std::find(row_.labels.begin(), row_.labels.end(), label);
      if (at != row_.labels.end()) so_far_.judged(from_ + static_cast<size_t>(at - row_.labels.begin()), j);
      told(label, j);
    };
    return options;
  }

  // Elided constants get values: what the user asked for, else the same ones in all stages.
  void settle(size_t k, Module& m) {
    if (!inputs_.fill_elided.empty()) return settle_elided(m, inputs_);
    constants().settle(k, m);
  }

  // Can the first stage be run, with small arrays if need be?
  bool fits() {
    try {
      check_supported(*first_);
      return true;
    } catch (const Failure&) {
      return run_smaller();
    }
  }

  // Of a stage that cannot be read running it would tell nothing either.
  bool decided(const Bisection& b) const {
    const Json& e = told_["elements"];
    const Json closed = told_.contains("smaller") ? told_["smaller"]["values"] : Json();
    const size_t compared = e["compared"].get<size_t>() + (closed.is_null() ? 0 : closed.get<size_t>());
    return b.outcome == Bisection::kFound || b.outcome == Bisection::kStopped ||
           (e["changed"].get<size_t>() == compared &&
            std::all_of(b.judged.begin(), b.judged.end(), [this](const auto& j) {
              return j.second.verdict == Verdict::kGood || unread_.contains(j.first);
            }));
  }

  Bisection look_at_elements() {
    Progress progress("bisecting " + a_.file);
    ElementsOptions o;
    o.seed = a_.seed, o.stop = interrupted;
    const ElementsSearch s =
        search_by_elements(row_, *first_, o, options_of(progress, true), [this](size_t k, const ElementsStage& stage) {
          so_far_.judged(from_ + k, stage);
          if (from_ + k == 0) so_far_.judged(0, held_against());
        });
    add_elements(told_, row_, s, o);
    unread_ = s.unread, open_.clear();
    size_t before = 0;
    for (const auto& [k, stage] : s.stages) {
      if (stage.verdict == Verdict::kUnknown || stage.compared < stage.changed)
        open_[k] = {before, stage.changed - stage.compared};
      before = k;
    }
    const auto bad = s.stages.find(s.found.bad);  // none where it does not verify
    if (s.found.outcome == Bisection::kFound && bad != s.stages.end()) elements_finding_ = bad->second.findings.at(0);
    return s.found;
  }

  static Judgement held_against() { return {Verdict::kGood, "the stage that the others are held against"}; }
  Bisection search_all() {
    Progress progress("bisecting " + a_.file);
    if (a_.by_running() && from_ == 0) so_far_.judged(0, held_against());
    BisectOptions options = options_of(progress, !a_.quick);
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
      inside_.reset(), options.every = false;
      return own_types(options);
    }
    Judge judge = make_judge(judged_, *first_, session_.get());
    std::map<size_t, Judgement> known;
    if (a_.by_running()) known[0] = held_against();
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
        b = search(row_, judge, memory_, options, {{0, held_against()}});
        all = b;
      } else {
        JudgementFile none("", "");  // by another stage than the first
        b = search(stages_between(row_, from, row_.labels.size()), judge, none, options, {{0, all.judged.at(from)}});
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
    for (uint64_t turn = 0; turn < kTurns && !interrupted() && std::chrono::steady_clock::now() - begin < kReachTime;
         ++turn) {
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
      if (more->found.outcome == Bisection::kStopped) inside_->found.outcome = Bisection::kStopped;
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

  int found(const Bisection& b) {
    const StageRow& bad = r_.rows[rows_[b.bad]];
    Finding f;
    f.json = complete_bisection(Json::object());
    if (std::string told = elided_ ? elided_->told() : ""; !told.empty()) told_["elided"] = told;
    for (const auto& item : told_.items()) f.json[item.key()] = item.value();
    f.json["found"] = true, f.json["module"] = r_.module_name;
    f.json["good"] = all_.labels[b.good], f.json["bad"] = all_.labels[b.bad], f.json["bad_file"] = bad.file;
    f.json["why"] = b.judged.at(b.bad).detail;
    const auto [pass, pipeline] = pass_that_made(r_, rows_, b.bad);
    f.json["pass"] = pass, f.json["pipeline"] = pipeline;
    f.guilty = guilty_in_words({all_.labels[b.bad], bad.file, pass, pipeline}, b.bad - b.good - 1);
    if (plan_) f.guilty += guessed_in_words(*plan_);
    if (!f.json["smaller"].is_null()) {
      f.json["smaller"]["refuted"] = refuted_;
      if (!plan_ && f.json["smaller"]["confirmed"]) f.guilty += confirmed_in_words(f.json["smaller"]["sizes"]);
    }
    f.json["guilty"] = f.guilty;
    for (size_t k = 1; k < b.bad_ones.size(); ++k)
      f.json["other_bad"].push_back(all_.labels[b.bad_ones[k]] + ": " + b.judged.at(b.bad_ones[k]).detail);
    add_counts(f.json, all_, b, a_.by_running());
    f.good_text = read_file(paths_[b.good]), f.bad_text = read_file(paths_[b.bad]);
    try {
      load_options_.universe = first_->universe();
      auto good = all_.load(b.good);
      auto broken = smaller(load(paths_[b.bad], load_options_));
      if (plan_) f.good_text = lossless_text(*good), f.bad_text = lossless_text(*broken);
      if (a_.by_running()) settle(b.bad, *broken);
      auto inside = inside_ ? inside_->stages.find(b.bad - from_) : std::map<size_t, InsideStage>::iterator();
      if (by_elements_ && elements_finding_)
        describe_elements(*good, *broken, *elements_finding_, f);
      else if (inside_ && inside != inside_->stages.end() && !inside->second.findings.empty())
        describe_inside(*good, *broken, inside->second, f);
      else
        describe(a_, *good, *broken, session_.get(), f);
    } catch (const Failure& e) {
      f.json["no_values"] = e.what();
    }
    so_far_.answering();
    return report(a_, f);
  }

  // All stages agree: does the device?
  void below(Json& j, int* code) {
    bool ask = *code == kYes && a_.by_running() && session_ && (!a_.outputs.empty() || a_.backend != "evaluator");
    if (ask) {
      load_options_.universe = first_->universe();
      *code = below_hlo(a_, *all_.load(stages() - 1), paths_.back(), *session_, j);
    }
    if (a_.json) return;
    so_far_.told();
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
  SoFar& so_far_;
  JudgeOptions judged_;
  LoadOptions load_options_;
  InputOptions inputs_;
  Candidates all_, row_;  // all stages; those of the part at hand
  size_t from_ = 0;       // where it begins
  std::vector<size_t> rows_;
  std::vector<std::string> paths_;
  std::unique_ptr<Module> first_;
  std::unique_ptr<Session> session_;
  std::vector<std::unique_ptr<Session>> others_;
  std::unique_ptr<InsideSearch> inside_;
  std::unique_ptr<ElidedConstants> elided_;
  std::optional<SmallerPlan> plan_;
  bool by_elements_ = false;
  std::optional<ElementsFinding> elements_finding_;
  std::set<size_t> cuts_;         // stages that begin a part, as small arrays do not tell them
  Json refuted_ = Json::array();  // their labels
  std::set<size_t> unread_;       // stages of the part at hand
  struct Open {
    size_t before, values;  // the stage that it is held against; what was not compared
  };
  std::map<size_t, Open> open_;                         // of them those that chosen elements leave open
  Json told_ = Json::object(), kept_ = Json::object();  // kept: of the parts before
};

// Those of a folder, the largest first, like ones once.
class RunBisection {
 public:
  explicit RunBisection(const BisectArgs& a)
      : a_(a),
        so_far_(a),
        all_(select_modules(a.file)),
        memory_(a.resume, fmt::format("{}, seed {}{}", in_words(judge_options(a)), a.seed, a.inputs)) {}

  int run() {
    ordered_ = all_.size() > 1 ? largest_first(all_) : std::vector<OrderedModule>{{0, 0, 0, std::nullopt}};
    if (all_.size() > 1) so_far_.order(order());
    for (size_t n = 0; n < ordered_.size() && !ended_; ++n)
      if (std::optional<int> code = one(n)) return *code;
    if (!so_far_.any()) fail(FailureKind::kUsage, "{} has no module with two stages or more", a_.file);
    const Json answer = so_far_.answer(ended_);
    so_far_.answering();
    if (a_.json) print_json(answer);
    if (ended_ && !a_.json && all_.size() > 1) fmt::print("{}\n", so_far_.rest_in_words());
    return ended_ ? kBad : code_;
  }

 private:
  Json order() const {
    Json out = Json::array();
    for (const OrderedModule& o : ordered_)
      out.push_back({{"number", all_[o.module].module_number},
                     {"module", all_[o.module].module_name},
                     {"instructions", o.instructions},
                     {"like", o.like ? Json(all_[*o.like].module_number) : Json()},
                     {"outcome", "not begun"}});
    return out;
  }

  // Of a module and those like it.
  void outcome(size_t n, const char* word) {
    for (size_t k = 0; k < ordered_.size(); ++k)
      if (k == n || ordered_[k].like == ordered_[n].module) so_far_.outcome(k, word);
  }

  // An exit code where the answer is given.
  std::optional<int> one(size_t n) {
    const Recording& r = all_[ordered_[n].module];
    if (ordered_[n].like) {
      if (!a_.json)
        fmt::print("module {:04} {}: as module {:04}, of which only names, ids and metadata differ\n", r.module_number,
                   r.module_name, all_[*ordered_[n].like].module_number);
      return std::nullopt;
    }
    FolderBisection module(a_, r, memory_, so_far_);
    if (module.stages() < 2) {
      outcome(n, "one stage");
      return std::nullopt;
    }
    if (!a_.json && all_.size() > 1) fmt::print("module {:04} {}:\n", r.module_number, r.module_name);
    int code = kYes;
    bool reported = false;
    outcome(n, "found");
    so_far_.begin(n, r.module_name, module.made());
    try {
      Json j = module.run(&code, &reported);
      if (reported) return code;
      ended_ = !j["stopped"].is_null();
      outcome(n, ended_ ? "stopped" : code == kYes ? "nothing found" : "not decided");
      so_far_.add(std::move(j));
    } catch (const Failure& e) {
      ended_ = interrupted();
      if (all_.size() == 1 && !ended_) throw;
      code = kBad;
      outcome(n, ended_ ? "stopped" : "not judged");
      if (ended_) {
        Json j = so_far_.stopped(&code);
        so_far_.told();
        if (!a_.json) tell(a_, j, code);
        so_far_.add(std::move(j));
      } else {  // other modules of the folder may do
        Json j = complete_bisection(Json::object());
        j["module"] = r.module_name, j["verdict"] = e.what();
        so_far_.add(std::move(j));
        if (!a_.json) fmt::print("not judged: {}\n", e.what());
      }
    }
    code_ = std::max(code_, code);
    ended_ |= interrupted() && n + 1 < ordered_.size();
    return std::nullopt;
  }

  const BisectArgs& a_;
  SoFar so_far_;
  std::vector<Recording> all_;
  // Judgements of all modules go into one file: its keys are file names.
  JudgementFile memory_;
  std::vector<OrderedModule> ordered_;
  int code_ = kYes;
  bool ended_ = false;
};

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
  if (a.smaller && (!folder || !a.resume.empty() || !a.outputs.empty() || !a.inputs.empty()))
    fail(FailureKind::kUsage, "--smaller goes with a folder of stages, without --resume, --outputs and --inputs");
  if (!folder) return bisect_module(a);
  std::optional<EndsAfter> limit;
  if (a.engine.limit_seconds > 0) limit.emplace(a.engine.limit_seconds);
  return RunBisection(a).run();
}

}  // namespace hlo
