#include "viewer/engine/engine.h"

#include <map>
#include <new>

#include "ir/base/check.h"
#include "parser/parser.h"
#include "viewer/engine/session.h"

namespace hlo {
namespace {

const std::map<std::string_view, Method>& methods() {
  static const std::map<std::string_view, Method> kAll = [] {
    std::map<std::string_view, Method> out;
    for (const auto& list : {stage_methods(), text_methods(), op_methods(), search_methods(), do_methods(),
                             rewrite_methods(), value_methods(), drawing_methods(), cost_methods(), overview_methods()})
      for (const NamedMethod& m : list) out.emplace(m.name, m.method);
    return out;
  }();
  return kAll;
}

// The nearest word, where one is near.
std::string hint_for(const std::string& method) {
  std::string_view best;
  int least = 3;
  for (const auto& [name, unused] : methods())
    if (int d = method.size() > 40 ? least : edit_distance(method, name); d < least) least = d, best = name;
  return best.empty() ? "" : fmt::format("did you mean {}?", best);
}

Json error_of(std::string message, const std::string& hint = {}) {
  // Messages of several lines have the advice behind the first.
  Json e = {{"message", std::move(message)}};
  if (!hint.empty()) e["hint"] = hint;
  return {{"error", std::move(e)}};
}

Json answer_of(PageSession& session, std::string_view text) {
  try {
    Question question(text);
    auto found = methods().find(question.method());
    if (found == methods().end())
      return error_of(fmt::format("there is no method '{}'", question.method().substr(0, 60)),
                      hint_for(question.method()));
    return found->second(session, question);
  } catch (const SyntaxFailure& e) {
    Json out = error_of(e.what());
    if (!e.entries().empty()) {
      const SyntaxFailure::Entry& first = e.entries()[0];
      out["error"]["message"] = first.message;
      if (!first.hint.empty()) out["error"]["hint"] = first.hint;
      out["error"]["line"] = first.line, out["error"]["column"] = first.column;
      out["error"]["text"] = e.what();
    }
    return out;
  } catch (const Failure& e) {
    return error_of(e.what());
  } catch (const std::bad_alloc&) {
    return error_of("the engine is out of memory", "close other modules, or use hlo-replay view --serve");
  } catch (const std::exception& e) {
    return error_of(fmt::format("this should not happen: {}", e.what()));
  }
}

}  // namespace

PageEngine::PageEngine() : session_(std::make_unique<PageSession>()) {}
PageEngine::~PageEngine() = default;

void PageEngine::open(const std::string& path) { session_->open_path(path); }
void PageEngine::put(std::string name, std::string bytes) { session_->put(std::move(name), std::move(bytes)); }

std::string PageEngine::answer(std::string_view question) {
  try {
    return answer_of(*session_, question).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const std::exception&) {
    return R"({"error":{"message":"the engine is out of memory"}})";
  }
}

}  // namespace hlo
