#include "replay/record/recording/lineage.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "replay/record/match/match.h"
#include "replay/record/recording/check_stage.h"
#include "replay/record/recording/stage_pages.h"

namespace hlo {

Lineage::Lineage(std::shared_ptr<Universe> universe) : recorder_(std::move(universe)) {}

std::unique_ptr<Module> Lineage::module(size_t k) const {
  std::unique_ptr<Module> m = stages_[k].snapshot.thaw();
  if (!stages_[k].checked) check_stage(*m);
  stages_[k].checked = true;
  return m;
}

bool Lineage::decided(size_t k, InstId from) const {
  const std::vector<InstId>& list = stages_[k].undecided;
  return !std::binary_search(list.begin(), list.end(), from);
}

StageDiff Lineage::changes(size_t k) const {
  if (k == 0) return {};
  const Snapshot &before = stage(k - 1), &after = stage(k);
  StageDiff d = diff_stages(before, after);
  if (!stages_[k].imported) return d;
  std::erase_if(d.modified, [&](InstId i) {
    const Inst &x = before[i], &y = after[i];
    if (x.op != y.op || x.shape != y.shape || x.attrs != y.attrs || x.name != y.name || x.parent != y.parent)
      return false;
    if (x.op == Opcode::Constant || x.op == Opcode::Parameter) return x.operand[0] == y.operand[0];
    auto ox = before.operands(i), oy = after.operands(i);
    return std::equal(ox.begin(), ox.end(), oy.begin(), oy.end());
  });
  return d;
}

namespace {

// How much of itself an heir is: a copy is the same, what stands in its place computes the same.
int distance_of(HeirKind kind) {
  switch (kind) {
    case HeirKind::kCloned:
      return 0;
    case HeirKind::kReplaced:
      return 1;
    default:
      return 2;
  }
}
HeirKind farther(HeirKind a, HeirKind b) { return distance_of(a) >= distance_of(b) ? a : b; }

void sort_heirs(std::vector<Heir>& list) {
  std::sort(list.begin(), list.end(), [](const Heir& x, const Heir& y) {
    if (x.from != y.from) return x.from < y.from;
    if (x.to != y.to) return x.to < y.to;
    return distance_of(x.kind) < distance_of(y.kind);
  });
  list.erase(std::unique(list.begin(), list.end(),
                         [](const Heir& x, const Heir& y) { return x.from == y.from && x.to == y.to; }),
             list.end());
}

}  // namespace

std::vector<Heir> Lineage::heirs_between(size_t first, size_t last) const {
  // By what lives now: whose heir it is.
  std::map<InstId, std::vector<Heir>> now;
  for (size_t k = first + 1; k <= last; ++k) {
    std::vector<Heir> fresh;
    for (const Heir& h : heirs(k)) {
      if (stage(first).alive(h.from)) fresh.push_back(h);
      if (auto found = now.find(h.from); found != now.end())
        for (const Heir& older : found->second) fresh.push_back({older.from, h.to, farther(older.kind, h.kind)});
    }
    std::erase_if(now, [&](const auto& entry) { return !stage(k).alive(entry.first); });
    for (const Heir& h : fresh) {
      std::vector<Heir>& list = now[h.to];
      list.push_back(h);
      sort_heirs(list);
    }
  }
  std::vector<Heir> out;
  for (const auto& entry : now) out.insert(out.end(), entry.second.begin(), entry.second.end());
  sort_heirs(out);
  return out;
}

// The module tells every edit; between two stages only those count that lead from what was to what is.
void Lineage::take_heirs(const Module& m, Stage& stage) const {
  if (stages_.empty() || m.heirs().empty()) return;
  const Snapshot& before = stages_.back().snapshot;
  std::vector<Heir> edits = m.heirs();
  std::stable_sort(edits.begin(), edits.end(), [](const Heir& x, const Heir& y) { return x.from < y.from; });
  auto edits_of = [&](InstId i) {
    return std::equal_range(edits.begin(), edits.end(), Heir{i, i, HeirKind::kReplaced},
                            [](const Heir& x, const Heir& y) { return x.from < y.from; });
  };
  constexpr size_t kMostSteps = 4096;  // of one instruction's heirs
  std::vector<Heir> agenda;
  std::unordered_set<InstId> seen;
  for (size_t at = 0; at < edits.size();) {
    InstId from = edits[at].from;
    while (at < edits.size() && edits[at].from == from) ++at;
    if (!before.alive(from)) continue;
    agenda.clear(), seen.clear();
    seen.insert(from);
    auto [begin, end] = edits_of(from);
    agenda.assign(begin, end);
    for (size_t k = 0; k < agenda.size() && k < kMostSteps; ++k) {
      Heir heir = agenda[k];
      if (!seen.insert(heir.to).second) continue;
      bool lives = m.alive(heir.to);
      if (lives) stage.heirs.push_back({from, heir.to, heir.kind});
      // One that was there before has heirs of its own, unless it ended in its turn.
      if (lives && before.alive(heir.to)) continue;
      auto [first, last] = edits_of(heir.to);
      for (auto next = first; next != last; ++next)
        if (!lives || next->kind == HeirKind::kCloned)
          agenda.push_back({from, next->to, farther(heir.kind, next->kind)});
    }
  }
  sort_heirs(stage.heirs);
}

size_t Lineage::add(Module& m) {
  Stage stage;
  take_heirs(m, stage);
  m.clear_heirs();
  stage.snapshot = recorder_.freeze(m);
  stages_.push_back(std::move(stage));
  return stages_.size() - 1;
}

namespace {

// One imported stage on its way into a lineage's numbering.
class Renumbering {
 public:
  Renumbering(const Module& m, const StageMatch& match, const Snapshot* before, Recorder& recorder)
      : m_(m),
        u_(*recorder.universe()),
        before_(before),
        recorder_(recorder),
        pages_(before ? before->parts().pages : StagePages::Shared()) {
    if (before) parts_ = before->parts();
    parts_.pages.clear();
    number(match);
  }

  Snapshot stage() {
    records();
    computations();
    auto share = [](auto& kept, auto value) {
      using T = std::decay_t<decltype(value)>;
      if (!kept || !(*kept == value)) kept = std::make_shared<const T>(std::move(value));
    };
    std::vector<CompId> order;
    for (CompId c : m_.computations()) order.push_back(comp_[c.value]);
    share(parts_.order, std::move(order));
    share(parts_.config, m_.config());
    share(parts_.stack, m_.stack());
    parts_.entry = comp_[m_.entry().value], parts_.name = m_.name();
    control();
    return recorder_.assemble(std::move(parts_));
  }

  InstId of(InstId i) const { return inst_[i.value]; }

 private:
  void number(const StageMatch& match) {
    inst_.resize(m_.inst_slots()), comp_.resize(m_.comp_slots());
    std::vector<bool> taken(parts_.slots);
    for (uint32_t i = 0; i < m_.inst_slots(); ++i) {
      if (!m_.alive(InstId(i))) continue;
      if (InstId same = i < match.same.size() ? match.same[i] : InstId(); same.valid()) {
        HLO_CHECK(before_ && before_->alive(same) && !taken[same.value], "the match names {} twice, or it is gone",
                  m_.inst_name(InstId(i)));
        taken[same.value] = true;
        inst_[i] = same;
      } else {
        inst_[i] = InstId(parts_.slots++);
      }
    }
    std::vector<bool> taken_computation(parts_.computations.size());
    for (CompId c : m_.computations()) {
      CompId same = c.value < match.same_computation.size() ? match.same_computation[c.value] : CompId();
      if (same.valid()) {
        HLO_CHECK(before_ && before_->computation(same) && !taken_computation[same.value],
                  "the match names computation {} twice, or it is gone", m_.comp_name(c));
        taken_computation[same.value] = true;
        comp_[c.value] = same;
      } else {
        comp_[c.value] = CompId(parts_.computations.size());
        parts_.computations.emplace_back();
      }
    }
  }

  AttrsId attributes(AttrsId id) {
    const AttrSet& set = u_[id];
    if (set.called.empty()) return id;
    auto [at, fresh] = attrs_.try_emplace(id.value, id);
    if (fresh) {
      AttrSet copy = set;
      for (auto& [key, value] : copy.list) {
        if (CompId* one = std::get_if<CompId>(&value); one && one->valid()) *one = comp_[one->value];
        if (auto* many = std::get_if<std::vector<CompId>>(&value))
          for (CompId& c : *many) c = comp_[c.value];
      }
      at->second = u_.attrs(std::move(copy));
    }
    return at->second;
  }

  void records() {
    size_t live = 0;
    std::vector<bool> lives(parts_.slots);
    std::vector<InstId> operands;
    for (CompId c : m_.computations())
      for (InstId i : m_.comp(c).order) {
        if (!m_.alive(i)) continue;
        InstId id = inst_[i.value];
        lives[id.value] = true, ++live;
        Inst inst = m_[i];
        inst.parent = comp_[c.value], inst.attrs = attributes(inst.attrs);
        operands.clear();
        for (InstId o : m_.operands(i)) operands.push_back(inst_[o.value]);
        if (before_ && before_->alive(id) && same_record(inst, operands, id)) continue;
        uint32_t record = recorder_.log(inst, operands);
        pages_.slot(id) = record;
      }
    if (before_)
      for (uint32_t i = 0; i < before_->slots(); ++i)
        if (!lives[i] && before_->alive(InstId(i))) pages_.slot(InstId(i)) = Snapshot::kNone;
    parts_.pages = pages_.take(parts_.slots);
    parts_.live = live;
  }

  bool same_record(const Inst& inst, const std::vector<InstId>& operands, InstId id) const {
    const Inst& was = (*before_)[id];
    if (was.op != inst.op || was.flags != inst.flags || was.shape != inst.shape || was.attrs != inst.attrs ||
        was.meta != inst.meta || was.name != inst.name || was.parent != inst.parent)
      return false;
    if (inst.op == Opcode::Constant || inst.op == Opcode::Parameter) return was.operand[0] == inst.operand[0];
    auto old = before_->operands(id);
    return std::equal(old.begin(), old.end(), operands.begin(), operands.end());
  }

  void computations() {
    std::vector<bool> lives(parts_.computations.size());
    for (CompId c : m_.computations()) {
      CompId id = comp_[c.value];
      lives[id.value] = true;
      Computation fresh = m_.comp(c);
      fresh.order.clear();
      for (InstId i : m_.comp(c).order)
        if (m_.alive(i)) fresh.order.push_back(inst_[i.value]);
      for (InstId& i : fresh.params)
        if (i.valid()) i = inst_[i.value];
      if (fresh.root.valid()) fresh.root = inst_[fresh.root.value];
      auto& kept = parts_.computations[id.value];
      if (!kept || !(*kept == fresh)) kept = std::make_shared<const Computation>(std::move(fresh));
    }
    for (size_t c = 0; c < lives.size(); ++c)
      if (!lives[c]) parts_.computations[c] = nullptr;
  }

  void control() {
    parts_.preds = parts_.succs = nullptr;
    if (!m_.any_control()) return;
    Snapshot::Control preds, succs;
    for (CompId c : m_.computations())
      for (InstId i : m_.comp(c).order) {
        if (!m_.alive(i)) continue;
        for (InstId p : m_.control_preds(i)) preds[inst_[i.value]].push_back(inst_[p.value]);
        for (InstId s : m_.control_succs(i)) succs[inst_[i.value]].push_back(inst_[s.value]);
      }
    if (!preds.empty()) parts_.preds = std::make_shared<const Snapshot::Control>(std::move(preds));
    if (!succs.empty()) parts_.succs = std::make_shared<const Snapshot::Control>(std::move(succs));
  }

  const Module& m_;
  Universe& u_;
  const Snapshot* before_;
  Recorder& recorder_;
  Snapshot::Parts parts_;
  std::vector<InstId> inst_;
  std::vector<CompId> comp_;
  std::unordered_map<uint32_t, AttrsId> attrs_;
  StagePages pages_;
};

}  // namespace

size_t Lineage::add(const Module& m, const StageMatch& match) {
  HLO_CHECK(m.universe() == universe(), "a stage of another universe");
  const Snapshot* before = stages_.empty() ? nullptr : &stages_.back().snapshot;
  Renumbering renumbering(m, match, before, recorder_);
  Stage stage;
  stage.imported = true;
  stage.snapshot = renumbering.stage();
  if (before) {
    for (Heir heir : match.heirs) {
      HLO_CHECK(before->alive(heir.from) && m.alive(heir.to), "the match names a successor that does not exist");
      heir.to = renumbering.of(heir.to);
      if (heir.to != heir.from) stage.heirs.push_back(heir);
    }
    sort_heirs(stage.heirs);
    for (uint32_t i = 0; i < match.undecided.size(); ++i)
      if (match.undecided[i] && before->alive(InstId(i)) && !stage.snapshot.alive(InstId(i)))
        stage.undecided.push_back(InstId(i));
  }
  stages_.push_back(std::move(stage));
  return stages_.size() - 1;
}

}  // namespace hlo
