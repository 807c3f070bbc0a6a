// What rounding may do: literals are folded in types of few digits, and nothing else is rounded here.
#include <algorithm>
#include <cmath>

#include "ir/types/literal.h"
#include "replay/judge/chosen/pair/pair.h"

namespace hlo {
namespace {

// Literals that are moved, one after the other; how much more than one moves the result rounding may.
constexpr size_t kMostMoved = 32;
constexpr double kTimesMoved = 2;
// Of the largest magnitude: what sums of f64 in another order may be off.
constexpr double kExactSums = 1e-10;

using Set = ExprSet;

}  // namespace

Set ByElements::Pair::float_literals(ExprId e, const Set& cut) const {
  Set out;
  for (ExprId at : reached({e}, cut)) {
    const Expr& x = s_.all[at];
    if (x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Constant && is_float(shape_of(at).type))
      out.insert(at);
  }
  return out;
}

// The numbers of `e` with one literal another one by its rounding.
bool ByElements::Pair::sample_moved(ExprId e, std::span<const int64_t> at, const Set& cut, Draw how,
                                    const DrawnNear* near, ExprId literal, Sampled* out) {
  ChosenElements::Options o = options_of(cut);
  o.cut = [&](ExprId x) { return x == literal || (cut.contains(x) && !s_.is_fixed(x)); };
  const int64_t turn = near ? near->turn : 0;
  ChosenElements elements(
      s_.all.all(),
      [&](ExprId x, std::span<const int64_t> indices, char* to) {
        if (x != literal)
          return draw_elements(s_.all, x, indices, s_.options.seed + static_cast<uint64_t>(turn), how, near, to);
        const Expr& leaf = s_.all[x];
        const Literal& l = leaf.m->literal(leaf.inst);
        const ElementType type = shape_of(x).type;
        const auto width = static_cast<size_t>(storage_bytes(type));
        for (size_t k = 0; k < indices.size(); ++k)
          store_double(type, to + k * width,
                       (1 + kRounding) * load_double(type, l.bytes.data() + static_cast<size_t>(indices[k]) * width));
      },
      std::move(o));
  return sample(elements, e, at, out);
}

// Both are alike but for some digits. Are these as many as literals that only one of them has, rounded, make of it?
bool ByElements::Pair::only_rounded(ExprId a, ExprId b, std::span<const int64_t> at, const Set& cut, Draw how,
                                    const DrawnNear* near, const Sampled& x, const Sampled& y) {
  const Magnitudes largest(x.values, y.values);
  auto off = [](double p, double q) { return p == q || (std::isnan(p) && std::isnan(q)) ? 0 : std::fabs(p - q); };
  auto within = [&](const std::vector<double>& allowed) {
    for (size_t k = 0; k < x.values.size(); ++k)
      if (!(off(x.values[k], y.values[k]) <=
            kExactSums * largest.at(x.values[k], y.values[k]) + kTimesMoved * allowed[k]))
        return false;
    return true;
  };
  std::vector<double> allowed(x.values.size(), 0);
  if (within(allowed)) return true;
  const Set of_a = float_literals(a, cut), of_b = float_literals(b, cut);
  size_t moved = 0;
  for (const bool first : {true, false})
    for (ExprId literal : first ? of_a : of_b) {
      const Expr& l = s_.all[literal];
      if ((first ? of_b : of_a).contains(literal) || l.leaf || l.m->literal(l.inst).bytes.empty()) continue;
      Sampled other;
      if (++moved > kMostMoved || !sample_moved(first ? a : b, at, cut, how, near, literal, &other)) return false;
      const Sampled& own = first ? x : y;
      for (size_t k = 0; k < allowed.size(); ++k)
        if (const double by = off(own.values[k], other.values[k]); std::isfinite(by)) allowed[k] += by;
    }
  if (within(allowed)) return true;
  unsure_ = "it differs by less than rounding, which no literal explains";
  return false;
}

}  // namespace hlo
