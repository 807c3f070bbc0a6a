// Rules of memory spaces, which a layout tells as S(n): 0 (not written) is the device's own memory, 1 its fast one, 5
// the host's (xla/service/hlo_verifier.cc, HandleBitcast, CheckShape of a copy, Postprocess).
#include <charconv>

#include "ir/verify/verifier_rules.h"

namespace hlo {
namespace {

constexpr int64_t kDevice = 0, kFast = 1, kHost = 5;

int64_t memory_space(const Shape& s) {
  size_t at = s.layout.rest.find("S(");
  int64_t space = kDevice;
  if (at != std::string::npos)
    std::from_chars(s.layout.rest.data() + at + 2, s.layout.rest.data() + s.layout.rest.size(), space);
  return space;
}

// Tiles, element sizes and what else a layout tells but its order and its memory.
std::string without_memory(const std::string& rest) {
  size_t at = rest.find("S(");
  if (at == std::string::npos) return rest;
  return rest.substr(0, at) + rest.substr(std::min(rest.find(')', at), rest.size() - 1) + 1);
}

bool is_copied_constant(const Module& m, InstId i) {
  while (m.op(i) == Opcode::Copy) i = m.operand(i, 0);
  return m.op(i) == Opcode::Constant;
}

}  // namespace

std::string memory_space_error(const Module& m, InstId i) {
  const Opcode op = m.op(i);
  if (op != Opcode::Bitcast && op != Opcode::Copy && op != Opcode::DynamicSlice && op != Opcode::DynamicUpdateSlice)
    return "";
  const Universe& u = m.u();
  const Shape& out = m.shape(i);
  for (size_t n = 0; n < m.operand_count(i); ++n) {
    const Shape& in = m.shape(m.operand(i, n));
    if (!in.is_array() || !out.is_array()) continue;
    const int64_t from = memory_space(in), to = memory_space(out);
    if (from == to || (op != Opcode::Bitcast && in.rank() != out.rank())) continue;
    auto moves = [&](std::string_view what) {
      return fmt::format("makes {} of {}: {}", u.shape_text(m.shape_id(i)), u.shape_text(m.shape_id(m.operand(i, n))),
                         what);
    };
    if (op == Opcode::Bitcast) {
      if ((from == kHost) != (to == kHost) && !is_copied_constant(m, m.operand(i, n)))
        return moves("a bitcast moves nothing between host and device");
    } else if (op == Opcode::Copy) {
      if (from == kHost && (in.layout.minor_to_major != out.layout.minor_to_major ||
                            without_memory(in.layout.rest) != without_memory(out.layout.rest)))
        return moves("a copy from the host does not change layouts");
    } else if (from == kFast) {
      return moves("it leaves the fast memory");
    } else if (op == Opcode::DynamicSlice && from == kDevice && to == kHost) {
      return moves("a dynamic-slice takes nothing from device to host");
    } else if (op == Opcode::DynamicUpdateSlice && from == kHost && to == kDevice) {
      return moves("a dynamic-update-slice takes nothing from host to device");
    }
  }
  return "";
}

}  // namespace hlo
