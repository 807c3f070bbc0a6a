// The host's schedules: functions over ranges of a loop, rows or tiles of columns, that the optimiser vectorises.
#include "gpu_exec/emit/kernel_builder.h"

#include <llvm/IR/MDBuilder.h>

#include "ir/leaves.h"

namespace hlo {
namespace {

using llvm::Value;

constexpr size_t kMostSlabs = 64;    // of a concatenate: each is code of its own, which has all pointers
constexpr int64_t kColumnTile = 16;  // outputs side by side whose sums stay in registers

class HostBuilder : public KernelBuilder {
 public:
  using KernelBuilder::KernelBuilder;

  Kernel build() {
    // A group of outputs of the same dimensions shares its loops.
    std::vector<std::vector<size_t>> groups;
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Dims& dims = u_[outputs_[k].shape].dims;
      auto at = std::find_if(groups.begin(), groups.end(),
                             [&](const auto& g) { return u_[outputs_[g[0]].shape].dims == dims; });
      if (at == groups.end())
        groups.push_back({k});
      else
        at->push_back(k);
    }
    // Rows share what was added up for them.
    row_ = row_fusion(m_, inst_);
    if (row_) {
      groups.assign(1, {});
      for (size_t k = 0; k < outputs_.size(); ++k) groups[0].push_back(k);
    }
    try {
      for (const auto& g : groups) {
        InstId lead = outputs_[g[0]].inst;
        // Parts that lie side by side are written one by one: no branch an element.
        if (m_.op(lead) == Opcode::Concatenate && m_.operand_count(lead) > kMostSlabs)
          fail(FailureKind::kUnsupported, "no kernel for {}: {} parts are copied faster one by one", m_.inst_name(lead),
               m_.operand_count(lead));
        if (g.size() == 1 && m_.op(lead) == Opcode::Concatenate)
          for (size_t k = 0; k < m_.operand_count(lead); ++k) host_part(g, static_cast<int>(k));
        else
          host_part(g, -1);
      }
      check_blocks();
    } catch (...) {
      take_back();
      throw;
    }
    return std::move(kernel_);
  }

 private:
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
    for (size_t k = 0; k < outputs_.size(); ++k) part.results.push_back(k);
    llvm::MDNode* all = llvm::MDNode::get(c, scopes);
    std::vector<const ElementEmitter::Buffer*> results;
    for (size_t k = 0; k < group.size(); ++k) {
      std::vector<llvm::Metadata*> rest = scopes;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(k));
      results.push_back(e.add_buffer({args[inputs + k], outputs_[group[k]].shape, llvm::MDNode::get(c, {scopes[k]}),
                                      rest.empty() ? nullptr : llvm::MDNode::get(c, rest)}));
    }
    const ElementEmitter::Frame* f = e.add_frame(frame(e, args, all));
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
    const KernelOutput& lead = outputs_[group[0]];
    const Shape& shape = u_[lead.shape];
    int64_t n = shape.elements_count();
    if (in_place(e, f, group, results, first, last, part)) return;
    if (row_) {
      rows(e, f, group, results, first, last, part);
      return;
    }
    if (columns(e, f, group, results, first, last, part)) return;
    int64_t reduced = 1;
    for (size_t k : group) reduced = std::max(reduced, work_of(outputs_[k].inst));
    auto write = [&](const ElementIndex* at) {
      std::vector<Value*> values;
      for (size_t k : group) {
        const KernelOutput& o = outputs_[k];
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
    InstId root = outputs_[which].inst, operand = m_.operand(root, slab);
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
        e.store(result, e.index_of(outputs_[which].shape, std::move(to)), v);
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

  // Each row's sums, then its elements.
  void rows(ElementEmitter& e, const ElementEmitter::Frame& f, const std::vector<size_t>& group,
            const std::vector<const ElementEmitter::Buffer*>& results, Value* first, Value* last, KernelPart& part) {
    part.schedule = "row fusion", part.count = row_->rows;
    part.work = row_->length * static_cast<int64_t>(row_->reduces.size() + 1);
    Dims kept(row_->dims.begin(), row_->dims.begin() + static_cast<ptrdiff_t>(row_->kept)),
        rest(row_->dims.begin() + static_cast<ptrdiff_t>(row_->kept), row_->dims.end());
    e.loop(first, last, e.number(1), "row", [&](Value* row) {
      std::vector<Value*> at = e.delinearized(kept, row);
      const ElementEmitter::Frame* known = &f;
      for (InstId r : row_->reduces) {
        Value* v = e.element(*known, r, e.index_of(m_.shape_id(r), at));
        ElementEmitter::Frame more = *known;
        more.values[r] = v;
        known = e.add_frame(std::move(more));
      }
      std::vector<size_t> whole;
      for (size_t k = 0; k < group.size(); ++k) {
        const KernelOutput& o = outputs_[group[k]];
        if (u_[o.shape].dims == row_->dims) {
          whole.push_back(k);
          continue;
        }
        std::vector<Value*> own = at;  // dimensions of one behind the rows' own
        own.resize(u_[o.shape].dims.size(), e.number(0));
        const ElementIndex* index = e.index_of(o.shape, std::move(own));
        e.store(*results[k], index, e.element(*known, o.inst, index, o.part));
      }
      if (whole.empty()) return;
      e.loop(e.number(0), e.number(row_->length), e.number(1), "element", [&](Value* j) {
        std::vector<Value*> full = at, inner = e.delinearized(rest, j), values;
        full.insert(full.end(), inner.begin(), inner.end());
        std::vector<const ElementIndex*> where;
        for (size_t k : whole) {
          const KernelOutput& o = outputs_[group[k]];
          where.push_back(!where.empty() && where.back()->shape == o.shape ? where.back() : e.index_of(o.shape, full));
          values.push_back(e.element(*known, o.inst, where.back(), o.part));
        }
        for (size_t k = 0; k < whole.size(); ++k) e.store(*results[whole[k]], where[k], values[k]);
      });
    });
  }

  // ROOT dynamic-update-slice of a parameter that nothing else reads: only the update is written.
  bool in_place(ElementEmitter& e, const ElementEmitter::Frame& f, const std::vector<size_t>& group,
                const std::vector<const ElementEmitter::Buffer*>& results, Value* first, Value* last,
                KernelPart& part) {
    InstId root = outputs_[group[0]].inst;
    if (outputs_.size() != 1 || m_.op(root) != Opcode::DynamicUpdateSlice || m_.op(inst_) != Opcode::Fusion)
      return false;
    InstId target = m_.operand(root, 0), update = m_.operand(root, 1);
    if (m_.op(target) != Opcode::Parameter || m_.use_count(target) != 1) return false;
    const Shape &us = m_.shape(update), &os = m_.shape(root);
    if (us.rank() == 0) return false;
    part.schedule = "in place", part.work = us.dims.back(),
    part.count = us.dims.back() ? us.elements_count() / us.dims.back() : 0;
    kernel_.in_place_operands = {static_cast<int>(m_.parameter_number(target))};
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
        e.store(*results[0], e.index_of(outputs_[0].shape, to), v);
      });
    });
    return true;
  }

  // Reductions of one kind that keep the minor dimension: what else they keep, how many elements that is, and how many
  // of the input make one.
  struct Columns {
    Dims kept_dims;
    int64_t kept = 1, reduced = 1;
  };
  std::optional<Columns> columns_of(const std::vector<size_t>& group) const {
    InstId lead = outputs_[group[0]].inst;
    if (m_.op(lead) != Opcode::Reduce) return std::nullopt;
    const Shape& in = m_.shape(m_.operand(lead, 0));
    const Dims& over = m_.attrs(lead).ints(Attr::dimensions);
    for (size_t k : group) {
      InstId i = outputs_[k].inst;
      if (m_.op(i) != Opcode::Reduce || m_.operand_count(i) != 2 || m_.attrs(i).ints(Attr::dimensions) != over ||
          m_.shape(m_.operand(i, 0)).dims != in.dims)
        return std::nullopt;
    }
    if (in.rank() == 0 || contains(over, in.rank() - 1) || in.dims.back() < kColumnTile || in.elements_count() == 0)
      return std::nullopt;
    Columns form;
    for (int64_t d = 0; d + 1 < in.rank(); ++d) {
      int64_t size = in.dims[static_cast<size_t>(d)];
      if (contains(over, d))
        form.reduced *= size;
      else
        form.kept *= size, form.kept_dims.push_back(d);
    }
    if (form.reduced < 4) return std::nullopt;
    return form;
  }

  // ROOT reduce that keeps the minor dimension: rows are added up, a tile of columns at a time.
  bool columns(ElementEmitter& e, const ElementEmitter::Frame& f, const std::vector<size_t>& group,
               const std::vector<const ElementEmitter::Buffer*>& results, Value* first, Value* last, KernelPart& part) {
    const std::optional<Columns> form = columns_of(group);
    if (!form) return false;
    const Shape& in = m_.shape(m_.operand(outputs_[group[0]].inst, 0));
    const Dims &over = m_.attrs(outputs_[group[0]].inst).ints(Attr::dimensions), &kept_dims = form->kept_dims;
    const int64_t width = in.dims.back(), tiles = (width + kColumnTile - 1) / kColumnTile;
    part.schedule = "columns", part.count = form->kept * tiles, part.work = form->reduced * kColumnTile;
    ShapeId out_id = outputs_[group[0]].shape;
    std::vector<Value*> sums;
    std::vector<llvm::Type*> types;
    std::vector<bool> wide;
    for (size_t k : group) {
      llvm::Type* sum = e.sum_type(m_.called(outputs_[k].inst)[0]);
      llvm::Type* t = sum ? sum : e.register_type(u_[outputs_[k].shape].type);
      types.push_back(t), wide.push_back(sum != nullptr);
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
          InstId init_inst = m_.operand(outputs_[group[k]].inst, 1);
          init = e.element(f, init_inst, e.index_of(m_.shape_id(init_inst), {}));
          if (wide[k]) init = e.widened(init, types[k]);
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
              InstId i = outputs_[group[k]].inst, input = m_.operand(i, 0);
              if (!where || where->shape != m_.shape_id(input)) where = e.index_of(m_.shape_id(input), at);
              Value* sum = b_.CreateLoad(types[k], b_.CreateInBoundsGEP(types[k], sums[k], j));
              Value* more = e.element(f, input, where);
              next.push_back(wide[k] ? b_.CreateFAdd(sum, e.widened(more, types[k]))
                                     : e.apply(m_.called(i)[0], {sum, more})[0]);
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
          if (wide[k]) sum = e.summed(u_[outputs_[group[k]].shape].type, sum);
          e.store(*results[k], e.index_of(out_id, std::move(to)), sum);
        });
    });
    return true;
  }

  std::optional<RowFusion> row_;
};

// Products inside a fusion are faster by a library, and a sum that every output needs again is added up once: the
// evaluator runs such bodies operation by operation.
void refuse_slow(const Module& m, InstId inst) {
  if (m.op(inst) != Opcode::Fusion) return;
  CompId body = m.called(inst)[0];
  InstId root = m.comp(body).root;
  bool by_rows = row_fusion(m, inst).has_value();
  const std::vector<ShapeId> written = leaf_shapes(m.u(), m.shape_id(root));
  for (InstId i : m.post_order(body)) {
    Opcode op = m.op(i);
    if (op == Opcode::Dot || op == Opcode::Convolution)
      fail(FailureKind::kUnsupported, "{} is run operation by operation: {} is a product", m.inst_name(inst),
           m.inst_name(i));
    InstId reader = i;
    while (reader != root && m.user_count(reader) == 1 && m.op(m.users(reader)[0]) == Opcode::Tuple)
      reader = m.users(reader)[0];
    const bool output = reader == root;
    if ((op != Opcode::Reduce && op != Opcode::ReduceWindow) || output || by_rows) continue;
    int64_t in = m.shape(m.operand(i, 0)).elements_count(), out = 0;
    if (!written.empty()) out = m.u()[written[0]].elements_count();
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
  return HostBuilder(m, inst, into, name, {}).build();
}

}  // namespace hlo
