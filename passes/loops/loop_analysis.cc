// What is known of a loop from its text (xla/hlo/analysis/while_loop_analysis.cc), and while-loop-trip-count-annotator,
// which writes it down (xla/hlo/transforms/while_loop_trip_count_annotator.cc).
#include <algorithm>

#include "ir/eval/evaluator.h"
#include "passes/loops/loops.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// The element of `state` that `i` depends on; -1: on none; -2: on several, or on the whole.
int64_t only_element(const Module& m, InstId i, InstId state) {
  int64_t found = -1;
  std::unordered_set<InstId> seen{i};
  std::vector<InstId> stack{i};
  while (!stack.empty()) {
    InstId at = stack.back();
    stack.pop_back();
    if (at == state) return -2;
    if (m.op(at) == Opcode::GetTupleElement && m.operand(at, 0) == state) {
      int64_t index = m.attrs(at).integer(Attr::index);
      if (found >= 0 && found != index) return -2;
      found = index;
      continue;
    }
    for (InstId o : m.operands(at))
      if (seen.insert(o).second) stack.push_back(o);
  }
  return found;
}

// The one operand that is no constant; invalid where there are several, or none.
InstId only_variable(const Module& m, InstId i) {
  InstId found;
  for (InstId o : m.operands(i)) {
    if (m.op(o) == Opcode::Constant || o == found) continue;
    if (found.valid()) return {};
    found = o;
  }
  return found;
}

}  // namespace

bool trip_count(const Module& m, InstId loop, Trips* out) {
  InstId init = m.operand(loop, 0);
  if (m.op(init) != Opcode::Tuple) return false;
  const AttrSet& a = m.attrs(loop);
  const Computation &cond = m.comp(a.comp(Attr::condition)), &body = m.comp(a.comp(Attr::body));
  InstId test = cond.root;
  if (m.op(test) != Opcode::Compare) return false;
  auto constant = [&](InstId i, int64_t* v) {
    while (m.op(i) == Opcode::Copy || m.op(i) == Opcode::Bitcast || m.op(i) == Opcode::Reshape) i = m.operand(i, 0);
    if (m.op(i) != Opcode::Constant || !m.shape(i).is_effective_scalar() || !is_integral(m.shape(i).type) ||
        m.literal(i).elided)
      return false;
    *v = load_int(m.shape(i).type, m.literal(i).bytes.data());
    return true;
  };
  auto element = [&](InstId i, InstId param, int64_t* index) {
    while (m.op(i) == Opcode::Copy) i = m.operand(i, 0);
    if (m.op(i) != Opcode::GetTupleElement || m.operand(i, 0) != param) return false;
    *index = m.attrs(i).integer(Attr::index);
    return true;
  };
  int64_t limit, index;
  std::string_view direction = m.u().text(m.attrs(test).text(Attr::direction));
  if (element(m.operand(test, 0), cond.params[0], &index) && constant(m.operand(test, 1), &limit)) {
    if (direction != "LT" && direction != "LE") return false;
  } else if (element(m.operand(test, 1), cond.params[0], &index) && constant(m.operand(test, 0), &limit)) {
    if (direction != "GT" && direction != "GE") return false;
    direction = direction == "GT" ? "LT" : "LE";
  } else {
    return false;
  }
  if (m.op(body.root) != Opcode::Tuple) return false;
  InstId next = m.operand(body.root, static_cast<size_t>(index));
  while (m.op(next) == Opcode::Copy) next = m.operand(next, 0);
  if (m.op(next) != Opcode::Add) return false;
  int64_t step, from;
  bool counts =
      (element(m.operand(next, 0), body.params[0], &from) && from == index && constant(m.operand(next, 1), &step)) ||
      (element(m.operand(next, 1), body.params[0], &from) && from == index && constant(m.operand(next, 0), &step));
  int64_t start;
  if (!counts || step <= 0 || !constant(m.operand(init, static_cast<size_t>(index)), &start)) return false;
  __int128 span = static_cast<__int128>(limit) - start;
  __int128 count = direction == "LT" ? (span + step - 1) / step : span / step + 1;
  if (direction == "LT" ? span <= 0 : span < 0) count = 0;
  if (count > INT64_MAX) return false;
  // A counter that wraps around never gets there.
  const ElementType type = m.shape(m.operand(init, static_cast<size_t>(index))).type;
  const __int128 last = start + count * step;
  char bytes[8];
  store_int(type, bytes, static_cast<int64_t>(last));
  if (last > INT64_MAX || load_int(type, bytes) != last) return false;
  *out = {index, start, step, static_cast<int64_t>(count)};
  return true;
}

std::optional<int64_t> induction_index(const Module& m, InstId loop) {
  const AttrSet& a = m.attrs(loop);
  const Computation &condition = m.comp(a.comp(Attr::condition)), &body = m.comp(a.comp(Attr::body));
  int64_t index = only_element(m, condition.root, condition.params[0]);
  if (index < 0 || m.op(m.operand(loop, 0)) != Opcode::Tuple || m.op(body.root) != Opcode::Tuple) return {};
  if (only_element(m, m.operand(body.root, static_cast<size_t>(index)), body.params[0]) != index) return {};
  return index;
}

std::optional<int64_t> counted_trips(const Module& m, InstId loop, int64_t index, int64_t limit) {
  const AttrSet& a = m.attrs(loop);
  const Computation &condition = m.comp(a.comp(Attr::condition)), &body = m.comp(a.comp(Attr::body));
  const auto k = static_cast<size_t>(index);
  const InstId start = m.operand(m.operand(loop, 0), k), test = condition.root, step = m.operand(body.root, k);
  const InstId tested = only_variable(m, test), stepped = only_variable(m, step);
  auto element = [&](InstId i, InstId state) {
    return i.valid() && m.op(i) == Opcode::GetTupleElement && m.operand(i, 0) == state;
  };
  if (m.op(start) != Opcode::Constant || m.literal(start).elided || !element(tested, condition.params[0]) ||
      !element(stepped, body.params[0]))
    return {};
  try {
    EvalOptions options;
    options.max_while_steps = 0;
    Evaluator evaluator(m, options);
    auto result = [&](InstId i, InstId variable, const Value& value) {
      std::vector<Value> values;
      for (InstId o : m.operands(i)) values.push_back(o == variable ? value : evaluator.run_instruction(o, {}));
      return evaluator.run_instruction(i, std::move(values));
    };
    Value counter = evaluator.run_instruction(start, {});
    for (int64_t trips = 0; trips <= limit; ++trips) {
      Value go = result(test, tested, counter);
      if (go.bytes()[0] == 0) return trips;
      counter = result(step, stepped, counter);
    }
  } catch (const Failure&) {  // an elided constant, an operation that cannot be run
  }
  return {};
}

//   while(init)      →      while(init), backend_config={"known_trip_count":{"n":"5"},…}
bool run_while_trip_count_annotator(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::While)) return false;
  constexpr int64_t kMostTrips = 128;  // that are tried one by one
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::While) continue;
      const std::optional<int64_t> index = induction_index(m, i);
      if (!index) continue;
      Trips t;
      const bool known = trip_count(m, i, &t) && t.index == *index, upwards = known && t.init >= 0;
      std::optional<int64_t> trips = known ? t.count : counted_trips(m, i, *index, kMostTrips);
      std::string config = "{";
      if (trips) config += fmt::format("\"known_trip_count\":{{\"n\":\"{}\"}},", *trips);
      if (upwards) config += fmt::format("\"known_init_step\":{{\"init\":\"{}\",\"step\":\"{}\"}},", t.init, t.step);
      config +=
          fmt::format("\"known_induction_variable\":{{\"tuple_index\":\"{}\"}},\"dynamic_variables\":[]}}", *index);
      if (m.u().text(m.attrs(i).text(Attr::backend_config)) == config) continue;
      if (!ctx.spend(m, trips ? "trip count known" : "counter known", {i}, trips ? std::to_string(*trips) : ""))
        return changed;
      m.set_attr(i, Attr::backend_config, m.u().str(config));
      changed = true;
      if (!upwards) continue;
      // What the counter is behind the loop is known as well.
      for (InstId gte : m.users_copy(i)) {
        if (m.op(gte) != Opcode::GetTupleElement || m.attrs(gte).integer(Attr::index) != t.index ||
            !is_integral(m.shape(gte).type) || m.shape(gte).rank() != 0)
          continue;
        int64_t last = t.init + t.step * t.count;
        if (!m.users(gte).empty() || m.is_root(gte))
          m.replace_all_uses(gte, make_scalar(m, c, m.shape(gte).type, last));
      }
    }
  return changed;
}

}  // namespace hlo
