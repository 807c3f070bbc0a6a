// triage: the arguments that a program had, where they lie with its dump.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "ir/leaves.h"
#include "replay/cli/triage.h"
#include "replay/judge/session.h"
#include "replay/os/confined_path.h"
#include "replay/record/input.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kLargestSnapshot = int64_t{2} << 30;
constexpr size_t kMostSubjects = 3;

// The first run's: XLA writes one a run, with a number that says nothing.
std::optional<std::string> first_snapshot(const Recording& r) {
  const std::string begin = fmt::format("module_{:04}.{}.snapshot.", r.module_number, r.module_name);
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, std::string>> all;
  for (const fs::directory_entry& e : fs::directory_iterator(r.folder, error)) {
    const std::string name = e.path().filename();
    if (name.starts_with(begin) && name.ends_with(".pb") && e.is_regular_file(error) &&
        static_cast<int64_t>(e.file_size(error)) <= kLargestSnapshot)
      all.emplace_back(e.last_write_time(error), name);
  }
  if (all.empty()) return std::nullopt;
  return std::min_element(all.begin(), all.end())->second;
}

// Do these inputs fit the first stage?
bool inputs_fit(const TriageArgs& a, const Module& m, const std::string& file, std::string* why) {
  TriageArgs with = a;
  with.inputs = file;
  try {
    InputOptions inputs = input_options(with);
    inputs.label = inputs.place = file;
    const Session session(m, inputs);
    return true;
  } catch (const Failure& e) {
    *why = e.what();
    return false;
  }
}

void take_snapshot(TriageArgs& a, TriageSubject& s, const Module& first, const std::string& scratch,
                   const std::string& name) {
  const Loaded held = load_all(confined_path(s.modules[0].folder, name));
  const Universe& u = held.module->u();
  std::vector<Value> arguments;
  for (LitId argument : held.arguments) arguments.push_back(value_of_literal(u, argument));
  const std::string inputs = scratch + "/inputs.npz", outputs = scratch + "/outputs.npz";
  save_arrays(u, inputs, arguments, {});
  std::string why;
  if (!inputs_fit(a, first, inputs, &why)) {
    s.notes.push_back(fmt::format("{} is left: {}", name, why));
    return;
  }
  a.inputs = inputs, s.arguments = name;
  if (!a.outputs.empty() || !held.result.valid()) return;
  std::vector<Value> results;
  flatten(u, value_of_literal(u, held.result), &results);
  save_arrays(u, outputs, {}, results);
  a.outputs = outputs;
}

// jax's name of a function is XLA's of its module, but for what stands for brackets.
std::string without_end(std::string name) {
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

// What capture and triage keep of a program's calls: arguments.NAME.K.npz in the folder, or in one beside it.
std::vector<std::string> kept_arguments(const Recording& r, const std::string& scratch) {
  std::vector<std::string> out;
  for (const std::string& folder : {r.folder, scratch + "/arguments"}) {
    std::error_code error;
    for (const fs::directory_entry& e : fs::directory_iterator(folder, error)) {
      const std::string name = e.path().filename();
      if (!name.starts_with("arguments.") || !name.ends_with(".npz")) continue;
      const std::string middle = name.substr(10, name.size() - 14);
      if (without_end(middle.substr(0, middle.rfind('.'))) == without_end(r.module_name)) out.push_back(e.path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

void take_arguments(TriageArgs& a, TriageSubject& s, const std::string& scratch) {
  const bool by_value = s.complaint == Complaint::kWrong || s.complaint == Complaint::kNan;
  if (!a.inputs.empty() || !by_value || s.kind != TriageSubject::kDump || s.modules.size() != 1 || !s.others.empty() ||
      !s.compiled_from.empty())
    return;
  const std::string first = first_stage_of(s), beside = s.modules[0].folder + "/inputs.npz";
  std::error_code error;
  const bool file = fs::is_regular_file(beside, error);
  const std::vector<std::string> kept = kept_arguments(s.modules[0], scratch);
  const std::optional<std::string> snapshot = first_snapshot(s.modules[0]);
  if (first.empty() || (!file && kept.empty() && !snapshot)) return;
  std::unique_ptr<Module> m;
  try {
    m = load(first);
  } catch (const Failure&) {  // a rung says what is wrong with it
    return;
  }
  std::string why;
  if (file && inputs_fit(a, *m, beside, &why)) {
    a.inputs = beside, s.arguments = "inputs.npz next to it";
    const std::string outputs = s.modules[0].folder + "/outputs.npz";
    if (a.outputs.empty() && fs::is_regular_file(outputs, error)) a.outputs = outputs;
    return;
  }
  if (!why.empty()) s.notes.push_back(fmt::format("inputs.npz next to it is left: {}", why));
  for (const std::string& arguments : kept)
    if (inputs_fit(a, *m, arguments, &why)) {
      a.inputs = arguments, s.arguments = fs::path(arguments).filename().string() + ", of the first call";
      return;
    }
  if (snapshot) take_snapshot(a, s, *m, scratch, *snapshot);
}

std::vector<TriageSubject> subjects_with_arguments(const TriageSubject& s, const std::string& scratch) {
  std::vector<std::pair<size_t, TriageSubject>> found;
  for (const Recording& r : s.modules) {
    if (kept_arguments(r, scratch).empty() && !first_snapshot(r)) continue;
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
