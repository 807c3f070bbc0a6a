// Headers, computations and instructions.
#include <algorithm>
#include <cstring>
#include <map>

#include "ir/base/stack_guard.h"
#include "ir/inference/shape_inference.h"
#include "ir/print/print.h"
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

// An operand of a lone instruction, which its shape makes a parameter; `place`: where that stands.
InstId Parser::lone_operand(CompId comp, ShapeId stated, size_t place) {
  size_t name_at = at_;
  const bool nameless = peek() == ',' || peek() == ')';
  if (nameless) bare_params_.push_back({StrId(), stated});
  StrId n = nameless ? u_.str(fmt::format("_{}", bare_params_.size() - 1)) : name("the name of an operand");
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

// An operation in place of a name: `add(p, multiply(p, q))`; invalid where `w` names none.
InstId Parser::nested_operation(CompId comp, std::string_view w, size_t place) {
  Opcode op;
  Pending form;
  bool known = op_from_text(w, &op);
  if (!known && async_short_form(w, &form)) known = true;
  if (!known) return {};
  at_ = place;
  check_stack("operations are nested");
  if (++depth_ > 2000) error_here("operations are nested too deeply");
  InstId id = parse_instruction(comp, StrId(), place, true);
  --depth_;
  return id;
}

// Compact form `%t#1#0` for elements of tuples.
InstId Parser::tuple_part(CompId comp, InstId id, std::string_view name) {
  std::string written(name);
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
  return id;
}

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
  if (bare_ && shaped && bare_comp_ == comp) return lone_operand(comp, stated, place);
  bool percent = peek() == '%';
  if (percent) ++at_;
  std::string_view w = word();
  if (w.empty()) {
    at_ = name_at;
    if (done()) error_here("expected an operand, but the text ends here");
    error_here("expected an operand");
  }
  if (!percent && peek() == '(')
    if (InstId id = nested_operation(comp, w, place); id.valid()) return id;
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
  if (peek() == '#') id = tuple_part(comp, id, w);
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
  expect(')', "after the operand");
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
    m_->set_thread(c, thread);
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
    StrId wished = named == comp_wish_.end() ? m_->comp(c).name : named->second;
    m_->set_computation_name(c, u_.str(comps.unique(u_.text(wished))));
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
    expect('=', "after the name of an instruction");
    InstId id = parse_instruction(comp, n, name_at, false);
    if (root) {
      if (m_->comp(comp).root.valid()) error_at(name_at, "a second ROOT in this computation");
      m_->set_root(comp, id);
    }
  } catch (SyntaxError& e) {
    poisoned_.push_back(n);
    throw;
  }
  return root;
}

// --- module ---

std::unique_ptr<Module> Parser::bare_instruction() {
  bare_ = true;
  m_->set_scheduled(true);
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
  m_->set_module_name("_");
  InstId root = parse_instruction(comp, wish, start, false);
  m_->set_root(comp, root);
  m_->set_entry(comp);
  skip();
  if (!done()) error_here("unexpected text after the instruction");
  finish_module();
  return std::move(m_);
}

void Parser::finish_module() {
  Module& m = *m_;
  if (inlined_ && errors_.empty()) rename_inlined();
  CompId entry = m.entry();
  const Computation& c = m.comp(entry);
  ModuleConfig& config = m.edit_config();
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
      if (m_->name().empty()) m_->set_module_name("module_" + std::string(m_->comp_name(m_->entry())));
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

std::unique_ptr<Module> parse_module(std::string_view text, std::shared_ptr<Universe> universe,
                                     const ParseOptions& options) {
  return Parser(text, std::move(universe), options).module();
}

}  // namespace hlo
