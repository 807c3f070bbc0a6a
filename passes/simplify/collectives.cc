// Passes over collectives: all-reduce-simplifier, all-reduce-folder, all-reduce-reassociate,
// reduce-scatter-reassociate, reduce-scatter-creator, all-reduce-promotion (xla/service/all_reduce_simplifier.cc and
// beside it).
#include <algorithm>
#include <numeric>

#include "passes/rewrite.h"

namespace hlo {
namespace {

using Groups = std::vector<Dims>;

// Replica groups as lists of ids. False where they are written by mesh or iota, which is left alone here; all devices
// in one group are the empty list.
bool read_groups(const Module& m, InstId i, Groups* out) {
  std::string_view text = m.u().text(m.attrs(i).text(Attr::replica_groups));
  out->clear();
  if (text.empty() || text == "{}") return true;
  if (!text.starts_with("{{")) return false;
  Dims now;
  int64_t number = -1;
  for (size_t at = 1; at < text.size(); ++at) {
    char c = text[at];
    if (c >= '0' && c <= '9') {
      number = (number < 0 ? 0 : number * 10) + (c - '0');
    } else if (c == ',' || c == '}') {
      if (number >= 0) now.push_back(number), number = -1;
      if (c == '}' && !now.empty()) out->push_back(std::move(now)), now.clear();
    }
  }
  return true;
}

std::string groups_text(const Groups& groups) {
  std::string out = "{";
  for (size_t g = 0; g < groups.size(); ++g) out += fmt::format("{}{{{}}}", g ? "," : "", fmt::join(groups[g], ","));
  return out + "}";
}

// The one operation of a combiner; false where it is another one.
bool combiner(const Module& m, InstId i, Opcode* op) {
  const Computation& c = m.comp(m.called(i)[0]);
  if (c.params.size() != 2 || m.operand_count(c.root) != 2 || m.size(m.called(i)[0]) != 3) return false;
  InstId a = m.operand(c.root, 0), b = m.operand(c.root, 1);
  *op = m.op(c.root);
  return m.op(a) == Opcode::Parameter && m.op(b) == Opcode::Parameter && a != b;
}

// Everything of a collective but its function, which is compared by what it does.
AttrsId without_function(Module& m, InstId i) {
  AttrSet set = m.attrs(i);
  for (Attr key : {Attr::to_apply, Attr::channel_id, Attr::sharding}) set.erase(key);
  return m.u().attrs(std::move(set));
}

int64_t devices(const Module& m, InstId i) {
  if (m.attrs(i).flag(Attr::use_global_device_ids)) return m.config.replica_count * m.config.num_partitions;
  return m.config.replica_count;
}

int64_t group_size(const Module& m, InstId i) {
  Groups groups;
  if (!read_groups(m, i, &groups)) return 0;
  if (groups.empty()) return devices(m, i);
  for (const Dims& g : groups)
    if (g.size() != groups[0].size()) return 0;
  return static_cast<int64_t>(groups[0].size());
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

//   add(all-reduce(A), all-reduce(B))      →      all-reduce(add(A, B))
bool reassociate(Module& m, PassContext& ctx, Opcode collective) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || !carries_over(m.op(i)) || m.has_control(i)) continue;
      InstId l = m.operand(i, 0), r = m.operand(i, 1);
      auto fits = [&](InstId x) {
        return m.op(x) == collective && m.operand_count(x) == 1 && m.user_count(x) == 1 && !m.is_root(x) &&
               m.use_count(x) == 1 && !m.attrs(x).flag(Attr::constrain_layout) && !m.has_control(x);
      };
      Opcode kl, kr;
      if (!fits(l) || !fits(r) || l == r || !combiner(m, l, &kl) || !combiner(m, r, &kr) || kl != kr || kl != m.op(i))
        continue;
      if (m.attrs(l).has(Attr::channel_id) != m.attrs(r).has(Attr::channel_id) ||
          without_function(m, l) != without_function(m, r) ||
          !m.u().compatible(m.shape_id(m.operand(l, 0)), m.shape_id(m.operand(r, 0))))
        continue;
      if (!ctx.spend(m, "collectives joined behind the operation", {i, l, r})) return changed;
      // In place: the operation takes what the collectives took, one collective follows it.
      InstId a = m.operand(l, 0), b = m.operand(r, 0);
      InstId inner = m.clone_inst(i, c, std::vector<InstId>{a, b}, m.shape_id(a));
      InstId outer = m.clone_inst(l, c, std::vector<InstId>{inner}, m.shape_id(i));
      m.replace(i, outer);
      changed = true;
    }
  return changed;
}

}  // namespace

//   all-reduce(A) of groups of one device, all-gather(A) of one shape      →      A
//   all-reduce-add(A) of what all replicas have      →      A * replicas
bool run_all_reduce_simplifier(Module& m, PassContext& ctx) {
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
      Opcode kind;
      int64_t n = group_size(m, i);
      if (m.attrs(i).has(Attr::channel_id) || n <= 1 || !combiner(m, i, &kind) || !replicated(m, a)) continue;
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

//   all-reduce(all-reduce(A), {{0,1},{2,3}}), {{0,2},{1,3}}      →      all-reduce(A), {{0,1,2,3}}
bool run_all_reduce_folder(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || m.op(i) != Opcode::AllReduce || m.operand_count(i) != 1 || m.has_control(i)) continue;
      InstId inner = m.operand(i, 0);
      Opcode outer_kind, inner_kind;
      if (m.op(inner) != Opcode::AllReduce || m.user_count(inner) != 1 || m.operand_count(inner) != 1 ||
          m.has_control(inner) || m.is_root(inner) || !combiner(m, i, &outer_kind) ||
          !combiner(m, inner, &inner_kind) || outer_kind != inner_kind ||
          m.attrs(i).has(Attr::channel_id) != m.attrs(inner).has(Attr::channel_id) ||
          m.attrs(i).flag(Attr::use_global_device_ids) != m.attrs(inner).flag(Attr::use_global_device_ids) ||
          m.attrs(i).flag(Attr::constrain_layout) != m.attrs(inner).flag(Attr::constrain_layout))
        continue;
      Groups first, second;
      if (!read_groups(m, inner, &first) || !read_groups(m, i, &second) || first.empty() || second.empty()) continue;
      // Each outer group must take one member of each of some inner groups, and all outer groups of one set of inner
      // groups must cover these wholly: then one step over their union sums the same.
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
      if (!fits) continue;
      std::sort(merged.begin(), merged.end());
      if (!ctx.spend(m, "all-reduce twice", {i, inner})) return changed;
      std::vector<InstId> ops{m.operand(inner, 0)};
      InstId to = m.clone_inst(i, c, ops);
      m.set_attr(to, Attr::replica_groups, m.u().str(groups_text(merged)));
      m.replace(i, to);
      changed = true;
    }
  return changed;
}

bool run_all_reduce_reassociate(Module& m, PassContext& ctx) { return reassociate(m, ctx, Opcode::AllReduce); }
bool run_reduce_scatter_reassociate(Module& m, PassContext& ctx) { return reassociate(m, ctx, Opcode::ReduceScatter); }

//   dynamic-slice(all-reduce(A), partition-id * n)      →      reduce-scatter(A)
bool run_reduce_scatter_creator(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || m.op(i) != Opcode::AllReduce || m.operand_count(i) != 1 || !m.shape(i).is_array() ||
          m.user_count(i) != 1 || m.has_control(i) || m.is_root(i))
        continue;
      InstId slice = m.users(i)[0];
      if (m.op(slice) != Opcode::DynamicSlice || m.operand(slice, 0) != i || m.use_count(i) != 1) continue;
      Groups groups;
      if (!read_groups(m, i, &groups) || groups.size() > 1) continue;
      int64_t n = groups.empty() ? (m.attrs(i).has(Attr::channel_id) ? m.config.num_partitions : devices(m, i))
                                 : static_cast<int64_t>(groups[0].size());
      // One dimension is cut into as many parts as there are devices.
      const Dims &from = m.shape(i).dims, &to = m.shape(slice).dims;
      int64_t dim = -1;
      bool fits = n > 1;
      for (size_t d = 0; d < from.size(); ++d) {
        if (from[d] == to[d]) continue;
        fits &= dim < 0 && to[d] * n == from[d];
        dim = static_cast<int64_t>(d);
      }
      if (!fits || dim < 0) continue;
      // The device's part: id * size, the id that counts the members of the group in order.
      InstId offset = m.operand(slice, static_cast<size_t>(dim) + 1);
      while (m.op(offset) == Opcode::Reshape || m.op(offset) == Opcode::Convert || m.op(offset) == Opcode::Bitcast)
        offset = m.operand(offset, 0);
      int64_t scale = 1;
      InstId id = offset;
      if (m.op(offset) == Opcode::Multiply)
        for (size_t s : {size_t{0}, size_t{1}})
          if (is_scalar_constant(m, m.operand(offset, s)) && !m.literal(m.operand(offset, s)).elided) {
            InstId k = m.operand(offset, s);
            scale = load_int(m.shape(k).type, m.literal(k).bytes.data());
            id = m.operand(offset, 1 - s);
          }
      while (m.op(id) == Opcode::Reshape || m.op(id) == Opcode::Convert || m.op(id) == Opcode::Bitcast)
        id = m.operand(id, 0);
      bool by_partition = m.op(id) == Opcode::PartitionId, by_replica = m.op(id) == Opcode::ReplicaId;
      bool ordered = groups.empty();
      if (!ordered) {
        Dims counted(groups[0].size());
        std::iota(counted.begin(), counted.end(), int64_t{0});
        ordered = groups[0] == counted;
      }
      bool channel = m.attrs(i).has(Attr::channel_id);
      if (!ordered || scale != to[static_cast<size_t>(dim)] ||
          !(channel ? by_partition && m.config.replica_count == 1 : by_replica))
        continue;
      if (!ctx.spend(m, "slice of an all-reduce", {i, slice})) return changed;
      AttrSet set = m.attrs(i);
      AttrSet out;
      out.op = Opcode::ReduceScatter;
      for (Attr key : {Attr::channel_id, Attr::replica_groups, Attr::use_global_device_ids, Attr::constrain_layout})
        if (const AttrValue* v = set.find(key)) out.set(key, *v);
      out.set(Attr::dimensions, Dims{dim});
      out.set(Attr::to_apply, m.called(i)[0]);
      InstId rs = make(m, c, Opcode::ReduceScatter, {m.operand(i, 0)}, u.attrs(std::move(out)), m.shape_id(slice));
      m.replace(slice, rs);
      changed = true;
    }
  return changed;
}

//   add(all-gather(A), all-gather(B))      →      all-gather(add(A, B))      (xla/service/all_gather_optimizer.cc)
bool run_all_gather_optimizer(Module& m, PassContext& ctx) {
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
      if (!ctx.spend(m, "all-gathers behind their operation", {i})) return changed;
      InstId inner = make(m, c, op, {p, q}, {}, m.shape_id(p));
      InstId whole = make(m, c, Opcode::AllGather, {inner}, u.attrs(AttrSet(m.attrs(l))), m.shape_id(i));
      changed |= m.replace(i, whole);
    }
  return changed;
}

//   u16 all-reduce(A)      →      convert(u32 all-reduce(convert(A)))
bool run_all_reduce_promotion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : all_of_opcode(m, Opcode::AllReduce)) {
    ElementType from = m.shape(m.operand(i, 0)).type;
    ElementType to = from == ElementType::U16 ? ElementType::U32 : from == ElementType::S16 ? ElementType::S32 : from;
    Opcode kind;
    if (to == from || m.operand_count(i) != 1 || !combiner(m, i, &kind)) continue;
    if (!ctx.spend(m, "all-reduce of wider integers", {i})) return changed;
    InstId wide = make_convert(m, m.operand(i, 0), to);
    CompId f = make_reducer(m, fmt::format("{}_promoted", m.comp_name(m.called(i)[0])), kind, to);
    InstId sum = m.clone_inst(i, m.parent(i), std::vector<InstId>{wide}, m.u().with_type(m.shape_id(i), to));
    m.set_attr(sum, Attr::to_apply, f);
    changed |= m.replace(i, make_convert(m, sum, from));
  }
  return changed;
}

}  // namespace hlo
