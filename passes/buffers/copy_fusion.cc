// copy_fusion (xla/backends/gpu/transforms/copy_fusion.cc).
#include <algorithm>
#include <unordered_set>

#include "ir/analysis/fusion/reduction.h"
#include "ir/analysis/performance/fusibility.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

class CopyFusion {
 public:
  CopyFusion(Module& m, PassContext& ctx)
      : m_(m), ctx_(ctx), target_(named_gpu_target(ctx.word("gpu"))), costs_(m), fusibility_(m, target_, costs_) {}

  // Of the entry alone: elsewhere a copy may lie in the memory of what the fusion reads.
  bool run() {
    bool changed = false;
    for (InstId i : m_.post_order(m_.entry()))
      if (m_.alive(i) && m_.op(i) == Opcode::Fusion && !is_custom_fusion(m_, i)) changed |= fuse(i);
    return changed;
  }

 private:
  // Nothing but elementwise operations, bitcasts and tuples behind the parameters.
  bool reads_in_order(CompId body) const {
    std::vector<InstId> queue = m_.comp(body).params;
    std::unordered_set<InstId> seen(queue.begin(), queue.end());
    for (size_t k = 0; k < queue.size(); ++k)
      for (InstId user : m_.users(queue[k])) {
        const Opcode op = m_.op(user);
        const bool update = op == Opcode::DynamicUpdateSlice && m_.operand(user, 0) == queue[k];
        if ((op == Opcode::Copy || !(is_elementwise(m_, user) || update)) && op != Opcode::Bitcast &&
            op != Opcode::Tuple)
          return false;
        if (seen.insert(user).second) queue.push_back(user);
      }
    return true;
  }
  bool updates_a_slice(InstId root) const {
    return m_.op(m_.op(root) == Opcode::Bitcast ? m_.operand(root, 0) : root) == Opcode::DynamicUpdateSlice;
  }
  // The copy that a user is, behind an element and a bitcast of its own; invalid where it is none that can go inside.
  InstId copy_behind(InstId fusion, InstId root, InstId user) {
    if (m_.op(user) == Opcode::GetTupleElement && m_.user_count(user) == 1) {
      const auto n = static_cast<size_t>(m_.attrs(user).integer(Attr::index));
      if (is_kernel_reduction(m_, m_.operand(root, n), target_)) return {};
      user = m_.users(user)[0];
    }
    if (m_.op(user) == Opcode::Bitcast && m_.user_count(user) == 1) user = m_.users(user)[0];
    if (m_.op(user) != Opcode::Copy || m_.shape_id(user) != m_.shape_id(m_.operand(user, 0)) ||
        m_.shape(user).is_tuple() || m_.has_control(user) || !fusibility_.refuse_budget(fusion, user, false).empty())
      return {};
    return user;
  }

  //   f = fusion(x); c = copy(f)      →      f = fusion(x), calls={ … ROOT tuple(r, copy(r)) }; c = gte(f), index=1
  bool fuse(InstId fusion) {
    const CompId body = m_.called(fusion)[0];
    const InstId root = m_.comp(body).root;
    const bool several = m_.op(root) == Opcode::Tuple;
    std::vector<InstId> results{root};
    if (several) results.assign(m_.operands(root).begin(), m_.operands(root).end());
    if (!reads_in_order(body) || is_kernel_reduction(m_, root, target_) || m_.op(root) == Opcode::Scatter) return false;
    if (several && std::all_of(results.begin(), results.end(), [&](InstId r) { return m_.op(r) == Opcode::Slice; }))
      return false;
    std::vector<InstId> copies, others;
    for (InstId user : m_.users_copy(fusion)) {
      const InstId copy = copy_behind(fusion, root, user);
      copy.valid() ? copies.push_back(copy) : others.push_back(user);
    }
    if (copies.empty()) return false;
    // A kernel that updates in place stays one.
    const auto updates = static_cast<size_t>(
        std::count_if(results.begin(), results.end(), [&](InstId r) { return updates_a_slice(r); }));
    if (updates > 0 && (!several || updates == results.size())) return false;
    const size_t own = results.size();
    if (own + copies.size() > kMostOperandsAndOutputs ||
        !ctx_.spend(m_, "copies of a fusion's results", {fusion, copies[0]}))
      return false;
    for (InstId copy : copies) results.push_back(clone_inside(fusion, body, root, several, copy));
    const InstId made = make(m_, body, Opcode::Tuple, results);
    m_.set_root(body, made);
    m_.set_shape(fusion, m_.shape_id(made));
    if (several) {
      m_.remove(root);
    } else {
      const InstId first = make_element(m_, fusion, 0);
      for (InstId user : others)
        for (size_t n = 0; n < m_.operand_count(user); ++n)
          if (m_.operand(user, n) == fusion) m_.set_operand(user, n, first);
      if (m_.is_root(fusion)) m_.set_root(m_.entry(), first);
    }
    for (size_t k = 0; k < copies.size(); ++k)
      m_.replace(copies[k], make_element(m_, fusion, static_cast<int64_t>(own + k)));
    fusibility_.forget(fusion), costs_.forget(fusion);
    return true;
  }

  // What leads from the fusion's result to the copy, inside of it.
  InstId clone_inside(InstId fusion, CompId body, InstId root, bool several, InstId copy) {
    std::vector<InstId> chain{copy};
    while (m_.operand(chain.back(), 0) != fusion) chain.push_back(m_.operand(chain.back(), 0));
    InstId inside = root;
    if (several) {
      inside = m_.operand(root, static_cast<size_t>(m_.attrs(chain.back()).integer(Attr::index)));
      chain.pop_back();
    }
    for (size_t k = chain.size(); k-- > 0;) {
      const InstId operands[] = {inside};
      inside = m_.clone_inst(chain[k], body, operands);
    }
    return inside;
  }

  Module& m_;
  PassContext& ctx_;
  const GpuTarget target_;
  GpuCostAnalysis costs_;
  Fusibility fusibility_;
};

}  // namespace

bool run_copy_fusion(Module& m, PassContext& ctx) { return CopyFusion(m, ctx).run(); }

}  // namespace hlo
