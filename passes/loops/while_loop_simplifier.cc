// simplify-while-loops (xla/service/while_loop_simplifier.cc): state that loops need not carry, and loops that are
// none.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "passes/loops/loops.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {

namespace {

class Loops {
 public:
  Loops(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    std::vector<std::vector<InstId>> callers = m_.callers();
    std::vector<InstId> loops;
    for (CompId c : m_.computations())
      for (InstId i : m_.live_order(c))
        if (m_.op(i) == Opcode::While && callers[body(i).value].size() == 1 && callers[condition(i).value].size() == 1)
          loops.push_back(i);
    bool changed = false;
    for (InstId w : loops) {
      if (!m_.alive(w)) continue;
      if (!same_values(w) && !nested_tuples(w) && !dead_elements(w) && !constant_elements(w)) {
        if (talks(w)) continue;
        changed |= known_scalars(w);
        changed |= few_trips(w) || merged_counters(w);
        continue;
      }
      changed = true;
    }
    return changed;
  }

 private:
  CompId body(InstId w) const { return m_.attrs(w).comp(Attr::body); }
  CompId condition(InstId w) const { return m_.attrs(w).comp(Attr::condition); }
  InstId state(CompId c) const { return m_.comp(c).params[0]; }
  size_t element(InstId gte) const { return static_cast<size_t>(m_.attrs(gte).integer(Attr::index)); }
  bool removable(InstId w) const { return m_.safely_removable(w) && !m_.has_control(w); }
  bool only_elements(InstId i) const {
    auto users = m_.users(i);
    return std::all_of(users.begin(), users.end(), [&](InstId u) { return m_.op(u) == Opcode::GetTupleElement; });
  }
  bool talks(InstId w) const {
    for (CompId c : {body(w), condition(w)})
      for (InstId i : m_.live_order(c)) {
        Opcode op = m_.op(i);
        if (op == Opcode::Send || op == Opcode::SendDone || op == Opcode::Recv || op == Opcode::RecvDone) return true;
      }
    return false;
  }
  // State and body of the form that the rules below take apart.
  bool regular(InstId w) const {
    return removable(w) && m_.shape(w).is_tuple() && m_.op(m_.comp(body(w)).root) == Opcode::Tuple &&
           only_elements(state(body(w))) && only_elements(state(condition(w)));
  }

  // A copy of the computation whose state has the elements `kept` only; what reads others reads `instead`.
  CompId narrowed(CompId c, ShapeId shape, const std::vector<size_t>& kept,
                  const std::map<size_t, std::function<InstId(CompId)>>& instead, bool with_root) {
    InstId param = state(c), root = m_.comp(c).root;
    std::vector<InstId> roots;
    if (with_root)
      for (size_t k : kept) roots.push_back(m_.operand(root, k));
    else
      roots.push_back(root);
    // What the new root needs, and what has effects.
    std::unordered_set<InstId> needed(roots.begin(), roots.end());
    std::vector<InstId> stack = roots;
    for (InstId i : m_.live_order(c))
      if (m_.has_side_effect(i) && needed.insert(i).second) stack.push_back(i);
    while (!stack.empty()) {
      InstId i = stack.back();
      stack.pop_back();
      for (InstId o : m_.operands(i))
        if (needed.insert(o).second) stack.push_back(o);
    }
    // Everything stays where it stands (CloneWithReplacements in xla/hlo/ir/hlo_computation.cc).
    std::unordered_map<InstId, InstId> map;
    const std::vector<InstId> order = m_.post_order(c);
    CompId copy = m_.clone_computation(c, "clone", &map);
    std::vector<int64_t> place(m_.shape(param).elements.size(), -1);
    for (size_t n = 0; n < kept.size(); ++n) place[kept[n]] = static_cast<int64_t>(n);
    m_.set_shape(map.at(param), shape);
    for (InstId i : order) {
      if (!needed.contains(i) || m_.op(i) != Opcode::GetTupleElement || m_.operand(i, 0) != param) continue;
      const InstId here = map.at(i);
      if (const int64_t at = place[element(i)]; at >= 0) {
        m_.set_attrs(here, attrs_of(u_, Opcode::GetTupleElement, {{Attr::index, at}}));
        m_.set_meta(here, MetaId());
        m_.set_uniquified_name(here, "get-tuple-element");
        continue;
      }
      const InstId now = instead.at(element(i))(copy);
      m_.replace_all_uses(here, now);
      map[i] = now;
      m_.remove(here);
    }
    if (with_root) {
      std::vector<InstId> results;
      std::vector<ShapeId> shapes;
      for (InstId r : roots) results.push_back(map.at(r)), shapes.push_back(m_.shape_id(map.at(r)));
      const InstId made = map.at(root);
      m_.exchange_operands(made, results);
      m_.set_shape(made, u_.tuple(shapes));
      m_.set_attrs(made, AttrsId());
      m_.set_meta(made, MetaId());
      m_.set_uniquified_name(made, "tuple");
      needed.insert(root);
    }
    for (size_t k = order.size(); k-- > 0;)
      if (order[k] != param && !needed.contains(order[k]) && m_.alive(map.at(order[k]))) m_.remove(map.at(order[k]));
    return copy;
  }

  //   while((a, b, c))      →      ((a', b, c')) of while((a, c)), where the loop need not carry b
  // `inside`: what the body and the condition read in the place of a removed element; `outside`: what it is afterwards,
  // the element of the initial state where there is none.
  void narrow(InstId w, const std::set<size_t>& removed, const std::map<size_t, std::function<InstId(CompId)>>& inside,
              const std::map<size_t, size_t>& same_as = {}) {
    InstId init = m_.operand(w, 0);
    CompId here = m_.parent(w), old_body = body(w), old_condition = condition(w);
    size_t count = m_.shape(w).elements.size();
    std::vector<size_t> kept;
    std::vector<ShapeId> shapes;
    std::vector<InstId> start;
    auto part = [&](InstId of, size_t k) { return make_element(m_, of, static_cast<int64_t>(k)); };
    for (size_t k = 0; k < count; ++k)
      if (!removed.contains(k)) kept.push_back(k), shapes.push_back(m_.shape(w).elements[k]);
    ShapeId shape = u_.tuple(shapes);
    bool made = m_.op(init) == Opcode::Tuple;
    for (size_t k : kept) start.push_back(made ? m_.operand(init, k) : part(init, k));
    InstId state = make(m_, here, Opcode::Tuple, start, {}, shape);
    CompId new_condition = narrowed(old_condition, shape, kept, inside, false);
    CompId new_body = narrowed(old_body, shape, kept, inside, true);
    AttrSet attrs = m_.attrs(w);
    attrs.set(Attr::condition, new_condition), attrs.set(Attr::body, new_body);
    InstId loop = make(m_, here, Opcode::While, {state}, u_.attrs(std::move(attrs)), shape);
    m_.set_meta(loop, m_[w].meta);
    std::vector<InstId> parts(count);
    for (size_t k = 0, n = 0; k < count; ++k) {
      if (!removed.contains(k))
        parts[k] = part(loop, n++);
      else if (auto twin = same_as.find(k); twin != same_as.end())
        parts[k] = part(loop, element(parts[twin->second]));
      else
        parts[k] = part(init, k);
    }
    InstId whole = make(m_, here, Opcode::Tuple, parts, {}, m_.shape_id(w));
    m_.replace(w, whole);
    for (CompId c : {old_condition, old_body}) m_.remove_computation(c);
  }

  // Elements that start the same and stay as they are, or that the same pieces are written into.
  bool same_values(InstId w) {
    if (!regular(w) || m_.op(m_.operand(w, 0)) != Opcode::Tuple) return false;
    InstId init = m_.operand(w, 0), root = m_.comp(body(w)).root, param = state(body(w));
    std::map<std::vector<InstId>, size_t> first;  // the start, and what is written where
    std::set<size_t> removed, written;
    std::map<size_t, size_t> same_as;
    for (size_t k = 0; k < m_.operand_count(root); ++k) {
      InstId next = m_.operand(root, k), old = next;
      std::vector<InstId> key{m_.operand(init, k)};
      if (m_.op(next) == Opcode::DynamicUpdateSlice) {
        old = m_.operand(next, 0);
        key.insert(key.end(), m_.operands(next).begin() + 1, m_.operands(next).end());
      }
      if (m_.op(old) != Opcode::GetTupleElement || m_.operand(old, 0) != param || element(old) != k) continue;
      auto [at, fresh] = first.emplace(std::move(key), k);
      if (fresh) continue;
      removed.insert(k), same_as[k] = at->second;
      if (old != next) written.insert(k);
    }
    if (removed.empty() || !ctx_.spend(m_, "elements of the same value", {w}, numbers(removed))) return false;
    // Readers of the others read the first, all by one instruction.
    for (CompId c : {body(w), condition(w)}) {
      std::map<size_t, InstId> made;
      for (InstId gte : m_.users_copy(state(c))) {
        auto twin = m_.op(gte) == Opcode::GetTupleElement ? same_as.find(element(gte)) : same_as.end();
        if (twin == same_as.end()) continue;
        auto [one, fresh] = made.try_emplace(twin->second);
        if (fresh) one->second = make_element(m_, state(c), static_cast<int64_t>(twin->second));
        m_.replace_all_uses(gte, one->second);
      }
    }
    // What stays as it was is the initial element behind the loop, too.
    std::map<size_t, size_t> outside;
    for (size_t k : written) outside[k] = same_as[k];
    narrow(w, removed, {}, outside);
    return true;
  }

  // How the elements of a loop's state have to do with each other, found in one walk back and one forth over the body
  // and the condition: a set of elements for each instruction would be quadratic in loops that carry a model's weights.
  class Flow {
   public:
    Flow(const Module& m, size_t count) : m_(m), count_(count), group_(count), live_(count), needed_(count) {
      std::iota(group_.begin(), group_.end(), size_t{0});
    }
    // A condition's root decides, and all that is made of the state there counts.
    void walk(CompId c, InstId state, InstId root, bool is_body) {
      const std::vector<InstId> order = m_.post_order(c);
      std::unordered_map<InstId, size_t> place;
      for (size_t n = 0; n < order.size(); ++n) place[order[n]] = n;
      // Back: what goes into the next trip's elements, one (its number), several or none; and what is wanted.
      constexpr size_t kNone = SIZE_MAX, kSeveral = SIZE_MAX - 1;
      std::vector<size_t> into(order.size(), kNone);
      std::vector<bool> wanted(order.size());
      auto join = [&](InstId i, size_t to) {
        size_t& at = into[place.at(i)];
        if (to != kNone) at = at == kNone || at == to ? to : kSeveral;
      };
      if (is_body)
        for (size_t k = 0; k < count_; ++k) join(m_.operand(root, k), k);
      else
        wanted[place.at(root)] = true;
      for (size_t n = order.size(); n-- > 0;) {
        InstId i = order[n];
        if (m_.has_side_effect(i)) wanted[n] = true;
        if (is_body && i == root) continue;
        if (is_element(i, state)) {
          const size_t k = element(i);
          if (wanted[n] || (into[n] != kNone && into[n] != k)) live_[k] = true;
          continue;
        }
        for (InstId o : m_.operands(i)) {
          join(o, into[n]);
          if (wanted[n]) wanted[place.at(o)] = true;
        }
      }
      // Forth: what has anything to do with the state stands in one group with what it is made of.
      const size_t first = group_.size();
      std::vector<bool> made(order.size());
      for (size_t n = 0; n < order.size(); ++n) group_.push_back(first + n), needed_.push_back(false);
      for (size_t n = 0; n < order.size(); ++n) {
        InstId i = order[n];
        if (is_body && i == root) continue;
        if (is_element(i, state)) {
          made[n] = true;
          unite(first + n, element(i));
        } else {
          for (InstId o : m_.operands(i))
            if (o != state && made[place.at(o)]) made[n] = true, unite(first + n, first + place.at(o));
        }
        if (made[n] && (m_.has_side_effect(i) || !is_body)) needed_[first + n] = true;
      }
      if (is_body)
        for (size_t k = 0; k < count_; ++k)
          if (size_t n = place.at(m_.operand(root, k)); made[n]) unite(k, first + n);
    }
    void need(size_t k) { needed_[k] = true; }
    // Does a condition, an effect or another element depend on it?
    bool live(size_t k) const { return live_[k]; }
    // Which elements stand in a group of which anything is needed.
    std::vector<bool> in_needed_groups() {
      std::vector<bool> groups(group_.size()), out(count_);
      for (size_t n = 0; n < group_.size(); ++n)
        if (needed_[n]) groups[leader(n)] = true;
      for (size_t k = 0; k < count_; ++k) out[k] = groups[leader(k)];
      return out;
    }

   private:
    size_t element(InstId gte) const { return static_cast<size_t>(m_.attrs(gte).integer(Attr::index)); }
    bool is_element(InstId i, InstId state) const {
      return m_.op(i) == Opcode::GetTupleElement && m_.operand(i, 0) == state;
    }
    size_t leader(size_t k) {
      while (group_[k] != k) k = group_[k] = group_[group_[k]];
      return k;
    }
    void unite(size_t a, size_t b) { group_[leader(a)] = leader(b); }

    const Module& m_;
    size_t count_;
    std::vector<size_t> group_;  // elements, then the instructions walked over
    std::vector<bool> live_, needed_;
  };

  // Elements that neither the condition nor an effect nor anything after the loop depends on.
  bool dead_elements(InstId w) {
    if (!regular(w) || m_.is_root(w) || !only_elements(w)) return false;
    size_t count = m_.shape(w).elements.size();
    InstId root = m_.comp(body(w)).root;
    Flow flow(m_, count);
    flow.walk(body(w), state(body(w)), root, true);
    flow.walk(condition(w), state(condition(w)), m_.comp(condition(w)).root, false);
    std::vector<bool> taken(count, false);
    for (InstId user : m_.users(w)) taken[element(user)] = true;
    std::set<size_t> removed;
    // An element that another one is made of stays in this run, be the other dead or not.
    for (size_t k = 0; k < count; ++k)
      if (!taken[k] && !flow.live(k)) removed.insert(k);
    // Groups of elements that have to do with each other alone, all of them handed on as they are or not taken.
    for (size_t k = 0; k < count; ++k) {
      InstId next = m_.operand(root, k);
      bool passed =
          m_.op(next) == Opcode::GetTupleElement && m_.operand(next, 0) == state(body(w)) && element(next) == k;
      if (taken[k] && !passed) flow.need(k);
    }
    const std::vector<bool> alive = flow.in_needed_groups();
    for (size_t k = 0; k < count; ++k)
      if (!alive[k]) removed.insert(k);
    if (removed.empty() || !ctx_.spend(m_, "dead elements of the state", {w}, numbers(removed))) return false;
    narrow(w, removed, {});
    return true;
  }

  // Elements that are the same constant before the loop and after each step.
  bool constant_elements(InstId w) {
    InstId init = m_.operand(w, 0);
    if (!regular(w) || m_.op(init) != Opcode::Tuple) return false;
    InstId root = m_.comp(body(w)).root;
    std::set<size_t> removed;
    std::map<size_t, std::function<InstId(CompId)>> inside;
    for (size_t k = 0; k < m_.operand_count(root); ++k) {
      InstId a = m_.operand(init, k), b = m_.operand(root, k);
      if (m_.op(a) != Opcode::Constant || m_.op(b) != Opcode::Constant || m_.literal_id(a) != m_.literal_id(b) ||
          m_.literal(a).elided)
        continue;
      removed.insert(k);
      inside[k] = [this, a](CompId c) { return m_.clone_inst(a, c, {}); };
    }
    if (removed.empty() || !ctx_.spend(m_, "constant elements of the state", {w}, numbers(removed))) return false;
    if (removed.size() == m_.operand_count(root))
      m_.replace(w, init);
    else
      narrow(w, removed, inside);
    return true;
  }

  // A scalar that starts as a constant and stays as it is: all that reads it gets the constant.
  bool known_scalars(InstId w) {
    InstId init = m_.operand(w, 0), root = m_.comp(body(w)).root;
    if (m_.op(init) != Opcode::Tuple || m_.op(root) != Opcode::Tuple) return false;
    bool changed = false;
    for (size_t k = 0; k < m_.operand_count(root); ++k) {
      InstId next = m_.operand(root, k), value = m_.operand(init, k);
      const Shape& s = m_.shape(value);
      if (m_.op(value) != Opcode::Constant || !s.is_array() || s.rank() != 0 ||
          m_.op(next) != Opcode::GetTupleElement || m_.operand(next, 0) != state(body(w)) || element(next) != k)
        continue;
      for (CompId c : {condition(w), body(w)})
        for (InstId gte : m_.users_copy(state(c))) {
          if (m_.op(gte) != Opcode::GetTupleElement || element(gte) != k) continue;
          if (m_.users(gte).empty() && !m_.is_root(gte)) continue;
          if (!ctx_.spend(m_, "scalar of the state is a constant", {w, gte})) return changed;
          // The body's root hands the constant on, too.
          m_.replace_all_uses(gte, m_.clone_inst(value, c, {}, {}, "clone"));
          changed = true;
        }
    }
    return changed;
  }

  // --- a state of another form ---

  // The loop over a state of another form: `to_old` makes the old state of the new one, `to_new` the new one of the
  // old one that a trip ends with (and of the new state that it began with). Both add what they make to the
  // computation. `in_steps`: XLA clones the body for either, which shows in names.
  void reform(InstId w, ShapeId shape, const std::function<InstId(InstId)>& to_old,
              const std::function<InstId(InstId, InstId)>& to_new, InstId init, bool in_steps) {
    CompId old_body = body(w), old_condition = condition(w);
    auto copy = [&](CompId c) {
      CompId made = m_.clone_computation(c, "clone");
      InstId param = state(made);
      std::vector<InstId> readers = m_.users_copy(param);
      bool whole = m_.is_root(param);
      m_.set_shape(param, shape);
      InstId as_before = to_old(param);
      if (in_steps) {  // stands for the parameter, which comes behind it
        std::vector<InstId> order = m_.live_order(made);
        order.erase(std::find(order.begin(), order.end(), as_before));
        order.insert(order.begin(), as_before);
        m_.set_order(made, order);
      }
      for (InstId reader : readers)
        for (size_t o = 0; o < m_.operand_count(reader); ++o)
          if (m_.operand(reader, o) == param) m_.set_operand(reader, o, as_before);
      if (whole) m_.set_root(made, as_before);
      return made;
    };
    const CompId between = in_steps ? copy(old_body) : CompId(), new_condition = copy(old_condition);
    const StrId root_name = m_.clone_name(m_.comp(in_steps ? between : old_body).root, "clone");
    const CompId new_body = in_steps ? m_.clone_computation(between, "clone") : copy(old_body);
    if (in_steps) m_.remove_computation(between);
    const InstId old_root = m_.comp(new_body).root;
    m_.set_name(old_root, root_name);
    const std::vector<InstId> before = m_.live_order(new_body);
    const InstId new_root = to_new(old_root, state(new_body));
    m_.set_root(new_body, new_root);
    if (in_steps) {  // in the old root's place, which comes behind everything that was there
      std::vector<InstId> order = before;
      std::replace(order.begin(), order.end(), old_root, new_root);
      order.push_back(old_root);
      for (InstId i : std::vector<InstId>(m_.live_order(new_body)))
        if (i != new_root && std::find(before.begin(), before.end(), i) == before.end()) order.push_back(i);
      m_.set_order(new_body, order);
    }
    AttrSet attrs = m_.attrs(w);
    attrs.set(Attr::condition, new_condition), attrs.set(Attr::body, new_body);
    InstId loop = make(m_, m_.parent(w), Opcode::While, {init}, u_.attrs(std::move(attrs)), shape);
    m_.set_meta(loop, m_[w].meta);
    const InstId as_before = to_old(loop);
    if (in_steps) {  // comes right behind the loop, in front of what it reads of it
      std::vector<InstId> order = m_.live_order(m_.parent(w));
      order.erase(std::find(order.begin(), order.end(), as_before));
      order.insert(std::find(order.begin(), order.end(), loop) + 1, as_before);
      m_.set_order(m_.parent(w), order);
    }
    m_.replace(w, as_before);
    for (CompId c : {old_condition, old_body}) m_.remove_computation(c);
  }

  //   while((i, (a, (b, c))))      →      (i', (a', (b', c'))) of while((i, a, b, c))
  bool nested_tuples(InstId w) {
    InstId init = m_.operand(w, 0);
    if (!removable(w) || !m_.shape(w).is_tuple() || m_.op(init) != Opcode::Tuple ||
        m_.op(m_.comp(body(w)).root) != Opcode::Tuple)
      return false;
    const ShapeId old_shape = m_.shape_id(w);
    std::vector<ShapeId> leaves;
    bool nested = false;
    auto collect = [&](auto&& self, ShapeId s) -> void {
      for (ShapeId e : u_[s].elements) {
        if (!u_[e].is_tuple()) {
          leaves.push_back(e);
          continue;
        }
        nested = true;
        self(self, e);
      }
    };
    collect(collect, old_shape);
    if (!nested || !ctx_.spend(m_, "nested tuples of the state", {w})) return false;
    ShapeId flat = u_.tuple(leaves);
    auto to_flat = [&](InstId of) {
      std::vector<InstId> parts;
      auto take = [&](auto&& self, InstId x) -> void {
        for (size_t k = 0; k < m_.shape(x).elements.size(); ++k) {
          InstId e = make_element(m_, x, static_cast<int64_t>(k));
          if (m_.shape(e).is_tuple())
            self(self, e);
          else
            parts.push_back(e);
        }
      };
      take(take, of);
      return make(m_, m_.parent(of), Opcode::Tuple, parts, {}, flat);
    };
    auto to_nested = [&](InstId of) {
      int64_t next = 0;
      auto build = [&](auto&& self, ShapeId s) -> InstId {
        if (!u_[s].is_tuple()) return make_element(m_, of, next++);
        std::vector<InstId> parts;
        for (ShapeId e : std::vector<ShapeId>(u_[s].elements)) parts.push_back(self(self, e));
        return make(m_, m_.parent(of), Opcode::Tuple, parts, {}, s);
      };
      return build(build, old_shape);
    };
    InstId start = to_flat(init);
    reform(
        w, flat, to_nested, [&](InstId root, InstId) { return to_flat(root); }, start, false);
    return true;
  }

  //   while((i, j)), i = i + 1 from 0, j = j + 3      →      j is its start + i * 3
  // Where none counts the trips, a new element does, if two or more can be made of it.
  bool merged_counters(InstId w) {
    InstId init = m_.operand(w, 0), root = m_.comp(body(w)).root;
    if (!m_.alive(w) || !removable(w) || m_.op(init) != Opcode::Tuple || m_.op(root) != Opcode::Tuple) return false;
    for (CompId c : {body(w), condition(w)})
      for (InstId i : m_.live_order(c))
        if (m_.op(i) == Opcode::Domain) return false;
    for (ElementType type :
         {ElementType::S8, ElementType::U8, ElementType::S32, ElementType::U32, ElementType::S64, ElementType::U64}) {
      std::map<size_t, InstId> steps;
      std::optional<size_t> counter;
      for (size_t k = 0; k < m_.operand_count(root); ++k) {
        InstId next = m_.operand(root, k);
        if (m_.op(next) != Opcode::Add || m_.shape(next).rank() != 0 || m_.shape(next).type != type) continue;
        InstId old = m_.operand(next, 0), step = m_.operand(next, 1);
        if (m_.op(old) == Opcode::Constant) std::swap(old, step);
        if (m_.op(old) != Opcode::GetTupleElement || m_.operand(old, 0) != state(body(w)) || element(old) != k ||
            m_.op(step) != Opcode::Constant || m_.literal(step).elided)
          continue;
        if (!counter && is_all(m_, step, 1) && is_all(m_, m_.operand(init, k), 0))
          counter = k;
        else
          steps[k] = step;
      }
      if (steps.size() + (counter ? 1 : 0) < 2) continue;
      if (!ctx_.spend(m_, "counters of one loop", {w})) return false;
      const ShapeId old_shape = m_.shape_id(w);
      std::vector<ShapeId> shapes = u_[old_shape].elements;
      const bool added = !counter;
      InstId start = init;
      if (added) {
        counter = shapes.size();
        shapes.push_back(u_.scalar(type));
        std::vector<InstId> parts;
        for (size_t k = 0; k < *counter; ++k) parts.push_back(make_element(m_, init, static_cast<int64_t>(k)));
        parts.push_back(make_scalar(m_, m_.parent(w), type, 0));
        start = make(m_, m_.parent(w), Opcode::Tuple, parts, {}, u_.tuple(shapes));
      }
      auto part = [&](InstId of, size_t k) { return make_element(m_, of, static_cast<int64_t>(k)); };
      // Last operands first within the loop, as XLA clones what it puts in (xla/hlo/ir/hlo_computation.cc,
      // CloneWithReplacements); outside in the order in which they are made.
      auto to_old = [&](InstId of) {
        std::vector<InstId> parts(u_[old_shape].elements.size());
        const bool inside = m_.op(of) == Opcode::Parameter;
        for (size_t n = 0; n < parts.size(); ++n) {
          const size_t k = inside ? parts.size() - 1 - n : n;
          auto step = steps.find(k);
          if (step == steps.end()) {
            parts[k] = part(of, k);
            continue;
          }
          InstId e = inside ? InstId() : part(of, k), trips = inside ? InstId() : part(of, *counter);
          InstId by = m_.clone_inst(step->second, m_.parent(of), {}, {}, "clone");
          if (inside) trips = part(of, *counter);
          by = make(m_, m_.parent(of), Opcode::Multiply, {trips, by});
          if (inside) e = part(of, k);
          parts[k] = make(m_, m_.parent(of), Opcode::Add, {e, by});
        }
        return make(m_, m_.parent(of), Opcode::Tuple, parts, {}, old_shape);
      };
      auto to_new = [&](InstId old, InstId param) {
        std::vector<InstId> parts(shapes.size());
        if (added) {
          const InstId one = make_scalar(m_, m_.parent(old), type, 1);
          parts.back() = make(m_, m_.parent(old), Opcode::Add, {part(param, *counter), one});
        }
        for (size_t k = u_[old_shape].elements.size(); k-- > 0;) parts[k] = part(steps.contains(k) ? param : old, k);
        return make(m_, m_.parent(old), Opcode::Tuple, parts, {}, u_.tuple(shapes));
      };
      reform(w, u_.tuple(shapes), to_old, to_new, start, true);
      return true;
    }
    return false;
  }

  //   while(init) that never runs      →      init;      that runs once      →      its body
  bool few_trips(InstId w) {
    if (!removable(w)) return false;
    Trips t;
    if (!trip_count(m_, w, &t)) {
      std::optional<int64_t> index = induction_index(m_, w);
      std::optional<int64_t> trips = index ? counted_trips(m_, w, *index, 1) : std::nullopt;
      if (!trips) return false;
      t.count = *trips;
    }
    if (t.count > 1) return false;
    for (CompId c : {condition(w), body(w)})
      for (InstId i : m_.live_order(c))
        if ((c == condition(w) || t.count) && m_.has_side_effect(i)) return false;
    if (t.count == 0) {
      if (!ctx_.spend(m_, "loop of no trip", {w})) return false;
      m_.replace(w, m_.operand(w, 0));
      return true;
    }
    if (frontend_attribute(m_, w, "skip-simplify-while-loops_trip-count-one") == "true" ||
        frontend_attribute(m_, w, "inlineable") == "false")
      return false;
    if (!ctx_.spend(m_, "loop of one trip", {w})) return false;
    CompId callee = body(w);
    InstId init = m_.operand(w, 0);
    InstId call = make(m_, m_.parent(w), Opcode::Call, {init}, attrs_of(u_, Opcode::Call, {{Attr::to_apply, callee}}),
                       m_.shape_id(w));
    m_.replace(w, call);
    inline_computation(m_, call, callee, std::vector<InstId>{init}, false);
    return true;
  }

  static std::string numbers(const std::set<size_t>& list) { return fmt::format("elements {}", fmt::join(list, ", ")); }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
};

}  // namespace

//   while((i, x, unused))      →      while((i, x))
//   while(i = 0; i < 1)        →      its body
bool run_simplify_while_loops(Module& m, PassContext& ctx) {
  bool changed = Loops(m, ctx).run();
  if (changed) ctx.run(m, "dce");
  return changed;
}

}  // namespace hlo
