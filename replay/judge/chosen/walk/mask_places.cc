#include "replay/judge/chosen/walk/mask_places.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/eval/kernels.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

// Expressions that are looked at from one; masks of these; elements on which one side of a comparison rests.
constexpr size_t kMostLooked = 2000, kMostMasks = 8, kMostBelowMask = 200;
// Lines along each dimension, from elements drawn; a line of no more elements is looked at whole.
constexpr int kLines = 2;
constexpr int64_t kShortLine = 64;

// From an element of the array that was asked about: one view after the other.
using ViewsDown = std::vector<const Expr::View*>;

int64_t through_view(const Expr::View& v, int64_t n) {
  int64_t at = v.offset;
  for (size_t d = v.sizes.size(); d-- > 0; n /= v.sizes[d]) at += n % v.sizes[d] * v.steps[d];
  return at;
}

bool one_to_one(const Expr& x) {
  return x.kind == Expr::kOperation && op_info(x.m->op(x.inst)).elementwise && x.m->op(x.inst) != Opcode::Tuple;
}

struct IndexMask {
  ExprId left, right;
  ViewsDown way;
};

class MaskFinder {
 public:
  MaskFinder(const std::vector<Expr>& all, const Dims& dims, const MaskSearch& options, ChosenElements& elements)
      : all_(all), dims_(dims), options_(options), elements_(elements) {}

  std::vector<IndexMask> masks(ExprId e) const;
  // Along lines of that array, `count` elements in all.
  void add_places(const IndexMask& mask, int64_t count, size_t most, std::vector<int64_t>* to);

 private:
  int64_t count_of(ExprId e) const { return all_[e].m->u()[all_[e].shape].elements_count(); }
  bool by_positions(const Expr& compare) const;
  bool reaches_iota(ExprId e) const;
  bool cheap(ExprId e) const;
  void add_line(const IndexMask& mask, int64_t base, int64_t place, int64_t size, int64_t step,
                std::vector<int64_t>* to);
  // -1, 0, 1: of the left side and the right one.
  std::vector<int> signs(const IndexMask& mask, const std::vector<int64_t>& at);
  int sign(const IndexMask& mask, int64_t at) { return signs(mask, {at})[0]; }
  std::vector<double> values(ExprId e, const ViewsDown& way, const std::vector<int64_t>& at);

  const std::vector<Expr>& all_;
  const Dims& dims_;
  const MaskSearch& options_;
  ChosenElements& elements_;
};

// Of constants alone, and not of one value.
bool MaskFinder::reaches_iota(ExprId e) const {
  if (!options_.fixed(e) || count_of(e) == 1) return false;
  std::vector<ExprId> work{e};
  std::unordered_set<ExprId> seen{e};
  while (!work.empty() && seen.size() < kMostBelowMask) {
    const Expr& x = all_[work.back()];
    work.pop_back();
    if (x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Iota) return true;
    for (ExprId o : x.operands)
      if (seen.insert(o).second) work.push_back(o);
  }
  return false;
}

// One of its elements rests on a few others.
bool MaskFinder::cheap(ExprId e) const {
  std::vector<ExprId> work{e};
  std::unordered_set<ExprId> seen{e};
  while (!work.empty()) {
    const ExprId at = work.back();
    work.pop_back();
    if (options_.drawn(at)) continue;
    const Expr& x = all_[at];
    const bool leaf = x.kind == Expr::kParameter || x.operands.empty();
    if (seen.size() > kMostBelowMask || !(leaf || x.kind == Expr::kView || one_to_one(x))) return false;
    for (ExprId o : x.operands)
      if (seen.insert(o).second) work.push_back(o);
  }
  return true;
}

bool MaskFinder::by_positions(const Expr& compare) const {
  const ExprId a = compare.operands[0], b = compare.operands[1];
  return count_of(a) == count_of(b) && !is_complex(all_[a].m->u()[all_[a].shape].type) &&
         (reaches_iota(a) || reaches_iota(b)) && cheap(a) && cheap(b);
}

std::vector<IndexMask> MaskFinder::masks(ExprId e) const {
  std::vector<IndexMask> out;
  std::deque<std::pair<ExprId, ViewsDown>> work;
  std::unordered_set<ExprId> seen{e};
  work.emplace_back(e, ViewsDown());
  while (!work.empty() && seen.size() < kMostLooked && out.size() < kMostMasks) {
    const auto [at, way] = std::move(work.front());
    work.pop_front();
    if (at != e && options_.drawn(at)) continue;
    const Expr& x = all_[at];
    ViewsDown next = way;
    if (x.kind == Expr::kView)
      next.push_back(&x.view);
    else if (x.kind != Expr::kBranch && !one_to_one(x))
      continue;
    if (x.kind == Expr::kOperation && x.m->op(x.inst) == Opcode::Compare && x.operands.size() == 2 && by_positions(x))
      out.push_back({x.operands[0], x.operands[1], way});
    for (ExprId o : x.operands)
      if ((x.kind == Expr::kView || count_of(o) == count_of(at)) && seen.insert(o).second) work.emplace_back(o, next);
  }
  return out;
}

std::vector<double> MaskFinder::values(ExprId e, const ViewsDown& way, const std::vector<int64_t>& at) {
  std::vector<int64_t> there;
  for (int64_t n : at) {
    for (const Expr::View* v : way) n = through_view(*v, n);
    there.push_back(n);
  }
  const std::vector<char> bytes = elements_.at(e, there);
  const ElementType type = all_[e].m->u()[all_[e].shape].type;
  const auto width = static_cast<size_t>(storage_bytes(type));
  std::vector<double> out;
  for (size_t k = 0; k < at.size(); ++k) {
    const char* p = bytes.data() + k * width;
    out.push_back(type == ElementType::Pred ? *p != 0
                  : is_float(type)          ? load_double(type, p)
                                            : static_cast<double>(load_int(type, p)));
  }
  return out;
}

std::vector<int> MaskFinder::signs(const IndexMask& mask, const std::vector<int64_t>& at) {
  const std::vector<double> a = values(mask.left, mask.way, at), b = values(mask.right, mask.way, at);
  std::vector<int> out;
  for (size_t k = 0; k < at.size(); ++k) out.push_back((a[k] > b[k]) - (a[k] < b[k]));
  return out;
}

// `base`: of its first element; `place`: where on it the one lies from which it was drawn.
void MaskFinder::add_line(const IndexMask& mask, int64_t base, int64_t place, int64_t size, int64_t step,
                          std::vector<int64_t>* to) {
  auto add = [&](int64_t k) {
    if (k >= 0 && k < size) to->push_back(base + k * step);
  };
  if (size <= kShortLine) {
    std::vector<int64_t> line;
    for (int64_t k = 0; k < size; ++k) line.push_back(base + k * step);
    const std::vector<int> all = signs(mask, line);
    std::vector<int64_t> changes;
    for (size_t k = 1; k < all.size(); ++k)
      if (all[k] != all[k - 1]) changes.push_back(static_cast<int64_t>(k));
    if (changes.empty()) return;
    const auto near = std::min_element(changes.begin(), changes.end(),
                                       [&](int64_t x, int64_t y) { return std::abs(x - place) < std::abs(y - place); });
    for (int64_t k : {*near, changes.front()}) add(k - 1), add(k), add(k + 1);
    return;
  }
  // As what is computed from positions mostly goes up or down all along.
  const int first = sign(mask, base), last = sign(mask, base + (size - 1) * step);
  if (first == last) return;
  int64_t low = 0, high = size - 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (sign(mask, base + middle * step) == first ? low : high) = middle;
  }
  add(low), add(high), add(high + 1);
}

void MaskFinder::add_places(const IndexMask& mask, int64_t count, size_t most, std::vector<int64_t>* to) {
  // Dimensions as the array is written, and as it is read on the way to the mask.
  std::vector<Dims> systems{dims_};
  for (const Expr::View* v :
       {mask.way.empty() ? nullptr : mask.way[0], all_[mask.left].kind == Expr::kView ? &all_[mask.left].view : nullptr,
        all_[mask.right].kind == Expr::kView ? &all_[mask.right].view : nullptr}) {
    if (!v || (!mask.way.empty() && v != mask.way[0])) continue;
    int64_t n = 1;
    for (int64_t d : v->sizes) n *= d;
    if (n == count && std::find(systems.begin(), systems.end(), v->sizes) == systems.end()) systems.push_back(v->sizes);
  }
  const size_t before = to->size();
  uint64_t h = mix64(options_.seed + mask.left);
  for (int k = 0; k < kLines; ++k)
    for (const Dims& system : systems) {
      h = mix64(h + 0x9E3779B97F4A7C15ull);
      const auto from = static_cast<int64_t>(h % static_cast<uint64_t>(count));
      const Dims steps = row_major_strides(system);
      for (size_t d = system.size(); d-- > 0 && to->size() < before + most;) {
        if (system[d] == 1) continue;
        const int64_t place = from / steps[d] % system[d];
        add_line(mask, from - place * steps[d], place, system[d], steps[d], to);
      }
    }
}

}  // namespace

std::vector<int64_t> mask_places(const std::vector<Expr>& all, ExprId e, const Dims& dims, const MaskSearch& search,
                                 ChosenElements& elements) {
  std::vector<int64_t> out;
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  if (count < 2) return out;
  MaskFinder s(all, dims, search, elements);
  const std::vector<IndexMask> masks = s.masks(e);
  try {
    for (const IndexMask& mask : masks)
      s.add_places(mask, count, std::max<size_t>(search.most / masks.size(), 3), &out);
  } catch (const Failure& f) {
    if (f.kind() != FailureKind::kUnsupported) throw;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace hlo
