#include "viewer/pages.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "dump/palette.h"
#include "viewer/markup.h"

namespace hlo {

std::string stage_page(const StageRow& row, const std::string& svg, const std::vector<std::string>& removed,
                       const std::string& note) {
  constexpr size_t kMost = 400;
  Markup notes, gone, colours;
  for (size_t i = 0; i < row.notes.size() && i < kMost; ++i) {
    const Note& n = row.notes[i];
    notes += markup("<li><b>{}</b> <span>{}</span>{}</li>",
                    {n.rule, fmt::format("{}", fmt::join(n.names, ", ")), n.text.empty() ? "" : " — " + n.text});
  }
  if (row.notes.size() > kMost)
    notes += markup("<li>… and {} more, in recording.json</li>", {row.notes.size() - kMost});
  for (size_t i = 0; i < removed.size() && i < kMost; ++i) gone += markup("<li>{}</li>", {removed[i]});
  if (removed.size() > kMost) gone += markup("<li>… and {} more</li>", {removed.size() - kMost});
  for (const LegendRow& l : legend())
    colours +=
        markup("<span class=k style=\"background:{};color:{}\">{}</span>", {l.colour.fill, l.colour.text, l.meaning});
  const Markup none = markup("<li>none</li>", {});
  return page_of(kStageTemplate,
                 {{"title", row.name()},
                  {"counts", markup("{} → {} instructions, <span class=added>{} new</span>, <span class=modified>{} "
                                    "changed</span>, {} gone",
                                    {row.before, row.after, row.added, row.modified, row.removed})},
                  {"partial", note.empty() ? Markup() : markup("<p class=partial>{}</p>", {note})},
                  {"notes", notes.empty() ? none : notes},
                  {"removed", gone.empty() ? none : gone},
                  {"legend", colours},
                  {"svg", sanitised_svg(svg)}});
}

std::string page_beside(const std::string& file) {
  size_t dot = file.rfind('.');
  return file.substr(0, dot) + ".html";
}

std::string diff_page(const std::string& first, const std::string& second, const std::string& verdict,
                      const ModuleDiff& diff) {
  static const char* kClass[] = {"gone", "added", "modified", "moved", "modified"};
  constexpr size_t kMostRows = 5000, kMostNames = 200;
  Markup rows;
  for (size_t k = 0; k < diff.lines.size() && k < kMostRows; ++k) {
    const ModuleDiff::Line& l = diff.lines[k];
    Markup what, instruction = markup("{}", {l.name.empty() ? l.other : l.name});
    for (const std::string& w : l.what) what += what.empty() ? markup("{}", {w}) : markup("<br>{}", {w});
    if (l.count > 1) {
      std::string names;
      for (size_t n = 0; n < l.names.size() && n < kMostNames; ++n) names += (n ? ", " : "") + l.names[n];
      if (l.names.size() > kMostNames) names += ", …";
      instruction = markup("<details><summary>{} × {}</summary>{}</details>", {l.names[0], l.count, names});
    }
    rows += markup("<tr class={}><td>{}<td>{}<td>{}<td>{}<td><pre>{}</pre><td><pre>{}</pre></tr>\n",
                   {kClass[l.kind], std::string(1, l.sign), instruction, l.place, what, l.first, l.second});
  }
  if (diff.lines.size() > kMostRows)
    rows += markup("<tr><td colspan=6>… and {} more, in --json</tr>\n", {diff.lines.size() - kMostRows});
  return page_of(kDiffTemplate,
                 {{"first", first},
                  {"second", second},
                  {"verdict", verdict},
                  {"counts", fmt::format("{} only in the first, {} only in the second, {} changed, {} moved",
                                         diff.removed, diff.added, diff.modified, diff.moved)},
                  {"rows", rows}});
}

std::string link_page(const std::string& title, const std::string& svg,
                      const std::vector<std::vector<std::string>>& rows) {
  Markup table;
  for (const auto& row : rows) {
    table += markup("<tr>", {});
    for (const std::string& cell : row) table += markup("<td>{}", {cell});
    table += markup("</tr>\n", {});
  }
  return page_of(kLinkTemplate, {{"title", title}, {"svg", sanitised_svg(svg)}, {"rows", table}});
}

std::string graphs_page(const Recording& r, bool drawn) {
  Markup table;
  for (const StageRow& row : r.rows) {
    if (row.file.empty()) continue;
    table += markup("<tr><td>{}", {row.number});
    if (drawn)
      table += markup("<td><a href=\"./{}\">{}</a>", {page_beside(row.file), row.name()});
    else
      table += markup("<td>{}", {row.name()});
    table += markup("<td>{}<td></tr>\n", {row.after});
  }
  for (const std::string& why : r.problems) table += markup("<tr><td><td><td><td>{}</tr>\n", {why});
  return page_of(kGraphsTemplate, {{"title", r.module_name}, {"rows", table}});
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
  return page_of(kProfileTemplate, {{"title", title}, {"profile", json_data(all)}});
}

}  // namespace hlo
