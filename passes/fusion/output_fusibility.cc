#include "passes/fusion/output_fusibility.h"

#include <algorithm>

#include "ir/analysis/fusion/reduction.h"
#include "ir/analysis/performance/fusibility.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr int64_t kSmallBytes = 1024;

bool is_loop_fusion(const Module& m, InstId i) {
  return m.op(i) == Opcode::Fusion && m.u().text(m.attrs(i).text(Attr::kind)) == "kLoop";
}

InstId body_root(const Module& m, InstId i) { return m.op(i) == Opcode::Fusion ? m.comp(m.called(i)[0]).root : i; }

// What the loops of the kernel are made for.
struct Hero {
  InstId hero;
  bool reduces = false;
  std::optional<TiledTranspose> transpose;
};

Hero output_hero(const Module& m, InstId i, const GpuTarget& t) {
  const FusionView view(m, i);
  auto of = [&](InstId root) {
    Hero h{root, false, std::nullopt};
    if (!view.contains(root)) return h;
    const InstId deep = fusion_hero(view, root);
    if (is_reduction_hero(m, root, deep, t)) h = {deep, true, std::nullopt};
    if (auto tiled = tiled_transpose(m, deep)) h = {deep, false, std::move(tiled)};
    return h;
  };
  if (m.op(i) != Opcode::Fusion) return {i, is_kernel_reduction(m, i, t), tiled_transpose(m, i)};
  for (InstId root : view.roots())
    if (Hero h = of(root); h.reduces || h.transpose) return h;
  return of(view.roots()[0]);
}

// The elements that the loops go over.
ShapeId loop_shape(const Module& m, const Hero& h) {
  return m.shape_id(h.reduces || h.transpose ? m.operand(h.hero, 0) : h.hero);
}

Dims layout_of(const Shape& s) {
  return s.has_layout && s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major
                                                                         : default_minor_to_major(s.rank());
}

bool alike(const Shape& a, const Shape& b) {
  return a.is_array() == b.is_array() && a.dims == b.dims && (!a.is_array() || layout_of(a) == layout_of(b));
}

// Are the elements of both in the same order in memory, whatever their types?
bool is_bitcast(const Module& m, ShapeId a, ShapeId b) {
  const Shape &x = m.u()[a], &y = m.u()[b];
  if (!x.is_array() || !y.is_array() || x.elements_count() != y.elements_count()) return false;
  auto sizes = [](const Shape& s) {
    Dims out;
    const Dims order = layout_of(s);
    for (size_t k = order.size(); k-- > 0;) out.push_back(s.dims[static_cast<size_t>(order[k])]);
    return out;
  };
  return sizes(x) == sizes(y) || reshape_is_bitcast(m.u(), a, b);
}

// From the parameter that stands for the other fusion elements go one by one to the root.
bool passes_through(const Module& m, InstId user, InstId other) {
  for (size_t n = 0; n < m.operand_count(user); ++n) {
    if (m.operand(user, n) != other) continue;
    InstId at = m.comp(m.called(user)[0]).params[n];
    if (m.user_count(at) != 1) return false;
    for (at = m.users(at)[0]; m.user_count(at) > 0; at = m.users(at)[0])
      if (m.user_count(at) > 1 || !passes_elements(m, at)) return false;
    return true;
  }
  return true;
}

bool transposes_memory(const Module& m, InstId i) {
  if (m.op(i) == Opcode::Fusion) {
    for (InstId b : m.comp(m.called(i)[0]).order)
      if (m.alive(b) && transposes_memory(m, b)) return true;
    return false;
  }
  return m.op(i) == Opcode::Copy || (m.op(i) == Opcode::Transpose && !keeps_order(m, i));
}

bool is_loop_producer(const Module& m, InstId i) {
  if (!is_fusible(m, i)) return false;
  switch (m.op(i)) {
    case Opcode::Copy:
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Gather:
    case Opcode::Pad:
    case Opcode::ReduceWindow:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
    case Opcode::Iota:
    case Opcode::Constant:
      return true;
    case Opcode::Reduce:
      return m.shape(i).is_array();
    case Opcode::Fusion:
      return is_loop_fusion(m, i);
    default:
      return is_elementwise(m, i) && m.operand_count(i) > 0;
  }
}

// The only slice that `i` reads of the array.
InstId only_slice(const Module& m, InstId array, InstId i) {
  if (m.op(i) == Opcode::Slice) return i;
  InstId found;
  if (m.op(i) != Opcode::Fusion) return found;
  for (size_t n = 0; n < m.operand_count(i); ++n) {
    if (m.operand(i, n) != array) continue;
    const InstId p = m.comp(m.called(i)[0]).params[n];
    if (found.valid() || m.user_count(p) != 1 || m.op(m.users(p)[0]) != Opcode::Slice) return InstId();
    found = m.users(p)[0];
  }
  return found;
}

}  // namespace

bool is_output_fusible(const Module& m, InstId i, const GpuTarget& target) {
  if (!is_fusible(m, i) || is_custom_fusion(m, i) || m.op(body_root(m, i)) == Opcode::Parameter) return false;
  if (is_loop_fusion(m, i) || is_elementwise(m, i) || has_reduction_root(m, i, target)) return true;
  const FusionView view(m, i);
  return std::any_of(view.roots().begin(), view.roots().end(), [&](InstId r) {
    return view.contains(r) && tiled_transpose(m, m.op(i) == Opcode::Fusion ? fusion_hero(view, r) : r);
  });
}

bool is_sibling_fusible(const Module& m, InstId i, const GpuTarget& target) {
  if (m.users(i).empty() || !is_output_fusible(m, i, target)) return false;
  if (!m.shape(i).is_tuple()) return true;
  const InstId root = body_root(m, i);
  // A reduction of several values that a loop computes.
  if (m.op(i) == Opcode::Reduce ? !is_kernel_reduction(m, i, target)
                                : is_loop_fusion(m, i) && m.op(root) == Opcode::Reduce)
    return false;
  const auto users = m.users(i);
  return m.op(root) != Opcode::Tuple ||
         std::all_of(users.begin(), users.end(), [&](InstId u) { return m.op(u) == Opcode::GetTupleElement; });
}

std::string refuse_output_producer(const Module& m, InstId producer) {
  if (m.shape(producer).is_tuple()) return "Producer is a multi-output fusion";
  if (overwrites_operand(m, producer)) return "In-place operations are present";
  if (!is_loop_producer(m, producer) || m.op(body_root(m, producer)) == Opcode::Parameter)
    return "producer is not loop-fusible";
  return transposes_memory(m, producer) ? "producer is physically transposing" : "";
}

std::string refuse_loops(const Module& m, InstId a, InstId b, const GpuTarget& target) {
  const Hero x = output_hero(m, a, target), y = output_hero(m, b, target);
  if (x.reduces && y.reduces && !(reduction_shape(m, x.hero) == reduction_shape(m, y.hero)))
    return "tiled reductions with different shapes";
  if (x.transpose && y.transpose &&
      (x.transpose->dims != y.transpose->dims || x.transpose->permutation != y.transpose->permutation))
    return "tiled transposes with different shapes";
  auto untiled = [&](const Hero& h) { return !h.transpose && m.op(h.hero) == Opcode::Transpose; };
  if ((x.transpose && untiled(y)) || (y.transpose && untiled(x))) return "one transpose is tiled, the other is not";
  // Whether the transpose is tiled or not.
  if (((x.transpose || untiled(x)) && y.reduces) || (x.reduces && (y.transpose || untiled(y))))
    return "MOF-fusion of a transpose and a reduction";
  if (m.op(a) == Opcode::Fusion && m.op(b) == Opcode::Fusion &&
      ((x.transpose && !passes_through(m, b, a)) || (y.transpose && !passes_through(m, a, b))))
    return "tiled transpose would become untiled";
  const ShapeId l = loop_shape(m, x), r = loop_shape(m, y);
  return alike(m.u()[l], m.u()[r]) || is_bitcast(m, l, r) ? "" : "different loop shapes";
}

std::string refuse_siblings(const Module& m, InstId a, InstId b, InstId shared) {
  const Shape& s = m.shape(shared);
  if (s.is_array() && s.elements_count() * ((element_bits(s.type) + 7) / 8) >= kSmallBytes) {
    const InstId x = only_slice(m, shared, a), y = only_slice(m, shared, b);
    const auto* p = x.valid() && y.valid() ? m.attrs(x).get<std::vector<SliceDim>>(Attr::slice) : nullptr;
    const auto* q = p ? m.attrs(y).get<std::vector<SliceDim>>(Attr::slice) : nullptr;
    if (p && q)
      for (size_t d = 0; d < std::min(p->size(), q->size()); ++d)
        if ((*p)[d].start >= (*q)[d].limit || (*q)[d].start >= (*p)[d].limit) return "slices are non-overlapping";
  }
  if (m.op(body_root(m, a)) == Opcode::DynamicUpdateSlice || m.op(body_root(m, b)) == Opcode::DynamicUpdateSlice)
    return "can't fuse multiple DUSs";
  return "";
}

}  // namespace hlo
