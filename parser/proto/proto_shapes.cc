// Shapes, shardings and metadata of protos as text.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/print/print.h"
#include "ir/sharding/sharding.h"
#include "parser/parser.h"
#include "parser/proto/proto_reader.h"
#include "parser/proto/proto_text.h"

namespace hlo {
namespace pb = google::protobuf;

std::string quoted(std::string_view s) { return "\"" + c_escape(s) + "\""; }

ElementType type_of(int number) {
  ElementType type;
  std::string name =
      number == xla::OPAQUE_TYPE ? "opaque" : xla::PrimitiveType_Name(static_cast<xla::PrimitiveType>(number));
  for (char& c : name) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  if (!type_from_name(name, &type)) fail(FailureKind::kUnsupported, "element type {} of the proto is unknown", number);
  return type;
}

std::string layout_text(const xla::LayoutProto& l) {
  std::string rest;
  if (l.tiles_size()) {
    rest += "T";
    for (const auto& tile : l.tiles()) {
      std::string dims;
      // A dimension that is combined with the next one is written as the least 64-bit integer.
      for (int64_t d : tile.dimensions())
        dims += (dims.empty() ? "" : ",") + (d == INT64_MIN ? std::string("*") : std::to_string(d));
      rest += "(" + dims + ")";
    }
  }
  if (l.tail_padding_alignment_in_elements() > 1) rest += fmt::format("L({})", l.tail_padding_alignment_in_elements());
  auto index = [&](char key, int type) {
    if (type) rest += fmt::format("{}({})", key, type_name(type_of(type)));
  };
  index('#', l.index_primitive_type());
  index('*', l.pointer_primitive_type());
  if (l.element_size_in_bits()) rest += fmt::format("E({})", l.element_size_in_bits());
  if (l.memory_space()) rest += fmt::format("S({})", l.memory_space());
  if (l.split_configs_size()) {
    rest += "SC";
    for (const auto& s : l.split_configs())
      rest += fmt::format("({}:{})", s.dimension(), fmt::join(s.split_indices(), ","));
  }
  if (l.dynamic_shape_metadata_prefix_bytes()) rest += fmt::format("M({})", l.dynamic_shape_metadata_prefix_bytes());
  if (l.minor_to_major().empty() && rest.empty()) return "";
  return fmt::format("{{{}{}{}}}", fmt::join(l.minor_to_major(), ","), rest.empty() ? "" : ":", rest);
}

std::string shape_text(const xla::ShapeProto& s, int depth) {
  if (depth > 400) fail(FailureKind::kIo, "a shape of the proto is nested too deeply");
  if (s.element_type() == xla::TUPLE) {
    std::string out = "(";
    for (int i = 0; i < s.tuple_shapes_size(); ++i) out += (i ? ", " : "") + shape_text(s.tuple_shapes(i), depth + 1);
    return out + ")";
  }
  if (s.element_type() == xla::BUFFER)
    return "b(" + (s.tuple_shapes_size() ? shape_text(s.tuple_shapes(0), depth + 1) : "") + ")";
  ElementType type = type_of(s.element_type());
  std::string out = std::string(type_name(type)) + "[";
  for (int i = 0; i < s.dimensions_size(); ++i) {
    bool dynamic = i < s.is_dynamic_dimension_size() && s.is_dynamic_dimension(i);
    out += i ? "," : "";
    out += s.dimensions(i) == INT64_MIN ? "?" : fmt::format("{}{}", dynamic ? "<=" : "", s.dimensions(i));
  }
  out += "]";
  if (s.has_layout() && is_array_type(type)) out += layout_text(s.layout());
  return out;
}

// --- shardings and groups ---

Mesh mesh_of(const xla::MeshProto& m) {
  Mesh out;
  if (!m.axes_size() && m.device_ids_size() == 1) {
    out.maximal = true;
    out.device = m.device_ids(0);
    return out;
  }
  for (const auto& a : m.axes()) out.axes.emplace_back(a.name(), a.size());
  if (m.has_iota_transform() && m.iota_transform().transpose_perm_size() > 1) {
    out.has_devices = out.devices.iota = true;
    out.devices.reshape = dims_of(m.iota_transform().reshape_dims());
    out.devices.perm = dims_of(m.iota_transform().transpose_perm());
  } else if (m.device_ids_size()) {
    out.has_devices = true;
    out.devices.devices = dims_of(m.device_ids());
  }
  return out;
}

std::vector<AxisRef> axes_of(const pb::RepeatedPtrField<xla::AxisRefProto>& list, const Mesh& mesh) {
  std::vector<AxisRef> out;
  for (const auto& a : list) {
    if (a.mesh_axis_index() < 0 || a.mesh_axis_index() >= static_cast<int64_t>(mesh.axes.size()))
      fail(FailureKind::kIo, "the proto names axis {} of a mesh of {}", a.mesh_axis_index(), mesh.axes.size());
    AxisRef ref;
    ref.axis = static_cast<size_t>(a.mesh_axis_index());
    if (a.has_sub_axis_info()) ref.pre = a.sub_axis_info().pre_size(), ref.size = a.sub_axis_info().size();
    out.push_back(ref);
  }
  return out;
}

Sharding sharding_of(const xla::OpSharding& s) {
  Sharding out;
  std::vector<std::string> meta;
  bool named = s.has_named_sharding();
  for (const auto& m : named ? s.named_sharding().metadata() : s.metadata()) meta.push_back(metadata_of(m));
  if (meta.size() == 1 && !named)
    out.metadata = meta[0];
  else if (!meta.empty())
    out.metadata = fmt::format("{{{}}}", fmt::join(meta, ", "));
  if (named) {
    const auto& n = s.named_sharding();
    out.kind = Sharding::Kind::kNamed;
    out.mesh = mesh_of(n.mesh());
    for (const auto& d : n.dim_shardings()) out.dims.push_back({axes_of(d.axes(), out.mesh), !d.is_closed()});
    out.replicated = axes_of(n.replicated_axes(), out.mesh);
    out.unreduced = axes_of(n.unreduced_axes(), out.mesh);
    out.manual = axes_of(n.manual_axes(), out.mesh);
    if (n.reduction_op() == xla::NamedShardingProto::MAX) out.reduction = "max";
    if (n.reduction_op() == xla::NamedShardingProto::MIN) out.reduction = "min";
    if (out.dims.empty() && !out.mesh.maximal && out.replicated.empty()) {
      out.whole = true;
      out.whole_kind = !out.unreduced.empty() ? "unreduced" : !out.manual.empty() ? "manual" : "replicated";
    }
    return out;
  }
  switch (s.type()) {
    case xla::OpSharding::TUPLE:
      out.kind = Sharding::Kind::kTuple;
      for (const auto& e : s.tuple_shardings()) out.elements.push_back(sharding_of(e));
      return out;
    case xla::OpSharding::MAXIMAL:
      out.kind = Sharding::Kind::kMaximal;
      out.device = s.tile_assignment_devices_size() ? s.tile_assignment_devices(0) : 0;
      break;
    case xla::OpSharding::MANUAL:
      out.kind = Sharding::Kind::kManual;
      break;
    case xla::OpSharding::UNKNOWN:
      out.kind = Sharding::Kind::kUnknown;
      break;
    case xla::OpSharding::UNREDUCED:
      out.kind = Sharding::Kind::kUnreduced;
      break;
    case xla::OpSharding::OTHER:
      out.kind = Sharding::Kind::kTiled;
      out.tiles.dims = dims_of(s.tile_assignment_dimensions());
      out.tiles.devices = dims_of(s.tile_assignment_devices());
      if (s.iota_reshape_dims_size()) {
        out.tiles.iota = true;
        out.tiles.reshape = dims_of(s.iota_reshape_dims());
        out.tiles.perm = dims_of(s.iota_transpose_perm());
      }
      out.replicate_last = s.replicate_on_last_tile_dim();
      for (int t : s.last_tile_dims())
        out.last.push_back(t == xla::OpSharding::MANUAL      ? Sharding::Sub::kManual
                           : t == xla::OpSharding::UNREDUCED ? Sharding::Sub::kUnreduced
                                                             : Sharding::Sub::kReplicated);
      break;
    default:
      break;
  }
  if (s.is_shard_group()) {
    out.group = s.shard_group_type() == xla::OpSharding::LIKE ? Sharding::Group::kLike : Sharding::Group::kAs;
    out.group_id = s.shard_group_id();
  }
  return out;
}

std::string metadata_of(const xla::OpMetadata& m) {
  std::string out = "{";
  auto text = [&](const char* key, const std::string& v) {
    if (!v.empty()) out += fmt::format("{}={} ", key, hlo::quoted(v));
  };
  auto number = [&](const char* key, int64_t v) {
    if (v) out += fmt::format("{}={} ", key, v);
  };
  text("op_type", m.op_type());
  text("op_name", m.op_name());
  text("source_file", m.source_file());
  number("source_line", m.source_line());
  number("source_end_line", m.source_end_line());
  number("source_column", m.source_column());
  number("source_end_column", m.source_end_column());
  if (m.profile_type_size()) out += fmt::format("profile_type={} ", list_text(m.profile_type()));
  text("deduplicated_name", m.deduplicated_name());
  text("scheduling_name", m.scheduling_name());
  number("stack_frame_id", m.stack_frame_id());
  if (out.back() == ' ') out.pop_back();
  return out + "}";
}

}  // namespace hlo
