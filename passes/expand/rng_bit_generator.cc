// rng-bit-generator-expander and rng-expander (xla/service/rng_bit_generator_expander.cc, rng_expander.cc; the
// generators as xla/hlo/builder/lib/prng.cc writes them down): random bits and numbers as computations of integers.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <tuple>

#include "passes/rewrite.h"

namespace hlo {
namespace {

class Generator {
 public:
  Generator(Module& m, CompId c) : m_(m), u_(m.u()), c_(c) {}

  // The computation's root: (state, bits).
  void philox(InstId state, ShapeId data) {
    int64_t states = m_.shape(state).dims[0];
    InstId key = scalar(cut(state, 0, 1));
    InstId inner = states >= 3 ? cut(state, 1, 3) : op(Opcode::Reverse, {state}, dims_attr(u_, Opcode::Reverse, {0}));
    auto [bits, after] = philox_bits(key, inner, u_[data]);
    if (states < 3) after = cut(after, 0, 1);
    finish(key, after, bits, data);
  }

  // Numbers of the shape between parameters 2 and 3, or about 2 with deviation 3; parameters 0 and 1 are key and
  // counter. Integers, f32, f64.
  InstId numbers(ShapeId shape, bool normal) {
    const Shape s = u_[shape];
    InstId key = m_.parameter(c_, 0, u_.scalar(ElementType::U64), "key");
    InstId state = m_.parameter(c_, 1, u_.array(ElementType::U64, {2}), "state");
    InstId a = m_.parameter(c_, 2, u_.scalar(s.type), "a_or_mean");
    InstId b = m_.parameter(c_, 3, u_.scalar(s.type), "b_or_sigma");
    if (normal) return normals(key, state, a, b, shape);
    if (is_float(s.type)) return fractions(key, state, a, b, shape);
    return integers(philox_bits(key, state, u_[u_.with_type(shape, unsigned_of(s.type))])[0], a, b);
  }

  // Low and high: key and counter (u64[2]) to bits of the shape, 64 or 32 wide, and the counter behind them.
  std::array<InstId, 2> philox_bits(InstId key, InstId inner, const Shape& out) {
    int64_t elements = out.elements_count();
    bool wide = type_bits(out.type) == 64;
    int64_t n = (elements * (wide ? 2 : 1) + 3) / 4;
    std::array<InstId, 2> k = halves(key);
    // The counter is kept as four words and put together again.
    std::array<InstId, 2> word;
    for (int64_t w = 0; w < 2; ++w) {
      std::array<InstId, 2> h = halves(scalar(cut(inner, w, w + 1)));
      word[static_cast<size_t>(w)] = joined(h[0], h[1]);
    }
    ShapeId row = u_.array(ElementType::U64, {n});
    InstId iota = op(Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, int64_t{0}}}), row);
    InstId low = op(Opcode::Add, {spread(word[0], row), iota});
    InstId high = carried(low, word[0], word[1], row);
    InstId next = op(Opcode::Add, {word[0], number(ElementType::U64, n)});
    InstId next_high = carried(next, word[0], word[1], u_.scalar(ElementType::U64));
    InstId after = concat({make_reshape(m_, next, {1}), make_reshape(m_, next_high, {1})}, 0);
    std::array<InstId, 2> l = halves(low), h = halves(high);
    std::array<InstId, 4> x{l[0], l[1], h[0], h[1]};
    for (int round = 0; round < 10; ++round) {
      std::array<InstId, 2> a = product(x[0], 0xD2511F53), b = product(x[2], 0xCD9E8D57);
      x = {binary(Opcode::Xor, binary(Opcode::Xor, b[1], x[1]), k[0]), b[0],
           binary(Opcode::Xor, binary(Opcode::Xor, a[1], x[3]), k[1]), a[0]};
      k[0] = op(Opcode::Add, {k[0], number(ElementType::U32, 0x9E3779B9)});
      k[1] = op(Opcode::Add, {k[1], number(ElementType::U32, 0xBB67AE85)});
    }
    std::vector<InstId> columns;
    if (wide)
      columns = {joined(x[0], x[1]), joined(x[2], x[3])};
    else
      columns.assign(x.begin(), x.end());
    for (InstId& column : columns) column = make_reshape(m_, column, {n, 1});
    InstId bits = make_reshape(m_, concat(columns, 1), {n * static_cast<int64_t>(columns.size())});
    return {make_reshape(m_, cut(bits, 0, elements), out.dims), after};
  }

  void threefry(InstId state, ShapeId data) {
    const Shape out = u_[data];
    bool wide = type_bits(out.type) == 64, lone = out.rank() == 0;
    InstId key = scalar(cut(state, 0, 1)), inner = cut(state, 1, 2);
    // Each block makes two words.
    Dims half = out.dims;
    size_t split = 0;
    if (lone)
      half = {1};
    else if (!wide)
      split = halved(half);
    int64_t blocks = 1;
    for (int64_t d : half) blocks *= d;
    ShapeId shape = u_.array(ElementType::U64, half);
    InstId counter = spread(scalar(inner), shape);
    int64_t stride = 1;
    for (size_t d = half.size(); d-- > 0;) {
      if (half[d] < 2) continue;
      InstId iota =
          op(Opcode::Iota, {}, attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, static_cast<int64_t>(d)}}), shape);
      counter = op(Opcode::Add, {counter, binary(Opcode::Multiply, iota, number(ElementType::U64, stride))});
      stride *= half[d];
    }
    InstId after = binary(Opcode::Add, inner, number(ElementType::U64, blocks));
    std::array<InstId, 2> in = halves(counter), k = halves(key);
    std::array<InstId, 3> ks;
    for (size_t w = 0; w < 2; ++w) ks[w] = op(Opcode::BitcastConvert, {k[w]}, {}, u_.scalar(ElementType::U32));
    ks[2] = op(Opcode::Xor, {op(Opcode::Xor, {number(ElementType::U32, 0x1BD11BDA), ks[0]}), ks[1]});
    InstId x0 = binary(Opcode::Add, in[0], ks[0]), x1 = binary(Opcode::Add, in[1], ks[1]);
    constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    for (size_t group = 0; group < 5; ++group) {
      for (int r : kRotations[group % 2]) {
        x0 = op(Opcode::Add, {x0, x1});
        InstId left = binary(Opcode::ShiftLeft, x1, number(ElementType::U32, r));
        InstId right = binary(Opcode::ShiftRightLogical, x1, number(ElementType::U32, 32 - r));
        x1 = op(Opcode::Xor, {x0, op(Opcode::Or, {left, right})});
      }
      x0 = binary(Opcode::Add, x0, ks[(group + 1) % 3]);
      x1 = binary(Opcode::Add, binary(Opcode::Add, x1, ks[(group + 2) % 3]),
                  number(ElementType::U32, static_cast<int64_t>(group) + 1));
    }
    InstId bits;
    if (wide) {
      bits = joined(x0, x1);
      if (lone) bits = make_reshape(m_, bits, {});
    } else if (lone) {
      bits = make_reshape(m_, x0, {});
    } else {
      bits = paired(x0, x1, split, out.dims);
    }
    finish(key, after, bits, data);
  }

 private:
  static ElementType unsigned_of(ElementType t) { return type_bits(t) == 64 ? ElementType::U64 : ElementType::U32; }
  // Halves one dimension, an even one if there is one, rounded up, and puts a dimension of one element behind it.
  static size_t halved(Dims& dims) {
    auto even = std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d % 2 == 0; });
    auto split =
        static_cast<size_t>((even != dims.end() ? even : std::max_element(dims.begin(), dims.end())) - dims.begin());
    dims[split] = (dims[split] + 1) / 2;
    dims.insert(dims.begin() + static_cast<ptrdiff_t>(split) + 1, 1);
    return split;
  }
  // The two halves side by side, and what is over cut off.
  InstId paired(InstId x0, InstId x1, size_t split, const Dims& dims) {
    Dims even = dims;
    even[split] = (even[split] + 1) / 2 * 2;
    InstId all = make_reshape(m_, concat({x0, x1}, static_cast<int64_t>(split) + 1), even);
    if (even == dims) return all;
    std::vector<SliceDim> slice;
    for (int64_t d : dims) slice.push_back({0, d, 1});
    return op(Opcode::Slice, {all}, attrs_of(u_, Opcode::Slice, {{Attr::slice, slice}}));
  }

  // a + (b - a) · x, x in [0, 1): as many of the upper bits as the type's mantissa holds.
  InstId fractions(InstId key, InstId state, InstId a, InstId b, ShapeId shape) {
    ElementType t = u_[shape].type;
    bool wide = type_bits(t) == 64;
    InstId bits = philox_bits(key, state, u_[u_.with_type(shape, unsigned_of(t))])[0];
    bits = binary(Opcode::ShiftRightLogical, bits, number(unsigned_of(t), wide ? 64 - 52 : 32 - 23));
    InstId x =
        binary(Opcode::Multiply, make_convert(m_, bits, t), make_scalar(m_, c_, t, std::ldexp(1.0, wide ? -52 : -23)));
    return binary(Opcode::Add, binary(Opcode::Multiply, x, op(Opcode::Subtract, {b, a})), a);
  }
  // a + the remainder by b - a, added in two halves, as their sum with a signed `a` may not be one number.
  InstId integers(InstId bits, InstId a, InstId b) {
    ElementType t = m_.shape(a).type, plain = unsigned_of(t);
    auto cast = [&](InstId x, ElementType to) {
      return op(Opcode::BitcastConvert, {x}, {}, u_.with_type(m_.shape_id(x), to));
    };
    InstId range = op(Opcode::Subtract, {cast(b, plain), cast(a, plain)});
    InstId all = binary(Opcode::Remainder, bits, range);
    InstId half = binary(Opcode::ShiftRightLogical, all, number(plain, 1));
    InstId first = m_.shape(bits).rank() ? spread(a, m_.shape_id(bits)) : a;
    first = op(Opcode::Add, {first, cast(half, t)});
    return op(Opcode::Add, {first, cast(op(Opcode::Subtract, {all, half}), t)});
  }
  // Pairs of them from pairs of fractions x and y: sin and cos of 2π y, times sqrt(-2 log x).
  InstId normals(InstId key, InstId state, InstId mean, InstId sigma, ShapeId shape) {
    const Shape s = u_[shape];
    bool lone = s.rank() == 0;
    Dims pairs = s.dims;
    size_t split = 0;
    if (lone)
      pairs = {1};
    else
      split = halved(pairs);
    size_t pair = lone ? 0 : split + 1;
    pairs[pair] = 2;
    InstId zero = number(s.type, 0), one = number(s.type, 1);
    InstId uniform = fractions(key, state, zero, one, u_.array(s.type, pairs));
    auto part = [&](int64_t k) {
      std::vector<SliceDim> slice;
      for (int64_t d : pairs) slice.push_back({0, d, 1});
      slice[pair] = {k, k + 1, 1};
      return op(Opcode::Slice, {uniform}, attrs_of(u_, Opcode::Slice, {{Attr::slice, slice}}));
    };
    // Beside an array, constants come first.
    auto times = [&](InstId c, InstId x) { return op(Opcode::Multiply, {spread(c, m_.shape_id(x)), x}); };
    InstId x = part(0), y = part(1);
    InstId least = op(Opcode::Maximum, {x, spread(make_scalar(m_, c_, s.type, 1e-7F), m_.shape_id(x))});
    InstId angle = times(make_scalar(m_, c_, s.type, 2.0 * std::numbers::pi), y);
    InstId radius = op(Opcode::Sqrt, {times(number(s.type, -2), op(Opcode::Log, {least}))});
    InstId first = op(Opcode::Multiply, {op(Opcode::Sine, {angle}), radius});
    InstId second = op(Opcode::Multiply, {op(Opcode::Cosine, {angle}), radius});
    if (lone) return op(Opcode::Add, {mean, op(Opcode::Multiply, {sigma, make_reshape(m_, first, {})})});
    InstId z = paired(first, second, split, s.dims);
    z = times(sigma, z);
    return op(Opcode::Add, {spread(mean, m_.shape_id(z)), z});
  }

  InstId op(Opcode code, std::vector<InstId> operands, AttrsId attrs = {}, ShapeId shape = {}) {
    return make(m_, c_, code, std::move(operands), attrs, shape);
  }
  InstId number(ElementType type, int64_t value) { return make_scalar(m_, c_, type, value); }
  InstId spread(InstId x, ShapeId like) { return make_broadcast(m_, c_, x, {}, u_.with_type(like, m_.shape(x).type)); }
  // The second one, a scalar, is spread where the first is none.
  InstId binary(Opcode code, InstId a, InstId b) {
    if (m_.shape(a).rank() && !m_.shape(b).rank()) b = spread(b, m_.shape_id(a));
    return op(code, {a, b});
  }
  InstId cut(InstId x, int64_t from, int64_t to) {
    return op(Opcode::Slice, {x}, attrs_of(u_, Opcode::Slice, {{Attr::slice, std::vector<SliceDim>{{from, to, 1}}}}));
  }
  InstId scalar(InstId x) { return make_reshape(m_, x, {}); }
  InstId concat(const std::vector<InstId>& parts, int64_t dim) {
    return op(Opcode::Concatenate, parts, dims_attr(u_, Opcode::Concatenate, {dim}));
  }
  // Low and high words of 64 bits.
  std::array<InstId, 2> halves(InstId x) {
    InstId low = make_convert(m_, x, ElementType::U32);
    InstId high = binary(Opcode::ShiftRightLogical, x, number(ElementType::U64, 32));
    return {low, make_convert(m_, high, ElementType::U32)};
  }
  InstId joined(InstId low, InstId high) {
    InstId l = make_convert(m_, low, ElementType::U64), h = make_convert(m_, high, ElementType::U64);
    return op(Opcode::Or, {l, binary(Opcode::ShiftLeft, h, number(ElementType::U64, 32))});
  }
  std::array<InstId, 2> product(InstId x, int64_t by) {
    return halves(binary(Opcode::Multiply, make_convert(m_, x, ElementType::U64), number(ElementType::U64, by)));
  }
  // The high word where the low one is a sum that may have run over.
  InstId carried(InstId sum, InstId low, InstId high, ShapeId shape) {
    InstId over = op(Opcode::Compare, {sum, m_.shape(sum).rank() ? spread(low, shape) : low},
                     attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("LT")}}));
    InstId more = op(Opcode::Add, {high, number(ElementType::U64, 1)});
    return op(Opcode::Select, {over, spread(more, shape), spread(high, shape)});
  }
  void finish(InstId key, InstId after, InstId bits, ShapeId data) {
    bits = make_convert(m_, bits, u_[data].type);
    InstId state = concat({make_reshape(m_, key, {1}), after}, 0);
    m_.set_root(c_, op(Opcode::Tuple, {state, bits}));
  }

  Module& m_;
  Universe& u_;
  CompId c_;
};

}  // namespace

//   rng-bit-generator(state)      →      call(state), to_apply=rng
bool run_rng_bit_generator_expander(Module& m, PassContext& ctx) {
  bool changed = false;
  std::map<std::tuple<uint32_t, uint32_t, bool>, CompId> made;
  bool default_is_philox = ctx.word("default") != "three_fry";
  for (InstId i : all_of_opcode(m, Opcode::RngBitGenerator)) {
    if (!m.shape(i).is_tuple()) continue;
    InstId state = m.operand(i, 0);
    ShapeId data = m.shape(i).elements[1];
    std::string_view algorithm = m.u().text(m.attrs(i).text(Attr::algorithm));
    bool philox = algorithm == "rng_philox" || (algorithm != "rng_three_fry" && default_is_philox);
    const Shape &s = m.shape(state), &d = m.u()[data];
    if (s.type != ElementType::U64 || s.rank() != 1 || s.dims[0] < 2 || (!philox && s.dims[0] != 2) || s.dims[0] > 3 ||
        !is_integral(d.type) || type_bits(d.type) < 8 || d.elements_count() == 0) {
      ctx.note(m, "generator kept", {i}, "a state that is not u64[2] or u64[3], or bits that are no integers");
      continue;
    }
    if (!ctx.spend(m, philox ? "Philox" : "ThreeFry", {i})) return changed;
    CompId& c = made[{data.value, m.shape_id(state).value, philox}];
    if (!c.valid()) {
      c = m.add_computation("rng");
      InstId parameter = m.parameter(c, 0, m.shape_id(state), "state");
      Generator g(m, c);
      philox ? g.philox(parameter, data) : g.threefry(parameter, data);
    }
    InstId call = make(m, m.parent(i), Opcode::Call, {state}, attrs_of(m.u(), Opcode::Call, {{Attr::to_apply, c}}),
                       m.shape_id(i));
    changed |= m.replace(i, call);
  }
  return changed;
}

//   rng(a, b), distribution=rng_uniform
//     →   call(key, rng-get-and-update-state(), a, b), to_apply=rng       (of f16 and bf16 in f32, converted back)
// Keys differ from one to the next and are the same on every run, as in XLA for a module without a seed.
bool run_rng_expander(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  std::mt19937_64 of_module(42), of_process(8);
  std::map<std::tuple<uint32_t, bool>, CompId> made;
  for (InstId i : all_of_opcode(m, Opcode::Rng)) {
    CompId parent = m.parent(i);
    ElementType t = m.shape(i).type;
    std::string_view kind = u.text(m.attrs(i).text(Attr::distribution));
    bool narrow = t == ElementType::F16 || t == ElementType::BF16, normal = kind == "rng_normal";
    bool known = narrow || t == ElementType::F32 || t == ElementType::F64 ||
                 (!normal && is_integral(t) && t != ElementType::Pred && type_bits(t) >= 32);
    if (!known || m.shape(i).elements_count() == 0 || (!normal && kind != "rng_uniform")) {
      ctx.note(m, "random numbers kept", {i}, "of a type that the generator does not make");
      continue;
    }
    if (!ctx.spend(m, normal ? "normal" : "uniform", {i})) return changed;
    ElementType wide = narrow ? ElementType::F32 : t;
    InstId a = m.operand(i, 0), b = m.operand(i, 1);
    if (narrow) a = make_convert(m, a, wide), b = make_convert(m, b, wide);
    ShapeId shape = u.with_type(m.shape_id(i), wide);
    CompId& c = made[{shape.value, normal}];
    if (!c.valid()) {
      c = m.add_computation("rng");
      m.set_root(c, Generator(m, c).numbers(shape, normal));
    }
    InstId key = make_scalar(m, parent, ElementType::U64, of_module() ^ of_process());
    int64_t words = m.shape(i).elements_count() * (type_bits(wide) == 64 ? 2 : 1);
    InstId state =
        make(m, parent, Opcode::RngGetAndUpdateState, {},
             attrs_of(u, Opcode::RngGetAndUpdateState, {{Attr::delta, words}}), u.array(ElementType::U64, {2}));
    InstId call =
        make(m, parent, Opcode::Call, {key, state, a, b}, attrs_of(u, Opcode::Call, {{Attr::to_apply, c}}), shape);
    changed |= m.replace(i, narrow ? make_convert(m, call, t) : call);
  }
  return changed;
}

}  // namespace hlo
