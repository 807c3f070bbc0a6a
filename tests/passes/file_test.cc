// Runs testdata/passes/*.hlo: each case is a module, a pass and the text expected behind it. Besides the text: the
// verifier must hold before and after, and both must evaluate to the same on two seeds. HLO_UPDATE=1 rewrites the
// expected texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "ir/eval/evaluator.h"
#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/scope.h"
#include "replay/os/files.h"
#include "tests/common/compare.h"
#include "tests/common/pass_cases.h"

namespace hlo {
namespace {

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
  PassCases f = read_cases(GetParam());
  ASSERT_FALSE(f.run.empty());
  ASSERT_FALSE(f.cases.empty());
  const auto [pass, options] = pass_of(f);
  ASSERT_TRUE(pass && pass->run) << f.run;
  bool update = std::getenv("HLO_UPDATE") != nullptr;
  for (PassCase& c : f.cases) {
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
    PassEvent event;
    run_pass(*m, *pass, context, {}, &event);
    for (const VerifyError& e : verify_module(*m)) ADD_FAILURE() << "after: " << e.message;
    std::string got = body(*m);
    if (update) c.expected = got;
    EXPECT_EQ(got, c.expected);
    if (!event.changed) {
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

INSTANTIATE_TEST_SUITE_P(Passes, PassFileTest, testing::ValuesIn(pass_case_files()), [](const auto& info) {
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
