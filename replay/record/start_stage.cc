#include "replay/record/start_stage.h"

#include "replay/os/confined_path.h"
#include "replay/record/dump_names.h"
#include "replay/record/input.h"
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

namespace {

struct Start {
  std::string spec, said;
  bool partitioned = false;
};

// A damaged .hlo.pb beside a text that is whole is no reason to stop.
Start read_start(const Recording& r, const std::string& text) {
  Start out{proto_or_text(r.folder, text), "", false};
  std::unique_ptr<Module> m;
  try {
    m = load(out.spec);
  } catch (const Failure& f) {
    const std::string file = confined_path(r.folder, text);
    if (out.spec == file) throw;
    m = load(file);
    out = {file, fmt::format(", by its text: {}", f.what()), false};
  }
  out.partitioned = not_partitioned(*m).empty();
  return out;
}

}  // namespace

StartStage start_stage(const Recording& r) {
  for (const StageRow& row : r.rows) {
    if (row.file.empty()) continue;
    const Start first = read_start(r, row.file);
    if (!first.partitioned)
      for (const StageRow& later : r.rows)
        if (later.name() == "after_spmd_partitioner" && !later.file.empty()) {
          const Start behind = read_start(r, later.file);
          return {behind.spec, later.name(),
                  "starts from after_spmd_partitioner: XLA's partitioner is not replayed" + behind.said, r};
        }
    return {first.spec, row.name(), "starts from " + row.name() + first.said, r};
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
