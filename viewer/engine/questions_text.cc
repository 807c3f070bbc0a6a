// A state's text by lines, and the files beside a recording.
#include <algorithm>

#include "ir/base/check.h"
#include "replay/os/confined_path.h"
#include "viewer/engine/session.h"

namespace hlo {
namespace {

constexpr int64_t kMostLines = 200000;        // of one answer
constexpr size_t kMostTextBytes = 64u << 20;  // likewise

Json q_text(PageSession& session, const Question& q) {
  q.only({"at", "from", "lines", "full"});
  std::shared_ptr<OpenState> s = session.state(q.state("at"));
  const OpenState::Text& text = s->text(q.flag_or("full", false));
  const size_t total = text.id.size();
  const auto from = std::min(static_cast<size_t>(q.number_or("from", 0, INT32_MAX, 0)), total);
  const auto wanted = static_cast<size_t>(q.number_or("lines", 0, kMostLines, kMostLines));
  Json lines = Json::array(), ids = Json::array();
  size_t bytes = 0;
  for (size_t k = from; k < total && k - from < wanted; ++k) {
    bytes += text.line(k).size();
    // The first line comes whatever its length: the page gets on.
    if (k > from && bytes > kMostTextBytes) break;
    lines.push_back(std::string(text.line(k)));
    ids.push_back(json_of(text.id[k]));
  }
  return {{"lines", std::move(lines)}, {"ids", std::move(ids)}, {"from", from}, {"total", total}};
}

Json q_file(PageSession& session, const Question& q) {
  q.only({"module", "name"});
  PageModule& m = session.module_unread(static_cast<uint32_t>(q.number("module", 0, INT32_MAX)));
  const std::string name = q.text("name");
  const std::vector<std::string>& files = m.recording.other_files;
  if (std::find(files.begin(), files.end(), name) == files.end())
    fail(FailureKind::kUsage, "the recording has no file of that name; it has {} files", files.size());
  std::string text = read_confined(m.recording.folder, name);
  if (text.size() > kMostTextBytes)
    fail(FailureKind::kUnsupported, "the file holds {} MB, at most {} are shown", text.size() >> 20,
         kMostTextBytes >> 20);
  return {{"text", std::move(text)}};
}

}  // namespace

std::vector<NamedMethod> text_methods() { return {{"text", q_text}, {"file", q_file}}; }

}  // namespace hlo
