// What ByElements knows of the stage before, and one stage being held against it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "replay/judge/chosen/elements/elements.h"
#include "replay/judge/chosen/pair/by_elements.h"
#include "replay/judge/chosen/walk/draws.h"
#include "replay/judge/chosen/walk/expression_walk.h"

namespace hlo {

using ExprSet = std::unordered_set<ExprId>;

// Cheap to take apart into what it is made of: no sums, and nothing that makes many elements of one.
bool element_by_element(const Expr& e);

// Where it surely is another value, a few elements may be the same all the same: a literal, which may be no more than
// rounding away, a comparison, for two floats are seldom equal, and a sum or an extreme that begins with a number.
bool hardly_told(const Expr& x);

// Numbers that differ by no more, of the largest magnitude there, may be rounded: constants are folded in their own
// types.
constexpr double kRounding = 5e-7;
// Draws more, at most, where a mask was seen on one side alone.
constexpr int64_t kMaskTurns = 24;
// Numbers that are enough, where half of them are different ones, to tell a value by nothing else.
constexpr size_t kTelling = 16;

// As `[1,2]`, of an element's row-major index.
std::string index_text(int64_t at, const Dims& dims);

// Are both elements of one array, and other ones or in another order?
bool other_elements(const Expressions& all, ExprId a, ExprId b);

struct ByElements::State {
  ElementsOptions options;
  Expressions all;
  std::vector<uint32_t> stage_of;  // by ExprId: the last stage that has it, counted from 1
  uint32_t stage = 0;
  int64_t spent = 0;     // elements evaluated
  int64_t most_now = 0;  // of these, until the present stage is done
  ExprStage before;
  std::vector<std::shared_ptr<const Module>> kept;                 // that expressions are instructions of
  std::unordered_map<std::string, std::vector<ExprTree>> by_name;  // of the stage before
  std::unordered_map<ExprId, std::vector<ExprId>> readers;         // in the stage before
  std::unordered_map<ExprId, std::string> names;                   // of expressions: who made them first
  void take(ExprStage now);
  double coarsest = 0;      // of the types that the stages have: what one of their numbers may be off, of its magnitude
  std::vector<bool> fixed;  // by ExprId: made of constants alone, so that it has one value and none is drawn
  bool is_fixed(ExprId e);
  bool has(ExprId e) const { return e < stage_of.size() && stage_of[e] == stage; }
};

// One stage being held against the one before.
class ByElements::Pair : public WholeStage {
 public:
  Pair(State& s, std::shared_ptr<const Module> wide) : s_(s), wide_(std::move(wide)) {}

  ElementsStage judge(ExprStage* out);
  // Its arrays are parts of what those of the stage before are.
  void divide();
  // Its names are not those of the stage before: what has the metadata of an instruction there is held against that.
  void pair_by_origin();
  // Both are looked at with loops followed trip by trip.
  void follow(LoopTrips* trips) { trips_ = trips; }
  const LoopVisit* loop(InstId loop) override;
  ExprId part_of(InstId loop, size_t place, ExprId whole) override;
  bool is_same(ExprId e, ExprId part) override;

 private:
  enum class Answer { kSame, kDiffers, kUnsure };
  struct Suspect {
    ExprId now, before;
    ElementsFinding finding;
  };
  // Taken for the same without having been compared, so that what lies behind it can be.
  struct Assumed {
    ExprId now, before;
    std::string name, why;
  };
  struct Counterpart {
    ExprId e = kNoExpr;
    Dims dims;  // as its instruction writes it
  };
  bool reads_uncompared(ExprId e) const;
  ExprId met(ExprId e, InstId by, const Expr::View* order);
  // `order`: see ExpressionWalk::Met.
  std::vector<Counterpart> of_name(ExprId e, InstId by, const Expr::View* order) const;
  std::function<ptrdiff_t(ExprId)> common_operands(ExprId e) const;
  void likest_first(ExprId e, std::vector<Counterpart>* of, size_t most) const;
  Counterpart lined_up(ExprId e, Counterpart c, const Dims& own, const Expr::View* order) const;
  std::vector<Counterpart> of_origin(ExprId e, InstId by, const Expr::View* order);
  const std::vector<ExprId>& computed_scalars();
  ExprId part_of_leaf(InstId now, InstId was, size_t leaf, ExprId whole, bool plain);
  ExprId part_like(InstId by, size_t leaf, ExprId whole);
  ExprId output_part(size_t k, ExprId whole);
  // Has the stage before it, or what it is a part of?
  bool had(ExprId e) const {
    const Expr& x = s_.all[e];
    return s_.has(e) ||
           (divided_ && x.kind == Expr::kMessage && x.message->kind == DeviceMessage::kPart && s_.has(x.operands[0]));
  }
  ExprId found_same(ExprId e, ExprId same);
  ExprId seen_same(ExprId e, ExprId same, InstId by);  // by elements
  void saw(ExprId e, std::span<const ExprId> with, const std::vector<int64_t>& at);
  bool one_value(ExprId e, std::span<const ExprId> with) const;  // on all devices
  ExprId assume(Assumed a);
  bool may_assume(ExprId e, ExprId before) const;
  bool rests_on_assumed(ExprId e) const;
  // Operands of what has its name in the stage before, where all else of it is the same; and outputs by their places.
  bool pair_operands(const ExprStage& now);
  bool pair_values(ExprId now, ExprId before);
  bool pair_operands_of(ExprId now, ExprId before);
  void blame(const ExprStage& now, ElementsFinding f, ElementsStage* out);
  static void tell(ElementsFinding f, ElementsStage* out);
  InstId lowest(const ExprStage& now, InstId by);
  bool is_enough(InstId now, const std::vector<const ExprTree*>& visits);  // that one, with its former values
  bool is_enough(ExprId now, ExprId before);  // with that value in its place, are all outputs what they were?
  ElementsStage judge_walked(ExprStage* now);
  ElementsStage judged(const ExprStage& now);
  std::vector<Suspect> forced_alike(const ExprStage& now);
  ExprStage walk();
  ExprSet values_of(const ExprStage& stage) const;
  bool outputs_same(const ExprStage& now);
  std::vector<ExprId> near(ExprId e, InstId by, const ExprSet& leaves);
  bool comparable(ExprId e, ExprId with) const;
  bool other_top_k(ExprId a, ExprId b, const ExprSet& cut) const;
  // What `e` is made of that the stage before has. False where it rests on something that it has not and that has no
  // elements of its own.
  bool known_leaves(ExprId e, ExprSet* out);
  ExprSet taken_apart(const ExprSet& leaves, bool all_the_way) const;
  // Is either made of drawn values, parameters aside, that the other is not made of? That these are other values is not
  // known.
  bool other_leaves(ExprId a, ExprId b, std::span<const int64_t> at, const ExprSet& cut);
  // `all`: whether nothing was left out.
  std::vector<ExprId> reached(std::vector<ExprId> from, const ExprSet& cut, bool* all = nullptr) const;
  ExprSet large_constants(ExprId e, const ExprSet& cut) const;
  ExprSet untied(const ExprSet& cut, const ExprSet& used) const;
  // `named`: the first of `with` is the one of that name; any other must be told by more. From level `first` on, below
  // `levels`: how far down from the values that the stage before has.
  Answer compare(ExprId e, const std::vector<ExprId>& with, const Dims& dims, bool named, ExprId* same,
                 ElementsFinding* told, int first = 0, int levels = kLevels);
  // Tries of one pair of values, each further from the results.
  static constexpr int kLevels = 12;
  // Is it another value than the stage before has there, by what both are? `told`: who, and in words.
  bool surely_differs(ExprId e, ExprId before, InstId by, ElementsFinding* told);
  bool other_trips(const Expr& x, const Expr& y, InstId by, std::string* words);
  bool begins_too_far(ExprId e, ExprId before, std::string* words);
  // Where the difference begins: an instruction of operands that the stage before has, whose value was another one.
  struct Beginning {
    InstId inst, inst_before;
    std::vector<ExprTree> before;  // its values, as it is visited
    // Others that apply the same computation, with theirs: it may be that one which is another one.
    std::vector<std::pair<InstId, std::vector<ExprTree>>> alike;
    ExprId now, was;                       // the last of them
    std::vector<ExprTree> operands, were;  // of that
  };
  std::vector<Beginning> beginnings(const ExprStage& now) const;
  // Of those as well that nothing of the stage before stands against.
  std::vector<std::string> names_of_beginnings(const ExprStage& now);
  // One beginning, all else as it was: with its former value the stage is the one before, and that value was another
  // one in general. `evaluating`: what lies behind it may be compared at elements; by form alone otherwise.
  bool alone(const ExprStage& now, bool evaluating, ElementsFinding* told);
  InstId handed_from(const ExprStage& now, InstId by, ExprId is, ExprId was) const;
  // Are these other values in general: whatever values that are dear to evaluate have there, so that none of them is?
  bool differs_in_general(ExprId e, ExprId before, int depth, ElementsFinding* told);
  // As instructions: by one operand, of which that is told.
  bool differs_by_operand(const Beginning& b, ElementsFinding* told);
  bool read_another_parameter(ExprId e, ExprId before, const ExprSet& cut, ElementsFinding* told);
  bool differs_at_elements(ExprId e, ExprId before, ElementsFinding* told);
  bool differs_dearly(ExprId e, ExprId before, int depth, ElementsFinding* told);
  bool unlike(ExprId a, ExprId b, int depth = 0) const;
  bool tells_apart(const ExprSet& now, const ExprSet& before, bool drawn) const;
  void suspect(ExprId e, ExprId before, ElementsFinding f);
  // Under a new name: which of `with` begins its sum or extreme with another number is suspected, and leaves them.
  void suspect_beginning(ExprId e, InstId by, std::vector<ExprId>* with);
  void suspect_output(const ExprStage& now, ExprId e, ExprId before, ElementsFinding f);
  bool edited(const ExprStage& now, const Suspect& s) const;
  const Suspect* literal_alone(const ExprStage& now);
  const Suspect* unseen_literal();
  // One of them with its dimensions in another order; kNoExpr where none is.
  ExprId any_permuted(ExprId e, const std::vector<Counterpart>& named, const std::vector<ExprId>& with,
                      const ExprSet& leaves);
  std::vector<int64_t> where_told(ExprId e, ExprId with, const std::vector<int64_t>& anywhere,
                                  ChosenElements& elements) const;
  std::vector<int64_t> on_devices(ExprId e, std::span<const ExprId> with, std::vector<int64_t> at) const;
  bool reads_all(ExprId e, std::span<const int64_t> at, const ExprSet& cut, const ExprSet& own);
  ExprId like_part(ExprId part, ExprId whole, ShapeId shape);
  bool operation_of_parts(ExprId e, ExprId part);
  ExprId proven_part(ExprId e, const std::vector<ExprId>& with);
  bool scatter_of_parts(ExprId e, ExprId part);
  bool lowered(ExprId is, ExprId was, const Expr& scatter, const std::vector<Dims>& starts);
  // Of sums too long to be made: are their terms the same?
  bool same_terms(ExprId e, ExprId with);
  const Shape& shape_of(ExprId e) const { return wide_->u()[s_.all[e].shape]; }
  // What chooses between values, or hides one, and which of its sides was seen.
  struct Masks {
    std::vector<ExprId> of;
    std::vector<std::pair<int64_t, int64_t>> seen;  // elements that are false, and that are true
    void note(const ChosenElements& elements);
    bool both() const;                                     // often enough, of each that was looked at
    bool rare() const;                                     // one side of one of them, all the same
    bool side_seen(const ChosenElements& elements) const;  // the rare one of one of these
  };
  // They themselves, and operands of logical operations; with `choices`, what branches and selects go by, too.
  Masks masks_of(ExprId a, ExprId b, const ExprSet& cut, bool choices);
  struct Sampled {
    std::vector<double> values;
    bool sure = true;
  };
  std::vector<int64_t> beside_masks(ExprId e, ExprId with, const Dims& dims, const ExprSet& cut);
  bool sample_beside(ExprId e, ExprId with, const Dims& dims, const ExprSet& cut, ChosenElements* elements,
                     std::vector<int64_t>* at, Sampled* now);
  ExprSet float_literals(ExprId e, const ExprSet& cut) const;
  bool sample_moved(ExprId e, std::span<const int64_t> at, const ExprSet& cut, Draw how, const DrawnNear* near,
                    ExprId literal, Sampled* out);
  bool only_rounded(ExprId a, ExprId b, std::span<const int64_t> at, const ExprSet& cut, Draw how,
                    const DrawnNear* near, const Sampled& x, const Sampled& y);
  // `used`: leaves that were drawn.
  int64_t affordable() const;  // elements, for one more value
  // `kept`: parameters are what the program had, where that is known.
  // Values of `cut` are drawn where they are not fixed; what may be evaluated and how long.
  ChosenElements::Options options_of(const ExprSet& cut);
  ChosenElements evaluation(const ExprSet& cut, Draw how, ExprSet* used, const DrawnNear* near = nullptr,
                            bool kept = false);
  // With the program's own arguments; true as well where there are none, or too much is to be evaluated. `told`: null
  // where the difference is not asked for.
  bool alike_kept(ExprId e, ExprId c, const std::vector<int64_t>& anywhere, const ExprSet& cut, Masks* masks,
                  bool* differs, ElementsFinding* told);
  DrawnNear constants_of(ExprId a, ExprId b, const ExprSet& cut) const;
  bool alike_drawn(ExprId a, ExprId b, std::span<const int64_t> at, const ExprSet& cut, Draw how, const DrawnNear& near,
                   bool* over, Masks* masks);
  // Do they agree about constants, too, that they are made of?
  bool alike_near(ExprId a, ExprId b, std::span<const int64_t> at, const ExprSet& cut, bool* over, Masks* masks);
  bool alike_masked(ExprId a, ExprId b, std::span<const int64_t> at, const ExprSet& cut, bool* over, Masks* masks);
  bool alike_rare(ExprId a, ExprId b, std::span<const int64_t> at, const ExprSet& cut, const Masks& masks);
  // False where it is over budget: the evaluation is of no more use then.
  bool sample(ChosenElements& elements, ExprId e, std::span<const int64_t> at, Sampled* out);
  static bool tells(const Sampled& a, const Sampled& b);
  bool told_by_draws(ExprId a, ExprId b, std::span<const int64_t> at, const ExprSet& cut, int64_t cost, bool* over);
  static bool any_finite(const Sampled& s);
  static bool all_finite(const Sampled& s);
  // What numbers may be off by is a part of these.
  class Magnitudes {
   public:
    Magnitudes(std::span<const double> a, std::span<const double> b);
    double at(double x, double y) const;  // where one has x and the other y

   private:
    static constexpr double kFarLarger = 1e4, kOneNumber = 1e-6;
    double largest_ = 0, beside_ = 0;
  };
  bool alike(const Sampled& a, const Sampled& b, size_t* where, double rounding = 0) const;
  ExprId permuted(ExprId e, ExprId with, const Dims& from, const Dims& to, const ExprSet& cut);
  void count(const ExprStage& now, ElementsStage* out);
  // The first of the open ones that is made of none of them, and why.
  std::string first_open(const ExprStage& now, const ExprSet& open);
  std::string name(ExprId e) const;

  State& s_;
  std::shared_ptr<const Module> wide_;
  bool divided_ = false, by_origin_ = false;
  LoopTrips* trips_ = nullptr;
  bool output_differs_ = false;                                          // one of them, by its elements
  std::unordered_map<uint64_t, std::vector<const ExprVisit*>> origins_;  // of the stage before, by metadata
  std::optional<std::vector<ExprId>> computed_scalars_;
  std::vector<Suspect> suspects_;
  std::vector<Assumed> assumed_;
  std::unordered_map<ExprId, Assumed> pending_;  // what could not be compared
  bool assuming_ = false;
  bool over_ = false;             // the last comparison went over budget
  bool rests_on_unseen_ = false;  // a literal that no chosen element tells from its former value
  bool ended_ = false;            // the last comparison: further down nothing can be told either
  bool more_ = false;             // a comparison with its namesake alone may cost more
  bool less_ = false;             // it reads what was not compared
  std::vector<ExprId> found_;     // the same as others, in this stage
  int64_t seen_ = 0, of_ = 0;     // elements by which the last comparison found them the same; that there are
  ElementsSampled sampled_;
  ExprSet tried_;           // what has been looked at in this stage
  ExprSet same_outputs_;    // of this stage: found the same as the one in its place
  size_t known_ = 0;        // expressions that there were before this stage
  int64_t most_alone_ = 0;  // elements, for what lies behind one value that was forced
  size_t in_vain_ = 0;
  std::string unsure_;
  std::unordered_map<ExprId, std::string> why_;  // of what was not compared
};

}  // namespace hlo
