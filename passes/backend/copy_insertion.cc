// copy-insertion (xla/service/copy_insertion.cc, reduced) and sanitize-constant-names.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {

namespace {

class Copies {
 public:
  Copies(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    // A loop's state is one set of buffers: what flows into it and what a trip leaves in it is copied there.
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.live_order(c))
        if (m_.op(i) == Opcode::While) loop(i);
    bool changed = !added_.empty();
    tidy();
    ctx_.step("adding_copies_to_resolve_interference");
    remove_unnecessary();
    tidy();
    ctx_.step("removing_unnecessary_copies");
    size_t before = added_.size();
    for (CompId c : m_.nonfusion_computations())
      if (c == m_.entry() || branch(c)) roots(c);
    changed |= added_.size() != before;
    ctx_.step("adding_special-case_copies");
    return changed;
  }

 private:
  void tidy() {
    ctx_.run(m_, "tuple-simplifier");
    ctx_.run(m_, "dce");
  }

  // What takes each element out of a tuple.
  std::vector<std::vector<InstId>> elements_of(InstId tuple) const {
    std::vector<std::vector<InstId>> out(m_.shape(tuple).elements.size());
    for (InstId g : m_.users(tuple))
      if (m_.op(g) == Opcode::GetTupleElement) out[static_cast<size_t>(m_.attrs(g).integer(Attr::index))].push_back(g);
    return out;
  }
  InstId element(InstId tuple, size_t k) {
    if (m_.op(tuple) == Opcode::Tuple) return m_.operand(tuple, k);
    return make_element(m_, tuple, static_cast<int64_t>(k));
  }
  // A copy of every array in the value; tuples are taken apart and put together again.
  InstId deep_copy(InstId v) {
    const Shape s = m_.shape(v);
    if (s.is_tuple()) {
      std::vector<InstId> parts;
      for (size_t k = 0; k < s.elements.size(); ++k) parts.push_back(deep_copy(element(v, k)));
      return make(m_, m_.parent(v), Opcode::Tuple, parts);
    }
    if (!s.is_array()) return v;
    InstId copy =
        m_.add(m_.parent(v), {.op = Opcode::Copy, .shape = m_.shape_id(v), .operands = {v}, .meta = m_[v].meta});
    added_.push_back(copy);
    return copy;
  }

  // Who does work with an element of a loop's state, by whatever name it has there.
  std::vector<std::vector<InstId>> readers_of_state(CompId body, InstId param, size_t n) const {
    std::vector<std::vector<InstId>> out(n);
    for (InstId reader : m_.live_order(body)) {
      switch (m_.op(reader)) {
        case Opcode::Parameter:
        case Opcode::Bitcast:
        case Opcode::GetTupleElement:
        case Opcode::Tuple:
        case Opcode::OptBarrier:
        case Opcode::AddDependency:
          continue;
        default:
          break;
      }
      for (InstId o : m_.operands(reader)) note_reader(reader, o, {}, m_.shape_id(o), param, out);
    }
    return out;
  }
  void note_reader(InstId reader, InstId v, const Dims& path, ShapeId shape, InstId param,
                   std::vector<std::vector<InstId>>& out) const {
    const Shape& s = u_[shape];
    if (s.is_tuple()) {
      for (size_t k = 0; k < s.elements.size(); ++k) {
        Dims inner = path;
        inner.push_back(static_cast<int64_t>(k));
        note_reader(reader, v, inner, s.elements[k], param, out);
      }
      return;
    }
    Source from = source(v, path);
    if (from.first != param || from.second.empty()) return;
    std::vector<InstId>& list = out[static_cast<size_t>(from.second[0])];
    if (list.empty() || list.back() != reader) list.push_back(reader);
  }
  // Is any array of it one of that parameter's?
  bool of_parameter(InstId v, const Dims& path, ShapeId shape, InstId param) const {
    const Shape& s = u_[shape];
    if (!s.is_tuple()) return source(v, path).first == param;
    for (size_t k = 0; k < s.elements.size(); ++k) {
      Dims inner = path;
      inner.push_back(static_cast<int64_t>(k));
      if (of_parameter(v, inner, s.elements[k], param)) return true;
    }
    return false;
  }

  void loop(InstId loop) {
    CompId body = m_.attrs(loop).comp(Attr::body), condition = m_.attrs(loop).comp(Attr::condition);
    (void)condition;
    InstId init = m_.operand(loop, 0), root = m_.comp(body).root, param = m_.comp(body).params[0];
    if (!m_.shape(loop).is_tuple()) {
      if (root == param) return;
      if (!ctx_.spend(m_, "loop state", {loop})) return;
      m_.set_operand(loop, 0, deep_copy(init));
      m_.set_root(body, deep_copy(root));
      return;
    }
    size_t n = m_.shape(loop).elements.size();
    // Elements that a trip hands on unchanged need no copy: the loop only reads them.
    auto passes_through = [&](size_t k) {
      InstId r = m_.op(root) == Opcode::Tuple ? m_.operand(root, k) : InstId();
      return root == param || (r.valid() && m_.op(r) == Opcode::GetTupleElement && m_.operand(r, 0) == param &&
                               m_.attrs(r).integer(Attr::index) == static_cast<int64_t>(k));
    };
    std::vector<InstId> init_parts, root_parts;
    bool any = false;
    for (size_t k = 0; k < n; ++k) any |= !passes_through(k);
    if (!any || !ctx_.spend(m_, "loop state", {loop})) return;
    for (size_t k = 0; k < n; ++k) {
      InstId a = element(init, k), b = element(root, k);
      init_parts.push_back(passes_through(k) ? a : deep_copy(a));
      if (passes_through(k)) {
        root_parts.push_back(b);
        continue;
      }
      // An element that only moves to another place is read before any place is written.
      if (of_parameter(b, {}, m_.shape_id(b), param)) {
        const size_t before = added_.size();
        b = deep_copy(b);
        first_copies_.insert(added_.begin() + static_cast<ptrdiff_t>(before), added_.end());
        added_.resize(before);
      }
      root_parts.push_back(deep_copy(b));
    }
    // The new element is written where the old one lay: behind everything that reads the old one.
    const std::vector<std::vector<InstId>> readers = readers_of_state(body, param, n);
    for (size_t k = 0; k < n; ++k) {
      if (passes_through(k)) continue;
      std::vector<InstId> copies{root_parts[k]};
      for (size_t at = 0; at < copies.size(); ++at) {
        if (m_.op(copies[at]) == Opcode::Tuple)
          for (InstId o : m_.operands(copies[at])) copies.push_back(o);
        if (m_.op(copies[at]) != Opcode::Copy) continue;
        for (InstId reader : readers[k])
          if (reader != copies[at] && m_.operand(copies[at], 0) != reader) m_.add_control(reader, copies[at]);
      }
    }
    m_.set_operand(loop, 0, make(m_, m_.parent(loop), Opcode::Tuple, init_parts));
    InstId fresh = make(m_, body, Opcode::Tuple, root_parts);
    m_.set_root(body, fresh);
    if (m_.users(init).empty() && !m_.is_root(init) && m_.op(init) == Opcode::Tuple) m_.remove(init);
    if (m_.users(root).empty() && m_.op(root) == Opcode::Tuple) m_.remove(root);
  }

  // Is the value's buffer its own and this copy its only reader?
  bool private_value(InstId v) const {
    switch (m_.op(v)) {
      case Opcode::Parameter:
      case Opcode::Constant:
      case Opcode::GetTupleElement:
      case Opcode::Bitcast:
      case Opcode::Tuple:
      case Opcode::While:
      case Opcode::Conditional:
      case Opcode::Call:
      case Opcode::OptBarrier:
      case Opcode::AsyncDone:
        return false;
      default:
        return m_.user_count(v) == 1 && !m_.is_root(v);
    }
  }
  // A copy is needless where the copied value dies with it: both can live in one buffer. In a loop's body the value
  // must be defined after the last read of the state it overwrites.
  void remove_unnecessary() {
    for (InstId copy : added_) {
      if (!m_.alive(copy) || m_.op(copy) != Opcode::Copy) continue;
      InstId v = m_.operand(copy, 0);
      if (!private_value(v) || first_copies_.contains(v) || m_.shape_id(v) != m_.shape_id(copy)) continue;
      if (!safe_in_loop(copy, v)) continue;
      if (!ctx_.spend(m_, "copy elided", {copy})) return;
      m_.replace(copy, v, {.relay_control = true});
    }
  }
  // A loop's state as its body sees it: who reads each element, and where in the root each copy stands. Taken down
  // once: a model's weights make ten thousands of elements.
  struct State {
    std::vector<std::vector<InstId>> readers;
    std::unordered_map<InstId, std::vector<size_t>> places;
  };
  const State& state_of(CompId c) {
    auto [at, fresh] = states_.emplace(c, State());
    if (fresh) {
      at->second.readers = elements_of(m_.comp(c).params[0]);
      InstId root = m_.comp(c).root;
      for (size_t k = 0; k < m_.operand_count(root); ++k) at->second.places[m_.operand(root, k)].push_back(k);
    }
    return at->second;
  }
  bool safe_in_loop(InstId copy, InstId v) {
    CompId c = m_.parent(copy);
    auto users = m_.users(copy);
    if (users.size() != 1 || users[0] != m_.comp(c).root || m_.comp(c).params.size() != 1 ||
        !m_.shape(m_.comp(c).params[0]).is_tuple())
      return true;  // in front of the loop
    InstId param = m_.comp(c).params[0];
    const State& state = state_of(c);
    auto places = state.places.find(copy);
    if (places == state.places.end()) return true;
    for (size_t k : places->second) {
      if (k >= state.readers.size()) continue;
      // Readers of the old element other than the new value itself may run later than it.
      for (InstId gte : state.readers[k])
        for (InstId reader : m_.users(gte))
          if (reader != v) return false;
      // The new value writes over what it reads: only operations that read an element before they write it.
      if (!op_info(m_.op(v)).elementwise && m_.op(v) != Opcode::DynamicUpdateSlice) {
        for (InstId o : m_.operands(v))
          if (m_.op(o) == Opcode::GetTupleElement && m_.operand(o, 0) == param &&
              m_.attrs(o).integer(Attr::index) == static_cast<int64_t>(k))
            return false;
      }
    }
    return true;
  }

  bool branch(CompId c) {
    if (callers_.empty()) callers_ = m_.callers();
    if (c.value >= callers_.size()) return false;
    for (InstId i : callers_[c.value])
      if (m_.alive(i) && m_.op(i) == Opcode::Conditional) return true;
    return false;
  }

  // Which instruction makes an array of `v`, and where in its result that is: behind other names, callees that hand it
  // on and loops that only read it.
  using Source = std::pair<InstId, Dims>;
  Source source(InstId v, Dims path) const {
    for (;;) {
      switch (m_.op(v)) {
        case Opcode::Bitcast:
        case Opcode::OptBarrier:
        case Opcode::AddDependency:
          v = m_.operand(v, 0);
          continue;
        case Opcode::GetTupleElement:
          path.insert(path.begin(), m_.attrs(v).integer(Attr::index));
          v = m_.operand(v, 0);
          continue;
        case Opcode::Tuple:
          if (path.empty()) return {v, path};
          v = m_.operand(v, static_cast<size_t>(path[0]));
          path.erase(path.begin());
          continue;
        case Opcode::Call: {
          Source inner = source(m_.comp(m_.called(v)[0]).root, path);
          if (m_.op(inner.first) != Opcode::Parameter) return inner;
          v = m_.operand(v, static_cast<size_t>(m_.parameter_number(inner.first)));
          path = std::move(inner.second);
          continue;
        }
        case Opcode::While: {
          CompId body = m_.attrs(v).comp(Attr::body);
          if (source(m_.comp(body).root, path) != Source{m_.comp(body).params[0], path}) return {v, path};
          v = m_.operand(v, 0);
          continue;
        }
        default:
          return {v, path};
      }
    }
  }

  // Is any array of it a parameter's or a constant's?
  bool read_only(InstId v, const Dims& path, ShapeId shape) const {
    const Shape& s = u_[shape];
    if (s.is_tuple()) {
      for (size_t k = 0; k < s.elements.size(); ++k) {
        Dims inner = path;
        inner.push_back(static_cast<int64_t>(k));
        if (read_only(v, inner, s.elements[k])) return true;
      }
      return false;
    }
    Opcode op = m_.op(source(v, path).first);
    return s.is_array() && (op == Opcode::Parameter || op == Opcode::Constant);
  }

  // `v`, which is `top` at that path, with copies of what is a parameter's or a constant's.
  InstId own_copy(InstId v, InstId top, const Dims& path) {
    if (!read_only(top, path, m_.shape_id(v))) return v;
    if (!m_.shape(v).is_tuple()) return deep_copy(v);
    std::vector<InstId> parts;
    for (size_t k = 0; k < u_[m_.shape_id(v)].elements.size(); ++k) {
      Dims inner = path;
      inner.push_back(static_cast<int64_t>(k));
      parts.push_back(own_copy(element(v, k), top, inner));
    }
    return make(m_, m_.parent(v), Opcode::Tuple, parts);
  }

  // A result may not be a parameter's or a constant's buffer, nor stand twice.
  void roots(CompId c) {
    InstId root = m_.comp(c).root;
    if (m_.op(root) != Opcode::Tuple) {
      if (!read_only(root, {}, m_.shape_id(root)) || !ctx_.spend(m_, "result in a read-only buffer", {root})) return;
      return m_.set_root(c, own_copy(root, root, {}));
    }
    std::set<Source> seen;
    std::vector<InstId> parts;
    bool any = false;
    for (size_t k = 0; k < m_.operand_count(root); ++k) {
      InstId v = m_.operand(root, k);
      bool twice = !seen.insert(source(v, {})).second;
      if ((twice || read_only(v, {}, m_.shape_id(v))) &&
          ctx_.spend(m_, twice ? "result that stands twice" : "result in a read-only buffer", {v})) {
        v = twice ? deep_copy(v) : own_copy(v, v, {});
        any = true;
      }
      parts.push_back(v);
    }
    if (any) m_.set_operands(root, parts);
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  std::vector<InstId> added_;
  std::unordered_set<InstId> first_copies_;  // of elements that move
  std::vector<std::vector<InstId>> callers_;
  std::unordered_map<CompId, State> states_;
};

}  // namespace

bool run_copy_insertion(Module& m, PassContext& ctx) {
  const uint64_t before = m.edits();
  ctx.claim(Copies(m, ctx).run());  // of copies alone, whatever else was tidied
  return m.edits() != before;
}

bool run_sanitize_constant_names(Module& m, PassContext& ctx) {
  NameUniquer names('_');
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (m.op(i) != Opcode::Constant) names.unique(m.inst_name(i));
  bool any = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Constant) continue;
      ctx.claim(true);  // of every constant, whether its name changes or not
      std::string wish(m.inst_name(i));
      for (char& ch : wish)
        if (ch == '.' || ch == '-') ch = '_';
      StrId legal = m.u().str(names.unique(wish));
      if (m[i].name == legal) continue;
      if (!ctx.spend(m, "legal LLVM name", {i})) return any;
      m.set_name(i, legal);
      any = true;
    }
  return any;
}

}  // namespace hlo
