#include "replay/judge/chosen/elements/messages.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "ir/base/hash.h"
#include "ir/eval/evaluator.h"
#include "ir/sharding/collective_groups.h"
#include "parser/parser.h"
#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/elements/elements_run.h"
#include "replay/judge/chosen/elements/sums.h"

namespace hlo {
namespace {

int64_t at_least_one(int64_t n) { return std::max<int64_t>(n, 1); }

// Devices in no group are one of their own.
bool take_groups(const Module& m, InstId i, DeviceMessage* to, std::string* why) {
  const int64_t replicas = at_least_one(m.config().replica_count), partitions = at_least_one(m.config().num_partitions);
  CollectiveGroups all = collective_groups(m, i, replicas, partitions);
  if (!all.why.empty()) {
    *why = all.why;
    return false;
  }
  const auto count = static_cast<size_t>(replicas * partitions);
  to->group_of.assign(count, UINT32_MAX), to->place.assign(count, 0);
  to->groups = std::move(all.groups);
  for (size_t g = 0; g < to->groups.size(); ++g)
    for (size_t k = 0; k < to->groups[g].size(); ++k) {
      const auto device = static_cast<size_t>(to->groups[g][k]);
      if (to->group_of[device] != UINT32_MAX) {
        *why = "its replica groups name a device twice";
        return false;
      }
      to->group_of[device] = static_cast<uint32_t>(g), to->place[device] = static_cast<uint32_t>(k);
    }
  for (size_t d = 0; d < count; ++d)
    if (to->group_of[d] == UINT32_MAX) {
      to->group_of[d] = static_cast<uint32_t>(to->groups.size());
      to->groups.push_back({static_cast<int64_t>(d)});
    }
  return true;
}

void take_from(DeviceMessage* to, size_t device, int64_t source, size_t operand) {
  to->source[device] = source, to->operand[device] = static_cast<uint32_t>(operand);
}

bool take_broadcast(DeviceMessage* to, const CollectiveGroups& written) {
  const size_t count = to->group_of.size();
  to->kind = DeviceMessage::kTake;
  to->source.assign(count, -1), to->operand.assign(count, 0);
  for (const DeviceDims& g : written.groups)
    for (int64_t d : g) take_from(to, static_cast<size_t>(d), g[0], 0);
  return true;
}

bool take_permute(const Module& m, InstId i, DeviceMessage* to, std::string* why) {
  if (m.operand_count(i) != 1 || m.attrs(i).has(Attr::slice_sizes)) {
    *why = "an in-place collective-permute, or one of several arrays";
    return false;
  }
  PermuteSources p =
      permute_sources(m, i, at_least_one(m.config().replica_count), at_least_one(m.config().num_partitions));
  if (!p.why.empty()) {
    *why = p.why;
    return false;
  }
  to->kind = DeviceMessage::kTake;
  to->source = std::move(p.of);
  to->operand.assign(to->source.size(), 0);
  return true;
}

// In front of a dimension and behind it all are one.
Dims joined_around(const Dims& dims, size_t dim) {
  Dims out{1, dims[dim], 1};
  for (size_t d = 0; d < dims.size(); ++d)
    if (d != dim) out[d < dim ? 0 : 2] *= dims[d];
  return out;
}

// Do the sizes along `dim` make up the result, each group as large as the others?
bool sizes_fit(const DeviceMessage& x, int64_t less, int64_t more) {
  return std::all_of(x.groups.begin(), x.groups.end(),
                     [&](const DeviceDims& g) { return less * static_cast<int64_t>(g.size()) == more; });
}

}  // namespace

DeviceMessage::Element DeviceMessage::element(int64_t device, int64_t index) const {
  if (kind == kTake) {
    const auto d = static_cast<size_t>(device);
    return {operand[d], source[d], source[d] < 0 ? -1 : index};
  }
  Dims at(to.size());
  for (size_t d = to.size(); d-- > 0; index /= to[d]) at[d] = index % to[d];
  int64_t owner = device;
  if (kind == kPart) {
    const Dims& start = starts[static_cast<size_t>(device)];
    for (size_t d = 0; d < at.size(); ++d)
      if ((at[d] += start[d]) >= from[d]) return {0, device, -1};
  } else if (kind == kGather) {
    const DeviceDims& g = group(device);
    owner = g[static_cast<size_t>(at[dim] / from[dim])], at[dim] %= from[dim];
  } else {
    const DeviceDims& g = group(device);
    const int64_t size = from[dim] / static_cast<int64_t>(g.size());
    owner = g[static_cast<size_t>(at[dim] / size)];
    at[dim] = at[dim] % size + size * place[static_cast<size_t>(device)];
  }
  int64_t element = 0;
  for (size_t d = 0; d < from.size(); ++d) element = element * from[d] + at[d];
  return {0, owner, element};
}

uint64_t DeviceMessage::key() const {
  uint64_t h = hash_combine(hash_combine(0x3E55, kind), static_cast<uint64_t>(by));
  auto add = [&](const auto& list) {
    h = hash_combine(h, list.size());
    for (auto x : list) h = hash_combine(h, static_cast<uint64_t>(x));
  };
  if (kind != kReduce && kind != kTake) h = hash_combine(h, dim), add(from), add(to);
  for (const DeviceDims& g : groups) kind == kReduce || kind == kGather || kind == kExchange ? add(g) : void();
  add(source), add(numbers), add(operand);
  for (const Dims& s : starts) add(s);
  return h;
}

namespace {

int64_t count_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
}

// Is the element of a part that lies at `place` of its own in the order of `dims` always number `first` + Σ index ·
// `steps` of the whole array? Both numbers are sums over indices: those of both ways to count are digits of one number
// where each step divides the next, and the sums are one where they are so at the first element, one step further along
// each, and at the last one.
bool lies_by(const DeviceMessage& part, int64_t device, const Dims& dims, const Dims& steps, int64_t first) {
  const int64_t local = count_of(part.to);
  if (!local || count_of(dims) != local) return false;
  const Dims own = row_major_strides(dims);
  std::vector<int64_t> at = row_major_strides(part.to);
  at.insert(at.end(), own.begin(), own.end());
  std::sort(at.begin(), at.end());
  for (size_t k = 1; k < at.size(); ++k)
    if (at[k] % at[k - 1]) return false;
  std::erase_if(at, [&](int64_t s) { return s >= local; });
  at.push_back(0), at.push_back(local - 1);
  return std::all_of(at.begin(), at.end(), [&](int64_t s) {
    int64_t there = first;
    for (size_t d = 0; d < dims.size(); ++d) there += s / own[d] % dims[d] * steps[d];
    return part.element(device, s).element == there;
  });
}

}  // namespace

bool gathers_whole(const DeviceMessage& gather, const DeviceMessage& part, int64_t elements) {
  if (gather.kind != DeviceMessage::kGather || part.kind != DeviceMessage::kPart || count_of(gather.to) != elements ||
      count_of(part.from) != elements)
    return false;
  const Dims to = row_major_strides(gather.to);
  for (const DeviceDims& g : gather.groups)
    for (size_t k = 0; k < g.size(); ++k)
      if (!lies_by(part, g[k], gather.from, to, static_cast<int64_t>(k) * gather.from[gather.dim] * to[gather.dim]))
        return false;
  return true;
}

bool is_box(const DeviceMessage& part, int64_t device, const Dims& local, const Dims& whole) {
  return part.kind == DeviceMessage::kPart && count_of(part.from) == count_of(whole) && local.size() == whole.size() &&
         lies_by(part, device, local, row_major_strides(whole), part.element(device, 0).element);
}

bool is_own(const DeviceMessage& x) {
  switch (x.kind) {
    case DeviceMessage::kNumber:
      return false;
    case DeviceMessage::kTake:
      for (size_t d = 0; d < x.source.size(); ++d)
        if (x.source[d] != static_cast<int64_t>(d) || x.operand[d]) return false;
      return true;
    case DeviceMessage::kPart:
      return x.from == x.to && std::all_of(x.starts.begin(), x.starts.end(), [](const Dims& s) {
               return std::count(s.begin(), s.end(), 0) == static_cast<ptrdiff_t>(s.size());
             });
    default:
      return std::all_of(x.groups.begin(), x.groups.end(), [](const DeviceDims& g) { return g.size() == 1; });
  }
}

Message message_of(const Module& m, InstId i, size_t k, ShapeId from, ShapeId to, std::string* why) {
  auto out = std::make_shared<DeviceMessage>();
  const AttrSet& a = m.attrs(i);
  out->from = m.u()[from].dims, out->to = m.u()[to].dims;
  const Opcode op = m.op(i);
  if (op == Opcode::CollectivePermute || op == Opcode::CollectivePermuteStart)
    return k == 0 && take_permute(m, i, out.get(), why) ? out : nullptr;
  if (!take_groups(m, i, out.get(), why)) return nullptr;
  if (a.has(Attr::dimensions) && !a.ints(Attr::dimensions).empty())
    out->dim = static_cast<size_t>(a.ints(Attr::dimensions)[0]);
  const bool ranged = out->dim < out->from.size() && out->from.size() == out->to.size();
  if (ranged) {
    out->from = joined_around(out->from, out->dim), out->to = joined_around(out->to, out->dim);
    out->dim = 1;
  }
  bool fits = false;
  switch (op) {
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::ReduceScatter:
      out->kind = DeviceMessage::kReduce;
      if (!plain_operation(m, m.called(i)[0], &out->by)) {
        *why = "its reducer is no single operation";
        return nullptr;
      }
      fits = op != Opcode::ReduceScatter || (ranged && sizes_fit(*out, out->to[out->dim], out->from[out->dim]));
      break;
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
      out->kind = DeviceMessage::kGather;
      fits = ranged && sizes_fit(*out, out->from[out->dim], out->to[out->dim]);
      break;
    case Opcode::AllToAll:
      out->kind = DeviceMessage::kExchange;
      fits = ranged && std::all_of(out->groups.begin(), out->groups.end(), [&](const DeviceDims& g) {
               return out->from[out->dim] % static_cast<int64_t>(g.size()) == 0;
             });
      break;
    case Opcode::CollectiveBroadcast:
      fits = take_broadcast(out.get(), collective_groups(m, i, at_least_one(m.config().replica_count),
                                                         at_least_one(m.config().num_partitions)));
      break;
    default:
      break;
  }
  if (fits) return out;
  *why = "its shapes do not fit its groups";
  return nullptr;
}

Message exchanged_arrays(const Module& m, InstId i, size_t k, ShapeId shape, std::string* why) {
  auto out = std::make_shared<DeviceMessage>();
  if (!take_groups(m, i, out.get(), why)) return nullptr;
  out->from = out->to = m.u()[shape].dims;
  out->kind = DeviceMessage::kTake;
  const size_t count = out->group_of.size();
  out->source.assign(count, -1), out->operand.assign(count, 0);
  for (size_t d = 0; d < count; ++d) {
    const DeviceDims& g = out->groups[out->group_of[d]];
    if (g.size() != m.operand_count(i)) {
      *why = "as many arrays as its groups have devices are exchanged";
      return nullptr;
    }
    take_from(out.get(), d, g[k], out->place[d]);
  }
  return out;
}

Message device_number(const Module& m, Opcode op) {
  auto out = std::make_shared<DeviceMessage>();
  const int64_t partitions = at_least_one(m.config().num_partitions);
  for (int64_t d = 0; d < device_count(m); ++d)
    out->numbers.push_back(op == Opcode::PartitionId ? d % partitions : d / partitions);
  return out;
}

Message scattered(const DeviceMessage& reduced) {
  auto out = std::make_shared<DeviceMessage>();
  out->kind = DeviceMessage::kPart, out->from = reduced.from, out->to = reduced.to;
  for (uint32_t place : reduced.place) {
    Dims start(out->from.size(), 0);
    start[reduced.dim] = static_cast<int64_t>(place) * out->to[reduced.dim];
    out->starts.push_back(std::move(start));
  }
  return out;
}

Message part_message(const Dims& whole, const Dims& local, const ShardTiling& tiling, int64_t devices) {
  if (whole.size() != local.size() || whole.size() != tiling.counts.size()) return nullptr;
  for (size_t d = 0; d < whole.size(); ++d)
    if (tiling.counts[d] < 1 || (whole[d] + tiling.counts[d] - 1) / tiling.counts[d] != local[d]) return nullptr;
  if (!tiling.place.empty() && static_cast<int64_t>(tiling.place.size()) != devices) return nullptr;
  auto out = std::make_shared<DeviceMessage>();
  out->kind = DeviceMessage::kPart;
  out->starts.resize(static_cast<size_t>(devices));
  // A dimension of which all is there goes on with the one in front of it.
  for (size_t d = 0; d < whole.size(); ++d) {
    const bool all = tiling.counts[d] == 1;
    if (all && !out->from.empty()) {
      out->from.back() *= whole[d], out->to.back() *= whole[d];
      for (Dims& s : out->starts) s.back() *= whole[d];
      continue;
    }
    if (!all && out->from.size() == 1 && out->from[0] == 1) {
      out->from.clear(), out->to.clear();
      for (Dims& s : out->starts) s.clear();
    }
    out->from.push_back(whole[d]), out->to.push_back(local[d]);
    for (size_t k = 0; k < out->starts.size(); ++k) out->starts[k].push_back(all ? 0 : tiling.place[k][d] * local[d]);
  }
  return out;
}

ExprId Expressions::part(ExprId whole, const Dims& dims, ShapeId shape, const ShardTiling& tiling) {
  Expr e = all_[whole];
  const Message message = part_message(dims, e.m->u()[shape].dims, tiling, devices_->devices());
  if (!message || e.m->u()[shape].type != e.m->u()[e.shape].type) return kNoExpr;
  if (is_own(*message)) return whole;
  e.kind = Expr::kMessage, e.shape = shape, e.operands = {whole}, e.view = {}, e.sum = nullptr, e.message = message;
  return find_or_add(hash_combine(message->key(), whole), std::move(e));
}

std::optional<ShardTiling> parameter_tiling(const Module& m, InstId parameter, uint32_t leaf) {
  const std::string_view text = m.u().text(m.attrs(parameter).text(Attr::sharding));
  if (text.empty() || m.config().replica_count > 1) return {};
  for (InstId p : m.comp(m.entry()).params) {
    std::vector<ShapeId> leaves;
    add_leaf_shapes(m.u(), m.shape_id(p), &leaves);
    if (p != parameter) {
      leaf -= static_cast<uint32_t>(leaves.size());
      continue;
    }
    const Sharding all = parse_sharding(text);
    const Sharding* s = leaf < leaves.size() ? leaf_sharding(all, leaf) : nullptr;
    if (!s ||
        std::any_of(s->last.begin(), s->last.end(), [](Sharding::Sub t) { return t != Sharding::Sub::kReplicated; }))
      return {};
    return shard_tiling(*s, m.u()[leaves[leaf]].dims.size());
  }
  return {};
}

}  // namespace hlo
