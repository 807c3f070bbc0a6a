#include "replay/judge/chosen/pair/landings.h"

#include <algorithm>

#include "ir/base/hash.h"
#include "ir/eval/kernels.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/rules.h"

namespace hlo {
namespace {

constexpr size_t kUpdates = 6;  // of a scatter

// Corners of a part of an array, and one element inside: it begins at `start`, and has these sizes.
void add_corners(const Dims& dims, const Dims& start, const Dims& sizes, uint64_t seed, std::vector<int64_t>* to) {
  const Dims strides = row_major_strides(dims);
  for (int corner = 0; corner < 3; ++corner) {
    int64_t at = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (sizes[d] <= 0) return;
      seed = mix64(seed + d);
      const int64_t in = corner == 0   ? 0
                         : corner == 1 ? sizes[d] - 1
                                       : static_cast<int64_t>(seed % static_cast<uint64_t>(sizes[d]));
      const int64_t place = start[d] + in;
      if (place < 0 || place >= dims[d]) return;
      at += place * strides[d];
    }
    to->push_back(at);
  }
}

void add_pad(const ElementOperation& o, uint64_t seed, std::vector<int64_t>* to) {
  const auto& pads = *o.a.get<std::vector<PaddingDim>>(Attr::padding);
  const Dims &in = o.in[0]->dims, &out = o.out->dims;
  Dims start, sizes;
  for (size_t d = 0; d < in.size(); ++d) {
    start.push_back(std::max<int64_t>(pads[d].low, 0));
    const int64_t end = pads[d].low + (in[d] - 1) * (pads[d].interior + 1) + 1;
    sizes.push_back(std::min(end, out[d]) - start[d]);
  }
  add_corners(out, start, sizes, seed, to);
  for (size_t d = 0; d < in.size(); ++d) --start[d], sizes[d] += 2;
  add_corners(out, start, sizes, seed, to);
}

void add_parts(const ElementOperation& o, uint64_t seed, std::vector<int64_t>* to) {
  const auto dim = static_cast<size_t>(o.a.ints(Attr::dimensions)[0]);
  Dims start(o.out->dims.size(), 0);
  for (size_t k = 0; k < o.in.size(); ++k) {
    if (k < 2 || k + 2 >= o.in.size()) add_corners(o.out->dims, start, o.in[k]->dims, seed, to);
    start[dim] += o.in[k]->dims[dim];
  }
}

}  // namespace

std::vector<int64_t> landings(const std::vector<Expr>& all, ExprId e, ChosenElements& elements, uint64_t seed,
                              int64_t device) {
  std::vector<int64_t> out;
  const Expr x = all[e];
  if (x.kind != Expr::kOperation) return out;
  const ElementOperation o(x, e);
  if (!o.fits) return out;
  auto integer = [&](size_t operand, int64_t element) {
    const ExprId from = x.operands[operand];
    const int64_t number = device * o.u[all[from].shape].elements_count() + element;
    const std::vector<char> bytes = elements.at(from, std::span<const int64_t>(&number, 1));
    return load_int(o.u[all[from].shape].type, bytes.data());
  };
  try {
    if (o.op == Opcode::Scatter) out = scatter_landings(o, kUpdates, seed, integer);
    if (o.op == Opcode::DynamicUpdateSlice && o.in.size() == o.out->dims.size() + 2) {
      Dims start;
      for (size_t d = 0; d < o.out->dims.size(); ++d)
        start.push_back(std::clamp<int64_t>(integer(d + 2, 0), 0, o.out->dims[d] - o.in[1]->dims[d]));
      add_corners(o.out->dims, start, o.in[1]->dims, seed, &out);
    }
  } catch (const Failure& f) {
    if (f.kind() != FailureKind::kUnsupported) throw;
  }
  if (o.op == Opcode::Pad) add_pad(o, seed, &out);
  if (o.op == Opcode::Concatenate) add_parts(o, seed, &out);
  return out;
}

}  // namespace hlo
