// Small modules run by the evaluator: values at every node, two states held against each other, the first that is bad.
#include <algorithm>
#include <chrono>

#include "ir/base/check.h"
#include "ir/eval/compare.h"
#include "ir/eval/evaluator.h"
#include "ir/print/print.h"
#include "ir/program/buffer.h"
#include "ir/query/source_lines.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "replay/hunt/bisect.h"
#include "replay/judge/arguments/inputs.h"
#include "replay/judge/arguments/memory.h"
#include "replay/judge/diverge.h"
#include "replay/judge/nan_watch.h"
#include "viewer/engine/session.h"

namespace hlo {
namespace {

// What the page's tab can bear.
constexpr double kMostOperations = 2e9, kMostBytes = 1.0 * (1 << 30);
constexpr int64_t kMostSteps = 1000000;
constexpr double kMostSeconds = 30;

void foresee_run(const Module& m) {
  if (int64_t devices = devices_needed(m); devices > 1)
    fail(FailureKind::kUnsupported, "the module runs on {} devices, the page on one; hlo-replay exec simulates them",
         devices);
  check_supported(m);
  Cost cost = CostAnalysis(m).of_computation(m.entry());
  const double operations = cost.flops + cost.transcendentals + cost.bytes() / 4;
  if (operations > kMostOperations)
    fail(FailureKind::kUnsupported,
         "the module takes {:.1f} thousand million operations, the page does {:.0f}; hlo-replay exec runs it",
         operations / 1e9, kMostOperations / 1e9);
  const double bytes = memory_need(m, false, false).sum();
  if (bytes > kMostBytes)
    fail(FailureKind::kUnsupported, "the module takes {} of memory, the page gives {}; hlo-replay exec runs it",
         human_bytes(static_cast<int64_t>(std::min(bytes, 9e18))), human_bytes(static_cast<int64_t>(kMostBytes)));
}

EvalOptions bounded_run() {
  EvalOptions out;
  out.max_while_steps = kMostSteps;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kMostSeconds);
  out.stop = [end] { return std::chrono::steady_clock::now() > end; };
  return out;
}

struct RunInputs {
  uint64_t seed = 1;
  std::string literals, fill;
};
RunInputs run_inputs(const Question& q) {
  RunInputs out;
  out.seed = static_cast<uint64_t>(q.number_or("seed", 0, INT64_MAX, 1));
  out.literals = q.text_or("inputs", ""), out.fill = q.text_or("fill", "");
  if (!out.fill.empty() && out.fill != "random" && out.fill != "zeros")
    fail(FailureKind::kUsage, "fill must be random or zeros");
  return out;
}

// In the universe of `with`, where that is given.
std::unique_ptr<Module> runnable(PageSession& session, StateRef at, const RunInputs& in, const Module* with = nullptr) {
  std::unique_ptr<Module> m = session.copy_of(at);
  check_verifies(*m);
  if (with && with->universe() != m->universe()) m = parse_module(lossless_text(*m), with->universe());
  if (std::vector<InstId> elided = m->elided_constants(); !elided.empty() && in.fill.empty())
    fail(FailureKind::kUnsupported,
         "constant {} is elided ({{...}}): its value is unknown; fill with random or zeros runs it with made-up values",
         m->inst_name(elided[0]));
  foresee_run(*m);
  InputOptions options;
  options.seed = in.seed, options.fill_elided = in.fill, options.label = m->name();
  settle_elided(*m, options);
  return m;
}

std::vector<Value> run_arguments(const Module& m, const RunInputs& in) {
  return in.literals.empty() ? seeded_arguments(m, in.seed, false) : literal_arguments(m, in.literals, "inputs");
}

// --- evaluate ---

// In full where it is small, else its beginning.
std::string value_text(Universe& u, const Value& v) {
  constexpr int64_t kShown = 64, kSample = 16;
  const Shape& s = u[v.shape];
  if (s.is_tuple()) return fmt::format("a tuple of {}", v.elements.size());
  if (!s.is_array()) return {};
  if (s.elements_count() <= kShown) return literal_text(u, u.literal(literal_of_value(u, v)), true, true);
  Shape part;
  part.type = s.type, part.dims = {kSample};
  Value sample;
  sample.shape = u.shape(part);
  sample.data = std::make_shared<std::vector<char>>(v.bytes(), v.bytes() + kSample * storage_bytes(s.type));
  std::string text = literal_text(u, u.literal(literal_of_value(u, sample)), true, true);
  if (text.ends_with('}')) text.pop_back();
  return text + ", ...}";
}

// Of each instruction the value that it had last.
class ValueList {
 public:
  explicit ValueList(const Module& m) : m_(m), watch_(m, false), listen_(watch_.listener()) {}

  void see(InstId i, std::span<const Value> operands, const Value& v) {
    ++times_[i];
    last_[i] = v;
    if (nan_.empty()) try {
        listen_(i, operands, v);
      } catch (const Failure& e) {
        nan_ = e.what();
      }
  }

  Json json() {
    Json out = Json::array();
    Universe& u = m_.u();
    for (CompId c : print_order(m_, true))
      for (InstId i : print_order(m_, c)) {
        auto found = last_.find(i);
        if (found == last_.end()) continue;
        const Value& v = found->second;
        Statistics s = statistics(u, v);
        const bool finite = s.elements > s.nan + s.inf;
        auto number = [&](double x) { return finite && s.numbers ? Json(x) : Json(); };
        out.push_back({{"id", i.value},
                       {"shape", u.shape_text_plain(v.shape)},
                       {"text", value_text(u, v)},
                       {"min", number(s.min)},
                       {"max", number(s.max)},
                       {"mean", number(s.sum / static_cast<double>(std::max<int64_t>(s.elements - s.nan - s.inf, 1)))},
                       {"nan", s.nan},
                       {"inf", s.inf},
                       {"elements", s.elements},
                       {"times", times_[i]}});
      }
    return out;
  }
  std::string note() const {
    std::string out = nan_.empty() ? watch_.text() : nan_;
    if (!watch_.brought().empty())
      out += fmt::format("{}NaN came in with {}", out.empty() ? "" : "\n", watch_.brought());
    return out;
  }

 private:
  const Module& m_;
  NanWatch watch_;
  std::function<void(InstId, std::span<const Value>, const Value&)> listen_;
  std::string nan_;
  std::unordered_map<InstId, Value> last_;
  std::unordered_map<InstId, int64_t> times_;
};

// Values are kept, not only those that live at once.
void foresee_values(const Module& m) {
  double bytes = 0;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) bytes += static_cast<double>(m.u().bytes(m.shape_id(i)).capped());
  if (bytes > kMostBytes)
    fail(FailureKind::kUnsupported, "its values take {} in all, the page keeps {}; hlo-replay exec runs it",
         human_bytes(static_cast<int64_t>(std::min(bytes, 9e18))), human_bytes(static_cast<int64_t>(kMostBytes)));
}

Json q_evaluate(PageSession& session, const Question& q) {
  q.only({"at", "seed", "inputs", "fill"});
  const StateRef at = q.state("at");
  const RunInputs in = run_inputs(q);
  std::unique_ptr<Module> m = runnable(session, at, in);
  foresee_values(*m);
  ValueList values(*m);
  EvalOptions options = bounded_run();
  options.trace = [&](InstId i, std::span<const Value> operands, const Value& v) { values.see(i, operands, v); };
  const auto start = std::chrono::steady_clock::now();
  Evaluator(*m, options).run(run_arguments(*m, in));
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return {{"ran", true}, {"ms", ms}, {"seed", in.seed}, {"values", values.json()}, {"note", values.note()}};
}

// --- compare ---

std::string comparison_text(const Comparison& c) {
  std::string out;
  for (const OutputComparison& o : c.outputs) {
    out += out.empty() ? "" : "\n";
    if (o.equal)
      out += fmt::format("{} {}: equal", o.name, o.shape);
    else
      out += fmt::format("{} {}: {}", o.name, o.shape, o.why);
    if (o.worst >= 0)
      out += fmt::format("; at [{}] {} and {}, off by {:.3g} of the largest", fmt::join(o.index, ","), o.value_a,
                         o.value_b, o.relative);
  }
  return out;
}

// The instruction whose value output number `leaf` is, as far as the root's tuple tells.
InstId output_of(const Module& m, const Comparison& c) {
  InstId root = m.comp(m.entry()).root;
  if (m.op(root) != Opcode::Tuple) return root;
  size_t leaf = 0;
  while (leaf < c.outputs.size() && &c.outputs[leaf] != c.first_difference()) ++leaf;
  size_t first = 0;
  for (InstId o : m.operands(root)) {
    first += m.u().leaf_count(m.shape_id(o));
    if (leaf < first) return o;
  }
  return root;
}

void check_same_parameters(const Module& a, const Module& b) {
  const std::vector<InstId>&x = a.comp(a.entry()).params, &y = b.comp(b.entry()).params;
  bool same = x.size() == y.size();
  for (size_t k = 0; same && k < x.size(); ++k) same = a.u().compatible(a.shape_id(x[k]), b.shape_id(y[k]));
  same = same && a.u().compatible(a.shape_id(a.comp(a.entry()).root), b.shape_id(b.comp(b.entry()).root));
  if (!same) fail(FailureKind::kUsage, "the two take other parameters, or give other results");
}

Json q_compare(PageSession& session, const Question& q) {
  q.only({"a", "b", "seed", "inputs", "fill"});
  const StateRef a = q.state("a"), b = q.state("b");
  const RunInputs in = run_inputs(q);
  std::unique_ptr<Module> first = runnable(session, a, in), second = runnable(session, b, in, first.get());
  check_same_parameters(*first, *second);
  const std::vector<Value> arguments = run_arguments(*first, in);
  Value x = Evaluator(*first, bounded_run()).run(arguments);
  Value y = Evaluator(*second, bounded_run()).run(arguments);
  Comparison c = compare_results(first->u(), y, x);
  Json differs;
  if (const OutputComparison* o = c.first_difference()) {
    // By name: where universes differ, the ids of the copy are its own.
    const std::string name(second->inst_name(output_of(*second, c)));
    differs = {{"id", json_of(session.state(b)->named(name))}, {"name", name}, {"text", o->why}};
  }
  return {{"equal", c.equal}, {"text", comparison_text(c)}, {"first", std::move(differs)}};
}

// --- bisect ---

class StateSearch {
 public:
  StateSearch(PageSession& session, uint32_t module, const RunInputs& in) : session_(session), in_(in) {
    first_ = runnable(session, {module, 0}, in);
    arguments_ = run_arguments(*first_, in);
    expected_ = Evaluator(*first_, bounded_run()).run(arguments_);
  }

  // Of two states that follow each other, the second bad: the first instruction there with another value, and what that
  // is made of, back to where values agree. By name: the copies that ran have ids of their own.
  Json first_difference(StateRef good, StateRef bad) {
    std::unique_ptr<Module> a = runnable(session_, good, in_, first_.get());
    std::unique_ptr<Module> b = runnable(session_, bad, in_, first_.get());
    auto run = [&](const Module& m, const EvalOptions& traced) { return Evaluator(m, traced).run(arguments_); };
    Divergence d = first_divergence(*a, *b, run, bounded_run(), -1, static_cast<int64_t>(kMostBytes));
    if (!d.found) return {};
    auto ids = [&](StateRef at, const Module& m, const std::vector<InstId>& list) {
      std::shared_ptr<OpenState> s = session_.state(at);
      Json out = Json::array();
      for (InstId i : list)
        if (InstId own = s->named(m.inst_name(i)); own.valid()) out.push_back(own.value);
      return out;
    };
    SourceLine source = source_of(*b, d.after);
    if (!source.known()) source = source_of(*a, d.before);
    const Json own = ids(bad, *b, {d.bad});
    return {{"at", json_of(bad)},
            {"id", own.empty() ? Json() : own[0]},
            {"name", b->inst_name(d.bad)},
            {"text", d.difference},
            {"source", source.text()},
            {"file", program_file(bad.module, source)},
            {"before", ids(good, *a, d.before)},
            {"after", ids(bad, *b, d.after)}};
  }

  // States 0 to count - 1 of a module whose state 0 is good.
  Bisection over(uint32_t module, size_t count) {
    Candidates row;
    for (size_t k = 0; k < count; ++k) {
      row.labels.push_back(fmt::format("state {}", k));
      row.keys.push_back(fmt::format("{} {}", module, k));
    }
    row.load = [&, module](size_t k) { return session_.copy_of({module, static_cast<uint32_t>(k)}); };
    JudgementFile nowhere("", "");
    BisectOptions options;
    return search(row, [&](const Module& m) { return judged(m); }, nowhere, options,
                  {{0, {Verdict::kGood, "what the others are compared with"}}});
  }

 private:
  // The recording's file that holds the program, `MODULE.model.py` for `model.py`; empty where it has none.
  std::string program_file(uint32_t module, const SourceLine& source) const {
    const std::string base = source.file.substr(source.file.rfind('/') + 1);
    if (base.empty()) return {};
    for (const std::string& file : session_.module(module).recording.other_files)
      if (file == base || file.ends_with("." + base) || file.ends_with("/" + base)) return file;
    return {};
  }

  static SourceLine source_of(const Module& m, const std::vector<InstId>& list) {
    for (InstId i : list)
      if (SourceLine line = source_line(m, i); line.known()) return line;
    return {};
  }

  Judgement judged(const Module& candidate) {
    std::unique_ptr<Module> m = candidate.clone();
    InputOptions options;
    options.seed = in_.seed, options.fill_elided = in_.fill, options.label = m->name();
    settle_elided(*m, options);
    foresee_run(*m);
    check_same_parameters(*first_, *m);
    Comparison c = compare_results(m->u(), Evaluator(*m, bounded_run()).run(arguments_), expected_);
    if (c.equal) return {Verdict::kGood, "the same results"};
    return {Verdict::kBad, fmt::format("{}: {}", c.first_difference()->name, c.first_difference()->why)};
  }

  PageSession& session_;
  RunInputs in_;
  std::unique_ptr<Module> first_;
  std::vector<Value> arguments_;
  Value expected_;
};

Json bisected(bool found, std::string text) {
  return {{"found", found}, {"row", nullptr}, {"state", nullptr}, {"rewrite", nullptr},     {"rule", ""},
          {"id", nullptr},  {"source", ""},   {"first", nullptr}, {"text", std::move(text)}};
}

std::string outcome_text(const Bisection& b) {
  std::string why;
  for (const auto& [k, j] : b.judged)
    if (j.verdict == Verdict::kUnknown && why.empty())
      why = fmt::format("; state {} could not be compared: {}", k, j.detail);
  switch (b.outcome) {
    case Bisection::kAllGood:
      return "all states that were compared give the same results" + why;
    case Bisection::kUnknown:
      return "no state after the first could be compared" + why;
    default:
      return "the search ended early" + why;
  }
}

// The rewrite of that row that makes it bad, where fuel tells.
void blame_rewrite(PageSession& session, StateSearch& states, uint32_t module, size_t row, Json& out) {
  const StageRow& r = session.module(module).recording.rows[row];
  constexpr int64_t kMostRewrites = 100000;
  if (r.rewrites < 1 || r.rewrites > kMostRewrites) return;
  const uint32_t rewrites = session.rewrites_of(module, row);
  Bisection inner = states.over(rewrites, static_cast<size_t>(r.rewrites) + 1);
  if (inner.outcome != Bisection::kFound) return;
  out["rewrite"] = inner.bad;
  for (const Note& n : session.module(module).recording.rows[row].notes) {
    if (n.rewrite != static_cast<int64_t>(inner.bad)) continue;
    out["rule"] = n.rule;
    out["text"] = fmt::format("{}; rewrite {} of {}, {}: {}", out["text"].get<std::string>(), inner.bad, r.rewrites,
                              n.rule, fmt::join(n.names, ", "));
    // In the state in front all of them live.
    std::shared_ptr<OpenState> before = session.state({rewrites, static_cast<uint32_t>(inner.bad - 1)});
    for (InstId i : n.insts) {
      if (!i.valid() || !before->m.alive(i)) continue;
      if (out["id"].is_null()) out["id"] = i.value;
      if (SourceLine line = source_line(before->m, i); out["source"] == "" && line.known()) out["source"] = line.text();
    }
    const auto bad = static_cast<uint32_t>(inner.bad);
    out["at"] = json_of(StateRef{rewrites, bad});
    out["first"] = states.first_difference({rewrites, bad - 1}, {rewrites, bad});
  }
}

Json q_bisect(PageSession& session, const Question& q) {
  q.only({"module", "seed", "inputs", "fill"});
  const auto number = static_cast<uint32_t>(q.number("module", 0, INT32_MAX));
  const size_t count = session.states(session.module(number));
  StateSearch states(session, number, run_inputs(q));
  Bisection b = states.over(number, count);
  if (b.outcome != Bisection::kFound) return bisected(false, outcome_text(b));
  const std::vector<StageRow>& rows = session.module(number).recording.rows;
  size_t row = 0;
  while (row < rows.size() && rows[row].stage != static_cast<int>(b.bad)) ++row;
  Json out = bisected(true, fmt::format("state {}: {}", b.bad, b.judged.at(b.bad).detail));
  out["state"] = b.bad;
  if (row == rows.size()) return out;
  out["row"] = row;
  out["text"] = fmt::format("{} gives other results: {}", rows[row].name(), b.judged.at(b.bad).detail);
  // The pass is known whatever hinders the rest.
  auto attempt = [&](const std::function<void()>& more) {
    try {
      more();
    } catch (const Failure& e) {
      out["text"] = fmt::format("{}; {}", out["text"].get<std::string>(), e.what());
    }
  };
  attempt([&] { blame_rewrite(session, states, number, row, out); });
  const auto bad = static_cast<uint32_t>(b.bad);
  if (out["first"].is_null())
    attempt([&] { out["first"] = states.first_difference({number, bad - 1}, {number, bad}); });
  if (out["source"] == "" && out["first"].is_object()) out["source"] = out["first"]["source"];
  return out;
}

}  // namespace

std::vector<NamedMethod> value_methods() {
  return {{"evaluate", q_evaluate}, {"compare", q_compare}, {"bisect", q_bisect}};
}

}  // namespace hlo
