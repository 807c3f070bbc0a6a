#include "ir/analysis/tile_maps.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hlo {
namespace {

// What a dimension of a value is.
struct Term {
  enum Kind : uint8_t { kOne, kDimension, kSummed, kPart, kSum } kind = kOne;  // kOne: it has one element
  uint32_t of = 0;                                                             // kPart: which split; kSum: which sum
  uint32_t from = 0, to = 0;                                                   // kPart: of the split's dimensions
  int64_t count = 1, step = 1;                                                 // so many elements, so far apart
  bool operator==(const Term&) const = default;
};
using Terms = std::vector<Term>;

class TileMaps {
 public:
  explicit TileMaps(const FusionView& view) : view_(view), m_(view.module()) {}

  bool run() {
    const InstId root = view_.roots()[0];
    add(root, of_result(m_.shape(root)));
    for (size_t k = 0; k < values_.size(); ++k) {
      const InstId i = values_[k].first;
      if (!view_.contains(i)) continue;
      for (size_t n = 0; n < m_.operand_count(i); ++n) {
        const InstId o = view_.operand(i, n);
        if (!m_.shape(o).is_array()) return false;
        Terms terms(m_.shape(o).dims.size());
        if (!operand(i, n, m_.shape(o), Terms(values_[k].second), &terms)) return false;
        add(o, std::move(terms));
      }
    }
    return true;
  }

 private:
  struct Split {
    Term of;
    Dims dims;  // major first
  };
  struct Sum {
    Terms terms;  // major first
    Dims dims;    // of the dimensions that they were
  };
  // One step of a reshape: dimensions of more than one element whose products are equal, major first.
  struct Group {
    Terms terms;
    Dims dims;
    std::vector<size_t> places;  // of dimensions of the shape
  };

  void add(InstId i, Terms terms) {
    auto& known = known_[i];
    for (size_t k : known)
      if (values_[k].second == terms) return;
    known.push_back(values_.size());
    values_.emplace_back(i, std::move(terms));
  }

  static Term whole(Term::Kind kind, int64_t size) {
    Term t;
    if (size != 1) t.kind = kind, t.count = size;
    return t;
  }
  static Terms of_result(const Shape& s) {
    Terms out;
    for (int64_t d : s.dims) out.push_back(whole(Term::kDimension, d));
    return out;
  }

  bool operand(InstId i, size_t n, const Shape& in, const Terms& out, Terms* of) {
    switch (m_.op(i)) {
      case Opcode::Broadcast: {
        const Dims& map = m_.attrs(i).ints(Attr::dimensions);
        for (size_t k = 0; k < map.size(); ++k) (*of)[k] = out[static_cast<size_t>(map[k])];
        return true;
      }
      case Opcode::Transpose: {
        const Dims& p = m_.attrs(i).ints(Attr::dimensions);
        for (size_t k = 0; k < p.size(); ++k) (*of)[static_cast<size_t>(p[k])] = out[k];
        return true;
      }
      case Opcode::Reduce: {
        if (n > 0) return true;
        const Dims& gone = m_.attrs(i).ints(Attr::dimensions);
        for (size_t d = 0, k = 0; d < in.dims.size(); ++d) {
          const bool summed = std::find(gone.begin(), gone.end(), static_cast<int64_t>(d)) != gone.end();
          (*of)[d] = summed ? whole(Term::kSummed, in.dims[d]) : out[k];
          k += !summed;
        }
        return true;
      }
      case Opcode::Slice: {
        const auto* slices = m_.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
        *of = out;
        for (size_t k = 0; slices && k < of->size(); ++k) (*of)[k].step *= (*slices)[k].stride;
        return slices != nullptr;
      }
      case Opcode::Bitcast:
      case Opcode::Reshape:
        return reshape(m_.shape(i), in, out, of);
      default:
        if (out.size() == of->size()) *of = out;
        return true;
    }
  }

  static std::vector<size_t> majors(const Shape& s) {
    std::vector<size_t> out;
    const bool laid = s.has_layout && s.layout.minor_to_major.size() == s.dims.size();
    for (size_t k = s.dims.size(); k-- > 0;) {
      const size_t d = laid ? static_cast<size_t>(s.layout.minor_to_major[k]) : s.dims.size() - 1 - k;
      if (s.dims[d] != 1) out.push_back(d);
    }
    return out;
  }

  bool reshape(const Shape& out, const Shape& in, const Terms& terms, Terms* of) {
    const std::vector<size_t> a = majors(out), b = majors(in);
    for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
      if (i == a.size() || j == b.size()) return false;
      Group from, to;
      int64_t x = 1, y = 1;
      do {
        if (x <= y && i < a.size()) {
          from.terms.push_back(terms[a[i]]), from.dims.push_back(out.dims[a[i]]);
          x *= out.dims[a[i++]];
        } else if (j < b.size()) {
          to.places.push_back(b[j]), to.dims.push_back(in.dims[b[j]]);
          y *= in.dims[b[j++]];
        } else {
          return false;
        }
      } while (x != y);
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
  bool merge(const Group& g, Term* one) {
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
  void append(const Term& t, int64_t dim, Sum* s) {
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

  bool split(const Term& one, const Group& to, Terms* of) {
    if (one.kind == Term::kSummed || one.step != 1) return false;
    if (one.kind == Term::kSum) return take_apart(one, to, of);
    const auto id = static_cast<uint32_t>(splits_.size());
    splits_.push_back({one, to.dims});
    for (uint32_t k = 0; k < to.places.size(); ++k)
      (*of)[to.places[k]] = {.kind = Term::kPart, .of = id, .from = k, .to = k + 1, .count = to.dims[k]};
    return true;
  }

  // A sum as what made it up, where that is how it is split.
  bool take_apart(const Term& one, const Group& to, Terms* of) {
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

  const FusionView& view_;
  const Module& m_;
  std::vector<std::pair<InstId, Terms>> values_;  // each once for each way to it
  std::unordered_map<InstId, std::vector<size_t>> known_;
  std::vector<Split> splits_;
  std::vector<Sum> sums_;
};

}  // namespace

bool has_tile_maps(const FusionView& view) { return TileMaps(view).run(); }

}  // namespace hlo
