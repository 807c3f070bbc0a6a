#include "replay/judge/diverge.h"

#include <unordered_set>

#include "ir/eval/compare.h"

namespace hlo {

Divergence first_divergence(const Module& good, const Module& bad, const Session& session, const EvalOptions& options,
                            double tolerance) {
  const ExecutorInfo& evaluator = *find_executor("evaluator");
  auto run = [&](const Module& m, const EvalOptions& traced) { return session.run(m, evaluator, traced, 1, false); };
  return first_divergence(good, bad, run, options, tolerance);
}

Divergence first_divergence(const Module& good, const Module& bad, const RunModule& run, const EvalOptions& options,
                            double tolerance, int64_t most_bytes) {
  Universe& u = good.u();
  Divergence out;
  std::unordered_map<StrId, std::pair<InstId, Value>> kept;
  int64_t bytes = 0;
  EvalOptions traced = options;
  traced.trace = [&](InstId i, std::span<const Value>, const Value& v) {
    if (!v.data || kept.contains(good[i].name)) return;
    if (bytes + static_cast<int64_t>(v.data->size()) > most_bytes) {
      out.complete = false;
      return;
    }
    bytes += static_cast<int64_t>(v.data->size());
    kept.emplace(good[i].name, std::pair{i, v});
  };
  Value expected = run(good, traced);
  std::unordered_set<StrId> seen, agree;
  traced.trace = [&](InstId i, std::span<const Value>, const Value& v) {
    StrId name = bad[i].name;
    auto twin = kept.find(name);
    if (twin == kept.end() || !v.data || !u.compatible(v.shape, twin->second.second.shape) || !seen.insert(name).second)
      return;
    OutputComparison c = compare_values(u, std::string(bad.inst_name(i)), v, twin->second.second, tolerance);
    if (c.equal) {
      agree.insert(name);
    } else if (!out.found) {
      out.found = true, out.good = twin->second.first, out.bad = i;
      out.difference = c.why;
    }
  };
  Value got = run(bad, traced);
  if (!out.found) {
    Comparison c = compare_results(u, got, expected, tolerance);
    if (c.equal) return out;
    out.found = true, out.good = good.comp(good.entry()).root, out.bad = bad.comp(bad.entry()).root;
    const OutputComparison& d = *c.first_difference();
    out.difference = d.name + ": " + d.why;
  }
  auto region = [&](const Module& m, InstId from) {
    std::vector<InstId> list{from};
    std::unordered_set<InstId> known{from};
    for (size_t k = 0; k < list.size(); ++k)
      for (InstId o : m.operands(list[k]))
        if (!agree.contains(m[o].name) && m.op(o) != Opcode::Parameter && known.insert(o).second) list.push_back(o);
    return list;
  };
  out.before = region(good, out.good), out.after = region(bad, out.bad);
  return out;
}

}  // namespace hlo
