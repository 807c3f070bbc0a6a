// Findings that name an operation which does the same with less: top_k for a sort of which little is read, a product
// for sums of squared differences, one product in front of a loop, operands that are repeated for their product.
#include <algorithm>
#include <map>
#include <set>

#include "replay/report/findings/findings_parts.h"

namespace hlo {
namespace {

constexpr int64_t kLittle = 4;       // a sort of which no more than this part is read is one for a few
constexpr int64_t kWideEnough = 16;  // elements of each dimension of a product that is worth one
constexpr size_t kMostAsked = 10000;

double at_memory_rate(const FindingsInput& in, double bytes) { return bytes / (in.device.memory_gb_s * 1e9); }

// All that reads a value, through bitcasts, elements of tuples, and parameters of fusions; false where something else
// than a slice does. `read`: elements that the largest slice takes.
bool only_sliced(const Module& m, InstId value, int64_t* read, int64_t along) {
  std::vector<InstId> list{value};
  std::set<InstId> seen{value};
  const Dims dims = m.shape(value).is_array() ? m.shape(value).dims : Dims();
  for (size_t k = 0; k < list.size(); ++k) {
    const InstId i = list[k];
    if (m.is_root(i) && m.parent(i) == m.entry()) return false;
    for (InstId u : m.users(i)) {
      InstId next;
      if (m.op(u) == Opcode::Slice) {
        const auto* slices = m.attrs(u).get<std::vector<SliceDim>>(Attr::slice);
        const Shape& from = m.shape(i);
        if (!slices || from.dims != dims || along < 0 || along >= from.rank()) return false;
        const SliceDim& d = (*slices)[static_cast<size_t>(along)];
        // From one of its ends: what lies between is no list of the largest.
        if (d.stride != 1 || (d.start != 0 && d.limit != from.dims[static_cast<size_t>(along)])) return false;
        *read = std::max(*read, d.limit - d.start);
        continue;
      }
      if (m.op(u) == Opcode::Bitcast) {
        next = u;
      } else if (m.op(u) == Opcode::Fusion) {
        for (size_t o = 0; o < m.operand_count(u); ++o)
          if (m.operand(u, o) == i && seen.insert(m.comp(m.called(u)[0]).params[o]).second)
            list.push_back(m.comp(m.called(u)[0]).params[o]);
        continue;
      } else {
        return false;
      }
      if (seen.insert(next).second) list.push_back(next);
    }
    if (list.size() > kMostAsked) return false;
  }
  return *read > 0;
}

// Dimensions of a broadcast in which it repeats what it reads.
std::vector<int64_t> repeated_dims(const Module& m, InstId i) {
  std::vector<int64_t> out;
  const Dims kept = m.attrs(i).ints(Attr::dimensions);
  for (int64_t d = 0; d < m.shape(i).rank(); ++d)
    if (m.shape(i).dims[static_cast<size_t>(d)] > 1 && std::find(kept.begin(), kept.end(), d) == kept.end())
      out.push_back(d);
  return out;
}

InstId through_bitcasts(const Module& m, InstId i) {
  while (m.op(i) == Opcode::Bitcast || m.op(i) == Opcode::Convert) i = m.operand(i, 0);
  return i;
}

// Is it the sum of (a - b)², where a and b lack a dimension each of what is summed over another?
bool sums_differences(const Module& m, InstId reduce) {
  if (m.op(reduce) != Opcode::Reduce || m.operand_count(reduce) != 2) return false;
  if (m.op(m.comp(m.called(reduce)[0]).root) != Opcode::Add) return false;
  const InstId square = through_bitcasts(m, m.operand(reduce, 0));
  if (m.op(square) != Opcode::Multiply || m.operand(square, 0) != m.operand(square, 1)) return false;
  const InstId difference = through_bitcasts(m, m.operand(square, 0));
  if (m.op(difference) != Opcode::Subtract) return false;
  const Dims& dims = m.shape(difference).dims;
  std::set<int64_t> missing;
  for (size_t side = 0; side < 2; ++side) {
    const InstId b = m.operand(difference, side);
    if (m.op(b) != Opcode::Broadcast || m.shape(b).dims != dims) return false;
    int64_t repeated = 1;
    for (int64_t d : repeated_dims(m, b)) {
      if (!missing.insert(d).second) return false;  // one that both repeat is of neither
      repeated *= dims[static_cast<size_t>(d)];
    }
    if (repeated < kWideEnough) return false;
  }
  if (m.shape(reduce).elements_count() <= 0) return false;
  int64_t summed = 1;
  for (int64_t d : m.attrs(reduce).ints(Attr::dimensions)) {
    if (d < 0 || d >= static_cast<int64_t>(dims.size()) || missing.contains(d)) return false;
    summed *= dims[static_cast<size_t>(d)];
  }
  return summed >= kWideEnough;
}

}  // namespace

std::vector<ModuleFinding> sorts_for_a_few(const FindingsInput& in) {
  const Module& m = in.m;
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels) {
    if (!in.counts(k.seconds)) continue;
    const InstId sort = first_operation(m, k.inst, [&](InstId i) { return m.op(i) == Opcode::Sort; });
    if (!sort.valid()) continue;
    const Shape& keys = m.shape(m.operand(sort, 0));
    const Dims along = m.attrs(sort).ints(Attr::dimensions);
    if (!keys.is_array() || along.size() != 1 || along[0] < 0 || along[0] >= keys.rank()) continue;
    // Of a tuple its elements; one that nobody reads is none that needs a sort.
    int64_t read = 0;
    bool few = true;
    if (m.shape(k.inst).is_array()) {
      few = only_sliced(m, k.inst, &read, along[0]);
    } else {
      for (InstId element : m.users(k.inst))
        few &= m.op(element) == Opcode::GetTupleElement && only_sliced(m, element, &read, along[0]);
    }
    const int64_t all = keys.dims[static_cast<size_t>(along[0])];
    if (!few || read <= 0 || m.is_root(k.inst) || read > all / kLittle) continue;
    ModuleFinding f;
    f.kind = "sort-for-a-few", f.inst = k.inst, f.odd = sort;
    // Whoever takes the largest reads all of them once.
    f.seconds = std::max(0.0, k.seconds - at_memory_rate(in, array_size(m, m.operand(sort, 0))) * k.times);
    f.what = fmt::format("{} are sorted, {}, and no more than {} of each {} are read",
                         m.u().shape_text_plain(m.shape_id(m.operand(sort, 0))), runs_text(k.times), read, all);
    f.advice = "take the largest alone: jax.lax.top_k(x, k), of -x for the smallest";
    out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

std::vector<ModuleFinding> distances_by_differences(const FindingsInput& in) {
  const Module& m = in.m;
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels) {
    if (!in.counts(k.seconds)) continue;
    const InstId sum = first_operation(m, k.inst, [&](InstId i) { return sums_differences(m, i); });
    if (!sum.valid() || in.device.matrix_tflops() <= 0) continue;
    const double pairs = static_cast<double>(m.shape(m.operand(sum, 0)).elements_count());
    // The product of the two reads and writes what this one does, with two operations for each pair.
    const double least =
        std::max(at_memory_rate(in, k.cost.bytes()), 2 * pairs / (in.device.matrix_tflops() * 1e12)) * k.times;
    ModuleFinding f;
    f.kind = "distances-by-differences", f.inst = k.inst, f.odd = sum, f.seconds = std::max(0.0, k.seconds - least);
    f.what = fmt::format("squares of {:.3g} differences are summed one by one, {}", pairs, runs_text(k.times));
    f.advice =
        "sum((a - b)²) is sum(a²) + sum(b²) - 2 a·b, whose last part is a product for matrix units (it loses digits "
        "where a and b are close)";
    out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

std::vector<ModuleFinding> expanded_operands(const FindingsInput& in) {
  const Module& m = in.m;
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels) {
    if (!in.counts(k.seconds) || !m.shape(k.inst).is_array() || m.operand_count(k.inst) != 1) continue;
    auto repeats = [&](InstId i) {
      return m.op(i) == Opcode::Broadcast && m.shape(m.operand(i, 0)).elements_count() > 1 &&
             m.shape(i).elements_count() >= 2 * m.shape(m.operand(i, 0)).elements_count();
    };
    auto only_moves = [&](InstId i) {
      const Opcode op = m.op(i);
      return repeats(i) || op == Opcode::Transpose || op == Opcode::Copy || op == Opcode::Bitcast ||
             op == Opcode::Reshape || op == Opcode::Convert;
    };
    if (!all_operations(m, k.inst, only_moves)) continue;
    const InstId repeated = first_operation(m, k.inst, repeats);
    if (!repeated.valid()) continue;
    InstId product;
    for (InstId u : readers(m, k.inst))
      if (kernel_product(m, u).valid()) product = u;
    if (!product.valid()) continue;
    const double small = array_size(m, m.operand(repeated, 0)), large = array_size(m, k.inst);
    ModuleFinding f;
    f.kind = "expanded-operand", f.inst = k.inst, f.odd = repeated, f.others = {product};
    // It is neither written nor read by the product, which reads what it was made of.
    f.seconds = k.seconds + std::max(0.0, at_memory_rate(in, large - small)) * k.times;
    f.bytes = large;
    f.what = fmt::format("{} is repeated to {} for the product {}, {}",
                         m.u().shape_text_plain(m.shape_id(m.operand(repeated, 0))),
                         m.u().shape_text_plain(m.shape_id(k.inst)), m.inst_name(product), runs_text(k.times));
    f.advice =
        "give the product the repeated dimension as one of the other operand: einsum('bgrd,bsgd->bgrs', …) in "
        "place of repeat";
    out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

namespace {

// What a loop's body computes without its state: from what the loop hands on unchanged, and from its counter.
class WithoutState {
 public:
  WithoutState(const FindingsInput& in, CompId body) : in_(in), m_(in.m), body_(body) {}

  bool ask(InstId i, InstId fusion = {}, int depth = 0) {
    if (depth > 200) return false;
    const auto key = std::pair(i.value, fusion.valid() ? fusion.value : UINT32_MAX);
    auto [at, fresh] = known_.try_emplace(key, false);
    if (!fresh) return at->second;
    const bool answer = look(i, fusion, depth);
    known_[key] = answer;
    return answer;
  }
  // Those that compute it, in front of what was asked about.
  const std::set<InstId>& kernels() const { return kernels_; }
  // Does it take another part of something in each run? What is the same in all is another matter.
  bool saw_slice() const { return !slices_.empty(); }

 private:
  bool look(InstId i, InstId fusion, int depth) {
    const Opcode op = m_.op(i);
    if (op == Opcode::Parameter) {
      if (!fusion.valid()) return false;
      return ask(m_.operand(fusion, static_cast<size_t>(m_.parameter_number(i))), {}, depth + 1);
    }
    if (op == Opcode::Constant || op == Opcode::Iota) return true;
    if (op == Opcode::GetTupleElement && m_.op(m_.operand(i, 0)) == Opcode::Parameter)
      return counter(i) || m_.parent(in_.origin(i)) != body_;
    if (op == Opcode::Fusion && m_.shape(i).is_array()) {
      if (!ask(m_.comp(m_.called(i)[0]).root, i, depth + 1)) return false;
      kernels_.insert(i);
      return true;
    }
    if (op == Opcode::DynamicSlice) slices_.insert(i);
    const bool plain = op == Opcode::DynamicSlice || op == Opcode::Bitcast || op == Opcode::Reshape ||
                       op == Opcode::Transpose || op == Opcode::Copy || op == Opcode::Broadcast ||
                       op == Opcode::Slice || op_info(op).elementwise;
    if (!plain) return false;
    for (InstId o : m_.operands(i))
      if (!ask(o, fusion, depth + 1)) return false;
    if (!fusion.valid() && op != Opcode::Bitcast) kernels_.insert(i);
    return true;
  }
  // A scalar of the state whose next value is itself and a constant.
  bool counter(InstId element) {
    const InstId root = m_.comp(body_).root;
    const auto k = static_cast<size_t>(m_.attrs(element).integer(Attr::index));
    if (m_.op(root) != Opcode::Tuple || k >= m_.operand_count(root) || !m_.shape(element).is_array()) return false;
    if (m_.shape(element).rank() != 0 || m_.parent(element) != body_) return false;
    InstId next = m_.operand(root, k), fusion;
    for (int steps = 0; steps < 100; ++steps) {
      if (m_.op(next) == Opcode::Copy || m_.op(next) == Opcode::Bitcast) {
        next = m_.operand(next, 0);
      } else if (m_.op(next) == Opcode::Fusion && !fusion.valid() && m_.shape(next).is_array()) {
        fusion = next, next = m_.comp(m_.called(next)[0]).root;
      } else {
        break;
      }
    }
    if (m_.op(next) != Opcode::Add) return false;
    bool itself = false, constant = false;
    for (InstId o : m_.operands(next)) {
      if (m_.op(o) == Opcode::Parameter && fusion.valid())
        o = m_.operand(fusion, static_cast<size_t>(m_.parameter_number(o)));
      while (m_.op(o) == Opcode::Copy || m_.op(o) == Opcode::Bitcast) o = m_.operand(o, 0);
      constant |= m_.op(o) == Opcode::Constant;
      itself |= m_.op(o) == Opcode::GetTupleElement && m_.operand(o, 0) == m_.operand(element, 0) &&
                static_cast<size_t>(m_.attrs(o).integer(Attr::index)) == k;
    }
    return itself && constant;
  }

  const FindingsInput& in_;
  const Module& m_;
  const CompId body_;
  std::map<std::pair<uint32_t, uint32_t>, bool> known_;
  std::set<InstId> slices_, kernels_;
};

}  // namespace

std::vector<ModuleFinding> products_without_state(const FindingsInput& in) {
  const Module& m = in.m;
  std::set<CompId> bodies;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && m.op(i) == Opcode::While) bodies.insert(m.attrs(i).comp(Attr::body));
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels) {
    const CompId body = m.parent(k.inst);
    if (!in.counts(k.seconds) || k.times < 2 || !bodies.contains(body)) continue;
    const InstId product = kernel_product(m, k.inst);
    if (!product.valid() || m.op(product) == Opcode::RaggedDot) continue;
    const InstId fusion = m.op(k.inst) == Opcode::Fusion ? k.inst : InstId();
    WithoutState asked(in, body);
    if (!asked.ask(m.operand(product, 0), fusion) || !asked.ask(m.operand(product, 1), fusion)) continue;
    if (!asked.saw_slice()) continue;
    ModuleFinding f;
    f.kind = "product-in-loop", f.inst = k.inst, f.odd = product;
    // What only takes its part of the operands is not needed in front of the loop, and what all runs read is read once.
    for (InstId i : asked.kernels())
      if (const KernelCost* part = in.kernel(i); part && i != k.inst) {
        const std::vector<InstId> all = readers(m, i);
        if (std::any_of(all.begin(), all.end(), [&](InstId u) { return u != k.inst; })) continue;
        f.seconds += part->seconds, f.others.push_back(i);
      }
    Cost once = k.cost;
    once *= k.times;
    once.bytes_read = k.cost.bytes_read;
    bool by_memory = false;
    f.seconds += std::max(0.0, k.seconds - least_seconds(once, in.device, &by_memory));
    f.what = fmt::format("this product needs nothing that its loop computes, and runs {}", runs_text(k.times));
    f.advice = "make it once before the loop, for all steps together (xs @ w in place of x @ w in scan's function)";
    if (f.seconds > 0) out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

}  // namespace hlo
