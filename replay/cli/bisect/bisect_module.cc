// bisect of one module through our pipeline.
#include "ir/base/memory.h"
#include "ir/print/print.h"
#include "passes/pipelines/pipelines.h"
#include "replay/cli/bisect/bisect_report.h"
#include "replay/cli/json_output.h"
#include "replay/judge/values/inputs.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace {

// What bisect_pipeline() asks where it looks inside. All but `a` and `options` must outlive the search.
struct PipelineInside {
  const Module& first;
  const Session& session;
  const Judge &judge, &verify;
  JudgementFile& memory;
  std::unique_ptr<InsideSearch> found;
  Json told = Json::object();

  void ask(const BisectArgs& a, BisectOptions& options) {
    InsideOptions o;
    o.eval = eval_options(a), o.stop = options.stop, o.judged = options.judged;
    BisectOptions last = options;
    last.every = false;
    options.stages = [this, o, last, &a](const Candidates& row, std::map<size_t, Judgement> known) {
      Candidates verified = row;
      verified.load = [&](size_t k) {
        auto c = row.load(k);
        Judgement v = a.no_verify ? Judgement{Verdict::kGood, ""} : verify(*c);
        if (v.verdict == Verdict::kBad) fail(FailureKind::kInvalid, "{}", v.detail);
        return c;
      };
      found = std::make_unique<InsideSearch>(search_inside(verified, first, session, o));
      add_inside(told, row, *found, a.inputs.empty() ? fmt::format("seed {}", a.seed) : a.inputs);
      Bisection b = found->found;
      if (b.outcome != Bisection::kAllGood) return b;
      // In f64 all is the same; rounding may have gone wrong all the same.
      found.reset();
      Bisection own = search(row, judge, memory, last, std::move(known));
      if (own.outcome != Bisection::kAllGood) return own;
      for (auto& [k, j] : own.judged)
        if (k > 0) b.judged[k] = j;
      return b;
    };
    options.beside = [this, o, &a](const Module& good) -> Judge {
      if (!found) return judge;
      Judge in = inside_judge(good, session, o);
      return [this, in, &a](const Module& c) {
        Judgement v = a.no_verify ? Judgement{Verdict::kGood, ""} : verify(c);
        return v.verdict == Verdict::kBad ? v : in(c);
      };
    };
  }
  // Of the stages around the fault; false where nothing is found inside.
  bool describe(const BisectArgs& a, const Module& good, const Module& bad, Finding& f) {
    if (!found || verify(bad).verdict != Verdict::kGood) return false;
    Inside two(session, eval_options(a), bytes_to_keep(0));
    two.first(good);
    InsideStage s = two.next(bad);
    if (!s.findings.empty()) describe_inside(good, bad, s, f);
    return !s.findings.empty();
  }
};

}  // namespace

// A module through our pipeline: its stages, then the rewrites of the pass.
int bisect_module(const BisectArgs& a) {
  Loaded loaded;
  auto m = load_verified(a.file, !a.no_verify, &loaded);
  const std::string pipeline = pipeline_for(a.pipeline, a.file, loaded.of_2019);
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
  passes.given = gpu_options_for(pipeline, a.file);
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
  JudgementFile memory(a.resume, fmt::format("{}, seed {}{}, pipeline {}", words_of_judge, a.seed, a.inputs, pipeline));
  std::unique_ptr<PipelineInside> inside;
  PipelineBisection p = [&] {
    Progress progress("bisecting " + a.file);
    BisectOptions options = search_options(progress, !a.quick);
    if (session && a.looks_inside() && bytes_inside(*first) <= available_memory().bytes / 2) {
      inside.reset(new PipelineInside{*first, *session, judge, verify, memory, nullptr});
      inside->ask(a, options);
    }
    return bisect_pipeline(*m, *find_pipeline(pipeline), passes, judge, a.by_running(), memory, options);
  }();
  const Bisection& b = p.stages;
  if (!p.broke.empty() && !a.json)
    fmt::print("the pipeline ends at stage {}: {}\n", p.candidates.labels.size(), p.broke);
  if (b.outcome != Bisection::kFound) {
    int code = kYes;
    Json j = nothing(a, p.candidates, b, words_of_judge, &code, inside ? &inside->told : nullptr);
    j["module"] = m->name();
    return tell(a, j, code);
  }
  Finding f;
  f.json = complete_bisection(Json::object());
  if (inside)
    for (const auto& item : inside->told.items()) f.json[item.key()] = item.value();
  f.json["found"] = true, f.json["module"] = m->name();
  f.json["good"] = p.candidates.labels[b.good], f.json["bad"] = p.candidates.labels[b.bad];
  f.json["why"] = b.judged.at(b.bad).detail;
  f.json["pass"] = p.event.pass, f.json["pipeline"] = p.event.pipeline;
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
  if (!inside || !inside->describe(a, *p.good, *p.bad, f)) describe(a, *p.good, *p.bad, session.get(), f);
  return report(a, f);
}

}  // namespace hlo
