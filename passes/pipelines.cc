#include "passes/pipelines.h"

#include <chrono>
#include <unordered_set>

#include "ir/base/check.h"
#include "ir/verifier.h"

namespace hlo {
namespace {

// A name that no row of passes.def has would run nowhere and look like a pass without code.
Step pass(std::string name, std::map<std::string, std::string> options = {}) {
  HLO_CHECK(find_pass(name), "no row for {}", name);
  return {std::move(name), std::move(options), {}, 1};
}
Step pipeline(std::string name, std::vector<Step> children, int rounds = 1) {
  return {std::move(name), {}, std::move(children), rounds};
}
std::vector<Step> list(std::string_view names) {
  std::vector<Step> out;
  while (!names.empty()) {
    size_t end = std::min(names.find(' '), names.size());
    if (end) out.push_back(pass(std::string(names.substr(0, end))));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return out;
}

// Seed 002's pseudo-code. Its loops are what one model took: here simplification and the fusion group run to a fixed
// point.
std::vector<Step> xla_2019() {
  std::vector<Step> optimization = list(
      "zero_sized_hlo_elimination dynamic-index-splitter gpu_hlo_support_checker CallInliner dot_decomposer "
      "convolution-group-converter "
      "stable-sort-expander element_type_converter");
  optimization.push_back(pipeline("simplification",
                                  list("batchnorm_expander algsimp simplify-sorts tuple-simplifier "
                                       "while-loop-constant-sinking simplify-while-loops slice-sinker dce "
                                       "reshape-mover constant-folding simplify-conditional"),
                                  25));
  for (Step& s : list("hlo-get-dimension-size-rewriter zero_sized_hlo_elimination"))
    optimization.push_back(std::move(s));
  optimization.push_back(pass("transpose-folding", {{"matrix_layouts", "false"}}));
  for (Step& s : list("cse dce while-loop-trip-count-annotator")) optimization.push_back(std::move(s));
  return {
      pipeline("optimization", optimization),
      pipeline(
          "conv_canonicalization",
          list("cusolver-rewriter cudnn-conv-rewriter cudnn-fused-convolution cudnn-conv-padding constant-folding")),
      pipeline("layout_assignment", list("layout-assignment")),
      pipeline(
          "post-layout_assignment",
          {pass("algsimp", {{"layout_sensitive", "true"}, {"unconditional_reduce_of_transpose", "false"}}),
           pass("cudnn-conv-algorithm-picker"), pass("tuple-simplifier"), pass("cse", {{"layout_sensitive", "true"}})}),
      pipeline("fusion",
               {pass("variadic-op-splitter"), pass("fusion", {{"may_duplicate", "false"}}),
                pass("fusion", {{"may_duplicate", "true"}}), pass("fusion_merger"), pass("multi_output_fusion"),
                pass("cse", {{"layout_sensitive", "true"}}), pass("dce")},
               25),
      pipeline("reduce-precision", list("reduce-precision")),
      pipeline("GPU-ir-emit-prepare", list("dce flatten-call-graph copy-insertion sanitize-constant-names")),
  };
}

// xla/service/gpu/gpu_compiler.cc of 2026, in the order that the oracle's dumps show.
std::vector<Step> xla_gpu() {
  std::vector<Step> optimization = list(
      "ragged_dot_rewriter batched_gather_scatter_normalizer topk-splitter topk-specializer topk-decomposer "
      "dot_dimension_sorter dot_decomposer result_caster "
      "operand_upcaster operand_converter sub-byte-size-setter rng-expander rng-bit-generator-expander "
      "permutation_sort_simplifier sort-rewriter comparison-expander "
      "zero_sized_hlo_elimination select_and_scatter_expander cholesky_expander gpu_scatter_expander qr_expander "
      "eigh_expander dynamic-index-splitter call-inliner "
      "stochastic_convert_decomposer convolution_4d_expander convolution-pred-expander batchnorm_expander "
      "logistic-expander conditional-canonicalizer "
      "dynamic-dimension-simplifier associative-scan-rewriter reduce-window-rewriter reduce-window-resizer "
      "scan_expander dynamic_padder sort-rewriter "
      "stable-sort-expander");
  std::vector<Step> simplification = list(
      "zero_sized_hlo_elimination gather_simplifier gather_expander scatter_simplifier scatter_expander "
      "scatter-slice-simplifier dot-strength-reduction algsimp "
      "simplify-sorts tuple-simplifier while-loop-constant-sinking simplify-while-loops slice-sinker reshape-mover "
      "constant_folding simplify-conditional");
  simplification.push_back(pass("transpose-folding", {{"dots", "false"}}));
  simplification.push_back(pass("cse"));
  simplification.push_back(pass("dce"));
  optimization.push_back(pipeline("simplification", simplification, 25));
  optimization.push_back(pass("dot-merger"));
  optimization.push_back(pass("transpose-folding"));
  optimization.push_back(pipeline("simplification-2", list("convert-mover algsimp"), 25));
  optimization.push_back(pass("computation-deduplicator"));
  return {
      pipeline("pre-spmd-partitioner", list("flatten-call-graph call-inliner zero_sized_hlo_elimination "
                                            "conditional-canonicalizer topk-decomposer topk-rewriter")),
      pipeline("sharding-removal", list("sharding-remover dce")),
      pipeline("optimization", optimization),
      pipeline("collective-optimizations",
               list("ragged-all-to-all-canonicalizer all-reduce-simplifier all-reduce-folder all-reduce-splitter "
                    "all-gather-optimizer all-gather-dynamic-slice-simplifier all-gather-pad-ds-simplifier "
                    "all-gather-to-collective-permute-simplifier all-reduce-reassociate reduce-scatter-reassociate "
                    "while-loop-all-reduce-code-motion collective-quantizer dce algsimp reduce-scatter-creator "
                    "all-gather-bcast-reorder all-gather-remove-degenerate-dims all-reduce-promotion dce "
                    "while-loop-trip-count-annotator")),
      // Its GPU passes behind this are left out; what the module needs to be scheduled is not.
      pipeline("layout_assignment", list("flatten-call-graph layout-assignment")),
      pipeline("pre-scheduling-copy-insertion", list("dce copy-insertion sanitize-constant-names")),
  };
}

struct Named {
  std::string name;
  std::vector<Step> steps;
};
const std::vector<Named>& pipelines() {
  static const std::vector<Named> kAll = {{"xla-2019", xla_2019()}, {"xla-gpu", xla_gpu()}};
  return kAll;
}

bool mentioned(const std::set<std::string>& set, std::string_view name) {
  if (set.contains(std::string(name))) return true;
  const PassInfo* pass = find_pass(name);
  if (!pass) return false;
  for (const std::string& other : set)
    if (find_pass(other) == pass) return true;
  return false;
}

}  // namespace

const std::vector<Step>* find_pipeline(std::string_view name) {
  for (const Named& p : pipelines())
    if (p.name == name) return &p.steps;
  return nullptr;
}

std::vector<std::string> pipeline_names() {
  std::vector<std::string> out;
  for (const Named& p : pipelines()) out.push_back(p.name);
  return out;
}

size_t count_passes(const std::vector<Step>& steps) {
  size_t n = 0;
  for (const Step& s : steps) n += s.children.empty() ? 1 : count_passes(s.children);
  return n;
}

namespace {
// What a pass has added to a scheduled module stands at the end: it goes right before its first reader, all else stays
// (as XLA's HloSchedule::Update does).
void update_schedule(Module& m) {
  for (CompId c : m.computations()) {
    std::vector<InstId> before = m.live_order(c), order, stack;
    std::unordered_set<InstId> placed, opened;
    for (InstId wanted : before) {
      stack.push_back(wanted);
      while (!stack.empty()) {
        InstId i = stack.back();
        size_t depth = stack.size();
        if (!placed.contains(i)) {
          for (InstId o : m.operands(i))
            if (!placed.contains(o)) stack.push_back(o);
          for (InstId o : m.control_preds(i))
            if (!placed.contains(o)) stack.push_back(o);
          if (stack.size() > depth) {
            if (!opened.insert(i).second) break;  // a cycle, which the verifier names
            continue;
          }
          placed.insert(i);
          order.push_back(i);
        }
        stack.pop_back();
      }
      if (!stack.empty()) break;
    }
    if (stack.empty() && order != before) m.set_order(c, std::move(order));
  }
}
}  // namespace

bool run_pass(Module& m, const PassInfo& pass, PassContext& context, const PipelineOptions& options, PassEvent* event) {
  auto start = std::chrono::steady_clock::now();
  event->instructions_before = m.instruction_count();
  bool changed;
  try {
    changed = pass.run(m, context);
  } catch (const Failure& f) {
    throw Failure(f.kind(), fmt::format("pass {}: {}", pass.name, f.what()));
  }
  m.cleanup();
  if (changed && m.config().is_scheduled) update_schedule(m);
  event->microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
  event->instructions_after = m.instruction_count();
  event->changed = changed;
  event->rewrites = context.rewrites;
  event->notes = std::move(context.notes);
  if (changed && options.verify) {
    std::vector<VerifyError> errors = verify_module(m);
    if (!errors.empty())
      fail(FailureKind::kInternal, "pass {} left a module that does not verify: {}", pass.name, errors[0].message);
  }
  return changed;
}

PipelineCursor::Event PipelineCursor::move() {
  while (true) {
    if (frames_.empty()) {
      if (top_ == steps_->size()) return Event::kEnd;
      frames_.push_back({&(*steps_)[top_++]});
      return Event::kStart;
    }
    Frame& f = frames_.back();
    if (f.child == f.step->children.size()) {
      f.any |= f.changed;
      if (f.changed && f.round + 1 < f.step->most_rounds) {
        ++f.round, f.child = 0, f.changed = false;
        return Event::kStart;
      }
      bool any = f.any;
      frames_.pop_back();
      if (!frames_.empty()) frames_.back().changed |= any;
      continue;
    }
    const Step& child = f.step->children[f.child++];
    if (child.children.empty()) return Event::kPass;
    frames_.push_back({&child});
    return Event::kStart;
  }
}

bool PipelineCursor::advance(Module& m, const PipelineOptions& options) {
  switch (move()) {
    case Event::kEnd:
      return false;
    case Event::kStart: {
      const Step& step = *frames_.back().step;
      PassEvent start;
      start.kind = PassEvent::kPipelineStart;
      start.pipeline = step.name;
      start.pass = "pipeline-start";
      start.next = step.children.empty() ? "pipeline-end" : step.children[0].name;
      start.instructions_before = start.instructions_after = m.instruction_count();
      if (options.observe) options.observe(m, start);
      return true;
    }
    case Event::kPass:
      frames_.back().changed |= run(m, options);
  }
  return true;
}

bool PipelineCursor::run(Module& m, const PipelineOptions& options) {
  const Step &step = pass(), &parent = *frames_.back().step;
  PassEvent event;
  event.pipeline = parent.name, event.pass = step.name;
  event.next =
      frames_.back().child < parent.children.size() ? parent.children[frames_.back().child].name : "pipeline-end";
  event.options = step.options;
  event.instructions_before = event.instructions_after = m.instruction_count();
  const PassInfo* info = find_pass(step.name);
  event.implemented = info && info->run;
  event.disabled =
      mentioned(options.disabled, step.name) || (!options.only.empty() && !mentioned(options.only, step.name));
  if (event.implemented && !event.disabled) {
    PassContext context;
    context.options = step.options;
    context.keep_notes = options.keep_notes;
    int64_t* fuel = nullptr;
    for (auto& [name, left] : fuel_)
      if (find_pass(name) == info) fuel = &left;
    if (fuel) context.fuel = *fuel;
    context.on_step = [&](std::string_view inner) {
      if (!options.observe) return;
      PassEvent e = event;
      e.kind = PassEvent::kInnerStep;
      e.pipeline = step.name, e.pass = std::string(inner), e.next.clear();
      e.instructions_after = m.instruction_count();
      options.observe(m, e);
    };
    run_pass(m, *info, context, options, &event);
    if (fuel) *fuel = context.fuel;
  }
  if (options.observe) options.observe(m, event);
  return event.changed;
}

const Step* PipelineCursor::upcoming(std::string* pipeline) const {
  PipelineCursor ahead = *this;
  for (Event e = ahead.move(); e != Event::kEnd; e = ahead.move()) {
    if (e != Event::kPass) continue;
    if (pipeline) *pipeline = ahead.frames_.back().step->name;
    return &ahead.pass();
  }
  return nullptr;
}

void PipelineCursor::skip() {
  for (Event e = move(); e == Event::kStart;) e = move();
}

void run_pipeline(Module& m, const std::vector<Step>& steps, const PipelineOptions& options) {
  PipelineCursor cursor(steps, options.fuel);
  if (!options.from.empty()) {
    const PassInfo* wanted = find_pass(options.from);
    auto is_it = [&](const Step* s) { return s->name == options.from || (wanted && find_pass(s->name) == wanted); };
    while (const Step* next = cursor.upcoming()) {
      if (is_it(next)) break;
      cursor.skip();
    }
    if (!cursor.upcoming()) fail(FailureKind::kUsage, "the pipeline has no pass '{}' to start from", options.from);
  }
  while (!(options.stop && options.stop()) && cursor.advance(m, options)) {
  }
}

}  // namespace hlo
