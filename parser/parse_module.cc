// Headers, computations and instructions.
#include <algorithm>
#include <cstring>
#include <map>

#include "ir/base/stack_guard.h"
#include "ir/print.h"
#include "ir/shape_inference.h"
#include "parser/parser_impl.h"

namespace hlo {

Parser::Parser(std::string_view text, std::shared_ptr<Universe> universe, const ParseOptions& options)
    : text_(text),
      universe_(std::move(universe)),
      u_(*universe_),
      options_(options),
      m_(std::make_unique<Module>(universe_)) {}

// --- names and definitions ---

StrId Parser::unique_inst_name(StrId name) {
  if (!slow_names_) {
    // `x.0` takes the same place in the uniquer as `x`; other leading zeros are for its own rules.
    std::string_view text = u_.text(name);
    size_t digits = text.size();
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
    bool zero = digits < text.size() && digits > 1 && text[digits - 1] == '.' && text[digits] == '0';
    StrId twin = zero ? u_.str(text.substr(0, digits - 1)) : StrId();
    size_t highest = std::max(name.value, zero ? twin.value : 0);
    if (taken_inst_.size() <= highest)
      taken_inst_.resize(std::max<size_t>(u_.string_count(), highest + 1) * 5 / 4 + 64);
    bool free = !taken_inst_[name.value] && (!zero || (digits + 1 == text.size() && !taken_inst_[twin.value]));
    if (free) {
      taken_inst_[name.value] = true;
      if (zero) taken_inst_[twin.value] = true;
      return name;
    }
    // The first clash: catch up with all names so far, in order.
    slow_names_ = true;
    for (size_t i = 0; i < m_->inst_slots(); ++i) inst_names_.unique(m_->inst_name(InstId(i)));
  }
  return u_.str(inst_names_.unique(u_.text(name)));
}

StrId Parser::unique_comp_name(StrId name) {
  if (!slow_comp_names_) {
    if (taken_comp_.size() <= name.value) taken_comp_.resize(name.value + 64);
    if (!taken_comp_[name.value]) {
      taken_comp_[name.value] = true;
      return name;
    }
    slow_comp_names_ = true;
    for (size_t i = 0; i < m_->comp_slots(); ++i) comp_names_.unique(m_->comp_name(CompId(i)));
  }
  return u_.str(comp_names_.unique(u_.text(name)));
}

InstId Parser::find(StrId n, CompId comp, size_t at) {
  if (n.value < definition_.size() && definition_[n.value] != Id<int>::kNone) {
    InstId id(definition_[n.value]);
    if (!comp.valid() || m_->parent(id) == comp) return id;
  }
  if (std::find(poisoned_.begin(), poisoned_.end(), n) != poisoned_.end()) {
    SyntaxError e;
    e.silent = true;
    throw e;
  }
  // Names of the same computation that are close.
  std::string_view best;
  int distance = 3;
  size_t seen = 0;
  if (comp.valid())
    for (InstId i : m_->comp(comp).order) {
      if (++seen > 20000) break;
      std::string_view known = m_->inst_name(i);
      if (known.size() + 3 < u_.text(n).size() || u_.text(n).size() + 3 < known.size()) continue;
      if (int d = edit_distance(u_.text(n), known); d < distance) distance = d, best = known;
    }
  error(at, fmt::format("instruction '{}' is not defined before this place", u_.text(n)),
        best.empty() ? "" : fmt::format("did you mean '{}'?", best));
}

void Parser::define(StrId n, InstId id, size_t at) {
  if (definition_.size() <= n.value) {
    definition_.resize(std::max<size_t>(u_.string_count(), n.value + 1) * 5 / 4 + 64, Id<int>::kNone);
    definition_at_.resize(definition_.size(), 0);
  }
  uint32_t old = definition_[n.value];
  if (old != Id<int>::kNone && m_->parent(InstId(old)) == m_->parent(id)) {
    SyntaxError e;
    e.diagnostic = {at,
                    fmt::format("instruction '{}' is defined twice in this computation", u_.text(n)),
                    "",
                    {{definition_at_[n.value], "first defined here"}}};
    throw e;
  }
  if (shadow_) shadow_->push_back({n, old});
  definition_[n.value] = id.value;
  definition_at_[n.value] = static_cast<uint32_t>(at);
  recent_[1] = recent_[0];
  recent_[0] = {u_.text(n), id};
}

// --- instructions ---

InstId Parser::operand(CompId comp) {
  skip();
  if (peek() == '%' && !bare_)
    for (const Recent& r : recent_)
      if (r.id.valid() && text_.compare(at_ + 1, r.name.size(), r.name) == 0 &&
          (peek(r.name.size() + 1) == ',' || peek(r.name.size() + 1) == ')') && m_->parent(r.id) == comp) {
        at_ += r.name.size() + 1;
        return r.id;
      }
  size_t place = at_;
  ShapeId stated;
  bool shaped = at_shape();
  if (shaped) stated = shape();
  skip();
  size_t name_at = at_;
  if (bare_ && shaped && bare_comp_ == comp && (peek() == ',' || peek() == ')')) {
    bare_params_.push_back({StrId(), stated});
  }
  if (bare_ && shaped && bare_comp_ == comp) {
    StrId n = peek() == ',' || peek() == ')' ? u_.str(fmt::format("_{}", bare_params_.size() - 1))
                                             : name("the name of an operand");
    if (n.value < definition_.size() && definition_[n.value] != Id<int>::kNone) {
      InstId known(definition_[n.value]);
      if (!u_.compatible(stated, m_->shape_id(known)))
        error_at(place, "operand '{}' is a {}, not a {}", u_.text(n), u_.shape_text_plain(m_->shape_id(known)),
                 u_.shape_text_plain(stated));
      return known;
    }
    Inst inst;
    inst.op = Opcode::Parameter;
    inst.shape = stated;
    inst.operand[0] = static_cast<uint32_t>(m_->comp(comp).params.size());
    InstId id = add_named(comp, inst, n);
    define(n, id, name_at);
    return id;
  }
  bool percent = peek() == '%';
  if (percent) ++at_;
  std::string_view w = word();
  if (w.empty()) {
    at_ = name_at;
    if (done()) error_here("expected an operand, but the text ends here");
    error_here("expected an operand");
  }
  // An operation in place of a name: `add(p, multiply(p, q))`.
  if (!percent && peek() == '(') {
    Opcode op;
    Pending form;
    bool known = op_from_text(w, &op);
    if (!known && async_short_form(w, &form)) op = form.op, known = true;
    if (known) {
      at_ = place;
      check_stack("operations are nested");
      if (++depth_ > 2000) error_here("operations are nested too deeply");
      InstId id = parse_instruction(comp, StrId(), place, true);
      --depth_;
      return id;
    }
  }
  if (peek() == ':') ++at_;
  if (bare_ && bare_comp_ == comp && !shaped)
    error_at(name_at, "operand '{}' of a lone instruction needs its shape", w);
  InstId id;
  StrId n = u_.find_str(w);
  if (n.valid() && n.value < definition_.size() && definition_[n.value] != Id<int>::kNone &&
      m_->parent(InstId(definition_[n.value])) == comp)
    id = InstId(definition_[n.value]);
  else
    id = find(u_.str(w), comp, name_at);
  // Compact form `%t#1#0` for elements of tuples.
  std::string written;
  if (peek() == '#') written = w;
  while (peek() == '#') {
    ++at_;
    size_t index_at = at_;
    int64_t index = integer("the index of a tuple element");
    const Shape& tuple = m_->shape(id);
    if (!tuple.is_tuple() || index < 0 || index >= static_cast<int64_t>(tuple.elements.size()))
      error_at(index_at, "no element {} in this operand", index);
    // One instruction, however often it is written: `t_0` of `%t#0`, made in front of its first reader.
    auto [known, first] = compact_.try_emplace(std::pair(id, index));
    written += fmt::format("_{}", index);
    if (first) known->second = element_of(comp, id, index, written);
    id = known->second;
  }
  if (shaped && stated != m_->shape_id(id) && !u_.compatible(stated, m_->shape_id(id)))
    error_at(place, "operand '{}' is a {}, not a {}", w, u_.shape_text_plain(m_->shape_id(id)),
             u_.shape_text_plain(stated));
  return id;
}

InstId Parser::element_of(CompId comp, InstId tuple, int64_t index, std::string_view name) {
  Inst gte;
  gte.op = Opcode::GetTupleElement;
  gte.shape = m_->shape(tuple).elements[static_cast<size_t>(index)];
  AttrSet set;
  set.op = gte.op;
  set.set(Attr::index, index);
  gte.attrs = u_.attrs(std::move(set));
  gte.count_low = 1;
  gte.operand[0] = tuple.value;
  return add_named(comp, gte, u_.str(name));
}

void Parser::operands(CompId comp, Pending& p) {
  expect('(', "before the operands");
  if (p.op == Opcode::Parameter) {
    size_t at = at_;
    uint64_t number = natural("the number of a parameter");
    if (number > 1'000'000) error_at(at, "parameter number {} is too large", number);
    const Computation& c = m_->comp(comp);
    if (number < c.params.size() && c.params[number].valid())
      error_at(at, "parameter {} is defined twice in this computation", number);
    p.payload = static_cast<uint32_t>(number);
  } else if (p.op == Opcode::Constant) {
    if (!p.shape.valid()) error_at(p.op_at, "constant needs its shape written");
    skip();
    if (options_.literals && peek() == '#') {
      ++at_;
      uint64_t number = natural("the number of a literal");
      if (number >= options_.literals->size() || !u_.compatible(u_[(*options_.literals)[number]].shape, p.shape))
        error_here("literal {} does not fit", number);
      p.payload = (*options_.literals)[number].value;
    } else {
      p.payload = literal(p.shape).value;
    }
  } else {
    while (eat(',')) {
    }
    while (!eat(')')) {
      p.operands.push_back(operand(comp));
      if (eat(')')) break;
      expect(',', "between operands");
      while (eat(',')) {  // XLA takes any number of commas
      }
    }
    return;
  }
  expect(')', "behind the operand");
}

InstId Parser::parse_instruction(CompId comp, StrId n, size_t name_at, bool nested) {
  Pending p;
  p.operands = std::move(spare_operands_);
  p.operands.clear();
  p.set.list = std::move(spare_attrs_);
  p.set.list.clear();
  p.seen = std::move(spare_seen_);
  p.seen.clear();
  p.name = n;
  p.name_at = name_at;
  if (at_shape()) p.shape = shape();
  skip();
  p.op_at = at_;
  std::string_view w = word();
  if (w.empty()) error_here("expected an opcode");
  if (!op_from_text(w, &p.op) && !async_short_form(w, &p)) {
    std::string_view near = nearest_opcode(w);
    error(p.op_at, fmt::format("unknown opcode '{}'", w), near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  operands(comp, p);
  if (p.op == Opcode::AsyncUpdate || p.op == Opcode::AsyncDone) check_async_chain(p);
  const OpInfo& info = op_info(p.op);
  if (info.arity != kVar && static_cast<size_t>(info.arity) != p.operands.size() && !(p.op == Opcode::Rng))
    error_at(p.op_at, "{} takes {} operand{}, not {}", w, info.arity, info.arity == 1 ? "" : "s", p.operands.size());
  std::optional<Pending> wrapped;
  if (p.is_short && p.op == Opcode::AsyncStart) {
    wrapped.emplace();
    wrapped->op = wrapped->set.op = p.base;
    wrapped->op_at = p.op_at;
    wrapped->operands = p.operands;
    p.wrapped = &*wrapped;
  }
  if (nested && !p.is_short) {
    p.set.op = p.op;
    check_attrs(p);
    p.attrs = u_.attrs(p.set);
  } else if (!nested) {
    attributes(p);
  } else {
    p.set.op = p.op;
  }
  if (op_info(p.op).cls != OpClass::Elementwise) check_operands(p, p.attrs.valid() ? u_[p.attrs] : p.set);
  if (p.op == Opcode::AsyncStart) wrap_async(p);
  InstId id = finish(comp, p);
  spare_operands_ = std::move(p.operands);
  spare_attrs_ = std::move(p.set.list);
  spare_seen_ = std::move(p.seen);
  return id;
}

// Of an operation in place of an operand: `multiply.anon`, `multiply.anon.1` …, what the computation has no name for
// yet.
StrId Parser::anonymous_name(CompId comp, Opcode op) {
  if (anonymous_comp_ != comp) anonymous_next_.clear(), anonymous_comp_ = comp;
  auto taken = [&](StrId n) {
    return n.value < definition_.size() && definition_[n.value] != Id<int>::kNone &&
           m_->parent(InstId(definition_[n.value])) == comp;
  };
  std::string base = fmt::format("{}.anon", op_text(op));
  size_t& next = anonymous_next_[op];
  StrId n = u_.str(next ? fmt::format("{}.{}", base, next) : base);
  while (taken(n)) n = u_.str(fmt::format("{}.{}", base, ++next));
  return n;
}

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
  m_->comp(hidden).root = append(hidden, w);
  p.set.op = p.op;
  p.set.set(Attr::calls, hidden);
  p.attrs = u_.attrs(p.set);
  set_thread(p);
}

// What an async-start calls, directly or not, runs on its thread.
void Parser::set_thread(const Pending& p) {
  StrId thread = u_[p.attrs].text(Attr::async_execution_thread);
  if (!thread.valid()) return;
  std::vector<CompId> stack{u_[p.attrs].comp(Attr::calls)};
  std::vector<CompId> seen;
  while (!stack.empty()) {
    CompId c = stack.back();
    stack.pop_back();
    if (std::find(seen.begin(), seen.end(), c) != seen.end()) continue;
    seen.push_back(c);
    m_->comp(c).thread = thread;
    for (InstId i : m_->comp(c).order)
      for (CompId callee : m_->called(i)) stack.push_back(callee);
  }
}

InstId Parser::add_named(CompId comp, Inst inst, StrId wish) {
  inst.name = unique_inst_name(wish);
  InstId id = m_->add_verbatim(comp, inst);
  if (inst.name != wish) renamed_.emplace_back(id, wish);
  return id;
}

// XLA names computations and instructions in the order in which it has read the computations to their end: inner ones
// before those around them.
void Parser::rename_inlined() {
  std::unordered_map<InstId, StrId> wish(renamed_.begin(), renamed_.end());
  NameUniquer insts, comps;
  for (CompId c : finished_) {
    auto named = comp_wish_.find(c);
    m_->comp(c).name = u_.str(comps.unique(u_.text(named == comp_wish_.end() ? m_->comp(c).name : named->second)));
    for (InstId i : m_->comp(c).order) {
      auto found = wish.find(i);
      m_->set_name(i, u_.str(insts.unique(u_.text(found == wish.end() ? (*m_)[i].name : found->second))));
    }
  }
  m_->set_computation_order(finished_);
}

InstId Parser::finish(CompId comp, Pending& p) {
  if (!p.shape.valid()) {
    Inferred inferred = infer_shape(*m_, p.op, p.operands, u_[p.attrs]);
    if (!inferred.shape.valid())
      error_at(p.op_at, "{}",
               inferred.error.empty() ? fmt::format("{} needs its shape written", op_text(p.op)) : inferred.error);
    p.shape = inferred.shape;
  }
  if (p.op == Opcode::AfterAll || p.op == Opcode::Outfeed || p.op == Opcode::SendDone)
    p.shape = u_.scalar(ElementType::Token);
  if (p.op == Opcode::Infeed && p.shape.valid() && u_[p.shape].is_tuple() && !u_[p.shape].elements.empty())
    p.shape = u_.tuple({u_[p.shape].elements[0], u_.scalar(ElementType::Token)});
  if (p.op == Opcode::Outfeed && !u_[p.attrs].has(Attr::outfeed_shape)) {
    AttrSet set = u_[p.attrs];
    set.op = p.op;
    set.set(Attr::outfeed_shape, m_->shape_id(p.operands[0]));
    p.attrs = u_.attrs(std::move(set));
  }
  if (p.op == Opcode::Send || p.op == Opcode::Recv) {
    // The shape is that of the data, a context and a token, whatever was written.
    ShapeId data = p.op == Opcode::Send ? m_->shape_id(p.operands[0]) : ShapeId();
    if (!data.valid()) {
      if (!u_[p.shape].is_tuple() || u_[p.shape].elements.empty()) error_at(p.op_at, "recv returns a tuple");
      data = u_[p.shape].elements[0];
    }
    p.shape = u_.tuple({data, u_.scalar(ElementType::U32), u_.scalar(ElementType::Token)});
  }
  if (!p.name.valid()) p.name = anonymous_name(comp, p.op);
  InstId id = append(comp, p);
  if (p.op == Opcode::AsyncUpdate) {
    auto [start, early] = async_root(p.operands[0]);
    async_chain_[id] = {start, early + p.operands.size() - 1};
  }
  for (InstId before : p.control) {
    if (m_->parent(before) != comp) error_at(p.name_at, "a control predecessor of another computation");
    m_->add_control(before, id);
  }
  define(p.name, id, p.name_at);
  return id;
}

InstId Parser::append(CompId comp, Pending& p) {
  Inst inst;
  inst.op = p.op;
  inst.shape = p.shape;
  inst.attrs = p.attrs;
  inst.meta = p.meta;
  if (p.op == Opcode::Constant || p.op == Opcode::Parameter) {
    inst.operand[0] = p.payload;
  } else if (p.operands.size() <= 2) {
    inst.count_low = static_cast<uint16_t>(p.operands.size());
    for (size_t i = 0; i < p.operands.size(); ++i) inst.operand[i] = p.operands[i].value;
  } else if (p.operands.size() < 0xFFFF) {
    inst.count_low = static_cast<uint16_t>(p.operands.size());
    inst.operand[0] = u_.pool_add(p.operands.data(), p.operands.size());
  } else {
    p.operands.insert(p.operands.begin(), InstId(p.operands.size()));
    inst.count_low = 0xFFFF;
    inst.operand[0] = u_.pool_add(p.operands.data(), p.operands.size());
  }
  return add_named(comp, inst, p.name);
}

bool Parser::instruction(CompId comp, bool) {
  // More of them than expected: as many as the text read so far lets expect, not twice as many.
  if (size_t count = m_->inst_slots(); room_ && count >= room_) {
    double scale = std::min(2.0, 1.01 * static_cast<double>(text_.size()) / static_cast<double>(at_ + 1));
    room_ = std::max(count + count / 8, static_cast<size_t>(static_cast<double>(count) * scale));
    m_->reserve(room_);
  }
  bool root = false;
  skip();
  if (eat_word("ROOT")) root = true;
  skip();
  size_t name_at = at_;
  bool percent = peek() == '%';
  StrId n = name("the name of an instruction");
  try {
    ElementType type;
    if (percent && u_.reserved(n) && type_from_name(u_.text(n), &type))
      error_at(name_at, "'{}' is an element type and cannot be a name", u_.text(n));
    if (peek() == '=' && !percent) error(at_, "'=' needs a space before it here", "write `name = shape opcode(…)`");
    expect('=', "behind the name of an instruction");
    InstId id = parse_instruction(comp, n, name_at, false);
    if (root) {
      if (m_->comp(comp).root.valid()) error_at(name_at, "a second ROOT in this computation");
      m_->comp(comp).root = id;
    }
  } catch (SyntaxError& e) {
    poisoned_.push_back(n);
    throw;
  }
  return root;
}

// --- computations ---

void Parser::recover() {
  // To the next line that looks like an instruction or the end of the computation.
  depth_ = 0;
  while (!done()) {
    size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) {
      at_ = text_.size();
      return;
    }
    at_ = end + 1;
    size_t look = at_;
    while (look < text_.size() && (text_[look] == ' ' || text_[look] == '\t')) ++look;
    if (look < text_.size() && text_[look] == '}') {
      at_ = look;
      return;
    }
    std::string_view rest = text_.substr(look, std::min(text_.find('\n', look), text_.size()) - look);
    if (rest.find(" = ") != std::string_view::npos) return;
  }
}

CompId Parser::computation(bool inline_body) {
  CompId comp;
  size_t start = at_;
  bool entry = false;
  StrId wish;
  if (inline_body) {
    wish = u_.str("_");
  } else {
    entry = eat_word("ENTRY");
    if (entry && m_->entry().valid()) error_at(start, "a second ENTRY");
    skip();
    start = at_;
    wish = name("the name of a computation");
    if (comp_by_name_.contains(wish)) error_at(start, "computation '{}' is defined twice", u_.text(wish));
  }
  ShapeId declared;
  skip();
  size_t shape_at = at_;
  if (!inline_body && peek() == '(') {
    // The parameter list is read and ignored, but for its form.
    expect('(', "before the parameters");
    while (!eat(')')) {
      eat(',');
      signature_name();
      shape();
    }
    if (!eat("->")) error_here("expected '->' behind the parameters");
    skip();
    shape_at = at_;
    declared = shape();
  }
  // An inline computation's names hide those around it until it ends, be it by an error.
  struct Shadows {
    Parser& parser;
    std::vector<std::pair<StrId, uint32_t>> hidden;
    std::vector<std::pair<StrId, uint32_t>>* outer = nullptr;
    bool open = false;
    void begin() {
      outer = parser.shadow_;
      parser.shadow_ = &hidden;
      open = true;
    }
    void end() {
      if (!open) return;
      for (auto it = hidden.rbegin(); it != hidden.rend(); ++it) parser.definition_[it->first.value] = it->second;
      parser.shadow_ = outer;
      open = false;
    }
    ~Shadows() { end(); }
  } shadows{*this, {}};
  if (inline_body) shadows.begin();
  check_stack("computations are nested");
  if (++depth_ > 200) error_here("computations are nested too deeply");
  comp = m_->add_computation_verbatim(unique_comp_name(wish));
  if (m_->comp(comp).name != wish) comp_wish_[comp] = wish;
  inlined_ |= inline_body;
  size_t open = at_;
  expect('{', "before the instructions of a computation");
  bool failed = false;
  while (!eat('}')) {
    if (done()) {
      if (failed) break;
      SyntaxError e;
      e.diagnostic = {
          at_, "the text ends inside a computation", "the file is cut off?", {{open, "the computation starts here"}}};
      throw e;
    }
    try {
      instruction(comp, inline_body);
    } catch (SyntaxError& e) {
      if (inline_body) throw;
      failed = true;
      if (!e.silent) errors_.push_back(e);
      if (static_cast<int>(errors_.size()) >= options_.max_errors) throw SyntaxError{{}, true};
      recover();
    }
  }
  --depth_;
  shadows.end();
  Computation& c = m_->comp(comp);
  if (failed) {
    comp_by_name_[wish] = comp;
    broken_.push_back(comp);
    if (entry) m_->set_entry(comp);
    return comp;
  }
  if (c.order.empty()) error_at(start, "computation '{}' is empty", u_.text(wish));
  if (!c.root.valid()) c.root = c.order.back();
  check_parameters(comp, start);
  if (declared.valid() && !u_.compatible(declared, m_->shape_id(c.root)))
    error_at(shape_at, "computation '{}' returns a {}, not a {}", u_.text(wish),
             u_.shape_text_plain(m_->shape_id(c.root)), u_.shape_text_plain(declared));
  size_t behind = at_;
  if (bool more = eat(','); more && eat_word("execution_thread")) {
    expect('=', "behind execution_thread");
    std::string thread = quoted("the name of a thread");
    if (thread != "main") m_->comp(comp).thread = u_.str(thread);
  } else if (more && !inline_body) {
    error_here("expected execution_thread");
  } else {
    at_ = behind;  // behind a body in place the caller's next attribute may stand
  }
  if (!inline_body) comp_by_name_[wish] = comp;
  if (entry) m_->set_entry(comp);
  finished_.push_back(comp);
  return comp;
}

void Parser::check_parameters(CompId comp, size_t at) {
  const auto& params = m_->comp(comp).params;
  for (size_t i = 0; i < params.size(); ++i)
    if (!params[i].valid())
      error_at(at, "computation '{}' has no parameter {} but has parameter {}", m_->comp_name(comp), i,
               params.size() - 1);
}

// --- module ---

std::string Parser::alias_text(bool donor) {
  auto index_text = [](const Dims& path) { return fmt::format("{{{}}}", fmt::join(path, ",")); };
  // By output; donors by parameter. XLA keeps both sorted and without repeats.
  std::map<std::vector<int64_t>, std::string> entries;
  expect('{', "before aliases");
  bool first = true;
  while (!eat('}')) {
    if (!first) expect(',', "between aliases");
    first = false;
    std::vector<int64_t> key;
    std::string out;
    if (!donor) {
      skip();
      size_t place = at_;
      key = int_list("a shape index");
      alias_outputs_.emplace_back(key, place);
      out = index_text(key) + ": ";
      expect(':', "behind an output's index");
    }
    expect('(', "before a parameter's index");
    uint64_t number = natural("the number of a parameter");
    expect(',', "behind the number of a parameter");
    Dims path = int_list("a shape index");
    out += fmt::format("({}, {}", number, index_text(path));
    if (donor) {
      key = path;
      key.insert(key.begin(), static_cast<int64_t>(number));
    } else {
      std::string_view kind = "may-alias";
      if (eat(',')) {
        skip();
        size_t place = at_;
        kind = word();
        if (kind != "may-alias" && kind != "must-alias") error_at(place, "an alias is may-alias or must-alias");
      }
      out += ", " + std::string(kind);
    }
    entries.emplace(std::move(key), out + ")");
    expect(')', "behind an alias");
  }
  std::string all;
  for (const auto& [key, text] : entries) all += (all.empty() ? "{ " : ", ") + text;
  return all.empty() ? all : all + " }";
}

void Parser::header() {
  m_->name = std::string(u_.text(name("the name of the module")));
  eat(':');
  std::vector<std::string> seen;
  while (eat(',')) {
    skip();
    size_t start = at_;
    std::string key(word());
    if (peek() != '=') error_at(start, "expected a field of the module header");
    ++at_;
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) error_at(start, "header field '{}' stands twice", key);
    seen.push_back(key);
    ModuleConfig& c = m_->config;
    auto flags = [&](std::string& slot) {
      skip();
      if (peek() == '{') {
        slot = "{";
        ++at_;
        while (!eat('}')) {
          if (slot.size() > 1) expect(',', "between flags"), slot += ",";
          slot += boolean("a flag") ? "true" : "false";
        }
        slot += "}";
      } else {
        slot = boolean("a flag") ? "{true}" : "{false}";
      }
      if (slot == "{false}" || slot == "{}") slot.clear();
    };
    if (key == "is_scheduled")
      c.is_scheduled = boolean("is_scheduled");
    else if (key == "input_output_alias")
      c.input_output_alias = alias_text(false);
    else if (key == "buffer_donor")
      c.buffer_donor = alias_text(true);
    else if (key == "alias_passthrough_params")
      c.alias_passthrough_params = boolean("alias_passthrough_params");
    else if (key == "replica_count")
      c.replica_count = integer("replica_count");
    else if (key == "num_partitions")
      c.num_partitions = integer("num_partitions");
    else if (key == "allow_spmd_sharding_propagation_to_parameters")
      flags(c.spmd_to_parameters);
    else if (key == "allow_spmd_sharding_propagation_to_output")
      flags(c.spmd_to_output);
    else if (key == "frontend_attributes")
      c.frontend_attributes = canonical_dict();
    else if (key == "origin_recovery_table")
      c.origin_recovery_table = origin_recovery_table();
    else if (key == "debug_attributes")
      c.debug_attributes = balanced();
    else if (key == "entry_computation_layout") {
      expect('{', "before the entry layout");
      expect('(', "before the entry's parameters");
      while (!eat(')')) {
        if (!c.entry_params.empty()) expect(',', "between the entry's parameters");
        c.entry_params.push_back(shape());
      }
      if (!eat("->")) error_here("expected '->'");
      c.entry_result = shape();
      expect('}', "behind the entry layout");
      c.has_entry_layout = true;
    } else if (options_.permissive) {
      c.kept_verbatim += fmt::format(", {}={}", key, raw_value());
    } else {
      std::string_view best;
      int distance = 5;
      for (std::string_view known : {"is_scheduled", "input_output_alias", "buffer_donor", "alias_passthrough_params",
                                     "replica_count", "num_partitions", "allow_spmd_sharding_propagation_to_parameters",
                                     "allow_spmd_sharding_propagation_to_output", "frontend_attributes",
                                     "origin_recovery_table", "debug_attributes", "entry_computation_layout"})
        if (int d = edit_distance(key, known); d < distance) distance = d, best = known;
      error(start, fmt::format("unknown header field '{}'", key),
            best.empty() ? "" : fmt::format("did you mean '{}'?", best));
    }
  }
}

void Parser::stack_tables() {
  StackTables& s = m_->stack;
  auto numbered = [&] {
    skip();
    return peek() >= '0' && peek() <= '9';
  };
  // `{a=1 b=2}` with just these fields in this order, as XLA writes them: false, and nothing read, for all others.
  auto in_order = [&](std::initializer_list<std::pair<std::string_view, int32_t*>> list) {
    size_t at = at_;
    bool first = true;
    for (const auto& [key, slot] : list) {
      if (at >= text_.size() || text_[at] != (first ? '{' : ' ')) return false;
      if (text_.compare(++at, key.size(), key) != 0) return false;
      at += key.size(), first = false;
      size_t digits = at;
      int32_t value = 0;
      while (at < text_.size() && at - digits < 9 && text_[at] >= '0' && text_[at] <= '9')
        value = value * 10 + (text_[at++] - '0');
      if (at == digits) return false;
      *slot = value;
    }
    if (at >= text_.size() || text_[at] != '}') return false;
    at_ = at + 1;
    return true;
  };
  auto fields = [&](auto&& set) {
    expect('{', "before a table row");
    while (!eat('}')) {
      skip();
      if (peek() == ',') {
        ++at_;
        continue;
      }
      size_t place = at_;
      std::string_view key = word();
      if (peek() != '=') error_at(place, "expected a field of a table row");
      ++at_;
      if (!set(key, static_cast<int32_t>(integer("a number")))) error_at(place, "unknown field '{}'", key);
    }
  };
  for (;;) {
    if (eat_word("FileNames")) {
      while (numbered()) integer("a number"), s.files.push_back(quoted("a file name"));
    } else if (eat_word("FunctionNames")) {
      while (numbered()) integer("a number"), s.functions.push_back(quoted("a function name"));
    } else if (eat_word("FileLocations")) {
      while (numbered()) {
        integer("a number");
        StackTables::Location l;
        skip();
        if (in_order({{"file_name_id=", &l.file},
                      {"function_name_id=", &l.function},
                      {"line=", &l.line},
                      {"end_line=", &l.end_line},
                      {"column=", &l.column},
                      {"end_column=", &l.end_column}})) {
          s.locations.push_back(l);
          continue;
        }
        l = {};
        fields([&](std::string_view key, int32_t v) {
          if (key == "file_name_id")
            l.file = v;
          else if (key == "function_name_id")
            l.function = v;
          else if (key == "line")
            l.line = v;
          else if (key == "end_line")
            l.end_line = v;
          else if (key == "column")
            l.column = v;
          else if (key == "end_column")
            l.end_column = v;
          else
            return false;
          return true;
        });
        s.locations.push_back(l);
      }
    } else if (eat_word("StackFrames")) {
      while (numbered()) {
        integer("a number");
        StackTables::Frame f;
        skip();
        if (int32_t parent = 0; in_order({{"file_location_id=", &f.location}, {"parent_frame_id=", &parent}})) {
          f.parent = parent - 1;
          s.frames.push_back(f);
          continue;
        }
        f = {};
        fields([&](std::string_view key, int32_t v) {
          if (key == "file_location_id")
            f.location = v;
          else if (key == "parent_frame_id")
            f.parent = static_cast<int32_t>(int64_t{v} - 1);  // written one too high: 1 is no parent
          else
            return false;
          return true;
        });
        s.frames.push_back(f);
      }
    } else {
      return;
    }
  }
}

std::unique_ptr<Module> Parser::bare_instruction() {
  bare_ = true;
  m_->config.is_scheduled = true;
  eat_word("ROOT");
  skip();
  size_t start = at_;
  StrId wish = u_.str("_");
  // `name = …` or the operation alone.
  size_t save = at_;
  bool percent = peek() == '%';
  if (percent) ++at_;
  std::string_view w = word();
  bool named = !w.empty();
  if (named) {
    skip();
    named = peek() == '=';
  }
  CompId comp = bare_comp_ = m_->add_computation_verbatim(unique_comp_name(u_.str("_")));
  finished_.push_back(comp);
  if (named) {
    wish = u_.str(w);
    ++at_;
  } else {
    at_ = save;
  }
  m_->name = "_";
  InstId root = parse_instruction(comp, wish, start, false);
  m_->comp(comp).root = root;
  m_->set_entry(comp);
  skip();
  if (!done()) error_here("unexpected text behind the instruction");
  finish_module();
  return std::move(m_);
}

void Parser::finish_module() {
  Module& m = *m_;
  if (inlined_ && errors_.empty()) rename_inlined();
  CompId entry = m.entry();
  const Computation& c = m.comp(entry);
  ModuleConfig& config = m.config;
  if (!config.has_entry_layout) {
    for (InstId p : c.params) config.entry_params.push_back(m.shape_id(p));
    config.entry_result = m.shape_id(c.root);
    config.has_entry_layout = true;
  }
  // Shapes that differ from the entry's are the verifier's business. Aliases must name outputs that exist.
  for (const auto& [index, place] : alias_outputs_) {
    if (!u_.subshape(config.entry_result, index).valid())
      error_at(place, "the result {} has no element {{{}}}", u_.shape_text_plain(config.entry_result),
               fmt::join(index, ","));
  }
}

// `ENTRY`, or a name and then a signature or a body.
bool Parser::at_computation() {
  size_t save = at_;
  if (eat_word("ENTRY")) {
    at_ = save;
    return true;
  }
  if (peek() == '%') ++at_;
  bool named = !word().empty();
  skip();
  bool yes = named && (peek() == '{' || peek() == '(');
  at_ = save;
  return yes;
}

std::unique_ptr<Module> Parser::module() {
  try {
    if (size_t nul = text_.find('\0'); nul != std::string_view::npos)
      error(nul, "a NUL byte: this is not HLO text", "protos end in .pb");
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") text_.remove_prefix(3);
    // About 100 bytes an instruction in real modules.
    if (text_.size() > (1 << 20)) {
      u_.reserve(text_.size() / 140);
      m_->reserve(room_ = text_.size() / 140);
    }
    skip();
    if (done()) error_here("the text is empty");
    if (std::string_view foreign = recognise_foreign(text_.substr(at_)); !foreign.empty())
      error_at(at_, "this is {}, not HLO text", foreign);
    if (eat_word("HloModule")) {
      header();
      stack_tables();
    } else {
      std::string_view w = peek_word();
      size_t save = at_;
      bool percent = peek() == '%';
      if (percent) ++at_;
      word();
      skip();
      char next = peek();
      bool bare = next == '=' || (!percent && next != '{' && next != '(' && w != "ENTRY") || w == "ROOT";
      at_ = save;
      if (at_shape()) bare = true;
      if (bare) return bare_instruction();
    }
    CompId last;
    size_t count = 0;
    for (skip(); !done(); skip()) {
      if (count && options_.text_behind && !at_computation()) break;
      if (size_t place = at_; eat_word("HloModule"))
        error(place, "a second module in this text", "split the modules by lines of `// -----`");
      last = computation(false);
      ++count;
    }
    if (!count) error_here("expected a computation, but the text ends here");
    if (errors_.empty()) {
      if (!m_->entry().valid()) m_->set_entry(last);
      if (m_->name.empty()) m_->name = "module_" + std::string(m_->comp_name(m_->entry()));
      finish_module();
      return std::move(m_);
    }
  } catch (SyntaxError& e) {
    if (!e.silent) errors_.push_back(e);
  } catch (const Failure& e) {
    // Of those below, which know no text: too large, too deep. They end the reading where they arise.
    Place place = place_of(text_, std::min(at_, text_.size()));
    fail(e.kind(), "{}:{}:{}: {}", options_.file, place.line + options_.first_line, place.column, e.what());
  }
  std::string all;
  for (const SyntaxError& e : errors_) all += render(options_.file, text_, e.diagnostic, options_.first_line);
  if (!all.empty()) all.pop_back();
  std::vector<SyntaxFailure::Entry> entries;
  for (const SyntaxError& e : errors_) {
    Place place = place_of(text_, e.diagnostic.offset);
    entries.push_back({place.line + options_.first_line, place.column, e.diagnostic.message, e.diagnostic.hint});
  }
  throw SyntaxFailure(all, std::move(entries));
}

ShapeId Parser::lone_shape() {
  return lone("shape", [&] { return shape(); });
}

LitId Parser::lone_literal(ShapeId s) {
  return lone("literal", [&] { return literal(s); });
}

std::unique_ptr<Module> parse_module(std::string_view text, std::shared_ptr<Universe> universe,
                                     const ParseOptions& options) {
  return Parser(text, std::move(universe), options).module();
}

ShapeId parse_shape(std::string_view text, Universe& universe) {
  return Parser(text, borrowed(universe), {}).lone_shape();
}

LitId parse_literal(std::string_view text, ShapeId shape, Universe& universe, const ParseOptions& options) {
  return Parser(text, borrowed(universe), options).lone_literal(shape);
}

std::string_view recognise_foreign(std::string_view text) {
  std::string_view head = text.substr(0, 4096);
  auto has = [&](std::string_view w) { return head.find(w) != std::string_view::npos; };
  if (head.starts_with("HloModule") || head.starts_with("ENTRY")) return {};
  if (has("stablehlo.") || has("vhlo."))
    return "StableHLO (MLIR); XLA's hlo-translate or jax's lowered.compiler_ir('hlo') gives HLO";
  if (has("mhlo.")) return "MHLO (MLIR)";
  if (head.starts_with("module @") || head.starts_with("module {") || has("func.func")) return "MLIR";
  if (head.starts_with("; ModuleID") || has("target datalayout")) return "LLVM IR";
  if (has(".visible .entry") || has(".target sm_")) return "PTX";
  if (head.starts_with("digraph")) return "a dot graph";
  if (has("hlo_module {") || head.starts_with("name: \"")) return "a protobuf in text form (.pbtxt)";
  if (head.starts_with("BufferAssignment:")) return "a buffer assignment";
  return {};
}

}  // namespace hlo
