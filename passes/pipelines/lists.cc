#include "passes/pipelines/lists.h"

#include <algorithm>
#include <array>

#include "ir/base/check.h"

namespace hlo {

Step pass_step(std::string name, std::map<std::string, std::string> options) {
  const PassInfo* row = find_pass(name);
  HLO_CHECK(row, "no row for {}", name);
  for (auto& [key, value] : options) value = checked_option(*row, key, value);
  return {std::move(name), std::move(options), {}, 1};
}

Step pipeline_step(std::string name, std::vector<Step> children, int rounds) {
  return {std::move(name), {}, std::move(children), rounds};
}

namespace {
template <class F>
void each_name(std::string_view names, F f) {
  while (!names.empty()) {
    size_t end = std::min(names.find(' '), names.size());
    if (end) f(std::string(names.substr(0, end)));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}
}  // namespace

std::vector<Step> pass_list(std::string_view names) {
  std::vector<Step> out;
  each_name(names, [&](std::string name) { out.push_back(pass_step(std::move(name))); });
  return out;
}

Step xla_step(std::string name, std::string_view names, const std::vector<Step>& nested, int rounds) {
  std::vector<Step> out;
  each_name(names, [&](std::string pass) {
    auto inner = std::find_if(nested.begin(), nested.end(), [&](const Step& s) { return s.name == pass; });
    if (inner != nested.end()) {
      out.push_back(*inner);
      return;
    }
    std::map<std::string, std::string> given = options_of_name(pass);
    pass.resize(std::min(pass.size(), pass.find('{')));
    const PassInfo* row = find_pass(pass);
    HLO_CHECK(row, "no row for {}", pass);
    std::map<std::string, std::string> options = call_site_options(row->name, name);
    options.merge(given);
    out.push_back(pass_step(std::move(pass), std::move(options)));
  });
  return pipeline_step(std::move(name), std::move(out), rounds);
}

namespace {
// What XLA gives a pass in some of its pipelines, beside what the row in passes.def says.
struct CallSite {
  std::string_view pass, option, value;
  // Words of the pipeline's name, of which one has to be in it; with = in front: the whole name. Blanks for _ and -.
  std::array<std::string_view, 7> sites;
  std::string_view unless = {};  // not where this is in the name
};
constexpr std::array<std::string_view, 7> kEverywhere = {""};
constexpr std::array<std::string_view, 7> kAfterLayouts = {
    "layout normalization", "hlo normalization", "post layout assignment", "remove no op", "fusion", "autotune",
    "pre scheduling"};
constexpr CallSite kCallSites[] = {
    {"algsimp", "layout_sensitive", "true", kAfterLayouts},
    {"algsimp",
     "fixpoint",
     "true",
     {"=layout normalization", "=hlo normalization", "=conv canonicalization", "remove no op"}},
    {"algsimp", "fixpoint", "true", {"post layout assignment"}, "part"},
    {"algsimp", "remove_no_op_reduce_precision", "true", {"remove no op"}},
    {"algsimp",
     "unconditional_reduce_of_transpose",
     "false",
     {"=layout normalization", "=hlo normalization", "post layout assignment", "remove no op"}},
    {"computation-deduplicator", "mark_fusion_duplications", "true", {"post fusion"}},
    {"cse", "layout_sensitive", "true", kAfterLayouts},
    {"cse", "only_fusion_computations", "true", {"=fusion"}},
    {"float-normalization", "elementwise", "false", {"conv canonicalization"}},
    {"operand_upcaster", "unsupported_by_library", "true", kEverywhere},
    {"reduce-decomposer", "keep_tiled", "true", kEverywhere},
    {"result_caster", "unsupported_by_library", "true", kEverywhere},
    {"transpose-folding", "convs", "false", {"hlo normalization"}},
    {"transpose-folding", "dots", "false", {"=simplification"}},
};

bool applies(const CallSite& c, std::string_view site) {
  if (!c.unless.empty() && site.find(c.unless) != std::string_view::npos) return false;
  return std::any_of(c.sites.begin(), c.sites.end(), [&](std::string_view word) {
    if (!word.data()) return false;
    return word.starts_with('=') ? site == word.substr(1) : site.find(word) != std::string_view::npos;
  });
}
}  // namespace

std::map<std::string, std::string> options_of_name(std::string_view pass) {
  // Some run several times in a row, for a type each.
  if (size_t brace = pass.find('{'); brace != std::string_view::npos) {
    const std::string_view option = pass.substr(brace + 1, pass.size() - brace - 2);
    const size_t equal = option.find('=');
    return {{std::string(option.substr(0, equal)), std::string(option.substr(equal + 1))}};
  }
  constexpr std::string_view kNormalization = "float-normalization-";
  if (!pass.starts_with(kNormalization)) return {};
  return {{"low", std::string(pass.substr(kNormalization.size()))}};
}

std::map<std::string, std::string> call_site_options(std::string_view pass, std::string_view pipeline) {
  std::string site(pipeline);
  std::replace(site.begin(), site.end(), '_', ' ');
  std::replace(site.begin(), site.end(), '-', ' ');
  std::map<std::string, std::string> out;
  for (const CallSite& c : kCallSites)
    if (c.pass == pass && applies(c, site)) out[std::string(c.option)] = c.value;
  return out;
}

}  // namespace hlo
