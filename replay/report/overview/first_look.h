// The first minute with one module, in parts: what `hlo-replay DIR` prints and the page shows.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/report/findings/findings.h"
#include "replay/report/measured/step_clock.h"
#include "replay/report/overview/overview.h"

namespace hlo {

struct LookRow {
  std::string text = {};    // a line, in columns
  InstId inst = {};         // that it is about, of the overview's module; invalid: none
  std::string source = {};  // `model.py:12`; empty: unknown
  int stage = -1;           // of the lineage, of a pass; -1: none, or not known
};
struct LookSection {
  std::string heading = {};  // empty: of the module itself
  std::vector<LookRow> rows = {};
  size_t all = 0;  // where not all are among the rows, how many there are
};

// What one device of a host took for a module, by its host's profile.
struct MeasuredDevice {
  std::string host, device;         // the file's name; what the profile calls it
  std::string label;                // `HOST:0`, by which it is chosen
  std::string file;                 // of the profile
  std::string why_not;              // nothing of it is joined to the module; else empty
  size_t runs = 0;                  // 0: unknown, and what stands below is of all of them
  double seconds = 0, between = 0;  // of kernels of one run, and between them
  double call() const { return seconds + between; }
};

struct MeasuredInstruction;  // replay/report/overview/measured_page.h

// A profile joined to the module, of one device. Devices are never added up.
struct MeasuredRun {
  std::vector<MeasuredDevice> devices;  // all, by host; empty: the profile does not tell them apart
  size_t shown = 0;                     // of them the one that all that follows is of
  std::string file;                     // of the profile
  std::string why_not;                  // nothing of it is joined to the module; else empty
  std::string joined;                   // how much was, in words
  size_t runs = 0;                      // 0: unknown, and what stands below is of all of them
  double seconds = 0;                   // of its kernels, one run
  double between = 0;                   // between them, in one run; 0: unknown
  std::function<std::optional<double>(std::string_view)> of;  // of an instruction, one run
  std::function<std::vector<MeasuredInstruction>()> all;      // that were measured; empty: the profile is a table
  MomentOf when;                                              // an instruction ran in a run; empty: unknown of all
  double step = 0;  // of a run, from its first kernel to the end of its last one; 0: unknown
};

// Of several devices that have times how long one call took: `least` to `most`, and the median.
struct DeviceSpread {
  size_t devices = 0, hosts = 0;
  double least = 0, median = 0, most = 0;
  size_t slowest = 0;  // place in MeasuredRun::devices
};
// Of those of `host` alone, or of all where that is empty.
DeviceSpread spread_of(const MeasuredRun& run, const std::string& host = "");
// A line for all, and where there are several hosts one for each of the slowest of them; none of a single device.
std::vector<std::string> devices_in_words(const MeasuredRun& run);

struct LookOptions {
  std::optional<MeasuredRun> measured = {};
  bool frames = false;                                     // the whole stack below what names a line
  std::function<void(std::vector<ModuleFinding>*)> tried;  // has their changes made; empty: they are not tried
};
// Dearest kernels, memory, passes that did most, what looks odd. Throws what `tried` throws.
std::vector<LookSection> first_look(const ModuleOverview& overview, const LookOptions& options = {});

}  // namespace hlo
