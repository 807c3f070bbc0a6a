// The `HloModule …` line and the tables of sources behind it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/base/stack_guard.h"
#include "ir/print/printer.h"
#include "ir/sharding/sharding.h"

namespace hlo {

void Printer::header() {
  const ModuleConfig& c = m_.config();
  out += "HloModule ";
  if (!o_.fingerprint) out += m_.name();
  if (c.is_scheduled) out += ", is_scheduled=true";
  if (!c.input_output_alias.empty()) out += ", input_output_alias=" + c.input_output_alias;
  if (!c.buffer_donor.empty()) out += ", buffer_donor=" + c.buffer_donor;
  if (c.alias_passthrough_params) out += ", alias_passthrough_params=true";
  if (o_.dialect_2019) {
    out += "\n\n";
    return;
  }
  if (c.has_entry_layout) {
    out += ", entry_computation_layout={(";
    for (size_t i = 0; i < c.entry_params.size(); ++i) {
      if (i) {
        out += ", ";
        if (i % 5 == 0) out += fmt::format("/*index={}*/", i);
      }
      out += u_.shape_text(c.entry_params[i]);
    }
    out += ")->" + u_.shape_text(c.entry_result) + "}";
  }
  if (!c.spmd_to_parameters.empty()) out += ", allow_spmd_sharding_propagation_to_parameters=" + c.spmd_to_parameters;
  if (!c.spmd_to_output.empty()) out += ", allow_spmd_sharding_propagation_to_output=" + c.spmd_to_output;
  if (c.replica_count != 1) out += fmt::format(", replica_count={}", c.replica_count);
  if (c.num_partitions != 1) out += fmt::format(", num_partitions={}", c.num_partitions);
  if (!c.frontend_attributes.empty()) out += ", frontend_attributes=" + c.frontend_attributes;
  if (!c.origin_recovery_table.empty()) out += ", origin_recovery_table=" + c.origin_recovery_table;
  if (!c.debug_attributes.empty()) out += ", debug_attributes=" + c.debug_attributes;
  out += c.kept_verbatim;
  out += "\n\n";
}

void Printer::stack_tables() {
  const StackTables& s = m_.stack();
  if (s.empty()) return;
  frame_map_.assign(s.frames.size() + 1, 0);
  std::vector<int32_t> frames, locations, files, functions;
  std::vector<int32_t> location_map(s.locations.size() + 1, 0), file_map(s.files.size() + 1, 0),
      function_map(s.functions.size() + 1, 0);
  auto number = [](std::vector<int32_t>& map, std::vector<int32_t>& list, int32_t i) {
    if (i <= 0 || static_cast<size_t>(i) >= map.size()) return false;
    int32_t& slot = map[static_cast<size_t>(i)];
    if (slot) return false;
    list.push_back(i);
    slot = static_cast<int32_t>(list.size());
    return true;
  };
  for (CompId c : o_.stable_order ? print_order(m_, true) : m_.computations())
    for (InstId i : o_.stable_order ? print_order(m_, c) : m_.comp(c).order) {
      if (!m_.alive(i)) continue;
      std::vector<int32_t> chain;
      for (int32_t f = u_[m_[i].meta].stack_frame_id;
           f > 0 && static_cast<size_t>(f) <= s.frames.size() && !frame_map_[static_cast<size_t>(f)];
           f = s.frames[static_cast<size_t>(f - 1)].parent) {
        if (chain.size() == s.frames.size()) break;  // frames that call each other: each stands there once
        chain.push_back(f);
      }
      for (; !chain.empty(); chain.pop_back()) {
        int32_t f = chain.back(), l = s.frames[static_cast<size_t>(f - 1)].location;
        if (l > 0 && static_cast<size_t>(l) <= s.locations.size()) {
          number(file_map, files, s.locations[static_cast<size_t>(l - 1)].file);
          number(function_map, functions, s.locations[static_cast<size_t>(l - 1)].function);
        }
        number(location_map, locations, l);
        number(frame_map_, frames, f);
      }
    }
  if (frames.empty()) return;
  auto at = [](const std::vector<int32_t>& map, int32_t i) {
    return i > 0 && static_cast<size_t>(i) < map.size() ? map[static_cast<size_t>(i)] : i;
  };
  int32_t row = 0;
  out += "FileNames\n";
  auto name_rows = [&](const std::vector<int32_t>& list, const std::vector<std::string>& names) {
    for (int32_t i : list) {
      append_number(out, ++row);
      out += " \"", out += c_escape(names[static_cast<size_t>(i - 1)]), out += "\"\n";
    }
  };
  auto fields = [&](std::initializer_list<std::pair<std::string_view, int64_t>> list) {
    append_number(out, ++row);
    const char* before = " {";
    for (const auto& [key, v] : list) out += before, out += key, append_number(out, v), before = " ";
    out += "}\n";
  };
  name_rows(files, s.files);
  out += "\nFunctionNames\n", row = 0;
  name_rows(functions, s.functions);
  out += "\nFileLocations\n", row = 0;
  for (int32_t i : locations) {
    const auto& l = s.locations[static_cast<size_t>(i - 1)];
    fields({{"file_name_id=", at(file_map, l.file)},
            {"function_name_id=", at(function_map, l.function)},
            {"line=", l.line},
            {"end_line=", l.end_line},
            {"column=", l.column},
            {"end_column=", l.end_column}});
  }
  out += "\nStackFrames\n", row = 0;
  for (int32_t i : frames) {
    const auto& f = s.frames[static_cast<size_t>(i - 1)];
    fields({{"file_location_id=", at(location_map, f.location)},
            {"parent_frame_id=", int64_t{at(frame_map_, f.parent)} + 1}});
  }
  out += "\n\n";
}

}  // namespace hlo
