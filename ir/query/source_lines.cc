#include "ir/query/source_lines.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "ir/base/stack_guard.h"

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

bool is_library_file(std::string_view path) {
  if (path.starts_with("<frozen ")) return true;
  constexpr std::array<std::string_view, 3> kFolders = {"site-packages", "dist-packages", "torch_xla"};
  // A folder that has a library's name is the library where its own folders stand below.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kPairs = {{{"jax", "_src"},
                                                                                     {"jax", "experimental"},
                                                                                     {"jax", "numpy"},
                                                                                     {"jax", "nn"},
                                                                                     {"flax", "linen"},
                                                                                     {"flax", "nnx"},
                                                                                     {"flax", "core"},
                                                                                     {"flax", "training"},
                                                                                     {"torch", "nn"},
                                                                                     {"torch", "_dynamo"},
                                                                                     {"torch", "_functorch"},
                                                                                     {"torch", "utils"}}};
  std::string_view before;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    const bool folder = end < path.size();
    if (folder && std::find(kFolders.begin(), kFolders.end(), part) != kFolders.end()) return true;
    if (folder && std::find(kPairs.begin(), kPairs.end(), std::pair(before, part)) != kPairs.end()) return true;
    if (folder && (before == "lib" || before == "lib64") && part.starts_with("python3")) return true;
    before = part, at = end + 1;
  }
  return false;
}

SourceLine source_line(const Module& m, InstId inst) {
  const Metadata& d = m.u()[m[inst].meta];
  SourceLine innermost;
  std::unordered_set<int32_t> seen;
  int32_t number = d.stack_frame_id;
  const auto* frame = table_row(m.stack().frames, number);
  for (; frame && seen.insert(number).second; number = frame->parent, frame = table_row(m.stack().frames, number)) {
    SourceLine line = line_of_frame(m.stack(), *frame);
    if (line.known() && !is_library_file(line.file)) return line;
    if (!innermost.known()) innermost = std::move(line);
    // A frame without a place is that of what called it, but for metadata that tell a place themselves.
    if (!innermost.known() && d.source_file != StrId::kNone) break;
  }
  return innermost.known() ? innermost : line_of_metadata(m, d);
}

namespace {

// The product of a fusion's body or of one within; bodies that several fusions share are looked at once.
InstId product_in(const Module& m, InstId fusion, std::unordered_set<uint32_t>* seen) {
  check_stack("fusions within fusions");
  if (m.called(fusion).empty() || !seen->insert(m.called(fusion)[0].value).second) return {};
  for (InstId i : m.comp(m.called(fusion)[0]).order) {
    if (!m.alive(i)) continue;
    if (m.op(i) == Opcode::Dot || m.op(i) == Opcode::RaggedDot || m.op(i) == Opcode::Convolution) return i;
    if (m.op(i) == Opcode::Fusion)  // as a scaled product in a kernel of its own
      if (InstId inner = product_in(m, i, seen); inner.valid()) return inner;
  }
  return {};
}

}  // namespace

InstId main_operation(const Module& m, InstId inst) {
  if (m.op(inst) != Opcode::Fusion) return inst;
  std::unordered_set<uint32_t> seen;
  const InstId product = product_in(m, inst, &seen);
  return product.valid() ? product : inst;
}

std::vector<SourceLine> kernel_source_stack(const Module& m, InstId inst) {
  auto tell = [&](InstId i) { return source_stack(m, i); };
  if (InstId product = main_operation(m, inst); product != inst)
    if (std::vector<SourceLine> own = tell(product); !own.empty()) return own;
  return first_told(m, inst, tell);
}

SourceLine kernel_source_line(const Module& m, InstId inst) {
  auto tell = [&](InstId i) { return source_line(m, i); };
  if (InstId product = main_operation(m, inst); product != inst)
    if (SourceLine own = tell(product); own.known()) return own;
  return first_told(m, inst, tell);
}

std::string frame_text(const SourceLine& line) {
  return fmt::format("at {}{}", line.text(), line.function.empty() ? "" : " " + line.function);
}

SourceLine UserFrames::of(const std::vector<SourceLine>& stack) const {
  for (const SourceLine& l : stack)
    if (!is_library_file(l.file) && !helpers_.contains(l.text())) return l;
  return {};
}

UserFrames::UserFrames(const Module& m, std::span<const std::pair<InstId, double>> weights) : m_(m) {
  constexpr double kMost = 0.5;  // of all the weight
  constexpr int kDeepest = 4;    // helpers that call helpers
  if (m.stack().empty()) return;
  std::vector<std::pair<std::vector<SourceLine>, double>> stacks;
  double all = 0;
  for (const auto& [inst, weight] : weights) {
    std::vector<SourceLine> stack = kernel_source_stack(m, inst);
    std::erase_if(stack, [](const SourceLine& l) { return is_library_file(l.file); });
    all += weight;
    if (!stack.empty()) stacks.emplace_back(std::move(stack), weight);
  }
  for (int round = 0; round < kDeepest && all > 0; ++round) {
    struct Line {
      double weight = 0;
      std::set<std::string> callers;
    };
    std::map<std::string, Line> lines;
    for (const auto& [stack, weight] : stacks) {
      Line& line = lines[of(stack).text()];
      line.weight += weight;
      // The caller is the next frame behind the one that is shown.
      bool found = false;
      for (const SourceLine& l : stack) {
        if (helpers_.contains(l.text())) continue;
        if (found) {
          line.callers.insert(l.text());
          break;
        }
        found = true;
      }
    }
    bool more = false;
    for (const auto& [text, line] : lines)
      if (!text.empty() && line.weight > kMost * all && line.callers.size() > 1) helpers_.insert(text), more = true;
    if (!more) return;
  }
}

SourceLine UserFrames::kernel(InstId inst) const {
  if (!helpers_.empty())
    if (SourceLine line = of(kernel_source_stack(m_, inst)); line.known()) return line;
  return kernel_source_line(m_, inst);
}

std::string op_name_of(const Module& m, InstId inst) {
  const Metadata& d = m.u()[m[inst].meta];
  return d.op_name == StrId::kNone ? std::string() : std::string(m.u().text(StrId(d.op_name)));
}

std::string kernel_op_name(const Module& m, InstId inst) {
  if (InstId product = main_operation(m, inst); product != inst)
    if (std::string own = op_name_of(m, product); !own.empty()) return own;
  return first_told(m, inst, [&](InstId i) { return op_name_of(m, i); });
}

std::string scope_of(std::string_view op_name) {
  size_t slash = op_name.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(op_name.substr(0, slash));
}

}  // namespace hlo
