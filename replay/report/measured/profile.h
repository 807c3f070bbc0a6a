// Where the time of a run goes: every instruction's begin and end, joined with what it costs and where it comes from.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/cost/cost.h"
#include "ir/eval/evaluator.h"

namespace hlo {

// An instruction as the profile keeps it; the module may be gone when it is read.
struct ProfiledInstruction {
  std::string name, category, op_name, source, shape;
  Cost cost;
  bool part = false;  // of a fusion that runs operation by operation: its time is within the fusion's
};

struct ProfileEvent {
  size_t what = 0;
  int64_t begin = 0, end = 0;  // nanoseconds
  int track = 0;               // 0, or another where it overlaps with what is not around it
  int depth = 0;               // row in a drawing: loops and calls around it, tracks below each other
};

struct Profile {
  std::vector<ProfiledInstruction> what;
  std::vector<ProfileEvent> events;  // by begin
  int64_t start = 0, end = 0;
  // Of this machine, measured: for bounds. 0: not measured.
  double memory_gb_s = 0, product_gflop_s = 0;
  std::string backend, module;
};

// Collects what `timed` of EvalOptions tells.
class Profiler {
 public:
  std::function<void(const Module&, InstId, int64_t, int64_t)> listener();
  void forget() { profile_.events.clear(); }  // of a run before the one that counts
  Profile finish(const std::string& module, const std::string& backend);

 private:
  size_t describe(const Module& m, InstId i);
  Profile profile_;
  const Module* module_ = nullptr;
  std::unordered_map<InstId, size_t> known_;
  std::vector<bool> fused_;
};

struct ProfileRow {
  std::string name, category, op_name, source;
  size_t calls = 0;
  double seconds = 0, share = 0, least = 0, most = 0;  // of one call
  double gb_s = 0, gflop_s = 0;
  std::string bound;   // "memory" or "compute"
  double reached = 0;  // share of that bound; 0 where it is not known
};
// What runs by itself (no loops, no parts of fusions), most time first.
std::vector<ProfileRow> profile_rows(const Profile& profile);

// Trace-event JSON, as chrome://tracing and Perfetto read it.
std::string trace_json(const Profile& profile);
// Times of a trace by a key that two runs share: the class of a kernel, or the op_name it comes from.
struct TraceTimes {
  std::map<std::string, double> by_class, by_op, by_name;  // seconds; by_name: of the instruction or its kernel
  std::map<std::string, size_t> calls;                     // by name
  double all = 0;
};
// Of our own traces, and of others' that name instructions (`hlo_op`, `hlo_category`, `op_name` or `tf_op` among the
// arguments): events that lie within another one of their thread are parts of it and not counted again. Throws
// Failure(kIo) where the text is no trace.
// XSpace protos (`.xplane.pb`) are read as such traces are (replay/record/files/timeline.h).
// A table of kernels as nsys (`nsys stats --format csv`) or nvprof (`--csv`) writes it is read too: its kernels are
// named after instructions, with `_` for what C does not allow. Either may be gzipped.
TraceTimes read_trace(const std::string& text, const std::string& file);
// Of `times`, what belongs to an instruction: by its name or its kernel's; false where nothing does.
bool time_of(const TraceTimes& times, std::string_view instruction, double* seconds, size_t* calls);

// As nvprof printed it: time, share, calls, average, minimum, maximum, name.
std::string profile_table(const Profile& profile, size_t most);

// Bandwidth of copies and rate of f32 products here, quickly measured.
void measure_machine(Profile& profile);

}  // namespace hlo
