// The engine behind the page: what it answers to every method of viewer/page/protocol.ts, and what it refuses.
#include "viewer/engine/engine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "ir/print.h"
#include "parser/parser.h"
#include "replay/files.h"
#include "replay/replayer.h"

namespace hlo {
namespace {

using nlohmann::json;

constexpr const char* kModule =
    R"(HloModule jit_f, entry_computation_layout={(f32[8,16]{1,0}, f32[16,4]{1,0})->f32[8]{0}}

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  a = f32[8,16]{1,0} parameter(0)
  b = f32[16,4]{1,0} parameter(1)
  zero = f32[] constant(0)
  zeros = f32[8,16]{1,0} broadcast(zero), dimensions={}
  plus = f32[8,16]{1,0} add(a, zeros), metadata={op_name="jit(f)/layer/plus" source_file="model.py" source_line=7}
  dot = f32[8,4]{1,0} dot(plus, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  exp = f32[8,4]{1,0} exponential(dot), metadata={op_name="jit(f)/layer/exp"}
  neg = f32[8,4]{1,0} negate(exp)
  ROOT sum = f32[8]{0} reduce(neg, zero), dimensions={1}, to_apply=add
}
)";

json ask(PageEngine& engine, const json& question) { return json::parse(engine.answer(question.dump())); }

// The answer, which must be none of failure.
json answered(PageEngine& engine, const json& question) {
  json out = ask(engine, question);
  EXPECT_FALSE(out.contains("error")) << question << "\n" << out.dump(1).substr(0, 2000);
  return out;
}
std::string refused(PageEngine& engine, const json& question) {
  json out = ask(engine, question);
  EXPECT_TRUE(out.contains("error")) << question << "\n" << out.dump(1).substr(0, 400);
  return out.contains("error") ? out["error"].value("message", "") : "";
}

json at(int module, int state) { return {{"module", module}, {"state", state}}; }

// A recording of a module's way through a pipeline, in a folder that is gone with the object.
class Recorded {
 public:
  explicit Recorded(const std::string& text, const std::string& pipeline = "xla-2019") {
    auto m = parse_module(text, std::make_shared<Universe>());
    ReplayOptions options;
    options.pipeline = pipeline;
    options.formats = {"text", "buffers", "thunks"};
    OutputFolder out(path(), false);
    replay(*m, options, out);
    out.commit();
  }
  std::string path() const { return folder_.path() + "/out"; }

 private:
  TemporaryFolder folder_;
};

class EngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { recorded_ = std::make_unique<Recorded>(kModule); }
  static void TearDownTestSuite() { recorded_.reset(); }
  void SetUp() override { engine_.open(recorded_->path()); }

  int states() { return answered(engine_, {{"method", "modules"}})["modules"][0]["states"]; }
  // The id of an instruction by name.
  int id_of(int state, const std::string& name) {
    json hits = answered(engine_, {{"method", "search"}, {"at", at(0, state)}, {"query", "name:" + name}})["hits"];
    for (const json& hit : hits)
      if (hit["name"] == name) return hit["id"];
    ADD_FAILURE() << "no " << name << " in state " << state;
    return 0;
  }

  static std::unique_ptr<Recorded> recorded_;
  PageEngine engine_;
};
std::unique_ptr<Recorded> EngineTest::recorded_;

TEST_F(EngineTest, TellsModules) {
  json modules = answered(engine_, {{"method", "modules"}})["modules"];
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0]["name"], "jit_f");
  EXPECT_EQ(modules[0]["function"], "f");
  EXPECT_EQ(modules[0]["source"], "hlo-replay");
  EXPECT_EQ(modules[0]["pipeline"], "xla-2019");
  EXPECT_EQ(modules[0]["instructions_first"], 12);
  EXPECT_GT(modules[0]["states"], 2);
  EXPECT_TRUE(modules[0]["problems"].empty()) << modules[0]["problems"];
}

TEST_F(EngineTest, TellsRows) {
  json rows = answered(engine_, {{"method", "rows"}, {"module", 0}})["rows"];
  ASSERT_GT(rows.size(), 20u);
  EXPECT_EQ(rows[0]["kind"], "input");
  EXPECT_EQ(rows[0]["state"], 0);
  EXPECT_EQ(rows.back()["kind"], "result");
  EXPECT_EQ(rows.back()["state"], states() - 1);
  int changed = 0;
  for (size_t k = 0; k < rows.size(); ++k) {
    EXPECT_EQ(rows[k]["row"], k);
    changed += rows[k]["pass"] == "algsimp" && rows[k]["rewrites"] > 0;
  }
  EXPECT_GT(changed, 0);
}

TEST_F(EngineTest, TextIsTheStagesText) {
  for (int k = 0; k < states(); ++k) {
    json t = answered(engine_, {{"method", "text"}, {"at", at(0, k)}, {"full", true}});
    std::string whole;
    for (const std::string line : t["lines"]) whole += line + "\n";
    auto m = parse_module(whole, std::make_shared<Universe>());
    std::string again = lossless_text(*m);
    if (!again.ends_with('\n')) again += '\n';
    EXPECT_EQ(again, whole) << "state " << k;
    for (size_t line = 0; line < t["lines"].size(); ++line) {
      const std::string text = t["lines"][line];
      EXPECT_EQ(!t["ids"][line].is_null(), text.starts_with("  ") && text.find(" = ") != std::string::npos) << text;
    }
  }
}

TEST_F(EngineTest, TextByWindows) {
  json whole = answered(engine_, {{"method", "text"}, {"at", at(0, 0)}});
  json part = answered(engine_, {{"method", "text"}, {"at", at(0, 0)}, {"from", 3}, {"lines", 2}});
  ASSERT_EQ(part["lines"].size(), 2u);
  EXPECT_EQ(part["from"], 3);
  EXPECT_EQ(part["total"], whole["lines"].size());
  EXPECT_EQ(part["lines"][1], whole["lines"][4]);
  EXPECT_EQ(part["ids"][1], whole["ids"][4]);
  EXPECT_TRUE(answered(engine_, {{"method", "text"}, {"at", at(0, 0)}, {"from", 100000}})["lines"].empty());
  EXPECT_TRUE(answered(engine_, {{"method", "text"}, {"at", at(0, 0)}, {"lines", 0}})["lines"].empty());
}

TEST_F(EngineTest, OpTellsAllOfOne) {
  json op = answered(engine_, {{"method", "op"}, {"at", at(0, 0)}, {"id", id_of(0, "dot")}});
  EXPECT_EQ(op["name"], "dot");
  EXPECT_EQ(op["opcode"], "dot");
  EXPECT_EQ(op["cls"], "contraction");
  EXPECT_EQ(op["shape"], "f32[8,4]");
  EXPECT_EQ(op["layout"], "{1,0}");
  EXPECT_EQ(op["computation"], "main");
  ASSERT_EQ(op["operands"].size(), 2u);
  EXPECT_EQ(op["operands"][0]["name"], "plus");
  ASSERT_EQ(op["users"].size(), 1u);
  EXPECT_EQ(op["users"][0]["name"], "exp");
  json attributes = {{{"name", "lhs_contracting_dims"}, {"value", "{1}"}},
                     {{"name", "rhs_contracting_dims"}, {"value", "{0}"}}};
  EXPECT_EQ(op["attributes"], attributes);
  EXPECT_EQ(op["cost"]["flops"], 2 * 8 * 16 * 4);
  EXPECT_EQ(op["cost"]["bytes"], 4 * (8 * 16 + 16 * 4 + 8 * 4));
  ASSERT_FALSE(op["history"].empty());
  EXPECT_EQ(op["history"][0]["state"], 0);
  EXPECT_EQ(op["history"][0]["what"], "stands there from the start");

  json plus = answered(engine_, {{"method", "op"}, {"at", at(0, 0)}, {"id", id_of(0, "plus")}});
  EXPECT_EQ(plus["source"]["op_name"], "jit(f)/layer/plus");
  EXPECT_EQ(plus["source"]["frames"], json::array({"model.py:7"}));
  // a + 0 is a: the rule is told where it ends.
  bool told = false;
  for (const json& event : plus["history"]) told |= !event["rules"].empty() && event["state"] > 0;
  EXPECT_TRUE(told) << plus["history"].dump(1);

  json sum = answered(engine_, {{"method", "op"}, {"at", at(0, 0)}, {"id", id_of(0, "sum")}});
  ASSERT_EQ(sum["calls"].size(), 1u);
  EXPECT_EQ(sum["calls"][0]["role"], "to_apply");
  EXPECT_EQ(sum["calls"][0]["instructions"], 3);
}

TEST_F(EngineTest, FusionsTellWhy) {
  const int last = states() - 1;
  json hits = answered(engine_, {{"method", "search"}, {"at", at(0, last)}, {"query", "op:fusion"}})["hits"];
  ASSERT_FALSE(hits.empty());
  json op = answered(engine_, {{"method", "op"}, {"at", at(0, last)}, {"id", hits[0]["id"]}});
  ASSERT_TRUE(op["fusion"].is_object());
  EXPECT_EQ(op["fusion"]["name"], hits[0]["name"]);
  EXPECT_GT(op["fusion"]["ids"].size(), 1u);
  json decisions = answered(engine_, {{"method", "decisions"}, {"module", 0}})["decisions"];
  EXPECT_FALSE(decisions.empty());
  for (const json& d : decisions) EXPECT_TRUE(d["verdict"] == "fused" || d["verdict"] == "declined");
}

TEST_F(EngineTest, SearchWords) {
  auto names = [&](const std::string& query) {
    json out = json::array();
    const json found = answered(engine_, {{"method", "search"}, {"at", at(0, 0)}, {"query", query}});
    for (const json& hit : found["hits"]) out.push_back(hit["name"]);
    std::sort(out.begin(), out.end());
    return out;
  };
  EXPECT_EQ(names("op:add"), json({"plus", "s"}));
  EXPECT_EQ(names("op:add -in:main"), json::array({"s"}));
  EXPECT_EQ(names("LAYER"), json({"exp", "plus"}));
  EXPECT_EQ(names("scope:layer/exp"), json::array({"exp"}));
  EXPECT_EQ(names("shape:f32[8,4]"), json({"dot", "exp", "neg"}));
  EXPECT_EQ(names("attr:contracting"), json::array({"dot"}));
  EXPECT_EQ(names("bytes>=512 op:parameter"), json::array({"a"}));
  EXPECT_EQ(names("flops>1K"), json::array({"dot"}));
  EXPECT_EQ(names("user>1"), json::array({"zero"}));
  EXPECT_EQ(names("%dot"), json::array({"dot"}));
  EXPECT_EQ(names(""), json::array());
  EXPECT_EQ(names("nothing_of_that_name"), json::array());
  json some = answered(engine_, {{"method", "search"}, {"at", at(0, 0)}, {"query", "shape:f32"}, {"limit", 3}});
  EXPECT_EQ(some["hits"].size(), 3u);
  EXPECT_EQ(some["total"], 12);
  // The line is the text's.
  json hit = answered(engine_, {{"method", "search"}, {"at", at(0, 0)}, {"query", "name:neg"}})["hits"][0];
  json line = answered(engine_, {{"method", "text"}, {"at", at(0, 0)}, {"from", hit["line"]}, {"lines", 1}});
  EXPECT_EQ(line["ids"][0], hit["id"]);
  EXPECT_NE(refused(engine_, {{"method", "search"}, {"at", at(0, 0)}, {"query", "bytes>much"}}).find("number"),
            std::string::npos);
}

TEST_F(EngineTest, DiffById) {
  json rows = answered(engine_, {{"method", "rows"}, {"module", 0}})["rows"];
  int simplified = -1;
  for (const json& row : rows)
    if (simplified < 0 && row["rewrites"] > 0) simplified = row["state"];
  ASSERT_GT(simplified, 0);
  json d = answered(engine_, {{"method", "diff"}, {"a", at(0, simplified - 1)}, {"b", at(0, simplified)}});
  EXPECT_FALSE(d["same"]);
  ASSERT_FALSE(d["changes"].empty());
  json back = answered(engine_, {{"method", "diff"}, {"a", at(0, simplified)}, {"b", at(0, simplified - 1)}});
  EXPECT_FALSE(back["same"]);
  json same = answered(engine_, {{"method", "diff"}, {"a", at(0, 1)}, {"b", at(0, 1)}});
  EXPECT_TRUE(same["same"]);
  EXPECT_TRUE(same["changes"].empty());
}

TEST_F(EngineTest, FollowsThroughStages) {
  const int dot = id_of(0, "dot"), last = states() - 1;
  EXPECT_EQ(answered(engine_, {{"method", "follow"}, {"at", at(0, 0)}, {"id", dot}, {"to", 0}})["ids"],
            json::array({dot}));
  json ids = answered(engine_, {{"method", "follow"}, {"at", at(0, 0)}, {"id", dot}, {"to", last}})["ids"];
  ASSERT_TRUE(ids.is_array());
  ASSERT_FALSE(ids.empty());
  json back = answered(engine_, {{"method", "follow"}, {"at", at(0, last)}, {"id", ids[0]}, {"to", 0}})["ids"];
  EXPECT_NE(std::find(back.begin(), back.end(), dot), back.end()) << back;
}

TEST_F(EngineTest, LocatesInTheDrawing) {
  EXPECT_TRUE(answered(engine_, {{"method", "locate"}, {"at", at(0, 0)}, {"id", id_of(0, "dot")}})["keys"].is_array());
}

TEST_F(EngineTest, Draws) {
  json d = answered(engine_, {{"method", "drawing"}, {"at", at(0, 0)}, {"open", nullptr}, {"all", true}});
  const json& boxes = d["boxes"];
  const size_t n = boxes["key"].size();
  ASSERT_GT(n, 5u);
  for (const auto& [column, list] : boxes.items()) EXPECT_EQ(list.size(), n) << column;
  for (size_t k = 0; k < n; ++k) EXPECT_LT(boxes["parent"][k].get<int>(), static_cast<int>(k));
  EXPECT_EQ(d["edges"]["start"].size(), d["edges"]["from"].size() + 1);
  EXPECT_EQ(d["edges"]["start"].back(), d["edges"]["points"].size());
  const int last = states() - 1;
  json late = answered(engine_, {{"method", "drawing"}, {"at", at(0, last)}, {"all", true}, {"against", at(0, 0)}});
  std::set<std::string> changes;
  for (const json& c : late["boxes"]["change"]) changes.insert(c);
  EXPECT_TRUE(changes.contains("fused")) << late["boxes"]["change"];
  json svg = answered(engine_, {{"method", "svg"}, {"at", at(0, 0)}, {"open", nullptr}});
  EXPECT_TRUE(svg["svg"].get<std::string>().starts_with("<svg"));
  EXPECT_FALSE(refused(engine_, {{"method", "drawing"}, {"at", at(0, 0)}, {"within", "x7"}}).empty());
  EXPECT_FALSE(refused(engine_, {{"method", "drawing"}, {"at", at(0, 0)}, {"open", 7}}).empty());
}

// --- do ---

TEST_F(EngineTest, TellsPasses) {
  json p = answered(engine_, {{"method", "passes"}});
  bool algsimp = false;
  for (const json& pass : p["passes"]) algsimp |= pass["name"] == "algsimp" && pass["implemented"] == true;
  EXPECT_TRUE(algsimp);
  ASSERT_EQ(p["pipelines"].size(), 2u);
  for (const json& pipeline : p["pipelines"]) EXPECT_GT(pipeline["rows"].size(), 20u);
}

TEST_F(EngineTest, RunsPasses) {
  json r = answered(engine_, {{"method", "run"}, {"at", at(0, 0)}, {"passes", {"algsimp", "dce"}}});
  EXPECT_TRUE(r["refused"].empty()) << r;
  EXPECT_EQ(r["at"]["module"], 1);
  const json to = r["at"];
  json info = answered(engine_, {{"method", "modules"}})["modules"][1];
  EXPECT_EQ(info["source"], "bench");
  EXPECT_EQ(info["origin"], at(0, 0));
  // By id against what it came from: a + 0 is gone.
  json d = answered(engine_, {{"method", "diff"}, {"a", at(0, 0)}, {"b", to}});
  EXPECT_FALSE(d["same"]);
  json hits = answered(engine_, {{"method", "search"}, {"at", to}, {"query", "name:plus"}})["hits"];
  EXPECT_TRUE(hits.empty());
  json follow =
      answered(engine_, {{"method", "follow"}, {"at", at(1, 0)}, {"id", id_of(0, "plus")}, {"to", to["state"]}});
  EXPECT_EQ(follow["ids"], json::array({id_of(0, "a")}));
  // On from there in the same bench.
  json more = answered(engine_, {{"method", "run"}, {"at", to}, {"passes", {"fusion"}}});
  EXPECT_EQ(more["at"]["module"], 1);
  // From an earlier state in another one.
  json other =
      answered(engine_, {{"method", "run"}, {"at", at(1, 0)}, {"passes", {"algsimp"}}, {"fuel", {{"algsimp", 0}}}});
  EXPECT_EQ(other["at"]["module"], 2);
  EXPECT_EQ(other["at"]["state"], 0);
  EXPECT_TRUE(answered(engine_, {{"method", "diff"}, {"a", at(0, 0)}, {"b", other["at"]}})["same"]);
  json off = answered(engine_, {{"method", "run"}, {"at", at(0, 0)}, {"passes", {"algsimp"}}, {"off", {"algsimp"}}});
  EXPECT_EQ(off["rows"][1]["disabled"], true);
}

TEST_F(EngineTest, RunsTheRestOfAPipeline) {
  json whole = answered(engine_, {{"method", "run"}, {"at", at(0, 0)}, {"pipeline", "xla-2019"}});
  EXPECT_TRUE(whole["refused"].empty()) << whole["refused"];
  // What replay made, but for the schedule at the end.
  json mine = answered(engine_, {{"method", "text"}, {"at", whole["at"]}});
  json theirs = answered(engine_, {{"method", "text"}, {"at", at(0, states() - 2)}});
  EXPECT_EQ(mine["lines"], theirs["lines"]);
  const size_t rows = whole["rows"].size();
  json rest = answered(engine_, {{"method", "run"}, {"at", at(0, 0)}, {"pipeline", "xla-2019"}, {"from", 20}});
  EXPECT_LT(rest["rows"].size(), rows);
}

TEST_F(EngineTest, RunRefuses) {
  const json from = {{"method", "run"}, {"at", at(0, 0)}};
  auto with = [&](const json& more) {
    json q = from;
    q.update(more);
    return refused(engine_, q);
  };
  EXPECT_NE(with({{"passes", {"algsmp"}}}).find("algsmp"), std::string::npos);
  EXPECT_NE(with(json::object()).find("either"), std::string::npos);
  EXPECT_NE(with({{"passes", {"dce"}}, {"pipeline", "xla-gpu"}}).find("either"), std::string::npos);
  EXPECT_NE(with({{"pipeline", "xla-3000"}}).find("xla-gpu"), std::string::npos);
  EXPECT_NE(with({{"passes", json::array()}}).find("1 to"), std::string::npos);
  EXPECT_FALSE(with({{"passes", {"algsimp"}}, {"options", {{"nothing_like_it", "1"}}}}).empty());
  EXPECT_FALSE(with({{"passes", {"algsimp"}}, {"fuel", {{"algsimp", -1}}}}).empty());
  EXPECT_FALSE(with({{"passes", {7}}}).empty());
  EXPECT_FALSE(with({{"pipeline", "xla-gpu"}, {"from", 100000}}).empty());
  EXPECT_EQ(answered(engine_, {{"method", "modules"}})["modules"].size(), 1u);
}

TEST_F(EngineTest, Edits) {
  json t = answered(engine_, {{"method", "text"}, {"at", at(0, 0)}, {"full", true}});
  std::string text;
  for (const std::string line : t["lines"]) text += line + "\n";
  text.replace(text.find("negate("), 7, "cosine(");
  json by_itself = answered(engine_, {{"method", "edit"}, {"text", text}, {"name", "mine"}})["at"];
  EXPECT_EQ(by_itself, at(1, 0));
  json edited = answered(engine_, {{"method", "edit"}, {"text", text}, {"at", at(0, 0)}})["at"];
  EXPECT_EQ(edited, at(2, 1));
  json d = answered(engine_, {{"method", "diff"}, {"a", at(0, 0)}, {"b", edited}});
  ASSERT_EQ(d["changes"].size(), 1u) << d.dump(1);
  EXPECT_EQ(d["changes"][0]["kind"], "changed");
  // And on from there.
  json r = answered(engine_, {{"method", "run"}, {"at", edited}, {"passes", {"algsimp"}}});
  EXPECT_TRUE(r["refused"].empty());
  json bad = ask(engine_, {{"method", "edit"}, {"text", "HloModule m\n\nENTRY e {\n  ROOT a = f32[2] add(b, b)\n}\n"}});
  EXPECT_EQ(bad["error"]["line"], 4) << bad;
  EXPECT_NE(refused(engine_, {{"method", "edit"}, {"text", ""}}), "");
}

TEST_F(EngineTest, RewriteByRewrite) {
  json rows = answered(engine_, {{"method", "rows"}, {"module", 0}})["rows"];
  bool any = false;
  for (const json& row : rows) {
    if (row["kind"] != "pass" || row["rewrites"] == 0) continue;
    any = true;
    const int count = row["rewrites"];
    json list = answered(engine_, {{"method", "rewrites"}, {"module", 0}, {"row", row["row"]}})["rewrites"];
    EXPECT_EQ(list.size(), row["rewrites"]);
    const json q = {{"method", "rewrite_state"}, {"module", 0}, {"row", row["row"]}};
    auto state = [&](int n) {
      json with = q;
      with["count"] = n;
      return answered(engine_, with)["at"];
    };
    // None is the state before, all the state behind.
    json first = answered(engine_, {{"method", "text"}, {"at", state(0)}});
    json last = answered(engine_, {{"method", "text"}, {"at", state(count)}});
    const int behind = row["state"];
    EXPECT_EQ(first["lines"], answered(engine_, {{"method", "text"}, {"at", at(0, behind - 1)}})["lines"]) << row;
    EXPECT_EQ(last["lines"], answered(engine_, {{"method", "text"}, {"at", at(0, behind)}})["lines"]) << row;
    answered(engine_, {{"method", "diff"}, {"a", state(0)}, {"b", state(1)}});
    json more = q;
    more["count"] = count + 1;
    EXPECT_NE(refused(engine_, more).find("not"), std::string::npos);
  }
  EXPECT_TRUE(any);
  EXPECT_FALSE(refused(engine_, {{"method", "rewrite_state"}, {"module", 0}, {"row", 0}, {"count", 0}}).empty());
  EXPECT_FALSE(refused(engine_, {{"method", "rewrites"}, {"module", 0}, {"row", 100000}}).empty());
}

// --- values ---

TEST_F(EngineTest, EvaluatesEveryNode) {
  PageEngine engine;
  engine.put("m.hlo",
             "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  n = f32[4]{0} negate(p)\n"
             "  l = f32[4]{0} log(n)\n  ROOT s = f32[4]{0} add(l, p)\n}\n");
  answered(engine, {{"method", "open"}});
  json r = answered(engine, {{"method", "evaluate"}, {"at", at(0, 0)}, {"inputs", "{1, 2, -1, 0}"}});
  EXPECT_EQ(r["ran"], true);
  ASSERT_EQ(r["values"].size(), 4u);
  EXPECT_EQ(r["values"][0]["text"], "{1, 2, -1, 0}");
  EXPECT_EQ(r["values"][0]["mean"], 0.5);
  EXPECT_EQ(r["values"][1]["min"], -2);
  EXPECT_EQ(r["values"][2]["nan"], 2);  // of -1 and -2
  EXPECT_EQ(r["values"][2]["inf"], 1);  // of 0
  EXPECT_NE(r["note"].get<std::string>().find("l"), std::string::npos);
  json again = answered(engine, {{"method", "evaluate"}, {"at", at(0, 0)}, {"seed", 7}});
  EXPECT_EQ(again["seed"], 7);
  EXPECT_FALSE(refused(engine, {{"method", "evaluate"}, {"at", at(0, 0)}, {"inputs", "{1, 2"}}).empty());
  EXPECT_FALSE(refused(engine, {{"method", "evaluate"}, {"at", at(0, 0)}, {"seed", -1}}).empty());
}

TEST(EngineValues, RefusesWhatIsTooMuch) {
  PageEngine engine;
  auto says = [&](const std::string& body) {
    engine.put("m.hlo", "HloModule m\n\nENTRY e {\n" + body + "}\n");
    answered(engine, {{"method", "open"}});
    return refused(engine, {{"method", "evaluate"}, {"at", at(0, 0)}});
  };
  EXPECT_NE(
      says("  p = f32[100000,100000]{1,0} parameter(0)\n  ROOT n = f32[100000,100000]{1,0} negate(p)\n").find("takes"),
      std::string::npos);
  EXPECT_NE(says("  p = f32[4000,4000]{1,0} parameter(0)\n  ROOT d = f32[4000,4000]{1,0} dot(p, p), "
                 "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n")
                .find("operations"),
            std::string::npos);
  EXPECT_NE(says("  ROOT c = f32[1000]{0} constant({...})\n").find("elided"), std::string::npos);
  EXPECT_FALSE(
      says("  p = f32[4]{0} parameter(0)\n  ROOT c = f32[4]{0} custom-call(p), custom_call_target=\"mine\"\n").empty());
}

TEST_F(EngineTest, ComparesStates) {
  json c = answered(engine_, {{"method", "compare"}, {"a", at(0, 0)}, {"b", at(0, states() - 1)}});
  EXPECT_EQ(c["equal"], true) << c;
  EXPECT_TRUE(c["first"].is_null());
  json t = answered(engine_, {{"method", "text"}, {"at", at(0, 0)}, {"full", true}});
  std::string text;
  for (const std::string line : t["lines"]) text += line + "\n";
  text.replace(text.find("negate("), 7, "cosine(");
  json other = answered(engine_, {{"method", "edit"}, {"text", text}})["at"];
  json d = answered(engine_, {{"method", "compare"}, {"a", at(0, 0)}, {"b", other}});
  EXPECT_EQ(d["equal"], false);
  EXPECT_EQ(d["first"]["name"], "sum");
}

TEST_F(EngineTest, BisectsNothingWhereAllIsWell) {
  json good = answered(engine_, {{"method", "bisect"}, {"module", 0}});
  EXPECT_EQ(good["found"], false) << good;
}

// A pass with a fault: the second of its rewrites is wrong.
bool faulty(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      const Opcode op = m.op(i);
      if (op != Opcode::Exp && op != Opcode::Negate) continue;
      if (!ctx.spend(m, op == Opcode::Exp ? "rename" : "negate to abs", {i})) return changed;
      changed = true;
      if (op == Opcode::Exp) {
        m.set_uniquified_name(i, "renamed");
      } else {
        InstId abs = m.add_derived(i, {.op = Opcode::Abs, .shape = m.shape_id(i), .operands = {m.operand(i, 0)}});
        m.replace(i, abs);
      }
    }
  return changed;
}

TEST_F(EngineTest, BisectsToTheRewriteOfAPlantedFault) {
  const PassInfo* real = find_pass("tuple-simplifier");
  ASSERT_NE(real, nullptr);
  PassInfo planted = *real;
  planted.run = faulty, planted.atomic = {};
  override_pass_for_test(&planted);
  json run = answered(engine_, {{"method", "run"}, {"at", at(0, 0)}, {"passes", {"dce", "tuple-simplifier", "dce"}}});
  json found = answered(engine_, {{"method", "bisect"}, {"module", run["at"]["module"]}});
  override_pass_for_test(nullptr);
  EXPECT_EQ(found["found"], true) << found;
  EXPECT_EQ(run["rows"].size(), 4u);
  EXPECT_EQ(found["rewrite"], 2) << found;
  EXPECT_EQ(found["rule"], "negate to abs");
  EXPECT_EQ(found["id"], id_of(0, "neg"));
}

// --- costs ---

TEST_F(EngineTest, MemoryOverTheSchedule) {
  for (int state : {0, states() - 1}) {
    json m = answered(engine_, {{"method", "memory"}, {"at", at(0, state)}});
    EXPECT_EQ(m["estimated"], state == 0);
    EXPECT_EQ(m["peak_bytes"], m["curve_peak_bytes"]) << m.dump(1);
    EXPECT_GE(m["peak_bytes"], 4 * (8 * 16 + 16 * 4));
    ASSERT_FALSE(m["live"].empty());
    for (const json& v : m["live"]) {
      EXPECT_LE(v["from"], v["to"]);
      EXPECT_LT(v["to"], m["places"]);
    }
    for (size_t k = 1; k < m["curve"].size(); ++k) EXPECT_LT(m["curve"][k - 1]["place"], m["curve"][k]["place"]);
  }
}

TEST_F(EngineTest, RooflineAndThunks) {
  json r = answered(engine_, {{"method", "roofline"}, {"at", at(0, 0)}});
  EXPECT_GT(r["bytes_per_s"], 1e11);
  ASSERT_FALSE(r["ops"].empty());
  double all = 0;
  for (const json& op : r["ops"]) all += op["seconds"].get<double>();
  EXPECT_NEAR(all, r["seconds"].get<double>(), 1e-12);
  json other = answered(engine_, {{"method", "roofline"}, {"at", at(0, 0)}, {"device", "A100"}});
  EXPECT_NE(other["device"], r["device"]);
  EXPECT_FALSE(refused(engine_, {{"method", "roofline"}, {"at", at(0, 0)}, {"device", "Z80"}}).empty());
  json t = answered(engine_, {{"method", "thunks"}, {"at", at(0, states() - 1)}})["thunks"];
  ASSERT_FALSE(t.empty());
  for (size_t k = 0; k < t.size(); ++k) EXPECT_EQ(t[k]["index"], k);
}

TEST_F(EngineTest, FirstLook) {
  json o = answered(engine_, {{"method", "overview"}});
  EXPECT_EQ(o["title"], "jit_f");
  std::set<std::string> headings;
  for (const json& part : o["lines"]) headings.insert(part["heading"].get<std::string>().substr(0, 6));
  for (const char* wanted : {"", "deares", "memory", "passes"}) EXPECT_TRUE(headings.contains(wanted)) << wanted;
  for (const json& part : o["lines"])
    for (const json& row : part["rows"])
      if (!row["id"].is_null())
        answered(engine_, {{"method", "op"}, {"at", at(row["module"], row["state"])}, {"id", row["id"]}});
}

TEST(EngineOpen, ModulesOfARunAndTheirLinks) {
  PageEngine engine;
  const std::string step =
      "HloModule jit_step\n\nENTRY e {\n  p = f32[4,8]{1,0} parameter(0), metadata={op_name=\"w\"}\n"
      "  ROOT t = f32[4,8]{1,0} negate(p)\n}\n";
  const std::string init =
      "HloModule jit_init\n\nENTRY e {\n  c = f32[] constant(1)\n"
      "  ROOT b = f32[4,8]{1,0} broadcast(c), dimensions={}\n}\n";
  engine.put("module_0001.jit_init.before_optimizations.txt", init);
  engine.put("module_0002.jit_step.before_optimizations.txt", step);
  EXPECT_EQ(answered(engine, {{"method", "open"}})["modules"].size(), 2u);
  json links = answered(engine, {{"method", "links"}});
  ASSERT_EQ(links["modules"].size(), 2u);
  ASSERT_FALSE(links["links"].empty());
  EXPECT_EQ(links["links"][0]["to"], 1);
  EXPECT_EQ(answered(engine, {{"method", "overview"}, {"module", 1}})["title"], "jit_step");
  // Of different universes, by structure.
  EXPECT_EQ(answered(engine, {{"method", "diff"}, {"a", at(0, 0)}, {"b", at(1, 0)}})["same"], false);
  EXPECT_FALSE(refused(engine, {{"method", "compare"}, {"a", at(0, 0)}, {"b", at(1, 0)}}).empty());
}

// --- what is damaged, and questions by chance ---

TEST(EngineHostile, DamagedStores) {
  Recorded recorded(kModule);
  const std::string store = read_file(recorded.path() + "/lineage.hlol");
  std::mt19937_64 random(7);
  for (int k = 0; k < 200; ++k) {
    std::string bytes = store;
    for (int flips = 0; flips < 3; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (k % 4 == 0) bytes.resize(random() % bytes.size());
    PageEngine engine;
    engine.put("lineage.hlol", bytes);
    json opened = ask(engine, {{"method", "open"}});
    if (opened.contains("error")) continue;
    const int last = opened["modules"][0]["states"].get<int>() - 1;
    ask(engine, {{"method", "rows"}, {"module", 0}});
    ask(engine, {{"method", "text"}, {"at", at(0, last)}});
    ask(engine, {{"method", "drawing"}, {"at", at(0, last)}, {"open", nullptr}});
    ask(engine, {{"method", "overview"}});
  }
}

class QuestionsByChance {
 public:
  explicit QuestionsByChance(uint64_t seed) : random_(seed) {}
  json question() {
    static const std::vector<std::pair<std::string, std::vector<std::string>>> kMethods = {
        {"modules", {}},
        {"rows", {"module"}},
        {"overview", {"module"}},
        {"drawing", {"at", "open", "all", "against", "within"}},
        {"svg", {"at", "open"}},
        {"text", {"at", "from", "lines", "full"}},
        {"search", {"at", "query", "limit"}},
        {"locate", {"at", "id"}},
        {"op", {"at", "id"}},
        {"diff", {"a", "b"}},
        {"follow", {"at", "id", "to"}},
        {"memory", {"at"}},
        {"links", {}},
        {"roofline", {"at", "device"}},
        {"thunks", {"at"}},
        {"rewrites", {"module", "row"}},
        {"passes", {}},
        {"rewrite_state", {"module", "row", "count"}},
        {"decisions", {"module", "row"}},
        {"file", {"module", "name"}},
        {"edit", {"text", "name", "at"}},
        {"run", {"at", "passes", "pipeline", "from", "off", "options", "fuel"}},
        {"evaluate", {"at", "seed", "inputs", "fill"}},
        {"compare", {"a", "b", "seed"}},
        {"bisect", {"module", "seed"}}};
    const auto& [method, keys] = kMethods[random_() % kMethods.size()];
    json q = {{"method", method}};
    for (const std::string& key : keys) {
      if (random_() % 10 == 0) {
        q[key] = value(2);
      } else if (key == "at" || key == "a" || key == "b") {
        q[key] = state();
      } else if (key == "module") {
        q[key] = random_() % 2;
      } else if (key == "id" || key == "row" || key == "to" || key == "count") {
        q[key] = random_() % 40;
      } else if (key == "query" || key == "text" || key == "name") {
        q[key] = "op:add user>1";
      } else if (key == "passes") {
        q[key] = {"algsimp"};
      } else if (random_() % 4 == 0) {
        q[key] = value(2);
      }
    }
    return q;
  }

 private:
  json state() { return at(static_cast<int>(random_() % 3), static_cast<int>(random_() % 6)); }
  json value(int depth) {
    static const std::vector<json> kValues = {nullptr,     true,
                                              false,       0,
                                              1,           -1,
                                              7,           1e9,
                                              1e300,       -0.0,
                                              UINT64_MAX,  INT64_MIN,
                                              4294967295u, "",
                                              "algsimp",   "dce",
                                              "xla-gpu",   "op:add",
                                              "i1",        "../x",
                                              "\xff",      "bytes>1M",
                                              "random",    "{1,2}",
                                              "-",         std::string(3000, 'x')};
    switch (random_() % 8) {
      case 0:
        return state();
      case 1: {
        json list = json::array();
        for (size_t k = random_() % 3; depth && k > 0; --k) list.push_back(value(depth - 1));
        return list;
      }
      case 2:
        return {{"algsimp", random_() % 4}};
      default:
        return kValues[random_() % kValues.size()];
    }
  }
  std::mt19937_64 random_;
};

TEST(EngineHostile, QuestionsByChance) {
  Recorded recorded(kModule);
  QuestionsByChance chance(11);
  size_t good = 0, bad = 0;
  for (int round = 0; round < 20; ++round) {
    PageEngine engine;
    engine.open(recorded.path());
    for (int k = 0; k < 100; ++k) {
      const std::string q = chance.question().dump(-1, ' ', false, json::error_handler_t::ignore);
      json answer = json::parse(engine.answer(q), nullptr, false);
      ASSERT_TRUE(answer.is_object()) << q;
      const std::string message = answer.contains("error") ? answer["error"]["message"].get<std::string>() : "";
      ASSERT_EQ(message.find("should not happen"), std::string::npos) << q;
      ++(answer.contains("error") ? bad : good);
    }
  }
  EXPECT_GT(good, 100u);
  EXPECT_GT(bad, 100u);
}

TEST_F(EngineTest, RefusesWhatIsWrong) {
  EXPECT_EQ(refused(engine_, {{"method", "txet"}}), "there is no method 'txet'");
  EXPECT_EQ(ask(engine_, {{"method", "txt"}})["error"]["hint"], "did you mean text?");
  for (const char* text : {"", "[]", "7", "{", "{\"method\":7}", "{}", "null", "\"text\"", "\xff\xfe"})
    EXPECT_TRUE(json::parse(engine_.answer(text)).contains("error")) << text;
  const std::string deep = "{\"method\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_EQ(json::parse(engine_.answer(deep))["error"]["message"], "the question is nested too deep");
  EXPECT_NE(refused(engine_, {{"method", "rows"}}).find("'module'"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "rows"}, {"module", 1}}).find("no module 1"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "rows"}, {"module", -1}}).find("must be 0"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "rows"}, {"module", 0.5}}).find("whole number"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "rows"}, {"module", 1e300}}).find("whole number"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "rows"}, {"module", "0"}}).find("whole number"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "rows"}, {"module", UINT64_MAX}}).find("must be 0"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "rows"}, {"module", 0}, {"rows", 1}}).find("no argument 'rows'"),
            std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "text"}, {"at", at(0, 100000)}}).find("no state"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "text"}, {"at", 3}}).find("must be a state"), std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "op"}, {"at", at(0, 0)}, {"id", 99999}}).find("no instruction"),
            std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "op"}, {"at", at(0, 0)}, {"id", 4294967295u}}).find("must be"),
            std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "file"}, {"module", 0}, {"name", "../../etc/passwd"}}).find("no file"),
            std::string::npos);
  EXPECT_NE(refused(engine_, {{"method", "open"}}).find("no files"), std::string::npos);
  // Nothing of this closed what is open.
  EXPECT_GT(states(), 2);
}

TEST_F(EngineTest, FilesOfTheRecording) {
  bool seen = false;
  for (const auto& entry : std::filesystem::directory_iterator(recorded_->path())) {
    const std::string name = entry.path().filename().string();
    if (name.find("buffer-assignment") == std::string::npos) continue;
    seen = true;
    EXPECT_EQ(answered(engine_, {{"method", "file"}, {"module", 0}, {"name", name}})["text"],
              read_file(entry.path().string()));
  }
  EXPECT_TRUE(seen);
}

// --- what is opened ---

TEST(EngineOpen, AModulesText) {
  PageEngine engine;
  engine.put("f.hlo", kModule);
  json modules = answered(engine, {{"method", "open"}})["modules"];
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0]["source"], "bench");
  EXPECT_EQ(modules[0]["states"], 1);
  EXPECT_EQ(modules[0]["instructions"], 12);
}

TEST(EngineOpen, ARecordingThatIsDropped) {
  Recorded recorded(kModule);
  PageEngine engine, native;
  native.open(recorded.path());
  std::string store;
  for (const auto& entry : std::filesystem::directory_iterator(recorded.path())) {
    const std::string name = entry.path().filename().string(), bytes = read_file(entry.path().string());
    if (name == "lineage.hlol") store = bytes;
    engine.put("out/" + name, bytes);
  }
  answered(engine, {{"method", "open"}});
  EXPECT_EQ(ask(engine, {{"method", "modules"}}), ask(native, {{"method", "modules"}}));
  EXPECT_EQ(ask(engine, {{"method", "rows"}, {"module", 0}}), ask(native, {{"method", "rows"}, {"module", 0}}));
  // The store alone holds stages and rows.
  ASSERT_FALSE(store.empty());
  PageEngine alone;
  alone.put("lineage.hlol", store);
  answered(alone, {{"method", "open"}});
  EXPECT_EQ(ask(alone, {{"method", "rows"}, {"module", 0}}), ask(native, {{"method", "rows"}, {"module", 0}}));
  const json text = {{"method", "text"}, {"at", at(0, 3)}};
  EXPECT_EQ(ask(alone, text), ask(native, text));
}

TEST(EngineOpen, StagesUnderXlasNames) {
  PageEngine engine;
  Recorded recorded(kModule);
  for (const auto& entry : std::filesystem::directory_iterator(recorded.path()))
    if (const std::string name = entry.path().filename().string(); name.ends_with(".txt"))
      engine.put(name, read_file(entry.path().string()));
  json modules = answered(engine, {{"method", "open"}})["modules"];
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0]["source"], "xla");
  EXPECT_GT(modules[0]["states"], 2);
}

// What is wrong is shown, and neither run nor given to passes.
TEST(EngineOpen, WrongModulesAreNotRun) {
  PageEngine engine;
  engine.put("f.hlo",
             "HloModule f\n\nENTRY e {\n  p = (f32[3], f32[3]) parameter(0)\n  a = f32[3] get-tuple-element(p), "
             "index=3\n  ROOT r = f32[3] add(a, a)\n}\n");
  answered(engine, {{"method", "open"}});
  answered(engine, {{"method", "text"}, {"at", at(0, 0)}});
  EXPECT_FALSE(refused(engine, {{"method", "evaluate"}, {"at", at(0, 0)}}).empty());
  EXPECT_FALSE(refused(engine, {{"method", "run"}, {"at", at(0, 0)}, {"passes", {"algsimp"}}}).empty());
  EXPECT_EQ(answered(engine, {{"method", "modules"}})["modules"].size(), 1u);
}

TEST(EngineOpen, RefusesAndKeeps) {
  PageEngine engine;
  EXPECT_NE(refused(engine, {{"method", "text"}, {"at", at(0, 0)}}).find("none is open"), std::string::npos);
  engine.put("f.hlo", kModule);
  answered(engine, {{"method", "open"}});
  for (const char* name : {"../f.hlo", "/etc/passwd", "a/../b", "", ".", "a//b", "a\nb"})
    EXPECT_THROW(engine.put(name, "x"), Failure) << name;
  engine.put("g.hlo", "HloModule g\n\nENTRY e {\n  ROOT a = f32[] wrong(b)\n}\n");
  json e = ask(engine, {{"method", "open"}})["error"];
  EXPECT_EQ(e["line"], 4) << e.dump(1);
  engine.put("lineage.hlol", "HLOLINE\nrubbish");
  EXPECT_FALSE(refused(engine, {{"method", "open"}}).empty());
  engine.put("a", "x");
  engine.put("a/b", "x");
  EXPECT_FALSE(refused(engine, {{"method", "open"}}).empty());
  EXPECT_EQ(answered(engine, {{"method", "modules"}})["modules"][0]["instructions"], 12);
}

}  // namespace
}  // namespace hlo
