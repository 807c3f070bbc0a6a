#include "replay/report/levers/memory_levers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "ir/query/source_lines.h"
#include "ir/verify/verifier.h"
#include "passes/rewrite.h"
#include "passes/scope.h"
#include "replay/os/interrupt.h"
#include "replay/report/findings/findings.h"
#include "replay/report/findings/findings_parts.h"
#include "replay/report/findings/try_finding.h"
#include "replay/report/levers/recompute.h"

namespace hlo {

bool is_backward(const Module& m, InstId i) { return op_name_of(m, i).find("transpose(") != std::string::npos; }

bool can_be_computed_again(const Module& m, InstId i) {
  const Opcode op = m.op(i);
  const OpClass cls = op_info(op).cls;
  return op != Opcode::Parameter && op != Opcode::Tuple && op != Opcode::GetTupleElement && m.shape(i).is_array() &&
         cls != OpClass::Collective && cls != OpClass::Async && cls != OpClass::Io && cls != OpClass::Rng &&
         cls != OpClass::Custom && op != Opcode::While && op != Opcode::Conditional && op != Opcode::Call;
}

void run_quietly(Module& m, const char* pass) {
  PassContext context;
  context.keep_notes = false;
  PassEvent event;
  run_pass(m, *find_pass(pass), context, {}, &event);
}

namespace {

constexpr size_t kMostAlone = 3, kMostTogether = 6;  // lines that are recomputed
constexpr size_t kMostRecomputed = 100000;

// One computation of the first stage, some lines of which are computed again for the backward pass.
class Recomputing {
 public:
  Recomputing(Module& m, CompId c, const std::set<std::string>& lines) : m_(m), c_(c), order_(m.post_order(c)) {
    for (size_t k = 0; k < order_.size(); ++k) place_[order_[k]] = k;
    for (InstId i : order_) {
      backward_[i] = is_backward(m_, i);
      for (InstId o : m_.operands(i)) behind_[i] = behind_[i] || backward_[o] || behind_[o];
      if (!backward_[i] && can_be_computed_again(m_, i) && lines.contains(source_line(m_, i).text())) chosen_.insert(i);
    }
  }

  size_t run() {
    // Values that hang together are computed again together.
    for (InstId i : order_) {
      if (!chosen_.contains(i) || group_.contains(i)) continue;
      std::vector<InstId> members{i};
      group_[i] = i;
      for (size_t k = 0; k < members.size(); ++k) {
        auto join = [&](InstId other) {
          if (chosen_.contains(other) && group_.emplace(other, i).second) members.push_back(other);
        };
        for (InstId o : m_.operands(members[k])) join(o);
        for (InstId u : m_.users_copy(members[k])) join(u);
      }
      recompute(members);
    }
    return clones_;
  }

 private:
  // Made of nothing that is large: taken again rather than kept.
  bool is_free(InstId i) const {
    const Opcode op = m_.op(i);
    if (op == Opcode::Constant || op == Opcode::Iota) return true;
    return op == Opcode::Broadcast && is_free(m_.operand(i, 0));
  }

  // Of no line, or larger than what it is made of: rather made again than kept.
  bool passes_on(InstId i) {
    if (!place_.contains(i) || backward_[i] || behind_[i] || !can_be_computed_again(m_, i) || m_.operand_count(i) == 0)
      return false;
    const OpClass cls = op_info(m_.op(i)).cls;
    if (cls != OpClass::Move && cls != OpClass::Elementwise) return false;
    double from = 0;
    for (InstId o : m_.operands(i))
      if (!is_free(o)) from += array_size(m_, o);
    return from < array_size(m_, i) || !source_line(m_, i).known();
  }

  void recompute(const std::vector<InstId>& members) {
    struct Use {
      InstId user;
      size_t operand;
    };
    std::vector<Use> uses;
    size_t first = SIZE_MAX;
    for (InstId i : members)
      for (InstId u : m_.users_copy(i))
        for (size_t k = 0; k < m_.operand_count(u); ++k)
          if (m_.operand(u, k) == i && place_.contains(u) && backward_[u])
            uses.push_back({u, k}), first = std::min(first, place_[u]);
    if (uses.empty()) return;
    // What they are computed from, without what they are.
    std::vector<InstId> needed, edge;
    std::set<InstId> seen;
    for (const Use& use : uses)
      if (seen.insert(m_.operand(use.user, use.operand)).second) needed.push_back(m_.operand(use.user, use.operand));
    for (size_t k = 0; k < needed.size(); ++k)
      for (InstId o : m_.operands(needed[k])) {
        if (!seen.insert(o).second) continue;
        if (chosen_.contains(o) || is_free(o) || passes_on(o))
          needed.push_back(o);
        else
          edge.push_back(o);
      }
    // No value of theirs may come from what will read them: none from the backward pass at all, but for what they are
    // tied to. That one comes before the first of their readers, so no two groups wait for each other.
    if (clones_ + needed.size() > kMostRecomputed) return;
    for (InstId o : edge)
      if (!place_.contains(o) || backward_[o] || behind_[o] || !m_.shape(o).is_array()) return;
    std::vector<InstId> tied = edge;
    for (InstId o : m_.operands(order_[first]))
      if (backward_.contains(o) && backward_[o] && m_.shape(o).is_array() && !seen.contains(o)) {
        tied.push_back(o);
        break;
      }
    if (tied.empty()) return;
    std::unordered_map<InstId, InstId> now;
    const InstId barrier = make(m_, c_, Opcode::OptBarrier, {make(m_, c_, Opcode::Tuple, tied)});
    for (size_t k = 0; k < edge.size(); ++k) now[edge[k]] = make_element(m_, barrier, static_cast<int64_t>(k));
    std::sort(needed.begin(), needed.end(), [&](InstId x, InstId y) { return place_[x] < place_[y]; });
    for (InstId i : needed) {
      std::vector<InstId> operands(m_.operands(i).begin(), m_.operands(i).end());
      for (InstId& o : operands)
        if (auto at = now.find(o); at != now.end()) o = at->second;
      now[i] = m_.clone_inst(i, c_, operands), ++clones_;
    }
    for (const Use& use : uses) m_.set_operand(use.user, use.operand, now[m_.operand(use.user, use.operand)]);
  }

  Module& m_;
  const CompId c_;
  const std::vector<InstId> order_;
  std::unordered_map<InstId, size_t> place_;
  std::unordered_map<InstId, bool> backward_;
  std::unordered_map<InstId, bool> behind_;  // made of something of the backward pass
  std::set<InstId> chosen_;
  std::unordered_map<InstId, InstId> group_;
  size_t clones_ = 0;
};

// Lines whose values fill the peak, without arguments and constants, the fullest first.
std::vector<std::pair<std::string, int64_t>> lines_of_peak(const MemoryReport& r) {
  std::map<std::string, int64_t> sums;
  for (const MemoryValue& v : r.alive)
    if (v.kind == "value" && v.source.known()) sums[v.source.text()] += v.bytes;
  std::vector<std::pair<std::string, int64_t>> out;
  for (const auto& [line, bytes] : sums)
    if (bytes > r.peak / 50) out.emplace_back(line, bytes);
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  return out;
}

void add_recomputations(const MemoryReport& r, const Module& first, std::vector<MemoryLever>* out) {
  const auto lines = lines_of_peak(r);
  std::set<size_t> known;  // by how much they compute again: the same lines under another name are tried once
  auto add = [&](const std::set<std::string>& chosen, int64_t bytes) {
    size_t recomputed = 0;
    MemoryLever lever;
    lever.kind = "rematerialize", lever.foretold = bytes, lever.source = *chosen.begin();
    lever.module = recomputed_backward(first, chosen, &recomputed);
    if (!lever.module || !known.insert(recomputed).second) return;
    lever.words =
        fmt::format("{} computed again in the backward pass ({} instructions)", fmt::join(chosen, ", "), recomputed);
    lever.how = fmt::format("jax.checkpoint around the function that holds {}, or a policy that does not save it",
                            chosen.size() == 1 ? "that line" : "those lines");
    out->push_back(std::move(lever));
  };
  std::set<std::string> together;
  int64_t sum = 0;
  for (size_t k = 0; k < lines.size() && k < kMostTogether; ++k) {
    if (k < kMostAlone) add({lines[k].first}, lines[k].second);
    together.insert(lines[k].first), sum += lines[k].second;
    if (k) add(together, sum);
  }
}

void add_scans(const Module& first, std::vector<MemoryLever>* out) {
  ScanRecomputed scans = recomputed_scans(first);
  if (!scans.module) return;
  MemoryLever lever;
  lever.kind = "rematerialize", lever.foretold = scans.bytes, lever.source = std::move(scans.source);
  lever.words = fmt::format("what scans stack up computed again in the backward pass ({} arrays, {} instructions)",
                            scans.stacks, scans.instructions);
  lever.how = "jax.checkpoint around the function that jax.lax.scan runs";
  lever.module = std::move(scans.module);
  out->push_back(std::move(lever));
}

// Passes without which XLA compiles all the same, and of which some are known to raise the peak.
bool may_be_left_out(const std::string& pass) {
  static const std::set<std::string, std::less<>> kOptional = {"latency-hiding-scheduler",
                                                               "rematerialization",
                                                               "priority-fusion",
                                                               "multi_output_fusion",
                                                               "horizontal_loop_fusion",
                                                               "horizontal_input_fusion",
                                                               "sort-simplifier",
                                                               "dot-merger",
                                                               "double-buffer-loop-unrolling",
                                                               "while-loop-unroller",
                                                               "all-gather-combiner",
                                                               "all-reduce-combiner",
                                                               "reduce-scatter-combiner",
                                                               "windowed-einsum-handler",
                                                               "collective-pipeliner-forward",
                                                               "dynamic-slice-fusion-rewriter",
                                                               "scan-loop-accumulator-input-unification",
                                                               "reduce-splitter"};
  return kOptional.contains(pass);
}

// What a call runs and has no line of its own is of the line that calls it: jax.nn's functions after their way through
// StableHLO. Where two lines call it, it stays without.
void take_lines_of_calls(Module& m) {
  const std::vector<std::vector<InstId>> callers = m.callers();
  for (CompId c : m.nonfusion_computations()) {
    InstId call;
    bool one = true;
    for (InstId i : callers[c.value]) {
      one = one && m.op(i) == Opcode::Call && (!call.valid() || source_line(m, i) == source_line(m, call));
      call = i;
    }
    if (!one || !call.valid() || !source_line(m, call).known()) continue;
    for (InstId i : m.live_order(c))
      if (!source_line(m, i).known()) m.set_meta(i, m[call].meta);
  }
}

// Flags of XLA that are known to change what is allocated (of jaxlib 0.10.2, docs/memory.md).
std::vector<std::string> memory_flags(const Target& target) {
  if (target.platform == "CPU") return order_flags(target, {});
  if (target.platform != "CUDA" && target.platform != "ROCM") return {};
  return {"--xla_gpu_memory_limit_slop_factor=70", "--xla_gpu_enable_host_memory_offloading=true",
          "--xla_gpu_enable_triton_gemm=false", "--xla_gpu_enable_latency_hiding_scheduler=false"};
}

}  // namespace

std::unique_ptr<Module> recomputed_backward(const Module& first, const std::set<std::string>& lines,
                                            size_t* recomputed) {
  *recomputed = 0;
  try {
    auto m = first.clone();
    for (int nested = 0; nested < 3; ++nested) take_lines_of_calls(*m);
    // What a call hides is in the lines, too.
    for (const char* pass : {"call-inliner", "tuple-simplifier", "dce"}) run_quietly(*m, pass);
    m->cleanup();
    m->ensure_users();
    for (CompId c : m->nonfusion_computations()) *recomputed += Recomputing(*m, c, lines).run();
    if (!*recomputed) return nullptr;
    m->cleanup();
    if (!verify_module(*m, 1).empty()) return nullptr;
    return m;
  } catch (const Failure&) {
    if (interrupted()) throw;
    return nullptr;
  }
}

std::vector<MemoryLever> memory_levers(const ModuleOverview& o, const Module& first,
                                       const std::vector<StagePeak>& stages, bool flags) {
  std::vector<MemoryLever> out;
  if (!o.last || !o.memory) return out;
  const FindingsInput input(*o.last, o.cost, o.target.spec);
  for (const ModuleFinding& f : missing_donation(input)) {
    MemoryLever lever;
    lever.kind = "donate", lever.words = f.what, lever.how = f.advice, lever.foretold = std::llround(f.bytes);
    FindingEdit edit = edit_for(f, first, *o.last);
    if (edit.module)
      lever.words = edit.words + ": " + f.what, lever.module = std::move(edit.module);
    else
      lever.why_not = edit.words;
    out.push_back(std::move(lever));
  }
  add_recomputations(*o.memory, first, &out);
  add_scans(first, &out);
  std::set<std::string> told;
  for (const PeakChange& change : peak_changes(stages)) {
    const std::string& pass = stages[change.after].pass;
    if (change.bytes < stages[change.after].bytes / 200 || !may_be_left_out(pass) || !told.insert(pass).second)
      continue;
    MemoryLever lever;
    lever.kind = "leave-out-pass", lever.words = "without the pass " + pass, lever.foretold = change.bytes;
    lever.how = "XLA_FLAGS=--xla_disable_hlo_passes=" + pass;
    lever.disabled.insert(pass);
    out.push_back(std::move(lever));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.foretold > y.foretold; });
  if (!flags) return out;
  for (const std::string& flag : memory_flags(o.target)) {
    MemoryLever lever;
    lever.kind = "flag", lever.words = flag, lever.how = "XLA_FLAGS=" + flag, lever.flags = flag;
    out.push_back(std::move(lever));
  }
  return out;
}

}  // namespace hlo
