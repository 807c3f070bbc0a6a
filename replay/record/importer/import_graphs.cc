#include <algorithm>
#include <map>

#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/recording/import.h"

namespace hlo {

std::vector<Recording> open_graphs(const std::string& folder) {
  std::map<int, std::string> graphs;
  std::map<std::string, std::pair<std::string, std::string>> said;  // file → module, what stands in the brackets
  std::vector<std::string> problems;
  for (const std::string& file : files_of(folder, &problems)) {
    if (file.starts_with("hlo_graph_") && file.ends_with(".dot")) {
      std::string number = file.substr(10, file.size() - 14);
      if (!number.empty() && number.size() < 8 && number.find_first_not_of("0123456789") == std::string::npos)
        graphs[atoi(number.c_str())] = file;
      continue;
    }
    if (!file.ends_with(".txt") && !file.ends_with(".log")) continue;
    std::string text = read_confined(folder, file);
    for (size_t at = text.find("computation "); at != std::string::npos; at = text.find("computation ", at + 1)) {
      size_t dot = text.find(".dot", at), slash = dot == std::string::npos ? dot : text.rfind("hlo_graph_", dot);
      if (slash == std::string::npos || slash < at || slash - at > 2000) continue;
      std::string what = printable(text.substr(at + 12, slash - at - 12));
      size_t close = what.rfind(']'), open = close == std::string::npos ? close : what.rfind('[', close);
      if (open == std::string::npos) continue;
      std::string label = what.substr(open + 1, close - open - 1);
      std::replace(label.begin(), label.end(), '\n', ' ');
      said[text.substr(slash, dot + 4 - slash)] = {what.substr(0, what.find_first_of(" [.\n")), label};
    }
  }
  if (graphs.empty()) return {};
  Recording r;
  r.folder = folder, r.source = "xla", r.module_name = "hlo_graph", r.pipeline = "graphs", r.problems = problems;
  size_t last = 0;
  for (const auto& [number, file] : graphs) {
    StageRow row;
    row.number = number, row.file = file, row.changed = true, row.pass = file.substr(0, file.size() - 4);
    row.pipeline = "graphs";
    if (auto found = said.find(file); found != said.end()) {
      r.module_name = found->second.first;
      // `CPU: after inline, before algsimp`
      const std::string& label = found->second.second;
      size_t after = label.find("after "), comma = label.find(',', after == std::string::npos ? 0 : after);
      size_t before = label.find("before ");
      if (after != std::string::npos)
        row.pass = label.substr(after + 6, comma == std::string::npos ? comma : comma - after - 6);
      else
        row.pass = label.find("pipeline start") != std::string::npos ? "pipeline-start" : label;
      if (before != std::string::npos) row.next = label.substr(before + 7);
    }
    // Nodes: statements with attributes that are no edges.
    std::string text = read_confined(folder, file);
    size_t nodes = 0;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = std::string_view(text).substr(at, end - at);
      size_t bracket = line.find('[');
      std::string_view head = line.substr(0, bracket == std::string_view::npos ? 0 : bracket);
      size_t first = head.find_first_not_of(" \t\"");
      bool keyword = first != std::string_view::npos &&
                     (head.substr(first).starts_with("node") || head.substr(first).starts_with("edge") ||
                      head.substr(first).starts_with("graph"));
      bool named = first != std::string_view::npos && isalnum(static_cast<unsigned char>(head[first]));
      if (named && head.find("->") == std::string_view::npos &&
          (!keyword || head.find_first_of("0123456789") != std::string_view::npos))
        ++nodes;
      at = end + 1;
    }
    row.before = number == graphs.begin()->first ? nodes : last;
    row.after = last = nodes;
    r.rows.push_back(std::move(row));
  }
  if (said.empty())
    r.missing.push_back("the console's log (TF_XLA_FLAGS=--xla_generate_hlo_graph=.*), which says what each graph is");
  r.missing.push_back("texts of the stages: graphs can be looked at (view), not run");
  return {r};
}

}  // namespace hlo
