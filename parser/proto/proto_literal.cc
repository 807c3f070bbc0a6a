// Literals of protos.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/print/print.h"
#include "ir/sharding/sharding.h"
#include "parser/parser.h"
#include "parser/proto/proto_reader.h"
#include "parser/proto/proto_text.h"

namespace hlo {

LitId literal_from_proto(const xla::LiteralProto& p, Universe& u) {
  Literal lit;
  lit.shape = parse_shape(shape_text(p.shape()), u);
  const Shape& s = u[lit.shape];
  lit.elided = p.hlo_replay_elided();
  if (lit.elided && !p.tuple_literals_size()) return u.literal(std::move(lit));
  if (s.is_tuple()) {
    if (p.tuple_literals_size() != static_cast<int>(s.elements.size()))
      fail(FailureKind::kIo, "a tuple literal of the proto has {} elements of {}", p.tuple_literals_size(),
           s.elements.size());
    for (const auto& e : p.tuple_literals()) lit.elements.push_back(literal_from_proto(e, u));
    return u.literal(std::move(lit));
  }
  if (!s.is_array()) return u.literal(std::move(lit));
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  int64_t want = s.elements_count();
  auto size_check = [&](size_t have) {
    if (have != static_cast<size_t>(want))
      fail(FailureKind::kIo, "a literal of the proto has {} elements, its shape {} has {}", have,
           u.shape_text_plain(lit.shape), want);
  };
  auto raw = [&](const auto& list) {
    using T = std::decay_t<decltype(list[0])>;
    size_check(static_cast<size_t>(list.size()));
    lit.bytes.assign(reinterpret_cast<const char*>(list.data()), static_cast<size_t>(list.size()) * sizeof(T));
  };
  auto parts = [&](const auto& list) {
    using T = std::decay_t<decltype(list[0])>;
    size_check(static_cast<size_t>(list.size()) / 2);
    lit.bytes.assign(reinterpret_cast<const char*>(list.data()), static_cast<size_t>(list.size()) * sizeof(T));
  };
  auto bytes = [&](const std::string& b) {
    size_check(b.size() / width);
    lit.bytes = b;
  };
  // Numbers of 4 bits and less lie two and more in a byte, the first in the low bits.
  auto packed = [&](const std::string& b) {
    size_t per = 8 / static_cast<size_t>(type_bits(s.type)), n = static_cast<size_t>(want);
    if (b.size() == n && n != (n + per - 1) / per) return bytes(b);
    if (b.size() != (n + per - 1) / per) size_check(b.size() * per);
    lit.bytes.resize(n);
    for (size_t i = 0; i < n; ++i) {
      int bits = type_bits(s.type);
      int v = static_cast<unsigned char>(b[i / per]) >> (static_cast<int>(i % per) * bits) & ((1 << bits) - 1);
      if (is_signed_int(s.type) && v >> (bits - 1)) v -= 1 << bits;
      lit.bytes[i] = static_cast<char>(v);
    }
  };
  switch (s.type) {
    case ElementType::Pred:
      size_check(static_cast<size_t>(p.preds_size()));
      for (bool b : p.preds()) lit.bytes += static_cast<char>(b);
      break;
    case ElementType::S32:
      raw(p.s32s());
      break;
    case ElementType::S64:
      raw(p.s64s());
      break;
    case ElementType::U32:
      raw(p.u32s());
      break;
    case ElementType::U64:
      raw(p.u64s());
      break;
    case ElementType::F32:
      raw(p.f32s());
      break;
    case ElementType::F64:
      raw(p.f64s());
      break;
    case ElementType::C64:
      parts(p.c64s());
      break;
    case ElementType::C128:
      parts(p.c128s());
      break;
    case ElementType::S8:
      bytes(p.s8s());
      break;
    case ElementType::U8:
      bytes(p.u8s());
      break;
    case ElementType::S16:
      bytes(p.s16s());
      break;
    case ElementType::U16:
      bytes(p.u16s());
      break;
    case ElementType::F16:
      bytes(p.f16s());
      break;
    case ElementType::BF16:
      bytes(p.bf16s());
      break;
    case ElementType::S1:
      packed(p.s1s());
      break;
    case ElementType::S2:
      packed(p.s2s());
      break;
    case ElementType::S4:
      packed(p.s4s());
      break;
    case ElementType::U1:
      packed(p.u1s());
      break;
    case ElementType::U2:
      packed(p.u2s());
      break;
    case ElementType::U4:
      packed(p.u4s());
      break;
    case ElementType::F4E2M1FN:
      packed(p.f4e2m1fns());
      break;
    case ElementType::F6E2M3FN:
      bytes(p.f6e2m3fns());
      break;
    case ElementType::F6E3M2FN:
      bytes(p.f6e3m2fns());
      break;
    case ElementType::F8E5M2:
      bytes(p.f8e5m2s());
      break;
    case ElementType::F8E4M3:
      bytes(p.f8e4m3s());
      break;
    case ElementType::F8E4M3FN:
      bytes(p.f8e4m3fns());
      break;
    case ElementType::F8E4M3B11FNUZ:
      bytes(p.f8e4m3b11fnuzs());
      break;
    case ElementType::F8E5M2FNUZ:
      bytes(p.f8e5m2fnuzs());
      break;
    case ElementType::F8E4M3FNUZ:
      bytes(p.f8e4m3fnuzs());
      break;
    case ElementType::F8E3M4:
      bytes(p.f8e3m4s());
      break;
    case ElementType::F8E8M0FNU:
      bytes(p.f8e8m0fnus());
      break;
    default:
      fail(FailureKind::kUnsupported, "literals of type {} are not read from protos", type_name(s.type));
  }
  return u.literal(std::move(lit));
}

}  // namespace hlo
