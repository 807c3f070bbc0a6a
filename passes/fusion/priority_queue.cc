#include "passes/fusion/priority_queue.h"

#include <algorithm>
#include <limits>
#include <span>

#include "ir/analysis/fusion/tiling.h"
#include "passes/fusion/fuse.h"

namespace hlo {
namespace {
constexpr Ticks kInfinite = std::numeric_limits<Ticks>::max();
}

PriorityFusionQueue::PriorityFusionQueue(Module& m, CompId comp, const GpuTarget& target, Listener on_decision)
    : m_(m),
      target_(target),
      on_decision_(std::move(on_decision)),
      costs_(m),
      model_(m, target, costs_),
      fusibility_(m, target, costs_) {
  for (InstId i : m.live_order(comp)) places_.emplace(i, static_cast<uint32_t>(places_.size()));
  std::vector<InstId> producers;
  for (InstId i : m.post_order(comp)) {
    const Opcode op = m.op(i);
    if (!ids_ && is_triton_fusion(m, i)) ids_.emplace(m);
    if (op == Opcode::Parameter || op == Opcode::Tuple || op == Opcode::GetTupleElement || m.user_count(i) == 0 ||
        !is_fusible(m, i))
      continue;
    producers.push_back(i);
  }
  price(producers);
}

uint32_t PriorityFusionQueue::number(InstId i) const {
  auto at = places_.find(i);
  return at != places_.end() ? at->second : static_cast<uint32_t>(places_.size()) + i.value;
}

const RunTime& PriorityFusionQueue::run_time(InstId i) {
  if (auto at = times_.find(i); at != times_.end()) return at->second;
  RunTime r = model_.of(i);
  return times_[i] = r;
}

Ticks PriorityFusionQueue::fused_time(InstId producer, InstId consumer) {
  auto& known = fused_[producer];
  if (auto at = known.find(consumer); at != known.end()) return at->second;
  const Ticks t = model_.fused(producer, consumer, run_time(producer), run_time(consumer)).total;
  return known[consumer] = t;
}

std::string PriorityFusionQueue::refuse(InstId producer, InstId consumer) {
  auto& known = refusals_[producer];
  if (auto at = known.find(consumer); at != known.end()) return at->second;
  if (is_triton_fusion(m_, producer) || is_triton_fusion(m_, consumer))
    return known[consumer] = refuse_tiled(producer, consumer);
  return known[consumer] = fusibility_.refuse(producer, consumer);
}

// One that Triton compiles stays one: what goes into it, or it into, must be cut into tiles as well.
std::string PriorityFusionQueue::refuse_tiled(InstId producer, InstId consumer) {
  if (m_.is_root(producer)) return "not fusing into the output of the root instruction";
  if (!is_priority_fusible(m_, producer)) return "the producer is not fusible";
  if (!is_priority_fusible(m_, consumer)) return "the consumer is not fusible";
  for (InstId i : {producer, consumer}) {
    if (is_triton_fusion(m_, i)) continue;
    if (m_.op(i) != Opcode::Fusion) {
      if (std::string why = refuse_triton(m_, i, target_); !why.empty()) return why;
      continue;
    }
    for (InstId b : m_.comp(m_.called(i)[0]).order)
      if (m_.alive(b))
        if (std::string why = refuse_triton(m_, b, target_); !why.empty()) return why;
  }
  if (std::string why = fusibility_.refuse_parameters(consumer, producer, true); !why.empty()) return why;
  auto [known, fresh] = tiles_by_id_.emplace(ids_->of(producer, consumer), std::nullopt);
  if (fresh) known->second = model_.best_tiles(FusionView(m_, producer, consumer));
  const std::optional<TritonTiles>& tiles = known->second;
  if (!tiles) return "Fusion can not be tiled with SymbolicTileAnalysis: No valid tilings found.";
  fused_[producer][consumer] = tiles->time.total;
  tiles_[producer][consumer] = *tiles;
  return "";
}

std::string PriorityFusionQueue::refuse_users(InstId producer, InstId* by) {
  if (m_.user_count(producer) == 0) return "No users to fuse";
  // Of what all took, only users that are new are asked: a constant's broadcast may have one in every layer.
  auto fresh = new_consumers_.find(producer);
  const bool known = accepted_.erase(producer) > 0 && fresh != new_consumers_.end() && m_.op(producer) != Opcode::Rng;
  bool real = known;
  for (InstId user : known ? std::span<const InstId>(fresh->second) : m_.users(producer)) {
    if (is_plain_bitcast(m_, user)) continue;
    real = true;
    if (std::string why = refuse(producer, user); !why.empty()) {
      *by = user;
      return why;
    }
  }
  if (real) accepted_.insert(producer);
  return real ? "" : "not fusing because there are only bitcast users";
}

bool PriorityFusionQueue::decide(InstId producer, Ticks* priority) {
  Decision d;
  d.producer = producer;
  if (is_plain_bitcast(m_, producer) || m_.op(producer) == Opcode::Constant) {
    *priority = kInfinite;
    return m_.op(producer) == Opcode::Bitcast;
  }
  d.refused = refuse_users(producer, &d.consumer);
  if (!d.refused.empty()) {
    on_decision_(d);
    return false;
  }
  auto removed = removed_.find(producer);
  std::vector<InstId> consumers = removed != removed_.end() ? new_consumers_.at(producer) : m_.users_copy(producer);
  d.unfused = kLaunchOverhead * static_cast<Ticks>(consumers.size() + 1) + run_time(producer).total;
  d.fused = kLaunchOverhead * static_cast<Ticks>(consumers.size());
  for (InstId c : consumers) {
    d.unfused += run_time(c).total;
    d.fused += fused_time(producer, c);
  }
  Ticks before = 0;
  if (removed != removed_.end()) {
    d.unfused -= removed->second.unfused;
    d.fused -= removed->second.fused;
    before = keys_.at(producer).first;
  }
  *priority = d.saves = before + d.unfused - d.fused;
  on_decision_(d);
  return true;
}

void PriorityFusionQueue::price(const std::vector<InstId>& producers) {
  std::vector<std::pair<InstId, Ticks>> priced;
  for (InstId p : producers) {
    Ticks priority = 0;
    if (!decide(p, &priority)) priority = -1;
    priced.emplace_back(p, priority);
  }
  for (auto [p, priority] : priced) {
    const Key key{priority, number(p)};
    if (auto at = keys_.find(p); at != keys_.end()) {
      if (at->second == key) continue;
      drop(p);
    }
    if (priority < 0) continue;
    queue_[key] = p;
    keys_[p] = key;
  }
}

void PriorityFusionQueue::drop(InstId i) {
  auto at = keys_.find(i);
  if (at == keys_.end()) return;
  queue_.erase(at->second);
  keys_.erase(at);
}

void PriorityFusionQueue::take(InstId producer) { drop(producer); }

InstId PriorityFusionQueue::next(std::vector<InstId>* consumers) {
  consumers->clear();
  while (!queue_.empty() && consumers->empty()) {
    const InstId producer = std::prev(queue_.end())->second;
    drop(producer);
    *consumers = m_.users_copy(producer);
    if (is_plain_bitcast(m_, producer))
      std::erase_if(*consumers, [&](InstId c) { return !refuse(producer, c).empty(); });
    if (!consumers->empty()) return producer;
  }
  return InstId();
}

std::string_view PriorityFusionQueue::kind_of(InstId producer, InstId consumer) const {
  if (is_custom_fusion(m_, producer) || is_custom_fusion(m_, consumer)) return "kCustom";
  switch (analyze_fusion(FusionView(m_, producer, consumer), target_).kind) {
    case EmitterKind::kLoop:
      return "kLoop";
    case EmitterKind::kReduction:
    case EmitterKind::kTranspose:
    case EmitterKind::kConcatenate:
    case EmitterKind::kScatter:
      return "kInput";
    default:
      return "kCustom";
  }
}

InstId PriorityFusionQueue::fuse(InstId producer, InstId consumer) {
  std::string config;
  if (auto of = tiles_.find(producer); of != tiles_.end())
    if (auto at = of->second.find(consumer); at != of->second.end()) config = at->second.config();
  FusionIds::PairId pair{};
  if (ids_) pair = ids_->of(producer, consumer);
  const InstId fusion = fuse_into(m_, producer, consumer, kind_of(producer, consumer));
  if (ids_) ids_->fused(fusion, pair);
  if (!config.empty()) m_.set_attr(fusion, Attr::backend_config, m_.u().str(config));
  if (fusion != consumer) {
    to_update_.erase(consumer);
    drop(consumer);
  }
  for (InstId o : m_.operands(fusion)) {
    if (o == producer || m_.op(o) == Opcode::Constant || m_.op(o) == Opcode::GetTupleElement || !is_fusible(m_, o))
      continue;
    to_update_.insert(o);
    // Its uses by one fusion follow each other.
    std::vector<InstId>& list = new_consumers_[o];
    if (list.empty() || list.back() != fusion) list.push_back(fusion);
  }
  to_update_.insert(fusion);
  return fusion;
}

// What was priced of the operand's fusion into those.
void PriorityFusionQueue::note_removed(InstId operand, const std::unordered_set<InstId>& gone) {
  auto known = fused_.find(operand);
  if (known == fused_.end()) return;
  Times t;
  auto add = [&](InstId consumer, Ticks fused) {
    t.fused += fused;
    t.unfused += times_.at(consumer).total;
  };
  // A producer may have thousands of consumers, and so may each of their operands, but mostly they have few.
  if (known->second.size() < gone.size()) {
    for (const auto& [consumer, fused] : known->second)
      if (gone.contains(consumer)) add(consumer, fused);
  } else {
    for (InstId consumer : gone)
      if (auto at = known->second.find(consumer); at != known->second.end()) add(consumer, at->second);
  }
  t.unfused += times_.at(operand).total + kLaunchOverhead;
  removed_[operand] = t;
}

void PriorityFusionQueue::forget(InstId i) {
  refusals_.erase(i);
  accepted_.erase(i);
  fusibility_.forget(i);
  costs_.forget(i);
  times_.erase(i);
  fused_.erase(i);
  tiles_.erase(i);
}

void PriorityFusionQueue::finish(InstId producer, const std::vector<InstId>& consumers) {
  std::unordered_set<InstId> gone(consumers.begin(), consumers.end());
  gone.insert(producer);
  for (const auto& [operand, list] : new_consumers_)
    if (keys_.contains(operand)) note_removed(operand, gone);
  // Pairs with a consumer that changed are of yesterday.
  auto forget_pairs = [&](InstId consumer) {
    if (!m_.alive(consumer)) return;
    for (InstId o : m_.operands(consumer)) {
      if (auto at = fused_.find(o); at != fused_.end()) at->second.erase(consumer);
      if (auto at = tiles_.find(o); at != tiles_.end()) at->second.erase(consumer);
      if (auto at = refusals_.find(o); at != refusals_.end()) at->second.erase(consumer);
    }
  };
  if (m_.user_count(producer) == 0) {
    forget_pairs(producer);
    forget(producer);
    drop(producer);
    to_update_.erase(producer);
    if (!m_.is_root(producer) && !m_.has_control(producer)) m_.remove(producer);
  }
  for (InstId c : consumers) {
    forget_pairs(c);
    forget(c);
  }
  const std::vector<InstId> updates = to_update_.take();
  for (InstId i : updates) costs_.forget(i);
  price(updates);
  new_consumers_.clear();
  removed_.clear();
}

std::string PriorityFusionQueue::refuse_constant(InstId constant, InstId user) {
  if (std::string why = fusibility_.refuse_scatter(constant, user); !why.empty()) return why;
  if (is_triton_fusion(m_, user)) return refuse_triton(m_, constant, target_);
  return is_priority_fusible(m_, user) ? "" : "User is not fusible";
}

}  // namespace hlo
