#include "replay/report/memory/memory_orders.h"

#include <algorithm>
#include <memory>

#include "ir/base/check.h"
#include "parser/parser.h"
#include "passes/schedule/memory_scheduler.h"
#include "replay/os/confined_path.h"
#include "replay/os/interrupt.h"
#include "replay/record/files/input.h"

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

namespace {

// Of the stage's text: what it needs by its own order, else, where `any_order` is asked for, by the best of three.
StagePeak peak_of_stage(const Recording& r, size_t row, const Target& target, bool any_order) {
  StagePeak out;
  out.row = row, out.pass = r.rows[row].pass, out.stage = r.rows[row].name();
  const std::string file = r.text_file(row);
  if (file.empty()) {
    out.why_not = "it has no text";
    return out;
  }
  try {
    const std::unique_ptr<Module> m =
        parse_text(read_confined(r.folder, file), std::make_shared<Universe>(), ParseOptions{});
    out.scheduled = m->config().is_scheduled;
    const Sharing sharing(*m, target.gpu);
    if (out.scheduled && !sharing.flow) {
      out.why_not = "a computation is called from two places";
    } else if (out.scheduled) {
      out.bytes = minimum_memory(*m, own_orders(*m), *sharing.flow, sharing.aliases);
    } else if (any_order) {
      std::array<int64_t, 3> peaks{};
      memory_orders(*m, PointsTo(*m, true), sharing, &peaks);
      out.bytes = *std::min_element(peaks.begin(), peaks.end());
    }
  } catch (const Failure& e) {
    if (interrupted()) throw;
    const std::string what = e.what();
    out.why_not = what.substr(0, what.find('\n'));
  }
  return out;
}

}  // namespace

std::vector<StagePeak> stage_peaks(const Recording& r, const Target& target,
                                   const std::function<void(size_t, size_t)>& progress) {
  std::vector<StagePeak> out;
  for (size_t row = 0; row < r.rows.size(); ++row) {
    const StageRow& s = r.rows[row];
    if (progress) progress(row, r.rows.size());
    if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    if (s.file.empty() || s.kind == StageRow::kPipelineStart || s.kind == StageRow::kInnerStep) continue;
    out.push_back(peak_of_stage(r, row, target, true));
  }
  return out;
}

std::vector<PeakChange> peak_changes(const std::vector<StagePeak>& all) {
  std::vector<PeakChange> out;
  for (size_t k = 1; k < all.size(); ++k) {
    if (all[k].bytes < 0 || all[k - 1].bytes < 0 || all[k].bytes == all[k - 1].bytes) continue;
    out.push_back({k - 1, k, all[k].bytes - all[k - 1].bytes});
  }
  std::stable_sort(out.begin(), out.end(), [](const PeakChange& x, const PeakChange& y) {
    if ((x.bytes > 0) != (y.bytes > 0)) return x.bytes > 0;
    return x.bytes > 0 ? x.bytes > y.bytes : x.bytes < y.bytes;
  });
  return out;
}

std::vector<OrderPass> order_passes(const Recording& r, const Target& target) {
  std::vector<OrderPass> out;
  for (size_t row = 1; row < r.rows.size(); ++row) {
    const StageRow& s = r.rows[row];
    if (s.kind != StageRow::kPass || s.file.empty() || s.pass.find("schedul") == std::string::npos) continue;
    const int64_t before = peak_of_stage(r, row - 1, target, false).bytes;
    const int64_t after = before < 0 ? -1 : peak_of_stage(r, row, target, false).bytes;
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
