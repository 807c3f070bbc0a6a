// What XLA does to a module that has its order: scheduling-instruction-annotator
// (xla/service/gpu/transforms/scheduling_instruction_annotator.cc) and gpu-convert-async-collectives-to-sync.
#include <nlohmann/json.hpp>

#include "passes/passes.h"

namespace hlo {

//   %add = add(…)      →      %add = add(…), metadata={scheduling_name="add"}
// Constants are left out: their names change later.
bool run_scheduling_instruction_annotator(Module& m, PassContext& ctx) {
  bool changed = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) == Opcode::Constant) continue;
      Metadata meta = m.u()[m[i].meta];
      if (meta.scheduling_name == m[i].name.value) continue;
      if (!ctx.spend(m, "named for the schedule", {i})) return changed;
      meta.scheduling_name = m[i].name.value;
      m.set_meta(i, m.u().metadata(meta));
      changed = true;
    }
  return changed;
}

namespace {

bool is_collective_pair(const Module& m, InstId start, InstId done) {
  switch (m.op(start)) {
    case Opcode::AllGatherStart:
      return m.op(done) == Opcode::AllGatherDone;
    case Opcode::AllReduceStart:
      return m.op(done) == Opcode::AllReduceDone;
    case Opcode::CollectivePermuteStart:
      return m.op(done) == Opcode::CollectivePermuteDone;
    case Opcode::AsyncStart:
      return m.op(done) == Opcode::AsyncDone;
    default:
      return false;
  }
}

bool is_free(Opcode op) {
  return op == Opcode::Bitcast || op == Opcode::GetTupleElement || op == Opcode::Tuple || op == Opcode::Parameter ||
         op == Opcode::Constant;
}

}  // namespace

//   %s = all-gather-start(A)                %s = all-gather-start(A), backend_config={… "is_sync":true …}
//   %d = all-gather-done(%s)      →         %d = all-gather-done(%s)          nothing runs between them
bool run_convert_async_collectives_to_sync(Module& m, PassContext& ctx) {
  if (!m.config().is_scheduled) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations()) {
    std::vector<InstId> open;  // starts of which nothing has run since
    for (InstId i : m.live_order(c)) {
      if (m.operand_count(i) == 1 && !open.empty() && m.operand(i, 0) == open.back() &&
          is_collective_pair(m, open.back(), i)) {
        const InstId start = open.back();
        open.pop_back();
        const StrId had = m.attrs(start).text(Attr::backend_config);
        nlohmann::ordered_json config =
            nlohmann::ordered_json::parse(had.valid() ? m.u().text(had) : "{}", nullptr, false);
        if (!config.is_object() || !config.contains("collective_backend_config")) continue;
        nlohmann::ordered_json& part = config["collective_backend_config"];
        if (!part.is_object() || part.value("is_sync", false)) continue;
        if (!ctx.spend(m, "nothing runs beside it", {start, i})) return changed;
        part["is_sync"] = true;
        m.set_attr(start, Attr::backend_config, AttrValue(m.u().str(config.dump())));
        changed = true;
        continue;
      }
      if (m.op(i) == Opcode::AllGatherStart || m.op(i) == Opcode::AllReduceStart ||
          m.op(i) == Opcode::CollectivePermuteStart)
        open.push_back(i);
      else if (!is_free(m.op(i)))
        open.clear();
    }
  }
  return changed;
}

}  // namespace hlo
