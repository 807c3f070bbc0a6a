#include "ir/analysis/dataflow/dataflow.h"

#include <algorithm>

#include "ir/base/stack_guard.h"

namespace hlo {

CompId called_twice(const Module& m) {
  std::vector<bool> called(m.comp_slots(), false);
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      const Opcode op = m.op(i);
      if (op != Opcode::While && op != Opcode::Conditional && op != Opcode::Call && op != Opcode::AsyncStart) continue;
      for (CompId callee : m.called(i)) {
        if (called[callee.value]) return callee;
        called[callee.value] = true;
      }
    }
  return {};
}

Dataflow::Dataflow(const Module& m) : m_(m), nodes_(m.u()), ranges_(m.inst_slots()), flowed_(m.comp_slots(), false) {
  std::vector<CompId> comps = m.nonfusion_computations();
  // Callers first: what nobody calls for its result has parameters of its own.
  for (size_t k = comps.size(); k-- > 0;) {
    if (flowed_[comps[k].value]) continue;
    for (InstId p : m.comp(comps[k]).params) hold(p, all_new(p));
    flow(comps[k]);
  }
  forget_needless_phis();
  find_positions();
}

ValueId Dataflow::define(InstId i, uint32_t node, ShapeId shape, bool phi) {
  values_.push_back({i, node, shape, phi});
  return static_cast<ValueId>(values_.size() - 1);
}

std::vector<ValueId> Dataflow::all_new(InstId i, bool phi) {
  const std::vector<ShapeId>& shapes = nodes_.shapes(m_.shape_id(i));
  std::vector<ValueId> out;
  out.reserve(shapes.size());
  for (uint32_t k = 0; k < shapes.size(); ++k) out.push_back(define(i, k, shapes[k], phi));
  return out;
}

void Dataflow::hold(InstId i, std::vector<ValueId> values) {
  ranges_[i.value] = {sets_.size(), values.size()};
  sets_.insert(sets_.end(), values.begin(), values.end());
}

std::vector<ValueId> Dataflow::parts_of(InstId i, uint32_t node, uint32_t count) const {
  std::span<const ValueId> all = of(i);
  HLO_CHECK(node + count <= all.size(), "{} has no part {}", m_.inst_name(i), node + count - 1);
  return {all.begin() + node, all.begin() + node + count};
}

// Parts of an instruction become those from `node` on.
void Dataflow::take(std::vector<ValueId>* out, uint32_t node, InstId from, uint32_t from_node, uint32_t count) const {
  std::span<const ValueId> all = of(from);
  if (node + count > out->size() || from_node + count > all.size()) return;  // another shape: values of its own
  std::copy_n(all.begin() + from_node, count, out->begin() + node);
}

void Dataflow::flow(CompId c) {
  check_stack("calls of computations are nested");
  if (flowed_[c.value])
    fail(FailureKind::kUnsupported, "{} is called twice: flatten-call-graph comes first", m_.comp_name(c));
  flowed_[c.value] = true;
  for (InstId i : m_.post_order(c))
    if (m_.op(i) != Opcode::Parameter) visit(i);
}

void Dataflow::while_loop(InstId i) {
  const AttrSet& a = m_.attrs(i);
  const CompId body = a.comp(Attr::body), condition = a.comp(Attr::condition);
  const InstId init = m_.operand(i, 0), state = m_.comp(body).params[0], seen = m_.comp(condition).params[0];
  hold(state, all_new(state, true));
  hold(seen, all_new(seen, true));
  flow(condition);
  flow(body);
  hold(i, all_new(i, true));
  const InstId root = m_.comp(body).root;
  for (InstId phi : {state, seen, i})
    for (uint32_t k = 0; k < of(phi).size(); ++k) phis_.push_back({at(phi, k), {at(init, k), at(root, k)}});
}

void Dataflow::conditional(InstId i) {
  const std::vector<CompId> branches = m_.called(i);
  for (size_t n = 0; n < branches.size(); ++n) {
    const InstId given = m_.operand(i, n + 1);
    hold(m_.comp(branches[n]).params[0], parts_of(given, 0, static_cast<uint32_t>(of(given).size())));
    flow(branches[n]);
  }
  hold(i, all_new(i, true));
  for (uint32_t k = 0; k < of(i).size(); ++k) {
    Phi phi{at(i, k), {}};
    for (CompId c : branches) phi.inputs.push_back(at(m_.comp(c).root, k));
    phis_.push_back(std::move(phi));
  }
}

// async-start is ((arguments), result, …): its tuples and what else it has are its own.
void Dataflow::asynchronous(InstId i) {
  if (m_.op(i) != Opcode::AsyncStart) {
    std::vector<ValueId> out = all_new(i);
    const InstId start = m_.operand(i, 0);
    const auto& shapes = nodes_.shapes(m_.shape_id(i));
    const ShapeId whole = m_.shape_id(start);
    const uint32_t from = m_.op(i) == Opcode::AsyncDone ? nodes_.child(whole, 1) : 0;
    for (uint32_t k = 0; k < out.size(); ++k)
      if (!m_.u()[shapes[k]].is_tuple()) take(&out, k, start, from + k, 1);
    return hold(i, std::move(out));
  }
  const CompId callee = m_.called(i)[0];
  const ShapeId shape = m_.shape_id(i);
  const auto& params = m_.comp(callee).params;
  for (size_t p = 0; p < params.size(); ++p) {
    const InstId given = m_.operand(i, p);
    hold(params[p], parts_of(given, 0, static_cast<uint32_t>(of(given).size())));
  }
  flow(callee);
  std::vector<ValueId> out = all_new(i);
  const std::vector<ShapeId> parts = m_.u()[shape].elements;
  const auto& shapes = nodes_.shapes(shape);
  auto arrays = [&](uint32_t node, InstId from) {
    for (uint32_t k = 0; k < of(from).size() && node + k < out.size(); ++k)
      if (!m_.u()[shapes[node + k]].is_tuple()) take(&out, node + k, from, k, 1);
  };
  for (size_t n = 0; n < m_.operand_count(i) && n < m_.u()[parts[0]].elements.size(); ++n)
    arrays(nodes_.child(shape, 0) + nodes_.child(parts[0], n), m_.operand(i, n));
  arrays(nodes_.child(shape, 1), m_.comp(callee).root);
  hold(i, std::move(out));
}

void Dataflow::send_or_receive(InstId i) {
  std::vector<ValueId> out = all_new(i);
  const ShapeId shape = m_.shape_id(i);
  const InstId o = m_.operand(i, 0);
  switch (m_.op(i)) {
    case Opcode::CopyStart:
      take(&out, nodes_.child(shape, 1), o, 0, static_cast<uint32_t>(of(o).size()));
      break;
    case Opcode::CopyDone:
      take(&out, 0, o, nodes_.child(m_.shape_id(o), 0), static_cast<uint32_t>(out.size()));
      break;
    case Opcode::Send:
      take(&out, nodes_.child(shape, 0), o, 0, static_cast<uint32_t>(of(o).size()));
      break;
    default:  // recv-done
      take(&out, nodes_.child(shape, 0), o, nodes_.child(m_.shape_id(o), 0), nodes_.count(m_.u()[shape].elements[0]));
  }
  hold(i, std::move(out));
}

// (what is sent, what comes, …) of all-gather-start and collective-permute-start.
void Dataflow::collective_start(InstId i) {
  std::vector<ValueId> out = all_new(i);
  const ShapeId shape = m_.shape_id(i);
  if (m_.u()[shape].is_tuple() && !m_.u()[shape].elements.empty()) {
    const ShapeId sent = m_.u()[shape].elements[0];
    const uint32_t first = nodes_.child(shape, 0);
    if (!m_.u()[sent].is_tuple())
      take(&out, first, m_.operand(i, 0), 0, 1);
    else if (m_.operand_count(i) == m_.u()[sent].elements.size())
      for (size_t n = 0; n < m_.operand_count(i); ++n)
        take(&out, first + nodes_.child(sent, n), m_.operand(i, n), 0, 1);
  }
  hold(i, std::move(out));
}

void Dataflow::visit(InstId i) {
  const ShapeId shape = m_.shape_id(i);
  const InstId o = m_.operand_count(i) ? m_.operand(i, 0) : InstId();
  auto pass_on = [&](uint32_t node) { hold(i, parts_of(o, node, nodes_.count(shape))); };
  switch (m_.op(i)) {
    case Opcode::While:
      return while_loop(i);
    case Opcode::Conditional:
      return conditional(i);
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
      return asynchronous(i);
    case Opcode::CopyStart:
    case Opcode::CopyDone:
    case Opcode::Send:
    case Opcode::RecvDone:
      return send_or_receive(i);
    case Opcode::AllGatherStart:
    case Opcode::CollectivePermuteStart:
      return collective_start(i);
    case Opcode::AllGatherDone:
    case Opcode::CollectivePermuteDone: {
      std::vector<ValueId> out = all_new(i);
      const ShapeId whole = m_.shape_id(o);
      if (m_.u()[whole].elements.size() > 1)
        for (uint32_t k = 0; k < out.size(); ++k)
          if (!m_.u()[nodes_.shapes(shape)[k]].is_tuple()) take(&out, k, o, nodes_.child(whole, 1) + k, 1);
      return hold(i, std::move(out));
    }
    case Opcode::Call: {
      const CompId callee = m_.called(i)[0];
      const auto& params = m_.comp(callee).params;
      for (size_t p = 0; p < params.size(); ++p)
        hold(params[p], parts_of(m_.operand(i, p), 0, static_cast<uint32_t>(of(m_.operand(i, p)).size())));
      flow(callee);
      return hold(i, parts_of(m_.comp(callee).root, 0, nodes_.count(shape)));
    }
    case Opcode::GetTupleElement:
      return pass_on(nodes_.child(m_.shape_id(o), static_cast<size_t>(m_.attrs(i).integer(Attr::index))));
    case Opcode::Bitcast:
    case Opcode::Domain:
    case Opcode::OptBarrier:
    case Opcode::AddDependency:
    case Opcode::AllReduceDone:
      return pass_on(0);
    case Opcode::Copy: {
      std::vector<ValueId> out = parts_of(o, 0, nodes_.count(shape));
      out[0] = define(i, 0, shape);
      return hold(i, std::move(out));
    }
    case Opcode::Tuple: {
      std::vector<ValueId> out(nodes_.count(shape));
      out[0] = define(i, 0, shape);
      for (size_t n = 0; n < m_.operand_count(i); ++n) {
        const InstId from = m_.operand(i, n);
        take(&out, nodes_.child(shape, n), from, 0, static_cast<uint32_t>(of(from).size()));
      }
      return hold(i, std::move(out));
    }
    default: {
      if (m_.shape(i).is_tuple()) return hold(i, all_new(i));
      ranges_[i.value] = {sets_.size(), 1};
      sets_.push_back(define(i, 0, shape));
    }
  }
}

ValueId Dataflow::same(ValueId v) {
  while (same_[v] != v) v = same_[v] = same_[same_[v]];
  return v;
}

// A phi that only one value can reach, whatever way it goes round, is that value; so is one all of whose other inputs
// are one phi.
void Dataflow::forget_needless_phis() {
  constexpr ValueId kNone = UINT32_MAX, kMany = UINT32_MAX - 1;
  std::vector<ValueId> only(values_.size(), kNone);
  std::vector<std::vector<uint32_t>> readers(values_.size());  // phis, by number
  std::vector<uint32_t> work;
  same_.resize(values_.size());
  for (ValueId v = 0; v < values_.size(); ++v) {
    same_[v] = v;
    if (!values_[v].phi) only[v] = v;
  }
  for (uint32_t p = 0; p < phis_.size(); ++p) {
    work.push_back(p);
    for (ValueId v : phis_[p].inputs) readers[v].push_back(p);
  }
  auto drain = [&](auto&& update) {
    std::vector<bool> queued(phis_.size(), true);
    for (size_t k = 0; k < work.size(); ++k) {
      const uint32_t p = work[k];
      queued[p] = false;
      if (!update(p)) continue;
      for (uint32_t reader : readers[phis_[p].value])
        if (!queued[reader]) queued[reader] = true, work.push_back(reader);
    }
    work.clear();
  };
  drain([&](uint32_t p) {
    ValueId found = only[phis_[p].value];
    const ValueId before = found;
    for (ValueId v : phis_[p].inputs) {
      if (only[v] == kNone || only[v] == found) continue;
      found = found == kNone ? only[v] : kMany;
    }
    only[phis_[p].value] = found;
    return found != before;
  });
  for (uint32_t p = 0; p < phis_.size(); ++p) {
    const ValueId v = phis_[p].value;
    if (only[v] < kMany) same_[v] = only[v];
    work.push_back(p);
  }
  drain([&](uint32_t p) {
    const ValueId v = phis_[p].value;
    if (same_[v] != v) return false;
    ValueId found = kNone;
    for (ValueId input : phis_[p].inputs) {
      const ValueId s = same(input);
      if (s == v || s == found) continue;
      if (found != kNone) return false;
      found = s;
    }
    if (found == kNone) return false;
    // Who read it reads that one now.
    readers[found].insert(readers[found].end(), readers[v].begin(), readers[v].end());
    same_[v] = found;
    return true;
  });
  for (ValueId& v : sets_) v = same(v);
}

void Dataflow::find_positions() {
  std::vector<ValuePosition> found;
  std::vector<ValueId> of_position;
  first_position_.assign(values_.size() + 1, 0);
  auto add = [&](ValueId v, InstId i, uint32_t node) {
    found.push_back({i, node}), of_position.push_back(v);
    ++first_position_[v + 1];
  };
  for (ValueId v = 0; v < values_.size(); ++v)
    if (same_[v] == v) add(v, values_[v].inst, values_[v].node);
  for (CompId c : m_.computations())
    for (InstId i : m_.live_order(c))
      for (uint32_t node = 0; node < of(i).size(); ++node) {
        const ValueId v = at(i, node);
        if (values_[v].inst != i || values_[v].node != node) add(v, i, node);
      }
  for (size_t v = 0; v < values_.size(); ++v) first_position_[v + 1] += first_position_[v];
  positions_.resize(found.size());
  std::vector<size_t> next(first_position_.begin(), first_position_.end() - 1);
  for (size_t k = 0; k < found.size(); ++k) positions_[next[of_position[k]]++] = found[k];
}

// The slots that read it, as its users stand. Of what is inside, those that hand it on are left out unless they are a
// root.
std::vector<Dataflow::Reader> Dataflow::find_readers(InstId i, bool whole) const {
  std::vector<Reader> out;
  for (InstId user : m_.users(i)) {
    const Opcode op = m_.op(user);
    bool reads = op != Opcode::Domain && op != Opcode::Tuple;
    if (!whole) reads &= op != Opcode::GetTupleElement && op != Opcode::Copy;
    if (reads || m_.is_root(user)) add_slots(user, i, &out);
  }
  return out;
}

// An array is asked for once, a tuple for each of its parts.
const std::vector<Dataflow::Reader>& Dataflow::readers(InstId i, bool whole) const {
  if (of(i).size() == 1) return last_readers_ = find_readers(i, whole);
  auto [entry, fresh] = (whole ? whole_readers_ : part_readers_).try_emplace(i);
  if (fresh) entry->second = find_readers(i, whole);
  return entry->second;
}

void Dataflow::add_slots(InstId user, InstId i, std::vector<Reader>* out) const {
  constexpr size_t kFew = 16;
  std::span<const InstId> operands = m_.operands(user);
  if (operands.size() <= kFew) {
    for (uint32_t n = 0; n < operands.size(); ++n)
      if (operands[n] == i) out->emplace_back(user, n);
    return;
  }
  auto [entry, fresh] = slots_.try_emplace(user);
  if (fresh)
    for (uint32_t n = 0; n < operands.size(); ++n) entry->second[operands[n]].push_back(n);
  for (uint32_t n : entry->second[i]) out->emplace_back(user, n);
}

const std::vector<ValueUse>& Dataflow::uses(ValueId v) const {
  auto [entry, fresh] = uses_.try_emplace(v);
  std::vector<ValueUse>& out = entry->second;
  if (!fresh) return out;
  for (const ValuePosition& p : positions(v))
    for (const auto& [user, n] : readers(p.inst, p.node == 0)) {
      const Opcode op = m_.op(user);
      bool reads = op != Opcode::Domain && op != Opcode::Tuple;
      if (p.node != 0) reads &= op != Opcode::GetTupleElement && op != Opcode::Copy;
      if (reads || (m_.is_root(user) && leaves(v, m_.parent(user)))) out.push_back({user, n, p.node});
    }
  return out;
}

bool Dataflow::leaves(ValueId v, CompId c) const {
  const InstId root = m_.comp(c).root;
  std::span<const ValueId> all = of(root);
  if (all.size() == 1) return all[0] == v;
  auto [entry, fresh] = at_root_.try_emplace(root);
  if (fresh) entry->second.insert(all.begin(), all.end());
  return entry->second.contains(v);
}

}  // namespace hlo
