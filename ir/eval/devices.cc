#include "ir/eval/devices.h"

#include <algorithm>

#include "ir/base/check.h"

namespace hlo {

thread_local std::unique_lock<std::mutex>* DeviceGrid::turn_ = nullptr;

void DeviceGrid::wait(const std::function<bool()>& ready, const std::string& what) {
  if (ready()) return;
  waiters_.push_back(&ready);
  auto leave = [&] { std::erase(waiters_, &ready); };
  while (!ready() && !failed_) {
    // Nobody runs and nobody can go on.
    if (static_cast<int64_t>(waiters_.size()) == alive_ &&
        std::none_of(waiters_.begin(), waiters_.end(), [](const auto* w) { return (*w)(); })) {
      leave();
      failed_ = true;
      changed_.notify_all();
      fail(FailureKind::kInvalid, "{} waits for devices that never come: the devices' programs do not fit together",
           what);
    }
    changed_.wait(*turn_);
  }
  leave();
  if (!ready()) throw Forsaken();
}

std::shared_ptr<const std::vector<std::vector<Value>>> DeviceGrid::rendezvous(const std::string& key, int64_t device,
                                                                              const std::vector<int64_t>& members,
                                                                              std::vector<Value> brought,
                                                                              const std::string& what) {
  size_t me = static_cast<size_t>(std::find(members.begin(), members.end(), device) - members.begin());
  HLO_CHECK(me < members.size(), "device {} is not in the group that it asks for", device);
  int64_t round = rounds_[{key, device}]++;
  auto [at, fresh] = rendezvous_.try_emplace({key, round});
  Rendezvous& here = at->second;
  if (fresh) {
    here.brought = std::make_shared<std::vector<std::vector<Value>>>(members.size());
    here.missing = members.size();
  }
  (*here.brought)[me] = std::move(brought);
  auto all = here.brought;
  if (--here.missing == 0) {
    // Those who wait hold the list; the rendezvous itself is over.
    rendezvous_.erase(at);
    changed_.notify_all();
    return all;
  }
  wait([&] { return !rendezvous_.contains({key, round}); }, what);
  return all;
}

void DeviceGrid::send(int64_t channel, int64_t to, Value value) {
  mail_[{channel, to}].push_back(std::move(value));
  changed_.notify_all();
}

Value DeviceGrid::receive(int64_t channel, int64_t device, const std::string& what) {
  auto& box = mail_[{channel, device}];
  wait([&] { return !box.empty(); }, what);
  Value v = std::move(box.front());
  box.erase(box.begin());
  return v;
}

}  // namespace hlo
