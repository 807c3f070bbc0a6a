// Elements that are sums over others: reductions, windows, products of matrices, convolutions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu_exec/emit/element_emitter.h"
#include "ir/base/check.h"
#include "ir/query/reducer.h"

namespace hlo {

using llvm::Value;

llvm::Type* ElementEmitter::sum_type(CompId reducer) const {
  const Shape& s = m_.shape(m_.comp(reducer).root);
  if (!is_float(s.type) || !adds_its_parameters(m_, reducer)) return nullptr;
  if (options_.gpu || options_.emulated) return is_narrow_float(s.type) ? b_.getFloatTy() : nullptr;
  return s.type == ElementType::F64 ? nullptr : b_.getDoubleTy();
}

std::vector<Value*> ElementEmitter::reduce(const Frame& frame, InstId inst, const ElementIndex* index) {
  const Dims& over = m_.attrs(inst).ints(Attr::dimensions);
  size_t n = m_.operand_count(inst) / 2;
  InstId first = m_.operand(inst, 0);
  const Shape& in = m_.shape(first);
  ShapeId out_id = m_.shape_id(inst);
  if (m_.shape(inst).is_tuple()) out_id = m_.shape(inst).elements[0];
  if (index->shape != out_id)
    index =
        index->linear && index->dims.empty() ? index_of_linear(out_id, index->linear) : index_of(out_id, index->dims);
  std::vector<Value*> accumulators, at(in.dims.size(), nullptr);
  llvm::Type* wide = n == 1 ? sum_type(m_.called(inst)[0]) : nullptr;
  const std::vector<Value*>& kept = dims(index);
  for (size_t k = 0, j = 0; k < at.size(); ++k)
    if (!contains(over, static_cast<int64_t>(k))) at[k] = kept[j++];
  llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> top(&entry, entry.begin());
  for (size_t k = 0; k < n; ++k) {
    InstId init = m_.operand(inst, n + k);
    llvm::Type* t = wide ? wide : register_type(m_.shape(init).type);
    accumulators.push_back(top.CreateAlloca(t));
    Value* start = scalar_operand(frame, init);
    b_.CreateStore(wide ? widened(start, wide) : start, accumulators.back());
  }
  std::vector<InstId> inputs;
  for (size_t k = 0; k < n; ++k) inputs.push_back(m_.operand(inst, k));
  Dims order = over;
  // The minor one innermost, in memory's order on the GPU.
  if (options_.addressing == Addressing::kPhysical) {
    Dims major = major_first(in);
    std::sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
      return std::find(major.begin(), major.end(), x) < std::find(major.begin(), major.end(), y);
    });
  } else {
    std::sort(order.begin(), order.end());
  }
  auto nest = [&](auto&& self, size_t depth) -> void {
    if (depth == order.size()) {
      const ElementIndex* where = index_of(m_.shape_id(first), at);
      if (wide) {
        llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
        Value* more = widened(element(frame, first, where), wide);
        llvm::FastMathFlags flags;
        flags.setAllowReassoc(options_.reassociate);
        b_.setFastMathFlags(flags);
        b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(wide, accumulators[0]), more), accumulators[0]);
        return;
      }
      std::vector<Value*> args;
      for (size_t k = 0; k < n; ++k)
        args.push_back(b_.CreateLoad(register_type(m_.shape(inputs[k]).type), accumulators[k]));
      for (InstId i : inputs) args.push_back(element(frame, i, i == first ? where : index_of(m_.shape_id(i), at)));
      bool outer = reducing_;
      reducing_ = true;
      std::vector<Value*> next = apply(m_.called(inst)[0], args);
      reducing_ = outer;
      for (size_t k = 0; k < n; ++k) {
        if (next[k]->getType() != args[k]->getType()) refuse(inst, "its computation changes types");
        b_.CreateStore(next[k], accumulators[k]);
      }
      return;
    }
    auto d = static_cast<size_t>(order[depth]);
    if (in.dims[d] == 1) {
      at[d] = number(0);
      self(self, depth + 1);
      return;
    }
    loop(number(0), number(in.dims[d]), number(1), "reduce", [&](Value* i) {
      at[d] = i;
      self(self, depth + 1);
    });
  };
  bool empty = in.elements_count() == 0;
  if (!empty) nest(nest, 0);
  if (wide) return {summed(in.type, b_.CreateLoad(wide, accumulators[0]))};
  std::vector<Value*> out;
  for (size_t k = 0; k < n; ++k) out.push_back(b_.CreateLoad(register_type(m_.shape(inputs[k]).type), accumulators[k]));
  return out;
}

// What is emitted by `body` runs where the condition holds.
void ElementEmitter::when(Value* condition, const std::function<void()>& body) {
  if (condition == b_.getTrue()) {
    scoped(body);
    return;
  }
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* then = llvm::BasicBlock::Create(b_.getContext(), "inside", f);
  auto* end = llvm::BasicBlock::Create(b_.getContext(), "behind", f);
  b_.CreateCondBr(condition, then, end);
  b_.SetInsertPoint(then);
  scoped(body);
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
}

Value* ElementEmitter::variable(llvm::Type* type, Value* start) {
  llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
  Value* v = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
  b_.CreateStore(start, v);
  return v;
}

// The places of one window in an array of those sizes, row-major by the window, each with whether it lies inside.
void ElementEmitter::window_places(const Window& window, const Dims& sizes, const std::vector<Value*>& out,
                                   const std::function<void(const std::vector<Value*>&, Value*)>& body) {
  std::vector<Value*> at(out.size());
  auto nest = [&](auto&& self, size_t d, Value* inside) -> void {
    if (d == out.size()) {
      body(at, inside);
      return;
    }
    const WindowDim& w = window.dims[d];
    auto one = [&](Value* k) {
      Value* i = add(add(mul(out[d], number(w.stride)), mul(k, number(w.rhs_dilate))), number(-w.pad_low));
      Value* here = inside;
      if (w.lhs_dilate != 1) {
        here = b_.CreateAnd(here, b_.CreateICmpSGE(i, number(0)));
        here = b_.CreateAnd(here, b_.CreateICmpEQ(b_.CreateSRem(i, number(w.lhs_dilate)), number(0)));
        i = b_.CreateSDiv(i, number(w.lhs_dilate));
      }
      if (w.pad_low != 0 || w.pad_high != 0 || w.lhs_dilate != 1)
        here = here == b_.getTrue() ? b_.CreateICmpULT(i, number(sizes[d]))
                                    : b_.CreateAnd(here, b_.CreateICmpULT(i, number(sizes[d])));
      at[d] = i;
      self(self, d + 1, here);
    };
    if (w.size == 1)
      one(number(0));
    else
      loop(number(0), number(w.size), number(1), "window", one);
  };
  nest(nest, 0, b_.getTrue());
}

std::vector<Value*> ElementEmitter::reduce_window(const Frame& frame, InstId inst, const ElementIndex* index) {
  size_t n = m_.operand_count(inst) / 2;
  std::vector<Value*> accumulators, out;
  for (size_t k = 0; k < n; ++k) {
    InstId init = m_.operand(inst, n + k);
    accumulators.push_back(variable(register_type(m_.shape(init).type), scalar_operand(frame, init)));
  }
  auto loaded = [&] {
    std::vector<Value*> v;
    for (size_t k = 0; k < n; ++k)
      v.push_back(b_.CreateLoad(register_type(m_.shape(m_.operand(inst, k)).type), accumulators[k]));
    return v;
  };
  const Window& window = *m_.attrs(inst).get<Window>(Attr::window);
  window_places(window, m_.shape(m_.operand(inst, 0)).dims, dims(index),
                [&](const std::vector<Value*>& at, Value* inside) {
                  when(inside, [&] {
                    std::vector<Value*> args = loaded();
                    for (size_t k = 0; k < n; ++k) {
                      InstId in = m_.operand(inst, k);
                      args.push_back(element(frame, in, index_of(m_.shape_id(in), at)));
                    }
                    std::vector<Value*> next = apply(m_.called(inst)[0], args);
                    for (size_t k = 0; k < n; ++k) {
                      if (next[k]->getType() != args[k]->getType()) refuse(inst, "its computation changes types");
                      b_.CreateStore(next[k], accumulators[k]);
                    }
                  });
                });
  return loaded();
}

// An element gathers what is scattered to it: of every window that covers it, in the order of the sources, those that
// select it. So no two threads write to one place, and sums have one order.
Value* ElementEmitter::select_and_scatter(const Frame& frame, InstId inst, const ElementIndex* index) {
  InstId in = m_.operand(inst, 0), source = m_.operand(inst, 1);
  const AttrSet& a = m_.attrs(inst);
  const Window& window = *a.get<Window>(Attr::window);
  const Dims &sizes = m_.shape(in).dims, &outputs = m_.shape(source).dims;
  CompId select = a.comp(Attr::select), scatter = a.comp(Attr::scatter);
  for (const WindowDim& w : window.dims)
    if (w.lhs_dilate != 1 || w.rhs_dilate != 1) refuse(inst, "its window is dilated");
  llvm::Type *type = register_type(m_.shape(in).type), *wide = sum_type(scatter);
  Value* start = scalar_operand(frame, m_.operand(inst, 2));
  Value* sum = variable(wide ? wide : type, wide ? widened(start, wide) : start);
  std::vector<Value*> own = dims(index), from(own.size());
  auto add_to_sum = [&](Value* v) {
    Value* before = b_.CreateLoad(wide ? wide : type, sum);
    b_.CreateStore(wide ? b_.CreateFAdd(before, widened(v, wide)) : apply(scatter, {v, before})[0], sum);
  };
  auto one = [&](const std::vector<Value*>& window_of) {
    Value *best = variable(type, llvm::Constant::getNullValue(type)), *any = variable(b_.getInt1Ty(), b_.getFalse()),
          *mine = variable(b_.getInt1Ty(), b_.getFalse());
    window_places(window, sizes, window_of, [&](const std::vector<Value*>& at, Value* inside) {
      when(inside, [&] {
        Value* v = element(frame, in, index_of(m_.shape_id(in), at));
        // select(chosen so far, candidate): false takes the candidate.
        Value* keeps = apply(select, {b_.CreateLoad(type, best), v})[0];
        Value* takes = b_.CreateOr(b_.CreateNot(b_.CreateLoad(b_.getInt1Ty(), any)), b_.CreateNot(keeps));
        when(takes, [&] {
          Value* here = b_.getTrue();
          for (size_t d = 0; d < at.size(); ++d) here = b_.CreateAnd(here, b_.CreateICmpEQ(at[d], own[d]));
          b_.CreateStore(v, best), b_.CreateStore(b_.getTrue(), any), b_.CreateStore(here, mine);
        });
      });
    });
    when(b_.CreateLoad(b_.getInt1Ty(), mine),
         [&] { add_to_sum(element(frame, source, index_of(m_.shape_id(source), window_of))); });
  };
  auto nest = [&](auto&& self, size_t d, Value* inside) -> void {
    if (d == own.size()) {
      when(inside, [&] { one(from); });
      return;
    }
    // Windows that can reach here: as many as strides fit into one, up to the last that does not begin behind.
    const WindowDim& w = window.dims[d];
    int64_t reach = (w.size + w.stride - 1) / w.stride;
    Value* padded = add(own[d], number(w.pad_low));
    Value* last = w.stride == 1 ? padded : b_.CreateSDiv(padded, number(w.stride));
    auto each = [&](Value* k) {
      Value* s = b_.CreateSub(last, b_.CreateSub(number(reach - 1), k));
      Value* offset = b_.CreateSub(padded, b_.CreateMul(s, number(w.stride)));
      Value* here = b_.CreateAnd(b_.CreateICmpULT(s, number(outputs[d])), b_.CreateICmpULT(offset, number(w.size)));
      from[d] = s;
      self(self, d + 1, b_.CreateAnd(inside, here));
    };
    if (reach == 1)
      each(number(0));
    else
      loop(number(0), number(reach), number(1), "windows", each);
  };
  nest(nest, 0, b_.getTrue());
  Value* out = b_.CreateLoad(wide ? wide : type, sum);
  return wide ? summed(m_.shape(in).type, out) : out;
}

ElementEmitter::ProductSum ElementEmitter::product_sum(InstId inst) {
  ProductSum s;
  s.left = m_.shape(m_.operand(inst, 0)).type, s.right = m_.shape(m_.operand(inst, 1)).type,
  s.out = m_.shape(inst).type;
  if (!is_float(s.out) && !is_integral(s.out) && !is_complex(s.out)) refuse(inst, "of that type");
  if (is_complex(s.left) != is_complex(s.out) || is_complex(s.right) != is_complex(s.out))
    refuse(inst, "of complex numbers and others");
  bool wide = false;
  for (ElementType t : {s.left, s.right, s.out}) {
    if (!is_float(s.out) && is_float(t)) refuse(inst, "floats summed as integers");
    wide |= t == ElementType::F64;
  }
  s.type = !is_float(s.out) ? register_type(s.out) : wide ? b_.getDoubleTy() : b_.getFloatTy();
  llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
  s.at = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(s.type);
  b_.CreateStore(llvm::Constant::getNullValue(s.type), s.at);
  return s;
}

void ElementEmitter::add_product(const ProductSum& s, Value* p, Value* q) {
  if (is_complex(s.out)) {
    Value* product = complex_product(b_.CreateFPCast(p, s.type), b_.CreateFPCast(q, s.type));
    b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(s.type, s.at), product), s.at);
    return;
  }
  bool real = is_float(s.out);
  auto widened = [&](Value* v, ElementType from) {
    bool sign = is_signed_int(from);
    if (!real) return sign ? b_.CreateSExtOrTrunc(v, s.type) : b_.CreateZExtOrTrunc(v, s.type);
    if (is_float(from)) return b_.CreateFPCast(v, s.type);
    return sign ? b_.CreateSIToFP(v, s.type) : b_.CreateUIToFP(v, s.type);
  };
  p = widened(p, s.left), q = widened(q, s.right);
  Value* before = b_.CreateLoad(s.type, s.at);
  if (!real) {
    b_.CreateStore(b_.CreateAdd(before, b_.CreateMul(p, q)), s.at);
    return;
  }
  llvm::FastMathFlags flags;
  flags.setAllowReassoc(options_.reassociate), flags.setAllowContract(true);
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  b_.setFastMathFlags(flags);
  b_.CreateStore(b_.CreateFAdd(before, b_.CreateFMul(p, q)), s.at);
}

Value* ElementEmitter::finished(const ProductSum& s) {
  Value* v = b_.CreateLoad(s.type, s.at);
  return s.out == ElementType::F64 || is_complex(s.out) ? v : summed(s.out, v);
}

Value* ElementEmitter::dot(const Frame& frame, InstId inst, const ElementIndex* index) {
  const AttrSet& a = m_.attrs(inst);
  InstId l = m_.operand(inst, 0), r = m_.operand(inst, 1);
  const Shape &ls = m_.shape(l), &rs = m_.shape(r);
  const Dims &lb = a.ints(Attr::lhs_batch_dims), &lc = a.ints(Attr::lhs_contracting_dims),
             &rb = a.ints(Attr::rhs_batch_dims), &rc = a.ints(Attr::rhs_contracting_dims);
  std::vector<Value*> out = dims(index), x(ls.dims.size()), y(rs.dims.size());
  size_t next = 0;
  for (size_t k = 0; k < lb.size(); ++k) x[static_cast<size_t>(lb[k])] = y[static_cast<size_t>(rb[k])] = out[next++];
  for (int64_t k = 0; k < ls.rank(); ++k)
    if (!contains(lb, k) && !contains(lc, k)) x[static_cast<size_t>(k)] = out[next++];
  for (int64_t k = 0; k < rs.rank(); ++k)
    if (!contains(rb, k) && !contains(rc, k)) y[static_cast<size_t>(k)] = out[next++];
  ProductSum sum = product_sum(inst);
  auto nest = [&](auto&& self, size_t k) -> void {
    if (k == lc.size()) {
      add_product(sum, element(frame, l, index_of(m_.shape_id(l), x)), element(frame, r, index_of(m_.shape_id(r), y)));
      return;
    }
    loop(number(0), number(ls.dims[static_cast<size_t>(lc[k])]), number(1), "dot", [&](Value* i) {
      x[static_cast<size_t>(lc[k])] = y[static_cast<size_t>(rc[k])] = i;
      self(self, k + 1);
    });
  };
  if (ls.elements_count() && rs.elements_count()) nest(nest, 0);
  return finished(sum);
}

Value* ElementEmitter::convolution(const Frame& frame, InstId inst, const ElementIndex* index) {
  const AttrSet& a = m_.attrs(inst);
  InstId l = m_.operand(inst, 0), r = m_.operand(inst, 1);
  const Shape &in = m_.shape(l), &kernel = m_.shape(r);
  const DimLabels& d = *a.get<DimLabels>(Attr::dim_labels);
  static const Window kNone;
  const Window* window = a.get<Window>(Attr::window);
  if (!window) window = &kNone;
  auto at = [](int64_t k) { return static_cast<size_t>(k); };
  int64_t groups = a.integer(Attr::feature_group_count, 1), batch_groups = a.integer(Attr::batch_group_count, 1);
  int64_t k_in = kernel.dims[at(d.kernel_input)], k_out = kernel.dims[at(d.kernel_output)];
  const std::vector<Value*> out = dims(index);
  std::vector<Value*> x(in.dims.size()), y(kernel.dims.size());
  y[at(d.kernel_output)] = out[at(d.output_feature)];
  // Which group of features, or of the batch, this output feature belongs to.
  Value* batch = out[at(d.output_batch)];
  Value* first_in = number(0);
  if (groups > 1) first_in = mul(div(out[at(d.output_feature)], k_out / groups), number(k_in));
  if (batch_groups > 1)
    batch = add(
        mul(div(out[at(d.output_feature)], k_out / batch_groups), number(in.dims[at(d.input_batch)] / batch_groups)),
        batch);
  x[at(d.input_batch)] = batch;
  ProductSum sum = product_sum(inst);
  auto features = [&] {
    auto one = [&](Value* k) {
      x[at(d.input_feature)] = add(first_in, k), y[at(d.kernel_input)] = k;
      add_product(sum, element(frame, l, index_of(m_.shape_id(l), x)), element(frame, r, index_of(m_.shape_id(r), y)));
    };
    if (k_in == 1)
      one(number(0));
    else
      loop(number(0), number(k_in), number(1), "feature", one);
  };
  auto nest = [&](auto&& self, size_t s, Value* inside) -> void {
    if (s == window->dims.size()) {
      if (inside == b_.getTrue()) {
        scoped(features);
        return;
      }
      llvm::Function* f = b_.GetInsertBlock()->getParent();
      auto* then = llvm::BasicBlock::Create(b_.getContext(), "in_window", f);
      auto* end = llvm::BasicBlock::Create(b_.getContext(), "window", f);
      b_.CreateCondBr(inside, then, end);
      b_.SetInsertPoint(then);
      scoped(features);
      b_.CreateBr(end);
      b_.SetInsertPoint(end);
      return;
    }
    const WindowDim& w = window->dims[s];
    int64_t taps = kernel.dims[at(d.kernel_spatial[s])], extent = in.dims[at(d.input_spatial[s])];
    auto one = [&](Value* k) {
      y[at(d.kernel_spatial[s])] = w.reversal ? b_.CreateNSWSub(number(taps - 1), k) : k;
      Value* i = add(add(mul(out[at(d.output_spatial[s])], number(w.stride)), mul(k, number(w.rhs_dilate))),
                     number(-w.pad_low));
      Value* here = inside;
      auto also = [&](Value* c) { here = here == b_.getTrue() ? c : b_.CreateAnd(here, c); };
      if (w.lhs_dilate != 1) {
        also(b_.CreateICmpSGE(i, number(0)));
        also(b_.CreateICmpEQ(b_.CreateSRem(i, number(w.lhs_dilate)), number(0)));
        i = b_.CreateSDiv(i, number(w.lhs_dilate));
      }
      if (w.pad_low != 0 || w.pad_high != 0 || w.lhs_dilate != 1) also(b_.CreateICmpULT(i, number(extent)));
      x[at(d.input_spatial[s])] = i;
      self(self, s + 1, here);
    };
    if (taps == 1)
      one(number(0));
    else
      loop(number(0), number(taps), number(1), "tap", one);
  };
  if (in.elements_count() && kernel.elements_count()) nest(nest, 0, b_.getTrue());
  return finished(sum);
}

}  // namespace hlo
