// Scatter: which updates hit an element, in their order.
#include <algorithm>
#include <set>

#include "ir/base/hash.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/rules.h"

namespace hlo {
namespace {

// Of an array of them; what of it may be evaluated is less as a rule.
constexpr int64_t kMostIndices = 1 << 23;
// Elements that a window may hold are looked at so many times as fast as one is evaluated.
constexpr int64_t kTriesOfElement = 16;

struct ScatterNumbers {
  const ElementOperation& o;
  const Dims &window, &inserted, &map, &batching, &index_batching;
  size_t count;  // of operands
  const Shape &in, &index, &update;
  int64_t vector;
  Dims strides, index_strides, update_strides, batch_update, batch_index, window_in, batch_dims, key_strides;
  int64_t index_step = 0;

  explicit ScatterNumbers(const ElementOperation& op)
      : o(op),
        window(o.a.ints(Attr::update_window_dims)),
        inserted(o.a.ints(Attr::inserted_window_dims)),
        map(o.a.ints(Attr::scatter_dims_to_operand_dims)),
        batching(o.a.ints(Attr::input_batching_dims)),
        index_batching(o.a.ints(Attr::scatter_indices_batching_dims)),
        count(o.in.size() / 2),
        in(*o.in[0]),
        index(*o.in[count]),
        update(*o.in[count + 1]),
        vector(o.a.integer(Attr::index_vector_dim)),
        strides(row_major_strides(in.dims)),
        index_strides(row_major_strides(index.dims)),
        update_strides(row_major_strides(update.dims)) {
    for (int64_t d = 0; d < update.rank(); ++d)
      if (!contains(window, d)) batch_update.push_back(d), batch_dims.push_back(update.dims[static_cast<size_t>(d)]);
    for (int64_t d = 0; d < index.rank(); ++d)
      if (d != vector) batch_index.push_back(d);
    for (int64_t d = 0; d < in.rank(); ++d)
      if (!contains(inserted, d) && !contains(batching, d)) window_in.push_back(d);
    key_strides = strides;
    for (size_t k = 0; k < window.size() && k < window_in.size(); ++k)
      if (update.dims[static_cast<size_t>(window[k])] != 1) key_strides[static_cast<size_t>(window_in[k])] = 0;
    index_step = vector < index.rank() ? index_strides[static_cast<size_t>(vector)] : 0;
  }

  // Of batching dimension `k` the place of its coordinate among those of a batch.
  size_t batching_place(size_t k) const {
    return static_cast<size_t>(std::find(batch_index.begin(), batch_index.end(), index_batching[k]) -
                               batch_index.begin());
  }
  // The index at these coordinates of the batch: elements of the array of indices, one for each dimension of `map`.
  void add_index(const Dims& c, std::vector<int64_t>* to) const {
    int64_t first = 0;
    for (size_t d = 0; d < c.size(); ++d) first += c[d] * index_strides[static_cast<size_t>(batch_index[d])];
    for (size_t k = 0; k < map.size(); ++k) to->push_back(first + static_cast<int64_t>(k) * index_step);
  }
  // Where the window begins of the index at these coordinates of the batch, of which `start_at` gives element `k`;
  // false where it leaves the operand, and so is skipped whole.
  template <class F>
  bool begin(const Dims& c, F start_at, Dims* where) const {
    std::fill(where->begin(), where->end(), 0);
    for (size_t k = 0; k < map.size(); ++k) {
      int64_t start = start_at(k);
      if (index.type == ElementType::U64 && start < 0) start = INT64_MAX / 2;
      (*where)[static_cast<size_t>(map[k])] = start;
    }
    for (size_t k = 0; k < batching.size(); ++k) (*where)[static_cast<size_t>(batching[k])] = c[batching_place(k)];
    for (size_t k = 0; k < window.size(); ++k) {
      const auto d = static_cast<size_t>(window_in[k]);
      if ((*where)[d] < 0 || (*where)[d] > in.dims[d] - update.dims[static_cast<size_t>(window[k])]) return false;
    }
    for (size_t d = 0; d < in.dims.size(); ++d)
      if ((*where)[d] < 0 || (*where)[d] >= in.dims[d]) return false;
    return true;
  }
  // The update's element that lands at these coordinates of the operand from a window that begins there; -1: none.
  int64_t element(const Dims& c, const Dims& where, const Dims& to) const {
    int64_t at = 0;
    for (size_t d = 0; d < c.size(); ++d) at += c[d] * update_strides[static_cast<size_t>(batch_update[d])];
    for (size_t k = 0; k < window.size(); ++k) {
      const auto d = static_cast<size_t>(window_in[k]), from = static_cast<size_t>(window[k]);
      const int64_t x = to[d] - where[d];
      if (x < 0 || x >= update.dims[from]) return -1;
      at += x * update_strides[from];
    }
    return at;
  }
  // Coordinates that a window has one of, as one number.
  int64_t key(const Dims& c) const {
    int64_t n = 0;
    for (size_t d = 0; d < c.size(); ++d) n += c[d] * key_strides[d];
    return n;
  }
};

// f(coordinates of the batch) for all whose windows may land on one of these elements, in their order: an element's
// place along a batching dimension is its index's.
template <class F>
void for_batches(const ScatterNumbers& s, const Elements& at, F f) {
  if (!s.update.elements_count()) return;
  std::vector<bool> pinned(s.batch_dims.size());
  for (size_t k = 0; k < s.batching.size(); ++k) pinned[s.batching_place(k)] = true;
  std::set<Dims> firsts;
  for_coordinates(*at, s.in.dims, [&](size_t, const Dims& to) {
    if (s.batching.empty() && !firsts.empty()) return;
    Dims c(s.batch_dims.size(), 0);
    for (size_t k = 0; k < s.batching.size(); ++k) c[s.batching_place(k)] = to[static_cast<size_t>(s.batching[k])];
    firsts.insert(std::move(c));
  });
  for (Dims c : firsts)
    for (bool more = true; more;) {
      f(static_cast<const Dims&>(c));
      more = false;
      for (size_t d = c.size(); d-- > 0 && !more;)
        if (!pinned[d]) more = (c[d] = c[d] + 1 < s.batch_dims[d] ? c[d] + 1 : 0) != 0;
    }
}

// By element the updates that hit it, in the order in which they are taken. `indices`: those of for_batches.
std::vector<std::vector<int64_t>> hits(const ScatterNumbers& s, const Elements& at, const std::vector<char>& indices,
                                       ElementSource& source) {
  std::vector<std::vector<int64_t>> out(at->size());
  std::unordered_map<int64_t, std::vector<size_t>> candidates;
  // Most updates land elsewhere: few bits tell that.
  constexpr uint64_t kBits = 1 << 14;
  std::vector<bool> any(kBits);
  std::vector<Dims> coordinates(at->size());
  for_coordinates(*at, s.in.dims, [&](size_t k, const Dims& c) {
    coordinates[k] = c;
    candidates[s.key(c)].push_back(k);
    any[static_cast<uint64_t>(s.key(c)) % kBits] = true;
  });
  Dims where(s.in.dims.size(), 0);
  int64_t total = 0, tried = 0;
  const auto width = static_cast<size_t>(storage_bytes(s.index.type));
  const char* next = indices.data();
  auto start = [&](size_t k) { return load_int(s.index.type, next + k * width); };
  for_batches(s, at, [&](const Dims& c) {
    if (const bool lands = s.begin(c, start, &where); lands && any[static_cast<uint64_t>(s.key(where)) % kBits])
      if (auto near = candidates.find(s.key(where)); near != candidates.end())
        for (size_t k : near->second) {
          if ((++tried & 0xFFFF) == 0) source.afford(tried / kTriesOfElement);
          if (int64_t element = s.element(c, where, coordinates[k]); element >= 0) {
            out[k].push_back(element);
            if ((++total & 0xFFFF) == 0) source.afford(total);
          }
        }
    next += s.map.size() * width;
  });
  source.afford(total);
  return out;
}

// Round by round: the first updates of all elements, the second ones …
std::vector<char> combined(const ElementOperation& o, const Elements& at, const std::vector<std::vector<int64_t>>& hit,
                           ElementSource& source) {
  Universe& u = const_cast<Universe&>(o.u);
  const size_t count = o.in.size() / 2;
  const CompId function = o.m.called(o.x.inst)[0];
  const Computation& comp = o.m.comp(function);
  std::vector<std::vector<char>> values;
  for (size_t k = 0; k < count; ++k) values.push_back(source.read(o, k, *at));
  const bool overwrites = count == 1 && comp.root == comp.params[1];
  Evaluator evaluator(o.m);
  std::vector<size_t> left;
  for (size_t i = 0; i < hit.size(); ++i)
    if (!hit[i].empty()) left.push_back(i);
  for (size_t round = 0; !left.empty(); ++round) {
    std::vector<int64_t> updates;
    for (size_t i : left) updates.push_back(overwrites ? hit[i].back() : hit[i][round]);
    std::vector<Value> arguments;
    for (size_t k = 0; k < count; ++k) {
      const auto width = static_cast<size_t>(storage_bytes(o.in[k]->type));
      std::vector<char> now(left.size() * width);
      for (size_t i = 0; i < left.size(); ++i)
        std::memcpy(now.data() + i * width, values[k].data() + left[i] * width, width);
      arguments.push_back(element_values(u, o.in[k]->type, std::move(now)));
    }
    for (size_t k = 0; k < count; ++k)
      arguments.push_back(element_values(u, o.in[count + 1 + k]->type, source.read(o, count + 1 + k, updates)));
    const std::vector<Value> next =
        overwrites ? std::vector<Value>{arguments[1]}
                   : evaluator.run_elements(function, arguments, static_cast<int64_t>(left.size()));
    for (size_t k = 0; k < count; ++k) {
      const auto width = static_cast<size_t>(storage_bytes(o.in[k]->type));
      for (size_t i = 0; i < left.size(); ++i)
        std::memcpy(values[k].data() + left[i] * width, next[k].bytes() + i * width, width);
    }
    std::erase_if(left, [&](size_t i) { return overwrites || hit[i].size() <= round + 1; });
  }
  return std::move(values[o.x.leaf]);
}

}  // namespace

std::vector<int64_t> scatter_landings(const ElementOperation& o, size_t count, uint64_t seed,
                                      const std::function<int64_t(size_t, int64_t)>& integer) {
  const ScatterNumbers s(o);
  std::vector<int64_t> out;
  const int64_t updates = s.update.elements_count();
  Dims c(s.batch_dims.size()), where(s.in.dims.size());
  for (size_t k = 0; k < count && updates; ++k) {
    seed = mix64(seed + k);
    const int64_t which = k == 0   ? 0
                          : k == 1 ? updates - 1
                                   : static_cast<int64_t>(seed % static_cast<uint64_t>(updates));
    auto along = [&](int64_t d) {
      const auto at = static_cast<size_t>(d);
      return which / s.update_strides[at] % s.update.dims[at];
    };
    for (size_t d = 0; d < c.size(); ++d) c[d] = along(s.batch_update[d]);
    std::vector<int64_t> index;
    s.add_index(c, &index);
    if (!s.begin(
            c, [&](size_t d) { return integer(s.count, index[d]); }, &where))
      continue;
    for (size_t d = 0; d < s.window.size(); ++d) where[static_cast<size_t>(s.window_in[d])] += along(s.window[d]);
    int64_t to = 0;
    for (size_t d = 0; d < where.size(); ++d) to += where[d] * s.strides[d];
    out.push_back(to);
  }
  return out;
}

ElementPlan plan_scatter(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const ScatterNumbers s(o);
  if (s.batching.empty()) {
    const int64_t total = s.index.elements_count();
    if (total > kMostIndices) return no_plan("scatter by too many indices");
    source.afford(total);
  }
  std::vector<int64_t> all;
  for_batches(s, at, [&](const Dims& c) {
    s.add_index(c, &all);
    if (all.size() % 0x10000 < s.map.size()) source.afford(static_cast<int64_t>(all.size()));
  });
  ElementPlan p;
  if (!source.known(o, s.count, all)) {
    p.first.push_back({s.count, element_list(std::move(all))});
    return p;
  }
  std::vector<std::vector<int64_t>> hit = hits(s, at, source.read(o, s.count, all), source);
  std::vector<int64_t> updates;
  for (const std::vector<int64_t>& list : hit) updates.insert(updates.end(), list.begin(), list.end());
  const ElementList needed = element_list(std::move(updates));
  for (size_t k = 0; k < s.count; ++k) p.needs.push_back({k, at}), p.needs.push_back({s.count + 1 + k, needed});
  p.values = [&o, &source, at, hit = std::move(hit)](char* out) {
    const std::vector<char> values = combined(o, at, hit, source);
    std::memcpy(out, values.data(), values.size());
  };
  return p;
}

}  // namespace hlo
