// Passes over collectives: all-reduce-simplifier, all-reduce-folder, all-reduce-splitter, all-reduce-reassociate,
// reduce-scatter-reassociate, reduce-scatter-creator, all-gather-optimizer, all-gather-dynamic-slice-simplifier,
// all-reduce-promotion (xla/service/all_reduce_simplifier.cc and beside it, and
// xla/backends/gpu/transforms/collectives/all_reduce_splitter.cc).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "ir/query/reducer.h"
#include "ir/sharding/sharding.h"
#include "passes/collectives/collectives.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

using Groups = std::vector<Dims>;

std::string groups_text(const Groups& groups) {
  std::string out = "{";
  for (size_t g = 0; g < groups.size(); ++g) out += fmt::format("{}{{{}}}", g ? "," : "", fmt::join(groups[g], ","));
  return out + "}";
}

// Do two collectives do the same to different arrays? Their functions are compared by what they do, and their groups,
// which can be written in several ways, by their devices.
bool alike(Module& m, InstId a, InstId b) {
  auto rest = [&](InstId i) {
    AttrSet set = m.attrs(i);
    for (Attr key : {Attr::to_apply, Attr::channel_id, Attr::sharding, Attr::replica_groups}) set.erase(key);
    return m.u().attrs(std::move(set));
  };
  Groups x, y;
  return m.attrs(a).has(Attr::channel_id) == m.attrs(b).has(Attr::channel_id) && rest(a) == rest(b) &&
         read_groups(m, a, &x) && read_groups(m, b, &y) && x == y;
}

// The same on all replicas: made of constants and of broadcasts, elementwise operations and all-reduces of such.
bool replicated(const Module& m, InstId i, int depth = 0) {
  if (depth > 16) return false;
  switch (m.op(i)) {
    case Opcode::Constant:
    case Opcode::Iota:
      return true;
    case Opcode::AllReduce: {
      Groups groups;
      return read_groups(m, i, &groups) && groups.empty() && m.shape(i).is_array();
    }
    default:
      if (m.has_side_effect(i) || m.operand_count(i) == 0 || !m.shape(i).is_array() || m.op(i) == Opcode::Rng ||
          m.op(i) == Opcode::CustomCall || op_info(m.op(i)).cls == OpClass::Collective || !m.called(i).empty())
        return false;
      for (InstId o : m.operands(i))
        if (!replicated(m, o, depth + 1)) return false;
      return true;
  }
}

bool carries_over(Opcode op) {
  return op == Opcode::Add || op == Opcode::Multiply || op == Opcode::Maximum || op == Opcode::Minimum ||
         op == Opcode::And || op == Opcode::Or;
}

// Is it what that operation leaves everything as it was with?
bool leaves_alone(const Module& m, InstId constant, Opcode kind) {
  ElementType t = m.shape(constant).type;
  if (kind == Opcode::Add || kind == Opcode::Or) return is_all(m, constant, 0);
  if (kind == Opcode::Multiply) return is_all(m, constant, 1);
  bool least = kind == Opcode::Maximum;
  if (!least && kind != Opcode::Minimum) return false;
  if (is_float(t)) return is_all(m, constant, least ? -INFINITY : INFINITY);
  if (!is_integral(t) || type_bits(t) > 32) return false;
  double range = std::ldexp(1.0, type_bits(t));
  if (is_signed_int(t)) return is_all(m, constant, least ? -range / 2 : range / 2 - 1);
  return is_all(m, constant, least ? 0 : range - 1);
}

// The collective behind reshapes, slices, converts and pads with what the reduction leaves alone, each read once.
InstId collective_behind(const Module& m, InstId i, Opcode collective, Opcode kind) {
  while (m.op(i) != collective) {
    if (m.user_count(i) != 1 || m.use_count(i) != 1 || m.is_root(i)) return {};
    Opcode op = m.op(i);
    if (op != Opcode::Reshape && op != Opcode::Pad && op != Opcode::Slice && op != Opcode::Convert) return {};
    if (op == Opcode::Pad && !leaves_alone(m, m.operand(i, 1), kind)) return {};
    i = m.operand(i, 0);
  }
  bool fits = m.operand_count(i) == 1 && m.user_count(i) == 1 && m.use_count(i) == 1 && !m.is_root(i) &&
              !m.attrs(i).flag(Attr::constrain_layout) && !m.has_control(i);
  return fits ? i : InstId();
}

// An operation on two results of collectives, which it may come before.
struct Joined {
  InstId l, r;  // the collectives; invalid where it is none
};

Joined joined_after(Module& m, InstId i, Opcode collective) {
  if (!m.alive(i) || !carries_over(m.op(i)) || m.has_control(i) || !m.shape(i).is_array()) return {};
  InstId x = m.operand(i, 0), y = m.operand(i, 1);
  InstId l = collective_behind(m, x, collective, m.op(i)), r = collective_behind(m, y, collective, m.op(i));
  if (!l.valid() || !r.valid() || l == r || reduced_by(m, l) != m.op(i) || reduced_by(m, r) != m.op(i)) return {};
  if (!alike(m, l, r)) return {};
  ElementType own = m.shape(i).type;
  // Scattered parts say nothing of where a reshape or a slice would take them.
  if (collective == Opcode::ReduceScatter && (l != x || r != y)) return {};
  auto fits = [&](ElementType t) {
    return t == own || (is_float(t) && is_float(own) && type_bits(t) < type_bits(own));
  };
  if (!fits(m.shape(l).type) || !fits(m.shape(r).type)) return {};
  // More would be sent than before.
  if (m.u().byte_size(m.shape_id(l)) + m.u().byte_size(m.shape_id(r)) < m.u().byte_size(m.shape_id(i))) return {};
  return {l, r};
}

// In place: the operation takes what the collectives took, one collective follows it.
void join_after(Module& m, InstId i, Joined pair, int64_t* channel) {
  const auto [l, r] = pair;
  const CompId c = m.parent(i);
  const Opcode collective = m.op(l);
  const ElementType own = m.shape(i).type;
  const bool wider = m.shape(l).type != own || m.shape(r).type != own;
  InstId x = m.operand(i, 0), y = m.operand(i, 1);
  InstId inputs[2] = {l == x ? m.operand(l, 0) : x, r == y ? m.operand(r, 0) : y};
  if (l != x) m.replace_all_uses(l, m.operand(l, 0));
  if (r != y) m.replace_all_uses(r, m.operand(r, 0));
  ShapeId before = collective == Opcode::ReduceScatter ? m.shape_id(inputs[0]) : m.shape_id(i);
  InstId inner = m.clone_inst(i, c, std::vector<InstId>{inputs[0], inputs[1]}, before);
  InstId outer = m.clone_inst(l, c, std::vector<InstId>{inner}, m.shape_id(i));
  if (m.attrs(l).has(Attr::channel_id)) m.set_attr(outer, Attr::channel_id, next_channel(m, channel));
  if (wider)
    m.set_attr(
        outer, Attr::to_apply,
        make_reducer(m, fmt::format("{}_reassoc_promoted", m.comp_name(m.called(l)[0])), m.op(i), own, "x", "y"));
  m.replace(i, outer);
  for (InstId old : {l, r})
    if (m.alive(old) && m.user_count(old) == 0) m.remove(old);
}

//   add(all-reduce(A), all-reduce(B))      →      all-reduce(add(A, B))
bool reassociate(Module& m, PassContext& ctx, Opcode collective) {
  if (!m.count(collective)) return false;
  bool changed = false;
  int64_t channel = 0;
  for (CompId c : m.nonfusion_computations()) {
    for (InstId i : m.post_order(c)) {
      const Joined pair = joined_after(m, i, collective);
      if (!pair.l.valid()) continue;
      if (!ctx.spend(m, "collectives joined after the operation", {i, pair.l, pair.r})) return changed;
      join_after(m, i, pair, &channel);
      changed = true;
    }
  }
  return changed;
}

// What a scalar is on each device, as far as it is made of its id, constants and tables: its value by device.
std::optional<Dims> by_device(const Module& m, InstId i, int64_t count, int depth = 0) {
  if (depth > 32) return std::nullopt;
  auto inner = [&](InstId x) { return by_device(m, x, count, depth + 1); };
  Dims out(static_cast<size_t>(count));
  switch (m.op(i)) {
    case Opcode::PartitionId:
    case Opcode::ReplicaId: {
      int64_t partitions = m.config().num_partitions;
      for (int64_t d = 0; d < count; ++d)
        out[static_cast<size_t>(d)] = m.op(i) == Opcode::PartitionId ? d % partitions : d / partitions;
      return out;
    }
    case Opcode::Constant: {
      const Literal& l = m.literal(i);
      if (m.shape(i).elements_count() != 1 || l.elided || !is_integral(m.shape(i).type)) return std::nullopt;
      std::fill(out.begin(), out.end(), load_int(m.shape(i).type, l.bytes.data()));
      return out;
    }
    case Opcode::Reshape:
    case Opcode::Bitcast:
    case Opcode::Copy:
      return inner(m.operand(i, 0));
    case Opcode::Convert:
      if (!is_integral(m.shape(i).type) || !is_integral(m.shape(m.operand(i, 0)).type)) return std::nullopt;
      return inner(m.operand(i, 0));
    case Opcode::Multiply: {
      std::optional<Dims> a = inner(m.operand(i, 0)), b = inner(m.operand(i, 1));
      if (!a || !b || (m.op(m.operand(i, 0)) != Opcode::Constant && m.op(m.operand(i, 1)) != Opcode::Constant))
        return std::nullopt;
      for (size_t d = 0; d < out.size(); ++d) out[d] = (*a)[d] * (*b)[d];
      return out;
    }
    case Opcode::DynamicSlice: {
      // One element of a table.
      InstId table = m.operand(i, 0);
      if (m.op(table) != Opcode::Constant || m.shape(table).rank() != 1 || m.shape(i).elements_count() != 1 ||
          m.literal(table).elided || !is_integral(m.shape(table).type))
        return std::nullopt;
      std::optional<Dims> at = inner(m.operand(i, 1));
      if (!at) return std::nullopt;
      ElementType t = m.shape(table).type;
      for (size_t d = 0; d < out.size(); ++d) {
        int64_t k = std::clamp<int64_t>((*at)[d], 0, m.shape(table).dims[0] - 1);
        out[d] = load_int(t, m.literal(table).bytes.data() + k * storage_bytes(t));
      }
      return out;
    }
    default:
      return std::nullopt;
  }
}

// The dimension along which a slice of `whole` takes, on each device, the part that is its own by its place in its
// group; -1 where it takes anything else. Parts are as many as a group has members.
int64_t own_part(const Module& m, InstId slice, const Shape& whole, const Groups& groups) {
  const Dims& to = m.shape(slice).dims;
  int64_t dim = -1, n = static_cast<int64_t>(groups.empty() ? 0 : groups[0].size());
  if (n < 2) return -1;
  for (size_t d = 0; d < whole.dims.size(); ++d) {
    if (whole.dims[d] == to[d]) continue;
    if (dim >= 0 || to[d] * n != whole.dims[d]) return -1;
    dim = static_cast<int64_t>(d);
  }
  if (dim < 0) return -1;
  std::optional<Dims> at = by_device(m, m.operand(slice, static_cast<size_t>(dim) + 1),
                                     m.config().num_partitions * m.config().replica_count);
  if (!at) return -1;
  for (const Dims& g : groups) {
    if (static_cast<int64_t>(g.size()) != n) return -1;
    for (int64_t k = 0; k < n; ++k) {
      auto device = static_cast<size_t>(g[static_cast<size_t>(k)]);
      if (device >= at->size() || (*at)[device] != k * to[static_cast<size_t>(dim)]) return -1;
    }
  }
  return dim;
}

// Groups of devices, numbered as by_device does; none where the collective's ids are not such numbers.
std::optional<Groups> device_groups(const Module& m, InstId i) {
  Groups groups;
  if (!read_groups(m, i, &groups)) return std::nullopt;
  bool channel = m.attrs(i).has(Attr::channel_id), global = m.attrs(i).flag(Attr::use_global_device_ids);
  int64_t replicas = m.config().replica_count, partitions = m.config().num_partitions;
  // Replicas alone, each partition by itself.
  if (!channel && partitions > 1) return std::nullopt;
  // All partitions of some replicas: plain where there is one replica.
  if (channel && !global && replicas > 1) return std::nullopt;
  if (groups.empty() || (channel && !global)) {
    Dims all(static_cast<size_t>(replicas * partitions));
    std::iota(all.begin(), all.end(), int64_t{0});
    return Groups{all};
  }
  return groups;
}

Groups sorted_groups(Groups groups) {
  for (Dims& g : groups) std::sort(g.begin(), g.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

// dynamic-slice of a collective's result that is its only reader.
InstId only_slice(const Module& m, InstId i) {
  if (m.user_count(i) != 1 || m.use_count(i) != 1 || m.is_root(i) || m.has_control(i)) return {};
  InstId slice = m.users(i)[0];
  return m.op(slice) == Opcode::DynamicSlice && m.operand(slice, 0) == i ? slice : InstId();
}

// 0 where there are none or they differ.
int64_t even_size(const Groups& groups) {
  for (const Dims& g : groups)
    if (g.size() != groups[0].size()) return 0;
  return groups.empty() ? 0 : static_cast<int64_t>(groups[0].size());
}

}  // namespace

bool read_groups(const Module& m, InstId i, std::vector<Dims>* out) {
  const std::string_view text = m.u().text(m.attrs(i).text(Attr::replica_groups));
  out->clear();
  if (text.empty()) return true;
  if (!expand_replica_groups(text, out)) return false;
  std::erase_if(*out, [](const Dims& group) { return group.empty(); });
  return true;
}

std::optional<Opcode> reduced_by(const Module& m, InstId i) { return reducer_operation(m, m.called(i)[0]); }

int64_t group_size(const Module& m, InstId i) {
  Groups groups;
  if (!read_groups(m, i, &groups)) return 0;
  if (!groups.empty()) return even_size(groups);
  const bool all = m.attrs(i).flag(Attr::use_global_device_ids);
  // With a channel an exchange goes between partitions.
  const bool partitions = m.op(i) == Opcode::AllToAll && m.attrs(i).has(Attr::channel_id);
  return (partitions && !all ? 1 : m.config().replica_count) * (partitions || all ? m.config().num_partitions : 1);
}

int64_t named_group_size(const Module& m, InstId i) {
  Groups groups;
  return read_groups(m, i, &groups) ? even_size(groups) : 0;
}

int64_t next_channel(const Module& m, int64_t* last) {
  if (*last == 0)
    for (CompId c : m.computations())
      for (InstId i : m.live_order(c)) *last = std::max(*last, m.attrs(i).integer(Attr::channel_id, 0));
  return ++*last;
}

//   all-reduce(A) of groups of one device, all-gather(A) of one shape      →      A
//   all-reduce-add(A) of what all replicas have      →      A * replicas
bool run_all_reduce_simplifier(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::AllReduce, Opcode::AllGather, Opcode::ReduceScatter})) return false;
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      Opcode op = m.op(i);
      if (!m.alive(i) || m.operand_count(i) != 1 || m.has_control(i)) continue;
      InstId a = m.operand(i, 0);
      if ((op == Opcode::AllGather || op == Opcode::ReduceScatter) && u.compatible(m.shape_id(i), m.shape_id(a))) {
        if (!ctx.spend(m, "collective that changes nothing", {i})) return changed;
        m.replace_all_uses(i, a);
        m.remove(i);
        changed = true;
        continue;
      }
      if (op != Opcode::AllReduce || !m.shape(i).is_array()) continue;
      if (group_size(m, i) == 1) {
        if (!ctx.spend(m, "groups of one device", {i})) return changed;
        m.replace_all_uses(i, a);
        m.remove(i);
        changed = true;
        continue;
      }
      // Across replicas alone, of what all of them have.
      const std::optional<Opcode> kind = reduced_by(m, i);
      int64_t n = group_size(m, i);
      if (m.attrs(i).has(Attr::channel_id) || n <= 1 || !kind || !replicated(m, a)) continue;
      if (kind == Opcode::Maximum || kind == Opcode::Minimum || kind == Opcode::And || kind == Opcode::Or) {
        if (!ctx.spend(m, "of what all replicas have", {i})) return changed;
        changed |= m.replace(i, a);
      } else if (kind == Opcode::Add) {
        if (!ctx.spend(m, "sum of what all replicas have", {i}, fmt::format("{} replicas", n))) return changed;
        InstId count = make_convert(m, make_scalar(m, c, ElementType::S32, n), m.shape(i).type);
        if (m.shape(i).rank()) count = make_broadcast(m, c, count, {}, m.shape_id(i));
        changed |= m.replace(i, make(m, c, Opcode::Multiply, {a, count}, {}, m.shape_id(i)));
      }
    }
  return changed;
}

namespace {

// Groups of one step that sums the same as steps over the first and then over the second; empty: there are none. Each
// outer group must take one member of each of some inner groups, and all outer groups of one set of inner groups must
// cover these wholly.
Groups joined_groups(const Groups& first, const Groups& second) {
  std::map<int64_t, size_t> home;
  for (size_t g = 0; g < first.size(); ++g)
    for (int64_t d : first[g]) home[d] = g;
  std::map<std::vector<size_t>, std::vector<const Dims*>> sets;
  bool fits = true;
  for (const Dims& g : second) {
    std::vector<size_t> from;
    for (int64_t d : g) {
      auto at = home.find(d);
      fits &= at != home.end();
      if (fits) from.push_back(at->second);
    }
    std::sort(from.begin(), from.end());
    fits &= std::adjacent_find(from.begin(), from.end()) == from.end();
    sets[from].push_back(&g);
  }
  Groups merged;
  for (const auto& [from, outer] : sets) {
    if (!fits) break;
    Dims all;
    for (size_t g : from) {
      fits &= first[g].size() == outer.size();
      all.insert(all.end(), first[g].begin(), first[g].end());
    }
    std::sort(all.begin(), all.end());
    merged.push_back(all);
  }
  Dims seen;
  for (const Dims& g : merged) seen.insert(seen.end(), g.begin(), g.end());
  std::sort(seen.begin(), seen.end());
  fits &= std::adjacent_find(seen.begin(), seen.end()) == seen.end() && seen.size() == home.size();
  if (!fits) return {};
  std::sort(merged.begin(), merged.end());
  return merged;
}

// Of an all-reduce of an all-reduce; empty where the two are not one.
Groups folded_groups(const Module& m, InstId i) {
  if (!m.alive(i) || m.op(i) != Opcode::AllReduce || m.operand_count(i) != 1 || m.has_control(i)) return {};
  InstId inner = m.operand(i, 0);
  const std::optional<Opcode> kind = reduced_by(m, i);
  if (m.op(inner) != Opcode::AllReduce || m.user_count(inner) != 1 || m.operand_count(inner) != 1 ||
      m.has_control(inner) || m.is_root(inner) || !kind || reduced_by(m, inner) != kind ||
      m.attrs(i).has(Attr::channel_id) != m.attrs(inner).has(Attr::channel_id) ||
      m.attrs(i).flag(Attr::use_global_device_ids) != m.attrs(inner).flag(Attr::use_global_device_ids) ||
      m.attrs(i).flag(Attr::constrain_layout) != m.attrs(inner).flag(Attr::constrain_layout))
    return {};
  Groups first, second;
  if (!read_groups(m, inner, &first) || !read_groups(m, i, &second) || first.empty() || second.empty()) return {};
  return joined_groups(first, second);
}

}  // namespace

//   all-reduce(all-reduce(A), {{0,1},{2,3}}), {{0,2},{1,3}}      →      all-reduce(A), {{0,1,2,3}}
bool run_all_reduce_folder(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::AllReduce)) return false;
  bool changed = false;
  int64_t channel = 0;
  for (CompId c : m.nonfusion_computations()) {
    for (InstId i : m.post_order(c)) {
      const Groups merged = folded_groups(m, i);
      if (merged.empty()) continue;
      InstId inner = m.operand(i, 0);
      if (!ctx.spend(m, "all-reduce twice", {i, inner})) return changed;
      AttrSet set = m.attrs(inner);
      set.erase(Attr::sharding);
      set.set(Attr::replica_groups, m.u().str(groups_text(merged)));
      if (set.has(Attr::channel_id)) set.set(Attr::channel_id, next_channel(m, &channel));
      InstId to = make(m, c, Opcode::AllReduce, {m.operand(inner, 0)}, m.u().attrs(std::move(set)), m.shape_id(i));
      m.replace(i, to);
      changed = true;
    }
  }
  return changed;
}

bool run_all_reduce_reassociate(Module& m, PassContext& ctx) { return reassociate(m, ctx, Opcode::AllReduce); }
bool run_reduce_scatter_reassociate(Module& m, PassContext& ctx) { return reassociate(m, ctx, Opcode::ReduceScatter); }

//   dynamic-slice(all-reduce(A), what is the device's own part)      →      reduce-scatter(A)
bool run_reduce_scatter_creator(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::AllReduce)) return false;
  bool changed = false;
  Universe& u = m.u();
  int64_t channel = 0;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || m.op(i) != Opcode::AllReduce || m.operand_count(i) != 1 || !m.shape(i).is_array()) continue;
      InstId slice = only_slice(m, i);
      if (!slice.valid()) continue;
      std::optional<Groups> groups = device_groups(m, i);
      int64_t dim = groups ? own_part(m, slice, m.shape(i), *groups) : -1;
      if (dim < 0) continue;
      if (!ctx.spend(m, "slice of an all-reduce", {i, slice})) return changed;
      AttrSet set = m.attrs(i);
      AttrSet out;
      out.op = Opcode::ReduceScatter;
      for (Attr key : {Attr::replica_groups, Attr::use_global_device_ids, Attr::constrain_layout})
        if (const AttrValue* v = set.find(key)) out.set(key, *v);
      if (set.has(Attr::channel_id)) out.set(Attr::channel_id, next_channel(m, &channel));
      out.set(Attr::dimensions, Dims{dim});
      out.set(Attr::to_apply, m.called(i)[0]);
      InstId rs = make(m, c, Opcode::ReduceScatter, {m.operand(i, 0)}, u.attrs(std::move(out)), m.shape_id(slice));
      // What told the offset stays, dead, as in XLA.
      m.replace_all_uses(slice, rs);
      m.remove(slice);
      m.remove(i);
      changed = true;
    }
  return changed;
}

//   dynamic-slice(all-reduce(A), {{0,1,2,3}}), one of two parts
//     →   all-reduce(dynamic-slice(all-reduce(A), {{0,1},{2,3}})), {{0,2},{1,3}}
// where another all-reduce of the computation has one or the other of these groups, and the slice is the device's part
// in the first: so that the first becomes a reduce-scatter.
bool run_all_reduce_splitter(Module& m, PassContext& ctx) {
  bool changed = false;
  int64_t channel = 0;
  if (m.config().num_partitions < 2 || !m.count(Opcode::AllReduce)) return false;
  for (CompId c : m.nonfusion_computations()) {
    std::vector<Groups> known;
    for (InstId i : m.post_order(c))
      if (m.op(i) == Opcode::AllReduce)
        if (std::optional<Groups> g = device_groups(m, i); g && g->size() > 1)
          known.push_back(sorted_groups(std::move(*g)));
    if (known.empty()) continue;
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || m.op(i) != Opcode::AllReduce || m.operand_count(i) != 1 || !m.shape(i).is_array() ||
          !m.attrs(i).has(Attr::channel_id))
        continue;
      InstId slice = only_slice(m, i);
      std::optional<Groups> all = device_groups(m, i);
      if (!slice.valid() || !all || all->size() != 1 ||
          static_cast<int64_t>((*all)[0].size()) != m.config().num_partitions * m.config().replica_count)
        continue;
      if (m.user_count(slice) != 1 || m.is_root(slice)) continue;
      // Neighbours first, then those with the same place among neighbours.
      int64_t parts = m.shape(i).elements_count() / std::max<int64_t>(m.shape(slice).elements_count(), 1),
              devices = std::ssize((*all)[0]);
      if (parts < 2 || devices % parts || parts == devices) continue;
      Groups near(static_cast<size_t>(devices / parts)), across(static_cast<size_t>(parts));
      for (int64_t d = 0; d < devices; ++d)
        near[static_cast<size_t>(d / parts)].push_back(d), across[static_cast<size_t>(d % parts)].push_back(d);
      if (own_part(m, slice, m.shape(i), near) < 0 ||
          (std::find(known.begin(), known.end(), near) == known.end() &&
           std::find(known.begin(), known.end(), across) == known.end()) ||
          !ctx.spend(m, "all-reduce in two steps", {i, slice}))
        continue;
      m.set_attr(i, Attr::replica_groups, m.u().str(groups_text(near)));
      m.set_attr(i, Attr::channel_id, next_channel(m, &channel));
      AttrSet set = m.attrs(i);
      set.set(Attr::replica_groups, m.u().str(groups_text(across)));
      set.set(Attr::channel_id, next_channel(m, &channel));
      InstId rest = make(m, c, Opcode::AllReduce, {slice}, m.u().attrs(std::move(set)), m.shape_id(slice));
      m.replace_all_uses(slice, rest);
      m.set_operand(rest, 0, slice);
      changed = true;
    }
  }
  return changed;
}

//   dynamic-slice(all-gather(A), what the device itself brought)      →      A
// (xla/service/gpu/transforms/collectives/all_gather_dynamic_slice_simplifier.cc)
bool run_all_gather_dynamic_slice_simplifier(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::AllGather)) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || m.op(i) != Opcode::DynamicSlice) continue;
      InstId gather = m.operand(i, 0);
      if (m.op(gather) != Opcode::AllGather || m.operand_count(gather) != 1 || only_slice(m, gather) != i ||
          !m.u().compatible(m.shape_id(i), m.shape_id(m.operand(gather, 0))))
        continue;
      std::optional<Groups> groups = device_groups(m, gather);
      if (!groups || own_part(m, i, m.shape(gather), *groups) != m.attrs(gather).ints(Attr::dimensions)[0]) continue;
      if (!ctx.spend(m, "own part of an all-gather", {i, gather})) return changed;
      changed |= m.replace(i, m.operand(gather, 0));
    }
  return changed;
}

//   add(all-gather(A), all-gather(B))      →      all-gather(add(A, B))
//   (xla/backends/gpu/transforms/collectives/all_gather_optimizer.cc)
bool run_all_gather_optimizer(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::AllGather)) return false;
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      Opcode op = m.op(i);
      bool commutes = op == Opcode::Add || op == Opcode::Multiply || op == Opcode::Maximum || op == Opcode::Minimum ||
                      op == Opcode::And || op == Opcode::Or || op == Opcode::Xor;
      if (!commutes || !m.alive(i)) continue;
      InstId l = m.operand(i, 0), r = m.operand(i, 1);
      if (m.op(l) != Opcode::AllGather || m.op(r) != Opcode::AllGather || m.operand_count(l) != 1 ||
          m.operand_count(r) != 1 || m.user_count(l) != 1 || m.user_count(r) != 1)
        continue;
      const AttrSet &a = m.attrs(l), &b = m.attrs(r);
      bool alike = a.has(Attr::channel_id) == b.has(Attr::channel_id);
      for (Attr key : {Attr::replica_groups, Attr::dimensions, Attr::use_global_device_ids, Attr::constrain_layout}) {
        const AttrValue *x = a.find(key), *y = b.find(key);
        alike = alike && (!x == !y) && (!x || *x == *y);
      }
      InstId p = m.operand(l, 0), q = m.operand(r, 0);
      if (!alike || m.shape(p).dims != m.shape(q).dims) continue;
      if (!ctx.spend(m, "all-gathers after their operation", {i})) return changed;
      InstId inner = make(m, c, op, {p, q}, {}, m.shape_id(p));
      InstId whole = make(m, c, Opcode::AllGather, {inner}, u.attrs(AttrSet(m.attrs(l))), m.shape_id(i));
      changed |= m.replace(i, whole);
    }
  return changed;
}

//   u16 all-reduce(A)      →      convert(u32 all-reduce(convert(A))); a reduce-scatter likewise
bool run_all_reduce_promotion(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<InstId> sums = all_of_opcode(m, Opcode::AllReduce);
  const std::vector<InstId> scattered = all_of_opcode(m, Opcode::ReduceScatter);
  sums.insert(sums.end(), scattered.begin(), scattered.end());
  for (InstId i : sums) {
    ElementType from = m.shape(m.operand(i, 0)).type;
    ElementType to = from == ElementType::U16 ? ElementType::U32 : from == ElementType::S16 ? ElementType::S32 : from;
    const std::optional<Opcode> kind = reduced_by(m, i);
    if (to == from || m.operand_count(i) != 1 || !kind) continue;
    if (!ctx.spend(m, "sum over devices of wider integers", {i})) return changed;
    InstId wide = make_convert(m, m.operand(i, 0), to);
    CompId f = make_reducer(m, fmt::format("{}_promoted", m.comp_name(m.called(i)[0])), *kind, to);
    InstId sum = m.clone_inst(i, m.parent(i), std::vector<InstId>{wide}, m.u().with_type(m.shape_id(i), to));
    m.set_attr(sum, Attr::to_apply, f);
    changed |= m.replace(i, make_convert(m, sum, from));
  }
  return changed;
}

}  // namespace hlo
