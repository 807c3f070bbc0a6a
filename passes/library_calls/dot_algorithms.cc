// dot-algorithm-rewriter (xla/backends/gpu/transforms/dot_algorithm_rewriter.cc): products of f32 whose algorithm is
// made of several of a narrower type become those.
#include <array>

#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr uint32_t kUpperOfBf16 = 0xFFFF0000, kUpperOfTf32 = 0xFFFFE000;

class Splitter {
 public:
  Splitter(Module& m, InstId dot) : m_(m), u_(m.u()), dot_(dot), comp_(m.parent(dot)) {}

  //   dot(A, B), algorithm=dot_bf16_bf16_f32      →      dot(bf16 convert(A), bf16 convert(B))
  InstId rounded() { return product(as_bf16(m_.operand(dot_, 0)), as_bf16(m_.operand(dot_, 1)), "dot_bf16_bf16_f32"); }

  //   …_x3      →      A = high + low, and of their products all but low · low
  InstId two_parts(bool tf32) {
    std::array<InstId, 2> sides[2];
    for (size_t side : {size_t{0}, size_t{1}}) {
      const InstId x = m_.operand(dot_, side);
      const InstId high = truncated(x, tf32 ? kUpperOfTf32 : kUpperOfBf16), low = minus(x, high);
      sides[side] = {tf32 ? high : as_bf16(high), tf32 ? low : as_bf16(low)};
    }
    auto times = [&](size_t l, size_t r) {
      return product(sides[0][l], sides[1][r], tf32 ? "dot_tf32_tf32_f32" : "dot_bf16_bf16_f32");
    };
    const InstId low_high = times(1, 0), high_low = times(0, 1), high_high = times(0, 0);
    return plus(without_nan(plus(low_high, high_low)), high_high);
  }

  //   …_x6, …_x9      →      A = high + middle + low, and their products from the least on
  InstId three_parts(bool all) {
    std::array<InstId, 3> sides[2];
    for (size_t side : {size_t{0}, size_t{1}}) {
      const InstId x = m_.operand(dot_, side);
      const InstId high = truncated(x, kUpperOfBf16), rest = minus(x, high), middle = truncated(rest, kUpperOfBf16);
      const InstId low = minus(rest, middle);
      sides[side] = {as_bf16(high), as_bf16(middle), as_bf16(low)};
    }
    using Pair = std::pair<size_t, size_t>;
    std::vector<Pair> pairs;
    if (all) pairs = {{2, 2}, {2, 1}, {1, 2}};
    pairs.push_back({1, 1});
    for (Pair p : {Pair(0, 2), Pair(2, 0), Pair(0, 1), Pair(1, 0), Pair(0, 0)}) pairs.push_back(p);
    std::vector<InstId> products;
    for (auto [l, r] : pairs) products.push_back(product(sides[0][l], sides[1][r], "dot_bf16_bf16_f32"));
    InstId sum = products[0];
    for (size_t k = 1; k + 1 < products.size(); ++k) sum = plus(sum, products[k]);
    return plus(without_nan(sum), products.back());
  }

 private:
  InstId as_bf16(InstId x) {
    return make_derived(m_, x, Opcode::Convert, {x}, {}, u_.with_type(m_.shape_id(x), ElementType::BF16));
  }
  InstId minus(InstId x, InstId y) { return make_derived(m_, x, Opcode::Subtract, {x, y}, {}, m_.shape_id(x)); }
  InstId plus(InstId x, InstId y) { return make(m_, comp_, Opcode::Add, {x, y}, {}, m_.shape_id(x)); }
  // The bits of the mask alone.
  InstId truncated(InstId x, uint32_t mask) {
    const ShapeId bits = u_.with_type(m_.shape_id(x), ElementType::U32);
    const InstId whole = make_derived(m_, x, Opcode::BitcastConvert, {x}, {}, bits);
    const InstId scalar = make_scalar(m_, comp_, ElementType::U32, mask);
    const InstId spread =
        make_derived(m_, whole, Opcode::Broadcast, {scalar}, dims_attr(u_, Opcode::Broadcast, {}), bits);
    const InstId kept = make_derived(m_, whole, Opcode::And, {whole, spread}, {}, bits);
    return make_derived(m_, kept, Opcode::BitcastConvert, {kept}, {}, m_.shape_id(x));
  }
  InstId product(InstId lhs, InstId rhs, std::string_view algorithm) {
    AttrSet set = m_.attrs(dot_);
    set.set(Attr::algorithm, u_.str(algorithm));
    for (Attr key : {Attr::sharding, Attr::frontend_attributes, Attr::backend_config, Attr::statistics}) set.erase(key);
    return make(m_, comp_, Opcode::Dot, {lhs, rhs}, u_.attrs(std::move(set)), m_.shape_id(dot_));
  }
  // Infinite times zero among the lesser products is no number; the greatest one alone says what is infinite.
  InstId without_nan(InstId x) {
    const ShapeId shape = m_.shape_id(x);
    const InstId infinite = make_broadcast(m_, comp_, make_scalar(m_, comp_, ElementType::F32, HUGE_VAL), {}, shape);
    const InstId size = make(m_, comp_, Opcode::Abs, {x}, {}, shape);
    const InstId is_number =
        make(m_, comp_, Opcode::Compare, {infinite, size},
             attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("GE")}}), u_.with_type(shape, ElementType::Pred));
    const InstId zero = make_broadcast(m_, comp_, make_scalar(m_, comp_, ElementType::F32, 0), {}, shape);
    return make(m_, comp_, Opcode::Select, {is_number, x, zero}, {}, shape);
  }

  Module& m_;
  Universe& u_;
  InstId dot_;
  CompId comp_;
};

}  // namespace

bool run_dot_algorithm_rewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Dot)) {
    const std::string_view algorithm = m.u().text(m.attrs(i).text(Attr::algorithm));
    bool wide = m.shape(i).type == ElementType::F32;
    for (InstId o : m.operands(i)) wide = wide && m.shape(o).type == ElementType::F32 && !m.shape(o).is_dynamic();
    const bool once = algorithm == "dot_bf16_bf16_f32", thrice = algorithm == "dot_bf16_bf16_f32_x3",
               six = algorithm == "dot_bf16_bf16_f32_x6", nine = algorithm == "dot_bf16_bf16_f32_x9",
               tf32 = algorithm == "dot_tf32_tf32_f32_x3";
    if (!wide || !(once || thrice || six || nine || tf32)) continue;
    if (!ctx.spend(m, "products of a narrower type", {i}, algorithm)) return changed;
    Splitter splitter(m, i);
    const InstId sum = once             ? splitter.rounded()
                       : thrice || tf32 ? splitter.two_parts(tf32)
                                        : splitter.three_parts(nine);
    m.replace_all_uses(i, sum);
    m.remove(i);
    changed = true;
  }
  return changed;
}

}  // namespace hlo
