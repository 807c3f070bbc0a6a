// triage: what it was given, and what is complained of.
#include <algorithm>
#include <filesystem>

#include "passes/pass.h"
#include "replay/cli/kept_arguments.h"
#include "replay/cli/triage/triage.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/process/program.h"
#include "replay/record/files/run.h"
#include "replay/record/logs/log_file.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> known_pass_names(const std::vector<Recording>& all) {
  std::vector<std::string> out;
  for (const PassInfo& p : all_passes()) out.emplace_back(p.name);
  for (const Recording& r : all)
    for (const StageRow& row : r.rows)
      for (const std::string& name : {row.pass, row.next})
        if (!name.empty() && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  return out;
}

// jax's lines of compilations, and XLA's tables, without the prefix of a log.
bool tells_times(const std::string& text) {
  const LogFile log = read_log(text);
  return !log.times.empty() || !log.timers.empty() || !log.stats.empty() || !log.alarms.empty();
}

void take_log(TriageSubject& s, std::string text) {
  s.text = std::move(text);
  s.evidence = evidence_of(s.text, known_pass_names(s.modules));
  s.vmem = vmem_overflow(s.text);
}

void take_folder(TriageSubject& s) {
  s.kind = TriageSubject::kDump;
  s.modules = select_modules(s.spec);
  s.unfinished = unfinished_modules(s.modules);
  // A few stages of a dump, or a module that is given alone, are no dump that was cut short.
  std::erase_if(s.unfinished, [&](const Unfinished& u) {
    return std::none_of(s.modules.begin(), s.modules.end(), [&](const Recording& r) {
      return r.module_name == u.module && r.rows.size() > 1 && r.rows[0].kind == StageRow::kInput && !u.next.empty() &&
             u.next != "pipeline-end";
    });
  });
  if (s.modules.size() == 1) s.module = s.modules[0].module_name;
}

// A module, or what a program printed.
void take_file(TriageSubject& s) {
  std::string text = read_file(s.spec);
  const bool binary = text.find('\0') != std::string::npos;
  const bool module_text = text.find("HloModule") != std::string::npos;
  const bool by_prefix = !binary && is_log(text);
  if (!binary && (by_prefix || !module_text)) {
    take_log(s, text);
    if (s.evidence.complaint || by_prefix || !s.evidence.words.entered.empty() || tells_times(text)) {
      s.kind = TriageSubject::kLog;
      return;
    }
  }
  s.kind = TriageSubject::kModule, s.text.clear(), s.evidence = {}, s.vmem.reset();
  Loaded loaded = load_all(s.spec);  // what cannot be read is told before anything is tried
  s.module = loaded.module->name();
}

void see_complaint(const TriageArgs& a, TriageSubject& s) {
  if (!a.complaint.empty()) {
    s.complaint = *find_complaint(a.complaint);
    return;
  }
  auto seen = [&](Complaint c, std::string from) { s.complaint = c, s.seen_from = std::move(from); };
  if (!s.others.empty()) return seen(Complaint::kRanksDiffer, "several folders are given");
  if (s.evidence.complaint) return seen(*s.evidence.complaint, s.evidence.line);
  if (!s.evidence.words.entered.empty() || !s.text.empty())
    return seen(Complaint::kCompileTime, "no line of the log names a fault");
  if (!s.unfinished.empty())
    return seen(Complaint::kCrash, fmt::format("the stages of {} end after {}, before the result",
                                               s.unfinished[0].module, s.unfinished[0].last));
  seen(Complaint::kWrong, "the default complaint");
}

}  // namespace

std::string_view subject_word(TriageSubject::Kind kind) {
  switch (kind) {
    case TriageSubject::kDump:
      return "dump";
    case TriageSubject::kModule:
      return "module";
    case TriageSubject::kLog:
      return "log";
    case TriageSubject::kProgram:
      break;
  }
  return "program";
}

std::string subject_in_command(const TriageSubject& s) {
  return s.compiled_from.empty() ? shell_word(s.label) : "xla_dump";
}

TriageSubject triage_subject(const TriageArgs& a, const std::vector<std::string>& what) {
  TriageSubject s;
  s.spec = s.label = what.at(0);
  s.others.assign(what.begin() + 1, what.end());
  if (s.spec != "-" && names_modules(s.spec))
    take_folder(s);
  else
    take_file(s);
  for (const std::string& rank : s.others)
    if (!names_modules(rank)) fail(FailureKind::kUsage, "{} is no dump: several are given to compare ranks", rank);
  if (!a.log.empty()) take_log(s, read_file(a.log));
  see_complaint(a, s);
  if (s.others.empty() && s.complaint == Complaint::kRanksDiffer && s.kind != TriageSubject::kDump)
    fail(FailureKind::kUsage, "ranks-differ wants the dumps of the ranks: triage DIR0 DIR1 …");
  return s;
}

std::string first_stage_of(const TriageSubject& s) {
  if (s.kind == TriageSubject::kModule) return s.spec;
  for (const Recording& r : s.modules)
    if (s.module.empty() || r.module_name == s.module)
      if (std::string file = first_text(r); !file.empty()) return file;
  return {};
}

std::string last_stage_of(const TriageSubject& s) {
  if (s.kind == TriageSubject::kModule) return s.spec;
  for (const Recording& r : s.modules)
    if (s.module.empty() || r.module_name == s.module)
      if (std::optional<size_t> row = final_row(r)) return confined_path(r.folder, r.text_file(*row));
  return {};
}

}  // namespace hlo
