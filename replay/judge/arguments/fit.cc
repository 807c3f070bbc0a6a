#include "replay/judge/arguments/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "ir/types/literal.h"

namespace hlo {
namespace {

struct Wish {
  int64_t below = std::numeric_limits<int64_t>::max();  // indices: values in [0, below)
  bool neutral = false;
  Opcode reducer = Opcode::Add;
  bool keys = false;
};

class Follower {
 public:
  Follower(const Module& m, bool keys) : m_(m), u_(m.u()), keys_(keys) {}

  // Where the leaf of that index of `i` goes.
  void follow(InstId i, const Dims& index, Wish* wish) {
    if (seen_[i].size() > 64 || std::find(seen_[i].begin(), seen_[i].end(), index) != seen_[i].end()) return;
    seen_[i].push_back(index);
    for (InstId user : m_.users_copy(i))
      for (size_t k = 0; k < m_.operand_count(user); ++k)
        if (m_.operand(user, k) == i) use(user, k, index, wish);
    if (!m_.is_root(i)) return;
    for (InstId caller : callers()[m_.parent(i).value]) {
      if (m_.op(caller) == Opcode::While && m_.attrs(caller).comp(Attr::condition) == m_.parent(i)) continue;
      follow(caller, index, wish);
      if (m_.op(caller) == Opcode::While) enter(caller, 0, index, wish);
    }
  }

 private:
  const std::vector<std::vector<InstId>>& callers() {
    if (callers_.empty()) callers_ = m_.callers();
    return callers_;
  }
  void enter(InstId caller, size_t operand, const Dims& index, Wish* wish) {
    const std::vector<CompId>& called = m_.called(caller);
    if (m_.op(caller) == Opcode::Conditional) {
      if (operand && operand - 1 < called.size()) follow(m_.comp(called[operand - 1]).params[0], index, wish);
      return;
    }
    for (CompId c : called)
      if (operand < m_.comp(c).params.size()) follow(m_.comp(c).params[operand], index, wish);
  }
  void room(Wish* wish, int64_t size, int64_t slice) {
    wish->below = std::min(wish->below, std::max<int64_t>(size - slice + 1, 1));
  }
  // Operand `k` holds starts of a slice: a scalar a dimension from operand `first` on or, in texts of 2018, all of
  // them.
  void starts(InstId user, size_t k, size_t first, const Dims& dims, const Dims& sizes, Wish* wish) {
    const bool all = m_.shape(m_.operand(user, first)).rank() == 1;
    for (size_t d = 0; d < dims.size() && d < sizes.size(); ++d)
      if (all || d == k - first) room(wish, dims[d], sizes[d]);
  }

  void use(InstId user, size_t k, const Dims& index, Wish* wish) {
    const AttrSet& a = m_.attrs(user);
    Opcode op = m_.op(user);
    auto in = [&](size_t n) -> const Shape& { return m_.shape(m_.operand(user, n)); };
    switch (op) {
      case Opcode::Tuple: {
        Dims inner{static_cast<int64_t>(k)};
        inner.insert(inner.end(), index.begin(), index.end());
        return follow(user, inner, wish);
      }
      case Opcode::GetTupleElement:
        if (!index.empty() && index[0] == a.integer(Attr::index))
          follow(user, Dims(index.begin() + 1, index.end()), wish);
        return;
      case Opcode::Reshape:
      case Opcode::Broadcast:
      case Opcode::Bitcast:
      case Opcode::Copy:
      case Opcode::Transpose:
      case Opcode::Slice:
      case Opcode::Concatenate:
      case Opcode::OptBarrier:
      case Opcode::Reverse:
        return follow(user, index, wish);
      case Opcode::DynamicSlice:
        if (k == 0) return follow(user, index, wish);
        return starts(user, k, 1, in(0).dims, a.ints(Attr::dynamic_slice_sizes), wish);
      case Opcode::DynamicUpdateSlice:
        if (k < 2) return follow(user, index, wish);
        return starts(user, k, 2, in(0).dims, in(1).dims, wish);
      case Opcode::Convert:
        if (is_integral(m_.shape(user).type)) follow(user, index, wish);
        return;
      case Opcode::Gather:
        if (k == 1) {
          const Dims &map = a.ints(Attr::start_index_map), &sizes = a.ints(Attr::slice_sizes);
          for (int64_t d : map) room(wish, in(0).dims[static_cast<size_t>(d)], sizes[static_cast<size_t>(d)]);
        }
        return;
      case Opcode::Scatter:
        if (k == m_.operand_count(user) / 2)
          for (int64_t d : a.ints(Attr::scatter_dims_to_operand_dims))
            room(wish, in(0).dims[static_cast<size_t>(d)], 1);
        return;
      case Opcode::Reduce:
      case Opcode::ReduceWindow:
        if (k >= m_.operand_count(user) / 2) {
          InstId root = m_.comp(m_.called(user)[0]).root;
          wish->neutral = true, wish->reducer = m_.op(root);
        }
        return;
      case Opcode::Sort:
        wish->keys |= keys_ && k == 0;
        return;
      case Opcode::Call:
      case Opcode::Fusion:
      case Opcode::Conditional:
        return enter(user, k, index, wish);
      case Opcode::While:
        enter(user, k, index, wish);
        return follow(user, index, wish);
      default:
        return;
    }
  }

  const Module& m_;
  const Universe& u_;
  bool keys_;
  std::map<InstId, std::vector<Dims>> seen_;
  std::vector<std::vector<InstId>> callers_;
};

void apply(const Universe& u, const Wish& wish, Value& v) {
  const Shape& s = u[v.shape];
  if (!s.is_array()) return;
  int width = storage_bytes(s.type);
  int64_t n = s.elements_count();
  bool number = is_integral(s.type);
  if (number && wish.below != std::numeric_limits<int64_t>::max())
    for (int64_t i = 0; i < n; ++i) {
      char* at = v.mutable_bytes() + i * width;
      int64_t x = load_int(s.type, at) % wish.below;
      store_int(s.type, at, x < 0 ? x + wish.below : x);
    }
  if (wish.neutral && n == 1) {
    char* at = v.mutable_bytes();
    bool high = wish.reducer == Opcode::Minimum || wish.reducer == Opcode::And, low = wish.reducer == Opcode::Maximum,
         one = wish.reducer == Opcode::Multiply;
    if (is_float(s.type)) {
      store_double(s.type, at, high ? INFINITY : low ? -INFINITY : one ? 1.0 : 0.0);
    } else if (number) {
      int bits = type_bits(s.type);
      int64_t top = is_signed_int(s.type) ? static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) : int64_t{-1},
              bottom = is_signed_int(s.type) ? -top - 1 : 0;
      store_int(s.type, at, wish.reducer == Opcode::And ? -1 : high ? top : low ? bottom : one ? 1 : 0);
    } else if (s.type == ElementType::Pred) {
      *at = high || one;
    }
  }
  if (wish.keys && n > 1 && !is_complex(s.type)) {
    // Ranks in place of the values: their order stays, ties are broken by position. Along the last dimensions too
    // long for the type it stays as it is.
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    const char* from = v.bytes();
    std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
      return load_double(s.type, from + x * width) < load_double(s.type, from + y * width);
    });
    int exact = is_float(s.type) ? (float_format(s.type) ? float_format(s.type)->mantissa_bits + 1 : 24)
                                 : type_bits(s.type) - is_signed_int(s.type);
    if (exact >= 62 || n <= int64_t{1} << exact) {
      char* to = v.mutable_bytes();
      for (size_t rank = 0; rank < order.size(); ++rank)
        store_scalar(s.type, to + order[rank] * width, static_cast<int64_t>(rank));
    }
  }
}

}  // namespace

void fit_arguments(const Module& m, bool unique_keys, std::vector<Value>* arguments) {
  const Universe& u = m.u();
  m.ensure_users();
  const std::vector<InstId>& params = m.comp(m.entry()).params;
  for (size_t p = 0; p < params.size(); ++p) {
    auto leaf = [&](auto&& self, Value& v, const Dims& index) -> void {
      for (size_t k = 0; k < v.elements.size(); ++k) {
        Dims inner = index;
        inner.push_back(static_cast<int64_t>(k));
        self(self, v.elements[k], inner);
      }
      if (u[v.shape].is_tuple()) return;
      Wish wish;
      Follower(m, unique_keys).follow(params[p], index, &wish);
      apply(u, wish, v);
    };
    leaf(leaf, (*arguments)[p], {});
  }
}

void fit_value(const Module& m, InstId i, Value* value) {
  m.ensure_users();
  Wish wish;
  Follower(m, false).follow(i, {}, &wish);
  apply(m.u(), wish, *value);
}

}  // namespace hlo
