#include "replay/cli/bisect/bisect_so_far.h"

#include "replay/cli/bisect/bisect_report.h"

namespace hlo {
namespace {

using Lock = std::lock_guard<std::mutex>;

}  // namespace

std::string guilty_in_words(const StageMade& bad, size_t between) {
  std::string also;
  if (between == 1) also = " or the stage before it, which cannot be compared";
  if (between > 1) also = fmt::format(" or one of the {} stages before it that cannot be compared", between);
  return bad.pass.empty()
             ? fmt::format("guilty: what leads to stage {}{}", bad.label, also)
             : fmt::format("guilty: pass {} of pipeline {}, stage {}{}", bad.pass, bad.pipeline, bad.label, also);
}

std::string ended_in_words(const BisectArgs& a) {
  return time_is_up() ? fmt::format("after {} s", a.engine.limit_seconds) : "by a signal";
}

void add_verdicts(Json& j, const Candidates& row, const Bisection& b) {
  for (const auto& [k, v] : b.judged)
    j["verdicts"].push_back({{"stage", row.labels[k]}, {"verdict", word(v.verdict)}, {"why", v.detail}});
}

std::string stopped_in_words(const BisectArgs& a, const Candidates& row, const Bisection& b, const Json& j) {
  const auto judged = j["judged"].get<size_t>();
  if (!judged) return fmt::format("stopped {}, before a stage was compared", ended_in_words(a));
  size_t good = 0;
  for (const auto& [k, v] : b.judged) good += v.verdict == Verdict::kGood;
  std::string out = fmt::format("stopped {}; {} of {} stages compared so far, {} of them good", ended_in_words(a),
                                judged, row.labels.size(), good);
  if (!b.bad_ones.empty()) out += fmt::format("; bad: {}", row.labels[b.bad_ones[0]]);
  if (a.resume.empty() && j["elements"].is_null()) out += " (--resume=FILE keeps them)";
  return out;
}

SoFar::SoFar(const BisectArgs& a) : a_(a) {
  last_.emplace([this] { return say(); });
}

void SoFar::order(Json order) {
  const Lock lock(mutex_);
  order_ = std::move(order);
}

void SoFar::outcome(size_t row, const char* word) {
  const Lock lock(mutex_);
  if (row < order_.size()) order_[row]["outcome"] = word;
}

Json SoFar::order() const {
  const Lock lock(mutex_);
  return order_;
}

void SoFar::begin(size_t row, std::string module, std::vector<StageMade> stages) {
  const Lock lock(mutex_);
  at_hand_ = true, told_ = false;
  row_ = row, module_ = std::move(module), stages_ = std::move(stages);
  search_ = ElementsSearch();
}

void SoFar::judged(size_t stage, const Judgement& j) {
  const Lock lock(mutex_);
  auto [at, first] = search_.found.judged.emplace(stage, j);
  if (!first && j.verdict != Verdict::kUnknown) at->second = j;
}

void SoFar::judged(size_t stage, const ElementsStage& s) {
  const Lock lock(mutex_);
  Bisection& b = search_.found;
  if (s.verdict == Verdict::kBad && b.outcome != Bisection::kFound) {
    b.outcome = Bisection::kFound, b.bad = stage;
    b.good = search_.stages.empty() ? 0 : search_.stages.rbegin()->first;
  }
  search_.stages[stage] = s;
}

void SoFar::drop_bad() {
  const Lock lock(mutex_);
  std::erase_if(search_.found.judged, [](const auto& j) { return j.second.verdict == Verdict::kBad; });
  search_.found.outcome = Bisection::kUnknown;
}

void SoFar::told() {
  const Lock lock(mutex_);
  told_ = true;
}

Json SoFar::stopped(int* code) const {
  const Lock lock(mutex_);
  return stopped_unlocked(code);
}

Json SoFar::stopped_unlocked(int* code) const {
  Bisection b = search_.found;
  const bool found = b.outcome == Bisection::kFound;
  b.outcome = Bisection::kStopped;
  for (const auto& [k, j] : b.judged)
    if (j.verdict == Verdict::kBad) b.bad_ones.push_back(k);
  Candidates row;
  for (const StageMade& s : stages_) row.labels.push_back(s.label);
  Json told = Json::object();
  if (!search_.stages.empty()) {
    ElementsOptions options;
    options.seed = a_.seed, options.kept = kept_;
    add_elements(told, row, search_, options);
  }
  Json j = nothing(a_, row, b, "", code, &told);
  j["module"] = module_;
  if (!found) return j;
  *code = kNo;
  const StageMade& bad = stages_.at(b.bad);
  j["found"] = true, j["good"] = stages_.at(b.good).label, j["bad"] = bad.label, j["bad_file"] = bad.file;
  j["why"] = search_.stages.at(b.bad).why, j["guilty"] = guilty_in_words(bad, b.bad - b.good - 1);
  if (!bad.pass.empty()) j["pass"] = bad.pass, j["pipeline"] = bad.pipeline;
  return j;
}

void SoFar::kept(std::shared_ptr<const KeptLeaves> arguments) {
  const Lock lock(mutex_);
  kept_ = std::move(arguments);
}

void SoFar::add(Json module) {
  const Lock lock(mutex_);
  at_hand_ = false;
  modules_.push_back(std::move(module));
}

bool SoFar::any() const {
  const Lock lock(mutex_);
  return !modules_.empty();
}

Json SoFar::answer(bool ended) const {
  const Lock lock(mutex_);
  int code = kYes;
  return answer_unlocked(ended, &code);
}

Json SoFar::answer_unlocked(bool ended, int* code) const {
  Json modules = modules_, order = order_;
  if (at_hand_) {
    modules.push_back(stopped_unlocked(code));
    if (row_ < order.size()) order[row_]["outcome"] = "stopped";
  }
  Json out = modules.size() == 1 ? modules[0] : Json{{"modules", modules}};
  out["order"] = order;
  if (!ended) return complete_bisection(out);
  if (modules.size() != 1) out["verdict"] = rest_unlocked();
  out["stopped"] = ended_in_words(a_);
  return complete_bisection(out);
}

std::string SoFar::rest_in_words() const {
  const Lock lock(mutex_);
  return rest_unlocked();
}

std::string SoFar::rest_unlocked() const {
  if (order_.empty()) return fmt::format("stopped {}, before a module was read", ended_in_words(a_));
  size_t rest = 0;
  for (const Json& o : order_) rest += o["outcome"] == "not begun";
  return fmt::format("stopped {}; {} of {} modules not begun", ended_in_words(a_), rest, order_.size());
}

void SoFar::answering() { last_.reset(); }

int SoFar::say() {
  const Lock lock(mutex_);
  int code = kBad;
  const Json j = answer_unlocked(true, &code);
  if (a_.json) {
    print_json(j);
  } else {
    int ignored = kBad;
    if (at_hand_ && !told_) {
      const Json own = stopped_unlocked(&ignored);
      tell(a_, own, code);
      if (own["found"] == true) fmt::print("{}\n", own["guilty"].get<std::string>());
    }
    if (order_.size() > 1 || !at_hand_) fmt::print("{}\n", rest_unlocked());
  }
  std::fflush(stdout);
  return code;
}

std::pair<std::string, std::string> pass_that_made(const Recording& r, const std::vector<size_t>& rows, size_t k) {
  const StageRow& bad = r.rows[rows[k]];
  const bool begins = bad.kind == StageRow::kPipelineStart || bad.pass == "pipeline-start";
  if (!begins || rows[k] == 0) return {bad.pass, bad.pipeline};
  const StageRow& before = r.rows[rows[k] - 1];
  if (before.next.empty() || before.next == bad.pipeline || before.next == "pipeline-end")
    return {bad.pass, bad.pipeline};
  // A pipeline that begins within a pass of the one around it: that pass is written when it ends. Those in front of it
  // that wrote nothing changed nothing.
  for (size_t n = rows[k] + 1; n < r.rows.size(); ++n) {
    const StageRow& later = r.rows[n];
    if (later.pipeline != before.pipeline) continue;
    if (later.kind == StageRow::kPipelineStart || later.pass == "pipeline-start") break;
    return {later.pass, later.pipeline};
  }
  return {before.next, before.pipeline};
}

}  // namespace hlo
