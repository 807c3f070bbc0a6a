#include "replay/report/explain/evidence.h"

#include <algorithm>

#include "replay/os/interrupt.h"
#include "replay/report/explain/explain_text.h"

namespace hlo {
namespace {

constexpr size_t kModulesKept = 12;

// What may stand in the place of each other from stage to stage.
enum class Sort { kProduct, kMove, kOther };
Sort sort_of(Opcode op) {
  switch (op) {
    case Opcode::Dot:
    case Opcode::RaggedDot:
    case Opcode::Convolution:
      return Sort::kProduct;
    case Opcode::Copy:
    case Opcode::Transpose:
      return Sort::kMove;
    default:
      return Sort::kOther;
  }
}
bool alike(Opcode a, Opcode b) { return a == b || (sort_of(a) != Sort::kOther && sort_of(a) == sort_of(b)); }

}  // namespace

Provenance::Provenance(const Recording& recording, const Module& last) : recording_(recording), last_(last) {
  if (recording.rows.empty()) return;
  try {
    Lineage& lineage = recording_.lineage();
    // Stages that are the same are one of the lineage; a folder with the last one alone tells nothing.
    size_t texts = 0;
    for (const StageRow& row : recording_.rows) {
      if (row.file.empty()) continue;
      if (!texts++) first_stage_ = row.name();
    }
    if (texts < 2 || lineage.size() == 0) return;
    rows_ = rows_of_stages(recording_, lineage);
    lineage_ = &lineage;
  } catch (const Failure&) {
    if (interrupted()) throw;  // nothing is known of the stages then
  }
}

const Module& Provenance::module(size_t stage) {
  auto found = modules_.find(stage);
  if (found == modules_.end()) {
    // The one that was asked for longest ago goes, but for the first and the last, which all ask for.
    while (modules_.size() >= kModulesKept) {
      auto oldest = modules_.end();
      for (auto it = modules_.begin(); it != modules_.end(); ++it)
        if (it->first != 0 && it->first != lineage_->size() - 1 &&
            (oldest == modules_.end() || it->second.asked < oldest->second.asked))
          oldest = it;
      modules_.erase(oldest);
    }
    found = modules_.emplace(stage, Kept{lineage_->module(stage), 0}).first;
  }
  found->second.asked = ++asked_;
  return *found->second.module;
}

std::string Provenance::label(size_t stage) const {
  return rows_[stage] ? stage_label(*rows_[stage]) : fmt::format("stage {}", stage);
}
std::string Provenance::pass(size_t stage) const { return rows_[stage] ? rows_[stage]->pass : std::string(); }

InstId Provenance::in_lineage(InstId i) {
  if (names_.empty()) {
    const Module& m = module(lineage_->size() - 1);
    for (CompId c : m.computations())
      for (InstId k : m.comp(c).order)
        if (m.alive(k)) names_[{std::string(m.comp_name(c)), std::string(m.inst_name(k))}] = k;
  }
  auto found = names_.find({std::string(last_.comp_name(last_.parent(i))), std::string(last_.inst_name(i))});
  return found == names_.end() ? InstId() : found->second;
}

// What `i`, which begins at stage `born`, was at the stage before. Evidence of the lineage, those of its own kind in
// front; of a product, whose heirs a rewrite may have given to what reads it, else the product of that name or metadata
// that ended there.
InstId Provenance::ancestor(size_t born, InstId i) {
  const Module& now = module(born);
  const Module& was = module(born - 1);
  std::vector<InstId> from;
  for (const Heir& h : lineage_->heirs(born))
    if (h.to == i && was.alive(h.from)) from.push_back(h.from);
  for (InstId f : from)
    if (alike(was.op(f), now.op(i))) return f;
  if (sort_of(now.op(i)) == Sort::kProduct) {
    InstId by_name, by_metadata;
    size_t named = 0, like = 0;
    const std::string op_name = op_name_of(now, i);
    const bool metadata = !op_name.empty() || source_line(now, i).known();
    for (size_t k = 0; k < was.inst_slots(); ++k) {
      const InstId o(static_cast<uint32_t>(k));
      if (!was.alive(o) || sort_of(was.op(o)) != Sort::kProduct || now.alive(o)) continue;
      if (was.inst_name(o) == now.inst_name(i)) by_name = o, ++named;
      if (metadata && op_name_of(was, o) == op_name && source_line(was, o) == source_line(now, i))
        by_metadata = o, ++like;
    }
    if (named == 1) return by_name;
    if (like == 1) return by_metadata;
  }
  // A fusion's operation that stands in a body goes back through the fusion alone where nothing else is known.
  return from.empty() ? InstId() : from[0];
}

const std::vector<Provenance::Link>& Provenance::chain(InstId asked) {
  auto [at, fresh] = chains_.try_emplace(asked.value);
  std::vector<Link>& out = at->second;
  if (!fresh || !known()) return out;
  InstId i = in_lineage(asked);
  for (size_t k = lineage_->size() - 1; i.valid();) {
    while (k > 0 && lineage_->stage(k - 1).alive(i)) --k;
    out.push_back({k, i});
    if (k == 0) break;
    i = ancestor(k, i);
    --k;
  }
  return out;
}

InstId Provenance::first(InstId i) {
  const std::vector<Link>& links = chain(i);
  return !links.empty() && links.back().born == 0 ? links.back().id : InstId();
}

FindingEvidence Provenance::evidence_of(InstId i) {
  FindingEvidence e;
  e.line = kernel_source_line(last_, i), e.stack = kernel_source_stack(last_, i), e.op_name = kernel_op_name(last_, i);
  if (!known()) return e;
  e.first_stage = first_stage_;
  // What a pass made without metadata has those of what it was made of.
  for (const Link& link : chain(i)) {
    const Module& m = module(link.born);
    if (e.line.known() && !e.op_name.empty()) break;
    if (!e.line.known()) e.line = kernel_source_line(m, link.id), e.stack = kernel_source_stack(m, link.id);
    if (e.op_name.empty()) e.op_name = kernel_op_name(m, link.id);
  }
  if (InstId origin = first(i); origin.valid()) e.first = module(0).inst_name(origin);
  return e;
}

FindingEvidence Provenance::made(InstId i, const Fits& fits) {
  FindingEvidence e = evidence_of(i);
  if (!known()) return e;
  const std::vector<Link>& links = chain(i);
  size_t oldest = links.size();
  for (size_t k = 0; k < links.size() && fits(module(links[k].born), links[k].id); ++k) oldest = k;
  if (oldest == links.size()) return e;
  const size_t born = links[oldest].born;
  if (born == 0) {
    e.whose = FindingEvidence::kProgram, e.stage = label(0);
    return e;
  }
  // One of its kind that ended there, and of which nothing is known, may be what it was.
  const Module& was = module(born - 1);
  if (oldest + 1 == links.size())
    for (InstId ended : lineage_->undecided(born))
      if (was.alive(ended) && fits(was, ended)) return e;
  e.whose = FindingEvidence::kPass, e.stage = label(born), e.pass = pass(born);
  return e;
}

FindingEvidence Provenance::became(InstId i, const Fits& odd) {
  FindingEvidence e = evidence_of(i);
  if (!known() || !first(i).valid()) return e;
  const std::vector<Link>& links = chain(i);
  auto is_odd = [&](size_t stage) {
    for (const Link& link : links)
      if (link.born <= stage) return odd(module(stage), link.id);
    return true;
  };
  size_t good = 0, bad = lineage_->size() - 1;
  if (is_odd(0)) {
    e.whose = FindingEvidence::kProgram, e.stage = label(0);
    return e;
  }
  while (bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    (is_odd(middle) ? bad : good) = middle;
  }
  e.whose = FindingEvidence::kPass, e.stage = label(bad), e.pass = pass(bad);
  return e;
}

}  // namespace hlo
