// triage: the rungs, in the order of what they cost, each a command's own function in a process of its own.
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "ir/query/source_lines.h"
#include "replay/cli/engine.h"
#include "replay/cli/json_output.h"
#include "replay/cli/triage/triage.h"
#include "replay/compare/diff.h"
#include "replay/hunt/unordered.h"
#include "replay/installed/interpreter.h"
#include "replay/judge/arguments/memory.h"
#include "replay/judge/contract/check.h"
#include "replay/judge/values/inputs.h"
#include "replay/os/files.h"
#include "replay/record/files/run.h"

namespace hlo {

std::string inputs_in_command(const TriageArgs& a) {
  std::string out;
  if (!a.inputs.empty()) out += " --inputs=" + shell_word(a.inputs);
  if (a.seed != 1 || (a.seeded && a.inputs.empty())) out += fmt::format(" --seed={}", a.seed);
  return out;
}

namespace {

constexpr double kOnDrawnInputs = 5;  // seconds for what tells little of inputs that are not the program's

BisectArgs bisection_of(const TriageArgs& a, const TriageSubject& s) {
  BisectArgs b;
  static_cast<RunArgs&>(b) = a;
  b.file = s.spec, b.json = true, b.engine = a.engine, b.engine.engine = "own", b.engine.limit_seconds = 0;
  return b;
}

int bisect_within(BisectArgs b, double seconds) {
  b.engine.limit_seconds = std::round(seconds * 10) / 10;  // for a person
  return cmd_bisect(b);
}

TriageRung verify_rung(const TriageArgs& a, const TriageSubject& s) {
  TriageRung r{"check", 3, "hlo-replay bisect --verify " + subject_in_command(s), nullptr, nullptr, ""};
  if (s.kind == TriageSubject::kModule) {
    r.command = "hlo-replay verify " + subject_in_command(s);
    r.job = [file = s.spec](double) {
      load_verified(file, true);
      print_json({{"found", false}, {"verdict", "the verifier takes it"}, {"judged", 1}, {"not_judged", 0}});
      return kYes;
    };
  } else {
    r.job = [b = [&] {
      BisectArgs v = bisection_of(a, s);
      v.verify = true, v.inputs.clear();
      return v;
    }()](double seconds) { return bisect_within(b, seconds); };
  }
  r.read = [&s](const Json& j, int, TriageVerdict& v) { return read_verification(s, j, v); };
  return r;
}

TriageRung stages_rung(const TriageArgs& a, const TriageSubject& s) {
  TriageRung r{"stages", 20, "hlo-replay bisect " + subject_in_command(s) + inputs_in_command(a), nullptr, nullptr, ""};
  BisectArgs b = bisection_of(a, s);
  if (s.kind == TriageSubject::kDump && !a.outputs.empty())
    b.outputs = a.outputs, r.command += " --outputs=" + shell_word(a.outputs);
  const bool own = s.kind == TriageSubject::kModule;
  r.name = own ? "own-passes" : "stages";
  if (own && !s.scratch.empty()) b.out = s.scratch + "/own", b.force = true, r.command += " -o own";
  r.job = [b](double seconds) { return bisect_within(b, seconds); };
  r.read = [&s, own](const Json& j, int code, TriageVerdict& v) { return read_bisection(s, j, code, own, v); };
  return r;
}

// The stage that was found, or where none was the last one: does it give what the one before, or the first, leaves
// open?
TriageRung decide_rung(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found) {
  TriageRung r{"contract", 2, "", nullptr, nullptr, ""};
  TriageVerdict held = found;
  const bool stage = !found.good_file.empty() && found.file.is_string();
  if (!stage && s.kind != TriageSubject::kDump) r.left_out = "a module alone has no stages";
  if (!stage && s.kind == TriageSubject::kDump && s.modules.size() > 1)
    r.left_out = "several modules: name one, DIR:MODULE";
  if (!stage && r.left_out.empty()) held.good_file = first_stage_of(s), held.file = last_stage_of(s);
  if (held.good_file.empty() && r.left_out.empty()) r.left_out = "no stage has a text";
  if (!r.left_out.empty()) return r;
  r.command = fmt::format("hlo-replay exec {} --out=got.npz{}; hlo-replay check {} --inputs=got.npz --outputs=got.npz",
                          shell_word(held.file.get<std::string>()), inputs_in_command(a), shell_word(held.good_file));
  if (!stage && a.inputs.empty()) r.most = kOnDrawnInputs;
  r.job = [&a, &s, held](double) { return decide_finding(a, held, s.scratch); };
  r.read = [stage](const Json& j, int, TriageVerdict& v) {
    return stage ? read_decision(j, v) : read_last_stage(j, v);
  };
  return r;
}

TriageRung nan_rung(const TriageArgs& a, const TriageSubject& s) {
  const std::string file = first_stage_of(s);
  TriageRung r{
      "nan",
      2,
      "hlo-replay exec --nan " + shell_word(s.kind == TriageSubject::kDump ? file : s.label) + inputs_in_command(a),
      nullptr,
      nullptr,
      ""};
  if (file.empty()) r.left_out = "no stage has a text";
  ExecArgs e;
  static_cast<RunArgs&>(e) = a;
  e.file = file, e.nan = e.json = true;
  r.job = [e](double) { return cmd_exec(e); };
  r.read = [&s](const Json& j, int, TriageVerdict& v) { return read_nan(s, j, v); };
  return r;
}

TriageRung open_rung(const TriageArgs& a, const TriageSubject& s) {
  const std::string file = first_stage_of(s);
  TriageRung r{"left-open", 1, "", nullptr, nullptr, ""};
  const std::string word = shell_word(s.kind == TriageSubject::kDump ? file : s.label);
  r.command = a.outputs.empty() ? fmt::format(
                                      "hlo-replay exec {0} --out=o.npz{1}; hlo-replay check {0} --inputs=o.npz "
                                      "--outputs=o.npz",
                                      word, inputs_in_command(a))
                                : fmt::format("hlo-replay check {} --inputs={} --outputs={}", word,
                                              shell_word(a.inputs), shell_word(a.outputs));
  if (file.empty()) r.left_out = "no stage has a text";
  if (s.kind == TriageSubject::kDump && s.modules.size() > 1) r.left_out = "several modules: name one, DIR:MODULE";
  if (a.inputs.empty()) r.most = kOnDrawnInputs;
  r.job = [&a, file](double) { return open_sites(a, file); };
  r.read = [&a](const Json& j, int, TriageVerdict& v) { return read_open_sites(a, j, v); };
  return r;
}

// Those that were named, or those that are here already: nothing is taken from PyPI that nobody asked for.
std::string releases_of(const TriageArgs& a, BisectArgs* b) {
  if (!a.releases.empty()) return a.releases;
  if (!a.engine.installed()) return {};
  b->engine.offline = true, b->engine.yes = false;
  try {
    const std::vector<std::string> here = known_releases({false, true});
    return here.size() < 2 ? "" : here.front() + ".." + here.back();
  } catch (const Failure&) {  // there is no folder for them
    return {};
  }
}

// What an installed XLA says of the module.
TriageRung compilations_rung(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found,
                             const std::string& what) {
  const std::string engine = a.engine.installed() ? a.engine.engine : "installed";
  const std::string file = s.compiled_from.empty() ? first_stage_of(s) : s.compiled_from;
  TriageRung r{what, 5, "", nullptr, nullptr, ""};
  BisectArgs b = bisection_of(a, s);
  b.file = file, b.engine = a.engine, b.engine.engine = engine, b.engine.limit_seconds = 0;
  b.engine.offline = !a.engine.yes;
  std::string option;
  if (what == "passes") b.passes = true, option = " --passes --quick";
  if (what == "flags") b.flags = true, option = " --flags --xla-flags=" + shell_word(a.engine.flags);
  if (what == "releases") b.releases = releases_of(a, &b), option = " --releases=" + b.releases;
  // Which decision is not told, and of what has a culprit the pass not once more.
  b.quick = what == "passes" || found.pass.is_string();
  const bool whole = s.kind == TriageSubject::kModule || !s.compiled_from.empty();
  r.command = fmt::format("hlo-replay bisect {}{}{}{}", shell_word(whole ? s.label : file), engine_in_command(a),
                          option, inputs_in_command(a));
  if (s.complaint != Complaint::kCrash && s.complaint != Complaint::kHang && a.engine.target != "cpu")
    b.by = "value", r.command += " --by=value";
  if (s.complaint == Complaint::kCrash || s.complaint == Complaint::kHang)
    b.by = "crash", b.inputs.clear(), r.command += " --by=crash";
  if (file.empty()) r.left_out = "no stage has a text";
  if (s.kind == TriageSubject::kDump && s.modules.size() > 1) r.left_out = "several modules: name one, DIR:MODULE";
  if (what == "passes" && s.kind == TriageSubject::kDump && !a.engine.installed())
    r.left_out = "no installed XLA was named (--engine=installed)";
  const bool by_value = s.complaint == Complaint::kWrong || s.complaint == Complaint::kNan;
  if (what == "passes" && by_value && !s.compiled_from.empty() && !s.runs)
    r.left_out = "what it gives cannot be run on this machine: its stages are all that there is";
  if (what == "flags" && a.engine.flags.empty()) r.left_out = "no flag was named (--xla-flags)";
  if (what == "releases" && b.releases.empty())
    r.left_out = "no releases were named (--releases=A..B), and no two are here";
  r.job = [b, engine](double) {
    find_interpreter(engine, "cpu", {b.engine.yes, b.engine.offline});
    return cmd_bisect(b);
  };
  r.read = [&a, what](const Json& j, int code, TriageVerdict& v) {
    return what == "passes"  ? read_compilations(j, code, v)
           : what == "flags" ? read_flags(j, code, v)
                             : read_releases(a, j, code, v);
  };
  return r;
}

TriageRung compiled_rung(const TriageArgs& a, const TriageSubject& s) {
  TriageRung r{
      "compile", 1,       fmt::format("hlo-replay replay {}{} -o xla_dump", shell_word(s.label), engine_in_command(a)),
      nullptr,   nullptr, ""};
  r.read = [&s](const Json&, int, TriageVerdict& v) { return read_compiled(s, v); };
  return r;
}

// The line of the program, by what became of the instruction over the stages.
TriageRung source_rung(const TriageSubject& s, const TriageVerdict& found) {
  TriageRung r{"source", 1, "", nullptr, nullptr, ""};
  ExplainArgs e;
  const Json& name = found.before_name.is_string() ? found.before_name : found.instruction;
  if (s.kind != TriageSubject::kDump || s.modules.size() != 1) r.left_out = "there is no dump of one module";
  if (!name.is_string()) r.left_out = "no instruction is named";
  if (!r.left_out.empty()) return r;
  e.file = s.spec, e.instruction = name.get<std::string>(), e.json = true;
  r.command = fmt::format("hlo-replay explain {} {}", subject_in_command(s), shell_word(e.instruction));
  r.job = [e](double) { return cmd_explain(e); };
  r.read = [](const Json& j, int, TriageVerdict& v) { return read_source(j, v); };
  return r;
}

TriageRung given_rung(const TriageArgs& a, const TriageSubject& s) {
  TriageRung r{"given", 2, "", nullptr, nullptr, ""};
  r.command = fmt::format("hlo-replay diff {} {} --run", shell_word(s.label), shell_word(first_stage_of(s)));
  if (is_stablehlo(s.compiled_from)) r.left_out = "it is StableHLO, which has no meaning here but by XLA's translation";
  if (first_stage_of(s).empty()) r.left_out = "no stage has a text";
  if (a.inputs.empty()) r.most = kOnDrawnInputs;
  r.job = [&a, &s](double) { return compare_given(a, s); };
  r.read = [](const Json& j, int, TriageVerdict& v) { return read_given(j, v); };
  return r;
}

TriageRung run_rung(const TriageArgs& a, const TriageSubject& s) {
  TriageRung r{"run", 5, "", nullptr, nullptr, ""};
  r.command =
      fmt::format("hlo-replay check {} --inputs=inputs.npz --outputs=outputs.npz", shell_word(first_stage_of(s)));
  if (!s.runs) r.left_out = "what was compiled for another target or several devices cannot be run on this machine";
  r.job = [&a, &s](double seconds) { return run_compiled(a, s, seconds); };
  r.read = [&a, &s](const Json& j, int, TriageVerdict& v) { return read_run(a, s, j, v); };
  return r;
}

TriageRung kernels_rung(const TriageArgs& a, const TriageSubject& s) {
  TriageRung r{"below-hlo", 2, "hlo-replay check --kernels=dump " + subject_in_command(s), nullptr, nullptr, ""};
  CheckArgs c;
  static_cast<RunArgs&>(c) = a;
  c.file = s.spec, c.inputs.clear(), c.kernels = "dump", c.json = true;
  if (s.kind != TriageSubject::kDump)
    r.left_out = "a module alone has no kernels";
  else if (s.modules.size() > 1)
    r.left_out = "several modules: name one, DIR:MODULE";
  r.job = [c](double) { return cmd_check(c); };
  r.read = [](const Json& j, int, TriageVerdict& v) { return read_kernels(j, v); };
  return r;
}

TriageRung words_rung(const TriageSubject& s) {
  TriageRung r{"last-words", 1, "hlo-replay open " + subject_in_command(s), nullptr, nullptr, ""};
  if (s.text.empty() && s.unfinished.empty())
    r.left_out = "there is no log (--log=FILE), and every module has its result";
  r.read = [&s](const Json&, int, TriageVerdict& v) { return read_last_words(s, v); };
  return r;
}

TriageRung memory_rung(const TriageArgs& a, const TriageSubject& s) {
  TriageRung r{"memory", 4, "hlo-replay memory --orders " + subject_in_command(s), nullptr, nullptr, ""};
  if (s.kind == TriageSubject::kLog) r.left_out = "there is no module: triage DIR --log=FILE";
  MemoryArgs m;
  m.file = s.spec, m.gpu = a.gpu, m.json = m.orders = true, m.most = 8;
  r.job = [m](double) { return cmd_memory(m); };
  r.read = [](const Json& j, int, TriageVerdict& v) { return read_memory(j, v); };
  return r;
}

TriageRung cost_rung(const TriageArgs& a, const TriageSubject& s) {
  TriageRung r{"cost", 4, "hlo-replay cost " + subject_in_command(s), nullptr, nullptr, ""};
  if (s.kind == TriageSubject::kLog) r.left_out = "there is no module: triage DIR";
  CostArgs c;
  c.file = s.spec, c.gpu = a.gpu, c.json = true;
  r.job = [c](double) { return cmd_cost(c); };
  r.read = [](const Json& j, int, TriageVerdict& v) { return read_cost(j, v); };
  return r;
}

TriageRung compile_time_rung(const TriageArgs& a, const TriageSubject& s) {
  CompileTimeArgs c;
  c.what = s.spec, c.json = true;
  TriageRung r{"compile-time", 5, "hlo-replay compile-time " + subject_in_command(s), nullptr, nullptr, ""};
  if (s.kind == TriageSubject::kModule) r.left_out = "a module by itself has no times";
  if (s.kind == TriageSubject::kDump && !a.log.empty()) c.log = a.log, r.command += " --log=" + shell_word(a.log);
  r.job = [c, &s](double) {
    return s.kind == TriageSubject::kLog ? compile_time_of_log(s.label, s.text, c) : cmd_compile_time(c);
  };
  r.read = [](const Json& j, int, TriageVerdict& v) { return read_compile_time(j, v); };
  return r;
}

Json site_json(const Module& m, const ContractSite& site) {
  const std::string source = source_line(m, site.inst).text();
  return {{"kind", contract_name(site.kind)},
          {"what", contract_words(site.kind)},
          {"instruction", m.inst_name(site.inst)},
          {"source", source.empty() ? Json() : Json(source)},
          {"elements", site.elements},
          {"decides", Json()}};
}

// Arguments as bisect made them, by what it says of them.
std::vector<Value> arguments_as_made(const Module& m, const std::vector<Value>& own, const std::string& made,
                                     uint64_t seed) {
  auto says = [&](const char* words) { return made.find(words) != std::string::npos; };
  if (made == "ties and indices at and beyond the bounds") return edge_arguments(m, own);
  if (says("of a size that layers keep")) return balanced_arguments(m, own);
  if (made.starts_with("seed ")) {
    uint64_t told = 0;
    for (size_t k = 5; k < made.size() && made[k] >= '0' && made[k] <= '9'; ++k)
      told = 10 * told + static_cast<uint64_t>(made[k] - '0');
    if (made.find_first_not_of("0123456789", 5) == std::string::npos && told != seed)
      return seeded_arguments(m, told, false);
  }
  const bool positive = says(", positive"), near = says("near 1");
  if (positive || near) return scaled_arguments(m, own, near ? 8 : 1, positive);
  return own;
}

}  // namespace

void show_inputs(const Module& m, const Session& session, const EvalOptions& options, const std::string& scratch) {
  if (scratch.empty()) return;
  const Value result = session.run(m, *find_executor("evaluator"), options, 1, false);
  std::vector<Value> leaves;
  flatten(m.u(), result, &leaves);
  save_arrays(m.u(), scratch + "/shown.npz", session.arguments(), {});
  save_arrays(m.u(), scratch + "/expected.npz", {}, leaves);
}

int decide_finding(const TriageArgs& a, const TriageVerdict& found, const std::string& scratch) {
  LoadOptions options;
  options.universe = std::make_shared<Universe>();
  InputOptions inputs = input_options(a);
  auto load_one = [&](const std::string& file) {
    auto m = load_verified(file, !a.no_verify, nullptr, options);
    inputs.label = inputs.place = file;
    settle_elided(*m, inputs);
    return m;
  };
  const std::unique_ptr<Module> good = load_one(found.good_file), bad = load_one(found.file.get<std::string>());
  foresee_memory(*good, found.good_file, "evaluator", true);
  Session session(*good, inputs);
  if (a.inputs.empty()) session.set_arguments(arguments_as_made(*good, session.arguments(), found.made, a.seed));
  show_inputs(*good, session, eval_options(a), scratch);
  const Value got = session.run(*bad, *find_executor("evaluator"), eval_options(a), 1, false);
  const CheckResult r = check_result(*good, session, got, eval_options(a));
  Json sites = Json::array();
  for (const DecidingSite& d : r.contracts) {
    if (d.asked && !d.decides) continue;
    Json j = site_json(*good, d.site);
    j["decides"] = d.asked ? Json(d.decides) : Json();
    sites.push_back(std::move(j));
  }
  Json output;
  for (const CheckedOutput& o : r.outputs)
    if (!o.compiled.empty() && (output.is_null() || o.verdict == r.verdict))
      output = {{"name", o.name}, {"index", o.index}, {"good", o.written}, {"bad", o.compiled}, {"exact", o.exact}};
  print_json({{"verdict", verdict_name(r.verdict)}, {"why", r.why}, {"contracts", sites}, {"output", output}});
  return kYes;
}

int open_sites(const TriageArgs& a, const std::string& file) {
  InputOptions inputs = input_options(a);
  inputs.label = inputs.place = file;
  auto m = load_verified(file, !a.no_verify);
  foresee_memory(*m, file, "evaluator", true);
  settle_elided(*m, inputs);
  const Session session(*m, inputs);
  const Value own = a.outputs.empty() ? session.run(*m, *find_executor("evaluator"), eval_options(a), 1, false)
                                      : outputs_of(m->u(), a.outputs, session.result_shape());
  const CheckResult r = check_result(*m, session, own, eval_options(a));
  Json sites = Json::array();
  for (const DecidingSite& d : r.contracts) {
    Json j = site_json(*m, d.site);
    j["decides"] = d.asked ? Json(d.decides) : Json();
    sites.push_back(std::move(j));
  }
  print_json({{"verdict", verdict_name(r.verdict)}, {"why", r.why}, {"contracts", sites}});
  return kYes;
}

int unordered_sites(const TriageSubject& s) {
  const std::string file = last_stage_of(s);
  const std::unique_ptr<Module> m = load(file);
  Json sites = Json::array(), reached = Json::array();
  const std::vector<Unordered> all = unordered_instructions(*m);
  for (const Unordered& u : all) {
    const std::string source = source_line(*m, u.inst).text();
    sites.push_back({{"kind", u.kind},
                     {"what", u.words},
                     {"instruction", m->inst_name(u.inst)},
                     {"source", source.empty() ? Json() : Json(source)},
                     {"elements", 0},
                     {"decides", u.certain ? Json(true) : Json()}});
  }
  for (const std::vector<size_t>& outputs : outputs_reached(*m, all)) {
    reached.push_back(Json::array());
    for (size_t k : outputs) reached.back().push_back(fmt::format("o{}", k));
  }
  print_json({{"contracts", sites}, {"reached", reached}});
  return kYes;
}

int compare_ranks(const TriageSubject& s) {
  Json ranks = Json::array();
  for (const std::string& other : s.others) {
    const std::vector<Recording> theirs = select_modules(other);
    std::vector<const Recording*> left;
    for (const Recording& r : theirs) left.push_back(&r);
    for (const Recording& r : s.modules) {
      const auto same =
          std::find_if(left.begin(), left.end(), [&](const Recording* o) { return o->module_name == r.module_name; });
      if (same == left.end()) {
        ranks.push_back({{"rank", other}, {"module", r.module_name}, {"first", "it is only in " + s.label}});
        continue;
      }
      ModuleDiff diff;
      const std::string words = first_difference(r, **same, &diff);
      if (!words.starts_with("same")) ranks.push_back({{"rank", other}, {"module", r.module_name}, {"first", words}});
      left.erase(same);
    }
    for (const Recording* r : left)
      ranks.push_back({{"rank", other}, {"module", r->module_name}, {"first", "it is only there"}});
  }
  print_json({{"ranks", ranks}});
  return ranks.empty() ? kYes : kNo;
}

namespace {

void add_by_value(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found,
                  std::vector<TriageRung>& out) {
  const bool module = s.kind == TriageSubject::kModule;
  if (s.complaint == Complaint::kNan) out.push_back(nan_rung(a, s));
  out.push_back(verify_rung(a, s));
  if (!s.compiled_from.empty()) out.push_back(given_rung(a, s));
  if (!module) out.push_back(stages_rung(a, s));
  if (module) out.push_back(stages_rung(a, s));
  out.push_back(decide_rung(a, s, found));
  out.push_back(source_rung(s, found));
  if (!s.compiled_from.empty()) out.push_back(run_rung(a, s));
  out.push_back(open_rung(a, s));
  for (const char* what : {"passes", "flags", "releases"}) out.push_back(compilations_rung(a, s, found, what));
  out.push_back(kernels_rung(a, s));
}

void add_by_ending(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found,
                   std::vector<TriageRung>& out) {
  // That stages end may be all that there is to see: then what is wrong in those that are there comes first.
  if (s.text.empty() && !s.seen_from.empty()) {
    out.push_back(verify_rung(a, s));
    out.push_back(stages_rung(a, s));
    out.push_back(decide_rung(a, s, found));
    out.push_back(words_rung(s));
    return;
  }
  out.push_back(words_rung(s));
  if (s.kind != TriageSubject::kLog) out.push_back(verify_rung(a, s));
  if (s.kind != TriageSubject::kLog)
    for (const char* what : {"passes", "flags", "releases"}) out.push_back(compilations_rung(a, s, found, what));
}

}  // namespace

std::vector<TriageRung> triage_rungs(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found) {
  std::vector<TriageRung> out;
  if (!s.compiled_from.empty()) out.push_back(compiled_rung(a, s));
  switch (s.complaint) {
    case Complaint::kWrong:
    case Complaint::kNan:
      add_by_value(a, s, found, out);
      break;
    case Complaint::kCrash:
    case Complaint::kHang:
      add_by_ending(a, s, found, out);
      break;
    case Complaint::kMemory:
      out.push_back(words_rung(s));
      if (s.vmem)
        add_vmem_rungs(a, s, out);
      else
        out.push_back(memory_rung(a, s));
      break;
    case Complaint::kSlow:
      out.push_back(cost_rung(a, s));
      break;
    case Complaint::kCompileTime:
      out.push_back(compile_time_rung(a, s));
      break;
    case Complaint::kRanksDiffer:
      out.push_back(
          {"ranks", 5,
           "hlo-replay diff " + subject_in_command(s) + (s.others.empty() ? "" : " " + shell_word(s.others[0])),
           [&s](double) { return compare_ranks(s); },
           [](const Json& j, int, TriageVerdict& v) { return read_ranks(j, v); },
           s.others.empty() ? "one folder alone: triage DIR0 DIR1 …" : ""});
      break;
    case Complaint::kNotReproducible:
      add_rungs_of_runs(a, s, out);
      break;
  }
  return out;
}

}  // namespace hlo
