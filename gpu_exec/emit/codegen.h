// LLVM at work: modules of IR optimised and turned into machine code or PTX.
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

namespace hlo {

// This machine's processor, with all it can do. Throws Failure(kUnsupported) where LLVM has no code for it.
std::unique_ptr<llvm::TargetMachine> host_machine();
// sm: "sm_90a" …; PTX 8.5 knows every card up to that, older drivers take older ones.
std::unique_ptr<llvm::TargetMachine> nvptx_machine(const std::string& sm, int ptx = 85);

// Data layout and triple of the machine.
void prepare(llvm::Module& m, llvm::TargetMachine& machine);
// The optimiser's default pipeline of level 2; on the host, calls of exp, log … become libmvec's where loops vectorise.
void optimise(llvm::Module& m, llvm::TargetMachine& machine);
std::unique_ptr<llvm::MemoryBuffer> object_code(llvm::Module& m, llvm::TargetMachine& machine);
std::string assembly(llvm::Module& m, llvm::TargetMachine& machine);
std::string ir_text(const llvm::Module& m);
// Throws Failure(kSyntax) with LLVM's words and the place in `file`.
std::unique_ptr<llvm::Module> parsed_ir(const std::string& text, const std::string& file, llvm::LLVMContext& context);
// Throws Failure(kInternal) with LLVM's words where the module is malformed.
void check_ir(const llvm::Module& m);

// Where libdevice lies (CUDA's bitcode of math functions); empty: nowhere. `HLO_LIBDEVICE` names another file.
std::string libdevice_path();
// Math functions that the module calls, from libdevice. Throws Failure(kUnsupported) naming them where there is none.
void link_libdevice(llvm::Module& m);

}  // namespace hlo
