// triton-gemm-rewriter (xla/backends/gpu/transforms/gemm_fusion.cc): a product, what makes its operands and what
// follows it become a fusion, as far as one kernel of tiles can read and write it and it pays.
#include <deque>
#include <set>

#include "ir/types/literal.h"
#include "passes/fusion/dimension_order.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr double kTolerance = 1024;  // bytes more that a fusion may read or write
constexpr size_t kMostParameters = 4;
constexpr int64_t kTiny = 100;  // multiplications for which a loop does
constexpr std::string_view kConfig =
    R"({"operation_queue_id":"0","fusion_backend_config":{"kind":"__triton_gemm"},"force_earliest_schedule":false,)"
    R"("reification_cost":[],"device_type":"DEVICE_TYPE_INVALID"})";

class GemmFusion {
 public:
  GemmFusion(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool visit(InstId dot) {
    if (m_.op(dot) != Opcode::Dot || m_.operand_count(dot) != 2 || tiny(dot)) return false;
    for (InstId i : {m_.operand(dot, 0), m_.operand(dot, 1), dot})
      if (m_.shape(i).has_zero() || m_.shape(i).is_dynamic() || !u_.bytes(m_.shape_id(i)).fits()) return false;
    if (const std::string why = triton_refuses(m_, dot); !why.empty()) {
      ctx_.note(m_, "no Triton kernel", {dot}, why);
      return false;
    }
    if (kept(dot, 0).size() != 1 || kept(dot, 1).size() != 1) return false;
    if (!ctx_.spend(m_, "product with its neighbours", {dot})) return false;
    fuse(dot);
    return true;
  }

 private:
  Dims kept(InstId dot, size_t n) const {
    const AttrSet& a = m_.attrs(dot);
    const Dims& batch = a.ints(n ? Attr::rhs_batch_dims : Attr::lhs_batch_dims);
    const Dims& sum = a.ints(n ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims);
    Dims out;
    for (int64_t d = 0; d < m_.shape(m_.operand(dot, n)).rank(); ++d)
      if (!contains(batch, d) && !contains(sum, d)) out.push_back(d);
    return out;
  }
  bool tiny(InstId dot) const {
    const ElementType t = m_.shape(dot).type;  // loops are for single precision and less
    if (m_.attrs(dot).has(Attr::algorithm) || t == ElementType::F64 || t == ElementType::S32) return false;
    auto product = [&](size_t n, const Dims& dims) {
      double size = 1;
      for (int64_t d : dims) size *= static_cast<double>(m_.shape(m_.operand(dot, n)).dims[static_cast<size_t>(d)]);
      return size;
    };
    const double sum = product(0, m_.attrs(dot).ints(Attr::lhs_contracting_dims));
    return (product(0, kept(dot, 0)) + product(1, kept(dot, 1))) * sum < static_cast<double>(kTiny);
  }

  // --- is it worth it? ---

  double more_read(InstId i) const {  // bytes read less bytes made
    auto bytes = [&](InstId x) { return static_cast<double>(u_.bytes(m_.shape_id(x)).capped()); };
    double more = -bytes(i);
    for (InstId o : m_.operands(i)) more += bytes(o);
    return more;
  }
  bool is_input(InstId i) const { return m_.op(i) == Opcode::Parameter || m_.op(i) == Opcode::Constant; }
  bool input_pays(InstId i) const {
    if (more_read(i) <= kTolerance) return true;
    if (m_.user_count(i) > 1) return false;
    // What is cut into slices of one size alone is a split, whose parts have kernels of their own.
    if (m_.op(i) == Opcode::Slice) {
      const auto users = m_.users(m_.operand(i, 0));
      auto part = [&](InstId u) { return m_.op(u) == Opcode::Slice && m_.shape(u).dims == m_.shape(i).dims; };
      if (!std::all_of(users.begin(), users.end(), part)) return true;
    }
    bool all = true, single = true;
    for (InstId o : m_.operands(i)) all &= is_input(o), single &= m_.user_count(o) <= 1;
    return all && (single || m_.op(i) == Opcode::Slice);
  }
  bool output_pays(InstId i) const {
    const bool last = m_.is_root(i) ||
                      (m_.user_count(i) == 1 && m_.is_root(m_.users(i)[0]) && m_.op(m_.users(i)[0]) == Opcode::Tuple);
    return last || more_read(i) >= -kTolerance;
  }
  bool effective_parameter(InstId i) const {
    while (m_.op(i) == Opcode::Bitcast || m_.op(i) == Opcode::GetTupleElement) i = m_.operand(i, 0);
    return m_.op(i) == Opcode::Parameter;
  }

  bool arrays_only(InstId i) const {
    if (!m_.shape(i).is_array() || m_.shape(i).is_dynamic()) return false;
    for (InstId o : m_.operands(i))
      if (!m_.shape(o).is_array()) return false;
    return true;
  }
  PropagatedOrders refused(std::string why) const { return {std::move(why), {}, kNoSplit}; }

  // Orders of what i reads, where it may become part of the fusion.
  PropagatedOrders as_input(InstId i, const DimensionOrder& order, const DotSide& side) const {
    if (!arrays_only(i)) return refused("a tuple");
    if (std::string why = triton_refuses(m_, i); !why.empty()) return refused(std::move(why));
    PropagatedOrders out = propagate_orders(m_, i, order, Towards::kOperands, side);
    if (!out.refused.empty()) return out;
    if (op_info(m_.op(i)).elementwise && m_.operand_count(i) == 2)
      for (InstId o : m_.operands(i))  // a broadcast reads little
        if (m_.op(o) == Opcode::Broadcast && is_input(m_.operand(o, 0)) &&
            as_input(o, out.orders.at(o), side).refused.empty())
          return out;
    return input_pays(i) ? out : refused("reads more than it makes");
  }
  PropagatedOrders as_output(InstId user, InstId of, const DimensionOrder& order, const DotSide& side) const {
    if (!arrays_only(user)) return refused("a tuple");
    if (std::string why = triton_refuses(m_, user); !why.empty()) return refused(std::move(why));
    PropagatedOrders out = propagate_orders(m_, user, order, Towards::kUsers, side);
    if (!out.refused.empty()) return out;
    bool seen = false;
    for (InstId o : m_.operands(user)) {
      if (o == of && !std::exchange(seen, true)) continue;
      const bool broadcast = m_.op(o) == Opcode::Broadcast &&
                             (m_.shape(m_.operand(o, 0)).is_scalar() || effective_parameter(m_.operand(o, 0)));
      if (!broadcast && !effective_parameter(o)) return refused("several large inputs");
    }
    return output_pays(user) ? out : refused("makes more than it reads");
  }

  // --- towards operands ---

  struct Node {
    InstId of;
    DimensionOrder order;
    bool fused = false;
    std::vector<size_t> operands;
    InstId made;
  };

  // Breadth first, as long as there are few parameters; the value of `root` inside of the fusion.
  InstId inputs(InstId root, const DimensionOrder& order, size_t most, const DotSide& side, int64_t* split) {
    std::vector<Node> nodes;
    std::map<std::pair<InstId, DimensionOrder::Spec>, size_t> known;
    std::deque<size_t> queue;
    std::set<size_t> edge;
    auto node = [&](InstId i, const DimensionOrder& o) {
      auto [at, fresh] = known.try_emplace({i, o.spec()}, nodes.size());
      if (fresh) nodes.push_back({i, o, false, {}, {}}), queue.push_back(at->second), edge.insert(at->second);
      return at->second;
    };
    node(root, order);
    size_t waiting = 0;
    while (queue.size() > waiting) {
      const size_t at = queue.front();
      queue.pop_front();
      const InstId i = nodes[at].of;
      const bool leaf = m_.op(i) == Opcode::Parameter || (m_.op(i) == Opcode::Constant && !m_.shape(i).is_scalar());
      // A scalar constant takes one away.
      if (edge.size() + (leaf ? 0 : m_.operand_count(i)) > most + (leaf ? 0 : 1)) {
        queue.push_back(at), ++waiting;
        continue;
      }
      waiting = 0;
      if (m_.op(i) == Opcode::Parameter) continue;
      PropagatedOrders found = as_input(i, nodes[at].order, side);
      const auto both = found.refused.empty() ? combined_split(*split, found.split) : std::nullopt;
      if (!both) continue;
      *split = *both;
      edge.erase(at);
      nodes[at].fused = true;
      for (InstId o : std::vector<InstId>(m_.operands(i).begin(), m_.operands(i).end())) {
        const size_t operand = node(o, found.orders.at(o));
        nodes[at].operands.push_back(operand);
      }
    }
    return build(nodes, 0);
  }
  // Operands first, in their order; by hand, as chains may be long.
  InstId build(std::vector<Node>& nodes, size_t root) {
    std::vector<std::pair<size_t, size_t>> stack{{root, 0}};  // and the operand to come
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      Node& n = nodes[at];
      if (!n.made.valid() && n.fused && next < n.operands.size()) {
        stack.push_back({n.operands[next++], 0});
        continue;
      }
      if (!n.made.valid()) n.made = n.fused ? copy(nodes, n) : parameter(n.of);
      stack.pop_back();
    }
    return nodes[root].made;
  }
  InstId copy(const std::vector<Node>& nodes, const Node& n) {
    std::vector<InstId> operands;
    for (size_t o : n.operands) operands.push_back(nodes[o].made);
    return m_.clone_inst(n.of, body_, operands);
  }
  InstId parameter(InstId of) {
    const auto number = static_cast<int64_t>(parameters_.size());
    parameters_.push_back(of);
    return m_.parameter(body_, number, m_.shape_id(of), "parameter_" + std::to_string(number));
  }

  // --- the fusion ---

  void fuse(InstId dot) {
    const std::string name = "gemm_fusion_" + std::string(m_.inst_name(dot));
    body_ = m_.add_computation(name + "_computation");
    parameters_.clear();
    int64_t split = kNoSplit, ignored = kNoSplit;
    std::vector<InstId> operands;
    for (size_t n = 0; n < 2; ++n) {
      DotSide side;
      side.kept = static_cast<int>(kept(dot, n)[0]);
      if (n == 0 && m_.attrs(dot).ints(Attr::lhs_batch_dims).empty()) side.splittable = side.kept;
      const InstId o = m_.operand(dot, n);
      operands.push_back(inputs(o, dimension_order_of(m_.shape(o)), kMostParameters, side, n ? &ignored : &split));
    }
    InstId inside = m_.clone_inst(dot, body_, operands), last = dot;
    DotSide side;
    if (split > kNoSplit) side.splittable = 0;
    outputs(&last, &inside, dimension_order_of(m_.shape(dot)), side, split);
    m_.set_root(body_, inside);
    const AttrsId attrs =
        attrs_of(u_, Opcode::Fusion,
                 {{Attr::kind, u_.str("kCustom")}, {Attr::calls, body_}, {Attr::backend_config, u_.str(kConfig)}});
    m_.take_name("fusion");  // XLA makes it by that name and names it then
    const InstId fusion = m_.add(m_.parent(dot), {.op = Opcode::Fusion,
                                                  .shape = m_.shape_id(inside),
                                                  .operands = parameters_,
                                                  .attrs = attrs,
                                                  .meta = m_[dot].meta,
                                                  .name = name});
    m_.replace(last, fusion, {.relay_control = true});
  }

  // What reads the product and nothing else does.
  void outputs(InstId* last, InstId* inside, DimensionOrder order, const DotSide& side, int64_t split) {
    while (m_.user_count(*last) == 1 && !m_.is_root(*last)) {
      const InstId user = m_.users(*last)[0];
      if (m_.has_control(user)) return;
      PropagatedOrders found = as_output(user, *last, order, side);
      auto both = found.refused.empty() ? combined_split(split, found.split) : std::nullopt;
      if (!both) return;
      const DimensionOrder next = found.orders.at(user);
      std::vector<InstId> operands{*inside};
      if (m_.operand_count(user) > 1) {
        PropagatedOrders others = propagate_orders(m_, user, next, Towards::kOperands, side);
        both = others.refused.empty() ? combined_split(*both, others.split) : std::nullopt;
        if (!both) return;
        operands.clear();
        for (InstId o : std::vector<InstId>(m_.operands(user).begin(), m_.operands(user).end()))
          operands.push_back(o == *last ? *inside : inputs(o, others.orders.at(o), SIZE_MAX / 2, side, &*both));
      }
      *inside = m_.clone_inst(user, body_, operands);
      *last = user, order = next, split = *both;
    }
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  CompId body_;
  std::vector<InstId> parameters_;
};

}  // namespace

//   multiply(dot(convert(A), B), broadcast(c))      →      fusion(A, B), kind=kCustom
bool run_triton_gemm_rewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  GemmFusion pass(m, ctx);
  for (CompId c : m.nonfusion_computations()) visit_computation(m, c, [&](InstId i) { changed |= pass.visit(i); });
  return changed;
}

}  // namespace hlo
