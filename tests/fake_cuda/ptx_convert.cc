#include "tests/fake_cuda/number.h"
#include "tests/fake_cuda/ptx_thread.h"

namespace fake {
namespace {

// --- conversions ---

enum { kSaturated = 1, kRelu = 2 };

template <class T>
T integral(T v, const Instruction& i) {
  return i.rounding == kZero   ? std::trunc(v)
         : i.rounding == kDown ? std::floor(v)
         : i.rounding == kUp   ? std::ceil(v)
                               : std::nearbyint(v);
}

// A number of 16 bits; `relu` (bit 1 of width's upper half) and rounding towards zero as the name says.
template <class N>
N narrow_of(double v, const Instruction& i) {
  if (i.compare & kRelu) v = std::isnan(v) ? v : std::max(v, 0.0);
  if (i.compare & kSaturated) v = std::isnan(v) ? 0 : std::clamp(v, 0.0, 1.0);
  N out;
  narrowed(v, &out);
  // The neighbour towards zero, where rounding went away from it.
  if (i.rounding == kZero && !i.flag && std::fabs(static_cast<double>(to_float(out))) > std::fabs(v)) --out.bits;
  return out;
}
// Two f32 to one register, the first one to the upper half.
template <class N>
void convert_pair(Thread& t, const Instruction& i) {
  const N high = narrow_of<N>(static_cast<double>(get<float>(t, at(i, 1))), i),
          low = narrow_of<N>(static_cast<double>(get<float>(t, at(i, 2))), i);
  set(t, at(i, 0), static_cast<uint32_t>(high.bits) << 16 | low.bits);
}
// … and of eight bits each, saturated: `width` is cudaDataType_t's of number.h.
void convert_bytes(Thread& t, const Instruction& i) {
  uint8_t out[2];
  for (int k = 0; k < 2; ++k) {
    auto v = static_cast<double>(get<float>(t, at(i, static_cast<size_t>(2 - k))));
    if (i.compare & kRelu) v = std::isnan(v) ? v : std::max(v, 0.0);
    if (std::isnan(v)) v = std::copysign(v, 1.0);  // the canonical one
    store(i.width, out, k, v);
  }
  set(t, at(i, 0), static_cast<uint16_t>(out[0] | out[1] << 8));
}
// Back: to a pair of halves.
void bytes_to_halves(Thread& t, const Instruction& i) {
  const auto from = get<uint16_t>(t, at(i, 1));
  uint32_t out = 0;
  for (int k = 0; k < 2; ++k) {
    const uint8_t byte[8] = {static_cast<uint8_t>(from >> 8 * k)};
    out |= static_cast<uint32_t>(to_half(load(i.width, byte, 0)).bits) << 16 * k;
  }
  set(t, at(i, 0), out);
}

template <class To, class From>
void convert(Thread& t, const Instruction& i) {
  constexpr bool kNarrowFrom = std::is_same_v<From, Half> || std::is_same_v<From, Brain>;
  constexpr bool kNarrowTo = std::is_same_v<To, Half> || std::is_same_v<To, Brain>;
  if constexpr (kNarrowFrom || kNarrowTo) {
    double v;
    if constexpr (kNarrowFrom)
      v = to_float(get<From>(t, at(i, 1)));
    else
      v = static_cast<double>(get<From>(t, at(i, 1)));
    if constexpr (kNarrowTo) {
      if (kNarrowFrom && i.flag) v = integral(v, i);
      set(t, at(i, 0), narrow_of<To>(v, i));
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
      if (i.compare & kSaturated) v = std::isnan(v) ? From(0) : std::clamp(v, From(0), From(1));
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

// A conversion between types of floats loses a NaN's sign and payload, as an H200 showed (topk of f16, 2026-11-28).
template <class To, class From>
void convert_float(Thread& t, const Instruction& i) {
  const auto from = get<From>(t, at(i, 1));
  bool nan;
  if constexpr (std::is_floating_point_v<From>)
    nan = std::isnan(from);
  else
    nan = std::isnan(to_float(from));
  if (!nan || std::is_same_v<To, From> || (i.compare & kSaturated))
    convert<To, From>(t, i);
  else if constexpr (std::is_same_v<To, float>)
    set(t, at(i, 0), std::bit_cast<float>(uint32_t{0x7fffffff}));
  else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, Brain>)
    set(t, at(i, 0), To{0x7fff});
  else
    convert<To, From>(t, i);
}

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
  if (from == "f16") return convert_float<To, Half>;
  if (from == "bf16") return convert_float<To, Brain>;
  if (from == "f32") return convert_float<To, float>;
  if (from == "f64") return convert_float<To, double>;
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
  if (to == "bf16") return conversion_to<Brain>(from);
  if (to == "f32") return conversion_to<float>(from);
  if (to == "f64") return conversion_to<double>(from);
  return nullptr;
}

}  // namespace

Execute conversion_of(Instruction& i, const Words& words) {
  if (words[0] != "cvt" || words.size() < 3) return nullptr;
  const std::string &to = words[words.size() - 2], &from = words.back();
  i.flag = has(words, "rni") || has(words, "rzi") || has(words, "rmi") || has(words, "rpi");
  i.compare = (has(words, "sat") ? kSaturated : 0) | (has(words, "relu") ? kRelu : 0);
  if (from == "f32" && to == "bf16x2") return convert_pair<Brain>;
  if (from == "f32" && to == "f16x2") return convert_pair<Half>;
  const auto eight = [](const std::string& type) { return type == "e4m3x2" ? kE4m3 : type == "e5m2x2" ? kE5m2 : -1; };
  if (eight(to) >= 0 && from == "f32" && has(words, "satfinite")) {
    i.width = eight(to);
    return convert_bytes;
  }
  if (eight(from) >= 0 && to == "f16x2") {
    i.width = eight(from);
    return bytes_to_halves;
  }
  return conversion(to, from);
}

}  // namespace fake
