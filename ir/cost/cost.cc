#include "ir/cost/cost.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/base/check.h"
#include "ir/base/stack_guard.h"
#include "ir/cost/cost_needed.h"
#include "ir/cost/cost_products.h"
#include "ir/library/library_calls.h"
#include "ir/query/loop_config.h"
#include "ir/types/tiling.h"

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

// Bytes of what an instruction reads: an operand that stands twice is read once.
double operand_bytes(const Module& m, InstId i) {
  double sum = 0;
  std::vector<InstId> seen;
  for (InstId o : m.operands(i)) {
    while (m.op(o) == Opcode::Bitcast) o = m.operand(o, 0);
    if (std::find(seen.begin(), seen.end(), o) != seen.end()) continue;
    seen.push_back(o), sum += bytes_of(m.u(), m.shape_id(o));
  }
  return sum;
}

// A copy of `moved`, which is as large as what it moves, out of `from` into `to`.
void count_move(const Universe& u, ShapeId moved, ShapeId from, ShapeId to, Cost* c) {
  const auto bytes = static_cast<double>(u.byte_size(moved));
  c->bytes_read = is_beside_device_memory(u[from]) ? 0 : bytes;
  c->bytes_written = is_beside_device_memory(u[to]) ? 0 : bytes;
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

// Operations of no product; four real ones and more that a complex one takes count as one, as XLA counts them.
void add_vectors(Cost* c, ElementType t, double operations) {
  const Arithmetic p = t == ElementType::F64 || t == ElementType::C128 ? Arithmetic::kF64
                       : t == ElementType::BF16                        ? Arithmetic::kBF16
                       : t == ElementType::F16                         ? Arithmetic::kF16
                                                                       : Arithmetic::kF32;
  c->flops += operations, c->in_vectors[static_cast<size_t>(p)] += operations;
}

// Operations of a solver, which libraries make mostly of products: by the faster unit. TF32 is not taken for them.
void add_solver(Cost* c, ElementType t, double operations) {
  const bool wide = t == ElementType::F64 || t == ElementType::C128;
  c->flops += operations;
  c->in_products[static_cast<size_t>(wide ? Arithmetic::kF64 : Arithmetic::kF32)] += operations;
}

// What `one` computes, so often; its bytes stay in registers.
void add_operations(Cost* c, Cost one, double times) {
  one.bytes_read = one.bytes_written = one.bytes_repeated = 0;
  one *= times;
  *c += one;
}

double square_of(const Shape& s) { return s.rank() > 0 ? static_cast<double>(s.dims.back()) : 0; }
double batch_of(const Shape& s) {
  double n = 1;
  for (int k = 0; k + 2 < s.rank(); ++k) n *= static_cast<double>(s.dims[static_cast<size_t>(k)]);
  return n;
}
double cholesky_flops(double n) { return n * n * n / 3; }

// Marks for the compiler, or for how memory is laid out: no time on the device.
bool moves_nothing(std::string_view target) {
  for (const char* known :
       {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "AllocateBuffer", "CreateBuffer", "Pin", "Unpin",
        "MoveToHost", "MoveToDevice", "annotate_device_placement", "LayoutConstraint", "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape", "PartitionId", "AssumeGatherIndicesInBound"})
    if (target == known) return true;
  return false;
}

// Operations of a solver's call by LAPACK's published counts (LAPACK Working Note 41, Operation Counts for the BLAS and
// LAPACK), complex ones as real ones, of an iteration what comes before it: at least so many. `a`, `b`: the first two
// operands. Nothing where the call is none of LAPACK's.
std::optional<double> lapack_flops(std::string_view target, const Shape& a, const Shape& b, const Shape& out,
                                   const Universe& u) {
  if (a.rank() < 2) return std::nullopt;
  auto has = [&](std::string_view word) { return target.find(word) != std::string_view::npos; };
  // jax names them lapack_sgeqrf_ffi, cusolver_geqrf_ffi, hipsolver_…; XLA has solvers of its own by their plain names.
  const bool library = has("lapack_") || has("solver_") || has("cublas_") || has("blas_") || has("__cusolver$") ||
                       has("__cublas$triangularSolve") || has("magma");
  const double m = static_cast<double>(a.dims[a.dims.size() - 2]), n = square_of(a), batch = batch_of(a);
  const double k = std::min(m, n), l = std::max(m, n);
  if (target == "Cholesky" || (library && (has("potrf") || has("cholesky")))) return batch * cholesky_flops(n);
  if (target == "Qr" || (library && has("geq"))) return batch * 2 * k * k * (l - k / 3);
  if (target == "ProductOfElementaryHouseholderReflectors" || (library && (has("orgqr") || has("ungqr")))) {
    const double taus = b.rank() > 0 ? square_of(b) : k;
    return batch * std::max(4 * m * n * taus - 2 * (m + n) * taus * taus + 4.0 / 3 * taus * taus * taus, 0.0);
  }
  if (target == "LuDecomposition" || (library && has("getrf"))) return batch * k * k * (l - k / 3);
  if (target == "Eigh" || (library && (has("syev") || has("heev")))) return batch * 4.0 / 3 * n * n * n;
  if (library && (has("gesvd") || has("gesdd"))) return batch * 4 * k * k * (l - k / 3);
  if (library && (has("sytrd") || has("hetrd"))) return batch * 4.0 / 3 * n * n * n;
  if (library && has("gehrd")) return batch * 10.0 / 3 * n * n * n;
  if (library && (has("trsm") || has("triangularSolve"))) {
    const Shape* x = &out;
    if (out.is_tuple() && !out.elements.empty()) x = &u[out.elements[0]];
    return x->is_array() ? std::optional(static_cast<double>(x->elements_count()) * n) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Cost& Cost::operator+=(const Cost& o) {
  flops += o.flops, transcendentals += o.transcendentals, bytes_read += o.bytes_read, bytes_written += o.bytes_written;
  bytes_repeated += o.bytes_repeated;
  product |= o.product, unknown |= o.unknown;
  for (size_t k = 0; k < kArithmetics; ++k) in_products[k] += o.in_products[k], in_vectors[k] += o.in_vectors[k];
  return *this;
}

Cost& Cost::operator*=(double times) {
  flops *= times, transcendentals *= times, bytes_read *= times, bytes_written *= times;
  bytes_repeated *= times;
  for (size_t k = 0; k < kArithmetics; ++k) in_products[k] *= times, in_vectors[k] *= times;
  return *this;
}

bool ends_pair(Opcode op) {
  switch (op) {
    case Opcode::AsyncDone:
    case Opcode::CopyDone:
    case Opcode::AllGatherDone:
    case Opcode::AllReduceDone:
    case Opcode::CollectivePermuteDone:
    case Opcode::SendDone:
    case Opcode::RecvDone:
      return true;
    default:
      return false;
  }
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
      return false;
    default:
      return !ends_pair(m.op(i));
  }
}

int64_t CostAnalysis::trip_count(InstId loop) const { return known_trip_count(m_, loop).value_or(-1); }

Cost CostAnalysis::of_computation(CompId comp) {
  if (auto at = known_.find(comp); at != known_.end()) return at->second;
  check_stack("computations call each other");
  Cost sum;
  for (InstId i : m_.post_order(comp)) sum += of(i);
  return known_[comp] = sum;
}

void CostAnalysis::add_products(Cost* c, InstId i, double operations) const {
  const Shape &l = m_.shape(m_.operand(i, 0)), &r = m_.shape(m_.operand(i, 1));
  if (!l.is_array() || !r.is_array()) return;
  // A complex product is four real ones.
  if (type_name(l.type).starts_with("c")) operations *= 4;
  const ProductForm form = product_form(m_, i);
  c->add_product(operations, form.precision);
  c->in_products[static_cast<size_t>(form.precision)] += operations * (form.times - 1);
}

// Products by a library, which says what they are by its operands.
void CostAnalysis::add_library_products(Cost* c, InstId i, std::string_view target) const {
  const Universe& u = m_.u();
  const Shape& out = m_.shape(i);
  const Shape* result = &out;
  if (out.is_tuple() && !out.elements.empty()) result = &u[out.elements[0]];
  const auto* labels = m_.attrs(i).get<DimLabels>(Attr::dim_labels);
  const Shape &l = m_.shape(m_.operand(i, 0)), &r = m_.shape(m_.operand(i, 1));
  if (!result->is_array() || !l.is_array() || !r.is_array()) return;
  if (target == "__cublas$lt$groupedMatmul") {
    if (std::optional<double> flops = grouped_product_flops(m_, i)) add_products(c, i, *flops);
    return;
  }
  if (labels) {
    // Forward: y of x, w; backward: x of y, w and w of x, y.
    const bool to_input = target.ends_with("BackwardInput"), to_filter = target.ends_with("BackwardFilter");
    const Shape &y = to_input ? l : to_filter ? r : *result, &w = to_filter ? *result : r;
    if (y.is_array() && w.rank() == labels->rhs_rank)
      add_products(c, i,
                   2 * static_cast<double>(y.elements_count()) * static_cast<double>(w.elements_count()) /
                       static_cast<double>(std::max<int64_t>(w.dims[static_cast<size_t>(labels->kernel_output)], 1)));
    return;
  }
  // Batch·M·K, batch·K·N and batch·M·N elements: (M·N) · sqrt(l · r / out).
  const double x = static_cast<double>(l.elements_count()) * static_cast<double>(r.elements_count()),
               y = static_cast<double>(result->elements_count());
  double batch = 1;
  for (int k = 0; k + 2 < result->rank(); ++k) batch *= static_cast<double>(result->dims[static_cast<size_t>(k)]);
  if (y > 0) add_products(c, i, 2 * y * std::sqrt(x / y / batch));
}

Cost CostAnalysis::of_call(InstId i) const {
  const Universe& u = m_.u();
  const Shape& out = m_.shape(i);
  Cost c;
  c.bytes_read += operand_bytes(m_, i);
  c.bytes_written = bytes_of(u, m_.shape_id(i));
  const std::string_view target = u.text(m_.attrs(i).text(Attr::custom_call_target));
  // Nobody reads the memory that a library's call works in.
  if (std::optional<size_t> scratch = scratch_element(m_, i))
    c.bytes_written -= bytes_of(u, m_.shape(i).elements[*scratch]);
  const bool convolution = target.starts_with("__cudnn$conv"), products = target.starts_with("__cublas$");
  if ((convolution || (products && target != "__cublas$triangularSolve")) && m_.operand_count(i) >= 2) {
    add_library_products(&c, i, target);
    c.product = true, c.unknown = c.flops <= 0;
    return c;
  }
  if (moves_nothing(target)) return {};
  if (target == "__cub$DeviceRadixSort" || target.starts_with("xla.gpu.ext.cub_") || target == "TopK" ||
      target == "__gpu$TopK")
    return c;  // by bytes alone: how many comparisons, or sums, it takes is the library's own
  if (target.starts_with("__cudnn$fmha")) {
    if (std::optional<double> flops = attention_flops(m_, i, target.find("Backward") != std::string_view::npos)) {
      c.add_product(*flops,
                    product_form(m_.shape(m_.operand(i, 0)).type, m_.shape(m_.operand(i, 1)).type, "", "").precision);
      return c;
    }
  }
  if (m_.operand_count(i) > 0 && m_.shape(m_.operand(i, 0)).is_array()) {
    const Shape &a = m_.shape(m_.operand(i, 0)), &b = m_.shape(m_.operand(i, m_.operand_count(i) > 1 ? 1 : 0));
    if (std::optional<double> flops = lapack_flops(target, a, b, out, u)) {
      add_solver(&c, a.type, *flops);
      return c;
    }
  }
  c.unknown = true;
  return c;
}

// Of what is sliced, gathered or updated only that part moves, and what nobody needs is not computed.
const CostAnalysis::BodyCost& CostAnalysis::of_body(CompId body) {
  if (auto at = bodies_.find(body); at != bodies_.end()) return at->second;
  check_stack("fusions hold each other");
  const Universe& u = m_.u();
  auto count = [&](InstId p) { return static_cast<double>(m_.shape(p).elements_count()); };
  const std::unordered_map<InstId, double> needed = needed_elements(m_, body, true);
  BodyCost out;
  Cost& c = out.cost;
  bool picks = false;
  for (InstId inside : m_.post_order(body)) {
    Cost one = of(inside);
    if (m_.shape(inside).is_array() && needed.at(inside) < count(inside)) one *= needed.at(inside) / count(inside);
    c += one;
    picks |= m_.op(inside) == Opcode::Gather || m_.op(inside) == Opcode::Scatter;
  }
  c.bytes_read = c.bytes_written = c.bytes_repeated = 0;
  const std::unordered_map<InstId, double> distinct = picks ? needed_elements(m_, body, false) : needed;
  for (InstId p : m_.comp(body).params) {
    const double whole = bytes_of(u, m_.shape_id(p));
    const bool array = m_.shape(p).is_array() && count(p) > 0;
    out.parameters.emplace_back(array ? whole * needed.at(p) / count(p) : whole,
                                array ? whole * (needed.at(p) - distinct.at(p)) / count(p) : 0);
  }
  const InstId root = m_.comp(body).root;
  std::vector<InstId> results = {root};
  if (m_.op(root) == Opcode::Tuple) results.assign(m_.operands(root).begin(), m_.operands(root).end());
  for (InstId r : results) {
    const InstId update = updated_in_place(m_, r);
    const bool beside = m_.shape(r).is_array() && is_beside_device_memory(m_.shape(r));
    if (!update.valid() || beside)
      c.bytes_written += bytes_of(u, m_.shape_id(r));
    else
      count_updates(update, &c);
  }
  return bodies_[body] = std::move(out);
}

Cost CostAnalysis::of_fusion(InstId i) {
  const BodyCost& body = of_body(m_.called(i)[0]);
  Cost c = body.cost;
  // Of an operand that stands twice the larger part.
  std::unordered_map<InstId, std::pair<double, double>> read;
  for (size_t k = 0; k < m_.operand_count(i) && k < body.parameters.size(); ++k) {
    InstId o = m_.operand(i, k);
    while (m_.op(o) == Opcode::Bitcast) o = m_.operand(o, 0);
    read[o] = std::max(read[o], body.parameters[k]);
  }
  for (const auto& [o, bytes] : read) c.bytes_read += bytes.first, c.bytes_repeated += bytes.second;
  return c;
}

// What a dynamic-update-slice or a scatter writes to its target's own memory. A scatter's indices may all be the same.
void CostAnalysis::count_updates(InstId update, Cost* c) const {
  const size_t targets = m_.op(update) == Opcode::Scatter ? scatter_targets(m_, update) : 1;
  const size_t first = m_.op(update) == Opcode::Scatter ? targets + 1 : 1;
  for (size_t k = 0; k < targets; ++k) {
    const auto bytes = static_cast<double>(m_.u().byte_size(m_.shape_id(m_.operand(update, first + k))));
    c->bytes_written += bytes;
    if (m_.op(update) == Opcode::Scatter) c->bytes_repeated += bytes;
  }
}

namespace {

double array_elements(const Universe& u, ShapeId s) {
  const Shape& shape = u[s].is_tuple() && !u[s].elements.empty() ? u[u[s].elements[0]] : u[s];
  return shape.is_array() ? static_cast<double>(shape.elements_count()) : 0.0;
}

}  // namespace

// All of its operands read, all of its result written.
Cost CostAnalysis::in_memory(InstId i) const {
  Cost c;
  c.bytes_read = operand_bytes(m_, i);
  c.bytes_written = bytes_of(m_.u(), m_.shape_id(i));
  return c;
}

Cost CostAnalysis::of_loop(InstId i) {
  const AttrSet& a = m_.attrs(i);
  double steps = static_cast<double>(std::max<int64_t>(trip_count(i), 0));
  if (trip_count(i) < 0) steps = 1;
  Cost one = of_computation(a.comp(Attr::body));
  one += of_computation(a.comp(Attr::condition));
  one *= steps;
  return one;
}

Cost CostAnalysis::of_conditional(InstId i) {
  Cost c;
  // One of them runs: the dearest.
  for (CompId b : m_.called(i))
    if (Cost one = of_computation(b); one.flops + one.bytes() > c.flops + c.bytes()) c = one;
  return c;
}

Cost CostAnalysis::of_convolution(InstId i) const {
  const AttrSet& a = m_.attrs(i);
  const Shape& out = m_.shape(i);
  Cost c = in_memory(i);
  const auto* labels = a.get<DimLabels>(Attr::dim_labels);
  const auto* window = a.get<Window>(Attr::window);
  const Shape &l = m_.shape(m_.operand(i, 0)), &r = m_.shape(m_.operand(i, 1));
  if (!labels || !out.is_array()) return c;
  double pairs = 1;
  for (size_t k = 0; window && k < window->dims.size(); ++k)
    pairs *= valid_pairs(window->dims[k], l.dims[static_cast<size_t>(labels->input_spatial[k])],
                         out.dims[static_cast<size_t>(labels->output_spatial[k])]);
  add_products(&c, i,
               2 * pairs * static_cast<double>(out.dims[static_cast<size_t>(labels->output_batch)]) *
                   static_cast<double>(out.dims[static_cast<size_t>(labels->output_feature)]) *
                   static_cast<double>(r.dims[static_cast<size_t>(labels->kernel_input)]));
  return c;
}

Cost CostAnalysis::of_applied(InstId i) {
  const AttrSet& a = m_.attrs(i);
  const Opcode op = m_.op(i);
  Cost c = in_memory(i);
  Cost one;
  for (CompId called : m_.called(i)) one += of_computation(called);
  double n = array_elements(m_.u(), m_.shape_id(i));
  if (op == Opcode::Scatter) {
    n = array_elements(m_.u(), m_.shape_id(m_.operand(i, m_.operand_count(i) - 1)));
    // Targets stay where they are.
    const double whole = c.bytes_written;
    c.bytes_written = 0, count_updates(i, &c);
    const double seen = scatter_reads_targets(m_, i) ? std::min(c.bytes_written, whole) : 0;
    c.bytes_read += seen - whole, c.bytes_repeated += seen;
  }
  double rounds = 1;
  if (op == Opcode::Sort && !a.ints(Attr::dimensions).empty()) {
    const Shape& keys = m_.shape(m_.operand(i, 0));
    for (double k = static_cast<double>(keys.dims[static_cast<size_t>(a.ints(Attr::dimensions)[0])]); k > 2; k /= 2)
      ++rounds;
  }
  add_operations(&c, one, n * rounds);
  return c;
}

Cost CostAnalysis::of_windows(InstId i) {
  const AttrSet& a = m_.attrs(i);
  const Opcode op = m_.op(i);
  Cost c = in_memory(i);
  double window = 1;
  if (const auto* w = a.get<Window>(Attr::window))
    for (const WindowDim& d : w->dims) window *= static_cast<double>(d.size);
  Cost one;
  for (CompId called : m_.called(i)) one += of_computation(called);
  double n = array_elements(m_.u(), op == Opcode::ReduceWindow ? m_.shape_id(i) : m_.shape_id(m_.operand(i, 1)));
  add_operations(&c, one, n * std::max(window - 1, 1.0));
  return c;
}

Cost CostAnalysis::of_fft(InstId i) const {
  const AttrSet& a = m_.attrs(i);
  const Shape& out = m_.shape(i);
  Cost c = in_memory(i);
  // 5 n log2 n of a complex one, half of it of a real one.
  const Shape& in = m_.shape(m_.operand(i, 0));
  double n = 1;
  for (int64_t d : a.ints(Attr::fft_length)) n *= static_cast<double>(d);
  const bool real = !type_name(in.type).starts_with("c") || !type_name(out.type).starts_with("c");
  const Shape& whole = type_name(in.type).starts_with("c") ? out : in;
  if (n > 1)
    add_vectors(&c, whole.type, static_cast<double>(whole.elements_count()) * (real ? 2.5 : 5.0) * std::log2(n));
  return c;
}

Cost CostAnalysis::of_slice(InstId i) const {
  const AttrSet& a = m_.attrs(i);
  const Opcode op = m_.op(i);
  Cost c;
  count_move(m_.u(), m_.shape_id(i), m_.shape_id(m_.operand(i, 0)), m_.shape_id(i), &c);
  if (op == Opcode::Gather) {
    double slice = 1;
    for (int64_t d : a.ints(Attr::slice_sizes)) slice *= static_cast<double>(d);
    const double picked = array_elements(m_.u(), m_.shape_id(i));
    c.bytes_read = std::min(c.bytes_read, bytes_of(m_.u(), m_.shape_id(m_.operand(i, 0))));
    c.bytes_repeated = picked > slice ? std::max(c.bytes_read - c.bytes_written * slice / picked, 0.0) : 0;
  }
  return c;
}

Cost CostAnalysis::of_dot(InstId i) const {
  const AttrSet& a = m_.attrs(i);
  Cost c = in_memory(i);
  add_products(&c, i,
               ragged_flops(m_.shape(m_.operand(i, 0)), m_.shape(i),
                            m_.operand_count(i) > 2 ? &m_.shape(m_.operand(i, 2)) : nullptr,
                            a.ints(Attr::lhs_contracting_dims), a.ints(Attr::lhs_ragged_dims)));
  return c;
}

// Elementwise, or no more than what moves.
Cost CostAnalysis::of_elements(InstId i) const {
  const Opcode op = m_.op(i);
  const OpInfo& info = op_info(op);
  const Shape& out = m_.shape(i);
  Cost c;
  if (info.elementwise && out.is_array() && op != Opcode::Copy && op != Opcode::BitcastConvert) {
    c = in_memory(i);
    if (op == Opcode::Convert) return c;
    add_vectors(&c, out.type, array_elements(m_.u(), m_.shape_id(i)));
    if (info.transcendental) std::swap(c.flops, c.transcendentals);
    return c;
  }
  if (info.cls == OpClass::Collective || (runs(m_, i) && info.cls != OpClass::Async)) c = in_memory(i);
  return c;
}

Cost CostAnalysis::of(InstId i) {
  const Universe& u = m_.u();
  const Shape& out = m_.shape(i);
  Cost c;
  switch (m_.op(i)) {
    case Opcode::While:
      return of_loop(i);
    case Opcode::Conditional:
      return of_conditional(i);
    case Opcode::Call:
    case Opcode::AsyncStart:
      return m_.called(i).empty() ? c : of_computation(m_.called(i)[0]);
    case Opcode::Fusion:
      return of_fusion(i);
    case Opcode::DynamicSlice:
    case Opcode::Slice:
    case Opcode::Gather:
      return of_slice(i);
    case Opcode::DynamicUpdateSlice:
      count_move(u, m_.shape_id(m_.operand(i, 1)), m_.shape_id(m_.operand(i, 1)), m_.shape_id(i), &c);
      return c;
    case Opcode::CopyStart: {
      // Between a TPU's memories, or a GPU's and its host's.
      const ShapeId from = m_.shape_id(m_.operand(i, 0)), to = out.is_tuple() ? out.elements[0] : m_.shape_id(i);
      count_move(u, to, from, to, &c);
      return c;
    }
    case Opcode::Dot:
    case Opcode::RaggedDot:
      return of_dot(i);
    case Opcode::Convolution:
      return of_convolution(i);
    case Opcode::Reduce: {
      c = in_memory(i);
      double in = array_elements(u, m_.shape_id(m_.operand(i, 0))), results = array_elements(u, m_.shape_id(i));
      add_operations(&c, of_computation(m_.called(i)[0]), std::max(in - results, 0.0));
      return c;
    }
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter:
      return of_windows(i);
    case Opcode::Map:
    case Opcode::Scatter:
    case Opcode::Sort:
      return of_applied(i);
    case Opcode::CustomCall:
      return of_call(i);
    case Opcode::Cholesky:
      c = in_memory(i);
      add_solver(&c, out.type, cholesky_flops(square_of(out)) * batch_of(out));
      return c;
    case Opcode::TriangularSolve: {
      c = in_memory(i);
      const Shape& a_shape = m_.shape(m_.operand(i, 0));
      add_solver(&c, out.type, static_cast<double>(out.elements_count()) * square_of(a_shape));
      return c;
    }
    case Opcode::Fft:
      return of_fft(i);
    // Of a pair the first one: an all-gather-start gives its operands and its results, send and receive their buffers.
    case Opcode::AllGatherStart:
    case Opcode::CollectivePermuteStart:
      c.bytes_read += operand_bytes(m_, i);
      if (out.is_tuple() && out.elements.size() > 1) c.bytes_written = bytes_of(u, out.elements[1]);
      return c;
    case Opcode::Send:
      c.bytes_read = bytes_of(u, m_.shape_id(m_.operand(i, 0)));
      return c;
    case Opcode::Recv:
      if (out.is_tuple() && !out.elements.empty()) c.bytes_written = bytes_of(u, out.elements[0]);
      return c;
    case Opcode::RngBitGenerator:
    case Opcode::Rng:
      c = in_memory(i);
      add_vectors(&c, ElementType::U32, array_elements(u, m_.shape_id(i)));
      return c;
    default:
      return of_elements(i);
  }
}

double least_seconds(const Cost& c, const DeviceSpec& d, bool* by_memory, bool* known, double cached) {
  // All pass the cache; what it does not hold comes through it from the memory at the same time.
  const double once = c.bytes() - c.bytes_repeated, uncached = std::max(once - cached, 0.0) / (d.memory_gb_s * 1e9),
               memory = std::max(uncached, cached > 0 && d.l2_gb_s > 0 ? once / (d.l2_gb_s * 1e9) : 0.0);
  bool all = !c.unknown;
  // Products have one kind of unit for all precisions; the vectors' units of several may work at once.
  double products = 0, vectors = 0;
  for (size_t k = 0; k < kArithmetics; ++k) {
    const auto p = static_cast<Arithmetic>(k);
    auto seconds = [&](double operations, double rate) {
      if (operations <= 0) return 0.0;
      if (rate <= 0) all = false;
      return rate > 0 ? operations / (rate * 1e12) : 0.0;
    };
    if (c.in_products[k] > 0) products += seconds(c.in_products[k], d.product_tflops(p));
    if (c.in_vectors[k] > 0) vectors = std::max(vectors, seconds(c.in_vectors[k], d.vector_tflops(p)));
  }
  const double compute = std::max(products, vectors);
  if (by_memory) *by_memory = memory >= compute;
  if (known) *known = all;
  return std::max(memory, compute);
}

}  // namespace hlo
