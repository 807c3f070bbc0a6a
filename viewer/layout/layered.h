// One group's inside, laid out in layers from top to bottom (after Sugiyama): layers by the longest path, order within
// layers by barycentres, places by least squares under the order. Near-linear in nodes and edges.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace hlo {

struct LevelNode {
  enum class Pin : uint8_t { kNone, kTop, kBottom };  // where values come in from outside, and where they leave
  float w = 0, h = 0;
  Pin pin = Pin::kNone;
  // Where it was in the layout before, or wanted_layer < 0.
  float wanted_x = 0, wanted_y = 0;
  int32_t wanted_layer = -1;
  float x = 0, y = 0;  // the answer: the upper left corner within the group, from 0
  int32_t layer = 0;
};

struct LevelEdge {
  uint32_t from = 0, to = 0;       // from < to: nodes stand in topological order
  uint32_t value = 0;              // edges of one value share their way
  float from_at = -1, to_at = -1;  // where it touches, from the node's left; negative: where it is best
  bool stub = false;               // the answer: it spans too much to be routed
  std::vector<float> points;       // the answer: x, y pairs
};

struct Level {
  std::vector<LevelNode> nodes;
  std::vector<LevelEdge> edges;
  float width = 0, height = 0;  // the answer
};

void lay_out_level(Level* level);

}  // namespace hlo
