// How much memory a computation needs while its instructions are placed one after the other, and how that changes when
// one of them is computed again (MemoryUsageTracker of xla/hlo/transforms/simplifiers/hlo_rematerialization.cc).
#pragma once
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/analysis/dataflow/points_to.h"

namespace hlo {

using ItemId = uint32_t;
constexpr ItemId kNoItem = UINT32_MAX;

class RematMemory {
 public:
  // An operand of an instruction that reads a buffer; `element`: the buffer is that element of a tuple, else -1.
  struct Use {
    ItemId user;
    uint32_t operand;
    int64_t element;
    bool operator==(const Use&) const = default;
  };
  // `points`: of the module before anything in this computation was computed again.
  RematMemory(const Module& m, CompId c, const PointsTo& points);

  // --- the order ---
  ItemId first() const { return next_of_head_; }
  ItemId next(ItemId item) const { return items_[item].next; }
  InstId inst(ItemId item) const { return items_[item].inst; }
  ItemId item(InstId i) const { return item_of_[i.value]; }
  bool placed(InstId i) const { return items_[item(i)].placed; }
  // Of a new instruction, which is nowhere in the order yet.
  ItemId add_item(InstId i);
  // In front of the first of them.
  void insert_before(ItemId item, const std::vector<ItemId>& places);
  void deny(InstId i);
  std::vector<InstId> order() const;

  // --- bytes ---
  // An instruction is placed in two steps: its results are made, then what nobody reads any more is given up.
  void begin(ItemId item);
  void end();
  int64_t usage() const { return usage_; }
  // Of what it makes; arguments and results of the computation are their owner's.
  int64_t bytes_made(ItemId item) const;

  struct Candidate {
    ItemId item = kNoItem;
    int64_t bytes = 0;  // less if it is computed again
  };
  // The placed instruction with which the most is won, or that can just move down, as its readers are all to come;
  // nothing where no bytes are won. Of equal ones the first. `limit` by bytes won is what is compared, in whole
  // numbers.
  Candidate best(int64_t limit);

  // Instructions, readers and candidates looked at so far, those of the caller included.
  int64_t work() const { return work_; }
  void worked(size_t steps) { work_ += static_cast<int64_t>(steps); }

  // Every reader of what the instruction makes, in XLA's order.
  std::vector<Use> uses(ItemId item) const;
  // `again` is a copy of `item`, read by those users of it that were not placed; `relays`: elements and bitcasts of it
  // that were made for them, operands first.
  void computed_again(ItemId item, ItemId again, const std::vector<ItemId>& relays);

 private:
  struct Item {
    InstId inst;
    bool placed = false, denied = false, may = false;  // may be computed again
    ItemId before = kNoItem, next = kNoItem;
    int64_t label = 0;                                       // grows along the order
    uint32_t number = 0;                                     // of its placing
    std::vector<uint32_t> made = {}, used = {}, given = {};  // buffers; given: those of its result
  };
  struct Buffer {
    ItemId maker;
    int64_t size;
    size_t depth;         // within tuples
    int64_t element;      // at depth 1
    bool stays, relayed;  // result of the computation; read as a part of something else
    std::vector<Use> uses;
    int64_t readers_left = 0;
  };
  void take_buffers(CompId c, const PointsTo& points);
  void take_loop_state(InstId loop, BufferId id, const PointsTo& points);
  std::vector<Use> readers(BufferId id, const PointsTo& points, bool* relayed) const;
  // Which element of its instruction's tuple it is; -1: none.
  int64_t element_at(const PointsTo& points, const LogicalBuffer& buffer) const;
  bool reads_nothing(InstId of, uint32_t node, InstId user) const;
  uint32_t add_buffer(Buffer b);
  int64_t size(const Buffer& b) const;
  bool live(const Buffer& b) const { return items_[b.maker].placed && b.readers_left > 0; }
  bool in_use(uint32_t buffer) const;
  void one_reader_less(Buffer& b);
  void one_reader_more(uint32_t buffer);
  void remember(ItemId item);
  int64_t bytes_won(ItemId item) const;
  bool only_moves(ItemId item) const;
  void update_relay(ItemId relay);
  void link(ItemId item, ItemId before);
  void relabel();

  const Module& m_;
  std::vector<ItemId> item_of_;  // by instruction
  std::vector<Item> items_;
  ItemId next_of_head_ = kNoItem;
  std::vector<Buffer> buffers_;
  std::unordered_map<BufferId, uint32_t> buffer_of_;
  std::unordered_map<BufferId, std::vector<std::pair<InstId, uint32_t>>> aliases_;
  // Of a user and what it reads, packed: its operands that are it. Of the module as it was.
  std::unordered_map<uint64_t, std::vector<uint32_t>> places_;
  ItemId current_ = kNoItem;
  int64_t usage_ = 0;
  uint32_t placed_ = 0;
  int64_t work_ = 0;
  std::set<std::pair<uint32_t, ItemId>> alive_;  // of those placed that something may still be won by, by number
};

}  // namespace hlo
