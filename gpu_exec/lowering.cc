#include "gpu_exec/lowering.h"

#include "gpu_exec/row_groups.h"
#include "ir/base/check.h"

namespace hlo {

bool Lowering::run(Module& m, std::string_view name, const std::function<void(const ScopeOptions&, PassEvent*)>& one) {
  PassEvent event;
  event.pipeline = name_;
  if (options_.observe && !started_) {
    event.kind = PassEvent::kPipelineStart, event.pass = "pipeline-start", event.next = name;
    event.instructions_before = event.instructions_after = m.instruction_count();
    options_.observe(m, event);
  }
  started_ = true;
  ScopeOptions scope;
  // What a device runs lies row by row, whatever the entry says of its layouts.
  scope.layouts = Layouts::kFree;
  scope.verify = options_.verify, scope.keep_notes = options_.observe != nullptr;
  event.kind = PassEvent::kPass, event.pass = name, event.next.clear();
  one(scope, &event);
  if (options_.observe) options_.observe(m, event);
  return event.changed;
}

bool Lowering::pass(Module& m, std::string_view name, std::map<std::string, std::string> given) {
  const PassInfo* pass = find_pass(name);
  HLO_CHECK(pass && pass->run, "pass {}", name);
  return run(m, name, [&](const ScopeOptions& scope, PassEvent* event) {
    PassContext context;
    context.options = given;
    context.keep_notes = scope.keep_notes;
    run_pass(m, *pass, context, scope, event);
  });
}

bool Lowering::step(Module& m, std::string_view name, const std::function<void(Module&, PassContext&)>& change) {
  return run(m, name, [&](const ScopeOptions& scope, PassEvent* event) {
    auto counted = [&](Module& module, PassContext& context) {
      const uint64_t before = module.edits();
      change(module, context);
      return module.edits() != before;
    };
    run_step(m, name, counted, scope, event);
  });
}

void fuse_for_device(Lowering& lowering, Module& m) {
  bool narrow = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) == Opcode::Fusion) return;
      // Expanded, a batch norm of 16 bits rounds after each of its steps; the evaluator's own does not.
      narrow |= op_info(m.op(i)).cls == OpClass::BatchNorm && type_bits(m.shape(m.operand(i, 0)).type) <= 16;
    }
  m.set_scheduled(false);
  if (!narrow) lowering.pass(m, "batchnorm_expander");
  lowering.pass(m, "while-loop-invariant-code-motion");
  lowering.step(m, "row-groups", [](Module& module, PassContext&) { fuse_row_groups(module); });
  lowering.pass(m, "fusion");
  lowering.pass(m, "dce");
}

}  // namespace hlo
