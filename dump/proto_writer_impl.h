// A module into XLA's proto: computations and instructions in proto_writer.cc, attributes in
// proto_writer_attributes.cc, shapes, shardings and literals in proto_writer_shapes.cc.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include "hlo.pb.h"
#include "ir/module.h"
#include "ir/sharding/sharding.h"

namespace hlo {

// XLA's number of an element type. Throws Failure(kUnsupported) where it has none.
xla::PrimitiveType type_number(ElementType type);

template <class List>
void put(const List& from, google::protobuf::RepeatedField<int64_t>* to) {
  for (int64_t v : from) to->Add(v);
}

// The body of the brackets that open at `at`, nested ones included.
std::string_view body(std::string_view text, size_t at);

class ProtoWriter {
 public:
  ProtoWriter(const Module& m, xla::HloModuleProto* out) : m_(m), u_(m.u()), out_(out) {}

  void run();
  void literal(LitId id, xla::LiteralProto* out);

 private:
  // XLA keeps the computation's number in the upper half of an instruction's, and in the lower its place in memory,
  // which it puts instructions back by.
  int64_t id(CompId c) const { return static_cast<int64_t>(c.value) + 1; }
  int64_t id(InstId i) const { return (id(m_.parent(i)) << 32) | places_.at(i); }

  void shape(ShapeId sid, xla::ShapeProto* out) const;
  static void frontend(std::string_view text, xla::FrontendAttributes* out);
  void aliases(const ModuleConfig& c);
  void computation(CompId c, bool fused);
  void mesh(const Mesh& m, xla::MeshProto* out);
  static void axis(const AxisRef& r, xla::AxisRefProto* out) {
    out->set_mesh_axis_index(static_cast<int64_t>(r.axis));
    if (r.size) out->mutable_sub_axis_info()->set_pre_size(r.pre), out->mutable_sub_axis_info()->set_size(r.size);
  }

  void op_metadata(const Metadata& d, xla::OpMetadata* out);
  void sharding(const Sharding& s, xla::OpSharding* out);

  std::string text(const AttrValue& v) const { return std::string(u_.text(std::get<StrId>(v))); }

  void instruction(InstId i, xla::HloInstructionProto* out);
  void attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out);
  // By the kind of the attribute; `common`: what every instruction may have.
  void flag_attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out);
  void integer_attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out);
  void dimensions_attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::DotDimensionNumbers* dots,
                            xla::HloInstructionProto* out);
  void word_attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out);
  void string_attribute(InstId i, Attr key, const AttrValue& v, xla::HloInstructionProto* out);
  void bracketed_attribute(InstId i, Attr key, const AttrValue& v, xla::HloInstructionProto* out);
  void common_attribute(InstId i, Attr key, const AttrValue& v, xla::HloInstructionProto* out);
  void structured_attribute(InstId i, Attr key, const AttrValue& v, xla::HloInstructionProto* out);
  [[noreturn]] void unwritten(InstId i, Attr key) const;
  static void precision(const std::string& t, xla::HloInstructionProto* out);
  static void sparsity(const std::string& t, xla::HloInstructionProto* out);
  static void statistics(const std::string& t, xla::HloInstructionProto* out);
  static void accuracy(const std::string& t, xla::HloInstructionProto* out);
  void literal_operand(InstId i, const std::string& t, xla::HloInstructionProto* out);
  void groups(const std::string& t, xla::HloInstructionProto* out);
  static void origin(std::string_view t, xla::OriginalValueProto* out);

  const Module& m_;
  Universe& u_;
  xla::HloModuleProto* out_;
  std::unordered_map<InstId, uint32_t> places_;
};

}  // namespace hlo
