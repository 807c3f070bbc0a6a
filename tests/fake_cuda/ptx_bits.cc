#include "tests/fake_cuda/ptx_thread.h"

namespace fake {
namespace {

template <class T>
void shift_left(Thread& t, const Instruction& i) {
  uint32_t by = get<uint32_t>(t, at(i, 2));
  set(t, at(i, 0), by >= 8 * sizeof(T) ? T(0) : static_cast<T>(get<T>(t, at(i, 1)) << by));
}
template <class T>
void shift_right(Thread& t, const Instruction& i) {
  uint32_t by = std::min<uint32_t>(get<uint32_t>(t, at(i, 2)), 8 * sizeof(T));
  T a = get<T>(t, at(i, 1));
  if (by == 8 * sizeof(T))
    set(t, at(i, 0), static_cast<T>(std::is_signed_v<T> && a < 0 ? -1 : 0));
  else
    set(t, at(i, 0), static_cast<T>(a >> by));
}

template <class T>
struct Wider;
template <>
struct Wider<uint16_t> {
  using Type = uint32_t;
};
template <>
struct Wider<int16_t> {
  using Type = int32_t;
};
template <>
struct Wider<uint32_t> {
  using Type = uint64_t;
};
template <>
struct Wider<int32_t> {
  using Type = int64_t;
};
template <>
struct Wider<uint64_t> {
  using Type = unsigned __int128;
};
template <>
struct Wider<int64_t> {
  using Type = __int128;
};

template <class T>
void mul_high(Thread& t, const Instruction& i) {
  using W = typename Wider<T>::Type;
  set(t, at(i, 0), static_cast<T>((static_cast<W>(get<T>(t, at(i, 1))) * get<T>(t, at(i, 2))) >> (8 * sizeof(T))));
}
template <class T>
void mul_wide(Thread& t, const Instruction& i) {
  using W = typename Wider<T>::Type;
  if constexpr (sizeof(T) < 8)
    set(t, at(i, 0), static_cast<W>(static_cast<W>(get<T>(t, at(i, 1))) * static_cast<W>(get<T>(t, at(i, 2)))));
}
template <class T>
void mad_wide(Thread& t, const Instruction& i) {
  using W = typename Wider<T>::Type;
  if constexpr (sizeof(T) < 8)
    set(t, at(i, 0),
        static_cast<W>(static_cast<W>(get<T>(t, at(i, 1))) * static_cast<W>(get<T>(t, at(i, 2))) +
                       get<W>(t, at(i, 3))));
}
// A sum whose carry goes in (`compare`) and out (`flag`).
template <class U>
void carried(Thread& t, const Instruction& i, U a, U b) {
  auto sum = static_cast<U>(a + b);
  bool carry = sum < a;
  if (i.compare && t.carry) {
    ++sum;
    carry |= sum == 0;
  }
  if (i.flag) t.carry = carry;
  set(t, at(i, 0), sum);
}
// mad.lo, mad.hi, with carries: `flag` gives one, `compare` takes one, `width` 1: the high half.
template <class T>
void mad(Thread& t, const Instruction& i) {
  using U = std::make_unsigned_t<T>;
  using W = typename Wider<T>::Type;
  W product = static_cast<W>(get<T>(t, at(i, 1))) * get<T>(t, at(i, 2));
  auto part = static_cast<U>(i.width ? product >> (8 * sizeof(T)) : product);
  carried<U>(t, i, part, get<U>(t, at(i, 3)));
}
template <class T>
void add_carry(Thread& t, const Instruction& i) {
  using U = std::make_unsigned_t<T>;
  carried<U>(t, i, get<U>(t, at(i, 1)), get<U>(t, at(i, 2)));
}
// sub.cc, subc: the borrow of one goes into the next.
template <class T>
void sub_borrow(Thread& t, const Instruction& i) {
  using U = std::make_unsigned_t<T>;
  auto a = get<U>(t, at(i, 1)), b = get<U>(t, at(i, 2));
  U in = i.compare && t.carry;
  if (i.flag) t.carry = a < b || (a == b && in);
  set(t, at(i, 0), static_cast<U>(a - b - in));
}

template <class T>
void popc(Thread& t, const Instruction& i) {
  set(t, at(i, 0), static_cast<uint32_t>(std::popcount(get<T>(t, at(i, 1)))));
}
template <class T>
void clz(Thread& t, const Instruction& i) {
  set(t, at(i, 0), static_cast<uint32_t>(std::countl_zero(get<T>(t, at(i, 1)))));
}
template <class T>
void reversed(Thread& t, const Instruction& i) {
  T v = get<T>(t, at(i, 1)), r = 0;
  for (size_t k = 0; k < 8 * sizeof(T); ++k) r = static_cast<T>((r << 1) | ((v >> k) & 1));
  set(t, at(i, 0), r);
}
template <class T>
void field(Thread& t, const Instruction& i) {
  using U = std::make_unsigned_t<T>;
  U v = get<U>(t, at(i, 1));
  uint32_t from = get<uint32_t>(t, at(i, 2)) & 255, n = get<uint32_t>(t, at(i, 3)) & 255, all = 8 * sizeof(T);
  U out = from >= all ? U(0) : static_cast<U>(v >> from);
  uint32_t kept = std::min(n, from >= all ? 0 : all - from);
  if (n < all) out = n ? static_cast<U>(out & ((U(1) << n) - 1)) : U(0);
  if (std::is_signed_v<T> && n) {
    uint32_t last = std::min(from + n - 1, all - 1);
    bool sign = (v >> last) & 1;
    if (sign && kept < all) out = static_cast<U>(out | ~((kept ? (U(1) << kept) : U(1)) - 1));
  }
  set(t, at(i, 0), out);
}
template <class T>
void insert(Thread& t, const Instruction& i) {
  T a = get<T>(t, at(i, 1)), b = get<T>(t, at(i, 2));
  uint32_t from = get<uint32_t>(t, at(i, 3)) & 255, n = get<uint32_t>(t, at(i, 4)) & 255, all = 8 * sizeof(T);
  T mask = from >= all ? T(0) : static_cast<T>((n >= all ? ~T(0) : static_cast<T>((T(1) << n) - 1)) << from);
  T moved = from >= all ? T(0) : static_cast<T>(a << from);
  set(t, at(i, 0), static_cast<T>((b & ~mask) | (moved & mask)));
}
void permute(Thread& t, const Instruction& i) {
  uint64_t both = get<uint32_t>(t, at(i, 1)) | static_cast<uint64_t>(get<uint32_t>(t, at(i, 2))) << 32;
  uint32_t how = get<uint32_t>(t, at(i, 3)), out = 0;
  for (int k = 0; k < 4; ++k) {
    uint32_t s = (how >> (4 * k)) & 15, byte = static_cast<uint32_t>(both >> (8 * (s & 7))) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    out |= byte << (8 * k);
  }
  set(t, at(i, 0), out);
}
// shf.l and shf.r (`flag`: to the right), wrapped or clamped (`compare`).
void funnel(Thread& t, const Instruction& i) {
  uint64_t both = get<uint32_t>(t, at(i, 1)) | static_cast<uint64_t>(get<uint32_t>(t, at(i, 2))) << 32;
  uint32_t by = get<uint32_t>(t, at(i, 3));
  by = i.compare ? std::min(by, 32u) : by & 31;
  uint64_t r = i.flag ? both >> by : by == 0 ? both >> 32 : (both << by) >> 32;
  set(t, at(i, 0), static_cast<uint32_t>(r));
}

// --- comparison, choice, moves ---

enum Compare { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };

template <class T>
bool compared(int how, T a, T b) {
  bool unordered = false;
  if constexpr (std::is_floating_point_v<T>) unordered = std::isnan(a) || std::isnan(b);
  switch (how) {
    case kEq:
      return !unordered && a == b;
    case kNe:
      return !unordered && a != b;
    case kLt:
      return a < b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    case kGe:
      return a >= b;
    case kEqu:
      return unordered || a == b;
    case kNeu:
      return unordered || a != b;
    case kLtu:
      return unordered || a < b;
    case kLeu:
      return unordered || a <= b;
    case kGtu:
      return unordered || a > b;
    case kGeu:
      return unordered || a >= b;
    case kNum:
      return !unordered;
    default:
      return unordered;
  }
}
template <class T>
void setp(Thread& t, const Instruction& i) {
  bool r;
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    r = compared(i.compare, to_float(get<T>(t, at(i, 1))), to_float(get<T>(t, at(i, 2))));
  else
    r = compared(i.compare, get<T>(t, at(i, 1)), get<T>(t, at(i, 2)));
  // With a predicate: and, or, xor.
  if (i.width == 1) r = r && get<bool>(t, at(i, 3));
  if (i.width == 2) r = r || get<bool>(t, at(i, 3));
  if (i.width == 3) r = r != get<bool>(t, at(i, 3));
  set(t, at(i, 0), r);
}
void select(Thread& t, const Instruction& i) {
  t.top().regs[static_cast<size_t>(at(i, 0).reg)] = raw(t, at(i, get<bool>(t, at(i, 3)) ? 1 : 2));
}
// `mov.pred %p, -1` is true, and no more true than 1.
void move_predicate(Thread& t, const Instruction& i) {
  t.top().regs[static_cast<size_t>(at(i, 0).reg)] = raw(t, at(i, 1)) != 0;
}
// Between an address of a space and a generic one; only those of shared memory differ.
void convert_address(Thread& t, const Instruction& i) {
  const uint64_t base = i.compare ? reinterpret_cast<uint64_t>(t.shared) : 0, from = raw(t, at(i, 1));
  set(t, at(i, 0), i.compare < 0 ? from - base : from + base);
}
void move(Thread& t, const Instruction& i) {
  const Operand &to = at(i, 0), &from = at(i, 1);
  if (to.kind == Operand::kVector) {
    // Taken apart, the low part first; `_` is nobody's.
    uint64_t v = raw(t, from);
    auto width = static_cast<size_t>(i.width) * 8 / to.list.size();
    for (size_t k = 0; k < to.list.size(); ++k)
      if (to.list[k].kind == Operand::kRegister)
        t.top().regs[static_cast<size_t>(to.list[k].reg)] = (v >> (k * width)) & ((uint64_t{1} << width) - 1);
    return;
  }
  if (from.kind == Operand::kVector) {
    auto width = static_cast<size_t>(i.width) * 8 / from.list.size();
    uint64_t v = 0;
    for (size_t k = 0; k < from.list.size(); ++k)
      v |= (raw(t, from.list[k]) & ((uint64_t{1} << width) - 1)) << (k * width);
    t.top().regs[static_cast<size_t>(to.reg)] = v;
    return;
  }
  t.top().regs[static_cast<size_t>(to.reg)] = raw(t, from);
}

}  // namespace

Execute bits_of(Instruction& i, const Words& words) {
  const std::string &op = words[0], &type = words.back();
  if (op == "mov") return type == "pred" ? move_predicate : move;
  if (op == "cvta") {
    i.compare = has(words, "shared") ? has(words, "to") ? -1 : 1 : 0;
    return convert_address;
  }
  if (op == "add" || op == "addc") {
    i.flag = has(words, "cc"), i.compare = op == "addc";
    return INTEGER_TYPES(add_carry);
  }
  if (op == "sub" || op == "subc") {
    i.flag = has(words, "cc"), i.compare = op == "subc";
    return INTEGER_TYPES(sub_borrow);
  }
  if (op == "mul") return has(words, "hi") ? INTEGER_TYPES(mul_high) : INTEGER_TYPES(mul_wide);
  if (op == "mad" && has(words, "wide")) return INTEGER_TYPES(mad_wide);
  if (op == "mad" || op == "madc") {
    i.flag = has(words, "cc"), i.compare = op == "madc", i.width = has(words, "hi");
    return INTEGER_TYPES(mad);
  }
  if (op == "shl") return INTEGER_TYPES(shift_left);
  if (op == "shr") return INTEGER_TYPES(shift_right);
  if (op == "popc") return type == "b32" ? popc<uint32_t> : popc<uint64_t>;
  if (op == "clz") return type == "b32" ? clz<uint32_t> : clz<uint64_t>;
  if (op == "brev") return type == "b32" ? reversed<uint32_t> : reversed<uint64_t>;
  if (op == "bfe") return INTEGER_TYPES(field);
  if (op == "bfi") return type == "b32" ? insert<uint32_t> : insert<uint64_t>;
  if (op == "prmt" && words.size() == 2) return permute;
  if (op == "shf") {
    i.flag = has(words, "r"), i.compare = has(words, "clamp");
    return funnel;
  }
  if (op == "selp") return select;
  if (op == "setp") {
    static const std::map<std::string, int> kHow = {
        {"eq", kEq},   {"ne", kNe},   {"lt", kLt},   {"le", kLe},   {"gt", kGt},   {"ge", kGe},
        {"equ", kEqu}, {"neu", kNeu}, {"ltu", kLtu}, {"leu", kLeu}, {"gtu", kGtu}, {"geu", kGeu},
        {"num", kNum}, {"nan", kNan}, {"lo", kLt},   {"ls", kLe},   {"hi", kGt},   {"hs", kGe}};
    i.compare = kHow.at(words[1]);
    i.width = has(words, "and") ? 1 : has(words, "or") ? 2 : has(words, "xor") ? 3 : 0;
    if (type == "f32") return setp<float>;
    if (type == "f64") return setp<double>;
    if (type == "f16") return setp<Half>;
    if (type == "bf16") return setp<Brain>;
    return INTEGER_TYPES(setp);
  }
  return nullptr;
}

}  // namespace fake
