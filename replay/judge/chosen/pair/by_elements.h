// Stages held against each other at chosen elements, at their own size and without their arrays.
//
// What a stage computes is an expression, and what two stages write in one way is one expression. Of what the later one
// writes in another way, elements are evaluated from values that both stages have, whatever these are: where both give
// the same there, drawn values in their place, they are taken for one, and all behind them is one again. Where an
// instruction of the same name gives other elements, down to where nothing is in between but parameters and results of
// sums, and nothing else makes the outputs differ, the stage is bad. So it is where one instruction of operands that
// the stage before has gives another value in general, as told by what both are made of, and all is the same with its
// former value in its place: then nothing was made up for it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "replay/judge/judge.h"

namespace hlo {

struct ExprStage;
class KeptLeaves;

struct ElementsFinding {
  std::string before, after;  // instructions
  std::string index;          // of the first element that differs, as `[1,2]` of the instruction's dimensions
  double was = 0, is = 0;     // there, in f64; of complex numbers the real part
  std::string words;  // what is wrong where no element was evaluated: other literals, numbers that the device goes by
  std::string rests_on;  // the values that were drawn, by the instructions that give them; at most eight
};

// Values taken for the same by some of their elements.
struct ElementsSampled {
  size_t values = 0;
  // Of the one of which the smallest part was seen: its instruction, elements seen, elements that it has (of all
  // devices where they differ).
  std::string instruction;
  int64_t seen = 0, of = 0;
  void add(const std::string& by, int64_t elements_seen, int64_t elements);
  void add(const ElementsSampled& other);
  // That wrong elements at places which nothing tells escape, of so many wrong ones of those that it has.
  double escapes(double wrong) const;
};

struct ElementsStage {
  Verdict verdict = Verdict::kUnknown;
  std::string why;
  std::vector<ElementsFinding> findings;  // of a bad stage
  size_t values = 0;                      // expressions that the result is made of
  size_t changed = 0;                     // of them those that the stage before does not have
  size_t compared = 0;                    // of these: found the same as one of the stage before, or read by such alone
  size_t outputs = 0, outputs_same = 0;
  std::string not_compared;  // the first that was not, and why
  // Where the verdict is open: instructions of operands that the stage before has, whose value it has not; in order, at
  // most eight.
  std::vector<std::string> begins;
  ElementsSampled sampled;  // of the compared ones; the others are one expression with what the stage before has
};

struct ElementsOptions {
  uint64_t seed = 1;
  size_t samples = 16;  // elements of each value, at most
  // Elements evaluated for one pair of values, at most.
  int64_t most_elements = int64_t{1} << 20;
  int64_t most_in_all = int64_t{1} << 30;  // of all stages together; what is left is not compared then
  // The program's own arguments, null where there are none: values are compared with these, too, as long as the program
  // is for one device. What lies between is drawn all the same.
  std::shared_ptr<const KeptLeaves> kept = nullptr;
  std::function<bool()> stop;
};

class ByElements {
 public:
  explicit ByElements(ElementsOptions options);
  ~ByElements();
  // The first stage. Throws Failure(kUnsupported) where it cannot be told what it is (dynamic shapes, several devices).
  ElementsStage first(const Module& m);
  // A stage against the one that was given last; it takes its place. Throws as first() does, the place is not taken
  // then.
  ElementsStage next(const Module& m);

 private:
  class Pair;
  struct State;
  friend class FixedNumbers;
  bool same_by_trips(const ExprStage& stage, std::shared_ptr<const Module> wide);
  std::unique_ptr<State> state_;
};

// Has the evaluator more to do for this module than a few seconds, for so many stages of it than some minutes, or more
// memory than there is?
bool too_large_to_run(const Module& m, size_t stages = 1);

}  // namespace hlo
