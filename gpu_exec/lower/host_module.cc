#include "gpu_exec/lower/host_module.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "gpu_exec/lower/library_calls.h"
#include "ir/types/tiling.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

Dims in_memory(const Shape& s) {
  if (has_other_layout(s)) return {s.layout.minor_to_major.rbegin(), s.layout.minor_to_major.rend()};
  Dims order(s.dims.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}
// Of a bitcast: does it leave every element at its row-major number, tiled as both sides are?
bool keeps_numbers(const Shape& in, const Shape& out) {
  std::optional<TiledOrder> from = TiledOrder::of(in), to = TiledOrder::of(out);
  return in.type == out.type && from && to && from->same_as(*to);
}

InstId spell_out(Module& m, InstId bitcast) {
  const Shape out = m.shape(bitcast);
  const InstId operand = m.operand(bitcast, 0);
  InstId made = operand;
  if (has_other_layout(m.shape(operand))) made = make_transpose(m, operand, in_memory(m.shape(operand)));
  Dims order = in_memory(out);
  Shape flat = out;
  flat.layout = {};
  for (size_t k = 0; k < order.size(); ++k) flat.dims[k] = out.dims[static_cast<size_t>(order[k])];
  for (int64_t k = out.rank(); k-- > 0;) flat.layout.minor_to_major.push_back(k);
  if (m.shape(made).dims != flat.dims || m.shape(made).type != flat.type)
    made = m.add_derived(bitcast, {Opcode::Bitcast, m.u().shape(std::move(flat)), {made}, {}, {}, "bitcast"});
  if (!is_identity(order)) made = make_transpose(m, made, inverse_permutation(order));
  bool root = m.is_root(bitcast);
  CompId c = m.parent(bitcast);
  m.replace_all_uses(bitcast, made);
  if (root) m.set_root(c, made);
  StrId name = m[bitcast].name;
  m.remove(bitcast);
  if (made != operand) m.set_name(made, name);
  return made;
}

}  // namespace

std::vector<std::pair<InstId, InstId>> make_row_major(Module& m) {
  std::vector<std::pair<InstId, InstId>> made;
  const std::vector<CompId> computations = m.computations();
  for (CompId c : computations)
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Bitcast) continue;
      const Shape &in = m.shape(m.operand(i, 0)), &out = m.shape(i);
      if (has_tiles(in) || has_tiles(out)) {
        if (keeps_numbers(in, out)) continue;
        fail(FailureKind::kUnsupported, "{}: a bitcast of a tiled layout that moves elements", m.inst_name(i));
      }
      if (in.is_dynamic() || out.is_dynamic() || (!has_other_layout(in) && !has_other_layout(out))) continue;
      made.push_back({i, spell_out(m, i)});
    }
  if (!made.empty()) m.cleanup();
  for (CompId c : computations)
    for (InstId i : m.live_order(c))
      if (ShapeId plain = m.u().with_default_layout(m.shape_id(i)); plain != m.shape_id(i)) m.set_shape(i, plain);
  return made;
}

void call_convolutions(Device& device, Module& m, PassContext& context) {
  Universe& u = m.u();
  bool any = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Convolution || m.has_control(i)) continue;
      std::optional<ConvolutionForm> f = convolution_of(m, i);
      if (!f || !device.convolves(*f)) continue;
      AttrSet set;
      set.op = Opcode::CustomCall;
      for (Attr key : {Attr::window, Attr::dim_labels, Attr::feature_group_count})
        if (const AttrValue* v = m.attrs(i).find(key)) set.set(key, *v);
      set.set(Attr::custom_call_target, u.str("__cudnn$convForward"));
      // The pass keeps what it does not know: the call's name for whoever reads a profile.
      nlohmann::ordered_json config = {
          {"cudnn_conv_backend_config",
           {{"activation_mode", "kNone"}, {"conv_result_scale", 1}, {"side_input_scale", 0}}},
          {"instruction", u.text(m[i].name)}};
      set.set(Attr::backend_config, u.str(config.dump()));
      InstId call = m.add(c, {.op = Opcode::CustomCall,
                              .shape = u.tuple({m.shape_id(i), u.array(ElementType::U8, {0})}),
                              .operands = {m.operand(i, 0), m.operand(i, 1)},
                              .attrs = u.attrs(std::move(set)),
                              .meta = m[i].meta});
      m.replace(i, make_element(m, call, 0));
      any = true;
    }
  if (!any) return;
  m.set_scheduled(false);
  context.run(m, "cudnn-fused-convolution-rewriter");
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::CustomCall || !convolution_of(m, i)) continue;
      auto config = nlohmann::json::parse(u.text(m.attrs(i).text(Attr::backend_config)), nullptr, false);
      if (config.is_object() && config.contains("instruction") && config["instruction"].is_string())
        m.set_name(i, u.str(config["instruction"].get<std::string>()));
    }
  m.cleanup();
}

}  // namespace hlo
