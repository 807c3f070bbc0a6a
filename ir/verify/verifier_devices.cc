// Rules of aliases, asynchronous operations and collectives.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "ir/base/checked.h"
#include "ir/inference/shape_inference.h"
#include "ir/sharding/aliasing.h"
#include "ir/sharding/sharding.h"
#include "ir/verify/operation_rules.h"

namespace hlo {

void OperationRules::aliases() {
  std::set<Dims> seen;
  StrId marks = a_.text(Attr::frontend_attributes);
  const bool unlike = m_.op(i_) == Opcode::CustomCall && marks.valid() &&
                      u_.text(marks).find("xla_skip_custom_call_alias_shape_check") != std::string::npos;
  for (const AliasEntry& e : parse_aliases(u_.text(a_.text(Attr::output_to_operand_aliasing)))) {
    if (e.number < 0 || e.number >= static_cast<int64_t>(m_.operand_count(i_))) {
      error_("aliasing", fmt::format("aliases operand {} of {}", e.number, m_.operand_count(i_)));
      continue;
    }
    ShapeId from = u_.subshape(m_.shape_id(i_), e.output),
            to = u_.subshape(m_.shape_id(m_.operand(i_, static_cast<size_t>(e.number))), e.index);
    if (!from.valid() || !to.valid())
      error_("aliasing", "aliases an element that does not exist");
    else if (!unlike && u_[from].is_buffer == u_[to].is_buffer && !u_.compatible(from, to))
      error_("aliasing", fmt::format("aliases {} with {}", u_.shape_text_plain(from), u_.shape_text_plain(to)));
    if (!seen.insert(e.output).second) error_("aliasing", "aliases one output twice");
  }
}

bool OperationRules::carried() {
  Opcode from = m_.op(m_.operand(i_, 0));
  if (from != Opcode::GetTupleElement && from != Opcode::Parameter) return false;
  const Shape& s = in(0);
  if (!s.is_tuple() || s.elements.size() != 3 || u_[s.elements[1]].type != ElementType::U32 ||
      !u_[s.elements[2]].is_token())
    return false;
  if (m_.op(i_) == Opcode::RecvDone &&
      (!out().is_tuple() || out().elements.empty() || !u_.compatible(out().elements[0], s.elements[0])))
    shape("gives {} for {}", text(i_), text(0));
  return true;
}

void OperationRules::single_done(Opcode done) {
  size_t count = 0;
  const bool transfer = m_.op(i_) == Opcode::Send || m_.op(i_) == Opcode::Recv;
  for (InstId user : m_.users(i_)) {
    if (m_.op(user) == Opcode::CustomCall && u_.text(m_.attrs(user).text(Attr::custom_call_target)) == "control_dep")
      continue;
    // Transfers go on in the next round of a pipelined loop; of others only what our passes have under way does.
    if (settled_ && !transfer && m_.op(user) != done)
      return error_("pairs", fmt::format("is used by {}, which is no {}", m_.inst_name(user), op_text(done)));
    if (m_.op(user) == Opcode::Tuple || m_.op(user) == Opcode::While || m_.op(user) == Opcode::Call) return;
    if (m_.op(user) != done)
      return error_("pairs", fmt::format("is used by {}, which is no {}", m_.inst_name(user), op_text(done)));
    ++count;
  }
  if ((transfer || !settled_) && m_.is_root(i_) && m_.parent(i_) != m_.entry()) return;
  if (count != 1) error_("pairs", fmt::format("has {} {}, not one", count, op_text(done)));
}

void OperationRules::async_users() {
  size_t count = 0;
  for (InstId user : m_.users(i_)) {
    if (!settled_ && (m_.op(user) == Opcode::Tuple || m_.op(user) == Opcode::While)) return;
    if (m_.op(user) == Opcode::CustomCall && u_.text(m_.attrs(user).text(Attr::custom_call_target)) == "control_dep")
      continue;
    if (m_.op(user) != Opcode::AsyncUpdate && m_.op(user) != Opcode::AsyncDone)
      return error_("pairs", fmt::format("is used by {}, which is no async-update or async-done", m_.inst_name(user)));
    ++count;
  }
  if (!settled_ && m_.is_root(i_) && m_.parent(i_) != m_.entry()) return;
  if (count != 1) error_("pairs", fmt::format("has {} users, not one", count));
}

void OperationRules::async_update() {
  if (!of_async(u_, in(0)) || !of_async(u_, out()))
    return shape("takes and gives ((operands), results, …), not {}", text(i_));
  const Shape &before = u_[in(0).elements[0]], &now = u_[out().elements[0]];
  size_t fresh = m_.operand_count(i_) - 1;
  if (before.elements.size() + fresh != now.elements.size())
    return shape("has {} new operands, its shape says {}", fresh,
                 static_cast<int64_t>(now.elements.size()) - static_cast<int64_t>(before.elements.size()));
  for (size_t k = 0; k < now.elements.size(); ++k) {
    bool old = k < before.elements.size();
    ShapeId given = old ? before.elements[k] : m_.shape_id(m_.operand(i_, 1 + k - before.elements.size()));
    if (!u_.compatible(given, now.elements[k]))
      return shape("passes {}, its shape says {}", u_.shape_text_plain(given), u_.shape_text_plain(now.elements[k]));
  }
  if (!is_prefix_of(u_, in(0).elements[1], out().elements[1])) return shape("gives {} for {}", text(i_), text(0));
  if (CompId c = async_callee(); c.valid() && !is_prefix_of(u_, out().elements[1], m_.shape_id(m_.comp(c).root)))
    shape("gives {}, its computation {}", u_.shape_text_plain(out().elements[1]), text(m_.comp(c).root));
}

void OperationRules::async_done() {
  if (!of_async(u_, in(0))) return;
  CompId c = async_callee();
  ShapeId whole = c.valid() ? m_.shape_id(m_.comp(c).root) : in(0).elements[1];
  if (!u_.compatible(whole, m_.shape_id(i_)))
    return shape("gives {}, its async-start {}", text(i_), u_.shape_text_plain(whole));
  size_t bound = u_[in(0).elements[0]].elements.size();
  if (c.valid() && bound != m_.comp(c).params.size())
    error_("calls", fmt::format("ends what has {} operands of {}", bound, m_.comp(c).params.size()));
}

void OperationRules::async_start() {
  const Shape& s = out();
  const Computation& c = m_.comp(a_.comp(Attr::calls));
  if (!s.is_tuple() || s.elements.size() < 2 || !u_[s.elements[0]].is_tuple())
    return shape("gives ((operands), results, …), not {}", text(i_));
  const Shape& passed = u_[s.elements[0]];
  if (passed.elements.size() != m_.operand_count(i_))
    shape("has {} operands, its shape says {}", m_.operand_count(i_), passed.elements.size());
  for (size_t k = 0; k < std::min(passed.elements.size(), m_.operand_count(i_)); ++k)
    if (!u_.compatible(passed.elements[k], m_.shape_id(m_.operand(i_, k))))
      shape("passes {}, its shape says {}", text(k), u_.shape_text_plain(passed.elements[k]));
  if (c.params.size() < m_.operand_count(i_)) {
    error_("calls", fmt::format("passes {} operands to {} parameters", m_.operand_count(i_), c.params.size()));
  } else {
    for (size_t k = 0; k < m_.operand_count(i_); ++k)
      if (!u_.compatible(m_.shape_id(c.params[k]), m_.shape_id(m_.operand(i_, k))))
        error_("calls", fmt::format("passes {} as a {}", text(k), text(c.params[k])));
  }
  if (!is_prefix_of(u_, s.elements[1], m_.shape_id(c.root)))
    shape("gives {}, its computation {}", u_.shape_text_plain(s.elements[1]), text(c.root));
  StrId thread = a_.text(Attr::async_execution_thread);
  if (thread != c.thread && (thread.valid() || !settled_)) error_("threads", "runs a computation of another thread");
  async_users();
}

void OperationRules::groups() {
  StrId text = a_.text(Attr::replica_groups);
  std::vector<DeviceDims> list;
  if (!text.valid()) return;
  if (std::string why = groups_text_error(u_.text(text)); !why.empty()) return collective("{}", why);
  if (!expand_replica_groups(u_.text(text), &list)) return;
  bool global = a_.flag(Attr::use_global_device_ids), channel = a_.has(Attr::channel_id);
  // 0 stands for no channel in XLA's protos.
  if (global && (!channel || (settled_ && a_.integer(Attr::channel_id) < 1)))
    return collective("has use_global_device_ids without a channel_id");
  if (list.empty()) {
    if (global) collective("with use_global_device_ids needs replica_groups");
    return;
  }
  int64_t replicas = m_.config().replica_count, partitions = m_.config().num_partitions;
  bool by_partition = channel && !global &&
                      (m_.op(i_) == Opcode::AllToAll || m_.op(i_) == Opcode::CollectiveBroadcast ||
                       m_.op(i_) == Opcode::RaggedAllToAll);
  int64_t count = global ? (Checked(replicas) * partitions).capped() : by_partition ? partitions : replicas;
  std::set<int64_t> seen;
  for (const DeviceDims& g : list) {
    if (g.empty()) return collective("has an empty replica group");
    for (int64_t d : g)
      if (!seen.insert(d).second) return collective("names {} twice in its replica_groups", d);
  }
  for (int64_t d = 0; d < static_cast<int64_t>(seen.size()) && m_.op(i_) != Opcode::CollectiveBroadcast; ++d)
    if (!seen.contains(d)) return collective("does not name {} in its replica_groups", d);
  // A count of one may be one that the header does not tell.
  if (static_cast<int64_t>(seen.size()) != count && count != 1)
    return collective("names {} devices in its replica_groups, the module has {}", seen.size(), count);
  bool uneven = std::any_of(list.begin(), list.end(), [&](const DeviceDims& g) { return g.size() != list[0].size(); });
  if (uneven && m_.op(i_) != Opcode::AllReduce && m_.op(i_) != Opcode::AllReduceStart &&
      m_.op(i_) != Opcode::CollectiveBroadcast)
    collective("has replica groups of different sizes");
}

size_t OperationRules::group_size() const {
  std::vector<DeviceDims> list;
  StrId text = a_.text(Attr::replica_groups);
  const bool channel = a_.has(Attr::channel_id), global = a_.flag(Attr::use_global_device_ids);
  const bool exchange = m_.op(i_) == Opcode::AllToAll;
  // Groups of replicas, with a channel of all their partitions.
  Checked partitions = channel && !global && !exchange ? m_.config().num_partitions : 1;
  if (text.valid() && expand_replica_groups(u_.text(text), &list) && !list.empty())
    return static_cast<size_t>((partitions * static_cast<int64_t>(list[0].size())).capped());
  if (!counts_known()) return 0;
  if (channel && exchange) return static_cast<size_t>(m_.config().num_partitions);
  return static_cast<size_t>((partitions * m_.config().replica_count).capped());
}

void OperationRules::gathered(bool scattered) {
  const Dims& d = a_.ints(Attr::dimensions);
  auto check = [&](const Shape& from, const Shape& to, std::string_view what) {
    if (d.size() != 1 || d[0] < 0 || d[0] >= from.rank())
      return attribute("has no dimension {}", d.empty() ? -1 : d[0]);
    const Shape &small = scattered ? to : from, &big = scattered ? from : to;
    if (settled_ && from.type != to.type && !(mixed_ && is_float(from.type) && is_float(to.type)))
      return shape("gives {} for {}", text(i_), what);
    if (small.rank() != big.rank()) return shape("gives {} for {}", text(i_), what);
    for (int k = 0; k < small.rank(); ++k) {
      auto at = static_cast<size_t>(k);
      if (k == d[0] && group_size() <= 1) {
        if (small.dims[at] > 0 && big.dims[at] % small.dims[at])
          return shape("gives {} for {}, which is no multiple", text(i_), what);
        continue;
      }
      int64_t want = (Checked(small.dims[at]) * (k == d[0] ? static_cast<int64_t>(group_size()) : 1)).capped();
      if (big.dims[at] != want) return shape("gives {} for {} in groups of {}", text(i_), what, group_size());
    }
  };
  if (m_.operand_count(i_) == 1 && in(0).is_array() && out().is_array()) {
    check(in(0), out(), text(0));
  } else if (out().is_tuple()) {
    if (out().elements.size() != m_.operand_count(i_))
      return shape("gives {} arrays for {}", out().elements.size(), m_.operand_count(i_));
    for (size_t k = 0; k < m_.operand_count(i_); ++k) check(in(k), u_[out().elements[k]], text(k));
  } else {
    shape("gives {} for {} operands", text(i_), m_.operand_count(i_));
  }
}

void OperationRules::gather_start() {
  // Of one array (operand, result), of several ((operands), (results)).
  const Shape& s = out();
  size_t count = m_.operand_count(i_);
  if (!count) return shape("gathers nothing");
  if (!s.is_tuple() || s.elements.size() < 2) return shape("gives (operands, results), not {}", text(i_));
  bool several = count != 1;
  const Shape &from = u_[s.elements[0]], &to = u_[s.elements[1]];
  if (several && (!from.is_tuple() || !to.is_tuple() || from.elements.size() != count || to.elements.size() != count))
    return shape("gives ((operands), (results)) of {} operands, not {}", count, text(i_));
  const Dims& d = a_.ints(Attr::dimensions);
  for (size_t k = 0; k < count; ++k) {
    ShapeId small = several ? from.elements[k] : s.elements[0], big = several ? to.elements[k] : s.elements[1];
    if (!u_.compatible(small, m_.shape_id(m_.operand(i_, k))))
      return shape("passes {}, its shape says {}", text(k), u_.shape_text_plain(small));
    if (d.size() != 1 || d[0] < 0 || d[0] >= in(k).rank())
      return attribute("has no dimension {}", d.empty() ? -1 : d[0]);
    const Shape &x = in(k), &y = u_[big];
    bool fits = y.is_array() && y.rank() == x.rank() && (y.type == x.type || mixed_);
    for (int n = 0; fits && n < x.rank(); ++n) {
      auto at = static_cast<size_t>(n);
      if (n != d[0])
        fits = x.dims[at] == y.dims[at];
      else if (group_size() > 1)
        fits = y.dims[at] == (Checked(x.dims[at]) * static_cast<int64_t>(group_size())).capped();
      else
        fits = x.dims[at] <= 0 || y.dims[at] % x.dims[at] == 0;
    }
    if (!fits) return shape("gives {} for {} in groups of {}", u_.shape_text_plain(big), text(k), group_size());
  }
}

void OperationRules::permute_start() {
  const Shape& s = out();
  if (settled_ && m_.operand_count(i_) > 1 && !a_.has(Attr::slice_sizes)) {
    if (!s.is_tuple() || s.elements.size() < 2) return shape("gives ((operands), (results), …), not {}", text(i_));
    for (size_t k = 0; k < 2; ++k)
      if (!results_as_operands(s.elements[k])) return;
  }
  if (m_.operand_count(i_) != 1) return;
  if (!s.is_tuple() || s.elements.size() < 2) return shape("gives (operand, result, …), not {}", text(i_));
  for (size_t k = 0; k < 2; ++k)
    if (!u_.compatible(s.elements[k], m_.shape_id(m_.operand(i_, 0))))
      return shape("passes {}, its shape says {}", text(size_t{0}), u_.shape_text_plain(s.elements[k]));
}

void OperationRules::second_of_start() {
  if (!in(0).is_tuple() || in(0).elements.size() < 2) return;
  if (!u_.compatible(in(0).elements[1], m_.shape_id(i_)))
    shape("gives {}, its start {}", text(i_), u_.shape_text_plain(in(0).elements[1]));
}

void OperationRules::all_to_all() {
  const Dims& d = a_.ints(Attr::dimensions);
  if (!d.empty()) {
    if (d[0] < 0 || d[0] >= in(0).rank()) return attribute("has no dimension {}", d[0]);
    if (m_.operand_count(i_) == 1) {
      if (in(0).dims[static_cast<size_t>(d[0])] % static_cast<int64_t>(std::max<size_t>(group_size(), 1)))
        shape("does not split {} in {}", text(0), group_size());
      if (out().is_array()) result(m_.operand(i_, 0));
    }
    return;
  }
  for (size_t k = 1; k < m_.operand_count(i_); ++k)
    if (!u_.compatible(m_.shape_id(m_.operand(i_, k)), m_.shape_id(m_.operand(i_, 0))))
      return shape("exchanges arrays of different shapes: {} and {}", text(size_t{0}), text(k));
  if (group_size() && m_.operand_count(i_) != group_size())
    collective("has {} operands in groups of {}", m_.operand_count(i_), group_size());
  if (!out().is_tuple() || out().elements.size() != m_.operand_count(i_))
    return shape("gives {} for {} operands", text(i_), m_.operand_count(i_));
  if (settled_) results_as_operands(m_.shape_id(i_));
}

bool OperationRules::results_as_operands(ShapeId s) {
  bool fits = u_[s].is_tuple() && u_[s].elements.size() == m_.operand_count(i_);
  for (size_t k = 0; fits && k < m_.operand_count(i_); ++k)
    fits = alike(u_[s].elements[k], m_.shape_id(m_.operand(i_, k)));
  if (!fits) shape("gives {} for {} operands of other shapes", u_.shape_text_plain(s), m_.operand_count(i_));
  return fits;
}

void OperationRules::permute() {
  const bool in_place = permutes_in_place();
  if (in_place && m_.operand_count(i_) != 4) return;
  if (settled_ && m_.op(i_) == Opcode::CollectivePermute) {
    if (in_place)
      result(m_.operand(i_, 1));
    else if (m_.operand_count(i_) > 1)
      results_as_operands(m_.shape_id(i_));
  }
  const size_t most = pairs_a_device();
  std::map<int64_t, size_t> sources, targets;
  StrId text = a_.text(Attr::source_target_pairs);
  if (!text.valid()) return;
  int64_t limit = a_.has(Attr::channel_id) ? m_.config().num_partitions : m_.config().replica_count;
  for (auto [from, to] : expand_pairs(u_.text(text))) {
    if (++sources[from] > most) return collective("has source {} {}", from, most == 1 ? "twice" : "too often");
    if (++targets[to] > most) return collective("has target {} {}", to, most == 1 ? "twice" : "too often");
    for (int64_t v : {from, to})
      if (v < 0 || (v >= limit && limit != 1)) return collective("names device {} of {}", v, limit);
  }
}

}  // namespace hlo
