// convolution-group-converter (2019; xla/hlo/transforms/simplifiers/convolution_group_converter.cc).
#include "ir/library/cudnn.h"
#include "passes/rewrite.h"

namespace hlo {

//   convolution(A, F), batch_group_count=G
//   →  convolution(A with its G groups of the batch side by side as features, F), feature_group_count=G
bool run_convolution_group_converter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Convolution)) {
    int64_t groups = m.attrs(i).integer(Attr::batch_group_count, 1);
    if (groups == 1) continue;
    InstId x = m.operand(i, 0);
    const DimLabels d = *m.attrs(i).get<DimLabels>(Attr::dim_labels);
    if (m.attrs(i).integer(Attr::feature_group_count, 1) != 1 || m.shape(i).elements_count() == 0) {
      ctx.note(m, "groups kept", {i}, "features are grouped too, or there is nothing to compute");
      continue;
    }
    if (!ctx.spend(m, "groups of the batch as groups of features", {i}, fmt::format("{} groups", groups)))
      return changed;
    // [batch] → [group, batch / groups], the group in front of the features, and both one dimension.
    Dims dims = m.shape(x).dims, split, order, joined;
    auto batch = static_cast<size_t>(d.input_batch), feature = static_cast<size_t>(d.input_feature);
    for (size_t k = 0; k < dims.size(); ++k) {
      if (k == batch)
        split.push_back(groups), split.push_back(dims[k] / groups);
      else
        split.push_back(dims[k]);
    }
    auto place = [&](size_t k) { return static_cast<int64_t>(k + (k >= batch ? 1 : 0)); };  // behind the split
    for (size_t k = 0; k < dims.size(); ++k) {
      if (k == feature) order.push_back(static_cast<int64_t>(batch));
      order.push_back(place(k));
      joined.push_back(k == batch ? dims[k] / groups : k == feature ? dims[k] * groups : dims[k]);
    }
    x = make_reshape(m, make_transpose(m, make_reshape(m, x, split), order), joined);
    InstId conv = m.clone_inst(i, m.parent(i), std::vector<InstId>{x, m.operand(i, 1)});
    m.erase_attr(conv, Attr::batch_group_count);
    m.set_attr(conv, Attr::feature_group_count, groups);
    changed |= m.replace(i, conv);
  }
  return changed;
}

}  // namespace hlo
