#include "replay/record/recording/check_stage.h"

#include <algorithm>

namespace hlo {
namespace {

class StageCheck {
 public:
  explicit StageCheck(const Module& m) : m_(m), u_(m.u()), seen_(m.inst_slots()), place_(m.inst_slots()) {}

  void run() {
    const std::vector<CompId> all = m_.computations();
    listed_.assign(m_.comp_slots(), false);
    for (CompId c : all) {
      if (listed_[c.value]) refuse(m_.comp_name(c), "is there twice");
      listed_[c.value] = true;
    }
    if (!m_.entry().valid() || m_.entry().value >= m_.comp_slots() || !listed_[m_.entry().value])
      refuse("the module", "has no entry");
    for (CompId c : all) members(c);
    for (uint32_t i = 0; i < m_.inst_slots(); ++i)
      if (m_.alive(InstId(i)) && !seen_[i]) refuse(m_.inst_name(InstId(i)), "is in no computation");
    for (CompId c : all) {
      for (InstId i : m_.comp(c).order) instruction(i);
      order(c);
    }
    std::vector<uint32_t> rank(m_.comp_slots());
    uint32_t next = 0;
    for (CompId c : m_.computation_post_order()) rank[c.value] = next++;
    for (CompId c : all)
      for (InstId i : m_.comp(c).order)
        for (CompId callee : m_.called(i))
          if (rank[callee.value] >= rank[c.value]) refuse(m_.inst_name(i), "calls what calls it");
  }

 private:
  [[noreturn]] void refuse(std::string_view name, std::string_view why) const {
    fail(FailureKind::kIo, "a stage of the recording is damaged: {} {}", name, why);
  }

  void members(CompId c) {
    const Computation& comp = m_.comp(c);
    for (InstId i : comp.order) {
      if (!m_.alive(i) || m_.parent(i) != c || seen_[i.value]) refuse(m_.comp_name(c), "lists what is not in it");
      seen_[i.value] = true;
      if (m_.op(i) == Opcode::Parameter) {
        size_t number = static_cast<size_t>(m_.parameter_number(i));
        if (number >= comp.params.size() || comp.params[number] != i)
          refuse(m_.inst_name(i), "is a parameter of another number");
      }
    }
    if (!m_.alive(comp.root) || m_.parent(comp.root) != c) refuse(m_.comp_name(c), "has no root");
    for (InstId p : comp.params)
      if (!m_.alive(p) || m_.parent(p) != c || m_.op(p) != Opcode::Parameter)
        refuse(m_.comp_name(c), "lacks a parameter");
  }

  void instruction(InstId i) {
    const OpInfo& info = op_info(m_.op(i));
    for (InstId o : m_.operands(i))
      if (!m_.alive(o) || m_.parent(o) != m_.parent(i)) refuse(m_.inst_name(i), "reads what is not there");
    if (info.arity != kVar && m_.operand_count(i) != static_cast<size_t>(info.arity))
      refuse(m_.inst_name(i), "has another number of operands than its kind");
    const AttrSet& set = m_.attrs(i);
    for (CompId callee : set.called)
      if (!callee.valid() || callee.value >= listed_.size() || !listed_[callee.value])
        refuse(m_.inst_name(i), "calls what is not there");
    for (const OwnAttr& own : info.attrs)
      if (!own.optional && !set.has(own.key) && own.key != Attr::is_associative)
        refuse(m_.inst_name(i), fmt::format("lacks {}", attr_text(own.key)));
    if (m_.op(i) == Opcode::Constant && u_.shape_text_plain(m_.literal(i).shape) != u_.shape_text_plain(m_.shape_id(i)))
      refuse(m_.inst_name(i), "has a value of another shape");
    control(i, m_.control_preds(i), false);
    control(i, m_.control_succs(i), true);
  }

  void control(InstId i, std::span<const InstId> others, bool after) const {
    for (InstId o : others) {
      if (!m_.alive(o) || m_.parent(o) != m_.parent(i)) refuse(m_.inst_name(i), "waits for what is not there");
      auto back = after ? m_.control_preds(o) : m_.control_succs(o);
      if (std::find(back.begin(), back.end(), i) == back.end())
        refuse(m_.inst_name(i), "waits for what does not know of it");
    }
  }

  // What is read, or waited for, comes first: there are no circles.
  void order(CompId c) {
    uint32_t next = 0;
    for (InstId i : m_.post_order(c)) place_[i.value] = ++next;
    for (InstId i : m_.comp(c).order) {
      bool first = place_[i.value] != 0;
      for (InstId o : m_.operands(i)) first = first && place_[o.value] && place_[o.value] < place_[i.value];
      for (InstId p : m_.control_preds(i)) first = first && place_[p.value] && place_[p.value] < place_[i.value];
      if (!first) refuse(m_.inst_name(i), "reads what reads it");
    }
  }

  const Module& m_;
  const Universe& u_;
  std::vector<bool> seen_, listed_;
  std::vector<uint32_t> place_;
};

}  // namespace

void check_stage(const Module& m) { StageCheck(m).run(); }

}  // namespace hlo
