#include "gpu_exec/emit/codegen.h"

#include <fmt/format.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Linker/Linker.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>

#include "ir/base/check.h"

namespace hlo {
namespace {

void initialise() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine> machine_for(const std::string& triple, const std::string& cpu,
                                                 const std::string& features) {
  initialise();
  std::string why;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, why);
  if (!target) fail(FailureKind::kUnsupported, "LLVM has no target {}: {}", triple, why);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  if (!machine) fail(FailureKind::kUnsupported, "LLVM makes no code for {}", triple);
  return machine;
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> host_machine() {
  std::string features;
  for (const auto& [name, on] : llvm::sys::getHostCPUFeatures())
    features += (features.empty() ? "" : ",") + std::string(on ? "+" : "-") + name.str();
  return machine_for(llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(), features);
}

std::unique_ptr<llvm::TargetMachine> nvptx_machine(const std::string& sm, int ptx) {
  return machine_for("nvptx64-nvidia-cuda", sm, fmt::format("+ptx{}", ptx));
}

void prepare(llvm::Module& m, llvm::TargetMachine& machine) {
  m.setTargetTriple(machine.getTargetTriple().str());
  m.setDataLayout(machine.createDataLayout());
}

void optimise(llvm::Module& m, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = tuning.LoopUnrolling = true;
  llvm::PassBuilder builder(&machine, tuning);
  const llvm::Triple& triple = machine.getTargetTriple();
  llvm::TargetLibraryInfoImpl library(triple);
  if (triple.isX86()) library.addVectorizableFunctionsFromVecLib(llvm::TargetLibraryInfoImpl::LIBMVEC_X86, triple);
  if (triple.isNVPTX()) library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(m, modules);
}

namespace {

llvm::SmallVector<char, 0> emitted(llvm::Module& m, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    fail(FailureKind::kUnsupported, "LLVM cannot emit such a file");
  passes.run(m);
  return bytes;
}

}  // namespace

std::unique_ptr<llvm::MemoryBuffer> object_code(llvm::Module& m, llvm::TargetMachine& machine) {
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(emitted(m, machine, llvm::CodeGenFileType::ObjectFile), false);
}

std::string assembly(llvm::Module& m, llvm::TargetMachine& machine) {
  auto bytes = emitted(m, machine, llvm::CodeGenFileType::AssemblyFile);
  return {bytes.begin(), bytes.end()};
}

std::string ir_text(const llvm::Module& m) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  m.print(stream, nullptr);
  return out;
}

std::unique_ptr<llvm::Module> parsed_ir(const std::string& text, const std::string& file, llvm::LLVMContext& context) {
  llvm::SMDiagnostic why;
  auto m = llvm::parseIR(llvm::MemoryBufferRef(text, file), why, context);
  if (!m)
    fail(FailureKind::kSyntax, "{}:{}:{}: error: {}", file, why.getLineNo(), why.getColumnNo() + 1,
         why.getMessage().str());
  return m;
}

void check_ir(const llvm::Module& m) {
  std::string why;
  llvm::raw_string_ostream stream(why);
  if (llvm::verifyModule(m, &stream)) fail(FailureKind::kInternal, "malformed LLVM IR: {}", why.substr(0, 2000));
}

std::string libdevice_path() {
  if (const char* said = std::getenv("HLO_LIBDEVICE")) return said;
  std::error_code ignored;
  for (const char* root : {"/usr/local/cuda", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"}) {
    std::string path = std::string(root) + "/nvvm/libdevice/libdevice.10.bc";
    if (std::filesystem::exists(path, ignored)) return path;
    path = std::string(root) + "/libdevice/libdevice.10.bc";
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

void link_libdevice(llvm::Module& m) {
  std::string wanted;
  std::set<std::string> kernels;
  for (const llvm::Function& f : m) {
    if (!f.isDeclaration())
      kernels.insert(f.getName().str());
    else if (f.getName().starts_with("__nv_"))
      wanted += (wanted.empty() ? "" : ", ") + f.getName().str();
  }
  if (wanted.empty()) return;
  std::string path = libdevice_path();
  if (path.empty())
    fail(FailureKind::kUnsupported, "no libdevice.10.bc (of the CUDA toolkit) found, which has {}", wanted);
  llvm::SMDiagnostic why;
  std::unique_ptr<llvm::Module> library = llvm::parseIRFile(path, why, m.getContext());
  if (!library) fail(FailureKind::kIo, "cannot read {}: {}", path, why.getMessage().str());
  library->setTargetTriple(m.getTargetTriple());
  library->setDataLayout(m.getDataLayout());
  if (llvm::Linker::linkModules(m, std::move(library), llvm::Linker::LinkOnlyNeeded))
    fail(FailureKind::kInternal, "libdevice does not link");
  llvm::internalizeModule(m, [&](const llvm::GlobalValue& v) { return kernels.contains(v.getName().str()); });
  // Denormals stay, divisions and roots are rounded rightly.
  m.addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", uint32_t{0});
}

}  // namespace hlo
