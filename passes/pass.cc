#include "passes/pass.h"

#include <algorithm>
#include <charconv>

#include "ir/opcode.h"

namespace hlo {

#define HLO_PASS(function, name, aliases, options, summary) bool function(Module&, PassContext&);
#define HLO_NO_PASS(name, aliases, summary)
#include "passes/passes.def"
#undef HLO_PASS
#undef HLO_NO_PASS

namespace {
constexpr PassInfo kPasses[] = {
#define HLO_PASS(function, name, aliases, options, summary) {name, aliases, summary, options, function},
#define HLO_NO_PASS(name, aliases, summary) {name, aliases, summary, "", nullptr},
#include "passes/passes.def"
#undef HLO_PASS
#undef HLO_NO_PASS
};

template <class F>
void each_word(std::string_view text, F f) {
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    if (end) f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}
}  // namespace

int64_t PassContext::number(std::string_view key, int64_t absent) const {
  auto found = options.find(std::string(key));
  if (found == options.end()) return absent;
  int64_t value = 0;
  auto [end, error] = std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  if (error != std::errc() || end != found->second.data() + found->second.size())
    fail(FailureKind::kUsage, "option {} of a pass takes a number, not '{}'", key, found->second);
  return value;
}

void PassContext::note(const Module& m, std::string_view rule, std::initializer_list<InstId> insts,
                       std::string_view text) {
  if (!keep_notes || notes.size() >= max_notes) return;
  Note n;
  n.rule = rule;
  for (InstId i : insts)
    if (i.valid()) n.names.emplace_back(m.inst_name(i)), n.insts.push_back(i);
  n.text = text;
  notes.push_back(std::move(n));
}

bool PassContext::spend(const Module& m, std::string_view rule, std::initializer_list<InstId> insts,
                        std::string_view text) {
  if (fuel <= 0) return false;
  --fuel;
  ++rewrites;
  size_t before = notes.size();
  note(m, rule, insts, text);
  if (notes.size() > before) notes.back().rewrite = rewrites;
  return true;
}

std::span<const PassInfo> all_passes() { return kPasses; }

namespace {
const PassInfo* override_pass = nullptr;
}

void override_pass_for_test(const PassInfo* pass) { override_pass = pass; }

const PassInfo* find_pass(std::string_view name) {
  if (override_pass && override_pass->name == name) return override_pass;
  for (const PassInfo& p : kPasses) {
    if (p.name == name) return &p;
    bool hit = false;
    each_word(p.aliases, [&](std::string_view alias) { hit |= alias == name; });
    if (hit) return &p;
  }
  return nullptr;
}

std::string_view nearest_pass(std::string_view name) {
  std::string_view best;
  int distance = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  auto consider = [&](std::string_view candidate) {
    if (int d = edit_distance(name, candidate); d < distance) distance = d, best = candidate;
  };
  for (const PassInfo& p : kPasses) {
    consider(p.name);
    each_word(p.aliases, consider);
  }
  return best;
}

std::map<std::string, std::string> call_site_options(std::string_view pass, std::string_view pipeline) {
  std::string site(pipeline);
  std::replace(site.begin(), site.end(), '_', ' ');
  std::replace(site.begin(), site.end(), '-', ' ');
  auto has = [&](std::string_view part) { return site.find(part) != std::string::npos; };
  bool after_layouts = has("layout normalization") || has("hlo normalization") || has("post layout assignment") ||
                       has("post fusion") || has("remove no op") || has("fusion") || has("autotune") ||
                       has("pre scheduling");
  std::map<std::string, std::string> out;
  if (pass == "computation-deduplicator" && has("post fusion")) out["mark_fusion_duplications"] = "true";
  if (pass == "float-normalization" && has("conv canonicalization")) out["elementwise"] = "false";
  if (pass == "reduce-decomposer") out["keep_tiled"] = "true";
  if (pass == "operand_upcaster" || pass == "result_caster") out["unsupported_by_library"] = "true";
  if (pass == "algsimp") {
    out["layout_sensitive"] = after_layouts ? "true" : "false";
    if (site == "layout normalization" || site == "hlo normalization" || has("remove no op") ||
        (has("post layout assignment") && !has("part")) || site == "conv canonicalization")
      out["fixpoint"] = "true";
    if (has("remove no op")) out["remove_no_op_reduce_precision"] = "true";
    if (site == "layout normalization" || site == "hlo normalization" || has("post layout assignment") ||
        has("remove no op"))
      out["unconditional_reduce_of_transpose"] = "false";
  }
  if (pass == "cse") {
    out["layout_sensitive"] = after_layouts ? "true" : "false";
    if (site == "fusion") out["only_fusion_computations"] = "true";
  }
  if (pass == "transpose-folding") {
    out["dots"] = site == "simplification" ? "false" : "true";
    out["convs"] = has("hlo normalization") ? "false" : "true";
    if (site == "optimization") out["convs"] = "true";
  }
  return out;
}

}  // namespace hlo
