// Stage pairs of XLA's dumps (testdata/agreement/pairs.jsonl, kept by tests/dev/oracle/keep_pairs.py): of the first our
// pass makes what XLA's made, as `opt --call-site` and then `diff` do it from the command line.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/pipelines/pipelines.h"
#include "replay/compare/diff.h"
#include "replay/record/start/made_order.h"
#include "replay/record/start/wanted_passes.h"

namespace hlo {
namespace {

struct Pair {
  std::string pass, pipeline, before, after;
};

std::vector<Pair> read_pairs() {
  std::ifstream file(HLO_TESTDATA "/agreement/pairs.jsonl");
  std::vector<Pair> pairs;
  for (std::string line; std::getline(file, line);) {
    auto j = nlohmann::json::parse(line);
    pairs.push_back({j["pass"], j["pipeline"], j["before"], j["after"]});
  }
  return pairs;
}

// The text that `opt --passes=PASS --call-site=PIPELINE` prints.
std::string ours(const Pair& pair) {
  const WantedPass wanted = wanted_passes(pair.pass).at(0);
  auto m = parse_module(pair.before, std::make_shared<Universe>(), {"before"});
  for (const VerifyError& e : verify_module(*m)) fail(FailureKind::kInvalid, "before: {} [{}]", e.message, e.rule);
  if (!m->config().is_scheduled) put_in_order_made(*m);
  PassContext context;
  context.keep_notes = false;
  context.options = call_site_options(wanted.pass->name, pair.pipeline);
  for (const auto& [key, value] : wanted.options) context.options[key] = value;
  PassEvent event;
  run_pass(*m, *wanted.pass, context, {}, &event);  // which verifies what it leaves
  return lossless_text(*m);
}

// Both texts are read once more: what was printed is compared, not what was in memory.
ModuleDiff difference_to_xla(const Pair& pair) {
  auto universe = std::make_shared<Universe>();
  auto a = parse_module(ours(pair), universe, {"ours"}), b = parse_module(pair.after, universe, {"theirs"});
  return diff_modules(*a, *b);
}

std::string in_words(const ModuleDiff& d) {
  std::string out = fmt::format("{} only ours, {} only XLA's, {} changed", d.removed, d.added, d.modified);
  for (const ModuleDiff::Line& l : d.lines)
    out += fmt::format("\n{} {} {}: {}\n  - {}\n  + {}", l.sign, l.name, l.other, fmt::join(l.what, "; "), l.first,
                       l.second);
  return out;
}

// One test for each pass, so that shards share them out.
class Agreement : public testing::TestWithParam<std::string> {};

const std::map<std::string, std::vector<Pair>>& pairs_by_pass() {
  static const auto all = [] {
    std::map<std::string, std::vector<Pair>> out;
    for (Pair& p : read_pairs()) out[p.pass].push_back(std::move(p));
    return out;
  }();
  return all;
}

TEST_P(Agreement, AsXla) {
  const std::vector<Pair>& pairs = pairs_by_pass().at(GetParam());
  for (size_t n = 0; n < pairs.size(); ++n) {
    try {
      ModuleDiff d = difference_to_xla(pairs[n]);
      EXPECT_TRUE(d.same) << GetParam() << ", pair " << n << ": " << in_words(d) << "\n" << pairs[n].before;
    } catch (const Failure& e) {
      ADD_FAILURE() << GetParam() << ", pair " << n << ": " << e.what() << "\n" << pairs[n].before;
    }
  }
  RecordProperty("pairs", static_cast<int>(pairs.size()));
}

std::vector<std::string> passes_with_pairs() {
  std::vector<std::string> out;
  for (const auto& [pass, pairs] : pairs_by_pass()) out.push_back(pass);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Pairs, Agreement, testing::ValuesIn(passes_with_pairs()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

// Nothing was lost on the way here.
TEST(Pairs, AreAllThere) {
  size_t pairs = 0;
  for (const auto& [pass, list] : pairs_by_pass()) pairs += list.size();
  fmt::print("{} pairs of {} passes\n", pairs, pairs_by_pass().size());
  EXPECT_GE(pairs, 1416u);
  EXPECT_GE(pairs_by_pass().size(), 94u);
}

}  // namespace
}  // namespace hlo
