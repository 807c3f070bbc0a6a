// Findings that lead from what runs to what a program could say otherwise: lookups by products, constants that loops
// carry, values written for one reader, f32 by a scalar.
#include <algorithm>
#include <map>
#include <set>

#include "replay/record/match/match.h"
#include "replay/report/findings/findings_parts.h"

namespace hlo {
namespace {

constexpr int kMostMoves = 1000;  // along a chain of operands

// What a value is, seen through what only moves it.
InstId through_moves(const FindingsInput& in, InstId i, bool broadcasts) {
  for (int steps = 0; steps < kMostMoves; ++steps) {
    i = in.computed(i);
    if (!only_moves(in.m.op(i)) && !(broadcasts && in.m.op(i) == Opcode::Broadcast)) return i;
    i = in.m.operand(i, 0);
  }
  return i;
}

}  // namespace

InstId one_hot_rows(const FindingsInput& in, InstId i) {
  const Module& m = in.m;
  for (int steps = 0; steps < kMostMoves; ++steps) {
    i = through_moves(in, i, false);
    switch (m.op(i)) {
      case Opcode::Pad:
      case Opcode::Slice:
        i = m.operand(i, 0);
        break;
      case Opcode::Select: {
        auto constant = [&](size_t k) { return m.op(through_moves(in, m.operand(i, k), true)) == Opcode::Constant; };
        if (!constant(1) || !constant(2)) return {};
        i = m.operand(i, 0);
        break;
      }
      case Opcode::Compare: {
        if (m.u().text(m.attrs(i).text(Attr::direction)) != "EQ") return {};
        int iotas = 0;
        for (InstId o : m.operands(i)) iotas += m.op(through_moves(in, o, true)) == Opcode::Iota;
        return iotas == 1 ? i : InstId();
      }
      default:
        return {};
    }
  }
  return {};
}

namespace {

// Rows asked for, where the contracted dimension is the one that is counted through.
bool contracts_iota(const FindingsInput& in, InstId compare, InstId product) {
  const Module& m = in.m;
  // Rows of all classes: as many elements as the table has rows for each index. A library's call says nothing of it.
  const Shape& s = m.shape(compare);
  if (!s.is_array() || s.rank() < 1) return false;
  if (m.op(product) != Opcode::Dot) return true;
  for (InstId o : m.operands(compare)) {
    const InstId iota = through_moves(in, o, true);
    if (m.op(iota) != Opcode::Iota) continue;
    const int64_t along = m.attrs(iota).integer(Attr::iota_dimension);
    if (along < 0 || along >= m.shape(iota).rank()) return false;
    const int64_t classes = m.shape(iota).dims[static_cast<size_t>(along)];
    int64_t contracted = 1;
    for (int64_t d : m.attrs(product).ints(Attr::lhs_contracting_dims))
      if (d >= 0 && d < m.shape(m.operand(product, 0)).rank())
        contracted *= m.shape(m.operand(product, 0)).dims[static_cast<size_t>(d)];
    // Padded by a pass, or split into parts, it is no less.
    return contracted >= classes || contracted * 256 >= classes;
  }
  return false;
}

// Seconds of the kernels that write rows of ones for this one alone: they go with it.
double rows_alone(const FindingsInput& in, InstId kernel) {
  const Module& m = in.m;
  double out = 0;
  for (InstId o : m.operands(kernel)) {
    const InstId from = in.origin(o);
    const KernelCost* cost = in.kernel(from);
    if (!cost || !m.shape(from).is_array() || !one_hot_rows(in, from).valid()) continue;
    const std::vector<InstId> all = readers(m, from);
    if (std::all_of(all.begin(), all.end(), [&](InstId u) { return u == kernel; })) out += cost->seconds;
  }
  return out;
}

}  // namespace

std::vector<ModuleFinding> one_hot_products(const FindingsInput& in) {
  const Module& m = in.m;
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels)
    for (InstId product : kernel_products(m, k.inst)) {
      if (!in.counts(k.seconds) || m.operand_count(product) < 2) continue;
      for (size_t side = 0; side < 2; ++side) {
        const InstId compare = one_hot_rows(in, m.operand(product, side));
        if (!compare.valid() || !contracts_iota(in, compare, product)) continue;
        const InstId table = through_moves(in, m.operand(product, 1 - side), false);
        ModuleFinding f;
        f.kind = "one-hot-product", f.inst = k.inst, f.odd = product, f.others = {compare};
        // A lookup reads the rows and writes them.
        const InstId written = m.op(product) == Opcode::Dot ? product : k.inst;
        f.seconds = std::max(
            0.0, product_seconds(m, k, product) - 2 * array_size(m, written) * k.times / (in.device.memory_gb_s * 1e9));
        f.seconds += rows_alone(in, k.inst);
        f.what = fmt::format("this product takes rows of {} by multiplying with ones at their places ({}), {}",
                             in.in_words(table), m.inst_name(compare), runs_text(k.times));
        f.advice = "take the rows: table[indices] instead of one_hot(indices) @ table";
        out.push_back(std::move(f));
        break;
      }
    }
  return worth_telling(in, std::move(out));
}

std::vector<ModuleFinding> constants_in_loops(const FindingsInput& in) {
  constexpr double kLeast = 1 << 20;  // bytes
  const Module& m = in.m;
  CostAnalysis trips(m);
  std::vector<ModuleFinding> out;
  for (CompId c : m.computations())
    for (InstId loop : m.comp(c).order) {
      if (!m.alive(loop) || m.op(loop) != Opcode::While) continue;
      const InstId init = m.operand(loop, 0), root = m.comp(m.attrs(loop).comp(Attr::body)).root;
      if (m.op(init) != Opcode::Tuple || m.op(root) != Opcode::Tuple) continue;
      const InstId state = m.comp(m.attrs(loop).comp(Attr::body)).params[0];
      for (size_t k = 0; k < m.operand_count(init) && k < m.operand_count(root); ++k) {
        const InstId handed = m.operand(root, k);
        const double bytes = array_size(m, m.operand(init, k));
        if (bytes < kLeast || m.op(handed) != Opcode::GetTupleElement || m.operand(handed, 0) != state ||
            static_cast<size_t>(m.attrs(handed).integer(Attr::index)) != k)
          continue;
        const InstId value = through_moves(in, m.operand(init, k), false);
        if (m.op(value) != Opcode::Broadcast || m.op(through_moves(in, value, true)) != Opcode::Constant) continue;
        const bool read =
            std::any_of(m.users(handed).begin(), m.users(handed).end(), [&](InstId u) { return u != root; });
        const double runs = std::max<double>(1, static_cast<double>(trips.trip_count(loop)));
        ModuleFinding f;
        f.kind = "constant-in-loop", f.inst = m.operand(init, k), f.odd = value, f.others = {loop}, f.bytes = bytes;
        f.seconds = (1 + (read ? runs : 0)) * bytes / (in.device.memory_gb_s * 1e9);
        f.what = fmt::format("the loop {} carries {} of one constant through all its steps", m.inst_name(loop),
                             size_text(bytes));
        f.advice = "create it in the body (jnp.zeros, jnp.full or the scalar): there it fuses into its users";
        out.push_back(std::move(f));
      }
    }
  return out;
}

std::vector<ModuleFinding> single_readers(const FindingsInput& in) {
  const Module& m = in.m;
  auto element_kernel = [&](InstId kernel) {
    if (!m.shape(kernel).is_array() || m.op(kernel) == Opcode::CustomCall) return false;
    return kernel_class(m, kernel) == "elementwise";
  };
  std::vector<ModuleFinding> out;
  for (const KernelCost& k : in.cost.kernels) {
    const double seconds = 2 * array_size(m, k.inst) * k.times / (in.device.memory_gb_s * 1e9);
    if (!in.matters(seconds) || m.is_root(k.inst) || !element_kernel(k.inst) || m.has_control(k.inst)) continue;
    const std::vector<InstId> users = readers(m, k.inst);
    if (users.empty() || std::any_of(users.begin(), users.end(), [&](InstId u) { return u != users[0]; })) continue;
    const InstId next = users[0];
    if (!in.kernel(next) || m.has_control(next) || m.op(next) == Opcode::CustomCall) continue;
    // A library's kernel in a fusion's clothes takes nothing into itself.
    if (m.op(next) == Opcode::Fusion && m.u().text(m.attrs(next).text(Attr::kind)) == "kCustom") continue;
    const std::string reader = kernel_class(m, next);
    if (reader != "reduction" && reader != "transpose" && reader != "data movement") continue;
    ModuleFinding f;
    f.kind = "single-reader", f.inst = k.inst, f.others = {next}, f.seconds = seconds;
    f.what = fmt::format("{} is written for {} alone ({}) and could be computed there", in.in_words(k.inst),
                         m.inst_name(next), reader);
    f.advice = fmt::format("see what keeps them apart: hlo-replay explain … --why-not {} {}", m.inst_name(k.inst),
                           m.inst_name(next));
    out.push_back(std::move(f));
  }
  return out;
}

namespace {

// One place of the program: a promotion that nobody wrote stands where the operation stands, to the column.
bool same_place(const Module& m, InstId a, InstId b) {
  const Metadata &x = m.u()[m[a].meta], &y = m.u()[m[b].meta];
  if (x.stack_frame_id > 0 || y.stack_frame_id > 0) return x.stack_frame_id == y.stack_frame_id;
  return x.source_file != StrId::kNone && x.source_file == y.source_file && x.source_line == y.source_line &&
         x.source_column > 0 && x.source_column == y.source_column;
}

}  // namespace

std::set<InstId> wide_behind(const Module& m, const std::vector<std::vector<InstId>>& callers, InstId from) {
  std::set<InstId> seen{from};
  std::vector<InstId> list{from};
  auto go = [&](InstId i) {
    if (seen.insert(i).second) list.push_back(i);
  };
  for (size_t k = 0; k < list.size(); ++k) {
    const InstId i = list[k];
    if (m.is_root(i) && m.parent(i) != m.entry())
      for (InstId caller : callers[m.parent(i).value])
        if (m.op(caller) == Opcode::Call) go(caller);
    for (InstId u : m.users(i)) {
      if (m.op(u) == Opcode::Call) {
        for (size_t o = 0; o < m.operand_count(u); ++o)
          if (m.operand(u, o) == i) go(m.comp(m.called(u)[0]).params[o]);
      } else if (m.shape(u).is_array() && m.shape(u).type == ElementType::F32) {
        go(u);
      }
    }
  }
  return seen;
}

namespace {

struct WideningScalar {
  InstId convert, meets;
};
std::vector<WideningScalar> widening_scalars(const FindingsInput& first) {
  const Module& m = first.m;
  std::vector<WideningScalar> out;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i) || m.op(i) != Opcode::Convert || m.shape(i).type != ElementType::F32 ||
          !is_narrow(m.shape(m.operand(i, 0)).type) || m.user_count(i) != 1)
        continue;
      const InstId meets = m.users(i)[0];
      if (!op_info(m.op(meets)).elementwise || m.operand_count(meets) != 2 || !same_place(m, i, meets)) continue;
      const InstId other = m.operand(meets, m.operand(meets, 0) == i ? 1 : 0);
      if (other == i) continue;
      InstId scalar = other;
      for (int steps = 0; steps < kMostMoves; ++steps) {
        scalar = first.computed(scalar);
        if (m.op(scalar) != Opcode::Broadcast && m.op(scalar) != Opcode::Reshape) break;
        scalar = m.operand(scalar, 0);
      }
      if (m.op(scalar) == Opcode::Constant && m.shape(scalar).rank() == 0) out.push_back({i, meets});
    }
  return out;
}

}  // namespace

std::vector<InstId> scalar_meets(const Module& m) {
  const ModuleCost none;
  std::vector<InstId> out;
  for (const WideningScalar& s : widening_scalars(FindingsInput(m, none, default_device_spec())))
    out.push_back(s.meets);
  return out;
}

std::vector<ModuleFinding> scalars_that_widen(const FindingsInput& in, Provenance& stages) {
  if (!stages.known()) return {};
  const Module& first = stages.module(0);
  const ModuleCost none;
  const FindingsInput looked(first, none, in.device);
  const std::vector<WideningScalar> scalars = widening_scalars(looked);
  if (scalars.empty()) return {};
  const std::vector<std::vector<InstId>> callers = first.callers();
  std::map<std::string, size_t> by_place;  // in `out`: a line of a loop that was unrolled is one
  std::set<InstId> taken;                  // kernels, by the first of the scalars that reach them
  std::vector<std::pair<const KernelCost*, InstId>> kernels;
  for (const KernelCost& k : in.cost.kernels) {
    const InstId product = kernel_product(in.m, k.inst);
    kernels.emplace_back(&k, stages.first(product.valid() ? product : k.inst));
  }
  std::vector<ModuleFinding> out;
  for (const WideningScalar& s : scalars) {
    const std::set<InstId> wide = wide_behind(first, callers, s.meets);
    ModuleFinding f;
    f.kind = "widened-by-scalar";
    for (const auto& [k, origin] : kernels) {
      if (!origin.valid() || !wide.contains(origin) || !taken.insert(k->inst).second) continue;
      if (!f.inst.valid()) f.inst = k->inst;
      f.others.push_back(k->inst), f.seconds += k->seconds;
    }
    if (!f.inst.valid()) continue;
    f.evidence.whose = FindingEvidence::kProgram;
    f.evidence.first_stage = stages.first_stage(), f.evidence.stage = stages.label(0);
    f.evidence.first = first.inst_name(s.convert);
    f.evidence.line = source_line(first, s.meets), f.evidence.stack = source_stack(first, s.meets);
    f.evidence.op_name = op_name_of(first, s.meets);
    f.advice = "give the scalar the array's type (a Python number, or .astype(x.dtype))";
    const std::string place = f.evidence.line.known() ? f.evidence.line.text() : f.evidence.first;
    auto [at, fresh] = by_place.try_emplace(place, out.size());
    if (fresh) {
      out.push_back(std::move(f));
    } else {
      out[at->second].seconds += f.seconds;
      out[at->second].others.insert(out[at->second].others.end(), f.others.begin(), f.others.end());
    }
    ModuleFinding& kept = out[at->second];
    kept.what =
        fmt::format("{} becomes f32 here because it meets an f32 scalar ({}); {} kernels after it work in f32",
                    type_name(first.shape(first.operand(s.convert, 0)).type), kept.evidence.first, kept.others.size());
  }
  return worth_telling(in, std::move(out));
}

}  // namespace hlo
