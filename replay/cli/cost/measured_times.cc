// Profiles joined to the modules that a command looks at, device by device.
#include <algorithm>
#include <filesystem>
#include <set>

#include "replay/cli/measured.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/record/files/file_kind.h"
#include "replay/record/files/profiles.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {
namespace {

// `HOST:0` of /device:GPU:0; of what has no number its whole name.
std::string label_of(const std::string& host, const std::string& device) {
  const size_t digits = device.find_last_not_of("0123456789") + 1;
  return device.empty() ? host : fmt::format("{}:{}", host, digits < device.size() ? device.substr(digits) : device);
}

bool is_named(const MeasuredDevice& d, const std::string& name) {
  return name == d.label || name == d.host || name == d.device ||
         (!name.empty() && d.label == fmt::format("{}:{}", d.host, name));
}

// What the profile has of a module on that device.
MeasuredDevice of_module(const MeasuredPlace& p, size_t which) {
  MeasuredDevice out = p.about;
  const Measured& m = p.joined;
  const MeasuredModule& module = m.modules[which];
  out.runs = module.runs;
  const double runs = static_cast<double>(std::max<size_t>(out.runs, 1));
  bool any = false;
  for (const MeasuredOp& op : m.ops)
    if (op.module == which) out.seconds += op.seconds / runs, any = true;
  if (!any)
    out.why_not = !module.another_compilation.empty() ? module.another_compilation
                  : m.spans.empty()                   ? "no span of it names an instruction"
                  : m.unjoined.empty()                ? fmt::format("it says nothing of module '{}'", module.name)
                                                      : m.unjoined[0].why;
  double within = 0;
  size_t device_runs = 0;
  for (const DeviceTime& d : m.devices) within += d.within, device_runs += d.runs;
  // Of the module that takes most of the device's time, and no other's.
  if (!m.ops.empty() && m.ops[0].module == which && device_runs)
    out.between = within / static_cast<double>(device_runs);
  return out;
}

}  // namespace

MeasuredTimes::MeasuredTimes(const ProfileChoice& choice, const std::vector<LookedAt>& all) {
  std::vector<std::string> files{choice.profile};
  std::error_code error;
  if (std::filesystem::is_directory(choice.profile, error)) files = profiles_of_folder(choice.profile);
  if (files.empty()) fail(FailureKind::kUsage, "{} holds no profile (.xplane.pb)", choice.profile);
  std::vector<MeasuredModule> modules;
  for (const std::string& file : files) {
    std::string text = read_file(file);
    if (file_kind(file, text) == FileKind::kTable) {
      if (all.size() > 1)
        fail(FailureKind::kUsage, "{} is a table of kernels that names no modules; name one module of the run", file);
      if (!choice.device.empty()) fail(FailureKind::kUsage, "{} is a table of kernels that names no devices", file);
      table_ = read_trace(text, file);
      return;
    }
    if (modules.empty()) modules = measured_modules(all);
    read(file, std::move(text), modules);
  }
  choose(choice.device, all.size());
}

MeasuredTimes::MeasuredTimes(const std::vector<std::string>& files, const std::string& device,
                             const std::vector<LookedAt>& all) {
  const std::vector<MeasuredModule> modules = measured_modules(all);
  for (const std::string& file : files) try {
      read(file, read_file(file), modules);
    } catch (const Failure& e) {
      if (interrupted() || (unread_.size() + 1 == files.size() && places_.empty())) throw;
      unread_.push_back(first_line(e.what()));
    }
  choose(device, all.size());
}

void MeasuredTimes::read(const std::string& file, std::string text, const std::vector<MeasuredModule>& modules) {
  Timeline timeline = read_timeline(text, file);
  text.clear();
  const std::vector<DeviceTracks> devices = tracks_by_device(timeline);
  std::vector<Track> tracks = std::move(timeline.tracks);
  for (const DeviceTracks& device : devices) {
    timeline.tracks.clear();
    for (size_t k : device.tracks) timeline.tracks.push_back(std::move(tracks[k]));
    MeasuredPlace place;
    place.about.host = host_of_profile(file), place.about.file = file, place.about.device = device.name;
    place.about.label = label_of(place.about.host, device.name);
    place.joined = join(timeline, modules);
    for (size_t k = 0; k < modules.size(); ++k) place.clocks.emplace_back(timeline, place.joined, k);
    for (const MeasuredOp& op : place.joined.ops)
      place.kernels.emplace_back(timeline.text(op.kernel), timeline.text(op.details));
    places_.push_back(std::move(place));
  }
}

// Of each module the slowest device among those that are named, if any are.
void MeasuredTimes::choose(const std::string& device, size_t modules) {
  std::vector<std::string> labels;
  bool there = device.empty();
  for (const MeasuredPlace& p : places_) there |= is_named(p.about, device), labels.push_back(p.about.label);
  if (!there) fail(FailureKind::kUsage, "the profile has no device '{}'; it has {}", device, fmt::join(labels, ", "));
  for (size_t which = 0; which < modules; ++which) {
    size_t best = SIZE_MAX;
    double most = -1;
    for (size_t k = 0; k < places_.size(); ++k) {
      if (!device.empty() && !is_named(places_[k].about, device)) continue;
      const double call = of_module(places_[k], which).call();
      if (call > most) best = k, most = call;
    }
    shown_.push_back(best);
  }
}

std::vector<MeasuredDevice> MeasuredTimes::devices(size_t which) const {
  std::vector<MeasuredDevice> out;
  for (const MeasuredPlace& p : places_) out.push_back(of_module(p, which));
  return out;
}

std::optional<double> MeasuredTimes::seconds(size_t which, std::string_view instruction) const {
  if (table_) {
    double seconds = 0;
    size_t calls = 0;
    return time_of(*table_, instruction, &seconds, &calls) ? std::optional(seconds) : std::nullopt;
  }
  const Measured& joined = place(which).joined;
  const MeasuredModule& m = joined.modules[which];
  auto at = m.by_name.find(std::string(instruction));
  if (at == m.by_name.end()) return {};
  std::optional<double> seconds = joined.seconds(which, at->second);
  if (seconds && m.runs) *seconds /= static_cast<double>(m.runs);
  return seconds;
}

std::vector<MeasuredInstruction> MeasuredTimes::instructions(size_t which) const {
  std::vector<MeasuredInstruction> out;
  if (table_) return out;
  const MeasuredPlace& p = place(which);
  const MeasuredModule& module = p.joined.modules[which];
  const double runs = static_cast<double>(std::max<size_t>(module.runs, 1));
  for (size_t k = 0; k < p.joined.ops.size(); ++k) {
    const MeasuredOp& op = p.joined.ops[k];
    if (op.module != which) continue;
    MeasuredInstruction one;
    one.name = module.module->inst_name(op.inst);
    one.seconds = op.seconds / runs, one.ambiguous = op.ambiguous / runs;
    one.turns = static_cast<double>(op.calls) / runs;
    one.moment = p.clocks[which].of(one.name);
    one.kernel = p.kernels[k].first, one.details = kernel_details(p.kernels[k].second);
    out.push_back(std::move(one));
  }
  // What is asynchronous has the time of what runs inside of it.
  for (CompId c : module.module ? module.module->computations() : std::vector<CompId>())
    for (InstId i : module.module->live_order(c)) {
      if (module.module->op(i) != Opcode::AsyncStart || p.joined.find(which, i)) continue;
      const std::optional<double> inside = p.joined.seconds(which, i);
      if (!inside) continue;
      MeasuredInstruction one;
      one.name = module.module->inst_name(i), one.seconds = *inside / runs, one.turns = 1;
      out.push_back(std::move(one));
    }
  return out;
}

std::vector<std::string> MeasuredTimes::in_words() const {
  if (table_) return {fmt::format("{} of kernels in the table", time_text(table_->all))};
  std::vector<std::string> out;
  const std::set<size_t> used(shown_.begin(), shown_.end());
  if (shown_.size() == 1 && places_.size() > 1) {
    MeasuredRun run;
    run.devices = devices(0), run.shown = shown_[0];
    out = devices_in_words(run);
  }
  bool known = false, joined = false;
  for (size_t k : used) {
    const Measured& m = places_[k].joined;
    for (const std::string& line : join_in_words(m, 5))
      out.push_back(used.size() > 1 ? places_[k].about.label + ": " + line : line);
    known |= std::any_of(m.modules.begin(), m.modules.end(), [](const auto& module) { return module.runs; });
    joined |= m.joined > 0;
  }
  if (joined)
    out.push_back(known ? "measured times are of one run, on the average"
                        : "measured times are of all runs: how many there were is not known");
  return out;
}

}  // namespace hlo
