#include "replay/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/print.h"
#include "parser/parser.h"
#include "replay/files.h"

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
    std::string text = read_file(r.folder + "/" + f);
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

}  // namespace

History history(const Recording& r, const std::string& wanted) {
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
    std::string s;
    if (!text(d.source_file).empty()) s = fmt::format("{}:{}", text(d.source_file), d.source_line);
    if (!text(d.op_name).empty()) s += fmt::format("{}{}", s.empty() ? "" : ", ", text(d.op_name));
    return s;
  };
  for (const StageRow& row : r.rows) {
    if (!row.file.ends_with(".txt") && !row.file.ends_with(".hlo")) continue;
    std::unique_ptr<Module> m;
    try {
      ParseOptions parse;
      parse.file = row.file;
      m = parse_module(read_file(r.folder + "/" + row.file), universe, parse);
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
      if (hidden.valid()) {
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
  if (!name.empty()) {
    out.buffers = lines_with(r, "buffer-assignment", name, "value:");
    if (out.buffers.empty()) out.buffers = lines_with(r, "buffer-assignment", name);  // an alias of another's
    out.thunks = lines_with(r, "thunk", name);
    // A fused instruction has its fusion's buffer and thunk.
    if (last) {
      auto names = by_name(*last);
      if (auto at = names.find(name); at != names.end())
        if (InstId f = fusion_of(*last, last->callers(), at->second); f.valid()) {
          std::string fusion(last->inst_name(f));
          for (std::string& line : lines_with(r, "buffer-assignment", fusion, "value:"))
            out.buffers.push_back(std::move(line));
          for (std::string& line : lines_with(r, "thunk", fusion)) out.thunks.push_back(std::move(line));
        }
    }
  }
  return out;
}

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
    std::string text = read_file(r.folder + "/" + f);
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
