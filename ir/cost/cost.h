// What an instruction costs before it runs: operations and bytes, as XLA's cost analysis counts them
// (xla/service/hlo_cost_analysis.cc): a multiply-add is two operations, a fusion reads its parameters and writes its
// results once.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/target/data_sheet.h"

namespace hlo {

struct Cost {
  double flops = 0, transcendentals = 0;
  double bytes_read = 0, bytes_written = 0;
  double bytes_repeated = 0;  // of these: the same again, where a gather's or a scatter's indices are all the same
  bool product = false;       // matrix units can do it
  bool unknown = false;       // it calls what nobody has counted: `flops` is too small
  // The same operations by the units that can do them and by precision (indices are Arithmetic's): products, with those
  // that an algorithm like BF16_BF16_F32_X3 adds, and all others.
  std::array<double, kArithmetics> in_products{}, in_vectors{};
  double bytes() const { return bytes_read + bytes_written; }
  void add_product(double operations, Arithmetic p) {
    flops += operations, product = true, in_products[static_cast<size_t>(p)] += operations;
  }
  Cost& operator+=(const Cost& o);
  Cost& operator*=(double times);
};

// The second half of an asynchronous pair, which is counted where it began.
bool ends_pair(Opcode op);

class CostAnalysis {
 public:
  explicit CostAnalysis(const Module& m) : m_(m) {}
  // One run of it; of loops and calls all that they run, loops without a known trip count once.
  Cost of(InstId inst);
  Cost of_computation(CompId comp);
  // How often the body runs, from known_trip_count; -1 where the module does not say.
  int64_t trip_count(InstId loop) const;
  // Does it run as something of its own: a kernel, a library's call, a collective? Not parameters, tuples, bitcasts.
  static bool runs(const Module& m, InstId inst);

 private:
  Cost of_call(InstId call) const;
  // What fusions of one body have in common: all but which of their operands are the same.
  struct BodyCost {
    Cost cost;                                          // without what is read
    std::vector<std::pair<double, double>> parameters;  // bytes that are read, and of these the same again
  };
  const BodyCost& of_body(CompId body);
  Cost of_fusion(InstId fusion);
  Cost in_memory(InstId inst) const;
  Cost of_dot(InstId inst) const;
  Cost of_elements(InstId inst) const;
  Cost of_loop(InstId inst);
  Cost of_conditional(InstId inst);
  Cost of_convolution(InstId inst) const;
  Cost of_applied(InstId inst);
  Cost of_windows(InstId inst);
  Cost of_fft(InstId inst) const;
  Cost of_slice(InstId inst) const;
  void count_updates(InstId update, Cost* cost) const;
  void add_products(Cost* cost, InstId product, double operations) const;
  void add_library_products(Cost* cost, InstId call, std::string_view target) const;

  const Module& m_;
  std::unordered_map<CompId, Cost> known_;
  std::unordered_map<CompId, BodyCost> bodies_;
};

// How a card computes products of two such operands. `precision`, `algorithm`: as HLO has them (`{highest,highest}`,
// `dot_bf16_bf16_f32_x3`), or a library's configuration as JSON, in capitals. f32 may be TF32 unless they forbid it.
// `times`: products that one takes.
struct ProductForm {
  Arithmetic precision = Arithmetic::kTF32;
  double times = 1;
};
ProductForm product_form(ElementType lhs, ElementType rhs, std::string_view precision, std::string_view algorithm);
// Of a dot, a convolution or a library's call of one, by its operands, operand_precision, algorithm and configuration.
ProductForm product_form(const Module& m, InstId product);

// Seconds that the cost takes at least, and which limit that is. `known` false: a call's operations are unknown, or the
// data sheet is silent about a precision; what is known of it takes so long. `cached`: of its bytes, those that may lie
// in the cache that all multiprocessors share.
double least_seconds(const Cost& cost, const DeviceSpec& device, bool* by_memory, bool* known = nullptr,
                     double cached = 0);

}  // namespace hlo
