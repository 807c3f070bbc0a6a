#include "replay/report/kernels/expected.h"

#include <algorithm>
#include <map>
#include <span>

#include "ir/analysis/fusion/fusion_analysis.h"
#include "ir/program/thunk.h"
#include "passes/backend/backend.h"

namespace hlo {
namespace {

// Microseconds of the host: expected_host.def's names.
struct HostTimes {
  double call = 0, launch = 0, gap = 0, node = 0;
};

std::span<const ExpectedRow> expected_rows() {
#define EXPECTED(row, launch, factor, launches, kernels, programs) {row, launch, factor, launches, kernels, programs},
#define EXPECTED_HOST(call, launch, gap, node)
  static const std::vector<ExpectedRow> rows = {
#include "replay/report/kernels/expected.def"
  };
#undef EXPECTED
#undef EXPECTED_HOST
  return rows;
}

HostTimes host_times() {
  HostTimes out;
#define EXPECTED(row, launch, factor, launches, kernels, programs)
#define EXPECTED_HOST(call, launch, gap, node) out = {call, launch, gap, node};
#include "replay/report/kernels/expected.def"
#undef EXPECTED
#undef EXPECTED_HOST
  return out;
}

const ExpectedRow* row_named(std::string_view name) {
  for (const ExpectedRow& r : expected_rows())
    if (r.name == name) return &r;
  return nullptr;
}

// Its own, else of its family: what stands in front of a slash; null where neither was measured.
const ExpectedRow* row_of_family(std::string_view name) {
  while (true) {
    if (const ExpectedRow* row = row_named(name)) return row;
    const size_t slash = name.rfind('/');
    if (slash == std::string_view::npos) return nullptr;
    name = name.substr(0, slash);
  }
}

std::string_view precision_of(const Cost& c) {
  static constexpr std::string_view names[kArithmetics] = {"f64", "f32", "tf32", "bf16", "f16", "f8", "f4", "s8"};
  const auto most = std::max_element(c.in_products.begin(), c.in_products.end());
  return *most > 0 ? names[most - c.in_products.begin()] : "";
}

// What runs: of an asynchronous start what is inside.
InstId inside_of(const Module& m, InstId i) {
  return m.op(i) == Opcode::AsyncStart && !m.called(i).empty() ? m.comp(m.called(i)[0]).root : i;
}

// A library's call by what it computes; empty where the compiler writes the kernel.
std::string library_row(const Module& m, InstId i, const Cost& cost) {
  if (m.op(i) == Opcode::Fft) return "fft";
  if (m.op(i) == Opcode::Cholesky) return "solver/cholesky";
  if (m.op(i) == Opcode::TriangularSolve) return "solver/triangular";
  if (m.op(i) == Opcode::Fusion && fusion_backend_kind(m, i) == "__cudnn$fusion") return "fusion/cuDNN";
  if (m.op(i) != Opcode::CustomCall) return "";
  const std::string_view target = m.u().text(m.attrs(i).text(Attr::custom_call_target));
  auto has = [&](std::string_view word) { return target.find(word) != std::string_view::npos; };
  if (has("fmha")) return has("Backward") ? "attention/backward" : "attention/forward";
  if (has("olesky") || has("potrf")) return "solver/cholesky";
  if (has("riangularSolve") || has("trsm")) return "solver/triangular";
  if (has("ort")) return "sort/library";
  const std::string kind = kernel_class(m, i);
  if (kind == "product") return fmt::format("product/cuBLAS/{}", precision_of(cost));
  return kind == "custom-call" ? "custom-call/" + std::string(target) : kind + "/library";
}

// What a strided slice or a gather picks along the dimension that lies together in memory is brought by whole sectors.
constexpr double kSector = 32;
constexpr double kTold = 0.05;  // rows that less of the time is by are in --json
bool picks_single_elements(const Module& m, InstId i) {
  auto one = [&](InstId k) {
    if (m.op(k) != Opcode::Slice) return false;
    const Shape& s = m.shape(k);
    if (s.rank() == 0) return false;
    const auto minor = static_cast<size_t>(s.has_layout && !s.layout.minor_to_major.empty() ? s.layout.minor_to_major[0]
                                                                                            : s.rank() - 1);
    return std::get<std::vector<SliceDim>>(*m.attrs(k).find(Attr::slice))[minor].stride > 1;
  };
  if (m.op(i) != Opcode::Fusion) return one(i);
  for (InstId k : m.post_order(m.called(i)[0]))
    if (one(k)) return true;
  return false;
}

double bytes_of_operands(const Module& m, InstId i) {
  double sum = 0;
  for (InstId o : m.operands(i))
    if (m.shape(o).is_array()) sum += static_cast<double>(m.u().byte_size(m.shape_id(o)));
  return sum;
}

// Seconds at full rates. Not the bound: nothing waits in the cache, sectors come whole, an FFT goes over its data once
// a dimension, and a kernel of few blocks draws what their multiprocessors can.
double work_of(const Module& m, InstId i, double calls, Cost c, const DeviceSpec& device) {
  c.bytes_repeated = 0;
  // Each launch of a sort goes over all; a library's sorts by eight bits of the key at a time.
  const bool sorts = kernel_class(m, i) == "sort" || library_row(m, i, c) == "sort/library";
  if (sorts && m.op(i) == Opcode::CustomCall && m.operand_count(i) > 0)
    calls = std::max(1.0, static_cast<double>(type_bits(m.shape(m.operand(i, 0)).type)) / 8);
  if (sorts && calls > 1) c.bytes_read *= calls, c.bytes_written *= calls;
  if (m.op(i) == Opcode::Fft) {
    const double passes = std::max<double>(1, static_cast<double>(m.attrs(i).ints(Attr::fft_length).size()));
    c.bytes_read *= passes, c.bytes_written *= passes;
  }
  const bool compiled = m.op(i) != Opcode::CustomCall;
  if (compiled && !is_triton_fusion(m, i) && picks_single_elements(m, i)) {
    const double element = std::max(1.0, static_cast<double>(type_bits(m.shape(m.operand(i, 0)).type)) / 8);
    c.bytes_read = std::max(c.bytes_read, std::min(bytes_of_operands(m, i), c.bytes_read * kSector / element));
  }
  double seconds = least_seconds(c, device, nullptr);
  if (m.op(i) == Opcode::Fusion && !is_triton_fusion(m, i) && !is_custom_fusion(m, i) && device.l2_gb_s > 0) {
    const FusionAnalysis a = analyze_fusion(FusionView(m, i), default_gpu_target());
    const double part = std::min(1.0, static_cast<double>(a.grid.blocks) / device.sms);
    seconds = std::max(seconds, c.bytes() / (device.l2_gb_s * 1e9 * part));
  }
  return seconds;
}

std::string row_of(const Module& m, InstId i, const Cost& cost, bool* library) {
  std::string name = library_row(m, i, cost);
  *library = !name.empty();
  if (*library) return name;
  name = kernel_class(m, i);
  if (is_triton_fusion(m, i) || is_custom_fusion(m, i)) name += "/Triton";
  return name;
}

// How often each instruction launches something in one run of its computation, and what of that is in graphs.
struct LaunchCounts {
  std::unordered_map<InstId, double> all, nodes;
  std::unordered_map<InstId, double> graphs;  // by their first instruction
};
void count_launches(const std::vector<Thunk>& thunks, bool in_graph, LaunchCounts* out) {
  for (const Thunk& t : thunks) {
    const bool graph = t.kind == "kCommandBuffer";
    if (graph) ++out->graphs[t.inst];
    for (const auto& [label, inner] : t.nested) count_launches(inner, in_graph || graph, out);
    if (!t.nested.empty() || t.kind.ends_with("Done")) continue;
    ++out->all[t.inst];
    if (in_graph) ++out->nodes[t.inst];
  }
}

std::string why_no_figure(const Module& m, const DeviceSpec& device, std::string_view platform) {
  if (!platform.empty() && platform != "CUDA")
    return fmt::format("it was compiled for a {}, and what was measured are kernels of CUDA", platform);
  if (!device.is_gpu() || device.sm.empty()) return fmt::format("no kernel was measured on a {}", device.name);
  if (!m.config().is_scheduled) return "the module is not scheduled: what it will run is not decided yet";
  return "";
}

void add_base(const ExpectedKernel& k, double times, std::map<std::string_view, ExpectedBase>* bases) {
  ExpectedBase& base = (*bases)[k.by.name];
  base.row = k.by, base.general |= k.general, base.runs += times, base.seconds += k.seconds;
  if (k.general && std::find(base.of.begin(), base.of.end(), k.row) == base.of.end()) base.of.push_back(k.row);
}

}  // namespace

const ExpectedKernel* ExpectedTime::of(InstId inst) const {
  auto found = std::find_if(list.begin(), list.end(), [&](const ExpectedKernel& k) { return k.inst == inst; });
  return found == list.end() || found->unknown ? nullptr : &*found;
}

ExpectedTime expected_time(const Module& m, const ModuleCost& cost, const DeviceSpec& device,
                           std::string_view platform) {
  ExpectedTime out;
  out.why_not = why_no_figure(m, device, platform);
  if (!out.why_not.empty()) return out;
  LaunchCounts counts;
  try {
    count_launches(with_command_buffers(build_thunks(m, assign_buffers(m))), false, &counts);
  } catch (const Failure& e) {
    const std::string_view what = e.what();
    out.why_not = fmt::format("its launches are not known: {}", what.substr(0, what.find('\n')));
    return out;
  }
  out.scaled = device.name != kExpectedCard, out.loops_without_trip_count = cost.loops_without_trip_count;
  const HostTimes host = host_times();
  std::map<std::string_view, ExpectedBase> bases;
  for (const KernelCost& c : cost.kernels) {
    ExpectedKernel k;
    k.inst = c.inst;
    const InstId inside = inside_of(m, c.inst);
    k.row = row_of(m, inside, c.cost, &k.library);
    k.message = kernel_class(m, inside) == "collective";
    const auto launched = counts.all.find(inside), node = counts.nodes.find(inside);
    k.calls = launched == counts.all.end() ? 0 : launched->second;
    k.nodes = node == counts.nodes.end() ? 0 : node->second;
    k.work = work_of(m, inside, k.calls, c.cost, device);
    const ExpectedRow* row = row_of_family(k.row);
    k.by = row ? *row : *row_named(k.library ? "library call" : "kernel");
    k.general = k.by.name != k.row, k.launches = k.calls * k.by.launches;
    k.unknown = k.message || (!c.known && k.calls > 0);
    if (k.message) {
      ++out.messages;
    } else if (k.unknown) {
      ++out.unknown_calls;
    } else if (k.calls > 0) {
      k.seconds = c.times * (k.launches * k.by.launch_us * 1e-6 + k.by.factor * k.work);
      out.kernels += k.seconds, out.nodes += k.nodes * k.by.launches * c.times;
      out.launches += (k.calls - k.nodes) * k.by.launches * c.times;
      add_base(k, c.times, &bases);
    }
    const auto graph = counts.graphs.find(inside);
    if (graph != counts.graphs.end()) out.graphs += graph->second * c.times;
    out.list.push_back(std::move(k));
  }
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) out.branches += m.alive(i) && m.op(i) == Opcode::Conditional;
  // The host launches ahead of the device where it is the faster one.
  const double idle = (out.launches + out.graphs) * host.gap * 1e-6 + out.nodes * host.node * 1e-6,
               pace = (out.launches + out.graphs) * host.launch * 1e-6;
  out.host_bound = pace > out.kernels + idle;
  out.between = out.host_bound ? pace - out.kernels : idle;
  out.call = host.call * 1e-6;
  out.seconds = out.kernels + out.between + out.call;
  for (auto& [name, base] : bases) out.rests_on.push_back(std::move(base));
  std::stable_sort(out.rests_on.begin(), out.rests_on.end(),
                   [](const ExpectedBase& x, const ExpectedBase& y) { return x.seconds > y.seconds; });
  return out;
}

namespace {

// `2.2 ms`: no more digits than there is to know.
std::string rough_text(double seconds, int digits) {
  double size = 1e-6;
  const char* unit = "us";
  for (const auto& [next, name] : {std::pair(1e-3, "ms"), std::pair(1.0, "s")})
    if (seconds >= 0.9995 * next) size = next, unit = name;
  const double value = seconds / size;
  const int behind = std::max(0, digits - (value >= 100 ? 3 : value >= 10 ? 2 : 1));
  return fmt::format("{:.{}f} {}", value, behind, unit);
}

std::string counted_words(double n, const char* word) {
  return fmt::format("{:.0f} {}{}", n, word, n == 1 ? "" : word[0] == 'l' ? "es" : "s");
}

std::string base_in_words(const ExpectedBase& b) {
  std::string out = fmt::format("{} by {} ({:.2g} us a launch + {:.2f} × its need; {} of {}", rough_text(b.seconds, 3),
                                b.row.name, b.row.launch_us, b.row.factor, counted_words(b.row.kernels, "kernel"),
                                counted_words(b.row.programs, "program"));
  const bool none = b.row.name == "kernel" || b.row.name == "library call";
  if (b.general && none) out += fmt::format("; no {} among them", fmt::join(b.of, ", no "));
  if (b.general && !none) out += fmt::format("; in place of {}", fmt::join(b.of, ", "));
  return out + ")";
}

}  // namespace

std::string expected_text(const ExpectedTime& e) {
  return e.why_not.empty() ? fmt::format("expected about {}", rough_text(e.seconds, 2)) : "";
}

std::vector<std::string> expected_in_words(const ExpectedTime& e, const DeviceSpec& device) {
  if (!e.why_not.empty()) return {fmt::format("expected: no figure: {}", e.why_not)};
  std::vector<std::string> out;
  std::string how = counted_words(e.launches, "launch");
  if (e.graphs > 0)
    how += fmt::format(", {} in {}", counted_words(e.nodes, "kernel"), counted_words(e.graphs, "graph"));
  if (e.host_bound) how += "; the host launches no faster";
  out.push_back(fmt::format("expected: {} of kernels, {} between them ({}), {} for the call itself",
                            rough_text(e.kernels, 3), rough_text(e.between, 3), how, rough_text(e.call, 3)));
  out.push_back(fmt::format("  it is based on kernels that ran on an {}{}:", kExpectedCard,
                            e.scaled ? fmt::format(", scaled by the rates of a data sheet ({})", device.name) : ""));
  for (const ExpectedBase& b : e.rests_on)
    if (b.seconds >= kTold * e.kernels || b.general) out.push_back("    " + base_in_words(b));
  if (e.unknown_calls)
    out.push_back(
        fmt::format("  without {} of unknown work", counted_words(static_cast<double>(e.unknown_calls), "call")));
  if (e.messages)
    out.push_back(fmt::format("  without {} between devices, of which none was measured",
                              counted_words(static_cast<double>(e.messages), "message")));
  if (e.branches)
    out.push_back(
        fmt::format("  all branches of {} are counted", counted_words(static_cast<double>(e.branches), "conditional")));
  if (e.loops_without_trip_count)
    out.push_back(fmt::format("  {} without a known trip count, counted once",
                              counted_words(static_cast<double>(e.loops_without_trip_count), "while")));
  return out;
}

}  // namespace hlo
