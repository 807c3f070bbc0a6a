// while-loop-all-reduce-code-motion (xla/service/while_loop_all_reduce_code_motion.cc): sums over devices that a loop
// only adds up are taken once, behind it.
#include <unordered_map>

#include "ir/query/reducer.h"
#include "passes/collectives/collectives.h"
#include "passes/loops/loops.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// One accumulator: element `index` of the loop's state, which the body adds the all-reduce's result to.
struct Accumulator {
  int64_t index;
  bool converted;  // on the way from the collective's type
};

class CollectiveMover {
 public:
  CollectiveMover(Module& m, PassContext& ctx, InstId loop) : m_(m), ctx_(ctx), loop_(loop) {
    body_ = m.attrs(loop).comp(Attr::body), condition_ = m.attrs(loop).comp(Attr::condition);
  }

  bool run() {
    InstId root = m_.comp(body_).root;
    if (m_.op(root) != Opcode::Tuple || m_.op(m_.operand(loop_, 0)) != Opcode::Tuple || m_.has_control(loop_))
      return false;
    std::vector<std::pair<InstId, std::vector<Accumulator>>> found;
    for (InstId i : m_.post_order(body_)) {
      if (m_.op(i) != Opcode::AllReduce || m_.operand_count(i) != 1 || !m_.shape(i).is_array() || m_.has_control(i) ||
          !adds_its_parameters(m_, m_.called(i)[0]))
        continue;
      std::vector<Accumulator> into;
      if (!only_accumulated(i, &into) || into.empty()) continue;
      if (!ctx_.spend(m_, "all-reduce after its loop", {i, loop_})) break;
      found.push_back({i, std::move(into)});
    }
    if (found.empty()) return false;
    move(found);
    return true;
  }

 private:
  bool is_element(InstId i, CompId of, int64_t k) const {
    return m_.op(i) == Opcode::GetTupleElement && m_.operand(i, 0) == m_.comp(of).params[0] &&
           m_.attrs(i).integer(Attr::index) == k;
  }
  // Does nobody but `user` read that element of the state?
  bool read_by(CompId c, int64_t k, InstId user) const {
    for (InstId i : m_.users(m_.comp(c).params[0])) {
      if (m_.op(i) != Opcode::GetTupleElement) return false;
      if (m_.attrs(i).integer(Attr::index) != k) continue;
      for (InstId u : m_.users(i))
        if (u != user) return false;
    }
    return true;
  }
  // The same on all devices in each step: of constants and what counts the steps.
  bool uniform(InstId i, int depth = 0) const {
    if (depth > 16) return false;
    if (m_.op(i) == Opcode::Constant || m_.op(i) == Opcode::Iota) return true;
    Trips trips;
    if (m_.op(i) == Opcode::GetTupleElement && m_.operand(i, 0) == m_.comp(body_).params[0])
      return trip_count(m_, loop_, &trips) && trips.index == m_.attrs(i).integer(Attr::index);
    if (m_.operand_count(i) == 0 || m_.has_side_effect(i) || !m_.called(i).empty() ||
        op_info(m_.op(i)).cls == OpClass::Collective)
      return false;
    for (InstId o : m_.operands(i))
      if (!uniform(o, depth + 1)) return false;
    return true;
  }

  bool only_accumulated(InstId from, std::vector<Accumulator>* out, bool converted = false) const {
    if (m_.is_root(from)) return false;
    for (InstId user : m_.users(from)) {
      switch (m_.op(user)) {
        case Opcode::Convert:
          if (!only_accumulated(user, out, true)) return false;
          continue;
        case Opcode::Reshape:
        case Opcode::Bitcast:
        case Opcode::Transpose:
          if (!only_accumulated(user, out, converted)) return false;
          continue;
        case Opcode::Select: {
          InstId other = m_.operand(user, 1) == from ? m_.operand(user, 2) : m_.operand(user, 1);
          if (m_.operand(user, 0) == from || other == from || !is_all(m_, other, 0) || !uniform(m_.operand(user, 0)) ||
              !only_accumulated(user, out, converted))
            return false;
          continue;
        }
        case Opcode::Add: {
          InstId old = m_.operand(user, 0) == from ? m_.operand(user, 1) : m_.operand(user, 0);
          if (old == from || m_.op(old) != Opcode::GetTupleElement) return false;
          int64_t k = m_.attrs(old).integer(Attr::index);
          InstId root = m_.comp(body_).root;
          if (!is_element(old, body_, k) || !read_by(body_, k, user) || !read_by(condition_, k, InstId()) ||
              m_.users(user).size() != 1 || m_.use_count(user) != 1 || m_.users(user)[0] != root ||
              m_.operand(root, static_cast<size_t>(k)) != user)
            return false;
          out->push_back({k, converted});
          continue;
        }
        default:
          return false;
      }
    }
    return true;
  }

  void move(const std::vector<std::pair<InstId, std::vector<Accumulator>>>& found) {
    CompId parent = m_.parent(loop_);
    Universe& u = m_.u();
    InstId init = m_.operand(loop_, 0);
    std::vector<InstId> start(m_.operands(init).begin(), m_.operands(init).end()), first = start;
    for (const auto& [all_reduce, into] : found)
      for (const Accumulator& a : into) {
        Literal zero;
        zero.shape = m_.shape_id(start[static_cast<size_t>(a.index)]);
        const Shape& s = u[zero.shape];
        zero.bytes.assign((Checked(s.elements_count()) * storage_bytes(s.type)).size("a zero of the loop's state"),
                          '\0');
        start[static_cast<size_t>(a.index)] = m_.constant(parent, std::move(zero), "constant");
      }
    InstId state = make(m_, parent, Opcode::Tuple, start, {}, m_.shape_id(init));
    InstId loop = m_.clone_inst(loop_, parent, std::vector<InstId>{state});
    std::vector<InstId> last(start.size());
    auto element = [&](size_t k) {
      if (!last[k].valid()) last[k] = make_element(m_, loop, static_cast<int64_t>(k));
      return last[k];
    };
    for (const auto& [all_reduce, into] : found)
      for (const Accumulator& a : into) {
        auto k = static_cast<size_t>(a.index);
        InstId sum = element(k);
        ElementType own = m_.shape(sum).type, wire = m_.shape(all_reduce).type;
        if (a.converted && own != wire) sum = make_convert(m_, sum, wire);
        bool channel = m_.attrs(all_reduce).has(Attr::channel_id);
        sum = m_.clone_inst(all_reduce, parent, std::vector<InstId>{sum}, m_.shape_id(sum));
        m_.set_meta(sum, {});
        if (channel) m_.set_attr(sum, Attr::channel_id, next_channel(m_, &channel_));
        if (a.converted && own != wire) sum = make_convert(m_, sum, own);
        last[k] = make(m_, parent, Opcode::Add, {first[k], sum}, {}, m_.shape_id(first[k]));
      }
    for (size_t k = 0; k < last.size(); ++k) element(k);
    InstId result = make(m_, parent, Opcode::Tuple, last, {}, m_.shape_id(loop_));
    for (const auto& [all_reduce, into] : found) {
      m_.replace_all_uses(all_reduce, m_.operand(all_reduce, 0));
      m_.remove(all_reduce);
    }
    m_.replace(loop_, result);
  }

  Module& m_;
  PassContext& ctx_;
  InstId loop_;
  CompId body_, condition_;
  int64_t channel_ = 0;
};

}  // namespace

//   while { A += all-reduce(B) }      →      A + all-reduce(while { C += B }), C = 0 at first
bool run_while_loop_all_reduce_code_motion(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::While)) return false;
  bool changed = false;
  // The body is changed in place: it must be this loop's alone.
  std::unordered_map<CompId, int> callers;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      for (CompId f : m.called(i)) ++callers[f];
  for (InstId i : all_of_opcode(m, Opcode::While))
    if (m.alive(i) && callers[m.attrs(i).comp(Attr::body)] == 1) changed |= CollectiveMover(m, ctx, i).run();
  return changed;
}

}  // namespace hlo
