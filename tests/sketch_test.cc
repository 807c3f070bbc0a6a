// What is remembered of a value, and the conversions that it is compared through.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "ir/eval/kernels.h"
#include "ir/literal.h"
#include "parser/parser.h"
#include "replay/inside/walk.h"
#include "replay/npz.h"

namespace hlo {
namespace {

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
