// Every opcode over its element types on interesting values, against what XLA's CPU backend gives
// (testdata/eval/ops.jsonl, written by tests/dev/op_cases.py). A row of the opcode table without a case here or in
// evaluator_test.cc fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "gpu_exec/executor.h"
#include "parser/parser.h"
#include "passes/scope.h"
#include "replay/compare/link.h"
#include "tests/cuda_driver.h"
#include "tests/op_cases.h"

namespace hlo {
namespace {

// By opcode, in the file's order; those apart that are known to differ.
const std::map<std::string, std::vector<OpCase>>& cases_by_opcode() {
  static const auto all = [] {
    std::map<std::string, std::vector<OpCase>> out;
    std::ifstream file(HLO_TESTDATA "/eval/ops.jsonl");
    for (std::string line; std::getline(file, line);) {
      OpCase c = op_case(line);
      std::string name = c.name();
      // XLA's CPU backend takes the largest number of this type for an infinity when it converts to integers.
      if (name.starts_with("convert f4e2m1fn ") && (name[17] == 's' || name[17] == 'u')) continue;
      if (name == "popcnt s4") continue;  // it counts the copies of the sign in the byte, too
      out[c.op].push_back(std::move(c));
    }
    return out;
  }();
  return all;
}

// How an executor did: what it judged, with how many compilations, and opcodes of which it left something to the
// evaluator.
struct Tally {
  size_t cases = 0, batches = 0, alone = 0;
  std::set<std::string> covered, left;
};

// One module of all: the parameters of all, the results of all as one tuple, each case's instructions as they are. A
// single one stays what it is.
std::unique_ptr<Module> together(std::vector<LinkModule>& modules, const std::string& op) {
  if (modules.size() == 1) return std::move(modules[0].module);
  auto m = stitched(modules, {}, {}, "cases");  // each as a call
  if (op == "call") return m;                   // calls are what these try
  PassContext context;
  context.keep_notes = false;
  PassEvent event;
  run_pass(*m, *find_pass("call-inliner"), context, {}, &event);
  m->cleanup();
  return m;
}

// Throws Failure where one of them cannot run.
void run_together(const ExecutorInfo& executor, std::span<const OpCase> cases, Tally* tally) {
  auto universe = std::make_shared<Universe>();
  std::vector<LinkModule> modules;
  std::vector<Value> arguments;
  for (const OpCase& c : cases) {
    LinkModule one{c.name(), parse_module(c.text, universe, {}), {}, {}};
    const Module& m = *one.module;
    for (CompId comp : m.computations())
      for (InstId i : m.comp(comp).order) tally->covered.insert(std::string(op_text(m.op(i))));
    const auto& params = m.comp(m.entry()).params;
    for (size_t k = 0; k < params.size(); ++k) {
      Value v;
      v.shape = m.shape_id(params[k]);
      v.data = std::make_shared<std::vector<char>>(from_hex(c.inputs[k]));
      arguments.push_back(std::move(v));
    }
    modules.push_back(std::move(one));
  }
  auto m = together(modules, cases[0].op);
  std::vector<Value> outputs;
  Execution e = executor.run(*m, {arguments}, 1, {});
  if (e.notes.size() > 1) tally->left.insert(cases[0].op);
  flatten(*universe, e.results[0], &outputs);
  size_t expected = 0;
  for (const OpCase& c : cases) expected += c.outputs.size();
  if (outputs.size() != expected)
    fail(FailureKind::kInvalid, "{} outputs for {} of {} cases", outputs.size(), expected, cases.size());
  auto next = outputs.begin();
  for (const OpCase& c : cases) {
    EXPECT_EQ(result_error(*universe, c, {next, next + static_cast<ptrdiff_t>(c.outputs.size())}), "")
        << c.name() << "\n"
        << c.text;
    next += static_cast<ptrdiff_t>(c.outputs.size());
  }
  tally->cases += cases.size(), ++tally->batches;
}

// Runs every case. A compilation costs the same for one and for many, so those of an opcode go into one module, which
// tells what failed by the results; where such a module does not run, each case does alone, to say which it is.
Tally check_all(const ExecutorInfo& executor) {
  constexpr size_t kBatch = 60;
  Tally tally;
  for (const auto& [op, list] : cases_by_opcode())
    for (std::span<const OpCase> rest = list; !rest.empty();) {
      std::span<const OpCase> batch = rest.first(std::min(rest.size(), kBatch));
      rest = rest.subspan(batch.size());
      std::string together_failed;
      try {
        run_together(executor, batch, &tally);
        continue;
      } catch (const Failure& e) {
        together_failed = e.what();
      }
      size_t failed = 0;
      for (const OpCase& c : batch) try {
          run_together(executor, {&c, 1}, &tally);
          ++tally.alone;
        } catch (const Failure& e) {
          ++failed;
          ADD_FAILURE() << c.name() << ": " << e.what() << "\n" << c.text;
        }
      EXPECT_GT(failed, 0u) << op << ": each runs alone, but not " << batch.size() << " together: " << together_failed;
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
    std::ifstream in(std::string(HLO_TESTDATA) + "/../tests/evaluator_test.cc");
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
