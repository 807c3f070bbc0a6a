#include "tests/fake_cuda/ptx.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <type_traits>

namespace fake {

struct Frame {
  const Function* function;
  std::vector<uint64_t> regs;
  std::vector<char> params, local;
  size_t pc = 0;
  const Instruction* call = nullptr;  // of the caller, that returns here
};

struct Thread {
  const Grid* grid = nullptr;
  std::vector<Frame> frames;
  char* shared = nullptr;
  uint32_t tid[3] = {}, ctaid[3] = {};
  enum State { kReady, kShuffle, kBarrier, kEnded } state = kReady;
  bool carry = false;
  int lane = 0;
  // Of a shuffle: what this lane brought and asks for.
  uint32_t sent = 0;
  int from = 0;
  bool in_range = true;
  const Instruction* waiting = nullptr;
  Frame& top() { return frames.back(); }
};

namespace {

// --- operands ---

uint64_t address(Thread& t, const Operand& o) {
  if (o.reg >= 0) return t.top().regs[static_cast<size_t>(o.reg)] + o.value;
  if (o.frame == 0) return reinterpret_cast<uint64_t>(t.top().params.data()) + o.value;
  if (o.frame == 1) return reinterpret_cast<uint64_t>(t.top().local.data()) + o.value;
  if (o.frame == 2) return reinterpret_cast<uint64_t>(t.shared) + o.value;
  return o.value;
}

uint64_t raw(Thread& t, const Operand& o) {
  switch (o.kind) {
    case Operand::kRegister:
      return t.top().regs[static_cast<size_t>(o.reg)];
    case Operand::kImmediate:
      return o.value;
    case Operand::kAddress:
      return address(t, o);
    case Operand::kSpecial: {
      auto d = static_cast<size_t>(o.value & 3);
      switch (o.value >> 2) {
        case 0:
          return t.tid[d];
        case 1:
          return t.ctaid[d];
        case 2:
          return t.grid->threads[d];
        case 3:
          return t.grid->blocks[d];
        default:
          return static_cast<uint64_t>(t.lane);
      }
    }
    default:
      throw Fault(719, "an operand without a value");
  }
}

struct Half {
  uint16_t bits;
};

float to_float(Half h) {
  uint32_t sign = (h.bits & 0x8000u) << 16, exponent = (h.bits >> 10) & 31, mantissa = h.bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float v = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -v : v;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// To the nearest, ties to even.
Half to_half(double v) {
  auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  double a = std::fabs(v);
  if (std::isnan(v)) return {0x7fff};
  if (a >= 65520) return {static_cast<uint16_t>(sign | 0x7c00)};
  int exponent = 0;
  std::frexp(a, &exponent);
  int step = std::max(exponent - 11, -24);  // of the last place
  double scaled = std::nearbyint(std::ldexp(a, -step));
  auto n = static_cast<uint32_t>(scaled);
  if (n == 0) return {sign};
  if (step == -24) return {static_cast<uint16_t>(sign | n)};  // also 1024, the least normal one
  if (n == 2048) n = 1024, ++step;
  return {static_cast<uint16_t>(sign | (static_cast<uint32_t>(step + 25) << 10) | (n - 1024))};
}

template <class T>
T get(Thread& t, const Operand& o) {
  uint64_t v = raw(t, o);
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(v));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(v);
  else if constexpr (std::is_same_v<T, Half>)
    return Half{static_cast<uint16_t>(v)};
  else if constexpr (std::is_same_v<T, bool>)
    return v != 0;
  else
    return static_cast<T>(v);
}

template <class T>
uint64_t bits(T v) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(v);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(v);
  else if constexpr (std::is_same_v<T, Half>)
    return v.bits;
  else if constexpr (std::is_same_v<T, bool>)
    return v;
  else
    return static_cast<std::make_unsigned_t<T>>(v);
}

template <class T>
void set(Thread& t, const Operand& o, T v) {
  t.top().regs[static_cast<size_t>(o.reg)] = bits(v);
}

const Operand& at(const Instruction& i, size_t k) { return i.operands[k]; }

// --- memory ---

void check_global(Thread& t, const Instruction& i, uint64_t a, int64_t n) {
  if (i.flag && !t.grid->module->has_global(a, n) && !t.grid->allowed(a, n))
    throw Fault(700, i.text + ": an access outside of all allocations");
  if (a % static_cast<uint64_t>(n)) throw Fault(716, i.text + ": a misaligned access");
}

template <class T>
void load(Thread& t, const Instruction& i) {
  uint64_t a = address(t, at(i, 1));
  const Operand& to = at(i, 0);
  size_t n = to.kind == Operand::kVector ? to.list.size() : 1;
  check_global(t, i, a, static_cast<int64_t>(n * sizeof(T)));
  for (size_t k = 0; k < n; ++k) {
    T v;
    std::memcpy(&v, reinterpret_cast<const char*>(a) + k * sizeof(T), sizeof(T));
    const Operand& one = to.kind == Operand::kVector ? to.list[k] : to;
    // Signed ones are extended, as a register that is wider shows.
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
      t.top().regs[static_cast<size_t>(one.reg)] = static_cast<uint64_t>(static_cast<int64_t>(v));
    else
      set(t, one, v);
  }
}

template <class T>
void store(Thread& t, const Instruction& i) {
  uint64_t a = address(t, at(i, 0));
  const Operand& from = at(i, 1);
  size_t n = from.kind == Operand::kVector ? from.list.size() : 1;
  check_global(t, i, a, static_cast<int64_t>(n * sizeof(T)));
  for (size_t k = 0; k < n; ++k) {
    T v = get<T>(t, from.kind == Operand::kVector ? from.list[k] : from);
    std::memcpy(reinterpret_cast<char*>(a) + k * sizeof(T), &v, sizeof(T));
  }
}

// --- arithmetic ---

enum Rounding { kNearest, kZero, kDown, kUp };

class Rounded {
 public:
  explicit Rounded(int mode) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (mode != kNearest) std::fesetround(kModes[mode]);
    changed_ = mode != kNearest;
  }
  ~Rounded() {
    if (changed_) std::fesetround(FE_TONEAREST);
  }
  Rounded(const Rounded&) = delete;
  Rounded& operator=(const Rounded&) = delete;

 private:
  bool changed_;
};

template <class T>
T flushed(T v, bool ftz) {
  if (ftz && std::fpclassify(v) == FP_SUBNORMAL) return std::copysign(T(0), v);
  return v;
}

enum Op { kAdd, kSub, kMul, kDiv, kRem, kMin, kMax, kAnd, kOr, kXor, kShl, kShr, kCopysign };

template <class T, Op op>
T apply(T a, T b, bool nan) {
  if constexpr (std::is_floating_point_v<T>) {
    volatile T r = 0;
    if constexpr (op == kAdd) r = a + b;
    if constexpr (op == kSub) r = a - b;
    if constexpr (op == kMul) r = a * b;
    if constexpr (op == kDiv) r = a / b;
    if constexpr (op == kCopysign) r = std::copysign(b, a);  // PTX: the sign of the first
    if constexpr (op == kMin || op == kMax) {
      if (std::isnan(a) || std::isnan(b))
        return nan || (std::isnan(a) && std::isnan(b)) ? T(NAN) : std::isnan(a) ? b : a;
      if (a == b) return (op == kMin) == static_cast<bool>(std::signbit(a)) ? a : b;
      r = (op == kMin) == (a < b) ? a : b;
    }
    return r;
  } else {
    using U = std::make_unsigned_t<T>;
    // Numbers narrower than int would be promoted to it.
    if constexpr (op == kAdd) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    if constexpr (op == kSub) return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    if constexpr (op == kMul) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    if constexpr (op == kDiv || op == kRem) {
      if (b == 0) return op == kDiv ? static_cast<T>(~U(0)) : a;
      if (std::is_signed_v<T> && static_cast<U>(b) == static_cast<U>(~U(0)))
        return op == kDiv ? static_cast<T>(U(0) - static_cast<U>(a)) : T(0);
      return static_cast<T>(op == kDiv ? a / b : a % b);
    }
    if constexpr (op == kMin) return std::min(a, b);
    if constexpr (op == kMax) return std::max(a, b);
    if constexpr (op == kAnd) return static_cast<T>(a & b);
    if constexpr (op == kOr) return static_cast<T>(a | b);
    if constexpr (op == kXor) return static_cast<T>(a ^ b);
    return T(0);
  }
}

template <class T, Op op>
void binary(Thread& t, const Instruction& i) {
  Rounded mode(i.rounding);
  T a = get<T>(t, at(i, 1)), b = get<T>(t, at(i, 2));
  if constexpr (std::is_floating_point_v<T>) {
    T r = apply<T, op>(flushed(a, i.ftz), flushed(b, i.ftz), i.flag);
    set(t, at(i, 0), flushed(r, i.ftz));
  } else {
    set(t, at(i, 0), apply<T, op>(a, b, false));
  }
}

template <Op op>
void half_binary(Thread& t, const Instruction& i) {
  float a = to_float(get<Half>(t, at(i, 1))), b = to_float(get<Half>(t, at(i, 2)));
  set(t, at(i, 0), to_half(apply<float, op>(a, b, i.flag)));
}

// Two halves in one word.
template <Op op>
void half_pair(Thread& t, const Instruction& i) {
  uint32_t a = get<uint32_t>(t, at(i, 1)), b = get<uint32_t>(t, at(i, 2)), out = 0;
  for (int k = 0; k < 32; k += 16) {
    auto part = [&](uint32_t v) { return to_float(Half{static_cast<uint16_t>(v >> k)}); };
    out |= static_cast<uint32_t>(to_half(static_cast<double>(apply<float, op>(part(a), part(b), i.flag))).bits) << k;
  }
  set(t, at(i, 0), out);
}

template <class T, Op op>
void integer_pair(Thread& t, const Instruction& i) {
  uint32_t a = get<uint32_t>(t, at(i, 1)), b = get<uint32_t>(t, at(i, 2)), out = 0;
  for (int k = 0; k < 32; k += 16) {
    T value = apply<T, op>(static_cast<T>(a >> k), static_cast<T>(b >> k), i.flag);
    out |= static_cast<uint32_t>(static_cast<uint16_t>(value)) << k;
  }
  set(t, at(i, 0), out);
}

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
void fma(Thread& t, const Instruction& i) {
  Rounded mode(i.rounding);
  volatile T r = std::fma(get<T>(t, at(i, 1)), get<T>(t, at(i, 2)), get<T>(t, at(i, 3)));
  T v = r;
  if (i.compare) v = std::isnan(v) ? T(0) : std::clamp(v, T(0), T(1));  // .sat
  set(t, at(i, 0), flushed(v, i.ftz));
}
void half_fma(Thread& t, const Instruction& i) {
  double a = to_float(get<Half>(t, at(i, 1))), b = to_float(get<Half>(t, at(i, 2))),
         c = to_float(get<Half>(t, at(i, 3)));
  set(t, at(i, 0), to_half(a * b + c));
}

template <class T>
void negate(Thread& t, const Instruction& i) {
  if constexpr (std::is_integral_v<T>)
    set(t, at(i, 0), static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(get<T>(t, at(i, 1)))));
  else
    set(t, at(i, 0), -get<T>(t, at(i, 1)));
}
template <class T>
void absolute(Thread& t, const Instruction& i) {
  T v = get<T>(t, at(i, 1));
  if constexpr (std::is_integral_v<T>)
    set(t, at(i, 0), v < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(v)) : v);
  else
    set(t, at(i, 0), flushed(std::fabs(v), i.ftz));
}
void half_negate(Thread& t, const Instruction& i) {
  set(t, at(i, 0), Half{static_cast<uint16_t>(get<Half>(t, at(i, 1)).bits ^ 0x8000)});
}
void half_absolute(Thread& t, const Instruction& i) {
  set(t, at(i, 0), Half{static_cast<uint16_t>(get<Half>(t, at(i, 1)).bits & 0x7fff)});
}
template <class T>
void invert(Thread& t, const Instruction& i) {
  if constexpr (std::is_same_v<T, bool>)
    set(t, at(i, 0), !get<bool>(t, at(i, 1)));
  else
    set(t, at(i, 0), static_cast<T>(~get<T>(t, at(i, 1))));
}

// The approximate ones are taken as exact, rounded.
template <class T, double (*f)(double)>
void function(Thread& t, const Instruction& i) {
  T v = flushed(get<T>(t, at(i, 1)), i.ftz);
  set(t, at(i, 0), flushed(static_cast<T>(f(static_cast<double>(v))), i.ftz));
}
double reciprocal(double v) { return 1 / v; }
double root_reciprocal(double v) { return 1 / std::sqrt(v); }
// f64's own approximation keeps the upper half.
void rcp_f64_approx(Thread& t, const Instruction& i) {
  uint64_t b = std::bit_cast<uint64_t>(1 / get<double>(t, at(i, 1)));
  t.top().regs[static_cast<size_t>(at(i, 0).reg)] = b & 0xffffffff00000000ull;
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
  if constexpr (std::is_same_v<T, Half>)
    r = compared(i.compare, to_float(get<Half>(t, at(i, 1))), to_float(get<Half>(t, at(i, 2))));
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

// --- conversions ---

template <class T>
T integral(T v, const Instruction& i) {
  return i.rounding == kZero   ? std::trunc(v)
         : i.rounding == kDown ? std::floor(v)
         : i.rounding == kUp   ? std::ceil(v)
                               : std::nearbyint(v);
}

template <class To, class From>
void convert(Thread& t, const Instruction& i) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<To, Half>) {
    double v;
    if constexpr (std::is_same_v<From, Half>)
      v = to_float(get<Half>(t, at(i, 1)));
    else
      v = static_cast<double>(get<From>(t, at(i, 1)));
    if constexpr (std::is_same_v<To, Half>) {
      if (std::is_same_v<From, Half> && i.flag) v = integral(v, i);
      set(t, at(i, 0), to_half(v));
    } else if constexpr (std::is_floating_point_v<To>) {
      set(t, at(i, 0), static_cast<To>(v));
    } else {
      v = integral(v, i);
      double low = static_cast<double>(std::numeric_limits<To>::min()),
             high = static_cast<double>(std::numeric_limits<To>::max());
      set(t, at(i, 0),
          std::isnan(v) ? To(0)
          : v <= low    ? std::numeric_limits<To>::min()
          : v >= high   ? std::numeric_limits<To>::max()
                        : static_cast<To>(v));
    }
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    From v = flushed(get<From>(t, at(i, 1)), i.ftz);
    v = integral(v, i);
    auto low = static_cast<From>(std::numeric_limits<To>::min()),
         high = static_cast<From>(std::numeric_limits<To>::max());
    To r = std::isnan(v) ? To(0)
           : v <= low    ? std::numeric_limits<To>::min()
           : v >= high   ? std::numeric_limits<To>::max()
                         : static_cast<To>(v);
    set(t, at(i, 0), r);
  } else if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>) {
    From v = get<From>(t, at(i, 1));
    if constexpr (std::is_same_v<From, To>) {
      if (i.flag)  // to an integral value
        v = integral(v, i);
      if (i.compare) v = std::isnan(v) ? From(0) : std::clamp(v, From(0), From(1));
      set(t, at(i, 0), flushed(v, i.ftz));
    } else {
      Rounded mode(i.flag ? static_cast<int>(kNearest) : i.rounding);
      volatile To r = static_cast<To>(v);
      To out = r;
      set(t, at(i, 0), flushed(out, i.ftz));
    }
  } else if constexpr (std::is_floating_point_v<To>) {
    Rounded mode(i.rounding);
    volatile To r = static_cast<To>(get<From>(t, at(i, 1)));
    To out = r;
    set(t, at(i, 0), out);
  } else {
    From v = get<From>(t, at(i, 1));
    // Signed sources are extended to the register they go to.
    if constexpr (std::is_signed_v<From>)
      t.top().regs[static_cast<size_t>(at(i, 0).reg)] =
          static_cast<std::make_unsigned_t<To>>(static_cast<To>(static_cast<int64_t>(v)));
    else
      set(t, at(i, 0), static_cast<To>(v));
  }
}

// --- control ---

void branch(Thread& t, const Instruction& i) { t.top().pc = static_cast<size_t>(i.target); }
void trap(Thread&, const Instruction& i) { throw Fault(719, i.text); }
void nothing(Thread&, const Instruction&) {}
void barrier(Thread& t, const Instruction& i) { t.state = Thread::kBarrier, t.waiting = &i; }

void leave(Thread& t, const Instruction&) {
  if (t.frames.size() == 1) {
    t.state = Thread::kEnded;
    return;
  }
  Frame done = std::move(t.frames.back());
  t.frames.pop_back();
  // Results go where the caller wants them.
  const Operand& results = done.call->operands[0];
  size_t k = 0;
  for (const auto& [name, v] : done.function->slots) {
    if (!name.starts_with("func_retval")) continue;
    const Variable& to = t.top().function->slots.at(results.list[k++].name);
    std::memcpy(t.top().params.data() + to.offset, done.params.data() + v.offset, static_cast<size_t>(v.size));
  }
}

Frame frame_of(const Function* f) {
  Frame out;
  out.function = f;
  out.regs.resize(f->registers.size());
  out.params.resize(static_cast<size_t>(f->param_bytes) + 16);
  out.local.resize(static_cast<size_t>(f->local_bytes) + 16);
  return out;
}

void call(Thread& t, const Instruction& i) {
  const Function* f = t.grid->module->function(i.operands[1].name);
  if (!f) throw Fault(719, i.text + ": no such function");
  if (t.frames.size() > 64) throw Fault(719, i.text + ": calls too deep");
  Frame next = frame_of(f);
  next.call = &i;
  for (size_t k = 0; k < f->params.size(); ++k) {
    const Variable &to = f->params[k], &from = t.top().function->slots.at(i.operands[2].list[k].name);
    std::memcpy(next.params.data() + to.offset, t.top().params.data() + from.offset, static_cast<size_t>(to.size));
  }
  t.frames.push_back(std::move(next));
}

enum Shuffle { kDownwards, kUpwards, kButterfly, kIndexed };
void shuffle(Thread& t, const Instruction& i) {
  auto by = static_cast<int>(get<uint32_t>(t, at(i, 2)) & 31);
  auto clamp = get<uint32_t>(t, at(i, 3));
  int segment = static_cast<int>((clamp >> 8) & 31), most = static_cast<int>(clamp & 31);
  int low = t.lane & segment, high = low | (most & ~segment), from = t.lane;
  switch (i.compare) {
    case kDownwards:
      from = t.lane + by;
      t.in_range = from <= high;
      break;
    case kUpwards:
      from = t.lane - by;
      t.in_range = from >= high;
      break;
    case kButterfly:
      from = t.lane ^ by;
      t.in_range = from <= high;
      break;
    default:
      from = low | (by & ~segment);
      t.in_range = from <= high;
  }
  t.sent = get<uint32_t>(t, at(i, 1));
  t.from = t.in_range ? from : t.lane;
  t.state = Thread::kShuffle, t.waiting = &i;
}

// --- atomics ---

enum Atomic { kAtomicAdd, kAtomicMin, kAtomicMax, kAtomicAnd, kAtomicOr, kAtomicXor, kAtomicExch, kAtomicCas };
template <class T>
void atomic(Thread& t, const Instruction& i) {
  // `width` 0: red, without a destination.
  size_t first = i.width ? 1 : 0;
  uint64_t a = address(t, at(i, first));
  check_global(t, i, a, sizeof(T));
  T old, next{};
  std::memcpy(&old, reinterpret_cast<const char*>(a), sizeof(T));
  T v = get<T>(t, at(i, first + 1));
  if (i.compare == kAtomicAdd) next = apply<T, kAdd>(old, v, false);
  if (i.compare == kAtomicExch) next = v;
  if (i.compare == kAtomicMin) next = apply<T, kMin>(old, v, false);
  if (i.compare == kAtomicMax) next = apply<T, kMax>(old, v, false);
  if constexpr (std::is_integral_v<T>) {
    if (i.compare == kAtomicAnd) next = apply<T, kAnd>(old, v, false);
    if (i.compare == kAtomicOr) next = apply<T, kOr>(old, v, false);
    if (i.compare == kAtomicXor) next = apply<T, kXor>(old, v, false);
    if (i.compare == kAtomicCas) next = old == v ? get<T>(t, at(i, first + 2)) : old;
  }
  std::memcpy(reinterpret_cast<char*>(a), &next, sizeof(T));
  if (i.width) set(t, at(i, 0), old);
}

// --- the parser ---

std::vector<std::string> split(const std::string& s, char by) {
  std::vector<std::string> out;
  size_t from = 0;
  for (size_t k = 0; k <= s.size(); ++k)
    if (k == s.size() || s[k] == by) out.push_back(s.substr(from, k - from)), from = k + 1;
  return out;
}
std::string trimmed(const std::string& s) {
  size_t a = s.find_first_not_of(" \t\n\r"), b = s.find_last_not_of(" \t\n\r");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}
// By commas that stand in no brackets.
std::vector<std::string> arguments(const std::string& s) {
  std::vector<std::string> out;
  int depth = 0;
  size_t from = 0;
  for (size_t k = 0; k <= s.size(); ++k) {
    if (k < s.size() && (s[k] == '{' || s[k] == '[' || s[k] == '(')) ++depth;
    if (k < s.size() && (s[k] == '}' || s[k] == ']' || s[k] == ')')) --depth;
    if (k == s.size() || (s[k] == ',' && depth == 0)) {
      if (std::string one = trimmed(s.substr(from, k - from)); !one.empty()) out.push_back(one);
      from = k + 1;
    }
  }
  return out;
}

int bytes_of(const std::string& type) {
  size_t digit = type.find_first_of("0123456789");
  return digit == std::string::npos ? 1 : atoi(type.c_str() + digit) / 8;
}

struct Parser {
  explicit Parser(Module& module) : m(module) {}
  Module& m;
  Function* f = nullptr;
  std::set<std::string> named;  // registers without a percent sign
  int line = 1;

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error("ptx line " + std::to_string(line) + ": " + what);
  }

  // `.align 4 .b8 name[24]`, `.reg .b32 %r<9>`, `.b64 name`: size and name.
  Variable variable(const std::string& text) const {
    Variable v;
    std::vector<std::string> words;
    for (std::string& w : split(text, ' '))
      for (std::string& x : split(w, '\t'))
        if (!trimmed(x).empty()) words.push_back(trimmed(x));
    int64_t width = 1;
    for (size_t k = 0; k < words.size(); ++k) {
      if (words[k] == ".align") {
        v.align = atoi(words[++k].c_str());
      } else if (words[k][0] == '.') {
        if (words[k].find_first_of("0123456789") != std::string::npos) width = bytes_of(words[k]);
      } else {
        v.name = words[k];
      }
    }
    v.align = std::max(v.align, width);
    int64_t n = 1;
    if (size_t b = v.name.find('['); b != std::string::npos) {
      n = atoll(v.name.c_str() + b + 1);
      v.name = v.name.substr(0, b);
    }
    v.size = width * n;
    return v;
  }
  static int64_t place(int64_t& end, Variable& v) {
    v.offset = (end + v.align - 1) / v.align * v.align;
    end = v.offset + v.size;
    return v.offset;
  }

  int reg(const std::string& name) {
    auto [at, fresh] = f->registers.emplace(name, static_cast<int>(f->registers.size()));
    return at->second;
  }

  Operand operand(const std::string& s) {
    Operand o;
    if (s[0] == '{') {
      o.kind = Operand::kVector;
      for (const std::string& x : arguments(s.substr(1, s.size() - 2))) o.list.push_back(operand(x));
      return o;
    }
    if (s[0] == '[') {
      std::string inner = trimmed(s.substr(1, s.size() - 2));
      size_t plus = inner.find('+');
      std::string base = trimmed(inner.substr(0, plus));
      int64_t offset = plus == std::string::npos ? 0 : atoll(inner.c_str() + plus + 1);
      o = base[0] == '%' ? operand(base) : symbol(base);
      o.kind = Operand::kAddress;
      o.value += static_cast<uint64_t>(offset);
      return o;
    }
    if (s[0] == '%') {
      static const std::map<std::string, int> kSpecial = {{"%tid", 0}, {"%ctaid", 1}, {"%ntid", 2}, {"%nctaid", 3}};
      if (s == "%laneid") {
        o.kind = Operand::kSpecial, o.value = 16;
        return o;
      }
      if (size_t dot = s.find('.'); dot != std::string::npos) {
        auto at = kSpecial.find(s.substr(0, dot));
        if (at == kSpecial.end()) refuse("unknown register " + s);
        o.kind = Operand::kSpecial;
        o.value = static_cast<uint64_t>(at->second) << 2 | static_cast<uint64_t>(s[dot + 1] - 'x');
        return o;
      }
      o.kind = Operand::kRegister;
      size_t bar = s.find('|');
      o.reg = reg(s.substr(0, bar));
      if (bar != std::string::npos) o.second = reg(s.substr(bar + 1));
      return o;
    }
    if (s == "_") return o;
    if (named.contains(s)) {
      o.kind = Operand::kRegister, o.reg = reg(s);
      return o;
    }
    if (isdigit(static_cast<unsigned char>(s[0])) || s[0] == '-') {
      o.kind = Operand::kImmediate;
      if (s.starts_with("0f") || s.starts_with("0F"))
        o.value = strtoull(s.c_str() + 2, nullptr, 16);
      else if (s.starts_with("0d") || s.starts_with("0D"))
        o.value = strtoull(s.c_str() + 2, nullptr, 16);
      else
        o.value = s[0] == '-' ? static_cast<uint64_t>(strtoll(s.c_str(), nullptr, 0)) : strtoull(s.c_str(), nullptr, 0);
      return o;
    }
    return symbol(s);
  }

  // Something in memory, or a name.
  Operand symbol(const std::string& name) {
    Operand o;
    o.name = name;
    o.kind = Operand::kAddress;
    if (f && f->slots.contains(name)) {
      o.frame = 0, o.value = static_cast<uint64_t>(f->slots[name].offset);
    } else if (f && f->locals.contains(name)) {
      o.frame = 1, o.value = static_cast<uint64_t>(f->locals[name].offset);
    } else if (f && f->shared.contains(name)) {
      o.frame = 2, o.value = static_cast<uint64_t>(f->shared[name].offset);
    } else if (m.globals.contains(name)) {
      o.value = reinterpret_cast<uint64_t>(m.globals[name].data());
    } else {
      o.kind = Operand::kName;
    }
    return o;
  }

  template <Op op>
  Execute binary_of(const std::string& type) {
    if (type == "f32") return binary<float, op>;
    if (type == "f64") return binary<double, op>;
    if (type == "f16") return half_binary<op>;
    if (type == "f16x2") return half_pair<op>;
    if constexpr (op == kAdd || op == kMin || op == kMax) {
      if (type == "s16x2") return integer_pair<int16_t, op>;
      if (type == "u16x2") return integer_pair<uint16_t, op>;
    }
    if constexpr (op != kCopysign) {
      if (type == "s16") return binary<int16_t, op>;
      if (type == "u16" || type == "b16") return binary<uint16_t, op>;
      if (type == "s32") return binary<int32_t, op>;
      if (type == "u32" || type == "b32") return binary<uint32_t, op>;
      if (type == "s64") return binary<int64_t, op>;
      if (type == "u64" || type == "b64") return binary<uint64_t, op>;
      if (type == "pred") return binary<uint8_t, op>;
    }
    return nullptr;
  }

#define INTEGER_TYPES(function)                          \
  (type == "s16"                    ? function<int16_t>  \
   : type == "u16" || type == "b16" ? function<uint16_t> \
   : type == "s32"                  ? function<int32_t>  \
   : type == "u32" || type == "b32" ? function<uint32_t> \
   : type == "s64"                  ? function<int64_t>  \
   : type == "u64" || type == "b64" ? function<uint64_t> \
                                    : static_cast<Execute>(nullptr))
#define MEMORY_TYPES(function)                           \
  (type == "s8"                     ? function<int8_t>   \
   : type == "u8" || type == "b8"   ? function<uint8_t>  \
   : type == "s16"                  ? function<int16_t>  \
   : type == "u16" || type == "b16" ? function<uint16_t> \
   : type == "s32"                  ? function<int32_t>  \
   : type == "u32" || type == "b32" ? function<uint32_t> \
   : type == "s64"                  ? function<int64_t>  \
   : type == "u64" || type == "b64" ? function<uint64_t> \
   : type == "f32"                  ? function<float>    \
   : type == "f64"                  ? function<double>   \
                                    : static_cast<Execute>(nullptr))

  template <class To>
  Execute conversion_to(const std::string& from) {
    if (from == "s8") return convert<To, int8_t>;
    if (from == "u8") return convert<To, uint8_t>;
    if (from == "s16") return convert<To, int16_t>;
    if (from == "u16") return convert<To, uint16_t>;
    if (from == "s32") return convert<To, int32_t>;
    if (from == "u32") return convert<To, uint32_t>;
    if (from == "s64") return convert<To, int64_t>;
    if (from == "u64") return convert<To, uint64_t>;
    if (from == "f16") return convert<To, Half>;
    if (from == "f32") return convert<To, float>;
    if (from == "f64") return convert<To, double>;
    return nullptr;
  }
  Execute conversion(const std::string& to, const std::string& from) {
    if (to == "s8") return conversion_to<int8_t>(from);
    if (to == "u8") return conversion_to<uint8_t>(from);
    if (to == "s16") return conversion_to<int16_t>(from);
    if (to == "u16") return conversion_to<uint16_t>(from);
    if (to == "s32") return conversion_to<int32_t>(from);
    if (to == "u32") return conversion_to<uint32_t>(from);
    if (to == "s64") return conversion_to<int64_t>(from);
    if (to == "u64") return conversion_to<uint64_t>(from);
    if (to == "f16") return conversion_to<Half>(from);
    if (to == "f32") return conversion_to<float>(from);
    if (to == "f64") return conversion_to<double>(from);
    return nullptr;
  }

  Execute choose(Instruction& i, const std::vector<std::string>& part) {
    const std::string &op = part[0], &type = part.back();
    auto has = [&](const char* s) { return std::find(part.begin(), part.end(), s) != part.end(); };
    i.ftz = has("ftz");
    i.rounding = has("rz") || has("rzi")   ? kZero
                 : has("rm") || has("rmi") ? kDown
                 : has("rp") || has("rpi") ? kUp
                                           : kNearest;
    i.width = bytes_of(type);
    if (op == "mov") return type == "pred" ? move_predicate : move;
    if (op == "ld" || op == "ldu") {
      i.flag = has("global");
      return MEMORY_TYPES(load);
    }
    if (op == "st") {
      i.flag = has("global");
      return MEMORY_TYPES(store);
    }
    if (op == "cvta") return move;
    if (op == "add" || op == "addc") {
      if (has("cc") || op == "addc") {
        i.flag = has("cc"), i.compare = op == "addc";
        return INTEGER_TYPES(add_carry);
      }
      return binary_of<kAdd>(type);
    }
    if (op == "sub" || op == "subc") {
      if (has("cc") || op == "subc") {
        i.flag = has("cc"), i.compare = op == "subc";
        return INTEGER_TYPES(sub_borrow);
      }
      return binary_of<kSub>(type);
    }
    if (op == "mul") {
      if (has("hi")) return INTEGER_TYPES(mul_high);
      if (has("wide")) return INTEGER_TYPES(mul_wide);
      return binary_of<kMul>(type);
    }
    if ((op == "mad" || op == "fma") && (type == "f32" || type == "f64")) {
      i.compare = has("sat");
      return type == "f32" ? fma<float> : fma<double>;
    }
    if (op == "fma" && type == "f16") return half_fma;
    if (op == "mad" && has("wide")) return INTEGER_TYPES(mad_wide);
    if (op == "mad" || op == "madc") {
      i.flag = has("cc"), i.compare = op == "madc", i.width = has("hi");
      return INTEGER_TYPES(mad);
    }
    if (op == "div") return binary_of<kDiv>(type);
    if (op == "rem") return binary_of<kRem>(type);
    if (op == "min" || op == "max") {
      i.flag = has("NaN");
      return op == "min" ? binary_of<kMin>(type) : binary_of<kMax>(type);
    }
    if (op == "and") return binary_of<kAnd>(type);
    if (op == "or") return binary_of<kOr>(type);
    if (op == "xor") return binary_of<kXor>(type);
    if (op == "not") return type == "pred" ? invert<bool> : INTEGER_TYPES(invert);
    if (op == "shl") return INTEGER_TYPES(shift_left);
    if (op == "shr") return INTEGER_TYPES(shift_right);
    if (op == "copysign") return binary_of<kCopysign>(type);
    if (op == "neg")
      return type == "f32"   ? negate<float>
             : type == "f64" ? negate<double>
             : type == "f16" ? half_negate
                             : INTEGER_TYPES(negate);
    if (op == "abs")
      return type == "f32"   ? absolute<float>
             : type == "f64" ? absolute<double>
             : type == "f16" ? half_absolute
                             : INTEGER_TYPES(absolute);
    if (op == "sqrt") return type == "f32" ? function<float, std::sqrt> : function<double, std::sqrt>;
    if (op == "rsqrt") return type == "f32" ? function<float, root_reciprocal> : function<double, root_reciprocal>;
    if (op == "rcp")
      return type == "f32"   ? function<float, reciprocal>
             : has("approx") ? rcp_f64_approx
                             : function<double, reciprocal>;
    if (op == "ex2") return function<float, std::exp2>;
    if (op == "lg2") return function<float, std::log2>;
    if (op == "sin") return function<float, std::sin>;
    if (op == "cos") return function<float, std::cos>;
    if (op == "tanh") return function<float, std::tanh>;
    if (op == "popc") return type == "b32" ? popc<uint32_t> : popc<uint64_t>;
    if (op == "clz") return type == "b32" ? clz<uint32_t> : clz<uint64_t>;
    if (op == "brev") return type == "b32" ? reversed<uint32_t> : reversed<uint64_t>;
    if (op == "bfe") return INTEGER_TYPES(field);
    if (op == "bfi") return type == "b32" ? insert<uint32_t> : insert<uint64_t>;
    if (op == "prmt") return permute;
    if (op == "shf") {
      i.flag = has("r"), i.compare = has("clamp");
      return funnel;
    }
    if (op == "selp") return select;
    if (op == "setp") {
      static const std::map<std::string, int> kHow = {
          {"eq", kEq},   {"ne", kNe},   {"lt", kLt},   {"le", kLe},   {"gt", kGt},   {"ge", kGe},
          {"equ", kEqu}, {"neu", kNeu}, {"ltu", kLtu}, {"leu", kLeu}, {"gtu", kGtu}, {"geu", kGeu},
          {"num", kNum}, {"nan", kNan}, {"lo", kLt},   {"ls", kLe},   {"hi", kGt},   {"hs", kGe}};
      i.compare = kHow.at(part[1]);
      i.width = has("and") ? 1 : has("or") ? 2 : has("xor") ? 3 : 0;
      if (type == "f32") return setp<float>;
      if (type == "f64") return setp<double>;
      if (type == "f16") return setp<Half>;
      return INTEGER_TYPES(setp);
    }
    if (op == "cvt") {
      const std::string& to = part[part.size() - 2];
      i.flag = has("rni") || has("rzi") || has("rmi") || has("rpi");
      i.compare = has("sat");
      return conversion(to, type);
    }
    if (op == "bra") return branch;
    if (op == "ret" || op == "exit") return leave;
    if (op == "trap") return trap;
    if (op == "call") return call;
    if (op == "bar" || op == "barrier") return has("warp") ? nothing : barrier;
    if (op == "membar" || op == "fence") return nothing;
    if (op == "shfl") {
      i.compare = has("down") ? kDownwards : has("up") ? kUpwards : has("bfly") ? kButterfly : kIndexed;
      return shuffle;
    }
    if (op == "atom" || op == "red") {
      static const std::map<std::string, int> kHow = {{"add", kAtomicAdd},   {"min", kAtomicMin}, {"max", kAtomicMax},
                                                      {"and", kAtomicAnd},   {"or", kAtomicOr},   {"xor", kAtomicXor},
                                                      {"exch", kAtomicExch}, {"cas", kAtomicCas}};
      i.compare = -1;
      for (const std::string& p : part)
        if (auto how = kHow.find(p); how != kHow.end()) i.compare = how->second;
      if (i.compare < 0) return nullptr;
      i.width = op == "atom", i.flag = has("global");
      if (type == "f32") return atomic<float>;
      if (type == "f64") return atomic<double>;
      return INTEGER_TYPES(atomic);
    }
    return nullptr;
  }

  void instruction(std::string s) {
    Instruction i;
    i.text = s, i.line = line;
    std::replace(i.text.begin(), i.text.end(), '\t', ' ');
    if (s[0] == '@') {
      size_t end = s.find_first_of(" \t");
      i.guard_not = s[1] == '!';
      i.guard = reg(s.substr(i.guard_not ? 2 : 1, end - (i.guard_not ? 2 : 1)));
      s = trimmed(s.substr(end));
    }
    size_t end = s.find_first_of(" \t\n");
    std::string name = s.substr(0, end), rest = end == std::string::npos ? "" : trimmed(s.substr(end));
    std::vector<std::string> part = split(name, '.');
    i.run = choose(i, part);
    if (!i.run) refuse("unknown instruction '" + s + "'");
    if (i.run == branch) {
      Operand o;
      o.kind = Operand::kName, o.name = rest;
      i.operands.push_back(o);
    } else if (i.run == call) {
      // (results), name, (arguments): either list may be missing.
      std::vector<std::string> list = arguments(rest);
      Operand results, callee, args;
      results.kind = args.kind = Operand::kVector;
      auto names = [](const std::string& t) {
        std::vector<Operand> out;
        for (const std::string& x : arguments(t.substr(1, t.size() - 2))) {
          Operand o;
          o.kind = Operand::kName, o.name = x;
          out.push_back(o);
        }
        return out;
      };
      size_t k = 0;
      if (list[k][0] == '(') results.list = names(list[k++]);
      callee.kind = Operand::kName, callee.name = list[k++];
      if (k < list.size()) args.list = names(list[k]);
      i.operands = {results, callee, args};
    } else {
      for (const std::string& a : arguments(rest)) i.operands.push_back(operand(a));
    }
    f->code.push_back(std::move(i));
  }

  // A statement without its semicolon.
  void statement(const std::string& s) {
    if (s.starts_with(".reg")) {
      // Registers get their places when they are used; those of libdevice's own assembly have names like other things.
      for (const std::string& list : split(s.substr(4), ','))
        if (std::string declared = variable(list).name; declared[0] != '%') named.insert(declared);
      return;
    }
    if (s.starts_with(".local")) {
      Variable v = variable(s.substr(6));
      place(f->local_bytes, v);
      f->locals[v.name] = v;
      return;
    }
    if (s.starts_with(".param")) {
      Variable v = variable(s.substr(6));
      if (!f->slots.contains(v.name)) {
        place(f->param_bytes, v);
        f->slots[v.name] = v;
      }
      return;
    }
    if (s.starts_with(".shared")) {
      Variable v = variable(s.substr(7));
      place(f->shared_bytes, v);
      f->shared[v.name] = v;
      return;
    }
    if (s.starts_with(".pragma") || s.starts_with(".loc")) return;
    if (s[0] == '.') refuse("unknown directive '" + s + "'");
    instruction(s);
  }

  void global(const std::string& s) {
    size_t equals = s.find('=');
    std::string head = s.substr(0, equals);
    bool is_shared = head.find(".shared") != std::string::npos;
    for (const char* word : {".visible", ".extern", ".weak", ".global", ".const", ".shared"})
      if (size_t at = head.find(word); at != std::string::npos) head.erase(at, std::string(word).size());
    Variable v = variable(head);
    if (is_shared) {
      // Several functions may use it: each has room for it.
      m.shared.push_back(v);
      return;
    }
    std::vector<char> bytes(static_cast<size_t>(v.size));
    if (equals != std::string::npos) {
      std::string list = trimmed(s.substr(equals + 1));
      int64_t width = 1;
      for (const std::string& w : split(head, ' '))
        if (w.size() > 1 && w[0] == '.' && w != ".align" && w.find_first_of("0123456789") != std::string::npos)
          width = bytes_of(trimmed(w));
      if (list[0] == '{') list = list.substr(1, list.size() - 2);
      size_t k = 0;
      for (const std::string& x : arguments(list)) {
        uint64_t n = operand(x).value;
        if (k + static_cast<size_t>(width) <= bytes.size())
          std::memcpy(bytes.data() + k, &n, static_cast<size_t>(width));
        k += static_cast<size_t>(width);
      }
    }
    m.globals[v.name] = std::move(bytes);
  }

  // `.visible .entry name(params) .maxntid 128`, `.func (.param .b64 func_retval0) name(params)`.
  void header(const std::string& s) {
    bool entry = s.find(".entry") != std::string::npos;
    size_t at = s.find(entry ? ".entry" : ".func") + (entry ? 6 : 5);
    std::string rest = trimmed(s.substr(at));
    std::string results;
    if (rest[0] == '(') {
      size_t close = rest.find(')');
      results = rest.substr(1, close - 1);
      rest = trimmed(rest.substr(close + 1));
    }
    size_t open = rest.find('(');
    std::string name = trimmed(rest.substr(0, open));
    auto& slot = m.functions[name];
    slot = std::make_unique<Function>();
    f = slot.get();
    f->name = name, f->entry = entry;
    for (Variable v : m.shared) {
      place(f->shared_bytes, v);
      f->shared[v.name] = v;
    }
    for (const std::string& r : arguments(results)) {
      Variable v = variable(r.substr(6));
      place(f->param_bytes, v);
      f->slots[v.name] = v;
    }
    size_t close = rest.find(')', open == std::string::npos ? 0 : open);
    if (open != std::string::npos) {
      // `.ptr .global .align 16` belongs to what it points to.
      for (std::string p : arguments(rest.substr(open + 1, close - open - 1))) {
        p = p.substr(6);
        if (size_t ptr = p.find(".ptr"); ptr != std::string::npos) {
          size_t last = p.find_last_of(" \t");
          p = p.substr(0, ptr) + p.substr(last);
        }
        Variable v = variable(p);
        place(f->param_bytes, v);
        f->slots[v.name] = v;
        f->params.push_back(v);
      }
    }
    if (size_t most = rest.find(".maxntid"); most != std::string::npos) f->most_threads = atoi(rest.c_str() + most + 8);
  }

  void finish() {
    for (Instruction& i : f->code) {
      if (i.run != branch) continue;
      auto at = f->labels.find(i.operands[0].name);
      if (at == f->labels.end()) refuse("no label " + i.operands[0].name);
      i.target = at->second;
    }
    f = nullptr;
  }

  void parse(const std::string& text) {
    std::string now;
    int depth = 0, vector = 0;
    bool in_global_list = false;
    for (size_t k = 0; k < text.size(); ++k) {
      char c = text[k];
      if (c == '/' && k + 1 < text.size() && text[k + 1] == '/') {
        while (k < text.size() && text[k] != '\n') ++k;
        ++line;
        now += '\n';
        continue;
      }
      if (c == '\n') ++line;
      std::string s = c == '{' || c == '}' || c == ';' || c == ':' || c == '\n' ? trimmed(now) : std::string();
      if (depth == 0) {
        if (c == '\n' && (s.starts_with(".version") || s.starts_with(".target") || s.starts_with(".address_size"))) {
          if (s.starts_with(".target")) m.target = trimmed(s.substr(7));
          now.clear();
          continue;
        }
        if (c == '{' && now.find('=') == std::string::npos) {
          header(s);
          now.clear(), depth = 1;
          continue;
        }
        if (c == '{') in_global_list = true;
        if (c == '}') in_global_list = false;
        if (c == ';' && !in_global_list) {
          // A declaration of a function is told again with its body.
          if (s.find(".func") == std::string::npos && !s.empty()) global(s);
          now.clear();
          continue;
        }
        now += c;
        continue;
      }
      if (c == '{' && s.empty()) {
        ++depth;
        now.clear();
        continue;
      }
      if (c == '{') ++vector;
      if (c == '}' && vector) {
        --vector;
        now += c;
        continue;
      }
      if (c == '}') {
        if (--depth == 0) finish();
        now.clear();
        continue;
      }
      if (c == ';') {
        if (!s.empty()) statement(s);
        now.clear();
        continue;
      }
      if (c == ':' && !s.empty() && s.find_first_of(" \t") == std::string::npos) {
        f->labels[s] = static_cast<int>(f->code.size());
        now.clear();
        continue;
      }
      now += c;
    }
    if (depth) refuse("the text ends inside a function");
  }
};

// --- the grid ---

void run_until_meeting(Thread& t, int64_t& budget) {
  while (t.state == Thread::kReady) {
    Frame& top = t.top();
    if (top.pc >= top.function->code.size()) {
      leave(t, {});
      continue;
    }
    const Instruction& i = top.function->code[top.pc++];
    if (i.guard >= 0 && (top.regs[static_cast<size_t>(i.guard)] != 0) == i.guard_not) continue;
    i.run(t, i);
    if (--budget < 0) throw Fault(702, "a kernel that does not end: " + i.text);
  }
}

void run_block(const Grid& g, std::vector<Thread>& threads, std::vector<char>& shared) {
  int64_t budget = int64_t{1} << 34;
  // What nobody wrote is told apart from zeros.
  std::fill(shared.begin(), shared.end(), char(0xcd));
  while (true) {
    for (size_t first = 0; first < threads.size(); first += 32) {
      size_t last = std::min(first + 32, threads.size());
      while (true) {
        for (size_t k = first; k < last; ++k) run_until_meeting(threads[k], budget);
        bool any = false, all = true;
        const Instruction* where = nullptr;
        for (size_t k = first; k < last; ++k) {
          bool here = threads[k].state == Thread::kShuffle;
          any |= here, all &= here;
          if (!here) continue;
          if (where && where != threads[k].waiting) throw Fault(719, "lanes of a warp shuffle in two places");
          where = threads[k].waiting;
        }
        if (!any) break;
        if (!all) throw Fault(719, where->text + ": not all lanes of the warp are there");
        for (size_t k = first; k < last; ++k) {
          Thread& t = threads[k];
          uint32_t v = threads[first + static_cast<size_t>(t.from)].sent;
          t.top().regs[static_cast<size_t>(at(*t.waiting, 0).reg)] = v;
          if (at(*t.waiting, 0).second >= 0) t.top().regs[static_cast<size_t>(at(*t.waiting, 0).second)] = t.in_range;
        }
        for (size_t k = first; k < last; ++k) threads[k].state = Thread::kReady;
      }
    }
    size_t waiting = 0, ended = 0;
    const Instruction* where = nullptr;
    for (Thread& t : threads) {
      ended += t.state == Thread::kEnded;
      if (t.state != Thread::kBarrier) continue;
      ++waiting;
      if (where && where != t.waiting) throw Fault(719, "threads of a block wait at two barriers");
      where = t.waiting;
    }
    if (!waiting) return;
    if (ended) throw Fault(719, where->text + ": not all threads of the block are there");
    for (Thread& t : threads) t.state = Thread::kReady;
  }
  (void)g;
}

}  // namespace

Module::Module(const std::string& text) { Parser(*this).parse(text); }

bool Module::has_global(uint64_t at, int64_t bytes) const {
  for (const auto& [name, data] : globals) {
    auto start = reinterpret_cast<uint64_t>(data.data());
    if (at >= start && at + static_cast<uint64_t>(bytes) <= start + data.size()) return true;
  }
  return false;
}

const Function* Module::function(const std::string& name) const {
  auto at = functions.find(name);
  return at == functions.end() ? nullptr : at->second.get();
}

void run(const Grid& g) {
  uint64_t n = uint64_t{g.threads[0]} * g.threads[1] * g.threads[2];
  if (n == 0 || n > 1024) throw Fault(1, "a block of " + std::to_string(n) + " threads");
  if (g.function->most_threads && n > static_cast<uint64_t>(g.function->most_threads))
    throw Fault(1, "more threads than .maxntid says");
  if (g.function->shared_bytes > 48 << 10) throw Fault(1, "more shared memory than 48 KiB");
  std::vector<char> shared(static_cast<size_t>(g.function->shared_bytes) + 64);
  std::vector<Thread> threads(static_cast<size_t>(n));
  for (uint32_t z = 0; z < g.blocks[2]; ++z)
    for (uint32_t y = 0; y < g.blocks[1]; ++y)
      for (uint32_t x = 0; x < g.blocks[0]; ++x) {
        for (size_t k = 0; k < threads.size(); ++k) {
          Thread& t = threads[k];
          t.grid = &g, t.shared = shared.data(), t.state = Thread::kReady, t.lane = static_cast<int>(k % 32);
          t.ctaid[0] = x, t.ctaid[1] = y, t.ctaid[2] = z;
          t.tid[0] = static_cast<uint32_t>(k % g.threads[0]);
          t.tid[1] = static_cast<uint32_t>(k / g.threads[0] % g.threads[1]);
          t.tid[2] = static_cast<uint32_t>(k / g.threads[0] / g.threads[1]);
          if (t.frames.empty())
            t.frames.push_back(frame_of(g.function));
          else
            t.frames.resize(1), t.frames[0].pc = 0;
          std::copy(g.params.begin(), g.params.end(), t.frames[0].params.begin());
        }
        run_block(g, threads, shared);
      }
}

}  // namespace fake
