#include "replay/judge/judge.h"

#include <regex.h>

#include <algorithm>

#include "ir/eval/compare.h"
#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "replay/judge/values/stages.h"
#include "replay/os/files.h"
#include "replay/os/process/spawn.h"

namespace hlo {
namespace {

// A regular expression as grep -E takes it.
class Pattern {
 public:
  explicit Pattern(const std::string& text) {
    if (int code = ::regcomp(&re_, text.c_str(), REG_EXTENDED | REG_NOSUB); code) {
      char why[200];
      ::regerror(code, &re_, why, sizeof(why));
      fail(FailureKind::kUsage, "the regular expression /{}/ is none: {}", text, why);
    }
  }
  ~Pattern() { ::regfree(&re_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  bool matches(const std::string& line) const { return ::regexec(&re_, line.c_str(), 0, nullptr, 0) == 0; }

 private:
  regex_t re_;
};

Judgement by_command(const JudgeOptions& o, const Module& m) {
  TemporaryFolder folder;
  std::string file = folder.path() + "/module.hlo";
  write_file(file, lossless_text(m));
  std::string line = o.command;
  if (line.find("{}") == std::string::npos) line += " {}";
  for (size_t at = 0; (at = line.find("{}", at)) != std::string::npos;) {
    std::string path = shell_word(file);
    line.replace(at, 2, path), at += path.size();
  }
  int count[3] = {0, 0, 0};
  std::string detail;
  for (int k = 0; k < o.repeat; ++k) {
    int code = 0;
    try {
      code = run_shell(line);
    } catch (const Failure& e) {
      throw OracleFailure(e.kind(), e.what());
    }
    if (code == 126 || code == 127)
      throw OracleFailure(FailureKind::kUsage, fmt::format("the command cannot be run (exit code {}): {}", code, line));
    ++count[code == 0 ? 0 : code == 125 ? 2 : 1];
    detail = fmt::format("exit code {}", code);
  }
  Judgement out;
  out.runs = o.repeat;
  size_t most = static_cast<size_t>(std::max_element(count, count + 3) - count);
  out.verdict = most == 0 ? Verdict::kGood : most == 1 ? Verdict::kBad : Verdict::kUnknown;
  out.agreed = count[most];
  out.detail = out.agreed == out.runs ? detail : fmt::format("{} of {} runs agree", out.agreed, out.runs);
  return out;
}

double best_time(const JudgeOptions& o, const Module& m, const Session& session) {
  Execution e;
  session.run(m, *find_executor(o.backend), o.eval, std::max(o.repeat, 3), false, &e);
  return e.run_s;
}

}  // namespace

ResultComparison::ResultComparison(const Module& first, const Session& session, const std::string& backend,
                                   const EvalOptions& options, double tolerance, bool stages)
    : first_(first), session_(session), executor_(*find_executor(backend)), options_(options), tolerance_(tolerance) {
  // Other backends compile a stage as a whole.
  if (stages && backend == "evaluator")
    stages_ = std::make_unique<Stages>(session, options, bytes_to_keep(0), StageTypes::kOwn);
  uint64_t known = 0;
  std::shared_ptr<StageModule> module;
  Stages::Ran ran;
  if (stages_ && stages_->run(first, false, &module, &ran))
    expected_ = stages_->result(first, ran), known = ran.known;
  else
    expected_ = session_.run(first, executor_, options_, 1, false);
  compared(expected_, known);
}
ResultComparison::~ResultComparison() = default;

const Comparison& ResultComparison::of(const Module& m, bool last) {
  if (stages_ && last) stages_->keep_no_more();
  std::shared_ptr<StageModule> module;
  Stages::Ran ran;
  if (!stages_ || !stages_->run(m, false, &module, &ran))
    return compared(session_.run(m, executor_, options_, 1, false), 0);
  if (ran.known == known_) return last_;
  return compared(stages_->result(m, ran), ran.known);
}

const Comparison& ResultComparison::by_operations(const Module& m, int64_t* rounded) {
  *rounded = 0;
  if (!stages_) return of(m);
  std::shared_ptr<StageModule> module;
  Stages::Ran ran;
  if (!stages_->run(m, true, &module, &ran)) return compared(session_.run(m, executor_, options_, 1, false), 0);
  if (ran.rounded && !equal_.contains(ran.known) && !stages_->run(m, false, &module, &ran))
    return compared(session_.run(m, executor_, options_, 1, false), 0);
  *rounded = ran.rounded;
  if (ran.known == known_) return last_;
  return compared(stages_->result(m, ran), ran.known);
}

const Comparison& ResultComparison::compared(const Value& got, uint64_t known) {
  const Universe& u = first_.u();
  known_ = 0;  // where comparing fails
  last_ = compare_results(u, got, expected_, tolerance_);
  if (!last_.equal) {
    if (!reference_.shape.valid()) reference_ = session_.run(first_, *find_executor("evaluator"), options_, 1, true);
    last_ = compare_results(u, got, expected_, tolerance_, &reference_);
  }
  known_ = known;
  if (known && last_.equal) equal_.insert(known);
  return last_;
}

Judgement good_within(const Comparison& c) {
  Judgement out{Verdict::kGood, ""};
  out.error = 0;
  double nearest = -1;
  for (const OutputComparison& o : c.outputs) {
    double share = o.tolerance > 0 ? o.relative / o.tolerance : o.relative;
    if (share <= nearest) continue;
    nearest = share, out.error = o.relative, out.tolerance = o.tolerance;
    out.where = o.worst < 0 ? "" : fmt::format("{}[{}]", o.name, fmt::join(o.index, ","));
  }
  return out;
}

std::string in_words(const JudgeOptions& o) {
  if (o.verify) return "the verifier accepts it";
  if (!o.command.empty()) return fmt::format("`{}` exits 0", o.command);
  if (!o.regex.empty()) return fmt::format("its text does not match /{}/", o.regex);
  if (o.slower > 0) return fmt::format("it takes at most {} times what the first takes", o.slower);
  return "its results equal the first one's";
}

Judge make_judge(const JudgeOptions& o, const Module& first, const Session* session) {
  if (o.verify)
    return [](const Module& m) {
      std::vector<VerifyError> errors = verify_module(m, 1);
      return errors.empty() ? Judgement{Verdict::kGood, ""}
                            : Judgement{Verdict::kBad, fmt::format("{} [{}]", errors[0].message, errors[0].rule)};
    };
  if (!o.command.empty()) return [o](const Module& m) { return by_command(o, m); };
  if (!o.regex.empty()) {
    auto re = std::make_shared<Pattern>(o.regex);
    return [re](const Module& m) {
      std::string text = lossless_text(m);
      for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        if (re->matches(line)) return Judgement{Verdict::kBad, "matches: " + line.substr(0, 200)};
        at = end + 1;
      }
      return Judgement{Verdict::kGood, ""};
    };
  }
  HLO_CHECK(session, "a comparison that runs modules needs inputs");
  if (o.slower > 0) {
    double limit = best_time(o, first, *session) * o.slower;
    return [o, limit, session](const Module& m) {
      double s = best_time(o, m, *session);
      return Judgement{s > limit ? Verdict::kBad : Verdict::kGood, fmt::format("{:.6f} s, {:.6f} allowed", s, limit)};
    };
  }
  auto results = std::make_shared<ResultComparison>(first, *session, o.backend, o.eval, o.tolerance, o.stages);
  return [results, behind_edge = o.behind_edge](const Module& m) {
    check_supported(m);
    const Comparison& c = results->of(m);
    for (const OutputComparison& d : c.outputs)
      if (c.equal && behind_edge && d.relative > d.tolerance)
        return Judgement{Verdict::kUnknown,
                         fmt::format("{} is off by {:.3g}, {:.3g} is allowed, and f64 does not decide "
                                     "after rounding at a discontinuity",
                                     d.name, d.relative, d.tolerance)};
    if (c.equal) return good_within(c);
    const OutputComparison& d = *c.first_difference();
    return Judgement{Verdict::kBad, fmt::format("{} {}: {}", d.name, d.shape, d.why)};
  };
}

}  // namespace hlo
