// Which copies can go because what they copy and what they make can lie in one buffer (xla/service/copy_removal.h).
#pragma once
#include <unordered_map>
#include <vector>

#include "ir/analysis/dataflow/buffers.h"
#include "ir/analysis/dataflow/ordering.h"

namespace hlo {

// Of a module that changes only as asked here, after each yes: the copy's users read what it copied, and its control
// dependencies are gone.
class CopyRemover {
 public:
  CopyRemover(const Dataflow& flow, const SharedBuffers& buffers, const Ordering& order);
  // Yes: both buffers count as one from here on.
  bool try_remove(InstId copy);
  // So much was compared that every further answer is no: of values with a hundred thousand uses and copies each.
  bool gave_up() const { return left_ <= 0; }

 private:
  // Values of one buffer in the order in which they are written, in a ring; by value.
  struct Node {
    ValueId next = kNone, previous = kNone;
    std::vector<ValueUse> uses;
  };
  struct Copied {
    ValueId from, to;
  };
  static constexpr ValueId kNone = UINT32_MAX;

  void number_instructions();
  void list(std::vector<ValueId> values);
  bool earlier(ValueId a, ValueId b) const;
  bool is_head(ValueId v) const { return head_[v]; }
  bool is_tail(ValueId v) const { return head_[nodes_[v].next]; }
  ValueId next(ValueId v) const { return is_tail(v) ? kNone : nodes_[v].next; }
  ValueId previous(ValueId v) const { return is_head(v) ? kNone : nodes_[v].previous; }
  bool ends_before(ValueId a, ValueId b) const;
  bool all_end_before(ValueId last, ValueId first) const;
  bool same_ring(const Copied& c) const;
  bool scatter_reads_twice(const Copied& c) const;
  void splice(ValueId head, ValueId after);
  void remove(ValueId copy);

  static constexpr int64_t kUseCost = 16;  // of a use that is ordered against a value, in uses that are only looked at
  const Module& m_;
  const Dataflow& flow_;
  const Ordering& order_;
  std::vector<uint32_t> number_;  // of instructions: callees before their callers, else as they are needed
  std::vector<Node> nodes_;
  std::vector<bool> head_;
  std::unordered_map<InstId, Copied> copies_;
  mutable int64_t left_ = int64_t{1} << 29;  // uses that may be looked at: a second or so
};

}  // namespace hlo
