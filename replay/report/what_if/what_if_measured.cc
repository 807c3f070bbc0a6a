// Times of whatif by a profile: what ran is as it was measured, what did not is foretold by what did.
#include <unordered_map>

#include "ir/target/data_sheet.h"
#include "replay/compare/common_kernels.h"
#include "replay/report/kernels/expected.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/what_if/what_if_parts.h"

namespace hlo {
namespace {

// What kernels took over their prices, together.
struct OverPrice {
  double measured = 0, price = 0;
  double ratio() const { return price > 0 ? measured / price : 0; }
};

// How many kernels of a side were foretold by which others.
struct ForetoldBy {
  size_t same = 0, source = 0, kind = 0, all = 0;
};

ExpectedTime expected_of(const WhatIfProgram& p) {
  return expected_time(p.module, module_cost(p.module, p.sheet), p.sheet, "CUDA");
}

void set_prices(const WhatIfProgram& p, bool expect, WhatIfSide* side) {
  const ExpectedTime expected = expect ? expected_of(p) : ExpectedTime{};
  for (WhatIfKernel& k : side->kernels) {
    const ExpectedKernel* e = expect ? expected.of(k.inst) : nullptr;
    k.price = e ? e->seconds : k.seconds;
  }
}

// Of one source and kind, with the same bytes and operations.
std::string work_of(const WhatIfKernel& k) { return fmt::format("{}\n{} {} {}", k.key, k.times, k.bytes, k.flops); }

class WhatIfTimes {
 public:
  WhatIfTimes(const WhatIfMeasured& measured, const WhatIfProgram& ran, bool expect)
      : from_(measured), expect_(expect) {
    std::set<std::string> ignored;
    describe_kernels(*measured.ran, ran.gpu.description, &ran_, &ignored);
    set_prices(ran, expect, &ran_);
    for (size_t k = 0; k < ran_.kernels.size(); ++k) {
      WhatIfKernel& kernel = ran_.kernels[k];
      by_inst_[kernel.inst] = k, runs_ += kernel.times;
      const std::optional<double> seconds = measured.seconds(measured.ran->inst_name(kernel.inst));
      if (!seconds) continue;
      kernel.time = *seconds, kernel.measured = true, seconds_ += *seconds, ++seen_;
      for (OverPrice* sum : {&by_key_[kernel.key], &by_kind_[kernel.kind], &all_})
        sum->measured += *seconds, sum->price += kernel.price;
    }
  }

  // `elsewhere`: on another card, where no kernel takes what was measured.
  ForetoldBy time(const WhatIfProgram& p, bool elsewhere, WhatIfSide* side) const {
    set_prices(p, expect_, side);
    const std::vector<const WhatIfKernel*> likes = like_kernels_of(p, *side);
    ForetoldBy by;
    double runs = 0;
    for (size_t n = 0; n < side->kernels.size(); ++n) {
      WhatIfKernel& k = side->kernels[n];
      runs += k.times;
      const WhatIfKernel* same = likes[n] && likes[n]->measured ? likes[n] : nullptr;
      k.measured = same && !elsewhere;
      k.time = k.measured ? same->time : k.price * ratio_for(k, same, &by);
      (k.measured ? side->measured : side->foretold) += k.time;
      side->measured_kernels += k.measured;
    }
    side->between = runs_ > 0 ? from_.between * runs / runs_ : 0;
    return by;
  }

  double seconds() const { return seconds_; }
  size_t seen() const { return seen_; }

 private:
  // Of each kernel of a side the one that ran; null: none is its like.
  std::vector<const WhatIfKernel*> like_kernels_of(const WhatIfProgram& p, const WhatIfSide& side) const {
    std::unordered_map<InstId, size_t> paired;
    std::vector<bool> taken(ran_.kernels.size(), false);
    for (const auto& [theirs, own] : kernel_pairs(*from_.ran, p.module))
      if (auto at = by_inst_.find(theirs); at != by_inst_.end()) paired[own] = at->second;
    for (const WhatIfKernel& k : side.kernels)
      if (auto at = paired.find(k.inst); at != paired.end()) taken[at->second] = true;
    std::map<std::string, std::vector<size_t>> left;  // by work, the last ones in front
    for (size_t n = ran_.kernels.size(); n-- > 0;)
      if (!taken[n]) left[work_of(ran_.kernels[n])].push_back(n);
    std::vector<const WhatIfKernel*> out;
    for (const WhatIfKernel& k : side.kernels) {
      const WhatIfKernel* like = nullptr;
      if (auto at = paired.find(k.inst); at != paired.end()) {
        like = &ran_.kernels[at->second];
      } else if (auto same = left.find(work_of(k)); same != left.end() && !same->second.empty()) {
        like = &ran_.kernels[same->second.back()];
        same->second.pop_back();
      }
      out.push_back(like);
    }
    return out;
  }

  double ratio_for(const WhatIfKernel& k, const WhatIfKernel* same, ForetoldBy* by) const {
    if (same && same->price > 0) return ++by->same, same->time / same->price;
    if (auto at = by_key_.find(k.key); at != by_key_.end() && at->second.ratio() > 0)
      return ++by->source, at->second.ratio();
    if (auto at = by_kind_.find(k.kind); at != by_kind_.end() && at->second.ratio() > 0)
      return ++by->kind, at->second.ratio();
    return ++by->all, all_.ratio() > 0 ? all_.ratio() : 1;
  }

  const WhatIfMeasured& from_;
  const bool expect_;
  WhatIfSide ran_;
  std::unordered_map<InstId, size_t> by_inst_;
  std::map<std::string, OverPrice> by_key_, by_kind_;
  OverPrice all_;
  double runs_ = 0, seconds_ = 0;
  size_t seen_ = 0;
};

// Empty where nothing was foretold.
std::string foretold_words(const ForetoldBy& by, bool expect) {
  std::string of;
  for (const auto& [n, what] :
       {std::pair(by.same, "the same kernel"), std::pair(by.source, "kernels of the same source"),
        std::pair(by.kind, "kernels of the same kind"), std::pair(by.all, "all kernels")})
    if (n) of += fmt::format("{}{} ({})", of.empty() ? "" : ", ", what, n);
  if (of.empty()) return {};
  return fmt::format("predicted: {}, times what was measured over that, of {}",
                     expect ? "what is expected" : "what the model says", of);
}

}  // namespace

void take_times(const WhatIfMeasured& measured, const WhatIfProgram& as_is, const WhatIfProgram& changed, WhatIf* w,
                std::set<std::string>* notes) {
  const WhatIfProgram ran{*measured.ran, as_is.gpu, measured.sheet};
  bool expect = true;
  for (const WhatIfProgram* p : {&ran, &as_is, &changed}) expect = expect && expected_of(*p).why_not.empty();
  const WhatIfTimes times(measured, ran, expect);
  if (!times.seen()) return;
  w->timed = true;
  times.time(as_is, false, &w->as_is);
  const ForetoldBy by = times.time(changed, changed.gpu.description != as_is.gpu.description, &w->changed);
  notes->insert(
      fmt::format("measured: {} of kernels in one run; our passes make {} of its {} kernels as they ran, which took {}",
                  time_text(times.seconds()), w->as_is.measured_kernels, times.seen(), time_text(w->as_is.measured)));
  if (const std::string words = foretold_words(by, expect); !words.empty()) notes->insert(words);
}

}  // namespace hlo
