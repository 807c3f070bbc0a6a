// variadic-op-splitter (xla/service/gpu/transforms/variadic_op_splitter.cc).
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {

//   concatenate of 300      →      concatenate(concatenate of 128, concatenate of 128, the other 44)
bool run_variadic_op_splitter(Module& m, PassContext& ctx) {
  constexpr size_t kMost = 128;
  bool changed = false;
  auto is_long = [&](InstId i) { return m.operand_count(i) > kMost; };
  for (InstId i : all_of_opcode(m, Opcode::Concatenate, is_long)) {
    if (!ctx.spend(m, "long concatenate split", {i})) return changed;
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
    while (ops.size() > kMost) {
      std::vector<InstId> next;
      for (size_t at = 0; at < ops.size(); at += kMost) {
        std::vector<InstId> group(ops.begin() + static_cast<ptrdiff_t>(at),
                                  ops.begin() + static_cast<ptrdiff_t>(std::min(at + kMost, ops.size())));
        if (at && group.size() < kMost)
          next.insert(next.end(), group.begin(), group.end());
        else
          next.push_back(make(m, m.parent(i), Opcode::Concatenate, group, m[i].attrs));
      }
      ops = std::move(next);
    }
    InstId to = make(m, m.parent(i), Opcode::Concatenate, ops, m[i].attrs, m.shape_id(i));
    changed |= m.replace(i, to);
  }
  return changed;
}

}  // namespace hlo
