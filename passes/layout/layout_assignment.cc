// layout-assignment (xla/service/layout_assignment.cc): what passes/layout/propagation.h finds becomes the arrays'
// layouts, with copies where a reader wants another one than there is.
#include "ir/sharding/aliasing.h"
#include "passes/layout/propagation.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// The parts of a tuple's sharding, `{{replicated}, {maximal device=0}}`, leaf by leaf; none where it is no tuple's.
std::vector<std::string> sharding_parts(std::string_view sharding) {
  std::vector<std::string> out;
  if (!sharding.starts_with("{{")) return out;
  int depth = 0;
  size_t from = 0;
  for (size_t k = 0; k < sharding.size(); ++k) {
    if (sharding[k] == '{' && ++depth == 2) from = k;
    if (sharding[k] == '}' && depth-- == 2) out.emplace_back(sharding.substr(from, k + 1 - from));
  }
  return out;
}

class LayoutAssigner {
 public:
  LayoutAssigner(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    const uint64_t before = m_.edits();
    prepare();
    LayoutPropagation p(m_, ctx_.number("capability"));
    p.run();
    p_ = &p;
    take_plan();
    for (CompId c : m_.nonfusion_computations()) computation(c);
    return m_.edits() != before;
  }

 private:
  // Senders, and calls that give back memory that they ask a layout of, get an array of their own.
  void prepare() {
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.post_order(c)) {
        if (m_.op(i) == Opcode::Send) own_operand(i, 0);
        if (m_.op(i) != Opcode::CustomCall || !m_.attrs(i).has(Attr::operand_layout_constraints)) continue;
        std::vector<bool> done(m_.operand_count(i));
        for (const AliasEntry& e : parse_aliases(u_.text(m_.attrs(i).text(Attr::output_to_operand_aliasing)))) {
          const auto n = static_cast<size_t>(e.number);
          if (e.number < 0 || n >= done.size() || done[n]) continue;
          done[n] = true;
          own_operand(i, n);
        }
      }
  }
  void own_operand(InstId i, size_t n) {
    if (m_.shape(m_.operand(i, n)).is_array())
      m_.set_operand(i, n, copy(m_.operand(i, n), m_.shape_id(m_.operand(i, n))));
  }

  // The shape of i in the orders of its parts; `rest`: with what the shape says of layouts besides.
  ShapeId laid_out(ShapeId shape, const NodeOrders& orders, size_t node = 0) {
    const Shape s = u_[shape];
    if (s.is_array() && orders[node] != Orders::kNone) {
      Shape out = s;
      out.layout.minor_to_major = p_->orders()[orders[node]];
      out.layout.rest.clear();
      return u_.shape(std::move(out));
    }
    if (!s.is_tuple()) return shape;
    std::vector<ShapeId> parts;
    for (size_t k = 0; k < s.elements.size(); ++k)
      parts.push_back(laid_out(s.elements[k], orders, node + p_->points().nodes().child(shape, k)));
    return u_.tuple(std::move(parts));
  }

  // All shapes, before copies come between: the analysis is of the module as it was.
  void take_plan() {
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.live_order(c)) {
        NodeOrders orders;
        for (BufferId b : p_->points().of(i)) orders.push_back(p_->order_of(b));
        if (m_.op(i) == Opcode::Bitcast) orders = p_->orders_in(m_.shape_id(i));
        ShapeId shape = laid_out(m_.shape_id(i), orders);
        if (m_.op(i) == Opcode::Parameter && c == m_.entry())
          shape = m_.config().entry_params[static_cast<size_t>(m_.parameter_number(i))];
        planned_.push_back({i, shape});
        for (size_t n = 0; n < m_.operand_count(i); ++n)
          if (const NodeOrders* wanted = p_->operand(i, n))
            demands_[i].push_back({n, laid_out(m_.shape_id(m_.operand(i, n)), *wanted)});
      }
    for (CompId c : m_.nonfusion_computations()) {
      const NodeOrders* wanted = p_->result(c);
      if (c == m_.entry())
        results_[c.value] = m_.config().entry_result;
      else if (wanted)
        results_[c.value] = laid_out(m_.shape_id(m_.comp(c).root), *wanted);
    }
    for (auto [i, shape] : planned_) m_.set_shape(i, shape);
  }

  bool lie_alike(ShapeId a, ShapeId b) {
    if (a == b) return true;
    const Shape &s = u_[a], &t = u_[b];
    if (s.is_tuple() != t.is_tuple() || s.elements.size() != t.elements.size()) return false;
    for (size_t k = 0; k < s.elements.size(); ++k)
      if (!lie_alike(s.elements[k], t.elements[k])) return false;
    return s.layout.minor_to_major == t.layout.minor_to_major;
  }

  InstId copy(InstId of, ShapeId wanted) {
    ctx_.note(m_, "copy for layout", {of}, u_.shape_text(wanted));
    InstId made = m_.add(m_.parent(of), {.op = Opcode::Copy, .shape = wanted, .operands = {of}, .meta = m_[of].meta});
    as_copied(of, made);
    return made;
  }
  // What a copy has of the instruction besides: its sharding, or the part of it from that leaf on.
  void as_copied(InstId of, InstId made, size_t leaf = SIZE_MAX) {
    if (const AttrValue* value = m_.attrs(of).find(Attr::frontend_attributes))
      m_.set_attr(made, Attr::frontend_attributes, *value);
    const StrId sharding = m_.attrs(of).text(Attr::sharding);
    if (!sharding.valid()) return;
    const std::vector<std::string> parts =
        leaf == SIZE_MAX ? std::vector<std::string>() : sharding_parts(u_.text(sharding));
    if (parts.empty()) {
      m_.set_attr(made, Attr::sharding, sharding);
      return;
    }
    const size_t leaves = u_.leaf_count(m_.shape_id(made));
    if (leaf + leaves > parts.size()) return;
    std::string text = parts[leaf];
    for (size_t k = 1; k < leaves; ++k) text += ", " + parts[leaf + k];
    m_.set_attr(made, Attr::sharding, u_.str(m_.shape(made).is_tuple() ? "{" + text + "}" : text));
  }
  // The value in another layout; tuples part by part.
  InstId relaid(InstId i, ShapeId wanted) {
    if (u_[wanted].is_array()) return copy(i, wanted);
    std::vector<InstId> parts;
    const std::vector<ShapeId> elements = u_[wanted].elements;
    size_t leaf = 0;
    for (size_t k = 0; k < elements.size(); ++k) {
      const bool same = lie_alike(m_.shape(i).elements[k], elements[k]);
      InstId part = make_element(m_, i, static_cast<int64_t>(k));
      if (!same) m_.set_meta(part, m_[i].meta), as_copied(i, part, leaf);
      leaf += u_.leaf_count(elements[k]);
      parts.push_back(same ? part : relaid(part, elements[k]));
    }
    InstId made = make(m_, m_.parent(i), Opcode::Tuple, parts, {}, wanted);
    m_.set_meta(made, m_[i].meta), as_copied(i, made);
    return made;
  }

  void computation(CompId c) {
    for (InstId i : m_.post_order(c)) {
      auto wanted = demands_.find(i);
      if (wanted != demands_.end())
        for (auto [n, shape] : wanted->second)
          if (!lie_alike(m_.shape_id(m_.operand(i, n)), shape)) operand(i, n, shape);
      if (m_.op(i) == Opcode::Fusion) fusion(i);
    }
    auto wanted = results_.find(c.value);
    const InstId root = m_.comp(c).root;
    if (wanted == results_.end() || m_.shape_id(root) == wanted->second) return;
    if (!lie_alike(m_.shape_id(root), wanted->second))
      m_.set_root(c, relaid(root, wanted->second));
    else if (c == m_.entry() && m_.op(root) != Opcode::Parameter)
      m_.set_shape(root, wanted->second);  // how many bits an element takes, and the like
  }

  void operand(InstId i, size_t n, ShapeId shape) {
    const InstId o = m_.operand(i, n);
    if (m_.op(i) != Opcode::Conditional || n == 0 || m_.user_count(o) != 1 || m_.use_count(o) != 1) {
      m_.set_operand(i, n, relaid(o, shape));
      return;
    }
    // Within the branch, where the others do not pay for it.
    const CompId branch = m_.called(i)[n - 1];
    const InstId param = m_.comp(branch).params[0];
    const std::vector<InstId> users = m_.users_copy(param);
    m_.set_shape(param, m_.shape_id(o));
    const InstId made = relaid(param, shape);
    for (InstId user : users)
      for (size_t k = 0; k < m_.operand_count(user); ++k)
        if (m_.operand(user, k) == param) m_.set_operand(user, k, made);
    if (m_.comp(branch).root == param) m_.set_root(branch, made);
  }

  void fusion(InstId i) {
    const CompId body = m_.called(i)[0];
    for (InstId p : m_.comp(body).params)
      m_.set_shape(p, m_.shape_id(m_.operand(i, static_cast<size_t>(m_.parameter_number(p)))));
    if (m_.op(m_.comp(body).root) != Opcode::Parameter) m_.set_shape(m_.comp(body).root, m_.shape_id(i));
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  LayoutPropagation* p_ = nullptr;
  std::vector<std::pair<InstId, ShapeId>> planned_;
  std::unordered_map<InstId, std::vector<std::pair<size_t, ShapeId>>> demands_;
  std::unordered_map<uint32_t, ShapeId> results_;
};

}  // namespace

bool run_layout_assignment(Module& m, PassContext& ctx) { return LayoutAssigner(m, ctx).run(); }

}  // namespace hlo
