#include "replay/cli/bisect/bisect_folder.h"

#include <algorithm>

#include "ir/base/hash.h"
#include "ir/base/memory.h"
#include "ir/print/print.h"
#include "replay/cli/json_output.h"
#include "replay/judge/values/inputs.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"

namespace hlo {

FolderBisection::FolderBisection(const BisectArgs& a, const Recording& r, JudgementFile& memory, SoFar& so_far)
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

std::vector<StageMade> FolderBisection::made() const {
  std::vector<StageMade> out;
  for (size_t k = 0; k < stages(); ++k) {
    auto [pass, pipeline] = pass_that_made(r_, rows_, k);
    out.push_back({all_.labels[k], r_.rows[rows_[k]].file, std::move(pass), std::move(pipeline)});
  }
  return out;
}

Json FolderBisection::run(int* code, bool* reported) {
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
    if (b.outcome == Bisection::kFound && rounding_explains(b)) {
      told_ = kept_, cuts_.insert(from + b.bad);
      so_far_.drop_bad();
      continue;
    }
    add_part(all, b, from);
    if (all.outcome == Bisection::kFound) {
      tell_amplified(&all);
      told_["order"] = so_far_.order();
      if (interrupted()) told_["stopped"] = ended_in_words(a_);
      *reported = true;
      *code = found(all);
      return {};
    }
    if (all.outcome == Bisection::kStopped || all.outcome == Bisection::kFirstBad) break;
    from = to;
  }
  tell_amplified(&all);
  if (std::string told = elided_ ? elided_->told() : ""; !told.empty()) told_["elided"] = told;
  Json j =
      nothing(a_, all_, all, by_elements_ ? "chosen elements of its values are the stage's before" : in_words(judged_),
              code, &told_);
  j["module"] = r_.module_name;
  if (plan_) j["verdict"] = tested_in_words(*plan_) + j["verdict"].get<std::string>() + refuted_in_words(refuted_);
  if (!j["smaller"].is_null()) j["smaller"]["refuted"] = refuted_;
  below(j, code);
  return j;
}

// Stages that can be held against each other, from `from` on: row_; the number of the first behind them. Where
// nothing tells what a constant is that made-up ones were folded into, a part ends.
size_t FolderBisection::begin_part(size_t from) {
  size_t to = stages();
  if (a_.by_running() && inputs_.fill_elided.empty())
    for (const ElidedConstants::Anew& anew : constants().anew())
      if (anew.stage > from) to = std::min(to, anew.stage);
  if (auto cut = cuts_.upper_bound(from); cut != cuts_.end()) to = std::min(to, *cut);
  from_ = from, kept_ = told_;
  row_ = stages_between(all_, from, to);
  session_.reset(), inside_.reset(), others_.clear(), elements_finding_.reset(), wide_agrees_ = false;
  first_ = row_.load(0);
  return to;
}

// The last stage tells how often loops go round where the first one does not yet.
bool FolderBisection::takes_long() const {
  const size_t count = row_.labels.size();
  if (too_large_to_run(*first_, count)) return true;
  if (count < 2) return false;
  try {
    return too_large_to_run(*row_.load(count - 1), count);
  } catch (const Failure&) {  // its own turn comes
    return false;
  }
}

Bisection FolderBisection::part() {
  by_elements_ = a_.looks_inside() && a_.backend == "evaluator" && (a_.elements || takes_long());
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
    if (a_.by_running()) {
      take_kept();
      session_ = std::make_unique<Session>(*first_, inputs_);
      take_shardings(session_.get(), *first_, row_.labels.size(), row_.load);
    }
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

// What a part tells of all: its first stage is held against nothing unless it is the first of all.
void FolderBisection::add_part(Bisection& all, const Bisection& b, size_t from) {
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

ElidedConstants& FolderBisection::constants() {
  if (!elided_) {
    LoadOptions options = load_options_;
    auto read = [this, options](size_t stage) {
      return smaller(load_verified(paths_[stage], !a_.no_verify, nullptr, options));
    };
    elided_ = std::make_unique<ElidedConstants>(paths_, read, inputs_);
  }
  return *elided_;
}

BisectOptions FolderBisection::options_of(Progress& progress, bool every) {
  BisectOptions options = search_options(progress, every);
  options.judged = [this, told = options.judged](const std::string& label, const Judgement& j) {
    const auto at = std::find(row_.labels.begin(), row_.labels.end(), label);
    if (at != row_.labels.end()) so_far_.judged(from_ + static_cast<size_t>(at - row_.labels.begin()), j);
    told(label, j);
  };
  return options;
}

// Elided constants get values: what the user asked for, else the same ones in all stages.
void FolderBisection::settle(size_t k, Module& m) {
  if (!inputs_.fill_elided.empty()) return settle_elided(m, inputs_);
  constants().settle(k, m);
}

// Can the first stage be run, with small arrays if need be?
bool FolderBisection::fits() {
  try {
    check_supported(*first_);
    return true;
  } catch (const Failure&) {
    return run_smaller();
  }
}

// Of a stage that cannot be read running it would tell nothing either.
bool FolderBisection::decided(const Bisection& b) const {
  const Json& e = told_["elements"];
  const Json closed = told_.contains("smaller") ? told_["smaller"]["values"] : Json();
  const size_t compared = e["compared"].get<size_t>() + (closed.is_null() ? 0 : closed.get<size_t>());
  return b.outcome == Bisection::kFound || b.outcome == Bisection::kStopped ||
         (e["changed"].get<size_t>() == compared &&
          std::all_of(b.judged.begin(), b.judged.end(), [this](const auto& j) {
            return j.second.verdict == Verdict::kGood || unread_.contains(j.first);
          }));
}

Bisection FolderBisection::look_at_elements() {
  ElementsOptions o;
  o.seed = a_.seed, o.stop = interrupted, o.kept = kept_leaves(r_, *first_, a_);
  so_far_.kept(o.kept);
  Progress progress("bisecting " + a_.file);
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

int FolderBisection::found(const Bisection& b) {
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
void FolderBisection::below(Json& j, int* code) {
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
    if (!own_.inputs.empty()) kernels.inputs = own_.inputs;
    cmd_isolate(kernels);
  } else {
    fmt::print("next: hlo-replay isolate {} --backend=BACKEND, which runs every kernel alone\n", paths_.back());
  }
}

}  // namespace hlo
