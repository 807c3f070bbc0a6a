// Origins by op_name and source: XLA gives what it makes the metadata of what it makes it from.
#include <algorithm>

#include "replay/record/match/match_impl.h"

namespace hlo {

std::vector<uint64_t> frame_hashes(const Module& m) {
  const StackTables& s = m.stack();
  std::vector<uint64_t> out(s.frames.size() + 1, 0);
  auto text = [](const std::vector<std::string>& list, int32_t at) {
    return at > 0 && static_cast<size_t>(at) <= list.size() ? hash_bytes(list[static_cast<size_t>(at) - 1]) : 0;
  };
  for (size_t f = 0; f < s.frames.size(); ++f) {
    uint64_t h = 1;
    int32_t at = static_cast<int32_t>(f) + 1;
    for (int depth = 0; depth < 64 && at > 0 && static_cast<size_t>(at) <= s.frames.size(); ++depth) {
      const auto& frame = s.frames[static_cast<size_t>(at) - 1];
      if (frame.location > 0 && static_cast<size_t>(frame.location) <= s.locations.size()) {
        const auto& l = s.locations[static_cast<size_t>(frame.location) - 1];
        h = hash_combine(hash_combine(h, text(s.files, l.file)), text(s.functions, l.function));
        h = hash_combine(hash_combine(h, static_cast<uint64_t>(l.line)), static_cast<uint64_t>(l.column));
      }
      at = frame.parent == at ? 0 : frame.parent;
    }
    out[f + 1] = h;
  }
  return out;
}

namespace {

// 0 where there is nothing to go by.
uint64_t metadata_key(const Module& m, InstId i, const std::vector<uint64_t>& frames) {
  const Metadata& d = m.u()[m[i].meta];
  if (d.op_name == StrId::kNone) return 0;
  uint64_t h = hash_combine(hash_combine(d.op_name, d.source_file), static_cast<uint64_t>(d.source_line));
  auto frame = static_cast<size_t>(d.stack_frame_id);
  return hash_combine(h, frame < frames.size() ? frames[frame] : 0) | 1;
}

}  // namespace

// What is new and has no origin of its own metadata, where one instruction of its kind alone had that metadata.
void StageMatcher::of_metadata() {
  const Module &a = a_.m, &b = b_.m;
  const std::vector<uint64_t> frames_a = frame_hashes(a), frames_b = frame_hashes(b);
  std::unordered_map<uint64_t, InstId> holders;  // by metadata and opcode; invalid: several
  bool prepared = false;
  for (InstId y : order_b_) {
    if (!fresh(y) || b.op(y) == Opcode::Parameter || b.op(y) == Opcode::Constant) continue;
    uint64_t key = metadata_key(b, y, frames_b);
    if (key == 0) continue;
    bool known = false;
    for (auto [x, kind] : from_[y.value]) known |= metadata_key(a, x, frames_a) == key;
    if (known) continue;
    if (!prepared) {
      prepared = true;
      for (InstId x : order_a_)
        if (uint64_t k = metadata_key(a, x, frames_a)) {
          auto [at, first] = holders.try_emplace(hash_combine(k, static_cast<uint64_t>(a.op(x))), x);
          if (!first) at->second = InstId();
        }
    }
    auto at = holders.find(hash_combine(key, static_cast<uint64_t>(b.op(y))));
    if (at != holders.end() && at->second.valid()) add(at->second, y, HeirKind::kDerived);
  }
}

}  // namespace hlo
