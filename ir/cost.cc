#include "ir/cost.h"

#include <algorithm>
#include <cmath>

#include "ir/base/check.h"
#include "ir/base/stack_guard.h"
#include "ir/tiling.h"

namespace hlo {
namespace {

// Bytes of arrays as they lie in the device's memory, tuples' leaves together. What lies on a TPU's chip costs none of
// its bandwidth.
double bytes_of(const Universe& u, ShapeId shape) {
  const Shape& s = u[shape];
  if (s.is_tuple()) {
    double sum = 0;
    for (ShapeId e : s.elements) sum += bytes_of(u, e);
    return sum;
  }
  return s.is_array() && !is_beside_device_memory(s) ? static_cast<double>(u.byte_size(shape)) : 0;
}

// A copy of `moved`, which is as large as what it moves, out of `from` into `to`.
void count_move(const Universe& u, ShapeId moved, ShapeId from, ShapeId to, Cost* c) {
  const auto bytes = static_cast<double>(u.byte_size(moved));
  c->bytes_read = is_beside_device_memory(u[from]) ? 0 : bytes;
  c->bytes_written = is_beside_device_memory(u[to]) ? 0 : bytes;
}

// Bytes of the memory that a library's call works in: the `u8[n]` or `s8[n]` in its tuple, which nobody reads. The last
// element, of cuSOLVER's Cholesky the one before the error codes.
double scratch_of(const Universe& u, ShapeId shape, std::string_view target) {
  bool solver = target.starts_with("__cusolver$");
  if (!solver && !target.starts_with("__cudnn$") && !target.starts_with("__cublas$") && !target.starts_with("__cub$"))
    return 0;
  const Shape& s = u[shape];
  if (!s.is_tuple() || s.elements.size() < (solver ? 3 : 2)) return 0;
  ShapeId last = s.elements[solver ? 1 : s.elements.size() - 1];
  const Shape& l = u[last];
  bool bytes = l.is_array() && l.rank() == 1 && (l.type == ElementType::U8 || l.type == ElementType::S8);
  return bytes || (solver && l.is_array()) ? bytes_of(u, last) : 0;
}

// Pairs of output and window position that fall on an element of the input.
double valid_pairs(const WindowDim& w, int64_t in, int64_t out) {
  double n = 0;
  for (int64_t k = 0; k < w.size; ++k)
    for (int64_t o = 0; o < out; ++o) {
      int64_t at = o * w.stride + k * w.rhs_dilate - w.pad_low;
      if (at < 0 || at % w.lhs_dilate || at / w.lhs_dilate >= in) continue;
      ++n;
    }
  return n;
}

}  // namespace

Cost& Cost::operator+=(const Cost& o) {
  flops += o.flops, transcendentals += o.transcendentals, bytes_read += o.bytes_read, bytes_written += o.bytes_written;
  product |= o.product, narrow |= o.narrow;
  return *this;
}

bool CostAnalysis::runs(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Bitcast:
    case Opcode::AfterAll:
    case Opcode::OptBarrier:
    case Opcode::AddDependency:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
    case Opcode::CopyDone:
      return false;
    default:
      return true;
  }
}

int64_t CostAnalysis::trip_count(InstId loop) const {
  StrId config = m_.attrs(loop).text(Attr::backend_config);
  std::string_view text = m_.u().text(config);
  size_t at = text.find("known_trip_count");
  if (at == std::string_view::npos) return -1;
  at = text.find_first_of("0123456789", at);
  return at == std::string_view::npos ? -1 : atoll(std::string(text.substr(at, 20)).c_str());
}

Cost CostAnalysis::of_computation(CompId comp) {
  if (auto at = known_.find(comp); at != known_.end()) return at->second;
  check_stack("computations call each other");
  Cost sum;
  for (InstId i : m_.post_order(comp)) sum += of(i);
  return known_[comp] = sum;
}

Cost CostAnalysis::of(InstId i) {
  const Universe& u = m_.u();
  const AttrSet& a = m_.attrs(i);
  const Shape& out = m_.shape(i);
  Opcode op = m_.op(i);
  const OpInfo& info = op_info(op);
  Cost c;
  auto memory = [&] {
    for (InstId o : m_.operands(i)) c.bytes_read += bytes_of(u, m_.shape_id(o));
    c.bytes_written = bytes_of(u, m_.shape_id(i));
  };
  auto elements = [&](ShapeId s) {
    const Shape& shape = u[s].is_tuple() && !u[s].elements.empty() ? u[u[s].elements[0]] : u[s];
    return shape.is_array() ? static_cast<double>(shape.elements_count()) : 0.0;
  };
  switch (op) {
    case Opcode::While: {
      double steps = static_cast<double>(std::max<int64_t>(trip_count(i), 0));
      if (trip_count(i) < 0) steps = 1;
      Cost one = of_computation(a.comp(Attr::body));
      one += of_computation(a.comp(Attr::condition));
      c = one;
      c.flops *= steps, c.transcendentals *= steps, c.bytes_read *= steps, c.bytes_written *= steps;
      return c;
    }
    case Opcode::Conditional: {
      // One of them runs: the dearest.
      for (CompId b : m_.called(i))
        if (Cost one = of_computation(b); one.flops + one.bytes() > c.flops + c.bytes()) c = one;
      return c;
    }
    case Opcode::Call:
    case Opcode::AsyncStart:
      return m_.called(i).empty() ? c : of_computation(m_.called(i)[0]);
    case Opcode::Fusion: {
      CompId body = m_.called(i)[0];
      Cost inside = of_computation(body);
      c.flops = inside.flops, c.transcendentals = inside.transcendentals;
      c.product = inside.product, c.narrow = inside.narrow;
      memory();
      // Of what is sliced, gathered or updated only that part moves.
      for (InstId p : m_.comp(body).params) {
        double whole = bytes_of(u, m_.shape_id(p)), used = 0;
        bool parts = m_.user_count(p) > 0;
        for (InstId user : m_.users(p)) {
          bool slice =
              (m_.op(user) == Opcode::DynamicSlice || m_.op(user) == Opcode::Slice || m_.op(user) == Opcode::Gather) &&
              m_.operand(user, 0) == p;
          bool update = m_.op(user) == Opcode::DynamicUpdateSlice && m_.operand(user, 0) == p;
          if (slice)
            used += bytes_of(u, m_.shape_id(user));
          else if (!update)
            parts = false;
        }
        if (parts && used < whole) c.bytes_read -= whole - used;
      }
      InstId root = m_.comp(body).root;
      if (m_.op(root) == Opcode::DynamicUpdateSlice && !is_beside_device_memory(out))
        c.bytes_written = bytes_of(u, m_.shape_id(m_.operand(root, 1)));
      return c;
    }
    case Opcode::DynamicSlice:
    case Opcode::Slice:
    case Opcode::Gather:
      count_move(u, m_.shape_id(i), m_.shape_id(m_.operand(i, 0)), m_.shape_id(i), &c);
      return c;
    case Opcode::DynamicUpdateSlice:
      count_move(u, m_.shape_id(m_.operand(i, 1)), m_.shape_id(m_.operand(i, 1)), m_.shape_id(i), &c);
      return c;
    case Opcode::CopyStart: {
      // On a TPU between its memories; a GPU's go to the host and are no kernels.
      const ShapeId from = m_.shape_id(m_.operand(i, 0)), to = out.is_tuple() ? out.elements[0] : m_.shape_id(i);
      if (has_tiles(u[from]) && has_tiles(u[to])) count_move(u, to, from, to, &c);
      return c;
    }
    case Opcode::Dot:
    case Opcode::RaggedDot: {
      memory();
      double depth = 1;
      const Shape& l = m_.shape(m_.operand(i, 0));
      for (int64_t d : a.ints(Attr::lhs_contracting_dims)) depth *= static_cast<double>(l.dims[static_cast<size_t>(d)]);
      c.flops = 2 * static_cast<double>(out.elements_count()) * depth;
      c.product = true, c.narrow = type_bits(l.type) <= 8;
      return c;
    }
    case Opcode::Convolution: {
      memory();
      const auto* labels = a.get<DimLabels>(Attr::dim_labels);
      const auto* window = a.get<Window>(Attr::window);
      const Shape &l = m_.shape(m_.operand(i, 0)), &r = m_.shape(m_.operand(i, 1));
      if (!labels || !out.is_array()) return c;
      double pairs = 1;
      for (size_t k = 0; window && k < window->dims.size(); ++k)
        pairs *= valid_pairs(window->dims[k], l.dims[static_cast<size_t>(labels->input_spatial[k])],
                             out.dims[static_cast<size_t>(labels->output_spatial[k])]);
      c.flops = 2 * pairs * static_cast<double>(out.dims[static_cast<size_t>(labels->output_batch)]) *
                static_cast<double>(out.dims[static_cast<size_t>(labels->output_feature)]) *
                static_cast<double>(r.dims[static_cast<size_t>(labels->kernel_input)]);
      c.product = true, c.narrow = type_bits(l.type) <= 8;
      return c;
    }
    case Opcode::Reduce: {
      memory();
      double in = elements(m_.shape_id(m_.operand(i, 0))), results = elements(m_.shape_id(i));
      Cost one = of_computation(m_.called(i)[0]);
      c.flops = std::max(in - results, 0.0) * one.flops,
      c.transcendentals = std::max(in - results, 0.0) * one.transcendentals;
      return c;
    }
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter: {
      memory();
      double window = 1;
      if (const auto* w = a.get<Window>(Attr::window))
        for (const WindowDim& d : w->dims) window *= static_cast<double>(d.size);
      Cost one;
      for (CompId called : m_.called(i)) one += of_computation(called);
      double n = elements(op == Opcode::ReduceWindow ? m_.shape_id(i) : m_.shape_id(m_.operand(i, 1)));
      c.flops = n * std::max(window - 1, 1.0) * one.flops;
      return c;
    }
    case Opcode::Map:
    case Opcode::Scatter:
    case Opcode::Sort: {
      memory();
      Cost one;
      for (CompId called : m_.called(i)) one += of_computation(called);
      double n = elements(m_.shape_id(i));
      if (op == Opcode::Scatter) n = elements(m_.shape_id(m_.operand(i, m_.operand_count(i) - 1)));
      double rounds = 1;
      if (op == Opcode::Sort)
        for (double k = n; k > 2; k /= 2) ++rounds;
      c.flops = n * rounds * one.flops;
      return c;
    }
    case Opcode::CustomCall: {
      memory();
      // The libraries' products say what they are by their operands.
      std::string_view target = u.text(a.text(Attr::custom_call_target));
      c.bytes_written -= scratch_of(u, m_.shape_id(i), target);
      if ((target.starts_with("__cudnn$conv") || target.starts_with("__cublas")) && m_.operand_count(i) >= 2) {
        c.product = true;
        const Shape* result = &out;
        if (out.is_tuple() && !out.elements.empty()) result = &u[out.elements[0]];
        const auto* labels = a.get<DimLabels>(Attr::dim_labels);
        const Shape &l = m_.shape(m_.operand(i, 0)), &r = m_.shape(m_.operand(i, 1));
        if (labels && result->is_array() && l.is_array() && r.is_array()) {
          // Forward: y of x, w; backward: x of y, w and w of x, y.
          const bool to_input = target.ends_with("BackwardInput"), to_filter = target.ends_with("BackwardFilter");
          const Shape &y = to_input ? l : to_filter ? r : *result, &w = to_filter ? *result : r;
          if (y.is_array() && w.rank() == labels->rhs_rank)
            c.flops = 2 * static_cast<double>(y.elements_count()) * static_cast<double>(w.elements_count()) /
                      static_cast<double>(std::max<int64_t>(w.dims[static_cast<size_t>(labels->kernel_output)], 1));
        } else if (!labels && result->is_array() && l.is_array() && r.is_array()) {
          // Batch·M·K, batch·K·N and batch·M·N elements: (M·N) · sqrt(l · r / out).
          double x = static_cast<double>(l.elements_count()) * static_cast<double>(r.elements_count()),
                 y = static_cast<double>(result->elements_count());
          double batch = 1;
          for (int k = 0; k + 2 < result->rank(); ++k)
            batch *= static_cast<double>(result->dims[static_cast<size_t>(k)]);
          if (y > 0) c.flops = 2 * y * std::sqrt(x / y / batch);
        }
      }
      return c;
    }
    case Opcode::RngBitGenerator:
    case Opcode::Rng:
      memory();
      c.flops = elements(m_.shape_id(i));
      return c;
    default:
      break;
  }
  if (info.elementwise && out.is_array() && op != Opcode::Copy && op != Opcode::BitcastConvert) {
    memory();
    (info.transcendental ? c.transcendentals : c.flops) = elements(m_.shape_id(i));
    if (op == Opcode::Convert) c.flops = 0;
    return c;
  }
  if (info.cls == OpClass::Collective || (runs(m_, i) && info.cls != OpClass::Async)) memory();
  return c;
}

namespace {
// Memory GB/s, f32 and bf16-matrix TFLOP/s of the data sheets (SXM where there are several), and the limits of a
// multiprocessor by compute capability.
constexpr DeviceSpec kDevices[] = {
    {"T4", 320, 8.1, 65, 40, 65536, 64, 32, 16, "sm_75"},
    {"V100", 900, 15.7, 125, 80, 65536, 96, 64, 32, "sm_70"},
    {"A10G", 600, 31.2, 70, 80, 65536, 100, 48, 16, "sm_86"},
    {"A100", 2039, 19.5, 312, 108, 65536, 164, 64, 32, "sm_80"},
    {"L4", 300, 30.3, 121, 58, 65536, 100, 48, 24, "sm_89"},
    {"RTX4090", 1008, 82.6, 165, 128, 65536, 100, 48, 24, "sm_89"},
    {"H100", 3350, 66.9, 989, 132, 65536, 228, 64, 32, "sm_90"},
    {"H200", 4800, 66.9, 989, 132, 65536, 228, 64, 32, "sm_90"},
    // A chip each, as cloud.google.com/tpu/docs/{v4,v5e,v5p,v6e} say. Of their vector units the sheets say nothing: the
    // matrix units' peak is a bound that holds for them as well.
    {"TPU v4", 1228, 275, 275, 0, 0, 0, 0, 0, "", 275, 32},
    {"TPU v5e", 819, 197, 197, 0, 0, 0, 0, 0, "", 393, 16},
    {"TPU v5p", 2765, 459, 459, 0, 0, 0, 0, 0, "", 918, 95},
    {"TPU v6e", 1638, 918, 918, 0, 0, 0, 0, 0, "", 1836, 32},
};
}  // namespace

std::span<const DeviceSpec> device_specs() { return kDevices; }

const DeviceSpec& device_spec(std::string_view name) {
  auto plain = [](std::string_view text) {
    std::string out;
    for (char c : text)
      if (c != ' ') out += static_cast<char>(toupper(static_cast<unsigned char>(c)));
    return out;
  };
  const std::string wanted = plain(name);
  std::string list;
  for (const DeviceSpec& d : kDevices) {
    if (plain(d.name) == wanted || (!d.is_gpu() && plain(d.name) == "TPU" + wanted)) return d;
    list += (list.empty() ? "" : ", ") + std::string(d.name);
  }
  fail(FailureKind::kUsage, "unknown device '{}'; there are {}", name, list);
}

double least_seconds(const Cost& c, const DeviceSpec& d, bool* by_memory) {
  double memory = c.bytes() / (d.memory_gb_s * 1e9);
  double rate = !c.product ? d.f32_tflops : c.narrow && d.narrow_tflops > 0 ? d.narrow_tflops : d.matrix_tflops;
  double compute = (c.flops + c.transcendentals) / (rate * 1e12);
  if (by_memory) *by_memory = memory >= compute;
  return std::max(memory, compute);
}

}  // namespace hlo
