// Hash-consing stores: append-only, ids in first-seen order, references stay valid.
#pragma once
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "ir/base/hash.h"
#include "ir/base/ids.h"

namespace hlo {

// Open-addressing table of indices; the owner says how to compare.
class IndexTable {
 public:
  static constexpr uint32_t kEmpty = 0xFFFFFFFFu;

  template <class Equal>
  uint32_t find(uint64_t hash, Equal&& equal) const {
    if (slots_.empty()) return kEmpty;
    size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.index == kEmpty) return kEmpty;
      if (slot.tag == tag(hash) && equal(slot.index)) return slot.index;
    }
  }

  // The hash of an existing index is needed when the table grows.
  template <class HashOf>
  void insert(uint64_t hash, uint32_t index, HashOf&& hash_of) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow(hash_of);
    place(hash, index);
    ++count_;
  }

  size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    uint32_t index = kEmpty;
    uint32_t tag = 0;
  };
  static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  void place(uint64_t hash, uint32_t index) {
    size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].index != kEmpty) at = (at + 1) & mask;
    slots_[at] = {index, tag(hash)};
  }
  template <class HashOf>
  void grow(HashOf&& hash_of) {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 64 : old.size() * 2, Slot{});
    for (const Slot& slot : old)
      if (slot.index != kEmpty) place(hash_of(slot.index), slot.index);
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

// Strings by content. Views stay valid as long as the interner lives.
class StringInterner {
 public:
  StrId intern(std::string_view text) {
    uint64_t hash = hash_bytes(text);
    uint32_t found = table_.find(hash, [&](uint32_t i) { return view(i) == text; });
    if (found != IndexTable::kEmpty) return StrId(found);
    uint32_t index = static_cast<uint32_t>(entries_.size());
    entries_.push_back({store(text), static_cast<uint32_t>(text.size())});
    table_.insert(hash, index, [&](uint32_t i) { return hash_bytes(view(i)); });
    return StrId(index);
  }
  // The id of a string already known; invalid otherwise.
  StrId find(std::string_view text) const {
    uint32_t found = table_.find(hash_bytes(text), [&](uint32_t i) { return view(i) == text; });
    return found == IndexTable::kEmpty ? StrId() : StrId(found);
  }
  std::string_view operator[](StrId id) const { return view(id.value); }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    const char* data;
    uint32_t size;
  } __attribute__((packed, aligned(4)));
  std::string_view view(uint32_t i) const { return {entries_[i].data, entries_[i].size}; }
  const char* store(std::string_view text) {
    constexpr size_t kBlock = 1 << 16;
    if (text.size() > kBlock / 4) {
      blocks_.push_back(std::make_unique<char[]>(text.size()));
      std::memcpy(blocks_.back().get(), text.data(), text.size());
      return blocks_.back().get();
    }
    if (left_ < text.size()) {
      blocks_.push_back(std::make_unique<char[]>(kBlock));
      at_ = blocks_.back().get();
      left_ = kBlock;
    }
    char* place = at_;
    if (!text.empty()) std::memcpy(place, text.data(), text.size());
    at_ += text.size();
    left_ -= text.size();
    return place;
  }

  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  size_t left_ = 0;
  IndexTable table_;
};

// Values of any type by a key of bytes that the caller serialises (equal key ⇔ equal value).
template <class T, class IdType>
class KeyedInterner {
 public:
  template <class Make>
  IdType intern(std::string_view key, Make&& make) {
    StrId id = keys_.intern(key);
    if (id.value == values_.size()) values_.push_back(make());
    return IdType(id.value);
  }
  const T& operator[](IdType id) const { return values_[id.value]; }
  size_t size() const { return values_.size(); }

 private:
  StringInterner keys_;
  std::deque<T> values_;
};

// Trivially copyable values without padding, by their bytes.
template <class T, class IdType>
class PodInterner {
 public:
  IdType intern(const T& value) {
    uint64_t hash = hash_of(value);
    uint32_t found = table_.find(hash, [&](uint32_t i) { return !std::memcmp(&values_[i], &value, sizeof(T)); });
    if (found != IndexTable::kEmpty) return IdType(found);
    uint32_t index = static_cast<uint32_t>(values_.size());
    values_.push_back(value);
    table_.insert(hash, index, [&](uint32_t i) { return hash_of(values_[i]); });
    return IdType(index);
  }
  const T& operator[](IdType id) const { return values_[id.value]; }
  size_t size() const { return values_.size(); }

 private:
  static uint64_t hash_of(const T& value) { return hash_bytes(reinterpret_cast<const char*>(&value), sizeof(T)); }
  std::vector<T> values_;
  IndexTable table_;
};

}  // namespace hlo
