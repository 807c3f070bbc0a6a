#include "gpu_exec/host.h"

#include <algorithm>
#include <chrono>

#include "gpu_exec/jit.h"
#include "gpu_exec/kernel.h"
#include "gpu_exec/onednn.h"
#include "gpu_exec/row_groups.h"
#include "ir/base/parallel.h"
#include "ir/eval/kernels.h"
#include "passes/pass.h"

namespace hlo {
namespace {

using Function = void (*)(char* const*, char* const*, int64_t, int64_t);

Value empty_value(const Universe& u, ShapeId id) {
  Value v;
  v.shape = id;
  if (u[id].is_tuple())
    for (ShapeId e : u[id].elements) v.elements.push_back(empty_value(u, e));
  else
    v.data =
        std::make_shared<std::vector<char>>(static_cast<size_t>(u[id].elements_count() * storage_bytes(u[id].type)));
  return v;
}

// Work below which another thread costs more than it brings.
constexpr int64_t kGrain = 1 << 16;

}  // namespace

struct HostKernels::Impl {
  explicit Impl(const Module& module) : m(module), u(module.u()) {}
  struct Part {
    void* function;
    int64_t count, grain;
  };
  struct Compiled {
    std::vector<Part> parts;
    std::vector<const char*> constants;
    int in_place = -1;
  };
  const Module& m;
  Universe& u;
  bool exact = false;
  mutable HostConvolutions convolutions;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<Compiled> kernels;
  std::unordered_map<InstId, size_t> by_inst;
  std::vector<std::pair<InstId, std::string>> without;
};

HostKernels::HostKernels(const Module& m, bool exact) : impl_(std::make_unique<Impl>(m)) {
  impl_->exact = exact;
  std::vector<std::vector<InstId>> kinds = distinct_kernels(m);
  JitModules code;
  std::vector<std::pair<size_t, std::string>> without;
  std::vector<Kernel> kernels = code.build(m, kinds, build_host_kernel, &without);
  impl_->jit = code.finish(nullptr);
  for (auto& [k, why] : without) impl_->without.push_back({kinds[k][0], std::move(why)});
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (kernels[k].parts.empty()) continue;
    Impl::Compiled c;
    c.in_place = kernels[k].begins(0);
    for (LitId lit : kernels[k].constants) c.constants.push_back(m.u()[lit].bytes.data());
    for (const KernelPart& part : kernels[k].parts)
      c.parts.push_back({jit_function(*impl_->jit, part.function), part.count,
                         std::max<int64_t>(kGrain / std::max<int64_t>(part.work, 1), 1)});
    for (InstId i : kinds[k]) impl_->by_inst[i] = impl_->kernels.size();
    impl_->kernels.push_back(std::move(c));
  }
}

HostKernels::~HostKernels() = default;

size_t HostKernels::compiled() const { return impl_->by_inst.size(); }
size_t HostKernels::convolutions() const {
  size_t n = 0;
  if (!impl_->exact)
    for (CompId c : impl_->m.nonfusion_computations())
      for (InstId i : impl_->m.live_order(c))
        n += impl_->m.op(i) == Opcode::Convolution && impl_->convolutions.takes(impl_->m, i);
  return n;
}
std::string HostKernels::library() const { return impl_->convolutions.library(); }
size_t HostKernels::kernels() const { return impl_->kernels.size(); }
const std::vector<std::pair<InstId, std::string>>& HostKernels::without_code() const { return impl_->without; }

bool HostKernels::run(InstId inst, std::vector<Value>& operands, Value* result) const {
  auto at = impl_->by_inst.find(inst);
  bool by_library = at == impl_->by_inst.end() && impl_->m.op(inst) == Opcode::Convolution && !impl_->exact;
  if (at == impl_->by_inst.end() && !by_library) return false;
  for (const Value& v : operands)
    if (!v.sizes.empty()) return false;  // dynamic sizes at run time
  if (by_library) {
    if (!impl_->convolutions.takes(impl_->m, inst)) return false;
    Value out = empty_value(impl_->u, impl_->m.shape_id(inst));
    impl_->convolutions.run(impl_->m, inst, operands[0].bytes(), operands[1].bytes(), out.data->data());
    *result = std::move(out);
    return true;
  }
  const Impl::Compiled& c = impl_->kernels[at->second];
  const Universe& u = impl_->u;
  ShapeId shape = impl_->m.shape_id(inst);
  Value out;
  if (c.in_place >= 0) {
    out = std::move(operands[static_cast<size_t>(c.in_place)]);
    out.shape = shape;
    out.mutable_bytes();
  } else {
    out = empty_value(u, shape);
  }
  std::vector<char*> in, results;
  for (size_t k = 0; k < operands.size(); ++k)
    in.push_back(static_cast<int>(k) == c.in_place ? out.data->data() : operands[k].data->data());
  for (const char* p : c.constants) in.push_back(const_cast<char*>(p));
  if (u[shape].is_tuple())
    for (Value& e : out.elements) results.push_back(e.data->data());
  else
    results.push_back(out.data->data());
  for (const Impl::Part& p : c.parts) {
    auto function = reinterpret_cast<Function>(p.function);
    if (p.count <= p.grain)
      function(in.data(), results.data(), 0, p.count);
    else
      parallel_ranges(p.count, p.grain,
                      [&](int64_t first, int64_t last) { function(in.data(), results.data(), first, last); });
  }
  *result = std::move(out);
  return true;
}

std::unique_ptr<Module> fused_for_host(const Module& m) {
  auto copy = m.clone();
  for (CompId c : copy->computations())
    for (InstId i : copy->live_order(c))
      if (copy->op(i) == Opcode::Fusion) return copy;
  copy->config.is_scheduled = false;
  // Expanded, a batch norm of 16 bits rounds after each of its steps; the evaluator's own does not.
  bool narrow = false;
  for (CompId c : copy->computations())
    for (InstId i : copy->live_order(c))
      narrow |=
          op_info(copy->op(i)).cls == OpClass::BatchNorm && type_bits(copy->shape(copy->operand(i, 0)).type) <= 16;
  for (const char* name : {"batchnorm_expander", "fusion", "dce"}) {
    if (narrow && std::string_view(name) == "batchnorm_expander") continue;
    const PassInfo* pass = find_pass(name);
    HLO_CHECK(pass && pass->run, "pass {}", name);
    PassContext context;
    context.keep_notes = false;
    if (std::string_view(name) == "fusion") fuse_row_groups(*copy);
    pass->run(*copy, context);
    copy->cleanup();
  }
  return copy;
}

Execution run_host(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options) {
  Execution out;
  auto start = std::chrono::steady_clock::now();
  // Whoever watches values wants those of the module as it is.
  std::unique_ptr<Module> fused = options.trace || options.as_it_is ? m.clone() : fused_for_host(m);
  HostKernels kernels(*fused, options.exact);
  EvalOptions with = options;
  with.kernel = [&](InstId i, std::vector<Value>& ops, Value* v) { return kernels.run(i, ops, v); };
  out.compile_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.run_s = 1e300;
  for (int k = 0; k < std::max(repeat, 1); ++k) {
    start = std::chrono::steady_clock::now();
    if (arguments.size() == 1) {
      Evaluator evaluator(*fused, with);
      out.results = {evaluator.run(arguments[0])};
    } else {
      out.results = run_devices(*fused, arguments, with);
    }
    out.run_s = std::min(out.run_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  out.compiled = kernels.compiled();
  out.notes.push_back(fmt::format("{} of {} instructions compiled, as {} kernels", kernels.compiled(),
                                  kernels.compiled() + kernels.without_code().size(), kernels.kernels()));
  if (size_t n = kernels.convolutions()) out.notes[0] += fmt::format(", {} convolutions by {}", n, kernels.library());
  for (const auto& [inst, why] : kernels.without_code()) out.notes.push_back(why);
  return out;
}

}  // namespace hlo
