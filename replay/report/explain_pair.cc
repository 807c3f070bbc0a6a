#include <algorithm>
#include <map>
#include <unordered_set>

#include "replay/os/confined_path.h"
#include "replay/report/decisions.h"
#include "replay/report/explain.h"
#include "replay/report/explain_text.h"

namespace hlo {

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
                                    std::string_view start) {
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

// Blocks of `key: value` lines, one a step.
void each_dumped_decision(const Recording& r, const std::function<void(const std::string& file, const std::string& kind,
                                                                       const std::vector<std::string>& values)>& see) {
  for (const std::string& f : r.other_files) {
    if (f.find("fusion_dump") == std::string::npos || !f.ends_with(".txt")) continue;
    std::string text = read_confined(r.folder, f);
    std::string kind;
    std::vector<std::string> values;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      at = end + 1;
      line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
      if (line.ends_with("{")) {
        kind = line.substr(0, line.find(' ')), values.clear();
      } else if (line == "}") {
        if (!kind.empty()) see(f, kind, values);  // else it ends what lies around the block
        kind.clear(), values.clear();
      } else if (!line.empty()) {
        values.push_back(line);
      }
    }
  }
}

namespace {

// An instruction and all that it lived on as, with the names that these had.
struct Kin {
  std::unordered_set<InstId> ids;
  std::vector<std::string> names;
};

Kin kin_of(const Lineage& lineage, const std::string& name) {
  Kin out;
  out.names.push_back(name);
  std::vector<Sighting> seen = sightings(lineage, name);
  for (const Sighting& s : seen) out.ids.insert(s.id);
  if (seen.empty()) return out;
  std::unordered_set<StrId> names{lineage.universe()->find_str(name)};
  for (size_t k = seen[0].stage; k < lineage.size(); ++k) {
    if (k > 0)
      for (const Heir& h : lineage.heirs(k))
        if (h.kind != HeirKind::kDerived && out.ids.contains(h.from)) out.ids.insert(h.to);
    for (InstId i : out.ids)
      if (lineage.stage(k).alive(i) && names.insert(lineage.stage(k)[i].name).second)
        out.names.emplace_back(lineage.universe()->text(lineage.stage(k)[i].name));
  }
  std::sort(out.names.begin() + 1, out.names.end());
  return out;
}

bool any_named(std::string_view line, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return names_it(line, n); });
}

// By id; by name where a recording has no ids of its notes.
bool about(const Note& n, const Kin& kin) {
  for (size_t k = 0; k < n.names.size(); ++k) {
    bool known = k < n.insts.size() && n.insts[k].valid();
    if (known ? kin.ids.contains(n.insts[k])
              : std::find(kin.names.begin(), kin.names.end(), n.names[k]) != kin.names.end())
      return true;
  }
  return false;
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

std::string how_they_meet(const Module& m, InstId x, InstId y, const std::string& stage) {
  const std::string a(m.inst_name(x)), b(m.inst_name(y));
  if (m.parent(x) != m.parent(y))
    return fmt::format(
        "they stand in different computations ({} in {}, {} in {}; stage {}): fusion joins instructions of one", a,
        m.comp_name(m.parent(x)), b, m.comp_name(m.parent(y)), stage);
  auto feeds = [&](InstId p, InstId q) {
    auto operands = m.operands(q);
    return std::find(operands.begin(), operands.end(), p) != operands.end();
  };
  if (feeds(x, y) || feeds(y, x)) return {};
  bool there = leads_to(m, x, y);
  if (there || leads_to(m, y, x))
    return fmt::format(
        "{} does not feed {} itself, others stand between them (stage {}): a fusion takes them one by one",
        there ? a : b, there ? b : a, stage);
  return fmt::format(
      "neither leads to the other (stage {}): only a producer and its consumer are joined, or consumers of one operand",
      stage);
}

// Is it said of the first alone that it goes into none of what reads it, of which the second is one?
bool declines(const Lineage& lineage, const StageRow& row, const Note& n, const Kin& producer, const Kin& consumer) {
  if (n.rewrite > 0 || n.insts.size() != 1 || !n.insts[0].valid() || !producer.ids.contains(n.insts[0])) return false;
  if (!joins_kernels(row.pass) || row.stage < (row.changed ? 1 : 0)) return false;
  const auto before = static_cast<size_t>(row.stage - (row.changed ? 1 : 0));
  if (!lineage.stage(before).alive(n.insts[0])) return false;
  const std::unique_ptr<Module> m = lineage.module(before);
  m->ensure_users();
  const auto users = m->users(n.insts[0]);
  return std::any_of(users.begin(), users.end(), [&](InstId user) { return consumer.ids.contains(user); });
}

}  // namespace

std::vector<std::string> why_not_fused(Recording& r, const std::string& first, const std::string& second) {
  const Lineage& lineage = r.lineage();
  const Kin a = kin_of(lineage, first), b = kin_of(lineage, second);
  std::vector<std::string> out;
  auto add = [&](std::string line) {
    if (std::find(out.begin(), out.end(), line) == out.end()) out.push_back(std::move(line));
  };
  for (const StageRow& row : r.rows)
    for (const Note& n : row.notes)
      if ((about(n, a) && about(n, b)) || declines(lineage, row, n, a, b) || declines(lineage, row, n, b, a))
        add(fmt::format("{}: {} ({}){}", row.name(), n.rule, fmt::join(n.names, ", "),
                        n.text.empty() ? "" : ": " + n.text));
  each_dumped_decision(r, [&](const std::string& f, const std::string& kind, const std::vector<std::string>& values) {
    bool has_a = false, has_b = false;
    std::string joined;
    for (const std::string& v : values) {
      has_a |= any_named(v, a.names), has_b |= any_named(v, b.names);
      joined += (joined.empty() ? "" : ", ") + v;
    }
    // What cannot be fused with anything says so of the producer alone.
    bool alone = kind == "producer_ineligible" && (has_a || has_b);
    if ((has_a && has_b) || alone) add(fmt::format("{}: {}: {}", f, kind, joined));
  });
  return out;
}

Meeting meeting(Recording& r, const std::string& a, const std::string& b) {
  const Lineage& lineage = r.lineage();
  const std::vector<Sighting> seen[2] = {sightings(lineage, a), sightings(lineage, b)};
  Meeting out;
  out.first = !seen[0].empty(), out.second = !seen[1].empty();
  if (!out.first) out.near_first = nearest_name(lineage, a);
  if (!out.second) out.near_second = nearest_name(lineage, b);
  if (!out.first || !out.second) return out;
  // The last stage that has the first, that has the second, that has both.
  const StrId names[2] = {lineage.universe()->find_str(a), lineage.universe()->find_str(b)};
  size_t last[2] = {0, 0}, both = SIZE_MAX;
  InstId x, y;
  for (size_t k = 0; k < lineage.size(); ++k) {
    InstId here[2];
    for (int side = 0; side < 2; ++side)
      for (const Sighting& s : seen[side])
        if (!here[side].valid() && s.stage <= k && lineage.stage(k).alive(s.id) &&
            lineage.stage(k)[s.id].name == names[side])
          here[side] = s.id, last[side] = k;
    if (here[0].valid() && here[1].valid()) both = k, x = here[0], y = here[1];
  }
  const std::vector<const StageRow*> rows = rows_of_stages(r, lineage);
  auto label = [&](size_t k) { return rows[k] ? stage_label(*rows[k]) : fmt::format("stage {}", k); };
  if (both == SIZE_MAX) {
    out.text = fmt::format("they are never in one stage: {} stands last in {}, {} in {}", a, label(last[0]), b,
                           label(last[1]));
    return out;
  }
  std::unique_ptr<Module> m = lineage.module(both);
  out.text = how_they_meet(*m, x, y, label(both));
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
