#include "replay/judge/chosen/pair/by_elements.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/base/memory.h"
#include "ir/cost/cost.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/widen.h"
#include "ir/query/source_lines.h"
#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/pair/pair.h"
#include "replay/judge/values/inputs.h"

namespace hlo {
namespace {

// A few seconds of the evaluator's time for one stage, some minutes for all.
constexpr double kMostOperations = 5e10, kMostBytes = 2e10, kMostOperationsInAll = 2e12, kMostBytesInAll = 2e11;
// Of the elements that are left a stage may take one in so many.
constexpr int64_t kShareOfStage = 16;
constexpr int64_t kForDivided = int64_t{1} << 29;

// Of floats of less than 32 bits.
double coarsest_rounding(const Module& m) {
  double out = 0;
  for (CompId c : m.computations())
    for (InstId i : m.post_order(c)) {
      const FloatFormat* format = m.shape(i).is_array() ? float_format(m.shape(i).type) : nullptr;
      if (format) out = std::max(out, std::ldexp(1.0, 1 - format->mantissa_bits));
    }
  return out;
}

// Of tables by device.
constexpr int64_t kMostDevicesHere = 1 << 14;

bool same_shapes(const Module& a, InstId x, const Module& b, InstId y) {
  return a.u().compatible(a.shape_id(x), b.shape_id(y));
}

// Of one name of the entry in so many, or fewer, is the meaning what it was in the stage before: a way through MLIR
// (shardy-xla) and the partitioner make all instructions anew, layout_normalization many.
constexpr size_t kNamesOfOther = 10, kNamesOfWhole = 2;

bool renamed(const Module& before, const Module& now, size_t one_in) {
  std::unordered_map<std::string_view, InstId> names;
  for (InstId i : before.post_order(before.entry())) names.emplace(before.inst_name(i), i);
  // Another opcode of the same origin may be a fault, and is no other meaning of the name.
  auto means_the_same = [&](InstId was, InstId is) {
    const std::string origin = op_name_of(now, is);
    return before.op(was) == now.op(is) || (!origin.empty() && op_name_of(before, was) == origin);
  };
  size_t kept = 0, all = 0;
  for (InstId i : now.post_order(now.entry())) {
    if (now.op(i) == Opcode::Parameter) continue;
    const auto was = names.find(now.inst_name(i));
    ++all, kept += was != names.end() && means_the_same(was->second, i);
  }
  return kept * one_in < all;
}

// Does the metadata of most of its entry say what they are?
bool tells_origins(const Module& m) {
  size_t told = 0, all = 0;
  for (InstId i : m.post_order(m.entry()))
    if (m.op(i) != Opcode::Parameter) ++all, told += !op_name_of(m, i).empty();
  return told * 2 >= all;
}

// Is one stage of whole arrays, and the next one of what each device has of them? Where the entry does not tell,
// new names do.
bool divides(const Module& before, const Module& now) {
  if (now.config().num_partitions < 2 || devices_needed(before) > 1) return false;
  const Computation &a = before.comp(before.entry()), &b = now.comp(now.entry());
  for (size_t k = 0; k < a.params.size() && k < b.params.size(); ++k)
    if (!same_shapes(before, a.params[k], now, b.params[k])) return true;
  if (!same_shapes(before, a.root, now, b.root)) return true;
  return devices_needed(now) > 1 && renamed(before, now, kNamesOfWhole);
}

void take_devices(int64_t count, DeviceClasses& devices) {
  if (count == 1) return;
  if (count > kMostDevicesHere)
    fail(FailureKind::kUnsupported, "programs for {} devices are not compared at chosen elements, at most {}", count,
         kMostDevicesHere);
  if (devices.devices() != 1 && devices.devices() != count)
    fail(FailureKind::kUnsupported, "a stage for {} devices after one for {}", count, devices.devices());
  devices.set_devices(count);
}

std::shared_ptr<const Module> widened(const Module& m, DeviceClasses& devices) {
  take_devices(devices_needed(m), devices);
  return std::shared_ptr<const Module>(widened_module(m));
}

}  // namespace

// What the next stage is held against.
void ByElements::State::take(ExprStage now) {
  ++stage;
  by_name.clear(), readers.clear();
  stage_of.resize(all.size(), 0);
  std::vector<ExprId> work;
  auto reach = [&](ExprId e) {
    if (stage_of[e] == stage) return;
    stage_of[e] = stage;
    work.push_back(e);
  };
  for (const ExprVisit& v : now.visits) {
    by_name[std::string(now.wide->inst_name(v.inst))].push_back(v.value);
    std::vector<ExprId> ids;
    v.value.leaves(&ids);
    for (ExprId e : ids) reach(e);
    while (!work.empty()) {
      const ExprId e = work.back();
      work.pop_back();
      for (ExprId o : all[e].operands) {
        std::vector<ExprId>& r = readers[o];
        if (r.empty() || r.back() != e) r.push_back(e);
        reach(o);
      }
    }
  }
  before = std::move(now);
}

ByElements::ByElements(ElementsOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}
ByElements::~ByElements() = default;

ElementsStage ByElements::first(const Module& m) {
  std::shared_ptr<const Module> wide = widened(m, state_->all.devices());
  state_->kept.push_back(wide);
  state_->coarsest = coarsest_rounding(m);
  auto met = [&](ExprId e, InstId by, const Expr::View*) {
    state_->names.emplace(e, wide->inst_name(by));
    return e;
  };
  ExprStage now = ExpressionWalk(state_->all, wide, met).run();
  ElementsStage out;
  out.verdict = Verdict::kGood;
  std::vector<ExprId> outputs;
  now.result.leaves(&outputs);
  out.outputs = out.outputs_same = outputs.size();
  state_->take(std::move(now));
  out.values = state_->all.size();
  return out;
}

ElementsStage ByElements::next(const Module& m) {
  std::shared_ptr<const Module> wide = widened(m, state_->all.devices());
  const size_t known = state_->all.size();
  state_->kept.push_back(wide);
  state_->coarsest = std::max(state_->coarsest, coarsest_rounding(m));
  // One stage leaves most of it to those behind it.
  state_->most_now = state_->spent + (state_->options.most_in_all - state_->spent) / kShareOfStage;
  ExprStage now;
  Pair pair(*state_, wide);
  const bool divided = divides(*state_->before.wide, *wide);
  if (divided) {
    take_devices(device_count(*wide), state_->all.devices());
    // As it is written itself, not in the ways of those before it.
    state_->kept.push_back(state_->before.wide);
    state_->all.forget_same();
    state_->take(ExpressionWalk(state_->all, state_->before.wide, nullptr).run());
    pair.divide();
    // All that it has is new: it takes nothing of what the others have.
    state_->most_now = state_->spent + kForDivided;
    state_->options.most_in_all += kForDivided;
  } else if (renamed(*state_->before.wide, *wide, kNamesOfOther) && tells_origins(*wide)) {
    pair.pair_by_origin();
  }
  ElementsStage out = pair.judge(&now);
  // A loop that takes several trips at once has other values under the names that one trip had.
  if (!divided && out.verdict != Verdict::kGood && (now.loops || state_->before.loops) && same_by_trips(now, wide)) {
    out.verdict = Verdict::kGood, out.why.clear(), out.not_compared.clear(), out.findings.clear();
    out.compared = out.changed, out.outputs_same = out.outputs;
  }
  if (state_->all.size() == known) state_->kept.pop_back();
  state_->take(std::move(now));
  return out;
}

bool too_large_to_run(const Module& m, size_t stages) {
  CostAnalysis cost(m);
  const Cost one = cost.of_computation(m.entry());
  const auto times = static_cast<double>(stages);
  return one.flops > kMostOperations || one.flops * times > kMostOperationsInAll || one.bytes() > kMostBytes ||
         one.bytes() * times > kMostBytesInAll || bytes_inside(m) > available_memory().bytes / 2;
}

void ElementsSampled::add(const std::string& by, int64_t elements_seen, int64_t elements) {
  add({1, by, elements_seen, elements});
}

void ElementsSampled::add(const ElementsSampled& other) {
  if (!other.values) return;
  const auto part = [](const ElementsSampled& s) { return static_cast<double>(s.seen) / static_cast<double>(s.of); };
  if (!values || part(other) < part(*this)) instruction = other.instruction, seen = other.seen, of = other.of;
  values += other.values;
}

// Each element that was seen is one of the right ones; none is seen twice.
double ElementsSampled::escapes(double wrong) const {
  double out = 1;
  const auto all = static_cast<double>(of);
  for (int64_t k = 0; k < seen && out > 0; ++k)
    out *= std::max(0., all - wrong - static_cast<double>(k)) / (all - static_cast<double>(k));
  return out;
}

}  // namespace hlo
