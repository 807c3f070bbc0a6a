// Behind the partitioner (xla/service/spmd/spmd_partitioner.cc) each device has a part of what the stage before has
// whole. Instructions have new names, the metadata of what they were, and the sharding by which they were divided.
#include <algorithm>

#include "ir/base/hash.h"
#include "ir/query/source_lines.h"
#include "parser/parser.h"
#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/elements/elements_run.h"
#include "replay/judge/chosen/elements/sums.h"
#include "replay/judge/chosen/pair/pair.h"

namespace hlo {
namespace {

// Candidates of one origin.
constexpr size_t kMostOfOrigin = 6;

// Messages are made for what gave the value before: any operation of that name.
bool is_message(const Module& m, InstId i) {
  return op_info(m.op(i)).cls == OpClass::Collective || m.op(i) == Opcode::DynamicSlice;
}

uint64_t origin_of(const Module& m, InstId i, bool of_any) {
  const std::string name = op_name_of(m, i);
  if (name.empty()) return 0;
  // By what the frames are: their numbers are other ones behind a way through MLIR.
  uint64_t frame = 0;
  for (const SourceLine& l : source_stack(m, i))
    for (uint64_t part :
         {hash_bytes(l.file), hash_bytes(l.function), static_cast<uint64_t>(l.line), static_cast<uint64_t>(l.column)})
      frame = hash_combine(frame, part);
  return hash_combine(hash_combine(hash_bytes(name), frame), of_any ? UINT64_MAX : static_cast<uint64_t>(m.op(i)));
}

ShapeId leaf_shape(const Module& m, InstId i, size_t leaf) {
  std::vector<ShapeId> leaves;
  add_leaf_shapes(m.u(), m.shape_id(i), &leaves);
  return leaf < leaves.size() ? leaves[leaf] : ShapeId();
}

std::optional<ShardTiling> tiling_at(const Module& m, InstId i, size_t leaf, size_t rank) {
  const std::string_view text = m.u().text(m.attrs(i).text(Attr::sharding));
  if (text.empty()) return {};
  const Sharding all = parse_sharding(text);
  const Sharding* s = leaf_sharding(all, leaf);
  if (!s ||
      std::any_of(s->last.begin(), s->last.end(), [](Sharding::Sub t) { return t != Sharding::Sub::kReplicated; }))
    return {};
  return shard_tiling(*s, rank);
}

// `region_0.5_spmd` was region_0.5.
std::string_view undivided(std::string_view name) {
  constexpr std::string_view kSuffix = "_spmd";
  const size_t at = name.find(kSuffix);
  return at == std::string_view::npos ? name : name.substr(0, at);
}

}  // namespace

void ByElements::Pair::divide() {
  divided_ = true;
  pair_by_origin();
}

void ByElements::Pair::pair_by_origin() {
  by_origin_ = true;
  for (const ExprVisit& v : s_.before.visits)
    for (const bool of_any : {false, true})
      if (const uint64_t origin = origin_of(*s_.before.wide, v.inst, of_any)) origins_[origin].push_back(&v);
}

namespace {

// Along one dimension as many parts as there are devices, in their order: what is tried where no sharding stands. Of
// one shape are sums of what each device has, too, which are no parts.
std::optional<ShardTiling> plain_tiling(const Dims& whole, const Dims& local, int64_t devices) {
  if (whole.size() != local.size()) return {};
  ShardTiling out;
  out.counts.assign(whole.size(), 1);
  size_t divided = whole.size();
  for (size_t d = 0; d < whole.size(); ++d) {
    if (whole[d] == local[d]) continue;
    if (divided != whole.size() || whole[d] != local[d] * devices) return {};
    divided = d;
  }
  if (divided == whole.size()) return {};
  out.counts[divided] = devices;
  for (int64_t k = 0; k < devices; ++k) {
    out.place.emplace_back(whole.size(), 0);
    out.place.back()[divided] = k;
  }
  return out;
}

}  // namespace

// The part by that sharding of `whole`, of which only the number of elements is known.
ExprId ByElements::Pair::part_like(InstId by, size_t leaf, ExprId whole) {
  const ShapeId local = leaf_shape(*wide_, by, leaf);
  if (!local.valid()) return kNoExpr;
  const Dims& dims = wide_->u()[local].dims;
  std::optional<ShardTiling> tiling = tiling_at(*wide_, by, leaf, dims.size());
  if (!tiling) tiling = plain_tiling(shape_of(whole).dims, dims, s_.all.devices().devices());
  if (!tiling) tiling = ShardTiling{Dims(dims.size(), 1), {}};
  Dims even = dims;
  for (size_t d = 0; d < even.size(); ++d) even[d] *= tiling->counts[d];
  const Shape& own = shape_of(whole);
  const int64_t count = wide_->u()[wide_->u().array(own.type, even)].elements_count();
  return s_.all.part(whole, count == own.elements_count() ? even : own.dims, local, *tiling);
}

// What each device has of `whole`, array `leaf` of what `was` gives in the stage before, by the sharding of either;
// `plain`: or as many parts as there are devices.
ExprId ByElements::Pair::part_of_leaf(InstId now, InstId was, size_t leaf, ExprId whole, bool plain) {
  const Module& before = *s_.before.wide;
  const ShapeId local = leaf_shape(*wide_, now, leaf), all = leaf_shape(before, was, leaf);
  if (!local.valid() || !all.valid()) return kNoExpr;
  const Dims &dims = wide_->u()[local].dims, &from = before.u()[all].dims;
  std::optional<ShardTiling> tiling = tiling_at(*wide_, now, leaf, dims.size());
  if (!tiling) tiling = tiling_at(before, was, leaf, dims.size());
  if (!tiling && plain) tiling = plain_tiling(from, dims, s_.all.devices().devices());
  return tiling ? s_.all.part(whole, from, local, *tiling) : kNoExpr;
}

std::vector<ByElements::Pair::Counterpart> ByElements::Pair::of_origin(ExprId e, InstId by, const Expr::View* order) {
  std::vector<Counterpart> out;
  auto at = origins_.find(origin_of(*wide_, by, false));
  if (at == origins_.end() && (!divided_ || is_message(*wide_, by))) at = origins_.find(origin_of(*wide_, by, true));
  if (at == origins_.end()) return out;
  const std::optional<Expr::View> back = order ? turned_back(*order) : std::nullopt;
  if (order && !back && divided_) return out;
  const uint32_t leaf = s_.all[e].leaf;
  for (const ExprVisit* v : at->second) {
    std::vector<ExprId> leaves;
    v->value.leaves(&leaves);
    const ShapeId local = leaf_shape(*wide_, by, leaf), whole = leaf_shape(*s_.before.wide, v->inst, leaf);
    if (leaf >= leaves.size() || !local.valid() || !whole.valid()) continue;
    const Dims& dims = wide_->u()[local].dims;
    Counterpart c{leaves[leaf], wide_->u()[whole].dims};
    c = divided_ ? Counterpart{part_of_leaf(by, v->inst, leaf, leaves[leaf], true), dims}
                 : lined_up(e, std::move(c), dims, order);
    if (c.e == kNoExpr || !comparable(e, c.e)) continue;
    if (back && divided_) c = {ordered(s_.all, c.e, *back, s_.all[e].shape), shape_of(e).dims};
    if (std::none_of(out.begin(), out.end(), [&](const Counterpart& o) { return o.e == c.e; }))
      out.push_back(std::move(c));
  }
  likest_first(e, &out, kMostOfOrigin);
  return out;
}

const LoopVisit* ByElements::Pair::loop(InstId loop) {
  const Module& before = *s_.before.wide;
  const auto body = [](const Module& m, InstId i) { return m.comp_name(m.attrs(i).comp(Attr::body)); };
  const std::string_view name = undivided(body(*wide_, loop));
  const std::vector<LoopVisit>& all = s_.before.loops_met;
  // What a trip is found to be last is what it is.
  for (size_t k = all.size(); k-- > 0;)
    if (undivided(body(before, all[k].loop)) == name) return &all[k];
  return nullptr;
}

ExprId ByElements::Pair::part_of(InstId loop, size_t place, ExprId whole) {
  return part_of_leaf(loop, this->loop(loop)->loop, place, whole, false);
}

bool ByElements::Pair::is_same(ExprId e, ExprId part) {
  ExprId same = kNoExpr;
  ElementsFinding told;
  return e == part || (comparable(e, part) && s_.spent < s_.most_now &&
                       compare(e, {part}, shape_of(e).dims, true, &same, &told) == Answer::kSame);
}

// Of output `k` what each device has.
ExprId ByElements::Pair::output_part(size_t k, ExprId whole) {
  const Module& before = *s_.before.wide;
  return part_of_leaf(wide_->comp(wide_->entry()).root, before.comp(before.entry()).root, k, whole, false);
}

}  // namespace hlo
