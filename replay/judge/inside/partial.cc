// Across the partitioner: which arrays are whole, which are tiles, and which are partial sums that a collective still
// has to add up.
#include <algorithm>
#include <cmath>

#include "replay/judge/inside/stage.h"

namespace hlo {
namespace {

enum class Holding { kNothing, kWhole, kTiles, kPartial };

// What the devices hold of an array of the stage before: by sums, which neither tiles nor the order of devices change.
Holding holding_of(Numbering& n, const Term& t, uint32_t stage_before, NumberId* whole) {
  *whole = kNoNumber;
  if (!t.is_array() || !n[t.number].known) return Holding::kNothing;
  const Number& own = n[t.number];
  if (own.stage <= stage_before) {
    *whole = t.number;
    return Holding::kWhole;
  }
  const Sketch& s = own.sketch;
  if (!s.floats || s.elements < 2) return Holding::kNothing;
  auto devices = static_cast<int64_t>(own.each.size());
  // Tiles, each on so many devices.
  for (int64_t times = 1; times <= devices; ++times) {
    if (devices % times) continue;
    double share = static_cast<double>(times);
    *whole =
        n.same_sums(s.sum / share, s.squares / share, s.magnitudes / share, s.elements * devices / times, stage_before);
    if (*whole != kNoNumber) return Holding::kTiles;
  }
  if (devices < 2) return Holding::kNothing;
  // Sums over all devices.
  std::vector<Value> each = n.values(t.number);
  std::vector<double> total(static_cast<size_t>(s.elements), 0);
  if (each[0].data->size() != total.size() * sizeof(double)) return Holding::kNothing;
  for (const Value& v : each) {
    const auto* x = reinterpret_cast<const double*>(v.bytes());
    for (size_t k = 0; k < total.size(); ++k) total[k] += x[k];
  }
  // Over groups of them: each sum is there as often as there are groups, in tiles.
  double sum = 0, squares = 0, magnitudes = 0;
  for (double x : total) sum += x, squares += x * x, magnitudes += std::fabs(x);
  *whole = n.same_sums(sum, squares, magnitudes, s.elements, stage_before);
  return *whole == kNoNumber ? Holding::kNothing : Holding::kPartial;
}

}  // namespace

std::string Inside::Comparison::partial_words(std::string_view holder, std::string_view whole,
                                              std::string_view reader) const {
  return fmt::format(
      "each of the {} devices holds a part of the sum in {}: all parts added up are {} of the stage before. {} reads "
      "it "
      "as if it were the sum: an all-reduce is missing",
      b_.devices, holder, whole, reader);
}

// Do the devices' arrays add up to the one that all had?
bool Inside::Comparison::adds_up(const Term& now, const Term& before) {
  if (!now.is_array() || !before.is_array() || !n_[now.number].known || !n_[before.number].known) return false;
  const Sketch &x = n_[now.number].sketch, &y = n_[before.number].sketch;
  if (n_[now.number].each.size() < 2 || n_[before.number].each.size() != 1 || !x.floats || x.elements != y.elements)
    return false;
  return std::fabs(x.sum - y.sum) <= 1e-9 * std::max(x.magnitudes, y.magnitudes);
}

void Inside::Comparison::describe_partial(InsideFinding* f) {
  const Module& b = b_.walked.module->m();
  std::unordered_map<NumberId, std::pair<Holding, NumberId>> known;
  auto holding = [&](const Term& t) {
    if (!t.is_array()) return std::pair{Holding::kNothing, kNoNumber};
    auto at = known.find(t.number);
    if (at == known.end()) {
      NumberId whole = kNoNumber;
      Holding h = holding_of(n_, t, n_.stage - 1, &whole);
      at = known.emplace(t.number, std::pair{h, whole}).first;
    }
    return at->second;
  };
  auto told = [&](const Term& t, std::string_view reader) {
    NumberId whole = holding(t).second;
    uint32_t maker = producer(t.number);
    InstId inst = maker == UINT32_MAX ? f->after : b_.walked.visits[maker].inst;
    f->partial = partial_words(b.inst_name(inst), name_of(a_, whole), reader);
    f->after = inst;
    auto old = made_before_.find(whole);
    if (old != made_before_.end()) f->before = a_.walked.visits[old->second].inst;
    f->difference = "partial sums";
    f->operands.clear();
    for (InstId o : b.operands(inst)) f->operands.push_back({"", std::string(b.inst_name(o)), true});
    f->region_after = {inst}, f->region_before.clear();
    if (f->before.valid()) f->region_before = {f->before};
  };
  for (const Visit& v : b_.walked.visits) {
    Role r = role_of(b, v.inst);
    if (r != Role::kOperation || op_info(b.op(v.inst)).cls == OpClass::Collective) continue;
    if (holding(v.term).first != Holding::kNothing) continue;  // linear in the parts, or sound
    for (const Term& o : v.operands)
      if (holding(o).first == Holding::kPartial) return told(o, b.inst_name(v.inst));
  }
  // Handed out as they are.
  auto leaves = [&](auto&& self, const Term& t) -> bool {
    if (t.is_array() && holding(t).first == Holding::kPartial) {
      told(t, "the result");
      return true;
    }
    if (t.elements)
      for (const Term& e : *t.elements)
        if (self(self, e)) return true;
    return false;
  };
  leaves(leaves, b_.walked.result);
}

}  // namespace hlo
