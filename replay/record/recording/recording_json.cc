// recording.json, written as it goes: as a tree of values first it cost more than the store beside it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "replay/record/recording/recording.h"

namespace hlo {
namespace {

// The text that nlohmann's dump(1) gives of the same values.
class JsonLines {
 public:
  std::string out;

  void open(char bracket) {
    out += bracket;
    ++depth_;
    first_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!first_) line();
    first_ = false;
    out += bracket;
  }
  // In front of a member, or of an element.
  void key(std::string_view name) {
    next();
    text(name);
    out += ": ";
  }
  void next() {
    if (!first_) out += ',';
    first_ = false;
    line();
  }
  void text(std::string_view t) {
    for (char c : t)
      if (c < ' ' || c == '"' || c == '\\' || c == 0x7F) {
        out += nlohmann::json(t).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        return;
      }
    out += '"';
    out += t;
    out += '"';
  }
  void member(std::string_view name, std::string_view value) { key(name), text(value); }
  void member(std::string_view name, const char* value) { member(name, std::string_view(value)); }
  void member(std::string_view name, bool value) { key(name), out += value ? "true" : "false"; }
  template <class N>
  requires(std::integral<N> && !std::same_as<N, bool>) void member(std::string_view name, N value) {
    key(name);
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
  void member(std::string_view name, const std::vector<std::string>& list) {
    key(name);
    open('[');
    for (const std::string& t : list) next(), text(t);
    close(']');
  }

 private:
  void line() {
    out += '\n';
    out.append(depth_, ' ');
  }
  size_t depth_ = 0;
  bool first_ = true;
};

void write_row(JsonLines& j, const StageRow& row) {
  j.next();
  j.open('{');
  j.member("kind", row.kind_name());
  j.member("name", row.name());
  if (row.number >= 0) j.member("number", row.number);
  if (!row.pipeline.empty()) j.member("pipeline", row.pipeline);
  if (!row.pass.empty()) j.member("pass", row.pass);
  if (!row.next.empty()) j.member("next", row.next);
  j.member("changed", row.changed);
  if (!row.implemented) j.member("implemented", false);
  if (row.disabled) j.member("disabled", true);
  if (row.microseconds >= 0) j.member("microseconds", row.microseconds);
  j.member("instructions_before", row.before), j.member("instructions_after", row.after);
  j.member("added", row.added), j.member("removed", row.removed), j.member("modified", row.modified);
  if (row.rewrites) j.member("rewrites", row.rewrites);
  if (row.stage >= 0) j.member("stage", row.stage);
  if (!row.file.empty()) j.member("file", row.file);
  if (!row.notes.empty()) {
    j.key("notes");
    j.open('[');
    for (const Note& n : row.notes) {
      j.next();
      j.open('{');
      j.member("rule", n.rule), j.member("instructions", n.names);
      if (!n.text.empty()) j.member("text", n.text);
      j.close('}');
    }
    j.close(']');
  }
  j.close('}');
}

}  // namespace

std::string recording_json(const Recording& r) {
  JsonLines j;
  j.open('{');
  j.member("version", 1), j.member("source", r.source), j.member("module", r.module_name);
  j.member("module_number", r.module_number), j.member("pipeline", r.pipeline);
  j.key("stages");
  j.open('[');
  for (const StageRow& row : r.rows) write_row(j, row);
  j.close(']');
  j.member("files", r.other_files);
  if (!r.missing.empty()) j.member("missing", r.missing);
  if (!r.problems.empty()) j.member("problems", r.problems);
  j.close('}');
  return std::move(j.out) + "\n";
}

}  // namespace hlo
