#include "replay/compare/replayed_users.h"

#include <algorithm>

#include "passes/pipelines/pipelines.h"
#include "replay/compare/match.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/record/files/input.h"
#include "replay/record/files/run.h"
#include "replay/record/start/start_stage.h"
#include "replay/record/start/target.h"

namespace hlo {
namespace {

// XLA's pipelines as call sites are written: `nvptx post-layout_assignment part 2` or with underscores.
bool same_site(std::string a, std::string b) {
  std::replace(a.begin(), a.end(), ' ', '_');
  std::replace(b.begin(), b.end(), ' ', '_');
  return a == b;
}

bool is_run_of(const std::string& pipeline, const std::string& pass, const PassInfo& wanted, const std::string& site) {
  return find_pass(pass) == &wanted && same_site(pipeline, site);
}

// Up to where the pass is about to run for the `runs`-th time, from 0. False where the pipeline does not get there.
bool replay_up_to(Module& m, const PassInfo& pass, const std::string& site, size_t runs, const Recording& r) {
  PipelineCursor cursor(*find_pipeline("xla-gpu"), {});
  PipelineOptions options;
  options.verify = options.keep_notes = false;
  options.recording = r.folder;
  if (std::optional<NamedGpu> gpu = gpu_of(r)) options.given = std::move(gpu->options);
  options.stop = interrupted;
  size_t seen = 0, done = 0;
  Progress progress("replaying what came before the stage");
  options.observe = [&](const Module&, const PassEvent& e) {
    if (e.kind != PassEvent::kPass) return;
    progress.at(++done, 0, e.pass);
    seen += is_run_of(e.pipeline, e.pass, pass, site);
  };
  std::string pipeline;
  while (const Step* next = cursor.upcoming(&pipeline)) {
    if (seen == runs && is_run_of(pipeline, next->name, pass, site)) return true;
    if (interrupted() || !cursor.advance(m, options)) return false;
  }
  return false;
}

}  // namespace

std::string ReplayedUsers::in_words() const {
  if (!why_not.empty()) return fmt::format("the order of users is that of the file: {}", why_not);
  return fmt::format("the order of users is that of a replay from {}: of {} arrays with several users {}", from, arrays,
                     ordered == arrays ? "all" : std::to_string(ordered));
}

namespace {

ReplayedUsers order_as_replayed(Module& m, const std::string& spec, const PassInfo& pass, const std::string& site) {
  ReplayedUsers out;
  const std::optional<StageChoice> stage = stage_of(spec);
  if (!stage || stage->module.source != "xla") {
    out.why_not = "it is no stage of a folder that XLA dumped";
    return out;
  }
  const Recording& r = stage->module;
  size_t runs = 0;
  for (size_t k = 0; k <= stage->row; ++k) runs += is_run_of(r.rows[k].pipeline, r.rows[k].pass, pass, site);
  const StartStage start = start_stage(r);
  out.from = start.name;
  auto replayed = load(start.spec, {.universe = m.universe()});
  if (!replay_up_to(*replayed, pass, site, runs, r)) {
    out.why_not = fmt::format("pipeline xla-gpu does not run {} in {} that often", pass.name, site);
    return out;
  }
  const Matching match(m, *replayed);
  std::vector<InstId> order;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i) || m.user_count(i) < 2) continue;
      ++out.arrays;
      const InstId other = match.second(i);
      if (!other.valid()) continue;
      order.clear();
      for (InstId user : replayed->users(other)) order.push_back(match.first(user));
      out.ordered += m.order_users(i, order);
    }
  return out;
}

}  // namespace

ReplayedUsers order_users_by_replay(Module& m, const std::string& spec, const PassInfo& pass, const std::string& site) {
  try {
    return order_as_replayed(m, spec, pass, site);
  } catch (const Failure& f) {
    ReplayedUsers out;
    const std::string why = f.what();
    out.why_not = "the replay of the stages before failed: " + why.substr(0, why.find('\n'));
    return out;
  }
}

}  // namespace hlo
