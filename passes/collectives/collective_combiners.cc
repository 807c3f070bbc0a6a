// gpu-all-reduce-combiner, gpu-all-gather-combiner, gpu-reduce-scatter-combiner and collective-permute-combiner
// (xla/hlo/transforms/collectives/all_reduce_combiner.cc and beside it): messages of one kind between the same devices,
// none of which needs another, go together, as long as they are not too many and not too large.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "passes/collectives/collectives.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr int64_t kMostBytes = 30 * 1024 * 1024 + 7, kMostMessages = 256;
// Instructions looked at in one computation; XLA looks on, however long it takes.
constexpr int64_t kMostLookedAt = 50'000'000;
constexpr std::string_view kUnsetConfig =
    R"({"operation_queue_id":"0","force_earliest_schedule":false,"reification_cost":[],"device_type":"DEVICE_TYPE_INVALID"})";

class Combiner {
 public:
  Combiner(Module& m, PassContext& ctx, Opcode op) : m_(m), u_(m.u()), ctx_(ctx), op_(op) {}

  bool run() {
    if (m_.count(op_) < 2) return false;
    for (InstId i : all_of_opcode(m_, op_))
      if (m_.attrs(i).flag(Attr::constrain_layout)) return false;
    bool changed = false;
    for (CompId c : m_.nonfusion_computations()) {
      changed |= run(c);
      if (spent_) break;
    }
    return changed;
  }

 private:
  // What messages that may go together have in common; empty where one goes alone.
  std::string key(InstId i) const {
    if (m_.op(i) != op_ || m_.operand_count(i) != 1 || !m_.shape(i).is_array() || m_.has_control(i)) return {};
    if (u_.byte_size(m_.shape_id(i)) > kMostBytes) return {};
    const AttrSet& a = m_.attrs(i);
    if (op_ == Opcode::CollectivePermute)
      return fmt::format("{} {}", a.integer(Attr::channel_id, -1), u_.text(a.text(Attr::source_target_pairs)));
    std::vector<Dims> groups;
    if (!read_groups(m_, i, &groups)) return {};
    std::string out = fmt::format("{} {}", a.has(Attr::channel_id), a.flag(Attr::use_global_device_ids));
    for (const Dims& g : groups) out += fmt::format(" {{{}}}", fmt::join(g, ","));
    if (op_ == Opcode::AllGather) return out;
    const std::optional<Opcode> kind = reduced_by(m_, i);
    if (!kind) return {};
    out += fmt::format(" {} {}", op_text(*kind), static_cast<int>(m_.shape(m_.comp(m_.called(i)[0]).root).type));
    if (op_ == Opcode::ReduceScatter) out += fmt::format(" {}", a.ints(Attr::dimensions)[0]);
    return out;
  }

  bool run(CompId c) {
    std::unordered_map<InstId, std::string> waiting;
    std::unordered_map<std::string, size_t> left;
    for (InstId i : m_.live_order(c))
      if (std::string k = key(i); !k.empty()) ++left[k], waiting.emplace(i, std::move(k));
    bool changed = false;
    std::vector<InstId> order = m_.post_order(c);
    int64_t looked_at = 0;
    while (!waiting.empty()) {
      std::erase_if(waiting, [&](const auto& w) { return left[w.second] < 2; });
      const std::vector<InstId> together = next(order, &waiting);
      if (together.empty()) break;
      left[key_] -= together.size();
      if (together.size() > 1) {
        if (spent_ = !ctx_.spend(m_, "messages together", {together[0], together[1]},
                                 fmt::format("{} of them", together.size()));
            spent_)
          return changed;
        combine(together);
        changed = true;
        order = m_.post_order(c);
      }
      looked_at += static_cast<int64_t>(order.size());
      if (looked_at > kMostLookedAt && !waiting.empty()) {
        ctx_.note(m_, "search given up", {waiting.begin()->first}, "too many messages of too many kinds");
        break;
      }
    }
    return changed;
  }

  // The first that waits and what may go with it, taken from those that wait.
  std::vector<InstId> next(const std::vector<InstId>& order, std::unordered_map<InstId, std::string>* waiting) {
    std::vector<InstId> out;
    std::unordered_set<InstId> needs;  // one of `out`
    int64_t bytes = 0;
    for (InstId i : order) {
      const auto in = [&](InstId x) { return needs.contains(x); };
      const bool behind = !out.empty() && (std::any_of(m_.operands(i).begin(), m_.operands(i).end(), in) ||
                                           std::any_of(m_.control_preds(i).begin(), m_.control_preds(i).end(), in));
      if (behind) needs.insert(i);
      const auto at = waiting->find(i);
      if (at == waiting->end() || (!out.empty() && at->second != key_)) continue;
      const int64_t own = u_.byte_size(m_.shape_id(i));
      if (bytes + own > kMostBytes || behind) break;
      if (out.empty()) key_ = at->second;
      out.push_back(i), needs.insert(i), waiting->erase(at);
      bytes += own;
      if (static_cast<int64_t>(out.size()) >= kMostMessages) break;
    }
    return out;
  }

  // The dimension along which most are gathered, if all of them have it.
  int64_t gathered_along(const std::vector<InstId>& together) const {
    std::map<int64_t, size_t> count;
    int64_t least_rank = INT64_MAX;
    for (InstId i : together) {
      ++count[m_.attrs(i).ints(Attr::dimensions)[0]];
      least_rank = std::min<int64_t>(least_rank, m_.shape(i).rank());
    }
    const auto most =
        std::max_element(count.begin(), count.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
    return most < least_rank ? most : 0;
  }

  // The same memory with two dimensions called each by the other's number.
  ShapeId exchanged(ShapeId shape, int64_t a, int64_t b) const {
    Shape s = u_[shape];
    std::swap(s.dims[static_cast<size_t>(a)], s.dims[static_cast<size_t>(b)]);
    for (int64_t& d : s.layout.minor_to_major) d = d == a ? b : d == b ? a : d;
    return u_.shape(std::move(s));
  }

  //   a = f32[8] all-reduce(x), b = f32[4] all-reduce(y)
  //     →
  //   both = (f32[8], f32[4]) all-reduce(x, y), a = get-tuple-element(both), index=0 …
  void combine(const std::vector<InstId>& together) {
    const CompId c = m_.parent(together[0]);
    const int64_t along = op_ == Opcode::AllGather ? gathered_along(together) : 0;
    std::vector<InstId> operands;
    std::vector<ShapeId> shapes;
    std::vector<int64_t> from;
    for (InstId i : together) {
      InstId operand = m_.operand(i, 0);
      from.push_back(op_ == Opcode::AllGather ? m_.attrs(i).ints(Attr::dimensions)[0] : along);
      shapes.push_back(m_.shape_id(i));
      if (from.back() != along) {
        operand = make(m_, c, Opcode::Bitcast, {operand}, {}, exchanged(m_.shape_id(operand), along, from.back()));
        shapes.back() = exchanged(shapes.back(), along, from.back());
      }
      operands.push_back(operand);
    }
    AttrSet set = m_.attrs(together[0]);
    set.erase(Attr::sharding);
    if (op_ == Opcode::AllGather) set.set(Attr::dimensions, Dims{along});
    if (op_ != Opcode::CollectivePermute) set.set(Attr::backend_config, u_.str(kUnsetConfig));
    const InstId both = make_derived(m_, together[0], op_, operands, u_.attrs(std::move(set)), u_.tuple(shapes));
    for (size_t k = 0; k < together.size(); ++k) {
      InstId part = make_element(m_, both, static_cast<int64_t>(k));
      if (from[k] != along) part = make(m_, c, Opcode::Bitcast, {part}, {}, m_.shape_id(together[k]));
      m_.replace(together[k], part);
    }
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  Opcode op_;
  std::string key_;  // of those that go together
  bool spent_ = false;
};

}  // namespace

bool run_gpu_all_reduce_combiner(Module& m, PassContext& ctx) { return Combiner(m, ctx, Opcode::AllReduce).run(); }
bool run_gpu_all_gather_combiner(Module& m, PassContext& ctx) { return Combiner(m, ctx, Opcode::AllGather).run(); }
bool run_gpu_reduce_scatter_combiner(Module& m, PassContext& ctx) {
  return Combiner(m, ctx, Opcode::ReduceScatter).run();
}
bool run_collective_permute_combiner(Module& m, PassContext& ctx) {
  return Combiner(m, ctx, Opcode::CollectivePermute).run();
}

}  // namespace hlo
