// Attributes of instructions as fields of the proto.
#include <algorithm>
#include <unordered_map>

#include "dump/proto_writer.h"
#include "dump/proto_writer_impl.h"
#include "ir/print/print.h"
#include "ir/sharding/aliasing.h"
#include "ir/sharding/sharding.h"
#include "parser/parser.h"

namespace hlo {

std::string_view body(std::string_view text, size_t at) {
  int depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '(') ++depth;
    if ((text[i] == '}' || text[i] == ')') && --depth == 0) return text.substr(at + 1, i - at - 1);
  }
  return {};
}

void ProtoWriter::frontend(std::string_view text, xla::FrontendAttributes* out) {
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

namespace {

std::string upper(std::string s) {
  for (char& c : s) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
  return s;
}

}  // namespace

void ProtoWriter::unwritten(InstId i, Attr key) const {
  fail(FailureKind::kUnsupported, "attribute '{}' of instruction '{}' is not written to protos", attr_text(key),
       m_.inst_name(i));
}

void ProtoWriter::attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
  // A dot with any attribute has these numbers, empty or not.
  auto* dots = op == Opcode::RaggedDot ? out->mutable_ragged_dot_dimension_numbers()->mutable_dot_dimension_numbers()
               : op == Opcode::Dot || op == Opcode::ScaledDot ? out->mutable_dot_dimension_numbers()
                                                              : nullptr;
  if (key >= Attr::sharding) return common_attribute(i, key, v, out);
  switch (attr_kind(key)) {
    case AttrKind::Bool:
      return flag_attribute(i, op, key, v, out);
    case AttrKind::Int:
      return integer_attribute(i, op, key, v, out);
    case AttrKind::Ints:
      return dimensions_attribute(i, op, key, v, dots, out);
    case AttrKind::Enum:
      return word_attribute(i, op, key, v, out);
    case AttrKind::Str:
      return string_attribute(i, key, v, out);
    case AttrKind::Raw:
      return bracketed_attribute(i, key, v, out);
    case AttrKind::Comp:
    case AttrKind::Comps:
      return;  // in called_computation_ids
    default:
      return structured_attribute(i, key, v, out);
  }
}

void ProtoWriter::flag_attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
  const bool flag = std::get<bool>(v);
  switch (key) {
    case Attr::constrain_layout:
      return out->set_constrain_layout(flag);
    case Attr::use_global_device_ids:
      return out->set_use_global_device_ids(flag);
    case Attr::has_dynamic_root:
      return out->set_has_dynamic_root(flag);
    case Attr::custom_call_has_side_effect:
      return out->set_custom_call_has_side_effect(flag);
    case Attr::largest:
      return out->set_largest(flag);
    case Attr::is_stable:
      return out->set_is_stable(flag);
    case Attr::is_reverse:
      return out->set_is_reverse(flag);
    case Attr::is_associative:
      return out->set_is_associative(flag ? xla::TRI_STATE_TRUE : xla::TRI_STATE_FALSE);
    case Attr::is_composite:
      return out->set_is_composite(flag);
    case Attr::indices_are_sorted:
      return out->set_indices_are_sorted(flag);
    case Attr::unique_indices:
      return out->set_unique_indices(flag);
    case Attr::is_host_transfer:
      return out->set_is_host_transfer(flag);
    case Attr::left_side:
      return out->mutable_triangular_solve_options()->set_left_side(flag);
    case Attr::lower:
      return op == Opcode::Cholesky ? out->mutable_cholesky_options()->set_lower(flag)
                                    : out->mutable_triangular_solve_options()->set_lower(flag);
    case Attr::unit_diagonal:
      return out->mutable_triangular_solve_options()->set_unit_diagonal(flag);
    default:
      unwritten(i, key);
  }
}

void ProtoWriter::integer_attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
  const int64_t integer = std::get<int64_t>(v);
  switch (key) {
    case Attr::iota_dimension:
    case Attr::inferred_dimension:
      return out->add_dimensions(integer);
    case Attr::index:
      return out->set_tuple_index(integer);
    case Attr::channel_id:
      return out->set_channel_id(integer);
    case Attr::feature_group_count:
    case Attr::batch_group_count:
      return;
    case Attr::exponent_bits:
      return out->set_exponent_bits(static_cast<int32_t>(integer));
    case Attr::mantissa_bits:
      return out->set_mantissa_bits(static_cast<int32_t>(integer));
    case Attr::feature_index:
      return out->set_feature_index(integer);
    case Attr::delta:
      return out->set_delta(integer);
    case Attr::k:
      return out->set_k(integer);
    case Attr::num_carries:
      return out->set_num_carries(integer);
    case Attr::index_vector_dim:
      return op == Opcode::Gather ? out->mutable_gather_dimension_numbers()->set_index_vector_dim(integer)
                                  : out->mutable_scatter_dimension_numbers()->set_index_vector_dim(integer);
    case Attr::cross_program_prefetch_index:
      return out->set_cross_program_prefetch_index(static_cast<int32_t>(integer));
    default:
      unwritten(i, key);
  }
}

void ProtoWriter::dimensions_attribute(InstId i, Opcode op, Attr key, const AttrValue& v,
                                       xla::DotDimensionNumbers* dots, xla::HloInstructionProto* out) {
  auto ints = [&](google::protobuf::RepeatedField<int64_t>* to) { put(std::get<Dims>(v), to); };
  switch (key) {
    case Attr::dimensions:
      return ints(out->mutable_dimensions());
    case Attr::dynamic_slice_sizes:
      return ints(out->mutable_dynamic_slice_sizes());
    case Attr::slice_sizes:
      if (op == Opcode::Gather) return ints(out->mutable_gather_slice_sizes());
      return put(integers_in(text(v)), out->mutable_dynamic_slice_sizes());
    case Attr::fft_length:
      return ints(out->mutable_fft_length());
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
    default:
      unwritten(i, key);
  }
}

void ProtoWriter::word_attribute(InstId i, Opcode op, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
  const std::string word = text(v);
  switch (key) {
    case Attr::algorithm: {
      if (op == Opcode::RngBitGenerator)
        return out->set_rng_algorithm(word == "rng_three_fry" ? xla::RNG_THREE_FRY
                                      : word == "rng_philox"  ? xla::RNG_PHILOX
                                                              : xla::RNG_DEFAULT);
      xla::PrecisionConfig::Algorithm algorithm;
      if (!xla::PrecisionConfig_Algorithm_Parse("ALG_" + upper(word), &algorithm))
        fail(FailureKind::kUnsupported, "algorithm {} has no number in protos", word);
      return out->mutable_precision_config()->set_algorithm(algorithm);
    }
    case Attr::padding_type: {
      xla::PaddingType type;
      if (xla::PaddingType_Parse(word, &type)) out->set_padding_type(type);
      return;
    }
    case Attr::schedule: {
      xla::CustomCallSchedule schedule;
      if (xla::CustomCallSchedule_Parse(word, &schedule)) out->set_custom_call_schedule(schedule);
      return;
    }
    case Attr::api_version: {
      xla::CustomCallApiVersion version;
      if (xla::CustomCallApiVersion_Parse(word, &version)) out->set_custom_call_api_version(version);
      return;
    }
    case Attr::distribution:
      return out->set_distribution(word == "rng_normal" ? xla::RNG_NORMAL : xla::RNG_UNIFORM);
    case Attr::fft_type: {
      xla::FftType type;
      if (xla::FftType_Parse(word, &type)) out->set_fft_type(type);
      return;
    }
    case Attr::direction:
      return out->set_comparison_direction(word);
    case Attr::type:
      return out->set_comparison_type(word);
    case Attr::transpose_a: {
      xla::TriangularSolveOptions::Transpose t;
      if (xla::TriangularSolveOptions_Transpose_Parse(word, &t))
        out->mutable_triangular_solve_options()->set_transpose_a(t);
      return;
    }
    case Attr::convolution_kind: {
      return out->set_conv_kind(word == "fprop"   ? xla::CONVOLUTION_KIND_FPROP
                                : word == "dgrad" ? xla::CONVOLUTION_KIND_DGRAD
                                                  : xla::CONVOLUTION_KIND_WGRAD);
    }
    case Attr::kind:
      return out->set_fusion_kind(word);
    default:
      unwritten(i, key);
  }
}

void ProtoWriter::string_attribute(InstId i, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
  switch (key) {
    case Attr::async_execution_thread:
      return out->set_async_execution_thread(text(v));
    case Attr::custom_call_target:
      return out->set_custom_call_target(text(v));
    case Attr::infeed_config:
      return out->set_infeed_config(text(v));
    case Attr::outfeed_config:
      return out->set_outfeed_config(text(v));
    default:
      unwritten(i, key);
  }
}

void ProtoWriter::bracketed_attribute(InstId i, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
  switch (key) {
    case Attr::replica_groups:
      return groups(text(v), out);
    case Attr::output_to_operand_aliasing: {
      for (const AliasEntry& a : parse_aliases(text(v))) {
        auto* e = out->add_output_operand_aliasing();
        put(a.output, e->mutable_output_shape_index());
        e->set_operand_index(a.number);
        put(a.index, e->mutable_operand_shape_index());
      }
      return;
    }
    case Attr::operand_precision:
      return precision(text(v), out);
    case Attr::literal:
      return literal_operand(i, text(v), out);
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
    case Attr::sparsity_config:
      return sparsity(text(v), out);
    default:
      unwritten(i, key);
  }
}

void ProtoWriter::common_attribute(InstId i, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
  switch (key) {
    case Attr::sharding:
      return sharding(parse_sharding(text(v)), out->mutable_sharding());
    case Attr::frontend_attributes:
      return frontend(text(v), out->mutable_frontend_attributes());
    case Attr::statistics:
      return statistics(text(v), out);
    case Attr::result_accuracy:
      return accuracy(text(v), out);
    case Attr::origin:
      return origin(text(v), out->mutable_original_value());
    case Attr::backend_config:
      return out->set_backend_config(text(v));
    default:
      unwritten(i, key);
  }
}

void ProtoWriter::structured_attribute(InstId i, Attr key, const AttrValue& v, xla::HloInstructionProto* out) {
  switch (key) {
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
    case Attr::slice:
      for (const SliceDim& d : std::get<std::vector<SliceDim>>(v)) {
        auto* s = out->add_slice_dimensions();
        s->set_start(d.start), s->set_limit(d.limit), s->set_stride(d.stride);
      }
      return;
    case Attr::padding:
      for (const PaddingDim& d : std::get<std::vector<PaddingDim>>(v)) {
        auto* p = out->mutable_padding_config()->add_dimensions();
        p->set_edge_padding_low(d.low), p->set_edge_padding_high(d.high), p->set_interior_padding(d.interior);
      }
      out->mutable_padding_config();
      return;
    case Attr::epsilon:
      return out->set_epsilon(static_cast<float>(std::get<double>(v)));
    case Attr::operand_layout_constraints:
      out->set_constrain_layout(true);
      for (ShapeId s : std::get<std::vector<ShapeId>>(v)) shape(s, out->add_operand_shapes_with_layout());
      return;
    case Attr::outfeed_shape:
      return shape(std::get<ShapeId>(v), out->mutable_outfeed_shape());
    default:
      unwritten(i, key);
  }
}

void ProtoWriter::precision(const std::string& t, xla::HloInstructionProto* out) {
  for (size_t at = 1; at < t.size();) {
    size_t end = t.find_first_of(",}", at);
    std::string w = t.substr(at, end - at);
    int number = w == "high" ? 1 : w == "highest" ? 2 : w == "packed_nibble" ? 3 : 0;
    out->mutable_precision_config()->add_operand_precision(static_cast<xla::PrecisionConfig::Precision>(number));
    at = end + 1;
  }
}

void ProtoWriter::literal_operand(InstId i, const std::string& t, xla::HloInstructionProto* out) {
  if (t.starts_with("("))
    fail(FailureKind::kUnsupported, "instruction '{}': a tuple as literal of a custom-call is not written to protos",
         m_.inst_name(i));
  size_t depth = 0, end = 0;
  for (; end < t.size() && (depth || t[end] != ' '); ++end)
    depth += t[end] == '[' || t[end] == '{', depth -= t[end] == ']' || t[end] == '}';
  ShapeId s = parse_shape(t.substr(0, end), u_);
  return literal(parse_literal(t.substr(end), s, u_), out->mutable_literal());
}

void ProtoWriter::sparsity(const std::string& t, xla::HloInstructionProto* out) {
  for (const char* side : {"lhs={", "rhs={"}) {
    size_t at = t.find(side);
    if (at == std::string::npos) continue;
    Dims n = integers_in(body(t, at + 4));
    auto* s =
        side[0] == 'l' ? out->mutable_sparsity_config()->mutable_lhs() : out->mutable_sparsity_config()->mutable_rhs();
    s->set_num_non_zero(n.at(0)), s->set_block_size(n.at(1)), s->set_dimension(n.at(2)), s->set_stride(n.at(3));
  }
}

void ProtoWriter::statistics(const std::string& t, xla::HloInstructionProto* out) {
  // {visualizing_index=0,mean=1.5}
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
}

void ProtoWriter::accuracy(const std::string& t, xla::HloInstructionProto* out) {
  if (t.find("mode=highest") != std::string::npos)
    return out->mutable_result_accuracy()->set_mode(xla::ResultAccuracy::HIGHEST);
  auto* tolerance = out->mutable_result_accuracy()->mutable_tolerance();
  auto number = [&](const char* field) { return strtod(t.c_str() + t.find(field) + 5, nullptr); };
  tolerance->set_atol(number("atol=")), tolerance->set_rtol(number("rtol="));
  return tolerance->set_ulps(static_cast<int64_t>(number("ulps=")));
}

void ProtoWriter::groups(const std::string& t, xla::HloInstructionProto* out) {
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

void ProtoWriter::origin(std::string_view t, xla::OriginalValueProto* out) {
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

}  // namespace hlo
