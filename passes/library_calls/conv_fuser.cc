// cudnn-fused-convolution-rewriter (xla/backends/gpu/transforms/cudnn_fused_conv_rewriter.cc): what follows a cuDNN
// convolution, and cuDNN can do, becomes part of the call.
#include <nlohmann/json.hpp>

#include "ir/backend_config.h"
#include "ir/library/cudnn.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

using Config = nlohmann::ordered_json;

class ConvFuser {
 public:
  ConvFuser(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    bool changed = false;
    for (CompId c : m_.nonfusion_computations()) {
      comp_ = c;
      changed |= each(&ConvFuser::scale);
      changed |= each(&ConvFuser::bias_or_side);
      changed |= each(&ConvFuser::bias_or_side);
      changed |= each(&ConvFuser::side_scale);
      changed |= each(&ConvFuser::relu);
      changed |= each(&ConvFuser::halves);
      changed |= each(&ConvFuser::bias_or_side);
      changed |= each(&ConvFuser::bias_or_side);
      changed |= each(&ConvFuser::side_scale);
      changed |= each(&ConvFuser::relu);
    }
    return changed;
  }

 private:
  bool each(bool (ConvFuser::*step)(InstId)) {
    bool changed = false;
    for (InstId i : m_.post_order(comp_))
      if (m_.alive(i) && !m_.has_control(i)) changed |= (this->*step)(i);
    return changed;
  }

  std::string_view target(InstId i) const {
    return m_.op(i) == Opcode::CustomCall ? u_.text(m_.attrs(i).text(Attr::custom_call_target)) : std::string_view();
  }
  const DimLabels& labels(InstId conv) const { return *m_.attrs(conv).get<DimLabels>(Attr::dim_labels); }
  // A forward call of the form that conv-rewriter gives it; others are left alone.
  bool forward(InstId conv) const {
    std::string_view t = target(conv);
    const bool biased = t == "__cudnn$convBiasActivationForward";
    return (t == "__cudnn$convForward" || (biased && m_.operand_count(conv) > 2)) && !m_.has_control(conv) &&
           is_cudnn_convolution_of_fitting_ranks(m_, conv);
  }
  // One that filters each feature alone is done best by cuDNN without anything else.
  bool fusible(InstId conv) const {
    if (!forward(conv)) return false;
    int64_t groups = m_.attrs(conv).integer(Attr::feature_group_count, 1);
    return groups == 1 || groups != m_.shape(m_.operand(conv, 0)).dims[static_cast<size_t>(labels(conv).input_feature)];
  }
  // `i` is the result of such a call and nobody else reads it.
  bool result_of_conv(InstId i, bool conv_alone) const {
    return m_.op(i) == Opcode::GetTupleElement && m_.attrs(i).integer(Attr::index) == 0 && m_.user_count(i) == 1 &&
           !m_.is_root(i) && fusible(m_.operand(i, 0)) && (!conv_alone || m_.user_count(m_.operand(i, 0)) == 1);
  }
  Config config(InstId conv) const {
    return Config::parse(u_.text(m_.attrs(conv).text(Attr::backend_config)), nullptr, false);
  }
  static Config* conv_part(Config& c) {
    auto at = c.is_object() ? c.find("cudnn_conv_backend_config") : c.end();
    return c.is_object() && at != c.end() && at->is_object() ? &*at : nullptr;
  }
  static double number(const Config& c, const char* key) {
    auto at = c.find(key);
    return at != c.end() && at->is_number() ? at->get<double>() : 0;
  }
  static std::string mode(const Config& c) {
    auto at = c.find("activation_mode");
    return at != c.end() && at->is_string() ? at->get<std::string>() : "kNone";
  }
  void set_config(InstId conv, const Config& c) { m_.set_attr(conv, Attr::backend_config, u_.str(c.dump())); }

  InstId with_operands(InstId conv, const std::vector<InstId>& operands) {
    return m_.clone_inst(conv, comp_, operands);
  }
  //   convForward(A, F)      →      convBiasActivationForward(A, F, 0)
  InstId with_bias(InstId conv) {
    if (target(conv) == "__cudnn$convBiasActivationForward") return conv;
    const Shape& out = u_[m_.shape(conv).elements[0]];
    ElementType type = is_float(out.type) ? out.type : ElementType::F32;
    int64_t features = out.dims[static_cast<size_t>(labels(conv).output_feature)];
    InstId zero = make_scalar(m_, comp_, type, 0);
    InstId bias = make_broadcast(m_, comp_, zero, {}, u_.array(type, {features}));
    std::vector<InstId> ops(m_.operands(conv).begin(), m_.operands(conv).end());
    ops.push_back(bias);
    AttrSet set = m_.attrs(conv);
    set.set(Attr::custom_call_target, u_.str("__cudnn$convBiasActivationForward"));
    InstId fused = m_.add(comp_, {.op = Opcode::CustomCall,
                                  .shape = m_.shape_id(conv),
                                  .operands = ops,
                                  .attrs = u_.attrs(std::move(set)),
                                  .meta = m_[conv].meta,
                                  .name = "cudnn-conv-bias-activation"});
    m_.replace(conv, fused);
    return fused;
  }

  // Would every value survive in that type?
  bool lossless(InstId i, ElementType type) const {
    if (m_.shape(i).type == type) return true;
    switch (m_.op(i)) {
      case Opcode::Convert:
        return m_.shape(m_.operand(i, 0)).type == type;
      case Opcode::Broadcast:
      case Opcode::Reshape:
      case Opcode::Transpose:
        return lossless(m_.operand(i, 0), type);
      case Opcode::Constant: {
        const Literal& l = m_.literal(i);
        ElementType from = m_.shape(i).type;
        if (l.elided || is_complex(from) || is_complex(type)) return false;
        const auto width = static_cast<size_t>(storage_bytes(from));
        char bytes[16];
        for (int64_t k = 0; k < m_.shape(i).elements_count(); ++k) {
          double v = load_double(from, l.bytes.data() + static_cast<size_t>(k) * width);
          store_double(type, bytes, v);
          if (load_double(type, bytes) != v) return false;
        }
        return true;
      }
      default:
        return false;
    }
  }
  // broadcast(constant of one element), and which.
  InstId spread_constant(InstId i) const {
    if (m_.op(i) != Opcode::Broadcast) return {};
    InstId k = m_.operand(i, 0);
    return is_scalar_constant(m_, k) && !m_.literal(k).elided ? k : InstId();
  }
  double value(InstId scalar) const { return load_double(m_.shape(scalar).type, m_.literal(scalar).bytes.data()); }
  ElementType scale_type(ElementType t) const { return t == ElementType::F64 ? ElementType::F64 : ElementType::F32; }

  //   multiply(conv, broadcast(a))      →      conv, conv_result_scale=a
  bool scale(InstId i) {
    if (m_.op(i) != Opcode::Multiply) return false;
    for (size_t side : {size_t{0}, size_t{1}}) {
      InstId gte = m_.operand(i, side), alpha = spread_constant(m_.operand(i, 1 - side));
      if (!alpha.valid() || !result_of_conv(gte, false) || !lossless(alpha, scale_type(m_.shape(gte).type))) continue;
      InstId conv = m_.operand(gte, 0);
      Config c = config(conv);
      Config* part = conv_part(c);
      if (!part || number(*part, "conv_result_scale") != 1 || mode(*part) != "kNone") return false;
      if (!ctx_.spend(m_, "scale of a convolution", {i, conv})) return false;
      conv = with_bias(conv);
      put_number(*part, "conv_result_scale", value(alpha));
      set_config(conv, c);
      m_.replace(i, gte);
      return true;
    }
    return false;
  }

  //   add(conv, broadcast(b))      →      conv with bias b;      add(conv, X)      →      conv with side input X
  bool bias_or_side(InstId i) {
    if (m_.op(i) != Opcode::Add) return false;
    for (size_t side : {size_t{0}, size_t{1}}) {
      InstId gte = m_.operand(i, side), addend = m_.operand(i, 1 - side);
      if (!result_of_conv(gte, true)) continue;
      InstId conv = m_.operand(gte, 0);
      Config c = config(conv);
      Config* part = conv_part(c);
      if (!part || mode(*part) != "kNone") return false;
      const bool plain = target(conv) == "__cudnn$convForward";
      bool takes_bias = plain, takes_side = plain || m_.operand_count(conv) < 4;
      if (!plain) {
        InstId zero = spread_constant(m_.operand(conv, 2));
        takes_bias = zero.valid() && is_all(m_, zero, 0);
      }
      const ElementType type = m_.shape(gte).type, bias_type = is_float(type) ? type : ElementType::F32;
      const int64_t feature = labels(conv).output_feature;
      const bool spread = m_.op(addend) == Opcode::Broadcast && lossless(addend, bias_type);
      const Dims map = spread ? m_.attrs(addend).ints(Attr::dimensions) : Dims();
      const bool vector = spread && map == Dims{feature}, scalar = spread && map.empty();
      takes_bias = takes_bias && (vector || scalar);
      if (!takes_bias && !takes_side) return false;
      if (!ctx_.spend(m_, takes_bias ? "bias of a convolution" : "side input of a convolution", {i, conv}))
        return false;
      conv = with_bias(conv);
      std::vector<InstId> ops(m_.operands(conv).begin(), m_.operands(conv).end());
      if (takes_bias) {
        InstId b = m_.operand(addend, 0);
        if (m_.shape(b).type != bias_type) b = make_convert(m_, b, bias_type);
        if (scalar) {
          int64_t features = m_.shape(gte).dims[static_cast<size_t>(feature)];
          b = make_broadcast(m_, comp_, b, {}, u_.array(bias_type, {features}));
        }
        ops[2] = b;
      } else {
        ops.push_back(addend);
        put_number(*part, "side_input_scale", 1);
      }
      InstId fused = with_operands(conv, ops);
      set_config(fused, c);
      m_.replace(i, make_element(m_, fused, 0));
      return true;
    }
    return false;
  }

  //   conv with side input multiply(X, broadcast(a))      →      conv with side input X, side_input_scale=a
  bool side_scale(InstId i) {
    if (!forward(i) || m_.operand_count(i) < 4) return false;
    Config c = config(i);
    Config* part = conv_part(c);
    if (!part || number(*part, "side_input_scale") != 1) return false;
    std::vector<InstId> moves;
    InstId product = m_.operand(i, 3);
    while (m_.op(product) == Opcode::Reshape || m_.op(product) == Opcode::Transpose)
      moves.push_back(product), product = m_.operand(product, 0);
    if (m_.op(product) != Opcode::Multiply) return false;
    for (size_t side : {size_t{0}, size_t{1}}) {
      InstId base = m_.operand(product, side), alpha = spread_constant(m_.operand(product, 1 - side));
      if (!alpha.valid() || !lossless(alpha, scale_type(u_[m_.shape(i).elements[0]].type))) continue;
      if (!ctx_.spend(m_, "scale of a side input", {i, product})) return false;
      for (auto move = moves.rbegin(); move != moves.rend(); ++move)
        base = m_.clone_inst(*move, comp_, std::vector<InstId>{base});
      std::vector<InstId> ops(m_.operands(i).begin(), m_.operands(i).end());
      ops[3] = base;
      put_number(*part, "side_input_scale", value(alpha));
      InstId fused = with_operands(i, ops);
      set_config(fused, c);
      m_.replace(i, fused);
      return true;
    }
    return false;
  }

  //   maximum(conv, broadcast(0))      →      conv, activation_mode=kRelu
  bool relu(InstId i) {
    if (m_.op(i) != Opcode::Maximum) return false;
    for (size_t side : {size_t{0}, size_t{1}}) {
      InstId gte = m_.operand(i, side), zero = spread_constant(m_.operand(i, 1 - side));
      if (!zero.valid() || !is_all(m_, zero, 0) || !result_of_conv(gte, true)) continue;
      InstId conv = m_.operand(gte, 0);
      Config c = config(conv);
      Config* part = conv_part(c);
      if (!part || mode(*part) != "kNone") return false;
      if (!ctx_.spend(m_, "relu of a convolution", {i, conv})) return false;
      conv = with_bias(conv);
      (*part)["activation_mode"] = "kRelu";
      set_config(conv, c);
      m_.replace(i, gte);
      return true;
    }
    return false;
  }

  //   convert(conv of f32 whose operands are f16, widened)      →      conv of f16
  bool halves(InstId i) {
    if (m_.op(i) != Opcode::Convert || m_.shape(i).type != ElementType::F16) return false;
    InstId gte = m_.operand(i, 0);
    if (!result_of_conv(gte, true) || m_.shape(gte).type != ElementType::F32) return false;
    InstId conv = m_.operand(gte, 0);
    for (InstId o : m_.operands(conv))
      if (!lossless(o, ElementType::F16)) return false;
    if (!ctx_.spend(m_, "convolution of f16", {i, conv})) return false;
    std::vector<InstId> ops(m_.operands(conv).begin(), m_.operands(conv).end());
    for (InstId& o : ops) o = make_convert(m_, o, ElementType::F16);
    ShapeId shape = u_.tuple({m_.shape_id(i), m_.shape(conv).elements[1]});
    InstId fused = m_.clone_inst(conv, comp_, ops, shape);
    m_.replace(i, make_element(m_, fused, 0));
    return true;
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  CompId comp_;
};

}  // namespace

bool run_cudnn_fused_conv_rewriter(Module& m, PassContext& ctx) { return ConvFuser(m, ctx).run(); }

}  // namespace hlo
