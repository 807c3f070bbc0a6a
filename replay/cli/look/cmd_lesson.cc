// lesson: the page with the course, whose questions the engine inside of it answers.
#include <algorithm>
#include <filesystem>

#include "replay/cli/command.h"
#include "replay/os/terminal.h"
#include "viewer/page_file.h"

namespace hlo {

int cmd_lesson(const LessonArgs& a) {
  const std::vector<LessonName> lessons = lesson_names();
  auto named = [&](const LessonName& l) { return l.name == a.name; };
  if (!a.name.empty() && std::none_of(lessons.begin(), lessons.end(), named)) {
    std::string known;
    for (const LessonName& l : lessons) known += (known.empty() ? "" : ", ") + l.name;
    fail(FailureKind::kUsage, "there is no lesson '{}'; there are {}", printable(a.name), known);
  }
  if (!page_engine_inside())
    fail(FailureKind::kUnsupported,
         "lessons need the engine that answers their questions in the page, and the one in the sources of this "
         "hlo-replay "
         "understood other questions. Make it new and build again: bash tests/dev/engine_made.sh");
  PageContents contents;
  contents.title = "Lessons", contents.lesson = a.name;
  write_page(a.out, page_html(contents), a.force);
  if (a.json) {
    Json all = Json::array();
    for (const LessonName& l : lessons) all.push_back({{"name", l.name}, {"title", l.title}});
    print_json({{"page", a.out}, {"lesson", a.name.empty() ? Json() : Json(a.name)}, {"lessons", all}});
  } else {
    fmt::print("open {}\n", a.out);
  }
  if (a.open) open_in_browser(std::filesystem::absolute(a.out).string());
  return kYes;
}

}  // namespace hlo
