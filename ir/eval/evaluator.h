// The meaning of a module: an exact, slow interpreter on the CPU. Every pass is checked against it and constant folding
// uses it. Each operation rounds in the precision of its own type; sums of floats are accumulated in f64.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

struct EvalOptions {
  int64_t max_while_steps = INT64_MAX;  // over it: Failure(kUnsupported), "does not end within …"
  // Called with the value of every instruction of non-fused computations, when set.
  std::function<void(InstId, const Value&)> trace;
};

class Evaluator {
 public:
  explicit Evaluator(const Module& module, EvalOptions options = {})
      : m_(module), u_(module.u()), options_(std::move(options)) {}

  // Runs the entry. Arguments are one value a parameter, tuples as tuples. Throws Failure(kUnsupported) naming the
  // instruction it cannot run, Failure(kUsage) when arguments do not fit.
  Value run(std::span<const Value> arguments);
  Value run_computation(CompId comp, std::vector<Value> arguments);
  // One instruction from its operands' values.
  Value run_instruction(InstId inst, std::vector<Value> operands);

  // Can the opcode be run at all? The message of what is missing is empty then.
  static std::string unsupported(const Module& m, InstId inst);

 private:
  friend class Lifted;
  struct Plan {
    std::vector<InstId> order;
    std::vector<uint32_t> last_use_count;  // uses inside the computation, by position
  };
  const Plan& plan(CompId comp);
  Value make(ShapeId shape);
  // The outputs of an instruction as the one value of that shape: a tuple, or the only one.
  Value packed(ShapeId shape, std::vector<Value> outputs);
  Value elementwise(InstId inst, std::vector<Value>& ops);
  Value movement(InstId inst, std::vector<Value>& ops);
  Value bitcast(const Value& in, ShapeId to);
  Value dot(InstId inst, const Value& l, const Value& r);
  Value convolution(const AttrSet& attrs, const Value& l, const Value& r, ShapeId out);
  Value reduce(InstId inst, std::vector<Value>& ops);
  Value reduce_window(InstId inst, std::vector<Value>& ops);
  Value select_and_scatter(InstId inst, std::vector<Value>& ops);
  Value sort(InstId inst, std::vector<Value>& ops);
  Value topk(InstId inst, const Value& in);
  Value gather(InstId inst, std::vector<Value>& ops);
  Value scatter(InstId inst, std::vector<Value>& ops);
  Value batch_norm(InstId inst, std::vector<Value>& ops);
  Value custom_call(InstId inst, std::vector<Value>& ops);
  // The computation on n elements at once: parameters and results are arrays of n where it has scalars.
  std::vector<Value> lifted(CompId comp, const std::vector<Value>& arguments, int64_t n);
  [[noreturn]] void refuse(InstId inst, std::string_view why);

  const Module& m_;
  Universe& u_;
  EvalOptions options_;
  std::unordered_map<CompId, Plan> plans_;
};

// Deterministic inputs: leaf `index` of the entry's flattened parameters, drawn from `seed` (scheme of
// the oracle's inputs.py, same bits).
Value seeded_input(Universe& u, ShapeId shape, uint64_t seed, uint64_t leaf, bool positive);
std::vector<Value> seeded_arguments(const Module& m, uint64_t seed, bool positive);

}  // namespace hlo
