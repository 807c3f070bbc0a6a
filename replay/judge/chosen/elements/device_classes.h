// Which devices have the same value of an expression.
#pragma once
#include <map>
#include <vector>

#include "replay/judge/chosen/elements/messages.h"

namespace hlo {

// Classes of devices: each is known by the first of its devices. Number 0: all devices have one value. All expressions
// of one Expressions, as far as the devices' programs are one program.
class DeviceClasses {
 public:
  explicit DeviceClasses(const Expressions& all) : all_(all) {}
  static constexpr uint32_t kAll = 0;

  // How many devices the stages run on, from now on; at first one. It may only grow, from one.
  void set_devices(int64_t count);
  int64_t devices() const { return devices_; }
  // By device, the first one that has the same value.
  const std::vector<uint32_t>& first_of(ExprId e) { return classes_[of(e)]; }
  int64_t first_of(ExprId e, int64_t device) { return devices_ == 1 ? 0 : first_of(e)[static_cast<size_t>(device)]; }
  uint32_t of(ExprId e);
  // The same where both are.
  uint32_t both(uint32_t a, uint32_t b);
  uint32_t each();  // no two devices have the same

 private:
  uint32_t made(const Expr& x);
  uint32_t sent(const Expr& x);
  uint32_t parameter(const Expr& x);
  template <class Key>
  uint32_t by_key(const std::vector<Key>& keys);  // by device
  uint32_t number(std::vector<uint32_t> first_of);

  const Expressions& all_;
  int64_t devices_ = 1;
  std::vector<uint32_t> of_;  // by ExprId, those that were asked for
  std::vector<std::vector<uint32_t>> classes_{{0}};
  std::map<std::vector<uint32_t>, uint32_t> numbers_;
};

}  // namespace hlo
