// What the host's and the GPU's kernel builders share: the instruction, its outputs, and the emitter bound to pointers.
#pragma once
#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpu_exec/emit/element_emitter.h"
#include "gpu_exec/emit/kernel.h"
#include "ir/base/check.h"

namespace hlo {

// What a kernel computes: the instruction itself, or the roots of its fused computation; of a reduction of several
// values each part. One a leaf of the result, in the order of ir/leaves.h.
struct KernelOutput {
  InstId inst;
  int part = 0;
  ShapeId shape;
};
// Throws Failure(kUnsupported) where a tuple is made in a way that no kernel knows.
std::vector<KernelOutput> kernel_outputs(const Module& m, InstId inst);

class KernelBuilder {
 public:
  KernelBuilder(const Module& m, InstId inst, llvm::Module& into, const std::string& name, EmitOptions options)
      : m_(m), u_(m.u()), inst_(inst), into_(into), name_(name), options_(options), b_(into.getContext()) {
    kernel_.inst = inst;
    for (InstId o : m.operands(inst)) operands_.push_back(o);
    outputs_ = kernel_outputs(m, inst);
  }

 protected:
  ElementEmitter emitter(std::vector<llvm::Value*>* constants);
  // Arrays that the code may want by pointer; found before the function's signature is made.
  void count_constants();
  // A constant operand of a single instruction is part of its code.
  bool by_pointer(InstId operand) const { return m_.op(inst_) == Opcode::Fusion || m_.op(operand) != Opcode::Constant; }
  // The fused computation's parameters, or the instruction's operands, as pointers.
  ElementEmitter::Frame frame(ElementEmitter& e, const std::vector<llvm::Value*>& pointers, llvm::MDNode* results);
  // The code generator's time grows with the square of a block: what is too long is run part by part.
  void check_blocks() const {
    constexpr size_t kMost = 12'000;
    for (const llvm::Function* f : made_)
      for (const llvm::BasicBlock& block : *f)
        if (block.size() > kMost)
          fail(FailureKind::kUnsupported, "no kernel for {}: {} operations without a branch", m_.inst_name(inst_),
               block.size());
  }
  // What was begun goes, what refers to one another first.
  void take_back() {
    for (llvm::Function* f : made_) f->deleteBody();
    for (llvm::Function* f : made_) f->eraseFromParent();
  }
  static Dims sizes_of(const Shape& s, const Dims& which) {
    Dims out;
    for (int64_t d : which) out.push_back(s.dims[static_cast<size_t>(d)]);
    return out;
  }
  InstId root() const { return m_.op(inst_) == Opcode::Fusion ? m_.comp(m_.called(inst_)[0]).root : inst_; }

  const Module& m_;
  Universe& u_;
  InstId inst_;
  llvm::Module& into_;
  std::string name_;
  EmitOptions options_;
  llvm::IRBuilder<> b_;
  Kernel kernel_;
  std::vector<KernelOutput> outputs_;
  std::vector<InstId> operands_;
  std::vector<llvm::Function*> made_;

 private:
  void count(InstId i);
  bool counted_ = false;
};

}  // namespace hlo
