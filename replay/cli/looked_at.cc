#include "replay/cli/looked_at.h"

#include "replay/os/confined_path.h"
#include "replay/os/terminal.h"

namespace hlo {

void print_frames(const std::vector<SourceLine>& stack) {
  for (const SourceLine& l : stack) fmt::print("                 {}\n", printable(frame_text(l)));
}

std::string LookedAt::name() const { return module ? module->name() : recording ? recording->module_name : stage; }

void LookedAt::load() { module = hlo::load(folder.empty() ? spec : confined_path(folder, file)); }

AnswerAbout about(const LookedAt& l) { return {l.name(), l.stage, l.unreadable, l.module.get()}; }

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

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
  for (const Recording& r : run.modules) {
    LookedAt one;
    one.selector = module_selector(run, r);
    one.recording = r;
    if (std::optional<size_t> row = final_row(r)) {
      one.folder = r.folder, one.file = r.rows[*row].file;
      one.stage = r.rows[*row].name();
    } else {
      one.unreadable = "no stage with a text";
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace hlo
