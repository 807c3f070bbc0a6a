// The first of a row of candidates that is bad, found in a logarithmic number of judgements.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replay/judge.h"

namespace hlo {

struct Bisection {
  enum Outcome {
    kFound,     // `good` and `bad` are neighbours, but for unknown ones between them
    kAllGood,   // nothing is bad: all were judged where `every` was asked for, else the last
    kFirstBad,  // the very first is bad already
    kUnknown,   // the first or every later one could not be judged
    kStopped,   // interrupted
  } outcome = kUnknown;
  size_t good = 0, bad = 0;
  std::map<size_t, Judgement> judged;
  size_t runs = 0;               // judgements made now, those remembered not counted
  std::vector<size_t> bad_ones;  // with `every`: all that are bad, in order
};

struct BisectOptions {
  // Where the last candidate is good, one in the middle may still be bad (and healed later): judge them all.
  bool every = true;
  std::function<void(size_t candidate, const Judgement&)> judged;  // after each
  std::function<bool()> stop;
};

// `judge(0)` is expected to be good. Judgements in `known` are not made again.
Bisection bisect(size_t count, const std::function<Judgement(size_t)>& judge, const BisectOptions& options,
                 std::map<size_t, Judgement> known = {});

}  // namespace hlo
