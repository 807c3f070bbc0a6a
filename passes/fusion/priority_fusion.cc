// priority-fusion (xla/backends/gpu/transforms/priority_fusion.cc): the producer whose fusion into all of its users
// saves most goes first, until none saves anything; single values last.
#include <fmt/format.h>

#include <algorithm>

#include "passes/fusion/fuse.h"
#include "passes/fusion/priority_queue.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

class PriorityFusion {
 public:
  PriorityFusion(Module& m, PassContext& ctx, const GpuTarget& target) : m_(m), ctx_(ctx), target_(target) {}

  bool run(CompId comp) {
    PriorityFusionQueue queue(m_, comp, target_, [&](const PriorityFusionQueue::Decision& d) { tell(d); });
    queue_ = &queue;
    bool changed = false;
    std::vector<InstId> consumers;
    for (InstId producer = queue.next(&consumers); producer.valid() && !spent_; producer = queue.next(&consumers)) {
      for (InstId consumer : consumers) {
        // A bitcast alone is no kernel. That the others allow it was asked for all of them.
        if (is_plain_bitcast(m_, consumer)) continue;
        if (!spend("fused", producer, consumer)) return changed;
        queue.fuse(producer, consumer);
        changed = true;
      }
      queue.finish(producer, consumers);
    }
    return constants(comp) || changed;
  }

 private:
  bool spend(std::string_view rule, InstId producer, InstId consumer) {
    spent_ = !ctx_.spend(m_, rule, {producer, consumer}, saved(producer));
    return !spent_;
  }

  std::string saved(InstId producer) const {
    auto at = told_.find(producer);
    return at == told_.end() ? std::string() : at->second;
  }

  void tell(const PriorityFusionQueue::Decision& d) {
    if (!ctx_.keep_notes) return;
    if (d.consumer.valid()) {
      ctx_.note(m_, "not fused", {d.producer, d.consumer}, d.refused);
    } else if (!d.refused.empty()) {
      ctx_.note(m_, "not fused", {d.producer}, d.refused);
    } else {
      // Later prices are of what changed since: all together tell what it saves.
      told_[d.producer] =
          d.unfused - d.fused == d.saves
              ? fmt::format("{:.4g} us in all users, {:.4g} us apart", microseconds(d.fused), microseconds(d.unfused))
              : fmt::format("{:.4g} us saved in all users as they are now", microseconds(d.saves));
      if (d.saves < 0) ctx_.note(m_, "not fused", {d.producer}, told_[d.producer]);
    }
  }

  // Those of one element, which kernels hold as they hold their code; larger ones are read like parameters.
  bool constants(CompId comp) {
    bool changed = false;
    for (InstId constant : m_.live_order(comp)) {
      if (m_.op(constant) != Opcode::Constant || !m_.shape(constant).is_array() ||
          m_.shape(constant).elements_count() > 1)
        continue;
      for (InstId user : m_.users_copy(constant)) {
        if (std::string why = queue_->refuse_constant(constant, user); !why.empty()) {
          ctx_.note(m_, "not fused", {constant, user}, why);
          continue;
        }
        if (!spend("constant fused", constant, user)) return changed;
        fuse_into(m_, constant, user, queue_->kind_of(constant, user));
        changed = true;
      }
    }
    return changed;
  }

  Module& m_;
  PassContext& ctx_;
  const GpuTarget& target_;
  PriorityFusionQueue* queue_ = nullptr;
  std::unordered_map<InstId, std::string> told_;  // the times of a producer, as last priced
  bool spent_ = false;
};

// Has the computation kernels of its own? Functions that an operation applies have none.
bool is_applied(const Module& m, const std::vector<InstId>& callers) {
  return std::any_of(callers.begin(), callers.end(), [&](InstId i) {
    return m.alive(i) && m.op(i) != Opcode::While && m.op(i) != Opcode::Conditional && m.op(i) != Opcode::Fusion &&
           m.op(i) != Opcode::Call;
  });
}

}  // namespace

std::vector<CompId> fusible_computations(const Module& m) {
  const std::vector<std::vector<InstId>> callers = m.callers();
  std::vector<CompId> out;
  for (CompId c : m.nonfusion_computations())
    if (c.value >= callers.size() || !is_applied(m, callers[c.value])) out.push_back(c);
  return out;
}

bool run_priority_fusion(Module& m, PassContext& ctx) {
  const GpuTarget target = named_gpu_target(ctx.word("gpu"));
  PriorityFusion fusion(m, ctx, target);
  bool changed = false;
  for (CompId c : fusible_computations(m)) changed |= fusion.run(c);
  return changed;
}

}  // namespace hlo
