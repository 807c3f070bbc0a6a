// bisect: the pass, then the rewrite, that turns good into bad.
#include <unistd.h>

#include <filesystem>

#include "ir/base/hash.h"
#include "ir/print.h"
#include "ir/snapshot.h"
#include "ir/verifier.h"
#include "passes/pipelines.h"
#include "replay/bisect.h"
#include "replay/cli/command.h"
#include "replay/diff.h"
#include "replay/diverge.h"
#include "replay/files.h"
#include "replay/recording.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

const char* word(Verdict v) { return v == Verdict::kGood ? "good" : v == Verdict::kBad ? "bad" : "unknown"; }

// Judgements on disk, so that a search that was cut off goes on where it was.
class Memory {
 public:
  // `what`: the oracle and the inputs; judgements by another one do not count.
  Memory(std::string path, std::string what) : path_(std::move(path)), what_(std::move(what)) {
    std::error_code ignored;
    if (path_.empty() || !fs::exists(path_, ignored)) return;
    Json j = Json::parse(read_file(path_), nullptr, false);
    if (!j.is_object() || j.value("version", 0) != 1)
      fail(FailureKind::kUsage, "{} is no file of an earlier bisect", path_);
    if (j.value("judge", "") != what_)
      fail(FailureKind::kUsage, "{} is of another search ({}); this one is: {}", path_, j.value("judge", ""), what_);
    known_ = j["judged"];
  }
  bool find(const std::string& key, Judgement* out) const {
    auto at = known_.find(key);
    if (at == known_.end()) return false;
    std::string v = at->value("verdict", "");
    out->verdict = v == "good" ? Verdict::kGood : v == "bad" ? Verdict::kBad : Verdict::kUnknown;
    out->detail = at->value("detail", ""), out->runs = at->value("runs", 1), out->agreed = at->value("agreed", 1);
    return true;
  }
  void add(const std::string& key, const Judgement& j) {
    if (path_.empty()) return;
    known_[key] = {{"verdict", word(j.verdict)}, {"detail", j.detail}, {"runs", j.runs}, {"agreed", j.agreed}};
    write_file(path_, Json{{"version", 1}, {"judge", what_}, {"judged", known_}}.dump(1) + "\n");
  }

 private:
  std::string path_, what_;
  Json known_ = Json::object();
};

// One row of candidates, the first expected to be good.
struct Row {
  std::vector<std::string> labels, keys;
  std::function<std::unique_ptr<Module>(size_t)> load;
};

Bisection search(const BisectArgs& a, const Row& row, const Judge& judge, Memory& memory, bool every,
                 std::map<size_t, Judgement> known = {}) {
  BisectOptions options;
  options.every = every;
  options.stop = interrupted;
  bool terminal = ::isatty(2) && !a.json;
  size_t done = known.size();
  options.judged = [&](size_t k, const Judgement& j) {
    if (!terminal) return;
    fmt::print(stderr, "\r{:>4} judged; {}: {:<60}", ++done, row.labels[k], word(j.verdict));
    std::fflush(stderr);
  };
  auto one = [&](size_t k) {
    Judgement out;
    if (memory.find(row.keys[k], &out)) return out;
    try {
      out = judge(*row.load(k));
    } catch (const Failure& e) {
      if (interrupted()) throw;
      // A stage that the verifier refuses is bad, one that cannot be read says nothing.
      std::string why = e.what();
      out = {e.kind() == FailureKind::kInvalid ? Verdict::kBad : Verdict::kUnknown,
             why.substr(0, why.find("\nthe module does not verify"))};
    }
    memory.add(row.keys[k], out);
    return out;
  };
  Bisection b = bisect(row.labels.size(), one, options, std::move(known));
  if (terminal) fmt::print(stderr, "\r{:100}\r", "");
  return b;
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
  size_t plus = 0, minus = 0, other = 0;
  for (const auto& l : d.lines) (l.sign == '+' ? plus : l.sign == '-' ? minus : other)++;
  f.json["difference"] = {{"added", plus}, {"removed", minus}, {"modified", other}};
  bool by_numbers = session && a.check.empty() && a.regex.empty() && !a.verify && a.slower <= 0;
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

void add_counts(Json& j, const Row& row, const Bisection& b) {
  Json unknown = Json::array();
  bool flaky = false;
  for (const auto& [k, v] : b.judged) {
    if (v.verdict == Verdict::kUnknown) unknown.push_back({{"stage", row.labels[k]}, {"why", v.detail}});
    flaky |= v.agreed < v.runs;
  }
  j["candidates"] = row.labels.size(), j["judged"] = b.judged.size(), j["unknown"] = unknown;
  if (flaky) {
    double worst = 1;
    for (const auto& [k, v] : b.judged) worst = std::min(worst, static_cast<double>(v.agreed) / v.runs);
    j["confidence"] = worst;
  }
}

int report(const BisectArgs& a, const Finding& f) {
  if (!a.out.empty()) {
    OutputFolder out(a.out, a.force);
    out.write("good.hlo", f.good_text), out.write("bad.hlo", f.bad_text);
    out.write("report.json", f.json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    out.commit();
  }
  if (a.json) {
    print_json(f.json);
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
  for (const Json& u : j["unknown"])
    fmt::print("not judged: {}: {}\n", u["stage"].get<std::string>(), u["why"].get<std::string>());
  if (j.contains("confidence"))
    fmt::print("the oracle wavers: at worst {:.0f} % of its runs agreed\n", 100 * j["confidence"].get<double>());
  fmt::print("{} of {} stages judged\n", j["judged"].get<size_t>(), j["candidates"].get<size_t>());
  if (!a.out.empty()) fmt::print("both stages and the report are in {}\n", a.out);
  fmt::print("{}\n", f.guilty);
  return kNo;
}

// Where nothing was found: what that means, and its exit code.
int nothing(const BisectArgs& a, const Row& row, const Bisection& b, const std::string& judge) {
  Json j;
  add_counts(j, row, b);
  std::string text;
  int code = kBad;
  switch (b.outcome) {
    case Bisection::kAllGood:
      text = fmt::format(
          "no bad stage: {} of {} judged by \"{}\"{}. If results are wrong all the same, the fault lies "
          "below HLO, in the inputs, or before the first stage",
          b.judged.size(), row.labels.size(), judge, a.quick ? " (the last only: --quick)" : "");
      code = j["unknown"].empty() ? kYes : kBad;
      break;
    case Bisection::kFirstBad:
      text = fmt::format("the first stage ({}) is bad already by \"{}\": {}. Nothing was tried beyond it",
                         row.labels[0], judge, b.judged.at(0).detail);
      break;
    case Bisection::kStopped:
      text = fmt::format("interrupted; {} of {} stages judged{}", b.judged.size(), row.labels.size(),
                         a.resume.empty() ? " (--resume=FILE keeps them)" : "");
      break;
    default:
      text = fmt::format("no stage could be judged by \"{}\": {}", judge,
                         b.judged.empty() ? "there is none" : b.judged.begin()->second.detail);
  }
  j["found"] = false, j["verdict"] = text;
  if (a.json) {
    print_json(j);
  } else {
    for (const Json& u : j["unknown"])
      fmt::print("not judged: {}: {}\n", u["stage"].get<std::string>(), u["why"].get<std::string>());
    fmt::print("{}\n", text);
  }
  return code;
}

bool needs_runs(const BisectArgs& a) { return a.check.empty() && a.regex.empty() && !a.verify; }

// The stages that a folder holds.
int bisect_folder(const BisectArgs& a) {
  std::vector<Recording> all = open_folder(a.file, false);
  JudgeOptions judged = judge_options(a);
  std::string words_of_judge = in_words(judged);
  int code = kYes;
  bool any = false;
  for (const Recording& r : all) {
    LoadOptions load_options;
    load_options.universe = std::make_shared<Universe>();
    InputOptions inputs = input_options(a);
    Row row;
    std::vector<size_t> rows;
    std::vector<std::string> paths;
    for (size_t k = 0; k < r.rows.size(); ++k) {
      const StageRow& s = r.rows[k];
      if (!s.file.ends_with(".txt") && !s.file.ends_with(".hlo")) continue;
      paths.push_back(r.folder + "/" + s.file);
      rows.push_back(k);
      row.labels.push_back(s.number > 0 ? fmt::format("{:04} {}", s.number, s.name()) : s.name());
      std::string text = a.resume.empty() ? std::string() : read_file(paths.back());
      row.keys.push_back(fmt::format("{} {:016x}", s.file, hash_bytes(text)));
    }
    if (row.labels.size() < 2) continue;
    any = true;
    row.load = [&](size_t k) {
      auto m = load_verified(paths[k], !a.no_verify && !a.verify, nullptr, load_options);
      inputs.label = paths[k];
      if (needs_runs(a)) settle_elided(*m, inputs);
      return m;
    };
    if (!a.json && all.size() > 1) fmt::print("module {:04} {}:\n", r.module_number, r.module_name);
    auto first = row.load(0);
    std::unique_ptr<Session> session;
    if (needs_runs(a)) {
      check_supported(*first);
      session = std::make_unique<Session>(*first, inputs);
    }
    Judge judge = make_judge(judged, *first, session.get());
    Memory memory(a.resume, fmt::format("{}, seed {}, module {}", words_of_judge, a.seed, r.module_number));
    std::map<size_t, Judgement> known;
    if (needs_runs(a)) known[0] = {Verdict::kGood, "the stage that the others are held against"};
    Bisection b = search(a, row, judge, memory, !a.quick, std::move(known));
    if (b.outcome != Bisection::kFound) {
      code = std::max(code, nothing(a, row, b, words_of_judge));
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
    add_counts(f.json, row, b);
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
  if (!any) fail(FailureKind::kUsage, "{} has no module with two stages or more", a.file);
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
  std::string text = lossless_text(*m);
  auto first = m->clone();
  JudgeOptions judged = judge_options(a);
  std::unique_ptr<Session> session;
  if (needs_runs(a)) {
    settle_elided(*m, inputs);
    first = m->clone();
    check_supported(*first);
    session = std::make_unique<Session>(*first, inputs);
  }
  // Every stage is kept: what comes before a stage is shared by all runs that go through it.
  struct Stage {
    Snapshot snapshot;
    PassEvent event;
  };
  Recorder recorder(m->universe());
  std::vector<Stage> stages;
  Row row;
  PipelineOptions passes;
  passes.verify = false;  // a module that does not verify is what may be looked for
  passes.stop = interrupted;
  passes.only = words(a.only), passes.disabled = words(a.disabled);
  for (const auto& set : {passes.only, passes.disabled})
    for (const std::string& name : set) pass_or_fail(name);
  uint64_t hash = hash_bytes(text);
  auto keep = [&](const PassEvent& e, const std::string& label) {
    stages.push_back({recorder.freeze(*m), e});
    row.labels.push_back(label);
    row.keys.push_back(fmt::format("{} {} {:016x}", row.keys.size(), label, hash));
  };
  keep({}, "the module as it came");
  passes.observe = [&](const Module&, const PassEvent& e) {
    if (e.kind != PassEvent::kPass || !e.changed) return;
    keep(e, fmt::format("{:04} {}.after_{}", stages.size(), e.pipeline, e.pass));
  };
  std::string broke;
  try {
    run_pipeline(*m, *steps, passes);
  } catch (const Failure& e) {
    if (interrupted()) throw;
    broke = e.what();
  }
  if (!broke.empty() && !a.json) fmt::print("the pipeline ends at stage {}: {}\n", stages.size(), broke);
  row.load = [&](size_t k) { return stages[k].snapshot.thaw(); };
  Judge plain = make_judge(judged, *first, session.get());
  // Whatever the oracle, a stage that does not verify is not run.
  JudgeOptions verifier;
  verifier.verify = true;
  Judge verify = make_judge(verifier, *first, nullptr);
  Judge judge = [&](const Module& c) {
    if (needs_runs(a) && !a.no_verify)
      if (Judgement v = verify(c); v.verdict == Verdict::kBad) return v;
    return plain(c);
  };
  std::string words_of_judge = in_words(judged);
  Memory memory(a.resume, fmt::format("{}, seed {}, pipeline {}", words_of_judge, a.seed, a.pipeline));
  std::map<size_t, Judgement> known;
  if (needs_runs(a)) known[0] = {Verdict::kGood, "what the others are held against"};
  Bisection b = search(a, row, judge, memory, !a.quick, std::move(known));
  if (b.outcome != Bisection::kFound) return nothing(a, row, b, words_of_judge);
  const PassEvent& event = stages[b.bad].event;
  Finding f;
  f.json = {{"found", true},
            {"module", m->name},
            {"good", row.labels[b.good]},
            {"bad", row.labels[b.bad]},
            {"why", b.judged.at(b.bad).detail},
            {"pass", event.pass},
            {"pipeline", event.pipeline}};
  add_counts(f.json, row, b);
  for (size_t k = 1; k < b.bad_ones.size(); ++k)
    f.json["other_bad"].push_back(row.labels[b.bad_ones[k]] + ": " + b.judged.at(b.bad_ones[k]).detail);
  f.guilty = fmt::format("guilty: pass {} of pipeline {}", event.pass, event.pipeline);
  // From the last good stage with less and less fuel.
  std::unique_ptr<Module> good = row.load(b.good), bad = row.load(b.bad);
  if (b.bad - b.good == 1 && event.rewrites > 1) {
    auto with_fuel = [&](int64_t fuel, PassEvent* e) {
      auto c = stages[b.good].snapshot.thaw();
      PassContext context;
      context.options = event.options;
      context.fuel = fuel;
      run_pass(*c, *find_pass(event.pass), context, passes, e);
      return c;
    };
    size_t count = static_cast<size_t>(event.rewrites) + 1;
    Row inner;
    for (size_t k = 0; k < count; ++k) {
      inner.labels.push_back(fmt::format("{} with {} rewrites", event.pass, k));
      inner.keys.push_back(fmt::format("{} fuel {}", row.keys[b.bad], k));
    }
    inner.load = [&](size_t k) {
      PassEvent ignored;
      return with_fuel(static_cast<int64_t>(k), &ignored);
    };
    Bisection w = search(a, inner, judge, memory, false, {{0, b.judged.at(b.good)}, {count - 1, b.judged.at(b.bad)}});
    if (w.outcome == Bisection::kFound) {
      PassEvent e;
      good = inner.load(w.good);
      bad = with_fuel(static_cast<int64_t>(w.bad), &e);
      f.json["rewrite"] = w.bad, f.json["rewrites"] = event.rewrites;
      f.json["runs_for_rewrite"] = w.runs;
      if (w.bad <= e.notes.size() && e.notes.size() == w.bad) {
        const Note& n = e.notes.back();
        f.json["rule"] = n.rule, f.json["instructions"] = n.names;
      }
    }
  } else if (event.rewrites == 1 && !event.notes.empty()) {
    f.json["rewrite"] = 1, f.json["rewrites"] = 1;
    for (const Note& n : event.notes) f.json["rule"] = n.rule, f.json["instructions"] = n.names;
  }
  if (f.json.contains("rule"))
    f.guilty += fmt::format(", rule \"{}\" on {}, its rewrite {} of {}", f.json["rule"].get<std::string>(),
                            fmt::join(f.json["instructions"].get<std::vector<std::string>>(), ", "),
                            f.json["rewrite"].get<int64_t>(), f.json["rewrites"].get<int64_t>());
  f.json["guilty"] = f.guilty;
  f.good_text = lossless_text(*good), f.bad_text = lossless_text(*bad);
  describe(a, *good, *bad, session.get(), f);
  return report(a, f);
}

}  // namespace

int cmd_bisect(const BisectArgs& a) {
  checked_executor(a);
  std::error_code ignored;
  return fs::is_directory(a.file, ignored) ? bisect_folder(a) : bisect_module(a);
}

}  // namespace hlo
