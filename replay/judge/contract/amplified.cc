#include "replay/judge/contract/amplified.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ir/eval/widen.h"
#include "replay/judge/contract/check_runs.h"
#include "replay/judge/contract/noise.h"

namespace hlo {
namespace {

// Ways to round, and how much less than a difference they may move a result and still explain it.
constexpr uint32_t kTurns = 3;
constexpr double kExplains = 8;
// What results may be apart without being different, of their largest magnitude.
constexpr double kTolerance = 1e-6;
// How long the other stage may take.
constexpr int kTimesGood = 5;
constexpr std::chrono::seconds kPatience{2};
using Clock = std::chrono::steady_clock;

// How far two leaves lie apart.
struct Apart {
  double most = 0;       // of the largest magnitude of the first; of integers the difference
  int64_t elements = 0;  // that differ: of integers; of floats where one alone is no finite number
  bool differs(bool floats) const { return elements > 0 || (floats && most > kTolerance); }
};

Apart apart(const Numbers& a, const Numbers& b) {
  Apart out;
  if (!a.floats) {
    for (size_t k = 0; k < a.whole.size() && k < b.whole.size(); ++k)
      if (a.whole[k] != b.whole[k]) {
        ++out.elements;
        out.most = std::max(out.most, std::fabs(static_cast<double>(a.whole[k]) - static_cast<double>(b.whole[k])));
      }
    return out;
  }
  double largest = 0, most = 0;
  for (size_t k = 0; k < a.real.size() && k < b.real.size(); ++k) {
    const bool finite = std::isfinite(a.real[k]);
    if (finite) largest = std::max(largest, std::fabs(a.real[k]));
    if (finite && std::isfinite(b.real[k]))
      most = std::max(most, std::fabs(a.real[k] - b.real[k]));
    else if (finite || std::isfinite(b.real[k]) || std::isnan(a.real[k]) != std::isnan(b.real[k]))
      ++out.elements;
  }
  out.most = largest > 0 ? most / largest : most;
  return out;
}

Leaves run(const Module& m, const Session& session, const EvalOptions& options, bool wide) {
  return numbers_of(m.u(), session.run(m, *find_executor("evaluator"), options, 1, wide));
}

}  // namespace

std::string amplified_rounding(const Module& good, const Module& bad, const Session& session,
                               const EvalOptions& options, bool wide) {
  try {
    const auto begin = Clock::now();
    const Leaves was = run(good, session, options, wide);
    // A stage that no longer ends is not waited for.
    const auto until = Clock::now() + kTimesGood * (Clock::now() - begin) + kPatience;
    EvalOptions bounded = options;
    bounded.stop = [&] { return (options.stop && options.stop()) || Clock::now() > until; };
    const Leaves is = run(bad, session, bounded, wide);
    if (was.size() != is.size()) return "";
    const std::unique_ptr<Module> in_f64 = wide ? widened_module(good) : nullptr;
    std::vector<Apart> moved(was.size());
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      NoiseOptions noise;
      noise.seed = turn;
      EvalOptions noisy = options;
      noisy.change = rounding_noise(in_f64 ? *in_f64 : good, noise);
      const Leaves other = run(good, session, noisy, wide);
      for (size_t k = 0; k < was.size(); ++k) {
        const Apart a = apart(was[k], other[k]);
        moved[k].most = std::max(moved[k].most, a.most), moved[k].elements = std::max(moved[k].elements, a.elements);
      }
    }
    std::string words;
    for (size_t k = 0; k < was.size(); ++k) {
      const Apart a = apart(was[k], is[k]);
      if (!a.differs(was[k].floats)) continue;
      const bool far = was[k].floats && a.most > kTolerance;
      if (far && moved[k].most * kExplains < a.most) return "";
      if (static_cast<double>(moved[k].elements) * kExplains < static_cast<double>(a.elements)) return "";
      if (!was[k].floats && moved[k].most * kExplains < a.most) return "";
      if (words.empty())
        words = a.elements > 0
                    ? fmt::format("o{}: {} elements by rounding, {} here", k, moved[k].elements, a.elements)
                    : fmt::format("o{}: by {:.3g} of its largest magnitude, {:.3g} here", k, moved[k].most, a.most);
    }
    return words.empty() ? "" : "rounding in its instructions moves the results as far (" + words + ")";
  } catch (const Failure&) {
    return "";
  }
}

}  // namespace hlo
