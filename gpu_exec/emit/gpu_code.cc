#include "gpu_exec/emit/gpu_code.h"

#include <algorithm>
#include <set>

#include "gpu_exec/emit/codegen.h"
#include "gpu_exec/emit/kernel.h"

namespace hlo {
std::string kernel_name(std::string_view name, std::set<std::string>& taken) {
  std::string out;
  for (char c : name) out += isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || isdigit(static_cast<unsigned char>(out[0]))) out = "k" + out;
  std::string base = out;
  for (int k = 1; !taken.insert(out).second; ++k) out = fmt::format("{}__{}", base, k);
  return out;
}

GpuCode gpu_code(const Module& m, const std::string& sm) {
  static const std::set<std::string> kKnown = {"sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"};
  if (!kKnown.contains(sm))
    fail(FailureKind::kUsage, "unknown architecture '{}'; there are {}", sm, fmt::join(kKnown, ", "));
  GpuCode out;
  llvm::LLVMContext context;
  llvm::Module code(m.name(), context);
  auto machine = nvptx_machine(sm);
  prepare(code, *machine);
  std::set<std::string> names;
  auto has_kernel = [](const Module& module, InstId i) {
    return runs_as_kernel(module, i) || module.op(i) == Opcode::Sort || module.op(i) == Opcode::Scatter;
  };
  for (const std::vector<InstId>& same : distinct_kernels(m, {m.entry()}, has_kernel)) {
    InstId i = same[0];
    std::string name = kernel_name(m.inst_name(i), names);
    try {
      Kernel kernel = build_gpu_kernel(m, i, code, name);
      for (const KernelPart& p : kernel.parts) out.kernels.push_back({i, p.function, p.schedule, p.blocks, p.threads});
    } catch (const Failure& e) {
      if (e.kind() != FailureKind::kUnsupported) throw;
      out.without.push_back({i, e.what()});
    }
  }
  check_ir(code);
  out.ir = ir_text(code);
  link_libdevice(code);
  optimise(code, *machine);
  out.optimised_ir = ir_text(code);
  out.ptx = assembly(code, *machine);
  return out;
}

std::string without_constants(const std::string& ir) {
  std::string out;
  for (size_t at = 0; at < ir.size();) {
    size_t end = std::min(ir.find('\n', at), ir.size());
    std::string_view line = std::string_view(ir).substr(at, end - at);
    size_t bracket = line.find(" constant [");
    if (line.starts_with("@") && bracket != std::string_view::npos) {
      size_t close = line.find(']', bracket);
      size_t tail = line.rfind(", align");
      out += line.substr(0, close + 1);
      if (tail != std::string_view::npos && tail > close) out += line.substr(tail);
    } else {
      out += line;
    }
    out += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace hlo
