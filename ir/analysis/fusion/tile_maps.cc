#include "ir/analysis/fusion/tile_maps.h"

#include <utility>

namespace hlo {
namespace {

using Term = TileMaps::Term;

Term whole(Term::Kind kind, int64_t size) {
  Term t;
  if (size != 1) t.kind = kind, t.count = size;
  return t;
}

}  // namespace

TileMaps::Terms TileMaps::of_result(const Shape& s) {
  Terms out;
  for (int64_t d : s.dims) out.push_back(whole(Term::kDimension, d));
  return out;
}

bool TileMaps::through(const OperandDims& how, const Shape& out, const Shape& in, const Terms& terms, Terms* of) {
  of->assign(in.dims.size(), Term());
  switch (how.kind) {
    case OperandDims::kUnknown:
      return false;
    case OperandDims::kAlike:
      *of = terms;
      return true;
    case OperandDims::kOneByOne:
      for (size_t k = 0; k < of->size(); ++k) {
        const bool summed = how.of[k] == OperandDims::kSummed;
        (*of)[k] = summed ? whole(Term::kSummed, in.dims[k]) : terms[how.of[k]];
        (*of)[k].step *= how.step[k];
      }
      return true;
    case OperandDims::kRegrouped:
      return regroup(how, out, in, terms, of);
  }
  return false;
}

bool TileMaps::regroup(const OperandDims& how, const Shape& out, const Shape& in, const Terms& terms, Terms* of) {
  for (const OperandDims::Group& g : how.groups) {
    Group from, to;
    for (size_t k = g.out; k < g.out_end; ++k)
      from.terms.push_back(terms[how.outs[k]]), from.dims.push_back(out.dims[how.outs[k]]);
    for (size_t k = g.in; k < g.in_end; ++k) to.places.push_back(how.ins[k]), to.dims.push_back(in.dims[how.ins[k]]);
    Term one;
    if (!merge(from, &one)) return false;
    if (to.dims.size() == 1)
      (*of)[to.places[0]] = one;
    else if (!split(one, to, of))
      return false;
  }
  return true;
}

// The one dimension that several make up.
bool TileMaps::merge(const Group& g, Term* one) {
  Sum s;
  for (size_t k = 0; k < g.terms.size(); ++k) append(g.terms[k], g.dims[k], &s);
  if (s.terms.size() == 1) return *one = s.terms[0], true;
  // Each goes on where the one behind it ends.
  for (size_t k = 0; k < s.terms.size(); ++k) {
    const Term& t = s.terms[k];
    if (t.kind != Term::kDimension && t.kind != Term::kSummed) return false;
    if (k > 0 && t.count * t.step != s.dims[k] * s.terms[k - 1].step) return false;
  }
  *one = {.kind = Term::kSum, .of = static_cast<uint32_t>(sums_.size())};
  sums_.push_back(std::move(s));
  return true;
}

// Sums within sums are one; parts that follow each other are one part again, all of them what was split.
void TileMaps::append(const Term& t, int64_t dim, Sum* s) {
  if (t.kind == Term::kSum && t.step == 1) {
    const Sum inner = sums_[t.of];
    for (size_t k = 0; k < inner.terms.size(); ++k) append(inner.terms[k], inner.dims[k], s);
    return;
  }
  if (t.kind == Term::kPart && t.step == 1 && !s->terms.empty()) {
    Term& last = s->terms.back();
    if (last.kind == Term::kPart && last.step == 1 && last.of == t.of && last.to == t.from) {
      last.to = t.to, last.count *= t.count;
      s->dims.back() *= dim;
      if (last.from == 0 && last.to == splits_[last.of].dims.size()) {
        const Term all = splits_[last.of].of;
        const int64_t size = s->dims.back();
        s->terms.pop_back(), s->dims.pop_back();
        append(all, size, s);
      }
      return;
    }
  }
  s->terms.push_back(t), s->dims.push_back(dim);
}

bool TileMaps::split(const Term& one, const Group& to, Terms* of) {
  if (one.kind == Term::kSummed || one.step != 1) return false;
  if (one.kind == Term::kSum) return take_apart(one, to, of);
  const auto id = static_cast<uint32_t>(splits_.size());
  splits_.push_back({one, to.dims});
  for (uint32_t k = 0; k < to.places.size(); ++k)
    (*of)[to.places[k]] = {.kind = Term::kPart, .of = id, .from = k, .to = k + 1, .count = to.dims[k]};
  return true;
}

// A sum as what made it up, where that is how it is split.
bool TileMaps::take_apart(const Term& one, const Group& to, Terms* of) {
  const Sum s = sums_[one.of];
  size_t at = 0;
  for (size_t k = 0; k < to.places.size(); ++k) {
    Group part;
    int64_t size = 1;
    while (at < s.terms.size() && size < to.dims[k]) {
      part.terms.push_back(s.terms[at]), part.dims.push_back(s.dims[at]);
      size *= s.dims[at++];
    }
    if (size != to.dims[k] || !merge(part, &(*of)[to.places[k]])) return false;
  }
  return at == s.terms.size();
}

}  // namespace hlo
