#include "ir/analysis/dataflow/points_to.h"

#include <algorithm>

#include "ir/base/stack_guard.h"
#include "ir/leaves.h"
#include "ir/marks.h"
#include "ir/sharding/aliasing.h"

namespace hlo {

const ShapeNodes::Entry& ShapeNodes::of(ShapeId shape) {
  if (shape.value < entries_.size() && entries_[shape.value]) return *entries_[shape.value];
  check_stack("the parts of a shape");
  auto e = std::make_unique<Entry>();
  e->shapes.push_back(shape);
  e->rank = static_cast<int64_t>(u_[shape].rank());
  e->leaves.push_back(u_[shape].is_tuple() ? 0 : 1);
  e->leaf_numbers.push_back(u_[shape].is_tuple() ? UINT32_MAX : 0);
  for (ShapeId part : u_[shape].elements) {
    e->children.push_back(e->count);
    const Entry& inner = of(part);
    e->count += inner.count;
    e->rank = std::max(e->rank, inner.rank);
    for (uint32_t leaf : inner.leaf_numbers)
      e->leaf_numbers.push_back(leaf == UINT32_MAX ? leaf : e->leaves.back() + leaf);
    e->leaves.push_back(e->leaves.back() + inner.leaves.back());
    e->shapes.insert(e->shapes.end(), inner.shapes.begin(), inner.shapes.end());
  }
  if (shape.value >= entries_.size()) entries_.resize(std::max<size_t>(shape.value + 1, u_.shape_count()));
  return *(entries_[shape.value] = std::move(e));
}

uint32_t ShapeNodes::at(ShapeId shape, const Dims& index) {
  uint32_t node = 0, none = count(shape);
  for (int64_t k : index) {
    const Shape& s = u_[shape];
    if (k < 0 || static_cast<size_t>(k) >= s.elements.size()) return none;
    node += child(shape, static_cast<size_t>(k));
    shape = s.elements[static_cast<size_t>(k)];
  }
  return node;
}

std::vector<Dims> leaf_indices(const Universe& u, ShapeId shape) {
  std::vector<Dims> out;
  each_leaf(u, shape, [&](const Dims& index, ShapeId) { out.push_back(index); });
  return out;
}

std::vector<InstId> accept_order(const Module& m, CompId c) {
  std::vector<InstId> out, starts, stack;
  std::vector<InstId> list = m.live_order(c);
  const InstId root = m.comp(c).root;
  for (InstId i : list)
    if (i != root && m.users(i).empty() && m.control_succs(i).empty()) starts.push_back(i);
  starts.push_back(root);
  constexpr uint32_t kOpen = 1, kTold = 2;  // open: its operands are on the stack
  Marks state(m.inst_slots());
  for (InstId start : starts) {
    stack.push_back(start);
    while (!stack.empty()) {
      InstId i = stack.back();
      if (const uint32_t s = state[i]) {
        stack.pop_back();
        if (s == kOpen) out.push_back(i), state.set(i, kTold);
        continue;
      }
      state.set(i, kOpen);
      size_t first = stack.size();
      for (InstId o : m.operands(i))
        if (!state[o]) stack.push_back(o);
      for (InstId p : m.control_preds(i))
        if (!state[p]) stack.push_back(p);
      std::reverse(stack.begin() + static_cast<ptrdiff_t>(first), stack.end());
    }
  }
  return out;
}

PointsTo::PointsTo(const Module& m, bool through_bitcasts)
    : m_(m),
      through_bitcasts_(through_bitcasts),
      nodes_(m.u()),
      ranges_(m.inst_slots()),
      computations_(m.comp_slots()) {
  std::vector<CompId> comps = m.nonfusion_computations();
  for (CompId c : comps) {
    auto first = static_cast<BufferId>(buffers_.size());
    for (InstId i : accept_order(m, c)) visit(i);
    computations_[c.value] = {first, static_cast<BufferId>(buffers_.size())};
  }
  arrays_.resize(buffers_.size());
  for (CompId c : comps)
    for (InstId i : m.live_order(c))
      if (m.shape(i).is_array() && !of(i).empty()) arrays_[of(i)[0]].push_back(i);
}

void PointsTo::define(InstId i, uint32_t node, uint32_t count, ShapeId whole) {
  for (uint32_t k = node; k < node + count; ++k) {
    sets_.push_back(static_cast<BufferId>(buffers_.size()));
    buffers_.push_back({i, k, nodes_.shapes(whole)[k]});
  }
}

void PointsTo::copy(InstId from, uint32_t node, uint32_t count) {
  const Range& r = ranges_[from.value];
  for (uint32_t k = 0; k < count; ++k) sets_.push_back(sets_[r.first + node + k]);
}

// Can parts `first` and following of i be those of o from `node` on?
bool PointsTo::fits(InstId i, uint32_t first, InstId o, uint32_t node, uint32_t count) const {
  const auto &a = nodes_.shapes(m_.shape_id(i)), &b = nodes_.shapes(m_.shape_id(o));
  if (first + count > a.size() || node + count > b.size()) return false;
  for (uint32_t k = 0; k < count; ++k)
    if (!m_.u().compatible(a[first + k], b[node + k])) return false;
  return true;
}

// What hands on some parts and makes others: part 0 is its own.
void PointsTo::in_parts(InstId i) {
  const ShapeId shape = m_.shape_id(i);
  const uint32_t count = nodes_.count(shape);
  struct Piece {
    uint32_t first;
    InstId from;
    uint32_t node, count;
  };
  std::vector<Piece> pieces;  // ascending
  auto add = [&](uint32_t first, InstId from, uint32_t node, uint32_t parts) {
    if (fits(i, first, from, node, parts)) pieces.push_back({first, from, node, parts});
  };
  auto whole = [&](uint32_t first, InstId from) { add(first, from, 0, nodes_.count(m_.shape_id(from))); };
  const auto& elements = m_.shape(i).elements;
  const Opcode op = m_.op(i);
  if (op == Opcode::Tuple) {
    for (size_t k = 0; k < m_.operand_count(i) && k < elements.size(); ++k)
      whole(nodes_.child(shape, k), m_.operand(i, k));
  } else if (op == Opcode::Copy) {
    if (count > 1) add(1, m_.operand(i, 0), 1, count - 1);
  } else if (op == Opcode::CopyStart) {
    if (elements.size() > 1) whole(nodes_.child(shape, 1), m_.operand(i, 0));
  } else if (op == Opcode::Send) {
    if (!elements.empty()) whole(nodes_.child(shape, 0), m_.operand(i, 0));
  } else if (op == Opcode::RecvDone) {
    const ShapeId from = m_.shape_id(m_.operand(i, 0));
    if (!elements.empty() && m_.u()[from].elements.size() > 1)
      add(nodes_.child(shape, 0), m_.operand(i, 0), nodes_.child(from, 0), nodes_.count(elements[0]));
  } else if (op == Opcode::AsyncStart) {
    if (!elements.empty())
      for (size_t k = 0; k < m_.operand_count(i) && k < m_.u()[elements[0]].elements.size(); ++k)
        whole(nodes_.child(shape, 0) + nodes_.child(elements[0], k), m_.operand(i, k));
  } else {
    for (const AliasEntry& e : parse_aliases(m_.u().text(m_.attrs(i).text(Attr::output_to_operand_aliasing)))) {
      if (e.number < 0 || static_cast<size_t>(e.number) >= m_.operand_count(i)) continue;
      InstId from = m_.operand(i, static_cast<size_t>(e.number));
      const uint32_t node = nodes_.at(shape, e.output), other = nodes_.at(m_.shape_id(from), e.index);
      if (node < count) add(node, from, other, nodes_.count(nodes_.shapes(shape)[node]));
    }
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.first < b.first; });
  }
  uint32_t at = 0;
  for (const Piece& p : pieces) {
    if (p.first < at) continue;
    define(i, at, p.first - at, shape);
    copy(p.from, p.node, p.count);
    at = p.first + p.count;
  }
  define(i, at, count - at, shape);
}

void PointsTo::visit(InstId i) {
  const ShapeId shape = m_.shape_id(i);
  const uint32_t count = nodes_.count(shape);
  const size_t first = sets_.size();
  InstId o = m_.operand_count(i) ? m_.operand(i, 0) : InstId();
  uint32_t node = UINT32_MAX;  // of operand 0, where the result is one of its parts
  switch (m_.op(i)) {
    case Opcode::GetTupleElement:
      node = nodes_.at(m_.shape_id(o), {m_.attrs(i).integer(Attr::index)});
      break;
    case Opcode::CopyDone:
      node = nodes_.at(m_.shape_id(o), {0});
      break;
    case Opcode::AsyncDone:
      node = nodes_.at(m_.shape_id(o), {1});
      break;
    case Opcode::Domain:
    case Opcode::OptBarrier:
    case Opcode::AddDependency:
    case Opcode::AsyncUpdate:
      node = 0;
      break;
    default:
      break;
  }
  // A bitcast is the same memory in another shape. Where layouts are asked for, what is asked of one shape means
  // nothing to the other, so that it counts as a buffer of its own.
  if (m_.op(i) == Opcode::Bitcast && through_bitcasts_ && count == 1 && nodes_.count(m_.shape_id(o)) == 1)
    copy(o, 0, 1);
  else if (node != UINT32_MAX && fits(i, 0, o, node, count))
    copy(o, node, count);
  else
    in_parts(i);
  ranges_[i.value] = {first, sets_.size() - first};
}

bool PointsTo::forwards(InstId user, size_t n) const {
  std::span<const BufferId> a = of(user), b = of(m_.operand(user, n));
  if (a.size() > b.size()) std::swap(a, b);
  if (a.size() == 1) return std::find(b.begin(), b.end(), a[0]) != b.end();
  std::vector<BufferId> sorted(b.begin(), b.end());
  std::sort(sorted.begin(), sorted.end());
  return std::any_of(a.begin(), a.end(),
                     [&](BufferId k) { return std::binary_search(sorted.begin(), sorted.end(), k); });
}

}  // namespace hlo
