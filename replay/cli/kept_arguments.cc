#include "replay/cli/kept_arguments.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "ir/leaves.h"
#include "replay/cli/captured_shards.h"
#include "replay/cli/json_output.h"
#include "replay/judge/arguments/npz.h"
#include "replay/judge/arguments/session.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/files/input.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kLargestSnapshot = int64_t{2} << 30;
constexpr int64_t kLargestCaptureFile = int64_t{64} << 20;
constexpr int kCaptureVersion = 1;

std::vector<ShapeId> parameter_leaves(const Module& m) {
  std::vector<ShapeId> leaves;
  for (InstId p : m.comp(m.entry()).params) leaf_shapes(m.u(), m.shape_id(p), leaves);
  return leaves;
}

std::string module_prefix(const Recording& r) {
  return fmt::format("module_{:04}.{}.", r.module_number, r.module_name);
}

// The first run's: XLA writes one a run, with a number that says nothing.
std::optional<std::string> first_snapshot(const Recording& r) {
  const std::string begin = module_prefix(r) + "snapshot.";
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

// jax's name of a function is XLA's of its module, but for what stands for brackets.
std::string without_end(std::string name) {
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

// By name and number of the call alone: those of other modules of the name are among them.
std::vector<std::string> arguments_by_name(const Recording& r, const std::string& scratch) {
  std::vector<std::string> out;
  std::vector<std::string> folders{r.folder};
  if (!scratch.empty()) folders.push_back(scratch + "/arguments");
  for (const std::string& folder : folders) {
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

std::string file_of(const std::string& folder, const std::string& name) {
  std::error_code error;
  return fs::is_regular_file(folder + "/" + name, error) ? confined_path(folder, name) : std::string();
}

// The module's own file, in its folder, or in the one where triage keeps what a program had.
std::string own_file(const Recording& r, const std::string& scratch, const char* what) {
  const std::string name = module_prefix(r) + what + ".npz";
  std::string found = file_of(r.folder, name);
  if (found.empty() && !scratch.empty()) found = file_of(scratch + "/arguments", name);
  return found;
}

// What a captured folder tells of a module's first call; null where it tells nothing.
Json call_of(const std::string& folder, int number) {
  const std::string file = file_of(folder, "capture.json");
  if (file.empty()) return {};
  std::error_code error;
  const Json told = static_cast<int64_t>(fs::file_size(file, error)) > kLargestCaptureFile
                        ? Json()
                        : Json::parse(read_file(file), nullptr, false);
  if (!told.is_object() || !told.contains("version") || !told["version"].is_number_integer())
    fail(FailureKind::kIo, "{} is damaged: an object with a version is wanted", file);
  if (told["version"] != kCaptureVersion)
    fail(FailureKind::kUsage,
         "{} was written by another release: it is version {}, this hlo-replay reads version {}; --inputs=FILE or "
         "--seed=N does without it",
         file, told["version"].dump(), kCaptureVersion);
  if (!told.contains("calls") || !told["calls"].is_array()) fail(FailureKind::kIo, "{} is damaged: no calls", file);
  for (const Json& call : told["calls"])
    if (call.is_object() && call.contains("number") && call["number"] == number) return call;
  return {};
}

// Parameters that the file of a call does not have as whole arrays, with their shards where the folder tells of them.
std::vector<CapturedArray> left_out(const Module& first, const std::string& own, const Json& call) {
  std::set<std::string> whole;
  for (const NamedArray& array : read_npz(own, [](const std::string&) { return int64_t{0}; })) whole.insert(array.name);
  std::map<std::string, CapturedArray> told;
  if (call.is_object() && call.contains("arguments") && call["arguments"].is_array())
    for (const Json& argument : call["arguments"])
      if (std::optional<CapturedArray> array = captured_array(argument)) told.emplace(array->name, std::move(*array));
  std::vector<CapturedArray> out;
  const std::vector<ShapeId> leaves = parameter_leaves(first);
  for (size_t k = 0; k < leaves.size(); ++k) {
    const std::string name = fmt::format("p{}", k);
    if (!first.u()[leaves[k]].is_array() || whole.contains(name)) continue;
    const auto at = told.find(name);
    out.push_back(at == told.end() ? CapturedArray{name, {}, {}} : at->second);
  }
  return out;
}

// The folders of the other processes of a run: beside this one's, of the very same module.
std::vector<std::string> files_of_processes(const Recording& r, const std::string& own) {
  std::vector<std::string> out{own};
  const fs::path folder = fs::absolute(r.folder).lexically_normal(), mine = first_text(r);
  const std::string name = folder.filename();
  if (!name.starts_with("process_") || mine.empty()) return out;
  std::error_code error;
  for (const fs::directory_entry& e : fs::directory_iterator(folder.parent_path(), error)) {
    const std::string other = e.path().filename();
    if (other == name || !other.starts_with("process_") || e.is_symlink(error)) continue;
    const std::string text = file_of(e.path(), mine.filename()), arrays = file_of(e.path(), fs::path(own).filename());
    if (!text.empty() && !arrays.empty() && same_files(mine, text)) out.push_back(arrays);
  }
  std::sort(out.begin() + 1, out.end());
  return out;
}

// Do these inputs fit the first stage?
bool inputs_fit(const RunArgs& a, const Module& m, const std::string& file, std::string* why) {
  RunArgs with = a;
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

void take_snapshot(const RunArgs& a, const Recording& r, const Module& first, const std::string& name,
                   std::string scratch, KeptArguments& out) {
  const Loaded held = load_all(confined_path(r.folder, name));
  const Universe& u = held.module->u();
  if (scratch.empty()) {
    out.holds = std::make_shared<TemporaryFolder>();
    scratch = out.holds->path();
  }
  std::vector<Value> arguments;
  for (LitId argument : held.arguments) arguments.push_back(value_of_literal(u, argument));
  const std::string inputs = scratch + "/inputs.npz", outputs = scratch + "/outputs.npz";
  save_arrays(u, inputs, arguments, {});
  std::string why;
  if (!inputs_fit(a, first, inputs, &why)) {
    out.notes.push_back(fmt::format("{} is left: {}", name, why));
    return;
  }
  out.inputs = inputs, out.in_words = name;
  if (!held.result.valid()) return;
  std::vector<Value> results;
  flatten(u, value_of_literal(u, held.result), &results);
  save_arrays(u, outputs, {}, results);
  out.outputs = outputs;
}

// Of the file that is this module's alone: what it has whole, and what the files of all processes have together; others
// are drawn.
void take_own_file(const Recording& r, const Module& first, const RunArgs& a, const std::string& scratch,
                   const std::string& own, KeptArguments& out) {
  const Json call = call_of(r.folder, r.module_number);
  const std::string name = fs::path(own).filename();
  std::string file = own, drawn, with, why;
  std::vector<CapturedArray> missing;
  bool whole = true;
  try {
    const std::vector<CapturedArray> left = missing = left_out(first, own, call);
    whole = left.empty();
    if (std::any_of(left.begin(), left.end(), [](const CapturedArray& array) { return !array.shards.empty(); })) {
      out.holds = std::make_shared<TemporaryFolder>();
      const std::vector<std::string> files = files_of_processes(r, own);
      file = out.holds->path() + "/" + name;
      missing = join_shards(files, left, bytes_of_leaves(first.u(), parameter_leaves(first), 'p'), file);
      if (missing.size() == parameter_leaves(first).size()) {
        out.notes.push_back(name + ": none of its arrays is whole without the folders of the other processes");
        return;
      }
      if (missing.size() < left.size()) with = fmt::format(", shards of {} processes", files.size());
    }
  } catch (const Failure& e) {
    out.misfit = fmt::format("{} does not fit module {}: {}", name, r.module_name, e.what());
    return;
  }
  for (const CapturedArray& array : missing) drawn += (drawn.empty() ? "" : ", ") + array.name;
  if (!inputs_fit(a, first, file, &why)) {
    out.misfit = fmt::format("{} does not fit module {}: {}", name, r.module_name, why);
    return;
  }
  out.inputs = file, out.in_words = name + ", of the first call" + with;
  if (whole)
    out.outputs = own_file(r, scratch, "results");
  else if (!missing.empty())
    out.in_words += fmt::format("; {} not kept whole: random (seed {})", drawn, a.seed);
}

}  // namespace

bool keeps_arguments(const Recording& r, const std::string& scratch) {
  return !own_file(r, scratch, "arguments").empty() || !file_of(r.folder, "inputs.npz").empty() ||
         !arguments_by_name(r, scratch).empty() || first_snapshot(r);
}

std::string first_text(const Recording& r) {
  for (const StageRow& row : r.rows)
    if (row.file.ends_with(".txt") || row.file.ends_with(".hlo")) return confined_path(r.folder, row.file);
  return {};
}

bool takes_kept(const RunArgs& a) { return a.inputs.empty() && !a.seeded && a.scheme == "mixed"; }

KeptArguments kept_arguments(const Recording& r, const Module& first, const RunArgs& a, const std::string& scratch) {
  KeptArguments out;
  std::string why;
  if (const std::string own = own_file(r, scratch, "arguments"); !own.empty()) {
    take_own_file(r, first, a, scratch, own, out);
    if (!out.inputs.empty() || !out.misfit.empty()) return out;
  }
  if (const std::string beside = file_of(r.folder, "inputs.npz"); !beside.empty()) {
    if (inputs_fit(a, first, beside, &why)) {
      out.inputs = beside, out.in_words = "inputs.npz next to it";
      out.outputs = file_of(r.folder, "outputs.npz");
      return out;
    }
    out.misfit = fmt::format("inputs.npz next to it does not fit module {}: {}", r.module_name, why);
  }
  for (const std::string& file : arguments_by_name(r, scratch)) {
    if (inputs_fit(a, first, file, &why)) {
      out.inputs = file, out.in_words = fs::path(file).filename().string() + ", of the first call";
      return out;
    }
    out.notes.push_back(fmt::format("{} is left: {}", fs::path(file).filename().string(), why));
  }
  if (const std::optional<std::string> snapshot = first_snapshot(r))
    take_snapshot(a, r, first, *snapshot, scratch, out);
  return out;
}

std::shared_ptr<const KeptLeaves> kept_leaves(const Recording& r, const Module& first, const RunArgs& a) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  std::string file = a.inputs;
  if (file.empty()) {
    if (!takes_kept(a) || !keeps_arguments(r, "")) return nullptr;
    file = own_file(r, "", "arguments");
    if (file.empty()) file = file_of(r.folder, "inputs.npz");
    if (const std::vector<std::string> named = arguments_by_name(r, ""); file.empty() && named.size() == 1)
      file = named[0];
    if (file.empty() || first.config().replica_count * first.config().num_partitions != 1) {
      complain("note: chosen elements are compared on random inputs, not on the arguments that are kept with the dump");
      return nullptr;
    }
  }
  try {
    auto kept = std::make_shared<const KeptLeaves>(first, file, kMostBytes);
    if (!kept->left().empty())
      complain(fmt::format("note: {} of {} more than 1 GiB together: their elements are random",
                           fmt::join(kept->left(), ", "), kept->left().size() == 1 ? "makes" : "make"));
    return kept->taken().empty() ? nullptr : kept;
  } catch (const Failure& e) {
    fail(e.kind(), "{} does not fit module {}: {}; --inputs=FILE takes others, --seed=N draws them", file,
         r.module_name, e.what());
  }
}

KeptArguments own_arguments(const Recording& r, const Module& first, const RunArgs& a) {
  KeptArguments kept = kept_arguments(r, first, a, "");
  if (kept.inputs.empty() && !kept.misfit.empty())
    fail(FailureKind::kUsage, "{}; --inputs=FILE takes others, --seed=N draws them", kept.misfit);
  if (kept.inputs.empty())
    for (const std::string& note : kept.notes) complain("note: " + note);
  return kept;
}

}  // namespace hlo
