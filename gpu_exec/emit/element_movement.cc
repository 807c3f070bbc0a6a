// Elements that come from elsewhere: of concatenations and gathers.
#include <fmt/format.h>

#include <algorithm>

#include "gpu_exec/emit/element_emitter.h"

namespace hlo {

using llvm::Value;

Value* ElementEmitter::concatenate(const Frame& frame, InstId inst, const ElementIndex* index) {
  auto d = static_cast<size_t>(m_.attrs(inst).ints(Attr::dimensions)[0]);
  std::vector<InstId> ops(m_.operands(inst).begin(), m_.operands(inst).end());
  std::vector<int64_t> starts{0};
  for (InstId o : ops) starts.push_back(starts.back() + m_.shape(o).dims[d]);
  std::vector<Value*> at = dims(index);
  llvm::Type* type = register_type(m_.shape(inst).type);
  // Halving, so that many parts need few branches.
  auto pick = [&](auto&& self, size_t first, size_t last) -> Value* {
    if (last - first == 1) {
      std::vector<Value*> in = at;
      in[d] = first ? b_.CreateNSWSub(at[d], number(starts[first])) : at[d];
      return element(frame, ops[first], index_of(m_.shape_id(ops[first]), std::move(in)));
    }
    size_t middle = (first + last) / 2;
    return choose(
        b_.CreateICmpSLT(at[d], number(starts[middle])), type, [&] { return self(self, first, middle); },
        [&] { return self(self, middle, last); });
  };
  return pick(pick, 0, ops.size());
}

Value* ElementEmitter::gather(const Frame& frame, InstId inst, const ElementIndex* index) {
  const AttrSet& a = m_.attrs(inst);
  InstId in = m_.operand(inst, 0), starts = m_.operand(inst, 1);
  const Shape &from = m_.shape(in), &idx = m_.shape(starts), &out = m_.shape(inst);
  const Dims &offset = a.ints(Attr::offset_dims), &collapsed = a.ints(Attr::collapsed_slice_dims),
             &map = a.ints(Attr::start_index_map), &batching = a.ints(Attr::operand_batching_dims),
             &idx_batching = a.ints(Attr::start_indices_batching_dims), &sizes = a.ints(Attr::slice_sizes);
  int64_t vector_dim = a.integer(Attr::index_vector_dim);
  if (!is_integral(idx.type)) refuse(inst, fmt::format("by indices of {}", type_name(idx.type)));
  std::vector<Value*> at = dims(index), batch;
  for (int64_t k = 0; k < out.rank(); ++k)
    if (!contains(offset, k)) batch.push_back(at[static_cast<size_t>(k)]);
  std::vector<Value*> where(from.dims.size(), number(0));
  size_t next = 0;
  for (int64_t k = 0; k < from.rank(); ++k)
    if (!contains(collapsed, k) && !contains(batching, k))
      where[static_cast<size_t>(k)] = at[static_cast<size_t>(offset[next++])];
  Dims batch_idx;
  for (int64_t k = 0; k < idx.rank(); ++k)
    if (k != vector_dim) batch_idx.push_back(k);
  for (size_t k = 0; k < map.size(); ++k) {
    std::vector<Value*> in_idx(idx.dims.size());
    for (size_t j = 0; j < batch_idx.size(); ++j) in_idx[static_cast<size_t>(batch_idx[j])] = batch[j];
    if (vector_dim < idx.rank()) in_idx[static_cast<size_t>(vector_dim)] = number(static_cast<int64_t>(k));
    Value* v = element(frame, starts, index_of(m_.shape_id(starts), std::move(in_idx)));
    auto d = static_cast<size_t>(map[k]);
    bool sign = is_signed_int(idx.type);
    Value* wide = sign ? b_.CreateSExtOrTrunc(v, b_.getInt64Ty()) : b_.CreateZExtOrTrunc(v, b_.getInt64Ty());
    Value* top = b_.getInt64(static_cast<uint64_t>(from.dims[d] - sizes[d]));
    if (sign) wide = intrinsic(llvm::Intrinsic::smax, wide, b_.getInt64(0));
    wide = intrinsic(sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, wide, top);
    where[d] = add(where[d], b_.CreateTrunc(wide, index_type_));
  }
  for (size_t k = 0; k < batching.size(); ++k) {
    auto which =
        static_cast<size_t>(std::find(batch_idx.begin(), batch_idx.end(), idx_batching[k]) - batch_idx.begin());
    where[static_cast<size_t>(batching[k])] = add(where[static_cast<size_t>(batching[k])], batch[which]);
  }
  return element(frame, in, index_of(m_.shape_id(in), std::move(where)));
}

Value* ElementEmitter::broadcast(const Frame& frame, InstId inst, const ElementIndex* index) {
  InstId o = m_.operand(inst, 0);
  const Shape& from = m_.shape(o);
  if (from.rank() == 0) return scalar_operand(frame, o);
  const Dims& to = m_.attrs(inst).ints(Attr::dimensions);
  std::vector<Value*> at;
  for (size_t k = 0; k < to.size(); ++k)
    at.push_back(from.dims[k] == 1 ? number(0) : dims(index)[static_cast<size_t>(to[k])]);
  return element(frame, o, index_of(m_.shape_id(o), std::move(at)));
}

Value* ElementEmitter::reshape(const Frame& frame, InstId inst, const ElementIndex* index) {
  const Shape& shape = m_.shape(inst);
  InstId o = m_.operand(inst, 0);
  if (index->linear && index->dims.empty()) return element(frame, o, index_of_linear(m_.shape_id(o), index->linear));
  return element(frame, o, index_of(m_.shape_id(o), reshaped(m_.shape(o).dims, dims(index), shape.dims)));
}

Value* ElementEmitter::bitcast(const Frame& frame, InstId inst, const ElementIndex* index) {
  const Shape& shape = m_.shape(inst);
  InstId o = m_.operand(inst, 0);
  const Shape& from = m_.shape(o);
  if (from.type != shape.type) {
    if (type_bits(from.type) != type_bits(shape.type) || is_complex(from.type) || is_complex(shape.type) ||
        from.dims != shape.dims || m_.shape(inst).layout != from.layout)
      refuse(inst, "it changes the type");
    return from_bits(shape.type, bits_of(from.type, element(frame, o, index)));
  }
  bool plain =
      (!from.has_layout || is_default_layout(from.layout)) && (!shape.has_layout || is_default_layout(shape.layout));
  if (plain && index->linear && index->dims.empty())
    return element(frame, o, index_of_linear(m_.shape_id(o), index->linear));
  // By the order in memory: both sides with their dimensions major first.
  Dims out_order = major_first(shape), in_order = major_first(from), out_dims, in_dims;
  std::vector<Value*> at, in(from.dims.size());
  for (int64_t d : out_order)
    out_dims.push_back(shape.dims[static_cast<size_t>(d)]), at.push_back(dims(index)[static_cast<size_t>(d)]);
  for (int64_t d : in_order) in_dims.push_back(from.dims[static_cast<size_t>(d)]);
  std::vector<Value*> physical = reshaped(in_dims, at, out_dims);
  for (size_t k = 0; k < in_order.size(); ++k) in[static_cast<size_t>(in_order[k])] = physical[k];
  return element(frame, o, index_of(m_.shape_id(o), std::move(in)));
}

Value* ElementEmitter::transpose(const Frame& frame, InstId inst, const ElementIndex* index) {
  InstId o = m_.operand(inst, 0);
  const Dims& to = m_.attrs(inst).ints(Attr::dimensions);
  std::vector<Value*> at(to.size());
  for (size_t k = 0; k < to.size(); ++k) at[static_cast<size_t>(to[k])] = dims(index)[k];
  return element(frame, o, index_of(m_.shape_id(o), std::move(at)));
}

Value* ElementEmitter::reverse(const Frame& frame, InstId inst, const ElementIndex* index) {
  const Shape& shape = m_.shape(inst);
  InstId o = m_.operand(inst, 0);
  std::vector<Value*> at = dims(index);
  for (int64_t d : m_.attrs(inst).ints(Attr::dimensions)) {
    auto k = static_cast<size_t>(d);
    at[k] = b_.CreateNSWSub(number(shape.dims[k] - 1), at[k]);
  }
  return element(frame, o, index_of(m_.shape_id(o), std::move(at)));
}

Value* ElementEmitter::slice(const Frame& frame, InstId inst, const ElementIndex* index) {
  InstId o = m_.operand(inst, 0);
  std::vector<Value*> at = dims(index);
  const auto& slices = *m_.attrs(inst).get<std::vector<SliceDim>>(Attr::slice);
  for (size_t k = 0; k < at.size(); ++k) at[k] = add(mul(at[k], number(slices[k].stride)), number(slices[k].start));
  return element(frame, o, index_of(m_.shape_id(o), std::move(at)));
}

Value* ElementEmitter::dynamic_slice(const Frame& frame, InstId inst, const ElementIndex* index) {
  const Shape& shape = m_.shape(inst);
  InstId o = m_.operand(inst, 0);
  std::vector<Value*> at = dims(index);
  for (size_t k = 0; k < at.size(); ++k) {
    int64_t most = m_.shape(o).dims[k] - shape.dims[k];
    if (most > 0) at[k] = b_.CreateNSWAdd(at[k], clamped_start(frame, m_.operand(inst, k + 1), most));
  }
  return element(frame, o, index_of(m_.shape_id(o), std::move(at)));
}

Value* ElementEmitter::dynamic_update_slice(const Frame& frame, InstId inst, const ElementIndex* index) {
  const Shape& shape = m_.shape(inst);
  InstId o = m_.operand(inst, 0), update = m_.operand(inst, 1);
  std::vector<Value*> at = dims(index), in(at.size());
  Value* inside = b_.getTrue();
  for (size_t k = 0; k < at.size(); ++k) {
    int64_t size = m_.shape(update).dims[k], most = shape.dims[k] - size;
    in[k] = at[k];
    if (most == 0) continue;
    Value* start = clamped_start(frame, m_.operand(inst, k + 2), most);
    in[k] = b_.CreateNSWSub(at[k], start);
    inside = b_.CreateAnd(inside, b_.CreateICmpULT(in[k], number(size)));
  }
  return choose(
      inside, register_type(shape.type), [&] { return element(frame, update, index_of(m_.shape_id(update), in)); },
      [&] { return element(frame, o, index); });
}

Value* ElementEmitter::pad(const Frame& frame, InstId inst, const ElementIndex* index) {
  const Shape& shape = m_.shape(inst);
  InstId o = m_.operand(inst, 0);
  const Shape& from = m_.shape(o);
  const auto& padding = *m_.attrs(inst).get<std::vector<PaddingDim>>(Attr::padding);
  std::vector<Value*> at = dims(index);
  Value* inside = b_.getTrue();
  for (size_t k = 0; k < at.size(); ++k) {
    const PaddingDim& p = padding[k];
    if (p.low == 0 && p.high <= 0 && p.interior == 0) continue;
    Value* i = b_.CreateNSWSub(at[k], number(p.low));
    if (p.interior) {
      inside = b_.CreateAnd(inside, b_.CreateICmpEQ(b_.CreateSRem(i, number(p.interior + 1)), number(0)));
      // Towards zero: what lies in front is outside anyhow.
      inside = b_.CreateAnd(inside, b_.CreateICmpSGE(i, number(0)));
      i = b_.CreateSDiv(i, number(p.interior + 1));
    }
    inside = b_.CreateAnd(inside, b_.CreateICmpULT(i, number(from.dims[k])));
    at[k] = i;
  }
  return choose(
      inside, register_type(shape.type), [&] { return element(frame, o, index_of(m_.shape_id(o), at)); },
      [&] { return scalar_operand(frame, m_.operand(inst, 1)); });
}

}  // namespace hlo
