#include "passes/scope.h"

#include <chrono>

#include "ir/analysis/schedule/schedule_update.h"
#include "ir/base/check.h"

namespace hlo {
namespace {

// Of each computation: what has an id from `first_added` on was added by the pass, at the end of the list unless it
// says otherwise.
void update_schedules(Module& m, size_t first_added, const PassContext& context) {
  for (CompId c : m.computations()) {
    const std::vector<InstId> order = m.live_order(c);
    std::vector<InstId> before = order;
    if (!context.keeps_order(c)) std::erase_if(before, [&](InstId i) { return i.value >= first_added; });
    update_schedule(m, c, before.empty() ? order : before);
  }
}

// `name{a=1,b=2}`, as --passes takes it.
std::string spelled(std::string_view name, const std::map<std::string, std::string>& options) {
  std::string out(name);
  for (const auto& [key, value] : options)
    out += fmt::format("{}{}={}", &key == &options.begin()->first ? "{" : ",", key, value);
  return options.empty() ? out : out + "}";
}

using Function = std::function<bool(Module&, PassContext&)>;

struct Run {
  std::string_view name;
  const Function& function;
  bool atomic;  // all that it does is one rewrite
  std::map<std::string, std::string> given;
};

// Where it went wrong, on lines of its own.
std::string blame(const Module& m, const Run& run, const PassContext& context, const ScopeOptions& options) {
  std::string out;
  if (context.last_rewrite().empty()) {
    out = "\n  before its first rewrite";
  } else {
    out = fmt::format("\n  its last rewrite, {}: {}", context.rewrites, context.last_rewrite());
    if (InstId i = context.last_instruction(); i.valid() && i.value < m.inst_slots())
      out += fmt::format(", of {}", m.inst_name(i));
  }
  if (options.stage.empty()) return out;
  std::string fuel = context.rewrites ? fmt::format(" --fuel={}={}", run.name, context.rewrites) : "";
  return out + fmt::format("\n  the stage before: {}\n  once more: hlo-replay opt '{}' '--passes={}'{}", options.stage,
                           options.stage, spelled(run.name, run.given), fuel);
}

void run_in_scope(Module& m, const Run& run, PassContext& context, const ScopeOptions& options, PassEvent* event) {
  event->instructions_before = m.instruction_count();
  auto start = std::chrono::steady_clock::now();
  const uint64_t edits = m.edits();
  const size_t slots = m.inst_slots();
  const int64_t fuel = context.fuel;
  event->changed = event->claimed = false;
  event->rewrites = 0;
  bool said = false;
  if (fuel > 0 || (options.call_without_fuel && !run.atomic)) {
    if (run.atomic) context.fuel = INT64_MAX;
    try {
      said = run.function(m, context);
    } catch (const Failure& f) {
      bool ours = f.kind() != FailureKind::kUnsupported && f.kind() != FailureKind::kUsage;
      throw Failure(f.kind(),
                    fmt::format("pass {}: {}{}", run.name, f.what(), ours ? blame(m, run, context, options) : ""));
    }
  }
  m.cleanup();
  event->changed = m.edits() != edits;
  if (event->changed && !said)
    fail(FailureKind::kInternal, "pass {} says that it changed nothing, and changed the module{}", run.name,
         blame(m, run, context, options));
  if (event->changed && m.config().is_scheduled) update_schedules(m, slots, context);
  event->claimed = context.claimed().value_or(said);
  if (run.atomic) {
    context.fuel = event->changed ? fuel - (fuel != INT64_MAX) : fuel;
    context.rewrites = event->changed;
    context.notes.end_at(context.rewrites);
  }
  event->microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
  event->instructions_after = event->changed ? m.instruction_count() : event->instructions_before;
  event->rewrites = context.rewrites;
  if (event->changed && options.verify) {
    std::vector<VerifyError> errors = verify_module(m, 1, options.layouts);
    if (!errors.empty())
      fail(FailureKind::kInternal, "pass {} left a module that does not verify: {}{}", run.name, errors[0].message,
           blame(m, run, context, options));
  }
}

}  // namespace

void PassContext::run_in_context(Module& m, const PassInfo& pass, PassContext& context, const ScopeOptions& options,
                                 PassEvent* event) {
  HLO_CHECK(pass.run, "pass {} is not implemented", pass.name);
  std::map<std::string, std::string> given = context.options;
  complete_options(pass, &context.options);
  context.keep_notes = context.keep_notes && options.keep_notes;
  context.inner_ = &options;
  const Function function = pass.run;
  run_in_scope(m, {pass.name, function, !pass.atomic.empty(), std::move(given)}, context, options, event);
}

bool run_pass(Module& m, const PassInfo& pass, PassContext& context, const ScopeOptions& options, PassEvent* event) {
  PassContext::run_in_context(m, pass, context, options, event);
  event->notes = std::exchange(context.notes, {}).notes(m.u());
  return event->changed;
}

bool run_step(Module& m, std::string_view name, const Function& step, const ScopeOptions& options, PassEvent* event) {
  PassContext context;
  context.keep_notes = options.keep_notes;
  context.inner_ = &options;
  run_in_scope(m, {name, step, true, {}}, context, options, event);
  event->notes = std::exchange(context.notes, {}).notes(m.u());
  return event->changed;
}

bool PassContext::run(Module& m, std::string_view name, std::map<std::string, std::string> given) {
  const PassInfo* pass = find_pass(name);
  HLO_CHECK(pass && pass->run, "pass {}", name);
  static const ScopeOptions kAlone;
  ScopeOptions of_inner = inner_ ? *inner_ : kAlone;
  of_inner.stage.clear();  // the outer pass says it
  PassContext inner;
  inner.options = std::move(given);
  inner.fuel = fuel;
  inner.keep_notes = keep_notes;
  inner.max_notes = max_notes - std::min(notes.size(), max_notes);
  PassEvent event;
  run_in_context(m, *pass, inner, of_inner, &event);
  fuel = inner.fuel;
  notes.append(inner.notes, rewrites);
  rewrites += event.rewrites;
  if (!inner.last_rewrite().empty()) last_rewrite_ = inner.last_rewrite(), last_instruction_ = inner.last_instruction_;
  return event.changed;
}

}  // namespace hlo
