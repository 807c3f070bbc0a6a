#include "passes/pipelines/pipelines.h"

#include <fmt/ranges.h>

#include "ir/base/check.h"
#include "ir/target/gpu_target.h"
#include "passes/pipelines/lists.h"

namespace hlo {
namespace {

struct Named {
  std::string name;
  std::vector<Step> steps;
};
const std::vector<Named>& pipelines() {
  static const std::vector<Named> kAll = {{"xla-2019", xla_2019_pipeline()},
                                          {"xla-gpu", xla_gpu_pipeline()},
                                          {"xla-gpu-unfused", xla_gpu_unfused_pipeline()}};
  return kAll;
}

bool mentioned(const std::set<std::string>& set, std::string_view name) {
  if (set.contains(std::string(name))) return true;
  const PassInfo* pass = find_pass(name);
  if (!pass) return false;
  for (const std::string& other : set)
    if (find_pass(other) == pass) return true;
  return false;
}

}  // namespace

const std::vector<Step>* find_pipeline(std::string_view name) {
  for (const Named& p : pipelines())
    if (p.name == name) return &p.steps;
  return nullptr;
}

std::vector<std::string> pipeline_names() {
  std::vector<std::string> out;
  for (const Named& p : pipelines()) out.push_back(p.name);
  return out;
}

const std::vector<Step>& pipeline_or_fail(const std::string& name) {
  const std::vector<Step>* steps = find_pipeline(name);
  if (!steps) fail(FailureKind::kUsage, "unknown pipeline '{}'; there are {}", name, fmt::join(pipeline_names(), ", "));
  return *steps;
}

std::map<std::string, std::string> options_for_gpu(std::string_view name, std::string_view description) {
  const GpuTarget target = named_gpu_target(description);
  if (target.major < 8)
    fail(FailureKind::kUnsupported,
         "{} is older than Ampere: XLA makes cuBLAS calls of its products, for which there is no pass here", name);
  return {{"gpu", std::string(description)}, {"capability", std::to_string(target.major * 10 + target.minor)}};
}

size_t count_passes(const std::vector<Step>& steps) {
  size_t n = 0;
  for (const Step& s : steps) n += s.children.empty() ? 1 : count_passes(s.children);
  return n;
}

PipelineCursor::Event PipelineCursor::move() {
  while (true) {
    if (frames_.empty()) {
      if (top_ == steps_->size()) return Event::kEnd;
      frames_.push_back({&(*steps_)[top_++]});
      return Event::kStart;
    }
    Frame& f = frames_.back();
    if (f.child == f.step->children.size()) {
      f.any |= f.changed;
      if (f.changed && f.round + 1 < f.step->most_rounds) {
        ++f.round, f.child = 0, f.changed = false;
        return Event::kStart;
      }
      bool any = f.any;
      frames_.pop_back();
      if (!frames_.empty()) frames_.back().changed |= any;
      continue;
    }
    const Step& child = f.step->children[f.child++];
    if (child.children.empty()) return Event::kPass;
    frames_.push_back({&child});
    return Event::kStart;
  }
}

bool PipelineCursor::advance(Module& m, const PipelineOptions& options) {
  switch (move()) {
    case Event::kEnd:
      return false;
    case Event::kStart: {
      const Step& step = *frames_.back().step;
      PassEvent start;
      start.kind = PassEvent::kPipelineStart;
      start.pipeline = step.name;
      start.pass = "pipeline-start";
      start.next = step.children.empty() ? "pipeline-end" : step.children[0].name;
      start.instructions_before = start.instructions_after = m.instruction_count();
      if (options.observe) options.observe(m, start);
      return true;
    }
    case Event::kPass:
      frames_.back().changed |= run(m, options);
  }
  return true;
}

bool PipelineCursor::run(Module& m, const PipelineOptions& options) {
  const Step &step = pass(), &parent = *frames_.back().step;
  PassEvent event;
  event.pipeline = parent.name, event.pass = step.name;
  event.next =
      frames_.back().child < parent.children.size() ? parent.children[frames_.back().child].name : "pipeline-end";
  event.options = step.options;
  const PassInfo* info = find_pass(step.name);
  event.implemented = info && info->run;
  event.disabled =
      mentioned(options.disabled, step.name) || (!options.only.empty() && !mentioned(options.only, step.name));
  if (event.implemented && !event.disabled) {
    PassContext context;
    context.options = step.options;
    take_options(*info, options.given, &context.options);
    for (const auto& [name, own] : options.given_to)
      if (find_pass(name) == info)
        for (const auto& [key, value] : own) context.options[key] = value;
    context.keep_notes = options.keep_notes;
    int64_t* fuel = nullptr;
    for (auto& [name, left] : fuel_)
      if (find_pass(name) == info) fuel = &left;
    if (fuel) context.fuel = *fuel;
    context.on_step = [&](std::string_view inner) {
      if (!options.observe) return;
      PassEvent e = event;
      e.kind = PassEvent::kInnerStep;
      e.pipeline = step.name, e.pass = std::string(inner), e.next.clear();
      e.instructions_after = m.instruction_count();
      options.observe(m, e);
    };
    ScopeOptions scope = options;
    scope.stage = stage_.empty() ? options.stage : stage_;
    run_pass(m, *info, context, scope, &event);
    if (event.changed) stage_ = fmt::format("{}:{}.after_{}", options.recording, event.pipeline, event.pass);
    if (fuel) *fuel = context.fuel;
  } else {
    event.instructions_before = event.instructions_after = m.instruction_count();
  }
  if (options.observe) options.observe(m, event);
  return event.claimed;
}

const Step* PipelineCursor::upcoming(std::string* pipeline) const {
  PipelineCursor ahead = *this;
  for (Event e = ahead.move(); e != Event::kEnd; e = ahead.move()) {
    if (e != Event::kPass) continue;
    if (pipeline) *pipeline = ahead.frames_.back().step->name;
    return &ahead.pass();
  }
  return nullptr;
}

void PipelineCursor::skip() {
  for (Event e = move(); e == Event::kStart;) e = move();
}

void run_pipeline(Module& m, const std::vector<Step>& steps, const PipelineOptions& options) {
  PipelineCursor cursor(steps, options.fuel);
  if (!options.from.empty()) {
    const PassInfo* wanted = find_pass(options.from);
    auto is_it = [&](const Step* s) { return s->name == options.from || (wanted && find_pass(s->name) == wanted); };
    while (const Step* next = cursor.upcoming()) {
      if (is_it(next)) break;
      cursor.skip();
    }
    if (!cursor.upcoming()) fail(FailureKind::kUsage, "the pipeline has no pass '{}' to start from", options.from);
  }
  while (!(options.stop && options.stop()) && cursor.advance(m, options)) {
  }
}

}  // namespace hlo
