#include "ir/analysis/fusion/operand_dims.h"

#include "ir/types/dims.h"

namespace hlo {
namespace {

// Of more than one element, in the order of memory; their sizes.
Dims list_dims(const Shape& s, OperandDims::Places* places) {
  Dims sizes;
  for (int64_t d : major_to_minor(s)) {
    const int64_t size = s.dims[static_cast<size_t>(d)];
    if (size == 1) continue;
    (*places)[sizes.size()] = static_cast<uint8_t>(d);
    sizes.push_back(size);
  }
  return sizes;
}

void regroup(const Shape& out, const Shape& in, OperandDims* o) {
  const Dims outs = list_dims(out, &o->outs), ins = list_dims(in, &o->ins);
  const auto bounds = common_factors(outs, ins);
  for (size_t g = 1; g < bounds.size(); ++g) {
    const auto &first = bounds[g - 1], &last = bounds[g];
    if (first == last) continue;
    if (first.first == last.first || first.second == last.second) return;  // other elements
    o->groups.push_back({static_cast<uint8_t>(first.first), static_cast<uint8_t>(last.first),
                         static_cast<uint8_t>(first.second), static_cast<uint8_t>(last.second)});
  }
  o->kind = OperandDims::kRegrouped;
}

}  // namespace

OperandDims operand_dims(const Module& m, InstId i, size_t n, const Shape& in) {
  OperandDims o;
  const size_t rank = in.dims.size();
  auto place = [&o](size_t to, size_t of, int64_t step = 1) { o.of[to] = static_cast<uint8_t>(of), o.step[to] = step; };
  switch (m.op(i)) {
    case Opcode::Broadcast: {
      const Dims& map = m.attrs(i).ints(Attr::dimensions);
      for (size_t k = 0; k < map.size(); ++k) place(k, static_cast<size_t>(map[k]));
      o.kind = OperandDims::kOneByOne;
      return o;
    }
    case Opcode::Transpose: {
      const Dims& p = m.attrs(i).ints(Attr::dimensions);
      for (size_t k = 0; k < p.size(); ++k) place(static_cast<size_t>(p[k]), k);
      o.kind = OperandDims::kOneByOne;
      return o;
    }
    case Opcode::Reduce: {
      const Dims& gone = m.attrs(i).ints(Attr::dimensions);
      for (size_t d = 0, k = 0; n == 0 && d < rank; ++d)
        place(d, contains(gone, static_cast<int64_t>(d)) ? OperandDims::kSummed : k++);
      o.kind = OperandDims::kOneByOne;
      return o;
    }
    case Opcode::Slice: {
      const auto* slices = m.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
      for (size_t k = 0; slices && k < rank; ++k) place(k, k, (*slices)[k].stride);
      if (slices) o.kind = OperandDims::kOneByOne;
      return o;
    }
    case Opcode::Bitcast:
    case Opcode::Reshape:
      regroup(m.shape(i), in, &o);
      return o;
    default:
      if (rank == 0)
        o.kind = OperandDims::kOneByOne;  // no dimension is any
      else if (rank == m.shape(i).dims.size())
        o.kind = OperandDims::kAlike;
      return o;
  }
}

}  // namespace hlo
