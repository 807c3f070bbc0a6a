// algsimp on sorts, maps, collectives of one value and control flow.

#include <optional>

#include "ir/query/reducer.h"
#include "passes/collectives/collectives.h"
#include "passes/simplify/algebraic/algebraic_simplifier.h"

namespace hlo {

namespace {

constexpr AlgebraicRule kStructureRules[] = {
    {"sort of one element", Opcode::Sort, "sort(A) along a dimension of one", "A, or a tuple of what was sorted",
     &AlgebraicSimplifier::sort_of_one},

    {"map that returns a parameter", Opcode::Map, "map(A, B) by a function that returns A", "A",
     &AlgebraicSimplifier::map_to_parameter},
    {"map that returns a constant", Opcode::Map, "map(A) by a function that returns K", "broadcast(K)",
     &AlgebraicSimplifier::map_to_constant},
    {"map of one operation", Opcode::Map, "map(A, B) by a function of one elementwise f", "f(A, B)",
     &AlgebraicSimplifier::map_of_one_operation},

    {"conditional on a converted pred", Opcode::Conditional, "conditional(convert(pred P), A, B) of two branches",
     "conditional(P, B, A)", &AlgebraicSimplifier::conditional_on_pred},
    {"unused elements of a barrier", Opcode::OptBarrier, "opt-barrier(tuple(A, B)) of which A alone is taken",
     "opt-barrier(tuple(A))", &AlgebraicSimplifier::unused_elements_of_barrier},
    {"element of a tuple", Opcode::GetTupleElement, "get-tuple-element(tuple(A, B), 0)", "A",
     &AlgebraicSimplifier::element_of_tuple},

    {"all-to-all of one value", Opcode::AllToAll, "all-to-all(broadcast(K)) of the same shape", "broadcast(K)",
     &AlgebraicSimplifier::all_to_all_of_one_value},
    {"all-gather of one value",
     {Opcode::AllGather, Opcode::AllToAll},
     "all-gather(broadcast(K))",
     "broadcast(K)",
     &AlgebraicSimplifier::all_gather_of_one_value},
    {"extremum of one value over devices",
     {Opcode::AllReduce, Opcode::ReduceScatter},
     "all-reduce(broadcast(K)) by maximum or minimum",
     "broadcast(K)",
     &AlgebraicSimplifier::extremum_over_devices},
    {"sum of one value over devices",
     {Opcode::AllReduce, Opcode::ReduceScatter},
     "all-reduce(broadcast(K)) by add, in groups of N",
     "broadcast(multiply(K, N))",
     &AlgebraicSimplifier::sum_over_devices},
    {"dynamic size taken and given back", Opcode::CustomCall, "SliceToDynamic(get-tuple-element(PadToStatic(A)), …)",
     "A", &AlgebraicSimplifier::dynamic_size_given_back},
};

}  // namespace

std::span<const AlgebraicRule> structure_rules() { return kStructureRules; }

bool AlgebraicSimplifier::sort_of_one(InstId i) {
  const auto dim = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
  const Shape& in = m_.shape(operand(i, 0));
  if (in.dims[dim] > 1 && in.elements_count() != 0) return false;
  if (!m_.shape(i).is_tuple())
    replace_if_compatible(i, operand(i, 0));
  else if (spend(i))
    rewrite(i, Opcode::Tuple, std::vector<InstId>(m_.operands(i).begin(), m_.operands(i).end()));
  return true;
}

bool AlgebraicSimplifier::map_to_parameter(InstId i) {
  InstId root = m_.comp(m_.called(i)[0]).root;
  if (m_.op(root) != Opcode::Parameter) return false;
  replace_if_compatible(i, operand(i, static_cast<size_t>(m_.parameter_number(root))));
  return true;
}

bool AlgebraicSimplifier::map_to_constant(InstId i) {
  InstId root = m_.comp(m_.called(i)[0]).root;
  if (m_.op(root) != Opcode::Constant || m_.shape(root).rank() != 0) return false;
  if (!spend(i)) return true;
  InstId copy = m_.clone_inst(root, m_.parent(i), {});
  if (m_.shape(i).rank())
    rewrite(i, Opcode::Broadcast, {copy}, dims_attr(u_, Opcode::Broadcast, {}));
  else
    rewrite_to(i, copy);
  return true;
}

bool AlgebraicSimplifier::map_of_one_operation(InstId i) {
  InstId root = m_.comp(m_.called(i)[0]).root;
  if (!op_info(m_.op(root)).elementwise) return false;
  std::vector<InstId> ops;
  for (InstId o : m_.operands(root)) {
    if (m_.op(o) != Opcode::Parameter) return false;
    ops.push_back(operand(i, static_cast<size_t>(m_.parameter_number(o))));
  }
  if (spend(i)) rewrite_to(i, m_.clone_inst(root, m_.parent(i), ops, m_.shape_id(i)));
  return true;
}

bool AlgebraicSimplifier::conditional_on_pred(InstId i) {
  InstId index = operand(i, 0);
  if (op(index) != Opcode::Convert || type(operand(index, 0)) != ElementType::Pred || m_.called(i).size() != 2)
    return false;
  const auto* branches = m_.attrs(i).get<std::vector<CompId>>(Attr::branch_computations);
  if (!branches) return false;
  if (!spend(i)) return true;
  AttrsId attrs = attrs_of(u_, Opcode::Conditional,
                           {{Attr::true_computation, (*branches)[1]}, {Attr::false_computation, (*branches)[0]}});
  rewrite(i, Opcode::Conditional, {operand(index, 0), operand(i, 2), operand(i, 1)}, attrs);
  return true;
}

bool AlgebraicSimplifier::unused_elements_of_barrier(InstId i) {
  InstId t = operand(i, 0);
  if (!m_.shape(i).is_tuple() || m_.is_root(i)) return false;
  std::vector<bool> used(m_.shape(i).elements.size(), false);
  for (InstId user : m_.users(i)) {
    if (op(user) != Opcode::GetTupleElement) return false;
    used[static_cast<size_t>(m_.attrs(user).integer(Attr::index))] = true;
  }
  bool made_here = op(t) == Opcode::Tuple;
  std::vector<InstId> kept;
  std::vector<int64_t> to(used.size(), -1);
  auto needed = [&](size_t k) {
    if (used[k] || !made_here) return static_cast<bool>(used[k]);
    InstId o = operand(t, k);
    return !one_user(o) || m_.is_root(o) || m_.has_side_effect(o);
  };
  size_t count = 0;
  for (size_t k = 0; k < used.size(); ++k) count += needed(k);
  if (count == used.size() || !count) return false;
  if (!spend(i)) return true;
  for (size_t k = 0; k < used.size(); ++k)
    if (needed(k)) {
      to[k] = static_cast<int64_t>(kept.size());
      kept.push_back(made_here ? operand(t, k) : make_element(m_, t, static_cast<int64_t>(k)));
    }
  InstId small = make_op(i, Opcode::Tuple, kept);
  m_.set_operand(i, 0, small);
  m_.set_shape(i, m_.shape_id(small));
  for (InstId user : m_.users_copy(i))
    m_.set_attr(user, Attr::index, to[static_cast<size_t>(m_.attrs(user).integer(Attr::index))]);
  changed_ = true;
  return true;
}

bool AlgebraicSimplifier::element_of_tuple(InstId i) {
  InstId t = operand(i, 0);
  return op(t) == Opcode::Tuple &&
         replace_if_compatible(i, operand(t, static_cast<size_t>(m_.attrs(i).integer(Attr::index))));
}

// The constant that a collective of one array takes a broadcast of, invalid where it takes anything else.
InstId AlgebraicSimplifier::one_value_over_devices(InstId i) const {
  if (m_.operand_count(i) != 1 || !m_.shape(i).is_array() || m_.has_side_effect(i) ||
      !is_broadcast_of_scalar_constant(operand(i, 0)))
    return {};
  return operand(operand(i, 0), 0);
}

bool AlgebraicSimplifier::all_to_all_of_one_value(InstId i) {
  if (!one_value_over_devices(i).valid() || !same_shape(i, operand(i, 0))) return false;
  replace_if_compatible(i, operand(i, 0));
  return true;
}

bool AlgebraicSimplifier::all_gather_of_one_value(InstId i) {
  InstId value = one_value_over_devices(i);
  if (!value.valid()) return false;
  if (spend(i)) rewrite(i, Opcode::Broadcast, {value}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::extremum_over_devices(InstId i) {
  InstId value = one_value_over_devices(i);
  if (!value.valid()) return false;
  const std::optional<Opcode> kind = reducer_operation(m_, m_.called(i)[0]);
  if (kind != Opcode::Minimum && kind != Opcode::Maximum) return false;
  if (spend(i)) rewrite(i, Opcode::Broadcast, {value}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::sum_over_devices(InstId i) {
  InstId scalar = one_value_over_devices(i);
  if (!scalar.valid() || reducer_operation(m_, m_.called(i)[0]) != Opcode::Add) return false;
  const int64_t n = named_group_size(m_, i);
  if (n < 1 || m_.literal(scalar).elided || is_complex(type(scalar))) return false;
  if (!spend(i)) return true;
  const char* value = m_.literal(scalar).bytes.data();
  InstId total = is_integral(type(scalar))
                     ? make_scalar_like(m_, scalar, load_int(type(scalar), value) * n)
                     : make_scalar_like(m_, scalar, load_double(type(scalar), value) * static_cast<double>(n));
  rewrite(i, Opcode::Broadcast, {total}, dims_attr(u_, Opcode::Broadcast, {}));
  return true;
}

bool AlgebraicSimplifier::dynamic_size_given_back(InstId i) {
  if (u_.text(m_.attrs(i).text(Attr::custom_call_target)) != "SliceToDynamic" || m_.operand_count(i) == 0) return false;
  InstId source;
  for (size_t k = 0; k < m_.operand_count(i); ++k) {
    InstId g = operand(i, k);
    if (op(g) != Opcode::GetTupleElement || m_.attrs(g).integer(Attr::index) != static_cast<int64_t>(k)) return false;
    InstId call = operand(g, 0);
    if (op(call) != Opcode::CustomCall || u_.text(m_.attrs(call).text(Attr::custom_call_target)) != "PadToStatic" ||
        (source.valid() && source != call))
      return false;
    source = call;
  }
  return m_.shape_id(operand(source, 0)) == m_.shape_id(i) && replace_if_compatible(i, operand(source, 0));
}

}  // namespace hlo
