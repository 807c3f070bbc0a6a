// Modules by chance: small shapes (scalars and arrays without elements among them), most opcodes, nested control flow.
// The text of a seed never changes, so that a failure can be told by its seed.
#pragma once
#include <cstdint>
#include <string>

namespace hlo {

// From this seed on integers of less than a byte come up, too.
constexpr uint64_t kSmallIntegersFrom = 10'000'000;
// From this one on parameters have up to some 10,000 elements, enough for warps, blocks and tiles, and no small
// integers.
constexpr uint64_t kLargeFrom = 20'000'000;
// From this one on results, loops' states, branches' and callees' results and those of fusions (kLoop, kInput) are
// tuples of tuples, empty tuples among them, of small shapes again.
constexpr uint64_t kNestedFrom = 30'000'000;

// HLO text with about `size` instructions in its entry.
std::string random_module(uint64_t seed, int size);

}  // namespace hlo
