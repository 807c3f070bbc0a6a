// What is accepted, how it prints, and how the malformed twin is refused.
#include <pthread.h>

#include <gtest/gtest.h>

#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"

namespace hlo {
namespace {

std::string round(const std::string& text, const PrintOptions& o = PrintOptions()) {
  return print_module(*parse_module(text, std::make_shared<Universe>(), {"t.hlo", 20}), o);
}
std::string refusal(const std::string& text) {
  try {
    round(text);
    return "accepted";
  } catch (const Failure& e) {
    return e.what();
  }
}
std::string entry(const std::string& body) { return "HloModule m\nENTRY e {\n" + body + "\n}\n"; }

TEST(Parse, PrintsSignatureLayoutAndRoot) {
  EXPECT_EQ(round("HloModule m\nENTRY e { a = f32[2,3] parameter(0)\n b = f32[2,3] negate(a) }"),
            "HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}\n\nENTRY %e (a: f32[2,3]) -> "
            "f32[2,3] {\n  %a = f32[2,3]{1,0} parameter(0)\n"
            "  ROOT %b = f32[2,3]{1,0} negate(%a)\n}\n\n");
}

TEST(Parse, NamesBecomeUniqueOverTheModule) {
  std::string out = round(
      "HloModule m\nf { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }\nENTRY e { x = f32[] parameter(0)\n ROOT r "
      "= f32[] call(x), to_apply=f }");
  EXPECT_NE(out.find("ROOT %r.1 = f32[] call(%x.1), to_apply=%f"), std::string::npos) << out;
}

TEST(Parse, ZeroSuffixIsThePlainName) {
  std::string out = round(
      "HloModule m\nf { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }\nENTRY e { x.0 = f32[] parameter(0)\n ROOT "
      "c = f32[] call(x.0), to_apply=f }");
  EXPECT_NE(out.find("%x.1 = f32[] parameter(0)"), std::string::npos) << out;
}

TEST(Parse, OldDialects) {
  // Typed operands, `name:`, no ENTRY, no percent.
  EXPECT_NE(round("HloModule m:\n%a (p: f32[2]) -> f32[2] { %p = f32[2]{0} parameter(0)\n ROOT %n: = f32[2]{0} "
                  "negate(f32[2]{0} %p) }")
                .find("ROOT %n = f32[2]{0} negate(%p)"),
            std::string::npos);
  EXPECT_NE(round("ENTRY e { ROOT r = f32[] parameter(0) }").find("HloModule module_e"), std::string::npos);
  EXPECT_NE(round("%r = f32[2] add(f32[2] %a, f32[2] %b)").find("is_scheduled=true"), std::string::npos);
  EXPECT_NE(round(entry("p = f32[4] parameter(0)\nq = f32[4] parameter(1)\nROOT r = f32[4] add(p, multiply(p, q))"))
                .find("multiply.anon"),
            std::string::npos);
  EXPECT_NE(round(entry("p = (f32[2], f32[3]) parameter(0)\nROOT r = f32[3] negate(p#1)"))
                .find("get-tuple-element(%p), index=1"),
            std::string::npos);
}

// The names of an inline computation that ends in an error stayed in use (found by fuzzing).
TEST(Parse, AnErrorInsideAnInlineComputationIsOneError) {
  std::string got = refusal(
      "HloModule m\nENTRY e { p = f32[] parameter(0)\n a = f32[] call(p), to_apply={ x = f32[] parameter(0)\n R!\n b = "
      "f32[] negate(p)\n c = f32[] negate(x)\n ROOT d = f32[] negate(b) }");
  EXPECT_NE(got.find("t.hlo:4:3: error"), std::string::npos) << got;
}

TEST(Parse, AnonymousOperationsGetNamesOfTheirOwn) {
  std::string out =
      round(entry("p = f32[4] parameter(0)\nROOT r = f32[4] add(multiply(multiply(p, p), p), multiply(p, p))"));
  EXPECT_NE(out.find("add(%multiply.anon.1, %multiply.anon.2)"), std::string::npos) << out;
}

TEST(Parse, DefaultsAreLeftOut) {
  std::string out =
      round(entry("x = f32[1,4,4,2] parameter(0)\nw = f32[3,3,2,3] parameter(1)\nROOT r = f32[1,2,2,3] convolution(x, "
                  "w), window={size=3x3 stride=1x1}, dim_labels=b01f_01io->b01f, "
                  "feature_group_count=1, operand_precision={default,default}"));
  EXPECT_NE(out.find("convolution(%x, %w), window={size=3x3}, dim_labels=b01f_01io->b01f\n"), std::string::npos) << out;
}

TEST(Parse, LiteralsKeepTheirValues) {
  std::string out = round(entry("ROOT r = f32[2,2] constant({{1., -.5}, {nan, -inf}})"));
  EXPECT_NE(out.find("constant({ { 1, -0.5 }, { nan, -inf } })"), std::string::npos) << out;
  EXPECT_NE(round(entry("ROOT r = f32[16] constant({...})")).find("constant({...})"), std::string::npos);
  EXPECT_NE(round(entry("ROOT r = pred[3] constant({true, 0, 7})")).find("constant({1, 0, 1})"), std::string::npos);
  EXPECT_NE(round(entry("ROOT r = f8e4m3fn[2] constant({0.1, 448})")).find("constant({0.102, 448})"),
            std::string::npos);
}

TEST(Parse, StringsAndDictionaries) {
  std::string out =
      round(entry("ROOT r = f32[] custom-call(), custom_call_target='a\\x41\\\"', backend_config=\"{\\\"a\\\":1}\", "
                  "frontend_attributes={b=\"x\",a={k=[1,2]}}"));
  EXPECT_NE(
      out.find("custom_call_target=\"aA\\\"\", frontend_attributes={a={k=[1,2]},b=\"x\"}, backend_config={\"a\":1}"),
      std::string::npos)
      << out;
}

// Every row: a text and a part of the message, location included.
TEST(Parse, RefusesWithALocation) {
  const std::pair<std::string, std::string> rows[] = {
      {"", "t.hlo:1:1: error: the text is empty"},
      {"HloModule m\nENTRY e { }", "is empty"},
      {"HloModule m, foo=1\nENTRY e { ROOT r = f32[] parameter(0) }", "t.hlo:1:14: error: unknown header field 'foo'"},
      {entry("ROOT r= f32[] parameter(0)"), "needs a space before it"},
      {entry("ROOT replicated = f32[] parameter(0)"), "reserved word"},
      {entry("p = f32[] parameter(0)\nROOT r = f32[] negat(p)"), "did you mean 'negate'?"},
      {entry("p = f32[] parameter(0)\nROOT r = f32[] negate(pp)"),
       "t.hlo:4:23: error: instruction 'pp' is not defined"},
      {entry("p = f32[] parameter(0)\np = f32[] negate(p)"), "first defined here"},
      {entry("p = f32[4] parameter(0)\nROOT r = f32[4] add(f32[5] p, p)"), "operand 'p' is a f32[4], not a f32[5]"},
      {entry("p = f32[4] parameter(0)\nROOT r = f32[4] negate(p), dimensions={0}"),
       "negate takes no attribute 'dimensions'"},
      {entry("p = f32[4] parameter(0)\nROOT r = f32[4] negate(p), shardng={replicated}"), "did you mean 'sharding'?"},
      {entry("p = f32[4] parameter(0)\nROOT r = f32[1] slice(p)"), "slice needs attribute 'slice'"},
      {entry("ROOT r = f32[2] constant({1, 2, 3})"), "too many elements"},
      {entry("ROOT r = f32[2] constant({1})"), "has 1 elements, expected 2"},
      {entry("ROOT r = f16[] constant(65520)"), "out of the range of f16"},
      {entry("ROOT r = s4[] constant(8)"), "out of the range of s4"},
      {entry("ROOT r = s32[] constant(1.5)"), "takes integers"},
      {entry("ROOT r = u64[] constant(18446744073709551616)"), "out of the range of 64 bits"},
      {entry("ROOT r = f32[-1] parameter(0)"), "not negative"},
      {entry("ROOT r = f32[2]{0,1} parameter(0)"), "a layout of 2 dimensions for an array of 1"},
      {entry("ROOT r = f32[2]{0:S(1)T(128)} parameter(0)"), "is in the wrong place"},
      {entry("ROOT r = g32[2] parameter(0)"), "unknown element type 'g32'"},
      {entry("p = f32[] parameter(1)"), "has no parameter 0"},
      {"HloModule m\nENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=a }\na { ROOT r = f32[] "
       "parameter(0) }",
       "computation 'a' is not defined before this place"},
      {"HloModule m\nENTRY e (p: f32[]) -> f32[3] { ROOT r = f32[] parameter(0) }", "returns a f32[], not a f32[3]"},
      {"HloModule m\nENTRY e { ROOT r = f32[] parameter(0)", "the text ends inside a computation"},
      {"HloModule m\nENTRY e { ROOT r = f32[] parameter(0) } junk", "junk"},
      {"HloModule m /* open\nENTRY e { }", "comment does not end"},
      {std::string("HloModule m\0", 12), "NUL byte"},
      {"module @jit_f { func.func @main() { stablehlo.add } }", "StableHLO"},
      {"; ModuleID = 'x'\n", "LLVM IR"},
  };
  for (const auto& [text, part] : rows) {
    std::string message = refusal(text);
    if (part == "junk") {
      EXPECT_NE(message, "accepted") << text;
    } else {
      EXPECT_NE(message.find(part), std::string::npos) << text << "\n  gave: " << message;
    }
  }
}

TEST(Parse, ReportsSeveralErrorsInOneRun) {
  std::string message =
      refusal(entry("  a = f32[] parameter(0)\n  b = f32[] foo(a)\n  c = f32[] negate(b)\n  d = f32[] bar(a)"));
  EXPECT_NE(message.find("'foo'"), std::string::npos);
  EXPECT_NE(message.find("'bar'"), std::string::npos);
  EXPECT_EQ(message.find("'b' is not defined"), std::string::npos) << "an error that follows from another was told";
}

TEST(Parse, DeepNestingIsRefused) {
  std::string deep = "HloModule m\nENTRY e { ROOT p = ";
  for (int i = 0; i < 20000; ++i) deep += "(";
  EXPECT_NE(refusal(deep + "f32[]").find("nested too deeply"), std::string::npos);
}

// What the stack's guard (and the tables) refuse while a text is read has a place in it.
TEST(Parse, LimitsBelowTheParserHaveAPlace) {
  static std::string said;
  said.clear();
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, size_t{512} << 10);
  pthread_t thread;
  auto read = [](void*) -> void* {
    std::string text = "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT r = ";
    for (int i = 0; i < 1900; ++i) text += "f32[] negate(";
    ParseOptions options;
    options.file = "m.hlo", options.first_line = 10;
    try {
      parse_module(text + "p", std::make_shared<Universe>(), options);
    } catch (const Failure& e) {
      said = e.what();
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &small, read, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
  EXPECT_TRUE(said.starts_with("m.hlo:14:")) << said;
  EXPECT_NE(said.find("too deep for this machine's stack"), std::string::npos) << said;
}

// Behind layout assignment, what hands a value on leaves it as it lies; before, layouts say nothing yet.
TEST(Verify, LayoutsWhereValuesAreHandedOn) {
  const std::string functions =
      "HloModule m\nt { x = f32[2,3]{1,0} parameter(0)\n ROOT y = f32[3,2]{0,1} transpose(x), dimensions={1,0} }\n"
      "c { s = f32[2,3]{1,0} parameter(0)\n ROOT p = pred[] constant(false) }\n"
      "b { s = f32[2,3]{1,0} parameter(0)\n ROOT y = f32[2,3]{0,1} copy(s) }\n"
      "ENTRY e { a = f32[2,3]{1,0} parameter(0)\n ";
  const std::pair<std::string, std::string> rows[] = {
      {"ROOT r = f32[3,2]{1,0} call(a), to_apply=t }", "callee t returns f32[3,2]{0,1}, expected f32[3,2]{1,0}"},
      {"d = f32[2,3]{0,1} copy(a)\n ROOT r = f32[3,2]{0,1} call(d), to_apply=t }",
       "callee t takes f32[2,3]{1,0} as parameter 0, f32[2,3]{0,1} is passed"},
      {"ROOT r = f32[2,3]{1,0} while(a), condition=c, body=b }", "body b returns f32[2,3]{0,1}"},
      {"ROOT r = f32[2,3]{0,1} opt-barrier(a) }", "does not change layouts"},
      {"ROOT r = (f32[2,3]{0,1}) tuple(a) }", "has f32[2,3]{1,0} as element 0 of (f32[2,3]{0,1})"},
      {"u = (f32[2,3]{1,0}) tuple(a)\n ROOT r = f32[2,3]{0,1} get-tuple-element(u), index=0 }",
       "does not change layouts"},
      {"ROOT r = f32[3,2]{0,1} call(a), to_apply=t }", ""},
  };
  for (const auto& [text, part] : rows) {
    auto m = parse_module(functions + text, std::make_shared<Universe>());
    EXPECT_TRUE(verify_module(*m, 20, Layouts::kFree).empty()) << text;
    std::vector<VerifyError> errors = verify_module(*m, 20, Layouts::kBinding);
    if (part.empty()) {
      EXPECT_TRUE(errors.empty()) << text << errors[0].message;
      continue;
    }
    ASSERT_EQ(errors.size(), 1u) << text;
    EXPECT_EQ(errors[0].rule, "layouts");
    EXPECT_NE(errors[0].message.find(part), std::string::npos) << errors[0].message;
  }
}

TEST(Verify, FindsBrokenModules) {
  auto errors = [](const std::string& text) {
    std::string all;
    for (const VerifyError& e :
         verify_module(*parse_module(text, std::make_shared<Universe>()), 20, Layouts::kAuto, Moment::kSettled))
      all += e.rule + ": " + e.message + "\n";
    return all;
  };
  EXPECT_EQ(errors(entry("p = f32[2] parameter(0)\nROOT r = f32[2] negate(p)")), "");
  const std::pair<std::string, std::string> rows[] = {
      {entry("p = f32[2] parameter(0)\nROOT r = f32[3] negate(p)"), "shapes: r"},
      {entry("p = f32[2] parameter(0)\nq = f32[3] parameter(1)\nROOT r = f32[2] add(p, q)"),
       "have different dimensions"},
      {entry("p = f32[2] parameter(0)\nROOT r = f32[5,3] broadcast(p), dimensions={0}"), "maps dimension"},
      {entry("p = f32[2] parameter(0)\nROOT r = f32[3,4] broadcast(p), dimensions={0}"), "maps dimension"},
      {entry("p = f32[2,2]{0,0} parameter(0)\nROOT r = f32[2,2] negate(p)"), "layouts: p"},
      {"HloModule m\nf { x = f32[3] parameter(0)\n ROOT n = f32[3] negate(x) }\nENTRY e { p = f32[2] parameter(0)\n "
       "ROOT r = f32[2] call(p), to_apply=f }",
       "shapes: r"},
      {"HloModule m\nc { s = f32[] parameter(0)\n ROOT n = f32[] negate(s) }\nb { s = f32[] parameter(0)\n ROOT n = "
       "f32[] negate(s) }\nENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] while(p), condition=c, body=b }",
       "condition c returns f32[], expected pred[]"},
      {"HloModule m, input_output_alias={ {}: (3, {}) }\nENTRY e { ROOT r = f32[] parameter(0) }", "aliasing: "},
      {"HloModule m, is_scheduled=true\nENTRY e { a = f32[] parameter(0)\n c = f32[] negate(a)\n ROOT b = f32[] "
       "abs(a), control-predecessors={c} }",
       ""},
  };
  for (const auto& [text, part] : rows) {
    std::string got = errors(text);
    if (part.empty()) {
      EXPECT_EQ(got, "") << text;
    } else {
      EXPECT_NE(got.find(part), std::string::npos) << text << "\n  gave: " << got;
    }
  }
}

}  // namespace
}  // namespace hlo
