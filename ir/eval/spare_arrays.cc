#include "ir/eval/spare_arrays.h"

#include <cstring>
#include <mutex>
#include <new>

#include "ir/base/parallel.h"

namespace hlo {
namespace {

using Storage = std::vector<char>;

// The allocator keeps smaller ones, and gives larger ones back to the system when they lie at the end of the heap.
constexpr size_t kLargeStorage = size_t{32} << 20;
constexpr size_t kMostSpare = size_t{1} << (sizeof(size_t) < 8 ? 27 : 30);

class Spares {
 public:
  // One of that size, or a little larger; null where there is none. Then as much is given up as the new one takes: what
  // is in use and what is spare are never more together than was in use at once.
  std::unique_ptr<Storage> take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (size_t k = list_.size(); k-- > 0;) {
      const size_t has = list_[k]->capacity();
      if (has < bytes || has - bytes > bytes / 8) continue;
      std::unique_ptr<Storage> out = std::move(list_[k]);
      list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(k));
      bytes_ -= has;
      return out;
    }
    give_up(bytes);
    return nullptr;
  }
  void give(std::unique_ptr<Storage> one) {
    const std::lock_guard lock(mutex_);
    const size_t has = one->capacity();
    if (keepers_ == 0 || has < kLargeStorage || has > kMostSpare) return;
    if (bytes_ + has > kMostSpare) give_up(bytes_ + has - kMostSpare);
    bytes_ += has;
    try {
      list_.push_back(std::move(one));
    } catch (const std::bad_alloc&) {
      bytes_ -= has;
    }
  }
  size_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  void keep(int more) {
    const std::lock_guard lock(mutex_);
    keepers_ += more;
    if (keepers_ == 0) list_.clear(), bytes_ = 0;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    list_.clear(), bytes_ = 0;
  }

 private:
  // The oldest first.
  void give_up(size_t bytes) {
    size_t gone = 0, count = 0;
    for (; count < list_.size() && gone < bytes; ++count) gone += list_[count]->capacity();
    list_.erase(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(count));
    bytes_ -= gone;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Storage>> list_;
  size_t bytes_ = 0;
  int keepers_ = 0;
};

// Never destroyed: arrays may outlive everything else.
Spares& spare_arrays() {
  static Spares* const all = new Spares;
  return *all;
}

void fill_with_zeros(Storage& to) {
  constexpr int64_t kPart = int64_t{4} << 20;
  parallel_ranges(static_cast<int64_t>(to.size()), kPart, [&](int64_t from, int64_t end) {
    std::memset(to.data() + from, 0, static_cast<size_t>(end - from));
  });
}

}  // namespace

KeepsSpareArrays::KeepsSpareArrays() { spare_arrays().keep(1); }
KeepsSpareArrays::~KeepsSpareArrays() { spare_arrays().keep(-1); }

std::shared_ptr<Storage> array_storage(size_t bytes, bool zero) {
  if (bytes < kLargeStorage) return std::make_shared<Storage>(bytes);
  std::unique_ptr<Storage> out = spare_arrays().take(bytes);
  if (out) {
    out->resize(bytes);  // what is beyond its size is zero then
    if (zero) fill_with_zeros(*out);
  } else {
    try {
      out = std::make_unique<Storage>(bytes);
    } catch (const std::bad_alloc&) {
      spare_arrays().clear();
      out = std::make_unique<Storage>(bytes);
    }
  }
  return {out.release(), [](Storage* one) { spare_arrays().give(std::unique_ptr<Storage>(one)); }};
}

size_t spare_array_bytes() { return spare_arrays().bytes(); }

}  // namespace hlo
