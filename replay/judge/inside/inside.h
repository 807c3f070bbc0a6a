// Stages held against each other inside: what matched instructions compute, not the outputs alone.
//
// Everything is computed in f64, where rounding is no more than 1e-10 of a value and passes that change types change
// nothing: what moves an output by a millionth of its size is seen. A value that a later stage computes in another way
// gets the number of the old one, so that nothing behind it is computed again. A stage is bad
//  - where an output has another value than in the stage before, or
//  - where an instruction of the same name has operands of the same values and yet gives another one, and all that
//  reads
//    it, down to values that agree again, is what it was: these inputs do not tell, others would.
//  - where one reads by another name a value that there was, nothing gives any more what it gave, and a reader that is
//    what it was does not tell the two apart on these inputs.
// A value that changes and whose users change with it, so that it is healed, is a legal rewrite; where such a user is
// what it was and only fails to tell on these inputs, it counts as not compared.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "replay/judge/judge.h"
#include "replay/judge/values/stages.h"

namespace hlo {

struct InsideFinding {
  InstId before, after;  // in the stage before and in this one; `before` is invalid where nothing corresponds
  std::string difference;
  struct Operand {
    std::string before, after;  // names
    bool agrees = false;
  };
  std::vector<Operand> operands;                    // of `after`
  std::vector<InstId> region_before, region_after;  // what lies between them and values that agree; themselves first
  bool operands_agree = false;                      // and yet the value is another one
  bool near = false;        // the values agree within what rounding may make of constants, the constants do not
  bool annotation = false;  // what the device goes by is wrong, the values as the module means them are not
  bool outputs_move = false;
  double outputs_by = 0;  // the most that an output moves, of its largest magnitude
  // Of one whose applied computation is another: where these two begin to be.
  InstId applied_before, applied_after;
  int64_t trip = -1;    // of a loop, looked into where its state departs; the first is 0
  std::string partial;  // an array that holds partial sums and is read as if it were whole, in words
};

struct InsideStage {
  Verdict verdict = Verdict::kUnknown;
  std::string why;
  std::vector<InsideFinding> findings;  // of a bad stage, operands before users
  size_t values = 0;                    // operations that the stage consists of, fusions and callees included
  size_t same = 0;                      // of them with a value of an earlier stage
  size_t changed = 0;                   // with the name of an instruction before and another value
  size_t fresh = 0;                     // with a name and a value that the stage before does not have
  size_t unknown = 0;                   // without a value
  size_t loops = 0, branches_left = 0;
  size_t annotations = 0, annotations_not_checked = 0;  // numbers that the device goes by
  // What is written in another way than in the stage before, or reads what is: operations; of them those that were held
  // against nothing, the first of these and why.
  size_t touched = 0, not_compared = 0;
  std::string not_compared_example, not_compared_why;
  std::string changed_example;  // `name` of the first that changed and was healed
};

// What the inputs do to the values of the first stage.
struct InputsTold {
  size_t floats = 0;  // float arrays of two elements or more that depend on the inputs
  size_t with_nan = 0, infinite = 0, zero = 0, uniform = 0;  // of them
  size_t outputs = 0, dull_outputs = 0;                      // of these all NaN, or all the same number
  std::string nan_begins;                                    // the first instruction that has NaN
  bool tell() const { return dull_outputs < outputs && with_nan * 4 <= floats && (zero + uniform) * 2 <= floats; }
};

class Inside {
 public:
  // `session`: arguments and shapes of the outputs; must outlive this.
  Inside(const Session& session, const EvalOptions& options, int64_t most_bytes);
  ~Inside();
  // The first stage, which is taken to be good.
  // `module`: what stage_module() gives of it, where that is at hand; another Inside may use the same.
  InsideStage first(const Module& m, std::shared_ptr<StageModule> module = nullptr);
  // A stage against the last one that was kept. `keep`: the next one is held against this.
  InsideStage next(const Module& m, bool keep = true, std::shared_ptr<StageModule> module = nullptr);
  std::shared_ptr<StageModule> stage_module(const Module& m) const;

  InputsTold inputs() const;
  const Numbering& numbers() const;
  // The outputs of the first stage in f64, where all are known.
  bool outputs(Value* out);

 private:
  struct Stage;
  class Comparison;
  std::unique_ptr<Stage> number(const Module& m, std::shared_ptr<StageModule> module);

  std::unique_ptr<Stages> stages_;
  Numbering* numbers_;  // of these
  std::unique_ptr<Stage> first_, last_;
  std::vector<Term> expected_;  // of the first stage, or of the last bad one that has all of them
};

}  // namespace hlo
