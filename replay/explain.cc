#include "replay/explain.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "ir/print.h"
#include "ir/source_lines.h"
#include "parser/parser.h"
#include "replay/confined_path.h"
#include "replay/files.h"
#include "replay/match.h"

namespace hlo {
namespace {

std::unordered_map<std::string_view, InstId> by_name(const Module& m) {
  std::unordered_map<std::string_view, InstId> out;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i)) out.emplace(m.inst_name(i), i);
  return out;
}

std::string shown(const Module& m, InstId i) {
  PrintOptions print;
  print.metadata = false;
  return print_instruction(m, i, print);
}

// The fusion whose body an instruction stands in; invalid outside of fusions.
InstId fusion_of(const Module& m, const std::vector<std::vector<InstId>>& callers, InstId i) {
  for (InstId caller : callers[m.parent(i).value])
    if (m.op(caller) == Opcode::Fusion) return caller;
  return {};
}

// What stands in its place: what its users, known by name, read now where they read it.
std::vector<InstId> successors(const Module& before, InstId gone, const Module& after,
                               const std::unordered_map<std::string_view, InstId>& names) {
  std::vector<InstId> out;
  auto add = [&](InstId i) {
    if (std::find(out.begin(), out.end(), i) == out.end()) out.push_back(i);
  };
  for (InstId user : before.users(gone)) {
    auto twin = names.find(before.inst_name(user));
    if (twin == names.end() || after.operand_count(twin->second) != before.operand_count(user)) continue;
    for (size_t k = 0; k < before.operand_count(user); ++k)
      if (before.operand(user, k) == gone) add(after.operand(twin->second, k));
  }
  if (before.is_root(gone) && before.parent(gone) == before.entry()) add(after.comp(after.entry()).root);
  return out;
}

// Inside a fusion the copy keeps where it came from: the same operation of the same source.
InstId inside(const Module& m, InstId fusion, const Module& before, InstId gone) {
  if (m.op(fusion) != Opcode::Fusion) return {};
  const Metadata& was = before.u()[before[gone].meta];
  for (InstId i : m.live_order(m.called(fusion)[0])) {
    const Metadata& now = m.u()[m[i].meta];
    if (m.op(i) == before.op(gone) && m.shape(i).dims == before.shape(gone).dims && now.op_name == was.op_name &&
        was.op_name != StrId::kNone)
      return i;
  }
  return {};
}

bool names_it(std::string_view line, std::string_view name) {
  auto part = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-'; };
  for (size_t at = 0; (at = line.find(name, at)) != std::string_view::npos; ++at) {
    size_t end = at + name.size();
    if ((at == 0 || !part(line[at - 1])) && (end >= line.size() || !part(line[end]))) return true;
  }
  return false;
}

// Of a buffer assignment those that tell place and size are enough.
std::vector<std::string> lines_with(const Recording& r, std::string_view part_of_name, const std::string& name,
                                    std::string_view start = {}) {
  std::vector<std::string> out;
  for (const std::string& f : r.other_files) {
    if (f.find(part_of_name) == std::string::npos || f.ends_with(".json") || f.ends_with(".pb")) continue;
    std::string text = read_confined(r.folder, f);
    for (size_t at = 0; at < text.size() && out.size() < 20;) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = std::string_view(text).substr(at, end - at);
      if (names_it(line, name)) {
        size_t first = line.find_first_not_of(" \t");
        std::string kept(line.substr(std::min(first, line.size())));
        if (kept.starts_with(start) && std::find(out.begin(), out.end(), kept) == out.end()) out.push_back(kept);
      }
      at = end + 1;
    }
  }
  return out;
}

// `add.3` of `add.3.0`: XLA numbers copies behind a name.
std::string_view without_number(std::string_view name) {
  size_t dot = name.rfind('.');
  bool digits = dot != std::string_view::npos && dot + 1 < name.size() &&
                name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
  return digits ? name.substr(0, dot) : name;
}

// The one instruction of `before` that is gone in `after`, does the same on the same shape and has that name but for
// the number of the copy; invalid where none or several do.
InstId namesake(const Module& before, const std::unordered_map<std::string_view, InstId>& after_names,
                const Module& after, InstId like) {
  std::string_view name = after.inst_name(like), root = without_number(name);
  InstId found;
  for (CompId c : before.computations())
    for (InstId i : before.live_order(c)) {
      std::string_view other = before.inst_name(i);
      if (before.op(i) != after.op(like) || before.shape_id(i) != after.shape_id(like) || after_names.contains(other) ||
          (without_number(other) != root && other != root && without_number(other) != name))
        continue;
      if (found.valid()) return {};
      found = i;
    }
  return found;
}

// What an instruction that is new in `after` was before: by structure, as what moved into its fusion, as what its users
// read in its place, or as the one of the same source that is gone. Invalid where nothing tells.
InstId origin_of(const Module& before, const Module& after, InstId fresh) {
  auto names = by_name(after);
  InstId named = fresh;
  // A fusion is named after its kind; its root was copied under its own name.
  if (after.op(fresh) == Opcode::Fusion) {
    named = after.comp(after.called(fresh)[0]).root;
    if (after.op(named) == Opcode::Tuple && after.operand_count(named)) named = after.operand(named, 0);
  }
  if (InstId same = namesake(before, names, after, named); same.valid()) return same;
  Matching match(before, after);
  if (InstId twin = match.first(fresh); twin.valid()) return twin;
  const Universe& u = after.u();
  auto source = [&](const Module& m, InstId i) { return u[m[i].meta].op_name; };
  if (after.op(fresh) == Opcode::Fusion) {
    CompId body = after.called(fresh)[0];
    InstId root = after.comp(body).root, last;
    for (auto [from, to] : match.moved()) {
      if (after.parent(to) != body) continue;
      if (to == root) return from;
      if (!last.valid() || source(after, to) == source(after, fresh)) last = from;
    }
    if (last.valid()) return last;
  }
  // Its users, behind an element of a tuple too, and what their partners read there.
  for (InstId user : after.users(fresh)) {
    InstId reads = fresh;
    std::vector<InstId> readers{user};
    if (after.op(user) == Opcode::GetTupleElement) reads = user, readers = after.users_copy(user);
    for (InstId reader : readers) {
      InstId twin = match.first(reader);
      if (!twin.valid() || before.operand_count(twin) != after.operand_count(reader)) continue;
      for (size_t k = 0; k < after.operand_count(reader); ++k)
        if (after.operand(reader, k) == reads)
          if (InstId was = before.operand(twin, k); !match.second(was).valid()) return was;
    }
  }
  uint32_t name = source(after, fresh);
  if (name == StrId::kNone) return {};
  InstId found;
  for (CompId c : before.computations())
    for (InstId i : before.live_order(c))
      if (source(before, i) == name && !match.second(i).valid() && before.op(i) != Opcode::Constant &&
          before.op(i) != Opcode::Broadcast)
        found = i;
  return found;
}

// The history from the stages in front of `end` on.
History trace(const Recording& r, const std::string& wanted, size_t end) {
  History out;
  auto universe = std::make_shared<Universe>();
  std::unique_ptr<Module> last;
  std::string name = wanted, near;
  if (name.starts_with('%')) name.erase(0, 1);
  const std::string asked = name;
  bool found = false;
  int distance = 4;
  auto source_of = [&](const Module& m, InstId i) {
    const Metadata& d = m.u()[m[i].meta];
    auto text = [&](uint32_t s) { return s == StrId::kNone ? std::string_view() : m.u().text(StrId(s)); };
    std::string s = source_line(m, i).text();
    if (!text(d.op_name).empty()) s += fmt::format("{}{}", s.empty() ? "" : ", ", text(d.op_name));
    return s;
  };
  for (const StageRow& row : r.rows) {
    if (static_cast<size_t>(&row - r.rows.data()) >= end) break;
    if (!row.file.ends_with(".txt") && !row.file.ends_with(".hlo")) continue;
    std::unique_ptr<Module> m;
    try {
      ParseOptions parse;
      parse.file = row.file;
      m = parse_module(read_confined(r.folder, row.file), universe, parse);
    } catch (const Failure&) {
      out.unread.push_back(row.file);
      continue;
    }
    m->ensure_users();
    auto names = by_name(*m);
    HistoryEvent e;
    e.stage = row.number > 0 ? fmt::format("{:04} {}", row.number, row.name()) : row.name();
    e.file = row.file;
    auto now = names.find(name);
    if (!found) {
      if (now == names.end()) {
        for (const auto& [n, i] : names)
          if (int d = edit_distance(n, name); d < distance) distance = d, near = n;
        last = std::move(m);
        continue;
      }
      found = true;
      e.what = out.events.empty() && !last ? "stands there from the start" : "appears";
      e.after = shown(*m, now->second), e.name = name;
      out.source = source_of(*m, now->second);
      // What it was before has a history of its own, which is told first.
      if (last)
        if (InstId was = origin_of(*last, *m, now->second); was.valid()) {
          e.before = shown(*last, was);
          bool renamed = last->op(was) == m->op(now->second);
          e.what = fmt::format("{} {}", renamed ? "was" : "made of", last->inst_name(was));
          History earlier = trace(r, std::string(last->inst_name(was)), static_cast<size_t>(&row - r.rows.data()));
          out.events = std::move(earlier.events);
          if (!earlier.source.empty()) out.source = earlier.source;
        }
      for (const Note& n : row.notes)
        if (std::find(n.names.begin(), n.names.end(), name) != n.names.end()) e.rules.push_back(n.rule);
      out.events.push_back(std::move(e));
      last = std::move(m);
      continue;
    }
    if (name.empty()) break;
    auto before_names = by_name(*last);
    InstId was = before_names.at(name);
    e.before = shown(*last, was);
    for (const Note& n : row.notes)
      if (std::find(n.names.begin(), n.names.end(), name) != n.names.end()) e.rules.push_back(n.rule);
    auto callers = m->callers();
    if (now != names.end()) {
      e.after = shown(*m, now->second);
      InstId fusion = fusion_of(*m, callers, now->second), fused = fusion_of(*last, last->callers(), was);
      if (e.before != e.after || fusion.valid() != fused.valid()) {
        e.what = fusion.valid() && !fused.valid()      ? fmt::format("fused into {}", m->inst_name(fusion))
                 : m->op(now->second) != last->op(was) ? fmt::format("is a {} now", op_text(m->op(now->second)))
                                                       : "changed";
        if (out.source.empty()) out.source = source_of(*m, now->second);
        e.name = name;
        out.events.push_back(std::move(e));
      }
    } else {
      std::vector<InstId> next = successors(*last, was, *m, names);
      InstId hidden;
      for (InstId s : next)
        if (!hidden.valid()) hidden = inside(*m, s, *last, was);
      InstId same = namesake(*m, before_names, *last, was);
      if (same.valid() && !hidden.valid()) {
        InstId fusion = fusion_of(*m, callers, same);
        e.what = fusion.valid() ? fmt::format("fused into {}, as {}", m->inst_name(fusion), m->inst_name(same))
                                : fmt::format("called {} from here on", m->inst_name(same));
        e.name = m->inst_name(same), e.after = shown(*m, same);
      } else if (hidden.valid()) {
        e.what =
            fmt::format("fused into {}, as {}", m->inst_name(fusion_of(*m, callers, hidden)), m->inst_name(hidden));
        e.name = m->inst_name(hidden), e.after = shown(*m, hidden);
      } else if (!next.empty()) {
        std::string list;
        for (InstId s : next) list += (list.empty() ? "" : ", ") + std::string(m->inst_name(s));
        e.what = "replaced by " + list;
        e.name = m->inst_name(next[0]), e.after = shown(*m, next[0]);
      } else {
        e.what = last->users(was).empty() ? "gone: nobody used it" : "gone, with what used it";
      }
      name = e.name;
      out.events.push_back(std::move(e));
    }
    last = std::move(m);
  }
  if (!found)
    fail(FailureKind::kUsage, "no stage of {} has an instruction '{}'{}", r.folder, asked,
         near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  if (!name.empty() && end >= r.rows.size()) {
    out.buffers = lines_with(r, "buffer-assignment", name, "value:");
    if (out.buffers.empty()) out.buffers = lines_with(r, "buffer-assignment", name);  // an alias of another's
    out.thunks = lines_with(r, "thunk", name);
    // A fused instruction has its fusion's buffer and thunk.
    if (last) {
      auto names = by_name(*last);
      if (auto at = names.find(name); at != names.end())
        if (InstId f = fusion_of(*last, last->callers(), at->second); f.valid()) {
          std::string fusion(last->inst_name(f));
          out.fusion = fusion;
          for (std::string& line : lines_with(r, "buffer-assignment", fusion, "value:"))
            out.buffers.push_back(std::move(line));
          for (std::string& line : lines_with(r, "thunk", fusion)) out.thunks.push_back(std::move(line));
        }
    }
  }
  return out;
}

}  // namespace

History history(const Recording& r, const std::string& wanted) { return trace(r, wanted, r.rows.size()); }

std::vector<std::string> why_not_fused(const Recording& r, const std::string& a, const std::string& b) {
  std::vector<std::string> out;
  auto add = [&](std::string line) {
    if (std::find(out.begin(), out.end(), line) == out.end()) out.push_back(std::move(line));
  };
  for (const StageRow& row : r.rows)
    for (const Note& n : row.notes) {
      auto has = [&](const std::string& name) {
        return std::find(n.names.begin(), n.names.end(), name) != n.names.end();
      };
      if (has(a) && has(b))
        add(fmt::format("{}: {} ({}){}", row.name(), n.rule, fmt::join(n.names, ", "),
                        n.text.empty() ? "" : ": " + n.text));
    }
  // XLA's: blocks of `key: value` lines, one a step.
  for (const std::string& f : r.other_files) {
    if (f.find("fusion_dump") == std::string::npos || !f.ends_with(".txt")) continue;
    std::string text = read_confined(r.folder, f);
    std::string block, kind;
    std::vector<std::string> values;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      at = end + 1;
      line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
      if (line.ends_with("{")) {
        kind = line.substr(0, line.find(' ')), values.clear();
      } else if (line == "}") {
        bool has_a = false, has_b = false;
        std::string joined;
        for (const std::string& v : values) {
          has_a |= names_it(v, a), has_b |= names_it(v, b);
          joined += (joined.empty() ? "" : ", ") + v;
        }
        // What cannot be fused with anything says so of the producer alone.
        bool alone = kind == "producer_ineligible" && (has_a || has_b);
        if ((has_a && has_b) || alone) add(fmt::format("{}: {}: {}", f, kind, joined));
        values.clear();
      } else if (!line.empty()) {
        values.push_back(line);
      }
    }
  }
  return out;
}

namespace {

// Does a line of the text define an instruction of that name?
bool defines(const std::string& text, const std::string& name) {
  std::string wanted = name + " = ";
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1))
    if (at == 0 || text[at - 1] == ' ' || text[at - 1] == '%' || text[at - 1] == '\n' || text[at - 1] == '\t')
      return true;
  return false;
}

void nearest_defined(const std::string& text, const std::string& name, int* distance, std::string* near) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("ROOT ")) line.remove_prefix(5);
    if (line.starts_with('%')) line.remove_prefix(1);
    size_t stop = line.find(" = ");
    if (stop == std::string_view::npos || stop > 200 || line.substr(0, stop).find(' ') != std::string_view::npos)
      continue;
    if (int d = edit_distance(line.substr(0, stop), name); d < *distance)
      *distance = d, *near = std::string(line.substr(0, stop));
  }
}

// Does a way lead from `from` to `to` through users?
bool leads_to(const Module& m, InstId from, InstId to) {
  std::vector<InstId> list{from};
  std::unordered_set<InstId> seen{from};
  for (size_t k = 0; k < list.size(); ++k)
    for (InstId user : m.users(list[k])) {
      if (user == to) return true;
      if (seen.insert(user).second) list.push_back(user);
    }
  return false;
}

std::string how_they_meet(const Module& m, const std::string& a, const std::string& b, const std::string& stage) {
  InstId x, y;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.inst_name(i) == a) x = i;
      if (m.inst_name(i) == b) y = i;
    }
  if (!x.valid() || !y.valid()) return {};
  if (m.parent(x) != m.parent(y))
    return fmt::format(
        "they stand in different computations ({} in {}, {} in {}; stage {}): fusion joins instructions of one", a,
        m.comp_name(m.parent(x)), b, m.comp_name(m.parent(y)), stage);
  auto feeds = [&](InstId p, InstId q) {
    auto operands = m.operands(q);
    return std::find(operands.begin(), operands.end(), p) != operands.end();
  };
  if (feeds(x, y) || feeds(y, x)) return {};
  if (leads_to(m, x, y) || leads_to(m, y, x)) {
    const auto& [from, to] = leads_to(m, x, y) ? std::pair(a, b) : std::pair(b, a);
    return fmt::format(
        "{} does not feed {} itself, others stand between them (stage {}): a fusion takes them one by one", from, to,
        stage);
  }
  return fmt::format(
      "neither leads to the other (stage {}): only a producer and its consumer are joined, or consumers of one operand",
      stage);
}

}  // namespace

Meeting meeting(const Recording& r, const std::string& a, const std::string& b) {
  Meeting out;
  std::string last_a, last_b, both, both_stage, first_text, last_text;
  for (const StageRow& row : r.rows) {
    if (!row.file.ends_with(".txt") && !row.file.ends_with(".hlo")) continue;
    last_text = read_file(r.folder + "/" + row.file);
    if (first_text.empty()) first_text = last_text;
    bool x = defines(last_text, a), y = defines(last_text, b);
    std::string stage = row.number >= 0 ? fmt::format("{:04} {}", row.number, row.name()) : row.name();
    if (x) out.first = true, last_a = stage;
    if (y) out.second = true, last_b = stage;
    if (x && y) both = row.file, both_stage = stage;
  }
  // A name of a few letters is near nothing.
  auto near_enough = [](const std::string& name) { return std::min(4, static_cast<int>(name.size()) / 2 + 2); };
  int distance = near_enough(a);
  if (!out.first)
    for (const std::string* text : {&first_text, &last_text}) nearest_defined(*text, a, &distance, &out.near_first);
  distance = near_enough(b);
  if (!out.second)
    for (const std::string* text : {&first_text, &last_text}) nearest_defined(*text, b, &distance, &out.near_second);
  if (!out.first || !out.second) return out;
  if (both.empty()) {
    out.text = fmt::format("they are never in one stage: {} stands last in {}, {} in {}", a, last_a, b, last_b);
    return out;
  }
  ParseOptions parse;
  parse.file = r.folder + "/" + both;
  try {
    out.text =
        how_they_meet(*parse_module(read_file(parse.file), std::make_shared<Universe>(), parse), a, b, both_stage);
  } catch (const Failure&) {
    // A stage that cannot be read tells nothing.
  }
  return out;
}

std::vector<PassWork> pass_work(const Recording& r, const std::string& pass) {
  std::vector<PassWork> out;
  const PassInfo* info = find_pass(pass);
  for (const StageRow& row : r.rows) {
    if (row.kind != StageRow::kPass || (row.pass != pass && (!info || find_pass(row.pass) != info))) continue;
    PassWork w;
    w.stage = row.number > 0 && row.changed ? fmt::format("{:04} {}", row.number, row.name()) : row.name();
    w.changed = row.changed, w.implemented = row.implemented;
    w.added = row.added, w.removed = row.removed, w.modified = row.modified;
    std::map<std::string, size_t> rules;
    for (const Note& n : row.notes) ++rules[n.rule];
    w.rules.assign(rules.begin(), rules.end());
    std::stable_sort(w.rules.begin(), w.rules.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
    out.push_back(std::move(w));
  }
  return out;
}

}  // namespace hlo
