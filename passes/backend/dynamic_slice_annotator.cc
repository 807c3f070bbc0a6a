// dynamic-slice-annotator (xla/backends/gpu/transforms/dynamic_slice_annotator.cc, dynamic_slice_analysis.cc).
#include <algorithm>

#include "ir/analysis/fusion/fusion_view.h"
#include "ir/backend_config.h"
#include "ir/eval/evaluator.h"
#include "ir/query/loop_config.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr int64_t kMostEvaluations = int64_t{1} << 22;  // operations that are evaluated for one offset

// How many bytes into its array a slice begins: in trip k of a loop `offset` + k·`stride`.
struct SlicePlace {
  bool in_loop = false;
  int64_t offset = 0, stride = 0;
};

class SliceAnnotator {
 public:
  SliceAnnotator(Module& m, PassContext& ctx) : m_(m), ctx_(ctx), callers_(m.callers()), evaluator_(m, options()) {}

  bool run() {
    bool changed = false;
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.live_order(c)) {
        if (m_.op(i) != Opcode::DynamicSlice && m_.op(i) != Opcode::DynamicUpdateSlice) continue;
        const std::optional<SlicePlace> place = place_of(i);
        if (!place) continue;
        ctx_.claim(true);  // of a slice that has its mark as well
        const StrId config = m_.u().str(with_place(m_.u().text(m_.attrs(i).text(Attr::backend_config)), *place));
        if (m_.attrs(i).text(Attr::backend_config) == config) continue;
        if (!ctx_.spend(m_, "slice of a known place", {i})) return changed;
        m_.set_attr(i, Attr::backend_config, config);
        changed = true;
      }
    return changed;
  }

 private:
  static EvalOptions options() {
    EvalOptions o;
    o.max_while_steps = 0;
    return o;
  }
  static std::string with_place(std::string_view text, const SlicePlace& place) {
    const std::string mark = fmt::format("{{{}\"byte_offset\":\"{}\",\"byte_stride\":\"{}\"}}",
                                         place.in_loop ? "\"loop_index\":\"0\"," : "", place.offset, place.stride);
    if (text.empty())
      return "{\"operation_queue_id\":\"0\",\"force_earliest_schedule\":false,\"reification_cost\":[],"
             "\"device_type\":\"DEVICE_TYPE_INVALID\",\"dynamic_slice_config\":" +
             mark + "}";
    BackendConfig config = BackendConfig::parse(text, nullptr, false);
    if (!config.is_object()) return std::string(text);
    config["dynamic_slice_config"] = BackendConfig::parse(mark);
    return config.dump();
  }

  InstId offset(InstId i, size_t d) const { return m_.operand(i, d + (m_.op(i) == Opcode::DynamicSlice ? 1 : 2)); }
  const Shape& part(InstId i) const {
    return m_.op(i) == Opcode::DynamicSlice ? m_.shape(i) : m_.shape(m_.operand(i, 1));
  }

  // Bytes from one element to the next along each dimension; -1: within a byte. Nothing where the slice lies in pieces.
  std::optional<Dims> strides(InstId i) const {
    const Shape &all = m_.shape(m_.operand(i, 0)), &some = part(i);
    const Dims order = all.has_layout && all.layout.minor_to_major.size() == all.dims.size()
                           ? all.layout.minor_to_major
                           : default_minor_to_major(all.rank());
    Dims out(all.dims.size());
    int64_t bits = element_bits(all.type);
    bool cut = false;
    for (int64_t minor : order) {
      const auto d = static_cast<size_t>(minor);
      if (cut && some.dims[d] != 1) return std::nullopt;
      cut |= some.dims[d] < all.dims[d];
      out[d] = bits % 8 == 0 ? bits / 8 : -1;
      bits *= all.dims[d];
    }
    return out;
  }

  // What a loop's annotation says of its counter.
  struct Counter {
    InstId variable;  // as the body reads it
    int64_t init = 0, step = 0, trips = 0;
  };
  InstId loop_of(CompId body) const {
    const std::vector<InstId>& callers = callers_[body.value];
    if (callers.size() != 1 || m_.op(callers[0]) != Opcode::While) return {};
    return m_.attrs(callers[0]).comp(Attr::body) == body ? callers[0] : InstId();
  }
  // The one element of the state that the value is made of, if it is its loop's counter.
  InstId counter_behind(InstId i, const LoopConfig& loop, InstId state) const {
    std::vector<InstId> queue{i};
    std::unordered_set<InstId> seen{i};
    InstId found;
    for (size_t k = 0; k < queue.size(); ++k) {
      const InstId at = queue[k];
      if (m_.op(at) == Opcode::CustomCall || m_.has_side_effect(at)) return {};
      if (m_.op(at) == Opcode::GetTupleElement && m_.operand(at, 0) == state) {
        if (m_.attrs(at).integer(Attr::index) != loop.counter || found.valid()) return {};
        found = at;
        continue;
      }
      if (at == state) return {};
      for (InstId o : m_.operands(at))
        if (seen.insert(o).second) queue.push_back(o);
    }
    return found;
  }
  InstId behind_copies(InstId i) const {
    while (m_.op(i) == Opcode::Copy) i = m_.operand(i, 0);
    return i;
  }
  std::optional<int64_t> whole(InstId i) const {
    if (m_.op(i) != Opcode::Constant || !is_integral(m_.shape(i).type) || m_.shape(i).elements_count() != 1 ||
        m_.literal(i).elided)
      return std::nullopt;
    return load_int(m_.shape(i).type, m_.literal(i).bytes.data());
  }
  // An element that holds what the counter was a trip before, as pipelined loops have it:
  //   body(p) { … ROOT tuple(…, gte(p), index=COUNTER at [n]) }: gte(p), index=n
  std::optional<int64_t> staggered_start(InstId i, InstId loop, const LoopConfig& f) const {
    const Computation& body = m_.comp(m_.parent(i));
    const InstId gte = behind_copies(i), init = m_.operand(loop, 0);
    if (m_.op(gte) != Opcode::GetTupleElement || m_.operand(gte, 0) != body.params[0] || !f.init_step ||
        m_.op(body.root) != Opcode::Tuple || m_.op(init) != Opcode::Tuple)
      return std::nullopt;
    const auto n = static_cast<size_t>(m_.attrs(gte).integer(Attr::index));
    const InstId next = behind_copies(m_.operand(body.root, n));
    if (m_.op(next) != Opcode::GetTupleElement || m_.operand(next, 0) != body.params[0] ||
        m_.attrs(next).integer(Attr::index) != f.counter || static_cast<int64_t>(n) == f.counter)
      return std::nullopt;
    return whole(behind_copies(m_.operand(init, n)));
  }

  // What the value is in each trip.
  const std::vector<int64_t>* trips_of(InstId i, const Counter& c) {
    auto [entry, fresh] = known_.try_emplace({i, c.init});
    if (!fresh) return entry->second ? &*entry->second : nullptr;
    std::vector<InstId> order;
    std::unordered_map<InstId, int> state;
    std::vector<InstId> stack{i};
    while (!stack.empty()) {
      const InstId at = stack.back();
      int& s = state[at];
      if (s || at == c.variable) {
        stack.pop_back();
        if (s == 1) order.push_back(at), s = 2;
        continue;
      }
      s = 1;
      for (InstId o : m_.operands(at))
        if (!state[o]) stack.push_back(o);
    }
    if (static_cast<int64_t>(order.size() + 1) * c.trips > kMostEvaluations) {
      ctx_.note(m_, "not annotated", {i}, fmt::format("{} trips of {} operations", c.trips, order.size()));
      return nullptr;
    }
    try {
      std::vector<int64_t> out;
      std::unordered_map<InstId, Value> values;
      for (int64_t trip = 0; trip < c.trips; ++trip) {
        Value counter{m_.shape_id(c.variable), new_array(m_.u(), m_.shape_id(c.variable)), {}, {}};
        store_int(m_.shape(c.variable).type, counter.mutable_bytes(), c.init + trip * c.step);
        values.insert_or_assign(c.variable, std::move(counter));
        for (InstId at : order) {
          std::vector<Value> operands;
          for (InstId o : m_.operands(at)) operands.push_back(values.at(o));
          values.insert_or_assign(at, evaluator_.run_instruction(at, std::move(operands)));
        }
        out.push_back(load_int(m_.shape(i).type, values.at(i).bytes()));
      }
      entry->second = std::move(out);
      return &*entry->second;
    } catch (const Failure&) {  // an operation that cannot be run
      return nullptr;
    }
  }

  std::optional<SlicePlace> place_of(InstId i) {
    const Shape& all = m_.shape(m_.operand(i, 0));
    const size_t rank = all.dims.size();
    if (!all.is_array() || m_.operand_count(i) != rank + (m_.op(i) == Opcode::DynamicSlice ? 1 : 2)) return {};
    const std::optional<Dims> bytes = strides(i);
    if (!bytes) return {};
    SlicePlace place;
    std::vector<size_t> moving;
    for (size_t d = 0; d < rank; ++d) {
      if (part(i).dims[d] == all.dims[d]) continue;
      if ((*bytes)[d] < 0 || !is_integral(m_.shape(offset(i, d)).type)) return {};
      if (m_.op(offset(i, d)) != Opcode::Constant) {
        moving.push_back(d);
        continue;
      }
      const std::optional<int64_t> at = whole(offset(i, d));
      if (!at) return {};
      place.offset += *at * (*bytes)[d];
    }
    if (moving.empty()) return place;
    const InstId loop = loop_of(m_.parent(i));
    if (!loop.valid()) return {};
    const LoopConfig f = loop_config(m_, loop);
    if (!f.counter) return {};
    Counter counter;
    bool staggered = false;
    for (size_t d : moving) {
      const InstId by = offset(i, d);
      InstId variable = counter_behind(by, f, m_.comp(m_.parent(i)).params[0]);
      const std::optional<int64_t> start = variable.valid() ? std::nullopt : staggered_start(by, loop, f);
      if (!variable.valid() && !start) return {};
      if (start) variable = by;
      if (counter.variable.valid() && (counter.variable != variable || staggered != start.has_value())) return {};
      counter.variable = variable, staggered = start.has_value();
      if (start) counter.init = *start;
    }
    if (!f.init_step || !f.trips || *f.trips < 1) return {};
    if (!staggered) counter.init = f.init_step->first;
    counter.step = f.init_step->second, counter.trips = *f.trips;
    return linear(i, *bytes, moving, counter, place.offset);
  }

  // The same distance from each trip to the next.
  std::optional<SlicePlace> linear(InstId i, const Dims& bytes, const std::vector<size_t>& moving,
                                   const Counter& counter, int64_t fixed) {
    std::vector<int64_t> sums;
    for (size_t d : moving) {
      const std::vector<int64_t>* trips = trips_of(offset(i, d), counter);
      if (!trips) return {};
      sums.resize(trips->size(), fixed);
      for (size_t k = 0; k < sums.size(); ++k) sums[k] += (*trips)[k] * bytes[d];
    }
    SlicePlace place{true, sums[0], sums.size() > 1 ? sums[1] - sums[0] : 0};
    for (size_t k = 2; k < sums.size(); ++k)
      if (sums[k] - sums[k - 1] != place.stride) return {};
    return place;
  }

  struct ByInst {
    size_t operator()(const std::pair<InstId, int64_t>& p) const {
      return p.first.value ^ (static_cast<size_t>(p.second) << 32U);
    }
  };

  Module& m_;
  PassContext& ctx_;
  const std::vector<std::vector<InstId>> callers_;
  Evaluator evaluator_;
  std::unordered_map<std::pair<InstId, int64_t>, std::optional<std::vector<int64_t>>, ByInst> known_;
};

}  // namespace

//   dynamic-slice(x, i, …)      →      dynamic-slice(x, i, …), backend_config={…"dynamic_slice_config":{…}}
bool run_dynamic_slice_annotator(Module& m, PassContext& ctx) { return SliceAnnotator(m, ctx).run(); }

}  // namespace hlo
