// Modules, computations and instructions of protos as text.
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

void ProtoText::module() {
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
        if (state[id] == 1) fail(FailureKind::kIo, "computation '{}' of the proto calls itself", found->second->name());
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

void ProtoText::header() {
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

void ProtoText::computation(const xla::HloComputationProto& c) {
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
    out += ", execution_thread=" + hlo::quoted(c.execution_thread());
  out += "\n\n";
}

void ProtoText::instruction(const xla::HloInstructionProto& i, bool root) {
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

}  // namespace hlo
