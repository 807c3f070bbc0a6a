// Passes of a rule or two: dynamic-dimension-simplifier, computation-deduplicator, sharding-remover,
// broadcast_canonicalizer, reshape-decomposer, simplify-fp-conversions (xla/service and xla/hlo/transforms, files of
// those names).
#include <algorithm>
#include <numeric>

#include "ir/fingerprint.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

std::string_view target(const Module& m, InstId i) {
  return m.op(i) == Opcode::CustomCall ? m.u().text(m.attrs(i).text(Attr::custom_call_target)) : std::string_view();
}

// One sweep over what is no fusion; `f` gives what an instruction of that opcode can be replaced by, or nothing.
template <class F>
bool sweep(Module& m, PassContext& ctx, Opcode op, std::string_view rule, F f) {
  bool changed = false;
  if (!m.count(op)) return false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != op || !m.alive(i)) continue;
      InstId to = f(i);
      if (!to.valid() || m.dead(i)) continue;
      if (!ctx.spend(m, rule, {i, to})) return changed;
      m.replace_all_uses(i, to);  // what is left is dead until dce comes, as in XLA
      changed = true;
    }
  return changed;
}

}  // namespace

//   reshape(reshape(A)) of A's shape      →      A      and other index arithmetic that does nothing
bool run_dynamic_dimension_simplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  const Universe& u = m.u();
  // Nested concatenates.
  for (InstId i : all_of_opcode(m, Opcode::Concatenate)) {
    const Dims& along = m.attrs(i).ints(Attr::dimensions);
    std::vector<InstId> flat;
    bool nested = false;
    for (InstId o : m.operands(i))
      if (m.op(o) == Opcode::Concatenate && m.attrs(o).ints(Attr::dimensions) == along) {
        nested = true;
        for (InstId p : m.operands(o)) flat.push_back(p);
      } else {
        flat.push_back(o);
      }
    if (!nested) continue;
    if (!ctx.spend(m, "nested concatenate", {i})) return changed;
    changed |= m.replace(i, make(m, m.parent(i), Opcode::Concatenate, flat,
                                 dims_attr(m.u(), Opcode::Concatenate, Dims(along)), m.shape_id(i)));
  }
  changed |= sweep(m, ctx, Opcode::Slice, "slice is a piece of a concatenate", [&](InstId i) {
    if (m.shape(i).rank() != 1 || m.op(m.operand(i, 0)) != Opcode::Concatenate) return InstId();
    const SliceDim cut = m.attrs(i).get<std::vector<SliceDim>>(Attr::slice)->at(0);
    if (cut.stride != 1) return InstId();
    int64_t at = 0;
    for (InstId o : m.operands(m.operand(i, 0))) {
      int64_t n = m.shape(o).dims[0];
      if (at == cut.start && at + n == cut.limit) return o;
      at += n;
    }
    return InstId();
  });
  changed |= sweep(m, ctx, Opcode::Reshape, "scalar of a broadcast scalar", [&](InstId i) {
    if (m.shape(i).rank() != 0) return InstId();
    InstId b = m.operand(i, 0);
    if (m.op(b) != Opcode::Broadcast || m.shape(b).rank() != 1 || m.shape(m.operand(b, 0)).rank() != 0) return InstId();
    return m.operand(b, 0);
  });
  changed |= sweep(m, ctx, Opcode::Reshape, "reshape there and back", [&](InstId i) {
    if (m.op(m.operand(i, 0)) != Opcode::Reshape) return InstId();
    InstId source = m.operand(m.operand(i, 0), 0);
    return u.shape_text(m.shape_id(source)) == u.shape_text(m.shape_id(i)) ? source : InstId();
  });
  for (Opcode op : {Opcode::Convert, Opcode::Reshape})
    changed |= sweep(m, ctx, op, op == Opcode::Convert ? "convert to the same type" : "reshape to the same shape",
                     [&](InstId i) {
                       bool same = u.shape_text(m.shape_id(m.operand(i, 0))) == u.shape_text(m.shape_id(i));
                       return same ? m.operand(i, 0) : InstId();
                     });
  return changed;
}

//   two computations that do the same      →      one
bool run_computation_deduplicator(Module& m, PassContext& ctx) {
  constexpr size_t kMostInstructions = 128;
  constexpr int64_t kMostConstantBytes = 1024;
  // Behind fusion XLA only marks fusions that are alike, in metadata that its dumps do not show.
  if (ctx.flag("mark_fusion_duplications")) return false;
  const std::vector<bool> fused = m.fusion_computation_flags();  // a fusion's body is its own
  std::unordered_map<CompId, bool> of_collectives;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && op_info(m.op(i)).cls == OpClass::Collective)
        for (CompId callee : m.called(i)) of_collectives[callee] = true;
  Fingerprints prints(m);
  std::unordered_map<uint64_t, CompId> first;
  std::unordered_map<CompId, CompId> same;
  for (CompId c : m.computation_post_order()) {
    if (c == m.entry() || fused[c.value] || of_collectives.contains(c) || m.size(c) > kMostInstructions) continue;
    int64_t bytes = 0;
    for (InstId i : m.live_order(c))
      if (m.op(i) == Opcode::Constant) bytes += m.u().leaf_bytes(m.shape_id(i));
    if (bytes > kMostConstantBytes) continue;
    auto [at, fresh] = first.emplace(prints.computation(c), c);
    if (!fresh) same[c] = at->second;
  }
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      for (CompId callee : std::vector<CompId>(m.called(i))) {
        auto twin = same.find(callee);
        if (twin == same.end()) continue;
        if (!ctx.spend(m, "computation that is there already", {i},
                       fmt::format("{} is {}", m.comp_name(callee), m.comp_name(twin->second))))
          return changed;
        m.replace_called(i, callee, twin->second);
        changed = true;
      }
  if (!changed) return false;
  m.remove_uncalled_computations();
  return true;
}

//   custom-call(A), custom_call_target="Sharding"      →      copy(A), its users read A
bool run_sharding_remover(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::CustomCall)) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations()) {
    std::vector<InstId> order = m.post_order(c);
    for (size_t k = order.size(); k-- > 0;) {
      InstId i = order[k];
      std::string_view t = target(m, i);
      bool barrier = t == "xla.sdy.PropagationBarrier" || t == "xla.sdy.FuncResultSharding";
      bool group = t == "xla.sdy.ShardingGroup";
      if (t != "Sharding" && t != "SPMDShardToFullShape" && t != "SPMDFullToShardShape" && !barrier && !group) continue;
      if (m.operand_count(i) != 1) continue;
      InstId x = m.operand(i, 0);
      if (!group && !m.u().compatible(m.shape_id(x), m.shape_id(i)))
        fail(FailureKind::kUnsupported, "sharding-remover: {} changes the shape of {}: the module is partitioned",
             m.inst_name(i), m.inst_name(x));
      if (!ctx.spend(m, "mark of the partitioner", {i, x})) return changed;
      changed = true;
      if (group) {
        if (m.dead(i)) m.remove(i);
        continue;
      }
      m.replace_all_uses(i, x);
      m.replace(i, make(m, c, Opcode::Copy, {x}, {}, m.shape_id(i)));
    }
  }
  return changed;
}

//   broadcast(A), dimensions={2,0}      →      broadcast(transpose(A)), dimensions={0,2}
bool run_broadcast_canonicalizer(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Broadcast)) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != Opcode::Broadcast) continue;
      Dims dims = m.attrs(i).ints(Attr::dimensions);
      if (std::is_sorted(dims.begin(), dims.end()) || m.has_control(i)) continue;
      if (!ctx.spend(m, "dimensions out of order", {i})) return changed;
      Dims order(dims.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return dims[static_cast<size_t>(a)] < dims[static_cast<size_t>(b)];
      });
      std::sort(dims.begin(), dims.end());
      InstId x = m.operand(i, 0), moved = make_transpose(m, x, order);
      m.set_shape(moved, m.u().with_layout(m.shape_id(moved), m.shape(x).layout.minor_to_major));
      changed |= m.replace(i, make_broadcast(m, c, moved, dims, m.shape_id(i)));
    }
  return changed;
}

namespace {

// A layout for `to` in which the reshape moves nothing: the groups of dimensions that belong together keep their order
// in memory, each row-major within. Nothing where a group of `from` is not contiguous and row-major.
bool aligned_layout(const Universe& u, ShapeId from_id, const Dims& to, Dims* minor_to_major) {
  const Shape& from = u[from_id];
  const std::string& rest = from.layout.rest;
  if ((!rest.empty() && !rest.starts_with("E(")) || from.elements_count() == 0) return false;
  auto bounds = common_factors(from.dims, to);
  // Groups by their place in memory, minor first; dimensions of one element lie anywhere.
  std::vector<size_t> group_of(from.dims.size());
  for (size_t g = 0; g + 1 < bounds.size(); ++g)
    for (size_t d = bounds[g].first; d < bounds[g + 1].first; ++d) group_of[d] = g;
  std::vector<size_t> order;
  int64_t last = -1;
  for (int64_t d : from.layout.minor_to_major) {
    auto k = static_cast<size_t>(d);
    if (from.dims[k] == 1) continue;
    if (order.empty() || order.back() != group_of[k]) {
      if (std::find(order.begin(), order.end(), group_of[k]) != order.end()) return false;
      order.push_back(group_of[k]);
    } else if (d > last) {
      return false;
    }
    last = d;
  }
  minor_to_major->clear();
  for (size_t g : order)
    for (size_t d = bounds[g + 1].second; d-- > bounds[g].second;)
      if (to[d] != 1) minor_to_major->push_back(static_cast<int64_t>(d));
  // Dimensions of one element go last (ShapeUtil::AlignLayouts).
  for (size_t d = to.size(); d-- > 0;)
    if (to[d] == 1) minor_to_major->push_back(static_cast<int64_t>(d));
  return minor_to_major->size() == to.size();
}

}  // namespace

//   reshape(A)      →      bitcast(A), bitcast(copy(A)) or copy(bitcast(A)), as the layouts need it
bool run_reshape_decomposer(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations()) {
    std::vector<InstId> found;
    visit_computation(m, c, [&](InstId i) {
      if (m.op(i) == Opcode::Reshape) found.push_back(i);
    });
    for (InstId i : found) {
      InstId x = m.operand(i, 0);
      if (m.has_control(i) || m.shape(i).is_dynamic()) continue;
      ShapeId from = m.shape_id(x), to = m.shape_id(i);
      auto bitcast = [&](InstId of, ShapeId shape) {
        InstId b = make(m, c, Opcode::Bitcast, {of}, {}, shape);
        m.set_meta(b, m[of].meta);
        return b;
      };
      auto copy = [&](InstId of, ShapeId shape) { return make(m, c, Opcode::Copy, {of}, {}, shape); };
      Dims layout;
      InstId now;
      if (reshape_is_bitcast(u, from, to)) {
        if (!ctx.spend(m, "reshape that moves nothing", {i})) return changed;
        now = bitcast(x, to);
      } else if (aligned_layout(u, to, m.shape(x).dims, &layout)) {
        if (!ctx.spend(m, "copy, then a reshape that moves nothing", {i})) return changed;
        // How large its elements are is not said of what is copied.
        ShapeId aligned = u.with_layout(u.array(m.shape(x).type, m.shape(x).dims), layout);
        now = bitcast(copy(x, aligned), to);
      } else if (aligned_layout(u, from, m.shape(i).dims, &layout)) {
        if (!ctx.spend(m, "reshape that moves nothing, then a copy", {i})) return changed;
        now = copy(bitcast(x, u.with_layout(to, layout)), to);
      } else {
        if (!ctx.spend(m, "copy, a reshape that moves nothing, copy", {i})) return changed;
        ShapeId plain = u.with_default_layout(from), wide = u.with_default_layout(to);
        now = copy(bitcast(copy(x, plain), wide), to);
      }
      changed |= m.replace(i, now);
    }
  }
  return changed;
}

//   convert(convert(A))      →      convert(A)      (results that are floats; what the narrower one rounded stays
//   unrounded)
bool run_simplify_fp_conversions(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Convert)) return false;
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || m.op(i) != Opcode::Convert || !is_float(m.shape(i).type) || m.has_control(i)) continue;
      InstId first = m.operand(i, 0);
      size_t chain = 1;
      for (; m.op(first) == Opcode::Convert && is_float(m.shape(first).type); ++chain) first = m.operand(first, 0);
      if (chain < 2) continue;
      if (!ctx.spend(m, "chain of converts", {i, first})) return changed;
      bool same = m.shape(first).type == m.shape(i).type;
      changed |= m.replace(i, same ? first : make(m, c, Opcode::Convert, {first}, {}, m.shape_id(i)));
    }
  return changed;
}

}  // namespace hlo
