// Random bits: Philox 4×32-10 and ThreeFry 2×32-20, bit for bit as XLA expands them
// (xla/hlo/transforms/expanders/rng_bit_generator_expander.cc, xla/hlo/builder/lib/prng.cc).
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }
uint32_t high(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  std::array<uint32_t, 4> c{low(counter_low), high(counter_low), low(counter_high), high(counter_high)};
  uint32_t k0 = low(key), k1 = high(key);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)};
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return c;
}

std::array<uint32_t, 2> threefry(uint64_t key, uint64_t input) {
  constexpr int kRotate[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t keys[3] = {low(key), high(key), 0};
  keys[2] = 0x1BD11BDA ^ keys[0] ^ keys[1];
  uint32_t x0 = low(input) + keys[0], x1 = high(input) + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int r : kRotate[group % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, r) ^ x0;
    }
    x0 += keys[(group + 1) % 3];
    x1 += keys[(group + 2) % 3] + group + 1;
  }
  return {x0, x1};
}

// Words of 32 bits (or pairs of them, low first) for every element; and how many blocks were used.
struct Bits {
  std::vector<uint64_t> words;
  uint64_t used = 0;
};

Bits philox_bits(uint64_t key, uint64_t counter_low, uint64_t counter_high, int64_t count, bool wide) {
  Bits out;
  out.words.reserve(static_cast<size_t>(count));
  for (; static_cast<int64_t>(out.words.size()) < count; ++out.used) {
    uint64_t at = counter_low + out.used;
    std::array<uint32_t, 4> c = philox(key, at, counter_high + (at < counter_low));
    if (wide) {
      out.words.push_back(c[0] | uint64_t{c[1]} << 32);
      out.words.push_back(c[2] | uint64_t{c[3]} << 32);
    } else {
      out.words.insert(out.words.end(), c.begin(), c.end());
    }
  }
  out.words.resize(static_cast<size_t>(count));
  return out;
}

// Along its first even dimension, else the largest, one block makes two neighbouring elements.
Bits threefry_bits(uint64_t key, uint64_t state, const Dims& dims, bool wide) {
  Bits out;
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  out.words.resize(static_cast<size_t>(count));
  if (wide || dims.empty()) {
    for (int64_t i = 0; i < count; ++i) {
      std::array<uint32_t, 2> x = threefry(key, state + static_cast<uint64_t>(i));
      out.words[static_cast<size_t>(i)] = wide ? x[0] | uint64_t{x[1]} << 32 : x[0];
    }
    out.used = static_cast<uint64_t>(count);
    return out;
  }
  size_t split = dims.size();
  for (size_t d = 0; d < dims.size() && split == dims.size(); ++d)
    if (dims[d] % 2 == 0) split = d;
  if (split == dims.size()) {
    split = 0;
    for (size_t d = 1; d < dims.size(); ++d)
      if (dims[d] > dims[split]) split = d;
  }
  int64_t half = (dims[split] + 1) / 2, inner = 1, outer = 1;
  for (size_t d = split + 1; d < dims.size(); ++d) inner *= dims[d];
  for (size_t d = 0; d < split; ++d) outer *= dims[d];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t h = 0; h < half; ++h)
      for (int64_t i = 0; i < inner; ++i, ++out.used) {
        std::array<uint32_t, 2> x = threefry(key, state + out.used);
        for (int64_t which = 0; which < 2; ++which)
          if (int64_t s = 2 * h + which; s < dims[split])
            out.words[static_cast<size_t>((o * dims[split] + s) * inner + i)] = x[static_cast<size_t>(which)];
      }
  return out;
}

}  // namespace

Value Evaluator::rng_bit_generator(InstId inst, const Value& state) {
  std::string_view algorithm = u_.text(m_.attrs(inst).text(Attr::algorithm));
  Value out = make(m_.shape_id(inst));
  const Shape& s = u_[out.elements[1].shape];
  ElementType type = s.type;
  bool wide = type_bits(type) == 64;
  if (!s.is_array() || is_complex(type)) refuse(inst, "random bits of this type");
  const Shape& state_shape = u_[state.shape];
  int64_t words = state_shape.elements_count();
  if (state_shape.type != ElementType::U64 || words < 2 || words > 3)
    refuse(inst, fmt::format("a state of {}", u_.shape_text_plain(state.shape)));
  uint64_t in[3] = {0, 0, 0};
  std::memcpy(in, state.bytes(), static_cast<size_t>(words) * 8);
  Bits bits;
  Value next = state;
  auto* to = reinterpret_cast<uint64_t*>(next.mutable_bytes());
  if (algorithm == "rng_three_fry") {
    bits = threefry_bits(in[0], in[1], s.dims, wide);
    to[1] = in[1] + bits.used;
  } else {
    // A state of two words is the key and, reversed, the counter.
    uint64_t counter_high = words == 3 ? in[2] : in[0];
    bits = philox_bits(in[0], in[1], counter_high, s.elements_count(), wide);
    to[1] = in[1] + bits.used;
    if (words == 3) to[2] = counter_high + (to[1] < in[1]);
  }
  // Narrow types take the low bits of a word each, floats have the words as their bits.
  int width = storage_bytes(type);
  char* at = out.elements[1].data->data();
  for (uint64_t w : bits.words) {
    if (type_bits(type) < 8)
      store_int(type, at, static_cast<int64_t>(w));
    else
      std::memcpy(at, &w, static_cast<size_t>(width));
    at += width;
  }
  next.shape = u_[out.shape].elements[0];
  out.elements[0] = std::move(next);
  return out;
}

// The two words of each counter's block, with a key for each (jaxlib's kernel for GPUs).
Value Evaluator::threefry_pairs(InstId inst, const std::vector<Value>& ops) {
  Value out = make(m_.shape_id(inst));
  auto word = [](const Value& v, int64_t i) {
    uint32_t w;
    std::memcpy(&w, v.bytes() + i * 4, 4);
    return uint64_t{w};
  };
  for (int64_t i = 0; i < u_[ops[0].shape].elements_count(); ++i) {
    auto made = threefry(word(ops[0], i) | word(ops[1], i) << 32, word(ops[2], i) | word(ops[3], i) << 32);
    for (size_t k = 0; k < 2; ++k) std::memcpy(out.elements[k].data->data() + i * 4, &made[k], 4);
  }
  return out;
}

// The values of `rng` are the implementation's own: ours come from Philox with the instruction's name as key, and a
// counter that goes on with every call.
Value Evaluator::rng(InstId inst, std::vector<Value>& ops) {
  std::string_view distribution = u_.text(m_.attrs(inst).text(Attr::distribution));
  Value out = make(m_.shape_id(inst));
  const Shape& s = u_[out.shape];
  int64_t n = s.elements_count();
  uint64_t key = hash_combine(hash_bytes(m_.inst_name(inst)), options_.rng_seed) + static_cast<uint64_t>(device_),
           call = rng_calls_[inst]++;
  std::vector<uint64_t> words = philox_bits(key, 0, call, 2 * n, true).words;
  int width = storage_bytes(s.type);
  auto unit = [&](size_t i) { return static_cast<double>(words[i] >> 11) * 0x1p-53; };
  bool uniform = distribution == "rng_uniform", whole = !is_float(s.type);
  if (is_complex(s.type)) refuse(inst, "complex numbers");
  for (int64_t i = 0; i < n; ++i) {
    auto k = static_cast<size_t>(2 * i);
    char* at = out.data->data() + i * width;
    if (whole) {
      // Integers of [a, b).
      if (!uniform) refuse(inst, "normal distribution of integers");
      if (s.type == ElementType::Pred) {
        *at = static_cast<char>(words[k] & 1);
        continue;
      }
      auto a = static_cast<uint64_t>(load_int(s.type, ops[0].bytes())),
           range = static_cast<uint64_t>(load_int(s.type, ops[1].bytes())) - a;
      store_int(s.type, at, static_cast<int64_t>(a + (range ? words[k] % range : 0)));
      continue;
    }
    double a = load_double(s.type, ops[0].bytes()), b = load_double(s.type, ops[1].bytes());
    if (uniform) {
      store_double(s.type, at, a + unit(k) * (b - a));
      // Rounding must not reach the end of the half-open interval.
      if (b > a && load_double(s.type, at) >= b) store_double(s.type, at, a);
    } else {
      double radius = std::sqrt(-2 * std::log1p(-unit(k)));
      store_double(s.type, at, a + b * radius * std::cos(2 * M_PI * unit(k + 1)));
    }
  }
  return out;
}

// One counter of 128 bits for the whole run, low word first.
Value Evaluator::rng_state(InstId inst) {
  Value out = make(m_.shape_id(inst));
  auto* to = reinterpret_cast<uint64_t*>(out.data->data());
  to[0] = rng_counter_[0], to[1] = rng_counter_[1];
  auto delta = static_cast<uint64_t>(m_.attrs(inst).integer(Attr::delta));
  rng_counter_[0] += delta;
  rng_counter_[1] += rng_counter_[0] < delta;
  return out;
}

}  // namespace hlo
