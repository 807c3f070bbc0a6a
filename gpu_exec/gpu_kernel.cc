// The GPU's schedules: a thread some elements side by side; a warp, a block or a column of one an output of a
// reduction; a block a row of a row fusion, a tile of a transpose; updates with atomics; sorting networks. The same
// builder makes host code of them for the emulated grid.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>
#include <span>

#include "gpu_exec/kernel_builder.h"
#include "ir/base/check.h"

namespace hlo {
namespace {

using llvm::Value;

constexpr int64_t kWarp = 32;

class GpuBuilder : public KernelBuilder {
 public:
  using KernelBuilder::KernelBuilder;

  Kernel build() {
    try {
      schedules();
      check_blocks();
    } catch (...) {
      take_back();
      throw;
    }
    return std::move(kernel_);
  }

 private:
  using Buffer = ElementEmitter::Buffer;
  using Frame = ElementEmitter::Frame;
  // What a kernel's body is written with.
  struct Code {
    ElementEmitter& e;
    llvm::Function* f;
    Frame frame;
    std::vector<const Buffer*> results;
    Value *block, *thread;  // of the index type
    std::vector<Value*> numbers;
  };

  void schedules() {
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

  // Outputs that share their loop: of one shape and layout; parts of one reduction.
  std::vector<std::vector<size_t>> groups() const {
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

  // All of them reductions of the same dimensions of inputs alike.
  bool reduces_alike(const std::vector<size_t>& group) const {
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

  // --- functions ---

  Value* special(llvm::Intrinsic::ID id, const char* emulated) {
    if (!options_.emulated) return b_.CreateIntrinsic(id, {}, {});
    return b_.CreateCall(into_.getOrInsertFunction(emulated, b_.getInt32Ty()));
  }

  // A function that gets all inputs, the results of those numbers, and so many numbers.
  void function(KernelPart part, const std::vector<size_t>& results, size_t numbers,
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

  // An array that the threads of a block share.
  Value* shared(llvm::Type* element, int64_t n, const std::string& name) {
    auto* type = llvm::ArrayType::get(element, static_cast<uint64_t>(n));
    std::string full = fmt::format("{}_{}_{}", name_, kernel_.parts.size(), name);
    auto* v =
        new llvm::GlobalVariable(into_, type, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type),
                                 full, nullptr, llvm::GlobalValue::NotThreadLocal, options_.emulated ? 0 : 3);
    v->setAlignment(llvm::Align(16));
    return v;
  }
  void barrier() {
    if (options_.emulated)
      b_.CreateCall(into_.getOrInsertFunction("hlo_emulated_barrier", b_.getVoidTy()));
    else
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
  }

  void when(Code& c, Value* condition, const std::function<void()>& body) {
    llvm::LLVMContext& context = into_.getContext();
    auto* inside = llvm::BasicBlock::Create(context, "inside", c.f);
    auto* end = llvm::BasicBlock::Create(context, "end", c.f);
    b_.CreateCondBr(condition, inside, end);
    b_.SetInsertPoint(inside);
    c.e.scoped(body);
    b_.CreateBr(end);
    b_.SetInsertPoint(end);
  }

  // --- elements ---

  // The index whose place in memory is that number: threads side by side write side by side.
  const ElementIndex* physical_index(ElementEmitter& e, ShapeId id, Value* at) {
    const Shape& s = u_[id];
    if (s.rank() == 0) return e.index_of(id, {});
    if (!s.has_layout || is_default_layout(s.layout)) return e.index_of_linear(id, at);
    Dims major = major_first(s);
    std::vector<Value*> dims(s.dims.size()), parts = e.delinearized(sizes_of(s, major), at);
    for (size_t k = 0; k < major.size(); ++k) dims[static_cast<size_t>(major[k])] = parts[k];
    return e.index_of(id, std::move(dims));
  }
  const ElementIndex* of_shape(ElementEmitter& e, const ElementIndex* at, ShapeId id) {
    if (at->shape == id) return at;
    return at->linear && at->dims.empty() ? e.index_of_linear(id, at->linear) : e.index_of(id, at->dims);
  }

  // Elements a thread writes: those of 16 bytes of the widest output, where code needs no index a dimension.
  int64_t unrolled(const std::vector<size_t>& group) const {
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

  void loop(const std::vector<size_t>& group) {
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

  // --- reductions ---

  // One reduction of a group, whose parts (of several values) are combined together.
  struct Sum {
    InstId inst;
    CompId reducer;
    std::vector<llvm::Type*> types;
    llvm::Type* wide = nullptr;  // sums kept without rounding
    std::vector<Value*> state;   // allocas
  };
  std::vector<Sum> sums_of(Code& c, const std::vector<InstId>& reduces) {
    std::vector<Sum> out;
    llvm::BasicBlock& entry = c.f->getEntryBlock();
    llvm::IRBuilder<> top(&entry, entry.begin());
    for (InstId i : reduces) {
      if (std::any_of(out.begin(), out.end(), [&](const Sum& s) { return s.inst == i; })) continue;
      Sum s{i, m_.called(i)[0], {}, nullptr, {}};
      size_t n = m_.operand_count(i) / 2;
      if (n == 1) s.wide = c.e.sum_type(s.reducer);
      for (size_t k = 0; k < n; ++k) {
        s.types.push_back(s.wide ? s.wide : c.e.register_type(m_.shape(m_.operand(i, k)).type));
        s.state.push_back(top.CreateAlloca(s.types.back()));
      }
      out.push_back(std::move(s));
    }
    return out;
  }
  std::vector<Value*> values_at(Code& c, const Frame& f, const Sum& s, const std::vector<Value*>& at) {
    std::vector<Value*> out;
    for (size_t k = 0; k < s.types.size(); ++k) {
      InstId in = m_.operand(s.inst, k);
      Value* v = c.e.element(f, in, c.e.index_of(m_.shape_id(in), at));
      out.push_back(s.wide ? c.e.widened(v, s.wide) : v);
    }
    return out;
  }
  std::vector<Value*> combined(Code& c, const Sum& s, const std::vector<Value*>& a, const std::vector<Value*>& b) {
    if (s.wide) return {b_.CreateFAdd(a[0], b[0])};
    std::vector<Value*> args = a;
    args.insert(args.end(), b.begin(), b.end());
    return c.e.apply(s.reducer, args);
  }
  std::vector<Value*> loaded(const Sum& s) {
    std::vector<Value*> out;
    for (size_t k = 0; k < s.types.size(); ++k) out.push_back(b_.CreateLoad(s.types[k], s.state[k]));
    return out;
  }
  void keep(const Sum& s, const std::vector<Value*>& v) {
    for (size_t k = 0; k < v.size(); ++k) b_.CreateStore(v[k], s.state[k]);
  }
  std::vector<Value*> initial(Code& c, const Frame& f, const Sum& s) {
    std::vector<Value*> out;
    for (size_t k = 0; k < s.types.size(); ++k) {
      InstId init = m_.operand(s.inst, s.types.size() + k);
      Value* v = c.e.element(f, init, c.e.index_of(m_.shape_id(init), {}));
      out.push_back(s.wide ? c.e.widened(v, s.wide) : v);
    }
    return out;
  }
  // The states of the elements first, first + step … below n. Every thread begins with an element of its own: there are
  // as many at least. `index`: of the input, for an element's number.
  void accumulate(Code& c, const Frame& f, std::span<const Sum> sums, Value* first, int64_t step, int64_t n,
                  const std::function<std::vector<Value*>(Value*)>& index) {
    auto one = [&](Value* k, bool fresh) {
      std::vector<Value*> at = index(k);
      for (const Sum& s : sums) {
        std::vector<Value*> v = values_at(c, f, s, at);
        keep(s, fresh ? v : combined(c, s, loaded(s), v));
      }
    };
    c.e.scoped([&] { one(first, true); });
    c.e.loop(b_.CreateAdd(first, c.e.number(step)), c.e.number(n), c.e.number(step), "reduce",
             [&](Value* k) { one(k, false); });
  }
  // Lane 0's state becomes that of its warp.
  void over_warp(Code& c, const Sum& s) {
    for (int delta = 16; delta > 0; delta /= 2) {
      std::vector<Value*> mine = loaded(s), other;
      for (Value* v : mine) other.push_back(shuffle_down(v, delta));
      c.e.scoped([&] { keep(s, combined(c, s, mine, other)); });
    }
  }
  // What every thread of the block then knows: the state of all of `threads` (a multiple of 32), combined.
  std::vector<Value*> over_block(Code& c, const Sum& s, int64_t threads, const std::string& name) {
    over_warp(c, s);
    int64_t warps = threads / kWarp;
    std::vector<Value*> arrays;
    for (size_t k = 0; k < s.types.size(); ++k)
      arrays.push_back(shared(stored(s.types[k]), warps, fmt::format("{}_{}", name, k)));
    Value* lane = b_.CreateAnd(c.thread, c.e.number(31));
    Value* warp = b_.CreateLShr(c.thread, c.e.number(5));
    when(c, b_.CreateICmpEQ(lane, c.e.number(0)), [&] {
      std::vector<Value*> mine = loaded(s);
      for (size_t k = 0; k < arrays.size(); ++k) put(arrays[k], warp, mine[k]);
    });
    barrier();
    std::vector<Value*> all;
    for (int64_t w = 0; w < warps; ++w) {
      std::vector<Value*> one;
      for (size_t k = 0; k < arrays.size(); ++k) one.push_back(get(arrays[k], c.e.number(w), s.types[k]));
      all = w ? combined(c, s, all, one) : one;
    }
    return all;
  }
  // Bits of one are kept as bytes.
  llvm::Type* stored(llvm::Type* t) { return t->isIntegerTy(1) ? b_.getInt8Ty() : t; }
  void put(Value* array, Value* at, Value* v) {
    llvm::Type* t = stored(v->getType());
    b_.CreateStore(t == v->getType() ? v : b_.CreateZExt(v, t), b_.CreateInBoundsGEP(t, array, at));
  }
  Value* get(Value* array, Value* at, llvm::Type* type) {
    llvm::Type* t = stored(type);
    Value* v = b_.CreateLoad(t, b_.CreateInBoundsGEP(t, array, at));
    return t == type ? v : b_.CreateTrunc(v, type);
  }
  Value* as_output(Code& c, const Sum& s, const KernelOutput& o, const std::vector<Value*>& v) {
    Value* one = v[static_cast<size_t>(o.part)];
    return s.wide ? c.e.summed(u_[o.shape].type, one) : one;
  }

  // Elements of a reduction whose reduced dimensions are the minor ones of its input; 0 for another.
  int64_t row_length(InstId i) const {
    const Shape& in = m_.shape(m_.operand(i, 0));
    const Dims& over = m_.attrs(i).ints(Attr::dimensions);
    Dims major = major_first(in);
    int64_t n = 1;
    size_t seen = 0;
    for (size_t k = major.size(); k-- > 0 && contains(over, major[k]); ++seen)
      n *= in.dims[static_cast<size_t>(major[k])];
    return seen == over.size() && in.elements_count() ? n : 0;
  }

  // The input's index of a row's element: `kept` by the output's dimensions, the others by their order in memory.
  std::vector<Value*> input_index(Code& c, const Shape& in, const Dims& over, const std::vector<Value*>& kept,
                                  Value* k) {
    std::vector<Value*> at(in.dims.size());
    size_t j = 0;
    for (size_t d = 0; d < at.size(); ++d)
      if (!contains(over, static_cast<int64_t>(d))) at[d] = kept[j++];
    Dims order;
    for (int64_t d : major_first(in))
      if (contains(over, d)) order.push_back(d);
    std::vector<Value*> parts = c.e.delinearized(sizes_of(in, order), k);
    for (size_t x = 0; x < order.size(); ++x) at[static_cast<size_t>(order[x])] = parts[x];
    return at;
  }

  void row_reduction(const std::vector<size_t>& group, int64_t n) {
    const KernelOutput& lead = outputs_[group[0]];
    const Shape &out = u_[lead.shape], &in = m_.shape(m_.operand(lead.inst, 0));
    const Dims over = m_.attrs(lead.inst).ints(Attr::dimensions);
    int64_t rows = out.elements_count();
    // Long rows take a block each.
    bool by_block = n >= 1024;
    int64_t threads = by_block ? 256 : kWarp, rows_a_block = by_block ? 1 : 4;
    KernelPart part;
    part.schedule = "row reduction", part.count = rows;
    part.barrier_scope = by_block ? KernelPart::kBlock : KernelPart::kWarp;
    part.threads = threads * rows_a_block, part.blocks = (rows + rows_a_block - 1) / rows_a_block;
    function(std::move(part), group, 0, [&](Code& c) {
      ElementEmitter& e = c.e;
      const Frame* f = e.add_frame(c.frame);
      Value *row = c.block, *lane = c.thread;
      if (!by_block) {
        row = b_.CreateNUWAdd(b_.CreateNUWMul(c.block, e.number(rows_a_block)), b_.CreateLShr(c.thread, e.number(5)));
        lane = b_.CreateAnd(c.thread, e.number(31));
      }
      std::vector<InstId> reduces;
      for (size_t k : group) reduces.push_back(outputs_[k].inst);
      std::vector<Sum> sums = sums_of(c, reduces);
      auto body = [&] {
        const ElementIndex* to = physical_index(e, lead.shape, row);
        std::vector<Value*> kept = to->linear && to->dims.empty() ? e.delinearized(out.dims, to->linear) : to->dims;
        accumulate(c, *f, sums, lane, threads, n, [&](Value* k) { return input_index(c, in, over, kept, k); });
        std::vector<std::vector<Value*>> all;
        for (size_t k = 0; k < sums.size(); ++k) {
          if (by_block) {
            all.push_back(over_block(c, sums[k], threads, fmt::format("sum{}", k)));
          } else {
            over_warp(c, sums[k]);
            all.push_back({});
          }
        }
        when(c, b_.CreateICmpEQ(lane, e.number(0)), [&] {
          for (size_t k = 0; k < group.size(); ++k) {
            const KernelOutput& o = outputs_[group[k]];
            auto at = std::find_if(sums.begin(), sums.end(), [&](const Sum& s) { return s.inst == o.inst; });
            auto which = static_cast<size_t>(at - sums.begin());
            std::vector<Value*> total = combined(c, *at, initial(c, *f, *at), by_block ? all[which] : loaded(*at));
            e.store(*c.results[k], of_shape(e, to, o.shape), as_output(c, *at, o, total));
          }
        });
      };
      if (by_block)
        body();
      else
        when(c, b_.CreateICmpULT(row, e.number(rows)), body);
    });
  }

  // The minor dimension stays: 32 columns side by side, rows of threads down each.
  bool column_reduction(const std::vector<size_t>& group) {
    const KernelOutput& lead = outputs_[group[0]];
    const Shape &out = u_[lead.shape], &in = m_.shape(m_.operand(lead.inst, 0));
    const Dims over = m_.attrs(lead.inst).ints(Attr::dimensions);
    if (in.elements_count() == 0 || out.rank() == 0) return false;
    Dims order = major_first(in), kept_order;
    if (contains(over, order.back())) return false;
    int64_t columns = 1, n = 1;
    for (int64_t d : order) {
      if (contains(over, d))
        n *= in.dims[static_cast<size_t>(d)];
      else
        columns *= in.dims[static_cast<size_t>(d)], kept_order.push_back(d);
    }
    if (n < 64) return false;
    int64_t down = n >= 1024 ? 32 : 8;
    KernelPart part;
    part.schedule = "column reduction", part.count = columns, part.barrier_scope = KernelPart::kBlock;
    part.threads = kWarp * down, part.blocks = (columns + kWarp - 1) / kWarp;
    function(std::move(part), group, 0, [&](Code& c) {
      ElementEmitter& e = c.e;
      const Frame* f = e.add_frame(c.frame);
      Value *x = b_.CreateAnd(c.thread, e.number(31)), *y = b_.CreateLShr(c.thread, e.number(5));
      Value* column = b_.CreateNUWAdd(b_.CreateNUWMul(c.block, e.number(kWarp)), x);
      Value* inside = b_.CreateICmpULT(column, e.number(columns));
      std::vector<InstId> reduces;
      for (size_t k : group) reduces.push_back(outputs_[k].inst);
      std::vector<Sum> sums = sums_of(c, reduces);
      std::vector<std::vector<Value*>> arrays;
      for (size_t s = 0; s < sums.size(); ++s) {
        arrays.emplace_back();
        for (size_t k = 0; k < sums[s].types.size(); ++k)
          arrays.back().push_back(shared(stored(sums[s].types[k]), kWarp * down, fmt::format("sum{}_{}", s, k)));
      }
      std::vector<Value*> parts, by_dim(in.dims.size()), kept;
      Value* place = b_.CreateNUWAdd(b_.CreateNUWMul(y, e.number(kWarp)), x);
      when(c, inside, [&] {
        parts = e.delinearized(sizes_of(in, kept_order), column);
        for (size_t k = 0; k < kept_order.size(); ++k) by_dim[static_cast<size_t>(kept_order[k])] = parts[k];
        kept.clear();
        for (size_t d = 0; d < by_dim.size(); ++d)
          if (by_dim[d]) kept.push_back(by_dim[d]);
        accumulate(c, *f, sums, y, down, n, [&](Value* k) { return input_index(c, in, over, kept, k); });
        for (size_t s = 0; s < sums.size(); ++s) {
          std::vector<Value*> mine = loaded(sums[s]);
          for (size_t k = 0; k < mine.size(); ++k) put(arrays[s][k], place, mine[k]);
        }
      });
      barrier();
      when(c, b_.CreateAnd(inside, b_.CreateICmpEQ(y, e.number(0))), [&] {
        std::vector<Value*> again(in.dims.size()), own, list = e.delinearized(sizes_of(in, kept_order), column);
        for (size_t k = 0; k < kept_order.size(); ++k) again[static_cast<size_t>(kept_order[k])] = list[k];
        for (Value* v : again)
          if (v) own.push_back(v);
        for (size_t s = 0; s < sums.size(); ++s) {
          e.loop(e.number(1), e.number(down), e.number(1), "down", [&](Value* r) {
            Value* from = b_.CreateNUWAdd(b_.CreateNUWMul(r, e.number(kWarp)), x);
            std::vector<Value*> other;
            for (size_t k = 0; k < sums[s].types.size(); ++k)
              other.push_back(get(arrays[s][k], from, sums[s].types[k]));
            keep(sums[s], combined(c, sums[s], loaded(sums[s]), other));
          });
        }
        for (size_t k = 0; k < group.size(); ++k) {
          const KernelOutput& o = outputs_[group[k]];
          auto at = std::find_if(sums.begin(), sums.end(), [&](const Sum& s) { return s.inst == o.inst; });
          std::vector<Value*> total = combined(c, *at, initial(c, *f, *at), loaded(*at));
          e.store(*c.results[k], e.index_of(o.shape, own), as_output(c, *at, o, total));
        }
      });
    });
    return true;
  }

  // A block a row: its sums one after another, known to all of its threads, then its elements.
  void row_fusion_kernel(const RowFusion& rows) {
    int64_t threads = std::clamp<int64_t>(std::bit_floor(static_cast<uint64_t>(rows.length)), kWarp, 256);
    KernelPart part;
    part.schedule = "row fusion", part.count = rows.rows, part.barrier_scope = KernelPart::kBlock;
    part.threads = threads, part.blocks = rows.rows;
    std::vector<size_t> all;
    for (size_t k = 0; k < outputs_.size(); ++k) all.push_back(k);
    Dims kept(rows.dims.begin(), rows.dims.begin() + static_cast<ptrdiff_t>(rows.kept)),
        rest(rows.dims.begin() + static_cast<ptrdiff_t>(rows.kept), rows.dims.end());
    function(std::move(part), all, 0, [&](Code& c) {
      ElementEmitter& e = c.e;
      const Frame* known = e.add_frame(c.frame);
      std::vector<Value*> at = e.delinearized(kept, c.block);
      auto full = [&](Value* j) {
        std::vector<Value*> out = at, inner = e.delinearized(rest, j);
        out.insert(out.end(), inner.begin(), inner.end());
        return out;
      };
      std::vector<Sum> sums = sums_of(c, rows.reduces);
      for (size_t s = 0; s < sums.size(); ++s) {
        accumulate(c, *known, {&sums[s], 1}, c.thread, threads, rows.length, full);
        std::vector<Value*> total = over_block(c, sums[s], threads, fmt::format("sum{}", s));
        total = combined(c, sums[s], initial(c, *known, sums[s]), total);
        Frame more = *known;
        more.values[sums[s].inst] = sums[s].wide ? e.summed(m_.shape(sums[s].inst).type, total[0]) : total[0];
        known = e.add_frame(std::move(more));
      }
      std::vector<size_t> whole;
      for (size_t k = 0; k < outputs_.size(); ++k)
        if (u_[outputs_[k].shape].dims == rows.dims) whole.push_back(k);
      if (whole.size() < outputs_.size())
        when(c, b_.CreateICmpEQ(c.thread, e.number(0)), [&] {
          for (size_t k = 0; k < outputs_.size(); ++k) {
            const KernelOutput& o = outputs_[k];
            if (u_[o.shape].dims == rows.dims) continue;
            std::vector<Value*> own = at;
            own.resize(u_[o.shape].dims.size(), e.number(0));
            const ElementIndex* index = e.index_of(o.shape, std::move(own));
            e.store(*c.results[k], index, e.element(*known, o.inst, index, o.part));
          }
        });
      if (whole.empty()) return;
      e.loop(c.thread, e.number(rows.length), e.number(threads), "element", [&](Value* j) {
        std::vector<Value*> where = full(j), values;
        std::vector<const ElementIndex*> indices;
        for (size_t k : whole) {
          const KernelOutput& o = outputs_[k];
          indices.push_back(!indices.empty() && indices.back()->shape == o.shape ? indices.back()
                                                                                 : e.index_of(o.shape, where));
          values.push_back(e.element(*known, o.inst, indices.back(), o.part));
        }
        for (size_t k = 0; k < whole.size(); ++k) e.store(*c.results[whole[k]], indices[k], values[k]);
      });
    });
  }

  // --- transposes ---

  // The transpose (or copy) behind the elementwise operations that make an output, which changes the minor dimension.
  InstId transposing(InstId i, int depth = 0) const {
    const Shape& s = m_.shape(i);
    if (!s.is_array() || depth > 32) return {};
    if (m_.op(i) == Opcode::Transpose || m_.op(i) == Opcode::Copy) {
      auto [in, out] = minors(i);
      if (in >= 0 && in != out && s.dims[static_cast<size_t>(in)] >= 16 && s.dims[static_cast<size_t>(out)] >= 16)
        return i;
    }
    if (!op_info(m_.op(i)).elementwise && m_.op(i) != Opcode::Copy) return {};
    for (InstId o : m_.operands(i)) {
      const Shape& from = m_.shape(o);
      if (!from.is_array() || from.dims != s.dims || major_first(from) != major_first(s)) continue;
      if (m_.op(inst_) != Opcode::Fusion) continue;  // its operands lie in memory
      if (InstId found = transposing(o, depth + 1); found.valid()) return found;
    }
    return {};
  }
  // Dimensions of a transpose's result: the minor one of what it reads, and its own; those of one are nothing.
  std::pair<int64_t, int64_t> minors(InstId i) const {
    const Shape &out = m_.shape(i), &in = m_.shape(m_.operand(i, 0));
    auto minor = [](const Shape& s) {
      Dims order = major_first(s);
      while (!order.empty() && s.dims[static_cast<size_t>(order.back())] == 1) order.pop_back();
      return order.empty() ? int64_t{-1} : order.back();
    };
    int64_t from = minor(in), to = minor(out);
    if (from < 0 || to < 0) return {-1, -1};
    if (m_.op(i) == Opcode::Copy) return {from, to};
    const Dims& permutation = m_.attrs(i).ints(Attr::dimensions);
    auto at = std::find(permutation.begin(), permutation.end(), from);
    return {at - permutation.begin(), to};
  }

  bool transpose(size_t which) {
    constexpr int64_t kTile = 32, kDown = 8;
    const KernelOutput& o = outputs_[which];
    if (o.part) return false;
    InstId hero = transposing(o.inst);
    if (!hero.valid()) return false;
    auto [in_dim, out_dim] = minors(hero);
    const Shape& s = m_.shape(hero);
    auto a = static_cast<size_t>(in_dim), b = static_cast<size_t>(out_dim);
    int64_t tiles_in = (s.dims[a] + kTile - 1) / kTile, tiles_out = (s.dims[b] + kTile - 1) / kTile;
    Dims others, sizes;
    for (int64_t d : major_first(s))
      if (d != in_dim && d != out_dim) others.push_back(d), sizes.push_back(s.dims[static_cast<size_t>(d)]);
    int64_t rest = 1;
    for (int64_t d : sizes) rest *= d;
    KernelPart part;
    part.schedule = "transpose", part.count = s.elements_count(), part.barrier_scope = KernelPart::kBlock;
    part.threads = kTile * kDown, part.blocks = rest * tiles_in * tiles_out;
    function(std::move(part), {which}, 0, [&](Code& c) {
      ElementEmitter& e = c.e;
      const Frame* f = e.add_frame(c.frame);
      llvm::Type* type = e.register_type(s.type);
      Value* tile = shared(stored(type), kTile * (kTile + 1), "tile");
      Value *x = b_.CreateAnd(c.thread, e.number(31)), *y = b_.CreateLShr(c.thread, e.number(5));
      Dims all = sizes;
      all.push_back(tiles_in), all.push_back(tiles_out);
      std::vector<Value*> place = e.delinearized(all, c.block), at(s.dims.size());
      for (size_t k = 0; k < others.size(); ++k) at[static_cast<size_t>(others[k])] = place[k];
      Value* first_in = b_.CreateNUWMul(place[others.size()], e.number(kTile));
      Value* first_out = b_.CreateNUWMul(place[others.size() + 1], e.number(kTile));
      auto inside = [&](Value* i, Value* j) {
        return b_.CreateAnd(b_.CreateICmpULT(i, e.number(s.dims[a])), b_.CreateICmpULT(j, e.number(s.dims[b])));
      };
      auto cell = [&](Value* row, Value* column) {
        return b_.CreateNUWAdd(b_.CreateNUWMul(row, e.number(kTile + 1)), column);
      };
      // Read along the one, written along the other.
      for (int64_t k = 0; k < kTile; k += kDown) {
        Value* row = k ? b_.CreateNUWAdd(y, e.number(k)) : y;
        Value *i = b_.CreateNUWAdd(first_in, x), *j = b_.CreateNUWAdd(first_out, row);
        when(c, inside(i, j), [&] {
          std::vector<Value*> index = at;
          index[a] = i, index[b] = j;
          put(tile, cell(row, x), e.element(*f, hero, e.index_of(m_.shape_id(hero), std::move(index))));
        });
      }
      barrier();
      for (int64_t k = 0; k < kTile; k += kDown) {
        Value* row = k ? b_.CreateNUWAdd(y, e.number(k)) : y;
        Value *i = b_.CreateNUWAdd(first_in, row), *j = b_.CreateNUWAdd(first_out, x);
        when(c, inside(i, j), [&] {
          std::vector<Value*> index = at;
          index[a] = i, index[b] = j;
          Frame more = c.frame;
          more.values[hero] = get(tile, cell(x, row), type);
          const ElementIndex* to = e.index_of(o.shape, std::move(index));
          e.store(*c.results[0], to, e.element(*e.add_frame(std::move(more)), o.inst, to));
        });
      }
    });
    return true;
  }

  // --- what changes an array in place ---

  // The operand of the kernel that an instruction of it stands for; -1 for another.
  int operand_of(InstId i) const {
    if (m_.op(inst_) == Opcode::Fusion)
      return m_.op(i) == Opcode::Parameter ? static_cast<int>(m_.parameter_number(i)) : -1;
    for (size_t k = 0; k < operands_.size(); ++k)
      if (operands_[k] == i && by_pointer(i)) return static_cast<int>(k);
    return -1;
  }

  // ROOT dynamic-update-slice of a parameter that nothing else reads: only the update is written.
  bool in_place() {
    if (outputs_.size() != 1 || m_.op(root()) != Opcode::DynamicUpdateSlice) return false;
    InstId target = m_.operand(root(), 0), update = m_.operand(root(), 1);
    int operand = operand_of(target);
    if (operand < 0 || m_.shape_id(target) != outputs_[0].shape) return false;
    if (m_.op(inst_) == Opcode::Fusion && m_.use_count(target) != 1) return false;
    kernel_.in_place_operands = {operand};
    const Shape &us = m_.shape(update), &os = m_.shape(root());
    constexpr int64_t kThreads = 128;
    int64_t n = us.elements_count();
    KernelPart part;
    part.schedule = "in place", part.count = n, part.threads = kThreads;
    part.blocks = std::max<int64_t>((n + kThreads - 1) / kThreads, 1);
    function(std::move(part), {0}, 0, [&](Code& c) {
      ElementEmitter& e = c.e;
      const Frame* f = e.add_frame(c.frame);
      Value* task = b_.CreateNUWAdd(b_.CreateNUWMul(c.block, e.number(kThreads)), c.thread);
      when(c, b_.CreateICmpULT(task, e.number(n)), [&] {
        std::vector<Value*> at(us.dims.size()), parts = e.delinearized(sizes_of(us, major_first(us)), task);
        Dims order = major_first(us);
        for (size_t k = 0; k < order.size(); ++k) at[static_cast<size_t>(order[k])] = parts[k];
        std::vector<Value*> to(at.size());
        for (size_t k = 0; k < at.size(); ++k) {
          int64_t most = os.dims[k] - us.dims[k];
          to[k] = most > 0 ? b_.CreateNUWAdd(at[k], e.clamped_start(*f, m_.operand(root(), k + 2), most)) : at[k];
        }
        Value* v = e.element(*f, update, e.index_of(m_.shape_id(update), at));
        e.store(*c.results[0], e.index_of(outputs_[0].shape, to), v);
      });
    });
    return true;
  }

  [[noreturn]] void refuse(std::string_view why) const {
    fail(FailureKind::kUnsupported, "no kernel for {} ({}): {}", m_.inst_name(inst_), op_text(m_.op(root())), why);
  }

  // What a scatter's attributes say of dimensions.
  struct ScatterForm {
    InstId indices;
    std::vector<InstId> operands, updates;
    Dims window, window_in;    // dimensions of an update's window, and of the operand for each
    Dims batch_up, batch_idx;  // those that number the indices: of the updates and of the indices
    Dims apart;                // of the updates: two that differ there never meet
  };
  ScatterForm scatter_form() const {
    InstId i = root();
    const AttrSet& a = m_.attrs(i);
    ScatterForm f;
    size_t n = m_.operand_count(i) / 2;
    for (size_t k = 0; k < n; ++k) {
      f.operands.push_back(m_.operand(i, k));
      f.updates.push_back(m_.operand(i, n + 1 + k));
    }
    f.indices = m_.operand(i, n);
    const Shape &in = m_.shape(f.operands[0]), &idx = m_.shape(f.indices), &up = m_.shape(f.updates[0]);
    f.window = a.ints(Attr::update_window_dims);
    const Dims &inserted = a.ints(Attr::inserted_window_dims), &batching = a.ints(Attr::input_batching_dims),
               &map = a.ints(Attr::scatter_dims_to_operand_dims),
               &idx_batching = a.ints(Attr::scatter_indices_batching_dims);
    for (int64_t k = 0; k < up.rank(); ++k)
      if (!contains(f.window, k)) f.batch_up.push_back(k);
    for (int64_t k = 0; k < idx.rank(); ++k)
      if (k != a.integer(Attr::index_vector_dim)) f.batch_idx.push_back(k);
    for (int64_t k = 0; k < in.rank(); ++k)
      if (!contains(inserted, k) && !contains(batching, k)) f.window_in.push_back(k);
    for (size_t k = 0; k < f.batch_up.size(); ++k)
      if (contains(idx_batching, f.batch_idx[k])) f.apart.push_back(f.batch_up[k]);
    for (size_t k = 0; k < f.window.size(); ++k)
      if (!contains(map, f.window_in[k]) ||
          in.dims[static_cast<size_t>(f.window_in[k])] == up.dims[static_cast<size_t>(f.window[k])])
        f.apart.push_back(f.window[k]);
    return f;
  }

  // Emits `body` with the place that the update at `at` goes to, where it lies inside the operand.
  void scattered(Code& c, const ScatterForm& s, const std::vector<Value*>& at,
                 const std::function<void(std::vector<Value*>)>& body) {
    ElementEmitter& e = c.e;
    const Frame* f = e.add_frame(c.frame);
    const AttrSet& a = m_.attrs(root());
    const Shape &in = m_.shape(s.operands[0]), &idx = m_.shape(s.indices), &up = m_.shape(s.updates[0]);
    const Dims &map = a.ints(Attr::scatter_dims_to_operand_dims), &batching = a.ints(Attr::input_batching_dims),
               &idx_batching = a.ints(Attr::scatter_indices_batching_dims);
    int64_t vector_dim = a.integer(Attr::index_vector_dim);
    std::vector<Value*> where(in.dims.size(), b_.getInt64(0));
    auto wide = [&](Value* v) { return b_.CreateZExtOrTrunc(v, b_.getInt64Ty()); };
    for (size_t k = 0; k < map.size(); ++k) {
      std::vector<Value*> in_idx(idx.dims.size());
      for (size_t j = 0; j < s.batch_idx.size(); ++j)
        in_idx[static_cast<size_t>(s.batch_idx[j])] = at[static_cast<size_t>(s.batch_up[j])];
      if (vector_dim < idx.rank()) in_idx[static_cast<size_t>(vector_dim)] = e.number(static_cast<int64_t>(k));
      Value* v = e.element(*f, s.indices, e.index_of(m_.shape_id(s.indices), std::move(in_idx)));
      where[static_cast<size_t>(map[k])] = is_signed_int(idx.type) ? b_.CreateSExtOrTrunc(v, b_.getInt64Ty()) : wide(v);
    }
    for (size_t k = 0; k < batching.size(); ++k) {
      auto which =
          static_cast<size_t>(std::find(s.batch_idx.begin(), s.batch_idx.end(), idx_batching[k]) - s.batch_idx.begin());
      where[static_cast<size_t>(batching[k])] = wide(at[static_cast<size_t>(s.batch_up[which])]);
    }
    // A window that leaves the operand anywhere is skipped whole. Below zero is far above, unsigned.
    Value* inside = b_.getTrue();
    std::vector<bool> in_window(in.dims.size(), false);
    for (size_t k = 0; k < s.window.size(); ++k) {
      auto d = static_cast<size_t>(s.window_in[k]);
      in_window[d] = true;
      int64_t room = in.dims[d] - up.dims[static_cast<size_t>(s.window[k])];
      inside = b_.CreateAnd(inside, b_.CreateICmpULE(where[d], b_.getInt64(static_cast<uint64_t>(room))));
      where[d] = b_.CreateAdd(where[d], wide(at[static_cast<size_t>(s.window[k])]));
    }
    for (size_t d = 0; d < where.size(); ++d)
      if (!in_window[d])
        inside = b_.CreateAnd(inside, b_.CreateICmpULT(where[d], b_.getInt64(static_cast<uint64_t>(in.dims[d]))));
    when(c, inside, [&] {
      std::vector<Value*> to;
      for (Value* w : where) to.push_back(b_.CreateTrunc(w, e.index_type()));
      body(std::move(to));
    });
  }

  // A thread an element of the updates; what meets at one place is combined atomically. Where that cannot be, since the
  // last one counts or an element is more than a word, a thread has the updates of a place one after another: threads
  // differ in dimensions that no index moves.
  void scatter() {
    InstId i = root();
    ScatterForm s = scatter_form();
    const Shape &in = m_.shape(s.operands[0]), &up = m_.shape(s.updates[0]);
    CompId combiner = m_.called(i)[0];
    const Computation& body = m_.comp(combiner);
    size_t n = s.operands.size();
    bool overwrite = n == 1 && body.root == body.params[1], alone = m_.attrs(i).flag(Attr::unique_indices);
    bool atomic = n == 1 && !overwrite && in.type != ElementType::Pred && !is_complex(in.type);
    bool ordered = !alone && !atomic;
    // The operands' bytes first: as they are, or by a loop of their own.
    for (size_t k = 0; k < n; ++k) {
      int target = operand_of(s.operands[k]);
      bool read_again = m_.op(inst_) == Opcode::Fusion && target >= 0 && m_.use_count(s.operands[k]) != 1;
      for (size_t j = 0; j < k; ++j) read_again |= kernel_.in_place_operands[j] == target;
      kernel_.in_place_operands.push_back(m_.shape_id(s.operands[k]) == outputs_[k].shape && !read_again ? target : -1);
    }
    std::vector<size_t> all;
    for (size_t k = 0; k < n; ++k) {
      all.push_back(k);
      if (kernel_.in_place_operands[k] >= 0) continue;
      KernelOutput first = outputs_[k];
      outputs_[k].inst = s.operands[k], outputs_[k].part = 0;
      loop({k});
      outputs_[k] = first;
    }
    Dims threads_of = major_first(up), in_order;
    if (ordered) {
      std::erase_if(threads_of, [&](int64_t d) { return !contains(s.apart, d); });
      // Index by index, each with its whole window.
      for (const Dims* dims : {&s.batch_up, &s.window})
        for (int64_t d : *dims)
          if (!contains(s.apart, d)) in_order.push_back(d);
    }
    constexpr int64_t kThreads = 128;
    int64_t tasks = in.elements_count() && up.elements_count() ? 1 : 0;
    for (int64_t size : sizes_of(up, threads_of)) tasks *= size;
    KernelPart part;
    part.schedule = ordered ? "scatter in order" : "scatter", part.count = tasks, part.threads = kThreads;
    part.blocks = std::max<int64_t>((tasks + kThreads - 1) / kThreads, 1);
    function(std::move(part), all, 0, [&](Code& c) {
      ElementEmitter& e = c.e;
      const Frame* f = e.add_frame(c.frame);
      Value* task = b_.CreateNUWAdd(b_.CreateNUWMul(c.block, e.number(kThreads)), c.thread);
      when(c, b_.CreateICmpULT(task, e.number(tasks)), [&] {
        std::vector<Value*> at(up.dims.size()), parts = e.delinearized(sizes_of(up, threads_of), task);
        for (size_t k = 0; k < threads_of.size(); ++k) at[static_cast<size_t>(threads_of[k])] = parts[k];
        auto one = [&](const std::vector<Value*>& to) {
          std::vector<const ElementIndex*> places;
          std::vector<Value*> values, old;
          for (size_t k = 0; k < n; ++k) {
            places.push_back(e.index_of(outputs_[k].shape, to));
            values.push_back(e.element(*f, s.updates[k], e.index_of(m_.shape_id(s.updates[k]), at)));
          }
          if (atomic && !alone) {
            unsigned bits = static_cast<unsigned>(8 * storage_bytes(in.type));
            atomically(c, in.type, b_.getIntNTy(bits), e.address(*c.results[0], places[0]), combiner, values[0]);
            return;
          }
          if (!overwrite) {
            for (size_t k = 0; k < n; ++k) old.push_back(e.load(*c.results[k], places[k]));
            old.insert(old.end(), values.begin(), values.end());
            values = e.apply(combiner, old);
          }
          for (size_t k = 0; k < n; ++k) e.store(*c.results[k], places[k], values[k]);
        };
        auto nest = [&](auto&& self, size_t depth) -> void {
          if (depth == in_order.size()) {
            scattered(c, s, at, one);
            return;
          }
          auto d = static_cast<size_t>(in_order[depth]);
          e.loop(e.number(0), e.number(up.dims[d]), e.number(1), "update", [&](Value* v) {
            at[d] = v;
            self(self, depth + 1);
          });
        };
        nest(nest, 0);
      });
    });
  }

  // What lies there becomes combiner(it, v), whoever else changes it.
  void atomically(Code& c, ElementType type, llvm::Type* memory, Value* place, CompId combiner, Value* v) {
    const Computation& body = m_.comp(combiner);
    Opcode op = m_.op(body.root);
    bool plain = m_.operand_count(body.root) == 2 && m_.op(m_.operand(body.root, 0)) == Opcode::Parameter &&
                 m_.op(m_.operand(body.root, 1)) == Opcode::Parameter &&
                 m_.operand(body.root, 0) != m_.operand(body.root, 1);
    constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;
    using Rmw = llvm::AtomicRMWInst;
    std::optional<Rmw::BinOp> direct;
    bool sign = is_signed_int(type), integer = !is_float(type);
    if (plain && op == Opcode::Add) direct = integer ? Rmw::Add : Rmw::FAdd;
    if (plain && integer && op == Opcode::Maximum) direct = sign ? Rmw::Max : Rmw::UMax;
    if (plain && integer && op == Opcode::Minimum) direct = sign ? Rmw::Min : Rmw::UMin;
    if (plain && integer && op == Opcode::And) direct = Rmw::And;
    if (plain && integer && op == Opcode::Or) direct = Rmw::Or;
    if (direct && memory->getIntegerBitWidth() >= 32) {
      b_.CreateAtomicRMW(*direct, place, v, llvm::MaybeAlign(), kRelaxed);
      return;
    }
    llvm::LLVMContext& context = into_.getContext();
    auto* again = llvm::BasicBlock::Create(context, "again", c.f);
    auto* done = llvm::BasicBlock::Create(context, "done", c.f);
    // Narrow elements within the word of 32 bits that they lie in.
    unsigned bits = memory->getIntegerBitWidth();
    llvm::Type* word = bits < 32 ? b_.getInt32Ty() : memory;
    Value* shift = nullptr;
    if (bits < 32) {
      Value* address = b_.CreatePtrToInt(place, b_.getInt64Ty());
      shift = b_.CreateTrunc(b_.CreateShl(b_.CreateAnd(address, 3), 3), word);
      place = b_.CreateIntToPtr(b_.CreateAnd(address, ~uint64_t{3}), place->getType());
    }
    Value* before = b_.CreateLoad(word, place);
    llvm::BasicBlock* from = b_.GetInsertBlock();
    b_.CreateBr(again);
    b_.SetInsertPoint(again);
    llvm::PHINode* seen = b_.CreatePHI(word, 2);
    seen->addIncoming(before, from);
    llvm::Type* own = c.e.memory_type(type);
    c.e.scoped([&] {
      Value* part = shift ? b_.CreateTrunc(b_.CreateLShr(seen, shift), memory) : seen;
      Value* old = c.e.from_memory(type, own == memory ? part : b_.CreateBitCast(part, own));
      Value* next = c.e.to_memory(type, c.e.apply(combiner, {old, v})[0]);
      if (own != memory) next = b_.CreateBitCast(next, memory);
      if (shift) {
        Value* mask = b_.CreateShl(llvm::ConstantInt::get(word, (uint64_t{1} << bits) - 1), shift);
        next = b_.CreateOr(b_.CreateAnd(seen, b_.CreateNot(mask)), b_.CreateShl(b_.CreateZExt(next, word), shift));
      }
      Value* swap = b_.CreateAtomicCmpXchg(place, seen, next, llvm::MaybeAlign(), kRelaxed, kRelaxed);
      Value* got = b_.CreateExtractValue(swap, 0);
      seen->addIncoming(got, b_.GetInsertBlock());
      b_.CreateCondBr(b_.CreateExtractValue(swap, 1), done, again);
    });
    b_.SetInsertPoint(done);
  }

  // A sorting network over every row: steps of one distance each, all of them ascending, so that what lies behind the
  // row's end never moves. It moves equal elements past each other. Where that must not be, and no pass has made the
  // order a total one (stable-sort-expander), neighbours change places, as many steps as there are elements.
  void sort() {
    InstId i = root();
    const AttrSet& a = m_.attrs(i);
    const bool stable = a.flag(Attr::is_stable);
    auto dim = static_cast<size_t>(a.ints(Attr::dimensions)[0]);
    const Shape s = m_.shape(m_.operand(i, 0));
    int64_t n = s.dims[dim];
    size_t count = outputs_.size();
    // What is sorted lies in the results: taken over, or written there first.
    for (size_t k = 0; k < count; ++k) {
      InstId operand = m_.operand(i, k);
      int from = operand_of(operand);
      bool read_again = m_.op(inst_) == Opcode::Fusion && from >= 0 && m_.use_count(operand) != 1;
      kernel_.in_place_operands.push_back(m_.shape_id(operand) == outputs_[k].shape && !read_again ? from : -1);
    }
    for (size_t k = 0; k < count; ++k) {
      if (kernel_.in_place_operands[k] >= 0) continue;
      KernelOutput sorted = outputs_[k];
      outputs_[k].inst = m_.operand(i, k), outputs_[k].part = 0;
      loop({k});
      outputs_[k] = sorted;
    }
    CompId comparator = m_.called(i)[0];
    int64_t half =
        stable ? n / 2 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1)))) / 2;
    int64_t rows = n ? s.elements_count() / n : 0;
    constexpr int64_t kThreads = 128;
    KernelPart part;
    part.schedule = "sort", part.count = rows * std::max<int64_t>(half, 1), part.threads = kThreads;
    part.blocks = std::max<int64_t>((part.count + kThreads - 1) / kThreads, 1);
    // Merges of 2, 4, 8 …: the first step turns the second half round, the others halve the distance.
    for (int64_t step = 0; stable && n > 1 && step < n; ++step)
      part.launches.push_back({static_cast<int32_t>(step % 2), 0});
    for (int64_t width = 2; !stable && width <= 2 * half; width *= 2) {
      part.launches.push_back({static_cast<int32_t>(width / 2), static_cast<int32_t>(width - 1)});
      for (int64_t d = width / 4; d > 0; d /= 2)
        part.launches.push_back({static_cast<int32_t>(d), static_cast<int32_t>(d)});
    }
    int64_t tasks = part.count;
    if (part.launches.empty()) tasks = part.count = 0;
    std::vector<size_t> all;
    for (size_t k = 0; k < count; ++k) all.push_back(k);
    function(std::move(part), all, 2, [&](Code& c) {
      ElementEmitter& e = c.e;
      Value* task = b_.CreateNUWAdd(b_.CreateNUWMul(c.block, e.number(kThreads)), c.thread);
      when(c, b_.CreateICmpULT(task, e.number(tasks)), [&] {
        Value *row = b_.CreateUDiv(task, e.number(std::max<int64_t>(half, 1))),
              *pair = b_.CreateURem(task, e.number(std::max<int64_t>(half, 1)));
        // The pair's lower place: its number with a zero put in at the distance's bit.
        Value* distance = b_.CreateZExtOrTrunc(c.numbers[0], e.index_type());
        Value* mask = b_.CreateZExtOrTrunc(c.numbers[1], e.index_type());
        Value* low = b_.CreateAnd(pair, b_.CreateSub(distance, e.number(1)));
        Value* lower = stable ? b_.CreateAdd(b_.CreateShl(pair, 1), distance)
                              : b_.CreateAdd(b_.CreateShl(b_.CreateSub(pair, low), 1), low);
        Value* upper = stable ? b_.CreateAdd(lower, e.number(1)) : b_.CreateXor(lower, mask);
        when(c, b_.CreateICmpULT(upper, e.number(n)), [&] {
          Dims others, order;
          for (int64_t d : major_first(s))
            if (d != static_cast<int64_t>(dim)) others.push_back(d);
          std::vector<Value*> at(s.dims.size()), parts = e.delinearized(sizes_of(s, others), row);
          for (size_t k = 0; k < others.size(); ++k) at[static_cast<size_t>(others[k])] = parts[k];
          std::vector<Value*> args;
          std::vector<std::pair<const ElementIndex*, const ElementIndex*>> where;
          std::vector<std::pair<Value*, Value*>> values;
          for (size_t k = 0; k < count; ++k) {
            std::vector<Value*> x = at, y = at;
            x[dim] = lower, y[dim] = upper;
            where.push_back({e.index_of(outputs_[k].shape, x), e.index_of(outputs_[k].shape, y)});
            values.push_back({e.load(*c.results[k], where[k].first), e.load(*c.results[k], where[k].second)});
          }
          for (auto& [x, y] : values) args.push_back(y), args.push_back(x);
          when(c, e.apply(comparator, args)[0], [&] {
            for (size_t k = 0; k < count; ++k) {
              e.store(*c.results[k], where[k].first, values[k].second);
              e.store(*c.results[k], where[k].second, values[k].first);
            }
          });
        });
      });
    });
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
};

}  // namespace

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
