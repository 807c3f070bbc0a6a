// What the stages of one session compute, under one numbering: what an earlier stage computed is taken over.
#pragma once
#include <memory>
#include <vector>

#include "replay/judge/arguments/session.h"
#include "replay/judge/values/walk.h"

namespace hlo {

class Stages {
 public:
  // `session`: arguments and shapes of the outputs; must outlive this. `types`: StageTypes::kWide, where values are one
  // that agree but for rounding, or kOwn, where they are one bit by bit.
  Stages(const Session& session, EvalOptions options, int64_t most_bytes, StageTypes types);

  Numbering& numbers() { return numbers_; }
  const Numbering& numbers() const { return numbers_; }
  // Throws Failure(kUnsupported) where it runs on more devices than are simulated.
  std::shared_ptr<StageModule> stage_module(const Module& m) const;
  // Throws Failure(kUsage) where the module takes other arguments, else only what stops everything.
  // `instead`: values that instructions have whatever they compute; null: none have.
  StageNumbers walk(const Module& m, std::shared_ptr<StageModule> module, bool remember,
                    const std::unordered_map<InstId, Term>* instead = nullptr);
  // What a walk gave as whole arrays: of partitions' shards what they make together. Throws where a shard has no value.
  Term whole_result(const Module& m, const StageNumbers& walked);
  bool shards_make_result(const Module& m, const StageNumbers& walked) const;

  // A stage that was walked for its result, in its own types.
  struct Ran {
    uint64_t known = 0;   // a number for the result, the same for results that are the same bit by bit; 0: none
    int64_t rounded = 0;  // operations of which another value was taken, the same but for their own rounding
    Term whole;
    bool shards = false;
  };
  // False where it is not to be had so: it draws random numbers out of nowhere, or something in it cannot be run, as
  // Session::run tells. `take_rounded`: see Numbering. `module`: what stage_module() gave of it, or null, which is set.
  bool run(const Module& m, bool take_rounded, std::shared_ptr<StageModule>* module, Ran* out);
  // No stage follows the next one: see Numbering.
  void keep_no_more() { numbers_.keep_no_more(); }
  // The result, as Session::run gives it of the evaluator where nothing was taken.
  Value result(const Module& m, const Ran& ran);

 private:
  std::vector<Term> arguments(const Module& m, int64_t devices);
  ShapeId in_types(ShapeId shape) const;

  const Session& session_;
  EvalOptions options_;
  StageTypes types_;
  Numbering numbers_;
};

// Bytes of values that are kept: so many, or by what the machine has left where `asked` is 0.
int64_t bytes_to_keep(int64_t asked);

// Leaves that are arrays, in order.
void leaves_of(const Term& t, std::vector<Term>* out);

}  // namespace hlo
