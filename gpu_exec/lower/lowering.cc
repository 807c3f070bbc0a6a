#include "gpu_exec/lower/lowering.h"

#include "gpu_exec/lower/row_groups.h"
#include "ir/base/check.h"
#include "ir/library/library_calls.h"
#include "passes/rewrite.h"

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

namespace {

// Is there an instruction whose work these passes make of operations that have kernels?
bool has_expandable(const Module& m) {
  constexpr std::string_view kCalls[] = {"TopK", "Qr", "Eigh", "ProductOfElementaryHouseholderReflectors"};
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      Opcode op = m.op(i);
      if (op == Opcode::RngBitGenerator || op == Opcode::TopK || op == Opcode::Cholesky ||
          op == Opcode::TriangularSolve)
        return true;
      if (op != Opcode::CustomCall) continue;
      std::string_view target = m.u().text(m.attrs(i).text(Attr::custom_call_target));
      if (std::find(std::begin(kCalls), std::end(kCalls), target) == std::end(kCalls)) continue;
      if (std::string why = library_call_error(m, i); !why.empty())
        fail(FailureKind::kUnsupported, "no kernels for {} ({}): {}", m.inst_name(i), target, why);
      return true;
    }
  return false;
}

//   custom-call(A), "TopK", its comparator compare(a, b), direction=GT of floats      →      topk(A), largest=true
// XLA's runtime orders totally, whatever the comparator says of zeros and NaN (xla/backends/cpu/runtime/topk.cc); the
// pass that makes sorts of such calls takes the comparator at its word, as XLA's pass does.
void spell_out_topk_calls(Module& m) {
  Universe& u = m.u();
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != Opcode::CustomCall || u.text(m.attrs(i).text(Attr::custom_call_target)) != "TopK" ||
          m.called(i).size() != 1 || m.operand_count(i) != 1 || m.has_control(i) || !m.shape(i).is_tuple())
        continue;
      const InstId order = m.comp(m.called(i)[0]).root;
      if (!is_float(m.shape(m.operand(i, 0)).type) || m.op(order) != Opcode::Compare ||
          u.text(m.attrs(order).text(Attr::type)) == "TOTALORDER")
        continue;
      const int64_t k = u[m.shape(i).elements[0]].dims.back();
      const bool largest = u.text(m.attrs(order).text(Attr::direction)) != "LT";
      m.replace(i, m.add_derived(i, {.op = Opcode::TopK,
                                     .shape = m.shape_id(i),
                                     .operands = {m.operand(i, 0)},
                                     .attrs = attrs_of(u, Opcode::TopK, {{Attr::k, k}, {Attr::largest, largest}}),
                                     .meta = m[i].meta}));
    }
}

}  // namespace

// A card has kernels for the steps of what the host's evaluator does in one go.
void expand_for_device(Lowering& lowering, Module& m) {
  if (!has_expandable(m)) return;
  m.set_scheduled(false);
  lowering.step(m, "topk-calls", [](Module& module, PassContext&) { spell_out_topk_calls(module); });
  for (const char* name : {"rng-bit-generator-expander", "topk-decomposer", "cholesky_expander",
                           "triangular_solve_expander", "eigh_expander", "qr_expander", "dce"})
    lowering.pass(m, name);
}

}  // namespace hlo
