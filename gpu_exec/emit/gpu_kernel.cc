// Which schedule a kernel gets, and the plainest: a loop over elements.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "gpu_exec/emit/gpu_kernel_builder.h"
#include "ir/base/check.h"

namespace hlo {

Kernel GpuBuilder::build() {
  try {
    schedules();
    check_blocks();
  } catch (...) {
    take_back();
    throw;
  }
  return std::move(kernel_);
}

void GpuBuilder::schedules() {
  if (m_.op(root()) == Opcode::Sort) return sort();
  if (m_.op(root()) == Opcode::Scatter) return scatter();
  if (in_place()) return;
  if (std::optional<RowFusion> rows = row_fusion(m_, inst_); rows && rows->length >= kWarp)
    return row_fusion_kernel(*rows);
  for (const std::vector<size_t>& g : groups()) {
    if (reduces_alike(g)) {
      if (int64_t n = row_length(outputs_[g[0]].inst); n >= 64) {
        row_reduction(g, n);
        continue;
      }
      if (column_reduction(g)) continue;
    }
    if (g.size() == 1 && transpose(g[0])) continue;
    loop(g);
  }
}

std::vector<std::vector<size_t>> GpuBuilder::groups() const {
  std::vector<std::vector<size_t>> out;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Shape& s = u_[outputs_[k].shape];
    auto alike = [&](const std::vector<size_t>& g) {
      const Shape& other = u_[outputs_[g[0]].shape];
      if (other.dims != s.dims || major_first(other) != major_first(s)) return false;
      std::vector<size_t> with = g;
      with.push_back(k);
      bool any = false;
      for (size_t o : with) any |= m_.op(outputs_[o].inst) == Opcode::Reduce;
      return !any || reduces_alike(with);
    };
    auto at = std::find_if(out.begin(), out.end(), alike);
    if (at == out.end())
      out.push_back({k});
    else
      at->push_back(k);
  }
  return out;
}

bool GpuBuilder::reduces_alike(const std::vector<size_t>& group) const {
  InstId lead = outputs_[group[0]].inst;
  if (m_.op(lead) != Opcode::Reduce) return false;
  for (size_t k : group) {
    InstId i = outputs_[k].inst;
    if (m_.op(i) != Opcode::Reduce || m_.attrs(i).ints(Attr::dimensions) != m_.attrs(lead).ints(Attr::dimensions))
      return false;
    const Shape &a = m_.shape(m_.operand(i, 0)), &b = m_.shape(m_.operand(lead, 0));
    if (a.dims != b.dims || major_first(a) != major_first(b)) return false;
  }
  return true;
}

Value* GpuBuilder::special(llvm::Intrinsic::ID id, const char* emulated) {
  if (!options_.emulated) return b_.CreateIntrinsic(id, {}, {});
  return b_.CreateCall(into_.getOrInsertFunction(emulated, b_.getInt32Ty()));
}

void GpuBuilder::function(KernelPart part, const std::vector<size_t>& results, size_t numbers,
                          const std::function<void(Code&)>& body) {
  count_constants();
  llvm::LLVMContext& c = into_.getContext();
  bool emulated = options_.emulated;
  llvm::Type *global = llvm::PointerType::get(c, emulated ? 0 : 1), *i32 = b_.getInt32Ty();
  size_t inputs = operands_.size() + kernel_.constants.size(), pointers = inputs + results.size();
  std::vector<llvm::Type*> types(emulated ? 1 : pointers, global);
  if (!emulated) types.insert(types.end(), numbers, i32);
  part.function = kernel_.parts.empty() ? name_ : fmt::format("{}_{}", name_, kernel_.parts.size());
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                   llvm::Function::ExternalLinkage, part.function, into_);
  made_.push_back(f);
  b_.SetInsertPoint(llvm::BasicBlock::Create(c, "entry", f));
  std::vector<Value*> args, more;
  if (emulated) {
    for (size_t k = 0; k < pointers; ++k)
      args.push_back(b_.CreateLoad(global, b_.CreateConstInBoundsGEP1_64(global, f->getArg(0), k)));
    if (numbers) {
      Value* list = b_.CreateLoad(global, b_.CreateConstInBoundsGEP1_64(global, f->getArg(0), pointers));
      for (size_t k = 0; k < numbers; ++k)
        more.push_back(b_.CreateLoad(i32, b_.CreateConstInBoundsGEP1_64(i32, list, k)));
    }
  } else {
    f->setCallingConv(llvm::CallingConv::PTX_Kernel);
    // What is changed in place is read through the same pointer; nothing else overlaps. Buffers begin at multiples
    // of 256 bytes, XLA's slices at those of 128.
    for (size_t k = 0; k < pointers; ++k) {
      f->addParamAttr(static_cast<unsigned>(k), llvm::Attribute::NoAlias);
      f->addParamAttr(static_cast<unsigned>(k), llvm::Attribute::getWithAlignment(c, llvm::Align(16)));
    }
    for (size_t k = 0; k < pointers; ++k) args.push_back(f->getArg(static_cast<unsigned>(k)));
    for (size_t k = 0; k < numbers; ++k) more.push_back(f->getArg(static_cast<unsigned>(pointers + k)));
  }
  std::vector<Value*> constants(args.begin() + static_cast<ptrdiff_t>(operands_.size()),
                                args.begin() + static_cast<ptrdiff_t>(inputs));
  ElementEmitter e = emitter(&constants);
  std::vector<const Buffer*> out;
  for (size_t k = 0; k < results.size(); ++k)
    out.push_back(e.add_buffer({args[inputs + k], outputs_[results[k]].shape, nullptr, nullptr}));
  auto number = [&](llvm::Intrinsic::ID id, const char* name) {
    return b_.CreateZExtOrTrunc(special(id, name), e.index_type());
  };
  Value* block = number(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, "hlo_emulated_ctaid");
  Value* thread = number(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, "hlo_emulated_tid");
  Code code{e, f, frame(e, args, nullptr), std::move(out), block, thread, std::move(more)};
  body(code);
  b_.CreateRetVoid();
  part.results = results;
  if (!emulated) {
    llvm::Metadata* bound[] = {llvm::ValueAsMetadata::get(f), llvm::MDString::get(c, "maxntidx"),
                               llvm::ConstantAsMetadata::get(b_.getInt32(static_cast<uint32_t>(part.threads)))};
    llvm::Metadata* kernel[] = {llvm::ValueAsMetadata::get(f), llvm::MDString::get(c, "kernel"),
                                llvm::ConstantAsMetadata::get(b_.getInt32(1))};
    into_.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(c, kernel));
    into_.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(c, bound));
  }
  kernel_.parts.push_back(std::move(part));
}

Value* GpuBuilder::shared(llvm::Type* element, int64_t n, const std::string& name) {
  auto* type = llvm::ArrayType::get(element, static_cast<uint64_t>(n));
  std::string full = fmt::format("{}_{}_{}", name_, kernel_.parts.size(), name);
  auto* v =
      new llvm::GlobalVariable(into_, type, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type),
                               full, nullptr, llvm::GlobalValue::NotThreadLocal, options_.emulated ? 0 : 3);
  v->setAlignment(llvm::Align(16));
  return v;
}

void GpuBuilder::barrier() {
  if (options_.emulated)
    b_.CreateCall(into_.getOrInsertFunction("hlo_emulated_barrier", b_.getVoidTy()));
  else
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

void GpuBuilder::when(Code& c, Value* condition, const std::function<void()>& body) {
  llvm::LLVMContext& context = into_.getContext();
  auto* inside = llvm::BasicBlock::Create(context, "inside", c.f);
  auto* end = llvm::BasicBlock::Create(context, "end", c.f);
  b_.CreateCondBr(condition, inside, end);
  b_.SetInsertPoint(inside);
  c.e.scoped(body);
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
}

const ElementIndex* GpuBuilder::physical_index(ElementEmitter& e, ShapeId id, Value* at) {
  const Shape& s = u_[id];
  if (s.rank() == 0) return e.index_of(id, {});
  if (!s.has_layout || is_default_layout(s.layout)) return e.index_of_linear(id, at);
  Dims major = major_first(s);
  std::vector<Value*> dims(s.dims.size()), parts = e.delinearized(sizes_of(s, major), at);
  for (size_t k = 0; k < major.size(); ++k) dims[static_cast<size_t>(major[k])] = parts[k];
  return e.index_of(id, std::move(dims));
}

const ElementIndex* GpuBuilder::of_shape(ElementEmitter& e, const ElementIndex* at, ShapeId id) {
  if (at->shape == id) return at;
  return at->linear && at->dims.empty() ? e.index_of_linear(id, at->linear) : e.index_of(id, at->dims);
}

int64_t GpuBuilder::unrolled(const std::vector<size_t>& group) const {
  const Shape& s = u_[outputs_[group[0]].shape];
  if (s.rank() == 0) return 1;
  if (s.has_layout && !is_default_layout(s.layout)) return 1;
  bool is_flat = m_.op(inst_) == Opcode::Fusion ? ElementEmitter::flat(m_, m_.called(inst_)[0], s)
                                                : op_info(m_.op(inst_)).elementwise;
  if (!is_flat) return 1;
  int64_t widest = 1;
  for (size_t k : group) widest = std::max<int64_t>(widest, storage_bytes(u_[outputs_[k].shape].type));
  int64_t n = s.elements_count(), by = std::max<int64_t>(16 / widest, 1);
  by = std::min<int64_t>(by, 4);
  // Enough threads are worth more than wide accesses.
  while (by > 1 && (n % by || n / by < 4096)) by /= 2;
  return by;
}

void GpuBuilder::loop(const std::vector<size_t>& group) {
  const Shape& s = u_[outputs_[group[0]].shape];
  constexpr int64_t kThreads = 128;
  int64_t n = s.elements_count(), each = unrolled(group), tasks = n / each;
  KernelPart part;
  part.schedule = "loop", part.count = n;
  part.threads = std::clamp<int64_t>((tasks + kWarp - 1) / kWarp * kWarp, kWarp, kThreads);
  part.blocks = std::max<int64_t>((tasks + part.threads - 1) / part.threads, 1);
  int64_t threads = part.threads;
  function(std::move(part), group, 0, [&](Code& c) {
    ElementEmitter& e = c.e;
    const Frame* f = e.add_frame(c.frame);
    Value* task = b_.CreateNUWAdd(b_.CreateNUWMul(c.block, e.number(threads)), c.thread);
    when(c, b_.CreateICmpULT(task, e.number(tasks)), [&] {
      Value* first = b_.CreateMul(task, e.number(each), "", true, true);
      std::vector<std::pair<const ElementIndex*, Value*>> values;
      for (int64_t x = 0; x < each; ++x) {
        Value* at = x ? b_.CreateAdd(first, e.number(x), "", true, true) : first;
        const ElementIndex* index = physical_index(e, outputs_[group[0]].shape, at);
        for (size_t k : group) {
          const KernelOutput& o = outputs_[k];
          const ElementIndex* own = of_shape(e, index, o.shape);
          values.push_back({own, e.element(*f, o.inst, own, o.part)});
        }
      }
      for (size_t k = 0; k < group.size(); ++k)
        for (size_t x = 0; x < static_cast<size_t>(each); ++x) {
          auto& [index, value] = values[x * group.size() + k];
          e.store(*c.results[k], index, value);
        }
    });
  });
}

Kernel build_gpu_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name) {
  EmitOptions o;
  o.addressing = Addressing::kPhysical, o.gpu = true;
  // Offsets of less than 2^31 elements everywhere fit 32 bits.
  bool small = true;
  auto look = [&](InstId i) {
    if (m.shape(i).is_array()) small = small && m.shape(i).elements_count() < (int64_t{1} << 31) - 4096;
  };
  look(inst);
  for (InstId i : m.operands(inst)) look(i);
  for (CompId c : m.called(inst))
    for (InstId i : m.post_order(c)) look(i);
  o.index_bits = small ? 32 : 64;
  return GpuBuilder(m, inst, into, name, o).build();
}

Kernel build_emulated_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name) {
  EmitOptions o;
  o.addressing = Addressing::kPhysical, o.emulated = true;
  return GpuBuilder(m, inst, into, name, o).build();
}

}  // namespace hlo
