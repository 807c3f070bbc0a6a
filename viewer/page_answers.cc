#include "viewer/page_answers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/base/check.h"
#include "parser/proto/proto_reader.h"
#include "replay/os/interrupt.h"
#include "viewer/engine/engine.h"

namespace hlo {
namespace {

using nlohmann::json;  // members by name: a question is written in one way

constexpr size_t kTextLines = 2000;  // of a text, as the page asks for them: piece by piece

json at(size_t module, size_t state) { return {{"module", module}, {"state", state}}; }

class AnswerMaker {
 public:
  AnswerMaker(PageEngine& engine, size_t most) : engine_(engine), most_(most) {}

  // The answer, kept where there is room for it; null where the engine has none.
  json ask(const char* method, json question) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was written");
    question["method"] = method;
    std::string text = question.dump();
    // Once one does not fit, the next of the kind would not either, and would take its time.
    if (!asked_.insert(text).second || left_out_.contains(method)) return nullptr;
    std::string answer = engine_.answer(text);
    json parsed = json::parse(answer, nullptr, false);
    if (parsed.is_discarded() || parsed.contains("error")) return nullptr;
    const size_t bytes = gzip(answer).size();
    if (used_ + bytes > most_) {
      left_out_.insert(method);
      return parsed;
    }
    used_ += bytes;
    questions_.push_back(std::move(text));
    files_.push_back({fmt::format("answers/{}.json", questions_.size() - 1), std::move(answer)});
    return parsed;
  }
  void module(const json& info) {
    const size_t m = info.at("module").get<size_t>(), states = info.at("states").get<size_t>();
    ask("rows", {{"module", m}});
    if (!states) return;
    const size_t last = states - 1;
    for (size_t s : {last, size_t{0}}) drawing(m, s), pieces(m, s);
    ask("overview", {{"module", m}});
    for (const char* by : {"class", "line", "scope"}) ask("summary", {{"at", at(m, last)}, {"by", by}});
    for (const char* method : {"memory", "roofline", "thunks"}) ask(method, {{"at", at(m, last)}});
    ask("decisions", {{"module", m}});
    for (size_t s = 1; s < states; ++s) drawing(m, s), ask("diff", {{"a", at(m, s - 1)}, {"b", at(m, s)}});
    for (size_t s = 1; s < last; ++s) pieces(m, s);
  }
  std::vector<ArchiveFile> take(std::vector<std::string>* notices) {
    if (!left_out_.empty())
      notices->push_back(fmt::format(
          "This page is without the engine, and not everything fits into it: of {} some answers are left out",
          fmt::join(left_out_, ", ")));
    std::vector<ArchiveFile> out{{"answers.json", json(questions_).dump()}};
    for (ArchiveFile& f : files_) out.push_back(std::move(f));
    return out;
  }

 private:
  void drawing(size_t m, size_t s) {
    json question{{"at", at(m, s)}};
    if (s > 0) question["against"] = at(m, s - 1);
    ask("drawing", std::move(question));
  }
  // As the page asks: each piece behind the one before.
  void pieces(size_t m, size_t s) {
    for (size_t from = 0;; from += kTextLines) {
      json text = ask("text", {{"at", at(m, s)}, {"from", from}, {"lines", kTextLines}});
      if (text.is_null() || from + kTextLines >= text.value("total", size_t{0})) return;
      if (left_out_.contains("text")) return;
    }
  }

  PageEngine& engine_;
  size_t most_, used_ = 0;
  std::set<std::string> asked_, left_out_;
  std::vector<std::string> questions_;
  std::vector<ArchiveFile> files_;
};

}  // namespace

std::vector<ArchiveFile> carried_answers(const PageContents& contents, size_t most, std::vector<std::string>* notices) {
  if (contents.files.empty()) return {};
  PageEngine engine;
  for (const ArchiveFile& f : contents.files) engine.put(f.name, f.bytes);
  json opened = json::parse(engine.answer(R"({"method":"open"})"));
  if (opened.contains("error"))
    fail(FailureKind::kIo, "{}", opened["error"].value("message", "the recording cannot be opened"));
  AnswerMaker maker(engine, most);
  json modules = maker.ask("modules", json::object());
  maker.ask("links", json::object());
  for (const json& info : modules.value("modules", json::array())) maker.module(info);
  return maker.take(notices);
}

}  // namespace hlo
