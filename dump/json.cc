#include "dump/json.h"

#include <nlohmann/json.hpp>

#include "ir/print.h"

namespace hlo {

std::string module_json(const Module& m, bool large) {
  using nlohmann::ordered_json;
  const Universe& u = m.u();
  ordered_json out;
  out["version"] = 1;
  out["name"] = m.name;
  out["entry"] = m.comp_name(m.entry());
  out["is_scheduled"] = m.config.is_scheduled;
  out["replica_count"] = m.config.replica_count;
  out["num_partitions"] = m.config.num_partitions;
  ordered_json& comps = out["computations"] = ordered_json::array();
  for (CompId c : print_order(m)) {
    ordered_json comp;
    comp["name"] = m.comp_name(c);
    comp["root"] = m.inst_name(m.comp(c).root);
    ordered_json& list = comp["instructions"] = ordered_json::array();
    for (InstId i : print_order(m, c)) {
      ordered_json inst;
      inst["name"] = m.inst_name(i);
      inst["opcode"] = op_text(m.op(i));
      inst["shape"] = u.shape_text(m.shape_id(i));
      ordered_json operands = ordered_json::array();
      for (InstId o : m.operands(i)) operands.push_back(m.inst_name(o));
      if (!operands.empty()) inst["operands"] = std::move(operands);
      if (m.op(i) == Opcode::Parameter) inst["parameter"] = m.parameter_number(i);
      if (m.op(i) == Opcode::Constant) inst["literal"] = literal_text(u, m.literal_id(i), large);
      std::string attrs = print_attributes(m, i);
      if (!attrs.empty()) inst["attributes"] = attrs.substr(2);
      const Metadata& meta = u[m[i].meta];
      ordered_json metadata;
      if (StrId t(meta.op_type); t.valid()) metadata["op_type"] = u.text(t);
      if (StrId t(meta.op_name); t.valid()) metadata["op_name"] = u.text(t);
      if (StrId t(meta.source_file); t.valid()) metadata["source_file"] = u.text(t);
      if (meta.source_line) metadata["source_line"] = meta.source_line;
      if (!metadata.empty()) inst["metadata"] = std::move(metadata);
      list.push_back(std::move(inst));
    }
    comps.push_back(std::move(comp));
  }
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace hlo
