// How the elements that a product's kernel reads and writes lie in the arrays around it
// (xla/service/gpu/triton_tiling_propagation.cc, triton_fusion_analysis.cc): an array is a list of pieces of the dot's
// own dimensions, minor first. Operations split, join and permute them; what a Triton kernel cannot follow is said.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

// A part of one dimension of the dot, in the order of memory.
struct Fragment {
  Fragment(int dim_, int64_t count_) : dim(dim_), count(count_), sliced(count_) {}
  int dim;                    // of the dot's operand or result
  int64_t count;              // elements in memory
  int64_t start = 0, sliced;  // those that are read
  bool is_sliced() const { return sliced != count; }
  bool operator==(const Fragment&) const = default;
};

struct DimensionOrder {
  std::vector<Fragment> fragments;         // minor to major
  std::map<int, std::vector<int>> by_dim;  // by place in `fragments`, each dimension's minor first
  // Two orders with the same are read by the same loops.
  using Spec = std::map<int, std::vector<std::vector<int64_t>>>;
  Spec spec() const;
};
DimensionOrder dimension_order_of(const Shape& dot_side);

// What a fusion asks of the orders in it: the one dimension that may lie in two pieces, and the size of its major one.
struct DotSide {
  int kept = -1;        // the dimension of the operand that the sum leaves; -1 at the result
  int splittable = -1;  // -1: none may lie in pieces
};
inline constexpr int64_t kNoSplit = 1;

// Orders of an instruction's operands from that of its result, or of its result from that of an operand.
struct PropagatedOrders {
  std::string refused;  // why a kernel cannot follow; empty: it can
  std::map<InstId, DimensionOrder> orders;
  int64_t split = kNoSplit;  // of the splittable dimension's major piece
};
enum class Towards { kOperands, kUsers };
PropagatedOrders propagate_orders(const Module& m, InstId i, const DimensionOrder& order, Towards direction,
                                  const DotSide& side);
// One of two, where they do not clash.
std::optional<int64_t> combined_split(int64_t a, int64_t b);

// Can the old Triton emitter compute it (xla/backends/gpu/codegen/triton/support_legacy.cc)? Empty: yes.
std::string triton_refuses(const Module& m, InstId i);
bool triton_elementwise(Opcode op, ElementType operand);

}  // namespace hlo
