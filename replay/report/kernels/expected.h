// What a module's call takes by experience: kernels that were measured (expected.def) foretell others of their class.
// A kernel: its launches' fixed cost, and its class's factor times what it needs at the card's full rates. Between
// them: what a launch leaves idle, or the host's own pace where that is slower, and the call itself.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/report/kernels/kernels.h"

namespace hlo {

// The card that expected.def was measured on.
inline constexpr std::string_view kExpectedCard = "H200";

// A row of expected.def: a run takes its launches · launch_us + factor · work.
struct ExpectedRow {
  std::string_view name;  // of a class, `product/cuBLAS/bf16`, or a family; of all others `kernel` and `library call`
  double launch_us = 0, factor = 1;
  double launches = 1;            // of a library's call
  int kernels = 0, programs = 0;  // that were measured
};

struct ExpectedKernel {
  InstId inst;
  std::string row;       // what its class is called, whether or not it has a row
  ExpectedRow by;        // the row that foretells it
  bool general = false;  // `by` is of its family or of all
  bool library = false;
  double calls = 0, nodes = 0;  // what the schedule launches in one run, and what of that is in graphs
  double launches = 0;          // kernels of that, in one run
  double work = 0;              // seconds of one run at the card's full rates: bytes as they are brought, operations
  double seconds = 0;           // all its runs together; 0 where `unknown`
  bool message = false;         // between devices
  bool unknown = false;         // no figure: a message, or KernelCost::known is not
};

// What an answer rests on: kernels of one row.
struct ExpectedBase {
  ExpectedRow row;
  bool general = false;
  double runs = 0, seconds = 0;
  std::vector<std::string> of;  // general: the classes that have no row
};

struct ExpectedTime {
  std::string why_not;  // there is no figure; else empty
  double seconds = 0;   // of one call: kernels + between + call
  double kernels = 0, between = 0, call = 0;
  bool host_bound = false;                      // `between` is so long because the host launches no faster
  double launches = 0, nodes = 0, graphs = 0;   // outside of graphs, in them, and graphs, in one call
  size_t unknown_calls = 0, messages = 0;       // which are not in it
  size_t branches = 0;                          // conditionals: all their branches are counted
  size_t loops_without_trip_count = 0;          // counted once
  bool scaled = false;                          // the card is not kExpectedCard
  std::vector<ExpectedKernel> list;             // as ModuleCost::kernels
  std::vector<ExpectedBase> rests_on;           // most time first
  const ExpectedKernel* of(InstId inst) const;  // null: it has no figure
};

// Of a scheduled module on an NVIDIA GPU; of anything else `why_not`. Other cards than kExpectedCard go by their own
// data sheet's rates: factors and launches are kExpectedCard's.
// `platform`: what it was compiled for (Target::platform); empty: unknown, and taken for CUDA.
ExpectedTime expected_time(const Module& m, const ModuleCost& cost, const DeviceSpec& device,
                           std::string_view platform = {});

// `expected about 2.3 ms`; empty where there is none.
std::string expected_text(const ExpectedTime& e);
// `kernels 1.9 ms, launches 20 us (7 in graphs), the call 190 us`, and what it rests on, a line each.
std::vector<std::string> expected_in_words(const ExpectedTime& e, const DeviceSpec& device);

}  // namespace hlo
