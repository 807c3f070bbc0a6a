// Compiled kernels: testdata/kernels/*.hlo on the host's schedule, on the GPU's emulated thread by thread, and as PTX
// (on a card or the fake driver), against the evaluator; what may not be compiled is listed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "gpu_exec/devices/host.h"
#include "gpu_exec/emit/gpu_code.h"
#include "gpu_exec/executor.h"
#include "ir/eval/compare.h"
#include "ir/eval/widen.h"
#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "tests/common/cuda_driver.h"
#include "tests/common/random_module.h"

namespace hlo {
namespace {

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(HLO_TESTDATA "/kernels")) out.push_back(e.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::unique_ptr<Module> parsed(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  ParseOptions o;
  o.file = path;
  // The parser refers to the text while it works only.
  return parse_module(text.str(), std::make_shared<Universe>(), o);
}

TEST(Kernels, SameOnEveryBackend) {
  EXPECT_GE(files().size(), 3u);
  use_fake_driver_without_a_card();
  for (const std::string& path : files())
    for (const char* backend : {"host", "emulated", "cuda"})
      for (uint64_t seed : {1, 2}) {
        SCOPED_TRACE(path + " " + backend);
        auto m = parsed(path);
        std::vector<Value> arguments = seeded_arguments(*m, seed, false);
        Execution right = find_executor("evaluator")->run(*m, {arguments}, 1, {});
        Execution e = find_executor(backend)->run(*m, {arguments}, 1, {});
        Comparison c = compare_results(m->u(), e.results[0], right.results[0]);
        EXPECT_TRUE(c.equal) << (c.equal ? "" : c.first_difference()->name + ": " + c.first_difference()->why);
        EXPECT_GT(e.compiled, 3u);
        EXPECT_EQ(e.notes.size(), 1u) << e.notes.back();
      }
}

// Without the pass that makes their order a total one.
TEST(Kernels, StableSortsAsTheyAre) {
  use_fake_driver_without_a_card();
  for (const char* backend : {"emulated", "cuda"}) {
    auto m = parsed(HLO_TESTDATA "/gpu_kernels/stable_sorts.hlo");
    std::vector<Value> arguments = seeded_arguments(*m, 1, false);
    Execution right = find_executor("evaluator")->run(*m, {arguments}, 1, {});
    EvalOptions options;
    options.as_it_is = true;
    Execution e = find_executor(backend)->run(*m, {arguments}, 1, options);
    Comparison c = compare_results(m->u(), e.results[0], right.results[0]);
    EXPECT_TRUE(c.equal) << backend;
    EXPECT_EQ(e.notes.size(), 1u) << e.notes.back();
  }
}

// Where rounding makes them differ from the evaluator, what f64 gives decides.
void same_on_every_backend(const Module& m) {
  std::vector<Value> arguments = seeded_arguments(m, 1, false);
  Value right = Evaluator(m).run(arguments);
  std::unique_ptr<Module> wide = widened_module(m);
  std::vector<Value> wide_arguments;
  for (const Value& v : arguments) wide_arguments.push_back(widened_value(wide->u(), v));
  Value reference = Evaluator(*wide).run(wide_arguments);
  for (const char* backend : {"host", "emulated", "cuda"}) {
    Execution e = find_executor(backend)->run(m, {arguments}, 1, {});
    Comparison c = compare_results(m.u(), e.results[0], right, -1, &reference);
    EXPECT_TRUE(c.equal) << backend << ": "
                         << (c.equal ? "" : c.first_difference()->name + ": " + c.first_difference()->why);
  }
}

// HLO_RANDOM and HLO_RANDOM_FROM as in random_test. Seed 70228 rounds an f16 down, 70237 borrows in 64-bit code, 37 has
// a predicate moved as -1.
TEST(Kernels, RandomModulesOnEveryBackend) {
  use_fake_driver_without_a_card();
  const char *count = std::getenv("HLO_RANDOM"), *first = std::getenv("HLO_RANDOM_FROM");
  uint64_t from = first ? std::strtoull(first, nullptr, 10) : 70220;
  std::vector<uint64_t> seeds{37};
  for (uint64_t k = 0; k < (count ? std::strtoull(count, nullptr, 10) : 24); ++k) seeds.push_back(from + k);
  for (uint64_t k = 0; k < (count ? 0 : 12); ++k)
    seeds.push_back(kSmallIntegersFrom + k), seeds.push_back(kLargeFrom + k), seeds.push_back(kNestedFrom + k);
  for (uint64_t seed : seeds) {
    std::string text = random_module(seed, 12 + static_cast<int>(seed % 20));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    auto m = parse_module(text, std::make_shared<Universe>(), {"random", 20});
    same_on_every_backend(*m);
  }
}

// The shape with its arrays laid out by `orders`, a minor-to-major order a rank.
ShapeId laid_out(Universe& u, ShapeId id, const std::vector<Dims>& orders) {
  Shape s = u[id];
  if (s.is_tuple()) {
    for (ShapeId& e : s.elements) e = laid_out(u, e, orders);
    return u.shape(std::move(s));
  }
  if (!s.is_array()) return id;
  s.layout.minor_to_major = orders[s.dims.size()];
  s.has_layout = true;
  return u.shape(std::move(s));
}

// Every array of a rank lies in one order, so that what is handed on agrees; transposes, reshapes, reductions and
// windows meet all of them.
TEST(Kernels, RandomModulesInOtherLayouts) {
  use_fake_driver_without_a_card();
  const char *count = std::getenv("HLO_RANDOM"), *first = std::getenv("HLO_RANDOM_FROM");
  uint64_t from = first ? std::strtoull(first, nullptr, 10) : 9000;
  std::vector<uint64_t> seeds;
  for (uint64_t k = 0; k < (count ? std::strtoull(count, nullptr, 10) : 24); ++k) seeds.push_back(from + k);
  for (uint64_t k = 0; k < (count ? 0 : 12); ++k) seeds.push_back(kLargeFrom + 100 + k);
  for (uint64_t seed : seeds) {
    std::string text = random_module(seed, 12 + static_cast<int>(seed % 20));
    std::mt19937_64 engine(seed);
    std::vector<Dims> orders;
    for (int64_t rank = 0; rank < 12; ++rank) {
      orders.push_back(default_minor_to_major(rank));
      for (size_t k = orders.back().size(); k > 1; --k) std::swap(orders.back()[k - 1], orders.back()[engine() % k]);
    }
    auto m = parse_module(text, std::make_shared<Universe>(), {"random", 20});
    Universe& u = m->u();
    for (CompId c : m->computations())
      for (InstId i : m->live_order(c)) m->set_shape(i, laid_out(u, m->shape_id(i), orders));
    for (ShapeId& s : m->edit_config().entry_params) s = laid_out(u, s, orders);
    m->edit_config().entry_result = laid_out(u, m->edit_config().entry_result, orders);
    std::vector<VerifyError> errors = verify_module(*m, 20, Layouts::kBinding);
    ASSERT_TRUE(errors.empty()) << errors[0].message;
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print_module(*m)));
    same_on_every_backend(*m);
  }
}

TEST(Kernels, TheCallersValuesStay) {
  // In place only where nobody else holds the array.
  auto m = parsed(HLO_TESTDATA "/kernels/fusions.hlo");
  std::vector<Value> arguments = seeded_arguments(*m, 1, false), kept;
  for (const Value& v : arguments) {
    Value copy = v;
    copy.data = std::make_shared<std::vector<char>>(*v.data);
    kept.push_back(copy);
  }
  find_executor("host")->run(*m, {arguments}, 3, {});
  for (size_t k = 0; k < kept.size(); ++k) EXPECT_EQ(*kept[k].data, *arguments[k].data) << k;
}

TEST(Kernels, CodeForEveryArchitecture) {
  for (const char* sm : {"sm_75", "sm_80", "sm_90a"}) {
    auto m = parsed(HLO_TESTDATA "/kernels/reductions.hlo");
    GpuCode code = gpu_code(*m, sm);
    EXPECT_TRUE(code.without.empty());
    EXPECT_EQ(code.kernels.size(), 13u);
    EXPECT_NE(code.ptx.find(std::string(".target ") + sm), std::string::npos);
    EXPECT_NE(code.ptx.find("shfl.sync.down"), std::string::npos);
    EXPECT_NE(code.ir.find("define ptx_kernel void @r1("), std::string::npos);
    size_t rows = 0;
    for (const GpuKernelInfo& k : code.kernels) rows += k.schedule == "row reduction";
    EXPECT_EQ(rows, 4u);  // r1, r3, r5, r6; what r8 adds up is minor, too, but short
  }
  auto m = parsed(HLO_TESTDATA "/kernels/reductions.hlo");
  EXPECT_THROW(gpu_code(*m, "sm_12"), Failure);
}

TEST(Kernels, ConstantsLeftOut) {
  EXPECT_EQ(without_constants("@t = private constant [2 x i32] [i32 1, i32 2], align 4\ndefine void @f() {\n"),
            "@t = private constant [2 x i32], align 4\ndefine void @f() {\n");
}

}  // namespace
}  // namespace hlo
