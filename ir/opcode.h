// Opcodes and attribute keys: the two tables, as enums and rows.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace hlo {

enum class Opcode : uint8_t {
#define HLO_OP(id, text, arity, cls, traits, attrs) id,
#include "ir/opcodes.def"
#undef HLO_OP
};
inline constexpr int kOpcodeCount = 0
#define HLO_OP(...) +1
#include "ir/opcodes.def"
#undef HLO_OP
    ;

enum class OpClass : uint8_t {
  Elementwise,
  Move,
  Dot,
  Conv,
  Reduce,
  Window,
  Gather,
  Scatter,
  Collective,
  Async,
  Call,
  Fusion,
  Tuple,
  Leaf,
  Rng,
  Sort,
  LinearAlgebra,
  BatchNorm,
  Io,
  Custom,
  Token
};

enum class Attr : uint8_t {
#define HLO_ATTR(id, kind) id,
#include "ir/attributes.def"
#undef HLO_ATTR
};
inline constexpr int kAttrCount = 0
#define HLO_ATTR(...) +1
#include "ir/attributes.def"
#undef HLO_ATTR
    ;

enum class AttrKind : uint8_t {
  Bool,
  Int,
  Float,
  Enum,
  Str,
  Raw,
  Ints,
  Comp,
  Comps,
  Window,
  DimLabels,
  Padding,
  Slices,
  Shape,
  Shapes,
  Config
};

inline constexpr int kVar = -1;

struct OwnAttr {
  Attr key;
  bool optional;
};

struct OpInfo {
  std::string_view text;
  int arity;  // or kVar
  OpClass cls;
  bool elementwise, commutative, effect, transcendental;
  std::span<const OwnAttr> attrs;  // in print order
};

const OpInfo& op_info(Opcode op);
// Opcodes with attributes that name computations. Asked for all of a module's instructions over and over.
extern const std::array<bool, kOpcodeCount> kMayCall;
inline bool may_call(Opcode op) { return kMayCall[static_cast<size_t>(op)]; }
inline std::string_view op_text(Opcode op) { return op_info(op).text; }
bool op_from_text(std::string_view text, Opcode* op);

std::string_view attr_text(Attr key);
AttrKind attr_kind(Attr key);
bool attr_from_text(std::string_view text, Attr* key);
// Position of the key in the print order of that opcode; own attributes first, then the common tail; -1 where the
// opcode does not take it.
int attr_position(Opcode op, Attr key);

// The known name closest to `text` by edit distance, or empty when none is near.
std::string_view nearest_opcode(std::string_view text);
std::string_view nearest_attr(std::string_view text);
int edit_distance(std::string_view a, std::string_view b);

// Result and operands of one rank have one layout: what works element by element, or moves elements along dimensions
// (xla/service/layout_assignment.cc, InstructionCanChangeLayout). Copies may change it.
bool keeps_layout(Opcode op);

}  // namespace hlo
