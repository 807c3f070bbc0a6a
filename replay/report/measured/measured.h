// A profile joined to modules: which instruction each span of time was, how long each instruction took in all, and
// what could not be joined, with the reason.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "replay/record/files/timeline.h"

namespace hlo {

// A module that spans may belong to; read when one names it.
struct MeasuredModule {
  std::string name, selector;  // selector: how a command line names it
  int64_t number = -1;         // the profiler's program_id; -1: unknown
  std::function<std::shared_ptr<Module>()> load;
  bool held = false;               // by the profile itself
  std::shared_ptr<Module> module;  // null before it is asked for, and where it cannot be read
  std::string unreadable;
  std::string another_compilation;  // why nothing is joined to it, where the profile is of another one
  std::unordered_map<std::string, InstId> by_name;
  // How often it ran, at most: the fewest spans that an instruction of its entry computation has (one may have several:
  // a kernel and a copy). 0: no such instruction was seen.
  size_t runs = 0;
  // Reads it once; false where that failed.
  bool read();
};

struct MeasuredOp {
  size_t module = 0;  // place in Measured::modules
  InstId inst;
  size_t count = 0;                         // of its spans
  size_t calls = 0;                         // how often it ran, at most: the fewest spans of one of its kernels' names
  double seconds = 0, least = 0, most = 0;  // least and most: of one span
  double ambiguous = 0;                     // of `seconds`: its part of spans that may be other instructions', too
  // Texts of the timeline: of the kernel that took most, its name and what the device says of it; 0: no device's.
  uint32_t kernel = 0, details = 0;
};

struct MeasuredSpan {
  size_t track = 0, span = 0;  // places in the timeline
  size_t op = SIZE_MAX;        // place in Measured::ops; SIZE_MAX: not joined
  size_t ways = 1;             // instructions that it may be; it stands here once for each, with its part of the time
};

// Of a device or process that runs kernels: how long it did, and how long it waited between them.
struct DeviceTime {
  std::string where;
  size_t kernels = 0, tracks = 0, runs = 0;  // runs: of the module that takes most of its time; 0: unknown
  double span = 0, busy = 0;                 // from the first kernel's begin to the last one's end; any kernel running
  double within = 0;                         // of span - busy: between kernels of one run; the rest is between runs
  double between() const { return span - busy; }
};

// Time that is not of an instruction that is known.
struct Unjoined {
  std::string where, why;
  double seconds = 0;
  size_t spans = 0;
};

struct Measured {
  std::vector<MeasuredModule> modules;
  std::vector<MeasuredOp> ops;      // most time first
  std::vector<MeasuredSpan> spans;  // of all that names an instruction and is counted, by time
  double named = 0, joined = 0;     // seconds of those spans, and of the ones that were joined
  double ambiguous = 0;             // of `joined`: of spans that may be several instructions; split evenly among them
  std::vector<DeviceTime> devices;  // that say what their kernels are, by name
  std::vector<Unjoined> unjoined;   // spans that name an instruction that no module has
  std::vector<Unjoined> unnamed;    // of a device or process what names no instruction: Python, the runtime
  const MeasuredOp* find(size_t module, InstId inst) const;
  // Of an instruction in all runs; of the start of an asynchronous one what runs inside. Nothing where nothing is seen.
  std::optional<double> seconds(size_t module, InstId inst) const;
};

// A span belongs to the module of its number and name; else to the only one of its name, or the only one of that name
// that has all instructions which are named there. Where several would do it is not joined: never the first of them.
// Of spans that say no module all modules are asked.
// Kernels of command buffers: replay/report/measured/graph_spans.h. Of a module whose names, kernels, or counts
// disagree with the profile's nothing is joined: it is of another compilation.
Measured join(const Timeline& timeline, std::vector<MeasuredModule> modules);

// A device that a profile tells apart: its name there, `/device:GPU:0`, and its tracks.
struct DeviceTracks {
  std::string name;
  std::vector<size_t> tracks;  // places in Timeline::tracks
};
// One for each device that names instructions; of fewer than two, all tracks together.
std::vector<DeviceTracks> tracks_by_device(const Timeline& timeline);

// Fills Measured::devices, when spans are joined.
void add_devices(const Timeline& timeline, Measured* out);

// The modules that the profile itself holds.
std::vector<MeasuredModule> modules_of(const Timeline& timeline, const std::string& label);

}  // namespace hlo
