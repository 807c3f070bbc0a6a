// cse (xla/service/hlo_cse.cc): equal instructions of a computation are computed once.
#include <algorithm>
#include <unordered_map>

#include "ir/fingerprint.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

class Cse {
 public:
  Cse(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx), layouts_(ctx.flag("layout_sensitive", false)) {}

  bool run() {
    bool changed = false;
    const bool only_fusions = ctx_.flag("only_fusion_computations", false);
    const std::vector<bool> fused = m_.fusion_computation_flags();
    for (CompId c : m_.computations()) {
      if (only_fusions && !fused[c.value]) continue;
      changed |= constants(c);
      changed |= instructions(c);
    }
    return changed;
  }

 private:
  ShapeId shape_key(InstId i) { return layouts_ ? m_.shape_id(i) : u_.with_default_layout(m_.shape_id(i)); }

  bool constants(CompId c) {
    bool changed = false;
    std::unordered_map<uint64_t, InstId> first;  // by literal and shape
    for (InstId i : m_.live_order(c)) {
      if (m_.op(i) != Opcode::Constant || m_.has_control(i)) continue;
      const Literal& lit = m_.literal(i);
      if (lit.elided) continue;  // unknown values are not known to be equal
      LitId id = m_.literal_id(i);
      if (ShapeId plain = u_.with_default_layout(lit.shape); plain != lit.shape) {
        Literal same = lit;
        same.shape = plain;
        id = u_.literal(std::move(same));
      }
      uint64_t key = static_cast<uint64_t>(id.value) << 32 | shape_key(i).value;
      auto [at, fresh] = first.emplace(key, i);
      if (fresh) continue;
      if (!ctx_.spend(m_, "equal constants", {i, at->second})) return changed;
      m_.replace_all_uses(i, at->second);
      m_.remove(i);
      changed = true;
    }
    return changed;
  }

  // The set with everything out that equality ignores; callees as classes of equal content.
  uint32_t attrs_class(InstId i) {
    AttrsId id = m_[i].attrs;
    if (!id.valid()) return AttrsId::kNone;
    auto [at, fresh] = attrs_class_.emplace(id.value, 0);
    if (!fresh) return at->second;
    AttrSet set = u_[id];
    for (Attr key : {Attr::sharding, Attr::frontend_attributes, Attr::origin, Attr::statistics}) set.erase(key);
    for (auto& [key, value] : set.list) {
      if (CompId* one = std::get_if<CompId>(&value)) *one = comp_class(*one);
      if (auto* many = std::get_if<std::vector<CompId>>(&value))
        for (CompId& c : *many) c = comp_class(c);
    }
    uint32_t out = u_.attrs(std::move(set)).value;
    attrs_class_[id.value] = out;
    return out;
  }
  CompId comp_class(CompId c) {
    if (!prints_) prints_ = std::make_unique<Fingerprints>(m_);
    return comp_class_.emplace(prints_->computation(c), c).first->second;
  }

  std::string_view attribute_text(InstId i, Attr key) { return u_.text(m_.attrs(i).text(key)); }

  bool instructions(CompId c) {
    bool changed = false;
    std::unordered_map<uint64_t, std::vector<InstId>> groups;
    std::unordered_map<InstId, InstId> iota_of;  // equal iotas → the first seen
    std::unordered_map<uint64_t, InstId> iotas;
    auto operand_key = [&](InstId o) {
      if (m_.op(o) != Opcode::Iota) return o;
      uint64_t key = hash_combine(shape_key(o).value, m_[o].attrs.value);
      return iotas.emplace(key, o).first->second;
    };
    for (InstId i : m_.post_order(c)) {
      if (!m_.alive(i)) continue;
      Opcode op = m_.op(i);
      bool nullary = m_.operand_count(i) == 0;
      if (nullary && op != Opcode::PartitionId && op != Opcode::ReplicaId) continue;
      if (attribute_text(i, Attr::frontend_attributes).find("MUST_FUSE") != std::string_view::npos) continue;
      if (m_.has_side_effect(i) || m_.has_control(i)) continue;
      std::vector<InstId> key_ops;
      for (InstId o : m_.operands(i)) key_ops.push_back(operand_key(o));
      if (op_info(op).commutative && key_ops.size() == 2 && key_ops[1] < key_ops[0]) std::swap(key_ops[0], key_ops[1]);
      uint64_t h = hash_combine(static_cast<uint64_t>(op), hash_combine(shape_key(i).value, attrs_class(i)));
      for (InstId o : key_ops) h = hash_combine(h, o.value);
      InstId same;
      for (InstId other : groups[h]) {
        if (!m_.alive(other) || m_.op(other) != op || shape_key(other) != shape_key(i) ||
            attrs_class(other) != attrs_class(i))
          continue;
        std::vector<InstId> other_ops;
        for (InstId o : m_.operands(other)) other_ops.push_back(operand_key(o));
        if (op_info(op).commutative && other_ops.size() == 2 && other_ops[1] < other_ops[0])
          std::swap(other_ops[0], other_ops[1]);
        if (other_ops != key_ops) continue;
        std::string_view a = attribute_text(i, Attr::sharding), b = attribute_text(other, Attr::sharding);
        if (!a.empty() && !b.empty() && a != b) continue;
        same = other;
        break;
      }
      if (same.valid()) {
        if (!ctx_.spend(m_, "equal instructions", {i, same})) return changed;
        m_.replace_all_uses(i, same);
        m_.remove_with_unused_operands(i, false);
        changed = true;
        continue;
      }
      groups[h].push_back(i);
      // Equal iotas among the operands of one instruction become one.
      for (size_t a = 0; a < m_.operand_count(i); ++a) {
        if (m_.op(m_.operand(i, a)) != Opcode::Iota) continue;
        for (size_t b = a + 1; b < m_.operand_count(i); ++b) {
          InstId x = m_.operand(i, a), y = m_.operand(i, b);
          if (x == y || m_.op(y) != Opcode::Iota || operand_key(x) != operand_key(y)) continue;
          if (!ctx_.spend(m_, "equal iotas", {y, x})) return changed;
          m_.set_operand(i, b, x);
          if (m_.dead(y) && !m_.has_control(y)) m_.remove(y);
          changed = true;
        }
      }
    }
    return changed;
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  bool layouts_;
  std::unordered_map<uint32_t, uint32_t> attrs_class_;
  std::unordered_map<uint64_t, CompId> comp_class_;
  std::unique_ptr<Fingerprints> prints_;
};

}  // namespace

bool run_cse(Module& m, PassContext& ctx) { return Cse(m, ctx).run(); }

}  // namespace hlo
