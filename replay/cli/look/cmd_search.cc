// search: instructions by name, opcode, op_name, shape or source line, in a file, a stage, or every module of a run.
#include <algorithm>

#include "ir/print/print.h"
#include "ir/query/source_lines.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace {

bool has_part(std::string_view whole, std::string_view part) {
  auto same = [](char a, char b) {
    return tolower(static_cast<unsigned char>(a)) == tolower(static_cast<unsigned char>(b));
  };
  return std::search(whole.begin(), whole.end(), part.begin(), part.end(), same) != whole.end() || part.empty();
}

bool fits(const SearchArgs& a, const Module& m, InstId i) {
  if (!a.opcode.empty() && op_text(m.op(i)) != a.opcode) {
    if (m.op(i) != Opcode::CustomCall) return false;
    if (!has_part(m.u().text(m.attrs(i).text(Attr::custom_call_target)), a.opcode)) return false;
  }
  return has_part(m.inst_name(i), a.name) && (a.op_name.empty() || has_part(op_name_of(m, i), a.op_name)) &&
         (a.shape.empty() || has_part(m.u().shape_text(m.shape_id(i)), a.shape)) &&
         (a.line.empty() || has_part(source_line(m, i).text(), a.line));
}

// By name alone: whoever asks for an opcode or a shape wants instructions.
bool asks_by_name(const SearchArgs& a) {
  return !a.name.empty() && a.opcode.empty() && a.op_name.empty() && a.shape.empty() && a.line.empty();
}

// What every command takes: `DIR:MODULE:STAGE`, the file as it was given.
std::string stage_id(const LookedAt& l, const std::string& spec) {
  if (!l.recording) return l.spec;
  std::optional<size_t> row = final_row(*l.recording);
  std::string folder = split_selector(spec) ? split_selector(spec)->folder : spec;
  return fmt::format("{}:{}{}", folder,
                     l.selector.empty() ? fmt::format("{:04}", l.recording->module_number) : l.selector,
                     row ? ":" + stage_selector(*l.recording, *row) : "");
}

}  // namespace

int cmd_search(const SearchArgs& a) {
  if (a.name.empty() && a.opcode.empty() && a.op_name.empty() && a.shape.empty() && a.line.empty())
    fail(FailureKind::kUsage, "search takes a NAME, or --opcode, --op-name, --shape or --line");
  std::vector<LookedAt> all = looked_at(a.file);
  Json list = Json::array(), computations = Json::array(), problems = Json::array();
  size_t found = 0, named = 0;  // instructions, computations
  PrintOptions brief;
  brief.metadata = brief.backend_config = false;
  for (LookedAt& l : all) {
    try {
      if (!l.unreadable.empty()) fail(FailureKind::kIo, "{}", l.unreadable);
      l.load();
    } catch (const Failure& e) {
      if (all.size() == 1 || interrupted()) throw;
      problems.push_back(fmt::format("{}: {}", l.name(), first_line(e.what())));
      continue;
    }
    const Module& m = *l.module;
    const std::string stage = stage_id(l, a.file);
    for (CompId c : m.computations()) {
      if (!asks_by_name(a) || !has_part(m.comp_name(c), a.name)) continue;
      ++named;
      const size_t held = m.size(c);
      if (a.json)
        computations.push_back(
            {{"stage", stage}, {"module", m.name()}, {"computation", m.comp_name(c)}, {"instructions", held}});
      else if (named <= a.most)
        fmt::print("{}#{}\n    a computation of {} instructions\n", printable(stage),
                   printable(std::string(m.comp_name(c))), held);
    }
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order) {
        if (!m.alive(i) || !fits(a, m, i)) continue;
        ++found;
        const std::string id = fmt::format("{}#{}", stage, m.inst_name(i)), line = source_line(m, i).text();
        if (a.json) {
          list.push_back({{"id", id},
                          {"stage", stage},
                          {"module", m.name()},
                          {"computation", m.comp_name(c)},
                          {"instruction", m.inst_name(i)},
                          {"opcode", op_text(m.op(i))},
                          {"shape", m.u().shape_text(m.shape_id(i))},
                          {"op_name", op_name_of(m, i)},
                          {"source", line}});
        } else if (found <= a.most) {
          fmt::print("{}\n    {}{}{}\n", printable(id), printable(print_instruction(m, i, brief)),
                     line.empty() ? "" : "  " + printable(line),
                     op_name_of(m, i).empty() ? "" : "  " + printable(op_name_of(m, i)));
          if (a.frames) print_frames(source_stack(m, i));
        }
      }
    l.module = nullptr;
  }
  if (a.json) {
    print_json({{"file", a.file},
                {"found", found},
                {"instructions", list},
                {"computations", computations},
                {"problems", problems}});
  } else {
    if (found > a.most) fmt::print("… and {} more (--most)\n", found - a.most);
    if (!found && !named) fmt::print("nothing fits\n");
    for (const Json& p : problems) fmt::print(stderr, "warning: {}\n", printable(p.get<std::string>()));
  }
  return !problems.empty() ? kBad : found || named ? kYes : kNo;
}

}  // namespace hlo
