// call-inliner (xla/service/call_inliner.cc) and flatten-call-graph (xla/service/flatten_call_graph.cc).
#include <algorithm>
#include <unordered_map>

#include "passes/rewrite.h"

namespace hlo {

bool run_dce(Module&, PassContext&);

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

bool inline_call(Module& m, InstId call, bool prefix) {
  CompId caller = m.parent(call), callee = m.called(call)[0];
  std::unordered_map<InstId, InstId> map;
  std::vector<InstId> arguments(m.operands(call).begin(), m.operands(call).end());
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

}  // namespace

bool run_call_inliner(Module& m, PassContext& ctx) {
  bool changed = false, prefix = ctx.flag("op_name_prefix", true);
  // A computation's calls are inlined after those inside its callees.
  for (CompId c : m.computation_post_order()) {
    if (!m.comp(c).alive) continue;
    for (InstId i : m.post_order(c)) {
      if (!m.alive(i) || !inlineable(m, i)) continue;
      if (!ctx.spend(m, "call inlined", {i}, m.comp_name(m.called(i)[0]))) return changed;
      changed |= inline_call(m, i, prefix);
    }
  }
  if (changed) {
    PassContext inner;
    inner.keep_notes = false;
    run_dce(m, inner);
  }
  return changed;
}

bool run_flatten_call_graph(Module& m, PassContext& ctx) {
  bool changed = false;
  auto order = m.computation_post_order();
  for (CompId c : order) {
    struct Site {
      InstId caller;
      size_t which;  // among the computations it calls
    };
    std::vector<Site> sites;
    for (CompId from : m.computations())
      for (InstId i : m.comp(from).order)
        if (m.alive(i)) {
          const auto& called = m.called(i);
          for (size_t k = 0; k < called.size(); ++k)
            if (called[k] == c) sites.push_back({i, k});
        }
    if (sites.size() < 2) continue;
    for (size_t s = 1; s < sites.size(); ++s) {
      if (!ctx.spend(m, "computation cloned for its caller", {sites[s].caller}, m.comp_name(c))) return changed;
      changed = true;
      // Points the k-th call of an instruction elsewhere.
      auto redirect = [&](InstId i, size_t k, CompId to) {
        AttrSet set = m.attrs(i);
        std::vector<CompId> called = set.called;
        CompId from = called[k];
        // Position among the equal ones, in the order of `called`.
        size_t nth = static_cast<size_t>(std::count(called.begin(), called.begin() + static_cast<ptrdiff_t>(k), from));
        size_t seen = 0;
        for (auto& [key, value] : set.list) {
          if (CompId* one = std::get_if<CompId>(&value); one && *one == from && seen++ == nth) *one = to;
          if (auto* many = std::get_if<std::vector<CompId>>(&value))
            for (CompId& v : *many)
              if (v == from && seen++ == nth) v = to;
        }
        m.set_attrs(i, m.u().attrs(std::move(set)));
      };
      // The first use stays; with every redirect the later equal ones move up, so always take the second.
      CompId copy = m.clone_computation(c, "clone");
      bool same_caller_before = false;
      for (size_t q = 0; q < s; ++q) same_caller_before |= sites[q].caller == sites[s].caller;
      redirect(sites[s].caller, sites[s].which, copy);
      (void)same_caller_before;
      // What the clone calls is cloned along.
      std::vector<CompId> worklist{copy};
      while (!worklist.empty()) {
        CompId at = worklist.back();
        worklist.pop_back();
        for (InstId i : m.live_order(at)) {
          size_t n = m.called(i).size();
          for (size_t k = 0; k < n; ++k) {
            CompId inner = m.clone_computation(m.called(i)[k], "clone");
            redirect(i, k, inner);
            worklist.push_back(inner);
          }
        }
      }
    }
  }
  return changed;
}

}  // namespace hlo
