// Sorts: by ranks of their keys where the comparator compares keys, else by merging.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ir/base/parallel.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"

namespace hlo {

int64_t total_order_rank(ElementType t, const char* at) {
  if (is_float(t)) {
    const double v = load_double(t, at);
    int64_t bits;
    std::memcpy(&bits, &v, 8);
    return bits < 0 ? INT64_MAX ^ bits : bits;
  }
  const int64_t v = load_int(t, at);
  return t == ElementType::U64 ? static_cast<int64_t>(static_cast<uint64_t>(v) ^ (1ull << 63)) : v;
}

// Do both compute the same, one of its parameter `number[0]`, the other of `number[1]`?
bool Evaluator::mirrored(InstId x, InstId y, int64_t number[2], int& budget) const {
  if (--budget < 0) return false;  // what is used twice is walked twice
  if (m_.op(x) != m_.op(y) || m_.shape_id(x) != m_.shape_id(y)) return false;
  if (m_.op(x) == Opcode::Parameter) {
    int64_t here[2] = {m_.parameter_number(x), m_.parameter_number(y)};
    for (int k = 0; k < 2; ++k) {
      if (number[k] >= 0 && number[k] != here[k]) return false;
      number[k] = here[k];
    }
    return true;
  }
  if (!one_by_one(x, y)) return false;
  for (size_t k = 0; k < m_.operand_count(x); ++k)
    if (!mirrored(m_.operand(x, k), m_.operand(y, k), number, budget)) return false;
  return true;
}

// The same operation, or constant, on scalars.
bool Evaluator::one_by_one(InstId x, InstId y) const {
  Opcode op = m_.op(x);
  if (op != m_.op(y) || m_.shape_id(x) != m_.shape_id(y)) return false;
  if (op == Opcode::Constant) return m_.literal_id(x) == m_.literal_id(y);
  bool renames = op == Opcode::Broadcast || op == Opcode::Bitcast || op == Opcode::Reshape;
  return (op_info(op).elementwise || (renames && m_.shape(x).rank() == 0)) && m_[x].attrs == m_[y].attrs &&
         m_.operand_count(x) == m_.operand_count(y);
}

// Do the two compute the same?
bool Evaluator::same_expression(InstId x, InstId y, int& budget) const {
  if (x == y) return true;
  if (--budget < 0 || !one_by_one(x, y)) return false;
  for (size_t k = 0; k < m_.operand_count(x); ++k)
    if (!same_expression(m_.operand(x, k), m_.operand(y, k), budget)) return false;
  return true;
}

// Keys by which a comparator orders, the first one first:
//   compare(f(a), f(b))
//   select(a and b are alike in the first key, <further keys>, compare(f(a), f(b)))
//   or(compare(f(a), f(b)), and(a and b are alike in the first key, <further keys>))
// where alike is compare(f(a), f(b)), direction=EQ, or that neither comes before the other.
bool Evaluator::sort_keys(InstId root, std::vector<SortKey>& keys) const {
  auto text = [&](InstId i, Attr key) { return u_.text(m_.attrs(i).text(key)); };
  if (m_.op(root) == Opcode::Compare) {
    const InstId x = m_.operand(root, 0), y = m_.operand(root, 1);
    const std::string_view d = text(root, Attr::direction), how = text(root, Attr::type);
    const ElementType t = m_.shape(x).type;
    int64_t number[2] = {-1, -1};
    int budget = 1000;
    if ((d != "LT" && d != "GT") || is_complex(t) || (how == "TOTALORDER" && !is_float(t)) ||
        !mirrored(x, y, number, budget) || number[0] < 0 || number[0] / 2 != number[1] / 2 || number[0] == number[1])
      return false;
    keys.push_back({x, (d == "LT") == (number[0] < number[1]), how == "TOTALORDER"});
    return true;
  }
  InstId first, alike, further;
  if (m_.op(root) == Opcode::Select) {
    alike = m_.operand(root, 0), further = m_.operand(root, 1), first = m_.operand(root, 2);
  } else if (m_.op(root) == Opcode::Or && m_.op(m_.operand(root, 1)) == Opcode::And) {
    first = m_.operand(root, 0);
    alike = m_.operand(m_.operand(root, 1), 0), further = m_.operand(m_.operand(root, 1), 1);
  } else {
    return false;
  }
  if (m_.op(first) != Opcode::Compare || m_.op(alike) != Opcode::Compare || text(alike, Attr::direction) != "EQ")
    return false;
  const InstId x = m_.operand(first, 0), y = m_.operand(first, 1);
  const InstId p = m_.operand(alike, 0), q = m_.operand(alike, 1);
  int budget = 1000;
  auto same = [&](InstId one, InstId two) { return same_expression(one, two, budget); };
  const bool same_values =
      text(alike, Attr::type) == text(first, Attr::type) && ((same(p, x) && same(q, y)) || (same(p, y) && same(q, x)));
  const InstId other = p == first ? q : p;
  const bool neither = (p == first || q == first) && m_.op(other) == Opcode::Compare &&
                       m_[other].attrs == m_[first].attrs && same(m_.operand(other, 0), y) &&
                       same(m_.operand(other, 1), x);
  if (!same_values && !neither) return false;
  return sort_keys(first, keys) && sort_keys(further, keys);
}

// A comparison of one key with itself on the other side, `compare(f(a), f(b))`, or of one behind the other: f runs once
// an element, and the comparator not at all.
bool Evaluator::sort_ranks(InstId inst, std::span<const Value> ops, SortRanks* ranks) {
  const CompId comparator = m_.called(inst)[0];
  const int64_t total = u_[ops[0].shape].elements_count();
  std::vector<SortKey> keys;
  if (total == 0 || !sort_keys(m_.comp(comparator).root, keys)) return false;
  for (const SortKey& key : keys) {
    ranks->emplace_back(static_cast<size_t>(total));
    // NaN among plain comparisons is less than nothing: that is no order, the comparator itself decides.
    if (!ranks_of_key(comparator, ops, key, ranks->back().data())) return false;
  }
  return true;
}

// False where there is NaN that plain comparisons meet.
bool Evaluator::ranks_of_key(CompId comparator, std::span<const Value> ops, const SortKey& key, int64_t* to) {
  // As many elements at once as stay in a near cache with all that is computed on the way.
  constexpr int64_t kAtOnce = 1 << 13;
  const int64_t total = u_[ops[0].shape].elements_count();
  const ElementType t = m_.shape(key.value).type;
  const int64_t width = storage_bytes(t);
  for (int64_t begin = 0; begin < total; begin += kAtOnce) {
    const int64_t count = std::min(kAtOnce, total - begin);
    std::vector<Value> args(m_.comp(comparator).params.size());
    for (size_t w = 0; w < ops.size(); ++w) {
      const int64_t bytes = storage_bytes(u_[ops[w].shape].type);
      Value part;
      part.shape = u_.scalar(u_[ops[w].shape].type);
      const char* from = ops[w].bytes() + begin * bytes;
      part.data = std::make_shared<std::vector<char>>(from, from + count * bytes);
      args[2 * w] = args[2 * w + 1] = std::move(part);
    }
    const Value values = lifted(comparator, args, count, key.value)[0];
    for (int64_t i = 0; i < count; ++i) {
      const char* from = values.bytes() + i * width;
      int64_t r = total_order_rank(t, from);
      if (is_float(t) && !key.total_order) {
        const double v = load_double(t, from);
        if (std::isnan(v)) return false;
        if (v == 0) r = 0;  // -0 and 0 are one
      }
      to[begin + i] = key.less ? r : ~r;
    }
  }
  return true;
}

namespace {

// Of equal first ranks: does element x of a line come before y? Of equal ranks the position decides.
bool further_before(const SortRanks& ranks, int64_t base, int64_t stride, int64_t x, int64_t y) {
  for (size_t k = 1; k < ranks.size(); ++k) {
    const int64_t p = ranks[k][static_cast<size_t>(base + x * stride)],
                  q = ranks[k][static_cast<size_t>(base + y * stride)];
    if (p != q) return p < q;
  }
  return x < y;
}

}  // namespace

SortLines::SortLines(const Shape& s, int64_t dim)
    : n(s.dims[static_cast<size_t>(dim)]),
      stride(row_major_strides(s.dims)[static_cast<size_t>(dim)]),
      lines(n ? s.elements_count() / n : 0) {}

SortOrder order_of(const SortLines& by, const SortRanks& ranks) {
  SortOrder order(static_cast<size_t>(by.lines * by.n));
  parallel_for(by.lines, [&](int64_t line) {
    const int64_t base = by.base(line);
    std::vector<std::pair<int64_t, int64_t>> list(static_cast<size_t>(by.n));
    for (int64_t i = 0; i < by.n; ++i)
      list[static_cast<size_t>(i)] = {ranks[0][static_cast<size_t>(base + i * by.stride)], i};
    if (ranks.size() == 1)
      std::sort(list.begin(), list.end());
    else
      std::sort(list.begin(), list.end(), [&](const auto& x, const auto& y) {
        return x.first != y.first ? x.first < y.first : further_before(ranks, base, by.stride, x.second, y.second);
      });
    for (int64_t i = 0; i < by.n; ++i)
      order[static_cast<size_t>(line * by.n + i)] = static_cast<int32_t>(list[static_cast<size_t>(i)].second);
  });
  return order;
}

bool is_order_of(const SortLines& by, const SortRanks& ranks, const SortOrder& order) {
  for (int64_t line = 0; line < by.lines; ++line) {
    const int64_t base = by.base(line);
    const int32_t* places = order.data() + line * by.n;
    for (int64_t i = 1; i < by.n; ++i) {
      const int64_t x = places[i - 1], y = places[i], p = ranks[0][static_cast<size_t>(base + x * by.stride)],
                    q = ranks[0][static_cast<size_t>(base + y * by.stride)];
      if (p != q ? p > q : !further_before(ranks, base, by.stride, x, y)) return false;
    }
  }
  return true;
}

Value Evaluator::sorted(InstId inst, std::span<const Value> ops, const SortOrder& order) {
  const SortLines by(u_[ops[0].shape], m_.attrs(inst).ints(Attr::dimensions)[0]);
  std::vector<Value> out(ops.begin(), ops.end());
  for (size_t w = 0; w < ops.size(); ++w) {
    const auto width = static_cast<size_t>(storage_bytes(u_[ops[w].shape].type));
    out[w].data = std::make_shared<std::vector<char>>(ops[w].data->size());
    char* to = out[w].data->data();
    const char* from = ops[w].bytes();
    parallel_for(by.lines, [&](int64_t line) {
      const int64_t base = by.base(line);
      for (int64_t i = 0; i < by.n; ++i)
        std::memcpy(to + static_cast<size_t>(base + i * by.stride) * width,
                    from + static_cast<size_t>(base + order[static_cast<size_t>(line * by.n + i)] * by.stride) * width,
                    width);
    });
  }
  return packed(m_.shape_id(inst), std::move(out));
}

Value Evaluator::sort(InstId inst, std::vector<Value>& ops) {
  SortRanks ranks;
  const SortLines by(u_[ops[0].shape], m_.attrs(inst).ints(Attr::dimensions)[0]);
  if (by.n <= INT32_MAX && sort_ranks(inst, ops, &ranks)) return sorted(inst, ops, order_of(by, ranks));
  return merged(inst, ops);
}

namespace {

// Merges neighbouring sorted runs of `run` elements. All comparisons of a step are one lifted call, `compare(x, y)`:
// merging would be sequential, hence ranks: position of an element in the other run by binary search, in log n steps of
// n lanes.
template <class Compare>
void merge_runs(std::vector<int64_t>& order, int64_t run, const Compare& compare) {
  const int64_t n = std::ssize(order);
  // Lower bound for left elements in the right run (strictly less go first), upper bound the other way: stable.
  std::vector<int64_t> low(order.size()), high(order.size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t block = i / (2 * run) * 2 * run, middle = std::min(block + run, n), end = std::min(block + 2 * run, n);
    bool left = i < middle;
    low[static_cast<size_t>(i)] = left ? middle : block;
    high[static_cast<size_t>(i)] = left ? end : middle;
  }
  for (;;) {
    std::vector<int64_t> x, y;
    std::vector<size_t> who;
    for (size_t i = 0; i < order.size(); ++i) {
      if (low[i] >= high[i]) continue;
      int64_t mid = (low[i] + high[i]) / 2, block = static_cast<int64_t>(i) / (2 * run) * 2 * run;
      bool left = static_cast<int64_t>(i) < std::min(block + run, n);
      // left: is other < me; right: is me < other.
      x.push_back(left ? order[static_cast<size_t>(mid)] : order[i]);
      y.push_back(left ? order[i] : order[static_cast<size_t>(mid)]);
      who.push_back(i);
    }
    if (who.empty()) break;
    Value r = compare(x, y);
    for (size_t k = 0; k < who.size(); ++k) {
      size_t i = who[k];
      int64_t mid = (low[i] + high[i]) / 2, block = static_cast<int64_t>(i) / (2 * run) * 2 * run;
      bool left = static_cast<int64_t>(i) < std::min(block + run, n), yes = r.bytes()[k] != 0;
      if (left ? yes : !yes)
        low[i] = mid + 1;
      else
        high[i] = mid;
    }
  }
  std::vector<int64_t> next(order.size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t block = i / (2 * run) * 2 * run, middle = std::min(block + run, n);
    bool left = i < middle;
    int64_t own = left ? i - block : i - middle, other = low[static_cast<size_t>(i)] - (left ? middle : block);
    next[static_cast<size_t>(block + own + other)] = order[static_cast<size_t>(i)];
  }
  order.swap(next);
}

}  // namespace

// By the comparator itself.
Value Evaluator::merged(InstId inst, std::vector<Value>& ops) {
  const CompId comparator = m_.called(inst)[0];
  const SortLines by(u_[ops[0].shape], m_.attrs(inst).ints(Attr::dimensions)[0]);
  const int64_t n = by.n, stride = by.stride, lines = by.lines;
  std::vector<Value> out = ops;
  std::vector<char*> data;
  std::vector<size_t> widths;
  for (Value& v : out) {
    v.data = std::make_shared<std::vector<char>>(*v.data);
    data.push_back(v.data->data());
    widths.push_back(static_cast<size_t>(storage_bytes(u_[v.shape].type)));
  }
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t base = by.base(line);
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    auto at = [&](size_t which, int64_t i) {
      return ops[which].bytes() + static_cast<size_t>(base + i * stride) * widths[which];
    };
    auto compare = [&](const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
      std::vector<Value> args;
      int64_t lanes = static_cast<int64_t>(x.size());
      for (size_t w = 0; w < ops.size(); ++w)
        for (const auto* list : {&x, &y}) {
          Value v;
          v.shape = u_.scalar(u_[ops[w].shape].type);
          v.data = std::make_shared<std::vector<char>>(x.size() * widths[w]);
          for (size_t i = 0; i < list->size(); ++i)
            std::memcpy(v.data->data() + i * widths[w], at(w, (*list)[i]), widths[w]);
          args.push_back(std::move(v));
        }
      return lifted(comparator, args, lanes)[0];
    };
    for (int64_t run = 1; run < n; run *= 2) merge_runs(order, run, compare);
    for (size_t w = 0; w < ops.size(); ++w)
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(data[w] + static_cast<size_t>(base + i * stride) * widths[w], at(w, order[static_cast<size_t>(i)]),
                    widths[w]);
  }
  return packed(m_.shape_id(inst), std::move(out));
}

// CUB's radix sort: stable, by the bits, where both zeros are one key; the second operand goes with the first. The
// direction is `{"descending":true}`, or `{descending = true, batch_size = 4 : i64}` of the typed interface.
Value Evaluator::library_sort(InstId inst, std::vector<Value>& ops) {
  const std::string_view config = u_.text(m_.attrs(inst).text(Attr::backend_config));
  const size_t said = config.find("descending");
  const bool descending =
      said != std::string_view::npos && config.substr(said, config.find_first_of(",}", said) - said).ends_with("true");
  const Shape& s = u_[ops[0].shape];
  const int64_t length = s.dims.back(), rows = length ? s.elements_count() / length : 0;
  const int width = storage_bytes(s.type);
  Value out = make(m_.shape_id(inst));
  parallel_for(rows, [&](int64_t row) {
    std::vector<int64_t> ranks(static_cast<size_t>(length)), order(static_cast<size_t>(length));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t rank = total_order_rank(s.type, ops[0].bytes() + (row * length + k) * width);
      ranks[static_cast<size_t>(k)] = is_float(s.type) && rank == -1 ? 0 : rank;
    }
    auto of = [&](int64_t k) { return ranks[static_cast<size_t>(k)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return descending ? of(a) > of(b) : of(a) < of(b); });
    for (size_t array = 0; array < ops.size(); ++array) {
      const auto bytes = static_cast<int64_t>(storage_bytes(u_[ops[array].shape].type));
      for (int64_t k = 0; k < length; ++k)
        std::memcpy(out.elements[array].data->data() + (row * length + k) * bytes,
                    ops[array].bytes() + (row * length + order[static_cast<size_t>(k)]) * bytes,
                    static_cast<size_t>(bytes));
    }
  });
  return out;
}

}  // namespace hlo
