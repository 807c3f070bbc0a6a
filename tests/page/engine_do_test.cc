// The engine behind the page: what is done in it, what it costs, and questions of strangers.
#include <random>
#include <set>

#include "passes/pass.h"
#include "passes/pipelines/pipelines.h"
#include "tests/page/engine_fixture.h"

namespace hlo {
namespace {

// --- do ---

TEST_F(EngineTest, TellsPasses) {
  json p = answered(engine_, {{"method", "passes"}});
  bool algsimp = false;
  for (const json& pass : p["passes"]) algsimp |= pass["name"] == "algsimp" && pass["implemented"] == true;
  EXPECT_TRUE(algsimp);
  ASSERT_EQ(p["pipelines"].size(), pipeline_names().size());
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
  // The two have no name in common but what uses them.
  const json& first = found["first"];
  EXPECT_EQ(first["name"], "sum") << found;
  EXPECT_EQ(first["at"], found["at"]);
  EXPECT_EQ(first["before"].size(), 2u) << found;
  EXPECT_EQ(first["after"].size(), 2u) << found;
  EXPECT_EQ(first["before"][0], first["after"][0]);
  EXPECT_EQ(first["before"][1], id_of(0, "neg"));
  // In the drawing what was only renamed is as it was.
  const json faulty_state = at(run["at"]["module"].get<int>(), found["state"].get<int>());
  const json before = at(run["at"]["module"].get<int>(), found["state"].get<int>() - 1);
  json boxes =
      answered(engine_, {{"method", "drawing"}, {"at", faulty_state}, {"all", true}, {"against", before}})["boxes"];
  auto change_of = [&](const json& id) {
    for (size_t k = 0; k < boxes["id"].size(); ++k)
      if (boxes["id"][k] == id) return boxes["change"][k].get<std::string>();
    return std::string("no box");
  };
  EXPECT_EQ(change_of(id_of(0, "exp")), "same");
  EXPECT_EQ(change_of(id_of(0, "sum")), "changed");
}

// --- costs ---

TEST_F(EngineTest, MemoryOverTheSchedule) {
  for (int state : {0, states() - 1}) {
    json m = answered(engine_, {{"method", "memory"}, {"at", at(0, state)}});
    EXPECT_EQ(m["estimated"], state == 0);
    EXPECT_EQ(m["peak_bytes"], m["curve_peak_bytes"]) << m.dump(1);
    EXPECT_GE(m["peak_bytes"], 4 * (8 * 16 + 16 * 4));
    ASSERT_FALSE(m["live"].empty());
    EXPECT_EQ(m["too_large"], "");
    double lines = 0;
    for (const json& line : m["peak_lines"]) lines += line["bytes"].get<double>();
    EXPECT_EQ(lines, m["peak_bytes"].get<double>());
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
  EXPECT_EQ(r["unknown_calls"], 0);
  json other = answered(engine_, {{"method", "roofline"}, {"at", at(0, 0)}, {"device", "A100"}});
  EXPECT_NE(other["device"], r["device"]);
  EXPECT_FALSE(refused(engine_, {{"method", "roofline"}, {"at", at(0, 0)}, {"device", "Z80"}}).empty());
  json t = answered(engine_, {{"method", "thunks"}, {"at", at(0, states() - 1)}})["thunks"];
  ASSERT_FALSE(t.empty());
  for (size_t k = 0; k < t.size(); ++k) EXPECT_EQ(t[k]["index"], k);
}

TEST_F(EngineTest, SumsOfAModule) {
  const json roofline = answered(engine_, {{"method", "roofline"}, {"at", at(0, states() - 1)}});
  for (const char* by : {"class", "line", "scope"}) {
    const json s = answered(engine_, {{"method", "summary"}, {"at", at(0, states() - 1)}, {"by", by}});
    EXPECT_EQ(s["least_seconds"], roofline["seconds"]);
    EXPECT_TRUE(s["profile"].is_null() && s["measured_seconds"].is_null());
    EXPECT_EQ(s["expected_seconds"].is_null(), !s["why_not_expected"].get<std::string>().empty());
    double all = 0;
    size_t kernels = 0, ops = 0;
    for (const json& row : s["rows"]) {
      EXPECT_FALSE(row["key"].get<std::string>().empty());
      EXPECT_TRUE(row["measured_seconds"].is_null());
      EXPECT_FALSE(row.contains("peak_bytes"));
      all += row["least_seconds"].get<double>(), kernels += row["kernels"].get<size_t>(), ops += row["ops"].size();
    }
    EXPECT_NEAR(all, s["sum_seconds"].get<double>(), 1e-12);
    EXPECT_EQ(kernels, roofline["ops"].size());
    EXPECT_EQ(ops, kernels);
  }
  EXPECT_NE(refused(engine_, {{"method", "summary"}, {"at", at(0, 0)}, {"by", "pass"}}).find("not 'pass'"),
            std::string::npos);
  EXPECT_FALSE(refused(engine_, {{"method", "summary"}, {"at", at(0, 0)}}).empty());
  EXPECT_FALSE(refused(engine_, {{"method", "summary"}, {"at", at(0, 999)}, {"by", "line"}}).empty());
}

TEST_F(EngineTest, FirstLook) {
  json o = answered(engine_, {{"method", "overview"}});
  EXPECT_EQ(o["title"], "jit_f");
  ASSERT_TRUE(o["findings"].is_array());
  for (const json& f : o["findings"]) {
    EXPECT_FALSE(f["what"].get<std::string>().empty());
    EXPECT_TRUE(f["least_seconds"].is_null() || f["least_seconds"].get<double>() > 0);
    answered(engine_, {{"method", "op"}, {"at", at(0, states() - 1)}, {"id", f["id"]}});
  }
  std::set<std::string> headings;
  for (const json& part : o["lines"]) headings.insert(part["heading"].get<std::string>().substr(0, 6));
  for (const char* wanted : {"", "most e", "memory", "passes"}) EXPECT_TRUE(headings.contains(wanted)) << wanted;
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
        {"summary", {"at", "by"}},
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

}  // namespace
}  // namespace hlo
