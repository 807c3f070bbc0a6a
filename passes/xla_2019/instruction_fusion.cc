// fusion and fusion_merger of 2019 (xla/service/instruction_fusion.cc and gpu/fusion_merger.cc of that time): producers
// go into their consumers; loop fusions, and input fusions around reductions.
#include <algorithm>
#include <unordered_map>

#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr size_t kMaxOperands = 64;

class Fuser {
 public:
  Fuser(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool fuse_all(const std::vector<CompId>& computations, bool may_duplicate) {
    bool changed = false;
    for (CompId c : computations) {
      // Applied functions stay as they are: only computations with buffers of their own are fused.
      if (applied(c)) continue;
      std::vector<InstId> order = m_.post_order(c);
      std::unordered_map<InstId, size_t> position;
      for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
      while (!order.empty()) {
        InstId consumer = order.back();
        order.pop_back();
        if (!m_.alive(consumer) || !can_consume(consumer)) continue;
        std::vector<InstId> producers(m_.operands(consumer).begin(), m_.operands(consumer).end());
        std::sort(producers.begin(), producers.end(), [&](InstId a, InstId b) { return position[a] > position[b]; });
        producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
        for (InstId producer : producers) {
          std::string why = refuse(producer, consumer, may_duplicate);
          if (!why.empty()) {
            ctx_.note(m_, "not fused", {producer, consumer}, why);
            continue;
          }
          if (!ctx_.spend(m_, "fused", {producer, consumer})) return changed;
          InstId fusion = fuse(producer, consumer);
          position[fusion] = position[consumer];
          if (m_.users(producer).empty() && !m_.is_root(producer) && !m_.has_control(producer)) m_.remove(producer);
          order.push_back(fusion);
          changed = true;
          break;
        }
      }
    }
    return changed;
  }

  bool merge_all() {
    bool changed = false;
    for (CompId c : m_.nonfusion_computations()) {
      if (applied(c)) continue;
      std::vector<InstId> order = m_.post_order(c);
      std::reverse(order.begin(), order.end());
      for (InstId i : order) {
        if (!m_.alive(i) || m_.op(i) != Opcode::Fusion || m_.users(i).empty() || m_.is_root(i) || m_.has_control(i))
          continue;
        std::string why = refuse_merge(i);
        if (!why.empty()) {
          ctx_.note(m_, "not merged", {i}, why);
          continue;
        }
        if (!ctx_.spend(m_, "merged into all users", {i})) return changed;
        for (InstId user : m_.users_copy(i)) fuse(i, user);
        m_.remove(i);
        changed = true;
      }
    }
    return changed;
  }

 private:
  bool applied(CompId c) {
    if (callers_.empty()) callers_ = m_.callers();
    if (c.value >= callers_.size()) return false;
    for (InstId i : callers_[c.value]) {
      if (!m_.alive(i)) continue;
      Opcode op = m_.op(i);
      if (op != Opcode::While && op != Opcode::Conditional && op != Opcode::Call) return true;
    }
    return false;
  }
  bool kind_is(InstId fusion, std::string_view kind) const {
    return u_.text(m_.attrs(fusion).text(Attr::kind)) == kind;
  }

  bool fusible(InstId i) const {
    const Shape& s = m_.shape(i);
    if (!s.is_array() || m_.has_side_effect(i) || m_.has_control(i)) return false;
    if (op_info(m_.op(i)).elementwise && m_.op(i) != Opcode::Copy) return true;
    switch (m_.op(i)) {
      case Opcode::Bitcast:
      case Opcode::Broadcast:
      case Opcode::Concatenate:
      case Opcode::DynamicSlice:
      case Opcode::DynamicUpdateSlice:
      case Opcode::Gather:
      case Opcode::Iota:
      case Opcode::Pad:
      case Opcode::Reduce:
      case Opcode::ReduceWindow:
      case Opcode::Reshape:
      case Opcode::Reverse:
      case Opcode::Slice:
      case Opcode::Transpose:
        return true;
      default:
        return false;
    }
  }
  bool can_consume(InstId i) const {
    if (m_.op(i) == Opcode::Fusion) return (kind_is(i, "kLoop") || kind_is(i, "kInput")) && m_.shape(i).is_array();
    return fusible(i) && m_.op(i) != Opcode::Iota && m_.op(i) != Opcode::Bitcast;
  }
  bool expensive(InstId i) const {
    const OpInfo& info = op_info(m_.op(i));
    switch (m_.op(i)) {
      case Opcode::Divide:
      case Opcode::Remainder:
      case Opcode::Power:
      case Opcode::Reduce:
      case Opcode::ReduceWindow:
      case Opcode::Gather:
      case Opcode::Fusion:
        return true;
      default:
        return info.transcendental;
    }
  }
  // Does the consumer read elements of that operand more than once?
  bool reuses(InstId consumer, InstId producer) const {
    auto direct = [&](InstId user) {
      switch (m_.op(user)) {
        case Opcode::Broadcast:
          return m_.shape(user).elements_count() > m_.shape(m_.operand(user, 0)).elements_count();
        case Opcode::ReduceWindow:
        case Opcode::Gather:
          return true;
        default:
          return false;
      }
    };
    if (m_.op(consumer) != Opcode::Fusion) return direct(consumer);
    const Computation& body = m_.comp(m_.called(consumer)[0]);
    for (size_t n = 0; n < m_.operand_count(consumer); ++n)
      if (m_.operand(consumer, n) == producer)
        for (InstId user : m_.users(body.params[n]))
          if (direct(user)) return true;
    return false;
  }

  std::string refuse(InstId producer, InstId consumer, bool may_duplicate) const {
    Opcode op = m_.op(producer);
    if (op == Opcode::Parameter) return "the producer is a parameter";
    if (op == Opcode::Constant)
      return m_.shape(producer).is_effective_scalar() ? "" : "a constant of more than one element";
    if (!fusible(producer)) return fmt::format("{} does not fuse", op_text(op));
    if (op == Opcode::Reduce || op == Opcode::ReduceWindow) return "a reduction is not computed inside its consumer";
    if (m_.is_root(producer)) return "the producer is the result";
    bool shared = m_.user_count(producer) > 1;
    if (shared && !may_duplicate) return "the producer has other users";
    if (shared && expensive(producer)) return "the producer is expensive and has other users";
    if (shared && m_.user_count(producer) > 8) return "the producer has more than 8 users";
    if (expensive(producer) && reuses(consumer, producer))
      return "the consumer would compute an expensive producer again";
    if (m_.operand_count(producer) + m_.operand_count(consumer) > kMaxOperands) return "more than 64 operands";
    return "";
  }

  int64_t bytes(InstId i) const { return u_.leaf_bytes(m_.shape_id(i)); }

  std::string refuse_merge(InstId i) const {
    if (!kind_is(i, "kLoop") || !m_.shape(i).is_array()) return "not a loop fusion of one result";
    int64_t read = 0, saved = 0, more = 0;
    for (InstId o : m_.operands(i)) read += bytes(o);
    for (InstId user : m_.users(i)) {
      if (m_.op(user) != Opcode::Fusion || !can_consume(user)) return "a user is no loop or input fusion";
      if (m_.operand_count(user) + m_.operand_count(i) > kMaxOperands) return "more than 64 operands";
      if (reuses(user, i)) return "a user reads elements more than once";
      saved += bytes(i);
      for (InstId o : m_.operands(i)) {
        auto ops = m_.operands(user);
        if (std::find(ops.begin(), ops.end(), o) == ops.end()) more += bytes(o);
      }
    }
    if (m_.user_count(i) > 1)
      for (InstId b : m_.live_order(m_.called(i)[0]))
        if (expensive(b)) return "an expensive operation would be computed for every user";
    int64_t before = read + bytes(i) + saved;
    if (more > before) return fmt::format("{} bytes would be moved in place of {}", more, before);
    return "";
  }

  // Puts the producer into the consumer and returns the fusion that results; the producer itself stays.
  InstId fuse(InstId producer, InstId consumer) {
    InstId fusion = m_.op(consumer) == Opcode::Fusion ? consumer : wrap(consumer);
    CompId body = m_.called(fusion)[0];
    std::vector<InstId> params = m_.comp(body).params;
    std::vector<InstId> operands(m_.operands(fusion).begin(), m_.operands(fusion).end());
    size_t slot = static_cast<size_t>(std::find(operands.begin(), operands.end(), producer) - operands.begin());
    // A parameter for every operand of the producer; those the fusion has already are shared.
    std::vector<InstId> sources(m_.operands(producer).begin(), m_.operands(producer).end());
    auto parameter_of = [&](InstId source) {
      for (size_t n = 0; n < operands.size(); ++n)
        if (operands[n] == source && n != slot) return params[n];
      InstId p = m_.parameter(body, static_cast<int64_t>(params.size()), m_.shape_id(source),
                              fmt::format("param_{}", params.size()));
      params.push_back(p);
      operands.push_back(source);
      return p;
    };
    InstId inside;
    if (m_.op(producer) == Opcode::Fusion) {
      CompId inner = m_.called(producer)[0];
      std::unordered_map<InstId, InstId> map;
      for (InstId i : m_.post_order(inner)) {
        if (m_.op(i) == Opcode::Parameter) {
          map[i] = parameter_of(sources[static_cast<size_t>(m_.parameter_number(i))]);
          continue;
        }
        std::vector<InstId> ops;
        for (InstId o : m_.operands(i)) ops.push_back(map.at(o));
        map[i] = m_.clone_inst(i, body, ops);
      }
      inside = map.at(m_.comp(inner).root);
    } else {
      std::vector<InstId> ops;
      for (InstId s : sources) ops.push_back(parameter_of(s));
      inside = m_.clone_inst(producer, body, ops);
    }
    InstId replaced = params[slot];
    m_.replace_all_uses(replaced, inside);
    operands.erase(operands.begin() + static_cast<ptrdiff_t>(slot));
    params.erase(params.begin() + static_cast<ptrdiff_t>(slot));
    m_.remove(replaced);
    for (size_t n = 0; n < params.size(); ++n) m_.set_parameter_number(params[n], static_cast<int64_t>(n));
    m_.set_params(body, params);
    m_.set_operands(fusion, operands);
    return fusion;
  }

  //   add(A, B)      →      fusion(A, B), kind=kLoop, calls={ ROOT add(param_0, param_1) }
  InstId wrap(InstId i) {
    CompId body = m_.add_computation("fused_computation");
    std::vector<InstId> operands, params, ops;
    for (InstId o : m_.operands(i)) {
      auto known = std::find(operands.begin(), operands.end(), o);
      if (known == operands.end()) {
        operands.push_back(o);
        known = operands.end() - 1;
      }
      ops.push_back(InstId(static_cast<size_t>(known - operands.begin())));
    }
    for (size_t n = 0; n < operands.size(); ++n)
      params.push_back(
          m_.parameter(body, static_cast<int64_t>(n), m_.shape_id(operands[n]), fmt::format("param_{}", n)));
    for (InstId& o : ops) o = params[o.value];
    InstId root = m_.clone_inst(i, body, ops);
    m_.set_root(body, root);
    bool input = m_.op(i) == Opcode::Reduce || m_.op(i) == Opcode::Scatter;
    AttrsId attrs =
        attrs_of(u_, Opcode::Fusion, {{Attr::kind, u_.str(input ? "kInput" : "kLoop")}, {Attr::calls, body}});
    InstId fusion = m_.add(
        m_.parent(i),
        {.op = Opcode::Fusion, .shape = m_.shape_id(i), .operands = operands, .attrs = attrs, .meta = m_[i].meta});
    m_.replace_all_uses(i, fusion);
    m_.remove(i);
    return fusion;
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  std::vector<std::vector<InstId>> callers_;
};

}  // namespace

bool run_fusion(Module& m, PassContext& ctx) {
  return Fuser(m, ctx).fuse_all(m.nonfusion_computations(), ctx.flag("may_duplicate"));
}
bool fuse_within(Module& m, PassContext& ctx, const std::vector<CompId>& computations) {
  return Fuser(m, ctx).fuse_all(computations, true);
}
bool run_fusion_merger(Module& m, PassContext& ctx) { return Fuser(m, ctx).merge_all(); }

}  // namespace hlo
