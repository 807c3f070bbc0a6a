// The library from outside: include/hlo/ and libhlo_replay.so, nothing else of the project.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "hlo/hlo.h"

namespace {

constexpr const char* kSmall = R"(HloModule small, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1), metadata={op_name="jit(f)/b" source_file="f.py" source_line=7}
  %zero = f32[] constant(0)
  %total = f32[] reduce(%a, %zero), dimensions={0}, to_apply=%sum
  %wide = f32[4]{0} broadcast(%total), dimensions={}
  %plus = f32[4]{0} add(%wide, %b)
  %dead = f32[4]{0} negate(%b)
  ROOT %product = f32[4]{0} multiply(%plus, %plus)
}
)";

// What the call throws; ErrorKind beyond all of them where it throws nothing.
template <class Body>
hlo::Error error_of(Body body) {
  try {
    body();
  } catch (const hlo::Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return hlo::Error(static_cast<hlo::ErrorKind>(99), "");
}
#define EXPECT_ERROR(expression, expected, words)                                  \
  do {                                                                             \
    const hlo::Error e_ = error_of([&] { (void)(expression); });                   \
    EXPECT_EQ(e_.kind(), hlo::ErrorKind::expected) << e_.what();                   \
    EXPECT_NE(std::string(e_.what()).find(words), std::string::npos) << e_.what(); \
  } while (false)

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Library, ParsesAndWalks) {
  hlo::Module m = hlo::Module::parse(kSmall);
  EXPECT_EQ(m.name(), "small");
  EXPECT_EQ(m.instruction_count(), 11u);
  EXPECT_EQ(m.computations().size(), 2u);
  EXPECT_EQ(m.entry().name(), "main");
  hlo::Instruction total = m.instruction("%total");
  EXPECT_EQ(total.opcode(), "reduce");
  EXPECT_EQ(total.shape_text(), "f32[]");
  EXPECT_EQ(total.operand(1).name(), "zero");
  EXPECT_EQ(total.users().size(), 1u);
  EXPECT_EQ(total.called_computations()[0].name(), "sum");
  EXPECT_EQ(total.attribute("dimensions"), "{0}");
  EXPECT_EQ(total.attribute("to_apply"), "%sum");
  EXPECT_EQ(total.attribute("nothing"), std::nullopt);
  EXPECT_EQ(m.instruction(total.id()), total);
  hlo::Instruction b = m.instruction("b");
  EXPECT_EQ(b.op_name(), "jit(f)/b");
  ASSERT_EQ(b.source().size(), 1u);
  EXPECT_EQ(b.source()[0].line, 7);
  EXPECT_EQ(b.parameter_number(), 1);
  EXPECT_EQ(b.shape().dims, std::vector<int64_t>{4});
  EXPECT_EQ(b.shape().bytes, 16);
  EXPECT_TRUE(m.instruction("product").is_root());
  EXPECT_EQ(m.instruction("zero").literal()->text(), "0");
  EXPECT_EQ(m.input_shapes().size(), 2u);
  EXPECT_EQ(m.output_shapes()[0].text, "f32[4]{0}");
  EXPECT_TRUE(m.verify().empty());
}

TEST(Library, ReadsWhatItWrites) {
  hlo::Module m = hlo::Module::parse(kSmall);
  const std::string text = m.text({.lossless = true});
  EXPECT_EQ(hlo::Module::parse(text).text({.lossless = true}), text);
  for (const char* form : {"pb", "pb.gz"}) EXPECT_EQ(hlo::Module::parse(m.to_proto(form)).text(), m.text()) << form;
  EXPECT_EQ(hlo::Module::parse(m.to_proto("pbtxt"), {.file = "a.pbtxt"}).text(), m.text());
  EXPECT_EQ(hlo::Module::from_proto(m.to_proto()).text(), m.text());
  EXPECT_EQ(hlo::Module::parse(m.json()).text(), m.text());
  EXPECT_EQ(m.copied_into(hlo::Universe()).text(), m.text());
  EXPECT_ERROR(m.to_proto("xml"), usage, "pb.gz");
  EXPECT_ERROR(m.text({.style = "fancy"}), usage, "canonical");
}

TEST(Library, SaysWhatIsWrongWithATextAndWhere) {
  hlo::Error e =
      error_of([] { hlo::Module::parse("HloModule m\n\nENTRY e {\n  ROOT a = f32[] ad(b)\n}\n", {.file = "x.hlo"}); });
  EXPECT_EQ(e.kind(), hlo::ErrorKind::bad_input);
  EXPECT_EQ(e.place().file, "x.hlo");
  EXPECT_EQ(e.place().line, 4u);
  EXPECT_GT(e.place().column, 1u);
  EXPECT_NE(e.hint(), "");
  EXPECT_ERROR(hlo::Module::parse(""), unsupported, "is empty");
  EXPECT_ERROR(hlo::Module::parse_file("/nowhere/x.hlo"), bad_input, "cannot read");
  EXPECT_ERROR(hlo::Module::parse_file("-"), usage, "standard input");
  EXPECT_ERROR(hlo::Module::from_proto("\x01\x02junk"), bad_input, "");
  EXPECT_ERROR(hlo::Module::parse(std::string(kSmall) + "\n// -----\n" + kSmall), usage, "2 modules");
  EXPECT_EQ(hlo::Module::parse_all(std::string(kSmall) + "\n// -----\n" + kSmall).size(), 2u);
  hlo::Module m = hlo::Module::parse(kSmall);
  EXPECT_ERROR(m.instruction("nobody"), usage, "nobody");
  EXPECT_ERROR(m.instruction(12345u), usage, "12345");
  EXPECT_ERROR(m.computation("sun"), usage, "did you mean 'sum'");
}

TEST(Library, Edits) {
  hlo::Module m = hlo::Module::parse(kSmall);
  hlo::Instruction dead = m.instruction("dead"), plus = m.instruction("plus"), b = m.instruction("b");
  dead.remove();
  EXPECT_FALSE(dead.alive());
  EXPECT_ERROR(dead.name(), usage, "removed");
  EXPECT_ERROR(plus.remove(), usage, "users");
  EXPECT_ERROR(m.instruction("product").remove(), usage, "root");
  plus.set_name("total.sum");
  EXPECT_EQ(m.instruction("total.sum"), plus);
  EXPECT_ERROR(plus.set_name("b"), usage, "another instruction");
  EXPECT_ERROR(plus.set_name("a b"), usage, "cannot be a name");
  hlo::Instruction less = m.entry().add("%less = f32[4]{0} subtract(%wide, %b), metadata={op_name=\"mine\"}");
  EXPECT_EQ(less.op_name(), "mine");
  EXPECT_EQ(less.operand(1), b);
  plus.replace_all_uses_with(less);
  EXPECT_EQ(m.instruction("product").operand(0), less);
  EXPECT_TRUE(plus.users().empty());
  plus.set_operand(0, b);
  EXPECT_EQ(plus.operand(0), b);
  EXPECT_EQ(m.entry().add("inferred = add(a, b)").shape_text(), "f32[4]{0}");
  EXPECT_EQ(m.entry().add("a = negate(a)").name(), "a.1");
  EXPECT_ERROR(m.entry().add("x = f32[4]{0} add(%a, %nobody)"), bad_input, "<line>:1:");
  EXPECT_ERROR(m.entry().add("x = f32[4]{0} add(%a,\n%b)"), usage, "one line");
  EXPECT_ERROR(m.entry().add("p = f32[] parameter(7)"), usage, "number 2");
  EXPECT_EQ(m.entry().add("p = f32[] parameter(2)").parameter_number(), 2);
  m.set_entry(m.entry());
  EXPECT_EQ(m.verify().size(), 0u) << m.verify()[0].message;

  hlo::Instruction total = m.instruction("total");
  m.add_computation(
      "%most (x: f32[], y: f32[]) -> f32[] {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
      "  ROOT m = f32[] maximum(x, y)\n}\n");
  total.set_attribute("to_apply", "%most");
  EXPECT_EQ(total.called_computations()[0].name(), "most");
  total.set_attribute("metadata", "{op_name=\"total\"}");
  EXPECT_EQ(total.op_name(), "total");
  total.set_attribute("frontend_attributes", "{mine=\"yes\"}");
  EXPECT_EQ(total.attribute("frontend_attributes"), "{mine=\"yes\"}");
  EXPECT_EQ(total.op_name(), "total");
  total.erase_attribute("frontend_attributes");
  EXPECT_EQ(total.attribute("frontend_attributes"), std::nullopt);
  EXPECT_ERROR(total.set_attribute("slice_sizes", "{1}"), bad_input, "slice_sizes");
  EXPECT_ERROR(total.set_attribute("dimensions", "{0}, to_apply=%most"), bad_input, "to_apply");
  m.remove_unused_computations();
  EXPECT_EQ(m.computations().size(), 2u);
  EXPECT_TRUE(m.verify().empty()) << m.verify()[0].message;
  EXPECT_EQ(hlo::Module::parse(m.text({.lossless = true})).text({.lossless = true}), m.text({.lossless = true}));
  total.set_operand(1, total.operand(0));
  ASSERT_FALSE(m.verify().empty());
  EXPECT_EQ(m.verify()[0].instruction, total.id());
  EXPECT_ERROR(m.require_valid(), bad_input, "does not verify");
}

TEST(Library, Builds) {
  hlo::Module m = hlo::Module::make("made");
  EXPECT_ERROR(m.entry(), usage, "no entry");
  EXPECT_ERROR(m.verify(), usage, "no entry");
  hlo::Builder inner(m, "sum");
  inner.build(inner.op("add", {inner.parameter("f32[]"), inner.parameter("f32[]")}), false);
  hlo::Builder b(m, "main");
  const float two[] = {2, 2};
  hlo::Instruction x = b.parameter("f32[2,3]"), zero = b.constant("f32[] 0"),
                   scale = b.constant(hlo::Array("f32", {2}, two, sizeof two), "scale");
  hlo::Instruction sums = b.op("reduce", {x, zero}, "dimensions={1}, to_apply=%sum");
  EXPECT_EQ(sums.shape_text(), "f32[2]{0}");
  EXPECT_ERROR(b.op("frobnicate", {x}), bad_input, "frobnicate");
  EXPECT_ERROR(b.op("add", {x, inner.computation().root()}), usage, "operand 1");
  b.build(b.op("multiply", {sums, scale}));
  EXPECT_TRUE(m.verify().empty()) << m.verify()[0].message << m.text();
  EXPECT_EQ(hlo::Module::parse(m.text()).text(), m.text());
  EXPECT_EQ(m.instruction("scale").literal()->text(), "{2, 2}");
  EXPECT_ERROR(hlo::Array("f32", {3}, two, sizeof two), usage, "8");
  EXPECT_ERROR(hlo::Array("f33", {2}, two, sizeof two), usage, "f33");
}

TEST(Library, ColumnsAreTheWalk) {
  hlo::Module m = hlo::Module::parse_file(HLO_TESTDATA "/mobilenet_v1.hlo");
  const hlo::Columns c = m.columns();
  ASSERT_EQ(c.size(), m.instruction_count());
  size_t k = 0;
  for (const hlo::Instruction& i : m.instructions()) {
    EXPECT_EQ(c.id[k], i.id());
    EXPECT_EQ(c.computation[k], i.computation().id());
    EXPECT_EQ(hlo::opcodes()[c.opcode[k]], i.opcode());
    EXPECT_EQ(hlo::element_types()[c.element_type[k]], i.shape().element_type);
    EXPECT_EQ(c.rank[k], static_cast<int32_t>(i.shape().dims.size()));
    EXPECT_EQ(c.bytes[k], i.shape().bytes);
    EXPECT_EQ(c.root[k], i.is_root());
    EXPECT_EQ(c.names.substr(c.name_offsets[k], c.name_offsets[k + 1] - c.name_offsets[k]), i.name());
    std::vector<uint32_t> operands;
    for (const hlo::Instruction& o : i.operands()) operands.push_back(o.id());
    EXPECT_EQ(std::vector<uint32_t>(c.operands.begin() + static_cast<ptrdiff_t>(c.operand_offsets[k]),
                                    c.operands.begin() + static_cast<ptrdiff_t>(c.operand_offsets[k + 1])),
              operands);
    ++k;
  }
}

TEST(Library, UniversesDoNotMix) {
  hlo::Module m = hlo::Module::parse(kSmall), other = hlo::Module::parse(kSmall);
  EXPECT_FALSE(m.universe() == other.universe());
  EXPECT_ERROR(m.instruction("plus").set_operand(0, other.instruction("b")), usage, "different universes");
  hlo::Module twin = hlo::Module::parse(kSmall, {}, m.universe());
  EXPECT_ERROR(m.instruction("plus").set_operand(0, twin.instruction("b")), usage, "another module");
  EXPECT_ERROR(m.instruction("plus").set_operand(0, m.instruction("x")), usage, "computation");
  EXPECT_ERROR(m.instruction("plus").operand(2), usage, "2 operands");
}

TEST(Library, TwoThreadsOnOneUniverseAreRefused) {
  const std::string text = file_text(HLO_TESTDATA "/mobilenet_v1.hlo");
  hlo::Universe shared;
  std::atomic<int> refused = 0, parsed = 0, wrong = 0;
  auto parse = [&](hlo::Universe universe) {
    for (int k = 0; k < 10; ++k) try {
        hlo::Module m = hlo::Module::parse(text, {}, universe);
        if (!m.verify().empty()) ++wrong;
        ++parsed;
      } catch (const hlo::Error& e) {
        if (e.kind() == hlo::ErrorKind::usage && std::string(e.what()).find("thread") != std::string::npos)
          ++refused;
        else
          ++wrong;
      }
  };
  // One that stays in, so that the others meet it.
  {
    std::atomic<bool> inside = false, out = false;
    std::thread holds([&] {
      hlo::Watch watch(
          [&](const hlo::Progress&) {
            inside = true;
            while (!out) std::this_thread::yield();
            return true;
          },
          0);
      hlo::Module::parse(text, {}, shared);
    });
    while (!inside) std::this_thread::yield();
    std::thread a([&] { parse(shared); });
    std::thread b([&] { parse(shared); });
    a.join(), b.join();
    EXPECT_ERROR(shared.strings(), usage, "another thread");
    EXPECT_EQ(refused, 20);
    out = true;
    holds.join();
  }
  // Two that meet by chance: each call is done or refused, and nothing races.
  parsed = refused = 0;
  {
    std::thread a([&] { parse(shared); });
    std::thread b([&] { parse(shared); });
    a.join(), b.join();
  }
  EXPECT_EQ(parsed + refused, 20);
  EXPECT_EQ(wrong, 0);
  // Each with its own: nobody is refused.
  parsed = refused = 0;
  std::thread a([&] { parse(hlo::Universe()); });
  std::thread b([&] { parse(hlo::Universe()); });
  a.join(), b.join();
  EXPECT_EQ(parsed, 20);
  EXPECT_EQ(refused, 0);
}

TEST(Library, WorksOnASmallStack) {
  // Threads that are not ours may have little: nested input is refused there, not the process.
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 512 << 10);
  static std::string said;
  auto body = [](void*) -> void* {
    std::string deep = "HloModule deep\n\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT t = ", end;
    for (int k = 0; k < 20000; ++k) deep += '(', end += ')';
    try {
      hlo::Module::parse(deep + "f32[]" + end + " tuple(p)\n}\n");
    } catch (const hlo::Error& e) {
      said = e.what();
    }
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &small, body, nullptr), 0);
  pthread_join(thread, nullptr);
  EXPECT_NE(said.find("deep"), std::string::npos) << said;
}

// --- passes, recordings ---

TEST(Library, RunsPasses) {
  hlo::Module m = hlo::Module::parse(kSmall);
  const std::string before = m.text();
  EXPECT_GT(hlo::passes().size(), 50u);
  EXPECT_EQ(hlo::pass_info("dce").name, "dce");
  EXPECT_ERROR(hlo::pass_info("dces"), usage, "did you mean 'dce'");
  EXPECT_ERROR(hlo::run_pass(m, "dces"), usage, "did you mean 'dce'");
  EXPECT_ERROR(hlo::run_pass(m, "dce", {.options = {{"nothing", "1"}}}), usage, "nothing");
  const uint32_t id = m.instruction("plus").id();
  EXPECT_FALSE(hlo::run_pass(m, "dce", {.fuel = 0}).changed);
  EXPECT_EQ(m.text(), before);
  hlo::PassResult r = hlo::run_pass(m, "dce");
  EXPECT_TRUE(r.changed);
  EXPECT_EQ(r.instructions_before, r.instructions_after + 1);
  ASSERT_FALSE(r.notes.empty());
  EXPECT_EQ(m.instruction(id).name(), "plus");
  EXPECT_FALSE(hlo::run_pass(m, "dce").changed);
  EXPECT_FALSE(hlo::pipelines().empty());
  EXPECT_GT(hlo::pipeline("xla-2019").size(), 3u);
  EXPECT_ERROR(hlo::pipeline("xla-1999"), usage, "xla-2019");
}

TEST(Library, ReplaysInMemory) {
  hlo::Module m = hlo::Module::parse(kSmall);
  const std::string before = m.text();
  hlo::Recording r = hlo::replay(m);
  EXPECT_EQ(m.text(), before);
  EXPECT_EQ(r.module_name(), "small");
  EXPECT_EQ(r.source(), "hlo-replay");
  const std::vector<hlo::Stage> stages = r.stages();
  ASSERT_GT(stages.size(), 5u);
  EXPECT_EQ(stages[0].kind(), "input");
  EXPECT_EQ(stages.back().kind(), "result");
  EXPECT_EQ(stages[0].module().text({.lossless = true}), m.text({.lossless = true}));
  EXPECT_EQ(hlo::Module::parse(stages.back().text()).text({.lossless = true}), stages.back().text());
  // Ids are those of the module.
  EXPECT_EQ(stages[0].module().instruction("product").id(), m.instruction("product").id());
  EXPECT_TRUE(stages[0].module().universe() == m.universe());
  EXPECT_EQ(r.stage("after_optimizations").index(), stages.size() - 1);
  EXPECT_ERROR(r.stage("no such thing"), usage, "no such thing");
  EXPECT_ERROR(r.stage(stages.size()), usage, "no number");
  EXPECT_NE(r.json().find("before_optimizations"), std::string::npos);
  EXPECT_NE(r.explain_json("total").find("\"events\""), std::string::npos);
  EXPECT_ERROR(r.explain_json("totl"), usage, "total");
  EXPECT_NE(r.diff_json(0, stages.size() - 1).find("\"same\": false"), std::string::npos);
  EXPECT_NE(r.diff_json(0, 0).find("\"same\": true"), std::string::npos);
  EXPECT_NE(r.cost_json().find("least_seconds"), std::string::npos);
  EXPECT_ERROR(r.cost_json("abacus"), usage, "abacus");
  EXPECT_NE(r.memory_json().find("peak_bytes"), std::string::npos);
  EXPECT_ERROR(r.memory_json("weight"), usage, "weight");
  EXPECT_NE(r.summary_json("class").find("\"rows\""), std::string::npos);
  EXPECT_ERROR(r.summary_json("weight"), usage, "weight");
  EXPECT_EQ(r.bisect().outcome, hlo::BisectResult::all_good);
  EXPECT_ERROR(hlo::replay(m, {.pipeline = "nothing"}), usage, "xla-2019");
  EXPECT_ERROR(hlo::replay(m, {.disabled = {"nothing"}}), usage, "nothing");
  EXPECT_ERROR(hlo::replay(stages.back().module()), usage, "already optimised");
  EXPECT_ERROR(hlo::replay(m, {.formats = {"svg"}}), unsupported, "");
}

TEST(Library, KeepsAndOpensRecordings) {
  const std::string folder = testing::TempDir() + "library_recording", copy = folder + ".copy";
  hlo::Module m = hlo::Module::parse(kSmall);
  hlo::Recording made = hlo::replay(m, {.force = true, .folder = folder, .formats = {"text", "dot", "page"}});
  EXPECT_ERROR(hlo::replay(m, {.folder = folder}), usage, "exists");
  hlo::Recording r = hlo::Recording::open(folder);
  ASSERT_EQ(r.modules().size(), 1u);
  ASSERT_EQ(r.stages().size(), made.stages().size());
  EXPECT_EQ(r.stages().back().text(), made.stages().back().text());
  EXPECT_EQ(r.stages()[1].notes().size(), made.stages()[1].notes().size());
  const std::string page = r.view(folder + ".view", true), shown = file_text(page);
  EXPECT_NE(shown.find("<title>" + m.name()), std::string::npos);
  EXPECT_NE(shown.find("id=\"hlo-data\">H4sI"), std::string::npos);  // gzip as base64: what was recorded
  EXPECT_ERROR(r.view(folder + ".view"), usage, "exists");
  r.save(copy, true);
  EXPECT_EQ(hlo::Recording::open(copy).stages().back().text(), r.stages().back().text());
  EXPECT_ERROR(r.save(copy), usage, "exists");
  hlo::Stage last = r.stages().back();
  hlo::Module kept = last.module();
  const std::string text = kept.text();
  r.close();
  EXPECT_TRUE(r.closed());
  EXPECT_ERROR(r.stages(), usage, "closed");
  EXPECT_ERROR(last.text(), usage, "closed");
  EXPECT_EQ(kept.text(), text);  // modules live on
  EXPECT_ERROR(hlo::Recording::open("/nowhere"), bad_input, "/nowhere");
  EXPECT_ERROR(hlo::Recording::open(HLO_TESTDATA "/text"), bad_input, "");
}

TEST(Library, BisectsByACallback) {
  hlo::Module m = hlo::Module::parse(kSmall);
  hlo::Recording r = hlo::replay(m);
  // The first stage without the dead instruction is "bad".
  int asked = 0;
  hlo::Oracle oracle = [&](const hlo::Module& c) {
    ++asked;
    for (const hlo::Instruction& i : c.instructions())
      if (i.name() == "dead") return hlo::Judgement{hlo::Verdict::good, ""};
    return hlo::Judgement{hlo::Verdict::bad, "it is gone"};
  };
  hlo::BisectResult b = r.bisect(oracle);
  ASSERT_EQ(b.outcome, hlo::BisectResult::found);
  EXPECT_EQ(b.why, "it is gone");
  EXPECT_EQ(b.pass, r.stage(*b.bad).pass());
  EXPECT_GT(asked, 1);
  EXPECT_FALSE(r.stage(*b.bad).text().find("%dead") != std::string::npos);
  EXPECT_TRUE(r.stage(*b.good).text().find("%dead") != std::string::npos);
  struct Mine {
    int number;
  };
  try {
    r.bisect([](const hlo::Module&) -> hlo::Judgement { throw Mine{42}; });
    ADD_FAILURE();
  } catch (const Mine& mine) {
    EXPECT_EQ(mine.number, 42);
  }
  // A callback may run what it is shown, and not change what is being worked on.
  EXPECT_EQ(r.bisect([&](const hlo::Module& c) {
               return hlo::run(c).outputs.size() == 1 ? hlo::Judgement{hlo::Verdict::good, ""} : hlo::Judgement{};
             }).outcome,
            hlo::BisectResult::all_good);
}

// --- running ---

TEST(Library, Runs) {
  hlo::Module m = hlo::Module::parse(kSmall);
  const float a[] = {1, 2, 3, 4}, b[] = {0, 1, 0, -1};
  const hlo::Array x("f32", {4}, a, sizeof a), y = hlo::Array::borrowed("f32", {4}, b, sizeof b, nullptr);
  for (const char* backend : {"eval", "evaluator", "host", "emulated"}) {
    hlo::RunResult r = hlo::run(m, {x, y}, {.backend = backend});
    ASSERT_EQ(r.outputs.size(), 1u) << backend;
    const auto* out = static_cast<const float*>(r.outputs[0].data());
    EXPECT_EQ(out[0], 100) << backend;
    EXPECT_EQ(out[1], 121) << backend;
    EXPECT_EQ(out[3], 81) << backend;
    EXPECT_EQ(r.outputs[0].element_type(), "f32");
    EXPECT_EQ(r.outputs[0].dims(), std::vector<int64_t>{4});
  }
  EXPECT_EQ(hlo::run(m, {x, y}, {.precision = "high"}).outputs[0].element_type(), "f64");
  EXPECT_TRUE(hlo::compare(hlo::run(m).outputs, hlo::run(m, hlo::make_inputs(m)).outputs).equal);
  EXPECT_ERROR(hlo::run(m, {x}), usage, "1 were given");
  EXPECT_ERROR(hlo::run(m, {x, y, y}), usage, "3 were given");
  EXPECT_ERROR(hlo::run(m, {x, hlo::Array("f64", {2}, a, sizeof a)}), usage, "f64[2]");
  EXPECT_ERROR(hlo::run(m, {}, {.backend = "abacus"}), usage, "evaluator");
  EXPECT_ERROR(hlo::run(m, {}, {.precision = "low"}), usage, "high");
  EXPECT_ERROR(hlo::run(m, {}, {.memory = 10}), unsupported, "allowed");
  EXPECT_EQ(hlo::backends().size(), 4u);
  m.instruction("plus").set_operand(0, m.instruction("total"));
  EXPECT_ERROR(hlo::run(m), bad_input, "does not verify");
}

TEST(Library, ElementsOfEveryWidth) {
  hlo::Module m = hlo::Module::parse(R"(HloModule w
ENTRY e {
  p = s4[3]{0} parameter(0)
  q = bf16[2]{0} parameter(1)
  r = pred[2]{0} parameter(2)
  f = f8e5m2[1]{0} parameter(3)
  ROOT t = (s4[3]{0}, bf16[2]{0}, pred[2]{0}, f8e5m2[1]{0}) tuple(p, q, r, f)
})");
  const signed char s4[] = {7, -8, 15};  // 15 is -1 in four bits
  const uint16_t bf16[] = {0x3F80, 0xC000};
  const unsigned char pred[] = {0, 5}, f8[] = {0x3C};
  std::vector<hlo::Array> out = hlo::run(m, {hlo::Array("s4", {3}, s4, 3), hlo::Array("bf16", {2}, bf16, 4),
                                             hlo::Array("pred", {2}, pred, 2), hlo::Array("f8e5m2", {1}, f8, 1)})
                                    .outputs;
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0].text(), "{7, -8, -1}");
  EXPECT_EQ(out[1].text(), "{1, -2}");
  EXPECT_EQ(static_cast<const char*>(out[2].data())[1], 1);
  EXPECT_EQ(out[3].text(), "{1}");
  EXPECT_EQ(hlo::element_bits("s4"), 4);
  EXPECT_EQ(hlo::storage_bytes("s4"), 1);
  EXPECT_EQ(hlo::storage_bytes("c128"), 16);
  EXPECT_ERROR(hlo::element_bits("s5"), usage, "s5");
}

TEST(Library, ComparesAndReduces) {
  const float a[] = {1, 2}, b[] = {1, 2.5};
  const hlo::Array x("f32", {2}, a, sizeof a), y("f32", {2}, b, sizeof b);
  hlo::Comparison c = hlo::compare({x}, {y});
  EXPECT_FALSE(c.equal);
  EXPECT_EQ(c.outputs[0].index, std::vector<int64_t>{1});
  EXPECT_TRUE(hlo::compare({x}, {y}, 0.5).equal);
  EXPECT_ERROR(hlo::compare({x}, {x, y}), usage, "2 there");
  EXPECT_ERROR(hlo::compare({x}, {hlo::Array("s32", {2}, a, sizeof a)}), usage, "s32[2]");
  hlo::Module m = hlo::Module::parse(kSmall);
  const std::string before = m.text();
  auto has_reduce = [](const hlo::Module& candidate) {
    for (const hlo::Instruction& i : candidate.instructions())
      if (i.opcode() == "reduce") return true;
    return false;
  };
  hlo::Reduction r = hlo::reduce(m, has_reduce);
  EXPECT_LT(r.module.instruction_count(), m.instruction_count());
  EXPECT_TRUE(has_reduce(r.module));
  EXPECT_EQ(m.text(), before);
  EXPECT_ERROR(hlo::reduce(m, [](const hlo::Module&) { return false; }), usage, "nothing is wrong");
  int left = 3;
  EXPECT_THROW(hlo::reduce(m, [&](const hlo::Module&) { return --left ? true : throw std::string("mine"); }),
               std::string);
  // What is being reduced stays as it is.
  EXPECT_ERROR(hlo::reduce(m, [&](const hlo::Module&) { return m.set_name("other"), true; }), usage, "worked on");
}

// --- watching ---

constexpr const char* kForever = R"(HloModule forever
body { b = s32[] parameter(0)  ROOT n = s32[] negate(b) }
condition { c = s32[] parameter(0)  ROOT t = pred[] constant(true) }
ENTRY e { p = s32[] parameter(0)  ROOT w = s32[] while(p), condition=condition, body=body })";

TEST(Library, LongWorkIsWatched) {
  hlo::Module m = hlo::Module::parse(kForever);
  EXPECT_ERROR(hlo::run(m, {}, {.max_steps = 10}), unsupported, "10 steps");
  EXPECT_ERROR(hlo::run(m, {}, {.seconds = 0.05}), unsupported, "0.05 seconds");
  EXPECT_ERROR(hlo::run(m, {}, {.backend = "host", .seconds = 0.05}), unsupported, "0.05 seconds");
  EXPECT_ERROR(hlo::run(m, {}, {.seconds = -1}), usage, "-1");
  int asked = 0;
  {
    hlo::Watch watch([&](const hlo::Progress&) { return ++asked < 3; }, 0.001);
    EXPECT_ERROR(hlo::run(m), interrupted, "interrupted");
    EXPECT_EQ(asked, 3);
  }
  EXPECT_ERROR(hlo::run(m, {}, {.max_steps = 10}), unsupported, "10 steps");  // it is over
  struct Mine {};
  {
    hlo::Watch outer([&](const hlo::Progress&) { return ADD_FAILURE(), true; });
    hlo::Watch watch([&](const hlo::Progress&) -> bool { throw Mine(); }, 0.001);
    EXPECT_THROW(hlo::run(m), Mine);
    EXPECT_THROW(hlo::run(m), Mine);  // each call is watched
  }
  {
    hlo::Watch watch([&](const hlo::Progress&) { return false; }, 0);
    EXPECT_ERROR(hlo::Module::parse(kForever), interrupted, "");
    EXPECT_ERROR(hlo::replay(hlo::Module::parse(kSmall)), interrupted, "");
  }
}

}  // namespace
