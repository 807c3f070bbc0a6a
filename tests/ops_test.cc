// Every opcode over its element types on interesting values, against what XLA's CPU backend gives
// (testdata/eval/ops.jsonl, written by tests/dev/op_cases.py). A row of the opcode table without a case here or in
// evaluator_test.cc fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "gpu_exec/executor.h"
#include "parser/parser.h"
#include "tests/cuda_driver.h"

namespace hlo {
namespace {

std::vector<char> from_hex(const std::string& text) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<char> out(text.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return out;
}

// Off by at most this share of the value: rounding of the type itself, and the accuracy of XLA's own functions.
double tolerance(ElementType type) {
  if (type == ElementType::F64 || type == ElementType::C128) return 1e-12;
  if (type == ElementType::F32 || type == ElementType::C64) return 2e-5;
  return type == ElementType::F16 ? 2e-3 : type == ElementType::BF16 ? 1e-2 : 0;
}

// The first element that is not as it should be, in words.
std::string difference(const std::string& op, ElementType type, const char* got, const char* want, int64_t n) {
  int width = storage_bytes(type);
  double scale = 0, share = tolerance(type);
  // Functions and sums whose parts XLA rounds to a wider type than ours, or to the type itself after each step.
  bool rounds = op == "exponential-minus-one" || op.starts_with("batch-norm");
  if (rounds && type_bits(type) <= 16) share = type_bits(type) == 8 ? 0.13 : 1e-2;
  double all = 0;  // a transform is as good as its largest element
  if (op == "fft")
    for (int64_t i = 0; i < n; ++i)
      all = std::max(all, is_complex(type) ? std::abs(load_complex(type, want + i * width))
                                           : std::fabs(load_double(type, want + i * width)));
  for (int64_t i = 0; i < n; ++i) {
    const char *p = got + i * width, *q = want + i * width;
    std::string x, y;
    append_element(x, type, p), append_element(y, type, q);
    if (!is_float(type) && !is_complex(type)) {
      if (load_int(type, p) != load_int(type, q)) return fmt::format("[{}]: {} for {}", i, x, y);
      continue;
    }
    double parts[2][2];
    std::complex<double> v = is_complex(type) ? load_complex(type, p) : load_double(type, p),
                         w = is_complex(type) ? load_complex(type, q) : load_double(type, q);
    parts[0][0] = v.real(), parts[0][1] = v.imag(), parts[1][0] = w.real(), parts[1][1] = w.imag();
    // Parts of a complex number are as good as the larger one.
    scale = std::max({std::fabs(w.real()), std::fabs(w.imag()), all});
    for (int k = 0; k < 2; ++k) {
      double a = parts[0][k], b = parts[1][k];
      if (std::isnan(a) && std::isnan(b)) continue;
      // XLA's CPU code takes denormals for zeros.
      double least = type == ElementType::F64 || type == ElementType::C128 ? 2.3e-308 : 1.2e-38;
      if (a == b || (std::fabs(a) <= least && std::fabs(b) <= least)) continue;
      double allowed = share * (std::isfinite(scale) ? std::max(scale, 1e-3) : std::fabs(b));
      if (!(std::fabs(a - b) <= allowed)) return fmt::format("[{}]: {} for {}", i, x, y);
    }
  }
  return {};
}

// Runs every case; opcodes that came up, and of which cases a part was left to the evaluator.
std::set<std::string> check_all(const ExecutorInfo& executor, std::set<std::string>* left) {
  std::ifstream file(HLO_TESTDATA "/eval/ops.jsonl");
  EXPECT_TRUE(file.good());
  std::set<std::string> covered;
  size_t cases = 0;
  for (std::string line; std::getline(file, line);) {
    auto c = nlohmann::json::parse(line);
    std::string name = fmt::format("{} {}", c["op"].get<std::string>(), c["type"].get<std::string>());
    ++cases;
    // XLA's CPU backend takes the largest number of this type for an infinity when it converts to integers.
    if (name.starts_with("convert f4e2m1fn ") && (name[17] == 's' || name[17] == 'u')) continue;
    if (name == "popcnt s4") continue;  // it counts the copies of the sign in the byte, too
    try {
      auto m = parse_module(c["text"].get<std::string>(), std::make_shared<Universe>(), {});
      for (CompId comp : m->computations())
        for (InstId i : m->comp(comp).order) covered.insert(std::string(op_text(m->op(i))));
      Universe& u = m->u();
      std::vector<Value> arguments;
      const auto& params = m->comp(m->entry()).params;
      for (size_t k = 0; k < params.size(); ++k) {
        Value v;
        v.shape = m->shape_id(params[k]);
        v.data = std::make_shared<std::vector<char>>(from_hex(c["inputs"][k].get<std::string>()));
        arguments.push_back(std::move(v));
      }
      std::vector<Value> outputs;
      Execution e = executor.run(*m, {arguments}, 1, {});
      if (e.notes.size() > 1) left->insert(c["op"].get<std::string>());
      flatten(u, e.results[0], &outputs);
      std::string why;
      if (outputs.size() != c["outputs"].size()) why = "number of outputs";
      for (size_t k = 0; k < outputs.size() && why.empty(); ++k) {
        std::vector<char> want = from_hex(c["outputs"][k].get<std::string>());
        if (want.size() != outputs[k].data->size())
          why = fmt::format("{} bytes for {}", outputs[k].data->size(), want.size());
        else
          why = difference(c["op"].get<std::string>(), u[outputs[k].shape].type, outputs[k].bytes(), want.data(),
                           u[outputs[k].shape].elements_count());
      }
      if (!why.empty()) {
        ADD_FAILURE() << name << ": " << why << "\n" << c["text"].get<std::string>();
      }
    } catch (const Failure& e) {
      ADD_FAILURE() << name << ": " << e.what();
    }
  }
  EXPECT_GT(cases, 3000u);
  return covered;
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
  Names left, expected = kNeverCompiled;
  check_all(*find_executor("host"), &left);
  expected.insert({"cholesky", "convolution", "rng-bit-generator", "scatter", "sort", "topk", "triangular-solve"});
  EXPECT_EQ(left, expected);
}

TEST(Ops, EmulatedGpuAsXla) {
  Names left;
  check_all(*find_executor("emulated"), &left);
  EXPECT_EQ(left, kNeverCompiled);
}

// The PTX on a card where there is one, else on the interpreter of the fake driver.
TEST(Ops, CudaAsXla) {
  use_fake_driver_without_a_card();
  Names left;
  check_all(*find_executor("cuda"), &left);
  EXPECT_EQ(left, kNeverCompiled);
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
  Names left, covered = check_all(*find_executor("evaluator"), &left);
  EXPECT_TRUE(left.empty());
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
