#include "ir/analysis/performance/gpu_performance_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hlo {
namespace {

constexpr float kCacheSpeedupL2 = 2.5F, kCacheSpeedupL1 = 8;
constexpr double kOverlap = 0.95;  // of computing with reading and writing

}  // namespace

static constexpr double kSecond = 4e9;  // in ticks
// A quarter of an hour; what takes longer, or nobody can tell, takes this. Sums over all users of an array fit then.
static constexpr Ticks kLongest = Ticks{1} << 42;
static bool is_short(double ticks) { return ticks >= 0 && ticks < static_cast<double>(kLongest); }  // NaN is not

// Seconds and the rest apart, as absl::Duration does it: where a half is rounded to hangs on it.
Ticks from_seconds(double s) {
  if (!is_short(s * kSecond)) return kLongest;
  const double whole = std::trunc(s);
  return static_cast<Ticks>(whole) * static_cast<Ticks>(kSecond) +
         static_cast<Ticks>(std::round((s - whole) * kSecond));
}
static Ticks scaled(Ticks t, double by) {
  if (!is_short(static_cast<double>(t) * by)) return kLongest;
  const auto second = static_cast<Ticks>(kSecond);
  const Ticks seconds = t / second;
  double whole = 0, more = 0;
  const double left = std::modf(static_cast<double>(seconds) * by, &whole);
  const double ticks = std::modf(static_cast<double>(t % second) * by / kSecond + left, &more);
  return (static_cast<Ticks>(whole) + static_cast<Ticks>(more)) * second +
         static_cast<Ticks>(std::round(ticks * kSecond));
}
static Ticks from_nanoseconds(double ns) { return scaled(4, ns); }

Ticks together(Ticks compute, Ticks memory) { return compute + memory - scaled(std::min(compute, memory), kOverlap); }

std::string RunTime::text() const {
  return fmt::format("{} kernel, {} blocks of {}: {} cycles {:.5g} us, read {:.5g}, write {:.5g}, together {:.5g}",
                     emitter_text(kind), grid.blocks, grid.threads, flops, microseconds(compute), microseconds(read),
                     microseconds(write), microseconds(total));
}

Ticks GpuPerformanceModel::compute_time(int64_t flops, const Grid& grid) const {
  const int64_t units = std::min(grid.blocks, target_.core_count) * std::min(grid.threads, target_.fpus_per_core);
  const double each = target_.clock_rate_ghz * 2;
  const auto rate = std::max<int64_t>(1, static_cast<int64_t>(each * static_cast<double>(units)));
  return from_nanoseconds(static_cast<double>(static_cast<float>(flops) / static_cast<float>(rate)));
}

Ticks GpuPerformanceModel::read_time(const Grid& grid, int64_t net, int64_t total, double rate) const {
  auto dram = static_cast<float>(static_cast<double>(target_.memory_bandwidth) * rate);
  auto rest = static_cast<float>(target_.memory_bandwidth);
  if (net < target_.l2_cache_size) {
    rest *= kCacheSpeedupL2;
    if (net < target_.l1_cache_per_core * target_.core_count) rest *= kCacheSpeedupL1;
  } else {
    rest = static_cast<float>(rest * rate);
  }
  const float of_block = target_.clock_rate_ghz * 1.0e9F * static_cast<float>(target_.bytes_per_clock);
  const float most = static_cast<float>(grid.blocks) * of_block;
  dram = std::min(dram, most), rest = std::min(rest, most);
  const int64_t first = std::min(net, total), again = total - first;
  return from_seconds(static_cast<double>(static_cast<float>(first) / dram)) +
         from_seconds(static_cast<double>(static_cast<float>(again) / rest));
}

bool GpuPerformanceModel::coalesced(EmitterKind kind, InstId producer, InstId consumer) {
  if (kind != EmitterKind::kTranspose &&
      (costs_.reads_across(producer) || (consumer.valid() && costs_.reads_across(consumer))))
    return false;
  return !(kind == EmitterKind::kReduction && consumer.valid() && has_reduction_root(m_, producer, target_) &&
           has_reduction_root(m_, consumer, target_));
}

// Of the memory's bandwidth, where each element is brought with all that lies beside it.
double GpuPerformanceModel::read_rate(ElementType type, bool is_coalesced) const {
  const int64_t width = is_array_type(type) ? (element_bits(type) + 7) / 8 : 4;
  return is_coalesced ? 1 : static_cast<double>(width) / static_cast<double>(target_.dram_transaction);
}

RunTime GpuPerformanceModel::of(InstId i) {
  if (is_triton_fusion(m_, i))
    if (auto tiled = of_triton(i)) return *tiled;
  RunTime r;
  const GpuCost& cost = costs_.of(i);
  r.flops = static_cast<int64_t>(cost.flops);
  r.bytes_written = static_cast<int64_t>(cost.bytes_written);
  const FusionAnalysis a = analyze_fusion(FusionView(m_, i), target_);
  r.grid = a.grid, r.kind = a.kind;
  r.compute = compute_time(r.flops, r.grid);
  const bool good = coalesced(a.kind, i, InstId());
  for (size_t n = 0; n < m_.operand_count(i); ++n) {
    const InstId o = m_.operand(i, n);
    const auto ops = m_.operands(i);
    const auto first = static_cast<size_t>(std::find(ops.begin(), ops.end(), o) - ops.begin());
    const auto total = static_cast<int64_t>(cost.bytes_read[first]), net = std::min(costs_.size(o), total);
    r.read += read_time(r.grid, net, total, read_rate(m_.shape(o).type, good));
  }
  r.write = from_seconds(
      static_cast<double>(static_cast<float>(r.bytes_written) / static_cast<float>(target_.memory_bandwidth)));
  r.total = together(r.compute, r.read + r.write);
  return r;
}

RunTime GpuPerformanceModel::fused(InstId producer, InstId consumer, const RunTime& of_producer,
                                   const RunTime& of_consumer, bool output) {
  RunTime r;
  const float times = costs_.utilization(consumer, producer);
  const FusionView view(m_, producer, consumer, output);
  const FusionAnalysis a = analyze_fusion(view, target_);
  r.grid = a.grid, r.kind = a.kind;
  r.flops = static_cast<int64_t>(static_cast<float>(of_producer.flops) * costs_.repeats(consumer, producer) +
                                 static_cast<float>(of_consumer.flops));
  r.compute = compute_time(r.flops, r.grid);
  const bool good = coalesced(a.kind, producer, consumer);
  const GpuCost &of_p = costs_.of(producer), &of_c = costs_.of(consumer);
  for (const FusionView::Read& o : view.reads()) {
    const int64_t size = costs_.size(o.inst);
    int64_t total = 0;
    if (o.in_producer >= 0) {
      const auto once = static_cast<int64_t>(of_p.bytes_read[static_cast<size_t>(o.in_producer)]);
      total += std::llround(static_cast<float>(once) * times);
    }
    if (o.in_consumer >= 0) total += static_cast<int64_t>(of_c.bytes_read[static_cast<size_t>(o.in_consumer)]);
    if (o.in_producer >= 0 && o.in_consumer >= 0)
      total -= std::llround(static_cast<float>(size) * costs_.common_utilization(producer, consumer,
                                                                                 static_cast<size_t>(o.in_producer),
                                                                                 static_cast<size_t>(o.in_consumer)));
    r.read += read_time(r.grid, std::min(size, total), total, read_rate(m_.shape(o.inst).type, good));
  }
  r.bytes_written = of_consumer.bytes_written;
  r.write = of_consumer.write;
  if (output) r.bytes_written += of_producer.bytes_written, r.write += of_producer.write;
  r.total = together(r.compute, r.read + r.write);
  return r;
}

}  // namespace hlo
