// Transposes, updates in place, scatter.

#include <unordered_set>

#include "gpu_exec/emit/gpu_kernel_builder.h"

namespace hlo {

InstId GpuBuilder::transposing(InstId i, int depth) const {
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

bool GpuBuilder::read_in_place(InstId hero, InstId output) const {
  if (m_.op(inst_) != Opcode::Fusion) return true;  // operands lie in memory
  const Dims& dims = m_.shape(hero).dims;
  std::unordered_set<InstId> seen{output};
  std::vector<InstId> list{output};
  for (size_t k = 0; k < list.size(); ++k) {
    if (list[k] == hero) continue;
    for (InstId o : m_.operands(list[k]))
      if (seen.insert(o).second) list.push_back(o);
  }
  // What reads it for `output`, by way of others too, goes element by element.
  std::unordered_set<InstId> same{hero};
  for (InstId i : m_.post_order(m_.parent(hero))) {
    if (i == hero || !seen.contains(i)) continue;
    bool reads = false;
    for (InstId o : m_.operands(i)) reads |= same.contains(o);
    if (!reads) continue;
    if (m_.shape(i).dims != dims || !(op_info(m_.op(i)).elementwise || m_.op(i) == Opcode::Copy)) return false;
    same.insert(i);
  }
  return true;
}

std::pair<int64_t, int64_t> GpuBuilder::minors(InstId i) const {
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

bool GpuBuilder::transpose(size_t which) {
  constexpr int64_t kTile = 32, kDown = 8;
  const KernelOutput& o = outputs_[which];
  if (o.part) return false;
  InstId hero = transposing(o.inst);
  if (!hero.valid() || !read_in_place(hero, o.inst)) return false;
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

int GpuBuilder::operand_of(InstId i) const {
  if (m_.op(inst_) == Opcode::Fusion)
    return m_.op(i) == Opcode::Parameter ? static_cast<int>(m_.parameter_number(i)) : -1;
  for (size_t k = 0; k < operands_.size(); ++k)
    if (operands_[k] == i && by_pointer(i)) return static_cast<int>(k);
  return -1;
}

bool GpuBuilder::in_place() {
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

GpuBuilder::ScatterForm GpuBuilder::scatter_form() const {
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

void GpuBuilder::scattered(Code& c, const ScatterForm& s, const std::vector<Value*>& at,
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

// The operands' bytes first: as they are, or by a loop of their own.
void GpuBuilder::take_over(const ScatterForm& s) {
  for (size_t k = 0; k < s.operands.size(); ++k) {
    int target = operand_of(s.operands[k]);
    bool read_again = m_.op(inst_) == Opcode::Fusion && target >= 0 && m_.use_count(s.operands[k]) != 1;
    for (size_t j = 0; j < k; ++j) read_again |= kernel_.in_place_operands[j] == target;
    kernel_.in_place_operands.push_back(m_.shape_id(s.operands[k]) == outputs_[k].shape && !read_again ? target : -1);
  }
  for (size_t k = 0; k < s.operands.size(); ++k) {
    if (kernel_.in_place_operands[k] >= 0) continue;
    KernelOutput first = outputs_[k];
    outputs_[k].inst = s.operands[k], outputs_[k].part = 0;
    loop({k});
    outputs_[k] = first;
  }
}

void GpuBuilder::scatter() {
  InstId i = root();
  ScatterForm s = scatter_form();
  const Shape &in = m_.shape(s.operands[0]), &up = m_.shape(s.updates[0]);
  CompId combiner = m_.called(i)[0];
  const Computation& body = m_.comp(combiner);
  size_t n = s.operands.size();
  bool overwrite = n == 1 && body.root == body.params[1], alone = m_.attrs(i).flag(Attr::unique_indices);
  bool atomic = n == 1 && !overwrite && in.type != ElementType::Pred && !is_complex(in.type);
  bool ordered = !alone && !atomic;
  take_over(s);
  std::vector<size_t> all;
  for (size_t k = 0; k < n; ++k) all.push_back(k);
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

void GpuBuilder::atomically(Code& c, ElementType type, llvm::Type* memory, Value* place, CompId combiner, Value* v) {
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

}  // namespace hlo
