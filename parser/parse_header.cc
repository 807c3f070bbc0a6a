// The header of a module: its configuration, and the tables of sources behind it.
#include <algorithm>
#include <map>

#include "ir/print/print.h"
#include "parser/parser_impl.h"

namespace hlo {

std::string Parser::alias_text(bool donor) {
  auto index_text = [](const Dims& path) { return fmt::format("{{{}}}", fmt::join(path, ",")); };
  // By output; donors by parameter. XLA keeps both sorted and without repeats.
  std::map<std::vector<int64_t>, std::string> entries;
  expect('{', "before aliases");
  bool first = true;
  while (!eat('}')) {
    if (!first) expect(',', "between aliases");
    first = false;
    std::vector<int64_t> key;
    std::string out;
    if (!donor) {
      skip();
      size_t place = at_;
      key = int_list("a shape index");
      alias_outputs_.emplace_back(key, place);
      out = index_text(key) + ": ";
      expect(':', "after an output's index");
    }
    expect('(', "before a parameter's index");
    uint64_t number = natural("the number of a parameter");
    expect(',', "after the number of a parameter");
    Dims path = int_list("a shape index");
    out += fmt::format("({}, {}", number, index_text(path));
    if (donor) {
      key = path;
      key.insert(key.begin(), static_cast<int64_t>(number));
    } else {
      std::string_view kind = "may-alias";
      if (eat(',')) {
        skip();
        size_t place = at_;
        kind = word();
        if (kind != "may-alias" && kind != "must-alias") error_at(place, "an alias is may-alias or must-alias");
      }
      out += ", " + std::string(kind);
    }
    entries.emplace(std::move(key), out + ")");
    expect(')', "after an alias");
  }
  std::string all;
  for (const auto& [key, text] : entries) all += (all.empty() ? "{ " : ", ") + text;
  return all.empty() ? all : all + " }";
}

void Parser::header() {
  m_->set_module_name(std::string(u_.text(name("the name of the module"))));
  eat(':');
  std::vector<std::string> seen;
  while (eat(',')) {
    skip();
    size_t start = at_;
    std::string key(word());
    if (peek() != '=') error_at(start, "expected a field of the module header");
    ++at_;
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      error_at(start, "header field '{}' is given twice", key);
    seen.push_back(key);
    ModuleConfig& c = m_->edit_config();
    auto flags = [&](std::string& slot) {
      skip();
      if (peek() == '{') {
        slot = "{";
        ++at_;
        while (!eat('}')) {
          if (slot.size() > 1) expect(',', "between flags"), slot += ",";
          slot += boolean("a flag") ? "true" : "false";
        }
        slot += "}";
      } else {
        slot = boolean("a flag") ? "{true}" : "{false}";
      }
      if (slot == "{false}" || slot == "{}") slot.clear();
    };
    if (key == "is_scheduled")
      c.is_scheduled = boolean("is_scheduled");
    else if (key == "input_output_alias")
      c.input_output_alias = alias_text(false);
    else if (key == "buffer_donor")
      c.buffer_donor = alias_text(true);
    else if (key == "alias_passthrough_params")
      c.alias_passthrough_params = boolean("alias_passthrough_params");
    else if (key == "replica_count")
      c.replica_count = integer("replica_count");
    else if (key == "num_partitions")
      c.num_partitions = integer("num_partitions");
    else if (key == "allow_spmd_sharding_propagation_to_parameters")
      flags(c.spmd_to_parameters);
    else if (key == "allow_spmd_sharding_propagation_to_output")
      flags(c.spmd_to_output);
    else if (key == "frontend_attributes")
      c.frontend_attributes = canonical_dict();
    else if (key == "origin_recovery_table")
      c.origin_recovery_table = origin_recovery_table();
    else if (key == "debug_attributes")
      c.debug_attributes = balanced();
    else if (key == "entry_computation_layout") {
      expect('{', "before the entry layout");
      expect('(', "before the entry's parameters");
      while (!eat(')')) {
        if (!c.entry_params.empty()) expect(',', "between the entry's parameters");
        c.entry_params.push_back(shape());
      }
      if (!eat("->")) error_here("expected '->'");
      c.entry_result = shape();
      expect('}', "after the entry layout");
      c.has_entry_layout = true;
    } else if (options_.permissive) {
      c.kept_verbatim += fmt::format(", {}={}", key, raw_value());
    } else {
      std::string_view best;
      int distance = 5;
      for (std::string_view known : {"is_scheduled", "input_output_alias", "buffer_donor", "alias_passthrough_params",
                                     "replica_count", "num_partitions", "allow_spmd_sharding_propagation_to_parameters",
                                     "allow_spmd_sharding_propagation_to_output", "frontend_attributes",
                                     "origin_recovery_table", "debug_attributes", "entry_computation_layout"})
        if (int d = edit_distance(key, known); d < distance) distance = d, best = known;
      error(start, fmt::format("unknown header field '{}'", key),
            best.empty() ? "" : fmt::format("did you mean '{}'?", best));
    }
  }
}

// `{a=1 b=2}` with just these fields in this order, as XLA writes them: false, and nothing read, for all others.
bool Parser::fields_in_order(std::initializer_list<std::pair<std::string_view, int32_t*>> list) {
  size_t at = at_;
  bool first = true;
  for (const auto& [key, slot] : list) {
    if (at >= text_.size() || text_[at] != (first ? '{' : ' ')) return false;
    if (text_.compare(++at, key.size(), key) != 0) return false;
    at += key.size(), first = false;
    size_t digits = at;
    int32_t value = 0;
    while (at < text_.size() && at - digits < 9 && text_[at] >= '0' && text_[at] <= '9')
      value = value * 10 + (text_[at++] - '0');
    if (at == digits) return false;
    *slot = value;
  }
  if (at >= text_.size() || text_[at] != '}') return false;
  at_ = at + 1;
  return true;
}

template <class Set>
void Parser::row_fields(const Set& set) {
  expect('{', "before a table row");
  while (!eat('}')) {
    skip();
    if (peek() == ',') {
      ++at_;
      continue;
    }
    size_t place = at_;
    std::string_view key = word();
    if (peek() != '=') error_at(place, "expected a field of a table row");
    ++at_;
    if (!set(key, static_cast<int32_t>(integer("a number")))) error_at(place, "unknown field '{}'", key);
  }
}

StackTables::Location Parser::file_location() {
  StackTables::Location l;
  skip();
  if (fields_in_order({{"file_name_id=", &l.file},
                       {"function_name_id=", &l.function},
                       {"line=", &l.line},
                       {"end_line=", &l.end_line},
                       {"column=", &l.column},
                       {"end_column=", &l.end_column}})) {
    return l;
  }
  l = {};
  row_fields([&](std::string_view key, int32_t v) {
    if (key == "file_name_id")
      l.file = v;
    else if (key == "function_name_id")
      l.function = v;
    else if (key == "line")
      l.line = v;
    else if (key == "end_line")
      l.end_line = v;
    else if (key == "column")
      l.column = v;
    else if (key == "end_column")
      l.end_column = v;
    else
      return false;
    return true;
  });
  return l;
}

StackTables::Frame Parser::stack_frame() {
  StackTables::Frame f;
  skip();
  if (int32_t parent = 0; fields_in_order({{"file_location_id=", &f.location}, {"parent_frame_id=", &parent}})) {
    f.parent = parent - 1;
    return f;
  }
  f = {};
  row_fields([&](std::string_view key, int32_t v) {
    if (key == "file_location_id")
      f.location = v;
    else if (key == "parent_frame_id")
      f.parent = static_cast<int32_t>(int64_t{v} - 1);  // written one too high: 1 is no parent
    else
      return false;
    return true;
  });
  return f;
}

void Parser::stack_tables() {
  StackTables& s = m_->edit_stack();
  auto numbered = [&] {
    skip();
    return peek() >= '0' && peek() <= '9';
  };
  for (;;) {
    if (eat_word("FileNames")) {
      while (numbered()) integer("a number"), s.files.push_back(quoted("a file name"));
    } else if (eat_word("FunctionNames")) {
      while (numbered()) integer("a number"), s.functions.push_back(quoted("a function name"));
    } else if (eat_word("FileLocations")) {
      while (numbered()) integer("a number"), s.locations.push_back(file_location());
    } else if (eat_word("StackFrames")) {
      while (numbered()) integer("a number"), s.frames.push_back(stack_frame());
    } else {
      return;
    }
  }
}

}  // namespace hlo
