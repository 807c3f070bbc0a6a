// sub-byte-collective-normalization (xla/hlo/transforms/simplifiers/sub_byte_collective_normalization.cc).
#include "passes/collectives/collectives.h"
#include "passes/layout/physical.h"

namespace hlo {
namespace {

constexpr ElementType kByte = ElementType::S8;

std::string stated_bits(ElementType type) { return fmt::format("E({})", type_bits(type)); }

size_t minor_dimension(const Shape& s) { return static_cast<size_t>(s.layout.minor_to_major[0]); }

// Elements that go into a byte; 0 where the array's rows, as they lie, are not whole packed bytes.
int64_t elements_a_byte(const Shape& s) {
  if (!s.is_array() || s.is_dynamic() || s.type == ElementType::Pred || type_bits(s.type) >= 8 ||
      s.layout.minor_to_major.empty() || !s.layout.rest.starts_with(stated_bits(s.type)))
    return 0;
  const int64_t ratio = 8 / type_bits(s.type);
  return s.dims[minor_dimension(s)] % ratio ? 0 : ratio;
}

bool goes_as_bytes(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::AllGather:
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
      break;
    default:
      return false;
  }
  if (m.operand_count(i) != 1 || !m.shape(i).is_array() || m.has_control(i)) return false;
  const Shape &from = m.shape(m.operand(i, 0)), &to = m.shape(i);
  const int64_t ratio = elements_a_byte(from);
  if (!ratio || elements_a_byte(to) != ratio || minor_dimension(from) != minor_dimension(to)) return false;
  const Dims& split = m.attrs(i).ints(Attr::dimensions);
  if (m.op(i) != Opcode::AllToAll || split.empty()) return true;
  // XLA asks it of every dimension, not of the minor one alone.
  const int64_t size = group_size(m, i);
  return size > 0 && to.dims[static_cast<size_t>(split[0])] % (size * ratio) == 0;
}

// The array's bytes: as numbers, and as rows of elements of one byte each.
ShapeId as_bytes(Universe& u, Shape s, int64_t ratio) {
  s.layout.rest.erase(0, stated_bits(s.type).size());
  s.type = kByte;
  s.dims[minor_dimension(s)] /= ratio;
  return u.shape(std::move(s));
}
ShapeId byte_by_byte(Universe& u, Shape s, int64_t ratio) {
  s.dims[minor_dimension(s)] /= ratio;
  s.layout.minor_to_major.insert(s.layout.minor_to_major.begin(), s.rank());
  s.dims.push_back(ratio);
  s.dynamic.clear();
  return u.shape(std::move(s));
}

}  // namespace

//   u4[4,8] all-gather(u4[1,8] A)
//     →   bitcast(u4[4,4,2] bitcast-convert(s8[4,4] all-gather(s8[1,4] bitcast-convert(u4[1,4,2] bitcast(A)))))
bool run_sub_byte_collective_normalization(Module& m, PassContext& ctx) {
  Universe& u = m.u();
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || !goes_as_bytes(m, i)) continue;
      if (!ctx.spend(m, "message as bytes", {i})) return changed;
      const Shape from = m.shape(m.operand(i, 0)), to = m.shape(i);
      const int64_t ratio = elements_a_byte(from);
      const InstId apart = bitcast_to(m, m.operand(i, 0), byte_by_byte(u, from, ratio));
      const InstId bytes = make(m, c, Opcode::BitcastConvert, {apart}, {}, as_bytes(u, from, ratio));
      const InstId sent = m.clone_inst(i, c, std::vector<InstId>{bytes}, as_bytes(u, to, ratio));
      const InstId received = make(m, c, Opcode::BitcastConvert, {sent}, {}, byte_by_byte(u, to, ratio));
      changed |= m.replace(i, bitcast_to(m, received, m.shape_id(i)));
    }
  return changed;
}

}  // namespace hlo
