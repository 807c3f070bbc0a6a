#include "gpu_exec/emit/element_emitter.h"

#include <fmt/format.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "gpu_exec/emit/kernel.h"
#include "ir/base/check.h"
#include "ir/base/stack_guard.h"
#include "ir/eval/kernels.h"

namespace hlo {

using llvm::Value;

Dims major_first(const Shape& s) {
  Dims order = s.has_layout && s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major
                                                                               : default_minor_to_major(s.rank());
  std::reverse(order.begin(), order.end());
  return order;
}

namespace {

enum { kAdd, kMul, kDiv, kRem };

// Values whose indices into an array's operand are its own.
bool same_index(Opcode op) { return op == Opcode::Copy || (op_info(op).elementwise && op != Opcode::Complex); }

}  // namespace

ElementEmitter::ElementEmitter(const Module& m, llvm::IRBuilder<>& builder, EmitOptions options,
                               std::function<llvm::Value*(LitId)> constant_buffer)
    : m_(m),
      u_(m.u()),
      b_(builder),
      options_(options),
      constant_buffer_(std::move(constant_buffer)),
      index_type_(llvm::IntegerType::get(builder.getContext(), static_cast<unsigned>(options.index_bits))) {
  scopes_.emplace_back();
}

void ElementEmitter::refuse(InstId inst, std::string_view why) const {
  fail(FailureKind::kUnsupported, "no kernel for {} ({}): {}", m_.inst_name(inst), op_text(m_.op(inst)), why);
}

// --- indices ---

const ElementIndex* ElementEmitter::index_of(ShapeId shape, std::vector<Value*> dims) {
  indices_.push_back({std::move(dims), nullptr, shape});
  return &indices_.back();
}

const ElementIndex* ElementEmitter::index_of_linear(ShapeId shape, Value* linear) {
  indices_.push_back({{}, linear, shape});
  return &indices_.back();
}

Value* ElementEmitter::cached(int op, Value* a, Value* b, const std::function<Value*()>& make) {
  std::tuple<int, Value*, Value*> key{op, a, b};
  for (size_t k = scopes_.size(); k-- > 0;)
    if (auto at = scopes_[k].sums.find(key); at != scopes_[k].sums.end()) return at->second;
  Value* v = make();
  scopes_.back().sums[key] = v;
  return v;
}

Value* ElementEmitter::add(Value* a, Value* b) {
  auto* ca = llvm::dyn_cast<llvm::ConstantInt>(a);
  auto* cb = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (ca && ca->isZero()) return b;
  if (cb && cb->isZero()) return a;
  return cached(kAdd, a, b, [&] { return b_.CreateNSWAdd(a, b); });
}

Value* ElementEmitter::mul(Value* a, Value* b) {
  auto* cb = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (cb && cb->isOne()) return a;
  if (cb && cb->isZero()) return b;
  return cached(kMul, a, b, [&] { return b_.CreateNSWMul(a, b); });
}

Value* ElementEmitter::div(Value* a, int64_t by) {
  if (by == 1) return a;
  Value* b = number(by);
  return cached(kDiv, a, b, [&] { return b_.CreateUDiv(a, b); });
}

Value* ElementEmitter::rem(Value* a, int64_t by) {
  if (by == 1) return number(0);
  Value* b = number(by);
  return cached(kRem, a, b, [&] { return b_.CreateURem(a, b); });
}

std::vector<Value*> ElementEmitter::delinearized(const Dims& dims, Value* linear) {
  std::vector<Value*> out(dims.size());
  Value* rest = linear;
  for (size_t k = dims.size(); k-- > 0;) {
    bool first = true;
    for (size_t j = 0; j < k; ++j) first = first && dims[j] == 1;
    out[k] = dims[k] == 1 ? number(0) : first ? rest : rem(rest, dims[k]);
    if (!first) rest = div(rest, dims[k]);
  }
  return out;
}

const std::vector<Value*>& ElementEmitter::dims(const ElementIndex* index) {
  const Shape& s = u_[index->shape];
  if (!index->linear || !index->dims.empty() || s.rank() == 0) return index->dims;
  for (size_t k = scopes_.size(); k-- > 0;)
    if (auto at = scopes_[k].dims.find(index); at != scopes_[k].dims.end()) return at->second;
  std::vector<Value*> d = delinearized(s.dims, index->linear);
  return scopes_.back().dims[index] = std::move(d);
}

Value* ElementEmitter::linear(const ElementIndex* index) {
  if (index->linear) return index->linear;
  for (size_t k = scopes_.size(); k-- > 0;)
    if (auto at = scopes_[k].linear.find(index); at != scopes_[k].linear.end()) return at->second;
  const Shape& s = u_[index->shape];
  Value* sum = number(0);
  for (size_t k = 0; k < s.dims.size(); ++k)
    sum = add(mul(sum, number(s.dims[k])), s.dims[k] == 1 ? number(0) : index->dims[k]);
  return scopes_.back().linear[index] = sum;
}

std::vector<Value*> ElementEmitter::reshaped(const Dims& from, const std::vector<Value*>& at, const Dims& to) {
  // Groups of dimensions with the same product on both sides are solved one by one.
  std::vector<Value*> out(from.size(), number(0));
  if (contains(from, 0)) return out;  // no elements, and no place that is asked for
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t i0 = i, j0 = j;
    int64_t a = i < from.size() ? from[i++] : 1, b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b) {
        HLO_CHECK(i < from.size(), "a reshape between unequal sizes");
        a *= from[i++];
      } else {
        HLO_CHECK(j < to.size(), "a reshape between unequal sizes");
        b *= to[j++];
      }
    }
    std::vector<size_t> fs, ts;  // dimensions of one hold nothing
    for (size_t k = i0; k < i; ++k)
      if (from[k] != 1) fs.push_back(k);
    for (size_t k = j0; k < j; ++k)
      if (to[k] != 1) ts.push_back(k);
    if (fs.empty()) continue;
    if (fs.size() == 1 && ts.size() == 1) {
      out[fs[0]] = at[ts[0]];
      continue;
    }
    Value* sum = number(0);
    for (size_t k : ts) sum = add(mul(sum, number(to[k])), at[k]);
    Dims sizes;
    for (size_t k : fs) sizes.push_back(from[k]);
    std::vector<Value*> parts = delinearized(sizes, sum);
    for (size_t k = 0; k < fs.size(); ++k) out[fs[k]] = parts[k];
  }
  return out;
}

Value* ElementEmitter::address(const Buffer& buffer, const ElementIndex* index) {
  const Shape& s = u_[buffer.shape];
  Value* offset;
  if (options_.addressing == Addressing::kLogical || !s.has_layout || is_default_layout(s.layout)) {
    offset = linear(index);
  } else {
    const std::vector<Value*>& d = dims(index);
    offset = number(0);
    for (int64_t k : major_first(s)) {
      auto dim = static_cast<size_t>(k);
      offset = add(mul(offset, number(s.dims[dim])), s.dims[dim] == 1 ? number(0) : d[dim]);
    }
  }
  return b_.CreateInBoundsGEP(memory_type(s.type), buffer.base, offset);
}

Value* ElementEmitter::load(const Buffer& buffer, const ElementIndex* index) {
  const Shape& s = u_[buffer.shape];
  llvm::LoadInst* load = b_.CreateLoad(memory_type(s.type), address(buffer, index));
  if (buffer.scope) load->setMetadata(llvm::LLVMContext::MD_alias_scope, buffer.scope);
  if (buffer.others) load->setMetadata(llvm::LLVMContext::MD_noalias, buffer.others);
  return from_memory(s.type, load);
}

void ElementEmitter::store(const Buffer& buffer, const ElementIndex* index, Value* value) {
  llvm::StoreInst* store = b_.CreateStore(to_memory(u_[buffer.shape].type, value), address(buffer, index));
  if (buffer.scope) store->setMetadata(llvm::LLVMContext::MD_alias_scope, buffer.scope);
  if (buffer.others) store->setMetadata(llvm::LLVMContext::MD_noalias, buffer.others);
}

// --- control ---

void ElementEmitter::scoped(const std::function<void()>& body) {
  scopes_.emplace_back();
  body();
  scopes_.pop_back();
}

void ElementEmitter::loop(Value* from, Value* to, Value* step, const std::string& name,
                          const std::function<void(Value*)>& body) {
  llvm::LLVMContext& c = b_.getContext();
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(c, name, f);
  auto* after = llvm::BasicBlock::Create(c, name + ".end", f);
  b_.CreateCondBr(b_.CreateICmpSLT(from, to), inside, after);
  b_.SetInsertPoint(inside);
  llvm::PHINode* i = b_.CreatePHI(from->getType(), 2, name + ".i");
  i->addIncoming(from, before);
  scoped([&] { body(i); });
  Value* next = b_.CreateNSWAdd(i, step);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, to), inside, after);
  b_.SetInsertPoint(after);
}

Value* ElementEmitter::choose(Value* condition, llvm::Type* type, const std::function<Value*()>& yes,
                              const std::function<Value*()>& no) {
  llvm::LLVMContext& c = b_.getContext();
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* then = llvm::BasicBlock::Create(c, "then", f);
  auto* other = llvm::BasicBlock::Create(c, "else", f);
  auto* end = llvm::BasicBlock::Create(c, "end", f);
  b_.CreateCondBr(condition, then, other);
  b_.SetInsertPoint(then);
  Value *a = nullptr, *b = nullptr;
  scoped([&] { a = yes(); });
  then = b_.GetInsertBlock();
  b_.CreateBr(end);
  b_.SetInsertPoint(other);
  scoped([&] { b = no(); });
  other = b_.GetInsertBlock();
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  llvm::PHINode* phi = b_.CreatePHI(type, 2);
  phi->addIncoming(a, then), phi->addIncoming(b, other);
  return phi;
}

// --- elements ---

Value* ElementEmitter::known(const Frame& frame, InstId inst, const ElementIndex* index, int part) const {
  Key key{&frame, inst, index, part};
  for (size_t k = scopes_.size(); k-- > 0;)
    if (auto at = scopes_[k].values.find(key); at != scopes_[k].values.end()) return at->second;
  auto at = frame.values.find(inst);
  return at == frame.values.end() ? nullptr : at->second;
}

// What `inst` needs, operands first and in order as recursion would have it, along elementwise operations.
void ElementEmitter::emit_operands(const Frame& frame, InstId inst, const ElementIndex* index) {
  auto passes_through = [&](InstId i) {
    Opcode op = m_.op(i);
    return op_info(op).elementwise && op != Opcode::BitcastConvert && m_.shape(i).is_array() &&
           !frame.in_memory.contains(i) && !known(frame, i, index, 0);
  };
  if (!passes_through(inst)) return;
  std::vector<std::pair<InstId, size_t>> path{{inst, 0}};
  while (!path.empty()) {
    InstId i = path.back().first;
    size_t k = path.back().second++;
    if (k == m_.operand_count(i)) {
      path.pop_back();
      if (!path.empty()) element(frame, i, index);
      continue;
    }
    InstId o = m_.operand(i, k);
    bool scalar = m_.shape(o).rank() == 0 && m_.shape(i).rank() != 0;
    if (!scalar && passes_through(o))
      path.push_back({o, 0});
    else
      operand_element(frame, i, k, index);
  }
}

Value* ElementEmitter::element(const Frame& frame, InstId inst, const ElementIndex* index, int part) {
  if (Value* v = known(frame, inst, index, part)) return v;
  check_stack("operations of one kernel are nested");
  constexpr int kPlainDepth = 64;
  struct Depth {
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth;
  } depth(depth_);
  if (depth_ % kPlainDepth == 0) emit_operands(frame, inst, index);
  Key key{&frame, inst, index, part};
  auto found = frame.in_memory.find(inst);
  Value* v = found == frame.in_memory.end() ? emit(frame, inst, index, part) : load(*found->second, index);
  scopes_.back().values[key] = v;
  return v;
}

std::vector<Value*> ElementEmitter::apply(CompId comp, const std::vector<Value*>& arguments) {
  Frame f;
  const auto& params = m_.comp(comp).params;
  for (size_t k = 0; k < params.size() && k < arguments.size(); ++k)
    if (arguments[k]->getType() != register_type(m_.shape(params[k]).type))
      fail(FailureKind::kUnsupported, "no kernel calls computation {} with a parameter of another type",
           m_.comp_name(comp));
  for (Value* a : arguments) f.params.push_back({nullptr, a, InstId(), nullptr});
  const Frame* frame = add_frame(std::move(f));
  InstId root = m_.comp(comp).root;
  std::vector<Value*> out;
  if (m_.op(root) == Opcode::Tuple) {
    for (size_t k = 0; k < m_.operand_count(root); ++k) {
      InstId o = m_.operand(root, k);
      out.push_back(element(*frame, o, index_of(m_.shape_id(o), {})));
    }
  } else {
    out.push_back(element(*frame, root, index_of(m_.shape_id(root), {})));
  }
  return out;
}

Value* ElementEmitter::scalar_operand(const Frame& frame, InstId inst) {
  // One index a scalar, so that its value is emitted once.
  std::tuple<const ElementIndex*, InstId> key{nullptr, inst};
  for (size_t k = scopes_.size(); k-- > 0;)
    if (auto at = scopes_[k].indices.find(key); at != scopes_[k].indices.end()) return element(frame, inst, at->second);
  const ElementIndex* index = index_of(m_.shape_id(inst), {});
  scopes_.back().indices[key] = index;
  return element(frame, inst, index);
}

Value* ElementEmitter::clamped_start(const Frame& frame, InstId start, int64_t most) {
  if (!is_integral(m_.shape(start).type)) refuse(start, "it is the place of a slice and no integer");
  Value* v = scalar_operand(frame, start);
  bool sign = is_signed_int(m_.shape(start).type);
  Value* wide = sign ? b_.CreateSExtOrTrunc(v, b_.getInt64Ty()) : b_.CreateZExtOrTrunc(v, b_.getInt64Ty());
  Value* top = b_.getInt64(static_cast<uint64_t>(most));
  wide = sign ? intrinsic(llvm::Intrinsic::smax, wide, b_.getInt64(0)) : wide;
  wide = intrinsic(sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, wide, top);
  return b_.CreateTrunc(wide, index_type_);
}

Value* ElementEmitter::constant(InstId inst, const ElementIndex* index) {
  const Literal& lit = m_.literal(inst);
  const Shape& s = m_.shape(inst);
  if (lit.elided) refuse(inst, "its value is elided");
  auto one = [&](const char* at) -> llvm::Constant* {
    if (is_complex(s.type)) {
      std::complex<double> c = load_complex(s.type, at);
      llvm::Type* t = register_type(component_type(s.type));
      return llvm::ConstantVector::get({llvm::ConstantFP::get(t, c.real()), llvm::ConstantFP::get(t, c.imag())});
    }
    if (is_float(s.type)) return llvm::ConstantFP::get(register_type(s.type), load_double(s.type, at));
    return llvm::ConstantInt::get(register_type(s.type), static_cast<uint64_t>(load_int(s.type, at)),
                                  is_signed_int(s.type));
  };
  int64_t n = s.elements_count();
  int width = storage_bytes(s.type);
  bool uniform = true;
  for (int64_t k = 1; k < n && uniform; ++k)
    uniform = std::equal(lit.bytes.begin(), lit.bytes.begin() + width, lit.bytes.begin() + k * width);
  if (uniform && n) {
    // A NaN's bits survive as they are only where they are loaded.
    return one(lit.bytes.data());
  }
  Buffer buffer{constant_buffer_(m_.literal_id(inst)), u_.with_default_layout(m_.shape_id(inst)), nullptr, nullptr};
  return load(buffer, index);
}

Value* ElementEmitter::parameter(const Frame& frame, InstId inst, const ElementIndex* index, int part) {
  const Binding& p = frame.params[static_cast<size_t>(m_.parameter_number(inst))];
  if (p.scalar) return p.scalar;
  if (p.buffer) return load(*p.buffer, index);
  return element(*p.frame, p.inst, index, part);
}

Value* ElementEmitter::iota(InstId inst, const ElementIndex* index) {
  const Shape& shape = m_.shape(inst);
  Value* at = dims(index)[static_cast<size_t>(m_.attrs(inst).integer(Attr::iota_dimension))];
  llvm::Type* t = register_type(shape.type);
  if (is_complex(shape.type)) {
    Value* re = b_.CreateUIToFP(at, register_type(component_type(shape.type)));
    return complex_of(re, llvm::ConstantFP::get(re->getType(), 0));
  }
  if (is_narrow_float(shape.type)) return rounded(shape.type, to_odd(b_.CreateUIToFP(at, b_.getDoubleTy())));
  if (is_float(shape.type)) return b_.CreateUIToFP(at, t);
  return b_.CreateZExtOrTrunc(at, t);
}

Value* ElementEmitter::reduction(const Frame& frame, InstId inst, const ElementIndex* index, int part) {
  std::vector<Value*> all =
      m_.op(inst) == Opcode::Reduce ? reduce(frame, inst, index) : reduce_window(frame, inst, index);
  for (size_t k = 0; k < all.size(); ++k) scopes_.back().values[{&frame, inst, index, static_cast<int>(k)}] = all[k];
  return all[static_cast<size_t>(part)];
}

Value* ElementEmitter::tuple_element(const Frame& frame, InstId inst, const ElementIndex* index) {
  if (InstId from = handed_on(m_, inst); from != inst) return element(frame, from, index);
  InstId o = handed_on(m_, m_.operand(inst, 0));
  int k = static_cast<int>(m_.attrs(inst).integer(Attr::index));
  if (m_.op(o) == Opcode::Reduce || m_.op(o) == Opcode::ReduceWindow) return element(frame, o, index, k);
  refuse(inst, fmt::format("a tuple that {} makes", op_text(m_.op(o))));
}

Value* ElementEmitter::called(const Frame& frame, InstId inst, const ElementIndex* index) {
  Frame inner;
  for (InstId o : m_.operands(inst)) inner.params.push_back({nullptr, nullptr, o, &frame});
  InstId root = m_.comp(m_.called(inst)[0]).root;
  if (m_.shape(root).is_tuple()) refuse(inst, "several results inside a kernel");
  // The root's layout may be spelt otherwise; its dimensions are the same.
  return element(*add_frame(std::move(inner)), root, index);
}

Value* ElementEmitter::emit(const Frame& frame, InstId inst, const ElementIndex* index, int part) {
  Opcode op = m_.op(inst);
  const Shape& shape = m_.shape(inst);
  switch (op) {
    case Opcode::Parameter:
      return parameter(frame, inst, index, part);
    case Opcode::Constant:
      return constant(inst, index);
    case Opcode::Iota:
      return iota(inst, index);
    case Opcode::Broadcast:
      return broadcast(frame, inst, index);
    case Opcode::Reshape:
      return reshape(frame, inst, index);
    case Opcode::Bitcast:
      return bitcast(frame, inst, index);
    case Opcode::Transpose:
      return transpose(frame, inst, index);
    case Opcode::Reverse:
      return reverse(frame, inst, index);
    case Opcode::Slice:
      return slice(frame, inst, index);
    case Opcode::DynamicSlice:
      return dynamic_slice(frame, inst, index);
    case Opcode::DynamicUpdateSlice:
      return dynamic_update_slice(frame, inst, index);
    case Opcode::Pad:
      return pad(frame, inst, index);
    case Opcode::Concatenate:
      return concatenate(frame, inst, index);
    case Opcode::Gather:
      return gather(frame, inst, index);
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
      return reduction(frame, inst, index, part);
    case Opcode::SelectAndScatter:
      return select_and_scatter(frame, inst, index);
    case Opcode::Dot:
      return dot(frame, inst, index);
    case Opcode::Convolution:
      return convolution(frame, inst, index);
    case Opcode::GetTupleElement:
      return tuple_element(frame, inst, index);
    case Opcode::Fusion:
    case Opcode::Call:
      return called(frame, inst, index);
    case Opcode::Map: {
      std::vector<Value*> args;
      for (InstId o : m_.operands(inst)) args.push_back(element(frame, o, index));
      return apply(m_.called(inst)[0], args)[0];
    }
    case Opcode::OptBarrier:
    case Opcode::Copy:
      if (!shape.is_array()) refuse(inst, "of a tuple");
      return element(frame, m_.operand(inst, 0), index);
    default:
      break;
  }
  if (op_info(op).elementwise && shape.is_array()) return elementwise(frame, inst, index);
  refuse(inst, "the emitter has no code for it");
}

bool ElementEmitter::flat(const Module& m, CompId comp, const Shape& shape) {
  for (InstId i : m.post_order(comp)) {
    const Shape& s = m.shape(i);
    if (m.op(i) == Opcode::Tuple && i == m.comp(comp).root) continue;
    if (!s.is_array()) return false;
    if (s.rank() == 0 && (m.op(i) == Opcode::Constant || m.op(i) == Opcode::Parameter || same_index(m.op(i)))) continue;
    if (s.dims != shape.dims) return false;
    bool fine = m.op(i) == Opcode::Parameter || m.op(i) == Opcode::Constant || same_index(m.op(i)) ||
                (m.op(i) == Opcode::Broadcast && m.shape(m.operand(i, 0)).rank() == 0);
    if (!fine) return false;
  }
  return true;
}

}  // namespace hlo
