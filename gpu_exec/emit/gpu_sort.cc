// Sorting networks, and what hands a value to another thread of a warp.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "gpu_exec/emit/gpu_kernel_builder.h"

namespace hlo {

// What is sorted lies in the results: taken over, or written there first.
void GpuBuilder::take_over(InstId i) {
  const size_t count = outputs_.size();
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
}

namespace {

// Merges of 2, 4, 8 …: the first step turns the second half round, the others halve the distance.
decltype(KernelPart::launches) sort_launches(int64_t n, int64_t half, bool stable) {
  decltype(KernelPart::launches) launches;
  for (int64_t step = 0; stable && n > 1 && step < n; ++step) launches.push_back({static_cast<int32_t>(step % 2), 0});
  for (int64_t width = 2; !stable && width <= 2 * half; width *= 2) {
    launches.push_back({static_cast<int32_t>(width / 2), static_cast<int32_t>(width - 1)});
    for (int64_t d = width / 4; d > 0; d /= 2) launches.push_back({static_cast<int32_t>(d), static_cast<int32_t>(d)});
  }
  return launches;
}

}  // namespace

void GpuBuilder::sort() {
  InstId i = root();
  const AttrSet& a = m_.attrs(i);
  const bool stable = a.flag(Attr::is_stable);
  auto dim = static_cast<size_t>(a.ints(Attr::dimensions)[0]);
  const Shape s = m_.shape(m_.operand(i, 0));
  int64_t n = s.dims[dim];
  size_t count = outputs_.size();
  take_over(i);
  CompId comparator = m_.called(i)[0];
  int64_t half =
      stable ? n / 2 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1)))) / 2;
  int64_t rows = n ? s.elements_count() / n : 0;
  constexpr int64_t kThreads = 128;
  KernelPart part;
  part.schedule = "sort", part.count = rows * std::max<int64_t>(half, 1), part.threads = kThreads;
  part.blocks = std::max<int64_t>((part.count + kThreads - 1) / kThreads, 1);
  part.launches = sort_launches(n, half, stable);
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

Value* GpuBuilder::shuffle_down(Value* v, int delta) {
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

}  // namespace hlo
