// bisect over a folder: its stages run.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "ir/base/memory.h"
#include "ir/eval/inputs.h"
#include "ir/program/buffer.h"
#include "replay/cli/bisect/bisect_folder.h"
#include "replay/judge/contract/amplified.h"
#include "replay/judge/values/edges.h"
#include "replay/judge/values/inputs.h"
#include "replay/os/interrupt.h"

namespace hlo {
namespace {

// Does what it applies look at the bits of numbers?
bool goes_by_bits(const Module& m, InstId sort) {
  for (CompId c : m.called(sort))
    for (InstId i : m.post_order(c))
      if (m.op(i) == Opcode::BitcastConvert) return true;
  return false;
}

// Modules larger than that are looked at with one set of inputs.
constexpr int64_t kLargestSecondLook = int64_t{64} << 20;

// Modules that are looked at with other inputs where nothing was found: how large, how many such inputs, how long.
constexpr int64_t kLargestReach = int64_t{64} << 20;
constexpr uint64_t kTurns = 8;
constexpr std::chrono::seconds kReachTime{10};

}  // namespace

Bisection FolderBisection::search_all() {
  Progress progress("bisecting " + a_.file);
  if (a_.by_running() && from_ == 0) so_far_.judged(0, held_against());
  BisectOptions options = options_of(progress, !a_.quick);
  bool inside = a_.looks_inside();
  if (inside && bytes_inside(*first_) > available_memory().bytes / 2) {
    told_["no_values"] = fmt::format("they take more than {} in f64", human_bytes(bytes_inside(*first_)));
    inside = false;
    check_supported(*first_);
  }
  if (inside) {
    Bisection b = look_inside(options);
    if (b.outcome != Bisection::kAllGood || last_agrees(b)) return b;
    // Inside, in f64, all is the same: what differs in the types that the stages have is rounding gone wrong.
    inside_.reset(), options.every = false;
    return own_types(options);
  }
  Judge judge = make_judge(judged_, *first_, session_.get());
  std::map<size_t, Judgement> known;
  if (a_.by_running()) known[0] = held_against();
  return search(row_, judge, memory_, options, std::move(known));
}

// In the types that the stages have, where all is the same in f64: the first stage that differs, unless it does so by
// rounding through a discontinuity alone; the stages behind it are held against that one then.
Bisection FolderBisection::own_types(const BisectOptions& options) {
  wide_agrees_ = true;
  Bisection all;
  std::vector<std::unique_ptr<Module>> bases;  // that stages are held against, the last one now
  for (size_t from = 0;;) {
    JudgeOptions how = judged_;
    how.behind_edge = from > 0;
    Judge judge = make_judge(how, bases.empty() ? *first_ : *bases.back(), session_.get());
    Bisection b;
    if (from == 0) {
      b = search(row_, judge, memory_, options, {{0, held_against()}});
      all = b;
    } else {
      JudgementFile none("", "");  // by another stage than the first
      b = search(stages_between(row_, from, row_.labels.size()), judge, none, options, {{0, all.judged.at(from)}});
      for (const auto& [k, j] : b.judged) all.judged[from + k] = j;
      all.outcome = b.outcome == Bisection::kUnknown ? Bisection::kAllGood : b.outcome, all.good = from + b.good,
      all.bad = from + b.bad;
      all.bad_ones.clear();
      for (size_t k : b.bad_ones) all.bad_ones.push_back(from + k);
    }
    if (b.outcome != Bisection::kFound || a_.backend != "evaluator" || all.bad != all.good + 1) return all;
    std::unique_ptr<Module> good = row_.load(all.good), bad = row_.load(all.bad);
    const std::string edges = in_words(rounding_at_edges(*good, *bad, *session_, eval_options(a_), a_.tolerance));
    if (edges.empty()) return all;
    told_["rounding"].push_back(fmt::format("{}: {}", row_.labels[all.bad], edges));
    // Those that were held against a stage in front of it have been judged by its edge, too.
    std::erase_if(all.judged, [&](const auto& j) { return j.first > all.bad; });
    all.judged[all.bad] = {Verdict::kGood, "rounding at a discontinuity: " + edges};
    from = all.bad, bases.push_back(std::move(bad));
    if (from + 1 == row_.labels.size()) {
      all.outcome = Bisection::kAllGood, all.bad_ones.clear();
      return all;
    }
  }
}

// What goes by bits of numbers sees them rounded, also where all else is in f64: has a sort the same values in the
// types that the stages have?
bool FolderBisection::same_in_own_types(const Module& good, const Module& bad, const InsideFinding& f) const {
  std::vector<Value> leaves[2];
  for (const bool after : {false, true}) {
    const Module& m = after ? bad : good;
    EvalOptions options = eval_options(a_);
    options.change = [&](InstId i, std::span<const Value>, Value& v) {
      if (i == (after ? f.after : f.before)) leaves[after].clear(), flatten(m.u(), v, &leaves[after]);
    };
    try {
      session_->run(m, *find_executor("evaluator"), options, 1, false);
    } catch (const Failure&) {
      return false;
    }
  }
  bool same = !leaves[0].empty() && leaves[0].size() == leaves[1].size();
  for (size_t k = 0; same && k < leaves[0].size(); ++k) {
    const Shape& s = good.u()[leaves[0][k].shape];
    const auto bytes = static_cast<size_t>(s.elements_count() * storage_bytes(s.type));
    same = std::memcmp(leaves[0][k].bytes(), leaves[1][k].bytes(), bytes) == 0;
  }
  return same;
}

// Found by running the stages: is it no more than rounding may make of these numbers? The stages behind it are held
// against it then. Unless all is the same in f64 it is unknown whether that is all.
bool FolderBisection::rounding_explains(const Bisection& b) {
  const bool own_inputs = !inside_ || inside_->attempt == 0;
  if (!session_ || by_elements_ || a_.backend != "evaluator" || b.bad != b.good + 1 || !own_inputs) return false;
  std::unique_ptr<Module> good, bad;
  try {
    good = row_.load(b.good), bad = row_.load(b.bad);
  } catch (const Failure&) {  // bad for what it is
    return false;
  }
  // One operation that gives another value of the same operands does so by more than rounding; a loop's trips add up.
  if (inside_) {
    const std::vector<InsideFinding>& findings = inside_->stages.at(b.bad).findings;
    if (findings.empty() || findings[0].annotation) return false;
    const InstId at = findings[0].after;
    const InstId was = findings[0].before;
    if (bad->op(at) == Opcode::Sort && was.valid() && goes_by_bits(*bad, at) != goes_by_bits(*good, was) &&
        same_in_own_types(*good, *bad, findings[0])) {
      amplified_[from_ + b.bad] = {
          Verdict::kUnknown, fmt::format("{} has another order in f64 alone: in the stages' own types it is the same",
                                         bad->inst_name(at))};
      return true;
    }
    if (bad->op(at) != Opcode::While && (findings[0].trip <= 0 || !is_float(bad->shape(at).type))) return false;
  }
  const std::string words = amplified_rounding(*good, *bad, *session_, eval_options(a_), inside_ != nullptr);
  if (words.empty()) return false;
  amplified_[from_ + b.bad] = {wide_agrees_ ? Verdict::kGood : Verdict::kUnknown, words};
  return true;
}

// In the answer, the stages that rounding explains.
void FolderBisection::tell_amplified(Bisection* all) {
  for (const auto& [k, j] : amplified_) {
    all->judged[k] = j;
    told_["rounding"].push_back(fmt::format("{}: {}", all_.labels[k], j.detail));
  }
}

// The arguments that the program had, where they lie with it.
void FolderBisection::take_kept() {
  own_ = {}, inputs_.file = a_.inputs;
  if (plan_ || !takes_kept(a_)) return;
  own_ = own_arguments(r_, *first_, a_);
  if (own_.inputs.empty()) return;
  inputs_.file = own_.inputs, told_["inputs_from"] = own_.in_words;
  if (!a_.json) fmt::print("inputs: {}\n", own_.in_words);
}

// A session on other arguments, kept.
const Session* FolderBisection::with_arguments(std::vector<Value> arguments) {
  others_.push_back(std::make_unique<Session>(*session_));
  others_.back()->set_arguments(std::move(arguments));
  return others_.back().get();
}

// The same seed in other magnitudes: positive, near 1, both.
const Session* FolderBisection::other_inputs(int attempt) {
  bool own = !a_.inputs.empty() || attempt > 3;
  if (own) return nullptr;
  return with_arguments(scaled_arguments(*first_, session_->arguments(), attempt == 1 ? 1 : 8, attempt != 2));
}

std::string FolderBisection::inputs_in_words() const {
  std::string out = !own_.inputs.empty() ? own_.in_words
                    : a_.inputs.empty()  ? fmt::format("seed {}", a_.seed)
                                         : a_.inputs;
  const char* how[] = {"", ", positive", ", near 1", ", positive and near 1"};
  return out + how[inside_->attempt];
}

Bisection FolderBisection::look_inside(const BisectOptions& options) {
  InsideOptions o;
  o.eval = eval_options(a_), o.stop = options.stop, o.judged = options.judged;
  o.eval.stop = interrupted;
  o.others = [this](int attempt) { return other_inputs(attempt); };
  // What sorts and indexes is looked at a second time, with ties and with indices at and beyond the bounds.
  if (a_.inputs.empty() && has_edges(*first_) && bytes_inside(*first_) <= kLargestSecondLook)
    o.second = with_arguments(edge_arguments(*first_, session_->arguments()));
  inside_ = std::make_unique<InsideSearch>(search_inside(row_, *first_, *session_, o));
  add_inside(told_, row_, *inside_, inputs_in_words());
  std::unique_ptr<InsideSearch> second = std::move(inside_->second);
  if (inside_->found.outcome != Bisection::kAllGood) return inside_->found;
  if (second) {
    told_["inputs"]["made"] = inputs_in_words() + "; ties and indices at and beyond the bounds";
    if (second->found.outcome == Bisection::kFound) {
      inside_ = std::move(second);
      add_inside(told_, row_, *inside_, "ties and indices at and beyond the bounds");
      return inside_->found;
    }
  }
  return reach_further(o);
}

// Nothing is found: drawn inputs, where the program's own were taken, then such that reach bounds, as long as that is
// quick. Where they make values that are no numbers, rewrites that hold for numbers alone differ, and such inputs are
// left out.
Bisection FolderBisection::reach_further(InsideOptions o) {
  if (!a_.inputs.empty() || bytes_inside(*first_) > kLargestReach) return inside_->found;
  const auto begin = std::chrono::steady_clock::now();
  o.second = nullptr, o.others = nullptr, o.judged = nullptr;
  size_t asked = 0;
  const uint64_t begins = own_.inputs.empty() ? 1 : 0;
  for (uint64_t turn = begins;
       turn <= kTurns && !interrupted() && std::chrono::steady_clock::now() - begin < kReachTime; ++turn) {
    o.only = [this](const InputsTold& told) {
      return told.with_nan <= inside_->told.with_nan && told.infinite <= inside_->told.infinite;
    };
    // Layers upon layers may leave nothing of drawn numbers but zeros, or nothing but what limits and a softmax make
    // of large ones: first, larger ones, and such as keep their size.
    const bool scaled = turn == 1, balanced = turn == 2;
    const uint64_t seed = turn == 0 ? a_.seed : kReachingFrom + turn - 3;
    const Session* with = with_arguments(scaled     ? scaled_arguments(*first_, session_->arguments(), 8, true)
                                         : balanced ? balanced_arguments(*first_, session_->arguments())
                                                    : seeded_arguments(*first_, seed, false));
    auto more = std::make_unique<InsideSearch>(search_inside(row_, *first_, *with, o));
    others_.pop_back();
    if (more->found.outcome == Bisection::kFound) {
      inside_ = std::move(more);
      add_inside(told_, row_, *inside_,
                 scaled     ? fmt::format("{}, positive and near 1", inputs_in_words())
                 : balanced ? fmt::format("{}, of a size that layers keep", inputs_in_words())
                            : fmt::format("seed {}", seed));
      return inside_->found;
    }
    if (more->found.outcome == Bisection::kStopped) inside_->found.outcome = Bisection::kStopped;
    asked += more->stages.size() > 1;
  }
  if (asked) {
    const std::string made = told_["inputs"]["made"];
    told_["inputs"]["made"] = fmt::format("{}; {} that reach bounds", made, asked);
  }
  return inside_->found;
}

// The last stage that can be run, in its own types, against what the first gives.
bool FolderBisection::last_agrees(Bisection& b) {
  for (size_t k = row_.labels.size(); k-- > 1;) {
    auto at = b.judged.find(k);
    if (at == b.judged.end() || at->second.verdict != Verdict::kGood) continue;
    try {
      std::unique_ptr<Module> last = row_.load(k);
      check_supported(*last);
      Judgement j;
      if (a_.backend == "evaluator" && inside_->outputs.shape.valid() && !inside_->attempt)
        j = in_own_types(*last, *session_, eval_options(a_), a_.tolerance, inside_->outputs);
      // The first stage in its own types is asked only where that is not near.
      if (j.verdict != Verdict::kGood) j = make_judge(judged_, *first_, session_.get())(*last);
      if (j.verdict == Verdict::kGood) at->second = j;
      return j.verdict != Verdict::kBad;
    } catch (const OracleFailure&) {
      throw;
    } catch (const Failure& e) {
      // Good by what it consists of; it cannot be run as a whole.
      if (interrupted() || e.kind() != FailureKind::kUnsupported) throw;
      return true;
    }
  }
  return true;
}

}  // namespace hlo
