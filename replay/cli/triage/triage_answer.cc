// triage: the answer, and the folder for a report.
#include <filesystem>

#include "replay/cli/json_output.h"
#include "replay/cli/triage/triage.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLinesFirst = 12, kWidestLine = 400;

std::string shortened(const std::string& text) {
  std::string line = printable(text.substr(0, text.find('\n')));
  if (line.size() <= kWidestLine) return line;
  line.resize(kWidestLine);
  while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xc0) == 0x80)
    line.pop_back();  // whole characters
  return line + " …";
}

std::string word_of_json(const Json& j) { return j.is_string() ? j.get<std::string>() : std::string(); }

std::string sure_in_words(const Json& j) {
  const std::string sure = word_of_json(j["sure"]);
  return sure == "tested"
             ? fmt::format("tested on {} input{}", j["inputs_tested"].get<int>(), j["inputs_tested"] == 1 ? "" : "s")
             : sure;
}

}  // namespace

Json triage_json(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& v, const Json& rungs,
                 double seconds) {
  Json not_covered = Json::array();
  for (const std::string& note : s.notes) not_covered.push_back({{"what", "module"}, {"why", note}});
  for (const Json& r : rungs)
    if (r["outcome"] != "done" && r["outcome"] != "not needed")
      not_covered.push_back({{"what", r["rung"]}, {"why", r["result"]}});
  if (a.inputs.empty() && v.inputs > 0)
    not_covered.push_back(
        {{"what", "inputs"},
         {"why", fmt::format("random ones alone (seed {}); --inputs=FILE.npz gives the program's", a.seed)}});
  return {{"what", s.label},
          {"kind", subject_word(s.kind)},
          {"module", s.module.empty() ? Json() : Json(s.module)},
          {"complaint", complaint_name(s.complaint)},
          {"seen_from", s.seen_from.empty() ? Json() : Json(s.seen_from)},
          {"verdict", v.word},
          {"why", v.why},
          {"sure", v.sure},
          {"inputs_tested", v.inputs},
          {"inputs", !s.arguments.empty() ? s.arguments
                     : a.inputs.empty()   ? fmt::format("seed {}", a.seed)
                                          : a.inputs},
          {"pass", v.pass},
          {"pipeline", v.pipeline},
          {"stage", v.stage},
          {"file", v.file},
          {"instruction", v.instruction},
          {"rule", v.rule},
          {"source", v.source},
          {"difference", v.difference},
          {"contracts", v.contracts},
          {"before", v.before},
          {"after", v.after},
          {"details", v.details},
          {"rungs", rungs},
          {"not_covered", not_covered},
          {"seconds", seconds},
          {"time_limit", a.engine.limit_seconds},
          {"folder", Json()}};
}

void tell_triage(const Json& j) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {}{}", word_of_json(j["complaint"]), word_of_json(j["what"]),
                              j["seen_from"].is_string() ? fmt::format(" ({})", word_of_json(j["seen_from"])) : ""));
  lines.push_back(fmt::format("{}: {}", word_of_json(j["verdict"]), word_of_json(j["why"])));
  std::string place;
  for (const auto& [title, key] : {std::pair("instruction", "instruction"), {"source", "source"}})
    if (j[key].is_string()) place += fmt::format("{}{} {}", place.empty() ? "" : ", ", title, word_of_json(j[key]));
  if (!place.empty()) lines.push_back("  " + place);
  for (const auto& [title, key] : {std::pair("before", "before"), {"after it", "after"}})
    if (!j[key].empty()) lines.push_back(fmt::format("  {}: {}", title, word_of_json(j[key][0])));
  std::string open;
  for (const Json& n : j["not_covered"]) open += (open.empty() ? "" : ", ") + word_of_json(n["what"]);
  const std::string with = j["inputs_tested"].get<int>() > 0 ? " (" + word_of_json(j["inputs"]) + ")" : "";
  const std::string sure = "sure: " + sure_in_words(j) + with + (open.empty() ? "" : "; not covered: " + open);
  for (const Json& d : j["details"])
    if (lines.size() < kLinesFirst - 1) lines.push_back("  " + word_of_json(d));
  lines.push_back(sure);
  Progress::clear();
  for (const std::string& line : lines) fmt::print("{}\n", shortened(line));
  fmt::print("\n{:<16} {:>8}  {:<10}  result\n", "step", "seconds", "");
  for (const Json& r : j["rungs"]) {
    fmt::print("{:<16} {:>8}  {:<10}  {}\n", word_of_json(r["rung"]),
               r["seconds"].is_number() ? fmt::format("{:.2f}", r["seconds"].get<double>()) : "",
               word_of_json(r["outcome"]), shortened(word_of_json(r["result"])));
    if (r["outcome"] == "done" && !word_of_json(r["command"]).empty())
      fmt::print("{:<38}{}\n", "", shortened(word_of_json(r["command"])));
  }
  if (j["folder"].is_string()) fmt::print("a report is in {}\n", word_of_json(j["folder"]));
}

}  // namespace hlo
