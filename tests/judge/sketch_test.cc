// What is remembered of a value, and the conversions that it is compared through.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <random>

#include "ir/eval/kernels.h"
#include "ir/types/literal.h"
#include "parser/parser.h"
#include "replay/judge/arguments/npz.h"
#include "replay/judge/values/inputs.h"
#include "replay/judge/values/walk.h"

namespace hlo {
namespace {

// What sums of products over all but the last dimension give stays of the size of what they are multiplied with.
TEST(Values, BalancedArgumentsKeepSizes) {
  std::unique_ptr<Module> m = parse_module(R"(HloModule m
ENTRY e {
 w = f32[3,3,8,16] parameter(0)
 b = f32[16] parameter(1)
 n = s32[4,4] parameter(2)
 ROOT t = (f32[3,3,8,16], f32[16], s32[4,4]) tuple(w, b, n)
})",
                                           std::make_shared<Universe>(), {});
  Universe& u = m->u();
  std::vector<Value> given;
  for (size_t k = 0; k < 3; ++k)
    given.push_back(seeded_input(u, m->shape_id(m->comp(m->entry()).params[k]), 1, k, false));
  const std::vector<Value> made = balanced_arguments(*m, given);
  double squares = 0;
  for (int k = 0; k < 72 * 16; ++k) squares += std::pow(load_double(ElementType::F32, made[0].bytes() + 4 * k), 2);
  EXPECT_NEAR(squares / (72 * 16), 2.0 / 72, 1e-6);
  EXPECT_EQ(*made[1].data, *given[1].data);
  EXPECT_EQ(*made[2].data, *given[2].data);
}

// Doubles become sixteen bits in one rounding, whichever way they go.
TEST(Values, DoublesToHalves) {
  std::vector<double> from = {0.0,    -0.0,   INFINITY, -INFINITY, NAN,      -NAN, 1e300,
                              -1e300, 1e-320, 5e-324,   0x1p-149,  65519.99, 65520};
  std::mt19937_64 random(7);
  for (int k = 0; k < 20000; ++k) {
    // Around the middle of two neighbours, and anything.
    auto half = static_cast<uint16_t>(random());
    double tie = k % 2 ? bf16_to_f32(half) : f16_to_f32(half);
    tie += std::ldexp(tie, k % 2 ? -9 : -12);
    for (double v : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, 2 * tie), std::bit_cast<double>(random())})
      from.push_back(v);
    from.push_back(
        std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -63 - static_cast<int>(random() % 160)));
  }
  auto n = static_cast<int64_t>(from.size());
  for (ElementType t : {ElementType::BF16, ElementType::F16}) {
    std::vector<uint16_t> halves(from.size());
    std::vector<double> back(from.size());
    convert_kernel(ElementType::F64, t, n, reinterpret_cast<char*>(from.data()),
                   reinterpret_cast<char*>(halves.data()));
    convert_kernel(t, ElementType::F64, n, reinterpret_cast<char*>(halves.data()),
                   reinterpret_cast<char*>(back.data()));
    for (size_t k = 0; k < from.size(); ++k) {
      EXPECT_EQ(halves[k], encode_float(*float_format(t), from[k])) << from[k];
      EXPECT_EQ(std::bit_cast<uint64_t>(back[k]), std::bit_cast<uint64_t>(load_double(t, &halves[k]))) << halves[k];
    }
  }
}

// What is remembered of a value tells it from all that are near, NaN and infinities by their places.
TEST(Values, Sketches) {
  Universe u;
  int64_t n = 40000;  // chunks and tiles, and a rest
  ShapeId shape = u.array(ElementType::F64, {n}), turned = u.array(ElementType::F64, {n / 8, 8});
  auto value = [&](auto&& change) {
    Value v;
    v.shape = shape, v.data = new_array(u, shape);
    auto* x = reinterpret_cast<double*>(v.mutable_bytes());
    for (int64_t k = 0; k < n; ++k) x[k] = std::sin(static_cast<double>(k));
    change(x);
    return v;
  };
  auto sketch = [&](const Value& v) { return sketch_of(u, std::span(&v, 1)); };
  Value plain = value([](double*) {});
  Sketch s = sketch(plain);
  plain.shape = turned;
  EXPECT_TRUE(sketch(plain).same(s, 1e-13));
  for (int64_t a : {int64_t{0}, int64_t{5}, int64_t{2047}, n - 1})
    for (int64_t b : {int64_t{1}, int64_t{2048 + 5}, int64_t{16384 + 5}, n - 2}) {
      EXPECT_FALSE(sketch(value([&](double* x) { std::swap(x[a], x[b]); })).same(s, 1e-13)) << a << " " << b;
      EXPECT_FALSE(sketch(value([&](double* x) { x[a] += 1e-6; })).same(s, 1e-13));
      Sketch one = sketch(value([&](double*x) { x[a] = NAN, x[b] = INFINITY; })),
             other = sketch(value([&](double*x) { x[a] = NAN, x[b + 1 < n ? b + 1 : 2] = INFINITY; }));
      EXPECT_EQ(one.nan, 1);
      EXPECT_EQ(one.infinite, 1);
      EXPECT_TRUE(std::isfinite(one.first));
      EXPECT_FALSE(one.same(other, 1e-9));
    }
  EXPECT_FALSE(s.uniform);
  EXPECT_NEAR(s.magnitudes, 2 / M_PI * static_cast<double>(n), 10);
  EXPECT_NEAR(s.squares, static_cast<double>(n) / 2, 10);
  EXPECT_TRUE(sketch(value([&](double* x) { std::fill(x, x + n, 3.0); })).uniform);
  EXPECT_FALSE(sketch(value([&](double* x) { std::fill(x, x + n, 3.0), x[n - 1] = 2; })).uniform);
  // exp(60·sin k) and 1 + exp(60·sin k), of which the sums are the same in f64.
  auto exponents = [&](double* x, double plus) {
    for (int64_t k = 0; k < n; ++k) x[k] = std::exp(60 * x[k]) + plus;
  };
  const Sketch without = sketch(value([&](double*x) { exponents(x, 0); })),
               with = sketch(value([&](double*x) { exponents(x, 1); }));
  EXPECT_FALSE(without.same(with, 1e-13));
  EXPECT_TRUE(with.same(sketch(value([&](double* x) { exponents(x, 1 + 1e-15); })), 1e-13));
}

// What may be taken for a value: nothing where one is NaN or infinite and the other is not the same.
TEST(Values, ButForRounding) {
  Universe u;
  const int64_t n = 5001;  // more than a block, and odd
  ShapeId shape = u.array(ElementType::F32, {n});
  auto value = [&](int64_t at, float number) {
    Value v;
    v.shape = shape, v.data = new_array(u, shape);
    auto* x = reinterpret_cast<float*>(v.mutable_bytes());
    for (int64_t k = 0; k < n; ++k) x[k] = std::sin(static_cast<float>(k + 1));
    x[at] = number;
    return v;
  };
  auto near = [&](const Value& a, const Value& b, Rounding how) {
    return same_but_for_rounding(u, std::span(&a, 1), std::span(&b, 1), how);
  };
  for (int64_t at : {int64_t{0}, int64_t{1}, int64_t{2049}, n - 1}) {
    const Value one = value(at, 1.0F), next = value(at, 1.0F + 0x1p-23F), far = value(at, 1.0F + 0x1p-19F);
    const Value infinite = value(at, INFINITY), negative = value(at, -INFINITY), nan = value(at, NAN);
    for (Rounding how : {Rounding::kOnce, Rounding::kSums}) {
      EXPECT_TRUE(near(one, next, how));
      EXPECT_FALSE(near(one, far, how));
      EXPECT_TRUE(near(infinite, infinite, how));
      EXPECT_TRUE(near(nan, nan, how));
      for (const Value& other : {one, negative, nan}) {
        EXPECT_FALSE(near(infinite, other, how)) << at;
        EXPECT_FALSE(near(other, infinite, how)) << at;
      }
      EXPECT_FALSE(near(one, nan, how));
    }
    EXPECT_FALSE(near(one, next, Rounding::kNone));
  }
}

// A first stage, and others beside it on the same arguments: results are the same where they have one number.
class NumberedValues : public testing::Test {
 protected:
  // `head`: the module up to the parameters, of all stages; `body`: what follows them.
  void first_stage(std::string head, const std::string& body) {
    head_ = std::move(head);
    auto first = stage(body);
    for (InstId p : first->m().comp(first->m().entry()).params)
      arguments_.push_back(n_.place({seeded_input(*universe_, first->m().shape_id(p), 3, arguments_.size(), false)}));
    expected_ = StageWalk(n_, first).run(arguments_).result.number;
  }
  // Has the stage the first one's result, and how many operations were evaluated to tell?
  std::pair<bool, int64_t> result(const std::string& body, bool take_rounded = false) {
    const int64_t before = n_.count.operations;
    n_.take_rounded = take_rounded, n_.taken = 0;
    const Term t = StageWalk(n_, stage(body)).run(arguments_).result;
    n_.take_rounded = false;
    return {t.number == expected_, n_.count.operations - before};
  }
  int64_t taken() const { return n_.taken; }  // as the same but for rounding, for the last result

  static constexpr std::pair<bool, int64_t> kKnown{true, 0};  // without evaluating anything

 private:
  std::shared_ptr<StageModule> stage(const std::string& body) {
    auto m = parse_module(head_ + body + "\n}\n", universe_, {"t", 20});
    return std::make_shared<StageModule>(*m, EvalOptions(), 1, StageTypes::kOwn);
  }
  std::shared_ptr<Universe> universe_ = std::make_shared<Universe>();
  std::string head_;
  Numbering n_{universe_, int64_t{1} << 30, true};
  std::vector<Term> arguments_;
  decltype(Term::number) expected_{};
};

// dot(y, x) is dot(x, y), transposed: with its dimensions put back it is not computed, wrongly put back it is.
TEST_F(NumberedValues, SwappedProducts) {
  auto dot = [](const char* operands, int left, int right) {
    return fmt::format(
        "dot({}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{{}}}, "
        "rhs_contracting_dims={{{}}}\n",
        operands, left, right);
  };
  first_stage("HloModule m\nENTRY e {\n  x = f32[2,3,5]{2,1,0} parameter(0)\n  y = f32[2,5,3]{2,1,0} parameter(1)\n",
              "  ROOT d = f32[2,3,3]{2,1,0} " + dot("x, y", 2, 1));
  const std::string swapped = "  d = f32[2,3,3]{1,2,0} " + dot("y, x", 1, 2);
  EXPECT_EQ(result(swapped + "  ROOT r = f32[2,3,3]{2,1,0} bitcast(d)"), kKnown);
  EXPECT_EQ(result(swapped + "  ROOT r = f32[2,3,3]{2,1,0} transpose(d), dimensions={0,2,1}"), kKnown);
  EXPECT_FALSE(result(swapped + "  ROOT r = f32[2,3,3]{1,2,0} copy(d)").first);
  EXPECT_FALSE(result(swapped + "  ROOT r = f32[2,3,3]{2,1,0} transpose(d), dimensions={0,1,2}").first);
  EXPECT_FALSE(result("  d = f32[2,3,3]{1,2,0} " + dot("x, x", 2, 2) +
                      "  ROOT r = f32[2,3,3]{2,1,0} transpose(d), dimensions={0,2,1}")
                   .first);
}

// A product whose parts are summed (split-K) is the product but for rounding, where they are its parts.
TEST_F(NumberedValues, SummedProducts) {
  const std::string head =
      "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
      "most {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n"
      "ENTRY e {\n  x = f32[4,16] parameter(0)\n  y = f32[16,4] parameter(1)\n";
  first_stage(head, "  ROOT d = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  auto parts = [](std::string_view left, std::string_view right, std::string_view zero, std::string_view sum) {
    return fmt::format(
        "  l = {}\n  r = {}\n  zero = f32[] constant({})\n"
        "  d = f32[2,4,4] dot(l, r), lhs_batch_dims={{1}}, lhs_contracting_dims={{2}}, "
        "rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}\n  ROOT s = f32[4,4] reduce(d, zero), {}\n",
        left, right, zero, sum);
  };
  const std::string_view left = "f32[4,2,8] reshape(x)", right = "f32[2,8,4] reshape(y)",
                         sum = "dimensions={0}, to_apply=add";
  // Other elements meet.
  const std::string every_other =
      "  l = f32[4,8,2] reshape(x)\n  r = f32[2,8,4] reshape(y)\n  zero = f32[] constant(0)\n"
      "  d = f32[2,4,4] dot(l, r), lhs_batch_dims={2}, lhs_contracting_dims={1}, rhs_batch_dims={0}, "
      "rhs_contracting_dims={1}\n  ROOT s = f32[4,4] reduce(d, zero), dimensions={0}, to_apply=add\n";
  EXPECT_EQ(result(parts(left, right, "0", sum), true), std::pair(true, int64_t{1}));  // the constant alone
  EXPECT_EQ(taken(), 1);
  for (const std::string& wrong :
       {parts("f32[4,2,8] reshape(y)", right, "0", sum), parts(left, "f32[2,8,4] reshape(x)", "0", sum),
        parts(left, right, "1", sum), parts(left, right, "0", "dimensions={0}, to_apply=most"), every_other}) {
    EXPECT_FALSE(result(wrong, true).first) << wrong;
  }
  // By its bits it is evaluated.
  EXPECT_GE(result(parts(left, right, "0", sum)).second, 1);
  EXPECT_EQ(taken(), 0);
}

// What an elementwise operation gives of transposed operands is what it gives of them, transposed.
TEST_F(NumberedValues, TransposedOperands) {
  first_stage(
      "HloModule m\nENTRY e {\n  x = f32[4,4] parameter(0)\n  b = f32[4] parameter(1)\n  c = f32[] parameter(2)\n",
      "  s = f32[4,4] broadcast(b), dimensions={1}\n  d = f32[4,4] subtract(x, s)\n"
      "  k = f32[4,4] broadcast(c), dimensions={}\n  ROOT r = f32[4,4] multiply(k, d)");
  auto with = [&](std::string_view dims, std::string_view difference, std::string_view back) {
    return result(fmt::format("  t = f32[4,4] transpose(x), dimensions={{1,0}}\n"
                              "  s = f32[4,4] broadcast(b), dimensions={{{}}}\n"
                              "  d = f32[4,4] subtract({})\n  e = f32[1,4,4] reshape(d)\n"
                              "  f = f32[4,4] reshape(e)\n  k = f32[4,4] broadcast(c), dimensions={{}}\n"
                              "  m = f32[4,4] multiply(f, k)\n"
                              "  ROOT r = f32[4,4] transpose(m), dimensions={{{}}}",
                              dims, difference, back),
                  true);
  };
  EXPECT_EQ(with("0", "t, s", "1,0"), kKnown);
  EXPECT_FALSE(with("1", "t, s", "1,0").first);
  EXPECT_FALSE(with("0", "s, t", "1,0").first);
  EXPECT_FALSE(with("0", "x, s", "1,0").first);
  EXPECT_FALSE(with("0", "t, s", "0,1").first);
}

// A reduction is known by which elements it takes together, in whatever dimensions they are written.
TEST_F(NumberedValues, ReductionsByElements) {
  const std::string head =
      "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
      "most {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n"
      "ENTRY e {\n  x = f32[4,6] parameter(0)\n  y = f32[4,6] parameter(1)\n";
  first_stage(head, "  z = f32[] constant(0)\n  ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=add");
  auto with = [&](std::string_view of, std::string_view zero, std::string_view how) {
    return result(
        fmt::format("  z = f32[] constant({})\n  t = {}\n  r = f32[2,2] reduce(t, z), {}\n"
                    "  ROOT s = f32[4] reshape(r)",
                    zero, of, how));
  };
  EXPECT_EQ(with("f32[2,2,6] reshape(x)", "0", "dimensions={2}, to_apply=add"), kKnown);
  EXPECT_EQ(with("f32[2,1,2,2,3] reshape(x)", "0", "dimensions={1,3,4}, to_apply=add"), kKnown);
  EXPECT_FALSE(with("f32[6,2,2] reshape(x)", "0", "dimensions={0}, to_apply=add").first);
  EXPECT_FALSE(with("f32[2,6,2] reshape(x)", "0", "dimensions={1}, to_apply=add").first);
  EXPECT_FALSE(with("f32[2,2,6] reshape(y)", "0", "dimensions={2}, to_apply=add").first);
  EXPECT_FALSE(with("f32[2,2,6] reshape(x)", "1", "dimensions={2}, to_apply=add").first);
  EXPECT_FALSE(with("f32[2,2,6] reshape(x)", "0", "dimensions={2}, to_apply=most").first);
}

// Of a convolution call with an epilogue the convolution is known, the epilogue by its numbers alone.
TEST(Values, ConvolutionsWithEpilogue) {
  auto universe = std::make_shared<Universe>();
  const std::string head =
      "HloModule m\nENTRY e {\n  x = f32[2,6,6,3] parameter(0)\n  k = f32[3,3,3,4] parameter(1)\n"
      "  b = f32[4] parameter(2)\n  s = f32[2,6,6,4] parameter(3)\n";
  auto stage = [&](const std::string& body, StageTypes types) {
    auto m = parse_module(head + body + "\n}\n", universe, {"t", 20});
    return std::make_shared<StageModule>(*m, EvalOptions(), 1, types);
  };
  const std::string how = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
  auto call = [&](const char* operands, const char* mode, const char* side, const std::string& window) {
    return fmt::format(
        "  t = f32[2,6,6,3] negate(x)\n  n = f32[4] negate(b)\n"
        "  c = (f32[2,6,6,4], u8[0]) custom-call({}), {}, custom_call_target=\"__cudnn$convBiasActivationForward\", "
        "backend_config={{\"cudnn_conv_backend_config\":{{\"activation_mode\":\"{}\",\"conv_result_scale\":1,"
        "\"side_input_scale\":{}}}}}\n  ROOT g = f32[2,6,6,4] get-tuple-element(c), index=0",
        operands, window, mode, side);
  };
  for (StageTypes types : {StageTypes::kWide, StageTypes::kOwn}) {
    auto first = stage("  ROOT c = f32[2,6,6,4] convolution(x, k), " + how, types);
    Numbering n(universe, int64_t{1} << 30, types == StageTypes::kOwn);
    std::vector<Term> arguments;
    for (InstId p : first->m().comp(first->m().entry()).params)
      arguments.push_back(n.place({seeded_input(*universe, first->m().shape_id(p), 3, arguments.size(), false)}));
    StageWalk(n, first).run(arguments);
    auto result = [&](const std::string& body) {
      const int64_t before = n.count.operations;
      auto module = stage(body, types);
      const Term t = StageWalk(n, module).run(arguments).result;
      const int64_t evaluated = n.count.operations - before;
      // What the evaluator gives of the call as a whole, bit by bit, also where it has been let go.
      std::vector<Value> given;
      for (const Term& a : arguments) given.push_back(n.values(a.number)[0]);
      EXPECT_EQ(*Evaluator(module->m()).run(given).data, *n.values(t.number)[0].data) << body;
      return std::pair(t.number, evaluated);
    };
    const auto [plain, once] = result(call("x, k, b, s", "kNone", "1", how));
    EXPECT_EQ(once, 1);
    EXPECT_EQ(result(call("x, k, b, s", "kNone", "1", how)), std::pair(plain, int64_t{0}));
    for (const std::string& other : {call("x, k, b, s", "kTanh", "1", how), call("x, k, b, s", "kNone", "0.5", how),
                                     call("x, k, b", "kNone", "1", how), call("x, k", "kNone", "1", how)}) {
      const auto [number, evaluated] = result(other);
      EXPECT_NE(number, plain) << other;
      EXPECT_LE(evaluated, 1) << other;
    }
    for (const std::string& other :
         {call("t, k, b, s", "kNone", "1", how), call("x, k, n, s", "kNone", "1", how),
          call("x, k, b, s", "kNone", "1", "window={size=3x3 pad=0_2x1_1}, dim_labels=b01f_01io->b01f")})
      EXPECT_NE(result(other).first, plain) << other;
  }
}

// Little is kept of what is cheap to compute again, all of what is not; what was let go comes back as it was.
TEST(Values, CheapOnesAreLetGo) {
  std::string text = "HloModule m\nENTRY e {\n  p = f64[4096] parameter(0)\n  v0 = f64[4096] sine(p)\n";
  text += "  q = f64[64,64] reshape(p)\n";
  text += "  product = f64[64,64] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  for (int k = 1; k < 60; ++k) text += fmt::format("  v{} = f64[4096] {}(v{})\n", k, k % 3 ? "sine" : "negate", k - 1);
  text += "  ROOT r = (f64[64,64], f64[4096]) tuple(product, v59)\n}\n";
  auto universe = std::make_shared<Universe>();
  auto m = parse_module(text, universe, {"t", 20});
  Value argument = seeded_input(*universe, m->shape_id(m->comp(m->entry()).params[0]), 3, 0, false);
  auto walked = [&](Numbering& n) {
    auto module = std::make_shared<StageModule>(*m, EvalOptions(), 1, StageTypes::kWide);
    return StageWalk(n, module).run({n.place({argument})});
  };
  const int64_t bytes = 4096 * 8;
  Numbering all(universe, 1000 * bytes, false), few(universe, 80 * bytes, false);
  StageNumbers a = walked(all), b = walked(few);
  int64_t kept = 0;
  for (const Visit& v : b.visits) {
    if (!v.term.is_array()) continue;
    bool here = few[v.term.number].each[0].data != nullptr;
    kept += here;
    EXPECT_TRUE(here || b.module->m().op(v.inst) != Opcode::Dot);
  }
  EXPECT_LE(kept, 20);
  // What was in memory before says nothing of how much.
  alignas(Numbering) char odd[sizeof(Numbering)];
  std::memset(odd, 0x7E, sizeof odd);
  asm volatile("" : : "r"(odd) : "memory");  // or it may be left out
  auto* again = new (odd) Numbering(universe, 80 * bytes, false);
  walked(*again);
  EXPECT_LE(again->kept(), 20 * bytes);
  again->~Numbering();
  ASSERT_EQ(a.visits.size(), b.visits.size());
  for (size_t k = 0; k < a.visits.size(); ++k) {
    if (!a.visits[k].term.is_array()) continue;
    Value x = all.values(a.visits[k].term.number)[0], y = few.values(b.visits[k].term.number)[0];
    EXPECT_EQ(*x.data, *y.data) << k;
  }
  EXPECT_EQ(all.count.again, 0);
  EXPECT_GT(few.count.again, 20);
}

}  // namespace
}  // namespace hlo
