#include "gpu_exec/lower/library_calls.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "gpu_exec/emit/element_emitter.h"
#include "ir/backend_config.h"
#include "ir/cost/cost.h"
#include "ir/library/library_calls.h"

namespace hlo {
namespace {

// A dot of one of a library's forms: batch dimensions first in memory, then one group of dimensions behind the other.
std::optional<Product> as_product(const Shape& l, const Shape& r, const Shape& out, const Dims& lb, const Dims& rb,
                                  const Dims& lc, const Dims& rc) {
  if (!out.elements_count() || !l.elements_count()) return std::nullopt;
  auto present = [](const Shape& s, const Dims& dims) {
    Dims kept;
    for (int64_t d : dims)
      if (s.dims[static_cast<size_t>(d)] != 1) kept.push_back(d);
    return kept;
  };
  auto free_of = [&](const Shape& s, const Dims& batch, const Dims& contracted) {
    Dims list;
    for (int64_t d = 0; d < s.rank(); ++d)
      if (!contains(batch, d) && !contains(contracted, d)) list.push_back(d);
    return list;
  };
  Dims lf = free_of(l, lb, lc), rf = free_of(r, rb, rc);
  auto size = [](const Shape& s, const Dims& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= s.dims[static_cast<size_t>(d)];
    return n;
  };
  auto joined = [&](const Shape& s, std::initializer_list<Dims> groups) {
    Dims all;
    for (const Dims& g : groups) {
      Dims kept = present(s, g);
      all.insert(all.end(), kept.begin(), kept.end());
    }
    return all == present(s, major_first(s));
  };
  Dims ob, olf, orf;
  int64_t next = 0;
  for (size_t k = 0; k < lb.size(); ++k) ob.push_back(next++);
  for (size_t k = 0; k < lf.size(); ++k) olf.push_back(next++);
  for (size_t k = 0; k < rf.size(); ++k) orf.push_back(next++);
  // Does a side lie as (free, contracted), or transposed?
  auto transposed = [&](const Shape& s, const Dims& batch, const Dims& first,
                        const Dims& second) -> std::optional<bool> {
    if (joined(s, {batch, first, second})) return false;
    if (joined(s, {batch, second, first})) return true;
    return std::nullopt;
  };
  Product p;
  MatrixProduct& f = p.form;
  f.type = out.type, f.batch = size(l, lb), f.k = size(l, lc);
  std::optional<bool> left, right;
  if (joined(out, {ob, olf, orf})) {
    f.left = l.type, f.right = r.type, f.m = size(l, lf), f.n = size(r, rf);
    left = transposed(l, lb, lf, lc), right = transposed(r, rb, rc, rf);
  } else if (joined(out, {ob, orf, olf})) {
    // The result lies transposed: it is the product of the sides in turn.
    p.left = 1, p.right = 0;
    f.left = r.type, f.right = l.type, f.m = size(r, rf), f.n = size(l, lf);
    left = transposed(r, rb, rf, rc), right = transposed(l, lb, lc, lf);
  }
  if (!left || !right) return std::nullopt;
  f.transpose_left = *left, f.transpose_right = *right;
  return p;
}

}  // namespace

// May a library round the operands of this product or convolution of f32 to TF32?
static bool may_round(const Module& m, InstId i, ElementType type) {
  return type == ElementType::F32 && product_form(m, i).precision == Arithmetic::kTF32;
}

std::optional<Product> product_of(const Module& m, InstId i) {
  const AttrSet& a = m.attrs(i);
  if (m.op(i) == Opcode::Dot) {
    std::optional<Product> dot = as_product(m.shape(m.operand(i, 0)), m.shape(m.operand(i, 1)), m.shape(i),
                                            a.ints(Attr::lhs_batch_dims), a.ints(Attr::rhs_batch_dims),
                                            a.ints(Attr::lhs_contracting_dims), a.ints(Attr::rhs_contracting_dims));
    if (dot) dot->form.tf32 = may_round(m, i, dot->form.type);
    return dot;
  }
  if (m.op(i) != Opcode::CustomCall) return std::nullopt;
  std::string_view target = m.u().text(a.text(Attr::custom_call_target));
  bool eight_bits = target == "__cublas$lt$matmul$f8", lt = eight_bits || target == "__cublas$lt$matmul";
  if ((!lt && target != "__cublas$gemm") || !library_call_error(m, i).empty()) return std::nullopt;
  BackendConfig config = backend_config(m.u().text(a.text(Attr::backend_config)), "gemm_backend_config");
  auto dims = config.find("dot_dimension_numbers");
  if (m.operand_count(i) < 2 || dims == config.end() || !dims->is_object() || number(config, "alpha_imag", 0) != 0)
    return std::nullopt;
  // One matrix for a whole batch, and the largest of the results, no library here has.
  if (list(*dims, "lhs_batch_dimensions").size() != list(*dims, "rhs_batch_dimensions").size() ||
      flag(config, "damax_output"))
    return std::nullopt;
  const Shape& whole = m.shape(i);
  const Shape& out = whole.is_tuple() ? m.u()[whole.elements[0]] : whole;
  std::optional<Product> p =
      as_product(m.shape(m.operand(i, 0)), m.shape(m.operand(i, 1)), out, list(*dims, "lhs_batch_dimensions"),
                 list(*dims, "rhs_batch_dimensions"), list(*dims, "lhs_contracting_dimensions"),
                 list(*dims, "rhs_contracting_dimensions"));
  if (!p) return std::nullopt;
  MatrixProduct& f = p->form;
  f.tf32 = may_round(m, i, f.type);
  f.alpha = number(config, "alpha_real", 1), f.beta = number(config, "beta", 0);
  int next = 2, count = static_cast<int>(m.operand_count(i));
  auto shape = [&](int k) -> const Shape& { return m.shape(m.operand(i, static_cast<size_t>(k))); };
  if (f.beta != 0) {
    if (next == count || shape(next).type != out.type || shape(next).dims != out.dims ||
        major_first(shape(next)) != major_first(out))
      return std::nullopt;
    p->matrix = next++;
  }
  auto factor = [&](int* to, bool* there) {
    if (next == count || shape(next).type != ElementType::F32 || shape(next).elements_count() != 1) return false;
    *to = next++, *there = true;
    return true;
  };
  bool in_turn = p->left == 1;
  if (eight_bits && (!factor(in_turn ? &p->right_scale : &p->left_scale, in_turn ? &f.right_scale : &f.left_scale) ||
                     !factor(in_turn ? &p->left_scale : &p->right_scale, in_turn ? &f.left_scale : &f.right_scale)))
    return std::nullopt;
  std::string epilogue = word(config, "epilogue", "DEFAULT");
  f.bias = epilogue.starts_with("BIAS"), f.before = epilogue.ends_with("_AUX");
  if (f.bias) {
    // A value for every column of what lies row by row. The factor of an f8 result may stand in front of it.
    if (eight_bits && next < count && shape(next).rank() == 0) factor(&p->scale, &f.scale);
    if (next == count || in_turn || shape(next).rank() != 1 || shape(next).dims[0] != f.n || out.dims.back() != f.n)
      return std::nullopt;
    f.bias_type = shape(next).type, p->bias = next++;
  }
  if (eight_bits && next < count && !factor(&p->scale, &f.scale)) return std::nullopt;
  if (next != count) return std::nullopt;
  if (epilogue == "RELU" || epilogue == "BIAS_RELU")
    f.epilogue = MatrixProduct::Epilogue::kRelu;
  else if (epilogue == "GELU" || epilogue == "BIAS_GELU" || epilogue == "GELU_AUX" || epilogue == "BIAS_GELU_AUX")
    f.epilogue = MatrixProduct::Epilogue::kGelu;
  else if (epilogue != "DEFAULT" && epilogue != "BIAS")
    return std::nullopt;
  if (f.before) {
    if (!whole.is_tuple() || whole.elements.size() < 2) return std::nullopt;
    const Shape& kept = m.u()[whole.elements[1]];
    if (kept.type != out.type || kept.dims != out.dims || major_first(kept) != major_first(out)) return std::nullopt;
  }
  return p;
}

namespace {

// `f` with these sizes and places of its arrays; none where no library has such a form.
std::optional<ConvolutionForm> with_arrays(ConvolutionForm f, const AttrSet& a, const Shape& x, const Shape& w,
                                           const Shape& y) {
  const DimLabels* d = a.get<DimLabels>(Attr::dim_labels);
  const Window* window = a.get<Window>(Attr::window);
  if (!d || a.integer(Attr::batch_group_count, 1) != 1) return std::nullopt;
  for (const Shape* s : {&x, &w, &y})
    if (s->type != y.type || s->elements_count() == 0 || s->is_dynamic()) return std::nullopt;
  size_t spatial = d->input_spatial.size();
  if (spatial < 1 || spatial > 3 || (window && window->dims.size() != spatial)) return std::nullopt;
  f.type = y.type;
  for (Dims* list : {&f.x, &f.x_steps, &f.w, &f.w_steps, &f.y, &f.y_steps, &f.low, &f.high, &f.strides, &f.dilations})
    list->clear();
  auto place = [](const Shape& s, std::initializer_list<int64_t> first, const Dims& rest, Dims* dims, Dims* steps) {
    Dims all(static_cast<size_t>(s.rank()));
    int64_t step = 1;
    std::vector<int64_t> order = major_first(s);
    for (auto at = order.rbegin(); at != order.rend(); ++at)
      all[static_cast<size_t>(*at)] = step, step *= s.dims[static_cast<size_t>(*at)];
    auto take = [&](int64_t k) {
      dims->push_back(s.dims[static_cast<size_t>(k)]), steps->push_back(all[static_cast<size_t>(k)]);
    };
    for (int64_t k : first) take(k);
    for (int64_t k : rest) take(k);
  };
  place(x, {d->input_batch, d->input_feature}, d->input_spatial, &f.x, &f.x_steps);
  place(w, {d->kernel_output, d->kernel_input}, d->kernel_spatial, &f.w, &f.w_steps);
  place(y, {d->output_batch, d->output_feature}, d->output_spatial, &f.y, &f.y_steps);
  for (size_t k = 0; k < spatial; ++k) {
    WindowDim one = window ? window->dims[k] : WindowDim{};
    if (one.lhs_dilate != 1 || one.reversal) return std::nullopt;
    // What the output's size says: HLO's high padding may leave a rest that no window reaches.
    int64_t reach = (f.w[k + 2] - 1) * one.rhs_dilate + 1;
    int64_t high = (f.y[k + 2] - 1) * one.stride + reach - f.x[k + 2] - one.pad_low;
    f.low.push_back(one.pad_low), f.high.push_back(std::max<int64_t>(high, 0));
    if (one.pad_low < 0) return std::nullopt;
    f.strides.push_back(one.stride), f.dilations.push_back(one.rhs_dilate);
  }
  // One spatial dimension is two, the first of size one.
  if (spatial == 1) {
    for (auto [dims, steps] : {std::pair(&f.x, &f.x_steps), std::pair(&f.w, &f.w_steps), std::pair(&f.y, &f.y_steps)})
      dims->insert(dims->begin() + 2, 1), steps->insert(steps->begin() + 2, steps->at(2) * dims->at(3));
    f.low.insert(f.low.begin(), 0), f.high.insert(f.high.begin(), 0);
    f.strides.insert(f.strides.begin(), 1), f.dilations.insert(f.dilations.begin(), 1);
  }
  return f;
}

}  // namespace

std::optional<ConvolutionForm> convolution_of(const Module& m, InstId i) {
  using Kind = ConvolutionForm::Kind;
  const AttrSet& a = m.attrs(i);
  ConvolutionForm f;
  const Shape *x = nullptr, *w = nullptr, *y = nullptr;
  if (m.op(i) == Opcode::Convolution) {
    x = &m.shape(m.operand(i, 0)), w = &m.shape(m.operand(i, 1)), y = &m.shape(i);
  } else {
    if (m.op(i) != Opcode::CustomCall) return std::nullopt;
    std::string_view target = m.u().text(a.text(Attr::custom_call_target));
    if (!target.starts_with("__cudnn$conv") || !m.shape(i).is_tuple() || !library_call_error(m, i).empty())
      return std::nullopt;
    std::string_view kind = target.substr(std::string_view("__cudnn$conv").size());
    const Shape &p = m.shape(m.operand(i, 0)), &q = m.shape(m.operand(i, 1)), &r = m.u()[m.shape(i).elements[0]];
    bool fused = kind == "BiasActivationForward";
    if (kind == "Forward" || fused)
      x = &p, w = &q, y = &r;
    else if (kind == "BackwardInput")
      f.kind = Kind::kInput, x = &r, w = &q, y = &p;
    else if (kind == "BackwardFilter")
      f.kind = Kind::kFilter, x = &p, w = &r, y = &q;
    else
      return std::nullopt;
    BackendConfig config = backend_config(m.u().text(a.text(Attr::backend_config)), "cudnn_conv_backend_config");
    f.scale = number(config, "conv_result_scale", 1), f.side_scale = number(config, "side_input_scale", 0);
    std::string mode = word(config, "activation_mode", "kNone");
    if (mode != "kNone" && mode != "kRelu") return std::nullopt;
    size_t operands = m.operand_count(i);
    f.relu = mode == "kRelu", f.bias = fused && operands > 2, f.side = fused && operands > 3;
    if (operands > (fused ? 4 : 2) || (!fused && f.relu)) return std::nullopt;
    const DimLabels& labels = *a.get<DimLabels>(Attr::dim_labels);
    if (f.bias) {
      const Shape& b = m.shape(m.operand(i, 2));
      if (b.rank() != 1 || b.dims[0] != y->dims[static_cast<size_t>(labels.output_feature)]) return std::nullopt;
      f.bias_type = b.type;
    }
    if (f.side) {
      const Shape& s = m.shape(m.operand(i, 3));
      if (s.type != y->type || s.dims != y->dims || major_first(s) != major_first(*y)) return std::nullopt;
    }
  }
  f.tf32 = may_round(m, i, y->type);
  return with_arrays(f, a, *x, *w, *y);
}

namespace {

// Of the arrays of a convolution in the order operand, operand, result: which of x, w and y each is.
enum class Role { kX, kW, kY };
std::array<Role, 3> roles(ConvolutionForm::Kind kind) {
  using Kind = ConvolutionForm::Kind;
  if (kind == Kind::kInput) return {Role::kY, Role::kW, Role::kX};
  if (kind == Kind::kFilter) return {Role::kX, Role::kY, Role::kW};
  return {Role::kX, Role::kW, Role::kY};
}

ShapeId laid_out(Universe& u, ShapeId array, const DimLabels& d, Role role, bool features_last) {
  auto [first, feature, spatial] = role == Role::kX   ? std::tie(d.input_batch, d.input_feature, d.input_spatial)
                                   : role == Role::kW ? std::tie(d.kernel_output, d.kernel_input, d.kernel_spatial)
                                                      : std::tie(d.output_batch, d.output_feature, d.output_spatial);
  Dims major{first};
  if (!features_last) major.push_back(feature);
  major.insert(major.end(), spatial.begin(), spatial.end());
  if (features_last) major.push_back(feature);
  return u.with_layout(array, Dims(major.rbegin(), major.rend()));
}

AttrsId attributes(Universe& u, Opcode op, std::initializer_list<std::pair<Attr, AttrValue>> list) {
  AttrSet set;
  set.op = op;
  for (const auto& [key, value] : list) set.set(key, value);
  return u.attrs(std::move(set));
}

// Get-tuple-elements of all elements of a tuple.
std::vector<InstId> elements_of(Module& m, InstId tuple) {
  Universe& u = m.u();
  std::vector<InstId> parts;
  const std::vector<ShapeId> elements = u[m.shape_id(tuple)].elements;
  for (size_t k = 0; k < elements.size(); ++k) {
    const AttrsId index = attributes(u, Opcode::GetTupleElement, {{Attr::index, static_cast<int64_t>(k)}});
    parts.push_back(m.add_derived(tuple, {.op = Opcode::GetTupleElement,
                                          .shape = elements[k],
                                          .operands = {tuple},
                                          .attrs = index,
                                          .name = "get-tuple-element"}));
  }
  return parts;
}

// `i` with its arrays of those shapes, in its place.
void replace_laid_out(Module& m, InstId i, const std::array<ShapeId, 3>& shapes) {
  Universe& u = m.u();
  CompId comp = m.parent(i);
  auto moved = [&](InstId from, ShapeId to) {
    return m.shape_id(from) == to ? from : m.add_derived(from, {Opcode::Copy, to, {from}, {}, {}, "copy"});
  };
  std::vector<InstId> operands(m.operands(i).begin(), m.operands(i).end());
  operands[0] = moved(operands[0], shapes[0]), operands[1] = moved(operands[1], shapes[1]);
  if (operands.size() > 3) operands[3] = moved(operands[3], shapes[2]);  // what is added
  const ShapeId before = m.shape_id(i);
  InstId result;
  if (!u[before].is_tuple()) {
    result = moved(m.clone_inst(i, comp, operands, shapes[2]), before);
  } else {
    // Beside the array of a call stands its workspace.
    std::vector<ShapeId> elements = u[before].elements;
    const ShapeId array = std::exchange(elements[0], shapes[2]);
    InstId made = m.clone_inst(i, comp, operands, u.tuple(elements));
    std::vector<InstId> parts = elements_of(m, made);
    parts[0] = moved(parts[0], array);
    result = m.add_derived(made, {Opcode::Tuple, before, parts, {}, {}, "tuple"});
  }
  bool root = m.is_root(i);
  m.replace_all_uses(i, result);
  if (root) m.set_root(comp, result);
  m.remove(i);
}

// Shapes of operand, operand and result in a layout that the device takes `form` in, `form` being what `i` computes, or
// a part of it; none where there is none.
std::optional<std::array<ShapeId, 3>> taken_shapes(Device& device, const Module& m, InstId i,
                                                   const ConvolutionForm& form) {
  Universe& u = m.u();
  const DimLabels& d = *m.attrs(i).get<DimLabels>(Attr::dim_labels);
  const std::array<Role, 3> role = roles(form.kind);
  const ShapeId whole = m.shape_id(i);
  const std::array<ShapeId, 3> now{m.shape_id(m.operand(i, 0)), m.shape_id(m.operand(i, 1)),
                                   u[whole].is_tuple() ? u[whole].elements[0] : whole};
  for (bool last : {true, false}) {
    std::array<ShapeId, 3> shapes, by_role;
    for (size_t k = 0; k < 3; ++k) {
      shapes[k] = laid_out(u, now[k], d, role[k], last);
      by_role[static_cast<size_t>(role[k])] = shapes[k];
    }
    std::optional<ConvolutionForm> laid = with_arrays(form, m.attrs(i), u[by_role[0]], u[by_role[1]], u[by_role[2]]);
    if (laid && device.convolves(*laid)) return shapes;
  }
  return std::nullopt;
}

// { relu(scale * p0 + broadcast(p1) + side_scale * p2) }, each part where the form has it.
class Epilogue {
 public:
  Epilogue(Module& m, const ConvolutionForm& form, ShapeId array)
      : m_(m), form_(form), body_(m.add_computation("fused_epilogue")), array_(array) {}

  CompId of(InstId call) {
    InstId sum = parameter(array_, 0);
    if (form_.scale != 1) sum = together(Opcode::Multiply, sum, all(form_.scale));
    if (form_.bias) {
      InstId bias = parameter(m_.shape_id(m_.operand(call, 2)), 1);
      if (form_.bias_type != form_.type) bias = converted(bias);
      sum = together(Opcode::Add, sum,
                     broadcast(bias, {m_.attrs(call).get<DimLabels>(Attr::dim_labels)->output_feature}));
    }
    if (form_.side) {
      InstId side = parameter(m_.shape_id(m_.operand(call, 3)), 2);
      if (form_.side_scale != 1) side = together(Opcode::Multiply, side, all(form_.side_scale));
      sum = together(Opcode::Add, sum, side);
    }
    if (form_.relu) sum = together(Opcode::Maximum, sum, all(0));
    m_.set_root(body_, sum);
    return body_;
  }

 private:
  InstId parameter(ShapeId of, uint32_t number) {
    return m_.add(body_, {Opcode::Parameter, of, {}, {}, {}, "p", number});
  }
  InstId together(Opcode op, InstId a, InstId b) {
    return m_.add(body_, {.op = op, .shape = array_, .operands = {a, b}});
  }
  InstId broadcast(InstId v, Dims dims) {
    const AttrsId attrs = attributes(m_.u(), Opcode::Broadcast, {{Attr::dimensions, std::move(dims)}});
    return m_.add(body_, {.op = Opcode::Broadcast, .shape = array_, .operands = {v}, .attrs = attrs});
  }
  InstId all(double value) {
    const LitId literal = m_.scalar_literal(form_.type, value);
    const ShapeId scalar = m_.u().scalar(form_.type);
    return broadcast(m_.add(body_, {.op = Opcode::Constant, .shape = scalar, .payload = literal.value}), {});
  }
  InstId converted(InstId v) {
    Shape s = m_.shape(v);
    s.type = form_.type;
    return m_.add(body_, {.op = Opcode::Convert, .shape = m_.u().shape(std::move(s)), .operands = {v}});
  }

  Module& m_;
  const ConvolutionForm& form_;
  const CompId body_;
  const ShapeId array_;
};

// `call` as the convolution alone and a fusion behind it.
void split_epilogue(Module& m, InstId call, const ConvolutionForm& form) {
  Universe& u = m.u();
  const std::vector<InstId> operands(m.operands(call).begin(), m.operands(call).end());
  const InstId alone = m.clone_inst(call, m.parent(call), std::span(operands).first(2));
  m.set_attr(alone, Attr::custom_call_target, u.str("__cudnn$convForward"));
  m.set_attr(alone, Attr::backend_config,
             u.str(R"({"cudnn_conv_backend_config":{"activation_mode":"kNone","conv_result_scale":1,)"
                   R"("side_input_scale":0,"leakyrelu_alpha":0}})"));
  std::vector<InstId> parts = elements_of(m, alone);
  const CompId body = Epilogue(m, form, m.shape_id(parts[0])).of(call);
  std::vector<InstId> read(operands.begin() + 1, operands.end());
  read[0] = parts[0];
  const AttrsId attrs = attributes(u, Opcode::Fusion, {{Attr::kind, u.str("kLoop")}, {Attr::calls, body}});
  parts[0] = m.add_derived(call, {.op = Opcode::Fusion,
                                  .shape = m.shape_id(parts[0]),
                                  .operands = std::move(read),
                                  .attrs = attrs,
                                  .name = "convolution_epilogue"});
  m.replace(call, m.add_derived(call, {Opcode::Tuple, m.shape_id(call), parts, {}, {}, "tuple"}));
}

}  // namespace

bool lay_out_convolutions(Device& device, Module& m) {
  bool changed = false;
  for (CompId comp : m.nonfusion_computations())
    for (InstId i : m.post_order(comp)) {
      std::optional<ConvolutionForm> form = convolution_of(m, i);
      if (!form || device.convolves(*form)) continue;
      std::optional<std::array<ShapeId, 3>> shapes = taken_shapes(device, m, i, *form);
      if (!shapes) continue;
      replace_laid_out(m, i, *shapes);
      changed = true;
    }
  m.cleanup();
  return changed;
}

bool split_convolutions(Device& device, Module& m) {
  bool changed = false;
  for (CompId comp : m.nonfusion_computations())
    for (InstId i : m.post_order(comp)) {
      std::optional<ConvolutionForm> form = convolution_of(m, i);
      // A sum of 16 bits would be rounded once more than the library rounds it.
      if (!form || type_bits(form->type) < 32 || !(form->bias || form->side) || device.convolves(*form) ||
          m.has_control(i))
        continue;
      ConvolutionForm alone = *form;
      alone.scale = 1, alone.side_scale = 0, alone.side = alone.bias = alone.relu = false;
      if (!device.convolves(alone) && !taken_shapes(device, m, i, alone)) continue;
      split_epilogue(m, i, *form);
      changed = true;
    }
  m.cleanup();
  return changed;
}

}  // namespace hlo
