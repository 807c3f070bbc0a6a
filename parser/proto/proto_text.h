// XLA's protos as HLO text: modules in proto_text.cc, attributes in proto_attributes.cc, shapes, shardings and metadata
// in proto_shapes.cc.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo.pb.h"
#include "ir/module.h"
#include "ir/sharding/sharding.h"

namespace hlo {

template <class List>
std::string list_text(const List& list, char open = '{', char close = '}') {
  return fmt::format("{}{}{}", open, fmt::join(list, ","), close);
}
template <class List>
Dims dims_of(const List& list) {
  return Dims(list.begin(), list.end());
}
std::string quoted(std::string_view s);
// Throws Failure(kUnsupported) where the number is none of ours.
ElementType type_of(int number);
std::string layout_text(const xla::LayoutProto& l);
std::string shape_text(const xla::ShapeProto& s, int depth = 0);
Mesh mesh_of(const xla::MeshProto& m);
std::vector<AxisRef> axes_of(const google::protobuf::RepeatedPtrField<xla::AxisRefProto>& list, const Mesh& mesh);
Sharding sharding_of(const xla::OpSharding& s);
std::string metadata_of(const xla::OpMetadata& m);

// A module as text that the parser reads; large literals travel beside it.
class ProtoText {
 public:
  ProtoText(const xla::HloModuleProto& proto, Universe& u) : p_(proto), u_(u) {}

  std::string out;
  std::vector<LitId> literals;

  const std::string& computation_name(int64_t id) const { return comp_names_.at(id); }
  void module();

 private:
  static std::string sanitized(std::string_view name) {
    std::string s(name);
    for (char& c : s)
      if (!isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-') c = '_';
    if (s.empty() || (!isalpha(static_cast<unsigned char>(s[0])) && s[0] != '_')) s = "_" + s;
    return s;
  }
  static std::string unique(std::unordered_set<std::string>& taken, std::string_view name, std::string_view otherwise) {
    std::string base = name.empty() ? std::string(otherwise) : sanitized(name), s = base;
    ElementType type;
    if (type_from_name(s, &type)) s = base += "_";
    for (int k = 1; !taken.insert(s).second; ++k) s = fmt::format("{}.{}", base, k);
    return s;
  }

  void header();

  static std::string frontend(const xla::FrontendAttributes& f) {
    std::map<std::string, std::string> sorted(f.map().begin(), f.map().end());
    std::string text;
    for (const auto& [k, v] : sorted) text += fmt::format("{}{}={}", text.empty() ? "" : ",", k, hlo::quoted(v));
    return "{" + text + "}";
  }

  void computation(const xla::HloComputationProto& c);

  const std::string& operand_name(const xla::HloInstructionProto& i, int64_t id) {
    auto found = comp_->find(id);
    if (found == comp_->end())
      fail(FailureKind::kIo, "instruction '{}' of the proto has operand {}, which its computation does not have",
           i.name(), id);
    return names_[id];
  }

  void instruction(const xla::HloInstructionProto& i, bool root);

  void put(Attr key, const std::string& value) { out += fmt::format(", {}={}", attr_text(key), value); }
  void flag(Attr key, bool v) {
    if (v) put(key, "true");
  }
  const std::string& called(const xla::HloInstructionProto& i, int k) {
    if (k >= i.called_computation_ids_size())
      fail(FailureKind::kIo, "instruction '{}' of the proto calls too few computations", i.name());
    return comp_names_[i.called_computation_ids(k)];
  }
  template <class List>
  void ints(Attr key, const List& list) {
    put(key, list_text(list));
  }

  void attribute(const xla::HloInstructionProto& i, Opcode op, Attr key);
  // By the kind of the attribute.
  void flag_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key);
  void integer_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key);
  void dimensions_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key);
  void word_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key);
  void string_attribute(const xla::HloInstructionProto& i, Attr key);
  void bracketed_attribute(const xla::HloInstructionProto& i, Attr key);
  void structured_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key);
  void called_attribute(const xla::HloInstructionProto& i, Attr key);
  [[noreturn]] static void unread(const xla::HloInstructionProto& i, Attr key);

  static const xla::DotDimensionNumbers& dots(const xla::HloInstructionProto& i) {
    return i.has_ragged_dot_dimension_numbers() ? i.ragged_dot_dimension_numbers().dot_dimension_numbers()
                                                : i.dot_dimension_numbers();
  }
  bool by_pred(const xla::HloInstructionProto& i) {
    auto found = i.operand_ids_size() ? comp_->find(i.operand_ids(0)) : comp_->end();
    return found != comp_->end() && found->second->shape().element_type() == xla::PRED;
  }

  static std::string window(const xla::Window& w);
  std::string dim_labels(const xla::HloInstructionProto& i);
  static std::string groups(const xla::HloInstructionProto& i);
  void common(const xla::HloInstructionProto& i, Opcode op);

  // Leaves by index, put back into the tree of the shape.
  static std::string origin(const xla::HloInstructionProto& i);

  const xla::HloModuleProto& p_;
  Universe& u_;
  std::unordered_set<std::string> taken_, comp_taken_;
  std::unordered_map<int64_t, std::string> names_, comp_names_;
  const std::unordered_map<int64_t, const xla::HloInstructionProto*>* comp_ = nullptr;
};

}  // namespace hlo
