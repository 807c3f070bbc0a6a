#include "passes/fusion/fuse.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

//   add(A, B)      →      fusion(A, B), calls={ ROOT add(param_0, param_1) }
InstId wrap(Module& m, InstId i, std::string_view kind) {
  const CompId body = m.add_computation("fused_computation");
  std::vector<InstId> operands, params, inner;
  for (InstId o : m.operands(i)) {
    auto known = std::find(operands.begin(), operands.end(), o);
    const auto n = static_cast<size_t>(known - operands.begin());
    if (known == operands.end()) {
      operands.push_back(o);
      params.push_back(m.parameter(body, static_cast<int64_t>(n), m.shape_id(o), fmt::format("param_{}", n)));
    }
    inner.push_back(params[n]);
  }
  const InstId root = m.clone_inst(i, body, inner);
  m.set_root(body, root);
  m.set_params(body, params);
  const AttrsId attrs = attrs_of(m.u(), Opcode::Fusion, {{Attr::kind, m.u().str(kind)}, {Attr::calls, body}});
  const InstId fusion = m.add(
      m.parent(i),
      {.op = Opcode::Fusion, .shape = m.shape_id(i), .operands = operands, .attrs = attrs, .meta = m[i].meta});
  m.replace(i, fusion);
  return fusion;
}

// Operands and parameters of a body that others are fused into, one by one.
class Body {
 public:
  Body(Module& m, InstId fusion)
      : m_(m),
        body_(m.called(fusion)[0]),
        operands_(m.operands(fusion).begin(), m.operands(fusion).end()),
        params_(m.comp(body_).params) {}

  // `source` stands among the operands and is computed inside from here on, of these operands.
  void take(InstId source, const std::vector<InstId>& of) {
    const auto slot = std::find(operands_.begin(), operands_.end(), source) - operands_.begin();
    const InstId old = params_[static_cast<size_t>(slot)];
    operands_.erase(operands_.begin() + slot);
    params_.erase(params_.begin() + slot);
    std::vector<InstId> inner;
    for (InstId o : of) inner.push_back(parameter_of(o));
    const InstId clone = m_.clone_inst(source, body_, inner);
    m_.replace_all_uses(old, clone);
    m_.remove(old);
  }
  void replace_operand(InstId from, InstId to) { std::replace(operands_.begin(), operands_.end(), from, to); }

  void finish(InstId fusion) {
    for (size_t n = 0; n < params_.size(); ++n) m_.set_parameter_number(params_[n], static_cast<int64_t>(n));
    m_.set_params(body_, params_);
    m_.exchange_operands(fusion, operands_);
  }

 private:
  InstId parameter_of(InstId operand) {
    auto known = std::find(operands_.begin(), operands_.end(), operand);
    if (known != operands_.end()) return params_[static_cast<size_t>(known - operands_.begin())];
    const size_t n = params_.size();
    operands_.push_back(operand);
    params_.push_back(m_.parameter(body_, static_cast<int64_t>(n), m_.shape_id(operand), fmt::format("param_{}", n)));
    return params_.back();
  }

  Module& m_;
  CompId body_;
  std::vector<InstId> operands_, params_;
};

}  // namespace

InstId fuse_into(Module& m, InstId producer, InstId consumer, std::string_view kind) {
  InstId fusion = consumer;
  if (m.op(consumer) != Opcode::Fusion)
    fusion = wrap(m, consumer, kind);
  else if (m.u().text(m.attrs(fusion).text(Attr::kind)) != kind)
    m.set_attr(fusion, Attr::kind, m.u().str(kind));
  Body body(m, fusion);
  if (m.op(producer) != Opcode::Fusion) {
    body.take(producer, {m.operands(producer).begin(), m.operands(producer).end()});
  } else {
    // Users before what they use: each is then an operand of the fusion when its turn comes.
    const CompId inner = m.called(producer)[0];
    std::vector<InstId> order = m.post_order(inner);
    body.replace_operand(producer, m.comp(inner).root);
    for (auto i = order.rbegin(); i != order.rend(); ++i) {
      if (m.op(*i) == Opcode::Parameter) continue;
      std::vector<InstId> of;
      for (InstId o : m.operands(*i))
        of.push_back(m.op(o) == Opcode::Parameter ? m.operand(producer, static_cast<size_t>(m.parameter_number(o)))
                                                  : o);
      body.take(*i, of);
    }
  }
  body.finish(fusion);
  return fusion;
}

}  // namespace hlo
