// A stage as expressions: every instruction that its result is made of, through fusions, calls, branches and loops.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/elements/expressions.h"
#include "replay/judge/chosen/elements/sums.h"
#include "replay/judge/chosen/walk/in_order.h"
#include "replay/judge/chosen/walk/turned.h"
#include "replay/judge/values/canonical.h"

namespace hlo {

struct ExprVisit {
  InstId inst;
  ExprTree value;
};

// The arrays of a loop's state, in order.
struct LoopVisit {
  InstId loop;
  std::vector<ExprId> begin, formal, then, result;  // before the first trip; in some trip; behind it; behind the last
  ExprId goes_on = kNoExpr;
};

struct ExprStage {
  std::shared_ptr<const Module> wide;  // floats are f64: ir/eval/widen.h
  std::vector<ExprVisit> visits;       // operands before users; what is called twice with other operands stands twice
  std::vector<ExprId> made;            // operations, branches, loops as they are written, each as often as it is met
  ExprTree result;
  std::vector<LoopVisit> loops_met;  // inner ones first, each as often as it is met
  size_t loops = 0, branches = 0;
};

// The stage before, where this one's arrays are the devices' parts of that one's.
class WholeStage {
 public:
  virtual ~WholeStage() = default;
  // The loop there that is this one of whole arrays; null: none is known.
  virtual const LoopVisit* loop(InstId loop) = 0;
  // The part of `whole`, an array of that loop's state there, that each device has here; kNoExpr: it is not told.
  virtual ExprId part_of(InstId loop, size_t place, ExprId whole) = 0;
  // Is it that?
  virtual bool is_same(ExprId e, ExprId part) = 0;
};

// What a walk that follows loops trip by trip asks.
class LoopTrips {
 public:
  virtual ~LoopTrips() = default;
  // The value of a scalar that constants alone make, the same on all devices; nothing: it is none.
  virtual std::optional<int64_t> number(ExprId e) = 0;
  // The expression that stands for all that have this number, `e` where it is the first.
  virtual ExprId of_number(ExprId e, int64_t number) = 0;
  size_t loops = 0;  // that were followed to their end
};

class ExpressionWalk {
 public:
  // What an expression that is the same as no other one is found to be the same as: itself, or another one. `order`: of
  // its elements, as the instruction's array has them; null: they are that array's.
  using Met = std::function<ExprId(ExprId e, InstId by, const Expr::View* order)>;
  // `wide`: must outlive the expressions. `met` may be null, `whole` is where this is no stage of parts.
  ExpressionWalk(Expressions& all, std::shared_ptr<const Module> wide, Met met, WholeStage* whole = nullptr);
  // Gives these values of that instruction, one after the other as it is visited, the last one for all that follow, in
  // the place of what it computes. Not where counters of loops are told apart.
  void force(InstId inst, std::vector<ExprTree> values) { forced_[inst] = {std::move(values), 0}; }
  // Loops whose conditions are known are followed trip by trip, as long as all together are no more than some 100,000
  // instructions.
  void follow(LoopTrips* trips) { trips_ = trips; }
  // Throws Failure(kUnsupported) where what an instruction is cannot be said (dynamic shapes, messages).
  ExprStage run();

 private:
  ExprTree computation(CompId c, const std::vector<ExprTree>& parameters);
  ExprTree called(CompId c, const std::vector<ExprTree>& parameters);
  ExprTree instruction(InstId i, const std::vector<ExprTree>& operands, const std::vector<ExprTree>& parameters);
  ExprTree operation(InstId i, const std::vector<ExprTree>& operands, uint64_t salt = 0);
  std::optional<SumForm> sum_form(InstId i, const std::vector<ExprTree>& operands) const;
  ExprId sum(InstId i, const SumForm& f);
  ExprId negative(InstId i, ExprId of, const Expr::View& order);
  ExprId elementwise(InstId i, const ElementwiseForm& f);
  ExprId turned(InstId i, const TurnedForm& f);
  // By the operands' elements alone, `count` of them; false where what it computes is not told by these.
  bool by_elements(InstId i, const std::vector<uint64_t>& numbers, int64_t count, uint64_t* key);
  ExprTree message(InstId i, const std::vector<ExprTree>& operands);
  ExprTree message_result(InstId i, const std::vector<ExprTree>& operands, size_t k, ShapeId shape);
  ExprId sent(InstId i, const Message& message, std::vector<ExprId> operands, ShapeId shape);
  ExprTree conditional(InstId i, const std::vector<ExprTree>& operands);
  ExprTree loop(InstId i, const std::vector<ExprTree>& operands);
  // The arrays of a loop's state.
  struct LoopState {
    std::vector<ExprId> begin, formal, then;  // before the first trip; in some trip; behind it
    std::vector<bool> constant;               // stays what it is
    std::vector<uint32_t> like;               // those of one number are the same in each trip
    std::vector<uint32_t> devices;            // which have the same in each trip: DeviceClasses
    std::vector<ExprId> instead;              // of formals; empty, and kNoExpr: none
    ExprTree goes_on;
  };
  ExprTree formals(const ExprTree& init, const LoopState& s, size_t* leaf) const;
  void trip(InstId loop, const ExprTree& init, LoopState* s);
  void find_like(InstId loop, const ExprTree& init, LoopState* s);
  void find_devices(InstId loop, const ExprTree& init, LoopState* s);
  // With nothing being compared, and nothing of it left behind.
  void aside(const std::function<void()>& walk);
  std::vector<bool> handed_on(CompId body) const;
  ExprTree tree(ShapeId shape, const std::function<ExprId(uint32_t leaf, ShapeId shape)>& leaf, uint32_t* next) const;
  // With the loop's parts of whole arrays in the place of what they are found to be; none where one is not found.
  std::optional<ExprTree> loop_of_parts(InstId i, const ExprTree& init, const LoopVisit& whole);
  std::optional<ExprTree> followed(InstId i, const ExprTree& init);
  ExprTree result_of(InstId i, const LoopState& s);
  ExprId parameter(InstId p, uint32_t leaf, ShapeId shape);
  ExprId add(uint64_t key, Expr e, InstId by, const Expr::View* order = nullptr);
  uint64_t hash(const ExprTree& t) const;

  Expressions& all_;
  std::shared_ptr<const Module> keep_;
  const Module& m_;
  Canonical canonical_;
  Met met_;
  WholeStage* whole_;
  LoopTrips* trips_ = nullptr;
  ExprStage out_;
  std::unordered_map<uint64_t, ExprTree> calls_;
  uint64_t depth_ = 0;
  struct Forced {
    std::vector<ExprTree> values;
    size_t next = 0;
  };
  std::unordered_map<InstId, Forced> forced_;
};

}  // namespace hlo
