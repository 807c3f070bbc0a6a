// conv-rewriter (2019: cudnn-conv-rewriter; xla/backends/gpu/transforms/conv_rewriter.cc): forward convolutions become
// library calls. Backward forms (base dilation, reversed filters) stay as they are.
#include "passes/rewrite.h"

namespace hlo {

bool run_conv_rewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Convolution) continue;
      const AttrSet& a = m.attrs(i);
      std::string_view why;
      const Window* w = a.get<Window>(Attr::window);
      if (!w || w->dims.empty() || w->dims.size() > 3)
        why = "not 1 to 3 spatial dimensions";
      else if (a.integer(Attr::batch_group_count, 1) != 1)
        why = "batch groups";
      else if (m.shape(i).elements_count() == 0)
        why = "no elements";
      else if (is_complex(m.shape(i).type) || m.shape(i).type == ElementType::Pred)
        why = "element type";
      else if (m.has_control(i))
        why = "control dependencies";
      else
        for (const WindowDim& d : w->dims) {
          if (d.lhs_dilate != 1) why = "base dilation: a data gradient";
          if (d.pad_low < 0 || d.pad_high < 0) why = "negative padding";
          if (d.reversal) why = "reversed window";
        }
      if (!why.empty()) {
        ctx.note(m, "stays a convolution", {i}, why);
        continue;
      }
      if (!ctx.spend(m, "forward convolution", {i})) return changed;
      //   f32[…] convolution(A, K)      →      get-tuple-element((f32[…], u8[0]) custom-call(A, K)), index=0
      AttrSet set;
      set.op = Opcode::CustomCall;
      for (Attr key : {Attr::window, Attr::dim_labels, Attr::feature_group_count, Attr::operand_precision,
                       Attr::frontend_attributes})
        if (const AttrValue* v = a.find(key)) set.set(key, *v);
      set.set(Attr::custom_call_target, u.str("__cudnn$convForward"));
      set.set(Attr::backend_config, u.str("{\"operation_queue_id\":\"0\",\"cudnn_conv_backend_config\":{\"activation_"
                                          "mode\":\"kNone\",\"conv_result_scale\":1,\"side_input_scale\":0,"
                                          "\"leakyrelu_alpha\":0},\"force_earliest_schedule\":false,\"reification_"
                                          "cost\":[],\"device_type\":\"DEVICE_TYPE_INVALID\"}"));
      ShapeId scratch = u.array(ElementType::U8, {0});
      InstId call = m.add(c, {.op = Opcode::CustomCall,
                              .shape = u.tuple({m.shape_id(i), scratch}),
                              .operands = {m.operand(i, 0), m.operand(i, 1)},
                              .attrs = u.attrs(std::move(set)),
                              .meta = m[i].meta,
                              .name = "cudnn-conv"});
      InstId gte = make_element(m, call, 0);
      changed |= m.replace(i, gte);
    }
  return changed;
}

}  // namespace hlo
