#include "gpu_exec/lower/matrix_vector.h"

#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr int64_t kMostVectors = 4, kLeastMatrixRows = 32, kLeastContracted = 32;

// One side as dimensions of the dot see it.
struct Side {
  InstId array;
  Dims batch, contracted, free;
};

class Rewriter {
 public:
  explicit Rewriter(Module& m) : m_(m), u_(m.u()) {}

  bool run() {
    bool any = false;
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.post_order(c))
        if (m_.op(i) == Opcode::Dot) any |= rewrite(i);
    if (any) m_.cleanup();
    return any;
  }

 private:
  int64_t size(const Side& s, const Dims& dims) const {
    int64_t n = 1;
    for (int64_t d : dims) n *= m_.shape(s.array).dims[static_cast<size_t>(d)];
    return n;
  }
  Side side(InstId dot, size_t k) const {
    const AttrSet& a = m_.attrs(dot);
    Side s;
    s.array = m_.operand(dot, k);
    s.batch = a.ints(k ? Attr::rhs_batch_dims : Attr::lhs_batch_dims);
    s.contracted = a.ints(k ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims);
    for (int64_t d = 0; d < m_.shape(s.array).rank(); ++d)
      if (!contains(s.batch, d) && !contains(s.contracted, d)) s.free.push_back(d);
    return s;
  }

  // A product of a matrix with a few vectors.
  struct Form {
    Side matrix, vectors;
    bool swapped = false;
    int64_t n = 0, many = -1;  // vectors; the dimension that tells them apart, or -1
    Dims vector_dims, map;     // of one vector; where they are in the matrix
  };

  // False where the dot is none.
  bool fits(InstId dot, Form& f) const {
    const Shape out = m_.shape(dot);
    if (m_.op(dot) != Opcode::Dot || !is_float(out.type) || type_bits(out.type) < 16) return false;
    f.matrix = side(dot, 0), f.vectors = side(dot, 1);
    const Side &matrix = f.matrix, &vectors = f.vectors;
    f.swapped = size(matrix, matrix.free) < size(vectors, vectors.free);
    if (f.swapped) std::swap(f.matrix, f.vectors);
    const Shape big = m_.shape(matrix.array), small = m_.shape(vectors.array);
    for (const Shape* s : {&out, &big, &small})
      if (s->type != out.type || s->is_dynamic() || (s->has_layout && !is_default_layout(s->layout))) return false;
    f.n = size(vectors, vectors.free);
    if (f.n > kMostVectors || f.n < 1 || size(matrix, matrix.free) < kLeastMatrixRows ||
        size(matrix, matrix.contracted) < kLeastContracted || matrix.contracted.empty())
      return false;
    // At most one dimension tells the vectors apart.
    for (int64_t d : vectors.free) {
      if (small.dims[static_cast<size_t>(d)] == 1) continue;
      if (f.many >= 0) return false;
      f.many = d;
    }
    // What is left of the matrix' dimensions is the result's, in its order; a vector's lie in the order of the matrix'.
    Dims kept, wanted = matrix.batch;
    for (int64_t d = 0; d < big.rank(); ++d)
      if (!contains(matrix.contracted, d)) kept.push_back(d);
    wanted.insert(wanted.end(), matrix.free.begin(), matrix.free.end());
    if (kept != wanted) return false;
    for (int64_t d = 0; d < small.rank(); ++d) {
      if (contains(vectors.free, d)) continue;
      f.vector_dims.push_back(small.dims[static_cast<size_t>(d)]);
      const Dims &mine = contains(vectors.batch, d) ? vectors.batch : vectors.contracted,
                 &theirs = contains(vectors.batch, d) ? matrix.batch : matrix.contracted;
      f.map.push_back(theirs[static_cast<size_t>(std::find(mine.begin(), mine.end(), d) - mine.begin())]);
    }
    return std::is_sorted(f.map.begin(), f.map.end());
  }

  // The products with each vector, one after the other.
  CompId products(const Form& f, ElementType out) {
    const Shape big = m_.shape(f.matrix.array), small = m_.shape(f.vectors.array);
    CompId body = m_.add_computation("fused_vector_products");
    auto parameter = [&](uint32_t k, InstId of) {
      return m_.add(body, {Opcode::Parameter, m_.shape_id(of), {}, {}, {}, "p", k});
    };
    const ElementType sum_type = type_bits(out) == 16 ? ElementType::F32 : out;
    auto widened = [&](InstId v) { return m_.shape(v).type == sum_type ? v : make_convert(m_, v, sum_type); };
    InstId a = widened(parameter(0, f.matrix.array)), x = parameter(1, f.vectors.array);
    InstId zero = make_scalar(m_, body, sum_type, 0.0);
    CompId add = make_reducer(m_, "add", Opcode::Add, sum_type);
    Shape wide = big;
    wide.type = sum_type;
    const ShapeId wide_id = u_.shape(wide);
    std::vector<InstId> sums;
    for (int64_t j = 0; j < f.n; ++j) {
      InstId v = x;
      if (f.n > 1) {
        std::vector<SliceDim> one;
        for (int64_t d : small.dims) one.push_back({0, d, 1});
        one[static_cast<size_t>(f.many)] = {j, j + 1, 1};
        v = make(m_, body, Opcode::Slice, {x}, attrs_of(u_, Opcode::Slice, {{Attr::slice, std::move(one)}}));
      }
      v = make_broadcast(m_, body, make_reshape(m_, widened(v), f.vector_dims), f.map, wide_id);
      InstId product = make(m_, body, Opcode::Multiply, {a, v});
      sums.push_back(
          make(m_, body, Opcode::Reduce, {product, zero},
               attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, f.matrix.contracted}, {Attr::to_apply, add}})));
    }
    m_.set_root(body, f.n == 1 ? sums[0] : make(m_, body, Opcode::Tuple, sums));
    return body;
  }

  bool rewrite(InstId dot) {
    Form f;
    if (!fits(dot, f)) return false;
    const Shape out = m_.shape(dot);
    CompId body = products(f, out.type);
    CompId c = m_.parent(dot);
    AttrsId attrs = attrs_of(u_, Opcode::Fusion, {{Attr::kind, u_.str("kInput")}, {Attr::calls, body}});
    InstId fusion = m_.add(c, {Opcode::Fusion,
                               m_.shape_id(m_.comp(body).root),
                               {f.matrix.array, f.vectors.array},
                               attrs,
                               m_[dot].meta,
                               "vector_products"});
    // The vectors' dimensions are of size one in each part.
    Dims part = out.dims;
    int64_t at = -1;
    for (size_t k = 0; k < f.vectors.free.size(); ++k) {
      size_t d = f.matrix.batch.size() + (f.swapped ? k : f.matrix.free.size() + k);
      part[d] = 1;
      if (f.vectors.free[k] == f.many) at = static_cast<int64_t>(d);
    }
    std::vector<InstId> parts;
    for (int64_t j = 0; j < f.n; ++j) {
      InstId v = f.n == 1 ? fusion : make_element(m_, fusion, j);
      parts.push_back(m_.shape(v).dims == part ? v : make_reshape(m_, v, part));
    }
    InstId made = parts[0];
    if (f.n > 1) made = make(m_, c, Opcode::Concatenate, parts, dims_attr(u_, Opcode::Concatenate, {at}));
    if (m_.shape(made).type != out.type) made = make_convert(m_, made, out.type);
    const bool root = m_.is_root(dot);
    m_.replace_all_uses(dot, made);
    if (root) m_.set_root(c, made);
    m_.remove(dot);
    return true;
  }

  Module& m_;
  Universe& u_;
};

}  // namespace

bool reduce_vector_products(Module& m) { return Rewriter(m).run(); }

}  // namespace hlo
