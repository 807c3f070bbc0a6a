#include "parser/proto_reader.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "hlo.pb.h"
#include "ir/print.h"
#include "ir/sharding.h"
#include "parser/parser.h"

namespace hlo {
namespace pb = google::protobuf;
namespace {

template <class List>
std::string list_text(const List& list, char open = '{', char close = '}') {
  return fmt::format("{}{}{}", open, fmt::join(list, ","), close);
}
template <class List>
Dims dims_of(const List& list) {
  return Dims(list.begin(), list.end());
}
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

std::string shape_text(const xla::ShapeProto& s, int depth = 0) {
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

template <class List>
std::vector<AxisRef> axes_of(const List& list, const Mesh& mesh) {
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

std::string metadata_of(const xla::OpMetadata& m);

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
    if (!v.empty()) out += fmt::format("{}={} ", key, quoted(v));
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

// --- modules as text that the parser reads; large literals travel beside it ---

class ProtoText {
 public:
  ProtoText(const xla::HloModuleProto& proto, Universe& u) : p_(proto), u_(u) {}

  std::string out;
  std::vector<LitId> literals;

  void module() {
    header();
    // Callees first.
    std::unordered_map<int64_t, const xla::HloComputationProto*> by_id;
    for (const auto& c : p_.computations()) {
      if (!by_id.emplace(c.id(), &c).second) fail(FailureKind::kIo, "the proto has two computations of id {}", c.id());
      comp_names_[c.id()] = unique(comp_taken_, c.name(), "computation");
    }
    if (!by_id.contains(p_.entry_computation_id()))
      fail(FailureKind::kIo, "the proto's entry is computation {}, which it does not have", p_.entry_computation_id());
    for (const auto& [id, sequence] : p_.schedule().sequences())
      if (!by_id.contains(id)) fail(FailureKind::kIo, "the proto schedules computation {}, which it does not have", id);
    std::unordered_map<int64_t, int> state;
    std::vector<std::pair<int64_t, bool>> stack;
    for (const auto& root : p_.computations()) {
      stack.push_back({root.id(), false});
      while (!stack.empty()) {
        auto [id, done] = stack.back();
        stack.pop_back();
        auto found = by_id.find(id);
        if (found == by_id.end()) fail(FailureKind::kIo, "the proto calls computation {}, which it does not have", id);
        if (done) {
          state[id] = 2;
          computation(*found->second);
          continue;
        }
        if (state[id]) {
          if (state[id] == 1)
            fail(FailureKind::kIo, "computation '{}' of the proto calls itself", found->second->name());
          continue;
        }
        state[id] = 1;
        stack.push_back({id, true});
        const auto& list = found->second->instructions();
        for (int i = list.size(); i-- > 0;) {
          // Only async-start names what it calls in text.
          if (list[i].opcode() == "async-update" || list[i].opcode() == "async-done") continue;
          for (int k = list[i].called_computation_ids_size(); k-- > 0;)
            if (state[list[i].called_computation_ids(k)] != 2)
              stack.push_back({list[i].called_computation_ids(k), false});
        }
      }
    }
  }

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

  void header() {
    out += "HloModule m";
    if (p_.has_schedule() && p_.schedule().sequences_size()) out += ", is_scheduled=true";
    if (p_.input_output_alias().entries_size()) {
      std::string text;
      for (const auto& e : p_.input_output_alias().entries())
        text += fmt::format("{}{}: ({}, {}, {})", text.empty() ? "" : ", ", list_text(e.output_shape_index()),
                            e.parameter_number(), list_text(e.parameter_shape_index()),
                            e.kind() == xla::MUST_ALIAS ? "must-alias" : "may-alias");
      out += ", input_output_alias={ " + text + " }";
    }
    if (p_.buffer_donor().entries_size()) {
      std::string text;
      for (const auto& e : p_.buffer_donor().entries())
        text += fmt::format("{}({}, {})", text.empty() ? "" : ", ", e.parameter_number(),
                            list_text(e.parameter_shape_index()));
      out += ", buffer_donor={ " + text + " }";
    }
    if (p_.has_host_program_shape()) {
      const auto& s = p_.host_program_shape();
      out += ", entry_computation_layout={(";
      for (int i = 0; i < s.parameters_size(); ++i) out += (i ? ", " : "") + shape_text(s.parameters(i));
      out += ")->" + shape_text(s.result()) + "}";
    }
    if (p_.has_device_assignment()) {
      if (p_.device_assignment().replica_count() > 1)
        out += fmt::format(", replica_count={}", p_.device_assignment().replica_count());
      if (p_.device_assignment().computation_count() > 1)
        out += fmt::format(", num_partitions={}", p_.device_assignment().computation_count());
    }
    if (p_.frontend_attributes().map_size()) out += ", frontend_attributes=" + frontend(p_.frontend_attributes());
    if (p_.original_value_recovery_table().entries_size() && p_.hlo_replay_header().empty())
      fail(FailureKind::kUnsupported, "the proto has an origin recovery table, which is not read from protos");
    out += p_.hlo_replay_header();
    out += "\n\n";
  }

  static std::string frontend(const xla::FrontendAttributes& f) {
    std::map<std::string, std::string> sorted(f.map().begin(), f.map().end());
    std::string text;
    for (const auto& [k, v] : sorted) text += fmt::format("{}{}={}", text.empty() ? "" : ",", k, quoted(v));
    return "{" + text + "}";
  }

  void computation(const xla::HloComputationProto& c) {
    if (c.id() == p_.entry_computation_id()) out += "ENTRY ";
    out += "%" + comp_names_[c.id()] + " {\n";
    std::vector<const xla::HloInstructionProto*> order;
    std::unordered_map<int64_t, const xla::HloInstructionProto*> by_id;
    for (const auto& i : c.instructions()) {
      order.push_back(&i);
      if (!by_id.emplace(i.id(), &i).second)
        fail(FailureKind::kIo, "computation '{}' of the proto has two instructions of id {}", c.name(), i.id());
      names_[i.id()] = unique(taken_, i.name(), i.opcode());
    }
    if (auto s = p_.schedule().sequences().find(c.id()); s != p_.schedule().sequences().end()) {
      if (s->second.instruction_ids_size() != c.instructions_size())
        fail(FailureKind::kIo, "the schedule of computation '{}' has {} instructions of {}", c.name(),
             s->second.instruction_ids_size(), c.instructions_size());
      order.clear();
      for (int64_t id : s->second.instruction_ids()) {
        auto found = by_id.find(id);
        if (found == by_id.end())
          fail(FailureKind::kIo, "the schedule of computation '{}' names instruction {}, which it does not have",
               c.name(), id);
        order.push_back(found->second);
      }
    }
    if (!by_id.contains(c.root_id()))
      fail(FailureKind::kIo, "the root of computation '{}' of the proto is instruction {}, which it does not have",
           c.name(), c.root_id());
    comp_ = &by_id;
    for (const auto* i : order) instruction(*i, i->id() == c.root_id());
    out += "}";
    if (!c.execution_thread().empty() && c.execution_thread() != "main")
      out += ", execution_thread=" + quoted(c.execution_thread());
    out += "\n\n";
  }

  const std::string& operand_name(const xla::HloInstructionProto& i, int64_t id) {
    auto found = comp_->find(id);
    if (found == comp_->end())
      fail(FailureKind::kIo, "instruction '{}' of the proto has operand {}, which its computation does not have",
           i.name(), id);
    return names_[id];
  }

  void instruction(const xla::HloInstructionProto& i, bool root) {
    Opcode op;
    if (!op_from_text(i.opcode(), &op))
      fail(FailureKind::kUnsupported, "instruction '{}' of the proto: unknown opcode '{}'", i.name(), i.opcode());
    out += root ? "  ROOT %" : "  %";
    out += names_[i.id()] + " = " + shape_text(i.shape()) + " " + i.opcode() + "(";
    if (op == Opcode::Parameter) {
      out += std::to_string(i.parameter_number());
    } else if (op == Opcode::Constant) {
      if (!i.has_literal()) fail(FailureKind::kUnsupported, "constant '{}' of the proto has no literal", i.name());
      out += fmt::format("#{}", literals.size());
      literals.push_back(literal_from_proto(i.literal(), u_));
    } else {
      for (int k = 0; k < i.operand_ids_size(); ++k) out += (k ? ", %" : "%") + operand_name(i, i.operand_ids(k));
    }
    out += ")";
    for (const OwnAttr& own : op_info(op).attrs) attribute(i, op, own.key);
    common(i, op);
    out += "\n";
  }

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

  void attribute(const xla::HloInstructionProto& i, Opcode op, Attr key) {
    switch (key) {
      case Attr::dimensions:
        if (op == Opcode::AllToAll && !i.dimensions_size()) return;
        return ints(key, i.dimensions());
      case Attr::iota_dimension:
      case Attr::inferred_dimension:
        if (i.dimensions_size()) put(key, std::to_string(i.dimensions(0)));
        return;
      case Attr::index:
        return put(key, std::to_string(i.tuple_index()));
      case Attr::channel_id:
        if (i.channel_id()) put(key, std::to_string(i.channel_id()));
        return;
      case Attr::replica_groups:
        return put(key, groups(i));
      case Attr::constrain_layout:
        return flag(key, i.constrain_layout());
      case Attr::use_global_device_ids:
        return flag(key, i.use_global_device_ids());
      case Attr::has_dynamic_root:
        return flag(key, i.has_dynamic_root());
      case Attr::to_apply:
      case Attr::calls:
      case Attr::select:
      case Attr::body:
      case Attr::true_computation:
        if (key == Attr::true_computation && !by_pred(i)) return;
        return put(key, "%" + called(i, 0));
      case Attr::scatter:
      case Attr::condition:
      case Attr::false_computation:
        if (key == Attr::false_computation && !by_pred(i)) return;
        return put(key, "%" + called(i, 1));
      case Attr::branch_computations:
        if (by_pred(i)) return;
        [[fallthrough]];
      case Attr::called_computations: {
        std::string list;
        for (int k = 0; k < i.called_computation_ids_size(); ++k) list += (k ? ", %" : "%") + called(i, k);
        if (!list.empty()) put(key, "{" + list + "}");
        return;
      }
      case Attr::async_execution_thread:
        if (!i.async_execution_thread().empty()) put(key, quoted(i.async_execution_thread()));
        return;
      case Attr::output_to_operand_aliasing: {
        std::string list;
        for (const auto& a : i.output_operand_aliasing())
          list += fmt::format("{}{}: ({}, {})", list.empty() ? "" : ", ", list_text(a.output_shape_index()),
                              a.operand_index(), list_text(a.operand_shape_index()));
        if (!list.empty()) put(key, "{" + list + "}");
        return;
      }
      case Attr::window:
        if (i.window().dimensions_size() || (i.has_window() && op == Opcode::CustomCall)) put(key, window(i.window()));
        return;
      case Attr::dim_labels:
        if (i.has_convolution_dimension_numbers()) put(key, dim_labels(i));
        return;
      case Attr::feature_group_count:
        if (i.feature_group_count() > 1) put(key, std::to_string(i.feature_group_count()));
        return;
      case Attr::batch_group_count:
        if (i.batch_group_count() > 1) put(key, std::to_string(i.batch_group_count()));
        return;
      case Attr::operand_precision: {
        static constexpr const char* kNames[] = {"default", "high", "highest", "packed_nibble"};
        std::string list;
        for (int v : i.precision_config().operand_precision())
          list += fmt::format("{}{}", list.empty() ? "" : ",", kNames[std::clamp(v, 0, 3)]);
        if (!list.empty()) put(key, "{" + list + "}");
        return;
      }
      case Attr::algorithm:
        if (op == Opcode::RngBitGenerator) {
          static constexpr const char* kNames[] = {"rng_default", "rng_three_fry", "rng_philox"};
          return put(key, kNames[std::clamp<int>(i.rng_algorithm(), 0, 2)]);
        }
        if (int v = i.precision_config().algorithm()) {
          std::string name = xla::PrecisionConfig_Algorithm_Name(static_cast<xla::PrecisionConfig::Algorithm>(v));
          if (name.size() < 4)
            fail(FailureKind::kUnsupported, "instruction '{}' of the proto: unknown dot algorithm {}", i.name(), v);
          for (char& c : name) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
          put(key, name.substr(4));
        }
        return;
      case Attr::padding_type:
        if (i.padding_type()) put(key, xla::PaddingType_Name(i.padding_type()));
        return;
      case Attr::slice: {
        std::string list;
        for (const auto& s : i.slice_dimensions())
          list += fmt::format("{}[{}:{}:{}]", list.empty() ? "" : ", ", s.start(), s.limit(), s.stride());
        return put(key, "{" + list + "}");
      }
      case Attr::dynamic_slice_sizes:
        return ints(key, i.dynamic_slice_sizes());
      case Attr::slice_sizes: {
        if (op == Opcode::Gather) return ints(key, i.gather_slice_sizes());
        if (!i.dynamic_slice_sizes_size()) return;
        // One list a slice, all of the operand's rank; XLA keeps them in a row.
        auto found = i.operand_ids_size() ? comp_->find(i.operand_ids(0)) : comp_->end();
        int rank = found == comp_->end() ? 0 : found->second->shape().dimensions_size();
        std::string list;
        for (int k = 0; rank > 0 && k + rank <= i.dynamic_slice_sizes_size(); k += rank)
          list += fmt::format(
              "{}{}", list.empty() ? "" : ",",
              list_text(Dims(i.dynamic_slice_sizes().begin() + k, i.dynamic_slice_sizes().begin() + k + rank)));
        return put(key, "{" + list + "}");
      }
      case Attr::padding: {
        std::string list;
        for (const auto& d : i.padding_config().dimensions())
          list += fmt::format("{}{}_{}_{}", list.empty() ? "" : "x", d.edge_padding_low(), d.edge_padding_high(),
                              d.interior_padding());
        if (!list.empty())
          put(key, list);
        else
          out += ", padding=";
        return;
      }
      case Attr::exponent_bits:
        return put(key, std::to_string(i.exponent_bits()));
      case Attr::mantissa_bits:
        return put(key, std::to_string(i.mantissa_bits()));
      case Attr::epsilon:
        return put(key, fmt::format("{:.9g}", i.epsilon()));
      case Attr::feature_index:
        return put(key, std::to_string(i.feature_index()));
      case Attr::custom_call_target:
        return put(key, quoted(i.custom_call_target()));
      case Attr::operand_layout_constraints: {
        if (!i.constrain_layout()) return;
        std::string list;
        for (const auto& s : i.operand_shapes_with_layout()) list += (list.empty() ? "" : ", ") + shape_text(s);
        return put(key, "{" + list + "}");
      }
      case Attr::custom_call_has_side_effect:
        return flag(key, i.custom_call_has_side_effect());
      case Attr::literal:
        if (i.has_literal()) {
          LitId lit = literal_from_proto(i.literal(), u_);
          put(key, u_.shape_text(u_[lit].shape) + " " + literal_text(u_, lit, true, true));
        }
        return;
      case Attr::schedule:
        if (i.custom_call_schedule()) put(key, xla::CustomCallSchedule_Name(i.custom_call_schedule()));
        return;
      case Attr::api_version:
        if (i.custom_call_api_version() > 1) put(key, xla::CustomCallApiVersion_Name(i.custom_call_api_version()));
        return;
      case Attr::distribution:
        return put(key, i.distribution() == xla::RNG_NORMAL ? "rng_normal" : "rng_uniform");
      case Attr::delta:
        return put(key, std::to_string(i.delta()));
      case Attr::fft_type:
        return put(key, xla::FftType_Name(i.fft_type()));
      case Attr::fft_length:
        return ints(key, i.fft_length());
      case Attr::k:
        return put(key, std::to_string(i.k()));
      case Attr::largest:
        return put(key, i.largest() ? "true" : "false");
      case Attr::is_stable:
        return flag(key, i.is_stable());
      case Attr::is_reverse:
        return flag(key, i.is_reverse());
      case Attr::is_associative:
        if (i.is_associative()) put(key, i.is_associative() == xla::TRI_STATE_TRUE ? "true" : "false");
        return;
      case Attr::num_carries:
        return put(key, std::to_string(i.num_carries()));
      case Attr::is_composite:
        return flag(key, i.is_composite());
      case Attr::direction:
        return put(key, i.comparison_direction());
      case Attr::type:
        if (!i.comparison_type().empty()) return put(key, i.comparison_type());
        if (!i.comparison_order().empty()) out += ", order=" + i.comparison_order();
        return;
      case Attr::lhs_batch_dims:
        return ints(key, dots(i).lhs_batch_dimensions());
      case Attr::rhs_batch_dims:
        return ints(key, dots(i).rhs_batch_dimensions());
      case Attr::lhs_contracting_dims:
        return ints(key, dots(i).lhs_contracting_dimensions());
      case Attr::rhs_contracting_dims:
        return ints(key, dots(i).rhs_contracting_dimensions());
      case Attr::lhs_ragged_dims:
        return ints(key, i.ragged_dot_dimension_numbers().lhs_ragged_dimensions());
      case Attr::rhs_group_dims:
        return ints(key, i.ragged_dot_dimension_numbers().rhs_group_dimensions());
      case Attr::offset_dims:
        return ints(key, i.gather_dimension_numbers().offset_dims());
      case Attr::collapsed_slice_dims:
        return ints(key, i.gather_dimension_numbers().collapsed_slice_dims());
      case Attr::start_index_map:
        return ints(key, i.gather_dimension_numbers().start_index_map());
      case Attr::operand_batching_dims:
        return ints(key, i.gather_dimension_numbers().operand_batching_dims());
      case Attr::start_indices_batching_dims:
        return ints(key, i.gather_dimension_numbers().start_indices_batching_dims());
      case Attr::index_vector_dim:
        return put(key, std::to_string(op == Opcode::Gather ? i.gather_dimension_numbers().index_vector_dim()
                                                            : i.scatter_dimension_numbers().index_vector_dim()));
      case Attr::update_window_dims:
        return ints(key, i.scatter_dimension_numbers().update_window_dims());
      case Attr::inserted_window_dims:
        return ints(key, i.scatter_dimension_numbers().inserted_window_dims());
      case Attr::scatter_dims_to_operand_dims:
        return ints(key, i.scatter_dimension_numbers().scatter_dims_to_operand_dims());
      case Attr::input_batching_dims:
        return ints(key, i.scatter_dimension_numbers().input_batching_dims());
      case Attr::scatter_indices_batching_dims:
        return ints(key, i.scatter_dimension_numbers().scatter_indices_batching_dims());
      case Attr::indices_are_sorted:
        return flag(key, i.indices_are_sorted());
      case Attr::unique_indices:
        return flag(key, i.unique_indices());
      case Attr::infeed_config:
        if (!i.infeed_config().empty()) put(key, quoted(i.infeed_config()));
        return;
      case Attr::outfeed_config:
        if (!i.outfeed_config().empty()) put(key, quoted(i.outfeed_config()));
        return;
      case Attr::outfeed_shape:
        if (i.has_outfeed_shape()) put(key, shape_text(i.outfeed_shape()));
        return;
      case Attr::is_host_transfer:
        return flag(key, i.is_host_transfer());
      case Attr::cross_program_prefetch_index:
        if (i.has_cross_program_prefetch_index()) put(key, std::to_string(i.cross_program_prefetch_index()));
        return;
      case Attr::left_side:
        return flag(key, i.triangular_solve_options().left_side());
      case Attr::lower:
        return flag(key, op == Opcode::Cholesky ? i.cholesky_options().lower() : i.triangular_solve_options().lower());
      case Attr::unit_diagonal:
        return flag(key, i.triangular_solve_options().unit_diagonal());
      case Attr::transpose_a:
        if (int t = i.triangular_solve_options().transpose_a())
          put(key, xla::TriangularSolveOptions_Transpose_Name(static_cast<xla::TriangularSolveOptions::Transpose>(t)));
        return;
      case Attr::parameter_replication:
        if (i.has_parameter_replication() && i.parameter_replication().replicated_at_leaf_buffers_size()) {
          std::string list;
          for (bool b : i.parameter_replication().replicated_at_leaf_buffers())
            list += fmt::format("{}{}", list.empty() ? "" : ",", b);
          put(key, "{" + list + "}");
        }
        return;
      case Attr::domain:
        return put(
            key, fmt::format("{{kind=\"sharding\", entry={}, exit={}}}", sharding_of(i.domain_entry_sharding()).text(),
                             sharding_of(i.domain_exit_sharding()).text()));
      case Attr::source_target_pairs: {
        std::string list;
        for (const auto& s : i.source_target_pairs())
          list += fmt::format("{}{{{},{}}}", list.empty() ? "" : ",", s.source(), s.target());
        return put(key, "{" + list + "}");
      }
      case Attr::convolution_kind: {
        static constexpr const char* kNames[] = {"unset", "fprop", "dgrad", "wgrad"};
        if (i.conv_kind()) put(key, kNames[std::clamp<int>(i.conv_kind(), 0, 3)]);
        return;
      }
      case Attr::sparsity_config: {
        std::string text;
        auto side = [&](const char* name, bool has, const xla::SparsitySide& s) {
          if (has)
            text += fmt::format("{}{}={{sparsity={}x{} dimension={} stride={}}}", text.empty() ? "" : " ", name,
                                s.num_non_zero(), s.block_size(), s.dimension(), s.stride());
        };
        side("lhs", i.sparsity_config().has_lhs(), i.sparsity_config().lhs());
        side("rhs", i.sparsity_config().has_rhs(), i.sparsity_config().rhs());
        if (!text.empty()) put(key, "{" + text + "}");
        return;
      }
      case Attr::kind:
        return put(key, i.fusion_kind());
      default:
        fail(FailureKind::kUnsupported, "attribute '{}' of instruction '{}' is not read from protos", attr_text(key),
             i.name());
    }
  }

  static const xla::DotDimensionNumbers& dots(const xla::HloInstructionProto& i) {
    return i.has_ragged_dot_dimension_numbers() ? i.ragged_dot_dimension_numbers().dot_dimension_numbers()
                                                : i.dot_dimension_numbers();
  }
  bool by_pred(const xla::HloInstructionProto& i) {
    auto found = i.operand_ids_size() ? comp_->find(i.operand_ids(0)) : comp_->end();
    return found != comp_->end() && found->second->shape().element_type() == xla::PRED;
  }

  static std::string window(const xla::Window& w) {
    std::string size, stride, pad, lhs, rhs, reversal;
    for (const auto& d : w.dimensions()) {
      const char* x = size.empty() ? "" : "x";
      size += fmt::format("{}{}", x, d.size()), stride += fmt::format("{}{}", x, d.stride());
      pad += fmt::format("{}{}_{}", x, d.padding_low(), d.padding_high());
      lhs += fmt::format("{}{}", x, d.base_dilation()), rhs += fmt::format("{}{}", x, d.window_dilation());
      reversal += fmt::format("{}{}", x, d.window_reversal() ? 1 : 0);
    }
    return fmt::format("{{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}", size, stride, pad,
                       lhs, rhs, reversal);
  }

  std::string dim_labels(const xla::HloInstructionProto& i) {
    const auto& d = i.convolution_dimension_numbers();
    auto rank = [&](int k) -> size_t {
      if (k < i.operand_ids_size())
        if (auto f = comp_->find(i.operand_ids(k)); f != comp_->end())
          return static_cast<size_t>(f->second->shape().dimensions_size());
      return 0;
    };
    auto labels = [&](size_t rank, int64_t a, char ca, int64_t b, char cb, const auto& spatial) {
      size_t need = std::max<size_t>(rank, static_cast<size_t>(spatial.size()) + 2);
      std::string s(need, '?');
      auto set = [&](int64_t at, char c) {
        if (at < 0 || at >= static_cast<int64_t>(need))
          fail(FailureKind::kIo, "instruction '{}' of the proto has impossible convolution dimensions", i.name());
        s[static_cast<size_t>(at)] = c;
      };
      set(a, ca), set(b, cb);
      for (int k = 0; k < spatial.size(); ++k) set(spatial[k], static_cast<char>('0' + k));
      return s;
    };
    size_t out_rank = static_cast<size_t>(i.shape().element_type() == xla::TUPLE && i.shape().tuple_shapes_size()
                                              ? i.shape().tuple_shapes(0).dimensions_size()
                                              : i.shape().dimensions_size());
    return labels(rank(0), d.input_batch_dimension(), 'b', d.input_feature_dimension(), 'f',
                  d.input_spatial_dimensions()) +
           "_" +
           labels(rank(1), d.kernel_input_feature_dimension(), 'i', d.kernel_output_feature_dimension(), 'o',
                  d.kernel_spatial_dimensions()) +
           "->" +
           labels(out_rank, d.output_batch_dimension(), 'b', d.output_feature_dimension(), 'f',
                  d.output_spatial_dimensions());
  }

  static std::string groups(const xla::HloInstructionProto& i) {
    if (i.has_iota_collective_device_list()) {
      const auto& l = i.iota_collective_device_list();
      TileAssignment t;
      t.iota = true;
      t.dims = {l.num_replica_groups(), l.num_devices_per_group()};
      t.reshape = dims_of(l.iota_reshape_dims());
      t.perm = dims_of(l.iota_transpose_perm());
      return t.text();
    }
    if (i.has_mesh_axes_replica_group_list()) {
      Mesh mesh = mesh_of(i.mesh_axes_replica_group_list().mesh());
      std::string axes;
      for (const AxisRef& r : axes_of(i.mesh_axes_replica_group_list().axes(), mesh)) {
        axes += fmt::format("{}'{}'", axes.empty() ? "" : ",", mesh.axes[r.axis].first);
        if (r.size) axes += fmt::format(":({}){}", r.pre, r.size);
      }
      return mesh.text() + " {" + axes + "}";
    }
    const auto& list =
        i.has_collective_device_list() ? i.collective_device_list().replica_groups() : i.replica_groups();
    std::string text;
    for (const auto& g : list) text += (text.empty() ? "" : ",") + list_text(g.replica_ids());
    return "{" + text + "}";
  }

  void common(const xla::HloInstructionProto& i, Opcode op) {
    if (i.has_sharding()) put(Attr::sharding, sharding_of(i.sharding()).text());
    if (i.frontend_attributes().map_size()) put(Attr::frontend_attributes, frontend(i.frontend_attributes()));
    if (i.control_predecessor_ids_size()) {
      std::string list;
      for (int64_t id : i.control_predecessor_ids()) list += (list.empty() ? "%" : ", %") + operand_name(i, id);
      out += ", control-predecessors={" + list + "}";
    }
    if (i.statistics_viz().statistics_size()) {
      std::string list = fmt::format("visualizing_index={}", i.statistics_viz().stat_index_to_visualize());
      for (const auto& s : i.statistics_viz().statistics())
        list += fmt::format(",{}={:.17g}", s.stat_name(), s.stat_val());
      put(Attr::statistics, "{" + list + "}");
    }
    if (op_info(op).transcendental && i.has_result_accuracy()) {
      const auto& r = i.result_accuracy();
      if (r.has_tolerance())
        put(Attr::result_accuracy, fmt::format("{{tolerance={{atol={:.17g},rtol={:.17g},ulps={}}}}}",
                                               r.tolerance().atol(), r.tolerance().rtol(), r.tolerance().ulps()));
      else if (r.mode() == xla::ResultAccuracy::HIGHEST)
        put(Attr::result_accuracy, "{mode=highest}");
    }
    if (i.has_original_value()) put(Attr::origin, origin(i));
    if (i.has_metadata()) {
      std::string text = metadata_of(i.metadata());
      if (i.metadata().has_metadata_payload()) {
        const auto& payload = i.metadata().metadata_payload();
        std::string bytes = payload.inline_payload();
        if (bytes.empty() && payload.payload_index() >= 0 && payload.payload_index() < p_.payloads_size())
          bytes = p_.payloads(static_cast<int>(payload.payload_index()));
        if (!bytes.empty())
          text = text.substr(0, text.size() - 1) + (text.size() > 2 ? " " : "") + "metadata_payload=" + quoted(bytes) +
                 "}";
      }
      if (text != "{}") out += ", metadata=" + text;
    }
    std::string config = i.backend_config();
    if (config.empty() && i.has_backend_config_payload()) {
      config = i.backend_config_payload().inline_payload();
      auto index = i.backend_config_payload().payload_index();
      if (config.empty() && index >= 0 && index < p_.payloads_size()) config = p_.payloads(static_cast<int>(index));
    }
    if (!config.empty()) put(Attr::backend_config, quoted(config));
  }

  // Leaves by index, put back into the tree of the shape.
  static std::string origin(const xla::HloInstructionProto& i) {
    const auto& o = i.original_value();
    if (o.is_synthetic_call()) return "{[synthetic_call]}";
    std::map<Dims, std::string> leaf;
    for (const auto& e : o.elements()) {
      std::string text = "{";
      if (!e.original_array().instruction_name().empty()) {
        text += "\"" + e.original_array().instruction_name() + "\"";
        if (e.original_array().shape_index_size()) text += " " + list_text(e.original_array().shape_index());
      }
      leaf[dims_of(e.shape_index())] = text + "}";
    }
    auto tree = [&](auto&& self, const Dims& at, int depth) -> std::string {
      if (auto f = leaf.find(at); f != leaf.end()) return f->second;
      if (depth > 100) return "{}";
      std::string list;
      for (int64_t k = 0;; ++k) {
        Dims inner = at;
        inner.push_back(k);
        auto first = leaf.lower_bound(inner);
        bool below = first != leaf.end() && first->first.size() >= inner.size() &&
                     std::equal(inner.begin(), inner.end(), first->first.begin());
        if (!below) break;
        list += (k ? ", " : "") + self(self, inner, depth + 1);
      }
      return "(" + list + ")";
    };
    return "{" + tree(tree, {}, 0) + "}";
  }

  const xla::HloModuleProto& p_;
  Universe& u_;
  std::unordered_set<std::string> taken_, comp_taken_;
  std::unordered_map<int64_t, std::string> names_, comp_names_;
  const std::unordered_map<int64_t, const xla::HloInstructionProto*>* comp_ = nullptr;
};

// --- forms ---

bool usable(const xla::HloModuleProto& m) {
  for (const auto& c : m.computations())
    if (c.instructions_size()) return true;
  return false;
}

// Any of XLA's messages that hold a module.
struct Message {
  std::string kind;
  xla::HloModuleProto module;
  xla::HloProto proto;
  xla::HloSnapshot snapshot;
  xla::HloUnoptimizedSnapshot unoptimized;

  const pb::Message& whole() const {
    if (kind == "HloModuleProto") return module;
    if (kind == "HloProto") return proto;
    if (kind == "HloSnapshot") return snapshot;
    return unoptimized;
  }
  const xla::HloModuleProto& hlo() const {
    if (kind == "HloModuleProto") return module;
    if (kind == "HloProto") return proto.hlo_module();
    if (kind == "HloSnapshot") return snapshot.hlo().hlo_module();
    return unoptimized.hlo_module();
  }
};

// Protobuf's reader of texts recurses at every bracket, known field or not.
void check_nesting(std::string_view text, const std::string& label) {
  constexpr int kDeepest = 1000;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      while (++at < text.size() && text[at] != c && text[at] != '\n') at += text[at] == '\\';
    } else if (c == '{' || c == '<' || c == '[') {
      if (++depth > kDeepest)
        fail(FailureKind::kUnsupported, "{}: a proto in text form that is nested more than {} levels deep", label,
             kDeepest);
    } else if (c == '}' || c == '>' || c == ']') {
      --depth;
    }
  }
}

void read_message(std::string_view bytes, const std::string& label, Message* out) {
  std::string unpacked;
  if (bytes.starts_with("\x1f\x8b")) {
    unpacked = gunzip(bytes, label);
    bytes = unpacked;
  }
  bool text = !looks_like_proto(bytes) &&
              std::all_of(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(std::min<size_t>(bytes.size(), 4096)),
                          [](char c) {
                            auto b = static_cast<unsigned char>(c);
                            return b == '\n' || b == '\r' || b == '\t' || (b >= 32 && b != 127);
                          });
  if (text) check_nesting(bytes, label);
  auto attempt = [&](const char* kind, pb::Message& message) {
    if (text) {
      pb::TextFormat::Parser parser;
      parser.AllowUnknownField(true);
      struct Quiet : pb::io::ErrorCollector {
        void AddError(int, int, const std::string&) override {}
        void AddWarning(int, int, const std::string&) override {}
      } quiet;
      parser.RecordErrorsTo(&quiet);
      pb::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
      if (!parser.Parse(&in, &message)) return false;
    } else {
      pb::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
      if (!message.ParsePartialFromZeroCopyStream(&in)) return false;
    }
    out->kind = kind;
    return usable(out->hlo());
  };
  if (bytes.size() > static_cast<size_t>(INT32_MAX))
    fail(FailureKind::kUnsupported, "{}: protos of more than 2 GB are not possible", label);
  pb::LogSilencer quiet;
  if (attempt("HloModuleProto", out->module) || attempt("HloProto", out->proto) ||
      attempt("HloSnapshot", out->snapshot) || attempt("HloUnoptimizedSnapshot", out->unoptimized))
    return;
  fail(FailureKind::kIo,
       "{}: not a proto of XLA with a module (HloModuleProto, HloProto, HloSnapshot): truncated, damaged or of another "
       "kind; a SessionModule of 2017 holds no HLO",
       label);
}

}  // namespace

bool looks_like_proto(std::string_view b) {
  if (b.starts_with("\x1f\x8b")) return true;
  // Field 1 with a length, as all of them start; HLO text never begins with a line feed and a control byte.
  // Nor with a byte of several, as the length of a name of more than 127 has.
  if (b.size() > 2 && b[0] == '\n' && static_cast<unsigned char>(b[1]) >= 0x80) return true;
  return b.size() > 2 && b[0] == '\n' &&
         b.substr(0, 512).find_first_of(std::string_view(
             "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x18\x1a", 20)) !=
             std::string_view::npos;
}

LitId literal_from_proto(const xla::LiteralProto& p, Universe& u) {
  Literal lit;
  lit.shape = parse_shape(shape_text(p.shape()), u);
  const Shape& s = u[lit.shape];
  lit.elided = p.hlo_replay_elided();
  if (lit.elided && !p.tuple_literals_size()) return u.literal(std::move(lit));
  if (s.is_tuple()) {
    if (p.tuple_literals_size() != static_cast<int>(s.elements.size()))
      fail(FailureKind::kIo, "a tuple literal of the proto has {} elements of {}", p.tuple_literals_size(),
           s.elements.size());
    for (const auto& e : p.tuple_literals()) lit.elements.push_back(literal_from_proto(e, u));
    return u.literal(std::move(lit));
  }
  if (!s.is_array()) return u.literal(std::move(lit));
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  int64_t want = s.elements_count();
  auto size_check = [&](size_t have) {
    if (have != static_cast<size_t>(want))
      fail(FailureKind::kIo, "a literal of the proto has {} elements, its shape {} has {}", have,
           u.shape_text_plain(lit.shape), want);
  };
  auto raw = [&](const auto& list) {
    using T = std::decay_t<decltype(list[0])>;
    size_check(static_cast<size_t>(list.size()));
    lit.bytes.assign(reinterpret_cast<const char*>(list.data()), static_cast<size_t>(list.size()) * sizeof(T));
  };
  auto parts = [&](const auto& list) {
    using T = std::decay_t<decltype(list[0])>;
    size_check(static_cast<size_t>(list.size()) / 2);
    lit.bytes.assign(reinterpret_cast<const char*>(list.data()), static_cast<size_t>(list.size()) * sizeof(T));
  };
  auto bytes = [&](const std::string& b) {
    size_check(b.size() / width);
    lit.bytes = b;
  };
  // Numbers of 4 bits and less lie two and more in a byte, the first in the low bits.
  auto packed = [&](const std::string& b) {
    size_t per = 8 / static_cast<size_t>(type_bits(s.type)), n = static_cast<size_t>(want);
    if (b.size() == n && n != (n + per - 1) / per) return bytes(b);
    if (b.size() != (n + per - 1) / per) size_check(b.size() * per);
    lit.bytes.resize(n);
    for (size_t i = 0; i < n; ++i) {
      int bits = type_bits(s.type);
      int v = static_cast<unsigned char>(b[i / per]) >> (static_cast<int>(i % per) * bits) & ((1 << bits) - 1);
      if (is_signed_int(s.type) && v >> (bits - 1)) v -= 1 << bits;
      lit.bytes[i] = static_cast<char>(v);
    }
  };
  switch (s.type) {
    case ElementType::Pred:
      size_check(static_cast<size_t>(p.preds_size()));
      for (bool b : p.preds()) lit.bytes += static_cast<char>(b);
      break;
    case ElementType::S32:
      raw(p.s32s());
      break;
    case ElementType::S64:
      raw(p.s64s());
      break;
    case ElementType::U32:
      raw(p.u32s());
      break;
    case ElementType::U64:
      raw(p.u64s());
      break;
    case ElementType::F32:
      raw(p.f32s());
      break;
    case ElementType::F64:
      raw(p.f64s());
      break;
    case ElementType::C64:
      parts(p.c64s());
      break;
    case ElementType::C128:
      parts(p.c128s());
      break;
    case ElementType::S8:
      bytes(p.s8s());
      break;
    case ElementType::U8:
      bytes(p.u8s());
      break;
    case ElementType::S16:
      bytes(p.s16s());
      break;
    case ElementType::U16:
      bytes(p.u16s());
      break;
    case ElementType::F16:
      bytes(p.f16s());
      break;
    case ElementType::BF16:
      bytes(p.bf16s());
      break;
    case ElementType::S1:
      packed(p.s1s());
      break;
    case ElementType::S2:
      packed(p.s2s());
      break;
    case ElementType::S4:
      packed(p.s4s());
      break;
    case ElementType::U1:
      packed(p.u1s());
      break;
    case ElementType::U2:
      packed(p.u2s());
      break;
    case ElementType::U4:
      packed(p.u4s());
      break;
    case ElementType::F4E2M1FN:
      packed(p.f4e2m1fns());
      break;
    case ElementType::F6E2M3FN:
      bytes(p.f6e2m3fns());
      break;
    case ElementType::F6E3M2FN:
      bytes(p.f6e3m2fns());
      break;
    case ElementType::F8E5M2:
      bytes(p.f8e5m2s());
      break;
    case ElementType::F8E4M3:
      bytes(p.f8e4m3s());
      break;
    case ElementType::F8E4M3FN:
      bytes(p.f8e4m3fns());
      break;
    case ElementType::F8E4M3B11FNUZ:
      bytes(p.f8e4m3b11fnuzs());
      break;
    case ElementType::F8E5M2FNUZ:
      bytes(p.f8e5m2fnuzs());
      break;
    case ElementType::F8E4M3FNUZ:
      bytes(p.f8e4m3fnuzs());
      break;
    case ElementType::F8E3M4:
      bytes(p.f8e3m4s());
      break;
    case ElementType::F8E8M0FNU:
      bytes(p.f8e8m0fnus());
      break;
    default:
      fail(FailureKind::kUnsupported, "literals of type {} are not read from protos", type_name(s.type));
  }
  return u.literal(std::move(lit));
}

ProtoContents read_proto(std::string_view bytes, const std::string& label, const std::shared_ptr<Universe>& universe) {
  Message message;
  read_message(bytes, label, &message);
  ProtoContents out;
  out.kind = message.kind;
  const xla::HloModuleProto& p = message.hlo();
  ProtoText text(p, *universe);
  text.module();
  ParseOptions options;
  options.file = label + " (as text)";
  options.literals = &text.literals;
  out.module = parse_module(text.out, universe, options);
  out.module->name = p.name();
  StackTables& stack = out.module->stack;
  const auto& index = p.stack_frame_index();
  stack.files.assign(index.file_names().begin(), index.file_names().end());
  stack.functions.assign(index.function_names().begin(), index.function_names().end());
  for (const auto& l : index.file_locations())
    stack.locations.push_back(
        {l.file_name_id(), l.function_name_id(), l.line(), l.end_line(), l.column(), l.end_column()});
  for (const auto& f : index.stack_frames()) stack.frames.push_back({f.file_location_id(), f.parent_frame_id()});
  if (message.kind == "HloSnapshot") {
    for (const auto& a : message.snapshot.arguments()) out.arguments.push_back(literal_from_proto(a, *universe));
    if (message.snapshot.has_result()) out.result = literal_from_proto(message.snapshot.result(), *universe);
  } else if (message.kind == "HloUnoptimizedSnapshot" && message.unoptimized.partitions_size()) {
    for (const auto& a : message.unoptimized.partitions(0).arguments())
      out.arguments.push_back(literal_from_proto(a, *universe));
  }
  return out;
}

std::string reencode_proto(std::string_view bytes, const std::string& label, std::string_view ending) {
  Message message;
  read_message(bytes, label, &message);
  std::string out;
  if (ending == ".pbtxt") {
    pb::TextFormat::PrintToString(message.whole(), &out);
    return out;
  }
  out = message.whole().SerializePartialAsString();
  return ending == ".pb.gz" ? gzip(out) : out;
}

}  // namespace hlo
