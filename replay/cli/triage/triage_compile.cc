// triage: a module as an installed XLA compiles and runs it.
#include <filesystem>

#include "ir/eval/compare.h"
#include "ir/leaves.h"
#include "replay/cli/engine.h"
#include "replay/cli/triage/triage.h"
#include "replay/cli/xla_arguments.h"
#include "replay/installed/figures.h"
#include "replay/judge/values/inputs.h"
#include "replay/os/files.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kReaching = 1'000'003;  // a seed whose inputs reach bounds

std::string compiler_in_words(const TriageArgs& a, const XlaAnswer& answer, const Interpreter& who) {
  if (!answer.jaxlib.empty()) return "jaxlib " + answer.jaxlib;
  const std::string word = a.engine.engine.substr(std::min<size_t>(a.engine.engine.find(':'), a.engine.engine.size()));
  return word.size() > 1 && is_release(word.substr(1)) ? "jaxlib " + word.substr(1) : "the XLA of " + who.which;
}

// From the last pass on that it entered: what it printed before did not end it.
std::string end_of_log(const std::string& log) {
  const size_t entered = log.rfind("HLO pass ");
  const size_t line = entered == std::string::npos ? std::string::npos : log.rfind('\n', entered);
  return line == std::string::npos ? log : log.substr(line + 1);
}

}  // namespace

std::string engine_in_command(const TriageArgs& a) {
  std::string out = " --engine=" + shell_word(a.engine.engine);
  if (!a.engine.target.empty() && a.engine.target != "cpu") out += " --target=" + shell_word(a.engine.target);
  if (a.engine.partitions != 1) out += fmt::format(" --partitions={}", a.engine.partitions);
  if (a.engine.shardy) out += " --shardy";
  if (!a.engine.flags.empty()) out += " --xla-flags=" + shell_word(a.engine.flags);
  return out;
}

TriageSubject compiled_subject(const TriageArgs& given, const std::string& file, const std::string& scratch,
                               double limit) {
  TriageArgs a = given;
  const std::string dump = scratch + "/dump", log = scratch + "/log";
  fs::create_directory(dump);
  XlaQuestion options;
  take_options(a.engine, options);
  const Interpreter who = find_interpreter(a.engine.engine, options.target.platform, {a.engine.yes, a.engine.offline});
  ForXla from = for_xla(file, scratch);
  XlaQuestion q = std::move(from.question);
  take_options(a.engine, q);
  q.dump = dump, q.tells_passes = true, q.limit_seconds = limit;
  const XlaAnswer answer = ask_xla(who, q);
  if (answer.end == XlaAnswer::kRefused && answer.kind != "compile") require_answer(answer, who, q);
  if (in_words(answer, who, q).find("does not know a flag") != std::string::npos) require_answer(answer, who, q);
  if (!answer.ok()) {
    // What refuses says why; which pass it had entered tells nothing then.
    write_file(log, answer.end == XlaAnswer::kRefused ? answer.message + "\n" : end_of_log(answer.log) + "\n");
    a.log = log;
    if (a.complaint.empty() && answer.end == XlaAnswer::kTimedOut) a.complaint = "hang";
    if (a.complaint.empty() && !evidence_of(read_file(log), {}).complaint) a.complaint = "crash";
  }
  std::error_code error;
  std::string spec = file;
  if (!fs::is_empty(dump, error)) {
    const std::vector<Recording> all = open_folder(dump);
    const Recording& main = main_recording(all, "");
    spec = all.size() == 1 ? dump : fmt::format("{}:{:04}", dump, main.module_number);
  }
  TriageSubject s = triage_subject(a, {spec});
  s.label = given.what.at(0), s.compiled_from = file, s.scratch = scratch;
  s.compiler = compiler_in_words(a, answer, who), s.compiled = answer.ok(),
  s.ending = answer.ok() ? "" : ending_in_words(answer);
  s.notes = std::move(from.warnings);
  if (!answer.ok()) s.seen_from = s.ending;
  s.runs = answer.ok() && options.target.platform == "cpu" && a.engine.partitions == 1;
  return s;
}

std::string read_compiled(const TriageSubject& s, TriageVerdict& v) {
  if (!s.compiled) return fmt::format("{}: {}", s.compiler, s.ending);
  if (s.complaint == Complaint::kCrash || s.complaint == Complaint::kHang) {
    v.word = "nothing", v.sure = "proved", v.decided = true;
    v.why = s.compiler + " compiles it to its end";
  }
  return fmt::format("{}, {} stages", s.compiler, s.modules.empty() ? 0 : s.modules[0].rows.size());
}

namespace {

// What the installed XLA makes of `file` with the session's arguments on this CPU: an .npz below `scratch`, beside
// inputs.npz. Throws Failure where it does not run.
std::string outputs_by_xla(const TriageArgs& a, const std::string& file, const Module& m, const Session& session,
                           const std::string& scratch, double seconds) {
  ForXla from = for_xla(file, scratch);
  XlaQuestion q = std::move(from.question);
  take_options(a.engine, q);
  q.what = "run", q.limit_seconds = seconds;
  write_arguments(m, session, q, scratch);
  for (ShapeId leaf : leaf_shapes(m.u(), session.result_shape()))
    q.output_types.emplace_back(type_name(m.u()[leaf].type));
  q.output = scratch + "/outputs.npz";
  const Interpreter who = find_interpreter(a.engine.engine, "cpu", {a.engine.yes, a.engine.offline});
  require_answer(ask_xla(who, q), who, q);
  return q.output;
}

}  // namespace

int run_compiled(const TriageArgs& given, const TriageSubject& s, double seconds) {
  TriageArgs a = given;
  const std::string first = first_stage_of(s);
  InputOptions inputs = input_options(a);
  inputs.label = inputs.place = first;
  auto m = load_verified(first, !a.no_verify);
  settle_elided(*m, inputs);
  const Session session(*m, inputs);
  a.outputs = outputs_by_xla(a, s.compiled_from, *m, session, s.scratch, seconds);
  a.inputs = s.scratch + "/inputs.npz";
  show_inputs(*m, session, eval_options(a), s.scratch);
  return open_sites(a, first);
}

void show_reduced(const TriageArgs& given, const TriageSubject& s, const std::string& folder, double seconds) {
  if (given.engine.partitions == 1) write_file(folder + "/run_with_jax.py", jax_script());
  if (!s.runs) return;
  TriageArgs a = given;
  a.inputs.clear();
  const std::string file = folder + "/module.hlo";
  InputOptions inputs = input_options(a);
  inputs.label = inputs.place = file;
  const std::unique_ptr<Module> m = load_verified(file, !a.no_verify);
  Session session(*m, inputs);
  const std::vector<Value> own = session.arguments();
  for (const std::vector<Value>& arguments : {own, edge_arguments(*m, own), seeded_arguments(*m, kReaching, false)}) {
    session.set_arguments(arguments);
    const ExecutorInfo& evaluator = *find_executor("evaluator");
    const Value expected = session.run(*m, evaluator, eval_options(a), 1, false);
    const Value high = session.run(*m, evaluator, eval_options(a), 1, true);
    TemporaryFolder scratch;
    const std::string got = outputs_by_xla(a, file, *m, session, scratch.path(), seconds / 3);
    if (compare_results(m->u(), outputs_of(m->u(), got, expected.shape), expected, a.tolerance, &high).equal) continue;
    show_inputs(*m, session, eval_options(a), folder);
    return std::filesystem::rename(folder + "/shown.npz", folder + "/inputs.npz");
  }
}

// Is what XLA was given, by way of StableHLO, still the program? Prints as decide_finding does.
int compare_given(const TriageArgs& a, const TriageSubject& s) {
  TriageVerdict both;
  both.good_file = s.compiled_from, both.file = first_stage_of(s);
  return decide_finding(a, both, s.scratch);
}

std::string read_given(const Json& j, TriageVerdict& v) {
  const std::string verdict = j.value("verdict", ""), why = j.value("why", "");
  if (verdict == "wrong") {
    v.word = "below", v.sure = "tested", v.inputs = 1, v.decided = true;
    v.why = "no pass is the cause: what XLA was given, by way of StableHLO, is another program already: " + why;
    if (j.contains("output") && j["output"].is_object())
      v.details.push_back(fmt::format("{}: {} as the module says, {} as XLA was given it",
                                      j["output"].value("name", ""), j["output"].value("good", ""),
                                      j["output"].value("bad", "")));
  }
  return "what XLA was given, against the module: " + verdict + (why.empty() ? "" : ": " + why);
}

std::string read_run(const TriageArgs& a, const TriageSubject& s, const Json& j, TriageVerdict& v) {
  const std::string verdict = j.value("verdict", ""), why = j.value("why", "");
  std::string told = fmt::format("what {} gives on this CPU: {}: {}", s.compiler, verdict, why);
  if (verdict == "right") {
    // The rungs behind this one would ask it once more of the same inputs.
    v.decided = v.word == "nothing";
    if (v.decided) v.details.push_back(told);
  } else if (verdict == "wrong") {
    v.sure = "tested", v.inputs = 1;
    if (v.word == "nothing")
      v.word = "below",
      v.why = fmt::format("every stage gives the same, and what {} gives is wrong: {}", s.compiler, why);
    else
      v.why = fmt::format("what {} gives is wrong: {}; its stages were not compared to the end", s.compiler, why);
  } else if (verdict == "contract" || verdict == "rounding") {
    TriageArgs with = a;
    with.outputs = s.scratch + "/outputs.npz";
    return read_open_sites(with, j, v);
  }
  return told;
}

}  // namespace hlo
