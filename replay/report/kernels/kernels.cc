#include "replay/report/kernels/kernels.h"

#include <algorithm>

#include "ir/program/buffer.h"
#include "replay/report/kernels/shared_cache.h"

namespace hlo {
namespace {

bool runs_beside_others(Opcode op) {
  return op == Opcode::AsyncStart || op == Opcode::CopyStart || op == Opcode::AllGatherStart ||
         op == Opcode::AllReduceStart || op == Opcode::CollectivePermuteStart || op == Opcode::Send ||
         op == Opcode::Recv;
}

KernelCost cost_of_kernel(const Module& m, InstId i, const KernelReads& reads, const DeviceSpec& device) {
  KernelCost k{i, reads.cost};
  k.cached = reads.cached;
  k.seconds = least_seconds(k.cost, device, &k.by_memory, &k.known, k.cached);
  k.beside = runs_beside_others(m.op(i));
  // What is not scheduled will be fused before it runs; a mark for the compiler, a call that nobody knows, a message or
  // a copy beside others may be no kernel.
  const bool kernel = m.config().is_scheduled && !k.beside && !k.cost.unknown && (k.seconds > 0 || !k.known);
  if (kernel && k.seconds < device.least_kernel_us * 1e-6)
    k.seconds = device.least_kernel_us * 1e-6, k.by_launch = true, k.by_memory = false;
  return k;
}

}  // namespace

std::string_view limit_name(const KernelCost& k) { return k.by_launch ? "launch" : k.by_memory ? "memory" : "compute"; }

const KernelCost* ModuleCost::of(InstId inst) const {
  auto found = std::find_if(kernels.begin(), kernels.end(), [&](const KernelCost& k) { return k.inst == inst; });
  return found == kernels.end() ? nullptr : &*found;
}

std::string bound_text(double seconds, size_t unknown_calls) {
  if (unknown_calls == 0) return time_text(seconds);
  return fmt::format("{} and {} call{} of unknown cost", time_text(seconds), unknown_calls,
                     unknown_calls == 1 ? "" : "s");
}

ModuleCost module_cost(const Module& m, const DeviceSpec& device) {
  ModuleCost out;
  CostAnalysis analysis(m);
  SharedCache cache(m, analysis, device.l2_mib * (1 << 20));
  // How often a computation runs: loops run their bodies so often, callers come before what they call.
  std::vector<double> times(m.comp_slots(), 0);
  std::vector<bool> guessed(m.comp_slots(), false);
  times[m.entry().value] = 1;
  std::vector<CompId> order = m.computation_post_order();
  for (auto comp = order.rbegin(); comp != order.rend(); ++comp) {
    const double here = times[comp->value];
    if (here == 0) continue;
    auto reached = [&](CompId c, double often, bool unknown) {
      times[c.value] += here * often;
      guessed[c.value] = guessed[c.value] || guessed[comp->value] || unknown;
    };
    const std::unordered_map<InstId, KernelReads>& kernels = cache.kernels(*comp);
    for (InstId i : m.post_order(*comp)) {
      const Opcode op = m.op(i);
      if (op == Opcode::While) {
        const int64_t steps = analysis.trip_count(i);
        out.loops_without_trip_count += steps < 0;
        for (CompId c : m.called(i)) reached(c, steps < 0 ? 1 : static_cast<double>(steps), steps < 0);
      } else if (op == Opcode::Conditional || op == Opcode::Call) {
        for (CompId c : m.called(i)) reached(c, 1, false);
      } else if (kernels.contains(i)) {
        KernelCost k = cost_of_kernel(m, i, kernels.at(i), device);
        k.times = here, k.times_known = !guessed[comp->value], k.seconds *= here;
        out.kernels.push_back(k);
      }
    }
  }
  std::stable_sort(out.kernels.begin(), out.kernels.end(), [](const KernelCost& x, const KernelCost& y) {
    // Of those that are launches alone, those that do most.
    auto work = [](const KernelCost& k) { return (k.cost.bytes() + k.cost.flops) * k.times; };
    return x.seconds != y.seconds ? x.seconds > y.seconds : work(x) > work(y);
  });
  double in_a_row = 0, longest = 0;
  for (const KernelCost& k : out.kernels) {
    Cost c = k.cost;
    c *= k.times;
    out.all += c, out.sum += k.seconds;
    (k.beside ? longest : in_a_row) = k.beside ? std::max(longest, k.seconds) : in_a_row + k.seconds;
    out.unknown_calls += !k.known, out.beside += k.beside;
  }
  out.seconds = std::max(in_a_row, longest);
  return out;
}

namespace {

std::string class_of_call(std::string_view target) {
  if (target.find("onv") != std::string_view::npos) return "convolution";
  if (target.find("gemm") != std::string_view::npos || target.find("matmul") != std::string_view::npos ||
      target.find("MatMul") != std::string_view::npos || target.find("dot") != std::string_view::npos)
    return "product";
  if (target.find("fmha") != std::string_view::npos || target.find("attention") != std::string_view::npos)
    return "attention";
  if (target.find("norm") != std::string_view::npos) return "norm";
  return "custom-call";
}

std::string class_of_op(const Module& m, InstId i) {
  const OpInfo& info = op_info(m.op(i));
  switch (m.op(i)) {
    case Opcode::Dot:
    case Opcode::RaggedDot:
      return "product";
    case Opcode::Convolution:
      return "convolution";
    case Opcode::Copy:
    case Opcode::CopyStart:
      return "copy";
    case Opcode::Transpose:
      return "transpose";
    case Opcode::Gather:
      return "gather";
    case Opcode::Scatter:
      return "scatter";
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
      return "slice";
    case Opcode::Sort:
    case Opcode::TopK:
      return "sort";
    case Opcode::CustomCall:
      return class_of_call(m.u().text(m.attrs(i).text(Attr::custom_call_target)));
    default:
      break;
  }
  if (info.cls == OpClass::Collective) return "collective";
  if (info.cls == OpClass::Reduce || info.cls == OpClass::Window) return "reduction";
  if (info.elementwise) return "elementwise";
  return info.cls == OpClass::Move ? "data movement" : std::string(op_text(m.op(i)));
}

// What a fusion is built around comes before what stands beside it.
int weight_of_class(const std::string& c) {
  for (const auto& [name, weight] :
       {std::pair("product", 9), std::pair("convolution", 9), std::pair("attention", 9), std::pair("sort", 8),
        std::pair("scatter", 7), std::pair("reduction", 6), std::pair("gather", 5), std::pair("transpose", 4),
        std::pair("elementwise", 3), std::pair("slice", 2), std::pair("copy", 2)})
    if (c == name) return weight;
  return 1;
}

}  // namespace

std::string kernel_class(const Module& m, InstId inst) {
  if ((m.op(inst) != Opcode::Fusion && m.op(inst) != Opcode::AsyncStart) || m.called(inst).empty())
    return class_of_op(m, inst);
  std::string best;
  for (InstId i : m.post_order(m.called(inst)[0])) {
    const Opcode op = m.op(i);
    if (op == Opcode::Parameter || op == Opcode::Constant || op == Opcode::Tuple || op == Opcode::GetTupleElement ||
        op == Opcode::Bitcast)
      continue;
    std::string c = class_of_op(m, i);
    if (best.empty() || weight_of_class(c) > weight_of_class(best)) best = c;
  }
  return best.empty() ? "data movement" : best;
}

std::string time_text(double s) {
  if (s >= 1) return fmt::format("{:.3f} s", s);
  if (s >= 1e-3) return fmt::format("{:.3f} ms", s * 1e3);
  return fmt::format("{:.3f} us", s * 1e6);
}

std::string flops_text(double f) {
  for (const auto& [unit, size] : {std::pair("Pflop", 1e15), std::pair("Tflop", 1e12), std::pair("Gflop", 1e9),
                                   std::pair("Mflop", 1e6), std::pair("kflop", 1e3)})
    if (f >= size) return fmt::format("{:.3g} {}", f / size, unit);
  return fmt::format("{:.0f} flop", f);
}

std::string size_text(double bytes) {
  if (bytes >= 1024.0 * (int64_t{1} << 30)) return fmt::format("{:.2f}TiB", bytes / 1024 / (int64_t{1} << 30));
  return human_bytes(static_cast<int64_t>(std::min(bytes, 9e18)));
}

}  // namespace hlo
