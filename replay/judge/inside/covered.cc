// What values that agree do not tell: how much of what a pass wrote was held against the stage before, and what it
// promises of indices.
#include <algorithm>

#include "ir/base/hash.h"
#include "ir/types/literal.h"
#include "replay/judge/inside/stage.h"
#include "replay/judge/values/stages.h"

namespace hlo {
namespace {

bool has_value_of_its_own(Role r) {
  return r == Role::kOperation || r == Role::kWhile || r == Role::kConditional || r == Role::kDraw;
}

// What a visit is as it is written, by what its operands are.
uint64_t written(const Numbering& n, StageModule& s, const Visit& v) {
  const Module& m = s.m();
  const bool calls = m.op(v.inst) == Opcode::While || m.op(v.inst) == Opcode::Conditional;
  uint64_t h = calls ? static_cast<uint64_t>(m.op(v.inst)) : s.canonical.operation(v.inst);
  for (CompId c : m.called(v.inst)) h = hash_combine(h, s.canonical.computation(c));
  std::vector<uint64_t> operands;
  for (const Term& t : v.operands) operands.push_back(Numbering::hash(n, t));
  if (Canonical::commutes(m, v.inst)) std::sort(operands.begin(), operands.end());
  for (uint64_t o : operands) h = hash_combine(h, o);
  return h;
}

// The indices of a gather or a scatter, each as a place in the operand's dimensions, in their order. Batching
// dimensions count as indices of their own.
std::vector<Dims> places_of(const Module& m, InstId i, const Value& indices) {
  const AttrSet& a = m.attrs(i);
  const bool gathers = m.op(i) == Opcode::Gather;
  const Shape& s = m.u()[indices.shape];
  const Dims& map = a.ints(gathers ? Attr::start_index_map : Attr::scatter_dims_to_operand_dims);
  const Dims& batching = a.ints(gathers ? Attr::operand_batching_dims : Attr::input_batching_dims);
  const Dims& own = a.ints(gathers ? Attr::start_indices_batching_dims : Attr::scatter_indices_batching_dims);
  const int64_t vector = a.integer(Attr::index_vector_dim), width = storage_bytes(s.type);
  int64_t parts = 1, inner = 1;
  for (int64_t d = vector; d < s.rank(); ++d) (d == vector ? parts : inner) *= s.dims[static_cast<size_t>(d)];
  const auto rank = static_cast<size_t>(m.shape(m.operand(i, 0)).rank());
  std::vector<Dims> out;
  for (int64_t k = 0, n = s.elements_count() / std::max<int64_t>(parts, 1); k < n; ++k) {
    Dims at(rank, 0);
    const int64_t first = k / inner * parts * inner + k % inner;
    for (size_t p = 0; p < map.size(); ++p)
      at[static_cast<size_t>(map[p])] =
          load_int(s.type, indices.bytes() + (first + static_cast<int64_t>(p) * inner) * width);
    for (size_t p = 0; p < batching.size(); ++p) {
      int64_t step = 1;
      for (int64_t d = s.rank(); d-- > own[p] + 1;) step *= s.dims[static_cast<size_t>(d)];
      at[static_cast<size_t>(batching[p])] = first / step % s.dims[static_cast<size_t>(own[p])];
    }
    out.push_back(std::move(at));
  }
  return out;
}

// A promise about indices that their values break; null: none.
const char* broken_promise(const Module& m, InstId i, const Value& indices) {
  const bool sorted = m.attrs(i).flag(Attr::indices_are_sorted), unique = m.attrs(i).flag(Attr::unique_indices);
  std::vector<Dims> places = places_of(m, i, indices);
  if (sorted && !std::is_sorted(places.begin(), places.end())) return "indices_are_sorted, and they are not";
  std::sort(places.begin(), places.end());
  if (unique && std::adjacent_find(places.begin(), places.end()) != places.end())
    return "unique_indices, and some are alike";
  return nullptr;
}

bool promises(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Gather && m.op(i) != Opcode::Scatter) return false;
  return m.attrs(i).flag(Attr::indices_are_sorted) || m.attrs(i).flag(Attr::unique_indices);
}

void miss(InsideStage* out, const Module& m, InstId i, const std::string& why, size_t count) {
  if (!out->not_compared) out->not_compared_example = m.inst_name(i), out->not_compared_why = why;
  out->not_compared += count;
}

}  // namespace

// What a pass says of indices and is not so. What a module has promised before is its writer's to keep: there it is not
// asked.
void Inside::Comparison::judge_promises(InsideStage* out) {
  const Module &a = a_.walked.module->m(), &b = b_.walked.module->m();
  for (const Visit& w : a_.walked.visits)
    if (promises(a, w.inst)) return;
  for (const Visit& v : b_.walked.visits) {
    if (!promises(b, v.inst)) continue;
    const size_t which = b.op(v.inst) == Opcode::Gather ? 1 : v.operands.size() / 2;
    if (which >= v.operands.size() || n_.why_unknown(v.operands[which])) continue;
    const char* broken = nullptr;
    try {
      for (int64_t d = 0; !broken && d < Numbering::width(n_, v.operands[which]); ++d)
        broken = broken_promise(b, v.inst, n_.value(v.operands[which], b.shape_id(b.operand(v.inst, which)), d));
    } catch (const Failure&) {
      continue;  // not kept, and not to be had again
    }
    if (!broken) continue;
    InsideFinding f;
    f.after = v.inst, f.difference = fmt::format("says {}", broken), f.annotation = f.operands_agree = true;
    f.region_after = {v.inst};
    if (out->verdict != Verdict::kBad) out->why = fmt::format("{}: {}", b.inst_name(v.inst), f.difference);
    out->findings.push_back(std::move(f));
    out->verdict = Verdict::kBad;
  }
}

// By visit: a new value is held against what was before by what reads it, down to values that agree and to the outputs;
// not where nothing that reads it has a value.
std::vector<bool> Inside::Comparison::held_by_readers() {
  const Module& b = b_.walked.module->m();
  const auto& visits = b_.walked.visits;
  if (readers_.empty()) find_readers();
  std::vector<bool> held(visits.size(), true);
  for (size_t k = visits.size(); k-- > 0;) {
    const Visit& v = visits[k];
    if (!has_value_of_its_own(role_of(b, v.inst)) || !fresh(v.term) || n_.why_unknown(v.term)) continue;
    std::vector<Term> leaves;
    leaves_of(v.term, &leaves);
    bool read = false, told = false;
    for (const Term& t : leaves) {
      auto at = readers_.find(t.number);
      if (at == readers_.end()) continue;
      for (uint32_t r : at->second) {
        if (!has_value_of_its_own(role_of(b, visits[r].inst))) continue;
        read = true;
        told = told || (!n_.why_unknown(visits[r].term) && (r <= k || held[r]));
      }
    }
    for (const Term& o : b_.local)
      for (const Term& t : leaves) told = told || o.number == t.number;
    held[k] = told || !read;
  }
  return held;
}

// Changed is what is written in another way than anything before, or reads another value.
void Inside::Comparison::count_not_compared(InsideStage* out) {
  const Module& b = b_.walked.module->m();
  std::unordered_set<uint64_t> known;
  for (const Visit& v : a_.walked.visits)
    if (has_value_of_its_own(role_of(a_.walked.module->m(), v.inst))) known.insert(written(n_, *a_.walked.module, v));
  const std::unordered_set<uint32_t> not_told(not_told_.begin(), not_told_.end());
  const std::vector<bool> held = held_by_readers();
  for (uint32_t k = 0; k < b_.walked.visits.size(); ++k) {
    const Visit& v = b_.walked.visits[k];
    const bool own = has_value_of_its_own(role_of(b, v.inst)) && !known.contains(written(n_, *b_.walked.module, v));
    if (!own && !not_told.contains(k)) continue;
    ++out->touched;
    if (const std::string* why = n_.why_unknown(v.term); why && fresh(v.term))
      miss(out, b, v.inst, *why, 1);
    else if (not_told.contains(k))
      miss(out, b, v.inst, "it is written in another way and agrees on these inputs, others were not tried", 1);
    else if (!held[k])
      miss(out, b, v.inst, "it is new, and nothing that reads it has a value", 1);
  }
  count_branches(out);
}

// Branches that no run took are compared as they are written.
void Inside::Comparison::count_branches(InsideStage* out) {
  const Module& b = b_.walked.module->m();
  std::unordered_set<CompId> walked;
  for (const Visit& v : b_.walked.visits) walked.insert(b.parent(v.inst));
  std::unordered_set<uint64_t> known;
  auto branches = [](const Module& m, auto&& take) {
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order)
        if (i.valid() && m.op(i) == Opcode::Conditional)
          for (CompId branch : m.called(i)) take(i, branch);
  };
  branches(a_.walked.module->m(), [&](InstId, CompId c) { known.insert(a_.walked.module->canonical.computation(c)); });
  branches(b, [&](InstId i, CompId c) {
    if (walked.contains(c) || known.contains(b_.walked.module->canonical.computation(c))) return;
    const size_t count = b.post_order(c).size();
    out->touched += count;
    miss(out, b, i, fmt::format("branch {} is another one and no run took it", b.comp_name(c)), count);
  });
}

}  // namespace hlo
