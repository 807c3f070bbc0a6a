// rename_fusions (xla/backends/gpu/transforms/rename_fusions.cc): fusions are called after the kernel that they become
// and what it is about.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/analysis/fusion/fusion_analysis.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// `input` of kInput; empty of those that go to libraries and other compilers, which keep their names.
std::string_view kernel_word(std::string_view kind) {
  if (kind == "kLoop") return "loop";
  if (kind == "kInput") return "input";
  return kind == "kOutput" ? "output" : "";
}

std::string hero_words(const Module& m, InstId fusion) {
  const FusionView view(m, fusion);
  std::set<std::string> words;
  for (InstId root : view.roots()) {
    std::string word(op_text(m.op(view.contains(root) ? fusion_hero(view, root) : root)));
    std::replace(word.begin(), word.end(), '-', '_');
    words.insert(std::move(word));
  }
  return fmt::format("{}", fmt::join(words, "_"));
}

}  // namespace

//   %fusion.3 = fusion(A), kind=kLoop      →      %loop_add_multiply_fusion = fusion(A), kind=kLoop
bool run_rename_fusions(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Fusion) continue;
      const std::string_view word = kernel_word(m.u().text(m.attrs(i).text(Attr::kind)));
      if (word.empty()) continue;
      const std::string heroes = hero_words(m, i);
      if (!ctx.spend(m, "named after its kernel", {i})) return changed;
      m.set_uniquified_name(i, fmt::format("{}_{}_fusion", word, heroes));
      m.rename_computation(m.called(i)[0], "fused_" + heroes);
      changed = true;
    }
  return changed;
}

}  // namespace hlo
