// exec --all-stages.
#include "replay/cli/run/all_stages.h"

#include <algorithm>

#include "ir/eval/compare.h"
#include "parser/parser.h"
#include "replay/cli/comparison_words.h"
#include "replay/cli/json_output.h"
#include "replay/cli/kept_arguments.h"
#include "replay/judge/arguments/elided.h"
#include "replay/judge/arguments/memory.h"
#include "replay/judge/arguments/session.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/record/start/start_stage.h"

namespace hlo {
namespace {

class AllStages {
 public:
  explicit AllStages(const ExecArgs& a) : a_(a), inputs_(input_options(a)) {}
  int run() {
    for (const Recording& r : select_modules(a_.file)) module(r);
    if (a_.json)
      print_json({{"stages", list_},
                  {"elided", told_elided_.empty() ? Json() : Json(told_elided_)},
                  {"inputs_from", from_.empty() ? Json() : from_},
                  {"run", run_},
                  {"different", different_},
                  {"refused", refused_},
                  {"first_bad", first_bad_.empty() ? Json() : Json(first_bad_)}});
    else if (first_bad_.empty())
      fmt::print("all {} stages equal{}\n", run_,
                 by_operations_ ? fmt::format(", {} of them by operations (--whole: none)", by_operations_) : "");
    else
      fmt::print("{} of {} stages differ, {} refused; first: {}\n", different_, run_ + refused_, refused_, first_bad_);
    return different_ ? kNo : refused_ || !run_ ? kBad : kYes;
  }

 private:
  struct Told {
    std::string state, detail;
    Json difference;
    int64_t rounded = 0;  // operations that something else was taken for; 0: evaluated whole
  };
  struct Judged {
    const StageRow* row;
    size_t text;  // which of those that are not the one before, byte for byte
    Told told;
  };

  void module(const Recording& r) {
    recording_ = &r;
    load_options_.universe = std::make_shared<Universe>();
    results_.reset(), session_.reset(), first_.reset(), rounded_.reset();
    std::vector<Judged> judged;
    std::vector<std::string> texts;  // paths
    Progress progress("running the stages of " + a_.file);
    paths_.clear(), elided_.reset();
    for (const StageRow& row : r.rows)
      if (row.file.ends_with(".txt") || row.file.ends_with(".hlo")) paths_.push_back(confined_path(r.folder, row.file));
    for (const StageRow& row : r.rows) {
      progress.at(static_cast<size_t>(&row - r.rows.data()), r.rows.size(), row.file);
      if (!row.file.ends_with(".txt") && !row.file.ends_with(".hlo")) continue;
      std::string path = confined_path(r.folder, row.file);
      // More than half of a dump's stages are the one before: a pipeline's start is dumped, and nothing has run.
      if (judged.empty() || judged.back().told.state == "refused" || !same_files(texts.back(), path)) {
        texts.push_back(path);
        judged.push_back({&row, texts.size() - 1, stage(path, !a_.whole)});
      } else {
        judged.push_back({&row, texts.size() - 1, judged.back().told});
        if (judged.back().told.state == "first") judged.back().told.state = "equal";
      }
      if (!results_) break;  // nothing to hold the others against
      if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    }
    settle(judged, texts, progress);
    for (const Judged& j : judged) tell(r, *j.row, j.told);
  }

  // What was judged by operations says nothing of how rounding adds up: the last of these stages is evaluated whole,
  // and where that is different, so are all of them.
  void settle(std::vector<Judged>& judged, const std::vector<std::string>& texts, Progress& progress) {
    auto by_operations = [](const Judged& j) { return j.told.rounded > 0; };
    auto last = std::find_if(judged.rbegin(), judged.rend(), by_operations);
    if (last == judged.rend()) return;
    auto replace = [&](size_t text, const Told& told) {
      for (Judged& j : judged)
        if (j.text == text) j.told = told;
    };
    const size_t last_text = last->text;
    const Told whole = compared(*rounded_, false, true);
    replace(last_text, whole);
    if (whole.state == "equal") return;
    for (size_t k = 0; k < judged.size(); ++k) {
      progress.at(k, judged.size(), judged[k].row->file);
      if (interrupted()) fail(FailureKind::kUsage, "interrupted");
      if (by_operations(judged[k])) replace(judged[k].text, stage(texts[judged[k].text], false));
    }
  }

  // Elided constants: what the user asked for, else the same ones in all stages.
  void settle(const std::string& path, Module& m) {
    if (!inputs_.fill_elided.empty()) return settle_elided(m, inputs_);
    if (m.elided_constants().empty()) return;
    if (!elided_)
      elided_ = std::make_unique<ElidedConstants>(
          paths_, [this](size_t k) { return load_verified(paths_[k], !a_.no_verify, nullptr, load_options_); },
          inputs_);
    const auto k = static_cast<size_t>(std::find(paths_.begin(), paths_.end(), path) - paths_.begin());
    if (const auto& anew = elided_->anew(); !anew.empty() && anew[0].stage <= k)
      fail(FailureKind::kUnsupported, "{}", anew[0].why);
    elided_->settle(k, m);
    if (std::string told = elided_->told(); told != told_elided_) complain("note: " + (told_elided_ = told));
  }

  // `path`: as results of other stages name it.
  Told stage(const std::string& path, bool by_operations) {
    Told told;
    inputs_.label = inputs_.place = path;
    try {
      std::unique_ptr<Module> m = load_verified(path, !a_.no_verify, nullptr, load_options_);
      if (!a_.ignore_memory) foresee_memory(*m, path, a_.backend, false);
      settle(path, *m);
      check_supported(*m);
      if (results_) {
        session_->take_shardings(*m);
        told = compared(*m, by_operations);
        if (told.rounded) rounded_ = std::move(m);
        return told;
      }
      first_ = std::move(m);
      take_own();
      session_ = std::make_unique<Session>(*first_, inputs_);
      results_ =
          std::make_unique<ResultComparison>(*first_, *session_, a_.backend, eval_options(a_), a_.tolerance, true);
      told.state = "first";
    } catch (const Failure& e) {
      told.state = "refused", told.detail = e.what();
    }
    return told;
  }

  // The arguments that the program had, where they lie with the module.
  void take_own() {
    inputs_.file = a_.inputs, own_ = {};
    if (!takes_kept(a_)) return;
    own_ = own_arguments(*recording_, *first_, a_);
    if (own_.inputs.empty()) return;
    inputs_.file = own_.inputs;
    const std::string said = recording_->module_name + ": " + own_.in_words;
    from_.push_back(said);
    if (!a_.json) fmt::print("inputs of {}\n", said);
  }

  Told compared(const Module& m, bool by_operations, bool last = false) {
    Told told;
    try {
      const Comparison& c = by_operations ? results_->by_operations(m, &told.rounded) : results_->of(m, last);
      told.state = c.equal ? "equal" : "different";
      if (!c.equal) told.detail = verdict(c), told.difference = to_json(*c.first_difference());
    } catch (const Failure& e) {
      told.state = "refused", told.detail = e.what();
    }
    return told;
  }

  void tell(const Recording& r, const StageRow& row, const Told& told) {
    const bool refused = told.state == "refused";
    ++(refused ? refused_ : run_);
    if (told.state == "different") ++different_;
    if (told.rounded) ++by_operations_;
    if (first_bad_.empty() && (told.state == "different" || refused))
      first_bad_ = fmt::format("{} ({}): {}", row.name(), told.state, told.detail);
    Progress::clear();
    if (!a_.json) {
      std::string how = told.rounded ? fmt::format("  (by operations, {} rounded)", told.rounded) : "";
      fmt::print("{:<9} {}{}{}\n", told.state, row.file, how, told.detail.empty() ? "" : "\n          " + told.detail);
    }
    list_.push_back({{"module", r.module_name},
                     {"file", row.file},
                     {"stage", row.name()},
                     {"result", told.state},
                     {"judged", refused ? Json() : Json(told.rounded ? "by_operations" : "whole")},
                     {"rounded", told.rounded},
                     {"difference", told.difference},
                     {"detail", told.detail}});
  }

  const ExecArgs& a_;
  InputOptions inputs_;
  const Recording* recording_ = nullptr;  // at hand
  KeptArguments own_;                     // its own
  Json from_ = Json::array();             // whose inputs are the program's, in words
  LoadOptions load_options_;
  std::unique_ptr<Module> first_;
  std::vector<std::string> paths_;
  std::unique_ptr<ElidedConstants> elided_;
  std::string told_elided_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<ResultComparison> results_;
  Json list_ = Json::array();
  std::unique_ptr<Module> rounded_;  // the last one that was judged by operations
  size_t run_ = 0, different_ = 0, refused_ = 0, by_operations_ = 0;
  std::string first_bad_;
};

}  // namespace

int run_all_stages(const ExecArgs& a) { return AllStages(a).run(); }

}  // namespace hlo
