// The parts of a universe as lineage.hlol holds them, interned again: what is there is checked piece by piece.
#pragma once
#include <vector>

#include "ir/module.h"
#include "replay/record/recording/bytes.h"

namespace hlo {

// To be read in the order of the functions. All throw Failure(kIo) at what is damaged, kUnsupported at words that this
// program does not know where they are used.
class StoreParts {
 public:
  explicit StoreParts(Universe& universe) : u_(universe) {}
  void words(ByteReader in);
  void strings(ByteReader in);
  void shapes(ByteReader in);
  void literals(ByteReader in);
  void metadata(ByteReader in);
  // Computations have ids below the bound; whether they live, the stage says.
  void attributes(ByteReader in, size_t computation_bound);

  StrId string(ByteReader& in) const;   // invalid: none
  StrId name(ByteReader& in) const;     // one that may stand in a text
  ShapeId shape(ByteReader& in) const;  // invalid: none
  LitId literal(ByteReader& in) const;
  // All but its operands, literal or number.
  Inst instruction(ByteReader& in, size_t computation_bound) const;
  ModuleConfig config(ByteReader& in) const;
  static StackTables stack(ByteReader& in);

 private:
  Opcode opcode(ByteReader& in) const;
  ElementType type(ByteReader& in) const;
  AttrValue value(ByteReader& in, Attr key, uint8_t form, size_t computation_bound) const;
  static Dims dims(ByteReader& in);
  static void check_labels(ByteReader& in, const DimLabels& d);
  static Window window(ByteReader& in);
  static DimLabels dim_labels(ByteReader& in);

  Universe& u_;
  std::vector<int> opcodes_, attrs_, types_;  // by number in the file; -1: unknown here
  std::vector<StrId> strings_;
  std::vector<bool> can_be_name_;
  std::vector<ShapeId> shapes_;
  std::vector<LitId> literals_;
  std::vector<MetaId> metadata_;
  std::vector<AttrsId> sets_;
  std::vector<Opcode> set_of_;  // the opcode that each set belongs to
};

}  // namespace hlo
