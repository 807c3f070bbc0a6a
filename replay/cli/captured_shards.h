// Arrays of a captured folder of which each process of a run has written its part (docs/formats.md).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/cli/json_output.h"
#include "replay/judge/arguments/npz.h"

namespace hlo {

struct CapturedShard {
  int64_t device = 0;
  std::vector<std::pair<int64_t, int64_t>> index;  // begin and end, by dimension of the array
};
struct CapturedArray {
  std::string name;  // p0 …
  std::vector<int64_t> shape;
  std::vector<CapturedShard> shards;  // of all devices; empty: it lies on one
};

// What capture.json tells of an array; nothing where it is damaged.
std::optional<CapturedArray> captured_array(const Json& told);
// Writes `out`: the arrays of the first file that are whole, and those of `wanted` of which the files have every part
// (`p0.device3`). The others of `wanted` come back. `most`: bytes of a whole array. Throws Failure(kIo) on a damaged
// file, Failure(kUsage) where an array is larger.
std::vector<CapturedArray> join_shards(const std::vector<std::string>& files, const std::vector<CapturedArray>& wanted,
                                       const MostBytes& most, const std::string& out);

}  // namespace hlo
