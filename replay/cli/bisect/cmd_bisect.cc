// bisect: the pass, then the rewrite, that turns good into bad.
#include <algorithm>
#include <chrono>
#include <map>

#include "ir/eval/spare_arrays.h"
#include "replay/cli/bisect/bisect_folder.h"
#include "replay/cli/bisect/bisect_report.h"
#include "replay/cli/bisect/bisect_so_far.h"
#include "replay/cli/json_output.h"
#include "replay/cli/kept_arguments.h"
#include "replay/cli/smaller_words.h"
#include "replay/judge/arguments/npz.h"
#include "replay/os/bounded.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/record/files/like_modules.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace {

// Those of a folder, the largest first, like ones once.
class RunBisection {
 public:
  explicit RunBisection(const BisectArgs& a)
      : a_(a),
        so_far_(a),
        all_(select_modules(a.file)),
        memory_(a.resume,
                fmt::format("{}, seed {}{}{}", in_words(judge_options(a)), a.seed, a.inputs,
                            takes_kept(a) && std::any_of(all_.begin(), all_.end(),
                                                         [](const Recording& r) { return keeps_arguments(r, ""); })
                                ? ", the program's arguments"
                                : "")) {}

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
        if (!a_.json) fmt::print("not compared: {}\n", e.what());
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
  if (a.memory_limit > 0) limit_memory(static_cast<int64_t>(a.memory_limit * (1 << 30)));
  if (a.engine.installed() || a.over_compilations()) return bisect_installed(a);
  bool folder = names_modules(a.file);
  if (!a.outputs.empty()) {
    if (!folder || !a.by_running())
      fail(FailureKind::kUsage, "--outputs needs a folder of stages that are compared by running them");
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
