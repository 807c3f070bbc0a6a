// What products go through before kernels are made of them: vectors as matrices, long sums in parts
// (xla/backends/gpu/transforms/gemv_rewriter.cc, splitk_rewriter.cc).
#include <cmath>

#include "ir/analysis/fusion/fusion_view.h"
#include "ir/target/gpu_target.h"
#include "passes/layout/physical.h"

namespace hlo {
namespace {

struct Dot {
  explicit Dot(const Module& m, InstId i)
      : lhs_batch(m.attrs(i).ints(Attr::lhs_batch_dims)),
        rhs_batch(m.attrs(i).ints(Attr::rhs_batch_dims)),
        lhs_contracting(m.attrs(i).ints(Attr::lhs_contracting_dims)),
        rhs_contracting(m.attrs(i).ints(Attr::rhs_contracting_dims)) {}
  Dims lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
};

// The same product of other operands.
InstId dot_like(Module& m, InstId like, const std::vector<InstId>& operands, const Dot& dims, ShapeId shape) {
  const InstId made = m.clone_inst(like, m.parent(like), operands, shape);
  AttrSet a = m.attrs(made);
  auto put = [&](Attr key, const Dims& value) {
    if (value.empty())
      a.erase(key);
    else
      a.set(key, value);
  };
  put(Attr::lhs_batch_dims, dims.lhs_batch), put(Attr::rhs_batch_dims, dims.rhs_batch);
  // A dot has these, where nothing is contracted as well.
  a.set(Attr::lhs_contracting_dims, dims.lhs_contracting), a.set(Attr::rhs_contracting_dims, dims.rhs_contracting);
  m.set_attrs(made, m.u().attrs(std::move(a)));
  return made;
}

Dims shifted(Dims dims, int64_t from, int64_t by) {
  for (int64_t& d : dims)
    if (d >= from) d += by;
  return dims;
}

// --- gemv-rewriter ---

bool vector_to_matrix(Module& m, PassContext& ctx, InstId i) {
  Universe& u = m.u();
  const Dot d(m, i);
  auto kept = [&](size_t n) {
    const Dims &b = n ? d.rhs_batch : d.lhs_batch, &c = n ? d.rhs_contracting : d.lhs_contracting;
    return m.shape(m.operand(i, n)).dims.size() - b.size() - c.size();
  };
  if ((kept(0) == 0) == (kept(1) == 0)) return false;
  const size_t vector = kept(0) == 0 ? 0 : 1;
  if (kept(1 - vector) != 1) return false;
  for (InstId x : {m.operand(i, 0), m.operand(i, 1), i})
    if (m.shape(x).is_dynamic()) return false;
  if (!lies_by_default(m.shape(m.operand(i, vector))) || !lies_by_default(m.shape(i))) return false;
  if (!ctx.spend(m, "vector as a matrix", {i})) return false;
  std::vector<InstId> operands{m.operand(i, 0), m.operand(i, 1)};
  Dims dims = m.shape(operands[vector]).dims;
  dims.push_back(1);
  operands[vector] = bitcast_to(m, operands[vector], u.array(m.shape(operands[vector]).type, dims));
  dims = m.shape(i).dims;
  dims.insert(vector == 0 ? dims.end() - 1 : dims.end(), 1);
  const InstId dot = dot_like(m, i, operands, d, u.array(m.shape(i).type, dims));
  return m.replace(i, bitcast_to(m, dot, m.shape_id(i)), {.relay_control = true});
}

// --- splitk-rewriter ---

struct Sizes {
  int64_t batch = 1, rows = 1, columns = 1, sum = 1;
  int64_t lhs_bits = 0, rhs_bits = 0, sum_bits = 0, result_bits = 0, flops = 2;
};

class SplitK {
 public:
  SplitK(Module& m, PassContext& ctx, const GpuTarget& target)
      : m_(m), u_(m.u()), ctx_(ctx), cores_(static_cast<double>(target.core_count)) {}

  bool visit(InstId i) {
    const Dot d(m_, i);
    if (d.lhs_contracting.size() != 1 || d.rhs_contracting.size() != 1) return false;
    if (m_.shape(m_.operand(i, 0)).type == ElementType::S32 || m_.shape(m_.operand(i, 1)).type == ElementType::S32)
      return false;
    for (InstId x : {m_.operand(i, 0), m_.operand(i, 1), i})
      if (m_.shape(x).is_dynamic() || m_.shape(x).has_zero() || !u_.bytes(m_.shape_id(x)).fits()) return false;
    const Sizes s = sizes(i, d);
    int64_t parts = 1;
    double least = cost(s, 1);
    for (int64_t k = 2; k <= 2048; k *= 2)
      if (const double c = cost(s, k); c < least) least = c, parts = k;
    if (parts == 1 || !ctx_.spend(m_, "sum in parts", {i}, std::to_string(parts))) return false;
    return split(i, d, s, parts);
  }

 private:
  ElementType sum_type(InstId i) const {
    const std::string_view algorithm = u_.text(m_.attrs(i).text(Attr::algorithm));
    if (algorithm.ends_with("_f32") || algorithm.find("_f32_x") != std::string_view::npos) return ElementType::F32;
    if (algorithm == "dot_f16_f16_f16") return ElementType::F16;
    const ElementType t = m_.shape(i).type;
    return t == ElementType::F16 || t == ElementType::BF16 || (is_float(t) && type_bits(t) == 8) ? ElementType::F32 : t;
  }
  int64_t bits(ElementType t) const { return element_bits(t); }
  // Of what is read, before conversions and the like that are done on the way.
  int64_t source_bits(InstId i) const {
    while (op_info(m_.op(i)).elementwise && m_.operand_count(i) == 1) i = m_.operand(i, 0);
    return bits(m_.shape(i).type);
  }

  Sizes sizes(InstId i, const Dot& d) const {
    Sizes s;
    const Dims &lhs = m_.shape(m_.operand(i, 0)).dims, &rhs = m_.shape(m_.operand(i, 1)).dims;
    for (int64_t k = 0; k < static_cast<int64_t>(lhs.size()); ++k)
      (contains(d.lhs_batch, k)         ? s.batch
       : contains(d.lhs_contracting, k) ? s.sum
                                        : s.rows) *= lhs[static_cast<size_t>(k)];
    for (int64_t k = 0; k < static_cast<int64_t>(rhs.size()); ++k)
      if (!contains(d.rhs_batch, k) && !contains(d.rhs_contracting, k)) s.columns *= rhs[static_cast<size_t>(k)];
    s.lhs_bits = source_bits(m_.operand(i, 0)), s.rhs_bits = source_bits(m_.operand(i, 1));
    s.sum_bits = bits(sum_type(i)), s.result_bits = bits(m_.shape(i).type);
    const std::string_view algorithm = u_.text(m_.attrs(i).text(Attr::algorithm));
    s.flops = algorithm.ends_with("x3") ? 12 : algorithm.ends_with("x6") ? 20 : algorithm.ends_with("x9") ? 28 : 2;
    return s;
  }

  // XLA's measure of time, with weights of its own, fit for Hopper.
  double cost(const Sizes& s, int64_t parts) const {
    constexpr double kCompute = 100, kMemory = 0.194136, kReduction = 193.1384, kLaunch = 4.36e7;
    constexpr int64_t kTile = 128;
    const auto number = [](int64_t n) { return static_cast<double>(n); };
    const int64_t sum = (s.sum + parts - 1) / parts;
    const double batch = number(s.batch) * number(parts);
    const double tile = number(std::min(s.rows, kTile)) * number(std::min(s.columns, kTile));
    const double tiles = batch * number((s.rows + kTile - 1) / kTile) * number((s.columns + kTile - 1) / kTile);
    const double waves = std::max(1.0, tiles / (cores_ * (number(kTile * kTile) / tile)));
    const double compute = number(s.flops) * tile * number(sum) * waves * kCompute;
    const double reads = number(s.rows) * number(s.sum) * number(s.batch) * number(s.lhs_bits) / 8.0 +
                         number(s.columns) * number(s.sum) * number(s.batch) * number(s.rhs_bits) / 8.0;
    const double results = number(s.rows) * number(s.columns);
    const double writes = results * batch * number(parts > 1 ? s.sum_bits : s.result_bits) / 8.0;
    const double dot = std::max(compute, (reads + writes) * kMemory);
    if (parts == 1) return dot;
    const double again =
        number(batch) * results * number(s.sum_bits) / 8.0 + number(s.batch) * results * number(s.result_bits) / 8.0;
    return dot + kLaunch + again * kReduction;
  }

  // The summed dimension as [parts, size / parts], padded before; nothing moves.
  InstId operand(InstId x, int64_t dim, int64_t padded, int64_t parts) {
    const auto at = static_cast<size_t>(dim);
    Shape s = m_.shape(x);
    if (s.dims[at] != padded) {
      std::vector<PaddingDim> padding(s.dims.size());
      padding[at].high = padded - s.dims[at];
      s.dims[at] = padded;
      const InstId zero = make_scalar(m_, m_.parent(x), s.type, 0);
      x = make(m_, m_.parent(x), Opcode::Pad, {x, zero}, attrs_of(u_, Opcode::Pad, {{Attr::padding, padding}}),
               u_.shape(s));
    }
    s.dims[at] /= parts;
    s.dims.insert(s.dims.begin() + dim, parts);
    Dims order;
    for (int64_t d : std::exchange(s.layout.minor_to_major, {})) {
      if (d >= dim) order.push_back(d + 1);
      if (d <= dim) order.push_back(d);
    }
    s.layout.minor_to_major = std::move(order);
    return make(m_, m_.parent(x), Opcode::Reshape, {x}, {}, u_.shape(std::move(s)));
  }

  bool split(InstId i, Dot d, const Sizes& s, int64_t parts) {
    constexpr int64_t kAlignment = 128;  // bits
    const int64_t least = std::min({kAlignment, s.lhs_bits, s.rhs_bits}), step = parts * kAlignment / least;
    const int64_t padded = (s.sum + step - 1) / step * step;
    const int64_t lhs = d.lhs_contracting[0], rhs = d.rhs_contracting[0];
    const std::vector<InstId> operands{operand(m_.operand(i, 0), lhs, padded, parts),
                                       operand(m_.operand(i, 1), rhs, padded, parts)};
    d.lhs_contracting = {lhs + 1}, d.rhs_contracting = {rhs + 1};
    d.lhs_batch = shifted(d.lhs_batch, lhs, 1), d.rhs_batch = shifted(d.rhs_batch, rhs, 1);
    // At the same place of both lists, where the left one stays sorted.
    const auto place =
        std::find_if(d.lhs_batch.begin(), d.lhs_batch.end(), [&](int64_t b) { return b > lhs; }) - d.lhs_batch.begin();
    d.lhs_batch.insert(d.lhs_batch.begin() + place, lhs);
    d.rhs_batch.insert(d.rhs_batch.begin() + place, rhs);
    Dims dims = m_.shape(i).dims;
    dims.insert(dims.begin() + place, parts);
    const ElementType type = sum_type(i);
    const InstId dot = dot_like(m_, i, operands, d, u_.array(type, dims));
    m_.set_uniquified_name(dot, "dot");
    const InstId zero = make_scalar(m_, m_.parent(i), type, 0);
    const CompId add = make_reducer(m_, "reduce_sub_computation", Opcode::Add, type);
    const InstId reduce = make(m_, m_.parent(i), Opcode::Reduce, {dot, zero},
                               attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, Dims{place}}, {Attr::to_apply, add}}),
                               u_.with_type(m_.shape_id(i), type));
    m_.set_meta(reduce, m_[i].meta);
    const InstId now =
        type == m_.shape(i).type ? reduce : make(m_, m_.parent(i), Opcode::Convert, {reduce}, {}, m_.shape_id(i));
    return m_.replace(i, now, {.relay_control = true});
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  double cores_;
};

template <class Rewrite>
bool each_dot(Module& m, Rewrite&& rewrite) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    visit_computation(m, c, [&](InstId i) {
      if (m.op(i) == Opcode::Dot && m.operand_count(i) == 2) changed |= rewrite(i);
    });
  return changed;
}

}  // namespace

//   dot(f32[4,8] A, f32[8] B)      →      bitcast(dot(A, f32[8,1] bitcast(B)))
bool run_gemv_rewriter(Module& m, PassContext& ctx) {
  return each_dot(m, [&](InstId i) { return vector_to_matrix(m, ctx, i); });
}

//   dot(f32[64,65536] A, B)      →      reduce(dot(f32[64,128,512] reshape(A), reshape(B))), the parts a batch
//   dimension
bool run_splitk_rewriter(Module& m, PassContext& ctx) {
  SplitK pass(m, ctx, named_gpu_target(ctx.word("gpu")));
  return each_dot(m, [&](InstId i) { return pass.visit(i); });
}

}  // namespace hlo
