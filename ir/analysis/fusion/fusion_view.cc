#include "ir/analysis/fusion/fusion_view.h"

#include <algorithm>

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
  nodes_.reserve(nodes_.size() + body.order.size());
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

// Users in the body that it is in.
void FusionView::add_users(InstId i, std::vector<InstId>* out) const {
  for (InstId user : m_.users(i)) {
    const bool results = m_.op(user) == Opcode::Tuple && m_.comp(m_.parent(user)).root == user;
    if (!results && contains(user) && std::find(out->begin(), out->end(), user) == out->end()) out->push_back(user);
  }
}

// What reads that operand of the producer or consumer, whose body is given: itself where it has none.
void FusionView::add_readers(InstId of, CompId body, InstId operand, std::vector<InstId>* out) const {
  for (size_t n = 0; n < m_.operand_count(of); ++n) {
    if (m_.operand(of, n) != operand) continue;
    if (body.valid())
      add_users(m_.comp(body).params[n], out);
    else if (std::find(out->begin(), out->end(), of) == out->end())
      out->push_back(of);
  }
}

// Asked for a few of many: what all of them have is not gathered for it.
std::vector<InstId> FusionView::users(InstId i) const {
  std::vector<InstId> out;
  if (producer_.valid() && resolve(producer_) == i) add_readers(consumer_, consumer_body_, producer_, &out);
  if (!contains(i)) {
    add_readers(consumer_, consumer_body_, i, &out);
    if (producer_.valid()) add_readers(producer_, producer_body_, i, &out);
  } else if (i != producer_ && i != consumer_) {
    add_users(i, &out);
  }
  return out;
}

std::vector<FusionView::Read> FusionView::reads() const {
  std::vector<Read> out;
  std::vector<std::pair<InstId, size_t>> first;  // with its place in `out`, by instruction
  auto add = [&](InstId of, int64_t Read::*place) {
    const size_t known = first.size();
    std::vector<std::pair<InstId, size_t>> own;
    for (size_t n = 0; n < m_.operand_count(of); ++n)
      if (m_.operand(of, n) != producer_) own.emplace_back(m_.operand(of, n), n);
    std::vector<size_t> fresh;  // places of operands that are new here, to be put in their order
    std::sort(own.begin(), own.end());
    for (size_t k = 0; k < own.size(); ++k) {
      const auto [inst, n] = own[k];
      if (k > 0 && own[k - 1].first == inst) continue;
      const auto end = first.begin() + static_cast<std::ptrdiff_t>(known);
      const auto at = std::lower_bound(first.begin(), end, std::pair(inst, size_t{0}));
      if (at != end && at->first == inst)
        out[at->second].*place = static_cast<int64_t>(n);
      else
        fresh.push_back(n);
    }
    std::sort(fresh.begin(), fresh.end());
    for (size_t n : fresh) {
      first.emplace_back(m_.operand(of, n), out.size());
      out.push_back({m_.operand(of, n), -1, -1});
      out.back().*place = static_cast<int64_t>(n);
    }
    std::sort(first.begin(), first.end());
  };
  if (producer_.valid()) add(producer_, &Read::in_producer);
  add(consumer_, &Read::in_consumer);
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
