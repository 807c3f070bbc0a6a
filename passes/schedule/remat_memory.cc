#include "passes/schedule/remat_memory.h"

#include <algorithm>
#include <unordered_set>

namespace hlo {
namespace {

// Hand what they read on to their own readers.
bool is_relay(Opcode op) { return op == Opcode::Bitcast || op == Opcode::GetTupleElement; }

bool may_be_computed_again(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::Call:
    case Opcode::Constant:
    case Opcode::Conditional:
    case Opcode::CustomCall:
    case Opcode::Parameter:
    case Opcode::While:
      return false;
    case Opcode::Copy:  // that copy-insertion made
      if (m.shape(i).layout == m.shape(m.operand(i, 0)).layout) return false;
      break;
    default:
      break;
  }
  if (op_info(m.op(i)).cls == OpClass::Async) return false;
  if (op_info(m.op(i)).cls != OpClass::Collective) return !m.has_side_effect(i);
  // A start has one end: neither can be made twice. XLA takes the first ones away; that is left out here.
  const std::string_view name = op_text(m.op(i));
  return !name.ends_with("-start") && !name.ends_with("-done") && !m.attrs(i).flag(Attr::constrain_layout);
}

// Between neighbours in the order, so that what is inserted finds a label between theirs.
constexpr int64_t kGap = int64_t{1} << 30;

uint64_t pair_of(InstId user, InstId operand) { return uint64_t{user.value} << 32 | operand.value; }

}  // namespace

RematMemory::RematMemory(const Module& m, CompId c, const PointsTo& points) : m_(m) {
  ItemId last = kNoItem;
  for (InstId i : m.live_order(c)) {
    const ItemId made = add_item(i);
    items_[made].before = last;
    (last == kNoItem ? next_of_head_ : items_[last].next) = made;
    last = made;
  }
  relabel();
  take_buffers(c, points);
}

ItemId RematMemory::add_item(InstId i) {
  const auto id = static_cast<ItemId>(items_.size());
  items_.push_back({.inst = i, .may = may_be_computed_again(m_, i)});
  if (i.value >= item_of_.size()) item_of_.resize(std::max<size_t>(i.value + 1, m_.inst_slots()), kNoItem);
  item_of_[i.value] = id;
  return id;
}

void RematMemory::relabel() {
  int64_t label = 0;
  for (ItemId at = next_of_head_; at != kNoItem; at = items_[at].next) items_[at].label = label += kGap, ++work_;
}

void RematMemory::link(ItemId item, ItemId before) {
  const ItemId last = items_[before].before;
  items_[item].before = last, items_[item].next = before;
  items_[before].before = item;
  (last == kNoItem ? next_of_head_ : items_[last].next) = item;
  const int64_t low = last == kNoItem ? 0 : items_[last].label, high = items_[before].label;
  items_[item].label = low + (high - low) / 2;
  if (items_[item].label == low) relabel();
}

void RematMemory::insert_before(ItemId item, const std::vector<ItemId>& places) {
  HLO_CHECK(!places.empty(), "no place for {}", m_.inst_name(inst(item)));
  link(item, *std::min_element(places.begin(), places.end(),
                               [&](ItemId a, ItemId b) { return items_[a].label < items_[b].label; }));
}

void RematMemory::deny(InstId i) {
  Item& of = items_[item(i)];
  of.denied = true;
  alive_.erase({of.number, item(i)});
}

std::vector<InstId> RematMemory::order() const {
  std::vector<InstId> out;
  for (ItemId at = next_of_head_; at != kNoItem; at = items_[at].next) out.push_back(items_[at].inst);
  return out;
}

// --- buffers ---

// A fusion or whatever reads all of an operand but for an element of a tuple, which reads its tuple alone.
bool RematMemory::reads_nothing(InstId of, uint32_t node, InstId user) const {
  if (m_.op(user) == Opcode::GetTupleElement) return node != 0;
  if (m_.op(user) != Opcode::Fusion || m_.u().text(m_.attrs(user).text(Attr::kind)) != "kLoop" || node != 0)
    return false;
  const Computation& body = m_.comp(m_.called(user)[0]);
  return m_.dead(body.params[places_.at(pair_of(user, of))[0]]);
}

int64_t RematMemory::element_at(const PointsTo& points, const LogicalBuffer& buffer) const {
  const ShapeId whole = m_.shape_id(buffer.inst);
  size_t low = 0, high = m_.u()[whole].elements.size();  // elements' parts follow one another
  while (low < high) {
    const size_t k = (low + high) / 2;
    (points.nodes().child(whole, k) < buffer.node ? low : high) =
        points.nodes().child(whole, k) < buffer.node ? k + 1 : k;
  }
  const bool found = low < m_.u()[whole].elements.size() && points.nodes().child(whole, low) == buffer.node;
  return found ? static_cast<int64_t>(low) : -1;
}

std::vector<RematMemory::Use> RematMemory::readers(BufferId id, const PointsTo& points, bool* relayed) const {
  std::vector<Use> out;
  std::unordered_map<ItemId, std::vector<size_t>> known;
  const LogicalBuffer& buffer = points[id];
  const int64_t element = element_at(points, buffer);
  const auto found = aliases_.find(id);
  if (found == aliases_.end()) return out;
  for (const auto& [alias, node] : found->second)
    for (InstId user : m_.users(alias)) {
      if (reads_nothing(alias, node, user)) continue;
      if (alias != buffer.inst && !is_relay(m_.op(alias))) *relayed = true;
      const ItemId item = this->item(user);
      for (uint32_t n : places_.at(pair_of(user, alias))) {
        const Use use{item, n, element};
        std::vector<size_t>& of_item = known[item];
        if (std::any_of(of_item.begin(), of_item.end(), [&](size_t k) { return out[k] == use; })) continue;
        of_item.push_back(out.size());
        out.push_back(use);
      }
    }
  return out;
}

uint32_t RematMemory::add_buffer(Buffer b) {
  std::unordered_set<ItemId> users;
  for (const Use& use : b.uses) users.insert(use.user);
  b.readers_left = static_cast<int64_t>(users.size());
  buffers_.push_back(std::move(b));
  return static_cast<uint32_t>(buffers_.size() - 1);
}

void RematMemory::take_buffers(CompId c, const PointsTo& points) {
  const std::vector<InstId> order = this->order();
  std::unordered_map<InstId, std::vector<BufferId>> defined;
  const auto [begin, end] = points.of(c);
  for (BufferId b = begin; b < end; ++b) defined[points[b].inst].push_back(b);
  for (InstId i : order) {
    for (uint32_t n = 0; n < m_.operand_count(i); ++n) places_[pair_of(i, m_.operand(i, n))].push_back(n);
    std::span<const BufferId> parts = points.of(i);
    for (uint32_t node = 0; node < parts.size(); ++node) aliases_[parts[node]].push_back({i, node});
  }
  std::unordered_set<BufferId> results;
  for (BufferId b : points.of(m_.comp(c).root)) results.insert(b);
  for (InstId i : order) {
    for (BufferId id : defined[i]) {
      if (m_.op(i) == Opcode::While) {
        take_loop_state(i, id, points);
        if (results.contains(id)) buffers_[buffer_of_.at(id)].stays = true;
        continue;
      }
      const LogicalBuffer& from = points[id];
      bool relayed = false;
      std::vector<Use> uses = readers(id, points, &relayed);
      const int64_t element = element_at(points, from);
      const size_t depth = from.node == 0 ? 0 : element >= 0 ? 1 : 2;
      const uint32_t made = add_buffer(
          {item(i), m_.u().byte_size(from.shape), depth, element, results.contains(id), relayed, std::move(uses)});
      buffer_of_[id] = made;
      items_[item(i)].made.push_back(made);
      for (const Use& use : buffers_[made].uses) {
        std::vector<uint32_t>& used = items_[use.user].used;
        if (used.empty() || used.back() != made) used.push_back(made);
      }
    }
    std::vector<uint32_t>& given = items_[item(i)].given;
    for (BufferId id : points.of(i)) {
      const auto known = buffer_of_.find(id);
      if (known != buffer_of_.end()) given.push_back(known->second);
    }
  }
  for (Item& i : items_) {  // each once
    std::unordered_set<uint32_t> seen;
    std::erase_if(i.used, [&](uint32_t b) { return !seen.insert(b).second; });
  }
}

// A loop makes nothing: its results are the buffers of its initial state.
void RematMemory::take_loop_state(InstId loop, BufferId id, const PointsTo& points) {
  const BufferId source = points.of(m_.operand(loop, 0))[points[id].node];
  const uint32_t number = buffer_of_.at(source);
  buffer_of_[id] = number;
  bool relayed = false;
  const std::vector<Use> more = readers(id, points, &relayed);
  Buffer& b = buffers_[number];
  b.relayed = true;
  std::unordered_set<ItemId> known;
  for (const Use& use : b.uses) known.insert(use.user);
  for (const Use& use : more) {
    if (!known.insert(use.user).second) continue;
    ++b.readers_left;
    items_[use.user].used.push_back(number);
    b.uses.push_back(use);
  }
}

int64_t RematMemory::size(const Buffer& b) const {
  return b.stays || m_.op(inst(b.maker)) == Opcode::Parameter ? 0 : b.size;
}
int64_t RematMemory::bytes_made(ItemId item) const {
  int64_t sum = 0;
  for (uint32_t b : items_[item].made) sum += size(buffers_[b]);
  return sum;
}
bool RematMemory::in_use(uint32_t buffer) const {
  if (current_ == kNoItem) return false;
  const std::vector<uint32_t>& used = items_[current_].used;
  return std::find(used.begin(), used.end(), buffer) != used.end();
}

// --- placing ---

void RematMemory::remember(ItemId item) {
  if (items_[item].may && items_[item].placed && !items_[item].denied) alive_.insert({items_[item].number, item});
}

void RematMemory::begin(ItemId item) {
  current_ = item;
  items_[item].placed = true;
  items_[item].number = placed_++;
  usage_ += bytes_made(item);
  remember(item);
}

void RematMemory::end() {
  const Item& item = items_[current_];
  for (uint32_t b : item.used)
    if (--buffers_[b].readers_left == 0) usage_ -= size(buffers_[b]);
  for (uint32_t b : item.made)
    if (buffers_[b].readers_left == 0) usage_ -= size(buffers_[b]);
  current_ = kNoItem;
}

// --- choosing ---

int64_t RematMemory::bytes_won(ItemId item) const {
  int64_t won = 0;
  for (uint32_t number : items_[item].made) {
    const Buffer& b = buffers_[number];
    if (b.relayed || b.stays || b.depth > 1 || in_use(number)) return 0;
    if (live(b)) won += size(b);
  }
  for (uint32_t number : items_[item].used)  // kept for it from now on
    if (!live(buffers_[number])) won -= size(buffers_[number]);
  return won;
}

bool RematMemory::only_moves(ItemId item) const {
  std::span<const InstId> users = m_.users(inst(item));
  return std::none_of(users.begin(), users.end(), [&](InstId user) { return placed(user); });
}

RematMemory::Candidate RematMemory::best(int64_t limit) {
  Candidate found;
  int64_t cost = INT64_MAX;
  for (auto at = alive_.begin(); at != alive_.end();) {
    const ItemId item = at->second;
    ++work_;
    const std::vector<uint32_t>& made = items_[item].made;
    if (item != current_ && std::none_of(made.begin(), made.end(), [&](uint32_t b) { return live(buffers_[b]); })) {
      at = alive_.erase(at);
      continue;
    }
    ++at;
    if (item == current_) continue;
    std::span<const InstId> after = m_.control_succs(inst(item));
    if (std::any_of(after.begin(), after.end(), [&](InstId s) { return placed(s); })) continue;
    const int64_t won = bytes_won(item);
    if (won <= 0) continue;
    const int64_t here = only_moves(item) ? 0 : limit / won;
    if (here < cost) cost = here, found = {item, won};
  }
  return found;
}

std::vector<RematMemory::Use> RematMemory::uses(ItemId item) const {
  std::vector<Use> out;
  for (uint32_t b : items_[item].made) out.insert(out.end(), buffers_[b].uses.begin(), buffers_[b].uses.end());
  return out;
}

// --- after a choice ---

void RematMemory::one_reader_more(uint32_t buffer) {
  Buffer& b = buffers_[buffer];
  if (b.readers_left++ == 0) {
    usage_ += size(b);
    remember(b.maker);
  }
}

void RematMemory::computed_again(ItemId item, ItemId again, const std::vector<ItemId>& relays) {
  items_[again].used = items_[item].used;
  for (uint32_t number : items_[item].used) {
    one_reader_more(number);
    std::vector<Use>& uses = buffers_[number].uses;
    worked(uses.size());
    for (size_t k = 0, n = uses.size(); k < n; ++k)
      if (uses[k].user == item) uses.push_back({again, uses[k].operand, uses[k].element});
  }
  const std::unordered_set<ItemId> fresh(relays.begin(), relays.end());
  for (uint32_t number : items_[item].made) {
    std::vector<Use> had, to_come;
    for (const Use& use : buffers_[number].uses) {
      if (items_[use.user].placed) {
        had.push_back(use);
      } else if (!is_relay(m_.op(inst(use.user))) || fresh.contains(use.user)) {
        to_come.push_back(use);
      } else {  // nobody reads it any more
        items_[use.user].given.clear();
        items_[use.user].used.clear();
      }
    }
    usage_ -= size(buffers_[number]);
    buffers_[number].uses = std::move(had);
    buffers_[number].readers_left = 0;
    Buffer copy = buffers_[number];
    copy.maker = again, copy.stays = copy.relayed = false, copy.uses = std::move(to_come);
    const uint32_t made = add_buffer(std::move(copy));
    items_[again].made.push_back(made);
    items_[again].given.push_back(made);
    for (const Use& use : buffers_[made].uses) {
      std::replace(items_[use.user].used.begin(), items_[use.user].used.end(), number, made);
      std::replace(items_[use.user].given.begin(), items_[use.user].given.end(), number, made);
    }
  }
  for (ItemId relay : relays) update_relay(relay);
}

// An element reads its tuple and gives a part of it; a bitcast gives what it reads.
void RematMemory::update_relay(ItemId relay) {
  Item& to = items_[relay];
  const Item& from = items_[item(m_.operand(to.inst, 0))];
  if (m_.op(to.inst) == Opcode::Bitcast) {
    to.used = to.given = is_relay(m_.op(from.inst)) ? from.given : from.made;
  } else {
    for (uint32_t number : from.made) {
      const Buffer& b = buffers_[number];
      if (b.depth == 1 && b.element == m_.attrs(to.inst).integer(Attr::index)) to.given.push_back(number);
      if (b.depth == 0) to.used.push_back(number);
    }
  }
  for (uint32_t number : to.used) {
    ++buffers_[number].readers_left;
    buffers_[number].uses.push_back({relay, 0, -1});
  }
}

}  // namespace hlo
