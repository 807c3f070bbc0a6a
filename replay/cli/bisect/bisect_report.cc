#include "replay/cli/bisect/bisect_report.h"

#include <algorithm>
#include <map>

#include "ir/print/print.h"
#include "ir/query/find_instruction.h"
#include "ir/verify/verifier.h"
#include "replay/cli/json_output.h"
#include "replay/compare/diff.h"
#include "replay/judge/diverge.h"
#include "replay/os/files.h"

namespace hlo {

BisectOptions search_options(Progress& progress, bool every) {
  BisectOptions options;
  options.every = every;
  options.stop = interrupted;
  options.judged = [&progress, done = size_t{0}](const std::string& label, const Judgement& j) mutable {
    progress.at(++done, 0, fmt::format("compared; {}: {}", label, word(j.verdict)));
  };
  return options;
}

namespace {

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

void describe_texts(const Module& good, const Module& bad, Finding& f) {
  ModuleDiff d = diff_modules(good, bad);
  f.json["difference"] = {{"added", d.added}, {"removed", d.removed}, {"modified", d.modified}, {"moved", d.moved}};
  Json before = Json::array(), after = Json::array();
  for (const auto& l : d.lines) {
    if (!l.first.empty() && before.size() < 12) before.push_back(l.first);
    if (!l.second.empty() && after.size() < 12) after.push_back(l.second);
  }
  f.json["before"] = before, f.json["after"] = after;
}

// None or one.
std::vector<InstId> of_name(const Module& m, std::string_view name) {
  const InstId i = find_instruction(m, name);
  return i.valid() ? std::vector<InstId>{i} : std::vector<InstId>{};
}

}  // namespace

void describe(const BisectArgs& a, const Module& good, const Module& bad, const Session* session, Finding& f) {
  describe_texts(good, bad, f);
  bool by_numbers = session && a.slower <= 0;
  if (by_numbers && verify_module(bad, 1).empty()) {  // what does not verify must not run
    try {
      Divergence w = first_divergence(good, bad, *session, eval_options(a), a.tolerance);
      if (w.found) {
        f.json["first_value_that_differs"] = {{"name", bad.inst_name(w.bad)},
                                              {"computation", bad.comp_name(bad.parent(w.bad))},
                                              {"difference", w.difference},
                                              {"certain", w.complete},
                                              {"trip", Json()},
                                              {"applied", Json()}};
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
}

void describe_elements(const Module& good, const Module& bad, const ElementsFinding& w, Finding& f) {
  describe_texts(good, bad, f);
  const std::vector<InstId> before = of_name(good, w.before), after = of_name(bad, w.after);
  f.json["first_value_that_differs"] = {
      {"name", w.after},
      {"computation", after.empty() ? Json() : Json(bad.comp_name(bad.parent(after[0])))},
      {"difference", w.words.empty() ? fmt::format("{}{}: {} instead of {}, where {} are drawn", w.after, w.index, w.is,
                                                   w.was, w.rests_on.empty() ? "no values" : w.rests_on)
                                     : w.words},
      {"certain", true},
      {"trip", Json()},
      {"applied", Json()}};
  if (!before.empty()) f.json["before"] = lines_of(good, before);
  if (!after.empty()) f.json["after"] = lines_of(bad, after);
  if (std::string source = source_line(bad, after); !source.empty()) f.json["source"] = source;
}

// The instruction by which a computation that this one applies has become another.
Json applied_json(const Module& good, const Module& bad, const InsideFinding& w) {
  if (!w.applied_after.valid() || !good.alive(w.applied_before) || !bad.alive(w.applied_after)) return {};
  return {{"name", bad.inst_name(w.applied_after)},
          {"computation", bad.comp_name(bad.parent(w.applied_after))},
          {"before", print_instruction(good, w.applied_before)},
          {"after", print_instruction(bad, w.applied_after)}};
}

void describe_inside(const Module& good, const Module& bad, const InsideStage& stage, Finding& f) {
  ModuleDiff d = diff_modules(good, bad);
  f.json["difference"] = {{"added", d.added}, {"removed", d.removed}, {"modified", d.modified}, {"moved", d.moved}};
  const InsideFinding& w = stage.findings.at(0);
  // Instructions that widening has added have no line of their own.
  auto own = [](const Module& m, const std::vector<InstId>& list) {
    std::vector<InstId> out;
    for (InstId i : list)
      if (i.valid() && m.alive(i)) out.push_back(i);
    return out;
  };
  std::vector<InstId> before = own(good, w.region_before), after = own(bad, w.region_after);
  bool at = bad.alive(w.after);
  f.json["first_value_that_differs"] = {
      {"name", at ? Json(bad.inst_name(w.after)) : Json()},
      {"computation", at ? Json(bad.comp_name(bad.parent(w.after))) : Json()},
      {"before", w.before.valid() && good.alive(w.before) ? Json(good.inst_name(w.before)) : Json()},
      {"difference", w.difference},
      {"certain", true},
      {"trip", w.trip < 0 ? Json() : Json(w.trip)},
      {"applied", applied_json(good, bad, w)}};
  f.json["before"] = lines_of(good, before), f.json["after"] = lines_of(bad, after);
  for (const InsideFinding::Operand& o : w.operands)
    f.json["operands"].push_back({{"before", o.before}, {"after", o.after}, {"agree", o.agrees}});
  if (!w.partial.empty()) f.json["partial_sums"] = w.partial;
  std::string name = at ? std::string(bad.inst_name(w.after)) : "it";
  if (w.annotation)
    f.json["outputs"] =
        fmt::format("the outputs are what the module means; a device that follows what {} says is wrong", name);
  else if (w.near)
    f.json["outputs"] = fmt::format("the outputs do not decide: {} is as near to what it was as rounding may be", name);
  else if (!w.outputs_move)
    f.json["outputs"] = fmt::format("the outputs are insensitive to {} on these inputs: they stay as they are", name);
  else if (w.outputs_by <= 1)
    f.json["outputs"] =
        fmt::format("the outputs move by {:.3g} times their largest magnitude, computed in f64", w.outputs_by);
  else
    f.json["outputs"] = "the outputs move";
  std::string source = source_line(bad, after);
  if (source.empty()) source = source_line(good, before);
  if (!source.empty()) f.json["source"] = source;
}

void add_inside(Json& j, const Candidates& row, const InsideSearch& s, const std::string& inputs) {
  size_t values = 0, same = 0, changed = 0, fresh = 0, unknown = 0, branches = 0;
  size_t touched = 0, missed = 0, annotations = 0, unchecked = 0;
  Json where = Json::array();
  Json healed = Json::array();
  for (const auto& [k, stage] : s.stages) {
    if (k == 0) continue;
    values += stage.values, same += stage.same, changed += stage.changed, fresh += stage.fresh;
    touched += stage.touched, missed += stage.not_compared;
    annotations += stage.annotations, unchecked += stage.annotations_not_checked;
    if (stage.not_compared)
      where.push_back({{"stage", row.labels[k]},
                       {"instructions", stage.not_compared},
                       {"of", stage.touched},
                       {"first", stage.not_compared_example},
                       {"why", stage.not_compared_why}});
    unknown += stage.unknown, branches = std::max(branches, stage.branches_left);
    if (stage.changed && stage.verdict == Verdict::kGood)
      healed.push_back({{"stage", row.labels[k]}, {"values", stage.changed}, {"first", stage.changed_example}});
  }
  double covered =
      values ? 100.0 * static_cast<double>(std::min(same + changed, values)) / static_cast<double>(values) : 0;
  j["inside"] = {{"values", values},
                 {"same", same},
                 {"changed", changed},
                 {"new", fresh},
                 {"without_value", unknown},
                 {"compared_percent", covered},
                 {"changed_instructions", touched},
                 {"not_compared", missed},
                 {"not_compared_where", where},
                 {"annotations", annotations},
                 {"annotations_not_checked", unchecked},
                 {"healed", healed},
                 {"branches_not_taken", branches},
                 {"evaluated_first", s.operations_first},
                 {"evaluated", s.operations}};
  const InputsTold& t = s.told;
  j["inputs"] = {{"values", t.floats},
                 {"with_nan", t.with_nan},
                 {"with_infinity", t.infinite},
                 {"all_zero", t.zero},
                 {"all_the_same", t.uniform},
                 {"outputs", t.outputs},
                 {"outputs_that_tell_nothing", t.dull_outputs},
                 {"made", inputs}};
  j["inputs"]["nan_begins"] = t.nan_begins.empty() ? Json() : Json(t.nan_begins);
}

void add_told(Json& all, const Json& part) {
  for (const auto& item : part.items()) {
    Json& into = all[item.key()];
    if (into.is_array() && item.value().is_array()) {
      for (const Json& one : item.value()) into.push_back(one);
    } else if (into.is_object() && item.value().is_object() && item.key() != "inputs") {
      for (const auto& field : item.value().items()) {
        Json& sum = into[field.key()];
        const std::string& key = field.key();
        if (field.value().is_array() && sum.is_array())
          for (const Json& one : field.value()) sum.push_back(one);
        else if (key == "sampled")
          add_sampled(sum, field.value());
        else if (key == "branches_not_taken")
          sum = std::max(sum.get<size_t>(), field.value().get<size_t>());
        else if (field.value().is_number_integer() && sum.is_number_integer() && key != "seed" && key != "samples")
          sum = sum.get<int64_t>() + field.value().get<int64_t>();
      }
    } else if (into.is_null()) {
      into = item.value();
    }
  }
  if (Json& i = all["inside"]; i.is_object() && i["values"].get<int64_t>() > 0) {
    const auto values = i["values"].get<double>();
    i["compared_percent"] = 100 * std::min(i["same"].get<double>() + i["changed"].get<double>(), values) / values;
  } else if (i.is_null()) {
    all.erase("inside");
  }
}

Candidates stages_between(const Candidates& all, size_t from, size_t to) {
  const auto begin = static_cast<std::ptrdiff_t>(from), end = static_cast<std::ptrdiff_t>(to);
  Candidates out;
  out.labels.assign(all.labels.begin() + begin, all.labels.begin() + end);
  out.keys.assign(all.keys.begin() + begin, all.keys.begin() + end);
  out.load = [load = all.load, from](size_t k) { return load(from + k); };
  out.same = [same = all.same, from](size_t k) { return k > 0 && same(from + k); };
  return out;
}

namespace {

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

}  // namespace

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

namespace {

// `; 28 could not be judged: 20 cannot evaluate custom-call: …, 8 …`; empty where all could.
std::string not_judged_in_words(const Json& j) {
  size_t n = j["not_judged"].get<size_t>();
  if (!n) return {};
  std::string out = fmt::format("; {} could not be compared:", n);
  for (size_t k = 0; k < j["reasons"].size(); ++k)
    out += fmt::format("{} {} × {}", k ? "," : "", j["reasons"][k]["stages"].get<size_t>(),
                       j["reasons"][k]["why"].get<std::string>());
  return out;
}

// `; the worst error is 1e-6 of the largest magnitude, 0.0001 is allowed, at o0[3] of stage …`.
std::string worst_in_words(const Json& j) {
  if (j["worst_error"].is_null()) return {};
  if (j["worst_at"].is_null()) return "; every element of every result is the same";
  double error = j["worst_error"], tolerance = j["tolerance"];
  return fmt::format("; the worst error is {:.3g} times the largest magnitude ({:.3g} is allowed{}), at {} of stage {}",
                     error, tolerance, error > tolerance ? "; the f64 reference bears it out" : "",
                     j["worst_at"].get<std::string>(), j["worst_stage"].get<std::string>());
}

// `; in the stages' own types rounding at a discontinuity: 0010 p.after_x: gt.25 gives another value in 1 of 8 elements
// …`
std::string rounding_in_words(const Json& j) {
  std::string out;
  for (const Json& r : j["rounding"])
    out += fmt::format("{}{}", out.empty() ? "; rounding at a discontinuity, or made large, is no fault: " : "; ",
                       r.get<std::string>());
  return out;
}

// `; 5120 inner values compared (98.2 % of all), each once: 1.3 evaluations`.
std::string inside_in_words(const Json& j) {
  const Json& i = j["inside"];
  if (!j["elements"].is_null()) return elements_in_words(j["elements"], j["smaller"]);
  if (i.is_null())
    return j["no_values"].is_null()
               ? std::string()
               : fmt::format("; values inside were not compared: {}", j["no_values"].get<std::string>());
  std::string out =
      fmt::format("; {} inner values compared, {:.1f} % of all", i["same"].get<size_t>() + i["changed"].get<size_t>(),
                  i["compared_percent"].get<double>());
  if (i["without_value"].get<size_t>())
    out += fmt::format(", {} could not be computed", i["without_value"].get<size_t>());
  if (i["branches_not_taken"].get<size_t>())
    out += fmt::format(", {} branches were not taken", i["branches_not_taken"].get<size_t>());
  if (!i["not_compared"].get<size_t>())
    out += fmt::format("; every output and all {} changed instructions were compared",
                       i["changed_instructions"].get<size_t>());
  size_t told = 0;
  for (const Json& w : i["not_compared_where"]) {
    if (++told > 3) break;
    out += fmt::format("; {}: {} of {} changed instructions not compared, first {} ({})", w["stage"].get<std::string>(),
                       w["instructions"].get<size_t>(), w["of"].get<size_t>(), w["first"].get<std::string>(),
                       kind_of_reason(w["why"].get<std::string>()));
  }
  if (i["not_compared_where"].size() > 3)
    out += fmt::format("; and in {} more stages (--json)", i["not_compared_where"].size() - 3);
  if (i["annotations_not_checked"].get<size_t>())
    out += fmt::format("; {} numbers of annotations that the device uses could not be recomputed, {} were",
                       i["annotations_not_checked"].get<size_t>(), i["annotations"].get<size_t>());
  const Json& n = j["inputs"];
  size_t dull = n["with_nan"].get<size_t>() + n["all_zero"].get<size_t>() + n["all_the_same"].get<size_t>();
  if (dull || n["outputs_that_tell_nothing"].get<size_t>()) {
    out += fmt::format("; the inputs ({}) show little of {} of {} float values ({} with NaN, {} zero, {} all the same)",
                       n["made"].get<std::string>(), dull, n["values"].get<size_t>(), n["with_nan"].get<size_t>(),
                       n["all_zero"].get<size_t>(), n["all_the_same"].get<size_t>());
    if (n["outputs_that_tell_nothing"].get<size_t>())
      out += fmt::format(" and nothing of {} of {} outputs", n["outputs_that_tell_nothing"].get<size_t>(),
                         n["outputs"].get<size_t>());
  }
  if (!j["elided"].is_null()) out += "; " + j["elided"].get<std::string>();
  return out;
}

// "no bad stage" where every output and every changed instruction was compared; else what can be said.
std::string found_nothing(const Json& j) {
  const Json &i = j["inside"], &e = j["elements"];
  if (!e.is_null()) {
    const Json& s = j["smaller"];
    const size_t closed = s.is_null() || s["values"].is_null() ? 0 : s["values"].get<size_t>();
    const auto of = e["changed"].get<size_t>(), missed = of - e["compared"].get<size_t>() - closed;
    if (missed) return fmt::format("nothing bad found, but {} of {} changed values were not compared", missed, of);
    return j["not_judged"].get<size_t>() ? "nothing bad found in the stages that could be compared" : "no bad stage";
  }
  if (i.is_null()) return "nothing bad found by results alone";
  const size_t missed = i["not_compared"].get<size_t>(), of = i["changed_instructions"].get<size_t>();
  if (missed) return fmt::format("nothing bad found, but {} of {} changed instructions were not compared", missed, of);
  if (i["annotations_not_checked"].get<size_t>()) return "no bad value found, but not all annotations could be checked";
  return j["not_judged"].get<size_t>() ? "nothing bad found in the stages that could be compared" : "no bad stage";
}

void show_inside(const Json& j) {
  if (!j["operands"].empty()) {
    fmt::print("operands:\n");
    for (const Json& o : j["operands"])
      fmt::print("  {}{}\n", o["after"].get<std::string>(),
                 o["agree"].get<bool>()
                     ? ": the same value in both stages"
                     : fmt::format(": another value than {} before", o["before"].get<std::string>()));
  }
  if (!j["partial_sums"].is_null()) fmt::print("{}\n", j["partial_sums"].get<std::string>());
  if (!j["outputs"].is_null()) fmt::print("{}\n", j["outputs"].get<std::string>());
}

void show_unknown(const Json& j) {
  size_t shown = 0;
  for (const Json& u : j["unknown"]) {
    if (++shown > 10) break;
    fmt::print("not compared: {}: {}\n", u["stage"].get<std::string>(), u["why"].get<std::string>());
  }
  if (shown > 10) fmt::print("not compared: … and {} more (--json has them all)\n", j["unknown"].size() - 10);
}

}  // namespace

int report(const BisectArgs& a, const Finding& f) {
  if (!a.out.empty()) {
    OutputFolder& out = *a.made;
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
  if (!j["first_value_that_differs"].is_null()) {
    const Json& v = j["first_value_that_differs"];
    fmt::print("the first value that differs{}: {} in {}: {}\n", v["certain"].get<bool>() ? "" : " of those kept",
               v["name"].get<std::string>(), v["computation"].get<std::string>(), v["difference"].get<std::string>());
    if (!v["trip"].is_null())
      fmt::print("in trip {} of its loop, the first in which it differs\n", v["trip"].get<int64_t>());
    if (const Json& p = v["applied"]; !p.is_null())
      fmt::print("{} applies {}, which is another one:\n  was {}\n  is  {}\n", v["name"].get<std::string>(),
                 p["computation"].get<std::string>(), p["before"].get<std::string>(), p["after"].get<std::string>());
  }
  if (!j["no_values"].is_null()) fmt::print("values could not be compared: {}\n", j["no_values"].get<std::string>());
  for (const char* side : {"before", "after"}) {
    fmt::print("{}:\n", side);
    for (const Json& line : j[side]) fmt::print("  {}\n", line.get<std::string>());
  }
  if (!j["source"].is_null()) fmt::print("source: {}\n", j["source"].get<std::string>());
  show_inside(j);
  for (const Json& o : j["other_bad"]) fmt::print("also bad: {}\n", o.get<std::string>());
  show_unknown(j);
  if (!j["confidence"].is_null())
    fmt::print("the oracle wavers: at worst {:.0f} % of its runs agreed\n", 100 * j["confidence"].get<double>());
  fmt::print("{} of {} stages compared{}{}\n", j["judged"].get<size_t>(), j["candidates"].get<size_t>(),
             inside_in_words(j), not_judged_in_words(j));
  if (!j["stopped"].is_null())
    fmt::print("stopped {}: not all stages after it were compared\n", j["stopped"].get<std::string>());
  if (!a.out.empty()) fmt::print("both stages and the report are in {}\n", a.out);
  fmt::print("{}\n", f.guilty);
  return kNo;
}

Json nothing(const BisectArgs& a, const Candidates& row, const Bisection& b, const std::string& judge, int* code,
             const Json* inside) {
  Json j = complete_bisection(Json::object());
  if (inside)
    for (const auto& item : inside->items()) j[item.key()] = item.value();
  add_counts(j, row, b, a.by_running());
  size_t judged = judged_count(b);
  std::string text;
  *code = kBad;
  switch (b.outcome) {
    case Bisection::kAllGood:
      text = fmt::format(
          "{}: {} of {} checked by \"{}\"{}{}{}. If results are wrong all the same, the fault is "
          "below HLO, in the inputs, or before the first stage",
          found_nothing(j), judged, row.labels.size(), judge, a.quick ? " (the last only: --quick)" : "",
          worst_in_words(j), inside_in_words(j) + rounding_in_words(j) + not_judged_in_words(j));
      *code = j["unknown"].empty() ? kYes : kBad;
      break;
    case Bisection::kFirstBad:
      text = fmt::format("the first stage ({}) is bad already by \"{}\": {}. Nothing was tried beyond it",
                         row.labels[0], judge, b.judged.at(0).detail);
      break;
    case Bisection::kStopped:
      j["stopped"] = ended_in_words(a);
      text = stopped_in_words(a, row, b, j) + inside_in_words(j) + not_judged_in_words(j);
      break;
    default:
      text = judged ? fmt::format("only the first of {} stages could be checked by \"{}\"{}", row.labels.size(), judge,
                                  not_judged_in_words(j))
                    : fmt::format("no stage could be checked by \"{}\": {}", judge,
                                  b.judged.empty() ? "there is none" : b.judged.begin()->second.detail);
  }
  if (!j["stopped"].is_null()) {
    add_verdicts(j, row, b);
    *code = kBad;
    if (b.outcome != Bisection::kStopped)
      text = fmt::format("stopped {} while the stages were run; {}", ended_in_words(a), text);
  }
  j["verdict"] = text;
  return j;
}

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
  told["device"] = fmt::format("{} does not agree: {}: {}. The fault is below HLO, in a kernel or in what calls it",
                               who, c.first_difference()->name, c.first_difference()->why);
  told["last_stage"] = path;
  return kNo;
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

}  // namespace hlo
