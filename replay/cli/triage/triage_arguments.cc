// triage: the arguments that a program had, where they lie with its dump.
#include <algorithm>
#include <filesystem>

#include "replay/cli/kept_arguments.h"
#include "replay/cli/triage/triage.h"
#include "replay/record/files/input.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostSubjects = 3;

}  // namespace

void take_arguments(TriageArgs& a, TriageSubject& s, const std::string& scratch) {
  // Rungs that are asked with drawn inputs take no others, and their commands say so.
  if (a.inputs.empty())
    for (const Recording& r : s.modules) a.seeded |= keeps_arguments(r, scratch);
  const bool by_value = s.complaint == Complaint::kWrong || s.complaint == Complaint::kNan;
  if (!a.inputs.empty() || !by_value || s.kind != TriageSubject::kDump || s.modules.size() != 1 || !s.others.empty() ||
      !s.compiled_from.empty())
    return;
  const std::string first = first_stage_of(s);
  if (first.empty() || !keeps_arguments(s.modules[0], scratch)) return;
  std::unique_ptr<Module> m;
  try {
    m = load(first);
  } catch (const Failure&) {  // a rung says what is wrong with it
    return;
  }
  const KeptArguments kept = kept_arguments(s.modules[0], *m, a, scratch);
  if (!kept.misfit.empty()) s.notes.push_back(kept.misfit + "; it is left");
  if (kept.inputs.empty()) {
    s.notes.insert(s.notes.end(), kept.notes.begin(), kept.notes.end());
    return;
  }
  a.inputs = kept.inputs, s.arguments = kept.in_words;
  if (a.outputs.empty()) a.outputs = kept.outputs;
}

std::vector<TriageSubject> subjects_with_arguments(const TriageSubject& s, const std::string& scratch) {
  std::vector<std::pair<size_t, TriageSubject>> found;
  for (const Recording& r : s.modules) {
    if (!keeps_arguments(r, scratch)) continue;
    TriageSubject one = s;
    one.modules = {r}, one.module = r.module_name, one.unfinished.clear();
    one.spec = fmt::format("{}:{}", r.folder, r.module_number);
    std::error_code error;
    const std::string first = first_stage_of(one);
    if (!first.empty()) found.emplace_back(fs::file_size(first, error), std::move(one));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<TriageSubject> out;
  for (auto& [size, one] : found)
    if (out.size() < kMostSubjects) out.push_back(std::move(one));
  return out;
}

}  // namespace hlo
