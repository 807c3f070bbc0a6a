// call-inliner (xla/service/call_inliner.cc) and flatten-call-graph
// (xla/hlo/transforms/simplifiers/flatten_call_graph.cc).
#include <algorithm>
#include <unordered_map>

#include "ir/base/checked.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {

namespace {

bool inlineable(const Module& m, InstId call) {
  if (m.op(call) != Opcode::Call) return false;
  const AttrSet& a = m.attrs(call);
  std::string_view fa = m.u().text(a.text(Attr::frontend_attributes));
  auto value = [&](std::string_view word) {
    return fa.find("inlineable=\"" + std::string(word) + "\"") != std::string_view::npos;
  };
  if (value("true") || value("xla_early")) return true;
  if (value("false") || value("xla_late")) return false;
  if (a.has(Attr::backend_config)) return false;
  return !m.comp(m.parent(call)).thread.valid();
}

MetaId prefixed(Module& m, MetaId meta, MetaId call) {
  Universe& u = m.u();
  std::string_view prefix = u.text(StrId(u[call].op_name)), name = u.text(StrId(u[meta].op_name));
  if (prefix.empty() || name.empty() || name.starts_with(prefix)) return meta;
  Metadata out = u[meta];
  out.op_name = u.str(std::string(prefix) + "/" + std::string(name)).value;
  return u.metadata(out);
}

}  // namespace

bool inline_computation(Module& m, InstId call, CompId callee, std::span<const InstId> arguments, bool prefix) {
  CompId caller = m.parent(call);
  std::unordered_map<InstId, InstId> map;
  for (size_t i = 0; i < arguments.size(); ++i) map[m.comp(callee).params[i]] = arguments[i];
  std::vector<InstId> order;
  visit_computation(m, callee, [&](InstId i) { order.push_back(i); });
  std::vector<InstId> before(m.control_preds(call).begin(), m.control_preds(call).end());
  MetaId call_meta = m[call].meta;
  for (InstId i : order) {
    if (m.op(i) == Opcode::Parameter) continue;
    std::vector<InstId> ops;
    for (InstId o : m.operands(i)) ops.push_back(map.at(o));
    InstId copy = m.clone_inst(i, caller, ops);
    if (prefix && call_meta.valid()) m.set_meta(copy, prefixed(m, m[copy].meta, call_meta));
    std::vector<InstId> preds(m.control_preds(i).begin(), m.control_preds(i).end());
    for (InstId p : preds)
      if (auto found = map.find(p); found != map.end()) m.add_control(found->second, copy);
    for (InstId p : before) m.add_control(p, copy);
    map[i] = copy;
  }
  return m.replace(call, map.at(m.comp(callee).root), {.relay_control = true, .remove_unused = false});
}

namespace {
// A computation is copied into each of its calls: two calls a level make 2^n copies of the last, which are refused
// before the first is made. `calls_only`: only `call` is followed.
void check_unfolded_size(const Module& m, const std::vector<CompId>& callees_first, bool calls_only) {
  constexpr int64_t kMost = int64_t{1} << 24;
  std::vector<Checked> size(m.comp_slots(), Checked(0));
  for (CompId c : callees_first) {
    Checked all = 0;
    int64_t own = 0;
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i)) continue;
      ++own;
      if (!calls_only || m.op(i) == Opcode::Call)
        for (CompId callee : m.called(i)) all += size[callee.value];
    }
    size[c.value] = all += own;
    if (all.capped() > kMost)
      fail(FailureKind::kUnsupported, "with a copy of what it calls for each call {} has more than {} instructions",
           m.comp_name(c), kMost);
  }
}
}  // namespace

bool run_call_inliner(Module& m, PassContext& ctx) {
  const std::vector<CompId> callees_first = m.computation_post_order();
  check_unfolded_size(m, callees_first, true);
  bool changed = false, prefix = ctx.flag("op_name_prefix");
  // A computation's calls are inlined after those inside its callees.
  for (CompId c : callees_first) {
    if (!m.comp(c).alive) continue;
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || !inlineable(m, i)) continue;
      if (!ctx.spend(m, "call inlined", {i}, m.comp_name(m.called(i)[0]))) return changed;
      std::vector<InstId> arguments(m.operands(i).begin(), m.operands(i).end());
      changed |= inline_computation(m, i, m.called(i)[0], arguments, prefix);
    }
  }
  if (changed) ctx.run(m, "dce");
  return changed;
}

namespace {

// One place that calls a computation: the `which`-th of those that the caller calls.
struct CallSite {
  InstId caller;
  size_t which;
};

// Every place that calls a computation that others call, too, by that computation, in the order of computations and
// instructions.
std::unordered_map<CompId, std::vector<CallSite>> shared_call_sites(const Module& m) {
  std::vector<CallSite> all;
  std::vector<uint32_t> count(m.comp_slots(), 0);
  for (CompId from : m.computations())
    for (InstId i : m.comp(from).order) {
      if (!m.alive(i)) continue;
      const auto& called = m.called(i);
      for (size_t k = 0; k < called.size(); ++k) all.push_back({i, k}), ++count[called[k].value];
    }
  std::unordered_map<CompId, std::vector<CallSite>> sites;
  for (const CallSite& site : all)
    if (const CompId c = m.called(site.caller)[site.which]; count[c.value] > 1) sites[c].push_back(site);
  return sites;
}

// Points one call elsewhere.
void redirect(Module& m, CallSite site, CompId to) {
  AttrSet set = m.attrs(site.caller);
  const std::vector<CompId> called = set.called;
  CompId from = called[site.which];
  // Its position among the calls of the same computation, in the order of `called`.
  auto nth = std::count(called.begin(), called.begin() + static_cast<ptrdiff_t>(site.which), from);
  ptrdiff_t seen = 0;
  for (auto& [key, value] : set.list) {
    if (CompId* one = std::get_if<CompId>(&value); one && *one == from && seen++ == nth) *one = to;
    if (auto* many = std::get_if<std::vector<CompId>>(&value))
      for (CompId& v : *many)
        if (v == from && seen++ == nth) v = to;
  }
  m.set_attrs(site.caller, m.u().attrs(std::move(set)));
}

// A copy of the computation and of everything below it.
CompId clone_deep(Module& m, CompId c) {
  CompId copy = m.clone_computation(c, "clone");
  std::vector<CompId> worklist{copy};
  while (!worklist.empty()) {
    CompId at = worklist.back();
    worklist.pop_back();
    for (InstId i : m.live_order(at))
      for (size_t k = 0; k < m.called(i).size(); ++k) {
        CompId inner = m.called(i)[k];
        if (m.op(i) != Opcode::Fusion)  // whose body was copied with it
          redirect(m, {i, k}, inner = m.clone_computation(inner, "clone"));
        worklist.push_back(inner);
      }
  }
  return copy;
}

}  // namespace

// Before: two callers of %f. After: the second calls %f.clone, whose callees are clones too. Reducers count as well.
bool run_flatten_call_graph(Module& m, PassContext& ctx) {
  const std::vector<CompId> callees_first = m.computation_post_order();
  check_unfolded_size(m, callees_first, false);
  bool changed = false;
  // A clone calls clones only: no computation gets a further caller while this goes on.
  const auto all = shared_call_sites(m);
  for (CompId c : callees_first) {
    auto found = all.find(c);
    if (found == all.end()) continue;
    // The first caller keeps the computation, unless it calls it twice.
    const std::vector<CallSite>& sites = found->second;
    const bool twice = sites.size() > 1 && sites[0].caller == sites[1].caller;
    for (size_t s = twice ? 0 : 1; s < sites.size(); ++s) {
      CallSite site = sites[s];
      if (!ctx.spend(m, "computation cloned for its caller", {site.caller}, m.comp_name(c))) return changed;
      changed = true;
      redirect(m, site, clone_deep(m, c));
    }
  }
  return changed;
}

}  // namespace hlo
