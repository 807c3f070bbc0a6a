// Modules, their stages, and what differs between two of these.
#include <algorithm>

#include "ir/print/print.h"
#include "parser/parser.h"
#include "viewer/engine/session.h"
#include "viewer/layout/folding.h"

namespace hlo {

Json module_info(PageSession& session, uint32_t number) {
  PageModule& m = session.module_unread(number);
  const Recording& r = m.recording;
  Json problems = Json::array();
  for (const std::vector<std::string>* list : {&std::as_const(m.lost), &r.problems})
    for (const std::string& why : *list) problems.push_back(why);
  for (const std::string& file : r.missing) problems.push_back("missing: " + file);
  // Of a recording that nobody has looked at only the names are known.
  size_t states = 0, first = 0, last = 0;
  if (m.kind == PageModule::Kind::kRewrites) {
    states = m.rewrites + 1;
    first = last = session.state({m.origin->module, m.origin->state})->m.instruction_count();
  } else if (m.read) {
    const Lineage& lineage = session.lineage(m);
    states = lineage.size();
    first = lineage.stage(0).instruction_count(), last = lineage.stage(states - 1).instruction_count();
  }
  return {{"module", number},
          {"name", r.module_name},
          {"number", r.module_number},
          {"function", m.function},
          {"source", m.kind == PageModule::Kind::kRecording ? Json(r.source) : Json("bench")},
          {"states", states},
          {"instructions", last},
          {"instructions_first", first},
          {"problems", std::move(problems)},
          {"pipeline", r.pipeline},
          {"origin", m.origin ? json_of(*m.origin) : Json()}};
}

Json row_json(const StageRow& row, size_t number) {
  return {{"row", number},
          {"kind", row.kind_name()},
          {"pipeline", row.pipeline},
          {"pass", row.pass},
          {"name", row.name()},
          {"number", row.number < 0 ? Json() : Json(row.number)},
          {"state", row.stage < 0 ? Json() : Json(row.stage)},
          {"changed", row.changed},
          {"implemented", row.implemented},
          {"disabled", row.disabled},
          {"microseconds", row.microseconds < 0 ? Json() : Json(row.microseconds)},
          {"before", row.before},
          {"after", row.after},
          {"added", row.added},
          {"removed", row.removed},
          {"modified", row.modified},
          {"rewrites", row.rewrites}};
}

// By id where both are of one lineage, or the second was made of the first; else by structure.
ModuleDiff states_diff(PageSession& session, StateRef a, StateRef b) {
  std::shared_ptr<OpenState> first = session.state(a), second = session.state(b);
  PageModule& m = session.module(b.module);
  if (a.module == b.module && m.kind != PageModule::Kind::kRewrites) {
    std::vector<Heir> heirs = session.lineage(m).heirs_between(std::min(a.state, b.state), std::max(a.state, b.state));
    if (a.state > b.state) {
      for (Heir& h : heirs) std::swap(h.from, h.to);
      std::sort(heirs.begin(), heirs.end(),
                [](const Heir& x, const Heir& y) { return x.from != y.from ? x.from < y.from : x.to < y.to; });
    }
    return diff_modules(first->m, second->m, heirs);
  }
  if (a.module != b.module && m.origin == a && m.kind == PageModule::Kind::kBench)
    return diff_modules(first->m, second->m, session.lineage(m).heirs_between(0, b.state));
  if (m.kind == PageModule::Kind::kRewrites && (a == m.origin || (a.module == b.module && a.state == 0)))
    return diff_modules(first->m, second->m, second->heirs);
  if (m.kind == PageModule::Kind::kRewrites && a.module == b.module)
    return diff_modules(first->m, second->m, std::span<const Heir>());
  if (&first->m.u() == &second->m.u()) return diff_modules(first->m, second->m);
  ParseOptions parse;
  parse.file = "the second state";
  auto same_universe = parse_module(lossless_text(second->m), first->m.universe(), parse);
  return diff_modules(first->m, *same_universe);
}

namespace {

Json all_modules(PageSession& session) {
  Json list = Json::array();
  for (uint32_t k = 0; k < session.size(); ++k) list.push_back(module_info(session, k));
  return {{"modules", std::move(list)}};
}

Json q_open(PageSession& session, const Question& q) {
  q.only({});
  session.open_files();
  return all_modules(session);
}

Json q_modules(PageSession& session, const Question& q) {
  q.only({});
  return all_modules(session);
}

Json q_rows(PageSession& session, const Question& q) {
  q.only({"module"});
  PageModule& m = session.module(static_cast<uint32_t>(q.number("module", 0, INT32_MAX)));
  Json rows = Json::array();
  for (size_t k = 0; k < m.recording.rows.size(); ++k) rows.push_back(row_json(m.recording.rows[k], k));
  return {{"rows", std::move(rows)}};
}

const char* change_word(ModuleDiff::Line::Kind kind) {
  switch (kind) {
    case ModuleDiff::Line::kOnlyFirst:
      return "removed";
    case ModuleDiff::Line::kOnlySecond:
      return "added";
    case ModuleDiff::Line::kMoved:
      return "moved";
    case ModuleDiff::Line::kModule:
      return "module";
    case ModuleDiff::Line::kChanged:
      break;
  }
  return "changed";
}

// Rules of the passes between two states that name either side of a difference.
class RulesBetween {
 public:
  RulesBetween(PageSession& session, StateRef a, StateRef b) {
    if (a.module != b.module) return;
    const int low = static_cast<int>(std::min(a.state, b.state)), high = static_cast<int>(std::max(a.state, b.state));
    for (const StageRow& row : session.module(a.module).recording.rows) {
      if (row.stage <= low || row.stage > high) continue;
      for (const Note& n : row.notes)
        for (InstId i : n.insts)
          if (i.valid() && n.rewrite > 0) add(i, n.rule);
    }
  }
  Json of(InstId one, InstId other) const {
    Json out = Json::array();
    for (InstId i : {one, other})
      if (auto found = rules_.find(i); i.valid() && found != rules_.end())
        for (const std::string& rule : found->second)
          if (std::find(out.begin(), out.end(), rule) == out.end()) out.push_back(rule);
    return out;
  }

 private:
  void add(InstId i, const std::string& rule) {
    std::vector<std::string>& list = rules_[i];
    if (std::find(list.begin(), list.end(), rule) == list.end()) list.push_back(rule);
  }
  std::unordered_map<InstId, std::vector<std::string>> rules_;
};

Json q_diff(PageSession& session, const Question& q) {
  q.only({"a", "b"});
  const StateRef a = q.state("a"), b = q.state("b");
  ModuleDiff d = states_diff(session, a, b);
  std::shared_ptr<OpenState> first = session.state(a), second = session.state(b);
  RulesBetween rules(session, a, b);
  Json changes = Json::array();
  for (const ModuleDiff::Line& line : d.lines) {
    const bool only_second = line.kind == ModuleDiff::Line::kOnlySecond,
               module = line.kind == ModuleDiff::Line::kModule;
    InstId before = module || line.name.empty() || only_second ? InstId() : first->named(line.name);
    std::string_view after_name = line.other.empty() ? std::string_view(line.name) : std::string_view(line.other);
    InstId after = module || line.kind == ModuleDiff::Line::kOnlyFirst ? InstId() : second->named(after_name);
    changes.push_back(
        {{"kind", change_word(line.kind)},
         {"id", json_of(after)},
         {"other", json_of(before)},
         {"name",
          only_second || !line.name.empty() ? std::string(line.name.empty() ? after_name : line.name) : std::string()},
         {"place", line.place},
         {"what", line.what},
         {"before", line.first},
         {"after", line.second},
         {"count", line.count},
         {"rules", rules.of(before, after)}});
  }
  std::string note;
  if (d.same && !d.same_text) note = "the same module; names, order or metadata differ";
  if (!d.names_agree) note = "names were of no use: the modules number their instructions differently";
  return {{"same", d.same}, {"changes", std::move(changes)}, {"note", note}};
}

// From one stage to the next, or back: what lives there of it; false in `known` where nobody says.
std::vector<InstId> step_to(const Lineage& lineage, size_t from, size_t to, const std::vector<InstId>& ids,
                            bool* known) {
  std::vector<InstId> out;
  auto heirs = lineage.heirs(std::max(from, to));
  for (InstId i : ids) {
    if (lineage.stage(to).alive(i)) {
      out.push_back(i);
      continue;
    }
    const size_t before = out.size();
    for (const Heir& h : heirs)
      if (from < to ? h.from == i : h.to == i) out.push_back(from < to ? h.to : h.from);
    if (out.size() == before && from < to && !lineage.decided(to, i)) *known = false;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Json q_follow(PageSession& session, const Question& q) {
  q.only({"at", "id", "to"});
  const StateRef at = q.state("at");
  session.check_state(at);
  const StateRef to{at.module, static_cast<uint32_t>(q.number("to", 0, INT32_MAX))};
  session.check_state(to);
  const int64_t id = q.number("id", 0, UINT32_MAX - 1);
  PageModule& m = session.module(at.module);
  std::vector<InstId> ids;
  bool known = true;
  if (m.kind == PageModule::Kind::kRewrites) {
    InstId i = session.instruction(*session.state(at), id);
    std::shared_ptr<OpenState> there = session.state(to);
    if (there->m.alive(i)) ids.push_back(i);
    for (const Heir& h : there->heirs)
      if (ids.empty() && h.from == i && there->m.alive(h.to)) ids.push_back(h.to);
  } else {
    const Lineage& lineage = session.lineage(m);
    InstId i(static_cast<uint32_t>(id));
    if (!lineage.stage(at.state).alive(i))
      fail(FailureKind::kUsage, "no instruction {} lives in state {} of module {}", id, at.state, at.module);
    ids.push_back(i);
    for (size_t k = at.state; k != to.state && !ids.empty();) {
      const size_t next = k < to.state ? k + 1 : k - 1;
      ids = step_to(lineage, k, next, ids, &known);
      k = next;
    }
  }
  Json list = Json::array();
  for (InstId i : ids) list.push_back(i.value);
  return {{"ids", ids.empty() && !known ? Json() : std::move(list)}};
}

Json q_locate(PageSession& session, const Question& q) {
  q.only({"at", "id"});
  std::shared_ptr<OpenState> s = session.state(q.state("at"));
  InstId i = session.instruction(*s, q.number("id", 0, UINT32_MAX - 1));
  return {{"keys", s->folding().keys_to(i)}};
}

}  // namespace

std::vector<NamedMethod> stage_methods() {
  return {{"open", q_open}, {"modules", q_modules}, {"rows", q_rows},
          {"diff", q_diff}, {"follow", q_follow},   {"locate", q_locate}};
}

}  // namespace hlo
