// The profile of the first minute: named, or found where the dump lies.
#include <filesystem>
#include <memory>

#include "replay/cli/measured.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/record/profiles.h"
#include "replay/report/kernels.h"

namespace hlo {
namespace {

// A profile that nobody named is not worth a minute.
constexpr uintmax_t kMostBytes = 256 << 20;

// Why none of the profile's time is the module's; empty: some is.
std::string why_not_joined(const MeasuredTimes& times, size_t which) {
  const Measured* m = times.joined();
  if (!m) return "";
  for (const MeasuredOp& op : m->ops)
    if (op.module == which) return "";
  const MeasuredModule& module = m->modules[which];
  if (!module.another_compilation.empty()) return module.another_compilation;
  if (m->spans.empty()) return "no span of it names an instruction";
  return m->unjoined.empty() ? fmt::format("it says nothing of module '{}'", module.name) : m->unjoined[0].why;
}

MeasuredRun run_of(const std::shared_ptr<const MeasuredTimes>& times, const std::string& file, size_t which) {
  MeasuredRun out;
  out.file = file, out.why_not = why_not_joined(*times, which);
  out.of = [times, which](std::string_view instruction) { return times->seconds(which, instruction); };
  const Measured* m = times->joined();
  if (!m) {
    out.joined = "a table of kernels by name";
    return out;
  }
  out.when = [times, which](std::string_view instruction) { return times->clock(which).of(instruction); };
  out.step = times->clock(which).seconds();
  out.runs = times->runs(which);
  const double runs = static_cast<double>(std::max<size_t>(out.runs, 1));
  for (const MeasuredOp& op : m->ops)
    if (op.module == which) out.seconds += op.seconds / runs;
  out.joined = fmt::format("{:.1f} % of its time joined", m->named > 0 ? 100 * m->joined / m->named : 0);
  if (m->ambiguous > 0) out.joined += fmt::format(", {:.1f} % ambiguous", 100 * m->ambiguous / m->named);
  double within = 0;
  size_t device_runs = 0;
  for (const DeviceTime& d : m->devices) within += d.within, device_runs += d.runs;
  // Of the module that takes most of the device's time, and no other's.
  if (!m->ops.empty() && m->ops[0].module == which && device_runs)
    out.between = within / static_cast<double>(device_runs);
  return out;
}

}  // namespace

std::vector<MeasuredRun> runs_beside(const std::string& given, const std::vector<LookedAt>& all) {
  const std::string folder = all.empty() || !all[0].recording ? "" : all[0].recording->folder;
  return given.empty() && folder.empty() ? std::vector<MeasuredRun>() : measured_runs(given, folder, all);
}

Json measured_json(const std::optional<MeasuredRun>& m) {
  if (!m) return {};
  const bool joined = m->why_not.empty();
  return {{"profile", m->file},
          {"problem", m->why_not},
          {"joined", m->joined},
          {"runs", m->runs ? Json(m->runs) : Json()},
          {"seconds", joined && m->seconds > 0 ? Json(m->seconds) : Json()},
          {"between_seconds", joined && m->between > 0 ? Json(m->between) : Json()}};
}

std::vector<MeasuredRun> measured_runs(const std::string& given, const std::string& folder,
                                       const std::vector<LookedAt>& all) {
  if (given == "none") return {};
  const std::vector<std::string> found = given.empty() ? profiles_beside(folder) : std::vector{given};
  if (found.empty()) return {};
  std::vector<MeasuredRun> out(all.size());
  std::string why_not;
  std::error_code error;
  if (given.empty() && (std::filesystem::file_size(found[0], error) > kMostBytes || error)) {
    why_not = fmt::format("it is large; --profile={} reads it", found[0]);
  } else {
    try {
      const auto times = std::make_shared<const MeasuredTimes>(found[0], all);
      for (size_t k = 0; k < all.size(); ++k) out[k] = run_of(times, found[0], k);
    } catch (const Failure& e) {
      if (!given.empty() || interrupted()) throw;
      why_not = first_line(e.what());
    }
  }
  for (MeasuredRun& run : out) {
    run.file = found[0];
    if (!why_not.empty()) run.why_not = why_not;
    if (found.size() > 1)
      run.joined += fmt::format("; {} more host{}' profiles lie there", found.size() - 1, found.size() == 2 ? "" : "s");
  }
  return out;
}

}  // namespace hlo
