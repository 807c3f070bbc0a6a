#include "viewer/pages.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "dump/palette.h"

namespace hlo {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string filled(std::string page, std::initializer_list<std::pair<std::string, std::string>> values) {
  for (const auto& [key, value] : values) {
    std::string mark = "{{" + key + "}}";
    for (size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + value.size()))
      page.replace(at, mark.size(), value);
  }
  return page;
}

}  // namespace

std::string stage_page(const StageRow& row, const std::string& svg, const std::vector<std::string>& removed,
                       bool partial) {
  std::string notes;
  size_t shown = 0;
  for (const Note& n : row.notes) {
    if (++shown > 400) {
      notes += fmt::format("<li>… and {} more, in recording.json</li>", row.notes.size() - 400);
      break;
    }
    std::string names;
    for (const std::string& name : n.names) names += (names.empty() ? "" : ", ") + escaped(name);
    notes += fmt::format("<li><b>{}</b> <span>{}</span>{}</li>", escaped(n.rule), names,
                         n.text.empty() ? "" : " — " + escaped(n.text));
  }
  std::string gone;
  for (size_t i = 0; i < removed.size() && i < 400; ++i) gone += fmt::format("<li>{}</li>", escaped(removed[i]));
  if (removed.size() > 400) gone += fmt::format("<li>… and {} more</li>", removed.size() - 400);
  std::string colours;
  for (const LegendRow& l : legend())
    colours += fmt::format("<span class=k style=\"background:{};color:{}\">{}</span>", l.colour.fill, l.colour.text,
                           l.meaning);
  // The drawing without its XML prologue.
  size_t start = svg.find("<svg");
  return filled(
      kStageTemplate,
      {{"title", escaped(row.name())},
       {"counts",
        fmt::format(
            "{} → {} instructions, <span class=added>{} new</span>, <span class=modified>{} changed</span>, {} gone",
            row.before, row.after, row.added, row.modified, row.removed)},
       {"partial",
        partial ? "<p class=partial>The module is large: this is the neighbourhood of what changed.</p>" : ""},
       {"notes", notes.empty() ? "<li>none</li>" : notes},
       {"removed", gone.empty() ? "<li>none</li>" : gone},
       {"legend", colours},
       {"svg", start == std::string::npos ? svg : svg.substr(start)}});
}

std::string index_page(const Recording& r) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  std::string page;
  for (const StageRow& row : r.rows) {
    std::string html = row.file;
    if (html.ends_with(".txt")) html = html.substr(0, html.size() - 4) + ".html";
    if (!html.empty()) page = html;
    nlohmann::ordered_json s{{"name", row.name()},
                             {"pipeline", row.pipeline},
                             {"pass", row.pass.empty() ? row.name() : row.pass},
                             {"changed", row.changed || row.kind == StageRow::kInput},
                             {"start", row.kind == StageRow::kPipelineStart},
                             {"page", page},
                             {"text", row.file},
                             {"before", row.before},
                             {"after", row.after},
                             {"added", row.added},
                             {"removed", row.removed},
                             {"modified", row.modified},
                             {"us", row.microseconds},
                             {"implemented", row.implemented},
                             {"disabled", row.disabled}};
    stages.push_back(std::move(s));
  }
  std::string json = nlohmann::ordered_json{
      {"module", r.module_name},
      {"pipeline", r.pipeline},
      {"files", r.other_files},
      {"stages", stages}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  // `</` inside a script would end it.
  for (size_t at = json.find("</"); at != std::string::npos; at = json.find("</", at + 3)) json.replace(at, 2, "<\\/");
  return filled(kIndexTemplate, {{"module", escaped(r.module_name)}, {"recording", json}});
}

std::string diff_page(const std::string& first, const std::string& second, const std::string& verdict,
                      const ModuleDiff& diff) {
  static const char* kClass[] = {"gone", "added", "modified", "moved", "modified"};
  constexpr size_t kMostRows = 5000, kMostNames = 200;
  std::string rows;
  for (size_t k = 0; k < diff.lines.size() && k < kMostRows; ++k) {
    const ModuleDiff::Line& l = diff.lines[k];
    std::string what, names;
    for (const std::string& w : l.what) what += (what.empty() ? "" : "<br>") + escaped(w);
    for (size_t n = 0; n < l.names.size() && n < kMostNames; ++n) names += (n ? ", " : "") + escaped(l.names[n]);
    if (l.names.size() > kMostNames) names += ", …";
    rows += fmt::format("<tr class={}><td>{}<td>{}<td>{}<td>{}<td><pre>{}</pre><td><pre>{}</pre></tr>\n",
                        kClass[l.kind], l.sign == '>' ? "&gt;" : std::string(1, l.sign),
                        l.count > 1 ? fmt::format("<details><summary>{} × {}</summary>{}</details>",
                                                  escaped(l.names[0]), l.count, names)
                                    : escaped(l.name.empty() ? l.other : l.name),
                        escaped(l.place), what, escaped(l.first), escaped(l.second));
  }
  if (diff.lines.size() > kMostRows)
    rows += fmt::format("<tr><td colspan=6>… and {} more, in --json</tr>\n", diff.lines.size() - kMostRows);
  return filled(kDiffTemplate,
                {{"first", escaped(first)},
                 {"second", escaped(second)},
                 {"verdict", escaped(verdict)},
                 {"counts", fmt::format("{} only in the first, {} only in the second, {} changed, {} moved",
                                        diff.removed, diff.added, diff.modified, diff.moved)},
                 {"rows", rows}});
}

std::string link_page(const std::string& title, const std::string& svg,
                      const std::vector<std::vector<std::string>>& rows) {
  std::string table;
  for (const auto& row : rows) {
    table += "<tr>";
    for (const std::string& cell : row) table += "<td>" + escaped(cell);
    table += "</tr>\n";
  }
  size_t start = svg.find("<svg");
  return filled(
      kLinkTemplate,
      {{"title", escaped(title)}, {"svg", start == std::string::npos ? svg : svg.substr(start)}, {"rows", table}});
}

std::string profile_page(const std::string& title, const Profile& profile) {
  constexpr size_t kMostBars = 20000;
  nlohmann::ordered_json bars = nlohmann::ordered_json::array(), rows = nlohmann::ordered_json::array();
  std::vector<ProfileRow> by_time = profile_rows(profile);
  std::unordered_map<std::string, size_t> row_of;
  for (size_t k = 0; k < by_time.size(); ++k) row_of[by_time[k].name] = k;
  for (const ProfileEvent& e : profile.events) {
    if (bars.size() == kMostBars) break;
    bars.push_back({static_cast<double>(e.begin - profile.start) / 1e3, static_cast<double>(e.end - e.begin) / 1e3,
                    e.depth, row_of[profile.what[e.what].name]});
  }
  for (const ProfileRow& r : by_time)
    rows.push_back({{"name", r.name},
                    {"class", r.category},
                    {"us", r.seconds * 1e6},
                    {"share", r.share},
                    {"calls", r.calls},
                    {"gbs", r.gb_s},
                    {"gflops", r.gflop_s},
                    {"bound", r.bound},
                    {"reached", r.reached},
                    {"op", r.op_name},
                    {"source", r.source}});
  nlohmann::ordered_json all{
      {"bars", bars}, {"rows", rows}, {"us", static_cast<double>(profile.end - profile.start) / 1e3}};
  std::string json = all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (size_t at = json.find("</"); at != std::string::npos; at = json.find("</", at + 3)) json.replace(at, 2, "<\\/");
  return filled(kProfileTemplate, {{"title", escaped(title)}, {"profile", json}});
}

}  // namespace hlo
