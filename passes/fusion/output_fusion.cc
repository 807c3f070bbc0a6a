// multi_output_fusion of today (xla/backends/gpu/transforms/multi_output_fusion.cc): from the results backwards, first
// what reads the same array becomes one kernel of several results, then what reads an array and what makes it.
#include <algorithm>
#include <unordered_set>

#include "ir/analysis/performance/fusibility.h"
#include "ir/analysis/performance/gpu_performance_model.h"
#include "passes/fusion/fuse.h"
#include "passes/fusion/output_fusibility.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// For the siblings of one array; XLA looks on, however long it takes.
constexpr int64_t kMostLooked = 4'000'000;

class OutputFusion {
 public:
  OutputFusion(Module& m, PassContext& ctx, const GpuTarget& target)
      : m_(m), ctx_(ctx), target_(target), costs_(m), model_(m, target, costs_), fusibility_(m, target, costs_) {}

  bool run(CompId comp) {
    comp_ = comp;
    number();
    const std::vector<InstId> order = order_;
    bool changed = false;
    for (size_t k = order.size(); k-- > 0 && !spent_;) {
      const InstId producer = order[k];
      if (!m_.alive(producer) || m_.op(producer) == Opcode::Constant || is_custom_fusion(m_, producer)) continue;
      changed |= siblings(producer);
      if (!spent_) changed |= into_user(producer);
    }
    return changed;
  }

 private:
  // --- who needs whom ---

  void number() {
    order_ = m_.post_order(comp_);
    if (place_.size() < m_.inst_slots()) place_.resize(m_.inst_slots(), 0);  // other computations' are never asked for
    for (size_t k = 0; k < order_.size(); ++k) place_[order_[k].value] = k;
  }
  size_t place(InstId i) const { return place_[i.value]; }
  void put(InstId i, size_t at) {
    if (i.value >= place_.size()) place_.resize(m_.inst_slots(), 0);
    place_[i.value] = at;
  }
  // What needs `from` and stands no further back than `end`; stops at `to`.
  bool behind(InstId from, InstId to, size_t end, std::unordered_set<InstId>* seen) {
    std::vector<InstId> stack = {from};
    while (!stack.empty()) {
      const InstId i = stack.back();
      stack.pop_back();
      auto see = [&](InstId next) {
        if (next == to) return true;
        if (place(next) <= end && seen->insert(next).second) stack.push_back(next);
        ++looked_;
        return false;
      };
      for (InstId next : m_.users(i))
        if (see(next)) return true;
      for (InstId next : m_.control_succs(i))
        if (see(next)) return true;
    }
    return false;
  }
  // Does `to` need `from`, by way of others or directly?
  bool reaches(InstId from, InstId to) {
    if (from == to) return true;
    std::unordered_set<InstId> seen;
    return place(from) <= place(to) && behind(from, to, place(to), &seen);
  }
  // In one place with it: the elements of a fusion's tuple.
  void put_with_elements(InstId i, size_t at) {
    put(i, at);
    if (m_.shape(i).is_tuple())
      for (InstId user : m_.users(i))
        if (m_.op(user) == Opcode::GetTupleElement && floating_.contains(user)) put(user, at);
  }
  // `fusion` stands for both from here on: what does not need the earlier of them goes in front of it, the rest behind.
  void join(InstId other, InstId fusion, bool input) {
    for (InstId i : {other, fusion}) forget(i);
    const size_t from = std::min(place(other), place(fusion)), to = std::max(place(other), place(fusion));
    const InstId early = place(other) < place(fusion) ? other : fusion, late = early == other ? fusion : other;
    std::unordered_set<InstId> needs;
    behind(early, InstId(), to, &needs);
    fuse_as_output(m_, other, fusion);
    if (input) m_.set_attr(fusion, Attr::kind, m_.u().str("kInput"));
    std::vector<InstId> front, back;
    for (size_t k = from; k <= to; ++k) {
      const InstId i = order_[k];
      if (!m_.alive(i) || i == early || i == late) continue;
      (needs.contains(i) ? back : front).push_back(i);
    }
    front.push_back(fusion);
    front.insert(front.end(), back.begin(), back.end());
    for (InstId user : m_.users(fusion)) floating_.insert(user);
    for (size_t k = from; k <= to; ++k) {
      order_[k] = k - from < front.size() ? front[k - from] : InstId();
      if (order_[k].valid()) put_with_elements(order_[k], k);
    }
  }

  // --- siblings ---

  // Of several results: a reduction of several values (argmax) is one.
  int rank(InstId i) const {
    return m_.op(i) != Opcode::Fusion ? 0 : m_.op(m_.comp(m_.called(i)[0]).root) == Opcode::Tuple ? 2 : 1;
  }

  std::string refuse_pair(InstId a, InstId b, InstId shared) {
    const bool first = place(a) < place(b);
    if (reaches(first ? a : b, first ? b : a)) return "one needs the other";
    if (std::string why = refuse_loops(m_, a, b, target_); !why.empty()) return why;
    if (std::string why = refuse_siblings(m_, a, b, shared); !why.empty()) return why;
    return fusibility_.refuse_budget(a, b, false);
  }

  bool siblings(InstId parent) {
    if (m_.shape(parent).is_array() && m_.shape(parent).elements_count() == 1) return false;
    std::vector<InstId> list;
    for (InstId user : m_.users(parent))
      if (!m_.has_control(user) && is_sibling_fusible(m_, user, target_)) list.push_back(user);
    std::stable_sort(list.begin(), list.end(), [&](InstId a, InstId b) { return rank(a) > rank(b); });
    bool changed = false;
    const int64_t most = looked_ + kMostLooked;
    for (size_t i = 0; i < list.size(); ++i) {
      if (m_.op(list[i]) != Opcode::Fusion) continue;
      for (size_t j = i + 1; j < list.size();) {
        if (looked_ > most) {
          ctx_.note(m_, "not joined", {list[i], list[j]}, "too many with the same operand are too far apart");
          return changed;
        }
        if (std::string why = refuse_pair(list[i], list[j], parent); !why.empty()) {
          ctx_.note(m_, "not joined", {list[i], list[j]}, why);
          ++j;
          continue;
        }
        spent_ = !ctx_.spend(m_, "siblings", {list[i], list[j]}, fmt::format("both read {}", m_.inst_name(parent)));
        if (spent_) return changed;
        const bool input =
            m_.op(list[j]) == Opcode::Fusion && m_.u().text(m_.attrs(list[j]).text(Attr::kind)) == "kInput";
        join(list[j], list[i], input);
        list.erase(list.begin() + static_cast<ptrdiff_t>(j));
        changed = true;
      }
    }
    return changed;
  }

  void forget(InstId i) {
    costs_.forget(i);
    fusibility_.forget(i);
    times_.erase(i);
  }

  // --- a producer and one of its users ---

  const RunTime& run_time(InstId i) {
    if (auto at = times_.find(i); at != times_.end()) return at->second;
    RunTime r = model_.of(i);
    return times_[i] = r;
  }

  std::string refuse_user(InstId producer, InstId user, std::string* times) {
    if (m_.has_control(user) || !is_output_fusible(m_, user, target_))
      return "consumer not eligible as multi-output fusion root.";
    if (std::string why = refuse_loops(m_, user, producer, target_); !why.empty()) return why;
    for (InstId o : m_.operands(user))
      if (o != producer && place(o) > place(producer) && reaches(producer, o))
        return "would introduce a cycle when fused";
    if (std::string why = fusibility_.refuse_budget(producer, user, false); !why.empty()) return why;
    if (costs_.merged_too_large(producer, user)) return "will generate too large IR";
    const Ticks apart = 2 * kLaunchOverhead + run_time(producer).total + run_time(user).total;
    const Ticks fused = kLaunchOverhead + model_.fused(producer, user, run_time(producer), run_time(user), true).total;
    *times = fmt::format("{:.4g} us together, {:.4g} us apart", microseconds(fused), microseconds(apart));
    return fused > apart ? "will execute slower if fused: " + *times : "";
  }

  bool into_user(InstId producer) {
    if (m_.has_control(producer) || m_.is_root(producer) || m_.users(producer).empty() ||
        !refuse_output_producer(m_, producer).empty())
      return false;
    // What has a single user was offered to priority-fusion.
    if (m_.user_count(producer) == 1 && rank(m_.users(producer)[0]) != 2) return false;
    InstId best;
    std::string said;
    for (InstId user : m_.users(producer)) {
      std::string times;
      if (std::string why = refuse_user(producer, user, &times); !why.empty()) {
        ctx_.note(m_, "not joined", {producer, user}, why);
      } else if (!best.valid() || rank(user) > rank(best)) {
        best = user, said = times;
      }
    }
    if (!best.valid()) return false;
    spent_ = !ctx_.spend(m_, "producer and user", {producer, best}, said);
    if (spent_) return false;
    if (m_.op(best) != Opcode::Fusion) {
      const bool input = is_input_kernel(m_, best, target_);
      forget(best);
      const size_t at = place(best);
      best = wrap_in_fusion(m_, best, input ? "kInput" : "kLoop");
      order_[at] = best;
      put(best, at);
    }
    join(producer, best, false);
    return true;
  }

  Module& m_;
  PassContext& ctx_;
  const GpuTarget& target_;
  GpuCostAnalysis costs_;
  GpuPerformanceModel model_;
  Fusibility fusibility_;
  CompId comp_;
  std::vector<InstId> order_;            // operands first; invalid or gone where something was
  std::vector<size_t> place_;            // by InstId
  std::unordered_set<InstId> floating_;  // elements of tuples made here, at the place of their fusion
  int64_t looked_ = 0;                   // instructions passed in search of a way from one to another
  std::unordered_map<InstId, RunTime> times_;
  bool spent_ = false;
};

}  // namespace

bool run_multi_output_fusion(Module& m, PassContext& ctx) {
  const GpuTarget target = named_gpu_target(ctx.word("gpu"));
  OutputFusion fusion(m, ctx, target);
  bool changed = false;
  for (CompId c : fusible_computations(m)) changed |= fusion.run(c);
  return changed;
}

}  // namespace hlo
