#include "gpu_exec/host.h"

#include <dlfcn.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <ucontext.h>

#include <algorithm>
#include <chrono>

#include "gpu_exec/codegen.h"
#include "gpu_exec/kernel.h"
#include "ir/base/parallel.h"
#include "ir/eval/kernels.h"
#include "passes/pass.h"

namespace hlo {
namespace {

using Function = void (*)(char* const*, char* const*, int64_t, int64_t);

template <class T>
T checked(llvm::Expected<T> value, const char* what) {
  if (!value) fail(FailureKind::kInternal, "{}: {}", what, llvm::toString(value.takeError()));
  return std::move(*value);
}
void checked(llvm::Error error, const char* what) {
  if (error) fail(FailureKind::kInternal, "{}: {}", what, llvm::toString(std::move(error)));
}

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

// --- the emulated grid: lanes of a warp take turns on one thread, each with a stack of its own ---

constexpr int kLanes = 32;
constexpr size_t kStack = 64 << 10;

struct Warp {
  ucontext_t scheduler, lanes[kLanes];
  std::vector<char> stacks = std::vector<char>(kLanes * kStack);
  bool finished[kLanes] = {};
  int current = 0;
  uint32_t sent[kLanes] = {}, received[kLanes] = {};
  int distance[kLanes] = {};
  void (*function)(char* const*) = nullptr;
  char* const* pointers = nullptr;
};
thread_local Warp* warp = nullptr;
thread_local int32_t block_number = 0, thread_number = 0;

int32_t emulated_tid() { return warp ? thread_number + warp->current : thread_number; }
int32_t emulated_ctaid() { return block_number; }
int32_t emulated_shuffle_down(int32_t value, int32_t delta) {
  int lane = warp->current;
  warp->sent[lane] = static_cast<uint32_t>(value), warp->distance[lane] = delta;
  ::swapcontext(&warp->lanes[lane], &warp->scheduler);
  return static_cast<int32_t>(warp->received[lane]);
}

void lane_main() {
  warp->function(warp->pointers);
  warp->finished[warp->current] = true;
}

// To the compiler getcontext returns twice: nothing else stands beside it.
void start_lane(Warp& w, int lane) {
  ucontext_t& c = w.lanes[lane];
  ::getcontext(&c);
  c.uc_stack.ss_sp = w.stacks.data() + static_cast<size_t>(lane) * kStack;
  c.uc_stack.ss_size = kStack;
  c.uc_link = &w.scheduler;
  ::makecontext(&c, lane_main, 0);
  w.finished[lane] = false;
}

// All lanes up to their next meeting, then their values change hands, until all have ended.
void run_warp(Warp& w) {
  for (int k = 0; k < kLanes; ++k) start_lane(w, k);
  for (bool alive = true; alive;) {
    alive = false;
    for (int k = 0; k < kLanes; ++k) {
      if (w.finished[k]) continue;
      w.current = k;
      ::swapcontext(&w.scheduler, &w.lanes[k]);
      alive |= !w.finished[k];
    }
    for (int k = 0; k < kLanes; ++k) {
      int from = k + w.distance[k];
      w.received[k] = w.sent[from < kLanes ? from : k];
    }
  }
}

llvm::Error define_emulation(llvm::orc::LLJIT& jit) {
  llvm::orc::SymbolMap symbols;
  auto add = [&](const char* name, auto* function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  add("hlo_emulated_tid", &emulated_tid);
  add("hlo_emulated_ctaid", &emulated_ctaid);
  add("hlo_emulated_shuffle_down", &emulated_shuffle_down);
  return jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols)));
}

// Logical order to the layout's (or back): what a buffer on the GPU holds.
std::vector<char> laid_out(const Shape& s, const char* data, bool back) {
  int width = storage_bytes(s.type);
  std::vector<char> out(static_cast<size_t>(s.elements_count() * width));
  Dims strides(s.dims.size());
  int64_t step = 1;
  for (int64_t d : s.layout.minor_to_major)
    strides[static_cast<size_t>(d)] = step, step *= s.dims[static_cast<size_t>(d)];
  if (back)
    copy_nd(s.dims, data, strides, out.data(), row_major_strides(s.dims), width);
  else
    copy_nd(s.dims, data, row_major_strides(s.dims), out.data(), strides, width);
  return out;
}

// Work below which another thread costs more than it brings.
constexpr int64_t kGrain = 1 << 16;

}  // namespace

struct HostKernels::Impl {
  Impl(const Module& module, Schedule s) : m(module), u(module.u()), schedule(s) {}
  struct Part {
    void* function;
    int64_t count, grain;
    int64_t blocks, threads;  // of the emulated grid
    bool lanes_meet;
  };
  struct Compiled {
    std::vector<Part> parts;
    std::vector<const char*> constants;
    int in_place = -1;
  };
  bool run_emulated(const Compiled& c, ShapeId shape, const std::vector<Value>& operands, Value* result) const;
  const Module& m;
  Universe& u;
  Schedule schedule;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<Compiled> kernels;
  std::unordered_map<InstId, size_t> by_inst;
  std::vector<std::pair<InstId, std::string>> without;
};

HostKernels::HostKernels(const Module& m, Schedule schedule) : impl_(std::make_unique<Impl>(m, schedule)) {
  // Each kind of instruction once.
  struct Pending {
    Kernel kernel;
    size_t chunk;
  };
  std::vector<Pending> pending;
  size_t chunks = static_cast<size_t>(std::max(worker_count(), 1));
  std::vector<std::unique_ptr<llvm::LLVMContext>> contexts;
  std::vector<std::unique_ptr<llvm::Module>> modules;
  std::vector<std::unique_ptr<llvm::TargetMachine>> machines;
  for (size_t k = 0; k < chunks; ++k) {
    contexts.push_back(std::make_unique<llvm::LLVMContext>());
    machines.push_back(host_machine());
    modules.push_back(std::make_unique<llvm::Module>("host", *contexts.back()));
    prepare(*modules.back(), *machines.back());
  }
  for (const std::vector<InstId>& same : distinct_kernels(m)) {
    size_t chunk = pending.size() % chunks;
    try {
      auto build = schedule == Schedule::kHost ? build_host_kernel : build_emulated_kernel;
      Kernel kernel = build(m, same[0], *modules[chunk], fmt::format("k{}", pending.size()));
      for (InstId i : same) impl_->by_inst[i] = pending.size();
      pending.push_back({std::move(kernel), chunk});
    } catch (const Failure& e) {
      if (e.kind() != FailureKind::kUnsupported) throw;
      impl_->without.push_back({same[0], e.what()});
    }
  }
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects(chunks);
  parallel_for(static_cast<int64_t>(chunks), [&](int64_t k) {
    auto c = static_cast<size_t>(k);
    if (modules[c]->empty()) return;
    check_ir(*modules[c]);
    optimise(*modules[c], *machines[c]);
    objects[c] = object_code(*modules[c], *machines[c]);
    modules[c].reset();
  });
  // Vectors of exp, log … lie in a library of their own.
  static void* mvec = ::dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);
  (void)mvec;
  impl_->jit = checked(llvm::orc::LLJITBuilder().create(), "the JIT");
  char prefix = impl_->jit->getDataLayout().getGlobalPrefix();
  impl_->jit->getMainJITDylib().addGenerator(
      checked(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(prefix), "symbols of this process"));
  if (schedule == Schedule::kEmulatedGpu) checked(define_emulation(*impl_->jit), "the emulated GPU");
  for (auto& o : objects)
    if (o) checked(impl_->jit->addObjectFile(std::move(o)), "a kernel's object code");
  for (const Pending& p : pending) {
    Impl::Compiled c;
    c.in_place = p.kernel.in_place;
    for (LitId lit : p.kernel.constants) c.constants.push_back(m.u()[lit].bytes.data());
    for (const KernelPart& part : p.kernel.parts) {
      auto address = checked(impl_->jit->lookup(part.function), "a kernel");
      c.parts.push_back({address.toPtr<void*>(), part.count,
                         std::max<int64_t>(kGrain / std::max<int64_t>(part.work, 1), 1), part.blocks, part.threads,
                         part.schedule == "row reduction"});
    }
    impl_->kernels.push_back(std::move(c));
  }
}

HostKernels::~HostKernels() = default;

bool HostKernels::Impl::run_emulated(const Compiled& c, ShapeId shape, const std::vector<Value>& operands,
                                     Value* result) const {
  auto other = [&](ShapeId id) { return u[id].has_layout && !is_default_layout(u[id].layout) && u[id].rank() > 0; };
  std::vector<std::vector<char>> kept;
  std::vector<char*> in;
  for (const Value& v : operands) {
    in.push_back(v.data->data());
    if (!other(v.shape)) continue;
    kept.push_back(laid_out(u[v.shape], v.bytes(), false));
    in.back() = kept.back().data();
  }
  for (const char* p : c.constants) in.push_back(const_cast<char*>(p));
  Value out = empty_value(u, shape);
  std::vector<Value*> leaves;
  if (u[shape].is_tuple())
    for (Value& e : out.elements) leaves.push_back(&e);
  else
    leaves.push_back(&out);
  for (size_t k = 0; k < c.parts.size(); ++k) {
    const Part& p = c.parts[k];
    if (p.count == 0) continue;
    in.push_back(leaves[k]->data->data());
    auto function = reinterpret_cast<void (*)(char* const*)>(p.function);
    std::unique_ptr<Warp> lanes = p.lanes_meet ? std::make_unique<Warp>() : nullptr;
    for (int64_t b = 0; b < p.blocks; ++b) {
      block_number = static_cast<int32_t>(b);
      for (int64_t t = 0; t < p.threads; t += p.lanes_meet ? kLanes : 1) {
        thread_number = static_cast<int32_t>(t);
        if (!p.lanes_meet) {
          function(in.data());
          continue;
        }
        lanes->function = function, lanes->pointers = in.data();
        warp = lanes.get();
        run_warp(*lanes);
        warp = nullptr;
      }
    }
    in.pop_back();
    if (other(leaves[k]->shape)) *leaves[k]->data = laid_out(u[leaves[k]->shape], leaves[k]->bytes(), true);
  }
  *result = std::move(out);
  return true;
}

size_t HostKernels::compiled() const { return impl_->by_inst.size(); }
size_t HostKernels::kernels() const { return impl_->kernels.size(); }
const std::vector<std::pair<InstId, std::string>>& HostKernels::without_code() const { return impl_->without; }

bool HostKernels::run(InstId inst, std::vector<Value>& operands, Value* result) const {
  auto at = impl_->by_inst.find(inst);
  if (at == impl_->by_inst.end()) return false;
  for (const Value& v : operands)
    if (!v.sizes.empty()) return false;  // dynamic sizes at run time
  const Impl::Compiled& c = impl_->kernels[at->second];
  const Universe& u = impl_->u;
  ShapeId shape = impl_->m.shape_id(inst);
  if (impl_->schedule == Schedule::kEmulatedGpu) return impl_->run_emulated(c, shape, operands, result);
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
    pass->run(*copy, context);
    copy->cleanup();
  }
  return copy;
}

namespace {

Execution run_compiled(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                       const EvalOptions& options, HostKernels::Schedule schedule) {
  Execution out;
  auto start = std::chrono::steady_clock::now();
  // Whoever watches values wants those of the module as it is.
  std::unique_ptr<Module> fused = options.trace ? m.clone() : fused_for_host(m);
  HostKernels kernels(*fused, schedule);
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
  for (const auto& [inst, why] : kernels.without_code()) out.notes.push_back(why);
  return out;
}

}  // namespace

Execution run_host(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options) {
  return run_compiled(m, arguments, repeat, options, HostKernels::Schedule::kHost);
}

Execution run_emulated(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                       const EvalOptions& options) {
  return run_compiled(m, arguments, repeat, options, HostKernels::Schedule::kEmulatedGpu);
}

}  // namespace hlo
