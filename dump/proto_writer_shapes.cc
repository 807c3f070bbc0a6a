// Shapes, shardings, metadata and literals as protos.
#include <algorithm>
#include <unordered_map>

#include "dump/proto_writer.h"
#include "dump/proto_writer_impl.h"
#include "ir/print/print.h"
#include "ir/sharding/aliasing.h"
#include "ir/sharding/sharding.h"
#include "parser/parser.h"

namespace hlo {

xla::PrimitiveType type_number(ElementType type) {
  if (type == ElementType::Opaque) return xla::OPAQUE_TYPE;
  std::string name(type_name(type));
  for (char& c : name) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
  xla::PrimitiveType out;
  if (!xla::PrimitiveType_Parse(name, &out))
    fail(FailureKind::kUnsupported, "element type {} has no number in protos", type_name(type));
  return out;
}

namespace {

// The elements of an array, each type in its own field.
class ArrayWriter {
 public:
  ArrayWriter(const Literal& lit, ElementType type, xla::LiteralProto* out) : b_(lit.bytes), type_(type), out_(out) {}

  void run() {
    if (!numbers() && !whole_bytes() && !parts_of_bytes())
      fail(FailureKind::kUnsupported, "literals of type {} are not written to protos", type_name(type_));
  }

 private:
  template <class List>
  bool raw(List* list) const {
    using T = std::decay_t<decltype(list->Get(0))>;
    list->Resize(static_cast<int>(b_.size() / sizeof(T)), T{});
    if (!b_.empty()) std::copy_n(b_.data(), b_.size(), reinterpret_cast<char*>(list->mutable_data()));
    return true;
  }
  std::string packed() const {
    size_t bits = static_cast<size_t>(type_bits(type_)), per = 8 / bits;
    std::string out((b_.size() + per - 1) / per, '\0');
    for (size_t i = 0; i < b_.size(); ++i)
      out[i / per] = static_cast<char>(out[i / per] | (b_[i] & ((1 << bits) - 1)) << (i % per * bits));
    return out;
  }

  bool numbers() {
    switch (type_) {
      case ElementType::Pred:
        for (char c : b_) out_->add_preds(c != 0);
        return true;
      case ElementType::S32:
        return raw(out_->mutable_s32s());
      case ElementType::S64:
        return raw(out_->mutable_s64s());
      case ElementType::U32:
        return raw(out_->mutable_u32s());
      case ElementType::U64:
        return raw(out_->mutable_u64s());
      case ElementType::F32:
        return raw(out_->mutable_f32s());
      case ElementType::F64:
        return raw(out_->mutable_f64s());
      case ElementType::C64:
        return raw(out_->mutable_c64s());
      case ElementType::C128:
        return raw(out_->mutable_c128s());
      default:
        return false;
    }
  }

  bool whole_bytes() {
    switch (type_) {
      case ElementType::S8:
        return out_->set_s8s(b_), true;
      case ElementType::U8:
        return out_->set_u8s(b_), true;
      case ElementType::S16:
        return out_->set_s16s(b_), true;
      case ElementType::U16:
        return out_->set_u16s(b_), true;
      case ElementType::F16:
        return out_->set_f16s(b_), true;
      case ElementType::BF16:
        return out_->set_bf16s(b_), true;
      case ElementType::F6E2M3FN:
        return out_->set_f6e2m3fns(b_), true;
      case ElementType::F6E3M2FN:
        return out_->set_f6e3m2fns(b_), true;
      case ElementType::F8E5M2:
        return out_->set_f8e5m2s(b_), true;
      case ElementType::F8E4M3:
        return out_->set_f8e4m3s(b_), true;
      case ElementType::F8E4M3FN:
        return out_->set_f8e4m3fns(b_), true;
      case ElementType::F8E4M3B11FNUZ:
        return out_->set_f8e4m3b11fnuzs(b_), true;
      case ElementType::F8E5M2FNUZ:
        return out_->set_f8e5m2fnuzs(b_), true;
      case ElementType::F8E4M3FNUZ:
        return out_->set_f8e4m3fnuzs(b_), true;
      case ElementType::F8E3M4:
        return out_->set_f8e3m4s(b_), true;
      case ElementType::F8E8M0FNU:
        return out_->set_f8e8m0fnus(b_), true;
      default:
        return false;
    }
  }

  bool parts_of_bytes() {
    switch (type_) {
      case ElementType::S1:
        return out_->set_s1s(packed()), true;
      case ElementType::S2:
        return out_->set_s2s(packed()), true;
      case ElementType::S4:
        return out_->set_s4s(packed()), true;
      case ElementType::U1:
        return out_->set_u1s(packed()), true;
      case ElementType::U2:
        return out_->set_u2s(packed()), true;
      case ElementType::U4:
        return out_->set_u4s(packed()), true;
      case ElementType::F4E2M1FN:
        return out_->set_f4e2m1fns(packed()), true;
      default:
        return false;
    }
  }

  const std::string& b_;
  ElementType type_;
  xla::LiteralProto* out_;
};

}  // namespace

void ProtoWriter::literal(LitId id, xla::LiteralProto* out) {
  const Literal& lit = u_[id];
  shape(lit.shape, out->mutable_shape());
  const Shape& s = u_[lit.shape];
  if (lit.elided) {
    out->set_hlo_replay_elided(true);
    if (lit.elements.empty()) return;
  }
  if (s.is_tuple()) {
    for (LitId e : lit.elements) literal(e, out->add_tuple_literals());
    return;
  }
  if (s.is_array()) ArrayWriter(lit, s.type, out).run();
}

void ProtoWriter::shape(ShapeId sid, xla::ShapeProto* out) const {
  const Shape& s = u_[sid];
  if (s.is_buffer) {
    Shape inner = s;
    inner.is_buffer = false;
    out->set_element_type(xla::BUFFER);
    return shape(u_.shape(inner), out->add_tuple_shapes());
  }
  if (s.is_tuple()) {
    out->set_element_type(xla::TUPLE);
    for (ShapeId e : s.elements) shape(e, out->add_tuple_shapes());
    return;
  }
  out->set_element_type(type_number(s.type));
  if (!s.is_array()) return;
  for (size_t d = 0; d < s.dims.size(); ++d) {
    out->add_dimensions(s.dims[d]);
    out->add_is_dynamic_dimension(s.is_dynamic() && s.dynamic[d]);
  }
  auto* layout = out->mutable_layout();
  put(s.layout.minor_to_major, layout->mutable_minor_to_major());
  layout->set_tail_padding_alignment_in_elements(1);
  // Parts behind the colon: KEY(…)(…)
  std::string_view rest = s.layout.rest;
  for (size_t at = 0; at < rest.size();) {
    size_t open = rest.find('(', at);
    if (open == std::string_view::npos) break;
    std::string_view key = rest.substr(at, open - at);
    for (bool first = true; open < rest.size() && rest[open] == '(' && (first || key == "T" || key == "SC");
         first = false) {
      std::string_view inner = rest.substr(open + 1, rest.find(')', open) - open - 1);
      open += inner.size() + 2;
      Dims n = integers_in(inner);
      int64_t value = n.empty() ? 0 : n[0];
      if (key == "T") {
        auto* tile = layout->add_tiles();
        for (size_t from = 0; from <= inner.size() && !inner.empty();) {
          size_t comma = std::min(inner.find(',', from), inner.size());
          std::string_view one = inner.substr(from, comma - from);
          tile->add_dimensions(one == "*" ? INT64_MIN : integers_in(one).at(0));
          from = comma + 1;
        }
      } else if (key == "SC") {
        auto* split = layout->add_split_configs();
        split->set_dimension(value);
        for (size_t k = 1; k < n.size(); ++k) split->add_split_indices(n[k]);
      } else if (key == "L") {
        layout->set_tail_padding_alignment_in_elements(value);
      } else if (key == "E") {
        layout->set_element_size_in_bits(value);
      } else if (key == "S") {
        layout->set_memory_space(value);
      } else if (key == "M") {
        layout->set_dynamic_shape_metadata_prefix_bytes(value);
      } else if (key == "#" || key == "*") {
        ElementType type;
        if (type_from_name(inner, &type))
          key == "#" ? layout->set_index_primitive_type(type_number(type))
                     : layout->set_pointer_primitive_type(type_number(type));
      }
    }
    at = open;
  }
}

void ProtoWriter::mesh(const Mesh& m, xla::MeshProto* out) {
  if (m.maximal) {
    out->add_device_ids(m.device);
    return;
  }
  for (const auto& a : m.axes) {
    auto* axis = out->add_axes();
    axis->set_name(a.first), axis->set_size(a.second);
  }
  if (!m.has_devices) return;
  if (m.devices.iota) {
    put(m.devices.reshape, out->mutable_iota_transform()->mutable_reshape_dims());
    put(m.devices.perm, out->mutable_iota_transform()->mutable_transpose_perm());
  } else {
    put(m.devices.devices, out->mutable_device_ids());
  }
}

void ProtoWriter::op_metadata(const Metadata& d, xla::OpMetadata* out) {
  auto text = [&](uint32_t s) { return s == StrId::kNone ? std::string() : std::string(u_.text(StrId(s))); };
  out->set_op_type(text(d.op_type)), out->set_op_name(text(d.op_name)), out->set_source_file(text(d.source_file));
  out->set_source_line(d.source_line), out->set_source_end_line(d.source_end_line);
  out->set_source_column(d.source_column), out->set_source_end_column(d.source_end_column);
  out->set_deduplicated_name(text(d.deduplicated_name)), out->set_scheduling_name(text(d.scheduling_name));
  out->set_stack_frame_id(d.stack_frame_id);
  for (int64_t t : integers_in(text(d.profile_type))) out->add_profile_type(static_cast<xla::ProfileType>(t));
  if (std::string payload = text(d.payload); !payload.empty()) {
    out->mutable_metadata_payload()->set_payload_index(out_->payloads_size());
    out_->add_payloads(payload);
  }
}

void ProtoWriter::sharding(const Sharding& s, xla::OpSharding* out) {
  using K = Sharding::Kind;
  std::vector<Metadata> meta;
  if (!s.metadata.empty()) meta = parse_metadata_list(s.metadata, u_);
  if (s.kind == K::kNamed) {
    auto* n = out->mutable_named_sharding();
    mesh(s.mesh, n->mutable_mesh());
    for (const auto& d : s.dims) {
      auto* dim = n->add_dim_shardings();
      for (const AxisRef& r : d.axes) axis(r, dim->add_axes());
      dim->set_is_closed(!d.open);
    }
    auto all = [&](auto* list) {
      for (size_t a = 0; a < s.mesh.axes.size(); ++a) axis({a, 1, 0}, list->Add());
    };
    for (const AxisRef& r : s.replicated) axis(r, n->add_replicated_axes());
    for (const AxisRef& r : s.unreduced) axis(r, n->add_unreduced_axes());
    for (const AxisRef& r : s.manual) axis(r, n->add_manual_axes());
    if (s.whole && s.whole_kind == "unreduced") all(n->mutable_unreduced_axes());
    if (s.whole && s.whole_kind == "manual") all(n->mutable_manual_axes());
    if (s.reduction == "max") n->set_reduction_op(xla::NamedShardingProto::MAX);
    if (s.reduction == "min") n->set_reduction_op(xla::NamedShardingProto::MIN);
    for (const Metadata& m : meta) op_metadata(m, n->add_metadata());
    return;
  }
  for (const Metadata& m : meta) op_metadata(m, out->add_metadata());
  switch (s.kind) {
    case K::kTuple:
      out->set_type(xla::OpSharding::TUPLE);
      for (const Sharding& e : s.elements) sharding(e, out->add_tuple_shardings());
      return;
    case K::kMaximal:
      out->set_type(xla::OpSharding::MAXIMAL);
      out->add_tile_assignment_dimensions(1);
      out->add_tile_assignment_devices(s.device);
      break;
    case K::kManual:
      out->set_type(xla::OpSharding::MANUAL);
      break;
    case K::kUnknown:
      out->set_type(xla::OpSharding::UNKNOWN);
      break;
    case K::kUnreduced:
      out->set_type(xla::OpSharding::UNREDUCED);
      break;
    case K::kTiled:
      out->set_type(xla::OpSharding::OTHER);
      put(s.tiles.dims, out->mutable_tile_assignment_dimensions());
      if (s.tiles.iota) {
        put(s.tiles.reshape, out->mutable_iota_reshape_dims());
        for (int64_t p : s.tiles.perm) out->add_iota_transpose_perm(static_cast<int32_t>(p));
      } else {
        put(s.tiles.devices, out->mutable_tile_assignment_devices());
      }
      out->set_replicate_on_last_tile_dim(s.replicate_last);
      for (Sharding::Sub t : s.last)
        out->add_last_tile_dims(t == Sharding::Sub::kManual      ? xla::OpSharding::MANUAL
                                : t == Sharding::Sub::kUnreduced ? xla::OpSharding::UNREDUCED
                                                                 : xla::OpSharding::REPLICATED);
      break;
    default:
      break;
  }
  if (s.group != Sharding::Group::kNone) {
    out->set_is_shard_group(true);
    out->set_shard_group_id(s.group_id);
    out->set_shard_group_type(s.group == Sharding::Group::kAs ? xla::OpSharding::AS : xla::OpSharding::LIKE);
  }
}

}  // namespace hlo
