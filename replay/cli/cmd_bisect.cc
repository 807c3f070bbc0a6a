// bisect: the pass, then the rewrite, that turns good into bad.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "ir/base/hash.h"
#include "ir/eval/compare.h"
#include "ir/print.h"
#include "ir/verifier.h"
#include "passes/pipelines.h"
#include "replay/bisect.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/confined_path.h"
#include "replay/diff.h"
#include "replay/diverge.h"
#include "replay/files.h"
#include "replay/npz.h"
#include "replay/progress.h"
#include "replay/record/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

BisectOptions search_options(Progress& progress, bool every) {
  BisectOptions options;
  options.every = every;
  options.stop = interrupted;
  options.judged = [&progress, done = size_t{0}](const std::string& label, const Judgement& j) mutable {
    progress.at(++done, 0, fmt::format("judged; {}: {}", label, word(j.verdict)));
  };
  return options;
}

std::vector<std::string> lines_of(const Module& m, const std::vector<InstId>& list, size_t most = 12) {
  std::vector<std::string> out;
  for (InstId i : list) {
    if (out.size() == most) {
      out.push_back(fmt::format("… and {} more", list.size() - most));
      break;
    }
    out.push_back(print_instruction(m, i));
  }
  return out;
}

std::string source_line(const Module& m, const std::vector<InstId>& list) {
  const Universe& u = m.u();
  for (InstId i : list) {
    const Metadata& d = u[m[i].meta];
    auto text = [&](uint32_t s) { return s == StrId::kNone ? std::string_view() : u.text(StrId(s)); };
    if (!text(d.source_file).empty())
      return fmt::format("{}:{} {}", text(d.source_file), d.source_line, text(d.op_name));
    if (!text(d.op_name).empty()) return std::string(text(d.op_name));
  }
  return {};
}

// What stands in the report, by either mode.
struct Finding {
  Json json;
  std::string guilty;  // the last line
  std::string good_text, bad_text;
};

// What the two stages differ in: where values part if they can be run, else the differing lines.
void describe(const BisectArgs& a, const Module& good, const Module& bad, const Session* session, Finding& f) {
  ModuleDiff d = diff_modules(good, bad);
  f.json["difference"] = {{"added", d.added}, {"removed", d.removed}, {"modified", d.modified}, {"moved", d.moved}};
  bool by_numbers = session && a.slower <= 0;
  if (by_numbers && verify_module(bad, 1).empty()) {  // what does not verify must not run
    try {
      Divergence w = first_divergence(good, bad, *session, eval_options(a), a.tolerance);
      if (w.found) {
        f.json["first_value_that_differs"] = {{"name", bad.inst_name(w.bad)},
                                              {"computation", bad.comp_name(bad.parent(w.bad))},
                                              {"difference", w.difference},
                                              {"certain", w.complete}};
        f.json["before"] = lines_of(good, w.before), f.json["after"] = lines_of(bad, w.after);
        std::string source = source_line(bad, w.after);
        if (source.empty()) source = source_line(good, w.before);
        if (!source.empty()) f.json["source"] = source;
        return;
      }
    } catch (const Failure& e) {
      f.json["no_values"] = e.what();
    }
  }
  Json before = Json::array(), after = Json::array();
  for (const auto& l : d.lines) {
    if (!l.first.empty() && before.size() < 12) before.push_back(l.first);
    if (!l.second.empty() && after.size() < 12) after.push_back(l.second);
  }
  f.json["before"] = before, f.json["after"] = after;
}

// What keeps a stage from being judged, without the names that differ from stage to stage: `m.txt:3:5: error: x` and
// `cannot evaluate dot.3 (…)` count as one kind.
std::string kind_of_reason(const std::string& detail) {
  std::string line = detail.substr(0, detail.find('\n'));
  if (size_t at = line.find(": error: "); at != std::string::npos) line.erase(0, at + 9);
  if (line.starts_with("cannot evaluate ")) {
    size_t open = line.find('('), in = line.find(" in computation ");
    size_t close = in == std::string::npos ? in : line.find("): ", in);
    if (open != std::string::npos && close != std::string::npos && open < in)
      line = fmt::format("cannot evaluate {}: {}", line.substr(open + 1, in - open - 1), line.substr(close + 3));
  }
  return line;
}

// Stages that were judged: asked about, and the answer was no "unknown".
size_t judged_count(const Bisection& b) {
  size_t n = 0;
  for (const auto& [k, v] : b.judged) n += v.verdict != Verdict::kUnknown;
  return n;
}

void add_counts(Json& j, const Candidates& row, const Bisection& b, bool numbers) {
  Json unknown = Json::array();
  std::map<std::string, size_t> reasons;
  bool flaky = false;
  const Judgement* worst = nullptr;
  size_t worst_stage = 0;
  for (const auto& [k, v] : b.judged) {
    if (v.verdict == Verdict::kUnknown) {
      unknown.push_back({{"stage", row.labels[k]}, {"why", v.detail}});
      ++reasons[kind_of_reason(v.detail)];
    }
    flaky |= v.agreed < v.runs;
    auto share = [](const Judgement& g) { return g.tolerance > 0 ? g.error / g.tolerance : g.error; };
    if (v.verdict == Verdict::kGood && v.error >= 0 && (!worst || share(v) > share(*worst)))
      worst = &v, worst_stage = k;
  }
  j["candidates"] = row.labels.size(), j["judged"] = judged_count(b), j["not_judged"] = unknown.size();
  Json list = Json::array();
  for (const auto& [why, count] : reasons) list.push_back({{"why", why}, {"stages", count}});
  std::stable_sort(list.begin(), list.end(), [](const Json& x, const Json& y) { return x["stages"] > y["stages"]; });
  j["reasons"] = list, j["unknown"] = unknown;
  if (numbers && worst) {
    j["worst_error"] = worst->error, j["tolerance"] = worst->tolerance;
    if (!worst->where.empty()) j["worst_stage"] = row.labels[worst_stage], j["worst_at"] = worst->where;
  }
  if (flaky) {
    double least = 1;
    for (const auto& [k, v] : b.judged) least = std::min(least, static_cast<double>(v.agreed) / v.runs);
    j["confidence"] = least;
  }
}

// `; 28 could not be judged: 20 cannot evaluate custom-call: …, 8 …`; empty where all could.
std::string not_judged_in_words(const Json& j) {
  size_t n = j["not_judged"].get<size_t>();
  if (!n) return {};
  std::string out = fmt::format("; {} could not be judged:", n);
  for (size_t k = 0; k < j["reasons"].size(); ++k)
    out += fmt::format("{} {} × {}", k ? "," : "", j["reasons"][k]["stages"].get<size_t>(),
                       j["reasons"][k]["why"].get<std::string>());
  return out;
}

// `; the worst error is 1e-6 of the largest magnitude, 0.0001 is allowed, at o0[3] of stage …`.
std::string worst_in_words(const Json& j) {
  if (!j.contains("worst_error")) return {};
  if (!j.contains("worst_at")) return "; every element of every result is the same";
  double error = j["worst_error"], tolerance = j["tolerance"];
  return fmt::format("; the worst error is {:.3g} of the largest magnitude ({:.3g} is allowed{}), at {} of stage {}",
                     error, tolerance, error > tolerance ? "; the f64 reference bears it out" : "",
                     j["worst_at"].get<std::string>(), j["worst_stage"].get<std::string>());
}

void show_unknown(const Json& j) {
  size_t shown = 0;
  for (const Json& u : j["unknown"]) {
    if (++shown > 10) break;
    fmt::print("not judged: {}: {}\n", u["stage"].get<std::string>(), u["why"].get<std::string>());
  }
  if (shown > 10) fmt::print("not judged: … and {} more (--json has them all)\n", j["unknown"].size() - 10);
}

int report(const BisectArgs& a, const Finding& f) {
  if (!a.out.empty()) {
    OutputFolder out(a.out, a.force);
    out.write("good.hlo", f.good_text), out.write("bad.hlo", f.bad_text);
    out.write("report.json", complete_bisection(f.json).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    out.commit();
  }
  if (a.json) {
    print_json(complete_bisection(f.json));
    return kNo;
  }
  const Json& j = f.json;
  fmt::print("good: {}\nbad:  {}\n      {}\n", j["good"].get<std::string>(), j["bad"].get<std::string>(),
             j["why"].get<std::string>());
  if (j.contains("first_value_that_differs")) {
    const Json& v = j["first_value_that_differs"];
    fmt::print("the first value that differs{}: {} in {}: {}\n", v["certain"].get<bool>() ? "" : " of those kept",
               v["name"].get<std::string>(), v["computation"].get<std::string>(), v["difference"].get<std::string>());
  }
  if (j.contains("no_values")) fmt::print("values could not be compared: {}\n", j["no_values"].get<std::string>());
  for (const char* side : {"before", "after"}) {
    fmt::print("{}:\n", side);
    for (const Json& line : j[side]) fmt::print("  {}\n", line.get<std::string>());
  }
  if (j.contains("source")) fmt::print("source: {}\n", j["source"].get<std::string>());
  if (j.contains("other_bad"))
    for (const Json& o : j["other_bad"]) fmt::print("also bad: {}\n", o.get<std::string>());
  show_unknown(j);
  if (j.contains("confidence"))
    fmt::print("the oracle wavers: at worst {:.0f} % of its runs agreed\n", 100 * j["confidence"].get<double>());
  fmt::print("{} of {} stages judged{}\n", j["judged"].get<size_t>(), j["candidates"].get<size_t>(),
             not_judged_in_words(j));
  if (!a.out.empty()) fmt::print("both stages and the report are in {}\n", a.out);
  fmt::print("{}\n", f.guilty);
  return kNo;
}

// Where nothing was found: what that means; `code` is the exit code.
Json nothing(const BisectArgs& a, const Candidates& row, const Bisection& b, const std::string& judge, int* code) {
  Json j;
  add_counts(j, row, b, a.by_running());
  size_t judged = judged_count(b);
  std::string text;
  *code = kBad;
  switch (b.outcome) {
    case Bisection::kAllGood:
      text = fmt::format(
          "no bad stage: {} of {} judged by \"{}\"{}{}{}. If results are wrong all the same, the fault lies "
          "below HLO, in the inputs, or before the first stage",
          judged, row.labels.size(), judge, a.quick ? " (the last only: --quick)" : "", worst_in_words(j),
          not_judged_in_words(j));
      *code = j["unknown"].empty() ? kYes : kBad;
      break;
    case Bisection::kFirstBad:
      text = fmt::format("the first stage ({}) is bad already by \"{}\": {}. Nothing was tried beyond it",
                         row.labels[0], judge, b.judged.at(0).detail);
      break;
    case Bisection::kStopped:
      text = fmt::format("interrupted; {} of {} stages judged{}{}", judged, row.labels.size(),
                         a.resume.empty() ? " (--resume=FILE keeps them)" : "", not_judged_in_words(j));
      break;
    default:
      text = judged ? fmt::format("only the first of {} stages could be judged by \"{}\"{}", row.labels.size(), judge,
                                  not_judged_in_words(j))
                    : fmt::format("no stage could be judged by \"{}\": {}", judge,
                                  b.judged.empty() ? "there is none" : b.judged.begin()->second.detail);
  }
  j["found"] = false, j["verdict"] = text;
  return j;
}

int tell(const BisectArgs& a, const Json& j, int code) {
  if (a.json) {
    print_json(complete_bisection(j));
    return code;
  }
  show_unknown(j);
  fmt::print("{}\n", j["verdict"].get<std::string>());
  return code;
}

// The stages that a folder holds.
// All stages agree: does the device, as its outputs or its backend tell? If not, the fault lies below HLO; with a
// backend the last stage is taken apart kernel by kernel.
int below_hlo(const BisectArgs& a, const Module& last, const std::string& path, Session& session, Json& told) {
  const ExecutorInfo& reference = *find_executor("evaluator");
  Value expected = session.run(last, reference, eval_options(a), 1, false);
  bool given = !a.outputs.empty();
  Value device = given ? outputs_of(last.u(), a.outputs, expected.shape)
                       : session.run(last, checked_executor(a), eval_options(a), 1, false);
  Value high = session.run(last, reference, eval_options(a), 1, true);
  Comparison c = compare_results(last.u(), device, expected, a.tolerance, &high);
  std::string who = given ? a.outputs : "backend " + a.backend;
  if (c.equal) {
    told["device"] = fmt::format("{} agrees with all of them", who);
    return kYes;
  }
  told["device"] = fmt::format("{} does not agree: {}: {}. The fault lies below HLO, in a kernel or in what calls it",
                               who, c.first_difference()->name, c.first_difference()->why);
  told["last_stage"] = path;
  return kNo;
}

int bisect_folder(const BisectArgs& a) {
  std::vector<Recording> all = select_modules(a.file);
  JudgeOptions judged = judge_options(a);
  std::string words_of_judge = in_words(judged);
  // Judgements of all modules go into one file: its keys are file names.
  JudgementFile memory(a.resume, fmt::format("{}, seed {}{}", words_of_judge, a.seed, a.inputs));
  int code = kYes;
  Json modules = Json::array();
  for (const Recording& r : all) {
    LoadOptions load_options;
    load_options.universe = std::make_shared<Universe>();
    InputOptions inputs = input_options(a);
    Candidates row;
    std::vector<size_t> rows;
    std::vector<std::string> paths;
    for (size_t k = 0; k < r.rows.size(); ++k) {
      const StageRow& s = r.rows[k];
      if (!s.file.ends_with(".txt") && !s.file.ends_with(".hlo")) continue;
      paths.push_back(confined_path(r.folder, s.file));
      rows.push_back(k);
      row.labels.push_back(s.number > 0 ? fmt::format("{:04} {}", s.number, s.name()) : s.name());
      std::string text = a.resume.empty() ? std::string() : read_file(paths.back());
      row.keys.push_back(fmt::format("{} {:016x}", s.file, hash_bytes(text)));
    }
    if (row.labels.size() < 2) continue;
    row.load = [&](size_t k) {
      auto m = load_verified(paths[k], !a.no_verify && !a.verify, nullptr, load_options);
      inputs.label = paths[k];
      if (a.by_running()) settle_elided(*m, inputs);
      return m;
    };
    if (!a.json && all.size() > 1) fmt::print("module {:04} {}:\n", r.module_number, r.module_name);
    std::unique_ptr<Module> first;
    std::unique_ptr<Session> session;
    Judge judge;
    try {
      first = row.load(0);
      if (a.by_running()) {
        check_supported(*first);
        session = std::make_unique<Session>(*first, inputs);
      }
      judge = make_judge(judged, *first, session.get());
    } catch (const Failure& e) {
      // Other modules of the folder may do.
      if (all.size() == 1 || interrupted()) throw;
      modules.push_back(
          {{"module", r.module_name}, {"found", false}, {"unknown", Json::array()}, {"verdict", e.what()}});
      if (!a.json) fmt::print("not judged: {}\n", e.what());
      code = kBad;
      continue;
    }
    std::map<size_t, Judgement> known;
    if (a.by_running()) known[0] = {Verdict::kGood, "the stage that the others are held against"};
    Bisection b = [&] {
      Progress progress("bisecting " + a.file);
      return search(row, judge, memory, search_options(progress, !a.quick), std::move(known));
    }();
    if (b.outcome != Bisection::kFound) {
      int one = kYes;
      Json j = nothing(a, row, b, words_of_judge, &one);
      j["module"] = r.module_name;
      bool ask = one == kYes && a.by_running() && session && (!a.outputs.empty() || a.backend != "evaluator");
      if (ask) {
        load_options.universe = first->universe();
        one = below_hlo(a, *row.load(row.labels.size() - 1), paths.back(), *session, j);
      }
      modules.push_back(j);
      if (!a.json) {
        tell(a, j, one);
        if (ask) fmt::print("{}\n", j["device"].get<std::string>());
      }
      if (ask && one == kNo && a.backend != "evaluator") {
        if (!a.json) fmt::print("kernel by kernel, on backend {}:\n", a.backend);
        IsolateArgs kernels;
        static_cast<RunArgs&>(kernels) = a;
        kernels.file = paths.back(), kernels.json = a.json;
        if (!a.json) cmd_isolate(kernels);
      } else if (ask && one == kNo && !a.json) {
        fmt::print("next: hlo-replay isolate {} --backend=BACKEND, which runs every kernel alone\n", paths.back());
      }
      code = std::max(code, one);
      continue;
    }
    const StageRow& bad = r.rows[rows[b.bad]];
    Finding f;
    f.json = {{"found", true},
              {"module", r.module_name},
              {"good", row.labels[b.good]},
              {"bad", row.labels[b.bad]},
              {"bad_file", bad.file},
              {"why", b.judged.at(b.bad).detail},
              {"pass", bad.pass},
              {"pipeline", bad.pipeline}};
    std::string between;
    if (b.bad - b.good > 1)
      between = fmt::format(" or one of the {} stages before it that cannot be judged", b.bad - b.good - 1);
    f.guilty = bad.kind == StageRow::kPass || !bad.pass.empty()
                   ? fmt::format("guilty: pass {} of pipeline {}, stage {}{}", bad.pass, bad.pipeline,
                                 row.labels[b.bad], between)
                   : fmt::format("guilty: what leads to stage {}{}", row.labels[b.bad], between);
    f.json["guilty"] = f.guilty;
    if (b.bad_ones.size() > 1)
      for (size_t k = 1; k < b.bad_ones.size(); ++k)
        f.json["other_bad"].push_back(row.labels[b.bad_ones[k]] + ": " + b.judged.at(b.bad_ones[k]).detail);
    add_counts(f.json, row, b, a.by_running());
    f.good_text = read_file(paths[b.good]), f.bad_text = read_file(paths[b.bad]);
    try {
      load_options.universe = first->universe();
      auto good = row.load(b.good);
      auto broken = load(paths[b.bad], load_options);
      describe(a, *good, *broken, session.get(), f);
    } catch (const Failure& e) {
      f.json["before"] = f.json["after"] = Json::array();
      f.json["no_values"] = e.what();
    }
    return report(a, f);
  }
  if (modules.empty()) fail(FailureKind::kUsage, "{} has no module with two stages or more", a.file);
  if (a.json) print_json(complete_bisection(modules.size() == 1 ? modules[0] : Json{{"modules", modules}}));
  return code;
}

// A module through our pipeline: its stages, then the rewrites of the pass.
int bisect_module(const BisectArgs& a) {
  const std::vector<Step>* steps = find_pipeline(a.pipeline);
  if (!steps) fail(FailureKind::kUsage, "unknown pipeline '{}'", a.pipeline);
  Loaded loaded;
  auto m = load_verified(a.file, !a.no_verify, &loaded);
  InputOptions inputs = input_options(a);
  inputs.snapshot = loaded.arguments;
  auto first = m->clone();
  JudgeOptions judged = judge_options(a);
  std::unique_ptr<Session> session;
  if (a.by_running()) {
    settle_elided(*m, inputs);
    first = m->clone();
    check_supported(*first);
    session = std::make_unique<Session>(*first, inputs);
  }
  PipelineOptions passes;
  passes.verify = false;  // a module that does not verify is what may be looked for
  passes.stop = interrupted;
  passes.only = words(a.only), passes.disabled = words(a.disabled);
  for (const auto& set : {passes.only, passes.disabled})
    for (const std::string& name : set) pass_or_fail(name);
  Judge plain = make_judge(judged, *first, session.get());
  // Whatever the oracle, a stage that does not verify is not run.
  JudgeOptions verifier;
  verifier.verify = true;
  Judge verify = make_judge(verifier, *first, nullptr);
  Judge judge = [&](const Module& c) {
    if (a.by_running() && !a.no_verify)
      if (Judgement v = verify(c); v.verdict == Verdict::kBad) return v;
    return plain(c);
  };
  std::string words_of_judge = in_words(judged);
  JudgementFile memory(a.resume,
                       fmt::format("{}, seed {}{}, pipeline {}", words_of_judge, a.seed, a.inputs, a.pipeline));
  PipelineBisection p = [&] {
    Progress progress("bisecting " + a.file);
    return bisect_pipeline(*m, *steps, passes, judge, a.by_running(), memory, search_options(progress, !a.quick));
  }();
  const Bisection& b = p.stages;
  if (!p.broke.empty() && !a.json)
    fmt::print("the pipeline ends at stage {}: {}\n", p.candidates.labels.size(), p.broke);
  if (b.outcome != Bisection::kFound) {
    int code = kYes;
    Json j = nothing(a, p.candidates, b, words_of_judge, &code);
    return tell(a, j, code);
  }
  Finding f;
  f.json = {{"found", true},
            {"module", m->name},
            {"good", p.candidates.labels[b.good]},
            {"bad", p.candidates.labels[b.bad]},
            {"why", b.judged.at(b.bad).detail},
            {"pass", p.event.pass},
            {"pipeline", p.event.pipeline}};
  add_counts(f.json, p.candidates, b, a.by_running());
  for (size_t k = 1; k < b.bad_ones.size(); ++k)
    f.json["other_bad"].push_back(p.candidates.labels[b.bad_ones[k]] + ": " + b.judged.at(b.bad_ones[k]).detail);
  f.guilty = fmt::format("guilty: pass {} of pipeline {}", p.event.pass, p.event.pipeline);
  if (p.rewrite > 0) {
    f.json["rewrite"] = p.rewrite, f.json["rewrites"] = p.event.rewrites;
    f.json["judged_for_rewrite"] = p.rewrites.judged.size();
    f.json["rule"] = p.note.rule, f.json["instructions"] = p.note.names;
    f.guilty += fmt::format(", rule \"{}\" on {}, its rewrite {} of {}", p.note.rule, fmt::join(p.note.names, ", "),
                            p.rewrite, p.event.rewrites);
  }
  f.json["guilty"] = f.guilty;
  f.good_text = lossless_text(*p.good), f.bad_text = lossless_text(*p.bad);
  describe(a, *p.good, *p.bad, session.get(), f);
  return report(a, f);
}

}  // namespace

int cmd_bisect(const BisectArgs& a) {
  if (a.file.empty() == a.program.empty()) fail(FailureKind::kUsage, "bisect takes a FILE, or --program");
  bool folder = names_modules(a.file);
  if (!a.outputs.empty()) {
    if (!folder || !a.by_running())
      fail(FailureKind::kUsage, "--outputs goes with a folder of stages that are judged by running them");
    read_npz(a.outputs);  // what cannot be read is told before the search
  }
  if (!a.program.empty()) return bisect_program(a);
  checked_executor(a);
  return folder ? bisect_folder(a) : bisect_module(a);
}

}  // namespace hlo
