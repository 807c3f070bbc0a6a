#include "ir/eval/evaluator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "ir/base/parallel.h"
#include "ir/base/stack_guard.h"
#include "ir/eval/devices.h"
#include "ir/eval/kernels.h"
#include "ir/eval/spare_arrays.h"
#include "ir/inference/precision.h"
#include "ir/program/buffer.h"

namespace hlo {

namespace {
int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
}  // namespace

void Evaluator::refuse(InstId inst, std::string_view why) {
  fail(FailureKind::kUnsupported, "cannot evaluate {} ({} in computation {}): {}", m_.inst_name(inst),
       op_text(m_.op(inst)), m_.comp_name(m_.parent(inst)), why);
}

Value Evaluator::make(ShapeId shape) {
  const Shape& s = u_[shape];
  Value v;
  v.shape = shape;
  if (s.is_tuple())
    for (ShapeId e : s.elements) v.elements.push_back(make(e));
  else if (s.is_array())
    v.data = new_array(u_, shape);
  return v;
}

Value Evaluator::unset(ShapeId shape) {
  Value v;
  v.shape = shape, v.data = unset_array(u_, shape);
  return v;
}

Value Evaluator::packed(ShapeId shape, std::vector<Value> outputs) {
  const Shape& s = u_[shape];
  if (!s.is_tuple()) {
    outputs[0].shape = shape;
    return std::move(outputs[0]);
  }
  Value tuple;
  tuple.shape = shape;
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].shape = s.elements[i];
  tuple.elements = std::move(outputs);
  return tuple;
}

const Evaluator::Plan& Evaluator::plan(CompId comp) {
  auto [at, fresh] = plans_.try_emplace(comp);
  if (fresh) at->second.order = m_.config().is_scheduled ? m_.live_order(comp) : m_.post_order(comp);
  return at->second;
}

Value Evaluator::run(std::vector<Value> arguments) {
  const KeepsSpareArrays spares;
  const auto& params = m_.comp(m_.entry()).params;
  if (arguments.size() != params.size())
    fail(FailureKind::kUsage, "the module takes {} arguments, {} were given", params.size(), arguments.size());
  for (size_t i = 0; i < params.size(); ++i)
    if (!u_.compatible(arguments[i].shape, m_.shape_id(params[i])))
      fail(FailureKind::kUsage, "argument {} is a {}, the module takes a {}", i,
           u_.shape_text_plain(arguments[i].shape), u_.shape_text_plain(m_.shape_id(params[i])));
  return run_computation(m_.entry(), std::move(arguments));
}

bool Evaluator::pure(InstId inst) {
  check_stack("calls of computations are nested");
  Opcode op = m_.op(inst);
  switch (op_info(op).cls) {
    case OpClass::Rng:
    case OpClass::Io:
    case OpClass::Collective:
    case OpClass::Custom:
    case OpClass::Async:
      return false;
    default:
      break;
  }
  if (op == Opcode::PartitionId || op == Opcode::ReplicaId) return false;
  for (CompId c : m_.called(inst)) {
    auto known = pure_.find(c);
    if (known == pure_.end()) {
      const std::vector<InstId>& order = plan(c).order;
      bool all = std::all_of(order.begin(), order.end(), [&](InstId i) { return pure(i); });
      known = pure_.emplace(c, all).first;
    }
    if (!known->second) return false;
  }
  return true;
}

const std::optional<Evaluator::Invariants>& Evaluator::loop_invariants(CompId body) {
  auto known = invariants_.find(body);
  if (known == invariants_.end()) known = invariants_.emplace(body, find_invariants(body)).first;
  return known->second;
}

std::optional<Evaluator::Invariants> Evaluator::find_invariants(CompId body) {
  // Elements of the state that the body hands on as they came.
  const Computation& comp = m_.comp(body);
  if (comp.params.size() != 1 || m_.op(comp.root) != Opcode::Tuple || options_.trace) return std::nullopt;
  InstId state = comp.params[0];
  std::unordered_map<int64_t, bool> kept;
  for (size_t k = 0; k < m_.operand_count(comp.root); ++k) {
    InstId o = m_.operand(comp.root, k);
    kept[static_cast<int64_t>(k)] = m_.op(o) == Opcode::GetTupleElement && m_.operand(o, 0) == state &&
                                    m_.attrs(o).integer(Attr::index) == static_cast<int64_t>(k);
  }
  const Plan& all = plan(body);
  std::unordered_set<InstId> fixed;
  for (InstId i : all.order) {
    bool same = m_.op(i) == Opcode::GetTupleElement && m_.operand(i, 0) == state
                    ? kept[m_.attrs(i).integer(Attr::index)]
                    : i != state && pure(i);
    if (m_.op(i) != Opcode::GetTupleElement || m_.operand(i, 0) != state)
      for (InstId o : m_.operands(i)) same = same && fixed.contains(o);
    if (same) fixed.insert(i);
  }
  // Kept are those that something else needs and that are work: at least one large operation behind them.
  std::unordered_set<InstId> work;
  for (InstId i : all.order) {
    if (!fixed.contains(i)) continue;
    OpClass c = op_info(m_.op(i)).cls;
    bool large = c == OpClass::Dot || c == OpClass::Conv || c == OpClass::Reduce || c == OpClass::Window ||
                 c == OpClass::Sort || c == OpClass::Fusion || c == OpClass::Gather || c == OpClass::Scatter;
    for (InstId o : m_.operands(i)) large = large || work.contains(o);
    if (large) work.insert(i);
  }
  Invariants out;
  std::unordered_set<InstId> needed{comp.root};
  for (size_t k = all.order.size(); k-- > 0;) {
    InstId i = all.order[k];
    if (!needed.contains(i)) continue;
    if (work.contains(i) && i != comp.root) {
      out.values.emplace(i, Value());
      continue;
    }
    for (InstId o : m_.operands(i)) needed.insert(o);
  }
  if (out.values.empty()) return std::nullopt;
  for (InstId i : all.order)
    if (needed.contains(i)) out.rest.order.push_back(i);
  return out;
}

Value Evaluator::run_computation(CompId comp, std::vector<Value> arguments) {
  return run_planned(comp, std::move(arguments), plan(comp), nullptr);
}

Value Evaluator::run_planned(CompId comp, std::vector<Value> arguments, const Plan& p, Invariants* invariants) {
  check_stack("calls of computations are nested");
  if (p.order.empty()) return {};
  bool known = invariants && &p == &invariants->rest;
  auto given = [&](InstId i) { return known && invariants->values.contains(i); };
  uint32_t low = UINT32_MAX, high = 0;
  for (InstId i : p.order) low = std::min(low, i.value), high = std::max(high, i.value);
  std::vector<Value> values(high - low + 1);
  std::vector<uint32_t> left(high - low + 1, 0);
  for (InstId i : p.order)
    if (!given(i))
      for (InstId o : m_.operands(i)) ++left[o.value - low];
  InstId root = m_.comp(comp).root;
  ++left[root.value - low];
  for (InstId i : p.order) {
    if (given(i)) {
      values[i.value - low] = invariants->values.at(i);
      continue;
    }
    if (m_.op(i) == Opcode::GetTupleElement && !options_.trace && !options_.timed) {
      // Without the rest of the tuple, which may be long.
      InstId tuple = m_.operand(i, 0);
      Value& from = values[tuple.value - low];
      Value v = from.elements[static_cast<size_t>(m_.attrs(i).integer(Attr::index))];
      v.shape = m_.shape_id(i);
      if (--left[tuple.value - low] == 0) from = {};
      if (invariants && !known)
        if (auto keep = invariants->values.find(i); keep != invariants->values.end()) keep->second = v;
      if (left[i.value - low]) values[i.value - low] = std::move(v);
      continue;
    }
    if (options_.stop && options_.stop()) refuse(i, "interrupted");
    std::vector<Value> ops;
    for (InstId o : m_.operands(i)) {
      // The last use gives its buffer away, so that updates can happen in place.
      if (--left[o.value - low] == 0)
        ops.push_back(std::move(values[o.value - low]));
      else
        ops.push_back(values[o.value - low]);
    }
    Value v;
    std::vector<Value> kept;
    if (options_.trace || options_.change) kept = ops;
    if (m_.op(i) == Opcode::Parameter) {
      v = std::move(arguments[static_cast<size_t>(m_.parameter_number(i))]);
      v.shape = m_.shape_id(i);
    } else {
      bool clocked = options_.timed && device_ == 0;
      int64_t begin = clocked ? now() : 0;
      try {
        v = run_instruction(i, std::move(ops));
      } catch (const std::bad_alloc&) {
        refuse(i, "no memory is left for its work");
      } catch (const std::length_error&) {
        refuse(i, "its work takes more memory than there is");
      }
      if (clocked) options_.timed(m_, i, begin, now());
    }
    if (options_.change) options_.change(i, kept, v);
    if (options_.trace) options_.trace(i, kept, v);
    if (invariants && !known)
      if (auto keep = invariants->values.find(i); keep != invariants->values.end()) keep->second = v;
    if (left[i.value - low]) values[i.value - low] = std::move(v);
  }
  return std::move(values[root.value - low]);
}

Value Evaluator::elementwise(InstId inst, std::vector<Value>& ops) {
  Opcode op = m_.op(inst);
  size_t typed = op == Opcode::Select || op == Opcode::Clamp ? 1 : 0;
  const Shape& out_shape = u_[m_.shape_id(inst)];
  EwArgs e;
  e.op = op;
  e.in = u_[ops[typed].shape].type;
  e.out = out_shape.type;
  e.n = out_shape.elements_count();
  auto scalar = [&](size_t i) { return u_[ops[i].shape].rank() == 0 && out_shape.rank() != 0; };
  e.a = ops[0].bytes(), e.a_scalar = scalar(0);
  if (ops.size() > 1) e.b = ops[1].bytes(), e.b_scalar = scalar(1);
  if (ops.size() > 2) e.c = ops[2].bytes(), e.c_scalar = scalar(2);
  const AttrSet& a = m_.attrs(inst);
  e.direction = u_.text(a.text(Attr::direction));
  e.compare_type = u_.text(a.text(Attr::type));
  e.exponent_bits = static_cast<int>(a.integer(Attr::exponent_bits));
  e.mantissa_bits = static_cast<int>(a.integer(Attr::mantissa_bits));
  Value out = unset(m_.shape_id(inst));
  e.result = out.data->data();
  if (e.n == 0) return out;
  if (!elementwise_kernel(e)) refuse(inst, fmt::format("no meaning for {}", type_name(e.in)));
  return out;
}

Value Evaluator::constant(InstId inst) {
  if (m_.literal(inst).elided) refuse(inst, "its value is elided ({...}) and unknown");
  Value v = value_of_literal(u_, m_.literal_id(inst));
  v.shape = m_.shape_id(inst);
  return v;
}

Value Evaluator::iota(InstId inst) {
  const ShapeId out_id = m_.shape_id(inst);
  Value v = make(out_id);
  const Shape& s = u_[out_id];
  size_t dim = static_cast<size_t>(m_.attrs(inst).integer(Attr::iota_dimension));
  int width = storage_bytes(s.type);
  std::vector<char> line(static_cast<size_t>(s.dims[dim] * width));
  for (int64_t i = 0; i < s.dims[dim]; ++i)
    if (is_complex(s.type))
      store_complex(s.type, line.data() + i * width, static_cast<double>(i));
    else
      store_int(s.type, line.data() + i * width, i);
  Dims from(s.dims.size(), 0);
  from[dim] = 1;
  copy_nd(s.dims, line.data(), from, v.data->data(), row_major_strides(s.dims), width);
  return v;
}

Value Evaluator::set_dimension_size(InstId inst, std::vector<Value>& ops) {
  const ShapeId out_id = m_.shape_id(inst);
  Value v = std::move(ops[0]);
  v.shape = out_id;
  const Dims& dims = u_[out_id].dims;
  if (v.sizes.empty()) v.sizes = dims;
  auto d = static_cast<size_t>(m_.attrs(inst).ints(Attr::dimensions)[0]);
  int64_t size = load_int(u_[ops[1].shape].type, ops[1].bytes());
  if (size < 0 || size > dims[d]) refuse(inst, fmt::format("size {} of a dimension of {}", size, dims[d]));
  v.sizes[d] = size;
  if (v.sizes == dims) v.sizes.clear();
  return v;
}

Value Evaluator::run_while(InstId inst, std::vector<Value>& ops) {
  Value state = std::move(ops[0]);
  CompId body = m_.attrs(inst).comp(Attr::body), condition = m_.attrs(inst).comp(Attr::condition);
  std::optional<Invariants> invariants = loop_invariants(body);
  for (int64_t step = 0;; ++step) {
    if (!run_computation(condition, {state}).bytes()[0]) break;
    if (options_.stop && options_.stop()) refuse(inst, fmt::format("interrupted in step {}", step));
    if (step >= options_.max_while_steps)
      refuse(inst, fmt::format("it does not end within {} steps", options_.max_while_steps));
    std::vector<Value> args;
    args.push_back(std::move(state));
    if (!invariants)
      state = run_computation(body, std::move(args));
    else
      state = run_planned(body, std::move(args), step ? invariants->rest : plan(body), &*invariants);
  }
  state.shape = m_.shape_id(inst);
  return state;
}

Value Evaluator::run_conditional(InstId inst, std::vector<Value>& ops) {
  const Shape& selector = u_[ops[0].shape];
  int64_t branches = static_cast<int64_t>(m_.called(inst).size());
  int64_t which = load_int(selector.type, ops[0].bytes());
  if (selector.type == ElementType::Pred)
    which = which ? 0 : 1;
  else if (which < 0 || which >= branches)
    which = branches - 1;
  std::vector<Value> args{ops[static_cast<size_t>(which) + 1]};
  Value v = run_computation(m_.called(inst)[static_cast<size_t>(which)], std::move(args));
  v.shape = m_.shape_id(inst);
  return v;
}

Value Evaluator::start_async(InstId inst, std::vector<Value>& ops) {
  const ShapeId out_id = m_.shape_id(inst);
  if (m_.comp(m_.called(inst)[0]).params.size() != ops.size()) refuse(inst, "operands that are bound later");
  Value v = make(out_id);
  Value arguments;
  arguments.shape = u_[out_id].elements[0];
  arguments.elements = ops;
  v.elements[0] = arguments;
  v.elements[1] = run_computation(m_.called(inst)[0], std::move(ops));
  return v;
}

namespace {

// Does it respect dynamic dimensions of what it takes, or carry them along?
bool carries_sizes(Opcode op) {
  const OpInfo& info = op_info(op);
  return op == Opcode::Reduce || op == Opcode::Tuple || op == Opcode::GetTupleElement ||
         op == Opcode::SetDimensionSize || op == Opcode::GetDimensionSize || op == Opcode::Transpose ||
         op == Opcode::OptBarrier || op == Opcode::AddDependency || (info.cls == OpClass::Call && op != Opcode::Map) ||
         info.cls == OpClass::Fusion || info.elementwise;
}

}  // namespace

Value Evaluator::run_instruction(InstId inst, std::vector<Value> ops) {
  Opcode op = m_.op(inst);
  ShapeId out_id = m_.shape_id(inst);
  const AttrSet& a = m_.attrs(inst);
  if (mixes_precision(m_, inst)) refuse(inst, "floats of several precisions");
  Dims dynamic;
  for (const Value& v : ops)
    if (!v.sizes.empty()) dynamic = v.sizes;
  if (!dynamic.empty()) {
    // What is put into an array of dynamic size goes where it would go in the whole array, as XLA has it once sizes are
    // values (xla/service/dynamic_padder.cc).
    if (op == Opcode::DynamicUpdateSlice && ops[1].sizes.empty()) {
      Dims sizes = std::exchange(ops[0].sizes, {});
      Value v = run_instruction(inst, std::move(ops));
      v.sizes = std::move(sizes);
      return v;
    }
    if (!carries_sizes(op)) refuse(inst, "of dynamic dimensions");
  }
  switch (op) {
    case Opcode::Constant:
      return constant(inst);
    case Opcode::Parameter:
      refuse(inst, "a parameter has no value without an argument");
    case Opcode::Iota:
      return iota(inst);
    case Opcode::Tuple: {
      Value v;
      v.shape = out_id;
      v.elements = std::move(ops);
      return v;
    }
    case Opcode::GetTupleElement: {
      Value v = ops[0].elements[static_cast<size_t>(a.integer(Attr::index))];
      v.shape = out_id;
      return v;
    }
    case Opcode::OptBarrier:
    case Opcode::AddDependency:
    case Opcode::CopyDone: {
      Value v = op == Opcode::CopyDone ? ops[0].elements[0] : ops[0];
      v.shape = out_id;
      return v;
    }
    case Opcode::CopyStart: {
      Value v = make(out_id);
      v.elements[0] = ops[0], v.elements[1] = ops[0];
      return v;
    }
    case Opcode::AfterAll:
      return make(out_id);
    case Opcode::PartitionId:
    case Opcode::ReplicaId: {
      Value v = make(out_id);
      store_int(ElementType::U32, v.data->data(),
                op == Opcode::PartitionId ? device_ % partitions() : device_ / partitions());
      return v;
    }
    case Opcode::GetDimensionSize: {
      Value v = make(out_id);
      auto d = static_cast<size_t>(a.ints(Attr::dimensions)[0]);
      store_int(ElementType::S32, v.data->data(), ops[0].sizes.empty() ? u_[ops[0].shape].dims[d] : ops[0].sizes[d]);
      return v;
    }
    case Opcode::SetDimensionSize:
      return set_dimension_size(inst, ops);
    case Opcode::BitcastConvert: {
      const Shape &from = u_[ops[0].shape], &to = u_[out_id];
      if (type_bits(from.type) != type_bits(to.type) && (type_bits(from.type) < 8 || type_bits(to.type) < 8))
        return regrouped_bits(ops[0], out_id);
      Value v = ops[0];
      v.shape = out_id;
      return v;
    }
    default:
      return called(inst, ops, dynamic);
  }
}

Value Evaluator::called(InstId inst, std::vector<Value>& ops, const Dims& dynamic) {
  const ShapeId out_id = m_.shape_id(inst);
  switch (m_.op(inst)) {
    case Opcode::CustomCall:
      return custom_call(inst, ops);
    case Opcode::Map: {
      int64_t n = u_[out_id].elements_count();
      Value v = lifted(m_.called(inst)[0], ops, n)[0];
      v.shape = out_id;
      return v;
    }
    case Opcode::Call:
    case Opcode::Fusion: {
      Value v = run_computation(m_.called(inst)[0], std::move(ops));
      v.shape = out_id;
      return v;
    }
    case Opcode::While:
      return run_while(inst, ops);
    case Opcode::Conditional:
      return run_conditional(inst, ops);
    case Opcode::AsyncStart:
      return start_async(inst, ops);
    case Opcode::AsyncUpdate:
      return ops[0];
    case Opcode::AsyncDone: {
      Value v = ops[0].elements[1];
      v.shape = out_id;
      return v;
    }
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone:
      return send_or_receive(inst, ops);
    default:
      return computed(inst, ops, dynamic);
  }
}

Value Evaluator::computed(InstId inst, std::vector<Value>& ops, const Dims& dynamic) {
  const AttrSet& a = m_.attrs(inst);
  const ShapeId out_id = m_.shape_id(inst);
  switch (m_.op(inst)) {
    case Opcode::StochasticConvert:
      return stochastic_convert(inst, ops);
    case Opcode::Dot:
      return contract(inst, ops[0], ops[1], a.ints(Attr::lhs_batch_dims), a.ints(Attr::lhs_contracting_dims),
                      a.ints(Attr::rhs_batch_dims), a.ints(Attr::rhs_contracting_dims), out_id);
    case Opcode::RaggedDot:
      return ragged_dot(inst, ops);
    case Opcode::ScaledDot:
      return scaled_dot(inst, ops);
    case Opcode::Scan:
      return scan(inst, ops);
    case Opcode::Rng:
      return rng(inst, ops);
    case Opcode::RngBitGenerator:
      return rng_bit_generator(inst, ops[0]);
    case Opcode::RngGetAndUpdateState:
      return rng_state(inst);
    case Opcode::Fft:
      return fft(inst, ops[0]);
    case Opcode::Cholesky:
      return cholesky_factor(ops[0], a.flag(Attr::lower), out_id);
    case Opcode::TriangularSolve:
      return triangular_solve({a.flag(Attr::left_side), a.flag(Attr::lower), a.flag(Attr::unit_diagonal),
                               u_.text(a.text(Attr::transpose_a))},
                              ops[0], ops[1], out_id);
    case Opcode::Convolution:
      return convolution(a, ops[0], ops[1], out_id);
    case Opcode::Reduce:
      return reduce(inst, ops);
    case Opcode::ReduceWindow:
      return reduce_window(inst, ops);
    case Opcode::SelectAndScatter:
      return select_and_scatter(inst, ops);
    case Opcode::Sort:
      return sort(inst, ops);
    case Opcode::TopK:
      return topk(inst, ops[0], a.integer(Attr::k), a.flag(Attr::largest) || !a.has(Attr::largest));
    case Opcode::Gather:
      return gather(inst, ops);
    case Opcode::Scatter:
      return scatter(inst, ops);
    case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormTraining:
      return batch_norm(inst, ops);
    default:
      return plainly_computed(inst, ops, dynamic);
  }
}

Value Evaluator::plainly_computed(InstId inst, std::vector<Value>& ops, const Dims& dynamic) {
  const Opcode op = m_.op(inst);
  const ShapeId out_id = m_.shape_id(inst);
  const OpInfo& info = op_info(op);
  if (info.elementwise && !u_[out_id].is_tuple()) {
    Value v = op == Opcode::Copy ? movement(inst, ops) : elementwise(inst, ops);
    if (dynamic.size() == u_[out_id].dims.size()) v.sizes = dynamic;
    return v;
  }
  if (op == Opcode::Transpose && !dynamic.empty()) {
    Value v = movement(inst, ops);
    for (int64_t d : m_.attrs(inst).ints(Attr::dimensions)) v.sizes.push_back(dynamic[static_cast<size_t>(d)]);
    return v;
  }
  if (op == Opcode::Copy && u_[out_id].is_tuple()) {
    Value v = ops[0];
    v.shape = out_id;
    return v;
  }
  if (info.cls == OpClass::Move) return movement(inst, ops);
  if (info.cls == OpClass::Collective) return collective(inst, ops);
  refuse(inst, "not supported");
}

}  // namespace hlo
