#include "ir/analysis/fusion/launch.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "ir/analysis/fusion/reduction.h"
#include "ir/leaves.h"

namespace hlo {
namespace {

constexpr int64_t kScatterWarps = 4, kBlockThreads = 128, kMostUnroll = 4, kBanks = 32, kBankBits = 32;

int64_t ceil_of(int64_t a, int64_t b) { return b <= 0 ? a : (a + b - 1) / b; }

struct Bits {
  int64_t least_in = INT64_MAX, least_out = INT64_MAX, most = 0;
};
Bits bits_of(const FusionView& view) {
  const Module& m = view.module();
  Bits b;
  auto see = [&](const Shape& s, int64_t* least) {
    if (!s.is_array()) return;
    *least = std::min<int64_t>(*least, element_bits(s.type));
    b.most = std::max<int64_t>(b.most, element_bits(s.type));
  };
  view.each_read([&](InstId p) { see(m.shape(p), &b.least_in); });
  for (InstId r : view.roots())
    for (ShapeId leaf : leaf_shapes(m.u(), m.shape_id(r))) see(m.u()[leaf], &b.least_out);
  return b;
}

bool slower_unrolled(const FusionView& view) {
  const Module& m = view.module();
  for (InstId i : view.nodes()) switch (m.op(i)) {
      case Opcode::ReduceWindow: {
        int64_t size = 1;
        if (const auto* w = m.attrs(i).get<Window>(Attr::window))
          for (const WindowDim& d : w->dims) size *= d.size;
        if (size > 8) return true;
        break;
      }
      case Opcode::Sort:
      case Opcode::Dot:
        return true;
      case Opcode::Concatenate:
        if (m.operand_count(i) > 10) return true;
        break;
      case Opcode::Reduce:
        if (m.shape(i).is_tuple() && m.shape(i).elements.size() > 1) return true;
        break;
      default:
        break;
    }
  return false;
}

int64_t loop_unroll(const FusionView& view, int64_t elements, const GpuTarget& t, const Bits& bits) {
  int64_t unroll = 1;
  if (elements >= t.threads_per_core_limit * t.core_count && !slower_unrolled(view))
    unroll = std::gcd(elements, kMostUnroll);
  return std::max(unroll, bits.least_out == INT64_MAX ? 1 : ceil_of(8, bits.least_out));
}

Grid by_elements(int64_t elements, int64_t unroll) {
  if (elements <= 1) return {1, 1};
  const int64_t threads_wanted = ceil_of(elements, unroll), threads = std::min(kBlockThreads, threads_wanted);
  return {ceil_of(threads_wanted, threads), threads};
}

// A root that is a dynamic-update-slice of a parameter: threads for what is updated. Everything else that reads the
// parameter must do so where it is written.
std::optional<int64_t> in_place_elements(const FusionView& view) {
  const Module& m = view.module();
  std::optional<int64_t> elements;
  for (InstId root : view.roots()) {
    InstId dus = root;
    while (view.contains(dus) && m.op(dus) == Opcode::Bitcast) dus = view.operand(dus, 0);
    if (!view.contains(dus) || m.op(dus) != Opcode::DynamicUpdateSlice) return std::nullopt;
    for (std::vector<InstId> by = view.users(dus); !by.empty(); by = view.users(by[0]))
      if (by.size() > 1 || m.op(by[0]) != Opcode::Bitcast) return std::nullopt;
    InstId source = view.operand(dus, 0);
    if (view.contains(source) && m.op(source) == Opcode::Bitcast) source = view.operand(source, 0);
    if (view.contains(source)) return std::nullopt;
    const ShapeId update = m.shape_id(view.operand(dus, 1));
    std::vector<InstId> queue = {source};
    std::unordered_set<InstId> seen = {source, dus};
    for (size_t k = 0; k < queue.size(); ++k)
      for (InstId user : view.users(queue[k])) {
        const Opcode op = m.op(user);
        if (op == Opcode::DynamicSlice && view.operand(user, 0) == view.operand(dus, 0) && m.shape_id(user) == update) {
          bool same = m.shape(user).elements_count() == 1;
          if (!same) {
            same = true;
            for (size_t n = 1; n < m.operand_count(user); ++n)
              same &= view.operand(user, n) == view.operand(dus, n + 1);
          }
          if (!same) return std::nullopt;
        } else if (user != dus && (op == Opcode::DynamicUpdateSlice ||
                                   (!is_elementwise(m, user) && op != Opcode::Bitcast && op != Opcode::Tuple))) {
          return std::nullopt;
        }
        if (seen.insert(user).second) queue.push_back(user);
      }
    if (!elements) elements = m.u()[update].elements_count();
  }
  return elements;
}

int64_t vector_size(const Bits& bits, bool complex, int64_t minor, int64_t threads) {
  if (minor % 2 != 0 || 2 * threads > minor || complex || bits.least_in >= 64) return 1;
  if (bits.least_in >= 32 || 4 * threads > minor) return 2;
  return minor % 4 == 0 ? 4 : 2;
}

Grid multi_row(const ReductionShape& r, int64_t vector) {
  const int64_t reduced = std::max<int64_t>(1, r.dims[2] / vector);
  const int64_t kept = r.dims[1] * reduced <= 256 ? r.dims[1] : std::max<int64_t>(1, 256 / reduced);
  return {ceil_of(r.dims[1], kept), kept * reduced};
}

// Of several values (argmax) a row has a warp of its own at least.
Grid row_grid(const ReductionShape& r, bool several, const Bits& bits, bool complex, const GpuTarget& t) {
  const int64_t d2 = r.dims[2];
  if (!several && d2 > 0 && (d2 & (d2 - 1)) == 0) {
    const int64_t least = std::min(bits.least_in, bits.least_out);
    int64_t most = std::max(bits.least_in, bits.least_out);
    if (most == INT64_MAX) most = bits.least_out;
    int64_t v = std::max<int64_t>(1, std::min(d2, 64 / std::max<int64_t>(least, 1)));
    if (most >= 32) v = std::max<int64_t>(1, std::min(128 / most, v));
    if (d2 <= t.threads_per_warp * v) {
      while (v > 1 && multi_row(r, v).blocks < t.core_count) v /= 2;
      if (d2 <= t.threads_per_warp * v) return multi_row(r, v);
    }
  }
  const int64_t warp = t.threads_per_warp;
  const int64_t reduced = std::min<int64_t>(1024, ceil_of(ceil_of(d2, 16), warp) * warp);
  int64_t kept = 1;
  if (2 * reduced <= 256) kept = r.dims[1] * reduced <= 256 ? r.dims[1] : 256 / reduced;
  const int64_t v = vector_size(bits, complex, d2, reduced);
  const int64_t tile = std::min(16 / v, ceil_of(d2 / v, reduced));
  return {ceil_of(r.dims[1], kept) * std::max<int64_t>(1, ceil_of(d2 / v, std::max<int64_t>(1, tile * reduced))),
          kept * reduced};
}

Grid column_grid(const ReductionShape& r, const Bits& bits, bool complex, const GpuTarget& t) {
  const int64_t warp = t.threads_per_warp;
  if (r.dims[2] > 0 && warp % r.dims[2] == 0) {
    int64_t v = vector_size(bits, complex, r.dims[1] * r.dims[2], warp), threads = kBlockThreads;
    int64_t rows = v * threads / r.dims[2];
    for (; rows > warp && v > 1; v /= 2) rows /= 2;
    if (rows > warp) threads /= rows / warp;
    return {r.dims[0], threads};
  }
  const int64_t v = vector_size(bits, complex, r.dims[2], warp);
  return {r.dims[0] * ceil_of(r.dims[2], warp * v), warp * warp};
}

Grid reduction_grid(const FusionView& view, const FusionAnalysis& a, const GpuTarget& t, const Bits& bits) {
  const Module& m = view.module();
  InstId hero = a.heroes[0];
  for (InstId h : a.heroes)
    if (is_kernel_reduction(m, h, t)) {
      hero = h;
      break;
    }
  const bool complex = is_complex(m.shape(m.operand(hero, 0)).type);
  const ReductionShape r = reduction_shape(m, hero);
  return r.row ? row_grid(r, m.shape(hero).is_tuple(), bits, complex, t) : column_grid(r, bits, complex, t);
}

Grid transpose_grid(const FusionView& view, const FusionAnalysis& a, const GpuTarget& t, const Bits& bits) {
  const TiledTranspose& tr = *a.transpose;
  const Module& m = view.module();
  const size_t rank = tr.dims.size();
  Dims tile(rank, 1);
  if (tr.packed) {
    InstId hero = a.heroes[0];
    for (InstId h : a.heroes)
      if (tiled_transpose(m, h)) hero = h;
    if (auto packed = packed_tiles(tr.dims, tr.permutation, element_bits(m.shape(hero).type))) tile = *packed;
    int64_t blocks = 1;
    for (size_t k = 0; k < rank; ++k) blocks *= ceil_of(tr.dims[k], tile[k]);
    return {blocks, kBlockThreads};
  }
  const bool minor_stays = tr.permutation[rank - 1] == static_cast<int64_t>(rank) - 1;
  // Of the result: the minor dimension and the one that was minor in the operand (one further in where that stays).
  const size_t to = minor_stays ? rank - 2 : rank - 1;
  size_t from = to;
  for (size_t k = 0; k < rank; ++k)
    if (tr.permutation[k] == static_cast<int64_t>(to)) from = k;
  auto blocks_of = [&](int64_t side) {
    int64_t blocks = 1;
    for (size_t k = 0; k < rank; ++k) {
      const int64_t size = k == to || k == from ? side : minor_stays && k == rank - 1 ? tr.dims[k] : 1;
      blocks *= ceil_of(tr.dims[k], size);
    }
    return blocks;
  };
  for (int64_t v = 4 * 8 / std::max<int64_t>(bits.most, 8); v > 1; v /= 2) {
    const bool divides = tr.dims[to] % v == 0 && tr.dims[from] % v == 0;
    const int64_t blocks = blocks_of(32 * v);
    if (divides && blocks * kBlockThreads >= v * v * t.core_count * t.threads_per_core_limit &&
        tr.shared_bytes * v * v <= t.shared_memory_per_block)
      return {blocks, kBlockThreads};
  }
  return {blocks_of(32), kBlockThreads};
}

// Threads by updates; where their indices are sorted and come again, warps by indices, which sum up before they write.
Grid scatter_grid(const FusionView& view, const FusionAnalysis& a, const GpuTarget& t, const Bits& bits) {
  const Module& m = view.module();
  const InstId root = a.roots[0];
  const size_t n = (m.operand_count(root) - 1) / 2;
  const Shape &updates = m.shape(m.operand(root, n + 1)), &out = m.shape(m.operand(root, 0));
  const int64_t slices = updates.dims.empty() ? 1 : updates.dims[0], most = kScatterWarps * t.core_count;
  int64_t slice = 1;
  for (size_t d = 1; d < updates.dims.size(); ++d) slice *= updates.dims[d];
  if (m.attrs(root).flag(Attr::indices_are_sorted) && !m.attrs(root).flag(Attr::unique_indices) && slices > most) {
    const Shape& indices = m.shape(m.operand(root, n));
    const int64_t length = indices.rank() > 1 ? indices.dims[1] : 1, vector = 128 / element_bits(indices.type);
    int64_t possible = 1;
    for (size_t d = 0; d < static_cast<size_t>(length) && d < out.dims.size() && d + 1 < updates.dims.size(); ++d)
      possible *= out.dims[d] - updates.dims[d + 1] + 1;
    int64_t of_warp = ceil_of(slices, std::max(most, possible));
    if (length == 1 && of_warp > vector) of_warp = ceil_of(of_warp, vector) * vector;
    return {ceil_of(slices, of_warp * kScatterWarps), kScatterWarps * t.threads_per_warp};
  }
  const int64_t elements = updates.elements_count();
  Grid g = by_elements(elements, std::gcd(slice, loop_unroll(view, elements, t, bits)));
  g.threads = ceil_of(g.threads, t.threads_per_warp) * t.threads_per_warp;
  return g;
}

}  // namespace

std::optional<Dims> packed_tiles(const Dims& dims, const Dims& permutation, int64_t bits) {
  if (bits >= kBankBits || dims.size() < 2) return std::nullopt;
  const size_t rank = dims.size();
  // From [T2, A, T1] in memory to [T1, A, T2]; a minor dimension that stays behind both must be 1.
  if (permutation[rank - 1] == static_cast<int64_t>(rank) - 1) return std::nullopt;
  const int64_t vector = kBankBits / bits, side = kBanks * vector;
  // T2 is the result's minor dimension, T1 the operand's.
  const size_t t2 = rank - 1;
  size_t t1 = 0;
  for (size_t k = 0; k < rank; ++k)
    if (permutation[k] == static_cast<int64_t>(rank) - 1) t1 = k;
  // A: the dimension in front of the minor one where it stays in its place.
  const bool has_a = rank >= 3 && permutation[rank - 2] == static_cast<int64_t>(rank) - 2;
  const int64_t dim_a = has_a ? dims[rank - 2] : 1;
  const int64_t tile1 = std::min(dims[t1], side), tile_a = std::min(dim_a, side / std::max<int64_t>(tile1, 1)),
                tile2 = std::min(dims[t2], side);
  const int64_t rows = tile2, columns = tile_a * tile1, least = 10 * vector;
  if (columns < least || rows < least || rows % vector != 0 || columns % vector != 0 || dims[t2] % tile2 % vector != 0)
    return std::nullopt;
  Dims tiles(rank, 1);
  tiles[t1] = tile1, tiles[t2] = tile2;
  if (has_a) tiles[rank - 2] = tile_a;
  return tiles;
}

Grid launch_grid(const FusionView& view, const FusionAnalysis& a, const GpuTarget& t) {
  const Module& m = view.module();
  const Bits bits = bits_of(view);
  switch (a.kind) {
    case EmitterKind::kReduction:
      return reduction_grid(view, a, t, bits);
    case EmitterKind::kTranspose:
      return transpose_grid(view, a, t, bits);
    case EmitterKind::kConcatenate: {
      const InstId hero = a.heroes[0];
      const Dims& d = m.attrs(hero).ints(Attr::dimensions);
      const size_t dim = d.empty() ? 0 : static_cast<size_t>(d[0]);
      int64_t largest = 0, elements = 0, unroll = 0;
      for (InstId o : m.operands(hero)) {
        const Shape& s = m.shape(o);
        if (s.dims[dim] > largest || elements == 0) largest = s.dims[dim], elements = s.elements_count();
        unroll = std::gcd(unroll, s.dims[dim]);
      }
      unroll = std::gcd(unroll, loop_unroll(view, elements, t, bits));
      return by_elements(elements, std::max<int64_t>(unroll, 1));
    }
    case EmitterKind::kScatter:
      return scatter_grid(view, a, t, bits);
    default:
      break;
  }
  if (auto update = in_place_elements(view)) return by_elements(*update, 1);
  const int64_t elements = first_elements(m, a.roots[0]);
  return by_elements(elements, loop_unroll(view, elements, t, bits));
}

}  // namespace hlo
