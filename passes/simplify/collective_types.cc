// Passes that make collectives carry less: collective-quantizer, all-gather-bcast-reorder and
// all-gather-remove-degenerate-dims (xla/hlo/transforms/collectives/collective_quantizer.cc,
// all_gather_broadcast_reorder.cc, all_gather_remove_degenerate_dims.cc).
#include <algorithm>
#include <optional>

#include "passes/rewrite.h"
#include "passes/simplify/collectives.h"

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
        if (!ctx.spend(m, "conversion behind the collective", {i, q->convert})) return changed;
        InstId x = repeated(m, q->convert, carry(m.operand(q->convert, 0)));
        if (q->scale.valid()) x = repeated(m, q->scale, x);
        m.replace_all_uses(i, x);
        changed = true;
      } else if (std::optional<Quantization> q = quantized(m, i)) {
        if (!ctx.spend(m, "conversion in front of the collective", {i, q->convert})) return changed;
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

//   all-gather(broadcast(A)), along a dimension of A      →      broadcast(all-gather(A))
//   f32[16,4] all-gather(f32[4,4] broadcast(f32[] A))      →      reshape(f32[4,4,4] broadcast(f32[4] all-gather(…)))
bool run_all_gather_bcast_reorder(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  int64_t channel = 0;
  for (InstId i : all_of_opcode(m, Opcode::AllGather)) {
    if (m.operand_count(i) != 1 || !m.shape(i).is_array()) continue;
    InstId b = m.operand(i, 0);
    if (m.op(b) != Opcode::Broadcast || m.user_count(b) != 1) continue;
    const Dims map = m.attrs(b).ints(Attr::dimensions), to = m.shape(i).dims;
    int64_t along = m.attrs(i).ints(Attr::dimensions)[0], from = 0;
    auto at = std::find(map.begin(), map.end(), along);
    const int64_t part = m.shape(b).dims[static_cast<size_t>(along)];
    // Arrays that are the same all along what is gathered XLA leaves; of a scalar each device's value is gathered.
    const bool scalar = map.empty() && part > 0;
    if (at == map.end() && !scalar) continue;
    if (!ctx.spend(m, scalar ? "all-gather of a scalar" : "all-gather in front of the broadcast", {i, b}))
      return changed;
    CompId c = m.parent(i);
    InstId a = m.operand(b, 0);
    Dims dims = m.shape(a).dims;
    if (scalar) {
      a = make_reshape(m, a, {1});
      dims = {to[static_cast<size_t>(along)] / part};
    } else {
      from = at - map.begin();
      dims[static_cast<size_t>(from)] = to[static_cast<size_t>(along)];
    }
    InstId gather = m.clone_inst(i, c, std::vector<InstId>{a}, u.with_dims(m.shape_id(a), dims));
    m.set_attr(gather, Attr::dimensions, Dims{from});
    if (m.attrs(i).has(Attr::channel_id)) m.set_attr(gather, Attr::channel_id, next_channel(m, &channel));
    if (scalar) {
      Dims wide = m.shape(b).dims;
      wide.insert(wide.begin() + along, dims[0]);
      InstId spread = make_broadcast(m, c, gather, {along}, u.with_dims(m.shape_id(a), wide));
      InstId whole = make_reshape(m, spread, to);
      m.set_shape(whole, m.shape_id(i));  // its layout too
      changed |= m.replace(i, whole);
      continue;
    }
    changed |= m.replace(i, m.clone_inst(b, c, std::vector<InstId>{gather}, m.shape_id(i)));
  }
  return changed;
}

//   f32[1,32] all-gather(f32[1,8] A)      →      reshape(f32[32] all-gather(reshape(A)))
bool run_all_gather_remove_degenerate_dims(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::AllGather)) {
    if (m.operand_count(i) != 1 || !m.shape(i).is_array()) continue;
    const Shape to = m.shape(i), from = m.shape(m.operand(i, 0));
    int64_t along = m.attrs(i).ints(Attr::dimensions)[0], place = 0;
    Dims kept, brought;
    for (int64_t d = 0; d < to.rank(); ++d) {
      auto at = static_cast<size_t>(d);
      if (to.dims[at] == 1 && d != along) continue;
      if (d == along) place = static_cast<int64_t>(kept.size());
      kept.push_back(to.dims[at]), brought.push_back(from.dims[at]);
    }
    if (kept.size() == to.dims.size()) continue;
    if (!ctx.spend(m, "dimensions of one", {i})) return changed;
    InstId a = make_reshape(m, m.operand(i, 0), brought);
    InstId gather = m.clone_inst(i, m.parent(i), std::vector<InstId>{a}, u.with_dims(m.shape_id(i), kept));
    m.set_attr(gather, Attr::dimensions, Dims{place});
    changed |= m.replace(i, make_reshape(m, gather, to.dims));
  }
  return changed;
}

}  // namespace hlo
