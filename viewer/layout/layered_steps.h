// The steps of lay_out_level, in their order; within viewer/layout/layered*.cc alone.
#pragma once
#include <cstdint>
#include <vector>

#include "viewer/layout/layered.h"

namespace hlo {

struct Layering {
  // From a node or a way to one of the next layer.
  struct Link {
    uint32_t from, to;
    float from_at, to_at;  // where it touches, from the left
    float weight;          // how much it wants to be straight
  };
  struct Lists {
    std::vector<uint32_t> start, list;  // links by node
  };
  Level& level;
  std::vector<int32_t> layer;  // of nodes, then of ways
  size_t rows = 0;
  std::vector<Link> links;
  Lists up, down;
  std::vector<uint32_t> way_of, way_end;   // by edge: its first way, and behind its value's last one so far
  std::vector<std::vector<uint32_t>> row;  // from left to right
  std::vector<uint32_t> at;                // place in its row
  std::vector<float> x, row_y, row_h;      // left

  explicit Layering(Level& l) : level(l) {}
  float width(uint32_t v) const;
  float apart(uint32_t left, uint32_t right) const;  // least distance of their lefts
  void layers();
  void squeeze();
  void ways();
  void order();
  void places();
  void touches();
  void place_rows();
  void routes();
  uint64_t crossings() const;

 private:
  void first_order();
  bool sweep(bool downwards);
  // Of settle: neighbours that touch, by the first of them; how far each stands from the first of its row.
  struct Block {
    double sum, weight;
    size_t begin;
  };
  std::vector<Block> blocks;
  std::vector<double> shift;
  void settle(size_t r, const std::vector<float>& wish, const std::vector<float>& weight);
};

}  // namespace hlo
