// What the page's engine answers of XLA's own files in a dump: fusion decisions, thunks by stream; of findings that
// were tried.
#include <filesystem>

#include "tests/page/engine_fixture.h"

namespace hlo {
namespace {

// XLA's dump of what priority-fusion decided: each decision once, its ops as they stand in front of the pass.
TEST(EngineDump, DecisionsOfXla) {
  auto module = [](const char* body) {
    return std::string("HloModule f\n\nENTRY e {\n  a = f32[4]{0} parameter(0)\n") + body + "}\n";
  };
  PageEngine engine;
  const std::string before = module("  n = f32[4]{0} negate(a)\n  ROOT e = f32[4]{0} exponential(n)\n");
  engine.put("module_0001.f.before_optimizations.txt", before);
  engine.put("module_0001.f.0001.fusion.after_pipeline-start.before_priority-fusion.txt", before);
  engine.put("module_0001.f.0002.fusion.after_priority-fusion.before_pipeline-end.txt",
             "HloModule f\n\nc {\n  p = f32[4]{0} parameter(0)\n  n = f32[4]{0} negate(p)\n"
             "  ROOT e = f32[4]{0} exponential(n)\n}\n\nENTRY e {\n  a = f32[4]{0} parameter(0)\n"
             "  ROOT fusion = f32[4]{0} fusion(a), kind=kLoop, calls=c\n}\n");
  engine.put("module_0001.f.priority_fusion_dump.txt",
             "fusion_steps {\n  producer_ineligible {\n    producer_name: \"a\"\n    reason: \"a parameter\"\n  }\n}\n"
             "fusion_steps {\n  update_priority {\n    producer_name: \"n\"\n    consumer_names: \"e\"\n"
             "    us_fused: 1\n    us_unfused: 2.5\n  }\n}\n"
             "fusion_steps {\n  fusion {\n    fusion_name: \"fusion\"\n    producer_name: \"n\"\n"
             "    consumer_name: \"e\"\n  }\n}\n"
             "fusion_steps {\n  update_priority {\n    producer_name: \"slow\"\n    consumer_names: \"x\"\n"
             "    consumer_names: \"y\"\n    us_fused: 6.5\n    us_unfused: 4\n  }\n}\n"
             "fusion_steps {\n  update_priority {\n    producer_name: \"gone\"\n    consumer_names: \"z\"\n"
             "    us_fused: 6\n    us_unfused: 5\n  }\n}\n"
             "fusion_steps {\n  fusion {\n    fusion_name: \"fusion.1\"\n    producer_name: \"other\"\n"
             "    consumer_name: \"gone\"\n  }\n}\n");
  answered(engine, {{"method", "open"}});
  json list = answered(engine, {{"method", "decisions"}, {"module", 0}})["decisions"];
  ASSERT_EQ(list.size(), 4u) << list.dump(1);
  EXPECT_EQ(list[0]["verdict"], "declined");
  EXPECT_EQ(list[0]["why"], "a parameter");
  EXPECT_EQ(list[0]["consumer"], "");
  EXPECT_EQ(list[1]["verdict"], "fused");
  EXPECT_EQ(list[1]["why"], "as fusion, 1 µs fused, 2.5 µs apart");
  EXPECT_TRUE(list[0]["fused_seconds"].is_null() && list[0]["apart_seconds"].is_null());
  EXPECT_DOUBLE_EQ(list[1]["fused_seconds"].get<double>(), 1e-6);
  EXPECT_DOUBLE_EQ(list[1]["apart_seconds"].get<double>(), 2.5e-6);
  // What its cost model left apart has no step; what went into a fusion since is not what it asked about.
  EXPECT_EQ(list[2]["producer"], "other");
  EXPECT_EQ(list[3]["producer"], "slow");
  EXPECT_EQ(list[3]["verdict"], "declined");
  EXPECT_EQ(list[3]["why"], "fused it takes longer, 6.5 µs fused, 4 µs apart, with 2 consumers");
  EXPECT_DOUBLE_EQ(list[3]["fused_seconds"].get<double>(), 6.5e-6);
  const json rows = answered(engine, {{"method", "rows"}, {"module", 0}})["rows"];
  const json& row = rows[list[1]["row"].get<size_t>()];
  EXPECT_EQ(row["pass"], "priority-fusion");
  const json in_front = {{"module", 0}, {"state", row["state"].get<int>() - 1}};
  json op = answered(engine, {{"method", "op"}, {"at", in_front}, {"id", list[1]["producer_id"]}});
  EXPECT_EQ(op["name"], "n");
}

// XLA's thunk_sequence names streams; a page without it, or with one of another grammar, says so and takes our thunks.
TEST(EngineDump, ThunksByStream) {
  const std::string module =
      "HloModule f, is_scheduled=true, num_partitions=2\n\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
      "  ROOT sum = f32[] add(x, y)\n}\n\ntwice {\n  x = f32[1048576]{0} parameter(0)\n"
      "  ROOT y = f32[1048576]{0} add(x, x)\n}\n\nagain {\n  x = f32[1048576]{0} parameter(0)\n"
      "  ROOT y = f32[1048576]{0} add(x, x)\n}\n\nENTRY e {\n  a = f32[1048576]{0} parameter(0)\n"
      "  s = f32[1048576]{0} all-reduce-start(a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, "
      "to_apply=add\n  b = f32[1048576]{0} fusion(a), kind=kLoop, calls=twice\n  d = f32[1048576]{0} "
      "all-reduce-done(s)\n  ROOT c = f32[1048576]{0} fusion(d), kind=kLoop, calls=again\n}\n";
  const std::string metadata = [] {
    std::string out;
    for (const auto& [id, name] : {std::pair(1, "s"), {2, "s"}, {3, "b"}, {4, "d"}, {5, "c"}})
      out += "thunk_metadata {\n  thunk_info {\n    profile_annotation: \"" + std::string(name) +
             "\"\n    thunk_id: " + std::to_string(id) + "\n  }\n}\n";
    return out;
  }();
  const auto asked = [&](const std::string& sequence) {
    PageEngine engine;
    engine.put("module_0001.f.before_optimizations.txt", module);
    engine.put("module_0001.f.sm_9.0_gpu_after_optimizations.txt", module);
    if (!sequence.empty()) {
      engine.put("module_0001.f.thunk_sequence.txt", sequence);
      engine.put("module_0001.f.thunk_metadata.txt", metadata);
    }
    answered(engine, {{"method", "open"}});
    const int states = answered(engine, {{"method", "modules"}})["modules"][0]["states"];
    return answered(engine, {{"method", "thunks"}, {"at", at(0, states - 1)}});
  };
  const std::string launch = " grid: [8192, 1, 1] threads: [128, 1, 1]  shared_memory: 0 bytes\n";
  const auto sequence = [&](const std::string& words) {
    return "002: kAsyncStart   [source       | next=004 (2)] " + words +
           "\n    001: kAllReduce [source | sink] kAllReduce\n003: kCustomKernel [source | sink] b" + launch +
           "004: kAsyncDone    [source       | sink        ] async_id=2\n005: kCustomKernel [source | sink] c" + launch;
  };
  const json dumped = asked(sequence("stream=communication_stream[7], async_id=2"));
  EXPECT_EQ(dumped["from"], "module_0001.f.thunk_sequence.txt");
  EXPECT_EQ(dumped["streams"], json({"main", "communication_stream[7]"}));
  EXPECT_TRUE(dumped["notes"].empty()) << dumped["notes"];
  const json& t = dumped["thunks"];
  ASSERT_EQ(t.size(), 5u);
  const auto of = [&](size_t k, const char* key) { return t[k][key].get<double>(); };
  EXPECT_EQ(t[0]["stream"], "communication_stream[7]");
  EXPECT_EQ(t[1]["stream"], "communication_stream[7]");
  EXPECT_EQ(t[2]["stream"], "main");
  EXPECT_EQ(t[0]["async_id"], t[3]["async_id"]);
  EXPECT_TRUE(t[2]["async_id"].is_null());
  // The kernel does not wait for the collective, what reads its result does.
  EXPECT_GT(of(1, "seconds"), 0);
  EXPECT_EQ(of(2, "start"), 0);
  EXPECT_NEAR(of(3, "start") + of(3, "seconds"), std::max(of(0, "seconds"), of(2, "seconds")), 1e-12);
  EXPECT_NEAR(of(4, "start"), of(3, "start") + of(3, "seconds"), 1e-12);
  // Of older releases the words after the bracket are others.
  const json silent = asked(sequence("(no description)"));
  EXPECT_EQ(silent["thunks"][1]["stream"], "unknown");
  ASSERT_EQ(silent["notes"].size(), 1u);
  EXPECT_NE(silent["notes"][0].get<std::string>().find("names no stream for 1"), std::string::npos);
  for (const std::string& other : {std::string(), std::string("001: kAllReduceStart\n002: kKernel\n")}) {
    const json own = asked(other);
    EXPECT_EQ(own["from"], "");
    EXPECT_EQ(own["streams"], json({"main", "communication_stream[0]"}));
    ASSERT_EQ(own["notes"].size(), 1u) << own["notes"];
    EXPECT_NE(own["notes"][0].get<std::string>().find(other.empty() ? "has no thunk_sequence.txt" : "cannot be read"),
              std::string::npos);
  }
}

// What `open --try` said of a finding is in its card; what gained nothing is the last one, without advice.
TEST(EngineTried, FindingsShowWhatCameOfThem) {
  const Recorded made(R"(HloModule m

ENTRY e {
  i = s32[256]{0} parameter(0)
  t = f32[8192,512]{1,0} parameter(1)
  wide = s32[256,8192]{1,0} broadcast(i), dimensions={0}
  n = s32[256,8192]{1,0} iota(), iota_dimension=1
  eq = pred[256,8192]{1,0} compare(wide, n), direction=EQ
  v = f32[256,8192]{1,0} convert(eq)
  ROOT d = f32[256,512]{1,0} dot(v, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  const auto findings = [&](const std::string& tried, json* problems) {
    PageEngine engine;
    for (const auto& entry : std::filesystem::directory_iterator(made.path()))
      engine.put(entry.path().filename().string(), read_file(entry.path().string()));
    if (!tried.empty()) engine.put("tried.json", tried);
    answered(engine, {{"method", "open"}});
    if (problems) *problems = answered(engine, {{"method", "modules"}})["modules"][0]["problems"];
    return answered(engine, {{"method", "overview"}, {"module", 0}})["findings"];
  };
  const json plain = findings("", nullptr);
  ASSERT_FALSE(plain.empty());
  EXPECT_TRUE(plain[0]["tried"].is_null());
  json tried{{"compiled", true},      {"what", "a gather in its place"}, {"seconds_before", 2e-5},
             {"seconds_after", 1e-5}, {"allocated_before", 9},           {"allocated_after", 7},
             {"helps", true}};
  const auto page = [&] {
    return json{{"findings", {{{"kind", plain[0]["kind"]}, {"instruction", plain[0]["name"]}, {"tried", tried}}}}}
        .dump();
  };
  const json helped = findings(page(), nullptr);
  EXPECT_EQ(helped[0]["tried"], tried);
  EXPECT_EQ(helped[0]["advice"], plain[0]["advice"]);
  tried["helps"] = false;
  const json useless = findings(page(), nullptr);
  EXPECT_EQ(useless.back()["kind"], plain[0]["kind"]);
  EXPECT_EQ(useless.back()["advice"], "no advice: changed so, it gains nothing");
  for (const std::string& wrong : {std::string("{"), std::string("{\"findings\":[{}]}"), [&] {
                                     tried["seconds_after"] = "soon";
                                     return page();
                                   }()}) {
    json problems;
    EXPECT_TRUE(findings(wrong, &problems)[0]["tried"].is_null());
    EXPECT_NE(problems.dump().find("tried.json"), std::string::npos) << wrong << problems;
  }
}

}  // namespace
}  // namespace hlo
