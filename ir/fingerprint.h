// Hashes of structure: equal for computations that do the same, whatever their names, ids and metadata.
#pragma once
#include <unordered_map>

#include "ir/module.h"

namespace hlo {

class Fingerprints {
 public:
  struct Options {
    bool layouts = true;
    bool sharding = true;
    bool config = true;  // backend_config
  };
  explicit Fingerprints(const Module& m) : m_(m) {}
  Fingerprints(const Module& m, Options options) : m_(m), options_(options) {}
  uint64_t computation(CompId comp);
  // What one instruction is apart from its operands: opcode, shape, attributes with callees by content, literal.
  uint64_t instruction(InstId inst);
  // The same of whatever dimensions its elements have: of the shape the type and their number.
  uint64_t elements(InstId inst);

 private:
  uint64_t with_attrs(InstId inst, uint64_t h);

  const Module& m_;
  Options options_;
  std::unordered_map<CompId, uint64_t> known_;
  std::unordered_map<uint64_t, uint64_t> attrs_known_;
};

}  // namespace hlo
