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

// exec --all-stages: every stage of a recording against its first.
class AllStages {
 public:
  explicit AllStages(const ExecArgs& a) : a_(a), inputs_(input_options(a)) {}
  int run() {
    for (const Recording& r : select_modules(a_.file)) module(r);
    if (a_.json)
      print_json({{"stages", list_},
                  {"elided", told_elided_.empty() ? Json() : Json(told_elided_)},
                  {"inputs_from", from_.empty() ? Json() : from_},
                  {"run", run_},
                  {"different", different_},
                  {"refused", refused_},
                  {"first_bad", first_bad_.empty() ? Json() : Json(first_bad_)}});
    else if (first_bad_.empty())
      fmt::print("all {} stages equal{}\n", run_,
                 by_operations_ ? fmt::format(", {} of them by operations (--whole: none)", by_operations_) : "");
    else
      fmt::print("{} of {} stages differ, {} refused; first: {}\n", different_, run_ + refused_, refused_, first_bad_);
    return different_ ? kNo : refused_ || !run_ ? kBad : kYes;
  }

 private:
  struct Told {
    std::string state, detail;
    Json difference;
    int64_t rounded = 0;  // operations that something else was taken for; 0: evaluated whole
  };
  struct Judged {
    const StageRow* row;
    size_t text;  // which of those that are not the one before, byte for byte
    Told told;
  };

  void module(const Recording& r) {
    recording_ = &r;
    load_options_.universe = std::make_shared<Universe>();
    results_.reset(), session_.reset(), first_.reset(), rounded_.reset();
    std::vector<Judged> judged;
    std::vector<std::string> texts;  // paths
    Progress progress("running the stages of " + a_.file);
    paths_.clear(), elided_.reset();
    for (const StageRow& row : r.rows)
      if (row.file.ends_with(".txt") || row.file.ends_with(".hlo")) paths_.push_back(confined_path(r.folder, row.file));
    for (const StageRow& row : r.rows) {
      progress.at(static_cast<size_t>(&row - r.rows.data()), r.rows.size(), row.file);
      if (!row.file.ends_with(".txt") && !row.file.ends_with(".hlo")) continue;
      std::string path = confined_path(r.folder, row.file);
      // More than half of a dump's stages are the one before: a pipeline's start is dumped, and nothing has run.
      if (judged.empty() || judged.back().told.state == "refused" || !same_files(texts.back(), path)) {
        texts.push_back(path);
        judged.push_back({&row, texts.size() - 1, stage(path, !a_.whole)});
      } else {
        judged.push_back({&row, texts.size() - 1, judged.back().told});
        if (judged.back().told.state == "first") judged.back().told.state = "equal";
      }
      if (!results_) break;  // nothing to hold the others against
      if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    }
    settle(judged, texts, progress);
    for (const Judged& j : judged) tell(r, *j.row, j.told);
  }

  // What was judged by operations says nothing of how rounding adds up: the last of these stages is evaluated whole,
  // and where that is different, so are all of them.
  void settle(std::vector<Judged>& judged, const std::vector<std::string>& texts, Progress& progress) {
    auto by_operations = [](const Judged& j) { return j.told.rounded > 0; };
    auto last = std::find_if(judged.rbegin(), judged.rend(), by_operations);
    if (last == judged.rend()) return;
    auto replace = [&](size_t text, const Told& told) {
      for (Judged& j : judged)
        if (j.text == text) j.told = told;
    };
    const size_t last_text = last->text;
    const Told whole = compared(*rounded_, false, true);
    replace(last_text, whole);
    if (whole.state == "equal") return;
    for (size_t k = 0; k < judged.size(); ++k) {
      progress.at(k, judged.size(), judged[k].row->file);
      if (interrupted()) fail(FailureKind::kUsage, "interrupted");
      if (by_operations(judged[k])) replace(judged[k].text, stage(texts[judged[k].text], false));
    }
  }

  // Elided constants: what the user asked for, else the same ones in all stages.
  void settle(const std::string& path, Module& m) {
    if (!inputs_.fill_elided.empty()) return settle_elided(m, inputs_);
    if (m.elided_constants().empty()) return;
    if (!elided_)
      elided_ = std::make_unique<ElidedConstants>(
          paths_, [this](size_t k) { return load_verified(paths_[k], !a_.no_verify, nullptr, load_options_); },
          inputs_);
    const auto k = static_cast<size_t>(std::find(paths_.begin(), paths_.end(), path) - paths_.begin());
    if (const auto& anew = elided_->anew(); !anew.empty() && anew[0].stage <= k)
      fail(FailureKind::kUnsupported, "{}", anew[0].why);
    elided_->settle(k, m);
    if (std::string told = elided_->told(); told != told_elided_) complain("note: " + (told_elided_ = told));
  }

  // `path`: as results of other stages name it.
  Told stage(const std::string& path, bool by_operations) {
    Told told;
    inputs_.label = inputs_.place = path;
    try {
      std::unique_ptr<Module> m = load_verified(path, !a_.no_verify, nullptr, load_options_);
      if (!a_.ignore_memory) foresee_memory(*m, path, a_.backend, false);
      settle(path, *m);
      check_supported(*m);
      if (results_) {
        session_->take_shardings(*m);
        told = compared(*m, by_operations);
        if (told.rounded) rounded_ = std::move(m);
        return told;
      }
      first_ = std::move(m);
      take_own();
      session_ = std::make_unique<Session>(*first_, inputs_);
      results_ =
          std::make_unique<ResultComparison>(*first_, *session_, a_.backend, eval_options(a_), a_.tolerance, true);
      told.state = "first";
    } catch (const Failure& e) {
      told.state = "refused", told.detail = e.what();
    }
    return told;
  }

  // The arguments that the program had, where they lie with the module.
  void take_own() {
    inputs_.file = a_.inputs, own_ = {};
    if (!takes_kept(a_)) return;
    own_ = own_arguments(*recording_, *first_, a_);
    if (own_.inputs.empty()) return;
    inputs_.file = own_.inputs;
    const std::string said = recording_->module_name + ": " + own_.in_words;
    from_.push_back(said);
    if (!a_.json) fmt::print("inputs of {}\n", said);
  }

  Told compared(const Module& m, bool by_operations, bool last = false) {
    Told told;
    try {
      const Comparison& c = by_operations ? results_->by_operations(m, &told.rounded) : results_->of(m, last);
      told.state = c.equal ? "equal" : "different";
      if (!c.equal) told.detail = verdict(c), told.difference = to_json(*c.first_difference());
    } catch (const Failure& e) {
      told.state = "refused", told.detail = e.what();
    }
    return told;
  }

  void tell(const Recording& r, const StageRow& row, const Told& told) {
    const bool refused = told.state == "refused";
    ++(refused ? refused_ : run_);
    if (told.state == "different") ++different_;
    if (told.rounded) ++by_operations_;
    if (first_bad_.empty() && (told.state == "different" || refused))
      first_bad_ = fmt::format("{} ({}): {}", row.name(), told.state, told.detail);
    Progress::clear();
    if (!a_.json) {
      std::string how = told.rounded ? fmt::format("  (by operations, {} rounded)", told.rounded) : "";
      fmt::print("{:<9} {}{}{}\n", told.state, row.file, how, told.detail.empty() ? "" : "\n          " + told.detail);
    }
    list_.push_back({{"module", r.module_name},
                     {"file", row.file},
                     {"stage", row.name()},
                     {"result", told.state},
                     {"judged", refused ? Json() : Json(told.rounded ? "by_operations" : "whole")},
                     {"rounded", told.rounded},
                     {"difference", told.difference},
                     {"detail", told.detail}});
  }

  const ExecArgs& a_;
  InputOptions inputs_;
  const Recording* recording_ = nullptr;  // at hand
  KeptArguments own_;                     // its own
  Json from_ = Json::array();             // whose inputs are the program's, in words
  LoadOptions load_options_;
  std::unique_ptr<Module> first_;
  std::vector<std::string> paths_;
  std::unique_ptr<ElidedConstants> elided_;
  std::string told_elided_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<ResultComparison> results_;
  Json list_ = Json::array();
  std::unique_ptr<Module> rounded_;  // the last one that was judged by operations
  size_t run_ = 0, different_ = 0, refused_ = 0, by_operations_ = 0;
  std::string first_bad_;
};

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

static int exec(const ExecArgs& a, const DumpedProgram* dumped) {
  if (a.file.empty() == a.self_test.empty())
    fail(FailureKind::kUsage, "{}; see hlo-replay exec --help",
         a.file.empty() ? "FILE is required" : "--self-test goes with no FILE");
  if (a.precision != "own" && a.precision != "high" && a.precision != "tf32")
    fail(FailureKind::kUsage, "unknown precision '{}'; there are own, high and tf32", a.precision);
  if (a.precision == "tf32" && (a.backend != "cuda" || !a.self_test.empty() || a.all_stages))
    fail(FailureKind::kUsage,
         "--precision=tf32 goes with --backend=cuda, and with neither --self-test nor --all-stages");
  const ExecutorInfo* executor = &checked_executor(a);
  if (!a.self_test.empty()) return self_test(*executor, a.self_test == "all" ? "" : a.self_test);
  if (a.all_stages) {
    const KeepsSpareArrays spares;  // from stage to stage
    if (!names_modules(a.file)) fail(FailureKind::kUsage, "--all-stages takes a folder, not {}", a.file);
    return AllStages(a).run();
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
  // TF32 has the mantissa of f16.
  const double tolerance = options.tf32 && a.tolerance < 0 ? default_tolerance(ElementType::F16) : a.tolerance;
  for (const std::string& r : a.replace_kernel) {
    size_t equals = r.find('=');
    if (equals == std::string::npos || (!r.ends_with(".ll") && !r.ends_with(".ptx")))
      fail(FailureKind::kUsage, "--replace-kernel={}: NAME=FILE.ll or NAME=FILE.ptx is wanted", r);
    if (a.backend != "cuda") fail(FailureKind::kUsage, "--replace-kernel goes with --backend=cuda");
    std::string file = r.substr(equals + 1);
    options.replaced[r.substr(0, equals)] = {file.ends_with(".ptx"), read_file(file), file};
  }
  if (!a.kernel_cache.empty()) set_kernel_cache(a.kernel_cache);
  std::unique_ptr<OutputFolder> folder;
  Json traced = Json::array();
  if (!a.trace.empty()) {
    folder = std::make_unique<OutputFolder>(a.trace, a.force, "exec", read_by(a));
    options.trace = [&](InstId i, std::span<const Value>, const Value& v) {
      Statistics s = statistics(u, v);
      if (!s.numbers) return;
      Json row{{"name", m->inst_name(i)},
               {"opcode", op_text(m->op(i))},
               {"computation", m->comp_name(m->parent(i))},
               {"shape", u.shape_text_plain(v.shape)}};
      add_statistics(row, s);
      row["checksum"] = fmt::format("{:016x}", s.checksum);
      traced.push_back(std::move(row));
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
  // What the results are held against.
  Comparison comparison;
  if (!a.compare_with.empty()) {
    Value other;
    if (a.compare_with.ends_with(".npz")) {
      other = outputs_of(u, a.compare_with, result.shape);
    } else if (const ExecutorInfo* second = find_executor(a.compare_with)) {
      if (std::string why = second->unavailable(); !why.empty())
        fail(FailureKind::kUnsupported, "backend {}: {}", a.compare_with, why);
      other = session.run(*m, *second, eval_options(a), 1, high);
    } else {
      other = session.run(*second_module, *executor, eval_options(a), 1, high);
    }
    comparison = compare_results(u, result, other, tolerance);
    if (!comparison.equal && !high) {
      Value reference = session.run(*m, *find_executor("evaluator"), eval_options(a), 1, true);
      comparison = compare_results(u, result, other, tolerance, &reference);
      hold_both_to_reference(comparison);
    }
  }
  const std::string unsaid = not_partitioned(*m);
  Json list = Json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Json o{{"name", fmt::format("o{}", i)}, {"shape", u.shape_text_plain(outputs[i].shape)}};
    Statistics s = statistics(u, outputs[i]);
    add_statistics(o, s);
    bool one = s.elements == 1 && !s.nan && !s.inf && !is_complex(u[outputs[i].shape].type);
    o["value"] = one ? finite_or_null(s.min) : Json();
    list.push_back(std::move(o));
  }
  if (a.json) {
    std::vector<std::string> notes = e.notes;
    if (!unsaid.empty()) notes.insert(notes.begin(), unsaid);
    Json out = complete(empty_run(a), {{"compile_s", e.compile_s},
                                       {"run_s", e.run_s},
                                       {"inputs", session.arguments().size()},
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
    return comparison.equal ? kYes : kNo;
  }
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
  return comparison.equal ? kYes : kNo;
}

}  // namespace hlo
