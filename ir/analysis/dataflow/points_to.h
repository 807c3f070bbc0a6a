// Which arrays in memory each part of an instruction's result is: its logical buffers, without looking into what it
// calls (xla/hlo/analysis/tuple_points_to_analysis.h, logical_buffer_analysis.h). A tuple, an element of one and
// whatever only hands a value on share the buffers of what they read.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace hlo {

using BufferId = uint32_t;

// The parts of a shape by number: the whole is 0, a tuple's elements follow it one after the other, each with its own.
class ShapeNodes {
 public:
  explicit ShapeNodes(const Universe& u) : u_(u) {}
  uint32_t count(ShapeId shape) { return u_[shape].is_tuple() ? of(shape).count : 1; }
  // Of element k of a tuple; k must be below the number of its elements.
  uint32_t child(ShapeId tuple, size_t k) { return of(tuple).children[k]; }
  // How many parts hold no others, in all and in front of element k of a tuple; k may be the number of its elements.
  uint32_t leaves(ShapeId shape) { return leaves_before(shape, u_[shape].elements.size()); }
  uint32_t leaves_before(ShapeId tuple, size_t k) { return of(tuple).leaves[k]; }
  // Of the part of that number among those; UINT32_MAX where it holds others.
  uint32_t leaf(ShapeId shape, uint32_t node) { return of(shape).leaf_numbers[node]; }
  // Of the arrays among its parts.
  int64_t highest_rank(ShapeId shape) { return of(shape).rank; }
  // The shapes of all parts, by number.
  const std::vector<ShapeId>& shapes(ShapeId shape) { return of(shape).shapes; }
  // Of the part at an index; the number of parts where the shape has no such part.
  uint32_t at(ShapeId shape, const Dims& index);

 private:
  struct Entry {
    uint32_t count = 1;
    int64_t rank = 0;
    std::vector<uint32_t> children, leaves, leaf_numbers;
    std::vector<ShapeId> shapes;
  };
  const Entry& of(ShapeId shape);

  const Universe& u_;
  std::vector<std::unique_ptr<Entry>> entries_;  // by shape
};

// The paths of the parts that hold no others, depth first.
std::vector<Dims> leaf_indices(const Universe& u, ShapeId shape);

struct LogicalBuffer {
  InstId inst;    // that defines it
  uint32_t node;  // the part of its result
  ShapeId shape;
};

// Of the computations that are no bodies of fusions. The module must not change while it is asked.
class PointsTo {
 public:
  // `through_bitcasts`: they are the memory that they read, as when it is given out; else of their own.
  explicit PointsTo(const Module& m, bool through_bitcasts = false);

  // The buffers of an instruction's parts, by number of the part; empty within fusions.
  std::span<const BufferId> of(InstId i) const {
    const Range& r = ranges_[i.value];
    return {sets_.data() + r.first, r.count};
  }
  // In XLA's order: computations callees first, in each the instructions as its visitors see them.
  const LogicalBuffer& operator[](BufferId id) const { return buffers_[id]; }
  size_t size() const { return buffers_.size(); }
  // Of the buffers that a computation defines: the first and the one behind the last.
  std::pair<BufferId, BufferId> of(CompId c) const { return computations_[c.value]; }
  // The instructions whose whole result is that array, in the order of memory.
  std::span<const InstId> arrays(BufferId id) const { return arrays_[id]; }
  // Is something of operand n also something of the result?
  bool forwards(InstId user, size_t n) const;
  ShapeNodes& nodes() const { return nodes_; }

 private:
  struct Range {
    size_t first = 0, count = 0;
  };
  void visit(InstId i);
  void define(InstId i, uint32_t node, uint32_t count, ShapeId whole);
  void copy(InstId from, uint32_t node, uint32_t count);
  bool fits(InstId i, uint32_t first, InstId o, uint32_t node, uint32_t count) const;
  void in_parts(InstId i);

  const Module& m_;
  const bool through_bitcasts_;
  mutable ShapeNodes nodes_;
  std::vector<Range> ranges_;
  std::vector<BufferId> sets_;
  std::vector<LogicalBuffer> buffers_;
  std::vector<std::pair<BufferId, BufferId>> computations_;
  std::vector<std::vector<InstId>> arrays_;
};

// The instructions of a computation as XLA's visitors (DfsHloVisitor) see them when it does not change: what nobody
// uses first, then what the root needs; operands from first to last.
std::vector<InstId> accept_order(const Module& m, CompId c);

}  // namespace hlo
