// fusion-dynamic-memcpy-rewriter: a fusion that only moves a slice whose place the trip's number tells
// (dynamic-slice-annotator) is a copy and no kernel (xla/backends/gpu/transforms/fusion_dynamic_memcpy_rewriter.cc).
#include "ir/analysis/fusion/fusion_analysis.h"
#include "ir/backend_config.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr std::string_view kCopyConfig =
    R"({"operation_queue_id":"0","fusion_backend_config":{"kind":"__custom_fusion","custom_fusion_config":)"
    R"({"name":"dynamic_slice_fusion","kernel_index":0}},"force_earliest_schedule":false,"reification_cost":[],)"
    R"("device_type":"DEVICE_TYPE_INVALID"})";

bool has_known_place(const Module& m, InstId slice) {
  const StrId text = m.attrs(slice).text(Attr::backend_config);
  if (!text.valid()) return false;
  const BackendConfig config = BackendConfig::parse(m.u().text(text), nullptr, false);
  return config.is_object() && config.contains("dynamic_slice_config");
}

// Does the slice lie in one piece of memory? Whole dimensions, then a part of one, then single places.
bool in_one_piece(const Module& m, InstId slice) {
  const Shape &from = m.shape(m.operand(slice, 0)), &to = m.shape(slice);
  for (const SliceDim& d : *m.attrs(slice).get<std::vector<SliceDim>>(Attr::slice))
    if (d.stride != 1) return false;
  bool whole = true;
  for (int64_t d : from.layout.minor_to_major) {
    const auto k = static_cast<size_t>(d);
    if (!whole && to.dims[k] != 1) return false;
    whole &= to.dims[k] == from.dims[k];
  }
  return true;
}

// An argument of the fusion, seen through bitcasts; with `slices`, a slice of one whose place is known, too.
bool is_argument(const Module& m, InstId i, bool slices) {
  while (m.op(i) == Opcode::Bitcast) i = m.operand(i, 0);
  if (slices &&
      ((m.op(i) == Opcode::DynamicSlice && has_known_place(m, i)) || (m.op(i) == Opcode::Slice && in_one_piece(m, i))))
    return is_argument(m, m.operand(i, 0), false);
  return m.op(i) == Opcode::Parameter;
}

}  // namespace

//   fusion(A, i), kind=kLoop                              fusion(A, i), kind=kCustom, a dynamic_slice_fusion
//     ROOT dynamic-slice(A, at(i), 0)         →             ROOT copy(dynamic-slice(A, at(i), 0))
// and of a dynamic-update-slice, the update: copied to where it goes.
bool run_fusion_dynamic_memcpy_rewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : fusible_computations(m))
    for (InstId f : m.live_order(c)) {
      if (m.op(f) != Opcode::Fusion || is_custom_fusion(m, f)) continue;
      const CompId body = m.called(f)[0];
      const InstId root = m.comp(body).root;
      const bool update = m.op(root) == Opcode::DynamicUpdateSlice;
      if ((!update && m.op(root) != Opcode::DynamicSlice) || !has_known_place(m, root)) continue;
      if (!is_argument(m, m.operand(root, 0), false) || (update && !is_argument(m, m.operand(root, 1), true))) continue;
      if (!ctx.spend(m, "a copy, no kernel", {f})) return changed;
      const InstId moved = update ? m.operand(root, 1) : root;
      const InstId copy = m.add(body, {.op = Opcode::Copy, .shape = m.shape_id(moved), .operands = {moved}});
      if (update)
        m.set_operand(root, 1, copy);
      else
        m.set_root(body, copy);
      m.set_attr(f, Attr::kind, AttrValue(u.str("kCustom")));
      m.set_attr(f, Attr::backend_config, AttrValue(u.str(kCopyConfig)));
      if (m.config().is_scheduled) m.set_order(body, m.post_order(body));
      changed = true;
    }
  return changed;
}

}  // namespace hlo
