// topk-rewriter, topk-splitter and topk-specializer (xla/service/topk_rewriter.cc and topk_splitter.cc and
// topk_specializer.cc of xla/service/gpu/transforms).
#include <bit>
#include <optional>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// compare(parameter 0, parameter 1), direction=GT: in total or partial order.
bool greater_first(const Module& m, CompId c) {
  InstId r = m.comp(c).root;
  if (m.op(r) != Opcode::Compare || m.u().text(m.attrs(r).text(Attr::direction)) != "GT") return false;
  const auto& params = m.comp(c).params;
  return params.size() >= 2 && m.operand(r, 0) == params[0] && m.operand(r, 1) == params[1];
}

// Is it [0:k] of dimension `d`, all of the others?
std::optional<int64_t> first_of(const Module& m, InstId i, int64_t d) {
  if (m.op(i) != Opcode::Slice) return std::nullopt;
  const auto& slices = *m.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
  const Shape& from = m.shape(m.operand(i, 0));
  for (size_t k = 0; k < slices.size(); ++k) {
    if (slices[k].start != 0 || slices[k].stride != 1) return std::nullopt;
    if (static_cast<int64_t>(k) != d && slices[k].limit != from.dims[k]) return std::nullopt;
  }
  return slices[static_cast<size_t>(d)].limit;
}

// An iota along that dimension, or one of one dimension broadcast to the others.
bool counts_up(const Module& m, InstId i, int64_t dim) {
  if (m.op(i) == Opcode::Broadcast && m.attrs(i).ints(Attr::dimensions) == Dims{dim}) i = m.operand(i, 0), dim = 0;
  return m.op(i) == Opcode::Iota && m.shape(i).type == ElementType::S32 &&
         m.attrs(i).integer(Attr::iota_dimension) == dim;
}

bool is_topk(const Module& m, InstId i) {
  return m.op(i) == Opcode::CustomCall && m.u().text(m.attrs(i).text(Attr::custom_call_target)) == "TopK";
}

// Slices that take the first k of a sort's results, with the result each is of; none where anything else is taken.
struct Taken {
  int64_t k = -1;
  std::vector<std::pair<InstId, size_t>> slices;
};
std::optional<Taken> taken(const Module& m, InstId sort, int64_t dim) {
  Taken out;
  auto add = [&](InstId slice, size_t result) {
    std::optional<int64_t> k = first_of(m, slice, dim);
    if (!k || (out.k >= 0 && out.k != *k)) return false;
    out.k = *k;
    out.slices.push_back({slice, result});
    return true;
  };
  for (InstId user : m.users(sort)) {
    if (m.operand_count(sort) == 1) {
      if (!add(user, 0)) return std::nullopt;
      continue;
    }
    if (m.op(user) != Opcode::GetTupleElement || m.users(user).size() != 1) return std::nullopt;
    if (!add(m.users(user)[0], static_cast<size_t>(m.attrs(user).integer(Attr::index)))) return std::nullopt;
  }
  if (out.k < 0) return std::nullopt;
  return out;
}

bool as_topk(Module& m, PassContext& ctx, CompId c, InstId i) {
  Universe& u = m.u();
  if (m.op(i) != Opcode::Sort || m.operand_count(i) > 2) return false;
  InstId data = m.operand(i, 0);
  const Shape s = m.shape(data);
  if (s.type != ElementType::F32 && s.type != ElementType::BF16) return false;
  int64_t dim = m.attrs(i).ints(Attr::dimensions)[0], rank = s.rank();
  if ((dim != 0 && dim != rank - 1) || s.elements_count() == 0 || !greater_first(m, m.called(i)[0])) return false;
  if (m.operand_count(i) == 2 && !counts_up(m, m.operand(i, 1), dim)) return false;
  std::optional<Taken> first = taken(m, i, dim);
  if (!first || !ctx.spend(m, "the first of a sort", {i})) return false;
  int64_t n = s.dims[static_cast<size_t>(dim)], batch = s.elements_count() / n, k = first->k;
  InstId input = data;
  if (rank > 2)
    input = make(m, c, Opcode::Reshape, {data}, {}, u.array(s.type, dim == 0 ? Dims{n, batch} : Dims{batch, n}));
  bool turned = rank > 1 && dim == 0;
  if (turned)
    input =
        make(m, c, Opcode::Transpose, {input}, dims_attr(u, Opcode::Transpose, {1, 0}), u.array(s.type, {batch, n}));
  Dims out = rank > 1 ? Dims{batch, k} : Dims{k};
  ShapeId values = u.array(s.type, out), indices = u.array(ElementType::S32, out);
  AttrsId attrs = attrs_of(
      u, Opcode::CustomCall,
      {{Attr::custom_call_target, u.str("TopK")}, {Attr::called_computations, std::vector<CompId>{m.called(i)[0]}}});
  InstId call = make(m, c, Opcode::CustomCall, {input}, attrs, u.tuple({values, indices}));
  m.set_meta(call, m[i].meta);
  std::vector<InstId> results{make_element(m, call, 0), make_element(m, call, 1)};
  for (InstId& r : results) {
    ElementType t = m.shape(r).type;
    if (turned) r = make(m, c, Opcode::Transpose, {r}, dims_attr(u, Opcode::Transpose, {1, 0}), u.array(t, {k, batch}));
    if (rank > 2) {
      Dims whole = s.dims;
      whole[static_cast<size_t>(dim)] = k;
      r = make(m, c, Opcode::Reshape, {r}, {}, u.array(t, whole));
    }
  }
  for (auto& [slice, result] : first->slices) m.replace_all_uses(slice, results[result]);
  return true;
}

}  // namespace

//   slices [0:k] of sort(A, iota), greatest first      →      results of TopK(A), A as a matrix whose rows are sorted
// The sort stays behind, dead.
bool run_topk_rewriter(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Sort)) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) changed |= as_topk(m, ctx, c, i);
  return changed;
}

//   TopK(A), A one row of 2^21 elements and more      →      the first of a stable sort of TopK of its pieces
// Pieces are some 2^20 long, as many as a power of two of them; a row must be a multiple of 1024 long.
bool run_topk_splitter(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::CustomCall)) return false;
  bool changed = false;
  Universe& u = m.u();
  constexpr int64_t kPiece = 1 << 20, kAlignment = 1024;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!is_topk(m, i) || m.operand_count(i) != 1 || !m.shape(i).is_tuple() || m.called(i).size() != 1) continue;
      InstId data = m.operand(i, 0);
      const Shape s = m.shape(data);
      if (s.rank() < 1 || s.rank() > 2 || (s.rank() == 2 && s.dims[0] != 1)) continue;
      int64_t n = s.dims.back();
      auto pieces = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n / kPiece)));
      if (pieces < 2 || n % kAlignment != 0 || !ctx.spend(m, "a row in pieces", {i})) continue;
      const Shape values = u[m.shape(i).elements[0]], indices = u[m.shape(i).elements[1]];
      int64_t k = values.dims.back(), all = pieces * k;
      ElementType number = indices.type;
      CompId order = m.called(i)[0];
      InstId rows = make_reshape(m, data, {pieces, n / pieces});
      AttrsId attrs = attrs_of(
          u, Opcode::CustomCall,
          {{Attr::custom_call_target, u.str("TopK")}, {Attr::called_computations, std::vector<CompId>{order}}});
      ShapeId some = u.array(s.type, {pieces, k}), places = u.array(number, {pieces, k});
      InstId call = make(m, c, Opcode::CustomCall, {rows}, attrs, u.tuple({some, places}));
      InstId best = make_reshape(m, make_element(m, call, 0), {all});
      // Places in a piece become places in the row.
      InstId place = make_element(m, call, 1);
      ShapeId count = u.array(number, {pieces});
      InstId iota =
          make(m, c, Opcode::Iota, {}, attrs_of(u, Opcode::Iota, {{Attr::iota_dimension, int64_t{0}}}), count);
      InstId length = make_broadcast(m, c, make_scalar(m, c, number, n / pieces), {}, count);
      InstId start = make(m, c, Opcode::Multiply, {iota, length});
      InstId at = make(m, c, Opcode::Add, {place, make_broadcast(m, c, start, {0}, places)});
      InstId sort = make(
          m, c, Opcode::Sort, {best, make_reshape(m, at, {all})},
          attrs_of(u, Opcode::Sort, {{Attr::dimensions, Dims{0}}, {Attr::is_stable, true}, {Attr::to_apply, order}}),
          u.tuple({u.array(s.type, {all}), u.array(number, {all})}));
      std::vector<InstId> results;
      for (int64_t r = 0; r < 2; ++r) {
        InstId first = make(m, c, Opcode::Slice, {make_element(m, sort, r)},
                            attrs_of(u, Opcode::Slice, {{Attr::slice, std::vector<SliceDim>{{0, k, 1}}}}));
        results.push_back(make_reshape(m, first, values.dims));
      }
      changed |= m.replace(i, make(m, c, Opcode::Tuple, results, {}, m.shape_id(i)));
    }
  return changed;
}

//   TopK(A), A of f32 or bf16, rows of 1024 and more, k of 16 and less      →      __gpu$TopK(A)
bool run_topk_specializer(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::CustomCall)) return false;
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!is_topk(m, i) || m.operand_count(i) != 1 || !m.shape(i).is_tuple()) continue;
      const Shape& s = m.shape(m.operand(i, 0));
      int64_t k = u[m.shape(i).elements[0]].dims.back();
      if ((s.type != ElementType::F32 && s.type != ElementType::BF16) || s.rank() > 2 || s.dims.back() < 1024 ||
          k > 16 || m.called(i).size() != 1 || !greater_first(m, m.called(i)[0]) ||
          !ctx.spend(m, "a kernel for few of many", {i}))
        continue;
      AttrsId attrs = attrs_of(u, Opcode::CustomCall,
                               {{Attr::custom_call_target, u.str("__gpu$TopK")},
                                {Attr::api_version, u.str("API_VERSION_TYPED_FFI")},
                                {Attr::called_computations, std::vector<CompId>{m.called(i)[0]}}});
      InstId call = make(m, c, Opcode::CustomCall, {m.operand(i, 0)}, attrs, m.shape_id(i));
      InstId whole = make(m, c, Opcode::Tuple, {make_element(m, call, 0), make_element(m, call, 1)}, {}, m.shape_id(i));
      changed |= m.replace(i, whole);
    }
  return changed;
}

}  // namespace hlo
