#include "ir/analysis/fusion/fusion_analysis.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/fusion/launch.h"
#include "ir/analysis/fusion/reduction.h"
#include "ir/backend_config.h"

namespace hlo {

bool keeps_order(const Module& m, InstId transpose) {
  const Shape &out = m.shape(transpose), &in = m.shape(m.operand(transpose, 0));
  const Dims& p = m.attrs(transpose).ints(Attr::dimensions);
  // Dimensions of size 1 may lie anywhere.
  auto order = [](const Shape& s) {
    return s.has_layout && s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major
                                                                           : default_minor_to_major(s.rank());
  };
  Dims a, b;
  for (int64_t d : order(in))
    if (in.dims[static_cast<size_t>(d)] != 1) a.push_back(d);
  for (int64_t d : order(out))
    if (out.dims[static_cast<size_t>(d)] != 1) b.push_back(p[static_cast<size_t>(d)]);
  return a == b;
}

namespace {

Dims physical(const Shape& s) {
  Dims out;
  const Dims order = s.has_layout && s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major
                                                                                     : default_minor_to_major(s.rank());
  for (size_t k = order.size(); k-- > 0;) out.push_back(s.dims[static_cast<size_t>(order[k])]);
  return out;
}

// Does the copy of elements from one to the other leave each byte where it is?
bool same_bytes(const Shape& a, const Shape& b) {
  Dims x = physical(a), y = physical(b);
  return x == y && a.layout.minor_to_major == b.layout.minor_to_major;
}

// Passes elements on one by one: heroes are looked for behind it.
bool is_intermediate(const Module& m, InstId i, size_t most_operands) {
  const size_t n = m.operand_count(i);
  if (n == 0 || n > most_operands) return false;
  switch (m.op(i)) {
    case Opcode::Copy:
      return m.shape_id(i) == m.shape_id(m.operand(i, 0));
    case Opcode::Bitcast:
      return true;
    case Opcode::Reshape:
      return same_bytes(m.shape(i), m.shape(m.operand(i, 0))) ||
             (!has_other_layout(m.shape(i)) && !has_other_layout(m.shape(m.operand(i, 0))));
    case Opcode::Transpose:
      return keeps_order(m, i);
    default:
      return is_elementwise(m, i);
  }
}

using Predicate = std::function<bool(InstId)>;

// The only such instruction that the root's elements come from one by one.
InstId search_hero(const FusionView& view, InstId from, const Predicate& wanted) {
  const Module& m = view.module();
  std::vector<InstId> queue = {from};
  std::unordered_set<InstId> seen = {from};
  InstId hero;
  for (size_t k = 0; k < queue.size(); ++k) {
    const InstId i = queue[k];
    if (wanted(i)) {
      if (hero.valid()) return InstId();
      hero = i;
      continue;
    }
    if (!is_intermediate(m, i, 3)) continue;
    for (size_t n = 0; n < m.operand_count(i); ++n)
      if (InstId o = view.operand(i, n); view.contains(o) && seen.insert(o).second) queue.push_back(o);
  }
  if (!hero.valid()) return hero;
  // What stands between it and any root must pass elements on as well.
  queue = {view.users(hero)};
  seen = std::unordered_set<InstId>(queue.begin(), queue.end());
  for (size_t k = 0; k < queue.size(); ++k) {
    if (!is_intermediate(m, queue[k], 3)) return InstId();
    for (InstId user : view.users(queue[k]))
      if (seen.insert(user).second) queue.push_back(user);
  }
  return hero;
}

}  // namespace

InstId fusion_hero(const FusionView& view, InstId root) {
  const Module& m = view.module();
  InstId at = root;
  while (is_intermediate(m, at, 1) && view.contains(view.operand(at, 0))) at = view.operand(at, 0);
  if (InstId t = search_hero(view, at, [&](InstId i) { return tiled_transpose(m, i).has_value(); }); t.valid())
    return t;
  if (InstId c = search_hero(view, at, [&](InstId i) { return m.op(i) == Opcode::Concatenate; }); c.valid()) return c;
  return m.op(at) == Opcode::Reduce ? at : root;
}

bool is_reduction_hero(const Module& m, InstId root, InstId hero, const GpuTarget& t) {
  return is_kernel_reduction(m, hero, t) && (root == hero || is_race_free(reduction_shape(m, hero)));
}

bool passes_elements(const Module& m, InstId i) { return is_intermediate(m, i, 1); }

namespace {

bool equivalent(const TiledTranspose& a, const TiledTranspose& b) {
  return a.dims == b.dims && a.permutation == b.permutation;
}

EmitterKind kind_of(const Module& m, FusionAnalysis* a, const GpuTarget& t) {
  for (size_t n = 0; n < a->roots.size(); ++n) {
    if (!is_reduction_hero(m, a->roots[n], a->heroes[n], t)) continue;
    const InstId first = a->heroes[n];
    const int64_t read = m.shape(m.operand(first, 0)).elements_count();
    bool fits = true;
    for (size_t k = 0; k < a->roots.size(); ++k)
      fits &= is_reduction_hero(m, a->roots[k], a->heroes[k], t)
                  ? reduction_shape(m, a->heroes[k]) == reduction_shape(m, first)
                  : first_elements(m, a->roots[k]) == read;
    if (fits) return EmitterKind::kReduction;
    break;
  }
  bool transposes = true;
  for (size_t n = 0; n < a->roots.size(); ++n) {
    auto one = tiled_transpose(m, a->heroes[n]);
    if (one && !a->transpose)
      a->transpose = one;
    else if (one && !equivalent(*a->transpose, *one))
      transposes = false;
  }
  if (a->transpose && transposes) {
    for (size_t n = 0; n < a->roots.size(); ++n)
      if (!tiled_transpose(m, a->heroes[n])) {
        int64_t count = 1;
        for (int64_t d : a->transpose->dims) count *= d;
        transposes &= first_elements(m, a->roots[n]) == count;
      }
    if (transposes) return EmitterKind::kTranspose;
  }
  if (a->roots.size() > 1) return EmitterKind::kLoop;
  if (m.op(a->roots[0]) == Opcode::Scatter) return EmitterKind::kScatter;
  if (m.op(a->roots[0]) == Opcode::Sort) return EmitterKind::kSort;
  if (m.op(a->heroes[0]) == Opcode::Concatenate && m.operand_count(a->heroes[0]) <= 4 &&
      !m.shape(a->roots[0]).is_tuple())
    return EmitterKind::kConcatenate;
  return EmitterKind::kLoop;
}

// Neighbours that stay neighbours become one dimension, those of size 1 vanish; by the order in memory.
void normalize(const Module& m, InstId transpose, Dims* dims, Dims* permutation) {
  const Shape &out = m.shape(transpose), &in = m.shape(m.operand(transpose, 0));
  const Dims& p = m.attrs(transpose).ints(Attr::dimensions);
  auto majors = [](const Shape& s) {
    Dims order = s.has_layout && s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major
                                                                                 : default_minor_to_major(s.rank());
    std::reverse(order.begin(), order.end());
    return order;
  };
  // Where each dimension of the operand lies, among those that are not 1.
  std::vector<int64_t> place(in.dims.size(), -1);
  int64_t next = 0;
  for (int64_t d : majors(in))
    if (in.dims[static_cast<size_t>(d)] != 1) place[static_cast<size_t>(d)] = next++;
  Dims sizes, from;
  for (int64_t d : majors(out)) {
    if (out.dims[static_cast<size_t>(d)] == 1) continue;
    const int64_t source = place[static_cast<size_t>(p[static_cast<size_t>(d)])];
    if (!from.empty() && from.back() + 1 == source) {
      sizes.back() *= out.dims[static_cast<size_t>(d)];
      from.back() = source;
    } else {
      sizes.push_back(out.dims[static_cast<size_t>(d)]);
      from.push_back(source);
    }
  }
  Dims sorted = from;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t& f : from) f = std::lower_bound(sorted.begin(), sorted.end(), f) - sorted.begin();
  *dims = std::move(sizes), *permutation = std::move(from);
}

}  // namespace

std::string_view emitter_text(EmitterKind kind) {
  constexpr std::string_view kText[] = {"loop",    "reduction", "transpose", "concatenate",
                                        "scatter", "sort",      "triton",    "custom"};
  return kText[static_cast<size_t>(kind)];
}

Dims normalized_permutation(const Module& m, InstId transpose) {
  Dims dims, permutation;
  normalize(m, transpose, &dims, &permutation);
  return permutation;
}

std::optional<TiledTranspose> tiled_transpose(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Transpose) return std::nullopt;
  TiledTranspose t;
  normalize(m, i, &t.dims, &t.permutation);
  const size_t rank = t.dims.size();
  if (rank < 2) return std::nullopt;
  const int64_t bits = element_bits(m.shape(i).type), bytes = (bits + 7) / 8;
  Dims in(rank);
  for (size_t k = 0; k < rank; ++k) in[static_cast<size_t>(t.permutation[k])] = t.dims[k];
  const bool minor_stays = t.permutation[rank - 1] == static_cast<int64_t>(rank) - 1;
  if (packed_tiles(t.dims, t.permutation, bits)) {
    t.packed = true;
    t.shared_bytes = 32 * 4 * 32 * (32 / bits);
    return t;
  }
  if (minor_stays) {
    const int64_t minor = t.dims[rank - 1];
    if (bits * minor > 64 || bits * minor * std::min(in[rank - 2], t.dims[rank - 2]) < 128) return std::nullopt;
    t.shared_bytes = 32 * 33 * bytes * minor;
    return t;
  }
  const int64_t a = in[rank - 1], b = t.dims[rank - 1];
  if ((a < 16 || b < 16) && (bits < 8 || a < 8 || b < 8 || a * b < 8192)) return std::nullopt;
  t.shared_bytes = 32 * 33 * bytes;
  return t;
}

FusionAnalysis analyze_fusion(const FusionView& view, const GpuTarget& target) {
  FusionAnalysis a;
  const Module& m = view.module();
  a.roots = view.roots();
  for (InstId r : a.roots) a.heroes.push_back(view.contains(r) ? fusion_hero(view, r) : r);
  a.kind = kind_of(m, &a, target);
  a.grid = launch_grid(view, a, target);
  return a;
}

std::string fusion_backend_kind(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Fusion) return "";
  const StrId config = m.attrs(i).text(Attr::backend_config);
  if (!config.valid()) return "";
  // Priority-fusion asks for each pair, mostly of the same few texts, and reading one takes longer than all the rest.
  constexpr size_t kMost = 1024;
  thread_local std::unordered_map<std::string, std::string> known;
  if (known.size() > kMost) known.clear();
  auto [at, fresh] = known.try_emplace(std::string(m.u().text(config)));
  if (fresh) at->second = word(backend_config(at->first, "fusion_backend_config"), "kind", "");
  return at->second;
}
bool is_custom_fusion(const Module& m, InstId i) {
  return m.op(i) == Opcode::Fusion && m.u().text(m.attrs(i).text(Attr::kind)) == "kCustom";
}
bool is_triton_fusion(const Module& m, InstId i) {
  return is_custom_fusion(m, i) && fusion_backend_kind(m, i) == "__triton";
}

bool has_reduction_root(const Module& m, InstId i, const GpuTarget& target) {
  if (m.op(i) != Opcode::Fusion) return is_kernel_reduction(m, i, target);
  FusionView view(m, i);
  for (InstId r : view.roots())
    if (view.contains(r) && is_reduction_hero(m, r, fusion_hero(view, r), target)) return true;
  return false;
}

bool is_input_kernel(const Module& m, InstId i, const GpuTarget& target) {
  return has_reduction_root(m, i, target) || tiled_transpose(m, i) || m.op(i) == Opcode::Scatter;
}

bool moves_minor_dimension(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Copy && m.op(i) != Opcode::Transpose) return false;
  auto minor = [](const Shape& s) -> int64_t {
    const Dims order = s.has_layout && s.layout.minor_to_major.size() == s.dims.size()
                           ? s.layout.minor_to_major
                           : default_minor_to_major(s.rank());
    for (int64_t d : order)
      if (s.dims[static_cast<size_t>(d)] > 1) return d;
    return -1;
  };
  const int64_t in = minor(m.shape(m.operand(i, 0))), out = minor(m.shape(i));
  if (m.op(i) == Opcode::Copy || out < 0) return in != out;
  return m.attrs(i).ints(Attr::dimensions)[static_cast<size_t>(out)] != in;
}

}  // namespace hlo
