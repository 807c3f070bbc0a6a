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

}  // namespace hlo
