// All interners of one run, shared by every module and every recorded stage. Append-only: ids stay valid.
// Single writer; readers may be many once writing has stopped.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ir/attribute.h"
#include "ir/base/checked.h"
#include "ir/base/interner.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace hlo {

// metadata={...} of an instruction; plain data so that it is interned by its bytes. StrId fields hold Id::kNone when
// absent, numbers 0.
struct Metadata {
  uint32_t op_type = StrId::kNone, op_name = StrId::kNone, source_file = StrId::kNone;
  uint32_t deduplicated_name = StrId::kNone, scheduling_name = StrId::kNone, payload = StrId::kNone;
  uint32_t profile_type = StrId::kNone;  // text between the braces
  int32_t source_line = 0, source_end_line = 0, source_column = 0, source_end_column = 0, stack_frame_id = 0;
};

class Universe {
 public:
  Universe();
  Universe(const Universe&) = delete;
  Universe& operator=(const Universe&) = delete;

  StrId str(std::string_view text) { return strings_.intern(text); }
  StrId find_str(std::string_view text) const { return strings_.find(text); }
  std::string_view text(StrId id) const { return id.valid() ? strings_[id] : std::string_view(); }
  // Room for a text of about that many instructions, and for the metadata of such a text.
  void reserve(size_t instructions) { strings_.reserve(instructions + instructions / 4); }
  void reserve_metadata(size_t instructions) { metadata_.reserve(instructions / 2); }
  // Words that cannot be names without `%` (they are interned first).
  bool reserved(StrId id) const { return id.value < reserved_; }
  size_t string_count() const { return strings_.size(); }

  // --- shapes ---
  ShapeId shape(Shape shape);
  // An array with a layout whose text, as shape_text() would give it, is known.
  ShapeId shape_of_text(Shape shape, std::string_view text);
  const Shape& operator[](ShapeId id) const { return shapes_[id.value].shape; }
  ShapeId array(ElementType type, Dims dims);  // default layout
  ShapeId scalar(ElementType type) { return array(type, {}); }
  // Tuples throw Failure(kUnsupported) where their text would be longer than kLongestShapeText, as that of a tuple of
  // the same tuple twice, 40 levels deep, is. So nothing that walks over a tuple's leaves has many of them.
  static constexpr size_t kLongestShapeText = size_t{16} << 20;
  ShapeId tuple(std::vector<ShapeId> elements);
  ShapeId token() const { return token_; }
  ShapeId with_type(ShapeId id, ElementType type);  // same dimensions and layout
  ShapeId with_dims(ShapeId id, Dims dims);         // same type, default layout, static
  ShapeId with_layout(ShapeId id, Dims minor_to_major);
  ShapeId with_default_layout(ShapeId id);  // recursively for tuples
  // Same type and dimensions, layout ignored (recursively): XLA's ShapeUtil::Compatible.
  bool compatible(ShapeId a, ShapeId b);
  // Text as XLA prints it: with layout `f32[2,3]{1,0}`, without `f32[2,3]`.
  const std::string& shape_text(ShapeId id) const { return shapes_[id.value].text; }
  const std::string& shape_text_plain(ShapeId id) const { return shapes_[id.value].plain; }
  // Bytes as XLA's buffers count them: arrays packed per element (sub-byte types as whole bytes unless E(n) says
  // otherwise), tuples 8 bytes an element, token 0.
  // Throws Failure(kUnsupported), naming the shape, where the number does not fit into 63 bits: no caller goes on with
  // a wrong size.
  int64_t byte_size(ShapeId id) const;
  int64_t leaf_bytes(ShapeId id) const;  // sum over array leaves; throws likewise
  // The same for those who judge by themselves whether it fits.
  Checked bytes(ShapeId id) const;
  size_t leaf_count(ShapeId id) const;  // parts that are no tuples
  // The part of a shape that an index names; invalid where there is none.
  ShapeId subshape(ShapeId id, const Dims& index) const;
  size_t shape_count() const { return shapes_.size(); }

  // --- attributes ---
  AttrsId attrs(AttrSet&& set);       // invalid id for an empty set
  AttrsId attrs(const AttrSet& set);  // … copied only where it is new
  const AttrSet& operator[](AttrsId id) const { return id.valid() ? attrs_[id] : empty_attrs_; }
  size_t attrs_count() const { return attrs_.size(); }

  // --- metadata ---
  MetaId metadata(const Metadata& m) { return metadata_.intern(m); }
  const Metadata& operator[](MetaId id) const { return id.valid() ? metadata_[id] : no_metadata_; }

  // --- literals ---
  LitId literal(Literal literal);
  const Literal& operator[](LitId id) const { return literals_[id.value]; }

  // --- operand lists of more than two entries ---
  uint32_t pool_add(const InstId* ids, size_t count);
  InstId* pool_at(uint32_t offset) { return pool_.data() + offset; }
  const InstId* pool_at(uint32_t offset) const { return pool_.data() + offset; }
  uint32_t pool_size() const { return static_cast<uint32_t>(pool_.size()); }

 private:
  struct ShapeEntry {
    Shape shape;
    std::string text, plain;
    ShapeId erased;  // same shape with default layouts everywhere: equal ⇔ compatible
  };
  StringInterner strings_;
  ShapeId tuple_shape(Shape shape);
  ShapeId keyed_shape(Shape shape, std::string_view text, size_t plain);
  StringInterner shape_keys_;  // texts of all but tuples
  std::vector<ShapeId> shape_of_key_;
  IndexTable tuple_table_;
  std::deque<ShapeEntry> shapes_;
  std::string scratch_;
  KeyedInterner<AttrSet, AttrsId> attrs_;
  AttrSet empty_attrs_;
  PodInterner<Metadata, MetaId> metadata_;
  Metadata no_metadata_;
  IndexTable literal_table_;
  std::deque<Literal> literals_;
  std::vector<InstId> pool_;
  ShapeId token_;
  uint32_t reserved_ = 0;
};

}  // namespace hlo
