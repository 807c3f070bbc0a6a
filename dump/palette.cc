#include "dump/palette.h"

namespace hlo {
namespace {
constexpr Colour kWhite{"white", "#ffffff", "#9e9e9e", "#000000"}, kYellow{"yellow", "#fff9c4", "#cbc693", "#000000"},
    kGreen{"green", "#c8e6c9", "#97b498", "#000000"}, kDarkBlue{"dark blue", "#1565c0", "#003c8f", "#ffffff"},
    kPurple{"purple", "#e1bee7", "#af8eb5", "#000000"}, kGray{"gray", "#cfd8dc", "#9ea7aa", "#000000"},
    kBrown{"brown", "#bcaaa4", "#8c7b75", "#000000"}, kDarkGreen{"dark green", "#2e7d32", "#005005", "#ffffff"},
    kOrange{"orange", "#ffe0b2", "#cbae82", "#000000"}, kDarkOrange{"dark orange", "#ffb74d", "#c88719", "#000000"};
}  // namespace

Colour colour_of(const Module& m, InstId i) {
  Opcode op = m.op(i);
  if (op == Opcode::Parameter)
    return m.shape(i).is_array() && m.shape(i).elements_count() < 4096 ? kOrange : kDarkOrange;
  switch (op) {
    case Opcode::Broadcast:
    case Opcode::DynamicUpdateSlice:
      return kYellow;
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::Reshape:
    case Opcode::DynamicReshape:
    case Opcode::Reverse:
    case Opcode::Transpose:
    case Opcode::Copy:
    case Opcode::CopyStart:
    case Opcode::CopyDone:
      return kGreen;
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
      return kBrown;
    case Opcode::Map:
    case Opcode::Domain:
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize:
      return kGray;
    default:
      break;
  }
  switch (op_info(op).cls) {
    case OpClass::Dot:
    case OpClass::Conv:
    case OpClass::LinearAlgebra:
      return kDarkBlue;
    case OpClass::Reduce:
    case OpClass::Window:
    case OpClass::Scatter:
    case OpClass::Gather:
    case OpClass::BatchNorm:
      return kPurple;
    case OpClass::Fusion:
      return kGray;
    case OpClass::Collective:
    case OpClass::Io:
      return kBrown;
    case OpClass::Call:
    case OpClass::Custom:
      return kDarkGreen;
    case OpClass::Async:
      if (!m.called(i).empty()) return colour_of(m, m.comp(m.called(i)[0]).root);
      return kWhite;
    default:
      return kWhite;
  }
}

const std::vector<LegendRow>& legend() {
  static const std::vector<LegendRow> kRows = {{kDarkOrange, "parameter"},
                                               {kWhite, "elementwise, slice, pad, sort, rng, tuple"},
                                               {kYellow, "broadcast, dynamic-update-slice"},
                                               {kGreen, "reshape, transpose, copy, concatenate"},
                                               {kDarkBlue, "dot, convolution, linear algebra"},
                                               {kPurple, "reduce, gather, scatter, batch norm"},
                                               {kGray, "fusion, map"},
                                               {kDarkGreen, "call, while, conditional, custom-call"},
                                               {kBrown, "collective, infeed, outfeed"}};
  return kRows;
}

}  // namespace hlo
