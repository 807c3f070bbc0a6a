// Running, passes and searches for the bindings of scripting languages.
#include "hlo/scripting.h"

#include <chrono>

#include "gpu_exec/executor.h"
#include "ir/eval/devices.h"
#include "ir/verifier.h"
#include "passes/pipelines.h"
#include "passes/scope.h"
#include "replay/interrupt.h"
#include "replay/library/access.h"
#include "replay/reduce.h"
#include "replay/session.h"
#include "replay/wanted_passes.h"

namespace hlo::api::scripting {
namespace {

// The value of that shape from the arrays at `next` and behind it.
Value value_of(const hlo::Universe& u, ShapeId id, const std::vector<Array>& arrays, size_t* next) {
  const hlo::Shape& shape = u[id];
  Value out;
  out.shape = id;
  if (shape.is_tuple()) {
    for (ShapeId element : shape.elements) out.elements.push_back(value_of(u, element, arrays, next));
    return out;
  }
  if (shape.is_token()) return out;
  if (!shape.is_array()) fail(FailureKind::kUnsupported, "no array is a {}", u.shape_text(id));
  if (*next >= arrays.size()) fail(FailureKind::kUsage, "too few arrays: {} were given", arrays.size());
  const Array& a = arrays[(*next)++];
  if (a.element_type() != type_name(shape.type) ||
      !std::equal(a.dims().begin(), a.dims().end(), shape.dims.begin(), shape.dims.end()))
    fail(FailureKind::kUsage, "array {} is {} of rank {}, where {} goes in", *next - 1, a.element_type(),
         a.dims().size(), u.shape_text(id));
  const char* bytes = static_cast<const char*>(a.data());
  out.data = std::make_shared<std::vector<char>>(bytes, bytes + a.size_bytes());
  return out;
}

void append_arrays(const hlo::Universe& u, const Value& v, std::vector<Array>* out) {
  std::vector<Value> leaves;
  flatten(u, v, &leaves);
  for (const Value& leaf : leaves)
    if (u[leaf.shape].is_array()) out->push_back(Access::array(u, leaf));
}

const ExecutorInfo& executor_of(const std::string& name) {
  const ExecutorInfo* found = find_executor(name == "eval" ? "evaluator" : name);
  if (!found) {
    std::string known;
    for (const ExecutorInfo& e : executors()) known += (known.empty() ? "" : ", ") + std::string(e.name);
    fail(FailureKind::kUsage, "no backend is called '{}'; there are {}", name, known);
  }
  if (std::string why = found->unavailable(); !why.empty())
    fail(FailureKind::kUnsupported, "backend {}: {}", name, why);
  return *found;
}

void require_verified(const hlo::Module& m) {
  std::string text;
  for (const VerifyError& e : verify_module(m)) text += fmt::format("{} [{}]\n", e.message, e.rule);
  if (!text.empty()) fail(FailureKind::kInvalid, "{}the module does not verify", text);
}

// A part of a list that is written with blanks between `name=default` words.
std::vector<std::pair<std::string, std::string>> option_list(const hlo::PassInfo& pass) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const PassOption& o : options_of(pass)) out.emplace_back(o.name, o.absent);
  return out;
}

}  // namespace

std::vector<Backend> backends() {
  return call([] {
    std::vector<Backend> out;
    for (const ExecutorInfo& e : executors())
      out.push_back({std::string(e.name), std::string(e.summary), e.unavailable()});
    return out;
  });
}

int64_t devices_needed(const Module& module) {
  return call([&] {
    const Reading reading(*Access::body(module)->universe);
    return hlo::devices_needed(*Access::body(module)->m);
  });
}

std::vector<std::vector<Array>> run(const Module& module, const std::vector<std::vector<Array>>& arguments,
                                    const RunOptions& options) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    const hlo::Module& m = *body.m;
    const ExecutorInfo& executor = executor_of(options.backend);
    if (!m.entry().valid()) fail(FailureKind::kUsage, "the module has no entry computation yet");
    if (options.most_steps < 0) fail(FailureKind::kUsage, "a loop takes no {} steps", options.most_steps);
    require_verified(m);
    const int64_t devices = hlo::devices_needed(m);
    if (devices != static_cast<int64_t>(arguments.size()))
      fail(FailureKind::kUsage, "the module runs on {} devices: arguments of {} were given", devices, arguments.size());
    std::vector<std::vector<Value>> values;
    for (const std::vector<Array>& arrays : arguments) {
      size_t next = 0;
      values.emplace_back();
      for (InstId p : m.comp(m.entry()).params) values.back().push_back(value_of(m.u(), m.shape_id(p), arrays, &next));
      if (next != arrays.size())
        fail(FailureKind::kUsage, "{} arrays were given, the module takes {}", arrays.size(), next);
    }
    EvalOptions eval;
    eval.rng_seed = options.rng_seed, eval.max_while_steps = options.most_steps;
    eval.stop = [] { return interrupted(); };
    std::vector<std::vector<Array>> out;
    for (const Value& result : executor.run(m, values, 1, eval).results)
      append_arrays(m.u(), result, &out.emplace_back());
    return out;
  });
}

std::vector<Array> seeded_inputs(const Module& module, uint64_t seed, bool positive) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry computation yet");
    check_memory(*body.m);
    std::vector<Array> out;
    for (const Value& v : seeded_arguments(*body.m, seed, positive)) append_arrays(body.m->u(), v, &out);
    return out;
  });
}

std::vector<PassInfo> passes() {
  return call([] {
    std::vector<PassInfo> out;
    for (const hlo::PassInfo& p : all_passes())
      out.push_back(
          {std::string(p.name), std::string(p.aliases), std::string(p.summary), option_list(p), p.run != nullptr});
    return out;
  });
}

std::vector<std::string> pipelines() { return pipeline_names(); }

PassDone run_pass(const Module& module, const std::string& pass, const std::map<std::string, std::string>& options,
                  int64_t fuel) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const hlo::PassInfo& info = pass_or_fail(pass);
    if (fuel < 0) fail(FailureKind::kUsage, "a pass makes no {} rewrites", fuel);
    PassContext context;
    for (const auto& [key, value] : options) context.options[key] = checked_option(info, key, value);
    context.fuel = fuel;
    const Editing editing(body);
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry computation yet");
    require_verified(*body.m);
    PassEvent event;
    hlo::run_pass(*body.m, info, context, {}, &event);
    PassDone out;
    out.pass = info.name, out.changed = event.changed, out.rewrites = event.rewrites;
    out.microseconds = event.microseconds;
    out.before = event.instructions_before, out.after = event.instructions_after;
    for (const Note& n : event.notes) out.notes.emplace_back(n.rule, fmt::format("{}", fmt::join(n.names, ", ")));
    return out;
  });
}

Module reduce(const Module& module, const std::function<bool(const Module&)>& faulty, const ReduceOptions& options) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    const Busy busy(body);
    std::exception_ptr thrown;
    auto ask = [&](const hlo::Module& candidate) {
      if (thrown) return false;
      try {
        return faulty(Access::adopt(body.universe, candidate.clone()));
      } catch (...) {
        thrown = std::current_exception();  // hlo::reduce takes no exceptions
        return false;
      }
    };
    if (!ask(*body.m) && !thrown) fail(FailureKind::kUsage, "the module as it came is not faulty");
    hlo::ReduceOptions how;
    how.keep_shapes = options.keep_shapes, how.keep_invalid = options.keep_invalid;
    how.most_candidates = options.most_candidates;
    how.stop = [&] { return thrown || interrupted(); };
    hlo::Reduction small;
    if (!thrown) small = hlo::reduce(*body.m, ask, how);
    if (thrown) throw Foreign{thrown};
    return Access::adopt(body.universe, std::move(small.module));
  });
}

}  // namespace hlo::api::scripting
