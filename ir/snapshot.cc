#include "ir/snapshot.h"

#include <algorithm>

namespace hlo {

Snapshot Recorder::freeze(Module& m) {
  m.cleanup();
  size_t pages = (m.inst_slots() + Snapshot::kPage - 1) / Snapshot::kPage;
  while (pages_.size() < pages) {
    pages_.push_back(std::make_shared<Snapshot::Page>());
    pages_.back()->slot.fill(Snapshot::kNone);
  }
  auto note = [&](InstId i) {
    auto& page = pages_[i.value / Snapshot::kPage];
    if (page.use_count() > 1) page = std::make_shared<Snapshot::Page>(*page);
    uint32_t& slot = page->slot[i.value % Snapshot::kPage];
    bool was = slot != Snapshot::kNone, is = m.alive(i);
    live_ += static_cast<size_t>(is) - static_cast<size_t>(was);
    if (is) {
      slot = static_cast<uint32_t>(log_.size());
      log_.push_back(m[i]);
    } else {
      slot = Snapshot::kNone;
    }
  };
  // What another recorder has seen already is new to this one.
  const bool first = comps_.empty();
  comps_.resize(m.comp_slots());
  if (first) {
    for (size_t i = 0; i < m.inst_slots(); ++i) note(InstId(i));
    for (size_t c = 0; c < m.comp_slots(); ++c) comps_[c] = std::make_shared<const Computation>(m.comp(CompId(c)));
  } else {
    for (InstId i : m.dirty_insts()) note(i);
    for (CompId c : m.dirty_comps()) comps_[c.value] = std::make_shared<const Computation>(m.comp(c));
  }
  bool fresh_header = m.dirty_header() || !config_;
  m.clear_dirty();
  m.freeze_pool();
  Snapshot s;
  s.recorder_ = this;
  s.pages_.assign(pages_.begin(), pages_.end());
  s.comps_ = comps_;
  s.comp_order_ = std::make_shared<const std::vector<CompId>>(m.comp_order_);
  if (fresh_header) {
    config_ = std::make_shared<const ModuleConfig>(m.config());
    stack_ = std::make_shared<const StackTables>(m.stack());
  }
  s.config_ = config_, s.stack_ = stack_;
  if (m.any_control()) {
    s.preds_ = std::make_shared<const std::unordered_map<InstId, std::vector<InstId>>>(m.preds_);
    s.succs_ = std::make_shared<const std::unordered_map<InstId, std::vector<InstId>>>(m.succs_);
  }
  s.entry_ = m.entry_;
  s.slots_ = m.inst_slots();
  s.live_ = live_;
  s.name_ = m.name();
  return s;
}

Snapshot Recorder::assemble(Snapshot::Parts parts) const {
  Snapshot s;
  s.recorder_ = this;
  s.pages_ = std::move(parts.pages), s.comps_ = std::move(parts.computations), s.comp_order_ = std::move(parts.order);
  s.config_ = std::move(parts.config), s.stack_ = std::move(parts.stack);
  s.preds_ = std::move(parts.preds), s.succs_ = std::move(parts.succs);
  s.entry_ = parts.entry, s.slots_ = parts.slots, s.live_ = parts.live, s.name_ = std::move(parts.name);
  return s;
}

uint32_t Recorder::log(Inst inst, std::span<const InstId> operands) {
  if (inst.op != Opcode::Constant && inst.op != Opcode::Parameter) {
    inst.count_low = static_cast<uint16_t>(std::min<size_t>(operands.size(), 0xFFFF));
    inst.operand[0] = inst.operand[1] = 0;
    if (operands.size() <= 2) {
      for (size_t k = 0; k < operands.size(); ++k) inst.operand[k] = operands[k].value;
    } else if (operands.size() < 0xFFFF) {
      inst.operand[0] = universe_->pool_add(operands.data(), operands.size());
    } else {
      std::vector<InstId> counted{InstId(operands.size())};
      counted.insert(counted.end(), operands.begin(), operands.end());
      inst.operand[0] = universe_->pool_add(counted.data(), counted.size());
    }
  }
  log_.push_back(inst);
  return static_cast<uint32_t>(log_.size() - 1);
}

Snapshot::Parts Snapshot::parts() const {
  return {pages_, comps_, comp_order_, config_, stack_, preds_, succs_, entry_, slots_, live_, name_};
}

const Inst& Snapshot::operator[](InstId i) const { return recorder_->record(record(i)); }

std::span<const InstId> Snapshot::operands(InstId i) const {
  const Inst& inst = (*this)[i];
  if (inst.count_low <= 2) return {reinterpret_cast<const InstId*>(inst.operand), inst.count_low};
  const InstId* at = recorder_->universe()->pool_at(inst.operand[0]);
  if (inst.count_low == 0xFFFF) return {at + 1, at->value};
  return {at, inst.count_low};
}

const Computation* Snapshot::computation(CompId c) const {
  if (c.value >= comps_.size() || !comps_[c.value] || !comps_[c.value]->alive) return nullptr;
  return comps_[c.value].get();
}

std::unique_ptr<Module> Snapshot::thaw() const {
  auto m = std::make_unique<Module>(recorder_->universe());
  m->name_ = name_;
  m->config_ = *config_;
  m->stack_ = *stack_;
  m->insts_.resize(slots_);
  for (size_t i = 0; i < slots_; ++i) {
    uint32_t record = pages_[i / kPage]->slot[i % kPage];
    if (record == kNone) continue;
    m->insts_[i] = recorder_->record(record);
    m->count_op(m->insts_[i], true);
  }
  for (const auto& c : comps_) {
    m->comps_.push_back(c ? *c : Computation());
    m->comps_.back().alive = c && c->alive;
  }
  m->comp_order_ = *comp_order_;
  m->entry_ = entry_;
  if (preds_) m->preds_ = *preds_, m->succs_ = *succs_;
  m->dirty_.assign(slots_, false);
  m->dirty_comp_.assign(m->comps_.size(), false);
  m->comp_edited_.assign(m->comps_.size(), 0);
  m->freeze_pool();
  return m;
}

StageDiff diff_stages(const Snapshot& a, const Snapshot& b) {
  StageDiff out;
  size_t pages = std::max(a.pages_.size(), b.pages_.size());
  for (size_t p = 0; p < pages; ++p) {
    const Snapshot::Page* x = p < a.pages_.size() ? a.pages_[p].get() : nullptr;
    const Snapshot::Page* y = p < b.pages_.size() ? b.pages_[p].get() : nullptr;
    if (x == y) continue;
    for (uint32_t k = 0; k < Snapshot::kPage; ++k) {
      uint32_t i = x ? x->slot[k] : Snapshot::kNone, j = y ? y->slot[k] : Snapshot::kNone;
      if (i == j) continue;
      InstId id(static_cast<uint32_t>(p * Snapshot::kPage + k));
      if (i == Snapshot::kNone)
        out.added.push_back(id);
      else if (j == Snapshot::kNone)
        out.removed.push_back(id);
      else
        out.modified.push_back(id);
    }
  }
  return out;
}

}  // namespace hlo
