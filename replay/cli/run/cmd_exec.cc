// exec: running modules, stages and folders, and judging results.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "gpu_exec/driver/cuda.h"
#include "gpu_exec/driver/kernel_cache.h"
#include "gpu_exec/executor.h"
#include "ir/eval/compare.h"
#include "ir/eval/spare_arrays.h"
#include "ir/program/buffer.h"
#include "parser/parser.h"
#include "replay/cli/command.h"
#include "replay/cli/comparison_words.h"
#include "replay/cli/json_output.h"
#include "replay/cli/kept_arguments.h"
#include "replay/cli/run/all_stages.h"
#include "replay/cli/run/self_test.h"
#include "replay/emitted/emitted_run.h"
#include "replay/judge/arguments/elided.h"
#include "replay/judge/arguments/memory.h"
#include "replay/judge/arguments/npz.h"
#include "replay/judge/arguments/session.h"
#include "replay/judge/nan_watch.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/record/start/start_stage.h"
#include "replay/report/measured/profile.h"
#include "viewer/pages.h"

namespace hlo {
namespace {

// What --kernels=dump runs.
struct DumpedProgram {
  Recording recording;
  std::string file;  // of the final module
};

// Null: there is no such number, of no elements, of none that are finite, of what is no array.
void add_statistics(Json& o, const Statistics& s) {
  int64_t finite = s.numbers ? s.elements - s.nan - s.inf : 0;
  o["min"] = o["max"] = o["mean"] = Json();
  if (finite > 0) o["min"] = s.min, o["max"] = s.max, o["mean"] = finite_or_null(s.sum / static_cast<double>(finite));
  o["nan"] = s.nan, o["inf"] = s.inf;
}

}  // namespace

// Outputs o0, o1 … of a file in the shapes of the module's result.
Value outputs_of(const Universe& u, const std::string& path, ShapeId shape) {
  std::map<std::string, NamedArray> given;
  std::vector<ShapeId> leaves;
  leaf_shapes(u, shape, leaves);
  for (NamedArray& array : read_npz(path, bytes_of_leaves(u, leaves, 'o'))) given[array.name] = std::move(array);
  size_t leaf = 0;
  auto build = [&](auto&& self, ShapeId s) -> Value {
    Value v;
    v.shape = s;
    if (u[s].is_tuple()) {
      for (ShapeId e : u[s].elements) v.elements.push_back(self(self, e));
      return v;
    }
    std::string name = fmt::format("o{}", leaf++);
    if (!u[s].is_array()) return v;
    auto found = given.find(name);
    if (found == given.end()) fail(FailureKind::kUsage, "{} holds no array {}", path, name);
    return from_array(u, found->second, s);
  };
  return build(build, shape);
}

void save_arrays(const Universe& u, const std::string& path, const std::vector<Value>& arguments,
                 const std::vector<Value>& outputs) {
  std::vector<NamedArray> saved;
  std::vector<Value> leaves;
  for (const Value& v : arguments) flatten(u, v, &leaves);
  for (size_t i = 0; i < leaves.size(); ++i)
    if (u[leaves[i].shape].is_array()) saved.push_back(to_array(u, fmt::format("p{}", i), leaves[i]));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (u[outputs[i].shape].is_array()) saved.push_back(to_array(u, fmt::format("o{}", i), outputs[i]));
  write_npz(path, saved);
}

namespace {

// A run of its own behind the others: memory is warm then.
void profile_run(const ExecArgs& a, const Module& m, const Session& session, const ExecutorInfo& executor,
                 EvalOptions options) {
  Profiler profiler;
  options.timed = profiler.listener();
  session.run(m, executor, options, 1, false);
  Profile p = profiler.finish(m.name(), a.backend);
  measure_machine(p);
  for (const std::string& file : a.profile) {
    if (file.ends_with(".html"))
      write_output_file(file, profile_page(fmt::format("{} on {}", m.name(), a.backend), p), a.force);
    else if (file.ends_with(".json"))
      write_output_file(file, trace_json(p), a.force);
    else
      write_output_file(file, profile_table(p, SIZE_MAX), a.force);
  }
  if (!a.json) fmt::print("{}", profile_table(p, 20));
}

}  // namespace

namespace {

// A run's answer; of one that --nan ended the results are null.
Json empty_run(const ExecArgs& a) {
  return {{"backend", a.backend}, {"compile_s", Json()},         {"run_s", Json()},
          {"inputs", Json()},     {"outputs", Json::array()},    {"notes", Json::array()},
          {"nan", Json()},        {"infinity", Json()},          {"nan_come_in_with", ""},
          {"equal", Json()},      {"comparison", Json::array()}, {"verdict", ""},
          {"inputs_from", Json()}};
}

// What --nan found.
int tell_not_finite(const ExecArgs& a, const NanWatch& watch) {
  if (!a.json) {
    fmt::print(stderr, "{}\n", watch.text());
    return kNo;
  }
  auto json = [](const std::optional<NotFinite>& f) {
    return f ? Json{{"instruction", f->instruction},
                    {"opcode", f->opcode},
                    {"computation", f->computation},
                    {"elements", f->elements},
                    {"text", f->text}}
             : Json();
  };
  print_json(complete(
      empty_run(a),
      {{"nan", json(watch.nan())}, {"infinity", json(watch.infinity())}, {"nan_come_in_with", watch.brought()}}));
  return kNo;
}

}  // namespace

// Elided constants of the module get values; the one that --compare-with names, if it is one, has the same ones.
static std::unique_ptr<Module> settled_with_second(const ExecArgs& a, Module& m, const InputOptions& inputs) {
  const std::string& with = a.compare_with;
  if (with.empty() || with.ends_with(".npz") || find_executor(with)) {
    settle_elided(m, inputs);
    return nullptr;
  }
  LoadOptions same;
  same.universe = m.universe();
  std::unique_ptr<Module> second;
  try {
    second = load_verified(with, !a.no_verify, nullptr, same);
  } catch (const Failure& e) {
    if (e.kind() != FailureKind::kIo) throw;
    fail(FailureKind::kIo, "{} (nor is there a backend of that name: evaluator, host, emulated, cuda)", e.what());
  }
  std::string told;
  ElidedConstants::settle_pair(m, *second, inputs, with, &told);
  if (!told.empty()) complain("note: " + told);
  return second;
}

// exec --kernels=dump: XLA's own program on the first card.
static Value run_dump(const ExecArgs& a, const DumpedProgram& dumped, const Module& m, const Session& session,
                      const EvalOptions& options, Execution* e) {
  if (devices_needed(m) > 1)
    fail(FailureKind::kUnsupported, "--kernels=dump: the module runs on {} devices, one is run", devices_needed(m));
  const EmittedProgram program = read_emitted(dumped.recording, dumped.file, m);
  const std::unique_ptr<Device> card = cuda_device();
  *e = run_emitted(*card, m, program, session.arguments(), {options, a.repeat, a.evaluate_others});
  return std::move(e->results[0]);
}

static int exec(const ExecArgs& a, const DumpedProgram* dumped);

int cmd_exec(const ExecArgs& a) {
  if (a.kernels.empty()) return exec(a, nullptr);
  if (a.backend != "cuda") fail(FailureKind::kUsage, "--kernels=dump goes with --backend=cuda");
  if (!a.self_test.empty() || a.all_stages || a.precision != "own" || !a.trace.empty() || !a.profile.empty() || a.nan ||
      !a.replace_kernel.empty() || a.as_is || !a.like.empty())
    fail(FailureKind::kUsage,
         "--kernels=dump goes with none of --self-test, --all-stages, --precision, --trace, --profile, --nan, "
         "--replace-kernel, --as-is and --like");
  DumpedProgram dumped{select_module(a.file), {}};
  dumped.file = emitted_module_file(dumped.recording);
  ExecArgs own = a;
  own.file = confined_path(dumped.recording.folder, dumped.file);
  return exec(own, &dumped);
}

// Of a stage of a folder the arguments that the program had. Where the partitioner has cut them, `like` becomes the
// stage before any pass, whose shapes they have.
static KeptArguments own_inputs(const ExecArgs& a, const Module& m, const Loaded& loaded,
                                std::unique_ptr<Module>& like) {
  if (!takes_kept(a) || !loaded.arguments.empty()) return {};
  std::optional<Recording> r;
  if (names_modules(a.file))
    r = select_module(a.file);
  else if (std::optional<StageChoice> stage = stage_of(a.file))
    r = stage->module;
  if (!r || !keeps_arguments(*r, "")) return {};
  if (like || device_count(m) <= 1) return own_arguments(*r, like ? *like : m, a);
  KeptArguments own = kept_arguments(*r, m, a, "");
  if (!own.inputs.empty()) return own;
  LoadOptions same;
  same.universe = m.universe();
  std::unique_ptr<Module> first = load_verified(first_text(*r), !a.no_verify, nullptr, same);
  own = own_arguments(*r, *first, a);
  if (!own.inputs.empty()) like = std::move(first);
  return own;
}

static void check_arguments(const ExecArgs& a) {
  if (a.file.empty() == a.self_test.empty())
    fail(FailureKind::kUsage, "{}; see hlo-replay exec --help",
         a.file.empty() ? "FILE is required" : "--self-test goes with no FILE");
  if (a.precision != "own" && a.precision != "high" && a.precision != "tf32")
    fail(FailureKind::kUsage, "unknown precision '{}'; there are own, high and tf32", a.precision);
  if (a.precision == "tf32" && (a.backend != "cuda" || !a.self_test.empty() || a.all_stages))
    fail(FailureKind::kUsage,
         "--precision=tf32 goes with --backend=cuda, and with neither --self-test nor --all-stages");
}

static std::map<std::string, EvalOptions::Replacement> replacements(const ExecArgs& a) {
  std::map<std::string, EvalOptions::Replacement> replaced;
  for (const std::string& r : a.replace_kernel) {
    size_t equals = r.find('=');
    if (equals == std::string::npos || (!r.ends_with(".ll") && !r.ends_with(".ptx")))
      fail(FailureKind::kUsage, "--replace-kernel={}: NAME=FILE.ll or NAME=FILE.ptx is wanted", r);
    if (a.backend != "cuda") fail(FailureKind::kUsage, "--replace-kernel goes with --backend=cuda");
    std::string file = r.substr(equals + 1);
    replaced[r.substr(0, equals)] = {file.ends_with(".ptx"), read_file(file), file};
  }
  return replaced;
}

static Json output_json(const Universe& u, const std::vector<Value>& outputs) {
  Json list = Json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Json o{{"name", fmt::format("o{}", i)}, {"shape", u.shape_text_plain(outputs[i].shape)}};
    Statistics s = statistics(u, outputs[i]);
    add_statistics(o, s);
    bool one = s.elements == 1 && !s.nan && !s.inf && !is_complex(u[outputs[i].shape].type);
    o["value"] = one ? finite_or_null(s.min) : Json();
    list.push_back(std::move(o));
  }
  return list;
}

// TF32 has the mantissa of f16.
static double compared_tolerance(const ExecArgs& a) {
  return a.precision == "tf32" && a.tolerance < 0 ? default_tolerance(ElementType::F16) : a.tolerance;
}

static Json traced_json(const Module& m, InstId i, const Statistics& s, ShapeId shape) {
  Json row{{"name", m.inst_name(i)},
           {"opcode", op_text(m.op(i))},
           {"computation", m.comp_name(m.parent(i))},
           {"shape", m.u().shape_text_plain(shape)}};
  add_statistics(row, s);
  row["checksum"] = fmt::format("{:016x}", s.checksum);
  return row;
}

// What a run is held against: a file, another backend or another module.
static Comparison compared(const ExecArgs& a, const Module& m, const Module* second_module, Session& session,
                           const ExecutorInfo& executor, const Value& result) {
  const Universe& u = m.u();
  const bool high = a.precision == "high";
  const double tolerance = compared_tolerance(a);
  Comparison comparison;
  Value other;
  if (a.compare_with.ends_with(".npz")) {
    other = outputs_of(u, a.compare_with, result.shape);
  } else if (const ExecutorInfo* second = find_executor(a.compare_with)) {
    if (std::string why = second->unavailable(); !why.empty())
      fail(FailureKind::kUnsupported, "backend {}: {}", a.compare_with, why);
    other = session.run(m, *second, eval_options(a), 1, high);
  } else {
    other = session.run(*second_module, executor, eval_options(a), 1, high);
  }
  comparison = compare_results(u, result, other, tolerance);
  if (!comparison.equal && !high) {
    Value reference = session.run(m, *find_executor("evaluator"), eval_options(a), 1, true);
    comparison = compare_results(u, result, other, tolerance, &reference);
    hold_both_to_reference(comparison);
  }
  return comparison;
}

// A run, for who asked for it.
struct RunReport {
  const ExecArgs& a;
  const Execution& e;
  const KeptArguments& own;
  const NanWatch& watch;
  const Comparison& comparison;
  const std::string unsaid;
  const Json list;  // outputs

  void json(size_t inputs) const {
    std::vector<std::string> notes = e.notes;
    if (!unsaid.empty()) notes.insert(notes.begin(), unsaid);
    Json out = complete(empty_run(a), {{"compile_s", e.compile_s},
                                       {"run_s", e.run_s},
                                       {"inputs", inputs},
                                       {"inputs_from", own.inputs.empty() ? Json() : Json(own.in_words)},
                                       {"outputs", list},
                                       {"notes", notes},
                                       {"nan_come_in_with", watch.brought()}});
    if (!a.compare_with.empty()) {
      out["equal"] = comparison.equal;
      for (const OutputComparison& o : comparison.outputs) out["comparison"].push_back(to_json(o));
      out["verdict"] = verdict(comparison);
    }
    print_json(out);
  }

  void text() const {
    if (!unsaid.empty()) fmt::print("not partitioned: {}\n", printable(unsaid));
    fmt::print("{}: {} in {:.4f} s{}\n", a.file, a.backend, e.run_s,
               e.notes.empty() ? "" : fmt::format(", compiled in {:.3f} s ({})", e.compile_s, e.notes[0]));
    if (!own.inputs.empty()) fmt::print("  inputs: {}\n", own.in_words);
    constexpr size_t kShown = 6;
    for (size_t k = 1; k < std::min(e.notes.size(), kShown); ++k) fmt::print("  note: {}\n", e.notes[k]);
    if (e.notes.size() > kShown) fmt::print("  note: … and {} more; --json has them all\n", e.notes.size() - kShown);
    for (const Json& o : list) {
      fmt::print("  {} {}", o["name"].get<std::string>(), o["shape"].get<std::string>());
      if (!o["value"].is_null())
        fmt::print(" = {:.9g}", o["value"].get<double>());
      else if (!o["mean"].is_null())
        fmt::print("  min {:.6g}  max {:.6g}  mean {:.6g}", o["min"].get<double>(), o["max"].get<double>(),
                   o["mean"].get<double>());
      if (o["nan"] != 0) fmt::print("  {} NaN", o["nan"].get<int64_t>());
      if (o["inf"] != 0) fmt::print("  {} infinite", o["inf"].get<int64_t>());
      fmt::print("\n");
    }
    if (a.nan)
      fmt::print("no instruction makes a NaN or an infinity{}\n",
                 watch.brought().empty() ? "" : "; NaN come in with " + watch.brought());
    if (!a.compare_with.empty()) {
      for (const OutputComparison& o : comparison.outputs) fmt::print("  {}\n", in_words(o));
      fmt::print("{}\n", verdict(comparison));
    }
  }
};

static int exec(const ExecArgs& a, const DumpedProgram* dumped) {
  check_arguments(a);
  const ExecutorInfo* executor = &checked_executor(a);
  if (!a.self_test.empty()) return self_test(*executor, a.self_test == "all" ? "" : a.self_test);
  if (a.all_stages) {
    const KeepsSpareArrays spares;  // from stage to stage
    if (!names_modules(a.file)) fail(FailureKind::kUsage, "--all-stages takes a folder, not {}", a.file);
    return run_all_stages(a);
  }
  check_output_file(a.out, true, read_by(a));
  bool high = a.precision == "high";
  for (const std::string& file : a.profile) {  // before the run, which may be long
    if (!file.ends_with(".json") && !file.ends_with(".html") && !file.ends_with(".txt"))
      fail(FailureKind::kUsage, "{}: the ending decides the format: .json (trace events), .html or .txt", file);
    check_output_file(file, a.force, read_by(a));
  }
  if (high && !a.profile.empty()) fail(FailureKind::kUsage, "--precision=high goes not with --profile");
  Loaded loaded;
  auto m = load_verified(a.file, !a.no_verify, &loaded);
  Universe& u = m->u();
  InputOptions inputs = input_options(a);
  inputs.snapshot = loaded.arguments;
  if (!a.ignore_memory) foresee_memory(*m, a.file, a.backend, high);
  const std::unique_ptr<Module> second_module = settled_with_second(a, *m, inputs);
  check_supported(*m);
  std::unique_ptr<Module> like;
  if (!a.like.empty()) {
    LoadOptions same;
    same.universe = m->universe();
    like = load_verified(a.like, !a.no_verify, nullptr, same);
  }
  const KeptArguments own = own_inputs(a, *m, loaded, like);
  if (!own.inputs.empty()) inputs.file = own.inputs;
  Session session(like ? *like : *m, inputs);
  EvalOptions options = eval_options(a);
  options.exact = a.exact;
  options.as_it_is = a.as_is;
  options.tf32 = a.precision == "tf32";
  options.replaced = replacements(a);
  if (!a.kernel_cache.empty()) set_kernel_cache(a.kernel_cache);
  std::unique_ptr<OutputFolder> folder;
  Json traced = Json::array();
  if (!a.trace.empty()) {
    folder = std::make_unique<OutputFolder>(a.trace, a.force, "exec", read_by(a));
    options.trace = [&](InstId i, std::span<const Value>, const Value& v) {
      Statistics s = statistics(u, v);
      if (s.numbers) traced.push_back(traced_json(*m, i, s, v.shape));
    };
  }
  NanWatch watch(*m, a.backend != "evaluator");
  if (a.nan) options.trace = watch.listener(), options.trace_all = true;
  if (high && (a.nan || folder)) fail(FailureKind::kUsage, "--precision=high goes with neither --trace nor --nan");
  Execution e;
  Value result;
  try {
    result = dumped ? run_dump(a, *dumped, *m, session, options, &e)
                    : session.run(*m, *executor, options, a.repeat, high, &e);
  } catch (const Failure&) {
    if (!watch.nan()) throw;
  }
  if (a.nan && (watch.nan() || watch.infinity())) return tell_not_finite(a, watch);
  if (!a.profile.empty()) profile_run(a, *m, session, *executor, options);
  std::vector<Value> outputs;
  flatten(u, result, &outputs);
  if (folder) {
    folder->write("trace.json", Json{{"version", 1}, {"module", m->name()}, {"values", traced}}.dump(1));
    folder->commit();
  }
  if (!a.out.empty()) {
    save_arrays(u, a.out, session.arguments(), outputs);
  }
  Comparison comparison;
  if (!a.compare_with.empty()) comparison = compared(a, *m, second_module.get(), session, *executor, result);
  const RunReport report{a, e, own, watch, comparison, not_partitioned(*m), output_json(u, outputs)};
  if (a.json)
    report.json(session.arguments().size());
  else
    report.text();
  return comparison.equal ? kYes : kNo;
}

}  // namespace hlo
