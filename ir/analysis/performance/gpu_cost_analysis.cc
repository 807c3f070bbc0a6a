#include "ir/analysis/performance/gpu_cost_analysis.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/analysis/fusion/fusion_analysis.h"
#include "ir/base/stack_guard.h"

namespace hlo {
namespace {

// Measured by XLA on sm_90 (xla/service/gpu/model/hlo_op_profiles_data.h); where a device has no measurements XLA takes
// those of another, and 3 for what nobody measured.
struct Cycles {
  Opcode op;
  ElementType type;
  int64_t cycles;
};
using ET = ElementType;
constexpr Cycles kCycles[] = {
    {Opcode::Add, ET::F16, 7},       {Opcode::Add, ET::F32, 7},       {Opcode::Add, ET::F64, 15},
    {Opcode::Add, ET::C64, 7},       {Opcode::Subtract, ET::F16, 7},  {Opcode::Subtract, ET::F32, 7},
    {Opcode::Subtract, ET::F64, 15}, {Opcode::Subtract, ET::C64, 7},  {Opcode::Multiply, ET::F16, 7},
    {Opcode::Multiply, ET::F64, 15}, {Opcode::Multiply, ET::S64, 11}, {Opcode::Multiply, ET::U64, 11},
    {Opcode::Multiply, ET::S8, 7},   {Opcode::Multiply, ET::S16, 7},  {Opcode::Multiply, ET::C64, 79},
    {Opcode::Divide, ET::F16, 43},   {Opcode::Divide, ET::F32, 19},   {Opcode::Divide, ET::F64, 526},
    {Opcode::Divide, ET::S32, 297},  {Opcode::Divide, ET::S64, 685},  {Opcode::Divide, ET::S8, 356},
    {Opcode::Divide, ET::S16, 364},  {Opcode::Divide, ET::U32, 122},  {Opcode::Divide, ET::C64, 498},
    {Opcode::Power, ET::F16, 526},   {Opcode::Power, ET::F32, 510},   {Opcode::Power, ET::F64, 2205},
    {Opcode::Power, ET::S32, 71},    {Opcode::Power, ET::S64, 253},   {Opcode::Power, ET::C64, 5532},
    {Opcode::Exp, ET::F16, 102},     {Opcode::Exp, ET::F32, 79},      {Opcode::Exp, ET::F64, 376},
    {Opcode::Exp, ET::C64, 641},     {Opcode::Expm1, ET::F16, 217},   {Opcode::Expm1, ET::F32, 190},
    {Opcode::Expm1, ET::F64, 712},   {Opcode::Expm1, ET::C64, 2055},  {Opcode::Log, ET::F16, 182},
    {Opcode::Log, ET::F32, 166},     {Opcode::Log, ET::F64, 815},     {Opcode::Log, ET::C64, 756},
    {Opcode::Log1p, ET::F16, 245},   {Opcode::Log1p, ET::F32, 229},   {Opcode::Log1p, ET::F64, 1259},
    {Opcode::Log1p, ET::C64, 633},   {Opcode::Rsqrt, ET::F16, 95},    {Opcode::Rsqrt, ET::F32, 75},
    {Opcode::Rsqrt, ET::F64, 277},   {Opcode::Rsqrt, ET::C64, 3148},  {Opcode::Sqrt, ET::F16, 95},
    {Opcode::Sqrt, ET::F32, 75},     {Opcode::Sqrt, ET::F64, 332},    {Opcode::Sqrt, ET::C64, 4344},
    {Opcode::Sine, ET::F16, 993},    {Opcode::Sine, ET::F32, 958},    {Opcode::Sine, ET::F64, 554},
    {Opcode::Sine, ET::C64, 2324},   {Opcode::Cosine, ET::F16, 997},  {Opcode::Cosine, ET::F32, 978},
    {Opcode::Cosine, ET::F64, 558},  {Opcode::Cosine, ET::C64, 2415}, {Opcode::Tanh, ET::F16, 502},
    {Opcode::Tanh, ET::F32, 467},    {Opcode::Tanh, ET::F64, 431},    {Opcode::Tanh, ET::C64, 2379},
    {Opcode::Atan2, ET::F16, 451},   {Opcode::Atan2, ET::F32, 431},   {Opcode::Atan2, ET::F64, 930},
    {Opcode::Atan2, ET::C64, 6462},  {Opcode::Cbrt, ET::F16, 201},    {Opcode::Cbrt, ET::F32, 178},
    {Opcode::Cbrt, ET::F64, 586},
};
constexpr int64_t kUnmeasured = 3;
constexpr float kMostCode = 10000;

// Elements made out of nothing, or of few: no reads to be far apart.
bool from_broadcast(const Module& m, InstId i) {
  for (;;) {
    if (m.op(i) == Opcode::Broadcast || m.op(i) == Opcode::Iota) return true;
    if (m.operand_count(i) != 1) return false;
    if (m.op(i) != Opcode::Bitcast && !is_elementwise(m, i)) return false;
    i = m.operand(i, 0);
  }
}

bool moves_what_is_read(const Module& m, InstId i) {
  return moves_minor_dimension(m, i) && !from_broadcast(m, m.operand(i, 0));
}

float ratio(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<float>(1.0 * static_cast<double>(a) / static_cast<double>(b));
}

}  // namespace

int64_t clock_cycles(Opcode op, ElementType type) {
  for (const Cycles& c : kCycles)
    if (c.op == op && c.type == type) return c.cycles;
  return kUnmeasured;
}

int64_t GpuCostAnalysis::bytes(ShapeId shape) const {
  const Shape& s = m_.u()[shape];
  return s.is_tuple() ? m_.u().leaf_bytes(shape) : s.is_array() ? m_.u().byte_size(shape) : 0;
}

const GpuCost& GpuCostAnalysis::of(InstId i) {
  if (auto at = known_.find(i); at != known_.end()) return at->second;
  GpuCost c = m_.op(i) == Opcode::Fusion ? fused(i) : plain(i);
  return known_[i] = std::move(c);
}

float GpuCostAnalysis::flops_of_body(CompId comp) {
  check_stack("computations call each other");
  float sum = 0;
  for (InstId i : m_.comp(comp).order)
    if (m_.alive(i)) sum += of(i).flops;
  return sum;
}

void GpuCostAnalysis::reduce_costs(InstId i, GpuCost* c) {
  const int64_t in = m_.shape(m_.operand(i, 0)).elements_count(), out = first_elements(m_, i);
  c->flops = flops_of_body(m_.called(i)[0]) * static_cast<float>(in - out);
  const size_t values = m_.operand_count(i) / 2;
  for (size_t n = values; n < 2 * values; ++n) {
    c->bytes_read[n] = static_cast<float>(out * size(m_.operand(i, n)));
    c->utilization[n] = static_cast<float>(out);
  }
}

void GpuCostAnalysis::window_costs(InstId i, GpuCost* c) {
  const auto* window = m_.attrs(i).get<Window>(Attr::window);
  if (!window) return;
  const Shape& in = m_.shape(m_.operand(i, 0));
  const int64_t out = first_elements(m_, i);
  int64_t size = 1, reduced = 0, padded = 0;
  for (const WindowDim& d : window->dims) {
    size *= d.size;
    reduced += d.size != 1;
    padded += d.pad_low != 0 || d.pad_high != 0;
  }
  int64_t count = (size - 1) * out;
  // A reduction that is broadcast again costs no more than the reduction.
  if (reduced == 1 && padded == 1 && m_.shape(i).is_array())
    for (size_t k = 0; k < window->dims.size(); ++k) {
      const WindowDim& d = window->dims[k];
      if (d.size == 1 || d.pad_low == 0 || d.pad_low != d.pad_high || d.size != 2 * d.pad_low + 1) continue;
      if (d.pad_low == m_.shape(i).dims[k] - 1) {
        size = m_.shape(i).dims[k];
        count = out / size + size - 1;
      }
      break;
    }
  c->flops = flops_of_body(m_.called(i)[0]) * static_cast<float>(count);
  c->utilization[0] = static_cast<float>(1.0 * static_cast<double>(out) * static_cast<double>(size) /
                                         static_cast<double>(std::max<int64_t>(in.elements_count(), 1)));
  const int64_t width = (element_bits(in.type) + 7) / 8;
  c->bytes_read[0] = static_cast<float>(out * size * width);
}

void GpuCostAnalysis::scatter_costs(InstId i, GpuCost* c) {
  const size_t n = (m_.operand_count(i) - 1) / 2;
  int64_t total = 0;
  for (size_t k = 0; k < n; ++k) {
    const int64_t update = size(m_.operand(i, n + 1 + k));
    c->bytes_read[k] = c->bytes_read[n + 1 + k] = static_cast<float>(update);
    total += update;
  }
  c->bytes_written = static_cast<float>(total);
  c->flops = flops_of_body(m_.called(i)[0]) * static_cast<float>(m_.shape(m_.operand(i, n + 1)).elements_count());
}

GpuCost GpuCostAnalysis::plain(InstId i) {
  GpuCost c;
  const Opcode op = m_.op(i);
  const int64_t out = size(i);
  c.bytes_written = static_cast<float>(out);
  for (InstId o : m_.operands(i)) {
    c.bytes_read.push_back(static_cast<float>(size(o)));
    c.utilization.push_back(1);
  }
  auto elements = [&](InstId of) { return m_.shape(of).is_array() ? m_.shape(of).elements_count() : 0; };
  auto nothing_moves = [&] {
    c.bytes_written = 0;
    std::fill(c.bytes_read.begin(), c.bytes_read.end(), 0.0F);
  };
  switch (op) {
    case Opcode::Parameter:
    case Opcode::Constant:
      c.bytes_written = 0;
      break;
    case Opcode::Bitcast:
    case Opcode::GetTupleElement:
    case Opcode::AfterAll:
    case Opcode::AddDependency:
      nothing_moves();
      break;
    case Opcode::Tuple:
      nothing_moves();
      c.bytes_written = static_cast<float>(8 * m_.operand_count(i));
      break;
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
      c.bytes_read[0] = static_cast<float>(out);
      c.utilization[0] = ratio(elements(i), elements(m_.operand(i, 0)));
      break;
    case Opcode::DynamicUpdateSlice:
      c.bytes_written = static_cast<float>(size(m_.operand(i, 1)));
      c.bytes_read[0] = 0;
      c.utilization[0] = ratio(elements(i) - elements(m_.operand(i, 1)), elements(i));
      break;
    case Opcode::Broadcast:
      c.bytes_read[0] = static_cast<float>(out);
      c.utilization[0] = ratio(elements(i), elements(m_.operand(i, 0)));
      break;
    case Opcode::Reduce:
      reduce_costs(i, &c);
      break;
    case Opcode::ReduceWindow:
      window_costs(i, &c);
      break;
    case Opcode::Scatter:
      scatter_costs(i, &c);
      break;
    case Opcode::Concatenate: {
      // A compare and a branch; many where threads of one warp take different ones.
      const Dims& d = m_.attrs(i).ints(Attr::dimensions);
      const int64_t dim = d.empty() ? 0 : d[0];
      const bool divergent = dim > 0 && (m_.shape(m_.operand(i, 0)).dims[static_cast<size_t>(dim)] & 31) != 0;
      c.flops = static_cast<float>((divergent ? 400 : 6) * elements(i));
      break;
    }
    case Opcode::Map:
      c.flops = flops_of_body(m_.called(i)[0]) * static_cast<float>(elements(i));
      break;
    case Opcode::Copy:
      break;
    default:
      if (op_info(op).elementwise) c.flops = static_cast<float>(clock_cycles(op, m_.shape(i).type) * elements(i));
      break;
  }
  return c;
}

GpuCost GpuCostAnalysis::fused(InstId fusion) {
  GpuCost c;
  c.code = 0;
  const CompId comp = m_.called(fusion)[0];
  const Computation& body = m_.comp(comp);
  std::vector<InstId> order = m_.post_order(comp);
  std::reverse(order.begin(), order.end());
  const InstId root = body.root;
  // What a result that is updated in place writes, and that it does not read the rest.
  auto written = [&](InstId r) { return size(m_.op(r) == Opcode::DynamicUpdateSlice ? m_.operand(r, 1) : r); };
  auto in_place = [&](InstId r) {
    if (m_.op(r) != Opcode::DynamicUpdateSlice) return false;
    return r == root || (m_.op(root) == Opcode::Tuple && m_.user_count(r) > 0 &&
                         std::find(m_.operands(root).begin(), m_.operands(root).end(), r) != m_.operands(root).end());
  };
  if (m_.op(root) == Opcode::Tuple)
    for (InstId r : m_.operands(root)) c.bytes_written += static_cast<float>(written(r));
  else
    c.bytes_written = static_cast<float>(written(root));
  for (InstId i : order) inside_[i] = Inside();
  Inside& top = inside_[root];
  top.root_utilization = top.root_code = 1;
  top.roots.push_back(root);
  for (InstId i : order) {
    Inside& at = inside_[i];
    for (InstId r : at.roots) {
      const Inside& of = inside_[r];
      at.utilization += of.root_utilization;
      at.code += of.root_code;
    }
    const GpuCost& one = of(i);
    c.flops += at.utilization * one.flops;
    c.code += at.code;
    const bool through = is_elementwise(m_, i) || m_.op(i) == Opcode::Tuple || m_.op(i) == Opcode::GetTupleElement ||
                         (m_.op(i) == Opcode::Bitcast && m_.shape(i).dims == m_.shape(m_.operand(i, 0)).dims);
    for (size_t n = 0; n < m_.operand_count(i); ++n) {
      const InstId o = m_.operand(i, n);
      Inside& to = inside_[o];
      auto add = [&to](InstId r) {
        if (std::find(to.roots.begin(), to.roots.end(), r) == to.roots.end()) to.roots.push_back(r);
      };
      if (through) {
        for (InstId r : at.roots) add(r);
        continue;
      }
      add(o);
      float u = at.utilization * (n == 0 && in_place(i) ? 0.0F : one.utilization[n]);
      const int64_t elements = m_.shape(o).is_array() ? m_.shape(o).elements_count() : first_elements(m_, o);
      u = elements == 0 ? 0 : std::ceil(u * static_cast<float>(elements)) / static_cast<float>(elements);
      to.root_utilization += u;
      to.root_code += at.code;
    }
  }
  c.elementwise = is_elementwise(m_, fusion);
  for (InstId b : body.order) c.reads_across = c.reads_across || (m_.alive(b) && moves_what_is_read(m_, b));
  for (InstId p : body.params) {
    const float u = inside_[p].utilization;
    c.utilization.push_back(u);
    c.bytes_read.push_back(static_cast<float>(std::llround(static_cast<float>(size(p)) * u)));
  }
  return c;
}

float GpuCostAnalysis::utilization(InstId consumer, InstId operand) {
  const GpuCost& c = of(consumer);
  for (size_t n = 0; n < m_.operand_count(consumer); ++n)
    if (m_.operand(consumer, n) == operand) return c.utilization[n];
  return 0;
}

float GpuCostAnalysis::repeats(InstId consumer, InstId operand) {
  const GpuCost& c = of(consumer);
  float sum = 0;
  for (size_t n = 0; n < m_.operand_count(consumer); ++n)
    if (m_.operand(consumer, n) == operand) sum += c.utilization[n];
  return sum;
}

float GpuCostAnalysis::shared(const Inside& a, const Inside& b) const {
  float sum = 0;
  for (InstId r : a.roots)
    if (std::find(b.roots.begin(), b.roots.end(), r) != b.roots.end()) sum += inside_.at(r).root_utilization;
  return sum;
}

float GpuCostAnalysis::common_utilization(InstId producer, InstId consumer, size_t in_producer, size_t in_consumer) {
  auto parameter = [&](InstId fusion, size_t n) -> const Inside& {
    return inside_[m_.comp(m_.called(fusion)[0]).params[n]];
  };
  const GpuCost &p = of(producer), &c = of(consumer);
  const bool fusion = m_.op(producer) == Opcode::Fusion;
  if (!(fusion ? p.elementwise : is_elementwise(m_, producer))) {
    if (!fusion) return 0;
    const Inside& read = parameter(producer, in_producer);
    if (shared(read, inside_[m_.comp(m_.called(producer)[0]).root]) != 1.0F) return 0;
  }
  if (m_.op(consumer) != Opcode::Fusion) return is_elementwise(m_, consumer) ? 1 : 0;
  for (size_t n = 0; n < c.utilization.size(); ++n)
    if (m_.operand(consumer, n) == producer) return shared(parameter(consumer, in_consumer), parameter(consumer, n));
  return 0;
}

bool GpuCostAnalysis::reads_across(InstId i) {
  return m_.op(i) == Opcode::Fusion ? of(i).reads_across : moves_what_is_read(m_, i);
}

bool GpuCostAnalysis::merged_too_large(InstId producer, InstId consumer) {
  float times = 1;
  const float own = of(consumer).code;
  if (m_.op(consumer) == Opcode::Fusion)
    for (size_t n = 0; n < m_.operand_count(consumer); ++n)
      if (m_.operand(consumer, n) == producer) {
        times = inside_[m_.comp(m_.called(consumer)[0]).params[n]].code;
        break;
      }
  return of(producer).code * times + own > kMostCode;
}

}  // namespace hlo
