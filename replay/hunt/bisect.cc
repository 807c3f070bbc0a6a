#include "replay/hunt/bisect.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "ir/base/hash.h"
#include "ir/print/print.h"
#include "ir/snapshot.h"
#include "replay/os/files.h"

namespace hlo {

const char* word(Verdict v) { return v == Verdict::kGood ? "good" : v == Verdict::kBad ? "bad" : "unknown"; }

using Json = nlohmann::ordered_json;

JudgementFile::JudgementFile(std::string path, std::string what) : path_(std::move(path)), what_(std::move(what)) {
  std::error_code ignored;
  if (path_.empty() || !std::filesystem::exists(path_, ignored)) return;
  Json j = Json::parse(read_file(path_), nullptr, false);
  auto text = [](const Json& o, const char* key) {
    auto at = o.is_object() ? o.find(key) : o.end();
    return at != o.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  if (!j.is_object() || !j.contains("version") || j["version"] != 1 || !j.contains("judged") ||
      !j["judged"].is_object())
    fail(FailureKind::kUsage, "{} is no file of an earlier bisect", path_);
  if (text(j, "judge") != what_)
    fail(FailureKind::kUsage, "{} is of another search ({}); this one is: {}", path_, text(j, "judge"), what_);
  for (const auto& item : j["judged"].items()) {
    const std::string& key = item.key();
    const auto& value = item.value();
    Judgement g;
    std::string v = text(value, "verdict");
    g.verdict = v == "good" ? Verdict::kGood : v == "bad" ? Verdict::kBad : Verdict::kUnknown;
    g.detail = text(value, "detail");
    if (value.contains("runs") && value["runs"].is_number_integer()) g.runs = value["runs"];
    if (value.contains("agreed") && value["agreed"].is_number_integer()) g.agreed = value["agreed"];
    auto number = [&](const char* k) {
      return value.contains(k) && value[k].is_number() ? value[k].get<double>() : -1.0;
    };
    g.error = number("error"), g.tolerance = number("tolerance"), g.where = text(value, "where");
    known_[key] = g;
  }
}

bool JudgementFile::find(const std::string& key, Judgement* out) const {
  auto at = known_.find(key);
  if (at != known_.end()) *out = at->second;
  return at != known_.end();
}

void JudgementFile::add(const std::string& key, const Judgement& j) {
  if (path_.empty()) return;
  known_[key] = j;
  Json all = Json::object();
  for (const auto& [k, v] : known_) {
    all[k] = {{"verdict", word(v.verdict)}, {"detail", v.detail}, {"runs", v.runs}, {"agreed", v.agreed}};
    if (v.error >= 0) all[k]["error"] = v.error, all[k]["tolerance"] = v.tolerance, all[k]["where"] = v.where;
  }
  write_file(path_, Json{{"version", 1}, {"judge", what_}, {"judged", all}}.dump(1, ' ', false,
                                                                                 Json::error_handler_t::replace) +
                        "\n");
}

Judgement judgement_of(const std::function<Judgement()>& ask, const std::function<bool()>& stop) {
  try {
    return ask();
  } catch (const OracleFailure&) {
    throw;
  } catch (const Failure& e) {
    if (stop && stop()) throw;
    std::string why = e.what();
    return {e.kind() == FailureKind::kInvalid ? Verdict::kBad : Verdict::kUnknown,
            why.substr(0, why.find("\nthe module does not verify"))};
  }
}

std::optional<Judgement> judgement_unless_stopped(const std::function<Judgement()>& ask,
                                                  const std::function<bool()>& stop) {
  try {
    return judgement_of(ask, stop);
  } catch (const Failure&) {
    if (!stop || !stop()) throw;
    return std::nullopt;
  }
}

Bisection search(const Candidates& candidates, const Judge& judge, JudgementFile& memory, const BisectOptions& options,
                 std::map<size_t, Judgement> known) {
  Bisection out;
  out.judged = std::move(known);
  size_t count = candidates.labels.size();
  auto ask = [&](size_t k) {
    Judgement j;
    if (memory.find(candidates.keys[k], &j)) return j;
    j = judgement_of([&] { return judge(*candidates.load(k)); }, options.stop);
    memory.add(candidates.keys[k], j);
    if (options.judged) options.judged(candidates.labels[k], j);
    return j;
  };
  auto verdict = [&](size_t k) {
    auto at = out.judged.find(k);
    if (at == out.judged.end()) at = out.judged.emplace(k, ask(k)).first;
    return at->second.verdict;
  };
  auto stopped = [&] { return options.stop && options.stop(); };
  if (count == 0) return out;
  Verdict first = verdict(0);
  if (first != Verdict::kGood) {
    out.outcome = first == Verdict::kBad ? Bisection::kFirstBad : Bisection::kUnknown;
    return out;
  }
  // The last one that can be judged.
  size_t last = count - 1;
  while (last > 0 && verdict(last) == Verdict::kUnknown && !stopped()) --last;
  if (stopped()) {
    out.outcome = Bisection::kStopped;
    return out;
  }
  if (last == 0) {
    out.outcome = count == 1 ? Bisection::kAllGood : Bisection::kUnknown;
    return out;
  }
  size_t good = 0, bad = last;
  if (verdict(last) == Verdict::kGood) {
    out.outcome = Bisection::kAllGood;
    if (!options.every) return out;
    for (size_t k = 1; k < last; ++k) {
      if (stopped()) {
        out.outcome = Bisection::kStopped;
        return out;
      }
      if (verdict(k) == Verdict::kBad) out.bad_ones.push_back(k);
    }
    if (out.bad_ones.empty()) return out;
    bad = out.bad_ones[0];
    for (good = bad - 1; verdict(good) != Verdict::kGood;) --good;
  } else {
    while (bad - good > 1) {
      if (stopped()) {
        out.outcome = Bisection::kStopped;
        return out;
      }
      // Around the middle, whatever can be judged.
      size_t middle = good + (bad - good) / 2, pick = 0;
      for (size_t d = 0; d < bad - good && !pick; ++d)
        for (size_t k : {middle - d, middle + d})
          if (!pick && k > good && k < bad && middle >= d && verdict(k) != Verdict::kUnknown) pick = k;
      if (!pick) break;  // only unknown ones between them
      (verdict(pick) == Verdict::kGood ? good : bad) = pick;
    }
    out.bad_ones = {bad};
  }
  out.outcome = Bisection::kFound;
  out.good = good, out.bad = bad;
  return out;
}

PipelineBisection bisect_pipeline(Module& m, const std::vector<Step>& steps, const PipelineOptions& passes,
                                  const Judge& judge, bool first_is_good, JudgementFile& memory,
                                  const BisectOptions& options) {
  PipelineBisection out;
  // Every stage is kept: what comes before a stage is shared by all runs that go through it.
  struct Stage {
    Snapshot snapshot;
    PassEvent event;
  };
  struct Stages {
    Recorder recorder;
    std::vector<Stage> list;
  };
  auto kept = std::make_shared<Stages>(Stages{Recorder(m.universe()), {}});
  std::vector<Stage>& stages = kept->list;
  Candidates& row = out.candidates;
  std::string text = lossless_text(m);
  uint64_t hash = hash_bytes(text);
  auto keep = [&](const PassEvent& e, const std::string& label) {
    row.labels.push_back(label);
    row.keys.push_back(fmt::format("{} {} {:016x}", stages.size(), label, hash));
    stages.push_back({kept->recorder.freeze(m), e});
  };
  keep({}, "the module as it came");
  PipelineOptions recorded = passes;
  recorded.observe = [&](const Module&, const PassEvent& e) {
    if (e.kind == PassEvent::kPass && e.changed)
      keep(e, fmt::format("{:04} {}.after_{}", stages.size(), e.pipeline, e.pass));
  };
  try {
    run_pipeline(m, steps, recorded);
  } catch (const Failure& e) {
    if (passes.stop && passes.stop()) throw;
    out.broke = e.what();
  }
  row.load = [kept](size_t k) { return kept->list[k].snapshot.thaw(); };
  std::map<size_t, Judgement> known;
  if (first_is_good) known[0] = {Verdict::kGood, "what the others are compared with"};
  out.stages =
      options.stages ? options.stages(row, std::move(known)) : search(row, judge, memory, options, std::move(known));
  const Bisection& b = out.stages;
  if (b.outcome != Bisection::kFound) return out;
  out.event = stages[b.bad].event;
  out.good = row.load(b.good), out.bad = row.load(b.bad);
  const PassEvent& event = out.event;
  if (b.bad - b.good != 1 || event.rewrites < 1) return out;
  auto with_fuel = [&](int64_t fuel, PassEvent* e) {
    auto c = stages[b.good].snapshot.thaw();
    PassContext context;
    context.options = event.options;
    context.fuel = fuel;
    run_pass(*c, *find_pass(event.pass), context, passes, e);
    return c;
  };
  size_t count = static_cast<size_t>(event.rewrites) + 1;
  Candidates inner;
  for (size_t k = 0; k < count; ++k) {
    inner.labels.push_back(fmt::format("{} with {} rewrites", event.pass, k));
    inner.keys.push_back(fmt::format("{} fuel {}", row.keys[b.bad], k));
  }
  inner.load = [&](size_t k) {
    PassEvent ignored;
    return with_fuel(static_cast<int64_t>(k), &ignored);
  };
  BisectOptions last_only = options;
  last_only.every = false;
  out.rewrites = search(inner, options.beside ? options.beside(*out.good) : judge, memory, last_only,
                        {{0, b.judged.at(b.good)}, {count - 1, b.judged.at(b.bad)}});
  if (out.rewrites.outcome != Bisection::kFound) return out;
  PassEvent e;
  auto bad = with_fuel(static_cast<int64_t>(out.rewrites.bad), &e);
  out.rewrite = static_cast<int64_t>(out.rewrites.bad);
  for (const Note& n : e.notes)
    if (n.rewrite == out.rewrite) out.note = n;
  out.good = inner.load(out.rewrites.good), out.bad = std::move(bad);
  return out;
}

}  // namespace hlo
