#include "ir/analysis/fusion_view.h"

#include <algorithm>
#include <unordered_set>

namespace hlo {

FusionView::FusionView(const Module& m, InstId consumer) : m_(m), consumer_(consumer) {
  if (m.op(consumer) == Opcode::Fusion) consumer_body_ = m.called(consumer)[0];
  take(consumer);
  add_roots(consumer);
}

FusionView::FusionView(const Module& m, InstId producer, InstId consumer, bool output) : FusionView(m, consumer) {
  producer_ = producer;
  if (m.op(producer) == Opcode::Fusion) producer_body_ = m.called(producer)[0];
  take(producer);
  for (InstId& r : roots_) r = resolve(r);
  if (output) add_roots(producer);
}

void FusionView::add_roots(InstId of) {
  const InstId root = m_.op(of) == Opcode::Fusion ? m_.comp(m_.called(of)[0]).root : of;
  if (root != of && m_.op(root) == Opcode::Tuple)
    for (size_t n = 0; n < m_.operand_count(root); ++n) roots_.push_back(operand(root, n));
  else
    roots_.push_back(resolve(root));
}

void FusionView::take(InstId i) {
  if (m_.op(i) != Opcode::Fusion) {
    nodes_.push_back(i);
    return;
  }
  const Computation& body = m_.comp(m_.called(i)[0]);
  for (InstId b : body.order)
    if (m_.alive(b) && m_.op(b) != Opcode::Parameter && !(m_.op(b) == Opcode::Tuple && b == body.root))
      nodes_.push_back(b);
}

bool FusionView::contains(InstId i) const {
  if (i == producer_ || i == consumer_) return m_.op(i) != Opcode::Fusion;
  if (m_.op(i) == Opcode::Parameter) return false;
  CompId in = m_.parent(i);
  return in.valid() && (in == consumer_body_ || in == producer_body_);
}

InstId FusionView::resolve(InstId i) const {
  for (int k = 0; k < 4; ++k) {
    if (producer_.valid() && i == producer_) {
      if (!producer_body_.valid()) return i;
      i = m_.comp(producer_body_).root;
    } else if (m_.op(i) == Opcode::Parameter && consumer_body_.valid() && m_.parent(i) == consumer_body_) {
      i = m_.operand(consumer_, static_cast<size_t>(m_.parameter_number(i)));
    } else if (m_.op(i) == Opcode::Parameter && producer_body_.valid() && m_.parent(i) == producer_body_) {
      return m_.operand(producer_, static_cast<size_t>(m_.parameter_number(i)));
    } else {
      return i;
    }
  }
  return i;
}

const std::vector<InstId>& FusionView::users(InstId i) const {
  if (!users_built_) {
    users_built_ = true;
    for (InstId n : nodes_)
      for (size_t k = 0; k < m_.operand_count(n); ++k) {
        std::vector<InstId>& list = users_[operand(n, k)];
        if (list.empty() || list.back() != n) list.push_back(n);
      }
  }
  static const std::vector<InstId> kNone;
  auto at = users_.find(i);
  return at == users_.end() ? kNone : at->second;
}

std::vector<InstId> FusionView::parameters() const {
  std::vector<InstId> out;
  std::unordered_set<InstId> seen;
  auto add = [&](InstId of) {
    for (InstId o : m_.operands(of))
      if (o != producer_ && seen.insert(o).second) out.push_back(o);
  };
  if (producer_.valid()) add(producer_);
  add(consumer_);
  return out;
}

bool is_elementwise(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::Fusion:
      for (InstId b : m.comp(m.called(i)[0]).order)
        if (m.alive(b) && m.op(b) != Opcode::Parameter && !is_elementwise(m, b)) return false;
      return true;
    case Opcode::Constant:
    case Opcode::Rng:
    case Opcode::Map:
      return true;
    case Opcode::BitcastConvert:
      return type_bits(m.shape(i).type) == type_bits(m.shape(m.operand(i, 0)).type);
    default:
      return op_info(m.op(i)).elementwise;
  }
}

int element_bits(ElementType type) { return type == ElementType::Pred ? 8 : type_bits(type); }

bool is_plain_bitcast(const Module& m, InstId i) {
  return m.op(i) == Opcode::Bitcast && element_bits(m.shape(i).type) == element_bits(m.shape(m.operand(i, 0)).type);
}

int64_t first_elements(const Module& m, InstId i) {
  const Shape* s = &m.shape(i);
  while (s->is_tuple() && !s->elements.empty()) s = &m.u()[s->elements[0]];
  return s->is_array() ? s->elements_count() : 0;
}

}  // namespace hlo
