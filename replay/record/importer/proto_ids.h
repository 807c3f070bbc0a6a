// What the .hlo.pb of a stage says beyond its text: XLA's numbers of computations, which they keep. An instruction's id
// is computation << 32 | its place in the computation's list (0.10.2): the list is squeezed now and then, so that it is
// no identity. Only the numbers are read, not the module.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/record/match/match.h"

namespace hlo {

class ProtoIds {
 public:
  ProtoIds() = default;
  // An HloProto, gzipped or not; empty where it is none.
  ProtoIds(std::string bytes, const std::string& label);
  bool empty() const { return computations_.empty(); }
  // By the module's names; -1 for what is not there.
  StageIds of(const Module& m) const;

 private:
  std::string bytes_;
  std::vector<std::pair<std::string_view, int64_t>> computations_;
};

// The ids of the stage whose text is FOLDER/FILE, from FILE's .hlo.pb or .hlo.pb.gz beside it; empty where there is
// none.
ProtoIds ids_beside(const std::string& folder, const std::string& file);

}  // namespace hlo
