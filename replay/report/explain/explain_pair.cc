#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/query/find_instruction.h"
#include "replay/os/confined_path.h"
#include "replay/report/explain/decisions.h"
#include "replay/report/explain/explain.h"
#include "replay/report/explain/explain_text.h"

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

// What stands in the body of a fusion, at the last stage that has it.
std::vector<InstId> fused_in(const Lineage& lineage, InstId fusion, size_t* stage) {
  std::vector<InstId> out;
  for (size_t k = lineage.size(); k-- > 0;) {
    const Snapshot& s = lineage.stage(k);
    if (!s.alive(fusion)) continue;
    *stage = k;
    if (s[fusion].op != Opcode::Fusion || !s[fusion].attrs.valid()) return out;
    for (CompId c : (*lineage.universe())[s[fusion].attrs].called)
      if (const Computation* body = s.computation(c))
        for (InstId i : body->order)
          if (s.alive(i) && s[i].op != Opcode::Parameter && s[i].op != Opcode::Constant) out.push_back(i);
    return out;
  }
  return out;
}

// What it was before, by copies and by what it stands in the place of.
void add_origins(const Lineage& lineage, size_t stage, std::vector<InstId> of, std::unordered_set<InstId>* ids) {
  std::unordered_set<InstId> wanted(of.begin(), of.end());
  for (size_t k = stage; k > 0; --k)
    for (const Heir& h : lineage.heirs(k))
      if (h.kind != HeirKind::kDerived && wanted.contains(h.to) && !lineage.stage(k - 1).alive(h.to))
        wanted.insert(h.from);
  ids->insert(wanted.begin(), wanted.end());
}

Kin kin_of(const Lineage& lineage, const std::string& name) {
  Kin out;
  out.names.push_back(name);
  std::vector<Sighting> seen = sightings(lineage, name);
  if (seen.empty()) return out;
  for (const Sighting& s : seen) out.ids.insert(s.id);
  for (size_t k = seen[0].stage + 1; k < lineage.size(); ++k)
    for (const Heir& h : lineage.heirs(k))
      if (h.kind != HeirKind::kDerived && out.ids.contains(h.from)) out.ids.insert(h.to);
  // A name of the final module is that of a fusion: of all that went into it, too.
  for (const Sighting& s : seen) {
    add_origins(lineage, s.stage, {s.id}, &out.ids);
    size_t stage = 0;
    if (std::vector<InstId> inside = fused_in(lineage, s.id, &stage); !inside.empty())
      add_origins(lineage, stage, std::move(inside), &out.ids);
  }
  std::unordered_set<StrId> names{lineage.universe()->find_str(name)};
  for (size_t k = 0; k < lineage.size(); ++k)
    for (InstId i : out.ids)
      if (lineage.stage(k).alive(i) && names.insert(lineage.stage(k)[i].name).second)
        out.names.emplace_back(lineage.universe()->text(lineage.stage(k)[i].name));
  std::sort(out.names.begin() + 1, out.names.end());
  return out;
}

// What went into both tells nothing of the two.
void tell_apart(Kin& a, Kin& b) {
  std::unordered_set<std::string> first(a.names.begin(), a.names.end()), common;
  for (const std::string& n : b.names)
    if (first.contains(n) && n != a.names[0] && n != b.names[0]) common.insert(n);
  for (Kin* kin : {&a, &b}) std::erase_if(kin->names, [&](const std::string& n) { return common.contains(n); });
  std::vector<InstId> both;
  for (InstId i : a.ids)
    if (b.ids.contains(i)) both.push_back(i);
  for (InstId i : both) a.ids.erase(i), b.ids.erase(i);
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
        "they are in different computations ({} in {}, {} in {}; stage {}): fusion joins instructions of one", a,
        m.comp_name(m.parent(x)), b, m.comp_name(m.parent(y)), stage);
  auto feeds = [&](InstId p, InstId q) {
    auto operands = m.operands(q);
    return std::find(operands.begin(), operands.end(), p) != operands.end();
  };
  if (feeds(x, y) || feeds(y, x)) return {};
  bool there = leads_to(m, x, y);
  if (there || leads_to(m, y, x))
    return fmt::format("{} does not feed {} itself, others are between them (stage {}): a fusion takes them one by one",
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

std::string note_in_words(const StageRow& row, const Note& n) {
  const std::string why = n.text.empty() ? n.rule : n.text;
  const std::string producer = n.names.empty() ? "it" : n.names[0];
  const std::string into = n.names.size() > 1 ? n.names[1] : "what reads it";
  return fmt::format("{}: {} {} {} into {}", why, row.pass, n.rewrite > 0 ? "fused" : "did not fuse", producer, into);
}

// XLA's dump, step by step, as far as it is about two.
class DumpedPair {
 public:
  DumpedPair(Recording& r, const Kin& a, const Kin& b) : r_(r), kin_{&a, &b} {
    for (int s = 0; s < 2; ++s) names_[s].insert(kin_[s]->names.begin(), kin_[s]->names.end());
  }

  void see(const std::string& file, const std::string& kind, const std::vector<std::string>& values,
           PairDecisions* out) {
    out->dumped = true;
    const std::string producer = dumped_value(values, "producer_name");
    std::vector<std::string> consumers;
    for (const std::string& v : values)
      if (v.starts_with("consumer_name")) consumers.push_back(dumped_value({v}, v.substr(0, v.find(':'))));
    const std::string fused = dumped_value(values, "us_fused"), apart = dumped_value(values, "us_unfused");
    if (kind == "update_priority") {
      known_[producer] = consumers;
      if (!fused.empty()) times_[producer] = fmt::format("{} µs fused, {} µs apart: ", fused, apart);
    }
    for (int s = 0; s < 2; ++s) {
      if (!names_[s].contains(producer)) continue;
      const std::string reader = reader_of(producer, consumers, s);
      if (reader.empty()) continue;
      std::string line = fmt::format("{}: {}: {}", file, kind, fmt::join(values, ", "));
      if (std::find(out->lines.begin(), out->lines.end(), line) == out->lines.end())
        out->lines.push_back(std::move(line));
      out->last = in_words(kind, producer, reader, values);
      return;
    }
  }

 private:
  // The one of its readers that belongs to the other; empty where none does.
  std::string reader_of(const std::string& producer, const std::vector<std::string>& named, int s) {
    const auto& others = names_[1 - s];
    const auto told = known_.find(producer);
    const std::vector<std::string>& readers = named.empty() && told != known_.end() ? told->second : named;
    for (const std::string& c : readers)
      if (others.contains(c)) return c;
    if (!named.empty()) return {};
    // What cannot be fused with anything says so of the producer alone.
    if (!module_) find_module();
    if (!module_) return {};
    if (const InstId i = find_instruction(*module_, producer); i.valid())
      for (InstId user : module_->users(i))
        if (others.contains(std::string(module_->inst_name(user)))) return std::string(module_->inst_name(user));
    return {};
  }

  // In front of the run that the dump is of.
  void find_module() {
    for (const StageRow& row : r_.rows) {
      if (row.pass != "priority-fusion" || !row.changed || row.stage <= 0) continue;
      module_ = r_.lineage().module(static_cast<size_t>(row.stage) - 1);
      module_->ensure_users();
      return;
    }
    // A dump without the stage: names of the module that XLA was given.
    if (r_.lineage().size() == 0) return;
    module_ = r_.lineage().module(0);
    module_->ensure_users();
  }

  std::string in_words(const std::string& kind, const std::string& producer, const std::string& reader,
                       const std::vector<std::string>& values) const {
    const auto told = times_.find(producer);
    const std::string numbers = told == times_.end() ? "" : told->second;
    if (kind == "fusion")
      return fmt::format("{}priority-fusion fused {} into {}, as {}", numbers, producer, reader,
                         dumped_value(values, "fusion_name"));
    if (kind == "update_priority") {
      const auto all = known_.find(producer);
      const size_t more = all == known_.end() || all->second.empty() ? 0 : all->second.size() - 1;
      const std::string with = more ? fmt::format("{} and {} more that read it", reader, more) : reader;
      const std::optional<double> fused = dumped_number(values, "us_fused"),
                                  apart = dumped_number(values, "us_unfused");
      if (fused && apart && *fused >= *apart)
        return fmt::format("{}priority-fusion did not fuse {} into {}: it saves nothing", numbers, producer, with);
      return fmt::format("{}priority-fusion weighed {} into {}; what came of it is not recorded", numbers, producer,
                         with);
    }
    return fmt::format("{}priority-fusion did not fuse {} into {}: {}", numbers, producer, reader,
                       dumped_value(values, "reason"));
  }

  Recording& r_;
  const Kin* kin_[2];
  std::unordered_set<std::string> names_[2];
  std::unordered_map<std::string, std::vector<std::string>> known_;  // a producer's readers, as they were last
  std::unordered_map<std::string, std::string> times_;
  std::unique_ptr<Module> module_;
};

}  // namespace

PairDecisions why_not_fused(Recording& r, const std::string& first, const std::string& second) {
  const Lineage& lineage = r.lineage();
  Kin a = kin_of(lineage, first), b = kin_of(lineage, second);
  tell_apart(a, b);
  PairDecisions out;
  for (const StageRow& row : r.rows)
    for (const Note& n : row.notes) {
      if (!(about(n, a) && about(n, b)) && !declines(lineage, row, n, a, b) && !declines(lineage, row, n, b, a))
        continue;
      std::string line = fmt::format("{}: {} ({}){}", row.name(), n.rule, fmt::join(n.names, ", "),
                                     n.text.empty() ? "" : ": " + n.text);
      if (joins_kernels(row.pass)) out.last = note_in_words(row, n);
      if (std::find(out.lines.begin(), out.lines.end(), line) == out.lines.end()) out.lines.push_back(std::move(line));
    }
  DumpedPair pair(r, a, b);
  each_dumped_decision(r, [&](const std::string& file, const std::string& kind,
                              const std::vector<std::string>& values) { pair.see(file, kind, values, &out); });
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
    out.text =
        fmt::format("they are never in one stage: {} is last in {}, {} in {}", a, label(last[0]), b, label(last[1]));
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
