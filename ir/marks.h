// What a walk over instructions has seen, by id.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "ir/base/ids.h"

namespace hlo {

// Three bits an instruction, all of them 0 when a walk begins. Bodies of fusions have ids from all over the module, and
// a module may have as many computations as instructions: neither is memory cleared for each walk, nor made. Walks may
// be nested: each takes marks that no other has at the time.
class Marks {
 public:
  explicit Marks(size_t slots) {
    std::vector<Table>& idle = idle_tables();
    if (!idle.empty()) table_ = std::move(idle.back()), idle.pop_back();
    if (++table_.round == kMostRounds) std::fill(table_.of.begin(), table_.of.end(), 0), table_.round = 1;
    if (table_.of.size() < slots) table_.of.resize(slots, 0);
  }
  ~Marks() { idle_tables().push_back(std::move(table_)); }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  uint32_t operator[](InstId i) const { return i.value < table_.of.size() ? own(table_.of[i.value]) & 7 : 0; }
  // Of instructions that were made since the walk began as well.
  void set(InstId i, uint32_t bits) {
    if (i.value >= table_.of.size()) table_.of.resize(std::max<size_t>(i.value + 1, table_.of.size() * 2), 0);
    table_.of[i.value] = table_.round << 3 | bits;
  }
  void add(InstId i, uint32_t bits) { set(i, (*this)[i] | bits); }

 private:
  static constexpr uint32_t kMostRounds = 1u << 29;
  struct Table {
    std::vector<uint32_t> of;  // the walk's number and its bits
    uint32_t round = 0;
  };
  static std::vector<Table>& idle_tables() {
    thread_local std::vector<Table> idle;
    return idle;
  }
  uint32_t own(uint32_t mark) const { return mark >> 3 == table_.round ? mark : 0; }
  Table table_;
};

// Numbers of some of a module's instructions, as a map that is not hashed: of those of one computation, say.
class InstNumbers {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  explicit InstNumbers(size_t slots) {
    std::vector<Table>& idle = idle_tables();
    if (!idle.empty()) table_ = std::move(idle.back()), idle.pop_back();
    if (++table_.round == 0) std::fill(table_.of.begin(), table_.of.end(), 0), table_.round = 1;
    if (table_.of.size() < slots) table_.of.resize(slots, 0);
  }
  ~InstNumbers() { idle_tables().push_back(std::move(table_)); }
  InstNumbers(const InstNumbers&) = delete;
  InstNumbers& operator=(const InstNumbers&) = delete;

  // kNone where it has none. It is one of those that were there when this was made.
  uint32_t operator[](InstId i) const {
    const uint64_t at = table_.of[i.value];
    return at >> 32 == table_.round ? static_cast<uint32_t>(at) : kNone;
  }
  void set(InstId i, uint32_t number) { table_.of[i.value] = static_cast<uint64_t>(table_.round) << 32 | number; }

 private:
  struct Table {
    std::vector<uint64_t> of;  // whose number it is, and the number
    uint32_t round = 0;
  };
  static std::vector<Table>& idle_tables() {
    thread_local std::vector<Table> idle;
    return idle;
  }
  Table table_;
};

}  // namespace hlo
