#include "replay/record/start/wanted_passes.h"

#include <algorithm>
#include <string_view>

#include "ir/base/check.h"
#include "ir/query/find_instruction.h"
#include "passes/pipelines/pipelines.h"

namespace hlo {

std::set<std::string> words(const std::string& list) {
  std::set<std::string> out;
  std::string word;
  for (char c : list + ",") {
    if (c != ',')
      word += c;
    else if (!word.empty())
      out.insert(word), word.clear();
  }
  return out;
}

const PassInfo& pass_or_fail(const std::string& name) {
  const PassInfo* pass = find_pass(name);
  if (pass) return *pass;
  for (const std::string& p : pipeline_names()) {
    // A name of today's pipeline without code is known all the same.
    auto known = [&](auto&& self, const std::vector<Step>& steps) -> bool {
      return std::any_of(steps.begin(), steps.end(),
                         [&](const Step& s) { return s.children.empty() ? s.name == name : self(self, s.children); });
    };
    if (known(known, *find_pipeline(p))) fail(FailureKind::kUnsupported, "pass '{}' is not implemented", name);
  }
  fail(FailureKind::kUsage, "unknown pass '{}'{}", name, did_you_mean(nearest_pass(name)));
}

std::vector<WantedPass> wanted_passes(const std::string& passes) {
  std::vector<WantedPass> list;
  std::string item;
  int depth = 0;
  for (char c : passes + ",") {
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c != ',' || depth > 0) {  // commas inside braces belong to the options
      item += c;
      continue;
    }
    if (item.empty()) continue;
    size_t open = item.find('{');
    std::string name = item.substr(0, open);
    WantedPass w;
    if (open != std::string::npos) {
      if (item.back() != '}') fail(FailureKind::kUsage, "options of a pass are written {}{{key=value,…}}", name);
      std::string body = item.substr(open + 1, item.size() - open - 2);
      std::replace(body.begin(), body.end(), ' ', ',');
      for (const std::string& word : words(body)) {
        size_t eq = word.find('=');
        w.options[word.substr(0, eq)] = eq == std::string::npos ? "true" : word.substr(eq + 1);
      }
    }
    w.pass = &pass_or_fail(name);
    w.options.merge(options_of_name(name));
    const PassInfo& p = *w.pass;
    if (!p.run) fail(FailureKind::kUnsupported, "pass '{}' is not implemented", name);
    for (auto& [key, value] : w.options) value = checked_option(p, key, value);
    list.push_back(std::move(w));
    item.clear();
  }
  if (depth) fail(FailureKind::kUsage, "braces in --passes are not closed");
  return list;
}

}  // namespace hlo
