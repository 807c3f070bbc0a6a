#include "gpu_exec/devices/jit.h"

#include <dlfcn.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>

#include <algorithm>

#include "gpu_exec/driver/kernel_cache.h"
#include "gpu_exec/emit/codegen.h"
#include "ir/base/check.h"
#include "ir/base/parallel.h"

namespace hlo {
namespace {

template <class T>
T checked(llvm::Expected<T> value, const char* what) {
  if (!value) fail(FailureKind::kInternal, "{}: {}", what, llvm::toString(value.takeError()));
  return std::move(*value);
}
void checked(llvm::Error error, const char* what) {
  if (error) fail(FailureKind::kInternal, "{}: {}", what, llvm::toString(std::move(error)));
}

}  // namespace

struct JitModules::Part {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::TargetMachine> machine = host_machine();
  std::unique_ptr<llvm::Module> module;
};

JitModules::JitModules() {
  parts_.resize(static_cast<size_t>(std::max(worker_count(), 1)));
  for (Part& p : parts_) {
    p.module = std::make_unique<llvm::Module>("host", *p.context);
    prepare(*p.module, *p.machine);
  }
}
JitModules::~JitModules() = default;

std::vector<Kernel> JitModules::build(const Module& m, const std::vector<std::vector<InstId>>& kinds, Build build,
                                      std::vector<std::pair<size_t, std::string>>* without) {
  std::vector<Kernel> out;
  for (const std::vector<InstId>& same : kinds) {
    try {
      out.push_back(build(m, same[0], *parts_[out.size() % parts_.size()].module, fmt::format("k{}", out.size())));
    } catch (const Failure& e) {
      if (e.kind() != FailureKind::kUnsupported) throw;
      without->push_back({out.size(), e.what()});
      out.push_back({.inst = same[0], .parts = {}, .constants = {}, .in_place_operands = {}});
    }
  }
  return out;
}

std::unique_ptr<llvm::orc::LLJIT> JitModules::finish(const std::function<llvm::Error(llvm::orc::LLJIT&)>& define) {
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects(parts_.size());
  parallel_for(static_cast<int64_t>(parts_.size()), [&](int64_t k) {
    Part& p = parts_[static_cast<size_t>(k)];
    if (p.module->empty()) return;
    check_ir(*p.module);
    std::string target = fmt::format("{} {} {}", p.machine->getTargetTriple().str(), p.machine->getTargetCPU().str(),
                                     p.machine->getTargetFeatureString().str());
    std::string code = cached_code(ir_text(*p.module), target, [&] {
      optimise(*p.module, *p.machine);
      return object_code(*p.module, *p.machine)->getBuffer().str();
    });
    objects[static_cast<size_t>(k)] = llvm::MemoryBuffer::getMemBufferCopy(code);
    p.module.reset();
  });
  // Vectors of exp, log … lie in a library of their own.
  static void* mvec = ::dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);
  (void)mvec;
  auto jit = checked(llvm::orc::LLJITBuilder().create(), "the JIT");
  char prefix = jit->getDataLayout().getGlobalPrefix();
  jit->getMainJITDylib().addGenerator(
      checked(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(prefix), "symbols of this process"));
  if (define) checked(define(*jit), "symbols of the emulated GPU");
  for (auto& o : objects)
    if (o) checked(jit->addObjectFile(std::move(o)), "a kernel's object code");
  return jit;
}

void* jit_function(llvm::orc::LLJIT& jit, const std::string& name) {
  return checked(jit.lookup(name), "a kernel").toPtr<void*>();
}

}  // namespace hlo
