#include "replay/smaller/smaller.h"

#include <algorithm>

#include "ir/cost/cost.h"
#include "ir/verify/verifier.h"
#include "replay/smaller/constants.h"

namespace hlo {
namespace {

// How often sizes are taken back because a stage does not verify.
constexpr int kMostRounds = 24;

// Sizes that are small enough as they are.
constexpr int64_t kSmall = 16;

// What sizes become where more than a few elements are wanted.
constexpr int64_t kRoomy = 24;

// Sizes of an instruction and its operands that were cut.
std::set<int64_t> cut_at(const Module& m, InstId i, const SizeChoice& choice) {
  std::set<int64_t> out;
  std::function<void(ShapeId)> add = [&](ShapeId shape) {
    const Shape& s = m.u()[shape];
    for (ShapeId e : s.elements) add(e);
    for (int64_t d : s.dims)
      if (choice.of(d) != d) out.insert(d);
  };
  add(m.shape_id(i));
  for (InstId o : m.operands(i)) add(m.shape_id(o));
  return out;
}

class Planner {
 public:
  Planner(const SmallerStages& stages, const SmallerOptions& options) : stages_(stages), options_(options) {}

  SmallerPlan run() {
    for (size_t k = 0; k < stages_.count; ++k) {
      stop();
      try {
        rules_.read(*stages_.load(k), stages_.label(k));
        read_.push_back(k);
      } catch (const Failure&) {
        if (k == 0) throw;
      }
    }
    for (int64_t size : options_.keep) rules_.keep(size, "", "is to be kept");
    plan_.before = work_of(*stages_.load(0));
    // Where the budget does not suffice sizes may fall together, and then small ones are cut, too.
    SmallerPlan best;
    std::vector<SolveOptions> tries{{kSmall, true}, {kSmall, false}, {8, false}, {3, false}};
    if (options_.roomy) tries.insert(tries.begin(), {kSmall, true, kRoomy});
    for (const SolveOptions& t : tries) {
      solve(t);
      const double work = plan_.after.flops + plan_.after.bytes;
      plan_.within = work <= options_.most_work;
      if (!best.before.bytes || work < best.after.flops + best.after.bytes) best = plan_;
      if (plan_.within) break;
    }
    plan_ = std::move(best);
    tell();
    return std::move(plan_);
  }

 private:
  void stop() const {
    if (options_.stop && options_.stop()) fail(FailureKind::kUsage, "interrupted; nothing was written");
  }

  void solve(const SolveOptions& how) {
    for (int round = 0; round < kMostRounds; ++round) {
      plan_.choice = choose_sizes(rules_, how);
      if (verifies()) return;
    }
    plan_.choice = {};
    plan_.after = plan_.before;
  }

  // Of every stage; where one does not, the sizes of what is wrong are kept from now on.
  bool verifies() {
    bool fine = true, same = true;
    constants_.clear();
    for (size_t k : read_) {
      stop();
      const std::unique_ptr<Module> m = stages_.load(k);
      const std::string label = stages_.label(k);
      try {
        const std::unique_ptr<Module> out = with_sizes(*m, plan_.choice);
        for (const VerifyError& e : verify_module(*out, 4)) {
          fine = false;
          const bool at = e.inst.valid() && e.inst.value < m->inst_slots() && m->alive(e.inst);
          const std::set<int64_t> sizes = at ? cut_at(*m, e.inst, plan_.choice) : std::set<int64_t>();
          if (sizes.empty()) return give_up(e.message);
          for (int64_t s : sizes) {
            const std::string name(m->inst_name(e.inst));
            rules_.keep(s, label.empty() ? name : fmt::format("{} of {}", name, label),
                        "would not verify: " + e.message);
          }
        }
        if (k == 0) plan_.after = work_of(*out);
        same = one_number_throughout(*m, *out, label) && same;
      } catch (const Failure& e) {
        return give_up(e.what());
      }
      if (!fine) return false;
    }
    return same;
  }

  // A constant that counts indices in one stage and none in another, by what reads it: its number stays in all.
  bool one_number_throughout(const Module& m, const Module& out, const std::string& label) {
    bool fine = true;
    for (CompId c : m.computations())
      for (InstId i : m.live_order(c)) {
        if (m.op(i) != Opcode::Constant || (m.users(i).empty() && !m.is_root(i))) continue;
        const std::optional<int64_t> was = whole_number(m, i), is = whole_number(out, i);
        if (!was || !is || *was == INT64_MIN) continue;
        const auto [at, first] = constants_.try_emplace({std::string(m.inst_name(i)), *was}, *is);
        if (first || at->second == *is) continue;
        fine = false;
        rules_.keep(std::abs(*was), label.empty() ? at->first.first : fmt::format("{} of {}", at->first.first, label),
                    "counts indices in one stage and none in another");
      }
    return fine;
  }

  bool give_up(const std::string& why) {
    for (const auto& [size, now] : plan_.choice.becomes)
      if (number_of(size) != now) rules_.keep(size, "the module", "would not verify: " + why);
    return false;
  }

  void tell() {
    for (const auto& [size, arrays] : rules_.sizes()) {
      const int64_t now = plan_.choice.of(size);
      if (size <= kSmall && now == size) continue;
      SmallerPlan::Size row{size, now, arrays, "", ""};
      if (now == size) reason(&row);
      plan_.sizes.push_back(std::move(row));
    }
    std::reverse(plan_.sizes.begin(), plan_.sizes.end());
  }

  void reason(SmallerPlan::Size* row) const {
    for (const SizeRules::Kept& k : rules_.why_kept())
      if (k.size == row->before) {
        row->where = k.where, row->why = k.why;
        return;
      }
    for (const SizeRule& r : rules_.rules()) {
      std::vector<std::string> others;
      bool here = false, stays = true;
      for (const auto& [size, factor] : r.terms) {
        const int64_t n = size < 0 ? -size : size;
        if (n == row->before)
          here = true;
        else
          others.push_back(std::to_string(number_of(n))), stays = stays && plan_.choice.of(n) == number_of(n);
      }
      if (!here || !stays || r.kind == SizeRule::kLess || r.kind == SizeRule::kAtMost || others.empty()) continue;
      row->where = r.where, row->why = fmt::format("{}, together with {}", r.why, fmt::join(others, ", "));
      return;
    }
    row->why = "no smaller one keeps all rules";
  }

  const SmallerStages& stages_;
  const SmallerOptions& options_;
  SizeRules rules_;
  std::vector<size_t> read_;                                      // stages that could be read
  std::map<std::pair<std::string, int64_t>, int64_t> constants_;  // what became of them, by name and number
  SmallerPlan plan_;
};

}  // namespace

Work work_of(const Module& m) {
  const Cost c = CostAnalysis(m).of_computation(m.entry());
  return {c.flops + c.transcendentals, c.bytes()};
}

SmallerPlan plan_smaller(const SmallerStages& stages, const SmallerOptions& options) {
  return Planner(stages, options).run();
}

}  // namespace hlo
