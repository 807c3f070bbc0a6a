// Which fusions may become one of several results (xla/service/gpu/gpu_fusible.cc,
// xla/backends/gpu/transforms/multi_output_fusion.cc).
#pragma once
#include <string>

#include "ir/analysis/fusion/fusion_analysis.h"

namespace hlo {

// May be joined by others: its kernel gives several results.
bool is_output_fusible(const Module& m, InstId i, const GpuTarget& target);
// The same of one that reads what others read: its users can do with elements of a tuple.
bool is_sibling_fusible(const Module& m, InstId i, const GpuTarget& target);
// Why the producer cannot become a result of one of its users; empty where it can.
std::string refuse_output_producer(const Module& m, InstId producer);
// Do both run over the same elements in the same way? Empty: they do.
std::string refuse_loops(const Module& m, InstId a, InstId b, const GpuTarget& target);
// Why two that read `shared` do not go together for what they read of it.
std::string refuse_siblings(const Module& m, InstId a, InstId b, InstId shared);

}  // namespace hlo
