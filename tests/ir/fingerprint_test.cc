// Hashes of structure: what counts, and what does not.
#include "ir/query/fingerprint.h"

#include <gtest/gtest.h>

#include "parser/parser.h"

namespace hlo {
namespace {

uint64_t of_root(const std::string& attributes, Fingerprints::Options options) {
  auto m = parse_module(
      "HloModule m\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT r = f32[8]{0} sine(p)" + attributes + "\n}\n",
      std::make_shared<Universe>());
  return Fingerprints(*m, options).instruction(m->comp(m->entry()).root);
}

// shardy-xla writes a sharding at what had no attribute at all.
TEST(Fingerprints, AttributesThatDoNotCount) {
  Fingerprints::Options options;
  options.sharding = false;
  EXPECT_EQ(of_root("", options), of_root(", sharding={replicated}", options));
  EXPECT_EQ(of_root("", options), of_root(", frontend_attributes={a=\"b\"}", options));
  EXPECT_NE(of_root("", {}), of_root(", sharding={replicated}", {}));
}

}  // namespace
}  // namespace hlo
