// copy-insertion (xla/service/copy_insertion.cc): copies wherever values that share a buffer could get into each
// other's way, then none of those that do not, then those that read-only memory asks for.
#include <algorithm>
#include <map>

#include "ir/analysis/dataflow/buffers.h"
#include "ir/analysis/dataflow/dataflow.h"
#include "ir/sharding/aliasing.h"
#include "passes/backend/backend.h"
#include "passes/buffers/copy_removal.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

using Mask = std::vector<bool>;  // by node of a shape

class Copies {
 public:
  Copies(Module& m, PassContext& ctx, const GpuTarget& target, bool own_memory)
      : m_(m), ctx_(ctx), aliases_(m, target, !own_memory), donated_(!own_memory), nodes_(m.u()) {}

  void run() {
    if (m_.config().is_scheduled) return run_scheduled();
    add_where_values_meet();
    tidy();
    ctx_.step("adding_copies_to_resolve_interference");
    remove_unnecessary();
    ctx_.step("removing_unnecessary_copies");
    add_for_read_only_memory();
    ctx_.step("adding_special-case_copies");
    tidy();
  }

 private:
  // With the order known, values that looked as if they were there at once may not be
  // (xla/service/gpu/gpu_compiler.cc, behind its scheduler).
  void run_scheduled() {
    remove_unnecessary();
    ctx_.run(m_, "dce");
    add_for_read_only_memory();
    ctx_.run(m_, "dce");
  }
  void tidy() {
    ctx_.run(m_, "tuple-simplifier");
    ctx_.run(m_, "dce");
  }

  // A copy of the arrays that the mask names, tuples taken apart and put together again; `made`, where given: the
  // copies by node.
  InstId deep_copy(InstId v, const Mask& mask, std::vector<InstId>* made = nullptr, uint32_t node = 0) {
    const ShapeId shape = m_.shape_id(v);
    if (m_.shape(v).is_tuple()) {
      std::vector<InstId> parts;
      const size_t count = m_.shape(v).elements.size();
      for (size_t k = 0; k < count; ++k)
        parts.push_back(
            deep_copy(make_element(m_, v, static_cast<int64_t>(k)), mask, made, node + nodes_.child(shape, k)));
      return make(m_, m_.parent(v), Opcode::Tuple, parts, {}, shape);
    }
    if (!m_.shape(v).is_array() || !mask[node]) return v;
    const InstId copy = m_.add(m_.parent(v), {.op = Opcode::Copy, .shape = shape, .operands = {v}});
    if (made) (*made)[node] = copy;
    return copy;
  }
  void read_instead(InstId user, InstId from, InstId to) {
    for (size_t n = 0; n < m_.operand_count(user); ++n)
      if (m_.operand(user, n) == from) m_.set_operand(user, n, to);
  }
  // Whoever used it before, the root's computation among them, reads its copy.
  InstId copy_for_all(InstId v, const Mask& mask, std::vector<InstId>* made = nullptr) {
    const std::vector<InstId> users = m_.users_copy(v);
    const bool root = m_.is_root(v);
    const InstId copy = deep_copy(v, mask, made);
    for (InstId user : users) read_instead(user, v, copy);
    if (root) m_.set_root(m_.parent(v), copy);
    return copy;
  }
  bool any_array(ShapeId shape, const Mask& mask) {
    const auto& shapes = nodes_.shapes(shape);
    for (size_t k = 0; k < mask.size(); ++k)
      if (mask[k] && m_.u()[shapes[k]].is_array()) return true;
    return false;
  }

  void add_where_values_meet() {
    const Dataflow flow(m_);
    for (CompId c : m_.nonfusion_computations()) {
      if (asynchronous(c)) continue;
      for (InstId i : m_.post_order(c)) {
        switch (m_.op(i)) {
          case Opcode::While:
            loop(flow, i);
            break;
          case Opcode::Conditional:
            conditional(flow, i);
            break;
          case Opcode::Send:
          case Opcode::Recv:
          case Opcode::CopyStart:
            if (!ends_at_once(i))
              ctx_.note(m_, "not copied", {i}, "its end is not what reads it: transfers across trips are left alone");
            break;
          default:
            update(i);
        }
      }
    }
    if (donated_) donated_arguments();
  }
  bool asynchronous(CompId c) {
    if (callers_.empty()) callers_ = m_.callers();
    return std::any_of(callers_[c.value].begin(), callers_[c.value].end(),
                       [&](InstId i) { return m_.alive(i) && m_.op(i) == Opcode::AsyncStart; });
  }
  bool ends_at_once(InstId start) const {
    auto users = m_.users(start);
    return users.empty() ||
           (users.size() == 1 && (m_.op(users[0]) == Opcode::SendDone || m_.op(users[0]) == Opcode::RecvDone ||
                                  m_.op(users[0]) == Opcode::CopyDone));
  }

  // An element that a trip may change: a copy of what flows in, of the state where the body gets it and of what it
  // leaves, this one behind the other:
  //   while(init), body={ p → … → ROOT r }   →   while(copy(init)), body={ p → copy → … → r → ROOT copy }
  void loop(const Dataflow& flow, InstId i) {
    const InstId init = m_.operand(i, 0);
    Mask mask;
    bool any = false;
    for (uint32_t node = 0; node < flow.of(i).size(); ++node) {
      mask.push_back(flow.at(i, node) != flow.at(init, node));
      any |= mask.back();
    }
    const CompId body = m_.attrs(i).comp(Attr::body);
    const InstId param = m_.comp(body).params[0], root = m_.comp(body).root;
    if (!any || param == root || !ctx_.spend(m_, "loop state", {i})) return;
    m_.set_operand(i, 0, deep_copy(init, mask));
    std::vector<InstId> from(mask.size()), to(mask.size());
    const std::vector<InstId> users = m_.users_copy(param);
    const InstId state = deep_copy(param, mask, &from), left = deep_copy(root, mask, &to);
    for (size_t k = 0; k < mask.size(); ++k)
      if (from[k].valid() && to[k].valid()) m_.add_control(from[k], to[k]);
    for (InstId user : users) read_instead(user, param, state);
    m_.set_root(body, left);
  }

  // Results that differ from branch to branch are copied in each.
  void conditional(const Dataflow& flow, InstId i) {
    Mask mask;
    bool any = false;
    for (ValueId v : flow.of(i)) {
      mask.push_back(flow[v].phi && flow[v].inst == i);
      any |= mask.back();
    }
    if (!any || !ctx_.spend(m_, "results of branches", {i})) return;
    const std::vector<CompId> branches = m_.called(i);
    for (CompId c : branches) copy_for_all(m_.comp(c).root, mask);
  }

  //   dynamic-update-slice(x, …)   →   dynamic-update-slice(copy(x), …)
  void update(InstId i) {
    const InstId by = m_.op(i) == Opcode::AsyncStart ? m_.comp(m_.called(i)[0]).root : i;
    std::vector<uint32_t> done;
    for (const InPlacePair& pair : aliases_.in_place(by)) {
      if (std::find(done.begin(), done.end(), pair.operand) != done.end()) continue;
      done.push_back(pair.operand);
      const InstId operand = m_.operand(i, pair.operand);
      if (!ctx_.spend(m_, "operand that is overwritten", {i, operand})) return;
      m_.set_operand(i, pair.operand, deep_copy(operand, Mask(nodes_.count(m_.shape_id(operand)), true)));
    }
  }

  // An argument whose memory a result takes: copied at its start, the result copied into it behind that.
  void donated_arguments() {
    const std::vector<AliasEntry> entries = parse_aliases(m_.config().input_output_alias);
    const CompId entry = m_.entry();
    const std::vector<InstId> params = m_.comp(entry).params;
    std::map<int64_t, std::vector<InstId>> copied;  // by parameter, then node
    Mask results(nodes_.count(m_.shape_id(m_.comp(entry).root)), false);
    for (size_t n = 0; n < params.size(); ++n) {
      Mask mask(nodes_.count(m_.shape_id(params[n])), false);
      bool any = false;
      for (const AliasEntry& e : entries) {
        if (e.number != static_cast<int64_t>(n)) continue;
        const uint32_t in = nodes_.at(m_.shape_id(params[n]), e.index);
        const uint32_t out = nodes_.at(m_.shape_id(m_.comp(entry).root), e.output);
        if (in >= mask.size() || out >= results.size()) continue;
        any = mask[in] = results[out] = true;
      }
      if (!any || !ctx_.spend(m_, "argument that is given up", {params[n]})) continue;
      std::vector<InstId> made(mask.size());
      copy_for_all(params[n], mask, &made);
      copied[static_cast<int64_t>(n)] = std::move(made);
    }
    if (copied.empty()) return;
    const InstId root = m_.comp(entry).root;
    std::vector<InstId> to(results.size());
    const InstId left = deep_copy(root, results, &to);
    for (const AliasEntry& e : entries) {
      auto made = copied.find(e.number);
      if (made == copied.end()) continue;
      const uint32_t in = nodes_.at(m_.shape_id(params[static_cast<size_t>(e.number)]), e.index);
      const uint32_t out = nodes_.at(m_.shape_id(root), e.output);
      if (in < made->second.size() && out < to.size() && made->second[in].valid() && to[out].valid())
        m_.add_control(made->second[in], to[out]);
    }
    m_.set_root(entry, left);
  }

  void remove_unnecessary() {
    if (m_.computations_with(Opcode::Copy).empty()) return;
    const Dataflow flow(m_);
    const SharedBuffers buffers(flow, aliases_, donated_);
    const Ordering order(flow, aliases_);
    CopyRemover remover(flow, buffers, order);
    for (bool changed = true; changed;) {
      changed = false;
      for (CompId c : m_.computations())
        for (InstId i : m_.live_order(c)) {
          if (m_.op(i) != Opcode::Copy || !remover.try_remove(i)) continue;
          if (!ctx_.spend(m_, "copy elided", {i})) return;
          m_.drop_control(i);
          m_.replace_all_uses(i, m_.operand(i, 0));
          changed = true;
        }
    }
    if (remover.gave_up())
      ctx_.note(m_, "copies left", {m_.comp(m_.entry()).root}, "too many uses of too many copies to compare them all");
  }

  // What is to be copied where it is made, in the order of computations and instructions.
  using Wanted = std::map<std::pair<uint32_t, InstId>, Mask>;
  void want(Wanted* wanted, InstId i, uint32_t node) {
    Mask& mask = wanted->try_emplace({m_.parent(i).value, i}, nodes_.count(m_.shape_id(i)), false).first->second;
    mask[node] = true;
  }
  bool read_only(const Dataflow& flow, ValueId v) {
    const InstId i = flow[v].inst;
    if (m_.op(i) == Opcode::Constant) return true;
    if (m_.op(i) != Opcode::Parameter || m_.parent(i) != m_.entry()) return false;
    if (given_up_.empty() && donated_)
      for (const AliasEntry& e : parse_aliases(m_.config().input_output_alias)) {
        if (e.number < 0 || static_cast<size_t>(e.number) >= m_.comp(m_.entry()).params.size()) continue;
        const InstId p = m_.comp(m_.entry()).params[static_cast<size_t>(e.number)];
        given_up_.emplace(p, nodes_.at(m_.shape_id(p), e.index));
      }
    return !given_up_.contains({i, flow[v].node});
  }
  bool result_is_donated(uint32_t node) {
    if (!donated_) return false;
    const ShapeId shape = m_.shape_id(m_.comp(m_.entry()).root);
    const std::vector<AliasEntry> entries = parse_aliases(m_.config().input_output_alias);
    return std::any_of(entries.begin(), entries.end(),
                       [&](const AliasEntry& e) { return nodes_.at(shape, e.output) == node; });
  }

  void add_for_read_only_memory() {
    const Dataflow flow(m_);
    const SharedBuffers buffers(flow, aliases_, donated_);
    Wanted wanted;
    shared_with_others(flow, buffers, &wanted);
    results(flow, buffers, &wanted);
    for (const auto& [at, mask] : wanted) {
      const InstId i = at.second;
      if (!any_array(m_.shape_id(i), mask)) continue;
      if (!ctx_.spend(m_, "result in a read-only buffer", {i})) return;
      copy_for_all(i, mask);
    }
  }

  // What may not be written, in a buffer with what is; what is written over while the same instruction reads it.
  void shared_with_others(const Dataflow& flow, const SharedBuffers& buffers, Wanted* wanted) {
    std::map<std::pair<ValueId, InstId>, std::vector<ValueId>> defined;  // by buffer and instruction
    for (ValueId v = 0; v < flow.size(); ++v)
      if (flow.somewhere(v) && buffers.values(buffers.of(v)).size() > 1)
        defined[{buffers.of(v), flow[v].inst}].push_back(v);
    for (ValueId v = 0; v < flow.size(); ++v) {
      if (!flow.somewhere(v) || buffers.values(buffers.of(v)).size() < 2) continue;
      if (read_only(flow, v)) want(wanted, flow[v].inst, flow[v].node);
      for (const ValueUse& use : flow.uses(v)) {
        auto here = defined.find({buffers.of(v), use.inst});
        if (here == defined.end()) continue;
        for (ValueId other : here->second)
          if (other != v && !aliases_.can_share(flow, use, use.inst, flow[other].node))
            want(wanted, m_.operand(use.inst, use.operand), use.node);
      }
    }
  }

  // The entry gives no memory back that is not its own, and none twice.
  void results(const Dataflow& flow, const SharedBuffers& buffers, Wanted* wanted) {
    const InstId root = m_.comp(m_.entry()).root;
    std::unordered_map<ValueId, uint32_t> seen;
    for (uint32_t node = 0; node < flow.of(root).size(); ++node) {
      const ValueId v = flow.at(root, node);
      auto [before, fresh] = seen.emplace(buffers.of(v), node);
      if (!fresh) want(wanted, root, result_is_donated(node) ? before->second : node);
      if (read_only(flow, v)) want(wanted, root, node);
    }
  }

  struct ByNode {
    size_t operator()(const std::pair<InstId, uint32_t>& p) const {
      return (static_cast<size_t>(p.first.value) << 20U) ^ p.second;
    }
  };

  Module& m_;
  PassContext& ctx_;
  AliasInfo aliases_;
  const bool donated_;
  ShapeNodes nodes_;
  std::vector<std::vector<InstId>> callers_;
  std::unordered_set<std::pair<InstId, uint32_t>, ByNode> given_up_;
};

}  // namespace

bool run_copy_insertion(Module& m, PassContext& ctx) {
  if (const CompId twice = called_twice(m); twice.valid()) {
    ctx.note(m, "no copies", {}, fmt::format("{} is called twice: flatten-call-graph comes first", m.comp_name(twice)));
    return false;
  }
  const uint64_t before = m.edits();
  Copies(m, ctx, named_gpu_target(ctx.word("gpu")), ctx.word("memory") == "own").run();
  ctx.claim(true);  // as XLA's does, copies or none
  return m.edits() != before;
}

}  // namespace hlo
