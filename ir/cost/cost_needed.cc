#include "ir/cost/cost_needed.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace hlo {
namespace {

constexpr int64_t kLongest =
    1 << 16;  // of a dimension of which a part is needed; of longer ones parts are counted alone
constexpr size_t kBoxes = 16;

// Which indices along one dimension.
struct Along {
  int64_t size = 0;
  std::vector<bool> some;  // empty: all of them
  bool operator==(const Along&) const = default;
  bool all() const { return some.empty(); }
  bool has(int64_t k) const { return all() || some[static_cast<size_t>(k)]; }
  double count() const { return static_cast<double>(all() ? size : std::count(some.begin(), some.end(), true)); }
  void tidy() {
    if (!all() && std::count(some.begin(), some.end(), false) == 0) some.clear();
  }
};
// All elements that have one of these indices in each dimension.
using Box = std::vector<Along>;

double count_of(const Box& b) {
  double n = 1;
  for (const Along& d : b) n *= d.count();
  return n;
}

Box whole_box(const Dims& dims) {
  Box out;
  for (int64_t d : dims) out.push_back({std::max<int64_t>(d, 0), {}});
  return out;
}

bool covers(const Along& x, const Along& y) {
  for (size_t k = 0; !x.all() && k < x.some.size(); ++k)
    if (!x.some[k] && y.has(static_cast<int64_t>(k))) return false;
  return true;
}
bool apart(const Along& x, const Along& y) {
  if (x.all() || y.all()) return false;
  for (size_t k = 0; k < x.some.size(); ++k)
    if (x.some[k] && y.some[k]) return false;
  return true;
}

// Elements that are needed: boxes that have none in common, and how many there are at least where places are not known.
struct Needed {
  std::vector<Box> boxes;
  double at_least = 0;

  double count() const {
    double n = 0;
    for (const Box& b : boxes) n += count_of(b);
    return std::max(n, at_least);
  }
  void add(const Needed& more) {
    for (const Box& b : more.boxes) add(b);
    at_least = std::max(at_least, more.at_least);
  }
  // Where two boxes meet otherwise than along one dimension the larger one is kept: no less is needed.
  void add(Box b) {
    if (count_of(b) <= 0) return;
    std::vector<size_t> meet;
    for (size_t k = 0; k < boxes.size(); ++k) {
      size_t differ = 0, at = 0;
      bool covered = true, disjoint = false;
      for (size_t d = 0; d < b.size(); ++d) {
        if (boxes[k][d] == b[d]) continue;
        ++differ, at = d;
        covered &= covers(boxes[k][d], b[d]), disjoint |= apart(boxes[k][d], b[d]);
      }
      if (covered) return;
      if (differ == 1) {
        Along joined = b[at];
        if (boxes[k][at].all()) joined.some.clear();
        for (size_t n = 0; n < joined.some.size(); ++n) joined.some[n] = joined.some[n] || boxes[k][at].some[n];
        joined.tidy(), b[at] = std::move(joined);
        boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(k));
        return add(std::move(b));
      }
      if (!disjoint) meet.push_back(k);
    }
    double met = 0;
    for (size_t k : meet) met += count_of(boxes[k]);
    if (count_of(b) <= met || (meet.empty() && boxes.size() >= kBoxes)) return;
    for (auto k = meet.rbegin(); k != meet.rend(); ++k) boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(*k));
    boxes.push_back(std::move(b));
  }
};

// Part of a dimension of `size`: those of `ask`'s indices k for which `place(k)` is one of it.
template <class Place>
std::optional<Along> part(int64_t size, const Along& ask, Place place) {
  if (size > kLongest || ask.size > 4 * kLongest) return std::nullopt;
  Along out{size, std::vector<bool>(static_cast<size_t>(size))};
  for (int64_t k = 0; k < ask.size; ++k)
    if (const int64_t at = ask.has(k) ? place(k) : -1; at >= 0 && at < size) out.some[static_cast<size_t>(at)] = true;
  if (size == 0) out.some.clear();
  out.tidy();
  return out;
}

// The same elements in other dimensions, row by row. Nothing where they are no box there.
std::optional<Box> regrouped(const Box& from, const Dims& to) {
  Box out = whole_box(to);
  for (size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    const size_t first = i, first_to = j;
    int64_t here = 1, there = 1;
    do {
      if (i < from.size() && (here <= there || j >= to.size()))
        here *= from[i++].size;
      else if (j < to.size())
        there *= to[j++];
      else
        return std::nullopt;
    } while (here != there);
    bool all = true;
    for (size_t k = first; k < i; ++k) all &= from[k].all();
    if (all) continue;
    if (here > kLongest) return std::nullopt;
    double flat = 0;
    for (size_t k = first_to; k < j; ++k) out[k].some.assign(static_cast<size_t>(to[k]), false);
    for (int64_t n = 0; n < here; ++n) {
      int64_t rest = n;
      bool in = true;
      for (size_t k = i; k-- > first; rest /= from[k].size) in &= from[k].has(rest % from[k].size);
      if (!in) continue;
      ++flat, rest = n;
      for (size_t k = j; k-- > first_to; rest /= to[k]) out[k].some[static_cast<size_t>(rest % to[k])] = true;
    }
    double boxed = 1;
    for (size_t k = first_to; k < j; ++k) boxed *= out[k].count(), out[k].tidy();
    if (boxed != flat) return std::nullopt;
  }
  return out;
}

// Dimensions from major to minor, as they lie in memory.
Dims order_in_memory(const Shape& s) {
  Dims order = s.has_layout ? s.layout.minor_to_major : default_minor_to_major(s.rank());
  std::reverse(order.begin(), order.end());
  return order;
}

class Walk {
 public:
  Walk(const Module& m, CompId body, bool picks_differ) : m_(m), body_(body), picks_differ_(picks_differ) {}

  std::unordered_map<InstId, double> run() {
    const std::vector<InstId> order = m_.post_order(body_);
    const InstId root = m_.comp(body_).root;
    ask_all(root);
    std::vector<InstId> results = {root};
    if (m_.op(root) == Opcode::Tuple) results.assign(m_.operands(root).begin(), m_.operands(root).end());
    for (InstId r : results)
      if (const InstId i = updated_in_place(m_, r); i.valid()) in_place_.insert(i);
    std::unordered_map<InstId, double> out;
    for (InstId p : m_.comp(body_).params) out[p] = 0;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const Needed asked = needed_[*at];
      const double all = count(*at);
      out[*at] = m_.shape(*at).is_array() ? std::min(asked.count(), all) : asked.at_least;
      if (out[*at] <= 0) continue;
      const bool whole = out[*at] >= all;
      for (size_t k = 0; k < m_.operand_count(*at); ++k) hand_on(*at, k, asked, whole);
    }
    return out;
  }

 private:
  double count(InstId i) const {
    const Shape& s = m_.shape(i);
    return s.is_array() ? static_cast<double>(s.elements_count()) : 0;
  }
  void ask_all(InstId i) {
    if (m_.shape(i).is_array())
      needed_[i].add(whole_box(m_.shape(i).dims));
    else
      needed_[i].at_least = 1;
  }
  void ask_some(InstId i, double n) {
    if (n >= count(i)) return ask_all(i);
    needed_[i].at_least = std::max(needed_[i].at_least, n);
  }
  // Boxes through `map`; what is none there is counted, and so is what had no place: `less` of them are elsewhere, and
  // `times` elements are behind each.
  template <class Map>
  void ask_boxes(InstId o, const Needed& asked, double less, double times, Map map) {
    Needed out;
    less = std::max(less, 0.0);
    for (const Box& b : asked.boxes) {
      if (std::optional<Box> there = map(b))
        out.add(std::move(*there));
      else
        out.at_least = std::max(out.at_least, (count_of(b) - less) * times);
    }
    out.at_least = std::max(out.at_least, (asked.at_least - less) * times);
    if (out.at_least >= count(o) || out.count() >= count(o)) return ask_all(o);
    needed_[o].add(out);
  }

  void hand_on(InstId i, size_t k, const Needed& asked, bool whole) {
    const InstId o = m_.operand(i, k);
    const Shape &in = m_.shape(o), &out = m_.shape(i);
    if (!in.is_array() || in.rank() == 0 || !out.is_array()) return ask_all(o);
    const Opcode op = m_.op(i);
    if (op == Opcode::DynamicUpdateSlice || op == Opcode::Scatter) return ask_updated(i, k, asked, whole);
    if (op == Opcode::Gather && k == 0) {
      double slice = 1;
      for (int64_t d : m_.attrs(i).ints(Attr::slice_sizes)) slice *= static_cast<double>(d);
      return ask_some(o, picks_differ_ ? asked.count() : std::min(slice, asked.count()));
    }
    if (op == Opcode::DynamicSlice && k == 0) return ask_some(o, asked.count());
    if (whole && op != Opcode::Slice && op != Opcode::Pad && op != Opcode::ReduceWindow) return ask_all(o);
    if (op_info(op).elementwise || op == Opcode::Copy)
      return ask_boxes(o, asked, 0, 1, [](const Box& b) { return std::optional(b); });
    ask_moved(i, k, asked);
  }

  void ask_moved(InstId i, size_t k, const Needed& asked) {
    const InstId o = m_.operand(i, k);
    const Shape &in = m_.shape(o), &out = m_.shape(i);
    const Dims& dims = m_.attrs(i).ints(Attr::dimensions);
    const double ratio = count(i) > 0 ? count(o) / count(i) : 0;
    Box whole = whole_box(in.dims);
    switch (m_.op(i)) {
      case Opcode::Reverse:
        return ask_boxes(o, asked, 0, 1, [&](Box b) {
          for (int64_t d : dims)
            std::reverse(b[static_cast<size_t>(d)].some.begin(), b[static_cast<size_t>(d)].some.end());
          return std::optional(std::move(b));
        });
      case Opcode::Transpose:
      case Opcode::Broadcast: {
        const bool broadcast = m_.op(i) == Opcode::Broadcast;
        return ask_boxes(o, asked, 0, std::min(ratio, 1.0), [&](const Box& b) {
          for (size_t d = 0; d < dims.size(); ++d) {
            const auto to = static_cast<size_t>(dims[d]);
            whole[broadcast ? d : to] = b[broadcast ? to : d];
          }
          return std::optional(whole);
        });
      }
      case Opcode::Reshape:
      case Opcode::Bitcast:
        if (ratio != 1) return;
        return ask_boxes(o, asked, 0, 1, [&](const Box& b) { return through_bitcast(b, out, in, m_.op(i)); });
      case Opcode::Reduce: {
        if (k >= m_.operand_count(i) / 2) return ask_all(o);
        return ask_boxes(o, asked, 0, ratio, [&](const Box& b) {
          for (size_t d = 0, left = 0; d < whole.size(); ++d)
            if (!contains(dims, static_cast<int64_t>(d))) whole[d] = b[left++];
          return std::optional(whole);
        });
      }
      case Opcode::Concatenate: {
        const auto along = static_cast<size_t>(dims.at(0));
        int64_t before = 0;
        for (size_t n = 0; n < k; ++n) before += m_.shape(m_.operand(i, n)).dims[along];
        return ask_boxes(o, asked, count(i) - count(o), 1, [&](Box b) -> std::optional<Box> {
          if (!move_along(&b, along, in, [&](int64_t at) { return at - before; })) return std::nullopt;
          return b;
        });
      }
      case Opcode::Slice:
        return ask_slice(i, asked);
      case Opcode::Pad:
        return k == 0 ? ask_pad(i, asked) : ask_all(o);
      case Opcode::ReduceWindow:
        return k == 0 && m_.operand_count(i) == 2 ? ask_windows(i, asked) : void();
      default:
        return;  // of a part of its results it may need nothing
    }
  }

  // Makes a box's indices along one dimension the operand's; false: they are too many to be told.
  template <class Place>
  static bool move_along(Box* b, size_t along, const Shape& in, Place place) {
    std::optional<Along> there = part(in.dims[along], (*b)[along], place);
    if (there) (*b)[along] = std::move(*there);
    return there.has_value();
  }

  static std::optional<Box> through_bitcast(const Box& b, const Shape& out, const Shape& in, Opcode op) {
    if (op == Opcode::Reshape) return regrouped(b, in.dims);
    const Dims from = order_in_memory(out), to = order_in_memory(in);
    Box in_memory;
    for (int64_t d : from) in_memory.push_back(b[static_cast<size_t>(d)]);
    Dims sizes;
    for (int64_t d : to) sizes.push_back(in.dims[static_cast<size_t>(d)]);
    std::optional<Box> there = regrouped(in_memory, sizes);
    if (!there) return std::nullopt;
    Box back(to.size());
    for (size_t k = 0; k < to.size(); ++k) back[static_cast<size_t>(to[k])] = std::move((*there)[k]);
    return back;
  }

  void ask_slice(InstId i, const Needed& asked) {
    const InstId o = m_.operand(i, 0);
    const auto* slices = m_.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
    if (!slices) return ask_some(o, asked.count());
    ask_boxes(o, asked, 0, 1, [&](Box b) -> std::optional<Box> {
      for (size_t d = 0; d < b.size(); ++d) {
        const SliceDim& s = (*slices)[d];
        if (b[d].all() && b[d].size == m_.shape(o).dims[d]) continue;
        if (!move_along(&b, d, m_.shape(o), [&](int64_t at) { return s.start + at * s.stride; })) return std::nullopt;
      }
      return b;
    });
  }

  void ask_pad(InstId i, const Needed& asked) {
    const InstId o = m_.operand(i, 0);
    const auto* pads = m_.attrs(i).get<std::vector<PaddingDim>>(Attr::padding);
    if (!pads) return;
    ask_boxes(o, asked, count(i) - count(o), 1, [&](Box b) -> std::optional<Box> {
      for (size_t d = 0; d < b.size(); ++d) {
        const PaddingDim& p = (*pads)[d];
        if (p == PaddingDim{}) continue;
        auto place = [&](int64_t at) { return (at - p.low) % (p.interior + 1) ? -1 : (at - p.low) / (p.interior + 1); };
        if (b[d].all() && p.low >= 0 && p.high >= 0)
          b[d] = {m_.shape(o).dims[d], {}};
        else if (!move_along(&b, d, m_.shape(o), place))
          return std::nullopt;
      }
      return b;
    });
  }

  // What no window lies over is not read.
  void ask_windows(InstId i, const Needed& asked) {
    const InstId o = m_.operand(i, 0);
    const auto* window = m_.attrs(i).get<Window>(Attr::window);
    if (!window || window->dims.size() != m_.shape(o).dims.size()) return;
    Needed out;
    for (Box b : asked.boxes) {
      bool known = true;
      for (size_t d = 0; known && d < b.size(); ++d) {
        const WindowDim& w = window->dims[d];
        const int64_t size = m_.shape(o).dims[d];
        if (w == WindowDim{} || (w.size == 1 && w.stride == 1 && b[d].all() && b[d].size == size)) continue;
        known = size <= kLongest && b[d].size <= kLongest && w.size <= kLongest / 64;
        if (!known) break;
        Along in{size, std::vector<bool>(static_cast<size_t>(size))};
        for (int64_t n = 0; n < b[d].size; ++n)
          for (int64_t x = 0; b[d].has(n) && x < w.size; ++x) {
            const int64_t at = n * w.stride + x * w.rhs_dilate - w.pad_low;
            if (at >= 0 && at % w.lhs_dilate == 0 && at / w.lhs_dilate < size)
              in.some[static_cast<size_t>(at / w.lhs_dilate)] = true;
          }
        if (size == 0) in.some.clear();
        in.tidy(), b[d] = std::move(in);
      }
      if (known) out.add(std::move(b));
    }
    needed_[o].add(out);
  }

  void ask_updated(InstId i, size_t k, const Needed& asked, bool whole) {
    const InstId o = m_.operand(i, k);
    const bool scatter = m_.op(i) == Opcode::Scatter;
    const size_t targets = scatter ? scatter_targets(m_, i) : 1;
    double updates = count(m_.operand(i, scatter ? targets + 1 : 1));
    if (k < targets) {
      const double seen = scatter && scatter_reads_targets(m_, i) && picks_differ_ ? updates : 0;
      if (scatter && scatter_reads_targets(m_, i)) updates = 0;  // what is added to is read as well
      if (in_place_.contains(i)) return ask_some(o, std::min(seen, count(o)));
      return ask_some(o, std::max(asked.count() - updates, 0.0));
    }
    if (whole || (scatter && k == targets)) return ask_all(o);
    ask_some(o, scatter ? 0 : std::max(asked.count() - (count(i) - updates), 0.0));
  }

  const Module& m_;
  CompId body_;
  bool picks_differ_;
  std::unordered_set<InstId> in_place_;
  std::unordered_map<InstId, Needed> needed_;
};

}  // namespace

size_t scatter_targets(const Module& m, InstId scatter) { return (m.operand_count(scatter) - 1) / 2; }

bool scatter_reads_targets(const Module& m, InstId scatter) {
  if (m.called(scatter).empty()) return true;
  const Computation& c = m.comp(m.called(scatter)[0]);
  const size_t targets = scatter_targets(m, scatter);
  auto is_target = [&](InstId i) {
    const auto at = std::find(c.params.begin(), c.params.end(), i);
    return at != c.params.end() && static_cast<size_t>(at - c.params.begin()) < targets;
  };
  if (is_target(c.root)) return true;
  for (InstId i : m.post_order(m.called(scatter)[0]))
    for (InstId o : m.operands(i))
      if (is_target(o)) return true;
  return false;
}

InstId updated_in_place(const Module& m, InstId result) {
  while (m.op(result) == Opcode::Bitcast) result = m.operand(result, 0);
  const bool scatter = m.op(result) == Opcode::Scatter;
  if (!scatter && m.op(result) != Opcode::DynamicUpdateSlice) return {};
  const size_t targets = scatter ? scatter_targets(m, result) : 1;
  for (size_t k = 0; k < targets; ++k) {
    InstId target = m.operand(result, k);
    while (m.op(target) == Opcode::Bitcast) target = m.operand(target, 0);
    if (m.op(target) != Opcode::Parameter) return {};
  }
  return result;
}

std::unordered_map<InstId, double> needed_elements(const Module& m, CompId body, bool picks_differ) {
  return Walk(m, body, picks_differ).run();
}

}  // namespace hlo
