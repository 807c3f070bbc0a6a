#include "replay/judge/contract/other_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "replay/judge/contract/noise.h"

namespace hlo {
namespace {

using Places = std::set<std::pair<size_t, size_t>>;  // leaf, place

struct Freedom {
  std::string_view kind, words;
  bool (*concerns)(const Module& m, InstId i);
};

bool is_float_array(const Module& m, InstId i) {
  return m.shape(i).is_array() && is_float(component_type(m.shape(i).type));
}

// A product that a sum reads: one instruction of the processor gives both without rounding between them.
bool may_contract(const Module& m, InstId i) {
  const auto users = m.users(i);
  return m.op(i) == Opcode::Multiply && is_float_array(m, i) && std::any_of(users.begin(), users.end(), [&](InstId u) {
           return m.op(u) == Opcode::Add || m.op(u) == Opcode::Subtract;
         });
}

constexpr Freedom kFreedoms[] = {
    {"sum-order", "adds up in an order that HLO leaves open", adds_up},
    {"contraction", "is a product that is added to something: the two may be rounded once", may_contract},
    {"function-accuracy", "is a function of which HLO names no accuracy",
     [](const Module& m, InstId i) { return op_info(m.op(i)).transcendental && is_float_array(m, i); }},
    {"narrow-rounding", "rounds to a narrow type, which may be left out",
     [](const Module& m, InstId i) {
       return rounds(m, i) && is_float_array(m, i) && is_narrow_float(component_type(m.shape(i).type));
     }},
    {"rewritten-arithmetic", "is arithmetic that passes may write otherwise: factors in another order, a reciprocal",
     [](const Module& m, InstId i) {
       return rounds(m, i) && is_float_array(m, i) && op_info(m.op(i)).elementwise && !op_info(m.op(i)).transcendental;
     }},
};

std::vector<InstId> sites_of(const Module& m, const Freedom& f) {
  std::vector<InstId> out;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (f.concerns(m, i)) out.push_back(i);
  return out;
}

}  // namespace

std::vector<OtherBits> other_bits(const Module& m, CheckRuns& runs, const Leaves& got, const Leaves& own,
                                  const std::function<bool(size_t leaf, size_t place)>& asked) {
  std::vector<OtherBits> out;
  OtherBits nan{"nan-payload", "NaN has another sign or payload, of which HLO says nothing", 0, {}};
  OtherBits zero{"signed-zero", "zero has the other sign", 0, {}};
  Places differ;
  for (size_t l = 0; l < got.size(); ++l)
    for (size_t k = 0; k < got[l].real.size(); ++k) {
      const double g = got[l].real[k], o = own[l].real[k];
      if (!asked(l, k) || std::bit_cast<uint64_t>(g) == std::bit_cast<uint64_t>(o)) continue;
      if (std::isnan(g) && std::isnan(o))
        ++nan.elements;
      else if (g == 0 && o == 0)
        ++zero.elements;
      else
        differ.emplace(l, k);
    }
  for (OtherBits* b : {&nan, &zero})
    if (b->elements) out.push_back(*b);
  Places unexplained = differ;
  for (const Freedom& f : kFreedoms) {
    if (differ.empty()) break;
    const std::vector<InstId> sites = sites_of(m, f);
    if (sites.empty()) continue;
    const std::set<InstId> here(sites.begin(), sites.end());
    Places reached;
    for (uint32_t seed : {1, 2}) {
      const Leaves moved = runs.shaken([&](InstId i) { return here.contains(i); }, seed);
      for (const auto& [l, k] : differ)
        if (moved[l].real[k] != own[l].real[k]) reached.emplace(l, k), unexplained.erase({l, k});
    }
    if (!reached.empty()) out.push_back({f.kind, f.words, static_cast<int64_t>(reached.size()), sites});
  }
  if (!unexplained.empty())
    out.push_back({"unexplained",
                   "no rounding of the module as it is written reaches it",
                   static_cast<int64_t>(unexplained.size()),
                   {}});
  return out;
}

}  // namespace hlo
