#include "tests/fake_cuda/ptx_thread.h"

namespace fake {
namespace {

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

// Of 16 bits: in f32, which holds sums, products and choices of them exactly or is rounded once more without harm.
template <class N, Op op>
N narrow_apply(N a, N b, bool nan) {
  N out;
  narrowed(static_cast<double>(apply<float, op>(to_float(a), to_float(b), nan)), &out);
  return out;
}
template <class N, Op op>
void narrow_binary(Thread& t, const Instruction& i) {
  set(t, at(i, 0), narrow_apply<N, op>(get<N>(t, at(i, 1)), get<N>(t, at(i, 2)), i.flag));
}

// Two of them in one word.
template <class N, Op op>
void narrow_pair(Thread& t, const Instruction& i) {
  uint32_t a = get<uint32_t>(t, at(i, 1)), b = get<uint32_t>(t, at(i, 2)), out = 0;
  for (int k = 0; k < 32; k += 16) {
    auto part = [&](uint32_t v) { return N{static_cast<uint16_t>(v >> k)}; };
    out |= static_cast<uint32_t>(narrow_apply<N, op>(part(a), part(b), i.flag).bits) << k;
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
void fma(Thread& t, const Instruction& i) {
  Rounded mode(i.rounding);
  volatile T r = std::fma(get<T>(t, at(i, 1)), get<T>(t, at(i, 2)), get<T>(t, at(i, 3)));
  T v = r;
  if (i.compare) v = std::isnan(v) ? T(0) : std::clamp(v, T(0), T(1));  // .sat
  set(t, at(i, 0), flushed(v, i.ftz));
}
template <class N>
N narrow_fma_of(N x, N y, N z) {
  double a = to_float(x), b = to_float(y), c = to_float(z);
  // The product is exact in f64; a sum that is not is rounded to odd, so that it is rounded once.
  double product = a * b, sum = product + c;
  if (std::isfinite(sum)) {
    const double part = sum - product, error = (product - (sum - part)) + (c - part);
    auto pattern = std::bit_cast<uint64_t>(sum);
    if (error != 0 && !(pattern & 1)) pattern += (error > 0) == (sum > 0) ? 1 : uint64_t(-1);
    sum = std::bit_cast<double>(pattern);
  }
  N out;
  if constexpr (std::is_same_v<N, Half>) {
    narrowed(sum, &out);
  } else {
    // f32 to odd, too.
    auto f = static_cast<float>(sum);
    auto word = std::bit_cast<uint32_t>(f);
    if (std::isfinite(f) && static_cast<double>(f) != sum && !(word & 1))
      word += (static_cast<double>(f) < sum) == (sum > 0) ? 1 : uint32_t(-1);
    out = to_brain(std::bit_cast<float>(word));
  }
  return out;
}
template <class N>
void narrow_fma(Thread& t, const Instruction& i) {
  set(t, at(i, 0), narrow_fma_of(get<N>(t, at(i, 1)), get<N>(t, at(i, 2)), get<N>(t, at(i, 3))));
}
template <class N>
void narrow_fma_pair(Thread& t, const Instruction& i) {
  uint32_t a = get<uint32_t>(t, at(i, 1)), b = get<uint32_t>(t, at(i, 2)), c = get<uint32_t>(t, at(i, 3)), out = 0;
  for (int k = 0; k < 32; k += 16) {
    auto part = [&](uint32_t v) { return N{static_cast<uint16_t>(v >> k)}; };
    out |= static_cast<uint32_t>(narrow_fma_of(part(a), part(b), part(c)).bits) << k;
  }
  set(t, at(i, 0), out);
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
// Signs of the one or the two numbers of 16 bits that a register holds (`width` bytes of it).
void narrow_negate(Thread& t, const Instruction& i) {
  set(t, at(i, 0), get<uint32_t>(t, at(i, 1)) ^ (i.width == 4 ? 0x80008000u : 0x8000u));
}
void narrow_absolute(Thread& t, const Instruction& i) {
  set(t, at(i, 0), get<uint32_t>(t, at(i, 1)) & (i.width == 4 ? 0x7fff7fffu : 0x7fffu));
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

template <Op op>
Execute binary_of(const std::string& type) {
  if (type == "f32") return binary<float, op>;
  if (type == "f64") return binary<double, op>;
  if (type == "f16") return narrow_binary<Half, op>;
  if (type == "f16x2") return narrow_pair<Half, op>;
  if (type == "bf16") return narrow_binary<Brain, op>;
  if (type == "bf16x2") return narrow_pair<Brain, op>;
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

}  // namespace

Execute arithmetic_of(Instruction& i, const Words& words) {
  const std::string &op = words[0], &type = words.back();
  const bool narrow = type == "f16" || type == "bf16" || type == "f16x2" || type == "bf16x2";
  if (op == "add" && !has(words, "cc")) return binary_of<kAdd>(type);
  if (op == "sub" && !has(words, "cc")) return binary_of<kSub>(type);
  if (op == "mul" && !has(words, "hi") && !has(words, "wide")) return binary_of<kMul>(type);
  if ((op == "mad" || op == "fma") && (type == "f32" || type == "f64")) {
    i.compare = has(words, "sat");
    return type == "f32" ? fma<float> : fma<double>;
  }
  if (op == "fma")
    return type == "f16"      ? narrow_fma<Half>
           : type == "bf16"   ? narrow_fma<Brain>
           : type == "f16x2"  ? narrow_fma_pair<Half>
           : type == "bf16x2" ? narrow_fma_pair<Brain>
                              : static_cast<Execute>(nullptr);
  if (op == "div") return binary_of<kDiv>(type);
  if (op == "rem") return binary_of<kRem>(type);
  if (op == "min" || op == "max") {
    i.flag = has(words, "NaN");
    return op == "min" ? binary_of<kMin>(type) : binary_of<kMax>(type);
  }
  if (op == "and") return binary_of<kAnd>(type);
  if (op == "or") return binary_of<kOr>(type);
  if (op == "xor") return binary_of<kXor>(type);
  if (op == "not") return type == "pred" ? invert<bool> : INTEGER_TYPES(invert);
  if (op == "copysign") return binary_of<kCopysign>(type);
  if (op == "neg" || op == "abs") {
    i.width = type.ends_with("x2") ? 4 : 2;
    if (narrow) return op == "neg" ? narrow_negate : narrow_absolute;
  }
  if (op == "neg") return type == "f32" ? negate<float> : type == "f64" ? negate<double> : INTEGER_TYPES(negate);
  if (op == "abs") return type == "f32" ? absolute<float> : type == "f64" ? absolute<double> : INTEGER_TYPES(absolute);
  if (op == "sqrt") return type == "f32" ? function<float, std::sqrt> : function<double, std::sqrt>;
  if (op == "rsqrt") return type == "f32" ? function<float, root_reciprocal> : function<double, root_reciprocal>;
  if (op == "rcp")
    return type == "f32"          ? function<float, reciprocal>
           : has(words, "approx") ? rcp_f64_approx
                                  : function<double, reciprocal>;
  if (type == "f32") {
    if (op == "ex2") return function<float, std::exp2>;
    if (op == "lg2") return function<float, std::log2>;
    if (op == "sin") return function<float, std::sin>;
    if (op == "cos") return function<float, std::cos>;
    if (op == "tanh") return function<float, std::tanh>;
  }
  return nullptr;
}

}  // namespace fake
