// What the commands share.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "replay/cli/input.h"

namespace CLI {
class App;
}

namespace hlo {

using Json = nlohmann::ordered_json;

// Exit codes: yes, equal, fine; no, different; usage, unsupported, unreadable.
constexpr int kYes = 0, kNo = 1, kBad = 2;

void print_json(const Json& j);

// A module that the verifier has passed (or `verify` is false); otherwise Failure(kInvalid) with its errors.
std::unique_ptr<Module> load_verified(const std::string& spec, bool verify, Loaded* rest = nullptr,
                                      const LoadOptions& options = {});

// exec and compare.
struct ExecArgs {
  std::string file, backend = "evaluator", scheme = "mixed", inputs, out, precision = "own", compare_with, trace,
                    fill_elided, like;
  uint64_t seed = 1;
  int repeat = 1;
  int64_t max_steps = INT64_MAX;
  double tolerance = -1;
  bool json = false, no_verify = false, nan = false, fit = false, unique_keys = false, all_stages = false,
       exact = false, force = false;
};
int cmd_exec(const ExecArgs& a);

struct CompareArgs {
  std::string a, b, reference, module;
  double tolerance = -1;
  bool json = false;
};
int cmd_compare(const CompareArgs& a);

}  // namespace hlo
