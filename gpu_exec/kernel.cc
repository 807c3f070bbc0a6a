#include "gpu_exec/kernel.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <unordered_map>

#include "gpu_exec/element_emitter.h"
#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/fingerprint.h"

namespace hlo {
namespace {

using llvm::Value;

constexpr int64_t kColumnTile = 16;  // outputs side by side whose sums stay in registers

bool contains(const Dims& list, int64_t x) { return std::find(list.begin(), list.end(), x) != list.end(); }

// What a kernel computes: the instruction itself, or the roots of its fused computation.
struct Outputs {
  struct One {
    InstId inst;
    int part = 0;
    ShapeId shape;
  };
  std::vector<One> list;
};

Outputs outputs_of(const Module& m, InstId inst) {
  Outputs out;
  auto add = [&](InstId i) {
    if (!m.shape(i).is_tuple()) {
      out.list.push_back({i, 0, m.shape_id(i)});
      return;
    }
    const auto& parts = m.shape(i).elements;
    if (m.op(i) != Opcode::Reduce)
      fail(FailureKind::kUnsupported, "no kernel for {}: a tuple that {} makes", m.inst_name(i), op_text(m.op(i)));
    for (size_t k = 0; k < parts.size(); ++k) out.list.push_back({i, static_cast<int>(k), parts[k]});
  };
  InstId root = m.op(inst) == Opcode::Fusion ? m.comp(m.called(inst)[0]).root : inst;
  if (m.op(root) == Opcode::Tuple && root != inst) {
    for (InstId o : m.operands(root)) add(o);
  } else {
    add(root);
  }
  return out;
}

class Builder {
 public:
  Builder(const Module& m, InstId inst, llvm::Module& into, const std::string& name, EmitOptions options)
      : m_(m), u_(m.u()), inst_(inst), into_(into), name_(name), options_(options), b_(into.getContext()) {
    kernel_.inst = inst;
    for (InstId o : m.operands(inst)) operands_.push_back(o);
    outputs_ = outputs_of(m, inst);
  }

  Kernel host() {
    // A group of outputs of the same dimensions shares its loops.
    std::vector<std::vector<size_t>> groups;
    for (size_t k = 0; k < outputs_.list.size(); ++k) {
      const Dims& dims = u_[outputs_.list[k].shape].dims;
      auto at = std::find_if(groups.begin(), groups.end(),
                             [&](const auto& g) { return u_[outputs_.list[g[0]].shape].dims == dims; });
      if (at == groups.end())
        groups.push_back({k});
      else
        at->push_back(k);
    }
    try {
      for (const auto& g : groups) {
        InstId lead = outputs_.list[g[0]].inst;
        // Parts that lie side by side are written one by one: no branch an element.
        if (g.size() == 1 && m_.op(lead) == Opcode::Concatenate)
          for (size_t k = 0; k < m_.operand_count(lead); ++k) host_part(g, static_cast<int>(k));
        else
          host_part(g, -1);
      }
    } catch (...) {
      // What refers to one another goes first.
      for (llvm::Function* f : made_) f->deleteBody();
      for (llvm::Function* f : made_) f->eraseFromParent();
      throw;
    }
    return std::move(kernel_);
  }

  Kernel gpu() {
    try {
      for (size_t k = 0; k < outputs_.list.size(); ++k) gpu_part(k);
    } catch (...) {
      for (llvm::Function* f : made_) f->deleteBody();
      for (llvm::Function* f : made_) f->eraseFromParent();
      throw;
    }
    return std::move(kernel_);
  }

 private:
  ElementEmitter emitter(std::vector<Value*>* constants) {
    return ElementEmitter(m_, b_, options_, [this, constants](LitId lit) {
      auto at = std::find(kernel_.constants.begin(), kernel_.constants.end(), lit);
      auto k = static_cast<size_t>(at - kernel_.constants.begin());
      if (at == kernel_.constants.end()) kernel_.constants.push_back(lit);
      HLO_CHECK(k < constants->size(), "more constants than were counted");
      return (*constants)[k];
    });
  }

  // Arrays that the code may want by pointer; found before the function's signature is made.
  void count_constants() {
    if (counted_) return;
    counted_ = true;
    auto visit = [&](auto&& self, CompId c) -> void {
      for (InstId i : m_.post_order(c)) {
        one(i);
        for (CompId callee : m_.called(i)) self(self, callee);
      }
    };
    for (InstId o : operands_)
      if (m_.op(inst_) != Opcode::Fusion) one(o);
    if (m_.op(inst_) == Opcode::Fusion) visit(visit, m_.called(inst_)[0]);
    for (CompId c : m_.called(inst_))
      if (m_.op(inst_) != Opcode::Fusion) visit(visit, c);
  }
  void one(InstId i) {
    if (m_.op(i) != Opcode::Constant || !m_.shape(i).is_array() || m_.shape(i).elements_count() < 2) return;
    if (std::find(kernel_.constants.begin(), kernel_.constants.end(), m_.literal_id(i)) == kernel_.constants.end())
      kernel_.constants.push_back(m_.literal_id(i));
  }

  // A constant operand of a single instruction is part of its code.
  bool by_pointer(InstId operand) const { return m_.op(inst_) == Opcode::Fusion || m_.op(operand) != Opcode::Constant; }

  const ElementEmitter::Frame* frame(ElementEmitter& e, const std::vector<Value*>& pointers, llvm::MDNode* results) {
    ElementEmitter::Frame f;
    for (size_t k = 0; k < operands_.size(); ++k) {
      if (!m_.shape(operands_[k]).is_array())
        fail(FailureKind::kUnsupported, "no kernel for {}: an operand is no array", m_.inst_name(inst_));
      const auto* buffer = e.add_buffer({pointers[k], m_.shape_id(operands_[k]), nullptr, results});
      f.params.push_back({buffer, nullptr, InstId(), nullptr});
      if (m_.op(inst_) != Opcode::Fusion && by_pointer(operands_[k])) f.given[operands_[k]] = buffer;
    }
    return e.add_frame(std::move(f));
  }

  // --- host ---

  // `slab`: of the operand of that number of a root concatenate alone.
  void host_part(const std::vector<size_t>& group, int slab) {
    count_constants();
    llvm::LLVMContext& c = into_.getContext();
    llvm::Type *ptr = llvm::PointerType::get(c, 0), *i64 = b_.getInt64Ty();
    size_t inputs = operands_.size() + kernel_.constants.size();
    std::string name = group[0] || kernel_.parts.size() ? fmt::format("{}.{}", name_, kernel_.parts.size()) : name_;
    auto* function = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, i64, i64}, false),
                                            llvm::Function::ExternalLinkage, name, into_);
    made_.push_back(function);
    function->setDoesNotThrow();
    b_.SetInsertPoint(llvm::BasicBlock::Create(c, "entry", function));
    // Results overlap with nothing: said by scopes, as the pointers come out of arrays.
    llvm::MDBuilder md(c);
    llvm::MDNode* domain = md.createAnonymousAliasScopeDomain(name);
    std::vector<llvm::Metadata*> scopes;
    std::vector<Value*> args;
    for (size_t k = 0; k < inputs; ++k)
      args.push_back(b_.CreateLoad(ptr, b_.CreateConstInBoundsGEP1_64(ptr, function->getArg(0), k)));
    for (size_t k : group) {
      args.push_back(b_.CreateLoad(ptr, b_.CreateConstInBoundsGEP1_64(ptr, function->getArg(1), k)));
      scopes.push_back(md.createAnonymousAliasScope(domain));
    }
    std::vector<Value*> constants(args.begin() + static_cast<ptrdiff_t>(operands_.size()),
                                  args.begin() + static_cast<ptrdiff_t>(inputs));
    ElementEmitter e = emitter(&constants);
    KernelPart part;
    part.function = name;
    llvm::MDNode* all = llvm::MDNode::get(c, scopes);
    std::vector<const ElementEmitter::Buffer*> results;
    for (size_t k = 0; k < group.size(); ++k) {
      std::vector<llvm::Metadata*> rest = scopes;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(k));
      results.push_back(
          e.add_buffer({args[inputs + k], outputs_.list[group[k]].shape, llvm::MDNode::get(c, {scopes[k]}),
                        rest.empty() ? nullptr : llvm::MDNode::get(c, rest)}));
    }
    const ElementEmitter::Frame* f = frame(e, args, all);
    Value *from = function->getArg(2), *to = function->getArg(3);
    if (slab >= 0)
      concatenated(e, *f, group[0], static_cast<size_t>(slab), *results[0], from, to, part);
    else
      schedule(e, *f, group, results, from, to, part);
    b_.CreateRetVoid();
    kernel_.parts.push_back(std::move(part));
  }

  void schedule(ElementEmitter& e, const ElementEmitter::Frame& f, const std::vector<size_t>& group,
                const std::vector<const ElementEmitter::Buffer*>& results, Value* first, Value* last,
                KernelPart& part) {
    const Outputs::One& lead = outputs_.list[group[0]];
    const Shape& shape = u_[lead.shape];
    int64_t n = shape.elements_count();
    if (in_place(e, f, group, results, first, last, part)) return;
    if (columns(e, f, group, results, first, last, part)) return;
    int64_t reduced = 1;
    for (size_t k : group) reduced = std::max(reduced, work_of(outputs_.list[k].inst));
    auto write = [&](const ElementIndex* at) {
      std::vector<Value*> values;
      for (size_t k : group) {
        const Outputs::One& o = outputs_.list[k];
        const ElementIndex* own = o.shape == at->shape             ? at
                                  : at->linear && at->dims.empty() ? e.index_of_linear(o.shape, at->linear)
                                                                   : e.index_of(o.shape, at->dims);
        values.push_back(e.element(f, o.inst, own, o.part));
      }
      for (size_t k = 0; k < group.size(); ++k) e.store(*results[k], at, values[k]);
    };
    bool is_flat = m_.op(inst_) == Opcode::Fusion ? ElementEmitter::flat(m_, m_.called(inst_)[0], shape) : flat_alone();
    if (is_flat || shape.rank() <= 1) {
      part.count = n, part.work = reduced, part.schedule = "flat";
      e.loop(first, last, e.number(1), "element", [&](Value* i) {
        write(shape.rank() == 1   ? e.index_of(lead.shape, {i})
              : shape.rank() == 0 ? e.index_of(lead.shape, {})
                                  : e.index_of_linear(lead.shape, i));
      });
      return;
    }
    int64_t inner = shape.dims.back();
    part.count = inner ? n / inner : 0, part.work = inner * reduced, part.schedule = "rows";
    e.loop(first, last, e.number(1), "row", [&](Value* row) {
      std::vector<Value*> at = rows_of(e, shape, row);
      if (inner == 1) {
        at.back() = e.number(0);
        write(e.index_of(lead.shape, at));
        return;
      }
      e.loop(e.number(0), e.number(inner), e.number(1), "element", [&](Value* j) {
        at.back() = j;
        write(e.index_of(lead.shape, at));
      });
    });
  }

  void concatenated(ElementEmitter& e, const ElementEmitter::Frame& f, size_t which, size_t slab,
                    const ElementEmitter::Buffer& result, Value* first, Value* last, KernelPart& part) {
    InstId root = outputs_.list[which].inst, operand = m_.operand(root, slab);
    auto d = static_cast<size_t>(m_.attrs(root).ints(Attr::dimensions)[0]);
    int64_t start = 0;
    for (size_t k = 0; k < slab; ++k) start += m_.shape(m_.operand(root, k)).dims[d];
    const Shape& s = m_.shape(operand);
    part.schedule = "concatenate", part.work = s.dims.back();
    part.count = s.dims.back() ? s.elements_count() / s.dims.back() : 0;
    e.loop(first, last, e.number(1), "row", [&](Value* row) {
      std::vector<Value*> at = rows_of(e, s, row);
      e.loop(e.number(0), e.number(s.dims.back()), e.number(1), "element", [&](Value* j) {
        at.back() = j;
        Value* v = e.element(f, operand, e.index_of(m_.shape_id(operand), at));
        std::vector<Value*> to = at;
        if (start) to[d] = b_.CreateNSWAdd(to[d], e.number(start));
        e.store(result, e.index_of(outputs_.list[which].shape, std::move(to)), v);
      });
    });
  }

  // The index of the row of that number: all dimensions but the last.
  std::vector<Value*> rows_of(ElementEmitter& e, const Shape& s, Value* row) {
    std::vector<Value*> at = e.delinearized(Dims(s.dims.begin(), s.dims.end() - 1), row);
    at.push_back(nullptr);
    return at;
  }

  bool flat_alone() const {
    Opcode op = m_.op(inst_);
    if (op != Opcode::Copy && !op_info(op).elementwise) return false;
    const Shape& s = m_.shape(inst_);
    return std::all_of(operands_.begin(), operands_.end(),
                       [&](InstId o) { return m_.shape(o).rank() == 0 || m_.shape(o).dims == s.dims; });
  }

  // Elements that are read for one that is written.
  int64_t work_of(InstId i) const {
    int64_t work = 1;
    if (m_.op(i) == Opcode::Reduce) {
      const Shape& in = m_.shape(m_.operand(i, 0));
      int64_t outputs = 1;
      for (int64_t d = 0; d < in.rank(); ++d)
        if (!contains(m_.attrs(i).ints(Attr::dimensions), d)) outputs *= in.dims[static_cast<size_t>(d)];
      work = outputs ? in.elements_count() / outputs : 1;
    }
    return std::max<int64_t>(work, 1);
  }

  // ROOT dynamic-update-slice of a parameter that nothing else reads: only the update is written.
  bool in_place(ElementEmitter& e, const ElementEmitter::Frame& f, const std::vector<size_t>& group,
                const std::vector<const ElementEmitter::Buffer*>& results, Value* first, Value* last,
                KernelPart& part) {
    InstId root = outputs_.list[group[0]].inst;
    if (outputs_.list.size() != 1 || m_.op(root) != Opcode::DynamicUpdateSlice || m_.op(inst_) != Opcode::Fusion)
      return false;
    InstId target = m_.operand(root, 0), update = m_.operand(root, 1);
    if (m_.op(target) != Opcode::Parameter || m_.use_count(target) != 1) return false;
    const Shape &us = m_.shape(update), &os = m_.shape(root);
    if (us.rank() == 0) return false;
    part.schedule = "in place", part.work = us.dims.back(),
    part.count = us.dims.back() ? us.elements_count() / us.dims.back() : 0;
    kernel_.in_place = static_cast<int>(m_.parameter_number(target));
    std::vector<Value*> start(os.dims.size(), e.number(0));
    for (size_t k = 0; k < os.dims.size(); ++k) {
      int64_t most = os.dims[k] - us.dims[k];
      if (most > 0) start[k] = e.clamped_start(f, m_.operand(root, k + 2), most);
    }
    e.loop(first, last, e.number(1), "row", [&](Value* row) {
      std::vector<Value*> at = rows_of(e, us, row);
      e.loop(e.number(0), e.number(us.dims.back()), e.number(1), "element", [&](Value* j) {
        at.back() = j;
        Value* v = e.element(f, update, e.index_of(m_.shape_id(update), at));
        std::vector<Value*> to(at.size());
        for (size_t k = 0; k < at.size(); ++k) to[k] = b_.CreateAdd(at[k], start[k]);
        e.store(*results[0], e.index_of(outputs_.list[0].shape, to), v);
      });
    });
    return true;
  }

  // ROOT reduce that keeps the minor dimension: rows are added up, a tile of columns at a time.
  bool columns(ElementEmitter& e, const ElementEmitter::Frame& f, const std::vector<size_t>& group,
               const std::vector<const ElementEmitter::Buffer*>& results, Value* first, Value* last, KernelPart& part) {
    InstId lead = outputs_.list[group[0]].inst;
    if (m_.op(lead) != Opcode::Reduce) return false;
    const Shape& in = m_.shape(m_.operand(lead, 0));
    const Dims& over = m_.attrs(lead).ints(Attr::dimensions);
    for (size_t k : group) {
      InstId i = outputs_.list[k].inst;
      if (m_.op(i) != Opcode::Reduce || m_.operand_count(i) != 2 || m_.attrs(i).ints(Attr::dimensions) != over ||
          m_.shape(m_.operand(i, 0)).dims != in.dims)
        return false;
    }
    if (in.rank() == 0 || contains(over, in.rank() - 1) || in.dims.back() < kColumnTile || in.elements_count() == 0)
      return false;
    int64_t width = in.dims.back(), tiles = (width + kColumnTile - 1) / kColumnTile, kept = 1, reduced = 1;
    Dims kept_dims;
    for (int64_t d = 0; d + 1 < in.rank(); ++d) {
      int64_t size = in.dims[static_cast<size_t>(d)];
      if (contains(over, d))
        reduced *= size;
      else
        kept *= size, kept_dims.push_back(d);
    }
    if (reduced < 4) return false;
    part.schedule = "columns", part.count = kept * tiles, part.work = reduced * kColumnTile;
    ShapeId out_id = outputs_.list[group[0]].shape;
    std::vector<Value*> sums;
    std::vector<llvm::Type*> types;
    std::vector<bool> wide;
    for (size_t k : group) {
      bool in_f64 = e.sums_in_f64(m_.called(outputs_.list[k].inst)[0]);
      llvm::Type* t = in_f64 ? b_.getDoubleTy() : e.register_type(u_[outputs_.list[k].shape].type);
      types.push_back(t), wide.push_back(in_f64);
      sums.push_back(b_.CreateAlloca(t, b_.getInt64(kColumnTile)));
    }
    e.loop(first, last, e.number(1), "tile", [&](Value* task) {
      Value* tile = b_.CreateURem(task, e.number(tiles));
      std::vector<Value*> at(in.dims.size()),
          outer = e.delinearized(sizes_of(in, kept_dims), b_.CreateUDiv(task, e.number(tiles)));
      for (size_t k = 0; k < kept_dims.size(); ++k) at[static_cast<size_t>(kept_dims[k])] = outer[k];
      Value* from = b_.CreateMul(tile, e.number(kColumnTile));
      // The last tile reaches back, so that all have one length.
      from = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, from, e.number(width - kColumnTile));
      for (size_t k = 0; k < group.size(); ++k) {
        Value* init = nullptr;
        e.scoped([&] {
          InstId init_inst = m_.operand(outputs_.list[group[k]].inst, 1);
          init = e.element(f, init_inst, e.index_of(m_.shape_id(init_inst), {}));
          if (wide[k]) init = e.widened(init);
        });
        e.loop(e.number(0), e.number(kColumnTile), e.number(1), "init",
               [&](Value* j) { b_.CreateStore(init, b_.CreateInBoundsGEP(types[k], sums[k], j)); });
      }
      auto nest = [&](auto&& self, size_t depth) -> void {
        if (depth == over.size()) {
          e.loop(e.number(0), e.number(kColumnTile), e.number(1), "column", [&](Value* j) {
            at.back() = b_.CreateNSWAdd(from, j);
            std::vector<Value*> next;
            const ElementIndex* where = nullptr;
            for (size_t k = 0; k < group.size(); ++k) {
              InstId i = outputs_.list[group[k]].inst, input = m_.operand(i, 0);
              if (!where || where->shape != m_.shape_id(input)) where = e.index_of(m_.shape_id(input), at);
              Value* sum = b_.CreateLoad(types[k], b_.CreateInBoundsGEP(types[k], sums[k], j));
              Value* more = e.element(f, input, where);
              next.push_back(wide[k] ? b_.CreateFAdd(sum, e.widened(more)) : e.apply(m_.called(i)[0], {sum, more})[0]);
            }
            for (size_t k = 0; k < group.size(); ++k)
              b_.CreateStore(next[k], b_.CreateInBoundsGEP(types[k], sums[k], j));
          });
          return;
        }
        auto d = static_cast<size_t>(over[depth]);
        e.loop(e.number(0), e.number(in.dims[d]), e.number(1), "reduce", [&](Value* i) {
          at[d] = i;
          self(self, depth + 1);
        });
      };
      nest(nest, 0);
      for (size_t k = 0; k < group.size(); ++k)
        e.loop(e.number(0), e.number(kColumnTile), e.number(1), "store", [&](Value* j) {
          std::vector<Value*> to;
          for (int64_t d : kept_dims) to.push_back(at[static_cast<size_t>(d)]);
          to.push_back(b_.CreateNSWAdd(from, j));
          Value* sum = b_.CreateLoad(types[k], b_.CreateInBoundsGEP(types[k], sums[k], j));
          if (wide[k]) sum = e.summed(u_[outputs_.list[group[k]].shape].type, sum);
          e.store(*results[k], e.index_of(out_id, std::move(to)), sum);
        });
    });
    return true;
  }

  // --- GPU ---

  Value* special(llvm::Intrinsic::ID id, const char* emulated) {
    if (!options_.emulated) return b_.CreateIntrinsic(id, {}, {});
    return b_.CreateCall(into_.getOrInsertFunction(emulated, b_.getInt32Ty()));
  }

  void gpu_part(size_t which) {
    count_constants();
    llvm::LLVMContext& c = into_.getContext();
    bool emulated = options_.emulated;
    llvm::Type* global = llvm::PointerType::get(c, emulated ? 0 : 1);
    const Outputs::One& out = outputs_.list[which];
    const Shape& shape = u_[out.shape];
    int64_t n = shape.elements_count();
    size_t inputs = operands_.size() + kernel_.constants.size();
    std::vector<llvm::Type*> types(emulated ? 1 : inputs + 1, global);
    std::string name = outputs_.list.size() > 1 ? fmt::format("{}_{}", name_, which) : name_;
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, name, into_);
    made_.push_back(f);
    b_.SetInsertPoint(llvm::BasicBlock::Create(c, "entry", f));
    std::vector<Value*> args;
    if (emulated) {
      for (size_t k = 0; k <= inputs; ++k)
        args.push_back(b_.CreateLoad(global, b_.CreateConstInBoundsGEP1_64(global, f->getArg(0), k)));
    } else {
      f->setCallingConv(llvm::CallingConv::PTX_Kernel);
      for (size_t k = 0; k <= inputs; ++k) f->addParamAttr(static_cast<unsigned>(k), llvm::Attribute::NoAlias);
      for (llvm::Argument& a : f->args()) args.push_back(&a);
    }
    std::vector<Value*> constants(args.begin() + static_cast<ptrdiff_t>(operands_.size()),
                                  args.begin() + static_cast<ptrdiff_t>(inputs));
    ElementEmitter e = emitter(&constants);
    const auto* result = e.add_buffer({args[inputs], out.shape, nullptr, nullptr});
    const ElementEmitter::Frame* frame_of = frame(e, args, nullptr);
    Value* block = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, "hlo_emulated_ctaid");
    Value* thread = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, "hlo_emulated_tid");
    KernelPart part;
    part.function = name;
    auto widen = [&](Value* v) { return b_.CreateZExtOrTrunc(v, e.index_type()); };
    if (int64_t row = warp_row(out.inst); row >= 64 && out.part == 0) {
      // A warp an output: its lanes read side by side.
      constexpr int64_t kWarps = 4;
      part.schedule = "row reduction", part.threads = 32 * kWarps, part.blocks = (n + kWarps - 1) / kWarps;
      Value* warp = b_.CreateAdd(b_.CreateMul(widen(block), e.number(kWarps)), widen(b_.CreateLShr(thread, 5)));
      Value* lane = widen(b_.CreateAnd(thread, 31));
      guarded(f, b_.CreateICmpULT(warp, e.number(n)), [&] { warp_reduce(e, *frame_of, out, *result, warp, lane); });
    } else {
      constexpr int64_t kThreads = 128;
      part.schedule = m_.op(out.inst) == Opcode::Reduce ? "column reduction" : "loop";
      part.threads = std::min<int64_t>(kThreads, std::max<int64_t>((n + 31) / 32 * 32, 32));
      part.blocks = std::max<int64_t>((n + part.threads - 1) / part.threads, 1);
      Value* at = b_.CreateAdd(b_.CreateMul(widen(block), e.number(part.threads)), widen(thread));
      guarded(f, b_.CreateICmpULT(at, e.number(n)), [&] {
        const ElementIndex* index = physical_index(e, out.shape, at);
        e.store(*result, index, e.element(*frame_of, out.inst, index, out.part));
      });
    }
    part.count = n;
    b_.CreateRetVoid();
    if (emulated) {
      kernel_.parts.push_back(std::move(part));
      return;
    }
    llvm::Metadata* bound[] = {llvm::ValueAsMetadata::get(f), llvm::MDString::get(c, "maxntidx"),
                               llvm::ConstantAsMetadata::get(b_.getInt32(static_cast<uint32_t>(part.threads)))};
    llvm::Metadata* kernel[] = {llvm::ValueAsMetadata::get(f), llvm::MDString::get(c, "kernel"),
                                llvm::ConstantAsMetadata::get(b_.getInt32(1))};
    into_.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(c, kernel));
    into_.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(c, bound));
    kernel_.parts.push_back(std::move(part));
  }

  void guarded(llvm::Function* f, Value* condition, const std::function<void()>& body) {
    llvm::LLVMContext& c = into_.getContext();
    auto* inside = llvm::BasicBlock::Create(c, "inside", f);
    auto* end = llvm::BasicBlock::Create(c, "end", f);
    b_.CreateCondBr(condition, inside, end);
    b_.SetInsertPoint(inside);
    body();
    b_.CreateBr(end);
    b_.SetInsertPoint(end);
  }

  // Threads side by side write side by side.
  const ElementIndex* physical_index(ElementEmitter& e, ShapeId id, Value* at) {
    const Shape& s = u_[id];
    if (s.rank() == 0) return e.index_of(id, {});
    if (!s.has_layout || is_default_layout(s.layout)) return e.index_of_linear(id, at);
    Dims major(s.layout.minor_to_major.rbegin(), s.layout.minor_to_major.rend());
    std::vector<Value*> dims(s.dims.size()), parts = e.delinearized(sizes_of(s, major), at);
    for (size_t k = 0; k < major.size(); ++k) dims[static_cast<size_t>(major[k])] = parts[k];
    return e.index_of(id, std::move(dims));
  }

  // Elements of a reduction whose reduced dimensions are the minor ones of its input; 0 for another.
  int64_t warp_row(InstId i) const {
    if (m_.op(i) != Opcode::Reduce || m_.operand_count(i) != 2) return 0;
    const Shape& in = m_.shape(m_.operand(i, 0));
    const Dims& over = m_.attrs(i).ints(Attr::dimensions);
    Dims minor = in.has_layout ? in.layout.minor_to_major : default_minor_to_major(in.rank());
    int64_t n = 1;
    size_t seen = 0;
    for (int64_t d : minor) {
      if (!contains(over, d)) break;
      n *= in.dims[static_cast<size_t>(d)], ++seen;
    }
    return seen == over.size() && in.elements_count() ? n : 0;
  }

  void warp_reduce(ElementEmitter& e, const ElementEmitter::Frame& f, const Outputs::One& out,
                   const ElementEmitter::Buffer& result, Value* row, Value* lane) {
    InstId i = out.inst, input = m_.operand(i, 0), init = m_.operand(i, 1);
    const Shape& in = m_.shape(input);
    const Dims& over = m_.attrs(i).ints(Attr::dimensions);
    llvm::Type* t = e.register_type(in.type);
    int64_t n = warp_row(i);
    const ElementIndex* to = physical_index(e, out.shape, row);
    std::vector<Value*> kept =
        to->linear && to->dims.empty() ? e.delinearized(u_[out.shape].dims, to->linear) : to->dims;
    Value* sum = b_.CreateAlloca(t);
    // Lane 0 brings the initial value; the others begin with their first element.
    Value* first = e.element(f, init, e.index_of(m_.shape_id(init), {}));
    auto value_at = [&](Value* k) {
      std::vector<Value*> at(in.dims.size());
      size_t j = 0;
      for (size_t d = 0; d < at.size(); ++d)
        if (!contains(over, static_cast<int64_t>(d))) at[d] = kept[j++];
      // The reduced dimensions are the minor ones; here major first.
      Dims minor = in.has_layout ? in.layout.minor_to_major : default_minor_to_major(in.rank());
      Dims order(minor.begin(), minor.begin() + static_cast<ptrdiff_t>(over.size()));
      std::reverse(order.begin(), order.end());
      std::vector<Value*> parts = e.delinearized(sizes_of(in, order), k);
      for (size_t x = 0; x < order.size(); ++x) at[static_cast<size_t>(order[x])] = parts[x];
      return e.element(f, input, e.index_of(m_.shape_id(input), std::move(at)));
    };
    // Rows hold at least 64 elements: every lane has one.
    e.scoped([&] { b_.CreateStore(value_at(lane), sum); });
    e.loop(b_.CreateAdd(lane, e.number(32)), e.number(n), e.number(32), "reduce", [&](Value* k) {
      Value* v = value_at(k);
      b_.CreateStore(e.apply(m_.called(i)[0], {b_.CreateLoad(t, sum), v})[0], sum);
    });
    for (int delta = 16; delta > 0; delta /= 2) {
      Value* mine = b_.CreateLoad(t, sum);
      Value* other = shuffle_down(mine, delta);
      e.scoped([&] { b_.CreateStore(e.apply(m_.called(i)[0], {mine, other})[0], sum); });
    }
    guarded(b_.GetInsertBlock()->getParent(), b_.CreateICmpEQ(lane, e.number(0)), [&] {
      e.scoped([&] {
        Value* all = e.apply(m_.called(i)[0], {first, b_.CreateLoad(t, sum)})[0];
        e.store(result, to, all);
      });
    });
  }

  static Dims sizes_of(const Shape& s, const Dims& which) {
    Dims out;
    for (int64_t d : which) out.push_back(s.dims[static_cast<size_t>(d)]);
    return out;
  }

  // 32 bits at a time; narrower and wider values in parts.
  Value* shuffle_down(Value* v, int delta) {
    llvm::Type* type = v->getType();
    unsigned bits = type->getPrimitiveSizeInBits().getFixedValue();
    Value* raw = type->isIntegerTy() ? v : b_.CreateBitCast(v, b_.getIntNTy(bits));
    unsigned words = (bits + 31) / 32;
    Value* wide = b_.CreateZExt(raw, b_.getIntNTy(32 * words));
    Value* out = llvm::ConstantInt::get(wide->getType(), 0);
    for (unsigned w = 0; w < words; ++w) {
      Value* part = b_.CreateTrunc(words == 1 ? wide : b_.CreateLShr(wide, uint64_t{32} * w), b_.getInt32Ty());
      Value* distance = b_.getInt32(static_cast<uint32_t>(delta));
      Value* got;
      if (options_.emulated) {
        llvm::Type* i32 = b_.getInt32Ty();
        got = b_.CreateCall(into_.getOrInsertFunction("hlo_emulated_shuffle_down", i32, i32, i32), {part, distance});
      } else {
        got = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_down_i32, {},
                                 {b_.getInt32(0xffffffffu), part, distance, b_.getInt32(31)});
      }
      Value* placed = b_.CreateZExt(got, wide->getType());
      out = b_.CreateOr(out, words == 1 ? placed : b_.CreateShl(placed, uint64_t{32} * w));
    }
    out = b_.CreateTrunc(out, raw->getType());
    return type->isIntegerTy() ? out : b_.CreateBitCast(out, type);
  }

  const Module& m_;
  Universe& u_;
  InstId inst_;
  llvm::Module& into_;
  std::string name_;
  EmitOptions options_;
  llvm::IRBuilder<> b_;
  Kernel kernel_;
  Outputs outputs_;
  std::vector<InstId> operands_;
  std::vector<llvm::Function*> made_;
  bool counted_ = false;
};

}  // namespace

namespace {

// Products inside a fusion are faster by a library, and a sum that every output needs again is added up once: the
// evaluator runs such bodies operation by operation.
void refuse_slow(const Module& m, InstId inst) {
  if (m.op(inst) != Opcode::Fusion) return;
  CompId body = m.called(inst)[0];
  InstId root = m.comp(body).root;
  for (InstId i : m.post_order(body)) {
    Opcode op = m.op(i);
    if (op == Opcode::Dot || op == Opcode::Convolution)
      fail(FailureKind::kUnsupported, "{} is run operation by operation: {} is a product", m.inst_name(inst),
           m.inst_name(i));
    bool output = i == root || (m.op(root) == Opcode::Tuple && m.users(i).size() == 1 && m.users(i)[0] == root);
    if ((op != Opcode::Reduce && op != Opcode::ReduceWindow) || output) continue;
    int64_t in = m.shape(m.operand(i, 0)).elements_count(), out = 0;
    const Shape& s = m.shape(root).is_tuple() ? m.u()[m.shape(root).elements[0]] : m.shape(root);
    out = s.elements_count();
    ShapeId own = m.shape(i).is_tuple() ? m.shape(i).elements[0] : m.shape_id(i);
    int64_t results = std::max<int64_t>(m.u()[own].elements_count(), 1);
    if (op == Opcode::Reduce && out / results * in > 4 * std::max(in, out))
      fail(FailureKind::kUnsupported, "{} is run operation by operation: every output needs {} whole",
           m.inst_name(inst), m.inst_name(i));
  }
}

}  // namespace

Kernel build_host_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name) {
  refuse_slow(m, inst);
  return Builder(m, inst, into, name, {}).host();
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
  return Builder(m, inst, into, name, o).gpu();
}

Kernel build_emulated_kernel(const Module& m, InstId inst, llvm::Module& into, const std::string& name) {
  EmitOptions o;
  o.addressing = Addressing::kPhysical, o.emulated = true;
  return Builder(m, inst, into, name, o).gpu();
}

bool runs_as_kernel(const Module& m, InstId i) {
  const Shape& s = m.shape(i);
  if (!s.is_array() && m.op(i) != Opcode::Fusion && m.op(i) != Opcode::Reduce) return false;
  switch (m.op(i)) {
    case Opcode::Fusion:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
    case Opcode::Iota:
    case Opcode::Pad:
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
    case Opcode::Map:
      return true;
    case Opcode::DynamicUpdateSlice:
      return true;
    case Opcode::Copy:
      return true;
    default:
      return op_info(m.op(i)).elementwise;
  }
}

std::vector<std::vector<InstId>> distinct_kernels(const Module& m) {
  std::vector<std::vector<InstId>> out;
  std::unordered_map<uint64_t, size_t> known;
  Fingerprints prints(m);
  std::vector<CompId> list{m.entry()};
  std::vector<bool> seen(m.comp_slots(), false);
  seen[m.entry().value] = true;
  for (size_t k = 0; k < list.size(); ++k)
    for (InstId i : m.post_order(list[k])) {
      Opcode op = m.op(i);
      if (op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call || op == Opcode::AsyncStart)
        for (CompId c : m.called(i))
          if (!seen[c.value]) seen[c.value] = true, list.push_back(c);
      if (!runs_as_kernel(m, i)) continue;
      uint64_t h = prints.instruction(i);
      for (InstId o : m.operands(i)) {
        h = hash_combine(h, hash_bytes(m.u().shape_text(m.shape_id(o))));
        // A single operation has its constants in its code.
        if (m.op(o) == Opcode::Constant && op != Opcode::Fusion) h = hash_combine(h, m.literal_id(o).value);
      }
      auto [at, fresh] = known.emplace(h, out.size());
      if (fresh) out.emplace_back();
      out[at->second].push_back(i);
    }
  return out;
}

}  // namespace hlo
