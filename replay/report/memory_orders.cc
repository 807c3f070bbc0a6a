#include "replay/report/memory_orders.h"

#include <algorithm>
#include <memory>

#include "ir/base/check.h"
#include "parser/parser.h"
#include "passes/backend/memory_scheduler.h"
#include "replay/os/confined_path.h"
#include "replay/os/interrupt.h"
#include "replay/record/input.h"

namespace hlo {

int64_t OrderPeaks::saved() const {
  if (!why_not.empty()) return 0;
  const int64_t less = as_it_is - peaks[least];
  return less > as_it_is / 1000 ? less : 0;
}

namespace {

Orders own_orders(const Module& m) {
  Orders out;
  for (CompId c : m.nonfusion_computations()) out.emplace_back(c, m.live_order(c));
  return out;
}

}  // namespace

OrderPeaks order_peaks(const Module& m, const Target& target) {
  OrderPeaks out;
  if (!m.config().is_scheduled) {
    out.why_not = "the module has no order: the compiler chooses one";
    return out;
  }
  try {
    const PointsTo points(m, true);
    const Sharing sharing(m, target.gpu);
    if (!sharing.flow) {
      out.why_not = "a computation is called from two places";
      return out;
    }
    out.as_it_is = minimum_memory(m, own_orders(m), *sharing.flow, sharing.aliases);
    memory_orders(m, points, sharing, &out.peaks);
    out.least = static_cast<size_t>(std::min_element(out.peaks.begin(), out.peaks.end()) - out.peaks.begin());
  } catch (const Failure& e) {
    if (interrupted()) throw;
    const std::string what = e.what();
    out.why_not = what.substr(0, what.find('\n'));
  }
  return out;
}

std::vector<OrderPass> order_passes(const Recording& r, const Target& target) {
  std::vector<OrderPass> out;
  auto needed = [&](size_t row) -> int64_t {
    const std::string file = r.text_file(row);
    if (file.empty()) return -1;
    try {
      const std::unique_ptr<Module> m =
          parse_text(read_confined(r.folder, file), std::make_shared<Universe>(), ParseOptions{});
      if (!m->config().is_scheduled) return -1;
      const Sharing sharing(*m, target.gpu);
      if (!sharing.flow) return -1;
      return minimum_memory(*m, own_orders(*m), *sharing.flow, sharing.aliases);
    } catch (const Failure&) {
      if (interrupted()) throw;
      return -1;
    }
  };
  for (size_t row = 1; row < r.rows.size(); ++row) {
    const StageRow& s = r.rows[row];
    if (s.kind != StageRow::kPass || s.file.empty() || s.pass.find("schedul") == std::string::npos) continue;
    const int64_t before = needed(row - 1), after = before < 0 ? -1 : needed(row);
    if (after >= 0 && std::max(before, after) - std::min(before, after) > before / 100)
      out.push_back({s.pass, s.name(), before, after});
  }
  return out;
}

std::vector<std::string> order_flags(const Target& target, const std::vector<OrderPass>& passes) {
  if (target.platform == "CPU") return {"--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"};
  std::vector<std::string> out;
  for (const OrderPass& p : passes)
    if (p.after > p.before) out.push_back("--xla_disable_hlo_passes=" + p.pass);
  if (!out.empty() && (target.platform == "CUDA" || target.platform == "ROCM"))
    out.emplace_back("--xla_gpu_memory_limit_slop_factor=N, with N below 95");
  return out;
}

}  // namespace hlo
