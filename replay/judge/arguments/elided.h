// Values for the constants that a dump's texts elide (`{...}`): some value, but the same one in every stage.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"
#include "replay/judge/arguments/inputs.h"

namespace hlo {

// XLA elides what has more than ten elements unless it was told not to (--xla_dump_large_constants). A constant of the
// first stage has the value that a `.hlo.pb` or a snapshot of the dump has (own_constants.h); else one is drawn by the
// seed, in the range that its readers have room for. In later stages a constant is the one of that name, or has the
// value of what its users read in the stage before: folding, renaming, sinking into loops and common subexpressions are
// followed in that way. Two made-up constants of which one takes the other's place are the same. Where nothing tells
// what a constant is, a pass has folded made-up values: they are made up anew, and that stage is the first of others
// that can be held against each other.
class ElidedConstants {
 public:
  using Load = std::function<std::unique_ptr<Module>(size_t stage)>;
  // `paths`: a module's stages in order; `load` reads one of them, all into one universe.
  ElidedConstants(std::vector<std::string> paths, Load load, const InputOptions& inputs);
  // Two modules of one universe that are held against each other, read from inputs.place and `second_spec`; `told`: as
  // told() says it. Throws Failure(kUnsupported) naming the constant where nothing tells its value.
  static void settle_pair(Module& first, Module& second, const InputOptions& inputs, const std::string& second_spec,
                          std::string* told);
  ~ElidedConstants();

  // Those of `m`, which is stage `stage`, get their values. Throws Failure(kUnsupported) naming the constant where the
  // stage is not what `load` read.
  void settle(size_t stage, Module& m);
  // Stages that are not to be held against those in front of them, in order, and why. Reads all stages.
  struct Anew {
    size_t stage = 0;
    std::string why;
  };
  const std::vector<Anew>& anew();
  // Does `bad`, a stage behind `good`, hold constants that may be folded from made-up ones? Then it is one of
  // anew() from now on.
  bool folds_made_up(size_t good, size_t bad);
  // A sentence for the answer: how many there are, whose values they have, and what was taken for the same. Empty where
  // there are none.
  std::string told() const;

 private:
  class Follower;
  std::unique_ptr<Follower> follower_;
};

}  // namespace hlo
