// What holds for every pass: with no fuel nothing changes, what a pass says is what it did, every state between two
// rewrites is a right module, and a recorded stage is the module as it was. HLO_RANDOM gives the number of random
// modules, HLO_CORPUS a folder of further ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "ir/print/print.h"
#include "ir/snapshot.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/backend/backend.h"
#include "passes/pipelines/pipelines.h"
#include "replay/os/files.h"
#include "tests/common/compare.h"
#include "tests/common/pass_cases.h"
#include "tests/common/random_module.h"

namespace hlo {
namespace {

struct Sample {
  std::string name, text;
};

std::vector<Sample> random_samples(int64_t count) {
  if (const char* wanted = std::getenv("HLO_RANDOM")) count = std::atoll(wanted);
  std::vector<Sample> out;
  for (int64_t k = 1; k <= count; ++k)
    out.push_back({fmt::format("seed {}", k), random_module(static_cast<uint64_t>(k), 12 + static_cast<int>(k % 20))});
  return out;
}

// Files of the folder in HLO_CORPUS that are small enough; none where it is not set.
std::vector<Sample> corpus_samples() {
  std::vector<Sample> out;
  const char* folder = std::getenv("HLO_CORPUS");
  if (!folder) return out;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    if (e.path().string().ends_with(".hlo.txt") && e.file_size() < 200'000)
      out.push_back({e.path().string(), read_file(e.path().string())});
  std::sort(out.begin(), out.end(), [](const Sample& a, const Sample& b) { return a.name < b.name; });
  return out;
}

std::string all_of(const Module& m) {
  PrintOptions o;
  o.large_constants = true;
  return print_module(m, o);
}

std::vector<size_t> counts_of(const Module& m) {
  std::vector<size_t> out;
  for (int op = 0; op < kOpcodeCount; ++op) out.push_back(m.count(static_cast<Opcode>(op)));
  out.push_back(m.instruction_count());
  return out;
}

std::vector<size_t> counted_one_by_one(const Module& m) {
  std::vector<size_t> out(kOpcodeCount + 1, 0);
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) ++out[static_cast<size_t>(m.op(i))], ++out.back();
  return out;
}

class FreezeThaw {
 public:
  explicit FreezeThaw(const Module& m) : recorder_(m.universe()) {}
  void keep(Module& m, const std::string& stage) {
    stages_.push_back({stage, recorder_.freeze(m)});
    texts_.push_back(all_of(m));
    // What the module keeps of its orders and counts is what one that has walked nowhere yet finds.
    const std::unique_ptr<Module> fresh = stages_.back().second.thaw();
    EXPECT_EQ(m.computation_post_order(), fresh->computation_post_order()) << stage;
    EXPECT_EQ(m.nonfusion_computations(), fresh->nonfusion_computations()) << stage;
    for (CompId c : m.computations()) EXPECT_EQ(m.post_order(c), fresh->post_order(c)) << stage;
    EXPECT_EQ(counts_of(m), counts_of(*fresh)) << stage;
    EXPECT_EQ(counts_of(m), counted_one_by_one(m)) << stage;
  }
  // At the end: later stages leave the earlier ones as they were.
  void check() const {
    for (size_t k = 0; k < stages_.size(); ++k)
      EXPECT_EQ(all_of(*stages_[k].second.thaw()), texts_[k]) << stages_[k].first;
  }

 private:
  Recorder recorder_;
  std::vector<std::pair<std::string, Snapshot>> stages_;
  std::vector<std::string> texts_;
};

void freeze_and_thaw(const Sample& sample) {
  for (const std::string& pipeline : pipeline_names()) {
    SCOPED_TRACE(sample.name + ", " + pipeline);
    auto m = parse_module(sample.text, std::make_shared<Universe>(), {sample.name, 20});
    FreezeThaw kept(*m);
    kept.keep(*m, "input");
    PipelineOptions options;
    options.keep_notes = false;
    PipelineCursor cursor(*find_pipeline(pipeline), {});
    std::string stage;
    options.observe = [&](const Module&, const PassEvent& e) { stage = e.pipeline + ".after_" + e.pass; };
    uint64_t edits = m->edits();
    while (cursor.advance(*m, options)) {
      if (std::exchange(edits, m->edits()) != m->edits()) kept.keep(*m, stage);
    }
    schedule_module(*m);
    kept.keep(*m, "scheduled");
    kept.check();
  }
}

TEST(Scope, freeze_thaw_same_text) {
  for (const Sample& s : random_samples(40)) {
    freeze_and_thaw(s);
    if (HasFailure()) break;
  }
  for (const Sample& s : corpus_samples()) freeze_and_thaw(s);
  for (const char* file : {"mnist_softmax.hlo", "linear_regression_loop.hlo", "mobilenet_v1.hlo"})
    freeze_and_thaw({file, read_file(std::string(HLO_TESTDATA) + "/" + file)});
}

// Refuses modules, changes none.
bool only_checks(std::string_view pass) { return pass == "gpu_hlo_support_checker"; }
// Leaves roundings out on purpose.
bool rounds_less(std::string_view pass) { return pass == "simplify-fp-conversions"; }

struct PassRun {
  const PassInfo* pass;
  std::map<std::string, std::string> options;
};
std::vector<PassRun> all_runs() {
  std::vector<PassRun> out;
  for (const PassInfo& p : all_passes())
    if (p.run) out.push_back({&p, {}});
  for (const char* pass : {"algsimp", "cse"}) out.push_back({find_pass(pass), {{"layout_sensitive", "true"}}});
  return out;
}

// f(module, pass run, fresh copy) of every pass on random modules, and on the modules of the passes' files.
void each_run(const std::function<void(const std::string&, const Module&, const PassRun&)>& f) {
  const std::vector<PassRun> runs = all_runs();
  auto go = [&](const Sample& s) {
    std::unique_ptr<Module> m = parse_module(s.text, std::make_shared<Universe>(), {s.name, 20});
    for (const PassRun& r : runs) f(fmt::format("{} on {}", r.pass->name, s.name), *m, r);
  };
  for (const Sample& s : random_samples(200)) go(s);
  for (const Sample& s : corpus_samples()) go(s);
  for (const std::string& path : pass_case_files())
    for (const PassCase& c : read_cases(path).cases) go({path + ": " + c.name, c.input});
  for (const char* file : {"mnist_softmax.hlo", "linear_regression_loop.hlo", "modules/mixed.hlo",
                           "modules/layer_norm.hlo", "modules/llama_block.hlo"})
    go({file, read_file(std::string(HLO_TESTDATA) + "/" + file)});
}

// A pass without fuel that is called all the same asks before it changes anything.
TEST(Scope, fuel0_changes_nothing) {
  size_t runs = 0;
  std::set<std::string> wrong;
  each_run([&](const std::string& name, const Module& m, const PassRun& r) {
    if (wrong.contains(std::string(r.pass->name))) return;
    for (bool called : {false, true}) {
      auto copy = m.clone();
      PassContext context;
      context.options = r.options, context.fuel = 0;
      PassEvent event;
      const uint64_t before = copy->edits();
      try {
        run_pass(*copy, *r.pass, context, {.verify = false, .call_without_fuel = called}, &event);
      } catch (const Failure& e) {
        if (called && e.kind() != FailureKind::kInternal) continue;
        ADD_FAILURE() << name << ": " << e.what();
      }
      ++runs;
      EXPECT_EQ(copy->edits(), before) << name << (called ? " (called)" : "");
      EXPECT_EQ(event.rewrites, 0) << name;
      if (copy->edits() != before) wrong.insert(std::string(r.pass->name));
    }
  });
  printf("%zu runs\n", runs);
}

// What a pass says is what it did: run_pass fails where it changes more than it says; here the other way round.
TEST(Scope, claimed_is_touched) {
  size_t runs = 0, changed = 0;
  std::set<std::string> wrong;
  each_run([&](const std::string& name, const Module& m, const PassRun& r) {
    if (wrong.contains(std::string(r.pass->name))) return;
    auto copy = m.clone();
    PassContext context;
    context.options = r.options;
    PassEvent event;
    try {
      run_pass(*copy, *r.pass, context, {}, &event);
    } catch (const Failure& e) {
      if (e.kind() == FailureKind::kUnsupported) return;
      ADD_FAILURE() << name << ": " << e.what();
      wrong.insert(std::string(r.pass->name));
      return;
    }
    ++runs, changed += event.changed;
    bool true_word = event.changed || !event.claimed || context.claimed();
    EXPECT_TRUE(true_word) << name << " says that it changed something, and did not";
    EXPECT_EQ(event.changed, event.rewrites > 0) << name << ": " << event.rewrites << " rewrites";
    if (!true_word || event.changed != (event.rewrites > 0)) wrong.insert(std::string(r.pass->name));
  });
  printf("%zu runs, %zu of them changed something\n", runs, changed);
  EXPECT_GT(changed, 500u);
}

// The states of a pass on a module with each fuel below what it takes, `most` of them: verified, and computing the
// same.
size_t states_of(const Module& original, const PassInfo& pass, const std::map<std::string, std::string>& options,
                 int64_t most) {
  size_t states = 0;
  for (int64_t k = 1; k <= most; ++k) {
    SCOPED_TRACE(fmt::format("{} rewrites of {}", k, pass.name));
    auto m = original.clone();
    PassContext context;
    context.options = options, context.fuel = k;
    PassEvent event;
    try {
      run_pass(*m, pass, context, {}, &event);
    } catch (const Failure& e) {
      if (e.kind() == FailureKind::kUnsupported) break;
      ADD_FAILURE() << e.what();
      break;
    }
    if (event.rewrites < k) break;  // it came to its end
    EXPECT_EQ(event.rewrites, k);
    ++states;
    expect_same_results(original, *m, 1, 1e-4);
    if (testing::Test::HasFailure()) break;
  }
  return states;
}

// Between any two rewrites of a pass that is not atomic stands a right module.
TEST(Scope, each_fuel_state_evaluates) {
  size_t states = 0;
  for (const std::string& path : pass_case_files()) {
    PassCases f = read_cases(path);
    const auto [pass, options] = pass_of(f);
    ASSERT_TRUE(pass) << path;
    if (only_checks(pass->name) || rounds_less(pass->name)) continue;
    for (const PassCase& c : f.cases) {
      auto original = parse_module(c.input, std::make_shared<Universe>(), {c.name, 20});
      SCOPED_TRACE(path + ": " + c.name);
      states += states_of(*original, *pass, options, INT64_MAX);
    }
  }
  for (const char* file : {"mnist_softmax.hlo", "linear_regression_loop.hlo", "modules/mixed.hlo",
                           "modules/layer_norm.hlo", "modules/softmax.hlo"}) {
    auto original = parse_module(read_file(std::string(HLO_TESTDATA) + "/" + file), std::make_shared<Universe>());
    SCOPED_TRACE(file);
    for (const PassRun& r : all_runs())
      if (!only_checks(r.pass->name) && !rounds_less(r.pass->name))
        states += states_of(*original, *r.pass, r.options, 12);
  }
  printf("%zu states\n", states);
  EXPECT_GT(states, 300u);
}

// A dead cosine and a tuple of a tuple: both go in copy-insertion's tidying, which has its fuel as well.
TEST(Scope, FuelReachesThePassesInside) {
  auto m = parse_module(
      "HloModule m\nENTRY e {\n p = f32[4] parameter(0)\n dead = f32[4] cosine(p)\n n = f32[4] negate(p)\n t = "
      "(f32[4]) "
      "tuple(n)\n g = f32[4] get-tuple-element(t), index=0\n ROOT r = f32[4] abs(g)\n}",
      std::make_shared<Universe>());
  const std::string before = all_of(*m);
  for (bool called : {false, true}) {
    PassContext context;
    context.fuel = 0;
    PassEvent event;
    EXPECT_FALSE(run_pass(*m, *find_pass("copy-insertion"), context, {.call_without_fuel = called}, &event));
    EXPECT_FALSE(event.changed);
    EXPECT_EQ(event.rewrites, 0);
    EXPECT_EQ(all_of(*m), before);
  }
  PassContext context;
  PassEvent event;
  EXPECT_TRUE(run_pass(*m, *find_pass("copy-insertion"), context, {}, &event));
  EXPECT_TRUE(event.changed);
  EXPECT_TRUE(event.claimed) << "as XLA's, copies or none";
  EXPECT_GT(event.rewrites, 0);
  EXPECT_FALSE(event.notes.empty());
  EXPECT_LT(event.instructions_after, event.instructions_before);
}

bool lies(Module& m, PassContext& ctx) {
  InstId root = m.comp(m.entry()).root;
  if (!ctx.spend(m, "a rule of its own", {root})) return false;
  m.set_root(m.entry(), m.add_derived(root, {.op = Opcode::Negate, .shape = m.shape_id(root), .operands = {root}}));
  return false;
}

// What goes wrong is told with rule, instruction, stage and a command.
TEST(Scope, BlamesAPassThatLies) {
  auto m = parse_module("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }", std::make_shared<Universe>());
  PassInfo info{"liar", "", "", "twice=false", "", lies};
  PassContext context;
  PassEvent event;
  try {
    run_pass(*m, info, context, {.stage = "DIR:fusion.after_dce"}, &event);
    FAIL() << "it was believed";
  } catch (const Failure& e) {
    EXPECT_EQ(e.kind(), FailureKind::kInternal);
    std::string what = e.what();
    for (const char* part : {"pass liar", "changed nothing", "a rule of its own", "of p", "DIR:fusion.after_dce",
                             "hlo-replay opt", "--passes=liar", "--fuel=liar=1"})
      EXPECT_NE(what.find(part), std::string::npos) << part << " in " << what;
  }
}

TEST(Scope, OptionsHaveTypes) {
  const PassInfo& fusion = *find_pass("fusion");
  EXPECT_EQ(checked_option(fusion, "may_duplicate", "0"), "false");
  EXPECT_EQ(checked_option(fusion, "may_duplicate", ""), "true");
  EXPECT_THROW(checked_option(fusion, "may_duplicate", "maybe"), Failure);
  EXPECT_THROW(checked_option(fusion, "nobody", "1"), Failure);
  const PassInfo& merger = *find_pass("dot-merger");
  EXPECT_EQ(checked_option(merger, "max_size_mib", "12"), "12");
  EXPECT_THROW(checked_option(merger, "max_size_mib", "a lot"), Failure);
  std::map<std::string, std::string> options{{"max_size_mib", "3"}};
  complete_options(merger, &options);
  EXPECT_EQ(options.at("max_size_mib"), "3");
  for (const PassInfo& p : all_passes()) {
    std::map<std::string, std::string> absent;
    EXPECT_NO_THROW(complete_options(p, &absent)) << p.name;
  }
}

}  // namespace
}  // namespace hlo
