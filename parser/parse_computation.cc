// Computations: signatures, bodies, parameters, and going on behind an error.
#include <algorithm>
#include <map>

#include "ir/base/stack_guard.h"
#include "ir/print/print.h"
#include "parser/parser_impl.h"

namespace hlo {

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

// An inline computation's names hide those around it until it ends, be it by an error.
struct Parser::Shadows {
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
};

// It is read and ignored, but for its form.
void Parser::parameter_list() {
  expect('(', "before the parameters");
  while (!eat(')')) {
    eat(',');
    signature_name();
    shape();
  }
}

// Up to the closing brace; `open`: where the other one is. False where some could not be read.
bool Parser::instructions(CompId comp, bool inline_body, size_t open) {
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
  return !failed;
}

void Parser::execution_thread(CompId comp, bool inline_body) {
  size_t behind = at_;
  if (bool more = eat(','); more && eat_word("execution_thread")) {
    expect('=', "after execution_thread");
    std::string thread = quoted("the name of a thread");
    if (thread != "main") m_->set_thread(comp, u_.str(thread));
  } else if (more && !inline_body) {
    error_here("expected execution_thread");
  } else {
    at_ = behind;  // behind a body in place the caller's next attribute may stand
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
    parameter_list();
    if (!eat("->")) error_here("expected '->' after the parameters");
    skip();
    shape_at = at_;
    declared = shape();
  }
  Shadows shadows{*this, {}};
  if (inline_body) shadows.begin();
  check_stack("computations are nested");
  if (++depth_ > 200) error_here("computations are nested too deeply");
  comp = m_->add_computation_verbatim(unique_comp_name(wish));
  if (m_->comp(comp).name != wish) comp_wish_[comp] = wish;
  inlined_ |= inline_body;
  size_t open = at_;
  expect('{', "before the instructions of a computation");
  const bool failed = !instructions(comp, inline_body, open);
  --depth_;
  shadows.end();
  const Computation& c = m_->comp(comp);
  if (failed) {
    comp_by_name_[wish] = comp;
    broken_.push_back(comp);
    if (entry) m_->set_entry(comp);
    return comp;
  }
  if (c.order.empty()) error_at(start, "computation '{}' is empty", u_.text(wish));
  if (!c.root.valid()) m_->set_root(comp, c.order.back());
  check_parameters(comp, start);
  if (declared.valid() && !u_.compatible(declared, m_->shape_id(c.root)))
    error_at(shape_at, "computation '{}' returns a {}, not a {}", u_.text(wish),
             u_.shape_text_plain(m_->shape_id(c.root)), u_.shape_text_plain(declared));
  execution_thread(comp, inline_body);
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

}  // namespace hlo
