// What the page does to modules: edit, run passes.
#include <algorithm>

#include "ir/base/check.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/pipelines/pipelines.h"
#include "replay/os/terminal.h"
#include "replay/record/match/match.h"
#include "replay/record/start/wanted_passes.h"
#include "viewer/engine/read_modules.h"
#include "viewer/engine/session.h"

namespace hlo {

namespace {

// --- what there is ---

// Passes in the order in which a pipeline has them, rounds not repeated.
struct Placed {
  std::string pipeline;
  const Step* step;
};
void place(const std::vector<Step>& steps, const std::string& pipeline, std::vector<Placed>& out) {
  for (const Step& s : steps) {
    if (s.children.empty())
      out.push_back({pipeline, &s});
    else
      place(s.children, s.name, out);
  }
}

Json q_passes(PageSession&, const Question& q) {
  q.only({});
  std::map<const PassInfo*, size_t> order;
  Json pipelines = Json::array();
  for (const std::string& name : pipeline_names()) {
    std::vector<Placed> list;
    place(*find_pipeline(name), name, list);
    Json rows = Json::array();
    for (const Placed& p : list) {
      rows.push_back({{"pipeline", p.pipeline}, {"pass", p.step->name}});
      if (const PassInfo* info = find_pass(p.step->name)) order.try_emplace(info, order.size());
    }
    pipelines.push_back({{"name", name}, {"rows", std::move(rows)}});
  }
  Json passes = Json::array();
  for (const PassInfo& p : all_passes()) {
    Json options = Json::array();
    for (const PassOption& o : options_of(p)) {
      static constexpr const char* kHelp[] = {"true or false", "a number", "a word"};
      options.push_back({{"name", o.name}, {"default", o.absent}, {"help", kHelp[o.type]}});
    }
    auto placed = order.find(&p);
    passes.push_back({{"name", p.name},
                      {"pipeline_order", placed == order.end() ? -1 : static_cast<int64_t>(placed->second)},
                      {"implemented", p.run != nullptr},
                      {"atomic", p.atomic},
                      {"options", std::move(options)},
                      {"help", p.summary}});
  }
  return {{"passes", std::move(passes)}, {"pipelines", std::move(pipelines)}};
}

// --- edit ---

// Who edits a text keeps the names of what stays.
StageMatch match_by_name(const Module& before, const Module& after) {
  StageMatch out;
  out.same.resize(after.inst_slots()), out.same_computation.resize(after.comp_slots());
  out.undecided.assign(before.inst_slots(), true);
  std::unordered_map<StrId, CompId> computations;
  std::unordered_map<StrId, InstId> instructions;
  for (CompId c : before.computations()) {
    computations.emplace(before.comp(c).name, c);
    for (InstId i : before.live_order(c)) instructions.emplace(before[i].name, i);
  }
  for (CompId c : after.computations()) {
    auto was = computations.find(after.comp(c).name);
    if (was != computations.end()) {
      out.same_computation[c.value] = was->second;
      computations.erase(was);
    }
    for (InstId i : after.live_order(c)) {
      auto found = instructions.find(after[i].name);
      if (found == instructions.end()) continue;
      out.same[i.value] = found->second, out.undecided[found->second.value] = false;
      instructions.erase(found);  // names may stand twice
    }
  }
  return out;
}

Json q_edit(PageSession& session, const Question& q) {
  q.only({"text", "name", "at"});
  const std::string text = q.text("text"), name = printable(q.text_or("name", ""));
  const std::optional<StateRef> at = q.state_if("at");
  if (!at) {
    auto modules = read_modules("text", text);
    if (modules.size() != 1) fail(FailureKind::kUsage, "the text holds {} modules, not one", modules.size());
    check_verifies(*modules[0]);
    return {{"at", json_of(StateRef{session.add_bench(std::move(modules[0]), name, {}), 0})}};
  }
  // Of a state's text: what is the same in both keeps its number.
  std::unique_ptr<Module> before = session.copy_of(*at);
  ParseOptions parse;
  parse.file = "text";
  auto after = parse_module(text, before->universe(), parse);
  check_verifies(*after);
  StageMatch match = match_by_name(*before, *after);
  const size_t was = before->instruction_count();
  const uint32_t number = session.add_bench(std::move(before), name.empty() ? printable(after->name()) : name, at);
  PageModule& bench = session.module(number);
  Lineage& lineage = session.lineage(bench);
  StageRow row;
  row.kind = StageRow::kPass, row.pipeline = "bench", row.pass = "edit", row.changed = true;
  const size_t state = lineage.add(*after, match);
  StageDiff d = lineage.changes(state);
  row.stage = static_cast<int>(state), row.before = was, row.after = lineage.stage(state).instruction_count();
  row.added = d.added.size(), row.removed = d.removed.size(), row.modified = d.modified.size();
  bench.recording.rows.push_back(std::move(row));
  return {{"at", json_of(StateRef{number, static_cast<uint32_t>(state)})}};
}

// --- run ---

// `pass.option` or `option`, the latter for all passes that have it.
class GivenOptions {
 public:
  explicit GivenOptions(std::map<std::string, std::string> given) : given_(std::move(given)) {}
  std::map<std::string, std::string> of(const PassInfo& pass) {
    std::map<std::string, std::string> out;
    for (const auto& [key, value] : given_) {
      std::string name = key;
      if (size_t dot = key.rfind('.'); dot != std::string::npos) {
        if (&pass_or_fail(key.substr(0, dot)) != &pass) continue;
        name = key.substr(dot + 1);
      } else {
        auto has = options_of(pass);
        if (std::none_of(has.begin(), has.end(), [&](const PassOption& o) { return o.name == name; })) continue;
      }
      out[name] = checked_option(pass, name, value);
      used_.insert(key);
    }
    return out;
  }
  void check_used() const {
    for (const auto& [key, value] : given_)
      if (!used_.contains(key))
        fail(FailureKind::kUsage, "none of the passes that are run has the option '{}'", printable(key));
  }

 private:
  std::map<std::string, std::string> given_;
  std::set<std::string> used_;
};

// Events of a run into a bench's rows and stages.
class BenchRun {
 public:
  BenchRun(PageSession& session, StateRef at) {
    PageModule& from = session.module(at.module);
    session.check_state(at);
    module_ = session.copy_of(at);
    check_verifies(*module_);
    // What is behind the last state of a bench goes on there; all else begins a new one. So does what was edited: its
    // stage was matched, and nothing can be frozen behind it.
    if (from.kind == PageModule::Kind::kBench && at.state + 1 == session.states(from) &&
        !session.lineage(from).imported(at.state)) {
      number_ = at.module;
    } else {
      auto copy = session.copy_of(at);
      number_ = session.add_bench(std::move(copy), from.recording.module_name, at);
      module_ = session.copy_of({number_, 0});
    }
    bench_ = &session.module(number_);
    lineage_ = &session.lineage(*bench_);
    module_->keep_heirs(true);
    first_row_ = bench_->recording.rows.size();
  }

  void observe(const PassEvent& e) {
    StageRow row = row_of(e);
    const size_t at = bench_->recording.rows.size();
    if (row.kind != StageRow::kPipelineStart && row.changed) {
      const size_t state = lineage_->add(*module_);
      StageDiff d = lineage_->changes(state);
      row.added = d.added.size(), row.removed = d.removed.size(), row.modified = d.modified.size();
    }
    row.stage = static_cast<int>(lineage_->size() - 1);
    if (!e.options.empty()) bench_->row_options[at] = e.options;
    bench_->recording.rows.push_back(std::move(row));
    bench_->decisions.reset();
  }

  Module& module() { return *module_; }
  Json result(const std::vector<std::string>& refused) const {
    Json rows = Json::array();
    for (size_t k = first_row_; k < bench_->recording.rows.size(); ++k)
      rows.push_back(row_json(bench_->recording.rows[k], k));
    return {{"at", json_of(StateRef{number_, static_cast<uint32_t>(lineage_->size() - 1)})},
            {"rows", std::move(rows)},
            {"refused", refused}};
  }

 private:
  std::unique_ptr<Module> module_;
  uint32_t number_ = 0;
  PageModule* bench_ = nullptr;
  Lineage* lineage_ = nullptr;
  size_t first_row_ = 0;
};

// Steps with the options that were given, in a tree of their own.
void set_options(std::vector<Step>& steps, GivenOptions& options) {
  for (Step& s : steps) {
    set_options(s.children, options);
    if (const PassInfo* info = s.children.empty() ? find_pass(s.name) : nullptr)
      for (auto& [key, value] : options.of(*info)) s.options[key] = value;
  }
}

std::vector<Step> wanted_steps(const Question& q) {
  const std::vector<std::string> passes = q.texts("passes");
  if (q.has("passes") == q.has("pipeline")) fail(FailureKind::kUsage, "run takes either passes or a pipeline");
  if (q.has("pipeline")) {
    const std::string name = q.text("pipeline");
    const std::vector<Step>* steps = find_pipeline(name);
    if (!steps)
      fail(FailureKind::kUsage, "there is no pipeline '{}', only {}", printable(name.substr(0, 40)),
           fmt::join(pipeline_names(), ", "));
    return *steps;
  }
  constexpr size_t kMostPasses = 1000;
  if (passes.empty() || passes.size() > kMostPasses)
    fail(FailureKind::kUsage, "passes must name 1 to {} passes", kMostPasses);
  Step bench;
  bench.name = "bench";
  for (const std::string& name : passes) bench.children.push_back({std::string(pass_or_fail(name).name), {}, {}});
  return {bench};
}

Json q_run(PageSession& session, const Question& q) {
  q.only({"at", "passes", "pipeline", "from", "off", "options", "fuel"});
  const StateRef at = q.state("at");
  session.check_state(at);
  std::vector<Step> steps = wanted_steps(q);
  GivenOptions given(q.words("options"));
  set_options(steps, given);
  given.check_used();
  PipelineOptions options;
  for (const std::string& name : q.texts("off")) {
    if (!find_pass(name)) pass_or_fail(name);
    options.disabled.insert(name);
  }
  std::map<std::string, int64_t> fuel;
  for (const auto& [name, rewrites] : q.numbers("fuel")) fuel[std::string(pass_or_fail(name).name)] = rewrites;
  PipelineCursor cursor(steps, fuel);
  const int64_t from = q.number_or("from", 0, static_cast<int64_t>(count_passes(steps)), 0);
  for (int64_t k = 0; k < from; ++k) cursor.skip();
  BenchRun run(session, at);
  std::vector<std::string> refused;
  options.observe = [&](const Module&, const PassEvent& e) { run.observe(e); };
  try {
    while (cursor.advance(run.module(), options)) {
    }
  } catch (const Failure& e) {
    // What ran before it stands.
    refused.emplace_back(e.what());
  }
  return run.result(refused);
}

}  // namespace

std::vector<NamedMethod> do_methods() { return {{"passes", q_passes}, {"edit", q_edit}, {"run", q_run}}; }

}  // namespace hlo
