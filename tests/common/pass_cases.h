// The files testdata/passes/*.hlo: a pass, modules, and the text expected behind it.
#pragma once
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "passes/pass.h"
#include "replay/os/files.h"

namespace hlo {

struct PassCase {
  std::string name, input, expected;
};
struct PassCases {
  std::string path, run;  // run: the pass as --passes takes it
  std::vector<PassCase> cases;
};

inline PassCases read_cases(const std::string& path) {
  PassCases f;
  f.path = path;
  std::string text = read_file(path), line;
  bool expecting = false;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("// RUN: "))
      f.run = line.substr(8);
    else if (line.starts_with("// CASE: "))
      f.cases.push_back({line.substr(9), "", ""});
    else if (line == "// EXPECT")
      expecting = true;
    else if (line == "// -----")
      expecting = false;
    else if (!f.cases.empty())
      (expecting ? f.cases.back().expected : f.cases.back().input) += line + "\n";
  }
  return f;
}

// The pass of a file, null where there is none of that name, and its options.
inline std::pair<const PassInfo*, std::map<std::string, std::string>> pass_of(const PassCases& f) {
  size_t brace = f.run.find('{');
  std::map<std::string, std::string> options;
  if (brace != std::string::npos) {
    std::string list = f.run.substr(brace + 1, f.run.size() - brace - 2) + ",";
    for (size_t at = 0; at < list.size();) {
      size_t comma = list.find(',', at), eq = list.find('=', at);
      options[list.substr(at, eq - at)] = list.substr(eq + 1, comma - eq - 1);
      at = comma + 1;
    }
  }
  return {find_pass(f.run.substr(0, brace)), options};
}

inline std::vector<std::string> pass_case_files() {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(HLO_TESTDATA "/passes")) out.push_back(e.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace hlo
