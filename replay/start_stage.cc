#include "replay/start_stage.h"

#include "replay/confined_path.h"
#include "replay/input.h"
#include "replay/record/dump_names.h"
#include "replay/record/run.h"

namespace hlo {

std::string not_partitioned(const Module& m) {
  const int64_t partitions = m.config().num_partitions;
  if (partitions < 2) return {};
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i)) continue;
      const std::string_view sharding = m.u().text(m.attrs(i).text(Attr::sharding));
      // Of {manual}, {replicated} and {maximal …} nothing is divided.
      if (sharding.find("devices=") == std::string_view::npos) continue;
      return fmt::format(
          "{} is sharded over {} partitions, which are not made here: these are the kernels of whole arrays. XLA's "
          "dump "
          "has a stage after_spmd_partitioner to start from",
          m.inst_name(i), partitions);
    }
  return {};
}

std::string proto_or_text(const std::string& folder, const std::string& text) {
  const std::string proto = proto_beside(text);
  bool missing = false;
  if (!proto.empty() && why_not_confined(folder, proto, &missing).empty() && !missing)
    return confined_path(folder, proto);
  return confined_path(folder, text);
}

StartStage start_stage(const Recording& r) {
  for (const StageRow& row : r.rows) {
    if (row.file.empty()) continue;
    const std::string first = proto_or_text(r.folder, row.file);
    if (not_partitioned(*load(first)).empty()) return {first, row.name(), "starts from " + row.name(), r};
    for (const StageRow& later : r.rows)
      if (later.name() == "after_spmd_partitioner" && !later.file.empty())
        return {proto_or_text(r.folder, later.file), later.name(),
                "starts from after_spmd_partitioner: XLA's partitioner is not replayed", r};
    return {first, row.name(), "starts from " + row.name(), r};
  }
  fail(FailureKind::kIo, "{} has no stage with a text", r.folder);
}

StartStage start_stage(const std::string& spec) {
  if (names_modules(spec)) return start_stage(select_module(spec));
  StartStage out{.spec = spec, .name = {}, .said = {}, .recording = {}};
  if (std::optional<StageChoice> stage = stage_of(spec)) {
    out.name = stage->module.rows[stage->row].name();
    out.recording = std::move(stage->module);
  }
  return out;
}

}  // namespace hlo
