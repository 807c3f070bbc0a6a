#include "replay/report/explain/why_made.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/print/print.h"
#include "ir/query/source_lines.h"
#include "ir/sharding/aliasing.h"
#include "replay/report/explain/explain_text.h"

namespace hlo {
namespace {

// The name, with its source line where one is known.
std::string with_line(const Module& m, InstId i) {
  std::string line = source_line(m, i).text();
  if (line.empty() && m.op(i) == Opcode::Fusion) line = source_line(m, m.comp(m.called(i)[0]).root).text();
  return line.empty() ? std::string(m.inst_name(i)) : fmt::format("{} ({})", m.inst_name(i), line);
}

std::string listed(const Module& m, const std::vector<InstId>& list) {
  constexpr size_t kMost = 3;
  std::string out;
  for (size_t k = 0; k < list.size() && k < kMost; ++k) out += (k ? ", " : "") + with_line(m, list[k]);
  if (list.size() > kMost) out += fmt::format(" and {} more", list.size() - kMost);
  return out;
}

class CopyReason {
 public:
  CopyReason(const Module& m, InstId copy) : m_(m), copy_(copy), from_(origin(m.operand(copy, 0))) {
    const std::vector<InstId>& order = m.comp(m.parent(copy)).order;
    for (size_t k = 0; k < order.size(); ++k)
      if (order[k].valid()) place_[order[k]] = k;
    find(copy, &readers_of_copy_, &writers_);
    std::vector<InstId> ignored;
    find(from_, &readers_, &ignored);
    for (InstId w : ignored)
      if (std::find(readers_.begin(), readers_.end(), w) == readers_.end()) readers_.push_back(w);
  }

  std::vector<std::string> tell() {
    std::vector<std::string> out;
    if (std::string s = layout(); !s.empty()) out.push_back(std::move(s));
    if (out.empty() && m_.op(from_) == Opcode::Constant) out.push_back(constant());
    if (out.empty() && carried()) out.push_back(state());
    if (out.empty() && in_entry(from_)) out.push_back(parameter());
    if (out.empty() && m_.op(from_) != Opcode::Parameter) out.push_back(value());
    std::erase(out, "");
    if (out.empty()) out.push_back("unknown: neither aliasing, nor loops, layouts or results explain why it is there");
    return out;
  }

 private:
  // What the operand is, past what only hands it on.
  InstId origin(InstId i) const {
    while (m_.op(i) == Opcode::Bitcast) i = m_.operand(i, 0);
    return i;
  }

  bool in_entry(InstId i) const { return m_.op(i) == Opcode::Parameter && m_.parent(i) == m_.entry(); }

  // Writes where its operand lies: loops and what calls them, updates, fusions that end in one.
  bool writes(InstId user, InstId operand) const {
    switch (m_.op(user)) {
      case Opcode::While:
      case Opcode::Conditional:
      case Opcode::Call:
        return true;
      case Opcode::DynamicUpdateSlice:
      case Opcode::Scatter:
        return m_.operand(user, 0) == operand;
      case Opcode::Fusion: {
        const Computation& body = m_.comp(m_.called(user)[0]);
        InstId root = body.root;
        while (m_.op(root) == Opcode::Bitcast) root = m_.operand(root, 0);
        if (m_.op(root) != Opcode::DynamicUpdateSlice && m_.op(root) != Opcode::Scatter) return false;
        InstId into = m_.operand(root, 0);
        while (m_.op(into) == Opcode::Bitcast) into = m_.operand(into, 0);
        if (m_.op(into) != Opcode::Parameter) return false;
        const auto number = static_cast<size_t>(m_.parameter_number(into));
        return number < m_.operand_count(user) && m_.operand(user, number) == operand;
      }
      default:
        return false;
    }
  }

  // What reads a value, past what only hands it on, and of that what writes into it. The copy is neither.
  void find(InstId value, std::vector<InstId>* readers, std::vector<InstId>* writers) const {
    std::vector<InstId> list{value};
    std::unordered_set<InstId> seen{value};
    for (size_t at = 0; at < list.size(); ++at)
      for (InstId user : m_.users(list[at])) {
        if (user == copy_ || !seen.insert(user).second) continue;
        const Opcode op = m_.op(user);
        if (op == Opcode::Bitcast || (op == Opcode::Tuple && !m_.is_root(user)))
          list.push_back(user);
        else if (writes(user, list[at]))
          writers->push_back(user);
        else if (op != Opcode::Tuple)
          readers->push_back(user);
      }
  }

  // Positions of the computation's result that the value is; {} for all of it.
  std::vector<std::vector<int64_t>> results(InstId value) const {
    std::vector<std::vector<int64_t>> out;
    InstId root = m_.comp(m_.parent(value)).root;
    if (origin(root) == value) out.emplace_back();
    if (m_.op(root) == Opcode::Tuple)
      for (size_t k = 0; k < m_.operand_count(root); ++k)
        if (origin(m_.operand(root, k)) == value) out.push_back({static_cast<int64_t>(k)});
    return out;
  }

  static std::string result_text(const std::vector<int64_t>& index) {
    return fmt::format("result {{{}}}", fmt::join(index, ","));
  }

  InstId result_at(const std::vector<int64_t>& index) const {
    InstId root = m_.comp(m_.entry()).root;
    if (index.empty()) return origin(root);
    const auto k = static_cast<size_t>(index[0]);
    if (m_.op(root) != Opcode::Tuple || k >= m_.operand_count(root)) return {};
    return origin(m_.operand(root, k));
  }

  std::string layout() const {
    const Shape &s = m_.shape(m_.operand(copy_, 0)), &t = m_.shape(copy_);
    if (!s.is_array() || !t.is_array() || !s.has_layout || !t.has_layout ||
        m_.shape_id(m_.operand(copy_, 0)) == m_.shape_id(copy_))
      return {};
    std::vector<InstId> all = writers_;
    all.insert(all.end(), readers_of_copy_.begin(), readers_of_copy_.end());
    const Universe& u = m_.u();
    const std::string who = all.empty() ? "the result" : listed(m_, all);
    return fmt::format("layout: {} gives {}, {} takes {}", with_line(m_, from_),
                       u.shape_text(m_.shape_id(m_.operand(copy_, 0))), who, u.shape_text(m_.shape_id(copy_)));
  }

  std::string constant() const {
    if (!writers_.empty())
      return fmt::format("constant: {} writes where its operand is, and the constant {} must stay as it is",
                         listed(m_, writers_), with_line(m_, from_));
    for (const auto& index : results(copy_))
      return fmt::format("result: the constant {} is returned as {}, which needs its own buffer", with_line(m_, from_),
                         result_text(index));
    return {};
  }

  // An element of a loop's state, in its body.
  bool carried() const {
    return m_.op(from_) == Opcode::GetTupleElement && m_.op(m_.operand(from_, 0)) == Opcode::Parameter &&
           m_.parent(from_) != m_.entry();
  }

  std::string state() const {
    const auto index = static_cast<size_t>(m_.attrs(from_).integer(Attr::index));
    InstId root = m_.comp(m_.parent(copy_)).root;
    if (m_.op(root) != Opcode::Tuple || index >= m_.operand_count(root)) return {};
    InstId update = origin(m_.operand(root, index));
    if (update == from_ || update == copy_) {
      for (const auto& at : results(copy_))
        if (static_cast<size_t>(at[0]) != index)
          return fmt::format("loop state: what comes in as element {} leaves as element {}, whose buffer is another",
                             index, at[0]);
      return {};
    }
    std::vector<InstId> old = readers_of_copy_;
    std::erase(old, update);
    if (old.empty()) old = readers_;
    std::erase(old, update);
    if (old.empty()) return {};
    return fmt::format("loop state: {} writes element {} of the state where it is, and {} reads what was there before",
                       with_line(m_, update), index, listed(m_, old));
  }

  std::vector<InstId> behind(InstId writer, const std::vector<InstId>& readers) const {
    std::vector<InstId> out;
    for (InstId r : readers)
      if (r != writer && place_.at(r) > place_.at(writer)) out.push_back(r);
    return out;
  }

  // Who reads the copied value though this one writes over it.
  std::string overwritten(const std::string& what, InstId writer, const std::string& where) const {
    std::vector<InstId> late = behind(writer, readers_);
    if (!late.empty())
      return fmt::format("{}: {} writes {}, and {} reads {} after it", what, with_line(m_, writer), where,
                         listed(m_, late), m_.inst_name(from_));
    std::vector<InstId> others = readers_;
    others.insert(others.end(), readers_of_copy_.begin(), readers_of_copy_.end());
    std::erase(others, writer);
    if (others.empty()) return {};
    return fmt::format("{}: {} writes {}, and {} reads the old value; whether another order spares the copy is unknown",
                       what, with_line(m_, writer), where, listed(m_, others));
  }

  std::string parameter() const {
    const int64_t number = m_.parameter_number(from_);
    const AliasEntry* donated = nullptr;
    const std::vector<AliasEntry> aliases = parse_aliases(m_.config().input_output_alias);
    for (const AliasEntry& e : aliases)
      if (e.number == number) donated = &e;
    for (const auto& index : results(copy_)) {
      if (donated && donated->output == index) continue;
      return fmt::format(
          "result: parameter {} is returned as {}, which needs its own buffer: the parameter's is "
          "{}",
          with_line(m_, from_), result_text(index), donated ? "another result's" : "the caller's");
    }
    if (!writers_.empty()) {
      if (!donated)
        return fmt::format("parameter: {} writes where its operand is, and {} is the caller's, who did not donate it",
                           listed(m_, writers_), with_line(m_, from_));
      return overwritten("donated parameter", writers_[0],
                         fmt::format("into the donated buffer of {}", with_line(m_, from_)));
    }
    if (!donated) return {};
    InstId result = result_at(donated->output);
    if (!result.valid() || result == from_ || result == copy_) return {};
    return overwritten(
        "donated parameter", result,
        fmt::format("{} into the donated buffer of {}", result_text(donated->output), with_line(m_, from_)));
  }

  // Of a value made here.
  std::string value() const {
    const bool entry = m_.parent(copy_) == m_.entry();
    for (const auto& index : results(copy_)) {
      for (const auto& other : results(from_))
        return fmt::format("result: {} is {} and {}, two results in two buffers", with_line(m_, from_),
                           result_text(other), result_text(index));
      if (entry)
        for (const AliasEntry& e : parse_aliases(m_.config().input_output_alias)) {
          if (e.output != index) continue;
          const auto& params = m_.comp(m_.entry()).params;
          if (e.number < 0 || static_cast<size_t>(e.number) >= params.size()) continue;
          InstId donor = params[static_cast<size_t>(e.number)];
          std::vector<InstId> reads, writes_too;
          find(donor, &reads, &writes_too);
          reads.insert(reads.end(), writes_too.begin(), writes_too.end());
          return fmt::format("donated parameter: {} must be in the buffer of {}, which {} still reads while {} is made",
                             result_text(index), with_line(m_, donor), reads.empty() ? "nothing" : listed(m_, reads),
                             with_line(m_, from_));
        }
    }
    if (writers_.empty()) return {};
    return overwritten("value", writers_[0], fmt::format("into the buffer of {}", with_line(m_, from_)));
  }

  const Module& m_;
  InstId copy_, from_;
  std::unordered_map<InstId, size_t> place_;
  std::vector<InstId> readers_of_copy_, writers_;  // of the copy; writers in place
  std::vector<InstId> readers_;                    // of what is copied, the copy aside
};

}  // namespace

std::vector<std::string> why_copied(const Module& m, InstId copy) { return CopyReason(m, copy).tell(); }

bool is_collective(Opcode op) { return op_info(op).cls == OpClass::Collective; }

std::vector<std::string> why_collective(Recording& r, size_t stage, InstId id) {
  const Lineage& lineage = r.lineage();
  size_t born = stage;
  while (born > 0 && lineage.stage(born - 1).alive(id)) --born;
  if (born == 0) return {};
  const std::unique_ptr<Module> now = lineage.module(born), was = lineage.module(born - 1);
  const StageRow* row = rows_of_stages(r, lineage)[born];
  const std::string by = fmt::format("made by {}", row ? stage_label(*row) : fmt::format("stage {}", born));
  // What it moves: the first operand that the stage before knows, or what that was made of.
  std::vector<InstId> agenda(now->operands(id).begin(), now->operands(id).end());
  std::unordered_set<InstId> seen(agenda.begin(), agenda.end());
  constexpr size_t kMost = 64;
  for (size_t at = 0; at < agenda.size() && at < kMost; ++at) {
    InstId from = lineage.stage(born - 1).alive(agenda[at]) ? agenda[at] : InstId();
    for (const Heir& h : lineage.heirs(born))
      if (!from.valid() && h.to == agenda[at]) from = h.from;
    if (!from.valid()) {
      for (InstId o : now->operands(agenda[at]))
        if (seen.insert(o).second) agenda.push_back(o);
      continue;
    }
    const StrId text = (*was)[from].attrs.valid() ? was->attrs(from).text(Attr::sharding) : StrId();
    const std::string sharding(text.valid() ? was->u().text(text) : std::string_view());
    return {fmt::format("{}: it moves what {} gives{}", by, with_line(*was, from),
                        sharding.empty() ? "" : ", sharding=" + sharding)};
  }
  return {by + ": what it moves is made there, too"};
}

namespace {

struct Found {
  CompId id;
  size_t first = 0, last = 0;
};

// The last computation of the name; a body that was replaced by another of its name is another one.
bool find_computation(const Lineage& lineage, StrId name, Found* out) {
  bool any = false;
  for (size_t k = lineage.size(); k-- > 0;) {
    const Snapshot& s = lineage.stage(k);
    if (any) {
      const auto& order = s.computation_order();
      if (std::find(order.begin(), order.end(), out->id) == order.end()) return true;
      out->first = k;
      continue;
    }
    for (CompId c : s.computation_order())
      if (const Computation* comp = s.computation(c); comp && comp->name == name)
        out->id = c, out->first = out->last = k, any = true;
  }
  return any;
}

bool says_little(Opcode op) {
  return op == Opcode::Parameter || op == Opcode::Constant || op == Opcode::Tuple || op == Opcode::GetTupleElement;
}

// What an instruction was in the stage before its computation was made.
std::string origin_text(const Lineage& lineage, const Module& was, size_t first, CompId comp, InstId i) {
  const Snapshot& before = lineage.stage(first - 1);
  if (before.alive(i)) {
    if (before[i].parent == comp) return {};
    return fmt::format("from {}, {}", was.comp_name(was.parent(i)), with_line(was, i));
  }
  for (const Heir& h : lineage.heirs(first))
    if (h.to == i && h.from != i)
      return fmt::format("from {}, {}", was.comp_name(was.parent(h.from)), with_line(was, h.from));
  return {};
}

}  // namespace

bool computation_story(Recording& r, const std::string& wanted, ComputationStory* out) {
  const Lineage& lineage = r.lineage();
  const std::string name = wanted.starts_with('%') ? wanted.substr(1) : wanted;
  StrId id = lineage.universe()->find_str(name);
  Found found;
  if (!id.valid() || !find_computation(lineage, id, &found)) return false;
  const std::vector<const StageRow*> rows = rows_of_stages(r, lineage);
  auto label = [&](size_t k) { return rows[k] ? stage_label(*rows[k]) : fmt::format("stage {}", k); };
  out->name = name, out->stage = label(found.last), out->made_by = found.first > 0 ? label(found.first) : "";
  const std::unique_ptr<Module> m = lineage.module(found.last);
  const std::unique_ptr<Module> was = found.first > 0 ? lineage.module(found.first - 1) : nullptr;
  PrintOptions brief;
  brief.metadata = brief.backend_config = false;
  const std::vector<std::vector<InstId>> callers = m->callers();  // outlives the loop over a part of it
  for (InstId i : callers[found.id.value]) {
    out->callers.push_back(fmt::format("{} in {}", print_instruction(*m, i, brief), m->comp_name(m->parent(i))));
    for (std::string& line : lines_with(r, "thunk", std::string(m->inst_name(i))))
      out->thunks.push_back(std::move(line));
  }
  for (InstId i : m->live_order(found.id)) {
    if (says_little(m->op(i))) continue;
    ComputationStory::Held held;
    held.text = print_instruction(*m, i, brief);
    if (was) held.origin = origin_text(lineage, *was, found.first, found.id, i);
    if (held.origin.empty() && source_line(*m, i).known()) held.origin = source_line(*m, i).text();
    out->holds.push_back(std::move(held));
  }
  for (std::string& line : lines_with(r, "thunk", name)) out->thunks.push_back(std::move(line));
  return true;
}

}  // namespace hlo
