// What is needed for elements of each kind of expression, and the rule of each operation.
#include <algorithm>

#include "ir/eval/library/attention_call.h"
#include "ir/eval/library/gemm_call.h"
#include "ir/library/library_calls.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/elements_run.h"

namespace hlo {
namespace {

// The value of that shape whose arrays are the next of a list.
Value assembled(const Universe& u, ShapeId id, std::vector<Value>& arrays, size_t& next) {
  const Shape& s = u[id];
  Value v;
  v.shape = id;
  if (s.is_array()) {
    v = std::move(arrays[next++]);
    v.shape = id;
  }
  for (ShapeId e : s.elements) v.elements.push_back(assembled(u, e, arrays, next));
  return v;
}

std::string_view target_of(const ElementOperation& o) { return o.u.text(o.a.text(Attr::custom_call_target)); }

// What gives another value each time, or one that other devices or the host have a part in.
bool is_beyond_operands(const ElementOperation& o) {
  switch (op_info(o.op).cls) {
    case OpClass::Io:
    case OpClass::Collective:
    case OpClass::Async:
    case OpClass::Fusion:
      return true;
    case OpClass::Call:
      return o.op != Opcode::Map;
    case OpClass::Rng:
      return o.op != Opcode::RngBitGenerator;
    case OpClass::Custom: {
      const std::string_view target = target_of(o);
      return target == "GetRngSeed" || target == "AllocateBuffer" || !is_library_target(target);
    }
    default:
      return o.op == Opcode::PartitionId || o.op == Opcode::ReplicaId;
  }
}

}  // namespace

ElementPlan ChosenElements::Run::plan_branch(const Expr& x, const Elements& at) {
  const ElementType type = type_of(x.operands[0]);
  const int64_t zero = 0;
  if (!known_here(x.operands[0], std::span<const int64_t>(&zero, 1))) {
    ElementPlan p;
    p.first.push_back({0, element_list({0})});
    return p;
  }
  char bytes[16];
  read_here(x.operands[0], type, std::span<const int64_t>(&zero, 1), bytes);
  int64_t which = load_int(type, bytes);
  const auto branches = static_cast<int64_t>(x.operands.size()) - 1;
  if (type == ElementType::Pred)
    which = which ? 0 : 1;
  else if (which < 0 || which >= branches)
    which = branches - 1;
  const auto operand = static_cast<size_t>(which) + 1;
  ElementPlan p;
  p.needs.push_back({operand, at});
  p.values = [this, &x, operand, at](char* out) { read_here(x.operands[operand], universe()[x.shape].type, *at, out); };
  return p;
}

ElementPlan ChosenElements::Run::plan_view(const Expr& x, const Elements& at) {
  std::vector<int64_t> from;
  from.reserve(at->size());
  for_coordinates(*at, x.view.sizes, [&](size_t, const Dims& c) {
    int64_t i = x.view.offset;
    for (size_t d = 0; d < c.size(); ++d) i += c[d] * x.view.steps[d];
    from.push_back(i);
  });
  ElementPlan p;
  const ElementList list = element_list(std::move(from));
  p.needs.push_back({0, list});
  p.values = [this, &x, list](char* out) { read_here(x.operands[0], universe()[x.shape].type, *list, out); };
  return p;
}

ElementPlan ChosenElements::Run::plan_constant(const ElementOperation& o, const Elements& at) {
  LitId id = o.m.literal_id(o.x.inst);
  // The leaf of that number.
  std::vector<LitId> left{id}, arrays;
  while (!left.empty()) {
    const LitId one = left.back();
    left.pop_back();
    const Literal& l = o.u[one];
    if (o.u[l.shape].is_array()) arrays.push_back(one);
    left.insert(left.end(), l.elements.rbegin(), l.elements.rend());
  }
  if (o.x.leaf >= arrays.size()) return no_plan("a constant of another shape");
  const Literal& l = o.u[arrays[o.x.leaf]];
  if (l.elided) return no_plan("its value is elided ({...}) and unknown");
  ElementPlan p;
  p.values = [&l, at, width = static_cast<size_t>(storage_bytes(o.u[l.shape].type))](char* out) {
    for (int64_t i : *at) std::memcpy(out, l.bytes.data() + static_cast<size_t>(i) * width, width), out += width;
  };
  return p;
}

ElementPlan ChosenElements::Run::plan_whole(const ElementOperation& o, const Elements& at) {
  if (is_beyond_operands(o))
    return no_plan(o.op == Opcode::CustomCall ? fmt::format("custom-call target \"{}\"", target_of(o))
                                              : std::string(op_text(o.op)));
  const WholeKey key{&o.m, o.x.inst.value, o.x.operands, device_};
  ElementPlan p;
  auto pick = [&o, at](const std::vector<Value>& arrays, char* out) {
    const auto width = static_cast<size_t>(storage_bytes(o.out->type));
    for (int64_t i : *at)
      std::memcpy(out, arrays[o.x.leaf].bytes() + static_cast<size_t>(i) * width, width), out += width;
  };
  if (auto done = whole_.find(key); done != whole_.end()) {
    p.values = [&arrays = done->second, pick](char* out) { pick(arrays, out); };
    return p;
  }
  Checked sum = 0, results = 0;
  for (const Shape* s : o.in) sum += s->elements_count();
  std::vector<ShapeId> made;
  add_leaf_shapes(o.u, o.m.shape_id(o.x.inst), &made);
  for (ShapeId s : made) results += o.u[s].elements_count();
  if (std::max(sum.capped(), results.capped()) > options_.most_whole)
    return no_plan(fmt::format("{} has no rule for single elements, and more than {} elements", op_text(o.op),
                               options_.most_whole));
  afford(sum.capped());
  std::vector<ElementList> all;
  for (size_t k = 0; k < o.in.size(); ++k) {
    std::vector<int64_t> list(static_cast<size_t>(o.in[k]->elements_count()));
    for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int64_t>(i);
    all.push_back(element_list(std::move(list)));
    p.needs.push_back({k, all.back()});
  }
  p.values = [this, &o, key, pick, all](char* out) {
    auto done = whole_.find(key);
    if (done == whole_.end()) {
      std::vector<Value> arrays, operands, results;
      for (size_t k = 0; k < o.in.size(); ++k)
        arrays.push_back(element_values(const_cast<Universe&>(o.u), o.in[k]->type, ElementSource::read(o, k, *all[k])));
      size_t next = 0;
      for (InstId i : o.m.operands(o.x.inst)) operands.push_back(assembled(o.u, o.m.shape_id(i), arrays, next));
      EvalOptions how;
      how.stop = options_.stop;
      flatten(o.u, Evaluator(o.m, how).run_instruction(o.x.inst, std::move(operands)), &results);
      std::erase_if(results, [&](const Value& v) { return !o.u[v.shape].is_array(); });
      done = whole_.emplace(key, std::move(results)).first;
    }
    pick(done->second, out);
  };
  return p;
}

ElementPlan ChosenElements::Run::plan_call(const ElementOperation& o, const Elements& at) {
  const std::string_view target = target_of(o);
  constexpr std::string_view kConvolution = "__cudnn$conv";
  if (is_mark(target) && o.in.size() == 1) return plan_same(o, 0, at, *this);
  const std::string why = library_call_error(o.m, o.x.inst);
  if (!why.empty()) return no_plan(fmt::format("{}: {}", target, why));
  if (is_gemm_call(target)) {
    ElementPlan p = plan_gemm(o, at, *this);
    return p.why.empty() ? std::move(p) : plan_whole(o, at);
  }
  if ((target == "TopK" || target == "__gpu$TopK") && o.in.size() == 1) return plan_lines(o, at, *this);
  if (target.starts_with(kConvolution) && o.x.leaf == 0) {
    const std::string_view kind = target.substr(kConvolution.size());
    if (kind == "Forward" || kind == "BackwardInput" || kind == "BackwardFilter" || kind == "BiasActivationForward")
      return plan_cudnn_convolution(o, kind, at, *this);
  }
  ElementPlan p = is_attention_call(target) ? plan_attention(o, at, *this) : no_plan("no rule");
  return p.why.empty() ? std::move(p) : plan_whole(o, at);
}

ElementPlan ChosenElements::Run::plan(const ElementOperation& o, const Elements& at) {
  if (!o.fits || std::find(o.x.operands.begin(), o.x.operands.end(), kNoExpr) != o.x.operands.end())
    return no_plan(fmt::format("{} of operands that are no arrays", op_text(o.op)));
  for (const Shape* s : o.in)
    if (s->is_dynamic()) return no_plan("a dynamic dimension");
  if (o.out->is_dynamic()) return no_plan("a dynamic dimension");
  ElementPlan p;
  switch (o.op) {
    case Opcode::Constant:
      return plan_constant(o, at);
    case Opcode::Reshape:
    case Opcode::Copy:
    case Opcode::Domain:
    case Opcode::OptBarrier:
    case Opcode::AddDependency:
      return plan_same(o, o.op == Opcode::OptBarrier || o.op == Opcode::Copy ? o.x.leaf : 0, at, *this);
    case Opcode::Dot:
      p = plan_dot(o, at, *this);
      break;
    case Opcode::Convolution:
      p = plan_convolution(o, at, *this);
      break;
    case Opcode::DynamicSlice:
      return plan_dynamic_slice(o, at, *this);
    case Opcode::DynamicUpdateSlice:
      return plan_dynamic_update(o, at, *this);
    case Opcode::Gather:
      return plan_gather(o, at, *this);
    case Opcode::Scatter:
      p = plan_scatter(o, at, *this);
      break;
    case Opcode::Reduce:
      return plan_reduce(o, at, *this);
    case Opcode::ReduceWindow:
      return plan_reduce_window(o, at, *this);
    case Opcode::Map:
      return plan_map(o, at, *this);
    case Opcode::Sort:
    case Opcode::TopK:
      return plan_lines(o, at, *this);
    case Opcode::CustomCall:
      return plan_call(o, at);
    case Opcode::StochasticConvert:
    case Opcode::DynamicReshape:
    case Opcode::SetDimensionSize:
      return plan_whole(o, at);
    case Opcode::GetDimensionSize:  // none is dynamic here
      p.values = [&o](char* out) {
        store_int(o.out->type, out, o.in[0]->dims[static_cast<size_t>(o.a.ints(Attr::dimensions)[0])]);
      };
      return p;
    default:
      if (o.op == Opcode::Iota || op_info(o.op).cls == OpClass::Move)
        p = plan_move(o, at, *this);
      else if (op_info(o.op).elementwise)
        p = plan_elementwise(o, at, *this);
      else
        return plan_whole(o, at);
  }
  return p.why.empty() ? std::move(p) : plan_whole(o, at);
}

}  // namespace hlo
