// Every pass, and the pipelines, over modules by chance: what comes out verifies and computes the same. HLO_RANDOM
// gives the number of modules (more by hand, `HLO_RANDOM=10000`), HLO_RANDOM_FROM the first seed, HLO_RANDOM_SIZE how
// many instructions more than twelve they have at most, HLO_RANDOM_DIR where to write them (to be given to XLA).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/backend/backend.h"
#include "passes/pass.h"
#include "passes/pipelines/pipelines.h"
#include "replay/os/files.h"
#include "tests/common/compare.h"
#include "tests/common/random_module.h"

namespace hlo {
namespace {

int64_t environment(const char* name, int64_t absent) {
  const char* v = std::getenv(name);
  return v ? std::atoll(v) : absent;
}

// So many, and a tenth as many with small integers.
std::vector<int64_t> seeds(int64_t from, int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), from);
  if (!std::getenv("HLO_RANDOM"))
    for (int64_t k = 0; k < count / 10; ++k) out.push_back(static_cast<int64_t>(kSmallIntegersFrom) + k);
  return out;
}

// gpu_hlo_support_checker refuses on purpose what it cannot take; simplify-fp-conversions leaves roundings out on
// purpose.
bool apart(std::string_view pass) { return pass == "gpu_hlo_support_checker" || pass == "simplify-fp-conversions"; }

double magnitude(const Universe& u, const Value& v) {
  double most = 0;
  for (const Value& e : v.elements) most = std::max(most, magnitude(u, e));
  ElementType t = u[v.shape].type;
  if (!u[v.shape].is_array() || !(is_float(t) || is_complex(t)) || !v.data) return most;
  auto width = static_cast<size_t>(storage_bytes(t));
  for (int64_t k = 0; k < u[v.shape].elements_count(); ++k) {
    const char* at = v.bytes() + static_cast<size_t>(k) * width;
    double x = is_complex(t) ? std::abs(load_complex(t, at)) : std::fabs(load_double(t, at));
    most = std::max(most, std::isfinite(x) ? x : 1e300);
  }
  return most;
}

// Once a module has been changed within its precision, a second rounding may move it again: bf16 and f16 are held to
// what compare.h allows them, f32 and f64 to this.
constexpr double kTolerance = 1e-4;

TEST(RandomModules, EveryPassKeepsWhatTheyCompute) {
  int64_t count = environment("HLO_RANDOM", 3000), from = environment("HLO_RANDOM_FROM", 1);
  int64_t changed_runs = 0, runs = 0, usable = 0, again = 0;
  for (int64_t seed : seeds(from, count)) {
    if (::testing::Test::HasFailure()) break;
    std::string text =
        random_module(static_cast<uint64_t>(seed), 12 + static_cast<int>(seed % environment("HLO_RANDOM_SIZE", 20)));
    if (const char* folder = std::getenv("HLO_RANDOM_DIR")) write_file(fmt::format("{}/r{}.hlo", folder, seed), text);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    auto universe = std::make_shared<Universe>();
    std::unique_ptr<Module> original;
    ASSERT_NO_THROW(original = parse_module(text, universe, {"random", 20}));
    std::vector<VerifyError> errors = verify_module(*original);
    ASSERT_TRUE(errors.empty()) << errors[0].message;
    // What cancels is off by a share of what went into it: the largest magnitude that came up is the measure. Modules
    // that overflow are left out, since where they do is a matter of order.
    double scale = 1;
    EvalOptions watch;
    watch.trace = [&](InstId, std::span<const Value>, const Value& v) {
      scale = std::max(scale, magnitude(*universe, v));
    };
    Value expected = Evaluator(*original, watch).run(seeded_arguments(*original, 1, false));
    if (!(scale < 1e4)) continue;
    ++usable;
    auto check = [&](const Module& m, const std::string& what) {
      SCOPED_TRACE(what);
      std::vector<VerifyError> after = verify_module(m);
      ASSERT_TRUE(after.empty()) << after[0].message;
      Value got = Evaluator(m).run(seeded_arguments(m, 1, false));
      Comparison c = compare_results(*universe, expected, got, -1);
      for (OutputComparison& o : c.outputs) {
        bool off = o.tolerance > 0 ? o.nan_a != o.nan_b || o.inf_a != o.inf_b ||
                                         o.absolute > std::max(o.tolerance, kTolerance) * scale
                                   : !o.equal;
        if (off) {
          PrintOptions print = PrintOptions::Short();
          ADD_FAILURE() << o.name << " " << o.shape << ": " << o.why << "\nbehind the pass:\n"
                        << print_module(m, print);
        }
      }
    };
    for (const PassInfo& pass : all_passes()) {
      if (!pass.run || apart(pass.name)) continue;
      auto m = original->clone();
      PassContext context;
      context.keep_notes = false;
      bool changed = false;
      SCOPED_TRACE(std::string(pass.name));
      PassEvent event;
      ASSERT_NO_THROW(changed = run_pass(*m, pass, context, {.verify = false}, &event));
      ++runs;
      if (!changed) continue;
      ++changed_runs;
      check(*m, std::string(pass.name));
      if (::testing::Test::HasFailure()) break;
    }
    {  // With as little memory as there can be: all that wins a byte is computed again.
      auto m = original->clone();
      for (const char* pass : {"flatten-call-graph", seed % 2 ? "dce" : "fusion"}) {
        PassContext context;
        PassEvent event;
        run_pass(*m, *find_pass(pass), context, {.verify = false}, &event);
      }
      schedule_module(*m);
      PassContext context;
      context.options["memory"] = "1";
      PassEvent event;
      ASSERT_NO_THROW(run_pass(*m, *find_pass("rematerialization"), context, {}, &event));
      const std::string after = print_module(*m, PrintOptions::Short());
      if (after.find(".remat") != std::string::npos) ++again, check(*m, "rematerialization");
    }
    for (const char* pipeline : {"xla-2019", "xla-gpu"}) {
      auto m = original->clone();
      PipelineOptions options;
      options.keep_notes = false;
      options.disabled = {"simplify-fp-conversions"};  // see apart
      SCOPED_TRACE(pipeline);
      ASSERT_NO_THROW(run_pipeline(*m, *find_pipeline(pipeline), options));
      check(*m, pipeline);
    }
  }
  printf("%lld modules, %lld pass runs, %lld of them changed something, %lld computed something again\n",
         static_cast<long long>(usable), static_cast<long long>(runs), static_cast<long long>(changed_runs),
         static_cast<long long>(again));
  EXPECT_GT(again, usable / 10);
}

}  // namespace
// With copies in place no value lies where another one is still to be read, whether results may be made in their
// operands' places or not.
TEST(RandomModules, BuffersHoldWhatIsReadLater) {
  int64_t count = environment("HLO_RANDOM", 2000), from = environment("HLO_RANDOM_FROM", 500000);
  int64_t in_place = 0;
  for (int64_t seed : seeds(from, count)) {
    if (::testing::Test::HasFailure()) break;
    std::string text = random_module(static_cast<uint64_t>(seed), 12 + static_cast<int>(seed % 40));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    auto m = parse_module(text, std::make_shared<Universe>(), {"random", 20});
    for (const char* pass : {"flatten-call-graph", "copy-insertion"}) {
      PassContext context;
      PassEvent event;
      run_pass(*m, *find_pass(pass), context, {}, &event);
    }
    schedule_module(*m);
    BufferRules rules;
    rules.bytes = [&](ShapeId s) { return m->u()[s].is_array() ? m->u()[s].elements_count() * 8 : 0; };
    rules.in_place = [&](InstId i, size_t leaf) {
      bool able = op_info(m->op(i)).elementwise || m->op(i) == Opcode::DynamicUpdateSlice || m->op(i) == Opcode::Copy;
      return able && leaf == 0 && m->shape(i).is_array() ? 0 : -1;
    };
    std::optional<std::string> apart = overwritten_value(*m, assign_buffers(*m));
    EXPECT_FALSE(apart) << *apart;
    BufferAssignment shared = assign_buffers(*m, rules);
    std::optional<std::string> wrong = overwritten_value(*m, shared, rules);
    EXPECT_FALSE(wrong) << *wrong << "\n" << print_module(*m, {});
    for (CompId c : m->nonfusion_computations())
      for (InstId i : m->live_order(c))
        in_place += rules.in_place(i, 0) == 0 && shared.by_inst[i] == shared.by_inst[m->operand(i, 0)];
  }
  EXPECT_GT(in_place, count);
}

}  // namespace hlo
