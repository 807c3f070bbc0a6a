#include "replay/record/match/match.h"

#include <algorithm>

#include "ir/base/stack_guard.h"
#include "replay/record/match/match_impl.h"

namespace hlo {

StageSide::StageSide(const Module& module)
    : m(module),
      prints_(module, Fingerprints::Options{.layouts = false, .sharding = false, .config = false}),
      exact_(module.inst_slots(), 0),
      caller_(module.comp_slots()),
      loop_(module.comp_slots()) {
  std::vector<uint32_t> calls(module.comp_slots(), 0);
  for (CompId c : module.computations())
    for (InstId i : module.comp(c).order) {
      if (!module.alive(i) || !module[i].attrs.valid()) continue;
      bool inlined = module.op(i) == Opcode::Fusion || module.op(i) == Opcode::Call;
      for (CompId callee : module.called(i)) {
        ++calls[callee.value];
        loop_[callee.value] = module.op(i) == Opcode::While ? i : InstId();
        caller_[callee.value] = inlined && module.operand_count(i) == module.comp(callee).params.size() ? i : InstId();
      }
    }
  for (size_t c = 0; c < calls.size(); ++c)
    if (calls[c] != 1) caller_[c] = loop_[c] = InstId();
}

uint64_t StageSide::exact(InstId i) {
  uint64_t& known = exact_[i.value];
  if (known == 0) known = prints_.instruction(i) | 1;
  return known;
}

bool StageSide::opaque(InstId i) const {
  switch (m.op(i)) {
    case Opcode::Fusion:
    case Opcode::Call:
    case Opcode::While:
      return !m.called(i).empty() && caller_[m.called(i)[0].value] == i;
    case Opcode::Parameter:
      return caller_[m.parent(i).value].valid();
    default:
      return false;
  }
}

InstId StageSide::resolved(InstId i) const {
  // Bodies nest and tuples do; a module in which they do a hundred levels deep is read without their help.
  for (int steps = 0; steps < 100; ++steps) {
    if (m.op(i) == Opcode::GetTupleElement) {
      InstId of = resolved_tuple(i);
      if (!of.valid()) return i;
      i = of;
      continue;
    }
    if (!opaque(i)) return i;
    if (m.op(i) == Opcode::Parameter) {
      auto operands = m.operands(caller_[m.parent(i).value]);
      auto number = static_cast<size_t>(m.parameter_number(i));
      if (number >= operands.size()) return i;
      i = operands[number];
    } else {
      i = m.comp(m.called(i)[0]).root;
    }
  }
  return i;
}

// What an element of a tuple is, one step on; invalid where its tuple is not made here.
InstId StageSide::resolved_tuple(InstId element) const {
  InstId of = m.operand(element, 0);
  auto index = static_cast<size_t>(m.attrs(element).integer(Attr::index));
  for (int steps = 0; steps < 100; ++steps) {
    if (m.op(of) == Opcode::Tuple) return index < m.operand_count(of) ? m.operand(of, index) : InstId();
    if (!opaque(of)) return {};
    if (m.op(of) == Opcode::Parameter) {
      auto operands = m.operands(caller_[m.parent(of).value]);
      auto number = static_cast<size_t>(m.parameter_number(of));
      if (number >= operands.size()) return {};
      of = operands[number];
    } else {
      of = m.comp(m.called(of)[0]).root;
    }
  }
  return {};
}

void StageSide::unroll(InstId loop) {
  for (CompId c : m.called(loop)) caller_[c.value] = loop;
}

void StageSide::walk(CompId c, std::vector<bool>& seen, std::vector<InstId>& out) const {
  if (seen[c.value]) return;
  check_stack("computations call each other");
  seen[c.value] = true;
  for (InstId i : m.post_order(c)) {
    if (m[i].attrs.valid())
      for (CompId callee : m.called(i)) walk(callee, seen, out);
    out.push_back(i);
  }
}

std::vector<InstId> StageSide::evaluation_order() const {
  std::vector<InstId> out;
  out.reserve(m.inst_slots());
  std::vector<bool> seen(m.comp_slots(), false);
  if (m.entry().valid()) walk(m.entry(), seen, out);
  for (CompId c : m.computations()) walk(c, seen, out);
  return out;
}

std::vector<bool> StageSide::reached() const {
  if (!m.entry().valid()) return std::vector<bool>(m.comp_slots(), true);
  std::vector<bool> out(m.comp_slots(), false);
  std::vector<CompId> work{m.entry()};
  out[m.entry().value] = true;
  while (!work.empty()) {
    CompId c = work.back();
    work.pop_back();
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i) || !m[i].attrs.valid()) continue;
      for (CompId callee : m.called(i))
        if (!out[callee.value]) out[callee.value] = true, work.push_back(callee);
    }
  }
  return out;
}

std::string_view name_stem(std::string_view name) {
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  std::string_view tail = name.substr(dot + 1), stem = name.substr(0, dot);
  bool number = !tail.empty() && tail.find_first_not_of("0123456789") == std::string_view::npos;
  if (!number && !tail.starts_with("clone") && !tail.starts_with("remat")) return {};
  if (!number) return stem;
  // `add` of `add.7` says no more than the opcode does.
  return stem.find_first_of("0123456789") == std::string_view::npos ? std::string_view() : stem;
}

StageMatcher::StageMatcher(const Module& before, const Module& after, const MatchOptions& options, StageMatch& out)
    : a_(before), b_(after), options_(options), out_(out), to_(before.inst_slots()), comp_to_(before.comp_slots()) {}

void StageMatcher::run() {
  out_.same.assign(b_.m.inst_slots(), InstId());
  out_.same_computation.assign(b_.m.comp_slots(), CompId());
  out_.undecided.assign(a_.m.inst_slots(), false);
  if (a_.m.entry().valid() && b_.m.entry().valid()) pair_computations(a_.m.entry(), b_.m.entry());
  by_name();
  by_structure();
  gone_.clear(), fresh_.clear();
  for (CompId c : a_.m.computations())
    for (InstId i : a_.m.comp(c).order)
      if (a_.m.alive(i) && gone(i)) gone_.push_back(i);
  for (CompId c : b_.m.computations())
    for (InstId i : b_.m.comp(c).order)
      if (b_.m.alive(i) && fresh(i)) fresh_.push_back(i);
  if (!gone_.empty() || !fresh_.empty()) {
    from_.resize(b_.m.inst_slots()), heirs_.resize(a_.m.inst_slots());
    order_a_ = a_.evaluation_order(), order_b_ = b_.evaluation_order();
    find_ended();
    number_before();
    find_clones();
    if (unroll_loops()) {
      for (auto& list : from_) list.clear();
      for (auto& list : heirs_) list.clear();
      numbers_.clear(), holders_.clear(), siblings_.clear(), loops_.clear(), carried_.clear(), carried_after_.clear(),
          rewritten_.clear();
      work_.clear(), ambiguous_.clear(), next_value_ = 0;
      number_before();
      find_clones();
    }
    clones_of_computations();
    along_slots();
    of_the_ambiguous();
    of_operands();
    of_fusions();
    of_copied_fusions();
    of_regions();
    of_neighbours();
    if (options_.use_metadata) of_metadata();
    of_movements();
    of_the_gone();
  }
  finish();
}

// What is gone, what nobody reads any more, what stands in a computation that nobody calls any more: priority-fusion
// leaves the bodies of fusions that it took apart.
void StageMatcher::find_ended() {
  std::vector<bool> before = a_.reached(), after = b_.reached();
  ended_.assign(a_.m.inst_slots(), false);
  for (InstId x : order_a_) {
    InstId y = to_[x.value];
    ended_[x.value] =
        !y.valid() ||
        (a_.m.op(x) != Opcode::Parameter &&
         ((b_.m.dead(y) && !a_.m.dead(x)) || (before[a_.m.parent(x).value] && !after[b_.m.parent(y).value])));
  }
}

// Loops that ended and that no new loop was made of: their bodies were put in their place.
bool StageMatcher::unroll_loops() {
  bool any = false;
  for (InstId x : gone_) {
    if (a_.m.op(x) != Opcode::While || a_.sole_caller(a_.m.called(x)[0]).valid()) continue;
    bool lives = false;
    for (const auto& [y, of] : loops_) lives |= of == x;
    for (CompId c : a_.m.called(x)) lives |= !a_.loop_of(c).valid();
    if (lives) continue;
    a_.unroll(x);
    any = true;
  }
  return any;
}

StageMatch match_stages(const Module& before, const Module& after, const MatchOptions& options) {
  StageMatch out;
  StageMatcher(before, after, options, out).run();
  return out;
}

}  // namespace hlo
