// cse (xla/service/hlo_cse.cc): equal instructions of a computation are computed once.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "ir/query/fingerprint.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

class Cse {
 public:
  Cse(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx), layouts_(ctx.flag("layout_sensitive")) {}

  bool run() {
    bool changed = false;
    const bool only_fusions = ctx_.flag("only_fusion_computations");
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

  // Instructions by hash, open addressing: one array for a computation in place of a list for each hash.
  class Table {
   public:
    explicit Table(size_t most) : slots_(std::bit_ceil(2 * most + 2)) {}
    // Calls `same` on what has that hash until it says yes: that one; else `i` is kept and nothing returned.
    template <class Same>
    InstId find_or_keep(uint64_t hash, InstId i, Same same) {
      for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
        auto& [h, other] = slots_[at];
        if (!other.valid()) {
          h = hash, other = i;
          return InstId();
        }
        if (h == hash && same(other)) return other;
      }
    }

   private:
    std::vector<std::pair<uint64_t, InstId>> slots_;
  };

  bool instructions(CompId c) {
    bool changed = false;
    std::unordered_map<uint64_t, InstId> iotas;  // equal iotas → the first seen
    auto operand_key = [&](InstId o) {
      if (m_.op(o) != Opcode::Iota) return o;
      uint64_t key = hash_combine(shape_key(o).value, m_[o].attrs.value);
      return iotas.emplace(key, o).first->second;
    };
    std::vector<InstId> key_ops, other_ops;
    auto keys_of = [&](InstId i, std::vector<InstId>& out) {
      out.clear();
      for (InstId o : m_.operands(i)) out.push_back(operand_key(o));
      if (op_info(m_.op(i)).commutative && out.size() == 2 && out[1] < out[0]) std::swap(out[0], out[1]);
    };
    const std::vector<InstId> order = m_.post_order(c);
    Table table(order.size());
    for (InstId i : order) {
      if (!m_.alive(i)) continue;
      Opcode op = m_.op(i);
      bool nullary = m_.operand_count(i) == 0;
      if (nullary && op != Opcode::PartitionId && op != Opcode::ReplicaId) continue;
      if (attribute_text(i, Attr::frontend_attributes).find("MUST_FUSE") != std::string_view::npos) continue;
      if (m_.has_side_effect(i) || m_.has_control(i)) continue;
      keys_of(i, key_ops);
      const uint32_t own_attrs = attrs_class(i);
      uint64_t h = hash_combine(static_cast<uint64_t>(op), hash_combine(shape_key(i).value, own_attrs));
      for (InstId o : key_ops) h = hash_combine(h, o.value);
      InstId same = table.find_or_keep(h, i, [&](InstId other) {
        if (!m_.alive(other) || m_.op(other) != op || shape_key(other) != shape_key(i) ||
            attrs_class(other) != own_attrs)
          return false;
        keys_of(other, other_ops);
        if (other_ops != key_ops) return false;
        std::string_view a = attribute_text(i, Attr::sharding), b = attribute_text(other, Attr::sharding);
        return a.empty() || b.empty() || a == b;
      });
      if (same.valid()) {
        if (!ctx_.spend(m_, "equal instructions", {i, same})) return changed;
        m_.replace_all_uses(i, same);
        m_.remove_with_unused_operands(i, false);
        changed = true;
        continue;
      }
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
