#include "replay/judge/chosen/elements/expressions.h"

#include <algorithm>
#include <numeric>

#include "ir/base/hash.h"
#include "replay/judge/chosen/elements/device_classes.h"

namespace hlo {
namespace {

using Part = Expressions::Part;
using Parts = std::vector<std::vector<Part>>;

// The innermost parts first, cut so that each lies within one dimension. False where a dimension ends inside of one.
bool refine(const Expr::View& v, const Dims& dims, Parts* out) {
  out->assign(dims.size(), {});
  size_t k = v.sizes.size();
  int64_t left = k ? v.sizes[k - 1] : 1, step = k ? v.steps[k - 1] : 0;
  for (size_t d = dims.size(); d-- > 0;) {
    for (int64_t rest = dims[d]; rest > 1;) {
      while (left == 1) {
        if (k <= 1) return false;
        --k, left = v.sizes[k - 1], step = v.steps[k - 1];
      }
      const int64_t size = std::gcd(rest, left);
      if (size != rest && size != left) return false;
      (*out)[d].insert((*out)[d].begin(), Part{size, step});
      rest /= size, left /= size, step *= size;
    }
  }
  return true;
}

Expr::View laid_out(const Parts& parts, int64_t offset) {
  Expr::View v;
  v.offset = offset;
  for (const std::vector<Part>& dim : parts)
    for (const Part& p : dim) v.sizes.push_back(p.size), v.steps.push_back(p.step);
  return v;
}

// Dimensions of size one go, and neighbours that run on are one.
void simplify(Expr::View* v) {
  Dims sizes, steps;
  for (size_t k = 0; k < v->sizes.size(); ++k) {
    if (v->sizes[k] == 1) continue;
    if (!sizes.empty() && steps.back() == v->steps[k] * v->sizes[k])
      sizes.back() *= v->sizes[k], steps.back() = v->steps[k];
    else
      sizes.push_back(v->sizes[k]), steps.push_back(v->steps[k]);
  }
  v->sizes = std::move(sizes), v->steps = std::move(steps);
}

// A slice of one dimension. False where it cuts through parts of it.
bool cut(std::vector<Part>* dim, int64_t full, const SliceDim& s, int64_t* offset) {
  const int64_t size = s.limit > s.start ? (s.limit - s.start + s.stride - 1) / s.stride : 0;
  if (s.start == 0 && s.stride == 1 && size == full) return true;
  if (dim->size() > 1 || size == 0) return false;
  const int64_t step = dim->empty() ? 0 : (*dim)[0].step;
  *offset += s.start * step;
  *dim = {Part{size, step * s.stride}};
  return true;
}

// Its dimensions as they lie in memory, the outermost first. False of tiles.
bool from_major(const Shape& s, Dims* order) {
  order->assign(s.layout.minor_to_major.rbegin(), s.layout.minor_to_major.rend());
  if (!s.has_layout) {
    order->resize(s.dims.size());
    std::iota(order->begin(), order->end(), 0);
  }
  return s.layout.rest.find('T') == std::string::npos && static_cast<int64_t>(order->size()) == s.rank();
}

}  // namespace

void ExprTree::leaves(std::vector<ExprId>* out) const {
  if (id != kNoExpr) out->push_back(id);
  for (const ExprTree& e : elements) e.leaves(out);
}

Expressions::Expressions() : devices_(std::make_unique<DeviceClasses>(*this)) {}
Expressions::~Expressions() = default;

ExprId Expressions::find_or_add(uint64_t key, Expr e, ExprId* own) {
  auto [at, made] = keys_.emplace(key, static_cast<ExprId>(all_.size()));
  if (own) *own = at->second;
  if (made) {
    all_.push_back(std::move(e));
    same_.push_back(at->second);
  }
  return same_[at->second];
}

void Expressions::forget_same() { std::iota(same_.begin(), same_.end(), ExprId{0}); }

bool Expressions::parts(ExprId e, const Dims& dims, int64_t* offset, ExprId* base, Parts* out) const {
  const Expr& x = all_[e];
  *offset = 0, *base = e;
  if (x.kind == Expr::kView) {
    *offset = x.view.offset, *base = x.operands[0];
    return refine(x.view, dims, out);
  }
  out->assign(dims.size(), {});
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0; step *= dims[d])
    if (dims[d] != 1) (*out)[d] = {Part{dims[d], step}};
  return true;
}

ExprId Expressions::view(ExprId of, Expr::View v, ShapeId shape) {
  simplify(&v);
  const bool all = v.offset == 0 && (v.sizes.empty() || (v.sizes.size() == 1 && v.steps[0] == 1));
  uint64_t key = hash_combine(hash_combine(0x71E3, of), static_cast<uint64_t>(v.offset));
  for (size_t k = 0; k < v.sizes.size(); ++k)
    key = hash_combine(hash_combine(key, static_cast<uint64_t>(v.sizes[k])), static_cast<uint64_t>(v.steps[k]));
  Expr e;
  e.kind = Expr::kView, e.shape = shape, e.operands = {of}, e.view = std::move(v);
  e.m = all_[of].m, e.inst = all_[of].inst, e.leaf = all_[of].leaf;
  return all ? of : find_or_add(key, std::move(e));
}

InstId Expressions::made(const std::shared_ptr<Universe>& u, Opcode op, ShapeId shape,
                         const std::vector<ShapeId>& operands, const AttrSet& attributes, const Module** m) {
  if (!own_) own_ = std::make_unique<Module>(u), own_computation_ = own_->add_computation("made");
  *m = own_.get();
  const AttrsId attrs = u->attrs(attributes);
  uint64_t key = hash_combine(hash_combine(static_cast<uint64_t>(op), shape.value), attrs.value);
  for (ShapeId s : operands) key = hash_combine(key, s.value);
  if (auto known = own_made_.find(key); known != own_made_.end()) return known->second;
  Module::NewInst inst{op, shape};
  inst.attrs = attrs;
  for (ShapeId s : operands) {
    auto [at, fresh] = own_operands_.try_emplace(s);
    if (fresh) at->second = own_->add(own_computation_, {Opcode::Parameter, s});
    inst.operands.push_back(at->second);
  }
  return own_made_[key] = own_->add(own_computation_, inst);
}

ExprId Expressions::moved(const Module& m, InstId i, ExprId operand) {
  const Shape &from = m.shape(m.operand(i, 0)), &to = m.shape(i);
  if (!from.is_array() || !to.is_array() || from.is_dynamic() || to.is_dynamic() || from.type != to.type ||
      from.elements_count() == 0 || to.elements_count() == 0)
    return kNoExpr;
  int64_t offset = 0;
  ExprId base = kNoExpr;
  Parts in, out(to.dims.size());
  Dims dims = from.dims;
  if (!parts(operand, dims, &offset, &base, &in)) return kNoExpr;
  const AttrSet& a = m.attrs(i);
  switch (m.op(i)) {
    case Opcode::Broadcast: {
      const Dims& onto = a.ints(Attr::dimensions);
      for (size_t d = 0; d < out.size(); ++d) out[d] = {Part{to.dims[d], 0}};
      for (size_t d = 0; d < onto.size(); ++d) {
        const auto k = static_cast<size_t>(onto[d]);
        if (to.dims[k] != from.dims[d]) return kNoExpr;
        out[k] = in[d];
      }
      break;
    }
    case Opcode::Transpose: {
      const Dims& by = a.ints(Attr::dimensions);
      for (size_t d = 0; d < out.size(); ++d) out[d] = in[static_cast<size_t>(by[d])];
      break;
    }
    case Opcode::Slice: {
      const auto* s = a.get<std::vector<SliceDim>>(Attr::slice);
      if (!s) return kNoExpr;
      out = in;
      for (size_t d = 0; d < out.size(); ++d)
        if (!cut(&out[d], from.dims[d], (*s)[d], &offset)) return kNoExpr;
      break;
    }
    case Opcode::Reverse:
      out = in;
      for (int64_t d : a.ints(Attr::dimensions))
        for (Part& p : out[static_cast<size_t>(d)]) offset += (p.size - 1) * p.step, p.step = -p.step;
      break;
    case Opcode::Bitcast: {
      Dims order, to_order, physical;
      if (!from_major(from, &order) || !from_major(to, &to_order)) return kNoExpr;
      Parts laid;
      for (int64_t d : order) laid.push_back(in[static_cast<size_t>(d)]);
      Expr::View v = laid_out(laid, 0);
      simplify(&v);
      for (int64_t d : to_order) physical.push_back(to.dims[static_cast<size_t>(d)]);
      if (!refine(v, physical, &laid)) return kNoExpr;
      for (size_t k = 0; k < to_order.size(); ++k) out[static_cast<size_t>(to_order[k])] = laid[k];
      break;
    }
    default:
      return kNoExpr;
  }
  return view(base, laid_out(out, offset), m.shape_id(i));
}

}  // namespace hlo
