#include "ir/source_lines.h"

#include <unordered_set>

namespace hlo {
namespace {

// A row of a table, counted from 1; null where there is none.
template <class T>
const T* table_row(const std::vector<T>& table, int32_t number) {
  return number > 0 && static_cast<size_t>(number) <= table.size() ? &table[static_cast<size_t>(number) - 1] : nullptr;
}

SourceLine line_of_frame(const StackTables& s, const StackTables::Frame& frame) {
  SourceLine out;
  const StackTables::Location* at = table_row(s.locations, frame.location);
  if (!at) return out;
  if (const std::string* file = table_row(s.files, at->file)) out.file = *file;
  if (const std::string* function = table_row(s.functions, at->function)) out.function = *function;
  out.line = at->line, out.column = at->column;
  return out;
}

SourceLine line_of_metadata(const Module& m, const Metadata& d) {
  SourceLine out;
  if (d.source_file == StrId::kNone) return out;
  out.file = m.u().text(StrId(d.source_file));
  out.line = d.source_line, out.column = d.source_column;
  return out;
}

// The first of a kernel's operations, from its result towards its operands, of which `tell` says something.
template <class Tell>
auto first_told(const Module& m, InstId inst, const Tell& tell) -> decltype(tell(inst)) {
  auto own = tell(inst);
  if (own != decltype(own){} || m.op(inst) != Opcode::Fusion || m.called(inst).empty()) return own;
  std::vector<InstId> list{m.comp(m.called(inst)[0]).root};
  std::unordered_set<InstId> seen{list[0]};
  for (size_t k = 0; k < list.size(); ++k) {
    if (m.op(list[k]) == Opcode::Parameter) continue;
    if (auto found = tell(list[k]); found != decltype(own){}) return found;
    for (InstId o : m.operands(list[k]))
      if (seen.insert(o).second) list.push_back(o);
  }
  return own;
}

}  // namespace

std::string SourceLine::text() const {
  if (file.empty()) return {};
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

std::string SourceLine::brief() const {
  SourceLine out = *this;
  size_t slash = file.rfind('/');
  if (slash != std::string::npos && slash > 0) slash = file.rfind('/', slash - 1);
  if (slash != std::string::npos) out.file = file.substr(slash + 1);
  return out.text();
}

std::vector<SourceLine> source_stack(const Module& m, InstId inst) {
  std::vector<SourceLine> out;
  const Metadata& d = m.u()[m[inst].meta];
  std::unordered_set<int32_t> seen;
  int32_t number = d.stack_frame_id;
  for (const auto* frame = table_row(m.stack().frames, number); frame && seen.insert(number).second;
       number = frame->parent, frame = table_row(m.stack().frames, number))
    if (SourceLine line = line_of_frame(m.stack(), *frame); line.known()) out.push_back(std::move(line));
  if (!out.empty()) return out;
  if (SourceLine line = line_of_metadata(m, d); line.known()) out.push_back(std::move(line));
  return out;
}

SourceLine source_line(const Module& m, InstId inst) {
  const Metadata& d = m.u()[m[inst].meta];
  if (const auto* frame = table_row(m.stack().frames, d.stack_frame_id))
    if (SourceLine line = line_of_frame(m.stack(), *frame); line.known()) return line;
  if (d.source_file == StrId::kNone && d.stack_frame_id > 0)  // a frame without a place: of what called it
    if (std::vector<SourceLine> stack = source_stack(m, inst); !stack.empty()) return stack[0];
  return line_of_metadata(m, d);
}

SourceLine kernel_source_line(const Module& m, InstId inst) {
  return first_told(m, inst, [&](InstId i) { return source_line(m, i); });
}

std::string op_name_of(const Module& m, InstId inst) {
  const Metadata& d = m.u()[m[inst].meta];
  return d.op_name == StrId::kNone ? std::string() : std::string(m.u().text(StrId(d.op_name)));
}

std::string kernel_op_name(const Module& m, InstId inst) {
  return first_told(m, inst, [&](InstId i) { return op_name_of(m, i); });
}

std::string scope_of(std::string_view op_name) {
  size_t slash = op_name.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(op_name.substr(0, slash));
}

}  // namespace hlo
