#include "hlo/recording.h"

#include <filesystem>

#include "gpu_exec/executor.h"
#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "replay/hunt/bisect.h"
#include "replay/library/running.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/record/files/run.h"
#include "replay/record/recording/import.h"
#include "replay/record/recording/store.h"
#include "replay/record/start/target.h"
#include "replay/record/start/wanted_passes.h"
#include "replay/replayer/replayer.h"
#include "replay/report/overview/answers.h"
#include "replay/report/overview/summary.h"
#include "viewer/page_file.h"

namespace hlo::api {

// One module's.
struct RecordingBody {
  hlo::Recording r;
  std::string selector;
  // Of its modules. Its `u` is null until the lineage is there; its guard counts before that, too.
  std::shared_ptr<UniverseBody> universe = std::make_shared<UniverseBody>();
  std::shared_ptr<TemporaryFolder> temporary;  // that it lies in; null: in a folder of the user's
  std::atomic<bool> closed{false};
  bool counted = false;  // rows of a dump have their counts

  Lineage& lineage() {
    Lineage& out = r.lineage();
    if (!universe->u) universe->u = out.universe();
    return out;
  }
};
struct RunBody {
  std::string spec;
  std::vector<std::shared_ptr<RecordingBody>> modules;
};

namespace {

std::string json_text(const Json& j) { return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

// A call that is about one module's recording.
template <class Body>
auto about(const std::shared_ptr<RecordingBody>& body, Body&& answer) {
  return call([&] {
    const Working working(*body->universe);
    if (body->closed) fail(FailureKind::kUsage, "the recording is closed");
    return answer(*body);
  });
}

const std::shared_ptr<RecordingBody>& only(const RunBody& run) {
  if (run.modules.size() == 1) return run.modules[0];
  std::string names;
  for (const auto& m : run.modules) names += fmt::format("\n  {:<8} {}", m->selector, m->r.module_name);
  refuse(ErrorKind::usage, fmt::format("{} holds {} modules; modules() has each by itself, open(\"{}:MODULE\") one:{}",
                                       run.spec, run.modules.size(), run.spec, names));
}

// Rows of a dump know their stage and their counts once the lineage is there.
const StageRow& counted_row(RecordingBody& body, size_t index) {
  if (!body.counted) {
    body.counted = true;
    if (body.r.source != "hlo-replay" && body.r.pipeline != "graphs") {
      body.lineage();
      count_changes(&body.r);
    }
  }
  return body.r.rows.at(index);
}

size_t stage_number(RecordingBody& body, size_t index) {
  body.lineage();
  const int stage = body.r.rows.at(index).stage;
  if (stage < 0)
    fail(FailureKind::kIo, "stage {} cannot be read{}", body.r.rows[index].name(),
         body.r.problems.empty() ? "" : ": " + body.r.problems[0]);
  return static_cast<size_t>(stage);
}

std::unique_ptr<hlo::Module> module_at(RecordingBody& body, size_t index) {
  const size_t stage = stage_number(body, index);
  return body.lineage().module(stage);
}

size_t last_row(const RecordingBody& body) {
  const std::optional<size_t> row = final_row(body.r);
  if (!row) fail(FailureKind::kIo, "module {} has no stage with a text", body.r.module_name);
  return *row;
}

Json difference(const ModuleDiff& d) { return complete_difference(complete(diff_json(d), {{"verdict", in_words(d)}})); }

}  // namespace

Stage::Stage(std::shared_ptr<RecordingBody> body, size_t index) : body_(std::move(body)), index_(index) {}

std::string Stage::kind() const {
  return about(body_, [&](RecordingBody& b) { return std::string(b.r.rows.at(index_).kind_name()); });
}
#define HLO_STAGE_FIELD(type, method, expression)       \
  type Stage::method() const {                          \
    return about(body_, [&](RecordingBody& b) -> type { \
      const StageRow& row = b.r.rows.at(index_);        \
      return expression;                                \
    });                                                 \
  }
#define HLO_STAGE_COUNT(type, method, field)                                                     \
  type Stage::method() const {                                                                   \
    return about(body_, [&](RecordingBody& b) -> type { return counted_row(b, index_).field; }); \
  }
HLO_STAGE_FIELD(std::string, name, row.name())
HLO_STAGE_FIELD(std::string, pass, row.pass)
HLO_STAGE_FIELD(std::string, pipeline, row.pipeline)
HLO_STAGE_FIELD(int, number, row.number)
HLO_STAGE_FIELD(bool, changed, row.changed)
HLO_STAGE_FIELD(bool, implemented, row.implemented)
HLO_STAGE_FIELD(bool, disabled, row.disabled)
HLO_STAGE_FIELD(int64_t, microseconds, row.microseconds)
HLO_STAGE_FIELD(int64_t, rewrites, row.rewrites)
HLO_STAGE_FIELD(std::vector<PassNote>, notes, told_notes(row.notes))
HLO_STAGE_FIELD(std::string, file, row.file)
HLO_STAGE_COUNT(size_t, instructions_before, before)
HLO_STAGE_COUNT(size_t, instructions_after, after)
HLO_STAGE_COUNT(size_t, added, added)
HLO_STAGE_COUNT(size_t, removed, removed)
HLO_STAGE_COUNT(size_t, modified, modified)
#undef HLO_STAGE_FIELD
#undef HLO_STAGE_COUNT

Module Stage::module() const {
  return about(body_, [&](RecordingBody& b) {
    auto m = module_at(b, index_);
    return Access::adopt(b.universe, std::move(m));
  });
}
std::string Stage::text() const {
  return about(body_, [&](RecordingBody& b) { return lossless_text(*module_at(b, index_)); });
}

// --- recordings ---

Recording::Recording(std::shared_ptr<RunBody> body) : body_(std::move(body)) {}

Recording Access::recording(std::shared_ptr<RunBody> run) { return Recording(std::move(run)); }

Recording Recording::open(const std::string& spec) {
  return call([&] {
    const std::optional<Selector> selector = split_selector(spec);
    if (!selector) fail(FailureKind::kIo, "cannot open {}: there is no such folder", spec);
    Run run;
    run.folder = selector->folder;
    run.modules = select_modules(spec);
    auto out = std::make_shared<RunBody>();
    out->spec = spec;
    for (const hlo::Recording& r : run.modules) {
      auto one = std::make_shared<RecordingBody>();
      one->r = r, one->selector = module_selector(run, r);
      out->modules.push_back(std::move(one));
    }
    return Recording(std::move(out));
  });
}

std::vector<Recording> Recording::modules() const {
  std::vector<Recording> out;
  for (const auto& m : body_->modules) {
    auto one = std::make_shared<RunBody>();
    one->spec = body_->spec, one->modules = {m};
    out.push_back(Recording(std::move(one)));
  }
  return out;
}

#define HLO_RECORDING_FIELD(type, method, expression)                                 \
  type Recording::method() const {                                                    \
    return about(only(*body_), [&](RecordingBody& b) -> type { return expression; }); \
  }
HLO_RECORDING_FIELD(std::string, module_name, b.r.module_name)
HLO_RECORDING_FIELD(std::string, selector, b.selector)
HLO_RECORDING_FIELD(std::string, folder, b.r.folder)
HLO_RECORDING_FIELD(std::string, source, b.r.source)
HLO_RECORDING_FIELD(std::string, pipeline, b.r.pipeline)
HLO_RECORDING_FIELD(std::vector<std::string>, files, b.r.other_files)
HLO_RECORDING_FIELD(std::string, json, recording_json(b.r))
#undef HLO_RECORDING_FIELD

std::vector<std::string> Recording::problems() const {
  return about(only(*body_), [&](RecordingBody& b) {
    std::vector<std::string> out = b.r.problems;
    for (const std::string& file : b.r.missing) out.push_back("missing: " + file);
    return out;
  });
}
std::vector<Stage> Recording::stages() const {
  const auto& one = only(*body_);
  return about(one, [&](RecordingBody& b) {
    std::vector<Stage> out;
    for (size_t k = 0; k < b.r.rows.size(); ++k) out.push_back(Stage(one, k));
    return out;
  });
}
Stage Recording::stage(size_t index) const {
  const auto& one = only(*body_);
  return about(one, [&](RecordingBody& b) {
    if (index >= b.r.rows.size())
      fail(FailureKind::kUsage, "the recording has {} stages, there is no number {}", b.r.rows.size(), index);
    return Stage(one, index);
  });
}
Stage Recording::stage(std::string_view name) const {
  const auto& one = only(*body_);
  return about(one, [&](RecordingBody& b) { return Stage(one, select_row(b.r, std::string(name))); });
}

std::string Recording::explain_json(const std::string& instruction) const {
  return about(only(*body_), [&](RecordingBody& b) {
    Json j = history_json(history(b.r, instruction));
    j["time"] = Json();
    return json_text(j);
  });
}

std::string Recording::diff_json(size_t stage_a, size_t stage_b) const {
  return about(only(*body_), [&](RecordingBody& b) {
    for (size_t k : {stage_a, stage_b})
      if (k >= b.r.rows.size())
        fail(FailureKind::kUsage, "the recording has {} stages, there is no number {}", b.r.rows.size(), k);
    const size_t i = stage_number(b, stage_a), j = stage_number(b, stage_b);
    std::vector<Heir> heirs = b.lineage().heirs_between(std::min(i, j), std::max(i, j));
    if (j < i)
      for (Heir& h : heirs) std::swap(h.from, h.to);
    return json_text(difference(diff_modules(*b.lineage().module(i), *b.lineage().module(j), heirs)));
  });
}

std::string Recording::cost_json(const std::string& device) const {
  return about(only(*body_), [&](RecordingBody& b) {
    const size_t row = last_row(b);
    const auto m = module_at(b, row);
    const Target target = target_of(b.r, device);
    const DeviceSpec& spec = target.spec;
    const ModuleCost cost = module_cost(*m, spec);
    const Json one =
        hlo::cost_json({b.r.module_name, b.r.rows[row].name(), "", m.get()}, &cost, spec, {}, target.platform);
    Json out = one;
    out["modules"] = Json::array({one});
    return json_text(out);
  });
}

std::string Recording::memory_json(const std::string& by) const {
  return about(only(*body_), [&](RecordingBody& b) {
    if (by != "line" && by != "scope" && by != "value")
      fail(FailureKind::kUsage, "by is line, scope or value, not '{}'", by);
    const size_t row = last_row(b);
    const auto m = module_at(b, row);
    const MemoryReport report = memory_report(*m, &b.r);
    return json_text({{"file", body_->spec},
                      {"by", by},
                      {"modules", Json::array({hlo::memory_json({b.r.module_name, b.r.rows[row].name(), "", m.get()},
                                                                &report, by)})}});
  });
}

std::string Recording::summary_json(const std::string& by, const std::string& device) const {
  return about(only(*body_), [&](RecordingBody& b) {
    if (by != "line" && by != "scope" && by != "class")
      fail(FailureKind::kUsage, "by is line, scope or class, not '{}'", by);
    const auto m = module_at(b, last_row(b));
    const Target target = target_of(b.r, device);
    const DeviceSpec& spec = target.spec;
    std::optional<MemoryReport> memory;
    if (m->config().is_scheduled) memory = memory_report(*m, &b.r, &target);
    SummaryRows rows;
    const ModuleCost cost = module_cost(*m, spec);
    const ExpectedTime expected = expected_time(*m, cost, spec, target.platform);
    add_to_summary(*m, by, b.r.module_name, cost, memory ? &*memory : nullptr, &rows, {}, &expected);
    return json_text(hlo::summary_json(body_->spec, by, spec.name, sorted(rows), Json::array()));
  });
}

std::string Recording::view(const std::string& folder, bool force) const {
  return about(only(*body_), [&](RecordingBody& b) {
    OutputFolder out(folder, force, "library", {b.r.folder});
    out.write("index.html", recording_page(b.r, b.r.folder));
    check_ended();
    out.commit();
    return out.path() + "/index.html";
  });
}

namespace {

// Rows whose stages differ from the one before.
struct StageCandidates {
  Candidates row;
  std::vector<size_t> rows;
};
StageCandidates candidates_of(RecordingBody& b) {
  StageCandidates out;
  b.lineage();
  int last = -1;
  for (size_t k = 0; k < b.r.rows.size(); ++k) {
    const StageRow& row = b.r.rows[k];
    if (row.stage < 0 || row.stage == last) continue;
    last = row.stage;
    out.rows.push_back(k);
    out.row.labels.push_back(row.number > 0 ? fmt::format("{:04} {}", row.number, row.name()) : row.name());
    out.row.keys.push_back(out.row.labels.back());
  }
  if (out.rows.size() < 2) fail(FailureKind::kUsage, "bisect takes two stages or more, there are {}", out.rows.size());
  return out;
}

BisectResult told(RecordingBody& b, const StageCandidates& c, const Bisection& found) {
  BisectResult out;
  switch (found.outcome) {
    case Bisection::kFound:
      out.outcome = BisectResult::found;
      break;
    case Bisection::kAllGood:
      out.outcome = BisectResult::all_good;
      break;
    case Bisection::kFirstBad:
      out.outcome = BisectResult::first_bad;
      break;
    case Bisection::kUnknown:
    case Bisection::kStopped:
      out.outcome = BisectResult::unknown;
      break;
  }
  for (const auto& [k, j] : found.judged)
    out.judged.push_back({c.rows[k],
                          {j.verdict == hlo::Verdict::kGood  ? Verdict::good
                           : j.verdict == hlo::Verdict::kBad ? Verdict::bad
                                                             : Verdict::unknown,
                           j.detail}});
  if (found.outcome == Bisection::kFound) {
    out.good = c.rows[found.good], out.bad = c.rows[found.bad];
    out.pass = b.r.rows[*out.bad].pass;
    out.why = found.judged.at(found.bad).detail;
  } else if (found.outcome == Bisection::kFirstBad) {
    out.bad = c.rows[0];
    out.why = found.judged.at(0).detail;
  }
  return out;
}

hlo::BisectOptions search_options(const BisectOptions& o, hlo::Progress& progress) {
  hlo::BisectOptions out;
  out.every = o.every, out.stop = interrupted;
  out.judged = [&progress, done = size_t{0}](const std::string&, const hlo::Judgement&) mutable {
    progress.at(++done, 0);
  };
  return out;
}

}  // namespace

BisectResult Recording::bisect(const Oracle& oracle, const BisectOptions& options) const {
  return about(only(*body_), [&](RecordingBody& b) {
    if (!oracle) fail(FailureKind::kUsage, "bisect needs a callback");
    StageCandidates c = candidates_of(b);
    c.row.load = [&](size_t k) { return module_at(b, c.rows[k]); };
    std::exception_ptr thrown;
    const Judge judge = [&](const hlo::Module& m) {
      try {
        const Judgement j = oracle(shown(b.universe, m));
        hlo::Judgement out;
        out.verdict = j.verdict == Verdict::good  ? hlo::Verdict::kGood
                      : j.verdict == Verdict::bad ? hlo::Verdict::kBad
                                                  : hlo::Verdict::kUnknown;
        out.detail = j.detail;
        return out;
      } catch (...) {
        thrown = std::current_exception();
        throw OracleFailure(FailureKind::kUsage, "the callback threw");
      }
    };
    hlo::Progress progress("bisecting " + b.r.module_name);
    JudgementFile memory("", "");
    try {
      return told(b, c, search(c.row, judge, memory, search_options(options, progress)));
    } catch (const OracleFailure&) {
      if (thrown) throw Foreign{thrown};
      throw;
    }
  });
}

BisectResult Recording::bisect(const BisectOptions& options) const {
  return about(only(*body_), [&](RecordingBody& b) {
    StageCandidates c = candidates_of(b);
    const InputOptions inputs = input_options(options.run);
    c.row.load = [&](size_t k) {
      auto m = module_at(b, c.rows[k]);
      if (options.run.verify) check_verifies(*m);
      settle_elided(*m, inputs);
      return m;
    };
    JudgeOptions how;
    how.backend = executor_of(options.run).name, how.tolerance = options.tolerance;
    how.eval = eval_options(options.run, nullptr);
    const std::unique_ptr<hlo::Module> first = c.row.load(0);
    check_supported(*first);
    Session session(*first, inputs);
    take_shardings(&session, *first, c.rows.size(), c.row.load);
    hlo::Progress progress("bisecting " + b.r.module_name);
    JudgementFile memory("", "");
    std::map<size_t, hlo::Judgement> known;
    known[0] = {hlo::Verdict::kGood, "the stage that the others are compared with"};
    return told(
        b, c,
        search(c.row, make_judge(how, *first, &session), memory, search_options(options, progress), std::move(known)));
  });
}

void Recording::close() {
  for (const auto& m : body_->modules)
    call([&] {
      const Working working(*m->universe);
      m->closed = true;
      m->r = {};
      m->temporary.reset();
    });
}
bool Recording::closed() const {
  for (const auto& m : body_->modules)
    if (m->closed) return true;
  return false;
}

void Recording::save(const std::string& folder, bool force) const {
  about(only(*body_), [&](RecordingBody& b) {
    OutputFolder out(folder, force, "library", {b.r.folder});
    hlo::Recording kept = b.r;
    auto copy = [&](const std::string& name) { out.write(name, read_confined(b.r.folder, name)); };
    for (const StageRow& row : kept.rows)
      if (!row.file.empty()) copy(row.file);
    for (const std::string& name : kept.other_files) copy(name);
    bool missing = false;
    if (kept.source == "hlo-replay" && why_not_confined(b.r.folder, "index.html", &missing).empty()) copy("index.html");
    out.write("recording.json", recording_json(kept));
    if (kept.source == "hlo-replay") out.write(kStoreFile, store_bytes(kept, b.lineage()));
    out.commit();
  });
}

// --- replaying ---

namespace {

hlo::ReplayOptions replay_options(const ReplayOptions& o, bool of_2019) {
  hlo::ReplayOptions out;
  out.pipeline = o.pipeline.empty() ? default_pipeline(of_2019) : o.pipeline, out.formats = o.formats;
  pipeline_or_fail(out.pipeline);
  out.formats.insert("text");
  for (const std::string& f : out.formats)
    if (!known_format(f)) fail(FailureKind::kUsage, "no format is called '{}'", f);
  out.passes.only = o.only, out.passes.disabled = o.disabled;
  for (const auto* set : {&o.only, &o.disabled})
    for (const std::string& name : *set) pass_or_fail(name);
  for (const auto& [name, fuel] : o.fuel) out.passes.fuel[std::string(pass_or_fail(name).name)] = fuel;
  if (!o.from.empty()) pass_or_fail(o.from);
  out.passes.from = o.from, out.passes.verify = o.verify;
  out.stop_after = o.stop_after, out.lower = o.lower;
  if (!o.lower.empty()) {
    const ExecutorInfo* executor = find_executor(o.lower);
    if (!executor || o.lower == "evaluator")
      fail(FailureKind::kUsage, "lower is host, emulated or cuda, not '{}'", o.lower);
    if (std::string why = executor->unavailable(); !why.empty())
      fail(FailureKind::kUnsupported, "lower={}: {}", o.lower, why);
  }
  return out;
}

}  // namespace

Recording replay(const Module& module, const ReplayOptions& options) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    const Busy busy(body);
    hlo::ReplayOptions how = replay_options(options, body.of_2019);
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    if (options.verify) check_verifies(*body.m);
    if (std::string why = already_optimised(*body.m); !why.empty() && !options.force)
      fail(FailureKind::kUsage, "the module is already optimised: {}; `force` replays it all the same", why);
    auto one = std::make_shared<RecordingBody>();
    std::string folder = options.folder;
    if (folder.empty()) {
      one->temporary = std::make_shared<TemporaryFolder>();
      folder = one->temporary->path() + "/recording";
    }
    OutputFolder out(folder, options.force, "library");
    hlo::Progress progress("replaying " + body.m->name());
    how.progress = [&](size_t done, size_t all, const std::string&) { progress.at(done, all); };
    std::unique_ptr<hlo::Module> m = body.m->clone();
    one->r = hlo::replay(*m, how, out);
    if (how.formats.contains("page") || how.formats.contains("html")) write_recording_page(one->r, out);
    check_ended();
    out.commit();
    one->universe = body.universe, one->counted = true, one->selector = "1";
    auto run = std::make_shared<RunBody>();
    run->spec = folder;
    run->modules.push_back(std::move(one));
    return Access::recording(std::move(run));
  });
}

std::string diff_json(const Module& a, const Module& b) {
  return call([&] {
    const Module other = Access::body(a)->universe == Access::body(b)->universe ? b : b.copied_into(a.universe());
    const Working working(*Access::body(a)->universe);
    return json_text(difference(diff_modules(*Access::body(a)->m, *Access::body(other)->m)));
  });
}

std::string cost_json(const Module& module, const std::string& device) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    const DeviceSpec& spec = device.empty() ? default_device_spec() : device_spec(device);
    const ModuleCost cost = module_cost(*body.m, spec);
    const Json one = hlo::cost_json({body.m->name(), "", "", body.m.get()}, &cost, spec);
    Json out = one;
    out["modules"] = Json::array({one});
    return json_text(out);
  });
}

std::string memory_json(const Module& module, const std::string& by) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    if (by != "line" && by != "scope" && by != "value")
      fail(FailureKind::kUsage, "by is line, scope or value, not '{}'", by);
    const MemoryReport report = memory_report(*body.m, nullptr);
    return json_text(
        {{"file", body.m->name()},
         {"by", by},
         {"modules", Json::array({hlo::memory_json({body.m->name(), "", "", body.m.get()}, &report, by)})}});
  });
}

}  // namespace hlo::api
