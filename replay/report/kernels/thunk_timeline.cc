#include "replay/report/kernels/thunk_timeline.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/base/stack_guard.h"
#include "ir/program/buffer.h"
#include "ir/program/thunk.h"
#include "passes/backend/backend.h"
#include "replay/os/confined_path.h"
#include "replay/report/kernels/thunk_file.h"

namespace hlo {
namespace {

// A thunk of either source.
struct PlainThunk {
  std::string kind, name, stream;  // stream: of kAsyncStart, kSend, kRecv; empty: where the sequence is
  InstId inst;
  std::optional<int64_t> async_id;
  std::vector<PlainThunk> nested;
};

std::vector<PlainThunk> plain(const Module& m, const std::vector<Thunk>& list) {
  check_stack("thunks are nested");
  std::vector<PlainThunk> out;
  for (const Thunk& t : list) {
    PlainThunk& p = out.emplace_back();
    p.kind = t.kind, p.inst = t.inst, p.stream = t.stream;
    p.name = t.inst.valid() ? m.inst_name(t.inst) : std::string_view(t.description);
    if (t.async_id > 0) p.async_id = t.async_id;
    for (const auto& [label, inner] : t.nested)
      for (PlainThunk& one : plain(m, inner)) p.nested.push_back(std::move(one));
  }
  return out;
}

class DumpedThunks {
 public:
  DumpedThunks(const Module& m, std::map<int64_t, std::string> names) : names_(std::move(names)) {
    for (CompId c : m.computations())
      for (InstId i : m.live_order(c)) by_name_.emplace(m.inst_name(i), i);
  }
  std::vector<PlainThunk> plain(const std::vector<ThunkLine>& list, bool in_graph = false) {
    check_stack("thunks are nested");
    std::vector<PlainThunk> out;
    for (const ThunkLine& t : list) {
      PlainThunk& p = out.emplace_back();
      p.kind = t.kind;
      // All command buffers have the number 0, and so no name of their own.
      if (auto name = names_.find(t.id); t.id > 0 && name != names_.end()) p.name = name->second;
      if (auto inst = by_name_.find(p.name); inst != by_name_.end()) p.inst = inst->second;
      if (p.name.empty()) p.name = t.kernel.empty() ? t.kind : t.kernel;
      if (t.async_id >= 0) p.async_id = t.async_id;
      if (t.kind == "kAsyncStart") {
        p.stream = t.stream.empty() ? kUnknownStream : t.stream;
        starts_in_graphs += in_graph, unknown_streams += t.stream.empty();
      }
      const bool graph = in_graph || t.kind == "kCommandBuffer";
      for (const auto& [label, inner] : t.nested)
        for (PlainThunk& one : plain(inner, graph)) p.nested.push_back(std::move(one));
    }
    return out;
  }
  int64_t starts_in_graphs = 0, unknown_streams = 0;

 private:
  std::map<int64_t, std::string> names_;
  std::map<std::string, InstId, std::less<>> by_name_;
};

class TimelineWriter {
 public:
  TimelineWriter(const Module& m, const ModuleCost& cost, ThunkTimeline* out) : out_(*out) {
    for (const KernelCost& k : cost.kernels) seconds_[k.inst] = k.seconds;
    for (CompId c : m.computations())
      for (InstId i : m.live_order(c))
        if (m.op(i) == Opcode::AsyncStart && !m.called(i).empty())
          if (const InstId root = m.comp(m.called(i)[0]).root; !seconds_.contains(root) && seconds_.contains(i))
            seconds_[root] = seconds_[i];
  }
  void write(const std::vector<PlainThunk>& list) {
    count(list, {});
    add(list, 0, kMainStream, 0, {});
    out_.streams.clear();
    for (std::string_view kind : {kMainStream, "computation_stream", "communication_stream", kUnknownStream})
      for (const auto& [name, end] : ends_)
        if (name.starts_with(kind)) out_.streams.push_back(name);
  }

 private:
  // Whose time a thunk takes. One without a name is of the kernel around it: what is started, or what is sliced.
  InstId timed(const PlainThunk& t, InstId around) const {
    return t.inst.valid() && (seconds_.contains(t.inst) || !around.valid()) ? t.inst : around;
  }
  InstId kernel(InstId inst) const { return seconds_.contains(inst) ? inst : InstId(); }
  void count(const std::vector<PlainThunk>& list, InstId around) {
    check_stack("thunks are nested");
    for (const PlainThunk& t : list) {
      if (t.nested.empty() && t.kind != "kAsyncDone") ++launches_[timed(t, around)];
      count(t.nested, kernel(timed(t, around)));
    }
  }
  // Several thunks of one instruction share its time.
  double own(InstId inst) const {
    auto found = seconds_.find(inst);
    return found == seconds_.end() ? 0 : found->second / static_cast<double>(launches_.at(inst));
  }
  double add(const std::vector<PlainThunk>& list, double now, const std::string& stream, int depth, InstId around) {
    check_stack("thunks are nested");
    ends_.try_emplace(stream, 0);
    for (const PlainThunk& t : list) {
      const size_t at = out_.thunks.size();
      TimedThunk& row = out_.thunks.emplace_back();
      const InstId inst = timed(t, around);
      row.kind = t.kind, row.name = t.name, row.inst = t.inst.valid() ? t.inst : inst;
      row.async_id = t.async_id, row.depth = depth;
      row.stream = t.stream.empty() ? stream : t.stream;
      double begin = now, seconds = 0;
      if (t.kind == "kAsyncDone") {
        const auto end = t.async_id ? async_ends_.find(*t.async_id) : async_ends_.end();
        if (end != async_ends_.end()) seconds = std::max(0.0, end->second - now);
      } else if (!t.stream.empty()) {
        begin = std::max(now, ends_[row.stream]);
        seconds = t.nested.empty() ? own(inst) : add(t.nested, begin, t.stream, depth + 1, kernel(inst)) - begin;
        ends_[t.stream] = begin + seconds;
        if (t.async_id) async_ends_[*t.async_id] = begin + seconds;
      } else {
        seconds = t.nested.empty() ? own(inst) : add(t.nested, now, stream, depth + 1, kernel(inst)) - now;
      }
      out_.thunks[at].start = begin, out_.thunks[at].seconds = seconds;
      if (t.stream.empty()) now += seconds;
    }
    ends_[stream] = std::max(ends_[stream], now);
    return now;
  }

  ThunkTimeline& out_;
  std::unordered_map<InstId, double> seconds_;
  std::unordered_map<InstId, int64_t> launches_;
  std::map<std::string, double> ends_;  // by stream, so far
  std::map<int64_t, double> async_ends_;
};

std::string file_of_thunks(const Recording& r) {
  for (std::string_view ending : {".thunk_sequence_after_thunk_passes.txt", ".thunk_sequence.txt"})
    for (const std::string& f : r.other_files)
      if (f.ends_with(ending)) return f;
  return {};
}

std::string first_line_of(const Failure& e) {
  const std::string_view what = e.what();
  return std::string(what.substr(0, what.find('\n')));
}

// Nothing where the dump has no such file, or one that cannot be read, which is noted.
std::optional<std::vector<PlainThunk>> dumped(const Module& m, const Recording& r, ThunkTimeline* out) {
  const std::string file = file_of_thunks(r);
  if (file.empty()) {
    out->notes.push_back("The dump has no thunk_sequence.txt: streams are those that XLA's rule gives.");
    return std::nullopt;
  }
  try {
    const std::vector<ThunkLine> lines = read_thunk_file(read_confined(r.folder, file), file);
    std::map<int64_t, std::string> names;
    const std::string metadata = file.substr(0, file.find(".thunk_sequence")) + ".thunk_metadata.txt";
    if (std::find(r.other_files.begin(), r.other_files.end(), metadata) != r.other_files.end())
      names = read_thunk_metadata(read_confined(r.folder, metadata), metadata);
    else
      out->notes.push_back(fmt::format("The dump has no {}: which instruction a thunk is of is unknown.", metadata));
    DumpedThunks reader(m, std::move(names));
    std::vector<PlainThunk> list = reader.plain(lines);
    out->from = file;
    if (reader.unknown_streams)
      out->notes.push_back(fmt::format("{} names no stream for {} of its async starts: theirs is unknown.", file,
                                       reader.unknown_streams));
    if (reader.starts_in_graphs)
      out->notes.push_back(
          fmt::format("{} async starts are in command buffers: a graph, launched on one stream, orders "
                      "them, and may run them on other streams than those that are named.",
                      reader.starts_in_graphs));
    return list;
  } catch (const Failure& e) {
    out->notes.push_back(
        fmt::format("{} cannot be read, streams are those that XLA's rule gives: {}", file, first_line_of(e)));
    return std::nullopt;
  }
}

}  // namespace

ThunkTimeline thunk_timeline(const Module& m, const ModuleCost& cost, const Recording* dump, const GpuTarget& gpu) {
  ThunkTimeline out;
  std::optional<std::vector<PlainThunk>> list;
  if (dump && dump->source == "xla") list = dumped(m, *dump, &out);
  if (!list) list = plain(m, build_thunks(m, assign_buffers(m, gpu), gpu));
  TimelineWriter(m, cost, &out).write(*list);
  return out;
}

}  // namespace hlo
