// Every rule of algsimp is a row: docs/rules.md is written of them (HLO_UPDATE=1 writes it anew), and each fires in a
// case of testdata/passes/algsimp*.hlo.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "parser/parser.h"
#include "passes/scope.h"
#include "passes/simplify/algebraic/algebraic_rule.h"
#include "replay/os/files.h"
#include "tests/common/pass_cases.h"

namespace hlo {
namespace {

std::string opcodes_of(const AlgebraicRule& rule) {
  const std::string_view first = op_info(rule.opcodes.first).text, second = op_info(rule.opcodes.second).text;
  return first == second ? std::string(first) : fmt::format("{}, {}", first, second);
}

std::string page() {
  std::string text =
      "# Rules of algsimp\n\n"
      "Each row is a rule as the pass has it (`passes/simplify/algebraic/`), in the order in which the rules of an "
      "opcode are tried, which is XLA's. `explain`, `opt --json` and `bisect` call a rule by its name here. A and B "
      "are any instructions, K a constant, P of type pred.\n\n"
      "Written by `HLO_UPDATE=1 build/tests/rules_test`.\n\n"
      "| rule | of | before | after |\n| --- | --- | --- | --- |\n";
  for (const AlgebraicRule* rule : algebraic_rules())
    text += fmt::format("| {} | `{}` | `{}` | `{}` |\n", rule->id, opcodes_of(*rule), rule->before, rule->after);
  return text;
}

// Rules that fire in the cases of algsimp.
std::set<std::string> fired_rules() {
  std::set<std::string> fired;
  for (const std::string& path : pass_case_files()) {
    if (!std::filesystem::path(path).filename().string().starts_with("algsimp")) continue;
    const PassCases f = read_cases(path);
    const auto [pass, options] = pass_of(f);
    for (const PassCase& c : f.cases) {
      auto m = parse_module(c.input, std::make_shared<Universe>(), {c.name, 20});
      PassContext context;
      context.options = options;
      PassEvent event;
      run_pass(*m, *pass, context, {}, &event);
      for (const Note& note : event.notes) fired.insert(note.rule);
    }
  }
  return fired;
}

TEST(Rules, PageIsWrittenOfRows) {
  const std::string file = HLO_TESTDATA "/../docs/rules.md", text = page();
  if (std::getenv("HLO_UPDATE")) write_file(file, text);
  EXPECT_EQ(read_file(file), text) << "HLO_UPDATE=1 writes it anew";
}

TEST(Rules, NamesAreUnique) {
  std::set<std::string_view> seen;
  for (const AlgebraicRule* rule : algebraic_rules()) {
    EXPECT_TRUE(seen.insert(rule->id).second) << rule->id << " is two rows";
    EXPECT_FALSE(rule->before.empty() || rule->after.empty()) << rule->id;
  }
}

TEST(Rules, EachFiresInACase) {
  const std::set<std::string> fired = fired_rules();
  for (const AlgebraicRule* rule : algebraic_rules())
    EXPECT_TRUE(fired.contains(std::string(rule->id))) << "no case of testdata/passes/algsimp*.hlo: " << rule->id;
}

}  // namespace
}  // namespace hlo
