// The profile of the first minute: named, or found where the dump lies.
#include <filesystem>
#include <memory>

#include "replay/cli/measured.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/record/files/profiles.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {
namespace {

// A profile that nobody named is not worth a minute.
constexpr uintmax_t kMostBytes = 256 << 20;

MeasuredRun run_of(const std::shared_ptr<const MeasuredTimes>& times, const std::string& file, size_t which) {
  MeasuredRun out;
  out.file = file;
  out.of = [times, which](std::string_view instruction) { return times->seconds(which, instruction); };
  const Measured* m = times->joined(which);
  if (!m) {
    out.joined = "a table of kernels by name";
    return out;
  }
  out.devices = times->devices(which), out.shown = times->shown(which);
  const MeasuredDevice& shown = out.devices[out.shown];
  out.file = shown.file, out.why_not = shown.why_not;
  out.runs = shown.runs, out.seconds = shown.seconds, out.between = shown.between;
  out.when = [times, which](std::string_view instruction) { return times->clock(which).of(instruction); };
  out.step = times->clock(which).seconds();
  out.all = [times, which] { return times->instructions(which); };
  out.joined = fmt::format("{:.1f} % of its time joined", m->named > 0 ? 100 * m->joined / m->named : 0);
  if (m->ambiguous > 0) out.joined += fmt::format(", {:.1f} % ambiguous", 100 * m->ambiguous / m->named);
  for (const std::string& why : times->unread()) out.joined += "; not read: " + why;
  return out;
}

// Of all that nobody named; why they are not read, else empty.
std::string too_large(const std::vector<std::string>& files) {
  uintmax_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(file, error);
    bytes += error ? kMostBytes : size;
    if (bytes > kMostBytes)
      return files.size() == 1 ? fmt::format("it is large; --profile={} reads it", file)
                               : fmt::format("all {} are large; --profile names one", files.size());
  }
  return {};
}

}  // namespace

std::vector<MeasuredRun> runs_beside(const ProfileChoice& given, const std::vector<LookedAt>& all) {
  const std::string folder = all.empty() || !all[0].recording ? "" : all[0].recording->folder;
  return given.profile.empty() && folder.empty() ? std::vector<MeasuredRun>() : measured_runs(given, folder, all);
}

std::vector<MeasuredRun> measured_runs(const ProfileChoice& given, const std::string& folder,
                                       const std::vector<LookedAt>& all) {
  if (given.profile == "none") return {};
  const bool named = !given.profile.empty();
  const std::vector<std::string> found = named ? std::vector{given.profile} : profiles_beside(folder);
  if (found.empty() && !given.device.empty())
    fail(FailureKind::kUsage, "--profile-device={}: no profile is in {} or next to it", given.device, folder);
  if (found.empty()) return {};
  std::vector<MeasuredRun> out(all.size());
  std::string why_not = named ? "" : too_large(found);
  if (why_not.empty()) {
    try {
      const auto times = named ? std::make_shared<const MeasuredTimes>(given, all)
                               : std::make_shared<const MeasuredTimes>(found, given.device, all);
      for (size_t k = 0; k < all.size(); ++k) out[k] = run_of(times, found[0], k);
    } catch (const Failure& e) {
      // What was found and cannot be read is said; what was asked for is refused.
      if (named || interrupted() || e.kind() == FailureKind::kUsage) throw;
      why_not = first_line(e.what());
    }
  }
  for (MeasuredRun& run : out)
    if (!why_not.empty()) run.file = found[0], run.why_not = why_not;
  return out;
}

}  // namespace hlo
