// Values for the constants that a dump's texts elide (`{...}`): some value, but the same one in every stage.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"
#include "replay/judge/inputs.h"

namespace hlo {

// XLA elides what has more than ten elements unless it was told not to (--xla_dump_large_constants). A constant of the
// first stage is drawn by the seed, in the range that its readers have room for. In later stages a constant is the one
// of that name, or has the value of what its users read in the stage before: folding, renaming, sinking into loops and
// common subexpressions are followed in that way. Two constants of which one takes the other's place are the same.
class ElidedConstants {
 public:
  using Load = std::function<std::unique_ptr<Module>(size_t stage)>;
  // `paths`: a module's stages in order; `load` reads one of them, all into one universe.
  ElidedConstants(std::vector<std::string> paths, Load load, const InputOptions& inputs);
  // Two modules of one universe that are held against each other; `told`: as told() says it.
  static void settle_pair(Module& first, Module& second, const InputOptions& inputs, std::string* told);
  ~ElidedConstants();

  // Those of `m`, which is stage `stage`, get their values. Throws Failure(kUnsupported) naming the constant where
  // nothing tells what it is, there and in all later stages.
  void settle(size_t stage, Module& m);
  // A sentence for the answer: how many there are, what was taken for the same, and where nothing tells more. Empty
  // where there are none.
  std::string told() const;

 private:
  class Follower;
  std::unique_ptr<Follower> follower_;
};

}  // namespace hlo
