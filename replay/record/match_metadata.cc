// Origins by op_name and source: XLA gives what it makes the metadata of what it makes it from.
#include <algorithm>

#include "replay/record/match_impl.h"

namespace hlo {
namespace {

// 0 where there is nothing to go by. Frames are numbers of one table: they count where both have the same.
uint64_t metadata_key(const Module& m, InstId i, bool frames) {
  const Metadata& d = m.u()[m[i].meta];
  if (d.op_name == StrId::kNone) return 0;
  uint64_t h = hash_combine(hash_combine(d.op_name, d.source_file), static_cast<uint64_t>(d.source_line));
  return hash_combine(h, frames ? static_cast<uint64_t>(d.stack_frame_id) : 0) | 1;
}

}  // namespace

// What is new and has no origin of its own metadata, where one instruction of its kind alone had that metadata.
void StageMatcher::of_metadata() {
  const Module &a = a_.m, &b = b_.m;
  const bool frames = a.stack().frames == b.stack().frames && a.stack().locations == b.stack().locations;
  std::unordered_map<uint64_t, InstId> holders;  // by metadata and opcode; invalid: several
  bool prepared = false;
  for (InstId y : order_b_) {
    if (!fresh(y) || b.op(y) == Opcode::Parameter || b.op(y) == Opcode::Constant) continue;
    uint64_t key = metadata_key(b, y, frames);
    if (key == 0) continue;
    bool known = false;
    for (auto [x, kind] : from_[y.value]) known |= metadata_key(a, x, frames) == key;
    if (known) continue;
    if (!prepared) {
      prepared = true;
      for (InstId x : order_a_)
        if (uint64_t k = metadata_key(a, x, frames)) {
          auto [at, first] = holders.try_emplace(hash_combine(k, static_cast<uint64_t>(a.op(x))), x);
          if (!first) at->second = InstId();
        }
    }
    auto at = holders.find(hash_combine(key, static_cast<uint64_t>(b.op(y))));
    if (at != holders.end() && at->second.valid()) add(at->second, y, HeirKind::kDerived);
  }
}

}  // namespace hlo
