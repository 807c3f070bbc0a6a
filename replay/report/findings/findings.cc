#include "replay/report/findings/findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/query/source_lines.h"
#include "ir/sharding/aliasing.h"
#include "replay/report/findings/findings_parts.h"

namespace hlo {
namespace {

constexpr int kMostSteps = 10000;  // along a chain of operands

bool is_bitcast(Opcode op) { return op == Opcode::Bitcast || op == Opcode::OptBarrier; }

// Minor to major, whether it is written down or not.
Dims order_of(const Shape& s) { return s.has_layout ? s.layout.minor_to_major : default_minor_to_major(s.rank()); }

}  // namespace

bool moves_data(const Module& m, InstId i) {
  const Shape &out = m.shape(i), &in = m.shape(m.operand(i, 0));
  if (!out.is_array() || !in.is_array() || out.rank() != in.rank()) return false;
  Dims map(static_cast<size_t>(out.rank()));
  for (size_t k = 0; k < map.size(); ++k) map[k] = static_cast<int64_t>(k);
  if (m.op(i) == Opcode::Transpose) map = m.attrs(i).ints(Attr::dimensions);
  if (map.size() != static_cast<size_t>(out.rank())) return false;
  auto dense = [](const Shape& s, const Dims& order) {  // without dimensions of one element
    Dims kept;
    for (int64_t d : order)
      if (d >= 0 && d < s.rank() && s.dims[static_cast<size_t>(d)] != 1) kept.push_back(d);
    return kept;
  };
  Dims from = dense(in, order_of(in)), to = dense(out, order_of(out));
  if (from.size() != to.size()) return false;
  for (size_t k = 0; k < to.size(); ++k)
    if (map[static_cast<size_t>(to[k])] != from[k]) return true;
  return false;
}

namespace {

bool is_library_product(const Module& m, InstId i) {
  return m.op(i) == Opcode::CustomCall && m.operand_count(i) >= 2 &&
         (kernel_class(m, i) == "product" || kernel_class(m, i) == "convolution");
}
bool is_product(const Module& m, InstId i) {
  return m.op(i) == Opcode::Dot || m.op(i) == Opcode::RaggedDot || m.op(i) == Opcode::Convolution ||
         is_library_product(m, i);
}
}  // namespace

InstId kernel_product(const Module& m, InstId kernel) {
  return first_operation(m, kernel, [&](InstId i) { return is_product(m, i); });
}

std::vector<InstId> kernel_products(const Module& m, InstId kernel) {
  std::vector<InstId> out;
  if (m.op(kernel) != Opcode::Fusion) {
    if (is_product(m, kernel)) out.push_back(kernel);
    return out;
  }
  for (InstId i : m.post_order(m.called(kernel)[0]))
    if (is_product(m, i)) out.push_back(i);
  return out;
}

double product_seconds(const Module& m, const KernelCost& kernel, InstId product) {
  const std::vector<InstId> all = kernel_products(m, kernel.inst);
  if (all.size() < 2) return kernel.seconds;
  CostAnalysis costs(m);
  double flops = 0;
  for (InstId p : all) flops += costs.of(p).flops;
  return flops > 0 ? kernel.seconds * costs.of(product).flops / flops : 0;
}

bool is_narrow(ElementType t) { return t == ElementType::BF16 || t == ElementType::F16; }

double array_size(const Module& m, InstId i) {
  return m.shape(i).is_array() ? static_cast<double>(m.u().bytes(m.shape_id(i)).capped()) : 0;
}

std::vector<InstId> readers(const Module& m, InstId i) {
  std::vector<InstId> out, list{i};
  for (size_t k = 0; k < list.size() && k < kMostSteps; ++k)
    for (InstId u : m.users(list[k]))
      if (is_bitcast(m.op(u)))
        list.push_back(u);
      else
        out.push_back(u);
  return out;
}

std::string runs_text(double times) {
  return times == 1 ? std::string("in each call") : fmt::format("{:.0f} times in each call", times);
}

std::set<int64_t> donated_parameters(const Module& m) {
  std::set<int64_t> out;
  for (const AliasEntry& a : parse_aliases(m.config().input_output_alias)) out.insert(a.number);
  for (const AliasEntry& a : parse_aliases(m.config().buffer_donor)) out.insert(a.number);
  return out;
}

FindingsInput::FindingsInput(const Module& module, const ModuleCost& costs, const DeviceSpec& spec)
    : m(module), cost(costs), device(spec), callers_(module.callers()) {
  for (const KernelCost& k : cost.kernels) kernels_[k.inst] = &k;
}

const KernelCost* FindingsInput::kernel(InstId i) const {
  auto found = kernels_.find(i);
  return found == kernels_.end() ? nullptr : found->second;
}

InstId FindingsInput::origin(InstId i) const {
  for (int steps = 0; steps < kMostSteps; ++steps) {
    const Opcode op = m.op(i);
    if (is_bitcast(op) && m.operand_count(i) == 1) {
      i = m.operand(i, 0);
      continue;
    }
    if (op != Opcode::GetTupleElement) return i;
    InstId tuple = m.operand(i, 0);
    const auto k = static_cast<size_t>(m.attrs(i).integer(Attr::index));
    if (m.op(tuple) == Opcode::Tuple && k < m.operand_count(tuple)) {
      i = m.operand(tuple, k);
      continue;
    }
    // Element k of a loop's state, within its body (or of its result), that the body hands on as it got it.
    CompId body;
    InstId loop;
    if (m.op(tuple) == Opcode::Parameter && m.parent(tuple) != m.entry()) {
      const auto& callers = callers_[m.parent(tuple).value];
      if (callers.size() != 1 || m.op(callers[0]) != Opcode::While) return i;
      loop = callers[0];
    } else if (m.op(tuple) == Opcode::While) {
      loop = tuple;
    } else {
      return i;
    }
    body = m.attrs(loop).comp(Attr::body);
    InstId root = m.comp(body).root;
    if (m.op(root) != Opcode::Tuple || k >= m.operand_count(root)) return i;
    InstId handed = m.operand(root, k);
    const bool same = m.op(handed) == Opcode::GetTupleElement && m.op(m.operand(handed, 0)) == Opcode::Parameter &&
                      static_cast<size_t>(m.attrs(handed).integer(Attr::index)) == k;
    if (!same) return i;
    InstId init = m.operand(loop, 0);
    if (m.op(init) != Opcode::Tuple || k >= m.operand_count(init)) return i;
    i = m.operand(init, k);
  }
  return i;
}

InstId FindingsInput::computed(InstId i, CompId within) const {
  for (int steps = 0; steps < kMostSteps; ++steps) {
    const Opcode op = m.op(i);
    InstId next = i;
    if (op == Opcode::Parameter && m.parent(i) != m.entry() && m.parent(i) != within) {
      const auto& callers = callers_[m.parent(i).value];
      if (callers.size() == 1 && (m.op(callers[0]) == Opcode::Fusion || m.op(callers[0]) == Opcode::Call))
        next = m.operand(callers[0], static_cast<size_t>(m.parameter_number(i)));
    } else if ((op == Opcode::Fusion || op == Opcode::Call) && m.shape(i).is_array()) {
      next = m.comp(m.called(i)[0]).root;
    } else if (op == Opcode::GetTupleElement) {
      InstId of = m.operand(i, 0);
      const auto k = static_cast<size_t>(m.attrs(i).integer(Attr::index));
      const bool body = (m.op(of) == Opcode::Fusion || m.op(of) == Opcode::Call) && !m.called(of).empty();
      const InstId root = body ? m.comp(m.called(of)[0]).root : InstId();
      next = root.valid() && m.op(root) == Opcode::Tuple && k < m.operand_count(root) ? m.operand(root, k)
             : m.parent(i) == within                                                  ? i
                                                                                      : origin(i);
    }
    if (next == i) return i;
    i = next;
  }
  return i;
}

InstId FindingsInput::origin_in_fusion(InstId i, InstId fusion) const {
  for (int steps = 0; steps < kMostSteps && is_bitcast(m.op(i)); ++steps) i = m.operand(i, 0);
  if (m.op(fusion) != Opcode::Fusion) return origin(i);
  if (m.op(i) != Opcode::Parameter || m.parent(i) != m.called(fusion)[0]) return i;
  return origin(m.operand(fusion, static_cast<size_t>(m.parameter_number(i))));
}

std::string FindingsInput::in_words(InstId i) const {
  std::string name = op_name_of(m, i), size = size_text(array_size(m, i));
  const bool parameter = m.op(i) == Opcode::Parameter && m.parent(i) == m.entry();
  if (!parameter) return fmt::format("{} ({}, {})", m.inst_name(i), m.u().shape_text_plain(m.shape_id(i)), size);
  return fmt::format("parameter {} {} ({}, {})", m.parameter_number(i), name.empty() ? m.inst_name(i) : name,
                     m.u().shape_text_plain(m.shape_id(i)), size);
}

std::vector<ModuleFinding> worth_telling(const FindingsInput& in, std::vector<ModuleFinding> found) {
  std::map<std::string, double> together;
  for (const ModuleFinding& f : found) together[f.kind] += f.seconds;
  std::erase_if(found,
                [&](const ModuleFinding& f) { return !in.matters(f.seconds) && !in.matters(together[f.kind], 0.01); });
  return found;
}

std::vector<ModuleFinding> transposed_parameters(const FindingsInput& in) {
  const Module& m = in.m;
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels) {
    if (!in.counts(k.seconds)) continue;
    auto moves = [&](InstId i) {
      return (m.op(i) == Opcode::Transpose || m.op(i) == Opcode::Copy) && moves_data(m, i);
    };
    auto only_moves = [&](InstId i) {
      const Opcode op = m.op(i);
      return op == Opcode::Transpose || op == Opcode::Copy || op == Opcode::Bitcast || op == Opcode::Convert ||
             op == Opcode::Reshape || op == Opcode::Pad || op == Opcode::Constant;
    };
    if (!all_operations(m, k.inst, only_moves)) continue;
    InstId moved = first_operation(m, k.inst, moves);
    if (!moved.valid() || m.operand_count(k.inst) != 1) continue;
    InstId from = in.origin(m.operand(k.inst, 0));
    double seconds = k.seconds;
    // A transposition that leaves the bytes where they are, and is a kernel all the same: the order is its wish.
    if (const KernelCost* before = in.kernel(from);
        before && m.operand_count(from) == 1 && all_operations(m, from, only_moves) && m.users(from).size() == 1) {
      seconds += before->seconds;
      const InstId wish = first_operation(m, from, [&](InstId i) { return m.op(i) == Opcode::Transpose; });
      if (wish.valid()) moved = wish;
      from = in.origin(m.operand(from, 0));
    }
    if (m.op(from) != Opcode::Parameter || m.parent(from) != m.entry()) continue;
    ModuleFinding f;
    f.kind = "transposed-parameter", f.inst = k.inst, f.others = {from}, f.seconds = seconds, f.odd = moved;
    f.what = fmt::format("{} is transposed {}", in.in_words(from), runs_text(k.times));
    f.advice = "store it in the order in which it is read, or read it in the order in which it is stored";
    out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

namespace {

// The value before it was made wider, followed through what only moves it; invalid where it was not.
InstId widened_from(const FindingsInput& in, InstId i, InstId fusion) {
  const Module& m = in.m;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    switch (m.op(i)) {
      case Opcode::Convert:
        return is_narrow(m.shape(m.operand(i, 0)).type) && m.shape(i).type == ElementType::F32 ? m.operand(i, 0)
                                                                                               : InstId();
      case Opcode::Bitcast:
      case Opcode::Broadcast:
      case Opcode::Copy:
      case Opcode::Reshape:
      case Opcode::Transpose:
      case Opcode::Slice:
        i = m.operand(i, 0);
        break;
      case Opcode::Parameter:
        if (!fusion.valid() || m.op(fusion) != Opcode::Fusion || m.parent(i) != m.called(fusion)[0]) return {};
        i = m.operand(fusion, static_cast<size_t>(m.parameter_number(i)));
        fusion = InstId();
        break;
      case Opcode::Fusion:
        fusion = i;
        i = m.comp(m.called(i)[0]).root;
        break;
      default:
        return {};
    }
  }
  return {};
}

}  // namespace

std::vector<ModuleFinding> wide_products(const FindingsInput& in) {
  const Module& m = in.m;
  std::vector<ModuleFinding> out;
  double narrow = 0, all = 0;
  struct Wide {
    const KernelCost* kernel;
    InstId product;
  };
  std::vector<Wide> wide;
  for (const KernelCost& k : in.cost.kernels) {
    for (InstId p : kernel_products(m, k.inst)) {
      const Shape &l = m.shape(m.operand(p, 0)), &r = m.shape(m.operand(p, 1));
      if (!l.is_array() || !r.is_array()) continue;
      const double flops = k.cost.flops * k.times * (k.seconds > 0 ? product_seconds(m, k, p) / k.seconds : 1);
      all += flops;
      if (is_narrow(l.type) || is_narrow(r.type) || storage_bytes(l.type) == 1) narrow += flops;
      // An algorithm says what the product is made of, whatever its operands are.
      if (l.type == ElementType::F32 && r.type == ElementType::F32 && !m.attrs(p).has(Attr::algorithm))
        wide.push_back({&k, p});
    }
  }
  for (const Wide& w : wide) {
    if (!in.counts(w.kernel->seconds)) continue;
    ModuleFinding f;
    f.inst = w.kernel->inst, f.seconds = product_seconds(m, *w.kernel, w.product), f.odd = w.product;
    InstId a = widened_from(in, m.operand(w.product, 0), f.inst), b = widened_from(in, m.operand(w.product, 1), f.inst);
    const std::string shapes = fmt::format("{} × {}", m.u().shape_text_plain(m.shape_id(m.operand(w.product, 0))),
                                           m.u().shape_text_plain(m.shape_id(m.operand(w.product, 1))));
    if (a.valid() && b.valid()) {
      f.kind = "widened-product", f.others = {a, b};
      f.what =
          fmt::format("both operands of this product ({}) are {} made f32 first", shapes, type_name(m.shape(a).type));
      f.advice = "multiply them as they are, with preferred_element_type=float32 for sums in f32";
    } else if (narrow >= 0.8 * all && all > 0) {
      f.kind = "f32-product";
      f.what = fmt::format("this product ({}) is f32 where {:.0f} % of the products' operations are narrower", shapes,
                           100 * narrow / all);
      f.advice = "if f32 is not meant here, cast its operands";
    } else {
      continue;
    }
    out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

std::vector<ModuleFinding> copies_at_loops(const FindingsInput& in) {
  const Module& m = in.m;
  const std::set<int64_t> donated = donated_parameters(m);
  std::set<CompId> bodies;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && m.op(i) == Opcode::While) bodies.insert(m.attrs(i).comp(Attr::body));
  std::vector<ModuleFinding> out;
  constexpr double kLeastCopy = 1024;  // bytes: a loop's counter is the compiler's
  for (const KernelCost& k : in.cost.kernels) {
    if (!in.counts(k.seconds) || array_size(m, k.inst) < kLeastCopy) continue;
    auto plain_copy = [&](InstId i) {
      return m.op(i) == Opcode::Copy ? !moves_data(m, i) : m.op(i) == Opcode::Bitcast;
    };
    InstId copy = first_operation(m, k.inst, [&](InstId i) { return m.op(i) == Opcode::Copy && !moves_data(m, i); });
    if (!copy.valid() || !all_operations(m, k.inst, plain_copy) || m.operand_count(k.inst) != 1) continue;
    InstId loop;
    if (!bodies.contains(m.parent(k.inst)))
      for (InstId user : readers(m, k.inst)) {
        if (m.op(user) != Opcode::Tuple) continue;
        for (InstId after : m.users(user))
          if (m.op(after) == Opcode::While) loop = after;
      }
    else
      loop = k.inst;
    const InstId from = in.origin(m.operand(k.inst, 0));
    const bool given =
        m.op(from) == Opcode::Parameter && m.parent(from) == m.entry() && donated.contains(m.parameter_number(from));
    if (!loop.valid() && !given) continue;
    ModuleFinding f;
    f.kind = "copy-at-loop", f.inst = k.inst, f.seconds = k.seconds, f.odd = copy,
    f.others = {in.origin(m.operand(k.inst, 0))};
    if (given && loop != k.inst) {
      f.kind = "copy-of-donated";
      f.what = fmt::format("{}, which is donated, is copied all the same, {}{}", in.in_words(from), runs_text(k.times),
                           loop.valid() ? fmt::format(", before {} begins", m.inst_name(loop)) : "");
      f.advice =
          "its old value is read after the new one is written in its place: read it first, or write the new one last";
      if (loop.valid()) f.others.push_back(loop);
    } else if (loop == k.inst) {
      f.what = fmt::format("{} is copied in the body of a loop, {}{}", in.in_words(m.operand(k.inst, 0)),
                           runs_text(k.times), k.times_known ? "" : " (its trip count is not known: counted once)");
      f.advice = "an old value is read after the new one is written: read it first, or carry both";
    } else {
      f.what = fmt::format("{} is copied before {} begins", in.in_words(f.others[0]), m.inst_name(loop));
      f.advice = "the loop writes over what it begins with: donate the argument, or do not read it afterwards";
      f.others.push_back(loop);
    }
    out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

std::vector<ModuleFinding> unfused_chains(const FindingsInput& in) {
  const Module& m = in.m;
  auto elementwise = [&](InstId kernel) {
    if (!m.shape(kernel).is_array() || m.op(kernel) == Opcode::CustomCall) return false;
    bool works = false;
    const bool all = all_operations(m, kernel, [&](InstId i) {
      const Opcode op = m.op(i);
      const bool element = op_info(op).elementwise && op != Opcode::Copy && op_info(op).cls != OpClass::Async;
      works |= element;
      return element || op == Opcode::Broadcast || op == Opcode::Constant || op == Opcode::Bitcast ||
             op == Opcode::Iota;
    });
    return all && works;
  };
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels) {
    const double bytes = array_size(m, k.inst);
    // What is written and read again for nothing.
    const double seconds = 2 * bytes * k.times / (in.device.memory_gb_s * 1e9);
    if (!in.counts(seconds) || m.is_root(k.inst) || !elementwise(k.inst) || m.has_control(k.inst)) continue;
    std::vector<InstId> users = readers(m, k.inst);
    if (users.empty() || std::any_of(users.begin(), users.end(), [&](InstId u) { return u != users[0]; })) continue;
    InstId next = users[0];
    if (!in.kernel(next) || !elementwise(next) || m.has_control(next)) continue;
    if (m.shape(next).elements_count() != m.shape(k.inst).elements_count()) continue;
    ModuleFinding f;
    f.kind = "unfused-chain", f.inst = k.inst, f.others = {next}, f.seconds = seconds;
    f.what = fmt::format("{} is all that reads {}, both element by element, and they are two kernels",
                         m.inst_name(next), in.in_words(k.inst));
    f.advice = "see what keeps them apart: hlo-replay explain … --why-not (a barrier, a layout, a custom call between)";
    out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

std::vector<ModuleFinding> tiny_products(const FindingsInput& in) {
  constexpr double kLaunch = 2e-6;  // seconds, at least, of a kernel on today's cards
  const Module& m = in.m;
  double runs = 0, most = 0, flops = 0, seconds = 0;
  std::vector<const KernelCost*> found;
  for (const KernelCost& k : in.cost.kernels) {
    // Not what matrix units could reach at best: a quarter of the plain units' rate and of the memory's.
    const double one = std::max(k.cost.bytes() / (in.device.memory_gb_s * 1e9),
                                k.cost.flops / (in.device.vector_tflops(Arithmetic::kF32) * 1e12));
    if (one * 4 > kLaunch || !kernel_product(m, k.inst).valid()) continue;
    found.push_back(&k);
    runs += k.times, most = std::max(most, k.cost.flops), flops += k.cost.flops * k.times, seconds += k.seconds;
  }
  if (runs < 16 || !in.matters(runs * kLaunch, 0.05)) return {};
  std::stable_sort(found.begin(), found.end(), [](auto* x, auto* y) { return x->times > y->times; });
  ModuleFinding f;
  f.kind = "tiny-products", f.inst = found[0]->inst, f.seconds = seconds;
  for (const KernelCost* k : found) f.others.push_back(k->inst);
  f.what = fmt::format(
      "{} products run {:.0f} times in each call, none of more than {}: each needs less time than the "
      "launch of a kernel",
      found.size(), runs, flops_text(most));
  f.advice = "batch them (vmap, a larger batch, one product of concatenated operands)";
  return {f};
}

std::vector<ModuleFinding> padded_products(const FindingsInput& in) {
  const Module& m = in.m;
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels) {
    if (!in.counts(k.seconds)) continue;
    InstId pad = first_operation(m, k.inst, [&](InstId i) { return m.op(i) == Opcode::Pad; });
    if (!pad.valid() || !all_operations(m, k.inst, [&](InstId i) {
          const Opcode op = m.op(i);
          return op == Opcode::Pad || op == Opcode::Bitcast || op == Opcode::Constant || op == Opcode::Convert ||
                 op == Opcode::Copy;
        }))
      continue;
    // Zeros between the elements, as of a gradient of a strided convolution, are no padding that a model asks for.
    const auto* padding = m.attrs(pad).get<std::vector<PaddingDim>>(Attr::padding);
    if (!padding || std::any_of(padding->begin(), padding->end(), [](const PaddingDim& d) { return d.interior != 0; }))
      continue;
    const Shape &from = m.shape(m.operand(pad, 0)), &to = m.shape(pad);
    if (!from.is_array() || to.elements_count() <= from.elements_count()) continue;
    std::vector<InstId> users = readers(m, k.inst);
    auto product = std::find_if(users.begin(), users.end(), [&](InstId u) { return kernel_product(m, u).valid(); });
    if (product == users.end()) continue;
    ModuleFinding f;
    f.kind = "padded-product", f.inst = k.inst, f.others = {*product}, f.seconds = k.seconds, f.odd = pad;
    f.what =
        fmt::format("{} is padded to {} for the product {}, {}", m.u().shape_text_plain(m.shape_id(m.operand(pad, 0))),
                    m.u().shape_text_plain(m.shape_id(pad)), m.inst_name(*product), runs_text(k.times));
    const bool uneven =
        padding && std::any_of(padding->begin(), padding->end(), [](const PaddingDim& d) { return d.low != d.high; });
    const bool convolution = kernel_class(m, *product) == "convolution";
    // Is each dimension that is padded one that tensor cores do not take, made one that they do?
    bool eights = true;
    for (size_t d = 0; d < padding->size() && d < from.dims.size(); ++d)
      eights &= from.dims[d] == to.dims[d] || (from.dims[d] % 8 != 0 && to.dims[d] % 8 == 0);
    f.advice = convolution && uneven
                   ? "the padding differs between the two sides; a symmetric one needs no separate kernel"
               : convolution ? "its padding could be in the convolution's window"
               : eights ? "make the dimension in the model such that the product needs no padding (a multiple of 8)"
                        : "ask which pass pads it: hlo-replay explain";
    out.push_back(std::move(f));
  }
  return worth_telling(in, std::move(out));
}

std::vector<ModuleFinding> repeated_gathers(const FindingsInput& in) {
  const Module& m = in.m;
  // Table, rows asked for, how, and where: the first of each kind.
  using Key = std::tuple<InstId, InstId, AttrsId, std::vector<int64_t>, CompId>;
  std::map<Key, std::pair<InstId, InstId>> first;  // gather, kernel
  std::vector<ModuleFinding> out;
  std::vector<const KernelCost*> kernels;
  for (const KernelCost& k : in.cost.kernels) kernels.push_back(&k);
  std::sort(kernels.begin(), kernels.end(), [](auto* a, auto* b) { return a->inst < b->inst; });
  for (const KernelCost* k : kernels) {
    auto look = [&](InstId i) {
      if (m.op(i) != Opcode::Gather) return;
      InstId table = in.origin_in_fusion(m.operand(i, 0), k->inst),
             rows = in.origin_in_fusion(m.operand(i, 1), k->inst);
      auto [at, fresh] =
          first.try_emplace({table, rows, m[i].attrs, m.shape(i).dims, m.parent(k->inst)}, std::pair(i, k->inst));
      const double seconds = 2 * array_size(m, i) * k->times / (in.device.memory_gb_s * 1e9);
      if (fresh || at->second.second == k->inst || !in.counts(seconds)) return;
      ModuleFinding f;
      f.kind = "repeated-gather", f.inst = k->inst, f.others = {at->second.second, table, rows}, f.seconds = seconds;
      f.what = fmt::format("the same rows of {} are gathered in {} and in {}", in.in_words(table),
                           m.inst_name(at->second.second), m.inst_name(k->inst));
      f.advice = "gather once and hand the result on";
      out.push_back(std::move(f));
    };
    if (m.op(k->inst) != Opcode::Fusion)
      look(k->inst);
    else
      for (InstId i : m.post_order(m.called(k->inst)[0])) look(i);
  }
  return worth_telling(in, std::move(out));
}

std::vector<ModuleFinding> all_findings(const FindingsInput& in) {
  std::vector<ModuleFinding> out;
  for (auto find :
       {transposed_parameters, wide_products, copies_at_loops, unfused_chains, tiny_products, padded_products,
        missing_donation, repeated_gathers, one_hot_products, constants_in_loops, single_readers, sorts_for_a_few,
        distances_by_differences, expanded_operands, products_without_state, retyped_state}) {
    std::vector<ModuleFinding> some = find(in);
    out.insert(out.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  donation_with_copies(&out);
  std::stable_sort(out.begin(), out.end(), [](const ModuleFinding& x, const ModuleFinding& y) {
    return std::pair(x.seconds, x.bytes) > std::pair(y.seconds, y.bytes);
  });
  return out;
}

}  // namespace hlo
