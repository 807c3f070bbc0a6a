// The engine behind the page: what it answers to every method of viewer/page/protocol.ts, and what it refuses.
#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/print/print.h"
#include "tests/page/engine_fixture.h"

namespace hlo {
namespace {

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
  int changed = 0, last = -1;
  for (size_t k = 0; k < rows.size(); ++k) {
    EXPECT_EQ(rows[k]["row"], k);
    if (rows[k]["number"].is_number()) {  // files' numbers: one more for each pass that changed something
      EXPECT_GE(rows[k]["number"], last + (rows[k]["kind"] == "pass" && rows[k]["changed"]));
      last = rows[k]["number"];
    }
    changed += rows[k]["pass"] == "algsimp" && rows[k]["rewrites"] > 0;
  }
  EXPECT_GT(changed, 0);
  EXPECT_GT(last, 0);
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
  EXPECT_EQ(op["history"][0]["what"], "is there from the start");

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
  json text = answered(engine_, {{"method", "text"}, {"at", at(0, 0)}});
  json all = answered(engine_, {{"method", "search"}, {"at", at(0, 0)}, {"query", "bytes>=0"}, {"limit", 1000}});
  EXPECT_EQ(all["hits"].size(), all["total"]);
  for (const json& hit : all["hits"]) EXPECT_EQ(text["ids"][hit["line"].get<size_t>()], hit["id"]) << hit;
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
  // Four bytes a number, four letters for three bytes.
  const size_t numbers = d["edges"]["start"].back().get<size_t>();
  EXPECT_EQ(d["edges"]["points"].get<std::string>().size(), (numbers * 4 + 2) / 3 * 4);
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

// --- what was measured ---

// A profile's measured.json of some kernels of the recording's last state.
json measured_of(const std::vector<std::string>& names) {
  json instructions = json::array();
  double at = 0;
  for (const std::string& name : names) {
    instructions.push_back({{"name", name},
                            {"seconds", 2e-5},
                            {"ambiguous_seconds", 0},
                            {"turns", 1},
                            {"begin_seconds", at},
                            {"first_end_seconds", at + 2e-5},
                            {"end_seconds", at + 2e-5},
                            {"kernel",
                             {{"name", "a_kernel"},
                              {"registers", 32},
                              {"static_shared_bytes", 1024},
                              {"dynamic_shared_bytes", 0},
                              {"grid", {256, 1, 1}},
                              {"block", {128, 1, 1}},
                              {"occupancy", 0.5},
                              {"estimated_occupancy", 1},
                              {"limiter", "warps"}}},
                            {"chosen", {"Triton: 128x256"}}});
    at += 3e-5;
  }
  const json device{{"host", "vm"},    {"device", "/device:GPU:0"},
                    {"label", "vm:0"}, {"profile", "vm.xplane.pb"},
                    {"problem", ""},   {"runs", 5},
                    {"seconds", 4e-5}, {"between_seconds", 1e-5}};
  json other = device;
  other["label"] = "vm:1", other["device"] = "/device:GPU:1", other["seconds"] = 3e-5;
  const json run{{"profile", "vm.xplane.pb"},
                 {"problem", ""},
                 {"joined", "100.0 % of its time joined"},
                 {"runs", 5},
                 {"seconds", 4e-5},
                 {"between_seconds", 1e-5},
                 {"shown", "vm:0"},
                 {"slowest", "vm:0"},
                 {"least_call_seconds", 4e-5},
                 {"median_call_seconds", 4.5e-5},
                 {"most_call_seconds", 5e-5},
                 {"devices", {device, other}}};
  return {{"version", 1}, {"module", "jit_f"},    {"stage", "after_optimizations"},
          {"run", run},   {"step_seconds", 5e-5}, {"instructions", instructions}};
}

void put_recording(PageEngine& engine, const std::string& path, const std::string& measured) {
  for (const auto& entry : std::filesystem::directory_iterator(path))
    engine.put(entry.path().filename().string(), read_file(entry.path().string()));
  engine.put("measured.json", measured);
}

TEST_F(EngineTest, MeasuredTimes) {
  const int last = states() - 1;
  const json ops = answered(engine_, {{"method", "roofline"}, {"at", at(0, last)}})["ops"];
  ASSERT_GE(ops.size(), 2u);
  EXPECT_TRUE(ops[0]["measured"].is_null());
  PageEngine engine;
  put_recording(engine, recorded_->path(), measured_of({ops[1]["name"]}).dump());
  EXPECT_TRUE(answered(engine, {{"method", "open"}})["modules"][0]["problems"].empty());
  const json roofline = answered(engine, {{"method", "roofline"}, {"at", at(0, last)}});
  EXPECT_EQ(roofline["measured_seconds"], 4e-5);
  EXPECT_EQ(roofline["between_seconds"], 1e-5);
  EXPECT_EQ(roofline["profile"], "the average of 5 runs on vm:0, by vm.xplane.pb");
  EXPECT_TRUE(roofline["ops"][0]["measured"].is_null());
  EXPECT_EQ(roofline["ops"][1]["measured"], 2e-5);
  const json op = answered(engine, {{"method", "op"}, {"at", at(0, last)}, {"id", ops[1]["id"]}});
  EXPECT_EQ(op["measured"]["seconds"], 2e-5);
  EXPECT_EQ(op["measured"]["share"], 2e-5 / 5e-5);
  EXPECT_EQ(op["measured"]["kernel"]["registers"], 32);
  EXPECT_EQ(op["measured"]["kernel"]["grid"], json({256, 1, 1}));
  EXPECT_EQ(op["measured"]["chosen"], json({"Triton: 128x256"}));
  EXPECT_TRUE(answered(engine, {{"method", "op"}, {"at", at(0, last)}, {"id", ops[0]["id"]}})["measured"].is_null());
  const json sums = answered(engine, {{"method", "summary"}, {"at", at(0, last)}, {"by", "class"}});
  EXPECT_EQ(sums["measured_seconds"], 4e-5);
  EXPECT_EQ(sums["rows"][0]["measured_seconds"], 2e-5);
  size_t seen = 0;
  for (const json& row : sums["rows"])
    for (const json& op : row["ops"]) seen += !op["measured_seconds"].is_null();
  EXPECT_EQ(seen, 1u);
  // It is of the last state alone.
  EXPECT_TRUE(answered(engine, {{"method", "roofline"}, {"at", at(0, 0)}})["profile"].is_null());
  const std::string look = answered(engine, {{"method", "overview"}})["lines"].dump();
  EXPECT_NE(look.find("one call, measured: 40.000 us of kernels and 10.000 us between them"), std::string::npos)
      << look;
  EXPECT_NE(look.find("2 devices of 1 host, one call: 40.000 us to 50.000 us on vm:0, the slowest"), std::string::npos)
      << look;
}

TEST_F(EngineTest, MeasuredTimesThatAreWrong) {
  const json good = measured_of({"a"});
  std::vector<std::string> texts{"", "{", "[]", "7", R"({"version":2})", std::string(100000, '[')};
  auto spoil = [&](const std::function<void(json&)>& how) {
    json bad = good;
    how(bad);
    texts.push_back(bad.dump());
  };
  for (const auto& item : good.items()) spoil([&](json& j) { j.erase(item.key()); });
  for (const auto& item : good["instructions"][0].items()) {
    spoil([&](json& j) { j["instructions"][0].erase(item.key()); });
    spoil([&](json& j) { j["instructions"][0][item.key()] = -1; });
  }
  for (const auto& item : good["run"].items()) spoil([&](json& j) { j["run"].erase(item.key()); });
  spoil([](json& j) { j["instructions"][0]["kernel"]["grid"] = {1, 2}; });
  spoil([](json& j) { j["instructions"][0]["kernel"]["grid"] = {1, 2, "3"}; });
  spoil([](json& j) { j["run"]["devices"] = {7}; });
  for (const std::string& text : texts) {
    PageEngine engine;
    put_recording(engine, recorded_->path(), text);
    const json module = answered(engine, {{"method", "open"}})["modules"][0];
    EXPECT_NE(module["problems"].dump().find("measured.json"), std::string::npos) << text.substr(0, 200);
    EXPECT_TRUE(answered(engine, {{"method", "roofline"}, {"at", at(0, states() - 1)}})["profile"].is_null());
  }
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
