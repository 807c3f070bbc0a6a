// Hashes of structure: equal for computations that do the same, whatever their names, ids and metadata.
#pragma once
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/module.h"

namespace hlo {

class Fingerprints {
 public:
  struct Options {
    bool layouts = true;
    bool sharding = true;
    bool config = true;  // backend_config
    // What nobody reads may stand anywhere among the rest: only how values are made and read counts, not the order in
    // which a computation lists them.
    bool any_order = false;
    bool unread_elements = true;  // false, in any order: elements of tuples that nobody reads do not count
  };
  explicit Fingerprints(const Module& m) : m_(m) {}
  Fingerprints(const Module& m, Options options) : m_(m), options_(options) {}
  uint64_t computation(CompId comp);
  // What one instruction is apart from its operands: opcode, shape, attributes with callees by content, literal.
  uint64_t instruction(InstId inst);
  // The same of whatever dimensions its elements have: of the shape the type and their number.
  uint64_t elements(InstId inst);
  uint64_t elements(InstId inst, int64_t count);  // of so many of them

 private:
  uint64_t in_any_order(CompId comp);
  uint64_t with_attrs(InstId inst, uint64_t h);

  const Module& m_;
  Options options_;
  std::unordered_map<CompId, uint64_t> known_;
  std::unordered_map<uint64_t, std::optional<uint64_t>> attrs_known_;  // nothing: no attribute counts
};

// Elements of tuples in `comp` that nobody reads, or only such elements: not the root, without control edges.
std::unordered_set<InstId> unread_elements(const Module& m, CompId comp);

}  // namespace hlo
