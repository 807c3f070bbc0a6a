// Every opcode over its element types on interesting values, against what XLA's CPU backend gives
// (testdata/eval/ops.jsonl, written by tests/dev/oracle/op_cases.py). A row of the opcode table without a case here or
// in evaluator_test.cc fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "gpu_exec/executor.h"
#include "replay/judge/op_cases.h"
#include "tests/common/cuda_driver.h"

namespace hlo {
namespace {

// By opcode, in the file's order; those apart that are known to differ.
const std::map<std::string, std::vector<OpCase>>& cases_by_opcode() {
  static const auto all = [] {
    std::ifstream file(HLO_TESTDATA "/eval/ops.jsonl");
    return op_cases_of(std::string(std::istreambuf_iterator<char>(file), {}));
  }();
  return all;
}

// How an executor did: what it judged, with how many compilations, and opcodes of which it left something to the
// evaluator.
struct Tally {
  size_t cases = 0, batches = 0, alone = 0;
  std::set<std::string> covered, left;
};

Tally check_all(const ExecutorInfo& executor) {
  constexpr size_t kBatch = 60;
  Tally tally;
  for (const auto& [op, list] : cases_by_opcode())
    for (std::span<const OpCase> rest = list; !rest.empty();) {
      std::span<const OpCase> batch = rest.first(std::min(rest.size(), kBatch));
      rest = rest.subspan(batch.size());
      OpCaseRun run = run_op_cases(executor, batch);
      size_t failed = 0;
      for (size_t k = 0; k < batch.size(); ++k) {
        EXPECT_EQ(run.why[k], "") << batch[k].name() << "\n" << batch[k].text;
        failed += !run.why[k].empty();
      }
      if (!run.together_failed.empty()) {
        EXPECT_GT(failed, 0u) << op << ": each runs alone, but not " << batch.size()
                              << " together: " << run.together_failed;
      }
      if (run.left) tally.left.insert(op);
      tally.covered.merge(run.opcodes);
      tally.cases += batch.size(), tally.alone += run.alone;
      tally.batches += run.together_failed.empty() ? 1 : run.alone;
    }
  EXPECT_GE(tally.cases, 3691u);
  fmt::print("{}: {} cases in {} modules, {} of them alone\n", executor.name, tally.cases, tally.batches, tally.alone);
  return tally;
}

using Names = std::set<std::string>;

// What no executor has code for: batch norms of 16 bits (in steps they would round after each), transforms, what asks
// who one is or how large a value, and what goes to another device.
const Names kNeverCompiled{
    "batch-norm-grad",    "batch-norm-inference", "batch-norm-training", "collective-permute", "fft",
    "get-dimension-size", "partition-id",         "replica-id"};

// Here the evaluator's own code is as good as kernels: sorts, scatters, decompositions, random bits, and convolutions
// that oneDNN does not take.
TEST(Ops, HostAsXla) {
  Names expected = kNeverCompiled;
  expected.insert({"cholesky", "convolution", "rng-bit-generator", "scatter", "sort", "topk", "triangular-solve"});
  EXPECT_EQ(check_all(*find_executor("host")).left, expected);
}

TEST(Ops, EmulatedGpuAsXla) { EXPECT_EQ(check_all(*find_executor("emulated")).left, kNeverCompiled); }

// The PTX on a card where there is one, else on the interpreter of the fake driver.
TEST(Ops, CudaAsXla) {
  use_fake_driver_without_a_card();
  EXPECT_EQ(check_all(*find_executor("cuda")).left, kNeverCompiled);
}

// Is there a module with that opcode in evaluator_test.cc? (The bundle for a card carries no sources.)
bool occurs_by_hand(const std::string& op) {
  static const std::string tests = [] {
    std::ifstream in(HLO_TESTDATA "/../tests/ir/evaluator_test.cc");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  if (tests.empty()) return std::string(HLO_TESTDATA) == "testdata";
  for (size_t at = tests.find(op + "("); at != std::string::npos; at = tests.find(op + "(", at + 1))
    if (at && (tests[at - 1] == ' ' || tests[at - 1] == '"')) return true;
  return false;
}

TEST(Ops, AsXla) {
  Tally tally = check_all(*find_executor("evaluator"));
  EXPECT_TRUE(tally.left.empty());
  Names covered = tally.covered;
  // By hand in evaluator_test.cc: what XLA's CPU backend does not take, or what needs several devices.
  for (const char* op : {"acos",
                         "acosh",
                         "asin",
                         "asinh",
                         "atanh",
                         "cosh",
                         "sinh",
                         "mulhi",
                         "bitcast",
                         "fusion",
                         "async-start",
                         "async-update",
                         "async-done",
                         "copy-start",
                         "copy-done",
                         "custom-call",
                         "collective-broadcast",
                         "collective-permute-start",
                         "collective-permute-done",
                         "all-gather-start",
                         "all-gather-done",
                         "all-reduce-start",
                         "all-reduce-done",
                         "ragged-all-to-all",
                         "ragged-dot",
                         "scaled-dot",
                         "scan",
                         "send",
                         "send-done",
                         "recv",
                         "recv-done",
                         "rng",
                         "rng-get-and-update-state",
                         "domain",
                         "infeed",
                         "outfeed",
                         "set-dimension-size",
                         "dynamic-reshape"}) {
    covered.insert(op);
    EXPECT_TRUE(occurs_by_hand(op)) << op << " does not occur in evaluator_test.cc";
  }
  for (int op = 0; op < kOpcodeCount; ++op)
    EXPECT_TRUE(covered.contains(std::string(op_text(static_cast<Opcode>(op))))) << op_text(static_cast<Opcode>(op));
}

}  // namespace
}  // namespace hlo
