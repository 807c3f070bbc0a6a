#include "replay/start_stage.h"

#include "replay/confined_path.h"
#include "replay/input.h"
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

StartStage start_stage(const std::string& spec) {
  if (!names_modules(spec)) return {spec, ""};
  const Recording r = select_module(spec);
  for (const StageRow& row : r.rows) {
    if (row.file.empty()) continue;
    const std::string first = confined_path(r.folder, row.file);
    if (not_partitioned(*load(first)).empty()) return {first, "starts from " + row.name()};
    for (const StageRow& later : r.rows)
      if (later.name() == "after_spmd_partitioner" && !later.file.empty())
        return {confined_path(r.folder, later.file),
                "starts from after_spmd_partitioner: XLA's partitioner is not replayed"};
    return {first, "starts from " + row.name()};
  }
  fail(FailureKind::kIo, "{} has no stage with a text", spec);
}

}  // namespace hlo
