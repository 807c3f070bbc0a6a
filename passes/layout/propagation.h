// Layouts by constraints that spread from what demands one (xla/service/layout_assignment.cc): of buffers, of operands
// and of what computations take and give. Two rounds over all computations, callees first: the first finds what flows
// to parameters and results, the second holds callers and callees to it. Nothing is changed here.
#pragma once
#include <deque>
#include <vector>

#include "ir/analysis/dataflow/points_to.h"
#include "passes/layout/orders.h"

namespace hlo {

// One order for each part of a shape, by number; Orders::kNone for what is no array.
using NodeOrders = std::vector<uint32_t>;

class LayoutPropagation {
 public:
  // `capability`: CUDA's compute capability, times ten (90: Hopper), of the device whose libraries demand layouts.
  LayoutPropagation(const Module& m, int64_t capability);
  void run();

  Orders& orders() { return orders_; }
  const PointsTo& points() const { return points_; }
  uint32_t order_of(BufferId b) const { return buffers_[b].order; }
  // What operand n has to lie like; null where nothing asks.
  const NodeOrders* operand(InstId i, size_t n) const;
  const NodeOrders* result(CompId c) const { return calls_[c.value].result_set ? &calls_[c.value].result : nullptr; }
  NodeOrders orders_in(ShapeId shape);  // as the shape has them

  // --- for demands: mandatory and of today's priority, unless said otherwise ---
  const Module& module() const { return m_; }
  int64_t capability() const { return capability_; }
  void set_buffer(BufferId b, uint32_t order, bool mandatory = true, bool dfs = true) {
    set_buffer(b, order, mandatory, dfs, priority_);
  }
  void set_operand(InstId i, size_t n, const NodeOrders& orders, bool mandatory = true, bool dfs = true) {
    set_operand(i, n, orders, mandatory, dfs, priority_);
  }
  void set_instruction(InstId i, const NodeOrders& orders, bool mandatory = true, bool dfs = true);

 private:
  enum class Kind : uint8_t { kBuffer, kOperand, kResult };
  struct Ref {
    Kind kind;
    uint32_t index;
  };
  struct BufferDemand {
    bool set = false, mandatory = false, dfs = false;
    int priority = 0, updates = 0;
    uint32_t order = Orders::kNone;
  };
  struct OperandDemand {
    bool set = false, mandatory = false, dfs = false;
    int priority = 0;
    NodeOrders orders;
  };
  struct Call {  // what a computation takes and gives
    std::vector<NodeOrders> params;
    NodeOrders result;
    int priority = -2;
    bool params_set = false, result_set = false, mismatch = false;
    NodeOrders wanted;  // where `mismatch`: the result of the other branches
  };

  void set_buffer(BufferId b, uint32_t order, bool mandatory, bool dfs, int priority);
  void set_operand(InstId i, size_t n, const NodeOrders& orders, bool mandatory, bool dfs, int priority);
  void set_array_operand(InstId i, size_t n, uint32_t order, bool mandatory, bool dfs, int priority);
  void push(Ref r, bool dfs, int priority);
  bool dfs(Ref r) const;
  int priority(Ref r) const;

  void computation(CompId c);
  void instruction_demands(CompId c);
  void callee_demands(CompId c);
  void while_demands(InstId i);
  void conditional_demands(InstId i);
  void custom_call_demands(CompId c);
  void calculate_call(CompId c);
  bool infer(InstId i, NodeOrders* out) const;

  void propagate(CompId c);
  void propagate_buffer(BufferId b);
  void propagate_to_operands(BufferId b);
  void propagate_to_uses(BufferId b);
  void propagate_operand(InstId i, size_t n);
  void propagate_to_siblings(InstId i, size_t n, uint32_t order, int priority);
  void propagate_use_to_defs(const NodeOrders& orders, InstId i, int priority);

  bool keeps(InstId i) const;  // must the arrays of one rank that it reads and makes lie alike?
  bool at_most_rank_1(ShapeId s) const;
  bool depth_first(InstId i) const;
  Dims came_with(InstId i) const;
  uint32_t operand_from_output(uint32_t order, InstId i, size_t n);
  uint32_t output_from_operand(uint32_t order, InstId i, size_t n);

  const Module& m_;
  const Universe& u_;
  const int64_t capability_;
  PointsTo points_;
  Orders orders_;
  std::vector<std::vector<InstId>> callers_;
  std::vector<BufferDemand> buffers_;
  std::vector<OperandDemand> operands_;
  std::vector<uint32_t> first_operand_;            // of an instruction, in operands_
  std::vector<std::pair<InstId, uint32_t>> uses_;  // whose operand it is, by place in operands_
  std::vector<Call> calls_;
  std::vector<Ref> added_;
  int priority_ = 0;
};

// What the GPU's kernels and libraries ask for (xla/service/gpu/transforms/layout_assignment.cc).
void add_gpu_demands(LayoutPropagation& p, CompId c);

}  // namespace hlo
