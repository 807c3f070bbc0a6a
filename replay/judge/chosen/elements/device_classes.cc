#include "replay/judge/chosen/elements/device_classes.h"

#include <algorithm>
#include <utility>

#include "ir/eval/evaluator.h"

namespace hlo {

void DeviceClasses::set_devices(int64_t count) {
  if (count == devices_) return;
  HLO_CHECK(devices_ == 1, "stages for {} and for {} devices", devices_, count);
  devices_ = count;
  classes_ = {std::vector<uint32_t>(static_cast<size_t>(count), 0)};
  numbers_ = {{classes_[0], 0}};
}

uint32_t DeviceClasses::number(std::vector<uint32_t> first_of) {
  const auto [at, fresh] = numbers_.try_emplace(first_of, static_cast<uint32_t>(classes_.size()));
  if (fresh) classes_.push_back(std::move(first_of));
  return at->second;
}

template <class Key>
uint32_t DeviceClasses::by_key(const std::vector<Key>& keys) {
  std::map<Key, uint32_t> first;
  std::vector<uint32_t> out;
  for (uint32_t d = 0; d < keys.size(); ++d) out.push_back(first.try_emplace(keys[d], d).first->second);
  return number(std::move(out));
}

uint32_t DeviceClasses::both(uint32_t a, uint32_t b) {
  if (a == b || b == kAll) return a;
  if (a == kAll) return b;
  std::vector<std::pair<uint32_t, uint32_t>> keys;
  for (size_t d = 0; d < classes_[a].size(); ++d) keys.emplace_back(classes_[a][d], classes_[b][d]);
  return by_key(keys);
}

uint32_t DeviceClasses::each() {
  std::vector<uint32_t> out;
  for (uint32_t d = 0; d < devices_; ++d) out.push_back(d);
  return number(std::move(out));
}

// Of an array that a stage for several devices takes, by the sharding that stands there.
uint32_t DeviceClasses::parameter(const Expr& x) {
  if (devices_needed(*x.m) == 1) return kAll;
  const std::optional<ShardTiling> tiling = parameter_tiling(*x.m, x.inst, x.leaf);
  if (!tiling || (!tiling->place.empty() && static_cast<int64_t>(tiling->place.size()) != devices_)) return each();
  return tiling->place.empty() ? kAll : by_key(tiling->place);
}

// Of what is made of all of a group it is one value there.
uint32_t DeviceClasses::sent(const Expr& x) {
  const DeviceMessage& m = *x.message;
  const auto count = static_cast<size_t>(devices_);
  if (m.kind == DeviceMessage::kNumber) return by_key(m.numbers);
  std::vector<const std::vector<uint32_t>*> in;
  for (ExprId o : x.operands) in.push_back(&classes_[of_[o]]);
  std::vector<std::vector<int64_t>> keys(count);
  for (size_t d = 0; d < count; ++d) {
    if (m.kind == DeviceMessage::kPart) {
      keys[d].assign(m.starts[d].begin(), m.starts[d].end());
      keys[d].push_back((*in[0])[d]);
    } else if (m.kind == DeviceMessage::kTake) {
      keys[d] = {m.operand[d], m.source[d] < 0 ? -1 : int64_t{(*in[m.operand[d]])[static_cast<size_t>(m.source[d])]}};
    } else {
      for (int64_t member : m.groups[m.group_of[d]]) keys[d].push_back((*in[0])[static_cast<size_t>(member)]);
      if (m.kind == DeviceMessage::kReduce) std::sort(keys[d].begin(), keys[d].end());
      if (m.kind == DeviceMessage::kExchange) keys[d].push_back(m.place[d]);
    }
  }
  return by_key(keys);
}

uint32_t DeviceClasses::made(const Expr& x) {
  switch (x.kind) {
    case Expr::kFormal:
    case Expr::kLoop:
      return x.devices;
    case Expr::kMessage:
      return sent(x);
    case Expr::kParameter:
      return parameter(x);
    case Expr::kOperation:
      // Random numbers and what nobody knows.
      if (x.operands.empty() && x.m->op(x.inst) != Opcode::Constant && x.m->op(x.inst) != Opcode::Iota) return each();
      break;
    default:
      break;
  }
  uint32_t out = kAll;
  for (ExprId o : x.operands)
    if (o != kNoExpr) out = both(out, of_[o]);
  return out;
}

uint32_t DeviceClasses::of(ExprId e) {
  if (devices_ == 1) return kAll;
  // Operands come before their readers.
  while (of_.size() <= e) of_.push_back(made(all_[static_cast<ExprId>(of_.size())]));
  return of_[e];
}

}  // namespace hlo
