#include "replay/inside/views.h"

#include <algorithm>
#include <numeric>

#include "ir/backend_config.h"
#include "ir/base/hash.h"
#include "replay/inside/numbering.h"

namespace hlo {
namespace {

enum class Library { kNone, kConvolution, kGemm };

// Calls without an epilogue: alpha, beta, bias, scales and activations are left to the evaluator.
Library library_of(const Module& m, InstId i) {
  if (m.op(i) != Opcode::CustomCall || m.operand_count(i) != 2) return Library::kNone;
  const AttrSet& a = m.attrs(i);
  std::string_view target = m.u().text(a.text(Attr::custom_call_target)),
                   config = m.u().text(a.text(Attr::backend_config));
  const Shape& s = m.shape(i);
  if (!s.is_tuple() || s.elements.size() != 2 || !m.u()[s.elements[0]].is_array() || !m.u()[s.elements[1]].is_array())
    return Library::kNone;
  if (target == "__cudnn$convForward") {
    BackendConfig c = backend_config(config, "cudnn_conv_backend_config");
    bool plain = number(c, "conv_result_scale", 1) == 1 && word(c, "activation_mode", "kNone") == "kNone";
    return plain ? Library::kConvolution : Library::kNone;
  }
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

}  // namespace

bool ArrayView::padded() const {
  auto some = [](int64_t d) { return d != 0; };
  return std::any_of(low.begin(), low.end(), some) || std::any_of(high.begin(), high.end(), some);
}

ArrayView ArrayViews::of(const Module& m, InstId operand, const Term& t) const {
  const Dims& dims = m.shape(operand).dims;
  auto at = known_.find(t.number);
  if (at != known_.end() && at->second.second == dims) return at->second.first;
  ArrayView v;
  v.base = t.number, v.base_dims = dims, v.from.resize(dims.size());
  std::iota(v.from.begin(), v.from.end(), 0);
  v.low.assign(dims.size(), 0), v.high.assign(dims.size(), 0);
  return v;
}

void ArrayViews::note(const Module& m, InstId i, const std::vector<Term>& operands, const Term& value, bool zero) {
  if (!value.is_array() || operands.empty() || !operands[0].is_array() || m.shape(i).is_dynamic()) return;
  ArrayView v = of(m, m.operand(i, 0), operands[0]);
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
  ArrayView v = of(m, m.operand(i, 0), operands[0]);
  if (v.padded() || !in_order(permuted(v.from, by))) return false;
  value->number = v.base, value->shape = m.shape_id(i), value->elements = nullptr;
  return true;
}

uint64_t ArrayViews::convolution(const Module& m, InstId i, const std::vector<Term>& operands) const {
  const AttrSet& a = m.attrs(i);
  const auto* d = a.get<DimLabels>(Attr::dim_labels);
  const auto* w = a.get<Window>(Attr::window);
  if (!d) return 0;
  ArrayView in = of(m, m.operand(i, 0), operands[0]), kernel = of(m, m.operand(i, 1), operands[1]);
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

uint64_t ArrayViews::product(const Module& m, InstId i, const std::vector<Term>& operands) const {
  Library library = library_of(m, i);
  bool convolves = m.op(i) == Opcode::Convolution || library == Library::kConvolution;
  if (!convolves && m.op(i) != Opcode::Dot && library != Library::kGemm) return 0;
  if (operands.size() != 2 || !operands[0].is_array() || !operands[1].is_array()) return 0;
  ShapeId result = library == Library::kNone ? m.shape_id(i) : m.shape(i).elements[0];
  const Shape& s = m.u()[result];
  if (s.is_dynamic() || m.shape(m.operand(i, 0)).is_dynamic() || m.shape(m.operand(i, 1)).is_dynamic()) return 0;
  uint64_t h = hash_combine(mixed(0xF0D, s.dims), static_cast<uint64_t>(s.type));
  for (int k = 0; k < 2; ++k)
    h = hash_combine(h, static_cast<uint64_t>(m.shape(m.operand(i, static_cast<size_t>(k))).type));
  if (convolves) {
    uint64_t own = convolution(m, i, operands);
    return own ? hash_combine(h, own) : 0;
  }
  const AttrSet& a = m.attrs(i);
  if (a.has(Attr::sparsity_config)) return 0;
  Dims batch[2], contracted[2];
  if (library == Library::kGemm) {
    BackendConfig c = backend_config(m.u().text(a.text(Attr::backend_config)), "gemm_backend_config");
    const BackendConfig& dims = c["dot_dimension_numbers"];
    batch[0] = list(dims, "lhs_batch_dimensions"), batch[1] = list(dims, "rhs_batch_dimensions");
    contracted[0] = list(dims, "lhs_contracting_dimensions"), contracted[1] = list(dims, "rhs_contracting_dimensions");
  } else {
    batch[0] = a.ints(Attr::lhs_batch_dims), batch[1] = a.ints(Attr::rhs_batch_dims);
    contracted[0] = a.ints(Attr::lhs_contracting_dims), contracted[1] = a.ints(Attr::rhs_contracting_dims);
  }
  if (batch[0].size() != batch[1].size() || contracted[0].size() != contracted[1].size()) return 0;
  ArrayView side[2];
  for (size_t k = 0; k < 2; ++k) {
    side[k] = of(m, m.operand(i, k), operands[k]);
    if (side[k].padded()) return 0;
    for (const Dims* list : {&batch[k], &contracted[k]})
      for (int64_t d : *list)
        if (d < 0 || d >= static_cast<int64_t>(side[k].from.size())) return 0;
  }
  // Pairs of contracted dimensions in any order are the same sum.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t k = 0; k < contracted[0].size(); ++k)
    pairs.emplace_back(side[0].from[static_cast<size_t>(contracted[0][k])],
                       side[1].from[static_cast<size_t>(contracted[1][k])]);
  std::sort(pairs.begin(), pairs.end());
  for (const auto& [l, r] : pairs) h = mixed(h, {l, r});
  for (size_t k = 0; k < 2; ++k) {
    h = mixed(hash_combine(h, side[k].base), side[k].base_dims);
    h = mixed(h, permuted(side[k].from, batch[k]));
    Dims free;
    for (int64_t d = 0; d < static_cast<int64_t>(side[k].from.size()); ++d)
      if (!contains(batch[k], d) && !contains(contracted[k], d)) free.push_back(side[k].from[static_cast<size_t>(d)]);
    h = mixed(h, free);
  }
  return h;
}

}  // namespace hlo
