// Asynchronous operations: short forms, and chains from start to done.
#include <algorithm>

#include "ir/inference/shape_inference.h"
#include "ir/print/print.h"
#include "parser/parser_impl.h"

namespace hlo {

// `add-start`, `add-update`, `add-done` stand for async-start of a computation with that one operation, and so on.
bool Parser::async_short_form(std::string_view w, Pending* p) {
  static constexpr std::pair<std::string_view, Opcode> kSuffixes[] = {
      {"-start", Opcode::AsyncStart}, {"-update", Opcode::AsyncUpdate}, {"-done", Opcode::AsyncDone}};
  for (const auto& [suffix, op] : kSuffixes) {
    if (!w.ends_with(suffix) || !op_from_text(w.substr(0, w.size() - suffix.size()), &p->base)) continue;
    if (p->base == Opcode::Parameter || p->base == Opcode::Constant || op_info(p->base).cls == OpClass::Async)
      return false;
    p->op = op;
    p->is_short = true;
    return true;
  }
  return false;
}

// The async-start that an update or done belongs to, and the operands that it and the updates since have.
std::pair<InstId, size_t> Parser::async_root(InstId id) {
  auto known = async_chain_.find(id);
  if (known != async_chain_.end()) return known->second;
  return {id, m_->operand_count(id)};
}

void Parser::check_async_chain(Pending& p) {
  if (p.operands.empty() ||
      (m_->op(p.operands[0]) != Opcode::AsyncStart && m_->op(p.operands[0]) != Opcode::AsyncUpdate))
    error_at(p.op_at, "{} takes an async-start or async-update as its operand", op_text(p.op));
  auto [start, early] = async_root(p.operands[0]);
  CompId callee = m_->attrs(start).comp(Attr::calls);
  Opcode runs = m_->op(m_->comp(callee).root);
  if (p.is_short && runs != p.base)
    error_at(p.op_at, "the async-start runs {}, not {}", op_text(runs), op_text(p.base));
  if (p.op == Opcode::AsyncDone) return;
  // Without operands of its own it has the shape of its operand, but for results that are bound here.
  if (p.operands.size() == 1 && p.shape.valid()) {
    const Shape &mine = u_[p.shape], &before = u_[m_->shape_id(p.operands[0])];
    bool same = mine.is_tuple() && before.is_tuple() && mine.elements.size() == before.elements.size();
    for (size_t k = 0; same && k < mine.elements.size(); ++k)
      same = k == 1 ? is_prefix_of(u_, before.elements[k], mine.elements[k])
                    : u_.compatible(before.elements[k], mine.elements[k]);
    if (!same) error_at(p.op_at, "async-update has the shape of its operand");
  }
  // Operands that come late are the last ones of the computation.
  size_t late = p.operands.size() - 1;
  const auto& params = m_->comp(callee).params;
  for (size_t i = 0; i < late; ++i)
    if (early + i >= params.size() || !u_.compatible(m_->shape_id(params[early + i]), m_->shape_id(p.operands[1 + i])))
      error_at(p.op_at, "the computation has no parameter for late operand {}", i);
}

// Makes the computation that the short form of async-start hides; in both forms checks the shape.
void Parser::wrap_async(Pending& p) {
  auto of_form = [&] {
    if (!p.shape.valid() || !u_[p.shape].is_tuple()) return false;
    const Shape& s = u_[p.shape];
    return s.elements.size() >= 2 && u_[s.elements[0]].is_tuple();
  };
  if (!of_form()) error_at(p.op_at, "async-start has a shape of the form ((operands), results, …)");
  if (!p.is_short) return set_thread(p);
  Pending& w = *p.wrapped;
  const OpInfo& info = op_info(p.base);
  size_t count = p.operands.size();
  if (info.arity != kVar && static_cast<size_t>(info.arity) != count) {
    // Only an elementwise operation tells the shapes of operands that an update brings later.
    if (static_cast<size_t>(info.arity) < count || !info.elementwise)
      error_at(p.op_at, "{} takes {} operand(s), not {}", info.text, info.arity, count);
    count = static_cast<size_t>(info.arity);
  }
  w.shape = u_[p.shape].elements[1];
  check_attrs(w);
  check_operands(w, w.set);
  CompId hidden = m_->add_computation_verbatim(unique_comp_name(u_.str("async_wrapped")));
  inlined_ = true;
  finished_.push_back(hidden);
  w.operands.clear();
  for (size_t i = 0; i < count; ++i) {
    Inst param;
    param.op = Opcode::Parameter;
    param.shape = i < p.operands.size() ? m_->shape_id(p.operands[i]) : w.shape;
    param.operand[0] = static_cast<uint32_t>(i);
    w.operands.push_back(add_named(hidden, param, u_.str("async_param")));
  }
  if (StrId f = p.set.text(Attr::frontend_attributes); f.valid()) w.set.set(Attr::frontend_attributes, f);
  w.attrs = u_.attrs(w.set);
  w.name = u_.str(info.text);
  m_->set_root(hidden, append(hidden, w));
  p.set.op = p.op;
  p.set.set(Attr::calls, hidden);
  p.attrs = u_.attrs(p.set);
  set_thread(p);
}

}  // namespace hlo
