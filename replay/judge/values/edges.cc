#include "replay/judge/values/edges.h"

#include <algorithm>
#include <cstring>

#include "ir/eval/compare.h"
#include "replay/judge/values/stages.h"

namespace hlo {
namespace {

// A gate behind another one differs by its operands until that one has its value.
constexpr int kMostRounds = 4;

bool has_steps(const Module& m, InstId i) {
  if (m.operand_count(i) == 0 || !is_float(m.shape(m.operand(i, 0)).type)) return false;
  switch (m.op(i)) {
    case Opcode::Compare:
    case Opcode::Floor:
    case Opcode::Ceil:
    case Opcode::Sign:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
      return true;
    case Opcode::Convert:
      return is_integral(m.shape(i).type);
    default:
      return false;
  }
}

int64_t elements_apart(const Universe& u, const Value& a, const Value& b) {
  const Shape& s = u[a.shape];
  const auto width = static_cast<size_t>(storage_bytes(s.type));
  int64_t count = 0;
  for (size_t k = 0; k < static_cast<size_t>(s.elements_count()); ++k)
    count += std::memcmp(a.bytes() + k * width, b.bytes() + k * width, width) != 0;
  return count;
}

class Edges {
 public:
  Edges(const Module& good, const Module& bad, const Session& session, const EvalOptions& options, double tolerance)
      : good_(good),
        bad_(bad),
        stages_(session, options, bytes_to_keep(0), StageTypes::kOwn),
        n_(stages_.numbers()),
        tolerance_(tolerance) {}

  std::vector<EdgeRounding> find() {
    std::shared_ptr<StageModule> before = stages_.stage_module(good_), now = stages_.stage_module(bad_);
    if (before->devices > 1 || now->devices > 1) return {};
    before_ = stages_.walk(good_, before, true);
    if (n_.why_unknown(before_.result) || before_.draws) return {};
    const Value expected = result(before_);
    for (int round = 0; round < kMostRounds; ++round) {
      ++n_.stage;
      now_ = stages_.walk(bad_, now, true, &instead_);
      if (n_.why_unknown(now_.result) || now_.draws) return {};
      if (round > 0 && compare_results(bad_.u(), result(now_), expected, tolerance_).equal) return found_;
      if (!add_edges()) return {};
    }
    return {};
  }

 private:
  Value result(const StageNumbers& walked) {
    const Module& m = walked.module->m();
    return n_.value(walked.result, m.shape_id(m.comp(m.entry()).root), 0);
  }

  // The one visit of that name; null where there are several, or none.
  static const Visit* only(const StageNumbers& walked, StrId name) {
    auto at = walked.by_name.find(name);
    return at != walked.by_name.end() && at->second.size() == 1 ? &walked.visits[at->second[0]] : nullptr;
  }

  bool add_edges() {
    const Module &a = before_.module->m(), &b = now_.module->m();
    bool more = false;
    for (const Visit& v : now_.visits) {
      if (!has_steps(b, v.inst) || instead_.contains(v.inst) || only(now_, b[v.inst].name) != &v) continue;
      const Visit* w = only(before_, b[v.inst].name);
      if (!w || a.op(w->inst) != b.op(v.inst) || a[w->inst].attrs != b[v.inst].attrs) continue;
      if (a.shape(w->inst).type != b.shape(v.inst).type || a.shape(w->inst).dims != b.shape(v.inst).dims) continue;
      if (!v.term.is_array() || !w->term.is_array() || v.term.number == w->term.number) continue;
      EdgeRounding edge;
      edge.apart = operands_apart(*w, v);
      if (edge.apart < 0) continue;
      const std::vector<Value> x = n_.values(v.term.number), y = n_.values(w->term.number);
      edge.name = b.inst_name(v.inst), edge.elements = b.shape(v.inst).elements_count();
      edge.different = elements_apart(b.u(), x[0], y[0]);
      found_.push_back(edge);
      instead_[v.inst] = w->term;
      more = true;
    }
    return more;
  }

  // Negative where it is more than rounding makes: a tenth of what outputs of that type may be off.
  double operands_apart(const Visit& before, const Visit& now) {
    const Universe& u = bad_.u();
    double worst = 0;
    if (before.operands.size() != now.operands.size()) return -1;
    for (size_t k = 0; k < now.operands.size(); ++k) {
      const Term &p = now.operands[k], &q = before.operands[k];
      if (!p.is_array() || !q.is_array() || n_.why_unknown(p) || n_.why_unknown(q)) return -1;
      if (p.number == q.number) continue;
      const std::vector<Value> x = n_.values(p.number), y = n_.values(q.number);
      const double d = deviation(u, x, y);
      if (!(d <= default_tolerance(u[x[0].shape].type) / 10)) return -1;
      worst = std::max(worst, d);
    }
    return worst;
  }

  const Module &good_, &bad_;
  Stages stages_;
  Numbering& n_;
  double tolerance_;
  StageNumbers before_, now_;
  std::unordered_map<InstId, Term> instead_;
  std::vector<EdgeRounding> found_;
};

}  // namespace

std::string in_words(const std::vector<EdgeRounding>& edges) {
  std::string out;
  for (const EdgeRounding& e : edges)
    out += fmt::format("{}{} gives another value in {} of {} elements, its operands are {:.2g} of their size apart",
                       out.empty() ? "" : "; ", e.name, e.different, e.elements, e.apart);
  return out;
}

std::vector<EdgeRounding> rounding_at_edges(const Module& good, const Module& bad, const Session& session,
                                            const EvalOptions& options, double tolerance) {
  try {
    return Edges(good, bad, session, options, tolerance).find();
  } catch (const Failure& e) {
    if (e.kind() != FailureKind::kUnsupported) throw;
    return {};
  }
}

}  // namespace hlo
