#include "replay/report/findings/tried_findings.h"

#include <cmath>

#include "ir/base/check.h"

namespace hlo {
namespace {

using TriedJson = nlohmann::ordered_json;
constexpr size_t kMostTried = 10000, kLongestTried = 2000;

[[noreturn]] void not_tried(const std::string& label, const std::string& what) {
  fail(FailureKind::kIo, "{}: {}; it is what `hlo-replay open DIR --try --json` prints", label, what);
}

TriedJson parsed_tried(const std::string& text, const std::string& label, const char* list) {
  TriedJson out = TriedJson::parse(text, nullptr, false);
  if (!out.is_object() || !out.contains(list) || !out[list].is_array())
    not_tried(label, fmt::format("no JSON object with a list '{}'", list));
  return out;
}

std::string tried_text(const TriedJson& of, const char* key, const std::string& label) {
  if (!of.is_object() || !of.contains(key) || !of[key].is_string())
    not_tried(label, fmt::format("a finding without a text '{}'", key));
  return of[key].get<std::string>().substr(0, kLongestTried);
}

// Its numbers are null, or finite and not negative.
TriedJson checked_tried(const TriedJson& of, const std::string& label) {
  if (!of.is_object() || !of.contains("compiled") || !of["compiled"].is_boolean() || !of.contains("helps") ||
      !(of["helps"].is_null() || of["helps"].is_boolean()))
    not_tried(label, "a finding without what was tried");
  TriedJson out{{"compiled", of["compiled"]}, {"what", tried_text(of, "what", label)}};
  for (const char* key : {"seconds_before", "seconds_after", "allocated_before", "allocated_after"}) {
    const TriedJson value = of.contains(key) ? of[key] : TriedJson();
    if (!value.is_null() && !(value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0))
      not_tried(label, fmt::format("'{}' is no number", key));
    if (of["compiled"].get<bool>() && value.is_null()) not_tried(label, fmt::format("'{}' is missing", key));
    out[key] = value;
  }
  out["helps"] = of["helps"];
  return out;
}

}  // namespace

nlohmann::ordered_json tried_json(const FindingTried& t) {
  const bool compiled = t.outcome == FindingTried::kCompiled;
  return {{"compiled", compiled},
          {"what", t.words},
          {"seconds_before", compiled ? TriedJson(t.seconds) : TriedJson()},
          {"seconds_after", compiled ? TriedJson(t.seconds_after) : TriedJson()},
          {"allocated_before", compiled ? TriedJson(t.bytes) : TriedJson()},
          {"allocated_after", compiled ? TriedJson(t.bytes_after) : TriedJson()},
          {"helps", compiled ? TriedJson(t.helps()) : TriedJson()}};
}

std::string tried_page(const std::string& answer, const std::string& label, int number, const std::string& name) {
  const TriedJson all = parsed_tried(answer, label, "modules");
  for (const TriedJson& m : all["modules"]) {
    if (!m.is_object() || !m.contains("overview") || !m["overview"].is_object() || !m.contains("findings")) continue;
    const TriedJson& o = m["overview"];
    if (!o.contains("number") || o["number"] != number || !o.contains("name") || o["name"] != name) continue;
    TriedJson kept{{"findings", TriedJson::array()}};
    for (const TriedFinding& f : read_tried_page(TriedJson{{"findings", m["findings"]}}.dump(), label))
      if (!f.tried["what"].get<std::string>().empty())
        kept["findings"].push_back({{"kind", f.kind}, {"instruction", f.instruction}, {"tried", f.tried}});
    return kept["findings"].empty() ? std::string()
                                    : kept.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return {};
}

std::vector<TriedFinding> read_tried_page(const std::string& text, const std::string& label) {
  const TriedJson all = parsed_tried(text, label, "findings");
  if (all["findings"].size() > kMostTried) not_tried(label, "too many findings");
  std::vector<TriedFinding> out;
  for (const TriedJson& f : all["findings"]) {
    TriedFinding one{tried_text(f, "kind", label), tried_text(f, "instruction", label), {}, false};
    one.tried = checked_tried(f.contains("tried") ? f["tried"] : TriedJson(), label);
    one.useless = one.tried["compiled"].get<bool>() && one.tried["helps"] == false;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace hlo
