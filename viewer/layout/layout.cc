#include "viewer/layout/layout.h"

#include <algorithm>

#include "viewer/layout/labels.h"
#include "viewer/layout/view.h"

namespace hlo {
namespace {

constexpr float kPad = 14, kHead = 24, kPort = 4;
constexpr int kDeepestEdge = 64;  // calls within calls

uint64_t keyed(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

}  // namespace

void View::choose_open() {
  size_t n = f.groups().size();
  if (options.open == LayoutOptions::Open::kBest) {
    open = open_at_first_sight(f, top);
    return;
  }
  open.assign(n, options.open == LayoutOptions::Open::kAll);
  for (const std::string& key : options.keys)
    if (uint32_t g = f.find(key); g != FoldGroup::kNone) open[g] = true;
  open[top] = true;
}

void View::marks() {
  strongest.assign(f.groups().size(), Mark::kSame);
  if (options.marks.empty()) return;
  for (size_t k = 0; k < m.inst_slots() && k < options.marks.size(); ++k) {
    InstId i(k);
    if (options.marks[k] == Mark::kSame || !m.alive(i)) continue;
    uint32_t own = f.group_of(i), g = own != FoldGroup::kNone ? own : f.home(i);
    for (; g != FoldGroup::kNone && strongest[g] < options.marks[k]; g = f.groups()[g].parent)
      strongest[g] = options.marks[k];
  }
}

uint32_t View::add_box(uint32_t parent, FoldItem item) {
  auto id = static_cast<uint32_t>(out.boxes.size());
  DrawnBox box;
  box.parent = parent;
  if (item.group) {
    box.kind = open[item.value] ? BoxKind::kOpen : BoxKind::kFolded;
    describe(f, f.groups()[item.value], &box);
    box.change = strongest[item.value];
    shown_as[item.value] = id;
  } else {
    InstId i(item.value);
    describe(f, i, &box);
    if (i.value < options.marks.size()) box.change = options.marks[i.value];
    leaf[i.value] = id;
  }
  if (box.kind != BoxKind::kOpen) measure(&box);
  out.boxes.push_back(std::move(box));
  level_of.push_back(kNone), node_of.push_back(kNone);
  return id;
}

// Parents before children, level by level; what lies in a folded group is shown as that.
void View::boxes() {
  const std::vector<FoldGroup>& groups = f.groups();
  shown_as.assign(groups.size(), kNone);
  leaf.assign(m.inst_slots(), kNone);
  struct Waiting {
    uint32_t group, box;
  };
  std::vector<Waiting> queue = {{top, add_box(kNone, {top, true})}};
  std::vector<uint32_t> closed;
  for (size_t k = 0; k < queue.size(); ++k) {
    auto [group, box] = queue[k];
    level_of[box] = static_cast<uint32_t>(levels.size());
    levels.emplace_back();
    group_box.push_back(box);
    for (FoldItem child : groups[group].children) {
      uint32_t id = add_box(box, child);
      node_of[id] = static_cast<uint32_t>(levels.back().nodes.size());
      levels.back().nodes.emplace_back();
      if (child.group)
        (open[child.value] ? static_cast<void>(queue.push_back({child.value, id})) : closed.push_back(child.value));
    }
  }
  for (size_t k = 0; k < closed.size(); ++k)
    for (FoldItem child : groups[closed[k]].children)
      if (child.group) shown_as[child.value] = shown_as[closed[k]], closed.push_back(child.value);
  out.total = groups[top].count;
  out.folded = out.total;
  for (const DrawnBox& b : out.boxes) out.folded -= b.id.valid();
}

uint32_t View::box_of(InstId i) const {
  if (uint32_t own = f.group_of(i); own != FoldGroup::kNone) return shown_as[own];
  if (leaf[i.value] != kNone) return leaf[i.value];
  uint32_t home = f.home(i);
  return home == FoldGroup::kNone || opened(home) ? kNone : shown_as[home];
}

// Of a call that is open, the root of what it calls, and so on inward, so far as an edge is followed.
InstId View::maker_of(InstId i) const {
  for (int depth = 0; depth < kDeepestEdge; ++depth) {
    uint32_t g = f.group_of(i);
    if (g == FoldGroup::kNone || !opened(g) || m.op(i) == Opcode::Conditional) break;
    CompId c = m.op(i) == Opcode::While ? m.attrs(i).comp(Attr::body) : f.groups()[g].comp;
    if (!c.valid() || !m.comp(c).root.valid() || box_of(m.comp(c).root) == kNone) break;
    i = m.comp(c).root;
  }
  return i;
}

// Boxes that an operand goes to: its user's, or the parameters of what the user calls where that is open.
void View::targets(InstId user, size_t operand, std::vector<uint32_t>* to) const {
  uint32_t g = f.group_of(user);
  if (g != FoldGroup::kNone && opened(g)) {
    Opcode op = m.op(user);
    bool whole = op == Opcode::Fusion || op == Opcode::Call || op == Opcode::While || op == Opcode::AsyncStart;
    auto give = [&](CompId c, size_t number) {
      if (number >= m.comp(c).params.size()) return;
      if (uint32_t box = box_of(m.comp(c).params[number]); box != kNone) to->push_back(box);
    };
    const std::vector<CompId>& called = m.called(user);
    if (whole)
      for (CompId c : called) give(c, operand);
    else if (op == Opcode::Conditional && operand > 0 && operand - 1 < called.size())
      give(called[operand - 1], 0);
  }
  if (to->empty())
    if (uint32_t box = box_of(user); box != kNone) to->push_back(box);
}

void View::find_pairs() {
  std::vector<uint32_t> to;
  auto flow = [&](InstId from, const std::vector<uint32_t>& users) {
    uint32_t a = box_of(from);
    if (a == kNone) return;
    if (out.boxes[a].kind == BoxKind::kOpen) a = box_of(maker_of(from));
    for (uint32_t b : users)
      if (a != b && a != kNone) pairs.push_back({a, b});
  };
  for (size_t k = 0; k < m.inst_slots(); ++k) {
    InstId i(k);
    if (!m.alive(i) || f.hidden(i) || f.home(i) == FoldGroup::kNone) continue;
    uint32_t own = box_of(i);
    if (own == kNone) continue;
    bool inside = out.boxes[own].kind == BoxKind::kFolded || f.group_of(i) == FoldGroup::kNone;
    auto operands = m.operands(i);
    for (size_t o = 0; o < operands.size(); ++o) {
      if (f.hidden(operands[o]) || (inside && box_of(operands[o]) == own)) continue;
      to.clear();
      if (inside)
        to.push_back(own);
      else
        targets(i, o, &to);
      flow(operands[o], to);
    }
    for (InstId p : m.control_preds(i))
      if (!f.hidden(p)) flow(p, {own});
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
}

uint32_t View::node(uint32_t level, uint32_t value, bool leaving) {
  auto [at, fresh] = ports[leaving].try_emplace(keyed(level, value), static_cast<uint32_t>(levels[level].nodes.size()));
  if (fresh) {
    LevelNode port;
    port.w = kPort, port.pin = leaving ? LevelNode::Pin::kBottom : LevelNode::Pin::kTop;
    levels[level].nodes.push_back(port);
  }
  return at->second;
}

uint32_t View::edge(uint32_t level, uint32_t from, uint32_t to, uint32_t value) {
  std::vector<LevelEdge>& edges = levels[level].edges;
  std::vector<uint32_t>& list = edges_[keyed(level, value)];
  for (uint32_t e : list)
    if (edges[e].from == from && edges[e].to == to) return e;
  LevelEdge e;
  e.from = from, e.to = to, e.value = value;
  auto id = static_cast<uint32_t>(edges.size());
  edges.push_back(std::move(e));
  // Of a value with very many users only the last few are looked at: an edge twice does no harm.
  if (list.size() >= 32) list.erase(list.begin());
  list.push_back(id);
  return id;
}

// Each pair as a way out of the groups of the one and into those of the other.
void View::level_edges() {
  std::vector<uint32_t> depth(out.boxes.size(), 0);
  for (size_t k = 1; k < out.boxes.size(); ++k) depth[k] = depth[out.boxes[k].parent] + 1;
  std::vector<Step> inward;
  std::vector<Pair> kept;
  for (Pair p : pairs) {
    uint32_t a = p.from, b = p.to;
    // How deep both lie under their common group; a pair of a box and what it stands in is no edge.
    uint32_t ca = a, cb = b;
    while (depth[ca] > depth[cb]) ca = out.boxes[ca].parent;
    while (depth[cb] > depth[ca]) cb = out.boxes[cb].parent;
    if (ca == cb) continue;
    while (out.boxes[ca].parent != out.boxes[cb].parent) ca = out.boxes[ca].parent, cb = out.boxes[cb].parent;
    if (node_of[ca] > node_of[cb]) continue;  // a computation that several call: only its first caller's is drawn
    inward.clear();
    for (uint32_t at = a; at != ca; at = out.boxes[at].parent) {
      uint32_t level = level_of[out.boxes[at].parent];
      steps.push_back({level, edge(level, node_of[at], node(level, p.from, true), p.from)});
    }
    uint32_t common = level_of[out.boxes[ca].parent];
    steps.push_back({common, edge(common, node_of[ca], node_of[cb], p.from)});
    for (uint32_t at = b; at != cb; at = out.boxes[at].parent) {
      uint32_t level = level_of[out.boxes[at].parent];
      inward.push_back({level, edge(level, node(level, p.from, false), node_of[at], p.from)});
    }
    steps.insert(steps.end(), inward.rbegin(), inward.rend());
    step_start.push_back(static_cast<uint32_t>(steps.size()));
    kept.push_back(p);
  }
  pairs = std::move(kept);
}

void View::lay_out() {
  std::unordered_map<std::string_view, uint32_t> old;
  const Drawing* before = options.before;
  if (before)
    for (uint32_t k = 0; k < before->boxes.size(); ++k) old.emplace(before->boxes[k].key, k);
  std::vector<std::vector<uint32_t>> children(levels.size());
  for (uint32_t k = 1; k < out.boxes.size(); ++k) children[level_of[out.boxes[k].parent]].push_back(k);
  for (size_t l = levels.size(); l-- > 0;) {
    Level& level = levels[l];
    DrawnBox& group = out.boxes[group_box[l]];
    auto old_group = old.find(group.key);
    for (uint32_t k : children[l]) {
      LevelNode& n = level.nodes[node_of[k]];
      n.w = out.boxes[k].w, n.h = out.boxes[k].h;
      auto was = old.find(out.boxes[k].key);
      if (was == old.end() || old_group == old.end() || before->boxes[was->second].parent != old_group->second)
        continue;
      const DrawnBox &then = before->boxes[was->second], &around = before->boxes[old_group->second];
      n.wanted_x = then.x - around.x - kPad, n.wanted_y = then.y - around.y - kHead, n.wanted_layer = then.layer;
    }
    // Where values come in comes first, where they leave last: nodes stand in topological order.
    std::vector<uint32_t> order, number(level.nodes.size());
    for (auto pin : {LevelNode::Pin::kTop, LevelNode::Pin::kNone, LevelNode::Pin::kBottom})
      for (uint32_t k = 0; k < level.nodes.size(); ++k)
        if (level.nodes[k].pin == pin) number[k] = static_cast<uint32_t>(order.size()), order.push_back(k);
    Level sorted;
    for (uint32_t k : order) sorted.nodes.push_back(level.nodes[k]);
    sorted.edges = std::move(level.edges);
    std::vector<uint32_t> box_at(sorted.nodes.size(), kNone);
    for (uint32_t k : children[l]) box_at[number[node_of[k]]] = k;
    for (LevelEdge& e : sorted.edges) {
      e.from = number[e.from], e.to = number[e.to];
      auto port = [&](uint32_t at, bool leaving) {
        if (box_at[at] == kNone || level_of[box_at[at]] == kNone) return -1.0f;
        uint32_t inner = level_of[box_at[at]];
        auto found = ports[leaving].find(keyed(inner, e.value));
        if (found == ports[leaving].end()) return -1.0f;
        return levels[inner].nodes[found->second].x + kPort / 2 + kPad;
      };
      e.from_at = port(e.from, true), e.to_at = port(e.to, false);
    }
    lay_out_level(&sorted);
    for (uint32_t k = 0; k < order.size(); ++k) level.nodes[order[k]] = sorted.nodes[k];
    level.edges = std::move(sorted.edges);
    level.width = sorted.width, level.height = sorted.height;
    float title = static_cast<float>(std::min<size_t>(group.label.size() + 8, 40)) * 6.5f;
    group.w = std::max(level.width + 2 * kPad, title), group.h = level.height + kHead + kPad;
  }
}

void View::absolute() {
  for (size_t k = 1; k < out.boxes.size(); ++k) {
    DrawnBox &b = out.boxes[k], &parent = out.boxes[b.parent];
    const LevelNode& n = levels[level_of[b.parent]].nodes[node_of[k]];
    b.x = parent.x + kPad + n.x, b.y = parent.y + kHead + n.y, b.layer = n.layer;
  }
  out.width = out.boxes[0].w, out.height = out.boxes[0].h;
}

void View::route() {
  DrawnEdges& to = out.edges;
  for (size_t p = 0; p < pairs.size(); ++p) {
    bool stub = false;
    for (uint32_t s = step_start[p]; s < step_start[p + 1]; ++s)
      stub |= levels[steps[s].level].edges[steps[s].edge].stub;
    const DrawnBox& user = out.boxes[pairs[p].to];
    to.from.push_back(pairs[p].from), to.to.push_back(pairs[p].to);
    to.label.push_back(stub ? out.boxes[pairs[p].from].label : "");
    if (stub) {
      float middle = user.x + user.w / 2;
      to.points.insert(to.points.end(), {middle, user.y - 12, middle, user.y});
    } else {
      size_t first = to.points.size();
      for (uint32_t s = step_start[p]; s < step_start[p + 1]; ++s) {
        const DrawnBox& group = out.boxes[group_box[steps[s].level]];
        const std::vector<float>& points = levels[steps[s].level].edges[steps[s].edge].points;
        for (size_t k = 0; k < points.size(); k += 2) {
          float px = group.x + kPad + points[k], py = group.y + kHead + points[k + 1];
          size_t n = to.points.size();
          bool same = n >= first + 2 && std::abs(to.points[n - 2] - px) < 0.01f;
          if (same && n >= first + 4 && std::abs(to.points[n - 4] - px) < 0.01f)
            to.points[n - 1] = py;
          else if (!same || std::abs(to.points[n - 1] - py) > 0.01f)
            to.points.insert(to.points.end(), {px, py});
        }
      }
    }
    to.start.push_back(static_cast<uint32_t>(to.points.size()));
  }
}

Drawing lay_out(const Folding& folding, const LayoutOptions& options) {
  uint32_t top = options.within.empty() ? 0 : folding.find(options.within);
  if (top == FoldGroup::kNone) fail(FailureKind::kUsage, "there is no group '{}' in this module", options.within);
  View view(folding, options, top);
  view.choose_open();
  view.marks();
  view.boxes();
  view.find_pairs();
  view.level_edges();
  view.lay_out();
  view.absolute();
  view.route();
  return std::move(view.out);
}

Drawing lay_out(const Module& m, const LayoutOptions& options) { return lay_out(Folding(m), options); }

}  // namespace hlo
