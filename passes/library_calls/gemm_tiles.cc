#include "passes/library_calls/gemm_tiles.h"

#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <set>
#include <span>

#include "passes/layout/physical.h"

namespace hlo {
namespace {

constexpr int64_t kMostWarps = 32;
constexpr int64_t kWarpsOfScheduler = 5, kSchedulers = 4;
constexpr int64_t kFewWarps = 2, kWarpsOfGroup = 4;  // at least: where cores would stand idle, and of wgmma

using Hint = std::array<int64_t, 5>;  // rows, columns, sum, stages, warps

// XLA's own lists (triton_hints/*.txtpb, Apache license 2.0, The OpenXLA Authors). Of Hopper's those that need no
// tensor memory accelerator: it is not tried where nothing is measured.
constexpr Hint kHopper[] = {
    {16, 8, 16, 1, 2},   {16, 16, 128, 3, 2}, {16, 32, 64, 3, 2},   {64, 8, 128, 3, 4}, {64, 16, 256, 1, 4},
    {64, 32, 64, 1, 4},  {64, 64, 16, 1, 2},  {64, 64, 32, 1, 2},   {128, 8, 32, 4, 4}, {128, 32, 64, 3, 4},
    {128, 64, 16, 3, 2}, {128, 64, 32, 3, 2}, {128, 256, 64, 3, 8},
};
constexpr Hint kAmpere[] = {
    {16, 8, 128, 1, 2},   {16, 32, 64, 3, 2},   {64, 8, 16, 1, 2},    {64, 8, 128, 3, 4},   {64, 16, 16, 1, 2},
    {64, 64, 16, 1, 2},   {64, 64, 32, 1, 2},   {64, 64, 32, 1, 4},   {64, 64, 32, 3, 4},   {64, 128, 16, 1, 2},
    {64, 128, 16, 1, 2},  {64, 128, 16, 3, 2},  {64, 128, 64, 1, 4},  {64, 128, 64, 3, 4},  {64, 128, 128, 1, 4},
    {128, 8, 32, 4, 2},   {128, 16, 64, 4, 4},  {128, 32, 16, 1, 4},  {128, 32, 64, 3, 4},  {128, 64, 16, 1, 2},
    {128, 64, 16, 3, 2},  {128, 64, 128, 3, 4}, {128, 128, 16, 4, 4}, {128, 128, 32, 4, 4}, {128, 128, 32, 4, 8},
    {128, 256, 16, 4, 8}, {128, 256, 32, 4, 8}, {128, 256, 64, 3, 8}, {128, 256, 64, 4, 8}, {256, 8, 16, 1, 2},
};

// Where XLA has a list for the generation.
std::span<const Hint> hints_of(const GpuTarget& t) {
  if (t.major == 9) return kHopper;
  return t.major == 8 ? std::span<const Hint>(kAmpere) : std::span<const Hint>();
}

int64_t next_power(int64_t x) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(x, 1))));
}
int64_t last_power(int64_t x) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(x, 1))));
}
int64_t in_parts(int64_t size, int64_t part) { return (size + part - 1) / part; }

bool expensive(Opcode op) {
  using enum Opcode;
  switch (op) {
    case Atan2:
    case Cosine:
    case Exp:
    case Expm1:
    case Log:
    case Log1p:
    case Logistic:
    case Power:
    case Rsqrt:
    case Sine:
    case Sqrt:
    case Tan:
    case Tanh:
      return true;
    default:
      return false;
  }
}
bool expensive_above(const Module& m, InstId operand) {
  std::deque<InstId> work{operand};
  std::set<InstId> seen;
  for (; !work.empty(); work.pop_front()) {
    const InstId i = work.front();
    if (!seen.insert(i).second) continue;
    if (expensive(m.op(i))) return true;
    work.insert(work.end(), m.operands(i).begin(), m.operands(i).end());
  }
  return false;
}

class Search {
 public:
  Search(const Module& m, InstId dot, const GpuTarget& target) : target_(target) {
    const AttrSet& a = m.attrs(dot);
    const Shape &lhs = m.shape(m.operand(dot, 0)), &rhs = m.shape(m.operand(dot, 1));
    for (int64_t d : a.ints(Attr::lhs_contracting_dims)) sum_ *= lhs.dims[static_cast<size_t>(d)];
    for (int64_t d : a.ints(Attr::lhs_batch_dims)) batch_ *= lhs.dims[static_cast<size_t>(d)];
    rows_ = lhs.elements_count() / (sum_ * batch_), columns_ = rhs.elements_count() / (sum_ * batch_);
    bits_ = type_bits(lhs.type), result_bits_ = type_bits(m.shape(dot).type);
    lhs_expensive_ = expensive_above(m, m.operand(dot, 0)), rhs_expensive_ = expensive_above(m, m.operand(dot, 1));
    limits();
  }

  GemmTiles first() const {
    const std::set<Hint> wanted = hints();
    for (auto [m, n] : outputs()) {
      const int64_t most = std::max(warps_, std::min(kMostWarps, in_parts(m, 16) * in_parts(n, 8)));
      for (int64_t warps = warps_; warps <= most; warps *= 2)
        for (int64_t k = std::max({k_, warps * target_.threads_per_warp / m, warps * target_.threads_per_warp / n});
             k <= most_sum(m, n); k *= 2)
          for (int64_t stages = 1; stages <= most_stages(m, n, k); ++stages)
            if (wanted.contains({m, n, k, stages, warps})) return {m, n, k, stages, warps};
    }
    const auto [m, n, k, stages, warps] = hints_of(target_)[0];
    return {m, n, k, stages, warps};
  }

 private:
  void limits() {
    const int64_t all_warps = kWarpsOfScheduler * kSchedulers * target_.core_count;
    const int64_t elements = target_.registers_per_block_limit * 32 / result_bits_;
    most_m_ = last_power(static_cast<int64_t>(std::sqrt(static_cast<double>(elements))));
    most_n_ = last_power(elements / most_m_);
    const int64_t rows = next_power(rows_), columns = next_power(columns_);
    if (rows < most_m_) most_m_ = rows, most_n_ = std::min(last_power(elements / rows), columns);
    if (columns < most_n_) most_m_ = std::min(last_power(elements / columns), rows), most_n_ = columns;
    const bool idle = all_warps / kWarpsOfGroup > tiles(most_m_, most_n_), groups = !idle && target_.major >= 9;
    m_ = groups ? 64 : 16;
    most_m_ = std::max(m_, most_m_), most_n_ = std::max(n_, most_n_);
    warps_ = !groups || bits_ >= 32 ? kFewWarps : kWarpsOfGroup;
    k_ = std::max<int64_t>(128 / bits_, 16);
  }
  int64_t tiles(int64_t m, int64_t n) const { return batch_ * in_parts(rows_, m) * in_parts(columns_, n); }
  int64_t shared_sum(int64_t m, int64_t n) const {
    return 8 * target_.shared_memory_per_block_optin / result_bits_ / (m + n);
  }
  int64_t most_sum(int64_t m, int64_t n) const {
    return std::max(k_, std::min(next_power(sum_), last_power(shared_sum(m, n))));
  }
  int64_t most_stages(int64_t m, int64_t n, int64_t k) const {
    return std::min({in_parts(sum_, k), std::max<int64_t>(1, in_parts(shared_sum(m, n), k)), kWarpsOfScheduler});
  }

  // Near to squares where there are any; those that leave cores idle only where there are few.
  std::vector<std::pair<int64_t, int64_t>> outputs() const {
    std::vector<std::pair<int64_t, int64_t>> out;
    for (int64_t m = m_; m <= most_m_; m *= 2) {
      int64_t least = n_, most = most_n_;
      if (m < rows_ && m * 2 >= least && m / 2 <= most) {
        if (!rhs_expensive_) least = std::max(m / 2, least);
        if (!lhs_expensive_) most = std::min(m * 2, most);
      }
      for (int64_t n = least; n <= most; n *= 2) out.push_back({m, n});
    }
    if (out.size() < 24) return out;
    std::erase_if(out, [&](auto tile) { return tiles(tile.first, tile.second) < target_.core_count; });
    if (out.empty()) out.push_back({m_, n_});
    return out;
  }
  std::set<Hint> hints() const {
    std::set<Hint> out;
    for (auto [m, n, k, stages, warps] : hints_of(target_)) {
      const int64_t rows = std::clamp(m, m_, most_m_), columns = std::clamp(n, n_, most_n_);
      out.insert({rows, columns, std::clamp(k, k_, most_sum(rows, columns)), stages, warps});
    }
    return out;
  }

  const GpuTarget& target_;
  int64_t batch_ = 1, rows_ = 1, columns_ = 1, sum_ = 1, bits_ = 32, result_bits_ = 32;
  bool lhs_expensive_ = false, rhs_expensive_ = false;
  int64_t m_ = 16, n_ = 8, k_ = 16, most_m_ = 1, most_n_ = 1, warps_ = 1;  // the least, but for `most`
};

// In front of a bitcast: groups of dimensions of equal product, minor first. What was split into several has the
// product of their tiles, even where these are larger than what they are of.
std::optional<Dims> tiles_before_bitcast(const Shape& from, const Shape& to, const Dims& tiles) {
  auto as_they_lie = [](const Shape& s) {
    Dims order = major_to_minor(s);
    std::reverse(order.begin(), order.end());
    return order;
  };
  const Dims a = as_they_lie(from), b = as_they_lie(to);
  const auto bounds = common_factors(in_order(from.dims, a), in_order(to.dims, b));
  Dims out(from.dims.size(), 1);
  for (size_t g = 1; g < bounds.size(); ++g) {
    const bool one = bounds[g].first - bounds[g - 1].first == 1;
    int64_t tile = 1;
    bool whole = true;  // so far, each minor dimension of the group
    for (size_t k = bounds[g - 1].second; k < bounds[g].second; ++k) {
      const int64_t t = tiles[static_cast<size_t>(b[k])], size = to.dims[static_cast<size_t>(b[k])];
      if (t > 1 && !whole && !one) return std::nullopt;
      whole &= t >= size;
      tile *= t;
    }
    for (size_t k = bounds[g - 1].first; k < bounds[g].first; ++k) {
      const auto d = static_cast<size_t>(a[k]);
      const bool last = k + 1 == bounds[g].first;
      out[d] = last ? tile : std::min(tile, next_power(from.dims[d]));
      if (!last && tile > from.dims[d] && (tile % from.dims[d] || out[d] != from.dims[d])) return std::nullopt;
      tile = std::max<int64_t>(1, tile / out[d]);
    }
  }
  return out;
}

}  // namespace

std::optional<GemmTiles> default_gemm_tiles(const Module& m, InstId dot, const GpuTarget& target) {
  if (hints_of(target).empty()) return std::nullopt;
  return Search(m, dot, target).first();
}

std::optional<Dims> root_tiles(const Module& m, InstId dot, const Dims& tiles) {
  std::vector<InstId> chain{dot};  // to the root
  while (!m.is_root(chain.back())) {
    const InstId at = chain.back();
    if (m.user_count(at) != 1) return std::nullopt;
    const InstId user = m.users(at)[0];
    const bool bitcast = m.op(user) == Opcode::Bitcast || m.op(user) == Opcode::Reshape;
    if (bitcast && m.shape(at).type != m.shape(user).type) return std::nullopt;
    if (!bitcast && m.op(user) != Opcode::Transpose &&
        (!op_info(m.op(user)).elementwise || m.shape(user).dims != m.shape(at).dims))
      return std::nullopt;
    chain.push_back(user);
  }
  const size_t rank = m.shape(chain.back()).dims.size();
  if (rank < 2 || tiles.size() < 2) return std::nullopt;
  Dims found(rank - 2, 1);
  found.insert(found.end(), tiles.end() - 2, tiles.end());
  std::sort(found.begin(), found.end());
  do {
    std::optional<Dims> now = found;
    for (size_t k = chain.size(); now && --k > 0;) {
      const InstId user = chain[k];
      if (m.op(user) == Opcode::Transpose) {
        now = in_order(*now, inverse_permutation(m.attrs(user).ints(Attr::dimensions)));
      } else if (m.op(user) == Opcode::Bitcast || m.op(user) == Opcode::Reshape) {
        now = tiles_before_bitcast(m.shape(chain[k - 1]), m.shape(user), *now);
      }
    }
    if (now == tiles) return found;
  } while (std::next_permutation(found.begin(), found.end()));
  return std::nullopt;
}

}  // namespace hlo
