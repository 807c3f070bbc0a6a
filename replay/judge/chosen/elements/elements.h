// Chosen elements of an expression, each from the elements that it is made of: arrays are never made.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/judge/chosen/elements/expressions.h"

namespace hlo {

class DeviceClasses;

// Where several devices have it, element i of what device d has is number d · elements + i.
class ChosenElements {
 public:
  // Elements of a leaf by their row-major indices, `storage_bytes` of the type each.
  using Leaf = std::function<void(ExprId, std::span<const int64_t> indices, char* out)>;
  struct Options {
    // Is that expression taken as it is, a leaf, whatever it is made of? Null: none is.
    std::function<bool(ExprId)> cut;
    // Elements that may be evaluated (and bytes that may be held) before Failure(kUnsupported) "over budget".
    int64_t most_elements = int64_t{1} << 26;
    // What has no rule for single elements (sorts, FFTs, factorisations, calls) is evaluated whole where its operands
    // have no more elements than that in sum; else it is a leaf.
    int64_t most_whole = int64_t{1} << 20;
    std::function<bool()> stop;
    // Who has the same: what several have is evaluated for the first of them. Null: there is one device.
    DeviceClasses* devices = nullptr;
  };
  // `expressions` by ExprId; they and `leaf` must outlive this. Parameters, formals, loops, and what can be evaluated
  // in no other way are leaves.
  ChosenElements(const std::vector<Expr>& expressions, Leaf leaf, Options options);
  ~ChosenElements();
  ChosenElements(ChosenElements&&) noexcept;
  ChosenElements& operator=(ChosenElements&&) = delete;

  // The elements of `e` at these indices, in their order. Throws Failure(kUnsupported) over budget or where stopped.
  std::vector<char> at(ExprId e, std::span<const int64_t> indices);
  // Leaves that were asked for and are none by their kind or by `cut`: operations that could not be evaluated, and why.
  const std::unordered_map<ExprId, std::string>& uninterpreted() const;
  int64_t evaluated() const;  // elements, so far
  // Adds how many elements of what was evaluated of it are false, and how many are true.
  void count_sides(ExprId e, int64_t* no, int64_t* yes) const;
  // From here on no more than that many are evaluated, however many were. What went over budget before may be tried.
  void limit(int64_t more);

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace hlo
