// bisect --releases, --flags, --passes: which release of XLA, which flag, which pass changes what a module comes to.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "ir/base/hash.h"
#include "ir/eval/compare.h"
#include "ir/query/fingerprint.h"
#include "replay/cli/engine.h"
#include "replay/cli/json_output.h"
#include "replay/cli/xla_arguments.h"
#include "replay/hunt/last_words.h"
#include "replay/installed/change.h"
#include "replay/installed/figures.h"
#include "replay/installed/measure.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLikely = 8;  // passes to try alone, before halves of all are

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  for (char c : text + " ") {
    if (c != ' ')
      word += c;
    else if (!word.empty())
      out.push_back(word), word.clear();
  }
  return out;
}

// The module's own meaning, that XLA's results are held against.
class ValueOf {
 public:
  ValueOf(const BisectArgs& a, const Module& m, const InputOptions& inputs)
      : a_(a), session_(m, inputs), first_(m.clone()), judge_(make_judge(judge_options(a), *first_, &session_)) {
    const ExecutorInfo& reference = *find_executor("evaluator");
    expected_ = session_.run(*first_, reference, eval_options(a), 1, false);
    high_ = session_.run(*first_, reference, eval_options(a), 1, true);
  }
  // What `run` needs: the inputs as a file, and the types of inputs and outputs.
  void write(XlaQuestion& q, const std::string& scratch) const {
    write_arguments(*first_, session_, q, scratch);
    const Universe& u = first_->u();
    std::vector<Value> leaves;
    flatten(u, expected_, &leaves);
    for (const Value& v : leaves) q.output_types.emplace_back(type_name(u[v.shape].type));
  }
  Judgement judge(const std::string& outputs, const std::string& dump) const {
    try {
      if (!outputs.empty()) {
        const Comparison c = compare_results(first_->u(), outputs_of(first_->u(), outputs, expected_.shape), expected_,
                                             a_.tolerance, &high_);
        if (c.equal) return {Verdict::kGood, ""};
        return {Verdict::kBad, fmt::format("{}: {}", c.first_difference()->name, c.first_difference()->why)};
      }
      const std::vector<Recording> all = open_folder(dump);
      const StageChoice last = final_stage(main_recording(all, ""));
      LoadOptions options;
      options.universe = first_->universe();
      return judge_(*load(confined_path(last.module.folder, last.file), options));
    } catch (const Failure& e) {
      if (interrupted()) throw;
      return {Verdict::kUnknown, e.what()};
    }
  }

 private:
  const BisectArgs& a_;
  Session session_;
  std::unique_ptr<Module> first_;
  Judge judge_;
  Value expected_, high_;
};

class CompilationBisection {
 public:
  explicit CompilationBisection(const BisectArgs& a) : a_(a), engine_(a.engine) {
    if (!engine_.installed()) engine_.engine = "installed";
    XlaQuestion options;
    take_options(engine_, options);
    by_ = a.by.empty() ? (options.target.platform == "cpu" ? "value" : "kernels") : a.by;
    kind_ = xla_by(by_);
    if (!a.out.empty()) out_.emplace(a.out, a.force, "bisect", read_by(a));
    ForXla from = module_for_xla();
    const bool over_flags = a.flags && a.releases.empty();
    const std::string users = over_flags ? "" : engine_.flags;
    take_options(engine_, from.question);
    from.question.flags = users;
    for (const std::string& pass : words(a.disabled)) from.question.disabled.push_back(pass);
    const std::string key = fmt::format("{} {} {} {} {} {}", a.seed, a.scheme, a.tolerance, a.fill_elided, a.fit,
                                        a.inputs.empty() ? 0 : hash_bytes(read_file(a.inputs)));
    for (const std::string& w : from.warnings) fmt::print(stderr, "warning: {}\n", w);
    measure_.emplace(
        kind_, std::move(from.question), ReleaseOptions{engine_.yes, engine_.offline}, key,
        [this](const std::string& outputs, const std::string& dump) { return value_->judge(outputs, dump); });
  }

  int run() {
    Progress progress("bisecting " + a_.file);
    if (a_.passes && a_.releases.empty())
      over_passes();
    else
      over_settings();
    return told();
  }

 private:
  ForXla module_for_xla() {
    std::string file = a_.file;
    // A run needs arguments; what is timed on this machine is run as well.
    XlaQuestion target;
    take_options(engine_, target);
    const bool timed = kind_ == XlaBy::kTime && target.target.platform == "cpu";
    if (kind_ != XlaBy::kValue && !timed) return for_xla(file, scratch_.path());
    if (is_stablehlo(file)) file = hlo_of_stablehlo(engine_, file, scratch_.path());
    InputOptions inputs = input_options(a_);
    inputs.label = a_.file;
    auto m = load_verified(file, !a_.no_verify);
    settle_elided(*m, inputs);
    if (timed) {
      const Session session(*m, inputs);
      ForXla out = for_xla(m->clone(), a_.file, scratch_.path());
      write_arguments(*m, session, out.question, scratch_.path());
      return out;
    }
    check_supported(*m);
    value_.emplace(a_, *m, inputs);
    ForXla out = for_xla(std::move(m), a_.file, scratch_.path());
    value_->write(out.question, scratch_.path());
    return out;
  }

  bool yes_or_no() const { return kind_ == XlaBy::kValue || kind_ == XlaBy::kCrash; }
  // Unknown where an interpreter cannot be had.
  XlaMeasured measured(const XlaSetting& s, const std::string& label) {
    if (interrupted())
      fail(FailureKind::kUsage, "interrupted after {} compilations; what they gave is kept", measure_->asked());
    XlaMeasured m;
    try {
      m = measure_->of(s);
    } catch (const Failure& e) {
      if (interrupted() || e.kind() != FailureKind::kIo) throw;  // pip: no wheel of that release for this machine
      m.words = e.what();
    }
    json_["measured"].push_back({{"label", label},
                                 {"known", m.known},
                                 {"good", m.known && yes_or_no() ? Json(m.good) : Json()},
                                 {"figure", m.known && !yes_or_no() ? Json(m.figure) : Json()},
                                 {"words", m.words}});
    if (!a_.json) {
      Progress::clear();
      fmt::print("{:<14} {}{}\n", label, m.known ? "" : "not known: ", first_line(m.words));
      std::fflush(stdout);
    }
    return m;
  }
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')).substr(0, 300); }

  // Does `m` answer as `x` rather than as `y`?
  bool like(const XlaMeasured& m, const XlaMeasured& x, const XlaMeasured& y) const {
    if (!m.known) return false;
    if (yes_or_no()) return m.good == x.good;
    return std::abs(m.figure - x.figure) < std::abs(m.figure - y.figure);
  }
  // Does it answer as `x`, and nothing else? What takes the blame has to bring all of it back.
  bool same_as(const XlaMeasured& m, const XlaMeasured& x) const { return m.known && !differ(m, x); }
  bool differ(const XlaMeasured& x, const XlaMeasured& y) const {
    if (yes_or_no()) return x.good != y.good;
    if (x.noise > 0 || y.noise > 0)
      return std::abs(x.figure - y.figure) > std::max({x.noise, y.noise, 0.01 * x.figure});
    // A compilation's time is never twice the same.
    if (kind_ == XlaBy::kCompileTime) return std::max(x.figure, y.figure) > 1.5 * std::min(x.figure, y.figure);
    return x.figure != y.figure;
  }

  // --- releases, and flags as prefixes of what is set ---

  void settings_of_releases() {
    const size_t dots = a_.releases.find("..");
    if (dots == std::string::npos)
      fail(FailureKind::kUsage, "--releases is written 0.8.0..newest or 0.8.0..0.12.0.1, not '{}'", a_.releases);
    std::string first = a_.releases.substr(0, dots), last = a_.releases.substr(dots + 2);
    std::vector<std::string> all = known_releases({engine_.yes, engine_.offline});
    if (all.empty()) fail(FailureKind::kUsage, "no release of jaxlib is known");
    if (last.empty() || last == "newest") last = all.back();
    for (const std::string& end : {first, last})
      if (std::find(all.begin(), all.end(), end) == all.end())
        fail(FailureKind::kUsage, "there is no release '{}' of jaxlib here; there are {}", end, fmt::join(all, ", "));
    if (!release_before(first, last)) fail(FailureKind::kUsage, "--releases: {} is not before {}", first, last);
    for (const std::string& r : all) {
      if (release_before(r, first) || release_before(last, r)) continue;
      if (a_.flags && r != first && r != last) continue;
      labels_.push_back(r), settings_.push_back({"installed:" + r, "", {}});
    }
  }

  void settings_of_flags() {
    const std::vector<std::string> flags = split_words(engine_.flags);
    if (flags.empty())
      fail(FailureKind::kUsage,
           "--flags is about those of --xla-flags, or with --releases=A..B about changed defaults");
    XlaSetting s{engine_.engine, "", {}};
    labels_.push_back("no flag"), settings_.push_back(s);
    for (const std::string& f : flags) {
      s.flags += (s.flags.empty() ? "" : " ") + f;
      labels_.push_back("+ " + f), settings_.push_back(s);
    }
  }

  void over_settings() {
    a_.releases.empty() ? settings_of_flags() : settings_of_releases();
    std::map<size_t, XlaMeasured> at;
    const size_t last = settings_.size() - 1;
    auto ask = [&](size_t k) -> const XlaMeasured& {
      if (!at.contains(k)) at[k] = measured(settings_[k], labels_[k]);
      return at[k];
    };
    const Change c = find_change(settings_.size(), [&](size_t k) {
      const XlaMeasured& m = ask(k);
      if (!m.known) return Side::kUnknown;
      if (k == 0) return Side::kFirst;
      const XlaMeasured& x = ask(0);
      if (k == last) return x.known && differ(x, m) ? Side::kLast : Side::kFirst;
      return like(m, x, ask(last)) ? Side::kFirst : Side::kLast;
    });
    json_["monotone"] = c.once;
    if (c.outcome == Change::kNone) {
      code_ = kYes;
      json_["verdict"] = fmt::format("{} and {} agree: {}", labels_[0], labels_[last], at[0].words);
      return;
    }
    if (c.outcome == Change::kUnknown) {
      json_["verdict"] = fmt::format("it is unknown: {} or {} is not known", labels_[0], labels_[last]);
      return;
    }
    std::string verdict = fmt::format("between {} ({}) and {} ({})", labels_[c.before], first_line(at[c.before].words),
                                      labels_[c.after], first_line(at[c.after].words));
    if (c.after - c.before > 1) verdict += fmt::format(", {} between them not known", c.after - c.before - 1);
    if (!c.once) verdict += "; it changes more than once in this row: this is one of the places";
    json_["before"] = labels_[c.before], json_["after"] = labels_[c.after];
    found(settings_[c.before], settings_[c.after], at[c.before], at[c.after]);
    json_["verdict"] = "it changes " + verdict + blame();
  }

  // --- passes ---

  void over_passes() {
    const XlaSetting all{engine_.engine, "", {}};
    const XlaMeasured with = measured(all, "all passes");
    if (!with.known) {
      json_["verdict"] = "it is unknown: " + with.words;
      return;
    }
    if (yes_or_no() && with.good) {
      code_ = kYes, json_["verdict"] = "nothing to look for: " + with.words;
      return;
    }
    const std::string folder = folder_for("after");
    const XlaAnswer stages = measure_->with_stages(all, folder);
    Names passes = passes_in(folder), likely;
    // What it had entered may have written nothing.
    if (kind_ == XlaBy::kCrash)
      if (std::string entered = last_words(stages.log).entered; !entered.empty()) {
        likely.push_back(entered);
        if (std::find(passes.begin(), passes.end(), entered) == passes.end()) passes.push_back(entered);
      }
    if (!yes_or_no()) {
      each_pass(all, with, passes);
      return;
    }
    XlaMeasured good = with;
    good.good = true;
    if (!blame_passes(all, passes, likely, good, "after")) {
      json_["verdict"] = fmt::format(
          "{}; none of the {} passes that change something fixes it by being left out, nor do several: the fault is "
          "below HLO, or in a pass that it does not compile without",
          first_line(with.words), passes.size());
      return;
    }
    XlaSetting without = all;
    without.disabled = json_["passes"].get<Names>();
    measure_->with_stages(without, folder_for("before"));
    stages_between();
    json_["before"] = fmt::format("without {}", fmt::join(without.disabled, ", ")), json_["after"] = "all passes";
    code_ = kNo;
    json_["verdict"] = first_line(with.words) + blame();
  }

  // Less than that share of a figure is no difference that a pass is blamed for.
  static constexpr double kThreshold = 0.01;

  // Of a figure there is no good and no bad: what each pass does to it. Less is better, whatever is counted.
  void each_pass(const XlaSetting& all, const XlaMeasured& with, const Names& passes) {
    Json more = Json::array(), less = Json::array();  // passes that make it more than it would be, and less
    const double threshold = std::max(kThreshold * with.figure, with.noise);
    for (const std::string& pass : passes) {
      XlaSetting s = all;
      s.disabled = {pass};
      const XlaMeasured m = measured(s, "without " + pass);
      if (!m.known || std::abs(m.figure - with.figure) < std::max(threshold, m.noise) || m.figure == with.figure)
        continue;
      (m.figure < with.figure ? more : less).push_back({{"pass", pass}, {"figure", m.figure}, {"words", m.words}});
    }
    for (Json* rows : {&more, &less}) {
      auto away = [&](const Json& r) { return std::abs(r["figure"].get<double>() - with.figure); };
      std::stable_sort(rows->begin(), rows->end(), [&](const Json& x, const Json& y) { return away(x) > away(y); });
      for (const Json& r : *rows) json_["passes"].push_back(r["pass"]);
    }
    code_ = more.empty() && less.empty() ? kYes : kNo;
    if (code_ == kYes) {
      json_["verdict"] = fmt::format("{}, whichever pass is left out (by 1 %)", with.words);
      return;
    }
    auto first = [&](const Json& rows) {
      const double by = 100 * (rows[0]["figure"].get<double>() - with.figure) / std::max(with.figure, 1e-300);
      return fmt::format("{}: without it {} ({:+.0f} %)", rows[0]["pass"].get<std::string>(),
                         rows[0]["words"].get<std::string>(), by);
    };
    std::string verdict = with.words;
    verdict += more.empty() ? "; no pass makes it more than it is"
                            : fmt::format("; {} of {} passes make it more than it would be, most of all {}",
                                          more.size(), passes.size(), first(more));
    if (!less.empty()) verdict += fmt::format("; {} make it less, most of all {}", less.size(), first(less));
    json_["verdict"] = verdict;
  }

  // Those that worked; where the compiler did not come to its end, the one that was to run next, too.
  static Names passes_in(const std::string& folder) {
    std::vector<Recording> all;
    try {
      all = open_folder(folder);
    } catch (const Failure&) {
      return {};
    }
    Names out = passes_that_worked(all);
    for (const Recording& r : all)
      if (!r.rows.empty() && !r.rows.back().next.empty() && r.rows.back().next != "pipeline-end" &&
          std::find(out.begin(), out.end(), r.rows.back().next) == out.end())
        out.push_back(r.rows.back().next);
    return out;
  }

  // Which of `passes`, left out of `s`, has it answer as `wanted`? False: none. `likely`: those to try alone first.
  bool blame_passes(const XlaSetting& s, const Names& passes, const Names& likely, const XlaMeasured& wanted,
                    const char* side) {
    auto heals = [&](const Names& left_out) {
      XlaSetting t = s;
      t.disabled = left_out;
      const std::string label = left_out.size() == 1 ? left_out[0] : fmt::format("{} passes", left_out.size());
      const XlaMeasured m = measured(t, "without " + label);
      if (m.known && !yes_or_no() && left_out.size() == 1 && (best_pass_.empty() || m.figure < best_.figure))
        best_pass_ = left_out[0], best_ = m;
      return same_as(m, wanted);
    };
    Names guilty;
    for (size_t k = 0; k < std::min(likely.size(), kLikely) && guilty.empty(); ++k)
      if (heals({likely[k]})) guilty = {likely[k]};
    if (guilty.empty()) guilty = guilty_of(heals, passes);
    if (guilty.empty()) return false;
    json_["passes"] = guilty, json_["passes_of"] = side;
    if (!yes_or_no()) {
      XlaSetting t = s;
      t.disabled = guilty;
      wanted_ = first_line(wanted.words);
      json_["same_module"] = ends_as(t, std::string(side) == "after" ? "before" : "after");
      if (json_["same_module"] == false) return true;
    }
    if (guilty.size() != 1 || a_.quick) return true;
    const int64_t decision = decision_of([&](int64_t fuel) {
      XlaSetting t = s;
      t.flags += fmt::format("{}--xla_fuel={}={}", t.flags.empty() ? "" : " ", guilty[0], fuel);
      return same_as(measured(t, fmt::format("fuel {}", fuel)), wanted);
    });
    if (decision) json_["decision"] = decision;
    return true;
  }

  // --- what lies between two settings ---

  std::string folder_for(const char* side) {
    std::string folder = (out_ ? out_->temporary() : scratch_.path()) + "/" + side;
    fs::create_directories(folder);
    return folder;
  }

  void found(const XlaSetting& x, const XlaSetting& y, const XlaMeasured& mx, const XlaMeasured& my) {
    code_ = kNo;
    const std::string before = folder_for("before"), after = folder_for("after");
    measure_->with_stages(x, before), measure_->with_stages(y, after);
    if (x.engine != y.engine)
      blame_flags(x, y, mx);
    else if (x.flags != y.flags)
      json_["flags"] = new_flags(x.flags, y.flags);
    if (a_.quick || (a_.flags && x.engine != y.engine)) return stages_between();
    // What the newer one does that the older did not, or the other way about.
    // Passes that worked on one side alone are tried first, on both sides.
    const Names old = passes_in(before), now = passes_in(after);
    if (!blame_passes(y, {}, only_in(now, old), mx, "after") && !blame_passes(x, {}, only_in(old, now), my, "before") &&
        !blame_passes(y, now, {}, mx, "after"))
      blame_passes(x, old, {}, my, "before");
    // One pass left out may be better than both ends.
    if (!best_pass_.empty() && best_.figure < (1 - kThreshold) * std::min(mx.figure, my.figure))
      json_["better"] = {{"pass", best_pass_}, {"figure", best_.figure}, {"words", first_line(best_.words)}};
    stages_between();
  }

  // Is that the final module of the other side, too? A figure may come back by another way. Null where a module cannot
  // be read.
  Json ends_as(const XlaSetting& s, const char* wanted) {
    const std::string folder = scratch_.path() + "/again";
    fs::remove_all(folder), fs::create_directories(folder);
    measure_->with_stages(s, folder);
    const auto is = end_of(folder), other = end_of((out_ ? out_->temporary() : scratch_.path()) + "/" + wanted);
    return is && other ? Json(*is == *other) : Json();
  }
  static std::optional<uint64_t> end_of(const std::string& folder) {
    try {
      const std::vector<Recording> all = open_folder(folder);
      Recording r = main_recording(all, "");
      const Lineage& stages = r.lineage();
      const auto m = stages.module(stages.size() - 1);
      return Fingerprints(*m, {.config = false}).computation(m->entry());
    } catch (const Failure&) {
      if (interrupted()) throw;
      return std::nullopt;
    }
  }

  static Names only_in(const Names& a, const Names& b) {
    Names out;
    for (const std::string& n : a)
      if (std::find(b.begin(), b.end(), n) == b.end()) out.push_back(n);
    return out;
  }

  static Names new_flags(const std::string& before, const std::string& after) {
    const Names x = split_words(before), y = split_words(after);
    return {y.begin() + static_cast<ptrdiff_t>(std::min(x.size(), y.size())), y.end()};
  }

  // Which default that changed, set back, has the newer answer as the older?
  void blame_flags(const XlaSetting& x, const XlaSetting& y, const XlaMeasured& mx) {
    std::string why;
    const auto old = measure_->flag_defaults(x.engine, &why), now = measure_->flag_defaults(y.engine, &why);
    if (!why.empty()) {
      fmt::print(stderr, "warning: flags are not compared: {}\n", why);
      return;
    }
    Names changed;
    for (const auto& [name, value] : old)
      if (auto at = now.find(name); at != now.end() && at->second != value && !name.starts_with("xla_dump") &&
                                    value.find_first_of(" \t\n") == std::string::npos && !value.empty())
        changed.push_back(fmt::format("--{}={}", name, value));
    auto set_back = [&](const Names& flags) {
      XlaSetting s = y;
      s.flags += fmt::format(" {}", fmt::join(flags, " "));
      return measured(s, fmt::format("{} defaults set back", flags.size()));
    };
    bool all_back = false;
    // A field may be no flag: XLA names those that it does not know.
    for (int round = 0; round < 8 && !changed.empty(); ++round) {
      const XlaMeasured m = set_back(changed);
      const size_t at = m.words.find("Unknown flag");
      if (at == std::string::npos) {
        all_back = same_as(m, mx);
        break;
      }
      const std::string said = m.words.substr(at);
      std::erase_if(changed,
                    [&](const std::string& f) { return said.find(f.substr(0, f.find('='))) != std::string::npos; });
    }
    json_["changed_defaults"] = changed;
    if (all_back) json_["flags"] = guilty_of([&](const Names& flags) { return same_as(set_back(flags), mx); }, changed);
  }

  void stages_between() {
    const std::string base = out_ ? out_->temporary() : scratch_.path();
    try {
      const std::vector<Recording> x = open_folder(base + "/before"), y = open_folder(base + "/after");
      json_["first_stage"] = first_difference(main_recording(x, ""), main_recording(y, ""), &diff_);
      json_["removed"] = diff_.removed, json_["added"] = diff_.added, json_["modified"] = diff_.modified;
    } catch (const Failure& e) {
      if (interrupted()) throw;
      json_["first_stage"] = std::string("the stages cannot be compared: ") + e.what();
    }
  }

  // `; flag …, pass …`
  std::string blame() const {
    std::string out;
    if (!json_["better"].is_null())
      out += fmt::format("; without {} it is {}, less than on either side", json_["better"]["pass"].get<std::string>(),
                         json_["better"]["words"].get<std::string>());
    if (!json_["flags"].empty()) {
      Names names = json_["flags"].get<Names>();
      out += json_["changed_defaults"].empty() ? fmt::format("; by flag {}", fmt::join(names, " "))
                                               : fmt::format("; with {} it is as before", fmt::join(names, " "));
    }
    if (!json_["passes"].empty()) {
      const Names names = json_["passes"].get<Names>();
      if (json_["same_module"] == false)
        return out +
               fmt::format("; in {} without {} it is {} again, but by another module: what differs first says more",
                           json_[json_["passes_of"].get<std::string>()].get<std::string>(), fmt::join(names, ", "),
                           wanted_);
      out += json_["passes_of"] == "before" ? fmt::format("; pass {} made it what it was", fmt::join(names, ", "))
                                            : fmt::format("; guilty: pass {}", fmt::join(names, ", "));
      if (!json_["decision"].is_null()) out += fmt::format(", decision {}", json_["decision"].get<int64_t>());
    } else {
      out += "; no pass, left out, takes it back";
    }
    return out;
  }

  int told() {
    json_["found"] = code_ == kNo;
    json_["compilations"] = measure_->asked(), json_["remembered"] = measure_->remembered();
    json_["by"] = by_, json_["target"] = engine_.target;
    Progress::clear();
    if (out_ && code_ == kNo) {
      out_->write("report.json", json_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
      out_->commit();
    }
    if (a_.json) {
      print_json(json_);
      return code_;
    }
    if (!json_["first_stage"].is_null()) {
      show_module_diff(diff_, 6);
      fmt::print("{}\n", json_["first_stage"].get<std::string>());
    }
    if (out_ && code_ == kNo) fmt::print("the stages of both sides are in {}/before and {}/after\n", a_.out, a_.out);
    fmt::print("{} compilations, {} answers remembered\n{}\n", measure_->asked(), measure_->remembered(),
               json_["verdict"].get<std::string>());
    return code_;
  }

  const BisectArgs& a_;
  EngineArgs engine_;
  std::string by_;
  XlaBy kind_ = XlaBy::kValue;
  TemporaryFolder scratch_;
  std::optional<OutputFolder> out_;
  std::optional<ValueOf> value_;
  std::optional<XlaMeasure> measure_;
  std::vector<std::string> labels_;
  std::vector<XlaSetting> settings_;
  ModuleDiff diff_;
  std::string best_pass_;  // of those that were left out alone, the one with the least figure
  XlaMeasured best_;
  std::string wanted_;  // what the guilty brought back, in words
  int code_ = kBad;
  Json json_ = {{"found", false},
                {"by", ""},
                {"target", ""},
                {"measured", Json::array()},
                {"monotone", Json()},
                {"before", Json()},
                {"after", Json()},
                {"changed_defaults", Json::array()},
                {"flags", Json::array()},
                {"passes", Json::array()},
                {"passes_of", Json()},
                {"same_module", Json()},
                {"decision", Json()},
                {"first_stage", Json()},
                {"better", Json()},
                {"removed", 0},
                {"added", 0},
                {"modified", 0},
                {"compilations", 0},
                {"remembered", 0},
                {"verdict", ""}};
};

}  // namespace

int bisect_compilations(const BisectArgs& a) {
  if (a.file.empty()) fail(FailureKind::kUsage, "bisect takes a FILE");
  if (!a.by_running())
    fail(FailureKind::kUsage, "compilations are compared by --by; --check, --regex and --verify are of stages");
  return CompilationBisection(a).run();
}

}  // namespace hlo
