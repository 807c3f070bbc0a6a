// What is open about the order of things: sorts, indices, reductions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "ir/eval/compare.h"
#include "ir/eval/kernels.h"
#include "ir/types/literal.h"
#include "replay/judge/contract/contract_parts.h"

namespace hlo {
namespace {

Value again(const Module& m, InstId i, std::vector<Value> ops) {
  return Evaluator(m).run_instruction(i, std::move(ops));
}

bool has_nan(const Universe& u, const Value& v) {
  const Shape& s = u[v.shape];
  if (!s.is_array() || !is_float(s.type)) return false;
  int width = storage_bytes(s.type);
  for (int64_t k = 0; k < s.elements_count(); ++k)
    if (std::isnan(load_double(s.type, v.bytes() + k * width))) return true;
  return false;
}

// Does the comparator compare floats in a way that leaves NaN without a place?
bool nan_has_no_place(const Module& m, CompId comparator) {
  for (InstId i : m.live_order(comparator))
    if (m.op(i) == Opcode::Compare && is_float(m.shape(m.operand(i, 0)).type) &&
        m.u().text(m.attrs(i).text(Attr::type)) != "TOTALORDER")
      return true;
  return false;
}

// Lines along `dim` in which no operand has NaN stay what they are.
void keep_lines_without_nan(const Universe& u, std::span<const Value> ops, size_t dim, const Value& v, Value* other) {
  const Shape& s = u[ops[0].shape];
  int64_t n = s.dims[dim], stride = row_major_strides(s.dims)[dim], lines = n ? s.elements_count() / n : 0;
  bool tuple = u[v.shape].is_tuple();
  for (int64_t line = 0; line < lines; ++line) {
    int64_t base = line / stride * stride * n + line % stride;
    bool nan = false;
    for (const Value& o : ops) {
      ElementType t = u[o.shape].type;
      for (int64_t k = 0; is_float(t) && k < n && !nan; ++k)
        nan = std::isnan(load_double(t, o.bytes() + (base + k * stride) * storage_bytes(t)));
    }
    if (nan) continue;
    for (size_t w = 0; w < ops.size(); ++w) {
      const Value& from = tuple ? v.elements[w] : v;
      Value& to = tuple ? other->elements[w] : *other;
      auto width = static_cast<size_t>(storage_bytes(u[from.shape].type));
      char* bytes = to.mutable_bytes();
      for (int64_t k = 0; k < n; ++k) {
        size_t at = static_cast<size_t>(base + k * stride) * width;
        std::memcpy(bytes + at, from.bytes() + at, width);
      }
    }
  }
}

// The rows of an array of indices: where the numbers of each lie, and what it says.
struct IndexRows {
  ElementType type = ElementType::S32;
  std::vector<std::vector<int64_t>> places, numbers;  // numbers with those of batching dimensions in front
};

IndexRows rows_of(const Module& m, InstId i, const Value& indices) {
  const Universe& u = m.u();
  const AttrSet& a = m.attrs(i);
  const Shape& s = u[indices.shape];
  int64_t ivd = a.integer(Attr::index_vector_dim);
  const Dims& batching =
      a.ints(m.op(i) == Opcode::Gather ? Attr::start_indices_batching_dims : Attr::scatter_indices_batching_dims);
  Dims strides = row_major_strides(s.dims);
  IndexRows out;
  out.type = s.type;
  std::map<int64_t, size_t> row_at;  // by the place of its first number
  int width = storage_bytes(s.type);
  for (int64_t k = 0; k < s.elements_count(); ++k) {
    int64_t first = k;
    if (ivd < s.rank()) {
      auto d = static_cast<size_t>(ivd);
      first -= k / strides[d] % s.dims[d] * strides[d];
    }
    auto [at, fresh] = row_at.try_emplace(first, out.places.size());
    if (fresh) {
      out.places.emplace_back(), out.numbers.emplace_back();
      for (int64_t b : batching) {
        auto d = static_cast<size_t>(b);
        out.numbers.back().push_back(k / strides[d] % s.dims[d]);
      }
    }
    out.places[at->second].push_back(k);
    out.numbers[at->second].push_back(load_int(s.type, indices.bytes() + k * width));
  }
  return out;
}

void set_row(const IndexRows& rows, size_t row, Value& indices, const std::vector<int64_t>* numbers) {
  int width = storage_bytes(rows.type);
  char* bytes = indices.mutable_bytes();
  const auto& places = rows.places[row];
  size_t batching = rows.numbers[row].size() - places.size();
  // Out of bounds: a scatter drops it.
  int64_t none = is_signed_int(rows.type) ? -1 : static_cast<int64_t>(~uint64_t{0} >> (64 - type_bits(rows.type)));
  for (size_t k = 0; k < places.size(); ++k)
    store_int(rows.type, bytes + places[k] * width, numbers ? (*numbers)[batching + k] : none);
}

// The updates of a scatter in another order.
std::vector<Value> reordered_updates(const Module& m, InstId i, std::span<const Value> ops, int which) {
  Universe& u = m.u();
  const AttrSet& a = m.attrs(i);
  size_t count = ops.size() / 2;
  std::vector<Value> out(ops.begin(), ops.end());
  const Dims& window = a.ints(Attr::update_window_dims);
  int64_t ivd = a.integer(Attr::index_vector_dim);
  std::vector<size_t> in_updates, in_indices;
  for (int64_t d = 0; d < u[ops[count + 1].shape].rank(); ++d)
    if (std::find(window.begin(), window.end(), d) == window.end()) in_updates.push_back(static_cast<size_t>(d));
  for (int64_t d = 0; d < u[ops[count].shape].rank(); ++d)
    if (d != ivd) in_indices.push_back(static_cast<size_t>(d));
  const Dims& batching = a.ints(Attr::scatter_indices_batching_dims);
  for (size_t k = 0; k < std::min(in_indices.size(), in_updates.size()); ++k) {
    // Batching dimensions stand for themselves.
    if (std::find(batching.begin(), batching.end(), static_cast<int64_t>(in_indices[k])) != batching.end()) continue;
    std::vector<int64_t> order = another_order(u[ops[count].shape].dims[in_indices[k]], which);
    out[count] = taken(u, out[count], in_indices[k], order);
    for (size_t w = count + 1; w < out.size(); ++w) out[w] = taken(u, out[w], in_updates[k], order);
  }
  return out;
}

// One operation of both parameters for which order and grouping matter no more than rounding; maybe in a wider type.
bool plain_combiner(const Module& m, CompId c, Opcode* op = nullptr) {
  auto through = [&](InstId i) {
    while (m.op(i) == Opcode::Convert) i = m.operand(i, 0);
    return i;
  };
  InstId root = through(m.comp(c).root);
  const auto& p = m.comp(c).params;
  if (p.size() != 2 || m.operand_count(root) != 2) return false;
  if (op) *op = m.op(root);
  switch (m.op(root)) {
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::Minimum:
    case Opcode::Maximum:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
      break;
    default:
      return false;
  }
  InstId a = through(m.operand(root, 0)), b = through(m.operand(root, 1));
  return (a == p[0] && b == p[1]) || (a == p[1] && b == p[0]);
}

// Does it change something each time it is used?
bool counts_each_time(const Universe& u, Opcode op, const Value& init) {
  ElementType t = u[init.shape].type;
  if (op != Opcode::Add && op != Opcode::Multiply && op != Opcode::Xor) return false;
  if (is_complex(t)) return load_complex(t, init.bytes()) != std::complex<double>(op == Opcode::Multiply ? 1 : 0);
  double x = is_float(t) ? load_double(t, init.bytes()) : static_cast<double>(load_int(t, init.bytes()));
  return x != (op == Opcode::Multiply ? 1 : 0);
}

std::optional<Value> claimed_unique(const Module& m, InstId i, std::span<const Value> ops, int which, int64_t* open) {
  size_t count = ops.size() / 2;
  IndexRows rows = rows_of(m, i, ops[count]);
  std::map<std::vector<int64_t>, std::vector<size_t>> same;
  for (size_t r = 0; r < rows.numbers.size(); ++r) same[rows.numbers[r]].push_back(r);
  std::vector<Value> others(ops.begin(), ops.end());
  int64_t twice = 0;
  if (which >= 2) others = reordered_updates(m, i, ops, which - 2);
  for (const auto& [numbers, list] : same) {
    if (list.size() < 2) continue;
    twice += static_cast<int64_t>(list.size());
    // The first alone, the last alone.
    for (size_t k = 0; which < 2 && k < list.size(); ++k)
      if (k != (which == 0 ? 0 : list.size() - 1)) set_row(rows, list[k], others[count], nullptr);
  }
  if (!twice) return std::nullopt;
  if (open) *open = twice;
  return again(m, i, std::move(others));
}

std::optional<Value> claimed_sorted(const Module& m, InstId i, std::span<const Value> ops, int which, int64_t* open) {
  bool gather = m.op(i) == Opcode::Gather;
  size_t at = gather ? 1 : ops.size() / 2;
  IndexRows rows = rows_of(m, i, ops[at]);
  std::vector<Value> others(ops.begin(), ops.end());
  std::vector<size_t> behind;
  size_t largest = 0;
  for (size_t r = 1; r < rows.numbers.size(); ++r) {
    if (rows.numbers[r] >= rows.numbers[largest]) {
      largest = r;
      continue;
    }
    behind.push_back(r);
    set_row(rows, r, others[at],
            which == 0 && !gather ? nullptr
            : which <= 1          ? &rows.numbers[largest]
                                  : &rows.numbers[0]);
  }
  if (behind.empty()) return std::nullopt;
  if (open) *open = static_cast<int64_t>(behind.size());
  return again(m, i, std::move(others));
}

// A reduction in two halves, the initial value taken for each of them and where they meet.
std::optional<Value> in_halves(const Module& m, InstId i, std::span<const Value> ops, const Value& v) {
  Universe& u = m.u();
  size_t count = ops.size() / 2;
  const Dims& dims = m.attrs(i).ints(Attr::dimensions);
  const Shape in = u[ops[0].shape];
  if (dims.empty() || !ops[0].sizes.empty()) return std::nullopt;
  auto over = static_cast<size_t>(dims[0]);
  int64_t n = in.dims[over];
  if (n < 2) return std::nullopt;
  Value half[2];
  for (int h = 0; h < 2; ++h) {
    std::vector<int64_t> from(static_cast<size_t>(h ? n - n / 2 : n / 2));
    std::iota(from.begin(), from.end(), h ? n / 2 : 0);
    std::vector<Value> part(ops.begin(), ops.end());
    for (size_t w = 0; w < count; ++w) part[w] = taken(u, part[w], over, from);
    half[h] = again(m, i, std::move(part));
  }
  // Both results beside each other, as an operand in which the other reduced dimensions are of size one.
  std::vector<Value> both(ops.begin(), ops.end());
  for (size_t w = 0; w < count; ++w) {
    const Value& x = count == 1 ? half[0] : half[0].elements[w];
    const Value& y = count == 1 ? half[1] : half[1].elements[w];
    Dims joined = in.dims, kept, strides;
    for (int64_t d : dims) joined[static_cast<size_t>(d)] = static_cast<size_t>(d) == over ? 2 : 1;
    Dims out_strides = row_major_strides(joined);
    for (size_t d = 0; d < joined.size(); ++d)
      if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end())
        kept.push_back(joined[d]), strides.push_back(out_strides[d]);
    Value to;
    to.shape = u.array(u[x.shape].type, joined);
    to.data = new_array(u, to.shape);
    int width = storage_bytes(u[x.shape].type);
    Dims from = row_major_strides(kept);
    if (kept.empty()) kept = {1}, from = {1}, strides = {1};
    copy_nd(kept, x.bytes(), from, to.data->data(), strides, width);
    copy_nd(kept, y.bytes(), from, to.data->data() + out_strides[over] * width, strides, width);
    both[w] = std::move(to);
  }
  Value out = again(m, i, std::move(both));
  out.shape = v.shape;
  return out;
}

}  // namespace

Value taken(Universe& u, const Value& v, size_t dim, const std::vector<int64_t>& from) {
  const Shape& s = u[v.shape];
  Dims dims = s.dims, in = row_major_strides(s.dims);
  dims[dim] = static_cast<int64_t>(from.size());
  Value out;
  out.shape = dims == s.dims ? v.shape : u.array(s.type, dims);
  out.data = std::make_shared<std::vector<char>>(static_cast<size_t>(
      std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()) * storage_bytes(s.type)));
  Dims to = row_major_strides(dims), one = dims;
  one[dim] = 1;
  int width = storage_bytes(s.type);
  for (size_t k = 0; k < from.size(); ++k)
    copy_nd(one, v.bytes() + from[k] * in[dim] * width, in,
            out.data->data() + static_cast<int64_t>(k) * to[dim] * width, to, width);
  return out;
}

std::vector<int64_t> another_order(int64_t n, int which) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  std::mt19937 random(static_cast<uint32_t>(which));
  if (which) std::shuffle(order.begin(), order.end(), random);
  return order;
}

int64_t differing(const Universe& u, const Value& a, const Value& b, bool exact) {
  int64_t n = 0;
  for (const OutputComparison& o : compare_results(u, a, b).outputs)
    if (exact || !o.equal) n += o.different;
  return n;
}

std::optional<Value> other_order_of_sort(const Module& m, InstId i, std::span<const Value> ops, const Value& v,
                                         Contract c, int which, int64_t* open) {
  Universe& u = m.u();
  bool lines = c == Contract::kSortNan;
  if (lines && (!nan_has_no_place(m, m.called(i)[0]) ||
                std::none_of(ops.begin(), ops.end(), [&](const Value& o) { return has_nan(u, o); })))
    return std::nullopt;
  auto dim = static_cast<size_t>(m.attrs(i).ints(Attr::dimensions)[0]);
  std::vector<int64_t> order = another_order(u[ops[0].shape].dims[dim], which);
  std::vector<Value> others;
  for (const Value& o : ops) others.push_back(taken(u, o, dim, order));
  Value out = again(m, i, std::move(others));
  if (lines) keep_lines_without_nan(u, ops, dim, v, &out);
  int64_t n = differing(u, out, v, true);
  if (!n && which == 0) return std::nullopt;
  if (open) *open = n;
  return out;
}

std::optional<Value> other_indices(const Module& m, InstId i, std::span<const Value> ops, const Value& v, Contract c,
                                   int which, int64_t* open) {
  if (c == Contract::kUniqueIndices) return claimed_unique(m, i, ops, which, open);
  if (c == Contract::kSortedIndices) return claimed_sorted(m, i, ops, which, open);
  if (plain_combiner(m, m.called(i)[0])) return std::nullopt;  // any order gives the same but for rounding
  Value out = again(m, i, reordered_updates(m, i, ops, which));
  int64_t n = differing(m.u(), out, v, false);
  if (!n && which == 0) return std::nullopt;
  if (open) *open = n;
  return out;
}

std::optional<Value> other_reduction(const Module& m, InstId i, std::span<const Value> ops, const Value& v, Contract c,
                                     int which, int64_t* open) {
  Universe& u = m.u();
  Opcode op = Opcode::Add;
  bool plain = plain_combiner(m, m.called(i)[0], &op);
  if (plain != (c == Contract::kReduceInit)) return std::nullopt;
  if (plain && !counts_each_time(u, op, ops[1])) return std::nullopt;
  std::optional<Value> out;
  if (plain || which % 2) {
    out = in_halves(m, i, ops, v);
  } else {
    std::vector<Value> others(ops.begin(), ops.end());
    for (int64_t d : m.attrs(i).ints(Attr::dimensions))
      for (size_t w = 0; w < ops.size() / 2; ++w)
        others[w] = taken(u, others[w], static_cast<size_t>(d),
                          another_order(u[ops[0].shape].dims[static_cast<size_t>(d)], which / 2));
    out = again(m, i, std::move(others));
  }
  int64_t n = out ? differing(u, *out, v, false) : 0;
  // Of the ways to see it the first counts for the others: see() asks for that one.
  if (!n && which == 0 && !plain)
    if (auto halves = in_halves(m, i, ops, v)) n = differing(u, *halves, v, false);
  if (!n && which == 0) return std::nullopt;
  if (open) *open = n;
  return out;
}

}  // namespace hlo
