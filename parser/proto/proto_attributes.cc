// Attributes of a proto's instructions as text.
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

void ProtoText::unread(const xla::HloInstructionProto& i, Attr key) {
  fail(FailureKind::kUnsupported, "attribute '{}' of instruction '{}' is not read from protos", attr_text(key),
       i.name());
}

void ProtoText::attribute(const xla::HloInstructionProto& i, Opcode op, Attr key) {
  switch (attr_kind(key)) {
    case AttrKind::Bool:
      return flag_attribute(i, op, key);
    case AttrKind::Int:
      return integer_attribute(i, op, key);
    case AttrKind::Ints:
      return dimensions_attribute(i, op, key);
    case AttrKind::Enum:
      return word_attribute(i, op, key);
    case AttrKind::Str:
      return string_attribute(i, key);
    case AttrKind::Raw:
      return bracketed_attribute(i, key);
    case AttrKind::Comp:
    case AttrKind::Comps:
      return called_attribute(i, key);
    default:
      return structured_attribute(i, op, key);
  }
}

void ProtoText::flag_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key) {
  switch (key) {
    case Attr::constrain_layout:
      return flag(key, i.constrain_layout());
    case Attr::use_global_device_ids:
      return flag(key, i.use_global_device_ids());
    case Attr::has_dynamic_root:
      return flag(key, i.has_dynamic_root());
    case Attr::custom_call_has_side_effect:
      return flag(key, i.custom_call_has_side_effect());
    case Attr::largest:
      return put(key, i.largest() ? "true" : "false");
    case Attr::is_stable:
      return flag(key, i.is_stable());
    case Attr::is_reverse:
      return flag(key, i.is_reverse());
    case Attr::is_associative:
      if (i.is_associative()) put(key, i.is_associative() == xla::TRI_STATE_TRUE ? "true" : "false");
      return;
    case Attr::is_composite:
      return flag(key, i.is_composite());
    case Attr::indices_are_sorted:
      return flag(key, i.indices_are_sorted());
    case Attr::unique_indices:
      return flag(key, i.unique_indices());
    case Attr::is_host_transfer:
      return flag(key, i.is_host_transfer());
    case Attr::left_side:
      return flag(key, i.triangular_solve_options().left_side());
    case Attr::lower:
      return flag(key, op == Opcode::Cholesky ? i.cholesky_options().lower() : i.triangular_solve_options().lower());
    case Attr::unit_diagonal:
      return flag(key, i.triangular_solve_options().unit_diagonal());
    default:
      unread(i, key);
  }
}

void ProtoText::integer_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key) {
  switch (key) {
    case Attr::iota_dimension:
    case Attr::inferred_dimension:
      if (i.dimensions_size()) put(key, std::to_string(i.dimensions(0)));
      return;
    case Attr::index:
      return put(key, std::to_string(i.tuple_index()));
    case Attr::channel_id:
      if (i.channel_id()) put(key, std::to_string(i.channel_id()));
      return;
    case Attr::feature_group_count:
      if (i.feature_group_count() > 1) put(key, std::to_string(i.feature_group_count()));
      return;
    case Attr::batch_group_count:
      if (i.batch_group_count() > 1) put(key, std::to_string(i.batch_group_count()));
      return;
    case Attr::exponent_bits:
      return put(key, std::to_string(i.exponent_bits()));
    case Attr::mantissa_bits:
      return put(key, std::to_string(i.mantissa_bits()));
    case Attr::feature_index:
      return put(key, std::to_string(i.feature_index()));
    case Attr::delta:
      return put(key, std::to_string(i.delta()));
    case Attr::k:
      return put(key, std::to_string(i.k()));
    case Attr::num_carries:
      return put(key, std::to_string(i.num_carries()));
    case Attr::index_vector_dim:
      return put(key, std::to_string(op == Opcode::Gather ? i.gather_dimension_numbers().index_vector_dim()
                                                          : i.scatter_dimension_numbers().index_vector_dim()));
    case Attr::cross_program_prefetch_index:
      if (i.has_cross_program_prefetch_index()) put(key, std::to_string(i.cross_program_prefetch_index()));
      return;
    default:
      unread(i, key);
  }
}

void ProtoText::dimensions_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key) {
  switch (key) {
    case Attr::dimensions:
      if (op == Opcode::AllToAll && !i.dimensions_size()) return;
      return ints(key, i.dimensions());
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
    case Attr::fft_length:
      return ints(key, i.fft_length());
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
    default:
      unread(i, key);
  }
}

void ProtoText::word_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key) {
  switch (key) {
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
    case Attr::schedule:
      if (i.custom_call_schedule()) put(key, xla::CustomCallSchedule_Name(i.custom_call_schedule()));
      return;
    case Attr::api_version:
      if (i.custom_call_api_version() > 1) put(key, xla::CustomCallApiVersion_Name(i.custom_call_api_version()));
      return;
    case Attr::distribution:
      return put(key, i.distribution() == xla::RNG_NORMAL ? "rng_normal" : "rng_uniform");
    case Attr::fft_type:
      return put(key, xla::FftType_Name(i.fft_type()));
    case Attr::direction:
      return put(key, i.comparison_direction());
    case Attr::type:
      if (!i.comparison_type().empty()) return put(key, i.comparison_type());
      if (!i.comparison_order().empty()) out += ", order=" + i.comparison_order();
      return;
    case Attr::transpose_a:
      if (int t = i.triangular_solve_options().transpose_a())
        put(key, xla::TriangularSolveOptions_Transpose_Name(static_cast<xla::TriangularSolveOptions::Transpose>(t)));
      return;
    case Attr::convolution_kind: {
      static constexpr const char* kNames[] = {"unset", "fprop", "dgrad", "wgrad"};
      if (i.conv_kind()) put(key, kNames[std::clamp<int>(i.conv_kind(), 0, 3)]);
      return;
    }
    case Attr::kind:
      return put(key, i.fusion_kind());
    default:
      unread(i, key);
  }
}

void ProtoText::string_attribute(const xla::HloInstructionProto& i, Attr key) {
  switch (key) {
    case Attr::async_execution_thread:
      if (!i.async_execution_thread().empty()) put(key, hlo::quoted(i.async_execution_thread()));
      return;
    case Attr::custom_call_target:
      return put(key, hlo::quoted(i.custom_call_target()));
    case Attr::infeed_config:
      if (!i.infeed_config().empty()) put(key, hlo::quoted(i.infeed_config()));
      return;
    case Attr::outfeed_config:
      if (!i.outfeed_config().empty()) put(key, hlo::quoted(i.outfeed_config()));
      return;
    default:
      unread(i, key);
  }
}

void ProtoText::bracketed_attribute(const xla::HloInstructionProto& i, Attr key) {
  switch (key) {
    case Attr::replica_groups:
      return put(key, groups(i));
    case Attr::output_to_operand_aliasing: {
      std::string list;
      for (const auto& a : i.output_operand_aliasing())
        list += fmt::format("{}{}: ({}, {})", list.empty() ? "" : ", ", list_text(a.output_shape_index()),
                            a.operand_index(), list_text(a.operand_shape_index()));
      if (!list.empty()) put(key, "{" + list + "}");
      return;
    }
    case Attr::operand_precision: {
      static constexpr const char* kNames[] = {"default", "high", "highest", "packed_nibble"};
      std::string list;
      for (int v : i.precision_config().operand_precision())
        list += fmt::format("{}{}", list.empty() ? "" : ",", kNames[std::clamp(v, 0, 3)]);
      if (!list.empty()) put(key, "{" + list + "}");
      return;
    }
    case Attr::literal:
      if (i.has_literal()) {
        LitId lit = literal_from_proto(i.literal(), u_);
        put(key, u_.shape_text(u_[lit].shape) + " " + literal_text(u_, lit, true, true));
      }
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
      return put(key,
                 fmt::format("{{kind=\"sharding\", entry={}, exit={}}}", sharding_of(i.domain_entry_sharding()).text(),
                             sharding_of(i.domain_exit_sharding()).text()));
    case Attr::source_target_pairs: {
      std::string list;
      for (const auto& s : i.source_target_pairs())
        list += fmt::format("{}{{{},{}}}", list.empty() ? "" : ",", s.source(), s.target());
      return put(key, "{" + list + "}");
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
    default:
      unread(i, key);
  }
}

void ProtoText::structured_attribute(const xla::HloInstructionProto& i, Opcode op, Attr key) {
  switch (key) {
    case Attr::window:
      if (i.window().dimensions_size() || (i.has_window() && op == Opcode::CustomCall)) put(key, window(i.window()));
      return;
    case Attr::dim_labels:
      if (i.has_convolution_dimension_numbers()) put(key, dim_labels(i));
      return;
    case Attr::slice: {
      std::string list;
      for (const auto& s : i.slice_dimensions())
        list += fmt::format("{}[{}:{}:{}]", list.empty() ? "" : ", ", s.start(), s.limit(), s.stride());
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
    case Attr::epsilon:
      return put(key, fmt::format("{:.9g}", i.epsilon()));
    case Attr::operand_layout_constraints: {
      if (!i.constrain_layout()) return;
      std::string list;
      for (const auto& s : i.operand_shapes_with_layout()) list += (list.empty() ? "" : ", ") + shape_text(s);
      return put(key, "{" + list + "}");
    }
    case Attr::outfeed_shape:
      if (i.has_outfeed_shape()) put(key, shape_text(i.outfeed_shape()));
      return;
    default:
      unread(i, key);
  }
}

void ProtoText::called_attribute(const xla::HloInstructionProto& i, Attr key) {
  switch (key) {
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
    default:
      unread(i, key);
  }
}

std::string ProtoText::window(const xla::Window& w) {
  std::string size, stride, pad, lhs, rhs, reversal;
  for (const auto& d : w.dimensions()) {
    const char* x = size.empty() ? "" : "x";
    size += fmt::format("{}{}", x, d.size()), stride += fmt::format("{}{}", x, d.stride());
    pad += fmt::format("{}{}_{}", x, d.padding_low(), d.padding_high());
    lhs += fmt::format("{}{}", x, d.base_dilation()), rhs += fmt::format("{}{}", x, d.window_dilation());
    reversal += fmt::format("{}{}", x, d.window_reversal() ? 1 : 0);
  }
  return fmt::format("{{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}", size, stride, pad, lhs,
                     rhs, reversal);
}

std::string ProtoText::dim_labels(const xla::HloInstructionProto& i) {
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

std::string ProtoText::groups(const xla::HloInstructionProto& i) {
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
  const auto& list = i.has_collective_device_list() ? i.collective_device_list().replica_groups() : i.replica_groups();
  std::string text;
  for (const auto& g : list) text += (text.empty() ? "" : ",") + list_text(g.replica_ids());
  return "{" + text + "}";
}

void ProtoText::common(const xla::HloInstructionProto& i, Opcode op) {
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
        text = text.substr(0, text.size() - 1) + (text.size() > 2 ? " " : "") +
               "metadata_payload=" + hlo::quoted(bytes) + "}";
    }
    if (text != "{}") out += ", metadata=" + text;
  }
  std::string config = i.backend_config();
  if (config.empty() && i.has_backend_config_payload()) {
    config = i.backend_config_payload().inline_payload();
    auto index = i.backend_config_payload().payload_index();
    if (config.empty() && index >= 0 && index < p_.payloads_size()) config = p_.payloads(static_cast<int>(index));
  }
  if (!config.empty()) put(Attr::backend_config, hlo::quoted(config));
}

std::string ProtoText::origin(const xla::HloInstructionProto& i) {
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

}  // namespace hlo
