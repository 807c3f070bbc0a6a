#include "replay/record/start/start_stage.h"

#include <algorithm>
#include <unordered_map>

#include "ir/sharding/sharding.h"
#include "parser/parser.h"
#include "replay/os/confined_path.h"
#include "replay/record/files/dump_names.h"
#include "replay/record/files/input.h"
#include "replay/record/files/run.h"

namespace hlo {

namespace {

// Does it give devices different parts of something? Of {manual}, {replicated} and {maximal …} nothing is divided, nor
// of tiles that only repeat it or are manual.
bool divides(const Sharding& s) {
  using Kind = Sharding::Kind;
  if (s.kind == Kind::kTuple) return std::any_of(s.elements.begin(), s.elements.end(), divides);
  if (s.kind == Kind::kNamed)
    return std::any_of(s.dims.begin(), s.dims.end(), [](const Sharding::Dim& d) { return !d.axes.empty(); });
  if (s.kind != Kind::kTiled) return false;
  const size_t last = s.last.size() + (s.replicate_last && s.last.empty() ? 1 : 0);
  const size_t tiled = s.tiles.dims.size() - std::min(last, s.tiles.dims.size());
  return std::any_of(s.tiles.dims.begin(), s.tiles.dims.begin() + static_cast<ptrdiff_t>(tiled),
                     [](int64_t n) { return n > 1; });
}
bool divides(std::string_view sharding) {
  try {
    return divides(parse_sharding(sharding));
  } catch (const Failure&) {
    return true;  // of a form that is read only, not known: it may
  }
}

// Of frontend attributes: does a sharding of Shardy's (`xla.sdy.sharding`, `xla.sdy.in_shardings` …) name an axis?
// `[{\"x\"}, {}]` does, `[{}, {?}]` and `replicated={\"x\"}` do not.
bool shardy_divides(std::string_view attributes) {
  constexpr std::string_view kPrefix = "xla.sdy.";
  for (size_t at = attributes.find(kPrefix); at != std::string_view::npos; at = attributes.find(kPrefix, at + 1)) {
    const size_t end = std::min(attributes.find(kPrefix, at + 1), attributes.size());
    std::string one;
    for (char c : attributes.substr(at, end - at))
      if (c != '\\') one += c;
    if (one.substr(0, one.find('=')).find("sharding") == std::string::npos) continue;
    for (size_t k = one.find("{\""); k != std::string::npos; k = one.find("{\"", k + 1))
      if (k && one[k - 1] != '=') return true;
  }
  return false;
}

}  // namespace

std::string not_partitioned(const Module& m) {
  const int64_t partitions = m.config().num_partitions, devices = std::max(partitions, m.config().replica_count);
  if (devices < 2) return {};
  // Of a computation that XLA partitioned nothing is left to be divided; equal texts are one.
  std::unordered_map<StrId, bool> known;
  auto divided = [&](InstId i) {
    const StrId sharding = m.attrs(i).text(Attr::sharding), attributes = m.attrs(i).text(Attr::frontend_attributes);
    if (sharding.valid()) {
      auto [at, fresh] = known.try_emplace(sharding, false);
      if (fresh) at->second = divides(m.u().text(sharding));
      if (at->second) return true;
    }
    return attributes.valid() && shardy_divides(m.u().text(attributes));
  };
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && divided(i))
        return fmt::format(
            "{} is sharded over {} {}, which are not made here: these are the kernels of whole arrays, the program of "
            "one device. XLA's dump has a stage after_spmd_partitioner to start from",
            m.inst_name(i), devices, partitions > 1 ? "partitions" : "replicas");
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
