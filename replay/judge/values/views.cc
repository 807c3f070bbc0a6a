#include "replay/judge/values/views.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/backend_config.h"
#include "ir/base/hash.h"
#include "ir/library/cudnn_epilogue.h"
#include "ir/query/reducer.h"
#include "replay/judge/values/canonical.h"
#include "replay/judge/values/numbering.h"

namespace hlo {
namespace {

enum class Library { kNone, kConvolution, kGemm };

// Products without an epilogue: alpha, beta, scales and bias are left to the evaluator. Convolutions with and without
// one: theirs is another operation.
Library library_of(const Module& m, InstId i) {
  if (m.op(i) != Opcode::CustomCall || m.operand_count(i) < 2) return Library::kNone;
  const AttrSet& a = m.attrs(i);
  std::string_view target = m.u().text(a.text(Attr::custom_call_target)),
                   config = m.u().text(a.text(Attr::backend_config));
  const Shape& s = m.shape(i);
  if (!s.is_tuple() || s.elements.size() != 2 || !m.u()[s.elements[0]].is_array() || !m.u()[s.elements[1]].is_array())
    return Library::kNone;
  if (target == "__cudnn$convBiasActivationForward") return Library::kConvolution;
  if (m.operand_count(i) != 2) return Library::kNone;
  if (target == "__cudnn$convForward") return Library::kConvolution;
  if (target != "__cublas$gemm" && target != "__cublas$lt$matmul") return Library::kNone;
  BackendConfig c = backend_config(config, "gemm_backend_config");
  bool plain = number(c, "alpha_real", 1) == 1 && number(c, "alpha_imag", 0) == 0 && number(c, "beta", 0) == 0 &&
               word(c, "epilogue", "DEFAULT") == "DEFAULT" && c.contains("dot_dimension_numbers");
  return plain ? Library::kGemm : Library::kNone;
}

uint64_t mixed(uint64_t h, const Dims& list) {
  h = hash_combine(h, list.size());
  for (int64_t d : list) h = hash_combine(h, static_cast<uint64_t>(d));
  return h;
}

// By dimension of a bitcast's result, the operand's dimension that lies in the same place; empty where it is no
// transpose.
Dims transposed_by_bitcast(const Module& m, InstId i) {
  const Shape &to = m.shape(i), &from = m.shape(m.operand(i, 0));
  auto rank = static_cast<size_t>(to.rank());
  if (!to.is_array() || !from.is_array() || to.type != from.type || from.dims.size() != rank || to.is_dynamic() ||
      from.is_dynamic() || to.layout.minor_to_major.size() != rank || from.layout.minor_to_major.size() != rank)
    return {};
  Dims out(rank);
  for (size_t k = 0; k < rank; ++k) {
    auto t = static_cast<size_t>(to.layout.minor_to_major[k]), f = static_cast<size_t>(from.layout.minor_to_major[k]);
    if (to.dims[t] != from.dims[f]) return {};
    out[t] = static_cast<int64_t>(f);
  }
  return out;
}

Dims permutation_of(const Module& m, InstId i) {
  if (m.op(i) == Opcode::Transpose) return m.attrs(i).ints(Attr::dimensions);
  return m.op(i) == Opcode::Bitcast ? transposed_by_bitcast(m, i) : Dims();
}

Dims permuted(const Dims& list, const Dims& by) {
  Dims out;
  for (int64_t d : by) out.push_back(list[static_cast<size_t>(d)]);
  return out;
}

bool in_order(const Dims& from) {
  for (size_t k = 0; k < from.size(); ++k)
    if (from[k] != static_cast<int64_t>(k)) return false;
  return true;
}

// A dot as what is summed of which elements, whatever the dimensions that both operands and the result are written in:
// each list has the dimensions of one of them, the first one outermost, a dimension by the same letter wherever it
// goes.
class DotIndex {
 public:
  uint64_t hash() {
    for (auto& [letter, size] : sizes_)
      if (size == 1)
        for (std::vector<int>& list : lists_) std::erase(list, letter);
    while (join()) {
    }
    std::map<int, int> names;
    uint64_t h = 0xD07;
    for (const std::vector<int>& list : lists_) {
      h = hash_combine(h, list.size());
      for (int letter : list) {
        int name = names.emplace(letter, static_cast<int>(names.size())).first->second;
        h = hash_combine(hash_combine(h, static_cast<uint64_t>(name)), static_cast<uint64_t>(sizes_.at(letter)));
      }
    }
    return h;
  }
  int letter(int64_t size) {
    int next = static_cast<int>(sizes_.size());
    sizes_[next] = size;
    return next;
  }
  std::vector<int>& list(size_t k) { return lists_[k]; }

 private:
  // Two that stand side by side wherever one of them does are one dimension.
  bool join() {
    for (const std::vector<int>& list : lists_)
      for (size_t k = 1; k < list.size(); ++k) {
        const int first = list[k - 1], second = list[k];
        if (!together(first, second)) continue;
        sizes_[first] *= sizes_[second];
        for (std::vector<int>& l : lists_) std::erase(l, second);
        return true;
      }
    return false;
  }
  bool together(int first, int second) const {
    for (const std::vector<int>& list : lists_)
      for (size_t k = 0; k < list.size(); ++k) {
        if (list[k] == first && (k + 1 == list.size() || list[k + 1] != second)) return false;
        if (list[k] == second && (k == 0 || list[k - 1] != first)) return false;
      }
    return true;
  }

  std::vector<int> lists_[3];  // left, right, result
  std::map<int, int64_t> sizes_;
};

// `side`: what the operands are made of, neither padded.
uint64_t dot_key(const ArrayView side[2], const Dims batch[2], const Dims contracted[2]) {
  DotIndex index;
  std::vector<int> of[2];  // by dimension of the operand
  uint64_t h = 0;
  for (size_t k = 0; k < 2; ++k) {
    of[k].assign(side[k].from.size(), -1);
    index.list(k).assign(side[k].from.size(), -1);
    h = hash_combine(h, side[k].base);
  }
  auto size = [&](size_t k, int64_t d) {
    return side[k].base_dims[static_cast<size_t>(side[k].from[static_cast<size_t>(d)])];
  };
  for (const Dims* both : {batch, contracted})
    for (size_t n = 0; n < both[0].size(); ++n) {
      const int letter = index.letter(size(0, both[0][n]));
      for (size_t k = 0; k < 2; ++k) of[k][static_cast<size_t>(both[k][n])] = letter;
      if (both == batch) index.list(2).push_back(letter);
    }
  for (size_t k = 0; k < 2; ++k)
    for (size_t d = 0; d < of[k].size(); ++d) {
      if (of[k][d] < 0) index.list(2).push_back(of[k][d] = index.letter(size(k, static_cast<int64_t>(d))));
      index.list(k)[static_cast<size_t>(side[k].from[d])] = of[k][d];
    }
  return hash_combine(h, index.hash());
}

// The types of the result and of both operands.
uint64_t product_of(const ElementType types[3]) {
  uint64_t h = 0xF0D;
  for (int k = 0; k < 3; ++k) h = hash_combine(h, static_cast<uint64_t>(types[k]));
  return h;
}

// A sum of one array over dimensions that are all of the batch of a dot with so many: a dot's batch comes first.
bool sums_batch(const Module& m, InstId sum, size_t batch) {
  if (m.op(sum) != Opcode::Reduce || m.operand_count(sum) != 2 || !adds_its_parameters(m, m.called(sum)[0]))
    return false;
  const Dims& over = m.attrs(sum).ints(Attr::dimensions);
  return std::all_of(over.begin(), over.end(), [&](int64_t d) { return d < static_cast<int64_t>(batch); });
}

}  // namespace

bool ArrayView::padded() const {
  auto some = [](int64_t d) { return d != 0; };
  return std::any_of(low.begin(), low.end(), some) || std::any_of(high.begin(), high.end(), some);
}

ArrayView ArrayViews::of(const Dims& dims, const Term& t, bool seen_through) const {
  auto at = known_.find(t.number);
  if (seen_through && at != known_.end() && at->second.second == dims) return at->second.first;
  ArrayView v;
  v.base = t.number, v.base_dims = dims, v.from.resize(dims.size());
  std::iota(v.from.begin(), v.from.end(), 0);
  v.low.assign(dims.size(), 0), v.high.assign(dims.size(), 0);
  return v;
}

void ArrayViews::note(const Module& m, InstId i, const std::vector<Term>& operands, const Term& value, bool zero) {
  if (!value.is_array() || operands.empty() || !operands[0].is_array() || m.shape(i).is_dynamic()) return;
  if (m.op(i) == Opcode::Broadcast) {
    spreads_.try_emplace(value.number, Spread{operands[0].number, m.shape(i).dims, Canonical::steps_of(m, i)});
    return;
  }
  ArrayView v = of(m.shape(m.operand(i, 0)).dims, operands[0]);
  if (m.op(i) == Opcode::Pad) {
    const auto* padding = m.attrs(i).get<std::vector<PaddingDim>>(Attr::padding);
    if (!zero || !padding || padding->size() != v.from.size()) return;
    for (size_t k = 0; k < padding->size(); ++k) {
      const PaddingDim& p = (*padding)[k];
      if (p.interior || p.low < 0 || p.high < 0) return;
      v.low[k] += p.low, v.high[k] += p.high;
    }
  } else {
    Dims by = permutation_of(m, i);
    if (by.empty() || by.size() != v.from.size()) return;
    v.from = permuted(v.from, by), v.low = permuted(v.low, by), v.high = permuted(v.high, by);
  }
  if (v.base != value.number) known_.try_emplace(value.number, v, m.shape(i).dims);
}

bool ArrayViews::undone(const Module& m, InstId i, const std::vector<Term>& operands, Term* value) const {
  if (operands.size() != 1 || !operands[0].is_array()) return false;
  Dims by = permutation_of(m, i);
  if (by.empty()) return false;
  ArrayView v = of(m.shape(m.operand(i, 0)).dims, operands[0]);
  if (v.padded() || !in_order(permuted(v.from, by))) return false;
  value->number = v.base, value->shape = m.shape_id(i), value->elements = nullptr;
  return true;
}

uint64_t ArrayViews::convolution(const Module& m, InstId i, const std::vector<Term>& operands,
                                 bool seen_through) const {
  const AttrSet& a = m.attrs(i);
  const auto* d = a.get<DimLabels>(Attr::dim_labels);
  const auto* w = a.get<Window>(Attr::window);
  if (!d) return 0;
  ArrayView in = of(m.shape(m.operand(i, 0)).dims, operands[0], seen_through),
            kernel = of(m.shape(m.operand(i, 1)).dims, operands[1], seen_through);
  size_t spatial = d->input_spatial.size();
  if (kernel.padded() || in.from.size() != spatial + 2 || kernel.from.size() != spatial + 2 ||
      d->kernel_spatial.size() != spatial || (w ? w->dims.size() : 0) != spatial)
    return 0;
  uint64_t h = hash_combine(0xC0117, in.base);
  h = mixed(hash_combine(mixed(h, in.base_dims), kernel.base), kernel.base_dims);
  auto role = [&](const ArrayView& v, int64_t dim, bool may_be_padded) {
    auto k = static_cast<size_t>(dim);
    if (k >= v.from.size() || (!may_be_padded && (v.low[k] || v.high[k]))) return false;
    h = hash_combine(h, static_cast<uint64_t>(v.from[k]));
    return true;
  };
  if (!role(in, d->input_batch, false) || !role(in, d->input_feature, false) || !role(kernel, d->kernel_input, false) ||
      !role(kernel, d->kernel_output, false))
    return 0;
  for (size_t k = 0; k < spatial; ++k) {
    const WindowDim& x = w->dims[k];
    bool plain = x.lhs_dilate == 1;  // zeros between the elements come before those around them
    if (!role(in, d->input_spatial[k], plain) || !role(kernel, d->kernel_spatial[k], false)) return 0;
    auto at = static_cast<size_t>(d->input_spatial[k]);
    h = mixed(h, {x.size, x.stride, x.pad_low + in.low[at], x.pad_high + in.high[at], x.lhs_dilate, x.rhs_dilate,
                  x.reversal ? 1 : 0});
  }
  h = mixed(mixed(h, {d->output_batch, d->output_feature}), d->output_spatial);
  return mixed(h, {a.integer(Attr::feature_group_count, 1), a.integer(Attr::batch_group_count, 1)});
}

bool ArrayViews::dot(const Module& m, InstId i, const std::vector<Term>& operands, bool seen_through, Dot* out) const {
  const AttrSet& a = m.attrs(i);
  if (a.has(Attr::sparsity_config)) return false;
  auto& side = out->side;
  auto &batch = out->batch, &contracted = out->contracted;
  if (m.op(i) == Opcode::CustomCall) {
    BackendConfig c = backend_config(m.u().text(a.text(Attr::backend_config)), "gemm_backend_config");
    const BackendConfig& dims = c["dot_dimension_numbers"];
    batch[0] = list(dims, "lhs_batch_dimensions"), batch[1] = list(dims, "rhs_batch_dimensions");
    contracted[0] = list(dims, "lhs_contracting_dimensions"), contracted[1] = list(dims, "rhs_contracting_dimensions");
  } else {
    batch[0] = a.ints(Attr::lhs_batch_dims), batch[1] = a.ints(Attr::rhs_batch_dims);
    contracted[0] = a.ints(Attr::lhs_contracting_dims), contracted[1] = a.ints(Attr::rhs_contracting_dims);
  }
  if (batch[0].size() != batch[1].size() || contracted[0].size() != contracted[1].size()) return false;
  for (size_t k = 0; k < 2; ++k) {
    side[k] = of(m.shape(m.operand(i, k)).dims, operands[k], seen_through);
    if (side[k].padded()) return false;
    for (const Dims* list : {&batch[k], &contracted[k]})
      for (int64_t d : *list)
        if (d < 0 || d >= static_cast<int64_t>(side[k].from.size())) return false;
  }
  return true;
}

uint64_t ArrayViews::product(const Module& m, InstId i, const std::vector<Term>& operands, bool seen_through) const {
  Library library = library_of(m, i);
  bool convolves = m.op(i) == Opcode::Convolution || library == Library::kConvolution;
  if (!convolves && m.op(i) != Opcode::Dot && library != Library::kGemm) return 0;
  if (operands.size() < 2 || (operands.size() > 2 && library != Library::kConvolution)) return 0;
  if (!operands[0].is_array() || !operands[1].is_array()) return 0;
  ShapeId result = library == Library::kNone ? m.shape_id(i) : m.shape(i).elements[0];
  const Shape& s = m.u()[result];
  if (s.is_dynamic() || m.shape(m.operand(i, 0)).is_dynamic() || m.shape(m.operand(i, 1)).is_dynamic()) return 0;
  const ElementType types[3] = {s.type, m.shape(m.operand(i, 0)).type, m.shape(m.operand(i, 1)).type};
  if (convolves) {
    uint64_t own = convolution(m, i, operands, seen_through);
    return own ? hash_combine(mixed(product_of(types), s.dims), own) : 0;
  }
  Dot d;
  return dot(m, i, operands, seen_through, &d) ? hash_combine(product_of(types), dot_key(d.side, d.batch, d.contracted))
                                               : 0;
}

bool ArrayViews::has_epilogue(const Module& m, InstId i) {
  return library_of(m, i) == Library::kConvolution && !cudnn_epilogue(m, i).plain();
}

uint64_t ArrayViews::swapped(const Module& m, InstId i, const std::vector<Term>& operands, Dims* from) const {
  Dot d;
  if (m.op(i) != Opcode::Dot || !product(m, i, operands) || !dot(m, i, operands, true, &d)) return 0;
  const ElementType types[3] = {m.shape(i).type, m.shape(m.operand(i, 1)).type, m.shape(m.operand(i, 0)).type};
  std::swap(d.side[0], d.side[1]), std::swap(d.batch[0], d.batch[1]), std::swap(d.contracted[0], d.contracted[1]);
  // [batch, left, right] here, [batch, right, left] there.
  const size_t both = d.batch[0].size() + d.contracted[0].size();
  const auto batch = static_cast<int64_t>(d.batch[0].size());
  const auto right = static_cast<int64_t>(d.side[0].from.size() - both);
  const auto left = static_cast<int64_t>(d.side[1].from.size() - both);
  from->clear();
  for (int64_t k = 0; k < batch; ++k) from->push_back(k);
  for (int64_t k = 0; k < left; ++k) from->push_back(batch + right + k);
  for (int64_t k = 0; k < right; ++k) from->push_back(batch + k);
  return hash_combine(product_of(types), dot_key(d.side, d.batch, d.contracted));
}

void ArrayViews::note_transposed(const Term& value, const Dims& dims, const Term& base, const Dims& from) {
  Dims base_dims(dims.size());
  for (size_t k = 0; k < dims.size(); ++k) base_dims[static_cast<size_t>(from[k])] = dims[k];
  ArrayView v = of(base_dims, base);
  v.from = permuted(v.from, from), v.low = permuted(v.low, from), v.high = permuted(v.high, from);
  if (v.base != value.number) known_.try_emplace(value.number, v, dims);
}

bool ArrayViews::parts_are_summed(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Dot || m.user_count(i) != 1) return false;
  const InstId sum = m.users(i)[0];
  return sums_batch(m, sum, m.attrs(i).ints(Attr::lhs_batch_dims).size()) && m.operand(sum, 0) == i;
}

void ArrayViews::note_parts(const Module& m, InstId i, const std::vector<Term>& operands, const Term& value) {
  Parts p{{m.shape(i).type, m.shape(m.operand(i, 0)).type, m.shape(m.operand(i, 1)).type}, m.shape(i).dims, {}};
  if (dot(m, i, operands, true, &p.dot)) parts_.try_emplace(value.number, std::move(p));
}

uint64_t ArrayViews::summed(const Module& m, InstId i, const Term& operand) const {
  auto at = operand.is_array() ? parts_.find(operand.number) : parts_.end();
  if (at == parts_.end()) return 0;
  const Parts& p = at->second;
  const InstId from = m.operand(i, 0);
  if (!sums_batch(m, i, p.dot.batch[0].size()) || m.shape(from).dims != p.dims || m.shape(from).type != p.types[0])
    return 0;
  const Dims& over = m.attrs(i).ints(Attr::dimensions);
  Dot d = p.dot;
  for (size_t k = 0; k < 2; ++k) {
    d.batch[k].clear();
    for (size_t n = 0; n < p.dot.batch[k].size(); ++n) {
      const bool summed = std::find(over.begin(), over.end(), static_cast<int64_t>(n)) != over.end();
      (summed ? d.contracted : d.batch)[k].push_back(p.dot.batch[k][n]);
    }
  }
  return hash_combine(product_of(p.types), dot_key(d.side, d.batch, d.contracted));
}

bool ArrayViews::untransposed(const Module& m, InstId i, const std::vector<Term>& operands,
                              std::vector<Source>* sources, Dims* from) const {
  const Shape& s = m.shape(i);
  if (!op_info(m.op(i)).elementwise || !s.is_array() || s.is_dynamic()) return false;
  ArrayView first;
  for (const Term& t : operands) {
    if (!t.is_array()) return false;
    if (!first.from.empty() || !known_.contains(t.number)) continue;
    ArrayView v = of(s.dims, t);
    if (!v.padded() && !in_order(v.from)) first = std::move(v);
  }
  if (first.from.empty()) return false;
  *from = first.from;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Term& t = operands[k];
    const Shape& o = m.shape(m.operand(i, k));
    if (o.rank() == 0) {
      sources->push_back({t.number, 0});
      continue;
    }
    if (o.dims != s.dims || o.is_dynamic()) return false;
    const ArrayView v = of(o.dims, t);
    if (!v.padded() && v.from == first.from && v.base_dims == first.base_dims) {
      sources->push_back({v.base, 0});
      continue;
    }
    auto at = spreads_.find(t.number);
    if (at == spreads_.end() || at->second.dims != s.dims || at->second.steps.size() != s.dims.size()) return false;
    Dims steps(s.dims.size());
    for (size_t d = 0; d < steps.size(); ++d) steps[static_cast<size_t>(first.from[d])] = at->second.steps[d];
    sources->push_back({0, Canonical::repeated(o.type, first.base_dims, steps, at->second.operand)});
  }
  return true;
}

}  // namespace hlo
