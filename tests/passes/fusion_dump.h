// XLA's priority_fusion_dump beside our own cost model and queue, step by step: our queue is led along XLA's fusions,
// whatever it would choose itself, and each of its decisions is held against XLA's about the same producer.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "passes/fusion/priority_queue.h"

namespace hlo {

struct FusionStep {
  enum Kind { kUpdate, kFusion, kIneligible } kind = kUpdate;
  std::string producer, consumer, fusion, reason;
  std::vector<std::string> users;  // of the producer, as they stood in XLA's memory
  double fused = 0, unfused = 0;
};

struct FusionDump {
  std::vector<FusionStep> steps;
  GpuTarget target;
  std::unique_ptr<Module> module;
};

// Throws Failure(kIo, kSyntax).
FusionDump read_fusion_dump(const std::string& path);

struct FusionScore {
  size_t asked = 0, right = 0, exact = 0, eligible = 0, same_eligible = 0, same_reason = 0, refused = 0;
};

class FusionLeader {
 public:
  FusionLeader(FusionDump* dump, size_t show, std::string explain, double within = 0.01, bool show_triton = false)
      : d_(*dump),
        m_(*dump->module),
        show_(show),
        explain_(std::move(explain)),
        within_(within),
        show_triton_(show_triton) {
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.comp(c).order)
        if (m_.alive(i)) {
          const std::string name(m_.inst_name(i));
          by_name_[name] = i;
          names_[i] = name;
        }
  }

  void run() {
    for (size_t at = 0; at < d_.steps.size();) {
      const FusionStep& s = d_.steps[at];
      auto first = by_name_.find(s.producer);
      if (first == by_name_.end()) fail(FailureKind::kInternal, "no instruction '{}'", s.producer);
      const CompId comp = m_.parent(first->second);
      ours_.clear();
      order_users(at);
      PriorityFusionQueue queue(m_, comp, d_.target,
                                [&](const PriorityFusionQueue::Decision& decision) { ours_.push_back(decision); });
      queue_ = &queue;
      at = compare(at, comp);
      while (at < d_.steps.size() && d_.steps[at].kind == FusionStep::kFusion && in(at, comp)) {
        const std::string producer_name = d_.steps[at].producer;
        const InstId producer = by_name_.at(producer_name);
        std::vector<InstId> consumers;
        queue.take(producer);
        const bool keep = m_.op(producer) == Opcode::Bitcast;
        std::vector<InstId> all = m_.users_copy(producer);
        for (;
             at < d_.steps.size() && d_.steps[at].kind == FusionStep::kFusion && d_.steps[at].producer == producer_name;
             ++at) {
          const FusionStep& f = d_.steps[at];
          auto c = by_name_.find(f.consumer);
          if (c == by_name_.end()) fail(FailureKind::kInternal, "no consumer '{}'", f.consumer);
          const InstId consumer = c->second;
          consumers.push_back(consumer);
          const bool triton = is_triton_fusion(m_, producer) || is_triton_fusion(m_, consumer);
          const std::string& config =
              triton ? std::string(m_.u().text(
                           m_.attrs(is_triton_fusion(m_, consumer) ? consumer : producer).text(Attr::backend_config)))
                     : std::string();
          const InstId fusion = queue.fuse(producer, consumer);
          if (triton && !is_triton_fusion(m_, fusion)) m_.set_attr(fusion, Attr::backend_config, m_.u().str(config));
          by_name_.erase(f.consumer);
          by_name_[f.fusion] = fusion;
          names_[fusion] = f.fusion;
        }
        ours_.clear();
        queue.finish(producer, keep ? consumers : all);
        at = compare(at, comp);
      }
    }
  }

  void print(const char* name) const {
    auto percent = [](size_t a, size_t b) { return b ? 100.0 * static_cast<double>(a) / static_cast<double>(b) : 100; };
    for (int triton = 0; triton < 2; ++triton) {
      const FusionScore& s = score_[triton];
      std::printf(
          "%-62s %-7s times %6zu within 1 %% %6.2f exact %6.2f | decided %6zu alike %6.2f | refused %6zu reason "
          "%6.2f\n",
          triton ? "" : name, triton ? "triton" : "", s.asked, percent(s.right, s.asked), percent(s.exact, s.asked),
          s.eligible, percent(s.same_eligible, s.eligible), s.refused, percent(s.same_reason, s.refused));
    }
    for (const auto& [what, count] : departures_) std::printf("      %6zu  %s\n", count, what.c_str());
  }
  const FusionScore& score(int triton) const { return score_[triton]; }

 private:
  bool in(size_t at, CompId comp) const {
    auto i = by_name_.find(d_.steps[at].producer);
    return i != by_name_.end() && m_.parent(i->second) == comp;
  }

  // As XLA had them before the first fusion: of pairs that count as one the first gives the price.
  void order_users(size_t at) {
    for (; at < d_.steps.size() && d_.steps[at].kind != FusionStep::kFusion; ++at) {
      std::vector<InstId> users;
      for (const std::string& name : d_.steps[at].users)
        if (auto user = by_name_.find(name); user != by_name_.end()) users.push_back(user->second);
      if (auto of = by_name_.find(d_.steps[at].producer); of != by_name_.end()) m_.order_users(of->second, users);
    }
  }

  // Triton's fusions, and what had one as a user.
  bool touches_triton(InstId i) {
    bool t = is_triton_fusion(m_, i) || tainted_.contains(i);
    if (m_.alive(i))
      for (InstId u : m_.users(i)) t |= is_triton_fusion(m_, u);
    if (t) tainted_.insert(i);
    return t;
  }

  std::string words(InstId i) const {
    std::string kind(op_text(m_.op(i)));
    if (m_.op(i) == Opcode::Fusion) {
      FusionView v(m_, i);
      kind += "(" + std::string(op_text(m_.op(v.roots()[0]))) + ")";
    }
    return kind;
  }

  void depart(InstId i, const std::string& kind, const std::string& text) {
    if (departures_[kind]++ < show_ && shown_++ < show_ * 8)
      std::printf("    %s: %s: %s\n", names_[i].c_str(), kind.c_str(), text.c_str());
    if (names_[i] == explain_) explain(i);
  }

  void explain(InstId i) {
    std::printf("  %s: %s\n", names_[i].c_str(), queue_->model().of(i).text().c_str());
    for (InstId u : m_.users(i)) {
      const RunTime p = queue_->model().of(i), c = queue_->model().of(u);
      std::printf("    %s %s: %s\n", names_[u].c_str(), words(u).c_str(), c.text().c_str());
      std::printf("    both: %s\n", queue_->model().fused(i, u, p, c).text().c_str());
    }
  }

  size_t compare(size_t at, CompId comp) {
    std::unordered_map<InstId, const PriorityFusionQueue::Decision*> mine;
    for (const auto& o : ours_) mine[o.producer] = &o;
    for (; at < d_.steps.size() && d_.steps[at].kind != FusionStep::kFusion && in(at, comp); ++at) {
      const FusionStep& s = d_.steps[at];
      const InstId i = by_name_.at(s.producer);
      FusionScore& score = score_[touches_triton(i)];
      const bool triton = touches_triton(i);
      ++score.eligible;
      auto o = mine.find(i);
      const bool refused = o != mine.end() && !o->second->refused.empty();
      if (o == mine.end()) {
        if (!triton || show_triton_) depart(i, "not asked", words(i));
        continue;
      }
      if (refused != (s.kind == FusionStep::kIneligible)) {
        if (!triton || show_triton_)
          depart(i,
                 fmt::format("{} by XLA, {} here", s.kind == FusionStep::kIneligible ? s.reason : "taken",
                             refused ? o->second->refused : "taken"),
                 words(i));
        mine.erase(o);
        continue;
      }
      ++score.same_eligible;
      if (refused) {
        ++score.refused;
        if (o->second->refused == s.reason)
          ++score.same_reason;
        else if (!triton || show_triton_)
          depart(i, fmt::format("reason: {} by XLA, {} here", s.reason, o->second->refused), words(i));
        mine.erase(o);
        continue;
      }
      ++score.asked;
      const double f = microseconds(o->second->fused), u = microseconds(o->second->unfused);
      auto near = [&](double a, double b) { return std::abs(a - b) <= within_ * std::max(std::abs(b), 0.05); };
      const bool right = near(f, s.fused) && near(u, s.unfused);
      score.right += right;
      // The dump's times are 32-bit floats.
      auto equal = [](double a, double b) { return std::abs(a - b) <= std::max(1e-4, std::abs(b) * 1e-6); };
      score.exact += equal(f, s.fused) && equal(u, s.unfused);
      if (!right && (!triton || show_triton_)) {
        const bool fused_wrong = !near(f, s.fused), unfused_wrong = !near(u, s.unfused);
        std::string users;
        for (InstId x : m_.users(i)) users += " " + words(x);
        depart(i, fmt::format("{}{} of {}", fused_wrong ? "fused" : "", unfused_wrong ? " unfused" : "", words(i)),
               fmt::format("fused {:.5f} ({:.5f} by XLA), unfused {:.5f} ({:.5f}); users{}", f, s.fused, u, s.unfused,
                           users.substr(0, 120)));
      } else if (names_[i] == explain_) {
        explain(i);
      }
      mine.erase(o);
    }
    for (const auto& [i, o] : mine) {
      const bool triton = touches_triton(i);
      ++score_[triton].eligible;
      if (!triton || show_triton_) depart(i, "asked here alone", words(i) + " " + o->refused);
    }
    return at;
  }

  FusionDump& d_;
  Module& m_;
  size_t show_, shown_ = 0;
  std::string explain_;
  double within_;
  bool show_triton_;
  std::unordered_map<std::string, InstId> by_name_;
  std::unordered_map<InstId, std::string> names_;
  std::unordered_set<InstId> tainted_;
  std::vector<PriorityFusionQueue::Decision> ours_;
  PriorityFusionQueue* queue_ = nullptr;
  FusionScore score_[2];
  std::map<std::string, size_t> departures_;
};

}  // namespace hlo
