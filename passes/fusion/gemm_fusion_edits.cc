// What is done to fusions of products for Triton's sake: bitcasts go out of them, so that tiles are of the dimensions
// that arrays have (xla/backends/gpu/transforms/hoist_fused_bitcasts.cc); operands change sides where the hardware
// would rather have it so (gemm_fusion_swap_operands.cc).
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "passes/layout/physical.h"

namespace hlo {
namespace {

InstId first_dot(const Module& m, CompId c) {
  for (InstId i : m.live_order(c))
    if (m.op(i) == Opcode::Dot) return i;
  return {};
}
bool is_triton(const Module& m, InstId fusion) {
  return m.op(fusion) == Opcode::Fusion &&
         m.u().text(m.attrs(fusion).text(Attr::backend_config)).find("\"kind\":\"__triton") != std::string_view::npos;
}

Dims minor_to_major(const Shape& s) {
  Dims order = major_to_minor(s);
  std::reverse(order.begin(), order.end());
  return order;
}
Dims dims_as_they_lie(const Shape& s) { return in_order(s.dims, minor_to_major(s)); }

// --- hoist-fused-bitcasts ---

// A shape's dimensions and layout without its type: what a bitcast is about.
struct Form {
  Dims dims, minor_to_major;
  bool operator==(const Form&) const = default;
};
Form form_of(const Shape& s) { return {s.dims, minor_to_major(s)}; }
ShapeId formed(Universe& u, ShapeId like, const Form& form) {
  Shape s = u[like];
  s.dims = form.dims;
  s.layout.minor_to_major = form.minor_to_major;
  return u.shape(std::move(s));
}
Dims lie_of(const Form& f) { return in_order(f.dims, f.minor_to_major); }

struct Moved {
  Form form;
  Dims dims;  // of the broadcast or transpose
};

// bitcast(broadcast(A)) as broadcast(bitcast(A)): the form of the inner bitcast. Nothing where it mixes dimensions of A
// with others.
std::optional<Moved> bitcast_of_broadcast(const Module& m, InstId broadcast, const Form& result) {
  const Shape& s = m.shape(broadcast);
  const Dims& of = m.attrs(broadcast).ints(Attr::dimensions);
  const Dims order = minor_to_major(s), sizes = dims_as_they_lie(s);
  const auto bounds = common_factors(lie_of(result), sizes);
  Moved out;
  for (size_t k = 1; k < bounds.size(); ++k) {
    bool all = true, any = false;
    for (size_t j = bounds[k - 1].second; j < bounds[k].second; ++j)
      if (sizes[j] != 1) (contains(of, order[j]) ? any : all) = contains(of, order[j]);
    if (!any) continue;
    if (!all) return std::nullopt;
    for (size_t j = bounds[k - 1].first; j < bounds[k].first; ++j) out.dims.push_back(result.minor_to_major[j]);
  }
  std::sort(out.dims.begin(), out.dims.end());
  for (int64_t d : out.dims) out.form.dims.push_back(result.dims[static_cast<size_t>(d)]);
  for (int64_t d : result.minor_to_major)
    if (auto at = std::lower_bound(out.dims.begin(), out.dims.end(), d); at != out.dims.end() && *at == d)
      out.form.minor_to_major.push_back(at - out.dims.begin());
  return out;
}

// The form of broadcast(A) where broadcast(bitcast(A)) stands; its new dimensions are the last ones.
std::optional<Form> broadcast_of_bitcast(const Module& m, InstId broadcast, const Form& operand) {
  const Shape &s = m.shape(broadcast), &inner = m.shape(m.operand(broadcast, 0));
  const Dims &of = m.attrs(broadcast).ints(Attr::dimensions), order = minor_to_major(s),
             place = inverse_permutation(order);
  std::map<int64_t, std::pair<size_t, size_t>> ranges;  // of the operand's dimensions, by the result's
  const Dims inner_order = minor_to_major(inner);
  const auto bounds = common_factors(dims_as_they_lie(inner), lie_of(operand));
  for (size_t k = 1; k < bounds.size(); ++k) {
    size_t from = bounds[k - 1].second;
    Dims places;
    for (size_t j = bounds[k - 1].first; j < bounds[k].first; ++j) {
      const int64_t d = of[static_cast<size_t>(inner_order[j])];
      ranges[d] = {std::exchange(from, bounds[k].second), bounds[k].second};
      places.push_back(place[static_cast<size_t>(d)]);
    }
    if (places.empty()) continue;
    if (places.back() - places.front() >= static_cast<int64_t>(places.size()) ||
        !std::is_sorted(places.begin(), places.end()))
      return std::nullopt;
  }
  Form out{operand.dims, {}};
  for (int64_t d : order) {
    if (auto range = ranges.find(d); range != ranges.end()) {
      for (size_t k = range->second.first; k < range->second.second; ++k)
        out.minor_to_major.push_back(operand.minor_to_major[k]);
    } else {
      out.minor_to_major.push_back(static_cast<int64_t>(out.dims.size()));
      out.dims.push_back(s.dims[static_cast<size_t>(d)]);
    }
  }
  return out;
}

// Common factors without groups that one side has nothing of.
std::vector<std::pair<size_t, size_t>> full_factors(const Dims& a, const Dims& b) {
  auto bounds = common_factors(a, b);
  for (size_t k = 0; k + 1 < bounds.size() && bounds.size() > 2;) {
    if (bounds[k].first != bounds[k + 1].first && bounds[k].second != bounds[k + 1].second)
      ++k;
    else
      bounds.erase(bounds.begin() + static_cast<ptrdiff_t>(k + 2 == bounds.size() ? k : k + 1));
  }
  return bounds;
}

// bitcast(transpose(A)) as transpose(bitcast(A)), `dims` from the inner to the outer dimension. `from` and `to` are A's
// and the transpose's shape; the other way round it serves transpose(bitcast(A)).
std::optional<Moved> through_transpose(const Shape& from, const Shape& to, const Dims& permutation,
                                       const Form& result) {
  if (minor_to_major(from) != minor_to_major(to)) return std::nullopt;
  const Dims order = minor_to_major(to), place = inverse_permutation(minor_to_major(from));
  std::vector<std::pair<size_t, size_t>> ranges(from.dims.size());  // of the result's, by A's place in memory
  const auto bounds = full_factors(lie_of(result), dims_as_they_lie(to));
  for (size_t k = 1; k < bounds.size(); ++k) {
    size_t first = bounds[k - 1].first;
    Dims places;
    for (size_t j = bounds[k - 1].second; j < bounds[k].second; ++j) {
      const auto d = static_cast<size_t>(order[j]);
      const int64_t at = place[static_cast<size_t>(permutation[d])];
      if (to.dims[d] == 1) {
        ranges[static_cast<size_t>(at)] = {first, first};
        continue;
      }
      ranges[static_cast<size_t>(at)] = {std::exchange(first, bounds[k].first), bounds[k].first};
      places.push_back(at);
    }
    if (places.empty()) continue;
    if (places.back() - places.front() >= static_cast<int64_t>(places.size()) ||
        !std::is_sorted(places.begin(), places.end()))
      return std::nullopt;
  }
  Moved out{{Dims(result.dims.size()), result.minor_to_major}, Dims(result.dims.size())};
  size_t next = 0;
  for (const auto& [first, end] : ranges)
    for (size_t k = first; k < end; ++k) {
      if (next == result.dims.size()) return std::nullopt;
      const auto made = static_cast<size_t>(result.minor_to_major[next++]);
      const int64_t d = result.minor_to_major[k];
      out.form.dims[made] = result.dims[static_cast<size_t>(d)];
      out.dims[made] = d;
    }
  if (next != result.dims.size()) return std::nullopt;  // dimensions of one element that none stands for
  return out;
}

std::optional<Moved> bitcast_of_transpose(const Module& m, InstId t, const Form& result) {
  auto out = through_transpose(m.shape(m.operand(t, 0)), m.shape(t), m.attrs(t).ints(Attr::dimensions), result);
  if (out) out->dims = inverse_permutation(out->dims);
  return out;
}
std::optional<Form> transpose_of_bitcast(const Module& m, InstId t, const Form& operand) {
  auto out = through_transpose(m.shape(t), m.shape(m.operand(t, 0)),
                               inverse_permutation(m.attrs(t).ints(Attr::dimensions)), operand);
  return out ? std::optional<Form>(std::move(out->form)) : std::nullopt;
}

class BitcastHoister {
 public:
  BitcastHoister(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool fusion(InstId fusion) {
    const CompId body = m_.called(fusion)[0];
    const InstId dot = first_dot(m_, body);
    if (!dot.valid()) return false;
    bool changed = root(fusion, body, dot);
    std::vector<InstId> order = m_.post_order(body);
    for (size_t k = order.size(); k-- > 0;)
      if (m_.op(order[k]) == Opcode::Bitcast || m_.op(order[k]) == Opcode::Reshape) changed |= up(fusion, order[k]);
    return changed;
  }

 private:
  // Of operands that have its dimensions: no scalars beside, no elements of another width.
  bool elementwise(InstId i) const {
    for (InstId o : m_.operands(i))
      if (m_.shape(o).dims != m_.shape(i).dims) return false;
    return op_info(m_.op(i)).elementwise;
  }

  // The root's form were there no bitcasts behind the dot; nothing where one cannot go.
  std::optional<Form> root_form(InstId dot) const {
    if (m_.is_root(dot)) return form_of(m_.shape(dot));
    std::map<InstId, Form> operand;
    auto put = [&](InstId i, const Form& f) {
      for (InstId user : m_.users(i))
        if (auto [at, fresh] = operand.try_emplace(user, f); !fresh && at->second != f) return false;
      return true;
    };
    if (!put(dot, form_of(m_.shape(dot)))) return std::nullopt;
    std::deque<InstId> work(m_.users(dot).begin(), m_.users(dot).end());
    std::set<InstId> seen;
    while (!work.empty()) {
      const InstId i = work.front();
      work.pop_front();
      if (!seen.insert(i).second) continue;
      work.insert(work.end(), m_.users(i).begin(), m_.users(i).end());
      auto at = operand.find(i);
      if (at == operand.end()) continue;
      std::optional<Form> form = at->second;
      const Opcode op = m_.op(i);
      if (op == Opcode::Broadcast || op == Opcode::Transpose) {
        form =
            op == Opcode::Broadcast ? broadcast_of_bitcast(m_, i, at->second) : transpose_of_bitcast(m_, i, at->second);
        if (!form) form = form_of(m_.shape(i));
      } else if (op == Opcode::Reshape || op == Opcode::Bitcast) {
        if (m_.shape(i).type != m_.shape(m_.operand(i, 0)).type) return std::nullopt;
      } else if (!elementwise(i)) {
        return std::nullopt;
      }
      if (m_.is_root(i)) return form;
      if (!put(i, *form)) return std::nullopt;
    }
    return std::nullopt;
  }

  // A bitcast at the root that undoes those behind the dot, and one behind the fusion that undoes it.
  bool root(InstId fusion, CompId body, InstId dot) {
    const InstId root = m_.comp(body).root;
    const std::optional<Form> form = root_form(dot);
    if (!form || *form == form_of(m_.shape(root))) return false;
    if (!ctx_.spend(m_, "bitcast after the product out of the fusion", {fusion, root})) return false;
    const ShapeId shape = m_.shape_id(fusion), inner = formed(u_, m_.shape_id(root), *form);
    m_.set_root(body, make(m_, body, Opcode::Bitcast, {root}, {}, inner));
    const InstId back = make(m_, m_.parent(fusion), Opcode::Bitcast, {fusion}, {}, shape);
    m_.set_meta(back, m_[fusion].meta);
    m_.replace_all_uses(fusion, back);
    m_.set_shape(fusion, inner);
    return true;
  }

  // Everything that the bitcast is made of in the form of its result; nothing where that cannot be.
  std::optional<std::vector<std::pair<InstId, Moved>>> plan(InstId bitcast) const {
    if (m_.shape(bitcast).type != m_.shape(m_.operand(bitcast, 0)).type) return std::nullopt;
    std::set<InstId> producers;
    std::deque<InstId> work(m_.operands(bitcast).begin(), m_.operands(bitcast).end());
    while (!work.empty()) {
      const InstId i = work.front();
      work.pop_front();
      if (producers.insert(i).second) work.insert(work.end(), m_.operands(i).begin(), m_.operands(i).end());
    }
    for (InstId i : producers)
      for (InstId user : m_.users(i))
        if (user != bitcast && !producers.contains(user)) return std::nullopt;
    std::map<InstId, Form> forms;
    auto put = [&](InstId i, const Form& f) {
      for (InstId o : m_.operands(i))
        if (auto [at, fresh] = forms.try_emplace(o, f); !fresh && at->second != f) return false;
      return true;
    };
    if (!put(bitcast, form_of(m_.shape(bitcast)))) return std::nullopt;
    std::vector<std::pair<InstId, Moved>> out;
    const std::vector<InstId> order = m_.post_order(m_.parent(bitcast));
    for (size_t k = order.size(); k-- > 0;) {
      const InstId i = order[k];
      auto at = forms.find(i);
      if (at == forms.end() || at->second == form_of(m_.shape(i))) continue;
      Moved made{at->second, {}};
      const Opcode op = m_.op(i);
      if (op == Opcode::Broadcast || op == Opcode::Transpose) {
        auto moved =
            op == Opcode::Broadcast ? bitcast_of_broadcast(m_, i, at->second) : bitcast_of_transpose(m_, i, at->second);
        if (!moved || !put(i, moved->form)) return std::nullopt;
        made.dims = moved->dims;
      } else if (op != Opcode::Parameter && op != Opcode::Constant && op != Opcode::Reshape && op != Opcode::Bitcast &&
                 (!elementwise(i) || !put(i, at->second))) {
        return std::nullopt;
      }
      out.push_back({i, std::move(made)});
    }
    return out;
  }

  bool up(InstId fusion, InstId bitcast) {
    auto steps = plan(bitcast);
    if (!steps) return false;
    for (const auto& [i, moved] : *steps)
      if (m_.op(i) == Opcode::Constant && m_.shape(i).rank() > 0 &&
          has_other_layout(u_[formed(u_, m_.shape_id(i), moved.form)]))
        return false;  // its bytes would have to move
    if (!ctx_.spend(m_, "bitcast before the product out of the fusion", {fusion, bitcast})) return false;
    for (const auto& [i, moved] : *steps) {
      const ShapeId shape = formed(u_, m_.shape_id(i), moved.form);
      if (m_.op(i) == Opcode::Parameter) {
        const auto n = static_cast<size_t>(m_.parameter_number(i));
        m_.set_operand(fusion, n, make(m_, m_.parent(fusion), Opcode::Bitcast, {m_.operand(fusion, n)}, {}, shape));
      } else if (m_.op(i) == Opcode::Broadcast || m_.op(i) == Opcode::Transpose) {
        m_.set_attr(i, Attr::dimensions, moved.dims);
      } else if (m_.op(i) == Opcode::Constant) {
        Literal literal = m_.literal(i);
        literal.shape = shape;
        m_.set_literal(i, u_.literal(std::move(literal)));
      }
      m_.set_shape(i, shape);
    }
    const InstId of = m_.operand(bitcast, 0);
    m_.replace_all_uses(bitcast, of);
    m_.remove(bitcast);
    return true;
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
};

// --- gemm-fusion-swap-operands ---

bool computes(const Module& m, InstId i) {
  while (m.operand_count(i) > 0) {
    switch (m.op(i)) {
      case Opcode::Bitcast:
      case Opcode::Broadcast:
      case Opcode::GetTupleElement:
      case Opcode::Reshape:
      case Opcode::Transpose:
        break;
      default:
        return true;
    }
    i = m.operand(i, 0);
  }
  return false;
}

bool swap_operands(Module& m, PassContext& ctx, CompId body) {
  const InstId dot = first_dot(m, body);
  if (!dot.valid() || m.operand_count(dot) != 2) return false;
  Universe& u = m.u();
  const AttrSet& a = m.attrs(dot);
  const size_t batch = a.ints(Attr::lhs_batch_dims).size();
  const Shape s = m.shape(dot);
  const size_t left = m.shape(m.operand(dot, 0)).dims.size() - batch - a.ints(Attr::lhs_contracting_dims).size();
  int64_t rows = 1, columns = 1;
  for (size_t d = batch; d < s.dims.size(); ++d) (d < batch + left ? rows : columns) *= s.dims[d];
  // wgmma takes 64 rows or none, and a left operand out of registers.
  if (columns < 64 || (rows >= 64 && (computes(m, m.operand(dot, 0)) || !computes(m, m.operand(dot, 1))))) return false;
  if (!ctx.spend(m, "operands change sides", {dot})) return false;
  Dims order;  // of the new result's dimensions, by the old ones
  for (size_t d = 0; d < s.dims.size(); ++d) order.push_back(static_cast<int64_t>(d));
  std::rotate(order.begin() + static_cast<ptrdiff_t>(batch), order.begin() + static_cast<ptrdiff_t>(batch + left),
              order.end());
  Shape swapped = s;
  swapped.dims = in_order(s.dims, order);
  swapped.layout.minor_to_major = at_places(minor_to_major(s), inverse_permutation(order));
  const InstId operands[] = {m.operand(dot, 1), m.operand(dot, 0)};
  const InstId now = m.clone_inst(dot, body, operands, u.shape(std::move(swapped)));
  m.set_uniquified_name(now, "dot");
  AttrSet set = m.attrs(dot);
  auto put = [&](Attr key, const Dims& value) { value.empty() ? set.erase(key) : set.set(key, value); };
  put(Attr::lhs_batch_dims, a.ints(Attr::rhs_batch_dims)), put(Attr::rhs_batch_dims, a.ints(Attr::lhs_batch_dims));
  put(Attr::lhs_contracting_dims, a.ints(Attr::rhs_contracting_dims));
  put(Attr::rhs_contracting_dims, a.ints(Attr::lhs_contracting_dims));
  if (StrId text = a.text(Attr::operand_precision); text.valid()) {
    const std::string_view list = u.text(text);  // {highest,default}
    if (const size_t comma = list.find(','); comma != std::string_view::npos && list.size() > comma + 1)
      set.set(Attr::operand_precision, u.str("{" + std::string(list.substr(comma + 1, list.size() - comma - 2)) + "," +
                                             std::string(list.substr(1, comma - 1)) + "}"));
  }
  m.set_attrs(now, u.attrs(std::move(set)));
  const InstId back = make(m, body, Opcode::Bitcast, {now}, {}, m.shape_id(dot));
  m.set_meta(back, m[dot].meta);
  m.replace_all_uses(dot, back);
  m.remove(dot);
  return true;
}

}  // namespace

//   fusion(A) of dot(bitcast(A), …)      →      fusion(bitcast(A)) of dot(A, …)
bool run_hoist_fused_bitcasts(Module& m, PassContext& ctx) {
  bool changed = false;
  BitcastHoister pass(m, ctx);
  const std::vector<std::vector<InstId>> callers = m.callers();
  for (CompId c : m.nonfusion_computations())
    visit_computation(m, c, [&](InstId i) {
      if (is_triton(m, i) && callers[m.called(i)[0].value].size() == 1) changed |= pass.fusion(i);
    });
  return changed;
}

//   dot(A, B)      →      bitcast(dot(B, A)), within a fusion for Triton
bool run_gemm_fusion_swap_operands(Module& m, PassContext& ctx) {
  bool changed = false;
  const std::vector<std::vector<InstId>> callers = m.callers();
  for (CompId c : m.computation_post_order())
    if (callers[c.value].size() == 1 && is_triton(m, callers[c.value][0])) changed |= swap_operands(m, ctx, c);
  return changed;
}

}  // namespace hlo
