// An order for each computation in which few bytes are alive at once
// (xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc).
#pragma once
#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/analysis/dataflow/alias_info.h"
#include "ir/analysis/dataflow/points_to.h"

namespace hlo {

// Which results may lie where an operand lay. Without a dataflow (a computation is called from two places) none does.
struct Sharing {
  Sharing(const Module& m, const GpuTarget& target) : aliases(m, target) {
    if (!called_twice(m).valid()) flow.emplace(m);
  }
  AliasInfo aliases;
  std::optional<Dataflow> flow;
};

using Orders = std::vector<std::pair<CompId, std::vector<InstId>>>;  // callees first

// Bytes alive at once when the computation runs in that order: the most at any instruction. Results lie where operands
// lay that end with them, where XLA lets them. `inner`: the same of what it calls in the course of that, which is alive
// beside it. Of a computation that is called, without what its caller has of it: arguments and results; of a loop's
// (`in_loop`), with its state.
int64_t peak_of_order(const Module& m, CompId c, const std::vector<InstId>& order, const PointsTo& points,
                      const Sharing& sharing, const std::unordered_map<CompId, int64_t>& inner = {},
                      bool in_loop = false);

// Bytes that the program needs at least when its computations run in these orders, as XLA counts them to choose one:
// all computations at once, and where a value takes the place of another by must both are counted at that moment.
int64_t minimum_memory(const Module& m, const Orders& orders, const Dataflow& flow, const AliasInfo& aliases);

// What frees the most bytes, of all that could run next, goes first.
std::vector<InstId> list_order(const Module& m, CompId c, const PointsTo& points);
// Depth first; of an instruction's operands first that with the most users among all that leads to it.
std::vector<InstId> depth_first_order(const Module& m, CompId c, const PointsTo& points);
// All computations but fused ones, by that one of these two and the plain post order with which the program needs the
// least; of equal ones the first. `peaks`: what it needs by each of them.
Orders memory_orders(const Module& m, const PointsTo& points, const Sharing& sharing,
                     std::array<int64_t, 3>* peaks = nullptr);

}  // namespace hlo
