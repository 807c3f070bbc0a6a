// Runs testdata/passes/*.hlo: each case is a module, a pass and the text expected behind it. Besides the text: the
// verifier must hold before and after, and both must evaluate to the same on two seeds. HLO_UPDATE=1 rewrites the
// expected texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "ir/eval/evaluator.h"
#include "ir/print.h"
#include "ir/verifier.h"
#include "parser/parser.h"
#include "passes/pass.h"
#include "replay/files.h"
#include "tests/compare.h"

namespace hlo {
namespace {

struct Case {
  std::string name, input, expected;
};
struct File {
  std::string path, run;
  std::vector<Case> cases;
};

File read_cases(const std::string& path) {
  File f;
  f.path = path;
  std::string text = read_file(path), line;
  bool expecting = false;
  auto end_case = [&] { expecting = false; };
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
      end_case();
    else if (!f.cases.empty())
      (expecting ? f.cases.back().expected : f.cases.back().input) += line + "\n";
  }
  return f;
}

// Short text without the module's header line.
std::string body(const Module& m) {
  PrintOptions o = PrintOptions::Short();
  o.control = o.stable_order = true;
  std::string text = print_module(m, o);
  text = text.substr(text.find("\n\n") + 2);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

class PassFileTest : public testing::TestWithParam<std::string> {};

TEST_P(PassFileTest, Cases) {
  File f = read_cases(GetParam());
  ASSERT_FALSE(f.run.empty());
  ASSERT_FALSE(f.cases.empty());
  size_t brace = f.run.find('{');
  const PassInfo* pass = find_pass(f.run.substr(0, brace));
  ASSERT_TRUE(pass && pass->run) << f.run;
  std::map<std::string, std::string> options;
  if (brace != std::string::npos) {
    std::string list = f.run.substr(brace + 1, f.run.size() - brace - 2) + ",";
    for (size_t at = 0; at < list.size();) {
      size_t comma = list.find(',', at), eq = list.find('=', at);
      options[list.substr(at, eq - at)] = list.substr(eq + 1, comma - eq - 1);
      at = comma + 1;
    }
  }
  bool update = std::getenv("HLO_UPDATE") != nullptr;
  for (Case& c : f.cases) {
    SCOPED_TRACE(GetParam() + ": " + c.name);
    auto universe = std::make_shared<Universe>();
    std::unique_ptr<Module> before, m;
    try {
      before = parse_module(c.input, universe, {c.name, 20});
      m = before->clone();
    } catch (const Failure& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    for (const VerifyError& e : verify_module(*before)) ADD_FAILURE() << "before: " << e.message;
    PassContext context;
    context.options = options;
    bool changed = pass->run(*m, context);
    m->cleanup();
    for (const VerifyError& e : verify_module(*m)) ADD_FAILURE() << "after: " << e.message;
    std::string got = body(*m);
    if (update) c.expected = got;
    EXPECT_EQ(got, c.expected);
    if (!changed) {
      EXPECT_EQ(body(*before), got) << "the pass says that it changed nothing";
    }
    for (uint64_t seed : {1, 2}) expect_same_results(*before, *m, seed, 1e-5);
  }
  if (update) {
    std::string text = "// RUN: " + f.run + "\n";
    for (size_t i = 0; i < f.cases.size(); ++i)
      text += (i ? "// -----\n" : "") + std::string("// CASE: ") + f.cases[i].name + "\n" + f.cases[i].input +
              "// EXPECT\n" + f.cases[i].expected;
    write_file(GetParam(), text);
  }
}

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(std::string(HLO_TESTDATA) + "/passes"))
    out.push_back(e.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Passes, PassFileTest, testing::ValuesIn(files()), [](const auto& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char ch) { return !isalnum(static_cast<unsigned char>(ch)); }, '_');
  return name;
});

// No pass without a file of cases.
TEST(PassFiles, EveryPassHasOne) {
  for (const PassInfo& p : all_passes())
    if (p.run) {
      EXPECT_TRUE(std::filesystem::exists(std::string(HLO_TESTDATA) + "/passes/" + std::string(p.name) + ".hlo"))
          << p.name;
    }
}

}  // namespace
}  // namespace hlo
