// Reductions by rows and columns, and row fusions.
#include <bit>
#include <span>

#include "gpu_exec/emit/gpu_kernel_builder.h"

namespace hlo {

std::vector<GpuBuilder::Sum> GpuBuilder::sums_of(Code& c, const std::vector<InstId>& reduces) {
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

std::vector<Value*> GpuBuilder::values_at(Code& c, const Frame& f, const Sum& s, const std::vector<Value*>& at) {
  std::vector<Value*> out;
  for (size_t k = 0; k < s.types.size(); ++k) {
    InstId in = m_.operand(s.inst, k);
    Value* v = c.e.element(f, in, c.e.index_of(m_.shape_id(in), at));
    out.push_back(s.wide ? c.e.widened(v, s.wide) : v);
  }
  return out;
}

std::vector<Value*> GpuBuilder::combined(Code& c, const Sum& s, const std::vector<Value*>& a,
                                         const std::vector<Value*>& b) {
  if (s.wide) return {b_.CreateFAdd(a[0], b[0])};
  std::vector<Value*> args = a;
  args.insert(args.end(), b.begin(), b.end());
  return c.e.apply(s.reducer, args);
}

std::vector<Value*> GpuBuilder::loaded(const Sum& s) {
  std::vector<Value*> out;
  for (size_t k = 0; k < s.types.size(); ++k) out.push_back(b_.CreateLoad(s.types[k], s.state[k]));
  return out;
}

void GpuBuilder::keep(const Sum& s, const std::vector<Value*>& v) {
  for (size_t k = 0; k < v.size(); ++k) b_.CreateStore(v[k], s.state[k]);
}

std::vector<Value*> GpuBuilder::initial(Code& c, const Frame& f, const Sum& s) {
  std::vector<Value*> out;
  for (size_t k = 0; k < s.types.size(); ++k) {
    InstId init = m_.operand(s.inst, s.types.size() + k);
    Value* v = c.e.element(f, init, c.e.index_of(m_.shape_id(init), {}));
    out.push_back(s.wide ? c.e.widened(v, s.wide) : v);
  }
  return out;
}

void GpuBuilder::accumulate(Code& c, const Frame& f, std::span<const Sum> sums, Value* first, int64_t step, int64_t n,
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

void GpuBuilder::over_warp(Code& c, const Sum& s) {
  for (int delta = 16; delta > 0; delta /= 2) {
    std::vector<Value*> mine = loaded(s), other;
    for (Value* v : mine) other.push_back(shuffle_down(v, delta));
    c.e.scoped([&] { keep(s, combined(c, s, mine, other)); });
  }
}

std::vector<Value*> GpuBuilder::over_block(Code& c, const Sum& s, int64_t threads, const std::string& name) {
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

void GpuBuilder::put(Value* array, Value* at, Value* v) {
  llvm::Type* t = stored(v->getType());
  b_.CreateStore(t == v->getType() ? v : b_.CreateZExt(v, t), b_.CreateInBoundsGEP(t, array, at));
}

Value* GpuBuilder::get(Value* array, Value* at, llvm::Type* type) {
  llvm::Type* t = stored(type);
  Value* v = b_.CreateLoad(t, b_.CreateInBoundsGEP(t, array, at));
  return t == type ? v : b_.CreateTrunc(v, type);
}

Value* GpuBuilder::as_output(Code& c, const Sum& s, const KernelOutput& o, const std::vector<Value*>& v) {
  Value* one = v[static_cast<size_t>(o.part)];
  return s.wide ? c.e.summed(u_[o.shape].type, one) : one;
}

int64_t GpuBuilder::row_length(InstId i) const {
  const Shape& in = m_.shape(m_.operand(i, 0));
  const Dims& over = m_.attrs(i).ints(Attr::dimensions);
  Dims major = major_first(in);
  int64_t n = 1;
  size_t seen = 0;
  for (size_t k = major.size(); k-- > 0 && contains(over, major[k]); ++seen)
    n *= in.dims[static_cast<size_t>(major[k])];
  return seen == over.size() && in.elements_count() ? n : 0;
}

std::vector<Value*> GpuBuilder::input_index(Code& c, const Shape& in, const Dims& over, const std::vector<Value*>& kept,
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

void GpuBuilder::row_reduction(const std::vector<size_t>& group, int64_t n) {
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

bool GpuBuilder::column_reduction(const std::vector<size_t>& group) {
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
          for (size_t k = 0; k < sums[s].types.size(); ++k) other.push_back(get(arrays[s][k], from, sums[s].types[k]));
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

void GpuBuilder::row_fusion_kernel(const RowFusion& rows) {
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

}  // namespace hlo
