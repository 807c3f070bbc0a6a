// Where the first NaN of a run comes from, and the first infinity.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

// What an array holds; zeros for what has no elements. Of complex numbers the magnitude counts.
struct Statistics {
  int64_t elements = 0, nan = 0, inf = 0;
  double min = INFINITY, max = -INFINITY, sum = 0;  // of the finite ones
  uint64_t checksum = 0;
  bool numbers = false;
};
Statistics statistics(const Universe& u, const Value& v);

// An instruction that makes elements of a kind that its operands do not explain.
struct NotFinite {
  std::string instruction, opcode, computation;
  int64_t elements = 0;  // made here
  std::string text;      // all of it, for a person: place, source, operands
};

// Watches a run. An element is *made* where it is NaN and no NaN among the operands' elements that it is computed from
// explains it: `inf - inf` makes one though infinities come in, `NaN + 1` does not. Infinities in the same way. What
// parameters and constants bring is made by nobody.
class NanWatch {
 public:
  // `kernels`: the run is of a backend that does not tell of the instructions inside a fusion; the evaluator then looks
  // into those that make one.
  NanWatch(const Module& m, bool kernels) : m_(m), kernels_(kernels) {}

  // For EvalOptions::trace, with trace_all. Throws Failure(kInvalid) with the text at the first NaN that is made;
  // infinities are kept. The watch must outlive the run.
  std::function<void(InstId, std::span<const Value>, const Value&)> listener();

  const std::optional<NotFinite>& nan() const { return nan_; }
  const std::optional<NotFinite>& infinity() const { return infinity_; }  // the first
  // Parameters and constants that brought NaN, in words: `parameter x (3 NaN)`; empty where none did.
  const std::string& brought() const { return brought_; }
  // Both findings, in words; empty where there is none.
  std::string text() const;

 private:
  enum class Kind { kNan, kInfinity };
  void see(InstId i, std::span<const Value> operands, const Value& v);
  // So many elements of that kind are made; `first`: the flat index of the first one in its leaf.
  int64_t made(Kind kind, InstId i, std::span<const Value> operands, const Value& v, int64_t* first);
  // A fusion or called computation as the evaluator runs it: true where that tells more, or that nothing is made.
  bool looked_inside(Kind kind, InstId i, std::span<const Value> operands);
  NotFinite described(Kind kind, InstId i, std::span<const Value> operands, const Value& v, int64_t elements,
                      int64_t first) const;

  const Module& m_;
  bool kernels_;
  std::optional<NotFinite> nan_, infinity_;
  std::string brought_;
};

}  // namespace hlo
