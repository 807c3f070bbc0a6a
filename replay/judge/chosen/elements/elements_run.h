// One evaluation of chosen elements, and what is known by it.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/judge/chosen/elements/rules.h"

namespace hlo {

// The shapes of a value's arrays, in order.
void add_leaf_shapes(const Universe& u, ShapeId id, std::vector<ShapeId>* to);

// Runs go down from readers to operands, collecting what is needed of each, and up again with the values. What must be
// known before needs can be told is a run of its own on top, on a stack of ours.
class ChosenElements::Run : public ElementSource {
 public:
  Run(const std::vector<Expr>& expressions, Leaf leaf, Options options)
      : expressions_(expressions),
        leaf_(std::move(leaf)),
        options_(std::move(options)),
        most_here_(options_.most_elements) {}

  std::vector<char> at(ExprId e, std::span<const int64_t> indices);
  void read(const ElementOperation& o, size_t operand, std::span<const int64_t> elements, char* out) override {
    read_here(o.x.operands[operand], o.in[operand]->type, elements, out);
  }
  bool known(const ElementOperation& o, size_t operand, std::span<const int64_t> elements) override {
    return known_here(o.x.operands[operand], elements);
  }
  void afford(int64_t elements) override;
  void limit(int64_t more);
  void count_sides(ExprId e, int64_t* no, int64_t* yes) const;
  const Options& options() const override { return options_; }

  std::unordered_map<ExprId, std::string> uninterpreted;
  int64_t evaluated = 0;

 private:
  struct Step {
    ExprId e;
    ElementList at;
    bool leaf;
    std::unique_ptr<ElementOperation> operation;
    ElementPlan plan;
  };
  // Of whom single elements are planned and made.
  class Device {
   public:
    Device(Run& run, int64_t device) : run_(run), before_(std::exchange(run.device_, device)) {}
    ~Device() { run_.device_ = before_; }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

   private:
    Run& run_;
    int64_t before_;
  };
  struct Frame {
    std::vector<ExprId> heap;  // the largest first
    std::unordered_map<ExprId, std::vector<ElementList>> needs;
    std::vector<Step> steps;
  };
  const Universe& universe();
  ElementType type_of(ExprId e) { return universe()[expressions_[e].shape].type; }
  int64_t count_of(ExprId e) { return universe()[expressions_[e].shape].elements_count(); }
  // The number of an element of what `device` has, for who evaluates it.
  int64_t number_of(ExprId e, int64_t device, int64_t element);
  std::vector<int64_t> numbers_here(ExprId e, std::span<const int64_t> elements);
  void read_as(ExprId e, ElementType type, std::span<const int64_t> numbers, char* out);
  // What the present device has.
  void read_here(ExprId e, ElementType type, std::span<const int64_t> elements, char* out);
  bool known_here(ExprId e, std::span<const int64_t> elements);
  void plan_step(Step& s);
  ElementPlan plan_here(Step& s, const Elements& at);
  ElementPlan plan_devices(Step& s);
  ElementPlan plan_message(const Expr& x, const Elements& numbers);
  void need(Frame& f, ExprId e, ElementList list);
  ElementList unknown(ExprId e, const std::vector<ElementList>& lists);
  bool go_down(std::vector<Frame>& frames);  // false: another run must come first
  void go_up(Frame& f);
  void evaluate(Step& s);
  ElementPlan plan(const ElementOperation& o, const Elements& at);
  ElementPlan plan_call(const ElementOperation& o, const Elements& at);
  ElementPlan plan_branch(const Expr& x, const Elements& at);
  ElementPlan plan_view(const Expr& x, const Elements& at);
  ElementPlan plan_sum(const Expr& x, const Elements& at);
  ElementPlan plan_constant(const ElementOperation& o, const Elements& at);
  ElementPlan plan_whole(const ElementOperation& o, const Elements& at);
  void check_stop();

  const std::vector<Expr>& expressions_;
  Leaf leaf_;
  Options options_;
  int64_t most_here_;  // from the last limit on
  const Universe* universe_ = nullptr;
  std::unordered_map<ExprId, KnownElements> known_;
  int64_t device_ = 0;
  int64_t pending_ = 0;  // elements that are asked for
  bool over_ = false;    // budget
  using WholeKey = std::tuple<const Module*, uint32_t, std::vector<ExprId>, int64_t>;
  std::map<WholeKey, std::vector<Value>> whole_;  // arrays of the results
};

}  // namespace hlo
