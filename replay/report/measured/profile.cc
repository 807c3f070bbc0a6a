#include "replay/report/measured/profile.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/base/parallel.h"
#include "ir/query/source_lines.h"
#include "parser/parser.h"
#include "parser/proto/unpack.h"
#include "replay/record/files/timeline.h"

namespace hlo {

std::function<void(const Module&, InstId, int64_t, int64_t)> Profiler::listener() {
  return [this](const Module& m, InstId i, int64_t begin, int64_t end) {
    Opcode op = m.op(i);
    bool container = op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call;
    if (!container && !CostAnalysis::runs(m, i)) return;
    profile_.events.push_back({describe(m, i), begin, end, 0});
  };
}

size_t Profiler::describe(const Module& m, InstId i) {
  if (module_ != &m) {
    module_ = &m;
    known_.clear();
    fused_ = m.fusion_computation_flags();
  }
  auto [at, fresh] = known_.try_emplace(i, profile_.what.size());
  if (!fresh) return at->second;
  const Universe& u = m.u();
  ProfiledInstruction p;
  p.name = m.inst_name(i), p.shape = u.shape_text(m.shape_id(i));
  p.category = op_text(m.op(i));
  if (m.op(i) == Opcode::Fusion) {
    std::string_view kind = u.text(m.attrs(i).text(Attr::kind));
    if (!kind.empty()) p.category += fmt::format(" {}", kind);
  } else if (m.op(i) == Opcode::CustomCall) {
    std::string_view target = u.text(m.attrs(i).text(Attr::custom_call_target));
    // A class of work, whichever library does it and what is fused into its call.
    p.category = target.starts_with("__cudnn$conv") ? "convolution" : fmt::format("custom-call {}", target);
  }
  const Metadata& d = u[m[i].meta];
  auto text = [&](uint32_t s) { return s == StrId::kNone ? std::string() : std::string(u.text(StrId(s))); };
  p.op_name = text(d.op_name);
  p.source = source_line(m, i).text();
  p.cost = CostAnalysis(m).of(i);
  p.part = fused_[m.parent(i).value];
  profile_.what.push_back(std::move(p));
  return at->second;
}

Profile Profiler::finish(const std::string& module, const std::string& backend) {
  Profile& p = profile_;
  std::stable_sort(p.events.begin(), p.events.end(), [](const ProfileEvent& a, const ProfileEvent& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  // What begins inside of another event and outlasts it runs beside it, on a track of its own.
  std::vector<std::vector<int64_t>> open;
  std::vector<int> deepest;
  for (ProfileEvent& e : p.events) {
    size_t t = 0;
    for (;; ++t) {
      if (t == open.size()) open.emplace_back(), deepest.push_back(0);
      while (!open[t].empty() && open[t].back() <= e.begin) open[t].pop_back();
      if (open[t].empty() || open[t].back() >= e.end) break;
    }
    e.track = static_cast<int>(t), e.depth = static_cast<int>(open[t].size());
    deepest[t] = std::max(deepest[t], e.depth + 1);
    open[t].push_back(e.end);
  }
  for (size_t t = 1; t < deepest.size(); ++t) deepest[t] += deepest[t - 1];
  for (ProfileEvent& e : p.events)
    if (e.track > 0) e.depth += deepest[static_cast<size_t>(e.track) - 1];
  if (!p.events.empty()) {
    p.start = p.events.front().begin;
    for (const ProfileEvent& e : p.events) p.end = std::max(p.end, e.end);
  }
  p.module = module, p.backend = backend;
  return std::move(p);
}

namespace {
bool container(const ProfiledInstruction& p) {
  return p.category == "while" || p.category == "conditional" || p.category == "call";
}
}  // namespace

std::vector<ProfileRow> profile_rows(const Profile& p) {
  std::map<std::string, size_t> at;
  std::vector<ProfileRow> rows;
  std::vector<Cost> costs;
  double all = 0;
  for (const ProfileEvent& e : p.events) {
    const ProfiledInstruction& w = p.what[e.what];
    if (w.part || container(w)) continue;
    auto [found, fresh] = at.try_emplace(w.name, rows.size());
    if (fresh) {
      rows.push_back({w.name, w.category, w.op_name, w.source, 0, 0, 0, 1e300, 0, 0, 0, "", 0});
      costs.push_back(w.cost);
    }
    ProfileRow& r = rows[found->second];
    double s = static_cast<double>(e.end - e.begin) / 1e9;
    ++r.calls, r.seconds += s, r.least = std::min(r.least, s), r.most = std::max(r.most, s), all += s;
  }
  for (size_t k = 0; k < rows.size(); ++k) {
    ProfileRow& r = rows[k];
    const Cost& c = costs[k];
    double one = r.seconds / static_cast<double>(r.calls), work = c.flops + c.transcendentals;
    r.share = all > 0 ? r.seconds / all : 0;
    if (one <= 0) continue;
    r.gb_s = c.bytes() / one / 1e9, r.gflop_s = work / one / 1e9;
    if (p.memory_gb_s <= 0 || r.category == "reshape") continue;  // a reshape moves nothing here
    double memory = c.bytes() / (p.memory_gb_s * 1e9);
    double compute = c.product && p.product_gflop_s > 0 ? work / (p.product_gflop_s * 1e9) : 0;
    r.bound = memory >= compute ? "memory" : "compute";
    r.reached = std::max(memory, compute) / one;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

std::string trace_json(const Profile& p) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", p.module + " on " + p.backend}}}});
  int tracks = 1;
  for (const ProfileEvent& e : p.events) tracks = std::max(tracks, e.track + 1);
  for (int t = 0; t < tracks; ++t)
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", t + 1},
                      {"args", {{"name", t == 0 ? std::string("instructions") : fmt::format("next to them {}", t)}}}});
  for (const ProfileEvent& e : p.events) {
    const ProfiledInstruction& w = p.what[e.what];
    double us = static_cast<double>(e.end - e.begin) / 1e3;
    Json args{{"hlo_op", w.name}, {"hlo_module", p.module}, {"shape", w.shape}};
    if (!w.op_name.empty()) args["op_name"] = w.op_name;
    if (!w.source.empty()) args["source"] = w.source;
    if (w.cost.bytes() > 0) args["bytes"] = w.cost.bytes();
    if (w.cost.flops + w.cost.transcendentals > 0) args["flops"] = w.cost.flops + w.cost.transcendentals;
    if (us > 0 && w.cost.bytes() > 0) args["GB/s"] = w.cost.bytes() / us / 1e3;
    if (us > 0 && w.cost.flops > 0) args["GFLOP/s"] = w.cost.flops / us / 1e3;
    events.push_back({{"name", w.name},
                      {"cat", w.category},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", e.track + 1},
                      {"ts", static_cast<double>(e.begin - p.start) / 1e3},
                      {"dur", us},
                      {"args", args}});
  }
  Json out{{"traceEvents", events},
           {"displayTimeUnit", "ns"},
           {"otherData",
            {{"module", p.module},
             {"backend", p.backend},
             {"memory_gb_s", p.memory_gb_s},
             {"product_gflop_s", p.product_gflop_s}}}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// One line of comma separated values, quotes taken off.
std::vector<std::string> csv_row(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else if (c != '\r')
      out.back() += c;
  }
  return out;
}

std::string kernel_name(std::string_view instruction) {
  std::string out(instruction);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !isalnum(static_cast<unsigned char>(c)) && c != '_'; }, '_');
  return out;
}

// nsys: `Time (%),Total Time (ns),Instances,…,Name`; nvprof: `"Type","Time(%)","Time","Calls",…,"Name"` and a line of
// units below it.
TraceTimes read_kernel_table(const std::string& text, const std::string& file) {
  TraceTimes out;
  size_t time = SIZE_MAX, calls = SIZE_MAX, name = SIZE_MAX, most = 0;
  double unit = 1e-9;
  bool units_follow = false;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::vector<std::string> row = csv_row(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (name == SIZE_MAX) {
      for (size_t k = 0; k < row.size(); ++k) {
        if (row[k] == "Total Time (ns)") time = k;
        if (row[k] == "Time") time = k, units_follow = true;
        if (row[k] == "Instances" || row[k] == "Calls") calls = k;
        if (row[k] == "Name") name = k;
      }
      if (time == SIZE_MAX || calls == SIZE_MAX || name == SIZE_MAX)
        time = calls = name = SIZE_MAX;
      else
        most = std::max({time, calls, name});
      continue;
    }
    if (row.size() <= most) continue;
    if (units_follow) {
      units_follow = false;
      const std::string& u = row[time];
      unit = u == "s" ? 1 : u == "ms" ? 1e-3 : u == "us" ? 1e-6 : 1e-9;
      continue;
    }
    char* rest = nullptr;
    double t = std::strtod(row[time].c_str(), &rest);
    if (rest == row[time].c_str()) continue;
    std::string kernel = row[name].substr(0, row[name].find('('));
    out.by_name[kernel] += t * unit;
    out.calls[kernel] += static_cast<size_t>(std::strtoull(row[calls].c_str(), nullptr, 10));
    size_t last = kernel.find_last_not_of("0123456789_");
    out.by_class[kernel.substr(0, last == std::string::npos ? kernel.size() : last + 1)] += t * unit;
    out.by_op[kernel] += t * unit;
    out.all += t * unit;
  }
  if (out.by_name.empty())
    fail(FailureKind::kIo, "{} is neither a trace of events nor a table of kernels (nsys, nvprof)", file);
  return out;
}

}  // namespace

bool time_of(const TraceTimes& times, std::string_view instruction, double* seconds, size_t* calls) {
  for (const std::string& name : {std::string(instruction), kernel_name(instruction)})
    if (auto at = times.by_name.find(name); at != times.by_name.end()) {
      *seconds = at->second, *calls = times.calls.at(name);
      return true;
    }
  return false;
}

TraceTimes read_trace(const std::string& given, const std::string& file) {
  std::string opened;
  if (looks_packed(given)) opened = unpacked(given, file);
  const std::string& text = opened.empty() ? given : opened;
  std::string_view label = file;
  if (label.ends_with(".gz")) label.remove_suffix(3);
  size_t start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (!is_xspace(label, text) && start != std::string::npos && text[start] != '{' && text[start] != '[')
    return read_kernel_table(text, file);
  Timeline t = read_timeline(text, std::string(label));
  TraceTimes out;
  for (const Track& track : t.tracks) {
    std::vector<bool> counted = counted_spans(track, [&](const Span& s) { return container_by_name(t, s); });
    for (size_t k = 0; k < track.spans.size(); ++k) {
      if (!counted[k]) continue;
      const Span& s = track.spans[k];
      const std::string op(t.text(s.op));
      out.by_class[std::string(t.text(s.category))] += s.seconds;
      out.by_op[std::string(t.text(s.op_name ? s.op_name : s.name))] += s.seconds;
      out.by_name[op] += s.seconds, ++out.calls[op];
      out.all += s.seconds;
    }
  }
  if (out.by_name.empty()) fail(FailureKind::kIo, "{} has no event that names an HLO instruction", file);
  return out;
}

std::string profile_table(const Profile& p, size_t most) {
  std::string out = fmt::format("{:>8} {:>12} {:>7} {:>12} {:>12} {:>12} {:>8} {:>9} {:>16}  {}\n", "Time(%)", "Time",
                                "Calls", "Avg", "Min", "Max", "GB/s", "GFLOP/s", "of its bound", "Name");
  auto time = [](double s) {
    return s >= 1      ? fmt::format("{:.4f}s", s)
           : s >= 1e-3 ? fmt::format("{:.4f}ms", s * 1e3)
                       : fmt::format("{:.3f}us", s * 1e6);
  };
  std::vector<ProfileRow> rows = profile_rows(p);
  for (size_t k = 0; k < rows.size() && k < most; ++k) {
    const ProfileRow& r = rows[k];
    std::string from = !r.source.empty() ? r.source : r.op_name;
    out += fmt::format("{:>7.2f}% {:>12} {:>7} {:>12} {:>12} {:>12} {:>8.2f} {:>9.2f} {:>16}  {} ({}){}\n",
                       100 * r.share, time(r.seconds), r.calls, time(r.seconds / static_cast<double>(r.calls)),
                       time(r.least), time(r.most), r.gb_s, r.gflop_s,
                       r.bound.empty() ? "" : fmt::format("{:.0f} % {}", 100 * r.reached, r.bound), r.name, r.category,
                       from.empty() ? "" : "  " + from);
  }
  if (rows.size() > most) out += fmt::format("… and {} more\n", rows.size() - most);
  return out;
}

void measure_machine(Profile& p) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point a) { return std::chrono::duration<double>(Clock::now() - a).count(); };
  constexpr int64_t kBytes = 64 << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 1e300;
  for (int k = 0; k < 5; ++k) {
    auto start = Clock::now();
    parallel_ranges(kBytes, kBytes / 8, [&](int64_t first, int64_t last) {
      std::memcpy(to.data() + first, from.data() + first, static_cast<size_t>(last - first));
    });
    best = std::min(best, seconds(start));
  }
  p.memory_gb_s = 2.0 * kBytes / best / 1e9;
  auto m = parse_module(
      "HloModule rate\nENTRY e {\n a = f32[512,512] parameter(0)\n ROOT d = f32[512,512] dot(a, a), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
      std::make_shared<Universe>(), {});
  std::vector<Value> arguments = seeded_arguments(*m, 1, false);
  best = 1e300;
  for (int k = 0; k < 5; ++k) {
    auto start = Clock::now();
    Evaluator(*m).run(arguments);
    best = std::min(best, seconds(start));
  }
  p.product_gflop_s = 2.0 * 512 * 512 * 512 / best / 1e9;
}

}  // namespace hlo
