#include "hlo/pass.h"

#include "passes/pipelines/pipelines.h"
#include "replay/library/access.h"
#include "replay/os/progress.h"
#include "replay/record/start/wanted_passes.h"

namespace hlo::api {
namespace {

PassInfo told(const hlo::PassInfo& p) {
  PassInfo out;
  out.name = p.name, out.summary = p.summary, out.implemented = p.run != nullptr, out.atomic = p.atomic;
  for (size_t at = 0; at < p.aliases.size();) {
    const size_t end = std::min(p.aliases.find(' ', at), p.aliases.size());
    if (end > at) out.aliases.emplace_back(p.aliases.substr(at, end - at));
    at = end + 1;
  }
  static const char* kTypes[] = {"flag", "number", "word"};
  for (const hlo::PassOption& o : options_of(p))
    out.options.push_back({std::string(o.name), kTypes[o.type], std::string(o.absent)});
  return out;
}

std::vector<PipelineStep> told(const std::vector<Step>& steps) {
  std::vector<PipelineStep> out;
  for (const Step& s : steps) out.push_back({s.name, s.options, told(s.children), s.most_rounds});
  return out;
}

}  // namespace

std::vector<PassNote> told_notes(const std::vector<Note>& notes) {
  std::vector<PassNote> out;
  for (const Note& n : notes) {
    PassNote note{n.rule, n.names, {}, n.text, n.rewrite};
    for (InstId i : n.insts) note.ids.push_back(i.value);
    out.push_back(std::move(note));
  }
  return out;
}

std::vector<PassInfo> passes() {
  return call([] {
    std::vector<PassInfo> out;
    for (const hlo::PassInfo& p : all_passes()) out.push_back(told(p));
    return out;
  });
}
PassInfo pass_info(std::string_view name) {
  return call([&] {
    const hlo::PassInfo* p = find_pass(name);
    return told(p ? *p : pass_or_fail(std::string(name)));
  });
}

PassResult run_pass(const Module& module, std::string_view name, const PassOptions& options) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Editing editing(body);
    const Busy busy(body);
    const hlo::PassInfo& pass = pass_or_fail(std::string(name));
    if (!pass.run) fail(FailureKind::kUnsupported, "pass '{}' is not implemented", name);
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    hlo::Progress progress(fmt::format("running {}", pass.name));
    PassContext context;
    for (const auto& [key, value] : options.options) context.options[key] = checked_option(pass, key, value);
    context.fuel = options.fuel, context.keep_notes = options.notes;
    ScopeOptions scope;
    scope.verify = options.verify, scope.keep_notes = options.notes;
    PassEvent event;
    // On a copy, which takes the module's place when all went well: instructions have the same ids there.
    std::unique_ptr<hlo::Module> changed = body.m->clone();
    hlo::run_pass(*changed, pass, context, scope, &event);
    check_ended();
    body.m = std::move(changed);
    body.by_name_at = UINT64_MAX;
    PassResult out;
    out.changed = event.changed, out.claimed = event.claimed, out.rewrites = event.rewrites;
    out.microseconds = event.microseconds;
    out.instructions_before = event.instructions_before, out.instructions_after = event.instructions_after;
    out.notes = told_notes(event.notes);
    return out;
  });
}

std::vector<std::string> pipelines() {
  return call([] { return pipeline_names(); });
}
std::vector<PipelineStep> pipeline(std::string_view name) {
  return call([&] { return told(pipeline_or_fail(std::string(name))); });
}

}  // namespace hlo::api
