#include "ir/sharding/collective_groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlo {
namespace {

bool has_channel(const AttrSet& a) { return a.has(Attr::channel_id) && a.integer(Attr::channel_id) > 0; }

}  // namespace

CollectiveGroups collective_groups(const Module& m, InstId i, int64_t replicas, int64_t partitions) {
  const AttrSet& a = m.attrs(i);
  const Opcode op = m.op(i);
  const bool channel = has_channel(a), global = a.flag(Attr::use_global_device_ids);
  const bool by_partition =
      channel && (op == Opcode::AllToAll || op == Opcode::CollectiveBroadcast || op == Opcode::RaggedAllToAll);
  const int64_t limit = global ? replicas * partitions : by_partition ? partitions : replicas;
  CollectiveGroups out;
  std::vector<DeviceDims> written;
  const StrId text = a.text(Attr::replica_groups);
  if (text.valid() && !expand_replica_groups(m.u().text(text), &written)) {
    out.why = "its replica groups";
    return out;
  }
  if (written.empty()) {
    written.emplace_back();
    for (int64_t k = 0; k < limit; ++k) written[0].push_back(k);
  }
  for (const DeviceDims& g : written)
    for (int64_t k : g)
      if (k < 0 || k >= limit) {
        out.why = fmt::format(
            "its replica groups name {} of {}; their number is in the module's header (replica_count, "
            "num_partitions)",
            k, limit);
        return out;
      }
  // Each group once for each of what its numbers leave open.
  const int64_t times = global ? 1 : by_partition ? replicas : channel ? 1 : partitions;
  for (const DeviceDims& g : written)
    for (int64_t t = 0; t < times; ++t) {
      DeviceDims list;
      for (int64_t k : g) {
        if (global) list.push_back(k);
        if (!global && by_partition) list.push_back(t * partitions + k);
        if (!global && !by_partition && !channel) list.push_back(k * partitions + t);
        if (!global && !by_partition && channel)
          for (int64_t p = 0; p < partitions; ++p) list.push_back(k * partitions + p);
      }
      out.groups.push_back(std::move(list));
    }
  return out;
}

PermuteSources permute_sources(const Module& m, InstId i, int64_t replicas, int64_t partitions) {
  const AttrSet& a = m.attrs(i);
  const bool by_partition = has_channel(a);
  const int64_t limit = by_partition ? partitions : replicas;
  PermuteSources out;
  out.of.assign(static_cast<size_t>(replicas * partitions), -1);
  for (auto [from, to] : expand_pairs(m.u().text(a.text(Attr::source_target_pairs)))) {
    if (from < 0 || to < 0 || from >= limit || to >= limit) {
      out.why = fmt::format("its pair {{{},{}}} names a device of {}", from, to, limit);
      return out;
    }
    for (int64_t t = 0; t < (by_partition ? replicas : partitions); ++t) {
      auto device = [&](int64_t k) { return by_partition ? t * partitions + k : k * partitions + t; };
      out.of[static_cast<size_t>(device(to))] = device(from);
    }
  }
  return out;
}

}  // namespace hlo
