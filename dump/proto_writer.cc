#include "dump/proto_writer.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <unordered_map>

#include "hlo.pb.h"
#include "ir/aliasing.h"
#include "ir/print.h"
#include "ir/sharding.h"
#include "parser/parser.h"
#include "parser/proto_reader.h"

namespace hlo {
namespace {

xla::PrimitiveType type_number(ElementType type) {
  if (type == ElementType::Opaque) return xla::OPAQUE_TYPE;
  std::string name(type_name(type));
  for (char& c : name) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
  xla::PrimitiveType out;
  if (!xla::PrimitiveType_Parse(name, &out))
    fail(FailureKind::kUnsupported, "element type {} has no number in protos", type_name(type));
  return out;
}

template <class List>
void put(const List& from, google::protobuf::RepeatedField<int64_t>* to) {
  for (int64_t v : from) to->Add(v);
}

// The body of the brackets that open at `at`, nested ones included.
std::string_view body(std::string_view text, size_t at) {
  int depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '(') ++depth;
    if ((text[i] == '}' || text[i] == ')') && --depth == 0) return text.substr(at + 1, i - at - 1);
  }
  return {};
}

class Writer {
 public:
  Writer(const Module& m, xla::HloModuleProto* out) : m_(m), u_(m.u()), out_(out) {}

  void run() {
    const ModuleConfig& c = m_.config();
    out_->set_name(m_.name());
    out_->set_entry_computation_name(std::string(m_.comp_name(m_.entry())));
    out_->set_entry_computation_id(id(m_.entry()));
    // As they are stored; callees first where passes have put them behind.
    std::vector<CompId> order = m_.computations();
    std::vector<bool> seen(m_.comp_slots(), false);
    bool callees_first = true;
    for (CompId comp : order) {
      for (InstId i : m_.comp(comp).order)
        if (m_.alive(i))
          for (CompId callee : m_.called(i)) callees_first &= seen[callee.value];
      seen[comp.value] = true;
    }
    if (!callees_first) order = m_.computation_post_order();
    std::vector<bool> fused = m_.fusion_computation_flags();
    for (CompId comp : order) computation(comp, fused[comp.value]);
    if (c.has_entry_layout) {
      auto* shape = out_->mutable_host_program_shape();
      for (ShapeId s : c.entry_params) this->shape(s, shape->add_parameters());
      for (InstId p : m_.comp(m_.entry()).params) shape->add_parameter_names(std::string(m_.inst_name(p)));
      this->shape(c.entry_result, shape->mutable_result());
    }
    if (c.is_scheduled)
      for (CompId comp : order) {
        if (fused[comp.value]) continue;
        auto& sequence = (*out_->mutable_schedule()->mutable_sequences())[id(comp)];
        for (InstId i : m_.live_order(comp)) sequence.add_instruction_ids(id(i));
      }
    aliases(c);
    if (!c.frontend_attributes.empty()) frontend(c.frontend_attributes, out_->mutable_frontend_attributes());
    if (c.replica_count != 1 || c.num_partitions != 1) {
      // Protos name every device.
      constexpr int64_t kMostDevices = 1 << 20;
      Checked count = Checked(c.replica_count) * c.num_partitions;
      if (count.capped() > kMostDevices)
        fail(FailureKind::kUnsupported,
             "a proto of a module for {} replicas of {} partitions: more than {} devices are not supported",
             c.replica_count, c.num_partitions, kMostDevices);
      auto* devices = out_->mutable_device_assignment();
      devices->set_replica_count(static_cast<int32_t>(c.replica_count));
      devices->set_computation_count(static_cast<int32_t>(c.num_partitions));
      for (int64_t p = 0, next = 0; p < c.num_partitions; ++p) {
        auto* one = devices->add_computation_devices();
        for (int64_t r = 0; r < c.replica_count; ++r) one->add_replica_device_ids(next++);
      }
    }
    // What XLA keeps outside of its protos travels as text.
    std::string rest;
    if (c.alias_passthrough_params) rest += ", alias_passthrough_params=true";
    if (!c.spmd_to_parameters.empty())
      rest += ", allow_spmd_sharding_propagation_to_parameters=" + c.spmd_to_parameters;
    if (!c.spmd_to_output.empty()) rest += ", allow_spmd_sharding_propagation_to_output=" + c.spmd_to_output;
    if (!c.origin_recovery_table.empty()) rest += ", origin_recovery_table=" + c.origin_recovery_table;
    if (!c.debug_attributes.empty()) rest += ", debug_attributes=" + c.debug_attributes;
    out_->set_hlo_replay_header(rest);
    auto* index = out_->mutable_stack_frame_index();
    for (const std::string& f : m_.stack().files) index->add_file_names(f);
    for (const std::string& f : m_.stack().functions) index->add_function_names(f);
    for (const auto& l : m_.stack().locations) {
      auto* to = index->add_file_locations();
      to->set_file_name_id(l.file), to->set_function_name_id(l.function), to->set_line(l.line),
          to->set_column(l.column);
      to->set_end_line(l.end_line), to->set_end_column(l.end_column);
    }
    for (const auto& f : m_.stack().frames) {
      auto* to = index->add_stack_frames();
      to->set_file_location_id(f.location), to->set_parent_frame_id(f.parent);
    }
    if (m_.stack().frames.empty()) out_->clear_stack_frame_index();
  }

  void literal(LitId id, xla::LiteralProto* out) {
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
    if (!s.is_array()) return;
    const std::string& b = lit.bytes;
    auto raw = [&](auto* list) {
      using T = std::decay_t<decltype(list->Get(0))>;
      list->Resize(static_cast<int>(b.size() / sizeof(T)), T{});
      if (!b.empty()) std::copy_n(b.data(), b.size(), reinterpret_cast<char*>(list->mutable_data()));
    };
    auto packed = [&] {
      size_t bits = static_cast<size_t>(type_bits(s.type)), per = 8 / bits;
      std::string out((b.size() + per - 1) / per, '\0');
      for (size_t i = 0; i < b.size(); ++i)
        out[i / per] = static_cast<char>(out[i / per] | (b[i] & ((1 << bits) - 1)) << (i % per * bits));
      return out;
    };
    switch (s.type) {
      case ElementType::Pred:
        for (char c : b) out->add_preds(c != 0);
        return;
      case ElementType::S32:
        return raw(out->mutable_s32s());
      case ElementType::S64:
        return raw(out->mutable_s64s());
      case ElementType::U32:
        return raw(out->mutable_u32s());
      case ElementType::U64:
        return raw(out->mutable_u64s());
      case ElementType::F32:
        return raw(out->mutable_f32s());
      case ElementType::F64:
        return raw(out->mutable_f64s());
      case ElementType::C64:
        return raw(out->mutable_c64s());
      case ElementType::C128:
        return raw(out->mutable_c128s());
      case ElementType::S8:
        return out->set_s8s(b);
      case ElementType::U8:
        return out->set_u8s(b);
      case ElementType::S16:
        return out->set_s16s(b);
      case ElementType::U16:
        return out->set_u16s(b);
      case ElementType::F16:
        return out->set_f16s(b);
      case ElementType::BF16:
        return out->set_bf16s(b);
      case ElementType::S1:
        return out->set_s1s(packed());
      case ElementType::S2:
        return out->set_s2s(packed());
      case ElementType::S4:
        return out->set_s4s(packed());
      case ElementType::U1:
        return out->set_u1s(packed());
      case ElementType::U2:
        return out->set_u2s(packed());
      case ElementType::U4:
        return out->set_u4s(packed());
      case ElementType::F4E2M1FN:
        return out->set_f4e2m1fns(packed());
      case ElementType::F6E2M3FN:
        return out->set_f6e2m3fns(b);
      case ElementType::F6E3M2FN:
        return out->set_f6e3m2fns(b);
      case ElementType::F8E5M2:
        return out->set_f8e5m2s(b);
      case ElementType::F8E4M3:
        return out->set_f8e4m3s(b);
      case ElementType::F8E4M3FN:
        return out->set_f8e4m3fns(b);
      case ElementType::F8E4M3B11FNUZ:
        return out->set_f8e4m3b11fnuzs(b);
      case ElementType::F8E5M2FNUZ:
        return out->set_f8e5m2fnuzs(b);
      case ElementType::F8E4M3FNUZ:
        return out->set_f8e4m3fnuzs(b);
      case ElementType::F8E3M4:
        return out->set_f8e3m4s(b);
      case ElementType::F8E8M0FNU:
        return out->set_f8e8m0fnus(b);
      default:
        fail(FailureKind::kUnsupported, "literals of type {} are not written to protos", type_name(s.type));
    }
  }

 private:
  // XLA keeps the computation's number in the upper half of an instruction's.
  int64_t id(CompId c) const { return static_cast<int64_t>(c.value) + 1; }
  int64_t id(InstId i) const { return (id(m_.parent(i)) << 32) | i.value; }

  void shape(ShapeId sid, xla::ShapeProto* out) const {
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

  static void frontend(std::string_view text, xla::FrontendAttributes* out) {
    // {a="x",b={raw}}
    for (size_t at = 1; at < text.size();) {
      size_t equals = text.find('=', at);
      if (equals == std::string_view::npos) return;
      std::string key(text.substr(at, equals - at));
      size_t end = equals + 1;
      std::string value;
      if (text[end] == '"') {
        size_t stop = end + 1;
        while (text[stop] != '"') stop += text[stop] == '\\' ? 2 : 1;
        c_unescape(text.substr(end + 1, stop - end - 1), &value);
        end = stop + 1;
      } else {
        int depth = 0;
        size_t stop = end;
        do {
          if (text[stop] == '"')
            for (++stop; text[stop] != '"'; ++stop)
              if (text[stop] == '\\') ++stop;
          if (text[stop] == '{') ++depth;
          if (text[stop] == '}') --depth;
          ++stop;
        } while (depth);
        value = std::string(text.substr(end, stop - end));
        end = stop;
      }
      (*out->mutable_map())[key] = value;
      at = end + 1;
    }
  }

  void aliases(const ModuleConfig& c) {
    for (const AliasEntry& a : parse_aliases(c.input_output_alias)) {
      auto* e = out_->mutable_input_output_alias()->add_entries();
      put(a.output, e->mutable_output_shape_index());
      e->set_parameter_number(a.number);
      put(a.index, e->mutable_parameter_shape_index());
      e->set_kind(a.must ? xla::MUST_ALIAS : xla::MAY_ALIAS);
    }
    for (const AliasEntry& a : parse_aliases(c.buffer_donor)) {
      auto* e = out_->mutable_buffer_donor()->add_entries();
      e->set_parameter_number(a.number);
      put(a.index, e->mutable_parameter_shape_index());
    }
  }

  void computation(CompId c, bool fused) {
    auto* out = out_->add_computations();
    const Computation& comp = m_.comp(c);
    out->set_name(std::string(m_.comp_name(c)));
    out->set_id(id(c));
    out->set_root_id(id(comp.root));
    out->set_is_fusion_computation(fused);
    out->set_execution_thread(comp.thread.valid() ? std::string(u_.text(comp.thread)) : "main");
    for (InstId p : comp.params) {
      shape(m_.shape_id(p), out->mutable_program_shape()->add_parameters());
      out->mutable_program_shape()->add_parameter_names(std::string(m_.inst_name(p)));
    }
    shape(m_.shape_id(comp.root), out->mutable_program_shape()->mutable_result());
    // Operands first; the order of the text where that holds.
    std::vector<InstId> order = m_.live_order(c);
    std::unordered_map<InstId, size_t> place;
    bool sorted = true;
    for (size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
    for (InstId i : order)
      for (InstId o : m_.operands(i)) sorted &= place[o] < place[i];
    if (!sorted) order = m_.post_order(c);
    for (InstId i : order) instruction(i, out->add_instructions());
  }

  void mesh(const Mesh& m, xla::MeshProto* out) {
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
  static void axis(const AxisRef& r, xla::AxisRefProto* out) {
    out->set_mesh_axis_index(static_cast<int64_t>(r.axis));
    if (r.size) out->mutable_sub_axis_info()->set_pre_size(r.pre), out->mutable_sub_axis_info()->set_size(r.size);
  }

  void op_metadata(const Metadata& d, xla::OpMetadata* out) {
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

  void sharding(const Sharding& s, xla::OpSharding* out) {
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

  std::string text(const AttrValue& v) const { return std::string(u_.text(std::get<StrId>(v))); }

  void instruction(InstId i, xla::HloInstructionProto* out) {
    const AttrSet& a = m_.attrs(i);
    Opcode op = m_.op(i);
    out->set_name(std::string(m_.inst_name(i)));
    out->set_opcode(std::string(op_text(op)));
    shape(m_.shape_id(i), out->mutable_shape());
    out->set_id(id(i));
    for (InstId o : m_.operands(i)) out->add_operand_ids(id(o));
    for (InstId p : m_.control_preds(i)) out->add_control_predecessor_ids(id(p));
    for (CompId c : m_.called(i)) out->add_called_computation_ids(id(c));
    if (op == Opcode::AsyncUpdate || op == Opcode::AsyncDone) {
      InstId start = i;
      while (m_.op(start) == Opcode::AsyncUpdate || m_.op(start) == Opcode::AsyncDone) start = m_.operand(start, 0);
      out->add_called_computation_ids(id(m_.attrs(start).comp(Attr::calls)));
    }
    if (op == Opcode::Parameter) out->set_parameter_number(m_.parameter_number(i));
    if (op == Opcode::Constant) literal(m_.literal_id(i), out->mutable_literal());
    if (m_[i].meta.valid()) op_metadata(u_[m_[i].meta], out->mutable_metadata());
    if (op == Opcode::AsyncStart && !a.has(Attr::async_execution_thread)) out->set_async_execution_thread("main");
    if (op == Opcode::Convolution || op == Opcode::CustomCall) {
      out->set_feature_group_count(a.integer(Attr::feature_group_count, 1));
      out->set_batch_group_count(a.integer(Attr::batch_group_count, 1));
    }
    if (op == Opcode::CustomCall) out->set_custom_call_api_version(xla::API_VERSION_ORIGINAL);
    if ((op == Opcode::Dot || op == Opcode::Convolution || op == Opcode::RaggedDot || op == Opcode::ScaledDot) &&
        !a.has(Attr::operand_precision))
      for (size_t k = 0; k < m_.operand_count(i); ++k)
        out->mutable_precision_config()->add_operand_precision(xla::PrecisionConfig::DEFAULT);
    if (op == Opcode::Compare && !a.has(Attr::type)) {
      ElementType t = m_.shape(m_.operand(i, 0)).type;
      out->set_comparison_type(is_float(t) || is_complex(t) ? "FLOAT" : is_signed_int(t) ? "SIGNED" : "UNSIGNED");
    }
    if (op == Opcode::TriangularSolve && !a.has(Attr::transpose_a))
      out->mutable_triangular_solve_options()->set_transpose_a(xla::TriangularSolveOptions::NO_TRANSPOSE);
    for (const auto& [key, value] : a.list) attribute(i, op, key, value, out);
  }

  void attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
    auto integer = [&] { return std::get<int64_t>(v); };
    auto flag = [&] { return std::get<bool>(v); };
    auto ints = [&](google::protobuf::RepeatedField<int64_t>* to) { put(std::get<Dims>(v), to); };
    auto* dots = op == Opcode::RaggedDot ? out->mutable_ragged_dot_dimension_numbers()->mutable_dot_dimension_numbers()
                 : op == Opcode::Dot || op == Opcode::ScaledDot ? out->mutable_dot_dimension_numbers()
                                                                : nullptr;
    auto upper = [](std::string s) {
      for (char& c : s) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
      return s;
    };
    switch (key) {
      case Attr::dimensions:
        return ints(out->mutable_dimensions());
      case Attr::iota_dimension:
      case Attr::inferred_dimension:
        return out->add_dimensions(integer());
      case Attr::index:
        return out->set_tuple_index(integer());
      case Attr::channel_id:
        return out->set_channel_id(integer());
      case Attr::replica_groups:
        return groups(text(v), out);
      case Attr::constrain_layout:
        return out->set_constrain_layout(flag());
      case Attr::use_global_device_ids:
        return out->set_use_global_device_ids(flag());
      case Attr::has_dynamic_root:
        return out->set_has_dynamic_root(flag());
      case Attr::to_apply:
      case Attr::calls:
      case Attr::select:
      case Attr::scatter:
      case Attr::body:
      case Attr::condition:
      case Attr::true_computation:
      case Attr::false_computation:
      case Attr::branch_computations:
      case Attr::called_computations:
        return;  // in called_computation_ids
      case Attr::async_execution_thread:
        return out->set_async_execution_thread(text(v));
      case Attr::output_to_operand_aliasing: {
        for (const AliasEntry& a : parse_aliases(text(v))) {
          auto* e = out->add_output_operand_aliasing();
          put(a.output, e->mutable_output_shape_index());
          e->set_operand_index(a.number);
          put(a.index, e->mutable_operand_shape_index());
        }
        return;
      }
      case Attr::window:
        for (const WindowDim& d : std::get<Window>(v).dims) {
          auto* w = out->mutable_window()->add_dimensions();
          w->set_size(d.size), w->set_stride(d.stride), w->set_padding_low(d.pad_low), w->set_padding_high(d.pad_high);
          w->set_base_dilation(d.lhs_dilate), w->set_window_dilation(d.rhs_dilate), w->set_window_reversal(d.reversal);
        }
        return;
      case Attr::dim_labels: {
        const auto& d = *std::get<Boxed<DimLabels>>(v);
        auto* c = out->mutable_convolution_dimension_numbers();
        c->set_input_batch_dimension(d.input_batch), c->set_input_feature_dimension(d.input_feature);
        c->set_kernel_input_feature_dimension(d.kernel_input), c->set_kernel_output_feature_dimension(d.kernel_output);
        c->set_output_batch_dimension(d.output_batch), c->set_output_feature_dimension(d.output_feature);
        put(d.input_spatial, c->mutable_input_spatial_dimensions());
        put(d.kernel_spatial, c->mutable_kernel_spatial_dimensions());
        put(d.output_spatial, c->mutable_output_spatial_dimensions());
        return;
      }
      case Attr::feature_group_count:
      case Attr::batch_group_count:
        return;
      case Attr::operand_precision: {
        std::string t = text(v);
        for (size_t at = 1; at < t.size();) {
          size_t end = t.find_first_of(",}", at);
          std::string w = t.substr(at, end - at);
          int number = w == "high" ? 1 : w == "highest" ? 2 : w == "packed_nibble" ? 3 : 0;
          out->mutable_precision_config()->add_operand_precision(static_cast<xla::PrecisionConfig::Precision>(number));
          at = end + 1;
        }
        return;
      }
      case Attr::algorithm: {
        std::string w = text(v);
        if (op == Opcode::RngBitGenerator)
          return out->set_rng_algorithm(w == "rng_three_fry" ? xla::RNG_THREE_FRY
                                        : w == "rng_philox"  ? xla::RNG_PHILOX
                                                             : xla::RNG_DEFAULT);
        xla::PrecisionConfig::Algorithm algorithm;
        if (!xla::PrecisionConfig_Algorithm_Parse("ALG_" + upper(w), &algorithm))
          fail(FailureKind::kUnsupported, "algorithm {} has no number in protos", w);
        return out->mutable_precision_config()->set_algorithm(algorithm);
      }
      case Attr::padding_type: {
        xla::PaddingType type;
        if (xla::PaddingType_Parse(text(v), &type)) out->set_padding_type(type);
        return;
      }
      case Attr::slice:
        for (const SliceDim& d : std::get<std::vector<SliceDim>>(v)) {
          auto* s = out->add_slice_dimensions();
          s->set_start(d.start), s->set_limit(d.limit), s->set_stride(d.stride);
        }
        return;
      case Attr::dynamic_slice_sizes:
        return ints(out->mutable_dynamic_slice_sizes());
      case Attr::slice_sizes:
        if (op == Opcode::Gather) return ints(out->mutable_gather_slice_sizes());
        return put(integers_in(text(v)), out->mutable_dynamic_slice_sizes());
      case Attr::padding:
        for (const PaddingDim& d : std::get<std::vector<PaddingDim>>(v)) {
          auto* p = out->mutable_padding_config()->add_dimensions();
          p->set_edge_padding_low(d.low), p->set_edge_padding_high(d.high), p->set_interior_padding(d.interior);
        }
        out->mutable_padding_config();
        return;
      case Attr::exponent_bits:
        return out->set_exponent_bits(static_cast<int32_t>(integer()));
      case Attr::mantissa_bits:
        return out->set_mantissa_bits(static_cast<int32_t>(integer()));
      case Attr::epsilon:
        return out->set_epsilon(static_cast<float>(std::get<double>(v)));
      case Attr::feature_index:
        return out->set_feature_index(integer());
      case Attr::custom_call_target:
        return out->set_custom_call_target(text(v));
      case Attr::operand_layout_constraints:
        out->set_constrain_layout(true);
        for (ShapeId s : std::get<std::vector<ShapeId>>(v)) shape(s, out->add_operand_shapes_with_layout());
        return;
      case Attr::custom_call_has_side_effect:
        return out->set_custom_call_has_side_effect(flag());
      case Attr::literal: {
        std::string t = text(v);
        if (t.starts_with("("))
          fail(FailureKind::kUnsupported,
               "instruction '{}': a tuple as literal of a custom-call is not written to protos", m_.inst_name(i));
        size_t depth = 0, end = 0;
        for (; end < t.size() && (depth || t[end] != ' '); ++end)
          depth += t[end] == '[' || t[end] == '{', depth -= t[end] == ']' || t[end] == '}';
        ShapeId s = parse_shape(t.substr(0, end), u_);
        return literal(parse_literal(t.substr(end), s, u_), out->mutable_literal());
      }
      case Attr::schedule: {
        xla::CustomCallSchedule schedule;
        if (xla::CustomCallSchedule_Parse(text(v), &schedule)) out->set_custom_call_schedule(schedule);
        return;
      }
      case Attr::api_version: {
        xla::CustomCallApiVersion version;
        if (xla::CustomCallApiVersion_Parse(text(v), &version)) out->set_custom_call_api_version(version);
        return;
      }
      case Attr::distribution:
        return out->set_distribution(text(v) == "rng_normal" ? xla::RNG_NORMAL : xla::RNG_UNIFORM);
      case Attr::delta:
        return out->set_delta(integer());
      case Attr::fft_type: {
        xla::FftType type;
        if (xla::FftType_Parse(text(v), &type)) out->set_fft_type(type);
        return;
      }
      case Attr::fft_length:
        return ints(out->mutable_fft_length());
      case Attr::k:
        return out->set_k(integer());
      case Attr::largest:
        return out->set_largest(flag());
      case Attr::is_stable:
        return out->set_is_stable(flag());
      case Attr::is_reverse:
        return out->set_is_reverse(flag());
      case Attr::is_associative:
        return out->set_is_associative(flag() ? xla::TRI_STATE_TRUE : xla::TRI_STATE_FALSE);
      case Attr::num_carries:
        return out->set_num_carries(integer());
      case Attr::is_composite:
        return out->set_is_composite(flag());
      case Attr::direction:
        return out->set_comparison_direction(text(v));
      case Attr::type:
        return out->set_comparison_type(text(v));
      case Attr::lhs_batch_dims:
        return ints(dots->mutable_lhs_batch_dimensions());
      case Attr::rhs_batch_dims:
        return ints(dots->mutable_rhs_batch_dimensions());
      case Attr::lhs_contracting_dims:
        return ints(dots->mutable_lhs_contracting_dimensions());
      case Attr::rhs_contracting_dims:
        return ints(dots->mutable_rhs_contracting_dimensions());
      case Attr::lhs_ragged_dims:
        return ints(out->mutable_ragged_dot_dimension_numbers()->mutable_lhs_ragged_dimensions());
      case Attr::rhs_group_dims:
        return ints(out->mutable_ragged_dot_dimension_numbers()->mutable_rhs_group_dimensions());
      case Attr::offset_dims:
        return ints(out->mutable_gather_dimension_numbers()->mutable_offset_dims());
      case Attr::collapsed_slice_dims:
        return ints(out->mutable_gather_dimension_numbers()->mutable_collapsed_slice_dims());
      case Attr::start_index_map:
        return ints(out->mutable_gather_dimension_numbers()->mutable_start_index_map());
      case Attr::operand_batching_dims:
        return ints(out->mutable_gather_dimension_numbers()->mutable_operand_batching_dims());
      case Attr::start_indices_batching_dims:
        return ints(out->mutable_gather_dimension_numbers()->mutable_start_indices_batching_dims());
      case Attr::index_vector_dim:
        return op == Opcode::Gather ? out->mutable_gather_dimension_numbers()->set_index_vector_dim(integer())
                                    : out->mutable_scatter_dimension_numbers()->set_index_vector_dim(integer());
      case Attr::update_window_dims:
        return ints(out->mutable_scatter_dimension_numbers()->mutable_update_window_dims());
      case Attr::inserted_window_dims:
        return ints(out->mutable_scatter_dimension_numbers()->mutable_inserted_window_dims());
      case Attr::scatter_dims_to_operand_dims:
        return ints(out->mutable_scatter_dimension_numbers()->mutable_scatter_dims_to_operand_dims());
      case Attr::input_batching_dims:
        return ints(out->mutable_scatter_dimension_numbers()->mutable_input_batching_dims());
      case Attr::scatter_indices_batching_dims:
        return ints(out->mutable_scatter_dimension_numbers()->mutable_scatter_indices_batching_dims());
      case Attr::indices_are_sorted:
        return out->set_indices_are_sorted(flag());
      case Attr::unique_indices:
        return out->set_unique_indices(flag());
      case Attr::infeed_config:
        return out->set_infeed_config(text(v));
      case Attr::outfeed_config:
        return out->set_outfeed_config(text(v));
      case Attr::outfeed_shape:
        return shape(std::get<ShapeId>(v), out->mutable_outfeed_shape());
      case Attr::is_host_transfer:
        return out->set_is_host_transfer(flag());
      case Attr::cross_program_prefetch_index:
        return out->set_cross_program_prefetch_index(static_cast<int32_t>(integer()));
      case Attr::left_side:
        return out->mutable_triangular_solve_options()->set_left_side(flag());
      case Attr::lower:
        return op == Opcode::Cholesky ? out->mutable_cholesky_options()->set_lower(flag())
                                      : out->mutable_triangular_solve_options()->set_lower(flag());
      case Attr::unit_diagonal:
        return out->mutable_triangular_solve_options()->set_unit_diagonal(flag());
      case Attr::transpose_a: {
        xla::TriangularSolveOptions::Transpose t;
        if (xla::TriangularSolveOptions_Transpose_Parse(text(v), &t))
          out->mutable_triangular_solve_options()->set_transpose_a(t);
        return;
      }
      case Attr::parameter_replication: {
        std::string t = text(v);
        for (size_t at = 1; at < t.size(); at = t.find_first_of(",}", at) + 1)
          if (t[at] == 't' || t[at] == 'f')
            out->mutable_parameter_replication()->add_replicated_at_leaf_buffers(t[at] == 't');
        return;
      }
      case Attr::domain: {
        std::string t = text(v);
        size_t entry = t.find("entry=") + 6, exit = t.find("exit=") + 5;
        sharding(parse_sharding("{" + std::string(body(t, entry)) + "}"), out->mutable_domain_entry_sharding());
        return sharding(parse_sharding("{" + std::string(body(t, exit)) + "}"), out->mutable_domain_exit_sharding());
      }
      case Attr::source_target_pairs:
        for (auto [from, to] : expand_pairs(text(v))) {
          auto* p = out->add_source_target_pairs();
          p->set_source(from), p->set_target(to);
        }
        return;
      case Attr::convolution_kind: {
        std::string w = text(v);
        return out->set_conv_kind(w == "fprop"   ? xla::CONVOLUTION_KIND_FPROP
                                  : w == "dgrad" ? xla::CONVOLUTION_KIND_DGRAD
                                                 : xla::CONVOLUTION_KIND_WGRAD);
      }
      case Attr::sparsity_config: {
        std::string t = text(v);
        for (const char* side : {"lhs={", "rhs={"}) {
          size_t at = t.find(side);
          if (at == std::string::npos) continue;
          Dims n = integers_in(body(t, at + 4));
          auto* s = side[0] == 'l' ? out->mutable_sparsity_config()->mutable_lhs()
                                   : out->mutable_sparsity_config()->mutable_rhs();
          s->set_num_non_zero(n.at(0)), s->set_block_size(n.at(1)), s->set_dimension(n.at(2)), s->set_stride(n.at(3));
        }
        return;
      }
      case Attr::kind:
        return out->set_fusion_kind(text(v));
      // --- what every instruction may have ---
      case Attr::sharding:
        return sharding(parse_sharding(text(v)), out->mutable_sharding());
      case Attr::frontend_attributes:
        return frontend(text(v), out->mutable_frontend_attributes());
      case Attr::statistics: {
        // {visualizing_index=0,mean=1.5}
        std::string t = text(v);
        bool first = true;
        for (size_t at = 1; at < t.size();) {
          size_t equals = t.find('=', at), end = t.find_first_of(",}", equals);
          double number = strtod(t.c_str() + equals + 1, nullptr);
          if (first) {
            out->mutable_statistics_viz()->set_stat_index_to_visualize(static_cast<int64_t>(number));
          } else {
            auto* s = out->mutable_statistics_viz()->add_statistics();
            s->set_stat_name(t.substr(at, equals - at)), s->set_stat_val(number);
          }
          first = false;
          at = end + 1;
        }
        return;
      }
      case Attr::result_accuracy: {
        std::string t = text(v);
        if (t.find("mode=highest") != std::string::npos)
          return out->mutable_result_accuracy()->set_mode(xla::ResultAccuracy::HIGHEST);
        auto* tolerance = out->mutable_result_accuracy()->mutable_tolerance();
        auto number = [&](const char* field) { return strtod(t.c_str() + t.find(field) + 5, nullptr); };
        tolerance->set_atol(number("atol=")), tolerance->set_rtol(number("rtol="));
        return tolerance->set_ulps(static_cast<int64_t>(number("ulps=")));
      }
      case Attr::origin:
        return origin(text(v), out->mutable_original_value());
      case Attr::backend_config:
        return out->set_backend_config(text(v));
      default:
        fail(FailureKind::kUnsupported, "attribute '{}' of instruction '{}' is not written to protos", attr_text(key),
             m_.inst_name(i));
    }
  }

  void groups(const std::string& t, xla::HloInstructionProto* out) {
    if (t.starts_with("[")) {
      auto* l = out->mutable_iota_collective_device_list();
      size_t arrow = t.find("<="), perm = t.find('T');
      Dims dims = integers_in(t.substr(0, arrow)),
           reshape = integers_in(t.substr(arrow, perm == std::string::npos ? perm : perm - arrow));
      l->set_num_replica_groups(dims.at(0)), l->set_num_devices_per_group(dims.at(1));
      put(reshape, l->mutable_iota_reshape_dims());
      Dims order = perm == std::string::npos ? Dims{} : integers_in(t.substr(perm));
      for (size_t k = 0; k < reshape.size(); ++k)
        l->add_iota_transpose_perm(static_cast<int32_t>(k < order.size() ? order[k] : static_cast<int64_t>(k)));
      return;
    }
    if (t.starts_with("mesh")) {
      // The axes of one dimension of a named sharding.
      size_t brace = t.rfind('{');
      Sharding s = parse_sharding("{" + t.substr(0, brace) + ", [" + t.substr(brace) + "]}");
      auto* l = out->mutable_mesh_axes_replica_group_list();
      mesh(s.mesh, l->mutable_mesh());
      for (const AxisRef& r : s.dims.at(0).axes) axis(r, l->add_axes());
      return;
    }
    std::vector<DeviceDims> list;
    expand_replica_groups(t, &list);
    for (const DeviceDims& g : list)
      put(g, out->mutable_collective_device_list()->add_replica_groups()->mutable_replica_ids());
  }

  static void origin(std::string_view t, xla::OriginalValueProto* out) {
    if (t == "{[synthetic_call]}") return out->set_is_synthetic_call(true);
    Dims index;
    for (size_t at = 1; at + 1 < t.size(); ++at) {
      char c = t[at];
      if (c == '(') {
        index.push_back(0);
      } else if (c == ')') {
        if (!index.empty()) index.pop_back();
      } else if (c == ',') {
        if (!index.empty()) ++index.back();
      } else if (c == '{') {
        auto* e = out->add_elements();
        put(index, e->mutable_shape_index());
        size_t end = at + 1;
        if (t[end] == '"') {
          size_t close = t.find('"', end + 1);
          e->mutable_original_array()->set_instruction_name(std::string(t.substr(end + 1, close - end - 1)));
          end = close + 1;
          if (t[end] == ' ') {
            size_t stop = t.find('}', end);
            put(integers_in(t.substr(end, stop - end)), e->mutable_original_array()->mutable_shape_index());
            end = stop + 1;
          }
        }
        at = t.find('}', end);
      }
    }
  }

  const Module& m_;
  Universe& u_;
  xla::HloModuleProto* out_;
};

}  // namespace

void module_to_proto(const Module& m, xla::HloModuleProto* out) { Writer(m, out).run(); }

std::string module_to_proto_bytes(const Module& m, std::string_view ending) {
  xla::HloModuleProto proto;
  module_to_proto(m, &proto);
  std::string out;
  if (ending == ".pbtxt") {
    google::protobuf::TextFormat::PrintToString(proto, &out);
    return out;
  }
  // Maps in one order, so that equal modules are equal bytes.
  {
    google::protobuf::io::StringOutputStream sink(&out);
    google::protobuf::io::CodedOutputStream coded(&sink);
    coded.SetSerializationDeterministic(true);
    if (!proto.SerializePartialToCodedStream(&coded))
      fail(FailureKind::kUnsupported, "the module is over 2 GB as a proto");
  }
  return ending == ".pb.gz" ? gzip(out) : out;
}

}  // namespace hlo
