// How long devices ran kernels, and how long they waited between them.
#include <algorithm>
#include <map>

#include "replay/report/measured/measured.h"

namespace hlo {
namespace {

struct KernelPiece {
  double begin = 0, end = 0;
  std::pair<size_t, uint32_t> what{SIZE_MAX, 0};  // place in Measured::ops, kernel's name
};

// Begins of runs: of what is launched in the entry computation, and as seldom as anything there, the first.
std::vector<double> run_begins(const Measured& m, const std::vector<KernelPiece>& pieces) {
  std::map<std::pair<size_t, uint32_t>, std::vector<double>> begins;
  for (const KernelPiece& p : pieces) {
    if (p.what.first == SIZE_MAX) continue;
    const MeasuredOp& op = m.ops[p.what.first];
    const Module& of = *m.modules[op.module].module;
    if (op.module == m.ops[0].module && of.parent(op.inst) == of.entry()) begins[p.what].push_back(p.begin);
  }
  std::vector<double> out;
  for (const auto& [what, at] : begins)
    if (out.empty() || at.size() < out.size() || (at.size() == out.size() && at[0] < out[0])) out = at;
  return out;
}

DeviceTime time_of_device(const Measured& m, std::vector<KernelPiece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const KernelPiece& a, const KernelPiece& b) { return a.begin < b.begin; });
  DeviceTime out;
  out.kernels = pieces.size();
  const std::vector<double> runs = run_begins(m, pieces);
  out.runs = runs.size();
  size_t run = 0;
  double until = pieces.front().begin;
  for (const KernelPiece& p : pieces) {
    // A run's first kernel ends what was between the runs.
    bool first = false;
    while (run < runs.size() && runs[run] <= p.begin) first = true, ++run;
    if (p.begin > until && !first) out.within += p.begin - until;
    out.busy += std::max(0.0, p.end - std::max(until, p.begin));
    until = std::max(until, p.end);
  }
  out.span = until - pieces.front().begin;
  if (!out.runs) out.within = 0;
  return out;
}

constexpr std::string_view kDevice = "/device:";

}  // namespace

std::vector<DeviceTracks> tracks_by_device(const Timeline& timeline) {
  std::map<std::string, DeviceTracks> devices;
  DeviceTracks all;
  for (size_t k = 0; k < timeline.tracks.size(); ++k) {
    const Track& track = timeline.tracks[k];
    all.tracks.push_back(k);
    const bool names = std::any_of(track.spans.begin(), track.spans.end(), [](const Span& s) { return s.names_hlo(); });
    if (names && all.name.empty()) all.name = track.group;
    if (!names || !track.group.starts_with(kDevice)) continue;
    // What stands behind the number, as `SparseCore 0`, is a part of it.
    const std::string name = track.group.substr(0, track.group.find(' '));
    DeviceTracks& device = devices[name];
    device.name = name, device.tracks.push_back(k);
  }
  if (devices.size() == 1) all.name = devices.begin()->first;
  if (devices.size() < 2) return {std::move(all)};
  std::vector<DeviceTracks> out;
  for (auto& [name, device] : devices) out.push_back(std::move(device));
  return out;
}

void add_devices(const Timeline& timeline, Measured* out) {
  std::map<std::string, std::vector<KernelPiece>> devices;
  std::map<std::string, std::vector<size_t>> tracks;
  std::map<std::pair<size_t, size_t>, size_t> ops;
  for (const MeasuredSpan& s : out->spans) ops.emplace(std::pair(s.track, s.span), s.op);
  for (const auto& [place, op] : ops) {
    const Track& track = timeline.tracks[place.first];
    const Span& s = track.spans[place.second];
    if (!s.details) continue;
    devices[track.group].push_back({s.begin, s.begin + s.seconds, {op, s.name}});
    std::vector<size_t>& seen = tracks[track.group];
    if (seen.empty() || seen.back() != place.first) seen.push_back(place.first);
  }
  for (auto& [where, pieces] : devices) {
    DeviceTime time = time_of_device(*out, std::move(pieces));
    time.where = where, time.tracks = tracks[where].size();
    out->devices.push_back(std::move(time));
  }
}

}  // namespace hlo
