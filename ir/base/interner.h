// Hash-consing stores: append-only, ids in first-seen order, references stay valid.
#pragma once
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/hash.h"
#include "ir/base/huge.h"
#include "ir/base/ids.h"

namespace hlo {

// Open-addressing table of indices; the owner says how to compare. Slots keep 32 bits of the hash, which is all that
// growing needs, so that no key is read again.
class IndexTable {
 public:
  static constexpr uint32_t kEmpty = 0xFFFFFFFFu;

  template <class Equal>
  uint32_t find(uint64_t hash, Equal&& equal) const {
    if (slots_.empty()) return kEmpty;
    size_t mask = slots_.size() - 1;
    uint32_t tag = fold(hash);
    for (size_t at = tag & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.index == kEmpty) return kEmpty;
      if (slot.tag == tag && equal(slot.index)) return slot.index;
    }
  }
  void insert(uint64_t hash, uint32_t index) {
    if ((count_ + 1) * 4 > slots_.size() * 3) resize(slots_.empty() ? 64 : slots_.size() * 2);
    place(fold(hash), index);
    ++count_;
  }
  void reserve(size_t count) {
    size_t size = 64;
    while (size * 3 < count * 4) size *= 2;
    if (size > slots_.size()) resize(size);
  }

 private:
  struct Slot {
    uint32_t index = kEmpty;
    uint32_t tag = 0;
  };
  static uint32_t fold(uint64_t hash) { return static_cast<uint32_t>(hash ^ (hash >> 32)); }
  void place(uint32_t tag, uint32_t index) {
    size_t mask = slots_.size() - 1;
    size_t at = tag & mask;
    while (slots_[at].index != kEmpty) at = (at + 1) & mask;
    slots_[at] = {index, tag};
  }
  void resize(size_t size) {
    HugeVector<Slot> old = std::move(slots_);
    slots_.assign(size, Slot{});
    for (const Slot& slot : old)
      if (slot.index != kEmpty) place(slot.tag, slot.index);
  }

  HugeVector<Slot> slots_;
  size_t count_ = 0;
};

// Bytes that stay where they are as long as it, or a copy of it, lives. Copies share what is there by then.
class TextStore {
 public:
  TextStore() = default;
  TextStore(const TextStore& other) : blocks_(other.blocks_) {}
  TextStore& operator=(const TextStore& other) {
    if (this != &other) blocks_ = other.blocks_, at_ = nullptr, left_ = 0;
    return *this;
  }

  const char* add(std::string_view text) {
    if (left_ < text.size()) {
      const bool large = text.size() > kBlock / 4;  // gets a block of its own
      blocks_.emplace_back(std::make_unique_for_overwrite<char[]>(large ? text.size() : kBlock));
      char* fresh = blocks_.back().get();
      if (large) return static_cast<const char*>(std::memcpy(fresh, text.data(), text.size()));
      at_ = fresh, left_ = kBlock;
    }
    char* place = at_;
    if (!text.empty()) std::memcpy(place, text.data(), text.size());
    at_ += text.size();
    left_ -= text.size();
    return place;
  }

 private:
  static constexpr size_t kBlock = 1 << 16;
  std::vector<std::shared_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  size_t left_ = 0;
};

// Strings by content. Views stay valid as long as the interner, or a copy of it, lives.
class StringInterner {
 public:
  StrId intern(std::string_view text) {
    if (Numbered n; numbered(text, &n)) {
      Root& root = roots_[root_of(text.substr(0, n.dot))];
      if (uint32_t* slot = root.place(n.number)) {
        // A number that was too far away once may lie in the general table.
        if (*slot == IndexTable::kEmpty) *slot = root.overflow ? general(text) : append(text);
        return StrId(*slot);
      }
      root.overflow = true;
    }
    return StrId(general(text));
  }
  // Room for that many more strings.
  void reserve(size_t more) {
    // What was asked for lately pays in large texts only.
    if (more > 4096 && recent_.empty()) recent_.assign(kRecent, IndexTable::kEmpty);
    entries_.reserve(entries_.size() + more);
    table_.reserve(entries_.size() / 4 + more / 4);
  }
  // The id of a string already known; invalid otherwise.
  StrId find(std::string_view text) const {
    if (Numbered n; numbered(text, &n)) {
      std::string_view name = text.substr(0, n.dot);
      uint32_t r = root_table_.find(hash_bytes(name), [&](uint32_t i) { return same_text(roots_[i].name, name); });
      if (r == IndexTable::kEmpty) return StrId();
      const Root& root = roots_[r];
      uint32_t at = n.number - root.base;  // wraps to far away below the base
      if (root.ids.empty() && at == 0) return StrId(root.only);
      if (at < root.ids.size() && root.ids[at] != IndexTable::kEmpty) return StrId(root.ids[at]);
      if (!root.overflow) return StrId();
    }
    uint64_t hash = hash_bytes(text);
    if (uint32_t near = recent(hash, text); near != IndexTable::kEmpty) return StrId(near);
    uint32_t found = table_.find(hash, [&](uint32_t i) { return same_text(view(i), text); });
    return found == IndexTable::kEmpty ? StrId() : StrId(found);
  }
  std::string_view operator[](StrId id) const { return view(id.value); }
  size_t size() const { return entries_.size(); }

 private:
  // Most names are `root.number`, numbers nearly dense: those are found by an array a root, without hashing the whole
  // name and without touching its text.
  struct Numbered {
    size_t dot = 0;
    uint32_t number = 0;
  };
  static bool numbered(std::string_view text, Numbered* out) {
    size_t at = text.size();
    uint32_t number = 0, scale = 1;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') {
      if (text.size() - at == 7) return false;
      number += static_cast<uint32_t>(text[--at] - '0') * scale;
      scale *= 10;
    }
    // One spelling a number: no digits, a leading zero and no root in front are for the general table.
    if (at == text.size() || at < 2 || text[at - 1] != '.' || (text[at] == '0' && at + 1 != text.size())) return false;
    *out = {at - 1, number};
    return true;
  }
  struct Root {
    std::string_view name;               // in the store
    uint32_t base = 0;                   // number of ids[0], or of `only`
    uint32_t only = IndexTable::kEmpty;  // while there is one number: names that got a `.0` have no other
    std::vector<uint32_t> ids;           // most roots have few numbers, close together
    bool overflow = false;

    // Where the number's id stands, or is to stand; null where that is a large hole away from the others.
    uint32_t* place(uint32_t number) {
      if (ids.empty()) {
        if (only == IndexTable::kEmpty) base = number;
        if (number == base) return &only;
        ids.reserve(6);  // what the smallest block has room for
        ids.push_back(only);
      }
      return number - base < ids.size() || reach(number) ? &ids[number - base] : nullptr;
    }
    // Does the array hold the number, or can it grow to?
    bool reach(uint32_t number) {
      size_t size = ids.size(), gap = size * 2 + kGap;
      if (number >= base) {
        size_t at = number - base;
        if (at < size) return true;
        if (at >= size + gap) return false;
        ids.resize(std::max(at + 1, size * 2), IndexTable::kEmpty);
        return true;
      }
      if (base - number > gap) return false;
      size_t more = std::min<size_t>(base, std::max<size_t>(base - number, size));
      ids.insert(ids.begin(), more, IndexTable::kEmpty);
      base -= static_cast<uint32_t>(more);
      return true;
    }
  };
  static constexpr size_t kGap = 256;
  uint32_t root_of(std::string_view name) {
    uint64_t hash = hash_bytes(name);
    uint32_t found = root_table_.find(hash, [&](uint32_t i) { return same_text(roots_[i].name, name); });
    if (found != IndexTable::kEmpty) return found;
    found = static_cast<uint32_t>(roots_.size());
    roots_.emplace_back().name = {texts_.add(name), name.size()};
    root_table_.insert(hash, found);
    return found;
  }
  uint32_t append(std::string_view text) {
    entries_.push_back({texts_.add(text), static_cast<uint32_t>(text.size())});
    return static_cast<uint32_t>(entries_.size() - 1);
  }
  uint32_t general(std::string_view text) {
    uint64_t hash = hash_bytes(text);
    if (uint32_t near = recent(hash, text); near != IndexTable::kEmpty) return near;
    uint32_t found = table_.find(hash, [&](uint32_t i) { return same_text(view(i), text); });
    if (found == IndexTable::kEmpty) {
      found = append(text);
      table_.insert(hash, found);
    }
    if (!recent_.empty()) recent_[hash % kRecent] = found;
    return found;
  }
  struct Entry {
    const char* data;
    uint32_t size;
  } __attribute__((packed, aligned(4)));
  // What was asked for lately, by hash: operands mostly stand close to their definition, and this stays in the cache.
  static constexpr size_t kRecent = 65536;
  uint32_t recent(uint64_t hash, std::string_view text) const {
    if (recent_.empty()) return IndexTable::kEmpty;
    uint32_t i = recent_[hash % kRecent];
    return i < entries_.size() && same_text(view(i), text) ? i : IndexTable::kEmpty;
  }
  std::string_view view(uint32_t i) const { return {entries_[i].data, entries_[i].size}; }

  HugeVector<Entry> entries_;
  std::vector<uint32_t> recent_;
  TextStore texts_;
  IndexTable table_, root_table_;
  std::vector<Root> roots_;
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
    table_.insert(hash, index);
    return IdType(index);
  }
  const T& operator[](IdType id) const { return values_[id.value]; }
  size_t size() const { return values_.size(); }
  void reserve(size_t more) {
    values_.reserve(values_.size() + more);
    table_.reserve(values_.size() + more);
  }

 private:
  static uint64_t hash_of(const T& value) { return hash_bytes(reinterpret_cast<const char*>(&value), sizeof(T)); }
  HugeVector<T> values_;
  IndexTable table_;
};

}  // namespace hlo
