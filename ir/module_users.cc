// Operands, users and control dependencies of a module.
#include <algorithm>

#include "ir/module.h"

namespace hlo {

// --- operands ---

InstId* Module::operand_array(InstId id) {
  Inst& inst = touch(id);
  if (inst.count_low <= 2) return reinterpret_cast<InstId*>(inst.operand);
  size_t total = inst.count_low == 0xFFFF ? u().pool_at(inst.operand[0])->value + 1 : inst.count_low;
  if (inst.operand[0] < frozen_pool_) inst.operand[0] = u().pool_add(u().pool_at(inst.operand[0]), total);
  return u().pool_at(inst.operand[0]) + (inst.count_low == 0xFFFF ? 1 : 0);
}

void Module::write_operands(Inst& inst, std::span<const InstId> values) {
  if (values.size() <= 2) {
    inst.count_low = static_cast<uint16_t>(values.size());
    for (size_t i = 0; i < values.size(); ++i) inst.operand[i] = values[i].value;
  } else if (values.size() < 0xFFFF) {
    inst.count_low = static_cast<uint16_t>(values.size());
    inst.operand[0] = u().pool_add(values.data(), values.size());
  } else {
    std::vector<InstId> counted{InstId(values.size())};
    counted.insert(counted.end(), values.begin(), values.end());
    inst.count_low = 0xFFFF;
    inst.operand[0] = u().pool_add(counted.data(), counted.size());
  }
}

// --- users ---

void Module::ensure_users() const {
  if (users_built_) return;
  users_built_ = true;
  users_.assign(insts_.size(), UserList());
  for (CompId c : comp_order_)
    for (InstId i : comps_[c.value].order) {
      if (!alive(i)) continue;
      add_as_user(i);
    }
}

void Module::add_as_user(InstId id) const {
  for (InstId o : operands(id)) {
    // Its uses of one value follow each other, so the last user tells whether it stands there already.
    const UserList& known = users_[o.value];
    if (known.count && user_array(o)[known.count - 1] == id.value) continue;
    append_user(o, id);
  }
}

void Module::append_user(InstId of, InstId user) const {
  UserList& list = users_[of.value];
  if (list.count == list.capacity) {
    uint32_t offset = static_cast<uint32_t>(user_pool_.size());
    user_pool_.resize(user_pool_.size() + list.capacity * 2);
    const uint32_t* old = user_array(of);
    std::copy(old, old + list.count, user_pool_.begin() + offset);
    list.capacity *= 2;
    list.offset = offset;
  }
  if (auto indexed = user_index_.find(of); indexed != user_index_.end()) indexed->second[user] = list.count;
  user_array(of)[list.count++] = user.value;
}

// A root of ten thousands of results is searched for one operand over and over: its operands by value, for one such
// instruction at a time.
std::unordered_map<InstId, std::vector<uint32_t>>* Module::places_in(InstId user) {
  constexpr size_t kWide = 64;
  auto list = operands(user);
  if (list.size() < kWide) return nullptr;
  if (wide_user_ != user) {
    wide_user_ = user;
    wide_places_.clear();
    for (size_t k = 0; k < list.size(); ++k) wide_places_[list[k]].push_back(static_cast<uint32_t>(k));
  }
  return &wide_places_;
}

bool Module::uses(InstId user, InstId value, size_t except) {
  if (auto* places = places_in(user)) {
    auto at = places->find(value);
    return at != places->end() && (at->second.size() > 1 || at->second[0] != except);
  }
  auto list = operands(user);
  for (size_t i = 0; i < list.size(); ++i)
    if (i != except && list[i] == value) return true;
  return false;
}

void Module::add_user(InstId of, InstId user) const { append_user(of, user); }

void Module::remove_user(InstId of, InstId user) {
  UserList& list = users_[of.value];
  uint32_t* data = user_array(of);
  uint32_t at = list.count;
  if (list.count > 32) {
    auto& index = user_index_[of];
    if (index.empty())
      for (uint32_t i = 0; i < list.count; ++i) index[InstId(data[i])] = i;
    auto found = index.find(user);
    HLO_CHECK(found != index.end(), "no user to remove");
    at = found->second;
    index.erase(found);
    if (at + 1 != list.count) index[InstId(data[list.count - 1])] = at;
  } else {
    user_index_.erase(of);
    for (at = 0; at < list.count && data[at] != user.value;) ++at;
    HLO_CHECK(at < list.count, "no user to remove");
  }
  data[at] = data[--list.count];
}

bool Module::order_users(InstId id, std::span<const InstId> wanted) {
  std::vector<InstId> now = users_copy(id), sorted(wanted.begin(), wanted.end());
  std::sort(now.begin(), now.end());
  std::sort(sorted.begin(), sorted.end());
  if (now != sorted) return false;
  uint32_t* data = user_array(id);
  for (size_t k = 0; k < wanted.size(); ++k) data[k] = wanted[k].value;
  user_index_.erase(id);  // made again when one is removed
  return true;
}

size_t Module::use_count(InstId id) const {
  size_t n = 0;
  for (InstId user : users(id))
    for (InstId o : operands(user)) n += o == id;
  return n;
}

// --- control ---

std::span<const InstId> Module::control_list(const ControlLists& lists, InstId id) {
  auto found = lists.find(id);
  return found == lists.end() ? std::span<const InstId>() : found->second;
}
void Module::add_control(InstId before, InstId after) {
  auto& list = preds_[after];
  if (std::find(list.begin(), list.end(), before) != list.end()) return;
  list.push_back(before);
  succs_[before].push_back(after);
  touch(after), touch(before);
}
void Module::drop_control(InstId id) {
  if (preds_.empty() && succs_.empty()) return;
  if (auto found = preds_.find(id); found != preds_.end()) {
    for (InstId p : found->second) {
      std::erase(succs_[p], id);
      if (succs_[p].empty()) succs_.erase(p);
    }
    preds_.erase(found);
    touch(id);
  }
  if (auto found = succs_.find(id); found != succs_.end()) {
    for (InstId s : found->second) {
      std::erase(preds_[s], id);
      touch(s);
      if (preds_[s].empty()) preds_.erase(s);
    }
    succs_.erase(found);
    touch(id);
  }
}

}  // namespace hlo
