// reshape-mover (xla/hlo/transforms/simplifiers/reshape_mover.cc): op(reshape a, reshape b) becomes reshape(op(a, b)).
#include <algorithm>
#include <set>

#include "passes/rewrite.h"

namespace hlo {
namespace {

class ReshapeMover {
 public:
  ReshapeMover(Module& m, PassContext& ctx, CompId comp) : m_(m), ctx_(ctx), comp_(comp) {}

  bool run() {
    std::vector<InstId> order = m_.live_order(comp_);
    std::set<InstId> candidates;
    for (InstId i : order)
      if (candidate(i)) candidates.insert(i);
    // A rearrange stays behind unless all its users move: drop the others until nothing changes.
    for (bool again = true; again;) {
      again = false;
      std::set<InstId> rearranges;
      for (InstId i : candidates)
        for (InstId o : m_.operands(i))
          if (nontrivial(o)) rearranges.insert(o);
      for (InstId r : rearranges) {
        auto users = m_.users(r);
        bool outside =
            m_.is_root(r) || std::any_of(users.begin(), users.end(), [&](InstId u) { return !candidates.contains(u); });
        if (!outside) continue;
        for (InstId u : users) again |= candidates.erase(u) > 0;
      }
    }
    bool changed = false;
    for (InstId i : candidates) changed |= move(i);
    return changed;
  }

 private:
  bool rearrange(InstId i) const { return m_.op(i) == Opcode::Reshape || m_.op(i) == Opcode::Transpose; }
  bool nontrivial(InstId i) const { return rearrange(i) && !trivially(m_.operand(i, 0), i); }
  bool equivalent(InstId a, InstId b) const {
    if (m_.op(a) != m_.op(b) || m_.shape(a).dims != m_.shape(b).dims) return false;
    if (m_.op(a) == Opcode::Transpose) return m_.attrs(a).ints(Attr::dimensions) == m_.attrs(b).ints(Attr::dimensions);
    return m_.shape(m_.operand(a, 0)).dims == m_.shape(m_.operand(b, 0)).dims;
  }
  // Could `x`, shaped as r's result, be given r's operand's shape at no cost?
  bool trivially(InstId x, InstId r) const {
    const Dims &from = m_.shape(m_.operand(r, 0)).dims, &to = m_.shape(r).dims;
    bool transpose = m_.op(r) == Opcode::Transpose;
    if (!transpose && m_.u().compatible(m_.shape_id(m_.operand(r, 0)), m_.shape_id(r)) &&
        m_.shape(m_.operand(r, 0)).layout == m_.shape(r).layout)
      return true;
    if (transpose && is_identity(m_.attrs(r).ints(Attr::dimensions))) return true;
    if (m_.op(x) == Opcode::Constant) return true;
    if (m_.op(x) == Opcode::Rng && m_.user_count(x) == 1) return true;
    if (m_.op(x) != Opcode::Broadcast) return false;
    const Dims& dims = m_.attrs(x).ints(Attr::dimensions);
    if (!std::is_sorted(dims.begin(), dims.end())) return false;
    const Dims& base = m_.shape(m_.operand(x, 0)).dims;
    if (transpose) {
      Dims moved;
      const Dims& p = m_.attrs(r).ints(Attr::dimensions);
      // The inverse transpose takes result dimension k to operand dimension p[k].
      for (int64_t d : dims) moved.push_back(p[static_cast<size_t>(d)]);
      return std::is_sorted(moved.begin(), moved.end());
    }
    if (std::count_if(base.begin(), base.end(), [](int64_t d) { return d != 1; }) <= 1) return true;
    // Dimensions count as those of r's result, also where `x` is what r takes
    // (xla/hlo/transforms/simplifiers/reshape_mover.cc).
    auto kept = unmodified_dims(to, from);
    return std::all_of(dims.begin(), dims.end(), [&](int64_t d) {
      return std::any_of(kept.begin(), kept.end(), [&](const auto& p) { return p.first == d; });
    });
  }
  bool candidate(InstId i) const {
    if (!op_info(m_.op(i)).elementwise || m_.op(i) == Opcode::Copy || m_.has_control(i)) return false;
    InstId first;
    for (InstId o : m_.operands(i))
      if (nontrivial(o)) {
        first = o;
        break;
      }
    if (!first.valid()) return false;
    for (InstId o : m_.operands(i)) {
      if (m_.shape(o).dims != m_.shape(i).dims) return false;
      if (!(rearrange(o) && equivalent(o, first)) && !trivially(o, first)) return false;
    }
    return true;
  }
  // The operand in front of the rearrange.
  InstId unmoved(InstId o, InstId r) {
    if (m_.op(r) == Opcode::Transpose) {
      const Dims p = m_.attrs(r).ints(Attr::dimensions);
      Dims inverse = inverse_permutation(p);
      return is_identity(inverse) ? o : make_transpose(m_, o, inverse);
    }
    // It lies as what it is to stand beside.
    ShapeId beside = m_.u().with_type(m_.shape_id(m_.operand(r, 0)), m_.shape(o).type);
    if (m_.op(o) == Opcode::Reshape && m_.shape_id(m_.operand(o, 0)) == beside) return m_.operand(o, 0);
    if (m_.shape_id(o) == beside) return o;
    return make_derived(m_, o, Opcode::Reshape, {o}, {}, beside);
  }
  bool move(InstId i) {
    InstId r;
    for (InstId o : m_.operands(i))
      if (nontrivial(o)) {
        r = o;
        break;
      }
    if (!r.valid() || !ctx_.spend(m_, "moved after", {i, r})) return false;
    std::vector<InstId> old(m_.operands(i).begin(), m_.operands(i).end()), ops;
    for (InstId o : old) ops.push_back(unmoved(o, r));
    Shape s = m_.shape(m_.operand(r, 0));
    s.type = m_.shape(i).type;
    InstId inner = m_.clone_inst(i, comp_, ops, m_.u().shape(std::move(s)));
    m_.erase_attr(inner, Attr::sharding);
    AttrsId attrs = m_.op(r) == Opcode::Transpose
                        ? dims_attr(m_.u(), Opcode::Transpose, m_.attrs(r).ints(Attr::dimensions))
                        : AttrsId();
    InstId outer = make(m_, comp_, m_.op(r), {inner}, attrs, m_.shape_id(i));
    m_.replace(i, outer);
    return true;
  }

  Module& m_;
  PassContext& ctx_;
  CompId comp_;
};

}  // namespace

bool run_reshape_mover(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations()) changed |= ReshapeMover(m, ctx, c).run();
  return changed;
}

}  // namespace hlo
