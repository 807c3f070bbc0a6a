// Work and bytes of instructions as XLA's GPU cost analysis counts them
// (xla/service/gpu/model/gpu_hlo_cost_analysis.cc): operations in clock cycles by opcode and type, how often a fusion
// computes and reads what it holds, and how much code it would be. Not ir/cost/cost.h, which counts what a model costs;
// this is what XLA's fusions are decided by, in its floats.
#pragma once
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "ir/target/gpu_target.h"

namespace hlo {

// Clock cycles of one element.
int64_t clock_cycles(Opcode op, ElementType type);

struct GpuCost {
  float flops = 0;
  float bytes_written = 0;
  std::vector<float> bytes_read;   // by operand
  std::vector<float> utilization;  // by operand: how many times its elements are read, on average
  float code = 1;                  // size of what is emitted, in instructions
  // Of a fusion: is_elementwise; and does it move the minor dimension of something that is read?
  bool elementwise = false, reads_across = false;
};

class GpuCostAnalysis {
 public:
  explicit GpuCostAnalysis(const Module& m) : m_(m) {}
  const GpuCost& of(InstId i);
  // To be called for a fusion that changed.
  void forget(InstId i) { known_.erase(i); }
  // How many times the consumer reads the elements of that operand, where it stands first.
  float utilization(InstId consumer, InstId operand);
  // The same wherever it stands: how often the consumer would compute it.
  float repeats(InstId consumer, InstId operand);
  // Of the elements of an operand of both, with its first places among theirs: how many times the fusion of both reads
  // them for both at once.
  float common_utilization(InstId producer, InstId consumer, size_t in_producer, size_t in_consumer);
  bool reads_across(InstId i);
  // Would the producer's code, repeated as the consumer asks for it, be too much?
  bool merged_too_large(InstId producer, InstId consumer);
  int64_t size(InstId i) const { return bytes(m_.shape_id(i)); }

 private:
  struct Inside {
    float utilization = 0, code = 0, root_utilization = 0, root_code = 0;
    std::vector<InstId> roots;  // what it is read for, element by element
  };
  GpuCost plain(InstId i);
  GpuCost fused(InstId fusion);
  float flops_of_body(CompId comp);
  float shared(const Inside& a, const Inside& b) const;
  void reduce_costs(InstId i, GpuCost* c);
  void window_costs(InstId i, GpuCost* c);
  void scatter_costs(InstId i, GpuCost* c);
  int64_t bytes(ShapeId shape) const;

  const Module& m_;
  std::unordered_map<InstId, GpuCost> known_;
  std::unordered_map<InstId, Inside> inside_;  // of instructions in bodies
};

}  // namespace hlo
