// reduce and extract: parts of a module, and the smallest that still goes wrong.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "ir/base/parallel.h"
#include "ir/base/source.h"
#include "ir/eval/compare.h"
#include "ir/print/print.h"
#include "ir/query/find_instruction.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/pipelines/pipelines.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/cli/looked_at.h"
#include "replay/cli/triage/triage.h"
#include "replay/hunt/extract.h"
#include "replay/hunt/reduce.h"
#include "replay/judge/arguments/npz.h"
#include "replay/judge/nan_watch.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

// What is wrong with a module, in a word that a smaller one must share; empty: nothing.
using Fault = std::function<std::string(const Module&)>;

// Runs modules on the values that the whole one gave the instructions that their parameters stand for.
class Runs {
 public:
  Runs(const ReduceArgs& a, const Values* values) : a_(a), values_(values), options_(input_options(a)) {
    options_.file.clear();
  }
  Value operator()(const Module& shapes, const Module& m, const EvalOptions& options) const {
    Session session(shapes, options_);
    session.set_arguments(arguments(shapes));
    // What is left of a loop may never end.
    using Clock = std::chrono::steady_clock;
    EvalOptions limited = options;
    Clock::time_point start = Clock::now(), end = most_ ? start + *most_ : Clock::time_point::max();
    limited.stop = [end] { return interrupted() || Clock::now() > end; };
    Value v = session.run(m, *find_executor(a_.backend), limited, 1, false);
    if (!most_) most_ = 10 * (Clock::now() - start) + std::chrono::seconds(5);
    return v;
  }
  // From now on these, whatever the parameters are called.
  void fix(std::vector<Value> arguments) { fixed_ = std::move(arguments); }
  Comparison compare(const Module& before, const Module& after) const {
    EvalOptions options = eval_options(a_);
    Value expected = (*this)(before, before, options), got = (*this)(before, after, options);
    Comparison c = compare_results(before.u(), got, expected, a_.tolerance);
    if (c.equal) return c;
    Session session(before, options_);
    session.set_arguments(arguments(before));
    Value reference = session.run(before, *find_executor("evaluator"), options, 1, true);
    return compare_results(before.u(), got, expected, a_.tolerance, &reference);
  }

 private:
  std::vector<Value> arguments(const Module& m) const {
    return fixed_.empty() ? values_->arguments(m, a_.seed, options_.positive) : fixed_;
  }
  const ReduceArgs& a_;
  const Values* values_;
  std::vector<Value> fixed_;
  mutable std::optional<std::chrono::steady_clock::duration> most_;  // ten times what the first run took, and more
  InputOptions options_;
};

Fault behind_passes(const ReduceArgs& a, const std::shared_ptr<Runs>& runs) {
  std::vector<WantedPass> list = wanted_passes(a.passes);
  const std::vector<Step>* steps = a.passes.empty() ? find_pipeline(a.pipeline) : nullptr;
  return [list, steps, runs](const Module& m) -> std::string {
    std::unique_ptr<Module> after = m.clone();
    PipelineOptions options;
    options.keep_notes = false;
    options.stop = interrupted;
    std::string pass;
    try {
      if (steps) options.observe = [&](const Module&, const PassEvent& e) { pass = e.next; };
      if (steps) run_pipeline(*after, *steps, options);
      for (const WantedPass& w : list) {
        PassContext context;
        context.options = w.options;
        PassEvent event;
        pass = w.pass->name;
        run_pass(*after, *w.pass, context, options, &event);
      }
    } catch (const Failure& e) {
      if (interrupted()) return {};
      return e.kind() == FailureKind::kUnsupported ? std::string() : fmt::format("pass {} fails", pass);
    }
    try {
      return runs->compare(m, *after).equal ? "" : "results differ after the passes";
    } catch (const Failure&) {
      return {};
    }
  };
}

Fault makes_nan(const ReduceArgs& a, const std::shared_ptr<Runs>& runs) {
  return [&a, runs](const Module& m) -> std::string {
    EvalOptions options = eval_options(a);
    NanWatch watch(m, a.backend != "evaluator");
    options.trace = watch.listener(), options.trace_all = true;
    try {
      (*runs)(m, m, options);
    } catch (const Failure&) {
      if (!watch.nan()) return {};
    }
    return watch.nan()        ? "a NaN is computed from none"
           : watch.infinity() ? "an infinity is computed from finite elements"
                              : "";
  };
}

Fault by_judge(const ReduceArgs& a, const Module& first) {
  Judge judge = make_judge(judge_options(a), first, nullptr);
  std::string words = in_words(judge_options(a));
  return [judge, words](const Module& m) -> std::string {
    return judge(m).verdict == Verdict::kBad ? fmt::format("not so: {}", words) : "";
  };
}

std::string how_to_see(const ReduceArgs& a, bool arguments) {
  std::string file = "module.hlo", inputs = arguments ? " --inputs=inputs.npz" : "";
  if (!a.check.empty()) return shell_word(a.check) + ", with {} for module.hlo";
  if (!a.regex.empty()) return fmt::format("grep -E {} {}", shell_word(a.regex), file);
  if (a.verify) return fmt::format("hlo-replay verify {}", file);
  if (a.nan) return fmt::format("hlo-replay exec {} --nan{}", file, inputs);
  if (!a.passes.empty())
    return fmt::format("hlo-replay opt --passes={} {} > after.hlo\nhlo-replay exec after.hlo --compare-with={}{}",
                       shell_word(a.passes), file, file, inputs);
  return fmt::format("hlo-replay bisect {} --pipeline={}{}", file, a.pipeline, inputs);
}

void check_arguments(const ReduceArgs& a, bool own) {
  if (!a.keep.empty() || a.work > 0) fail(FailureKind::kUsage, "--keep and --work go with --sizes");
  if (a.jobs > 1) {
    if (own && a.backend == "cuda")
      fail(FailureKind::kUsage, "--jobs is not for --backend=cuda: the device belongs to one process");
    work_alone();
  }
  if (a.slower > 0) fail(FailureKind::kUsage, "reduce has no --slower: what is smaller is faster");
  if ((!a.passes.empty()) + (!a.pipeline.empty()) + a.nan + !own > 1)
    fail(FailureKind::kUsage, "one of --passes, --pipeline, --nan, --check, --regex and --verify, not several");
}

// Why there is nothing to reduce.
std::string what_is_fine(const ReduceArgs& a, bool own) {
  return !own                ? in_words(judge_options(a))
         : a.nan             ? "no NaN or infinity is made"
         : !a.passes.empty() ? "the passes " + a.passes + " leave the results alone"
                             : "the pipeline " + a.pipeline + " leaves the results alone";
}

Reduction shown_reduction(const ReduceArgs& a, const Module& m, const std::function<bool(const Module&)>& wrong) {
  ReduceOptions options;
  options.keep_shapes = a.keep_shapes, options.keep_invalid = a.verify, options.most_candidates = a.most;
  options.jobs = a.jobs;
  const auto begin = std::chrono::steady_clock::now();
  options.stop = [&] {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    return interrupted() || (a.seconds > 0 && passed.count() > a.seconds);
  };
  std::optional<Progress> progress("reducing " + a.file);
  options.progress = [&](size_t candidates, size_t instructions) {
    progress->at(candidates, 0, fmt::format("candidates tried, {} instructions left", instructions));
  };
  return reduce(m, wrong, options);
}

}  // namespace

int cmd_reduce(const ReduceArgs& given) {
  ReduceArgs a = given;
  checked_executor(a);
  if (a.sizes) return cmd_smaller(a);
  const bool own = a.by_running();
  check_arguments(a, own);
  std::string folder = a.out.empty() ? fs::path(a.file).stem().string() + ".reduced" : a.out;
  OutputFolder out(folder, a.force, "reduce", read_by(a));
  Loaded loaded;
  auto m = load_verified(a.file, !a.no_verify && !a.verify, &loaded);
  if (own && a.passes.empty() && !a.nan) a.pipeline = pipeline_for(a.pipeline, a.file, loaded.of_2019);
  InputOptions inputs = input_options(a);
  inputs.snapshot = loaded.arguments;
  // The values of a run: parameters of smaller modules take them.
  Values values;
  if (own) {
    settle_elided(*m, inputs);
    check_supported(*m);
    Session session(*m, inputs);
    values = Values(*m, session, eval_options(a));
  }
  auto runs = std::make_shared<Runs>(a, &values);
  Fault fault = !own ? by_judge(a, *m) : a.nan ? makes_nan(a, runs) : behind_passes(a, runs);
  std::string wrong = fault(*m);
  const Json nothing{{"fault", Json()},        {"instructions_before", m->instruction_count()},
                     {"instructions", Json()}, {"candidates", 0},
                     {"accepted", 0},          {"seconds", 0},
                     {"finished", true},       {"folder", Json()}};
  if (wrong.empty() && a.json) print_json(nothing);
  if (wrong.empty())
    fail(FailureKind::kUsage, "{}: nothing is wrong with the module as it came, so there is nothing to reduce ({})",
         a.file, what_is_fine(a, own));
  size_t before = m->instruction_count();
  auto start = std::chrono::steady_clock::now();
  Reduction r = shown_reduction(a, *m, [&](const Module& c) { return fault(c) == wrong; });
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was written");
  std::vector<Value> arguments;
  if (own) arguments = values.arguments(*r.module, a.seed, inputs.positive);
  if (a.scrub) scrub(*r.module);
  // Once more, from what is left behind.
  std::string text = lossless_text(*r.module);
  if (!arguments.empty()) {
    save_arrays(r.module->u(), out.temporary() + "/inputs.npz", arguments, {});
    runs->fix(arguments);
  }
  std::string again = fault(*parse_module(text, m->universe()));
  if (again != wrong)
    fail(FailureKind::kInvalid, "the reduced module does not show the fault again: the oracle wavers");
  size_t after = r.module->instruction_count();
  out.write("module.hlo", text);
  if (own) out.write("run_with_jax.py", jax_script());
  std::string how = how_to_see(a, !arguments.empty());
  out.write("README.md",
            fmt::format(
                "# {}\n\nReduced from {} to {} instructions by hlo-replay {}. To see it:\n\n```\n{}\n```\n\nWith XLA's "
                "own tools: `run_hlo_module --platform=CUDA --reference_platform=Interpreter module.hlo`{}.\n",
                wrong, before, after, kVersion, how, own ? "; with jax: `python3 run_with_jax.py`" : ""));
  out.commit();
  if (a.json) {
    print_json(complete(nothing, {{"fault", wrong},
                                  {"instructions", after},
                                  {"candidates", r.candidates},
                                  {"accepted", r.accepted},
                                  {"seconds", seconds},
                                  {"finished", r.finished},
                                  {"folder", folder}}));
  } else {
    fmt::print("{}\n{} → {} instructions, {} candidates in {:.1f} s ({:.0f} a second){}\nsee {}/README.md\n", text,
               before, after, r.candidates, seconds, static_cast<double>(r.candidates) / std::max(seconds, 1e-9),
               r.finished ? "" : ", stopped before the end", folder);
    fmt::print("{}\n", wrong);
  }
  return kYes;
}

namespace {

// An instruction as a module (`out` its file, null: `text`), or constants alone (`instruction` is null).
Json empty_extract(const Module& m) {
  return {{"module", m.name()}, {"instruction", Json()},  {"instructions", Json()}, {"parameters", Json::array()},
          {"out", Json()},      {"text", Json()},         {"inputs", Json()},       {"arrays", Json::array()},
          {"bytes", 0},         {"elided", Json::array()}};
}

// Arrays of a module by the names of their instructions; a snapshot's arguments as p0, p1 …
int extract_constants(const ExtractArgs& a, const Module& m, const Loaded& loaded) {
  std::vector<NamedArray> arrays;
  std::vector<Value> leaves;
  for (LitId argument : loaded.arguments) flatten(m.u(), value_of_literal(m.u(), argument), &leaves);
  for (size_t k = 0; k < leaves.size(); ++k)
    if (m.u()[leaves[k].shape].is_array()) arrays.push_back(to_array(m.u(), fmt::format("p{}", k), leaves[k]));
  std::vector<std::string> elided;
  int64_t bytes = 0;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Constant) continue;
      std::vector<Value> parts;
      if (m.literal(i).elided) {
        elided.emplace_back(m.inst_name(i));
        if (!a.json) fmt::print(stderr, "elided, left out: {} {}\n", m.inst_name(i), m.u().shape_text(m.shape_id(i)));
        continue;
      }
      flatten(m.u(), value_of_literal(m.u(), m.literal_id(i)), &parts);
      for (size_t k = 0; k < parts.size(); ++k) {
        if (!m.u()[parts[k].shape].is_array()) continue;
        std::string name(m.inst_name(i));
        if (parts.size() > 1) name += fmt::format("_{}", k);
        arrays.push_back(to_array(m.u(), name, parts[k]));
        bytes += static_cast<int64_t>(arrays.back().bytes.size());
      }
    }
  if (arrays.empty())
    fail(FailureKind::kUnsupported, "{} has no constant whose value is known{}", m.name(),
         elided.empty() ? "" : "; --xla_dump_large_constants keeps them");
  write_npz(a.constants, arrays);
  if (a.json) {
    Json names = Json::array();
    for (const NamedArray& array : arrays) names.push_back(array.name);
    print_json(
        complete(empty_extract(m), {{"inputs", a.constants}, {"arrays", names}, {"bytes", bytes}, {"elided", elided}}));
    return kYes;
  }
  fmt::print("{} arrays, {} bytes of constants{}\n", arrays.size(), bytes,
             elided.empty()
                 ? ""
                 : fmt::format("; {} elided ones are left out (--xla_dump_large_constants keeps them)", elided.size()));
  return kYes;
}

}  // namespace

int cmd_extract(const ExtractArgs& a) {
  for (const std::string& file : {a.out, a.inputs_out, a.constants}) check_output_file(file, true, read_by(a));
  checked_executor(a);
  if (a.instruction.empty() == a.constants.empty())
    fail(FailureKind::kUsage, "extract takes an INSTRUCTION or --constants=OUT.npz");
  std::string_view wanted = a.instruction;
  if (wanted.starts_with('%')) wanted.remove_prefix(1);
  const std::string stage = wanted.empty() ? a.file : last_stage_with(a.file, wanted);
  if (stage != a.file) fmt::print(stderr, "{} of {}\n", wanted, stage);
  Loaded loaded;
  auto m = load_verified(stage, !a.no_verify, &loaded);
  if (!a.constants.empty()) return extract_constants(a, *m, loaded);
  InstId found = find_instruction(*m, wanted);
  // A computation by name: what its root gives, of its parameters.
  for (CompId c : m->computations())
    if (m->comp_name(c) == wanted && !found.valid()) found = m->comp(c).root;
  if (!found.valid()) {
    NearestName near(wanted);
    for (CompId c : m->computations())
      for (InstId i : m->live_order(c)) near.see(m->inst_name(i));
    for (CompId c : m->computations()) near.see(m->comp_name(c));
    fail(FailureKind::kUsage, "{} has no instruction '{}'{}", a.file, wanted, near.hint());
  }
  std::vector<InstId> cuts;
  if (a.hops != SIZE_MAX) cuts = boundary(*m, {found}, a.hops);
  std::unique_ptr<Module> part = extracted(*m, {found}, cuts);
  std::vector<VerifyError> errors = verify_module(*part, 1);
  if (!errors.empty())
    fail(FailureKind::kUnsupported, "{} does not make a module by itself: {}", wanted, errors[0].message);
  Json told = complete(empty_extract(*m), {{"instruction", wanted}, {"instructions", part->instruction_count()}});
  for (InstId p : part->comp(part->entry()).params)
    told["parameters"].push_back({{"name", part->inst_name(p)}, {"shape", part->u().shape_text(part->shape_id(p))}});
  if (!a.inputs_out.empty()) {
    InputOptions inputs = input_options(a);
    inputs.snapshot = loaded.arguments, inputs.place = stage;
    settle_elided(*m, inputs);
    check_supported(*m);
    Session session(*m, inputs);
    Values values(*m, session, eval_options(a));
    for (InstId p : part->comp(part->entry()).params)
      if (!values.find((*part)[p].name))
        fail(FailureKind::kUnsupported, "a run of {} gives {} no value: it was not reached or did not fit into memory",
             a.file, part->inst_name(p));
    std::vector<Value> arguments = values.arguments(*part, a.seed, inputs.positive);
    save_arrays(m->u(), a.inputs_out, arguments, {});
    told["inputs"] = a.inputs_out;
    for (size_t k = 0; k < arguments.size(); ++k) told["arrays"].push_back(fmt::format("p{}", k));
  }
  const bool to_file = !a.out.empty() && a.out != "-";
  if (!a.json || to_file) write_file(to_file ? a.out : "-", lossless_text(*part));
  if (!a.json) return kYes;
  told[to_file ? "out" : "text"] = to_file ? a.out : lossless_text(*part);
  print_json(told);
  return kYes;
}

}  // namespace hlo
