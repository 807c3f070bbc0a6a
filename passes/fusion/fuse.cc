#include "passes/fusion/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// Operands and parameters of a body that others are fused into, one by one.
class Body {
 public:
  Body(Module& m, InstId fusion)
      : m_(m),
        body_(m.called(fusion)[0]),
        operands_(m.operands(fusion).begin(), m.operands(fusion).end()),
        params_(m.comp(body_).params) {}

  // All of the other fusion's body is about to come in. XLA clones it first, names and all, parameters as well
  // (xla/hlo/ir/hlo_instructions.cc, MergeFusionInstruction): `add.1` becomes `add.3`.
  void name_by_clone(InstId other, std::string_view suffix) {
    const CompId body = m_.called(other)[0];
    std::string name(m_.comp_name(body));
    if (!suffix.empty()) name.append(1, '.').append(suffix);
    m_.take_computation_name(name);
    for (InstId i : m_.post_order(body)) clone_names_[i] = m_.clone_name(i, suffix);
  }

  // `source` stands among the operands, perhaps more than once, and is computed inside from here on, of these operands.
  InstId take(InstId source, const std::vector<InstId>& of) {
    std::vector<InstId> old;
    for (size_t slot = operands_.size(); slot-- > 0;) {
      if (operands_[slot] != source) continue;
      old.push_back(params_[slot]);
      operands_.erase(operands_.begin() + static_cast<ptrdiff_t>(slot));
      params_.erase(params_.begin() + static_cast<ptrdiff_t>(slot));
    }
    const InstId copy = clone(source, of);
    for (InstId p : old) m_.replace_all_uses(p, copy), m_.remove(p);
    return copy;
  }
  // The same of a further result, which need not stand among the operands.
  InstId take_result(InstId source, const std::vector<InstId>& of) {
    return is_operand(source) ? take(source, of) : clone(source, of);
  }
  bool is_operand(InstId i) const { return std::find(operands_.begin(), operands_.end(), i) != operands_.end(); }
  void replace_operand(InstId from, InstId to) { std::replace(operands_.begin(), operands_.end(), from, to); }

  void finish(InstId fusion) {
    // One whose number moves is another to XLA, which makes it anew, with its name
    // (xla/hlo/ir/hlo_computation.cc, RemoveParameter).
    for (size_t n = 0; n < params_.size(); ++n) {
      if (m_.parameter_number(params_[n]) == static_cast<int64_t>(n)) continue;
      m_.set_parameter_number(params_[n], static_cast<int64_t>(n));
      m_.set_uniquified_name(params_[n], fmt::format("param_{}", n));
    }
    m_.set_params(body_, params_);
    m_.exchange_operands(fusion, operands_);
  }

 private:
  InstId clone(InstId source, const std::vector<InstId>& of) {
    std::vector<InstId> inner;
    for (InstId o : of) inner.push_back(parameter_of(o));
    const auto name = clone_names_.find(source);
    if (name == clone_names_.end()) return m_.clone_inst(source, body_, inner);
    return m_.clone_named(source, body_, inner, ShapeId(), m_.take_name(m_.u().text(name->second)));
  }
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
  std::unordered_map<InstId, StrId> clone_names_;
};

// What an instruction inside of the other fusion reads, as seen from outside.
std::vector<InstId> outer_operands(const Module& m, InstId other, InstId inside) {
  std::vector<InstId> of;
  for (InstId o : m.operands(inside))
    of.push_back(m.op(o) == Opcode::Parameter ? m.operand(other, static_cast<size_t>(m.parameter_number(o))) : o);
  return of;
}

// What of the other fusion is read by more than `fusion`: its root, or of a tuple's elements those.
std::vector<InstId> read_results(const Module& m, InstId other, InstId fusion) {
  auto outside = [&](InstId i) {
    const auto users = m.users(i);
    return m.is_root(i) || std::any_of(users.begin(), users.end(), [&](InstId u) { return u != fusion; });
  };
  const InstId root = m.op(other) == Opcode::Fusion ? m.comp(m.called(other)[0]).root : other;
  std::vector<InstId> out;
  if (root == other || m.op(root) != Opcode::Tuple) {
    if (outside(other)) out.push_back(root);
    return out;
  }
  for (InstId user : m.users(other))
    if (outside(user)) out.push_back(m.operand(root, static_cast<size_t>(m.attrs(user).integer(Attr::index))));
  return out;
}

// Gives the users of what went into a fusion the elements of the fusion's tuple, from `first` on those of `inside`.
void hand_out(Module& m, InstId fusion, InstId other, const std::vector<InstId>& inside, size_t first) {
  std::unordered_map<InstId, InstId> elements;
  for (size_t n = 0; n < inside.size(); ++n)
    elements[inside[n]] = make_element(m, fusion, static_cast<int64_t>(first + n));
  const InstId root = m.op(other) == Opcode::Fusion ? m.comp(m.called(other)[0]).root : other;
  if (root == other || m.op(root) != Opcode::Tuple) {
    if (!inside.empty()) m.replace_all_uses(other, elements[root]);
    return;
  }
  for (InstId user : m.users_copy(other)) {
    const InstId of = m.operand(root, static_cast<size_t>(m.attrs(user).integer(Attr::index)));
    if (m.op(of) == Opcode::Parameter)
      m.replace_all_uses(user, m.operand(other, static_cast<size_t>(m.parameter_number(of))));
    else if (const auto made = elements.find(of); made != elements.end())
      m.replace_all_uses(user, made->second);
    m.remove(user);
  }
}

}  // namespace

//   add(A, B)      →      fusion(A, B), calls={ ROOT add(param_0, param_1) }
InstId wrap_in_fusion(Module& m, InstId i, std::string_view kind) {
  const CompId body = m.add_computation("fused_computation");
  std::vector<InstId> operands, params, inner;
  for (InstId o : std::vector<InstId>(m.operands(i).begin(), m.operands(i).end())) {
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
  const InstId fusion =
      m.add(m.parent(i),
            {.op = Opcode::Fusion, .shape = m.shape_id(i), .operands = operands, .attrs = attrs, .meta = m[i].meta});
  m.replace(i, fusion);
  return fusion;
}

InstId fuse_into(Module& m, InstId producer, InstId consumer, std::string_view kind) {
  InstId fusion = consumer;
  if (m.op(consumer) != Opcode::Fusion)
    fusion = wrap_in_fusion(m, consumer, kind);
  else if (m.u().text(m.attrs(fusion).text(Attr::kind)) != kind)
    m.set_attr(fusion, Attr::kind, m.u().str(kind));
  Body body(m, fusion);
  if (m.op(producer) != Opcode::Fusion) {
    body.take(producer, {m.operands(producer).begin(), m.operands(producer).end()});
  } else {
    // Users before what they use: each is then an operand of the fusion when its turn comes.
    const CompId inner = m.called(producer)[0];
    std::vector<InstId> order = m.post_order(inner);
    body.name_by_clone(producer, {});
    body.replace_operand(producer, m.comp(inner).root);
    for (auto i = order.rbegin(); i != order.rend(); ++i) {
      if (m.op(*i) == Opcode::Parameter) continue;
      body.take(*i, outer_operands(m, producer, *i));
    }
  }
  body.finish(fusion);
  return fusion;
}

void fuse_as_output(Module& m, InstId other, InstId fusion) {
  Body body(m, fusion);
  const CompId comp = m.called(fusion)[0];
  const InstId root = m.comp(comp).root;
  std::vector<InstId> order = {other}, inside, further;
  const bool several = m.op(root) == Opcode::Tuple;
  const size_t before = several ? m.operand_count(root) : 1;
  const std::vector<InstId> read = read_results(m, other, fusion);
  if (m.op(other) == Opcode::Fusion) {
    const CompId inner = m.called(other)[0];
    order = m.post_order(inner);
    body.name_by_clone(other, "clone");
    // Users before what they use, as where the whole of it goes into its user.
    std::reverse(order.begin(), order.end());
    std::erase_if(order, [&](InstId i) {
      return m.op(i) == Opcode::Parameter || (m.op(i) == Opcode::Tuple && i == m.comp(inner).root);
    });
    body.replace_operand(other, m.comp(inner).root);
  }
  for (InstId i : order) {
    const std::vector<InstId> of =
        i == other ? std::vector<InstId>(m.operands(i).begin(), m.operands(i).end()) : outer_operands(m, other, i);
    if (std::find(read.begin(), read.end(), i) != read.end())
      inside.push_back(i), further.push_back(body.take_result(i, of));
    else if (body.is_operand(i))
      body.take(i, of);
  }
  if (!inside.empty()) {  // what nobody else reads is no result
    // A result may have been a parameter that is computed inside now.
    std::vector<InstId> results = {m.comp(comp).root};
    if (several) results.assign(m.operands(root).begin(), m.operands(root).end());
    results.insert(results.end(), further.begin(), further.end());
    std::vector<ShapeId> shapes;
    for (InstId r : results) shapes.push_back(m.shape_id(r));
    m.set_root(comp, m.add(comp, {.op = Opcode::Tuple, .shape = m.u().tuple(shapes), .operands = results}));
    if (several) m.remove(root);
  }
  body.finish(fusion);
  if (!inside.empty()) {
    m.set_shape(fusion, m.shape_id(m.comp(comp).root));
    m.erase_attr(fusion, Attr::sharding);  // of the one result that it had
    if (!several) {
      const InstId first = make_element(m, fusion, 0);
      m.replace_all_uses(fusion, first);
    }
  }
  hand_out(m, fusion, other, inside, before);
  const CompId gone = m.op(other) == Opcode::Fusion ? m.called(other)[0] : CompId();
  m.remove(other);
  if (gone.valid()) m.remove_computation(gone);
}

}  // namespace hlo
