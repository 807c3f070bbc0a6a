// What is seen of a folding: boxes and edges of what is open, level by level. Within viewer/layout/ alone.
#pragma once
#include <unordered_map>
#include <vector>

#include "viewer/layout/folding.h"
#include "viewer/layout/layered.h"
#include "viewer/layout/layout.h"

namespace hlo {

// By group.
std::vector<bool> open_at_first_sight(const Folding& f, uint32_t top);

struct View {
  static constexpr uint32_t kNone = DrawnBox::kNoBox;
  const Folding& f;
  const Module& m;
  const LayoutOptions& options;
  uint32_t top;
  Drawing out;
  std::vector<bool> open;           // by group
  std::vector<uint32_t> shown_as;   // by group: the box that shows it, or kNone
  std::vector<uint32_t> leaf;       // by InstId: its own box, or kNone
  std::vector<uint32_t> group_box;  // box of each level, by level
  std::vector<uint32_t> level_of;   // by box: its own level where it is open
  std::vector<uint32_t> node_of;    // by box: its node in its parent's level
  std::vector<Level> levels;        // outer ones before inner ones
  std::vector<Mark> strongest;      // by group
  struct Pair {
    uint32_t from, to;
    bool operator==(const Pair&) const = default;
    bool operator<(const Pair& o) const { return from != o.from ? from < o.from : to < o.to; }
  };
  std::vector<Pair> pairs;                          // of boxes, sorted
  std::unordered_map<uint64_t, uint32_t> ports[2];  // by level and value: node where it comes in, where it leaves
  struct Step {
    uint32_t level, edge;
  };
  std::vector<Step> steps;  // of all pairs, from producer to user
  std::vector<uint32_t> step_start = {0};

  View(const Folding& folding, const LayoutOptions& o, uint32_t group)
      : f(folding), m(folding.module()), options(o), top(group) {}
  void choose_open();
  void boxes();
  void marks();
  void find_pairs();
  void level_edges();
  void lay_out();
  void absolute();
  void route();

 private:
  uint32_t add_box(uint32_t parent, FoldItem item);
  uint32_t box_of(InstId i) const;
  InstId maker_of(InstId i) const;  // who makes a value within open calls
  bool opened(uint32_t group) const {
    return open[group] && shown_as[group] != kNone && out.boxes[shown_as[group]].kind == BoxKind::kOpen;
  }
  uint32_t node(uint32_t level, uint32_t value, bool leaving);
  uint32_t edge(uint32_t level, uint32_t from, uint32_t to, uint32_t value);
  void targets(InstId user, size_t operand, std::vector<uint32_t>* to) const;
  std::unordered_map<uint64_t, std::vector<uint32_t>> edges_;
};

}  // namespace hlo
