// tree-reduction-rewriter (xla/service/gpu/transforms/tree_reduction_rewriter.cc): a reduction that is too long for one
// block of threads is done in two, so that no two blocks add to one number.
#include <cmath>

#include "ir/analysis/fusion/reduction.h"
#include "passes/layout/physical.h"

namespace hlo {
namespace {

class TreeReduction {
 public:
  TreeReduction(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool visit(InstId i) {
    if (m_.op(i) != Opcode::Reduce) return false;
    const size_t n = m_.operand_count(i) / 2;
    Dims gone = m_.attrs(i).ints(Attr::dimensions);
    std::sort(gone.begin(), gone.end());
    if (gone.empty()) return false;
    for (size_t k = 0; k < n; ++k) {
      const Shape& s = m_.shape(m_.operand(i, k));
      if (!lies_by_default(s) || s.is_dynamic() || s.has_zero()) return false;
      if (!u_.bytes(m_.shape_id(m_.operand(i, k))).fits()) return false;
    }
    const auto kind = kernel_reduction(m_.shape(m_.operand(i, 0)), gone);
    if (!kind) return false;
    const bool batch_too_long = kind->row && kind->dims[0] > kMostRowBatch;
    if (!batch_too_long && (kind->row ? kind->dims[2] <= kMostRow : kind->dims[1] <= kMostColumn)) return false;
    if (batch_too_long && gone.size() < 2) return false;  // reduction-dimension-grouper was not here
    if (!ctx_.spend(m_, batch_too_long ? "rows first, then their results" : "one dimension in two", {i})) return false;
    return batch_too_long ? rows_first(i, gone) : in_two(i, gone, *kind);
  }

 private:
  struct Parts {
    int64_t outer, inner;  // their product is what the dimension is padded to
  };

  // Near the root, so that little is padded; `outer` is not the smaller one.
  static Parts parts(int64_t size, int64_t bound) {
    int64_t inner = std::min(static_cast<int64_t>(std::floor(std::sqrt(static_cast<double>(size)))), bound);
    auto missing = [&](int64_t k) { return (k - size % k) % k; };
    int64_t least = missing(inner);
    const int64_t start = inner;
    int64_t outer = (size + least) / inner;
    for (int64_t k = start - 1; k > start / 2; --k) {
      const int64_t pads = missing(k);
      const bool power = (k & (k - 1)) == 0;
      if (pads > least || (pads == least && !power)) continue;
      least = pads, inner = k, outer = (size + pads) / k;
    }
    return {outer, inner};
  }
  static bool swapped(const ReductionShape& kind, Parts p, int64_t size, int64_t bound) {
    if (p.outer > bound) return false;
    if (!kind.row) return true;
    const int64_t minor = kind.dims[2];
    // Can two elements be read at once as the dimensions stand? Then the longer one need not be the inner one.
    if (p.inner % 2 == 0 && minor % 2 == 0) return p.inner * 2 < p.outer || p.outer % 2 == 0;
    return size % 2 == 0 || p.outer % 2 != 0;
  }

  InstId reduced(InstId like, const std::vector<InstId>& inputs, const Dims& dims) {
    std::vector<InstId> operands = inputs;
    const size_t n = inputs.size();
    std::vector<ShapeId> results;
    for (size_t k = 0; k < n; ++k) {
      operands.push_back(m_.operand(like, n + k));
      const Shape& in = m_.shape(inputs[k]);
      Dims left;
      for (int64_t d = 0; d < in.rank(); ++d)
        if (!contains(dims, d)) left.push_back(in.dims[static_cast<size_t>(d)]);
      results.push_back(u_.array(in.type, left));
    }
    const ShapeId shape = m_.shape(like).is_tuple() ? u_.tuple(results) : results[0];
    const InstId made = m_.clone_inst(like, m_.parent(like), operands, shape);
    m_.set_uniquified_name(made, "reduce");
    m_.set_attr(made, Attr::dimensions, dims);
    return made;
  }
  // The second reduction has the shape of what it stands for.
  bool finish(InstId i, InstId inner, int64_t dim) {
    std::vector<InstId> inputs{inner};
    if (m_.shape(inner).is_tuple()) {
      inputs.clear();
      for (size_t k = 0; k < m_.operand_count(i) / 2; ++k)
        inputs.push_back(make_element(m_, inner, static_cast<int64_t>(k)));
    }
    const InstId outer = reduced(i, inputs, {dim});
    m_.set_shape(outer, m_.shape_id(i));
    return m_.replace(i, outer, {.relay_control = true});
  }

  std::vector<InstId> inputs_of(InstId i) {
    const auto all = m_.operands(i);
    return {all.begin(), all.begin() + static_cast<ptrdiff_t>(all.size() / 2)};
  }

  bool rows_first(InstId i, const Dims& gone) {
    const InstId inner = reduced(i, inputs_of(i), {gone.back()});
    return finish(i, inner, 0);
  }

  bool in_two(InstId i, const Dims& gone, const ReductionShape& kind) {
    const int64_t dim = gone.back(), bound = kind.row ? kMostRow : kMostColumn;
    const auto at = static_cast<size_t>(dim);
    std::vector<InstId> inputs = inputs_of(i);
    const int64_t size = m_.shape(inputs[0]).dims[at];
    Parts p = parts(size, bound);
    if (swapped(kind, p, size, bound)) std::swap(p.outer, p.inner);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const ElementType type = m_.shape(inputs[k]).type;
      Dims dims = m_.shape(inputs[k]).dims;
      if (const int64_t more = p.outer * p.inner - size) {
        std::vector<PaddingDim> padding(dims.size());
        padding[at].high = more;
        dims[at] += more;
        inputs[k] = make(m_, m_.parent(i), Opcode::Pad, {inputs[k], m_.operand(i, inputs.size() + k)},
                         attrs_of(u_, Opcode::Pad, {{Attr::padding, padding}}), u_.array(type, dims));
      }
      dims[at] = p.outer;
      dims.insert(dims.begin() + dim + 1, p.inner);
      inputs[k] = bitcast_to(m_, inputs[k], u_.array(type, dims));
    }
    Dims inner = gone;
    inner.back() = dim + 1;
    return finish(i, reduced(i, inputs, inner), dim - static_cast<int64_t>(gone.size()) + 1);
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
};

}  // namespace

//   reduce(f32[40000] A)      →      reduce(reduce(f32[200,200] bitcast(A)))
bool run_tree_reduction_rewriter(Module& m, PassContext& ctx) {
  TreeReduction pass(m, ctx);
  return visit_until_still(m, [&](InstId i) { return pass.visit(i); });
}

}  // namespace hlo
