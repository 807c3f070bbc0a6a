// Groups by the name scopes of op_name. A scope whose instructions are left and entered again on some path is split, so
// that groups have no cycle: instructions are taken in a topological order that stays within a scope as long as it can,
// and each stay is a part.
#include <algorithm>
#include <deque>

#include "ir/base/hash.h"
#include "viewer/layout/folding_maker.h"

namespace hlo {
namespace {

constexpr uint32_t kDeepest = 24;     // scopes within scopes
constexpr size_t kLongName = 200;     // bytes of a scope's name and of a path in a key
constexpr size_t kSmallestScope = 2;  // instructions of a group
constexpr size_t kLookedAt = 64;      // scopes that are compared where each would have to be split
constexpr uint32_t kLoose = 0xFFFFFFFFu;

// What is cut out of a long text still differs from others.
std::string short_enough(std::string text) {
  if (text.size() <= kLongName) return text;
  size_t end = kLongName / 2;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // within a letter
  return text.substr(0, end) + fmt::format("…{:016x}", hash_bytes(text));
}

}  // namespace

bool without_digits(std::string_view name, std::string* out) {
  bool some = false;
  out->clear();
  for (char c : name)
    if (c >= '0' && c <= '9')
      some = true;
    else
      *out += c;
  return some;
}

uint32_t ScopeTree::child(uint32_t parent, std::string_view name) {
  key_.assign(reinterpret_cast<const char*>(&parent), sizeof(parent)).append(name);
  auto [at, fresh] = children_.try_emplace(key_, static_cast<uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back({parent, nodes_[parent].depth + 1, short_enough(std::string(name))});
  return at->second;
}

uint32_t ScopeTree::of(StrId op_name) {
  if (!op_name.valid()) return kUnknown;
  auto [known, fresh] = known_.try_emplace(op_name, kUnknown);
  if (!fresh) return known->second;
  std::string_view text = u_.text(op_name);
  uint32_t at = 0;
  int open = 0;
  size_t begin = 0;
  for (size_t k = 0; k < text.size() && nodes_[at].depth < kDeepest; ++k) {
    char c = text[k];
    if (c == '(' || c == '[' || c == '{') ++open;
    if ((c == ')' || c == ']' || c == '}') && open > 0) --open;
    if (c != '/' || open > 0) continue;
    if (k > begin) at = child(at, text.substr(begin, k - begin));
    begin = k + 1;
  }
  return known->second = at == 0 ? kUnknown : at;
}

uint32_t ScopeTree::below(uint32_t top, uint32_t scope) const {
  uint32_t depth = nodes_[top].depth + 1;
  if (nodes_[scope].depth < depth) return kUnknown;
  while (nodes_[scope].depth > depth) scope = nodes_[scope].parent;
  return nodes_[scope].parent == top ? scope : kUnknown;
}

uint32_t ScopeTree::common(uint32_t a, uint32_t b) const {
  while (a != b)
    (nodes_[a].depth >= nodes_[b].depth ? a : b) = nodes_[nodes_[a].depth >= nodes_[b].depth ? a : b].parent;
  return a;
}

std::string ScopeTree::path(uint32_t scope) const {
  std::string out;
  for (; scope; scope = nodes_[scope].parent) out = nodes_[scope].name + (out.empty() ? "" : "/" + out);
  return out;
}

namespace {

// One group's instructions, dealt out to the scopes below its own.
struct ScopeSplit {
  const LocalGraph& g;
  std::vector<uint32_t>& place;  // by node: place in `nodes`, or kLoose where it is not among them
  const std::vector<uint32_t>& nodes;
  std::vector<uint32_t> bucket, part;  // by place; kLoose: stands by itself
  std::vector<uint32_t> part_bucket, part_size, bucket_size;

  ScopeSplit(const LocalGraph& graph, std::vector<uint32_t>& places, const std::vector<uint32_t>& all)
      : g(graph), place(places), nodes(all) {}

  void run() {
    size_t buckets = bucket_size.size();
    pending_.assign(nodes.size(), 0), outside_.assign(buckets, 0), ready_.resize(buckets);
    queued_.assign(buckets, false), left_ = bucket_size;
    part.assign(nodes.size(), kLoose);
    for (size_t k = 0; k < nodes.size(); ++k)
      for (uint32_t from : g.preds[nodes[k]]) {
        if (place[from] == kLoose) continue;
        ++pending_[k];
        if (bucket[k] != kLoose && bucket[place[from]] != bucket[k]) ++outside_[bucket[k]];
      }
    for (uint32_t b = 0; b < buckets; ++b)
      if (outside_[b] == 0) free_.push_back(b);
    for (uint32_t k = 0; k < nodes.size(); ++k)
      if (pending_[k] == 0) make_ready(k);
    for (;;) {
      if (!loose_.empty()) {
        uint32_t k = loose_.front();
        loose_.pop_front();
        done(k);
      } else if (!free_.empty()) {
        uint32_t b = free_.front();
        free_.pop_front();
        if (left_[b]) stay(b);
      } else if (!started_.empty()) {
        stay(least_bound());
      } else {
        break;
      }
    }
    dissolve();
  }

 private:
  void make_ready(uint32_t k) {
    uint32_t b = bucket[k];
    if (b == kLoose) {
      loose_.push_back(k);
      return;
    }
    ready_[b].push_back(k);
    if (!queued_[b]) queued_[b] = true, started_.push_back(b);
  }
  void done(uint32_t k) {
    for (uint32_t to : g.succs[nodes[k]]) {
      uint32_t p = place[to];
      if (p == kLoose) continue;
      if (bucket[p] != kLoose && bucket[p] != bucket[k] && --outside_[bucket[p]] == 0) free_.push_back(bucket[p]);
      if (--pending_[p] == 0) make_ready(p);
    }
  }
  void stay(uint32_t b) {
    if (ready_[b].empty()) return;
    auto id = static_cast<uint32_t>(part_bucket.size());
    part_bucket.push_back(b), part_size.push_back(0);
    for (size_t next = 0; next < ready_[b].size(); ++next) {
      uint32_t k = ready_[b][next];
      part[k] = id, ++part_size[id], --left_[b];
      done(k);
    }
    ready_[b].clear();
    queued_[b] = false;
  }
  // Every scope that could go on waits for others: the one that waits for least.
  uint32_t least_bound() {
    size_t best = 0;
    std::erase_if(started_, [&](uint32_t b) { return ready_[b].empty(); });
    if (started_.empty()) return 0;
    for (size_t k = 1; k < started_.size() && k < kLookedAt; ++k)
      if (outside_[started_[k]] < outside_[started_[best]]) best = k;
    uint32_t b = started_[best];
    started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(best));
    return b;
  }
  // What a split leaves in crumbs stands by itself.
  void dissolve() {
    for (uint32_t& p : part)
      if (p != kLoose) {
        size_t all = bucket_size[part_bucket[p]], own = part_size[p];
        if (own < kSmallestScope || (own < all && own < std::max<size_t>(4, all / 16))) p = kLoose;
      }
  }

  std::vector<uint32_t> pending_, outside_, left_;
  std::vector<std::vector<uint32_t>> ready_;
  std::vector<bool> queued_;
  std::deque<uint32_t> loose_, free_;
  std::vector<uint32_t> started_;
};

struct ScopeTask {
  uint32_t group, scope;
  std::vector<uint32_t> nodes;
};

// Numbers of the scopes below `top`, in order of appearance; goes down while there is one only.
std::vector<uint32_t> buckets_below(const ScopeTree& scopes, const LocalGraph& g, ScopeTask* task,
                                    std::vector<uint32_t>* bucket) {
  for (;;) {
    std::vector<uint32_t> list;
    std::unordered_map<uint32_t, uint32_t> number;
    size_t loose = 0;
    bucket->assign(task->nodes.size(), kLoose);
    for (size_t k = 0; k < task->nodes.size(); ++k) {
      uint32_t scope = scopes.below(task->scope, g.scope[task->nodes[k]]);
      if (scope == ScopeTree::kUnknown) {
        ++loose;
        continue;
      }
      auto [at, fresh] = number.try_emplace(scope, static_cast<uint32_t>(list.size()));
      if (fresh) list.push_back(scope);
      (*bucket)[k] = at->second;
    }
    if (list.size() != 1 || loose > std::max<size_t>(3, task->nodes.size() / 20)) return list;
    task->scope = list[0];
  }
}

uint64_t structure_hash(const LocalGraph& g, const ScopeSplit& split, uint32_t k) {
  uint64_t h = g.plain[split.nodes[k]];
  for (uint32_t from : g.preds[split.nodes[k]])
    if (split.place[from] != kLoose && split.part[split.place[from]] == split.part[k])
      h = hash_combine(h, g.plain[from]);
  return mix64(h);
}

}  // namespace

void FoldingMaker::partition(const LocalGraph& g, CompId c, uint32_t top) {
  std::vector<ScopeTask> tasks(1);
  tasks[0].group = top, tasks[0].scope = 0;
  std::vector<bool> apart(g.inst.size(), false);
  for (uint32_t k : g.apart) apart[k] = true;
  for (uint32_t k = 0; k < g.inst.size(); ++k)
    if (!g.source[k] && !apart[k]) tasks[0].nodes.push_back(k);
  std::vector<uint32_t> place(g.inst.size(), kLoose);
  while (!tasks.empty()) {
    ScopeTask task = std::move(tasks.back());
    tasks.pop_back();
    ScopeSplit split(g, place, task.nodes);
    uint32_t above = task.scope;
    std::vector<uint32_t> below = buckets_below(scopes, g, &task, &split.bucket);
    if (f.groups_[task.group].kind == FoldGroup::Kind::kScope && task.scope != above)
      f.groups_[task.group].label =
          short_enough(f.groups_[task.group].label + scopes.path(task.scope).substr(scopes.path(above).size()));
    for (uint32_t k = 0; k < task.nodes.size(); ++k) place[task.nodes[k]] = k;
    split.bucket_size.assign(below.size(), 0);
    for (uint32_t b : split.bucket)
      if (b != kLoose) ++split.bucket_size[b];
    split.run();

    ItemList items;
    std::vector<uint32_t> part_item(split.part_bucket.size(), kLoose), item_at(task.nodes.size()),
        parts(below.size(), 0);
    std::vector<ScopeTask> made;
    for (uint32_t k = 0; k < task.nodes.size(); ++k) {
      uint32_t p = split.part[k];
      if (p != kLoose && part_item[p] != kLoose) {
        item_at[k] = part_item[p];
      } else {
        item_at[k] = static_cast<uint32_t>(items.item.size());
        items.weight.push_back(0);
        if (p == kLoose) {
          items.item.push_back(item_of(g.inst[task.nodes[k]], task.group));
          items.token.push_back(g.token[task.nodes[k]]);
        } else {
          uint32_t scope = below[split.part_bucket[p]], number = ++parts[split.part_bucket[p]];
          FoldGroup group;
          group.kind = FoldGroup::Kind::kScope, group.parent = task.group, group.comp = c;
          group.label = scopes.name(scope) + (number > 1 ? fmt::format(" ({})", number) : "");
          group.key = short_enough(fmt::format("s{}/{}", c.value, scopes.path(scope)));
          part_item[p] = item_at[k];
          items.item.push_back({add_group(std::move(group)), true});
          items.token.push_back(0);
          made.push_back({items.item.back().value, scope, {}});
          part_item[p] = item_at[k];
          split.part_size[p] = static_cast<uint32_t>(made.size() - 1);  // from here on: its task
        }
      }
      items.weight[item_at[k]] += g.weight[task.nodes[k]];
      if (p != kLoose) {
        made[split.part_size[p]].nodes.push_back(task.nodes[k]);
        f.groups_[items.item[item_at[k]].value].alike += structure_hash(g, split, k);
      }
    }
    auto each_pred = [&](const auto& see) {
      for (uint32_t k = 0; k < task.nodes.size(); ++k)
        for (uint32_t pred : g.preds[task.nodes[k]])
          if (place[pred] != kLoose && item_at[place[pred]] != item_at[k]) see(item_at[k], item_at[place[pred]]);
    };
    items.preds.start.assign(items.item.size() + 1, 0);
    each_pred([&](uint32_t item, uint32_t) { ++items.preds.start[item + 1]; });
    for (size_t k = 0; k < items.item.size(); ++k) items.preds.start[k + 1] += items.preds.start[k];
    items.preds.list.resize(items.preds.start.back());
    std::vector<uint32_t> next(items.preds.start.begin(), items.preds.start.end() - 1);
    each_pred([&](uint32_t item, uint32_t pred) { items.preds.list[next[item]++] = pred; });
    for (size_t k = 0; k < items.item.size(); ++k) {
      if (items.token[k]) continue;
      const FoldGroup& group = f.groups_[items.item[k].value];
      std::string name;
      items.token[k] = without_digits(group.label, &name) ? hash_bytes(name) : group.alike;
    }
    arrange(task.group, items);
    for (uint32_t k : task.nodes) place[k] = kLoose;
    for (ScopeTask& t : made) tasks.push_back(std::move(t));
  }
}

}  // namespace hlo
