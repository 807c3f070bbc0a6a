#include "replay/judge/contract/check.h"

#include <algorithm>
#include <cmath>

#include "ir/eval/compare.h"
#include "ir/types/literal.h"
#include "replay/judge/contract/check_runs.h"
#include "replay/judge/contract/other_bits.h"

namespace hlo {
namespace {

constexpr int kNoisyRuns = 4;
constexpr size_t kSitesTried = 12;

// What becomes of an element that differs.
enum class Fate : uint8_t {
  kSame,
  kWithin,     // the module's own error explains it
  kRounded,    // rounding does
  kOpen,       // what HLO leaves open decides it
  kSuspicious  // nothing does, so far
};

class Checker {
 public:
  Checker(const Module& m, const Session& session, const Value& got, const EvalOptions& options)
      : m_(m), runs_(m, session, options), got_value_(got), got_(numbers_of(m.u(), got)) {}

  CheckResult run() {
    std::vector<ContractSite> sites;
    own_ = runs_.as_written(&sites);
    high_ = runs_.exact();
    for (const ContractSite& s : sites) out_.contracts.push_back({s});
    if (first_look()) second_look();
    bool visible = any(visible_);
    if (visible)
      for (Contract c : {Contract::kExcess, Contract::kRange, Contract::kDenormal}) try_bounded(c);
    if (left()) try_open();
    if (left()) try_bounded(Contract::kAccuracy);
    if (left()) try_together();
    if (left() && host_sides_with_it()) {
      out_.verdict = CheckVerdict::kUnknown;
      out_.why = "elements differ, but our host executor gives what was compiled and our evaluator does not";
      summarise();
      return std::move(out_);
    }
    out_.other_bits = other_bits(m_, runs_, got_, own_, [&](size_t l, size_t k) { return fate_[l][k] < Fate::kOpen; });
    summarise();
    conclude();
    return std::move(out_);
  }

 private:
  using Marks = std::vector<std::vector<char>>;

  static bool any(const Marks& marks) {
    return std::any_of(marks.begin(), marks.end(),
                       [](const auto& list) { return std::find(list.begin(), list.end(), 1) != list.end(); });
  }
  bool left() const {
    return std::any_of(fate_.begin(), fate_.end(), [](const auto& list) {
      return std::find(list.begin(), list.end(), Fate::kSuspicious) != list.end();
    });
  }
  static bool same_kind(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (std::isinf(a) || std::isinf(b)) return a == b;
    return true;
  }
  // The same but for `ulps` last places, or `more`.
  static bool near(ElementType t, double a, double b, double ulps, double more = 0) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return true;
    if (!std::isfinite(a) || !std::isfinite(b)) return false;
    return std::fabs(a - b) <= ulps * unit_of_last_place(t, std::max(std::fabs(a), std::fabs(b))) + more;
  }
  ElementType type(size_t l) const { return got_[l].type; }

  // Against what the module's own precision makes. True where more is to be explained.
  bool first_look() {
    bool more = false;
    for (size_t l = 0; l < got_.size(); ++l) {
      fate_.emplace_back(got_[l].size(), Fate::kSame);
      visible_.emplace_back(got_[l].size(), 0);
      scatter_.emplace_back(got_[l].floats ? got_[l].size() : 0, 0.0);
      for (size_t k = 0; k < got_[l].size(); ++k) {
        Fate& f = fate_[l][k];
        if (!got_[l].floats) {
          if (got_[l].whole[k] != own_[l].whole[k]) f = Fate::kSuspicious, visible_[l][k] = 1;
        } else {
          double g = got_[l].real[k], o = own_[l].real[k], h = high_[l].real[k];
          if (g == o || (std::isnan(g) && std::isnan(o))) continue;
          visible_[l][k] = !near(type(l), g, o, 16);
          bool fine = same_kind(g, o) && std::isfinite(h) &&
                      std::fabs(g - h) <= 4 * std::fabs(o - h) + 4 * unit_of_last_place(type(l), h);
          f = fine ? Fate::kWithin : Fate::kSuspicious;
        }
        more = more || f == Fate::kSuspicious;
      }
    }
    return more;
  }

  // Against what rounding may make of it.
  void second_look() {
    std::vector<Leaves> noisy;
    for (uint32_t k = 0; k < kNoisyRuns; ++k) noisy.push_back(runs_.noisy(k + 1));
    for (size_t l = 0; l < got_.size(); ++l)
      if (got_[l].floats)
        floats_within(l, noisy);
      else
        integers_within(l, noisy);
  }

  void integers_within(size_t l, const std::vector<Leaves>& noisy) {
    for (size_t k = 0; k < got_[l].size(); ++k) {
      if (fate_[l][k] != Fate::kSuspicious) continue;
      auto distance = [&](int64_t a) {
        return std::fabs(static_cast<double>(a) - static_cast<double>(own_[l].whole[k]));
      };
      double most = distance(high_[l].whole[k]);
      for (const Leaves& n : noisy) most = std::max(most, distance(n[l].whole[k]));
      if (most > 0 && distance(got_[l].whole[k]) <= most) fate_[l][k] = Fate::kRounded;
    }
  }

  void floats_within(size_t l, const std::vector<Leaves>& noisy) {
    std::vector<double>& spread = scatter_[l];
    for (size_t k = 0; k < spread.size(); ++k) {
      double h = high_[l].real[k];
      auto take = [&](double x) {
        if (std::isfinite(x) && std::isfinite(h)) spread[k] = std::max(spread[k], std::fabs(x - h));
      };
      take(own_[l].real[k]);
      for (const Leaves& n : noisy) take(n[l].real[k]);
    }
    // An element may be lucky in all runs; what half of them have it has, too.
    std::vector<double> sorted = spread;
    double middle = 0;
    if (!sorted.empty()) {
      auto at = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
      std::nth_element(sorted.begin(), at, sorted.end());
      middle = *at;
    }
    for (size_t k = 0; k < spread.size(); ++k) {
      if (fate_[l][k] != Fate::kSuspicious) continue;
      double g = got_[l].real[k], o = own_[l].real[k], h = high_[l].real[k];
      bool kind = same_kind(g, o), fine = false;
      for (const Leaves& n : noisy) kind = kind || same_kind(g, n[l].real[k]);
      if (kind && std::isfinite(g) && std::isfinite(h)) {
        fine = std::fabs(g - h) <= 8 * spread[k] + 2 * middle + 4 * unit_of_last_place(type(l), h);
      } else if (kind && std::isfinite(g)) {
        double apart = 0;
        for (const Leaves& n : noisy)
          if (std::isfinite(n[l].real[k]) && std::isfinite(o)) apart = std::max(apart, std::fabs(n[l].real[k] - o));
        fine = std::isfinite(o) && std::fabs(g - o) <= 8 * apart;
      } else {
        fine = kind;
      }
      if (fine) fate_[l][k] = Fate::kRounded;
    }
  }

  // Elements that this run gives as they were compiled, and the module in its own types does not. `visible`: also those
  // that rounding explains, where the run gives them to the last places.
  Marks reproduced(const Leaves& other, bool visible) const {
    Marks out;
    for (size_t l = 0; l < got_.size(); ++l) {
      out.emplace_back(got_[l].size(), 0);
      bool all = visible;
      for (size_t k = 0; k < got_[l].size(); ++k) {
        bool open = fate_[l][k] == Fate::kSuspicious;
        if (!open && (!visible || !visible_[l][k])) continue;
        if (!got_[l].floats) {
          out[l][k] = other[l].whole[k] == got_[l].whole[k];
          continue;
        }
        double g = got_[l].real[k], o = own_[l].real[k], x = other[l].real[k];
        out[l][k] = near(type(l), g, x, open ? 16 : 2) && !near(type(l), o, x, open ? 4 : 16);
        all = all && (open || out[l][k]);
      }
      // One of many is chance.
      for (size_t k = 0; k < got_[l].size() && !all; ++k) out[l][k] = out[l][k] && fate_[l][k] == Fate::kSuspicious;
    }
    return out;
  }
  // Elements that this run gives differently from the module as it is written.
  Marks moved(const Leaves& other) const {
    Marks out;
    for (size_t l = 0; l < got_.size(); ++l) {
      out.emplace_back(got_[l].size(), 0);
      for (size_t k = 0; k < got_[l].size(); ++k)
        out[l][k] = got_[l].floats ? !near(type(l), other[l].real[k], own_[l].real[k], 0)
                                   : other[l].whole[k] != own_[l].whole[k];
    }
    return out;
  }
  static void unite(Marks& a, const Marks& b) {
    if (a.empty()) {
      a = b;
      return;
    }
    for (size_t l = 0; l < a.size(); ++l)
      for (size_t k = 0; k < a[l].size(); ++k) a[l][k] = a[l][k] || b[l][k];
  }
  bool touches_suspicious(const Marks& marks) const {
    for (size_t l = 0; l < marks.size(); ++l)
      for (size_t k = 0; k < marks[l].size(); ++k)
        if (marks[l][k] && fate_[l][k] == Fate::kSuspicious) return true;
    return false;
  }
  void explain(const Marks& marks) {
    for (size_t l = 0; l < marks.size(); ++l)
      for (size_t k = 0; k < marks[l].size(); ++k)
        if (marks[l][k]) fate_[l][k] = Fate::kOpen;
  }

  Marks by_accuracy(const Leaves& first, const Leaves& second) const {
    Marks out;
    for (size_t l = 0; l < got_.size(); ++l) {
      out.emplace_back(got_[l].size(), 0);
      for (size_t k = 0; k < got_[l].size() && got_[l].floats; ++k) {
        double g = got_[l].real[k], h = high_[l].real[k], a = first[l].real[k], b = second[l].real[k];
        if (fate_[l][k] != Fate::kSuspicious) continue;
        if (!std::isfinite(g) || !std::isfinite(h) || !std::isfinite(a) || !std::isfinite(b)) continue;
        out[l][k] = std::fabs(g - h) <= 2 * std::max(std::fabs(a - h), std::fabs(b - h));
      }
    }
    return out;
  }

  Marks bounded_marks(Contract c, InstId only, std::map<InstId, int64_t>* sites) {
    if (c == Contract::kAccuracy) {
      std::map<InstId, int64_t> again;
      Leaves a = runs_.bounded(c, 0, only, sites);
      if (sites->empty()) return {};
      return by_accuracy(a, runs_.bounded(c, 1, only, &again));
    }
    Marks out;
    for (int which = 0; which < contract_choices(c); ++which) {
      std::map<InstId, int64_t> here;
      Leaves other = runs_.bounded(c, which, only, &here);
      for (const auto& [i, n] : here) (*sites)[i] = std::max((*sites)[i], n);
      // In bf16 nothing but the last places is rounding, unless a convert is left out.
      if (!here.empty()) unite(out, reproduced(other, c != Contract::kExcess || which == 0));
    }
    return out;
  }

  void try_bounded(Contract c) {
    std::map<InstId, int64_t> sites;
    Marks marks = bounded_marks(c, InstId(), &sites);
    bool decides = any(marks);
    // Every exp of the module, every operation in bf16: they are worth a line where they decide.
    if (!decides && c == Contract::kAccuracy) return;
    size_t first = out_.contracts.size();
    if (!sites.empty()) bounded_kinds_.push_back(c);
    for (const auto& [i, n] : sites)
      if (decides || c != Contract::kExcess || m_.op(i) == Opcode::Convert)
        out_.contracts.push_back({{i, c, n}, true, decides, decides});
    for (size_t k = first; decides && sites.size() > 1 && k < out_.contracts.size(); ++k) {
      DecidingSite& s = out_.contracts[k];
      std::map<InstId, int64_t> ignored;
      s.asked = k - first < kSitesTried;
      s.decides = s.reproduces = s.asked && any(bounded_marks(c, s.site.inst, &ignored));
    }
    if (decides) explain(marks);
  }

  // What none of them explains alone, two or three may.
  void try_together() {
    auto seen = [&](Contract c) {
      return std::find(bounded_kinds_.begin(), bounded_kinds_.end(), c) != bounded_kinds_.end();
    };
    std::vector<Contract> kinds;
    for (Contract c : {Contract::kRange, Contract::kExcess, Contract::kDenormal})
      // Small numbers may be there only where the range is kept.
      if (seen(c) || (c == Contract::kDenormal && seen(Contract::kRange))) kinds.push_back(c);
    std::vector<std::vector<Contract>> sets;
    for (size_t a = 0; a < kinds.size(); ++a)
      for (size_t b = a + 1; b < kinds.size(); ++b) sets.push_back({kinds[a], kinds[b]});
    if (kinds.size() == 3) sets.push_back(kinds);
    for (const std::vector<Contract>& set : sets) {
      if (!left()) return;
      std::map<InstId, int64_t> sites;
      Marks marks;
      int ways = 0;  // by bits
      for (int which = 0; which < CheckRuns::together_choices(set); ++which) {
        std::map<InstId, int64_t> here;
        Marks now = reproduced(runs_.together(set, which, InstId(), &here), false);
        if (!touches_suspicious(now)) continue;
        unite(marks, now), ways |= 1 << which;
        for (const auto& [i, n] : here) sites[i] = std::max(sites[i], n);
      }
      if (!ways) continue;
      for (const auto& [i, n] : sites) out_.contracts.push_back(joint_site(i, n, set, ways, sites.size()));
      explain(marks);
    }
  }
  // Does what was compiled come out still where this one instruction keeps to the contracts?
  DecidingSite joint_site(InstId i, int64_t elements, const std::vector<Contract>& set, int ways, size_t sites) {
    DecidingSite s{{i, set[0], elements}, sites <= kSitesTried, false, false, {set.begin() + 1, set.end()}};
    if (!s.asked) return s;
    bool without = false;
    for (int which = 0; which < CheckRuns::together_choices(set) && !without; ++which) {
      std::map<InstId, int64_t> ignored;
      if (ways >> which & 1) without = touches_suspicious(reproduced(runs_.together(set, which, i, &ignored), false));
    }
    s.decides = s.reproduces = !without;
    return s;
  }

  // Elements that depend on the values that are open there.
  Marks open_marks(Contract c, InstId only, bool* reproduces) {
    Marks out;
    for (int which = 0; which < contract_choices(c); ++which) {
      Leaves other = runs_.open(c, which, only);
      Marks now = moved(other);
      bool news = false, missing = false;
      for (size_t l = 0; l < now.size(); ++l)
        for (size_t k = 0; k < now[l].size(); ++k) {
          if (fate_[l][k] != Fate::kSuspicious) continue;
          bool before = !out.empty() && out[l][k];
          news = news || (now[l][k] && !before), missing = missing || (!now[l][k] && !before);
        }
      unite(out, now);
      *reproduces = *reproduces || any(reproduced(other, false));
      // Orders by chance: the next one tells no more where this one did not.
      if (!missing || (!news && which >= 4)) break;
    }
    return out;
  }

  void try_open() {
    Marks all;
    std::vector<Contract> kinds;
    for (const DecidingSite& s : out_.contracts)
      if (std::find(kinds.begin(), kinds.end(), s.site.kind) == kinds.end()) kinds.push_back(s.site.kind);
    for (Contract c : kOpenContracts) {
      if (std::find(kinds.begin(), kinds.end(), c) == kinds.end()) continue;
      bool reproduces = false;
      Marks marks = open_marks(c, InstId(), &reproduces);
      bool decides = touches_suspicious(marks);
      std::vector<DecidingSite*> of;
      for (DecidingSite& s : out_.contracts)
        if (s.site.kind == c) of.push_back(&s);
      for (size_t k = 0; k < of.size(); ++k) {
        of[k]->asked = !decides || of.size() == 1 || k < kSitesTried;
        of[k]->decides = decides && of.size() == 1, of[k]->reproduces = reproduces && of.size() == 1;
        if (!decides || of.size() == 1 || !of[k]->asked) continue;
        of[k]->decides = touches_suspicious(open_marks(c, of[k]->site.inst, &of[k]->reproduces));
      }
      unite(all, marks);
    }
    for (size_t l = 0; l < all.size(); ++l)
      for (size_t k = 0; k < all[l].size(); ++k) all[l][k] = all[l][k] && fate_[l][k] == Fate::kSuspicious;
    explain(all);
  }

  bool host_sides_with_it() {
    try {
      Leaves host = runs_.by_host();
      for (size_t l = 0; l < got_.size(); ++l)
        for (size_t k = 0; k < got_[l].size(); ++k) {
          if (fate_[l][k] != Fate::kSuspicious) continue;
          if (got_[l].floats ? !near(type(l), host[l].real[k], got_[l].real[k], 64)
                             : host[l].whole[k] != got_[l].whole[k])
            return false;
        }
      return true;
    } catch (const Failure& e) {
      if (e.kind() != FailureKind::kUnsupported) throw;
      return false;  // it does not run it: no second opinion
    }
  }

  void summarise() {
    std::vector<Value> leaves;
    flatten(m_.u(), got_value_, &leaves);
    for (size_t l = 0; l < got_.size(); ++l)
      if (m_.u()[leaves[l].shape].is_array()) out_.outputs.push_back(output(l, leaves[l]));
  }

  CheckedOutput output(size_t l, const Value& leaf) const {
    const Shape& s = m_.u()[leaf.shape];
    CheckedOutput o;
    o.name = fmt::format("o{}", l), o.shape = m_.u().shape_text_plain(leaf.shape), o.elements = s.elements_count();
    size_t worst = SIZE_MAX;
    double worst_error = -1, largest = 0;
    auto parts = static_cast<size_t>(got_[l].parts);
    for (size_t e = 0; e < static_cast<size_t>(o.elements); ++e) {
      Fate f = Fate::kSame;
      double error = 0;
      for (size_t k = e * parts; k < (e + 1) * parts; ++k) {
        f = std::max(f, fate_[l][k]);
        if (!got_[l].floats) continue;
        double g = got_[l].real[k], w = own_[l].real[k], h = high_[l].real[k];
        if (!std::isfinite(h)) continue;
        largest = std::max(largest, std::fabs(h));
        if (std::isfinite(g)) error = std::max(error, std::fabs(g - h)), o.error = std::max(o.error, std::fabs(g - h));
        if (std::isfinite(w)) o.error_written = std::max(o.error_written, std::fabs(w - h));
      }
      o.different += f != Fate::kSame, o.rounded += f == Fate::kRounded, o.open += f == Fate::kOpen;
      o.wrong += f == Fate::kSuspicious;
      if (f == Fate::kSame) continue;
      if (worst == SIZE_MAX || f > worst_fate(l, worst) || (f == worst_fate(l, worst) && error > worst_error))
        worst = e, worst_error = error;
    }
    for (double* e : {&o.error, &o.error_written})
      if (*e > 0 && largest > 0) *e /= largest;
    bool wider = o.rounded && o.error > 4 * o.error_written + 8 * unit_of_last_place(type(l), 1);
    o.verdict = o.wrong                                   ? CheckVerdict::kWrong
                : o.open                                  ? CheckVerdict::kContract
                : wider || (o.rounded && !got_[l].floats) ? CheckVerdict::kRounding
                                                          : CheckVerdict::kRight;
    if (worst != SIZE_MAX) place(l, worst, s, o);
    return o;
  }

  Fate worst_fate(size_t l, size_t element) const {
    Fate f = Fate::kSame;
    auto parts = static_cast<size_t>(got_[l].parts);
    for (size_t k = element * parts; k < (element + 1) * parts; ++k) f = std::max(f, fate_[l][k]);
    return f;
  }

  void place(size_t l, size_t e, const Shape& s, CheckedOutput& o) const {
    o.index = Dims(s.dims.size(), 0);
    auto rest = static_cast<int64_t>(e);
    for (size_t d = s.dims.size(); d-- > 0; rest /= s.dims[d]) o.index[d] = rest % s.dims[d];
    auto text = [&](const Numbers& n, bool exact) {
      std::string out;
      for (size_t k = e * static_cast<size_t>(n.parts); k < (e + 1) * static_cast<size_t>(n.parts); ++k) {
        out += out.empty() ? "" : ", ";
        if (n.floats && std::isnan(n.real[k]))
          out += "nan";  // of either sign
        else if (!n.floats)
          out += n.type == ElementType::U64 ? fmt::format("{}", static_cast<uint64_t>(n.whole[k]))
                                            : fmt::format("{}", n.whole[k]);
        else
          out += exact || n.type == ElementType::F64 ? fmt::format("{:.17g}", n.real[k])
                                                     : fmt::format("{:.9g}", n.real[k]);
      }
      return n.parts == 2 ? "(" + out + ")" : out;
    };
    o.compiled = text(got_[l], false), o.written = text(own_[l], false), o.exact = text(high_[l], true);
  }

  void conclude() {
    out_.verdict = CheckVerdict::kRight;
    const CheckedOutput* first = nullptr;
    for (const CheckedOutput& o : out_.outputs)
      if (o.verdict > out_.verdict) out_.verdict = o.verdict, first = &o;
    int64_t differ = 0;
    for (const CheckedOutput& o : out_.outputs) differ += o.different;
    auto at = [&] { return fmt::format("{}[{}]", first->name, fmt::join(first->index, ",")); };
    switch (out_.verdict) {
      case CheckVerdict::kRight:
        out_.why = differ                     ? "every element is as exact as the module that XLA was given makes it"
                   : !out_.other_bits.empty() ? "every element is the number that the module that XLA was given makes"
                                              : "every element has the bits that the module that XLA was given makes";
        return;
      case CheckVerdict::kRounding:
        out_.why = fmt::format(
            "{} of {} elements of {} are less exact than the module as written, and no more than "
            "rounding in another order makes them; worst at {}",
            first->rounded, first->elements, first->name, at());
        return;
      case CheckVerdict::kContract:
        out_.why = fmt::format("{} of {} elements of {} depend on what HLO leaves open", first->open, first->elements,
                               first->name);
        return;
      default:
        out_.why = fmt::format(
            "{} of {} elements of {} differ, and neither rounding nor anything that HLO leaves open "
            "explains it; at {} {} was compiled, {} is right",
            first->wrong, first->elements, first->name, at(), first->compiled, first->written);
    }
  }

  const Module& m_;
  CheckRuns runs_;
  const Value& got_value_;
  Leaves got_, own_, high_;
  std::vector<std::vector<Fate>> fate_;
  std::vector<Contract> bounded_kinds_;       // those that have a site
  Marks visible_;                             // differs from the module as written by more than some last places
  std::vector<std::vector<double>> scatter_;  // how far rounding takes an element from the exact value
  CheckResult out_;
};

}  // namespace

std::string_view verdict_name(CheckVerdict v) {
  constexpr std::string_view kNames[] = {"right", "rounding", "contract", "wrong", "unknown"};
  return kNames[static_cast<size_t>(v)];
}

CheckResult check_result(const Module& m, const Session& session, const Value& got, const EvalOptions& options) {
  check_supported(m);
  return Checker(m, session, got, options).run();
}

}  // namespace hlo
