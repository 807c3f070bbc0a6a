#include "replay/record/files/timeline.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/base/check.h"
#include "ir/base/memory.h"
#include "parser/proto/unpack.h"

namespace hlo {
namespace {

// A value as text, whatever it is written as.
std::string text_of(const nlohmann::json& object, const char* key) {
  auto at = object.find(key);
  if (at == object.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  return at->is_number_integer() ? at->dump() : std::string();
}

int64_t number_of(const nlohmann::json& object, const char* key) {
  std::string text = text_of(object, key);
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(text);
}

struct Threads {
  std::map<std::string, std::string> processes;
  std::map<std::pair<std::string, std::string>, std::pair<std::string, size_t>> threads;  // name, place in tracks
};

void read_event(const nlohmann::json& e, Timeline* out, TimelineTexts* texts, Threads* threads) {
  if (!e.is_object()) return;
  const std::string ph = text_of(e, "ph"), pid = text_of(e, "pid"), tid = text_of(e, "tid");
  static const nlohmann::json kNone = nlohmann::json::object();
  auto found = e.find("args");
  const nlohmann::json& args = found == e.end() || !found->is_object() ? kNone : *found;
  if (ph == "M") {
    const std::string what = text_of(e, "name"), name = text_of(args, "name");
    if (what == "process_name") threads->processes[pid] = name;
    if (what == "thread_name") threads->threads.try_emplace({pid, tid}, "", SIZE_MAX).first->second.first = name;
    return;
  }
  if (ph != "X" || !e.contains("ts") || !e.contains("dur")) return;
  size_t& track = threads->threads.try_emplace({pid, tid}, "", SIZE_MAX).first->second.second;
  if (track == SIZE_MAX) {
    track = out->tracks.size();
    out->tracks.push_back({pid, tid, {}});
  }
  Span s;
  const std::string name = text_of(e, "name");
  s.name = texts->id(name);
  if (args.contains("hlo_op") || args.contains("hlo_module") || args.contains("hlo_category")) {
    std::string op = text_of(args, "hlo_op"), category = text_of(args, "hlo_category");
    if (!args.contains("hlo_category")) category = text_of(e, "cat");
    s.op = texts->id(op.empty() ? name : op), s.module = texts->id(text_of(args, "hlo_module"));
    s.category = texts->id(category.empty() ? std::string(without_number(name)) : category);
    for (const char* key : {"op_name", "tf_op", "long_name"})
      if (!s.op_name) s.op_name = texts->id(text_of(args, key));
    for (const char* key : {"source", "source_info"})
      if (!s.source) s.source = texts->id(text_of(args, key));
    s.program = number_of(args, "program_id");
    for (const char* key : {"kernel_details", "memcpy_details", "Memset_details", "memset_details"})
      if (!s.details) s.details = texts->id(text_of(args, key));
    s.graph = number_of(args, "cuda_graph_id"), s.node = number_of(args, "cuda_graph_node_id");
    s.launch = number_of(args, "correlation_id");
  }
  s.begin = e["ts"].get<double>() / 1e6, s.seconds = e["dur"].get<double>() / 1e6;
  if (!(s.seconds >= 0) || !(s.begin > -1e300 && s.begin < 1e300)) return;
  out->tracks[track].spans.push_back(s);
}

Timeline read_events(std::string_view text, const std::string& label) {
  Timeline out;
  out.format = "trace events";
  TimelineTexts texts(&out);
  Threads threads;
  try {
    nlohmann::json j = nlohmann::json::parse(text);
    const nlohmann::json& events = j.is_array() ? j : j.at("traceEvents");
    if (!events.is_array()) fail(FailureKind::kIo, "{} is no trace of events: 'traceEvents' is no list", label);
    for (const nlohmann::json& e : events) read_event(e, &out, &texts, &threads);
  } catch (const nlohmann::json::exception& e) {
    fail(FailureKind::kIo, "{} is no trace of events: {}", label, e.what());
  }
  for (const auto& [key, thread] : threads.threads) {
    if (thread.second == SIZE_MAX) continue;
    Track& t = out.tracks[thread.second];
    if (!thread.first.empty()) t.name = thread.first;
    if (auto at = threads.processes.find(key.first); at != threads.processes.end()) t.group = at->second;
  }
  settle(&out);
  return out;
}

}  // namespace

uint32_t TimelineTexts::id(std::string_view text) {
  if (text.empty()) return 0;
  auto [at, fresh] = known_.try_emplace(std::string(text), static_cast<uint32_t>(out_->texts.size()));
  if (fresh) out_->texts.emplace_back(text);
  return at->second;
}

void settle(Timeline* t) {
  std::erase_if(t->tracks, [](const Track& track) { return track.spans.empty(); });
  double start = 0;
  for (size_t k = 0; k < t->tracks.size(); ++k) {
    Track& track = t->tracks[k];
    std::stable_sort(track.spans.begin(), track.spans.end(), [](const Span& a, const Span& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.seconds > b.seconds;
    });
    start = k ? std::min(start, track.spans[0].begin) : track.spans[0].begin;
  }
  for (Track& track : t->tracks)
    for (Span& s : track.spans) s.begin -= start;
}

std::optional<KernelDetails> kernel_details(std::string_view text) {
  KernelDetails out;
  auto numbers = [](std::string_view value, std::array<int64_t, 3>* to) {
    size_t k = 0;
    for (char c : value) {
      if (c == ',')
        ++k;
      else if (c >= '0' && c <= '9' && k < 3 && (*to)[k] < INT64_MAX / 20)
        (*to)[k] = (*to)[k] * 10 + (c - '0');
      else
        return;
    }
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size()), colon = text.find(':', at);
    if (colon < end) {
      const std::string_view key = text.substr(at, colon - at), value = text.substr(colon + 1, end - colon - 1);
      std::array<int64_t, 3> seen{};
      numbers(value, &seen);
      if (key == "regs") out.registers = seen[0];
      if (key == "static_shared") out.static_shared = seen[0];
      if (key == "dynamic_shared") out.dynamic_shared = seen[0];
      if (key == "grid") out.grid = seen;
      if (key == "block") out.block = seen;
      if (key == "occ_pct") out.occupancy = std::strtod(std::string(value).c_str(), nullptr) / 100;
    }
    at = end + 1;
  }
  return out.registers >= 0 ? std::optional(out) : std::nullopt;
}

std::string_view without_number(std::string_view name) {
  size_t end = name.find_last_not_of("0123456789.");
  return name.substr(0, end == std::string_view::npos ? name.size() : end + 1);
}

bool container_by_name(const Timeline& t, const Span& s) {
  for (std::string_view word : {t.text(s.category), without_number(t.text(s.op))})
    if (word == "while" || word == "conditional" || word == "call") return true;
  return false;
}

Timeline read_timeline(std::string_view text, const std::string& label) {
  std::string inside;
  std::string_view file = label;
  if (looks_packed(text)) {
    inside = unpacked(text, label);
    text = inside;
    if (file.ends_with(".gz")) file.remove_suffix(3);
  }
  if (is_xspace(file, text)) return read_xspace(text, label);
  size_t start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || (text[start] != '{' && text[start] != '['))
    fail(
        FailureKind::kIo,
        "{} is no profile that names instructions: an XSpace (.xplane.pb) or a trace of events (.trace.json.gz) is one",
        label);
  // What nlohmann's objects take of a text, roughly.
  constexpr int64_t kGrowth = 16;
  if (static_cast<int64_t>(text.size()) > available_memory().bytes / kGrowth)
    fail(FailureKind::kUnsupported,
         "{}: {} MB of trace events are too many for this machine's memory; the .xplane.pb "
         "next to it takes less",
         label, text.size() >> 20);
  return read_events(text, label);
}

}  // namespace hlo
