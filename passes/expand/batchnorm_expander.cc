// batchnorm_expander (xla/hlo/transforms/expanders? batchnorm_expander.cc of xla/service): batch norms in terms of
// elementwise operations and reductions. Creation order is XLA's, because names follow from it.
#include "passes/rewrite.h"

namespace hlo {
namespace {

class Expander {
 public:
  Expander(Module& m, InstId norm)
      : m_(m),
        u_(m.u()),
        norm_(norm),
        comp_(m.parent(norm)),
        shape_(m.shape_id(m.operand(norm, 0))),
        type_(u_[shape_].type),
        feature_(m.attrs(norm).integer(Attr::feature_index)),
        epsilon_(*m.attrs(norm).get<double>(Attr::epsilon)) {
    for (int i = 0; i < u_[shape_].rank(); ++i)
      if (i != feature_) others_.push_back(i);
    feature_shape_ = u_.array(type_, {u_[shape_].dims[static_cast<size_t>(feature_)]});
    plain_ = u_.with_default_layout(shape_);
  }

  void run() {
    switch (m_.op(norm_)) {
      case Opcode::BatchNormTraining:
        training();
        break;
      case Opcode::BatchNormInference:
        inference();
        break;
      default:
        grad();
    }
  }

 private:
  InstId add(Opcode op, std::vector<InstId> operands, AttrsId attrs = {}, ShapeId shape = {}) {
    InstId i = make(m_, comp_, op, std::move(operands), attrs, shape);
    m_.set_meta(i, m_[norm_].meta);
    return i;
  }
  InstId scalar(double v, ElementType type) {
    InstId c = make_scalar(m_, comp_, type, v);
    m_.set_meta(c, m_[norm_].meta);
    return c;
  }
  InstId scalar(double v) { return scalar(static_cast<double>(static_cast<float>(v)), type_); }
  InstId broadcast(InstId x, ShapeId to) {
    bool feature = u_[m_.shape_id(x)].rank() == 1 && u_[to].rank() != 1;
    Dims map = feature ? Dims{feature_} : Dims{};
    return add(Opcode::Broadcast, {x}, dims_attr(u_, Opcode::Broadcast, map), to);
  }
  InstId add2(InstId a, InstId b) { return add(Opcode::Add, {a, b}); }
  InstId sub(InstId a, InstId b) { return add(Opcode::Subtract, {a, b}); }
  InstId mul(InstId a, InstId b) { return add(Opcode::Multiply, {a, b}); }
  InstId div(InstId a, InstId b) { return add(Opcode::Divide, {a, b}); }
  InstId rsqrt(InstId a) { return add(Opcode::Rsqrt, {a}); }
  CompId reducer() {
    return make_reducer(m_, "scalar_add_computation", Opcode::Add, type_, "scalar_lhs", "scalar_rhs");
  }
  InstId sum(InstId x, InstId zero, CompId f) {
    AttrsId a = attrs_of(u_, Opcode::Reduce, {{Attr::dimensions, others_}, {Attr::to_apply, f}});
    return add(Opcode::Reduce, {x, zero}, a, feature_shape_);
  }
  // Elements a feature, from sizes that may be dynamic: s32 product, then the element type.
  InstId count() {
    InstId n = scalar(1, ElementType::S32);
    for (int64_t d : others_) {
      InstId size = add(Opcode::GetDimensionSize, {m_.operand(norm_, 0)}, dims_attr(u_, Opcode::GetDimensionSize, {d}),
                        u_.scalar(ElementType::S32));
      n = mul(size, n);
    }
    return add(Opcode::Convert, {n}, {}, u_.scalar(type_));
  }
  InstId mean(InstId n, InstId x) { return div(x, broadcast(n, feature_shape_)); }
  void finish(std::vector<InstId> parts) {
    InstId tuple = make(m_, comp_, Opcode::Tuple, std::move(parts));
    m_.replace(norm_, tuple);
  }

  void training() {
    InstId x = m_.operand(norm_, 0), scale = m_.operand(norm_, 1), offset = m_.operand(norm_, 2);
    InstId zero = scalar(0), eps = scalar(epsilon_);
    InstId eps_b = broadcast(eps, plain_);
    InstId n = count();
    InstId scale_b = broadcast(scale, plain_), offset_b = broadcast(offset, plain_);
    CompId f = reducer();
    InstId squared = mul(x, x);
    InstId sum_x = sum(x, zero, f), sum_sq = sum(squared, zero, f);
    InstId mean_x = mean(n, sum_x);
    InstId mean_b = broadcast(mean_x, plain_);
    InstId mean_sq = mean(n, sum_sq);
    InstId var = sub(mean_sq, mul(mean_x, mean_x));
    InstId var_b = broadcast(var, plain_);
    InstId inverse = rsqrt(add2(var_b, eps_b));
    InstId normalized = mul(sub(x, mean_b), inverse);
    InstId shifted = add2(mul(normalized, scale_b), offset_b);
    finish({shifted, mean_x, var});
  }

  void inference() {
    InstId x = m_.operand(norm_, 0), scale = m_.operand(norm_, 1), offset = m_.operand(norm_, 2),
           mean_x = m_.operand(norm_, 3), var = m_.operand(norm_, 4);
    InstId eps = broadcast(scalar(epsilon_), feature_shape_);
    InstId variance = add2(var, eps);
    InstId true_scale = mul(scale, rsqrt(variance));
    InstId true_shift = sub(offset, mul(mean_x, true_scale));
    InstId scaled = mul(x, broadcast(true_scale, plain_));
    InstId out = add2(scaled, broadcast(true_shift, plain_));
    m_.replace(norm_, out);
  }

  void grad() {
    InstId x = m_.operand(norm_, 0), scale = m_.operand(norm_, 1), mean_x = m_.operand(norm_, 2),
           var = m_.operand(norm_, 3), g = m_.operand(norm_, 4);
    InstId n = count();
    InstId zero = scalar(0), eps = scalar(epsilon_);
    InstId eps_x = broadcast(eps, plain_), eps_f = broadcast(eps, feature_shape_);
    InstId scale_b = broadcast(scale, plain_), var_b = broadcast(var, plain_), mean_b = broadcast(mean_x, plain_);
    InstId inverse_x = rsqrt(add2(var_b, eps_x)), inverse_f = rsqrt(add2(var, eps_f));
    InstId centred = sub(x, mean_b);
    InstId g_centred = mul(g, centred);
    CompId f = reducer();
    InstId sum_gx = sum(g_centred, zero, f), grad_beta = sum(g, zero, f);
    InstId grad_scale = mul(sum_gx, inverse_f);
    InstId i2 = broadcast(grad_beta, plain_), i3 = broadcast(sum_gx, plain_);
    InstId i4 = mul(i3, centred);
    InstId i5 = div(i4, add2(var_b, eps_x));
    InstId scaled = mul(scale_b, inverse_x);
    InstId scaled_n = div(scaled, broadcast(n, plain_));
    InstId i1 = mul(g, broadcast(n, plain_));
    InstId i6 = sub(sub(i1, i2), i5);
    InstId grad_x = mul(scaled_n, i6);
    finish({grad_x, grad_scale, grad_beta});
  }

  Module& m_;
  Universe& u_;
  InstId norm_;
  CompId comp_;
  ShapeId shape_, plain_, feature_shape_;
  ElementType type_;
  int64_t feature_;
  double epsilon_;
  Dims others_;
};

}  // namespace

bool run_batchnorm_expander(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::BatchNormTraining, Opcode::BatchNormInference, Opcode::BatchNormGrad})) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    visit_computation(m, c, [&](InstId i) {
      Opcode op = m.op(i);
      bool wanted = (op == Opcode::BatchNormTraining && ctx.flag("training")) ||
                    (op == Opcode::BatchNormInference && ctx.flag("inference")) ||
                    (op == Opcode::BatchNormGrad && ctx.flag("grad"));
      if (!wanted || m.has_control(i) || !ctx.spend(m, op_text(op), {i})) return;
      Expander(m, i).run();
      changed = true;
    });
  return changed;
}

}  // namespace hlo
