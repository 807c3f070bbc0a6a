#include "viewer/layout/folding.h"

#include <algorithm>

#include "ir/base/hash.h"
#include "viewer/layout/folding_maker.h"

namespace hlo {
namespace {

constexpr uint32_t kNoGroup = FoldGroup::kNone;
constexpr int64_t kSmallConstant = 8;  // elements of constants that stand within labels
constexpr size_t kReducerSize = 24;    // instructions of a computation that is told by name
constexpr size_t kSourcesApart = 8;    // more parameters than that become a group
constexpr size_t kUncalledApart = 3;   // more computations that nothing calls than that, too

bool small_constant(const Module& m, InstId i) {
  return m.op(i) == Opcode::Constant && m.shape(i).is_array() && m.shape(i).elements_count() <= kSmallConstant;
}

bool moves_only(Opcode op) {
  return op == Opcode::GetTupleElement || op == Opcode::Bitcast || op == Opcode::Copy || op == Opcode::Convert ||
         op == Opcode::Reshape || op == Opcode::Transpose || op == Opcode::Broadcast;
}

}  // namespace

Adjacency Adjacency::turned(size_t n) const {
  Adjacency out;
  out.start.assign(n + 1, 0);
  for (uint32_t to : list) ++out.start[to + 1];
  for (size_t i = 0; i < n; ++i) out.start[i + 1] += out.start[i];
  out.list.resize(list.size());
  std::vector<uint32_t> at(out.start.begin(), out.start.end() - 1);
  for (size_t i = 0; i + 1 < start.size(); ++i)
    for (uint32_t to : (*this)[i]) out.list[at[to]++] = static_cast<uint32_t>(i);
  return out;
}

Folding::Folding(const Module& m) : m_(m) { FoldingMaker(*this).run(); }

uint32_t Folding::find(const std::string& key) const {
  auto found = by_key_.find(key);
  return found == by_key_.end() ? kNoGroup : found->second;
}

std::vector<std::string> Folding::keys_to(InstId i) const {
  std::vector<std::string> out;
  for (uint32_t g = home(i); g != kNoGroup && g != 0; g = groups_[g].parent) out.push_back(groups_[g].key);
  std::reverse(out.begin(), out.end());
  return out;
}

uint32_t FoldingMaker::add_group(FoldGroup group) {
  auto id = static_cast<uint32_t>(f.groups_.size());
  std::string key = group.key;
  for (int n = 2; !f.by_key_.emplace(key, id).second; ++n) key = fmt::format("{}#{}", group.key, n);
  group.key = std::move(key);
  f.groups_.push_back(std::move(group));
  return id;
}

// What reduces, compares or adds scalars: a word in its caller's label says it all.
bool FoldingMaker::reducer(CompId c, Opcode caller) const {
  if (caller == Opcode::Fusion || caller == Opcode::Call || caller == Opcode::While || caller == Opcode::Conditional ||
      caller == Opcode::AsyncStart || m.size(c) > kReducerSize)
    return false;
  for (InstId i : m.comp(c).order) {
    if (!m.alive(i)) continue;
    const Shape& s = m.shape(i);
    if (!m.called(i).empty() || (!s.is_effective_scalar() && !(s.is_tuple() && m.is_root(i)))) return false;
  }
  return true;
}

uint64_t FoldingMaker::hash_of(CompId c) {
  uint64_t& h = comp_hash[c.value];
  if (h) return h;
  h = 1;
  for (InstId i : m.comp(c).order)
    if (m.alive(i)) h += mix64(static_cast<uint64_t>(m.op(i)) + 1);
  return h;
}

uint64_t FoldingMaker::plain_hash(InstId i) {
  uint64_t h = hash_bytes(m.u().shape_text_plain(m.shape_id(i)));
  h = hash_combine(h, static_cast<uint64_t>(m.op(i)) + 1);
  for (CompId c : m.called(i)) h = hash_combine(h, hash_of(c));
  return h;
}

// Small constants, and broadcasts of one scalar: their users' labels have them.
void FoldingMaker::find_hidden(CompId c) {
  const std::vector<InstId>& order = m.comp(c).order;
  std::vector<InstId> found;
  for (InstId i : order)
    if (m.alive(i) && !m.is_root(i) && !m.has_control(i) && small_constant(m, i)) f.hidden_[i.value] = true;
  for (InstId i : order)
    if (m.alive(i) && m.op(i) == Opcode::Broadcast && !m.is_root(i) && !m.has_control(i) &&
        f.hidden_[m.operand(i, 0).value] && m.shape(m.operand(i, 0)).is_effective_scalar())
      f.hidden_[i.value] = true;
  for (bool shown : {true, false})  // a constant within a hidden broadcast is told by whoever tells of that one
    for (InstId i : order)
      if (m.alive(i) && f.hidden_[i.value] != shown)
        for (InstId o : m.operands(i))
          if (f.hidden_[o.value] && !f.told_by_[o.value].valid()) f.told_by_[o.value] = shown ? i : f.told_by_[i.value];
  for (InstId i : order)
    if (m.alive(i) && f.hidden_[i.value] && !f.told_by_[i.value].valid()) f.hidden_[i.value] = false;  // used by none
}

LocalGraph FoldingMaker::graph_of(CompId c) {
  LocalGraph g;
  for (InstId i : m.post_order(c))
    if (!f.hidden_[i.value]) local[i.value] = static_cast<uint32_t>(g.inst.size()), g.inst.push_back(i);
  size_t n = g.inst.size();
  g.source.resize(n), g.scope.resize(n), g.plain.resize(n), g.token.resize(n), g.weight.assign(n, 1);
  for (size_t k = 0; k < n; ++k) {
    InstId i = g.inst[k];
    bool sources = true;
    auto need = [&](InstId o) {
      if (f.hidden_[o.value] || local[o.value] >= k) return;
      uint32_t from = local[o.value];
      auto first = g.preds.list.begin() + g.preds.start.back();
      if (g.preds.list.end() - first < 8 && std::find(first, g.preds.list.end(), from) != g.preds.list.end()) return;
      g.preds.list.push_back(from);
      sources &= g.source[from];
    };
    for (InstId o : m.operands(i)) need(o);
    for (InstId o : m.control_preds(i)) need(o);
    g.preds.start.push_back(static_cast<uint32_t>(g.preds.list.size()));
    g.plain[k] = g.token[k] = plain_hash(i);
    for (uint32_t from : g.preds[k]) g.token[k] = hash_combine(g.token[k], g.plain[from]);
    for (CompId callee : m.called(i)) g.weight[k] += static_cast<uint32_t>(m.size(callee));
    g.scope[k] = scopes.of(StrId(m.u()[m[i].meta].op_name));
    bool leaf = m.op(i) == Opcode::Parameter || m.op(i) == Opcode::Constant || m.op(i) == Opcode::Iota;
    g.source[k] = sources && !m.is_root(i) &&
                  (leaf || (moves_only(m.op(i)) && m.operand_count(i) == 1 && g.preds[k].size() <= 1));
  }
  g.succs = g.preds.turned(n);
  return g;
}

// An operation that names no scope stands where its users stand.
void FoldingMaker::infer_scopes(LocalGraph* g) {
  for (size_t k = g->inst.size(); k-- > 0;) {
    if (g->scope[k] != ScopeTree::kUnknown) continue;
    uint32_t all = ScopeTree::kUnknown;
    for (uint32_t user : g->succs[k]) {
      all = all == ScopeTree::kUnknown ? g->scope[user] : scopes.common(all, g->scope[user]);
      if (all == 0) break;
    }
    g->scope[k] = all == ScopeTree::kUnknown ? 0 : all;
  }
}

FoldItem FoldingMaker::item_of(InstId i, uint32_t group) {
  f.home_[i.value] = group;
  uint32_t call = f.group_of(i);
  if (call == kNoGroup) return {i.value, false};
  f.groups_[call].parent = group;
  return {call, true};
}

// The groups of instructions that call what nobody has drawn yet; their parents come with their homes.
void FoldingMaker::add_calls(const LocalGraph& g) {
  for (InstId i : g.inst) {
    std::vector<CompId> inside;
    for (CompId c : m.called(i)) {
      if (claimed[c.value]) continue;
      claimed[c.value] = true;
      if (!reducer(c, m.op(i))) {
        inside.push_back(c);
        continue;
      }
      for (InstId b : m.comp(c).order)
        if (m.alive(b)) f.hidden_[b.value] = true, f.told_by_[b.value] = i;
    }
    if (inside.empty()) continue;
    FoldGroup call;
    call.kind = FoldGroup::Kind::kCall, call.inst = i;
    call.key = fmt::format("i{}", i.value), call.label = m.inst_name(i);
    if (inside.size() == 1) call.comp = inside[0];
    uint32_t at = add_group(std::move(call));
    f.of_inst_[i.value] = at;
    if (inside.size() == 1) {
      waiting.push_back({inside[0], at});
      continue;
    }
    for (CompId c : inside) {
      FoldGroup one;
      one.kind = FoldGroup::Kind::kComputation, one.parent = at, one.comp = c;
      one.key = fmt::format("c{}", c.value), one.label = m.comp_name(c);
      if (m.op(i) == Opcode::While) one.label = c == m.attrs(i).comp(Attr::body) ? "body" : "condition";
      uint32_t child = add_group(std::move(one));
      f.groups_[at].children.push_back({child, true});
      waiting.push_back({c, child});
    }
  }
}

// A source goes into the innermost group that has all its users.
void FoldingMaker::place_sources(const LocalGraph& g, uint32_t top) {
  auto depth = [&](uint32_t group) {
    int n = 0;
    for (; group != top; group = f.groups_[group].parent) ++n;
    return n;
  };
  std::unordered_map<uint32_t, std::vector<uint32_t>> found;
  std::vector<uint32_t> order;
  for (size_t k = g.inst.size(); k-- > 0;) {
    if (!g.source[k]) continue;
    uint32_t at = kNoGroup;
    int level = 0;
    for (uint32_t user : g.succs[k]) {
      uint32_t other = f.home_[g.inst[user].value];
      if (at == kNoGroup) {
        at = other, level = depth(at);
        continue;
      }
      if (at == other) continue;
      int there = depth(other);
      while (at != other) {
        if (level >= there)
          at = f.groups_[at].parent, --level;
        else
          other = f.groups_[other].parent, --there;
      }
      if (at == top) break;
    }
    if (at == kNoGroup) at = top;
    f.home_[g.inst[k].value] = at;
    auto [list, fresh] = found.try_emplace(at);
    if (fresh) order.push_back(at);
    list->second.push_back(static_cast<uint32_t>(k));
  }
  for (uint32_t group : order) {
    std::vector<uint32_t>& nodes = found[group];
    std::reverse(nodes.begin(), nodes.end());
    group_sources(g, group, nodes);
  }
}

void FoldingMaker::group_sources(const LocalGraph& g, uint32_t group, const std::vector<uint32_t>& nodes) {
  uint32_t into = group;
  std::vector<FoldItem> items;
  if (nodes.size() > kSourcesApart) {
    size_t parameters = 0;
    for (uint32_t k : nodes) parameters += m.op(g.inst[k]) == Opcode::Parameter;
    FoldGroup all;
    all.kind = FoldGroup::Kind::kParameters, all.parent = group, all.comp = m.parent(g.inst[nodes[0]]);
    all.key = "p" + (group ? f.groups_[group].key : "");
    all.label = fmt::format("{} ({})",
                            parameters == nodes.size() ? "parameters"
                            : parameters               ? "inputs"
                                                       : "values",
                            nodes.size());
    into = add_group(std::move(all));
  }
  for (uint32_t k : nodes) items.push_back(item_of(g.inst[k], into));
  std::vector<FoldItem>& children = f.groups_[group].children;
  if (into != group) {
    f.groups_[into].children = std::move(items);
    items = {{into, true}};
  }
  children.insert(children.begin(), items.begin(), items.end());
}

// The tuple that a computation ends with, and what only moves values into it: one group where they are many.
void FoldingMaker::group_results(LocalGraph* g, CompId c, uint32_t top) {
  auto root = static_cast<uint32_t>(g->inst.size());
  for (uint32_t k = 0; k < g->inst.size(); ++k)
    if (g->inst[k] == m.comp(c).root) root = k;
  if (root == g->inst.size() || m.op(g->inst[root]) != Opcode::Tuple || !g->succs[root].empty()) return;
  std::vector<uint32_t> nodes;
  std::vector<bool> result(g->inst.size(), false);
  result[root] = true;
  for (uint32_t k = root; k-- > 0;) {
    bool last = g->succs[k].empty() || (g->succs[k].size() == 1 && result[g->succs[k][0]]);  // nobody needs some at all
    if (!last || g->source[k] || m.operand_count(g->inst[k]) != 1 || !moves_only(m.op(g->inst[k]))) continue;
    result[k] = true;
    nodes.push_back(k);
  }
  if (nodes.size() <= kSourcesApart) return;
  std::reverse(nodes.begin(), nodes.end());
  nodes.push_back(root);
  FoldGroup all;
  all.kind = FoldGroup::Kind::kResults, all.parent = top, all.comp = c;
  all.key = fmt::format("q{}", c.value), all.label = fmt::format("results ({})", m.operand_count(g->inst[root]));
  uint32_t id = add_group(std::move(all));
  for (uint32_t k : nodes) {
    g->apart.push_back(k);
    FoldItem item = item_of(g->inst[k], id);
    groups[id].children.push_back(item);
  }
  g->results = id;
}

void FoldingMaker::place(CompId c, uint32_t group) {
  find_hidden(c);
  LocalGraph g = graph_of(c);
  infer_scopes(&g);
  add_calls(g);
  group_results(&g, c, group);
  partition(g, c, group);
  if (g.results != kNoGroup) groups[group].children.push_back({g.results, true});
  place_sources(g, group);
}

void FoldingMaker::run() {
  f.home_.assign(m.inst_slots(), kNoGroup);
  f.hidden_.assign(m.inst_slots(), false);
  f.told_by_.assign(m.inst_slots(), InstId());
  f.of_inst_.assign(m.inst_slots(), kNoGroup);
  FoldGroup top;
  top.comp = m.entry(), top.label = m.name();
  add_group(std::move(top));
  auto drain = [&] {
    for (; !waiting.empty(); waiting.pop_front()) place(waiting.front().comp, waiting.front().group);
  };
  if (m.entry().valid()) claimed[m.entry().value] = true, waiting.push_back({m.entry(), 0}), drain();
  std::vector<CompId> order = m.computation_post_order();
  const size_t called = groups[0].children.size();
  for (size_t k = order.size(); k-- > 0;) {
    if (claimed[order[k].value]) continue;
    claimed[order[k].value] = true;
    FoldGroup alone;
    alone.kind = FoldGroup::Kind::kUncalled, alone.parent = 0, alone.comp = order[k];
    alone.key = fmt::format("c{}", order[k].value), alone.label = m.comp_name(order[k]);
    uint32_t at = add_group(std::move(alone));
    f.groups_[0].children.push_back({at, true});
    waiting.push_back({order[k], at});
    drain();
  }
  group_uncalled(called);
  finish();
}

// Behind a fusion pass hundreds of computations wait for dce: they would hide what is used.
void FoldingMaker::group_uncalled(size_t first) {
  const size_t count = groups[0].children.size() - first;
  if (count <= kUncalledApart) return;
  FoldGroup all;
  all.kind = FoldGroup::Kind::kUncalled, all.parent = 0;
  all.key = "u", all.label = fmt::format("{} computations that nothing calls", count);
  uint32_t at = add_group(std::move(all));
  std::vector<FoldItem>& children = groups[0].children;
  groups[at].children.assign(children.begin() + static_cast<std::ptrdiff_t>(first), children.end());
  children.resize(first);
  children.push_back({at, true});
  for (FoldItem child : groups[at].children) groups[child.value].parent = at;
}

// Homes of what is hidden; how many instructions there are inside.
void FoldingMaker::finish() {
  auto add = [&](FoldGroup* g, InstId i) {
    ++g->count;
    switch (m.op(i)) {
      case Opcode::Dot:
      case Opcode::Convolution:
      case Opcode::RaggedDot:
      case Opcode::ScaledDot:
        ++g->contractions;
        break;
      case Opcode::Fusion:
        ++g->fusions;
        break;
      case Opcode::While:
        ++g->loops;
        break;
      case Opcode::CustomCall:
        ++g->library;
        break;
      default:
        if (op_info(m.op(i)).cls == OpClass::Collective) ++g->collectives;
    }
  };
  for (size_t k = 0; k < m.inst_slots(); ++k) {
    InstId i(k);
    if (!m.alive(i)) continue;
    if (f.hidden_[k]) f.home_[k] = f.home_[f.told_by_[k].value];
    uint32_t own = f.group_of(i), at = own != kNoGroup ? own : f.home_[k];
    if (at != kNoGroup) add(&f.groups_[at], i);
  }
  std::vector<uint32_t> order = {0};
  for (size_t k = 0; k < order.size(); ++k)
    for (FoldItem child : f.groups_[order[k]].children)
      if (child.group) order.push_back(child.value);
  for (size_t k = order.size(); k-- > 1;) {
    const FoldGroup& from = f.groups_[order[k]];
    FoldGroup& to = f.groups_[from.parent];
    to.count += from.count, to.contractions += from.contractions, to.fusions += from.fusions, to.loops += from.loops;
    to.collectives += from.collectives, to.library += from.library;
  }
}

}  // namespace hlo
