#include "hlo/executor.h"

#include <chrono>
#include <cmath>
#include <cstring>

#include "ir/base/memory.h"
#include "ir/program/buffer.h"
#include "ir/verify/verifier.h"
#include "replay/judge/arguments/memory.h"
#include "replay/judge/arguments/session.h"
#include "replay/library/running.h"
#include "replay/os/interrupt.h"

namespace hlo::api {
namespace {

using RunClock = std::chrono::steady_clock;

// Bytes that mean the same value to everybody: 0 and 1 for predicates, sub-byte elements extended.
void settle_bytes(ElementType type, std::vector<char>* bytes) {
  const int bits = type_bits(type);
  if (bits >= 8) return;
  for (char& c : *bytes) {
    auto v = static_cast<unsigned char>(c);
    if (type == ElementType::Pred) {
      v = v != 0;
    } else {
      v = static_cast<unsigned char>(v & ((1u << bits) - 1));
      if (is_signed_int(type) && (v >> (bits - 1)) & 1) v = static_cast<unsigned char>(v | (0xFFu << bits));
    }
    c = static_cast<char>(v);
  }
}

// The next of the arrays as a value of that shape.
Value next_value(const hlo::Universe& u, ShapeId id, const std::vector<Array>& arrays, size_t* at) {
  const hlo::Shape& shape = u[id];
  Value v;
  v.shape = id;
  if (shape.is_tuple()) {
    for (ShapeId e : shape.elements) v.elements.push_back(next_value(u, e, arrays, at));
    return v;
  }
  if (!shape.is_array()) return v;
  const size_t number = (*at)++;
  if (number >= arrays.size()) return v;  // told by who counts
  const Array& a = arrays[number];
  if (a.element_type() != type_name(shape.type) ||
      !std::equal(shape.dims.begin(), shape.dims.end(), a.dims().begin(), a.dims().end()))
    fail(FailureKind::kUsage, "input {} is a {}[{}], the module takes a {}", number, a.element_type(),
         fmt::join(a.dims(), ","), u.shape_text_plain(id));
  v.data = new_array(u, id);
  if (a.size_bytes()) std::memcpy(v.data->data(), a.data(), a.size_bytes());
  settle_bytes(shape.type, v.data.get());
  return v;
}

void check_room(const hlo::Module& m, const RunOptions& o) {
  const bool high = o.precision == "high";
  const MemoryNeed need = memory_need(m, o.backend == "host" || o.backend == "emulated" || o.backend == "cuda", high);
  const AvailableMemory there = available_memory();
  const int64_t most = o.memory > 0 ? std::min(o.memory, there.bytes) : there.bytes;
  if (need.sum() <= static_cast<double>(most)) return;
  fail(FailureKind::kUnsupported,
       "a run takes at least {:.0f} bytes (parameters {:.0f}, values {:.0f} at once); {} is {}", need.sum(),
       need.parameters, need.values, human_bytes(most),
       o.memory > 0 && o.memory < there.bytes ? "allowed" : there.limit);
}

}  // namespace

InputOptions input_options(const RunOptions& o) {
  if (!o.fill_elided.empty() && o.fill_elided != "random" && o.fill_elided != "zeros")
    fail(FailureKind::kUsage, "fill_elided is random or zeros, not '{}'", o.fill_elided);
  InputOptions out;
  out.seed = o.seed, out.positive = o.positive, out.fit = o.fit, out.unique_keys = o.unique_keys;
  out.fill_elided = o.fill_elided.empty() ? "refuse" : o.fill_elided, out.label = "the module";
  return out;
}

const ExecutorInfo& executor_of(const RunOptions& o) {
  const std::string name = o.backend == "eval" ? "evaluator" : o.backend;
  const ExecutorInfo* executor = find_executor(name);
  if (!executor) {
    std::vector<std::string_view> all;
    for (const ExecutorInfo& e : executors()) all.push_back(e.name);
    fail(FailureKind::kUsage, "no backend is called '{}'; there are {}", o.backend, fmt::join(all, ", "));
  }
  if (std::string why = executor->unavailable(); !why.empty())
    fail(FailureKind::kUnsupported, "backend {}: {}", o.backend, why);
  return *executor;
}

EvalOptions eval_options(const RunOptions& o, bool* late) {
  EvalOptions out;
  out.max_while_steps = o.max_steps, out.rng_seed = o.rng_seed, out.exact = o.exact;
  if (std::isnan(o.seconds) || o.seconds < 0) fail(FailureKind::kUsage, "a time limit of {} seconds", o.seconds);
  if (o.seconds > 1e9) {
    out.stop = interrupted;
    return out;
  }
  const auto end =
      RunClock::now() + std::chrono::duration_cast<RunClock::duration>(std::chrono::duration<double>(o.seconds));
  out.stop = [end, late] {
    if (interrupted()) return true;
    if (RunClock::now() < end) return false;
    if (late) *late = true;
    return true;
  };
  return out;
}

std::vector<Array> arrays_of(const hlo::Universe& u, const Value& v) {
  std::vector<Value> leaves;
  flatten(u, v, &leaves);
  std::vector<Array> out;
  for (const Value& leaf : leaves)
    if (u[leaf.shape].is_array()) out.push_back(Access::array(u, leaf));
  return out;
}

std::vector<Backend> backends() {
  return call([] {
    std::vector<Backend> out;
    for (const ExecutorInfo& e : executors())
      out.push_back({std::string(e.name), std::string(e.summary), e.unavailable()});
    return out;
  });
}

RunResult run(const Module& module, const std::vector<Array>& inputs, const RunOptions& options) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    const Busy busy(body);
    const ExecutorInfo& executor = executor_of(options);
    if (options.precision != "own" && options.precision != "high")
      fail(FailureKind::kUsage, "precision is own or high, not '{}'", options.precision);
    if (options.repeat < 1) fail(FailureKind::kUsage, "repeat is 1 or more");
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    InputOptions given = input_options(options);
    std::unique_ptr<hlo::Module> settled;
    if (!body.m->elided_constants().empty()) settle_elided(*(settled = body.m->clone()), given);
    const hlo::Module& m = settled ? *settled : *body.m;
    if (options.verify) check_verifies(m);
    check_room(m, options);
    check_supported(m);
    size_t taken = 0;
    if (!inputs.empty()) {
      for (InstId p : m.comp(m.entry()).params) given.given.push_back(next_value(m.u(), m.shape_id(p), inputs, &taken));
      if (taken != inputs.size())
        fail(FailureKind::kUsage, "the module takes {} arrays, {} were given", taken, inputs.size());
    }
    const Session session(m, given);
    bool late = false;
    Execution times;
    RunResult out;
    try {
      Value result =
          session.run(m, executor, eval_options(options, &late), options.repeat, options.precision == "high", &times);
      out.outputs = arrays_of(m.u(), result);
    } catch (const Failure&) {
      if (!late) throw;
      fail(FailureKind::kUnsupported, "the run did not end within {} seconds", options.seconds);
    }
    out.compile_seconds = times.compile_s, out.run_seconds = times.run_s, out.notes = times.notes;
    return out;
  });
}

std::vector<Array> make_inputs(const Module& module, const RunOptions& options) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    const Session session(*body.m, input_options(options));
    std::vector<Array> out;
    for (const Value& v : session.arguments())
      for (Array& a : arrays_of(body.m->u(), v)) out.push_back(std::move(a));
    return out;
  });
}

}  // namespace hlo::api
