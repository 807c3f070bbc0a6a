// How an operand lies in what is made of it: the one reading of operations along which tiles of a kernel's result are
// followed to what it reads, their sizes (tiling.h) as well as what their dimensions are (tile_maps.h).
#pragma once
#include <array>
#include <vector>

#include "ir/module.h"

namespace hlo {

inline constexpr size_t kMostTileRank = 8;

struct OperandDims {
  enum Kind : uint8_t {
    kUnknown,
    kAlike,      // it lies as the result does
    kOneByOne,   // each of its dimensions is one of the result's, or one that is summed
    kRegrouped,  // the same elements in other dimensions
  } kind = kUnknown;
  using Places = std::array<uint8_t, kMostTileRank>;  // dimensions of a shape

  static constexpr uint8_t kSummed = UINT8_MAX;
  Places of{};                                // kOneByOne: which of the result's, or kSummed
  std::array<int64_t, kMostTileRank> step{};  // kOneByOne: what is next to each other there lies so far apart here

  // kRegrouped: of more than one element, in the order of memory, major first; each group holds the same elements in
  // both, and has a dimension in each.
  struct Group {
    uint8_t out, out_end, in, in_end;  // positions in `outs` and `ins`
  };
  Places outs{}, ins{};
  std::vector<Group> groups;
};

// Of operand `n` of the instruction, an array of shape `in`; neither has more than kMostTileRank dimensions.
OperandDims operand_dims(const Module& m, InstId i, size_t n, const Shape& in);

}  // namespace hlo
