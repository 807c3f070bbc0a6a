// check: is a compiled result right?
#include <filesystem>
#include <map>

#include "gpu_exec/driver/cuda.h"
#include "ir/query/find_instruction.h"
#include "ir/query/source_lines.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/cli/kept_arguments.h"
#include "replay/emitted/emitted_judge.h"
#include "replay/judge/arguments/memory.h"
#include "replay/judge/contract/check.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/process/spawn.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace {

Json empty_check() {
  return {{"verdict", ""},
          {"why", ""},
          {"outputs", Json::array()},
          {"contracts", Json::array()},
          {"other_bits", Json::array()},
          {"reference", Json()},
          {"departs", Json()},
          {"kernels", Json()},
          {"inputs_from", Json()}};
}

Json to_json(const CheckedOutput& o) {
  Json j{{"name", o.name},         {"shape", o.shape},         {"verdict", verdict_name(o.verdict)},
         {"elements", o.elements}, {"different", o.different}, {"rounded", o.rounded},
         {"open", o.open},         {"wrong", o.wrong}};
  bool differs = !o.compiled.empty();
  j["index"] = differs ? Json(o.index) : Json();
  j["compiled"] = differs ? Json(o.compiled) : Json();
  j["written"] = differs ? Json(o.written) : Json();
  j["exact"] = differs ? Json(o.exact) : Json();
  j["error"] = o.error < 0 ? Json() : finite_or_null(o.error);
  j["error_as_written"] = o.error_written < 0 ? Json() : finite_or_null(o.error_written);
  return j;
}

Json to_json(const Module& m, const DecidingSite& d) {
  InstId i = d.site.inst;
  std::string source = source_line(m, i).text();
  Json together = Json::array();
  for (Contract c : d.together) together.push_back(contract_name(c));
  return {{"kind", contract_name(d.site.kind)},
          {"what", contract_words(d.site.kind)},
          {"instruction", m.inst_name(i)},
          {"opcode", op_text(m.op(i))},
          {"computation", m.comp_name(m.parent(i))},
          {"op_name", op_name_of(m, i)},
          {"source", source.empty() ? Json() : Json(source)},
          {"elements", d.site.elements},
          {"decides", d.asked ? Json(d.decides) : Json()},
          {"reproduces", d.reproduces},
          {"together", together}};
}

constexpr size_t kInstructionsNamed = 20;

Json to_json(const Module& m, const OtherBits& b) {
  Json list = Json::array();
  for (InstId i : b.at) {
    if (list.size() == kInstructionsNamed) break;
    const std::string source = source_line(m, i).text();
    list.push_back({{"instruction", m.inst_name(i)}, {"source", source.empty() ? Json() : Json(source)}});
  }
  return {{"kind", b.kind},
          {"what", b.words},
          {"elements", b.elements},
          {"instructions", list},
          {"instructions_in_all", b.at.size()}};
}

// What the program gives without this compilation, held against the module that XLA was given.
Json of_reference(const CheckArgs& a, const Module& m, const Session& session) {
  const CheckResult r =
      check_result(m, session, outputs_of(m.u(), a.reference, session.result_shape()), eval_options(a));
  Json out{{"verdict", verdict_name(r.verdict)}, {"outputs", Json::array()}};
  for (const CheckedOutput& o : r.outputs) out["outputs"].push_back(to_json(o));
  out["why"] = r.verdict == CheckVerdict::kWrong
                   ? "the module that XLA was given does not make what the reference holds: what is wrong, or "
                     "different, is before XLA (tracing, lowering), or in the reference"
               : r.verdict == CheckVerdict::kUnknown ? r.why
                                                     : "the module that XLA was given makes what the reference holds";
  return out;
}

// Where the program has what departs: by the stage that departs, else by the module before any pass.
void add_place(const CheckArgs& a, const Module& first, const Json& answer, Json& out) {
  const Json& value = answer["first_value_that_differs"];
  if (!value.is_object()) return;
  out["instruction"] = value["name"];
  auto take = [&](const Module& m, const Json& name) {
    InstId i = name.is_string() ? find_instruction(m, name.get<std::string>()) : InstId();
    if (!i.valid() || !out["source"].is_null()) return;
    if (std::string s = source_line(m, i).text(); !s.empty()) out["source"] = s;
    if (std::string s = op_name_of(m, i); !s.empty()) out["op_name"] = s;
  };
  for (const Recording& r : select_modules(a.dump)) {
    if (r.module_name != answer["module"]) continue;
    take(*load(confined_path(r.folder, answer["bad_file"].get<std::string>())), value["name"]);
  }
  take(first, value["before"]);
}

// What bisect says of the stages, asked as a command: it prints its answer.
Json departs(const CheckArgs& a, const Module& first) {
  TemporaryFolder folder;
  Command command;
  command.log = folder.path() + "/answer";
  command.words = {std::filesystem::read_symlink("/proc/self/exe").string(),
                   "bisect",
                   a.dump,
                   "--inputs=" + a.inputs,
                   "--outputs=" + a.outputs,
                   "--json"};
  if (!a.fill_elided.empty()) command.words.push_back("--fill-elided=" + a.fill_elided);
  run_command(command);
  std::string text = read_file(command.log);
  size_t brace = text.find('{');
  Json answer = brace == std::string::npos ? Json() : Json::parse(text.substr(brace), nullptr, false);
  Json out{{"stage", Json()},       {"pass", Json()},    {"pipeline", Json()}, {"file", Json()},     {"why", Json()},
           {"instruction", Json()}, {"op_name", Json()}, {"source", Json()},   {"below_hlo", false}, {"verdict", ""}};
  if (!answer.is_object()) {
    out["verdict"] = "bisect gave no answer";
    return out;
  }
  if (answer.contains("error")) {
    out["verdict"] = answer["error"]["message"];
    return out;
  }
  if (answer.value("found", false)) {
    out["stage"] = answer["bad"], out["pass"] = answer["pass"], out["pipeline"] = answer["pipeline"];
    out["file"] = answer["bad_file"], out["why"] = answer["why"], out["verdict"] = answer["guilty"];
    add_place(a, first, answer, out);
  } else {
    out["below_hlo"] = !answer["last_stage"].is_null();
    Json said = answer[answer["device"].is_null() ? "verdict" : "device"];
    out["verdict"] = said.is_string() ? said : Json("no stage of several modules differs");
  }
  return out;
}

//   other bits: 3 elements: dot.5 (model.py:12) and 2 more: adds up in an order that HLO leaves open
void tell_bits(const Json& b) {
  fmt::print("  other bits: {} number(s)", b["elements"].get<int64_t>());
  size_t named = 0;
  for (const Json& i : b["instructions"]) {
    if (named == 3) break;
    fmt::print("{}{}{}", named++ ? ", " : ": ", i["instruction"].get<std::string>(),
               i["source"].is_null() ? "" : " (" + i["source"].get<std::string>() + ")");
  }
  if (const auto all = b["instructions_in_all"].get<size_t>(); all > named) fmt::print(" and {} more", all - named);
  fmt::print(": {}\n", b["what"].get<std::string>());
}

void tell(const Json& j) {
  fmt::print("{}: {}\n", j["verdict"].get<std::string>(), j["why"].get<std::string>());
  for (const Json& o : j["outputs"]) {
    fmt::print("  {} {}: {}", o["name"].get<std::string>(), o["shape"].get<std::string>(),
               o["verdict"].get<std::string>());
    if (o["index"].is_null()) {
      fmt::print(", every element the same\n");
      continue;
    }
    fmt::print(", {} of {} elements differ", o["different"].get<int64_t>(), o["elements"].get<int64_t>());
    if (!o["error"].is_null() && !o["error_as_written"].is_null())
      fmt::print("; against f64 off by {:.3g} times the largest magnitude, as written by {:.3g}",
                 o["error"].get<double>(), o["error_as_written"].get<double>());
    fmt::print("\n    at [{}]: compiled {}, as written {}, in f64 {}\n",
               fmt::join(o["index"].get<std::vector<int64_t>>(), ","), o["compiled"].get<std::string>(),
               o["written"].get<std::string>(), o["exact"].get<std::string>());
  }
  for (const Json& c : j["contracts"]) {
    const Json& d = c["decides"];
    fmt::print("  {} ({}){} {}; {} element(s){}\n", c["instruction"].get<std::string>(), c["opcode"].get<std::string>(),
               c["source"].is_null() ? "" : " at " + c["source"].get<std::string>(), c["what"].get<std::string>(),
               c["elements"].get<int64_t>(),
               d.is_null()                   ? ""
               : !d.get<bool>()              ? ": does not decide"
               : c["reproduces"].get<bool>() ? ": decides, another value gives what was compiled"
                                             : ": decides");
    if (!c["together"].empty())
      fmt::print("    together with {}\n", fmt::join(c["together"].get<std::vector<std::string>>(), " and "));
  }
  for (const Json& b : j["other_bits"]) tell_bits(b);
  if (const Json& r = j["reference"]; !r.is_null()) fmt::print("reference: {}\n", r["why"].get<std::string>());
  if (const Json& from = j["inputs_from"]; !from.is_null()) fmt::print("inputs: {}\n", from.get<std::string>());
  if (j["departs"].is_null()) return;
  const Json& d = j["departs"];
  fmt::print("{}\n", d["verdict"].get<std::string>());
  if (!d["instruction"].is_null())
    fmt::print("  first {}{}\n", d["instruction"].get<std::string>(),
               d["source"].is_null() ? "" : " at " + d["source"].get<std::string>());
}

}  // namespace

namespace {

Json to_json(const JudgedKernel& k) {
  Json j{{"instruction", k.instruction},
         {"kernel", k.kernel},
         {"file", k.file},
         {"thunk", k.thunk},
         {"times", k.times},
         {"verdict", kernel_verdict_name(k.verdict)},
         {"why", k.why},
         {"index", Json()},
         {"xla", Json()},
         {"evaluator", Json()}};
  for (const OutputComparison& o : k.outputs)
    if (!o.equal && o.worst >= 0 && j["index"].is_null())
      j["index"] = o.index, j["xla"] = o.value_a, j["evaluator"] = o.value_b;
  return j;
}

std::string in_words(KernelVerdict v) {
  return v == KernelVerdict::kOutside  ? "WRITES OUTSIDE"
         : v == KernelVerdict::kFaults ? "FAULTS"
         : v == KernelVerdict::kNotRun ? "not run"
         : v == KernelVerdict::kEqual  ? "equal"
                                       : "DIFFERENT";
}

// check --kernels=dump: every kernel of XLA's by itself.
int check_kernels(const CheckArgs& a) {
  if (!a.inputs.empty() || !a.outputs.empty() || !a.reference.empty() || !a.dump.empty())
    fail(FailureKind::kUsage,
         "--kernels draws its inputs: it goes with neither --inputs, --outputs, --reference nor "
         "--dump");
  if (std::string why = cuda_unavailable(); !why.empty()) fail(FailureKind::kUnsupported, "--kernels: {}", why);
  const Recording r = select_module(a.file);
  const std::string file = emitted_module_file(r);
  auto m = load_verified(confined_path(r.folder, file), !a.no_verify);
  const EmittedProgram program = read_emitted(r, file, *m);
  EmittedJudgeOptions options;
  options.inputs = input_options(a), options.eval = eval_options(a), options.tolerance = a.tolerance;
  options.only = a.only, options.device = [] { return cuda_device(); };
  Progress progress("kernels of " + a.file);
  options.progress = [&](size_t done, size_t all, const std::string& kernel) { progress.at(done, all, kernel); };
  options.told = [&](const JudgedKernel& k) {
    if (a.json) return;
    Progress::clear();
    fmt::print("{:<15} {}{}{}{}\n", in_words(k.verdict), printable(k.kernel),
               k.instruction == k.kernel ? "" : fmt::format(" of {}", printable(k.instruction)),
               k.times > 1 ? fmt::format(", {} times", k.times) : "", k.why.empty() ? "" : ": " + printable(k.why));
  };
  const std::vector<JudgedKernel> judged = judge_emitted(*m, program, options);
  if (judged.empty())
    fail(FailureKind::kUsage, "{} launches no kernel{}", a.file, a.only.empty() ? "" : " whose name holds " + a.only);
  Progress::clear();
  std::map<KernelVerdict, size_t> count;
  Json list = Json::array();
  for (const JudgedKernel& k : judged) {
    ++count[k.verdict];
    list.push_back(to_json(k));
  }
  const size_t equal = count[KernelVerdict::kEqual], unrun = count[KernelVerdict::kNotRun],
               bad = judged.size() - equal - unrun;
  const CheckVerdict verdict = bad ? CheckVerdict::kWrong : unrun ? CheckVerdict::kUnknown : CheckVerdict::kRight;
  const std::string why =
      fmt::format("of {} kernels {} equal the evaluator, {} do not, {} were not run", judged.size(), equal, bad, unrun);
  if (a.json) {
    Json j = empty_check();
    j["verdict"] = verdict_name(verdict), j["why"] = why;
    j["kernels"] = {{"module", m->name()}, {"launched", list}, {"unused", program.unused}};
    print_json(j);
  } else {
    fmt::print("{}: {}\n", verdict_name(verdict), why);
    for (const std::string& u : program.unused) fmt::print("  no thunk launches {}\n", printable(u));
  }
  return bad ? kNo : unrun ? kBad : kYes;
}

}  // namespace

// Of a folder, or a stage of one, what is not named: the first stage, the arguments that the program had and what it
// gave for them, the stages. The words for where inputs are from; empty where they are named.
static std::string take_own(CheckArgs& a) {
  std::optional<Recording> r;
  if (names_modules(a.file)) {
    r = select_module(a.file);
    a.file = first_text(*r);
  } else if (std::optional<StageChoice> stage = stage_of(a.file)) {
    r = stage->module;
  }
  if (!r) return {};
  if (a.dump.empty()) a.dump = fmt::format("{}:{}", r->folder, r->module_number);
  if (!a.inputs.empty() || !keeps_arguments(*r, "")) return {};
  const KeptArguments kept = own_arguments(*r, *load_verified(a.file, !a.no_verify), a);
  if (kept.inputs.empty()) return {};
  if (a.outputs.empty() && kept.outputs.empty())
    fail(FailureKind::kUsage, "{}: what the program gave for it was not kept: --outputs is wanted, o0, o1 …",
         kept.in_words);
  a.inputs = kept.inputs;
  if (a.outputs.empty()) a.outputs = kept.outputs;
  return kept.in_words;
}

int cmd_check(const CheckArgs& given) {
  CheckArgs a = given;
  if (!a.kernels.empty()) return check_kernels(a);
  const std::string from = take_own(a);
  if (a.inputs.empty()) fail(FailureKind::kUsage, "--inputs is wanted: what the compiled module was given, p0, p1 …");
  if (a.outputs.empty()) fail(FailureKind::kUsage, "--outputs is wanted: what it gave, o0, o1 …");
  Loaded loaded;
  auto m = load_verified(a.file, !a.no_verify, &loaded);
  InputOptions inputs = input_options(a);
  Json j = empty_check();
  if (!from.empty()) j["inputs_from"] = from;
  CheckVerdict verdict = CheckVerdict::kUnknown;
  try {
    foresee_memory(*m, a.file, "evaluator", true);
    settle_elided(*m, inputs);
    Session session(*m, inputs);
    Value got = outputs_of(m->u(), a.outputs, session.result_shape());
    CheckResult r = check_result(*m, session, got, eval_options(a));
    verdict = r.verdict, j["why"] = r.why;
    for (const CheckedOutput& o : r.outputs) j["outputs"].push_back(to_json(o));
    for (const DecidingSite& d : r.contracts) j["contracts"].push_back(to_json(*m, d));
    for (const OtherBits& b : r.other_bits) j["other_bits"].push_back(to_json(*m, b));
    if (!a.reference.empty()) j["reference"] = of_reference(a, *m, session);
    if (verdict == CheckVerdict::kWrong && !a.dump.empty()) j["departs"] = departs(a, *m);
  } catch (const Failure& e) {
    if (e.kind() != FailureKind::kUnsupported || interrupted()) throw;
    j["why"] = e.what();
  }
  j["verdict"] = verdict_name(verdict);
  if (a.json)
    print_json(j);
  else
    tell(j);
  const Json& reference = j["reference"];
  const bool apart = !reference.is_null() && reference["verdict"] == verdict_name(CheckVerdict::kWrong);
  const bool unknown = verdict == CheckVerdict::kUnknown ||
                       (!reference.is_null() && reference["verdict"] == verdict_name(CheckVerdict::kUnknown));
  return verdict == CheckVerdict::kWrong || apart ? kNo : unknown ? kBad : kYes;
}

}  // namespace hlo
