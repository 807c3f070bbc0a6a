// Cases of XLA's CPU backend as tests/dev/oracle/op_cases.py and lapack_cases.py write them, a line each: modules of
// few instructions with XLA's own results. Judged by ops_test and by `exec --self-test`.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_exec/executor.h"
#include "ir/eval/value.h"
#include "ir/types/literal.h"

namespace hlo {

inline std::vector<char> from_hex(const std::string& text) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<char> out(text.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return out;
}

// Off by at most this share of the value: rounding of the type itself, and the accuracy of XLA's own functions.
inline double tolerance(ElementType type) {
  if (type == ElementType::F64 || type == ElementType::C128) return 1e-12;
  if (type == ElementType::F32 || type == ElementType::C64) return 2e-5;
  return type == ElementType::F16 ? 2e-3 : type == ElementType::BF16 ? 1e-2 : 0;
}

// The first element that is not as it should be, in words.
inline std::string difference(const std::string& op, ElementType type, const char* got, const char* want, int64_t n) {
  int width = storage_bytes(type);
  double scale = 0, share = tolerance(type);
  // Functions and sums whose parts XLA rounds to a wider type than ours, or to the type itself after each step.
  bool rounds = op == "exponential-minus-one" || op.starts_with("batch-norm");
  if (rounds && type_bits(type) <= 16) share = type_bits(type) == 8 ? 0.13 : 1e-2;
  double all = 0;  // a transform or a factor of a matrix is as good as its largest element
  if (op == "fft" || op.find('/') != std::string::npos)
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

struct OpCase {
  std::string op, type, text;
  std::vector<std::string> inputs, outputs;  // bytes in hexadecimal
  std::string name() const { return op + " " + type; }
};

inline OpCase op_case(const std::string& line) {
  auto j = nlohmann::json::parse(line);
  return {j["op"], j["type"], j["text"], j["inputs"], j["outputs"]};
}

// What of the results is not as XLA gave it; empty where all is.
inline std::string result_error(const Universe& u, const OpCase& c, std::span<const Value> outputs) {
  std::string why;
  if (outputs.size() != c.outputs.size()) why = "number of outputs";
  for (size_t k = 0; k < outputs.size() && why.empty(); ++k) {
    std::vector<char> want = from_hex(c.outputs[k]);
    const Shape& shape = u[outputs[k].shape];
    if (want.size() != outputs[k].data->size())
      why = fmt::format("{} bytes for {}", outputs[k].data->size(), want.size());
    else
      why = difference(c.op, shape.type, outputs[k].bytes(), want.data(), shape.elements_count());
  }
  return why;
}

// All cases of such a text by opcode, in its order, but those of which XLA's CPU backend is known to differ: it takes
// the largest f4e2m1fn for an infinity when it converts to integers, and counts the copies of an s4's sign in the byte.
std::map<std::string, std::vector<OpCase>> op_cases_of(std::string_view lines);

struct OpCaseRun {
  std::vector<std::string> why;   // by case: what is not as XLA gave it, or why it did not run; empty: as XLA
  std::set<std::string> opcodes;  // that occur
  std::string note;               // of the executor: what ran where
  bool left = false;              // was something left to the evaluator?
  size_t alone = 0;               // cases that ran by themselves, as the module of all did not
  std::string together_failed;    // why it did not
};

// Runs cases of one opcode. A compilation costs the same for one and for many, so they go into one module, which tells
// what failed by the results; where such a module does not run, each case does alone.
OpCaseRun run_op_cases(const ExecutorInfo& executor, std::span<const OpCase> cases);

}  // namespace hlo
