// Typed 32-bit ids: printable, hashable, comparable, without arithmetic.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace hlo {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr explicit Id(size_t v) : value(static_cast<uint32_t>(v)) {}
  constexpr bool valid() const { return value != kNone; }
  friend constexpr bool operator==(Id a, Id b) { return a.value == b.value; }
  friend constexpr std::strong_ordering operator<=>(Id a, Id b) { return a.value <=> b.value; }
};

using StrId = Id<struct StrTag>;      // interned string (names, enum words, config texts)
using ShapeId = Id<struct ShapeTag>;  // interned shape, layout included
using AttrsId = Id<struct AttrsTag>;  // interned set of attributes
using MetaId = Id<struct MetaTag>;    // interned metadata={...}
using LitId = Id<struct LitTag>;      // content-addressed literal
using InstId = Id<struct InstTag>;    // instruction of a lineage; never reused while a recording lives
using CompId = Id<struct CompTag>;    // computation of a lineage

}  // namespace hlo

template <class Tag>
struct std::hash<hlo::Id<Tag>> {
  size_t operator()(hlo::Id<Tag> id) const noexcept { return id.value * 0x9E3779B97F4A7C15ull >> 17; }
};
