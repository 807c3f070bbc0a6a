#include "replay/report/explain/explain.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "ir/print/print.h"
#include "ir/query/find_instruction.h"
#include "ir/query/source_lines.h"
#include "replay/os/confined_path.h"
#include "replay/record/match/match.h"
#include "replay/report/explain/explain_text.h"
#include "replay/report/explain/why_made.h"

namespace hlo {
namespace {

constexpr size_t kMostBranches = 32;  // copies of one instruction that are followed

std::string shown(const Module& m, InstId i) {
  PrintOptions print;
  print.metadata = false;
  return print_instruction(m, i, print);
}

std::string source_of(const Module& m, InstId i) {
  const Metadata& d = m.u()[m[i].meta];
  auto text = [&](uint32_t s) { return s == StrId::kNone ? std::string_view() : m.u().text(StrId(s)); };
  std::string s = source_line(m, i).text();
  if (!text(d.op_name).empty()) s += fmt::format("{}{}", s.empty() ? "" : ", ", text(d.op_name));
  return s;
}

// The history of one instruction through a lineage, by ids and heirs alone.
class Tracer {
 public:
  Tracer(const Recording& r, const Lineage& lineage, StageSource source)
      : lineage_(lineage), rows_(rows_of_stages(r, lineage)), source_(std::move(source)) {}

  void run(size_t k, InstId i) {
    asked_ = k;
    size_t born = birth(k, i);
    backward(born, i);
    std::vector<InstId> tracked{i};
    for (size_t next = born + 1; next < lineage_.size() && !tracked.empty(); ++next) tracked = forward(next, tracked);
    alive_ = std::move(tracked);
  }

  std::vector<HistoryEvent> events;
  std::string source;
  std::vector<SourceLine> stack;
  const std::vector<InstId>& alive() const { return alive_; }  // at the end, of it or of its heirs

  // The fusion whose body an instruction stands in; invalid outside of fusions.
  InstId fusion_of(size_t k, InstId i) {
    Stage& s = stage(k);
    if (!s.callers_known) s.callers = s.module->callers(), s.callers_known = true;
    for (InstId caller : s.callers[s.module->parent(i).value])
      if (s.module->op(caller) == Opcode::Fusion) return caller;
    return {};
  }
  const Module& module(size_t k) { return *stage(k).module; }

 private:
  struct Stage {
    std::shared_ptr<const Module> module;
    std::vector<std::vector<InstId>> callers;
    bool callers_known = false;
  };

  Stage& stage(size_t k) {
    constexpr size_t kKept = 4;
    auto found = stages_.find(k);
    if (found != stages_.end()) return found->second;
    if (stages_.size() >= kKept)
      stages_.erase(stages_.begin()->first + 2 > k ? std::prev(stages_.end()) : stages_.begin());
    Stage& s = stages_[k];
    if (source_) {
      s.module = source_(k);
    } else {
      s.module = lineage_.module(k);
      s.module->ensure_users();
    }
    return s;
  }

  size_t birth(size_t k, InstId i) const {
    while (k > 0 && lineage_.stage(k - 1).alive(i)) --k;
    return k;
  }

  HistoryEvent event(size_t k) const {
    HistoryEvent e;
    e.state = k;
    if (const StageRow* row = rows_[k]) e.stage = stage_label(*row), e.file = row->file;
    return e;
  }

  void add_rules(HistoryEvent& e, size_t k, InstId one, InstId other) const {
    const StageRow* row = rows_[k];
    if (!row) return;
    for (const Note& n : row->notes) {
      bool names_it =
          std::any_of(n.insts.begin(), n.insts.end(), [&](InstId i) { return i.valid() && (i == one || i == other); });
      if (names_it && std::find(e.rules.begin(), e.rules.end(), n.rule) == e.rules.end()) e.rules.push_back(n.rule);
    }
  }

  // What it was before has a history of its own, which is told first.
  void backward(size_t born, InstId i) {
    std::vector<InstId> from;
    if (born > 0) from = ancestors(born, i);
    if (!from.empty()) {
      size_t earlier = birth(born - 1, from[0]);
      backward(earlier, from[0]);
      for (size_t k = earlier + 1; k < born; ++k) stays(k, from[0]);
    }
    const Module& m = module(born);
    HistoryEvent e = event(born);
    e.after = shown(m, i), e.name = m.inst_name(i);
    std::string own = source_of(m, i);
    // Out of a call it says where it was called from, too.
    if (own.ends_with("/" + source) || source.empty()) source = own, stack = kernel_source_stack(m, i);
    if (from.empty()) {
      e.what = born == 0 ? "is there from the start" : "appears";
      add_rules(e, born, i, i);
    } else {
      const Module& was = module(born - 1);
      e.before = shown(was, from[0]);
      std::string names;
      for (size_t k = 0; k < from.size() && k < 6; ++k) names += (k ? ", " : "") + std::string(was.inst_name(from[k]));
      if (from.size() > 6) names += fmt::format(" and {} more", from.size() - 6);
      e.what = fmt::format("{} {}", was.op(from[0]) == module(born).op(i) ? "was" : "made from", names);
      add_rules(e, born, from[0], i);
    }
    events.push_back(std::move(e));
  }

  // Nearest first: what it is a copy of, what it stands in the place of, what it was made of.
  // A fusion that nothing is said of goes on with what its root was; what hands its results on by elements, with what
  // these stand for.
  std::vector<InstId> ancestors(size_t k, InstId i) {
    std::vector<InstId> own = direct_ancestors(k, i);
    by_the_data(k, i, &own);
    if (!own.empty()) return own;
    const Module& now = module(k);
    std::vector<InstId> parts;
    if (now.op(i) == Opcode::Fusion) {
      InstId root = now.comp(now.called(i)[0]).root;
      if (now.op(root) == Opcode::Tuple) {
        auto operands = now.operands(root);
        parts.assign(operands.begin(), operands.end());
      } else {
        parts.push_back(root);
      }
    }
    for (InstId user : now.users(i))
      if (now.op(user) == Opcode::GetTupleElement) parts.push_back(user);
    const Snapshot& before = lineage_.stage(k - 1);
    for (InstId part : parts) {
      if (before.alive(part) && now.op(i) == Opcode::Fusion && now.parent(part) != now.parent(i)) return {part};
      if (before.alive(part)) continue;
      if (std::vector<InstId> theirs = direct_ancestors(k, part); !theirs.empty()) return theirs;
    }
    return {};
  }

  // What only moves a value comes from that value first; what was rewritten around it is told beside. One of its kind
  // that moved the same value is nearer still.
  void by_the_data(size_t k, InstId i, std::vector<InstId>* own) {
    const Module& now = module(k);
    if (!only_moves(now.op(i))) return;
    for (const Heir& h : lineage_.heirs(k))
      if (h.to == i && h.from != i && h.kind != HeirKind::kDerived) return;
    const Snapshot& before = lineage_.stage(k - 1);
    InstId data = now.operand(i, 0);
    while (!before.alive(data) && only_moves(now.op(data))) data = now.operand(data, 0);
    std::vector<InstId> of{data};
    if (!before.alive(data)) {
      of.clear();
      for (const Heir& h : lineage_.heirs(k))
        if (h.to == data && h.kind != HeirKind::kDerived) of.push_back(h.from);
    }
    if (of.empty()) return;
    if (!own->empty() && before[own->front()].op == now.op(i)) {
      auto moved = before.operands(own->front());
      if (moved.empty() || std::find(of.begin(), of.end(), moved[0]) != of.end()) return;
    }
    std::erase(*own, of[0]);
    own->insert(own->begin(), of[0]);
  }

  std::vector<InstId> direct_ancestors(size_t k, InstId i) const {
    std::vector<Heir> found;
    for (const Heir& h : lineage_.heirs(k))
      if (h.to == i && h.from != i) found.push_back(h);
    const Snapshot &before = lineage_.stage(k - 1), &now = lineage_.stage(k);
    auto distance = [&](const Heir& h) {
      int kind = h.kind == HeirKind::kCloned ? 0 : h.kind == HeirKind::kReplaced ? 1 : 2;
      bool other_op = before[h.from].op != now[i].op;
      // What is still there was not taken over.
      return kind * 4 + other_op * 2 + now.alive(h.from);
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const Heir& x, const Heir& y) { return distance(x) < distance(y); });
    std::vector<InstId> out;
    for (const Heir& h : found)
      if (out.empty() || h.kind == found[0].kind) out.push_back(h.from);
    return out;
  }

  // One that lives on both sides: an event where it looks different.
  void stays(size_t k, InstId i) {
    if (lineage_.stage(k - 1).record(i) == lineage_.stage(k).record(i)) {
      // Operands may have got other names.
      if (!renamed_operand(k, i)) return;
    }
    HistoryEvent e = event(k);
    const Module &was = module(k - 1), &now = module(k);
    e.before = shown(was, i), e.after = shown(now, i);
    bool moved = was.parent(i) != now.parent(i);
    if (e.before == e.after && !moved) return;
    InstId fusion = moved ? fusion_of(k, i) : InstId(), fused = moved ? fusion_of(k - 1, i) : InstId();
    if (e.before == e.after && fusion.valid() == fused.valid()) return;
    // Seen from the name that was asked for.
    if (was[i].name != now[i].name)
      e.what = k <= asked_ ? fmt::format("was {}", was.inst_name(i))
                           : fmt::format("called {} from here on", now.inst_name(i));
    else
      e.what = now.op(i) != was.op(i) ? fmt::format("is a {} now", op_text(now.op(i))) : "changed";
    if (fusion.valid() && !fused.valid()) e.what = fmt::format("fused into {}", now.inst_name(fusion));
    if (source.empty()) source = source_of(now, i);
    e.name = now.inst_name(i);
    add_rules(e, k, i, i);
    events.push_back(std::move(e));
  }

  bool renamed_operand(size_t k, InstId i) const {
    const Snapshot &before = lineage_.stage(k - 1), &now = lineage_.stage(k);
    for (InstId o : now.operands(i))
      if (before.alive(o) && now.alive(o) && before[o].name != now[o].name) return true;
    return false;
  }

  // What was followed up to k-1, at k.
  std::vector<InstId> forward(size_t k, const std::vector<InstId>& tracked) {
    std::vector<InstId> next;
    auto follow = [&](InstId i) {
      if (std::find(next.begin(), next.end(), i) == next.end() && next.size() < kMostBranches) next.push_back(i);
    };
    auto heirs = lineage_.heirs(k);
    for (InstId i : tracked) {
      auto first =
          std::lower_bound(heirs.begin(), heirs.end(), i, [](const Heir& h, InstId id) { return h.from < id; });
      std::vector<Heir> mine;
      for (; first != heirs.end() && first->from == i; ++first) mine.push_back(*first);
      bool lives = lineage_.stage(k).alive(i);
      if (lives && !superseded(k, i, mine)) {
        stays(k, i);
        follow(i);
        std::erase_if(mine, [&](const Heir& h) { return h.kind != HeirKind::kCloned || !fusion_of(k, h.to).valid(); });
        for (const Heir& h : mine) heir(k, h, true), follow(h.to);
        continue;
      }
      mine = nearest(k, mine);
      for (const Heir& h : mine) heir(k, h, false), follow(h.to);
      if (mine.empty())
        for (InstId heir : ended(k, i)) follow(heir);
    }
    return next;
  }

  // It is still there, but its users read another one, and nobody reads it.
  bool superseded(size_t k, InstId i, const std::vector<Heir>& mine) {
    bool replaced = std::any_of(mine.begin(), mine.end(), [](const Heir& h) { return h.kind == HeirKind::kReplaced; });
    return replaced && module(k).dead(i);
  }

  // Of what an instruction ended as: copies and what stands in its place; what was made of it only where there is
  // nothing else. A fusion whose body holds the copy, and what is read of such a fusion, is told with the copy.
  std::vector<Heir> nearest(size_t k, const std::vector<Heir>& all) {
    std::vector<Heir> out;
    std::unordered_set<InstId> holders;
    for (const Heir& h : all)
      if (h.kind == HeirKind::kCloned)
        if (InstId fusion = fusion_of(k, h.to); fusion.valid()) holders.insert(fusion);
    const Module& now = module(k);
    for (const Heir& h : all) {
      if (h.kind == HeirKind::kDerived) continue;
      if (h.kind == HeirKind::kReplaced && !holders.empty()) {
        bool element = now.op(h.to) == Opcode::GetTupleElement && holders.contains(now.operand(h.to, 0));
        if (holders.contains(h.to) || element) continue;
      }
      out.push_back(h);
    }
    return out.empty() ? all : out;
  }

  void heir(size_t k, const Heir& h, bool besides) {
    const Module &was = module(k - 1), &now = module(k);
    HistoryEvent e = event(k);
    e.before = shown(was, h.from), e.after = shown(now, h.to), e.name = now.inst_name(h.to);
    InstId fusion = fusion_of(k, h.to), fused = fusion_of(k - 1, h.from);
    const std::string as = e.name == was.inst_name(h.from) ? "" : fmt::format(", as {}", e.name);
    if (fusion.valid() && (besides || !fused.valid() || fused != fusion))
      e.what = fmt::format("{}fused into {}{}", besides ? "also " : "", now.inst_name(fusion), as);
    else if (h.kind == HeirKind::kCloned)
      e.what = as.empty() ? fmt::format("copied into {}", now.comp_name(now.parent(h.to)))
                          : fmt::format("called {} from here on", e.name);
    else
      e.what = fmt::format("{} {}", h.kind == HeirKind::kReplaced ? "replaced by" : "made into", e.name);
    if (source.empty()) source = source_of(now, h.to);
    add_rules(e, k, h.from, h.to);
    events.push_back(std::move(e));
  }

  // Nothing is known to stand in its own place. Returns where it is to be followed.
  std::vector<InstId> ended(size_t k, InstId i) {
    const Module& was = module(k - 1);
    HistoryEvent e = event(k);
    e.before = shown(was, i);
    std::vector<InstId> next;
    add_rules(e, k, i, i);
    if (!lineage_.decided(k, i)) {
      e.what = "unknown: nothing says what became of it";
    } else if (was.users(i).empty()) {
      e.what = "gone: it had no users";
    } else {
      InstId user, place;
      std::tie(user, place) = replaced_user(k, i);
      e.what = "gone, with what used it";
      if (place.valid()) {
        const Module& now = module(k);
        e.what = fmt::format("gone with {}, replaced by {}", was.inst_name(user), now.inst_name(place));
        e.after = shown(now, place), e.name = now.inst_name(place);
        add_rules(e, k, user, place);
        next.push_back(place);
      }
    }
    events.push_back(std::move(e));
    return next;
  }

  // Of those that read it and ended with it the nearest one that another stands for, and that one; invalid where
  // several do.
  std::pair<InstId, InstId> replaced_user(size_t k, InstId i) {
    constexpr size_t kMostUsers = 64;
    const Snapshot& now = lineage_.stage(k);
    const Module& was = module(k - 1);
    auto heirs = lineage_.heirs(k);
    std::vector<InstId> agenda{i};
    std::unordered_set<InstId> seen{i};
    std::pair<InstId, InstId> found;
    for (size_t at = 0; at < agenda.size() && at < kMostUsers; ++at)
      for (InstId user : was.users(agenda[at])) {
        if (now.alive(user) || !seen.insert(user).second) continue;
        bool stands = false;
        auto h =
            std::lower_bound(heirs.begin(), heirs.end(), user, [](const Heir& x, InstId id) { return x.from < id; });
        for (; h != heirs.end() && h->from == user; ++h) {
          if (h->kind != HeirKind::kReplaced) continue;
          stands = true;
          if (found.second.valid() && found.second != h->to) return {};
          if (!found.second.valid()) found = {user, h->to};
        }
        if (!stands) agenda.push_back(user);
      }
    return found;
  }

  const Lineage& lineage_;
  std::vector<const StageRow*> rows_;
  StageSource source_;
  std::map<size_t, Stage> stages_;
  size_t asked_ = 0;  // the stage in which the name that was asked for comes up
  std::vector<InstId> alive_;
};

}  // namespace

std::string stage_label(const StageRow& row) {
  return row.number > 0 ? fmt::format("{:04} {}", row.number, row.name()) : row.name();
}

std::vector<const StageRow*> rows_of_stages(const Recording& r, const Lineage& lineage) {
  std::vector<const StageRow*> out(lineage.size(), nullptr);
  for (const StageRow& row : r.rows)
    if (row.stage >= 0 && static_cast<size_t>(row.stage) < out.size() && !out[static_cast<size_t>(row.stage)])
      out[static_cast<size_t>(row.stage)] = &row;
  return out;
}

std::vector<Sighting> sightings(const Lineage& lineage, const std::string& name) {
  std::vector<Sighting> out;
  StrId wanted = lineage.universe()->find_str(name);
  if (!wanted.valid()) return out;
  for (size_t k = 0; k < lineage.size(); ++k) {
    const Snapshot& now = lineage.stage(k);
    auto look = [&](InstId i) {
      if (now[i].name == wanted) out.push_back({k, i});
    };
    if (k == 0) {
      for (uint32_t i = 0; i < now.slots(); ++i)
        if (now.alive(InstId(i))) look(InstId(i));
      continue;
    }
    StageDiff d = diff_stages(lineage.stage(k - 1), now);
    size_t before = out.size();
    for (InstId i : d.added) look(i);
    for (InstId i : d.modified)
      if (lineage.stage(k - 1)[i].name != wanted) look(i);
    std::sort(out.begin() + static_cast<ptrdiff_t>(before), out.end(),
              [](const Sighting& x, const Sighting& y) { return x.id < y.id; });
  }
  return out;
}

std::string nearest_name(const Lineage& lineage, const std::string& name) {
  NearestName near(name);
  std::unordered_set<StrId> seen;
  for (size_t k = 0; k < lineage.size(); ++k) {
    const Snapshot& now = lineage.stage(k);
    auto look = [&](InstId i) {
      if (!seen.insert(now[i].name).second) return;
      near.see(lineage.universe()->text(now[i].name));
    };
    if (k == 0) {
      for (uint32_t i = 0; i < now.slots(); ++i)
        if (now.alive(InstId(i))) look(InstId(i));
    } else {
      for (InstId i : diff_stages(lineage.stage(k - 1), now).added) look(i);
    }
  }
  return near.name();
}

History history(Recording& r, const std::string& wanted) {
  std::string name = wanted;
  if (name.starts_with('%')) name.erase(0, 1);
  const Lineage& lineage = r.lineage();
  History out;
  for (const StageRow& row : r.rows)
    if (row.stage < 0 && (row.file.ends_with(".txt") || row.file.ends_with(".hlo"))) out.unread.push_back(row.file);
  std::vector<Sighting> seen = sightings(lineage, name);
  if (seen.empty()) {
    fail(FailureKind::kUsage, "no stage of {} has an instruction '{}'{}", r.folder, name,
         did_you_mean(nearest_name(lineage, name)));
  }
  // Of several in the first stage that has one, that of the entry.
  Sighting chosen = seen[0];
  for (const Sighting& s : seen)
    if (s.stage == chosen.stage && lineage.stage(s.stage)[s.id].parent == lineage.stage(s.stage).entry()) {
      chosen = s;
      break;
    }
  History found = history(r, chosen.stage, chosen.id);
  found.unread = std::move(out.unread);
  return found;
}

History history(Recording& r, size_t stage, InstId id, const StageSource& source) {
  const Lineage& lineage = r.lineage();
  History out;
  Tracer tracer(r, lineage, source);
  tracer.run(stage, id);
  out.events = std::move(tracer.events), out.source = std::move(tracer.source);
  out.stack = std::move(tracer.stack);
  size_t end = lineage.size() - 1;
  auto add = [](std::vector<std::string>& list, std::vector<std::string> lines) {
    for (std::string& line : lines)
      if (std::find(list.begin(), list.end(), line) == list.end()) list.push_back(std::move(line));
  };
  // A copy as it stands at the end; one that is gone by then as it was when it was asked for.
  const bool lives = lineage.stage(end).alive(id);
  const Module& seen_in = tracer.module(lives ? end : stage);
  if (seen_in.op(id) == Opcode::Copy || seen_in.op(id) == Opcode::CopyStart) add(out.reasons, why_copied(seen_in, id));
  if (is_collective(seen_in.op(id))) add(out.reasons, why_collective(r, stage, id));
  for (InstId i : tracer.alive()) {
    std::string last(tracer.module(end).inst_name(i));
    std::vector<std::string> buffers = lines_with(r, "buffer-assignment", last, "value:");
    if (buffers.empty()) buffers = lines_with(r, "buffer-assignment", last);  // an alias of another's
    add(out.buffers, std::move(buffers));
    add(out.thunks, lines_with(r, "thunk", last));
    // A fused instruction has its fusion's buffer and thunk.
    if (InstId f = tracer.fusion_of(end, i); f.valid()) {
      std::string fusion(tracer.module(end).inst_name(f));
      if (out.fusion.empty()) out.fusion = fusion;
      add(out.buffers, lines_with(r, "buffer-assignment", fusion, "value:"));
      add(out.thunks, lines_with(r, "thunk", fusion));
    }
  }
  return out;
}

}  // namespace hlo
