#include "dump/proto_writer.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <unordered_map>

#include "dump/proto_writer_impl.h"
#include "ir/print/print.h"
#include "ir/sharding/aliasing.h"
#include "ir/sharding/sharding.h"
#include "parser/proto/proto_reader.h"

namespace hlo {

void ProtoWriter::run() {
  const ModuleConfig& c = m_.config();
  for (CompId comp : m_.computations()) {
    uint32_t place = 0;
    for (InstId i : m_.comp(comp).order)
      if (m_.alive(i)) places_.emplace(i, place++);
  }
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
  if (!c.spmd_to_parameters.empty()) rest += ", allow_spmd_sharding_propagation_to_parameters=" + c.spmd_to_parameters;
  if (!c.spmd_to_output.empty()) rest += ", allow_spmd_sharding_propagation_to_output=" + c.spmd_to_output;
  if (!c.origin_recovery_table.empty()) rest += ", origin_recovery_table=" + c.origin_recovery_table;
  if (!c.debug_attributes.empty()) rest += ", debug_attributes=" + c.debug_attributes;
  out_->set_hlo_replay_header(rest);
  auto* index = out_->mutable_stack_frame_index();
  for (const std::string& f : m_.stack().files) index->add_file_names(f);
  for (const std::string& f : m_.stack().functions) index->add_function_names(f);
  for (const auto& l : m_.stack().locations) {
    auto* to = index->add_file_locations();
    to->set_file_name_id(l.file), to->set_function_name_id(l.function), to->set_line(l.line), to->set_column(l.column);
    to->set_end_line(l.end_line), to->set_end_column(l.end_column);
  }
  for (const auto& f : m_.stack().frames) {
    auto* to = index->add_stack_frames();
    to->set_file_location_id(f.location), to->set_parent_frame_id(f.parent);
  }
  if (m_.stack().frames.empty()) out_->clear_stack_frame_index();
}

void ProtoWriter::aliases(const ModuleConfig& c) {
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

void ProtoWriter::computation(CompId c, bool fused) {
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

void ProtoWriter::instruction(InstId i, xla::HloInstructionProto* out) {
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

void module_to_proto(const Module& m, xla::HloModuleProto* out) { ProtoWriter(m, out).run(); }

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
