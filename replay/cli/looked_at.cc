#include "replay/cli/looked_at.h"

#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"

namespace hlo {

void print_frames(const std::vector<SourceLine>& stack) {
  for (const SourceLine& l : stack) fmt::print("                 {}\n", printable(frame_text(l)));
}

std::string LookedAt::name() const { return module ? module->name() : recording ? recording->module_name : stage; }

void LookedAt::load() { module = hlo::load(folder.empty() ? spec : confined_path(folder, file)); }

AnswerAbout about(const LookedAt& l) { return {l.name(), l.stage, l.unreadable, l.module.get()}; }

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

LookedAt last_stage(const Recording& r, const std::string& selector) {
  LookedAt one;
  one.selector = selector;
  one.recording = r;
  if (std::optional<size_t> row = final_row(r)) {
    one.folder = r.folder, one.file = r.rows[*row].file;
    one.stage = r.rows[*row].name();
  } else {
    one.unreadable = "no stage with a text";
  }
  return one;
}

std::vector<LookedAt> looked_at(const std::string& spec) {
  std::vector<LookedAt> out;
  if (!names_modules(spec)) {
    LookedAt one;
    one.spec = one.stage = spec;
    if (std::optional<Selector> s = split_selector(spec)) {
      StageChoice choice = select_stage(*s);
      one.folder = choice.module.folder, one.file = choice.file;
      one.stage = choice.module.rows[choice.row].name();
      // What the dump says of memory is said of the last stage.
      if (choice.row == final_row(choice.module)) one.recording = std::move(choice.module);
    }
    out.push_back(std::move(one));
    return out;
  }
  Run run;
  run.folder = split_selector(spec)->folder;
  run.modules = select_modules(spec);
  for (const Recording& r : run.modules) out.push_back(last_stage(r, module_selector(run, r)));
  return out;
}

namespace {

// Does a text define it: `name = …`, `%name (` or `name {` at the begin of a line?
bool defines(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    size_t begin = at;
    if (begin && text[begin - 1] == '%') --begin;
    const std::string_view line = text.substr(0, begin);
    const std::string_view rest = text.substr(at + name.size());
    const std::string_view before = line.substr(line.rfind('\n') + 1);  // npos + 1 is 0
    const std::string_view words = before.substr(std::min(before.find_first_not_of(' '), before.size()));
    if (rest.starts_with(" = ") ? words.empty() || words == "ROOT "
                                : (rest.starts_with(" (") || rest.starts_with(" {")) && before == words &&
                                      (words.empty() || words == "ENTRY "))
      return true;
  }
  return false;
}

}  // namespace

std::string last_stage_with(const std::string& spec, std::string_view name) {
  if (!names_modules(spec)) return spec;
  Run run;
  run.folder = split_selector(spec)->folder;
  run.modules = select_modules(spec);
  std::vector<std::string> found;
  for (const Recording& r : run.modules)
    for (size_t row = r.rows.size(); row-- > 0;) {
      const std::string& file = r.rows[row].file;
      if (!file.ends_with(".txt") && !file.ends_with(".hlo")) continue;
      if (!defines(read_file(confined_path(r.folder, file)), name)) continue;
      found.push_back(fmt::format("{}:{}:{}", run.folder, module_selector(run, r), stage_selector(r, row)));
      break;
    }
  if (found.size() == 1) return found[0];
  // Of one module the command tells what name is near.
  if (found.empty() && run.modules.size() == 1)
    if (const std::optional<size_t> row = final_row(run.modules[0]))
      return fmt::format("{}:{}:{}", run.folder, module_selector(run, run.modules[0]),
                         stage_selector(run.modules[0], *row));
  if (found.empty()) fail(FailureKind::kUsage, "no stage of {} has an instruction or a computation '{}'", spec, name);
  fail(FailureKind::kUsage, "'{}' is in {} modules: {}", name, found.size(), fmt::join(found, ", "));
}

}  // namespace hlo
