// Recordings for the bindings of scripting languages.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "hlo/scripting.h"
#include "passes/pipelines.h"
#include "replay/bisect.h"
#include "replay/confined_path.h"
#include "replay/files.h"
#include "replay/interrupt.h"
#include "replay/library/access.h"
#include "replay/record/run.h"
#include "replay/replayer.h"
#include "replay/wanted_passes.h"

namespace hlo::api::scripting {

struct Recording::Body {
  hlo::Recording recording;
  std::string selector;
  std::shared_ptr<UniverseBody> universe;  // of its stages, once they have been read
  std::mutex one;                          // reading stages fills the recording in

  // Stages are read and matched; as long as it lives, the lock is held and the universe worked on.
  struct Held {
    explicit Held(Body& body) : lock(body.one, std::try_to_lock) {
      if (!lock) refuse(ErrorKind::usage, "another thread works with this recording: one at a time may");
      if (body.universe) working.emplace(*body.universe);
      lineage = &body.recording.lineage();
      if (body.universe) return;
      body.universe = std::make_shared<UniverseBody>();
      body.universe->u = lineage->universe();
      working.emplace(*body.universe);
    }
    std::unique_lock<std::mutex> lock;
    std::optional<Working> working;
    Lineage* lineage = nullptr;
  };
  size_t checked(size_t row) const {
    if (row >= recording.rows.size()) fail(FailureKind::kUsage, "there are {} stages, from 0", recording.rows.size());
    return row;
  }
  // The lineage's stage that holds behind the row.
  size_t stage(size_t row) const {
    for (size_t k = checked(row) + 1; k-- > 0;)
      if (recording.rows[k].stage >= 0) return static_cast<size_t>(recording.rows[k].stage);
    fail(FailureKind::kIo, "stage {} could not be read", recording.rows[row].name());
  }
};

std::vector<Recording> Recording::open(const std::string& folder) {
  return call([&] {
    Run run = open_run(folder);
    std::vector<Recording> out;
    for (hlo::Recording& r : run.modules) {
      auto body = std::make_shared<Body>();
      if (run.modules.size() > 1) body->selector = module_selector(run, r);
      body->recording = r;
      out.push_back(Recording(std::move(body)));
    }
    return out;
  });
}

Recording Recording::replay(const Module& module, const std::string& folder, const ReplayOptions& options,
                            const std::function<bool(size_t, size_t, const std::string&)>& progress) {
  return call([&] {
    if (!find_pipeline(options.pipeline))
      fail(FailureKind::kUsage, "unknown pipeline '{}'; there are {}", options.pipeline,
           fmt::join(pipeline_names(), ", "));
    hlo::ReplayOptions how;
    how.pipeline = options.pipeline, how.formats = options.formats;
    for (const std::string& f : how.formats)
      if (!known_format(f)) fail(FailureKind::kUsage, "unknown format '{}'", f);
    how.passes.only = options.only, how.passes.disabled = options.disabled;
    for (const auto& set : {options.only, options.disabled})
      for (const std::string& name : set) pass_or_fail(name);
    for (const auto& [name, rewrites] : options.fuel) {
      if (rewrites < 0) fail(FailureKind::kUsage, "a pass makes no {} rewrites", rewrites);
      how.passes.fuel[std::string(pass_or_fail(name).name)] = rewrites;
    }
    if (progress)
      how.progress = [&](size_t done, size_t all, const std::string& pass) {
        if (!progress(done, all, pass)) refuse(ErrorKind::interrupted, "ended by the progress callback");
      };
    ModuleBody& from = *Access::body(module);
    auto body = std::make_shared<Body>();
    {
      const Working working(*from.universe);
      if (!from.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry computation yet");
      module.require_valid();
      std::unique_ptr<hlo::Module> copy = from.m->clone();
      OutputFolder out(folder, false);
      body->recording = hlo::replay(*copy, how, out);
      out.commit();
    }
    body->recording.folder = folder;
    body->universe = from.universe;
    return Recording(std::move(body));
  });
}

std::string Recording::name() const { return body_->recording.module_name; }
std::string Recording::function() const { return function_of(body_->recording.module_name); }
std::string Recording::source() const { return body_->recording.source; }
std::string Recording::pipeline() const { return body_->recording.pipeline; }
std::string Recording::selector() const { return body_->selector; }
std::vector<std::string> Recording::problems() const { return body_->recording.problems; }
size_t Recording::rows() const { return body_->recording.rows.size(); }

std::string Recording::json() const {
  return call([&] {
    const Body::Held held(*body_);
    return recording_json(body_->recording);
  });
}

std::string Recording::text_file(size_t row) const {
  return call([&] {
    std::string file = body_->recording.text_file(body_->checked(row));
    if (file.empty()) fail(FailureKind::kIo, "stage {} has no text", body_->recording.rows[row].name());
    return file;
  });
}

std::string Recording::text(size_t row) const {
  std::string file = text_file(row);
  return call([&] { return read_confined(body_->recording.folder, file); });
}

Module Recording::module(size_t row) const {
  return call([&] {
    const Body::Held held(*body_);
    return Access::adopt(body_->universe, held.lineage->module(body_->stage(row)));
  });
}

Recording::Found Recording::bisect(const std::function<Verdict(const Module&)>& judge, bool every) const {
  return call([&] {
    const Body::Held held(*body_);
    std::vector<size_t> rows;  // those at which a stage begins
    Candidates candidates;
    for (size_t k = 0; k < body_->recording.rows.size(); ++k) {
      const StageRow& row = body_->recording.rows[k];
      if (row.stage < 0 || (!rows.empty() && body_->stage(rows.back()) == static_cast<size_t>(row.stage))) continue;
      rows.push_back(k);
      candidates.labels.push_back(row.name());
      candidates.keys.push_back(std::to_string(k));
    }
    candidates.load = [&](size_t k) { return held.lineage->module(body_->stage(rows[k])); };
    std::exception_ptr thrown;
    Found out;
    BisectOptions options;
    options.every = every;
    options.stop = [&] { return thrown || interrupted(); };
    Judge ask = [&](const hlo::Module& m) -> Judgement {
      if (thrown) return {};
      ++out.asked;
      try {
        switch (judge(Access::adopt(body_->universe, m.clone()))) {
          case Verdict::good:
            return {hlo::Verdict::kGood};
          case Verdict::bad:
            return {hlo::Verdict::kBad};
          case Verdict::unknown:
            break;
        }
      } catch (...) {
        thrown = std::current_exception();
      }
      return {};
    };
    JudgementFile nothing("", "");
    Bisection b = search(candidates, ask, nothing, options);
    if (thrown) throw Foreign{thrown};
    if (b.outcome == Bisection::kStopped) refuse(ErrorKind::interrupted, "interrupted");
    out.outcome = b.outcome == Bisection::kFound      ? Found::found
                  : b.outcome == Bisection::kAllGood  ? Found::all_good
                  : b.outcome == Bisection::kFirstBad ? Found::first_bad
                                                      : Found::unknown;
    if (b.outcome == Bisection::kFound) out.good = rows[b.good], out.bad = rows[b.bad];
    return out;
  });
}

}  // namespace hlo::api::scripting
