// triton-softmax-rewriter (xla/backends/gpu/transforms/softmax_rewriter_triton.cc): a value and what its rows sum up
// to, or their largest, meet again in an operation of both (a diamond: softmax is two in a row, a norm one). All of it
// becomes a kernel of tiles, where that is faster than what the fusions would make of it.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/performance/gpu_performance_model.h"
#include "passes/passes.h"
#include "passes/pipelines/pipelines.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

bool default_layout(const Module& m, InstId i) {
  const Shape& s = m.shape(i);
  return s.is_array() && s.has_layout && is_default_layout(s.layout);
}

// One value, spread: a constant, or a whole parameter.
bool is_splat(const Module& m, InstId i) {
  return is_broadcast_of_scalar_constant(m, i) ||
         (m.op(i) == Opcode::Broadcast && m.op(m.operand(i, 0)) == Opcode::Parameter);
}

// Instructions of a diamond. XLA has no limit; real ones have some twenty, and the time to price one grows with their
// square (priority-fusion's own).
constexpr size_t kMostInside = 1000;

// From `producer`, which both branches read, to `root`, where they meet.
struct Diamond {
  InstId root, producer;
};

class DiamondMatcher {
 public:
  DiamondMatcher(const Module& m, const GpuTarget& target) : m_(m), target_(target) {}

  // Why `root` is none, in XLA's words; empty where `found` is filled. `near`: it had a reduction at least.
  std::string refuse(InstId root, Diamond* found, bool* near) const {
    *near = false;
    if (!is_elementwise(m_, root) || m_.operand_count(root) != 2) return "Root is not elementwise binary.";
    const InstId broadcast = end(m_.operand(root, 1), Opcode::Broadcast);
    if (!broadcast.valid()) return "Could not find a trivial connection from root to a broadcast.";
    const InstId reduce = end(m_.operand(broadcast, 0), Opcode::Reduce);
    if (!reduce.valid()) return "Could not find a trivial connection from matched broadcast to a reduction.";
    *near = true;
    if (!supported(root)) return "Root is not supported for Triton instruction.";
    if (std::string why = refuse_pair(broadcast, reduce); !why.empty()) return why;
    const InstId producer = end(m_.operand(reduce, 0));
    if (!default_layout(m_, producer)) return "Producer has non-default layout.";
    if (!connected(producer, m_.operand(root, 0))) return "Producer is not trivially connected.";
    if (producer != m_.operand(root, 0) && m_.user_count(m_.operand(root, 0)) != 1)
      return "Unsupported root-producer connection.";
    *found = {root, producer};
    return "";
  }

 private:
  bool supported(InstId i) const { return refuse_triton(m_, i, target_).empty(); }

  // It goes into the kernel whatever its tiles are, and reads nothing more: one array, and values that are spread.
  bool is_trivial(InstId i) const {
    if (m_.user_count(i) > 1 || !default_layout(m_, i)) return false;
    if (m_.op(i) == Opcode::Bitcast) return true;
    if (!is_elementwise(m_, i)) return false;
    if (m_.operand_count(i) == 2) {
      const InstId a = m_.operand(i, 0), b = m_.operand(i, 1);
      return (a == b || is_splat(m_, a) != is_splat(m_, b)) && supported(i);
    }
    return m_.operand_count(i) == 1 && supported(i);
  }
  // The operand that is no spread value.
  InstId next(InstId i) const {
    return m_.operand(i, m_.operand_count(i) > 1 && is_splat(m_, m_.operand(i, 0)) ? 1 : 0);
  }
  // Where the trivial ones behind i end, i among them. Each is walked once: a chain may be as long as the module.
  InstId end(InstId i) const {
    std::vector<InstId> path;
    auto known = ends_.find(i);
    for (; known == ends_.end() && is_trivial(i); known = ends_.find(i)) {
      path.push_back(i);
      i = next(i);
    }
    if (known != ends_.end()) i = known->second;
    for (InstId p : path) ends_[p] = i;
    return i;
  }
  InstId end(InstId i, Opcode op) const {
    const InstId e = end(i);
    return m_.op(e) == op ? e : InstId();
  }
  // As XLA walks: behind an instruction of the producer's opcode it takes the first operand, spread or not.
  bool connected(InstId producer, InstId i) const {
    for (; i != producer; i = m_.op(i) == m_.op(producer) ? m_.operand(i, 0) : next(i))
      if (!is_trivial(i)) return false;
    return true;
  }

  std::string refuse_pair(InstId broadcast, InstId reduce) const {
    if (!default_layout(m_, broadcast) || !default_layout(m_, reduce))
      return "Broadcast or reduce have non-default layouts.";
    if (std::string why = refuse_triton(m_, reduce, target_); !why.empty()) return why;
    const Dims& summed = m_.attrs(reduce).ints(Attr::dimensions);
    if (summed.size() != 1 || summed[0] != m_.shape(m_.operand(reduce, 0)).rank() - 1)
      return "The reductions in the diamond must reduce 1 dimension and that dimension must be the last dimension of "
             "the operand.";
    const InstId identity = m_.operand(reduce, 1);
    if (m_.op(identity) != Opcode::Constant &&
        !(m_.op(identity) == Opcode::Convert && m_.op(m_.operand(identity, 0)) == Opcode::Constant &&
          supported(identity)))
      return "Reduction identity is not a constant or a supported convert of a constant.";
    if (m_.user_count(broadcast) != 1 || m_.user_count(reduce) != 1) return "More than one use of broadcast or reduce.";
    const Dims& kept = m_.attrs(broadcast).ints(Attr::dimensions);
    if (std::find(kept.begin(), kept.end(), m_.shape(broadcast).rank() - 1) != kept.end())
      return "Broadcast is not along the reduction dimension.";
    return "";
  }

  const Module& m_;
  const GpuTarget& target_;
  mutable std::unordered_map<InstId, InstId> ends_;
};

// What is computed inside, and the parameters of the computation that are read besides the producer, in the order in
// which XLA copies them: operands first, as the root reaches them.
std::vector<InstId> inside(const Module& m, const Diamond& d) {
  std::vector<InstId> out;
  std::unordered_set<InstId> seen{d.producer};
  std::vector<std::pair<InstId, size_t>> stack{{d.root, 0}};
  while (!stack.empty()) {
    auto& [i, n] = stack.back();
    if (n == 0 && seen.contains(i)) {
      stack.pop_back();
    } else if (n < m.operand_count(i)) {
      const InstId o = m.operand(i, n++);
      if (!seen.contains(o)) stack.push_back({o, 0});
    } else {
      if (seen.insert(i).second) out.push_back(i);
      stack.pop_back();
    }
  }
  return out;
}

// A diamond as a computation in a module, its own or another one over the same universe.
class DiamondCopy {
 public:
  // `from` is read while instructions are added to `to`, which may be the same.
  DiamondCopy(const Module& from, const Diamond& d, Module& to) : from_(from), to_(to) {
    body_ = to.add_computation("triton_softmax_computation");
    parameter(d.producer);
    for (InstId i : inside(from, d)) {
      if (from.op(i) == Opcode::Parameter)
        parameter(i);
      else
        copy(i);
    }
    to.set_root(body_, inner_.at(d.root));
  }
  CompId body() const { return body_; }
  // Of the module it was taken from, one for each parameter.
  const std::vector<InstId>& read() const { return read_; }
  // Added to a computation of `to`.
  InstId fusion(CompId comp, const std::vector<InstId>& operands, const std::string& config) {
    Universe& u = to_.u();
    const AttrsId attrs =
        attrs_of(u, Opcode::Fusion,
                 {{Attr::kind, u.str("kCustom")}, {Attr::calls, body_}, {Attr::backend_config, u.str(config)}});
    const InstId fusion = to_.add(
        comp,
        {.op = Opcode::Fusion, .shape = to_.shape_id(to_.comp(body_).root), .operands = operands, .attrs = attrs});
    to_.set_uniquified_name(fusion, "triton_softmax");
    return fusion;
  }

 private:
  void parameter(InstId of) {
    const auto n = static_cast<int64_t>(read_.size());
    inner_[of] = to_.parameter(body_, n, from_.shape_id(of), fmt::format("parameter_{}", n));
    read_.push_back(of);
  }
  void copy(InstId i) {
    std::vector<InstId> operands;
    for (InstId o : from_.operands(i)) operands.push_back(inner_.at(o));
    inner_[i] = &from_ == &to_ ? to_.clone_inst(i, body_, operands) : foreign(i, operands, body_);
  }
  InstId foreign(InstId i, const std::vector<InstId>& operands, CompId into) {
    const bool payload = from_.op(i) == Opcode::Constant || from_.op(i) == Opcode::Parameter;
    const InstId made = to_.add(into, {.op = from_.op(i),
                                       .shape = from_.shape_id(i),
                                       .operands = operands,
                                       .attrs = from_[i].attrs,
                                       .payload = payload ? from_[i].operand[0] : 0});
    // What Triton takes of those that call something is a reduce, and no reducer that calls something itself.
    for (CompId c : std::vector<CompId>(from_.called(i))) to_.replace_called(made, c, reducer(c));
    return made;
  }
  CompId reducer(CompId of) {
    const CompId made = to_.add_computation(from_.comp_name(of));
    std::unordered_map<InstId, InstId> map;
    for (InstId i : from_.post_order(of)) {
      std::vector<InstId> operands;
      for (InstId o : from_.operands(i)) operands.push_back(map.at(o));
      map[i] = foreign(i, operands, made);
    }
    to_.set_root(made, map.at(from_.comp(of).root));
    return made;
  }

  const Module& from_;
  Module& to_;
  CompId body_;
  std::vector<InstId> read_;
  std::unordered_map<InstId, InstId> inner_;
};

// The passes between this one and the end of the fusions that see what is left apart.
const std::vector<Step>& passes_without() {
  static const std::vector<Step> kSteps = [] {
    std::vector<Step> out;
    for (const Step& pipeline : *find_pipeline("xla-gpu")) {
      if (pipeline.name == "fusion") out.push_back(pipeline);
      if (pipeline.name != "hlo_normalization") continue;
      Step reductions{"reduction_pipeline", {}, {}};
      for (const Step& s : pipeline.children)
        for (std::string_view name : {"reduction-dimension-grouper", "reduction-splitter", "tree-reduction-rewriter"})
          if (s.name == name) reductions.children.push_back(s);
      out.push_back(std::move(reductions));
    }
    return out;
  }();
  return kSteps;
}

// What is known of a diamond before the module is touched.
struct Decision {
  Diamond diamond;
  std::string config;  // of the kernel; empty: left apart
  std::string why;     // the times, or what refuses
};

class SoftmaxRewriter {
 public:
  SoftmaxRewriter(Module& m, PassContext& ctx, const GpuTarget& target) : m_(m), ctx_(ctx), target_(target) {}

  bool run() {
    find();
    // Last first: the root of one may be the producer of the next.
    bool begun = false;
    std::vector<const Decision*> apart;
    for (auto d = decisions_.rbegin(); d != decisions_.rend(); ++d) {
      const auto [root, producer] = d->diamond;
      if (d->config.empty()) {
        ctx_.note(m_, "not fused", {root, producer}, d->why);
        apart.push_back(&*d);
        continue;
      }
      if (!ctx_.spend(m_, "diamond", {root, producer}, d->why)) break;
      if (!std::exchange(begun, true)) try_all();
      leave(&apart);
      DiamondCopy copy(m_, d->diamond, m_);
      m_.replace(root, copy.fusion(m_.parent(root), copy.read(), d->config));
    }
    if (begun) leave(&apart);
    return begun;
  }

 private:
  void find() {
    const DiamondMatcher matcher(m_, target_);
    const std::vector<std::vector<InstId>> callers = m_.callers();
    for (CompId c : m_.nonfusion_computations()) {
      if (c.value < callers.size() && std::any_of(callers[c.value].begin(), callers[c.value].end(),
                                                  [&](InstId i) { return m_.op(i) == Opcode::CustomCall; }))
        continue;
      for (InstId i : m_.post_order(c)) {
        Decision d;
        bool near = false;
        std::string why = matcher.refuse(i, &d.diamond, &near);
        if (why.empty() && m_.has_control(i)) why = "It has control dependencies.";
        if (why.empty()) why = decide(&d);
        if (why.empty())
          decisions_.push_back(std::move(d));
        else if (near)
          ctx_.note(m_, "not fused", {i}, why);
      }
    }
  }

  // Why it is no diamond after all; else empty, and the decision is made.
  std::string decide(Decision* d) const {
    const size_t count = inside(m_, d->diamond).size();
    if (count > kMostInside)
      return fmt::format("It has {} instructions; more than {} are not estimated here.", count, kMostInside);
    Module alone(m_.universe());
    DiamondCopy copy(m_, d->diamond, alone);
    const CompId outer = alone.add_computation("outer");
    std::vector<InstId> arguments;
    for (InstId i : copy.read())
      arguments.push_back(alone.parameter(outer, static_cast<int64_t>(arguments.size()), m_.shape_id(i), "argument"));
    const InstId fusion = copy.fusion(outer, arguments, "");
    alone.set_root(outer, fusion);
    const FusionView view(alone, fusion);
    if (!can_be_cut(view)) return "SymbolicTileAnalysis failed.";
    GpuCostAnalysis costs(alone);
    const std::optional<TritonTiles> tiles = GpuPerformanceModel(alone, target_, costs).best_tiles(view);
    if (!tiles) {
      d->why = "SymbolicTileAnalysis failed: No valid tilings found.";
      return "";
    }
    alone.set_entry(copy.body());
    alone.remove_computation(outer);
    const Ticks apart = time_apart(alone);
    d->why =
        fmt::format("{:.4g} us as one kernel, {:.4g} us apart", microseconds(tiles->time.total), microseconds(apart));
    if (apart >= tiles->time.total) d->config = tiles->config();
    return "";
  }

  // All kernels of a module that the passes to come have been through; what starts them is not counted.
  Ticks time_apart(Module& alone) const {
    PipelineOptions options;
    options.verify = options.keep_notes = false;
    options.given = {{"gpu", ctx_.word("gpu")}};
    run_pipeline(alone, passes_without(), options);
    GpuCostAnalysis costs(alone);
    GpuPerformanceModel model(alone, target_, costs);
    Ticks all = 0;
    for (InstId i : alone.live_order(alone.entry())) {
      const Opcode op = alone.op(i);
      if (op != Opcode::Parameter && op != Opcode::Constant && op != Opcode::Bitcast && op != Opcode::GetTupleElement)
        all += model.of(i).total;
    }
    return all;
  }

  // XLA makes the kernel of each to see whether it can be cut, and takes it back: names go by it.
  void try_all() {
    for (const Decision& d : decisions_) m_.remove_computation(leave(d));
  }
  // Of what it then leaves apart, the computation stays, called by nobody, until dce.
  CompId leave(const Decision& d) {
    DiamondCopy copy(m_, d.diamond, m_);
    m_.remove(copy.fusion(m_.parent(d.diamond.root), copy.read(), ""));
    return copy.body();
  }
  void leave(std::vector<const Decision*>* decisions) {
    for (const Decision* d : *decisions) leave(*d);
    decisions->clear();
  }

  Module& m_;
  PassContext& ctx_;
  const GpuTarget& target_;
  std::vector<Decision> decisions_;
};

}  // namespace

//   divide(x, broadcast(sqrt(reduce(multiply(x, x), 0))))      →      triton_softmax = fusion(x), kind=kCustom
bool run_triton_softmax_rewriter(Module& m, PassContext& ctx) {
  const GpuTarget target = named_gpu_target(ctx.word("gpu"));
  if (target.major < 8) return false;  // no Triton
  return SoftmaxRewriter(m, ctx, target).run();
}

}  // namespace hlo
