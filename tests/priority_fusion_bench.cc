// How well our cost model of GPU fusions agrees with XLA's, step by step:
//   priority_fusion_bench [--show=N] [--explain=NAME] MODULE.priority_fusion_dump.txt…
// The dump holds the module before fusion, each fusion in order and every decision in between. Our queue is led along
// XLA's fusions, whatever it would choose itself, and each of its decisions is compared with XLA's about the same
// producer: times within 1 %, refusals by their reasons. Rows about Triton's fusions are counted apart.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "parser/parser.h"
#include "passes/fusion/priority_queue.h"

namespace hlo {
namespace {

struct Step {
  enum Kind { kUpdate, kFusion, kIneligible } kind = kUpdate;
  std::string producer, consumer, fusion, reason;
  double fused = 0, unfused = 0;
};

struct Dump {
  std::vector<Step> steps;
  GpuTarget target;
  std::unique_ptr<Module> module;
};

std::string quoted(std::string_view line) {
  const size_t from = line.find('"'), to = line.rfind('"');
  return from == std::string_view::npos || to <= from ? "" : std::string(line.substr(from + 1, to - from - 1));
}

Dump read_dump(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(FailureKind::kIo, "no file {}", path);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Dump d;
  const size_t info = text.find("gpu_device_info {"), module = text.find("hlo_module_before_fusion: \"");
  if (info == std::string::npos || module == std::string::npos) fail(FailureKind::kSyntax, "{}: no fusion dump", path);
  d.target = parse_gpu_target(std::string_view(text).substr(info, module - info));
  for (size_t at = 0; at < info;) {
    size_t end = text.find('\n', at);
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    auto is = [&](std::string_view key) { return line.starts_with(key); };
    if (is("fusion_steps")) d.steps.emplace_back();
    if (d.steps.empty()) continue;
    Step& s = d.steps.back();
    if (is("fusion {")) s.kind = Step::kFusion;
    if (is("producer_ineligible")) s.kind = Step::kIneligible;
    if (is("producer_name")) s.producer = quoted(line);
    if (is("consumer_name:")) s.consumer = quoted(line);
    if (is("fusion_name")) s.fusion = quoted(line);
    if (is("reason")) s.reason = quoted(line);
    if (is("us_fused")) s.fused = std::atof(line.data() + 9);
    if (is("us_unfused")) s.unfused = std::atof(line.data() + 11);
  }
  std::string body;
  if (!c_unescape(quoted(std::string_view(text).substr(module)), &body))
    fail(FailureKind::kSyntax, "{}: the module's text has a bad escape", path);
  d.module = parse_module(body, std::make_shared<Universe>(), {.file = path});
  return d;
}

struct Score {
  size_t asked = 0, right = 0, exact = 0, eligible = 0, same_eligible = 0, same_reason = 0, refused = 0;
};

class Leader {
 public:
  Leader(Dump* dump, size_t show, std::string explain)
      : d_(*dump), m_(*dump->module), show_(show), explain_(std::move(explain)) {
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
      const Step& s = d_.steps[at];
      auto first = by_name_.find(s.producer);
      if (first == by_name_.end()) fail(FailureKind::kInternal, "no instruction '{}'", s.producer);
      const CompId comp = m_.parent(first->second);
      ours_.clear();
      PriorityFusionQueue queue(m_, comp, d_.target, [&](const PriorityFusionQueue::Decision& decision) {
        ours_.push_back(decision);
      });
      queue_ = &queue;
      at = compare(at, comp);
      while (at < d_.steps.size() && d_.steps[at].kind == Step::kFusion && in(at, comp)) {
        const std::string producer_name = d_.steps[at].producer;
        const InstId producer = by_name_.at(producer_name);
        std::vector<InstId> consumers;
        queue.take(producer);
        const bool keep = m_.op(producer) == Opcode::Bitcast;
        std::vector<InstId> all = m_.users_copy(producer);
        for (; at < d_.steps.size() && d_.steps[at].kind == Step::kFusion && d_.steps[at].producer == producer_name;
             ++at) {
          const Step& f = d_.steps[at];
          auto c = by_name_.find(f.consumer);
          if (c == by_name_.end()) fail(FailureKind::kInternal, "no consumer '{}'", f.consumer);
          const InstId consumer = c->second;
          consumers.push_back(consumer);
          const bool triton = is_triton_fusion(m_, producer) || is_triton_fusion(m_, consumer);
          const std::string& config = triton ? std::string(m_.u().text(m_.attrs(is_triton_fusion(m_, consumer) ? consumer : producer).text(Attr::backend_config))) : std::string();
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
      const Score& s = score_[triton];
      std::printf("%-62s %-7s times %6zu within 1 %% %6.2f exact %6.2f | decided %6zu alike %6.2f | refused %6zu reason %6.2f\n",
                  triton ? "" : name, triton ? "triton" : "", s.asked, percent(s.right, s.asked),
                  percent(s.exact, s.asked), s.eligible, percent(s.same_eligible, s.eligible), s.refused,
                  percent(s.same_reason, s.refused));
    }
    for (const auto& [what, count] : departures_) std::printf("      %6zu  %s\n", count, what.c_str());
  }
  const Score& score(int triton) const { return score_[triton]; }

 private:
  bool in(size_t at, CompId comp) const {
    auto i = by_name_.find(d_.steps[at].producer);
    return i != by_name_.end() && m_.parent(i->second) == comp;
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
    for (; at < d_.steps.size() && d_.steps[at].kind != Step::kFusion && in(at, comp); ++at) {
      const Step& s = d_.steps[at];
      const InstId i = by_name_.at(s.producer);
      Score& score = score_[touches_triton(i)];
      const bool triton = touches_triton(i);
      ++score.eligible;
      auto o = mine.find(i);
      const bool refused = o != mine.end() && !o->second->refused.empty();
      if (o == mine.end()) {
        if (!triton) depart(i, "not asked", words(i));
        continue;
      }
      if (refused != (s.kind == Step::kIneligible)) {
        if (!triton)
          depart(i, fmt::format("{} by XLA, {} here", s.kind == Step::kIneligible ? s.reason : "taken", refused ? o->second->refused : "taken"), words(i));
        mine.erase(o);
        continue;
      }
      ++score.same_eligible;
      if (refused) {
        ++score.refused;
        if (o->second->refused == s.reason)
          ++score.same_reason;
        else if (!triton)
          depart(i, fmt::format("reason: {} by XLA, {} here", s.reason, o->second->refused), words(i));
        mine.erase(o);
        continue;
      }
      ++score.asked;
      const double f = microseconds(o->second->fused), u = microseconds(o->second->unfused);
      auto near = [](double a, double b) { return std::abs(a - b) <= 0.01 * std::max(std::abs(b), 0.05); };
      const bool right = near(f, s.fused) && near(u, s.unfused);
      score.right += right;
      score.exact += std::abs(f - s.fused) < 1e-4 && std::abs(u - s.unfused) < 1e-4;
      if (!right && !triton) {
        const bool fused_wrong = !near(f, s.fused), unfused_wrong = !near(u, s.unfused);
        std::string users;
        for (InstId x : m_.users(i)) users += " " + words(x);
        depart(i, fmt::format("{}{} of {}", fused_wrong ? "fused" : "", unfused_wrong ? " unfused" : "", words(i)),
               fmt::format("fused {:.5f} ({:.5f} by XLA), unfused {:.5f} ({:.5f}); users{}", f, s.fused, u, s.unfused, users.substr(0, 120)));
      } else if (names_[i] == explain_) {
        explain(i);
      }
      mine.erase(o);
    }
    for (const auto& [i, o] : mine) {
      const bool triton = touches_triton(i);
      ++score_[triton].eligible;
      if (!triton) depart(i, "asked here alone", words(i) + " " + o->refused);
    }
    return at;
  }

  Dump& d_;
  Module& m_;
  size_t show_, shown_ = 0;
  std::string explain_;
  std::unordered_map<std::string, InstId> by_name_;
  std::unordered_map<InstId, std::string> names_;
  std::unordered_set<InstId> tainted_;
  std::vector<PriorityFusionQueue::Decision> ours_;
  PriorityFusionQueue* queue_ = nullptr;
  Score score_[2];
  std::map<std::string, size_t> departures_;
};

}  // namespace
}  // namespace hlo

int main(int argc, char** argv) {
  size_t show = 2;
  std::string explain;
  for (int n = 1; n < argc; ++n) {
    if (std::strncmp(argv[n], "--show=", 7) == 0) {
      show = static_cast<size_t>(std::atoi(argv[n] + 7));
      continue;
    }
    if (std::strncmp(argv[n], "--explain=", 10) == 0) {
      explain = argv[n] + 10;
      continue;
    }
    try {
      hlo::Dump dump = hlo::read_dump(argv[n]);
      hlo::Leader leader(&dump, show, explain);
      std::string_view name = argv[n];
      name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
      leader.run();
      leader.print(std::string(name).c_str());
    } catch (const hlo::Failure& f) {
      std::printf("%s: %s\n", argv[n], f.what());
    }
    std::fflush(stdout);
  }
  return 0;
}
