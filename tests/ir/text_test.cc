// testdata/text: texts that are accepted, with what they print, and malformed ones, with where and why they are
// refused. One JSON object a line: {"name", "text", "prelude"?, "permissive"?, "style"?, "told"?, and "prints" |
// "root" | "error"}. cases.jsonl was judged by XLA (tests/dev/oracle/fuzz_oracle.py compares anew); dialects.jsonl
// holds what today's XLA no longer reads: the grammar of 2018 and 2019, several modules a file, logs.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/eval/evaluator.h"
#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/excerpt/excerpt.h"
#include "parser/excerpt/source_text.h"
#include "parser/parser.h"
#include "replay/os/files.h"

namespace hlo {
namespace {

const std::string kFolder = std::string(HLO_TESTDATA) + "/text/";

void run_file(const std::string& file, size_t least) {
  std::string prelude = read_file(kFolder + "prelude.hlo");
  std::ifstream in(kFolder + file);
  std::string line;
  size_t count = 0;
  while (std::getline(in, line)) {
    nlohmann::json c = nlohmann::json::parse(line);
    std::string name = c["name"], text = c["text"];
    SCOPED_TRACE(name + "\n" + text);
    ++count;
    if (c.value("prelude", false)) text = prelude + text + "\n}\n";
    ParseOptions options;
    options.file = "-";
    options.permissive = c.value("permissive", false);
    std::string plain;
    if (strip_log_prefixes(text, &plain)) {
      text = plain;
      options.text_behind = true;
    }
    PrintOptions style;
    ASSERT_TRUE(PrintOptions::by_name(c.value("style", "default"), &style));
    std::string printed, error, told;
    try {
      for (std::string_view part : split_modules(text)) {
        if (!printed.empty()) printed += "// -----\n";
        Excerpt excerpt;
        auto u = std::make_shared<Universe>();
        auto m = options.permissive ? parse_excerpt(part, u, options, &excerpt) : parse_module(part, u, options);
        printed += print_module(*m, style);
        for (const ExcerptNote& n : excerpt.notes) told += fmt::format("{}: {}\n", n.line, n.text);
      }
    } catch (const Failure& e) {
      error = e.what();
      error = error.substr(0, error.find('\n'));
    }
    // What tolerant reading tells: nothing where nothing is said.
    EXPECT_EQ(told, c.value("told", ""));
    if (c.contains("error")) {
      // `-:6:3: error: message`
      std::string want = c["error"];
      size_t colon = want.find(": ");
      EXPECT_EQ(error, "-:" + want.substr(0, colon) + ": error: " + want.substr(colon + 2)) << printed;
    } else if (c.contains("root")) {
      size_t at = printed.rfind("  ROOT %r");
      std::string root = at == std::string::npos ? error : printed.substr(at + 2, printed.find('\n', at) - at - 2);
      while (root.ends_with(" ")) root.pop_back();
      EXPECT_EQ(root, c["root"].get<std::string>()) << error;
    } else {
      EXPECT_EQ(printed, c["prints"].get<std::string>()) << error;
    }
  }
  EXPECT_GE(count, least);
}

TEST(Text, AsXlaReadsIt) { run_file("cases.jsonl", 1300); }
TEST(Text, OlderDialectsAndFiles) { run_file("dialects.jsonl", 60); }

// verifier.jsonl: a module that parses and breaks one rule: {"text", "prelude"?, "rule", "message"}; with the rule
// "none" it breaks none. "between": the rule that it breaks between passes all the same, where XLA's verifier takes
// what neither passes nor executors do; "message" is that one's then.
TEST(Text, VerifierNamesTheRuleThatIsBroken) {
  std::string prelude = read_file(kFolder + "prelude.hlo");
  std::ifstream in(kFolder + "verifier.jsonl");
  std::string line;
  size_t count = 0;
  while (std::getline(in, line)) {
    nlohmann::json c = nlohmann::json::parse(line);
    std::string text = c["text"];
    SCOPED_TRACE(text);
    ++count;
    if (c.value("prelude", false)) text = prelude + text + "\n}\n";
    const std::unique_ptr<Module> module = parse_module(text, std::make_shared<Universe>());
    std::vector<VerifyError> errors = verify_module(*module, 20, Layouts::kAuto, Moment::kSettled);
    std::string rule = c["rule"];
    if (rule == "none") {
      EXPECT_TRUE(errors.empty()) << errors[0].message;
      if (!c.contains("between")) continue;
      rule = c["between"];
      errors = verify_module(*module);
    }
    ASSERT_FALSE(errors.empty());
    EXPECT_EQ(errors[0].rule, rule);
    EXPECT_NE(errors[0].message.find(c["message"].get<std::string>()), std::string::npos) << errors[0].message;
  }
  EXPECT_GE(count, 110u);
}

// A sparse array is its dense twin to the evaluator.
TEST(Text, SparseArraysEvaluateAsDenseOnes) {
  auto value = [](const char* constant) {
    auto m = parse_module(std::string("HloModule m\nENTRY e { c = ") + constant +
                              "\n p = f32[2,3] parameter(0)\n ROOT r = f32[2,3] add(p, c) }",
                          std::make_shared<Universe>());
    Value v = Evaluator(*m).run(seeded_arguments(*m, 1, false));
    return std::string(v.bytes(), v.data->size());
  };
  EXPECT_EQ(value("f32[2,3]sparse{4} constant(f32[2,3]sparse{4} {[0, 1]: 1, [1, 2]: -4})"),
            value("f32[2,3] constant({{0, 1, 0}, {0, 0, -4}})"));
}

}  // namespace
}  // namespace hlo
