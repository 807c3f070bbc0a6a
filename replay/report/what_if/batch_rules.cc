#include "replay/report/what_if/batch_rules.h"

#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr const char* kUnknown = "is not followed through this operation";

int64_t dim_of(const Module& m, InstId i, int64_t d) { return m.shape(i).dims[static_cast<size_t>(d)]; }

}  // namespace

BatchDimensions::BatchDimensions(const Module& m, bool of_one) : m_(m), of_one_(of_one), first_(m.inst_slots(), 0) {
  uint32_t nodes = 0;
  std::vector<InstId> all;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      first_[i.value] = nodes;
      const uint32_t more = nodes_of(m.shape_id(i));
      if (more > (uint32_t{1} << 31) - nodes) fail(FailureKind::kUnsupported, "the module has too many dimensions");
      nodes += more;
      all.push_back(i);
    }
  up_.resize(nodes);
  for (uint32_t n = 0; n < nodes; ++n) up_[n] = n;
  for (InstId i : all) rules(i);
}

uint32_t BatchDimensions::nodes_of(ShapeId shape) const {
  const Shape& s = m_.u()[shape];
  if (!s.is_tuple()) return static_cast<uint32_t>(s.dims.size());
  if (auto known = counts_.find(shape); known != counts_.end()) return known->second;
  uint32_t n = 0;
  for (ShapeId e : s.elements) n += nodes_of(e);
  return counts_[shape] = n;
}

uint32_t BatchDimensions::group(uint32_t n) const {
  while (up_[n] != n) n = up_[n] = up_[up_[n]];
  return n;
}

void BatchDimensions::unite(uint32_t a, uint32_t b) {
  a = group(a), b = group(b);
  up_[std::max(a, b)] = std::min(a, b);
}

void BatchDimensions::same(uint32_t a, InstId of_a, uint32_t b, InstId of_b) {
  const uint32_t count = nodes_of(m_.shape_id(of_a));
  if (count != nodes_of(m_.shape_id(of_b))) return fix_all(of_b, kUnknown);
  for (uint32_t n = 0; n < count; ++n) unite(a + n, b + n);
}

void BatchDimensions::fix_all(InstId i, const char* why) {
  auto fix_value = [&](InstId value) {
    for (uint32_t n = 0; n < nodes_of(m_.shape_id(value)); ++n) fixed_.push_back({first(value) + n, i, why});
  };
  for (InstId o : m_.operands(i)) fix_value(o);
  fix_value(i);
}

void BatchDimensions::rules(InstId i) {
  const OpInfo& info = op_info(m_.op(i));
  if (info.elementwise || m_.op(i) == Opcode::Map) {
    // Scalars go with arrays of any size: of select and clamp.
    for (InstId o : m_.operands(i))
      if (m_.shape(o).rank() == m_.shape(i).rank())
        same(o, i);
      else if (m_.shape(o).rank())
        fix_all(i, kUnknown);
    return;
  }
  switch (info.cls) {
    case OpClass::Call:
    case OpClass::Fusion:
    case OpClass::Tuple:
      return call_rules(i);
    case OpClass::Move:
      return move_rules(i);
    case OpClass::Dot:
      return m_.op(i) == Opcode::Dot ? dot_rule(i) : fix_all(i, kUnknown);
    case OpClass::Conv:
      return conv_rule(i);
    case OpClass::Reduce:
      return m_.op(i) == Opcode::Reduce ? reduce_rule(i) : fix_all(i, kUnknown);
    case OpClass::Window:
      return window_rule(i);
    case OpClass::Gather:
      return gather_rule(i);
    case OpClass::Scatter:
      return scatter_rule(i);
    case OpClass::BatchNorm:
      return norm_rule(i);
    default:
      if (!other_rules(i)) fix_all(i, kUnknown);
  }
}

void BatchDimensions::call_rules(InstId i) {
  const std::vector<CompId>& called = m_.called(i);
  auto params = [&](CompId c) -> const std::vector<InstId>& { return m_.comp(c).params; };
  switch (m_.op(i)) {
    case Opcode::Tuple: {
      uint32_t at = first(i);
      for (InstId o : m_.operands(i)) {
        const uint32_t count = nodes_of(m_.shape_id(o));
        for (uint32_t n = 0; n < count; ++n) unite(at + n, first(o) + n);
        at += count;
      }
      return;
    }
    case Opcode::GetTupleElement: {
      const InstId tuple = m_.operand(i, 0);
      const auto index = static_cast<size_t>(m_.attrs(i).integer(Attr::index));
      uint32_t at = first(tuple);
      for (size_t k = 0; k < index; ++k) at += nodes_of(m_.shape(tuple).elements[k]);
      for (uint32_t n = 0; n < nodes_of(m_.shape_id(i)); ++n) unite(at + n, first(i) + n);
      return;
    }
    case Opcode::OptBarrier:
      return same(m_.operand(i, 0), i);
    case Opcode::While:
      for (CompId c : called) same(params(c)[0], i);
      same(m_.comp(m_.attrs(i).comp(Attr::body)).root, i);
      return same(m_.operand(i, 0), i);
    case Opcode::Conditional:
      for (size_t k = 0; k < called.size(); ++k) {
        same(m_.operand(i, k + 1), params(called[k])[0]);
        same(m_.comp(called[k]).root, i);
      }
      return;
    case Opcode::Call:
    case Opcode::Fusion:
      for (size_t k = 0; k < m_.operand_count(i); ++k) same(m_.operand(i, k), params(called[0])[k]);
      return same(m_.comp(called[0]).root, i);
    default:
      return fix_all(i, kUnknown);
  }
}

void BatchDimensions::move_rules(InstId i) {
  const InstId from = m_.operand_count(i) ? m_.operand(i, 0) : i;
  const AttrSet& a = m_.attrs(i);
  switch (m_.op(i)) {
    case Opcode::Reshape:
    case Opcode::Bitcast:
      return reshape_rule(i);
    case Opcode::Copy:
    case Opcode::Domain:
    case Opcode::Reverse:
      return same(from, i);
    case Opcode::Broadcast:
      for (size_t k = 0; k < a.ints(Attr::dimensions).size(); ++k)
        unite(node(from, static_cast<int64_t>(k)), node(i, a.ints(Attr::dimensions)[k]));
      return;
    case Opcode::Transpose:
      for (size_t k = 0; k < a.ints(Attr::dimensions).size(); ++k)
        unite(node(from, a.ints(Attr::dimensions)[k]), node(i, static_cast<int64_t>(k)));
      return;
    case Opcode::Concatenate:
      for (InstId o : m_.operands(i)) same(o, i);
      return;
    case Opcode::Pad: {
      const auto& padding = *a.get<std::vector<PaddingDim>>(Attr::padding);
      for (int64_t d = 0; d < m_.shape(i).rank(); ++d) {
        if (padding[static_cast<size_t>(d)] == PaddingDim())
          unite(node(from, d), node(i, d));
        else
          fix(from, d, i, "is padded"), fix(i, d, i, "is padded");
      }
      return;
    }
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
      return slice_rules(i);
    default:
      return fix_all(i, kUnknown);
  }
}

void BatchDimensions::slice_rules(InstId i) {
  const InstId from = m_.operand(i, 0);
  if (m_.op(i) == Opcode::DynamicUpdateSlice) {
    same(from, i);
    const InstId update = m_.operand(i, 1);
    for (int64_t d = 0; d < m_.shape(i).rank(); ++d) {
      if (dim_of(m_, update, d) == dim_of(m_, i, d))
        unite(node(update, d), node(i, d));
      else
        fix(update, d, i, "is a part of what it is written into");
    }
    return;
  }
  const auto* slice = m_.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
  for (int64_t d = 0; d < m_.shape(i).rank(); ++d) {
    const int64_t size = dim_of(m_, from, d);
    const bool whole = slice ? (*slice)[static_cast<size_t>(d)] == SliceDim{0, size, 1} : dim_of(m_, i, d) == size;
    if (whole)
      unite(node(from, d), node(i, d));
    else
      fix(i, d, i, "is a part of what it is sliced from");
    if (!whole && slice) fix(from, d, i, "is sliced");
  }
}

// Neighbours whose sizes multiply to the same go together.
void BatchDimensions::reshape_rule(InstId i) {
  const InstId from = m_.operand(i, 0);
  const Dims &x = m_.shape(from).dims, &y = m_.shape(i).dims;
  if (m_.op(i) == Opcode::Bitcast) {
    if (x != y) return fix_all(i, kUnknown);
    return same(from, i);
  }
  const std::vector<std::pair<size_t, size_t>> bounds = common_factors(x, y);
  auto [p, q] = bounds.front();
  for (size_t k = 1; k < bounds.size(); ++k) {
    const auto [p_end, q_end] = bounds[k];
    if (of_one_ && (p == p_end || q == q_end) && k + 1 < bounds.size()) continue;
    if (p_end == p + 1 && q_end == q + 1) {
      unite(node(from, static_cast<int64_t>(p)), node(i, static_cast<int64_t>(q)));
    } else if (p != p_end || q != q_end) {
      Reshaped r{i, {}, {}, {}, {}};
      for (size_t d = p; d < p_end; ++d)
        r.operand.push_back(node(from, static_cast<int64_t>(d))), r.operand_sizes.push_back(x[d]);
      for (size_t d = q; d < q_end; ++d)
        r.result.push_back(node(i, static_cast<int64_t>(d))), r.result_sizes.push_back(y[d]);
      reshaped_.push_back(std::move(r));
    }
    p = p_end, q = q_end;
  }
}

void BatchDimensions::dot_rule(InstId i) {
  const AttrSet& a = m_.attrs(i);
  const InstId lhs = m_.operand(i, 0), rhs = m_.operand(i, 1);
  const Dims &lb = a.ints(Attr::lhs_batch_dims), &rb = a.ints(Attr::rhs_batch_dims);
  const Dims &lc = a.ints(Attr::lhs_contracting_dims), &rc = a.ints(Attr::rhs_contracting_dims);
  int64_t out = 0;
  for (size_t k = 0; k < lb.size(); ++k) {
    unite(node(lhs, lb[k]), node(rhs, rb[k]));
    unite(node(lhs, lb[k]), node(i, out++));
  }
  for (size_t k = 0; k < lc.size(); ++k) unite(node(lhs, lc[k]), node(rhs, rc[k]));
  for (int64_t d = 0; d < m_.shape(lhs).rank(); ++d)
    if (!contains(lb, d) && !contains(lc, d)) unite(node(lhs, d), node(i, out++));
  for (int64_t d = 0; d < m_.shape(rhs).rank(); ++d)
    if (!contains(rb, d) && !contains(rc, d)) unite(node(rhs, d), node(i, out++));
}

void BatchDimensions::conv_rule(InstId i) {
  const AttrSet& a = m_.attrs(i);
  const auto* labels = a.get<DimLabels>(Attr::dim_labels);
  if (!labels || a.integer(Attr::batch_group_count, 1) > 1) return fix_all(i, kUnknown);
  const InstId input = m_.operand(i, 0), kernel = m_.operand(i, 1);
  unite(node(input, labels->input_batch), node(i, labels->output_batch));
  unite(node(kernel, labels->kernel_output), node(i, labels->output_feature));
  const char* why = "is convolved over";
  if (a.integer(Attr::feature_group_count, 1) > 1) {
    fix(input, labels->input_feature, i, why), fix(kernel, labels->kernel_input, i, why);
    fix(i, labels->output_feature, i, why);
  } else {
    unite(node(input, labels->input_feature), node(kernel, labels->kernel_input));
  }
  for (size_t k = 0; k < labels->input_spatial.size(); ++k) {
    fix(input, labels->input_spatial[k], i, why);
    fix(kernel, labels->kernel_spatial[k], i, why);
    fix(i, labels->output_spatial[k], i, why);
  }
}

void BatchDimensions::reduce_rule(InstId i) {
  const size_t count = m_.operand_count(i) / 2;
  const Dims& reduced = m_.attrs(i).ints(Attr::dimensions);
  uint32_t out = first(i);
  for (size_t k = 0; k < count; ++k) {
    const InstId o = m_.operand(i, k);
    same(m_.operand(i, 0), o);
    for (int64_t d = 0; d < m_.shape(o).rank(); ++d)
      if (!contains(reduced, d)) unite(node(o, d), out++);
  }
}

void BatchDimensions::window_rule(InstId i) {
  const auto* window = m_.attrs(i).get<Window>(Attr::window);
  const InstId from = m_.operand(i, 0);
  const bool scatter = m_.op(i) == Opcode::SelectAndScatter;
  const InstId narrow = scatter ? m_.operand(i, 1) : i;
  if (!window || m_.shape(i).is_tuple()) return fix_all(i, kUnknown);
  if (scatter) same(from, i);
  for (size_t d = 0; d < window->dims.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (window->dims[d] == WindowDim())
      unite(node(from, dim), node(narrow, dim));
    else
      fix(from, dim, i, "has a window"), fix(narrow, dim, i, "has a window");
  }
}

void BatchDimensions::gather_rule(InstId i) {
  const AttrSet& a = m_.attrs(i);
  const InstId from = m_.operand(i, 0), indices = m_.operand(i, 1);
  const Dims &offset = a.ints(Attr::offset_dims), &sizes = a.ints(Attr::slice_sizes);
  const Dims& batching = a.ints(Attr::operand_batching_dims);
  const Dims& of_indices = a.ints(Attr::start_indices_batching_dims);
  for (size_t k = 0; k < batching.size(); ++k) unite(node(from, batching[k]), node(indices, of_indices[k]));
  size_t next = 0;
  for (int64_t d = 0; d < m_.shape(from).rank(); ++d) {
    if (contains(a.ints(Attr::collapsed_slice_dims), d) || contains(batching, d)) continue;
    const int64_t out = offset[next++];
    if (sizes[static_cast<size_t>(d)] == dim_of(m_, from, d))
      unite(node(from, d), node(i, out));
    else
      fix(i, out, i, "is a part of what it is gathered from");
  }
  int64_t from_indices = 0;
  for (int64_t d = 0; d < m_.shape(i).rank(); ++d) {
    if (contains(offset, d)) continue;
    if (from_indices == a.integer(Attr::index_vector_dim)) ++from_indices;
    unite(node(indices, from_indices++), node(i, d));
  }
}

void BatchDimensions::scatter_rule(InstId i) {
  const AttrSet& a = m_.attrs(i);
  if (m_.shape(i).is_tuple()) return fix_all(i, kUnknown);
  const InstId into = m_.operand(i, 0), indices = m_.operand(i, 1), updates = m_.operand(i, 2);
  const Dims& window = a.ints(Attr::update_window_dims);
  const Dims &batching = a.ints(Attr::input_batching_dims), &of_indices = a.ints(Attr::scatter_indices_batching_dims);
  same(into, i);
  for (size_t k = 0; k < batching.size(); ++k) unite(node(into, batching[k]), node(indices, of_indices[k]));
  size_t next = 0;
  for (int64_t d = 0; d < m_.shape(into).rank(); ++d) {
    if (contains(a.ints(Attr::inserted_window_dims), d) || contains(batching, d)) continue;
    const int64_t of_update = window[next++];
    if (dim_of(m_, updates, of_update) == dim_of(m_, into, d))
      unite(node(updates, of_update), node(into, d));
    else
      fix(updates, of_update, i, "is a part of what it is scattered into");
  }
  int64_t from_indices = 0;
  for (int64_t d = 0; d < m_.shape(updates).rank(); ++d) {
    if (contains(window, d)) continue;
    if (from_indices == a.integer(Attr::index_vector_dim)) ++from_indices;
    unite(node(indices, from_indices++), node(updates, d));
  }
}

void BatchDimensions::norm_rule(InstId i) {
  const InstId x = m_.operand(i, 0);
  const auto rank = static_cast<uint32_t>(m_.shape(x).rank());
  const uint32_t feature = node(x, m_.attrs(i).integer(Attr::feature_index));
  for (uint32_t d = 0; d < rank; ++d) unite(first(x) + d, first(i) + d);
  for (InstId o : m_.operands(i)) {
    if (m_.shape(o).rank() == 1)
      unite(node(o, 0), feature);
    else
      same(o, x);
  }
  for (uint32_t n = rank; n < nodes_of(m_.shape_id(i)); ++n) unite(first(i) + n, feature);
}

// What makes arrays of nothing, sorts, and messages that leave sizes alone.
bool BatchDimensions::other_rules(InstId i) {
  switch (m_.op(i)) {
    case Opcode::Parameter:
    case Opcode::Iota:
    case Opcode::GetDimensionSize:
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
    case Opcode::Rng:
    case Opcode::AfterAll:
      return true;
    case Opcode::Constant:
      return true;  // replay/report/what_if/batch.cc looks at their values
    case Opcode::RngBitGenerator: {
      const uint32_t state = nodes_of(m_.shape_id(m_.operand(i, 0)));
      for (uint32_t n = 0; n < state; ++n) fixed_.push_back({first(i) + n, i, "is a state of random numbers"});
      return true;
    }
    case Opcode::Sort: {
      uint32_t out = first(i);
      for (InstId o : m_.operands(i)) {
        same(m_.operand(i, 0), o);
        for (int64_t d = 0; d < m_.shape(o).rank(); ++d) unite(node(o, d), out++);
      }
      return true;
    }
    case Opcode::TopK: {
      const InstId o = m_.operand(i, 0);
      const int64_t last = m_.shape(o).rank() - 1;
      for (int64_t d = 0; d < last; ++d) {
        unite(node(o, d), node(i, d));
        unite(node(o, d), node(i, d + last + 1));
      }
      fix(i, last, i, "is a choice of the first"), fix(i, 2 * last + 1, i, "is a choice of the first");
      return true;
    }
    case Opcode::AllReduce:
      if (m_.operand_count(i) != 1) return false;
      same(m_.operand(i, 0), i);
      return true;
    case Opcode::CustomCall: {
      const std::string_view target = m_.u().text(m_.attrs(i).text(Attr::custom_call_target));
      if (m_.operand_count(i) != 1 || target != "Sharding" ||
          !m_.u().compatible(m_.shape_id(i), m_.shape_id(m_.operand(i, 0))))
        return false;
      same(m_.operand(i, 0), i);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace hlo
