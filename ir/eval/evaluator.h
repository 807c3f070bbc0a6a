// The meaning of a module: an exact, slow interpreter on the CPU. Every pass is checked against it and constant folding
// uses it. Each operation rounds in the precision of its own type; sums of floats are accumulated in f64.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

struct EvalOptions {
  int64_t max_while_steps = INT64_MAX;  // over it: Failure(kUnsupported), "does not end within …"
  // Called with the operands and the value of every instruction, when set; of device 0 only unless `trace_all`.
  // Devices run in turns, never two at a time.
  std::function<void(InstId, std::span<const Value> operands, const Value&)> trace;
  bool trace_all = false;
  // Called in the same way, on every device and before `trace`; may put another value of that shape in its place.
  std::function<void(InstId, std::span<const Value> operands, Value&)> change;
  uint64_t rng_seed = 42;  // what `rng` draws from and `GetRngSeed` gives: PJRT draws one for every run
  bool exact = false;      // no library for large products: sums in the order that this file's loops have
  // Told when an instruction of a computation that is run began and ended, in steady nanoseconds; of device 0 only.
  // Fusions that have no kernel tell of their parts, too.
  std::function<void(const Module&, InstId, int64_t begin, int64_t end)> timed;
  // Of backends that run PTX: kernels by function name whose code the caller brings, as LLVM IR or PTX.
  struct Replacement {
    bool ptx = false;
    std::string text, file;
  };
  std::map<std::string, Replacement> replaced;
  bool tf32 =
      false;  // of the CUDA executor: f32 products and convolutions in TF32, where the module does not forbid it
  bool as_it_is = false;  // of backends that compile kernels: the module's own instructions, nothing fused before
  // Asked before each instruction, when set: true ends the run with a Failure that tells where it was.
  std::function<bool()> stop;
};

class DeviceGrid;

// The lines of an array along one dimension.
struct SortLines {
  SortLines(const Shape& s, int64_t dim);
  int64_t base(int64_t line) const { return line / stride * stride * n + line % stride; }
  int64_t n, stride, lines;  // elements of a line; between them; how many
};
using SortRanks = std::vector<std::vector<int64_t>>;  // by key, the first one first: less comes before
using SortOrder = std::vector<int32_t>;               // line by line: which element comes at each place
// Of equal ranks the position decides.
SortOrder order_of(const SortLines& by, const SortRanks& ranks);
bool is_order_of(const SortLines& by, const SortRanks& ranks, const SortOrder& order);

class Evaluator {
 public:
  // `grid`: the other devices of a module that runs on several, kept by the caller; `device`: replica · partitions +
  // partition.
  explicit Evaluator(const Module& module, EvalOptions options = {}, DeviceGrid* grid = nullptr, int64_t device = 0)
      : m_(module), u_(module.u()), options_(std::move(options)), grid_(grid), device_(device) {}

  // Runs the entry. Arguments are one value a parameter, tuples as tuples. Throws Failure(kUnsupported) naming the
  // instruction it cannot run, Failure(kUsage) when arguments do not fit.
  Value run(std::vector<Value> arguments);
  Value run_computation(CompId comp, std::vector<Value> arguments);
  // One instruction from its operands' values.
  Value run_instruction(InstId inst, std::vector<Value> operands);

  // A forward convolution call of cuDNN's in two, whose result is the second's: the convolution of its first two
  // operands, an array in the types of the result; and what the call makes of that one's value (operand 0 here, its own
  // from the third on behind it).
  Value run_convolution(InstId call, std::vector<Value> operands);
  Value run_epilogue(InstId call, std::vector<Value> operands);

  // A computation on scalars, applied to n elements at once: arguments are arrays of n elements, and so is what each
  // array of its root gets.
  std::vector<Value> run_elements(CompId comp, const std::vector<Value>& arguments, int64_t n);

  // What a sort orders its operands by, where its comparator compares keys. False where it does not, or where there is
  // NaN that makes no order.
  bool sort_ranks(InstId inst, std::span<const Value> operands, SortRanks* ranks);
  // The operands of a sort in that order.
  Value sorted(InstId inst, std::span<const Value> operands, const SortOrder& order);

  // Throws as run() would, at once, where an instruction that any run reaches cannot be run whatever its operands are.
  void check();

 private:
  friend class Lifted;
  struct Plan {
    std::vector<InstId> order;
  };
  const Plan& plan(CompId comp);
  // What a loop's body computes anew in each step though it depends on nothing that changes: values of the first step,
  // and the order of the rest.
  struct Invariants {
    std::unordered_map<InstId, Value> values;  // empty values until the first step has run
    Plan rest;
  };
  // None where there is nothing to keep. Analysed once a body; `values` are of one run of the loop.
  const std::optional<Invariants>& loop_invariants(CompId body);
  std::optional<Invariants> find_invariants(CompId body);
  Value run_planned(CompId comp, std::vector<Value> arguments, const Plan& plan, Invariants* invariants);
  bool pure(InstId inst);  // gives the same for the same operands, and talks to nobody
  Value make(ShapeId shape);
  Value unset(ShapeId array);  // of which every byte is to be written
  // The outputs of an instruction as the one value of that shape: a tuple, or the only one.
  Value packed(ShapeId shape, std::vector<Value> outputs);
  Value elementwise(InstId inst, std::vector<Value>& ops);
  Value movement(InstId inst, std::vector<Value>& ops);
  Value dynamic_reshape(InstId inst, std::vector<Value>& ops);
  Value broadcast(InstId inst, std::vector<Value>& ops);
  Value transpose(InstId inst, std::vector<Value>& ops);
  Value reverse(InstId inst, std::vector<Value>& ops);
  Value slice(InstId inst, std::vector<Value>& ops);
  Value dynamic_slice(InstId inst, std::vector<Value>& ops);
  Value dynamic_update_slice(InstId inst, std::vector<Value>& ops);
  Value concatenate(InstId inst, std::vector<Value>& ops);
  Value pad(InstId inst, std::vector<Value>& ops);
  Dims clamped_starts(const std::vector<Value>& ops, size_t first, const Shape& in, const Dims& sizes) const;
  Value constant(InstId inst);
  Value iota(InstId inst);
  Value set_dimension_size(InstId inst, std::vector<Value>& ops);
  Value run_while(InstId inst, std::vector<Value>& ops);
  Value run_conditional(InstId inst, std::vector<Value>& ops);
  Value start_async(InstId inst, std::vector<Value>& ops);
  // What `run_instruction` has no case for: calls and what is asynchronous; then operations of many elements; then
  // those that are elementwise, move elements or talk to other devices. `dynamic`: sizes of an operand of dynamic
  // dimensions.
  Value called(InstId inst, std::vector<Value>& ops, const Dims& dynamic);
  Value computed(InstId inst, std::vector<Value>& ops, const Dims& dynamic);
  Value plainly_computed(InstId inst, std::vector<Value>& ops, const Dims& dynamic);
  Value bitcast(const Value& in, ShapeId to);
  Value tiled_bitcast(InstId inst, const Value& in);
  // A dot of those dimensions, in the type that its sums want, rounded to `out`'s.
  Value contract(InstId inst, const Value& l, const Value& r, const Dims& l_batch, const Dims& l_contract,
                 const Dims& r_batch, const Dims& r_contract, ShapeId out);
  Value convolution(const AttrSet& attrs, const Value& l, const Value& r, ShapeId out);
  Value reduce(InstId inst, std::vector<Value>& ops);
  Value reduced(InstId inst, std::vector<Value>& ops);
  // From the inputs' slices, one after the other, `outer` elements each; there are `inner`.
  Value reduce_slices(InstId inst, const std::vector<Value>& ops, const std::vector<std::vector<char>>& slices,
                      int64_t outer, int64_t inner);
  Value reduce_window(InstId inst, std::vector<Value>& ops);
  Value select_and_scatter(InstId inst, std::vector<Value>& ops);
  bool mirrored(InstId x, InstId y, int64_t number[2], int& budget) const;
  struct SortKey {
    InstId value;  // of the first side, in the comparator
    bool less = true, total_order = false;
  };
  bool ranks_of_key(CompId comparator, std::span<const Value> ops, const SortKey& key, int64_t* to);
  bool one_by_one(InstId x, InstId y) const;
  bool same_expression(InstId x, InstId y, int& budget) const;
  bool sort_keys(InstId root, std::vector<SortKey>& keys) const;
  Value merged(InstId inst, std::vector<Value>& ops);
  Value sort(InstId inst, std::vector<Value>& ops);
  Value topk(InstId inst, const Value& in, int64_t k, bool largest);
  Value gather(InstId inst, std::vector<Value>& ops);
  Value scatter(InstId inst, std::vector<Value>& ops);
  struct Combining;
  void combine(Combining& c, int64_t to, int64_t from);  // elements of the results and of the updates
  Value batch_norm(InstId inst, std::vector<Value>& ops);
  // What the forward convolution's input and kernel get of its output's gradient (cuDNN's calls).
  Value convolution_backward_input(const AttrSet& attrs, const Value& gradient, const Value& kernel, ShapeId out);
  Value convolution_backward_filter(const AttrSet& attrs, const Value& input, const Value& gradient, ShapeId out);
  Value custom_call(InstId inst, std::vector<Value>& ops);
  bool matrix_call(InstId inst, const std::vector<Value>& ops, Value* out);  // was it one?
  Value library_gemm(InstId inst, std::vector<Value>& ops);
  Value library_topk(InstId inst, const Value& in);
  Value library_cholesky(InstId inst, const Value& in);
  Value library_triangular_solve(InstId inst, const std::vector<Value>& ops);
  Value library_layer_norm(InstId inst, const std::vector<Value>& ops);
  Value library_convolution(InstId inst, std::string_view kind, std::vector<Value>& ops);
  Value library_norm(InstId inst, std::vector<Value>& ops);
  Value library_attention(InstId inst, std::vector<Value>& ops);
  Value library_attention_backward(InstId inst, std::vector<Value>& ops);
  Value library_scaled_gemm(InstId inst, std::vector<Value>& ops);
  Value library_grouped_gemm(InstId inst, std::vector<Value>& ops);
  Value library_scan(InstId inst, std::vector<Value>& ops);
  Value library_sort(InstId inst, std::vector<Value>& ops);
  Value rng_bit_generator(InstId inst, const Value& state);
  Value threefry_pairs(InstId inst, const std::vector<Value>& ops);
  Value rng(InstId inst, std::vector<Value>& ops);
  Value rng_state(InstId inst);
  Value fft(InstId inst, const Value& in);
  Value cholesky_factor(const Value& in, bool lower, ShapeId out);
  struct Triangle {
    bool left, lower, unit;
    std::string_view transposed;
  };
  Value triangular_solve(const Triangle& t, const Value& a, const Value& b, ShapeId out);
  Value ragged_dot(InstId inst, std::vector<Value>& ops);
  struct RaggedNumbers {
    Dims l_batch, l_contract, r_batch, r_contract, ragged, group;
  };
  Value ragged_product(InstId inst, const std::vector<Value>& ops, const RaggedNumbers& numbers, ShapeId out);
  Value scaled_dot(InstId inst, std::vector<Value>& ops);
  // [lhs, rhs, scales of blocks of lhs, of rhs].
  Value scaled_product(InstId inst, const std::vector<Value>& ops, const Dims& l_batch, const Dims& l_contract,
                       const Dims& r_batch, const Dims& r_contract, ShapeId out);
  Value scan(InstId inst, std::vector<Value>& ops);
  Value regrouped_bits(const Value& in, ShapeId shape);
  Value stochastic_convert(InstId inst, std::vector<Value>& ops);
  // The computation on n elements at once: parameters and results are arrays of n where it has scalars.
  // `result`: the instruction whose values are wanted, the root when invalid.
  std::vector<Value> lifted(CompId comp, const std::vector<Value>& arguments, int64_t n, InstId result = InstId());
  [[noreturn]] void refuse(InstId inst, std::string_view why);
  int64_t replicas() const;
  int64_t partitions() const;
  std::vector<int64_t> members(InstId inst);
  // What each of the members brought to this instruction.
  std::vector<std::vector<Value>> rendezvous(InstId inst, const std::vector<int64_t>& members, std::vector<Value> ops);
  Value collective(InstId inst, std::vector<Value>& ops);
  struct Exchange;
  std::vector<Value> reduced_across(InstId inst, const Exchange& x);
  std::vector<Value> gathered(InstId inst, const Exchange& x);
  std::vector<Value> dealt_out(InstId inst, const Exchange& x);
  Value permuted(InstId inst, std::vector<Value>& ops);
  Value ragged_all_to_all(InstId inst, const std::vector<std::vector<Value>>& all, const std::vector<int64_t>& members);
  Value send_or_receive(InstId inst, std::vector<Value>& ops);
  void check_transfer(InstId inst);  // between devices?
  void check_target(InstId inst);    // a custom-call that is known, of shapes that it takes?
  void check_sizes();

  const Module& m_;
  Universe& u_;
  EvalOptions options_;
  DeviceGrid* grid_;
  int64_t device_;
  std::unordered_map<InstId, uint64_t> rng_calls_;
  uint64_t rng_counter_[2] = {0x7012395, 0};
  std::unordered_map<CompId, Plan> plans_;
  std::unordered_map<CompId, bool> pure_;
  std::unordered_map<CompId, std::optional<Invariants>> invariants_;
};

// Is a custom-call of that target a mark for a pass, which changes no value?
bool is_mark(std::string_view target);

// Each simulated device is a thread with values of its own.
constexpr int64_t kMostDevices = 1024;

// Throws Failure(kUnsupported), before inputs are made, where Evaluator::check does.
void check_supported(const Module& m);

// Replicas times partitions of the header, at least one; INT64_MAX where that overflows.
int64_t device_count(const Module& m);
// How many devices it takes to run a module: all replicas and partitions of its header where anything in it asks who it
// is or talks to others, else one.
int64_t devices_needed(const Module& m);

// All replicas and partitions that the header tells, each with its own arguments; their results. Throws as
// Evaluator::run does, and Failure(kInvalid) where devices wait for each other in vain.
std::vector<Value> run_devices(const Module& m, std::vector<std::vector<Value>> arguments, const EvalOptions& options);

// Deterministic inputs: leaf `index` of the entry's flattened parameters, drawn from `seed` (scheme of
// the oracle's inputs.py, same bits).
Value seeded_input(Universe& u, ShapeId shape, uint64_t seed, uint64_t leaf, bool positive);
std::vector<Value> seeded_arguments(const Module& m, uint64_t seed, bool positive);

}  // namespace hlo
