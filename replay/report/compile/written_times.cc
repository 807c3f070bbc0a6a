#include "replay/report/compile/written_times.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/base/check.h"
#include "replay/os/confined_path.h"
#include "replay/record/files/dump_names.h"

namespace hlo {
namespace {

constexpr size_t kFewestFiles = 5;  // whose order is not XLA's by chance
constexpr int64_t kSecond = 1'000'000'000, kFewSeconds = 10 * kSecond;
constexpr int64_t kClocksApart = 2'000'000'000;  // nanoseconds between the end of a pass and the time of its file
// What the compiler writes behind the last stage; what a user or hlo-replay puts beside it is none of it.
constexpr const char* kBehind[] = {".ll",
                                   ".ptx",
                                   ".o",
                                   ".cubin",
                                   ".hsaco",
                                   ".mlir",
                                   ".ttir.txt",
                                   ".mlir-passes.log",
                                   "thunk_sequence.txt",
                                   "thunk_metadata.txt",
                                   "thunk_sequence_after_thunk_passes.txt"};

struct TimedName {
  std::string file;
  int64_t ns = 0;
};

std::optional<int64_t> time_written(const Recording& r, const std::string& file) {
  DumpName name;
  if (parse_name(file.substr(file.rfind('/') + 1), &name) && name.time >= 0 && name.time < INT64_MAX / 1000)
    return name.time * 1000;
  struct stat s {};
  if (!why_not_confined(r.folder, file).empty() || ::stat((r.folder + "/" + file).c_str(), &s) != 0)
    return std::nullopt;
  return int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec;
}

bool written_behind(const std::string& file) {
  return std::any_of(std::begin(kBehind), std::end(kBehind), [&](const char* end) { return file.ends_with(end); });
}

// The first stage, every other one in order, the last one; nothing where one of these has no time.
std::optional<std::vector<TimedName>> stages_in_order(const Recording& r) {
  const bool numbered = std::any_of(r.rows.begin(), r.rows.end(), [](const StageRow& row) { return row.number >= 0; });
  std::vector<TimedName> out;
  for (const StageRow& row : r.rows) {
    // What has no number stands where it was put by rule.
    if (row.file.empty() || (numbered && row.number < 0 && row.kind == StageRow::kPass)) continue;
    const std::optional<int64_t> ns = time_written(r, row.file);
    if (!ns) return std::nullopt;
    out.push_back({row.file, *ns});
  }
  return out;
}

// Do the times of stages agree with those that XLA's record of passes has? Nothing where it has none.
std::optional<bool> agrees_with_passes(const Recording& r, const std::vector<TimedName>& stages) {
  if (r.metadata.empty()) return std::nullopt;
  bool any = false;
  for (const PassRun& run : read_metadata(read_confined(r.folder, r.metadata))) {
    if (run.begin <= 0 || run.end > INT64_MAX / 1000) continue;
    const auto stage =
        std::find_if(stages.begin(), stages.end(), [&](const TimedName& t) { return t.file == run.file; });
    const bool before = stages.front().ns > run.begin * 1000 + kClocksApart;
    const bool behind = stages.back().ns < run.end * 1000 - kClocksApart;
    if (before || behind) return false;
    any = true;
    if (stage != stages.end() && !run.file.empty() &&
        (stage->ns < run.begin * 1000 - kClocksApart || stage->ns > run.end * 1000 + kClocksApart))
      return false;
  }
  return any ? std::optional<bool>(true) : std::nullopt;
}

std::string why_not_xlas(const std::vector<TimedName>& stages, const std::vector<TimedName>& behind,
                         std::optional<bool> agrees) {
  auto later = [](const TimedName& x, const TimedName& y) { return x.ns < y.ns; };
  if (agrees == false) return "its files have other times than its passes: they were copied";
  if (!std::is_sorted(stages.begin(), stages.end(), later))
    return "its files have not the times at which XLA wrote them: they were copied";
  if (!behind.empty() && std::min_element(behind.begin(), behind.end(), later)->ns < stages.back().ns)
    return "files of kernels are older than the last stage: they were copied, or two runs wrote into one folder";
  if (agrees == true) return "";
  std::vector<TimedName> all = stages;
  all.insert(all.end(), behind.begin(), behind.end());
  if (all.size() < kFewestFiles) return "too few files show whether their times are those at which XLA wrote them";
  // Who copies goes by names.
  std::stable_sort(all.begin(), all.end(), [](const TimedName& x, const TimedName& y) { return x.file < y.file; });
  if (std::is_sorted(all.begin(), all.end(), later))
    return "the times of its files are in the order of their names: they were copied";
  return "";
}

}  // namespace

WrittenTimes written_times(const Recording& r) {
  WrittenTimes out;
  if (r.source != "xla" || r.rows.size() < 2 || r.rows.front().kind != StageRow::kInput ||
      r.rows.back().kind != StageRow::kResult || r.rows.front().file.empty() || r.rows.back().file.empty()) {
    out.why_not = "the folder has not both the first and the last stage that XLA wrote";
    return out;
  }
  const std::optional<std::vector<TimedName>> stages = stages_in_order(r);
  std::vector<TimedName> behind;
  for (const std::string& file : r.other_files)
    if (written_behind(file))
      if (const std::optional<int64_t> ns = time_written(r, file)) behind.push_back({file, *ns});
  if (!stages) {
    out.why_not = "a stage's file has no time";
    return out;
  }
  try {
    out.why_not = why_not_xlas(*stages, behind, agrees_with_passes(r, *stages));
  } catch (const Failure&) {
    out.why_not = "its record of passes cannot be read";
  }
  if (!out.why_not.empty()) return out;
  std::stable_sort(behind.begin(), behind.end(), [](const TimedName& x, const TimedName& y) {
    return std::pair(x.ns, x.file) < std::pair(y.ns, y.file);
  });
  const int64_t first = stages->front().ns;
  // An archive may keep whole seconds alone.
  auto whole = [](const TimedName& t) { return t.ns % kSecond == 0; };
  out.whole_seconds =
      std::all_of(stages->begin(), stages->end(), whole) && std::all_of(behind.begin(), behind.end(), whole);
  const int64_t last = std::max(stages->back().ns, behind.empty() ? 0 : behind.back().ns);
  if (out.whole_seconds && last - first < kFewSeconds) {
    out.why_not = "they are whole seconds, and it took only a few";
    return out;
  }
  auto seconds = [&](int64_t ns) { return static_cast<double>(ns - first) * 1e-9; };
  out.passes = seconds(stages->back().ns);
  for (const TimedName& t : behind) out.files.push_back({t.file, seconds(t.ns)});
  if (!behind.empty()) out.behind = seconds(behind.back().ns) - out.passes;
  return out;
}

}  // namespace hlo
