// XSpace protos to timelines (tsl/profiler/protobuf/xplane.proto; what planes, lines and stats are called stands in
// tsl/profiler/utils/xplane_schema.cc).
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <array>

#include "ir/base/check.h"
#include "ir/base/memory.h"
#include "replay/record/files/timeline.h"
#include "xspace.pb.h"

namespace hlo {
namespace {

namespace pb = google::protobuf;
using hlo_xspace::XEvent;
using hlo_xspace::XEventMetadata;
using hlo_xspace::XLine;
using hlo_xspace::XPlane;
using hlo_xspace::XStat;

constexpr size_t kMostProblems = 20;

// Lines that somebody derived of others of their plane; of a TPU's the operations are there and nowhere else.
constexpr std::array<std::string_view, 9> kDerived{"XLA Modules",          "Steps",          "Framework Ops",
                                                   "Framework Name Scope", "Source code",    "XLA TraceMe",
                                                   "Launch Stats",         "TensorFlow Ops", "TensorFlow Name Scope"};

class PlaneReader {
 public:
  PlaneReader(const XPlane& plane, Timeline* out, TimelineTexts* texts, int64_t start)
      : plane_(plane), out_(out), texts_(texts), start_(start) {
    for (const auto& [id, stat] : plane.stat_metadata()) stats_[id] = meaning(stat.name());
    for (const XLine& l : plane.lines())
      if (std::string_view(l.name()).starts_with("Stream")) streams_ = true;
  }

  void read() {
    for (const auto& [id, m] : plane_.event_metadata()) read_module(m);
    for (const XLine& l : plane_.lines())
      if (l.name() == "XLA Modules") read_modules_line(l);
    for (const XLine& l : plane_.lines()) read_line(l);
    if (wrong_)
      problem(fmt::format("{}: {} events refer to metadata that the plane does not have, or have no length",
                          plane_.name(), wrong_));
  }

 private:
  enum Meaning {
    kOther,
    kHloOp,
    kHloModule,
    kProgram,
    kCategory,
    kOpName,
    kSource,
    kProto,
    kDetails,
    kGraph,
    kNode,
    kLaunch
  };

  static Meaning meaning(std::string_view name) {
    if (name == "hlo_op") return kHloOp;
    if (name == "hlo_module") return kHloModule;
    if (name == "program_id") return kProgram;
    if (name == "hlo_category" || name == "equation" || name == "category") return kCategory;
    if (name == "tf_op" || name == "op_name") return kOpName;
    if (name == "source" || name == "source_info") return kSource;
    if (name == "Hlo Proto" || name == "hlo_proto") return kProto;
    if (name == "kernel_details" || name == "memcpy_details" || name == "Memset_details" || name == "memset_details")
      return kDetails;
    if (name == "cuda_graph_id") return kGraph;
    if (name == "cuda_graph_node_id") return kNode;
    if (name == "correlation_id") return kLaunch;
    return kOther;
  }

  void problem(std::string text) {
    if (out_->problems.size() < kMostProblems) out_->problems.push_back(std::move(text));
  }

  std::string_view text_of(const XStat& s) const {
    if (s.value_case() == XStat::kStrValue) return s.str_value();
    if (s.value_case() == XStat::kBytesValue) return s.bytes_value();
    if (s.value_case() != XStat::kRefValue) return {};
    auto at = plane_.stat_metadata().find(static_cast<int64_t>(s.ref_value()));
    return at == plane_.stat_metadata().end() ? std::string_view() : std::string_view(at->second.name());
  }

  static int64_t number_of(const XStat& s) {
    if (s.value_case() == XStat::kInt64Value) return s.int64_value();
    return s.value_case() == XStat::kUint64Value ? static_cast<int64_t>(s.uint64_value()) : -1;
  }

  Meaning of(const XStat& s) const {
    auto at = stats_.find(s.metadata_id());
    return at == stats_.end() ? kOther : at->second;
  }

  // `jit_f(6)` with the module in a stat.
  void read_module(const XEventMetadata& m) {
    HeldModule held;
    std::string_view name = m.name();
    for (const XStat& s : m.stats()) {
      if (of(s) == kProto) held.bytes = std::string(text_of(s));
      if (of(s) == kProgram) held.number = number_of(s);
    }
    if (held.bytes.empty()) return;
    held.name = std::string(module_of(name, &held.number));
    out_->modules.push_back(std::move(held));
  }

  static std::string_view module_of(std::string_view name, int64_t* number) {
    size_t open = name.rfind('(');
    if (open == std::string_view::npos || !name.ends_with(')')) return name;
    std::string_view digits = name.substr(open + 1, name.size() - open - 2);
    if (digits.empty() || digits.size() > 20 || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return name;
    if (*number < 0) {
      uint64_t value = 0;
      for (char c : digits) value = value * 10 + static_cast<uint64_t>(c - '0');
      *number = static_cast<int64_t>(value);
    }
    return name.substr(0, open);
  }

  double begin_of(const XLine& l, const XEvent& e) const {
    // Nanoseconds since 1970 need all of 64 bits: the difference first.
    auto ns = static_cast<double>(static_cast<uint64_t>(l.timestamp_ns()) - static_cast<uint64_t>(start_));
    return ns * 1e-9 + static_cast<double>(e.offset_ps()) * 1e-12;
  }

  const XEventMetadata* metadata(const XEvent& e) {
    auto at = plane_.event_metadata().find(e.metadata_id());
    if (at != plane_.event_metadata().end() && e.duration_ps() >= 0) return &at->second;
    ++wrong_;
    return nullptr;
  }

  // When which module ran, on planes whose operations do not say it.
  void read_modules_line(const XLine& l) {
    for (const XEvent& e : l.events()) {
      const XEventMetadata* m = metadata(e);
      if (!m) continue;
      Span s;
      s.module = texts_->id(module_of(m->name(), &s.program));
      s.begin = begin_of(l, e), s.seconds = static_cast<double>(e.duration_ps()) * 1e-12;
      modules_.push_back(s);
    }
    std::stable_sort(modules_.begin(), modules_.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  }

  void take_stats(const pb::RepeatedPtrField<XStat>& stats, Span* s) {
    for (const XStat& stat : stats) switch (of(stat)) {
        case kHloOp:
          s->op = texts_->id(text_of(stat));
          break;
        case kHloModule:
          s->module = texts_->id(text_of(stat));
          break;
        case kProgram:
          s->program = number_of(stat);
          break;
        case kCategory:
          s->category = texts_->id(text_of(stat));
          break;
        case kOpName:
          s->op_name = texts_->id(text_of(stat));
          break;
        case kSource:
          s->source = texts_->id(text_of(stat));
          break;
        case kDetails:
          s->details = texts_->id(text_of(stat));
          break;
        case kGraph:
          s->graph = number_of(stat);
          break;
        case kNode:
          s->node = number_of(stat);
          break;
        case kLaunch:
          s->launch = number_of(stat);
          break;
        case kOther:
        case kProto:
          break;
      }
  }

  void read_line(const XLine& l) {
    const bool operations = std::string_view(l.name()).ends_with("XLA Ops");
    if (std::find(kDerived.begin(), kDerived.end(), l.name()) != kDerived.end() || (operations && streams_)) return;
    Track track{plane_.name(), l.display_name().empty() ? l.name() : l.display_name(), {}};
    for (const XEvent& e : l.events()) {
      if (e.data_case() == XEvent::kNumOccurrences) continue;
      const XEventMetadata* m = metadata(e);
      if (!m) continue;
      Span s;
      take_stats(m->stats(), &s);
      take_stats(e.stats(), &s);
      std::string_view name = m->display_name().empty() ? m->name() : m->display_name();
      s.name = texts_->id(name);
      s.begin = begin_of(l, e), s.seconds = static_cast<double>(e.duration_ps()) * 1e-12;
      if (operations && !s.op) s.op = texts_->id(instruction_of(*m));
      if (s.op && !s.module) put_into_module(&s);
      if (s.names_hlo() && !s.op) s.op = s.name;
      if (s.names_hlo() && !s.category) s.category = texts_->id(without_number(texts_of(s.op)));
      track.spans.push_back(s);
    }
    out_->tracks.push_back(std::move(track));
  }

  std::string_view texts_of(uint32_t id) const { return out_->texts[id]; }

  // A TPU's events are called after the whole instruction: `%fusion.3 = f32[…] fusion(…)`.
  static std::string_view instruction_of(const XEventMetadata& m) {
    std::string_view name = m.display_name().empty() ? m.name() : m.display_name();
    if (name.starts_with('%')) name.remove_prefix(1);
    return name.substr(0, name.find_first_of(" ="));
  }

  void put_into_module(Span* s) const {
    auto behind = std::upper_bound(modules_.begin(), modules_.end(), s->begin,
                                   [](double at, const Span& m) { return at < m.begin; });
    if (behind == modules_.begin()) return;
    const Span& m = *std::prev(behind);
    if (s->begin > m.begin + m.seconds) return;
    s->module = m.module, s->program = m.program;
  }

  const XPlane& plane_;
  Timeline* out_;
  TimelineTexts* texts_;
  int64_t start_;
  std::unordered_map<int64_t, Meaning> stats_;
  std::vector<Span> modules_;
  bool streams_ = false;
  size_t wrong_ = 0;
};

}  // namespace

bool is_xspace(std::string_view label, std::string_view text) {
  if (text.empty()) return false;
  if (label.ends_with(".xplane.pb")) return true;
  // The first plane's name is near the front.
  std::string_view head = text.substr(0, 64);
  if (head[0] != '\n') return false;
  for (std::string_view name : {"/host:", "/device:", "/task:"})
    if (size_t at = head.find(name); at != std::string_view::npos && at >= 2 && head[at - 2] == '\x12') return true;
  return false;
}

Timeline read_xspace(std::string_view text, const std::string& label) {
  // An event of a few bytes becomes an object of a hundred.
  constexpr int64_t kGrowth = 40;
  if (text.size() > static_cast<size_t>(INT32_MAX))
    fail(FailureKind::kUnsupported, "{}: protos of more than 2 GB are not possible", label);
  if (static_cast<int64_t>(text.size()) > available_memory().bytes / kGrowth)
    fail(FailureKind::kUnsupported, "{}: a profile of {} MB is too large for this machine's memory", label,
         text.size() >> 20);
  pb::LogSilencer quiet;
  hlo_xspace::XSpace space;
  pb::io::ArrayInputStream in(text.data(), static_cast<int>(text.size()));
  if (!space.ParseFromZeroCopyStream(&in))
    fail(FailureKind::kIo, "{}: no profile (XSpace): truncated, damaged or of another kind", label);
  if (!space.planes_size())
    fail(FailureKind::kIo, "{}: a profile (XSpace) without any plane: the profiler collected nothing", label);
  Timeline out;
  out.format = "XSpace";
  for (const std::string& e : space.errors()) out.problems.push_back("the profiler says: " + e);
  for (const std::string& w : space.warnings()) out.problems.push_back("the profiler warns: " + w);
  if (out.problems.size() > kMostProblems) out.problems.resize(kMostProblems);
  int64_t start = INT64_MAX;
  for (const XPlane& p : space.planes())
    for (const XLine& l : p.lines()) start = std::min(start, l.timestamp_ns());
  TimelineTexts texts(&out);
  for (const XPlane& p : space.planes()) PlaneReader(p, &out, &texts, start).read();
  std::stable_sort(out.modules.begin(), out.modules.end(),
                   [](const HeldModule& a, const HeldModule& b) { return a.number < b.number; });
  settle(&out);
  return out;
}

}  // namespace hlo
