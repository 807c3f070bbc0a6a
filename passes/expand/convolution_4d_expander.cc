// convolution_4d_expander (xla/hlo/transforms/expanders/convolution_4d_expander.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {

//   convolution over [8,1,8] with a window of [3,1,3]      →      reshape(convolution over [8,8])
bool run_convolution_4d_expander(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::Convolution)) {
    const DimLabels d = *m.attrs(i).get<DimLabels>(Attr::dim_labels);
    Window w;
    if (const Window* given = m.attrs(i).get<Window>(Attr::window)) w = *given;
    if (d.input_spatial.size() != 4 || w.dims.size() != d.input_spatial.size()) continue;
    InstId lhs = m.operand(i, 0), rhs = m.operand(i, 1);
    const Dims in = m.shape(lhs).dims, kernel = m.shape(rhs).dims, out = m.shape(i).dims;
    // Spatial dimensions in which nothing happens.
    std::vector<size_t> gone;
    for (size_t s = 0; s < w.dims.size(); ++s) {
      const WindowDim& e = w.dims[s];
      if (in[static_cast<size_t>(d.input_spatial[s])] == 1 && kernel[static_cast<size_t>(d.kernel_spatial[s])] == 1 &&
          !e.pad_low && !e.pad_high && out[static_cast<size_t>(d.output_spatial[s])] == 1)
        gone.push_back(s);
    }
    if (gone.empty()) continue;
    if (!ctx.spend(m, "spatial dimensions of one dropped", {i})) return changed;
    auto dropped = [&](size_t s) { return std::find(gone.begin(), gone.end(), s) != gone.end(); };
    auto side = [&](const Dims& dims, const Dims& spatial, std::vector<int64_t>* to) {
      Dims kept;
      to->assign(dims.size(), -1);
      for (size_t k = 0; k < dims.size(); ++k) {
        auto s =
            static_cast<size_t>(std::find(spatial.begin(), spatial.end(), static_cast<int64_t>(k)) - spatial.begin());
        if (s < spatial.size() && dropped(s)) continue;
        (*to)[k] = static_cast<int64_t>(kept.size());
        kept.push_back(dims[k]);
      }
      return kept;
    };
    std::vector<int64_t> ti, tk, to;
    Dims ni = side(in, d.input_spatial, &ti), nk = side(kernel, d.kernel_spatial, &tk),
         no = side(out, d.output_spatial, &to);
    DimLabels labels = d;
    auto moved = [](const std::vector<int64_t>& map, int64_t k) { return map[static_cast<size_t>(k)]; };
    labels.input_batch = moved(ti, d.input_batch), labels.input_feature = moved(ti, d.input_feature);
    labels.kernel_input = moved(tk, d.kernel_input), labels.kernel_output = moved(tk, d.kernel_output);
    labels.output_batch = moved(to, d.output_batch), labels.output_feature = moved(to, d.output_feature);
    labels.input_spatial.clear(), labels.kernel_spatial.clear(), labels.output_spatial.clear();
    Window window;
    for (size_t s = 0; s < w.dims.size(); ++s) {
      if (dropped(s)) continue;
      labels.input_spatial.push_back(moved(ti, d.input_spatial[s]));
      labels.kernel_spatial.push_back(moved(tk, d.kernel_spatial[s]));
      labels.output_spatial.push_back(moved(to, d.output_spatial[s]));
      window.dims.push_back(w.dims[s]);
    }
    labels.lhs_rank = static_cast<int>(ni.size()), labels.rhs_rank = static_cast<int>(nk.size()),
    labels.out_rank = static_cast<int>(no.size());
    std::vector<InstId> ops{make_reshape(m, lhs, ni), make_reshape(m, rhs, nk)};
    InstId conv = m.clone_inst(i, m.parent(i), ops, m.u().array(m.shape(i).type, no));
    m.set_attr(conv, Attr::window, window);
    m.set_attr(conv, Attr::dim_labels, Boxed<DimLabels>(labels));
    InstId back = m.add(m.parent(i), {.op = Opcode::Reshape, .shape = m.shape_id(i), .operands = {conv}});
    changed |= m.replace(i, back);
  }
  return changed;
}

}  // namespace hlo
