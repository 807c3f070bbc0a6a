// cublas-pad-for-gemms (xla/backends/gpu/transforms/cublas_pad_for_gemms.cc): matrices of narrow types get sizes that
// tensor cores take.
#include "passes/library_calls/gemm_call.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// Batch dimensions in front, then two.
bool is_plain(const Module& m, InstId i) {
  const AttrSet& a = m.attrs(i);
  for (size_t side : {size_t{0}, size_t{1}}) {
    const Dims& batch = a.ints(side ? Attr::rhs_batch_dims : Attr::lhs_batch_dims);
    if (m.shape(m.operand(i, side)).dims.size() != batch.size() + 2 || m.shape(m.operand(i, side)).is_dynamic())
      return false;
    for (size_t d = 0; d < batch.size(); ++d)
      if (batch[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

ShapeId padded(Module& m, ShapeId id, int64_t multiple) {
  Shape s = m.u()[id];
  for (size_t d = s.dims.size() - 2; d < s.dims.size(); ++d)
    s.dims[d] = (s.dims[d] + multiple - 1) / multiple * multiple;
  return m.u().shape(std::move(s));
}

}  // namespace

//   dot(bf16[100,37] A, bf16[37,51] B)      →      slice(dot(bf16[104,40] pad(A, 0), bf16[40,56] pad(B, 0)))
bool run_cublas_pad_for_gemms(Module& m, PassContext& ctx) {
  Universe& u = m.u();
  const std::string& only = ctx.word("type");
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Dot)) {
    if (!is_library_product(m, i, false) || !is_plain(m, i)) continue;
    const ElementType type = m.shape(m.operand(i, 0)).type;
    if (type != ElementType::S8 && type != ElementType::F16 && type != ElementType::BF16) continue;
    if (m.shape(m.operand(i, 1)).type != type || (only != "all" && only != type_name(type))) continue;
    const int64_t multiple = type == ElementType::S8 ? 4 : 8;
    const ShapeId shapes[2] = {padded(m, m.shape_id(m.operand(i, 0)), multiple),
                               padded(m, m.shape_id(m.operand(i, 1)), multiple)};
    if (shapes[0] == m.shape_id(m.operand(i, 0)) && shapes[1] == m.shape_id(m.operand(i, 1))) continue;
    if (!ctx.spend(m, "sizes for tensor cores", {i})) return changed;
    const CompId c = m.parent(i);
    const MetaId meta = m[i].meta;
    const InstId zero = make_scalar(m, c, type, 0);
    m.set_meta(zero, meta);
    std::vector<InstId> operands;
    for (size_t side : {size_t{0}, size_t{1}}) {
      const InstId x = m.operand(i, side);
      std::vector<PaddingDim> padding(m.shape(x).dims.size());
      for (size_t d = 0; d < padding.size(); ++d) padding[d].high = u[shapes[side]].dims[d] - m.shape(x).dims[d];
      operands.push_back(
          make(m, c, Opcode::Pad, {x, zero}, attrs_of(u, Opcode::Pad, {{Attr::padding, padding}}), shapes[side]));
      m.set_meta(operands.back(), meta);
    }
    const InstId dot = m.clone_inst(i, c, operands, padded(m, m.shape_id(i), multiple));
    std::vector<SliceDim> slice;
    for (int64_t d : m.shape(i).dims) slice.push_back({0, d, 1});
    const InstId cut =
        make(m, c, Opcode::Slice, {dot}, attrs_of(u, Opcode::Slice, {{Attr::slice, slice}}), m.shape_id(i));
    m.set_meta(cut, meta);
    m.replace(i, cut);
    changed = true;
  }
  return changed;
}

}  // namespace hlo
