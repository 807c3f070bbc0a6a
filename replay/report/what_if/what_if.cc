#include "replay/report/what_if/what_if.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ir/analysis/performance/gpu_performance_model.h"
#include "ir/query/fingerprint.h"
#include "passes/backend/backend.h"
#include "passes/pipelines/pipelines.h"
#include "replay/compare/common_kernels.h"
#include "replay/os/interrupt.h"
#include "replay/record/start/target.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/memory/memory_report.h"
#include "replay/report/what_if/batch.h"
#include "replay/report/what_if/what_if_parts.h"

namespace hlo {
namespace {

constexpr const char* kGpu = kDefaultGpu.data();  // what the options of passes.def say where nobody asks for another

// A stage of one side: which, and what the module does then.
struct WhatIfStage {
  std::string name;
  uint64_t content = 0;
};

uint64_t content_of(const Module& m) { return Fingerprints(m).computation(m.entry()); }

// A module on its way through the pipeline.
class Side {
 public:
  Side(std::unique_ptr<Module> m, const std::vector<Step>& steps, PipelineOptions options)
      : m_(std::move(m)), cursor_(steps, {}), options_(std::move(options)) {
    observe();
  }
  // From the same place on, in another way.
  Side(const Side& other, PipelineOptions options)
      : m_(other.m_->clone()), cursor_(other.cursor_), options_(std::move(options)), content_(other.content_) {
    observe();
  }
  Side(Side&&) = delete;
  Module& module() { return *m_; }
  const PipelineCursor& cursor() const { return cursor_; }
  const std::vector<WhatIfStage>& stages() const { return stages_; }
  size_t runs() const { return runs_; }
  void keep_content() { content_ = content_of(*m_); }
  // One event of the pipeline; false at its end.
  bool advance() {
    if (interrupted()) fail(FailureKind::kIo, "interrupted");
    return cursor_.advance(*m_, options_);
  }
  std::function<void(const std::string& pass)> on_pass;

 private:
  void observe() {
    options_.observe = [this](const Module& m, const PassEvent& e) {
      if (e.kind != PassEvent::kPass) return;
      ++runs_;
      if (e.changed && content_) content_ = content_of(m);
      stages_.push_back({fmt::format("{}.after_{}", e.pipeline, e.pass), content_});
      if (on_pass) on_pass(e.pass);
    };
  }
  std::unique_ptr<Module> m_;
  PipelineCursor cursor_;
  PipelineOptions options_;
  std::vector<WhatIfStage> stages_;
  size_t runs_ = 0;
  uint64_t content_ = 0;  // 0: not kept yet
};

template <class F>
void each_pass(const std::vector<Step>& steps, F f) {
  for (const Step& s : steps) {
    if (s.children.empty())
      f(s);
    else
      each_pass(s.children, f);
  }
}

// Is the change about that pass?
bool concerned_by(const WhatIfChange& c, const Step& step) {
  const PassInfo* pass = find_pass(step.name);
  auto is_it = [&](const std::string& name) { return find_pass(name) == pass; };
  if (std::any_of(c.disabled.begin(), c.disabled.end(), is_it)) return true;
  if (std::any_of(c.set.begin(), c.set.end(), [&](const auto& s) { return is_it(s.first); })) return true;
  if (c.gpu.empty() || !pass->run) return false;
  const std::vector<PassOption> list = options_of(*pass);
  return std::any_of(list.begin(), list.end(),
                     [](const PassOption& o) { return o.name == "gpu" || o.name == "capability"; });
}

void require_passes(const WhatIfChange& c, const std::vector<Step>& steps) {
  std::set<const PassInfo*> there;
  each_pass(steps, [&](const Step& s) { there.insert(find_pass(s.name)); });
  auto require = [&](const std::string& name) {
    const PassInfo* pass = find_pass(name);
    HLO_CHECK(pass, "{}", name);
    if (!there.contains(pass)) fail(FailureKind::kUsage, "the pipeline xla-gpu has no pass {}", pass->name);
    if (!pass->run)
      fail(FailureKind::kUnsupported, "pass {} has no code here, so nothing is known of the program without it ({})",
           pass->name, pass->summary);
  };
  for (const std::string& name : c.disabled) require(name);
  for (const auto& [name, options] : c.set) require(name);
}

std::string description_of(const std::string& gpu) {
  if (std::optional<std::string> text = gpu_description_file(gpu)) return *text;
  named_gpu_target(gpu);  // tells the names that there are
  return find_gpu_description(gpu)->text;
}

// Libraries' calls and messages between devices, of which XLA's model of kernels says nothing.
bool beyond_model(const Module& m, InstId i) {
  const OpInfo& info = op_info(m.op(i));
  return info.cls == OpClass::Custom || info.cls == OpClass::Collective || info.cls == OpClass::Async ||
         info.cls == OpClass::Io || info.cls == OpClass::Rng || info.cls == OpClass::LinearAlgebra;
}

}  // namespace

void describe_kernels(const Module& m, const std::string& description, WhatIfSide* side, std::set<std::string>* notes) {
  const GpuTarget target = parse_gpu_target(description);
  const DeviceSpec sheet = described_spec(description);
  const ModuleCost cost = module_cost(m, sheet);
  GpuCostAnalysis costs(m);
  GpuPerformanceModel model(m, target, costs);
  side->instructions = m.instruction_count();
  side->loops_without_trip_count = cost.loops_without_trip_count;
  side->bytes = cost.all.bytes(), side->flops = cost.all.flops + cost.all.transcendentals;
  std::vector<const KernelCost*> order;
  for (const KernelCost& k : cost.kernels) order.push_back(&k);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->inst.value < b->inst.value; });
  for (const KernelCost* k : order) {
    WhatIfKernel w;
    w.name = m.inst_name(k->inst), w.kind = kernel_class(m, k->inst), w.op_name = kernel_op_name(m, k->inst);
    w.source = kernel_source_line(m, k->inst);
    w.key = w.op_name.empty() && !w.source.known() ? m.u().shape_text_plain(m.shape_id(k->inst))
                                                   : w.op_name + "\n" + w.source.text();
    w.key += "\n" + w.kind;
    w.inst = k->inst;
    w.times = k->times, w.bytes = k->cost.bytes() * k->times;
    w.flops = (k->cost.flops + k->cost.transcendentals) * k->times;
    if (beyond_model(m, k->inst)) {
      notes->insert("times of library calls and collectives are bounds by the GPU's description");
      w.seconds = k->seconds + microseconds(kLaunchOverhead) * 1e-6 * k->times;
    } else {
      w.seconds = microseconds(model.of(k->inst).total + kLaunchOverhead) * 1e-6 * k->times;
      // XLA's model knows no units for products of a type: never less than the data sheet's bound.
      w.seconds = std::max(w.seconds, k->seconds + microseconds(kLaunchOverhead) * 1e-6 * k->times);
    }
    side->seconds += w.seconds;
    side->kernels.push_back(std::move(w));
  }
}

namespace {

// What follows the last pass, and the figures.
void finish(Side& side, const NamedGpu& gpu, WhatIfSide* out, std::set<std::string>* notes) {
  Module& m = side.module();
  if (!m.config().is_scheduled) schedule_module(m);
  out->gpu = gpu.name;
  out->pass_runs = side.runs();
  describe_kernels(m, gpu.description, out, notes);
  Target target;
  target.gpu = parse_gpu_target(gpu.description);
  const MemoryReport memory = memory_report(m, nullptr, &target);
  out->peak = memory.peak, out->allocated = memory.allocated;
  if (out->loops_without_trip_count) notes->insert("loops that say no trip count are counted once");
}

// Those that only one side has, of the same source in order.
void match_kernels(WhatIf* w, const CommonKernels& common) {
  auto left_over = [](const WhatIfSide& side, const std::vector<InstId>& only) {
    const std::unordered_set<InstId> left(only.begin(), only.end());
    std::map<std::string, std::vector<int>> out;  // by key
    for (size_t k = 0; k < side.kernels.size(); ++k)
      if (left.contains(side.kernels[k].inst)) out[side.kernels[k].key].push_back(static_cast<int>(k));
    return out;
  };
  std::map<std::string, std::vector<int>> first = left_over(w->as_is, common.only_first);
  std::map<std::string, std::vector<int>> second = left_over(w->changed, common.only_second);
  for (const auto& [key, unused] : second) first[key];
  w->same = w->as_is.kernels.size();
  for (const auto& [key, a] : first) {
    const std::vector<int>& b = second[key];
    w->same -= a.size();
    for (size_t k = 0; k < std::max(a.size(), b.size()); ++k)
      w->others.push_back({k < a.size() ? a[k] : -1, k < b.size() ? b[k] : -1});
  }
  auto seconds = [&](const WhatIfPair& p) {
    double WhatIfKernel::*of = w->timed ? &WhatIfKernel::time : &WhatIfKernel::seconds;
    return std::abs((p.changed < 0 ? 0 : w->changed.kernels[static_cast<size_t>(p.changed)].*of) -
                    (p.as_is < 0 ? 0 : w->as_is.kernels[static_cast<size_t>(p.as_is)].*of));
  };
  std::stable_sort(w->others.begin(), w->others.end(),
                   [&](const WhatIfPair& x, const WhatIfPair& y) { return seconds(x) > seconds(y); });
}

std::string first_difference_of(const std::vector<WhatIfStage>& a, const std::vector<WhatIfStage>& b) {
  for (size_t k = 0; k < std::max(a.size(), b.size()); ++k) {
    if (k >= a.size()) return b[k].name;
    if (k >= b.size() || a[k].name != b[k].name || a[k].content != b[k].content) return a[k].name;
  }
  return {};
}

}  // namespace

std::string WhatIfChange::in_words() const {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  if (!disabled.empty()) add(fmt::format("without {}", fmt::join(disabled, ", ")));
  for (const auto& [pass, options] : set)
    for (const auto& [option, value] : options) add(fmt::format("{}.{}={}", pass, option, value));
  if (!gpu.empty()) add("on " + gpu);
  if (batch) add(fmt::format("batch {}{}", batch, batch_parameter.empty() ? "" : " of " + batch_parameter));
  return out;
}

std::map<std::string, size_t> WhatIfSide::by_kind() const {
  std::map<std::string, size_t> out;
  for (const WhatIfKernel& k : kernels) ++out[k.kind];
  return out;
}

WhatIf what_if(const Module& m, const WhatIfOptions& o) {
  const WhatIfChange& change = o.change;
  const std::vector<Step>& steps = *find_pipeline("xla-gpu");
  require_passes(change, steps);
  WhatIf w;
  std::set<std::string> notes;
  PipelineOptions as_is;
  as_is.verify = o.verify, as_is.keep_notes = false;
  PipelineOptions other = as_is;
  other.disabled = change.disabled, other.given_to = change.set;
  const NamedGpu gpu = o.gpu ? *o.gpu : NamedGpu{kGpu, description_of(kGpu), {}};
  const NamedGpu other_gpu =
      change.gpu.empty() ? gpu : NamedGpu{change.gpu, description_of(change.gpu), gpu_options(change.gpu)};
  as_is.given = gpu.options, other.given = other_gpu.options;
  if (!o.autotune_results.empty()) as_is.given["autotune_results"] = o.autotune_results;
  if (!o.autotune_results.empty() && change.gpu.empty()) other.given["autotune_results"] = o.autotune_results;

  std::unique_ptr<Module> batched;
  if (change.batch) {
    BatchChange done;
    batched = with_batch(m, change.batch_parameter, change.batch, &done);
    w.notes.push_back(done.in_words());
  }
  size_t all = 2 * count_passes(steps), done = 0;
  auto tell = [&](const std::string& pass) {
    if (o.progress) o.progress(++done, std::max(all, done), pass);
  };
  Side first(m.clone(), steps, as_is);
  first.on_pass = tell;
  // What both sides share runs once.
  std::string pipeline;
  const Step* next = first.cursor().upcoming(&pipeline);
  for (; next && !batched && !concerned_by(change, *next); next = first.cursor().upcoming(&pipeline)) first.advance();
  w.shared_runs = first.stages().size();
  done += w.shared_runs;
  if (next && !batched) w.concerned = fmt::format("{}.{}", pipeline, next->name);
  first.keep_content();
  std::optional<Side> second;
  if (batched)
    second.emplace(std::move(batched), steps, other);
  else
    second.emplace(first, other);
  second->keep_content();
  second->on_pass = tell;
  while (first.advance()) {
  }
  while (second->advance()) {
  }
  std::vector<WhatIfStage> stages(first.stages().begin() + static_cast<ptrdiff_t>(w.shared_runs), first.stages().end());
  w.first_difference = change.batch ? "before_optimizations" : first_difference_of(stages, second->stages());
  finish(first, gpu, &w.as_is, &notes);
  finish(*second, other_gpu, &w.changed, &notes);
  w.changed.pass_runs += w.shared_runs;
  if (o.measured)
    take_times(*o.measured, {first.module(), gpu, o.measured->sheet},
               {second->module(), other_gpu, change.gpu.empty() ? o.measured->sheet : named_target(change.gpu).spec},
               &w, &notes);
  match_kernels(&w, common_kernels(first.module(), second->module()));
  w.notes.insert(w.notes.end(), notes.begin(), notes.end());
  return w;
}

WhatIfSide compiled_side(const Module& m, const std::optional<NamedGpu>& gpu,
                         const std::function<void(const std::string& pass)>& progress,
                         const std::set<std::string>& disabled) {
  const NamedGpu on = gpu ? *gpu : NamedGpu{kGpu, description_of(kGpu), {}};
  PipelineOptions options;
  options.verify = false, options.keep_notes = false, options.given = on.options, options.disabled = disabled;
  Side side(m.clone(), *find_pipeline("xla-gpu"), options);
  side.on_pass = progress;
  while (side.advance()) {
  }
  WhatIfSide out;
  std::set<std::string> notes;
  finish(side, on, &out, &notes);
  return out;
}

}  // namespace hlo
