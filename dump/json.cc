#include "dump/json.h"

#include <nlohmann/json.hpp>

#include "ir/print/print.h"

namespace hlo {
namespace {

using nlohmann::ordered_json;

struct TextField {
  const char* key;
  uint32_t Metadata::*field;
};
constexpr TextField kTexts[] = {{"op_type", &Metadata::op_type},
                                {"op_name", &Metadata::op_name},
                                {"source_file", &Metadata::source_file},
                                {"deduplicated_name", &Metadata::deduplicated_name},
                                {"scheduling_name", &Metadata::scheduling_name},
                                {"metadata_payload", &Metadata::payload}};
struct NumberField {
  const char* key;
  int32_t Metadata::*field;
};
constexpr NumberField kNumbers[] = {{"source_line", &Metadata::source_line},
                                    {"source_end_line", &Metadata::source_end_line},
                                    {"source_column", &Metadata::source_column},
                                    {"source_end_column", &Metadata::source_end_column},
                                    {"stack_frame_id", &Metadata::stack_frame_id}};

ordered_json metadata_json(const Universe& u, const Metadata& m) {
  ordered_json out;
  for (const TextField& t : kTexts)
    if (StrId s(m.*t.field); s.valid()) out[t.key] = u.text(s);
  for (const NumberField& n : kNumbers)
    if (m.*n.field) out[n.key] = m.*n.field;
  if (StrId s(m.profile_type); s.valid()) out["profile_type"] = u.text(s);
  return out;
}

}  // namespace

std::string module_json(const Module& m, bool large) {
  const Universe& u = m.u();
  PrintOptions lossless;
  lossless.lossless = lossless.stable_order = true;
  lossless.stack_tables = false;
  ordered_json out;
  out["version"] = 2;
  out["name"] = m.name();
  out["entry"] = m.comp_name(m.entry());
  out["is_scheduled"] = m.config().is_scheduled;
  out["replica_count"] = m.config().replica_count;
  out["num_partitions"] = m.config().num_partitions;
  std::string header = print_header(m, lossless);
  out["header"] = header;
  if (!m.stack().empty()) {
    ordered_json& stack = out["stack"];
    stack["files"] = m.stack().files;
    stack["functions"] = m.stack().functions;
    stack["locations"] = ordered_json::array();
    for (const auto& l : m.stack().locations)
      stack["locations"].push_back({l.file, l.function, l.line, l.column, l.end_line, l.end_column});
    stack["frames"] = ordered_json::array();
    for (const auto& f : m.stack().frames) stack["frames"].push_back({f.location, f.parent});
  }
  ordered_json& comps = out["computations"] = ordered_json::array();
  for (CompId c : print_order(m, true)) {
    ordered_json comp;
    comp["name"] = m.comp_name(c);
    comp["root"] = m.inst_name(m.comp(c).root);
    if (m.comp(c).thread.valid()) comp["execution_thread"] = u.text(m.comp(c).thread);
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
      if (m.op(i) == Opcode::Constant) inst["literal"] = literal_text(u, m.literal_id(i), large, true);
      std::string attrs = print_attributes(m, i, lossless);
      if (!attrs.empty()) inst["attributes"] = attrs.substr(2);
      if (ordered_json metadata = metadata_json(u, u[m[i].meta]); !metadata.empty())
        inst["metadata"] = std::move(metadata);
      list.push_back(std::move(inst));
    }
    comps.push_back(std::move(comp));
  }
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool looks_like_module_json(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.substr(0, 4096).find("\"version\"") != std::string_view::npos;
}

std::string text_of_json(std::string_view text, const std::string& label, StackTables* stack) {
  ordered_json in;
  try {
    in = ordered_json::parse(text);
    if (in.value("version", 0) != 2)
      fail(FailureKind::kUnsupported, "{}: this is JSON, but no module of version 2 (docs/formats.md)", label);
    std::string out = in.at("header").get<std::string>();
    if (in.contains("stack")) {
      const auto& s = in["stack"];
      stack->files = s.at("files").get<std::vector<std::string>>();
      stack->functions = s.at("functions").get<std::vector<std::string>>();
      for (const auto& l : s.at("locations"))
        stack->locations.push_back({l.at(0), l.at(1), l.at(2), l.at(4), l.at(3), l.at(5)});
      for (const auto& f : s.at("frames")) stack->frames.push_back({f.at(0), f.at(1)});
    }
    for (const auto& c : in.at("computations")) {
      std::string name = c.at("name"), root = c.at("root");
      out += (name == in.at("entry").get<std::string>() ? "ENTRY %" : "%") + name + " {\n";
      for (const auto& i : c.at("instructions")) {
        std::string inst = i.at("name");
        out += (inst == root ? "  ROOT %" : "  %") + inst + " = " + i.at("shape").get<std::string>() + " " +
               i.at("opcode").get<std::string>() + "(";
        if (i.contains("parameter")) out += std::to_string(i["parameter"].get<int64_t>());
        if (i.contains("literal")) out += i["literal"].get<std::string>();
        bool first = true;
        if (i.contains("operands"))
          for (const auto& o : i["operands"]) {
            out += (first ? "%" : ", %") + o.get<std::string>();
            first = false;
          }
        out += ")";
        if (i.contains("attributes")) out += ", " + i["attributes"].get<std::string>();
        if (i.contains("metadata")) {
          out += ", metadata={";
          for (const auto& [key, v] : i["metadata"].items())
            out += key + "=" +
                   (v.is_number()           ? std::to_string(v.get<int64_t>())
                    : key == "profile_type" ? v.get<std::string>()
                                            : "\"" + c_escape(v.get<std::string>()) + "\"") +
                   " ";
          out += "}";
        }
        out += "\n";
      }
      out += "}";
      if (c.contains("execution_thread"))
        out += ", execution_thread=\"" + c_escape(c["execution_thread"].get<std::string>()) + "\"";
      out += "\n\n";
    }
    return out;
  } catch (const nlohmann::json::exception& e) {
    fail(FailureKind::kIo, "{}: {}", label, e.what());
  }
}

}  // namespace hlo
