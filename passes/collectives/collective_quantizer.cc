// collective-quantizer (xla/hlo/transforms/collectives/collective_quantizer.cc).
#include <optional>

#include "passes/collectives/collectives.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

bool moves_only(const Module& m, InstId i) {
  Opcode op = m.op(i);
  return (op == Opcode::AllGather || op == Opcode::AllToAll || op == Opcode::CollectiveBroadcast ||
          op == Opcode::CollectivePermute) &&
         m.operand_count(i) == 1 && m.shape(i).is_array() && !m.has_control(i);
}

bool narrows(const Module& m, InstId convert) {
  return m.op(convert) == Opcode::Convert &&
         type_bits(m.shape(convert).type) < type_bits(m.shape(m.operand(convert, 0)).type);
}

bool spread_scalar(const Module& m, InstId i) {
  return m.op(i) == Opcode::Broadcast && m.shape(m.operand(i, 0)).rank() == 0;
}

// How a value becomes one of fewer bits, or was one: scaled, clamped, converted.
struct Quantization {
  InstId scale, clamp, convert;  // the first two may be missing
};

// Behind the collective, each step the only reader of the one before.
std::optional<Quantization> quantized(const Module& m, InstId collective) {
  Quantization q;
  InstId at = collective;
  auto next = [&] {
    if (m.is_root(at) || m.user_count(at) != 1 || m.use_count(at) != 1) return InstId();
    return at = m.users(at)[0];
  };
  InstId i = next();
  if (i.valid() && (m.op(i) == Opcode::Multiply || m.op(i) == Opcode::Divide)) {
    size_t other = spread_scalar(m, m.operand(i, 1)) ? 1 : 0;
    if (!spread_scalar(m, m.operand(i, other)) || (other == 0 && m.op(i) == Opcode::Divide)) return std::nullopt;
    q.scale = i;
    i = next();
  }
  if (i.valid() && m.op(i) == Opcode::Clamp) {
    InstId low = m.operand(i, 0), high = m.operand(i, 2);
    if (!spread_scalar(m, low) || !spread_scalar(m, high)) return std::nullopt;
    q.clamp = i;
    i = next();
  }
  if (!i.valid() || !narrows(m, i)) return std::nullopt;
  q.convert = i;
  return q;
}

// In front of the collective.
std::optional<Quantization> dequantized(const Module& m, InstId collective) {
  Quantization q;
  InstId i = m.operand(collective, 0);
  if (m.op(i) == Opcode::Multiply) {
    size_t other = spread_scalar(m, m.operand(i, 1)) ? 1 : 0;
    if (!spread_scalar(m, m.operand(i, other))) return std::nullopt;
    q.scale = i;
    i = m.operand(i, 1 - other);
  }
  if (m.op(i) != Opcode::Convert || type_bits(m.shape(m.operand(i, 0)).type) >= type_bits(m.shape(i).type))
    return std::nullopt;
  q.convert = i;
  return q;
}

// The step on `x` in place of what it had, scalars spread to x's shape.
InstId repeated(Module& m, InstId step, InstId x) {
  std::vector<InstId> ops;
  CompId c = m.parent(step);
  size_t own =
      m.operand_count(step) == 3                                                                                    ? 1
      : m.operand_count(step) == 2 && spread_scalar(m, m.operand(step, 0)) && !spread_scalar(m, m.operand(step, 1)) ? 1
                                                                                                                    : 0;
  for (size_t k = 0; k < m.operand_count(step); ++k) {
    if (k == own) {
      ops.push_back(x);
      continue;
    }
    InstId scalar = m.operand(m.operand(step, k), 0);
    ops.push_back(make_broadcast(m, c, scalar, {}, m.u().with_type(m.shape_id(x), m.shape(scalar).type)));
  }
  return m.clone_inst(step, c, ops, m.u().with_type(m.shape_id(x), m.shape(step).type));
}

}  // namespace

//   bf16 convert(all-gather(A))      →      all-gather(bf16 convert(A))
//   all-gather(f32 convert(A))      →      f32 convert(all-gather(A))
// also with a scale and a clamp. What was there stays, dead, as in XLA.
bool run_collective_quantizer(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::AllGather, Opcode::AllToAll, Opcode::CollectiveBroadcast, Opcode::CollectivePermute}))
    return false;
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || !moves_only(m, i)) continue;
      auto carry = [&](InstId x) {
        return m.clone_inst(i, c, std::vector<InstId>{x}, u.with_type(m.shape_id(i), m.shape(x).type));
      };
      if (std::optional<Quantization> q = dequantized(m, i)) {
        if (!ctx.spend(m, "conversion after the collective", {i, q->convert})) return changed;
        InstId x = repeated(m, q->convert, carry(m.operand(q->convert, 0)));
        if (q->scale.valid()) x = repeated(m, q->scale, x);
        m.replace_all_uses(i, x);
        changed = true;
      } else if (std::optional<Quantization> q = quantized(m, i)) {
        if (!ctx.spend(m, "conversion before the collective", {i, q->convert})) return changed;
        InstId x = m.operand(i, 0);
        if (q->scale.valid()) x = repeated(m, q->scale, x);
        if (q->clamp.valid()) x = repeated(m, q->clamp, x);
        x = repeated(m, q->convert, x);
        m.replace_all_uses(q->convert, carry(x));
        changed = true;
      }
    }
  return changed;
}

}  // namespace hlo
