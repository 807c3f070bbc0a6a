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

namespace {

// The elements of an array, each type in its own field.
class ArrayReader {
 public:
  ArrayReader(const xla::LiteralProto& p, const Universe& u, Literal* lit)
      : p_(p), u_(u), lit_(*lit), s_(u[lit->shape]), want_(s_.elements_count()) {}

  void run() {
    if (!numbers() && !whole_bytes() && !parts_of_bytes())
      fail(FailureKind::kUnsupported, "literals of type {} are not read from protos", type_name(s_.type));
  }

 private:
  void check_size(size_t have) const {
    if (have != static_cast<size_t>(want_))
      fail(FailureKind::kIo, "a literal of the proto has {} elements, its shape {} has {}", have,
           u_.shape_text_plain(lit_.shape), want_);
  }
  // `per`: how many of the list's make an element.
  template <class List>
  bool raw(const List& list, size_t per = 1) {
    using T = std::decay_t<decltype(list[0])>;
    check_size(static_cast<size_t>(list.size()) / per);
    lit_.bytes.assign(reinterpret_cast<const char*>(list.data()), static_cast<size_t>(list.size()) * sizeof(T));
    return true;
  }
  bool bytes(const std::string& b) {
    check_size(b.size() / static_cast<size_t>(storage_bytes(s_.type)));
    lit_.bytes = b;
    return true;
  }
  // Numbers of 4 bits and less lie two and more in a byte, the first in the low bits.
  bool packed(const std::string& b) {
    size_t per = 8 / static_cast<size_t>(type_bits(s_.type)), n = static_cast<size_t>(want_);
    if (b.size() == n && n != (n + per - 1) / per) return bytes(b);
    if (b.size() != (n + per - 1) / per) check_size(b.size() * per);
    lit_.bytes.resize(n);
    for (size_t i = 0; i < n; ++i) {
      int bits = type_bits(s_.type);
      int v = static_cast<unsigned char>(b[i / per]) >> (static_cast<int>(i % per) * bits) & ((1 << bits) - 1);
      if (is_signed_int(s_.type) && v >> (bits - 1)) v -= 1 << bits;
      lit_.bytes[i] = static_cast<char>(v);
    }
    return true;
  }

  bool numbers() {
    switch (s_.type) {
      case ElementType::Pred:
        check_size(static_cast<size_t>(p_.preds_size()));
        for (bool b : p_.preds()) lit_.bytes += static_cast<char>(b);
        return true;
      case ElementType::S32:
        return raw(p_.s32s());
      case ElementType::S64:
        return raw(p_.s64s());
      case ElementType::U32:
        return raw(p_.u32s());
      case ElementType::U64:
        return raw(p_.u64s());
      case ElementType::F32:
        return raw(p_.f32s());
      case ElementType::F64:
        return raw(p_.f64s());
      case ElementType::C64:
        return raw(p_.c64s(), 2);
      case ElementType::C128:
        return raw(p_.c128s(), 2);
      default:
        return false;
    }
  }

  bool whole_bytes() {
    switch (s_.type) {
      case ElementType::S8:
        return bytes(p_.s8s());
      case ElementType::U8:
        return bytes(p_.u8s());
      case ElementType::S16:
        return bytes(p_.s16s());
      case ElementType::U16:
        return bytes(p_.u16s());
      case ElementType::F16:
        return bytes(p_.f16s());
      case ElementType::BF16:
        return bytes(p_.bf16s());
      case ElementType::F6E2M3FN:
        return bytes(p_.f6e2m3fns());
      case ElementType::F6E3M2FN:
        return bytes(p_.f6e3m2fns());
      case ElementType::F8E5M2:
        return bytes(p_.f8e5m2s());
      case ElementType::F8E4M3:
        return bytes(p_.f8e4m3s());
      case ElementType::F8E4M3FN:
        return bytes(p_.f8e4m3fns());
      case ElementType::F8E4M3B11FNUZ:
        return bytes(p_.f8e4m3b11fnuzs());
      case ElementType::F8E5M2FNUZ:
        return bytes(p_.f8e5m2fnuzs());
      case ElementType::F8E4M3FNUZ:
        return bytes(p_.f8e4m3fnuzs());
      case ElementType::F8E3M4:
        return bytes(p_.f8e3m4s());
      case ElementType::F8E8M0FNU:
        return bytes(p_.f8e8m0fnus());
      default:
        return false;
    }
  }

  bool parts_of_bytes() {
    switch (s_.type) {
      case ElementType::S1:
        return packed(p_.s1s());
      case ElementType::S2:
        return packed(p_.s2s());
      case ElementType::S4:
        return packed(p_.s4s());
      case ElementType::U1:
        return packed(p_.u1s());
      case ElementType::U2:
        return packed(p_.u2s());
      case ElementType::U4:
        return packed(p_.u4s());
      case ElementType::F4E2M1FN:
        return packed(p_.f4e2m1fns());
      default:
        return false;
    }
  }

  const xla::LiteralProto& p_;
  const Universe& u_;
  Literal& lit_;
  const Shape& s_;
  int64_t want_;
};

}  // namespace

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
  ArrayReader(p, u, &lit).run();
  return u.literal(std::move(lit));
}

}  // namespace hlo
