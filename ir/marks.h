// What a walk over instructions has seen, by id.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "ir/base/ids.h"

namespace hlo {

// A table by instruction that is borrowed for as long as this lives. Bodies of fusions have ids from all over the
// module, and a module may have as many computations as instructions: neither is memory cleared for each who borrows,
// nor made. Entries hold the number of the round that wrote them, from 1 to below kRounds: what earlier ones wrote
// counts as none. They may be nested: each takes a table that no other has at the time.
template <class Entry, uint32_t kRounds>
class BorrowedTable {
 public:
  explicit BorrowedTable(size_t slots) {
    std::vector<Table>& idle = idle_tables();
    if (!idle.empty()) table_ = std::move(idle.back()), idle.pop_back();
    if (++table_.round == kRounds) std::fill(table_.of.begin(), table_.of.end(), 0), table_.round = 1;
    if (table_.of.size() < slots) table_.of.resize(slots, 0);
  }
  ~BorrowedTable() { idle_tables().push_back(std::move(table_)); }
  BorrowedTable(const BorrowedTable&) = delete;
  BorrowedTable& operator=(const BorrowedTable&) = delete;

  std::vector<Entry>& of() { return table_.of; }
  const std::vector<Entry>& of() const { return table_.of; }
  uint32_t round() const { return table_.round; }

 private:
  struct Table {
    std::vector<Entry> of;
    uint32_t round = 0;
  };
  static std::vector<Table>& idle_tables() {
    thread_local std::vector<Table> idle;
    return idle;
  }
  Table table_;
};

// Three bits an instruction, all of them 0 when a walk begins.
class Marks {
 public:
  explicit Marks(size_t slots) : table_(slots) {}

  uint32_t operator[](InstId i) const { return i.value < table_.of().size() ? own(table_.of()[i.value]) & 7 : 0; }
  // Of instructions that were made since the walk began as well.
  void set(InstId i, uint32_t bits) {
    std::vector<uint32_t>& of = table_.of();
    if (i.value >= of.size()) of.resize(std::max<size_t>(i.value + 1, of.size() * 2), 0);
    of[i.value] = table_.round() << 3 | bits;
  }
  void add(InstId i, uint32_t bits) { set(i, (*this)[i] | bits); }

 private:
  uint32_t own(uint32_t mark) const { return mark >> 3 == table_.round() ? mark : 0; }
  BorrowedTable<uint32_t, 1U << 29> table_;  // the round and the bits
};

// Numbers of some of a module's instructions, as a map that is not hashed: of those of one computation, say.
class InstNumbers {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  explicit InstNumbers(size_t slots) : table_(slots) {}

  // kNone where it has none. It is one of those that were there when this was made.
  uint32_t operator[](InstId i) const {
    const uint64_t at = table_.of()[i.value];
    return at >> 32 == table_.round() ? static_cast<uint32_t>(at) : kNone;
  }
  void set(InstId i, uint32_t number) { table_.of()[i.value] = static_cast<uint64_t>(table_.round()) << 32 | number; }

 private:
  BorrowedTable<uint64_t, UINT32_MAX> table_;  // the round and the number
};

}  // namespace hlo
