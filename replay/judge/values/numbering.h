// Values known by what they are: one number for one value, however and in whichever stage it is computed. What has a
// number is not computed again.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/eval/devices.h"
#include "ir/eval/evaluator.h"
#include "replay/judge/values/canonical.h"
#include "replay/judge/values/orders.h"
#include "replay/judge/values/rounding.h"
#include "replay/judge/values/sketch.h"
#include "replay/judge/values/views.h"

namespace hlo {

inline constexpr NumberId kNoNumber = UINT32_MAX;

// The value of an instruction: an array by number and shape (a reshape has its operand's number), or a tuple of them.
struct Term {
  NumberId number = kNoNumber;  // of a tuple or a token: none
  ShapeId shape;
  std::shared_ptr<const std::vector<Term>> elements;

  bool is_array() const { return number != kNoNumber; }
};

// Of values that are cheap to compute again no more is kept: to have them again in memory that was in use just now
// costs less than pages that nobody has touched.
inline constexpr int64_t kMostCheap = int64_t{64} << 20;
inline constexpr int64_t kMostCheapArrays = 4;  // of the largest there is, but no more than half of all

// What of an instruction a value is: all of it, or one of the two that a convolution call with an epilogue is made of
// (Evaluator::run_convolution, run_epilogue).
enum class CallPart : uint8_t { kWhole, kConvolution, kEpilogue };

// What a stage is evaluated in: its floats widened to f64, or the types that it has.
enum class StageTypes { kWide, kOwn };

// A stage in these types, and how its instructions are run.
struct StageModule {
  StageModule(const Module& m, const EvalOptions& options, int64_t devices, StageTypes types);
  const Module& m() const { return *wide; }
  std::unique_ptr<Module> wide;
  EvalOptions options;
  int64_t devices;
  DeviceGrid grid;
  Canonical canonical;
  std::vector<std::unique_ptr<Evaluator>> evaluators;  // by device
  std::unordered_map<InstId, double> grains;           // of constants that their types have rounded
  std::vector<int8_t> talks;  // by CompId: collectives, partition-id and the like inside; -1 not known yet
  // What rounding may make of a value of that instruction, of the largest magnitude: constants are folded and divisions
  // turned into products in the types that the program has.
  double noise(InstId i) const { return i.value < coarse.size() && coarse[i.value] ? 5e-7 : 1e-10; }
  std::unordered_map<InstId, LitId> literals;  // of constants, in their own types
  std::vector<bool> coarse;                    // by InstId: floats narrower than f64
  size_t stage_slots = 0;                      // ids from here on are conversions that only `wide` has
  // The instruction of the stage itself beside which widening has put a conversion; else the same one.
  InstId of_stage(InstId i) const;
  bool asks_who(InstId i);  // its value depends on the device, or on other devices
};

struct Number {
  Sketch sketch;
  bool known = true;             // false: it could not be computed, `why` says why
  std::string why;               //
  std::vector<Value> each;       // one, or one a device; empty while it is not kept
  bool pinned = false;           // cannot be computed again
  bool folded = false;           // a constant
  bool cheap = false;            // to compute again
  bool repeats = false;          // a broadcast, which is cheaper still
  bool transcends = false;       // cheap, but less so than the others
  bool put_off = false;          // not computed yet: see Numbering::put_off
  NumberId settled = kNoNumber;  // of one that was put off and turned out to be a value that has a number
  uint32_t stage = 0;            // that had it first
  double noise = 1e-10;          // what rounding may make of it
  double grain = 0;  // of constants that a pass has rounded on the way here, in this stage: their last place
  Rounding rounding = Rounding::kNone;  // what may be taken for it
  uint64_t used = 0;
  int64_t bytes = 0;
  // How to compute it again.
  std::shared_ptr<StageModule> module;
  InstId inst;
  CallPart part = CallPart::kWhole;
  std::vector<Term> operands;
  std::vector<uint32_t> path;  // into the tuple that the instruction gives
};

class Numbering {
 public:
  // Keeps values of at most so many bytes in sum; the rest is computed again where it is needed. `bit_by_bit`: values
  // that agree but for rounding are two.
  Numbering(const std::shared_ptr<Universe>& universe, int64_t most_bytes, bool bit_by_bit)
      : keep_(universe),
        u_(*universe),
        bit_by_bit_(bit_by_bit),
        most_(most_bytes),
        most_cheap_(std::min(most_bytes / 8, kMostCheap)),
        most_arrays_(most_bytes / 2) {}

  const Number& operator[](NumberId n) const { return numbers_[n]; }
  size_t size() const { return numbers_.size(); }
  const Universe& universe() const { return u_; }
  int64_t kept() const { return kept_; }  // bytes
  bool bit_by_bit() const { return bit_by_bit_; }
  uint32_t stage = 0;  // new numbers are of this one
  // Bit by bit alone. While it is set, what an operation gives counts as a value that is known already where the two
  // are one but for the operation's own rounding; what is known without it knows nothing of that. `taken`: how many
  // operations were.
  bool take_rounded = false;
  int64_t taken = 0;
  ArrayViews views;
  SortOrders orders;
  std::unordered_map<uint64_t, int64_t> trips;  // of loops that have been run, by what they begin with

  // A value as it is. `each`: one value, or one a device.
  Term place(std::vector<Value> each);
  // The same of what that instruction gives.
  Term place(std::vector<Value> each, std::shared_ptr<StageModule> s, InstId i, std::vector<Term> operands);
  Term find(uint64_t key, bool* found);
  // Of a key that says it bit by bit, whatever may be taken for it.
  const Term* find_exact(uint64_t key) const {
    auto at = keys_.find(key);
    return at == keys_.end() ? nullptr : &at->second;
  }
  void set(uint64_t key, const Term& t) { keys_[key] = t; }
  // The same of what is, or is not, the value bit by bit.
  void set(uint64_t key, const Term& t, bool rounded) { (rounded ? rounded_keys_ : keys_)[key] = t; }
  // The operation's value: by its key, by its value, or a new number. `key`: what it is, operands included. `operands`:
  // of that part.
  Term apply(const std::shared_ptr<StageModule>& s, InstId i, const std::vector<Term>& operands, uint64_t key,
             CallPart part = CallPart::kWhole);
  // What an operation that only moves elements gives, which is not computed before something other than a product asks
  // for it: until then it has a number of its own, whatever value it is. settled(): its number by its value.
  Term put_off(const std::shared_ptr<StageModule>& s, InstId i, const std::vector<Term>& operands, uint64_t key);
  Term settled(Term t);
  bool rounded() const { return rounded_; }  // was what apply() gave last taken for its value?
  // Of something that cannot be computed: numbers that are equal where the keys are.
  Term unknown(ShapeId shape, uint64_t key, const std::string& why);
  // Does any part of it have no value? Why, then.
  const std::string* why_unknown(const Term& t) const;

  // One value a device, or one for all. Throws Failure where it cannot be computed again.
  std::vector<Value> values(NumberId n);
  // A term's value on a device, in an instruction's shape.
  Value value(const Term& t, ShapeId shape, int64_t device);
  static int64_t width(const Numbering& n, const Term& t);  // one, or the number of devices
  static uint64_t hash(const Numbering& n, const Term& t);
  // From here on the memory that values lie in does not grow: what is evaluated now is asked for by nothing later.
  void keep_no_more() { most_ = std::max(kept_, kMostCheap); }

  // Numbers of that value but for rounding, or kNoNumber. `allowed`: the largest deviation, of the largest magnitude.
  NumberId alike(const Sketch& s, std::span<const Value> each, double allowed);
  NumberId alike(const Sketch& s) const;  // in f64's own rounding
  // A number whose elements add up to the same, and whose squares do `times` times: arrays cut into tiles.
  NumberId same_sums(double sum, double squares, double magnitudes, int64_t elements, uint32_t of_stage) const;

  // Whether two operations on operands of the same values are the same function, on operands that the inputs do not
  // give: with ties, zeros and both signs. Elementwise ones, and those of which the computations that they apply are
  // others (these on scalars). Negative where that cannot be tried, else the deviation of their results.
  double deviation_elsewhere(StageModule& a, InstId i, StageModule& b, InstId k);
  // How far an operation's results are apart where its operand `which` has one of two values and the others are what
  // the inputs do not give, of each sign alone among them. Negative where that cannot be tried.
  double deviation_by_operand(StageModule& s, InstId i, size_t which, const Term& one, const Term& other);
  // Of two computations of scalars: some scalars of which they make other results. Empty where none were found, or such
  // cannot be tried.
  std::vector<std::vector<Value>> scalars_that_tell(StageModule& a, CompId c, StageModule& b, CompId d);

  struct Count {
    int64_t operations = 0, again = 0;  // evaluated; of them to have a value again that was not kept
    double seconds = 0;
  } count;

 private:
  std::vector<Value> run(StageModule& s, InstId i, CallPart part, const std::vector<Term>& operands);
  std::vector<Value> run_together(StageModule& s, InstId i, const std::vector<Term>& operands);
  Term wrap(std::vector<Value> each, const Number& recipe);
  NumberId add(Number n);
  NumberId but_for_rounding(std::span<const Value> each, Rounding how);
  double applied_elsewhere(StageModule& a, CompId c, StageModule& b, CompId d);
  double sorts_elsewhere(StageModule& a, InstId i, StageModule& b, InstId k);
  void make_room();
  static int worth(const Number& n);
  void hold(const Number& n, int64_t times);  // counts its bytes; `times`: 1, or -1 where it is let go

  std::shared_ptr<Universe> keep_;
  Universe& u_;
  bool bit_by_bit_;
  int64_t most_, most_cheap_, most_arrays_, kept_ = 0, cheap_ = 0;  // bytes; `cheap`: of what is cheap to compute again
  uint64_t clock_ = 0;
  std::vector<Number> numbers_;
  std::unordered_map<uint64_t, Term> keys_, rounded_keys_;
  NearValues near_;
  bool rounded_ = false;
  std::unordered_map<uint64_t, std::multimap<double, NumberId>> by_value_;
  std::unordered_map<uint64_t, NumberId> unknown_;
};

}  // namespace hlo
