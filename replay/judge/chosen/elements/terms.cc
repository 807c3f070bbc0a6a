#include "replay/judge/chosen/elements/terms.h"

#include <algorithm>
#include <cstdlib>

#include "ir/eval/kernels.h"

namespace hlo {
namespace {

using Part = Terms::Part;

bool repeats(const Part& p) {
  return std::all_of(p.steps.begin(), p.steps.end(), [](int64_t s) { return s == 0; });
}

// Of parts that are taken together no order counts, nor from which end each is gone through.
void turn_forwards(Terms* t) {
  for (Part& p : t->over) {
    auto first = std::find_if(p.steps.begin(), p.steps.end(), [](int64_t s) { return s != 0; });
    if (first == p.steps.end() || *first > 0) continue;
    for (size_t f = 0; f < p.steps.size(); ++f) {
      t->factors[f].offset += (p.size - 1) * p.steps[f];
      p.steps[f] = -p.steps[f];
    }
  }
}

bool runs_on(const Part& outer, const Part& inner) {
  for (size_t f = 0; f < outer.steps.size(); ++f)
    if (outer.steps[f] != inner.steps[f] * inner.size) return false;
  return true;
}

void join(std::vector<Part>* parts) {
  for (bool found = true; found;) {
    found = false;
    for (size_t a = 0; a < parts->size() && !found; ++a)
      for (size_t b = 0; b < parts->size() && !found; ++b) {
        if (a == b || !runs_on((*parts)[a], (*parts)[b])) continue;
        (*parts)[a] = {(*parts)[a].size * (*parts)[b].size, (*parts)[b].steps};
        parts->erase(parts->begin() + static_cast<ptrdiff_t>(b));
        found = true;
      }
  }
}

}  // namespace

void Terms::swap_factors(size_t a, size_t b) {
  std::swap(factors[a], factors[b]);
  for (std::vector<Part>* parts : {&kept, &over})
    for (Part& p : *parts) std::swap(p.steps[a], p.steps[b]);
}

void Terms::tidy() {
  for (size_t a = 0; a < factors.size(); ++a)
    for (size_t b = a + 1; b < factors.size(); ++b)
      if (std::pair(factors[b].of, factors[b].offset) < std::pair(factors[a].of, factors[a].offset)) swap_factors(a, b);
  turn_forwards(this);
  const bool once = by != Opcode::Add && by != Opcode::Multiply && by != Opcode::Xor;
  std::erase_if(over, [&](const Part& p) { return p.size == 1 || (once && repeats(p)); });
  std::erase_if(kept, [](const Part& p) { return p.size == 1; });
  join(&over);
  std::sort(over.begin(), over.end(),
            [](const Part& a, const Part& b) { return a.steps != b.steps ? a.steps > b.steps : a.size > b.size; });
}

Expr::View Terms::put_in_order(const std::vector<size_t>& first) {
  std::vector<size_t> places;
  for (size_t k = 0; k < kept.size(); ++k)
    if (!repeats(kept[k])) places.push_back(k);
  auto magnitude = [&](size_t k) {
    Dims out;
    for (size_t f = 0; f < factors.size(); ++f) out.push_back(std::abs(kept[k].steps[first.empty() ? f : first[f]]));
    return out;
  };
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return magnitude(a) > magnitude(b); });
  Expr::View order;
  for (const Part& p : kept) order.sizes.push_back(p.size), order.steps.push_back(0);
  std::vector<Part> sorted;
  int64_t step = 1;
  for (size_t k = places.size(); k-- > 0;) order.steps[places[k]] = step, step *= kept[places[k]].size;
  for (size_t k : places) sorted.push_back(kept[k]);
  kept = std::move(sorted);
  return order;
}

FactorMove::FactorMove(Dims sizes, Dims steps, int64_t offset)
    : sizes_(std::move(sizes)),
      steps_(std::move(steps)),
      strides_(row_major_strides(sizes_)),
      first_(sizes_.size()),
      reach_(sizes_.size()),
      offset_(offset),
      pads_(sizes_.size()) {}

void FactorMove::pad(size_t d, int64_t low, int64_t every, int64_t count, bool neutral) {
  pads_[d] = {low, every, count, neutral};
}

// A part as pieces within one dimension each, the outermost first.
bool FactorMove::split(int64_t size, int64_t step, size_t part, std::vector<Piece>* to) const {
  std::vector<Piece> inner_first;
  int64_t inner = 1;
  if (step == 0) inner_first.push_back({part, SIZE_MAX, size, 0, 1}), size = 1;
  while (size > 1) {
    size_t d = sizes_.size();
    while (d-- > 0)
      if (sizes_[d] > 1 && step >= strides_[d] && step < strides_[d] * sizes_[d]) break;
    if (d >= sizes_.size() || step % strides_[d]) return false;
    const int64_t each = step / strides_[d];
    int64_t here = size;
    if ((size - 1) * each >= sizes_[d]) {
      here = sizes_[d] / each;
      if (sizes_[d] % each || here < 2 || size % here) return false;
    }
    inner_first.push_back({part, d, here, each, inner});
    inner *= here, size /= here, step = strides_[d] * sizes_[d];
  }
  to->insert(to->end(), inner_first.rbegin(), inner_first.rend());
  return true;
}

// Where the first term lies in each dimension, and how far the parts reach.
bool FactorMove::place(const Terms& t, std::vector<Piece> (*pieces)[2]) {
  for (int over = 0; over < 2; ++over)
    for (const Piece& p : (*pieces)[over])
      if (p.d != SIZE_MAX) reach_[p.d] += (p.size - 1) * p.each;
  for (size_t d = 0; d < sizes_.size(); ++d)
    if (first_[d] + reach_[d] >= sizes_[d]) return false;
  return !t.factors.empty();
}

// Padding that is taken together goes, padding that is not reached is left behind; any other counts.
bool FactorMove::trim(size_t factor, std::vector<Piece> (*pieces)[2], Terms* out) {
  for (size_t d = 0; d < sizes_.size(); ++d) {
    const Pad& pad = pads_[d];
    if (!pad.count) continue;
    const int64_t last = pad.low + (pad.count - 1) * pad.every;
    if (pad.every == 1 && first_[d] >= pad.low && first_[d] + reach_[d] <= last) {
      first_[d] -= pad.low;
      continue;
    }
    if (!pad.neutral) return false;
    Piece* whole = nullptr;
    size_t found = 0;
    for (int over = 0; over < 2; ++over)
      for (Piece& p : (*pieces)[over])
        if (p.d == d) ++found, whole = over ? &p : nullptr;
    if (found != 1 || !whole || whole->each != 1 || first_[d] > pad.low || first_[d] + reach_[d] < last) return false;
    Part& part = out->over[whole->part];
    if (whole->inner != 1 || whole->size != part.size) return false;
    for (size_t f = 0; f < part.steps.size(); ++f)
      if (f != factor) {
        out->factors[f].offset += (pad.low - first_[d]) * part.steps[f];
        part.steps[f] *= pad.every;
      }
    part.size = whole->size = pad.count, first_[d] = 0;
  }
  return true;
}

bool FactorMove::apply(Terms* t, size_t factor, ExprId operand) {
  int64_t left = t->factors[factor].offset;
  if (left < 0) return false;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    first_[d] = left / strides_[d], left %= strides_[d];
    reach_[d] = 0;
  }
  std::vector<Piece> pieces[2];
  const std::vector<Part>* from[2] = {&t->kept, &t->over};
  for (int over = 0; over < 2; ++over)
    for (size_t k = 0; k < from[over]->size(); ++k)
      if (const Part& p = (*from[over])[k]; p.size > 1 && !split(p.size, p.steps[factor], k, &pieces[over]))
        return false;
  Terms out = *t;
  if (!place(*t, &pieces) || !trim(factor, &pieces, &out)) return false;
  int64_t offset = offset_;
  for (size_t d = 0; d < sizes_.size(); ++d) offset += first_[d] * steps_[d];
  std::vector<Part>* to[2] = {&out.kept, &out.over};
  for (int over = 0; over < 2; ++over) {
    std::vector<Part> made;
    for (const Piece& p : pieces[over]) {
      Part part{p.size, (*to[over])[p.part].steps};
      for (int64_t& s : part.steps) s *= p.inner;
      part.steps[factor] = p.d == SIZE_MAX ? 0 : p.each * steps_[p.d];
      made.push_back(std::move(part));
    }
    *to[over] = std::move(made);
  }
  out.factors[factor] = {operand, offset};
  *t = std::move(out);
  return true;
}

}  // namespace hlo
