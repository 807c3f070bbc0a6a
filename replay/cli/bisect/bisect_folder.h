// bisect over the stages of a folder's module, as cmd_bisect.cc asks for it module by module.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "replay/cli/bisect/bisect_report.h"
#include "replay/cli/bisect/bisect_so_far.h"
#include "replay/cli/kept_arguments.h"
#include "replay/cli/smaller_words.h"
#include "replay/hunt/inside/search.h"
#include "replay/judge/arguments/elided.h"
#include "replay/judge/chosen/pair/by_elements.h"
#include "replay/os/progress.h"
#include "replay/record/files/run.h"

namespace hlo {

// One module of a folder.
class FolderBisection {
 public:
  FolderBisection(const BisectArgs& a, const Recording& r, JudgementFile& memory, SoFar& so_far);
  size_t stages() const { return all_.labels.size(); }
  // Its stages, for SoFar.
  std::vector<StageMade> made() const;
  // The answer; `code` is the exit code. Throws where the first stage cannot be run.
  Json run(int* code, bool* reported);

 private:
  // bisect_folder.cc; at smaller sizes bisect_smaller.cc, by running bisect_folder_runs.cc.
  size_t begin_part(size_t from);
  Bisection part();
  void tell_smaller(const SmallerPlan& plan);
  bool takes_long() const;  // to run all of row_
  bool run_smaller();
  void close_open(Bisection& b);
  // What small arrays accuse at full size: found where that shows it, too, refuted where all is the same there; else it
  // is a guess, told of at smaller sizes. False where it is refuted.
  bool confirm(Bisection& b);
  void add_part(Bisection& all, const Bisection& b, size_t from);
  std::unique_ptr<Module> smaller(std::unique_ptr<Module> m);
  ElidedConstants& constants();
  BisectOptions options_of(Progress& progress, bool every);
  void settle(size_t k, Module& m);
  bool fits();
  bool decided(const Bisection& b) const;
  Bisection look_at_elements();
  static Judgement held_against() { return {Verdict::kGood, "the stage that the others are compared with"}; }
  Bisection search_all();
  Bisection own_types(const BisectOptions& options);
  bool rounding_explains(const Bisection& b);
  bool same_in_own_types(const Module& good, const Module& bad, const InsideFinding& f) const;
  void tell_amplified(Bisection* all);
  const Session* with_arguments(std::vector<Value> arguments);
  const Session* other_inputs(int attempt);
  void take_kept();
  std::string inputs_in_words() const;
  Bisection look_inside(const BisectOptions& options);
  Bisection reach_further(InsideOptions o);
  bool last_agrees(Bisection& b);
  int found(const Bisection& b);
  void below(Json& j, int* code);

  const BisectArgs& a_;
  const Recording& r_;
  JudgementFile& memory_;
  SoFar& so_far_;
  JudgeOptions judged_;
  LoadOptions load_options_;
  InputOptions inputs_;
  KeptArguments own_;     // that the program had; none where inputs or a seed are named, or sizes are smaller
  Candidates all_, row_;  // all stages; those of the part at hand
  size_t from_ = 0;       // where it begins
  std::vector<size_t> rows_;
  std::vector<std::string> paths_;
  std::unique_ptr<Module> first_;
  std::unique_ptr<Session> session_;
  bool wide_agrees_ = false;               // in this part: all values are the same in f64
  std::map<size_t, Judgement> amplified_;  // stages that differ by rounding which the program makes large
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

}  // namespace hlo
